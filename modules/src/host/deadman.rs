//! The dead-man of a run: the host undoes a change by itself that nobody confirms.
//!
//! It is armed on disk before the first write, by a real timer of systemd that survives a reboot. While the helper works the
//! deadline moves on with it; once the helper has ended it stands. Who renames the file `armed` has won: to `confirmed`, or to
//! `undoing`, and the other one does nothing. The deadline is in the clock that no time setting moves, and a boot that was not
//! meant makes it due at once: what cut the host off may be gone only with the change.

use std::fmt;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fleet_wire::{Effect, SettingKind, Undone, UndoneEffect, UndoneState, What};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use super::executor::{end_process, started};
use super::journal::{Lines, Record};
use super::timer::{self, LOOK};
use super::{Fault, State, files, undo};

const ARMED: &str = "armed";
const CONFIRMED: &str = "confirmed";
const UNDOING: &str = "undoing";
/// Says why a run was undone.
const WHY: &str = "why";
/// No helper works for longer than this without being taken for lost.
const HARDEST: Duration = Duration::from_secs(6 * 3600);
/// How long a boot may take that the run itself asked for.
const BOOT: Duration = Duration::from_secs(20 * 60);
/// The size of the file `armed`: it is written over at once, and in place.
const SIZE: usize = 1024;

/// Why a run cannot go on.
const UNDONE: &str = "this run is being undone by the host itself, for nobody confirmed it in time";

/// The dead-man of the run in hand.
#[derive(Debug)]
pub(super) struct DeadMan {
    timeout: Duration,
    /// Before whatever effect comes first, not only before one that may cut the host off.
    always: bool,
    signs: Signs,
    /// Whoever must be able to log in.
    logins: Vec<String>,
    tell: Tell,
    armed: Option<Armed>,
}

/// Tells the controller that the host looks after the run of this name.
pub struct Tell(pub Box<dyn Fn(&str)>);

impl fmt::Debug for Tell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tell")
    }
}

/// What shows that a run goes on: without any of them its deadline stands.
#[derive(Clone, Debug, Default)]
pub struct Signs {
    /// The controller was heard of.
    pub heard: Arc<AtomicBool>,
    /// A task is at work.
    pub busy: Arc<AtomicBool>,
}

#[derive(Debug)]
struct Armed {
    path: PathBuf,
    /// The helper renews the deadline no more.
    rests: Arc<AtomicBool>,
}

/// What the file says behind the deadline in its first line.
#[derive(Debug, Serialize, Deserialize)]
struct Brief {
    boot: String,
    timeout_s: u64,
    helper: PathBuf,
    pid: i32,
    started: String,
    /// Boots that are meant.
    boots: u32,
}

impl DeadMan {
    pub(super) fn new(
        timeout_s: u32,
        always: bool,
        signs: Signs,
        logins: Vec<String>,
        tell: Tell,
    ) -> Self {
        Self {
            timeout: Duration::from_secs(timeout_s.into()),
            always,
            signs,
            logins,
            tell,
            armed: None,
        }
    }

    /// Called before an effect is written down: arms where it is time to, and refuses where the host has undone the run.
    ///
    /// # Errors
    /// When it cannot be armed, or the run is being undone.
    pub(super) fn before(
        &mut self,
        state: &State,
        run: &str,
        effect: &Effect,
    ) -> Result<(), Fault> {
        match &self.armed {
            Some(armed) if armed.path.exists() => Ok(()),
            Some(_) => Err(Fault::new(UNDONE)),
            None if self.always || is_risky(effect, &self.logins) => {
                self.arm(state, run)?;
                (self.tell.0)(run);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Has the host look after the run. Where it does so already its file is taken over as it is: at no time does nobody look
    /// after a run that goes on.
    ///
    /// # Errors
    /// When the host has begun to undo it, or it cannot be armed.
    pub(super) fn arm(&mut self, state: &State, run: &str) -> Result<(), Fault> {
        let dir = state.run_dir(run);
        let path = dir.join(ARMED);
        let failed = |error| Fault::io("write", &path, error);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&dir)
            .map_err(failed)?;
        let brief = self.brief(state)?;
        let until = boottime() + self.timeout;
        let (goes_on, written) = match write_new(&path, until, &brief) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                (true, rewrite(&path, until, &brief))
            }
            written => (false, written),
        };
        let armed = written
            .and_then(|()| files::sync_dir(&dir))
            .and_then(|()| dir.parent().map_or(Ok(()), files::sync_dir))
            .map_err(failed)
            .and_then(|()| timer::start(state, run, &brief.helper));
        if let Err(fault) = armed {
            if !goes_on {
                // Nothing was done that anybody would have to look after.
                let _ = fs::remove_file(&path);
                timer::forget(state, run);
            }
            return Err(fault);
        }
        self.renew(path.clone());
        match path.exists() {
            true => Ok(()),
            false => Err(Fault::new(UNDONE)),
        }
    }

