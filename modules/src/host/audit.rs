//! The host's own audit log: which run began and ended here, by whom, and how. Each line is bound to the one before it.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use fleet_wire::{UndoneState, chain};
use serde_json::{Value, json};

use super::journal::word;
use super::{State, clock};

/// Where the log of root's usual state is: where logs are looked for.
const LOG: &str = "/var/log/fleetctl";
/// How much of the end is looked through for the last line, in bytes.
const TAIL: u64 = 64 << 10;

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
        let path = self.log();
        let written = || -> io::Result<()> {
            if let Some(dir) = path.parent() {
                DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
            }
            let mut file = OpenOptions::new()
                .read(true)
                .create(true)
                .append(true)
                .mode(0o600)
                .open(&path)?;
            file.lock()?;
            let last = last_line(&mut file)?;
            let line = chain(last.as_deref(), &record.to_string());
            file.write_all(format!("{line}\n").as_bytes())?;
            file.sync_data()
        };
        let _ = written();
    }
}

fn last_line(file: &mut File) -> io::Result<Option<String>> {
    let size = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(size.saturating_sub(TAIL)))?;
    let mut text = String::new();
    file.take(TAIL).read_to_string(&mut text)?;
    Ok(text.lines().last().map(str::to_owned))
}
