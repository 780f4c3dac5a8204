//! A place to work at: a directory of its own, which is the home, too.

use std::{fs, path::Path, process::Command};

use assert_cmd::cargo::CommandCargoExt;
use tempfile::TempDir;

/// A directory with files in it, where `fleetctl` is run.
pub(crate) struct Desk {
    dir: TempDir,
}

impl Desk {
    /// An empty one with the inventory `hosts.yml`: `web1` and `web2` in the group `web`, `db1` in `db`.
    pub(crate) fn new() -> Self {
        let desk = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        desk.file(
            "hosts.yml",
            "all:\n  children:\n    web: {hosts: {web1: , web2: }}\n    db: {hosts: {db1: }}\n",
        );
        desk
    }

    /// One with a playbook, `site.yml`.
    pub(crate) fn with(playbook: &str) -> Self {
        let desk = Self::new();
        desk.file("site.yml", playbook);
        desk
    }

    /// One whose playbook works on this machine, in this directory: `$DESK` stands for it.
    pub(crate) fn local(tasks: &str) -> Self {
        let desk = Self::new();
        let head = "- hosts: localhost\n  connection: local\n  gather_facts: false\n";
        desk.file("site.yml", &format!("{head}{tasks}"));
        desk.file(
            "here.yml",
            "all: {hosts: {localhost: {fleetctl_state_dir: $DESK/state}}}\n",
        );
        desk
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Writes a file; `$DESK` in it stands for this directory.
    pub(crate) fn file(&self, name: &str, text: &str) -> &Self {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(
            path,
            text.replace("$DESK", &self.path().display().to_string()),
        )
        .unwrap();
        self
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).unwrap()
    }

    /// What `fleetctl` says on each stream, and its exit status.
    pub(crate) fn run(&self, line: &str) -> String {
        self.said(self.output(line))
    }

    fn said(&self, said: std::process::Output) -> String {
        let mut text = self.stable(&said.stdout);
        let stderr = self.stable(&said.stderr);
        if !stderr.is_empty() {
            text.push_str("--- stderr\n");
            text.push_str(&stderr);
        }
        format!("{text}--- exit {}", said.status.code().unwrap())
    }

    /// The same under the name of a program of Ansible.
    pub(crate) fn run_as(&self, name: &str, line: &str) -> String {
        let link = self.path().join("bin").join(name);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        if !link.exists() {
            let own = Command::cargo_bin("fleetctl").unwrap();
            std::os::unix::fs::symlink(own.get_program(), &link).unwrap();
        }
        self.said(self.output_of(Command::new(link), line))
    }

    /// `fleetctl` with words that are parted by blanks; a part in single quotes is one word.
    pub(crate) fn output(&self, line: &str) -> std::process::Output {
        self.output_of(Command::cargo_bin("fleetctl").unwrap(), line)
    }

    fn output_of(&self, mut command: Command, line: &str) -> std::process::Output {
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap());
        command
            .env("HOME", self.path())
            .env("NO_COLOR", "1")
            .env("USER", "ops");
        command
            .current_dir(self.path())
            .args(words(line))
            .output()
            .unwrap()
    }

    /// Without what differs from run to run: this directory's name, and the run's.
    fn stable(&self, bytes: &[u8]) -> String {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let text = text.replace(&self.path().display().to_string(), "$DESK");
        let lines = text.lines().map(|line| match line.strip_prefix("run 2") {
            Some(_) => "run RUN\n".to_owned(),
            None => format!("{}\n", line.trim_end()),
        });
        lines.collect()
    }
}

fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, part) in line.split('\'').enumerate() {
        match index % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    words
}
