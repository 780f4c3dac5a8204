//! `validate_argument_spec`: arguments of roles against what their `meta/argument_specs.yml` says.

use fleet_yaml::Node;
use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use super::{
    content::to_json,
    dispatch::{Settled, Unfit},
    host::Host,
    local::Done,
    scope::HostScope,
};
use crate::variables::{Scope, Variable};

type Fields = Map<String, Value>;

pub(super) async fn validate(
    host: &mut Host,
    arguments: &IndexMap<String, Node>,
    scope: &HostScope,
) -> Result<Done, Unfit> {
    let Some(spec) = said(host, arguments, "argument_spec", scope).await? else {
        return Err(Unfit::Problem(
            "\"argument_spec\" arg is required in args: {}".to_owned(),
        ));
    };
    let Some(spec) = spec.as_object() else {
        return Err(Unfit::Problem(format!(
            "Incorrect type for argument_spec, expected dict and got {spec}"
        )));
    };
    let mut given = Fields::new();
    if let Some(node) = arguments.get("provided_arguments") {
        match node.as_map() {
            Some(map) => {
                for (key, value) in map.iter() {
                    let name = key.as_str().unwrap_or_default().to_owned();
                    if let Some(value) = looked_at(host, value, scope).await? {
                        given.insert(name, value);
                    }
                }
            }
            None => {
                let value = said(host, arguments, "provided_arguments", scope).await?;
                let value = value.as_ref().and_then(Value::as_object);
                given.extend(value.cloned().unwrap_or_default());
            }
        }
    }
    // What is not handed over may be a variable of the same name.
    for name in spec.keys() {
        if given.contains_key(name) {
            continue;
        }
        match scope.get(name) {
            Some(Variable::Written(node)) => {
                if let Some(value) = looked_at(host, &node, scope).await? {
                    given.insert(name.clone(), value);
                }
            }
            Some(Variable::Data(value)) => {
                given.insert(name.clone(), to_json(&value));
            }
            _ => {}
        }
    }
    let context = said(host, arguments, "validate_args_context", scope).await?;
    let context = context.unwrap_or_else(|| json!({}));
    let mut errors = Vec::new();
    check(spec, &Fields::new(), &given, &[], &mut errors);
    if errors.is_empty() {
        return Ok(Done::ok(json!({
            "changed": false, "msg": "The arg spec validation passed", "validate_args_context": context,
        })));
    }
    Err(Unfit::Failed(Box::new(json!({
        "changed": false, "failed": true,
        "msg": format!("Validation of arguments failed:\n{}", errors.join("\n")),
        "argument_errors": errors, "argument_spec_data": spec, "validate_args_context": context,
    }))))
}

/// An argument's value; none where it is absent or `omit`.
async fn said(
    host: &mut Host,
    arguments: &IndexMap<String, Node>,
    name: &str,
    scope: &HostScope,
) -> Result<Option<Value>, Unfit> {
    let value = host.keyword(arguments.get(name), scope).await?;
    Ok(value.as_ref().map(to_json))
}

/// A value that can be known now; one that cannot is taken for what it should be.
async fn looked_at(
    host: &mut Host,
    node: &Node,
    scope: &HostScope,
) -> Result<Option<Value>, Unfit> {
    match host.value(node, scope).await? {
        Settled::Known(value) if crate::template::is_omit(&value) => Ok(None),
        Settled::Known(value) => Ok(Some(to_json(&value))),
        Settled::Unknown(_) => Ok(None),
    }
}

/// Checks arguments against their specification, and those within them.
fn check(spec: &Fields, rules: &Fields, given: &Fields, path: &[&str], errors: &mut Vec<String>) {
    let within = match path {
        [] => String::new(),
        path => format!(" found in {}", path.join(" -> ")),
    };
    let name_of = |asked: &str| {
        let aliases = |own: &Value| {
            own.get("aliases")
                .and_then(Value::as_array)
                .is_some_and(|list| list.iter().any(|alias| alias == asked))
        };
        let by_alias = spec.iter().find(|(_, own)| aliases(own));
        match spec.contains_key(asked) {
            true => Some(asked.to_owned()),
            false => by_alias.map(|(name, _)| name.clone()),
        }
    };
    let mut values: Fields = Fields::new();
    let mut unknown = Vec::new();
    for (name, value) in given {
        match name_of(name) {
            Some(name) => {
                values.insert(name, value.clone());
            }
            None => unknown.push(name.as_str()),
        }
    }
    if !unknown.is_empty() && !path.is_empty() {
        unknown.sort_unstable();
        let known: Vec<_> = spec.keys().map(String::as_str).collect();
        errors.push(format!(
            "{}{}. Supported parameters include: {}.",
            unknown
                .iter()
                .map(|name| format!("{}.{name}", path.join(".")))
                .collect::<Vec<_>>()
                .join(", "),
            "",
            known.join(", ")
        ));
    }
    let mut missing: Vec<&str> = spec
        .iter()
        .filter(|(name, own)| {
            own.get("required") == Some(&Value::Bool(true)) && !values.contains_key(*name)
        })
        .map(|(name, _)| name.as_str())
        .collect();
    if !missing.is_empty() {
        missing.sort_unstable();
        errors.push(format!(
            "missing required arguments: {}{within}",
            missing.join(", ")
        ));
    }
    for (name, own) in spec {
        let Some(value) = values.get(name) else {
            continue;
        };
        if value.is_null() {
            nothing(name, own, &within, errors);
            continue;
        }
        one(name, own, value, path, &within, errors);
    }
    together(rules, &values, &within, errors);
}

