//! What a task's keywords do, in a plan and in an apply.

use std::process::Command;
use std::sync::LazyLock;

use fleet_tests::{Fleet, Fleetctl, Output};

static FLEET: LazyLock<Fleet> = LazyLock::new(|| Fleet::up(6));

/// What a task came to, by its name: `changed`, `ok`, `skipped`, `failed`, `unknown`.
fn status(ctl: &Fleetctl, said: &Output, task: &str) -> String {
    said.ended(said.code);
    let folders = std::fs::read_dir(ctl.home().join("state/fleetctl/runs"));
    let mut runs: Vec<_> = folders
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    runs.sort();
    let events = runs
        .last()
        .and_then(|run| std::fs::read_to_string(run.join("events.jsonl")).ok());
    let events = events.unwrap_or_default();
    let ended = events
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let ended =
        ended.filter(|event| event["event"] == "task_ended" && event["task"]["name"] == task);
    let statuses: Vec<String> = ended
        .map(|event| event["status"].as_str().unwrap_or("?").to_owned())
        .collect();
    statuses.join(" ")
}

const CONDITIONS: &str = r#"
  vars:
    greeting: hello
  tasks:
    - name: asks
      command: cat /etc/hostname
      register: asked
    - name: depends
      copy: {dest: /srv/depends, content: "{{ asked.stdout }}\n", mode: "0644"}
    - name: depends by its condition
      copy: {dest: /srv/condition, content: "x\n", mode: "0644"}
      when: asked.stdout == inventory_hostname
    - name: runs in a plan too
      command: cat /etc/hostname
      register: known
      check_mode: false
      changed_when: false
    - name: follows what is known
      copy: {dest: /srv/known, content: "{{ known.stdout }} says {{ greeting }}\n", mode: "0644"}
      when: known.stdout == inventory_hostname
    - name: does not follow
      copy: {dest: /srv/never, content: "x\n", mode: "0644"}
      when: known.stdout != inventory_hostname
    - name: made already
      command: touch /srv/condition
      args: {creates: /etc/hostname}
"#;

#[test]
fn what_a_plan_cannot_know_is_called_unknown() {
    let ctl = Fleetctl::on(&FLEET, &["web1"]);
    let play = ctl.play(CONDITIONS);
    let plan = ctl.plan(&play, &[]);
    for (task, as_it_should_be) in [
        ("asks", "unknown"),
        ("depends", "unknown"),
        ("depends by its condition", "unknown"),
        ("runs in a plan too", "ok"),
        ("follows what is known", "changed"),
        ("does not follow", "skipped"),
        ("made already", "ok"),
    ] {
        assert_eq!(status(&ctl, &plan, task), as_it_should_be, "{task}");
    }
    plan.ended(0)
        .says("? asks")
        .says("known after apply")
        .says("+web1 says hello");
    assert_eq!(FLEET.sh("web1", "ls /srv").text(), "");

    let applied = ctl.apply(&play, &[]);
    applied.ended(0);
    for (task, as_it_should_be) in [
        ("asks", "changed"),
        ("depends", "changed"),
        ("depends by its condition", "changed"),
        ("runs in a plan too", "ok"),
        ("follows what is known", "changed"),
        ("does not follow", "skipped"),
        ("made already", "ok"),
    ] {
        assert_eq!(status(&ctl, &applied, task), as_it_should_be, "{task}");
    }
    assert_eq!(
        FLEET.sh("web1", "cd /srv && grep . *").text(),
        "condition:x\ndepends:web1\nknown:web1 says hello"
    );
}

#[test]
fn a_plan_that_was_shown_allows_what_it_could_not_know() {
    let ctl = Fleetctl::on(&FLEET, &["web2"]);
    ctl.apply_on_a_terminal(&ctl.play(CONDITIONS), "y").ended(0);
    assert_eq!(
        FLEET.sh("web2", "cd /srv && grep . *").text(),
        "condition:x\ndepends:web2\nknown:web2 says hello"
    );
}

