//! A plan says what an apply would do, and does nothing.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use fleet_tests::{Fleet, Fleetctl, HostState};

static FLEET: LazyLock<Fleet> = LazyLock::new(|| Fleet::up(3));

fn flagship() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../playbooks/nginx-static.yml")
}

#[test]
fn the_flagships_plan_shows_diffs_and_touches_nothing() {
    let hosts = ["web1", "web2"];
    let ctl = Fleetctl::on(&FLEET, &hosts);
    let before = hosts.map(|host| HostState::untouched(&FLEET, host));

    let plan = ctl.plan(&flagship(), &[]);
    plan.ended(0);
    // Both hosts are alike, so they are shown once.
    plan.says("web[1-2] (2 hosts)");
    plan.says("/etc/nginx/nginx.conf");
    plan.says("-	worker_connections 768;")
        .says("+    worker_connections ");
    plan.says("net.core.somaxconn");
    plan.says("effects on 2 of 2 hosts");
    // What verifies the tuning runs commands, whose outcome nobody can know.
    plan.says("? The open files that a worker may have");
    plan.says("known after apply");

    ctl.plan(&flagship(), &["--detailed-exitcode"]).ended(2);

    for (host, before) in hosts.iter().zip(&before) {
        HostState::untouched(&FLEET, host).assert_same_as(before);
    }
}

#[test]
fn a_later_task_sees_what_an_earlier_one_would_do() {
    let ctl = Fleetctl::on(&FLEET, &["web3"]);
    ctl.write("note.j2", "made for {{ inventory_hostname }}\n");
    let play = ctl.play(
        r#"
  tasks:
    - name: a file
      copy: {dest: /srv/settings, content: "alpha\nbeta\n", mode: "0644"}
    - name: a line of it
      lineinfile: {path: /srv/settings, regexp: ^beta, line: gamma}
    - name: a directory
      file: {path: /srv/deep, state: directory, mode: "0750"}
    - name: a file in it
      template: {src: note.j2, dest: /srv/deep/note, mode: "0640"}
    - name: what is there now
      stat: {path: /srv/deep/note}
      register: note
    - name: it is there
      assert: {that: [note.stat.exists, note.stat.size == 14, note.stat.mode == '0640']}
    - name: a service of a package that is not there yet
      package: {name: fleetctl-demo-daemon, state: present}
      ignore_errors: true
"#,
    );
    let plan = ctl.plan(&play, &[]);
    plan.ended(0);
    plan.says("+alpha").says("-beta").says("+gamma");
    plan.says("+made for web3");
    plan.keeps_silent_about("it is there");
    assert_eq!(FLEET.sh("web3", "ls /srv").text(), "");

    // The plan told the truth.
    let applied = ctl.apply(&play, &[]);
    applied.ended(0);
    assert_eq!(FLEET.read("web3", "/srv/settings"), "alpha\ngamma\n");
    assert_eq!(FLEET.read("web3", "/srv/deep/note"), "made for web3\n");
    FLEET.sh("web3", "rm -r /srv/settings /srv/deep").ended(0);
}
