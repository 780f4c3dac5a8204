//! Reads files and collects every mistake in them, not only the first.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
};

use fleet_yaml::{Diagnostic, Map, Node, Severity, Source, Span};

use crate::external;

use super::{
    Directives, Play, Role, Step, Task, Vars,
    books::{File, Shelf},
    unset::Unset,
};

/// How deep imports may stand in one another. Ansible ends at Python's limit of recursion.
pub(super) const DEPTH: usize = 64;

/// Something that was noticed.
struct Noticed {
    what: Diagnostic,
    /// Ansible tells it only when a host reaches it.
    late: bool,
}

/// All that was noticed, in the order of the places, each once.
#[derive(Default)]
pub(super) struct Told {
    pub(super) mistakes: Vec<Diagnostic>,
    pub(super) late: Vec<Diagnostic>,
    pub(super) warnings: Vec<Diagnostic>,
}

/// Reads what belongs together: a playbook, or what one include names.
pub(super) struct Reader<'a> {
    pub(super) shelf: &'a Shelf,
    problems: Vec<Noticed>,
    pub(super) next_id: usize,
    /// The directory of the play's files.
    pub(super) dir: PathBuf,
    /// Where in the files this is.
    pub(super) here: Here,
    /// The play that is read.
    pub(super) play: PlayWide,
    /// A play so far works on this machine, and may make files that later tasks name.
    pub(super) makes_files: bool,
    /// Template files that were looked at, each with its syntax.
    pub(super) templates: HashSet<(PathBuf, String)>,
    /// Reserved tags that were told of.
    pub(super) reserved: HashSet<String>,
    /// The `import_playbook`s that this stands in, outermost first, with the variables that they hand over.
    pub(super) imports: Vec<(Directives, Arc<Vars>)>,
    /// Dynamic includes that were read, to be followed when the play is whole; whether they are handlers.
    pub(super) includes: Vec<(Arc<Task>, bool)>,
    /// Where modules of the project are looked for.
    pub(super) modules: external::Search,
    /// A condition may keep hosts from what is read.
    pub(super) conditional: bool,
    /// Variables that nothing in the playbook sets.
    pub(super) unset: Vec<Unset>,
    /// Text that could not be read, being no YAML: what is missing elsewhere may stand there.
    pub(super) left_out: String,
    /// How many imports this stands in.
    pub(super) depth: usize,
    /// What is read was looked at before: its templates and arguments are known to be sound.
    pub(super) trusted: bool,
}

/// Where in the files something stands.
#[derive(Clone, Default)]
pub(super) struct Here {
    /// The directories of this file and of those that include it, nearest first.
    pub(super) files: Arc<[PathBuf]>,
    /// Where the files of tasks are looked for.
    pub(super) search: Arc<[PathBuf]>,
    /// These are handlers.
    pub(super) handlers: bool,
}

/// What is gathered from all over a play.
#[derive(Default)]
pub(super) struct PlayWide {
    /// Its variables, as far as they are known before the run.
    pub(super) vars: Vec<Arc<Vars>>,
    /// Roles of `import_role`.
    pub(super) roles: Vec<Arc<Role>>,
    /// Their handlers.
    pub(super) handlers: Vec<Arc<Task>>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(shelf: &'a Shelf, next_id: usize, dir: PathBuf) -> Self {
        let modules = shelf.modules(&dir);
        Self {
            modules,
            shelf,
            problems: Vec::new(),
            next_id,
            dir,
            here: Here::default(),
            play: PlayWide::default(),
            makes_files: false,
            templates: HashSet::new(),
            reserved: HashSet::new(),
            imports: Vec::new(),
            includes: Vec::new(),
            conditional: false,
            unset: Vec::new(),
            left_out: String::new(),
            depth: 0,
            trusted: false,
        }
    }

    /// The plays of a playbook file.
    pub(super) fn playbook(&mut self, path: &Path) -> Vec<Arc<Play>> {
        let mut plays = Vec::new();
        if let Some(file) = self.open(path) {
            self.plays(&file, &mut plays);
        }
        plays
    }

    /// The plays of a playbook that is no file.
    pub(super) fn playbook_text(&mut self, source: Arc<Source>) -> Vec<Arc<Play>> {
        let mut plays = Vec::new();
        let file = File::of(source);
        self.noticed(&file);
        self.plays(&file, &mut plays);
        plays
    }

