//! The text of an `ansible.cfg`: sections of `name = value`, as Python's reader of such files takes them.

use std::{collections::HashMap, sync::Arc};

use fleet_yaml::{Diagnostic, Source, Span};

use super::code;

/// A value in the file.
#[derive(Debug)]
pub(super) struct Entry {
    /// As in `[defaults]`, spelled as written.
    pub(super) section: String,
    pub(super) section_span: Span,
    /// In lower case: names differ by their letters only.
    pub(super) name: String,
    pub(super) name_span: Span,
    /// Without comments and outer blanks; lines of a long value are parted by line breaks.
    pub(super) value: String,
    pub(super) value_span: Span,
}

/// Reads the text. What cannot be read is left out and told.
pub(super) fn read(source: &Arc<Source>) -> (Vec<Entry>, Vec<Diagnostic>) {
    let mut reader = Reader::default();
    let text = source.text.trim_start_matches('\u{feff}');
    let mut start = source.text.len() - text.len();
    for line in text.split_inclusive('\n') {
        reader.line(source, start, line.trim_end_matches(['\n', '\r']));
        start += line.len();
    }
    for entry in &mut reader.entries {
        entry.value.truncate(entry.value.trim_end().len());
    }
    (reader.entries, reader.mistakes)
}

#[derive(Default)]
struct Reader {
    entries: Vec<Entry>,
    mistakes: Vec<Diagnostic>,
    section: Option<(String, Span)>,
    sections: HashMap<String, Span>,
    names: HashMap<(String, String), Span>,
    /// How far the value that is being read is indented; deeper lines go on with it.
    open: Option<usize>,
}

impl Reader {
    fn line(&mut self, source: &Arc<Source>, start: usize, line: &str) {
        let bare = without_comment(line);
        let text = bare.trim();
        let indent = bare.len() - bare.trim_start().len();
        let from = start + indent;
        if text.is_empty() {
            return;
        }
        if self.open.is_some_and(|open| indent > open) {
            if let Some(entry) = self.entries.last_mut() {
                entry.value.push('\n');
                entry.value.push_str(text);
            }
            return;
        }
        self.open = None;
        let span = source.span(from, from + text.len());
        if let Some(name) = heading(text) {
            self.heading(name, span);
            return;
        }
        let Some(at) = text.find(['=', ':']).filter(|at| *at > 0) else {
            self.mistakes.push(
                Diagnostic::error(span, "this line sets nothing")
                    .with_code(code::LINE)
                    .with_label("expected `name = value` or `[section]`"),
            );
            return;
        };
        let name = text[..at].trim_end();
        let value = text[at + 1..].trim_start();
        let name_span = source.span(from, from + name.len());
        let value_from = from + text.len() - value.len();
        let Some((section, section_span)) = self.section.clone() else {
            self.mistakes.push(
                Diagnostic::error(name_span, format!("`{name}` stands before any section"))
                    .with_code(code::LINE)
                    .with_help("write `[defaults]` above it"),
            );
            return;
        };
        self.open = Some(indent);
        let name = name.to_lowercase();
        let key = (section.clone(), name.clone());
        if let Some(first) = self.names.get(&key) {
            self.mistakes.push(
                Diagnostic::error(name_span.clone(), format!("`{name}` is set twice"))
                    .with_code(code::LINE)
                    .with_related(first.clone(), "here first"),
            );
        }
        self.names.insert(key, name_span.clone());
        self.entries.push(Entry {
            section,
            section_span,
            name,
            name_span,
            value: value.to_owned(),
            value_span: source.span(value_from, value_from + value.len()),
        });
    }

    fn heading(&mut self, name: &str, span: Span) {
        if let Some(first) = self.sections.get(name) {
            self.mistakes.push(
                Diagnostic::error(
                    span.clone(),
                    format!("the section `[{name}]` is here twice"),
                )
                .with_code(code::LINE)
                .with_related(first.clone(), "here first"),
            );
        }
        self.sections.insert(name.to_owned(), span.clone());
        self.section = Some((name.to_owned(), span));
    }
}

