//! `str()` and `repr()`.

use minijinja::value::{Tuple, ValueKind};
use minijinja::{Error, ErrorKind, Value};

use crate::template::poison;
use crate::template::resolve::present;

/// The value as Python's `str()` writes it. An undefined value is an error; one that is not known yet is noted.
pub(crate) fn str(value: &Value) -> Result<String, Error> {
    if let Some(text) = value.as_str() {
        return Ok(text.to_owned());
    }
    let mut out = String::new();
    write_repr(&mut out, value, Tuples::Kept, 0)?;
    Ok(out)
}

/// The value as it is printed into a text by `{{ }}`: like [`str`], but `None` and `omit` print nothing, and tuples are
/// lists by then.
pub(crate) fn printed(value: &Value) -> Result<String, Error> {
    if let Some(text) = value.as_str() {
        return Ok(text.to_owned());
    }
    let mut out = String::new();
    if !value.is_none() && !poison::is_omit(value) {
        write_repr(&mut out, value, Tuples::AsLists, 0)?;
    }
    Ok(out)
}

/// How tuples are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tuples {
    Kept,
    AsLists,
}

/// The value as Python's `repr()` writes it.
pub(crate) fn repr(value: &Value) -> Result<String, Error> {
    let mut out = String::new();
    write_repr(&mut out, value, Tuples::Kept, 0)?;
    Ok(out)
}

fn write_repr(out: &mut String, value: &Value, tuples: Tuples, depth: usize) -> Result<(), Error> {
    if depth > 100 {
        return Err(Error::new(
            ErrorKind::InvalidOperation,
            "the value is nested too deeply to be printed",
        ));
    }
    if poison::touch(value) {
        return Ok(());
    }
    match value.kind() {
        ValueKind::Undefined => return Err(poison::undefined(value)),
        ValueKind::Invalid => {
            value.clone().validate_or_err()?;
        }
        ValueKind::None => out.push_str("None"),
        ValueKind::Bool => out.push_str(if value.is_true() { "True" } else { "False" }),
        ValueKind::Number => out.push_str(&number(value)),
        ValueKind::String => quote(out, value.as_str().unwrap_or_default()),
        ValueKind::Bytes => {
            out.push('b');
            quote(
                out,
                &String::from_utf8_lossy(value.as_bytes().unwrap_or_default()),
            );
        }
        ValueKind::Seq | ValueKind::Iterable => {
            let tuple = tuples == Tuples::Kept && is_tuple(value);
            out.push(if tuple { '(' } else { '[' });
            let mut first = true;
            for (at, item) in value.try_iter()?.checked().enumerate() {
                let item = present(value, &Value::from(at), item?)?;
                if poison::is_omit(&item) {
                    continue;
                }
                if !std::mem::take(&mut first) {
                    out.push_str(", ");
                }
                write_repr(out, &item, tuples, depth + 1)?;
            }
            if tuple && value.len() == Some(1) {
                out.push(',');
            }
            out.push(if tuple { ')' } else { ']' });
        }
        ValueKind::Map => {
            out.push('{');
            let mut first = true;
            for (key, item) in pairs(value)? {
                let item = present(value, &key, item)?;
                if poison::is_omit(&item) {
                    continue;
                }
                if !std::mem::take(&mut first) {
                    out.push_str(", ");
                }
                write_repr(out, &key, tuples, depth + 1)?;
                out.push_str(": ");
                write_repr(out, &item, tuples, depth + 1)?;
            }
            out.push('}');
        }
        _ => out.push_str(&value.to_string()),
    }
    Ok(())
}

/// The keys and values of a map, in order.
///
/// # Errors
/// If the value is no map, or one of its values failed to render.
pub(crate) fn pairs(value: &Value) -> Result<Vec<(Value, Value)>, Error> {
    let not_a_map = || {
        Error::new(
            ErrorKind::InvalidOperation,
            format!("expected a dictionary, found {}", type_name(value)),
        )
    };
    let object = value
        .as_object()
        .filter(|_| value.kind() == ValueKind::Map)
        .ok_or_else(not_a_map)?;
    let mut found = Vec::new();
    for (key, item) in object.try_iter_pairs().into_iter().flatten() {
        found.push((key, item.validate_or_err()?));
    }
    Ok(found)
}

