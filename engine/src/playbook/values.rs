//! Values as far as they can be judged without a host: those of keywords, and arguments without a template.

use std::path::{Path, PathBuf};

use fleet_modules::module::{self, ArgumentError, Module};
use fleet_yaml::{Diagnostic, Map, Node, Severity, Span};
use indexmap::IndexMap;

use super::{
    Action, LocalAction,
    check::{is_literal, is_templated, truth},
    files,
    reader::Reader,
};
use crate::{template::FileSyntax, vault::Vault};

/// Keywords.
impl Reader<'_> {
    /// A keyword that takes yes or no.
    pub(super) fn flag(&mut self, map: &Map, key: &str) -> Option<Node> {
        self.keyword_value(map, key, "yes or no", |node| truth(node).is_some())
    }

    /// A keyword that takes a text.
    pub(super) fn text(&mut self, map: &Map, key: &str) -> Option<Node> {
        self.keyword_value(map, key, "a string", |node| node.is_scalar())
    }

    /// A keyword that takes a whole number of this range.
    pub(super) fn number(&mut self, map: &Map, key: &str, least: i64, most: i64) -> Option<Node> {
        let expected = match most {
            i64::MAX => format!("a whole number from {least} on"),
            _ => format!("a whole number from {least} to {most}"),
        };
        self.keyword_value(map, key, &expected, |node| {
            let number = node.as_i64().or_else(|| node.as_str()?.trim().parse().ok());
            number.is_some_and(|number| (least..=most).contains(&number))
        })
    }

    /// The value of a keyword, as written; a template may become anything.
    pub(super) fn keyword_value(
        &mut self,
        map: &Map,
        key: &str,
        expected: &str,
        fits: impl Fn(&Node) -> bool,
    ) -> Option<Node> {
        // Without a value a keyword is as good as not there.
        let node = map.get(key).filter(|node| !node.is_null())?;
        let whole_template = node.as_str().is_some_and(|_| !is_literal(node));
        if !whole_template && !fits(node) {
            let found = found(node);
            let message = format!("`{key}` takes {expected}, not {found}");
            // What is wrong with a play is wrong before the run; a task finds it for itself.
            match map.get("hosts").is_some() {
                true => self.problem(&node.span, message),
                false => self.late(&node.span, message),
            };
        }
        Some(self.value(node))
    }
}

/// What stands there, in a message.
fn found(node: &Node) -> String {
    match node.scalar_text() {
        Some(text) if !text.contains('\n') => format!("`{text}`"),
        _ => node.kind_name().to_owned(),
    }
}

