//! A run that is cut off leaves no host in between: the host itself, or the next run, puts it back.

use std::path::PathBuf;
use std::sync::LazyLock;

use fleet_tests::{Fleet, Fleetctl, HostState, Running, eventually};

static FLEET: LazyLock<Fleet> = LazyLock::new(|| Fleet::up(6));

/// Changes this and that, and then is busy for as long as the test wants.
fn begun(ctl: &Fleetctl, host: &str, seconds: u32) -> Running {
    FLEET
        .sh(
            host,
            "cd /srv && echo old > edited && chmod 640 edited && echo gone > gone",
        )
        .ended(0);
    let play = ctl.play(&format!(
        r#"
  tasks:
    - copy: {{dest: /srv/edited, content: "new\n", mode: "0644", owner: www-data}}
    - file: {{path: /srv/gone, state: absent}}
    - file: {{path: /srv/made/deeply, state: directory, mode: "0755"}}
    - sysctl: {{name: net.ipv4.tcp_fin_timeout, value: "17", sysctl_file: /etc/sysctl.d/90-cut-off.conf}}
    - service: {{name: nginx, state: stopped}}
    - command: sleep {seconds}
    - copy: {{dest: /srv/late, content: "never\n", mode: "0644"}}
"#
    ));
    let mut running = ctl.start_apply(&play, &[]);
    running.until("the run sleeps", || {
        FLEET.sh_inside(host, "pgrep -x sleep").success()
    });
    assert_eq!(FLEET.read(host, "/srv/edited"), "new\n");
    running
}

fn state_of_the_last_run(ctl: &Fleetctl, host: &str) -> String {
    let runs = ctl.journal(host);
    runs.last()
        .and_then(|run| run["state"].as_str())
        .unwrap_or("none")
        .to_owned()
}

/// Another play, and what it leaves.
fn another(ctl: &Fleetctl) -> PathBuf {
    ctl.play("  tasks:\n    - copy: {dest: /etc/another, content: \"x\\n\", mode: \"0644\"}\n")
}

/// What is there before `begun` changes anything.
fn before(host: &str) -> HostState {
    FLEET.sh(host, "cd /srv && echo old > edited && chmod 640 edited && echo gone > gone; echo x > /etc/another").ended(0);
    let state = HostState::of(&FLEET, host);
    FLEET.sh(host, "rm /etc/another").ended(0);
    state
}

#[test]
fn a_killed_helper_leaves_what_the_next_run_puts_right() {
    let ctl = Fleetctl::on(&FLEET, &["web1"]);
    let before = before("web1");
    let running = begun(&ctl, "web1", 600);
    FLEET
        .sh("web1", "kill -9 $(pgrep '^helper-'); pkill -x sleep")
        .ended(0);
    // Nobody can know how far it came, so a person is told.
    running
        .wait()
        .ended(7)
        .says("was killed while `command`")
        .says("play0.yml:11");
    assert_eq!(FLEET.read("web1", "/srv/edited"), "new\n");
    assert_eq!(state_of_the_last_run(&ctl, "web1"), "open");

    // Its lock is free: the kernel took it from the dead.
    let next = ctl.apply(&another(&ctl), &[]);
    next.ended(0)
        .says("recovered web1 was cut off in run")
        .says("rolled back: 7 effects undone");
    HostState::of(&FLEET, "web1").assert_same_as(&before);
    // Only once.
    ctl.apply(&another(&ctl), &[])
        .ended(0)
        .keeps_silent_about("recovered");
}

#[test]
fn a_power_cut_leaves_what_the_next_run_puts_right() {
    let ctl = Fleetctl::on(&FLEET, &["web2"]);
    let before = before("web2");
    let running = begun(&ctl, "web2", 600);
    FLEET.power_off("web2");
    running.wait().ended(7).says("web2");
    FLEET.power_on("web2");
    assert_eq!(FLEET.read("web2", "/srv/edited"), "new\n");

    ctl.apply(&another(&ctl), &[])
        .ended(0)
        .says("recovered web2 was cut off in run");
    HostState::of(&FLEET, "web2").assert_same_as(&before);
}

#[test]
fn a_killed_fleetctl_leaves_hosts_that_undo_by_themselves() {
    let ctl = Fleetctl::on(&FLEET, &["web3"]);
    let before = before("web3");
    FLEET.sh("web3", "echo x > /etc/another").ended(0);
    let running = begun(&ctl, "web3", 5);
    running.signal("KILL");
    assert_eq!(running.wait().code, -1);
    eventually("web3 has undone the run", || {
        state_of_the_last_run(&ctl, "web3") == "rolled_back"
    });
    HostState::of(&FLEET, "web3").assert_same_as(&before);
    ctl.apply(&another(&ctl), &[])
        .ended(0)
        .keeps_silent_about("recovered");
}