/// Turns a value that carries an error into that error.
pub(crate) trait Valid: Sized {
    /// # Errors
    /// The error that the value carries.
    fn validate_or_err(self) -> Result<Self, Error>;
}

impl Valid for Value {
    fn validate_or_err(self) -> Result<Self, Error> {
        if self.kind() != ValueKind::Invalid {
            return Ok(self);
        }
        // Only iteration hands the error out.
        match self.try_iter() {
            Err(error) => Err(error),
            Ok(_) => Err(Error::new(ErrorKind::InvalidOperation, self.to_string())),
        }
    }
}

/// Whether the value is a tuple. (What a template gives in the end has lists in their place, as in Ansible.)
pub(crate) fn is_tuple(value: &Value) -> bool {
    value.downcast_object_ref::<Tuple>().is_some() || super::super::filters::is_group(value)
}

/// A tuple of values.
pub(crate) fn tuple(values: impl Into<Vec<Value>>) -> Value {
    Value::from(Tuple::from(values.into()))
}

/// What Python would call the type of the value.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value.kind() {
        ValueKind::Undefined => "UndefinedMarker",
        _ if is_tuple(value) => "tuple",
        _ if poison::is_omit(value) => "_OmitType",
        _ if super::super::filters::is_time(value) => "datetime",
        ValueKind::None => "NoneType",
        ValueKind::Bool => "bool",
        ValueKind::Number if value.is_integer() => "int",
        ValueKind::Number => "float",
        ValueKind::String => "str",
        ValueKind::Bytes => "bytes",
        ValueKind::Seq | ValueKind::Iterable => "list",
        ValueKind::Map => "dict",
        _ => "object",
    }
}

fn number(value: &Value) -> String {
    if value.is_integer() {
        value.to_string()
    } else {
        f64::try_from(value.clone()).map_or_else(|_| value.to_string(), float)
    }
}

/// A float as Python's `repr` writes it: the shortest digits that read back, an exponent from 1e16 on and below 1e-4.
pub(crate) fn float(number: f64) -> String {
    if number.is_nan() {
        return "nan".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if number != 0.0 && !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    let plain = format!("{number}");
    if plain.contains('.') {
        plain
    } else {
        plain + ".0"
    }
}

fn quote(out: &mut String, text: &str) {
    let mark = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    out.push(mark);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == mark => {
                out.push('\\');
                out.push(c);
            }
            c if (c as u32) < 0x20 || ('\u{7f}'..='\u{a0}').contains(&c) => {
                out.push_str(&format!("\\x{:02x}", c as u32))
            }
            c => out.push(c),
        }
    }
    out.push(mark);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_print_as_in_python() {
        for (number, text) in [
            (1.0, "1.0"),
            (0.1, "0.1"),
            (1e20, "1e+20"),
            (1.5e-7, "1.5e-07"),
            (1e15, "1000000000000000.0"),
            (0.0001, "0.0001"),
            (-0.0, "-0.0"),
            (2.5, "2.5"),
        ] {
            assert_eq!(float(number), text);
        }
    }

    #[test]
    fn strings_are_quoted_as_in_python() {
        let quoted = |text: &str| repr(&Value::from(text)).unwrap();
        assert_eq!(quoted("a"), "'a'");
        assert_eq!(quoted("it's"), "\"it's\"");
        assert_eq!(quoted("it's \"q\""), "'it\\'s \"q\"'");
        assert_eq!(quoted("a\nb\\"), "'a\\nb\\\\'");
        assert_eq!(quoted("é\u{7f}"), "'é\\x7f'");
    }

    #[test]
    fn containers_print_as_in_python() {
        let list = Value::from(vec![
            Value::from(1),
            Value::from("a"),
            Value::from(()),
            Value::from(true),
            Value::from(1.0),
        ]);
        assert_eq!(str(&list).unwrap(), "[1, 'a', None, True, 1.0]");
        let map = Value::from_pairs([("a", list)]);
        assert_eq!(str(&map).unwrap(), "{'a': [1, 'a', None, True, 1.0]}");
    }

    #[test]
    fn none_prints_nothing_alone() {
        assert_eq!(printed(&Value::from(())).unwrap(), "");
        assert_eq!(str(&Value::from(())).unwrap(), "None");
    }
}
