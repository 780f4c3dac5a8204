//! Conversations with the loop of the helper, over sockets in this process.
#![expect(
    clippy::unwrap_used,
    reason = "a test ends where something is not as it should be"
)]

mod talk;

use std::fs;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;

use fleet_wire::{
    Effect, Finish, FromHost, Mode, OnlyIf, Refusal, Status, ToHost, UndoneState, What,
};
use serde_json::json;
use talk::{Talk, result};

/// A socket that ends in both directions when its owner lets go of it.
struct Ending(UnixStream);

impl std::io::Write for Ending {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        drop(self.0.shutdown(Shutdown::Write));
    }
}

fn talk() -> Talk<Ending, UnixStream> {
    let (ours, theirs) = UnixStream::pair().unwrap();
    thread::spawn(move || {
        let output = Ending(theirs.try_clone().unwrap());
        fleet_modules::serve::serve(theirs, output, None)
    });
    Talk::new(Ending(ours.try_clone().unwrap()), ours)
}

fn copy(talk: &mut Talk<Ending, UnixStream>, dest: &Path, content: &str) -> fleet_wire::Task {
    talk.task("copy", json!({ "dest": dest, "content": content }))
}

fn blob(bytes: &[u8]) -> fleet_wire::Blob {
    use sha2::{Digest, Sha256};
    let sha256 = Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    fleet_wire::Blob {
        sha256,
        size: bytes.len() as u64,
        bytes: None,
    }
}

fn fails(talk: &mut Talk<Ending, UnixStream>) -> fleet_wire::Task {
    talk.task("ping", json!({ "data": "crash" }))
}

#[test]
fn a_run_changes_reports_and_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let dest = dir.path().join("file");
    let mut talk = talk();
    let ready = talk.ready(Mode::Apply, "r1", &state);
    assert!(ready.recovered.is_empty() && ready.pending.is_empty());

    let task = copy(&mut talk, &dest, "hello\n");
    let outcome = talk.run(task);
    assert_eq!(
        (outcome.status, result(&outcome)["changed"].clone()),
        (Status::Changed, json!(true))
    );
    assert_eq!(
        outcome.effects[0].summary(),
        format!("create {}", dest.display())
    );
    let again = copy(&mut talk, &dest, "hello\n");
    let outcome = talk.run(again);
    assert_eq!((outcome.status, outcome.effects.len()), (Status::Ok, 0));

    assert_eq!(talk.finish(Finish::Keep).state, UndoneState::Kept);
    talk.send(&ToHost::Journal);
    let FromHost::Journal(runs) = talk.hear() else {
        panic!()
    };
    assert_eq!(
        (
            runs[0].run.as_str(),
            runs[0].who.as_str(),
            runs[0].state.as_str(),
            runs[0].effects
        ),
        ("r1", "ann@desk", "kept", 1)
    );
}

#[test]
fn a_run_without_a_change_leaves_no_journal() {
    let dir = tempfile::tempdir().unwrap();
    let mut talk = talk();
    talk.ready(Mode::Apply, "r1", &dir.path().join("state"));
    let task = talk.task("ansible.builtin.ping", json!({}));
    assert_eq!(
        result(&talk.run(task)),
        json!({ "ping": "pong", "changed": false })
    );
    assert_eq!(talk.finish(Finish::Keep).state, UndoneState::Unchanged);
    assert_eq!(
        fs::read_dir(dir.path().join("state/txn")).unwrap().count(),
        0
    );
}

#[test]
fn what_was_sent_ahead_behind_a_failure_is_not_run() {
    let dir = tempfile::tempdir().unwrap();
    let mut talk = talk();
    talk.ready(Mode::Apply, "r1", &dir.path().join("state"));
    let ignored = fleet_wire::Task {
        ignore_errors: true,
        ..fails(&mut talk)
    };
    let first = fleet_wire::Task {
        group: 7,
        ..fails(&mut talk)
    };
    let item = fleet_wire::Task {
        group: 7,
        ..copy(&mut talk, &dir.path().join("item"), "x")
    };
    let next = copy(&mut talk, &dir.path().join("next"), "x");
    for task in [ignored, first, item, next] {
        talk.send(&ToHost::Task(Box::new(task)));
    }
    let statuses: Vec<Status> = (0..4).map(|_| talk.done().status).collect();
    assert_eq!(
        statuses,
        [
            Status::Failed,
            Status::Failed,
            Status::Changed,
            Status::NotReached
        ]
    );

    let behind = copy(&mut talk, &dir.path().join("behind"), "x");
    let elsewhere = fleet_wire::Task {
        lane: 1,
        ..copy(&mut talk, &dir.path().join("elsewhere"), "x")
    };
    assert_eq!(
        (talk.run(behind).status, talk.run(elsewhere).status),
        (Status::NotReached, Status::Changed)
    );
    talk.send(&ToHost::Clear(0));
    let rescue = copy(&mut talk, &dir.path().join("rescue"), "x");
    assert_eq!(talk.run(rescue).status, Status::Changed);
}

