//! What only a run can find, on this machine and in a directory of its own.

use crate::desk::Desk;

#[test]
fn a_variable_that_is_not_there_stops_the_host_with_nothing_changed() {
    let desk = Desk::local(
        "  vars: {port: 80}
  tasks:
    - name: first
      copy: {dest: $DESK/one, content: one}
    - name: then
      copy:
        dest: $DESK/two
        content: \"listen {{ prot }}\"
",
    );
    insta::assert_snapshot!(desk.run("plan -i here.yml site.yml"), @r#"
    --- stderr
    error: nothing sets the variable `prot`
      --> site.yml:11:29
       |
    11 |         content: "listen {{ prot }}"
       |                             ^^^^
       |
       = help: did you mean `port`?
    --- exit 11
    "#);
    insta::assert_snapshot!(desk.run("apply --yes -i here.yml site.yml"), @r#"
    --- stderr
    error: nothing sets the variable `prot`
      --> site.yml:11:29
       |
    11 |         content: "listen {{ prot }}"
       |                             ^^^^
       |
       = help: did you mean `port`?
    --- exit 11
    "#);
    assert!(
        !desk.path().join("one").exists(),
        "the first task is undone"
    );
}

#[test]
fn a_variable_that_is_not_there_in_a_template_file() {
    let desk = Desk::local("  tasks:\n    - template: {src: a.j2, dest: $DESK/a}\n");
    desk.file("templates/a.j2", "name\nlisten {{ prot }};\n");
    insta::assert_snapshot!(desk.run("plan -i here.yml site.yml"), @"
    localhost
      ! template  site.yml:5
          error[F0301]: 'prot' is undefined
           --> templates/a.j2:2:11
            |
          2 | listen {{ prot }};
            |           ^^^^
            |
            = help: define it, or say what to take instead: `prot | default(…)`

    plan: 0 effects on 0 of 1 host, 1 host could not be planned
    --- exit 3
    ");
}

#[test]
fn a_variable_that_is_not_there_in_a_condition() {
    let desk = Desk::local("  tasks:\n    - command: uptime\n      when: nginx_is_wanted\n");
    insta::assert_snapshot!(desk.run("plan -i here.yml site.yml"), @"
    --- stderr
    error: nothing sets the variable `nginx_is_wanted`
     --> site.yml:6:13
      |
    6 |       when: nginx_is_wanted
      |             ^^^^^^^^^^^^^^^
      |
      = help: set it in the inventory, in `vars`, or with `-e`; or say what holds without it: `| default(…)`
    --- exit 11
    ");
}

#[test]
fn an_argument_that_turns_out_wrong() {
    let desk = Desk::local(
        "  vars: {what: presnt}\n  tasks:\n    - lineinfile:\n        path: $DESK/a\n        line: x\n        state: \"{{ what }}\"\n",
    );
    insta::assert_snapshot!(desk.run("plan -i here.yml site.yml"), @r#"
    localhost
      ! lineinfile  site.yml:6
          error: argument `state` of `lineinfile`: expected `present` or `absent`, not `presnt`
           --> site.yml:9:16
            |
          9 |         state: "{{ what }}"
            |                ^^^^^^^^^^^^
            |
            = help: did you mean `present`?

    plan: 0 effects on 0 of 1 host, 1 host could not be planned
    --- exit 3
    "#);
}
