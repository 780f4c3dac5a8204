//! Lookups of variables by name.

use std::collections::HashSet;

use minijinja::{Error, Value};

use super::{Asked, Lookup};
use crate::template::failure::EvalError;
use crate::template::filters;
use crate::template::given::failed;
use crate::template::python::text;

pub(super) const LOOKUPS: &[Lookup] = &[
    Lookup {
        names: "vars",
        run: vars,
    },
    Lookup {
        names: "varnames",
        run: varnames,
    },
];

fn vars(asked: &Asked) -> Result<Vec<Value>, Error> {
    let mut found = Vec::new();
    for term in &asked.terms {
        let Some(name) = term.as_str() else {
            return Err(failed(format!(
                "Variable name must be 'str' not '{}'",
                text::type_name(term)
            )));
        };
        let value = asked
            .evaluation
            .variable(name)
            .map_err(EvalError::into_minijinja)?;
        found.push(match (value, asked.option("default")) {
            (Some(value), _) => value,
            (None, default) => match (asked.evaluation.why_undefined(name), default) {
                // One that is there, but made of something that is not, is no case for the default.
                (Some(why), _) => {
                    asked.evaluation.hint_at(why.diagnostic().message.clone());
                    Value::UNDEFINED
                }
                (None, Some(default)) => default.clone(),
                (None, None) => {
                    return Err(failed(format!("No variable named '{name}' was found")));
                }
            },
        });
    }
    Ok(found)
}

fn varnames(asked: &Asked) -> Result<Vec<Value>, Error> {
    let names = asked.evaluation.scope.names();
    let mut found = Vec::new();
    for term in &asked.terms {
        let Some(pattern) = term.as_str() else {
            return Err(failed(format!(
                "Invalid setting identifier, `{term}` is not a string, it is a {}",
                text::type_name(term)
            )));
        };
        let pattern = filters::python_regex(pattern, false, false).map_err(|error| {
            failed(format!(
                "Unable to use \"{pattern}\" as a search parameter: {}",
                error.detail().unwrap_or_default()
            ))
        })?;
        let mut seen = HashSet::new();
        for name in &names {
            if pattern.is_match(name)? && seen.insert(name) {
                found.push(Value::from(name.as_str()));
            }
        }
    }
    Ok(found)
}