#[test]
fn a_cut_cable_leaves_a_host_that_undoes_by_itself() {
    let ctl = Fleetctl::on(&FLEET, &["web4"]);
    let before = before("web4");
    FLEET.sh("web4", "echo x > /etc/another").ended(0);
    let running = begun(&ctl, "web4", 20);
    FLEET.cut("web4");
    running
        .wait()
        .ended(7)
        .says("the host undoes this run by itself");
    FLEET.mend("web4");
    eventually("web4 has undone the run", || {
        state_of_the_last_run(&ctl, "web4") == "rolled_back"
    });
    HostState::of(&FLEET, "web4").assert_same_as(&before);
}

/// Whenever it dies, between an intent and its completion or anywhere else.
#[test]
fn a_helper_may_be_killed_at_any_moment() {
    let ctl = Fleetctl::on(&FLEET, &["web5"]);
    FLEET
        .sh(
            "web5",
            "cd /srv && for i in $(seq 30); do echo old $i > file$i; chmod 600 file$i; done",
        )
        .ended(0);
    let play = ctl.play(
        r#"
  tasks:
    - copy: {dest: "/srv/file{{ item }}", content: "new {{ item }}\n", mode: "0755", owner: www-data, group: games}
      loop: "{{ range(1, 31) | list }}"
    - file: {path: "/srv/deep/{{ item }}/deeper", state: directory, mode: "0700", owner: ops}
      loop: "{{ range(1, 31) | list }}"
    - file: {path: /srv, owner: ops, mode: "2770", recurse: true}
    - file: {path: /srv/file1, state: absent}
    - file: {path: /srv/file2, src: file3, state: link, force: true}
    - sysctl: {name: net.ipv4.tcp_fin_timeout, value: "17", sysctl_file: /etc/sysctl.d/90-killed.conf}
"#,
    );
    let nothing = ctl.play("  tasks:\n    - stat: {path: /srv}\n");
    ctl.apply(&nothing, &[]).ended(0);
    let before = HostState::of(&FLEET, "web5");
    let mut cut_off = 0;
    for round in 0..5 {
        // Waits inside the host, where it costs no time to look, for so many files to have been made.
        let count = 1 + round * 17;
        let trap = format!(
            "for i in $(seq 100000); do [ $(grep -c '\"done\"' /var/lib/fleetctl/txn/*/journal 2>/dev/null | sort -t: -k2n | tail -n1 | cut -d: -f2) -ge {count} ] && break; done 2>/dev/null; kill -9 $(pgrep '^helper-')"
        );
        FLEET.sh("web5", "rm -rf /var/lib/fleetctl/txn/*").ended(0);
        let running = ctl.start_apply(&play, &[]);
        let killed = FLEET.sh_inside("web5", &trap).success();
        let said = running.wait();
        if killed && said.code == 7 {
            cut_off += 1;
            ctl.apply(&nothing, &[]).ended(0).says("recovered web5");
        } else {
            // It was through before the kill.
            said.ended(0);
            ctl.run(["rollback", "last"]).ended(0);
        }
        HostState::of(&FLEET, "web5").assert_same_as(&before);
    }
    assert!(cut_off >= 3, "only {cut_off} helpers were killed in time");
}

#[test]
fn a_full_disk_stops_no_undo() {
    let ctl = Fleetctl::on(&FLEET, &["web6"]);
    let nothing = ctl.play("  tasks:\n    - stat: {path: /srv}\n");
    ctl.apply(&nothing, &[]).ended(0);
    FLEET.sh("web6", "mount -t tmpfs -o size=256k none /var/lib/fleetctl/txn; cd /srv && for i in $(seq 60); do echo old > file$i; done").ended(0);
    let before = HostState::of(&FLEET, "web6");
    let play = ctl.play(
        r#"
  tasks:
    - file: {path: "/srv/file{{ item }}", mode: "0600", owner: ops}
      loop: "{{ range(1, 61) | list }}"
"#,
    );
    let failed = ctl.apply(&play, &[]);
    // The journal has kept room for the undo before it let anything be done.
    failed
        .ended(3)
        .says("the disk is full")
        .says("effects undone, all is as it was");
    HostState::of(&FLEET, "web6").assert_same_as(&before);
    ctl.apply(&nothing, &[])
        .ended(0)
        .keeps_silent_about("recovered");
}
