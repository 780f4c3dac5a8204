//! What all hosts of a run share.

use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak,
        atomic::{AtomicBool, AtomicU32},
    },
};

use fleet_wire::{Effect, Mode};
use fleet_yaml::Diagnostic;
use minijinja::{
    Value,
    value::{Enumerator, Object},
};
use tokio::sync::{Semaphore, mpsc};

use super::{
    Settings,
    batch::Batch,
    links::Links,
    scope::{ALIVE, HostScope},
    state::HostState,
};
use crate::{
    event::Event,
    inventory::{Inventory, Layer},
    playbook::{Books, Play, Playbook, Vars},
    template::{Templar, pending_variable},
};

/// A run's constant parts, and the states of its hosts.
pub(crate) struct Shared {
    pub(crate) run: String,
    /// Tells this run of this process from any other that has its name.
    pub(crate) controller: u64,
    pub(crate) mode: Mode,
    pub(crate) settings: Settings,
    pub(crate) playbooks: Arc<[Playbook]>,
    pub(crate) books: Books,
    pub(crate) templar: Templar,
    pub(crate) events: mpsc::Sender<Event>,
    /// Hosts that work at the same time.
    pub(crate) forks: Arc<Semaphore>,
    /// Files of variables, by path.
    pub(crate) files: Mutex<HashMap<PathBuf, Arc<Vars>>>,
    pub(super) links: Links,
    pub(super) next_task: AtomicU32,
    pub(super) next_lane: AtomicU32,
    /// `meta: clear_host_errors` was met: failed hosts are back from the next play on.
    pub(super) errors_cleared: AtomicBool,
    inventory: RwLock<Arc<Inventory>>,
    /// What this run has changed in the inventory, in order.
    changes: Mutex<Vec<Change>>,
    turns: Mutex<HashMap<usize, Arc<Semaphore>>>,
    hosts: Mutex<HashMap<String, Arc<HostState>>>,
    layers: Mutex<HashMap<String, Arc<[Layer]>>>,
    own: Weak<Shared>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("run", &self.run)
            .finish_non_exhaustive()
    }
}

/// A change of the inventory.
type Change = Box<dyn Fn(&mut Inventory) -> Result<(), Vec<Diagnostic>> + Send + Sync>;

