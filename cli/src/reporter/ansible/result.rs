//! What Ansible shows of a task's result.

use serde_json::{Map, Value, json};

use fleet_engine::event::TaskEnded;
use fleet_wire::Status;

use super::json::{LINE, Layout, dump};

/// What stands in place of a result that `no_log` hides.
const CENSORED: &str =
    "the output has been hidden due to the fact that 'no_log: true' was specified for this result";

/// How results are written out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Format {
    pub(crate) yaml: bool,
    pub(crate) indentation: usize,
    /// Over several lines in any case, or never.
    pub(crate) pretty: Option<bool>,
    /// So many `-v`.
    pub(crate) verbose: u8,
}

/// Whether a module's result is shown whatever the verbosity is, and over several lines.
pub(crate) fn speaks(ended: &TaskEnded) -> bool {
    match short_name(&ended.task.module) {
        // A message that could not be rendered is a failure like any other.
        "debug" => ended.status != Status::Failed || judged_failed(ended),
        "assert" => !ended.result.get("quiet").is_some_and(|quiet| quiet == true),
        _ => false,
    }
}

/// A module's name without its collection.
pub(crate) fn short_name(module: &str) -> &str {
    module
        .strip_prefix("ansible.builtin.")
        .or_else(|| module.strip_prefix("ansible.legacy."))
        .unwrap_or(module)
}

/// The fields of a result that are shown.
pub(crate) fn shown(ended: &TaskEnded, verbose: u8) -> Value {
    if ended.secret {
        let changed = ended.result.get("changed").cloned().unwrap_or(json!(false));
        return json!({"censored": CENSORED, "changed": changed});
    }
    let Some(fields) = ended.result.as_object() else {
        return json!({"msg": ended.result});
    };
    let debug = short_name(&ended.task.module) == "debug" && ended.status != Status::Skipped;
    let mut shown: Map<String, Value> = fields
        .iter()
        .filter(|(name, _)| !hidden(name, verbose))
        .filter(|(name, _)| !debug || !debug_hides(name, fields.contains_key("msg")))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    if let Some(whole) = diagnosis(&ended.result) {
        let first = whole.lines().next().unwrap_or_default();
        shown.insert("msg".to_owned(), format!("Task failed: {first}").into());
    }
    if judged_failed(ended) && !debug {
        let message = format!("Task failed: {JUDGED}");
        shown.entry("msg").or_insert_with(|| message.into());
    }
    if ended.unreachable {
        shown.insert("unreachable".to_owned(), true.into());
        shown.insert("changed".to_owned(), false.into());
        if let Some(Value::String(message)) = shown.get_mut("msg")
            && !message.starts_with("Task failed")
        {
            message.insert_str(0, "Task failed: ");
        }
    }
    Value::Object(shown)
}

/// A message that shows a place in a file as compilers do, without its code; none where the message is another.
pub(crate) fn diagnosis(result: &Value) -> Option<&str> {
    let message = result.get("msg")?.as_str()?;
    let rest = message.strip_prefix("error")?;
    let rest = match rest.strip_prefix('[') {
        Some(coded) => coded.split_once(']')?.1,
        None => rest,
    };
    rest.strip_prefix(": ").filter(|rest| rest.contains("--> "))
}

/// What is said of a task that `failed_when` failed.
pub(crate) const JUDGED: &str = "Action failed: A 'failed_when' expression evaluated to 'True'.";

/// Whether a `failed_when` failed it.
pub(crate) fn judged_failed(ended: &TaskEnded) -> bool {
    let judged = ended.result.get("failed_when_result");
    ended.status == Status::Failed && judged.is_some_and(|failed| failed == true)
}

/// Fields that are told otherwise, or that are Ansible's own affair.
fn hidden(name: &str, verbose: u8) -> bool {
    match name {
        "failed" | "skipped" | "exception" | "results" | "warnings" | "deprecations" | "stale" => {
            true
        }
        "invocation" | "diff" => verbose < 3,
        // Where the condition stands that does not hold: the lines above show it.
        "place" => true,
        _ => name.starts_with("_ansible_"),
    }
}

fn debug_hides(name: &str, has_message: bool) -> bool {
    match has_message {
        true => name != "msg",
        false => matches!(
            name,
            "changed" | "failed_when_result" | "changed_when_result" | "ansible_loop_var"
        ),
    }
}

/// ` => {…}`'s right side.
pub(crate) fn written(value: &Value, speaks: bool, format: Format) -> String {
    if format.yaml {
        return yaml(value, format);
    }
    let wide = format.pretty.unwrap_or(speaks || format.verbose > 2);
    match wide {
        true => dump(value, Layout::Indented(format.indentation)),
        false => dump(value, LINE),
    }
}

/// YAML below the line, indented.
fn yaml(value: &Value, format: Format) -> String {
    let mut value = value.clone();
    if format.pretty == Some(true) {
        omit_lines(&mut value);
    }
    let text = serde_yaml::to_string(&sorted(&value)).unwrap_or_default();
    let indent = " ".repeat(format.indentation);
    let lines = text.trim_end().lines().map(|line| match line {
        "" => String::new(),
        line => format!("\n{indent}{line}"),
    });
    lines.collect()
}

/// `stdout_lines` beside `stdout` says the same again.
fn omit_lines(value: &mut Value) {
    for name in ["stdout", "stderr"] {
        let lines = format!("{name}_lines");
        if value.get(name).is_some()
            && let Some(lines) = value.get_mut(&lines)
        {
            *lines = "<omitted>".into();
        }
    }
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut names: Vec<_> = fields.iter().collect();
            names.sort_by_key(|(name, _)| *name);
            let fields = names
                .into_iter()
                .map(|(name, value)| (name.clone(), sorted(value)));
            Value::Object(fields.collect())
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

/// The texts of a list field, `warnings` or `deprecations`.
pub(crate) fn texts(result: &Value, field: &str) -> Vec<String> {
    let items = result.get(field).and_then(Value::as_array);
    let text = |item: &Value| match item {
        Value::Object(fields) => fields.get("msg").and_then(Value::as_str).map(str::to_owned),
        other => other.as_str().map(str::to_owned),
    };
    items.into_iter().flatten().filter_map(text).collect()
}
