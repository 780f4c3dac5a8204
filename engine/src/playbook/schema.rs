//! JSON Schemas of what people write, for editors: made of the keywords that the reader takes and of the modules' manual.

use serde_json::{Map, Value, json};

use super::keywords::Place;
use crate::manual::{self, Argument, Page};

/// The dialect of the schemas.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";
/// A text that is rendered before it counts.
const TEMPLATE: &str = r"\{[{%]";
/// Collections whose modules are known by their short names, too.
const COLLECTIONS: [&str; 4] = [
    "ansible.builtin",
    "ansible.legacy",
    "ansible.posix",
    "community.general",
];

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum File {
    /// Plays.
    Playbook,
    /// Tasks: a role's `tasks/main.yml`, a file that is included.
    Tasks,
}

/// The schema of a file.
#[must_use]
pub fn of_file(file: File) -> Value {
    let (title, reference) = match file {
        File::Playbook => ("A playbook of fleetctl", "#/$defs/playbook"),
        File::Tasks => ("Tasks of fleetctl", "#/$defs/tasks"),
    };
    json!({"$schema": DIALECT, "title": title, "$ref": reference, "$defs": definitions()})
}

/// The schema of a module's arguments; none where there is no such module.
#[must_use]
pub fn of_module(name: &str) -> Option<Value> {
    let short = COLLECTIONS
        .iter()
        .find_map(|collection| name.strip_prefix(collection)?.strip_prefix('.'));
    let short = short.unwrap_or(name);
    let pages = manual::pages();
    let page = pages
        .iter()
        .find(|page| page.name == short || page.aliases.contains(&short))?;
    let mut schema = arguments(page);
    schema.insert("$schema".to_owned(), DIALECT.into());
    schema.insert("title".to_owned(), page.name.into());
    Some(schema.into())
}

fn definitions() -> Value {
    let mut definitions = Map::new();
    let mut add = |name: &str, schema: Value| definitions.insert(name.to_owned(), schema);
    let list = |item: &str| json!({"type": ["array", "null"], "items": {"$ref": format!("#/$defs/{item}")}});
    add(
        "playbook",
        json!({"type": ["array", "null"], "items": {"anyOf": [{"$ref": "#/$defs/play"}, {"$ref": "#/$defs/import"}]}}),
    );
    add("tasks", list("step"));
    add("handlers", list("handler_step"));
    add("roles", list("role"));
    // Which of the two a step is decides one key, so that an editor tells mistakes of that one.
    let step = |task: &str, block: &str| {
        json!({
            "if": {"type": "object", "required": ["block"]},
            "then": {"$ref": format!("#/$defs/{block}")},
            "else": {"$ref": format!("#/$defs/{task}")},
        })
    };
    add("step", step("task", "block"));
    add("handler_step", step("handler", "handler_block"));
    for (name, place, steps) in [
        ("play", Place::Play, "tasks"),
        ("block", Place::Block, "tasks"),
        ("handler_block", Place::Block, "handlers"),
        ("import", Place::Playbook, "tasks"),
        ("task", Place::Task, "tasks"),
        ("handler", Place::Handler, "tasks"),
    ] {
        add(name, object(place, steps));
    }
    let mut role = object(Place::Role, "tasks");
    // What a role does not know as a keyword is a variable of it.
    role["additionalProperties"] = true.into();
    add("role", json!({"anyOf": [{"type": "string"}, role]}));
    for page in manual::pages() {
        definitions.insert(format!("module.{}", page.name), module(&page));
    }
    definitions.into()
}

/// A mapping of keywords, and of modules where they stand.
fn object(place: Place, steps: &str) -> Value {
    let mut properties: Map<String, Value> = place
        .keywords()
        .map(|name| (name.to_owned(), keyword(name, steps)))
        .collect();
    let mut patterns = Map::new();
    if place.takes_modules() {
        for page in manual::pages() {
            let reference = json!({"$ref": format!("#/$defs/module.{}", page.name)});
            for name in names(&page) {
                properties.entry(name).or_insert_with(|| reference.clone());
            }
        }
        for (name, about) in STATIC {
            let schema = json!({"description": about, "type": ["string", "object"]});
            for name in [(*name).to_owned(), format!("ansible.builtin.{name}")] {
                properties.insert(name, schema.clone());
            }
        }
        patterns.insert(
            "^with_".to_owned(),
            json!({"description": "What the lookup of this name finds, an item at a time."}),
        );
        // Modules of collections on disk.
        patterns.insert(r"^\w+\.\w+\.".to_owned(), json!({}));
    }
    let mut schema = json!({
        "type": "object",
        "properties": properties,
        "patternProperties": patterns,
        "additionalProperties": false,
    });
    match place {
        Place::Play => schema["required"] = json!(["hosts"]),
        Place::Playbook => schema["required"] = json!(["import_playbook"]),
        _ => {}
    }
    schema
}

