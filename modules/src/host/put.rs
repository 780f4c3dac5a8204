use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use fleet_wire::{UndoClass, What};
use rustix::fs::Access;

use super::files::{self, Attributes, Found, Kind, Place, Refused};
use super::reading::same;
use super::users::acting;
use super::{Body, Entry, Fault, Host, Meta};
use crate::args::Mode;

/// A file system entry that is wanted.
#[derive(Clone, Debug)]
pub struct Put {
    /// Where, absolute. A link at its end is replaced, never followed: see [`super::Host::resolve`].
    pub path: PathBuf,
    /// What is wanted there.
    pub to: To,
    /// A command that must accept a file's new content before it is put in place.
    pub validate: Option<Validate>,
}

/// What is wanted at a path.
#[derive(Clone, Debug)]
pub enum To {
    /// A regular file.
    File {
        /// Its content; none to keep what is there.
        content: Option<Body>,
        /// Its mode; none to keep it, 0644 where the file is new.
        mode: Option<Mode>,
        /// The owning user, a name or a number; none to keep it.
        owner: Option<String>,
        /// The owning group, a name or a number; none to keep it.
        group: Option<String>,
    },
    /// A directory.
    Dir {
        /// Its mode; none to keep it, 0755 where it is new.
        mode: Option<Mode>,
        /// The owning user, a name or a number; none to keep it.
        owner: Option<String>,
        /// The owning group, a name or a number; none to keep it.
        group: Option<String>,
    },
    /// A symbolic link.
    Link {
        /// What it points to, as it is written in the link.
        target: String,
    },
    /// Nothing: a directory goes with all that is in it.
    Absent,
}

/// A command that must accept a file before it is put in place.
///
/// With `%s` in it the command gets the staged file's path. Without, it runs where the whole
/// configuration tree around the file (`/etc/nginx`) is staged under its real path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validate {
    /// The command line, split into words as a shell would, but run without one.
    pub command: String,
}

impl Put {
    /// A file with this content; mode and owners are kept, or usual where it is new.
    #[must_use]
    pub fn content(path: impl Into<PathBuf>, content: impl Into<Body>) -> Self {
        let to = To::File {
            content: Some(content.into()),
            mode: None,
            owner: None,
            group: None,
        };
        Self {
            path: path.into(),
            to,
            validate: None,
        }
    }

    /// Nothing at the path.
    #[must_use]
    pub fn absent(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            to: To::Absent,
            validate: None,
        }
    }
}

/// An entry as it will be, with the numbers and the content to make it.
struct Wanted {
    entry: Entry,
    attributes: Attributes,
    body: Option<Body>,
}

impl Host {
    /// Brings a path to what is wanted; true where something changes. Its parent must exist.
    ///
    /// # Errors
    /// When something else is in the way, the parent is missing, the validator refuses, or the system does.
    pub fn put(&mut self, put: Put) -> Result<bool, Fault> {
        let place = self.place(&put.path)?;
        if matches!(put.to, To::Absent) {
            return self.remove(&place);
        }
        let (before, found) = self.look(&place)?;
        let wanted = self.wanted(&place, &before, &put.to)?;
        if same(&before, &wanted.entry) {
            return Ok(false);
        }
        let assumed = before == Entry::Absent && !self.parent_exists(&place)?;
        self.change(
            &place,
            before,
            found,
            wanted,
            put.validate.as_ref(),
            assumed,
        )?;
        Ok(true)
    }

    /// The same with the time of its last change, which a content that is there already keeps.
    ///
    /// # Errors
    /// As [`Host::put`].
    pub fn put_dated(&mut self, put: Put, modified: (i64, i64)) -> Result<bool, Fault> {
        self.task.dated = Some(modified);
        let done = self.put(put);
        self.task.dated = None;
        done
    }

    /// Removes what is at a place, what is in it first.
    fn remove(&mut self, place: &Path) -> Result<bool, Fault> {
        let (before, found) = self.look(place)?;
        if before == Entry::Absent {
            return Ok(false);
        }
        if place.parent().is_none() {
            return Err(Fault::new("/ cannot be removed"));
        }
        if matches!(before, Entry::Dir(_)) {
            for name in self.list(place)?.unwrap_or_default() {
                self.remove(&place.join(name))?;
            }
        }
        let attributes = Attributes {
            mode: 0,
            uid: 0,
            gid: 0,
        };
        let wanted = Wanted {
            entry: Entry::Absent,
            attributes,
            body: None,
        };
        self.change(place, before, found, wanted, None, false)?;
        Ok(true)
    }

