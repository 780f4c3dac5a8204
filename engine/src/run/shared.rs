//! What all hosts of a run share.

use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use fleet_wire::Mode;
use minijinja::{
    Value,
    value::{Enumerator, Object},
};
use tokio::sync::{Semaphore, mpsc};

use super::{
    Settings,
    scope::{HostScope, HostState},
};
use crate::{
    event::Event,
    inventory::{Inventory, Layer},
    playbook::{Play, Playbook, Vars},
    template::Templar,
};

/// A run's constant parts, and the states of its hosts.
pub(crate) struct Shared {
    pub(crate) run: String,
    pub(crate) mode: Mode,
    pub(crate) settings: Settings,
    pub(crate) inventory: Arc<Inventory>,
    pub(crate) playbooks: Arc<[Playbook]>,
    pub(crate) templar: Templar,
    pub(crate) events: mpsc::Sender<Event>,
    /// Hosts that work at the same time.
    pub(crate) forks: Semaphore,
    /// Files of variables, by path.
    pub(crate) files: Mutex<HashMap<PathBuf, Arc<Vars>>>,
    hosts: Mutex<HashMap<String, Arc<HostState>>>,
    layers: Mutex<HashMap<String, Arc<[Layer]>>>,
    /// The variables of all hosts, for `hostvars`.
    hostvars: Value,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("run", &self.run)
            .finish_non_exhaustive()
    }
}

impl Shared {
    pub(crate) fn new(
        run: String,
        mode: Mode,
        settings: Settings,
        inventory: Arc<Inventory>,
        playbooks: Arc<[Playbook]>,
        templar: Templar,
        events: mpsc::Sender<Event>,
    ) -> Arc<Self> {
        let forks = Semaphore::new(settings.forks);
        Arc::new_cyclic(|own| Self {
            hostvars: Value::from_object(HostVars {
                shared: own.clone(),
            }),
            run,
            mode,
            settings,
            inventory,
            playbooks,
            templar,
            events,
            forks,
            files: Mutex::default(),
            hosts: Mutex::default(),
            layers: Mutex::default(),
        })
    }

    pub(crate) async fn emit(&self, mut event: Event) {
        if let Event::TaskEnded(ended) = &mut event {
            ended.hide_secrets();
        }
        // A reader that has gone has nobody left to tell; the run itself goes on.
        let _ = self.events.send(event).await;
    }

    pub(crate) fn state(&self, host: &str) -> Arc<HostState> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        let next = hosts.len();
        Arc::clone(
            hosts
                .entry(host.to_owned())
                .or_insert_with(|| Arc::new(HostState::new(next))),
        )
    }

    fn layers(&self, host: &str) -> Arc<[Layer]> {
        let mut layers = self.layers.lock().unwrap_or_else(PoisonError::into_inner);
        let own = layers
            .entry(host.to_owned())
            .or_insert_with(|| self.inventory.layers(host).into());
        Arc::clone(own)
    }

    /// A host's scope within a play.
    pub(crate) fn scope(
        &self,
        host: &str,
        play: Option<&Play>,
        hosts: &[String],
        files: &[Arc<Vars>],
        playbook_dir: Option<PathBuf>,
    ) -> HostScope {
        let mut magic: BTreeMap<String, Value> = BTreeMap::new();
        let mut add = |name: &str, value: Value| magic.insert(name.to_owned(), value);
        add("inventory_hostname", host.into());
        add(
            "inventory_hostname_short",
            host.split('.').next().unwrap_or(host).into(),
        );
        add(
            "ansible_play_hosts",
            hosts.iter().map(String::as_str).collect(),
        );
        add(
            "ansible_play_hosts_all",
            hosts.iter().map(String::as_str).collect(),
        );
        add(
            "ansible_play_batch",
            hosts.iter().map(String::as_str).collect(),
        );
        add("play_hosts", hosts.iter().map(String::as_str).collect());
        add("ansible_check_mode", Value::from(self.mode == Mode::Plan));
        add("ansible_diff_mode", Value::from(self.settings.diff));
        add("ansible_forks", Value::from(self.settings.forks));
        add("ansible_version", ansible_version());
        add("hostvars", self.hostvars.clone());
        add("fleetctl_run", self.run.as_str().into());
        if let Some(dir) = playbook_dir {
            add("playbook_dir", dir.display().to_string().into());
        }
        if let Some(play) = play {
            add(
                "ansible_play_name",
                play.name.as_str().unwrap_or_default().into(),
            );
        }
        for (name, value) in self.inventory.magic(host) {
            magic.insert(name, value);
        }
        let written = play.map(|play| Arc::clone(&play.vars)).into_iter();
        HostScope {
            magic: Arc::new(magic),
            local: Vec::new(),
            extra: Arc::clone(&self.settings.extra_vars),
            state: self.state(host),
            written: written.chain(files.iter().cloned()).collect(),
            inventory: self.layers(host),
        }
    }
}

/// `hostvars`: the variables of each host, rendered when they are looked at.
#[derive(Debug)]
struct HostVars {
    shared: Weak<Shared>,
}

impl Object for HostVars {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let shared = self.shared.upgrade()?;
        let host = shared.inventory.host(key.as_str()?)?;
        let scope = shared.scope(&host.name, None, &[], &[], None);
        Some(shared.templar.variables(&scope.shared()))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        let Some(shared) = self.shared.upgrade() else {
            return Enumerator::Empty;
        };
        Enumerator::Values(
            shared
                .inventory
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
