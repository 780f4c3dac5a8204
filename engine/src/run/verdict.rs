//! What a task's results mean: failed or not, changed or not, and what they leave behind.

use std::sync::Arc;

use fleet_wire::{Outcome, Status};
use minijinja::{Value, value::ValueKind};
use serde_json::{Map, json};

use super::{
    content::{from_json, to_json},
    flight::{Flight, Item},
    host::took,
    shared::Shared,
    shown,
    state::HostState,
};
use crate::{
    event::{Event, TaskEnded},
    playbook::{Action, LocalAction},
    template::{Evaluated, unknown_value},
    variables::Variable,
};

/// A judged flight.
pub(super) struct Judged {
    pub(super) group: u32,
    pub(super) events: Vec<Event>,
    pub(super) changed: bool,
    /// The host goes no further.
    pub(super) failed: bool,
    /// What `register` sees, for `ansible_failed_result`.
    pub(super) result: serde_json::Value,
    /// Handlers that the controller knows to be notified.
    pub(super) notify: Vec<String>,
}

pub(super) fn judge(shared: &Shared, host: &str, flight: Flight) -> Judged {
    let mut judged = Judged {
        group: flight.group,
        events: Vec::new(),
        changed: false,
        failed: false,
        result: serde_json::Value::Null,
        notify: Vec::new(),
    };
    let mut results = Vec::new();
    let mut unknown = false;
    for (index, item) in flight.items.iter().enumerate() {
        let Some(outcome) = &item.end else { continue };
        if matches!(outcome.status, Status::NotReached | Status::NotNotified) {
            continue;
        }
        let (status, mut result) = item_verdict(shared, &flight, item, outcome);
        if flight.task.r#async.is_some() && !matches!(status, Status::Unknown | Status::Skipped) {
            as_job(outcome, &mut result);
        }
        let label = label(shared, &flight, item, &mut result);
        if let (Some(args), Some(fields)) = (&item.invocation, result.as_object_mut()) {
            fields.insert("invocation".to_owned(), json!({"module_args": args}));
        }
        let ignored = status == Status::Failed && flight.ignore_errors;
        judged.failed |= status == Status::Failed && !ignored;
        judged.changed |= status == Status::Changed;
        unknown |= status == Status::Unknown;
        let facts_of = flight.facts_of.as_ref().unwrap_or(&flight.scope.state);
        // What the controller's own modules set is in place already, at its own level.
        if !matches!(flight.task.action, Action::Local { .. }) {
            take_facts(facts_of, &result);
        }
        judged.events.push(Event::TaskEnded(Box::new(TaskEnded {
            host: host.to_owned(),
            task: Arc::clone(&flight.info),
            item: label,
            index,
            last: false,
            status,
            result: of_item(&result, item),
            effects: outcome.effects.clone().into(),
            digests: Arc::default(),
            took: took(outcome),
            ignored,
            rescued: flight.rescued && status == Status::Failed && !ignored,
            unreachable: false,
            delegated: flight.delegated.clone(),
            secret: flight.secret,
        })));
        results.push((status, result, item));
    }
    if let Some(Event::TaskEnded(ended)) = judged.events.last_mut() {
        ended.last = true;
    }
    if judged.changed {
        judged.notify.clone_from(&flight.notify);
    }
    if results.is_empty() {
        return judged;
    }
    if judged.failed {
        judged.result = failed_result(&flight, &results);
    }
    let state = Arc::clone(&flight.scope.state);
    if let Some(name) = &flight.task.register {
        state.set(name, registered(&flight, results, unknown));
    } else if !flight.task.projections.is_empty() {
        let whole = registered(&flight, results, unknown);
        project(shared, &flight, whole);
    }
    judged
}

