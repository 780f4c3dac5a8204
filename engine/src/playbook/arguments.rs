//! The arguments of a task, looked at by name, and by value where there is no template in them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
};

use fleet_modules::module::Module;
use fleet_yaml::{Node, nearest};
use serde_json::Value;

use super::{
    Action, Directives,
    call::{Call, Target},
    elsewhere::Elsewhere,
    reader::Reader,
};

impl Reader<'_> {
    /// What the task does, with its arguments looked at by name, and by value where there is no template in them.
    pub(super) fn action(
        &mut self,
        call: &Call,
        around: &Directives,
        own: &Directives,
    ) -> Option<Action> {
        let arguments = call.arguments.clone();
        let span = call.value.span.clone();
        let action = match call.target.clone() {
            Target::Local(action) => Action::Local {
                action,
                arguments,
                span,
            },
            Target::Module(module) => Action::Module {
                module,
                written: call.name.clone(),
                arguments,
            },
            Target::Include(include) => Action::Include {
                include,
                arguments,
                around: Box::new(around.clone()),
                span,
            },
            Target::External(module) => Action::External {
                module,
                arguments,
                span,
            },
            Target::Template => Action::Templated {
                name: Node::string(&call.name, &call.key.span),
                arguments,
                span,
            },
            Target::Elsewhere(found) => {
                self.not_here(call, found);
                return Some(Action::Missing {
                    name: call.name.clone(),
                    arguments,
                    span,
                });
            }
            Target::Import(_) => return None,
        };
        if self.trusted {
            return Some(action);
        }
        let mut sound = true;
        if let Some(names) = call.target.arguments() {
            for argument in action.arguments().keys() {
                // Text that is no argument was told of.
                if argument == "_raw_params" && call.value.as_str().is_some() {
                    sound = false;
                    continue;
                }
                if names.iter().any(|known| known == argument) {
                    continue;
                }
                let near = nearest(argument, names.iter().map(String::as_str));
                let help = near.map_or_else(
                    || format!("it takes {}", names.join(", ")),
                    |near| format!("did you mean `{near}`?"),
                );
                let message = format!("`{}` has no argument `{argument}`", call.name);
                self.late(&call.place_of(argument), message).help = Some(help);
                sound = false;
            }
        }
        for (argument, node) in action.arguments() {
            sound &= !argument.ends_with("mode") || self.mode(node);
        }
        // What is not written here may come from a template, or from the defaults around it.
        let elsewhere = call.template.is_some() || !own.module_defaults.is_empty();
        for spellings in call.target.required() {
            let given = |name: &String| action.arguments().contains_key(name);
            if elsewhere || spellings.iter().any(given) {
                continue;
            }
            let wanted = spellings.first().map_or("", String::as_str);
            let message = format!("`{}` needs the argument `{wanted}`", call.name);
            self.late(&call.key.span, message);
            sound = false;
        }
        if sound {
            self.values(&action, &call.key.span, !elsewhere);
        }
        Some(action)
    }

    /// A module that fleetctl does not have: a mistake, unless a condition may keep hosts from it.
    fn not_here(&mut self, call: &Call, found: Elsewhere) {
        let message = match found {
            Elsewhere::Windows => format!("`{}` is a module for Windows", call.name),
            Elsewhere::Network => format!("`{}` is a module for network devices", call.name),
            Elsewhere::Known => format!("the module `{}` is not supported yet", call.name),
        };
        let help = match found {
            Elsewhere::Windows | Elsewhere::Network => "fleetctl manages Linux servers",
            Elsewhere::Known => {
                "`fleetctl doc` lists the modules; a module that lies in the project's `library/` is run as it is"
            }
        };
        match self.conditional {
            true => self.warning(
                &call.key.span,
                format!("{message}: a host that reaches it fails"),
            ),
            false => self.problem(&call.key.span, message),
        }
        .help = Some(help.to_owned());
    }

    /// A number without a leading zero is decimal: `mode: 644` would be 01204.
    fn mode(&mut self, node: &Node) -> bool {
        let raw = node.raw();
        if node.as_i64().is_none() || raw.starts_with('0') || !node.is_plain() {
            return true;
        }
        self.problem(&node.span, format!("the mode {raw} is a decimal number"))
            .help = Some(format!(
            "write it as octal: `mode: 0{raw}` or `mode: \"0{raw}\"`"
        ));
        false
    }
}

/// The names of a module's arguments, taken from its schema once.
pub(super) struct Shape {
    /// With their aliases; none where any name is taken.
    pub(super) names: Option<Vec<String>>,
    /// Those that must be there, each with all its spellings.
    pub(super) required: Vec<Vec<String>>,
    /// Those that take a text and nothing else, with their aliases.
    texts: BTreeSet<String>,
}

/// Whether an argument of a module takes a text and nothing else.
pub(crate) fn takes_only_text(module: &'static Module, argument: &str) -> bool {
    Shape::of(module).texts.contains(argument)
}

impl Shape {
    pub(super) fn of(module: &'static Module) -> Arc<Self> {
        static KNOWN: Mutex<BTreeMap<&str, Arc<Shape>>> = Mutex::new(BTreeMap::new());
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let shape = known
            .entry(module.name)
            .or_insert_with(|| Arc::new(Self::read(module)));
        Arc::clone(shape)
    }

    fn read(module: &Module) -> Self {
        let schema = (module.schema)();
        let names = schema.get("properties").and_then(Value::as_object);
        let any = schema
            .get("additionalProperties")
            .is_some_and(|more| more.as_bool() != Some(false));
        let aliases = || module.argument_aliases.iter();
        let with_aliases = |names: &serde_json::Map<String, Value>| {
            let aliases = aliases().map(|(alias, _)| (*alias).to_owned());
            names.keys().cloned().chain(aliases).collect()
        };
        let spellings = |name: &str| {
            let own = aliases().filter(|(_, own)| *own == name);
            let own = own.map(|(alias, _)| (*alias).to_owned());
            std::iter::once(name.to_owned()).chain(own).collect()
        };
        let is_text = |about: &Value| {
            let types = about.get("type").and_then(Value::as_array);
            types.is_some_and(|types| {
                types.iter().any(|one| one == "string")
                    && types.iter().all(|one| {
                        ["string", "number", "boolean", "null"]
                            .iter()
                            .any(|name| one == name)
                    })
            })
        };
        let texts: BTreeSet<String> = names
            .into_iter()
            .flatten()
            .filter(|(_, about)| is_text(about))
            .flat_map(|(name, _)| spellings(name))
            .collect();
        let required = schema.get("required").and_then(Value::as_array);
        let required = required.into_iter().flatten().filter_map(Value::as_str);
        Self {
            // A module without arguments only says what to do instead of it.
            names: names
                .filter(|names| !any && !names.is_empty())
                .map(with_aliases),
            required: required.map(spellings).collect(),
            texts,
        }
    }
}
