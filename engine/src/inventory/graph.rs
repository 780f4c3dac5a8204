//! Hosts and groups, and how they contain each other.
//!
//! Both are kept by name in the order in which they were first mentioned. What follows from the
//! whole (who is ungrouped, which group lies how deep, the order of hosts) is worked out once, by
//! [`Graph::settle`], after sources were read or hosts were added.

use std::{path::PathBuf, sync::Arc};

use fleet_yaml::{Diagnostic, Node, Span};
use indexmap::{IndexMap, IndexSet};

use super::{
    mistake::{code, mistake, placeless},
    vars::{Origin, VarMap, Variable},
};

/// The group that holds every host.
pub const ALL: &str = "all";
/// The group of hosts that are in no other.
pub const UNGROUPED: &str = "ungrouped";

/// Where a host was first mentioned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mention {
    /// The inventory source: an absolute path, or a list of hosts as given.
    pub file: String,
    /// The folder of that file. A list of hosts has none.
    pub dir: Option<PathBuf>,
}

/// A host of the inventory.
#[derive(Clone, Debug)]
pub struct Host {
    /// Its name in the inventory (`inventory_hostname`).
    pub name: String,
    /// The port written with the name (`web1:2222`); it is the variable `ansible_port`, too.
    pub port: Option<u16>,
    pub(super) vars: Arc<VarMap>,
    pub(super) origin: Origin,
    pub(super) span: Option<Span>,
    pub(super) mention: Option<Arc<Mention>>,
    pub(super) implicit: bool,
    /// Direct groups, as indexes, in the order of joining.
    pub(super) joined: IndexSet<usize>,
    /// All its groups but `all`, from the weakest to the strongest.
    pub(super) ranked: Vec<usize>,
}

impl Host {
    /// Its name up to the first dot (`inventory_hostname_short`).
    pub fn short_name(&self) -> &str {
        self.name.split('.').next().unwrap_or(&self.name)
    }

    /// The variables that inventory sources give to this host itself.
    pub fn vars(&self) -> &Arc<VarMap> {
        &self.vars
    }

    /// Where the inventory first names it. `None` for hosts added in a run.
    pub fn span(&self) -> Option<&Span> {
        self.span.as_ref()
    }

    /// The source that first names it (`inventory_file`, `inventory_dir`).
    pub fn mention(&self) -> Option<&Mention> {
        self.mention.as_deref()
    }

    /// Whether it is the `localhost` that exists without being written down.
    pub fn is_implicit(&self) -> bool {
        self.implicit
    }

    pub(super) fn new(name: &str, span: Option<Span>, mention: Option<Arc<Mention>>) -> Host {
        Host {
            name: name.to_owned(),
            port: None,
            vars: Arc::default(),
            origin: Origin::Host(name.into()),
            span,
            mention,
            implicit: false,
            joined: IndexSet::new(),
            ranked: Vec::new(),
        }
    }
}

/// A group of the inventory.
#[derive(Clone, Debug)]
pub struct Group {
    /// Its name.
    pub name: String,
    pub(super) origin: Origin,
    pub(super) vars: Arc<VarMap>,
    pub(super) priority: i64,
    /// `ansible_group_priority` as written.
    pub(super) priority_node: Option<Node>,
    /// Steps from `all`, by the longest way.
    pub(super) depth: usize,
    pub(super) hosts: IndexSet<usize>,
    pub(super) children: IndexMap<usize, Option<Span>>,
    pub(super) parents: IndexSet<usize>,
    /// All groups above it but `all`.
    pub(super) above: Vec<usize>,
}

impl Group {
    /// The variables that inventory sources give to it.
    pub fn vars(&self) -> &Arc<VarMap> {
        &self.vars
    }

    /// `ansible_group_priority`: among groups of one depth the higher one wins.
    pub fn priority(&self) -> i64 {
        self.priority
    }

    /// Steps from `all` by the longest way: what is deeper wins.
    pub fn depth(&self) -> usize {
        self.depth
    }

    fn new(name: &str) -> Group {
        Group {
            name: name.to_owned(),
            origin: Origin::Group(name.into()),
            vars: Arc::default(),
            priority: 1,
            priority_node: None,
            depth: 0,
            hosts: IndexSet::new(),
            children: IndexMap::new(),
            parents: IndexSet::new(),
            above: Vec::new(),
        }
    }
}

