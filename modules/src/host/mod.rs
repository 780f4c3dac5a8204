//! The only way in which a module touches the machine.
//!
//! In a plan [`Host`] is an overlay over the machine and a record of effects; in an apply each
//! effect is journaled and performed. Modules are the same for both.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use fleet_wire::{As, Blob, Content, DigestKey, Effect, Task, UndoClass, UndoneState, What};

pub use background::run_job;
pub use body::Body;
pub(crate) use body::hex;
pub use connection::{Connection, Endpoint, Tls};
pub use deadman::{Signs, Tell};
pub use fault::Fault;
pub use fleet_wire::{AccountLine, Entry, Meta, SettingKind, UnitAction};
pub use foreign::{Private, Verdict};
pub use inode::Time;
pub use outcomes::Outcomes;
pub use packages::{Managed, PackageChange, PackageTo};
pub(crate) use process::search_path;
pub use process::{Command, Output, words};
pub use put::{Put, To, Validate};
pub use script::Script;
pub use settings::Setting;
pub(crate) use settings::unescaped;
pub(crate) use state::AGAIN;
pub use state::{Applied, Lock, State, is_run_name};
pub(crate) use undo::forget_pending;
pub use undo::{recover, rollback, rollback_one};
pub use units::UnitState;
pub use unpacked::{Member, MemberKind, Unpacked};
pub use users::User;

use journal::Journal;
use overlay::Overlay;
use process::Process;
use users::{Identity, Names};

mod accounts;
mod audit;
mod background;
mod body;
mod clock;
mod command;
mod connection;
mod deadman;
mod executor;
mod fault;
mod files;
mod foreign;
mod inode;
mod journal;
mod outcomes;
mod overlay;
mod packages;
mod preflight;
mod process;
mod proof;
mod put;
mod reading;
mod script;
mod settings;
mod staging;
mod standing;
mod state;
mod sysctl;
mod temporary;
mod timer;
mod undo;
mod units;
mod unpacked;
mod users;
mod words;

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
    /// The key of the digests of secrets in the plan.
    digest_key: Option<DigestKey>,
    names: Names,
    units: RefCell<BTreeMap<String, UnitState>>,
    packages: RefCell<Option<BTreeMap<String, String>>>,
}

/// What [`Host`] knows of the task in hand.
#[derive(Debug)]
struct Current {
    key: String,
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
    /// The time of the last change that the next file gets, in seconds since 1970 and nanoseconds.
    dated: Option<(i64, i64)>,
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
            key: String::new(),
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
            dated: None,
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
            digest_key: None,
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

    /// The key of the digests of secrets in the plan that is applied.
    pub fn set_digest_key(&mut self, key: Option<DigestKey>) {
        self.digest_key = key;
    }

    /// Begins a task: from here on the host acts as its user and in its way.
    ///
    /// # Errors
    /// When there is no such user, or the helper may not act as another.
    pub fn begin(&mut self, task: &Task) -> Result<(), Fault> {
        self.names = self.names_now();
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
            key: task.key.clone(),
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
            dated: None,
        };
        self.recording = task.check.unwrap_or(self.plan);
        if self.recording != self.plan {
            self.aside = Some(std::mem::take(&mut self.overlay));
            self.names = self.names_now();
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

    /// What is done belongs to a saved plan that this run applies.
    pub fn applies_plan(&mut self, plan: &str, by: Applied) {
        if let Some(journal) = &mut self.journal {
            journal.set_plan(plan, by);
        }
    }

    /// The host looks after the run: it undoes what nobody confirms within so many seconds. `always` before the first
    /// effect, else before the first that may cut the host off.
    pub fn look_after(&mut self, timeout_s: u32, always: bool, signs: Signs, tell: Tell) {
        if let Some(journal) = &mut self.journal {
            let logins = [Some(self.me.name.clone()), self.login.clone()];
            let logins = logins.into_iter().flatten().collect();
            journal.set_watch(deadman::DeadMan::new(
                timeout_s, always, signs, logins, tell,
            ));
        }
    }

    /// Goes on with a run that was cut off; the keys of the steps of which nobody can say whether they were done.
    ///
    /// # Errors
    /// When its journal cannot be read, or what was under way cannot be put back.
    pub fn resume(&mut self) -> Result<Vec<String>, Fault> {
        match &mut self.journal {
            Some(journal) => journal.resume(),
            None => Ok(Vec::new()),
        }
    }

    /// Whether something was done.
    #[must_use]
    pub fn begun(&self) -> bool {
        self.journal.as_ref().is_some_and(Journal::begun)
    }

    /// Whether the host undoes the run unless it is confirmed.
    #[must_use]
    pub fn is_looked_after(&self) -> bool {
        self.journal
            .as_ref()
            .is_some_and(|journal| journal.watch().is_some() && journal.changed())
    }

    /// Leaves the run open: to be confirmed, gone on with, or undone by the host.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn hold(&mut self) -> Result<(), Fault> {
        self.journal.take().map_or(Ok(()), Journal::hold)
    }

    /// Leaves the run open for its controller to go on with in another conversation, behind a boot of the host perhaps.
    ///
    /// # Errors
    /// When that cannot be written.
    pub fn leave(&mut self, controller: u64) -> Result<UndoneState, Fault> {
        match self.journal.take() {
            Some(journal) if journal.begun() => {
                journal.leave(controller).map(|()| UndoneState::Kept)
            }
            _ => Ok(UndoneState::Unchanged),
        }
    }

    /// Ends the run: its changes stay.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn keep(&mut self) -> Result<UndoneState, Fault> {
        match self.journal.take() {
            Some(journal) if journal.begun() => {
                let state = match journal.changed() {
                    true => UndoneState::Kept,
                    false => UndoneState::Unchanged,
                };
                journal.end(UndoneState::Kept).map(|()| state)
            }
            _ => Ok(UndoneState::Unchanged),
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

    /// Refuses what only root can do where the task acts as another user: the helper's own rights are not that user's.
    fn as_root(&self, what: &str) -> Result<(), Fault> {
        match &self.task.identity {
            Some(_) => Err(Fault::new(format!(
                "cannot {what} as the user `{}`: it needs root (`become: true`)",
                self.task.user.name
            ))),
            None => Ok(()),
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
            Some(planned) if !self.recording && !effect.is_among(planned, self.digest_key.as_ref()) => {
                Err(Fault::new(format!(
                    "stale: `{}` is not in the plan: the host is not as it was when the plan was made; plan again",
                    effect.summary()
                ))
                .with("stale", true))
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
        let (key, name) = (self.task.key.clone(), self.task.name.clone());
        self.journal
            .as_mut()
            .map(|journal| journal.intend(&key, &name, effect))
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
        effect.conceal();
        self.overlay.touched |= self.recording;
        self.effects.push(effect);
    }
}
