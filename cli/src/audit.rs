//! The audit log of this controller: who did what and when, a line each, each line bound to the one before it.

use std::{
    fs::File,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::place::{self, Places};

/// Where the log is.
pub(crate) fn path(places: &Places) -> PathBuf {
    places.runs.with_file_name("audit.jsonl")
}

/// Adds what is done: the verb, the run, and what else there is to say; never a value that may be a secret.
///
/// # Errors
/// When it cannot be written: what is not written down is not done.
pub(crate) fn note(places: &Places, verb: &str, run: &str, more: Value) -> Result<()> {
    let path = path(places);
    let mut record = json!({
        "at": jiff::Timestamp::now().to_string(),
        "who": place::who(),
        "verb": verb,
        "run": run,
    });
    if let (Some(record), Some(more)) = (record.as_object_mut(), more.as_object()) {
        record.extend(more.clone());
        if let Ok(ci) = std::env::var("GITHUB_RUN_ID").or_else(|_| std::env::var("CI_JOB_ID")) {
            record.insert("ci".to_owned(), ci.into());
        }
    }
    fleet_engine::chained_log::append(&path, &record.to_string())
        .with_context(|| format!("cannot write the audit log {}", path.display()))
}

/// How many lines of a log are as they were written.
///
/// # Errors
/// When the file cannot be read; the line that is not, and why.
pub(crate) fn verify(path: &Path) -> Result<std::result::Result<u64, (u64, &'static str)>> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let lines: std::io::Result<Vec<String>> = BufReader::new(file).lines().collect();
    let lines = lines.with_context(|| format!("cannot read {}", path.display()))?;
    Ok(fleet_wire::verify_chain(lines.iter().map(String::as_str)))
}
