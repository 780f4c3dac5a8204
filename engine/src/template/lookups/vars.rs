//! Lookups of variables by name.

use minijinja::{Error, Value};

use super::{Asked, Lookup};
use crate::template::given::failed;

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
    for name in asked.texts()? {
        let value = asked
            .evaluation
            .variable(&name)
            .map_err(crate::template::EvalError::into_minijinja)?;
        found.push(
            value
                .or_else(|| asked.option("default").cloned())
                .ok_or_else(|| failed(format!("there is no variable `{name}`")))?,
        );
    }
    Ok(found)
}

fn varnames(asked: &Asked) -> Result<Vec<Value>, Error> {
    let mut names = asked.evaluation.scope.names();
    names.sort();
    let mut found = Vec::new();
    for pattern in asked.texts()? {
        let pattern = crate::template::filters::python_regex(&pattern, false, false)?;
        found.extend(
            names
                .iter()
                .filter(|name| pattern.is_match(name))
                .map(|name| Value::from(name.as_str())),
        );
    }
    Ok(found)
}
