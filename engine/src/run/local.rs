//! Modules that the controller runs by itself: they look at values, and touch no host.

use fleet_wire::Status;
use fleet_yaml::{Node, Span};
use indexmap::IndexMap;
use minijinja::Value;
use serde_json::json;

use super::{
    content::to_json,
    dispatch::{PlayContext, Settled, Unfit},
    host::{Host, Stop},
    scope::HostScope,
};
use crate::{
    playbook::{LocalAction, Task, files},
    template::unknown_value,
    variables::Variable,
};

/// The end of a module that ran here.
pub(super) struct Done {
    pub(super) status: Status,
    pub(super) result: serde_json::Value,
}

impl Done {
    fn ok(result: serde_json::Value) -> Self {
        Self {
            status: Status::Ok,
            result,
        }
    }
}

pub(super) async fn act(
    host: &mut Host,
    action: LocalAction,
    arguments: &IndexMap<String, Node>,
    span: &Span,
    play: &PlayContext,
    task: &Task,
    scope: &HostScope,
) -> Result<Done, Unfit> {
    match action {
        LocalAction::Assert => assert(host, arguments, scope).await,
        LocalAction::Debug => debug(host, arguments, scope).await,
        LocalAction::Fail => {
            let message = text(host, arguments, "msg", scope).await?;
            Err(Unfit::Problem(message.unwrap_or_else(|| {
                "Failed as requested from task".to_owned()
            })))
        }
        LocalAction::IncludeVars => include_vars(host, play, arguments, scope).await,
        LocalAction::Meta => meta(host, arguments, span).await,
        LocalAction::SetFact => set_fact(host, arguments, scope).await,
        LocalAction::Copy | LocalAction::Template => Err(Unfit::Problem(format!(
            "{}: not a local action",
            task.place()
        ))),
    }
}

async fn text(
    host: &mut Host,
    arguments: &IndexMap<String, Node>,
    name: &str,
    scope: &HostScope,
) -> Result<Option<String>, Unfit> {
    let Some(node) = arguments.get(name) else {
        return Ok(None);
    };
    let value = host.known(node, scope).await?;
    Ok((!crate::template::is_omit(&value)).then(|| value.to_string()))
}

async fn assert(
    host: &mut Host,
    arguments: &IndexMap<String, Node>,
    scope: &HostScope,
) -> Result<Done, Unfit> {
    let Some(that) = arguments.get("that") else {
        return Err(Unfit::Problem(
            "`assert` needs the argument `that`".to_owned(),
        ));
    };
    let conditions = that
        .as_seq()
        .map_or_else(|| vec![that.clone()], <[Node]>::to_vec);
    for condition in &conditions {
        if host.truth(condition, scope).await? {
            continue;
        }
        let message = match text(host, arguments, "fail_msg", scope).await? {
            Some(message) => Some(message),
            None => text(host, arguments, "msg", scope).await?,
        };
        let message = message.unwrap_or_else(|| "Assertion failed".to_owned());
        return Err(Unfit::Problem(format!(
            "{message}\n  {}: `{}` does not hold",
            condition.span,
            condition.raw().trim()
        )));
    }
    let message = text(host, arguments, "success_msg", scope).await?;
    let message = message.unwrap_or_else(|| "All assertions passed".to_owned());
    Ok(Done::ok(json!({"changed": false, "msg": message})))
}

