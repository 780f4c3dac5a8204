//! What modules of the host need of the controller: the script, the archive, the parts, the body of a request.

use std::path::{Path, PathBuf};

use fleet_modules::parts;
use fleet_yaml::Node;
use indexmap::IndexMap;
use serde_json::{Map, Value};

use super::{
    content::{file, is_true, read},
    dispatch::{PlayContext, Unfit},
    payload::Payload,
};
use crate::{
    playbook::{Task, files},
    sources,
    vault::Vault,
};

/// The content that goes with a call; none where the module has all that it needs on its host.
pub(super) fn content(
    play: &PlayContext,
    task: &Task,
    module: &str,
    args: &Map<String, Value>,
    written: &IndexMap<String, Node>,
    vault: &Vault,
) -> Result<Option<Payload>, Unfit> {
    let text = |name: &str| args.get(name).and_then(Value::as_str);
    let far = args
        .contains_key("remote_src")
        .then(|| is_true(args.get("remote_src")));
    let decrypt = args
        .get("decrypt")
        .is_none_or(|decrypt| is_true(Some(decrypt)));
    let vault = decrypt.then_some(vault);
    let find = |name: &str, argument: &str| -> Result<PathBuf, Unfit> {
        files::find(name, "files", &play.search(task)).map_err(|tried| {
            let place = written.get(argument).map_or(&task.span, |node| &node.span);
            let missing = files::missing(name, place, &tried);
            Unfit::Problem(format!(
                "Could not find or access '{name}' on the Ansible Controller.\n{}",
                fleet_yaml::render(&missing, false)
            ))
        })
    };
    let of_file = |name: &str| -> Result<Option<Payload>, Unfit> {
        file(&find(name, "src")?, vault).map(Some)
    };
    match module {
        "script" => {
            let argument = ["cmd", "_raw_params", "free_form"];
            let line = argument.iter().find_map(|name| text(name));
            let words = line.and_then(|line| fleet_modules::host::words(line).ok());
            match words.as_ref().and_then(|words| words.first()) {
                Some(script) => file(&find(script, "cmd")?, vault).map(Some),
                // The module says what is missing.
                None => Ok(None),
            }
        }
        "unarchive" => {
            let far =
                far.unwrap_or_else(|| args.contains_key("copy") && !is_true(args.get("copy")));
            match text("src") {
                Some(src) if !far => of_file(src),
                _ => Ok(None),
            }
        }
        "uri" => match text("src") {
            Some(src) if far != Some(true) => of_file(src),
            _ => Ok(None),
        },
        "assemble" if far == Some(false) => match text("src") {
            Some(src) => assembled(&find(src, "src")?, args, vault).map(Some),
            None => Ok(None),
        },
        _ => Ok(None),
    }
}

/// The files of a directory of the controller, one behind the other.
fn assembled(
    dir: &Path,
    args: &Map<String, Value>,
    vault: Option<&Vault>,
) -> Result<Payload, Unfit> {
    let text = |name: &str| args.get(name).and_then(Value::as_str);
    let problem = |why: &dyn std::fmt::Display| Unfit::Problem(format!("{}: {why}", dir.display()));
    let names = sources::list(dir).map_err(|why| match sources::is_dir(dir) {
        true => problem(&why),
        false => Unfit::Problem(format!("Source ({}) is not a directory", dir.display())),
    })?;
    let ignore_hidden = is_true(args.get("ignore_hidden"));
    let chosen = parts::Chosen::new(text("regexp"), ignore_hidden).map_err(|why| problem(&why))?;
    let mut contents = Vec::new();
    for name in names.iter().filter(|name| chosen.has(name)) {
        let path = dir.join(name);
        if !sources::is_file(&path) {
            continue;
        }
        contents.push(match vault {
            Some(vault) => read(&path, vault)?,
            None => sources::read(&path).map_err(|why| problem(&why))?,
        });
    }
    Ok(Payload::held(parts::joined(contents, text("delimiter"))))
}
