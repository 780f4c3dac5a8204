//! Modules that fleetctl has not, run by the helper.
#![expect(
    clippy::unwrap_used,
    reason = "a test ends where something is not as it should be"
)]

mod talk;

use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::{fs, thread};

use fleet_wire::{As, Blob, Finish, Mode, Outcome, Status, Task, UndoneState};
use serde_json::{Value, json};
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

struct Helper(Talk<Ending, UnixStream>);

impl Helper {
    fn start(mode: Mode, state: &Path) -> Self {
        let (ours, theirs) = UnixStream::pair().unwrap();
        thread::spawn(move || {
            let output = Ending(theirs.try_clone().unwrap());
            fleet_modules::serve::serve(theirs, output, None)
        });
        let mut talk = Talk::new(Ending(ours.try_clone().unwrap()), ours);
        talk.ready(mode, "r1", state);
        Self(talk)
    }

    /// A script as a module; `args` says how it is run.
    fn task(&mut self, script: &str, args: &Value) -> Task {
        let mut all = json!({"name": "m", "kind": "want_json", "interpreter": ["/bin/sh"], "arguments": {}, "checkable": false});
        for (name, value) in args.as_object().unwrap() {
            all[name] = value.clone();
        }
        let mut task = self.0.task("_external", all);
        let bytes = script.as_bytes();
        task.blob = Some(Blob {
            sha256: {
                use sha2::{Digest, Sha256};
                Sha256::digest(bytes)
                    .iter()
                    .map(|byte| format!("{byte:02x}"))
                    .collect()
            },
            size: bytes.len() as u64,
            bytes: Some(bytes.to_vec()),
        });
        task
    }

    fn run(&mut self, script: &str, args: &Value) -> Outcome {
        let task = self.task(script, args);
        self.0.run(task)
    }
}

fn summaries(outcome: &Outcome) -> Vec<String> {
    outcome
        .effects
        .iter()
        .map(fleet_wire::Effect::summary)
        .collect()
}

#[test]
fn a_module_that_changes_nothing_is_no_effect_and_one_that_does_is() {
    let dir = tempfile::tempdir().unwrap();
    let mut helper = Helper::start(Mode::Apply, dir.path());
    let same = helper.run("echo '{\"changed\": false, \"a\": 1}'", &json!({}));
    assert_eq!((same.status, summaries(&same)), (Status::Ok, vec![]));
    assert_eq!(result(&same), json!({"changed": false, "a": 1}));
    let other = helper.run("echo '{\"changed\": true}'", &json!({}));
    assert_eq!(
        (other.status, summaries(&other)),
        (
            Status::Changed,
            vec!["command external module m".to_owned()]
        )
    );
    let undone = helper.0.finish(Finish::Undo);
    assert_eq!(undone.state, UndoneState::RolledBack);
    let left: Vec<&str> = undone
        .effects
        .iter()
        .map(|effect| effect.effect.as_str())
        .collect();
    assert_eq!(left, ["command external module m"]);
}

#[test]
fn a_run_of_modules_that_change_nothing_changed_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut helper = Helper::start(Mode::Apply, dir.path());
    helper.run("echo '{}'", &json!({}));
    assert_eq!(helper.0.finish(Finish::Keep).state, UndoneState::Unchanged);
}

#[test]
fn arguments_come_in_the_form_that_the_module_reads() {
    let dir = tempfile::tempdir().unwrap();
    let mut helper = Helper::start(Mode::Apply, dir.path());
    let arguments = json!({"arguments": {"a": "b c", "n": null}});
    let in_file = helper.run("cat \"$1\"", &arguments);
    let read = result(&in_file);
    assert_eq!(
        (&read["a"], &read["_ansible_check_mode"]),
        (&json!("b c"), &json!(false))
    );
    let gone = read["_ansible_tmpdir"].as_str().unwrap();
    assert!(gone.starts_with('/') && !Path::new(gone).exists());

    let mut words = arguments.clone();
    words["kind"] = "keys_and_values".into();
    let sourced = helper.run(
        ". \"$1\"; echo \"{\\\"a\\\": \\\"$a\\\", \\\"n\\\": \\\"$n\\\"}\"",
        &words,
    );
    assert_eq!(
        result(&sourced),
        json!({"a": "b c", "n": "None", "changed": false})
    );

    let mut in_text = arguments.clone();
    in_text["kind"] = "json_in_text".into();
    let filled = helper.run("echo '<<INCLUDE_ANSIBLE_MODULE_JSON_ARGS>>'", &in_text);
    assert_eq!(result(&filled)["a"], "b c");

    let mut program = arguments.clone();
    program["kind"] = "binary".into();
    program.as_object_mut().unwrap().remove("interpreter");
    let run = helper.run("#!/bin/sh\ncat $1", &program);
    assert_eq!(result(&run)["a"], "b c");
}

