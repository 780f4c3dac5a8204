//! What modules do to a system's own settings, for real, on an overlay of this machine that nobody else sees: a plan says
//! what an apply does, a second apply does nothing, an undo brings all of it back. And users are as `useradd` makes them.
#![expect(
    clippy::unwrap_used,
    reason = "a test ends where something is not as it should be"
)]

mod talk;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use fleet_wire::{Effect, Finish, Mode, Status, UndoneState};
use serde_json::{Value, json};
use talk::{Talk, result};

/// A file system and a name of its own over the machine's.
const STAGE: &str = r#"set -e
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
mount -t proc proc "$1/root/proc"
mount --rbind /dev "$1/root/dev"
cd "$1/root"
mkdir -p var/spool/cron/crontabs etc/apt/sources.list.d etc/yum.repos.d
grep -q '^crontab:' etc/group || echo 'crontab:x:989:' >> etc/group
touch etc/subuid etc/subgid
hostname before
echo before > etc/hostname
exec chroot . "$2" serve
"#;

struct Machine {
    child: Child,
    talk: Talk<ChildStdin, ChildStdout>,
    _dir: tempfile::TempDir,
}

/// None where it cannot be made: it takes root, and Debian.
fn machine(mode: Mode) -> Option<Machine> {
    if !rustix::process::geteuid().is_root() || !Path::new("/usr/sbin/useradd").exists() {
        return None;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut child = Command::new("unshare")
        .args(["-m", "-u", "sh", "-c", STAGE, "sh"])
        .arg(dir.path())
        .arg(env!("CARGO_BIN_EXE_fleet-helper"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut talk = Talk::new(child.stdin.take().unwrap(), child.stdout.take().unwrap());
    talk.ready(mode, "r1", Path::new("/var/lib/fleetctl-tests"));
    Some(Machine {
        child,
        talk,
        _dir: dir,
    })
}

impl Machine {
    fn run(&mut self, module: &str, args: &Value) -> fleet_wire::Outcome {
        let task = self.talk.task(module, args.clone());
        let outcome = self.talk.run(task);
        assert!(
            matches!(outcome.status, Status::Ok | Status::Changed),
            "{module} {args}: {}",
            result(&outcome)
        );
        outcome
    }

    /// What each call did.
    fn digests(&mut self, calls: &[(&str, Value)]) -> Vec<Vec<String>> {
        let one = |(module, args): &(&str, Value)| {
            let effects = self.run(module, args).effects;
            effects.iter().map(Effect::digest).collect()
        };
        calls.iter().map(one).collect()
    }

    fn inside(&self, path: &str) -> PathBuf {
        Path::new(&format!("/proc/{}/root", self.child.id())).join(path)
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.inside(path)).unwrap()
    }

    /// The line of an account, without the day on which its password was set.
    fn line(&self, path: &str, name: &str) -> Option<String> {
        let text = self.text(path);
        text.lines()
            .find(|line| line.split(':').next() == Some(name))
            .map(str::to_owned)
    }

    /// The contents of all that the modules here change.
    fn picture(&self) -> BTreeMap<PathBuf, String> {
        let mut found = BTreeMap::new();
        for dir in [
            "etc",
            "home",
            "var/spool/cron",
            "usr/bin",
            "opt",
            "var/lib/dpkg/alternatives",
        ] {
            let mut left = vec![self.inside(dir)];
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
                } else if dir == "usr/bin" {
                    meta.len().to_string()
                } else {
                    String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned()
                };
                found.insert(path, content);
            }
        }
        found.retain(|path, _| !path.ends_with(".pwd.lock"));
        found
    }

    fn end(mut self, how: Finish) -> fleet_wire::Undone {
        let undone = self.talk.finish(how);
        self.talk.hang_up();
        self.child.wait().unwrap();
        undone
    }
}

