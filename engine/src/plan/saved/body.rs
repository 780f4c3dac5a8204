//! The hashed part of a plan's file. What many hosts share stands once, and is named by its number.

use std::{
    collections::{BTreeMap, HashMap},
    io::{self, Read},
    sync::Arc,
};

use fleet_wire::{Content, Effect, Entry, Status, What};
use fleet_yaml::Source;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Facts, Saved, Store, Wave, hex};
use crate::{
    event::{HostEnd, TaskInfo},
    plan::{HostPlan, Plan, PlannedTask},
    playbook::Position,
    sources::{self, Snapshot},
};

/// The hashed part of a file.
#[derive(Serialize, Deserialize)]
pub(super) struct Body {
    pub(super) words: Vec<String>,
    pub(super) sources: Snapshot,
    pub(super) waves: Vec<Wave>,
    tasks: Vec<Info>,
    effects: Vec<Told>,
    items: Vec<Item>,
    lists: Vec<Vec<u32>>,
    hosts: BTreeMap<String, HostBody>,
}

#[derive(Clone, Serialize, Deserialize)]
struct Info {
    id: u64,
    name: String,
    module: String,
    place: String,
    handler: bool,
    role: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Told {
    /// Without contents.
    effect: Effect,
    digest: String,
    /// The contents that are shown, by their hashes: before and after.
    contents: [Option<String>; 2],
}

#[derive(Serialize, Deserialize)]
struct Item {
    task: u32,
    item: Option<String>,
    index: u32,
    status: Status,
    effects: Vec<u32>,
    message: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct HostBody {
    identity: String,
    facts: Facts,
    unchanged: u32,
    end: Option<HostEnd>,
    /// Its items, by the number of their list.
    list: u32,
}

/// Gives equal things one number.
struct Numbers<K>(HashMap<K, u32>);

impl<K: std::hash::Hash + Eq> Numbers<K> {
    fn of<T>(&mut self, key: K, list: &mut Vec<T>, make: impl FnOnce() -> T) -> u32 {
        let next = number(list.len());
        *self.0.entry(key).or_insert_with(|| {
            list.push(make());
            next
        })
    }
}

fn number(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

impl Saved {
    /// The hashed part, and the contents that it names.
    pub(super) fn body(&self) -> (Body, BTreeMap<String, Vec<u8>>) {
        let mut body = Body {
            words: self.words.clone(),
            sources: self.sources.clone(),
            waves: self.waves.clone(),
            tasks: Vec::new(),
            effects: Vec::new(),
            items: Vec::new(),
            lists: Vec::new(),
            hosts: BTreeMap::new(),
        };
        let mut contents = BTreeMap::new();
        let (mut tasks, mut effects, mut items, mut lists) = (
            Numbers(HashMap::new()),
            Numbers(HashMap::new()),
            Numbers(HashMap::new()),
            Numbers(HashMap::new()),
        );
        // Hosts mostly share their effects themselves: those are looked at once.
        let mut shared: HashMap<*const Effect, Vec<u32>> = HashMap::new();
        for (name, host) in &self.plan.hosts {
            let mut list = Vec::with_capacity(host.tasks.len());
            for planned in &host.tasks {
                let task = tasks.of(planned.task.id, &mut body.tasks, || Info::of(&planned.task));
                let numbers = shared.entry(planned.effects.as_ptr()).or_insert_with(|| {
                    let told = planned.effects.iter().zip(planned.digests.iter());
                    told.map(|(effect, digest)| {
                        let shown = shown(effect);
                        effects.of((digest.clone(), shown), &mut body.effects, || {
                            let mut effect = effect.clone();
                            let taken = take_bytes(&mut effect, &mut contents);
                            Told {
                                effect,
                                digest: digest.clone(),
                                contents: taken,
                            }
                        })
                    })
                    .collect()
                });
                let numbers = match planned.effects.is_empty() {
                    true => Vec::new(),
                    false => numbers.clone(),
                };
                let key = (
                    task,
                    planned.item.clone(),
                    planned.index,
                    planned.status as u8,
                    numbers.clone(),
                    planned.message.clone(),
                );
                list.push(items.of(key, &mut body.items, || Item {
                    task,
                    item: planned.item.clone(),
                    index: number(planned.index),
                    status: planned.status,
                    effects: numbers,
                    message: planned.message.clone(),
                }));
            }
            let list = lists.of(list.clone(), &mut body.lists, || list);
            body.hosts.insert(
                name.clone(),
                HostBody {
                    identity: host.identity.clone(),
                    facts: host.facts.clone(),
                    unchanged: number(host.unchanged),
                    end: host.end.clone(),
                    list,
                },
            );
        }
        (body, contents)
    }
}

/// What is shown of an effect: two that do the same may hide different parts.
fn shown(effect: &Effect) -> String {
    match &effect.what {
        What::File { before, after, .. } => format!("{}{}", told(before), told(after)),
        _ => String::new(),
    }
}

fn told(entry: &Entry) -> String {
    match entry {
        Entry::File(_, content) => content
            .bytes
            .as_ref()
            .map_or_else(|| "-".to_owned(), |bytes| hex(Sha256::digest(bytes))),
        _ => String::new(),
    }
}

/// The contents of an effect, before and after.
fn contents(effect: &mut Effect) -> [Option<&mut Content>; 2] {
    fn own(entry: &mut Entry) -> Option<&mut Content> {
        match entry {
            Entry::File(_, content) => Some(content),
            _ => None,
        }
    }
    match &mut effect.what {
        What::File { before, after, .. } => [before, after].map(own),
        _ => [None, None],
    }
}

/// Puts the contents of an effect among all contents, once each; what they are found by.
fn take_bytes(effect: &mut Effect, all: &mut BTreeMap<String, Vec<u8>>) -> [Option<String>; 2] {
    contents(effect).map(|content| {
        let bytes = content?.bytes.take()?;
        let sha256 = hex(Sha256::digest(&bytes));
        all.insert(sha256.clone(), bytes);
        Some(sha256)
    })
}

fn give_bytes(effect: &mut Effect, names: &[Option<String>; 2], store: &Store) -> io::Result<()> {
    for (content, name) in contents(effect).into_iter().zip(names) {
        if let (Some(content), Some(name)) = (content, name) {
            let mut bytes = Vec::new();
            sources::Contents::open(store, name)?.read_to_end(&mut bytes)?;
            content.bytes = Some(bytes);
        }
    }
    Ok(())
}

impl Info {
    fn of(task: &TaskInfo) -> Self {
        Self {
            id: task.id as u64,
            name: task.name.clone(),
            module: task.module.clone(),
            place: task.place.clone(),
            handler: task.handler,
            role: task.role.clone(),
        }
    }

    fn info(self) -> TaskInfo {
        TaskInfo {
            id: usize::try_from(self.id).unwrap_or(usize::MAX),
            name: self.name,
            module: self.module,
            place: self.place,
            handler: self.handler,
            role: self.role,
            position: Position::default(),
            span: Source::new("", "").span(0, 0),
            check: false,
        }
    }
}

impl Body {
    /// The plan itself.
    pub(super) fn plan(&self, store: &Store) -> io::Result<Plan> {
        let bad = || io::Error::new(io::ErrorKind::InvalidData, "a number in it leads nowhere");
        let tasks: Vec<Arc<TaskInfo>> = self
            .tasks
            .iter()
            .map(|info| Arc::new(info.clone().info()))
            .collect();
        let mut effects = Vec::with_capacity(self.effects.len());
        for told in &self.effects {
            let mut effect = told.effect.clone();
            give_bytes(&mut effect, &told.contents, store)?;
            effects.push(effect);
        }
        let mut items = Vec::with_capacity(self.items.len());
        for item in &self.items {
            let at = |number: &u32| usize::try_from(*number).unwrap_or(usize::MAX);
            let own: Option<Vec<Effect>> = item
                .effects
                .iter()
                .map(|number| effects.get(at(number)).cloned())
                .collect();
            let digests: Option<Vec<String>> = item
                .effects
                .iter()
                .map(|number| Some(self.effects.get(at(number))?.digest.clone()))
                .collect();
            items.push(PlannedTask {
                task: tasks.get(at(&item.task)).cloned().ok_or_else(bad)?,
                item: item.item.clone(),
                index: at(&item.index),
                status: item.status,
                effects: own.ok_or_else(bad)?.into(),
                digests: digests.ok_or_else(bad)?.into(),
                message: item.message.clone(),
            });
        }
        let mut plan = Plan::default();
        for (name, host) in &self.hosts {
            let list = self
                .lists
                .get(usize::try_from(host.list).unwrap_or(usize::MAX))
                .ok_or_else(bad)?;
            let tasks: Option<Vec<PlannedTask>> = list
                .iter()
                .map(|number| {
                    items
                        .get(usize::try_from(*number).unwrap_or(usize::MAX))
                        .cloned()
                })
                .collect();
            plan.hosts.insert(
                name.clone(),
                HostPlan {
                    tasks: tasks.ok_or_else(bad)?,
                    unchanged: usize::try_from(host.unchanged).unwrap_or_default(),
                    end: host.end.clone(),
                    identity: host.identity.clone(),
                    facts: host.facts.clone(),
                },
            );
        }
        Ok(plan)
    }
}
