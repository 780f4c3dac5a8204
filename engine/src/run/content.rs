//! `copy` and `template`: what they put on a host is made here, and travels as a content beside its task.

use std::{path::Path, sync::Arc};

use fleet_modules::module;
use fleet_yaml::Node;
use indexmap::IndexMap;
use minijinja::{Value, value::ValueKind};
use sha2::{Digest, Sha256};

use super::{
    dispatch::{Call, PlayContext, Settled, Unfit, checked_call},
    host::Host,
    payload::Payload,
    scope::HostScope,
};
use crate::{
    playbook::{LocalAction, Task, files},
    sources,
    template::{FileSyntax, about, dumped_json},
    vault::Vault,
};

/// A value as JSON, as modules take it.
pub(super) fn to_json(value: &Value) -> serde_json::Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// JSON as a value.
pub(super) fn from_json(json: &serde_json::Value) -> Value {
    Value::from(minijinja::value::Serde(json))
}

/// SHA-256 in lower-case hex.
pub(crate) fn sha256(content: &[u8]) -> String {
    Sha256::digest(content)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

pub(super) async fn calls(
    host: &mut Host,
    play: &PlayContext,
    task: &Task,
    written: &IndexMap<String, Node>,
    scope: &HostScope,
) -> Result<Vec<Call>, Unfit> {
    let template = task.action.name() == LocalAction::Template.name();
    let mut args = IndexMap::new();
    let mut content = None;
    for (name, node) in written {
        match name.as_str() {
            "content" if !template => content = Some(text_content(host, node, scope).await?),
            name if files::is_syntax(name) => {}
            _ => {
                args.insert(name.clone(), node.clone());
            }
        }
    }
    let mut args = host.arguments(&args, scope).await?;
    if let Some(content) = content {
        if args.contains_key("src") {
            return Err(Unfit::failed("src and content are mutually exclusive"));
        }
        args.insert("content".to_owned(), content.into());
        return Ok(vec![call(args, None, written)?]);
    }
    if !template && is_true(args.get("remote_src")) {
        return Ok(vec![call(args, None, written)?]);
    }
    args.remove("remote_src");
    let Some(src) = args
        .get("src")
        .and_then(|src| src.as_str().map(str::to_owned))
    else {
        return Err(match template {
            true => Unfit::Problem("src and dest are required".to_owned()),
            false => Unfit::failed("src (or content) is required"),
        });
    };
    let decrypt = args
        .get("decrypt")
        .is_none_or(|decrypt| is_true(Some(decrypt)));
    let vault = host.shared.templar.vault().clone();
    let vault = decrypt.then_some(&vault);
    let folder = if template { "templates" } else { "files" };
    let path = files::find(&src, folder, &play.search(task)).map_err(|tried| {
        let place = written.get("src").map_or(&task.span, |node| &node.span);
        Unfit::Problem(fleet_yaml::render(
            &files::missing(&src, place, &tried),
            false,
        ))
    })?;
    if template {
        let text = render(host, &src, &path, written, scope).await?;
        return Ok(vec![call(
            args,
            Some(Payload::held(text.into_bytes())),
            written,
        )?]);
    }
    if sources::is_dir(&path) {
        return tree(&path, &src, args, vault, written);
    }
    preserve(&mut args, &path);
    Ok(vec![call(args, Some(file(&path, vault)?), written)?])
}

fn call(
    args: serde_json::Map<String, serde_json::Value>,
    content: Option<Payload>,
    places: &IndexMap<String, Node>,
) -> Result<Call, Unfit> {
    let copy = module::find("copy")
        .ok_or_else(|| Unfit::Problem("no module `copy` in this build".to_owned()))?;
    checked_call(copy, "copy", args, content, places)
}

/// `content:` of any type: lists and mappings as JSON, anything else as Python writes it.
async fn text_content(host: &mut Host, node: &Node, scope: &HostScope) -> Result<String, Unfit> {
    let value = host.known(node, scope).await?;
    Ok(match value.as_str() {
        Some(text) => text.to_owned(),
        None if value.is_none() => String::new(),
        None => match value.kind() {
            ValueKind::Bool | ValueKind::Number => value.to_string(),
            _ => dumped_json(&value).unwrap_or_else(|_| to_json(&value).to_string()),
        },
    })
}

pub(super) fn is_true(value: Option<&serde_json::Value>) -> bool {
    match value {
        Some(serde_json::Value::Bool(truth)) => *truth,
        Some(serde_json::Value::String(text)) => matches!(
            text.to_ascii_lowercase().as_str(),
            "yes" | "true" | "on" | "1" | "y" | "t"
        ),
        _ => false,
    }
}

async fn render(
    host: &mut Host,
    src: &str,
    path: &Path,
    written: &IndexMap<String, Node>,
    scope: &HostScope,
) -> Result<String, Unfit> {
    let text = String::from_utf8(read(path, host.shared.templar.vault())?).map_err(|_| {
        Unfit::Problem(format!(
            "{}: a template is UTF-8 text, and this is not",
            path.display()
        ))
    })?;
    let mut syntax = FileSyntax::default();
    for (name, node) in written.iter().filter(|(name, _)| files::is_syntax(name)) {
        let value = host.known(node, scope).await?;
        files::set_syntax(
            &mut syntax,
            name,
            value.to_string(),
            is_true(Some(&to_json(&value))),
        );
    }
    let dest = match written.get("dest") {
        Some(node) => host.known(node, scope).await?,
        None => Value::from(""),
    };
    let managed = &host.shared.templar.settings().managed;
    let mut extra = about(src, path, managed);
    extra.insert("template_destpath".to_owned(), dest);
    let shared = Arc::clone(&host.shared);
    let lookup = scope.shared();
    match host
        .settled(|| {
            shared
                .templar
                .file(path, &text, &lookup, extra.clone(), &syntax)
        })
        .await?
    {
        Settled::Known(text) => Ok(text),
        Settled::Unknown(because) => Err(Unfit::Unknown(because)),
    }
}

/// `mode: preserve` takes the mode of the controller's file.
fn preserve(args: &mut serde_json::Map<String, serde_json::Value>, path: &Path) {
    if args.get("mode").and_then(serde_json::Value::as_str) == Some("preserve")
        && let Ok(about) = sources::about(path)
    {
        args.insert("mode".to_owned(), format!("{:04o}", about.mode).into());
    }
}

pub(super) fn read(path: &Path, vault: &Vault) -> Result<Vec<u8>, Unfit> {
    let bytes = sources::read(path).map_err(|problem| {
        Unfit::Problem(format!("{}: cannot be read: {problem}", path.display()))
    })?;
    vault
        .plain(path, bytes)
        .map_err(|problem| Unfit::Problem(problem.to_string()))
}

/// A file of this machine; what is encrypted is opened where there is a vault.
pub(super) fn file(path: &Path, vault: Option<&Vault>) -> Result<Payload, Unfit> {
    match vault {
        Some(vault) if Vault::is_vault_at(path) => Ok(Payload::held(read(path, vault)?)),
        _ => Payload::file(path).map_err(|problem| {
            Unfit::Problem(format!("{}: cannot be read: {problem}", path.display()))
        }),
    }
}

/// A directory: one call for each directory and file in it. `src/` copies what is in it, `src` itself, too.
fn tree(
    root: &Path,
    src: &str,
    args: serde_json::Map<String, serde_json::Value>,
    vault: Option<&Vault>,
    places: &IndexMap<String, Node>,
) -> Result<Vec<Call>, Unfit> {
    let dest = args
        .get("dest")
        .and_then(serde_json::Value::as_str)
        .unwrap_or_default()
        .trim_end_matches('/')
        .to_owned();
    let base = match root.file_name() {
        Some(name) if !src.ends_with('/') => format!("{dest}/{}", name.to_string_lossy()),
        _ => dest,
    };
    let folders = module::find("file")
        .ok_or_else(|| Unfit::Problem("no module `file` in this build".to_owned()))?;
    let mut calls = Vec::new();
    let mut waiting = vec![(root.to_owned(), base)];
    while let Some((path, dest)) = waiting.pop() {
        let unreadable = |problem: std::io::Error| {
            Unfit::Problem(format!("{}: cannot be read: {problem}", path.display()))
        };
        if !sources::is_dir(&path) {
            let mut args = args.clone();
            preserve(&mut args, &path);
            args.remove("directory_mode");
            args.insert("dest".to_owned(), dest.into());
            calls.push(call(args, Some(file(&path, vault)?), places)?);
            continue;
        }
        let mut own: serde_json::Map<_, _> = ["owner", "group"]
            .into_iter()
            .filter_map(|name| Some((name.to_owned(), args.get(name)?.clone())))
            .collect();
        own.insert("path".to_owned(), dest.clone().into());
        own.insert("state".to_owned(), "directory".into());
        if let Some(mode) = args.get("directory_mode") {
            own.insert("mode".to_owned(), mode.clone());
        }
        calls.push(checked_call(folders, "copy", own, None, places)?);
        // Popped from the end: names in order.
        for name in sources::list(&path).map_err(unreadable)?.iter().rev() {
            waiting.push((path.join(name), format!("{dest}/{name}")));
        }
    }
    Ok(calls)
}
