//! The only way in which a module touches the machine.
//!
//! In a plan [`Host`] is an overlay over the machine and a record of effects; in an apply each
//! effect is journaled and performed. Modules are the same for both.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use fleet_wire::{As, Blob, Content, Effect, Task, UndoClass, UndoneState, What};

pub use body::Body;
pub(crate) use body::hex;
pub use fault::Fault;
pub use fleet_wire::{Entry, Meta, UnitAction};
pub use packages::{PackageChange, PackageTo};
pub use process::{Command, Output, words};
pub use put::{Put, To, Validate};
pub use state::{Lock, State, is_run_name};
pub(crate) use undo::forget_pending;
pub use undo::{recover, rollback};
pub use units::UnitState;
pub use users::User;

use files::{Found, Kind};
use journal::Journal;
use overlay::{Overlay, Seen};
use process::Process;
use users::{Identity, Names, acting};

mod body;
mod clock;
mod command;
mod fault;
mod files;
mod journal;
mod overlay;
mod packages;
mod process;
mod proof;
mod put;
mod staging;
mod state;
mod sysctl;
mod undo;
mod units;
mod users;

/// Links that are followed one after the other before it is called a loop, as in the kernel.
const LINKS: usize = 40;

/// Gives the contents that did not come with their tasks.
pub trait Contents {
    /// The content with this hash and size.
    ///
    /// # Errors
    /// When it does not come, or is another one.
    fn fetch(&self, content: &Content) -> Result<Body, Fault>;
}

/// The machine as a task sees it, and the only way to change it.
pub struct Host {
    /// Effects of the task in hand are recorded and not performed.
    recording: bool,
    /// Effects are recorded unless a task says otherwise.
    plan: bool,
    overlay: Overlay,
    /// The conversation's overlay while a task goes its own way.
    aside: Option<Overlay>,
    /// Where performed effects are written down; none where nothing is undone.
    journal: Option<Journal>,
    contents: Option<Box<dyn Contents>>,
    task: Current,
    effects: Vec<Effect>,
    me: User,
    /// Who logged in, where that is not the helper's own user.
    login: Option<String>,
    names: Names,
    units: RefCell<BTreeMap<String, UnitState>>,
    packages: RefCell<Option<BTreeMap<String, String>>>,
}

/// What [`Host`] knows of the task in hand.
#[derive(Debug)]
struct Current {
    name: String,
    user: User,
    /// None for the helper's own user.
    identity: Option<Identity>,
    environment: Vec<(String, String)>,
    blob: Option<Blob>,
    secret: bool,
    /// The playbook says that it changes nothing: its command only reads.
    reads: bool,
    planned: Option<Vec<String>>,
    timeout: Option<Duration>,
    /// Paths that the task changed, and where their old contents are kept.
    backups: Vec<(PathBuf, PathBuf)>,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host")
            .field("task", &self.task.name)
            .field("recording", &self.recording)
            .finish_non_exhaustive()
    }
}

impl Host {
    /// The machine for a plan, or only to be read: nothing is changed, effects are recorded.
    #[must_use]
    pub fn plan() -> Self {
        Self::new(true, None)
    }

    /// The machine for an apply, with its journal under a state directory that is prepared and locked.
    #[must_use]
    pub fn apply(state: State, run: &str, who: &str) -> Self {
        Self::new(false, Some(Journal::new(state, run, who)))
    }

    fn new(plan: bool, journal: Option<Journal>) -> Self {
        let names = Names::default();
        let uid = rustix::process::geteuid().as_raw();
        let me = names.user(&uid.to_string()).unwrap_or_else(|| User {
            name: uid.to_string(),
            uid,
            gid: rustix::process::getegid().as_raw(),
            home: "/".into(),
            shell: "/bin/sh".into(),
        });
        let task = Current {
            name: String::new(),
            user: me.clone(),
            identity: None,
            environment: Vec::new(),
            blob: None,
            secret: false,
            reads: false,
            planned: None,
            timeout: None,
            backups: Vec::new(),
        };
        Self {
            recording: plan,
            plan,
            overlay: Overlay::default(),
            aside: None,
            journal,
            contents: None,
            task,
            effects: Vec::new(),
            me,
            login: None,
            names,
            units: RefCell::default(),
            packages: RefCell::default(),
        }
    }

