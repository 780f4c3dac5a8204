//! Whole playbooks and what is read of them.

use std::sync::Arc;

use fleet_yaml::Node;

use super::{
    Action, RoleCall, Step,
    testing::{Project, outline, texts},
};

fn all(play: &super::Play) -> String {
    play.sections
        .iter()
        .map(|section| outline(section))
        .collect::<Vec<_>>()
        .join(" | ")
}

fn handlers(play: &super::Play) -> Vec<String> {
    play.handlers.iter().map(|task| task.full_title()).collect()
}

/// A role with one task and one handler of its name.
fn role(name: &str) -> Vec<(String, String)> {
    vec![
        (
            format!("roles/{name}/tasks/main.yml"),
            format!("- {{name: {name} task, command: 'true', notify: {name} handler}}\n"),
        ),
        (
            format!("roles/{name}/handlers/main.yml"),
            format!("- {{name: {name} handler, debug: }}\n"),
        ),
        (
            format!("roles/{name}/vars/main.yml"),
            format!("var_{name}: 1\n"),
        ),
        (
            format!("roles/{name}/defaults/main.yml"),
            format!("default_{name}: 1\n"),
        ),
    ]
}

fn project(site: &str, roles: &[&str]) -> Project {
    let project = Project::of(&[("site.yml", site)]);
    for (name, text) in roles.iter().flat_map(|name| role(name)) {
        project.write(&name, &text);
    }
    project
}

