//! Lists by order: sorted, grouped, the least and the greatest.

use std::cmp::Ordering;
use std::sync::Arc;

use minijinja::value::{Enumerator, Object, ObjectRepr, ValueKind};
use minijinja::{Error, State, Value};

use super::selection::attribute;
use crate::template::given::{Filter, Given, failed, items};
use crate::template::python::{mutable, text};

pub(super) const FILTERS: &[Filter] = &[
    Filter {
        names: "sort",
        parameters: "reverse case_sensitive attribute",
        run: sort,
    },
    Filter {
        names: "min",
        parameters: "case_sensitive attribute",
        run: min,
    },
    Filter {
        names: "max",
        parameters: "case_sensitive attribute",
        run: max,
    },
    Filter {
        names: "groupby",
        parameters: "attribute default case_sensitive",
        run: groupby,
    },
];

/// What an item is sorted by: numbers before texts before lists, texts without regard to case unless asked.
#[derive(PartialEq)]
pub(super) enum SortKey {
    None,
    Number(f64, Value),
    Text(String),
    List(Vec<SortKey>),
    Other(Value),
}

impl Eq for SortKey {}

impl Ord for SortKey {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (SortKey::Number(a, x), SortKey::Number(b, y)) => a.total_cmp(b).then_with(|| x.cmp(y)),
            (SortKey::Text(a), SortKey::Text(b)) => a.cmp(b),
            (SortKey::List(a), SortKey::List(b)) => a.cmp(b),
            (SortKey::Other(a), SortKey::Other(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for SortKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl SortKey {
    fn rank(&self) -> u8 {
        match self {
            SortKey::None => 0,
            SortKey::Number(..) => 1,
            SortKey::Text(_) => 2,
            SortKey::List(_) => 3,
            SortKey::Other(_) => 4,
        }
    }
}

pub(super) fn sort_key(value: &Value, case_sensitive: bool) -> SortKey {
    match value.kind() {
        ValueKind::None => SortKey::None,
        ValueKind::Bool | ValueKind::Number => match f64::try_from(value.clone()) {
            Ok(number) => SortKey::Number(number, value.clone()),
            Err(_) => SortKey::Other(value.clone()),
        },
        ValueKind::String => {
            let written = value.as_str().unwrap_or_default();
            SortKey::Text(if case_sensitive {
                written.to_owned()
            } else {
                written.to_lowercase()
            })
        }
        ValueKind::Seq | ValueKind::Iterable => SortKey::List(
            items(value)
                .unwrap_or_default()
                .iter()
                .map(|item| sort_key(item, case_sensitive))
                .collect(),
        ),
        _ => SortKey::Other(value.clone()),
    }
}

/// The items with what they are compared by: themselves, or one or several attributes (`a,b.c`).
fn keyed(
    value: &Value,
    by: Option<&Value>,
    case_sensitive: bool,
) -> Result<Vec<(SortKey, Value)>, Error> {
    let paths: Vec<Value> = match by {
        None => Vec::new(),
        Some(by) => match by.as_str() {
            Some(written) => written
                .split(',')
                .map(|part| Value::from(part.trim()))
                .collect(),
            None => vec![by.clone()],
        },
    };
    let mut found = Vec::new();
    for item in items(value)? {
        let key = if paths.is_empty() {
            sort_key(&item, case_sensitive)
        } else {
            let mut keys = Vec::new();
            for path in &paths {
                let key = attribute(&item, path)?;
                if key.is_undefined() {
                    return Err(failed(format!("an item has no `{path}` to be compared by")));
                }
                keys.push(sort_key(&key, case_sensitive));
            }
            SortKey::List(keys)
        };
        if let Some((first, known)) = found.first()
            && !comparable(first, &key)
        {
            return Err(failed(format!(
                "'<' not supported between instances of '{}' and '{}'",
                text::type_name(&item),
                text::type_name(known)
            )));
        }
        found.push((key, item));
    }
    Ok(found)
}

/// Whether Python has an order between two of these.
fn comparable(a: &SortKey, b: &SortKey) -> bool {
    match (a, b) {
        (SortKey::List(a), SortKey::List(b)) => a.iter().zip(b).all(|(a, b)| comparable(a, b)),
        _ => a.rank() == b.rank(),
    }
}

fn sort(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let mut found = keyed(value, given.some(2), given.flag(1, false))?;
    if given.flag(0, false) {
        // Equal items keep their order, as in Python.
        found.sort_by(|a, b| b.0.cmp(&a.0));
    } else {
        found.sort_by(|a, b| a.0.cmp(&b.0));
    }
    mutable::made(
        &found
            .into_iter()
            .map(|pair| pair.1)
            .collect::<Vec<_>>()
            .into(),
    )
}

fn min(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let found = keyed(value, given.some(1), given.flag(0, false))?;
    let first = found
        .into_iter()
        .reduce(|best, next| if next.0 < best.0 { next } else { best });
    Ok(first.map_or(Value::UNDEFINED, |pair| pair.1))
}

fn max(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let found = keyed(value, given.some(1), given.flag(0, false))?;
    let first = found
        .into_iter()
        .reduce(|best, next| if next.0 > best.0 { next } else { best });
    Ok(first.map_or(Value::UNDEFINED, |pair| pair.1))
}

fn groupby(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let path = given.need(0)?;
    let case_sensitive = given.flag(2, false);
    let mut found = Vec::new();
    for item in items(value)? {
        let mut key = attribute(&item, path)?;
        if key.is_undefined() {
            key = given
                .get(1)
                .cloned()
                .ok_or_else(|| failed(format!("an item has no `{path}` to be grouped by")))?;
        }
        found.push((sort_key(&key, case_sensitive), key, item));
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    let mut groups: Vec<(SortKey, Value, Vec<Value>)> = Vec::new();
    for (sorted_by, key, item) in found {
        match groups.last_mut() {
            Some(group) if group.0 == sorted_by => group.2.push(item),
            _ => groups.push((sorted_by, key, vec![item])),
        }
    }
    Ok(groups
        .into_iter()
        .map(|(_, grouper, list)| {
            Value::from_object(Group {
                grouper,
                list: list.into(),
            })
        })
        .collect::<Vec<_>>()
        .into())
}

/// A group: a pair whose halves have names, too.
#[derive(Debug)]
struct Group {
    grouper: Value,
    list: Value,
}

impl Object for Group {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        match key.as_i64() {
            Some(0) => Some(self.grouper.clone()),
            Some(1) => Some(self.list.clone()),
            _ => self.get_value_by_str(key.as_str()?),
        }
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        match key {
            "grouper" => Some(self.grouper.clone()),
            "list" => Some(self.list.clone()),
            _ => None,
        }
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(vec![self.grouper.clone(), self.list.clone()])
    }
}

/// Whether the value is a group of `groupby`.
pub(crate) fn is_group(value: &Value) -> bool {
    value.downcast_object_ref::<Group>().is_some()
}
