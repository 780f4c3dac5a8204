//! The test fleet from Rust: a thin face over the script `tests/fleet`, which does the work.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fleet");

/// Hosts that were booted for one test. They are gone when this is dropped, and also when the test's process is killed.
///
/// Every method panics when the script fails, and shows what it said.
#[derive(Debug)]
pub struct Fleet {
    name: String,
    hosts: Vec<String>,
    folder: PathBuf,
}

/// What a command on a host said and how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// The exit status; 255 when the host could not be reached, and -1 when a signal ended `ssh` itself.
    pub code: i32,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl Output {
    /// Whether it ended with 0.
    #[must_use]
    pub fn success(&self) -> bool {
        self.code == 0
    }

    /// Its standard output without the last line's end.
    ///
    /// # Panics
    ///
    /// When it did not end with 0.
    #[must_use]
    #[track_caller]
    pub fn text(&self) -> &str {
        assert!(self.success(), "the command failed: {self:?}");
        self.stdout.trim_end_matches('\n')
    }
}

impl Fleet {
    /// Boots the hosts `web1` to `webN`. The first call on a machine builds the base image, which takes a minute.
    #[must_use]
    #[track_caller]
    pub fn up(count: usize) -> Fleet {
        Fleet::up_with(count, &[])
    }

    /// Like [`Fleet::up`], with further options of `tests/fleet up`, such as `--loadgen` or `--prefix db`.
    #[must_use]
    #[track_caller]
    pub fn up_with(count: usize, options: &[&str]) -> Fleet {
        static FLEETS: AtomicU32 = AtomicU32::new(0);
        let process = std::process::id();
        let mut fleet = Fleet {
            name: format!("test-{process}-{}", FLEETS.fetch_add(1, Ordering::Relaxed)),
            hosts: Vec::new(),
            folder: PathBuf::new(),
        };
        let (count, owner) = (count.to_string(), process.to_string());
        let mut arguments = vec!["up", &count, "--owner", &owner];
        arguments.extend(options);
        let said = fleet.script(&arguments);
        fleet.hosts = said
            .text()
            .lines()
            .filter_map(|line| line.split_whitespace().next())
            .map(str::to_owned)
            .collect();
        // They are printed in the order in which they came up; web10 is not between web1 and web2.
        fleet.hosts.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
        // Below the fleet's own state, so that it goes with the fleet even when this process is killed.
        fleet.folder = fleet.key().with_file_name("test");
        std::fs::create_dir(&fleet.folder)
            .unwrap_or_else(|error| panic!("failed to create {}: {error}", fleet.folder.display()));
        fleet.inventory_for("ops");
        fleet
    }

    /// The name by which `tests/fleet --name` knows it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name of a host, counted from 0: `host(0)` is `web1`. A load generator, if any, is [`Fleet::hosts`]'s `load1`.
    #[must_use]
    #[track_caller]
    pub fn host(&self, index: usize) -> &str {
        &self.hosts[index]
    }

    /// The names of all hosts.
    #[must_use]
    pub fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// An inventory file that logs in as `ops`, who may use sudo without a password.
    #[must_use]
    pub fn inventory(&self) -> PathBuf {
        self.folder.join("ops.yml")
    }

    /// An inventory file that logs in as `user`: `ops`, `ada` (whose sudo asks for `correct horse`) or `root`.
    #[track_caller]
    pub fn inventory_for(&self, user: &str) -> PathBuf {
        let path = self.folder.join(format!("{user}.yml"));
        let said = self.script(&["inventory", "--user", user]);
        std::fs::write(&path, said.text())
            .unwrap_or_else(|error| panic!("failed to write {}: {error}", path.display()));
        path
    }

    /// The folder of the inventory files, where a test may put whatever else it needs; it goes with the fleet.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A host's IPv4 address.
    #[must_use]
    #[track_caller]
    pub fn address(&self, host: &str) -> String {
        self.script(&["address", host]).text().to_owned()
    }

    /// The private key that opens every account on every host.
    #[must_use]
    #[track_caller]
    pub fn key(&self) -> PathBuf {
        self.script(&["key"]).text().into()
    }

    /// A `known_hosts` file with the keys of all hosts.
    #[must_use]
    #[track_caller]
    pub fn known_hosts(&self) -> PathBuf {
        self.script(&["known-hosts"]).text().into()
    }

