//! The `config` lookup: settings by Ansible's names.

use minijinja::{Error, Value};

use super::{Asked, Lookup};
use crate::template::given::failed;
use crate::template::python::{text, truth};

pub(super) const LOOKUPS: &[Lookup] = &[Lookup {
    names: "config",
    run: config,
}];

/// Names of settings that playbooks ask for, and what they are where nothing is set.
fn default(name: &str) -> Option<Value> {
    let list = |all: &[&str]| Value::from(all.iter().copied().map(Value::from).collect::<Vec<_>>());
    Some(match name {
        "DEFAULT_FORKS" => Value::from(5),
        "DEFAULT_TIMEOUT" | "DEFAULT_GATHER_TIMEOUT" => Value::from(10),
        "DEFAULT_BECOME_USER" => Value::from("root"),
        "DEFAULT_BECOME_METHOD" => Value::from("sudo"),
        "DEFAULT_REMOTE_USER"
        | "DEFAULT_PRIVATE_KEY_FILE"
        | "DEFAULT_LOG_PATH"
        | "DEFAULT_VAULT_PASSWORD_FILE"
        | "RETRY_FILES_SAVE_PATH"
        | "DEFAULT_REMOTE_PORT" => Value::from(()),
        "DEFAULT_MODULE_NAME" => Value::from("command"),
        "DEFAULT_TRANSPORT" => Value::from("ssh"),
        "DEFAULT_STRATEGY" => Value::from("linear"),
        "DEFAULT_GATHERING" => Value::from("implicit"),
        "DEFAULT_HASH_BEHAVIOUR" => Value::from("replace"),
        "DEFAULT_STDOUT_CALLBACK" => Value::from("default"),
        "DEFAULT_MANAGED_STR" => Value::from("Ansible managed"),
        "DEFAULT_JINJA2_EXTENSIONS" => list(&[]),
        "DEFAULT_ROLES_PATH" => list(&[
            "~/.ansible/roles",
            "/usr/share/ansible/roles",
            "/etc/ansible/roles",
        ]),
        "DEFAULT_HOST_LIST" => list(&["/etc/ansible/hosts"]),
        "ANSIBLE_HOME" => Value::from("~/.ansible"),
        "DEFAULT_LOCAL_TMP" => Value::from("~/.ansible/tmp"),
        "HOST_KEY_CHECKING" | "DEFAULT_FORCE_HANDLERS_DEFAULT" => Value::from(true),
        "DEFAULT_BECOME"
        | "DEFAULT_FORCE_HANDLERS"
        | "ALLOW_BROKEN_CONDITIONALS"
        | "ANSIBLE_PIPELINING"
        | "RETRY_FILES_ENABLED"
        | "DEFAULT_ASK_PASS"
        | "DEFAULT_ASK_VAULT_PASS" => Value::from(false),
        "ANSIBLE_COW_ACCEPTLIST" => list(&[
            "bud-frogs",
            "bunny",
            "cheese",
            "daemon",
            "default",
            "dragon",
            "elephant-in-snake",
            "elephant",
            "eyes",
            "hellokitty",
            "kitty",
            "luke-koala",
            "meow",
            "milk",
            "moofasa",
            "moose",
            "ren",
            "sheep",
            "small",
            "stegosaurus",
            "stimpy",
            "supermilker",
            "three-eyes",
            "turkey",
            "turtle",
            "tux",
            "udder",
            "vader-koala",
            "vader",
            "www",
        ]),
        "COLOR_OK" | "COLOR_DIFF_ADD" => Value::from("green"),
        "COLOR_CHANGED" => Value::from("yellow"),
        "COLOR_ERROR" | "COLOR_DIFF_REMOVE" => Value::from("red"),
        "COLOR_SKIP" | "COLOR_DIFF_LINES" => Value::from("cyan"),
        "COLOR_UNREACHABLE" | "COLOR_WARN" => Value::from("bright red"),
        _ => return None,
    })
}