fn calls() -> Vec<(&'static str, Value)> {
    vec![
        ("group", json!({"name": "fleet-web", "system": true})),
        ("group", json!({"name": "fleet-four", "gid": 4444})),
        (
            "user",
            json!({"name": "fleet-ann", "comment": "Ann", "shell": "/bin/bash", "groups": ["fleet-web", "adm"], "password": "$6$salt$hash"}),
        ),
        (
            "user",
            json!({"name": "fleet-sys", "system": true, "create_home": false, "home": "/var/lib/fleet-sys"}),
        ),
        (
            "user",
            json!({"name": "fleet-ann", "groups": "fleet-four", "append": true, "expires": 1_900_000_000, "move_home": true, "home": "/home/ann2"}),
        ),
        ("group", json!({"name": "fleet-four", "gid": 4445})),
        (
            "copy",
            json!({"dest": "/home/ann2/mine", "content": "x", "owner": "fleet-ann", "group": "fleet-web"}),
        ),
        (
            "cron",
            json!({"name": "clean", "job": "/bin/true", "hour": 3, "user": "fleet-ann"}),
        ),
        (
            "cron",
            json!({"name": "all", "job": "/bin/true", "special_time": "daily", "user": "root", "cron_file": "fleet"}),
        ),
        (
            "cron",
            json!({"name": "MAILTO", "env": true, "job": "root", "user": "root", "cron_file": "fleet"}),
        ),
        ("timezone", json!({"name": "Europe/Rome"})),
        (
            "hostname",
            json!({"name": "after.example.com", "use": "debian"}),
        ),
        (
            "debconf",
            json!({"name": "fleet-x", "question": "fleet-x/q", "vtype": "string", "value": "some text"}),
        ),
        (
            "dpkg_selections",
            json!({"name": "dpkg", "selection": "hold"}),
        ),
        (
            "alternatives",
            json!({"name": "fleet-alt", "link": "/usr/bin/fleet-alt", "path": "/bin/true"}),
        ),
        (
            "apt_repository",
            json!({"repo": "deb http://a.example.com/ x main", "update_cache": false}),
        ),
        (
            "deb822_repository",
            json!({"name": "b", "uris": "http://b.example.com", "suites": "x", "components": "main"}),
        ),
        (
            "yum_repository",
            json!({"name": "c", "description": "C", "baseurl": "http://c.example.com"}),
        ),
    ]
}

#[test]
fn a_plan_is_what_is_done_and_an_undo_is_as_if_nothing_had_been() {
    let Some(mut plan) = machine(Mode::Plan) else {
        return;
    };
    let before = plan.picture();
    let planned = plan.digests(&calls());
    assert!(
        planned.iter().all(|effects| !effects.is_empty()),
        "{planned:?}"
    );
    assert_eq!(plan.picture(), before);
    plan.end(Finish::Keep);

    let mut apply = machine(Mode::Apply).unwrap();
    let before = apply.picture();
    let done = apply.digests(&calls());
    for ((call, planned), done) in calls().iter().zip(planned).zip(done) {
        assert_eq!(planned, done, "{call:?}");
    }
    assert_eq!(
        apply.line("etc/group", "fleet-four").unwrap(),
        "fleet-four:x:4445:fleet-ann"
    );
    let shadow = apply.line("etc/shadow", "fleet-ann").unwrap();
    assert!(
        shadow.starts_with("fleet-ann:$6$salt$hash:") && shadow.ends_with(":21990:"),
        "{shadow}"
    );
    assert_eq!(apply.text("etc/hostname"), "after.example.com\n");
    assert_eq!(
        apply.text("etc/cron.d/fleet"),
        "MAILTO=\"root\"\n#Ansible: all\n@daily root /bin/true\n"
    );
    // What sets a later state is left out: the first calls of the list are the same again.
    let again: Vec<_> = calls()
        .into_iter()
        .filter(|(module, args)| {
            !(*module == "group" && args["gid"] == 4444
                || *module == "user" && args["name"] == "fleet-ann")
        })
        .collect();
    for (call, effects) in again.iter().zip(apply.digests(&again)) {
        assert!(effects.is_empty(), "{call:?}");
    }
    if Path::new("/usr/bin/ssh-keygen").exists() {
        let key = json!({"name": "fleet-ann", "generate_ssh_key": true, "ssh_key_type": "ed25519"});
        assert_eq!(apply.run("user", &key).effects.len(), 3);
        assert!(apply.run("user", &key).effects.is_empty());
    }
    let undone = apply.talk.finish(Finish::Undo);
    assert_eq!(undone.state, UndoneState::RolledBack, "{undone:?}");
    let after = apply.picture();
    let debconf = |path: &PathBuf| path.starts_with(apply.inside("var/cache/debconf"));
    for (path, content) in before.iter().filter(|(path, _)| !debconf(path)) {
        assert_eq!(after.get(path), Some(content), "{}", path.display());
    }
    for path in after.keys().filter(|path| !debconf(path)) {
        assert!(before.contains_key(path), "{} is left", path.display());
    }
    apply.talk.hang_up();
    apply.child.wait().unwrap();
}

