//! Saved plans and the transaction on a host: applied once, exactly, gone on with after a cut, and undone by the host itself
//! where nobody confirms.

use std::sync::LazyLock;

use fleet_tests::{Fleet, Fleetctl, eventually};

static FLEET: LazyLock<Fleet> = LazyLock::new(|| Fleet::up(8));

const STEPS: &str = r#"
  tasks:
    - copy: {dest: /srv/one, content: "1\n"}
    - shell: echo one >> /srv/order
    - copy: {dest: /srv/two, content: "2\n"}
    - shell: sleep 3; echo two >> /srv/order
    - copy: {dest: /srv/three, content: "3\n"}
    - shell: echo three >> /srv/order
    - copy: {dest: /srv/four, content: "4\n"}
"#;

/// Saves the plan of a play, and says where.
fn saved(ctl: &Fleetctl, play: &std::path::Path, name: &str) -> String {
    let path = ctl.home().join(name).display().to_string();
    ctl.plan(play, &["--out", &path]).ended(0);
    path
}

fn exists(host: &str, path: &str) -> bool {
    FLEET.root(host).join(path).exists()
}

#[test]
fn a_plan_has_one_hash_is_shown_from_its_file_and_is_applied_once() {
    let ctl = Fleetctl::on(&FLEET, &["web1"]);
    let play = ctl.play(
        r#"
  tasks:
    - copy: {dest: /srv/file, content: "planned\n", mode: "0640"}
"#,
    );
    let (first, second) = (saved(&ctl, &play, "a.plan"), saved(&ctl, &play, "b.plan"));
    let hash = |path: &str| {
        let text = std::fs::read_to_string(path).unwrap();
        let header: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        header["hash"].as_str().unwrap().to_owned()
    };
    assert_eq!(hash(&first), hash(&second));
    std::fs::remove_file(&play).unwrap();
    ctl.run(["show", &first]).ended(0).says("create /srv/file");
    ctl.run(["apply", &first, "--expect", "fp1:another"])
        .ended(5)
        .says("was expected");
    let units = || {
        FLEET
            .sh("web1", "find /etc/systemd | sort")
            .text()
            .to_owned()
    };
    let before = units();
    ctl.run(["apply", &first, "--expect", &hash(&first)])
        .ended(0)
        .says("changed=1");
    assert_eq!(
        units(),
        before,
        "the timer that looked after the run is gone"
    );
    assert_eq!(FLEET.read("web1", "/srv/file"), "planned\n");
    ctl.run(["apply", &second])
        .ended(5)
        .says("a plan is applied once");
}

#[test]
fn a_plan_that_was_altered_cut_off_or_is_too_old_is_refused_before_any_connection() {
    let ctl = Fleetctl::on(&FLEET, &["web2"]);
    let play = ctl.play("\n  tasks:\n    - copy: {dest: /srv/file, content: \"x\\n\"}\n");
    let path = saved(&ctl, &play, "a.plan");
    let whole = std::fs::read(&path).unwrap();
    FLEET.cut("web2");
    for cut in [10, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&path, &whole[..cut]).unwrap();
        ctl.run(["apply", &path]).ended(5);
    }
    for at in (0..whole.len()).step_by(whole.len() / 40) {
        let mut altered = whole.clone();
        altered[at] ^= 1;
        std::fs::write(&path, &altered).unwrap();
        ctl.run(["apply", &path]).ended(5);
    }
    std::fs::write(&path, &whole).unwrap();
    std::thread::sleep(std::time::Duration::from_secs(2));
    ctl.run(["apply", &path, "--max-age", "1s"])
        .ended(5)
        .says("`--max-age` allows 1 s: plan again");
    FLEET.mend("web2");
    ctl.run(["apply", &path]).ended(0);
}

#[test]
fn what_was_edited_by_hand_since_the_plan_makes_the_host_stale() {
    let ctl = Fleetctl::on(&FLEET, &["web3"]);
    FLEET.write("web3", "/srv/edited", "old\n");
    let play = ctl.play(
        r#"
  tasks:
    - copy: {dest: /srv/first, content: "1\n"}
    - copy: {dest: /srv/edited, content: "new\n"}
"#,
    );
    let path = saved(&ctl, &play, "a.plan");
    FLEET.write("web3", "/srv/edited", "by hand\n");
    ctl.run(["apply", &path]).ended(5).says("stale");
    assert_eq!(FLEET.read("web3", "/srv/edited"), "by hand\n");
    assert!(!exists("web3", "srv/first"), "what was written is undone");
}