/// `[name]`; what stands behind the last bracket does not count.
fn heading(text: &str) -> Option<&str> {
    let end = text.rfind(']')?;
    text.strip_prefix('[')?
        .get(..end - 1)
        .filter(|name| !name.is_empty())
}

/// A line without its comment: `#` and `;` begin one at the start of a line, `;` also behind a blank.
fn without_comment(line: &str) -> &str {
    if line.trim_start().starts_with(['#', ';']) {
        return "";
    }
    let begins = |at: &usize| line[..*at].ends_with(char::is_whitespace);
    match line.match_indices(';').map(|(at, _)| at).find(begins) {
        Some(at) => line[..at].trim_end(),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use fleet_yaml::render;

    use super::*;

    fn values(text: &str) -> Vec<(String, String)> {
        let (entries, mistakes) = read(&Source::new("ansible.cfg", text));
        assert!(mistakes.is_empty(), "{mistakes:?}");
        let value = |entry: Entry| (format!("{}.{}", entry.section, entry.name), entry.value);
        entries.into_iter().map(value).collect()
    }

    fn mistakes(text: &str) -> String {
        let (_, mistakes) = read(&Source::new("ansible.cfg", text));
        let shown: Vec<String> = mistakes.iter().map(|one| render(one, false)).collect();
        shown.join("\n")
    }

    #[test]
    fn names_and_values_as_python_reads_them() {
        let text = "\u{feff}# c\n[defaults] x\nFORKS = 7 ; inline\nremote_user : bob\nlibrary=./lib # no comment\n  ; c\ncallbacks = a,\n  b\n\n c: d\nempty =\nkeep=a;b\n[ssh_connection]\r\nssh_args = -o A=b\r\n";
        let expected = [
            ("defaults.forks", "7"),
            ("defaults.remote_user", "bob"),
            ("defaults.library", "./lib # no comment"),
            ("defaults.callbacks", "a,\nb\nc: d"),
            ("defaults.empty", ""),
            ("defaults.keep", "a;b"),
            ("ssh_connection.ssh_args", "-o A=b"),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(values(text), expected);
    }

    #[test]
    fn places_are_those_of_names_and_values() {
        let (entries, _) = read(&Source::new(
            "ansible.cfg",
            "\u{feff}[a]\n  Key  =  value ; c\n",
        ));
        assert_eq!(entries[0].name_span.to_string(), "ansible.cfg:2:3");
        assert_eq!(entries[0].name_span.text(), "Key");
        assert_eq!(entries[0].value_span.text(), "value");
        assert_eq!(entries[0].section_span.text(), "[a]");
    }

    #[test]
    fn what_is_no_setting_is_told() {
        insta::assert_snapshot!(mistakes("forks = 1\n[defaults]\nforks\nforks = 2\nforks = 3\n[defaults]\n= x\n"), @"
        error[F0401]: `forks` stands before any section
         --> ansible.cfg:1:1
          |
        1 | forks = 1
          | ^^^^^
          |
          = help: write `[defaults]` above it
        error[F0401]: this line sets nothing
         --> ansible.cfg:3:1
          |
        3 | forks
          | ^^^^^ expected `name = value` or `[section]`
        error[F0401]: `forks` is set twice
         --> ansible.cfg:5:1
          |
        4 | forks = 2
          | ----- here first
        5 | forks = 3
          | ^^^^^
        error[F0401]: the section `[defaults]` is here twice
         --> ansible.cfg:6:1
          |
        2 | [defaults]
          | ---------- here first
        ...
        6 | [defaults]
          | ^^^^^^^^^^
        error[F0401]: this line sets nothing
         --> ansible.cfg:7:1
          |
        7 | = x
          | ^^^ expected `name = value` or `[section]`
        ");
    }
}
