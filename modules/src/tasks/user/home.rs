//! A user's home directory: made, moved, given to another number, removed.

use std::path::{Path, PathBuf};

use super::super::accounts::Fields;
use super::{exists, passwd};
use crate::args::Mode;
use crate::host::{Entry, Fault, Host, Put, To};

/// A home directory and whose it is.
pub(super) struct Home {
    pub(super) dir: PathBuf,
    pub(super) owner: String,
    pub(super) group: String,
}

impl Home {
    pub(super) fn of(user: &Fields) -> Self {
        let field = |at: usize| user.get(at).cloned().unwrap_or_default();
        Self {
            dir: field(passwd::HOME).into(),
            owner: field(passwd::UID),
            group: field(passwd::GID),
        }
    }

    /// A directory of the user's own.
    pub(super) fn directory(&self, host: &mut Host, path: &Path, mode: u32) -> Result<bool, Fault> {
        host.put(Put {
            path: path.to_owned(),
            to: To::Dir {
                mode: Some(Mode::Octal(mode)),
                owner: Some(self.owner.clone()),
                group: Some(self.group.clone()),
            },
            validate: None,
        })
    }

    /// Makes it and fills it from a skeleton, where it is missing.
    pub(super) fn make(&self, host: &mut Host, skeleton: &Path, mode: u32) -> Result<(), Fault> {
        if !self.dir.is_absolute()
            || self.dir == Path::new("/")
            || exists(host, &host.resolve(&self.dir)?)?
        {
            return Ok(());
        }
        super::super::edited::make_parents(host, &self.dir)?;
        self.directory(host, &self.dir, mode)?;
        if exists(host, skeleton)? {
            self.fill(host, skeleton, &self.dir)?;
        }
        Ok(())
    }

    fn fill(&self, host: &mut Host, from: &Path, into: &Path) -> Result<(), Fault> {
        for name in host.list(from)?.unwrap_or_default() {
            let (source, path) = (from.join(&name), into.join(&name));
            match host.entry(&source)? {
                Entry::Dir(meta) => {
                    self.directory(host, &path, meta.mode)?;
                    self.fill(host, &source, &path)?;
                }
                Entry::File(meta, _) => {
                    let content = host.read(&source)?.unwrap_or_default();
                    host.put(Put {
                        path,
                        to: To::File {
                            content: Some(content.into()),
                            mode: Some(Mode::Octal(meta.mode)),
                            owner: Some(self.owner.clone()),
                            group: Some(self.group.clone()),
                        },
                        validate: None,
                    })?;
                }
                Entry::Link(target) => {
                    host.put(Put {
                        path,
                        to: To::Link { target },
                        validate: None,
                    })?;
                }
                Entry::Absent | Entry::Special => {}
            }
        }
        Ok(())
    }

    /// Moves all that is in it to another place.
    pub(super) fn move_to(&self, host: &mut Host, to: &Self) -> Result<(), Fault> {
        let Entry::Dir(meta) = host.entry(&self.dir)? else {
            return Ok(());
        };
        if exists(host, &to.dir)? {
            return Err(Fault::new(format!(
                "cannot move the home directory {} to {}: something is there already",
                self.dir.display(),
                to.dir.display()
            )));
        }
        super::super::edited::make_parents(host, &to.dir)?;
        to.directory(host, &to.dir, meta.mode)?;
        to.fill(host, &self.dir, &to.dir)?;
        host.put(Put::absent(&self.dir))?;
        Ok(())
    }

    /// Gives what in it belongs to one number to another.
    pub(super) fn give(&self, host: &mut Host, from: &str, to: &str) -> Result<(), Fault> {
        self.give_under(host, &self.dir, from, to)
    }

    fn give_under(&self, host: &mut Host, path: &Path, from: &str, to: &str) -> Result<(), Fault> {
        let entry = host.entry(path)?;
        let (Entry::Dir(meta) | Entry::File(meta, _)) = &entry else {
            return Ok(());
        };
        // The old number has no name any more.
        if meta.owner == from {
            let owner = Some(to.to_owned());
            let to = match entry {
                Entry::Dir(_) => To::Dir {
                    mode: None,
                    owner,
                    group: None,
                },
                _ => To::File {
                    content: None,
                    mode: None,
                    owner,
                    group: None,
                },
            };
            host.put(Put {
                path: path.to_owned(),
                to,
                validate: None,
            })?;
        }
        for name in host.list(path)?.unwrap_or_default() {
            self.give_under(host, &path.join(name), from, to)?;
        }
        Ok(())
    }

    /// Removes it with the user's mail, where it is the user's own.
    pub(super) fn remove(&self, host: &mut Host, name: &str) -> Result<(), Fault> {
        for spool in ["/var/mail", "/var/spool/mail"] {
            host.put(Put::absent(Path::new(spool).join(name)))?;
        }
        let own = match host.entry(&self.dir)? {
            // The number has no name any more; before a plan's own effects it had.
            Entry::Dir(meta) => meta.owner == self.owner || meta.owner == name,
            _ => false,
        };
        if own && self.dir.is_absolute() && self.dir.components().count() > 1 {
            host.put(Put::absent(&self.dir))?;
        }
        Ok(())
    }
}
