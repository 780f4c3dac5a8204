//! What a name stands for on a host: Ansible's levels of precedence, highest first.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLock},
};

use fleet_yaml::Node;
use minijinja::Value;

use crate::{
    inventory::Layer,
    playbook::{Task, Vars},
    variables::{PendingId, Scope, Variable},
};

/// What is known of a host during a run, beyond its inventory. Shared with the scopes that read it.
#[derive(Debug)]
pub(crate) struct HostState {
    /// Its position in the inventory: what is in flight on two hosts must not be mixed up.
    ordinal: u64,
    /// Level 11: gathered facts under their `ansible_` names.
    facts: RwLock<Facts>,
    /// Level 18: `include_vars`.
    included: RwLock<BTreeMap<String, Node>>,
    /// Level 19: `set_fact` and registered results.
    data: RwLock<BTreeMap<String, Variable>>,
}

#[derive(Debug, Default)]
enum Facts {
    #[default]
    None,
    /// A `setup` is in flight; every fact stands for it.
    Pending(Variable),
    Known {
        facts: BTreeMap<String, Value>,
        /// `ansible_facts`: the same without the prefix `ansible_`.
        bare: Value,
    },
}

impl HostState {
    pub(crate) fn new(ordinal: usize) -> Self {
        let ordinal = ordinal as u64;
        Self {
            ordinal,
            facts: RwLock::default(),
            included: RwLock::default(),
            data: RwLock::default(),
        }
    }

    /// What stands for the results of a group of this host's tasks.
    pub(crate) fn pending(&self, group: u32) -> PendingId {
        PendingId(self.ordinal << 32 | u64::from(group))
    }

    /// The group of this host's tasks that `pending` stands for; none where it is another host's.
    pub(crate) fn group(&self, pending: PendingId) -> Option<u32> {
        let own = pending.0 >> 32 == self.ordinal & u64::from(u32::MAX);
        own.then(|| u32::try_from(pending.0 & u64::from(u32::MAX)).unwrap_or_default())
    }

    /// The host goes no further: results that were in flight will never be known.
    pub(crate) fn settle(&self) {
        let mut data = self.data.write().unwrap_or_else(PoisonError::into_inner);
        data.retain(|_, variable| !matches!(variable, Variable::Pending(_)));
        let mut facts = self.facts.write().unwrap_or_else(PoisonError::into_inner);
        if matches!(*facts, Facts::Pending(_)) {
            *facts = Facts::None;
        }
    }

    pub(crate) fn facts_pending(&self, pending: Variable) {
        *self.facts.write().unwrap_or_else(PoisonError::into_inner) = Facts::Pending(pending);
    }

    pub(crate) fn add_facts(&self, new: impl IntoIterator<Item = (String, Value)>) {
        let mut facts = self.facts.write().unwrap_or_else(PoisonError::into_inner);
        let mut known = match std::mem::take(&mut *facts) {
            Facts::Known { facts, .. } => facts,
            Facts::None | Facts::Pending(_) => BTreeMap::new(),
        };
        known.extend(new);
        let bare = known
            .iter()
            .map(|(name, value)| (name.strip_prefix("ansible_").unwrap_or(name), value.clone()));
        *facts = Facts::Known {
            bare: Value::from_pairs(bare),
            facts: known,
        };
    }

    pub(crate) fn set(&self, name: &str, variable: Variable) {
        let mut data = self.data.write().unwrap_or_else(PoisonError::into_inner);
        data.insert(name.to_owned(), variable);
    }

    pub(crate) fn include(&self, vars: impl IntoIterator<Item = (String, Node)>) {
        let mut included = self
            .included
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        included.extend(vars);
    }

    fn datum(&self, name: &str) -> Option<Variable> {
        self.data
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(name)
            .cloned()
    }

    fn included(&self, name: &str) -> Option<Variable> {
        let included = self.included.read().unwrap_or_else(PoisonError::into_inner);
        included.get(name).cloned().map(Variable::Written)
    }

