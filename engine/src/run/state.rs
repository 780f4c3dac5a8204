//! What is known of a host during a run, beyond its inventory.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicU32, Ordering},
    },
};

use fleet_yaml::Node;
use minijinja::{
    Value,
    value::{Enumerator, Object},
};

use super::content::to_json;
use crate::{
    plan::Facts as PlanFacts,
    variables::{PendingId, Variable},
};

/// What is known of a host during a run. Shared with the scopes that read it.
#[derive(Debug)]
pub(crate) struct HostState {
    /// Its position in the inventory: what is in flight on two hosts must not be mixed up.
    ordinal: u64,
    /// Level 11: gathered facts under their `ansible_` names.
    facts: RwLock<Facts>,
    /// Level 18: `include_vars`.
    included: RwLock<BTreeMap<String, Node>>,
    /// Level 19: `set_fact` and registered results.
    data: RwLock<Data>,
    /// What a task changes while it is recorded for other hosts, too.
    record: Mutex<Option<Vec<Change>>>,
    /// Handlers that runs before this one left to be run.
    left: Mutex<BTreeSet<String>>,
    /// Groups of tasks that were sent for it so far.
    groups: AtomicU32,
    /// Facts that were looked at.
    used: Used,
    /// The facts that a saved plan was made with, which stand for those of now.
    pinned: Option<Arc<PlanFacts>>,
    /// Pinned facts that are not so any more.
    moved: Mutex<Vec<String>>,
}

/// Names of facts that were looked at.
type Used = Arc<Mutex<BTreeSet<String>>>;

/// Facts that change by themselves: a plan keeps what they were, and no apply is refused for them.
const RESTLESS: &[&str] = &[
    "ansible_date_time",
    "ansible_loadavg",
    "ansible_memfree_mb",
    "ansible_memory_mb",
    "ansible_mounts",
    "ansible_swapfree_mb",
    "ansible_uptime_seconds",
    "ansible_env",
    "ansible_locally_reachable_ips",
    "ansible_entropy_avail",
];

/// Whether a fact changes by itself.
#[must_use]
pub fn is_restless(name: &str) -> bool {
    RESTLESS.contains(&name)
}

/// `ansible_facts`, which keeps account of what is looked at.
#[derive(Debug)]
struct BareFacts {
    /// The facts' names in full and their values, by their names without `ansible_`.
    facts: BTreeMap<String, (String, Value)>,
    used: Used,
}

impl Object for BareFacts {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let (name, value) = self.facts.get(key.as_str()?)?;
        note(&self.used, name);
        Some(value.clone())
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(
            self.facts
                .keys()
                .map(|name| Value::from(name.as_str()))
                .collect(),
        )
    }
}

fn note(used: &Used, name: &str) {
    let mut used = used.lock().unwrap_or_else(PoisonError::into_inner);
    if !used.contains(name) {
        used.insert(name.to_owned());
    }
}

/// A change of a host's variables.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// `set_fact`, `register`
    Set(String, Variable),
    /// `include_vars`
    Included(String, Node),
    /// Facts that a module returned.
    Fact(String, Value),
}

#[derive(Debug, Default)]
struct Facts {
    known: BTreeMap<String, Value>,
    /// `ansible_facts`: the same without the prefix `ansible_`.
    bare: Option<Value>,
    /// A `setup` is in flight; every fact stands for it.
    pending: Option<Variable>,
    /// Some are not kept for later runs yet.
    new: bool,
}