    /// Where contents come from that did not come with their tasks.
    pub fn set_contents(&mut self, contents: Box<dyn Contents>) {
        self.contents = Some(contents);
    }

    /// Who logged in, where the helper runs through sudo.
    pub fn set_login(&mut self, login: Option<String>) {
        self.login = login;
    }

    /// Begins a task: from here on the host acts as its user and in its way.
    ///
    /// # Errors
    /// When there is no such user, or the helper may not act as another.
    pub fn begin(&mut self, task: &Task) -> Result<(), Fault> {
        self.names = Names::default();
        self.packages = RefCell::default();
        let user = match &task.user {
            As::Helper => None,
            As::Login => self.login.clone(),
            As::User(name) => Some(name.clone()),
        };
        let user = user.filter(|name| *name != self.me.name);
        let user = user
            .as_ref()
            .map(|name| {
                self.names
                    .user(name)
                    .ok_or_else(|| Fault::new(format!("there is no user `{name}` on this host")))
            })
            .transpose()?;
        if let Some(user) = &user
            && self.me.uid != 0
        {
            return Err(Fault::new(format!(
                "cannot act as `{}`: the helper runs as `{}`, and only root can",
                user.name, self.me.name
            )));
        }
        self.task = Current {
            name: task.name.clone(),
            identity: user.as_ref().map(|user| self.names.identity(user)),
            user: user.unwrap_or_else(|| self.me.clone()),
            environment: task.environment.clone(),
            blob: task.blob.clone(),
            secret: task.no_log,
            reads: task.changed == Some(false),
            planned: task.planned.clone(),
            timeout: (task.timeout_s > 0).then(|| Duration::from_secs(task.timeout_s.into())),
            backups: Vec::new(),
        };
        self.recording = task.check.unwrap_or(self.plan);
        if self.recording != self.plan {
            self.aside = Some(std::mem::take(&mut self.overlay));
        }
        Ok(())
    }

    /// Ends the task; its effects so far, performed or recorded.
    pub fn end(&mut self) -> Vec<Effect> {
        if let Some(overlay) = self.aside.take() {
            self.overlay = overlay;
        }
        self.recording = self.plan;
        std::mem::take(&mut self.effects)
    }