    fn change(
        &mut self,
        place: &Path,
        before: Entry,
        found: Option<Found>,
        wanted: Wanted,
        validate: Option<&Validate>,
        assumed: bool,
    ) -> Result<(), Fault> {
        let undo = if before == Entry::Special {
            UndoClass::None
        } else {
            UndoClass::Exact
        };
        let assumed = assumed || self.open() && !self.overlay.defines(place);
        let path = text(place)?;
        let what = What::File {
            path,
            before: before.clone(),
            after: wanted.entry.clone(),
        };
        let effect = self.effect(what, undo, assumed);
        let validate = validate.filter(|_| wanted.body.is_some());
        let size = match &wanted.entry {
            Entry::File(_, content) if wanted.body.is_some() => Some(content.size),
            _ => None,
        };
        if !self.overlay.defines(place) {
            self.preflight(place, &before, size)?;
        }
        if self.recording {
            let in_place = wanted.body.is_none() && same_kind(&before, &wanted.entry);
            if !in_place && !assumed {
                self.writable(place)?;
            }
            if let (Some(validate), Some(body)) = (validate, &wanted.body) {
                self.validate_planned(validate, place, body)?;
            }
            self.overlay.set(place, &before, wanted.entry, wanted.body);
            if self.open() && assumed {
                self.overlay.assume(place);
            }
            self.report(effect);
            return Ok(());
        }
        let found =
            found.ok_or_else(|| Fault::new(format!("{} was not looked at", place.display())))?;
        self.allow(&effect)?;
        let body = wanted
            .body
            .as_ref()
            .map(|body| self.fetch(body))
            .transpose()?;
        let intent = self.intend(&effect)?;
        let wanted = Wanted { body, ..wanted };
        if let Some(backup) = intent.as_ref().and_then(|intent| intent.backup.as_ref()) {
            self.back_up(place, &before, backup)?;
        }
        let temp = intent.as_ref().and_then(|intent| intent.temp.clone());
        let temp = temp.unwrap_or_else(|| format!(".fleetctl-{}", std::process::id()));
        self.write(place, &found, &wanted, &temp, validate)?;
        self.complete(intent.map(|intent| intent.id))?;
        self.report(effect);
        Ok(())
    }

    /// Whether an entry could be put in a directory of the machine: a plan does not promise what an apply cannot do.
    fn writable(&self, place: &Path) -> Result<(), Fault> {
        let Some(parent) = place
            .parent()
            .filter(|parent| !self.overlay.defines(parent))
        else {
            return Ok(());
        };
        let access = acting(self.task.identity.as_ref(), || {
            rustix::fs::access(parent, Access::WRITE_OK | Access::EXEC_OK)
        })?;
        match access {
            // An open effect may make the directory; where none came, its absence was told already.
            Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
            Err(error) => Err(Fault::io("write", place, hint(error.into()))),
        }
    }

    /// Keeps the old content where the undo finds it.
    pub(super) fn back_up(
        &mut self,
        place: &Path,
        before: &Entry,
        backup: &str,
    ) -> Result<(), Fault> {
        let Some(journal) = &self.journal else {
            return Ok(());
        };
        let to = journal.backup_path(backup);
        let copied = files::open_file(place).and_then(|old| {
            let dir = to.parent().unwrap_or(&to);
            files::make_private(dir)?;
            let copied = files::copy_private(&old, &to)?;
            files::sync_dir(dir)?;
            dir.parent().map_or(Ok(()), files::sync_dir)?;
            Ok(copied)
        });
        let copied = copied.map_err(|error| Fault::io("back up", place, error))?;
        match before {
            Entry::File(_, content) if content.sha256 != copied.sha256 => Err(moved(place)),
            _ => {
                self.task.backups.push((place.to_owned(), to));
                Ok(())
            }
        }
    }

