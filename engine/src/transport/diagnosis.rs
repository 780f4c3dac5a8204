//! From what ssh wrote into its log to a [`ConnectError`].

use std::{process::Stdio, time::Duration};

use tokio::process::Command;

use super::{
    Address,
    error::{ConnectError, Said, Target},
};

/// How many lines and characters of foreign text a message carries at most.
const SAID_LINES: usize = 4;
const SAID_CHARS: usize = 300;

/// What came of an attempt to start a master.
pub(crate) enum Verdict {
    /// The server was too busy, or the line was cut: worth another try.
    Again(ConnectError),
    /// Another try would end the same, or do harm (locked accounts, penalties).
    Final(ConnectError),
}

/// Reads the log of an ssh that ended without a connection.
pub(crate) async fn diagnose(address: &Address, log: &str) -> Verdict {
    let host = target(address, log);
    let lines: Vec<&str> = spoken(log).collect();
    let has = |text: &str| lines.iter().any(|line| line.contains(text));
    let line_with = |text: &str| lines.iter().find(|line| line.contains(text)).copied();
    let said = said_by(log);

    if has("REMOTE HOST IDENTIFICATION HAS CHANGED") {
        let place = lines
            .iter()
            .find_map(|line| line.strip_prefix("Offending ")?.split_once(" key in "))
            .map(|(_, place)| readable(place));
        let known = match &place {
            Some(place) => recorded_fingerprint(place).await,
            None => None,
        };
        return Verdict::Final(ConnectError::HostKeyChanged {
            host,
            known,
            place,
            shown: shown_fingerprint(log),
        });
    }
    if has("host key is known for") || has("Host key verification failed") {
        return Verdict::Final(ConnectError::HostKeyUnknown {
            host,
            fingerprint: shown_fingerprint(log),
            jump: failed_jump(log, &lines),
        });
    }
    for sign in [
        "Bad configuration option",
        "unknown option",
        "illegal option",
        "usage: ssh",
        "bad configuration options",
        ": keyword ",
        "Bad SSH2",
        "Bad owner or permissions",
        "invalid characters",
    ] {
        if let Some(line) = line_with(sign) {
            return Verdict::Final(ConnectError::BadOption {
                host,
                text: readable(line),
            });
        }
    }
    if has("Permission denied") || has("Too many authentication failures") {
        return Verdict::Final(ConnectError::Auth {
            host,
            keys: offered(log),
            said,
        });
    }
    if has("timed out") {
        return Verdict::Final(ConnectError::Timeout {
            host,
            seconds: address.timeout.as_secs(),
            stage: "connecting",
            said: Said::default(),
        });
    }
    let plain = [
        (
            "Connection refused",
            "connection refused; is sshd running there, on this port?",
        ),
        (
            "Could not resolve hostname",
            "its name does not resolve; check ansible_host",
        ),
        ("No route to host", "no route to it"),
        ("Network is unreachable", "no route to its network"),
    ];
    for (sign, reason) in plain {
        if has(sign) {
            return Verdict::Final(ConnectError::Unreachable {
                host,
                reason: reason.to_owned(),
                said,
            });
        }
    }
    let busy = [
        "kex_exchange_identification",
        "Connection reset",
        "Connection closed by",
        "Broken pipe",
        "Exceeded MaxStartups",
        "Not allowed at this time",
    ];
    let error = ConnectError::Unreachable {
        host,
        reason: "ssh could not connect".to_owned(),
        said,
    };
    if busy.iter().any(|sign| has(sign)) {
        Verdict::Again(match error {
            ConnectError::Unreachable { host, said, .. } => ConnectError::Unreachable {
                host,
                reason: "the server closes the connection before the login (is it overloaded? see MaxStartups in its \
                         sshd_config)"
                    .to_owned(),
                said,
            },
            other => other,
        })
    } else {
        Verdict::Final(error)
    }
}

/// The host with what ssh resolved, `Authenticating to 10.0.0.1:22 as 'ops'`, or else as it was asked for.
pub(crate) fn target(address: &Address, log: &str) -> Target {
    let resolved = log.lines().rev().find_map(|line| {
        let (place, user) = line
            .strip_prefix("debug1: Authenticating to ")?
            .split_once(" as '")?;
        Some(format!(
            "{}@{place}",
            user.trim_end().trim_end_matches('\'')
        ))
    });
    Target {
        name: address.name.clone(),
        at: resolved.map_or_else(|| address.to_string(), |at| readable(&at)),
    }
}