    /// The plays of a file, behind those that are there.
    pub(super) fn plays(&mut self, file: &File, plays: &mut Vec<Arc<Play>>) {
        let before = plays.len();
        let mut empty = true;
        for document in file.documents.iter().filter(|node| !node.is_null()) {
            let Some(list) = document.as_seq() else {
                empty = false;
                let help = document.get("hosts").is_some();
                self.wrong_kind(document, "a list of plays").help =
                    help.then(|| "begin each play with a dash: `- hosts: all`".to_owned());
                continue;
            };
            for item in list {
                empty = false;
                self.play_or_import(item, plays);
            }
        }
        if empty && before == 0 && file.mistakes.is_empty() {
            self.problem(&file.source.span(0, 0), "this playbook has no plays")
                .help = Some("a play begins with `- hosts: all`".to_owned());
        }
    }

    /// Tells what was noticed when a file was taken apart.
    fn noticed(&mut self, file: &File) {
        for noticed in file.warnings.iter().chain(&file.mistakes) {
            self.tell(noticed.clone(), false);
        }
        self.left_out.push_str(&file.left_out);
    }

    /// A file; its warnings are told the first time.
    pub(super) fn open(&mut self, path: &Path) -> Option<Arc<File>> {
        match self.shelf.file(path) {
            Ok(file) => {
                self.noticed(&file);
                Some(file)
            }
            Err(problem) => {
                self.tell(problem, false);
                None
            }
        }
    }

    /// The tasks of a file, from now on at that place.
    pub(super) fn task_file(
        &mut self,
        path: &Path,
        read: impl FnOnce(&mut Self, &Node) -> Vec<Step>,
    ) -> Option<Vec<Step>> {
        let file = self.open(path)?;
        let content = file.content();
        if let Some(second) = file.documents.get(1) {
            self.problem(
                &second.span,
                "a file of tasks is one document, and this is its second",
            )
            .help = Some("take out the line `---` before it".to_owned());
        }
        let mistakes = self.mistakes();
        let trusted = self.trusted;
        self.trusted = file.looked_at.load(Ordering::Relaxed);
        let steps = read(self, &content);
        self.trusted = trusted;
        if self.mistakes() == mistakes {
            file.looked_at.store(true, Ordering::Relaxed);
        }
        Some(steps)
    }

    fn mistakes(&self) -> usize {
        let errors = self.problems.iter();
        errors
            .filter(|problem| problem.what.severity == Severity::Error)
            .count()
    }

    /// What was read, unless there are mistakes in it. Those that a task finds for itself are left to it.
    pub(super) fn outcome<T>(self, read: Option<T>) -> Result<T, Vec<Diagnostic>> {
        let told = self.told();
        match read {
            Some(read) if told.mistakes.is_empty() => Ok(read),
            Some(_) => Err(told.mistakes),
            None => Err([told.mistakes, told.late].concat()),
        }
    }

    /// What was noticed, in the order of the places, each once, though a block hands its own on to every task in it and a
    /// role may be used twice.
    pub(super) fn told(self) -> Told {
        let mut sources: Vec<PathBuf> = Vec::new();
        let mut place = |problem: &Diagnostic| {
            let Some(span) = &problem.span else {
                return (usize::MAX, 0);
            };
            let known = sources.iter().position(|name| *name == span.source.name);
            let file = known.unwrap_or_else(|| {
                sources.push(span.source.name.clone());
                sources.len() - 1
            });
            (file, span.start)
        };
        let mut placed: Vec<_> = self
            .problems
            .into_iter()
            .map(|problem| (place(&problem.what), problem))
            .collect();
        placed.sort_by_key(|(place, _)| *place);
        let mut once = HashSet::new();
        let mut told = Told::default();
        for (_, Noticed { what, late }) in placed {
            if !once.insert(what.to_string()) {
                continue;
            }
            match (what.severity, late) {
                (Severity::Warning, _) => told.warnings.push(what),
                (Severity::Error, false) => told.mistakes.push(what),
                (Severity::Error, true) => told.late.push(what),
            }
        }
        told
    }

    /// A mistake in the playbook itself.
    pub(super) fn problem(&mut self, span: &Span, message: impl Into<String>) -> &mut Diagnostic {
        self.tell(Diagnostic::error(span.clone(), message), false)
    }