/// `register` as a mapping: each variable is what its expression says of the result.
fn project(shared: &Shared, flight: &Flight, whole: Variable) {
    let key = if flight.looped {
        "loop_result"
    } else {
        "result"
    };
    let mut scope = match whole {
        Variable::Data(value) => {
            let about = Value::from_pairs([(key, value)]);
            flight.scope.with("_task", Variable::Data(about))
        }
        other => flight.scope.with("_task", other),
    };
    for (name, node) in flight.task.projections.iter() {
        let seen = scope.shared();
        let value = match node.as_str() {
            Some(text) => shared.templar.expression(text, &node.span, &seen),
            None => shared.templar.value(node, &seen),
        };
        let variable = match value {
            Ok(Evaluated::Known(value)) => Variable::Data(value),
            Ok(_) => Variable::Unknown,
            // Using it says what is wrong with it.
            Err(_) => Variable::Written(node.clone()),
        };
        flight.scope.state.set(name, variable.clone());
        scope = scope.with(name, variable);
    }
}

/// A task of `async` that was waited for looks like a job that is over, whose file is gone.
fn as_job(outcome: &Outcome, result: &mut serde_json::Value) {
    let Some(fields) = result.as_object_mut() else {
        return;
    };
    if fields.contains_key("ansible_job_id") {
        return;
    }
    let id = format!("j{}.{}", outcome.took_us, outcome.id);
    let file = format!("~/.ansible_async/{id}");
    let job =
        json!({"ansible_job_id": id, "started": true, "finished": true, "results_file": file});
    fields.extend(job.as_object().cloned().unwrap_or_default());
}

/// What an item is shown as: its label may look at its result.
fn label(
    shared: &Shared,
    flight: &Flight,
    item: &Item,
    result: &mut serde_json::Value,
) -> Option<String> {
    let (_, shown) = item.value.as_ref()?;
    let Some(node) = flight
        .task
        .r#loop
        .as_ref()
        .and_then(|own| own.label.as_ref())
    else {
        return Some(shown.clone());
    };
    let scope = match &flight.task.register {
        Some(name) => item.scope.with(name, Variable::Data(from_json(result))),
        None => item.scope.clone(),
    };
    match shared.templar.value(node, &scope.shared()) {
        Ok(Evaluated::Known(value)) => Some(value.to_string()),
        Ok(_) => Some(shown.clone()),
        Err(problem) => {
            if let Some(fields) = result.as_object_mut() {
                let warning = format!("the label of this item cannot be made: {problem}");
                let warnings = fields.entry("warnings").or_insert_with(|| json!([]));
                if let Some(warnings) = warnings.as_array_mut() {
                    warnings.push(warning.into());
                }
            }
            Some(shown.clone())
        }
    }
}

/// An item's result with the item beside it.
fn of_item(result: &serde_json::Value, item: &Item) -> serde_json::Value {
    let mut result = result.clone();
    if let (Some(fields), Some((value, _))) = (result.as_object_mut(), &item.value) {
        let name = item.variable();
        fields.insert("ansible_loop_var".to_owned(), name.clone().into());
        fields.insert(name, to_json(value));
    }
    result
}

/// What a failed task leaves in `ansible_failed_result`.
fn failed_result(
    flight: &Flight,
    results: &[(Status, serde_json::Value, &Item)],
) -> serde_json::Value {
    if !flight.looped {
        return results
            .first()
            .map(|(_, result, _)| result.clone())
            .unwrap_or_default();
    }
    let list: Vec<_> = results.iter().map(|(_, result, _)| result).collect();
    json!({"results": list, "failed": true, "msg": "One or more items failed"})
}

/// Who asks for Ansible's check mode by name gets what it says of a command.
fn rehearsed(outcome: &Outcome) -> (Status, serde_json::Value) {
    let mut result = json!({
        "changed": false, "skipped": true, "rc": 0, "stdout": "", "stderr": "", "stdout_lines": [], "stderr_lines": [],
        "msg": "Command would have run if not in check mode",
    });
    let said: Map<String, serde_json::Value> =
        serde_json::from_str(&outcome.result.0).unwrap_or_default();
    // Its `creates` and `removes` were looked at: they say that it would change something.
    if said.get("changed") == Some(&true.into()) && said.get("skipped").is_none() {
        return (Status::Changed, said.into());
    }
    if let (Some(cmd), Some(fields)) = (said.get("cmd"), result.as_object_mut()) {
        fields.insert("cmd".to_owned(), cmd.clone());
        fields.extend(["start", "end", "delta"].map(|name| (name.to_owned(), json!(null))));
    }
    (Status::Skipped, result)
}

