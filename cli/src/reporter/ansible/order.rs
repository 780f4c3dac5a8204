//! Hosts go through a play each at their own pace; Ansible's output goes through it task by task. This puts the one into
//! the order of the other: a task's results come together, and the tasks in the order of the play.

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
};

use fleet_engine::event::{Event, Strategy, TaskInfo};

/// The events of one play at a time, held back until their task's turn.
#[derive(Default)]
pub(super) struct Order {
    strategy: Strategy,
    lanes: Vec<Lane>,
    /// Hosts that are through with the run.
    gone: HashSet<String>,
    /// The task whose results are being shown.
    current: Option<Arc<TaskInfo>>,
    /// Hosts at work at the same time; 0 for any number.
    forks: usize,
}

/// One host's events that have not been shown.
struct Lane {
    host: String,
    waiting: VecDeque<Event>,
    begun: bool,
    over: bool,
}

impl Order {
    pub(super) fn new(forks: usize) -> Self {
        Self {
            forks,
            ..Self::default()
        }
    }

    /// Takes an event in, and hands those on whose turn has come.
    pub(super) fn take(&mut self, event: &Event, shown: &mut Vec<Event>) {
        match event {
            Event::PlayStarted {
                hosts, strategy, ..
            } => {
                self.flush(shown);
                self.strategy = *strategy;
                self.current = None;
                self.lanes = hosts
                    .iter()
                    .filter(|host| !self.gone.contains(*host))
                    .map(|host| Lane::of(host))
                    .collect();
                shown.push(event.clone());
            }
            Event::FactsUsed { .. } => {}
            Event::PlaySkipped { .. } | Event::RunStarted { .. } => {
                self.flush(shown);
                shown.push(event.clone());
            }
            Event::RunEnded { .. } | Event::NoHostsLeft => {
                self.flush(shown);
                shown.push(event.clone());
            }
            Event::TaskStarted { host, .. }
            | Event::Retrying { host, .. }
            | Event::Included { host, .. } => self.add(host, event, shown),
            Event::TaskEnded(ended) => self.add(&ended.host, event, shown),
            Event::PlayEnded { host } => self.end(host, event, shown),
            Event::HostEnded { host, .. } => {
                self.end(host, event, shown);
                self.gone.insert(host.clone());
            }
            Event::Warning { .. } | Event::Connected { .. } => shown.push(event.clone()),
        }
    }

    fn add(&mut self, host: &str, event: &Event, shown: &mut Vec<Event>) {
        let lane = match self.lanes.iter_mut().find(|lane| lane.host == host) {
            Some(lane) if self.strategy == Strategy::Linear => lane,
            _ => return shown.push(event.clone()),
        };
        lane.begun = true;
        lane.waiting.push_back(event.clone());
        self.advance(shown);
    }

    fn end(&mut self, host: &str, event: &Event, shown: &mut Vec<Event>) {
        match self.lanes.iter_mut().find(|lane| lane.host == host) {
            Some(lane) if self.strategy == Strategy::Linear => {
                lane.waiting.push_back(event.clone());
                lane.over = true;
                self.advance(shown);
            }
            _ => shown.push(event.clone()),
        }
    }

    /// Shows what is due: the current task's events, then the first of the next tasks as soon as it is certain which that is.
    fn advance(&mut self, shown: &mut Vec<Event>) {
        loop {
            for lane in &mut self.lanes {
                lane.show(self.current.as_ref(), shown);
            }
            let many = self.forks > 0 && self.lanes.len() > self.forks;
            let undecided =
                |lane: &Lane| lane.waiting.is_empty() && !lane.over && (lane.begun || !many);
            if self.lanes.iter().any(undecided) {
                return;
            }
            let fronts = self.lanes.iter().filter_map(Lane::front);
            let Some(next) = fronts.min_by(|a, b| a.position.cmp(&b.position)).cloned() else {
                return;
            };
            self.current = Some(next);
        }
    }

    /// Shows all that is left, task by task.
    fn flush(&mut self, shown: &mut Vec<Event>) {
        for lane in &mut self.lanes {
            lane.over = true;
        }
        self.advance(shown);
        self.lanes.clear();
    }
}

impl Lane {
    fn of(host: &str) -> Self {
        Self {
            host: host.to_owned(),
            waiting: VecDeque::new(),
            begun: false,
            over: false,
        }
    }

    fn front(&self) -> Option<&Arc<TaskInfo>> {
        self.waiting.front().and_then(task)
    }

    /// Shows its events of `current`, and those of no task.
    fn show(&mut self, current: Option<&Arc<TaskInfo>>, shown: &mut Vec<Event>) {
        while let Some(event) = self.waiting.front() {
            let due = match (task(event), current) {
                (None, _) => true,
                (Some(own), Some(current)) => own.position <= current.position,
                (Some(_), None) => false,
            };
            if !due {
                return;
            }
            shown.extend(self.waiting.pop_front());
        }
    }
}

fn task(event: &Event) -> Option<&Arc<TaskInfo>> {
    match event {
        Event::TaskStarted { task, .. }
        | Event::Retrying { task, .. }
        | Event::Included { task, .. } => Some(task),
        Event::TaskEnded(ended) => Some(&ended.task),
        _ => None,
    }
}
