use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use fleet_wire::Content;

use super::files::{self, Found, Kind};
use super::overlay::Seen;
use super::process::{self, Process};
use super::users::{Names, acting};
use super::{Body, Entry, Fault, Host, Meta, Output, User};

/// Links that are followed one after the other before it is called a loop, as in the kernel.
const LINKS: usize = 40;

impl Host {
    /// What is at a path: not followed, with a file's hash, and its content where it is small.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn entry(&self, path: &Path) -> Result<Entry, Fault> {
        Ok(self.look(&self.place(path)?)?.0)
    }

    /// The path at the end of links; where nothing is there, the path that a write would make. A leading `~` is the home
    /// of the task's user, `~ann` that of `ann`; a path that does not begin with `/` is one in the home, too.
    ///
    /// # Errors
    /// When it is empty, or there are too many links.
    pub fn resolve(&self, path: &Path) -> Result<PathBuf, Fault> {
        let at_home = self.at_home(path);
        let path = at_home.as_deref().unwrap_or(path);
        if !path.is_absolute() {
            return Err(Fault::new("the path is empty"));
        }
        let mut rest: Vec<PathBuf> = parts(path);
        let mut resolved = PathBuf::from("/");
        let mut followed = 0;
        while let Some(part) = rest.pop() {
            if part.as_os_str() == ".." {
                resolved.pop();
                continue;
            }
            let next = resolved.join(&part);
            let Some(target) = self.link(&next)? else {
                resolved = next;
                continue;
            };
            followed += 1;
            if followed > LINKS {
                return Err(Fault::new(format!(
                    "too many links follow each other at {}",
                    path.display()
                )));
            }
            if target.is_absolute() {
                resolved = PathBuf::from("/");
            }
            rest.extend(parts(&target));
        }
        Ok(resolved)
    }

    /// Where relative paths begin: where the helper was started, which is the login user's home, or on the controller's own
    /// machine the playbook's directory. Commands are started there, too.
    #[must_use]
    pub fn base(&self) -> PathBuf {
        std::env::current_dir().unwrap_or_else(|_| self.task.user.home.clone())
    }

    /// Where a command starts that has no directory of its own: another user's in that user's home, where the one who
    /// logged in may not even be seen.
    pub(super) fn starting_place(&self) -> Option<PathBuf> {
        let home = &self.task.user.home;
        let place = match self.task.identity {
            Some(_) => home.clone(),
            None => self.base(),
        };
        place.is_dir().then_some(place)
    }

    fn at_home(&self, path: &Path) -> Option<PathBuf> {
        let mut parts = path.components();
        let first = parts.next()?.as_os_str().to_str()?;
        let home = match first.strip_prefix('~') {
            None if path.is_absolute() => return None,
            None => return Some(self.base().join(path)),
            Some("") => self.task.user.home.clone(),
            Some(name) => self.names.user(name)?.home,
        };
        Some(home.join(parts.as_path()))
    }

    /// The content of the regular file at a path, links followed; none where nothing is there.
    ///
    /// # Errors
    /// When it cannot be read, or is no regular file.
    pub fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, Fault> {
        let path = self.resolve(path)?;
        match self.overlay.see(&path) {
            Seen::Nothing => return Ok(None),
            Seen::Node(node) => match (&node.entry, &node.body) {
                (Entry::Absent, _) => return Ok(None),
                (Entry::File(..), Some(body)) => {
                    let bytes = self.fetch(body)?.bytes();
                    return bytes
                        .map(Some)
                        .map_err(|error| Fault::io("read", &path, error));
                }
                (Entry::File(..), None) => {}
                _ => {
                    return Err(Fault::new(format!(
                        "{} is not a regular file",
                        path.display()
                    )));
                }
            },
            Seen::Machine => {}
        }
        let read = acting(self.task.identity.as_ref(), || -> io::Result<Vec<u8>> {
            let mut bytes = Vec::new();
            files::open_file(&path)?.read_to_end(&mut bytes)?;
            Ok(bytes)
        })?;
        match read {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(Fault::io("read", &path, error)),
        }
    }

    /// The numbers of an entry's owners, where the host knows them.
    #[must_use]
    pub fn numbers(&self, meta: &Meta) -> (Option<u32>, Option<u32>) {
        (self.names.uid(&meta.owner), self.names.gid(&meta.group))
    }

    /// A user of the host, by name or number.
    #[must_use]
    pub fn account(&self, user: &str) -> Option<User> {
        self.names.user(user)
    }

    /// Whether the host has this user, by name or number.
    #[must_use]
    pub fn has_user(&self, user: &str) -> bool {
        self.names.user(user).is_some()
    }

    /// Whether the host has this group, by name or number.
    #[must_use]
    pub fn has_group(&self, group: &str) -> bool {
        self.names
            .gid(group)
            .is_some_and(|gid| self.names.group_name(gid) != gid.to_string())
    }

    /// The names of a user and a group, or their numbers where they have none.
    #[must_use]
    pub fn owners(&self, uid: u32, gid: u32) -> (String, String) {
        (self.names.user_name(uid), self.names.group_name(gid))
    }

    /// The names in a directory, sorted, links followed; none where there is no directory.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn list(&self, dir: &Path) -> Result<Option<Vec<String>>, Fault> {
        let dir = self.resolve(dir)?;
        let seen = self.overlay.see(&dir);
        let own = match &seen {
            Seen::Nothing => return Ok(None),
            Seen::Node(node) if !matches!(node.entry, Entry::Dir(_)) => return Ok(None),
            Seen::Node(node) if node.is_fresh() => Some(Vec::new()),
            Seen::Node(_) | Seen::Machine => {
                acting(self.task.identity.as_ref(), || files::list(&dir))?
                    .map_err(|error| Fault::io("list", &dir, error))?
            }
        };
        let Some(mut names) = own else {
            return Ok(None);
        };
        for (name, entry) in self.overlay.children(&dir) {
            match names.binary_search_by(|known| known.as_str().cmp(name)) {
                Ok(at) if *entry == Entry::Absent => drop(names.remove(at)),
                Err(at) if *entry != Entry::Absent => names.insert(at, name.to_owned()),
                _ => {}
            }
        }
        Ok(Some(names))
    }

    /// Runs a command that only reads, also in a plan; in the C locale and as the task's user.
    ///
    /// # Errors
    /// When it cannot be started, or is not done in time.
    pub fn probe(&self, argv: &[&str]) -> Result<Output, Fault> {
        let argv: Vec<String> = argv.iter().map(|&word| word.to_owned()).collect();
        let timeout = self.task.timeout.unwrap_or(process::READ_ONLY);
        self.process(Process {
            argv: &argv,
            timeout: Some(timeout),
            ..Process::default()
        })
        .in_c_locale()
        .run()
    }

    /// Runs a command that only reads what it is given, also in a plan; in the C locale and as the task's user.
    ///
    /// # Errors
    /// When it cannot be started, fails, is not done in time, or says more than is kept.
    pub fn filter(&self, argv: &[&str], input: &[u8]) -> Result<Vec<u8>, Fault> {
        let line = argv.join(" ");
        let argv: Vec<String> = argv.iter().map(|&word| word.to_owned()).collect();
        let timeout = self.task.timeout.unwrap_or(process::READ_ONLY);
        let output = self
            .process(Process {
                argv: &argv,
                stdin: Some(input),
                timeout: Some(timeout),
                ..Process::default()
            })
            .in_c_locale()
            .run()?;
        match (output.ok(), output.cut) {
            (true, false) => Ok(output.stdout),
            (true, true) => Err(Fault::new(format!("`{line}` says more than 2 MiB"))),
            (false, _) => Err(Fault::new(format!("`{line}`: {}", output.complaint()))),
        }
    }

    /// The task's content as it lies here or at the controller. None where the task has none.
    #[must_use]
    pub fn body(&self) -> Option<Body> {
        let blob = self.task.blob.as_ref()?;
        Some(match &blob.bytes {
            Some(bytes) => bytes.clone().into(),
            None => Body::Remote(Content {
                sha256: blob.sha256.clone(),
                size: blob.size,
                bytes: None,
            }),
        })
    }

    /// The task's content; asked from the controller where it did not come along. None where the task has none.
    ///
    /// # Errors
    /// When the controller does not give it.
    pub fn blob(&self) -> Result<Option<Vec<u8>>, Fault> {
        let Some(body) = self.body() else {
            return Ok(None);
        };
        let bytes = self.fetch(&body)?.bytes();
        bytes
            .map(Some)
            .map_err(|error| Fault::new(format!("cannot read the task's content: {error}")))
    }

    /// The task's content, here, without taking it into memory where it is large. None where the task has none.
    ///
    /// # Errors
    /// When the controller does not give it.
    pub fn fetched(&self) -> Result<Option<Body>, Fault> {
        self.body().map(|body| self.fetch(&body)).transpose()
    }

    /// SHA-256 and size of the task's content.
    #[must_use]
    pub fn blob_meta(&self) -> Option<(&str, u64)> {
        self.task
            .blob
            .as_ref()
            .map(|blob| (blob.sha256.as_str(), blob.size))
    }

    /// Whether effects are only recorded. For commands and messages: modules are the same for both.
    #[must_use]
    pub fn planning(&self) -> bool {
        self.recording
    }

    /// Whether a command or a package came before whose effects cannot be known: what is absent may be there by then.
    #[must_use]
    pub fn open(&self) -> bool {
        self.recording && self.overlay.open
    }

    /// The user that the task acts as.
    #[must_use]
    pub fn user(&self) -> &User {
        &self.task.user
    }

    /// The task's environment variables for commands.
    #[must_use]
    pub fn environment(&self) -> &[(String, String)] {
        &self.task.environment
    }

    /// Where this run keeps what was at a path before the task changed it. None in a plan, or where nothing was changed.
    #[must_use]
    pub fn backup_of(&self, path: &Path) -> Option<PathBuf> {
        let place = self.place(path).ok()?;
        self.task
            .backups
            .iter()
            .find(|(changed, _)| *changed == place)
            .map(|(_, backup)| backup.clone())
    }

    /// A path with its parent's links followed, and itself as it is.
    pub(super) fn place(&self, path: &Path) -> Result<PathBuf, Fault> {
        let at_home = self.at_home(path);
        let path = at_home.as_deref().unwrap_or(path);
        let name = path.components().next_back();
        match (path.parent(), name) {
            (Some(parent), Some(Component::Normal(name))) if path.is_absolute() => {
                Ok(self.resolve(parent)?.join(name))
            }
            _ => self.resolve(path),
        }
    }

    /// What is at a place, and the machine's own view of it where no effect came near.
    pub(super) fn look(&self, place: &Path) -> Result<(Entry, Option<Found>), Fault> {
        match self.overlay.see(place) {
            Seen::Node(node) => return Ok((node.entry.clone(), None)),
            Seen::Nothing => return Ok((Entry::Absent, None)),
            Seen::Machine => {}
        }
        let found = acting(self.task.identity.as_ref(), || files::look(place))?
            .map_err(|error| Fault::io("read", place, error))?;
        Ok((entry_of(&found, &self.names), Some(found)))
    }

    /// What a link at a place points to; none where there is no link.
    fn link(&self, place: &Path) -> Result<Option<PathBuf>, Fault> {
        match self.overlay.see(place) {
            Seen::Node(node) => Ok(match &node.entry {
                Entry::Link(target) => Some(target.into()),
                _ => None,
            }),
            Seen::Nothing => Ok(None),
            Seen::Machine => match std::fs::read_link(place) {
                Ok(target) => Ok(Some(target)),
                // It is no link, or nothing, or nothing that this user may see: who opens it says more.
                Err(_) => Ok(None),
            },
        }
    }

    /// The same content, here.
    pub(super) fn fetch(&self, body: &Body) -> Result<Body, Fault> {
        match (body, &self.contents) {
            (Body::Remote(content), Some(contents)) => contents.fetch(content),
            (Body::Remote(_), None) => Err(Fault::new("the task's content did not come with it")),
            (here, _) => Ok(here.clone()),
        }
    }
}

