//! JSON and YAML.

use fleet_yaml::{Source, load};
use minijinja::value::ValueKind;
use minijinja::{Error, State, Value};

use super::yaml::{self, YamlStyle};
use crate::template::given::{Filter, Given, failed, items};
use crate::template::nodes;
use crate::template::poison;
use crate::template::python::text::{self, float, pairs, type_name};

pub(super) const FILTERS: &[Filter] = &[
    Filter {
        names: "to_json",
        parameters: "indent sort_keys ensure_ascii separators **",
        run: to_json,
    },
    Filter {
        names: "to_nice_json",
        parameters: "indent sort_keys ensure_ascii separators **",
        run: to_nice_json,
    },
    Filter {
        names: "tojson",
        parameters: "indent",
        run: tojson,
    },
    Filter {
        names: "from_json",
        parameters: "**",
        run: from_json,
    },
    Filter {
        names: "to_yaml",
        parameters: "indent width default_flow_style sort_keys allow_unicode explicit_start explicit_end default_style line_break encoding version tags canonical vault_behavior",
        run: to_yaml,
    },
    Filter {
        names: "to_nice_yaml",
        parameters: "indent width default_flow_style sort_keys allow_unicode explicit_start explicit_end default_style line_break encoding version tags canonical vault_behavior",
        run: to_nice_yaml,
    },
    Filter {
        names: "from_yaml",
        parameters: "",
        run: from_yaml,
    },
    Filter {
        names: "from_yaml_all",
        parameters: "",
        run: from_yaml_all,
    },
    Filter {
        names: "pprint",
        parameters: "",
        run: pprint,
    },
];

/// How JSON is written.
struct JsonStyle {
    indent: Option<String>,
    sort_keys: bool,
    ascii: bool,
    item: String,
    key: String,
}

impl JsonStyle {
    fn of(given: &Given, indent: Option<i64>, sort_keys: bool) -> Result<Self, Error> {
        let indent = match given.get(0) {
            None => indent.map(|width| " ".repeat(width as usize)),
            Some(none) if none.is_none() => None,
            Some(written) if written.kind() == ValueKind::String => Some(text::str(written)?),
            Some(_) => Some(" ".repeat(usize::try_from(given.int(0, 0)?).unwrap_or(0).min(1000))),
        };
        let (item, key) = match given.some(3) {
            Some(separators) => (
                text::str(&separators.get_item_by_index(0)?)?,
                text::str(&separators.get_item_by_index(1)?)?,
            ),
            None => (
                if indent.is_some() { "," } else { ", " }.to_owned(),
                ": ".to_owned(),
            ),
        };
        Ok(Self {
            indent,
            sort_keys: given.flag(1, sort_keys),
            ascii: given.flag(2, true),
            item,
            key,
        })
    }

    fn line(&self, out: &mut String, depth: usize) {
        if let Some(indent) = &self.indent {
            out.push('\n');
            for _ in 0..depth {
                out.push_str(indent);
            }
        }
    }

    fn write(&self, out: &mut String, value: &Value, depth: usize) -> Result<(), Error> {
        if depth > 100 {
            return Err(failed("the value is nested too deeply for JSON"));
        }
        if poison::touch(value) {
            return Ok(());
        }
        match value.kind() {
            ValueKind::None => out.push_str("null"),
            ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number if value.is_integer() => out.push_str(&value.to_string()),
            ValueKind::Number => {
                let number = f64::try_from(value.clone())?;
                out.push_str(&match number {
                    _ if number.is_nan() => "NaN".to_owned(),
                    _ if number.is_infinite() => if number > 0.0 {
                        "Infinity"
                    } else {
                        "-Infinity"
                    }
                    .to_owned(),
                    _ => float(number),
                });
            }
            ValueKind::String => self.text(out, value.as_str().unwrap_or_default()),
            ValueKind::Undefined => return Err(poison::undefined(value)),
            ValueKind::Seq | ValueKind::Iterable => {
                let all: Vec<Value> = items(value)?
                    .into_iter()
                    .filter(|item| !poison::is_omit(item))
                    .collect();
                out.push('[');
                for (at, item) in all.iter().enumerate() {
                    if at > 0 {
                        out.push_str(&self.item);
                    }
                    self.line(out, depth + 1);
                    self.write(out, item, depth + 1)?;
                }
                if !all.is_empty() {
                    self.line(out, depth);
                }
                out.push(']');
            }
            ValueKind::Map => {
                let mut all: Vec<(Value, Value)> = pairs(value)?
                    .into_iter()
                    .filter(|pair| !poison::is_omit(&pair.1))
                    .collect();
                if self.sort_keys {
                    all.sort_by(|a, b| a.0.cmp(&b.0));
                }
                out.push('{');
                for (at, (key, item)) in all.iter().enumerate() {
                    if at > 0 {
                        out.push_str(&self.item);
                    }
                    self.line(out, depth + 1);
                    self.key(out, key)?;
                    out.push_str(&self.key);
                    self.write(out, item, depth + 1)?;
                }
                if !all.is_empty() {
                    self.line(out, depth);
                }
                out.push('}');
            }
            _ => {
                return Err(failed(format!(
                    "{} cannot be written as JSON",
                    type_name(value)
                )));
            }
        }
        Ok(())
    }

    /// Keys are texts in JSON; Python spells the others as their values.
    fn key(&self, out: &mut String, key: &Value) -> Result<(), Error> {
        if let Some(written) = key.as_str() {
            self.text(out, written);
            return Ok(());
        }
        out.push('"');
        self.write(out, key, 100)?;
        out.push('"');
        Ok(())
    }

