//! Modules that the controller runs by itself: they look at values, and touch no host.

use fleet_wire::Status;
use fleet_yaml::Node;
use indexmap::IndexMap;
use minijinja::Value;
use serde_json::json;

use super::{
    argument_spec, back_again,
    content::to_json,
    dispatch::{PlayContext, Settled, Unfit},
    host::Host,
    include_vars, new_hosts, pause,
    scope::HostScope,
};
use crate::{
    playbook::{LocalAction, Task},
    template::unknown_value,
    variables::Variable,
};

/// The end of a module that ran here.
pub(super) struct Done {
    pub(super) status: Status,
    pub(super) result: serde_json::Value,
}

impl Done {
    pub(super) fn ok(result: serde_json::Value) -> Self {
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
    play: &PlayContext,
    task: &Task,
    scope: &HostScope,
) -> Result<Done, Unfit> {
    match action {
        LocalAction::Assert => assert(host, arguments, scope).await,
        LocalAction::Debug => debug(host, arguments, scope).await,
        LocalAction::Fail => {
            let message = host.keyword(arguments.get("msg"), scope).await?;
            let message = message.map_or_else(
                || json!("Failed as requested from task"),
                |message| to_json(&message),
            );
            Err(Unfit::Failed(Box::new(
                json!({"changed": false, "failed": true, "msg": message}),
            )))
        }
        LocalAction::IncludeVars => {
            include_vars::include_vars(host, play, task, arguments, scope).await
        }
        LocalAction::SetFact => set_fact(host, arguments, scope).await,
        LocalAction::AddHost => new_hosts::add_host(host, arguments, scope).await,
        LocalAction::GroupBy => new_hosts::group_by(host, arguments, scope).await,
        LocalAction::WaitForConnection => back_again::wait(host, arguments, scope).await,
        LocalAction::Pause => pause::pause(host, arguments, scope).await,
        LocalAction::SetStats => set_stats(host, arguments, scope).await,
        LocalAction::ValidateArgumentSpec => argument_spec::validate(host, arguments, scope).await,
        LocalAction::Copy | LocalAction::Template | LocalAction::Meta => Err(Unfit::Problem(
            format!("{}: not a local action", task.place()),
        )),
    }
}

/// An argument's text; none where it is absent or `omit`.
pub(super) async fn text(
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

/// An argument's list of texts: a list, or one text with commas.
pub(super) async fn list(
    host: &mut Host,
    arguments: &IndexMap<String, Node>,
    name: &str,
    scope: &HostScope,
) -> Result<Option<Vec<String>>, Unfit> {
    let Some(value) = host.keyword(arguments.get(name), scope).await? else {
        return Ok(None);
    };
    let words = match value.as_str() {
        Some(text) => text
            .split(',')
            .map(|word| word.trim().to_owned())
            .filter(|word| !word.is_empty())
            .collect(),
        None => match value.try_iter() {
            Ok(items) => items.map(|item| item.to_string()).collect(),
            Err(_) => vec![value.to_string()],
        },
    };
    Ok(Some(words))
}

/// A name that a variable can have, where it comes of a template.
fn valid_name(name: &str) -> Result<(), Unfit> {
    let mut letters = name.chars();
    let sound = letters
        .next()
        .is_some_and(|letter| letter.is_ascii_alphabetic() || letter == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    match sound {
        true => Ok(()),
        false => Err(Unfit::Problem(format!(
            "Invalid variable name '{name}': letters, digits and `_`, and no digit first"
        ))),
    }
}

/// `set_stats`
async fn set_stats(
    host: &mut Host,
    arguments: &IndexMap<String, Node>,
    scope: &HostScope,
) -> Result<Done, Unfit> {
    let mut data = serde_json::Map::new();
    if let Some(node) = arguments.get("data") {
        let value = to_json(&host.known(node, scope).await?);
        let Some(fields) = value.as_object() else {
            return Err(Unfit::failed(
                "The 'data' option needs to be a dictionary/hash".to_owned(),
            ));
        };
        for name in fields.keys() {
            valid_name(name)?;
        }
        data.extend(fields.clone());
    }
    let per_host = host.flag(arguments.get("per_host"), scope).await? == Some(true);
    let aggregate = host.flag(arguments.get("aggregate"), scope).await? != Some(false);
    Ok(Done::ok(json!({
        "changed": false,
        "ansible_stats": {"data": data, "per_host": per_host, "aggregate": aggregate},
    })))
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
        return Err(Unfit::Failed(Box::new(json!({
            "changed": false, "failed": true, "evaluated_to": false, "assertion": condition.scalar_text().unwrap_or_default().trim(),
            "place": condition.span.to_string(), "msg": message,
        }))));
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
    let (var, msg) = (arguments.get("var"), arguments.get("msg"));
    if var.is_some() && msg.is_some() {
        return Err(Unfit::Problem(
            "Task failed: parameters are mutually exclusive: msg|var".to_owned(),
        ));
    }
    let mut warnings = Vec::new();
    let (name, settled) = match (var, msg) {
        (Some(node), _) => {
            let Some(expression) = expression(host, node, scope).await? else {
                return Ok(Done::ok(json!({"changed": false, "msg": "Hello world!"})));
            };
            let shared = std::sync::Arc::clone(&host.shared);
            let lookup = scope.shared();
            let settled = host
                .settled(|| shared.templar.shown(&expression, &node.span, &lookup))
                .await?;
            let settled = match settled {
                Settled::Known((value, found)) => {
                    let numbered = found.iter().enumerate();
                    warnings.extend(numbered.map(|(at, why)| {
                        format!("Encountered 1 template error.\nerror {} - {why}", at + 1)
                    }));
                    if crate::template::is_omit(&value) {
                        warnings.push(
                            "The result of the `var` expression could not be omitted; a placeholder was used instead."
                                .to_owned(),
                        );
                    }
                    Settled::Known(value)
                }
                Settled::Unknown(because) => Settled::Unknown(because),
            };
            (expression, settled)
        }
        (None, Some(node)) => match host.value(node, scope).await? {
            Settled::Known(value) if crate::template::is_omit(&value) => (
                "msg".to_owned(),
                Settled::Known(Value::from("Hello world!")),
            ),
            settled => ("msg".to_owned(), settled),
        },
        (None, None) => (
            "msg".to_owned(),
            Settled::Known(Value::from("Hello world!")),
        ),
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
    if !warnings.is_empty() {
        result.insert("warnings".to_owned(), json!(warnings));
    }
    result.insert(name, value);
    Ok(Done::ok(result.into()))
}

/// The expression of `debug: var=…`, which a template may give; none where it is `omit` or empty.
async fn expression(
    host: &mut Host,
    node: &Node,
    scope: &HostScope,
) -> Result<Option<String>, Unfit> {
    if node.has_tag("unsafe") {
        return Err(Unfit::Problem(
            "Task failed: Error while resolving `var` expression: Encountered untrusted template or expression."
                .to_owned(),
        ));
    }
    let value = host.known(node, scope).await?;
    match value.as_str() {
        _ if crate::template::is_omit(&value) => Ok(None),
        Some(text) => Ok((!text.is_empty()).then(|| text.to_owned())),
        None => Err(Unfit::Problem(format!(
            "Task failed: argument 'var' is of type {} and we were unable to convert to _check_type_str_no_conversion: \
             '{}' is not a string and conversion is not allowed",
            crate::template::type_name(&value),
            crate::template::python_text(&value).unwrap_or_default()
        ))),
    }
}

async fn set_fact(
    host: &mut Host,
    arguments: &IndexMap<String, Node>,
    scope: &HostScope,
) -> Result<Done, Unfit> {
    let mut facts = serde_json::Map::new();
    let cacheable = host.flag(arguments.get("cacheable"), scope).await? == Some(true);
    for (name, node) in arguments {
        if name == "cacheable" {
            continue;
        }
        // The name itself may be a template.
        let name = &host
            .known(&Node::string(name, &node.span), scope)
            .await?
            .to_string();
        valid_name(name)?;
        match host.value(node, scope).await? {
            Settled::Known(value) if crate::template::is_omit(&value) => {}
            Settled::Known(value) => {
                facts.insert(name.clone(), to_json(&value));
                if cacheable {
                    scope.state.add_facts([(name.clone(), value.clone())]);
                }
                scope.state.set(name, Variable::Data(value));
            }
            Settled::Unknown(_) => {
                scope.state.set(name, Variable::Data(unknown_value(name)));
                facts.insert(name.clone(), json!("known after apply"));
            }
        }
    }
    if facts.is_empty() {
        return Err(Unfit::Problem(
            "No key/value pairs provided, at least one is required for this action to succeed"
                .to_owned(),
        ));
    }
    // Not under `ansible_facts`: these are of level 19, and are in place already.
    Ok(Done::ok(json!({"changed": false, "ansible_facts": facts})))
}
