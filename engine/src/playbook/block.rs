//! The shape of what a play does: tasks in blocks, blocks in blocks, and roles, which are blocks with variables.

use std::{path::PathBuf, sync::Arc};

use fleet_yaml::Span;

use super::{Task, Vars};

/// One step of a section or a block.
#[derive(Clone, Debug)]
pub enum Step {
    /// A task. A dynamic include is one, too; what it includes is read when a host reaches it.
    Task(Arc<Task>),
    /// A block, or the tasks of a role.
    Block(Arc<Block>),
}

/// Tasks with a way out: `rescue` runs where one of them failed, `always` at any rate.
#[derive(Debug)]
pub struct Block {
    /// The place of the block.
    pub span: Span,
    /// `block:`
    pub body: Vec<Step>,
    /// `rescue:`
    pub rescue: Vec<Step>,
    /// `always:`
    pub always: Vec<Step>,
    /// The role whose tasks these are. A host that has gone through it is spared a second time.
    pub role: Option<Arc<Role>>,
}

/// A part of a block, in the order in which they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// `block:`
    Body,
    /// `rescue:`
    Rescue,
    /// `always:`
    Always,
}

/// Where in a play a step stands: comparing two tells which comes first. Sections, indices of steps, parts of blocks
/// and items of includes follow one another.
pub type Position = Arc<[u32]>;

/// A role as one place of a playbook uses it.
#[derive(Debug)]
pub struct Role {
    /// Its name; with its collection where it comes from one.
    pub name: String,
    /// Its directory.
    pub path: PathBuf,
    /// Level 2, lowest first: defaults of the roles that it depends on, of those that depend on it, its own.
    pub defaults: Vec<Arc<Vars>>,
    /// Level 15, lowest first: `vars/` in the same order.
    pub vars: Vec<Arc<Vars>>,
    /// Level 20, lowest first: what is handed over where it is used.
    pub params: Vec<Arc<Vars>>,
    /// Its own part of these three, without those of other roles.
    pub own: OwnVars,
    /// The same for two uses that do the same, so that the second can be left out.
    pub instance: u64,
    /// `allow_duplicates`: it runs each time.
    pub allow_duplicates: bool,
    /// The roles that brought it in, outermost first: names and directories.
    pub parents: Vec<(String, PathBuf)>,
    /// The same as they are.
    pub chain: Vec<Arc<Role>>,
    /// `collections:` of its `meta/main.yml`.
    pub collections: Vec<String>,
    /// The names of the roles that it depends on, their own dependencies among them.
    pub dependencies: Vec<String>,
    /// Whether its variables are seen by the whole play, where `public` says so. Else a role of `roles:` or `import_role` is
    /// seen unless the configuration makes roles private, and an included one is not, unless it makes them public.
    pub public: Option<bool>,
}

/// The variables of one role alone.
#[derive(Clone, Debug, Default)]
pub struct OwnVars {
    /// `defaults/`
    pub defaults: Arc<Vars>,
    /// `vars/`
    pub vars: Arc<Vars>,
    /// `vars:` where it is used.
    pub given: Arc<Vars>,
    /// Other keys where it is used.
    pub params: Arc<Vars>,
}

impl Step {
    /// The tasks in it, in the order of writing.
    pub fn tasks(&self) -> Box<dyn Iterator<Item = &Arc<Task>> + '_> {
        match self {
            Self::Task(task) => Box::new(std::iter::once(task)),
            Self::Block(block) => Box::new(block.steps().flat_map(Step::tasks)),
        }
    }
}

impl Block {
    /// The steps of all its parts, in order.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.body.iter().chain(&self.rescue).chain(&self.always)
    }

    /// The steps of one part.
    #[must_use]
    pub fn part(&self, part: Part) -> &[Step] {
        match part {
            Part::Body => &self.body,
            Part::Rescue => &self.rescue,
            Part::Always => &self.always,
        }
    }

    /// Whether a failure in its body does not end the host's play there and then.
    #[must_use]
    pub fn catches(&self) -> bool {
        !self.rescue.is_empty() || !self.always.is_empty()
    }
}
