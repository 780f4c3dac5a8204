//! Servers that cannot be used, and what is said about it. No helper is ever sent: there is none.

use std::{
    fs,
    net::TcpListener,
    path::Path,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use fleet_engine::transport::{Address, Become, ConnectError, HostKeys, enroll};

use crate::{
    Controller, run,
    sshd::{Sshd, keygen},
};

fn controller() -> Controller {
    Controller::new(vec!["/nowhere".into()])
}

#[test]
fn an_unknown_key_is_refused_until_it_is_enrolled() {
    let (sshd, controller) = (Sshd::start(), controller());
    let address = sshd.address();
    let problem = controller.refused(&address, None);
    let text = problem.to_string();
    assert!(
        matches!(problem, ConnectError::HostKeyUnknown { .. }),
        "{text}"
    );
    assert!(problem.is_unreachable());
    assert!(text.contains(&sshd.fingerprint("host_key")), "{text}");
    assert!(text.contains("`fleetctl host enroll web1`"), "{text}");

    // A last line without its end, as people leave it.
    let others = "other.example ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKtJZ0qV2Fv4H6f8X4ckbgqfCf0pJrOyHPVwnYZP0Q0W";
    fs::write(sshd.path("known_hosts"), others).unwrap();
    let default = sshd.path("unused");
    let scan = || run(enroll::scan(&address, &default, Duration::from_secs(10))).unwrap();
    let found = scan();
    assert_eq!(
        found.fingerprints(),
        [format!("ED25519 {}", sshd.fingerprint("host_key"))]
    );
    assert!(!found.is_known());
    assert_eq!(found.record().unwrap(), sshd.path("known_hosts"));
    assert!(scan().is_known());
    assert!(!default.exists());
    // It gets as far as to ask for a helper that is not there.
    let problem = controller.refused(&address, None);
    assert!(
        matches!(problem, ConnectError::NoHelperFor { .. }),
        "{problem}"
    );
    assert!(problem.to_string().contains("/nowhere"), "{problem}");
}

#[test]
fn a_changed_key_is_refused_with_both_fingerprints() {
    let (sshd, controller) = (Sshd::start(), controller());
    keygen(&sshd.path("old_key"));
    sshd.record("old_key");
    for checking in [HostKeys::Strict, HostKeys::AcceptNew] {
        let address = Address {
            host_key_checking: checking,
            ..sshd.address()
        };
        let problem = controller.refused(&address, None);
        let text = problem.to_string();
        assert!(
            matches!(problem, ConnectError::HostKeyChanged { .. }),
            "{text}"
        );
        for part in [
            sshd.fingerprint("old_key"),
            sshd.fingerprint("host_key"),
            "known_hosts:1".to_owned(),
        ] {
            assert!(text.contains(&part), "{part} is not in: {text}");
        }
    }
    let scan = run(enroll::scan(
        &sshd.address(),
        Path::new("/unused"),
        Duration::from_secs(10),
    ))
    .unwrap();
    assert!(!scan.is_known());
    assert!(
        scan.changed().unwrap().contains("ssh-keygen -R"),
        "{:?}",
        scan.changed()
    );
}

#[test]
fn an_unknown_key_of_a_jump_host_is_told_as_that() {
    let (sshd, controller) = (Sshd::start(), controller());
    let config = format!(
        "Host bastion\n  HostName 127.0.0.1\n  Port {}\n  UserKnownHostsFile /dev/null\n  BatchMode yes\n  \
         GlobalKnownHostsFile /dev/null\n  StrictHostKeyChecking yes\n",
        sshd.port()
    );
    fs::write(sshd.path("ssh_config"), config).unwrap();
    let mut address = sshd.known();
    address.ssh_common_args.splice(
        0..0,
        [
            "-F".to_owned(),
            sshd.path("ssh_config").display().to_string(),
            "-J".to_owned(),
            "bastion".to_owned(),
        ],
    );
    let text = controller.refused(&address, None).to_string();
    assert!(
        text.contains(&format!("the host key of [127.0.0.1]:{}", sshd.port())),
        "{text}"
    );
    assert!(
        text.contains("by which web1 is reached") && !text.contains("enroll"),
        "{text}"
    );
}

#[test]
fn a_refused_login_says_which_keys_were_tried() {
    let (sshd, controller) = (Sshd::start(), controller());
    keygen(&sshd.path("other_key"));
    let address = Address {
        private_key_file: Some(sshd.path("other_key")),
        user: Some("nobody".to_owned()),
        ..sshd.known()
    };
    let problem = controller.refused(&address, None);
    let text = problem.to_string();
    assert!(matches!(problem, ConnectError::Auth { .. }), "{text}");
    assert!(
        text.starts_with(&format!(
            "web1 (nobody@127.0.0.1:{}) refuses the login",
            sshd.port()
        )),
        "{text}"
    );
    assert!(text.contains("other_key"), "{text}");
    // Another try could lock the account.
    assert_eq!(
        sshd.log().matches("Connection from").count(),
        1,
        "{}",
        sshd.log()
    );
}

#[test]
fn nobody_listens() {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let address = Address {
        port: Some(port),
        ..Address::ssh("web1", "127.0.0.1")
    };
    let text = controller().refused(&address, None).to_string();
    assert!(
        text.contains(&format!(
            "cannot reach web1 (127.0.0.1:{port}): connection refused"
        )),
        "{text}"
    );
}

#[test]
fn a_server_that_says_nothing_is_given_up() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address {
        port: Some(silent.local_addr().unwrap().port()),
        timeout: Duration::from_secs(1),
        ..Address::ssh("web1", "127.0.0.1")
    };
    let began = Instant::now();
    let problem = controller().refused(&address, None);
    assert!(
        matches!(problem, ConnectError::Timeout { seconds: 1, .. }),
        "{problem}"
    );
    assert!(
        began.elapsed() < Duration::from_secs(15),
        "{:?}",
        began.elapsed()
    );
}