/// All hosts and groups.
#[derive(Clone, Debug)]
pub(super) struct Graph {
    pub(super) hosts: IndexMap<String, Host>,
    pub(super) groups: IndexMap<String, Group>,
    /// All hosts in inventory order: groups from `all` downwards, level by level.
    pub(super) order: Vec<usize>,
}

/// Index of `all` among the groups.
pub(super) const ALL_INDEX: usize = 0;
const UNGROUPED_INDEX: usize = 1;

impl Default for Graph {
    fn default() -> Graph {
        let mut graph = Graph {
            hosts: IndexMap::new(),
            groups: IndexMap::new(),
            order: Vec::new(),
        };
        graph.group(ALL);
        graph.group(UNGROUPED);
        graph.contain(ALL_INDEX, UNGROUPED_INDEX, None);
        graph
    }
}

impl Graph {
    /// The group of this name, made where it is new.
    pub(super) fn group(&mut self, name: &str) -> usize {
        match self.groups.get_index_of(name) {
            Some(index) => index,
            None => {
                let group = Group::new(name);
                self.groups.insert_full(group.name.clone(), group).0
            }
        }
    }

    /// The host of this name, made where it is new.
    pub(super) fn host(
        &mut self,
        name: &str,
        span: Option<&Span>,
        mention: Option<&Arc<Mention>>,
    ) -> usize {
        match self.hosts.get_index_of(name) {
            Some(index) => index,
            None => {
                let host = Host::new(name, span.cloned(), mention.cloned());
                self.hosts.insert_full(host.name.clone(), host).0
            }
        }
    }

    /// Puts a host into a group.
    pub(super) fn join(&mut self, host: usize, group: usize) {
        self.groups[group].hosts.insert(host);
        self.hosts[host].joined.insert(group);
    }

    /// Puts a group into another. Circles are found by [`Graph::settle`].
    pub(super) fn contain(&mut self, parent: usize, child: usize, span: Option<&Span>) {
        self.groups[parent]
            .children
            .entry(child)
            .or_insert_with(|| span.cloned());
        self.groups[child].parents.insert(parent);
    }

    /// A variable of a host; a later one of the same name replaces it.
    pub(super) fn set_host_var(&mut self, host: usize, name: &str, value: Node) {
        let host = &mut self.hosts[host];
        let variable = Variable {
            value,
            origin: host.origin.clone(),
        };
        Arc::make_mut(&mut host.vars).insert(name.to_owned(), variable);
    }

    /// A variable of a group. `whole` reads `ansible_group_priority`, which is kept apart.
    pub(super) fn set_group_var(
        &mut self,
        group: usize,
        name: &str,
        value: Node,
        whole: impl FnOnce(&Node) -> Result<i64, Diagnostic>,
    ) -> Result<(), Diagnostic> {
        let group = &mut self.groups[group];
        if name == "ansible_group_priority" {
            group.priority = whole(&value)?;
            group.priority_node = Some(value);
        } else {
            let variable = Variable {
                value,
                origin: group.origin.clone(),
            };
            Arc::make_mut(&mut group.vars).insert(name.to_owned(), variable);
        }
        Ok(())
    }

    /// The hosts of a group and of all groups below it: its own first, then level by level.
    pub(super) fn members(&self, group: usize) -> IndexSet<usize> {
        let mut hosts = IndexSet::new();
        let mut groups = IndexSet::from([group]);
        let mut next = 0;
        while let Some(&group) = groups.get_index(next) {
            let group = &self.groups[group];
            hosts.extend(group.hosts.iter().copied());
            groups.extend(group.children.keys().copied());
            next += 1;
        }
        hosts
    }

    /// Works out all that follows from the whole. The error is a circle of groups.
    pub(super) fn settle(&mut self) -> Result<(), Diagnostic> {
        self.work_out().map_err(|circle| self.told(&circle))
    }