#[test]
fn results_are_judged_as_the_playbook_says() {
    let ctl = Fleetctl::on(&FLEET, &["web3"]);
    let play = ctl.play(
        r#"
  environment:
    ALL: of the play
  tasks:
    - name: a change by its output
      command: echo changed
      register: out
      changed_when: "'changed' in out.stdout"
    - name: no change by its output
      command: echo the same
      register: out
      changed_when: "'changed' in out.stdout"
    - name: a failure that is none
      command: sh -c 'exit 3'
      register: three
      failed_when: three.rc not in [0, 3]
    - name: a failure that is let pass
      command: sh -c 'echo sorry >&2; exit 4'
      register: four
      ignore_errors: true
    - name: a loop
      copy: {dest: "/srv/{{ item.name }}", content: "{{ item.text }} {{ index }}\n", mode: "0644"}
      loop: [{name: one, text: first}, {name: two, text: second}]
      loop_control: {index_var: index, label: "{{ item.name }}"}
      register: both
    - name: a condition for each item
      command: touch /srv/{{ item }}
      loop: [three, four]
      when: item != 'four'
      register: some
    - name: the environment
      shell: echo "$ALL, $OWN"
      environment: {OWN: of the task}
      register: environment_seen
    - name: all of it
      assert:
        that:
          - three.rc == 3 and three is not failed
          - four is failed and four.stderr == 'sorry'
          - both is changed and both.results | length == 2
          - some.results[0] is changed and some.results[1] is skipped
          - environment_seen.stdout == 'of the play, of the task'
    - name: tagged
      copy: {dest: /srv/tagged, content: "x\n", mode: "0644"}
      tags: [extra, never]
"#,
    );
    let applied = ctl.apply(&play, &[]);
    applied.ended(0).says("ignored=1");
    for (task, as_it_should_be) in [
        ("a change by its output", "changed"),
        ("no change by its output", "ok"),
        ("a failure that is none", "changed"),
        ("a failure that is let pass", "failed"),
        ("a loop", "changed changed"),
        ("a condition for each item", "changed skipped"),
        ("all of it", "ok"),
        ("tagged", ""),
    ] {
        assert_eq!(status(&ctl, &applied, task), as_it_should_be, "{task}");
    }
    assert_eq!(
        FLEET.sh("web3", "cd /srv && ls && cat one two").text(),
        "one\nthree\ntwo\nfirst 0\nsecond 1"
    );

    let tagged = ctl.apply(&play, &["--tags", "extra"]);
    tagged.ended(0);
    assert_eq!(status(&ctl, &tagged, "tagged"), "changed");
    assert_eq!(status(&ctl, &tagged, "a loop"), "");
}

#[test]
fn what_must_not_be_shown_is_nowhere() {
    let ctl = Fleetctl::on(&FLEET, &["web4"]);
    FLEET.write("web4", "/srv/config", "password = tapioca-before\n");
    let play = ctl.play(
        r#"
  no_log: true
  vars:
    password: "tapioca-{{ 'now' }}"
  tasks:
    - copy: {dest: /srv/config, content: "password = {{ password }}\n", mode: "0600"}
    - lineinfile: {path: /srv/other, line: "password = {{ password }}", create: true, mode: "0600"}
    - command: echo {{ password }}
      register: said
    - copy: {dest: /srv/looped, content: "{{ said.stdout }} {{ item }}", mode: "0600"}
      loop: ["{{ password }}"]
    - debug: {msg: "{{ password }}"}
    - shell: echo {{ password }} >&2; exit 1
      ignore_errors: true
    - debug: {msg: "{{ no_such_variable }} {{ password }}"}
      ignore_errors: true
    - assert: {that: ["password == 'other'"], fail_msg: "it is {{ password }}"}
"#,
    );
    let mut said = vec![ctl.plan(&play, &["-vv"]), ctl.plan(&play, &["--json"])];
    said.extend(
        [
            &["-vv", "--diff"][..],
            &["--json"],
            &["--diff", "--on-failure", "keep"],
        ]
        .map(|flags| ctl.apply(&play, flags)),
    );
    for said in said {
        said.ended(3).keeps_silent_about("tapioca");
    }
    assert_eq!(
        FLEET.read("web4", "/srv/config"),
        "password = tapioca-now\n"
    );

    // The playbook itself has half of the secret; the runs have nothing of it.
    let grep = Command::new("grep")
        .args(["-rl", "tapioca"])
        .arg(ctl.home().join("state"))
        .output();
    assert_eq!(
        String::from_utf8_lossy(&grep.map(|grep| grep.stdout).unwrap_or_default()),
        ""
    );
    // On the host a backup holds the old content, readable by root alone: without it there would be no undo.
    let kept = FLEET.sh(
        "web4",
        "grep -rl tapioca /var/lib/fleetctl /var/log; journalctl --no-pager | grep tapioca",
    );
    let unexpected: Vec<_> = kept
        .stdout
        .lines()
        .filter(|line| !line.contains("/backup/"))
        .collect();
    assert_eq!(unexpected, Vec::<&str>::new());
    assert_eq!(
        FLEET.sh("web4", "stat -c '%U %a' /var/lib/fleetctl").text(),
        "root 700"
    );
}

