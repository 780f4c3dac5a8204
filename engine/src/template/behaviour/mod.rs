//! How templates behave, from the outside.

mod conditions;
mod files;
mod lookups;
mod python;
mod undefined;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fleet_yaml::{Node, Source, load};
use minijinja::Value;

use super::*;
use crate::variables::Variable;

/// The variables of a YAML text, and beside them `unknown`, `pending` and a planned `result`.
#[derive(Debug)]
struct Vars(Node);

impl Scope for Vars {
    fn get(&self, name: &str) -> Option<Variable> {
        match name {
            "unknown" => Some(Variable::Unknown),
            "pending" => Some(Variable::Pending(PendingId(7))),
            "from_host" => Some(Variable::Data(Value::from("{{ never }}"))),
            "result" => Some(Variable::Data(Value::from_pairs([
                ("changed", unknown_value("result.changed")),
                ("stdout", unknown_value("result.stdout")),
                ("cmd", Value::from("id")),
            ]))),
            _ => self.0.get(name).cloned().map(Variable::Written),
        }
    }

    fn names(&self) -> Vec<String> {
        self.0
            .as_map()
            .unwrap()
            .names()
            .map(str::to_owned)
            .collect()
    }

    fn origin(&self, name: &str) -> Option<String> {
        self.0.get(name).map(|node| node.span.to_string())
    }
}

/// A controller with real files.
#[derive(Debug)]
struct Disk;

impl Controller for Disk {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        std::fs::read(path)
    }

    fn write(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        std::fs::write(path, content)
    }

    fn exists(&self, path: &Path) -> bool {
        path.exists()
    }

    fn is_dir(&self, path: &Path) -> bool {
        path.is_dir()
    }

    fn is_link(&self, path: &Path) -> bool {
        path.is_symlink()
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        std::fs::read_dir(path)?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect()
    }

    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        path.canonicalize()
    }

    fn environment(&self, name: &str) -> Option<String> {
        (name == "HOME").then(|| "/home/ops".to_owned())
    }

    fn run(&self, command: &str, directory: &Path) -> io::Result<CommandOutput> {
        let output = std::process::Command::new("/bin/sh")
            .args(["-c", command])
            .current_dir(directory)
            .output()?;
        Ok(CommandOutput {
            status: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }

    fn fetch(&self, _: &str) -> io::Result<String> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn random(&self) -> u64 {
        4
    }

    fn now(&self) -> f64 {
        1_700_000_000.5
    }

    fn time_zone(&self) -> String {
        "UTC".to_owned()
    }
}

fn node(text: &str) -> Node {
    load(Source::new("site.yml", text)).unwrap().documents[0].clone()
}

struct World {
    directory: tempfile::TempDir,
    templar: Templar,
    scope: Arc<dyn Scope>,
}

impl World {
    fn new(vars: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let playbook_dir = directory.path().to_owned();
        let controller = Arc::new(Disk);
        let templar = Templar::new(TemplateSettings {
            search_path: Vec::new(),
            playbook_dir,
            controller,
            vault: crate::vault::Vault::default(),
            managed: "Ansible managed".to_owned(),
        });
        Self {
            directory,
            templar,
            scope: Arc::new(Vars(node(vars))),
        }
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.directory.path().join(name), text).unwrap();
    }

    fn evaluated(&self, value: &str) -> Evaluated<serde_json::Value> {
        let outcome = self.templar.value(&node(value), &self.scope).unwrap();
        outcome.map(|value| serde_json::to_value(&value).unwrap())
    }

    fn value(&self, value: &str) -> serde_json::Value {
        self.evaluated(value).known().unwrap()
    }

    /// A template in double quotes.
    fn text(&self, template: &str) -> serde_json::Value {
        self.value(&serde_json::to_string(template).unwrap())
    }

    fn error(&self, value: &str) -> String {
        let error = self.templar.value(&node(value), &self.scope).unwrap_err();
        fleet_yaml::render(error.diagnostic(), false)
    }

    fn truth(&self, condition: &str) -> Evaluated<bool> {
        self.templar.truth(&node(condition), &self.scope).unwrap()
    }

    fn file(&self, name: &str, text: &str) -> Result<Evaluated<String>, EvalError> {
        let path = self.directory.path().join(name);
        self.templar.file(
            &path,
            text,
            &self.scope,
            BTreeMap::new(),
            &FileSyntax::default(),
        )
    }

    fn rendered(&self, text: &str) -> String {
        self.file("test.j2", text).unwrap().known().unwrap()
    }
}

fn unknown(names: &[&str]) -> Evaluated<serde_json::Value> {
    Evaluated::Unknown {
        because: names.iter().map(|name| (*name).to_owned()).collect(),
    }
}

