//! Tests of what a value is.

use minijinja::value::ValueKind;
use minijinja::{Error, State, Value};

use crate::template::given::{Given, Test, failed, items};
use crate::template::poison;
use crate::template::python::text;
use crate::template::{check, evaluation, filters};
use crate::vault::Vault;

/// Tests that get undefined values, too.
pub(super) const LENIENT: &[Test] = &[
    // What is known only after apply will be there.
    Test {
        names: "defined",
        parameters: "",
        run: |_, value, _| Ok(!value.is_undefined()),
    },
    Test {
        names: "undefined",
        parameters: "",
        run: |_, value, _| Ok(value.is_undefined()),
    },
];

pub(super) const TESTS: &[Test] = &[
    Test {
        names: "none",
        parameters: "",
        run: |_, value, _| Ok(value.is_none()),
    },
    Test {
        names: "boolean",
        parameters: "",
        run: |_, value, _| Ok(value.kind() == ValueKind::Bool),
    },
    Test {
        names: "true",
        parameters: "",
        run: |_, value, _| Ok(value.kind() == ValueKind::Bool && value.is_true()),
    },
    Test {
        names: "false",
        parameters: "",
        run: |_, value, _| Ok(value.kind() == ValueKind::Bool && !value.is_true()),
    },
    Test {
        names: "truthy",
        parameters: "convert_bool",
        run: |_, value, given| Ok(truthy(value, given)),
    },
    Test {
        names: "falsy",
        parameters: "convert_bool",
        run: |_, value, given| Ok(!truthy(value, given)),
    },
    Test {
        names: "string",
        parameters: "",
        run: |_, value, _| Ok(value.kind() == ValueKind::String),
    },
    // As in Python, a boolean is a number, too.
    Test {
        names: "number",
        parameters: "",
        run: |_, value, _| Ok(matches!(value.kind(), ValueKind::Number | ValueKind::Bool)),
    },
    Test {
        names: "integer int",
        parameters: "",
        run: |_, value, _| Ok(value.kind() == ValueKind::Number && value.is_integer()),
    },
    Test {
        names: "float",
        parameters: "",
        run: |_, value, _| Ok(value.kind() == ValueKind::Number && !value.is_integer()),
    },
    Test {
        names: "nan isnan",
        parameters: "",
        run: |_, value, _| Ok(f64::try_from(value.clone()).is_ok_and(f64::is_nan)),
    },
    Test {
        names: "mapping",
        parameters: "",
        run: |_, value, _| Ok(value.kind() == ValueKind::Map),
    },
    Test {
        names: "sequence",
        parameters: "",
        run: |_, value, _| Ok(sequence(value)),
    },
    Test {
        names: "iterable",
        parameters: "",
        run: |_, value, _| Ok(sequence(value)),
    },
    Test {
        names: "callable",
        parameters: "",
        run: |_, value, _| Ok(value.kind() == ValueKind::Plain && !poison::is_omit(value)),
    },
    Test {
        names: "odd",
        parameters: "",
        run: |_, value, _| Ok(whole(value)?.rem_euclid(2) == 1),
    },
    Test {
        names: "even",
        parameters: "",
        run: |_, value, _| Ok(whole(value)?.rem_euclid(2) == 0),
    },
    Test {
        names: "divisibleby",
        parameters: "num",
        run: divisible,
    },
    Test {
        names: "lower",
        parameters: "",
        run: |_, value, _| cased(value, char::is_lowercase, char::is_uppercase),
    },
    Test {
        names: "upper",
        parameters: "",
        run: |_, value, _| cased(value, char::is_uppercase, char::is_lowercase),
    },
    Test {
        names: "eq equalto ==",
        parameters: "other",
        run: |_, value, given| Ok(value == given.need(0)?),
    },
    Test {
        names: "ne !=",
        parameters: "other",
        run: |_, value, given| Ok(value != given.need(0)?),
    },
    Test {
        names: "gt greaterthan >",
        parameters: "other",
        run: |_, value, given| filters::ordered(value, given.need(0)?, ">"),
    },
    Test {
        names: "ge >=",
        parameters: "other",
        run: |_, value, given| filters::ordered(value, given.need(0)?, ">="),
    },
    Test {
        names: "lt lessthan <",
        parameters: "other",
        run: |_, value, given| filters::ordered(value, given.need(0)?, "<"),
    },
    Test {
        names: "le <=",
        parameters: "other",
        run: |_, value, given| filters::ordered(value, given.need(0)?, "<="),
    },
    Test {
        names: "sameas",
        parameters: "other",
        run: same,
    },
    Test {
        names: "in",
        parameters: "seq",
        run: |_, value, given| holds(given.need(0)?, value),
    },
    Test {
        names: "contains",
        parameters: "item",
        run: |_, value, given| holds(value, given.need(0)?),
    },
    Test {
        names: "all",
        parameters: "",
        run: |_, value, _| Ok(items(value)?.iter().all(Value::is_true)),
    },
    Test {
        names: "any",
        parameters: "",
        run: |_, value, _| Ok(items(value)?.iter().any(Value::is_true)),
    },
    Test {
        names: "subset issubset",
        parameters: "b",
        run: |_, value, given| subset(value, given.need(0)?),
    },
    Test {
        names: "superset issuperset",
        parameters: "b",
        run: |_, value, given| subset(given.need(0)?, value),
    },
    Test {
        names: "escaped",
        parameters: "",
        run: |_, _, _| Ok(false),
    },
    Test {
        names: "filter",
        parameters: "",
        run: |_, value, _| {
            Ok(value
                .as_str()
                .is_some_and(|name| check::named(filters::names(), name)))
        },
    },
    Test {
        names: "test",
        parameters: "",
        run: |_, value, _| {
            Ok(value
                .as_str()
                .is_some_and(|name| check::named(super::names(), name)))
        },
    },
    Test {
        names: "match",
        parameters: "pattern ignorecase multiline",
        run: |_, value, given| matched(value, given, true),
    },
    Test {
        names: "search",
        parameters: "pattern ignorecase multiline",
        run: |_, value, given| matched(value, given, false),
    },
    Test {
        names: "regex",
        parameters: "pattern ignorecase multiline match_type",
        run: regex,
    },
    Test {
        names: "url",
        parameters: "schemes",
        run: url,
    },
    Test {
        names: "uri",
        parameters: "schemes",
        run: uri,
    },
    Test {
        names: "urn",
        parameters: "",
        run: |_, value, _| Ok(text::str(value)?.to_lowercase().starts_with("urn:")),
    },
    Test {
        names: "vaulted_file",
        parameters: "",
        run: |_, value, _| vaulted_file(value),
    },
    Test {
        names: "vault_encrypted",
        parameters: "",
        run: |_, value, _| {
            let templar = evaluation::current()?.templar.clone();
            Ok(value
                .as_str()
                .is_some_and(|text| templar.vault().gave(text)))
        },
    },
];

