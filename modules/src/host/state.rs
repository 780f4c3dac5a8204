//! What fleetctl keeps on a host: the lock, the journals of runs, the pending handlers.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fleet_wire::{Locked, Refusal};

use super::users::Names;
use super::{Fault, clock, executor, files};

/// The state directory of a host.
#[derive(Clone, Debug)]
pub struct State {
    dir: PathBuf,
    /// The file of pending handlers: its own for each conversation of a run that shares the lock.
    pending: String,
}

/// Who applied a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// Which run.
    pub run: String,
    /// Which controller began it.
    pub controller: u64,
}

/// The host's lock. It dies with the process that holds it.
#[derive(Debug)]
pub struct Lock {
    _file: File,
    joined: bool,
}

/// How long it may take until who has taken the lock has said so, and until a process that is just being started has let
/// go of what it inherited.
const SETTLE: Duration = Duration::from_millis(300);
/// The file of pending handlers.
const PENDING: &str = "pending";
/// The file in a run's directory that says which controller goes on with it.
const LEFT: &str = "left";
/// What stands in the names of journals of a run behind its first, before their number.
pub(crate) const AGAIN: &str = "_again";
/// A holder that has not said who it is.
const UNKNOWN: &str = "unknown";

impl Lock {
    /// Whether another conversation of the same run had it already.
    #[must_use]
    pub fn is_joined(&self) -> bool {
        self.joined
    }
}

impl State {
    /// The state in a directory; none for the usual place: `/var/lib/fleetctl` for root, `~/.local/state/fleetctl` for others.
    #[must_use]
    pub fn at(dir: Option<&str>) -> Self {
        if let Some(dir) = dir {
            return Self::of(dir.into());
        }
        let uid = rustix::process::geteuid();
        if uid.is_root() {
            return Self::of("/var/lib/fleetctl".into());
        }
        let home = Names::default()
            .user(&uid.as_raw().to_string())
            .map_or_else(|| "/nonexistent".into(), |user| user.home);
        Self::of(home.join(".local/state/fleetctl"))
    }

    fn of(dir: PathBuf) -> Self {
        Self {
            dir,
            pending: PENDING.to_owned(),
        }
    }

    /// The same for a conversation that has joined another's run: what it notifies is kept in a file of its own.
    #[must_use]
    pub fn beside(&self) -> Self {
        Self {
            dir: self.dir.clone(),
            pending: format!("{PENDING}_{}", std::process::id()),
        }
    }

    /// Makes the directory where it is missing, and refuses one that others could write to.
    ///
    /// # Errors
    /// When it cannot be made or is not fit.
    pub fn prepare(&self) -> Result<(), Fault> {
        self.is_whole()?;
        let make = |dir: &Path| DirBuilder::new().recursive(true).mode(0o700).create(dir);
        make(&self.dir)
            .and_then(|()| make(&self.dir.join("txn")))
            // A journal is not on disk before the directories that lead to it are.
            .and_then(|()| files::sync_dir(&self.dir))
            .and_then(|()| self.dir.parent().map_or(Ok(()), files::sync_dir))
            .map_err(|error| Fault::io("make the state directory", &self.dir, error))?;
        let found = files::look(&self.dir).map_err(|error| Fault::io("read", &self.dir, error))?;
        let uid = rustix::process::geteuid().as_raw();
        if found.kind != files::Kind::Dir || found.uid != uid || found.mode & 0o022 != 0 {
            let dir = self.dir.display();
            return Err(Fault::new(format!(
                "the state directory {dir} is not fit: it must be a directory of the user with the number {uid} that nobody else can write to"
            )));
        }
        Ok(())
    }

