//! The helper on real hosts: sent once, found again, as whom, and from where.

use std::{path::PathBuf, time::Duration};

use fleet_engine::{
    secret::Secret,
    transport::{Address, Become, ChannelError, ConnectError, Receiver, Sender, masters},
};
use fleet_tests::{DelayProxy, Fleet, eventually};
use fleet_wire::{FromHost, Hello, Mode, PROTOCOL, Ready, ToHost};

use crate::{Controller, run};

/// Where the build puts the helper: beside `fleetctl`, two above this test.
fn helpers() -> Vec<PathBuf> {
    let test = std::env::current_exe().unwrap();
    let dir = test.ancestors().nth(2).unwrap().to_owned();
    assert!(
        dir.join("fleet-helper").is_file(),
        "there is no fleet-helper in {}: cargo build",
        dir.display()
    );
    vec![dir]
}

fn controller() -> Controller {
    Controller::new(helpers())
}

fn address(fleet: &Fleet, host: &str, user: &str) -> Address {
    let option = |text: String| ["-o".to_owned(), text];
    Address {
        user: Some(user.to_owned()),
        private_key_file: Some(fleet.key()),
        ssh_common_args: fleet.ssh_options().into_iter().flat_map(option).collect(),
        ..Address::ssh(host, &fleet.address(host))
    }
}

fn with_password(password: &str) -> Become {
    Become {
        password: Some(Secret::new(password.to_owned())),
        ..Become::root()
    }
}

/// Connects, and has the helper say that it is ready; whether it had to be sent.
async fn ready(
    controller: &Controller,
    address: &Address,
    who: Option<&Become>,
) -> (bool, Ready, Sender, Receiver) {
    let channel = controller
        .connect(address, who)
        .await
        .unwrap_or_else(|problem| panic!("{problem}"));
    let uploaded = channel.uploaded;
    let (mut sender, mut receiver) = channel.split();
    let hello = Hello {
        protocol: PROTOCOL,
        mode: Mode::Read,
        run: "transport".to_owned(),
        who: "a test".to_owned(),
        state_dir: None,
        lock_timeout_ms: 0,
        controller: 1,
        transaction: fleet_wire::Transaction::default(),
        digest_key: None,
    };
    sender.send(&ToHost::Hello(hello)).await.unwrap();
    sender.flush().await.unwrap();
    match receiver.next().await.unwrap() {
        Some(FromHost::Ready(ready)) => (uploaded, ready, sender, receiver),
        other => panic!("{other:?}"),
    }
}

/// Whether the helper was sent, and the user that it runs as.
fn served(controller: &Controller, address: &Address, who: Option<&Become>) -> (bool, u32) {
    run(async {
        let (uploaded, ready, sender, mut receiver) = ready(controller, address, who).await;
        // It ends with its channel, and in good order.
        drop(sender);
        assert!(receiver.next().await.unwrap().is_none());
        (uploaded, ready.uid)
    })
}

#[test]
fn the_helper_is_sent_once_and_never_trusted_by_its_name() {
    let fleet = Fleet::up(1);
    let controller = controller();
    let ops = address(&fleet, "web1", "ops");
    let uid: u32 = fleet.sh_as("ops", "web1", "id -u").text().parse().unwrap();
    let old = ".cache/fleetctl/helper-of-last-year";
    let mess = format!(
        "echo 'echo Welcome to $(hostname); printf unfinished; echo grumble >&2' > .bashrc; \
         mkdir -m 755 -p .cache/fleetctl; touch -d '40 days ago' {old}"
    );
    assert!(fleet.sh_as("ops", "web1", &mess).success());

    assert_eq!(served(&controller, &ops, None), (true, uid));
    assert_eq!(served(&controller, &ops, None), (false, uid));
    assert_eq!(served(&controller, &ops, Some(&Become::root())), (true, 0));
    assert_eq!(served(&controller, &ops, Some(&Become::root())), (false, 0));
    // Somebody who is root needs no sudo, and finds the same helper.
    assert_eq!(
        served(
            &controller,
            &address(&fleet, "web1", "root"),
            Some(&Become::root())
        ),
        (false, 0)
    );

    let listed = fleet.sh(
        "web1",
        "stat -c '%a %U' /var/lib/fleetctl/bin /var/lib/fleetctl/bin/* /home/ops/.cache/fleetctl",
    );
    assert_eq!(listed.text(), "700 root\n700 root\n700 ops");
    let listed = fleet.sh("web1", "ls -A /home/ops/.cache/fleetctl");
    assert!(
        listed.text().starts_with("helper-") && listed.text().lines().count() == 1,
        "{listed:?}"
    );

    // Broken, or swapped for another program: both are found by their hash, and replaced.
    for (dir, who) in [
        ("/home/ops/.cache/fleetctl", None),
        ("/var/lib/fleetctl/bin", Some(Become::root())),
    ] {
        let swap = format!("cd {dir}; for f in helper-*; do echo 'touch /tmp/swapped' > $f; done");
        assert!(fleet.sh("web1", &swap).success());
        assert!(served(&controller, &ops, who.as_ref()).0);
        assert!(!served(&controller, &ops, who.as_ref()).0);
    }
    // A directory that others can write to is made one that they cannot.
    assert!(
        fleet
            .sh("web1", "chmod 777 /var/lib/fleetctl/bin")
            .success()
    );
    assert!(served(&controller, &ops, Some(&Become::root())).0);
    assert_eq!(
        fleet
            .sh("web1", "stat -c %a /var/lib/fleetctl/bin; ls /tmp/swapped")
            .stdout,
        "700\n"
    );
}