    fn brief(&self, state: &State) -> Result<Brief, Fault> {
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        Ok(Brief {
            boot: boot_id(),
            timeout_s: self.timeout.as_secs(),
            helper: timer::keep_helper(state)?,
            pid,
            started: started(pid).unwrap_or_default(),
            boots: 0,
        })
    }

    /// Moves the deadline on for as long as there are signs that the run goes on.
    fn renew(&mut self, path: PathBuf) {
        let rests = Arc::new(AtomicBool::new(false));
        self.armed = Some(Armed {
            path: path.clone(),
            rests: rests.clone(),
        });
        let (timeout, hardest, signs) = (self.timeout, boottime() + HARDEST, self.signs.clone());
        thread::spawn(move || {
            while !rests.load(Ordering::Acquire) && boottime() < hardest {
                if signs.heard.swap(false, Ordering::AcqRel) || signs.busy.load(Ordering::Acquire) {
                    // Where it cannot be written the deadline stands, and the change is undone.
                    let _ = put_off(&path, boottime() + timeout);
                }
                thread::sleep(timeout / 6);
            }
        });
    }

    /// Whether it is armed.
    pub(super) fn is_armed(&self) -> bool {
        self.armed.is_some()
    }

    /// The helper is about to end: from now on the deadline stands.
    pub(super) fn rest(&self) {
        if let Some(armed) = &self.armed {
            armed.rests.store(true, Ordering::Release);
            let _ = put_off(&armed.path, boottime() + self.timeout);
        }
    }

    /// The run goes on behind a boot that it asked for.
    pub(super) fn expect_boot(&self) {
        if let Some(armed) = &self.armed {
            armed.rests.store(true, Ordering::Release);
            let _ = put_off(&armed.path, boottime() + BOOT);
            if let Ok((until, mut brief)) = read(&armed.path) {
                brief.boots = 1;
                let _ = rewrite(&armed.path, until, &brief);
            }
        }
    }
}

impl State {
    /// Keeps a run that waits for being confirmed.
    #[must_use]
    pub fn confirm(&self, run: &str) -> Undone {
        let dir = self.run_dir(run);
        let won = fs::rename(dir.join(ARMED), dir.join(CONFIRMED)).is_ok();
        if won || self.is_confirmed(run) {
            let kept = self.keep_confirmed(run);
            timer::forget(self, run);
            let problem = kept.err().map(|fault| fault.message);
            let effects = problem.map(|problem| UndoneEffect {
                effect: "the journal, which the next run will look at again".to_owned(),
                problem: Some(problem),
            });
            return Undone {
                run: run.to_owned(),
                state: UndoneState::Kept,
                effects: effects.into_iter().collect(),
                why: None,
            };
        }
        self.how_it_ended(run)
    }

    /// Whether a run was confirmed, and its journal does not say so yet: the host went down in between.
    pub(super) fn is_confirmed(&self, run: &str) -> bool {
        self.run_dir(run).join(CONFIRMED).exists() && self.end_of(run).is_none()
    }

