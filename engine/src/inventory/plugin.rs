//! Inventories that say how to make hosts and groups: `plugin: constructed` and `plugin: generator`.

mod constructed;
mod generator;
mod scope;

use std::{path::PathBuf, sync::Arc};

use fleet_yaml::{Diagnostic, Map, Node, nearest};

use super::{
    LoadOptions,
    build::Build,
    graph::Mention,
    mistake::{code, mistake, oddity},
};

/// Whether a file says what to do, instead of naming hosts.
pub(super) fn is_one(root: &Map) -> bool {
    root.get("plugin")
        .is_some_and(|name| name.as_str().is_some())
}

/// Does what the file says. `dirs` are those of the sources so far.
pub(super) fn read(
    build: &mut Build,
    root: &Map,
    mention: &Arc<Mention>,
    options: &LoadOptions,
    dirs: &[PathBuf],
) {
    let Some(name) = root.get("plugin") else {
        return;
    };
    let text = name.as_str().unwrap_or_default();
    let done =
        match text.strip_prefix("ansible.builtin.").unwrap_or(text) {
            "constructed" => constructed::read(build, root, options, dirs),
            "generator" => generator::read(build, root, mention, options),
            _ => {
                let told = mistake(
                    code::SOURCE,
                    &name.span,
                    format!("inventory plugin `{text}` is not supported"),
                );
                build.errors.push(match nearest(text, ["constructed", "generator"]) {
                Some(near) => told.with_help(format!("did you mean `{near}`?")),
                None => told.with_help(
                    "a script that prints the inventory as JSON does the same: `fleetctl` runs it",
                ),
            });
                return;
            }
        };
    if let Err(mistake) = done {
        build.errors.push(mistake);
    }
}

/// Tells of keys that the plugin does not know.
fn unknown_keys(build: &mut Build, map: &Map, known: &[&str]) {
    for (key, _) in map.iter() {
        let name = key.as_str().unwrap_or_default();
        if !known.contains(&name) {
            let told = oddity(
                code::SOURCE,
                &key.span,
                format!("unknown key `{}` is passed over", key.raw()),
            );
            build
                .warnings
                .push(super::mistake::meant(told, name, known.iter().copied()));
        }
    }
}

/// A value that must be a mapping.
fn mapping<'a>(root: &'a Map, key: &str) -> Result<Option<&'a Map>, Diagnostic> {
    match root.get(key).filter(|node| !node.is_null()) {
        Some(node) => match node.as_map() {
            Some(map) => Ok(Some(map)),
            None => Err(other(node, key, "a mapping")),
        },
        None => Ok(None),
    }
}

/// A value that must be yes or no.
fn flag(root: &Map, key: &str, default: bool) -> Result<bool, Diagnostic> {
    match root.get(key).filter(|node| !node.is_null()) {
        Some(node) => {
            let text = node.scalar_text().unwrap_or_default().to_lowercase();
            match text.as_str() {
                "true" | "yes" | "on" | "1" => Ok(true),
                "false" | "no" | "off" | "0" => Ok(false),
                _ => Err(other(node, key, "`true` or `false`")),
            }
        }
        None => Ok(default),
    }
}

fn other(node: &Node, key: &str, expected: &str) -> Diagnostic {
    mistake(
        code::SOURCE,
        &node.span,
        format!("`{key}` is {}", node.kind_name()),
    )
    .with_label(format!("expected {expected}"))
}
