//! The links of a run: one to each machine and each of the two kinds of rights there, made when it is first needed.

use std::{collections::HashMap, sync::Arc};

use fleet_wire::{Finish, ToHost, Undone};
use tokio::sync::Mutex;

use super::{
    confirm,
    connection::{self, Reach},
    dispatch::PlayContext,
    link::{Finished, Link, Watched},
    scope::HostScope,
    shared::{Place, Shared},
};
use crate::{
    event::HostEnd,
    playbook::{Task, Vars},
};

/// The variables that say how a host is reached; a task may set them for itself.
const CONNECTION: &[&str] = &[
    "ansible_connection",
    "ansible_host",
    "ansible_ssh_host",
    "ansible_port",
    "ansible_ssh_port",
    "ansible_user",
    "ansible_ssh_user",
    "ansible_become_method",
    "ansible_become_exe",
    "ansible_become_flags",
    "ansible_become_password",
    "ansible_become_pass",
    "ansible_private_key_file",
    "ansible_ssh_private_key_file",
    "ansible_ssh_common_args",
    "ansible_ssh_extra_args",
];

type Slot = Arc<Mutex<Option<Arc<Link>>>>;

/// The links that a run has made, by machine.
#[derive(Default)]
pub(super) struct Links {
    slots: std::sync::Mutex<HashMap<Key, Slot>>,
    /// What the hosts of links that perform effects look after, links that are gone included.
    watched: std::sync::Mutex<Vec<(String, Arc<Watched>)>>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    name: String,
    root: bool,
    /// How it is reached, where that is not the usual way.
    way: Option<String>,
}

impl Links {
    fn slot(&self, key: &Key) -> Slot {
        let mut slots = self
            .slots
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        Arc::clone(slots.entry(key.clone()).or_default())
    }

    /// Takes out the links to a machine.
    async fn take(&self, name: &str) -> Vec<Arc<Link>> {
        let slots: Vec<Slot> = {
            let mut slots = self
                .slots
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            let own: Vec<Key> = slots
                .keys()
                .filter(|key| key.name == name)
                .cloned()
                .collect();
            own.iter().filter_map(|key| slots.remove(key)).collect()
        };
        let mut links = Vec::new();
        for slot in slots {
            links.extend(slot.lock().await.take());
        }
        links
    }

    /// The links to a machine that are there.
    async fn open(&self, name: &str) -> Vec<Arc<Link>> {
        let slots: Vec<Slot> = {
            let slots = self
                .slots
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            let own = slots.iter().filter(|(key, _)| key.name == name);
            own.map(|(_, slot)| Arc::clone(slot)).collect()
        };
        let mut links = Vec::new();
        for slot in slots {
            links.extend(slot.lock().await.clone());
        }
        links
    }

    fn watch(&self, name: &str, link: &Link) {
        let watched = self.watched.lock();
        watched
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .push((name.to_owned(), Arc::clone(&link.watched)));
    }

    /// What a machine was told to look after in this run.
    pub(super) fn watched(&self, name: &str) -> Vec<Arc<Watched>> {
        let watched = self.watched.lock();
        watched
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .iter()
            .filter(|(own, _)| own == name)
            .map(|(_, watched)| Arc::clone(watched))
            .collect()
    }