    /// What `ssh` must be told (after `-o`) so that it asks nobody and knows the hosts' keys.
    #[must_use]
    #[track_caller]
    pub fn ssh_options(&self) -> Vec<String> {
        vec![
            "BatchMode=yes".to_owned(),
            format!("UserKnownHostsFile={}", self.known_hosts().display()),
            "GlobalKnownHostsFile=/dev/null".to_owned(),
        ]
    }

    /// A host's root directory as this machine sees it, to look at while the host is off or cut off.
    #[must_use]
    #[track_caller]
    pub fn root(&self, host: &str) -> PathBuf {
        self.script(&["path", host]).text().into()
    }

    /// Runs a shell command as root over SSH.
    #[must_use]
    #[track_caller]
    pub fn sh(&self, host: &str, command: &str) -> Output {
        self.sh_as("root", host, command)
    }

    /// Runs a shell command over SSH as another user.
    #[must_use]
    #[track_caller]
    pub fn sh_as(&self, user: &str, host: &str, command: &str) -> Output {
        self.ask(&["ssh", &format!("{user}@{host}"), command], b"")
    }

    /// Runs a shell command as root inside the host without using its network.
    #[must_use]
    #[track_caller]
    pub fn sh_inside(&self, host: &str, command: &str) -> Output {
        self.ask(&["exec", host, "sh", "-c", command], b"")
    }

    /// What a file on a host holds, read over SSH.
    #[must_use]
    #[track_caller]
    pub fn read(&self, host: &str, path: &str) -> String {
        let said = self.sh(host, &format!("cat -- {}", quoted(path)));
        assert!(
            said.success(),
            "failed to read {host}:{path}: {}",
            said.stderr
        );
        said.stdout
    }

    /// Writes a file on a host over SSH, as root. What was there keeps its owner and mode.
    #[track_caller]
    pub fn write(&self, host: &str, path: &str, content: impl AsRef<[u8]>) {
        let command = format!("cat > {}", quoted(path));
        let said = self.ask(&["ssh", host, &command], content.as_ref());
        assert!(
            said.success(),
            "failed to write {host}:{path}: {}",
            said.stderr
        );
    }

    /// Unplugs a host's network cable.
    #[track_caller]
    pub fn cut(&self, host: &str) {
        self.script(&["cut", host]);
    }

    /// Plugs a host's network cable in again.
    #[track_caller]
    pub fn mend(&self, host: &str) {
        self.script(&["mend", host]);
    }

    /// Cuts a host's power: all of its processes end at one instant, and its disk stays.
    #[track_caller]
    pub fn power_off(&self, host: &str) {
        self.script(&["power-off", host]);
    }

    /// Boots a host again, and returns when its sshd answers.
    #[track_caller]
    pub fn power_on(&self, host: &str) {
        self.script(&["power-on", host]);
    }

    /// Runs the script, which must succeed.
    #[track_caller]
    fn script(&self, arguments: &[&str]) -> Output {
        let output = self.ask(arguments, b"");
        assert!(
            output.success(),
            "`tests/fleet {}` failed for the fleet {}:\n{}",
            arguments.join(" "),
            self.name,
            output.stderr
        );
        output
    }

    #[track_caller]
    fn ask(&self, arguments: &[&str], input: &[u8]) -> Output {
        // The name goes behind the command's own name: after a host everything is part of what to run there.
        let mut child = Command::new(SCRIPT)
            .args([arguments[0], "--name", &self.name])
            .args(&arguments[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("failed to run {SCRIPT}: {error}"));
        if let Some(mut stdin) = child.stdin.take() {
            // A command that does not read its input is no failure; its exit status tells.
            let _ = stdin.write_all(input);
        }
        let output = child
            .wait_with_output()
            .unwrap_or_else(|error| panic!("failed to wait for {SCRIPT}: {error}"));
        Output {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        // A panic here could hide the one that ends the test. What stays behind goes with the test's process.
        let _ = Command::new(SCRIPT)
            .args(["down", "--name", &self.name])
            .stdin(Stdio::null())
            .status();
    }
}

fn quoted(path: &str) -> String {
    format!("'{}'", path.replace('\'', r"'\''"))
}
