use serde::{Deserialize, Serialize};

use crate::DigestKey;

/// Contents up to this many bytes travel inside an effect, so that the controller can draw the
/// diff; larger ones are told apart by hash and size alone.
pub const INLINE_LIMIT: usize = 128 << 10;

/// Stands before the digest of a text that is not shown.
const CONCEALED: &str = "concealed-";

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
    /// A user's or a group's lines in the host's databases (`/etc/passwd` and its like).
    Account {
        /// Which one: `user ann`, `group www`.
        account: String,
        /// Its lines that change.
        lines: Vec<AccountLine>,
    },
    /// A setting that a tool of the host keeps, and that one value says.
    Setting {
        /// Who keeps it.
        kind: SettingKind,
        /// The setting's own name.
        name: String,
        /// The value now; empty where there is none.
        before: String,
        /// The value wanted; empty for none.
        after: String,
    },
}

/// One line of a database of accounts, told by its first field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountLine {
    /// The database, `/etc/passwd`.
    pub path: String,
    /// The line without its end; none where there is none.
    pub before: Option<String>,
    /// The line that will be; none for none.
    pub after: Option<String>,
}

/// Who keeps a [`What::Setting`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SettingKind {
    /// `update-alternatives`: the name of a link group, and the path that is chosen or `auto`.
    Alternative,
    /// `dpkg --set-selections`: a package, and `install`, `hold`, `deinstall` or `purge`.
    Selection,
    /// `debconf`: a package and a question, and the answer's type and text.
    Debconf,
    /// The kernel's modules: a name, and `loaded` with parameters.
    KernelModule,
    /// The kernel's mounts: a mount point, and its source, type and options.
    Mount,
    /// `iptables`: a program, a table and a rule, and where it stands (`present` or a number).
    FirewallRule,
    /// `iptables`: a program, a table and a chain, and its policy.
    FirewallPolicy,
    /// SELinux: a boolean, and `on` or `off`.
    SelinuxBoolean,
    /// SELinux: its mode, `enforcing` or `permissive`.
    SelinuxMode,
    /// Git: a directory, and the commit that is checked out in it.
    Checkout,
    /// A file system: a path, and the times of its last change and access (`mtime=now atime=1644329640.5`).
    Times,
    /// A file system: a path, and the letters of its attributes, as `lsattr` shows them.
    Attributes,
    /// SELinux: a path, and its label.
    Label,
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
            What::Account { account, lines } => {
                let whole = |gone: fn(&AccountLine) -> bool| {
                    lines.iter().any(|line| {
                        gone(line) && matches!(line.path.as_str(), "/etc/passwd" | "/etc/group")
                    })
                };
                if whole(|line| line.after.is_none()) {
                    format!("remove {account}")
                } else if whole(|line| line.before.is_none()) {
                    format!("create {account}")
                } else {
                    account.clone()
                }
            }
            What::Setting { kind, name, .. } => format!("{kind} {name}"),
        }
    }

    /// A digest of what the effect does, equal for the same change and different for any other:
    /// what an apply compares with its plan before it writes.
    #[must_use]
    pub fn digest(&self) -> String {
        self.digest_as(self.assumed)
    }

    /// Whether a plan that showed the effects with these digests has shown this one: the very change, or, where
    /// the plan could only assume what is there now, the same outcome. Digests of secrets are compared with their key.
    #[must_use]
    pub fn is_among(&self, planned: &[String], key: Option<&DigestKey>) -> bool {
        [false, true]
            .map(|assumed| self.digest_as(assumed))
            .iter()
            .any(|digest| {
                planned.contains(digest)
                    || key.is_some_and(|key| planned.contains(&key.digest(digest)))
            })
    }

    fn digest_as(&self, assumed: bool) -> String {
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
            What::Setting { before, after, .. } => {
                if assumed {
                    before.clear();
                }
                if self.secret {
                    conceal(before);
                    conceal(after);
                }
            }
            What::Account { lines, .. } => {
                for line in lines {
                    line.conceal(assumed);
                }
            }
            What::Sysctl { .. } | What::Package { .. } | What::Command { .. } => {}
        }
        sha256(&postcard::to_allocvec(&(assumed, bare)).unwrap_or_default())
    }

    /// Takes out what must not leave the host: the contents and values of a secret effect, and passwords of any.
    /// The digest stays what it was.
    pub fn conceal(&mut self) {
        match &mut self.what {
            What::File { before, after, .. } if self.secret => {
                before.forget_bytes();
                after.forget_bytes();
            }
            What::Setting { before, after, .. } if self.secret => {
                conceal(before);
                conceal(after);
            }
            What::Account { lines, .. } => {
                let secret = lines.iter_mut().filter(|line| line.secret());
                secret.for_each(|line| line.conceal(self.assumed));
            }
            _ => {}
        }
    }
}

