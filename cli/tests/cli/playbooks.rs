//! Mistakes in playbooks: what is said, where, and what to do. None of these reaches a host.

use crate::desk::Desk;

#[test]
fn yaml_that_is_none() {
    let desk = Desk::with(
        r#"- hosts: all
  tasks:
    - name: say hello
      copy: {dest: /etc/motd, content: "hello}
"#,
    );
    insta::assert_snapshot!(desk.run("validate -i hosts.yml site.yml"), @r#"
    --- stderr
    error[F0101]: this quote is never closed
     --> site.yml:4:40
      |
    4 |       copy: {dest: /etc/motd, content: "hello}
      |                                        ^
      |
      = help: put a " where the text ends
    --- exit 11
    "#);
}

#[test]
fn a_tab_in_the_indentation() {
    let desk = Desk::with(
        r#"- hosts: all
  tasks:
	- debug: {msg: hi}
"#,
    );
    insta::assert_snapshot!(desk.run("validate -i hosts.yml site.yml"), @"
    --- stderr
    error[F0101]: a tab cannot indent in YAML
     --> site.yml:3:1
      |
    3 |     - debug: {msg: hi}
      | ^^^^
      |
      = help: indent with spaces
    --- exit 11
    ");
}

#[test]
fn a_key_twice() {
    let desk = Desk::with(
        r#"- hosts: all
  tasks: []
  tasks: []
"#,
    );
    insta::assert_snapshot!(desk.run("validate -i hosts.yml site.yml"), @"
    valid: 3 hosts, 1 playbook, 0 tasks
    --- stderr
    warning[F0102]: the key `tasks` is here twice; the last one counts
     --> site.yml:3:3
      |
    2 |   tasks: []
      |   ----- this one does not
    3 |   tasks: []
      |   ^^^^^ this one counts

    --- exit 0
    ");
}

#[test]
fn a_misspelt_keyword_of_a_play() {
    let desk = Desk::with(
        r#"- hosts: all
  taks:
    - debug: {msg: hi}
"#,
    );
    insta::assert_snapshot!(desk.run("validate -i hosts.yml site.yml"), @"
    --- stderr
    error: `taks` is no keyword that fleetctl knows
     --> site.yml:2:3
      |
    2 |   taks:
      |   ^^^^
      |
      = help: did you mean `tasks`?
    --- exit 11
    ");
}

#[test]
fn a_misspelt_keyword_of_a_task() {
    let desk = Desk::with(
        r#"- hosts: all
  tasks:
    - debug: {msg: hi}
      wehn: true
"#,
    );
    insta::assert_snapshot!(desk.run("validate -i hosts.yml site.yml"), @"
    --- stderr
    error: `wehn` is no keyword or module that fleetctl knows
     --> site.yml:4:7
      |
    4 |       wehn: true
      |       ^^^^
      |
      = help: did you mean `when`?
    --- exit 11
    ");
}

#[test]
fn a_keyword_at_the_wrong_place() {
    let desk = Desk::with(
        r#"- hosts: all
  when: true
  copy: {dest: /etc/motd, content: hi}
  tasks:
    - debug: {msg: hi}
      hosts: all
"#,
    );
    insta::assert_snapshot!(desk.run("validate -i hosts.yml site.yml"), @"
    --- stderr
    error: `when` is a keyword of a task, not of a play
     --> site.yml:2:3
      |
    2 |   when: true
      |   ^^^^

    error: `copy` is a module, and stands on a task, not on a play
     --> site.yml:3:3
      |
    3 |   copy: {dest: /etc/motd, content: hi}
      |   ^^^^
      |
      = help: write it as an item of the list below `tasks:`

    error: `hosts` is a keyword of a play, not of a task
     --> site.yml:6:7
      |
    6 |       hosts: all
      |       ^^^^^

    3 mistakes; nothing was connected, nothing was changed
    --- exit 11
    ");
}

#[test]
fn keywords_that_are_not_supported_say_what_to_do_instead() {
    let desk = Desk::with(
        r#"- hosts: all
  serial: 2
  roles: [nginx]
  tasks:
    - block:
        - debug: {msg: hi}
      rescue: []
    - command: uptime
      async: 10
    - debug: {msg: hi}
      with_dict: {}
"#,
    );
    insta::assert_snapshot!(desk.run("validate -i hosts.yml site.yml"), @"
    --- stderr
    error: the role 'nginx' was not found in $DESK/roles:$DESK/.ansible/roles:/usr/share/ansible/roles:/etc/ansible/roles:$DESK
     --> site.yml:3:11
      |
    3 |   roles: [nginx]
      |           ^^^^^
      |
      = help: set `roles_path` to where it is, or install it beside the playbook in `roles/`
    --- exit 11
    ");
}

#[test]
fn a_misspelt_module_and_a_foreign_one() {
    let desk = Desk::with(
        r#"- hosts: all
  tasks:
    - tempalte: {src: a.j2, dest: /etc/a}
    - community.docker.docker_container: {name: x}
"#,
    );
    insta::assert_snapshot!(desk.run("validate -i hosts.yml site.yml"), @"
    --- stderr
    error: `tempalte` is no keyword or module that fleetctl knows
     --> site.yml:3:7
      |
    3 |     - tempalte: {src: a.j2, dest: /etc/a}
      |       ^^^^^^^^
      |
      = help: did you mean `template`?

    error: the module `community.docker.docker_container` is not supported yet
     --> site.yml:4:7
      |
    4 |     - community.docker.docker_container: {name: x}
      |       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: `fleetctl doc` lists the modules; a module that lies in the project's `library/` is run as it is

    2 mistakes; nothing was connected, nothing was changed
    --- exit 11
    ");
}

#[test]
fn arguments_that_are_not_there_or_must_be() {
    let desk = Desk::with(
        r#"- hosts: all
  tasks:
    - file: {path: /etc/x, stat: absent}
    - file: {state: absent}
    - service: name=nginx state=reloaded now
"#,
    );
    insta::assert_snapshot!(desk.run("validate -i hosts.yml site.yml"), @"
    --- stderr
    error: `file` has no argument `stat`
     --> site.yml:3:28
      |
    3 |     - file: {path: /etc/x, stat: absent}
      |                            ^^^^
      |
      = help: did you mean `state`?

    error: `file` needs the argument `path`
     --> site.yml:4:7
      |
    4 |     - file: {state: absent}
      |       ^^^^

    error: `service` takes `key=value` arguments, not `now`
     --> site.yml:5:16
      |
    5 |     - service: name=nginx state=reloaded now
      |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: write the arguments as a mapping below the module

    3 mistakes; nothing was connected, nothing was changed
    --- exit 11
    ");
}

#[test]
fn values_of_a_wrong_type() {
    let desk = Desk::with(
        r#"- hosts: all
  tasks:
    - file: {path: /etc/x, recurse: maybe}
    - file: {path: [/etc/x], state: directry}
    - apt: {name: nginx, state: lates}
    - apt: {name: nginx, cache_valid_time: soon}
    - sysctl: {name: net.core.somaxconn, value: {a: b}}
    - lineinfile: {path: /etc/x, line: x, regexp: "("}
    - copy: {dest: /etc/x, src: a, content: b}
"#,
    );
    insta::assert_snapshot!(desk.run("validate -i hosts.yml site.yml"), @r#"
    --- stderr
    error: argument `recurse` of `file`: expected true or false (yes, no, on, off, 1, 0), not `maybe`
     --> site.yml:3:37
      |
    3 |     - file: {path: /etc/x, recurse: maybe}
      |                                     ^^^^^

    error: argument `path` of `file`: expected a string, a number or a boolean, not a list
     --> site.yml:4:20
      |
    4 |     - file: {path: [/etc/x], state: directry}
      |                    ^^^^^^^^

    error: argument `state` of `file`: expected `file`, `directory`, `link`, `hard`, `touch` or `absent`, not `directry`
     --> site.yml:4:37
      |
    4 |     - file: {path: [/etc/x], state: directry}
      |                                     ^^^^^^^^
      |
      = help: did you mean `directory`?

    error: argument `state` of `apt`: expected `installed`, `present`, `latest`, `absent`, `removed`, `build-dep` or `fixed`, not `lates`
     --> site.yml:5:33
      |
    5 |     - apt: {name: nginx, state: lates}
      |                                 ^^^^^
      |
      = help: did you mean `latest`?

    error: argument `cache_valid_time` of `apt`: expected a whole number, not `soon`
     --> site.yml:6:44
      |
    6 |     - apt: {name: nginx, cache_valid_time: soon}
      |                                            ^^^^

    error: argument `value` of `sysctl`: expected a string, a number or a boolean, not a mapping
     --> site.yml:7:49
      |
    7 |     - sysctl: {name: net.core.somaxconn, value: {a: b}}
      |                                                 ^^^^^^

    error: argument `regexp` of `lineinfile`: the regular expression `(` cannot be read: found open group without closing ')'
     --> site.yml:8:51
      |
    8 |     - lineinfile: {path: /etc/x, line: x, regexp: "("}
      |                                                   ^^^

    error: there is no file `a`
     --> site.yml:9:33
      |
    9 |     - copy: {dest: /etc/x, src: a, content: b}
      |                                 ^
      |
      = help: looked for files/a, a, ../files/a, ../a

    error: argument `content` of `copy`: src and content are mutually exclusive
     --> site.yml:9:45
      |
    9 |     - copy: {dest: /etc/x, src: a, content: b}
      |                                             ^

    9 mistakes; nothing was connected, nothing was changed
    --- exit 11
    "#);
}

#[test]
fn a_value_with_a_template_is_left_to_the_run() {
    let desk = Desk::with(
        r#"- hosts: all
  vars: {state: nonsense}
  tasks:
    - file: {path: /etc/x, state: "{{ state }}", recurse: true}
    - copy: {dest: "{{ state }}", src: "{{ state }}"}
"#,
    );
    insta::assert_snapshot!(desk.run("validate -i hosts.yml site.yml"), @"
    valid: 3 hosts, 1 playbook, 2 tasks
    --- exit 0
    ");
}

#[test]
fn a_mode_that_is_a_decimal_number() {
    let desk = Desk::with(
        r#"- hosts: all
  tasks:
    - file: {path: /etc/x, mode: 644}
    - file: {path: /etc/y, mode: "rwx"}
    - file: {path: /etc/z, mode: 0644}
    - file: {path: /etc/z, mode: "0644"}
    - file: {path: /etc/z, mode: 0o644}
"#,
    );
    insta::assert_snapshot!(desk.run("validate -i hosts.yml site.yml"), @r#"
    --- stderr
    error: the mode 644 is a decimal number
     --> site.yml:3:34
      |
    3 |     - file: {path: /etc/x, mode: 644}
      |                                  ^^^
      |
      = help: write it as octal: `mode: 0644` or `mode: "0644"`

    error: argument `mode` of `file`: `rwx` is not a mode: write octal digits such as "0644", or symbols such as "u=rw,g=r,o=r"
     --> site.yml:4:34
      |
    4 |     - file: {path: /etc/y, mode: "rwx"}
      |                                  ^^^^^

    2 mistakes; nothing was connected, nothing was changed
    --- exit 11
    "#);
}

#[test]
fn keywords_with_a_wrong_value() {
    let desk = Desk::with(
        r#"- hosts: all
  become: maybe
  port: 99999
  connection: telnet
  vars: [a]
  tasks:
    - command: uptime
      register: [x]
      tags: {}
      timeout: soon
    - command: uptime
      ignore_errors: {a: b}
      environment: [PATH]
    - command: uptime
      loop: 3
    - command: uptime
      vars: {"a b": 1}
"#,
    );
    insta::assert_snapshot!(desk.run("validate -i hosts.yml site.yml"), @r#"
    --- stderr
    error: `become` takes yes or no, not `maybe`
     --> site.yml:2:11
      |
    2 |   become: maybe
      |           ^^^^^

    error: `port` takes a whole number from 1 to 65535, not `99999`
     --> site.yml:3:9
      |
    3 |   port: 99999
      |         ^^^^^

    error: `connection` takes `ssh` or `local`, not `telnet`
     --> site.yml:4:15
      |
    4 |   connection: telnet
      |               ^^^^^^

    error: expected a mapping of variables, not a list
     --> site.yml:5:9
      |
    5 |   vars: [a]
      |         ^^^

    error: Invalid variable name: expected a text, not a list
     --> site.yml:8:17
      |
    8 |       register: [x]
      |                 ^^^

    error: expected a tag, not a mapping
     --> site.yml:9:13
      |
    9 |       tags: {}
      |             ^^

    error: `timeout` takes a whole number from 0 on, not `soon`
      --> site.yml:10:16
       |
    10 |       timeout: soon
       |                ^^^^

    error: `ignore_errors` takes yes or no, not a mapping
      --> site.yml:12:22
       |
    12 |       ignore_errors: {a: b}
       |                      ^^^^^^

    error: `environment` takes a mapping of variables, not a list
      --> site.yml:13:20
       |
    13 |       environment: [PATH]
       |                    ^^^^^^

    error: `loop` takes a list, not `3`
      --> site.yml:15:13
       |
    15 |       loop: 3
       |             ^

    error: Invalid variable name `a b`
      --> site.yml:17:14
       |
    17 |       vars: {"a b": 1}
       |              ^^^^^
       |
       = help: letters, digits and `_`, and no digit first

    11 mistakes; nothing was connected, nothing was changed
    --- exit 11
    "#);
}

#[test]
fn templates_with_mistakes() {
    let desk = Desk::with(
        r#"- hosts: all
  tasks:
    - debug: {msg: "{{ a b }}"}
    - debug: {msg: "{{ a | uper }}"}
    - debug: {msg: "{{ now_or_never() }}"}
    - debug: {msg: "{% if a %}x"}
"#,
    );
    insta::assert_snapshot!(desk.run("validate -i hosts.yml site.yml"), @r#"
    --- stderr
    error: nothing sets the variable `a`
     --> site.yml:3:24
      |
    3 |     - debug: {msg: "{{ a b }}"}
      |                        ^
      |
      = help: set it in the inventory, in `vars`, or with `-e`; or say what holds without it: `| default(…)`

    error[F0302]: unexpected name, expected `}}`
     --> site.yml:3:26
      |
    3 |     - debug: {msg: "{{ a b }}"}
      |                          ^

    error: nothing sets the variable `a`
     --> site.yml:4:24
      |
    4 |     - debug: {msg: "{{ a | uper }}"}
      |                        ^
      |
      = help: set it in the inventory, in `vars`, or with `-e`; or say what holds without it: `| default(…)`

    error[F0303]: there is no filter `uper`
     --> site.yml:4:28
      |
    4 |     - debug: {msg: "{{ a | uper }}"}
      |                            ^^^^
      |
      = help: did you mean `upper`?

    error[F0303]: there is no function `now_or_never`
     --> site.yml:5:24
      |
    5 |     - debug: {msg: "{{ now_or_never() }}"}
      |                        ^^^^^^^^^^^^
      |
      = help: docs/language.md lists every function there is

    error[F0302]: a block is never closed: `{% endif %}`, `{% endfor %}` or its like is missing
     --> site.yml:6:31
      |
    6 |     - debug: {msg: "{% if a %}x"}
      |                               ^

    6 mistakes; nothing was connected, nothing was changed
    --- exit 11
    "#);
}

#[test]
fn conditions_with_mistakes() {
    let desk = Desk::with(
        r#"- hosts: all
  tasks:
    - command: uptime
      when: a ==
    - command: uptime
      changed_when: "a is chnged"
    - command: uptime
      failed_when: [{a: b}]
    - assert: {that: ["a > 1", "a === 2"]}
    - debug: {var: "a |"}
"#,
    );
    insta::assert_snapshot!(desk.run("validate -i hosts.yml site.yml"), @r#"
    --- stderr
    error: nothing sets the variable `a`
     --> site.yml:4:13
      |
    4 |       when: a ==
      |             ^
      |
      = help: set it in the inventory, in `vars`, or with `-e`; or say what holds without it: `| default(…)`

    error[F0302]: unexpected end of the template, expected an expression
     --> site.yml:4:15
      |
    4 |       when: a ==
      |               ^^

    error[F0303]: there is no test `chnged`
     --> site.yml:6:27
      |
    6 |       changed_when: "a is chnged"
      |                           ^^^^^^
      |
      = help: did you mean `changed`?

    error: expected a condition, not a mapping
     --> site.yml:8:21
      |
    8 |       failed_when: [{a: b}]
      |                     ^^^^^^

    error[F0302]: unexpected `=`
     --> site.yml:9:37
      |
    9 |     - assert: {that: ["a > 1", "a === 2"]}
      |                                     ^

    error[F0302]: unexpected end of the template, expected a name
      --> site.yml:10:23
       |
    10 |     - debug: {var: "a |"}
       |                       ^

    6 mistakes; nothing was connected, nothing was changed
    --- exit 11
    "#);
}

#[test]
fn a_mistake_in_a_template_file() {
    let desk = Desk::with(
        r#"- hosts: all
  tasks:
    - template: {src: motd.j2, dest: /etc/motd}
"#,
    );
    desk.file(
        "templates/motd.j2",
        "Welcome\n{% for user in users %}\n  {{ user | uper }}\n{% endfor %}\n",
    );
    insta::assert_snapshot!(desk.run("validate -i hosts.yml site.yml"), @"
    --- stderr
    error[F0303]: there is no filter `uper`
     --> templates/motd.j2:3:13
      |
    3 |   {{ user | uper }}
      |             ^^^^
      |
      = help: did you mean `upper`?
    --- exit 11
    ");
}

#[test]
fn files_that_are_not_there() {
    let desk = Desk::with(
        r#"- hosts: all
  vars_files: [vars/web.yml]
  tasks:
    - template: {src: nginx.cnf.j2, dest: /etc/nginx/nginx.conf}
    - copy: {src: motd, dest: /etc/motd}
    - copy: {src: /srv/of-the-host, dest: /etc/motd, remote_src: true}
"#,
    );
    desk.file("templates/nginx.conf.j2", "worker_processes auto;\n");
    insta::assert_snapshot!(desk.run("validate -i hosts.yml site.yml"), @"
    --- stderr
    error: there is no file `vars/web.yml`
     --> site.yml:2:16
      |
    2 |   vars_files: [vars/web.yml]
      |                ^^^^^^^^^^^^
      |
      = help: looked for vars/vars/web.yml, vars/web.yml, ../vars/vars/web.yml, ../vars/web.yml

    error: there is no file `nginx.cnf.j2`
     --> site.yml:4:23
      |
    4 |     - template: {src: nginx.cnf.j2, dest: /etc/nginx/nginx.conf}
      |                       ^^^^^^^^^^^^
      |
      = help: did you mean `nginx.conf.j2`? looked for templates/nginx.cnf.j2, nginx.cnf.j2, ../templates/nginx.cnf.j2, ../nginx.cnf.j2

    error: there is no file `motd`
     --> site.yml:5:19
      |
    5 |     - copy: {src: motd, dest: /etc/motd}
      |                   ^^^^
      |
      = help: looked for files/motd, motd, ../files/motd, ../motd

    3 mistakes; nothing was connected, nothing was changed
    --- exit 11
    ");
}

#[test]
fn a_file_that_a_play_on_this_machine_may_make_is_left_to_the_run() {
    let desk = Desk::with(
        r#"- hosts: localhost
  tasks:
    - copy: {dest: /tmp/motd, content: hi}
- hosts: web
  tasks:
    - copy: {src: /nonexistent/motd, dest: /etc/motd}
"#,
    );
    insta::assert_snapshot!(desk.run("validate -i hosts.yml -i localhost, site.yml"), @"
    valid: 4 hosts, 1 playbook, 2 tasks
    --- exit 0
    ");
}

#[test]
fn a_handler_that_is_not_there() {
    let desk = Desk::with(
        r#"- hosts: all
  tasks:
    - command: uptime
      notify: restart ngin
    - block:
        - command: uptime
        - command: uptime
      notify: tell me
  handlers:
    - name: restart nginx
      service: {name: nginx, state: restarted}
"#,
    );
    insta::assert_snapshot!(desk.run("validate -i hosts.yml site.yml"), @"
    --- stderr
    error: no handler of this play answers to `restart ngin`
     --> site.yml:4:15
      |
    4 |       notify: restart ngin
      |               ^^^^^^^^^^^^
      |
      = help: did you mean `restart nginx`?

    error: no handler of this play answers to `tell me`
     --> site.yml:8:15
      |
    8 |       notify: tell me
      |               ^^^^^^^
      |
      = help: write one with that name, or that listens to it, below `handlers:`

    2 mistakes; nothing was connected, nothing was changed
    --- exit 11
    ");
}

#[test]
fn hosts_that_are_not_there() {
    let desk = Desk::with(
        r#"- hosts: webb
  tasks: []
- hosts: []
  tasks: []
- tasks: []
"#,
    );
    insta::assert_snapshot!(desk.run("validate -i hosts.yml site.yml"), @"
    --- stderr
    error: no host and no group matches `webb`
     --> site.yml:1:10
      |
    1 | - hosts: webb
      |          ^^^^
      |
      = help: did you mean `web1`? `--allow-no-hosts` lets such a play pass

    error: `hosts` is empty
     --> site.yml:3:10
      |
    3 | - hosts: []
      |          ^^
      |
      = help: name a group, a host or a pattern; `all` for every host

    error: this play has no `hosts:`
     --> site.yml:5:3
      |
    5 | - tasks: []
      |   ^^^^^^^^^
      |
      = help: name a group, a host or a pattern; `all` for every host

    3 mistakes; nothing was connected, nothing was changed
    --- exit 11
    ");
}

#[test]
fn a_play_for_nobody_is_fine_where_that_is_said() {
    let desk = Desk::with("- hosts: mail\n  tasks: []\n");
    assert!(
        desk.run("validate -i hosts.yml site.yml")
            .ends_with("--- exit 11")
    );
    insta::assert_snapshot!(desk.run("validate -i hosts.yml --allow-no-hosts site.yml"), @"
    valid: 3 hosts, 1 playbook, 0 tasks
    --- exit 0
    ");
    insta::assert_snapshot!(desk.run("plan -i hosts.yml --allow-no-hosts site.yml"), @"
    mail skipped: no hosts matched
    plan: 0 effects on 0 of 0 hosts
    --- exit 0
    ");
}

#[test]
fn a_limit_that_means_nobody() {
    let desk = Desk::with("- hosts: all\n  tasks: []\n- hosts: web\n  tasks: []\n");
    insta::assert_snapshot!(desk.run("validate -i hosts.yml -l wbe1 site.yml"), @"
    --- stderr
    error[F0210]: `wbe1` in the limit matches no host and no group
     --> --limit:1:1
      |
    1 | wbe1
      | ^^^^
      |
      = help: did you mean `web1`?
    --- exit 11
    ");
    insta::assert_snapshot!(desk.run("plan -i hosts.yml -l db1 site.yml"), @"
    --- stderr
    error: no host is left of `web`
     --> site.yml:3:10
      |
    3 | - hosts: web
      |          ^^^
      |
      = help: `--allow-no-hosts` lets such a play pass
    --- exit 11
    ");
}

#[test]
fn playbooks_that_are_none() {
    let desk = Desk::with("");
    desk.file("map.yml", "hosts: all\ntasks: []\n")
        .file("text.yml", "just a text\n")
        .file("plays/web.yml", "[]\n");
    insta::assert_snapshot!(desk.run("validate -i hosts.yml site.yml"), @"
    --- stderr
    error: this playbook has no plays
     --> site.yml:1:1
      |
    1 |
      | ^
      |
      = help: a play begins with `- hosts: all`
    --- exit 11
    ");
    insta::assert_snapshot!(desk.run("validate -i hosts.yml map.yml"), @"
    --- stderr
    error: expected a list of plays, not a mapping
     --> map.yml:1:1
      |
    1 | hosts: all
      | ^^^^^^^^^^
      |
      = help: begin each play with a dash: `- hosts: all`
    --- exit 11
    ");
    insta::assert_snapshot!(desk.run("validate -i hosts.yml text.yml"), @"
    --- stderr
    error: expected a list of plays, not a string
     --> text.yml:1:1
      |
    1 | just a text
      | ^^^^^^^^^^^
    --- exit 11
    ");
    insta::assert_snapshot!(desk.run("validate -i hosts.yml siet.yml"), @"
    --- stderr
    error: there is no file siet.yml
     |
     = help: did you mean `site.yml`?
    --- exit 11
    ");
    insta::assert_snapshot!(desk.run("validate -i hosts.yml plays"), @"
    --- stderr
    error: plays is a directory, not a file
     |
     = help: name a file in it
    --- exit 11
    ");
    insta::assert_snapshot!(desk.run("validate -i hosts.yml plays/web.yml"), @"
    --- stderr
    error: this playbook has no plays
     --> plays/web.yml:1:1
      |
    1 | []
      | ^
      |
      = help: a play begins with `- hosts: all`
    --- exit 11
    ");
}

#[test]
fn all_mistakes_of_a_file_are_told_in_one_go() {
    let desk = Desk::with(
        r#"- hosts: web
  becom: true
  tasks:
    - file: {path: /etc/x, stat: absent}
    - tempalte: {src: a.j2, dest: /etc/a}
    - file: {path: /etc/x, mode: 755}
    - service: {name: nginx, state: running}
    - command: uptime
      when: a =
    - debug: {msg: "{{ a | uper }}"}
    - copy: {src: nowhere, dest: /etc/x}
    - command: uptime
      notify: nobody
- hosts: wbe
  become: perhaps
  tasks: []
"#,
    );
    insta::assert_snapshot!(desk.run("validate -i hosts.yml site.yml"), @r#"
    --- stderr
    error: `becom` is no keyword that fleetctl knows
     --> site.yml:2:3
      |
    2 |   becom: true
      |   ^^^^^
      |
      = help: did you mean `become`?

    error: `file` has no argument `stat`
     --> site.yml:4:28
      |
    4 |     - file: {path: /etc/x, stat: absent}
      |                            ^^^^
      |
      = help: did you mean `state`?

    error: `tempalte` is no keyword or module that fleetctl knows
     --> site.yml:5:7
      |
    5 |     - tempalte: {src: a.j2, dest: /etc/a}
      |       ^^^^^^^^
      |
      = help: did you mean `template`?

    error: the mode 755 is a decimal number
     --> site.yml:6:34
      |
    6 |     - file: {path: /etc/x, mode: 755}
      |                                  ^^^
      |
      = help: write it as octal: `mode: 0755` or `mode: "0755"`

    error: argument `state` of `service`: expected `started`, `stopped`, `restarted` or `reloaded`, not `running`
     --> site.yml:7:37
      |
    7 |     - service: {name: nginx, state: running}
      |                                     ^^^^^^^

    error: nothing sets the variable `a`
     --> site.yml:9:13
      |
    9 |       when: a =
      |             ^
      |
      = help: set it in the inventory, in `vars`, or with `-e`; or say what holds without it: `| default(…)`

    error[F0302]: unexpected input after expression
     --> site.yml:9:15
      |
    9 |       when: a =
      |               ^

    error: nothing sets the variable `a`
      --> site.yml:10:24
       |
    10 |     - debug: {msg: "{{ a | uper }}"}
       |                        ^
       |
       = help: set it in the inventory, in `vars`, or with `-e`; or say what holds without it: `| default(…)`

    error[F0303]: there is no filter `uper`
      --> site.yml:10:28
       |
    10 |     - debug: {msg: "{{ a | uper }}"}
       |                            ^^^^
       |
       = help: did you mean `upper`?

    error: there is no file `nowhere`
      --> site.yml:11:19
       |
    11 |     - copy: {src: nowhere, dest: /etc/x}
       |                   ^^^^^^^
       |
       = help: looked for files/nowhere, nowhere, ../files/nowhere, ../nowhere

    error: no handler of this play answers to `nobody`
      --> site.yml:13:15
       |
    13 |       notify: nobody
       |               ^^^^^^
       |
       = help: write one with that name, or that listens to it, below `handlers:`

    error: no host and no group matches `wbe`
      --> site.yml:14:10
       |
    14 | - hosts: wbe
       |          ^^^
       |
       = help: did you mean `web`? `--allow-no-hosts` lets such a play pass

    error: `become` takes yes or no, not `perhaps`
      --> site.yml:15:11
       |
    15 |   become: perhaps
       |           ^^^^^^^

    13 mistakes; nothing was connected, nothing was changed
    --- exit 11
    "#);
}

#[test]
fn a_template_without_quotes() {
    let desk = Desk::with("- hosts: all\n  tasks:\n    - debug:\n        msg: {{ a }}\n");
    insta::assert_snapshot!(desk.run("validate -i hosts.yml site.yml"), @r#"
    --- stderr
    error[F0103]: unquoted template
     --> site.yml:4:14
      |
    4 |         msg: {{ a }}
      |              ^^^^^^^ YAML takes this for a mapping
      |
      = help: write "{{ a }}"
    --- exit 11
    "#);
}