/// Nothing at all is none of most types, where an argument is required.
fn nothing(name: &str, own: &Value, within: &str, errors: &mut Vec<String>) {
    let kind = own.get("type").and_then(Value::as_str).unwrap_or("str");
    let what = match kind {
        "str" | "path" | "raw" => return,
        "int" => "\"None\" cannot be converted to an int".to_owned(),
        "json" => "<class 'NoneType'> cannot be converted to a json string".to_owned(),
        "bytes" => "<class 'NoneType'> cannot be converted to a Byte value".to_owned(),
        kind => format!("<class 'NoneType'> cannot be converted to a {kind}"),
    };
    if own.get("required") == Some(&Value::Bool(true)) {
        errors.push(format!(
            "argument '{name}' is of type NoneType{within} and we were unable to convert to {kind}: {what}"
        ));
    }
}

/// Checks one argument.
fn one(
    name: &str,
    own: &Value,
    value: &Value,
    path: &[&str],
    within: &str,
    errors: &mut Vec<String>,
) {
    let kind = own.get("type").and_then(Value::as_str).unwrap_or("str");
    let Some(value) = converted(kind, value) else {
        errors.push(format!(
            "argument '{name}' is of type {}{within} and we were unable to convert to {kind}: {}",
            python_type(value),
            cannot(kind, value)
        ));
        return;
    };
    if let Some(choices) = own.get("choices").and_then(Value::as_array) {
        let items = match &value {
            Value::Array(items) => items.clone(),
            other => vec![other.clone()],
        };
        let same = |a: &Value, b: &Value| a == b || plain(a) == plain(b);
        if let Some(wrong) = items
            .iter()
            .find(|item| !choices.iter().any(|choice| same(choice, item)))
        {
            let choices: Vec<_> = choices.iter().map(plain).collect();
            errors.push(format!(
                "value of {name} must be one of: {}, got: {}{within}",
                choices.join(", "),
                plain(wrong)
            ));
        }
    }
    if let (Some(element), Value::Array(items)) =
        (own.get("elements").and_then(Value::as_str), &value)
    {
        for item in items {
            if converted(element, item).is_none() {
                errors.push(format!(
                    "Elements value for option '{name}'{within} is of type {} and we were unable to convert to {element}: {}",
                    python_type(item),
                    cannot(element, item)
                ));
            }
        }
    }
    let Some(options) = own.get("options").and_then(Value::as_object) else {
        return;
    };
    let rules = own.as_object().cloned().unwrap_or_default();
    let mut deeper = path.to_vec();
    deeper.push(name);
    let items = match &value {
        Value::Array(items) => items.iter().collect(),
        other => vec![other],
    };
    for item in items {
        match item.as_object() {
            Some(fields) => check(options, &rules, fields, &deeper, errors),
            None => errors.push(format!(
                "value of '{name}' must be of type dict or list of dicts{within}"
            )),
        }
    }
}

