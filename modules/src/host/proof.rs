//! Proofs that an activation took: an exit status of 0 proves nothing.
//!
//! `nginx -t` and a reload both succeed while the old configuration stays live (a taken port, a
//! changed shared zone). So the workers are looked at, and the error log.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use fleet_wire::UnitAction;

use super::Fault;
use super::process::read_only;
use super::units::{UnitState, last_words, show};

/// How long a new generation of workers may take.
const RELOAD: Duration = Duration::from_secs(5);
/// How long a service that only forks must live.
const START: Duration = Duration::from_secs(1);
/// How long nginx is silent once it has given up.
const QUIET: Duration = Duration::from_millis(700);
/// Between two looks.
const STEP: Duration = Duration::from_millis(25);

/// What was seen before an activation, to be compared with what is after it.
pub(super) struct Proof {
    unit: String,
    action: UnitAction,
    nginx: Option<Nginx>,
}

impl Proof {
    /// Looks at a unit before its activation; a configuration that nginx itself refuses ends here.
    pub(super) fn before(unit: &str, action: UnitAction) -> Result<Self, Fault> {
        let starts = matches!(
            action,
            UnitAction::Start | UnitAction::Restart | UnitAction::Reload
        );
        let mut nginx = None;
        if unit == "nginx.service" && starts {
            let tested = read_only(&["nginx", "-t", "-q"])?;
            if !tested.ok() {
                return Err(Fault::new(format!(
                    "cannot {action} {unit}, for `nginx -t` refuses its configuration: {}",
                    tested.complaint()
                ))
                .with("rc", tested.rc)
                .with("stderr", tested.error_text()));
            }
            if action == UnitAction::Reload {
                nginx = Some(Nginx::see(show(unit)?.main_pid));
            }
        }
        Ok(Self {
            unit: unit.to_owned(),
            action,
            nginx,
        })
    }

    /// Looks again until the activation is proved or its time is over.
    pub(super) fn after(&self) -> Result<(), Fault> {
        match (self.action, &self.nginx) {
            (UnitAction::Reload, Some(nginx)) => nginx.reloaded(),
            (UnitAction::Start | UnitAction::Restart | UnitAction::Reload, _) => self.lives(),
            (UnitAction::Stop, _) => {
                let state = show(&self.unit)?;
                if state.running() {
                    Err(self.state_fault(&state))
                } else {
                    Ok(())
                }
            }
            _ => Ok(()),
        }
    }

    fn lives(&self) -> Result<(), Fault> {
        let state = show(&self.unit)?;
        // systemd calls a simple service active as soon as it has forked, whatever becomes of it.
        let watched = matches!(state.kind.as_str(), "simple" | "exec" | "idle");
        let deadline = Instant::now() + if watched { START } else { Duration::ZERO };
        let mut state = state;
        while state.running() && Instant::now() < deadline {
            thread::sleep(STEP * 4);
            state = show(&self.unit)?;
        }
        let done = state.kind == "oneshot" && state.active == "inactive";
        if state.running() || done || state.skipped() {
            Ok(())
        } else {
            Err(self.state_fault(&state))
        }
    }

    fn state_fault(&self, state: &UnitState) -> Fault {
        let Self { unit, action, .. } = self;
        Fault::new(format!(
            "{unit} is {} ({}) after the {action}{}",
            state.active,
            state.sub,
            last_words(unit)
        ))
    }
}

/// A running nginx: its master, its workers, and how far its error logs go.
struct Nginx {
    master: u32,
    workers: BTreeSet<u32>,
    logs: Vec<(PathBuf, u64)>,
}

impl Nginx {
    fn see(master: u32) -> Self {
        let logs = error_logs(master).into_iter().map(|log| {
            let size = fs::metadata(&log).map_or(0, |data| data.len());
            (log, size)
        });
        Self {
            master,
            workers: workers(master).map(|(pid, _)| pid).collect(),
            logs: logs.collect(),
        }
    }

