//! An apply makes it true, once.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use fleet_tests::{Fleet, Fleetctl, HostState, eventually};

static FLEET: LazyLock<Fleet> = LazyLock::new(|| Fleet::up(15));

fn flagship() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../playbooks/nginx-static.yml")
}

#[test]
fn the_second_apply_of_the_flagship_touches_nothing() {
    let ctl = Fleetctl::on(&FLEET, &["web1"]);
    ctl.apply(&flagship(), &["--no-bench"])
        .ended(0)
        .says("Reload nginx");

    let tuned = HostState::untouched(&FLEET, "web1");
    let second = ctl.apply(&flagship(), &["--no-bench"]);
    second
        .ended(0)
        .says("unchanged")
        .says("changed=0 effects=0");
    HostState::untouched(&FLEET, "web1").assert_same_as(&tuned);

    let plan = ctl.plan(&flagship(), &["--detailed-exitcode"]);
    plan.ended(0)
        .says("plan: 0 effects on 0 of 1 host, 4 known after apply");
}

#[test]
fn the_flagship_can_be_looked_at_before_it_is_applied() {
    let ctl = Fleetctl::on(&FLEET, &["web15"]);
    let mut running = ctl.start_apply_on_a_terminal(&flagship(), &["--no-bench"]);
    running.answer("apply this plan? [y/N]", "y");
    running.wait().ended(0).says("reload nginx.service");
}

#[test]
fn one_failed_host_is_undone_and_the_other_keeps_its_change() {
    let ctl = Fleetctl::on(&FLEET, &["web2", "web3"]);
    let before = HostState::of(&FLEET, "web3");
    let play = ctl.play(
        r#"
  tasks:
    - copy: {dest: /srv/kept, content: "new\n", mode: "0644"}
    - sysctl: {name: net.ipv4.tcp_fin_timeout, value: "17", sysctl_file: /etc/sysctl.d/90-kept.conf}
    - command: test {{ inventory_hostname }} = web2
"#,
    );
    let applied = ctl.apply(&play, &[]);
    applied.ended(3).says("web3 rolled back: 3 effects undone");
    HostState::of(&FLEET, "web3").assert_same_as(&before);
    assert_eq!(FLEET.read("web2", "/srv/kept"), "new\n");
    assert_eq!(
        FLEET.read("web2", "/proc/sys/net/ipv4/tcp_fin_timeout"),
        "17\n"
    );
}

#[test]
fn a_handler_that_a_failed_run_left_over_runs_at_the_next_one() {
    let ctl = Fleetctl::on(&FLEET, &["web4"]);
    let play = ctl.play(
        r#"
  tasks:
    - copy: {dest: /srv/config, content: "new\n", mode: "0644"}
      notify: count
    - command: test -e /srv/repaired
      changed_when: false
  handlers:
    - name: count
      shell: echo ran >> /srv/count
"#,
    );
    ctl.apply(&play, &["--on-failure", "keep"]).ended(3);
    // As with Ansible the change stays, and the handler has not run.
    assert_eq!(FLEET.read("web4", "/srv/config"), "new\n");
    assert!(!FLEET.sh("web4", "test -e /srv/count").success());

    FLEET.write("web4", "/srv/repaired", "");
    ctl.apply(&play, &[]).ended(0).says("pending").says("count");
    assert_eq!(FLEET.read("web4", "/srv/count"), "ran\n");
    ctl.apply(&play, &[]).ended(0);
    assert_eq!(FLEET.read("web4", "/srv/count"), "ran\n");
}

#[test]
fn an_apply_that_asks_applies_what_it_showed() {
    let ctl = Fleetctl::on(&FLEET, &["web5"]);
    let play = ctl.play(
        r#"
  tasks:
    - copy: {dest: /srv/asked, content: "yes\n", mode: "0644"}
    - command: cat /srv/asked
"#,
    );
    let inventory = FLEET.inventory().display().to_string();
    let path = play.display().to_string();
    let nobody = ctl.run(["apply", "-i", &inventory, "-l", "web5", &path]);
    nobody
        .ended(11)
        .says("there is no terminal to ask on: say `--yes`");
    assert!(!FLEET.sh("web5", "test -e /srv/asked").success());

    let refused = ctl.apply_on_a_terminal(&play, "n");
    refused
        .ended(0)
        .says("+yes")
        .says("not applied, nothing was changed");
    assert!(!FLEET.sh("web5", "test -e /srv/asked").success());

    let agreed = ctl.apply_on_a_terminal(&play, "y");
    agreed
        .ended(0)
        .says("+yes")
        .says("cannot be undone")
        .says("apply this plan? [y/N]");
    assert_eq!(FLEET.read("web5", "/srv/asked"), "yes\n");
}

#[test]
fn what_the_plan_did_not_show_is_refused() {
    let ctl = Fleetctl::on(&FLEET, &["web8"]);
    FLEET
        .sh("web8", "echo old > /srv/one; echo old > /srv/two")
        .ended(0);
    let play = ctl.play(
        r#"
  tasks:
    - copy: {dest: /srv/one, content: "new\n", mode: "0644"}
    - copy: {dest: /srv/two, content: "new\n", mode: "0644"}
"#,
    );
    let mut running = ctl.start_apply_on_a_terminal(&play, &[]);
    running.wait_for("apply this plan? [y/N]");
    FLEET.write("web8", "/srv/two", "by hand\n");
    running.answer("apply this plan? [y/N]", "y");
    running
        .wait()
        .ended(5)
        .says("stale: `file /srv/two` is not in the plan")
        .says("web8 rolled back: 1 effect undone");
    assert_eq!(
        FLEET.sh("web8", "cat /srv/one /srv/two").text(),
        "old\nby hand"
    );
}