#[test]
fn a_fact_that_was_used_and_has_changed_makes_the_host_stale() {
    let ctl = Fleetctl::on(&FLEET, &["web4"]);
    FLEET
        .sh("web4", "mkdir -p /etc/ansible/facts.d && echo '{\"cores\": 2}' > /etc/ansible/facts.d/own.fact")
        .ended(0);
    let play = ctl.write(
        "facts.yml",
        "- hosts: web\n  become: true\n  tasks:\n    - copy: {dest: /srv/cores, content: \"{{ ansible_local.own.cores }}\\n\"}\n",
    );
    let path = saved(&ctl, &play, "a.plan");
    FLEET.write("web4", "/etc/ansible/facts.d/own.fact", "{\"cores\": 4}");
    ctl.run(["apply", &path])
        .ended(5)
        .says("`ansible_local` was")
        .says("when the plan was made");
    assert!(!exists("web4", "srv/cores"));
    FLEET.write("web4", "/etc/ansible/facts.d/own.fact", "{\"cores\": 2}");
    // Another machine under the same name.
    FLEET
        .sh(
            "web4",
            "echo 00000000000000000000000000000001 > /etc/machine-id",
        )
        .ended(0);
    ctl.run(["apply", &path])
        .ended(5)
        .says("another machine than the plan was made for");
    assert!(!exists("web4", "srv/cores"));
}

#[test]
fn a_run_that_was_killed_goes_on_where_it_was_and_does_nothing_twice() {
    let ctl = Fleetctl::on(&FLEET, &["web5"]);
    let play = ctl.play(STEPS);
    let path = saved(&ctl, &play, "a.plan");
    let mut running = ctl.start(["apply", &path]);
    running.until("the host sleeps in its fourth step", || {
        FLEET.sh("web5", "pgrep -x sleep").success()
    });
    running.signal("KILL");
    // The host does what it was sent, and holds the run open.
    eventually("the host has done what it was sent", || {
        FLEET.read("web5", "/srv/order").starts_with("one\ntwo\n")
    });
    std::fs::remove_file(&play).unwrap();
    ctl.run(["resume", "last"]).ended(0);
    assert_eq!(FLEET.read("web5", "/srv/order"), "one\ntwo\nthree\n");
    assert_eq!(FLEET.read("web5", "/srv/four"), "4\n");
    ctl.run(["rollback", "last"]).ended(0);
    for file in ["one", "two", "three", "four"] {
        assert!(!exists("web5", &format!("srv/{file}")), "{file} is undone");
    }
}

#[test]
fn a_run_that_nobody_goes_on_with_is_undone_by_its_host() {
    let ctl = Fleetctl::on(&FLEET, &["web6"]);
    let path = saved(&ctl, &ctl.play(STEPS), "a.plan");
    let mut running = ctl.start(["apply", &path, "--confirm-timeout", "8s"]);
    running.until("the second file is there", || exists("web6", "srv/two"));
    FLEET.cut("web6");
    running.signal("KILL");
    eventually("the host undoes it by itself", || {
        !exists("web6", "srv/one")
    });
    eventually("and takes its timer away", || {
        !FLEET
            .sh_inside("web6", "ls /etc/systemd/system")
            .text()
            .contains("fleetctl-undo")
    });
    FLEET.mend("web6");
    ctl.run(["resume", "last"])
        .ended(5)
        .says("was applied here by run")
        .says("rolled_back");
}

#[test]
fn a_port_that_locks_the_controller_out_is_taken_back_by_the_host() {
    let ctl = Fleetctl::on(&FLEET, &["web7"]);
    let play = ctl.play(
        r#"
  tasks:
    - copy: {dest: /etc/ssh/sshd_config.d/port.conf, content: "Port 2222\n"}
      notify: restart sshd
  handlers:
    - name: restart sshd
      service: {name: sshd, state: restarted}
"#,
    );
    ctl.apply(&play, &["--confirm-timeout", "6s"])
        .ended(3)
        .says("rolled_back")
        .says("by the host itself, for nobody confirmed the run within 6 s");
    assert!(!exists("web7", "etc/ssh/sshd_config.d/port.conf"));
    FLEET.sh("web7", "true").ended(0);
}

#[test]
fn a_power_cut_before_the_confirmation_is_undone_by_the_next_boot() {
    let ctl = Fleetctl::on(&FLEET, &["web8"]);
    let path = saved(&ctl, &ctl.play(STEPS), "a.plan");
    ctl.run([
        "apply",
        &path,
        "--confirm",
        "manual",
        "--confirm-timeout",
        "600s",
    ])
    .ended(0)
    .says("fleetctl confirm");
    assert_eq!(FLEET.read("web8", "/srv/four"), "4\n");
    FLEET.power_off("web8");
    FLEET.power_on("web8");
    eventually("the boot undoes it", || !exists("web8", "srv/one"));
    ctl.run(["confirm", "last"])
        .ended(3)
        .says("for the host was booted before the run was confirmed");

    let path = saved(&ctl, &ctl.play(STEPS), "b.plan");
    ctl.run([
        "apply",
        &path,
        "--confirm",
        "manual",
        "--confirm-timeout",
        "600s",
    ])
    .ended(0);
    ctl.run(["confirm", "last"]).ended(0).says("confirmed");
    FLEET.power_off("web8");
    FLEET.power_on("web8");
    std::thread::sleep(std::time::Duration::from_secs(8));
    assert_eq!(FLEET.read("web8", "/srv/four"), "4\n");
}
