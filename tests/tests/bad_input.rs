//! What goes wrong because somebody made a mistake: one clear message, and a host that is as it was.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the message")]

use std::path::PathBuf;
use std::sync::LazyLock;

use fleet_tests::{Fleet, Fleetctl, HostState, Output};

/// A host for each test: they go on side by side.
static FLEET: LazyLock<Fleet> = LazyLock::new(|| Fleet::up(9));

const CHANGE: &str = r#"
  tasks:
    - copy: {dest: /srv/change, content: "new\n", mode: "0644"}
"#;

/// An inventory that differs from the usual one.
fn inventory(ctl: &Fleetctl, change: impl Fn(String) -> String) -> PathBuf {
    let usual = std::fs::read_to_string(FLEET.inventory()).unwrap();
    ctl.write("inventory.yml", &change(usual))
}

/// The lines that say this, on either stream.
fn times(said: &Output, text: &str) -> usize {
    said.stdout.matches(text).count() + said.stderr.matches(text).count()
}

#[test]
fn a_wrong_sudo_password_is_tried_once_and_told_once() {
    let ctl = Fleetctl::on(&FLEET, &["web1"]).with_inventory(FLEET.inventory_for("ada"));
    let wrong = ctl.write("wrong", "battery staple\n").display().to_string();
    let right = ctl.write("right", "correct horse\n").display().to_string();
    let play = ctl.play(CHANGE);
    let before = HostState::of(&FLEET, "web1");
    for said in [
        ctl.plan(&play, &["--become-password-file", &wrong]),
        ctl.apply(&play, &["--become-password-file", &wrong]),
    ] {
        said.ended(3)
            .says("sudo on web1")
            .says("refuses the password for becoming root; it was tried once");
        assert_eq!(times(&said, "refuses the password"), 1, "{said:?}");
        said.keeps_silent_about("battery");
    }
    HostState::of(&FLEET, "web1").assert_same_as(&before);
    ctl.plan(&play, &["--become-password-file", &right])
        .ended(0)
        .says("create /srv/change");
}

#[test]
fn a_sudo_password_that_nobody_gave() {
    let ctl = Fleetctl::on(&FLEET, &["web2"]).with_inventory(FLEET.inventory_for("ada"));
    let before = HostState::of(&FLEET, "web2");
    let said = ctl.apply(&ctl.play(CHANGE), &[]);
    said.ended(3)
        .says("needs a password to become root; give it with -K");
    HostState::of(&FLEET, "web2").assert_same_as(&before);
}

#[test]
fn a_port_where_nobody_listens() {
    let ctl = Fleetctl::on(&FLEET, &["web3"]);
    let inventory = inventory(&ctl, |text| {
        text.replace(
            "ansible_user: ops",
            "ansible_user: ops\n      ansible_port: 2222",
        )
    });
    let play = ctl.play(CHANGE);
    let ctl = ctl.with_inventory(inventory);
    let before = HostState::of(&FLEET, "web3");
    for said in [ctl.plan(&play, &[]), ctl.apply(&play, &[])] {
        said.ended(4)
            .says("cannot reach web3")
            .says(":2222): connection refused; is sshd running there, on this port?");
    }
    HostState::of(&FLEET, "web3").assert_same_as(&before);
}

/// The others are not held up by a host that is dead.
#[test]
fn a_dead_host_among_living_ones() {
    let ctl = Fleetctl::on(&FLEET, &["web4", "web5"]);
    FLEET.cut("web4");
    let said = ctl.apply(&ctl.play(CHANGE), &["--timeout", "3"]);
    FLEET.mend("web4");
    said.ended(4)
        .says("cannot reach web4")
        .says("no answer within 3 s")
        .says("web5  changed");
    assert_eq!(FLEET.read("web5", "/srv/change"), "new\n");
    assert!(!FLEET.sh("web4", "test -e /srv/change").success());
}