    fn text(&self, out: &mut String, text: &str) {
        out.push('"');
        for c in text.chars() {
            match c {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\u{8}' => out.push_str("\\b"),
                '\u{c}' => out.push_str("\\f"),
                c if (c as u32) < 0x20 || (self.ascii && !c.is_ascii()) => {
                    let mut units = [0; 2];
                    for unit in c.encode_utf16(&mut units) {
                        out.push_str(&format!("\\u{unit:04x}"));
                    }
                }
                c => out.push(c),
            }
        }
        out.push('"');
    }
}

fn json(value: &Value, style: &JsonStyle) -> Result<String, Error> {
    let mut out = String::new();
    style.write(&mut out, value, 0)?;
    Ok(out)
}

/// A value as Python's `json.dumps` writes it.
///
/// # Errors
/// If something in it has no form in JSON.
pub(crate) fn dumped(value: &Value) -> Result<String, Error> {
    let style = JsonStyle {
        indent: None,
        sort_keys: false,
        ascii: true,
        item: ", ".to_owned(),
        key: ": ".to_owned(),
    };
    json(value, &style)
}

fn to_json(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    Ok(json(value, &JsonStyle::of(given, None, false)?)?.into())
}

fn to_nice_json(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    Ok(json(value, &JsonStyle::of(given, Some(4), true)?)?.into())
}

/// Jinja's own: sorted, and safe inside of HTML.
fn tojson(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let written = json(value, &JsonStyle::of(given, None, true)?)?;
    Ok(written
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\'', "\\u0027")
        .into())
}

fn from_json(_: &mut State<'_, '_>, value: &Value, _: &Given) -> Result<Value, Error> {
    let written = text::str(value)?;
    let parsed: serde_json::Value = serde_json::from_str(&written)
        .map_err(|error| failed(format!("the text is no JSON: {error}")))?;
    Ok(of_json(&parsed))
}

/// A plain value as JSON.
///
/// # Errors
/// If something in it has no place in JSON.
pub(super) fn to_plain_json(value: &Value) -> Result<serde_json::Value, Error> {
    serde_json::to_value(value).map_err(|error| failed(format!("the value is no JSON: {error}")))
}

/// A JSON value as a template sees it.
pub(crate) fn of_json(json: &serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::from(()),
        serde_json::Value::Bool(value) => Value::from(*value),
        serde_json::Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) => Value::from(whole),
            (_, Some(whole)) => Value::from(whole),
            _ => Value::from(number.as_f64().unwrap_or(f64::NAN)),
        },
        serde_json::Value::String(text) => Value::from(text.as_str()),
        serde_json::Value::Array(all) => all.iter().map(of_json).collect::<Vec<_>>().into(),
        serde_json::Value::Object(all) => Value::from_pairs(
            all.iter()
                .map(|(key, value)| (key.as_str(), of_json(value))),
        ),
    }
}

fn yaml_style(given: &Given, indent: i64, flow: Option<bool>) -> Result<YamlStyle, Error> {
    let flow = match given.get(2) {
        None => flow,
        Some(none) if none.is_none() => None,
        Some(chosen) => Some(chosen.is_true()),
    };
    Ok(YamlStyle {
        indent: usize::try_from(given.int(0, indent)?).unwrap_or(2),
        width: usize::try_from(given.int(1, 80)?).unwrap_or(80),
        flow,
        sort_keys: given.flag(3, true),
        unicode: given.flag(4, true),
    })
}

fn to_yaml(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    document(value, given, &yaml_style(given, 2, None)?)
}

fn to_nice_yaml(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    document(value, given, &yaml_style(given, 4, Some(false))?)
}

fn document(value: &Value, given: &Given, style: &YamlStyle) -> Result<Value, Error> {
    const BEHAVIOURS: [&str; 4] = ["decrypt", "keep_encrypted", "redact", "fail"];
    let behaviour = given.text(13, "decrypt")?;
    if !BEHAVIOURS.contains(&behaviour.as_str()) {
        return Err(failed(format!(
            "The vault parameter must be one of {}",
            BEHAVIOURS.join(", ")
        )));
    }
    let mut out = yaml::dump(value, style)?;
    if given.flag(5, false) {
        let scalar = !matches!(
            value.kind(),
            ValueKind::Map | ValueKind::Seq | ValueKind::Iterable
        );
        out.insert_str(0, if scalar { "--- " } else { "---\n" });
    }
    if given.flag(6, false) {
        out.push_str("...\n");
    }
    Ok(out.into())
}

fn documents(value: &Value) -> Result<Vec<Value>, Error> {
    let source = Source::new("<text>", text::str(value)?);
    let loaded =
        load(source).map_err(|error| failed(format!("the text is no YAML: {}", error.message)))?;
    Ok(loaded.documents.iter().map(nodes::plain).collect())
}

fn from_yaml(_: &mut State<'_, '_>, value: &Value, _: &Given) -> Result<Value, Error> {
    if value.kind() != ValueKind::String {
        return Ok(value.clone());
    }
    Ok(documents(value)?
        .into_iter()
        .next()
        .unwrap_or_else(|| Value::from(())))
}

fn from_yaml_all(_: &mut State<'_, '_>, value: &Value, _: &Given) -> Result<Value, Error> {
    if value.is_none() {
        return Ok(Vec::<Value>::new().into());
    }
    if value.kind() != ValueKind::String {
        return Ok(value.clone());
    }
    Ok(documents(value)?.into())
}

fn pprint(_: &mut State<'_, '_>, value: &Value, _: &Given) -> Result<Value, Error> {
    text::repr(value).map(Value::from)
}
