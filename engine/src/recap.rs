//! A run in numbers, and the exit code that it gives.

use std::collections::BTreeMap;

use fleet_wire::{Status, UndoneState};
use serde::Serialize;

use crate::event::{Event, HostEnd};

/// Counts of tasks by host, and how each host ended.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Recap {
    /// By host name.
    pub hosts: BTreeMap<String, HostRecap>,
}

/// One host's counts. A task with a loop counts once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HostRecap {
    /// Tasks that went through, changed ones among them.
    pub ok: usize,
    /// Tasks that changed something.
    pub changed: usize,
    /// Effects, performed or planned.
    pub effects: usize,
    /// Tasks that failed.
    pub failed: usize,
    /// Failed tasks that `ignore_errors` let pass.
    pub ignored: usize,
    /// Tasks that did not apply.
    pub skipped: usize,
    /// Tasks that a plan cannot decide.
    pub unknown: usize,
    /// A task would have done what the plan did not show, as the host had changed since.
    pub stale: bool,
    /// How the host ended.
    pub end: Option<HostEnd>,
    #[serde(skip)]
    last: Option<(usize, Rank)>,
}

/// What a loop counts as: the gravest of its items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Skipped,
    Ok,
    Changed,
    Unknown,
    Ignored,
    Failed,
}

impl Recap {
    /// Takes an event of a run in.
    pub fn take(&mut self, event: &Event) {
        match event {
            Event::TaskEnded(ended) => {
                let rank = match ended.status {
                    Status::Failed if ended.ignored => Rank::Ignored,
                    Status::Failed => Rank::Failed,
                    Status::Unknown => Rank::Unknown,
                    Status::Changed => Rank::Changed,
                    Status::Ok => Rank::Ok,
                    Status::Skipped => Rank::Skipped,
                    Status::NotReached | Status::NotNotified => return,
                };
                let host = self.hosts.entry(ended.host.clone()).or_default();
                host.effects += ended.effects.len();
                host.stale |= rank == Rank::Failed
                    && ended.result.get("stale").is_some_and(|stale| stale == true);
                host.count(ended.task.id, rank, ended.index);
            }
            Event::HostEnded { host, end } => {
                self.hosts.entry(host.clone()).or_default().end = Some(end.clone());
            }
            _ => {}
        }
    }

    /// The run's exit code, as the documentation lists them. When several hold: 7, 5, 8, 3, 4, 6, 9, 10.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        let code = |host: &HostRecap| match host.end.as_ref().map(code) {
            Some(3) if host.stale => 5,
            code => code.unwrap_or(0),
        };
        let codes: Vec<u8> = self.hosts.values().map(code).collect();
        [7, 5, 8, 3, 4, 6, 9, 10, 130]
            .into_iter()
            .find(|code| codes.contains(code))
            .unwrap_or(0)
    }

    /// The code that Ansible gives: 4 where a host could not be reached (or worked with), else 2 where one failed.
    #[must_use]
    pub fn ansible_exit_code(&self) -> u8 {
        let ends = || self.hosts.values().filter_map(|host| host.end.as_ref());
        let failed = |end: &HostEnd| matches!(end, HostEnd::Failed { .. });
        if ends().any(|end| !failed(end) && code(end) != 0) {
            4
        } else if ends().any(failed) {
            2
        } else {
            0
        }
    }

    /// Whether any host changed, or would.
    #[must_use]
    pub fn changed(&self) -> bool {
        self.hosts
            .values()
            .any(|host| host.changed > 0 || host.unknown > 0)
    }
}

fn code(end: &HostEnd) -> u8 {
    let undone = |undone: &Option<fleet_wire::Undone>, otherwise| match undone
        .as_ref()
        .map(|undone| undone.state)
    {
        Some(UndoneState::RollbackConflict | UndoneState::RollbackFailed) => 7,
        _ => otherwise,
    };
    match end {
        HostEnd::Done => 0,
        HostEnd::Unreachable { .. } => 4,
        HostEnd::Locked { .. } => 6,
        HostEnd::Refused { person: true, .. } | HostEnd::Lost { .. } => 7,
        HostEnd::Refused { .. } => 3,
        HostEnd::Stale { undone: state, .. } => undone(state, 5),
        HostEnd::Failed { undone: state } => undone(state, 3),
        HostEnd::Interrupted { undone: state } => undone(state, 130),
    }
}

impl HostRecap {
    fn count(&mut self, task: usize, rank: Rank, index: usize) {
        // Items of one loop follow one another; a handler that runs again begins at 0.
        match self.last {
            Some((last, counted)) if last == task && index > 0 => {
                if rank > counted {
                    self.add(counted, false);
                    self.add(rank, true);
                    self.last = Some((task, rank));
                }
            }
            _ => {
                self.add(rank, true);
                self.last = Some((task, rank));
            }
        }
    }

    fn add(&mut self, rank: Rank, more: bool) {
        let step = |count: &mut usize| {
            *count = if more {
                *count + 1
            } else {
                count.saturating_sub(1)
            }
        };
        match rank {
            Rank::Skipped => step(&mut self.skipped),
            Rank::Ok => step(&mut self.ok),
            Rank::Changed => {
                step(&mut self.ok);
                step(&mut self.changed);
            }
            Rank::Unknown => step(&mut self.unknown),
            Rank::Ignored => {
                step(&mut self.ok);
                step(&mut self.ignored);
            }
            Rank::Failed => step(&mut self.failed),
        }
    }
}