/// Where a host's names are looked for.
#[derive(Clone, Copy, Default)]
pub(crate) struct Place<'a> {
    /// The play that the host is in.
    pub(crate) play: Option<&'a Play>,
    /// All hosts of the play.
    pub(crate) hosts: &'a [String],
    /// Those that are under way with it.
    pub(super) batch: Option<&'a Arc<Batch>>,
    /// Levels 13 and 14: prompts, and the variables of `vars_files`.
    pub(crate) files: &'a [Arc<Vars>],
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub(super) fn new(run: super::Run, events: mpsc::Sender<Event>) -> Arc<Self> {
        let forks = Arc::new(Semaphore::new(run.settings.forks));
        Arc::new_cyclic(|own| Self {
            own: own.clone(),
            run: run.name,
            controller: std::hash::BuildHasher::hash_one(
                &std::hash::RandomState::new(),
                std::process::id(),
            ),
            mode: run.mode,
            settings: run.settings,
            inventory: RwLock::new(run.inventory),
            changes: Mutex::default(),
            playbooks: run.playbooks,
            books: run.books,
            templar: run.templar,
            events,
            forks,
            files: Mutex::default(),
            links: Links::default(),
            next_task: AtomicU32::new(1),
            next_lane: AtomicU32::new(1),
            errors_cleared: AtomicBool::new(false),
            turns: Mutex::default(),
            hosts: Mutex::default(),
            layers: Mutex::default(),
        })
    }

    /// A warning that is about no host in particular.
    pub(crate) async fn warn(&self, text: String) {
        self.emit(Event::Warning { host: None, text }).await;
    }

    pub(crate) async fn emit(&self, mut event: Event) {
        if let Event::TaskEnded(ended) = &mut event {
            ended.digests = ended.effects.iter().map(Effect::digest).collect();
            ended.hide_secrets();
            let shown = Arc::clone(&ended.effects);
            self.templar.vault().hide_in(&mut event);
            self.key_digests(&shown, &mut event);
        } else {
            self.templar.vault().hide_in(&mut event);
        }
        // A reader that has gone has nobody left to tell; the run itself goes on.
        let _ = self.events.send(event).await;
    }

    /// Digests of what holds secrets are of no use to who does not have the key.
    fn key_digests(&self, shown: &[Effect], event: &mut Event) {
        let (Event::TaskEnded(ended), Some(key)) = (event, &self.settings.digest_key) else {
            return;
        };
        let hides = |(shown, hidden): (&Effect, &Effect)| hidden.secret || shown != hidden;
        let hiding: Vec<bool> = shown.iter().zip(ended.effects.iter()).map(hides).collect();
        if !hiding.contains(&true) {
            return;
        }
        let key = key.of(ended.delegated.as_ref().unwrap_or(&ended.host));
        let both = ended.effects.iter().zip(ended.digests.iter()).zip(hiding);
        let (effects, digests): (Vec<Effect>, Vec<String>) = both
            .map(|((effect, digest), hides)| match hides {
                true => (effect.keyed(&key), key.digest(digest)),
                false => (effect.clone(), digest.clone()),
            })
            .unzip();
        (ended.effects, ended.digests) = (effects.into(), digests.into());
    }

    pub(crate) fn state(&self, host: &str) -> Arc<HostState> {
        let mut hosts = lock(&self.hosts);
        let next = hosts.len();
        Arc::clone(hosts.entry(host.to_owned()).or_insert_with(|| {
            let saved = self.settings.saved.as_ref();
            let pinned = saved.and_then(|saved| saved.facts.get(host)).cloned();
            let state = HostState::new(next, pinned);
            self.recall(host, &state);
            Arc::new(state)
        }))
    }

    /// Takes in what is kept of a host from earlier runs.
    fn recall(&self, host: &str, state: &HostState) {
        let Some(cache) = &self.settings.fact_cache else {
            return;
        };
        match cache.get(host) {
            Ok(facts) => {
                let facts = facts.into_iter().flatten();
                state.add_facts(
                    facts.map(|(name, value)| (name, super::content::from_json(&value))),
                );
                state.facts_are_kept();
            }
            Err(text) => {
                let host = Some(host.to_owned());
                // Where nobody reads fast enough a warning is not worth waiting for.
                let _ = self.events.try_send(Event::Warning { host, text });
            }
        }
    }

    /// Keeps what is known of a host for later runs, where there is something new.
    pub(crate) async fn keep_facts(&self, host: &str) {
        let Some(cache) = &self.settings.fact_cache else {
            return;
        };
        let Some(facts) = self.state(host).new_facts() else {
            return;
        };
        if let Err(problem) = cache.set(host, &facts) {
            let text = format!(
                "its facts cannot be kept in {}: {problem}",
                cache.dir.display()
            );
            let host = Some(host.to_owned());
            self.emit(Event::Warning { host, text }).await;
        }
    }

    /// The hosts and groups as they are now.
    pub(crate) fn inventory(&self) -> Arc<Inventory> {
        Arc::clone(
            &self
                .inventory
                .read()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }

    /// Changes the hosts and groups, for all hosts from here on, and again when the sources are read anew.
    ///
    /// # Errors
    /// As the change says; nothing is changed then.
    pub(crate) fn change_inventory(
        &self,
        change: impl Fn(&mut Inventory) -> Result<(), Vec<Diagnostic>> + Send + Sync + 'static,
    ) -> Result<(), Vec<Diagnostic>> {
        let mut inventory = self
            .inventory
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        change(Arc::make_mut(&mut inventory))?;
        lock(&self.changes).push(Box::new(change));
        lock(&self.layers).clear();
        Ok(())
    }

    /// Reads the inventory's sources anew, makes the changes of this run in it once more, and gives back what is odd
    /// about the sources.
    ///
    /// # Errors
    /// What is wrong with the sources; the inventory stays what it was then.
    pub(crate) async fn refresh_inventory(&self) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
        let Some(read) = self.settings.read_inventory.clone() else {
            return Ok(Vec::new());
        };
        // Scripts among the sources take their time.
        let (mut fresh, noticed) = tokio::task::spawn_blocking(move || read())
            .await
            .unwrap_or_else(|gone| std::panic::resume_unwind(gone.into_panic()))?;
        // Held from here on, so that no change is made in between and lost.
        let mut inventory = self
            .inventory
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        for change in lock(&self.changes).iter() {
            // What was done to a host that has gone is of no interest any more.
            let _ = change(&mut fresh);
        }
        *inventory = Arc::new(fresh);
        lock(&self.layers).clear();
        Ok(noticed)
    }

    /// What hosts hold while they do a throttled task.
    pub(crate) fn turns(&self, task: usize, places: usize) -> Arc<Semaphore> {
        let mut turns = lock(&self.turns);
        let own = turns
            .entry(task)
            .or_insert_with(|| Arc::new(Semaphore::new(places)));
        Arc::clone(own)
    }

    pub(crate) fn layers(&self, host: &str) -> Arc<[Layer]> {
        let mut layers = lock(&self.layers);
        let own = layers
            .entry(host.to_owned())
            .or_insert_with(|| self.inventory().layers(host).into());
        Arc::clone(own)
    }

    /// A host's scope within a play.
    pub(crate) fn scope(&self, host: &str, place: Place<'_>) -> HostScope {
        let settings = &self.settings;
        let mut magic: BTreeMap<String, Value> = BTreeMap::new();
        let mut add = |name: &str, value: Value| magic.insert(name.to_owned(), value);
        let words = |words: &[String]| words.iter().map(String::as_str).collect::<Value>();
        add("inventory_hostname", host.into());
        add(
            "inventory_hostname_short",
            host.split('.').next().unwrap_or(host).into(),
        );
        if place.batch.is_none() {
            for name in ALIVE {
                add(name, words(place.hosts));
            }
        }
        add("ansible_play_hosts_all", words(place.hosts));
        add(
            "ansible_check_mode",
            Value::from(self.mode == Mode::Plan && settings.as_ansible),
        );
        add("ansible_diff_mode", Value::from(settings.diff));
        add("ansible_forks", Value::from(settings.forks));
        add("ansible_verbosity", Value::from(settings.verbosity));
        add("ansible_version", ansible_version());
        let only = match settings.tags.only.is_empty() {
            true => words(&["all".to_owned()]),
            false => words(&settings.tags.only),
        };
        add("ansible_run_tags", only);
        add("ansible_skip_tags", words(&settings.tags.skip));
        add("ansible_inventory_sources", words(&settings.sources));
        if let Some(limit) = &settings.limit_text {
            add("ansible_limit", limit.as_str().into());
        }
        if let Some(file) = &settings.config_file {
            add("ansible_config_file", file.display().to_string().into());
        }
        add("ansible_playbook_python", "/usr/bin/python3".into());
        add(
            "hostvars",
            Value::from_object(HostVars {
                shared: self.own.clone(),
                viewer: place
                    .batch
                    .map(|batch| (Arc::clone(batch), host.to_owned())),
            }),
        );
        // What a plan was made with is what its apply sees.
        let run = settings
            .saved
            .as_ref()
            .map_or(&self.run, |saved| &saved.run);
        add("fleetctl_run", run.as_str().into());
        add(
            "playbook_dir",
            settings.playbook_dir.display().to_string().into(),
        );
        let mut written = Vec::new();
        if let Some(play) = place.play {
            add(
                "ansible_play_name",
                play.name.as_str().unwrap_or_default().into(),
            );
            let roles: Value = play
                .roles
                .iter()
                .map(|role| Value::from(role.name.as_str()))
                .collect();
            let below = play.roles.iter().flat_map(|role| &role.dependencies);
            let all = play.roles.iter().map(|role| &role.name).chain(below);
            let all: std::collections::BTreeSet<&str> = all.map(String::as_str).collect();
            add(
                "ansible_role_names",
                all.into_iter().map(Value::from).collect(),
            );
            add("role_names", roles.clone());
            add("ansible_play_role_names", roles);
            written.push(Arc::clone(&play.vars));
            written.extend(play.imported.iter().cloned());
        }
        written.extend(place.files.iter().cloned());
        for (name, value) in self.inventory().magic(host) {
            magic.insert(name, value);
        }
        HostScope {
            magic: Arc::new(magic),
            role_magic: None,
            local: Vec::new(),
            extra: Arc::clone(&settings.extra_vars),
            params: Vec::new(),
            state: self.state(host),
            written,
            inventory: self.layers(host),
            defaults: Vec::new(),
            reached: None,
            beside: place
                .batch
                .map(|batch| (Arc::clone(batch), host.to_owned())),
        }
    }

    /// The same scope with the groups and group variables as they are now.
    pub(crate) fn refreshed(&self, host: &str, scope: &HostScope) -> HostScope {
        let mut scope = scope.clone();
        let mut magic = (*scope.magic).clone();
        magic.extend(self.inventory().magic(host));
        scope.magic = Arc::new(magic);
        scope.inventory = self.layers(host);
        scope
    }
}