    /// Ends the run: its changes stay.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn keep(&mut self) -> Result<UndoneState, Fault> {
        match self.journal.take() {
            Some(journal) if journal.begun() => {
                journal.end(UndoneState::Kept).map(|()| UndoneState::Kept)
            }
            _ => Ok(UndoneState::Unchanged),
        }
    }

    // Reading.

    /// What is at a path: not followed, with a file's hash, and its content where it is small.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn entry(&self, path: &Path) -> Result<Entry, Fault> {
        Ok(self.look(&self.place(path)?)?.0)
    }

    /// The path at the end of links; where nothing is there, the path that a write would make.
    ///
    /// # Errors
    /// When it is not absolute, or there are too many links.
    pub fn resolve(&self, path: &Path) -> Result<PathBuf, Fault> {
        if !path.is_absolute() {
            return Err(Fault::new(format!(
                "the path `{}` is not absolute: it must begin with /",
                path.display()
            )));
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
        let read = acting(
            self.task.identity.as_ref(),
            || -> std::io::Result<Vec<u8>> {
                let mut bytes = Vec::new();
                std::io::Read::read_to_end(&mut files::open_file(&path)?, &mut bytes)?;
                Ok(bytes)
            },
        )?;
        match read {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error)
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(Fault::io("read", &path, error)),
        }
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

    // What the parts of this module share.

    /// A path with its parent's links followed, and itself as it is.
    fn place(&self, path: &Path) -> Result<PathBuf, Fault> {
        let name = path.components().next_back();
        match (path.parent(), name) {
            (Some(parent), Some(Component::Normal(name))) if path.is_absolute() => {
                Ok(self.resolve(parent)?.join(name))
            }
            _ => self.resolve(path),
        }
    }

    /// What is at a place, and the machine's own view of it where no effect came near.
    fn look(&self, place: &Path) -> Result<(Entry, Option<Found>), Fault> {
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
    fn fetch(&self, body: &Body) -> Result<Body, Fault> {
        match (body, &self.contents) {
            (Body::Remote(content), Some(contents)) => contents.fetch(content),
            (Body::Remote(_), None) => Err(Fault::new("the task's content did not come with it")),
            (here, _) => Ok(here.clone()),
        }
    }

    /// A process with the task's user, environment and time.
    fn process<'a>(&'a self, process: Process<'a>) -> Process<'a> {
        let user = &self.task.user;
        let mut environment = vec![
            ("HOME".to_owned(), user.home.to_string_lossy().into_owned()),
            ("USER".to_owned(), user.name.clone()),
            ("LOGNAME".to_owned(), user.name.clone()),
            (
                "SHELL".to_owned(),
                user.shell.to_string_lossy().into_owned(),
            ),
        ];
        environment.extend(process.environment);
        environment.extend(self.task.environment.iter().cloned());
        let identity = self.task.identity.as_ref();
        let before = process.prepare;
        let prepare = move || -> Result<(), Fault> {
            if let Some(before) = before {
                before()?;
            }
            identity
                .map_or(Ok(()), Identity::assume)
                .map_err(|error| Fault::new(format!("cannot act as another user: {error}")))
        };
        let prepare: Option<Box<dyn FnOnce() -> Result<(), Fault> + Send>> =
            Some(Box::new(prepare));
        Process {
            environment,
            prepare,
            timeout: process.timeout.or(self.task.timeout),
            ..process
        }
    }

    fn effect(&self, what: What, undo: UndoClass, assumed: bool) -> Effect {
        Effect {
            what,
            undo,
            assumed,
            secret: self.task.secret,
        }
    }

    /// Refuses an effect that the plan did not show.
    fn allow(&self, effect: &Effect) -> Result<(), Fault> {
        match &self.task.planned {
            Some(planned) if !self.recording && !planned.contains(&effect.digest()) => {
                Err(Fault::new(format!(
                    "stale: `{}` is not in the plan: the host is not as it was when the plan was made; plan again",
                    effect.summary()
                )))
            }
            _ => Ok(()),
        }
    }

    /// Performs an effect between its intent and its completion in the journal.
    fn perform<T>(
        &mut self,
        effect: Effect,
        act: impl FnOnce(&mut Self) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        self.allow(&effect)?;
        let intent = self.intend(&effect)?;
        let done = act(self)?;
        self.complete(intent.map(|intent| intent.id))?;
        self.report(effect);
        Ok(done)
    }

    fn intend(&mut self, effect: &Effect) -> Result<Option<journal::Intent>, Fault> {
        let name = self.task.name.clone();
        self.journal
            .as_mut()
            .map(|journal| journal.intend(&name, effect))
            .transpose()
    }

    fn complete(&mut self, id: Option<u32>) -> Result<(), Fault> {
        match (&mut self.journal, id) {
            (Some(journal), Some(id)) => journal.done(id),
            _ => Ok(()),
        }
    }

    /// Adds an effect to the task's outcome; a secret one without its contents.
    fn report(&mut self, mut effect: Effect) {
        if effect.secret
            && let What::File { before, after, .. } = &mut effect.what
        {
            before.forget_bytes();
            after.forget_bytes();
        }
        self.effects.push(effect);
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

fn entry_of(found: &Found, names: &Names) -> Entry {
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
fn same(a: &Entry, b: &Entry) -> bool {
    match (a, b) {
        (Entry::File(a, x), Entry::File(b, y)) => {
            a == b && x.sha256 == y.sha256 && x.size == y.size
        }
        _ => a == b,
    }
}