#[test]
fn a_failure_says_what_and_the_undo_takes_all_back() {
    let dir = tempfile::tempdir().unwrap();
    let dest = dir.path().join("conf");
    fs::write(&dest, "old").unwrap();
    let mut talk = talk();
    talk.ready(Mode::Apply, "r1", &dir.path().join("state"));
    let good = copy(&mut talk, &dest, "new");
    talk.run(good);
    let bad = talk.task("copy", json!({ "dest": dest, "content": "bad", "validate": "sh -c 'echo line 3: no >&2; false' %s" }));
    let outcome = talk.run(bad);
    let fields = result(&outcome);
    assert_eq!(
        (outcome.status, &fields["failed"], &fields["rc"]),
        (Status::Failed, &json!(true), &json!(1))
    );
    assert!(
        fields["msg"]
            .as_str()
            .unwrap()
            .ends_with("which was not put in place: line 3: no"),
        "{fields}"
    );
    assert_eq!(fs::read_to_string(&dest).unwrap(), "new");
    let undone = talk.finish(Finish::Undo);
    assert_eq!(
        (undone.state, undone.effects.len()),
        (UndoneState::RolledBack, 1)
    );
    assert_eq!(fs::read_to_string(&dest).unwrap(), "old");
}

#[test]
fn a_controller_that_goes_away_leaves_the_host_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let dest = dir.path().join("conf");
    fs::write(&dest, "old").unwrap();
    let mut first = talk();
    first.ready(Mode::Apply, "r1", &state);
    let task = copy(&mut first, &dest, "new");
    first.run(task);
    first.hang_up();
    assert_eq!(fs::read_to_string(&dest).unwrap(), "old");
    let mut second = talk();
    assert!(
        second.ready(Mode::Apply, "r2", &state).recovered.is_empty(),
        "the first run undid itself"
    );
}

#[test]
fn a_notification_outlives_a_run_that_failed_before_its_handler() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let handler = |talk: &mut Talk<Ending, UnixStream>| fleet_wire::Task {
        only_if: Some(OnlyIf {
            handler: "reload it".to_owned(),
            notified: false,
        }),
        ..talk.task("ping", json!({}))
    };
    let mut first = talk();
    first.ready(Mode::Apply, "r1", &state);
    let quiet = handler(&mut first);
    assert_eq!(first.run(quiet).status, Status::NotNotified);
    let task = fleet_wire::Task {
        notify: vec!["reload it".to_owned()],
        ..copy(&mut first, &dir.path().join("a"), "x")
    };
    first.run(task);
    first.finish(Finish::Keep);

    let mut second = talk();
    assert_eq!(
        second.ready(Mode::Apply, "r2", &state).pending,
        ["reload it"]
    );
    let due = handler(&mut second);
    assert_eq!(second.run(due).status, Status::Ok);
    let done = handler(&mut second);
    assert_eq!(second.run(done).status, Status::NotNotified);
    // A run that is undone notifies nobody.
    let task = fleet_wire::Task {
        notify: vec!["reload it".to_owned()],
        ..copy(&mut second, &dir.path().join("b"), "x")
    };
    second.run(task);
    second.finish(Finish::Undo);
    assert!(talk().ready(Mode::Plan, "r3", &state).pending.is_empty());
}

#[test]
fn one_run_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let mut first = talk();
    first.ready(Mode::Apply, "r1", &state);
    let FromHost::Refused(Refusal::Locked(locked)) = talk().hello(Mode::Apply, "r2", &state) else {
        panic!()
    };
    assert_eq!(
        (locked.who.as_str(), locked.run.as_str()),
        ("ann@desk", "r1")
    );
    talk().ready(Mode::Plan, "r3", &state);
    first.finish(Finish::Keep);
    talk().ready(Mode::Apply, "r4", &state);
}

#[test]
fn a_large_content_is_asked_for_when_it_is_needed() {
    let dir = tempfile::tempdir().unwrap();
    let dest = dir.path().join("large");
    let content = vec![b'x'; 5 << 20];
    let mut talk = talk();
    talk.ready(Mode::Apply, "r1", &dir.path().join("state"));
    for needed in [true, false] {
        let blob = Some(blob(&content));
        let task = fleet_wire::Task {
            blob,
            ..talk.task(
                "copy",
                json!({ "dest": dest, "src": "large", "mode": "0600" }),
            )
        };
        talk.send(&ToHost::Task(Box::new(task)));
        let FromHost::Started { .. } = talk.hear() else {
            panic!()
        };
        if needed {
            let FromHost::Need { sha256 } = talk.hear() else {
                panic!()
            };
            for (at, part) in content.chunks(1 << 20).enumerate() {
                talk.send(&ToHost::Blob {
                    sha256: sha256.clone(),
                    bytes: part.to_vec(),
                    last: at == 4,
                });
            }
        }
        let outcome = talk.done();
        assert_eq!(
            outcome.status,
            if needed { Status::Changed } else { Status::Ok },
            "{:?}",
            outcome.result
        );
    }
    assert_eq!(fs::read(&dest).unwrap(), content);
    assert_eq!(
        fs::read_dir(dir.path().join("state")).unwrap().count(),
        4,
        "audit log, holder, lock and txn, and no spool"
    );
}

