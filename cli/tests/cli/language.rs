//! Small things of the language, as Ansible 2.21 has them: each stands for its kind.

use crate::desk::Desk;

/// What a playbook prints, which must end well.
fn play(desk: &Desk, more: &str) -> String {
    let said = desk.run(&format!("play -i here.yml site.yml {more}"));
    assert!(said.ends_with("--- exit 0"), "{said}");
    said
}

/// The messages of `debug` tasks, in their order.
fn messages(said: &str) -> Vec<&str> {
    let lines = said.lines().filter_map(|line| {
        let (_, text) = line.trim().split_once("\": ")?;
        line.starts_with("    \"").then_some(text)
    });
    lines.collect()
}

#[test]
fn what_is_left_out_is_as_if_it_were_not_written() {
    let desk = Desk::new();
    desk.file(
        "site.yml",
        "
- hosts: web
  connection: local
  gather_facts: false
  serial: '{{ nobody | default(omit) }}'
  order: '{{ omit }}'
  strategy: '{{ omit }}'
  tasks:
    - debug: {msg: '{{ omit }}'}
    - debug: {var: '{{ omit }}'}
    - debug:
      args: '{{ omit }}'
    - validate_argument_spec:
        argument_spec: {a: {type: int}}
        provided_arguments: '{{ omit }}'
    - set_fact: {left: '{{ omit }}', set: yes}
    - debug:
      when: left is defined or set is undefined
    - validate_argument_spec: {argument_spec: '{{ omit }}'}
      ignore_errors: true
      run_once: true
",
    );
    let said = desk.run("play -i hosts.yml site.yml");
    assert!(said.ends_with("--- exit 0"), "{said}");
    assert_eq!(messages(&said), ["\"Hello world!\""; 6]);
    assert!(
        said.contains(r#""msg": "\"argument_spec\" arg is required in args: {}""#),
        "{said}"
    );
}

#[test]
fn a_look_at_what_is_undefined_says_so_in_its_place() {
    let desk = Desk::local(
        "  vars: {name: there, there: 5, list: [a, '{{ gone }}', {b: 'x {{ there.c }}'}]}
  tasks:
    - debug: var=nope
    - debug: {var: list}
    - debug: var=\"{{ name }}\"
    - debug: {var: list | length}
    - debug: {var: '1 +'}
      ignore_errors: true
    - debug: {var: '{{ there }}'}
      ignore_errors: true
",
    );
    let said = play(&desk, "");
    for part in [
        "[WARNING]: Encountered 1 template error.\nerror 1 - 'nope' is undefined\n",
        "    \"nope\": \"<< error 1 - 'nope' is undefined >>\"\n",
        "        \"a\",\n        \"<< error 1 - 'gone' is undefined >>\",\n",
        "            \"b\": \"<< error 2 - object of type 'int' has no attribute 'c' >>\"\n",
        "    \"there\": 5\n",
        "    \"list | length\": 3\n",
        "argument 'var' is of type int",
    ] {
        assert!(said.contains(part), "{part}\n---\n{said}");
    }
    assert!(said.contains("ignored=2"), "{said}");
}

#[test]
fn a_role_knows_itself_in_its_static_imports() {
    let desk = Desk::local("  roles: [r]\n");
    desk.file(
        "roles/r/tasks/main.yml",
        "- import_tasks: '{{ role_path }}/tasks/{{ role_name }}_own.yml'\n",
    );
    desk.file("roles/r/tasks/r_own.yml", "- debug: {msg: imported}\n");
    assert_eq!(messages(&play(&desk, "")), ["\"imported\""]);
}

#[test]
fn escapes_in_words_with_equals_signs_are_decoded() {
    let desk = Desk::local(
        r#"  tasks:
    - debug: msg="a\nb\\s" 
    - debug: msg='{{ "a.b" | regex_replace("\\.", "-") }}'
    - command: printf %s 'a\tb'
      register: said
    - debug: {msg: '{{ said.stdout }}'}
"#,
    );
    assert_eq!(
        messages(&play(&desk, "")),
        [r#""a\nb\\s""#, r#""a-b""#, r#""a\\tb""#]
    );
}

#[test]
fn arguments_from_a_template_are_a_mapping() {
    let desk = Desk::local(
        "  vars: {text: 'msg=hello', mapping: {msg: hello}}
  tasks:
    - debug:
      args: '{{ mapping }}'
    - debug:
      args: '{{ text }}'
      ignore_errors: true
",
    );
    let said = play(&desk, "");
    assert!(said.contains("    \"msg\": \"hello\"\n"), "{said}");
    assert!(
        said.contains("Task args must resolve to a 'dict' not 'str'."),
        "{said}"
    );
    desk.file(
        "bad.yml",
        "- hosts: all\n  tasks: [{debug: , args: 'msg=hello'}]\n",
    );
    let said = desk.run("play -i here.yml bad.yml");
    assert!(
        said.contains("expected a mapping of arguments, or a template that gives one")
            && said.ends_with("--- exit 4"),
        "{said}"
    );
}

#[test]
fn text_that_is_no_argument_is_told_once() {
    let desk = Desk::local("  tasks:\n    - ping: data=x now\n      ignore_errors: true\n");
    let said = play(&desk, "");
    let message = "Task failed: Action 'ansible.builtin.ping' does not support raw params.";
    assert_eq!(
        said.matches(&format!("[ERROR]: {message}")).count(),
        1,
        "{said}"
    );
    let said = desk.run("validate -i here.yml site.yml");
    assert_eq!(said.matches("not `now`").count(), 1, "{said}");
    assert!(!said.contains("_raw_params"), "{said}");
}

#[test]
fn a_command_whose_conditions_were_looked_at_would_change_something() {
    let desk = Desk::local(
        "  tasks:
    - command: touch $DESK/x creates=$DESK/x
    - command: touch $DESK/x creates=$DESK
    - command: touch $DESK/x
",
    );
    let said = play(&desk, "--check");
    assert!(
        said.contains("ok=2    changed=1    unreachable=0    failed=0    skipped=1"),
        "{said}"
    );
    assert!(!desk.path().join("x").exists());
}

#[test]
fn templates_know_the_connection_where_nobody_sets_it() {
    let desk = Desk::local(
        "  remote_user: somebody
  tasks:
    - debug: {msg: '{{ ansible_host }} {{ ansible_user }} {{ lookup(\"vars\", \"ansible_connection\") }}'}
    - debug: {msg: '{{ ansible_port | default(\"none\") }}'}
",
    );
    assert_eq!(
        messages(&play(&desk, "")),
        ["\"localhost somebody local\"", "\"none\""]
    );
}

#[test]
fn what_manages_a_template_is_a_setting() {
    let desk = Desk::local(
        "  tasks:
    - debug: {msg: '{{ lookup(\"template\", \"a.j2\") }}'}
    - debug: {msg: '{{ lookup(\"fileglob\", \"*.j2\") }} {{ \"*.j2\" | fileglob }}'}
    - template: {src: a.j2, dest: $DESK/made}
",
    );
    desk.file("a.j2", "# {{ ansible_managed }}");
    desk.file(
        "ansible.cfg",
        "[defaults]\nansible_managed = made of {file}\n",
    );
    let said = play(&desk, "");
    assert_eq!(
        messages(&said),
        ["\"# made of a.j2\"", "\"$DESK/a.j2 ['a.j2']\""]
    );
    assert_eq!(desk.read("made"), "# made of a.j2");
}

#[test]
fn an_action_plugin_of_a_project_is_refused_at_its_place() {
    let desk = Desk::local("  tasks:\n    - copy: {dest: $DESK/x, content: x}\n    - mine:\n");
    desk.file("action_plugins/copy.py", "");
    desk.file("action_plugins/mine.py", "");
    let said = desk.run("play -i here.yml site.yml");
    for (name, line) in [("copy", 5), ("mine", 6)] {
        let told = format!("`{name}` is an action plugin, which runs in Ansible itself");
        assert!(said.contains(&told), "{said}");
        assert!(said.contains(&format!("site.yml:{line}:7")), "{said}");
    }
    assert!(said.contains("a module in `library/`"), "{said}");
    assert!(said.ends_with("--- exit 4"), "{said}");
}

#[test]
fn an_encrypted_file_that_does_not_open_is_told_before_any_connection() {
    let told = "error[F0801]: this is encrypted by vault, and no vault secrets were given\n --> sealed.yml:1:1";
    for (play, place) in [
        ("vars_files: [sealed.yml]", "1:29"),
        ("vars_files: [[gone.yml, sealed.yml, other.yml]]", "1:40"),
        ("tasks: [{include_vars: sealed.yml}]", "1:39"),
        ("tasks: [{copy: {src: sealed.yml, dest: /x}}]", "1:37"),
    ] {
        let desk = Desk::with(&format!("- {{hosts: web, {play}}}\n"));
        desk.file("sealed.yml", "a: 1\n").file("secret", "open\n");
        let sealed = desk.output("vault encrypt --vault-password-file secret sealed.yml");
        assert!(sealed.status.success());
        for verb in ["validate", "plan", "apply --yes"] {
            let said = desk.run(&format!("{verb} -i hosts.yml site.yml"));
            assert!(said.contains(told), "{said}");
            assert!(
                said.contains(&format!("site.yml:{place}\n")),
                "{place}\n{said}"
            );
            assert!(said.ends_with("--- exit 11"), "{said}");
        }
        let said = desk.run("validate -i hosts.yml site.yml --vault-password-file secret");
        assert!(said.ends_with("--- exit 0"), "{said}");
    }
    let desk = Desk::with("- {hosts: web, tasks: [{copy: {src: a, dest: /x, decrypt: false}}]}\n");
    desk.file("a", "$ANSIBLE_VAULT;1.1;AES256\n00\n");
    let said = desk.run("validate -i hosts.yml site.yml");
    assert!(said.ends_with("--- exit 0"), "{said}");
}

#[test]
fn galaxy_lists_what_is_on_disk_and_refuses_the_rest() {
    let desk = Desk::new();
    desk.file("ansible.cfg", "[defaults]\ncollections_path = $DESK/c\n");
    desk.file(
        "c/ansible_collections/community/general/MANIFEST.json",
        r#"{"collection_info": {"version": "9.1.0"}}"#,
    );
    desk.file("c/ansible_collections/own/tools/README", "");
    insta::assert_snapshot!(desk.run_as("ansible-galaxy", "collection list"), @r"

    # $DESK/c/ansible_collections
    Collection        Version
    ----------------- -------
    community.general 9.1.0
    own.tools         *
    --- exit 0
    ");
    insta::assert_snapshot!(
        desk.run_as("ansible-galaxy", "collection list --format json own.tools"),
        @r#"
    {"$DESK/c/ansible_collections":{"own.tools":{"version":"*"}}}
    --- exit 0
    "#
    );
    for asked in ["role install x", "collection install a.b"] {
        let said = desk.run_as("ansible-galaxy", asked);
        assert!(
            said.contains(&format!("`{asked}`: fleetctl fetches no roles"))
                && said.ends_with("--- exit 2"),
            "{said}"
        );
    }
}

#[test]
fn a_result_that_failed_is_judged_and_a_task_that_came_to_none_is_not() {
    let judged = [
        "ping: {foo: 1}",
        "file: {state: directory}",
        "copy: {foo: 1}",
        "fail: {msg: {a: 1}}",
        "assert: {that: false}",
        "include_vars: nope.yml",
        "group_by: {}",
    ];
    let not_judged = [
        "ping: {data: '{{ nope }}'}",
        "debug: {msg: '{{ nope }}'}",
        "set_fact: {a: '{{ nope }}'}",
        "debug: {foo: 1}",
        "fail: {foo: 1}",
        "ping: a b",
        "template: {src: nope.j2, dest: /x}",
    ];
    for (tasks, failed) in [(&judged, false), (&not_judged, true)] {
        for task in tasks {
            for more in ["", "\n      loop: [1]", "\n      delegate_to: localhost"] {
                let desk = Desk::local(&format!(
                    "  tasks:
    - {task}
      failed_when: false
      ignore_errors: true
      register: said{more}
    - debug: {{msg: 'failed {{{{ said.failed }}}}'}}
"
                ));
                let said = play(&desk, "");
                let expected = format!("\"failed {}\"", if failed { "True" } else { "False" });
                assert!(said.contains(&expected), "{task}{more}\n{said}");
            }
        }
    }
}

#[test]
fn nothing_is_no_number_where_a_role_needs_one() {
    let desk = Desk::local(
        "  tasks:
    - validate_argument_spec:
        argument_spec: {n: {type: int, required: true}, s: {required: true}, l: {type: list}}
        provided_arguments: {n: null, s: null, l: null}
      ignore_errors: true
      register: said
    - debug: {msg: '{{ said.argument_errors | join }}'}
",
    );
    assert_eq!(
        messages(&play(&desk, "")).last(),
        Some(
            &r#""argument 'n' is of type NoneType and we were unable to convert to int: \"None\" cannot be converted to an int""#
        )
    );
}

#[test]
fn arguments_that_no_module_takes_can_be_rescued() {
    let desk = Desk::local(
        "  tasks:
    - block:
        - ping: {foo: 1}
      rescue:
        - debug: {msg: '{{ ansible_failed_result.msg }}'}
",
    );
    assert_eq!(
        messages(&play(&desk, "")),
        ["\"Unsupported parameters for (ping) module: foo\""]
    );
}

#[test]
fn a_text_takes_what_python_makes_of_other_values() {
    let desk = Desk::local(
        "  vars: {mapping: {a: [true, x]}}
  tasks:
    - copy: {dest: $DESK/json, content: '{{ mapping }}'}
    - copy: {dest: $DESK/truth, content: '{{ true }}'}
    - copy: {dest: $DESK/lines, content: ''}
    - lineinfile: {path: $DESK/lines, line: '{{ mapping }}'}
",
    );
    play(&desk, "");
    assert_eq!(desk.read("json"), "{\"a\": [true, \"x\"]}");
    assert_eq!(desk.read("truth"), "True");
    assert_eq!(desk.read("lines"), "{'a': [True, 'x']}\n");
    // A plan is stricter: nobody wants such a line.
    let said = desk.run("plan -i here.yml site.yml");
    assert!(said.contains("not a mapping"), "{said}");
}

#[test]
fn questions_that_nobody_answers_have_their_defaults() {
    let desk = Desk::new();
    desk.file(
        "site.yml",
        r#"
- hosts: web1
  connection: local
  gather_facts: false
  vars_prompt:
    - {name: open, private: false, default: [1]}
    - {name: hidden, encrypt: sha512_crypt, salt_size: 8, default: secret}
    - {name: said, prompt: What}
    - {name: given, prompt: Not asked}
  tasks:
    - debug: {msg: '{{ open }}, {{ said }}, {{ given }}'}
    - debug: {msg: '{{ hidden | regex_replace("[$]6[$]([^$]{8}[$]|rounds=[0-9]+[$][^$]{8}[$]).*", "hashed") }}'}
"#,
    );
    let said = desk.run("play -i hosts.yml site.yml -e given=yes");
    assert!(said.ends_with("--- exit 0"), "{said}");
    assert_eq!(messages(&said), ["\"[1], None, yes\"", "\"hashed\""]);
}

#[test]
fn what_set_stats_has_set_stands_below_the_recap() {
    let desk = Desk::local(
        "  tasks:
    - set_stats: {data: {a: 1, b: [x]}}
    - set_stats: {data: {a: 2}}
    - set_stats: {data: {own: true}, per_host: true}
",
    );
    assert!(!play(&desk, "").contains("CUSTOM STATS"));
    desk.file("ansible.cfg", "[defaults]\nshow_custom_stats = true\n");
    let below = "
CUSTOM STATS: ******************************************************************
\tlocalhost: { \"own\": true}

\tRUN: { \"a\": 3, \"b\": [  \"x\" ]}

--- exit 0";
    let said = play(&desk, "");
    assert!(said.ends_with(below), "{said}");
}
