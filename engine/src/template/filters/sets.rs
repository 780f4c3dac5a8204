//! Lists as sets. The order of first appearance is kept.

use std::collections::HashSet;

use minijinja::value::ValueKind;
use minijinja::{Error, State, Value};

use super::selection::attribute;
use crate::template::given::{Filter, Given, items};

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

fn unique(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let case_sensitive = given.get(0).map(Value::is_true);
    let mut seen = HashSet::new();
    let mut made = Vec::new();
    for item in items(value)? {
        let mut key = match given.some(1) {
            Some(path) => attribute(&item, path)?,
            None => item.clone(),
        };
        // Ansible's own `unique` is case-sensitive unless told otherwise; Jinja's is not.
        if case_sensitive == Some(false) && key.kind() == ValueKind::String {
            key = Value::from(key.as_str().unwrap_or_default().to_lowercase());
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
