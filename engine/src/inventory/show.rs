//! An inventory as `ansible-inventory` shows it. Values are shown as written, not rendered.

use std::{
    collections::{BTreeMap, HashSet},
    fmt::Write as _,
};

use fleet_yaml::{Diagnostic, Kind, Node};
use serde_json::{Map, Value, json};

use super::{
    ALL, Group, Host, Inventory, Layer, LayerKind, Limit,
    mistake::{code, meant, placeless},
};

/// Names that Ansible sets itself and does not show.
const HIDDEN: [&str; 6] = [
    "group_names",
    "groups",
    "inventory_dir",
    "inventory_file",
    "inventory_hostname",
    "inventory_hostname_short",
];

/// `--list`: groups with their hosts and children, and the variables of every host under `_meta`.
/// For `export` variables stay with the group or host that has them.
///
/// # Errors
///
/// A limit that matches nothing.
pub fn list(
    inventory: &Inventory,
    export: bool,
    limit: Option<&Limit>,
) -> Result<Value, Diagnostic> {
    let shown = Shown::new(inventory, export, limit)?;
    let mut hostvars = Map::new();
    let mut hosts: Vec<&Host> = inventory.hosts().filter(|host| shown.has(host)).collect();
    hosts.sort_by(|a, b| a.name.cmp(&b.name));
    for host in hosts {
        let vars = shown.host_vars(host, true);
        if !vars.is_empty() {
            hostvars.insert(host.name.clone(), vars.into());
        }
    }
    let mut groups = BTreeMap::new();
    for group in inventory.groups() {
        let mut entry = Map::new();
        let children: Vec<Value> = inventory
            .children(group)
            .map(|child| child.name.clone().into())
            .collect();
        add(&mut entry, "children", Value::Array(children));
        let hosts = shown
            .hosts(group)
            .map(|host| host.name.clone().into())
            .collect();
        add(&mut entry, "hosts", Value::Array(hosts));
        if export {
            add(
                &mut entry,
                "vars",
                group_vars(inventory, group, true).into(),
            );
        }
        if !entry.is_empty() {
            groups.insert(group.name.clone(), Value::Object(entry));
        }
    }
    let meta = json!({ "hostvars": hostvars, "profile": "inventory_legacy" });
    let all = std::iter::once(("_meta".to_owned(), meta)).chain(groups);
    Ok(Value::Object(all.collect()))
}

/// `--list --yaml`: the inventory in the form of a YAML inventory, each host's variables where it
/// comes first.
///
/// # Errors
///
/// A limit that matches nothing.
pub fn yaml(
    inventory: &Inventory,
    export: bool,
    limit: Option<&Limit>,
) -> Result<Value, Diagnostic> {
    let shown = Shown::new(inventory, export, limit)?;
    let mut tree = Map::new();
    if let Some(all) = inventory.group(ALL) {
        let entry = shown.subtree(all, &mut HashSet::new(), &mut HashSet::new());
        add(&mut tree, ALL, entry.into());
    }
    Ok(tree.into())
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
    branch(inventory, root, vars, 0, &mut text);
    Ok(text)
}

/// `--host`: the variables of a host, merged.
///
/// # Errors
///
/// A host that there is not.
pub fn host(inventory: &Inventory, name: &str) -> Result<Value, Diagnostic> {
    let Some(host) = inventory.host(name) else {
        let mistake = placeless(code::HOST, format!("no host `{name}` in the inventory"));
        let names = inventory.hosts().map(|host| host.name.as_str());
        return Err(meant(mistake, name, names));
    };
    Ok(merged(&inventory.layers(&host.name), true).into())
}

struct Shown<'a> {
    inventory: &'a Inventory,
    export: bool,
    within: Option<HashSet<String>>,
}

impl<'a> Shown<'a> {
    fn new(
        inventory: &'a Inventory,
        export: bool,
        limit: Option<&Limit>,
    ) -> Result<Shown<'a>, Diagnostic> {
        let within = match limit {
            Some(_) => Some(inventory.select(ALL, limit)?.hosts.into_iter().collect()),
            None => None,
        };
        Ok(Shown {
            inventory,
            export,
            within,
        })
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