/// A result's status after `failed_when` and `changed_when`.
pub(super) fn item_verdict(
    shared: &Shared,
    flight: &Flight,
    item: &Item,
    outcome: &Outcome,
) -> (Status, serde_json::Value) {
    let (mut status, mut result) = match outcome.status {
        Status::Unknown if flight.rehearsed => rehearsed(outcome),
        status => {
            let result = serde_json::from_str(&outcome.result.0).unwrap_or_else(|_| json!({}));
            (status, result)
        }
    };
    let shows = flight
        .task
        .directives
        .diff
        .as_ref()
        .and_then(fleet_yaml::Node::as_bool);
    let module = match &flight.task.action {
        Action::Module { module, .. } => module.name,
        other => other.name(),
    };
    if shows.unwrap_or(shared.settings.diff)
        && !flight.secret
        && result.get("diff").is_none()
        && let Some(diff) = shown::diff(module, &result, &outcome.effects)
    {
        result["diff"] = diff;
    }
    if item.judged || !flight.judged || matches!(status, Status::Unknown | Status::Skipped) {
        return (status, result);
    }
    let mut scope = item.scope.clone();
    if let Some(name) = &flight.task.register {
        scope = scope.with(name, Variable::Data(seen(status, result.clone())));
    }
    if !flight.task.projections.is_empty() {
        let about = Value::from_pairs([("result", seen(status, result.clone()))]);
        scope = scope.with("_task", Variable::Data(about));
    }
    // The conditions see the result as `register` will.
    let all = |conditions: &[fleet_yaml::Node]| -> Result<bool, String> {
        for condition in conditions {
            match shared.templar.truth(condition, &scope.shared()) {
                Ok(Evaluated::Known(true)) => {}
                Ok(Evaluated::Known(false)) => return Ok(false),
                Ok(_) => {
                    return Err(format!(
                        "{}: a condition that cannot be decided here",
                        condition.span
                    ));
                }
                Err(problem) => return Err(problem.diagnostic().message.clone()),
            }
        }
        Ok(true)
    };
    let mut fields = std::mem::take(result.as_object_mut().unwrap_or(&mut Map::new()));
    let failed_before = status == Status::Failed;
    let broken = |fields: &mut Map<String, serde_json::Value>, keyword: &str, problem: &str| {
        let kind = match problem.contains("undefined") {
            true => "Error while evaluating conditional",
            false => "Error rendering expression",
        };
        let why = format!("{kind}: {problem}");
        let who = if failed_before { "Module" } else { "Action" };
        let message = format!("Task failed: {who} failed: A '{keyword}' expression failed: {why}");
        if failed_before {
            fields.insert(format!("{keyword}_suppressed_exception"), NO_TRACE.into());
        }
        fields.insert(format!("{keyword}_result"), why.into());
        fields.insert("msg".to_owned(), message.into());
        fields.insert("failed".to_owned(), true.into());
        Status::Failed
    };
    if !flight.task.changed_when.is_empty() {
        match all(&flight.task.changed_when) {
            Ok(changed) => {
                fields.insert("changed".to_owned(), changed.into());
                if status != Status::Failed {
                    status = if changed { Status::Changed } else { Status::Ok };
                }
            }
            Err(problem) => {
                return (broken(&mut fields, "changed_when", &problem), fields.into());
            }
        }
    }
    if !flight.task.failed_when.is_empty() {
        match all(&flight.task.failed_when) {
            Ok(failed) => {
                if status == Status::Failed {
                    fields.insert(SUPPRESSED.to_owned(), NO_TRACE.into());
                }
                fields.insert("failed".to_owned(), failed.into());
                fields.insert("failed_when_result".to_owned(), failed.into());
                let changed = fields.get("changed").and_then(serde_json::Value::as_bool);
                status = match (failed, changed) {
                    (true, _) => Status::Failed,
                    (false, Some(true)) => Status::Changed,
                    (false, _) => Status::Ok,
                };
            }
            Err(problem) => {
                return (broken(&mut fields, "failed_when", &problem), fields.into());
            }
        }
    }
    (status, fields.into())
}

