//! Lists and dictionaries that a template makes and changes: `{% set _ = list.append(x) %}`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use indexmap::IndexMap;
use minijinja::value::{Enumerator, Object, ObjectRepr, ValueKind};
use minijinja::{Error, ErrorKind, State, Value};

use super::text::pairs;
use crate::template::evaluation;
use crate::template::given::{Given, failed, items};

/// The same list or dictionary, changeable. Anything else stays what it is.
///
/// # Errors
/// If an item cannot be had.
pub(crate) fn made(value: &Value) -> Result<Value, Error> {
    Ok(match value.kind() {
        ValueKind::Seq | ValueKind::Iterable => Value::from_object(List(Mutex::new(items(value)?))),
        ValueKind::Map => Value::from_object(Dict(Mutex::new(pairs(value)?.into_iter().collect()))),
        _ => value.clone(),
    })
}

/// A list or dictionary of the template's own, or one that a user wrote, as one that can change: it then takes the
/// place of the old one in `container`. Everything else stays what it is.
fn changeable(item: &Value) -> Option<Value> {
    evaluation::is_written(item)
        .then(|| made(item).ok())
        .flatten()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A list that can change.
#[derive(Debug)]
struct List(Mutex<Vec<Value>>);

impl Object for List {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let at = key.as_usize()?;
        let item = lock(&self.0).get(at).cloned()?;
        let Some(item) = changeable(&item) else {
            return Some(item);
        };
        if let Some(place) = lock(&self.0).get_mut(at) {
            *place = item.clone();
        }
        Some(item)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(lock(&self.0).clone())
    }

    fn call_method(
        self: &Arc<Self>,
        state: &mut State<'_, '_>,
        method: &str,
        arguments: &[Value],
    ) -> Result<Value, Error> {
        // Arguments are worked out before the lock is taken: one may be this very list.
        match method {
            "append" => {
                let given = Given::bind("append", "object", arguments)?;
                let item = given.need(0)?.clone();
                refuse_itself(Arc::as_ptr(self).cast(), &item, 0)?;
                lock(&self.0).push(item);
            }
            "extend" => {
                let given = Given::bind("extend", "iterable", arguments)?;
                let more = items(given.need(0)?)?;
                for item in &more {
                    refuse_itself(Arc::as_ptr(self).cast(), item, 0)?;
                }
                lock(&self.0).extend(more);
            }
            "insert" => {
                let given = Given::bind("insert", "index object", arguments)?;
                let (at, item) = (given.int(0, 0)?, given.need(1)?.clone());
                refuse_itself(Arc::as_ptr(self).cast(), &item, 0)?;
                let mut list = lock(&self.0);
                let at = place(at, list.len()).min(list.len());
                list.insert(at, item);
            }
            "pop" => {
                let given = Given::bind("pop", "index", arguments)?;
                let at = given.int(0, -1)?;
                let mut list = lock(&self.0);
                let at = place(at, list.len());
                return if at < list.len() {
                    Ok(list.remove(at))
                } else {
                    Err(failed("pop from a list that has no such item"))
                };
            }
            "remove" => {
                let given = Given::bind("remove", "value", arguments)?;
                let item = given.need(0)?;
                let at = items(&Value::from_dyn_object(self.clone()))?
                    .iter()
                    .position(|known| known == item);
                lock(&self.0)
                    .remove(at.ok_or_else(|| failed("the item to remove is not in the list"))?);
            }
            "reverse" => lock(&self.0).reverse(),
            "clear" => lock(&self.0).clear(),
            "sort" => {
                let sorted = state.apply_filter(
                    "sort",
                    &[
                        vec![Value::from_dyn_object(self.clone())],
                        case_sensitive(arguments),
                    ]
                    .concat(),
                )?;
                *lock(&self.0) = items(&sorted)?;
            }
            _ => return Err(Error::from(ErrorKind::UnknownMethod)),
        }
        Ok(Value::from(()))
    }
}

/// Python's own sort tells capitals from small letters; the filter does not unless told so.
fn case_sensitive(arguments: &[Value]) -> Vec<Value> {
    let reverse = arguments
        .iter()
        .find(|argument| argument.is_kwargs())
        .and_then(|keywords| keywords.get_attr("reverse").ok())
        .is_some_and(|reverse| reverse.is_true());
    vec![Value::from(reverse), Value::from(true)]
}