    /// The error is a circle of groups: their indexes, each holding the next and the last the first.
    fn work_out(&mut self) -> Result<(), Vec<usize>> {
        self.gather_ungrouped();
        let orphans: Vec<usize> = (0..self.groups.len())
            .filter(|index| *index != ALL_INDEX && self.groups[*index].parents.is_empty())
            .collect();
        for orphan in orphans {
            self.contain(ALL_INDEX, orphan, None);
        }
        self.rank_groups()?;
        for index in 0..self.hosts.len() {
            let mut ranked: IndexSet<usize> = IndexSet::new();
            for &group in &self.hosts[index].joined {
                ranked.extend(self.groups[group].above.iter().copied());
                ranked.insert(group);
            }
            ranked.swap_remove(&ALL_INDEX);
            let mut ranked: Vec<usize> = ranked.into_iter().collect();
            ranked.sort_by(|a, b| self.rank(*a).cmp(&self.rank(*b)));
            self.hosts[index].ranked = ranked;
        }
        self.order = self.members(ALL_INDEX).into_iter().collect();
        Ok(())
    }

    /// What decides between two groups that set the same variable: the greater one wins.
    fn rank(&self, group: usize) -> (usize, i64, &str) {
        let group = &self.groups[group];
        (group.depth, group.priority, &group.name)
    }

    /// A host is ungrouped while no group but `all` has it.
    fn gather_ungrouped(&mut self) {
        let (mut leave, mut join) = (IndexSet::new(), Vec::new());
        for (index, host) in self.hosts.values_mut().enumerate() {
            let grouped = host
                .joined
                .iter()
                .any(|group| ![ALL_INDEX, UNGROUPED_INDEX].contains(group));
            if grouped && host.joined.shift_remove(&UNGROUPED_INDEX) {
                leave.insert(index);
            } else if !grouped && !host.joined.contains(&UNGROUPED_INDEX) {
                join.push(index);
            }
        }
        self.groups[UNGROUPED_INDEX]
            .hosts
            .retain(|host| !leave.contains(host));
        for host in join {
            self.join(host, UNGROUPED_INDEX);
        }
    }

    /// Depths and ancestors, parents before children; what cannot be reached so is a circle.
    fn rank_groups(&mut self) -> Result<(), Vec<usize>> {
        let mut waiting: Vec<usize> = self
            .groups
            .values()
            .map(|group| group.parents.len())
            .collect();
        let mut ready: Vec<usize> = (0..waiting.len())
            .filter(|index| waiting[*index] == 0)
            .collect();
        let mut done = 0;
        for group in self.groups.values_mut() {
            group.depth = 0;
        }
        while let Some(&index) = ready.get(done) {
            done += 1;
            let mut above: IndexSet<usize> = IndexSet::new();
            for &parent in &self.groups[index].parents {
                above.extend(self.groups[parent].above.iter().copied());
                above.insert(parent);
            }
            above.swap_remove(&ALL_INDEX);
            let below = self.groups[index].depth + 1;
            self.groups[index].above = above.into_iter().collect();
            let children: Vec<usize> = self.groups[index].children.keys().copied().collect();
            for child in children {
                let depth = &mut self.groups[child].depth;
                *depth = below.max(*depth);
                waiting[child] -= 1;
                if waiting[child] == 0 {
                    ready.push(child);
                }
            }
        }
        if done == self.groups.len() {
            Ok(())
        } else {
            Err(self.circle(&waiting))
        }
    }

    /// A circle among the groups that still wait for a parent: walking up from any of them, some
    /// group comes twice.
    fn circle(&self, waiting: &[usize]) -> Vec<usize> {
        let mut walked: IndexSet<usize> = IndexSet::new();
        let mut at = waiting
            .iter()
            .position(|count| *count > 0)
            .unwrap_or(ALL_INDEX);
        while walked.insert(at) {
            let up = self.groups[at]
                .parents
                .iter()
                .find(|parent| waiting[**parent] > 0);
            at = up.copied().unwrap_or(at);
        }
        let start = walked.get_index_of(&at).unwrap_or(0);
        walked.into_iter().skip(start).rev().collect()
    }

