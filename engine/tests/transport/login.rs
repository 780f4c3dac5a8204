//! Logging in: through jump hosts, with the user's own configuration, by way of any login shell.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use fleet_engine::transport::{Address, Become, ConnectError, enroll};
use fleet_tests::eventually;

use crate::{Controller, run, sshd::Sshd};

fn controller() -> Controller {
    Controller::new(vec!["/nowhere".into()])
}

/// The address with a configuration file of the user's.
fn configured(sshd: &Sshd, address: Address, config: &str) -> Address {
    let file = sshd.path("ssh_config");
    fs::write(&file, config).unwrap();
    let mut address = address;
    address
        .ssh_common_args
        .extend(["-F".to_owned(), file.display().to_string()]);
    address
}

#[test]
fn a_jump_host_is_gone_through() {
    let (sshd, controller) = (Sshd::start(), controller());
    let config = format!(
        "Host bastion\n  HostName 127.0.0.1\n  Port {}\n  IdentityFile {}\n  UserKnownHostsFile {}\n  \
         GlobalKnownHostsFile /dev/null\n  StrictHostKeyChecking yes\n  BatchMode yes\n",
        sshd.port(),
        sshd.path("user_key").display(),
        sshd.path("known_hosts").display(),
    );
    let mut address = configured(&sshd, sshd.known(), &config);
    address
        .ssh_common_args
        .extend(["-J".to_owned(), "bastion".to_owned()]);
    let problem = controller.refused(&address, None);
    assert!(
        matches!(problem, ConnectError::NoHelperFor { .. }),
        "{problem}"
    );
    assert_eq!(sshd.logins(), 2, "the jump host's and the host's own");

    // The host's key is asked for by the same way.
    let scan = run(enroll::scan(
        &address,
        Path::new("/unused"),
        Duration::from_secs(10),
    ))
    .unwrap();
    assert!(scan.is_known(), "{scan:?}");
}

#[test]
fn many_go_through_a_jump_host_that_takes_few_at_once() {
    let (bastion, sshd) = (Sshd::with("MaxStartups 9:100:9"), Sshd::start());
    let controller = controller();
    bastion.record("host_key");
    let config = format!(
        "Host bastion\n  HostName 127.0.0.1\n  Port {}\n  IdentityFile {}\n  UserKnownHostsFile {}\n  \
         GlobalKnownHostsFile /dev/null\n  StrictHostKeyChecking yes\n  BatchMode yes\n",
        bastion.port(),
        bastion.path("user_key").display(),
        bastion.path("known_hosts").display(),
    );
    let address = configured(&sshd, sshd.known(), &config);
    run(async {
        let mut all = tokio::task::JoinSet::new();
        for prompts in 1..=24 {
            let mut address = address.clone();
            // Not the same to the controller, but to ssh.
            let own = format!("-oNumberOfPasswordPrompts={prompts}");
            address
                .ssh_common_args
                .extend(["-J".to_owned(), "bastion".to_owned(), own]);
            let settings = controller.settings.clone();
            all.spawn(async move {
                fleet_engine::transport::connect(&address, None, &settings)
                    .await
                    .err()
            });
        }
        for problem in all.join_all().await {
            let problem = problem.unwrap();
            assert!(
                matches!(problem, ConnectError::NoHelperFor { .. }),
                "{problem}"
            );
        }
    });
    assert_eq!(bastion.logins(), 24);
    assert!(
        !bastion.log().contains("drop connection"),
        "{}",
        bastion.log()
    );
}

#[test]
fn a_jump_host_that_refuses_is_not_taken_for_the_host() {
    let (sshd, controller) = (Sshd::start(), controller());
    let config = "Host bastion\n  HostName 127.0.0.1\n  Port 1\n  BatchMode yes\n";
    let mut address = configured(&sshd, sshd.known(), config);
    address
        .ssh_common_args
        .extend(["-J".to_owned(), "bastion".to_owned()]);
    let problem = controller.refused(&address, None);
    let text = problem.to_string();
    assert!(
        matches!(problem, ConnectError::Unreachable { .. }),
        "{text}"
    );
    assert!(
        text.contains("its jump host or proxy command gives no connection"),
        "{text}"
    );
    assert!(
        text.contains("connect to host 127.0.0.1 port 1: Connection refused"),
        "{text}"
    );
}

/// An agent of a test's own, and an ssh that knows of it.
struct Agent {
    process: Child,
    ssh: PathBuf,
}

