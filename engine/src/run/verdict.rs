//! What a task's results mean: failed or not, changed or not, and what they leave behind.

use std::sync::Arc;

use fleet_wire::{Outcome, Status};
use minijinja::Value;
use serde_json::{Map, json};

use super::{
    content::{from_json, to_json},
    flight::{Flight, Item},
    host::took,
    scope::HostScope,
    shared::Shared,
};
use crate::{
    event::{Event, TaskEnded},
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
    /// Handlers that the controller knows to be notified.
    pub(super) notify: Vec<String>,
}

pub(super) fn judge(shared: &Shared, host: &str, flight: Flight) -> Judged {
    let mut judged = Judged {
        group: flight.group,
        events: Vec::new(),
        changed: false,
        failed: false,
        notify: Vec::new(),
    };
    let mut results = Vec::new();
    let mut unknown = false;
    for (index, item) in flight.items.iter().enumerate() {
        let Some(outcome) = &item.end else { continue };
        if matches!(outcome.status, Status::NotReached | Status::NotNotified) {
            continue;
        }
        let (status, result) = item_verdict(shared, &flight, item, outcome);
        let ignored = status == Status::Failed && flight.ignore_errors;
        judged.failed |= status == Status::Failed && !ignored;
        judged.changed |= status == Status::Changed;
        unknown |= status == Status::Unknown;
        take_facts(&flight.scope, &result);
        judged.events.push(Event::TaskEnded(Box::new(TaskEnded {
            host: host.to_owned(),
            task: Arc::clone(&flight.info),
            item: item.value.as_ref().map(|(_, label)| label.clone()),
            index,
            status,
            result: result.clone(),
            effects: outcome.effects.clone().into(),
            took: took(outcome),
            ignored,
            secret: flight.secret,
        })));
        results.push((status, result, item));
    }
    if judged.changed {
        judged.notify.clone_from(&flight.notify);
    }
    if let (Some(name), false) = (&flight.task.register, results.is_empty()) {
        flight
            .scope
            .state
            .set(name, registered(&flight, results, unknown));
    }
    judged
}

/// A result's status after `failed_when` and `changed_when`.
fn item_verdict(
    shared: &Shared,
    flight: &Flight,
    item: &Item,
    outcome: &Outcome,
) -> (Status, serde_json::Value) {
    let mut status = outcome.status;
    let mut result: serde_json::Value =
        serde_json::from_str(&outcome.result.0).unwrap_or_else(|_| json!({}));
    if !flight.judged || matches!(status, Status::Unknown | Status::Skipped) {
        return (status, result);
    }
    let mut scope = item.scope.clone();
    if let Some(name) = &flight.task.register {
        scope = scope.with(name, Variable::Data(from_json(&result)));
    }
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
                Err(problem) => return Err(problem.to_string()),
            }
        }
        Ok(true)
    };
    let mut fields = std::mem::take(result.as_object_mut().unwrap_or(&mut Map::new()));
    if !flight.task.failed_when.is_empty() {
        match all(&flight.task.failed_when) {
            Ok(failed) => {
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
                fields.insert("msg".to_owned(), format!("failed_when: {problem}").into());
                status = Status::Failed;
            }
        }
    }
    if !flight.task.changed_when.is_empty() && status != Status::Failed {
        match all(&flight.task.changed_when) {
            Ok(changed) => {
                fields.insert("changed".to_owned(), changed.into());
                status = if changed { Status::Changed } else { Status::Ok };
            }
            Err(problem) => {
                fields.insert("msg".to_owned(), format!("changed_when: {problem}").into());
                status = Status::Failed;
            }
        }
    }
    (status, fields.into())
}

fn take_facts(scope: &HostScope, result: &serde_json::Value) {
    if let Some(facts) = result
        .get("ansible_facts")
        .and_then(serde_json::Value::as_object)
    {
        scope.state.add_facts(
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
            Some((_, result, _)) => Variable::Data(from_json(&result)),
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
                fields.insert(
                    "ansible_loop_var".to_owned(),
                    flight_variable(flight).into(),
                );
                fields.insert(flight_variable(flight).to_owned(), value);
            }
            from_json(&fields)
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

fn flight_variable(flight: &Flight) -> &str {
    flight
        .task
        .r#loop
        .as_ref()
        .map_or("item", |r#loop| r#loop.variable.as_str())
}
