//! What expressions of an inventory see: a host's variables as they are so far.

use fleet_yaml::{Node, Source};
use indexmap::IndexMap;

use crate::variables::{Scope, Variable};

use super::super::Inventory;

/// Variables by name.
#[derive(Debug, Default)]
pub(super) struct Names(pub(super) IndexMap<String, Node>);

impl Names {
    /// A host's variables and names, and the extra variables over them.
    pub(super) fn of_host(
        inventory: &Inventory,
        host: &str,
        extra: Option<&IndexMap<String, Node>>,
    ) -> Self {
        let mut names = IndexMap::new();
        for layer in inventory.layers(host) {
            let vars = layer.vars.iter();
            names.extend(vars.map(|(name, variable)| (name.clone(), variable.value.clone())));
        }
        let span = Source::new("inventory", "").span(0, 0);
        for name in [
            "inventory_hostname",
            "inventory_hostname_short",
            "group_names",
        ] {
            if let Some(value) = inventory.magic(host).get(name) {
                let value = serde_json::to_value(value).unwrap_or_default();
                names.insert(name.to_owned(), Node::from_json(&value, &span));
            }
        }
        for (name, value) in extra.into_iter().flatten() {
            names.insert(name.clone(), value.clone());
        }
        Self(names)
    }
}

impl Scope for Names {
    fn get(&self, name: &str) -> Option<Variable> {
        self.0.get(name).cloned().map(Variable::Written)
    }

    fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }

    fn origin(&self, name: &str) -> Option<String> {
        self.0.get(name).map(|value| value.span.to_string())
    }
}