    fn write(
        &self,
        place: &Path,
        before: &Found,
        wanted: &Wanted,
        temp: &str,
        validate: Option<&Validate>,
    ) -> Result<(), Fault> {
        let identity = self.task.identity.as_ref();
        let told = |refused: Refused| match refused {
            Refused::Moved => moved(place),
            Refused::Io(error) => Fault::io("write", place, hint(error)),
        };
        let temp = OsStr::new(temp);
        let dated = self.task.dated;
        let staged = acting(identity, || -> Result<bool, Refused> {
            let at = Place::of(place)?;
            let attributes = wanted.attributes;
            let staged = match &wanted.entry {
                Entry::Absent => return at.remove(before).map(|()| false),
                Entry::Link(target) => at.stage_link(temp, target),
                Entry::Dir(_) if before.kind == Kind::Absent => at.stage_dir(temp, attributes),
                Entry::File(..) | Entry::Dir(_) | Entry::Special => match &wanted.body {
                    Some(body) => at.stage_file(temp, body, attributes, None),
                    None => return at.set(attributes, before).map(|()| false),
                },
            };
            staged
                .and_then(|()| dated.map_or(Ok(()), |time| at.date(temp, time)))
                .inspect_err(|_| at.discard(temp))?;
            Ok(true)
        })?
        .map_err(told)?;
        if !staged {
            return Ok(());
        }
        let valid = match (validate, &wanted.body) {
            (Some(validate), Some(body)) => {
                self.validate_staged(validate, place, &place.with_file_name(temp), body)
            }
            _ => Ok(()),
        };
        acting(identity, || -> Result<(), Refused> {
            let at = Place::of(place)?;
            if valid.is_err() {
                at.discard(temp);
                return Ok(());
            }
            at.commit(temp, before).inspect_err(|_| at.discard(temp))
        })?
        .map_err(told)?;
        valid
    }

    fn wanted(&self, place: &Path, before: &Entry, to: &To) -> Result<Wanted, Fault> {
        let shown = place.display();
        match to {
            To::Absent => Err(Fault::new(format!("{shown} is to be removed"))),
            To::Link { target } => match before {
                Entry::Dir(_) => Err(Fault::new(format!(
                    "{shown} is a directory: remove it before a link can take its place"
                ))),
                _ => Ok(Wanted {
                    entry: Entry::Link(target.clone()),
                    attributes: Attributes {
                        mode: 0,
                        uid: 0,
                        gid: 0,
                    },
                    body: None,
                }),
            },
            To::File {
                content,
                mode,
                owner,
                group,
            } => {
                let old = match before {
                    Entry::File(meta, content) => Some((meta, content)),
                    Entry::Dir(_) => {
                        return Err(Fault::new(format!("{shown} is a directory, not a file")));
                    }
                    Entry::Special => {
                        return Err(Fault::new(format!(
                            "{shown} is a device, a socket or a pipe, not a file"
                        )));
                    }
                    Entry::Link(_) | Entry::Absent => None,
                };
                let (meta, attributes) =
                    self.attributes(place, old.map(|(meta, _)| meta), mode, owner, group, false)?;
                // The same content again is no reason to write it.
                let new = content.as_ref().map(|body| (body, body.content()));
                let (content, body) = match (new, old) {
                    (Some((_, new)), Some((_, old))) if new.sha256 == old.sha256 => {
                        (old.clone(), None)
                    }
                    (Some((body, new)), _) => (new, Some(body.clone())),
                    (None, Some((_, old))) => (old.clone(), None),
                    (None, None) => {
                        return Err(Fault::new(format!(
                            "{shown} does not exist, and no content is given to make it"
                        )));
                    }
                };
                Ok(Wanted {
                    entry: Entry::File(meta, content),
                    attributes,
                    body,
                })
            }
            To::Dir { mode, owner, group } => {
                let old = match before {
                    Entry::Dir(meta) => Some(meta),
                    Entry::Absent => None,
                    Entry::Link(target) => {
                        return Err(Fault::new(format!(
                            "{shown} is a link to {target}, not a directory"
                        )));
                    }
                    Entry::File(..) | Entry::Special => {
                        return Err(Fault::new(format!("{shown} is a file, not a directory")));
                    }
                };
                let (meta, attributes) = self.attributes(place, old, mode, owner, group, true)?;
                Ok(Wanted {
                    entry: Entry::Dir(meta),
                    attributes,
                    body: None,
                })
            }
        }
    }

