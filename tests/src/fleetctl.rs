//! `fleetctl` as a user runs it, with a home of its own: tests share neither runs nor kept connections.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::{Fleet, Output, eventually};

/// A user of `fleetctl` with an empty home, who works on some hosts of a fleet. The home goes when this is dropped.
#[derive(Debug)]
pub struct Fleetctl {
    home: PathBuf,
    inventory: PathBuf,
    limit: String,
    files: AtomicU32,
}

/// A `fleetctl` under way.
#[derive(Debug)]
pub struct Running {
    child: Child,
    said: PathBuf,
}

impl Fleetctl {
    /// Works on these hosts only, as `ops`.
    #[must_use]
    #[track_caller]
    pub fn on(fleet: &Fleet, hosts: &[&str]) -> Fleetctl {
        static USERS: AtomicU32 = AtomicU32::new(0);
        let user = USERS.fetch_add(1, Ordering::Relaxed);
        // Short: the sockets of ssh connections live below it, and the kernel allows 107 bytes.
        let home = PathBuf::from(format!("/tmp/ft-{}-{user}", std::process::id()));
        for dir in ["run", "state", "said"] {
            let dir = home.join(dir);
            fs::create_dir_all(&dir)
                .unwrap_or_else(|error| panic!("failed to create {}: {error}", dir.display()));
        }
        Fleetctl {
            home,
            inventory: fleet.inventory(),
            limit: hosts.join(","),
            files: AtomicU32::new(0),
        }
    }

    /// With another inventory.
    #[must_use]
    pub fn with_inventory(mut self, inventory: PathBuf) -> Fleetctl {
        self.inventory = inventory;
        self
    }

    /// This user's home, where playbooks and whatever they need can be put.
    #[must_use]
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Writes a file into the home.
    #[track_caller]
    pub fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.home.join(name);
        fs::write(&path, content)
            .unwrap_or_else(|error| panic!("failed to write {}: {error}", path.display()));
        path
    }

    /// Writes a playbook of one play on `web` as root, without facts. `play` is what follows: `tasks:`, `handlers:` and so on.
    #[track_caller]
    pub fn play(&self, play: &str) -> PathBuf {
        let number = self.files.fetch_add(1, Ordering::Relaxed);
        let text = format!("- hosts: web\n  become: true\n  gather_facts: false\n{play}");
        self.write(&format!("play{number}.yml"), &text)
    }

    /// `fleetctl plan` of a playbook, to its end.
    #[track_caller]
    pub fn plan(&self, playbook: &Path, more: &[&str]) -> Output {
        self.start_on_hosts(&["plan"], playbook, more).wait()
    }

    /// `fleetctl apply --yes` of a playbook, to its end.
    #[track_caller]
    pub fn apply(&self, playbook: &Path, more: &[&str]) -> Output {
        self.start_apply(playbook, more).wait()
    }

    /// `fleetctl apply --yes` of a playbook, under way.
    #[track_caller]
    pub fn start_apply(&self, playbook: &Path, more: &[&str]) -> Running {
        self.start_on_hosts(&["apply", "--yes"], playbook, more)
    }

    /// The runs that the journal of `host` tells of, oldest first.
    #[track_caller]
    pub fn journal(&self, host: &str) -> Vec<serde_json::Value> {
        let inventory = self.inventory.display().to_string();
        let said = self.run(["host", "journal", "-i", &inventory, "--json", host]);
        let mut hosts: serde_json::Value = serde_json::from_str(said.ended(0).text())
            .unwrap_or_else(|error| panic!("the journal is no JSON: {error}: {said:?}"));
        match hosts[host].take() {
            serde_json::Value::Array(runs) => runs,
            other => panic!("the journal of {host} is no list: {other}"),
        }
    }

    /// Any `fleetctl` command, to its end.
    #[track_caller]
    pub fn run(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Output {
        self.start(arguments).wait()
    }

    /// Any `fleetctl` command, under way.
    #[track_caller]
    pub fn start(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Running {
        let mut command = self.command(program());
        command.args(arguments);
        self.spawn(command)
    }

    /// `fleetctl apply` of a playbook on a terminal, under way; [`Running::answer`] types.
    #[track_caller]
    pub fn start_apply_on_a_terminal(&self, playbook: &Path, more: &[&str]) -> Running {
        let line = format!(
            "{} apply -i {} -l {} {} {}",
            program().display(),
            self.inventory.display(),
            self.limit,
            more.join(" "),
            playbook.display()
        );
        let mut command = self.command("script");
        command.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
        command.stdin(Stdio::piped());
        self.spawn(command)
    }

    /// `fleetctl apply` of a playbook on a terminal, to its end, with an answer to its question.
    #[track_caller]
    pub fn apply_on_a_terminal(&self, playbook: &Path, answer: &str) -> Output {
        let mut running = self.start_apply_on_a_terminal(playbook, &[]);
        running.answer("apply this plan? [y/N]", answer);
        running.wait()
    }

    #[track_caller]
    fn start_on_hosts(&self, verb: &[&str], playbook: &Path, more: &[&str]) -> Running {
        let mut command = self.command(program());
        command.args(verb).arg("-i").arg(&self.inventory);
        command.args(["-l", &self.limit]).args(more).arg(playbook);
        self.spawn(command)
    }

    fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env("HOME", &self.home)
            .env("XDG_STATE_HOME", self.home.join("state"))
            .env("XDG_RUNTIME_DIR", self.home.join("run"))
            .env("NO_COLOR", "1")
            .env("TERM", "dumb")
            .env_remove("SSH_AUTH_SOCK")
            .env_remove("ANSIBLE_INVENTORY")
            .stdin(Stdio::null());
        command
    }

    #[track_caller]
    fn spawn(&self, mut command: Command) -> Running {
        let number = self.files.fetch_add(1, Ordering::Relaxed);
        let said = self.home.join("said").join(number.to_string());
        // Files, not pipes: kept ssh connections outlive the command, and must not keep a reader waiting.
        let open = |ending: &str| {
            let path = said.with_extension(ending);
            File::create(&path)
                .unwrap_or_else(|error| panic!("failed to create {}: {error}", path.display()))
        };
        let child = command.stdout(open("out")).stderr(open("err")).spawn();
        let child = child.unwrap_or_else(|error| panic!("failed to run {command:?}: {error}"));
        Running { child, said }
    }
}

