//! What lookups may ask of the controller. The library itself reads neither files nor the environment.

use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};

use minijinja::Value;

/// What a command printed and how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandOutput {
    /// The exit status; -1 for a signal.
    pub status: i32,
    /// What it wrote to its output.
    pub stdout: String,
    /// What it wrote to its error output.
    pub stderr: String,
}

/// The controller's files, environment and commands, for lookups and for templates that include others.
pub trait Controller: Send + Sync + Debug {
    /// The bytes of a file.
    ///
    /// # Errors
    /// As the system says.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// Writes a file, readable by its owner only, and the directories above it (`password` lookups).
    ///
    /// # Errors
    /// As the system says.
    fn write(&self, path: &Path, content: &[u8]) -> io::Result<()>;

    /// Whether there is a file, a directory, or anything.
    fn exists(&self, path: &Path) -> bool;

    /// Whether there is a directory.
    fn is_dir(&self, path: &Path) -> bool;

    /// Whether there is a link, followed or not.
    fn is_link(&self, path: &Path) -> bool;

    /// The names in a directory, in any order.
    ///
    /// # Errors
    /// As the system says.
    fn list(&self, path: &Path) -> io::Result<Vec<String>>;

    /// The path without links.
    ///
    /// # Errors
    /// As the system says.
    fn real_path(&self, path: &Path) -> io::Result<PathBuf>;

    /// A variable of the environment.
    fn environment(&self, name: &str) -> Option<String>;

    /// Runs a command line with `/bin/sh -c` in a directory.
    ///
    /// # Errors
    /// If it cannot be started.
    fn run(&self, command: &str, directory: &Path) -> io::Result<CommandOutput>;

    /// The body of a page (`url` lookups).
    ///
    /// # Errors
    /// If it cannot be had.
    fn fetch(&self, url: &str) -> io::Result<String>;

    /// A setting by the name that Ansible has for it (`DEFAULT_FORKS`), and where it is from. None: it is at its
    /// default.
    fn setting(&self, _name: &str) -> Option<(Value, String)> {
        None
    }

    /// A number that nobody can guess.
    fn random(&self) -> u64;

    /// Seconds since 1970 began, with a fraction.
    fn now(&self) -> f64;

    /// The name of the controller's time zone, as in the zone database.
    fn time_zone(&self) -> String;
}

/// A controller without anything: every lookup that asks for something fails.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoController;

impl Controller for NoController {
    fn read(&self, _: &Path) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn write(&self, _: &Path, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn exists(&self, _: &Path) -> bool {
        false
    }

    fn is_dir(&self, _: &Path) -> bool {
        false
    }

    fn is_link(&self, _: &Path) -> bool {
        false
    }

    fn list(&self, _: &Path) -> io::Result<Vec<String>> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn real_path(&self, _: &Path) -> io::Result<PathBuf> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn environment(&self, _: &str) -> Option<String> {
        None
    }

    fn run(&self, _: &str, _: &Path) -> io::Result<CommandOutput> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn fetch(&self, _: &str) -> io::Result<String> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn random(&self) -> u64 {
        0
    }

    fn now(&self) -> f64 {
        0.0
    }

    fn time_zone(&self) -> String {
        "UTC".to_owned()
    }
}
