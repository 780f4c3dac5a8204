//! Host keys: seen through the user's own ssh configuration, compared with what is known, recorded.

use std::{
    fs::OpenOptions,
    io::Write,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use tokio::{process::Command, time::timeout};

use super::{
    Address, Kind,
    diagnosis::{Verdict, diagnose, fingerprints, target},
    error::{ConnectError, Said},
};

/// The keys that a host shows.
#[derive(Debug)]
pub struct Scan {
    lines: String,
    fingerprints: Vec<String>,
    file: PathBuf,
    known: bool,
    changed: Option<String>,
}

/// Asks a host for its key, through jump hosts and all that ssh is configured to do.
///
/// # Errors
/// When it cannot be reached.
pub async fn scan(
    address: &Address,
    default_file: &Path,
    patience: Duration,
) -> Result<Scan, ConnectError> {
    let host = || target(address, "");
    if address.kind == Kind::Local {
        return Ok(Scan {
            lines: String::new(),
            fingerprints: Vec::new(),
            file: default_file.to_owned(),
            known: true,
            changed: None,
        });
    }
    let unfit = |problem: std::io::Error| ConnectError::ControlDir {
        path: std::env::temp_dir(),
        problem: format!("cannot take a temporary file: {problem}"),
    };
    let fresh = tempfile::NamedTempFile::new().map_err(unfit)?;
    let log = tempfile::NamedTempFile::new().map_err(unfit)?;
    let fresh_option = format!("UserKnownHostsFile={}", fresh.path().display());
    let first = [
        "BatchMode=yes",
        "ControlMaster=no",
        "ControlPath=none",
        "StrictHostKeyChecking=accept-new",
        &fresh_option,
        "GlobalKnownHostsFile=/dev/null",
        "HashKnownHosts=no",
        // One line for the host, and not another for its address.
        "CheckHostIP=no",
        // The key is shown before the login; there need not be one.
        "PreferredAuthentications=none",
        "UpdateHostKeys=no",
    ];
    let mut command = Command::new(address.ssh_program());
    command
        .args(["-v", "-T", "-E"])
        .arg(log.path())
        .args(address.ssh_args(&first))
        .arg("true");
    // Jump hosts and proxy commands do not write through ssh's own log.
    let stderr = OpenOptions::new()
        .append(true)
        .open(log.path())
        .map_err(unfit)?;
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(stderr)
        .kill_on_drop(true);
    let ended = timeout(patience + Duration::from_secs(5), command.status()).await;
    let said = std::fs::read(log.path())
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .unwrap_or_default();
    let lines = std::fs::read_to_string(fresh.path()).unwrap_or_default();
    if lines.trim().is_empty() {
        return Err(match ended {
            Ok(Err(source)) => ConnectError::SshMissing {
                program: address.ssh_program().to_string_lossy().into_owned(),
                source,
            },
            Ok(Ok(_)) => match diagnose(address, &said).await {
                Verdict::Again(problem) | Verdict::Final(problem) => problem,
            },
            Err(_) => ConnectError::Timeout {
                host: host(),
                seconds: patience.as_secs() + 5,
                stage: "asking for its key",
                said: Said::default(),
            },
        });
    }
    let file = known_hosts(address)
        .await
        .unwrap_or_else(|| default_file.to_owned());
    let recorded = std::fs::read_to_string(&file).unwrap_or_default();
    let mut known = true;
    let mut changed = None;
    for line in lines.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, kind, key, ..] = words.as_slice() else {
            continue;
        };
        let of_host = recorded_keys(&file, name, &recorded).await;
        let same_kind = of_host.iter().find(|(own, _)| own == kind);
        match same_kind {
            Some((_, own)) if own == key => {}
            Some(_) => {
                known = false;
                changed = Some(format!(
                    "shows another {kind} key than the one in {}; if the host was rebuilt, remove the old one with `ssh-keygen -R '{name}' -f {}` and enroll it again",
                    file.display(),
                    file.display()
                ));
            }
            None => known = false,
        }
    }
    let fingerprints = fingerprints(&lines).await;
    Ok(Scan {
        lines,
        fingerprints,
        file,
        known,
        changed,
    })
}

/// The file that ssh would record the key in, by the host's own options or the user's configuration.
async fn known_hosts(address: &Address) -> Option<PathBuf> {
    let mut command = Command::new(address.ssh_program());
    command.arg("-G").args(address.ssh_args(&[]));
    command
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let output = timeout(Duration::from_secs(10), command.output())
        .await
        .ok()?
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix("userknownhostsfile "))?;
    // ssh prints several files in a row and quotes none of them.
    let first = value.split(" /").next()?.split(" ~").next()?.trim();
    // Without a home ssh leaves the tilde; and what goes to /dev/null is not recorded.
    (first.starts_with('/') && first != "/dev/null").then(|| PathBuf::from(first))
}

/// The keys recorded for a name, hashed names among them.
async fn recorded_keys(file: &Path, name: &str, recorded: &str) -> Vec<(String, String)> {
    if recorded.is_empty() {
        return Vec::new();
    }
    let mut command = Command::new("ssh-keygen");
    command
        .arg("-F")
        .arg(name)
        .arg("-f")
        .arg(file)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let Ok(Ok(output)) = timeout(Duration::from_secs(10), command.output()).await else {
        return Vec::new();
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let keys = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let mut words = line.split_whitespace().skip(1);
            Some((words.next()?.to_owned(), words.next()?.to_owned()))
        });
    keys.collect()
}

impl Scan {
    /// The keys' fingerprints, `ED25519 SHA256:…`.
    #[must_use]
    pub fn fingerprints(&self) -> &[String] {
        &self.fingerprints
    }

    /// Whether all of them are recorded.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.known
    }

    /// What is wrong, where another key is recorded.
    #[must_use]
    pub fn changed(&self) -> Option<&str> {
        self.changed.as_deref()
    }

    /// Records the keys; returns the file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn record(&self) -> std::io::Result<&Path> {
        if let Some(dir) = self.file.parent() {
            std::fs::DirBuilder::new()
                .mode(0o700)
                .recursive(true)
                .create(dir)?;
        }
        let last = std::fs::read(&self.file)
            .ok()
            .and_then(|bytes| bytes.last().copied());
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(&self.file)?;
        // A last line without its end would swallow the new key.
        let gap = if last.is_some_and(|byte| byte != b'\n') {
            "\n"
        } else {
            ""
        };
        file.write_all(format!("{gap}{}", self.lines).as_bytes())?;
        file.sync_all()?;
        Ok(&self.file)
    }
}
