use std::fmt;
use std::path::Path;

use serde_json::{Map, Value};

use crate::arguments::ArgumentError;

/// Why a task failed: a lowercase fragment that names the thing, what was tried and what to do.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// The fragment, Ansible's `msg`.
    pub message: String,
    /// What `register` sees beside it: `rc`, `stdout`, `stderr`, …
    pub fields: Map<String, Value>,
}

impl Fault {
    /// A fault that has only its message.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            fields: Map::new(),
        }
    }

    /// What was tried on a path, and the system's answer: `cannot read /etc/x: permission denied`.
    #[must_use]
    pub fn io(tried: &str, path: &Path, cause: impl fmt::Display) -> Self {
        Self::new(format!(
            "cannot {tried} {}: {}",
            path.display(),
            Self::plain(&cause.to_string())
        ))
    }

    /// The same with one more field for `register`.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.fields.insert(name.to_owned(), value.into());
        self
    }

    /// The system's words as a fragment: without `(os error 13)`, in lower case.
    fn plain(cause: &str) -> String {
        let cause = cause.split(" (os error").next().unwrap_or(cause);
        let mut letters = cause.chars();
        letters.next().map_or_else(String::new, |first| {
            first.to_lowercase().chain(letters).collect()
        })
    }
}

impl From<ArgumentError> for Fault {
    fn from(error: ArgumentError) -> Self {
        Self::new(error.to_string())
    }
}
