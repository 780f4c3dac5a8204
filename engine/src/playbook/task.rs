use fleet_modules::{module, tasks::MODULES};
use fleet_yaml::{Map, Node, nearest};
use indexmap::IndexMap;

use super::{
    Action, Directives, LocalAction, Loop, Parameter, Task, free_form,
    keywords::{self, Place},
    play::no_vars,
    reader::Reader,
};

impl Reader<'_> {
    pub(super) fn task(
        &mut self,
        node: &Node,
        place: Place,
        inherited: &Directives,
    ) -> Option<Task> {
        let map = self.require_map(node, place.noun())?;
        let action = self.action(node, map, place);
        let mut directives = inherited.clone();
        self.directives(map, &mut directives);
        let register = map
            .get("register")
            .and_then(|node| self.variable_name(node));
        let conditions = |reader: &mut Self, key: &str| {
            map.get(key)
                .map_or_else(Vec::new, |node| reader.conditions(node))
        };
        let task = Task {
            id: self.next_id,
            span: node.span.clone(),
            name: self.text(map, "name"),
            vars: map.get("vars").map_or_else(no_vars, |node| self.vars(node)),
            r#loop: self.r#loop(map),
            changed_when: conditions(self, "changed_when"),
            failed_when: conditions(self, "failed_when"),
            notify: map
                .get("notify")
                .map_or_else(Vec::new, |node| self.list(node)),
            listen: map
                .get("listen")
                .map_or_else(Vec::new, |node| self.strings(node, false)),
            register,
            directives,
            action: action?,
        };
        self.next_id += 1;
        Some(task)
    }

    fn r#loop(&mut self, map: &Map) -> Option<Loop> {
        let (items, flatten) = match (map.get("loop"), map.get("with_items")) {
            (Some(items), Some(other)) => {
                self.problem(&other.span, "a task has one loop, and this is its second")
                    .related
                    .push((items.span.clone(), "the first".to_owned()));
                (items, false)
            }
            (Some(items), None) => (items, false),
            (None, Some(items)) => (items, true),
            (None, None) => {
                if let Some((key, _)) = map.entry("loop_control") {
                    self.problem(&key.span, "`loop_control` without a loop");
                }
                return None;
            }
        };
        let items = match flatten {
            true => self.value(items),
            false => self.loop_items(map)?,
        };
        let mut made = Loop {
            items,
            flatten,
            variable: "item".to_owned(),
            index_variable: None,
            label: None,
        };
        let control = map
            .get("loop_control")
            .and_then(|node| self.require_map(node, "a mapping"));
        for (key, value) in control.into_iter().flat_map(Map::iter) {
            match key.as_str().unwrap_or_default() {
                "loop_var" => {
                    made.variable = self.variable_name(value).unwrap_or(made.variable);
                }
                "index_var" => made.index_variable = self.variable_name(value),
                "label" => made.label = Some(self.value(value)),
                other => {
                    let help = match other {
                        "pause" | "extended" | "extended_allitems" | "break_when" => {
                            "it is not supported yet: take it out".to_owned()
                        }
                        _ => "it takes `loop_var`, `index_var` and `label`".to_owned(),
                    };
                    self.problem(&key.span, format!("`{other}` in `loop_control`"))
                        .help = Some(help);
                }
            }
        }
        Some(made)
    }

    /// The one key of a task that is no keyword is its module.
    fn action(&mut self, task: &Node, map: &Map, place: Place) -> Option<Action> {
        let mut found: Option<(&Node, &Node)> = None;
        let mut sound = true;
        for (key, value) in map.iter() {
            let Some(name) = key.as_str() else {
                self.wrong_kind(key, "a keyword or a module");
                sound = false;
                continue;
            };
            if keywords::is_supported(place, name) && name != "action" {
                continue;
            }
            let is_module = LocalAction::find(name).is_some() || module::find(name).is_some();
            if !is_module && name != "action" {
                let refusal = keywords::refusal(place, name, &module_names());
                self.problem(&key.span, refusal.message).help = refusal.help;
                sound = false;
                continue;
            }
            if let Some((first, _)) = found {
                self.problem(&key.span, "a task has one module, and this is its second")
                    .related
                    .push((first.span.clone(), "the first".to_owned()));
                sound = false;
                continue;
            }
            found = Some((key, value));
        }
        let Some((key, value)) = found else {
            if sound {
                self.problem(&task.span, "this task has no module").help =
                    Some("a task is keywords and one module with its arguments".to_owned());
            }
            return None;
        };
        let (name, name_node, value) = match key.as_str() {
            Some("action") => self.old_action(value)?,
            name => (name?.to_owned(), key.clone(), value.clone()),
        };
        let mut arguments = self.arguments(&name, &value)?;
        if let Some(more) = map
            .get("args")
            .and_then(|node| self.require_map(node, "a mapping"))
        {
            for (key, value) in more.iter() {
                let value = self.value(value);
                arguments
                    .entry(key.as_str().unwrap_or_default().to_owned())
                    .or_insert(value);
            }
        }
        self.checked(&name, &name_node, &value, arguments)
    }

    /// `action: module key=value` or `action: {module: name, key: value}`.
    fn old_action(&mut self, value: &Node) -> Option<(String, Node, Node)> {
        let (name, arguments) = match (value.as_str(), value.as_map()) {
            (Some(text), _) => {
                let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
                (name.to_owned(), Node::from_json(&rest.into(), &value.span))
            }
            (None, Some(map)) => {
                let name = map.get("module").and_then(Node::as_str)?.to_owned();
                let rest = map.iter().filter(|(key, _)| key.as_str() != Some("module"));
                (
                    name,
                    Node::mapping(rest.map(|(k, v)| (k.clone(), v.clone())), &value.span),
                )
            }
            (None, None) => {
                self.wrong_kind(value, "a module with its arguments");
                return None;
            }
        };
        if LocalAction::find(&name).is_none() && module::find(&name).is_none() {
            let refusal = keywords::refusal(Place::Task, &name, &module_names());
            self.problem(&value.span, refusal.message).help = refusal.help;
            return None;
        }
        Some((name, value.clone(), arguments))
    }

    fn arguments(&mut self, name: &str, value: &Node) -> Option<IndexMap<String, Node>> {
        let mut arguments = IndexMap::new();
        if let Some(map) = value.as_map() {
            for (key, value) in map.iter() {
                match key.as_str() {
                    Some(name) => {
                        arguments.insert(name.to_owned(), self.value(value));
                    }
                    None => self.wrong_kind(key, "an argument's name"),
                }
            }
            return Some(arguments);
        }
        if value.is_null() {
            return Some(arguments);
        }
        let takes_text = match LocalAction::find(name) {
            Some(action) => action.free_form(),
            None => module::find(name).and_then(|module| module.free_form),
        };
        let Some(text) = value.as_str() else {
            self.wrong_kind(value, "a mapping of arguments");
            return None;
        };
        let known =
            |key: &str| argument_names(name).is_none_or(|names| names.iter().any(|n| n == key));
        let split = free_form::split(text, takes_text.is_some(), known);
        let node = self.value(value);
        for (key, text) in split.arguments {
            arguments.insert(key, Node::from_json(&text.into(), &node.span));
        }
        match takes_text {
            Some(argument) if !split.rest.is_empty() => {
                let whole = split.rest == text;
                let rest = if whole {
                    node
                } else {
                    Node::from_json(&split.rest.into(), &node.span)
                };
                arguments.insert(argument.to_owned(), rest);
            }
            None if !split.rest.is_empty() => {
                self.problem(
                    &value.span,
                    format!("`{name}` takes `key=value` arguments, not `{}`", split.rest),
                )
                .help = Some("write the arguments as a mapping below the module".to_owned());
                return None;
            }
            _ => {}
        }
        Some(arguments)
    }

    /// Names of arguments are checked here, once; values when they are rendered.
    fn checked(
        &mut self,
        name: &str,
        key: &Node,
        value: &Node,
        arguments: IndexMap<String, Node>,
    ) -> Option<Action> {
        let (action, required) = match LocalAction::find(name) {
            Some(action) => (
                Action::Local {
                    action,
                    arguments,
                    span: value.span.clone(),
                },
                parameters(action)
                    .filter(|own| own.required)
                    .map(|own| vec![own.name.to_owned()])
                    .collect(),
            ),
            None => {
                let module = module::find(name)?;
                let required = required_names(module);
                (
                    Action::Module {
                        module,
                        written: name.to_owned(),
                        arguments,
                    },
                    required,
                )
            }
        };
        let mut sound = true;
        if let Some(names) = argument_names(name) {
            for argument in action.arguments().keys() {
                if names.iter().any(|known| known == argument) {
                    continue;
                }
                let span = value
                    .as_map()
                    .and_then(|map| map.entry(argument))
                    .map_or(&value.span, |(key, _)| &key.span)
                    .clone();
                let near = nearest(argument, names.iter().map(String::as_str));
                let help = near.map_or_else(
                    || format!("it takes {}", names.join(", ")),
                    |near| format!("did you mean `{near}`?"),
                );
                self.problem(&span, format!("`{name}` has no argument `{argument}`"))
                    .help = Some(help);
                sound = false;
            }
        }
        for (argument, node) in action.arguments() {
            sound &= !argument.ends_with("mode") || self.mode(node);
        }
        for spellings in required {
            if !spellings
                .iter()
                .any(|name| action.arguments().contains_key(name))
            {
                let wanted = spellings.first().map_or("", String::as_str);
                self.problem(&key.span, format!("`{name}` needs the argument `{wanted}`"));
                sound = false;
            }
        }
        if sound {
            self.values(&action, &key.span);
        }
        sound.then_some(action)
    }
}

