//! Masters: how long they are kept, what they share, and what becomes of those that are gone, stuck or used up.

use std::{
    fs,
    os::unix::net::UnixListener,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use fleet_engine::transport::{Address, ConnectError, masters};
use fleet_tests::eventually;

use crate::{Controller, run, sshd::Sshd};

/// A host that acts as a helper which answers nothing and ends with its channel.
pub(crate) const MUTE: &str =
    "ForceCommand printf 'FLEETCTL-READY\\nFLEETCTL-HELPER 1\\n'; exec cat > /dev/null";

fn controller() -> Controller {
    Controller::new(vec!["/nowhere".into()])
}

/// Gets as far as to ask for a helper that is not there.
#[track_caller]
fn reached(controller: &Controller, address: &Address) {
    let problem = controller.refused(address, None);
    assert!(
        matches!(problem, ConnectError::NoHelperFor { .. }),
        "{problem}"
    );
}

fn socket(controller: &Controller) -> Option<PathBuf> {
    let entries = fs::read_dir(&controller.settings.control_dir).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.into_iter().find(|path| path.extension().is_none())
}

/// The process of the only master.
#[track_caller]
fn master(controller: &Controller) -> String {
    let socket = socket(controller).unwrap();
    let check = Command::new("ssh")
        .arg("-S")
        .arg(socket)
        .args(["-O", "check", "none"])
        .output()
        .unwrap();
    // `Master running (pid=123)`
    let said = String::from_utf8(check.stderr).unwrap();
    said.split(['=', ')'])
        .nth(1)
        .unwrap_or_else(|| panic!("{said}"))
        .to_owned()
}

#[track_caller]
fn signal(name: &str, pid: &str) {
    assert!(
        Command::new("kill")
            .args([name, pid])
            .status()
            .unwrap()
            .success()
    );
}

fn lives(pid: &str) -> bool {
    Path::new("/proc").join(pid).exists()
}

/// The processes that sshd runs for its connections.
fn connections(sshd: &Sshd) -> Vec<String> {
    let output = Command::new("pgrep")
        .args(["-P", &sshd.pid().to_string()])
        .output()
        .unwrap();
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect()
}

/// The process group of a process: the fifth word of its `stat`.
fn group(pid: &str) -> String {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(')')
        .unwrap()
        .1
        .split_whitespace()
        .nth(2)
        .unwrap()
        .to_owned()
}

#[test]
fn a_master_that_was_killed_is_replaced() {
    let (sshd, controller) = (Sshd::start(), controller());
    let address = sshd.known();
    reached(&controller, &address);
    let pid = master(&controller);
    signal("-KILL", &pid);
    eventually("the master is gone", || !lives(&pid));
    assert!(
        socket(&controller).is_some(),
        "nobody has removed its socket"
    );
    let began = Instant::now();
    reached(&controller, &address);
    assert!(
        began.elapsed() < Duration::from_secs(3),
        "{:?}",
        began.elapsed()
    );
    assert_ne!(master(&controller), pid);
}

#[test]
fn a_connection_that_went_dead_is_replaced_within_seconds() {
    let (sshd, controller) = (Sshd::start(), controller());
    let address = sshd.known();
    reached(&controller, &address);
    // The master still answers for itself; what is behind it does not.
    let stuck = connections(&sshd);
    assert_eq!(stuck.len(), 1);
    signal("-STOP", &stuck[0]);
    let began = Instant::now();
    reached(&controller, &address);
    assert!(
        began.elapsed() < Duration::from_secs(12),
        "{:?}",
        began.elapsed()
    );
    signal("-KILL", &stuck[0]);
    assert_eq!(sshd.logins(), 2);
}

#[test]
fn a_master_ends_by_itself_after_its_last_use() {
    let (sshd, mut controller) = (Sshd::start(), controller());
    controller.settings.persist = Duration::from_secs(1);
    reached(&controller, &sshd.known());
    let pid = master(&controller);
    eventually("the master has ended", || !lives(&pid));
    assert_eq!(socket(&controller), None);
    eventually("the host has no connection left", || {
        connections(&sshd).is_empty()
    });
}

#[test]
fn masters_are_closed_one_by_one_or_all() {
    let (one, two, controller) = (Sshd::start(), Sshd::start(), controller());
    let dir = &controller.settings.control_dir;
    reached(&controller, &one.known());
    let pid = master(&controller);
    reached(&controller, &two.known());

    // Whoever is more patient means the same connection.
    let patient = Address {
        timeout: Duration::from_secs(60),
        ..one.address()
    };
    assert!(run(masters::disconnect(&patient, dir)));
    eventually("the master has ended", || !lives(&pid));
    assert!(
        !run(masters::disconnect(&patient, dir)),
        "it is closed already"
    );
    let pid = master(&controller);

    reached(&controller, &one.known());
    assert_eq!(run(masters::disconnect_all(dir)), 2);
    assert_eq!(run(masters::disconnect_all(dir)), 0);
    eventually("the master has ended", || !lives(&pid));
    eventually("no connection is left", || {
        connections(&one).is_empty() && connections(&two).is_empty()
    });
}

#[test]
fn another_login_is_another_connection() {
    let (sshd, controller) = (Sshd::start(), controller());
    let address = sshd.known();
    reached(&controller, &address);
    reached(
        &controller,
        &Address {
            ssh_extra_args: vec!["-C".to_owned()],
            ..address
        },
    );
    assert_eq!(sshd.logins(), 2);
}

#[test]
fn a_used_up_connection_is_left_to_those_who_use_it() {
    let (sshd, controller) = (Sshd::with(&format!("MaxSessions 2\n{MUTE}")), controller());
    let address = sshd.known();
    run(async {
        let mut channels = Vec::new();
        for _ in 0..3 {
            let channel = controller
                .connect(&address, None)
                .await
                .unwrap_or_else(|problem| panic!("{problem}"));
            channels.push(channel.split());
        }
        assert_eq!(
            sshd.logins(),
            2,
            "the third channel has a connection of its own"
        );
        for (_, receiver) in &mut channels {
            let ended = tokio::time::timeout(Duration::from_millis(200), receiver.next()).await;
            assert!(ended.is_err(), "a channel was cut: {ended:?}");
        }
    });
}

#[test]
fn a_server_without_sessions_is_told() {
    let (sshd, controller) = (Sshd::with("MaxSessions 0"), controller());
    let problem = controller.refused(&sshd.known(), None);
    assert!(matches!(problem, ConnectError::Helper { .. }), "{problem}");
    assert!(
        problem.to_string().contains("ssh opened no channel"),
        "{problem}"
    );
}

#[test]
fn a_dropped_channel_leaves_nothing_running_on_the_host() {
    let (sshd, controller) = (Sshd::with(MUTE), controller());
    let address = sshd.known();
    run(async {
        let channel = controller
            .connect(&address, None)
            .await
            .unwrap_or_else(|problem| panic!("{problem}"));
        let children = |pid: &str| {
            Command::new("pgrep")
                .args(["-P", pid])
                .output()
                .unwrap()
                .stdout
        };
        let connection = connections(&sshd).remove(0);
        assert_ne!(children(&connection), b"");
        drop(channel);
        eventually("the helper has ended", || children(&connection).is_empty());
        assert!(lives(&connection), "the connection stays");
    });
}

#[test]
fn an_interrupt_for_the_controller_is_not_for_its_masters() {
    let (sshd, controller) = (Sshd::start(), controller());
    reached(&controller, &sshd.known());
    assert_ne!(
        group(&master(&controller)),
        group(&std::process::id().to_string())
    );

    // One that is still logging in is not, either: a terminal's Ctrl-C goes to the whole group.
    let dir = tempfile::tempdir().unwrap();
    let wrapper = dir.path().join("ssh");
    let seen = dir.path().join("seen");
    fs::write(
        &wrapper,
        format!(
            "#!/bin/sh\ncut -d' ' -f5 /proc/$$/stat > {}\nexit 255\n",
            seen.display()
        ),
    )
    .unwrap();
    let mode = Command::new("chmod")
        .arg("755")
        .arg(&wrapper)
        .status()
        .unwrap();
    assert!(mode.success());
    controller.refused(
        &Address {
            ssh_executable: Some(wrapper),
            ..sshd.address()
        },
        None,
    );
    let seen = fs::read_to_string(seen).unwrap();
    assert_ne!(seen.trim(), group(&std::process::id().to_string()));
}

#[test]
fn what_dead_masters_left_is_swept_away() {
    let (sshd, controller) = (Sshd::start(), controller());
    let dir = &controller.settings.control_dir;
    fs::create_dir(dir).unwrap();
    assert!(
        Command::new("chmod")
            .arg("700")
            .arg(dir)
            .status()
            .unwrap()
            .success()
    );
    let [dead, young, living] =
        ["00000000000000aa", "00000000000000bb", "00000000000000cc"].map(|name| dir.join(name));
    let listener = UnixListener::bind(&living).unwrap();
    for path in [&dead, &young] {
        // The listener goes, its socket stays.
        drop(UnixListener::bind(path).unwrap());
    }
    for path in [&dead, &living] {
        assert!(
            Command::new("touch")
                .args(["-d", "2 hours ago"])
                .arg(path)
                .status()
                .unwrap()
                .success()
        );
    }
    reached(&controller, &sshd.known());
    assert_eq!(
        [dead.exists(), young.exists(), living.exists()],
        [false, true, true]
    );
    drop(listener);
    fs::remove_file(living).unwrap();
}