    /// Writes down that a confirmed run stays.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn keep_confirmed(&self, run: &str) -> Result<(), Fault> {
        let dir = self.run_dir(run);
        files::sync_dir(&dir).map_err(|error| Fault::io("confirm in", &dir, error))?;
        let (mut lines, _) = Lines::reopen(&self.journal_path(run))?;
        lines.end(UndoneState::Kept)?;
        self.run_ended(run, UndoneState::Kept, Some("it was confirmed"));
        Ok(())
    }

    /// Whoever holds the lock undoes a run: from here on it cannot be confirmed. The host's own undo may have begun; it waits
    /// for the lock, and finds the run ended.
    pub fn take_over(&self, run: &str) {
        let dir = self.run_dir(run);
        if fs::rename(dir.join(ARMED), dir.join(UNDOING)).is_ok() {
            timer::forget(self, run);
        }
    }

    /// Whether the host has begun to undo a run by itself, and is not done.
    #[must_use]
    pub fn is_being_undone(&self, run: &str) -> bool {
        self.run_dir(run).join(UNDOING).exists() && self.end_of(run).is_none()
    }

    /// Looks after a run no longer, for it goes on without being confirmed.
    pub fn take_back(&self, run: &str) {
        let dir = self.run_dir(run);
        if fs::rename(dir.join(ARMED), dir.join("taken-back")).is_ok() {
            timer::forget(self, run);
        }
    }

    /// The runs that wait for being confirmed, with the seconds that are left to each.
    #[must_use]
    pub fn armed(&self) -> Vec<(String, u64)> {
        let runs = self.runs().into_iter();
        runs.filter_map(|run| {
            let (until, _) = read(&self.run_dir(&run).join(ARMED)).ok()?;
            Some((run, until.saturating_sub(boottime()).as_secs()))
        })
        .collect()
    }

    /// How a run ended, waiting for an undo that is under way.
    #[must_use]
    pub fn how_it_ended(&self, run: &str) -> Undone {
        let patience = Instant::now() + Duration::from_secs(120);
        loop {
            let state = match self.end_of(run).as_deref() {
                Some("kept") => Some(UndoneState::Kept),
                Some("unchanged") => Some(UndoneState::Unchanged),
                Some("rolled_back") => Some(UndoneState::RolledBack),
                Some("rollback_conflict") => Some(UndoneState::RollbackConflict),
                Some(_) => Some(UndoneState::RollbackFailed),
                None if !self.journal_path(run).exists() => Some(UndoneState::NotFound),
                None => None,
            };
            let told = |state| Undone {
                run: run.to_owned(),
                state,
                effects: self.undone_effects(run),
                why: self.why(run),
            };
            match state {
                Some(state) => return told(state),
                None if Instant::now() > patience => return told(UndoneState::RollbackFailed),
                None => thread::sleep(Duration::from_millis(200)),
            }
        }
    }

    /// What an undo has written down.
    fn undone_effects(&self, run: &str) -> Vec<UndoneEffect> {
        let text = fs::read(self.journal_path(run)).unwrap_or_default();
        let records = super::journal::parse(&text).map(|(records, _)| records);
        let records = records.unwrap_or_default();
        let summary = |wanted: u32| {
            records.iter().find_map(|record| match record {
                Record::Intent(intent) if intent.id == wanted => Some(intent.effect.summary()),
                _ => None,
            })
        };
        let undone = records.iter().filter_map(|record| match record {
            Record::Undone { id, problem } => Some((*id, problem.clone())),
            _ => None,
        });
        undone
            .map(|(id, problem)| UndoneEffect {
                effect: summary(id).unwrap_or_default(),
                problem,
            })
            .collect()
    }

    /// Why a run was undone by the host itself.
    #[must_use]
    pub fn why(&self, run: &str) -> Option<String> {
        let text = fs::read_to_string(self.run_dir(run).join(WHY)).ok()?;
        Some(text.trim().to_owned())
    }

    fn end_of(&self, run: &str) -> Option<String> {
        let text = fs::read(self.journal_path(run)).ok()?;
        let (records, _) = super::journal::parse(&text).ok()?;
        match records.last() {
            Some(Record::End { state, .. }) => Some(state.clone()),
            _ => None,
        }
    }

    /// The timer's errand: undoes a run whose time is over. With `stays` it looks until that is so or the run has ended.
    pub fn look_after(&self, run: &str, stays: bool) {
        while !self.looked_after(run) && stays {
            thread::sleep(Duration::from_secs(LOOK));
        }
    }

    /// Whether there is nothing left to look after.
    fn looked_after(&self, run: &str) -> bool {
        let path = self.run_dir(run).join(ARMED);
        let mut executor = None;
        let why = match read(&path) {
            Ok((until, mut brief)) => {
                let booted = brief.boot != boot_id();
                if booted && brief.boots > 0 {
                    brief.boots -= 1;
                    brief.boot = boot_id();
                    let _ = rewrite(&path, boottime() + BOOT, &brief);
                    return false;
                }
                if !booted && boottime() < until {
                    return false;
                }
                if booted {
                    Some("the host was booted before the run was confirmed".to_owned())
                } else {
                    let why = format!("nobody confirmed the run within {} s", brief.timeout_s);
                    executor = Some(brief);
                    Some(why)
                }
            }
            // Confirmed, undone, or never armed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            // Nobody can say how much time is left, and a host that is cut off does not come back by waiting.
            Err(error) => Some(format!("{} cannot be read ({error})", path.display())),
        };
        if let Some(why) = why {
            let _ = super::state::write_private(&self.run_dir(run).join(WHY), &why);
            if fs::rename(&path, self.run_dir(run).join(UNDOING)).is_ok() {
                let _ = files::sync_dir(&self.run_dir(run));
            }
        }
        let over = !self.is_being_undone(run) || self.undo_by_itself(run, executor.as_ref());
        if over {
            timer::forget(self, run);
            self.forget_unbegun(run);
        }
        over
    }

    /// A helper that was killed before the first line of its journal has left nothing but a directory.
    fn forget_unbegun(&self, run: &str) {
        let dir = self.run_dir(run);
        if dir.is_dir() && !self.journal_path(run).exists() {
            let _ = fs::remove_dir_all(dir);
            timer::forget(self, run);
        }
    }

    /// Whether it came to that: the lock may be held for long.
    fn undo_by_itself(&self, run: &str, executor: Option<&Brief>) -> bool {
        if let Some(brief) = executor {
            end_process(brief.pid, &brief.started);
        }
        // It may have gone on just now, with another process.
        self.end_holder_of(run);
        let Ok(_lock) = self.lock("the host itself", run, 0, Duration::from_secs(300)) else {
            return false;
        };
        if self.end_of(run).is_none() {
            let undone = undo::rollback(self, run);
            // What the run did before it was connected anew.
            for before in self.journals_before(run).iter().rev() {
                let _ = undo::rollback_one(self, before);
            }
            let _ = undo::forget_pending(self, &undone.run);
        }
        true
    }
}

