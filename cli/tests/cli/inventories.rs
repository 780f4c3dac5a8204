//! Mistakes in inventories and on the command line.

use crate::desk::Desk;

fn desk() -> Desk {
    Desk::with("- hosts: all\n  tasks: [{debug: {msg: hi}}]\n")
}

#[test]
fn what_is_sound_is_counted() {
    let desk = desk();
    insta::assert_snapshot!(desk.run("validate -i hosts.yml site.yml"), @"
    valid: 3 hosts, 1 playbook, 1 task
    --- exit 0
    ");
}

#[test]
fn a_broken_inventory_in_ini() {
    let desk = desk();
    desk.file("open.ini", "[web\nweb1\n")
        .file("kind.ini", "[web:chldren]\ndb\n")
        .file("var.ini", "[web]\nweb1 ansible_port\n");
    insta::assert_snapshot!(desk.run("validate -i open.ini site.yml"), @"
    --- stderr
    error[F0203]: a heading that is never closed
     --> open.ini:1:1
      |
    1 | [web
      | ^^^^ expected a `]` at the end
    --- exit 11
    ");
    insta::assert_snapshot!(desk.run("validate -i kind.ini site.yml"), @"
    --- stderr
    error[F0203]: unknown kind of section `chldren`
     --> kind.ini:1:6
      |
    1 | [web:chldren]
      |      ^^^^^^^ expected `hosts`, `children` or `vars`
      |
      = help: did you mean `children`?
    --- exit 11
    ");
    insta::assert_snapshot!(desk.run("validate -i var.ini site.yml"), @"
    --- stderr
    error[F0202]: `ansible_port` sets no variable
     --> var.ini:2:6
      |
    2 | web1 ansible_port
      |      ^^^^^^^^^^^^ expected `name=value` behind the host `web1`
      |
      = help: a host stands on a line of its own; quote a value that holds blanks
    --- exit 11
    ");
}

#[test]
fn a_broken_inventory_in_yaml() {
    let desk = desk();
    desk.file("list.yml", "all:\n  hosts: [web1]\n")
        .file("key.yml", "all:\n  childern: {web: {}}\n")
        .file("flow.yml", "all: {hosts: {web1: }\n");
    insta::assert_snapshot!(desk.run("validate -i list.yml site.yml"), @"
    --- stderr
    error[F0205]: `hosts` of group `all` holds a list
     --> list.yml:2:10
      |
    2 |   hosts: [web1]
      |          ^^^^^^ expected host names as keys: `web1:` a line, without a dash
    --- exit 11
    ");
    insta::assert_snapshot!(desk.run("validate -i key.yml site.yml"), @"
    --- stderr
    warning[F0205]: unknown key `childern` in group `all` is passed over
     --> key.yml:2:3
      |
    2 |   childern: {web: {}}
      |   ^^^^^^^^ expected `hosts`, `children` or `vars`
      |
      = help: did you mean `children`?

    error: no host is left of `all`
     --> site.yml:1:10
      |
    1 | - hosts: all
      |          ^^^
      |
      = help: `--allow-no-hosts` lets such a play pass
    --- exit 11
    ");
    insta::assert_snapshot!(desk.run("validate -i flow.yml site.yml"), @"
    --- stderr
    error[F0101]: this `{` is never closed
     --> flow.yml:1:6
      |
    1 | all: {hosts: {web1: }
      |      ^
    --- exit 11
    ");
}

#[test]
fn an_inventory_that_is_not_there() {
    let desk = desk();
    insta::assert_snapshot!(desk.run("validate -i hots.yml site.yml"), @"
    --- stderr
    error[F0201]: no inventory source `hots.yml`
     |
     = help: to name a host, write a comma behind it: `hots.yml,`
    --- exit 11
    ");
    insta::assert_snapshot!(desk.run("validate site.yml"), @"
    --- stderr
    error: no inventory: name one with `-i FILE`, or hosts with `-i host1,host2,`
    --- exit 11
    ");
}

#[test]
fn extra_variables_that_are_none() {
    let desk = desk();
    insta::assert_snapshot!(desk.run("validate -i hosts.yml -e port site.yml"), @r#"
    --- stderr
    error: `port` is no `name=value`
     --> --extra-vars:1:1
      |
    1 | port
      | ^^^^
      |
      = help: write `-e name=value`, `-e '{"name": …}'` or `-e @file.yml`
    --- exit 11
    "#);
    insta::assert_snapshot!(desk.run("validate -i hosts.yml -e @vars.yml site.yml"), @"
    --- stderr
    error: there is no file vars.yml
    --- exit 11
    ");
    insta::assert_snapshot!(desk.run("validate -i hosts.yml -e '{port: [' site.yml"), @"
    --- stderr
    error[F0101]: this `[` is never closed
     --> --extra-vars:1:8
      |
    1 | {port: [
      |        ^
    --- exit 11
    ");
    insta::assert_snapshot!(desk.run("validate -i hosts.yml -e '[1]' site.yml"), @"
    --- stderr
    error: expected a mapping of variables, not a list
     --> --extra-vars:1:1
      |
    1 | [1]
      | ^^^
    --- exit 11
    ");
}

#[test]
fn mistakes_in_the_inventory_and_in_the_playbook_are_told_together() {
    let desk = Desk::with("- hosts: all\n  taks: []\n");
    desk.file("open.ini", "[web\nweb1\n");
    insta::assert_snapshot!(desk.run("validate -i open.ini -e port site.yml"), @r#"
    --- stderr
    error: `taks` is no keyword that fleetctl knows
     --> site.yml:2:3
      |
    2 |   taks: []
      |   ^^^^
      |
      = help: did you mean `tasks`?

    error[F0203]: a heading that is never closed
     --> open.ini:1:1
      |
    1 | [web
      | ^^^^ expected a `]` at the end

    error: `port` is no `name=value`
     --> --extra-vars:1:1
      |
    1 | port
      | ^^^^
      |
      = help: write `-e name=value`, `-e '{"name": …}'` or `-e @file.yml`

    3 mistakes; nothing was connected, nothing was changed
    --- exit 11
    "#);
}

#[test]
fn flags_that_make_no_sense() {
    let desk = desk();
    insta::assert_snapshot!(desk.run("plan -i hosts.yml --become-password-file nowhere site.yml"), @"
    --- stderr
    error: cannot read the sudo password from nowhere: there is no such file
    --- exit 11
    ");
    insta::assert_snapshot!(desk.run("apply -i hosts.yml --lock-timeout 5x site.yml"), @"
    --- stderr
    error: invalid value '5x' for '--lock-timeout <TIME>': `x` is no unit of time; `s`, `m` and `h` are

    For more information, try '--help'.
    --- exit 64
    ");
    insta::assert_snapshot!(desk.run("rollback last"), @"
    --- stderr
    error: there was no apply yet: $DESK/.local/state/fleetctl/runs holds none
    --- exit 11
    ");
}