#[test]
fn programs_run_from_the_next_place_that_lets_them() {
    let fleet = Fleet::up(1);
    let controller = controller();
    let (ops, root) = (address(&fleet, "web1", "ops"), Become::root());
    let uid: u32 = fleet.sh_as("ops", "web1", "id -u").text().parse().unwrap();
    let forbid = |dirs: &str| {
        let mount = format!(
            "for d in {dirs}; do mkdir -p $d; mount -t tmpfs -o noexec,mode=1777 none $d; done"
        );
        assert!(fleet.sh("web1", &mount).success());
    };
    let found = || {
        fleet.sh("web1", "find / -xdev -name 'helper-*' -type f 2>/dev/null; ls /dev/shm/*/helper-* 2>/dev/null").stdout
    };

    forbid("/home/ops/.cache /var/lib/fleetctl/bin");
    assert_eq!(served(&controller, &ops, Some(&root)), (true, 0));
    assert_eq!(served(&controller, &ops, Some(&root)), (false, 0));
    assert!(
        found().starts_with("/usr/local/lib/fleetctl/helper-"),
        "{}",
        found()
    );

    // In a directory of all, a link of somebody else's leads nowhere.
    assert!(
        fleet
            .sh(
                "web1",
                &format!("mount -o remount,exec /dev/shm; ln -s /home/ops /dev/shm/fleetctl-{uid}")
            )
            .success()
    );
    let problem = controller.refused(&ops, None);
    assert!(
        matches!(&problem, ConnectError::NoExecutablePlace { tried, .. } if tried.len() == 3),
        "{problem}"
    );
    assert!(
        problem
            .to_string()
            .contains("/home/ops/.cache/fleetctl: mounted noexec"),
        "{problem}"
    );
    assert!(
        fleet
            .sh("web1", &format!("rm /dev/shm/fleetctl-{uid}"))
            .success()
    );
    assert_eq!(served(&controller, &ops, None), (true, uid));
    assert!(
        found().contains(&format!("/dev/shm/fleetctl-{uid}/helper-")),
        "{}",
        found()
    );

    // A full disk.
    forbid("/usr/local/lib/fleetctl");
    assert!(fleet.sh("web1", "mkdir -p /run/fleetctl/bin; mount -t tmpfs -o size=64k,mode=700 none /run/fleetctl/bin").success());
    let problem = controller.refused(&ops, Some(&root));
    assert!(matches!(problem, ConnectError::Helper { .. }), "{problem}");
    assert!(
        problem.to_string().contains("is the disk full?"),
        "{problem}"
    );
}

#[test]
fn sudo_gets_its_password_once_and_only_when_it_asks() {
    let fleet = Fleet::up(1);
    let controller = controller();
    let ada = address(&fleet, "web1", "ada");
    let problem = controller.refused(&ada, Some(&Become::root()));
    assert!(
        matches!(problem, ConnectError::PasswordNeeded { .. }),
        "{problem}"
    );
    assert!(
        problem.to_string().contains("-K") && !problem.is_unreachable(),
        "{problem}"
    );

    let problem = controller.refused(&ada, Some(&with_password("wrong")));
    assert!(
        matches!(problem, ConnectError::PasswordWrong { .. }),
        "{problem}"
    );
    assert_eq!(
        served(&controller, &ada, Some(&with_password("correct horse"))),
        (true, 0)
    );
    assert_eq!(
        served(&controller, &ada, Some(&with_password("correct horse"))),
        (false, 0)
    );
    // Nothing of it is to be seen there, while the helper runs.
    run(async {
        let (.., _sender, _receiver) =
            ready(&controller, &ada, Some(&with_password("correct horse"))).await;
        let seen = fleet.sh(
            "web1",
            "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ | tr '\\0' ' '",
        );
        assert!(seen.stdout.contains("helper-") && !seen.stdout.contains("correct horse"));
    });
    // Who is not asked does not get to see it: it is not taken for the first frame either.
    assert_eq!(
        served(
            &controller,
            &address(&fleet, "web1", "ops"),
            Some(&with_password("correct horse"))
        ),
        (false, 0)
    );

    let eve = "useradd -m -s /bin/bash eve; cp -r /home/ada/.ssh /home/eve/; chown -R eve: /home/eve; echo eve:x | chpasswd; \
               printf 'LANG=de_DE.UTF-8\\n' > /etc/default/locale";
    assert!(fleet.sh("web1", eve).success());
    let problem = controller.refused(&address(&fleet, "web1", "eve"), Some(&with_password("x")));
    assert!(
        matches!(problem, ConnectError::BecomeDenied { .. }),
        "{problem}"
    );
    assert!(
        problem
            .to_string()
            .contains("eve is not in the sudoers file"),
        "{problem}"
    );
}

