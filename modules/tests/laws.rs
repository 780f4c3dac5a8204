//! Laws that hold for every module: a plan says what an apply does and touches nothing, a second apply does nothing,
//! and an undo brings back what was.
#![expect(
    clippy::unwrap_used,
    reason = "a test ends where something is not as it should be"
)]

mod process;
mod talk;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use fleet_wire::{Effect, Finish, Mode, Status, UndoneState};
use process::{Helper, helper};
use serde_json::{Value, json};
use talk::result;

impl Helper {
    /// Runs the calls in order; the digests of what each does.
    fn run(&mut self, calls: &[(&str, Value)]) -> Vec<Vec<String>> {
        let mut did = Vec::new();
        for (module, args) in calls {
            let task = self.talk.task(module, args.clone());
            let outcome = self.talk.run(task);
            assert!(
                matches!(outcome.status, Status::Ok | Status::Changed),
                "{module} {args}: {}",
                result(&outcome)
            );
            assert_eq!(
                outcome.status == Status::Changed,
                !outcome.effects.is_empty(),
                "{module} {args}"
            );
            did.push(outcome.effects.iter().map(Effect::digest).collect());
        }
        did
    }
}

/// Each entry of a tree, with its mode, owner, and content or target; with its times where they count.
fn picture(root: &Path, times: bool) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut left = vec![root.to_owned()];
    while let Some(path) = left.pop() {
        let meta = fs::symlink_metadata(&path).unwrap();
        let content = if meta.is_symlink() {
            fs::read_link(&path).unwrap().display().to_string()
        } else if meta.is_dir() {
            left.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
            String::new()
        } else {
            fs::read_to_string(&path).unwrap()
        };
        let time = if times {
            (meta.ctime(), meta.ctime_nsec())
        } else {
            (0, 0)
        };
        let shown = format!(
            "{:o} {}:{} {time:?} {content}",
            meta.mode(),
            meta.uid(),
            meta.gid()
        );
        found.insert(path.display().to_string(), shown);
    }
    found
}