    fn host_vars(&self, host: &Host, marks: bool) -> Map<String, Value> {
        let mut layers = self.inventory.layers(&host.name);
        if self.export {
            layers.retain(|layer| layer.kind >= LayerKind::InventoryHost);
        }
        merged(&layers, marks)
    }

    fn subtree(
        &self,
        group: &'a Group,
        seen_groups: &mut HashSet<&'a str>,
        seen_hosts: &mut HashSet<&'a str>,
    ) -> Map<String, Value> {
        seen_groups.insert(&group.name);
        let mut children = BTreeMap::new();
        for child in self.inventory.children(group) {
            if seen_groups.contains(child.name.as_str()) {
                children.insert(child.name.clone(), json!({}));
                continue;
            }
            let entry = self.subtree(child, seen_groups, seen_hosts);
            if !entry.is_empty() {
                children.insert(child.name.clone(), entry.into());
            }
        }
        let mut hosts = BTreeMap::new();
        for host in self.hosts(group) {
            let first = seen_hosts.insert(&host.name);
            let vars = if first {
                self.host_vars(host, false)
            } else {
                Map::new()
            };
            hosts.insert(host.name.clone(), Value::Object(vars));
        }
        let mut entry = Map::new();
        add(
            &mut entry,
            "children",
            Value::Object(children.into_iter().collect()),
        );
        add(
            &mut entry,
            "hosts",
            Value::Object(hosts.into_iter().collect()),
        );
        if self.export {
            add(
                &mut entry,
                "vars",
                group_vars(self.inventory, group, false).into(),
            );
        }
        entry
    }
}

/// Adds what is not empty.
fn add(entry: &mut Map<String, Value>, key: &str, value: Value) {
    let empty = match &value {
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    };
    if !empty {
        entry.insert(key.to_owned(), value);
    }
}

