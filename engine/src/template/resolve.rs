//! From what a template gave to a plain value: nothing lazy, nothing missing.

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, Value};

use super::EvalError;
use super::evaluation::why_undefined;
use super::given::failed;
use super::poison;
use super::python::text::{Valid, pairs};

/// The value with everything in it rendered. Left-out items are dropped; a value that is not known yet is noted.
///
/// # Errors
/// If something in it is undefined or cannot be rendered.
pub(crate) fn resolve(value: &Value) -> Result<Value, Error> {
    resolve_to(value, 0, &mut Err)
}

/// The same, with what `missing` makes of it in place of whatever is undefined in it.
///
/// # Errors
/// If something in it cannot be rendered, or `missing` says so.
pub(crate) fn resolve_with(
    value: &Value,
    missing: &mut dyn FnMut(Error) -> Result<Value, Error>,
) -> Result<Value, Error> {
    resolve_to(value, 0, missing)
}

/// An item of a container, which has to be defined.
///
/// # Errors
/// What its template misses, if it is undefined.
pub(crate) fn present(container: &Value, key: &Value, item: Value) -> Result<Value, Error> {
    if !item.is_undefined() {
        return Ok(item);
    }
    Err(why_undefined(container, key)
        .map_or_else(|| poison::undefined(&item), EvalError::into_minijinja))
}

fn resolve_to(
    value: &Value,
    depth: usize,
    missing: &mut dyn FnMut(Error) -> Result<Value, Error>,
) -> Result<Value, Error> {
    let undefined = |error: &Error| error.kind() == ErrorKind::UndefinedError;
    if depth > 100 {
        return Err(failed("the value is nested too deeply"));
    }
    if poison::touch(value) {
        return Ok(Value::from(()));
    }
    match value.kind() {
        ValueKind::Undefined => missing(poison::undefined(value)),
        ValueKind::Invalid => match value.clone().validate_or_err() {
            Err(error) if undefined(&error) => missing(error),
            done => done,
        },
        ValueKind::Seq | ValueKind::Iterable => {
            let mut made = Vec::new();
            for (at, item) in value.try_iter()?.checked().enumerate() {
                let item = item.and_then(|item| present(value, &Value::from(at), item));
                match item {
                    Err(error) if undefined(&error) => made.push(missing(error)?),
                    Err(error) => return Err(error),
                    Ok(item) if poison::is_omit(&item) => {}
                    Ok(item) => made.push(resolve_to(&item, depth + 1, missing)?),
                }
            }
            Ok(Value::from(made))
        }
        ValueKind::Map => {
            let mut made = Vec::new();
            for (key, item) in pairs(value)? {
                match present(value, &key, item) {
                    Err(error) if undefined(&error) => made.push((key, missing(error)?)),
                    Err(error) => return Err(error),
                    Ok(item) if poison::is_omit(&item) => {}
                    Ok(item) => made.push((key, resolve_to(&item, depth + 1, missing)?)),
                }
            }
            Ok(Value::from_pairs(made))
        }
        _ => Ok(value.clone()),
    }
}
