//! `-e`: `name=value` words, JSON, YAML, or `@file`; each later one wins.

use std::path::Path;

use fleet_yaml::{Diagnostic, Node, Source, load};

use crate::{
    playbook::{Vars, argument_words, unquote},
    vault::Vault,
};

/// Reads what `-e` was given, in order; `vault` opens files that are encrypted.
///
/// # Errors
/// The first that cannot be read, with its place.
pub fn read(given: &[String], vault: &Vault) -> Result<Vars, Diagnostic> {
    let mut vars = Vars::new();
    for text in given {
        if let Some(path) = text.strip_prefix('@') {
            document(vault.read(Path::new(path))?, &mut vars)?;
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

/// `name=value` words: values are strings, as with Ansible, and a template in one is not split.
fn words(text: &str, vars: &mut Vars) -> Result<(), Diagnostic> {
    let source = Source::new("--extra-vars", text);
    for range in argument_words(text) {
        let span = source.span(range.start, range.end);
        let Some((name, value)) = text[range].split_once('=') else {
            let word = span.text();
            return Err(
                Diagnostic::error(span.clone(), format!("`{word}` is no `name=value`"))
                    .with_help("write `-e name=value`, `-e '{\"name\": …}'` or `-e @file.yml`"),
            );
        };
        let open =
            |quote| value.starts_with(quote) && (value.len() == 1 || !value.ends_with(quote));
        if open('\'') || open('"') {
            return Err(Diagnostic::error(span, "an open quote"));
        }
        vars.insert(name.to_owned(), Node::string(&unquote(value), &span));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Vault, read};

    fn json(given: &[&str]) -> serde_json::Value {
        let given: Vec<String> = given.iter().map(ToString::to_string).collect();
        let vars = read(&given, &Vault::default()).unwrap();
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
    fn templates_and_quotes_hold_words_together() {
        assert_eq!(
            json(&["a={{ b }} c='{{ d }} x' e=\"it's\" f= g={{ 'h' }}"]),
            serde_json::json!({"a": "{{ b }}", "c": "{{ d }} x", "e": "it's", "f": "", "g": "{{ 'h' }}"})
        );
    }

    #[test]
    fn a_word_without_a_value_is_told() {
        assert!(
            read(&["web".to_owned()], &Vault::default())
                .unwrap_err()
                .to_string()
                .contains("`web` is no `name=value`")
        );
    }
}