/// Whether an effect may cut the host off from its controller: what has to do with logging in, with the network and with
/// what it lets through.
fn is_risky(effect: &Effect, logins: &[String]) -> bool {
    const PATHS: [&str; 19] = [
        "/etc/ssh/",
        "/etc/sudoers",
        "/etc/pam.d/",
        "/etc/security/",
        "/etc/passwd",
        "/etc/shadow",
        "/etc/group",
        "/etc/nsswitch.conf",
        "/etc/network",
        "/etc/netplan",
        "/etc/systemd/network/",
        "/etc/NetworkManager",
        "/etc/resolv.conf",
        "/etc/hosts.allow",
        "/etc/hosts.deny",
        "/etc/nftables",
        "/etc/iptables",
        "/etc/firewalld",
        "/etc/ufw",
    ];
    const SERVICES: [&str; 11] = [
        "ssh.service",
        "sshd.service",
        "ssh.socket",
        "networking.service",
        "systemd-networkd.service",
        "NetworkManager.service",
        "nftables.service",
        "iptables.service",
        "netfilter-persistent.service",
        "firewalld.service",
        "ufw.service",
    ];
    const PACKAGES: [&str; 12] = [
        "openssh-server",
        "sudo",
        "libpam",
        "ifupdown",
        "netplan",
        "network-manager",
        "systemd",
        "nftables",
        "iptables",
        "firewalld",
        "ufw",
        "netbase",
    ];
    match &effect.what {
        What::File { path, .. } => {
            let of_service = |name: &&str| path.contains(&format!("/systemd/system/{name}"));
            PATHS.iter().any(|risky| path.starts_with(risky))
                || path.contains("/.ssh/")
                || SERVICES.iter().any(of_service)
        }
        What::Unit { unit, .. } => SERVICES.contains(&unit.as_str()),
        What::Sysctl { key, .. } => {
            let last = key.rsplit('.').next().unwrap_or_default();
            key.starts_with("net.")
                && (["ip_forward", "forwarding", "rp_filter", "disable_ipv6"].contains(&last)
                    || last.starts_with("accept_"))
        }
        What::Setting { kind, .. } => {
            matches!(
                kind,
                SettingKind::FirewallRule | SettingKind::FirewallPolicy
            )
        }
        // One that is there already: a new one cuts nobody off.
        What::Package { name, before, .. } => {
            before.is_some() && PACKAGES.iter().any(|risky| name.starts_with(risky))
        }
        // A line that is there and tells of who logs in: a user, or a group with its members.
        What::Account { lines, .. } => {
            let before = lines.iter().filter_map(|line| line.before.as_deref());
            before
                .flat_map(|line| line.split([':', ',']))
                .any(|word| logins.iter().any(|login| login == word))
        }
        What::Command { .. } => false,
    }
}

fn boot_id() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}

/// The time since the boot, sleep included: no clock setting moves it.
fn boottime() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    Duration::new(
        u64::try_from(now.tv_sec).unwrap_or_default(),
        u32::try_from(now.tv_nsec).unwrap_or_default(),
    )
}

