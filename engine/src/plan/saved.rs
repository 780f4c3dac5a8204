//! A plan in a file: canonical, hashed, and whole, so that it can be shown, compared and applied from the file alone.
//!
//! The file is text, a JSON document a line: the header, the body, a line for each content, and an end with the checksum
//! of all before it. The plan's hash is that of the body, which names the contents by their hashes: the same inputs give
//! the same hash, whoever makes the plan and whenever.

use std::{collections::BTreeMap, io, path::PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::Plan;
use crate::{event::HostEnd, sources::Snapshot};

pub use file::Store;

mod body;
mod file;

/// The name and version of the file's form.
pub const SCHEMA: &str = "fleetctl.plan-file/1";
/// What a plan's hash begins with.
const HASH: &str = "fp1:";

/// What is not part of a plan's hash: who made it and when, and what was another thing a moment later.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// [`SCHEMA`].
    pub schema: String,
    /// The plan's hash, `fp1:` and 64 hex digits.
    pub hash: String,
    /// The run that made it.
    pub run: String,
    /// When, RFC 3339.
    pub made: String,
    /// The same in seconds since 1970: what `now()` says when it is applied.
    pub made_s: f64,
    /// Who: `user@machine`.
    pub who: String,
    /// The version of fleetctl.
    pub version: String,
    /// Facts that change by themselves and were used, by host: an apply sees these values.
    pub pinned: BTreeMap<String, Facts>,
}

/// Facts by name.
pub type Facts = BTreeMap<String, serde_json::Value>;

/// A plan that is in a file, or will be.
#[derive(Clone, Debug)]
pub struct Saved {
    /// Who made it and when.
    pub header: Header,
    /// The command line that it was made by, without the program and the verb.
    pub words: Vec<String>,
    /// What it was made from.
    pub sources: Snapshot,
    /// The hosts of each play and batch, in the order in which they will be worked on.
    pub waves: Vec<Wave>,
    /// What is to be done.
    pub plan: Plan,
}

/// Hosts that are worked on together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wave {
    /// The play.
    pub play: String,
    /// The hosts, in order.
    pub hosts: Vec<String>,
}

/// Why a file is no plan to go by.
#[derive(Debug, thiserror::Error)]
pub enum PlanFileError {
    /// It cannot be read or written.
    #[error("{path}: {error}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It is not a plan, or not as it was written.
    #[error("{path}: {what}", path = path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
}

impl Saved {
    /// Puts a plan together; its hash is reckoned.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    pub fn new(
        mut header: Header,
        words: Vec<String>,
        sources: Snapshot,
        waves: Vec<Wave>,
        plan: Plan,
    ) -> io::Result<Self> {
        SCHEMA.clone_into(&mut header.schema);
        let mut saved = Self {
            header,
            words,
            sources,
            waves,
            plan,
        };
        let (body, _) = saved.body();
        saved.header.hash = hash_of(&serde_json::to_vec(&body)?);
        Ok(saved)
    }

    /// The hosts that could be planned.
    #[must_use]
    pub fn hosts(&self) -> Vec<&str> {
        let planned = self
            .plan
            .hosts
            .iter()
            .filter(|(_, host)| matches!(host.end, None | Some(HostEnd::Done)));
        planned.map(|(name, _)| name.as_str()).collect()
    }
}

fn hash_of(body: &[u8]) -> String {
    format!("{HASH}{}", hex(Sha256::digest(body)))
}

fn hex(digest: impl AsRef<[u8]>) -> String {
    digest
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
