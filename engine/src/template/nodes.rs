//! YAML nodes as templates see them.

use std::borrow::Cow;

use fleet_yaml::{Kind, Node};
use minijinja::Value;

use super::rewrite;
use crate::vault::Vault;

/// A node by what has to be done with it.
pub(crate) enum View<'a> {
    /// A text with something to render.
    Template(&'a str),
    /// A value that stands for itself.
    Plain(Value),
    /// A list, rendered item by item.
    List,
    /// A map, rendered entry by entry.
    Map,
    /// A text that is encrypted.
    Vault,
}

/// What has to be done with a node.
pub(crate) fn view(node: &Node) -> View<'_> {
    if node.has_tag("unsafe") {
        return View::Plain(plain(node));
    }
    if Vault::is_vaulted(node) {
        return View::Vault;
    }
    match &node.kind {
        Kind::Str(text) if rewrite::is_template(text) => View::Template(text),
        Kind::Seq(_) => View::List,
        Kind::Map(_) => View::Map,
        _ => View::Plain(plain(node)),
    }
}

/// The value as it is written, never rendered.
pub(crate) fn plain(node: &Node) -> Value {
    match &node.kind {
        Kind::Null => Value::from(()),
        Kind::Bool(value) => Value::from(*value),
        Kind::Int(value) => Value::from(*value),
        Kind::Float(value) => Value::from(*value),
        Kind::Str(text) => Value::from(&**text),
        Kind::Seq(items) => items.iter().map(plain).collect::<Vec<_>>().into(),
        Kind::Map(map) => {
            Value::from_pairs(map.iter().map(|(key, value)| (plain(key), plain(value))))
        }
    }
}

/// The items of a list.
pub(crate) fn list(node: &Node) -> &[Node] {
    node.as_seq().unwrap_or_default()
}

/// The keys of a map.
pub(crate) fn keys(node: &Node) -> Vec<Value> {
    node.as_map()
        .into_iter()
        .flat_map(|map| map.iter())
        .map(|(key, _)| plain(key))
        .collect()
}

/// The value under a key of any type, and the step to it in messages.
pub(crate) fn entry<'a>(node: &'a Node, key: &Value) -> Option<(String, &'a Node)> {
    let map = node.as_map()?;
    if let Some(name) = key.as_str() {
        return map.get(name).map(|value| (format!(".{name}"), value));
    }
    map.iter()
        .find(|(written, _)| plain(written) == *key)
        .map(|(_, value)| (format!("[{key}]"), value))
}

/// The conditions of a `when:`: one, or a list that all have to hold.
pub(crate) fn conditions(node: &Node) -> &[Node] {
    node.as_seq().unwrap_or(std::slice::from_ref(node))
}

/// A scalar as text.
pub(crate) fn text(node: &Node) -> Cow<'_, str> {
    node.scalar_text().unwrap_or_default()
}
