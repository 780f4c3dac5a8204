//! The dead-man of a run: the host undoes a change by itself that nobody confirms.
//!
//! It is armed on disk before the first write, by a real timer of systemd that survives a reboot. While the helper works the
//! deadline moves on with it; once the helper has ended it stands. Who renames the file `armed` has won: to `confirmed`, or to
//! `undoing`, and the other one does nothing. The deadline is in the clock that no time setting moves, and a boot that was not
//! meant makes it due at once: what cut the host off may be gone only with the change.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fleet_wire::{Effect, SettingKind, Undone, UndoneEffect, UndoneState, What};
use rustix::process::{Pid, Signal, kill_process};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use super::journal::{Lines, Record};
use super::{Fault, State, files, process, undo, units};

const ARMED: &str = "armed";
const CONFIRMED: &str = "confirmed";
const UNDOING: &str = "undoing";
/// Says why a run was undone.
const WHY: &str = "why";
/// Where the timers are.
const UNITS: &str = "/etc/systemd/system";
/// No helper works for longer than this without being taken for lost.
const HARDEST: Duration = Duration::from_secs(6 * 3600);
/// How long a boot may take that the run itself asked for.
const BOOT: Duration = Duration::from_secs(20 * 60);
/// How often the timer looks.
const LOOK: u64 = 5;

/// The dead-man of the run in hand.
#[derive(Debug)]
pub(super) struct DeadMan {
    timeout: Duration,
    /// Before whatever effect comes first, not only before one that may cut the host off.
    always: bool,
    signs: Signs,
    armed: Option<Armed>,
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
    pub(super) fn new(timeout_s: u32, always: bool, signs: Signs) -> Self {
        Self {
            timeout: Duration::from_secs(timeout_s.into()),
            always,
            signs,
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
            Some(_) => Err(Fault::new(
                "this run is being undone by the host itself, for nobody confirmed it in time",
            )),
            None if self.always || is_risky(effect) => self.arm(state, run),
            None => Ok(()),
        }
    }

