//! Arguments for a module that reads `k=v` words: values as Python prints them, quoted for a shell.

use serde_json::Value;

/// The words of a mapping, each with a space behind it.
pub(super) fn of(arguments: &Value) -> String {
    let mut entries: Vec<_> = arguments.as_object().into_iter().flatten().collect();
    // The task's own in order, and behind them those that every module gets.
    entries.sort_by_key(|(name, _)| (name.starts_with('_'), name.as_str()));
    entries
        .into_iter()
        .map(|(name, value)| format!("{name}={} ", quoted(&text(value))))
        .collect()
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => printed(other),
    }
}

/// A value as Python's `repr` has it.
fn printed(value: &Value) -> String {
    let joined = |items: Vec<String>| items.join(", ");
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => literal(text),
        Value::Array(items) => format!("[{}]", joined(items.iter().map(printed).collect())),
        Value::Object(entries) => {
            let entry =
                |(name, value): (&String, &Value)| format!("{}: {}", literal(name), printed(value));
            format!("{{{}}}", joined(entries.iter().map(entry).collect()))
        }
    }
}

fn literal(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    let mut literal = String::from(quote);
    for letter in text.chars() {
        match letter {
            '\\' => literal.push_str("\\\\"),
            '\n' => literal.push_str("\\n"),
            '\r' => literal.push_str("\\r"),
            '\t' => literal.push_str("\\t"),
            letter if letter == quote => literal.extend(['\\', letter]),
            letter => literal.push(letter),
        }
    }
    literal.push(quote);
    literal
}

/// A text that a shell reads as one word.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "@%+=:,./-_".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\"'\"'"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::of;

    #[test]
    fn values_are_words_as_ansible_writes_them() {
        let words = of(
            &json!({"a": "b c", "d": {"k": "v"}, "i": 5, "l": [1, "x"], "n": null, "t": true, "_s": "/bin/sh"}),
        );
        assert_eq!(
            words,
            "a='b c' d='{'\"'\"'k'\"'\"': '\"'\"'v'\"'\"'}' i=5 l='[1, '\"'\"'x'\"'\"']' n=None t=True _s=/bin/sh "
        );
    }
}
