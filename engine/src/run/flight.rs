//! Tasks that have been sent and not been answered yet, and the order in which their ends are told.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use fleet_wire::{Outcome, Status};

use super::{scope::HostScope, state::HostState, terms::Terms};
use crate::{
    event::{Event, TaskInfo},
    playbook::Task,
    variables::Variable,
};

/// A task on its way, with the items of its loop.
pub(super) struct Flight {
    pub(super) group: u32,
    pub(super) task: Arc<Task>,
    pub(super) info: Arc<TaskInfo>,
    /// The scope in which its conditions are judged.
    pub(super) scope: HostScope,
    /// One for each item; a task without a loop has one without a label.
    pub(super) items: Vec<Item>,
    /// Items that are not over yet.
    pub(super) open: usize,
    /// `register` takes a list of results.
    pub(super) looped: bool,
    pub(super) ignore_errors: bool,
    pub(super) secret: bool,
    /// `failed_when` or a `changed_when` that only the controller can decide.
    pub(super) judged: bool,
    /// Handlers to notify where the controller judges the change.
    pub(super) notify: Vec<String>,
    /// It is only rehearsed, in Ansible's check mode.
    pub(super) rehearsed: bool,
    /// It comes back to who sent it instead of being judged: it may be tried again.
    pub(super) returns: bool,
    /// Its failure is taken over by a `rescue`.
    pub(super) rescued: bool,
    /// The host that it is done on, where that is another.
    pub(super) delegated: Option<String>,
    /// Facts that it returns are the other host's (`delegate_facts`).
    pub(super) facts_of: Option<Arc<HostState>>,
}

impl Flight {
    /// Takes in what holds for one of its items.
    pub(super) fn take_terms(&mut self, terms: &Terms) {
        self.ignore_errors |= terms.ignore_errors;
        self.secret |= terms.secret;
        self.rehearsed |= terms.check == Some(true);
        for handler in &terms.notify {
            if !self.notify.contains(handler) {
                self.notify.push(handler.clone());
            }
        }
    }
}

impl Item {
    /// The name under which its loop shows it.
    pub(super) fn variable(&self) -> String {
        let named = self.scope.local.iter().rev();
        let named = named.filter(|(name, _)| name == "ansible_loop_var");
        let mut names = named.map(|(_, variable)| match variable {
            Variable::Data(value) => value.to_string(),
            _ => String::new(),
        });
        names.next().unwrap_or_else(|| "item".to_owned())
    }

    /// An item that is over.
    pub(super) fn over(
        value: Option<(minijinja::Value, String)>,
        scope: HostScope,
        end: Outcome,
    ) -> Self {
        Self {
            value,
            scope,
            end: Some(end),
            judged: false,
            invocation: None,
        }
    }
}

/// One item of a task's loop.
pub(super) struct Item {
    /// The item's value and label; none without a loop.
    pub(super) value: Option<(minijinja::Value, String)>,
    pub(super) scope: HostScope,
    pub(super) end: Option<Outcome>,
    /// `failed_when` and `changed_when` are in `end` already.
    pub(super) judged: bool,
    /// What its module was called with, where results are to tell.
    pub(super) invocation: Option<serde_json::Value>,
}

/// The flights of one host.
#[derive(Default)]
pub(super) struct Flights {
    by_group: HashMap<u32, Flight>,
    by_task: HashMap<u32, (u32, usize)>,
    /// What is to be told, in the order of the playbook: a group whose end is not known yet holds
    /// back what comes behind it.
    told: VecDeque<(u32, Option<Vec<Event>>)>,
}

impl Flights {
    pub(super) fn add(&mut self, flight: Flight, ids: Vec<(u32, usize)>) {
        for (id, item) in ids {
            self.by_task.insert(id, (flight.group, item));
        }
        self.told.push_back((flight.group, None));
        self.by_group.insert(flight.group, flight);
    }

    /// Tells something behind what is in flight now.
    pub(super) fn tell(&mut self, group: u32, events: Vec<Event>) {
        match self.told.iter_mut().find(|(waiting, _)| *waiting == group) {
            Some((_, slot)) => *slot = Some(events),
            None => self.told.push_back((group, Some(events))),
        }
    }

    /// Forgets what was to be told behind a group: it was not reached.
    pub(super) fn forget_behind(&mut self, group: u32) {
        let behind = self.told.iter().position(|(told, _)| *told == group);
        let Some(from) = behind else { return };
        for (_, events) in self.told.range_mut(from + 1..) {
            // What is still under way ends by itself, and is told to be not reached.
            if let Some(events) = events {
                events.clear();
            }
        }
    }

    /// What can be told now.
    pub(super) fn ready(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some((_, Some(_))) = self.told.front() {
            events.extend(
                self.told
                    .pop_front()
                    .and_then(|(_, events)| events)
                    .unwrap_or_default(),
            );
        }
        events
    }

    /// Takes an outcome in; returns the flight when it was its last.
    pub(super) fn land(&mut self, outcome: Outcome) -> Option<Flight> {
        let (group, item) = self.by_task.remove(&outcome.id)?;
        let flight = self.by_group.get_mut(&group)?;
        flight.open = flight.open.saturating_sub(1);
        let end = &mut flight.items[item].end;
        *end = Some(match end.take() {
            Some(earlier) => merged(earlier, outcome),
            None => outcome,
        });
        if flight.open > 0 {
            return None;
        }
        self.by_group.remove(&group)
    }

    pub(super) fn contains(&self, group: u32) -> bool {
        self.by_group.contains_key(&group)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_group.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.by_task.len()
    }

    /// The task that a number belongs to, for messages.
    pub(super) fn info(&self, id: u32) -> Option<Arc<TaskInfo>> {
        let (group, _) = self.by_task.get(&id)?;
        self.by_group
            .get(group)
            .map(|flight| Arc::clone(&flight.info))
    }

    /// The first task in flight, for messages about a broken link.
    pub(super) fn first(&self) -> Option<Arc<TaskInfo>> {
        let group = self.told.iter().find(|(_, events)| events.is_none())?.0;
        self.by_group
            .get(&group)
            .map(|flight| Arc::clone(&flight.info))
    }

    /// A handler that some task in flight may notify.
    pub(super) fn may_notify(&self, answers: impl Fn(&str) -> bool) -> bool {
        self.by_group
            .values()
            .any(|flight| flight.notify.iter().any(|name| answers(name)))
    }
}

/// The end of an item that took several calls (the files of a copied directory): the worst of
/// them, with all their effects.
fn merged(mut earlier: Outcome, later: Outcome) -> Outcome {
    let rank = |status| match status {
        Status::Failed => 4,
        Status::Unknown => 3,
        Status::Changed => 2,
        Status::NotReached => 1,
        Status::Ok | Status::Skipped | Status::NotNotified => 0,
    };
    earlier.effects.extend(later.effects);
    earlier.took_us += later.took_us;
    if rank(later.status) > rank(earlier.status) {
        earlier.status = later.status;
        earlier.result = later.result;
    }
    earlier
}
