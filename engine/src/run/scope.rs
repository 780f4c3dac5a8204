//! What a name stands for on a host: Ansible's levels of precedence, highest first.

use std::{collections::BTreeMap, sync::Arc};

use fleet_yaml::Node;
use minijinja::Value;

use super::{batch::Batch, connection::Reach, state::HostState};
use crate::{
    inventory::Layer,
    playbook::{Role, Task, Vars},
    variables::{PendingId, Scope, Variable},
};

/// A host's names in a play, in a task, in an item of its loop. Cheap to clone and to narrow.
#[derive(Clone, Debug)]
pub(crate) struct HostScope {
    /// Magic variables: they win over everything.
    pub(crate) magic: Arc<BTreeMap<String, Value>>,
    /// Magic variables of a role and its tasks.
    pub(crate) role_magic: Option<Arc<BTreeMap<String, Value>>>,
    /// The loop's item and its like, and a registered result while its conditions are judged.
    pub(crate) local: Vec<(String, Variable)>,
    /// Level 22.
    pub(crate) extra: Arc<Vars>,
    /// Levels 20 and 21, lowest first: parameters of roles and of includes.
    pub(crate) params: Vec<Arc<Vars>>,
    /// Levels 11, 18 and 19.
    pub(crate) state: Arc<HostState>,
    /// Levels 12 to 17, lowest first: play vars, prompts, vars files, role vars, block vars, task vars.
    pub(crate) written: Vec<Arc<Vars>>,
    /// Levels 3 to 10, lowest first.
    pub(crate) inventory: Arc<[Layer]>,
    /// Level 2, lowest first.
    pub(crate) defaults: Vec<Arc<Vars>>,
    /// How the host is reached, which templates may ask for by the names of its variables.
    pub(super) reached: Option<Arc<Reach>>,
    /// The hosts beside which this one works, and itself.
    pub(super) beside: Option<(Arc<Batch>, String)>,
}

/// The variables that name the hosts of the play that have not failed.
pub(super) const ALIVE: [&str; 3] = ["ansible_play_hosts", "ansible_play_batch", "play_hosts"];

impl HostScope {
    /// The scope within a task. Variables of `exposed` roles are seen by it as by all tasks of the play.
    pub(crate) fn of_task<'a>(
        &self,
        task: &'a Task,
        exposed: impl Iterator<Item = &'a Arc<Role>>,
    ) -> Self {
        let mut scope = self.clone();
        for role in exposed.chain(&task.directives.role) {
            scope.defaults.extend(role.defaults.iter().cloned());
            scope.written.extend(role.vars.iter().cloned());
        }
        if let Some(role) = &task.directives.role {
            scope.params.extend(role.params.iter().cloned());
            scope.role_magic = Some(Arc::new(magic(role)));
        }
        scope.written.extend(task.directives.vars.iter().cloned());
        scope.written.push(Arc::clone(&task.vars));
        scope
            .params
            .extend(task.directives.include_params.iter().cloned());
        scope
    }

    /// The scope with one more local name.
    pub(crate) fn with(&self, name: &str, variable: Variable) -> Self {
        let mut scope = self.clone();
        scope.local.push((name.to_owned(), variable));
        scope
    }

    /// A variable that a user wrote, never one of a host's own.
    pub(crate) fn get_written(&self, name: &str) -> Option<Node> {
        match self.get(name) {
            Some(Variable::Written(node)) => Some(node),
            _ => None,
        }
    }

    /// As the template engine takes it.
    pub(crate) fn shared(&self) -> Arc<dyn Scope> {
        Arc::new(Seen(self.clone()))
    }

    fn written(&self, name: &str) -> Option<&Node> {
        self.written.iter().rev().find_map(|vars| vars.get(name))
    }

    fn param(&self, name: &str) -> Option<&Node> {
        self.params.iter().rev().find_map(|vars| vars.get(name))
    }

    fn default(&self, name: &str) -> Option<&Node> {
        self.defaults.iter().rev().find_map(|vars| vars.get(name))
    }

    fn inventory(&self, name: &str) -> Option<&Node> {
        self.inventory
            .iter()
            .rev()
            .find_map(|layer| layer.vars.get(name))
            .map(|found| &found.value)
    }

    fn magic(&self, name: &str) -> Option<&Value> {
        let of_role = self.role_magic.as_ref().and_then(|magic| magic.get(name));
        of_role.or_else(|| self.magic.get(name))
    }
}