    fn fact(&self, name: &str) -> Option<Variable> {
        match &*self.facts.read().unwrap_or_else(PoisonError::into_inner) {
            Facts::None => None,
            // While facts are in flight any name of theirs may come to be one.
            Facts::Pending(pending) => (name.starts_with("ansible_")
                || name.starts_with("fleetctl_"))
            .then(|| pending.clone()),
            Facts::Known { facts, .. } => facts.get(name).cloned().map(Variable::Data),
        }
    }

    /// `ansible_facts`: the facts without their prefix.
    fn ansible_facts(&self) -> Option<Variable> {
        match &*self.facts.read().unwrap_or_else(PoisonError::into_inner) {
            Facts::None => Some(Variable::Data(Value::from_pairs(std::iter::empty::<(
                &str,
                Value,
            )>()))),
            Facts::Pending(pending) => Some(pending.clone()),
            Facts::Known { bare, .. } => Some(Variable::Data(bare.clone())),
        }
    }

    fn names(&self) -> Vec<String> {
        let data = self.data.read().unwrap_or_else(PoisonError::into_inner);
        let included = self.included.read().unwrap_or_else(PoisonError::into_inner);
        let mut names: Vec<String> = data.keys().chain(included.keys()).cloned().collect();
        if let Facts::Known { facts, .. } =
            &*self.facts.read().unwrap_or_else(PoisonError::into_inner)
        {
            names.extend(facts.keys().cloned());
        }
        names
    }
}

/// A host's names in a play, in a task, in an item of its loop. Cheap to clone and to narrow.
#[derive(Clone, Debug)]
pub(crate) struct HostScope {
    /// Magic variables: they win over everything.
    pub(crate) magic: Arc<BTreeMap<String, Value>>,
    /// The loop's item and its like, and a registered result while its conditions are judged.
    pub(crate) local: Vec<(String, Variable)>,
    /// Level 22.
    pub(crate) extra: Arc<Vars>,
    /// Levels 11, 18 and 19.
    pub(crate) state: Arc<HostState>,
    /// Levels 12 to 17, lowest first: play vars, vars files, block vars, task vars.
    pub(crate) written: Vec<Arc<Vars>>,
    /// Levels 3 to 10, lowest first.
    pub(crate) inventory: Arc<[Layer]>,
}

impl HostScope {
    /// The scope within a task.
    pub(crate) fn of_task(&self, task: &Task) -> Self {
        let mut scope = self.clone();
        scope.written.extend(task.directives.vars.iter().cloned());
        scope.written.push(Arc::clone(&task.vars));
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
        Arc::new(self.clone())
    }

    fn written(&self, name: &str) -> Option<&Node> {
        self.written.iter().rev().find_map(|vars| vars.get(name))
    }

    fn inventory(&self, name: &str) -> Option<&Node> {
        self.inventory
            .iter()
            .rev()
            .find_map(|layer| layer.vars.get(name))
            .map(|found| &found.value)
    }
}

impl Scope for HostScope {
    fn get(&self, name: &str) -> Option<Variable> {
        if let Some(value) = self.magic.get(name) {
            return Some(Variable::Data(value.clone()));
        }
        if name == "ansible_facts" {
            return self.state.ansible_facts();
        }
        let local = self.local.iter().rev().find(|(local, _)| local == name);
        local
            .map(|(_, variable)| variable.clone())
            .or_else(|| self.extra.get(name).cloned().map(Variable::Written))
            .or_else(|| self.state.datum(name))
            .or_else(|| self.state.included(name))
            .or_else(|| self.written(name).cloned().map(Variable::Written))
            // What the inventory says of a connection is not overruled by a fact in flight.
            .or_else(|| match self.state.fact(name) {
                Some(Variable::Data(fact)) => Some(Variable::Data(fact)),
                pending => self
                    .inventory(name)
                    .cloned()
                    .map(Variable::Written)
                    .or(pending),
            })
    }

    fn names(&self) -> Vec<String> {
        let layers = self
            .inventory
            .iter()
            .flat_map(|layer| layer.vars.keys().cloned());
        let written = self.written.iter().flat_map(|vars| vars.keys().cloned());
        self.magic
            .keys()
            .cloned()
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
            .or_else(|| self.written(name))
            .or_else(|| self.inventory(name))?;
        Some(node.span.to_string())
    }
}
