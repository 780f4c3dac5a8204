use std::{path::PathBuf, process::ExitStatus};

use fleet_wire::FrameError;

/// Why there is no channel to a host. Every message says what was tried, what was answered, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// No connection: refused, no route, no such name, cut off.
    #[error("cannot reach {host}: {reason}{said}")]
    Unreachable {
        /// The host: its inventory name, and user, address and port in brackets.
        host: Target,
        /// What happened, in a few words.
        reason: String,
        /// What ssh said.
        said: Said,
    },
    /// The host did not answer in time.
    #[error(
        "cannot reach {host}: no answer within {seconds} s while {stage}; is it up, and is a firewall in between? \
         `--timeout` waits longer{said}"
    )]
    Timeout {
        /// The host.
        host: Target,
        /// How long was waited.
        seconds: u64,
        /// What was waited for.
        stage: &'static str,
        /// What ssh or the host said until then.
        said: Said,
    },
    /// The host refuses the user or all keys.
    #[error(
        "{host} refuses the login{keys}; check ansible_user and ansible_ssh_private_key_file, and that \
         the key is in the host's authorized_keys (fleetctl never types an ssh password){said}"
    )]
    Auth {
        /// The host.
        host: Target,
        /// Which keys were offered, as a phrase that begins with a space; may be empty.
        keys: String,
        /// What ssh said.
        said: Said,
    },
    /// The host's key, or that of a jump host before it, is not in `known_hosts`.
    #[error("{}", unknown_key(.host, .fingerprint.as_deref(), .jump.as_deref()))]
    HostKeyUnknown {
        /// The host.
        host: Target,
        /// What was shown: `ED25519 SHA256:…`.
        fingerprint: Option<String>,
        /// The jump host that it is about, if it is not the host.
        jump: Option<String>,
    },
    /// The host shows another key than the one that is known.
    #[error(
        "the host key of {host} has changed: {} is recorded{}, it shows {}; somebody may be in between. If the host \
         was rebuilt, `fleetctl host enroll {}` says how to replace the key",
        .known.as_deref().unwrap_or("another"),
        .place.as_ref().map(|p| format!(" in {p}")).unwrap_or_default(),
        .shown.as_deref().unwrap_or("a new one"), .host.name
    )]
    HostKeyChanged {
        /// The host.
        host: Target,
        /// The recorded key's fingerprint.
        known: Option<String>,
        /// Where it is recorded, `file:line`.
        place: Option<String>,
        /// The fingerprint of the key that the host shows.
        shown: Option<String>,
    },
    /// A password is wanted, and none was given.
    #[error(
        "{program} on {host} needs a password to become {user}; give it with -K (--ask-become-pass) or ansible_become_password"
    )]
    PasswordNeeded {
        /// `sudo` or `su`.
        program: &'static str,
        /// The host.
        host: Target,
        /// The user to become.
        user: String,
    },
    /// The password is not taken.
    #[error("{program} on {host} refuses the password for becoming {user}; it was tried once")]
    PasswordWrong {
        /// `sudo` or `su`.
        program: &'static str,
        /// The host.
        host: Target,
        /// The user to become.
        user: String,
    },
    /// The login user may not become that user, or the program is not there.
    #[error("{program} on {host} refuses to run as {user}: {text}")]
    BecomeDenied {
        /// `sudo` or `su`.
        program: &'static str,
        /// The host.
        host: Target,
        /// The user to become.
        user: String,
        /// The program's own words.
        text: String,
    },
    /// Every place for the helper is missing, not ours, or does not let programs run.
    #[error(
        "{host} has no place where the helper can run; tried {}. Mount one of them without noexec, or allow the \
         helper in fapolicyd or SELinux",
        .tried.join("; ")
    )]
    NoExecutablePlace {
        /// The host.
        host: Target,
        /// Each place and why it is none.
        tried: Vec<String>,
    },
    /// There is no helper for the host's architecture.
    #[error(
        "there is no helper for {arch}, which {host} is; looked for fleet-helper-{arch} in {}",
        .looked.iter().map(|d| d.display().to_string()).collect::<Vec<_>>().join(", ")
    )]
    NoHelperFor {
        /// The host.
        host: Target,
        /// What `uname -m` says there.
        arch: String,
        /// Where helpers were looked for.
        looked: Vec<PathBuf>,
    },
    /// A helper file cannot be read.
    #[error("cannot read the helper {}", .path.display())]
    HelperFile {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The helper could not be installed or started.
    #[error("cannot start the helper on {host}: {reason}{said}")]
    Helper {
        /// The host.
        host: Target,
        /// What happened.
        reason: String,
        /// What the host said.
        said: Said,
    },
    /// ssh is not installed here.
    #[error("`{program}` cannot be run on this machine; install the OpenSSH client")]
    SshMissing {
        /// What was run.
        program: String,
        /// Why it cannot be.
        source: std::io::Error,
    },
    /// ssh does not understand an option or its configuration.
    #[error("ssh does not take the options for {host}: {text}")]
    BadOption {
        /// The host.
        host: Target,
        /// ssh's own words.
        text: String,
    },
    /// The directory of the control sockets is not fit.
    #[error("the directory for ssh's control sockets, {}, {problem}", .path.display())]
    ControlDir {
        /// The directory.
        path: PathBuf,
        /// What is wrong, and what to do.
        problem: String,
    },
}

