//! What the editors of files have in common: writing the new content back with the attributes asked for.

use std::path::{Path, PathBuf};

use fleet_wire::Entry;
use serde_json::json;

use crate::args::Mode;
use crate::host::{Fault, Host, Put, To, Validate};
use crate::module::{Report, Status};

/// What an editor was told of a file beside its content.
#[derive(Default)]
pub(super) struct Attributes<'a> {
    pub(super) mode: Option<Mode>,
    pub(super) owner: Option<&'a str>,
    pub(super) group: Option<&'a str>,
    pub(super) validate: Option<&'a str>,
}

/// Writes a file, where there is a new content or an attribute to be seen to.
pub(super) fn write(
    host: &mut Host,
    path: &Path,
    content: Option<Vec<u8>>,
    attributes: &Attributes<'_>,
) -> Result<bool, Fault> {
    if content.is_none()
        && attributes.mode.is_none()
        && attributes.owner.is_none()
        && attributes.group.is_none()
    {
        return Ok(false);
    }
    let validate = attributes.validate.filter(|_| content.is_some());
    host.put(Put {
        path: path.to_owned(),
        to: To::File {
            content: content.map(Into::into),
            mode: attributes.mode.clone(),
            owner: attributes.owner.map(str::to_owned),
            group: attributes.group.map(str::to_owned),
        },
        validate: validate.map(|command| Validate {
            command: command.to_owned(),
        }),
    })
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
