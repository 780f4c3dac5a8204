//! `-e`: `name=value` words, JSON, YAML, or `@file`; each later one wins.

use std::path::Path;

use fleet_yaml::{Diagnostic, Node, Source, load};

use crate::playbook::Vars;

/// Reads what `-e` was given, in order.
///
/// # Errors
/// The first that cannot be read, with its place.
pub fn read(given: &[String]) -> Result<Vars, Diagnostic> {
    let mut vars = Vars::new();
    for text in given {
        if let Some(path) = text.strip_prefix('@') {
            document(Source::read(Path::new(path))?, &mut vars)?;
        } else if text.trim_start().starts_with(['{', '['])
            || text.contains(": ")
            || text.contains('\n')
        {
            document(Source::new("--extra-vars", text.as_str()), &mut vars)?;
        } else {
            words(text, &mut vars)?;
        }
    }
    Ok(vars)
}

fn document(source: std::sync::Arc<Source>, vars: &mut Vars) -> Result<(), Diagnostic> {
    for document in load(source)?.documents {
        let Some(map) = document.as_map() else {
            if document.is_null() {
                continue;
            }
            let found = document.kind_name();
            return Err(Diagnostic::error(
                document.span.clone(),
                format!("expected a mapping of variables, not {found}"),
            ));
        };
        for (key, value) in map.iter() {
            vars.insert(key.key_text(), value.clone());
        }
    }
    Ok(())
}

/// `name=value` words: values are strings, as with Ansible.
fn words(text: &str, vars: &mut Vars) -> Result<(), Diagnostic> {
    let source = Source::new("--extra-vars", text);
    let span = fleet_yaml::Span {
        end: text.len(),
        source,
        start: 0,
    };
    let words =
        shlex::split(text).ok_or_else(|| Diagnostic::error(span.clone(), "an open quote"))?;
    for word in words {
        let Some((name, value)) = word.split_once('=') else {
            return Err(
                Diagnostic::error(span, format!("`{word}` is no `name=value`"))
                    .with_help("write `-e name=value`, `-e '{\"name\": …}'` or `-e @file.yml`"),
            );
        };
        vars.insert(name.to_owned(), Node::string(value, &span));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::read;

    fn json(given: &[&str]) -> serde_json::Value {
        let given: Vec<String> = given.iter().map(ToString::to_string).collect();
        let vars = read(&given).unwrap();
        vars.iter()
            .map(|(name, node)| (name.clone(), node.to_json()))
            .collect::<serde_json::Map<_, _>>()
            .into()
    }

    #[test]
    fn all_forms_are_read_and_later_ones_win() {
        assert_eq!(
            json(&["a=1 b='x y'", "{\"a\": 2, \"c\": [1]}", "d: yes"]),
            serde_json::json!({"a": 2, "b": "x y", "c": [1], "d": true})
        );
    }

    #[test]
    fn a_word_without_a_value_is_told() {
        assert!(
            read(&["web".to_owned()])
                .unwrap_err()
                .to_string()
                .contains("`web` is no `name=value`")
        );
    }
}
