//! `include_vars`: the variables of a file or of the files of a directory.

use std::path::{Path, PathBuf};

use fleet_yaml::{Kind, Node};
use indexmap::IndexMap;
use regex::Regex;
use serde_json::json;

use super::{
    dispatch::{PlayContext, Unfit},
    host::Host,
    local::{Done, list, text},
    scope::HostScope,
};
use crate::{
    playbook::{Task, Vars, files},
    sources,
    variables::{Scope, Variable},
};

/// Which files of a directory are taken.
struct Wanted {
    depth: usize,
    matching: Option<Regex>,
    ignored: Vec<Regex>,
    extensions: Vec<String>,
    passes_unknown: bool,
}

pub(super) async fn include_vars(
    host: &mut Host,
    play: &PlayContext,
    task: &Task,
    arguments: &IndexMap<String, Node>,
    scope: &HostScope,
) -> Result<Done, Unfit> {
    for option in ["ignore_files", "extensions"] {
        let value = host.keyword(arguments.get(option), scope).await?;
        if value.is_some_and(|value| value.as_str().is_none() && value.try_iter().is_err()) {
            return Err(Unfit::Problem(format!("{option} option must be a list")));
        }
    }
    if ["dir", "depth", "files_matching", "ignore_files"]
        .iter()
        .any(|name| arguments.contains_key(*name))
        && arguments.contains_key("file")
    {
        return Err(Unfit::Problem(
            "you are mixing `file` with options of a directory; these are incompatible".to_owned(),
        ));
    }
    let name = text(host, arguments, "name", scope).await?;
    let merges = match text(host, arguments, "hash_behaviour", scope).await? {
        Some(behaviour) => behaviour == "merge",
        None => host.shared.settings.merges_hashes,
    };
    let found = match text(host, arguments, "dir", scope).await? {
        Some(dir) => {
            let wanted = wanted(host, arguments, scope).await?;
            let dir = directory(&dir, play, task)?;
            let mut found = Vec::new();
            collect(&dir, 1, &wanted, is_roles(&dir, task), &mut found)?;
            found
        }
        None => {
            let file = text(host, arguments, "file", scope)
                .await?
                .unwrap_or_default();
            let path = files::find(&file, "vars", &play.search(task)).map_err(|tried| {
                let place = arguments.get("file").map_or(&task.span, |node| &node.span);
                let missing = fleet_yaml::render(&files::missing(&file, place, &tried), false);
                unread(format!(
                    "Could not find file `{file}` on the controller\n{missing}"
                ))
            })?;
            vec![path]
        }
    };
    let mut vars = Vars::new();
    for path in &found {
        let own = super::plays::vars_file(&host.shared, path)
            .map_err(|problem| unread(fleet_yaml::render(&problem, false)))?;
        for (name, node) in own.iter() {
            // Files of one directory replace each other; only the whole is merged with what was there.
            vars.insert(name.clone(), node.clone());
        }
    }
    if let Some(name) = name {
        let entries = vars
            .iter()
            .map(|(key, node)| (Node::string(key, &node.span), node.clone()));
        vars = Vars::from([(name, Node::mapping(entries, &task.span))]);
    }
    if merges {
        for (name, node) in &mut vars {
            let before = match scope.get(name) {
                Some(Variable::Written(before)) => before,
                Some(Variable::Data(value)) => super::dispatch::data_node(&value, node),
                _ => continue,
            };
            *node = merged(&before, node);
        }
    }
    let facts: serde_json::Map<String, serde_json::Value> = vars
        .iter()
        .map(|(name, node)| (name.clone(), node.to_json()))
        .collect();
    scope.state.include(vars);
    let files: Vec<String> = found
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    Ok(Done::ok(json!({
        "changed": false, "ansible_included_var_files": files, "ansible_facts": facts,
    })))
}