    /// Takes the lock, waiting for it if another run holds it. Conversations of the same run of one controller share it: a machine that the
    /// inventory knows by two names is worked on under both.
    ///
    /// # Errors
    /// With who holds it when the time is over, or why it cannot be taken.
    pub fn lock(
        &self,
        who: &str,
        run: &str,
        controller: u64,
        timeout: Duration,
    ) -> Result<Lock, Refusal> {
        let unfit = |error: io::Error| Refusal::Unfit(Fault::io("lock", &self.dir, error).message);
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(self.dir.join("lock"))
            .map_err(unfit)?;
        let holder = self.dir.join("holder");
        let deadline = Instant::now() + timeout.max(SETTLE);
        loop {
            match file.try_lock() {
                Ok(()) => {
                    let pid = rustix::process::getpid().as_raw_nonzero().get();
                    let started = executor::started(pid).unwrap_or_default();
                    let now = clock::now();
                    let lines = format!("{who}\n{run}\n{now}\n{controller}\n{pid}\n{started}\n");
                    write_private(&holder, &lines).map_err(unfit)?;
                    // Who is of the same run may come in; nobody else can.
                    file.lock_shared().map_err(unfit)?;
                    return Ok(Lock {
                        _file: file,
                        joined: false,
                    });
                }
                Err(TryLockError::Error(error)) => return Err(unfit(error)),
                Err(TryLockError::WouldBlock) => {}
            }
            let (held_by, own) = read_holder(&holder);
            let is_ours = |held: &Locked, own: u64| held.run == run && own == controller;
            if is_ours(&held_by, own) && file.try_lock_shared().is_ok() {
                // It may have been let go and taken by another meanwhile.
                let (held_by, own) = read_holder(&holder);
                if is_ours(&held_by, own) {
                    return Ok(Lock {
                        _file: file,
                        joined: true,
                    });
                }
                file.unlock().map_err(unfit)?;
            }
            if Instant::now() >= deadline {
                return Err(Refusal::Locked(held_by));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Who holds the lock; none where nobody does.
    #[must_use]
    pub fn holder(&self) -> Option<Locked> {
        let file = File::open(self.dir.join("lock")).ok()?;
        match file.try_lock_shared() {
            // Those of one run share it: only who has it alone, or not at all, tells.
            Ok(()) => {
                drop(file.unlock());
                match file.try_lock() {
                    Ok(()) => None,
                    Err(_) => Some(read_holder(&self.dir.join("holder")).0),
                }
            }
            Err(_) => Some(read_holder(&self.dir.join("holder")).0),
        }
    }

    /// Ends the process that holds the lock.
    pub(super) fn end_holder(&self) {
        let text = fs::read_to_string(self.dir.join("holder")).unwrap_or_default();
        let mut lines = text.lines().skip(4);
        let (pid, started) = (lines.next(), lines.next());
        if let (Some(Ok(pid)), Some(started)) = (pid.map(str::parse), started) {
            executor::end_process(pid, started);
        }
    }

    /// Ends the process that works on a run, where it holds the lock.
    pub(super) fn end_holder_of(&self, run: &str) {
        let held = self.holder().map(|holder| holder.run);
        if held.is_some_and(|held| run == held || run.starts_with(&format!("{held}_"))) {
            self.end_holder();
        }
    }

    /// Refuses a state whose journals are gone: nobody knows what was to be undone.
    ///
    /// # Errors
    /// When that is so.
    pub fn is_whole(&self) -> Result<(), Fault> {
        let was_used = self.dir.join("holder").exists();
        match was_used && !self.dir.join("txn").is_dir() {
            true => Err(Fault::new(format!(
                "the journals in {} are gone, and with them what earlier runs may have left to undo: \
                 `fleetctl host repair` lets runs begin again",
                self.dir.display()
            ))),
            false => Ok(()),
        }
    }

    /// Handlers that were notified and have not run yet, with the run that notified them.
    #[must_use]
    pub fn pending(&self) -> BTreeMap<String, String> {
        let text = fs::read(self.dir.join(&self.pending)).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// Takes in what conversations that shared a run have left. To be called with the lock held by nobody else.
    ///
    /// # Errors
    /// When the whole cannot be written.
    pub fn gather_pending(&self) -> Result<(), Fault> {
        let names = files::list(&self.dir).ok().flatten().unwrap_or_default();
        let beside = format!("{PENDING}_");
        let others: Vec<PathBuf> = names
            .iter()
            .filter(|name| name.starts_with(&beside))
            .map(|name| self.dir.join(name))
            .collect();
        if others.is_empty() {
            return Ok(());
        }
        let mut all = self.pending();
        for path in &others {
            let text = fs::read(path).unwrap_or_default();
            let left: BTreeMap<String, String> = serde_json::from_slice(&text).unwrap_or_default();
            all.extend(left);
        }
        self.set_pending(&all)?;
        for path in others {
            // What stays is taken in once more, which changes nothing.
            let _ = fs::remove_file(path);
        }
        Ok(())
    }

    /// Keeps the pending handlers, on disk when this returns.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn set_pending(&self, pending: &BTreeMap<String, String>) -> Result<(), Fault> {
        let path = self.dir.join(&self.pending);
        let text = serde_json::to_vec(pending).unwrap_or_default();
        let written = || -> io::Result<()> {
            if pending.is_empty() {
                return match fs::remove_file(&path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                    _ => files::sync_dir(&self.dir),
                };
            }
            let temp = self.dir.join(format!("new-{}", self.pending));
            let mut file = OpenOptions::new()
                .create(true)
                .write(true)
                .truncate(true)
                .mode(0o600)
                .open(&temp)?;
            file.write_all(&text)?;
            file.sync_all()?;
            fs::rename(&temp, &path)?;
            files::sync_dir(&self.dir)
        };
        written().map_err(|error| Fault::io("write", &path, error))
    }

    /// The directory itself.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// A run's own directory.
    pub(super) fn run_dir(&self, run: &str) -> PathBuf {
        self.dir.join("txn").join(run)
    }

    /// The names of the runs that changed something here.
    pub(super) fn runs(&self) -> Vec<String> {
        files::list(&self.dir.join("txn"))
            .ok()
            .flatten()
            .unwrap_or_default()
    }

    /// Who applied a plan here.
    #[must_use]
    pub fn applied(&self, plan: &str) -> Option<Applied> {
        let text = fs::read_to_string(self.dir.join("plans").join(plan_name(plan))).ok()?;
        let mut lines = text.lines();
        Some(Applied {
            run: lines.next()?.to_owned(),
            controller: lines.next().and_then(|line| line.parse().ok())?,
        })
    }

    /// Writes down that a run applies a plan: no other ever does.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn set_applied(&self, plan: &str, by: &Applied) -> Result<(), Fault> {
        let dir = self.dir.join("plans");
        let path = dir.join(plan_name(plan));
        let written = || -> io::Result<()> {
            DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
            replace(&path, &format!("{}\n{}\n", by.run, by.controller))?;
            files::sync_dir(&dir)?;
            files::sync_dir(&self.dir)
        };
        written().map_err(|error| Fault::io("write", &path, error))
    }

    /// Writes down that a controller left a run, and goes on with it in another conversation.
    pub(super) fn set_left(&self, run: &str, controller: u64) -> Result<(), Fault> {
        let dir = self.run_dir(run);
        let path = dir.join(LEFT);
        replace(&path, &controller.to_string())
            .and_then(|()| files::sync_dir(&dir))
            .map_err(|error| Fault::io("write", &path, error))
    }

    /// Whether this controller left the run, to go on with it.
    #[must_use]
    pub fn is_left_by(&self, run: &str, controller: u64) -> bool {
        let text = fs::read_to_string(self.run_dir(run).join(LEFT)).unwrap_or_default();
        text.parse() == Ok(controller)
    }

    /// Whether a journal has no end.
    #[must_use]
    pub fn is_open(&self, run: &str) -> bool {
        self.cut_off().iter().any(|open| open == run)
    }

    /// The journals of a run by its own conversations that ended and stayed, oldest first.
    #[must_use]
    pub fn journals_of(&self, run: &str) -> Vec<String> {
        let again = format!("{run}{AGAIN}");
        let mut found: Vec<String> = self.runs();
        found.retain(|name| name == run || name.starts_with(&again));
        found.retain(|name| self.journal_path(name).exists());
        found.sort_by_key(|name| (name.len(), name.clone()));
        found
    }

    /// The journals of a run before one of them, oldest first.
    pub(super) fn journals_before(&self, run: &str) -> Vec<String> {
        let first = run.split(AGAIN).next().unwrap_or(run);
        let mut found = self.journals_of(first);
        let own = found.iter().position(|name| name == run);
        found.truncate(own.unwrap_or(0));
        found
    }

    /// An unlinked file for content that is too large for memory.
    pub(crate) fn spool(&self) -> io::Result<File> {
        let dir = &self.dir;
        let path = dir.join(format!(
            "spool-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        let file = OpenOptions::new()
            .create_new(true)
            .read(true)
            .write(true)
            .mode(0o600)
            .open(&path)?;
        fs::remove_file(&path)?;
        Ok(file)
    }
}

/// Writes a file anew that its owner alone can read; on disk when this returns, but for its name.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let temp = path.with_extension("new");
    let mut file = OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(true)
        .mode(0o600)
        .open(&temp)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&temp, path)
}

/// The file that tells of a plan: the letters and digits of its hash.
fn plan_name(hash: &str) -> String {
    hash.chars().filter(char::is_ascii_alphanumeric).collect()
}

/// Whether a run's name can be a directory's.
#[must_use]
pub fn is_run_name(run: &str) -> bool {
    !run.is_empty()
        && run.len() <= 100
        && run
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

/// Writes a file that its owner alone can read.
pub(super) fn write_private(path: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?
        .write_all(text.as_bytes())
}

/// Who holds the lock, and from which controller.
fn read_holder(path: &Path) -> (Locked, u64) {
    let text = fs::read_to_string(path).unwrap_or_default();
    let mut lines = text.lines().map(str::to_owned);
    let mut next = || lines.next().unwrap_or_else(|| UNKNOWN.to_owned());
    let locked = Locked {
        who: next(),
        run: next(),
        since: next(),
    };
    (locked, next().parse().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_says_who_holds_it_and_dies_with_its_holder() {
        let dir = tempfile::tempdir().unwrap();
        let state = State::at(dir.path().join("state").to_str());
        state.prepare().unwrap();
        let lock = state.lock("ann@desk", "r1", 1, Duration::ZERO).unwrap();
        let Err(Refusal::Locked(locked)) =
            state.lock("bob@desk", "r2", 1, Duration::from_millis(60))
        else {
            panic!("not locked")
        };
        assert_eq!(
            (locked.who.as_str(), locked.run.as_str()),
            ("ann@desk", "r1")
        );
        let again = state.lock("ann@desk", "r1", 1, Duration::ZERO).unwrap();
        assert!(again.is_joined() && !lock.is_joined());
        drop(lock);
        assert!(matches!(
            state.lock("bob@desk", "r2", 1, Duration::ZERO),
            Err(Refusal::Locked(_))
        ));
        drop(again);
        state.lock("bob@desk", "r2", 1, Duration::ZERO).unwrap();
    }

    #[test]
    fn pending_handlers_survive() {
        let dir = tempfile::tempdir().unwrap();
        let state = State::at(dir.path().to_str());
        assert!(state.pending().is_empty());
        let pending = BTreeMap::from([("reload nginx".to_owned(), "r1".to_owned())]);
        state.set_pending(&pending).unwrap();
        assert_eq!(state.pending(), pending);
        state.set_pending(&BTreeMap::new()).unwrap();
        state.set_pending(&BTreeMap::new()).unwrap();
        assert!(state.pending().is_empty());
    }

    #[test]
    fn a_state_directory_that_others_can_write_to_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
        assert!(
            State::at(dir.path().to_str())
                .prepare()
                .unwrap_err()
                .message
                .contains("not fit")
        );
    }

    #[test]
    fn a_runs_name_cannot_lead_elsewhere() {
        assert!(is_run_name("20261201-0a1b"));
        for wrong in ["", "..", "a/b", ".hidden", "a b"] {
            assert!(!is_run_name(wrong), "{wrong}");
        }
    }
}
