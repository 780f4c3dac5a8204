//! Disks that are full or read-only, marked files and talkative commands: what goes wrong on a host, for real.
#![expect(
    clippy::unwrap_used,
    reason = "a test ends where something is not as it should be"
)]

mod process;
mod talk;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use fleet_wire::{Finish, Mode, Status, UndoneState};
use process::helper;
use serde_json::json;
use talk::result;

/// A small disk of its own, where the test may mount one.
struct Disk(PathBuf);

impl Disk {
    fn new(at: PathBuf, options: &str) -> Option<Self> {
        fs::create_dir(&at).unwrap();
        let disk = Self(at);
        disk.mount(options).then_some(disk)
    }

    fn mount(&self, options: &str) -> bool {
        let words = ["-t", "tmpfs", "-o", options, "tmpfs"];
        let mounted = Command::new("mount").args(words).arg(&self.0).status();
        mounted.is_ok_and(|status| status.success())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(&self.0).status());
    }
}

#[test]
fn what_a_full_disk_cannot_hold_is_refused_with_the_bytes_needed() {
    let dir = tempfile::tempdir().unwrap();
    let Some(disk) = Disk::new(dir.path().join("disk"), "size=256k") else {
        return;
    };
    let dest = disk.0.join("conf");
    fs::write(&dest, "old").unwrap();
    for mode in [Mode::Plan, Mode::Apply] {
        let mut helper = helper(mode, "r1", &dir.path().join("state"));
        let task = helper.talk.task(
            "copy",
            json!({ "dest": dest, "content": "x".repeat(300_000) }),
        );
        let fields = result(&helper.talk.run(task));
        let text = fields["msg"].as_str().unwrap();
        assert!(
            text.contains("308192 bytes are needed on the file system of"),
            "{text}"
        );
        assert_eq!(helper.end(Finish::Undo).state, UndoneState::Unchanged);
    }
    assert_eq!(fs::read_to_string(&dest).unwrap(), "old");
    assert_eq!(fs::read_dir(&disk.0).unwrap().count(), 1);
}

#[test]
fn an_undo_is_journaled_though_the_journals_disk_is_full() {
    let dir = tempfile::tempdir().unwrap();
    let Some(disk) = Disk::new(dir.path().join("disk"), "size=256k") else {
        return;
    };
    let (state, dest) = (disk.0.join("state"), dir.path().join("conf"));
    fs::write(&dest, "old").unwrap();
    let mut helper = helper(Mode::Apply, "r1", &state);
    for content in ["new", "newer"] {
        let task = helper
            .talk
            .task("copy", json!({ "dest": dest, "content": content }));
        assert_eq!(helper.talk.run(task).status, Status::Changed);
    }
    assert!(fs::write(disk.0.join("fill"), vec![0; 1 << 20]).is_err());
    let task = helper
        .talk
        .task("copy", json!({ "dest": dest, "content": "newest" }));
    assert_eq!(helper.talk.run(task).status, Status::Failed);
    let undone = helper.end(Finish::Undo);
    assert_eq!(
        undone.state,
        UndoneState::RolledBack,
        "{:?}",
        undone.effects
    );
    assert_eq!(fs::read_to_string(&dest).unwrap(), "old");
    let journal = fs::read_to_string(state.join("txn/r1/journal")).unwrap();
    assert!(
        journal.lines().last().unwrap().contains("rolled_back"),
        "{journal}"
    );
}

#[test]
fn a_disk_that_became_read_only_is_a_rollback_that_failed() {
    let dir = tempfile::tempdir().unwrap();
    let Some(disk) = Disk::new(dir.path().join("disk"), "size=1m") else {
        return;
    };
    let dest = disk.0.join("conf");
    let state = dir.path().join("state");
    fs::write(&dest, "old").unwrap();
    let mut first = helper(Mode::Apply, "r1", &state);
    let task = first
        .talk
        .task("copy", json!({ "dest": dest, "content": "new" }));
    assert_eq!(first.talk.run(task).status, Status::Changed);
    assert!(disk.mount("remount,ro"));
    let undone = first.end(Finish::Undo);
    assert_eq!(undone.state, UndoneState::RollbackFailed);
    let problem = undone.effects[0].problem.as_deref().unwrap();
    assert!(
        problem.to_lowercase().contains("read-only file system"),
        "{problem}"
    );
    assert!(disk.mount("remount,rw"));
    let mut second = helper(Mode::Apply, "r2", &state);
    second.talk.send(&fleet_wire::ToHost::Rollback {
        run: "r1".to_owned(),
    });
    let fleet_wire::FromHost::Finished(undone) = second.talk.hear() else {
        panic!()
    };
    assert_eq!(undone.state, UndoneState::RolledBack);
    assert_eq!(fs::read_to_string(&dest).unwrap(), "old");
    second.end(Finish::Keep);
}

#[test]
fn a_file_that_is_marked_is_refused_in_a_plan_too() {
    let dir = tempfile::tempdir().unwrap();
    let dest = dir.path().join("conf");
    fs::write(&dest, "old").unwrap();
    for (mark, word) in [("i", "immutable"), ("a", "append-only")] {
        let chattr = |sign: &str| {
            let done = Command::new("chattr")
                .arg(format!("{sign}{mark}"))
                .arg(&dest)
                .status();
            done.is_ok_and(|status| status.success())
        };
        if !chattr("+") {
            return;
        }
        for mode in [Mode::Plan, Mode::Apply] {
            let run = format!("r-{mark}");
            let mut helper = helper(mode, &run, &dir.path().join("state"));
            let task = helper
                .talk
                .task("copy", json!({ "dest": dest, "content": "new" }));
            let outcome = helper.talk.run(task);
            let text = result(&outcome)["msg"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            let undone = helper.end(Finish::Undo);
            let marked = text.contains(&format!("is marked {word}"));
            assert!(
                marked && undone.state == UndoneState::Unchanged || !chattr("-"),
                "{text}"
            );
        }
        assert!(chattr("-"));
    }
}

#[test]
fn a_command_that_says_too_much_is_cut_and_not_the_conversation() {
    let dir = tempfile::tempdir().unwrap();
    let mut helper = helper(Mode::Apply, "r1", &dir.path().join("state"));
    for noise in [
        "head -c 1000000000 /dev/zero",
        "yes | head -c 30000000; head -c 30000000 /dev/urandom >&2",
    ] {
        let task = helper.talk.task("shell", json!({ "cmd": noise }));
        let outcome = helper.talk.run(task);
        assert_eq!(outcome.status, Status::Changed);
        assert!(
            result(&outcome)["warnings"][0]
                .as_str()
                .unwrap()
                .contains("cut"),
        );
    }
    let undone = helper.end(Finish::Undo);
    assert_eq!(undone.effects.len(), 2);
    assert!(
        undone
            .effects
            .iter()
            .all(|effect| effect.problem.as_deref() == Some("what a command did cannot be undone"))
    );
}
