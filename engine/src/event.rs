//! Everything that a user sees of a run is an event first: the terminal, JSON, the run's folder and
//! its reports are readers of one stream.

use std::{sync::Arc, time::Duration};

use fleet_wire::{Effect, Mode, Status, Undone};
use fleet_yaml::Span;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::playbook::Position;

/// The name and version of the events' JSON form: the first line of every stream of them.
pub const SCHEMA: &str = "fleetctl.events/1";

/// Something that happened in a run.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A run begins.
    RunStarted {
        /// Its name.
        run: String,
        /// `read`, `plan` or `apply`.
        #[serde(serialize_with = "mode_name")]
        mode: Mode,
        /// The playbooks.
        playbooks: Vec<String>,
    },
    /// A play begins, or its next batch of hosts.
    PlayStarted {
        /// Its name.
        play: String,
        /// Its hosts, in order; those of the batch where there is `serial`.
        hosts: Arc<[String]>,
        /// How its hosts go through it: side by side, or waiting for each other.
        strategy: Strategy,
    },
    /// A play that no host matches, where that was said to be fine.
    PlaySkipped {
        /// Its name.
        play: String,
        /// Why.
        reason: String,
    },
    /// A host is connected.
    Connected {
        /// The host.
        host: String,
        /// How long it took.
        took: Duration,
        /// The helper had to be sent first.
        uploaded: bool,
        /// Its `/etc/machine-id`; empty where it has none.
        identity: String,
        /// Runs that had been cut off on it and were undone before anything else.
        recovered: Vec<Undone>,
        /// Handlers left over from a run that failed, which will run now.
        pending: Vec<String>,
    },
    /// A task has begun on a host.
    TaskStarted {
        /// The host.
        host: String,
        /// The task.
        task: Arc<TaskInfo>,
    },
    /// A task has ended on a host.
    TaskEnded(Box<TaskEnded>),
    /// A task did not come to its end as it should, and is tried again.
    Retrying {
        /// The host.
        host: String,
        /// The task.
        task: Arc<TaskInfo>,
        /// The loop's item, where there is a loop.
        item: Option<String>,
        /// Tries that are left.
        left: u32,
        /// What came of this try; nothing where `no_log` hides it.
        result: serde_json::Value,
    },
    /// A file of tasks or a role was included for a host.
    Included {
        /// The host.
        host: String,
        /// The including task.
        task: Arc<TaskInfo>,
        /// The file; the role's name for `include_role`.
        file: String,
        /// The loop's item, where there is a loop.
        item: Option<String>,
    },
    /// All hosts of a play have failed: what is left of it is not run.
    NoHostsLeft,
    /// The facts that a plan was made with on a host.
    FactsUsed {
        /// The host.
        host: String,
        /// The facts, by name.
        facts: crate::plan::Facts,
    },
    /// A host is through with a play.
    PlayEnded {
        /// The host.
        host: String,
    },
    /// A host's part of the run is over.
    HostEnded {
        /// The host.
        host: String,
        /// How it ended.
        end: HostEnd,
    },
    /// Something to know that is no failure.
    Warning {
        /// The host, where it is about one.
        host: Option<String>,
        /// The text.
        text: String,
    },
    /// The run is over.
    RunEnded {
        /// How long it took.
        took: Duration,
    },
}

/// A task as events name it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TaskInfo {
    /// Its number in the playbook.
    pub id: usize,
    /// Its name, rendered as far as possible.
    pub name: String,
    /// The module's name.
    pub module: String,
    /// Where it is written, `file:line`.
    pub place: String,
    /// It is a handler.
    pub handler: bool,
    /// The role that it belongs to.
    pub role: Option<String>,
    /// Where it stands among all tasks of the play: comparing two positions tells which comes first.
    #[serde(skip)]
    pub position: Position,
    /// The place itself, for readers that show the lines around it.
    #[serde(skip)]
    pub span: Span,
    /// It only looks, as the run or its `check_mode` says.
    #[serde(skip)]
    pub check: bool,
}