/// `hostvars`: the variables of each host, rendered when they are looked at.
#[derive(Debug)]
struct HostVars {
    shared: Weak<Shared>,
    /// Who looks, and beside whom it works.
    viewer: Option<(Arc<Batch>, String)>,
}

impl Object for HostVars {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let shared = self.shared.upgrade()?;
        let inventory = shared.inventory();
        let host = inventory.host(key.as_str()?)?;
        if let Some((batch, viewer)) = &self.viewer
            && batch.is_behind(&host.name, viewer)
        {
            // What it has yet to register belongs to what is seen here.
            let elsewhere = shared.state(&host.name).pending(0);
            return Some(pending_variable(&host.name, elsewhere));
        }
        let scope = shared.scope(&host.name, Place::default());
        Some(shared.templar.variables(&scope.shared()))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        let Some(shared) = self.shared.upgrade() else {
            return Enumerator::Empty;
        };
        Enumerator::Values(
            shared
                .inventory()
                .hosts()
                .map(|host| Value::from(host.name.as_str()))
                .collect(),
        )
    }
}

/// The language level that fleetctl follows, for playbooks that ask.
fn ansible_version() -> Value {
    let parts = [("full", "2.21.5"), ("string", "2.21.5")].map(|(k, v)| (k, Value::from(v)));
    let numbers = [("major", 2), ("minor", 21), ("revision", 5)].map(|(k, v)| (k, Value::from(v)));
    Value::from_pairs(parts.into_iter().chain(numbers))
}
