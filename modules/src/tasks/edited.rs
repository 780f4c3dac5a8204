//! What all that write files have in common: the arguments for a file's attributes, and writing a content with them.

use std::path::{Path, PathBuf};

use fleet_wire::Entry;
use serde_json::{Map, json};

use super::labels::Labels;
use crate::args::Mode;
use crate::host::{Fault, Host, Put, To, Validate};
use crate::module::{Report, Status};

/// What a writer of files was told of a file beside its content.
#[derive(Clone, Default)]
pub(super) struct Attributes<'a> {
    pub(super) mode: Option<Mode>,
    pub(super) owner: Option<&'a str>,
    pub(super) group: Option<&'a str>,
    pub(super) validate: Option<&'a str>,
    pub(super) labels: Labels<'a>,
}

/// Adds the arguments for a file's attributes to a module's struct, and a function that gives them.
macro_rules! with_attributes {
    ($(#[$meta:meta])* struct $name:ident { $($fields:tt)* }) => {
        $(#[$meta])*
        #[derive(Debug, serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(deny_unknown_fields)]
        struct $name {
            $($fields)*
            /// The permissions: `"0644"`, or `u=rw,g=r,o=r`.
            mode: Option<crate::args::Mode>,
            /// The owning user, a name or a number.
            owner: Option<crate::args::Text>,
            /// The owning group, a name or a number.
            group: Option<crate::args::Text>,
            /// The file system's own attributes, as `chattr` takes them: `+i`, `-a`, `=e`.
            attributes: Option<crate::args::Text>,
            /// The user of the SELinux label. Ignored where there is no SELinux.
            seuser: Option<crate::args::Text>,
            /// The role of the SELinux label. Ignored where there is no SELinux.
            serole: Option<crate::args::Text>,
            /// The type of the SELinux label. Ignored where there is no SELinux.
            setype: Option<crate::args::Text>,
            /// The level of the SELinux label. Ignored where there is no SELinux.
            selevel: Option<crate::args::Text>,
            /// Taken for Ansible's sake: a file is always replaced as a whole.
            #[serde(default, rename = "unsafe_writes")]
            _unsafe_writes: Option<crate::args::Bool>,
        }

        impl $name {
            /// The attributes asked for, without a validator.
            fn attributes(&self) -> $crate::tasks::edited::Attributes<'_> {
                $crate::tasks::edited::Attributes {
                    mode: self.mode.clone(),
                    owner: self.owner.as_deref(),
                    group: self.group.as_deref(),
                    validate: None,
                    labels: $crate::tasks::labels::Labels {
                        attributes: self.attributes.as_deref(),
                        user: self.seuser.as_deref(),
                        role: self.serole.as_deref(),
                        kind: self.setype.as_deref(),
                        level: self.selevel.as_deref(),
                    },
                }
            }
        }
    };
}
pub(super) use with_attributes;

/// What of a file was changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Saved {
    pub(super) content: bool,
    pub(super) attributes: bool,
}

impl<'a> Attributes<'a> {
    pub(super) fn validated(mut self, validate: Option<&'a str>) -> Self {
        self.validate = validate;
        self
    }

    fn are_default(&self) -> bool {
        self.mode.is_none()
            && self.owner.is_none()
            && self.group.is_none()
            && self.labels == Labels::default()
    }
}

impl Saved {
    /// Whether anything was changed.
    pub(super) fn any(self) -> bool {
        self.content || self.attributes
    }

    /// What was done, in Ansible's words.
    pub(super) fn message(self, content: &str) -> String {
        const ATTRIBUTES: &str = "ownership, perms or SE linux context changed";
        match (content.is_empty(), self.attributes) {
            (_, false) => content.to_owned(),
            (true, true) => ATTRIBUTES.to_owned(),
            (false, true) => format!("{content} and {ATTRIBUTES}"),
        }
    }
}

/// Writes a file, where there is a new content or an attribute to be seen to.
pub(super) fn write(
    host: &mut Host,
    path: &Path,
    content: Option<Vec<u8>>,
    attributes: &Attributes<'_>,
) -> Result<Saved, Fault> {
    if content.is_none() && attributes.are_default() {
        return Ok(Saved::default());
    }
    let validate = attributes.validate.filter(|_| content.is_some());
    let before = host.entry(path)?;
    let changes = content.is_some();
    let to = match (&before, changes) {
        (Entry::Dir(_), false) => To::Dir {
            mode: attributes.mode.clone(),
            owner: attributes.owner.map(str::to_owned),
            group: attributes.group.map(str::to_owned),
        },
        _ => To::File {
            content: content.map(Into::into),
            mode: attributes.mode.clone(),
            owner: attributes.owner.map(str::to_owned),
            group: attributes.group.map(str::to_owned),
        },
    };
    let put = host.put(Put {
        path: path.to_owned(),
        to,
        validate: validate.map(|command| Validate {
            command: command.to_owned(),
        }),
    })?;
    let after = host.entry(path)?;
    let labelled = attributes.labels.set(host, path)?;
    let (content, attributes) = match (&before, &after) {
        (Entry::File(old, was), Entry::File(new, is)) => (was.sha256 != is.sha256, old != new),
        _ => (put && changes, put && !changes),
    };
    Ok(Saved {
        content,
        attributes: attributes || labelled,
    })
}

/// Refuses a validator that is not shown the new file.
pub(super) fn check_validate(validate: Option<&str>) -> Result<(), Fault> {
    match validate {
        Some(command) if !command.contains("%s") => {
            Err(Fault::new(format!("validate must contain %s: {command}")))
        }
        _ => Ok(()),
    }
}

/// Says in a report where the run keeps the file as it was.
pub(super) fn tell_backup(
    host: &Host,
    path: &Path,
    field: &str,
    report: &mut Map<String, serde_json::Value>,
) {
    if let Some(kept) = host.backup_of(path) {
        report.insert(field.to_owned(), kept.to_string_lossy().into());
    }
}

/// Makes the directories above a path that are not there.
pub(super) fn make_parents(host: &mut Host, path: &Path) -> Result<(), Fault> {
    let mut missing: Vec<PathBuf> = Vec::new();
    for parent in path.ancestors().skip(1) {
        if host.entry(&host.resolve(parent)?)? != Entry::Absent {
            break;
        }
        missing.push(parent.to_owned());
    }
    for dir in missing.into_iter().rev() {
        host.put(Put {
            path: dir,
            to: To::Dir {
                mode: None,
                owner: None,
                group: None,
            },
            validate: None,
        })?;
    }
    Ok(())
}

/// A file that is not there, but may be once a command or a package before has done its work.
pub(super) fn unknown(path: &Path) -> Report {
    let message = format!(
        "{} does not exist yet: what is before it may make it",
        path.display()
    );
    Report::of(json!({"msg": message})).with_status(Status::Unknown)
}