    /// Mode and owners as they will be: what is given, else what is there, else what is usual for a new entry.
    fn attributes(
        &self,
        place: &Path,
        old: Option<&Meta>,
        mode: &Option<Mode>,
        owner: &Option<String>,
        group: &Option<String>,
        dir: bool,
    ) -> Result<(Meta, Attributes), Fault> {
        let base = old.cloned().map_or_else(|| self.usual(place, dir), Ok)?;
        let mode = mode
            .as_ref()
            .map_or(base.mode, |mode| mode.resolve(base.mode, dir));
        let owner = owner.as_ref().unwrap_or(&base.owner);
        let group = group.as_ref().unwrap_or(&base.group);
        let known = |number: Option<u32>, kind: &str, name: &str| match number {
            Some(number) => Ok(Some(number)),
            // A package or a command before it may make it.
            None if self.open() => Ok(None),
            None => Err(Fault::new(format!(
                "there is no {kind} `{name}` on this host, which {} is to belong to",
                place.display()
            ))),
        };
        let uid = known(self.names.uid(owner), "user", owner)?;
        let gid = known(self.names.gid(group), "group", group)?;
        let owner = uid.map_or_else(|| owner.clone(), |uid| self.names.user_name(uid));
        let group = gid.map_or_else(|| group.clone(), |gid| self.names.group_name(gid));
        let attributes = Attributes {
            mode,
            uid: uid.unwrap_or_default(),
            gid: gid.unwrap_or_default(),
        };
        Ok((Meta { mode, owner, group }, attributes))
    }

    /// What a new entry has: the acting user's, or the group of a directory that hands its own on.
    fn usual(&self, place: &Path, dir: bool) -> Result<Meta, Fault> {
        let user = self.user();
        let mut meta = Meta {
            mode: if dir { 0o755 } else { 0o644 },
            owner: user.name.clone(),
            group: self.names.group_name(user.gid),
        };
        if let Some(parent) = place.parent()
            && let (Entry::Dir(above), _) = self.look(parent)?
            && above.mode & 0o2000 != 0
        {
            meta.group = above.group;
            if dir {
                meta.mode |= 0o2000;
            }
        }
        Ok(meta)
    }

    /// Whether a new entry has a directory to lie in. After an open effect one that is missing may be there by then.
    fn parent_exists(&self, place: &Path) -> Result<bool, Fault> {
        let parent = place.parent().unwrap_or(place);
        match self.look(parent)?.0 {
            Entry::Dir(_) => Ok(true),
            Entry::Absent if self.open() && !self.overlay.defines(parent) => Ok(false),
            Entry::Absent => Err(Fault::new(format!(
                "cannot write {}: the directory {} does not exist: create it first (`file` with `state: directory`)",
                place.display(),
                parent.display()
            ))),
            _ => Err(Fault::new(format!(
                "cannot write {}: {} is not a directory",
                place.display(),
                parent.display()
            ))),
        }
    }
}

fn same_kind(a: &Entry, b: &Entry) -> bool {
    matches!(
        (a, b),
        (Entry::File(..), Entry::File(..)) | (Entry::Dir(_), Entry::Dir(_))
    )
}

pub(super) fn moved(place: &Path) -> Fault {
    Fault::new(format!(
        "stale: {} was changed by somebody else in this very moment: run again",
        place.display()
    ))
}

fn text(place: &Path) -> Result<String, Fault> {
    place
        .to_str()
        .map(str::to_owned)
        .ok_or_else(|| Fault::new(format!("the path {} is not UTF-8", place.display())))
}