#[test]
fn a_busy_server_is_tried_three_times() {
    let busy = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = busy.local_addr().unwrap().port();
    let tries = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&tries);
    std::thread::spawn(move || {
        for connection in busy.incoming() {
            drop(connection);
            counted.fetch_add(1, Ordering::SeqCst);
        }
    });
    let problem = controller().refused(
        &Address {
            port: Some(port),
            ..Address::ssh("web1", "127.0.0.1")
        },
        None,
    );
    assert!(
        matches!(problem, ConnectError::Unreachable { .. }),
        "{problem}"
    );
    assert!(problem.to_string().contains("MaxStartups"), "{problem}");
    assert_eq!(tries.load(Ordering::SeqCst), 3);
}

#[test]
fn what_ssh_does_not_understand_is_told_in_its_words() {
    let controller = controller();
    let with = |words: &[&str]| Address {
        ssh_common_args: words.iter().map(|word| (*word).to_owned()).collect(),
        ..Address::ssh("web1", "127.0.0.1")
    };
    for words in [["-o", "Nonsense=1"], ["-Z", "x"]] {
        let problem = controller.refused(&with(&words), None);
        assert!(
            matches!(problem, ConnectError::BadOption { .. }),
            "{problem}"
        );
    }
    let problem = controller.refused(&with(&["-o", "Nonsense=1"]), None);
    assert!(
        problem.to_string().to_lowercase().contains("nonsense"),
        "{problem}"
    );

    let option = Address::ssh("web1", "-oProxyCommand=touch${IFS}/tmp/never-made");
    controller.refused(&option, None);
    assert!(!Path::new("/tmp/never-made").exists());

    let missing = Address {
        ssh_executable: Some("/no/such/ssh".into()),
        ..Address::ssh("web1", "127.0.0.1")
    };
    let problem = controller.refused(&missing, None);
    assert!(
        problem.to_string().contains("`/no/such/ssh` cannot be run"),
        "{problem}"
    );
}