    /// A mistake that a host would run into.
    pub(super) fn late(&mut self, span: &Span, message: impl Into<String>) -> &mut Diagnostic {
        self.tell(Diagnostic::error(span.clone(), message), true)
    }

    pub(super) fn warning(&mut self, span: &Span, message: impl Into<String>) -> &mut Diagnostic {
        self.tell(Diagnostic::warning(span.clone(), message), false)
    }

    pub(super) fn tell(&mut self, what: Diagnostic, late: bool) -> &mut Diagnostic {
        self.problems.push(Noticed { what, late });
        let last = self.problems.len() - 1;
        &mut self.problems[last].what
    }

    pub(super) fn tell_late(&mut self, found: Vec<Diagnostic>) {
        for problem in found {
            self.tell(problem, true);
        }
    }

    /// Runs something whose problems are nobody's business.
    pub(super) fn silently<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> T {
        let told = self.problems.len();
        let outcome = read(self);
        self.problems.truncate(told);
        outcome
    }

    /// Runs something in which every mistake is one that a host would run into.
    pub(super) fn all_late<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> T {
        let told = self.problems.len();
        let outcome = read(self);
        for problem in &mut self.problems[told..] {
            problem.late = true;
        }
        outcome
    }

    pub(super) fn wrong_kind(&mut self, node: &Node, expected: &str) -> &mut Diagnostic {
        self.problem(
            &node.span,
            format!("expected {expected}, not {}", node.kind_name()),
        )
    }

    /// Looks at the templates of a value.
    pub(super) fn look(&mut self, node: &Node) {
        if !self.trusted {
            self.tell_late(self.shelf.settings.check.value(node));
        }
    }

    /// Looks at a bare expression.
    pub(super) fn look_at_expression(&mut self, expression: &str, span: &Span) {
        if !self.trusted {
            let check = &self.shelf.settings.check;
            self.tell_late(check.expression(expression, span));
        }
    }

    /// Looks at the templates of a value that is kept as written.
    pub(super) fn value(&mut self, node: &Node) -> Node {
        self.look(node);
        node.clone()
    }

    /// A condition: an expression without braces, or a list of them that must all hold.
    pub(super) fn conditions(&mut self, node: &Node) -> Vec<Node> {
        let items = node.as_seq().unwrap_or(std::slice::from_ref(node));
        let mut conditions = Vec::new();
        for condition in items.iter().filter(|node| !node.is_null()) {
            match (condition.as_str(), condition.scalar_text()) {
                (Some(text), _) => self.look_at_expression(text, &condition.span),
                (None, Some(_)) => {}
                (None, None) => {
                    self.wrong_kind(condition, "a condition");
                    continue;
                }
            }
            conditions.push(condition.clone());
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
            None => {
                self.wrong_kind(node, "a mapping of variables");
            }
        }
        Arc::new(vars)
    }

    /// `vars:`
    pub(super) fn own_vars(&mut self, map: &Map) -> Arc<Vars> {
        map.get("vars")
            .map_or_else(Arc::default, |node| self.vars(node))
    }

    pub(super) fn variable_name(&mut self, node: &Node) -> Option<String> {
        let Some(name) = node.as_str() else {
            let found = node.kind_name();
            self.problem(
                &node.span,
                format!("Invalid variable name: expected a text, not {found}"),
            );
            return None;
        };
        let mut letters = name.chars();
        let sound = letters
            .next()
            .is_some_and(|c| c.is_alphabetic() || c == '_')
            && letters.all(|c| c.is_alphanumeric() || c == '_');
        if !sound {
            self.problem(&node.span, format!("Invalid variable name `{name}`"))
                .help = Some("letters, digits and `_`, and no digit first".to_owned());
            return None;
        }
        Some(name.to_owned())
    }

    /// One string, or a list of them.
    pub(super) fn strings(&mut self, node: &Node) -> Vec<String> {
        let items = node.as_seq().unwrap_or(std::slice::from_ref(node));
        let mut strings = Vec::new();
        for item in items {
            match item.as_str() {
                Some(text) => strings.push(text.to_owned()),
                None if item.is_scalar() => strings.push(item.raw().to_owned()),
                None => {
                    self.wrong_kind(item, "a string");
                }
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
