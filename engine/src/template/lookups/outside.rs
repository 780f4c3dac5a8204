//! Lookups that ask the controller's system.

use minijinja::{Error, Value};

use super::{Asked, Lookup};
use crate::template::given::failed;

pub(super) const LOOKUPS: &[Lookup] = &[
    Lookup {
        names: "env",
        run: env,
    },
    Lookup {
        names: "pipe",
        run: |asked| output(asked, false),
    },
    Lookup {
        names: "url",
        run: url,
    },
];

fn env(asked: &Asked) -> Result<Vec<Value>, Error> {
    let controller = asked.evaluation.templar.controller();
    let default = asked
        .option("default")
        .cloned()
        .unwrap_or_else(|| Value::from(""));
    let found = |name: &String| match controller.environment(name) {
        Some(value) => Value::from(value),
        None => {
            if default.is_undefined() {
                asked
                    .evaluation
                    .hint_at(format!("The environment variable '{name}' is not set"));
            }
            default.clone()
        }
    };
    Ok(asked.texts()?.iter().map(found).collect())
}

/// What a command prints, whole or by lines.
pub(super) fn output(asked: &Asked, lines: bool) -> Result<Vec<Value>, Error> {
    let templar = &asked.evaluation.templar;
    let mut found = Vec::new();
    for command in asked.texts()? {
        let output = templar
            .controller()
            .run(&command, &templar.settings().playbook_dir)
            .map_err(|error| {
                failed(format!(
                    "`{command}` could not be run on the controller: {error}"
                ))
            })?;
        if output.status != 0 {
            return Err(failed(format!(
                "`{command}` ended with {} on the controller: {}",
                output.status,
                output.stderr.trim()
            )));
        }
        if lines {
            found.extend(output.stdout.lines().map(Value::from));
        } else {
            found.push(output.stdout.trim_end().into());
        }
    }
    Ok(found)
}

fn url(asked: &Asked) -> Result<Vec<Value>, Error> {
    let mut found = Vec::new();
    for address in asked.texts()? {
        let body = asked
            .evaluation
            .templar
            .controller()
            .fetch(&address)
            .map_err(|error| failed(format!("{address} could not be fetched: {error}")))?;
        if asked.option_flag("split_lines", true) {
            found.extend(body.lines().map(Value::from));
        } else {
            found.push(body.into());
        }
    }
    Ok(found)
}
