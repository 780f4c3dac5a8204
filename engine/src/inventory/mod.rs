//! Inventories: the hosts of a fleet, their groups, and what is said of both.
//!
//! [`Inventory::load`] reads sources of any format that Ansible reads (YAML, INI, JSON, scripts,
//! folders, lists of hosts) and the `group_vars` and `host_vars` beside them and beside the playbook.
//! [`Inventory::layers`] gives a host's variables in order of precedence, as written: they are
//! rendered at their use. [`Inventory::select`] finds the hosts that a pattern names. Every mistake in
//! a source is reported, each at its place.

mod beside;
mod build;
mod change;
mod glob;
mod graph;
mod ini;
#[cfg(test)]
mod lab;
mod literal;
mod load;
mod mistake;
mod pattern;
mod plugin;
mod range;
mod script;
mod select;
pub mod show;
mod toml;
mod vars;
mod words;
mod yaml;

use std::sync::Arc;

use fleet_yaml::{Diagnostic, Node, Source};
use indexmap::IndexMap;
use minijinja::Value;

pub use change::NewHost;
pub use graph::{ALL, Group, Host, Mention, UNGROUPED};
pub use load::{LoadOptions, Unparsed, sources};
pub use mistake::code;
pub use pattern::{Limit, Pattern};
pub use select::Selection;
pub use vars::{Layer, LayerKind, Origin, VarMap, Variable};

use beside::Beside;
use graph::{ALL_INDEX, Graph};

use crate::config::VarsLevel;

/// The names of this machine that need not be written down.
const LOCALHOST: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Hosts, groups and their variables.
#[derive(Clone, Debug)]
pub struct Inventory {
    graph: Graph,
    beside: Beside,
    /// This machine under each of its names.
    implicit: Vec<Host>,
    /// The magic variable `groups`, shared by all hosts.
    groups: Value,
    /// The order of the variables of groups, low to high.
    precedence: Vec<VarsLevel>,
}

impl Inventory {
    /// All hosts in inventory order: group by group from `all` downwards, level by level.
    pub fn hosts(&self) -> impl ExactSizeIterator<Item = &Host> {
        self.graph
            .order
            .iter()
            .map(|index| &self.graph.hosts[*index])
    }

    /// The host of this name. `localhost`, `127.0.0.1` and `::1` exist without being written down,
    /// unless one of them is; they are not among [`Inventory::hosts`].
    pub fn host(&self, name: &str) -> Option<&Host> {
        self.graph
            .hosts
            .get(name)
            .or_else(|| self.implicit_localhost(name))
    }

    /// Whether a host is written down, or is this machine, which need not be.
    #[must_use]
    pub fn knows(&self, name: &str) -> bool {
        self.host(name).is_some() || self.implicit_localhost(name).is_some()
    }

    /// This machine under one of its names, where the inventory does not mention it.
    pub fn implicit_localhost(&self, name: &str) -> Option<&Host> {
        let asked = self.implicit.iter().find(|host| host.name == name)?;
        let written = LOCALHOST
            .iter()
            .find_map(|local| self.graph.hosts.get(*local));
        Some(written.unwrap_or(asked))
    }

    /// All groups: `all` and `ungrouped`, then in the order of mention.
    pub fn groups(&self) -> impl ExactSizeIterator<Item = &Group> {
        self.graph.groups.values()
    }

    /// The group of this name.
    pub fn group(&self, name: &str) -> Option<&Group> {
        self.graph.groups.get(name)
    }

    /// The hosts of a group and of those below it, in inventory order. None if there is no such group.
    pub fn members(&self, group: &str) -> Option<Vec<&Host>> {
        let group = self.graph.groups.get_index_of(group)?;
        Some(
            self.graph
                .members(group)
                .iter()
                .map(|index| &self.graph.hosts[*index])
                .collect(),
        )
    }

