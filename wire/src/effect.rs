use serde::{Deserialize, Serialize};

/// Contents up to this many bytes travel inside an effect, so that the controller can draw the
/// diff; larger ones are told apart by hash and size alone.
pub const INLINE_LIMIT: usize = 128 << 10;

/// One change to a host, with its before and its after: the thing that a plan lists, a diff draws,
/// a journal records and an undo inverts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effect {
    /// What changes.
    pub what: What,
    /// How well it can be taken back.
    pub undo: UndoClass,
    /// The before was not read after an open effect (a command, a package) that may have changed
    /// it: planned as the host is now, and checked again at apply.
    pub assumed: bool,
    /// Contents and values of this effect must not be shown.
    pub secret: bool,
}

/// What an effect changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// A file, directory or symbolic link: created, replaced, removed, or its owner or mode set.
    File {
        /// The absolute path.
        path: String,
        /// What is there now.
        before: Entry,
        /// What will be there.
        after: Entry,
    },
    /// A kernel parameter's live value (its file is a [`What::File`]).
    Sysctl {
        /// The key with dots, `net.core.somaxconn`.
        key: String,
        /// The live value, white space folded.
        before: String,
        /// The wanted value, white space folded.
        after: String,
    },
    /// A systemd unit is started, stopped, reloaded, enabled, …
    Unit {
        /// The unit with its suffix, `nginx.service`.
        unit: String,
        /// What is done to it.
        action: UnitAction,
        /// Its state before, in systemd's words (`active`, `disabled`).
        before: String,
        /// Its state after.
        after: String,
    },
    /// A package is installed, upgraded or removed.
    Package {
        /// The package's name.
        name: String,
        /// The version that is installed; none where it is absent.
        before: Option<String>,
        /// The version that will be; none where it will be absent, `latest` where it is not known yet.
        after: Option<String>,
    },
    /// A command whose effects cannot be known before it has run.
    Command {
        /// The command as a person would type it.
        line: String,
    },
}

/// How well an effect can be taken back. The order is from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UndoClass {
    /// Byte for byte: content, owner, mode, links, live values, enabled or not.
    Exact,
    /// By the opposite action: start and stop, a package that this run added.
    Inverse,
    /// As well as can be: a package's upgrade.
    BestEffort,
    /// By a command that the user declared.
    Declared,
    /// Not at all: a bare command.
    None,
}

/// A file system entry, as it is or as it will be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Entry {
    /// Nothing is there.
    Absent,
    /// A regular file.
    File(Meta, Content),
    /// A directory.
    Dir(Meta),
    /// A symbolic link and what it points to.
    Link(String),
    /// Anything else: a device, a socket, a pipe.
    Special,
}

/// Mode and owners. Owners are names where the host knows one, else the number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// Permission bits with setuid, setgid and sticky: `0o7777` at most.
    pub mode: u32,
    /// The owning user.
    pub owner: String,
    /// The owning group.
    pub group: String,
}

/// A file's content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// SHA-256, lower-case hex.
    pub sha256: String,
    /// Size in bytes.
    pub size: u64,
    /// The bytes, up to [`INLINE_LIMIT`]. Never kept in a journal.
    pub bytes: Option<Vec<u8>>,
}

/// What is done to a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnitAction {
    /// `systemctl start`
    Start,
    /// `systemctl stop`
    Stop,
    /// `systemctl restart`
    Restart,
    /// `systemctl reload`
    Reload,
    /// `systemctl enable`
    Enable,
    /// `systemctl disable`
    Disable,
    /// `systemctl mask`
    Mask,
    /// `systemctl unmask`
    Unmask,
    /// `systemctl daemon-reload`
    DaemonReload,
}

