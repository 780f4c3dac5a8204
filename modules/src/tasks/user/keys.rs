//! A user's SSH key, made by the host's own `ssh-keygen`.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::exists;
use super::home::Home;
use crate::args::Mode;
use crate::host::{Command, Fault, Host, Put, To};

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
        argv.extend(["-C".to_owned(), comment, "-f".to_owned(), file]);
        argv.extend([
            "-N".to_owned(),
            self.passphrase.unwrap_or_default().to_owned(),
        ]);
        let output = host.command(Command {
            argv,
            line,
            ..Command::default()
        })?;
        let Some(output) = output else {
            return Ok(());
        };
        if !output.ok() {
            return Err(
                Fault::new(format!("cannot make an SSH key: {}", output.complaint()))
                    .with("rc", output.rc)
                    .with("stderr", output.error_text()),
            );
        }
        for (path, mode) in [(self.file.as_path(), 0o600), (public, 0o644)] {
            host.put(Put {
                path: path.to_owned(),
                to: To::File {
                    content: None,
                    mode: Some(Mode::Octal(mode)),
                    owner: Some(home.owner.clone()),
                    group: Some(home.group.clone()),
                },
                validate: None,
            })?;
        }
        Ok(())
    }
}
