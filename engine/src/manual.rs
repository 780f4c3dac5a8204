//! The modules' manual, made of the very code that reads their arguments.

use fleet_modules::{module::Module, tasks::MODULES};
use serde_json::Value;

use crate::playbook::{LocalAction, Parameter};

/// What there is to say of a module.
#[derive(Clone, Debug)]
pub struct Page {
    /// Its name.
    pub name: &'static str,
    /// Its other names.
    pub aliases: Vec<&'static str>,
    /// What it does: paragraphs, the first of which is enough for a list.
    pub text: String,
    /// The argument that `module: text` gives.
    pub free_form: Option<&'static str>,
    /// It takes any argument.
    pub takes_any: bool,
    /// Its arguments, required ones first, then by name.
    pub arguments: Vec<Argument>,
}

/// What there is to say of an argument.
#[derive(Clone, Debug)]
pub struct Argument {
    /// Its name.
    pub name: String,
    /// Its other names.
    pub aliases: Vec<&'static str>,
    /// What it takes, in words.
    pub takes: String,
    /// It must be there.
    pub required: bool,
    /// What it is where it is not given.
    pub default: Option<String>,
    /// What it means.
    pub text: String,
}

impl Page {
    /// The first paragraph of the text, in one line.
    #[must_use]
    pub fn summary(&self) -> String {
        let first = self.text.split("\n\n").next().unwrap_or_default();
        first.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// All modules that a playbook can name, by name.
#[must_use]
pub fn pages() -> Vec<Page> {
    let here = LocalAction::ALL.map(on_the_controller);
    let on_hosts = MODULES
        .iter()
        // Names that begin so are the program's own business; `copy` is told as what it is in a playbook.
        .filter(|module| !module.name.starts_with('_') && LocalAction::find(module.name).is_none())
        .map(|module| on_a_host(module));
    let mut pages: Vec<Page> = here.into_iter().chain(on_hosts).collect();
    pages.sort_by_key(|page| page.name);
    pages
}

fn on_a_host(module: &Module) -> Page {
    let schema = (module.schema)().to_value();
    let required = schema.get("required").and_then(Value::as_array);
    let properties = schema.get("properties").and_then(Value::as_object);
    let argument = |(name, property): (&String, &Value)| Argument {
        name: name.clone(),
        aliases: module
            .argument_aliases
            .iter()
            .filter(|(alias, own)| own == name && !alias.starts_with('_'))
            .map(|(alias, _)| *alias)
            .collect(),
        takes: takes(name, property, &schema),
        required: required.is_some_and(|names| names.iter().any(|own| own == name)),
        default: property.get("default").and_then(default),
        text: text(property),
    };
    let mut arguments: Vec<Argument> = properties.into_iter().flatten().map(argument).collect();
    arguments.sort_by(|a, b| (!a.required, &a.name).cmp(&(!b.required, &b.name)));
    Page {
        name: module.name,
        aliases: module.aliases.to_vec(),
        text: text(&schema),
        free_form: module.free_form,
        takes_any: false,
        arguments,
    }
}

fn on_the_controller(action: LocalAction) -> Page {
    let copy = fleet_modules::module::find("copy").map(on_a_host);
    let argument = |own: &Parameter| {
        let of_copy = copy
            .iter()
            .flat_map(|page| &page.arguments)
            .find(|argument| argument.name == own.name);
        let told = of_copy.filter(|_| own.text.is_empty());
        let or_told = |text: &str, of: fn(&Argument) -> &String| {
            told.map_or_else(|| text.to_owned(), |told| of(told).clone())
        };
        Argument {
            name: own.name.to_owned(),
            aliases: Vec::new(),
            takes: or_told(own.takes, |told| &told.takes),
            required: own.required,
            default: own
                .default
                .map(str::to_owned)
                .or_else(|| told?.default.clone()),
            text: or_told(own.text, |told| &told.text),
        }
    };
    Page {
        name: action.name(),
        aliases: Vec::new(),
        text: action.text().to_owned(),
        free_form: action.free_form(),
        takes_any: action.arguments().is_none(),
        arguments: action
            .arguments()
            .unwrap_or_default()
            .iter()
            .map(argument)
            .collect(),
    }
}

/// The documentation of something, paragraphs apart and lines joined.
fn text(schema: &Value) -> String {
    let text = schema
        .get("description")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let paragraphs = text
        .split("\n\n")
        .map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" "));
    paragraphs.collect::<Vec<_>>().join("\n\n")
}