fn line(until: Duration) -> String {
    format!("{:020}\n", until.as_millis())
}

fn text(until: Duration, brief: &Brief) -> io::Result<String> {
    let text = format!("{}{}", line(until), serde_json::to_string(brief)?);
    Ok(format!("{text:<SIZE$}"))
}

fn write_new(path: &Path, until: Duration, brief: &Brief) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text(until, brief)?.as_bytes())?;
    file.sync_all()
}

/// Moves the deadline, in place: a file that has been renamed meanwhile is not made anew.
fn put_off(path: &Path, until: Duration) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    file.write_all_at(line(until).as_bytes(), 0)?;
    file.sync_data()
}

/// The same with another brief.
fn rewrite(path: &Path, until: Duration, brief: &Brief) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    file.write_all_at(text(until, brief)?.as_bytes(), 0)?;
    file.sync_all()
}

/// What the file says. One that is just being written may look garbled, but not for long.
fn read(path: &Path) -> io::Result<(Duration, Brief)> {
    let once = || -> io::Result<(Duration, Brief)> {
        let text = fs::read_to_string(path)?;
        let garbled = || io::Error::from(io::ErrorKind::InvalidData);
        let (until, brief) = text.split_once('\n').ok_or_else(garbled)?;
        let until = until.parse().map_err(|_| garbled())?;
        Ok((Duration::from_millis(until), serde_json::from_str(brief)?))
    };
    for _ in 0..5 {
        match once() {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                thread::sleep(Duration::from_millis(50));
            }
            said => return said,
        }
    }
    once()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn brief() -> Brief {
        Brief {
            boot: boot_id(),
            timeout_s: 1,
            helper: "/nonexistent".into(),
            pid: i32::MAX,
            started: String::new(),
            boots: 0,
        }
    }

    #[test]
    fn of_confirm_and_undo_one_wins_a_thousand_times() {
        let dir = tempfile::tempdir().unwrap();
        for _ in 0..1000 {
            let run = dir.path().join("run");
            fs::create_dir(&run).unwrap();
            write_new(&run.join(ARMED), boottime(), &brief()).unwrap();
            let both = [CONFIRMED, UNDOING].map(|to| {
                let run = run.clone();
                thread::spawn(move || fs::rename(run.join(ARMED), run.join(to)).is_ok())
            });
            let won: Vec<bool> = both.map(|thread| thread.join().unwrap()).into();
            assert_eq!(won.iter().filter(|won| **won).count(), 1);
            assert_eq!(won[0], run.join(CONFIRMED).exists());
            assert_eq!(won[1], run.join(UNDOING).exists());
            fs::remove_dir_all(&run).unwrap();
        }
    }

    #[test]
    fn a_deadline_is_moved_only_while_it_is_armed() {
        let dir = tempfile::tempdir().unwrap();
        let armed = dir.path().join(ARMED);
        write_new(&armed, Duration::from_secs(5), &brief()).unwrap();
        put_off(&armed, Duration::from_secs(70)).unwrap();
        assert_eq!(read(&armed).unwrap().0, Duration::from_secs(70));
        fs::rename(&armed, dir.path().join(UNDOING)).unwrap();
        put_off(&armed, Duration::from_secs(90)).unwrap_err();
        assert!(!armed.exists());
    }

    #[test]
    fn what_has_to_do_with_logging_in_and_the_network_is_risky() {
        let set = |key: &str| Effect {
            what: What::Sysctl {
                key: key.into(),
                before: "0".into(),
                after: "1".into(),
            },
            undo: fleet_wire::UndoClass::Exact,
            assumed: false,
            secret: false,
        };
        assert!(is_risky(&set("net.ipv4.ip_forward"), &[]));
        assert!(is_risky(&set("net.ipv6.conf.all.accept_ra"), &[]));
        assert!(!is_risky(&set("net.core.somaxconn"), &[]));
        let line = |before: Option<&str>| Effect {
            what: What::Account {
                account: "group sudo".into(),
                lines: vec![fleet_wire::AccountLine {
                    path: "/etc/group".into(),
                    before: before.map(str::to_owned),
                    after: None,
                }],
            },
            ..set("")
        };
        let ann = ["ann".to_owned()];
        assert!(is_risky(&line(Some("sudo:x:27:bob,ann")), &ann));
        assert!(!is_risky(&line(Some("sudo:x:27:bob,anna")), &ann));
        assert!(!is_risky(&line(None), &ann));
    }
}