/// The last lines that ssh, a jump host or a proxy command wrote for people.
pub(crate) fn said_by(log: &str) -> Said {
    let lines: Vec<&str> = spoken(log).collect();
    let from = lines.len().saturating_sub(SAID_LINES);
    Said(lines[from..].iter().map(|line| readable(line)).collect())
}

/// Text from elsewhere, fit to be shown: one line, not long, control characters escaped.
pub(crate) fn readable(text: &str) -> String {
    let mut out = String::new();
    for c in text.trim().chars() {
        if out.len() >= SAID_CHARS {
            out.push('…');
            break;
        }
        // Escapes and direction marks could rewrite what the terminal shows.
        if c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// Lines that are not ssh's own debugging.
fn spoken(log: &str) -> impl Iterator<Item = &str> {
    log.lines().map(str::trim).filter(|line| {
        !line.is_empty() && !line.starts_with("debug") && !line.starts_with("OpenSSH_")
    })
}

/// `ED25519 SHA256:…`, as the server showed it last.
fn shown_fingerprint(log: &str) -> Option<String> {
    let key = log
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("debug1: Server host key: "))?;
    let (kind, fingerprint) = key.trim().split_once(' ')?;
    let kind = kind.trim_start_matches("ssh-").to_uppercase();
    Some(readable(&format!("{kind} {fingerprint}")))
}

/// The jump host whose key is not known, where it is not the host's own: `ProxyJump` hosts are checked first.
fn failed_jump(log: &str, spoken: &[&str]) -> Option<String> {
    let count = |sign: &str| log.lines().filter(|line| line.starts_with(sign)).count();
    let jumps = count("debug1: Setting implicit ProxyCommand from ProxyJump");
    if count("debug1: Server host key: ") > jumps {
        return None;
    }
    let line = spoken
        .iter()
        .find_map(|line| line.split_once("host key is known for "))?;
    Some(readable(line.1.split(" and ").next().unwrap_or(line.1)))
}

/// Which keys were offered and refused, as a phrase.
fn offered(log: &str) -> String {
    let keys: Vec<String> = log
        .lines()
        .filter_map(|line| line.strip_prefix("debug1: Offering public key: "))
        // `/home/me/.ssh/id_ed25519 ED25519 SHA256:… agent`
        .map(|key| readable(key.split(" SHA256:").next().unwrap_or(key)))
        .collect();
    if keys.is_empty() {
        " (no key was offered)".to_owned()
    } else {
        format!(" (keys tried: {})", keys.join(", "))
    }
}

/// The fingerprint of line N of a `known_hosts` file, given as `file:N`.
async fn recorded_fingerprint(place: &str) -> Option<String> {
    let (file, number) = place.rsplit_once(':')?;
    let number: usize = number.parse().ok()?;
    let text = tokio::fs::read_to_string(file).await.ok()?;
    let line = text.lines().nth(number.checked_sub(1)?)?;
    fingerprints(line).await.into_iter().next()
}

/// The fingerprints of `known_hosts` lines: `ED25519 SHA256:…` each.
pub(crate) async fn fingerprints(lines: &str) -> Vec<String> {
    let Ok(file) = private_file(lines).await else {
        return Vec::new();
    };
    let output = Command::new("ssh-keygen")
        .arg("-lf")
        .arg(file.path())
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .output();
    let Ok(Ok(output)) = tokio::time::timeout(Duration::from_secs(10), output).await else {
        return Vec::new();
    };
    // `256 SHA256:… web1 (ED25519)`
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ');
            let fingerprint = words.nth(1)?;
            let kind = words.next_back()?.trim_matches(['(', ')']);
            Some(format!("{kind} {fingerprint}"))
        })
        .collect()
}

/// A file with this text that only this user can read, gone with its handle.
async fn private_file(text: &str) -> std::io::Result<tempfile::NamedTempFile> {
    let text = text.to_owned();
    let written = tokio::task::spawn_blocking(move || {
        let mut file = tempfile::NamedTempFile::new()?;
        std::io::Write::write_all(&mut file, text.as_bytes())?;
        Ok(file)
    });
    written.await.map_err(std::io::Error::other)?
}