#[test]
fn a_master_is_kept_and_a_wedged_one_is_replaced() {
    let (sshd, controller) = (Sshd::start(), controller());
    let address = sshd.known();
    let reached = || {
        let problem = controller.refused(&address, None);
        assert!(
            matches!(problem, ConnectError::NoHelperFor { .. }),
            "{problem}"
        );
    };
    reached();
    reached();
    assert_eq!(sshd.logins(), 1, "{}", sshd.log());

    let dir = fs::read_dir(&controller.settings.control_dir)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let socket = dir
        .into_iter()
        .find(|path| path.extension().is_none())
        .unwrap();
    let check = Command::new("ssh")
        .arg("-S")
        .arg(&socket)
        .args(["-O", "check", "none"])
        .output()
        .unwrap();
    // `Master running (pid=123)`
    let said = String::from_utf8(check.stderr).unwrap();
    let pid = said.split(['=', ')']).nth(1).unwrap();
    let signal = |name: &str| {
        assert!(
            Command::new("kill")
                .args([name, pid])
                .status()
                .unwrap()
                .success()
        )
    };
    signal("-STOP");
    reached();
    signal("-KILL");
    assert_eq!(sshd.logins(), 2, "{}", sshd.log());
}

#[test]
fn many_at_once_share_one_master() {
    let (sshd, controller) = (Sshd::start(), controller());
    let address = sshd.known();
    run(async {
        let mut all = tokio::task::JoinSet::new();
        for _ in 0..6 {
            let (address, settings) = (address.clone(), controller.settings.clone());
            all.spawn(async move {
                fleet_engine::transport::connect(&address, None, &settings)
                    .await
                    .err()
            });
        }
        while let Some(problem) = all.join_next().await {
            let problem = problem.unwrap().unwrap();
            assert!(
                matches!(problem, ConnectError::NoHelperFor { .. }),
                "{problem}"
            );
        }
    });
    assert_eq!(sshd.logins(), 1, "{}", sshd.log());
}

#[test]
fn a_control_directory_of_others_is_not_used() {
    use std::os::unix::fs::PermissionsExt;
    let (sshd, controller) = (Sshd::start(), controller());
    let dir = &controller.settings.control_dir;
    fs::create_dir(dir).unwrap();
    fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).unwrap();
    let problem = controller.refused(&sshd.known(), None);
    assert!(
        matches!(problem, ConnectError::ControlDir { .. }),
        "{problem}"
    );
}

#[test]
fn noise_of_wrappers_is_not_taken_for_an_answer() {
    let noisy = "ForceCommand echo \"Welcome; running $SSH_ORIGINAL_COMMAND\"; printf 'no end of line'; eval \"$SSH_ORIGINAL_COMMAND\"";
    let (sshd, controller) = (Sshd::with(noisy), controller());
    let problem = controller.refused(&sshd.known(), None);
    assert!(
        matches!(problem, ConnectError::NoHelperFor { .. }),
        "{problem}"
    );

    let rude = Sshd::with(
        "ForceCommand printf 'go \\033[31maway\\n'; echo this account is closed >&2; exit 1",
    );
    let text = controller.refused(&rude.known(), None).to_string();
    assert!(
        text.contains("this account is closed") && text.contains("go \\u{1b}[31maway"),
        "{text}"
    );
}

#[test]
fn a_missing_sudo_is_told() {
    let (sshd, controller) = (Sshd::start(), controller());
    let who = Become {
        user: "somebody-else".to_owned(),
        exe: Some("/no/such/sudo".to_owned()),
        ..Become::root()
    };
    let problem = controller.refused(&sshd.known(), Some(&who));
    assert!(
        matches!(problem, ConnectError::BecomeDenied { .. }),
        "{problem}"
    );
    assert!(problem.to_string().contains("not installed"), "{problem}");
}
