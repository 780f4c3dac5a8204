//! An inventory as `ansible-inventory` shows it. Values are shown as written, not rendered.
//!
//! [`list`] and [`host`] write JSON, YAML or TOML; [`graph`] draws a tree.

mod form;

use std::{
    collections::{BTreeMap, HashSet},
    fmt::Write as _,
};

use fleet_yaml::{Diagnostic, Node};
use indexmap::IndexMap;
use minijinja::Value;

use super::{
    ALL, Group, Host, Inventory, Layer, LayerKind, Limit, UNGROUPED,
    mistake::{code, meant, placeless},
};

pub use form::Form;

use form::{Marks, marked, printed};

/// Names that Ansible sets itself and does not show.
const HIDDEN: [&str; 6] = [
    "group_names",
    "groups",
    "inventory_dir",
    "inventory_file",
    "inventory_hostname",
    "inventory_hostname_short",
];

/// What is shown of an inventory, and how.
#[derive(Clone, Copy, Debug, Default)]
pub struct Choice<'a> {
    /// How it is written.
    pub form: Form,
    /// Variables stay with the group or host that has them; else every host has all of its own.
    pub export: bool,
    /// Only these hosts.
    pub limit: Option<&'a Limit>,
    /// Variables over those of every host, unless it is exported.
    pub extra_vars: Option<&'a IndexMap<String, Node>>,
}

/// `--list`: all groups, hosts and variables. As JSON in the form of scripts, else in the form of inventories of that
/// format.
///
/// # Errors
///
/// What cannot be written as TOML.
pub fn list(inventory: &Inventory, choice: Choice<'_>) -> Result<String, Diagnostic> {
    let shown = Shown::new(inventory, choice);
    let value = match choice.form {
        Form::Json => shown.groups_and_meta(),
        Form::Yaml => shown.tree(),
        Form::Toml => shown.tables(),
    };
    form::text(&value, choice.form)
}

/// `--host`: the variables of a host, merged.
///
/// # Errors
///
/// A host that there is not, and what cannot be written as TOML.
pub fn host(inventory: &Inventory, name: &str, choice: Choice<'_>) -> Result<String, Diagnostic> {
    let Some(host) = inventory.host(name) else {
        let mistake = placeless(code::HOST, format!("no host `{name}` in the inventory"));
        let names = inventory.hosts().map(|host| host.name.as_str());
        return Err(meant(mistake, name, names));
    };
    let shown = Shown::new(inventory, choice);
    form::text(&map(shown.host_vars(host, Marks::None)), choice.form)
}

/// `--graph`: groups and hosts as a tree, with their variables if wanted. Ends with a line break.
///
/// # Errors
///
/// A group that there is not.
pub fn graph(inventory: &Inventory, group: &str, vars: bool) -> Result<String, Diagnostic> {
    let Some(root) = inventory.group(group) else {
        let mistake = placeless(code::GROUP, format!("no group `{group}` in the inventory"));
        let names = inventory.groups().map(|group| group.name.as_str());
        return Err(meant(mistake, group, names));
    };
    let mut text = String::new();
    Shown::new(inventory, Choice::default()).branch(root, vars, 0, &mut text);
    Ok(text)
}

struct Shown<'a> {
    inventory: &'a Inventory,
    export: bool,
    extra_vars: Option<&'a IndexMap<String, Node>>,
    within: Option<HashSet<String>>,
}

/// Fields in order of their names.
type Fields = BTreeMap<String, Value>;