/// A list or dictionary that held itself would have no end.
///
/// # Errors
/// If `item` is, or holds, the object at `container`.
fn refuse_itself(container: *const (), item: &Value, depth: usize) -> Result<(), Error> {
    let at = |object: *const ()| std::ptr::eq(object, container);
    let held = if let Some(list) = item.downcast_object_ref::<List>() {
        (!at(std::ptr::from_ref(list).cast())).then(|| lock(&list.0).clone())
    } else if let Some(dict) = item.downcast_object_ref::<Dict>() {
        (!at(std::ptr::from_ref(dict).cast())).then(|| lock(&dict.0).values().cloned().collect())
    } else {
        // Other lists hold what was there when they were made.
        Some(
            item.downcast_object_ref::<Vec<Value>>()
                .cloned()
                .unwrap_or_default(),
        )
    };
    let held = held.ok_or_else(|| failed("a list or dictionary cannot hold itself"))?;
    if depth > 64 {
        return Err(failed("lists and dictionaries are nested too deeply"));
    }
    held.iter()
        .try_for_each(|inner| refuse_itself(container, inner, depth + 1))
}

fn place(index: i64, length: usize) -> usize {
    if index < 0 {
        length.saturating_sub(index.unsigned_abs() as usize)
    } else {
        index as usize
    }
}

/// A dictionary that can change.
#[derive(Debug)]
struct Dict(Mutex<IndexMap<Value, Value>>);

impl Object for Dict {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let item = lock(&self.0).get(key).cloned()?;
        let Some(item) = changeable(&item) else {
            return Some(item);
        };
        lock(&self.0).insert(key.clone(), item.clone());
        Some(item)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(lock(&self.0).keys().cloned().collect())
    }

    fn call_method(
        self: &Arc<Self>,
        _: &mut State<'_, '_>,
        method: &str,
        arguments: &[Value],
    ) -> Result<Value, Error> {
        match method {
            "update" => {
                let given = Given::bind("update", "other **", arguments)?;
                let mut more = match given.get(0) {
                    Some(other) if other.kind() == ValueKind::Map => pairs(other)?,
                    Some(other) => items(other)?.iter().map(pair).collect::<Result<_, _>>()?,
                    None => Vec::new(),
                };
                more.extend(
                    given
                        .named
                        .iter()
                        .map(|(key, value)| (Value::from(key.as_str()), value.clone())),
                );
                for (_, item) in &more {
                    refuse_itself(Arc::as_ptr(self).cast(), item, 0)?;
                }
                lock(&self.0).extend(more);
            }
            "setdefault" => {
                let given = Given::bind("setdefault", "key default", arguments)?;
                let default = given.get(1).cloned().unwrap_or_else(|| Value::from(()));
                refuse_itself(Arc::as_ptr(self).cast(), &default, 0)?;
                return Ok(lock(&self.0)
                    .entry(given.need(0)?.clone())
                    .or_insert(default)
                    .clone());
            }
            "pop" => {
                let given = Given::bind("pop", "key default", arguments)?;
                let found = lock(&self.0).shift_remove(given.need(0)?);
                return found.or_else(|| given.get(1).cloned()).ok_or_else(|| {
                    failed(format!(
                        "the dictionary has no key `{}` to pop",
                        arguments[0]
                    ))
                });
            }
            "popitem" => {
                let (key, value) = lock(&self.0)
                    .pop()
                    .ok_or_else(|| failed("the dictionary is empty"))?;
                return Ok(vec![key, value].into());
            }
            "clear" => lock(&self.0).clear(),
            _ => return Err(Error::from(ErrorKind::UnknownMethod)),
        }
        Ok(Value::from(()))
    }
}

fn pair(item: &Value) -> Result<(Value, Value), Error> {
    match <[Value; 2]>::try_from(items(item)?) {
        Ok([key, value]) => Ok((key, value)),
        Err(_) => Err(failed("update needs pairs of a key and a value")),
    }
}