/// What is read before the run or while it goes on, and is no module.
const STATIC: &[(&str, &str)] = &[
    ("import_tasks", "The tasks of a file, read before the run."),
    ("import_role", "A role, read before the run."),
    (
        "include_tasks",
        "The tasks of a file, read when a host gets there.",
    ),
    ("include_role", "A role, read when a host gets there."),
];

/// All names of a module.
fn names(page: &Page) -> Vec<String> {
    let own = || std::iter::once(page.name).chain(page.aliases.iter().copied());
    let full = own().flat_map(|name| COLLECTIONS.map(|collection| format!("{collection}.{name}")));
    own().map(str::to_owned).chain(full).collect()
}

/// A module as a task names it: with its arguments, its free text, or nothing.
fn module(page: &Page) -> Value {
    let mut forms = vec![Value::from(arguments(page)), json!({"type": "string"})];
    if page.arguments.iter().all(|argument| !argument.required) {
        forms.push(json!({"type": "null"}));
    }
    json!({"description": page.summary(), "anyOf": forms})
}

fn arguments(page: &Page) -> Map<String, Value> {
    let mut properties = Map::new();
    for argument in &page.arguments {
        let schema = self::argument(argument);
        let aliases = argument.aliases.iter().map(|alias| (*alias).to_owned());
        for name in std::iter::once(argument.name.clone()).chain(aliases) {
            properties.insert(name, schema.clone());
        }
    }
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("description".to_owned(), page.text.clone().into());
    schema.insert("properties".to_owned(), properties.into());
    schema.insert("additionalProperties".to_owned(), page.takes_any.into());
    schema
}

fn argument(argument: &Argument) -> Value {
    let mut schema = takes(&argument.takes);
    let mut about = argument.text.clone();
    if argument.required {
        about.push_str("\n\nIt must be given.");
    }
    if let Some(default) = &argument.default {
        about.push_str(&format!("\n\nDefault: `{default}`"));
    }
    schema["description"] = about.into();
    schema
}

/// A type in the manual's words. What is a template is whatever it is rendered to, so that a text always will do.
fn takes(words: &str) -> Value {
    match words {
        "yes or no" => json!({"type": ["boolean", "string", "integer", "null"]}),
        "number" => json!({"type": ["number", "string", "null"]}),
        "text" => json!({"type": ["string", "number", "boolean", "null"]}),
        "list" => json!({"type": ["array", "string", "number", "boolean", "null"]}),
        "mapping" => json!({"type": ["object", "string", "null"]}),
        words if words.starts_with('`') && !words.contains(" or ") => {
            let choices: Vec<&str> = words.split('`').skip(1).step_by(2).collect();
            let mut schema = json!({"anyOf": [
                {"enum": choices},
                {"type": "string", "pattern": TEMPLATE},
                {"type": ["boolean", "number", "null"]},
            ]});
            // Beside words there may be numbers and their like, which the manual tells in prose.
            if words
                .split('`')
                .step_by(2)
                .any(|between| between.contains(char::is_alphabetic))
            {
                schema = json!({});
            }
            schema
        }
        _ => json!({}),
    }
}

