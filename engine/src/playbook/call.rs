//! What a task calls: its module in all forms of writing it, and the arguments.

use std::sync::Arc;

use fleet_modules::{
    module::{self, Module},
    tasks::MODULES,
};
use fleet_yaml::{Map, Node, Span};
use indexmap::IndexMap;
use serde_json::Value;

use super::{
    Action, Include, LocalAction, Parameter, Task,
    arguments::Shape,
    check::{is_literal, is_templated},
    elsewhere::{self, Elsewhere},
    free_form,
    keywords::{self, Place},
    reader::Reader,
};
use crate::external::{External, Unsupported};

/// Keywords that name a module by their value.
const BY_VALUE: [&str; 2] = ["action", "local_action"];

/// A module as it is called, before its arguments are looked at.
pub(super) struct Call {
    /// Its name as written.
    pub(super) name: String,
    /// What it is.
    pub(super) target: Target,
    /// Where it stands.
    pub(super) key: Node,
    /// The whole task.
    pub(super) task: Span,
    /// The value behind it.
    pub(super) value: Node,
    pub(super) arguments: IndexMap<String, Node>,
    /// Arguments that a template makes.
    pub(super) template: Option<Node>,
    /// `local_action`.
    pub(super) local: bool,
}

/// What a module's name stands for.
#[derive(Clone)]
pub(super) enum Target {
    /// A module of the controller.
    Local(LocalAction),
    /// A module of the host.
    Module(&'static Module),
    /// A dynamic include.
    Include(Include),
    /// A static import.
    Import(Include),
    /// A module of the project.
    External(Arc<External>),
    /// A template that makes the name.
    Template,
    /// A module that fleetctl does not have.
    Elsewhere(Elsewhere),
}

impl Target {
    fn find(name: &str) -> Option<Self> {
        match short(name) {
            "include_tasks" => return Some(Self::Include(Include::Tasks)),
            "include_role" => return Some(Self::Include(Include::Role)),
            "import_tasks" => return Some(Self::Import(Include::Tasks)),
            "import_role" => return Some(Self::Import(Include::Role)),
            _ => {}
        }
        if let Some(action) = LocalAction::find(name) {
            return Some(Self::Local(action));
        }
        module::find(name)
            .filter(|module| !module.name.starts_with('_'))
            .map(Self::Module)
    }

    /// The argument that takes the free text.
    fn free_form(&self) -> Option<&'static str> {
        match self {
            Self::Local(action) => action.free_form(),
            Self::Module(module) => module.free_form,
            Self::Include(Include::Tasks) | Self::Import(Include::Tasks) => Some("file"),
            Self::Include(Include::Role) | Self::Import(Include::Role) => None,
            Self::External(_) | Self::Template | Self::Elsewhere(_) => Some("_raw_params"),
        }
    }

    /// The names of its arguments; none where any name is taken.
    pub(super) fn arguments(&self) -> Option<Vec<String>> {
        match self {
            Self::Local(action) => action
                .arguments()
                .map(|own| own.iter().map(|own| own.name.to_owned()).collect()),
            Self::Module(module) => Shape::of(module).names.clone(),
            // Their own reader says what they take.
            Self::Include(_)
            | Self::Import(_)
            | Self::External(_)
            | Self::Template
            | Self::Elsewhere(_) => None,
        }
    }

    /// The required arguments, each with all its spellings.
    pub(super) fn required(&self) -> Vec<Vec<String>> {
        match self {
            Self::Local(action) => action
                .arguments()
                .unwrap_or_default()
                .iter()
                .filter(|own: &&Parameter| own.required)
                .map(|own| vec![own.name.to_owned()])
                .collect(),
            Self::Module(module) => Shape::of(module).required.clone(),
            Self::Include(_)
            | Self::Import(_)
            | Self::External(_)
            | Self::Template
            | Self::Elsewhere(_) => Vec::new(),
        }
    }
}

impl Call {
    /// The name without Ansible's own collections.
    pub(super) fn short(&self) -> &str {
        short(&self.name)
    }

    /// The place of an argument's name.
    pub(super) fn place_of(&self, argument: &str) -> Span {
        self.value
            .as_map()
            .and_then(|map| map.entry(argument))
            .map_or(&self.value.span, |(key, _)| &key.span)
            .clone()
    }
}

