//! Lists as sets. The order of first appearance is kept.

use std::collections::HashSet;

use minijinja::value::ValueKind;
use minijinja::{Error, State, Value};

use super::selection::attribute;
use crate::template::given::{Filter, Given, failed, items};
use crate::template::python::text;

pub(super) const FILTERS: &[Filter] = &[
    Filter {
        names: "unique",
        parameters: "case_sensitive attribute",
        run: unique,
    },
    Filter {
        names: "union",
        parameters: "other",
        run: union,
    },
    Filter {
        names: "intersect",
        parameters: "other",
        run: intersect,
    },
    Filter {
        names: "difference",
        parameters: "other",
        run: difference,
    },
    Filter {
        names: "symmetric_difference",
        parameters: "other",
        run: symmetric_difference,
    },
];

/// The items that `keep` wants, each once.
fn once(all: Vec<Value>, keep: impl Fn(&Value) -> bool) -> Vec<Value> {
    let mut seen = HashSet::new();
    all.into_iter()
        .filter(|item| keep(item) && seen.insert(item.clone()))
        .collect()
}

/// Jinja's `unique`, to which a capital letter is no other than a small one; lists and dictionaries among the items
/// make it Ansible's own, which tells everything apart.
fn unique(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let all = items(value)?;
    let container = |item: &Value| {
        matches!(
            item.kind(),
            ValueKind::Map | ValueKind::Seq | ValueKind::Iterable
        ) && !text::is_tuple(item)
    };
    let mut keys = Vec::new();
    for item in &all {
        keys.push(match given.some(1) {
            Some(path) => attribute(item, path)?,
            None => item.clone(),
        });
    }
    let own = keys.iter().any(container);
    if own
        && (given
            .get(0)
            .is_some_and(|value| !value.is_none() && !value.is_true())
            || given.some(1).is_some())
    {
        return Err(failed(
            "Jinja2's unique filter failed and we cannot fall back to Ansible's version as it does not support the parameters supplied",
        ));
    }
    let fold = !own && !given.flag(0, false);
    let mut seen = HashSet::new();
    let mut made = Vec::new();
    for (item, mut key) in all.into_iter().zip(keys) {
        if fold && let Some(written) = key.as_str() {
            key = Value::from(written.to_lowercase());
        }
        if seen.insert(key) {
            made.push(item);
        }
    }
    Ok(made.into())
}

fn union(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let all = [items(value)?, items(given.need(0)?)?].concat();
    Ok(once(all, |_| true).into())
}

fn intersect(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let other: HashSet<Value> = items(given.need(0)?)?.into_iter().collect();
    Ok(once(items(value)?, |item| other.contains(item)).into())
}

fn difference(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let other: HashSet<Value> = items(given.need(0)?)?.into_iter().collect();
    Ok(once(items(value)?, |item| !other.contains(item)).into())
}

fn symmetric_difference(
    _: &mut State<'_, '_>,
    value: &Value,
    given: &Given,
) -> Result<Value, Error> {
    let (left, right) = (items(value)?, items(given.need(0)?)?);
    let (in_left, in_right): (HashSet<Value>, HashSet<Value>) = (
        left.iter().cloned().collect(),
        right.iter().cloned().collect(),
    );
    let all = [left, right].concat();
    Ok(once(all, |item| {
        in_left.contains(item) != in_right.contains(item)
    })
    .into())
}