#[test]
fn templates_give_what_they_give_in_ansible() {
    let source = Source::new("as_ansible.yml", include_str!("../as_ansible.yml"));
    let cases = load(source).unwrap().documents[0].clone();
    let world = World {
        scope: Arc::new(Vars(cases.get("vars").unwrap().clone())),
        ..World::new("{}")
    };
    let mut wrong = Vec::new();
    for case in cases.get("values").unwrap().as_seq().unwrap() {
        let template = case.get("template").unwrap();
        let expected = case.get("gives").unwrap().to_json();
        match world.templar.value(template, &world.scope) {
            Ok(Evaluated::Known(value)) if serde_json::to_value(&value).unwrap() == expected => {}
            other => wrong.push(format!("{template:?} gives {other:?}")),
        }
    }
    for case in cases.get("conditions").unwrap().as_seq().unwrap() {
        let condition = case.get("when").unwrap();
        let expected = case.get("holds").unwrap().as_bool().unwrap();
        match world.templar.truth(condition, &world.scope) {
            Ok(Evaluated::Known(holds)) if holds == expected => {}
            other => wrong.push(format!("{condition:?} is {other:?}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_single_expression_keeps_its_type_and_text_around_it_makes_a_text() {
    let world = World::new("{n: 3}");
    assert_eq!(world.text("{{ n }}"), 3);
    assert_eq!(world.text("{{ n }} "), "3 ");
    assert_eq!(world.text("{{ [n, 'a'] }}"), serde_json::json!([3, "a"]));
    assert_eq!(
        world.value("a: '{{ n }}'\nb: ['{{ n }}', x]"),
        serde_json::json!({"a": 3, "b": [3, "x"]})
    );
}

#[test]
fn values_are_lazy_and_rendered_once_in_the_scope_of_their_use() {
    let world = World::new("{a: '{{ b }}', b: 'x{{ c.d }}', c: {d: 1, broken: '{{ nowhere }}'}}");
    assert_eq!(world.text("{{ a }}"), "x1");
    assert_eq!(
        world.text("{{ c.d }} {{ c.broken | default('none') }}"),
        "1 none"
    );
}

#[test]
fn data_from_a_host_is_never_rendered() {
    let world = World::new("{}");
    assert_eq!(world.text("{{ from_host }}"), "{{ never }}");
    assert_eq!(world.value("!unsafe '{{ never }}'"), "{{ never }}");
}

#[test]
fn omitted_items_are_left_out() {
    let world = World::new("{}");
    assert_eq!(
        world.value("{a: '{{ omit }}', b: [1, '{{ omit }}']}"),
        serde_json::json!({"b": [1]})
    );
    let alone = world
        .templar
        .value(&node("'{{ omit }}'"), &world.scope)
        .unwrap()
        .known()
        .unwrap();
    assert!(is_omit(&alone));
}

#[test]
fn what_is_not_known_makes_the_outcome_unknown() {
    let world = World::new("{via: '{{ unknown }}'}");
    for template in [
        "{{ unknown }}",
        "{{ unknown | default('x') }}",
        "{{ unknown == 1 }}",
        "{{ unknown + 1 }}",
        "{{ 'a' in unknown }}",
        "{{ unknown.split(',')[0] }}",
        "{{ 'x'.join([unknown]) }}",
        "{{ unknown ~ 'x' }}",
        "{% for x in unknown %}x{% endfor %}",
        "{% if unknown %}x{% endif %}",
        "{{ {'a': unknown} }}",
        "{{ [unknown] | sort }}",
    ] {
        assert_eq!(
            world.evaluated(&serde_json::to_string(template).unwrap()),
            unknown(&["unknown"]),
            "{template}"
        );
    }
    assert_eq!(world.evaluated("'{{ via }}'"), unknown(&["unknown"]));
    assert_eq!(
        world.evaluated("[1, {a: '{{ result.stdout }}'}]"),
        unknown(&["result.stdout"])
    );
    assert_eq!(
        world.evaluated("'{{ result.stdout + 1 }}'"),
        unknown(&["result.stdout"])
    );
}

#[test]
fn what_is_not_looked_at_may_be_unknown() {
    let world = World::new("{}");
    assert_eq!(world.text("{{ 'a' if true else unknown }}"), "a");
    assert_eq!(world.text("{{ unknown is defined }}"), true);
    assert_eq!(world.text("{{ result.cmd }}"), "id");
    assert_eq!(world.text("{{ [unknown, 2][1] }}"), 2);
    assert_eq!(world.text("{{ result is skipped }}"), false);
}

#[test]
fn pending_wins_over_unknown() {
    let world = World::new("{}");
    assert_eq!(
        world.evaluated("'{{ unknown }} {{ pending.stdout }}'"),
        Evaluated::Pending(PendingId(7))
    );
}

#[test]
fn one_false_condition_decides() {
    let world = World::new("{n: 3}");
    assert_eq!(world.truth("[n == 3, n > 1]"), Evaluated::Known(true));
    assert_eq!(
        world.truth("[result is changed, n == 4]"),
        Evaluated::Known(false)
    );
    assert_eq!(
        world.truth("[result is changed, n == 3]"),
        Evaluated::Unknown {
            because: vec!["result.changed".to_owned()]
        }
    );
    assert_eq!(
        world.truth("[result is changed, missing.x]"),
        Evaluated::Unknown {
            because: vec!["result.changed".to_owned()]
        }
    );
    assert_eq!(
        world.truth("[unknown, pending]"),
        Evaluated::Pending(PendingId(7))
    );
    assert_eq!(world.truth("yes"), Evaluated::Known(true));
    assert_eq!(world.truth("'{{ n == 3 }}'"), Evaluated::Known(true));
}

#[test]
fn places_are_found_in_blocks_and_behind_escapes() {
    let world = World::new("{}");
    assert!(
        world
            .error("a: |\n  one\n  two {{ gone }}\n")
            .contains("site.yml:3:10")
    );
    assert!(
        world
            .error(r#"a: "tab\t{{ 'q' }} {{ gone }}""#)
            .contains("site.yml:1:23")
    );
    assert!(world.error("a: '{{ gone }}'\n").contains("site.yml:1:8"));
}

#[test]
fn a_loop_without_end_is_stopped() {
    let world = World::new("{}");
    let endless =
        "'{% for a in range(100000) %}{% for b in range(100000) %}{{ a }}{% endfor %}{% endfor %}'";
    assert!(world.error(endless).contains("does not come to an end"));
}

#[test]
fn lists_and_dictionaries_of_a_template_can_change() {
    let world = World::new("{hosts: [a, b]}");
    let template = "{% set l = [] %}{% for h in hosts %}{% set _ = l.append({'name': h}) %}{% endfor %}{% set _ = l[0].update(x=1) %}{{ l }}";
    assert_eq!(
        world.text(template),
        serde_json::json!([{"name": "a", "x": 1}, {"name": "b"}])
    );
    assert_eq!(world.text("{% set l = [3, 1] %}{% set _ = l.extend([2]) %}{% set _ = l.sort() %}{{ l.pop() }}{{ l }}"), "3[1, 2]");
    assert_eq!(
        world.text("{% set l = hosts | list %}{% set _ = l.append('c') %}{{ l }}"),
        serde_json::json!(["a", "b", "c"])
    );
    // A variable changes for this template only.
    assert_eq!(
        world.text("{% set _ = hosts.append('c') %}{{ hosts }}"),
        serde_json::json!(["a", "b", "c"])
    );
    assert_eq!(world.text("{{ hosts }}"), serde_json::json!(["a", "b"]));
    assert!(
        world
            .error("'{{ (hosts | batch(1) | first).append(1) }}'")
            .contains("only a list made in the template itself can change")
    );
}

#[test]
fn a_list_cannot_hold_itself() {
    let world = World::new("{}");
    for template in [
        "{% set a = [] %}{% set _ = a.append(a) %}{{ a }}",
        "{% set a = [] %}{% set b = [a] %}{% set _ = a.append(b) %}{{ a }}",
        "{% set a = {} %}{% set b = {'a': a} %}{% set _ = a.update(b=b) %}{{ a }}",
    ] {
        assert!(
            world
                .error(&serde_json::to_string(template).unwrap())
                .contains("cannot hold itself")
        );
    }
}

#[test]
fn templates_inside_each_other_end_before_the_stack_does() {
    let chain: String = (0..200)
        .map(|at| format!("v{at}: '{{{{ v{} }}}}'\n", at + 1))
        .collect();
    let world = World::new(&(chain + "v200: end\n"));
    // As large as the stack of a worker thread.
    let thread = std::thread::Builder::new().stack_size(2 * 1024 * 1024);
    let outcome = thread
        .spawn(move || (world.text("{{ v160 }}"), world.error("'{{ v0 }}'")))
        .unwrap()
        .join()
        .unwrap();
    assert_eq!(outcome.0, "end");
    assert!(outcome.1.contains("too many templates inside each other"));
}

#[test]
fn time_comes_from_the_controller() {
    let world = World::new("{}");
    assert_eq!(
        world.text("{{ now(utc=true, fmt='%Y-%m-%d %H:%M:%S') }}"),
        "2023-11-14 22:13:20"
    );
    assert_eq!(world.text("{{ now().year }}"), 2023);
    assert_eq!(
        world.text("{{ '%Y' | strftime }} {{ '%j' | strftime(86400, utc=true) }}"),
        "2023 002"
    );
    assert_eq!(
        world.text("{{ ('2024-05-06' | to_datetime('%Y-%m-%d')).strftime('%d.%m.') }}"),
        "06.05."
    );
}

#[test]
fn addresses_are_understood() {
    let world = World::new("{}");
    for (query, expected) in [
        (
            "'192.168.1.5/24' | ipaddr('network')",
            serde_json::json!("192.168.1.0"),
        ),
        (
            "'192.168.1.5/24' | ipaddr('netmask')",
            serde_json::json!("255.255.255.0"),
        ),
        (
            "'192.168.1.0/24' | ipaddr('1')",
            serde_json::json!("192.168.1.1/24"),
        ),
        (
            "'192.168.1.0/24' | ipaddr('-1')",
            serde_json::json!("192.168.1.255/24"),
        ),
        (
            "'192.168.1.5/24' | ansible.utils.ipaddr('address')",
            serde_json::json!("192.168.1.5"),
        ),
        ("'192.168.1.5/24' | ipaddr('prefix')", serde_json::json!(24)),
        (
            "'192.168.1.5' | ipaddr('192.168.0.0/16')",
            serde_json::json!("192.168.1.5"),
        ),
        (
            "'10.0.0.1' | ipaddr('192.168.0.0/16')",
            serde_json::json!(false),
        ),
        (
            "['10.0.0.1', 'x', '::1'] | ipv4",
            serde_json::json!(["10.0.0.1"]),
        ),
        ("'fe80::1' | ipwrap", serde_json::json!("[fe80::1]")),
        ("'nonsense' | ipaddr", serde_json::json!(false)),
        (
            "'192.168.144.0/20' | ipsubnet(26, 3)",
            serde_json::json!("192.168.144.192/26"),
        ),
    ] {
        assert_eq!(
            world.text(&format!("{{{{ {query} }}}}")),
            expected,
            "{query}"
        );
    }
}

#[test]
fn a_check_finds_mistakes_without_any_variable() {
    let world = World::new("{}");
    let found = world.templar.check(&node(
        "- '{{ x | uppr }}'\n- ['{{ y is defind }}', '{{ ok | upper }}']\n- '{{ lookup(1 }}'\n- '{{ fetch(x) }}'\n- '{% macro m() %}{% endmacro %}{{ m() }}'\n",
    ));
    let messages: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(
        messages,
        [
            "site.yml:1:11: there is no filter `uppr` (did you mean `upper`?)",
            "site.yml:2:13: there is no test `defind` (did you mean `defined`?)",
            "site.yml:3:16: unexpected `}`, expected `,`",
            "site.yml:4:7: there is no function `fetch` (docs/language.md lists every function there is)",
        ]
    );
}

#[test]
fn encrypted_values_are_opened_and_never_rendered() {
    let world = World::new("{}");
    assert!(world.error("a: !vault 'x'").contains("vault"));
    let secret = crate::vault::VaultSecret::new("default", &"pw".to_owned().into());
    let sealed = crate::vault::seal(b"{{ 1 }}", &secret, "default", None).unwrap();
    let settings = TemplateSettings {
        search_path: Vec::new(),
        playbook_dir: "/".into(),
        controller: Arc::new(Disk),
        vault: crate::vault::Vault::new(vec![secret]),
        managed: "Ansible managed".to_owned(),
    };
    let sealed = sealed.replace('\n', "\n  ");
    let value = Templar::new(settings)
        .value(&node(&format!("v: !vault |\n  {sealed}")), &world.scope)
        .unwrap();
    let opened = value.known().unwrap().get_attr("v").unwrap();
    assert_eq!(opened.as_str(), Some("{{ 1 }}"));
}

#[test]
fn variables_of_another_host_are_rendered_when_they_are_taken() {
    let world = World::new("{}");
    let other: Arc<dyn Scope> = Arc::new(Vars(node(
        "{name: '{{ short }}.example', short: web1, bad: '{{ gone }}'}",
    )));
    let hostvars = world.templar.variables(&other);
    assert_eq!(
        hostvars.get_attr("name").unwrap().as_str(),
        Some("web1.example")
    );
    assert!(hostvars.get_attr("bad").unwrap().is_undefined());
}

#[test]
fn all_variables_of_a_host_do_not_hold_those_of_every_host() {
    let world = World::new("{}");
    let other: Arc<dyn Scope> = Arc::new(Vars(node("{hostvars: {h: 1}, name: web1}")));
    let all = world.templar.variables(&other);
    let names: Vec<String> = all
        .try_iter()
        .unwrap()
        .map(|name| name.to_string())
        .collect();
    assert_eq!(names, ["name"]);
}