/// How the hosts of a play go through it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// They wait for each other where others could tell the difference.
    #[default]
    Linear,
    /// Each goes as fast as it can.
    Free,
    /// As `free`.
    HostPinned,
}

/// A task's end on a host.
#[derive(Clone, Debug, Serialize)]
pub struct TaskEnded {
    /// The host.
    pub host: String,
    /// The task.
    pub task: Arc<TaskInfo>,
    /// The loop's item, where there is a loop.
    pub item: Option<String>,
    /// The item's position in its loop, from 0.
    pub index: usize,
    /// No item of its loop comes behind it; true without a loop.
    pub last: bool,
    /// How it ended.
    pub status: Status,
    /// What `register` sees.
    pub result: serde_json::Value,
    /// The effects, performed or planned.
    #[serde(serialize_with = "effects")]
    pub effects: Arc<[Effect]>,
    /// Their digests ([`Effect::digest`]), made before anything in them was hidden.
    #[serde(skip)]
    pub digests: Arc<[String]>,
    /// How long it took on the host.
    pub took: Duration,
    /// It failed, and `ignore_errors` lets the host go on.
    pub ignored: bool,
    /// It failed, and a `rescue` takes over.
    pub rescued: bool,
    /// It failed because the host could not be reached.
    pub unreachable: bool,
    /// The host that it was done on, where that is another (`delegate_to`).
    pub delegated: Option<String>,
    /// `no_log`: the result must not be shown, and is not in here.
    pub secret: bool,
}

impl TaskEnded {
    /// Takes out what `no_log` hides, before any reader sees it: the result and the loop's item.
    pub(crate) fn hide_secrets(&mut self) {
        if !self.secret {
            return;
        }
        let field = |name: &str| self.result.get(name).cloned().unwrap_or_default();
        self.result = match self.status {
            Status::Failed => json!({
                "changed": field("changed"), "failed": true, "stale": field("stale"), "msg": "its result is hidden (`no_log`)",
            }),
            _ => json!({"changed": field("changed")}),
        };
        self.item = self.item.take().map(|_| format!("item {}", self.index + 1));
    }
}

/// How a host's part of a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum HostEnd {
    /// All tasks went through.
    Done,
    /// It could not be reached, and nothing was changed.
    Unreachable {
        /// What was tried and what was answered.
        message: String,
    },
    /// Another run holds its lock, and nothing was changed.
    Locked {
        /// Who, which run, since when.
        message: String,
    },
    /// It refused to work, and nothing was changed.
    Refused {
        /// Why.
        message: String,
        /// A person is needed.
        person: bool,
    },
    /// It is not as it was when the plan was made.
    Stale {
        /// What is different.
        message: String,
        /// What happened to the changes that the run had made.
        undone: Option<Undone>,
    },
    /// A task failed.
    Failed {
        /// What happened to the changes that the run had made; none in a plan.
        undone: Option<Undone>,
    },
    /// The link broke, and what the host did then is not known.
    Lost {
        /// What is known.
        message: String,
    },
    /// The run was interrupted before this host was done.
    Interrupted {
        /// What happened to the changes that the run had made.
        undone: Option<Undone>,
    },
}

fn mode_name<S: serde::Serializer>(mode: &Mode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match mode {
        Mode::Read => "read",
        Mode::Plan => "plan",
        Mode::Apply => "apply",
        Mode::Care => "confirm",
    })
}

/// Effects as a reader of JSON wants them: drawn, and without raw contents.
pub(crate) fn effects<S: serde::Serializer>(
    effects: &Arc<[Effect]>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(effects.iter().map(|effect| {
        let lines = crate::plan::draw(effect);
        let diff: Vec<String> = lines.iter().map(crate::plan::Line::marked).collect();
        serde_json::json!({
            "summary": effect.summary(),
            "undo": effect.undo,
            "assumed": effect.assumed,
            "secret": effect.secret,
            "diff": diff,
        })
    }))
}