/// The system's answer with what a person should look at.
fn hint(error: std::io::Error) -> String {
    match error
        .raw_os_error()
        .map(rustix::io::Errno::from_raw_os_error)
    {
        Some(rustix::io::Errno::PERM) => {
            "operation not permitted (the file may be immutable: see lsattr)".to_owned()
        }
        Some(rustix::io::Errno::ROFS) => "the file system is read-only".to_owned(),
        Some(rustix::io::Errno::NOSPC) => "no space is left on the file system".to_owned(),
        Some(rustix::io::Errno::BUSY) => "it is a mount point and cannot be replaced".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::super::{Command, State};
    use super::*;

    fn host(dir: &Path) -> Host {
        let state = State::at(dir.join("state").to_str());
        state.prepare().unwrap();
        Host::apply(state, "r1", "test")
    }

    fn dir(path: PathBuf, mode: &str) -> Put {
        let to = To::Dir {
            mode: Some(Mode::parse(mode).unwrap()),
            owner: None,
            group: None,
        };
        Put {
            path,
            to,
            validate: None,
        }
    }

    #[test]
    fn new_entries_have_usual_modes_and_a_directory_can_hand_on_its_group() {
        let root = tempfile::tempdir().unwrap();
        let mut host = host(root.path());
        let path = root.path().join("plain");
        assert!(host.put(Put::content(&path, "x")).unwrap());
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o644);
        if host.user().uid != 0 {
            return;
        }
        let shared = root.path().join("shared");
        fs::create_dir(&shared).unwrap();
        std::os::unix::fs::chown(&shared, None, Some(4)).unwrap();
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o2775)).unwrap();
        host.put(Put::content(shared.join("file"), "x")).unwrap();
        host.put(Put {
            path: shared.join("dir"),
            to: To::Dir {
                mode: None,
                owner: None,
                group: None,
            },
            validate: None,
        })
        .unwrap();
        assert_eq!(fs::metadata(shared.join("file")).unwrap().gid(), 4);
        let made = fs::metadata(shared.join("dir")).unwrap();
        assert_eq!((made.gid(), made.mode() & 0o7777), (4, 0o2755));
    }

    #[test]
    fn nothing_is_touched_where_nothing_changes() {
        let root = tempfile::tempdir().unwrap();
        let mut host = host(root.path());
        let path = root.path().join("conf");
        host.put(Put::content(&path, "x")).unwrap();
        let before = fs::metadata(&path).unwrap();
        assert!(!host.put(Put::content(&path, "x")).unwrap());
        let after = fs::metadata(&path).unwrap();
        assert_eq!(
            (before.ino(), before.ctime_nsec()),
            (after.ino(), after.ctime_nsec())
        );
        assert!(
            host.put(dir(root.path().join("conf"), "0755"))
                .unwrap_err()
                .message
                .ends_with("is a file, not a directory")
        );
    }

    #[test]
    fn only_the_mode_changes_in_place() {
        let root = tempfile::tempdir().unwrap();
        let mut host = host(root.path());
        let path = root.path().join("conf");
        host.put(Put::content(&path, "x")).unwrap();
        let inode = fs::metadata(&path).unwrap().ino();
        let to = To::File {
            content: Some("x".into()),
            mode: Some(Mode::parse("u=rw,go=").unwrap()),
            owner: None,
            group: None,
        };
        assert!(
            host.put(Put {
                path: path.clone(),
                to,
                validate: None
            })
            .unwrap()
        );
        let after = fs::metadata(&path).unwrap();
        assert_eq!((after.ino(), after.mode() & 0o7777), (inode, 0o600));
    }

    #[test]
    fn what_lies_in_a_directory_that_a_command_may_have_made_is_assumed_too() {
        let root = tempfile::tempdir().unwrap();
        let mut host = Host::plan();
        host.command(Command {
            argv: vec!["make".to_owned()],
            line: "make".to_owned(),
            ..Command::default()
        })
        .unwrap();
        let dir = root.path().join("made");
        host.put(Put {
            path: dir.clone(),
            to: To::Dir {
                mode: None,
                owner: None,
                group: None,
            },
            validate: None,
        })
        .unwrap();
        host.put(Put::content(dir.join("file"), "x")).unwrap();
        let assumed: Vec<bool> = host.end().iter().map(|effect| effect.assumed).collect();
        assert_eq!(assumed, [false, true, true]);
    }

    #[test]
    fn after_a_command_a_plan_assumes_what_may_be_there_by_then() {
        let root = tempfile::tempdir().unwrap();
        let mut host = Host::plan();
        let deep = root.path().join("made/by/it");
        assert!(host.put(Put::content(&deep, "x")).is_err());
        host.command(Command {
            argv: vec!["make".to_owned()],
            line: "make".to_owned(),
            ..Command::default()
        })
        .unwrap();
        assert!(host.put(Put::content(&deep, "x")).unwrap());
        let to = To::File {
            content: Some("y".into()),
            mode: None,
            owner: Some("of-a-package".to_owned()),
            group: None,
        };
        host.put(Put {
            path: deep,
            to,
            validate: None,
        })
        .unwrap();
        let effects = host.end();
        assert_eq!(
            effects
                .iter()
                .map(|effect| effect.assumed)
                .collect::<Vec<_>>(),
            [false, true, false]
        );
    }

    #[test]
    fn a_link_on_the_way_is_followed_and_one_at_the_end_is_not() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("real")).unwrap();
        std::os::unix::fs::symlink("real", root.path().join("way")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", root.path().join("real/end")).unwrap();
        let mut host = host(root.path());
        host.put(Put::content(root.path().join("way/end"), "x"))
            .unwrap();
        assert!(
            fs::symlink_metadata(root.path().join("real/end"))
                .unwrap()
                .is_file()
        );
        assert_eq!(
            host.resolve(&root.path().join("way/../way/new")).unwrap(),
            root.path().join("real/new")
        );
    }
}