/// What a keyword takes, and what it means.
fn keyword(name: &str, steps: &str) -> Value {
    let (kind, about) = KEYWORDS
        .iter()
        .find(|(own, ..)| *own == name)
        .map_or((Kind::Any, ""), |(_, kind, about)| (*kind, *about));
    let mut schema = match kind {
        Kind::Any => json!({}),
        Kind::Condition => {
            json!({"type": ["string", "boolean", "number", "array", "null"], "items": {"type": ["string", "boolean", "number"]}})
        }
        Kind::Flag => json!({"type": ["boolean", "string", "integer", "null"]}),
        Kind::List => json!({"type": ["array", "string", "null"]}),
        Kind::Mapping => json!({"type": ["object", "null"]}),
        Kind::Number => json!({"type": ["number", "string", "null"]}),
        Kind::Steps if name == "handlers" => json!({"$ref": "#/$defs/handlers"}),
        Kind::Steps if name == "roles" => json!({"$ref": "#/$defs/roles"}),
        Kind::Steps => json!({"$ref": format!("#/$defs/{steps}")}),
        Kind::Text => json!({"type": ["string", "number", "boolean", "null"]}),
        Kind::Texts => json!({
            "type": ["array", "string", "number", "null"],
            "items": {"type": ["string", "number", "array"]},
        }),
        Kind::Words(words) => {
            json!({"anyOf": [{"enum": words}, {"type": "string", "pattern": TEMPLATE}]})
        }
    };
    schema["description"] = about.into();
    schema
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Any,
    Condition,
    Flag,
    List,
    Mapping,
    Number,
    Steps,
    Text,
    Texts,
    Words(&'static [&'static str]),
}