/// The names that `setup`, `service_facts`, `package_facts`, `mount_facts` and `getent` give to what they find.
fn may_be_a_fact(name: &str) -> bool {
    matches!(
        name,
        "services" | "packages" | "mount_points" | "aggregate_mounts"
    ) || ["ansible_", "fleetctl_", "getent_"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

#[derive(Debug, Default)]
struct Data {
    variables: BTreeMap<String, Variable>,
    /// What variables stood for before a result in flight was to replace them.
    before: HashMap<String, Variable>,
}

impl HostState {
    /// `pinned` are the facts of a saved plan, where one is applied.
    pub(crate) fn new(ordinal: usize, pinned: Option<Arc<PlanFacts>>) -> Self {
        Self {
            ordinal: ordinal as u64,
            facts: RwLock::default(),
            included: RwLock::default(),
            data: RwLock::default(),
            record: Mutex::default(),
            left: Mutex::default(),
            groups: AtomicU32::new(0),
            used: Used::default(),
            pinned,
            moved: Mutex::default(),
        }
    }

    /// A number for another group of its tasks.
    pub(crate) fn next_group(&self) -> u32 {
        self.groups.fetch_add(1, Ordering::Relaxed) + 1
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

    /// Results that were in flight will never be known: variables are again what they were before.
    pub(crate) fn settle(&self) {
        let mut data = self.data.write().unwrap_or_else(PoisonError::into_inner);
        let Data { variables, before } = &mut *data;
        variables.retain(|name, variable| match variable {
            Variable::Pending(_) => match before.remove(name) {
                Some(old) => {
                    *variable = old;
                    true
                }
                None => false,
            },
            _ => true,
        });
        before.clear();
        self.facts_mut().pending = None;
    }

    fn facts_mut(&self) -> std::sync::RwLockWriteGuard<'_, Facts> {
        self.facts.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn facts_pending(&self, pending: Variable) {
        self.facts_mut().pending = Some(pending);
    }

    pub(crate) fn add_facts(&self, new: impl IntoIterator<Item = (String, Value)>) {
        let new: Vec<_> = new
            .into_iter()
            .map(|(name, value)| self.pin(name, value))
            .collect();
        if let Some(record) = &mut *self.record() {
            let facts = new.iter().cloned();
            record.extend(facts.map(|(name, value)| Change::Fact(name, value)));
        }
        let mut facts = self.facts_mut();
        facts.pending = None;
        facts.new |= !new.is_empty();
        facts.known.extend(new);
        facts.bare = None;
    }

    /// All facts are kept for later runs.
    pub(crate) fn facts_are_kept(&self) {
        self.facts_mut().new = false;
    }

    /// All facts, where some are not kept yet; from here on they are.
    pub(crate) fn new_facts(&self) -> Option<PlanFacts> {
        let mut facts = self.facts_mut();
        std::mem::take(&mut facts.new).then(|| {
            let known = facts.known.iter();
            known
                .map(|(name, value)| (name.clone(), to_json(value)))
                .collect()
        })
    }

    /// A fact as the plan has it; where it is another now, and none that changes by itself, that is kept.
    fn pin(&self, name: String, value: Value) -> (String, Value) {
        let Some(pinned) = self.pinned.as_ref().and_then(|pinned| pinned.get(&name)) else {
            return (name, value);
        };
        let now = to_json(&value);
        if now != *pinned && !is_restless(&name) {
            let moved = format!("`{name}` was {pinned} when the plan was made, and is {now} now");
            self.moved
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(moved);
        }
        let value = super::content::from_json(pinned);
        (name, value)
    }

    /// Pinned facts that are not so any more, each told once.
    pub(crate) fn take_moved(&self) -> Vec<String> {
        std::mem::take(&mut *self.moved.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The facts that were looked at.
    pub(crate) fn used_facts(&self) -> PlanFacts {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let facts = self.facts.read().unwrap_or_else(PoisonError::into_inner);
        let known = used
            .iter()
            .filter_map(|name| Some((name.clone(), to_json(facts.known.get(name)?))));
        known.collect()
    }

    /// `meta: clear_facts`
    pub(crate) fn clear_facts(&self) {
        *self.facts_mut() = Facts::default();
    }

    /// All facts under their `ansible_` names.
    pub(crate) fn facts(&self) -> BTreeMap<String, Value> {
        let facts = self.facts.read().unwrap_or_else(PoisonError::into_inner);
        facts.known.clone()
    }

    pub(crate) fn set(&self, name: &str, variable: Variable) {
        if let (Some(record), false) = (
            &mut *self.record(),
            matches!(variable, Variable::Pending(_)),
        ) {
            record.push(Change::Set(name.to_owned(), variable.clone()));
        }
        let mut data = self.data.write().unwrap_or_else(PoisonError::into_inner);
        let pending = matches!(variable, Variable::Pending(_));
        let old = data.variables.insert(name.to_owned(), variable);
        match old {
            Some(old) if pending && !matches!(old, Variable::Pending(_)) => {
                data.before.insert(name.to_owned(), old);
            }
            _ if !pending => {
                data.before.remove(name);
            }
            _ => {}
        }
    }

    pub(crate) fn include(&self, vars: impl IntoIterator<Item = (String, Node)>) {
        let vars: Vec<_> = vars.into_iter().collect();
        if let Some(record) = &mut *self.record() {
            let vars = vars.iter().cloned();
            record.extend(vars.map(|(name, node)| Change::Included(name, node)));
        }
        let mut included = self
            .included
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        included.extend(vars);
    }

    fn record(&self) -> MutexGuard<'_, Option<Vec<Change>>> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on changes are kept for other hosts.
    pub(crate) fn begin_record(&self) {
        *self.record() = Some(Vec::new());
    }

    /// The changes since then.
    pub(crate) fn end_record(&self) -> Vec<Change> {
        self.record().take().unwrap_or_default()
    }

    /// Makes another host's changes this one's.
    pub(crate) fn replay(&self, changes: &[Change]) {
        for change in changes.iter().cloned() {
            match change {
                Change::Set(name, variable) => self.set(&name, variable),
                Change::Included(name, node) => self.include([(name, node)]),
                Change::Fact(name, value) => self.add_facts([(name, value)]),
            }
        }
    }

    /// Handlers that earlier runs left to be run.
    pub(crate) fn notified_before(&self, handlers: Vec<String>) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        left.extend(handlers);
    }

    /// Whether an earlier run left a handler to be run, which is this one's from now on.
    pub(crate) fn take_notified_before(&self, handler: &str) -> bool {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        left.remove(handler)
    }

    /// `set_fact` or a registered result.
    pub(crate) fn datum(&self, name: &str) -> Option<Variable> {
        let data = self.data.read().unwrap_or_else(PoisonError::into_inner);
        data.variables.get(name).cloned()
    }

    /// A variable of `include_vars`.
    pub(crate) fn included(&self, name: &str) -> Option<Variable> {
        let included = self.included.read().unwrap_or_else(PoisonError::into_inner);
        included.get(name).cloned().map(Variable::Written)
    }

    pub(crate) fn fact(&self, name: &str) -> Option<Variable> {
        let facts = self.facts.read().unwrap_or_else(PoisonError::into_inner);
        // While facts are in flight any name of theirs may come to be one.
        match &facts.pending {
            Some(pending) if may_be_a_fact(name) => Some(pending.clone()),
            _ => {
                let fact = facts.known.get(name).cloned()?;
                note(&self.used, name);
                Some(Variable::Data(fact))
            }
        }
    }

    /// `ansible_facts`: the facts without their prefix.
    pub(crate) fn ansible_facts(&self) -> Variable {
        let mut facts = self.facts_mut();
        if let Some(pending) = &facts.pending {
            return pending.clone();
        }
        let Facts { known, bare, .. } = &mut *facts;
        let bare = bare.get_or_insert_with(|| {
            let bare = |name: &str| name.strip_prefix("ansible_").unwrap_or(name).to_owned();
            let facts = known
                .iter()
                .map(|(name, value)| (bare(name), (name.clone(), value.clone())));
            Value::from_object(BareFacts {
                facts: facts.collect(),
                used: Arc::clone(&self.used),
            })
        });
        Variable::Data(bare.clone())
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let data = self.data.read().unwrap_or_else(PoisonError::into_inner);
        let included = self.included.read().unwrap_or_else(PoisonError::into_inner);
        let facts = self.facts.read().unwrap_or_else(PoisonError::into_inner);
        let names = data.variables.keys().chain(included.keys());
        names.chain(facts.known.keys()).cloned().collect()
    }
}