#[test]
fn a_failure_has_what_the_module_says_and_is_no_change() {
    let dir = tempfile::tempdir().unwrap();
    let mut helper = Helper::start(Mode::Apply, dir.path());
    let mut task = helper.task(
        "echo '{\"failed\": true, \"msg\": \"bad\", \"x\": 1}'; exit 1",
        &json!({}),
    );
    task.ignore_errors = true;
    let failed = helper.0.run(task);
    assert_eq!(failed.status, Status::Failed);
    assert_eq!(
        result(&failed),
        json!({"x": 1, "failed": true, "msg": "bad", "changed": false})
    );
    let broken = helper.run("echo no; echo err >&2; exit 3", &json!({}));
    assert_eq!(result(&broken)["module_stderr"], "err\n");
    assert_eq!(result(&broken)["rc"], 3);
}

#[test]
fn a_plan_asks_only_a_module_that_can_say_what_it_would_do() {
    let dir = tempfile::tempdir().unwrap();
    let touched = dir.path().join("touched");
    let mut helper = Helper::start(Mode::Plan, dir.path());
    let blind = helper.run(
        &format!("touch {}; echo '{{}}'", touched.display()),
        &json!({}),
    );
    assert_eq!(blind.status, Status::Unknown);
    assert_eq!(summaries(&blind), ["command external module m"]);
    assert!(!touched.exists());

    let mut helper = Helper::start(Mode::Plan, dir.path());
    let can = json!({"checkable": true});
    let says =
        "grep -q '_ansible_check_mode\":true' $1 && echo '{\"changed\": CHANGED, \"fact\": 1}'";
    let same = helper.run(&says.replace("CHANGED", "false"), &can);
    assert_eq!((same.status, summaries(&same).len()), (Status::Ok, 0));
    let changes = helper.run(&says.replace("CHANGED", "true"), &can);
    assert_eq!(
        (changes.status, summaries(&changes).len()),
        (Status::Unknown, 1)
    );
    // What comes before it in the plan may make it another answer.
    let behind = helper.run(&says.replace("CHANGED", "false"), &can);
    assert_eq!(
        (behind.status, summaries(&behind).len()),
        (Status::Unknown, 1)
    );
    let as_check = helper.run(
        &says.replace("CHANGED", "true"),
        &json!({"checkable": true, "as_check": true}),
    );
    assert_eq!(
        (as_check.status, &result(&as_check)["fact"]),
        (Status::Changed, &json!(1))
    );
    let skipped = helper.run("", &json!({"as_check": true}));
    assert_eq!(skipped.status, Status::Skipped);
    assert_eq!(
        result(&skipped)["msg"],
        "remote module (m) does not support check mode"
    );
}

#[test]
fn an_apply_refuses_a_change_that_its_plan_did_not_show() {
    let dir = tempfile::tempdir().unwrap();
    let mut helper = Helper::start(Mode::Apply, dir.path());
    let mut run = |script: &str, checkable: bool| {
        let mut task = helper.task(script, &json!({"checkable": checkable}));
        task.planned = Some(Vec::new());
        task.ignore_errors = true;
        helper.0.run(task)
    };
    assert_eq!(run("echo '{\"changed\": false}'", true).status, Status::Ok);
    let stale = run("echo '{\"changed\": true}'", true);
    assert_eq!(stale.status, Status::Failed);
    assert_eq!(result(&stale)["stale"], true);
    assert_eq!(
        run("echo '{\"changed\": false}'", false).status,
        Status::Failed
    );
}

#[test]
fn a_module_runs_as_the_tasks_user_in_the_tasks_environment() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut helper = Helper::start(Mode::Apply, dir.path());
    let script = "test -r $1 -a -w $(dirname $1) && echo \"{\\\"me\\\": \\\"$(id -un)\\\", \\\"x\\\": \\\"$X\\\"}\"";
    let mut task = helper.task(script, &json!({}));
    task.user = As::User("nobody".to_owned());
    task.environment = vec![("X".to_owned(), "y".to_owned())];
    let outcome = helper.0.run(task);
    assert_eq!(
        result(&outcome),
        json!({"me": "nobody", "x": "y", "changed": false})
    );
}

#[test]
fn nothing_is_left_of_a_module_that_takes_too_long() {
    let dir = tempfile::tempdir().unwrap();
    let mut helper = Helper::start(Mode::Apply, dir.path());
    let pid = dir.path().join("where");
    let mut task = helper.task(
        &format!("dirname $1 > {}; sleep 60", pid.display()),
        &json!({}),
    );
    task.timeout_s = 1;
    let outcome = helper.0.run(task);
    assert_eq!(outcome.status, Status::Failed);
    helper.0.hang_up();
    let left = fs::read_to_string(pid).unwrap();
    assert!(!Path::new(left.trim()).exists());
}
