//! What names stand for on a host, and where they come from.

use std::fmt::Debug;

use fleet_yaml::Node;
use minijinja::Value;

/// A result that is still on its way from a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PendingId(pub u64);

/// What a name stands for.
#[derive(Debug, Clone)]
pub enum Variable {
    /// Written by the user: a lazy template, rendered at its use in the same scope.
    Written(Node),
    /// From a host or computed: never rendered.
    Data(Value),
    /// A result still in flight. An evaluation that touches it answers `Pending`.
    Pending(PendingId),
    /// Known only after apply, as the output of a command in a plan.
    Unknown,
}

/// The variables of one host at one task.
pub trait Scope: Send + Sync + Debug {
    /// What `name` stands for, or `None` if it is not defined.
    fn get(&self, name: &str) -> Option<Variable>;

    /// All names that are defined: for `varnames`, `vars` and the nearest name in messages.
    fn names(&self) -> Vec<String>;

    /// Where `name` was defined, for messages: `group_vars/web.yml:3`, `set_fact at site.yml:12`.
    fn origin(&self, name: &str) -> Option<String>;
}