impl Agent {
    fn start(dir: &Path) -> Self {
        let socket = dir.join("agent");
        let process = Command::new("ssh-agent")
            .arg("-D")
            .arg("-a")
            .arg(&socket)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        eventually("the agent listens", || socket.exists());
        let ssh = dir.join("ssh-with-agent");
        fs::write(
            &ssh,
            format!(
                "#!/bin/sh\nSSH_AUTH_SOCK={} exec ssh \"$@\"\n",
                socket.display()
            ),
        )
        .unwrap();
        assert!(
            Command::new("chmod")
                .arg("755")
                .arg(&ssh)
                .status()
                .unwrap()
                .success()
        );
        Self { process, ssh }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn an_agent_is_never_forwarded() {
    let told = "ForceCommand echo \"FLEETCTL-BAD agent=${SSH_AUTH_SOCK:-none}.\"";
    let (sshd, controller) = (Sshd::with(told), controller());
    let agent = Agent::start(sshd.path("").as_path());
    let address = configured(&sshd, sshd.known(), "Match all\n  ForwardAgent yes\n");
    let address = Address {
        ssh_executable: Some(agent.ssh.clone()),
        ..address
    };
    let text = controller.refused(&address, None).to_string();
    assert!(text.contains("agent=none."), "{text}");

    // ssh itself would.
    let plain = Command::new(&agent.ssh)
        .args(&address.ssh_common_args)
        .arg("-i")
        .arg(sshd.path("user_key"))
        .args([
            "-o",
            "BatchMode=yes",
            "-p",
            &sshd.port().to_string(),
            "127.0.0.1",
        ])
        .output()
        .unwrap();
    assert!(String::from_utf8(plain.stdout).unwrap().contains("agent=/"));
}

#[test]
fn any_login_shell_will_do() {
    let shells = [
        "sh", "dash", "bash", "csh", "tcsh", "zsh", "fish", "ksh", "mksh", "yash",
    ];
    let found: Vec<&str> = shells
        .into_iter()
        .filter(|shell| Path::new("/bin").join(shell).exists())
        .collect();
    assert!(found.starts_with(&["sh", "dash", "bash"]), "{found:?}");
    for shell in found {
        // As sshd calls the login shell of a user.
        let as_shell = format!("ForceCommand exec /bin/{shell} -c \"$SSH_ORIGINAL_COMMAND\"");
        let (sshd, controller) = (Sshd::with(&as_shell), controller());
        let problem = controller.refused(&sshd.known(), None);
        assert!(
            matches!(&problem, ConnectError::NoHelperFor { arch, .. } if arch == std::env::consts::ARCH),
            "{shell}: {problem}"
        );
        let who = Become {
            user: "somebody-else".to_owned(),
            exe: Some("/no/such/sudo".to_owned()),
            ..Become::root()
        };
        let problem = controller.refused(&sshd.known(), Some(&who));
        assert!(
            matches!(problem, ConnectError::BecomeDenied { .. }),
            "{shell}: {problem}"
        );
    }
}

#[test]
fn keys_are_recorded_where_ssh_looks_for_them() {
    let sshd = Sshd::start();
    fs::create_dir(sshd.path("my keys")).unwrap();
    let plain = sshd.path("plain");
    let spaced = sshd.path("my keys/known");
    let forms: Vec<(PathBuf, Vec<String>)> = vec![
        (
            plain.clone(),
            vec![
                "-o".to_owned(),
                format!("UserKnownHostsFile={}", plain.display()),
            ],
        ),
        (
            plain.clone(),
            vec![format!("-oUserKnownHostsFile={}", plain.display())],
        ),
        (
            plain.clone(),
            vec![
                "-o".to_owned(),
                format!("UserKnownHostsFile {} /dev/null", plain.display()),
            ],
        ),
        (
            spaced.clone(),
            vec![
                "-o".to_owned(),
                format!("UserKnownHostsFile=\"{}\"", spaced.display()),
            ],
        ),
        (
            spaced.clone(),
            vec![format!(
                "-oUserKnownHostsFile=\"{}\" \"{}\"",
                spaced.display(),
                plain.display()
            )],
        ),
    ];
    for (file, mut words) in forms {
        words.push("-oGlobalKnownHostsFile=/dev/null".to_owned());
        let address = Address {
            ssh_common_args: words,
            ..sshd.address()
        };
        let scan = || {
            run(enroll::scan(
                &address,
                Path::new("/unused"),
                Duration::from_secs(10),
            ))
            .unwrap()
        };
        let found = scan();
        assert!(!found.is_known(), "{address:?}");
        assert_eq!(found.record().unwrap(), file, "{address:?}");
        assert!(scan().is_known(), "{address:?}");
        let problem = controller().refused(&address, None);
        assert!(
            matches!(problem, ConnectError::NoHelperFor { .. }),
            "{problem}"
        );
        fs::remove_file(file).unwrap();
    }
}