    /// The groups directly below a group, in order.
    pub fn children(&self, group: &Group) -> impl Iterator<Item = &Group> {
        group
            .children
            .keys()
            .map(|index| &self.graph.groups[*index])
    }

    /// The hosts directly in a group, in order.
    pub fn direct_hosts(&self, group: &Group) -> impl Iterator<Item = &Host> {
        group.hosts.iter().map(|index| &self.graph.hosts[*index])
    }

    /// The variables of a group itself, in order of precedence, low to high.
    pub fn group_layers(&self, group: &Group) -> Vec<Layer> {
        let all = group.name == ALL;
        let kinds = if all {
            [
                LayerKind::InventoryGroupVarsAll,
                LayerKind::PlaybookGroupVarsAll,
            ]
        } else {
            [LayerKind::InventoryGroupVars, LayerKind::PlaybookGroupVars]
        };
        let mut layers = vec![Layer {
            kind: LayerKind::InventoryGroups,
            vars: Arc::clone(&group.vars),
        }];
        for (playbook, kind) in [false, true].into_iter().zip(kinds) {
            let names = [group.name.as_str()];
            let found = self.beside.of_groups(playbook, &names);
            layers.extend(found.map(|vars| Layer {
                kind,
                vars: Arc::clone(vars),
            }));
        }
        layers
    }

    /// The names of a host's groups but `all`, sorted: the magic variable `group_names`.
    pub fn group_names(&self, host: &Host) -> Vec<&str> {
        let mut names: Vec<&str> = host
            .ranked
            .iter()
            .map(|index| self.graph.groups[*index].name.as_str())
            .collect();
        names.sort_unstable();
        names
    }

    /// The magic variables that come from the inventory: `inventory_hostname`,
    /// `inventory_hostname_short`, `inventory_file`, `inventory_dir`, `group_names`, `groups`.
    pub fn magic(&self, host: &str) -> IndexMap<String, Value> {
        let mut magic = IndexMap::from([("groups".to_owned(), self.groups.clone())]);
        let Some(host) = self.host(host) else {
            return magic;
        };
        let mut add = |name: &str, value: Value| magic.insert(name.to_owned(), value);
        add("inventory_hostname", Value::from(host.name.as_str()));
        add("inventory_hostname_short", Value::from(host.short_name()));
        add(
            "group_names",
            self.group_names(host)
                .into_iter()
                .map(Value::from)
                .collect(),
        );
        let mention = host.mention();
        add(
            "inventory_file",
            Value::from(mention.map(|mention| mention.file.as_str())),
        );
        let dir = mention.and_then(|mention| mention.dir.as_ref());
        add(
            "inventory_dir",
            Value::from(dir.map(|dir| dir.to_string_lossy().into_owned())),
        );
        magic
    }

    /// A host's variables in order of precedence, low to high. Empty layers are left out; an unknown
    /// host has none.
    pub fn layers(&self, host: &str) -> Vec<Layer> {
        let Some(host) = self.host(host) else {
            return Vec::new();
        };
        let all = &self.graph.groups[ALL_INDEX];
        let ranked = || host.ranked.iter().map(|index| &self.graph.groups[*index]);
        let mut layers = Vec::new();
        let mut add = |kind, vars: &Arc<VarMap>| {
            if !vars.is_empty() {
                layers.push(Layer {
                    kind,
                    vars: Arc::clone(vars),
                });
            }
        };
        let names: Vec<&str> = ranked().map(|group| group.name.as_str()).collect();
        for level in &self.precedence {
            let mut beside = |kind, playbook, names: &[&str]| {
                let found = self.beside.of_groups(playbook, names);
                found.for_each(|vars| add(kind, vars));
            };
            match level {
                VarsLevel::AllInventory => add(LayerKind::InventoryGroups, &all.vars),
                VarsLevel::GroupsInventory => {
                    ranked().for_each(|group| add(LayerKind::InventoryGroups, &group.vars));
                }
                VarsLevel::AllPluginsInventory => {
                    beside(LayerKind::InventoryGroupVarsAll, false, &[&all.name]);
                }
                VarsLevel::AllPluginsPlay => {
                    beside(LayerKind::PlaybookGroupVarsAll, true, &[&all.name]);
                }
                VarsLevel::GroupsPluginsInventory => {
                    beside(LayerKind::InventoryGroupVars, false, &names);
                }
                VarsLevel::GroupsPluginsPlay => {
                    beside(LayerKind::PlaybookGroupVars, true, &names);
                }
            }
        }
        add(LayerKind::InventoryHost, &host.vars);
        for (playbook, kind) in [
            (false, LayerKind::InventoryHostVars),
            (true, LayerKind::PlaybookHostVars),
        ] {
            self.beside
                .of_host(playbook, &host.name)
                .for_each(|vars| add(kind, vars));
        }
        layers
    }

