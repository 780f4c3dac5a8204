//! Reads a playbook file and collects every mistake in it, not only the first.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use fleet_yaml::{Diagnostic, Map, Node, Source, Span};

use super::{Check, Playbook, Vars};

/// A playbook, and what was noticed while reading it.
#[derive(Debug)]
pub struct Reading {
    /// The playbook; where there are mistakes, what of it could be understood.
    pub playbook: Playbook,
    /// All mistakes that can be found without a host, each at its place. With any the playbook must not be run.
    pub mistakes: Vec<Diagnostic>,
    /// What is taken, but may not be meant.
    pub warnings: Vec<Diagnostic>,
}

/// Reads the playbook at `path`. `check` looks at its templates.
#[must_use]
pub fn read(path: &Path, check: &dyn Check) -> Reading {
    let mut reading = Reading {
        playbook: Playbook {
            path: path.to_owned(),
            plays: Vec::new(),
        },
        mistakes: Vec::new(),
        warnings: Vec::new(),
    };
    let source = match Source::read(path) {
        Ok(source) => source,
        Err(problem) => {
            reading.mistakes.push(problem);
            return reading;
        }
    };
    let loaded = match fleet_yaml::load(Arc::clone(&source)) {
        Ok(loaded) => loaded,
        Err(problem) => {
            reading.mistakes.push(problem);
            return reading;
        }
    };
    reading.warnings = loaded.warnings;
    let mut reader = Reader {
        problems: Vec::new(),
        next_id: 0,
        check,
        dir: path.parent().map(Path::to_owned).unwrap_or_default(),
        makes_files: false,
        templates: HashSet::new(),
    };
    let mut empty = true;
    for document in loaded
        .documents
        .iter()
        .filter(|document| !document.is_null())
    {
        let Some(list) = document.as_seq() else {
            empty = false;
            reader.wrong_kind(document, "a list of plays");
            if let Some(last) = reader
                .problems
                .last_mut()
                .filter(|_| document.get("hosts").is_some())
            {
                last.help = Some("begin each play with a dash: `- hosts: all`".to_owned());
            }
            continue;
        };
        for play in list {
            empty = false;
            let index = reading.playbook.plays.len();
            reading
                .playbook
                .plays
                .extend(reader.play(play, index).map(Arc::new));
        }
    }
    if empty {
        reader
            .problem(&source.span(0, 0), "this playbook has no plays")
            .help = Some("a play begins with `- hosts: all`".to_owned());
    }
    reading.mistakes = in_order(reader.problems, &source);
    reading
}

/// In the order of their places, those in other files (templates) behind; each once, though a block hands its own on
/// to every task in it.
fn in_order(mut problems: Vec<Diagnostic>, source: &Arc<Source>) -> Vec<Diagnostic> {
    let place = |problem: &Diagnostic| match &problem.span {
        Some(span) if Arc::ptr_eq(&span.source, source) => span.start,
        _ => usize::MAX,
    };
    problems.sort_by_key(place);
    let mut told = HashSet::new();
    problems.retain(|problem| told.insert(problem.to_string()));
    problems
}

pub(super) struct Reader<'a> {
    pub(super) problems: Vec<Diagnostic>,
    pub(super) next_id: usize,
    pub(super) check: &'a dyn Check,
    /// The playbook's directory.
    pub(super) dir: PathBuf,
    /// A play so far works on this machine, and may make files that later tasks name.
    pub(super) makes_files: bool,
    /// Template files that were looked at, each with its syntax.
    pub(super) templates: HashSet<(PathBuf, String)>,
}

impl Reader<'_> {
    pub(super) fn problem(&mut self, span: &Span, message: impl Into<String>) -> &mut Diagnostic {
        self.problems.push(Diagnostic::error(span.clone(), message));
        let last = self.problems.len() - 1;
        &mut self.problems[last]
    }

    pub(super) fn wrong_kind(&mut self, node: &Node, expected: &str) {
        self.problem(
            &node.span,
            format!("expected {expected}, not {}", node.kind_name()),
        );
    }

    /// Looks at the templates of a value that is kept as written.
    pub(super) fn value(&mut self, node: &Node) -> Node {
        self.problems.extend(self.check.value(node));
        node.clone()
    }

    /// One value, or a list of them.
    pub(super) fn list(&mut self, node: &Node) -> Vec<Node> {
        let items = node
            .as_seq()
            .map_or_else(|| vec![node.clone()], <[Node]>::to_vec);
        for item in &items {
            self.problems.extend(self.check.value(item));
        }
        items
    }

    /// A condition: an expression without braces, or a list of them that must all hold.
    pub(super) fn conditions(&mut self, node: &Node) -> Vec<Node> {
        let conditions = node
            .as_seq()
            .map_or_else(|| vec![node.clone()], <[Node]>::to_vec);
        for condition in &conditions {
            match condition.scalar_text() {
                Some(text) if condition.as_str().is_some() => {
                    self.problems
                        .extend(self.check.expression(&text, &condition.span));
                }
                Some(_) => {}
                None => self.wrong_kind(condition, "a condition"),
            }
        }
        conditions
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
        let sound = name
            .chars()
            .next()
            .is_some_and(|c| c.is_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_alphanumeric() || c == '_');
        if !sound {
            self.problem(&node.span, format!("`{name}` cannot be a variable's name"))
                .help = Some("letters, digits and `_`, and no digit first".to_owned());
            return None;
        }
        Some(name.to_owned())
    }

    /// One string, or a list of them; `split` takes commas apart (tags).
    pub(super) fn strings(&mut self, node: &Node, split: bool) -> Vec<String> {
        let items = node
            .as_seq()
            .map_or_else(|| vec![node.clone()], <[Node]>::to_vec);
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
