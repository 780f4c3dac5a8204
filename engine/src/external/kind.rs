//! How a module is given its arguments, and what runs it: read off its first bytes and its words, as Ansible does.

use std::sync::LazyLock;

use regex::bytes::Regex;

/// How a module is given its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Python that imports Ansible's `module_utils`: JSON, by way of `AnsibleModule`.
    Python,
    /// A text with a place in it where the arguments are put as JSON.
    JsonInText,
    /// A script that is given the path of a JSON file, because it says `WANT_JSON`.
    WantJson,
    /// Any other script: it is given the path of a file of `k=v` words.
    KeysAndValues,
    /// A program: it is given the path of a JSON file.
    Binary,
    /// A module for Windows.
    PowerShell,
}

/// The bytes that are looked at to tell a text from a program.
const LOOKED_AT: usize = 1024;

impl Kind {
    /// What a module's text is.
    #[must_use]
    pub fn of(source: &[u8]) -> Self {
        /// Lines that only a Python module for Ansible has.
        static IMPORTS: LazyLock<Option<Regex>> = LazyLock::new(|| {
            Regex::new(
                r"(?m)^[ \t]*(?:from[ \t]+ansible\.module_utils\b|import[ \t]+ansible\.module_utils\b|from[ \t]+ansible_collections\.\w+\.\w+\.plugins\.module_utils\b|import[ \t]+ansible_collections\.\w+\.\w+\.plugins\.module_utils\b|from[ \t]+\.{1,9}module_utils\b|from[ \t]+ansible[ \t]+import[ \t]+module_utils\b)",
            )
            .ok()
        });
        let has = |text: &[u8]| source.windows(text.len()).any(|part| part == text);
        if is_binary(source) {
            Self::Binary
        } else if has(b"#<<INCLUDE_ANSIBLE_MODULE_COMMON>>")
            || has(b"# <<INCLUDE_ANSIBLE_MODULE_COMMON>>")
            || IMPORTS
                .as_ref()
                .is_some_and(|imports| imports.is_match(source))
        {
            Self::Python
        } else if has(b"<<INCLUDE_ANSIBLE_MODULE_JSON_ARGS>>") {
            Self::JsonInText
        } else if has(b"#Requires -Module Ansible") || has(b"# POWERSHELL_COMMON") {
            Self::PowerShell
        } else if has(b"WANT_JSON") {
            Self::WantJson
        } else {
            Self::KeysAndValues
        }
    }

    /// The word for it that the helper knows.
    #[must_use]
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::JsonInText => "json_in_text",
            Self::WantJson => "want_json",
            Self::KeysAndValues => "keys_and_values",
            Self::Binary | Self::PowerShell => "binary",
        }
    }
}

/// Control characters that no text has are in its first bytes.
fn is_binary(source: &[u8]) -> bool {
    source
        .iter()
        .take(LOOKED_AT)
        .any(|byte| !matches!(byte, 7..=10 | 12 | 13 | 27 | 0x20..))
}

/// What runs a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interpreter {
    /// The host's Python, with these options.
    Python(Vec<String>),
    /// The program that its first line names, and the words behind it.
    Program(Vec<String>),
    /// It runs by itself.
    None,
    /// A script whose first line names nothing.
    Missing,
}

impl Interpreter {
    pub(super) fn of(source: &[u8], kind: Kind) -> Self {
        if kind == Kind::Binary {
            return Self::None;
        }
        let first = source.split(|byte| *byte == b'\n').next().unwrap_or(&[]);
        let first = String::from_utf8_lossy(first);
        let words: Vec<String> = first
            .trim()
            .strip_prefix("#!")
            .map(|line| line.split_whitespace().map(str::to_owned).collect())
            .unwrap_or_default();
        let by_env = words.first().is_some_and(|word| word.ends_with("/env"));
        let program = words.get(usize::from(by_env));
        match program.map(|word| name_of(word)) {
            Some(name) if name.starts_with("python") => {
                Self::Python(words[usize::from(by_env) + 1..].to_vec())
            }
            Some(_) => Self::Program(words),
            None if kind == Kind::Python => Self::Python(Vec::new()),
            None => Self::Missing,
        }
    }

    /// The program's bare name, `python` for any Python.
    fn program_word(words: &[String]) -> Option<&str> {
        let by_env = words.first().is_some_and(|word| word.ends_with("/env"));
        words.get(usize::from(by_env)).map(|word| name_of(word))
    }

    pub(super) fn program(&self) -> Option<&str> {
        match self {
            Self::Python(_) => Some("python"),
            Self::Program(words) => Self::program_word(words),
            Self::None | Self::Missing => None,
        }
    }
}

fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::{Interpreter, Kind};

    fn of(text: &str) -> (Kind, Interpreter) {
        let kind = Kind::of(text.as_bytes());
        (kind, Interpreter::of(text.as_bytes(), kind))
    }

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).collect()
    }

    #[test]
    fn python_is_told_by_its_imports() {
        for text in [
            "#!/usr/bin/python\nfrom ansible.module_utils.basic import AnsibleModule\n",
            "from ansible.module_utils import basic",
            "  import ansible.module_utils.foo0\n",
            "from ansible_collections.a.b.plugins.module_utils.c import d",
            "from ..module_utils.c import d",
            "#!/usr/bin/env python3\n#<<INCLUDE_ANSIBLE_MODULE_COMMON>>\n",
        ] {
            assert_eq!(
                of(text),
                (Kind::Python, Interpreter::Python(Vec::new())),
                "{text}"
            );
        }
    }

    #[test]
    fn scripts_are_told_by_what_they_ask_for() {
        assert_eq!(
            of("#!/usr/bin/python -u\n# WANT_JSON\n"),
            (Kind::WantJson, Interpreter::Python(words(&["-u"])))
        );
        assert_eq!(
            of("#!/bin/sh\n. $1\n"),
            (
                Kind::KeysAndValues,
                Interpreter::Program(words(&["/bin/sh"]))
            )
        );
        assert_eq!(
            of("#!/usr/bin/env ruby\n# WANT_JSON"),
            (
                Kind::WantJson,
                Interpreter::Program(words(&["/usr/bin/env", "ruby"]))
            )
        );
        assert_eq!(
            of("#!/bin/sh\nargs='<<INCLUDE_ANSIBLE_MODULE_JSON_ARGS>>'").0,
            Kind::JsonInText
        );
        assert_eq!(of("print(1)"), (Kind::KeysAndValues, Interpreter::Missing));
    }

    #[test]
    fn a_program_has_bytes_that_no_text_has() {
        assert_eq!(Kind::of(b"\x7fELF\x02\x01\x01\0\0"), Kind::Binary);
        assert_eq!(
            Kind::of("#!/bin/sh\necho gr\u{fc}n".as_bytes()),
            Kind::KeysAndValues
        );
    }
}