impl Reader<'_> {
    /// A number without a leading zero is decimal: `mode: 644` would be 01204.
    fn mode(&mut self, node: &Node) -> bool {
        let raw = node.raw();
        if node.as_i64().is_none() || raw.starts_with('0') {
            return true;
        }
        self.problem(&node.span, format!("the mode {raw} is a decimal number"))
            .help = Some(format!(
            "write it as octal: `mode: 0{raw}` or `mode: \"0{raw}\"`"
        ));
        false
    }
}

/// Every module's name, for near matches.
pub(super) fn module_names() -> Vec<&'static str> {
    MODULES
        .iter()
        .map(|module| module.name)
        .filter(|name| !name.starts_with('_'))
        .chain(LocalAction::names())
        .collect()
}

fn parameters(action: LocalAction) -> impl Iterator<Item = &'static Parameter> {
    action.arguments().unwrap_or_default().iter()
}

/// The argument names of a module with their aliases; none where any name is taken.
fn argument_names(name: &str) -> Option<Vec<String>> {
    if let Some(action) = LocalAction::find(name) {
        return action
            .arguments()
            .map(|own| own.iter().map(|own| own.name.to_owned()).collect());
    }
    let module = module::find(name)?;
    let mut names = property_names(&(module.schema)(), "properties");
    names.extend(
        module
            .argument_aliases
            .iter()
            .map(|(alias, _)| (*alias).to_owned()),
    );
    Some(names)
}

/// The required arguments of a module, each with all its spellings.
fn required_names(module: &module::Module) -> Vec<Vec<String>> {
    property_names(&(module.schema)(), "required")
        .into_iter()
        .map(|name| {
            let aliases = module
                .argument_aliases
                .iter()
                .filter(|(_, own)| *own == name);
            let aliases: Vec<_> = aliases.map(|(alias, _)| (*alias).to_owned()).collect();
            std::iter::once(name).chain(aliases).collect()
        })
        .collect()
}

fn property_names(schema: &schemars::Schema, key: &str) -> Vec<String> {
    match schema.get(key) {
        Some(serde_json::Value::Object(properties)) => properties.keys().cloned().collect(),
        Some(serde_json::Value::Array(names)) => names
            .iter()
            .filter_map(|name| name.as_str().map(str::to_owned))
            .collect(),
        _ => Vec::new(),
    }
}