    fn arm(&mut self, state: &State, run: &str) -> Result<(), Fault> {
        let dir = state.run_dir(run);
        let path = dir.join(ARMED);
        let failed = |what: &str| {
            let path = path.clone();
            let what = what.to_owned();
            move |error: io::Error| Fault::io(&what, &path, error)
        };
        let helper = std::env::current_exe().map_err(failed("arm"))?;
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        let brief = Brief {
            boot: boot_id(),
            timeout_s: self.timeout.as_secs(),
            helper,
            pid,
            started: started(pid).unwrap_or_default(),
            boots: 0,
        };
        write_new(&path, boottime() + self.timeout, &brief).map_err(failed("write"))?;
        files::sync_dir(&dir).map_err(failed("write"))?;
        watch(state, run, &brief)?;
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
        Ok(())
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
        if fs::rename(dir.join(ARMED), dir.join(CONFIRMED)).is_ok() {
            let kept = files::sync_dir(&dir)
                .map_err(|error| Fault::io("confirm in", &dir, error))
                .and_then(|()| Lines::reopen(&self.journal_path(run)))
                .and_then(|(mut lines, _)| lines.end(UndoneState::Kept));
            self.run_ended(run, UndoneState::Kept, Some("it was confirmed"));
            forget(self, run);
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

    /// Wins against the dead-man, where there is one: the run is undone by who asks now.
    #[must_use]
    pub fn take_over(&self, run: &str) -> bool {
        let dir = self.run_dir(run);
        match fs::rename(dir.join(ARMED), dir.join(UNDOING)) {
            Ok(()) => {
                forget(self, run);
                true
            }
            // It was not armed, or is over.
            Err(_) => !dir.join(UNDOING).exists() || self.end_of(run).is_some(),
        }
    }

    /// Takes a run back that the host looks after, for it goes on: the dead-man is armed anew before its next effect.
    #[must_use]
    pub fn take_back(&self, run: &str) -> bool {
        let dir = self.run_dir(run);
        let taken = fs::rename(dir.join(ARMED), dir.join("taken-back")).is_ok();
        forget(self, run);
        taken
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
        let path = self.run_dir(run).join(ARMED);
        loop {
            let Ok((until, mut brief)) = read(&path) else {
                // Confirmed, undone, or never armed: but an undo that was cut off is to be gone on with.
                if self.run_dir(run).join(UNDOING).exists() && self.end_of(run).is_none() {
                    self.undo_by_itself(run, None);
                }
                return forget(self, run);
            };
            let booted = brief.boot != boot_id();
            if booted && brief.boots > 0 {
                brief.boots -= 1;
                brief.boot = boot_id();
                let _ = rewrite(&path, boottime() + BOOT, &brief);
                return;
            }
            if booted || boottime() >= until {
                let why = match booted {
                    true => "the host was booted before the run was confirmed".to_owned(),
                    false => format!("nobody confirmed the run within {} s", brief.timeout_s),
                };
                let _ = super::state::write_private(&self.run_dir(run).join(WHY), &why);
                if fs::rename(&path, self.run_dir(run).join(UNDOING)).is_ok() {
                    let _ = files::sync_dir(&self.run_dir(run));
                    self.undo_by_itself(run, (!booted).then_some(&brief));
                }
                return forget(self, run);
            }
            if !stays {
                return;
            }
            thread::sleep(Duration::from_secs(LOOK));
        }
    }

    fn undo_by_itself(&self, run: &str, executor: Option<&Brief>) {
        if let Some(brief) = executor {
            end_process(brief.pid, &brief.started);
        }
        // Whoever holds the lock now is about to undo this run as well, for it has no end.
        let Ok(_lock) = self.lock("the host itself", run, 0, Duration::from_secs(300)) else {
            return;
        };
        if self.end_of(run).is_none() {
            let undone = undo::rollback(self, run);
            let _ = undo::forget_pending(self, &undone.run);
        }
    }
}

/// Whether an effect may cut the host off from its controller: what has to do with logging in, with the network and with
/// what it lets through.
fn is_risky(effect: &Effect) -> bool {
    const PATHS: [&str; 15] = [
        "/etc/ssh/",
        "/etc/sudoers",
        "/etc/pam.d/",
        "/etc/security/",
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
    const SERVICES: [&str; 10] = [
        "ssh.service",
        "sshd.service",
        "ssh.socket",
        "networking.service",
        "systemd-networkd.service",
        "NetworkManager.service",
        "nftables.service",
        "iptables.service",
        "firewalld.service",
        "ufw.service",
    ];
    match &effect.what {
        What::File { path, .. } => PATHS.iter().any(|risky| path.starts_with(risky)),
        What::Unit { unit, .. } => SERVICES.contains(&unit.as_str()),
        What::Sysctl { key, .. } => [
            "ip_forward",
            "forwarding",
            "rp_filter",
            "accept_local",
            "accept_redirects",
            "disable_ipv6",
        ]
        .iter()
        .any(|risky| key.ends_with(risky)),
        What::Setting { kind, .. } => {
            matches!(
                kind,
                SettingKind::FirewallRule | SettingKind::FirewallPolicy
            )
        }
        What::Package { .. } | What::Command { .. } | What::Account { .. } => false,
    }
}

/// Has the timer made, and sees that it runs; without systemd a process of its own looks after the run.
fn watch(state: &State, run: &str, brief: &Brief) -> Result<(), Fault> {
    let root = rustix::process::geteuid().is_root();
    if !root || units::present().is_err() {
        return Command::new(&brief.helper)
            .args(["look-after", "--stay"])
            .args([state.dir(), Path::new(run)])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map(drop)
            .map_err(|error| {
                Fault::io(
                    "start a process that looks after the run with",
                    &brief.helper,
                    error,
                )
            });
    }
    let name = unit(state, run);
    let timer = format!("{name}.timer");
    let service = format!(
        "[Unit]\nDescription=fleetctl: undo of run {run}, unless it is confirmed\n\n[Service]\nType=oneshot\nExecStart={} look-after {} {run}\n",
        brief.helper.display(),
        state.dir().display()
    );
    let text = format!(
        "[Unit]\nDescription=fleetctl: looks after run {run}\n\n[Timer]\nOnActiveSec={LOOK}s\nOnBootSec={LOOK}s\nOnUnitInactiveSec={LOOK}s\nAccuracySec=1s\n\n[Install]\nWantedBy=timers.target\n"
    );
    let units = Path::new(UNITS);
    let made = || -> io::Result<()> {
        write_unit(&units.join(format!("{name}.service")), &service)?;
        write_unit(&units.join(&timer), &text)?;
        let wants = units.join("timers.target.wants");
        fs::create_dir_all(&wants)?;
        symlink(units.join(&timer), wants.join(&timer))?;
        files::sync_dir(&wants)?;
        files::sync_dir(units)
    };
    made().map_err(|error| Fault::io("make a timer in", units, error))?;
    let run = |argv: &[&str]| process::read_only(argv);
    run(&["systemctl", "daemon-reload"])?;
    run(&["systemctl", "start", &timer])?;
    let active = run(&["systemctl", "is-active", &timer])?;
    match active.ok() {
        true => Ok(()),
        false => {
            forget(state, &timer);
            Err(Fault::new(format!(
                "the timer {timer} that is to undo this run does not run ({}): nothing was changed",
                active.text().trim()
            )))
        }
    }
}

fn write_unit(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o644)
        .open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Takes the timer away.
fn forget(state: &State, run: &str) {
    let name = unit(state, run);
    let timer = format!("{name}.timer");
    let path = Path::new(UNITS).join(&timer);
    if !path.exists() {
        return;
    }
    // What stays looks for a run that has ended, and then takes itself away.
    let _ = fs::remove_file(Path::new(UNITS).join("timers.target.wants").join(&timer));
    let _ = fs::remove_file(&path);
    let _ = fs::remove_file(Path::new(UNITS).join(format!("{name}.service")));
    let _ = process::read_only(&["systemctl", "stop", "--no-block", &timer]);
    let _ = process::read_only(&["systemctl", "daemon-reload"]);
}

/// The name of the units: a machine may keep several states, each with a run of that name.
fn unit(state: &State, run: &str) -> String {
    use sha2::{Digest, Sha256};
    let place = super::hex(&Sha256::digest(state.dir().as_os_str().as_encoded_bytes())[..4]);
    format!("fleetctl-undo-{run}-{place}")
}

/// Ends the process of this number that was started then, and no other.
pub(super) fn end_process(number: i32, since: &str) {
    let Some(pid) = Pid::from_raw(number) else {
        return;
    };
    let lives = || started(number).is_some_and(|started| started == since);
    for signal in [Signal::TERM, Signal::KILL] {
        if !lives() {
            return;
        }
        let _ = kill_process(pid, signal);
        for _ in 0..20 {
            if !lives() {
                return;
            }
            thread::sleep(Duration::from_millis(100));
        }
    }
}

/// When a process was started, in the kernel's own ticks: proc(5), field 22 of `stat`.
pub(super) fn started(pid: i32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, behind) = stat.rsplit_once(')')?;
    let mut fields = behind.split_whitespace();
    // A process that has ended and was not waited for works no more.
    if fields.next()? == "Z" {
        return None;
    }
    fields.nth(18).map(str::to_owned)
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

fn write_new(path: &Path, until: Duration, brief: &Brief) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(line(until).as_bytes())?;
    file.write_all(&serde_json::to_vec(brief)?)?;
    file.sync_all()
}

/// Moves the deadline, in place: a file that has been renamed meanwhile is not made anew.
fn put_off(path: &Path, until: Duration) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    file.write_all_at(line(until).as_bytes(), 0)?;
    file.sync_data()
}

/// The same with another brief, which is no longer than the one that is there.
fn rewrite(path: &Path, until: Duration, brief: &Brief) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    let text = format!("{}{}", line(until), serde_json::to_string(brief)?);
    file.write_all_at(text.as_bytes(), 0)?;
    file.set_len(text.len() as u64)?;
    file.sync_all()
}

fn read(path: &Path) -> io::Result<(Duration, Brief)> {
    let text = fs::read_to_string(path)?;
    let garbled = || io::Error::from(io::ErrorKind::InvalidData);
    let (until, brief) = text.split_once('\n').ok_or_else(garbled)?;
    let until = until.parse().map_err(|_| garbled())?;
    Ok((Duration::from_millis(until), serde_json::from_str(brief)?))
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
        assert!(is_risky(&set("net.ipv4.ip_forward")));
        assert!(!is_risky(&set("net.core.somaxconn")));
    }

    #[test]
    fn a_process_is_known_by_when_it_was_started() {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        assert!(started(own).unwrap().parse::<u64>().is_ok());
        assert_eq!(started(i32::MAX), None);
    }
}
