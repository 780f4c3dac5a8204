//! JSON as Python's `json.dumps` writes it, with sorted keys: what Ansible shows of results.

use std::fmt::Write;

use serde_json::Value;

/// How lists and mappings are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// In one line, with these separators between items, and behind keys.
    Line(&'static str, &'static str),
    /// Over several lines, indented by so many blanks.
    Indented(usize),
}

/// One line as Python's default has it.
pub(crate) const LINE: Layout = Layout::Line(", ", ": ");

/// Writes `value` out.
pub(crate) fn dump(value: &Value, layout: Layout) -> String {
    let mut text = String::new();
    write(&mut text, value, layout, 0);
    text
}

fn write(text: &mut String, value: &Value, layout: Layout, depth: usize) {
    match value {
        Value::Array(items) if items.is_empty() => text.push_str("[]"),
        Value::Object(fields) if fields.is_empty() => text.push_str("{}"),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                between(text, index > 0, layout, depth + 1);
                write(text, item, layout, depth + 1);
            }
            end(text, layout, depth);
            text.push(']');
        }
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            text.push('{');
            for (index, (name, value)) in fields.into_iter().enumerate() {
                between(text, index > 0, layout, depth + 1);
                string(text, name);
                text.push_str(match layout {
                    Layout::Line(_, key) => key,
                    Layout::Indented(_) => ": ",
                });
                write(text, value, layout, depth + 1);
            }
            end(text, layout, depth);
            text.push('}');
        }
        Value::String(own) => string(text, own),
        Value::Number(number) => text.push_str(&python_number(number)),
        other => {
            let _ = write!(text, "{other}");
        }
    }
}

fn between(text: &mut String, comma: bool, layout: Layout, depth: usize) {
    match layout {
        Layout::Line(item, _) if comma => text.push_str(item),
        Layout::Line(..) => {}
        Layout::Indented(width) => {
            text.push_str(if comma { ",\n" } else { "\n" });
            text.extend(std::iter::repeat_n(' ', width * depth));
        }
    }
}

fn end(text: &mut String, layout: Layout, depth: usize) {
    if let Layout::Indented(width) = layout {
        text.push('\n');
        text.extend(std::iter::repeat_n(' ', width * depth));
    }
}

fn string(text: &mut String, own: &str) {
    text.push('"');
    for c in own.chars() {
        match c {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\u{8}' => text.push_str("\\b"),
            '\u{c}' => text.push_str("\\f"),
            c if c < ' ' => {
                let _ = write!(text, "\\u{:04x}", u32::from(c));
            }
            c => text.push(c),
        }
    }
    text.push('"');
}

/// Python writes exponents with a sign and two digits: `1e-05`, `1e+20`.
fn python_number(number: &serde_json::Number) -> String {
    let text = number.to_string();
    let Some((digits, exponent)) = text.split_once('e') else {
        return text;
    };
    let digits = digits.strip_suffix(".0").unwrap_or(digits);
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(rest) => ('-', rest),
        None => ('+', exponent.trim_start_matches('+')),
    };
    format!("{digits}e{sign}{exponent:0>2}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{LINE, Layout, dump};

    #[test]
    fn one_line_has_blanks_behind_commas_and_colons() {
        let value = json!({"b": [1, 2.5, true, null], "a": {"k": "é\"\n\u{1b}"}, "e": {}});
        assert_eq!(
            dump(&value, LINE),
            r#"{"a": {"k": "é\"\n\u001b"}, "b": [1, 2.5, true, null], "e": {}}"#
        );
        let compact = Layout::Line(",", ": ");
        assert_eq!(
            dump(&json!({"a": 1, "b": 2}), compact),
            r#"{"a": 1,"b": 2}"#
        );
    }

    #[test]
    fn indented_json_leaves_empty_lists_in_one_line() {
        let value = json!({"b": [1], "a": []});
        assert_eq!(
            dump(&value, Layout::Indented(4)),
            "{\n    \"a\": [],\n    \"b\": [\n        1\n    ]\n}"
        );
    }

    #[test]
    fn exponents_are_pythons() {
        assert_eq!(dump(&json!(1e-7), LINE), "1e-07");
        assert_eq!(dump(&json!(1e22), LINE), "1e+22");
    }
}
