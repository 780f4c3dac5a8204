//! `map`, `select` and their kin: filters and tests over the items of a list.

use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Error, ErrorKind, State, Value};

use crate::template::evaluation;
use crate::template::given::{Filter, Given, failed, items};
use crate::template::poison;
use crate::template::python::text;

pub(super) const FILTERS: &[Filter] = &[
    Filter {
        names: "map",
        parameters: "* **",
        run: map,
    },
    Filter {
        names: "select",
        parameters: "* **",
        run: |state, value, given| choose(state, value, given, false, true),
    },
    Filter {
        names: "reject",
        parameters: "* **",
        run: |state, value, given| choose(state, value, given, false, false),
    },
    Filter {
        names: "selectattr",
        parameters: "* **",
        run: |state, value, given| choose(state, value, given, true, true),
    },
    Filter {
        names: "rejectattr",
        parameters: "* **",
        run: |state, value, given| choose(state, value, given, true, false),
    },
];

/// An attribute of an item by its path: `name`, `a.b.0`, or a number.
pub(super) fn attribute(item: &Value, path: &Value) -> Result<Value, Error> {
    let Some(written) = path.as_str() else {
        return found(item, path);
    };
    let mut reached = item.clone();
    for part in written.split('.') {
        let step = part
            .parse::<i64>()
            .map_or_else(|_| Value::from(part), Value::from);
        let by_number = found(&reached, &step)?;
        reached = if by_number.is_undefined() {
            found(&reached, &Value::from(part))?
        } else {
            by_number
        };
        if reached.is_undefined() {
            break;
        }
    }
    Ok(reached)
}

fn found(item: &Value, key: &Value) -> Result<Value, Error> {
    if item.is_undefined() {
        return Ok(Value::UNDEFINED);
    }
    // Only what has parts can be asked for them; of anything else every part is undefined.
    match item.kind() {
        ValueKind::None | ValueKind::Bool | ValueKind::Number => Ok(Value::UNDEFINED),
        ValueKind::String if key.as_i64().is_none() => Ok(Value::UNDEFINED),
        ValueKind::Seq | ValueKind::Iterable if key.as_i64().is_none() => {
            let found = item.as_object().and_then(|object| object.get_value(key));
            Ok(found.unwrap_or(Value::UNDEFINED))
        }
        _ => item.get_item(key),
    }
}

/// The arguments for the inner filter or test.
fn passed(subject: Value, given: &Given, from: usize) -> Vec<Value> {
    let mut arguments = vec![subject];
    arguments.extend(given.rest.iter().skip(from).cloned());
    if !given.named.is_empty() {
        arguments.push(given.named.iter().cloned().collect::<Kwargs>().into());
    }
    arguments
}

fn map(state: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let named = |wanted: &str| {
        given
            .named
            .iter()
            .find(|(name, _)| name == wanted)
            .map(|pair| &pair.1)
    };
    let mut made = Vec::new();
    if given.rest.is_empty() {
        let path =
            named("attribute").ok_or_else(|| given.wrong("needs a filter or `attribute`"))?;
        for item in items(value)? {
            let part = attribute(&item, path)?;
            if part.is_undefined() {
                evaluation::current()?.hint_at(format!(
                    "object of type '{}' has no attribute '{path}'",
                    text::type_name(&item)
                ));
            }
            made.push(match named("default") {
                Some(default) if part.is_undefined() => default.clone(),
                _ => part,
            });
        }
        return Ok(made.into());
    }
    let filter = text::str(&given.rest[0])?;
    for item in items(value)? {
        made.push(
            state
                .apply_filter(&filter, &passed(item, given, 1))
                .map_err(|error| unknown(error, "filter", &filter))?,
        );
    }
    Ok(made.into())
}

fn choose(
    state: &mut State<'_, '_>,
    value: &Value,
    given: &Given,
    by_attribute: bool,
    wanted: bool,
) -> Result<Value, Error> {
    let at = usize::from(by_attribute);
    let path = given.rest.first();
    if by_attribute && path.is_none() {
        return Err(given.wrong("needs the name of an attribute"));
    }
    let test = given.rest.get(at).map(text::str).transpose()?;
    let mut made = Vec::new();
    for item in items(value)? {
        let subject = match path {
            Some(path) if by_attribute => attribute(&item, path)?,
            _ => item.clone(),
        };
        let holds = match &test {
            Some(test) => state
                .perform_test(test, &passed(subject, given, at + 1))
                .map_err(|error| unknown(error, "test", test))?,
            None if poison::touch(&subject) => false,
            None => subject.is_true(),
        };
        if holds == wanted {
            made.push(item);
        }
    }
    Ok(made.into())
}

fn unknown(error: Error, what: &str, name: &str) -> Error {
    match error.kind() {
        ErrorKind::UnknownFilter | ErrorKind::UnknownTest => {
            failed(format!("there is no {what} `{name}`"))
        }
        _ => error,
    }
}
