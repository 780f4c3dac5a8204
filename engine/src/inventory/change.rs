//! Hosts and groups that come up in a run: `add_host` and `group_by`.

use fleet_yaml::{Diagnostic, Node};
use indexmap::IndexMap;

use super::{
    Inventory,
    graph::{ALL_INDEX, Graph},
    groups_value,
    mistake::{code, placeless},
    range,
};

/// A host that a task adds.
#[derive(Clone, Debug, Default)]
pub struct NewHost {
    /// Its name, perhaps with a port (`web1:2222`).
    pub name: String,
    /// Groups to put it into, made where they are new.
    pub groups: Vec<String>,
    /// Its variables, over those that it has.
    pub vars: IndexMap<String, Node>,
}

impl Inventory {
    /// Adds hosts, or groups and variables to hosts that are there. `group_vars` and `host_vars` for
    /// new names are read. Add many at once: each call works out the whole anew.
    ///
    /// # Errors
    ///
    /// Mistakes in files for the new names; the inventory is unchanged then.
    pub fn add_hosts(
        &mut self,
        hosts: impl IntoIterator<Item = NewHost>,
    ) -> Result<(), Vec<Diagnostic>> {
        self.change(|graph| {
            for new in hosts {
                let (name, port) = range::split_port(&new.name);
                let host = graph.host(name, None, None);
                graph.join(host, ALL_INDEX);
                graph.hosts[host].port = port.or(graph.hosts[host].port);
                for group in &new.groups {
                    let group = graph.group(group);
                    graph.join(host, group);
                }
                for (name, value) in new.vars {
                    graph.set_host_var(host, &name, value);
                }
            }
            Ok(())
        })
    }

    /// Puts hosts into groups, pairs of host and group, and these groups into their parents. Give
    /// many at once: each call works out the whole anew.
    ///
    /// # Errors
    ///
    /// A host that there is not, groups that would hold each other, and mistakes in files for new
    /// groups; the inventory is unchanged then.
    pub fn group_by(
        &mut self,
        members: &[(String, String)],
        parents: &[String],
    ) -> Result<(), Vec<Diagnostic>> {
        // This machine need not be written down; in a group it is one host among others.
        let implicit: Vec<(String, Node)> = members
            .iter()
            .filter_map(|(name, _)| self.implicit_localhost(name))
            .filter_map(|host| {
                let local = host.vars.get("ansible_connection")?;
                Some((host.name.clone(), local.value.clone()))
            })
            .collect();
        self.change(|graph| {
            for (name, local) in implicit {
                let host = graph.host(&name, None, None);
                graph.set_host_var(host, "ansible_connection", local);
            }
            for (host, group) in members {
                let Some(host) = graph.hosts.get_index_of(host) else {
                    return Err(placeless(
                        code::HOST,
                        format!("no host `{host}` in the inventory"),
                    ));
                };
                let group = graph.group(group);
                graph.join(host, group);
                for parent in parents {
                    let parent = graph.group(parent);
                    if parent != ALL_INDEX {
                        graph.contain(parent, group, None);
                    }
                }
            }
            Ok(())
        })
    }

    fn change(
        &mut self,
        edit: impl FnOnce(&mut Graph) -> Result<(), Diagnostic>,
    ) -> Result<(), Vec<Diagnostic>> {
        let mut graph = self.graph.clone();
        edit(&mut graph)
            .and_then(|()| graph.settle())
            .map_err(|mistake| vec![mistake])?;
        let before = std::mem::replace(&mut self.graph, graph);
        let errors = self.read_beside();
        if !errors.is_empty() {
            self.graph = before;
            return Err(errors);
        }
        self.groups = groups_value(&self.graph);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use fleet_yaml::Source;
    use serde_json::json;

    use super::super::lab::{Lab, hosts, load, members, var};
    use super::*;

    fn new(name: &str, groups: &[&str], vars: &[(&str, &str)]) -> NewHost {
        let node = |text: &str| Node::string(text, &Source::new("task", text).span(0, 0));
        NewHost {
            name: name.to_owned(),
            groups: groups.iter().map(|group| (*group).to_owned()).collect(),
            vars: vars
                .iter()
                .map(|(name, value)| ((*name).to_owned(), node(value)))
                .collect(),
        }
    }

    #[test]
    fn added_hosts_join_groups_and_get_what_lies_beside() {
        let lab = Lab::new(&[
            ("i.ini", "[web]\nw1\n"),
            ("group_vars/fresh", "f: 1\n"),
            ("group_vars/web", "g: 2\n"),
        ]);
        let mut inventory = lab.load(&["i.ini"]);
        inventory
            .add_hosts([new("n1:2222", &["web", "fresh"], &[("x", "y")])])
            .unwrap();
        assert_eq!(hosts(&inventory), ["n1", "w1"]);
        assert_eq!(inventory.host("n1").unwrap().port, Some(2222));
        assert_eq!(members(&inventory, "web"), ["w1", "n1"]);
        for (name, value) in [("x", json!("y")), ("f", json!(1)), ("g", json!(2))] {
            assert_eq!(var(&inventory, "n1", name), value);
        }
        assert_eq!(
            inventory.magic("w1")["groups"]
                .get_attr("fresh")
                .unwrap()
                .len(),
            Some(1)
        );
    }

    #[test]
    fn a_host_that_is_there_keeps_what_it_has() {
        let mut inventory = load("i.ini", "[web]\nw1 a=1 b=1\n");
        inventory
            .add_hosts([new("w1", &["extra"], &[("b", "2")])])
            .unwrap();
        assert_eq!(
            (var(&inventory, "w1", "a"), var(&inventory, "w1", "b")),
            (json!(1), json!("2"))
        );
        assert_eq!(
            inventory.group_names(inventory.host("w1").unwrap()),
            ["extra", "web"]
        );
    }

    #[test]
    fn hosts_are_grouped_by_what_is_found() {
        let mut inventory = load("i.ini", "a\nb\n");
        let pairs = [("a", "debian"), ("b", "fedora")]
            .map(|(host, group)| (host.to_owned(), group.to_owned()));
        inventory.group_by(&pairs, &["os".to_owned()]).unwrap();
        assert_eq!(members(&inventory, "debian"), ["a"]);
        assert_eq!(members(&inventory, "os"), ["a", "b"]);
        assert_eq!(members(&inventory, "ungrouped"), [""; 0]);
    }

    #[test]
    fn what_fails_changes_nothing() {
        let mut inventory = load("i.ini", "[web:children]\ndb\n[db]\nd\n");
        let pair = ("d".to_owned(), "web".to_owned());
        let errors = inventory.group_by(&[pair], &["db".to_owned()]).unwrap_err();
        assert!(
            errors[0].message.starts_with("groups hold each other"),
            "{}",
            errors[0]
        );
        assert_eq!(
            inventory.group_names(inventory.host("d").unwrap()),
            ["db", "web"]
        );
        let nobody = ("nobody".to_owned(), "web".to_owned());
        let errors = inventory.group_by(&[nobody], &[]).unwrap_err();
        assert_eq!(errors[0].message, "no host `nobody` in the inventory");
    }
}