impl<'a> Shown<'a> {
    fn new(inventory: &'a Inventory, choice: Choice<'a>) -> Shown<'a> {
        let within = choice.limit.map(|limit| inventory.within(limit));
        Shown {
            inventory,
            export: choice.export,
            extra_vars: choice.extra_vars.filter(|_| !choice.export),
            within: within.map(|hosts| hosts.into_iter().collect()),
        }
    }

    fn has(&self, host: &Host) -> bool {
        self.within
            .as_ref()
            .is_none_or(|within| within.contains(&host.name))
    }

    /// The hosts directly in a group. Those of `all` are shown as `ungrouped`.
    fn hosts(&self, group: &'a Group) -> impl Iterator<Item = &'a Host> {
        let hosts = self.inventory.direct_hosts(group);
        hosts.filter(|host| group.name != ALL && self.has(host))
    }

    fn host_vars(&self, host: &Host, marks: Marks) -> Fields {
        let mut layers = self.inventory.layers(&host.name);
        if self.export {
            layers.retain(|layer| layer.kind >= LayerKind::InventoryHost);
        }
        let mut vars = layered(&layers);
        let extra = self.extra_vars.into_iter().flatten();
        vars.extend(extra.map(|(name, value)| (name.as_str(), value)));
        fields(vars, marks)
    }

    fn group_vars(&self, group: &Group, marks: Marks) -> Fields {
        let layers = self.inventory.group_layers(group);
        fields(with_priority(group, &layers), marks)
    }

    /// The form that scripts print: groups, and the hosts' variables under `_meta`.
    fn groups_and_meta(&self) -> Value {
        let mut hostvars = Fields::new();
        for host in self.inventory.hosts().filter(|host| self.has(host)) {
            let vars = self.host_vars(host, Marks::Json);
            if !vars.is_empty() {
                hostvars.insert(host.name.clone(), map(vars));
            }
        }
        let mut groups = Fields::new();
        for group in self.inventory.groups() {
            let mut entry = Fields::new();
            let children = self.inventory.children(group);
            add_names(
                &mut entry,
                "children",
                children.map(|child| child.name.as_str()),
            );
            add_names(
                &mut entry,
                "hosts",
                self.hosts(group).map(|host| host.name.as_str()),
            );
            if self.export {
                add(&mut entry, "vars", self.group_vars(group, Marks::Json));
            }
            if !entry.is_empty() {
                groups.insert(group.name.clone(), map(entry));
            }
        }
        let profile = ("profile".to_owned(), Value::from("inventory_legacy"));
        let meta = Fields::from([("hostvars".to_owned(), map(hostvars)), profile]);
        groups.insert("_meta".to_owned(), map(meta));
        map(groups)
    }

    /// The form of a YAML inventory, each host's variables where it comes first.
    fn tree(&self) -> Value {
        let mut tree = Fields::new();
        if let Some(all) = self.inventory.group(ALL) {
            let entry = self.subtree(all, &mut HashSet::new(), &mut HashSet::new());
            add(&mut tree, ALL, entry);
        }
        map(tree)
    }

    fn subtree(
        &self,
        group: &'a Group,
        seen_groups: &mut HashSet<&'a str>,
        seen_hosts: &mut HashSet<&'a str>,
    ) -> Fields {
        seen_groups.insert(&group.name);
        let mut children = Fields::new();
        for child in self.inventory.children(group) {
            if seen_groups.contains(child.name.as_str()) {
                children.insert(child.name.clone(), map(Fields::new()));
                continue;
            }
            let entry = self.subtree(child, seen_groups, seen_hosts);
            if !entry.is_empty() {
                children.insert(child.name.clone(), map(entry));
            }
        }
        let hosts = self.hosts(group).map(|host| {
            let first = seen_hosts.insert(&host.name);
            let vars = if first {
                self.host_vars(host, Marks::None)
            } else {
                Fields::new()
            };
            (host.name.clone(), map(vars))
        });
        let hosts = hosts.collect();
        let mut entry = Fields::new();
        add(&mut entry, "children", children);
        add(&mut entry, "hosts", hosts);
        if self.export {
            add(&mut entry, "vars", self.group_vars(group, Marks::None));
        }
        entry
    }

    /// The form of a TOML inventory: a table a group.
    fn tables(&self) -> Value {
        let mut tables = Fields::new();
        let mut seen = HashSet::new();
        let mut groups: Vec<&Group> = self.inventory.groups().collect();
        groups.sort_by_key(|group| (group.name != ALL, &group.name));
        for group in groups {
            let mut entry = Fields::new();
            let children = self
                .inventory
                .children(group)
                .map(|child| child.name.as_str());
            add_names(
                &mut entry,
                "children",
                children.filter(|child| *child != UNGROUPED),
            );
            let hosts = self.hosts(group).map(|host| {
                let vars = if seen.insert(host.name.as_str()) {
                    self.host_vars(host, Marks::None)
                } else {
                    Fields::new()
                };
                (host.name.clone(), map(vars))
            });
            let hosts = hosts.collect();
            add(&mut entry, "hosts", hosts);
            if self.export {
                add(&mut entry, "vars", self.group_vars(group, Marks::None));
            }
            add(&mut tables, &group.name, entry);
        }
        map(tables)
    }

    fn branch(&self, group: &'a Group, vars: bool, depth: usize, text: &mut String) {
        line(text, depth, &format!("@{}:", group.name));
        for child in self.inventory.children(group) {
            self.branch(child, vars, depth + 1, text);
        }
        for host in self.hosts(group) {
            line(text, depth + 1, &host.name);
            if vars {
                let layers = self.inventory.layers(&host.name);
                variables(text, depth + 2, layered(&layers));
            }
        }
        if vars {
            let layers = self.inventory.group_layers(group);
            variables(text, depth + 1, with_priority(group, &layers));
        }
    }
}

