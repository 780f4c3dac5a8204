use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fleet_wire::{Entry, SettingKind};

use super::{Body, UnitState};

/// What a plan's effects so far would have made of the machine.
#[derive(Debug, Default)]
pub(super) struct Overlay {
    nodes: BTreeMap<PathBuf, Node>,
    pub(super) sysctls: BTreeMap<String, String>,
    pub(super) units: BTreeMap<String, UnitState>,
    /// The planned unit files that a planned daemon-reload has read, as they were then.
    pub(super) read_units: BTreeMap<PathBuf, Entry>,
    pub(super) packages: BTreeMap<String, Option<String>>,
    pub(super) settings: BTreeMap<(SettingKind, String), String>,
    /// A command or a package came before: what the overlay does not define is only assumed.
    pub(super) open: bool,
    /// An effect of any kind came before.
    pub(super) touched: bool,
    /// The package index would have been read anew: what it knows is not known here.
    pub(super) index_stale: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) entry: Entry,
    /// A file's content, where an effect set it.
    pub(super) body: Option<Body>,
    /// A directory that an effect made where there was nothing for sure: nothing of the machine is beneath it.
    fresh: bool,
}

/// Where to look for a path.
pub(super) enum Seen<'a> {
    /// An effect left this there.
    Node(&'a Node),
    /// Nothing can be there: an effect made or removed what it would lie in.
    Nothing,
    /// No effect came near: as the machine has it.
    Machine,
}

impl Node {
    pub(super) fn is_fresh(&self) -> bool {
        self.fresh
    }
}

impl Overlay {
    pub(super) fn see(&self, path: &Path) -> Seen<'_> {
        if let Some(node) = self.nodes.get(path) {
            return Seen::Node(node);
        }
        for ancestor in path.ancestors().skip(1) {
            match self.nodes.get(ancestor) {
                Some(Node {
                    entry: Entry::Dir(_),
                    fresh: false,
                    ..
                }) => return Seen::Machine,
                Some(_) => return Seen::Nothing,
                None => {}
            }
        }
        Seen::Machine
    }

    /// Whether the overlay alone says what is at a path.
    pub(super) fn defines(&self, path: &Path) -> bool {
        !matches!(self.see(path), Seen::Machine)
    }

    /// Where a package or a command comes first, it may have made the directory, and put things into it.
    pub(super) fn assume(&mut self, path: &Path) {
        if let Some(node) = self.nodes.get_mut(path) {
            node.fresh &= !matches!(node.entry, Entry::Dir(_));
        }
    }

    pub(super) fn set(&mut self, path: &Path, before: &Entry, after: Entry, body: Option<Body>) {
        let known = self.nodes.get(path);
        let fresh = match before {
            Entry::Dir(_) => known.is_some_and(|node| node.fresh),
            _ => true,
        };
        // Only mode or owners were set: the content stays what an earlier effect made it.
        let kept = known.and_then(|node| node.body.clone());
        let body = if matches!(after, Entry::File(..)) {
            body.or(kept)
        } else {
            None
        };
        self.nodes.insert(
            path.to_owned(),
            Node {
                entry: after,
                body,
                fresh,
            },
        );
    }

    /// The entries that effects left right in a directory, absent ones too.
    pub(super) fn children<'a>(
        &'a self,
        dir: &'a Path,
    ) -> impl Iterator<Item = (&'a str, &'a Entry)> {
        self.nodes
            .range(dir.to_owned()..)
            .take_while(move |(path, _)| path.starts_with(dir))
            .filter(move |(path, _)| path.parent() == Some(dir))
            .filter_map(|(path, node)| Some((path.file_name()?.to_str()?, &node.entry)))
    }

    /// All files that effects left under a directory, with links and absent ones.
    pub(super) fn under<'a>(&'a self, dir: &'a Path) -> impl Iterator<Item = (&'a Path, &'a Node)> {
        self.nodes
            .range(dir.to_owned()..)
            .take_while(move |(path, _)| path.starts_with(dir))
            .map(|(path, node)| (path.as_path(), node))
    }
}