/// A package with a service, in a repository on the host itself.
const PACKAGE: &str = r#"set -e
mkdir -p /tmp/demo/etc /tmp/demo/DEBIAN /tmp/demo/lib/systemd/system /srv/repo
printf 'Package: demo-daemon\nVersion: 1.0\nArchitecture: all\nMaintainer: nobody <nobody@localhost>\nDescription: does nothing\n' > /tmp/demo/DEBIAN/control
echo one=1 > /tmp/demo/etc/demo-daemon.ini; echo theirs > /tmp/demo/etc/demo-daemon.rc
printf '[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n' > /tmp/demo/lib/systemd/system/demo-daemon.service
dpkg-deb --build --root-owner-group /tmp/demo /srv/repo/demo-daemon.deb >/dev/null
cd /srv/repo
{ cat /tmp/demo/DEBIAN/control; printf 'Filename: ./demo-daemon.deb\nSize: %s\nSHA256: %s\n' $(stat -c %s demo-daemon.deb) $(sha256sum demo-daemon.deb | cut -d' ' -f1); } > Packages
rm -f /etc/apt/sources.list.d/* /etc/apt/sources.list
echo 'deb [trusted=yes] file:/srv/repo ./' > /etc/apt/sources.list
apt-get -qq update 2>&1"#;

#[test]
fn a_service_of_a_package_that_is_not_there_yet_can_be_planned() {
    let ctl = Fleetctl::on(&FLEET, &["web5"]);
    FLEET.sh("web5", PACKAGE).ended(0);
    let play = ctl.play(
        r#"
  tasks:
    - name: the package
      package: {name: demo-daemon, state: present}
    - name: its service
      service: {name: demo-daemon, state: started, enabled: true}
    - name: its settings
      copy: {dest: /etc/demo-daemon.conf, content: "x\n", mode: "0644"}
      notify: restart it
    - name: a file that comes with it
      copy: {dest: /etc/demo-daemon.rc, content: "ours\n", mode: "0644"}
    - name: a line of a file that comes with it
      lineinfile: {path: /etc/demo-daemon.ini, regexp: ^one=, line: one=2}
      notify: restart it
  handlers:
    - name: restart it
      service: {name: demo-daemon, state: restarted}
"#,
    );
    let plan = ctl.plan(&play, &[]);
    plan.ended(0)
        .says("package demo-daemon")
        .says("absent → 1.0")
        .says("start demo-daemon.service")
        .says("assumed: checked again at apply");
    assert!(!FLEET.sh("web5", "dpkg -s demo-daemon").success());

    // What was shown can be applied, though it could not all be seen before.
    ctl.apply_on_a_terminal(&play, "y").ended(0);
    assert_eq!(FLEET.read("web5", "/etc/demo-daemon.ini"), "one=2\n");
    assert_eq!(FLEET.read("web5", "/etc/demo-daemon.rc"), "ours\n");
    assert_eq!(
        FLEET
            .sh(
                "web5",
                "systemctl is-active demo-daemon && systemctl is-enabled demo-daemon"
            )
            .text(),
        "active\nenabled"
    );
    ctl.apply(&play, &[]).ended(0).says("changed=0 effects=0");

    ctl.run(["rollback", "last"]).ended(0);
}

#[test]
fn a_service_of_a_package_goes_with_it() {
    let ctl = Fleetctl::on(&FLEET, &["web6"]);
    FLEET.sh("web6", PACKAGE).ended(0);
    let play = ctl.play(
        r#"
  tasks:
    - package: {name: demo-daemon, state: present}
    - service: {name: demo-daemon, state: started, enabled: true}
    - command: "false"
"#,
    );
    ctl.apply(&play, &[]).ended(3).says("web6 rolled back");
    assert!(
        !FLEET
            .sh(
                "web6",
                "dpkg -s demo-daemon 2>/dev/null | grep -q '^Status: install ok'"
            )
            .success()
    );
    assert!(
        !FLEET
            .sh("web6", "systemctl is-active demo-daemon")
            .success()
    );
    assert_eq!(
        FLEET.sh("web6", "systemctl is-system-running").text(),
        "running"
    );
}