#[test]
fn a_check_changes_nothing() {
    let ctl = Fleetctl::on(&FLEET, &["web9"]);
    let play = ctl
        .play("  tasks:\n    - copy: {dest: /srv/checked, content: \"new\\n\", mode: \"0644\"}\n");
    ctl.apply(&play, &["--check"]).ended(0).says("+new");
    ctl.apply(&play, &["--check", "--diff"])
        .ended(0)
        .says("+new");
    assert_eq!(
        FLEET.sh("web9", "ls /srv; ls /var/lib/fleetctl").text(),
        "bin"
    );
}

#[test]
fn an_interrupted_apply_finishes_the_host_in_hand_and_starts_no_other() {
    let ctl = Fleetctl::on(&FLEET, &["web6", "web7"]);
    // With `linear` the hosts would wait for each other at the command, and both have begun.
    let play = ctl.play(
        r#"
  strategy: host_pinned
  tasks:
    - copy: {dest: /srv/begun, content: "1\n", mode: "0644"}
    - command: sleep 3
    - copy: {dest: /srv/ended, content: "2\n", mode: "0644"}
"#,
    );
    let mut running = ctl.start_apply(&play, &["--forks", "1"]);
    running.until("web6 or web7 has begun", || {
        ["web6", "web7"]
            .iter()
            .any(|host| FLEET.sh(host, "test -e /srv/begun").success())
    });
    running.signal("INT");
    let said = running.wait();
    said.ended(130).says("interrupted");
    let files = |host| FLEET.sh(host, "ls /srv").text().to_owned();
    let mut both = [files("web6"), files("web7")];
    both.sort();
    assert_eq!(both, ["", "begun\nended"]);
}

#[test]
fn a_second_interrupt_leaves_at_once_and_the_host_undoes() {
    let ctl = Fleetctl::on(&FLEET, &["web10"]);
    let play = ctl.play(
        r#"
  tasks:
    - copy: {dest: /srv/begun, content: "1\n", mode: "0644"}
    - command: sleep 4
    - copy: {dest: /srv/ended, content: "2\n", mode: "0644"}
"#,
    );
    let mut running = ctl.start_apply(&play, &[]);
    running.until("the run sleeps", || {
        FLEET.sh("web10", "pgrep -x sleep").success()
    });
    running.signal("INT");
    running.wait_for("once more to leave now");
    running.signal("INT");
    running
        .wait()
        .ended(130)
        .says("hosts in flight undo what this run changed");
    eventually("web10 has undone the run", || {
        FLEET.sh("web10", "ls /srv").text().is_empty()
    });
    assert_eq!(ctl.journal("web10")[0]["state"], "rolled_back");
}

#[test]
fn ctrl_c_on_a_terminal_lets_the_host_in_hand_finish() {
    let ctl = Fleetctl::on(&FLEET, &["web11"]);
    let play = ctl.play(
        r#"
  tasks:
    - copy: {dest: /srv/begun, content: "1\n", mode: "0644"}
    - command: sleep 3
    - copy: {dest: /srv/ended, content: "2\n", mode: "0644"}
"#,
    );
    let mut running = ctl.start_apply_on_a_terminal(&play, &[]);
    running.answer("apply this plan? [y/N]", "y");
    running.until("the run sleeps", || {
        FLEET.sh("web11", "pgrep -x sleep").success()
    });
    // The terminal sends the signal to everything that runs on it, ssh included.
    running.press(b"\x03");
    running.wait_for("hosts in flight are finished");
    let said = running.wait();
    assert_eq!(
        FLEET.sh("web11", "ls /srv").text(),
        "begun\nended",
        "{said:?}"
    );
}

#[test]
fn a_host_that_fails_in_a_later_play_is_undone_from_the_first_one_on() {
    let ctl = Fleetctl::on(&FLEET, &["web12", "web13"]);
    let play = ctl.write(
        "plays.yml",
        r#"- hosts: web
  become: true
  gather_facts: false
  tasks:
    - copy: {dest: /srv/first, content: "1\n", mode: "0644"}
- hosts: web12
  become: true
  gather_facts: false
  tasks:
    - copy: {dest: /srv/second, content: "2\n", mode: "0644"}
    - assert: {that: 1 == 2}
- hosts: web
  become: true
  gather_facts: false
  tasks:
    - copy: {dest: /srv/third, content: "3\n", mode: "0644"}
"#,
    );
    ctl.apply(&play, &[])
        .ended(3)
        .says("web12 rolled back: 2 effects undone, all is as it was");
    assert_eq!(FLEET.sh("web12", "ls /srv").text(), "");
    assert_eq!(FLEET.sh("web13", "ls /srv").text(), "first\nthird");
}

#[test]
fn a_host_that_does_not_answer_stops_nobody_else() {
    let ctl = Fleetctl::on(&FLEET, &["web14", "nowhere"]);
    let inventory = std::fs::read_to_string(FLEET.inventory()).unwrap_or_default();
    let address = FLEET.address("web14");
    let nowhere = format!(
        "    nowhere:\n      ansible_host: {}.250\n    web14:",
        address.rsplit_once('.').map_or("", |(net, _)| net)
    );
    let inventory = ctl.write(
        "inventory.yml",
        &inventory.replacen("    web14:", &nowhere, 1),
    );
    let ctl = ctl.with_inventory(inventory);
    let play = ctl.play("  tasks:\n    - copy: {dest: /srv/there, content: x, mode: \"0644\"}\n");
    ctl.apply(&play, &["-T", "2"])
        .ended(4)
        .says("unreachable")
        .says("nowhere")
        .says("web14");
    assert_eq!(FLEET.read("web14", "/srv/there"), "x");
}