impl Reader<'_> {
    /// The module of a task: the one key that is no keyword, or what `action` and `local_action` say.
    pub(super) fn call(&mut self, task: &Node, map: &Map, collections: &[String]) -> Option<Call> {
        let place = match self.here.handlers {
            true => Place::Handler,
            false => Place::Task,
        };
        let own = map.get("collections").filter(|node| !node.is_null());
        let own = own.map(|node| self.silently(|reader| reader.strings(node)));
        let collections = own.as_deref().unwrap_or(collections);
        let mut found: Option<(&Node, &Node, Option<Target>)> = None;
        let mut sound = true;
        for (key, value) in map.iter() {
            let Some(name) = key.as_str() else {
                self.wrong_kind(key, "a keyword or a module");
                sound = false;
                continue;
            };
            let by_value = BY_VALUE.contains(&name);
            if place.takes(name) && !by_value {
                continue;
            }
            let target = match by_value {
                true => None,
                false => match self.target(name, place, &key.span, collections) {
                    Some(target) => Some(target),
                    None => {
                        sound = false;
                        continue;
                    }
                },
            };
            if let Some((first, _, _)) = found {
                self.problem(&key.span, "a task has one module, and this is its second")
                    .related
                    .push((first.span.clone(), "the first".to_owned()));
                sound = false;
                continue;
            }
            found = Some((key, value, target));
        }
        let Some((key, value, target)) = found else {
            if sound {
                self.problem(&task.span, "this task has no module").help =
                    Some("a task is keywords and one module with its arguments".to_owned());
            }
            return None;
        };
        let (name, value, target) = match target {
            Some(target) => (key.as_str()?.to_owned(), value.clone(), target),
            None => {
                let (name, rest) = self.named_by_value(value)?;
                let target = self.target(&name, Place::Task, &value.span, collections)?;
                (name, rest, target)
            }
        };
        let mut call = Call {
            local: key.as_str() == Some("local_action"),
            name,
            target,
            key: key.clone(),
            task: task.span.clone(),
            value,
            arguments: IndexMap::new(),
            template: None,
        };
        self.arguments(&mut call)?;
        self.more_arguments(map, &mut call);
        Some(call)
    }

    /// What a module's name stands for; a mistake where it stands for nothing.
    fn target(
        &mut self,
        name: &str,
        place: Place,
        span: &Span,
        collections: &[String],
    ) -> Option<Target> {
        if is_templated(name) {
            return Some(Target::Template);
        }
        let own = Target::find(name);
        if let Err(problem) = self.modules.no_plugin(name) {
            self.unsupported(span, &problem);
            return None;
        }
        let searched = match own {
            // Steering the play is nobody else's.
            Some(Target::Include(_) | Target::Import(_)) => Ok(None),
            _ => self.modules.find(name, collections, own.is_some()),
        };
        match (searched, own) {
            (Ok(Some(module)), _) => return Some(Target::External(module)),
            (_, Some(own)) => return Some(own),
            (Ok(None), None) => {}
            (Err(problem), None) => {
                self.unsupported(span, &problem);
                return None;
            }
        }
        match short(name) {
            "import_playbook" => {
                self.problem(
                    span,
                    "`import_playbook` stands among plays, not among tasks",
                )
                .help = Some("write it as an item of the playbook itself".to_owned());
                return None;
            }
            "include" => {
                self.problem(span, "`include` is gone").help = Some(
                    "use `include_tasks`, read when a host reaches it, or `import_tasks`, read before the run"
                        .to_owned(),
                );
                return None;
            }
            _ => {}
        }
        if let Some(found) = elsewhere::find(name) {
            return Some(Target::Elsewhere(found));
        }
        let refusal = keywords::refusal(place, name, &module_names());
        self.problem(span, refusal.message).help = refusal.help;
        None
    }

    /// A module that is there and cannot be run.
    fn unsupported(&mut self, span: &Span, problem: &Unsupported) {
        self.problem(span, problem.to_string()).help = problem.help.map(str::to_owned);
    }

    /// `action: module key=value` or `action: {module: name, key: value}`: the name, and the arguments behind it.
    fn named_by_value(&mut self, value: &Node) -> Option<(String, Node)> {
        let split = |text: &str| {
            let words = free_form::words(text);
            let end = words.first().map_or(text.len(), |first| first.end);
            let (name, rest) = text.split_at(end);
            (name.trim().to_owned(), rest.trim().to_owned())
        };
        let (name, arguments) = match (value.as_str(), value.as_map()) {
            (Some(text), _) => {
                let (name, rest) = split(text);
                let rest = match rest.is_empty() {
                    true => Node::from_json(&Value::Null, &value.span),
                    false => Node::string(&rest, &value.span),
                };
                (name, rest)
            }
            (None, Some(map)) => {
                let Some(module) = map.get("module").and_then(Node::as_str) else {
                    self.problem(&value.span, "`action` needs the name of a module")
                        .help = Some("`action: {module: NAME, …}`".to_owned());
                    return None;
                };
                let (name, rest) = split(module);
                let others = map.iter().filter(|(key, _)| key.as_str() != Some("module"));
                let mut entries: Vec<_> = others.map(|(k, v)| (k.clone(), v.clone())).collect();
                let split = free_form::split(&rest, true, |_| true);
                let text = |text: &str| Node::string(text, &value.span);
                for (key, value) in &split.arguments {
                    entries.push((text(key), text(value)));
                }
                if !split.rest.is_empty() {
                    entries.push((text("_raw_params"), text(&split.rest)));
                }
                (name, Node::mapping(entries, &value.span))
            }
            (None, None) => {
                self.wrong_kind(value, "a module with its arguments");
                return None;
            }
        };
        if name.is_empty() {
            self.problem(&value.span, "`action` needs the name of a module");
            return None;
        }
        Some((name, arguments))
    }

    fn arguments(&mut self, call: &mut Call) -> Option<()> {
        let value = call.value.clone();
        if let Some(map) = value.as_map() {
            for (key, value) in map.iter() {
                let Some(name) = key.as_str() else {
                    self.wrong_kind(key, "an argument's name");
                    continue;
                };
                let name = match (name, call.target.free_form()) {
                    ("_raw_params", Some(own)) => own,
                    _ => name,
                };
                call.arguments.insert(name.to_owned(), self.value(value));
            }
            return Some(());
        }
        if value.is_null() {
            return Some(());
        }
        let free_form = call.target.free_form();
        let Some(text) = value
            .scalar_text()
            .filter(|_| value.as_str().is_some() || free_form.is_some())
        else {
            self.wrong_kind(&value, "a mapping of arguments");
            return None;
        };
        let node = match value.as_str() {
            Some(_) => self.value(&value),
            None => Node::string(&text, &value.span),
        };
        let names = call.target.arguments();
        let file = matches!(free_form, Some("file"));
        let known = |key: &str| match &names {
            Some(names) => names.iter().any(|name| name == key),
            None => !file || matches!(key, "file" | "apply"),
        };
        let split = free_form::split(&text, free_form.is_some(), known);
        for (key, text) in split.arguments {
            call.arguments.insert(key, Node::string(&text, &node.span));
        }
        if split.rest.is_empty() {
            return Some(());
        }
        match free_form {
            Some(argument) => {
                let rest = match split.rest == text {
                    true => node,
                    false => Node::string(&split.rest, &node.span),
                };
                call.arguments.insert(argument.to_owned(), rest);
            }
            None if is_templated(&split.rest) && call.arguments.is_empty() => {
                call.template = Some(node);
            }
            None => {
                self.late(
                    &value.span,
                    format!(
                        "`{}` takes `key=value` arguments, not `{}`",
                        call.name, split.rest
                    ),
                )
                .help = Some("write the arguments as a mapping below the module".to_owned());
                call.arguments.insert(
                    "_raw_params".to_owned(),
                    Node::string(&split.rest, &node.span),
                );
            }
        }
        Some(())
    }

    /// `args:`, a mapping or a template that makes one.
    fn more_arguments(&mut self, map: &Map, call: &mut Call) {
        let Some(more) = map.get("args").filter(|node| !node.is_null()) else {
            return;
        };
        if let Some(more) = more.as_map() {
            for (key, value) in more.iter() {
                let name = match (key.as_str().unwrap_or_default(), call.target.free_form()) {
                    ("_raw_params", Some(own)) => own,
                    (name, _) => name,
                };
                let value = self.value(value);
                call.arguments.entry(name.to_owned()).or_insert(value);
            }
            return;
        }
        match more.as_str() {
            Some(text) if is_templated(text) => call.template = Some(self.value(more)),
            _ => {
                self.wrong_kind(more, "a mapping of arguments, or a template that gives one");
            }
        }
    }

    /// What a task does whose name was a template.
    pub(super) fn named_action(&mut self, name: &str, task: &Task) -> Option<Action> {
        let Action::Templated {
            arguments, span, ..
        } = &task.action
        else {
            return Some(task.action.clone());
        };
        let collections = task.directives.collections.clone();
        let target = self.target(name.trim(), Place::Task, &task.span, &collections)?;
        let mut call = Call {
            name: name.trim().to_owned(),
            target,
            key: Node::string(name, &task.span),
            task: task.span.clone(),
            value: Node::string("", span),
            arguments: IndexMap::new(),
            template: task.args.clone(),
            local: false,
        };
        for (key, value) in arguments {
            if key == "_raw_params"
                && let Some(text) = value.as_str()
            {
                call.value = Node::string(text, &value.span);
                self.arguments(&mut call)?;
            } else {
                call.arguments.insert(key.clone(), value.clone());
            }
        }
        if let Target::Import(_) = call.target {
            self.problem(
                &task.span,
                "an import is read before the run, and its name is no template",
            );
            return None;
        }
        self.conditional = true;
        self.action(&call, &task.directives, &task.directives)
    }
}

/// A name without Ansible's own collections.
pub(super) fn short(name: &str) -> &str {
    name.strip_prefix("ansible.builtin.")
        .or_else(|| name.strip_prefix("ansible.legacy."))
        .unwrap_or(name)
}

/// Every module's name, for near matches.
pub(super) fn module_names() -> Vec<&'static str> {
    MODULES
        .iter()
        .map(|module| module.name)
        .filter(|name| !name.starts_with('_'))
        .chain(LocalAction::names())
        .chain([
            "import_role",
            "import_tasks",
            "include_role",
            "include_tasks",
        ])
        .collect()
}

/// Whether all arguments of an include are written out.
pub(super) fn is_plain(arguments: &IndexMap<String, Node>) -> bool {
    arguments.values().all(is_literal)
}