impl Effect {
    /// The effect in a few words, without contents: `file /etc/nginx/nginx.conf`, `reload nginx.service`.
    #[must_use]
    pub fn summary(&self) -> String {
        match &self.what {
            What::File {
                path,
                before,
                after,
            } => match (before, after) {
                (_, Entry::Absent) => format!("remove {path}"),
                (Entry::Absent, Entry::Dir(_)) => format!("create directory {path}"),
                (_, Entry::Dir(_)) => format!("directory {path}"),
                (_, Entry::Link(target)) => format!("link {path} -> {target}"),
                (Entry::Absent, _) => format!("create {path}"),
                _ => format!("file {path}"),
            },
            What::Sysctl { key, .. } => format!("sysctl {key}"),
            What::Unit {
                action: UnitAction::DaemonReload,
                ..
            } => "systemd daemon-reload".to_owned(),
            What::Unit { unit, action, .. } => format!("{action} {unit}"),
            What::Package {
                name, after: None, ..
            } => format!("remove package {name}"),
            What::Package { name, .. } => format!("package {name}"),
            What::Command { line } => format!("command {line}"),
        }
    }

    /// A digest of what the effect does, equal for the same change and different for any other:
    /// what an apply compares with its plan before it writes.
    #[must_use]
    pub fn digest(&self) -> String {
        self.digest_as(self.assumed)
    }

    /// Whether a plan that showed the effects with these digests has shown this one: the very change, or, where
    /// the plan could only assume what is there now, the same outcome.
    #[must_use]
    pub fn is_among(&self, planned: &[String]) -> bool {
        [false, true]
            .map(|assumed| self.digest_as(assumed))
            .iter()
            .any(|digest| planned.contains(digest))
    }

    fn digest_as(&self, assumed: bool) -> String {
        use sha2::{Digest, Sha256};
        let mut bare = self.what.clone();
        match &mut bare {
            What::File { before, after, .. } => {
                before.forget_bytes();
                after.forget_bytes();
                if assumed {
                    *before = Entry::Absent;
                }
            }
            // A unit's state moves by itself between a plan and its apply; what is done to it does not.
            What::Unit { before, after, .. } => {
                before.clear();
                after.clear();
            }
            What::Sysctl { before, .. } if assumed => before.clear(),
            What::Package { before, .. } if assumed => *before = None,
            What::Sysctl { .. } | What::Package { .. } | What::Command { .. } => {}
        }
        let bytes = postcard::to_allocvec(&(assumed, bare)).unwrap_or_default();
        Sha256::digest(bytes)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}

impl Entry {
    /// Drops inline content, for a journal or a digest.
    pub fn forget_bytes(&mut self) {
        if let Self::File(_, content) = self {
            content.bytes = None;
        }
    }
}

impl std::fmt::Display for UnitAction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Restart => "restart",
            Self::Reload => "reload",
            Self::Enable => "enable",
            Self::Disable => "disable",
            Self::Mask => "mask",
            Self::Unmask => "unmask",
            Self::DaemonReload => "daemon-reload",
        })
    }
}

impl Effect {
    /// Whether a service stops answering for a moment, or for good.
    #[must_use]
    pub fn interrupts(&self) -> bool {
        matches!(
            self.what,
            What::Unit {
                action: UnitAction::Restart | UnitAction::Stop,
                ..
            }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_effect_is_in_the_plan_when_it_is_the_very_one_or_its_before_was_assumed() {
        let set = |before: &str, after: &str, assumed| Effect {
            what: What::Sysctl {
                key: "net.core.somaxconn".into(),
                before: before.into(),
                after: after.into(),
            },
            undo: UndoClass::Exact,
            assumed,
            secret: false,
        };
        let found = set("4096", "8192", false);
        assert!(found.is_among(&[set("4096", "8192", false).digest()]));
        assert!(!found.is_among(&[set("128", "8192", false).digest()]));
        assert!(found.is_among(&[set("128", "8192", true).digest()]));
        assert!(!found.is_among(&[set("128", "16384", true).digest()]));
        assert!(!found.is_among(&[]));
    }
}