fn map(fields: Fields) -> Value {
    Value::from_pairs(
        fields
            .into_iter()
            .map(|(name, value)| (Value::from(name), value)),
    )
}

/// Adds what is not empty.
fn add(entry: &mut Fields, key: &str, fields: Fields) {
    if !fields.is_empty() {
        entry.insert(key.to_owned(), map(fields));
    }
}

fn add_names<'a>(entry: &mut Fields, key: &str, names: impl Iterator<Item = &'a str>) {
    let names: Vec<Value> = names.map(Value::from).collect();
    if !names.is_empty() {
        entry.insert(key.to_owned(), Value::from(names));
    }
}

fn line(text: &mut String, depth: usize, what: &str) {
    let bars = "  |".repeat(depth);
    let dashes = if depth > 0 { "--" } else { "" };
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{bars}{dashes}{what}");
}

fn variables(text: &mut String, depth: usize, vars: BTreeMap<&str, &Node>) {
    for (name, value) in vars {
        line(text, depth, &format!("{{{name} = {}}}", printed(value)));
    }
}

/// What counts of several layers, by name.
fn layered(layers: &[Layer]) -> BTreeMap<&str, &Node> {
    let vars = layers.iter().flat_map(|layer| layer.vars.iter());
    let shown = vars.filter(|(name, _)| !HIDDEN.contains(&name.as_str()));
    shown
        .map(|(name, variable)| (name.as_str(), &variable.value))
        .collect()
}

/// The variables of a group and its priority, which is kept apart from them.
fn with_priority<'a>(group: &'a Group, layers: &'a [Layer]) -> BTreeMap<&'a str, &'a Node> {
    let mut vars = layered(layers);
    let priority = group.priority_node.as_ref();
    vars.extend(priority.map(|node| ("ansible_group_priority", node)));
    vars
}

fn fields(vars: BTreeMap<&str, &Node>, marks: Marks) -> Fields {
    vars.into_iter()
        .map(|(name, node)| (name.to_owned(), marked(node, marks)))
        .collect()
}

#[cfg(test)]
mod tests {
    use fleet_yaml::render;
    use serde_json::{Value, json};

    use super::super::lab::{Lab, load};
    use super::*;

    fn lab() -> Inventory {
        let lab = Lab::new(&[
            (
                "i.yml",
                "a: {children: {c: {hosts: {h1: {v: !unsafe '{{ x }}', n: {z: 1, a: [null, \"it's\", 1.0, true]}}}, vars: {cv: '{{ y }}', ansible_group_priority: 5}}}}\nb: {children: {c: }, hosts: {h2: }}\nempty:\n",
            ),
            ("group_vars/all", "g: 1\n"),
            ("host_vars/h2", "hv: 2\n"),
        ]);
        lab.load(&["i.yml"])
    }