/// Arguments.
impl Reader<'_> {
    /// Looks at the values of an action's arguments, and at the files that they name. `key` is where the module stands;
    /// the arguments are `whole` where nothing else can give more of them.
    pub(super) fn values(&mut self, action: &Action, key: &Span, whole: bool) {
        match action {
            Action::Module {
                module,
                written,
                arguments,
            } => {
                self.literals(module, written, arguments, key, whole);
            }
            Action::Local {
                action, arguments, ..
            } => match action {
                LocalAction::Template => {
                    let kept = arguments.iter().filter(|(name, _)| !files::is_syntax(name));
                    let kept = kept
                        .map(|(name, node)| (name.clone(), node.clone()))
                        .collect();
                    self.as_copy("template", &kept, key, whole);
                    self.template_file(arguments);
                }
                LocalAction::Copy => {
                    self.as_copy("copy", arguments, key, whole);
                    self.copied_file(arguments);
                }
                LocalAction::Assert => {
                    if let Some(that) = arguments.get("that") {
                        self.conditions(that);
                    }
                }
                LocalAction::Debug => {
                    if let Some(var) = arguments.get("var").and_then(Node::as_str) {
                        let span = &arguments["var"].span;
                        self.look_at_expression(var, span);
                    }
                }
                LocalAction::IncludeVars => {
                    if let Some(file) = arguments.get("file") {
                        self.file_of_variables(file);
                    }
                }
                LocalAction::Meta => self.meta(arguments),
                LocalAction::SetFact => {
                    for (name, node) in arguments.iter().filter(|(name, _)| !is_templated(name)) {
                        self.all_late(|reader| {
                            reader.variable_name(&Node::string(name, &node.span))
                        });
                    }
                }
                _ => {}
            },
            Action::Include { .. }
            | Action::External { .. }
            | Action::Templated { .. }
            | Action::Missing { .. } => {}
        }
    }

    /// `copy` and `template` end as the module `copy` on the host.
    fn as_copy(
        &mut self,
        written: &str,
        arguments: &IndexMap<String, Node>,
        key: &Span,
        whole: bool,
    ) {
        let Some(copy) = module::find("copy") else {
            return;
        };
        let as_text = |(name, node): (&String, &Node)| {
            // A content of any type becomes a text on the way.
            let node = match name.as_str() {
                "content" if !node.is_scalar() && is_literal(node) => Node::string("", &node.span),
                _ => node.clone(),
            };
            (name.clone(), node)
        };
        let arguments = arguments.iter().map(as_text).collect();
        self.literals(copy, written, &arguments, key, whole);
    }

    /// Arguments without a template are what the module will get.
    fn literals(
        &mut self,
        module: &Module,
        written: &str,
        arguments: &IndexMap<String, Node>,
        key: &Span,
        whole: bool,
    ) {
        let mut given = serde_json::Map::new();
        for (name, node) in arguments
            .iter()
            .filter(|(_, node)| is_literal(node) && !node.is_null())
        {
            // A mode keeps its spelling: 0644 is octal, and its digits must survive.
            let value = match name.ends_with("mode") && node.as_i64().is_some() {
                true => node.raw().into(),
                false => node.to_json(),
            };
            given.insert(name.clone(), value);
        }
        let mut sound = true;
        // One mistake is told at a time; without its argument the next one shows.
        while let Err(problem) = (module.read)(&given.clone().into()) {
            let Some(name) = spelling(module, &given, &problem) else {
                break;
            };
            given.remove(&name);
            let place = arguments.get(&name).map_or(key, |node| &node.span);
            self.tell(wrong_argument(written, &problem, place), true);
            sound = false;
        }
        if sound
            && whole
            && arguments.values().all(is_literal)
            && let Err(problem) = (module.check)(&given.clone().into())
        {
            let name = spelling(module, &given, &problem);
            let node = name.and_then(|name| arguments.get(&name));
            let place = node.map_or(key, |node| &node.span);
            self.tell(wrong_argument(written, &problem, place), true);
        }
    }

    fn meta(&mut self, arguments: &IndexMap<String, Node>) {
        const KNOWN: [&str; 10] = [
            "clear_facts",
            "clear_host_errors",
            "end_batch",
            "end_host",
            "end_play",
            "end_role",
            "flush_handlers",
            "noop",
            "refresh_inventory",
            "reset_connection",
        ];
        let Some(node) = arguments.get("action") else {
            return;
        };
        let name = node.as_str().unwrap_or_default();
        if is_literal(node) && !KNOWN.contains(&name) {
            let near = fleet_yaml::nearest(name, KNOWN);
            let help = near.map_or_else(
                || format!("it takes `{}`", KNOWN.join("`, `")),
                |near| format!("did you mean `{near}`?"),
            );
            self.late(&node.span, format!("there is no `meta: {name}`"))
                .help = Some(help);
        }
    }

    fn template_file(&mut self, arguments: &IndexMap<String, Node>) {
        let Some(src) = arguments.get("src") else {
            return;
        };
        let Some(path) = self.named_file(src, "templates") else {
            return;
        };
        let mut syntax = FileSyntax::default();
        for (name, node) in arguments.iter().filter(|(name, _)| files::is_syntax(name)) {
            if !is_literal(node) {
                return;
            }
            let text = node.scalar_text().unwrap_or_default().into_owned();
            files::set_syntax(&mut syntax, name, text, truth(node).unwrap_or_default());
        }
        let already = self.templates.insert((path.clone(), format!("{syntax:?}")));
        if !already {
            return;
        }
        if !self.opens(&path, &src.span) {
            return;
        }
        // What is encrypted is looked at when it is used.
        match crate::sources::read_to_string(&path) {
            Ok(_) if Vault::is_vault_at(&path) => {}
            Ok(text) => self.tell_late(self.shelf.settings.check.file(&path, &text, &syntax)),
            Err(problem) if problem.kind() == std::io::ErrorKind::InvalidData => {
                let message = format!("{} is not UTF-8, and a template must be", path.display());
                self.late(&src.span, message);
            }
            Err(problem) => {
                self.late(
                    &src.span,
                    format!("cannot read {}: {problem}", path.display()),
                );
            }
        }
    }

    fn copied_file(&mut self, arguments: &IndexMap<String, Node>) {
        let on_the_host = arguments
            .get("remote_src")
            .is_some_and(|node| truth(node) != Some(false));
        if let Some(src) = arguments.get("src")
            && !on_the_host
        {
            let plain = arguments.get("decrypt").and_then(truth) == Some(false);
            if let Some(path) = self.named_file(src, "files").filter(|_| !plain) {
                self.opens(&path, &src.span);
            }
        }
    }

    /// A file of variables of the controller, if its name is written out.
    pub(super) fn file_of_variables(&mut self, name: &Node) {
        if let Some(path) = self.named_file(name, "vars") {
            self.opens(&path, &name.span);
        }
    }

    /// Whether a file of the controller can be opened, if it is encrypted.
    fn opens(&mut self, path: &Path, named: &Span) -> bool {
        let Err(problem) = self.shelf.settings.check.opens(path) else {
            return true;
        };
        let mut problem = problem.with_related(named.clone(), "named here");
        if self.conditional {
            problem.severity = Severity::Warning;
        }
        self.tell(problem, true);
        false
    }

    /// A file of the controller, if its name is written out: it must be there, unless a play makes files here.
    pub(super) fn named_file(&mut self, name: &Node, folder: &str) -> Option<PathBuf> {
        let text = name
            .as_str()
            .filter(|text| !is_templated(text) && !text.starts_with('~'))?;
        let mut search = self.here.search.to_vec();
        search.extend(files::search(&self.dir));
        match files::find(text, folder, &search) {
            Ok(path) => Some(path),
            Err(_) if self.makes_files => None,
            Err(tried) => {
                let mut missing = files::missing(text, &name.span, &tried);
                // A host that the condition keeps from it does not miss it.
                if self.conditional {
                    missing.severity = Severity::Warning;
                }
                self.tell(missing, true);
                None
            }
        }
    }
}

/// The message about an argument that a module cannot take.
pub(crate) fn wrong_argument(written: &str, problem: &ArgumentError, place: &Span) -> Diagnostic {
    let message = match &problem.argument {
        Some(argument) => format!("argument `{argument}` of `{written}`: {}", problem.message),
        None => format!("`{written}`: {}", problem.message),
    };
    let diagnostic = Diagnostic::error(place.clone(), message);
    match &problem.expected {
        Some(expected) => diagnostic.with_help(expected.clone()),
        None => diagnostic,
    }
}

/// The argument that an error is about, as it is written here.
fn spelling(
    module: &Module,
    given: &serde_json::Map<String, serde_json::Value>,
    problem: &ArgumentError,
) -> Option<String> {
    let own = problem.argument.as_deref()?;
    let is_own = |name: &str| {
        name == own
            || module
                .argument_aliases
                .iter()
                .any(|(alias, of)| *alias == name && *of == own)
    };
    given.keys().find(|name| is_own(name)).cloned()
}