/// The magic variables of a role's tasks.
fn magic(role: &Role) -> BTreeMap<String, Value> {
    let texts = |texts: &mut dyn Iterator<Item = String>| texts.map(Value::from).collect::<Value>();
    let parents = || role.parents.iter();
    let bare = role.name.rsplit('.').next().unwrap_or(&role.name);
    let collection = role.name.rsplit_once('.').map(|(collection, _)| collection);
    let values = [
        ("role_name", Value::from(bare)),
        ("ansible_role_name", Value::from(role.name.as_str())),
        ("role_path", Value::from(role.path.display().to_string())),
        (
            "ansible_parent_role_names",
            texts(&mut parents().rev().map(|(name, _)| name.clone())),
        ),
        (
            "ansible_parent_role_paths",
            texts(&mut parents().rev().map(|(_, path)| path.display().to_string())),
        ),
        (
            "ansible_dependent_role_names",
            texts(&mut role.dependencies.iter().cloned()),
        ),
    ];
    let values = values
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value));
    let collection =
        collection.map(|name| ("ansible_collection_name".to_owned(), Value::from(name)));
    let has_parents = !role.parents.is_empty();
    let of_parents =
        move |(name, _): &(String, Value)| has_parents || !name.starts_with("ansible_parent_role");
    values.chain(collection).filter(of_parents).collect()
}

/// A scope as templates see it: how the host is reached is at the end of it. What it is reached by is not made of that.
#[derive(Debug)]
struct Seen(HostScope);

impl Scope for Seen {
    fn get(&self, name: &str) -> Option<Variable> {
        self.0
            .get(name)
            .or_else(|| self.0.reached.as_ref()?.variable(name))
    }

    fn names(&self) -> Vec<String> {
        self.0.names()
    }

    fn origin(&self, name: &str) -> Option<String> {
        self.0.origin(name)
    }
}

impl Scope for HostScope {
    fn get(&self, name: &str) -> Option<Variable> {
        if let Some(value) = self.magic(name) {
            return Some(Variable::Data(value.clone()));
        }
        if let Some((batch, host)) = self.beside.as_ref().filter(|_| ALIVE.contains(&name)) {
            // Who is behind may fail where this host is already.
            return Some(match batch.is_ahead(host) {
                true => Variable::Pending(PendingId(u64::MAX)),
                false => Variable::Data(batch.alive().into_iter().map(Value::from).collect()),
            });
        }
        if name == "ansible_facts" {
            return Some(self.state.ansible_facts());
        }
        let as_written = |node: &Node| Variable::Written(node.clone());
        let local = self.local.iter().rev().find(|(local, _)| local == name);
        local
            .map(|(_, variable)| variable.clone())
            .or_else(|| self.extra.get(name).map(as_written))
            .or_else(|| self.param(name).map(as_written))
            .or_else(|| self.state.datum(name))
            .or_else(|| self.state.included(name))
            .or_else(|| self.written(name).map(as_written))
            // What the inventory says of a connection is not overruled by a fact in flight.
            .or_else(|| match self.state.fact(name) {
                Some(Variable::Data(fact)) => Some(Variable::Data(fact)),
                pending => self.inventory(name).map(as_written).or(pending),
            })
            .or_else(|| self.default(name).map(as_written))
    }

    fn names(&self) -> Vec<String> {
        let layers = self
            .inventory
            .iter()
            .flat_map(|layer| layer.vars.keys().cloned());
        let vars = self
            .written
            .iter()
            .chain(&self.params)
            .chain(&self.defaults);
        let written = vars.flat_map(|vars| vars.keys().cloned());
        let of_role = self.role_magic.iter().flat_map(|magic| magic.keys());
        let alive = self.beside.iter().flat_map(|_| ALIVE).map(str::to_owned);
        self.magic
            .keys()
            .chain(of_role)
            .cloned()
            .chain(alive)
            .chain(self.local.iter().map(|(name, _)| name.clone()))
            .chain(self.extra.keys().cloned())
            .chain(self.state.names())
            .chain(written)
            .chain(layers)
            .collect()
    }

    fn origin(&self, name: &str) -> Option<String> {
        let node = self
            .extra
            .get(name)
            .or_else(|| self.param(name))
            .or_else(|| self.written(name))
            .or_else(|| self.inventory(name))
            .or_else(|| self.default(name))?;
        Some(node.span.to_string())
    }
}