    fn reloaded(&self) -> Result<(), Fault> {
        let deadline = Instant::now() + RELOAD;
        loop {
            let now: Vec<(u32, String)> = workers(self.master).collect();
            if let Some(line) = self.complaint(&now) {
                self.settle(deadline);
                return Err(Fault::new(format!(
                    "nginx did not take its new configuration and runs the old one; its error log says: {line}"
                )));
            }
            let fresh = now.iter().any(|(pid, _)| !self.workers.contains(pid));
            let old = now
                .iter()
                .filter(|(pid, title)| {
                    self.workers.contains(pid) && !title.contains("shutting down")
                })
                .count();
            let done = fresh && old == 0;
            // systemd is asked at the end only: asking it costs more than all the looks at the processes.
            if done || !Path::new(&format!("/proc/{}", self.master)).exists() {
                let master = show("nginx.service")?.main_pid;
                if master != self.master {
                    return Err(Fault::new(format!(
                        "nginx did not reload: its master was process {} and is {master} now",
                        self.master
                    )));
                }
            }
            if done {
                return Ok(());
            }
            if Instant::now() >= deadline {
                let seen = if fresh {
                    format!("{old} old workers still serve")
                } else {
                    "no new worker has started".to_owned()
                };
                return Err(Fault::new(format!(
                    "nginx did not reload within {} s: {seen}",
                    RELOAD.as_secs()
                )));
            }
            thread::sleep(STEP);
        }
    }

    /// Waits until nginx has given up: it tries to bind five times in 2.5 s and answers no signal in between,
    /// and its later complaints must not be taken for those of the next reload.
    fn settle(&self, deadline: Instant) {
        let size = || -> u64 {
            self.logs
                .iter()
                .filter_map(|(log, _)| fs::metadata(log).ok())
                .map(|data| data.len())
                .sum()
        };
        let (mut last, mut since) = (size(), Instant::now());
        while since.elapsed() < QUIET && Instant::now() < deadline {
            thread::sleep(STEP);
            if size() != last {
                (last, since) = (size(), Instant::now());
            }
        }
    }

    /// A line of a grave level that the master or a new worker has written since.
    fn complaint(&self, workers: &[(u32, String)]) -> Option<String> {
        let ours: Vec<String> = workers
            .iter()
            .map(|(pid, _)| *pid)
            .filter(|pid| !self.workers.contains(pid))
            .chain([self.master])
            .map(|pid| format!("] {pid}#"))
            .collect();
        self.logs.iter().find_map(|(log, from)| {
            let text = tail(log, *from);
            let grave = |line: &&str| {
                ["[emerg]", "[alert]", "[crit]"]
                    .iter()
                    .any(|level| line.contains(level))
                    && ours.iter().any(|pid| line.contains(pid.as_str()))
            };
            text.lines().find(grave).map(str::to_owned)
        })
    }
}

/// The worker processes of a master, each with its title.
fn workers(master: u32) -> impl Iterator<Item = (u32, String)> {
    let children =
        fs::read_to_string(format!("/proc/{master}/task/{master}/children")).unwrap_or_default();
    let pids: Vec<u32> = children
        .split_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect();
    pids.into_iter().filter_map(|pid| {
        let title = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let title = String::from_utf8_lossy(&title).into_owned();
        title.contains("worker process").then_some((pid, title))
    })
}

/// The error logs that a master has open: its standard error, and files that are named so.
fn error_logs(master: u32) -> BTreeSet<PathBuf> {
    let Ok(open) = fs::read_dir(format!("/proc/{master}/fd")) else {
        return BTreeSet::new();
    };
    open.filter_map(Result::ok)
        .filter_map(|fd| Some((fd.file_name(), fs::read_link(fd.path()).ok()?)))
        .filter(|(fd, file)| {
            let named = file
                .file_name()
                .is_some_and(|name| name.to_string_lossy().contains("error"));
            (named || fd == "2") && file.is_absolute() && !file.starts_with("/dev")
        })
        .map(|(_, file)| file)
        .filter(|file| file.is_file())
        .collect()
}

/// What a file has beyond a place; all of it where it was begun anew.
fn tail(path: &Path, from: u64) -> String {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let from = if file.metadata()?.len() < from {
            0
        } else {
            from
        };
        file.seek(SeekFrom::Start(from))?;
        let mut text = Vec::new();
        file.take(1 << 20).read_to_end(&mut text)?;
        Ok(text)
    };
    String::from_utf8_lossy(&read().unwrap_or_default()).into_owned()
}
