//! Defaults, choices and types.

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, State, Value};

use crate::template::given::{Filter, Given, failed};
use crate::template::poison;
use crate::template::python::{text, truth};

/// Filters that get undefined values, too.
pub(super) const LENIENT: &[Filter] = &[
    Filter {
        names: "default d",
        parameters: "default_value boolean",
        run: default,
    },
    Filter {
        names: "mandatory",
        parameters: "msg",
        run: mandatory,
    },
    Filter {
        names: "ternary",
        parameters: "true_val false_val none_val",
        run: ternary,
    },
    Filter {
        names: "type_debug",
        parameters: "",
        run: type_debug,
    },
];

pub(super) const FILTERS: &[Filter] = &[Filter {
    names: "bool",
    parameters: "",
    run: boolean,
}];

fn default(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    if poison::touch(value) {
        return Ok(value.clone());
    }
    let missing = value.is_undefined() || (given.flag(1, false) && !value.is_true());
    Ok(if missing {
        given.get(0).cloned().unwrap_or_else(|| Value::from(""))
    } else {
        value.clone()
    })
}

fn mandatory(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    match given.some(0) {
        Some(message) if value.is_undefined() => Err(failed(text::str(message)?)),
        None if value.is_undefined() => {
            Err(Error::new(ErrorKind::UndefinedError, poison::MANDATORY))
        }
        _ => Ok(value.clone()),
    }
}

fn ternary(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    if value.is_undefined() || poison::touch(value) {
        return Ok(value.clone());
    }
    let chosen = match given.some(2) {
        Some(none) if value.is_none() => none,
        _ if value.is_true() => given.need(0)?,
        _ => given.need(1)?,
    };
    Ok(chosen.clone())
}

fn type_debug(_: &mut State<'_, '_>, value: &Value, _: &Given) -> Result<Value, Error> {
    if poison::touch(value) {
        return Ok(value.clone());
    }
    Ok(Value::from(text::type_name(value)))
}

fn boolean(_: &mut State<'_, '_>, value: &Value, _: &Given) -> Result<Value, Error> {
    Ok(match value.kind() {
        ValueKind::Bool => value.clone(),
        ValueKind::String => {
            Value::from(value.as_str().and_then(truth::from_text).unwrap_or(false))
        }
        ValueKind::Number => {
            Value::from(f64::try_from(value.clone()).is_ok_and(|number| number == 1.0))
        }
        _ => Value::from(false),
    })
}
