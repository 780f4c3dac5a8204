//! Plan and apply on this machine, in a directory of its own.

use crate::desk::Desk;

const TASKS: &str = "  vars: {port: 8080}
  tasks:
    - name: a directory
      file: {path: $DESK/conf, state: directory, mode: '0750'}
    - name: a file
      copy: {dest: $DESK/conf/motd, content: \"hello\\n\", mode: '0644'}
    - name: a line
      lineinfile: {path: $DESK/conf/list, line: world, create: true}
    - name: a template
      template: {src: site.j2, dest: $DESK/conf/site}
      notify: tell
    - name: a command
      command: {cmd: touch $DESK/conf/touched, creates: $DESK/conf/touched}
  handlers:
    - name: tell
      command: {cmd: touch $DESK/conf/told, creates: $DESK/conf/told}
";

fn desk() -> Desk {
    let desk = Desk::local(TASKS);
    desk.file("templates/site.j2", "listen {{ port }};\n");
    desk
}

#[test]
fn a_plan_shows_all_and_changes_nothing() {
    let desk = desk();
    insta::assert_snapshot!(desk.run("plan -i here.yml site.yml"), @"
    localhost
      ~ a directory  site.yml:6
          create directory $DESK/conf
            mode 0750, owner root, group root
      ~ a file  site.yml:8
          create $DESK/conf/motd
            mode 0644, owner root, group root
            @@ -0,0 +1 @@
            +hello
      ~ a line  site.yml:10
          create $DESK/conf/list
            mode 0644, owner root, group root
            @@ -0,0 +1 @@
            +world
      ~ a template  site.yml:12
          create $DESK/conf/site
            mode 0644, owner root, group root
            @@ -0,0 +1 @@
            +listen 8080;
      ? a command  site.yml:15
          known after apply
          command touch $DESK/conf/touched  cannot be undone
            what it does is known after apply
      ? tell  site.yml:18
          known after apply
          command touch $DESK/conf/told  cannot be undone
            what it does is known after apply

    plan: 6 effects on 1 of 1 host, 2 known after apply, 2 cannot be undone
    --- exit 0
    ");
    assert!(!desk.path().join("conf").exists());
}

#[test]
fn an_apply_makes_it_true_and_a_second_one_finds_nothing_to_do() {
    let desk = desk();
    insta::assert_snapshot!(desk.run("apply --yes -i here.yml site.yml"), @"
    localhost on localhost (1 host)
      changed  localhost a directory  site.yml:6
          create directory $DESK/conf
      changed  localhost a file  site.yml:8
          create $DESK/conf/motd
      changed  localhost a line  site.yml:10
          create $DESK/conf/list
      changed  localhost a template  site.yml:12
          create $DESK/conf/site
      changed  localhost a command  site.yml:15
          command touch $DESK/conf/touched
      changed  localhost tell  site.yml:18
          command touch $DESK/conf/told
    recap
      localhost  changed      ok=6 changed=6 effects=6
    run RUN
    --- exit 0
    ");
    assert_eq!(desk.read("conf/list"), "world\n");
    assert_eq!(desk.read("conf/site"), "listen 8080;\n");
    assert!(desk.path().join("conf/told").exists());
    insta::assert_snapshot!(desk.run("apply --yes -i here.yml site.yml"), @"
    localhost on localhost (1 host)
    recap
      localhost  unchanged    ok=5 changed=0 effects=0
    run RUN
    --- exit 0
    ");
    insta::assert_snapshot!(desk.run("plan -i here.yml site.yml"), @"
    localhost: nothing to change (5 tasks in place)
    plan: 0 effects on 0 of 1 host
    --- exit 0
    ");
}

#[test]
fn a_changed_line_is_shown_as_a_diff() {
    let desk = desk();
    desk.output("apply --yes -i here.yml site.yml");
    desk.file(
        "templates/site.j2",
        "listen {{ port + 1 }};\nserver_name x;\n",
    );
    insta::assert_snapshot!(desk.run("plan -i here.yml site.yml"), @"
    localhost
      ~ a template  site.yml:12
          file $DESK/conf/site
            @@ -1 +1,2 @@
            -listen 8080;
            +listen 8081;
            +server_name x;

    plan: 1 effect on 1 of 1 host
    --- exit 0
    ");
    insta::assert_snapshot!(desk.run("apply --yes --diff -i here.yml site.yml"), @"
    localhost on localhost (1 host)
      changed  localhost a template  site.yml:12
          file $DESK/conf/site
            @@ -1 +1,2 @@
            -listen 8080;
            +listen 8081;
            +server_name x;
    recap
      localhost  changed      ok=6 changed=1 effects=1
    run RUN
    --- exit 0
    ");
}

#[test]
fn a_failed_task_puts_the_host_back() {
    let desk = Desk::local(
        "  tasks:
    - name: a file
      copy: {dest: $DESK/motd, content: new}
    - name: a failure
      command: sh -c 'echo out; echo err >&2; exit 3'
",
    );
    desk.file("motd", "old");
    insta::assert_snapshot!(desk.run("apply --yes -i here.yml site.yml"), @r#"
    localhost on localhost (1 host)
      changed  localhost a file  site.yml:5
          file $DESK/motd
      failed   localhost a failure  site.yml:7
          command sh -c 'echo out; echo err >&2; exit 3'
          The command exited with a non-zero return code.
          command: ["sh","-c","echo out; echo err >&2; exit 3"]
          stderr: err
          stdout: out
      localhost rolled back: 1 effect undone
          command sh -c 'echo out; echo err >&2; exit 3': what a command did cannot be undone
    recap
      localhost  rolled_back  ok=1 changed=1 effects=2 failed=1
    run RUN
    --- exit 3
    "#);
    assert_eq!(desk.read("motd"), "old");
}

#[test]
fn a_rollback_takes_a_run_back() {
    let desk = Desk::local("  tasks:\n    - copy: {dest: $DESK/motd, content: new}\n");
    desk.file("motd", "old");
    desk.output("apply --yes -i here.yml site.yml");
    assert_eq!(desk.read("motd"), "new");
    insta::assert_snapshot!(desk.run("rollback last"), @"
    localhost rolled back: 1 effect undone, all is as it was
    --- exit 0
    ");
    assert_eq!(desk.read("motd"), "old");
}

#[test]
fn an_apply_without_a_terminal_does_not_guess() {
    let desk = Desk::local("  tasks:\n    - copy: {dest: $DESK/motd, content: new}\n");
    insta::assert_snapshot!(desk.run("apply -i here.yml site.yml"), @r#"
    --- stderr
    localhost
      ~ copy  site.yml:5
          create $DESK/motd
            mode 0644, owner root, group root
            @@ -0,0 +1 @@
            +new
            \ No newline at end of file

    plan: 1 effect on 1 of 1 host
    error: there is no terminal to ask on: say `--yes` to apply without asking
    --- exit 11
    "#);
    assert!(!desk.path().join("motd").exists());
}

#[test]
fn a_line_after_another_task_is_shown_as_it_would_be_then() {
    let desk = Desk::local(
        "  tasks:
    - copy: {dest: $DESK/motd, content: \"hello\\n\"}
    - lineinfile: {path: $DESK/motd, line: world}
",
    );
    insta::assert_snapshot!(desk.run("plan -i here.yml site.yml"), @"
    localhost
      ~ copy  site.yml:5
          create $DESK/motd
            mode 0644, owner root, group root
            @@ -0,0 +1 @@
            +hello
      ~ lineinfile  site.yml:6
          file $DESK/motd
            @@ -1 +1,2 @@
             hello
            +world

    plan: 2 effects on 1 of 1 host
    --- exit 0
    ");
}
