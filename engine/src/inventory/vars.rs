//! A host's variables from the inventory, in layers of rising precedence.

use std::{fmt, sync::Arc};

use fleet_yaml::Node;
use indexmap::IndexMap;

/// Variables by name, in the order in which they were written.
pub type VarMap = IndexMap<String, Variable>;

/// A variable as it was written: perhaps a template, rendered at its use.
#[derive(Clone, Debug)]
pub struct Variable {
    /// The value; its span is the place where it was written.
    pub value: Node,
    /// Whose variable it is.
    pub origin: Origin,
}

/// Whose variable one is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A group's.
    Group(Arc<str>),
    /// A host's own.
    Host(Arc<str>),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Group(name) => write!(f, "group `{name}`"),
            Origin::Host(name) => write!(f, "host `{name}`"),
        }
    }
}

impl fmt::Display for Variable {
    /// Where it comes from: `group_vars/web.yml:3:7 (group `web`)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.value.span, self.origin)
    }
}

/// Variables of one group or host from one place.
#[derive(Clone, Debug)]
pub struct Layer {
    /// Its place in the order of precedence.
    pub kind: LayerKind,
    /// The variables.
    pub vars: Arc<VarMap>,
}

/// The levels of precedence that belong to the inventory, with Ansible's numbers, low to high.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LayerKind {
    /// Group variables in an inventory file or from a script.
    InventoryGroups = 3,
    /// `group_vars/all` beside the inventory.
    InventoryGroupVarsAll = 4,
    /// `group_vars/all` beside the playbook.
    PlaybookGroupVarsAll = 5,
    /// Other `group_vars` beside the inventory.
    InventoryGroupVars = 6,
    /// Other `group_vars` beside the playbook.
    PlaybookGroupVars = 7,
    /// Host variables in an inventory file or from a script.
    InventoryHost = 8,
    /// `host_vars` beside the inventory.
    InventoryHostVars = 9,
    /// `host_vars` beside the playbook.
    PlaybookHostVars = 10,
}
