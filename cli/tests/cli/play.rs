//! `play` and `exec`, and the names of Ansible's programs: what they print and return.

use std::process::Command;

use assert_cmd::cargo::CommandCargoExt;

use crate::desk::Desk;

const TASKS: &str = "  tasks:
    - name: a message
      debug: {msg: hi}
    - name: a file
      copy: {dest: $DESK/motd, content: \"hello\\n\"}
      notify: told
    - name: some
      command: echo {{ item }}
      loop: [1, 2]
      changed_when: item == 2
    - name: not here
      ping:
      when: false
      tags: [b, a]
    - name: broken
      fail: {msg: oh no}
      ignore_errors: true
  handlers:
    - name: told
      ping:
";

#[test]
fn play_prints_what_ansible_playbook_prints() {
    let desk = Desk::local(TASKS);
    insta::assert_snapshot!(desk.run("play -i here.yml site.yml --diff"), @r#"

    PLAY [localhost] ***************************************************************

    TASK [a message] ***************************************************************
    ok: [localhost] => {
        "msg": "hi"
    }

    TASK [a file] ******************************************************************
    --- before
    +++ after: $DESK/motd
    @@ -0,0 +1 @@
    +hello

    changed: [localhost]

    TASK [some] ********************************************************************
    ok: [localhost] => (item=1)
    changed: [localhost] => (item=2)

    TASK [not here] ****************************************************************
    skipping: [localhost]

    TASK [broken] ******************************************************************
    [ERROR]: Task failed: Action failed: oh no
    Origin: $DESK/site.yml:18:7

    16       when: false
    17       tags: [b, a]
    18     - name: broken
             ^ column 7

    fatal: [localhost]: FAILED! => {"changed": false, "msg": "oh no"}
    ...ignoring

    RUNNING HANDLER [told] *********************************************************
    ok: [localhost]

    PLAY RECAP *********************************************************************
    localhost                  : ok=5    changed=2    unreachable=0    failed=0    skipped=1    rescued=0    ignored=1

    --- exit 0
    "#);
}

#[test]
fn a_play_that_only_looks_changes_nothing() {
    let desk = Desk::local(TASKS);
    let said = desk.run("play -i here.yml site.yml --check");
    assert!(said.contains("TASK [a file]"), "{said}");
    assert!(said.contains("changed: [localhost]\n"), "{said}");
    assert!(!desk.path().join("motd").exists());
}

#[test]
fn failures_have_ansibles_codes() {
    let desk = Desk::local("  tasks:\n    - fail:\n");
    let code = |line: &str| desk.output(line).status.code().unwrap();
    assert_eq!(code("play -i here.yml site.yml"), 2, "a host failed");
    assert_eq!(code("play -i here.yml nope.yml"), 1, "no such playbook");
    assert_eq!(
        code("play -i here.yml site.yml -l nope"),
        1,
        "nobody is left"
    );
    assert_eq!(code("play -i here.yml site.yml --nope"), 2, "no such flag");
    desk.file("bad.yml", "- hosts: all\n  taskz: []\n");
    assert_eq!(code("play -i here.yml bad.yml"), 4, "no playbook");
}

#[test]
fn lists_are_ansibles() {
    let desk = Desk::local(TASKS);
    insta::assert_snapshot!(desk.run("play -i here.yml site.yml --list-hosts --list-tasks --list-tags"), @"

    playbook: site.yml

      play #1 (localhost): localhost	TAGS: []
        pattern: ['localhost']
        hosts (1):
          localhost
        tasks:
          a message	TAGS: []
          a file	TAGS: []
          some	TAGS: []
          not here	TAGS: [a, b]
          broken	TAGS: []
          TASK TAGS: [a, b]
    --- exit 0
    ");
    insta::assert_snapshot!(desk.run("play -i here.yml site.yml --syntax"), @"

    playbook: site.yml
    --- exit 0
    ");
}

#[test]
fn exec_runs_one_module() {
    let desk = Desk::local("");
    let exec = |line: &str| desk.run(&format!("exec -i here.yml {line}"));
    insta::assert_snapshot!(exec("localhost -c local -m ping"), @r#"
    localhost | SUCCESS => {
        "changed": false,
        "ping": "pong"
    }
    --- exit 0
    "#);
    insta::assert_snapshot!(exec("localhost -c local -a 'echo {{ inventory_hostname }}'"), @"
    localhost | CHANGED | rc=0 >>
    localhost
    --- exit 0
    ");
    insta::assert_snapshot!(exec("localhost -c local -o -a 'echo hi'"), @"
    localhost | CHANGED | rc=0 | (stdout) hi
    --- exit 0
    ");
    insta::assert_snapshot!(exec("localhost -c local -m fail -a 'msg=no'"), @r#"
    [ERROR]: Task failed: Action failed: no
    Origin: <adhoc 'fail' task>

    {'action': 'fail', 'args': {'msg': 'no'}, 'timeout': 0, 'async_val': 0, 'poll': 15}

    localhost | FAILED! => {
        "changed": false,
        "msg": "no"
    }
    --- exit 2
    "#);
    insta::assert_snapshot!(exec(", --list-hosts"), @"
      hosts (1):
        localhost
    --- exit 0
    ");
    insta::assert_snapshot!(exec("localhost"), @"
    --- stderr
    [ERROR]: No argument passed to command module
    --- exit 5
    ");
}

#[test]
fn called_by_the_name_of_an_ansible_program_it_is_that_program() {
    let desk = Desk::local(TASKS);
    let own = Command::cargo_bin("fleetctl").unwrap();
    let link = |name: &str| {
        let path = desk.path().join(name);
        std::os::unix::fs::symlink(own.get_program(), &path).unwrap();
        move |line: &[&str]| {
            let said = Command::new(&path).args(line).output().unwrap();
            (
                String::from_utf8(said.stdout).unwrap(),
                said.status.code().unwrap(),
            )
        }
    };
    let playbook = link("ansible-playbook");
    assert!(
        playbook(&["--version"])
            .0
            .starts_with("ansible-playbook [core 2.")
    );
    assert_eq!(playbook(&["--no-such-flag"]).1, 2);
    let site = desk.path().join("site.yml").display().to_string();
    let (listed, code) = playbook(&["-i", "localhost,", &site, "--list-hosts"]);
    assert!(
        listed.contains("    hosts (1):\n      localhost\n"),
        "{listed}"
    );
    assert_eq!(code, 0);
    let (hosts, _) = link("ansible")(&["-i", "a,b,", "all", "--list-hosts"]);
    assert_eq!(hosts, "  hosts (2):\n    a\n    b\n");
    let (inventory, _) = link("ansible-inventory")(&["-i", "a,b,", "--graph"]);
    assert!(inventory.starts_with("@all:\n"), "{inventory}");
    assert!(
        link("ansible-vault")(&["--help"])
            .0
            .contains("encrypt_string")
    );
}

#[test]
fn a_refreshed_inventory_is_read_once_for_all_and_keeps_what_tasks_have_added() {
    let desk = Desk::new();
    desk.file("hosts", "[web]\nw[1:3] ansible_connection=local\n");
    desk.file(
        "later",
        "[web]\nw[1:2] ansible_connection=local\n[db]\nd1 ansible_connection=local\n",
    );
    desk.file(
        "site.yml",
        "- hosts: web
  gather_facts: false
  tasks:
    - group_by: {key: \"by_{{ inventory_hostname }}\"}
    - add_host: {name: added, ansible_connection: local, groups: dyn}
    - debug: {msg: \"{{ lookup('pipe', 'cp later hosts; echo read') }}\"}
      run_once: true
    - meta: refresh_inventory
      when: false
    - debug: {var: groups}
      run_once: true
- hosts: db:dyn
  gather_facts: false
  tasks:
    - debug: {msg: new}
",
    );
    insta::assert_snapshot!(desk.run("play -i hosts site.yml"), @r#"

    PLAY [web] *********************************************************************

    TASK [group_by] ****************************************************************
    changed: [w1]
    changed: [w2]
    changed: [w3]

    TASK [add_host] ****************************************************************
    changed: [w1]

    TASK [debug] *******************************************************************
    ok: [w1] => {
        "msg": "read"
    }

    TASK [meta] ********************************************************************

    TASK [debug] *******************************************************************
    ok: [w1] => {
        "groups": {
            "all": [
                "added",
                "w1",
                "w2",
                "d1"
            ],
            "by_w1": [
                "w1"
            ],
            "by_w2": [
                "w2"
            ],
            "db": [
                "d1"
            ],
            "dyn": [
                "added"
            ],
            "ungrouped": [],
            "web": [
                "w1",
                "w2"
            ]
        }
    }

    PLAY [db:dyn] ******************************************************************

    TASK [debug] *******************************************************************
    ok: [d1] => {
        "msg": "new"
    }
    ok: [added] => {
        "msg": "new"
    }

    PLAY RECAP *********************************************************************
    added                      : ok=1    changed=0    unreachable=0    failed=0    skipped=0    rescued=0    ignored=0
    d1                         : ok=1    changed=0    unreachable=0    failed=0    skipped=0    rescued=0    ignored=0
    w1                         : ok=4    changed=2    unreachable=0    failed=0    skipped=0    rescued=0    ignored=0
    w2                         : ok=1    changed=1    unreachable=0    failed=0    skipped=0    rescued=0    ignored=0
    w3                         : ok=1    changed=1    unreachable=0    failed=0    skipped=0    rescued=0    ignored=0

    --- stderr
    [WARNING]: refresh_inventory task does not support when conditional
    --- exit 0
    "#);
}
