//! The host's own audit log: which run began and ended here, by whom, and how. Each line is bound to the one before it.

use std::path::{Path, PathBuf};

use fleet_wire::UndoneState;
use serde_json::{Value, json};

use super::journal::word;
use super::{State, clock};
use crate::chained_log;

/// Where the log of root's usual state is: where logs are looked for.
const LOG: &str = "/var/log/fleetctl";

impl State {
    fn log(&self) -> PathBuf {
        let dir = match self.dir() == Path::new("/var/lib/fleetctl") {
            true => Path::new(LOG),
            false => self.dir(),
        };
        dir.join("audit.jsonl")
    }

    /// Writes down that a run has begun to change something.
    pub(super) fn run_began(&self, run: &str, who: &str, plan: Option<&str>) {
        self.audit(&json!({"what": "began", "run": run, "who": who, "plan": plan}));
    }

    /// Writes down how a run has ended, or was undone.
    pub(super) fn run_ended(&self, run: &str, state: UndoneState, why: Option<&str>) {
        self.audit(&json!({"what": "ended", "run": run, "state": word(state), "why": why}));
    }

    /// A log that cannot be written stops no undo; the journal is the truth.
    fn audit(&self, record: &Value) {
        let mut record = record.clone();
        record["at"] = clock::now().into();
        let _ = chained_log::append(&self.log(), &record.to_string());
    }
}
