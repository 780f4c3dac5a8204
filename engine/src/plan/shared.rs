//! What the plans of many hosts have in common, held once: a fleet has few kinds of hosts, and memory is to stay bounded.

use std::{collections::HashMap, sync::Arc};

use fleet_wire::{Effect, Entry, What};
use sha2::{Digest, Sha256};

use crate::event::TaskInfo;

type Held = (Arc<[Effect]>, Arc<[String]>);

/// Tasks and effects that were met.
#[derive(Clone, Debug, Default)]
pub(super) struct Shared {
    tasks: HashMap<usize, Arc<TaskInfo>>,
    effects: HashMap<[u8; 32], Held>,
}

impl Shared {
    /// The task, or one that is equal and was met before.
    pub(super) fn task(&mut self, task: &Arc<TaskInfo>) -> Arc<TaskInfo> {
        let known = self
            .tasks
            .entry(task.id)
            .or_insert_with(|| Arc::clone(task));
        match known == task {
            true => Arc::clone(known),
            // A name may be another on each host.
            false => Arc::clone(task),
        }
    }

    /// The effects with their digests, or those that are equal and were met before.
    pub(super) fn effects(&mut self, effects: &Arc<[Effect]>, digests: &Arc<[String]>) -> Held {
        let mut key = Sha256::new();
        for (effect, digest) in effects.iter().zip(digests.iter()) {
            key.update(digest);
            key.update([u8::from(effect.secret), u8::from(effect.assumed)]);
            // Two that do the same may hide different parts of it, and a service's state is no part of a digest.
            match &effect.what {
                What::File { before, after, .. } => {
                    for entry in [before, after] {
                        if let Entry::File(_, content) = entry {
                            key.update(content.bytes.as_deref().unwrap_or_default());
                            key.update([0]);
                        }
                    }
                }
                other => key.update(format!("{other:?}")),
            }
        }
        let held = self.effects.entry(key.finalize().into());
        let (effects, digests) = held.or_insert_with(|| (Arc::clone(effects), Arc::clone(digests)));
        (Arc::clone(effects), Arc::clone(digests))
    }
}
