//! What `set_stats` has set, as it stands below the recap where `show_custom_stats` is set.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Values by their names, those of hosts and those of the run.
#[derive(Debug, Default)]
pub(super) struct CustomStats {
    hosts: BTreeMap<String, Map<String, Value>>,
    run: Map<String, Value>,
}

impl CustomStats {
    /// Takes in what a task on a host has set, if it has.
    pub(super) fn take(&mut self, host: &str, result: &Value) {
        let Some(stats) = result.get("ansible_stats") else {
            return;
        };
        let yes = |name: &str| stats.get(name) == Some(&Value::Bool(true));
        let own = match yes("per_host") {
            true => self.hosts.entry(host.to_owned()).or_default(),
            false => &mut self.run,
        };
        for (name, value) in stats
            .get("data")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            let sum = match own.get(name) {
                Some(before) if yes("aggregate") => added(before, value),
                _ => Some(value.clone()),
            };
            // Of two kinds that cannot be added the first stays.
            if let Some(sum) = sum {
                own.insert(name.clone(), sum);
            }
        }
    }

    /// The lines, each behind its tabulator; none where nothing was set.
    pub(super) fn lines(&self) -> Vec<String> {
        let of = |name: &str, values: &Map<String, Value>| {
            format!(
                "\t{name}: {}",
                on_one_line(&Value::Object(values.clone()), 0)
            )
        };
        let mut lines: Vec<String> = self.hosts.iter().map(|(host, own)| of(host, own)).collect();
        if !self.run.is_empty() {
            lines.push(String::new());
            lines.push(of("RUN", &self.run));
            lines.push(String::new());
        }
        lines
    }
}

/// Two values of a kind as one.
fn added(before: &Value, after: &Value) -> Option<Value> {
    Some(match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            let both = before.iter().chain(after);
            Value::Object(
                both.map(|(name, value)| (name.clone(), value.clone()))
                    .collect(),
            )
        }
        (Value::Array(before), Value::Array(after)) => {
            before.iter().chain(after).cloned().collect()
        }
        (Value::String(before), Value::String(after)) => format!("{before}{after}").into(),
        (Value::Number(before), Value::Number(after)) => match (before.as_i64(), after.as_i64()) {
            (Some(before), Some(after)) => before.checked_add(after)?.into(),
            (None, None) => (before.as_f64()? + after.as_f64()?).into(),
            _ => return None,
        },
        _ => return None,
    })
}

/// JSON as Python writes it with an indent of 1, with the line breaks taken out.
fn on_one_line(value: &Value, depth: usize) -> String {
    let parts: Vec<String> = match value {
        Value::Object(map) => {
            let sorted: BTreeMap<_, _> = map.iter().collect();
            let part = |(name, value): (&String, &Value)| {
                format!(
                    "{}: {}",
                    Value::from(name.as_str()),
                    on_one_line(value, depth + 1)
                )
            };
            sorted.into_iter().map(part).collect()
        }
        Value::Array(items) => items
            .iter()
            .map(|item| on_one_line(item, depth + 1))
            .collect(),
        other => return other.to_string(),
    };
    let (open, close) = if value.is_object() {
        ('{', '}')
    } else {
        ('[', ']')
    };
    if parts.is_empty() {
        return format!("{open}{close}");
    }
    let indent = " ".repeat(depth + 1);
    let joined = parts.join(&format!(",{indent}"));
    format!("{open}{indent}{joined}{}{close}", " ".repeat(depth))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::CustomStats;

    #[test]
    fn values_of_a_kind_are_added_up() {
        let mut stats = CustomStats::default();
        let set = |data, per_host, aggregate| json!({"ansible_stats": {"data": data, "per_host": per_host, "aggregate": aggregate}});
        assert!(stats.lines().is_empty());
        for host in ["h2", "h1"] {
            stats.take(
                host,
                &set(
                    json!({"a": 1, "l": [1], "d": {"x": 1}, "t": "x"}),
                    false,
                    true,
                ),
            );
            stats.take(host, &set(json!({"b": host}), true, true));
            stats.take(host, &set(json!({"t": 2}), false, true));
            stats.take(host, &set(json!({"c": 1}), false, false));
            stats.take(host, &json!({"changed": false}));
        }
        assert_eq!(
            stats.lines(),
            [
                "\th1: { \"b\": \"h1\"}",
                "\th2: { \"b\": \"h2\"}",
                "",
                "\tRUN: { \"a\": 2, \"c\": 1, \"d\": {  \"x\": 1 }, \"l\": [  1,  1 ], \"t\": \"xx\"}",
                ""
            ]
        );
    }
}
