//! Lists as they are: their ends, their length, their items in one text.

use minijinja::value::ValueKind;
use minijinja::{Error, State, Value};

use super::selection::attribute;
use crate::template::given::{Filter, Given, failed, items};
use crate::template::python::{mutable, text};

pub(super) const FILTERS: &[Filter] = &[
    Filter {
        names: "length count",
        parameters: "",
        run: length,
    },
    Filter {
        names: "list",
        parameters: "",
        run: list,
    },
    Filter {
        names: "first",
        parameters: "",
        run: first,
    },
    Filter {
        names: "last",
        parameters: "",
        run: last,
    },
    Filter {
        names: "reverse",
        parameters: "",
        run: reverse,
    },
    Filter {
        names: "join",
        parameters: "d attribute",
        run: join,
    },
];

fn length(_: &mut State<'_, '_>, value: &Value, _: &Given) -> Result<Value, Error> {
    if let Some(length) = value.len() {
        return Ok(Value::from(length));
    }
    match value.kind() {
        ValueKind::Iterable => Ok(Value::from(items(value)?.len())),
        _ => Err(failed(format!("{} has no length", text::type_name(value)))),
    }
}

fn list(_: &mut State<'_, '_>, value: &Value, _: &Given) -> Result<Value, Error> {
    mutable::made(&Value::from(items(value)?))
}

fn first(_: &mut State<'_, '_>, value: &Value, _: &Given) -> Result<Value, Error> {
    Ok(items(value)?.into_iter().next().unwrap_or(Value::UNDEFINED))
}

fn last(_: &mut State<'_, '_>, value: &Value, _: &Given) -> Result<Value, Error> {
    Ok(items(value)?.pop().unwrap_or(Value::UNDEFINED))
}

fn reverse(_: &mut State<'_, '_>, value: &Value, _: &Given) -> Result<Value, Error> {
    if let Some(written) = value.as_str() {
        return Ok(Value::from(written.chars().rev().collect::<String>()));
    }
    let mut all = items(value)?;
    all.reverse();
    Ok(all.into())
}

fn join(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let between = given.text(0, "")?;
    let mut out = String::new();
    for (at, item) in items(value)?.iter().enumerate() {
        if at > 0 {
            out.push_str(&between);
        }
        let item = match given.some(1) {
            Some(path) => &attribute(item, path)?,
            None => item,
        };
        out.push_str(&text::str(item)?);
    }
    Ok(out.into())
}
