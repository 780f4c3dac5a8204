//! A plan: the effects of every host, not performed, and the groups of hosts that have the same ones.

mod diff;
mod group;
mod saved;
mod shared;

use std::{collections::BTreeMap, sync::Arc};

use fleet_wire::{Effect, Status, UndoClass};
use serde::Serialize;

use crate::{
    event::{Event, HostEnd, TaskEnded, TaskInfo},
    run::PlannedEffects,
};

pub use crate::run::restless as is_restless;
pub use diff::{Line, LineKind, Segment, draw};
pub use group::{Group, names};
pub use saved::{Facts, Header, PlanFileError, SCHEMA, Saved, Store, Wave};

/// What a plan found, host by host.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Plan {
    /// The hosts, by name.
    pub hosts: BTreeMap<String, HostPlan>,
    /// What many hosts have in common is held once.
    #[serde(skip)]
    shared: shared::Shared,
}

/// What would happen on one host.
#[derive(Clone, Debug, Default, Serialize)]
pub struct HostPlan {
    /// The tasks that would do something, that cannot be known, or that fail; in order.
    pub tasks: Vec<PlannedTask>,
    /// Tasks that have nothing to do.
    pub unchanged: usize,
    /// How its planning ended.
    pub end: Option<HostEnd>,
    /// Its `/etc/machine-id`; empty where it has none.
    #[serde(skip)]
    pub identity: String,
    /// The facts that the plan was made with.
    #[serde(skip)]
    pub facts: Facts,
}

/// One item of a task in a plan.
#[derive(Clone, Debug, Serialize)]
pub struct PlannedTask {
    /// The task.
    pub task: Arc<TaskInfo>,
    /// The loop's item, where there is a loop.
    pub item: Option<String>,
    /// The item's position in its loop, from 0.
    pub index: usize,
    /// `changed`, `unknown` or `failed`.
    pub status: Status,
    /// What would be done.
    #[serde(serialize_with = "crate::event::effects")]
    pub effects: Arc<[Effect]>,
    /// Their digests, by which an apply knows them: what is shown may be hidden in part.
    #[serde(skip)]
    pub digests: Arc<[String]>,
    /// Why it is unknown or failed.
    pub message: Option<String>,
}

/// A plan in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// All hosts.
    pub hosts: usize,
    /// Hosts with something to do.
    pub changing: usize,
    /// Effects on all hosts.
    pub effects: usize,
    /// Tasks whose effects are known after apply only.
    pub unknown: usize,
    /// Effects that cannot be taken back.
    pub irreversible: usize,
    /// Services that would be restarted or stopped.
    pub restarts: usize,
    /// Hosts that could not be planned.
    pub failed: usize,
}

impl Plan {
    /// Takes an event of a planning run in.
    pub fn take(&mut self, event: &Event) {
        match event {
            Event::TaskEnded(ended) => self.task(ended),
            Event::HostEnded { host, end } => {
                self.hosts.entry(host.clone()).or_default().end = Some(end.clone());
            }
            Event::PlayStarted { hosts, .. } => {
                for host in hosts.iter() {
                    self.hosts.entry(host.clone()).or_default();
                }
            }
            Event::FactsUsed { host, facts } => {
                if let Some(plan) = self.hosts.get_mut(host) {
                    plan.facts.extend(facts.clone());
                }
            }
            Event::Connected { host, identity, .. } => {
                if let Some(plan) = self.hosts.get_mut(host) {
                    plan.identity.clone_from(identity);
                }
            }
            _ => {}
        }
    }

    fn task(&mut self, ended: &TaskEnded) {
        let Self { hosts, shared } = self;
        let host = hosts.entry(ended.host.clone()).or_default();
        let shown = matches!(
            ended.status,
            Status::Changed | Status::Unknown | Status::Failed
        );
        if !shown {
            host.unchanged += usize::from(ended.status == Status::Ok);
            return;
        }
        let message = ended
            .result
            .get("msg")
            .and_then(serde_json::Value::as_str)
            .map(str::to_owned);
        let (effects, digests) = shared.effects(&ended.effects, &ended.digests);
        host.tasks.push(PlannedTask {
            task: shared.task(&ended.task),
            item: ended.item.clone(),
            index: ended.index,
            status: ended.status,
            effects,
            digests,
            message: message.filter(|_| ended.status != Status::Changed),
        });
    }

    /// What an apply of this plan may do.
    #[must_use]
    pub fn effects(&self) -> PlannedEffects {
        let mut planned = PlannedEffects::default();
        for (host, plan) in &self.hosts {
            for task in &plan.tasks {
                let digests = match task.status {
                    Status::Changed => Some(task.digests.to_vec()),
                    _ => None,
                };
                planned.add(host, task.task.id, task.index, digests);
            }
        }
        planned
    }

    /// The plan in numbers.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let mut summary = Summary {
            hosts: self.hosts.len(),
            ..Summary::default()
        };
        for plan in self.hosts.values() {
            summary.changing += usize::from(plan.changes());
            summary.failed += usize::from(!matches!(plan.end, None | Some(HostEnd::Done)));
            for task in &plan.tasks {
                summary.unknown += usize::from(task.status == Status::Unknown);
                summary.effects += task.effects.len();
                for effect in task.effects.iter() {
                    summary.irreversible += usize::from(effect.undo == UndoClass::None);
                    summary.restarts += usize::from(effect.interrupts());
                }
            }
        }
        summary
    }

    /// Hosts with the same effects together, outliers (small groups) first.
    #[must_use]
    pub fn groups(&self) -> Vec<Group<'_>> {
        group::groups(self)
    }
}

impl HostPlan {
    /// Whether anything would be done for sure.
    #[must_use]
    pub fn changes(&self) -> bool {
        self.tasks.iter().any(|task| task.status == Status::Changed)
    }

    /// Whether there is something that only an apply can tell.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.tasks.iter().any(|task| task.status == Status::Unknown)
    }
}