async fn debug(
    host: &mut Host,
    arguments: &IndexMap<String, Node>,
    scope: &HostScope,
) -> Result<Done, Unfit> {
    if let Some(node) = arguments.get("verbosity") {
        let wanted = i64::try_from(host.known(node, scope).await?).unwrap_or_default();
        if wanted > i64::from(host.shared.settings.verbosity) {
            return Ok(Done {
                status: Status::Skipped,
                result: json!({"changed": false, "skipped": true, "skipped_reason": "Verbosity threshold not met."}),
            });
        }
    }
    let (name, settled) = match arguments.get("var") {
        Some(node) => {
            let shared = std::sync::Arc::clone(&host.shared);
            let lookup = scope.shared();
            let expression = node.as_str().unwrap_or_else(|| node.raw()).to_owned();
            let settled = host
                .settled(|| shared.templar.expression(&expression, &node.span, &lookup))
                .await;
            // Ansible shows an undefined variable instead of failing.
            let settled = match settled {
                Err(Unfit::Problem(_)) => Settled::Known(Value::from("VARIABLE IS NOT DEFINED!")),
                other => other?,
            };
            (expression, settled)
        }
        None => match arguments.get("msg") {
            Some(node) => ("msg".to_owned(), host.value(node, scope).await?),
            None => (
                "msg".to_owned(),
                Settled::Known(Value::from("Hello world!")),
            ),
        },
    };
    let value = match settled {
        Settled::Known(value) => to_json(&value),
        Settled::Unknown(because) => {
            json!(format!(
                "known after apply (depends on {})",
                because.join(", ")
            ))
        }
    };
    let mut result = serde_json::Map::new();
    result.insert("changed".to_owned(), false.into());
    result.insert(name, value);
    Ok(Done::ok(result.into()))
}

async fn set_fact(
    host: &mut Host,
    arguments: &IndexMap<String, Node>,
    scope: &HostScope,
) -> Result<Done, Unfit> {
    let mut facts = serde_json::Map::new();
    for (name, node) in arguments {
        if name == "cacheable" {
            continue;
        }
        match host.value(node, scope).await? {
            Settled::Known(value) => {
                facts.insert(name.clone(), to_json(&value));
                scope.state.set(name, Variable::Data(value));
            }
            Settled::Unknown(_) => {
                scope.state.set(name, Variable::Data(unknown_value(name)));
                facts.insert(name.clone(), json!("known after apply"));
            }
        }
    }
    // Not under `ansible_facts`: these are of level 19, and are in place already.
    Ok(Done::ok(json!({"changed": false, "facts": facts})))
}

async fn include_vars(
    host: &mut Host,
    play: &PlayContext,
    arguments: &IndexMap<String, Node>,
    scope: &HostScope,
) -> Result<Done, Unfit> {
    let file = text(host, arguments, "file", scope)
        .await?
        .unwrap_or_default();
    let name = text(host, arguments, "name", scope).await?;
    let path = files::find(&file, "vars", &play.search).map_err(|_| {
        Unfit::Problem(format!(
            "there is no file `{file}` beside the playbook, nor in its `vars/`"
        ))
    })?;
    let vars = super::plays::vars_file(&host.shared, &path)
        .map_err(|problem| Unfit::Problem(fleet_yaml::render(&problem, false)))?;
    match name {
        Some(name) => {
            let span = vars.values().next().map(|node| node.span.clone());
            let entries = vars
                .iter()
                .map(|(key, node)| (Node::string(key, &node.span), node.clone()));
            if let Some(span) = span {
                scope.state.include([(name, Node::mapping(entries, &span))]);
            }
        }
        None => scope
            .state
            .include(vars.iter().map(|(name, node)| (name.clone(), node.clone()))),
    }
    Ok(Done::ok(
        json!({"changed": false, "ansible_included_var_files": [file]}),
    ))
}

async fn meta(
    host: &mut Host,
    arguments: &IndexMap<String, Node>,
    span: &Span,
) -> Result<Done, Unfit> {
    let action = arguments
        .get("action")
        .and_then(Node::as_str)
        .unwrap_or_default();
    match action {
        // `flush_handlers` is the play's own business, and never comes here.
        "noop" | "flush_handlers" => Ok(Done::ok(json!({"changed": false}))),
        "end_host" | "end_play" => {
            host.drain().await?;
            Err(Unfit::Stop(Stop::Ended))
        }
        other => Err(Unfit::Problem(format!(
            "{span}: `meta: {other}` is not supported yet; `flush_handlers`, `end_host`, `end_play` and `noop` are"
        ))),
    }
}
