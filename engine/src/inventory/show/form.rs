//! Values as Python's libraries write them: JSON, YAML, TOML, and what `str()` makes of them.

use std::{collections::BTreeMap, sync::LazyLock};

use fleet_yaml::{Diagnostic, Kind, Node};
use minijinja::{Value, value::ValueKind};
use regex::Regex;

use super::super::mistake::{code, placeless};
use crate::template::{YamlStyle, yaml};

/// How an inventory is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// As JSON.
    #[default]
    Json,
    /// As YAML.
    Yaml,
    /// As TOML.
    Toml,
}

/// A value as text, without a line break at the end.
pub(super) fn text(value: &Value, form: Form) -> Result<String, Diagnostic> {
    let mut text = String::new();
    match form {
        Form::Json => json(&mut text, value, 0),
        Form::Yaml => {
            let style = YamlStyle {
                indent: 2,
                width: 80,
                flow: Some(false),
                sort_keys: true,
                unicode: true,
            };
            text = yaml(value, &style).map_err(|error| placeless(code::VARS, error.to_string()))?;
        }
        Form::Toml => toml(&mut text, value)?,
    }
    text.truncate(text.trim_end().len());
    Ok(text)
}

/// Whether a value shows what must not be rendered, and what is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marks {
    /// As Ansible marks it in JSON.
    Json,
    /// Not.
    None,
}

/// A value, the keys in it sorted.
pub(super) fn marked(node: &Node, marks: Marks) -> Value {
    let mark = match node.tag.as_deref() {
        Some("unsafe") => Some("__ansible_unsafe"),
        Some("vault") => Some("__ansible_vault"),
        _ => None,
    };
    if let Some(mark) = mark.filter(|_| marks == Marks::Json && node.is_scalar()) {
        return Value::from_pairs([(Value::from(mark), marked(node, Marks::None))]);
    }
    match &node.kind {
        Kind::Null => Value::from(()),
        Kind::Bool(value) => Value::from(*value),
        Kind::Int(value) => Value::from(*value),
        Kind::Float(value) => Value::from(*value),
        Kind::Str(text) => match moment(node) {
            Some(moment) if marks == Marks::Json => Value::from(moment.replacen(' ', "T", 1)),
            _ => Value::from(&**text),
        },
        Kind::Seq(items) => {
            let items = items.iter().map(|item| marked(item, marks));
            Value::from(items.collect::<Vec<_>>())
        }
        Kind::Map(map) => {
            let entries = map.iter().map(|(key, item)| {
                (
                    key.key_text(),
                    (marked(key, Marks::None), marked(item, marks)),
                )
            });
            let sorted: BTreeMap<String, (Value, Value)> = entries.collect();
            Value::from_pairs(sorted.into_values())
        }
    }
}

/// A date with a time as Python prints it, where YAML or TOML has one: `2024-01-01 12:01:01+00:00`.
fn moment(node: &Node) -> Option<String> {
    static MOMENT: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let date = r"(\d{4})-(\d\d?)-(\d\d?)";
        let time = r"(\d\d?):(\d\d):(\d\d)(?:\.(\d*))?";
        let zone = r"(?:[ \t]*(Z|[-+]\d\d?(?::?\d\d)?))?";
        Regex::new(&format!("^{date}(?:[Tt]|[ \\t]+){time}{zone}$")).ok()
    });
    let stamp = node.tag.as_deref() == Some("timestamp");
    let plain = node.is_plain() && node.tag.is_none();
    let text = node.as_str().filter(|_| plain || stamp)?;
    let parts = MOMENT.as_ref()?.captures(text)?;
    let number = |part: usize| parts.get(part).map_or("0", |part| part.as_str());
    let mut moment = format!(
        "{}-{:0>2}-{:0>2} {:0>2}:{}:{}",
        number(1),
        number(2),
        number(3),
        number(4),
        number(5),
        number(6)
    );
    let fraction: String = number(7).chars().chain("000000".chars()).take(6).collect();
    if fraction.bytes().any(|digit| digit != b'0') {
        moment.push('.');
        moment.push_str(&fraction);
    }
    match parts.get(8).map(|zone| zone.as_str()) {
        None => {}
        Some("Z") => moment.push_str("+00:00"),
        Some(zone) => {
            let (sign, digits) = zone.split_at(1);
            let (hours, minutes) = match digits.split_once(':') {
                Some(parts) => parts,
                None if digits.len() > 2 => digits.split_at(digits.len() - 2),
                None => (digits, "00"),
            };
            moment.push_str(&format!("{sign}{hours:0>2}:{minutes}"));
        }
    }
    Some(moment)
}

/// JSON with four blanks a level and all letters as they are.
fn json(out: &mut String, value: &Value, depth: usize) {
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.push_str(&"    ".repeat(depth));
    };
    match value.kind() {
        ValueKind::Map => {
            let entries = entries(value);
            out.push('{');
            for (at, (key, item)) in entries.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                line(out, depth + 1);
                let key = match key.kind() {
                    ValueKind::String => key.to_string(),
                    _ => {
                        let mut text = String::new();
                        json(&mut text, key, 0);
                        text
                    }
                };
                quoted(out, &key);
                out.push_str(": ");
                json(out, item, depth + 1);
            }
            if !entries.is_empty() {
                line(out, depth);
            }
            out.push('}');
        }
        ValueKind::Seq => {
            let items = items(value);
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                line(out, depth + 1);
                json(out, item, depth + 1);
            }
            if !items.is_empty() {
                line(out, depth);
            }
            out.push(']');
        }
        ValueKind::String => quoted(out, value.as_str().unwrap_or_default()),
        ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number => out.push_str(&number(value, ["Infinity", "NaN"])),
        _ => out.push_str("null"),
    }
}