async fn wanted(
    host: &mut Host,
    arguments: &IndexMap<String, Node>,
    scope: &HostScope,
) -> Result<Wanted, Unfit> {
    let pattern = |text: &str| {
        Regex::new(text)
            .map_err(|problem| Unfit::Problem(format!("`{text}` is no pattern: {problem}")))
    };
    let depth = host.number(arguments.get("depth"), scope).await?;
    let matching = text(host, arguments, "files_matching", scope).await?;
    let mut ignored = Vec::new();
    for name in list(host, arguments, "ignore_files", scope)
        .await?
        .unwrap_or_default()
    {
        ignored.push(pattern(&format!("(?:{name})$"))?);
    }
    let extensions = list(host, arguments, "extensions", scope).await?;
    Ok(Wanted {
        depth: depth.map_or(0, |depth| depth.max(0.0) as usize),
        matching: matching.as_deref().map(pattern).transpose()?,
        ignored,
        extensions: extensions
            .unwrap_or_else(|| ["json", "yaml", "yml"].map(str::to_owned).to_vec()),
        passes_unknown: host
            .flag(arguments.get("ignore_unknown_extensions"), scope)
            .await?
            == Some(true),
    })
}

/// A directory of variables: beside the role's or the task's file, with or without `vars/` before it.
fn directory(dir: &str, play: &PlayContext, task: &Task) -> Result<PathBuf, Unfit> {
    let given = Path::new(dir);
    let candidates = match given.is_absolute() {
        true => vec![given.to_owned()],
        false => play
            .search(task)
            .iter()
            .flat_map(|base| [base.join("vars").join(dir), base.join(dir)])
            .collect(),
    };
    let found = candidates
        .iter()
        .find(|path| sources::is_dir(path))
        .cloned();
    found.ok_or_else(|| {
        let shown = candidates.first().cloned().unwrap_or_default();
        match sources::exists(&shown) {
            true => unread(format!("{} is not a directory", shown.display())),
            false => unread(format!("{} directory does not exist", shown.display())),
        }
    })
}

/// Whether a directory is the `vars/` of the task's role, whose main file is in effect already.
fn is_roles(dir: &Path, task: &Task) -> bool {
    let role = task.directives.role.as_ref();
    role.is_some_and(|role| role.path.join("vars") == dir)
}

fn collect(
    dir: &Path,
    depth: usize,
    wanted: &Wanted,
    is_roles: bool,
    found: &mut Vec<PathBuf>,
) -> Result<(), Unfit> {
    let unreadable =
        |problem: std::io::Error| Unfit::Problem(format!("{}: {problem}", dir.display()));
    let mut below = Vec::new();
    for name in sources::list(dir).map_err(unreadable)? {
        let path = dir.join(&name);
        if sources::is_dir(&path) {
            below.push(path);
            continue;
        }
        let is_main = is_roles && path.file_stem().is_some_and(|stem| stem == "main");
        let matches = wanted
            .matching
            .as_ref()
            .is_none_or(|own| own.is_match(&name));
        if is_main || !matches || wanted.ignored.iter().any(|own| own.is_match(&name)) {
            continue;
        }
        let extension = path.extension().unwrap_or_default().to_string_lossy();
        let known = wanted
            .extensions
            .iter()
            .any(|own| own.trim_start_matches('.') == extension);
        match known {
            true => found.push(path),
            false if wanted.passes_unknown => {}
            false => {
                return Err(unread(format!(
                    "{} does not have a valid extension: {}",
                    path.display(),
                    wanted.extensions.join(", ")
                )));
            }
        }
    }
    if wanted.depth == 0 || depth < wanted.depth {
        for dir in below {
            collect(&dir, depth + 1, wanted, false, found)?;
        }
    }
    Ok(())
}

/// What cannot be taken in; playbooks look for the reason in `message`.
fn unread(why: String) -> Unfit {
    Unfit::Failed(Box::new(json!({
        "changed": false, "failed": true, "msg": why, "message": why, "ansible_included_var_files": [],
    })))
}

/// Two mappings as one, the second winning; anything else is the second.
fn merged(before: &Node, after: &Node) -> Node {
    let (Kind::Map(old), Kind::Map(new)) = (&before.kind, &after.kind) else {
        return after.clone();
    };
    let mut entries: Vec<(Node, Node)> = Vec::new();
    for (key, value) in old.iter() {
        let value = match new.get(&key.scalar_text().unwrap_or_default()) {
            Some(newer) => merged(value, newer),
            None => value.clone(),
        };
        entries.push((key.clone(), value));
    }
    for (key, value) in new.iter() {
        if old.get(&key.scalar_text().unwrap_or_default()).is_none() {
            entries.push((key.clone(), value.clone()));
        }
    }
    Node::mapping(entries, &after.span)
}
