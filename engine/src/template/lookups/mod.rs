//! The lookups: `lookup('file', …)`, `query('items', …)`, `with_items`.

mod files;
mod inline;
mod inventory;
mod lists;
mod outside;
mod password;
mod settings;
mod tables;
mod vars;

use std::sync::Arc;

use minijinja::value::Kwargs;
use minijinja::{Error, ErrorKind, State, Value};

use super::evaluation::{self, Evaluation};
use super::given::{failed, worded};
use super::python::text;
use fleet_yaml::nearest;

/// What a lookup was asked.
pub(crate) struct Asked {
    pub(crate) evaluation: Arc<Evaluation>,
    /// What to look for.
    pub(crate) terms: Vec<Value>,
    /// What was given by name.
    pub(crate) options: Vec<(String, Value)>,
}

impl Asked {
    /// An option, if it was given.
    pub(crate) fn option(&self, name: &str) -> Option<&Value> {
        self.options
            .iter()
            .find(|(known, _)| known == name)
            .map(|pair| &pair.1)
    }

    /// An option as text.
    pub(crate) fn option_text(&self, name: &str, default: &str) -> Result<String, Error> {
        self.option(name)
            .map_or_else(|| Ok(default.to_owned()), text::str)
    }

    /// An option as yes or no.
    pub(crate) fn option_flag(&self, name: &str, default: bool) -> bool {
        self.option(name).map_or(default, Value::is_true)
    }

    /// The terms as texts, lists among them opened.
    pub(crate) fn texts(&self) -> Result<Vec<String>, Error> {
        lists::flattened(&self.terms)?
            .iter()
            .map(text::str)
            .collect()
    }
}

/// A lookup: its names and what it finds.
pub(crate) struct Lookup {
    pub(crate) names: &'static str,
    pub(crate) run: fn(&Asked) -> Result<Vec<Value>, Error>,
}

const FAMILIES: [&[Lookup]; 8] = [
    files::LOOKUPS,
    inventory::LOOKUPS,
    lists::LOOKUPS,
    outside::LOOKUPS,
    password::LOOKUPS,
    settings::LOOKUPS,
    tables::LOOKUPS,
    vars::LOOKUPS,
];

/// The names of all lookups, without their collection.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    FAMILIES
        .into_iter()
        .flatten()
        .flat_map(|lookup| lookup.names.split_whitespace())
}

/// Runs a lookup by name.
///
/// # Errors
/// If there is no such lookup, or it finds nothing and may not.
pub(crate) fn find(name: &str, asked: &Asked) -> Result<Vec<Value>, Error> {
    let plain = name.strip_prefix("ansible.builtin.").unwrap_or(name);
    let known = FAMILIES.into_iter().flatten().find(|lookup| {
        lookup
            .names
            .split_whitespace()
            .any(|known| known == plain || known == name)
    });
    let Some(lookup) = known else {
        let near = nearest(plain, names())
            .map_or_else(String::new, |near| format!(": did you mean `{near}`?"));
        return Err(failed(format!(
            "The lookup plugin '{name}' was not found{near}"
        )));
    };
    (lookup.run)(asked)
}

/// The error with the lookup that it is of.
fn of_lookup(name: &str, error: Error) -> Error {
    let plain = name.strip_prefix("ansible.builtin.").unwrap_or(name);
    match error.detail() {
        // What an error at a place of its own carries stays as it is.
        Some(detail) if error.kind() == ErrorKind::InvalidOperation && worded(&error) => {
            failed(format!("The lookup plugin '{plain}' failed: {detail}"))
        }
        _ => error,
    }
}

/// `lookup(name, …)` and `query(name, …)`.
pub(crate) fn call(
    _: &mut State<'_, '_>,
    arguments: &[Value],
    query: bool,
) -> Result<Value, Error> {
    let mut terms = Vec::new();
    let mut options = Vec::new();
    for argument in arguments {
        if argument.is_kwargs() {
            let keywords = Kwargs::try_from(argument.clone())?;
            for key in keywords.args() {
                options.push((key.to_owned(), keywords.get::<Value>(key)?));
            }
        } else {
            terms.push(argument.clone());
        }
    }
    if terms.is_empty() {
        return Err(failed("lookup() needs the name of a lookup"));
    }
    let name = text::str(&terms.remove(0))?;
    let asked = Asked {
        evaluation: evaluation::current()?,
        terms,
        options,
    };
    let as_list = query || asked.option_flag("wantlist", false);
    let found = match find(&name, &asked) {
        Ok(found) => found,
        Err(error) => {
            let error = of_lookup(&name, error);
            return match asked.option_text("errors", "strict")?.as_str() {
                "ignore" | "warn" if as_list => Ok(Value::from(Vec::<Value>::new())),
                "ignore" | "warn" => Ok(Value::from(())),
                _ => Err(error),
            };
        }
    };
    // A lookup that finds nothing gives an empty list in any case.
    if as_list || found.is_empty() {
        return Ok(found.into());
    }
    // Texts come joined, one value as itself, other values as a list.
    match <[Value; 1]>::try_from(found) {
        Ok([one]) => Ok(one),
        Err(found) => {
            let texts: Option<Vec<&str>> = found.iter().map(Value::as_str).collect();
            Ok(texts
                .map(|texts| Value::from(texts.join(",")))
                .unwrap_or_else(|| Value::from(found.clone())))
        }
    }
}
