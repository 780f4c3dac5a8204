//! Hosts that do not play by the rules: what they send is refused, and how they end is told.

use std::{
    fs,
    process::Command,
    time::{Duration, Instant},
};

use fleet_engine::transport::{Address, Become, ChannelError, ConnectError, Receiver, Sender};
use fleet_wire::FromHost;

use crate::{Controller, run, sshd::Sshd};

fn controller() -> Controller {
    Controller::new(vec!["/nowhere".into()])
}

/// What comes of a host that says it runs the helper, and then does this.
fn after(script: &str) -> Result<Option<FromHost>, ChannelError> {
    let host = format!("ForceCommand printf 'FLEETCTL-READY\\nFLEETCTL-HELPER 1\\n'; {script}");
    let (sshd, controller) = (Sshd::with(&host), controller());
    run(async {
        let channel = controller
            .connect(&sshd.known(), None)
            .await
            .unwrap_or_else(|problem| panic!("{problem}"));
        let (_sender, mut receiver): (Sender, Receiver) = channel.split();
        let next = tokio::time::timeout(Duration::from_secs(20), receiver.next()).await;
        next.expect("an answer in time")
    })
}

#[test]
fn a_frame_beyond_the_limit_is_refused_before_it_is_read() {
    let problem = after("printf '\\377\\377\\377\\377'; exec sleep 60").unwrap_err();
    assert!(matches!(problem, ChannelError::Frame { .. }), "{problem}");
    assert!(problem.to_string().contains("web1"), "{problem}");
}

#[test]
fn garbage_is_no_frame() {
    let problem = after("printf '\\0\\0\\0\\004\\377\\377\\377\\377'; exec sleep 60").unwrap_err();
    assert!(matches!(problem, ChannelError::Frame { .. }), "{problem}");
}

#[test]
fn a_killed_helper_is_told_with_its_last_words() {
    let problem = after("echo 'memory is gone' >&2; kill -KILL $$").unwrap_err();
    assert!(matches!(problem, ChannelError::Killed { .. }), "{problem}");
    assert!(
        problem.to_string().contains("the helper on web1")
            && problem.to_string().contains("memory is gone"),
        "{problem}"
    );
}

#[test]
fn a_helper_that_fails_is_told_with_its_status_and_last_words() {
    let problem = after("echo 'thread main panicked' >&2; exit 101").unwrap_err();
    assert!(matches!(problem, ChannelError::Died { .. }), "{problem}");
    let text = problem.to_string();
    assert!(
        text.contains("101") && text.contains("thread main panicked"),
        "{text}"
    );
    // As the shell says it of a program that has vanished.
    let problem = after("exit 127").unwrap_err();
    assert!(problem.to_string().contains("127"), "{problem}");
}

#[test]
fn half_a_frame_is_no_good_end() {
    let problem = after("printf '\\0\\0\\0\\004\\377'; exit 0").unwrap_err();
    assert!(matches!(problem, ChannelError::Died { .. }), "{problem}");
    assert!(after("exit 0").unwrap().is_none());
}

/// A controller whose helper is this script, on this machine.
fn pretending(script: &str) -> (tempfile::TempDir, Controller) {
    let dir = tempfile::tempdir().unwrap();
    let helper = dir.path().join("fleet-helper");
    fs::write(
        &helper,
        format!("#!/bin/sh\necho FLEETCTL-HELPER 1\n{script}\n"),
    )
    .unwrap();
    assert!(
        Command::new("chmod")
            .arg("755")
            .arg(&helper)
            .status()
            .unwrap()
            .success()
    );
    let controller = Controller::new(vec![dir.path().to_owned()]);
    (dir, controller)
}

#[test]
fn last_words_are_waited_for_but_not_for_ever() {
    let (_dir, controller) =
        pretending("echo bye >&2; sleep 30 < /dev/null > /dev/null & kill -KILL $$");
    let began = Instant::now();
    run(async {
        let channel = controller
            .connect(&Address::local("here"), None)
            .await
            .unwrap_or_else(|problem| panic!("{problem}"));
        let problem = channel.split().1.next().await.unwrap_err();
        assert!(matches!(problem, ChannelError::Killed { .. }), "{problem}");
        assert!(problem.to_string().contains("bye"), "{problem}");
    });
    assert!(
        began.elapsed() < Duration::from_secs(15),
        "{:?}",
        began.elapsed()
    );
}

#[test]
fn the_helper_of_this_machine_is_out_of_reach_of_an_interrupt() {
    let (dir, controller) =
        pretending("cut -d' ' -f1,5 /proc/$$/stat > \"${0%/*}/seen\"; exec cat > /dev/null");
    run(async {
        let channel = controller
            .connect(&Address::local("here"), None)
            .await
            .unwrap_or_else(|problem| panic!("{problem}"));
        let seen = || fs::read_to_string(dir.path().join("seen")).unwrap_or_default();
        fleet_tests::eventually("the helper has looked", || seen().ends_with('\n'));
        let seen = seen();
        let (pid, group) = seen.trim().split_once(' ').unwrap();
        assert_eq!(pid, group, "it leads a group of its own");
        drop(channel);
        fleet_tests::eventually("the helper has ended", || {
            !std::path::Path::new("/proc").join(pid).exists()
        });
    });
}

#[test]
fn a_helper_of_this_machine_that_cannot_run_is_told() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("fleet-helper"), "not a program").unwrap();
    let controller = Controller::new(vec![dir.path().to_owned()]);
    let problem = controller.refused(&Address::local("here"), None);
    assert!(
        matches!(problem, ConnectError::HelperFile { .. }),
        "{problem}"
    );
    assert!(problem.to_string().contains("fleet-helper"), "{problem}");
}

#[test]
fn the_helper_of_this_machine_becomes_whom_it_should() {
    let (dir, controller) = pretending("exec cat > /dev/null");
    let sudo = dir.path().join("sudo");
    let asked = dir.path().join("asked");
    let script = format!(
        "#!/bin/sh\necho \"$@\" > {}\nwhile [ \"$1\" != -- ]; do shift; done\nshift\nexec \"$@\"\n",
        asked.display()
    );
    fs::write(&sudo, script).unwrap();
    assert!(
        Command::new("chmod")
            .arg("755")
            .arg(&sudo)
            .status()
            .unwrap()
            .success()
    );
    let who = |user: &str| Become {
        user: user.to_owned(),
        exe: Some(sudo.display().to_string()),
        ..Become::root()
    };
    run(async {
        let here = Address::local("here");
        // This test runs as root, who needs nobody's leave to be root.
        let root = controller.connect(&here, Some(&who("root"))).await;
        assert!(root.is_ok() && !asked.exists());
        let nobody = controller.connect(&here, Some(&who("nobody"))).await;
        assert!(nobody.is_ok());
        assert!(
            fs::read_to_string(&asked)
                .unwrap()
                .starts_with("-H -n -u nobody -- ")
        );
    });
}