fn branch(inventory: &Inventory, group: &Group, vars: bool, depth: usize, text: &mut String) {
    line(text, depth, &format!("@{}:", group.name));
    for child in inventory.children(group) {
        branch(inventory, child, vars, depth + 1, text);
    }
    if group.name != ALL {
        for host in inventory.direct_hosts(group) {
            line(text, depth + 1, &host.name);
            if vars {
                variables(text, depth + 2, layered(&inventory.layers(&host.name)));
            }
        }
    }
    if vars {
        let layers = inventory.group_layers(group);
        let mut all = layered(&layers);
        all.extend(
            group
                .priority_node
                .as_ref()
                .map(|node| ("ansible_group_priority", node)),
        );
        variables(text, depth + 1, all);
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
        let value = value.as_str().map_or_else(|| python(value), str::to_owned);
        line(text, depth, &format!("{{{name} = {value}}}"));
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

fn merged(layers: &[Layer], marks: bool) -> Map<String, Value> {
    layered(layers)
        .into_iter()
        .map(|(name, node)| (name.to_owned(), value(node, marks)))
        .collect()
}

fn group_vars(inventory: &Inventory, group: &Group, marks: bool) -> Map<String, Value> {
    let layers = inventory.group_layers(group);
    let mut vars = layered(&layers);
    vars.extend(
        group
            .priority_node
            .as_ref()
            .map(|node| ("ansible_group_priority", node)),
    );
    vars.into_iter()
        .map(|(name, node)| (name.to_owned(), value(node, marks)))
        .collect()
}

/// A value, the keys in it sorted. With `marks`, what must not be rendered and what is encrypted is
/// marked as Ansible marks it in JSON.
fn value(node: &Node, marks: bool) -> Value {
    let mark = match node.tag.as_deref() {
        Some("unsafe") => Some("__ansible_unsafe"),
        Some("vault") => Some("__ansible_vault"),
        _ => None,
    };
    if let Some(mark) = mark.filter(|_| marks && node.is_scalar()) {
        return json!({ mark: node.to_json() });
    }
    match &node.kind {
        Kind::Seq(items) => items.iter().map(|item| value(item, marks)).collect(),
        Kind::Map(map) => {
            let entries = map
                .iter()
                .map(|(key, item)| (key.key_text(), value(item, marks)));
            let sorted: BTreeMap<String, Value> = entries.collect();
            Value::Object(sorted.into_iter().collect())
        }
        _ => node.to_json(),
    }
}

/// A value as Python writes it, which is how Ansible shows variables in a graph.
fn python(node: &Node) -> String {
    match &node.kind {
        Kind::Null => "None".to_owned(),
        Kind::Bool(true) => "True".to_owned(),
        Kind::Bool(false) => "False".to_owned(),
        Kind::Int(number) => number.to_string(),
        Kind::Float(number) => format!("{number:?}"),
        Kind::Str(text) => quoted(text),
        Kind::Seq(items) => {
            format!(
                "[{}]",
                items.iter().map(python).collect::<Vec<_>>().join(", ")
            )
        }
        Kind::Map(map) => {
            let entry = |(key, value)| format!("{}: {}", python(key), python(value));
            format!(
                "{{{}}}",
                map.iter().map(entry).collect::<Vec<_>>().join(", ")
            )
        }
    }
}

fn quoted(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    let mut quoted = String::from(quote);
    for char in text.chars() {
        match char {
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            '\\' => quoted.push_str("\\\\"),
            char if char == quote => quoted.extend(['\\', char]),
            char => quoted.push(char),
        }
    }
    quoted.push(quote);
    quoted
}

#[cfg(test)]
mod tests {
    use fleet_yaml::render;

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

    #[test]
    fn a_list_has_groups_and_all_variables_of_hosts() {
        assert_eq!(
            list(&lab(), false, None).unwrap(),
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
    fn an_export_leaves_variables_with_their_owner() {
        let shown = list(&lab(), true, None).unwrap();
        assert_eq!(shown["_meta"]["hostvars"]["h2"], json!({"hv": 2}));
        assert_eq!(
            shown["c"]["vars"],
            json!({"ansible_group_priority": 5, "cv": "{{ y }}"})
        );
        assert_eq!(shown["all"]["vars"], json!({"g": 1}));
    }

    #[test]
    fn a_limit_narrows_a_list() {
        let shown = list(&lab(), false, Some(&Limit::parse("h2").unwrap())).unwrap();
        assert_eq!(shown["_meta"]["hostvars"], json!({"h2": {"g": 1, "hv": 2}}));
        assert_eq!(shown.get("c"), None);
    }

    #[test]
    fn yaml_gives_each_host_its_variables_once() {
        assert_eq!(
            yaml(&lab(), false, None).unwrap(),
            json!({"all": {"children": {
                "a": {"children": {"c": {"hosts": {"h1": {
                    "cv": "{{ y }}",
                    "g": 1,
                    "n": {"a": [null, "it's", 1.0, true], "z": 1},
                    "v": "{{ x }}",
                }}}}},
                "b": {"children": {"c": {}}, "hosts": {"h2": {"g": 1, "hv": 2}}},
            }}})
        );
    }

    #[test]
    fn a_yaml_export_is_an_inventory_again() {
        let exported = yaml(&lab(), true, None).unwrap();
        let again = load("again.yml", &exported.to_string());
        assert_eq!(host(&again, "h2").unwrap(), host(&lab(), "h2").unwrap());
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
        assert_eq!(host(&lab(), "h2").unwrap(), json!({"g": 1, "hv": 2}));
        assert_eq!(
            host(&lab(), "localhost").unwrap(),
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
        insta::assert_snapshot!(render(&host(&inventory, "wbe1").unwrap_err(), false), @"
        error[F0204]: no host `wbe1` in the inventory
         |
         = help: did you mean `web1`?
        ");
    }
}