impl Drop for Fleetctl {
    fn drop(&mut self) {
        // Connections that are left would end by themselves after a minute.
        let _ = self
            .command(program())
            .args(["host", "disconnect", "--all"])
            .stdout(Stdio::null())
            .status();
        let _ = fs::remove_dir_all(&self.home);
    }
}

impl Running {
    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended.
    #[track_caller]
    pub fn has_ended(&mut self) -> bool {
        let status = self.child.try_wait();
        status
            .unwrap_or_else(|error| panic!("failed to look after fleetctl: {error}"))
            .is_some()
    }

    /// Waits until it is so while this is under way. When it has ended before, what it said is shown.
    #[track_caller]
    pub fn until(&mut self, what: &str, mut is_so: impl FnMut() -> bool) {
        eventually(what, || {
            let ended = self.child.try_wait().ok().flatten();
            let so = is_so();
            if let (Some(status), false) = (ended, so) {
                let (out, err) = (so_far(&self.said, "out"), so_far(&self.said, "err"));
                panic!(
                    "fleetctl ended ({status}) before this: {what}\n--- stdout\n{out}\n--- stderr\n{err}"
                );
            }
            so
        });
    }

    /// Waits until it has said a text, on either stream.
    #[track_caller]
    pub fn wait_for(&mut self, text: &str) {
        let said = self.said.clone();
        self.until(text, || {
            ["out", "err"]
                .iter()
                .any(|stream| so_far(&said, stream).contains(text))
        });
    }

    /// Waits until it asks `question`, and types `answer`.
    #[track_caller]
    pub fn answer(&mut self, question: &str, answer: &str) {
        self.wait_for(question);
        self.press(format!("{answer}\n").as_bytes());
    }

    /// Types on its terminal: `\x03` is Ctrl-C.
    #[track_caller]
    pub fn press(&mut self, keys: &[u8]) {
        let typed = self.child.stdin.as_mut().map(|stdin| stdin.write_all(keys));
        assert!(matches!(typed, Some(Ok(()))), "cannot type: {typed:?}");
    }

    /// Waits for its end.
    #[track_caller]
    pub fn wait(mut self) -> Output {
        let status = self.child.wait();
        let status = status.unwrap_or_else(|error| panic!("failed to wait for fleetctl: {error}"));
        Output {
            code: status.code().unwrap_or(-1),
            stdout: so_far(&self.said, "out"),
            stderr: so_far(&self.said, "err"),
        }
    }

    /// Sends it a signal: `INT`, `KILL`.
    #[track_caller]
    pub fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status();
        assert!(
            sent.is_ok_and(|status| status.success()),
            "cannot send {name} to fleetctl"
        );
    }
}

fn so_far(said: &Path, ending: &str) -> String {
    let bytes = fs::read(said.with_extension(ending)).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Output {
    /// Checks the exit code, and shows everything that was said when it is another.
    #[track_caller]
    pub fn ended(&self, code: i32) -> &Output {
        assert_eq!(
            self.code, code,
            "the exit code is {}, and should be {code}\n--- stdout\n{}\n--- stderr\n{}",
            self.code, self.stdout, self.stderr
        );
        self
    }

    /// Checks that a text was said, on either stream.
    #[track_caller]
    pub fn says(&self, text: &str) -> &Output {
        assert!(
            self.stdout.contains(text) || self.stderr.contains(text),
            "`{text}` was not said\n--- stdout\n{}\n--- stderr\n{}",
            self.stdout,
            self.stderr
        );
        self
    }

    /// Checks that a text was said on neither stream.
    #[track_caller]
    pub fn keeps_silent_about(&self, text: &str) -> &Output {
        assert!(
            !self.stdout.contains(text) && !self.stderr.contains(text),
            "`{text}` was said\n--- stdout\n{}\n--- stderr\n{}",
            self.stdout,
            self.stderr
        );
        self
    }
}

/// The `fleetctl` that was built beside the test that runs: `target/debug/fleetctl` for `target/debug/deps/plan-0a1b`.
#[track_caller]
fn program() -> PathBuf {
    let own = std::env::current_exe().unwrap_or_else(|error| panic!("who am I? {error}"));
    let found = own
        .ancestors()
        .skip(1)
        .map(|dir| dir.join("fleetctl"))
        .find(|path| path.is_file());
    found.unwrap_or_else(|| {
        panic!(
            "there is no fleetctl above {}: `cargo build -p fleetctl` first",
            own.display()
        )
    })
}