#[test]
fn a_plan_records_and_a_later_apply_does_only_that() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let dest = dir.path().join("conf");
    let mut plan = talk();
    plan.ready(Mode::Plan, "p1", &state);
    let task = copy(&mut plan, &dest, "new");
    let outcome = plan.run(task);
    assert_eq!(outcome.status, Status::Changed);
    let planned: Vec<String> = outcome.effects.iter().map(Effect::digest).collect();
    assert_eq!(plan.finish(Finish::Keep).state, UndoneState::Unchanged);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);

    let mut apply = talk();
    apply.ready(Mode::Apply, "r1", &state);
    fs::write(&dest, "somebody").unwrap();
    let task = fleet_wire::Task {
        planned: Some(planned.clone()),
        ..copy(&mut apply, &dest, "new")
    };
    let fields = result(&apply.run(task));
    assert!(
        fields["msg"].as_str().unwrap().starts_with("stale: "),
        "{fields}"
    );
    assert_eq!(fs::read_to_string(&dest).unwrap(), "somebody");
    fs::remove_file(&dest).unwrap();
    apply.send(&ToHost::Clear(0));
    let task = fleet_wire::Task {
        planned: Some(planned),
        ..copy(&mut apply, &dest, "new")
    };
    assert_eq!(apply.run(task).status, Status::Changed);
}

#[test]
fn a_task_can_go_its_own_way() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let (a, b) = (dir.path().join("a"), dir.path().join("b"));
    let mut apply = talk();
    apply.ready(Mode::Apply, "r1", &state);
    let checked = fleet_wire::Task {
        check: Some(true),
        ..copy(&mut apply, &a, "x")
    };
    assert_eq!(apply.run(checked).status, Status::Changed);
    let real = copy(&mut apply, &a, "x");
    assert!(!a.exists());
    assert_eq!(apply.run(real).status, Status::Changed);
    assert!(a.exists());

    let mut plan = talk();
    plan.ready(Mode::Plan, "p1", &state);
    let real = fleet_wire::Task {
        check: Some(false),
        ..copy(&mut plan, &b, "x")
    };
    assert_eq!(plan.run(real).status, Status::Changed);
    assert!(b.exists());
}

#[test]
fn a_command_that_a_plan_runs_too_soon_is_unknown() {
    let dir = tempfile::tempdir().unwrap();
    let mut plan = talk();
    plan.ready(Mode::Plan, "p1", &dir.path().join("state"));
    let fails = |plan: &mut Talk<Ending, UnixStream>| fleet_wire::Task {
        check: Some(false),
        ignore_errors: true,
        ..plan.task("command", json!({ "cmd": "false" }))
    };
    let task = fails(&mut plan);
    assert_eq!(plan.run(task).status, Status::Failed);
    let task = copy(&mut plan, &dir.path().join("a"), "x");
    assert_eq!(plan.run(task).status, Status::Changed);
    let task = fails(&mut plan);
    assert_eq!(plan.run(task).status, Status::Unknown);
}

#[test]
fn a_command_is_unknown_in_a_plan_and_what_follows_is_assumed() {
    let dir = tempfile::tempdir().unwrap();
    let mut plan = talk();
    plan.ready(Mode::Plan, "p1", &dir.path().join("state"));
    let task = plan.task("command", json!({ "cmd": "true" }));
    let outcome = plan.run(task);
    assert_eq!(outcome.status, Status::Unknown);
    assert!(matches!(outcome.effects[0].what, What::Command { .. }));
    let task = copy(&mut plan, &dir.path().join("a"), "x");
    assert!(plan.run(task).effects[0].assumed);
}

#[test]
fn a_secret_travels_in_no_effect() {
    let dir = tempfile::tempdir().unwrap();
    let dest = dir.path().join("key");
    let mut talk = talk();
    talk.ready(Mode::Apply, "r1", &dir.path().join("state"));
    let task = fleet_wire::Task {
        no_log: true,
        ..copy(&mut talk, &dest, "hunter2")
    };
    let outcome = talk.run(task);
    assert!(outcome.effects[0].secret);
    assert!(!format!("{:?}", outcome.effects).contains(&format!("{:?}", b"hunter2".to_vec())));
    let journal = fs::read_to_string(dir.path().join("state/txn/r1/journal")).unwrap();
    assert!(!journal.contains("hunter2"));
}