    /// An inventory over a graph, all that follows worked out. Diagnostics are errors.
    fn over(
        mut graph: Graph,
        beside: Beside,
        precedence: Vec<VarsLevel>,
    ) -> Result<Inventory, Vec<Diagnostic>> {
        graph.settle().map_err(|circle| vec![circle])?;
        let groups = groups_value(&graph);
        let mut inventory = Inventory {
            graph,
            beside,
            implicit: LOCALHOST.map(implicit).into(),
            groups,
            precedence,
        };
        let errors = inventory.read_beside();
        if errors.is_empty() {
            Ok(inventory)
        } else {
            Err(errors)
        }
    }

    /// Reads the files beside sources and playbook for all hosts and groups that are new.
    fn read_beside(&mut self) -> Vec<Diagnostic> {
        let groups = self.graph.groups.values().map(|group| &group.name);
        let hosts = self
            .graph
            .hosts
            .values()
            .chain(&self.implicit)
            .map(|host| &host.name);
        self.beside.read(groups, hosts)
    }
}

fn groups_value(graph: &Graph) -> Value {
    let name = |host: &usize| Value::from(graph.hosts[*host].name.as_str());
    let members = |index| graph.members(index).iter().map(name).collect::<Value>();
    let groups = graph.groups.values().enumerate();
    Value::from_pairs(groups.map(|(index, group)| (group.name.as_str(), members(index))))
}