#[test]
fn an_unknown_host_key_is_refused_until_it_is_enrolled_and_a_changed_one_always() {
    let ctl = Fleetctl::on(&FLEET, &["web6"]);
    let known = ctl.home().join("known_hosts");
    let usual = format!("UserKnownHostsFile={}", FLEET.known_hosts().display());
    let own = format!("UserKnownHostsFile={}", known.display());
    let inventory = inventory(&ctl, |text| text.replace(&usual, &own));
    let enroll = [
        "host",
        "enroll",
        "--yes",
        "-i",
        &inventory.display().to_string(),
        "web6",
    ]
    .map(str::to_owned);
    let play = ctl.play(CHANGE);
    let ctl = ctl.with_inventory(inventory);

    let unknown = ctl.plan(&play, &[]);
    unknown
        .ended(4)
        .says("the host key of web6")
        .says("is not known")
        .says("`fleetctl host enroll web6`");
    assert!(
        !known.exists(),
        "a key is recorded only when somebody said so"
    );

    ctl.run(&enroll)
        .ended(0)
        .says("SHA256:")
        .says("recorded in");
    ctl.plan(&play, &[]).ended(0).says("create /srv/change");
    ctl.run(&enroll).ended(0).says("is known already");

    // Another key stands where the host's was: somebody else answers, or the host was rebuilt.
    ctl.run(["host", "disconnect", "--all"]).ended(0);
    let line = std::fs::read_to_string(&known).unwrap();
    let name = line.split_whitespace().next().unwrap();
    let other = std::fs::read_to_string(FLEET.key().with_extension("pub")).unwrap();
    let recorded = format!("{name} {other}");
    std::fs::write(&known, &recorded).unwrap();
    let before = HostState::of(&FLEET, "web6");
    for said in [ctl.plan(&play, &[]), ctl.apply(&play, &[])] {
        said.ended(4)
            .says("the host key of web6")
            .says("has changed")
            .says("somebody may be in between");
    }
    ctl.run(&enroll).ended(4).says("ssh-keygen -R");
    assert_eq!(
        std::fs::read_to_string(&known).unwrap(),
        recorded,
        "a changed key is never taken by itself"
    );
    HostState::of(&FLEET, "web6").assert_same_as(&before);
}

/// `vm.swappiness` is not a container's to set, and one bad key spoils the task before anything is written.
#[test]
fn a_kernel_parameter_that_cannot_be_set_or_does_not_exist() {
    let ctl = Fleetctl::on(&FLEET, &["web7"]);
    let sysctls = |keys: &str| {
        ctl.play(&format!(
            "  tasks:\n    - sysctl:\n        keys: {{{keys}}}\n        sysctl_file: /etc/sysctl.d/90-bad.conf\n"
        ))
    };
    let before = HostState::of(&FLEET, "web7");
    let read_only = sysctls("net.ipv4.tcp_fin_timeout: 17, vm.swappiness: 5");
    for said in [ctl.plan(&read_only, &[]), ctl.apply(&read_only, &[])] {
        said.ended(3)
            .says("vm.swappiness cannot be set here (/proc/sys is read-only")
            .says("nothing was written");
        said.keeps_silent_about("tcp_fin_timeout cannot");
    }
    let unknown = sysctls("net.ipv4.tcp_fin_timeout: 17, net.ipv4.tcp_fin_timeot: 5");
    for said in [ctl.plan(&unknown, &[]), ctl.apply(&unknown, &[])] {
        said.ended(3)
            .says("there is no kernel parameter net.ipv4.tcp_fin_timeot on this host")
            .says("nothing was written");
    }
    HostState::of(&FLEET, "web7").assert_same_as(&before);
}

#[test]
fn a_file_whose_name_only_the_run_knows_and_that_is_not_there() {
    let ctl = Fleetctl::on(&FLEET, &["web8"]);
    let before = HostState::of(&FLEET, "web8");
    let play = ctl.play(
        r#"
  vars: {profile: fast}
  tasks:
    - copy: {dest: /srv/change, content: "new\n", mode: "0644"}
    - template: {src: "{{ profile }}.j2", dest: /srv/profile}
"#,
    );
    let said = ctl.apply(&play, &[]);
    said.ended(3)
        .says("there is no file `fast.j2`")
        .says("looked for")
        .says("web8 rolled back: 1 effect undone");
    HostState::of(&FLEET, "web8").assert_same_as(&before);
}

/// The mistake stands in the last task, and not even the first is done.
#[test]
fn a_mistake_in_the_file_stops_all_before_anything_is_connected() {
    let ctl = Fleetctl::on(&FLEET, &["web9"]);
    let before = HostState::untouched(&FLEET, "web9");
    let play = ctl.play(&format!(
        "{CHANGE}    - file: {{path: /srv/change, stat: absent}}\n"
    ));
    let said = ctl.apply(&play, &[]);
    said.ended(11)
        .says("`file` has no argument `stat`")
        .says("did you mean `state`?");
    HostState::untouched(&FLEET, "web9").assert_same_as(&before);
    assert!(
        !FLEET
            .sh("web9", "test -e /home/ops/.cache/fleetctl")
            .success(),
        "not even the helper was sent"
    );
}