#[test]
fn a_lost_host_is_told_from_a_killed_helper_and_is_found_again() {
    let fleet = Fleet::up(1);
    let controller = controller();
    let (ops, root) = (address(&fleet, "web1", "ops"), Become::root());
    run(async {
        let helpers = || {
            fleet
                .sh_inside("web1", "pgrep -fc '[h]elper-.* serve'")
                .stdout
                .trim()
                .to_owned()
        };
        let (.., sender, receiver) = ready(&controller, &ops, Some(&root)).await;
        assert_ne!(helpers(), "0");
        drop((sender, receiver));
        eventually("the helper has ended with its channel", || helpers() == "0");

        let (.., _sender, mut receiver) = ready(&controller, &ops, None).await;
        assert!(
            fleet
                .sh("web1", "pkill -KILL -f '[h]elper-.* serve'")
                .success()
        );
        let problem = receiver.next().await.unwrap_err();
        assert!(matches!(problem, ChannelError::Killed { .. }), "{problem}");

        let (.., _sender, mut receiver) = ready(&controller, &ops, None).await;
        assert!(
            fleet
                .sh_inside("web1", "pkill -KILL -f '[s]shd: ops'")
                .success()
        );
        let problem = receiver.next().await.unwrap_err();
        assert!(matches!(problem, ChannelError::Lost { .. }), "{problem}");

        // A kept master does not know that its host was switched off.
        let (.., _sender, _receiver) = ready(&controller, &ops, None).await;
        fleet.power_off("web1");
        fleet.power_on("web1");
        let began = std::time::Instant::now();
        ready(&controller, &ops, None).await;
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "{:?}",
            began.elapsed()
        );
    });
}

#[test]
fn a_kept_connection_costs_three_turns() {
    let fleet = Fleet::up(1);
    let controller = controller();
    let proxy = DelayProxy::start(
        "127.0.0.1:0",
        format!("{}:22", fleet.address("web1")),
        Duration::from_millis(25),
    )
    .unwrap();
    let mut ops = Address {
        port: Some(proxy.address().port()),
        ..address(&fleet, "web1", "ops")
    };
    "127.0.0.1".clone_into(&mut ops.host);
    ops.ssh_common_args.extend([
        "-o".to_owned(),
        format!("HostKeyAlias={}", fleet.address("web1")),
    ]);
    let turns = |once: &dyn Fn()| {
        let before = proxy.counts().turns;
        once();
        proxy.counts().turns - before
    };
    // A busy machine may cut one answer in two.
    let least = |once: &dyn Fn()| (0..3).map(|_| turns(once)).min().unwrap();
    let serve = || drop(run(ready(&controller, &ops, Some(&Become::root()))));
    let sent = turns(&serve);
    let kept = least(&serve);
    let disconnect = || run(masters::disconnect_all(&controller.settings.control_dir));
    let cold = (0..3)
        .map(|_| {
            disconnect();
            turns(&serve)
        })
        .min()
        .unwrap();
    let ssh = least(&|| {
        let port = proxy.address().port().to_string();
        let status = std::process::Command::new("ssh")
            .args(&ops.ssh_common_args)
            .arg("-i")
            .arg(fleet.key())
            .args(["-l", "ops", "-p", &port, "127.0.0.1", "true"])
            .status();
        assert!(status.unwrap().success());
    });
    let all = format!(
        "{kept} with a kept master, {cold} cold, {sent} with the helper sent, {ssh} for ssh"
    );
    // A channel, a command, a hello.
    assert_eq!(kept, 3, "{all}");
    assert!(cold <= ssh + 2, "{all}");
    // The helper goes in as many turns as TCP takes to trust the line.
    assert!(sent <= cold + 8, "{all}");
}
