//! Conditions: `when:`, `until:`, `failed_when:` and what an `assert` wants.

use std::sync::Arc;

use fleet_yaml::{Diagnostic, Node};

use super::failure::{EvalError, code};
use super::nodes::{self, View};
use super::python::truth;
use super::{Evaluated, Templar, rewrite};
use crate::variables::{Scope, Variable};

/// Conditions under names under names: past this nobody means it.
const DEPTH: usize = 20;

/// Whether a condition holds.
///
/// # Errors
/// If it is no expression, uses something undefined, or fails.
pub(super) fn hold(
    templar: &Templar,
    condition: &Node,
    scope: &Arc<dyn Scope>,
    depth: usize,
) -> Result<Evaluated<bool>, EvalError> {
    let mut undecided = None;
    for part in nodes::conditions(condition) {
        match one(templar, part, scope, depth) {
            Ok(Evaluated::Known(true)) => {}
            // One part that is surely false decides, whatever the others turn out to be.
            Ok(Evaluated::Known(false)) => return Ok(Evaluated::Known(false)),
            Ok(open) => match (&undecided, &open) {
                (None, _) | (Some(Evaluated::Unknown { .. }), Evaluated::Pending(_)) => {
                    undecided = Some(open)
                }
                _ => {}
            },
            // A part that stands before this one may yet be false, and then this one is never looked at.
            Err(_) if undecided.is_some() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(undecided.unwrap_or(Evaluated::Known(true)))
}

fn one(
    templar: &Templar,
    part: &Node,
    scope: &Arc<dyn Scope>,
    depth: usize,
) -> Result<Evaluated<bool>, EvalError> {
    let outcome = match nodes::view(part) {
        View::Plain(value) if value.as_str().is_none() => Evaluated::Known(value),
        _ => {
            let text = nodes::text(part);
            if let Some(indirect) = named(&text, scope).filter(|_| depth < DEPTH) {
                return hold(templar, &indirect, scope, depth + 1);
            }
            if is_quoted(&text) && !broken_allowed(templar) {
                return Err(EvalError::new(
                    Diagnostic::without_place(
                        "Conditional result (True) was derived from value of type 'str': a text in quotes is no condition",
                    )
                    .with_code(code::FAILED)
                    .at(part.span.clone())
                    .with_help("write the expression without quotes around it"),
                ));
            }
            templar.expression(&text, &part.span, scope)?
        }
    };
    Ok(outcome.map(|value| truth::of_condition(&value)))
}

/// The conditions that a user wrote under a name, where all of the condition is `{{ name }}`.
fn named(text: &str, scope: &Arc<dyn Scope>) -> Option<Node> {
    let text = text.trim();
    let name = text[rewrite::single_expression(text)?].trim();
    if !name.chars().all(|c| c.is_alphanumeric() || c == '_') {
        return None;
    }
    match scope.get(name)? {
        Variable::Written(node) if !matches!(nodes::view(&node), View::Map | View::Vault) => {
            Some(node).filter(|node| !node.has_tag("unsafe"))
        }
        _ => None,
    }
}

fn is_quoted(text: &str) -> bool {
    let text = text.trim();
    ['"', '\''].into_iter().any(|quote| {
        text.strip_prefix(quote)
            .and_then(|rest| rest.strip_suffix(quote))
            .is_some_and(|inner| !inner.is_empty() && !inner.contains([quote, '\\']))
    })
}

fn broken_allowed(templar: &Templar) -> bool {
    let said = templar
        .controller()
        .environment("ANSIBLE_ALLOW_BROKEN_CONDITIONALS");
    said.and_then(|said| truth::from_text(&said)) == Some(true)
}
