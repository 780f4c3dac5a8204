//! What lookups may ask of this machine: its files, its environment, its commands.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    process::Command,
};

use fleet_engine::template::{CommandOutput, Controller};

/// This machine.
#[derive(Debug)]
pub(crate) struct ThisMachine;

impl Controller for ThisMachine {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        fs::read(path)
    }

    fn write(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        if let Some(parent) = path.parent() {
            // What lookups write are passwords.
            DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
        }
        OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(path)?
            .write_all(content)
    }

    fn exists(&self, path: &Path) -> bool {
        path.exists()
    }

    fn is_dir(&self, path: &Path) -> bool {
        path.is_dir()
    }

    fn is_link(&self, path: &Path) -> bool {
        path.is_symlink()
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let names = fs::read_dir(path)?
            .map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()));
        names.collect()
    }

    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        fs::canonicalize(path)
    }

    fn environment(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn run(&self, command: &str, directory: &Path) -> io::Result<CommandOutput> {
        let output = Command::new("/bin/sh")
            .arg("-c")
            .arg(command)
            .current_dir(directory)
            .output()?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(CommandOutput {
            status: output.status.code().unwrap_or(-1),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        })
    }

    fn fetch(&self, url: &str) -> io::Result<String> {
        let problem =
            format!("the lookup `url` is not supported yet: fetch {url} by a task instead");
        Err(io::Error::new(io::ErrorKind::Unsupported, problem))
    }

    fn random(&self) -> u64 {
        use std::hash::{BuildHasher, Hasher, RandomState};
        RandomState::new().build_hasher().finish()
    }

    fn now(&self) -> f64 {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.map_or(0.0, |since| since.as_secs_f64())
    }

    fn time_zone(&self) -> String {
        jiff::tz::TimeZone::system()
            .iana_name()
            .unwrap_or("UTC")
            .to_owned()
    }
}