/// A text in JSON's quotes.
fn quoted(out: &mut String, text: &str) {
    out.push('"');
    for char in text.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            char if char < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(char))),
            char => out.push(char),
        }
    }
    out.push('"');
}

/// A number as Python writes it.
fn number(value: &Value, [infinity, nan]: [&str; 2]) -> String {
    match f64::try_from(value.clone()) {
        Ok(number) if !value.is_integer() => float(number, [infinity, nan]),
        _ => value.to_string(),
    }
}

/// The shortest digits that mean this number, with an exponent from 1e16 on and below 1e-4.
fn float(number: f64, [infinity, nan]: [&str; 2]) -> String {
    if number.is_nan() {
        return nan.to_owned();
    }
    if number.is_infinite() {
        let sign = if number < 0.0 { "-" } else { "" };
        return format!("{sign}{infinity}");
    }
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..16).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
        }
        _ => format!("{number:?}"),
    }
}

fn entries(value: &Value) -> Vec<(Value, Value)> {
    let keys = value.try_iter().into_iter().flatten();
    keys.map(|key| {
        let item = value.get_item(&key).unwrap_or_default();
        (key, item)
    })
    .collect()
}

fn items(value: &Value) -> Vec<Value> {
    value.try_iter().into_iter().flatten().collect()
}

/// TOML: tables for mappings, values in a line.
fn toml(out: &mut String, value: &Value) -> Result<(), Diagnostic> {
    table(out, value, &mut Vec::new())
}

fn table(out: &mut String, value: &Value, path: &mut Vec<String>) -> Result<(), Diagnostic> {
    let entries = entries(value);
    let (tables, plain): (Vec<_>, Vec<_>) = entries
        .iter()
        .partition(|(_, item)| item.kind() == ValueKind::Map);
    if !path.is_empty() && (!plain.is_empty() || tables.is_empty()) {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&format!("[{}]\n", path.join(".")));
    }
    for (key, item) in plain {
        out.push_str(&toml_key(key));
        out.push_str(" = ");
        inline(out, item, key, 0)?;
        out.push('\n');
    }
    for (key, item) in tables {
        path.push(toml_key(key));
        table(out, item, path)?;
        path.pop();
    }
    Ok(())
}

fn toml_key(key: &Value) -> String {
    let key = key.to_string();
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !key.is_empty() && key.chars().all(bare) {
        return key;
    }
    let mut text = String::new();
    quoted(&mut text, &key);
    text
}

fn inline(out: &mut String, value: &Value, name: &Value, depth: usize) -> Result<(), Diagnostic> {
    match value.kind() {
        ValueKind::Seq => {
            let items = items(value);
            if items.is_empty() {
                out.push_str("[]");
                return Ok(());
            }
            out.push_str("[\n");
            for item in &items {
                out.push_str(&"    ".repeat(depth + 1));
                inline(out, item, name, depth + 1)?;
                out.push_str(",\n");
            }
            out.push_str(&"    ".repeat(depth));
            out.push(']');
        }
        ValueKind::Map => {
            let entries = entries(value);
            if entries.is_empty() {
                out.push_str("{}");
                return Ok(());
            }
            for (at, (key, item)) in entries.iter().enumerate() {
                out.push_str(if at > 0 { ", " } else { "{ " });
                out.push_str(&toml_key(key));
                out.push_str(" = ");
                inline(out, item, name, depth)?;
            }
            out.push_str(" }");
        }
        ValueKind::String => quoted(out, value.as_str().unwrap_or_default()),
        ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number => out.push_str(&number(value, ["inf", "nan"])),
        _ => {
            let what = format!("`{name}` is null, and TOML has no way to say so");
            return Err(placeless(code::VARS, what).with_help("show it as YAML or as JSON"));
        }
    }
    Ok(())
}

/// A value as a graph shows it: a text as it is, anything else as Python prints it.
pub(super) fn printed(node: &Node) -> String {
    let written = || node.as_str().map(str::to_owned);
    moment(node)
        .or_else(written)
        .unwrap_or_else(|| python(node))
}

fn python(node: &Node) -> String {
    match &node.kind {
        Kind::Null => "None".to_owned(),
        Kind::Bool(true) => "True".to_owned(),
        Kind::Bool(false) => "False".to_owned(),
        Kind::Int(number) => number.to_string(),
        Kind::Float(number) => float(*number, ["inf", "nan"]),
        Kind::Str(text) => python_quoted(text),
        Kind::Seq(items) => {
            let items: Vec<String> = items.iter().map(python).collect();
            format!("[{}]", items.join(", "))
        }
        Kind::Map(map) => {
            let entry = |(key, value)| format!("{}: {}", python(key), python(value));
            let entries: Vec<String> = map.iter().map(entry).collect();
            format!("{{{}}}", entries.join(", "))
        }
    }
}

fn python_quoted(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    let mut quoted = String::from(quote);
    for char in text.chars() {
        match char {
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            '\\' => quoted.push_str("\\\\"),
            char if char == quote => quoted.extend(['\\', char]),
            char if char < ' ' || char == '\u{7f}' => {
                quoted.push_str(&format!("\\x{:02x}", u32::from(char)));
            }
            char => quoted.push(char),
        }
    }
    quoted.push(quote);
    quoted
}
