//! The transaction of a saved plan on its host, with the real helper: once, gone on with, looked after by the host itself.
#![expect(
    clippy::unwrap_used,
    reason = "a test ends where something is not as it should be"
)]

mod talk;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use fleet_wire::{
    Finish, FromHost, Mode, Refusal, Status, ToHost, Transaction, Undone, UndoneState,
};
use serde_json::json;
use talk::{Talk, result};

/// A host, with its state and its files.
struct Host(tempfile::TempDir);

struct Helper {
    child: Child,
    talk: Talk<ChildStdin, ChildStdout>,
}

impl Host {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("srv")).unwrap();
        Self(dir)
    }

    fn state(&self) -> PathBuf {
        self.0.path().join("state")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join("srv").join(name)
    }

    fn run_dir(&self) -> PathBuf {
        self.state().join("txn/r1")
    }

    /// A controller's hello for the saved plan, by the run r1, to be confirmed within so many seconds.
    fn hello(&self, controller: u64, resume: bool, confirm_s: u32) -> (Helper, FromHost) {
        let mut helper = start();
        helper.talk.controller = controller;
        helper.talk.transaction = Transaction {
            plan: Some("fp1:abc".to_owned()),
            resume,
            machine_id: None,
            confirm_s: Some(confirm_s),
        };
        let heard = helper.talk.hello(Mode::Apply, "r1", &self.state());
        (helper, heard)
    }

    fn applies(&self, controller: u64, resume: bool, confirm_s: u32) -> Helper {
        match self.hello(controller, resume, confirm_s) {
            (helper, FromHost::Ready(_)) => helper,
            (_, other) => panic!("{other:?}"),
        }
    }

    /// Another run, which changes nothing; what it found cut off.
    fn other_run(&self) -> Vec<Undone> {
        let mut helper = start();
        let recovered = helper
            .talk
            .ready(Mode::Apply, "r2", &self.state())
            .recovered;
        helper.talk.finish(Finish::Keep);
        recovered
    }

    fn confirm(&self) -> Undone {
        let mut helper = start();
        helper.talk.ready(Mode::Care, "r1", &self.state());
        helper.talk.send(&ToHost::Confirm {
            run: "r1".to_owned(),
        });
        match helper.talk.hear() {
            FromHost::Finished(undone) => undone,
            other => panic!("{other:?}"),
        }
    }

    /// How the journal says that the run stands.
    fn ended(&self) -> (String, Option<String>) {
        let mut helper = start();
        helper.talk.ready(Mode::Read, "r9", &self.state());
        helper.talk.send(&ToHost::Journal);
        match helper.talk.hear() {
            FromHost::Journal(runs) => {
                let run = runs.into_iter().find(|run| run.run == "r1").unwrap();
                (run.state, run.why)
            }
            other => panic!("{other:?}"),
        }
    }

    fn becomes(&self, state: &str) {
        let began = Instant::now();
        while self.ended().0 != state {
            assert!(
                began.elapsed() < Duration::from_secs(30),
                "{:?}",
                self.ended()
            );
            thread::sleep(Duration::from_millis(100));
        }
    }
}

fn start() -> Helper {
    let mut child = Command::new(env!("CARGO_BIN_EXE_fleet-helper"))
        .arg("serve")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let talk = Talk::new(child.stdin.take().unwrap(), child.stdout.take().unwrap());
    Helper { child, talk }
}

impl Helper {
    fn copy(&mut self, key: &str, dest: &Path) -> Status {
        let mut task = self
            .talk
            .task("copy", json!({ "dest": dest, "content": "new" }));
        key.clone_into(&mut task.key);
        self.talk.run(task).status
    }

    fn shell(&mut self, key: &str, line: &str) -> fleet_wire::Task {
        let mut task = self.talk.task("shell", json!({ "cmd": line }));
        key.clone_into(&mut task.key);
        task
    }

    fn keeps(&mut self) -> FromHost {
        self.talk.send(&ToHost::Finish(Finish::Keep));
        self.talk.hear()
    }

