//! The hosts of a play that are under way together: how far each has come, and where they wait for each other.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::watch;

use crate::event::Strategy;

/// The hosts of a play, or of one batch of it.
#[derive(Debug)]
pub(super) struct Batch {
    /// Their names, in order.
    pub(super) hosts: Arc<[String]>,
    pub(super) strategy: Strategy,
    progress: Mutex<Progress>,
    /// Counts whatever changes in `progress`.
    moved: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Progress {
    /// Up to where each host that is still under way has come: all before it is over for it.
    places: HashMap<String, Vec<u32>>,
    /// Hosts that failed in this batch, and those that could not be reached.
    failed: BTreeSet<String>,
    /// It is over for all its hosts, and perhaps for those of later batches, too.
    ended: bool,
    play_ended: bool,
    /// Where all hosts fail, since one did and that was fatal.
    fatal: Option<Vec<u32>>,
    /// What `run_once` tasks came to, by their place.
    once: HashMap<Vec<u32>, Arc<Once>>,
}

/// What a task that is run once for all hosts came to.
#[derive(Debug, Default)]
pub(super) struct Once {
    pub(super) failed: bool,
    /// It ended the play.
    pub(super) ended: bool,
}

/// What a host has to do with a task that is run once.
pub(super) enum Part {
    /// It runs the task, and says what came of it.
    Doer,
    /// Another host has run it.
    Reader(Arc<Once>),
}

impl Batch {
    pub(super) fn new(hosts: Arc<[String]>, strategy: Strategy) -> Self {
        let places = hosts
            .iter()
            .map(|host| (host.clone(), Vec::new()))
            .collect();
        Self {
            hosts,
            strategy,
            progress: Mutex::new(Progress {
                places,
                ..Progress::default()
            }),
            moved: watch::Sender::new(0),
        }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self) {
        self.moved.send_modify(|count| *count += 1);
    }

    /// A host has come to `place`.
    pub(super) fn pass(&self, host: &str, place: &[u32]) {
        if let Some(own) = self.progress().places.get_mut(host) {
            own.clear();
            own.extend_from_slice(place);
        }
        self.tell();
    }

    /// A host goes no further.
    pub(super) fn leave(&self, host: &str, failed: bool) {
        let mut progress = self.progress();
        progress.places.remove(host);
        if failed {
            progress.failed.insert(host.to_owned());
        }
        drop(progress);
        self.tell();
    }

    /// Hosts that are still under way, in order.
    pub(super) fn alive(&self) -> Vec<String> {
        let progress = self.progress();
        let alive = |host: &&String| progress.places.contains_key(*host);
        self.hosts.iter().filter(alive).cloned().collect()
    }

    /// How many hosts have failed.
    pub(super) fn failed(&self) -> usize {
        self.progress().failed.len()
    }

    /// A host has failed, whatever becomes of it.
    pub(super) fn count_failure(&self, host: &str) {
        self.progress().failed.insert(host.to_owned());
    }

    /// Whether `other` may still change what `host` would see of it: it is under way and not as far.
    pub(super) fn is_behind(&self, other: &str, host: &str) -> bool {
        if self.strategy != Strategy::Linear || other == host {
            return false;
        }
        let progress = self.progress();
        match (progress.places.get(other), progress.places.get(host)) {
            (Some(other), Some(own)) => other < own,
            _ => false,
        }
    }

    /// Whether some host that is under way is not as far as `host`.
    pub(super) fn is_ahead(&self, host: &str) -> bool {
        if self.strategy != Strategy::Linear {
            return false;
        }
        let progress = self.progress();
        let Some(own) = progress.places.get(host) else {
            return false;
        };
        progress.places.values().any(|other| other < own)
    }

    /// Ends the play for all hosts of the batch, or for those of later batches, too.
    pub(super) fn end(&self, play: bool) {
        let mut progress = self.progress();
        progress.ended = true;
        progress.play_ended |= play;
        drop(progress);
        self.tell();
    }

    /// Whether no later batch begins.
    pub(super) fn has_ended_the_play(&self) -> bool {
        self.progress().play_ended
    }

    /// Whether somebody ended the play.
    pub(super) fn has_ended(&self) -> bool {
        self.progress().ended
    }

    /// From `place` on all hosts fail.
    pub(super) fn fail_all(&self, place: &[u32]) {
        self.progress().fatal.get_or_insert_with(|| place.to_vec());
        self.tell();
    }

    /// Whether all hosts were made to fail.
    pub(super) fn is_fatal(&self) -> bool {
        self.progress().fatal.is_some()
    }

    /// Whether a host at `place` fails with the others, once.
    pub(super) fn fails_at(&self, place: &[u32]) -> bool {
        self.progress()
            .fatal
            .as_ref()
            .is_some_and(|fatal| place == fatal)
    }

    /// Waits until every host that is under way has come to `place`, or went past it.
    pub(super) async fn gather(&self, place: &[u32]) {
        let mut moved = self.moved.subscribe();
        loop {
            let there = |own: &Vec<u32>| own.as_slice() >= place;
            if self.progress().places.values().all(there) {
                return;
            }
            if moved.changed().await.is_err() {
                return;
            }
        }
    }

    /// Waits until something moves.
    pub(super) async fn next_move(&self) {
        // The sender lives as long as the batch.
        let _ = self.moved.subscribe().changed().await;
    }

    /// Decides who of the hosts at `place` runs a task for all of them; the first in order does.
    pub(super) async fn once(&self, host: &str, place: &[u32]) -> Part {
        let mut moved = self.moved.subscribe();
        loop {
            {
                let progress = self.progress();
                if let Some(once) = progress.once.get(place) {
                    return Part::Reader(Arc::clone(once));
                }
                let here = |other: &&String| {
                    progress
                        .places
                        .get(*other)
                        .is_some_and(|own| own.as_slice() == place)
                };
                if self
                    .hosts
                    .iter()
                    .find(here)
                    .is_none_or(|first| first == host)
                {
                    return Part::Doer;
                }
            }
            if moved.changed().await.is_err() {
                return Part::Doer;
            }
        }
    }

    /// What a task that was run once came to.
    pub(super) fn done_once(&self, place: &[u32], once: Once) {
        self.progress().once.insert(place.to_vec(), Arc::new(once));
        self.tell();
    }
}
