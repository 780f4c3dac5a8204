//! Packages come and go for real, on an overlay of this machine's own Debian that nobody else sees.
#![expect(
    clippy::unwrap_used,
    reason = "a test ends where something is not as it should be"
)]

mod talk;

use std::fs;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use fleet_wire::{Effect, Finish, Mode, Status, Task, UndoneState, What};
use serde_json::json;
use talk::{Talk, result};

/// A file system of its own over the machine's, in which a repository is the only source of packages.
const STAGE: &str = r#"set -e
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
mount -t proc proc "$1/root/proc"
mount --rbind /dev "$1/root/dev"
cd "$1/root"
rm -rf etc/apt/sources.list etc/apt/sources.list.d/* var/lib/apt/lists/*
# A container's image may have turned them off.
echo 'Dir::Cache::pkgcache "pkgcache.bin"; Dir::Cache::srcpkgcache "srcpkgcache.bin";' > etc/apt/apt.conf.d/zz-caches
mkdir -p srv/repo
pack() {
  mkdir -p "pack/$1/DEBIAN"
  printf 'Package: %s\nVersion: %s\nArchitecture: all\nMaintainer: tests <tests@localhost>\nDescription: for tests\nDepends: %s\n' "$1" "$2" "$3" | grep -v ': $' > "pack/$1/DEBIAN/control"
  [ -z "$4" ] || { printf '#!/bin/sh\n%s\n' "$4" > "pack/$1/DEBIAN/postinst"; chmod 755 "pack/$1/DEBIAN/postinst"; }
  dpkg-deb --build "pack/$1" "srv/repo/$1_$2.deb" >/dev/null
  { cat "pack/$1/DEBIAN/control"; printf 'Filename: ./%s_%s.deb\nSize: %s\nSHA256: %s\n\n' "$1" "$2" "$(stat -c %s "srv/repo/$1_$2.deb")" "$(sha256sum "srv/repo/$1_$2.deb" | cut -d' ' -f1)"; } >> srv/repo/Packages
}
pack fleet-base 1 '' ''
pack fleet-base 2 '' ''
pack fleet-app 1 fleet-base ''
pack fleet-other 1 fleet-base ''
pack fleet-broken 1 '' 'exit 1'
rm -rf pack
echo 'deb [trusted=yes] file:/srv/repo ./' > etc/apt/sources.list
chroot . apt-get -q update >/dev/null 2>&1
rm -f var/cache/apt/*.bin
exec chroot . "$2" serve
"#;

struct Machine {
    child: Child,
    talk: Talk<ChildStdin, ChildStdout>,
}

/// None where it cannot be made: it takes root, and Debian.
fn machine(dir: &Path, mode: Mode) -> Option<Machine> {
    if !rustix::process::geteuid().is_root() || !Path::new("/usr/bin/apt-get").exists() {
        return None;
    }
    let mut child = Command::new("unshare")
        .args(["-m", "sh", "-c", STAGE, "sh"])
        .arg(dir)
        .arg(env!("CARGO_BIN_EXE_fleet-helper"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut talk = Talk::new(child.stdin.take().unwrap(), child.stdout.take().unwrap());
    talk.ready(mode, "r1", Path::new("/var/lib/fleetctl-tests"));
    Some(Machine { child, talk })
}

impl Machine {
    fn apt(&mut self, name: &str, state: &str) -> fleet_wire::Outcome {
        let task = self
            .talk
            .task("apt", json!({ "name": name, "state": state }));
        self.talk.run(task)
    }

    /// What somebody else does meanwhile.
    fn meanwhile(&mut self, cmd: &str) {
        let task = Task {
            changed: Some(false),
            ..self.talk.task("shell", json!({ "cmd": cmd }))
        };
        let outcome = self.talk.run(task);
        assert_eq!(outcome.status, Status::Ok, "{:?}", outcome.result);
    }

    /// The packages of the tests that dpkg knows, with their state and version.
    fn packages(&self) -> Vec<String> {
        let status = fs::read_to_string(self.inside("var/lib/dpkg/status")).unwrap();
        let field = |paragraph: &str, name: &str| {
            let line = paragraph.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_default().to_owned()
        };
        let mut known: Vec<String> = status
            .split("\n\n")
            .filter(|paragraph| paragraph.starts_with("Package: fleet-"))
            .map(|paragraph| {
                format!(
                    "{} {} {}",
                    field(paragraph, "Package: "),
                    field(paragraph, "Version: "),
                    field(paragraph, "Status: ")
                )
            })
            .collect();
        known.sort();
        known
    }

    fn inside(&self, path: &str) -> String {
        format!("/proc/{}/root/{path}", self.child.id())
    }

    fn end(mut self) {
        self.talk.hang_up();
        self.child.wait().unwrap();
    }
}

fn digests(effects: &[Effect]) -> Vec<String> {
    effects.iter().map(Effect::digest).collect()
}

#[test]
fn what_was_planned_is_installed_once_and_undone() {
    let (plans, applies) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let Some(mut plan) = machine(plans.path(), Mode::Plan) else {
        return;
    };
    let planned = plan.apt("fleet-app", "present");
    assert_eq!(planned.effects.len(), 2, "{:?}", planned.result);
    assert_eq!(plan.packages(), Vec::<String>::new());
    let caches = fs::read_dir(plan.inside("var/cache/apt")).unwrap();
    assert!(
        caches.into_iter().all(|entry| {
            entry
                .unwrap()
                .path()
                .extension()
                .is_none_or(|end| end != "bin")
        }),
        "a plan writes nothing"
    );
    plan.end();

    let mut apply = machine(applies.path(), Mode::Apply).unwrap();
    let done = apply.apt("fleet-app", "present");
    assert_eq!(digests(&done.effects), digests(&planned.effects));
    assert_eq!(
        apply.packages(),
        [
            "fleet-app 1 install ok installed",
            "fleet-base 2 install ok installed"
        ]
    );
    let again = apply.apt("fleet-app", "present");
    assert_eq!((again.status, again.effects.len()), (Status::Ok, 0));
    let undone = apply.talk.finish(Finish::Undo);
    assert_eq!(
        undone.state,
        UndoneState::RolledBack,
        "{:?}",
        undone.effects
    );
    assert_eq!(apply.packages(), Vec::<String>::new());
    apply.end();
}

#[test]
fn a_removal_and_an_upgrade_are_undone() {
    let dir = tempfile::tempdir().unwrap();
    let Some(mut apply) = machine(dir.path(), Mode::Apply) else {
        return;
    };
    apply.meanwhile("apt-get -q -y install fleet-base=1 fleet-app");
    let upgraded = apply.apt("fleet-base", "latest");
    assert_eq!(result(&upgraded)["changed"], true);
    assert_eq!(
        upgraded.effects[0].what,
        What::Package {
            name: "fleet-base".to_owned(),
            before: Some("1".to_owned()),
            after: Some("2".to_owned())
        }
    );
    assert_eq!(apply.apt("fleet-base", "absent").effects.len(), 2);
    assert_eq!(apply.packages(), Vec::<String>::new());
    let undone = apply.talk.finish(Finish::Undo);
    assert_eq!(
        undone.state,
        UndoneState::RolledBack,
        "{:?}",
        undone.effects
    );
    assert_eq!(
        apply.packages(),
        [
            "fleet-app 1 install ok installed",
            "fleet-base 1 install ok installed"
        ]
    );
    apply.end();
}

#[test]
fn what_somebody_else_has_installed_since_is_not_taken_along() {
    let dir = tempfile::tempdir().unwrap();
    let Some(mut apply) = machine(dir.path(), Mode::Apply) else {
        return;
    };
    apply.apt("fleet-app", "present");
    apply.meanwhile("apt-get -q -y install fleet-other");
    let undone = apply.talk.finish(Finish::Undo);
    assert_eq!(
        undone.state,
        UndoneState::RollbackConflict,
        "{:?}",
        undone.effects
    );
    assert_eq!(
        apply.packages(),
        [
            "fleet-base 2 install ok installed",
            "fleet-other 1 install ok installed"
        ]
    );
    apply.end();
}

#[test]
fn a_package_that_could_not_be_configured_is_taken_away_again() {
    let dir = tempfile::tempdir().unwrap();
    let Some(mut apply) = machine(dir.path(), Mode::Apply) else {
        return;
    };
    assert_eq!(apply.apt("fleet-broken", "present").status, Status::Failed);
    assert_eq!(
        apply.packages(),
        ["fleet-broken 1 install ok half-configured"]
    );
    let undone = apply.talk.finish(Finish::Undo);
    assert_eq!(
        (undone.state, undone.effects.len()),
        (UndoneState::RolledBack, 1),
        "{:?}",
        undone.effects
    );
    assert_eq!(apply.packages(), Vec::<String>::new());
    apply.end();
}