    fn leave(mut self) {
        assert_eq!(self.talk.finish(Finish::Leave).state, UndoneState::Kept);
        self.talk.hang_up();
        self.child.wait().unwrap();
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[test]
fn a_run_whose_helper_is_killed_is_undone_unless_somebody_confirms() {
    let host = Host::new();
    let mut helper = host.applies(1, false, 1);
    assert_eq!(helper.copy("a", &host.file("a")), Status::Changed);
    helper.kill();
    host.becomes("rolled_back");
    assert!(!host.file("a").exists());
    assert_eq!(
        host.ended().1.unwrap(),
        "nobody confirmed the run within 1 s"
    );
    let (_, heard) = host.hello(2, true, 1);
    let FromHost::Refused(Refusal::Applied { run, state }) = heard else {
        panic!("{heard:?}")
    };
    assert_eq!((run.as_str(), state.as_str()), ("r1", "rolled_back"));
}

#[test]
fn a_confirmed_run_stays() {
    let host = Host::new();
    let mut helper = host.applies(1, false, 2);
    helper.copy("a", &host.file("a"));
    assert!(matches!(helper.keeps(), FromHost::Armed { run } if run == "r1"));
    assert_eq!(host.confirm().state, UndoneState::Kept);
    thread::sleep(Duration::from_secs(8));
    assert!(host.file("a").exists());
    assert_eq!(host.ended().0, "kept");
    assert_eq!(host.confirm().state, UndoneState::Kept);
}

#[test]
fn an_undo_that_the_host_has_begun_is_done_by_whoever_holds_the_lock() {
    let host = Host::new();
    let mut helper = host.applies(1, false, 600);
    helper.copy("a", &host.file("a"));
    helper.kill();
    fs::rename(host.run_dir().join("armed"), host.run_dir().join("undoing")).unwrap();
    let recovered = host.other_run();
    assert_eq!(recovered[0].state, UndoneState::RolledBack);
    assert!(!host.file("a").exists());
    assert_eq!(host.ended().0, "rolled_back");
}

#[test]
fn a_run_that_the_host_has_begun_to_undo_does_not_go_on() {
    let host = Host::new();
    let mut helper = host.applies(1, false, 600);
    helper.copy("a", &host.file("a"));
    helper.kill();
    fs::rename(host.run_dir().join("armed"), host.run_dir().join("undoing")).unwrap();
    let (_, heard) = host.hello(2, true, 600);
    assert!(
        matches!(&heard, FromHost::Refused(Refusal::Applied { state, .. }) if state == "rolled_back"),
        "{heard:?}"
    );
    assert!(!host.file("a").exists());
}

#[test]
fn a_run_that_was_confirmed_stays_though_the_host_went_down_before_it_said_so() {
    let host = Host::new();
    let mut helper = host.applies(1, false, 600);
    helper.copy("a", &host.file("a"));
    helper.kill();
    fs::rename(
        host.run_dir().join("armed"),
        host.run_dir().join("confirmed"),
    )
    .unwrap();
    assert_eq!(host.other_run(), []);
    assert!(host.file("a").exists());
    assert_eq!(host.ended().0, "kept");
}

#[test]
fn a_run_that_goes_on_is_looked_after_before_it_does_anything() {
    let host = Host::new();
    let mut helper = host.applies(1, false, 600);
    helper.copy("a", &host.file("a"));
    helper.kill();
    // All is done already: the step is told from the record, and the whole is still to be confirmed.
    let mut helper = host.applies(2, true, 600);
    assert_eq!(helper.copy("a", &host.file("a")), Status::Changed);
    assert!(matches!(helper.keeps(), FromHost::Armed { run } if run == "r1"));
    let helper = host.applies(3, true, 1);
    helper.kill();
    host.becomes("rolled_back");
    assert!(!host.file("a").exists());
}

#[test]
fn a_controller_goes_on_with_the_run_that_it_left_and_nobody_else_does() {
    let host = Host::new();
    let mut helper = host.applies(1, false, 600);
    helper.copy("a", &host.file("a"));
    helper.leave();
    let mut helper = host.applies(1, false, 1);
    assert_eq!(helper.copy("b", &host.file("b")), Status::Changed);
    helper.kill();
    // One change: what was done before it left is undone, too.
    host.becomes("rolled_back");
    assert!(!host.file("b").exists() && !host.file("a").exists());

    let host = Host::new();
    let mut helper = host.applies(1, false, 600);
    helper.copy("a", &host.file("a"));
    helper.leave();
    let (_, heard) = host.hello(2, false, 600);
    assert!(
        matches!(heard, FromHost::Refused(Refusal::Applied { .. })),
        "{heard:?}"
    );
}

#[test]
fn a_deadline_that_cannot_be_read_is_over() {
    let host = Host::new();
    let mut helper = host.applies(1, false, 600);
    helper.copy("a", &host.file("a"));
    helper.kill();
    fs::write(host.run_dir().join("armed"), "garbled").unwrap();
    host.becomes("rolled_back");
    assert!(!host.file("a").exists());
    assert!(host.ended().1.unwrap().contains("cannot be read"));
}

#[test]
fn what_a_saved_plan_has_sent_is_done_though_nobody_hears_of_it() {
    let host = Host::new();
    let mut helper = host.applies(1, false, 600);
    let order = host.file("order");
    for word in ["one", "two", "three"] {
        let line = format!("sleep 0.5; echo {word} >> {}", order.display());
        let task = helper.shell(word, &line);
        helper.talk.send(&ToHost::Task(Box::new(task)));
    }
    // Both pipes close.
    drop(helper.talk);
    helper.child.wait().unwrap();
    assert_eq!(fs::read_to_string(&order).unwrap(), "one\ntwo\nthree\n");
    assert_eq!(host.ended().0, "held");
    let mut helper = host.applies(2, true, 600);
    let task = helper.shell("two", "exit 1");
    let told = helper.talk.run(task);
    assert_eq!(
        (told.status, result(&told)["rc"].as_i64()),
        (Status::Changed, Some(0))
    );
    helper.talk.finish(Finish::Undo);
    assert_eq!(host.ended().0, "rolled_back");
}

#[test]
fn a_helper_that_is_killed_before_its_first_step_leaves_nothing_open() {
    let host = Host::new();
    for after in 0..12 {
        let mut helper = host.applies(1, false, 1);
        let mut task = helper
            .talk
            .task("copy", json!({ "dest": host.file("a"), "content": "new" }));
        "a".clone_into(&mut task.key);
        helper.talk.send(&ToHost::Task(Box::new(task)));
        thread::sleep(Duration::from_millis(after * 4));
        helper.kill();
        let began = Instant::now();
        let is_open = || {
            let text = fs::read_to_string(host.run_dir().join("journal"));
            text.is_ok_and(|text| !text.lines().last().unwrap_or_default().contains("\"end\""))
        };
        while is_open() {
            assert!(began.elapsed() < Duration::from_secs(30), "{after}");
            thread::sleep(Duration::from_millis(50));
        }
        assert!(!host.file("a").exists(), "{after}");
        fs::remove_dir_all(host.state()).unwrap();
    }
}
