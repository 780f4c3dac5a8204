//! A run that boots its host, and goes on.

use std::sync::LazyLock;

use fleet_tests::{Fleet, Fleetctl};

static FLEET: LazyLock<Fleet> = LazyLock::new(|| Fleet::up(2));

#[test]
fn a_run_goes_on_behind_a_boot_and_a_failure_undoes_what_was_before_it_too() {
    let ctl = Fleetctl::on(&FLEET, &["web1"]);
    let play = ctl.play(
        r#"
  tasks:
    - copy: {dest: /srv/before, content: "1\n"}
    - command: cat /proc/sys/kernel/random/boot_id
      register: before
      changed_when: false
    - reboot: {reboot_timeout: 60}
      register: boot
    - command: cat /proc/sys/kernel/random/boot_id
      register: after
      changed_when: false
    - assert: {that: [before.stdout != after.stdout, boot is changed, boot.rebooted, boot.elapsed < 60]}
    - wait_for_connection: {timeout: 30}
    - copy: {dest: /srv/after, content: "2\n"}
    - command: /bin/false
      when: fails | default(false)
"#,
    );
    ctl.plan(&play, &[]).ended(0).says("shutdown -r now");
    ctl.apply(&play, &["-e", "fails=true"])
        .ended(3)
        .says("rolled_back");
    for path in ["srv/before", "srv/after"] {
        assert!(!FLEET.root("web1").join(path).exists(), "{path} is undone");
    }
    ctl.apply(&play, &[]).ended(0);
    assert_eq!(FLEET.read("web1", "/srv/before"), "1\n");
    assert_eq!(FLEET.read("web1", "/srv/after"), "2\n");
    ctl.run(["rollback", "last"]).ended(0);
    for path in ["srv/before", "srv/after"] {
        assert!(!FLEET.root("web1").join(path).exists(), "{path} is undone");
    }
}

#[test]
fn a_saved_plan_goes_on_behind_a_boot_and_another_connection_as_one_change() {
    let ctl = Fleetctl::on(&FLEET, &["web2"]);
    let play = ctl.play(
        r#"
  tasks:
    - copy: {dest: /srv/before, content: "1\n"}
    - meta: reset_connection
    - copy: {dest: /srv/between, content: "2\n"}
    - reboot: {reboot_timeout: 60}
    - copy: {dest: /srv/after, content: "3\n"}
    - command: /bin/false
      when: fails | default(false)
"#,
    );
    let files = ["before", "between", "after"];
    let exists = |file: &str| FLEET.root("web2").join("srv").join(file).exists();
    for (name, fails) in [("fails.plan", true), ("goes.plan", false)] {
        let path = ctl.home().join(name).display().to_string();
        let fails = format!("fails={fails}");
        ctl.plan(&play, &["--out", &path, "-e", &fails]).ended(0);
        let applied = ctl.run(["apply", &path]);
        if name == "fails.plan" {
            applied.ended(3).says("rolled_back");
            assert!(!files.iter().any(|file| exists(file)));
        } else {
            applied.ended(0);
            assert!(files.iter().all(|file| exists(file)));
        }
    }
    ctl.run(["rollback", "last"]).ended(0);
    assert!(!files.iter().any(|file| exists(file)));
}
