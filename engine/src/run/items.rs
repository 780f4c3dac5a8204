//! The items of a task's loop.

use std::sync::Arc;

use fleet_yaml::Node;
use minijinja::{Value, value::ValueKind};

use super::{
    dispatch::{Settled, Unfit},
    host::Host,
    scope::HostScope,
};
use crate::{
    playbook::{Loop, Task},
    variables::Variable,
};

/// An item's value and label, none without a loop, and the scope in which it is seen.
pub(super) type OneItem = (Option<(Value, String)>, HostScope);

impl Host {
    /// A task's items; none where it is spared its loop, as its condition holds for no item.
    pub(super) async fn items_of(
        &mut self,
        task: &Task,
        scope: &HostScope,
    ) -> Result<Option<Vec<OneItem>>, Unfit> {
        let Some(r#loop) = &task.r#loop else {
            return Ok(Some(vec![(None, scope.clone())]));
        };
        match self.items(r#loop, scope).await {
            Ok(items) => Ok(Some(items)),
            // The list may not even be defined where the condition does not hold.
            Err(Unfit::Problem(problem)) => {
                match self.all_true(&task.directives.when, scope).await {
                    Ok(Some(_)) => Ok(None),
                    _ => Err(Unfit::Problem(problem)),
                }
            }
            Err(other) => Err(other),
        }
    }

    async fn items(&mut self, r#loop: &Loop, scope: &HostScope) -> Result<Vec<OneItem>, Unfit> {
        let values = match &r#loop.lookup {
            None => self.listed(r#loop, scope).await?,
            Some(lookup) => self.looked_up(lookup, r#loop, scope).await?,
        };
        let variable = &self.name_of(&r#loop.variable, r#loop, scope).await?;
        let index_variable = match &r#loop.index_variable {
            Some(name) => Some(self.name_of(name, r#loop, scope).await?),
            None => None,
        };
        let extended = self.flag(r#loop.extended.as_ref(), scope).await? == Some(true);
        let all = self.flag(r#loop.extended_allitems.as_ref(), scope).await? != Some(false);
        let mut items = Vec::with_capacity(values.len());
        for (index, value) in values.iter().enumerate() {
            let mut scope = scope.with(variable, Variable::Data(value.clone()));
            scope = scope.with(
                "ansible_loop_var",
                Variable::Data(Value::from(variable.as_str())),
            );
            if let Some(name) = &index_variable {
                scope = scope.with(name, Variable::Data(Value::from(index)));
                scope = scope.with(
                    "ansible_index_var",
                    Variable::Data(Value::from(name.as_str())),
                );
            }
            if extended {
                let about = about(&values, index, all);
                scope = scope.with("ansible_loop", Variable::Data(about));
            }
            let label = match &r#loop.label {
                Some(node) => match self.known(node, &scope).await {
                    Ok(label) => label,
                    // A label that cannot be made is no reason to fail; the item shows itself.
                    Err(Unfit::Stop(stop)) => return Err(Unfit::Stop(stop)),
                    Err(_) => value.clone(),
                },
                None => value.clone(),
            };
            items.push((Some((value.clone(), label.to_string())), scope));
        }
        Ok(items)
    }

    /// A variable's name, which may be a template.
    async fn name_of(
        &mut self,
        name: &str,
        r#loop: &Loop,
        scope: &HostScope,
    ) -> Result<String, Unfit> {
        if !name.contains("{{") {
            return Ok(name.to_owned());
        }
        let node = Node::string(name, &r#loop.items.span);
        Ok(self.known(&node, scope).await?.to_string())
    }

    /// The list of `loop:`.
    async fn listed(&mut self, r#loop: &Loop, scope: &HostScope) -> Result<Vec<Value>, Unfit> {
        let list = self.known(&r#loop.items, scope).await?;
        if !matches!(list.kind(), ValueKind::Seq | ValueKind::Iterable) {
            return Err(not_a_list(r#loop, &list));
        }
        list.try_iter()
            .map(Iterator::collect)
            .map_err(|_| not_a_list(r#loop, &list))
    }

    /// What the lookup of `with_…` finds.
    async fn looked_up(
        &mut self,
        lookup: &str,
        r#loop: &Loop,
        scope: &HostScope,
    ) -> Result<Vec<Value>, Unfit> {
        let shared = Arc::clone(&self.shared);
        let lookup_scope = scope.shared();
        let found = self
            .settled(|| shared.templar.with(lookup, &r#loop.items, &lookup_scope))
            .await?;
        match found {
            Settled::Known(found) => Ok(found),
            Settled::Unknown(because) => Err(Unfit::Unknown(because)),
        }
    }
}

fn not_a_list(r#loop: &Loop, list: &Value) -> Unfit {
    Unfit::Problem(format!(
        "{}: Invalid data passed to 'loop', it requires a list, got this instead: {list}. For a mapping write \
         `loop: \"{{{{ it | dict2items }}}}\"`",
        r#loop.items.span
    ))
}

/// `ansible_loop`: where an item stands.
fn about(values: &[Value], index: usize, all: bool) -> Value {
    let length = values.len();
    let mut about = vec![
        ("index", Value::from(index + 1)),
        ("index0", Value::from(index)),
        ("first", Value::from(index == 0)),
        ("last", Value::from(index + 1 == length)),
        ("length", Value::from(length)),
        ("revindex", Value::from(length - index)),
        ("revindex0", Value::from(length - index - 1)),
    ];
    if all {
        about.push(("allitems", values.iter().cloned().collect()));
    }
    if let Some(next) = values.get(index + 1) {
        about.push(("nextitem", next.clone()));
    }
    if let Some(previous) = index.checked_sub(1).and_then(|before| values.get(before)) {
        about.push(("previtem", previous.clone()));
    }
    Value::from_pairs(about)
}