#[test]
fn a_plan_an_apply_a_second_one_and_an_undo_agree() {
    let dir = tempfile::tempdir().unwrap();
    let (tree, state) = (dir.path().join("tree"), dir.path().join("state"));
    fs::create_dir_all(tree.join("full/of/things")).unwrap();
    fs::create_dir(tree.join("kept")).unwrap();
    for (name, text) in [
        ("conf", "a = 1\nb = 2\n"),
        ("no-newline", "last line"),
        ("crlf", "a\r\nb\r\n"),
        ("empty", ""),
        ("limits.conf", "# limits\nann soft nofile 10\n"),
        ("sysctl.conf", "# keys\nvm.swappiness = 60\n"),
        ("full/of/things/one", "1"),
        ("kept/one", "c = 1\n"),
        ("kept/two", "2"),
    ] {
        fs::write(tree.join(name), text).unwrap();
    }
    fs::create_dir(tree.join("unpacked")).unwrap();
    let packed = std::process::Command::new("tar")
        .args(["-C", tree.join("full").to_str().unwrap(), "-czf"])
        .args([dir.path().join("a.tgz").to_str().unwrap(), "of"])
        .status();
    assert!(packed.unwrap().success());
    symlink("conf", tree.join("link")).unwrap();
    symlink("nowhere", tree.join("dangling")).unwrap();
    let at = |name: &str| tree.join(name).display().to_string();
    let calls = [
        (
            "copy",
            json!({ "dest": at("conf"), "content": "a = 2\n", "mode": "0600" }),
        ),
        (
            "lineinfile",
            json!({ "path": at("conf"), "line": "c = 3", "insertafter": "^a" }),
        ),
        (
            "lineinfile",
            json!({ "path": at("no-newline"), "line": "one more" }),
        ),
        (
            "lineinfile",
            json!({ "path": at("crlf"), "regexp": "^b", "line": "c" }),
        ),
        (
            "lineinfile",
            json!({ "path": at("new"), "line": "x", "create": true }),
        ),
        ("lineinfile", json!({ "path": at("empty"), "line": "x" })),
        (
            "file",
            json!({ "path": at("deep/er/est"), "state": "directory", "mode": "0750" }),
        ),
        (
            "copy",
            json!({ "dest": at("deep/er/file"), "content": "in it\n" }),
        ),
        (
            "file",
            json!({ "path": at("link"), "src": "empty", "state": "link" }),
        ),
        (
            "replace",
            json!({ "path": at("kept/one"), "regexp": "^(c) = \\d", "replace": "\\1 = 3" }),
        ),
        (
            "assemble",
            json!({ "src": at("kept"), "dest": at("assembled"), "mode": "0640" }),
        ),
        (
            "unarchive",
            json!({ "src": dir.path().join("a.tgz"), "dest": at("unpacked"), "remote_src": true }),
        ),
        (
            "get_url",
            json!({ "url": format!("file://{}", at("kept/one")), "dest": at("fetched") }),
        ),
        (
            "file",
            json!({ "path": at("other-name"), "src": at("kept/one"), "state": "hard" }),
        ),
        ("file", json!({ "path": at("dangling"), "state": "absent" })),
        ("file", json!({ "path": at("full"), "state": "absent" })),
        (
            "blockinfile",
            json!({ "path": at("no-newline"), "block": "d = 4\ne = 5" }),
        ),
        (
            "ini_file",
            json!({ "path": at("ini"), "section": "s", "option": "o", "value": "v" }),
        ),
        (
            "known_hosts",
            json!({ "path": at("hosts"), "name": "x", "key": "x ssh-rsa AAAA", "hash_host": true }),
        ),
        (
            "authorized_key",
            json!({ "path": at("keys/authorized"), "user": "root", "key": "ssh-rsa AAAA me" }),
        ),
        ("file", json!({ "path": at("crlf"), "mode": "u=rw,go=" })),
        (
            "pam_limits",
            json!({ "dest": at("limits.conf"), "domain": "ann", "limit_type": "soft", "limit_item": "nofile", "value": "20" }),
        ),
        (
            "sysctl",
            json!({ "name": "vm.swappiness", "value": "10", "sysctl_file": at("sysctl.conf"), "sysctl_set": false, "reload": false }),
        ),
        ("copy", json!({ "dest": at("conf"), "content": "a = 2\n" })),
        (
            "lineinfile",
            json!({ "path": at("conf"), "line": "c = 3", "insertafter": "^a" }),
        ),
    ];
    let before = picture(&tree, true);
    let mut plan = helper(Mode::Plan, "p1", &state);
    let planned = plan.run(&calls);
    plan.end(Finish::Keep);
    assert_eq!(picture(&tree, true), before, "a plan touches nothing");
    assert!(!state.exists());

    let mut apply = helper(Mode::Apply, "r1", &state);
    let performed = apply.run(&calls);
    for ((planned, performed), call) in planned.iter().zip(&performed).zip(&calls) {
        assert_eq!(planned, performed, "{call:?}");
    }
    apply.end(Finish::Keep);

    let applied = picture(&tree, true);
    let mut again = helper(Mode::Apply, "r2", &state);
    // The last two calls set once more what the first two wrote: what is between them is not a steady state.
    let steady = &calls[2..calls.len() - 2];
    for (call, did) in steady.iter().zip(again.run(steady)) {
        assert!(did.is_empty(), "{call:?} does something again");
    }
    assert_eq!(again.end(Finish::Keep).state, UndoneState::Unchanged);
    assert_eq!(picture(&tree, true), applied);

    let mut back = helper(Mode::Apply, "r3", &state);
    back.talk.send(&fleet_wire::ToHost::Rollback {
        run: "r1".to_owned(),
    });
    let fleet_wire::FromHost::Finished(undone) = back.talk.hear() else {
        panic!()
    };
    assert_eq!(
        undone.state,
        UndoneState::RolledBack,
        "{:?}",
        undone.effects
    );
    back.end(Finish::Keep);
    let still: BTreeMap<_, _> = picture(&tree, false);
    fs::remove_dir_all(&state).unwrap();
    let plain = |picture: BTreeMap<String, String>| -> Vec<(String, String)> {
        let without = |text: &str| {
            let (head, rest) = text.split_once(" (").unwrap();
            format!("{head}{}", rest.split_once(") ").unwrap().1)
        };
        picture
            .into_iter()
            .map(|(path, text)| (path, without(&text)))
            .collect()
    };
    assert_eq!(plain(still), plain(before));
}