/// What an argument takes, in a user's words.
fn takes(name: &str, property: &Value, root: &Value) -> String {
    if let Some(alternatives) = property.get("anyOf").and_then(Value::as_array) {
        let some = alternatives
            .iter()
            .find(|one| one.get("type") != Some(&Value::from("null")));
        return some.map_or_else(String::new, |some| takes(name, some, root));
    }
    if let Some(reference) = property.get("$ref").and_then(Value::as_str) {
        let defined = reference
            .strip_prefix('#')
            .and_then(|path| root.pointer(path));
        return defined.map_or_else(String::new, |defined| takes(name, defined, root));
    }
    let choices = choices(property);
    if !choices.is_empty() {
        return choices
            .iter()
            .map(|choice| format!("`{choice}`"))
            .collect::<Vec<_>>()
            .join(", ");
    }
    let types: Vec<&str> = match property.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).collect(),
        _ => return "any value".to_owned(),
    };
    let has = |name: &str| types.contains(&name);
    let words = match () {
        () if has("object") => "mapping",
        () if has("array") => "list",
        () if has("boolean") && has("integer") => "yes or no",
        () if has("integer") => "number",
        () if name.ends_with("mode") => "mode",
        () => "text",
    };
    words.to_owned()
}

/// The words that an argument takes, where it takes only these.
fn choices(property: &Value) -> Vec<&str> {
    let listed = property
        .get("enum")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let told = property
        .get("oneOf")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let told = told.flat_map(|one| {
        let listed = one
            .get("enum")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        one.get("const").into_iter().chain(listed)
    });
    listed.chain(told).filter_map(Value::as_str).collect()
}

/// A default as it would be written; nothing where it is nothing.
fn default(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => (!text.is_empty()).then(|| text.clone()),
        Value::Array(items) => (!items.is_empty()).then(|| value.to_string()),
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::pages;

    #[test]
    fn every_module_and_argument_is_told() {
        for page in pages() {
            assert!(
                page.summary().ends_with('.'),
                "{}: {}",
                page.name,
                page.text
            );
            assert!(
                page.takes_any
                    || !page.arguments.is_empty()
                    || matches!(page.name, "ping" | "service_facts")
                    // Managers of other systems' packages take anything, and say so when they are reached.
                    || page.text.starts_with("Known so that roles for many systems can be read"),
                "{}",
                page.name
            );
            for argument in &page.arguments {
                let of = format!("{} {}", page.name, argument.name);
                assert!(
                    argument.text.ends_with(['.', ')']),
                    "{of}: {}",
                    argument.text
                );
                assert!(!argument.takes.is_empty(), "{of}");
            }
        }
    }

    #[test]
    fn an_argument_is_told_as_the_code_reads_it() {
        let pages = pages();
        let page = |name: &str| pages.iter().find(|page| page.name == name).unwrap();
        let argument = |module: &str, name: &str| {
            let found = page(module)
                .arguments
                .iter()
                .find(|argument| argument.name == name)
                .unwrap();
            (
                found.takes.clone(),
                found.required,
                found.default.clone(),
                found.aliases.clone(),
            )
        };
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(
            argument("lineinfile", "path"),
            ("text".into(), true, None, vec!["dest", "destfile", "name"])
        );
        assert_eq!(
            argument("lineinfile", "state"),
            ("`present`, `absent`".into(), false, text("present"), vec![])
        );
        assert_eq!(
            argument("file", "follow"),
            ("yes or no".into(), false, text("true"), vec![])
        );
        assert_eq!(
            argument("file", "mode"),
            ("mode".into(), false, None, vec![])
        );
        assert_eq!(
            argument("apt", "lock_timeout"),
            ("number".into(), false, text("60"), vec![])
        );
        assert_eq!(argument("sysctl", "keys").0, "mapping");
        assert_eq!(
            argument("template", "force"),
            ("yes or no".into(), false, text("true"), vec![])
        );
        assert_eq!(
            argument("template", "src"),
            ("text".into(), true, None, vec![])
        );
        assert_eq!(page("command").free_form, Some("cmd"));
        assert!(pages.iter().all(|page| !page.name.starts_with('_')));
    }
}
