//! The tags of tasks before a run: those that are templates are rendered as far as variables are known.

use std::sync::Arc;

use fleet_engine::{
    playbook::{Play, Task, Vars},
    template::{Evaluated, Templar},
    variables::{Scope, Variable},
};
use fleet_yaml::Node;

/// What renders tags.
pub(crate) struct Tags<'a> {
    pub(crate) templar: &'a Templar,
    pub(crate) extra_vars: &'a Arc<Vars>,
}

impl Tags<'_> {
    /// The tags of a task, as written or rendered, in order.
    pub(crate) fn of(&self, play: &Play, task: &Task) -> Vec<String> {
        let mut layers = vec![Arc::clone(&play.vars)];
        if let Some(role) = &task.directives.role {
            layers.splice(0..0, role.defaults.iter().cloned());
            layers.extend(role.vars.iter().cloned());
        }
        layers.extend(task.directives.vars.iter().cloned());
        layers.push(Arc::clone(&task.vars));
        layers.push(Arc::clone(self.extra_vars));
        self.texts(&task.directives.tags, &layers)
    }

    /// The tags of a play.
    pub(crate) fn of_play(&self, play: &Play) -> Vec<String> {
        let layers = vec![Arc::clone(&play.vars), Arc::clone(self.extra_vars)];
        self.texts(&play.directives.tags, &layers)
    }

    fn texts(&self, nodes: &[Node], layers: &[Arc<Vars>]) -> Vec<String> {
        let mut texts = Vec::new();
        for node in nodes {
            if let Some(items) = node.as_seq() {
                texts.extend(self.texts(items, layers));
                continue;
            }
            let written = node.scalar_text().unwrap_or_default();
            if !written.contains("{{") {
                split(&written, &mut texts);
                continue;
            }
            let scope: Arc<dyn Scope> = Arc::new(Layers(layers.to_vec()));
            match self.templar.value(node, &scope) {
                Ok(Evaluated::Known(value)) => match value.try_iter() {
                    Ok(items) if value.as_str().is_none() => {
                        texts.extend(items.map(|item| item.to_string()));
                    }
                    _ => split(&value.to_string(), &mut texts),
                },
                _ => texts.push(written.into_owned()),
            }
        }
        texts
    }
}

fn split(text: &str, texts: &mut Vec<String>) {
    let parts = text
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty());
    texts.extend(parts.map(str::to_owned));
}

/// Variables in layers; a later one counts more.
#[derive(Debug)]
pub(crate) struct Layers(pub(crate) Vec<Arc<Vars>>);

impl Scope for Layers {
    fn get(&self, name: &str) -> Option<Variable> {
        let found = self.0.iter().rev().find_map(|layer| layer.get(name));
        found.cloned().map(Variable::Written)
    }

    fn names(&self) -> Vec<String> {
        self.0
            .iter()
            .flat_map(|layer| layer.keys().cloned())
            .collect()
    }

    fn origin(&self, _: &str) -> Option<String> {
        None
    }
}