fn unknown_key(host: &Target, fingerprint: Option<&str>, jump: Option<&str>) -> String {
    let shown = fingerprint
        .map(|text| format!(" ({text})"))
        .unwrap_or_default();
    match jump {
        Some(jump) => format!(
            "the host key of {jump}{shown}, by which {} is reached, is not known; log in to it once with `ssh`, compare \
             the fingerprint with its own, and accept it",
            host.name
        ),
        None => format!(
            "the host key of {host} is not known{shown}; compare its fingerprint with the host's own, then record it with \
             `fleetctl host enroll {}`",
            host.name
        ),
    }
}

/// A host in messages: `web1 (ops@10.0.0.1:22)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The inventory name.
    pub name: String,
    /// User, address and port, as ssh resolved them where it came so far.
    pub at: String,
}

/// What ssh or a host said: a few of its last lines, control characters made visible.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said(pub Vec<String>);

impl ConnectError {
    /// The host could not be reached at all, as opposed to refusing or failing: it may be down.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. }
                | Self::Timeout { .. }
                | Self::Auth { .. }
                | Self::HostKeyUnknown { .. }
                | Self::HostKeyChanged { .. }
        )
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.name == self.at {
            f.write_str(&self.name)
        } else {
            write!(f, "{} ({})", self.name, self.at)
        }
    }
}

/// Empty, or a phrase that goes on from a message: `; it said: "…"`.
impl std::fmt::Display for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_empty() {
            return Ok(());
        }
        write!(f, "; said: {}", self.0.join(" | "))
    }
}

/// Why a channel that was open is of no more use.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// The connection is gone.
    #[error("the connection to {host} was lost{said}")]
    Lost {
        /// The host.
        host: Target,
        /// What ssh said.
        said: Said,
    },
    /// The helper ended without having been asked to.
    #[error("the helper on {host} ended ({status}){said}")]
    Died {
        /// The host.
        host: Target,
        /// How.
        status: ExitStatus,
        /// The last lines of its stderr.
        said: Said,
    },
    /// The helper was killed there, by a signal.
    #[error("the helper on {host} was killed{said}")]
    Killed {
        /// The host.
        host: Target,
        /// The last lines of its stderr.
        said: Said,
    },
    /// A frame is too large or not of this protocol.
    #[error("{host} does not speak this protocol")]
    Frame {
        /// The host.
        host: Target,
        /// What is wrong with the frame.
        source: FrameError,
    },
    /// A message of ours cannot be sent.
    #[error("a message to {host} cannot be sent")]
    Unsendable {
        /// The host.
        host: Target,
        /// Why.
        source: FrameError,
    },
}
