//! Reads a playbook file and collects every mistake in it, not only the first.

use std::{path::Path, sync::Arc};

use fleet_yaml::{Diagnostic, Map, Node, Source, Span};

use super::{Playbook, Vars};

/// A playbook that could be read, and what was noticed on the way.
#[derive(Debug)]
pub struct Reading {
    /// The playbook.
    pub playbook: Playbook,
    /// What is taken, but may not be meant.
    pub warnings: Vec<Diagnostic>,
}

/// Reads the playbook at `path`. `check` looks at the templates in a value.
///
/// # Errors
/// All mistakes that can be found without a host, each at its place.
pub fn read(
    path: &Path,
    check: &dyn Fn(&Node) -> Vec<Diagnostic>,
) -> Result<Reading, Vec<Diagnostic>> {
    let source = Source::read(path).map_err(|problem| vec![problem])?;
    let loaded = fleet_yaml::load(source).map_err(|problem| vec![problem])?;
    let mut reader = Reader { problems: Vec::new(), next_id: 0, check };
    let mut plays = Vec::new();
    for document in &loaded.documents {
        let Some(list) = document.as_seq() else {
            reader.wrong_kind(document, "a list of plays");
            continue;
        };
        for play in list {
            plays.extend(reader.play(play, plays.len()).map(Arc::new));
        }
    }
    if !reader.problems.is_empty() {
        return Err(reader.problems);
    }
    let playbook = Playbook { path: path.to_owned(), plays };
    Ok(Reading { playbook, warnings: loaded.warnings })
}

pub(super) struct Reader<'a> {
    pub(super) problems: Vec<Diagnostic>,
    pub(super) next_id: usize,
    pub(super) check: &'a dyn Fn(&Node) -> Vec<Diagnostic>,
}

impl Reader<'_> {
    pub(super) fn problem(&mut self, span: &Span, message: impl Into<String>) -> &mut Diagnostic {
        self.problems.push(Diagnostic::error(span.clone(), message));
        let last = self.problems.len() - 1;
        &mut self.problems[last]
    }

    pub(super) fn wrong_kind(&mut self, node: &Node, expected: &str) {
        self.problem(&node.span, format!("expected {expected}, not {}", node.kind_name()));
    }

    /// Looks at the templates of a value that is kept as written.
    pub(super) fn value(&mut self, node: &Node) -> Node {
        self.problems.extend((self.check)(node));
        node.clone()
    }

    /// A condition: an expression without braces, or a list of them that must all hold.
    pub(super) fn conditions(&mut self, node: &Node) -> Vec<Node> {
        match node.as_seq() {
            Some(list) => list.to_vec(),
            None => vec![node.clone()],
        }
    }

    pub(super) fn vars(&mut self, node: &Node) -> Arc<Vars> {
        let mut vars = Vars::new();
        match node.as_map() {
            Some(map) => {
                for (key, value) in map.iter() {
                    if let Some(name) = self.variable_name(key) {
                        vars.insert(name, self.value(value));
                    }
                }
            }
            None if node.is_null() => {}
            None => self.wrong_kind(node, "a mapping of variables"),
        }
        Arc::new(vars)
    }

    pub(super) fn variable_name(&mut self, node: &Node) -> Option<String> {
        let Some(name) = node.as_str() else {
            self.wrong_kind(node, "a variable's name");
            return None;
        };
        let sound = name.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_alphanumeric() || c == '_');
        if !sound {
            self.problem(&node.span, format!("`{name}` cannot be a variable's name")).help =
                Some("letters, digits and `_`, and no digit first".to_owned());
            return None;
        }
        Some(name.to_owned())
    }

    /// One string, or a list of them; `split` takes commas apart (tags).
    pub(super) fn strings(&mut self, node: &Node, split: bool) -> Vec<String> {
        let items = node.as_seq().map_or_else(|| vec![node.clone()], <[Node]>::to_vec);
        let mut strings = Vec::new();
        for item in items {
            match item.as_str() {
                Some(text) if split => {
                    strings.extend(text.split(',').map(|part| part.trim().to_owned()));
                }
                Some(text) => strings.push(text.to_owned()),
                // A tag may be a number; its spelling is its name.
                None if item.is_scalar() => strings.push(item.raw().to_owned()),
                None => self.wrong_kind(&item, "a string"),
            }
        }
        strings
    }

    pub(super) fn require_map<'n>(&mut self, node: &'n Node, what: &str) -> Option<&'n Map> {
        let map = node.as_map();
        if map.is_none() {
            self.wrong_kind(node, what);
        }
        map
    }
}