    fn parsed(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    fn exported() -> Choice<'static> {
        Choice {
            export: true,
            ..Choice::default()
        }
    }

    #[test]
    fn a_list_has_groups_and_all_variables_of_hosts() {
        let shown = list(&lab(), Choice::default()).unwrap();
        assert_eq!(
            parsed(&shown),
            json!({
                "_meta": {
                    "hostvars": {
                        "h1": {
                            "cv": "{{ y }}",
                            "g": 1,
                            "n": {"a": [null, "it's", 1.0, true], "z": 1},
                            "v": {"__ansible_unsafe": "{{ x }}"},
                        },
                        "h2": {"g": 1, "hv": 2},
                    },
                    "profile": "inventory_legacy",
                },
                "a": {"children": ["c"]},
                "all": {"children": ["ungrouped", "a", "b", "empty"]},
                "b": {"children": ["c"], "hosts": ["h2"]},
                "c": {"hosts": ["h1"]},
            })
        );
    }

    #[test]
    fn json_is_written_as_python_writes_it() {
        let inventory = load(
            "i.yml",
            "all: {hosts: {h: {t: 2024-01-01 12:01:01 -7, d: 2024-1-1, f: [1.0, 1e16, 0.00001, .inf, -.inf, .nan], s: \"ü\\e\\t\\\"\", e: {}, l: []}}}",
        );
        insta::assert_snapshot!(host(&inventory, "h", Choice::default()).unwrap(), @r#"
        {
            "d": "2024-1-1",
            "e": {},
            "f": [
                1.0,
                "1e16",
                1e-05,
                Infinity,
                -Infinity,
                NaN
            ],
            "l": [],
            "s": "ü\u001b\t\"",
            "t": "2024-01-01 12:01:01 -7"
        }
        "#);
        let list = list(&inventory, Choice::default()).unwrap();
        assert!(
            list.contains("\"t\": \"2024-01-01T12:01:01-07:00\""),
            "{list}"
        );
    }

    #[test]
    fn an_export_leaves_variables_with_their_owner() {
        let shown = parsed(&list(&lab(), exported()).unwrap());
        assert_eq!(shown["_meta"]["hostvars"]["h2"], json!({"hv": 2}));
        assert_eq!(
            shown["c"]["vars"],
            json!({"ansible_group_priority": 5, "cv": "{{ y }}"})
        );
        assert_eq!(shown["all"]["vars"], json!({"g": 1}));
    }

    #[test]
    fn a_limit_narrows_a_list() {
        let limit = Limit::parse("h2").unwrap();
        let choice = Choice {
            limit: Some(&limit),
            ..Choice::default()
        };
        let shown = parsed(&list(&lab(), choice).unwrap());
        assert_eq!(shown["_meta"]["hostvars"], json!({"h2": {"g": 1, "hv": 2}}));
        assert_eq!(shown.get("c"), None);
        let nobody = Limit::parse("nobody").unwrap();
        let choice = Choice {
            limit: Some(&nobody),
            ..Choice::default()
        };
        assert_eq!(
            parsed(&list(&lab(), choice).unwrap())["_meta"]["hostvars"],
            json!({})
        );
    }

    #[test]
    fn extra_variables_are_every_hosts() {
        let extra = crate::extra_vars::read(&["g=9".to_owned()], &Default::default()).unwrap();
        let choice = Choice {
            extra_vars: Some(&extra),
            ..Choice::default()
        };
        assert_eq!(
            parsed(&host(&lab(), "h2", choice).unwrap())["g"],
            json!("9")
        );
        let choice = Choice {
            export: true,
            ..choice
        };
        assert_eq!(
            parsed(&host(&lab(), "h2", choice).unwrap()),
            json!({"hv": 2})
        );
    }

    #[test]
    fn yaml_gives_each_host_its_variables_once() {
        let choice = Choice {
            form: Form::Yaml,
            ..Choice::default()
        };
        insta::assert_snapshot!(list(&lab(), choice).unwrap(), @"
        all:
          children:
            a:
              children:
                c:
                  hosts:
                    h1:
                      cv: '{{ y }}'
                      g: 1
                      n:
                        a:
                        - null
                        - it's
                        - 1.0
                        - true
                        z: 1
                      v: '{{ x }}'
            b:
              children:
                c: {}
              hosts:
                h2:
                  g: 1
                  hv: 2
        ");
        let exported = Choice {
            form: Form::Yaml,
            ..exported()
        };
        let again = load("again.yml", &list(&lab(), exported).unwrap());
        assert_eq!(
            host(&again, "h2", Choice::default()).unwrap(),
            host(&lab(), "h2", Choice::default()).unwrap()
        );
    }

    #[test]
    fn toml_is_an_inventory_again() {
        let inventory = load(
            "i.yml",
            "all: {vars: {a: 1}, children: {web: {hosts: {'w.1': {l: [1, {x: 'a b'}], m: {n: 2.5, e: {}}}, w2: }, vars: {b: \"x\\n\"}}, db: {children: {web: }}}}",
        );
        let choice = Choice {
            form: Form::Toml,
            ..exported()
        };
        let shown = list(&inventory, choice).unwrap();
        insta::assert_snapshot!(shown, @r#"
        [all]
        children = [
            "web",
            "db",
        ]

        [all.vars]
        a = 1

        [db]
        children = [
            "web",
        ]

        [web.hosts."w.1"]
        l = [
            1,
            { x = "a b" },
        ]

        [web.hosts."w.1".m]
        n = 2.5

        [web.hosts."w.1".m.e]

        [web.hosts.w2]

        [web.vars]
        b = "x\n"
        "#);
        let again = load("again.toml", &shown);
        assert_eq!(
            host(&again, "w.1", Choice::default()).unwrap(),
            host(&inventory, "w.1", Choice::default()).unwrap()
        );
        let null = load("i.yml", "all: {hosts: {h: {n: null}}}");
        insta::assert_snapshot!(list(&null, choice).unwrap_err(), @"`n` is null, and TOML has no way to say so (show it as YAML or as JSON)");
    }

    #[test]
    fn a_graph_is_a_tree() {
        insta::assert_snapshot!(graph(&lab(), "all", false).unwrap(), @"
        @all:
          |--@ungrouped:
          |--@a:
          |  |--@c:
          |  |  |--h1
          |--@b:
          |  |--@c:
          |  |  |--h1
          |  |--h2
          |--@empty:
        ");
        insta::assert_snapshot!(graph(&lab(), "b", true).unwrap(), @r#"
        @b:
          |--@c:
          |  |--h1
          |  |  |--{cv = {{ y }}}
          |  |  |--{g = 1}
          |  |  |--{n = {'z': 1, 'a': [None, "it's", 1.0, True]}}
          |  |  |--{v = {{ x }}}
          |  |--{ansible_group_priority = 5}
          |  |--{cv = {{ y }}}
          |--h2
          |  |--{g = 1}
          |  |--{hv = 2}
        "#);
    }

    #[test]
    fn a_host_is_its_variables_merged() {
        let shown = |name| parsed(&host(&lab(), name, Choice::default()).unwrap());
        assert_eq!(shown("h2"), json!({"g": 1, "hv": 2}));
        assert_eq!(
            shown("localhost"),
            json!({"ansible_connection": "local", "g": 1})
        );
    }

    #[test]
    fn unknown_names_are_told() {
        let inventory = load("i.ini", "[webservers]\nweb1\n");
        insta::assert_snapshot!(render(&graph(&inventory, "webserver", false).unwrap_err(), false), @"
        error[F0205]: no group `webserver` in the inventory
         |
         = help: did you mean `webservers`?
        ");
        insta::assert_snapshot!(render(&host(&inventory, "wbe1", Choice::default()).unwrap_err(), false), @"
        error[F0204]: no host `wbe1` in the inventory
         |
         = help: did you mean `web1`?
        ");
    }
}
