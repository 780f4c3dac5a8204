//! A user's SSH key, made by the host's own `ssh-keygen`.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::exists;
use super::home::Home;
use crate::args::Mode;
use crate::host::{Fault, Host, Put, To};

/// A key that is wanted.
pub(super) struct Key<'a> {
    pub(super) file: PathBuf,
    pub(super) kind: &'a str,
    pub(super) bits: Option<i64>,
    pub(super) comment: Option<&'a str>,
    pub(super) passphrase: Option<&'a str>,
}

impl Key<'_> {
    /// Makes the key where there is none; what `register` sees of it.
    pub(super) fn make(
        &self,
        host: &mut Host,
        home: &Home,
    ) -> Result<Vec<(&'static str, Value)>, Fault> {
        let file = self.file.display().to_string();
        let public = PathBuf::from(format!("{file}.pub"));
        if !exists(host, &self.file)? {
            self.generate(host, home, &public)?;
        }
        let mut fields = vec![("ssh_key_file", json!(file))];
        // In a plan there is none to be read yet.
        if exists(host, &self.file)? {
            let shown = host.probe(&["ssh-keygen", "-l", "-f", &file])?;
            fields.push(("ssh_fingerprint", json!(shown.text().trim())));
        }
        if let Some(text) = host.read(&public)? {
            fields.push((
                "ssh_public_key",
                json!(String::from_utf8_lossy(&text).trim()),
            ));
        }
        Ok(fields)
    }

    fn generate(&self, host: &mut Host, home: &Home, public: &Path) -> Result<(), Fault> {
        let dir = self.file.parent().unwrap_or(&home.dir).to_owned();
        if !exists(host, &dir)? {
            if !exists(host, &home.dir)? {
                return Err(Fault::new(format!(
                    "User {} home directory does not exist: {}",
                    home.owner,
                    home.dir.display()
                )));
            }
            home.directory(host, &dir, 0o700)?;
        }
        let file = self.file.display().to_string();
        let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let comment = self.comment.map_or_else(
            || format!("ansible-generated on {}", name.trim()),
            str::to_owned,
        );
        let mut argv = ["ssh-keygen", "-q", "-t", self.kind]
            .map(str::to_owned)
            .to_vec();
        if let Some(bits) = self.bits.filter(|bits| *bits > 0) {
            argv.extend(["-b".to_owned(), bits.to_string()]);
        }
        let line = format!("{} -f {file}", argv.join(" "));
        argv.extend(["-C".to_owned(), comment]);
        argv.extend([
            "-N".to_owned(),
            self.passphrase.unwrap_or_default().to_owned(),
        ]);
        host.by_chance(&line, |host| {
            let (private, own) = made(host, argv)?;
            let files = [(self.file.as_path(), private, 0o600), (public, own, 0o644)];
            for (path, content, mode) in files {
                host.put(Put {
                    path: path.to_owned(),
                    to: To::File {
                        content: Some(content.into()),
                        mode: Some(Mode::Octal(mode)),
                        owner: Some(home.owner.clone()),
                        group: Some(home.group.clone()),
                    },
                    validate: None,
                })?;
            }
            Ok(())
        })?;
        Ok(())
    }
}

/// A new key and its public part. It is made where nobody else can look, so that its files are put in place as any others.
fn made(host: &Host, mut argv: Vec<String>) -> Result<(Vec<u8>, Vec<u8>), Fault> {
    let dir = std::env::temp_dir().join(format!("fleetctl-key-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    DirBuilder::new()
        .mode(0o700)
        .create(&dir)
        .map_err(|error| Fault::io("make", &dir, error))?;
    let file = dir.join("key");
    argv.extend(["-f".to_owned(), file.display().to_string()]);
    let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
    let read = |path: &Path| std::fs::read(path).map_err(|error| Fault::io("read", path, error));
    let key = host.tool(&argv, None).and_then(|output| match output.ok() {
        true => Ok((read(&file)?, read(&dir.join("key.pub"))?)),
        false => Err(
            Fault::new(format!("cannot make an SSH key: {}", output.complaint()))
                .with("rc", output.rc)
                .with("stderr", output.error_text()),
        ),
    });
    // What cannot be removed lies in a directory of nobody else.
    let _ = std::fs::remove_dir_all(&dir);
    key
}