/// What says that a failure was not to be one (`failed_when`), where Ansible keeps its Python traceback.
const SUPPRESSED: &str = "failed_when_suppressed_exception";
/// There are no tracebacks here; playbooks only ask whether there is one.
const NO_TRACE: &str = "(traceback unavailable)";

fn take_facts(state: &HostState, result: &serde_json::Value) {
    if let Some(facts) = result
        .get("ansible_facts")
        .and_then(serde_json::Value::as_object)
    {
        state.add_facts(
            facts
                .iter()
                .map(|(name, value)| (name.clone(), from_json(value))),
        );
    }
}

/// What `register` sees.
fn registered(
    flight: &Flight,
    results: Vec<(Status, serde_json::Value, &Item)>,
    unknown: bool,
) -> Variable {
    if !flight.looped {
        let mut results = results.into_iter();
        return match results.next() {
            Some((Status::Unknown, ..)) | None => Variable::Unknown,
            Some((status, result, _)) => Variable::Data(match flight.task.action {
                Action::Local {
                    action: LocalAction::IncludeVars,
                    ..
                } => as_written(seen(status, result)),
                _ => seen(status, result),
            }),
        };
    }
    let any = |status: Status| results.iter().any(|(own, ..)| *own == status);
    let (changed, failed) = (any(Status::Changed), any(Status::Failed));
    let skipped = results
        .iter()
        .all(|(status, ..)| *status == Status::Skipped);
    let list: Value = results
        .into_iter()
        .map(|(status, result, item)| {
            if status == Status::Unknown {
                return unknown_value(&flight.info.name);
            }
            let mut fields = result;
            if let (Some(fields), Some((value, _))) = (fields.as_object_mut(), &item.value) {
                let value = to_json(value);
                let variable = item.variable();
                fields.insert("ansible_loop_var".to_owned(), variable.clone().into());
                fields.insert(variable, value);
            }
            seen(status, fields)
        })
        .collect();
    let changed = if unknown && !changed {
        unknown_value(&flight.info.name)
    } else {
        Value::from(changed)
    };
    let fields = [
        ("results", list),
        ("changed", changed),
        ("failed", Value::from(failed)),
        ("skipped", Value::from(skipped)),
        (
            "msg",
            Value::from(if failed {
                "One or more items failed"
            } else {
                "All items completed"
            }),
        ),
    ];
    Variable::Data(Value::from_pairs(fields))
}

/// The variables in a result of `include_vars` are a user's own words, which a template may take for one: they are marked
/// as Jinja marks what is safe.
fn as_written(result: Value) -> Value {
    fn marked(value: &Value) -> Value {
        match (value.kind(), value.as_str()) {
            (_, Some(text)) => Value::from_safe_string(text.to_owned()),
            (ValueKind::Map, _) => {
                Value::from_pairs(value.try_iter().into_iter().flatten().map(|key| {
                    (
                        key.clone(),
                        marked(&value.get_item(&key).unwrap_or_default()),
                    )
                }))
            }
            (ValueKind::Seq, _) => value
                .try_iter()
                .into_iter()
                .flatten()
                .map(|item| marked(&item))
                .collect(),
            _ => value.clone(),
        }
    }
    Value::from_pairs(result.try_iter().into_iter().flatten().map(|key| {
        let value = result.get_item(&key).unwrap_or_default();
        let value = match key.as_str() {
            Some("ansible_facts") => marked(&value),
            _ => value,
        };
        (key, value)
    }))
}

/// A result as playbooks see it: whether it failed is always said.
fn seen(status: Status, mut result: serde_json::Value) -> Value {
    if let Some(fields) = result.as_object_mut() {
        fields
            .entry("failed")
            .or_insert_with(|| (status == Status::Failed).into());
        fields.entry("changed").or_insert_with(|| false.into());
        if status == Status::Failed {
            fields.entry("exception").or_insert_with(|| NO_TRACE.into());
        }
    }
    from_json(&result)
}