impl Effect {
    /// Drops inline contents.
    pub fn forget_bytes(&mut self) {
        if let What::File { before, after, .. } = &mut self.what {
            before.forget_bytes();
            after.forget_bytes();
        }
    }

    /// The same with keyed hashes in the place of those of its contents.
    #[must_use]
    pub fn keyed(&self, key: &DigestKey) -> Self {
        let mut keyed = self.clone();
        if let What::File { before, after, .. } = &mut keyed.what {
            for entry in [before, after] {
                if let Entry::File(_, content) = entry {
                    content.sha256 = key.digest(&content.sha256);
                }
            }
        }
        keyed
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

impl AccountLine {
    /// Whether it holds passwords, even if only what they were turned into.
    #[must_use]
    pub fn secret(&self) -> bool {
        self.path.ends_with("shadow")
    }

    /// Leaves what the line does and not what it says: a digest in the place of passwords. Also drops what is another
    /// thing each day (when a password was set) and, where what is there was only assumed, the numbers, for they are
    /// the next free ones.
    fn conceal(&mut self, assumed: bool) {
        if assumed {
            self.before = None;
        }
        let (secret, dated) = (self.secret(), self.path == "/etc/shadow");
        for line in [&mut self.before, &mut self.after].into_iter().flatten() {
            let kept: Vec<&str> = line
                .split(':')
                .enumerate()
                .map(|(at, field)| {
                    let number = !field.is_empty() && field.bytes().all(|c| c.is_ascii_digit());
                    match number && (assumed || dated && at == 2) {
                        true => "",
                        false => field,
                    }
                })
                .collect();
            let (name, rest) = (kept[0], kept[1..].join(":"));
            *line = match secret && !rest.starts_with(CONCEALED) {
                true => format!("{name}:{CONCEALED}{}", sha256(rest.as_bytes())),
                false => kept.join(":"),
            };
        }
    }
}

/// What a text that must not be shown is replaced by: the same for the same text.
fn conceal(text: &mut String) {
    if !text.is_empty() && !text.starts_with(CONCEALED) {
        *text = format!("{CONCEALED}{}", sha256(text.as_bytes()));
    }
}

fn sha256(bytes: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

impl std::fmt::Display for SettingKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Alternative => "alternative",
            Self::Selection => "selection of package",
            Self::Debconf => "debconf",
            Self::KernelModule => "kernel module",
            Self::Mount => "mount",
            Self::FirewallRule => "firewall rule",
            Self::FirewallPolicy => "firewall policy",
            Self::SelinuxBoolean => "selinux boolean",
            Self::SelinuxMode => "selinux mode",
            Self::Checkout => "checkout",
            Self::Times => "times of",
            Self::Attributes => "attributes of",
            Self::Label => "label of",
        })
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
        assert!(found.is_among(&[set("4096", "8192", false).digest()], None));
        assert!(!found.is_among(&[set("128", "8192", false).digest()], None));
        assert!(found.is_among(&[set("128", "8192", true).digest()], None));
        assert!(!found.is_among(&[set("128", "16384", true).digest()], None));
        assert!(!found.is_among(&[], None));
    }

    #[test]
    fn an_account_is_the_planned_one_on_another_day_and_not_with_another_number() {
        let effect = |passwd: &str, shadow: &str, assumed| Effect {
            what: What::Account {
                account: "user ann".into(),
                lines: [("/etc/passwd", passwd), ("/etc/shadow", shadow)]
                    .map(|(path, line)| AccountLine {
                        path: path.into(),
                        before: None,
                        after: Some(line.into()),
                    })
                    .into(),
            },
            undo: UndoClass::Exact,
            assumed,
            secret: false,
        };
        let planned = effect(
            "ann:x:1000:1000::/home/ann:/bin/sh",
            "ann:!:20000:0:99999:7:::",
            false,
        );
        assert_eq!(planned.summary(), "create user ann");
        let next_day = effect(
            "ann:x:1000:1000::/home/ann:/bin/sh",
            "ann:!:20001:0:99999:7:::",
            false,
        );
        assert!(next_day.is_among(&[planned.digest()], None));
        let other = effect(
            "ann:x:1001:1001::/home/ann:/bin/sh",
            "ann:!:20000:0:99999:7:::",
            false,
        );
        assert!(!other.is_among(&[planned.digest()], None));
        let assumed = effect(
            "ann:x:1000:1000::/home/ann:/bin/sh",
            "ann:!:20000:0:99999:7:::",
            true,
        );
        assert!(other.is_among(&[assumed.digest()], None));
        let mut told = planned.clone();
        told.conceal();
        assert_eq!(told.digest(), planned.digest());
        assert!(!format!("{told:?}").contains("20000"), "{told:?}");
    }
}
