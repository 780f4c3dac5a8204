//! What lookups may ask of this machine: its files, its environment, its commands.

use std::{
    fs::{DirBuilder, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use fleet_engine::{
    config::{Config, Gathering},
    sources,
    template::{CommandOutput, Controller, Value},
};

/// This machine.
#[derive(Debug)]
pub(crate) struct ThisMachine {
    /// What the lookup `config` shows.
    pub(crate) config: Arc<Config>,
}

impl Controller for ThisMachine {
    fn setting(&self, name: &str) -> Option<(Value, String)> {
        let config = &self.config;
        let (key, value) = match name {
            "DEFAULT_FORKS" => ("forks", Value::from(config.forks())),
            "DEFAULT_GATHERING" => (
                "gathering",
                Value::from(match config.gathering() {
                    Gathering::Implicit => "implicit",
                    Gathering::Explicit => "explicit",
                    Gathering::Smart => "smart",
                }),
            ),
            "DEFAULT_PRIVATE_ROLE_VARS" => {
                ("private_role_vars", Value::from(config.private_role_vars()))
            }
            "DEFAULT_FORCE_HANDLERS" => ("force_handlers", Value::from(config.force_handlers())),
            "DEFAULT_NO_LOG" => ("no_log", Value::from(config.no_log())),
            "DEFAULT_REMOTE_USER" => ("remote_user", Value::from(config.remote_user()?)),
            "DEFAULT_BECOME" => ("become", Value::from(config.r#become())),
            "DEFAULT_TRANSPORT" => ("transport", Value::from(config.transport())),
            "DEFAULT_VERBOSITY" => ("verbosity", Value::from(config.verbosity())),
            "DEFAULT_ROLES_PATH" => {
                let dirs = config.roles_path().iter();
                (
                    "roles_path",
                    dirs.map(|dir| Value::from(dir.display().to_string()))
                        .collect(),
                )
            }
            "HOST_KEY_CHECKING" => ("host_key_checking", Value::from(config.host_key_checking())),
            _ => return None,
        };
        let origin = config
            .origin(key)
            .map_or_else(|| "default".to_owned(), ToString::to_string);
        Some((value, origin))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        sources::read(path)
    }

    fn write(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        if let Some(parent) = path.parent() {
            // What lookups write are passwords.
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(parent)?;
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
        sources::exists(path)
    }

    fn is_dir(&self, path: &Path) -> bool {
        sources::is_dir(path)
    }

    fn is_link(&self, path: &Path) -> bool {
        path.is_symlink()
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        sources::list(path)
    }

    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        sources::real_path(path)
    }

    fn environment(&self, name: &str) -> Option<String> {
        sources::variable(name)
    }

    fn run(&self, command: &str, directory: &Path) -> io::Result<CommandOutput> {
        // It may well be a secret that it prints, so no plan keeps it.
        let mut shell = Command::new("/bin/sh");
        let printed = sources::printed(shell.arg("-c").arg(command).current_dir(directory))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(CommandOutput {
            status: printed.status,
            stdout: text(&printed.stdout),
            stderr: text(&printed.stderr),
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
        sources::now()
    }

    fn time_zone(&self) -> String {
        jiff::tz::TimeZone::system()
            .iana_name()
            .unwrap_or("UTC")
            .to_owned()
    }
}
