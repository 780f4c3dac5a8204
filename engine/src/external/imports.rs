//! The imports of a Python text, without a Python: strings and comments are skipped, brackets and backslashes join lines.

/// One import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Import {
    /// What is imported, from the root: `ansible.module_utils.basic`.
    pub(super) module: Vec<String>,
    /// With `from`: what of it, a module or a name in one. None for `import a.b`.
    pub(super) name: Option<String>,
    /// It stands in a block (`try`, `if`, a function): what it names may be missing.
    pub(super) optional: bool,
}

/// The imports of a text that is the module `own` (a package where `package` is set), which relative ones start at.
pub(super) fn of(text: &str, own: &[String], package: bool) -> Vec<Import> {
    let mut imports = Vec::new();
    for line in statements(text) {
        let optional = line.indented || line.in_block;
        let words: Vec<&str> = words(&line.text);
        match words.as_slice() {
            ["import", rest @ ..] => {
                for module in rest.split(|word| *word == ",") {
                    // `a.b as c` is `a.b`.
                    if let Some(module) = module.first() {
                        imports.push(Import {
                            module: path(module),
                            name: None,
                            optional,
                        });
                    }
                }
            }
            ["from", from, "import", names @ ..] => {
                let Some(module) = absolute(from, own, package) else {
                    continue;
                };
                let names = names.split(|word| *word == ",");
                for name in names.filter_map(|name| name.first()) {
                    imports.push(Import {
                        module: module.clone(),
                        name: (*name != "*").then(|| (*name).to_owned()),
                        optional,
                    });
                }
            }
            _ => {}
        }
    }
    imports
}

fn path(module: &str) -> Vec<String> {
    module.split('.').map(str::to_owned).collect()
}

/// `..a.b` from where it stands.
fn absolute(from: &str, own: &[String], package: bool) -> Option<Vec<String>> {
    let name = from.trim_start_matches('.');
    let dots = from.len() - name.len();
    let mut module = match dots {
        0 => Vec::new(),
        dots => {
            let up = dots - usize::from(package);
            own.get(..own.len().checked_sub(up)?)?.to_vec()
        }
    };
    if !name.is_empty() {
        module.extend(path(name));
    }
    Some(module)
}

/// The words of a statement; commas are words, brackets are nothing, and the dots of `from . import` stay together.
fn words(statement: &str) -> Vec<&str> {
    let separates = |letter: char| letter.is_whitespace() || matches!(letter, '(' | ')');
    statement
        .split(separates)
        .flat_map(|word| word.split_inclusive(','))
        .flat_map(|word| match word.strip_suffix(',') {
            Some(word) => [word, ","],
            None => [word, ""],
        })
        .filter(|word| !word.is_empty())
        .collect()
}

/// A statement, its strings emptied.
struct Statement {
    text: String,
    indented: bool,
    /// It stands on the line of what it belongs to: `try: import x`.
    in_block: bool,
}

fn statements(text: &str) -> Vec<Statement> {
    let mut statements = Vec::new();
    let mut line = String::new();
    let mut depth = 0_usize;
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        rest = &rest[letter.len_utf8()..];
        match letter {
            '#' => rest = &rest[rest.find('\n').unwrap_or(rest.len())..],
            '"' | '\'' => rest = &rest[string_end(letter, rest)..],
            '\\' => {
                let joined = rest
                    .strip_prefix("\r\n")
                    .or_else(|| rest.strip_prefix('\n'));
                rest = joined.unwrap_or(rest);
                line.push(' ');
            }
            '(' | '[' | '{' => {
                depth += 1;
                line.push(letter);
            }
            ')' | ']' | '}' => {
                depth = depth.saturating_sub(1);
                line.push(letter);
            }
            '\n' if depth > 0 => line.push(' '),
            '\n' => split(&std::mem::take(&mut line), &mut statements),
            letter => line.push(letter),
        }
    }
    split(&line, &mut statements);
    statements
}

/// Where a string ends whose first quote has been read.
fn string_end(quote: char, rest: &str) -> usize {
    let triple: String = std::iter::repeat_n(quote, 3).collect();
    let long = rest.starts_with(&triple[1..]);
    let end: &str = if long { &triple } else { &triple[..1] };
    let mut at = if long { 2 } else { 0 };
    let bytes = rest.as_bytes();
    while at < bytes.len() {
        if bytes[at] == b'\\' {
            at += 2;
        } else if rest.as_bytes()[at..].starts_with(end.as_bytes()) {
            return at + end.len();
        } else if !long && bytes[at] == b'\n' {
            return at;
        } else {
            at += 1;
        }
    }
    rest.len()
}

fn split(line: &str, into: &mut Vec<Statement>) {
    let indented = line.starts_with([' ', '\t']);
    for text in line.split(';') {
        let text = text.trim();
        let block = ["try:", "else:", "finally:"]
            .iter()
            .find_map(|word| text.strip_prefix(word))
            .or_else(|| {
                let opens = ["if ", "elif ", "except", "with ", "for ", "while "];
                let opens = opens.iter().any(|word| text.starts_with(word));
                opens
                    .then(|| text.split_once(": "))
                    .flatten()
                    .map(|(_, text)| text)
            });
        let in_block = block.is_some();
        let text = block.unwrap_or(text).trim();
        if text.starts_with("import ") || text.starts_with("from ") {
            into.push(Statement {
                text: text.to_owned(),
                indented,
                in_block,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::of;

    fn read(text: &str) -> Vec<String> {
        let own = ["ansible_collections", "ns", "c", "plugins", "modules", "m"].map(str::to_owned);
        of(text, &own, false)
            .into_iter()
            .map(|import| {
                let name = import
                    .name
                    .map(|name| format!(":{name}"))
                    .unwrap_or_default();
                let optional = if import.optional { "?" } else { "" };
                format!("{}{name}{optional}", import.module.join("."))
            })
            .collect()
    }

    #[test]
    fn imports_are_found_in_all_their_forms() {
        let text = r#"
"""import not.this
from not import this"""
x = 'import nor.that \' import x'  # import comment
import a.b, c as d
from e.f import g as h, i
from j import (  # why
    k,
    l as m,
)
from n \
    import o
from p import *
try:
    from q import r
except ImportError: import s
if True: import t
y = {
  'a': 1,
}
import u; import v
try: import w
finally: pass
"#;
        assert_eq!(
            read(text),
            [
                "a.b", "c", "e.f:g", "e.f:i", "j:k", "j:l", "n:o", "p", "q:r?", "s?", "t?", "u",
                "v", "w?"
            ]
        );
    }

    #[test]
    fn relative_imports_start_at_the_module() {
        assert_eq!(
            read(
                "from ..module_utils.x import y\nfrom . import z\nfrom .a import b\nfrom ........ import c\n"
            ),
            [
                "ansible_collections.ns.c.plugins.module_utils.x:y",
                "ansible_collections.ns.c.plugins.modules:z",
                "ansible_collections.ns.c.plugins.modules.a:b",
            ]
        );
        let own = ["a".to_owned(), "b".to_owned()];
        let in_package = of("from .c import d", &own, true);
        assert_eq!(in_package[0].module, ["a", "b", "c"]);
    }
}