/// The parts of a path, the first one last.
fn parts(path: &Path) -> Vec<PathBuf> {
    let parts = path.components().filter(|part| {
        !matches!(
            part,
            Component::RootDir | Component::CurDir | Component::Prefix(_)
        )
    });
    let mut parts: Vec<PathBuf> = parts.map(|part| PathBuf::from(part.as_os_str())).collect();
    parts.reverse();
    parts
}

/// An entry with its owners by name.
pub(super) fn entry_of(found: &Found, names: &Names) -> Entry {
    let meta = || Meta {
        mode: found.mode,
        owner: names.user_name(found.uid),
        group: names.group_name(found.gid),
    };
    match &found.kind {
        Kind::Absent => Entry::Absent,
        Kind::File(content) => Entry::File(meta(), content.clone()),
        Kind::Dir => Entry::Dir(meta()),
        Kind::Link(target) => Entry::Link(target.clone()),
        Kind::Special => Entry::Special,
    }
}

/// Whether two entries are the same, bytes that are not at hand aside.
pub(super) fn same(a: &Entry, b: &Entry) -> bool {
    match (a, b) {
        (Entry::File(a, x), Entry::File(b, y)) => {
            a == b && x.sha256 == y.sha256 && x.size == y.size
        }
        _ => a == b,
    }
}