#[test]
fn blocks_nest_and_hand_their_keywords_on() {
    let play = Project::of(&[(
        "site.yml",
        "
- hosts: all
  tags: play
  environment: {P: 1}
  tasks:
    - block:
        - {name: a, debug: , tags: [own], when: own, become: false, vars: {x: 2}}
        - block: [{name: b, debug: }]
          when: inner
      rescue: [{name: c, debug: }]
      always: [{name: d, debug: }]
      tags: outer, more
      when: [one, two]
      become: true
      environment: {B: 1}
      vars: {x: 1}
",
    )])
    .play();
    assert_eq!(all(&play), " | [a, [b] rescue: c always: d] | ");
    let tasks: Vec<_> = play.all_tasks().collect();
    let (a, b) = (&tasks[0].directives, &tasks[1].directives);
    assert_eq!(texts(&a.tags), ["play", "outer", "more", "own"]);
    assert_eq!(texts(&a.when), ["one", "two", "own"]);
    assert_eq!(a.r#become.as_ref().and_then(Node::as_bool), Some(false));
    assert_eq!(b.r#become.as_ref().and_then(Node::as_bool), Some(true));
    assert_eq!(texts(&b.when), ["one", "two", "inner"]);
    assert_eq!((a.environment.len(), a.vars.len()), (2, 1));
    assert_eq!(tasks[0].vars["x"].as_i64(), Some(2));
}

#[test]
fn a_tasks_own_notify_is_in_place_of_its_blocks() {
    let play = Project::of(&[(
        "site.yml",
        "
- hosts: all
  tasks:
    - block:
        - {command: a, notify: own}
        - {command: b}
      notify: outer
  handlers:
    - {name: own, debug: }
    - {name: outer, debug: }
",
    )])
    .play();
    let tasks: Vec<_> = play.all_tasks().collect();
    assert_eq!(texts(&tasks[0].directives.notify), Vec::<String>::new());
    assert_eq!(texts(&tasks[0].notify), ["own"]);
    assert_eq!(texts(&tasks[1].directives.notify), ["outer"]);
}

#[test]
fn roles_come_behind_those_that_they_depend_on() {
    let project = project(
        "
- hosts: all
  pre_tasks: [{name: pre, debug: }]
  roles: [{role: a, tags: t, when: w, x: 5, vars: {y: 6}}]
  tasks: [{import_role: {name: c}}, {name: last, debug: }]
  handlers: [{name: own, debug: }]
",
        &["a", "b", "c"],
    );
    project.write("roles/a/meta/main.yml", "dependencies: [b]\n");
    let play = project.play();
    assert_eq!(
        all(&play),
        "pre | [b : b task], [a : a task], [c : c task], last | "
    );
    assert_eq!(
        handlers(&play),
        ["b : b handler", "a : a handler", "own", "c : c handler"]
    );
    assert_eq!(
        play.roles
            .iter()
            .map(|role| role.name.as_str())
            .collect::<Vec<_>>(),
        ["a", "c"]
    );
    let Step::Block(b) = &play.sections[1][0] else {
        panic!("a role is a block");
    };
    let role = b.role.as_ref().unwrap();
    assert_eq!(role.parents[0].0, "a");
    let task = b.body[0].tasks().next().unwrap();
    assert_eq!(texts(&task.directives.tags), ["t"]);
    assert_eq!(texts(&task.directives.when), ["w"]);
    let names = |layers: &[Arc<super::Vars>]| -> Vec<String> {
        layers
            .iter()
            .flat_map(|vars| vars.keys().cloned())
            .collect()
    };
    assert_eq!(names(&role.defaults), ["default_a", "default_b"]);
    assert_eq!(names(&role.vars), ["var_a", "y", "var_b"]);
    assert_eq!(names(&role.params), ["x"]);
    assert_eq!(names(&play.roles[0].vars), ["var_b", "var_a"]);
    assert_eq!(play.roles[0].dependencies, ["b"]);
    assert_eq!(task.search[0], project.path().join("roles/b"));
    assert_eq!(task.search[1], project.path().join("roles/a"));
}

#[test]
fn two_uses_are_the_same_when_all_that_is_said_is_the_same() {
    let play = project(
        "
- hosts: all
  roles:
    - a
    - role: a
    - {role: a, become: true}
    - {role: a, tags: t}
    - {role: a, x: 1}
    - {role: a, vars: {x: 1}}
    - {role: a, when: w}
  tasks:
    - import_role: {name: a}
    - import_role: {name: a}
",
        &["a"],
    )
    .play();
    let uses: Vec<(u64, bool)> = play
        .roles
        .iter()
        .map(|role| (role.instance, role.allow_duplicates))
        .collect();
    assert_eq!(uses[0], uses[1]);
    assert_eq!(uses[0], uses[2]);
    let different: std::collections::HashSet<u64> =
        uses.iter().map(|(instance, _)| *instance).collect();
    assert_eq!(different.len(), 6);
    assert!(!uses[0].1 && uses[7].1, "an import may run again");
    assert_eq!(uses[7], uses[8]);
}

#[test]
fn static_imports_hand_their_keywords_on() {
    let project = Project::of(&[
        (
            "site.yml",
            "
- hosts: all
  vars: {which: sub/a}
  tasks:
    - import_tasks: '{{ which }}.yml'
      tags: t
      when: w
      vars: {x: 1}
",
        ),
        (
            "sub/a.yml",
            "- {name: first, debug: }\n- import_tasks: b.yml\n",
        ),
        (
            "sub/b.yml",
            "- {name: second, debug: }\n- import_tasks: c.yml\n",
        ),
        ("c.yml", "- {name: third, debug: }\n"),
    ]);
    let play = project.play();
    assert_eq!(all(&play), " | first, second, third | ");
    for task in play.all_tasks() {
        assert_eq!(texts(&task.directives.tags), ["t"]);
        assert_eq!(texts(&task.directives.when), ["w"]);
        assert!(task.directives.vars[0].contains_key("x"));
    }
}

#[test]
fn playbooks_import_one_another() {
    let project = Project::of(&[
        (
            "site.yml",
            "
- import_playbook: sub/web.yml
  vars: {x: outer}
  tags: t
  when: w
- {hosts: last}
",
        ),
        (
            "sub/web.yml",
            "- hosts: web\n  vars: {x: own}\n  tasks: [{import_tasks: '{{ x }}.yml'}]\n  handlers: [{name: h, debug: }]\n",
        ),
        ("sub/outer.yml", "- {name: included, debug: }\n"),
    ]);
    let reading = project.read();
    assert_eq!(project.told(&reading), Vec::<String>::new());
    let plays = &reading.playbook.plays;
    assert_eq!((plays.len(), plays[1].index), (2, 1));
    assert_eq!(plays[0].dir, project.path().join("sub"));
    assert_eq!(plays[0].imported[0]["x"].as_str(), Some("outer"));
    let task = plays[0].all_tasks().next().unwrap();
    assert_eq!(texts(&task.directives.tags), ["t"]);
    assert_eq!(texts(&task.directives.when), ["w"]);
    assert!(plays[0].handlers[0].directives.when.is_empty());
}

#[test]
fn a_role_says_what_it_takes() {
    let project = project("[{hosts: all, roles: [{role: a, web_port: 80}]}]", &["a"]);
    project.write(
        "roles/a/meta/argument_specs.yml",
        "argument_specs: {main: {short_description: Serves, options: {web_port: {type: int}}}}\n",
    );
    let play = project.play();
    assert_eq!(
        all(&play),
        " | [a : Validating arguments against arg spec 'main' - Serves, a : a task] | "
    );
    let check = play.all_tasks().next().unwrap();
    let arguments = check.action.arguments();
    assert_eq!(
        arguments["argument_spec"].to_json().to_string(),
        r#"{"web_port":{"type":"int"}}"#
    );
    assert_eq!(
        arguments["provided_arguments"].to_json().to_string(),
        r#"{"web_port":80}"#
    );
    assert_eq!(texts(&check.directives.tags), ["always"]);
}

#[test]
fn what_is_included_is_read_when_it_is_reached() {
    let project = Project::of(&[
        (
            "site.yml",
            "
- hosts: all
  become: true
  tasks:
    - include_tasks: {file: '{{ x }}.yml', apply: {tags: [applied], become: false}}
      vars: {y: 1}
      tags: own
      when: own
",
        ),
        (
            "more.yml",
            "- {name: one, debug: , notify: 'any {{ h }}'}\n- {name: two, debug: }\n",
        ),
    ]);
    let play = project.play();
    let (include, mut around) = project.include(&play);
    around.apply(&include.action.arguments()["apply"]);
    let books = project.books();
    let (path, steps) = books.tasks("more.yml", &include, &around).unwrap();
    assert_eq!(path, project.path().join("more.yml"));
    assert_eq!(outline(&steps), "one, two");
    let tasks: Vec<_> = steps.iter().flat_map(Step::tasks).collect();
    assert_eq!(texts(&tasks[0].directives.tags), ["applied"]);
    assert!(tasks[0].directives.when.is_empty());
    assert_eq!(
        tasks[0]
            .directives
            .r#become
            .as_ref()
            .and_then(Node::as_bool),
        Some(false)
    );
    assert_eq!(tasks[0].directives.include_params[0]["y"].as_i64(), Some(1));
    // The ids are the same in a plan and in its apply, and others for another seed.
    let again = project
        .books()
        .tasks("more.yml", &include, &around)
        .unwrap()
        .1;
    assert_eq!(again[0].tasks().next().unwrap().id, tasks[0].id);
    assert_eq!(tasks[1].id, tasks[0].id + 1);
    around.seed = 8;
    let other = books.tasks("more.yml", &include, &around).unwrap().1;
    assert_ne!(other[0].tasks().next().unwrap().id, tasks[0].id);
}

#[test]
fn a_file_that_changes_is_read_anew() {
    let project = Project::of(&[
        (
            "site.yml",
            "[{hosts: all, tasks: [{include_tasks: '{{ x }}'}]}]",
        ),
        ("more.yml", "- {name: one, debug: }\n"),
    ]);
    let (include, around) = project.include(&project.play());
    let books = project.books();
    let read = || outline(&books.tasks("more.yml", &include, &around).unwrap().1);
    assert_eq!(read(), "one");
    project.write("more.yml", "- {name: another, debug: }\n");
    assert_eq!(read(), "another");
}

#[test]
fn an_included_role_brings_its_handlers() {
    let project = project(
        "[{hosts: all, roles: [c], tasks: [{include_role: {name: '{{ x }}'}}]}]",
        &["a", "b", "c"],
    );
    project.write("roles/a/meta/main.yml", "dependencies: [b]\n");
    project.write("roles/a/tasks/other.yml", "- {name: other, debug: }\n");
    let (include, around) = project.include(&project.play());
    let call = RoleCall {
        name: "a".to_owned(),
        tasks_from: Some("other".to_owned()),
        public: Some(true),
        ..RoleCall::default()
    };
    let read = project.books().role(&call, &include, &around).unwrap();
    assert_eq!(outline(&read.block.body), "[b : b task], a : other");
    let role = read.block.role.as_ref().unwrap();
    assert!(role.public == Some(true) && role.allow_duplicates);
    let handlers: Vec<_> = read.handlers.iter().map(|task| task.full_title()).collect();
    assert_eq!(handlers, ["b : b handler", "a : a handler"]);
}

#[test]
fn what_an_include_cannot_find_is_told_at_its_place() {
    let project = Project::of(&[
        (
            "site.yml",
            "[{hosts: all, tasks: [{include_tasks: '{{ x }}'}, {include_role: {name: '{{ x }}'}}]}]",
        ),
        ("mine.yml", "- {debug: }\n"),
    ]);
    let play = project.play();
    let (include, around) = project.include(&play);
    let books = project.books();
    let told = |problems: Vec<fleet_yaml::Diagnostic>| project.plain(&problems[0].to_string());
    assert_eq!(
        told(books.tasks("mien.yml", &include, &around).unwrap_err()),
        "site.yml:1:39: Could not find or access 'mien.yml' on the Ansible Controller. (did you mean `mine.yml`?)"
    );
    assert_eq!(
        told(books.tasks("", &include, &around).unwrap_err()),
        "site.yml:1:23: No file specified for ansible.builtin.include_tasks"
    );
    let call = RoleCall {
        name: "nope".to_owned(),
        ..RoleCall::default()
    };
    let problem = told(books.role(&call, &include, &around).unwrap_err());
    assert!(
        problem.starts_with("site.yml:1:23: the role 'nope' was not found in roles:PROJECT"),
        "{problem}"
    );
}

#[test]
fn every_form_of_an_action_is_understood() {
    let play = Project::of(&[(
        "site.yml",
        "
- hosts: all
  tasks:
    - action: command echo hi chdir=/tmp
    - action: {module: command, cmd: echo hi}
    - action: {module: command echo hi, chdir: /tmp}
    - local_action: command echo hi
    - command: {_raw_params: echo hi}
    - command: echo hi
      args: {chdir: /tmp}
    - debug: '{{ all }}'
    - command: {}
      args: '{{ all }}'
    - action: '{{ name }} msg=hi'
",
    )])
    .play();
    let tasks: Vec<_> = play.all_tasks().collect();
    let argument = |index: usize, name: &str| {
        let node = tasks[index].action.arguments().get(name);
        node.and_then(|node: &Node| node.as_str().map(str::to_owned))
    };
    for index in 0..6 {
        assert_eq!(
            argument(index, "cmd").as_deref(),
            Some("echo hi"),
            "{index}"
        );
    }
    for index in [0, 2, 5] {
        assert_eq!(argument(index, "chdir").as_deref(), Some("/tmp"), "{index}");
    }
    assert_eq!(
        tasks[3]
            .directives
            .delegate_to
            .as_ref()
            .and_then(Node::as_str),
        Some("localhost")
    );
    assert!(tasks[6].args.is_some() && tasks[7].args.is_some());
    assert!(matches!(tasks[8].action, Action::Templated { .. }));
}

#[test]
fn loops_are_read_with_their_control() {
    let play = Project::of(&[(
        "site.yml",
        "
- hosts: all
  tasks:
    - debug:
      with_ansible.builtin.dict: {a: 1}
      loop_control:
        {loop_var: one, index_var: at, label: l, pause: 0.5, extended: true, extended_allitems: false, break_when: one == 2}
    - debug:
      loop: '{{ all }}'
",
    )])
    .play();
    let tasks: Vec<_> = play.all_tasks().collect();
    let first = tasks[0].r#loop.as_ref().unwrap();
    assert_eq!(
        (first.lookup.as_deref(), first.variable.as_str()),
        (Some("dict"), "one")
    );
    assert_eq!(first.index_variable.as_deref(), Some("at"));
    assert_eq!(texts(&first.break_when), ["one == 2"]);
    assert!(first.pause.is_some() && first.extended_allitems.is_some());
    let second = tasks[1].r#loop.as_ref().unwrap();
    assert_eq!((&second.lookup, second.variable.as_str()), (&None, "item"));
}

#[test]
fn all_keywords_of_a_play_are_taken() {
    let play = Project::of(&[(
        "site.yml",
        "
- hosts: all
  any_errors_fatal: true
  become_exe: /usr/bin/sudo
  become_flags: -H
  become_method: ansible.builtin.sudo
  become_user: root
  collections: [a.b]
  connection: smart
  fact_path: /etc/facts
  force_handlers: true
  gather_facts: false
  gather_subset: [min]
  gather_timeout: 5
  ignore_unreachable: true
  max_fail_percentage: 25
  module_defaults: {group/aws: {region: x}, command: {chdir: /}}
  order: shuffle
  port: 22
  user: me
  run_once: false
  serial: [1, '10%']
  strategy: ansible.builtin.free
  throttle: 2
  timeout: 10
  vars_prompt:
    - {name: secret, prompt: The secret, private: true, confirm: true, encrypt: sha512_crypt, salt_size: 8}
",
    )])
    .play();
    assert_eq!(
        play.connection.user.as_ref().and_then(Node::as_str),
        Some("me")
    );
    assert_eq!(play.prompts[0].name, "secret");
    assert_eq!(play.directives.collections, ["a.b"]);
    assert!(play.serial.is_some() && play.max_fail_percentage.is_some());
}

#[test]
fn mistakes_are_all_told_each_at_its_place() {
    let told = Project::told_of(
        "
- hosts: all
  tsaks: []
  strategy: debug
  serial: 0.5
  connection: paramiko
  roles: [missing]
  tasks:
    - tempalte: {src: a}
    - command: {cmd: a, chdri: /}
    - command: a
      become: perhaps
    - debug: {msg: '{{ a | defualt(1) }}'}
    - debug: {msg: '{{ undefined_name }}'}
    - {command: a, notify: nobody}
    - include_tasks: nowhere.yml
    - import_tasks: nowhere.yml
    - include_tasks: a.yml
      become: true
    - debug:
      loop: [1]
      with_items: [2]
    - include: a.yml
    - win_copy: {src: a}
    - {name: nothing}
    - import_tasks: a.yml
      loop: [1]
",
    );
    insta::assert_snapshot!(told.join("\n"), @r"
    site.yml:3:3: `tsaks` is no keyword that fleetctl knows (did you mean `tasks`?)
    site.yml:4:13: `strategy: debug` is not supported (take it out; `fleetctl plan` shows what a task would do)
    site.yml:5:11: `serial` takes a number of hosts, a percentage, or a list of them, not `0.5`
    site.yml:6:3: `connection: paramiko` is not supported (use `ssh`: it does what `paramiko` did)
    site.yml:7:11: the role 'missing' was not found in roles:PROJECT (set `roles_path` to where it is, or install it beside the playbook in `roles/`)
    site.yml:9:7: `tempalte` is no keyword or module that fleetctl knows (did you mean `template`?)
    site.yml:17:21: Could not find or access 'nowhere.yml' on the Ansible Controller.
    site.yml:19:7: 'become' is not a valid attribute for a TaskInclude (what is included takes it: write it below `apply:`, or on a block around `include_tasks`)
    site.yml:22:7: a task has one loop, and this is its second
    site.yml:23:7: `include` is gone (use `include_tasks`, read when a host reaches it, or `import_tasks`, read before the run)
    site.yml:24:7: `win_copy` is a module for Windows (fleetctl manages Linux servers)
    site.yml:25:7: this task has no module (a task is keywords and one module with its arguments)
    site.yml:26:7: You cannot use loops on 'import_tasks' statements. You should use 'include_tasks' instead.
    site.yml:26:21: Could not find or access 'a.yml' on the Ansible Controller.
    site.yml:10:25: `command` has no argument `chdri` (did you mean `chdir`?)
    site.yml:12:15: `become` takes yes or no, not `perhaps`
    site.yml:13:28: there is no filter `defualt` (did you mean `default`?)
    site.yml:15:28: no handler of this play answers to `nobody` (write one with that name, or that listens to it, below `handlers:`)
    site.yml:16:22: Could not find or access 'nowhere.yml' on the Ansible Controller.
    site.yml:18:22: Could not find or access 'a.yml' on the Ansible Controller.
    ");
}

#[test]
fn names_of_handlers_may_come_from_what_is_included() {
    let site = "
- hosts: all
  tasks:
    - {command: a, notify: late}
    - include_role: {name: a}
";
    let project = project(site, &["a"]);
    let told = project.told(&project.read());
    assert_eq!(told.len(), 1, "{told:?}");
    project.write(
        "roles/a/handlers/main.yml",
        "- {name: x, debug: , listen: [late, a handler]}\n",
    );
    assert_eq!(project.told(&project.read()), Vec::<String>::new());
    project.write("roles/a/handlers/main.yml", "");
    project.write("site.yml", &site.replace("name: a}", "name: '{{ any }}'}"));
    assert_eq!(project.told(&project.read()), Vec::<String>::new());
}

#[test]
fn a_module_of_somebody_elses_is_refused_where_it_is_sure_to_run() {
    let told = |when: &str| {
        let project = Project::of(&[(
            "site.yml",
            &format!("[{{hosts: all, tasks: [{{a.b.c: {{x: 1}}{when}}}]}}]"),
        )]);
        let reading = project.read();
        (reading.mistakes.len(), reading.warnings.len())
    };
    assert_eq!(told(""), (1, 0));
    assert_eq!(told(", when: x is defined"), (0, 1));
}

#[test]
fn files_of_another_kind_are_told_of() {
    let project = project("[{hosts: all, roles: [a]}]", &["a"]);
    for (file, text, told) in [
        (
            "roles/a/tasks/main.yml",
            "a: 1\n",
            "roles/a/tasks/main.yml:1:1: the tasks/main.yml file for role 'a' must contain a list of tasks",
        ),
        (
            "roles/a/vars/main.yml",
            "[]\n",
            "roles/a/vars/main.yml:1:1: the vars/main.yml file for role 'a' must contain a dictionary of variables",
        ),
        (
            "roles/a/meta/main.yml",
            "dependencies: [a]\n",
            "roles/a/meta/main.yml:1:16: A recursion loop was detected with the roles specified: 'a' depends on itself (a role must not depend on a role that depends on it)",
        ),
    ] {
        let path = project.path().join(file);
        let before = std::fs::read_to_string(&path).unwrap_or_default();
        project.write(file, text);
        assert_eq!(project.told(&project.read()), [told]);
        project.write(file, &before);
    }
}

#[test]
fn a_role_keeps_to_its_own_files() {
    let project = project(
        "[{hosts: all, tasks: [{import_role: {name: a, tasks_from: ../../out}}]}]",
        &["a"],
    );
    project.write("roles/out.yml", "- debug:\n");
    let told = project.told(&project.read());
    assert!(
        told[0].contains("as it is not inside the expected role path"),
        "{told:?}"
    );
}

#[test]
fn variables_of_a_role_may_lie_in_a_directory() {
    let project = project("[{hosts: all, roles: [a]}]", &[]);
    project.write("roles/a/tasks/main.yaml", "- debug:\n");
    project.write("roles/a/defaults/main/b.yml", "x: 2\ny: 2\n");
    project.write("roles/a/defaults/main/a.yml", "x: 1\n");
    let play = project.play();
    let defaults = &play.roles[0].defaults[0];
    assert_eq!(defaults["x"].as_i64(), Some(2));
    assert_eq!(defaults.len(), 2);
}

#[test]
fn a_play_may_be_checked_against_a_specification() {
    let project = Project::of(&[
        (
            "site.yml",
            "[{hosts: all, name: Web, validate_argspec: true}]",
        ),
        (
            "site.meta.yml",
            "argument_specs: {Web: {options: {x: {}}}}\n",
        ),
    ]);
    assert_eq!(
        all(&project.play()),
        "Validating arguments against arg spec Web |  | "
    );
    project.write("site.yml", "[{hosts: all, validate_argspec: Other}]");
    let told = project.told(&project.read());
    assert_eq!(
        told,
        ["site.yml:1:33: No argument spec named 'Other' in site.meta.yml"]
    );
}

#[test]
fn reserved_tags_are_warned_of_once() {
    let project = Project::of(&[(
        "site.yml",
        "[{hosts: all, tasks: [{debug: , tags: tagged}, {debug: , tags: [tagged]}]}]",
    )]);
    let warnings = project.read().warnings;
    assert_eq!(warnings.len(), 1);
    assert!(
        warnings[0]
            .message
            .starts_with("Found reserved tagnames in tags: [\"tagged\"]")
    );
}

#[test]
fn a_variable_that_nothing_sets_is_told_where_it_is_sure_to_be_missed() {
    let unset = |task: &str| {
        let project = Project::of(&[
            (
                "site.yml",
                &format!("- hosts: all\n  vars: {{listen_port: 80}}\n  tasks:\n    - {task}\n"),
            ),
            ("vars.yml", "from_file: 1\n"),
        ]);
        let reading = project.read();
        let names = reading.unset.into_iter().map(|unset| unset.name);
        names.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(unset("debug: {msg: '{{ listen_prot }}'}"), "listen_prot");
    assert_eq!(
        unset("debug: {msg: '{{ listen_port }} {{ ansible_host }} {{ item }}'}"),
        ""
    );
    assert_eq!(unset("{debug: , when: nobody and listen_port}"), "nobody");
    assert_eq!(unset("{debug: , when: listen_port and nobody}"), "");
    assert_eq!(unset("debug: {msg: '{{ nobody | default(1) }}'}"), "");
    assert_eq!(
        unset("{debug: {msg: '{{ nobody }}'}, when: nobody is defined}"),
        ""
    );
    assert_eq!(
        unset("{debug: {msg: '{{ nobody }}'}, ignore_errors: true}"),
        ""
    );
    assert_eq!(
        unset("{debug: {msg: '{{ nobody }}'}, vars: {nobody: 1}}"),
        ""
    );
    assert_eq!(
        unset("{block: [debug: {msg: '{{ nobody }}'}], rescue: [debug: ]}"),
        ""
    );
    assert_eq!(
        unset("{command: x, register: nobody}\n    - debug: {msg: '{{ nobody.rc }}'}"),
        ""
    );
    assert_eq!(
        unset("include_vars: vars.yml\n    - debug: {msg: '{{ from_file }} {{ nobody }}'}"),
        "nobody"
    );
    assert_eq!(
        unset("include_vars: '{{ any }}'\n    - debug: {msg: '{{ nobody }}'}"),
        ""
    );
}
