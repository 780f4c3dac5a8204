//! What the tasks of a run came to, kept with its journal where a plan is applied: a run that was cut off and goes on is told
//! what was done already, and nothing is done twice.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use fleet_wire::{Effect, Json, Outcome, Status};
use serde::{Deserialize, Serialize};

use super::journal::{line_of, verified};
use super::{Fault, State};

/// One task's end.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Kept {
    key: String,
    status: Status,
    result: String,
    effects: Vec<Effect>,
}

/// The outcomes of a run.
#[derive(Debug)]
pub struct Outcomes {
    path: PathBuf,
    file: Option<File>,
    written: u64,
    known: HashMap<String, Kept>,
}

impl Outcomes {
    /// Those of a run so far; a line that was cut off, and what is behind it, never was.
    #[must_use]
    pub fn of(state: &State, run: &str) -> Self {
        let path = state.run_dir(run).join("outcomes");
        let text = std::fs::read(&path).unwrap_or_default();
        let lines = text.split_inclusive(|byte| *byte == b'\n');
        let kept: Vec<Kept> = lines
            .map_while(|line| {
                #[derive(Deserialize)]
                struct Line {
                    record: Kept,
                }
                let line: Line = serde_json::from_str(&verified(line)?).ok()?;
                Some(line.record)
            })
            .collect();
        Self {
            path,
            file: None,
            written: kept.len() as u64,
            known: kept
                .into_iter()
                .map(|kept| (kept.key.clone(), kept))
                .collect(),
        }
    }

    /// What a task came to in an earlier conversation of the run.
    #[must_use]
    pub fn get(&self, key: &str, id: u32) -> Option<Outcome> {
        self.known.get(key).map(|kept| Outcome {
            id,
            status: kept.status,
            result: Json(kept.result.clone()),
            effects: kept.effects.clone(),
            took_us: 0,
        })
    }

    /// Keeps what a task came to; on disk when this returns.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep(&mut self, key: &str, outcome: &Outcome, secret: bool) -> Result<(), Fault> {
        let mut effects = outcome.effects.clone();
        for effect in &mut effects {
            effect.forget_bytes();
        }
        let kept = Kept {
            key: key.to_owned(),
            status: outcome.status,
            // What must not be shown is not kept, either.
            result: match secret {
                true => format!("{{\"changed\":{}}}", outcome.status == Status::Changed),
                false => outcome.result.0.clone(),
            },
            effects,
        };
        let text = line_of(self.written, &kept);
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let opened = OpenOptions::new()
                    .create(true)
                    .append(true)
                    .mode(0o600)
                    .open(&self.path);
                none.insert(opened.map_err(|error| Fault::io("write", &self.path, error))?)
            }
        };
        file.write_all(text.as_bytes())
            .and_then(|()| file.sync_data())
            .map_err(|error| Fault::io("write", &self.path, error))?;
        self.written += 1;
        Ok(())
    }
}