fn implicit(name: &str) -> Host {
    let mut host = Host::new(name, None, None);
    host.implicit = true;
    let span = Source::new("implicit localhost", "local").span(0, 5);
    let value = Node::string("local", &span);
    let variable = Variable {
        value,
        origin: host.origin.clone(),
    };
    host.vars = Arc::new(VarMap::from([("ansible_connection".to_owned(), variable)]));
    host
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        lab::{Lab, hosts, load, var},
        *,
    };

    #[test]
    fn the_levels_of_precedence() {
        let lab = Lab::new(&[
            (
                "inv/i.yml",
                "all: {vars: {v: 3a}, children: {web: {vars: {v: 3}, hosts: {h: {v: 8}}}}}",
            ),
            ("inv/group_vars/all", "v: 4\n"),
            ("inv/group_vars/web", "v: 6\n"),
            ("inv/host_vars/h", "v: 9\n"),
            ("play/group_vars/all", "v: 5\n"),
            ("play/group_vars/web", "v: 7\n"),
            ("play/host_vars/h", "v: 10\n"),
        ]);
        let inventory = lab.load_beside(&["inv"], "play");
        let layers = inventory.layers("h");
        let seen: Vec<(u8, String)> = layers
            .iter()
            .map(|layer| (layer.kind as u8, layer.vars["v"].value.raw().to_owned()))
            .collect();
        let expected = [
            (3, "3a"),
            (3, "3"),
            (4, "4"),
            (5, "5"),
            (6, "6"),
            (7, "7"),
            (8, "8"),
            (9, "9"),
            (10, "10"),
        ];
        assert_eq!(seen, expected.map(|(kind, value)| (kind, value.to_owned())));
        let origins: Vec<String> = layers
            .iter()
            .map(|layer| layer.vars["v"].origin.to_string())
            .collect();
        assert_eq!(origins[0..2], ["group `all`", "group `web`"]);
        assert_eq!(origins[6..], ["host `h`"; 3]);
        let place = layers[8].vars["v"].to_string();
        assert!(
            place.ends_with("play/host_vars/h:1:4 (host `h`)"),
            "{place}"
        );
    }

    #[test]
    fn among_groups_the_deeper_wins_then_the_priority_then_the_name() {
        let text = "b: {hosts: {h: }, vars: {v: b, w: b, x: b}}\na: {hosts: {h: }, vars: {v: a, w: a, ansible_group_priority: 10}}\ntop: {vars: {v: top, x: top, y: top}, children: {deep: {hosts: {h: }, vars: {v: deep}}}}\n";
        let inventory = load("i.yml", text);
        assert_eq!(var(&inventory, "h", "v"), json!("deep"));
        assert_eq!(var(&inventory, "h", "w"), json!("a"));
        assert_eq!(var(&inventory, "h", "x"), json!("top"));
        assert_eq!(var(&inventory, "h", "ansible_group_priority"), json!(null));
        assert_eq!(inventory.group("a").unwrap().priority(), 10);
    }

    #[test]
    fn magic_variables() {
        let lab = Lab::new(&[("inv/i.ini", "[web]\nw1.ex.org\n[app:children]\nweb\n")]);
        let inventory = lab.load(&["inv/i.ini"]);
        let magic = inventory.magic("w1.ex.org");
        let dir = lab.path("inv");
        assert_eq!(
            serde_json::to_value(&magic).unwrap(),
            json!({
                "groups": {"all": ["w1.ex.org"], "ungrouped": [], "web": ["w1.ex.org"], "app": ["w1.ex.org"]},
                "inventory_hostname": "w1.ex.org",
                "inventory_hostname_short": "w1",
                "group_names": ["app", "web"],
                "inventory_file": dir.join("i.ini"),
                "inventory_dir": dir,
            })
        );
        let listed = Lab::new(&[]).load(&["a,b"]);
        assert_eq!(listed.magic("a")["inventory_file"], Value::from("a,b"));
        assert!(listed.magic("a")["inventory_dir"].is_none());
        assert_eq!(
            listed.magic("a")["group_names"],
            ["ungrouped"].into_iter().collect::<Value>()
        );
    }

    #[test]
    fn localhost_is_there_without_being_written() {
        let lab = Lab::new(&[
            ("i.yml", "all: {vars: {v: 1}, hosts: {h: }}"),
            ("host_vars/localhost", "w: 2\n"),
        ]);
        let inventory = lab.load(&["i.yml"]);
        for name in ["localhost", "127.0.0.1", "::1"] {
            assert!(inventory.host(name).unwrap().is_implicit());
            assert_eq!(var(&inventory, name, "ansible_connection"), json!("local"));
            assert_eq!(var(&inventory, name, "v"), json!(1));
        }
        assert_eq!(var(&inventory, "localhost", "w"), json!(2));
        assert_eq!(hosts(&inventory), ["h"]);
        assert_eq!(
            inventory.group_names(inventory.host("localhost").unwrap()),
            [""; 0]
        );
        assert!(inventory.host("nobody").is_none());
    }

    #[test]
    fn a_written_localhost_stands_for_all_its_names() {
        let inventory = load("i.ini", "127.0.0.1 x=1\n");
        assert_eq!(inventory.host("localhost").unwrap().name, "127.0.0.1");
        assert_eq!(
            var(&inventory, "localhost", "ansible_connection"),
            json!(null)
        );
        assert_eq!(
            inventory.select("localhost", None).unwrap().hosts,
            ["127.0.0.1"]
        );
    }
}