    /// A circle with all places that make it; the last one in the text comes first, as it is the
    /// one that closed the circle.
    fn told(&self, circle: &[usize]) -> Diagnostic {
        let name = |index: usize| self.groups[index].name.as_str();
        let mut way: Vec<&str> = circle.iter().map(|index| name(*index)).collect();
        way.extend(circle.first().map(|index| name(*index)));
        let message = format!("groups hold each other: {}", way.join(" > "));
        let next = circle.iter().cycle().skip(1);
        let mut places: Vec<(&Span, String)> = circle
            .iter()
            .zip(next)
            .filter_map(|(parent, child)| {
                let span = self.groups[*parent].children.get(child)?.as_ref()?;
                Some((
                    span,
                    format!("`{}` is put into `{}` here", name(*child), name(*parent)),
                ))
            })
            .collect();
        places.sort_by_key(|(span, _)| std::cmp::Reverse(span.start));
        let mut places = places.into_iter();
        let told = match places.next() {
            Some((span, text)) => mistake(code::CIRCLE, span, message).with_label(text),
            None => placeless(code::CIRCLE, message),
        };
        places.fold(told, |told, (span, text)| {
            told.with_related(span.clone(), text)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(edges: &[(&str, &str)], hosts: &[(&str, &str)]) -> Graph {
        let mut graph = Graph::default();
        for (group, host) in hosts {
            let (group, host) = (graph.group(group), graph.host(host, None, None));
            graph.join(host, group);
        }
        for (parent, child) in edges {
            let (parent, child) = (graph.group(parent), graph.group(child));
            graph.contain(parent, child, None);
        }
        graph
    }

    fn names(graph: &Graph, hosts: impl IntoIterator<Item = usize>) -> Vec<&str> {
        hosts
            .into_iter()
            .map(|index| graph.hosts[index].name.as_str())
            .collect()
    }

    fn ranked<'a>(graph: &'a Graph, host: &str) -> Vec<&'a str> {
        graph.hosts[host]
            .ranked
            .iter()
            .map(|index| graph.groups[*index].name.as_str())
            .collect()
    }

    #[test]
    fn inventory_order_goes_level_by_level() {
        let mut graph = graph(
            &[("aa", "bb"), ("aa", "zz"), ("cc", "aa")],
            &[
                ("zz", "h3"),
                ("zz", "h1"),
                ("bb", "h2"),
                ("bb", "h1"),
                ("cc", "h0"),
            ],
        );
        graph.settle().unwrap();
        assert_eq!(names(&graph, graph.order.clone()), ["h0", "h2", "h1", "h3"]);
    }

    #[test]
    fn a_host_without_a_group_is_ungrouped_until_it_has_one() {
        let mut graph = graph(&[], &[("all", "a"), ("ungrouped", "b"), ("web", "b")]);
        graph.settle().unwrap();
        assert_eq!(names(&graph, graph.members(UNGROUPED_INDEX)), ["a"]);
        let (a, web) = (graph.host("a", None, None), graph.group("web"));
        graph.join(a, web);
        graph.settle().unwrap();
        assert_eq!(names(&graph, graph.members(UNGROUPED_INDEX)), [""; 0]);
        assert_eq!(ranked(&graph, "a"), ["web"]);
    }

    #[test]
    fn groups_rank_by_depth_then_priority_then_name() {
        let mut graph = graph(
            &[("z_top", "deep"), ("a_top", "z_top")],
            &[("deep", "h"), ("b", "h"), ("a", "h"), ("c", "h")],
        );
        let a = graph.group("a");
        graph.groups[a].priority = 2;
        graph.settle().unwrap();
        assert_eq!(
            ranked(&graph, "h"),
            ["a_top", "b", "c", "a", "z_top", "deep"]
        );
        assert_eq!(graph.groups["deep"].depth, 3);
    }

    #[test]
    fn depth_is_the_longest_way_from_all() {
        let mut graph = graph(&[("all", "x"), ("y", "x"), ("all", "y")], &[]);
        graph.settle().unwrap();
        assert_eq!((graph.groups["y"].depth, graph.groups["x"].depth), (1, 2));
    }

    #[test]
    fn a_circle_is_found_wherever_it_is() {
        let mut graph = graph(
            &[("ok", "a"), ("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")],
            &[],
        );
        let circle = graph.work_out().unwrap_err();
        let mut names: Vec<&str> = circle
            .iter()
            .map(|index| graph.groups[*index].name.as_str())
            .collect();
        names.sort_unstable();
        assert_eq!(names, ["a", "b", "c"]);
        for (at, group) in circle.iter().enumerate() {
            let next = circle[(at + 1) % circle.len()];
            assert!(graph.groups[*group].children.contains_key(&next));
        }
    }
}
