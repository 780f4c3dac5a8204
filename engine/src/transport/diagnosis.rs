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
        if way_failed(&lines) {
            let place = place
                .map(|place| format!(" (it is recorded in {place})"))
                .unwrap_or_default();
            return Verdict::Final(ConnectError::Unreachable {
                host: as_asked(address),
                reason: format!(
                    "the host key of its jump host has changed{place}; somebody may be in between"
                ),
                said: Said::default(),
            });
        }
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
        "Bad port",
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
    if way_failed(&lines) {
        return way(address, &lines, said);
    }
    if has("Permission denied (") || has("Too many authentication failures") {
        return Verdict::Final(ConnectError::Auth {
            host,
            keys: offered(log),
            said,
        });
    }
    if lines.iter().any(|line| line.ends_with("timed out"))
        || has("timed out during banner exchange")
    {
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
        (
            "Unable to negotiate",
            "it and this machine's ssh have no algorithm in common; allow one that it offers with `-o` in \
             ansible_ssh_common_args or in ssh_config",
        ),
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

/// Whether a jump host or a proxy command ended before the host itself was heard: ssh then knows no address of it.
fn way_failed(spoken: &[&str]) -> bool {
    spoken
        .iter()
        .any(|line| line.ends_with("by UNKNOWN port 65535"))
        && spoken
            .iter()
            .any(|line| line.starts_with("kex_exchange_identification"))
}

/// What is wrong with the way to the host, in the words of those on it.
fn way(address: &Address, spoken: &[&str], said: Said) -> Verdict {
    let ends = [
        "kex_exchange_identification",
        "Connection closed by UNKNOWN",
        "Authenticated to ",
    ];
    let (theirs, cuts): (Vec<&str>, Vec<&str>) = spoken
        .iter()
        .partition(|line| !ends.iter().any(|end| line.starts_with(end)));
    let from = theirs.len().saturating_sub(SAID_LINES);
    let error = ConnectError::Unreachable {
        host: as_asked(address),
        reason: "its jump host or proxy command gives no connection; try the same with `ssh`"
            .to_owned(),
        said: if theirs.is_empty() {
            said
        } else {
            Said(theirs[from..].iter().map(|line| readable(line)).collect())
        },
    };
    // A jump host that was cut off itself may only be busy.
    let cut_twice = cuts
        .iter()
        .filter(|line| line.starts_with("kex_exchange_identification"))
        .count()
        > 1;
    if cut_twice {
        Verdict::Again(error)
    } else {
        Verdict::Final(error)
    }
}

/// The host as it was asked for: where ssh came no further, the log is about others.
fn as_asked(address: &Address) -> Target {
    target(address, "")
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
    // Before the last login there are those to jump hosts.
    let login = log.rfind("debug1: Authenticating to ").unwrap_or(0);
    let named = |sign: &str| -> Vec<String> {
        let lines = log[login..]
            .lines()
            .filter_map(|line| line.strip_prefix(sign));
        // `/home/me/.ssh/id_ed25519 ED25519 SHA256:… agent`
        lines
            .map(|key| readable(key.split(" SHA256:").next().unwrap_or(key)))
            .collect()
    };
    if let Some(key) = named("debug1: Server accepts key: ").last() {
        return format!(
            " ({key} would do, but cannot be used: if it has a passphrase, load it first with `ssh-add`)"
        );
    }
    let keys = named("debug1: Offering public key: ");
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The message about a host `web1` at 10.0.0.5, port 2222, and whether another try is worth it.
    fn said(log: &str) -> (bool, String) {
        let address = Address {
            port: Some(2222),
            ..Address::ssh("web1", "10.0.0.5")
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        match runtime.block_on(diagnose(&address, log)) {
            Verdict::Again(problem) => (true, problem.to_string()),
            Verdict::Final(problem) => (false, problem.to_string()),
        }
    }

    // Logs of OpenSSH 9.2, without the lines that say nothing here.

    const LOGIN: &str = "OpenSSH_9.2p1 Debian-2+deb12u10, OpenSSL 3.0.19 27 Jan 2026\n\
        debug1: Connecting to 10.0.0.5 [10.0.0.5] port 2222.\n\
        debug1: Authenticating to 10.0.0.5:2222 as 'ops'\n\
        debug1: Server host key: ssh-ed25519 SHA256:qCxrF2sujmk9cs0Uj8rvtdXtvxSNuhP8fzXE+08tFJA\n";
    const JUMP: &str = "OpenSSH_9.2p1 Debian-2+deb12u10, OpenSSL 3.0.19 27 Jan 2026\n\
        debug1: Setting implicit ProxyCommand from ProxyJump: ssh -v -W '[%h]:%p' bastion\n\
        debug1: Executing proxy command: exec ssh -v -W '[10.0.0.5]:2222' bastion\n\
        OpenSSH_9.2p1 Debian-2+deb12u10, OpenSSL 3.0.19 27 Jan 2026\n\
        debug1: Connecting to 192.0.2.1 [192.0.2.1] port 22.\n";
    const JUMP_LOGIN: &str = "debug1: Authenticating to 192.0.2.1:22 as 'me'\n\
        debug1: Server host key: ssh-ed25519 SHA256:AAAArF2sujmk9cs0Uj8rvtdXtvxSNuhP8fzXE+08tFJA\n\
        debug1: Offering public key: /home/me/.ssh/jump ED25519 SHA256:3WxQnOKswK3BbGqCi4OOwL7XuTaiEOOGQ2TeSkXDlCQ explicit\n";
    const CUT: &str = "kex_exchange_identification: Connection closed by remote host\r\n\
        Connection closed by UNKNOWN port 65535\r\n";
    const DENIED: &str =
        "ops@10.0.0.5: Permission denied (publickey,password,keyboard-interactive).\r\n";

    #[test]
    fn refused_keys_are_named() {
        let log = format!(
            "{LOGIN}debug1: Offering public key: /home/me/.ssh/id_ed25519 ED25519 SHA256:3WxQnOKs agent\n\
             debug1: Offering public key: deploy RSA SHA256:8d5eZylV explicit\n{DENIED}"
        );
        let (again, text) = said(&log);
        assert!(!again);
        assert!(
            text.starts_with(
                "web1 (ops@10.0.0.5:2222) refuses the login (keys tried: /home/me/.ssh/id_ed25519 ED25519, deploy RSA); \
                 check ansible_user"
            ),
            "{text}"
        );
        assert!(text.ends_with(
            "said: ops@10.0.0.5: Permission denied (publickey,password,keyboard-interactive)."
        ));
        let text = said(&format!("{LOGIN}{DENIED}")).1;
        assert!(
            text.contains("refuses the login (no key was offered)"),
            "{text}"
        );
    }

    #[test]
    fn a_key_that_is_locked_is_not_called_refused() {
        let log = format!(
            "{LOGIN}debug1: Offering public key: locked ED25519 SHA256:/uSJu3fb explicit\n\
             debug1: Server accepts key: locked ED25519 SHA256:/uSJu3fb explicit\n{DENIED}"
        );
        let text = said(&log).1;
        assert!(
            text.contains("locked ED25519 would do, but cannot be used"),
            "{text}"
        );
        assert!(
            text.contains("`ssh-add`") && !text.contains("keys tried"),
            "{text}"
        );
    }

    #[test]
    fn the_hosts_refusal_is_told_from_that_of_its_jump_host() {
        let log =
            format!("{JUMP}{JUMP_LOGIN}me@192.0.2.1: Permission denied (publickey).\r\n{CUT}");
        assert_eq!(
            said(&log),
            (
                false,
                "cannot reach web1 (10.0.0.5:2222): its jump host or proxy command gives no connection; try the same \
                 with `ssh`; said: me@192.0.2.1: Permission denied (publickey)."
                    .to_owned()
            )
        );
        let log = format!(
            "{JUMP}{JUMP_LOGIN}Authenticated to 192.0.2.1 ([192.0.2.1]:22) using \"publickey\".\r\n\
             debug1: Authenticating to 10.0.0.5:2222 as 'ops'\n\
             debug1: Offering public key: other ED25519 SHA256:3WxQnOKs explicit\n{DENIED}Killed by signal 1.\r\n"
        );
        let text = said(&log).1;
        assert!(
            text.contains("web1 (ops@10.0.0.5:2222) refuses the login (keys tried: other ED25519)"),
            "{text}"
        );
    }

    #[test]
    fn a_way_that_ends_is_told_in_its_own_words() {
        for words in [
            "ssh: connect to host 192.0.2.1 port 22: Connection refused",
            "ssh: Could not resolve hostname bastion: Name or service not known",
            "/bin/bash: line 1: /no/such/nc: No such file or directory",
        ] {
            let (again, text) = said(&format!("{JUMP}{words}\r\n{CUT}"));
            assert!(
                !again && text.ends_with(&format!("; said: {words}")),
                "{text}"
            );
            assert!(
                text.starts_with("cannot reach web1 (10.0.0.5:2222): its jump host or proxy"),
                "{text}"
            );
        }
        let log = format!(
            "{JUMP}{JUMP_LOGIN}Authenticated to 192.0.2.1 ([192.0.2.1]:22) using \"publickey\".\r\n\
             channel 0: open failed: connect failed: Connection refused\r\nstdio forwarding failed\r\n{CUT}"
        );
        let text = said(&log).1;
        assert!(
            text.ends_with("said: channel 0: open failed: connect failed: Connection refused | stdio forwarding failed"),
            "{text}"
        );
        // A jump host that takes no more connections just now.
        let busy = "kex_exchange_identification: read: Connection reset by peer\r\n\
                    Connection reset by 192.0.2.1 port 22\r\n";
        assert!(said(&format!("{JUMP}{busy}{CUT}")).0);
    }

    #[test]
    fn unknown_keys_name_the_command_that_records_them() {
        let log = format!(
            "{LOGIN}No ED25519 host key is known for [10.0.0.5]:2222 and you have requested strict checking.\r\n\
             Host key verification failed.\r\n"
        );
        assert_eq!(
            said(&log),
            (
                false,
                "the host key of web1 (ops@10.0.0.5:2222) is not known (ED25519 \
                 SHA256:qCxrF2sujmk9cs0Uj8rvtdXtvxSNuhP8fzXE+08tFJA); compare its fingerprint with the host's own, then \
                 record it with `fleetctl host enroll web1`"
                    .to_owned()
            )
        );
    }

    #[test]
    fn changed_keys_are_told_with_their_place_and_owner() {
        let changed = "@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@\r\n\
            @    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\r\n\
            Offending ED25519 key in /nowhere/known_hosts:7\r\n\
            Host key verification failed.\r\n";
        let text = said(&format!("{LOGIN}{changed}")).1;
        assert!(
            text.contains("is recorded in /nowhere/known_hosts:7, it shows ED25519 SHA256:qCxr"),
            "{text}"
        );
        assert!(text.contains("`fleetctl host enroll web1`"), "{text}");
        let text = said(&format!("{JUMP}{JUMP_LOGIN}{changed}{CUT}")).1;
        assert!(
            text.contains("host key of its jump host has changed") && !text.contains("enroll"),
            "{text}"
        );
    }

    #[test]
    fn what_keeps_from_connecting_is_told_plainly() {
        for (words, told) in [
            (
                "ssh: connect to host 10.0.0.5 port 2222: Connection refused",
                "connection refused; is sshd running",
            ),
            (
                "ssh: Could not resolve hostname web1: Name or service not known",
                "its name does not resolve",
            ),
            (
                "ssh: connect to host 10.0.0.5 port 2222: No route to host",
                "no route to it",
            ),
            (
                "ssh: connect to host 10.0.0.5 port 2222: Connection timed out",
                "no answer within 10 s while connecting",
            ),
            (
                "Connection timed out during banner exchange\r\nConnection to 10.0.0.5 port 2222 timed out",
                "no answer within 10 s while connecting",
            ),
            (
                "Unable to negotiate with 10.0.0.5 port 2222: no matching key exchange method found. Their offer: \
                 diffie-hellman-group1-sha1",
                "Their offer: diffie-hellman-group1-sha1",
            ),
            ("Bad port '0'", "ssh does not take the options for web1"),
            (
                "command-line: line 0: Bad configuration option: nonsense",
                "ssh does not take the options for web1 (10.0.0.5:2222): command-line: line 0: Bad configuration option: \
                 nonsense",
            ),
        ] {
            let (again, text) = said(&format!("OpenSSH_9.2p1 Debian-2\n{words}\r\n"));
            assert!(!again && text.contains(told), "{text}");
        }
    }

    #[test]
    fn only_a_server_that_hangs_up_is_tried_again() {
        let log = "debug1: Connection established.\n\
            kex_exchange_identification: read: Connection reset by peer\r\nConnection reset by 10.0.0.5 port 2222\r\n";
        let (again, text) = said(log);
        assert!(again && text.contains("MaxStartups"), "{text}");
        assert!(!said("").0);
    }

    #[test]
    fn a_banner_is_no_diagnosis() {
        let banner =
            "Permission denied to all but staff. Idle logins are timed out after an hour.\r\n";
        let (again, text) = said(&format!(
            "{LOGIN}{banner}Connection closed by 10.0.0.5 port 2222\r\n"
        ));
        assert!(again && text.contains("closes the connection"), "{text}");
    }

    #[test]
    fn what_others_say_cannot_reach_the_terminal() {
        assert_eq!(
            readable("\u{1b}[2Jcleared\u{202e}"),
            "\\u{1b}[2Jcleared\\u{202e}"
        );
        assert!(readable(&"x".repeat(9000)).len() < 310);
    }
}
