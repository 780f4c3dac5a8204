//! The helper's own binary: what no thread of a test can try, such as being killed.
#![expect(
    clippy::unwrap_used,
    reason = "a test ends where something is not as it should be"
)]

mod talk;

use std::fs;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use fleet_wire::{Finish, FromHost, Mode, Status, ToHost, UndoneState};
use serde_json::json;
use talk::Talk;

const HELPER: &str = env!("CARGO_BIN_EXE_fleet-helper");

fn start() -> (Child, Talk<ChildStdin, ChildStdout>) {
    let mut child = Command::new(HELPER)
        .arg("serve")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let talk = Talk::new(child.stdin.take().unwrap(), child.stdout.take().unwrap());
    (child, talk)
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_killed_helper_leaves_a_host_that_the_next_one_puts_right() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let tree = dir.path().join("tree");
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("conf"), "old").unwrap();

    let (mut child, mut talk) = start();
    talk.ready(Mode::Apply, "r1", &state);
    let task = talk.task(
        "copy",
        json!({ "dest": tree.join("conf"), "content": "new" }),
    );
    assert_eq!(talk.run(task).status, Status::Changed);
    let task = talk.task(
        "file",
        json!({ "path": tree.join("made"), "state": "directory" }),
    );
    assert_eq!(talk.run(task).status, Status::Changed);
    // The validator runs between the intent and the rename: there the helper is killed.
    let waits = format!(
        "sh -c 'touch {}; sleep 3' %s",
        dir.path().join("now").display()
    );
    let task = talk.task(
        "copy",
        json!({ "dest": tree.join("conf"), "content": "newer", "validate": waits }),
    );
    talk.send(&ToHost::Task(Box::new(task)));
    while !dir.path().join("now").exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(fs::read_to_string(tree.join("conf")).unwrap(), "new");
    assert!(
        names(&tree)
            .iter()
            .any(|name| name.starts_with(".fleetctl-")),
        "something was staged"
    );

    let (mut child, mut talk) = start();
    let ready = talk.ready(Mode::Apply, "r2", &state);
    assert_eq!(
        (ready.recovered[0].run.as_str(), ready.recovered[0].state),
        ("r1", UndoneState::RolledBack)
    );
    assert_eq!(names(&tree), ["conf"]);
    assert_eq!(fs::read_to_string(tree.join("conf")).unwrap(), "old");
    assert_eq!(talk.finish(Finish::Keep).state, UndoneState::Unchanged);
    talk.hang_up();
    assert!(child.wait().unwrap().success());
}

#[test]
fn noise_is_no_conversation() {
    let (mut child, talk) = start();
    talk.hang_up();
    assert!(child.wait().unwrap().success());
    let output = Command::new(HELPER).arg("--version").output().unwrap();
    assert!(
        String::from_utf8(output.stdout)
            .unwrap()
            .starts_with("fleet-helper ")
    );
    assert_eq!(
        Command::new(HELPER).output().unwrap().status.code(),
        Some(64)
    );
}

#[test]
fn a_frame_that_is_too_large_ends_the_conversation() {
    use std::io::Write;
    let mut child = Command::new(HELPER)
        .arg("serve")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&[0xff; 64]).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert!(output.stdout.starts_with(b"FLEETCTL-HELPER "));
}

#[test]
fn another_user_writes_with_its_own_rights() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let theirs = dir.path().join("theirs");
    fs::create_dir(&theirs).unwrap();
    chown(&theirs, Some(65_534), Some(65_534)).unwrap();
    let (mut child, mut talk) = start();
    talk.ready(Mode::Apply, "r1", &dir.path().join("state"));
    let nobody = |task: fleet_wire::Task| fleet_wire::Task {
        user: fleet_wire::As::User("nobody".to_owned()),
        ignore_errors: true,
        ..task
    };
    let task = nobody(talk.task("copy", json!({ "dest": theirs.join("a"), "content": "x" })));
    let outcome = talk.run(task);
    assert_eq!(outcome.status, Status::Changed, "{:?}", outcome.result);
    assert_eq!(fs::metadata(theirs.join("a")).unwrap().uid(), 65_534);
    let task = nobody(talk.task(
        "copy",
        json!({ "dest": dir.path().join("b"), "content": "x" }),
    ));
    let outcome = talk.run(task);
    assert_eq!(outcome.status, Status::Failed);
    assert!(
        outcome.result.0.contains("permission denied"),
        "{:?}",
        outcome.result
    );
    let (mut planner, mut plan) = start();
    plan.ready(Mode::Plan, "p1", &dir.path().join("state"));
    let task = nobody(plan.task(
        "copy",
        json!({ "dest": dir.path().join("b"), "content": "x" }),
    ));
    assert_eq!(
        plan.run(task).status,
        Status::Failed,
        "a plan does not promise what an apply cannot do"
    );
    plan.hang_up();
    planner.wait().unwrap();
    let task = nobody(talk.task("command", json!({ "cmd": "id -un" })));
    assert_eq!(talk::result(&talk.run(task))["stdout"], "nobody");
    talk.send(&ToHost::Finish(Finish::Undo));
    let FromHost::Finished(undone) = talk.hear() else {
        panic!()
    };
    assert_eq!(undone.state, UndoneState::RolledBack);
    assert!(names(&theirs).is_empty());
    talk.hang_up();
    child.wait().unwrap();
}
