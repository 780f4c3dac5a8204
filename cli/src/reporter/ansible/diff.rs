//! `--diff`: what differs, as the unified diffs that Ansible prints.

use serde_json::Value;
use similar::TextDiff;

use super::json::{Layout, dump};

/// The diffs in a result's `diff`, each ending with a newline; empty where there is nothing to show.
pub(super) fn of_result(result: &Value, context: usize) -> String {
    match result.get("diff") {
        Some(Value::Array(diffs)) => diffs.iter().map(|diff| one(diff, context)).collect(),
        Some(diff) => one(diff, context),
        None => String::new(),
    }
}

fn one(diff: &Value, context: usize) -> String {
    if let Some(prepared) = diff.get("prepared").and_then(Value::as_str) {
        return prepared.to_owned();
    }
    let (Some(before), Some(after)) = (diff.get("before"), diff.get("after")) else {
        return String::new();
    };
    let header = |name: &str| match diff.get(name).and_then(Value::as_str) {
        Some(text) if !text.is_empty() => format!(": {text}"),
        _ => String::new(),
    };
    unified(
        &text(before),
        &text(after),
        &header("before_header"),
        &header("after_header"),
        context,
    )
}

/// A side of a diff: a text, or data written out.
fn text(side: &Value) -> String {
    match side {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        data => dump(data, Layout::Indented(4)) + "\n",
    }
}

fn unified(old: &str, new: &str, from: &str, to: &str, context: usize) -> String {
    if old == new {
        return String::new();
    }
    TextDiff::from_lines(old, new)
        .unified_diff()
        .context_radius(context)
        .header(&format!("before{from}"), &format!("after{to}"))
        .to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::of_result;

    #[test]
    fn contents_and_attributes_are_drawn_as_ansible_draws_them() {
        let content = json!({"diff": [{"before": "", "after": "x", "before_header": "", "after_header": "/f"}]});
        assert_eq!(
            of_result(&content, 3),
            "--- before\n+++ after: /f\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n"
        );
        let state = json!({"diff": {"before": {"path": "/f", "state": "absent"}, "after": {"path": "/f", "state": "file"}}});
        assert_eq!(
            of_result(&state, 3),
            "--- before\n+++ after\n@@ -1,4 +1,4 @@\n {\n     \"path\": \"/f\",\n-    \"state\": \"absent\"\n+    \"state\": \"file\"\n }\n"
        );
        let same = json!({"diff": {"before": {"path": "/f"}, "after": {"path": "/f"}}});
        assert_eq!(of_result(&same, 3), "");
    }
}
