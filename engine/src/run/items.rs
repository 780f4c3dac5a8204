//! The items of a task's loop.

use minijinja::{Value, value::ValueKind};

use super::{dispatch::Unfit, host::Host, scope::HostScope};
use crate::{playbook::Loop, variables::Variable};

impl Host {
    /// Each item with its value and label, and the scope in which it is seen.
    pub(super) async fn items(
        &mut self,
        r#loop: &Loop,
        scope: &HostScope,
    ) -> Result<Vec<(Option<(Value, String)>, HostScope)>, Unfit> {
        let list = self.known(&r#loop.items, scope).await?;
        let not_a_list = || {
            Unfit::Problem(format!(
                "{}: a loop takes a list, not {}; for a mapping write `loop: \"{{{{ it | dict2items }}}}\"`",
                r#loop.items.span,
                list.kind()
            ))
        };
        if list.kind() != ValueKind::Seq && list.kind() != ValueKind::Iterable {
            return Err(not_a_list());
        }
        let mut values: Vec<Value> = list.try_iter().map_err(|_| not_a_list())?.collect();
        if r#loop.flatten {
            values = values
                .into_iter()
                .flat_map(|value| match value.kind() {
                    ValueKind::Seq => value.try_iter().map(Iterator::collect).unwrap_or_default(),
                    _ => vec![value],
                })
                .collect();
        }
        let mut items = Vec::with_capacity(values.len());
        for (index, value) in values.into_iter().enumerate() {
            let mut scope = scope.with(&r#loop.variable, Variable::Data(value.clone()));
            if let Some(name) = &r#loop.index_variable {
                scope = scope.with(name, Variable::Data(Value::from(index)));
            }
            let label = match &r#loop.label {
                Some(node) => self.known(node, &scope).await?,
                None => value.clone(),
            };
            items.push((Some((value, label.to_string())), scope));
        }
        Ok(items)
    }
}