/// `~` is the user's home, as everywhere in settings.
fn expanded(asked: &Asked, value: Value) -> Value {
    let templar = &asked.evaluation.templar;
    let path = |written: &str| {
        let path = templar.expand_user(std::path::Path::new(written));
        Value::from(path.to_string_lossy().into_owned())
    };
    match value.as_str() {
        Some(written) if written.starts_with("~/") => path(written),
        Some(_) => value,
        None => match value.downcast_object_ref::<Vec<Value>>() {
            Some(all) => all
                .iter()
                .map(|item| expanded(asked, item.clone()))
                .collect::<Vec<_>>()
                .into(),
            None => value,
        },
    }
}

fn config(asked: &Asked) -> Result<Vec<Value>, Error> {
    let missing = asked.option_text("on_missing", "error")?;
    if !["error", "warn", "skip"].contains(&missing.as_str()) {
        return Err(failed(format!(
            "Invalid value '{missing}' for config 'on_missing': it is one of error, warn and skip"
        )));
    }
    let show_origin = asked.option_flag("show_origin", false);
    let plugin = asked.option("plugin_type").is_some() || asked.option("plugin_name").is_some();
    if plugin && !(asked.option("plugin_type").is_some() && asked.option("plugin_name").is_some()) {
        return Err(failed(
            "Both plugin_type and plugin_name must be supplied, cannot use one without the other",
        ));
    }
    let mut found = Vec::new();
    for term in &asked.terms {
        let Some(name) = term.as_str() else {
            return Err(failed(format!(
                "Invalid setting identifier, `{term}` is not a string, it is a {}",
                text::type_name(term)
            )));
        };
        let known = if plugin {
            of_connection(asked, name)?
        } else {
            let controller = asked.evaluation.templar.controller();
            let allowed = (name == "ALLOW_BROKEN_CONDITIONALS")
                .then(|| controller.environment("ANSIBLE_ALLOW_BROKEN_CONDITIONALS"))
                .flatten()
                .and_then(|said| truth::from_text(&said))
                .map(|said| {
                    (
                        Value::from(said),
                        "env: ANSIBLE_ALLOW_BROKEN_CONDITIONALS".to_owned(),
                    )
                });
            let set = controller.setting(name).or(allowed);
            set.or_else(|| Some((default(name)?, "default".to_owned())))
        };
        match known {
            Some((value, origin)) => {
                let value = expanded(asked, value);
                found.push(if show_origin {
                    Value::from(vec![value, Value::from(origin)])
                } else {
                    value
                });
            }
            None if missing == "error" => {
                return Err(failed(format!("No config definition exists for '{name}'")));
            }
            None => {}
        }
    }
    Ok(found)
}

/// The setting of a connection or of a shell that a variable may give.
fn of_connection(asked: &Asked, name: &str) -> Result<Option<(Value, String)>, Error> {
    let variables: &[&str] = match name {
        "remote_user" => &["ansible_user", "ansible_ssh_user"],
        "port" => &["ansible_port", "ansible_ssh_port"],
        "host" => &["inventory_hostname", "ansible_host", "ansible_ssh_host"],
        "private_key_file" => &["ansible_private_key_file", "ansible_ssh_private_key_file"],
        "ssh_args" => &["ansible_ssh_args"],
        "remote_tmp" => &["ansible_remote_tmp"],
        "pipelining" => &["ansible_pipelining", "ansible_ssh_pipelining"],
        _ => return Ok(None),
    };
    for variable in variables {
        let value = asked
            .evaluation
            .variable(variable)
            .map_err(crate::template::EvalError::into_minijinja)?;
        if let Some(value) = value {
            return Ok(Some((value, format!("var: {variable}"))));
        }
    }
    Ok(match name {
        "remote_tmp" => Some((Value::from("~/.ansible/tmp"), "default".to_owned())),
        "remote_user" | "port" | "private_key_file" => {
            Some((Value::from(()), "default".to_owned()))
        }
        _ => None,
    })
}