/// Every keyword, what it takes, and what it means.
const KEYWORDS: &[(&str, Kind, &str)] = &[
    (
        "action",
        Kind::Any,
        "The module with its arguments, as one value.",
    ),
    (
        "always",
        Kind::Steps,
        "What runs behind the block at any rate.",
    ),
    (
        "any_errors_fatal",
        Kind::Flag,
        "A host that fails ends the play for all.",
    ),
    ("args", Kind::Any, "More arguments of the module."),
    (
        "async",
        Kind::Number,
        "Seconds for which it may run in the background.",
    ),
    ("async_val", Kind::Number, "The same as `async`."),
    ("become", Kind::Flag, "Act as another user."),
    (
        "become_exe",
        Kind::Text,
        "The program to become another user with.",
    ),
    ("become_flags", Kind::Text, "Arguments of that program."),
    ("become_method", Kind::Text, "How to become another user."),
    (
        "become_user",
        Kind::Text,
        "Whom to become; root where it is not said.",
    ),
    ("bench", Kind::Any, "Load tests before and after."),
    ("block", Kind::Steps, "Tasks with something in common."),
    (
        "changed_when",
        Kind::Condition,
        "When the task counts as a change.",
    ),
    (
        "check_mode",
        Kind::Flag,
        "Only look, or act even in a plan.",
    ),
    (
        "collections",
        Kind::Texts,
        "Collections in which short names are looked for.",
    ),
    (
        "connection",
        Kind::Text,
        "How hosts are reached: `ssh` or `local`.",
    ),
    ("debugger", Kind::Text, "Not supported."),
    ("delay", Kind::Number, "Seconds between two tries."),
    (
        "delegate_facts",
        Kind::Flag,
        "Facts belong to the host that the task is handed to.",
    ),
    (
        "delegate_to",
        Kind::Text,
        "The host that does it in place of this one.",
    ),
    ("diff", Kind::Flag, "Show what differs."),
    ("environment", Kind::Any, "Variables of the environment."),
    (
        "fact_path",
        Kind::Text,
        "The directory of the host's own facts.",
    ),
    (
        "failed_when",
        Kind::Condition,
        "When the task counts as failed.",
    ),
    (
        "force_handlers",
        Kind::Flag,
        "Handlers run on hosts that failed, too.",
    ),
    (
        "gather_facts",
        Kind::Flag,
        "Gather facts before the first task.",
    ),
    ("gather_subset", Kind::Texts, "Which facts are gathered."),
    (
        "gather_timeout",
        Kind::Number,
        "Seconds that gathering may take.",
    ),
    (
        "handlers",
        Kind::Steps,
        "Tasks that run when they are notified.",
    ),
    ("hosts", Kind::Texts, "For which hosts: a pattern."),
    (
        "ignore_errors",
        Kind::Flag,
        "A failure does not end the play for the host.",
    ),
    (
        "ignore_unreachable",
        Kind::Flag,
        "That a host cannot be reached does not end the play for it.",
    ),
    (
        "import_playbook",
        Kind::Text,
        "The plays of another playbook.",
    ),
    (
        "listen",
        Kind::Texts,
        "More names that the handler answers to.",
    ),
    (
        "local_action",
        Kind::Any,
        "The module with its arguments, done on this machine.",
    ),
    (
        "loop",
        Kind::List,
        "A list: the task is done for each item.",
    ),
    ("loop_control", Kind::Mapping, "How the loop goes."),
    (
        "max_fail_percentage",
        Kind::Number,
        "How many hosts may fail, in percent.",
    ),
    (
        "module_defaults",
        Kind::Any,
        "Arguments of modules where a task does not give them.",
    ),
    ("name", Kind::Text, "What is shown of it."),
    ("no_log", Kind::Flag, "Hide arguments and results."),
    (
        "notify",
        Kind::Texts,
        "Handlers to run if it changed something.",
    ),
    (
        "order",
        Kind::Words(&[
            "inventory",
            "sorted",
            "reverse_sorted",
            "reverse_inventory",
            "shuffle",
        ]),
        "In which order the hosts come.",
    ),
    (
        "poll",
        Kind::Number,
        "Seconds between two looks at a task in the background.",
    ),
    ("port", Kind::Number, "The port to connect to."),
    (
        "post_tasks",
        Kind::Steps,
        "Tasks behind the roles and the tasks.",
    ),
    ("pre_tasks", Kind::Steps, "Tasks before the roles."),
    ("register", Kind::Any, "The variable that takes the result."),
    ("remote_user", Kind::Text, "Whom to log in as."),
    (
        "rescue",
        Kind::Steps,
        "What runs where a task of the block failed.",
    ),
    ("retries", Kind::Number, "How often it is tried."),
    ("role", Kind::Text, "The role's name."),
    ("roles", Kind::Steps, "Roles, done before the tasks."),
    ("run_once", Kind::Flag, "One host does it for all."),
    ("serial", Kind::Any, "How many hosts at a time."),
    (
        "strategy",
        Kind::Text,
        "How hosts go through the play: `linear`, `free` or `host_pinned`.",
    ),
    ("tags", Kind::Texts, "Words to choose it by."),
    ("tasks", Kind::Steps, "The tasks."),
    (
        "throttle",
        Kind::Number,
        "How many hosts may do it at the same time.",
    ),
    ("timeout", Kind::Number, "Seconds that it may take."),
    (
        "until",
        Kind::Condition,
        "It is tried again until this holds.",
    ),
    ("user", Kind::Text, "The same as `remote_user`."),
    (
        "validate_argspec",
        Kind::Any,
        "Whether the play's variables are checked.",
    ),
    ("vars", Kind::Any, "Variables."),
    ("vars_files", Kind::Any, "Files of variables."),
    ("vars_prompt", Kind::Any, "Variables that are asked for."),
    ("when", Kind::Condition, "It is done only where this holds."),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{File, KEYWORDS, Place, of_file, of_module};

    #[test]
    fn every_keyword_is_described() {
        let taken: BTreeSet<&str> = [
            Place::Play,
            Place::Task,
            Place::Handler,
            Place::Block,
            Place::Role,
            Place::Playbook,
        ]
        .into_iter()
        .flat_map(Place::keywords)
        .collect();
        let described: BTreeSet<&str> = KEYWORDS.iter().map(|(name, ..)| *name).collect();
        assert_eq!(described, taken);
    }

    #[test]
    fn references_lead_somewhere() {
        for file in [File::Playbook, File::Tasks] {
            let schema = of_file(file);
            let text = schema.to_string();
            let names = text.split("\"$ref\":\"#").skip(1);
            let mut count = 0;
            for name in names.map(|rest| rest.split('"').next().unwrap()) {
                assert!(schema.pointer(name).is_some(), "{name}");
                count += 1;
            }
            assert!(count > 100, "{count}");
        }
    }

    #[test]
    fn a_module_is_found_by_any_of_its_names() {
        let schema = of_module("ansible.builtin.file").unwrap();
        assert_eq!(schema["title"], "file");
        assert!(schema["properties"]["path"].is_object());
        assert_eq!(schema["additionalProperties"], false);
        assert!(of_module("no_such_module").is_none());
    }
}
