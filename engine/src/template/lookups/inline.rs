//! Options inside of a term, as old playbooks write them: `lookup('ini', 'user section=db file=users.ini')`.

use minijinja::{Error, Value};

use super::Asked;
use crate::template::given::failed;
use crate::template::python::text;

/// A term without the options in it, and these.
pub(super) struct Inline {
    pub(super) key: String,
    options: Vec<(String, String)>,
}

impl Inline {
    /// Takes a term apart. Quotes keep blanks in a value together, and `\\t` and `\\x1a` stand for what they stand for in
    /// Python.
    ///
    /// # Errors
    /// If an option is none of `known`, or nothing but options is there.
    pub(super) fn parse(lookup: &str, term: &str, known: &[&str]) -> Result<Self, Error> {
        let mut key: Vec<&str> = Vec::new();
        let mut options = Vec::new();
        for word in words(term) {
            match word.split_once('=') {
                Some((name, value)) if is_name(name) => {
                    if key.is_empty() {
                        return Err(failed(if known.contains(&name) {
                            format!(
                                "{lookup}: Search key is required but was not found: No key to look up was provided as first term within string inline options: `{term}`"
                            )
                        } else {
                            format!("`{name}` is not a valid option of {lookup}")
                        }));
                    }
                    if !known.contains(&name) {
                        return Err(failed(format!(
                            "`{name}` is not a valid option of {lookup}"
                        )));
                    }
                    options.push((name.to_owned(), unescaped(unquoted(value))));
                }
                _ => key.push(word),
            }
        }
        Ok(Self {
            key: key.join(" "),
            options,
        })
    }

    /// An option: the term's own, or else one given by name.
    pub(super) fn option(&self, asked: &Asked, name: &str) -> Option<Value> {
        let own = self.options.iter().find(|(known, _)| known == name);
        own.map(|(_, value)| Value::from(value.as_str()))
            .or_else(|| asked.option(name).cloned())
            .filter(|value| !value.is_none())
    }

    /// An option as text.
    pub(super) fn text(&self, asked: &Asked, name: &str, default: &str) -> Result<String, Error> {
        self.option(asked, name)
            .map_or_else(|| Ok(default.to_owned()), |value| text::str(&value))
    }

    /// An option as yes or no.
    pub(super) fn flag(&self, asked: &Asked, name: &str, default: bool) -> bool {
        self.option(asked, name).map_or(default, |value| {
            value
                .as_str()
                .and_then(crate::template::python::truth::from_text)
                .unwrap_or_else(|| value.is_true())
        })
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Words between blanks, with what stands in quotes in one piece.
fn words(term: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let (mut start, mut quote) = (None, None);
    for (at, c) in term.char_indices() {
        if c.is_whitespace() && quote.is_none() {
            if let Some(start) = start.take() {
                found.push(&term[start..at]);
            }
            continue;
        }
        start.get_or_insert(at);
        match quote {
            Some(open) if open == c => quote = None,
            None if c == '"' || c == '\'' => quote = Some(c),
            _ => {}
        }
    }
    found.extend(start.map(|start| &term[start..]));
    found
}

fn unquoted(value: &str) -> &str {
    ['"', '\'']
        .into_iter()
        .find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote))
        .unwrap_or(value)
}

fn unescaped(value: &str) -> String {
    let mut out = String::new();
    let mut rest = value;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let (meant, length) = match rest.as_bytes().first() {
            Some(b't') => (Some('\t'), 1),
            Some(b'n') => (Some('\n'), 1),
            Some(b'r') => (Some('\r'), 1),
            Some(b'\\') => (Some('\\'), 1),
            Some(b'x') => {
                let code = rest
                    .get(1..3)
                    .and_then(|hex| u8::from_str_radix(hex, 16).ok());
                (code.map(char::from), 3)
            }
            _ => (None, 0),
        };
        match meant {
            Some(c) => {
                out.push(c);
                rest = &rest[length..];
            }
            None => out.push('\\'),
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_what_is_no_option() {
        let parse = |term| Inline::parse("csvfile", term, &["file", "delimiter"]);
        let found = parse("German von Lastname file=\"a b.csv\" delimiter=\\x1a").unwrap();
        assert_eq!(found.key, "German von Lastname");
        assert_eq!(found.options[0].1, "a b.csv");
        assert_eq!(found.options[1].1, "\u{1a}");
        assert!(parse("key fiel=x").is_err());
        assert!(parse("file=x").is_err());
    }
}