#[test]
fn users_and_groups_are_as_the_hosts_own_tools_make_them() {
    let Some(mut ours) = machine(Mode::Apply) else {
        return;
    };
    let mut theirs = machine(Mode::Apply).unwrap();
    for (name, args, command) in [
        ("ga", json!({}), "groupadd fleet-ga"),
        ("gs", json!({"system": true}), "groupadd -r fleet-gs"),
        ("gn", json!({"gid": 3333}), "groupadd -g 3333 fleet-gn"),
    ] {
        let mut args = args;
        args["name"] = format!("fleet-{name}").into();
        ours.run("group", &args);
        theirs.run("command", &json!({"cmd": command}));
    }
    for (name, args, command) in [
        ("a", json!({}), "useradd -m fleet-a"),
        ("b", json!({"system": true}), "useradd -r -m fleet-b"),
        (
            "c",
            json!({"uid": 5000, "group": "fleet-ga", "groups": "fleet-gs,fleet-gn"}),
            "useradd -m -u 5000 -g fleet-ga -G fleet-gs,fleet-gn fleet-c",
        ),
        (
            "d",
            json!({"create_home": false, "shell": "/usr/sbin/nologin", "comment": "D d"}),
            "useradd -M -s /usr/sbin/nologin -c 'D d' fleet-d",
        ),
        (
            "ga",
            json!({"create_home": false}),
            "useradd -M -N fleet-ga",
        ),
    ] {
        let mut args = args;
        args["name"] = format!("fleet-{name}").into();
        ours.run("user", &args);
        theirs.run("command", &json!({"cmd": command}));
    }
    for (name, args, command) in [
        (
            "a",
            json!({"groups": ["fleet-gs"], "append": true}),
            "usermod -a -G fleet-gs fleet-a",
        ),
        (
            "d",
            json!({"uid": 5003, "shell": "/bin/sh"}),
            "usermod -u 5003 -s /bin/sh fleet-d",
        ),
        (
            "b",
            json!({"state": "absent", "remove": true}),
            "userdel -r fleet-b",
        ),
    ] {
        let mut args = args;
        args["name"] = format!("fleet-{name}").into();
        ours.run("user", &args);
        let args = json!({"cmd": command});
        let task = theirs.talk.task("command", args);
        theirs.talk.run(task);
    }
    for file in [
        "etc/passwd",
        "etc/group",
        "etc/shadow",
        "etc/gshadow",
        "etc/subuid",
        "etc/subgid",
    ] {
        for name in ["ga", "gs", "gn", "a", "b", "c", "d"] {
            let name = format!("fleet-{name}");
            assert_eq!(ours.line(file, &name), theirs.line(file, &name), "{file}");
        }
    }
    use std::os::unix::fs::MetadataExt;
    for path in [
        "home/fleet-a",
        "home/fleet-a/.profile",
        "home/fleet-c",
        "home/fleet-c/.bashrc",
    ] {
        let of = |machine: &Machine| {
            let meta = fs::symlink_metadata(machine.inside(path)).unwrap();
            (
                meta.mode(),
                meta.uid(),
                meta.gid(),
                meta.len() * u64::from(meta.is_file()),
            )
        };
        assert_eq!(of(&ours), of(&theirs), "{path}");
    }
    assert!(!ours.inside("home/fleet-b").exists());
    ours.end(Finish::Keep);
    theirs.end(Finish::Keep);
}