fn truthy(value: &Value, given: &Given) -> bool {
    let read = given
        .flag(0, false)
        .then(|| {
            value
                .as_str()
                .and_then(crate::template::python::truth::from_text)
        })
        .flatten();
    read.unwrap_or_else(|| value.is_true())
}

fn sequence(value: &Value) -> bool {
    matches!(
        value.kind(),
        ValueKind::Seq | ValueKind::Iterable | ValueKind::Map | ValueKind::String
    )
}

fn whole(value: &Value) -> Result<i64, Error> {
    value.as_i64().ok_or_else(|| {
        failed(format!(
            "expected a whole number, found {}",
            text::type_name(value)
        ))
    })
}

fn divisible(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<bool, Error> {
    let by = whole(given.need(0)?)?;
    whole(value)?
        .checked_rem(by)
        .map(|rest| rest == 0)
        .ok_or_else(|| failed("nothing is divisible by 0"))
}

fn cased(value: &Value, wanted: fn(char) -> bool, other: fn(char) -> bool) -> Result<bool, Error> {
    let text = text::str(value)?;
    Ok(text.chars().any(wanted) && !text.chars().any(other))
}

fn same(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<bool, Error> {
    let other = given.need(0)?;
    Ok(match (value.as_object(), other.as_object()) {
        (Some(_), Some(_)) => minijinja::tests::is_sameas(value, other),
        _ => {
            value.kind() == other.kind()
                && value.is_integer() == other.is_integer()
                && value == other
        }
    })
}

fn holds(container: &Value, item: &Value) -> Result<bool, Error> {
    Ok(match container.kind() {
        ValueKind::String => container
            .as_str()
            .unwrap_or_default()
            .contains(&text::str(item)?),
        ValueKind::Map => container
            .as_object()
            .is_some_and(|map| map.get_value(item).is_some()),
        _ => items(container)?.contains(item),
    })
}

fn subset(small: &Value, large: &Value) -> Result<bool, Error> {
    let large = items(large)?;
    Ok(items(small)?.iter().all(|item| large.contains(item)))
}

fn matched(value: &Value, given: &Given, at_start: bool) -> Result<bool, Error> {
    let text = text::str(value)?;
    let pattern = given.need(0).and_then(text::str)?;
    let pattern = if at_start {
        format!("\\A(?:{pattern})")
    } else {
        pattern
    };
    filters::python_regex(&pattern, given.flag(1, false), given.flag(2, false))?.is_match(&text)
}

fn regex(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<bool, Error> {
    let text = text::str(value)?;
    let pattern = given.need(0).and_then(text::str)?;
    let pattern = match given.text(3, "search")?.as_str() {
        "search" => pattern,
        "match" => format!("\\A(?:{pattern})"),
        "fullmatch" => format!("\\A(?:{pattern})\\z"),
        other => {
            return Err(failed(format!(
                "Invalid match_type specified. Expected one of: search, match, fullmatch. Found `{other}`"
            )));
        }
    };
    filters::python_regex(&pattern, given.flag(1, false), given.flag(2, false))?.is_match(&text)
}

/// Whether a file of the controller is a vault.
fn vaulted_file(value: &Value) -> Result<bool, Error> {
    let templar = evaluation::current()?.templar.clone();
    let name = text::str(value)?;
    let path = templar
        .settings()
        .playbook_dir
        .join(templar.expand_user(std::path::Path::new(&name)));
    let bytes = templar
        .controller()
        .read(&path)
        .map_err(|error| failed(format!("{} cannot be read: {error}", path.display())))?;
    Ok(Vault::is_vault(&bytes))
}

/// The scheme of an address, as Python's `urlparse` sees it, and what comes after it.
fn scheme(address: &str) -> (String, &str) {
    let proper = |scheme: &str| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    };
    match address.split_once(':') {
        Some((scheme, rest)) if proper(scheme) => (scheme.to_lowercase(), rest),
        _ => (String::new(), address),
    }
}

/// Nearly everything is a URI: a scheme may be implied, and a path may be empty.
fn uri(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<bool, Error> {
    let address = text::str(value)?;
    let (scheme, _) = scheme(&address);
    Ok(match given.some(0) {
        Some(schemes) => items(schemes)?
            .iter()
            .any(|known| known.as_str() == Some(&scheme)),
        None => true,
    })
}

fn url(state: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<bool, Error> {
    let address = text::str(value)?;
    let (scheme, rest) = scheme(&address);
    let host = rest
        .strip_prefix("//")
        .is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['/', '?', '#']));
    Ok(uri(state, value, given)? && (host || scheme == "file"))
}