    /// The machines with links.
    pub(super) fn names(&self) -> Vec<String> {
        let slots = self
            .slots
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut names: Vec<String> = slots.keys().map(|key| key.name.clone()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

impl Shared {
    /// The link to a host for a task of its own.
    ///
    /// # Errors
    /// How the host ended, as it cannot be reached or will not work.
    pub(super) async fn link(
        self: &Arc<Self>,
        name: &str,
        play: &PlayContext,
        task: &Task,
        scope: &HostScope,
        root: bool,
    ) -> Result<Arc<Link>, HostEnd> {
        let own = goes_its_own_way(task, scope, play);
        let (reach, way) = match own {
            false if play.as_root == root => (Arc::clone(&play.reach), None),
            _ => {
                let directives = &task.directives;
                let reach = connection::reach(self, name, Some(directives), scope, root)
                    .map_err(refused)?;
                let way = own.then(|| format!("{:?}", reach.address));
                (Arc::new(reach), way)
            }
        };
        let key = Key {
            name: name.to_owned(),
            root,
            way,
        };
        self.connected(key, &reach).await
    }

    /// The link to a host for a task that another delegates to it.
    ///
    /// # Errors
    /// How the host ended, as it cannot be reached or will not work.
    pub(super) async fn link_elsewhere(
        self: &Arc<Self>,
        name: &str,
        root: bool,
    ) -> Result<Arc<Link>, HostEnd> {
        let scope = self.scope(name, Place::default());
        let reach = connection::reach(self, name, None, &scope, root).map_err(refused)?;
        let key = Key {
            name: name.to_owned(),
            root,
            way: None,
        };
        self.connected(key, &reach).await
    }

    async fn connected(self: &Arc<Self>, key: Key, reach: &Reach) -> Result<Arc<Link>, HostEnd> {
        let slot = self.links.slot(&key);
        let mut slot = slot.lock().await;
        match &*slot {
            Some(link) if !link.is_lost() => Ok(Arc::clone(link)),
            _ => {
                let link = Link::connect(self, &key.name, reach, self.mode).await?;
                if link.applies() {
                    self.links.watch(&key.name, &link);
                }
                *slot = Some(Arc::clone(&link));
                Ok(link)
            }
        }
    }

    /// Ends the run on a machine; what became of its changes where some link made any.
    ///
    /// # Errors
    /// Why it is not known.
    pub(super) async fn finish(
        &self,
        name: &str,
        finish: Finish,
    ) -> Result<Option<Undone>, String> {
        let mut ended: Option<Undone> = None;
        for link in self.links.take(name).await {
            if !link.applies() {
                continue;
            }
            let undone = match link.finish(finish).await? {
                Finished::Over(undone) => undone,
                Finished::Armed(run) => {
                    confirm::confirm(self, name, &link.watched.reach, &run).await?
                }
            };
            match &mut ended {
                Some(before) => {
                    before.state = before.state.worse(undone.state);
                    before.effects.extend(undone.effects);
                }
                None => ended = Some(undone),
            }
        }
        Ok(ended)
    }

    /// Tells a machine that a handler has run of which it knows only that it was notified.
    pub(super) async fn handled(&self, name: &str, handler: &str) {
        for link in self.links.open(name).await {
            // A link that is gone is noticed by who needs it.
            let _ = link.send(&ToHost::Handled(handler.to_owned())).await;
        }
    }

    /// Lets a machine's connections go; new ones are made when they are needed.
    pub(super) async fn reset(&self, name: &str) -> Result<(), String> {
        self.finish(name, Finish::Leave).await.map(drop)
    }
}

fn refused(message: String) -> HostEnd {
    HostEnd::Refused {
        message,
        person: false,
    }
}

/// Whether a task says itself how its host is reached.
fn goes_its_own_way(task: &Task, scope: &HostScope, play: &PlayContext) -> bool {
    let sets = |vars: &Vars| CONNECTION.iter().any(|name| vars.contains_key(*name));
    let directives = &task.directives;
    let own = &directives.connection;
    let of_play = &play.play.connection;
    let differs = |own: &Option<fleet_yaml::Node>, play: &Option<fleet_yaml::Node>| {
        own.as_ref().map(|node| &node.span) != play.as_ref().map(|node| &node.span)
    };
    differs(&own.kind, &of_play.kind)
        || differs(&own.port, &of_play.port)
        || differs(&own.user, &of_play.user)
        || sets(&task.vars)
        || directives.vars.iter().any(|vars| sets(vars))
        || directives.include_params.iter().any(|vars| sets(vars))
        || directives.role.as_ref().is_some_and(|role| {
            let vars = role.vars.iter().chain(&role.params).chain(&role.defaults);
            vars.into_iter().any(|vars| sets(vars))
        })
        || CONNECTION
            .iter()
            .any(|name| scope.state.datum(name).is_some())
}