/// `mutually_exclusive`, `required_together`, `required_one_of`, `required_if`, `required_by`.
fn together(rules: &Fields, values: &Fields, within: &str, errors: &mut Vec<String>) {
    let groups = |rule: &str| -> Vec<Vec<String>> {
        let lists = rules.get(rule).and_then(Value::as_array);
        let Some(lists) = lists else {
            return Vec::new();
        };
        let words = |list: &Vec<Value>| list.iter().map(plain).collect::<Vec<_>>();
        match lists.iter().all(Value::is_array) {
            true => lists
                .iter()
                .filter_map(Value::as_array)
                .map(words)
                .collect(),
            false => vec![words(lists)],
        }
    };
    let count = |names: &[String]| {
        names
            .iter()
            .filter(|name| values.contains_key(*name))
            .count()
    };
    for names in groups("mutually_exclusive") {
        if count(&names) > 1 {
            errors.push(format!(
                "parameters are mutually exclusive: {}{within}",
                names.join("|")
            ));
        }
    }
    for names in groups("required_together") {
        if (1..names.len()).contains(&count(&names)) {
            errors.push(format!(
                "parameters are required together: {}{within}",
                names.join(", ")
            ));
        }
    }
    for names in groups("required_one_of") {
        if count(&names) == 0 {
            errors.push(format!(
                "one of the following is required: {}{within}",
                names.join(", ")
            ));
        }
    }
    for rule in rules
        .get("required_if")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let Some([name, wanted, needed, ..]) = rule.as_array().map(Vec::as_slice) else {
            continue;
        };
        let is_so = values
            .get(&plain(name))
            .is_some_and(|value| plain(value) == plain(wanted));
        let missing: Vec<_> = needed
            .as_array()
            .into_iter()
            .flatten()
            .map(plain)
            .filter(|name| !values.contains_key(name))
            .collect();
        if is_so && !missing.is_empty() {
            errors.push(format!(
                "{} is {} but all of the following are missing: {}{within}",
                plain(name),
                plain(wanted),
                missing.join(", ")
            ));
        }
    }
    let by = rules.get("required_by").and_then(Value::as_object);
    for (name, needed) in by.into_iter().flatten() {
        let needed = match needed {
            Value::Array(list) => list.iter().map(plain).collect(),
            other => vec![plain(other)],
        };
        let missing: Vec<_> = needed
            .into_iter()
            .filter(|name| !values.contains_key(name))
            .collect();
        if values.contains_key(name) && !missing.is_empty() {
            errors.push(format!(
                "missing parameter(s) required by '{name}': {}{within}",
                missing.join(", ")
            ));
        }
    }
}

/// A value as the type that is wanted; none where it cannot be one.
fn converted(kind: &str, value: &Value) -> Option<Value> {
    let text = || plain(value);
    match kind {
        "str" | "string" | "path" | "bytes" | "bits" => match value {
            Value::Array(_) | Value::Object(_) => None,
            _ => Some(text().into()),
        },
        "int" | "integer" => match value {
            Value::Number(number) if number.is_i64() || number.is_u64() => Some(value.clone()),
            Value::String(text) => text.trim().parse::<i64>().ok().map(Value::from),
            Value::Bool(truth) => Some(i64::from(*truth).into()),
            _ => None,
        },
        "float" | "number" => match value {
            Value::Number(_) => Some(value.clone()),
            Value::String(text) => text.trim().parse::<f64>().ok().map(Value::from),
            _ => None,
        },
        "bool" | "boolean" => match value {
            Value::Bool(_) => Some(value.clone()),
            _ => match text().to_ascii_lowercase().as_str() {
                "y" | "yes" | "on" | "1" | "true" | "t" | "1.0" => Some(true.into()),
                "n" | "no" | "off" | "0" | "false" | "f" | "0.0" => Some(false.into()),
                _ => None,
            },
        },
        "list" => match value {
            Value::Array(_) => Some(value.clone()),
            Value::String(text) => Some(text.split(',').map(|part| part.trim()).collect()),
            Value::Number(_) => Some(Value::Array(vec![text().into()])),
            _ => None,
        },
        "dict" => match value {
            Value::Object(_) => Some(value.clone()),
            Value::String(text) if text.starts_with('{') => serde_json::from_str(text).ok(),
            Value::String(text) if text.contains('=') => {
                let pairs = shlex::split(text)?;
                let pairs = pairs.iter().filter_map(|pair| pair.split_once('='));
                Some(Value::Object(
                    pairs
                        .map(|(name, value)| (name.to_owned(), value.into()))
                        .collect(),
                ))
            }
            _ => None,
        },
        _ => Some(value.clone()),
    }
}

fn cannot(kind: &str, value: &Value) -> String {
    let python = python_type(value);
    match kind {
        "dict" => match value {
            Value::String(_) => {
                "dictionary requested, could not parse JSON or key=value".to_owned()
            }
            _ => format!("{python} cannot be converted to a dict"),
        },
        "bool" | "boolean" => format!("The value '{}' is not a valid boolean.", plain(value)),
        "str" | "string" => format!(
            "'{}' is not a string and conversion is not allowed",
            plain(value)
        ),
        _ => format!("\"{python}\" cannot be converted to {}", article(kind)),
    }
}

fn article(kind: &str) -> String {
    match kind {
        "int" | "integer" => "an int".to_owned(),
        other => format!("a {other}"),
    }
}

fn python_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "NoneType",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float",
        Value::Number(_) => "int",
        Value::String(_) => "str",
        Value::Array(_) => "list",
        Value::Object(_) => "dict",
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        other => other.to_string(),
    }
}
