//! The JSON Schema that editors get.

use serde_json::{Value, json};

use crate::desk::Desk;

fn validator(what: &str) -> jsonschema::Validator {
    let said = Desk::new().output(&format!("schema {what}"));
    let schema: Value = serde_json::from_slice(&said.stdout).unwrap();
    jsonschema::draft202012::new(&schema).unwrap()
}

fn yaml(text: &str) -> Value {
    serde_yaml::from_str(text).unwrap()
}

#[test]
fn the_playbooks_of_this_repository_fit() {
    let playbooks = validator("playbook");
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../playbooks");
    let mut count = 0;
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "yml") {
            let book = yaml(&std::fs::read_to_string(&path).unwrap());
            let problems: Vec<String> = playbooks
                .iter_errors(&book)
                .map(|problem| format!("{}: {problem}", problem.instance_path()))
                .collect();
            assert_eq!(problems, Vec::<String>::new(), "{}", path.display());
            count += 1;
        }
    }
    assert!(count > 0);
}

#[test]
fn all_that_ansible_takes_fits() {
    let book = "
- hosts: [web, '!db']
  become: yes
  serial: [1, '50%']
  vars: {port: 80}
  roles: [common, {role: nginx, nginx_port: 80, tags: web}]
  tasks:
    - name: a file
      ansible.builtin.copy:
        dest: /etc/motd
        content: '{{ motd }}'
        mode: '0644'
      notify: restart
    - shell: echo hi
      args: {chdir: /tmp}
      register: said
      until: said.rc == 0
      retries: '{{ tries }}'
    - with_items: [1, 2]
      debug: msg=hi
    - block:
        - import_tasks: more.yml
      rescue:
        - ansible.builtin.include_role: {name: other}
      when: [a, b is defined]
    - community.docker.docker_container: {name: x}
  handlers:
    - name: restart
      listen: nginx
      service: {name: nginx, state: restarted}
- import_playbook: other.yml
- hosts: all
  tasks:
";
    let playbooks = validator("playbook");
    let book = yaml(book);
    let problems: Vec<String> = playbooks
        .iter_errors(&book)
        .map(|problem| format!("{}: {problem}", problem.instance_path()))
        .collect();
    assert_eq!(problems, Vec::<String>::new());
}

#[test]
fn mistakes_do_not_fit() {
    let tasks = validator("tasks");
    let fits = |text: &str| tasks.is_valid(&yaml(text));
    assert!(fits("- ping:\n- file: {path: /x, state: absent}"));
    assert!(!fits("- pingg:"), "a module");
    assert!(!fits("- ping:\n  whenn: x"), "a keyword");
    assert!(!fits("- file: {path: /x, stat: absent}"), "an argument");
    assert!(!fits("- file: {path: /x, state: gone}"), "a choice");
    assert!(fits("- file: {path: /x, state: '{{ state }}'}"));
    assert!(!fits("- block:\n    - pingg:"), "inside of a block");
    assert!(!fits("- ping:\n  tags: {a: b}"), "a type");
    assert!(
        !validator("playbook").is_valid(&json!([{"tasks": []}])),
        "no hosts"
    );
}

#[test]
fn a_module_has_a_schema_of_its_own() {
    let file = validator("ansible.builtin.file");
    assert!(file.is_valid(&json!({"path": "/x", "mode": "0644"})));
    assert!(!file.is_valid(&json!({"paht": "/x"})));
    assert!(Desk::new().run("schema fiel").ends_with("--- exit 11"));
}
