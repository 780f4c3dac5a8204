use std::path::PathBuf;

use serde::Deserialize;
use serde_json::json;

use super::edited::{self, with_attributes};
use super::encoding;
use crate::args::{Bool, Text};
use crate::host::{Entry, Fault, Host};
use crate::module::{ArgumentError, Module, Report, Task};
use crate::pattern::{Pattern, latin1};

pub(super) static MODULE: Module = Module::of::<LineInFile>();

with_attributes! {
    /// Ensures that a line is in a file, or is not; replaces a line that a regular expression matches.
    ///
    /// Only one line is changed: the last that matches, or the first with `firstmatch`.
    struct LineInFile {
        /// The file. A link is followed.
        path: Text,
        /// The line, without its newline. Required where it shall be present.
        line: Option<Text>,
        /// Whether the line shall be in the file: `present` or `absent`.
        #[serde(default)]
        state: State,
        /// A regular expression, in Python's syntax, for the line to replace (`present`) or the lines to remove
        /// (`absent`). It should match the line both before and after the change.
        regexp: Option<Text>,
        /// A text to look for in place of `regexp`.
        search_string: Option<Text>,
        /// Where no line matches: insert after the last line that this expression matches; `EOF` (the default)
        /// means at the end, `BOF` at the beginning.
        insertafter: Option<Text>,
        /// Where no line matches: insert before the last line that this expression matches; `BOF` means at the beginning.
        insertbefore: Option<Text>,
        /// Fill the groups of `regexp` into `line` (`\1`, `\g<name>`); where nothing matches, nothing is done.
        #[serde(default)]
        backrefs: Bool,
        /// Take the first match, not the last.
        #[serde(default)]
        firstmatch: Bool,
        /// Make the file, and the directories above it, where it is absent.
        #[serde(default)]
        create: Bool,
        /// The file's encoding. For others than UTF-8 the host needs `iconv`.
        #[serde(default = "utf_8")]
        encoding: Text,
        /// Report where the run keeps the file as it was. It is always kept.
        #[serde(default)]
        backup: Bool,
        /// A command that must accept the new file before it is put in place; `%s` stands for it.
        validate: Option<Text>,
    }
}

fn utf_8() -> Text {
    "utf-8".into()
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
enum State {
    #[default]
    Present,
    Absent,
}

impl Task for LineInFile {
    const NAME: &'static str = "lineinfile";
    const ARGUMENT_ALIASES: &'static [(&'static str, &'static str)] = &[
        ("dest", "path"),
        ("destfile", "path"),
        ("name", "path"),
        ("regex", "regexp"),
        ("value", "line"),
        ("attr", "attributes"),
    ];

    fn check(&self) -> Result<(), ArgumentError> {
        let both = |one: bool, other: bool, names: &str| match one && other {
            true => Err(ArgumentError::of(names, "it goes with only one of them")),
            false => Ok(()),
        };
        let (regexp, text) = (self.regexp.is_some(), self.search_string.is_some());
        both(regexp, text, "regexp, search_string")?;
        both(*self.backrefs, text, "backrefs, search_string")?;
        both(
            self.insertafter.is_some(),
            self.insertbefore.is_some(),
            "insertafter, insertbefore",
        )?;
        if *self.backrefs && !regexp {
            return Err(ArgumentError::of("regexp", "it is required with backrefs"));
        }
        match self.state {
            State::Present if self.line.is_none() => Err(ArgumentError::of(
                "line",
                "it is required where the line shall be present",
            )),
            State::Absent if self.line.is_none() && !regexp && !text => Err(ArgumentError::of(
                "line",
                "one of line, search_string and regexp is required",
            )),
            _ => self.edit().map(drop),
        }
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        edited::check_validate(self.validate.as_deref())?;
        let edit = self.edit()?;
        let path = host.resolve(&host.expand(&self.path))?;
        if let Entry::Dir(_) = host.entry(&path)? {
            return Err(
                Fault::new(format!("Path {} is a directory !", path.display())).with("rc", 256),
            );
        }
        let Some(before) = host.read(&path)? else {
            return self.absent(host, path, &edit);
        };
        let before = encoding::decode(host, &self.encoding, before)?;
        let done = edit.apply(&before, self.state).map_err(Fault::new)?;
        self.finish(host, path, done)
    }
}

impl LineInFile {
    fn edit(&self) -> Result<Edit<'_>, ArgumentError> {
        let pattern = |argument: &str, text: &str| {
            Pattern::new(text).map_err(|problem| ArgumentError::of(argument, problem))
        };
        let find = match (&self.regexp, &self.search_string) {
            (Some(regexp), _) => Find::Pattern(pattern("regexp", regexp)?),
            (None, Some(text)) => Find::Text(text),
            (None, None) => Find::Line,
        };
        let place = match (self.insertafter.as_deref(), self.insertbefore.as_deref()) {
            (Some("BOF"), _) | (_, Some("BOF")) => Place::Start,
            (None | Some("EOF"), None) => Place::End,
            (Some(after), _) => Place::After(pattern("insertafter", after)?),
            (_, Some(before)) => Place::Before(pattern("insertbefore", before)?),
        };
        Ok(Edit {
            find,
            place,
            line: self.line.as_deref().unwrap_or_default(),
            backrefs: *self.backrefs,
            first: *self.firstmatch,
        })
    }

    /// There is no file: it is made, or that is an error, unless the line is not wanted anyway.
    fn absent(&self, host: &mut Host, path: PathBuf, edit: &Edit<'_>) -> Result<Report, Fault> {
        if self.state == State::Absent {
            return Ok(Report::of(json!({"msg": "file not present", "found": 0})));
        }
        if !*self.create {
            if host.open() {
                return Ok(edited::unknown(&path));
            }
            let message = format!("Destination {} does not exist !", path.display());
            return Err(Fault::new(message).with("rc", 257));
        }
        edited::make_parents(host, &path)?;
        let done = edit.apply(b"", State::Present).map_err(Fault::new)?;
        self.finish(host, path, done)
    }

    fn finish(&self, host: &mut Host, path: PathBuf, done: Done) -> Result<Report, Fault> {
        let content = match done.changed {
            true => Some(encoding::encode(host, &self.encoding, done.content)?),
            false => None,
        };
        let attributes = self.attributes().validated(self.validate.as_deref());
        let saved = edited::write(host, &path, content, &attributes)?;
        let mut report = Report::of(json!({"msg": saved.message(&done.message), "backup": ""}));
        if let Some(found) = done.found {
            report.fields.insert("found".to_owned(), found.into());
        }
        if *self.backup {
            edited::tell_backup(host, &path, "backup", &mut report.fields);
        }
        Ok(report)
    }
}

/// What is looked for.
enum Find<'a> {
    Pattern(Pattern),
    Text(&'a str),
    /// The line itself.
    Line,
}

/// Where a line goes that is not there yet.
enum Place {
    Start,
    End,
    After(Pattern),
    Before(Pattern),
}

struct Edit<'a> {
    find: Find<'a>,
    place: Place,
    line: &'a str,
    backrefs: bool,
    first: bool,
}

#[derive(Debug, PartialEq)]
struct Done {
    content: Vec<u8>,
    changed: bool,
    message: String,
    /// How many lines were removed.
    found: Option<usize>,
}

impl Edit<'_> {
    fn apply(&self, content: &[u8], state: State) -> Result<Done, String> {
        let mut lines: Vec<Vec<u8>> = content
            .split_inclusive(|byte| *byte == b'\n')
            .map(<[u8]>::to_vec)
            .collect();
        let message = match state {
            State::Present => self.present(&mut lines)?.to_owned(),
            State::Absent => {
                let before = lines.len();
                lines.retain(|line| !self.is_wanted(line));
                let found = before - lines.len();
                return Ok(Done {
                    content: lines.concat(),
                    changed: found > 0,
                    message: if found > 0 {
                        format!("{found} line(s) removed")
                    } else {
                        String::new()
                    },
                    found: Some(found),
                });
            }
        };
        Ok(Done {
            content: lines.concat(),
            changed: !message.is_empty(),
            message,
            found: None,
        })
    }

    fn is_wanted(&self, line: &[u8]) -> bool {
        match &self.find {
            Find::Pattern(pattern) => pattern.is_in(line),
            Find::Text(text) => contains(line, text.as_bytes()),
            Find::Line => bare(line) == self.line.as_bytes(),
        }
    }

    /// Says what was done; nothing where the line is as wanted.
    fn present(&self, lines: &mut Vec<Vec<u8>>) -> Result<&'static str, String> {
        const REPLACED: &str = "line replaced";
        const ADDED: &str = "line added";
        let matched = match self.find {
            Find::Line => None,
            _ => self.pick(lines.iter(), |line| self.is_wanted(line)),
        };
        if let Some(at) = matched {
            let new = ended(self.filled(&lines[at])?);
            return Ok(match std::mem::replace(&mut lines[at], new) != lines[at] {
                true => REPLACED,
                false => "",
            });
        }
        let (same, anchor) = self.places(lines);
        let line = ended(self.line.as_bytes().to_vec());
        if let Some(at) = same {
            // Only its newline can be wanting.
            return Ok(match std::mem::replace(&mut lines[at], line) != lines[at] {
                true => REPLACED,
                false => "",
            });
        }
        if self.backrefs {
            return Ok("");
        }
        match (&self.place, anchor) {
            (Place::Start, _) => lines.insert(0, line),
            (Place::Before(_), Some(at)) => lines.insert(at, line),
            (Place::After(_), Some(at)) => {
                // With `firstmatch` the line may follow unseen.
                if lines
                    .get(at + 1)
                    .is_some_and(|next| bare(next) == self.line.as_bytes())
                {
                    return Ok("");
                }
                if at + 1 == lines.len() {
                    end_last(lines);
                }
                lines.insert(at + 1, line);
            }
            (Place::End | Place::After(_) | Place::Before(_), _) => {
                end_last(lines);
                lines.push(line);
            }
        }
        Ok(ADDED)
    }

    /// The line itself where it is there already, and the line that it would go next to. Both are looked for in
    /// one pass, as in Ansible: with `firstmatch` it ends at the first anchor, and what follows is not seen.
    fn places(&self, lines: &[Vec<u8>]) -> (Option<usize>, Option<usize>) {
        let (mut same, mut anchor) = (None, None);
        let pattern = match &self.place {
            Place::After(pattern) | Place::Before(pattern) => Some(pattern),
            Place::Start | Place::End => None,
        };
        for (at, line) in lines.iter().enumerate() {
            if bare(line) == self.line.as_bytes() {
                same = Some(at);
            } else if pattern.is_some_and(|pattern| pattern.is_in(line)) {
                anchor = Some(at);
                if self.first {
                    break;
                }
            }
        }
        (same, anchor)
    }

    fn pick<'l>(
        &self,
        mut lines: impl DoubleEndedIterator<Item = &'l Vec<u8>> + ExactSizeIterator,
        wanted: impl Fn(&[u8]) -> bool,
    ) -> Option<usize> {
        match self.first {
            true => lines.position(|line| wanted(line)),
            false => lines.rposition(|line| wanted(line)),
        }
    }

    /// The line with the groups of the match filled in, where that is asked for.
    fn filled(&self, matched: &[u8]) -> Result<Vec<u8>, String> {
        if let (Find::Pattern(pattern), true) = (&self.find, self.backrefs) {
            let text = latin1(matched);
            if let Some(found) = pattern.find(&text) {
                return found.expand(self.line);
            }
        }
        Ok(self.line.as_bytes().to_vec())
    }
}

/// A line without the signs that end it.
fn bare(line: &[u8]) -> &[u8] {
    let end = line.iter().rposition(|byte| !matches!(byte, b'\r' | b'\n'));
    &line[..end.map_or(0, |at| at + 1)]
}

fn ended(mut line: Vec<u8>) -> Vec<u8> {
    if line.last() != Some(&b'\n') {
        line.push(b'\n');
    }
    line
}

fn end_last(lines: &mut [Vec<u8>]) {
    if let Some(last) = lines.last_mut()
        && !last.ends_with(b"\n")
        && !last.ends_with(b"\r")
    {
        last.push(b'\n');
    }
}

fn contains(line: &[u8], text: &[u8]) -> bool {
    text.is_empty() || line.windows(text.len()).any(|part| part == text)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{LineInFile, MODULE, State};

    /// The file after, the message; the second run must not change anything.
    fn edit(before: &str, args: Value) -> (String, String) {
        let mut args = args;
        args["path"] = "/f".into();
        let task: LineInFile = serde_json::from_value(args).unwrap();
        let edit = task.edit().unwrap();
        let done = edit.apply(before.as_bytes(), task.state).unwrap();
        let again = edit.apply(&done.content, task.state).unwrap();
        assert!(!again.changed, "second run: {again:?}");
        assert_eq!(done.changed, done.content != before.as_bytes());
        (String::from_utf8(done.content).unwrap(), done.message)
    }

    #[test]
    fn lines_are_replaced_added_and_removed_as_ansible_does() {
        let cases: &[(&str, Value, &str, &str)] = &[
            // Where nothing is looked for, the line is added at the end, once.
            ("a\nb\n", json!({"line": "c"}), "a\nb\nc\n", "line added"),
            ("a\nb", json!({"line": "c"}), "a\nb\nc\n", "line added"),
            ("", json!({"line": "c"}), "c\n", "line added"),
            ("a\nc\nb\n", json!({"line": "c"}), "a\nc\nb\n", ""),
            ("a\nc", json!({"line": "c"}), "a\nc\n", "line replaced"),
            // The last match is replaced, or the first.
            (
                "x=1\ny\nx=2\n",
                json!({"line": "x=3", "regexp": "^x="}),
                "x=1\ny\nx=3\n",
                "line replaced",
            ),
            (
                "x=1\ny\nx=2\n",
                json!({"line": "x=3", "regexp": "^x=", "firstmatch": true}),
                "x=3\ny\nx=2\n",
                "line replaced",
            ),
            (
                "x=1\r\ny\r\n",
                json!({"line": "x=3", "regexp": "^x="}),
                "x=3\ny\r\n",
                "line replaced",
            ),
            (
                "#Port 22\n",
                json!({"line": "Port 2222", "regexp": "^#?Port "}),
                "Port 2222\n",
                "line replaced",
            ),
            (
                "a.b\n",
                json!({"line": "c", "search_string": "a.b"}),
                "c\n",
                "line replaced",
            ),
            (
                "axb\n",
                json!({"line": "c", "search_string": "a.b"}),
                "axb\nc\n",
                "line added",
            ),
            // A line that is there already is not added, wherever it stands.
            (
                "b\na\n",
                json!({"line": "b", "regexp": "^zzz", "insertafter": "^a"}),
                "b\na\n",
                "",
            ),
            // What looks around, and back at a group.
            (
                "#Port 1\nPort 2\n",
                json!({"line": "Port 3", "regexp": "^(?!#)Port"}),
                "#Port 1\nPort 3\n",
                "line replaced",
            ),
            // Where it goes.
            (
                "a\nb\n",
                json!({"line": "c", "insertafter": "^a"}),
                "a\nc\nb\n",
                "line added",
            ),
            (
                "a\nb\na\nz\n",
                json!({"line": "c", "insertafter": "^a"}),
                "a\nb\na\nc\nz\n",
                "line added",
            ),
            (
                "a\nb\na\nz\n",
                json!({"line": "c", "insertafter": "^a", "firstmatch": true}),
                "a\nc\nb\na\nz\n",
                "line added",
            ),
            (
                "a\nb",
                json!({"line": "c", "insertafter": "^a"}),
                "a\nc\nb",
                "line added",
            ),
            // (Ansible glues the two lines together here: `bc`.)
            (
                "a\nb",
                json!({"line": "c", "insertafter": "^b"}),
                "a\nb\nc\n",
                "line added",
            ),
            (
                "a\nb\na\n",
                json!({"line": "c", "insertbefore": "^a"}),
                "a\nb\nc\na\n",
                "line added",
            ),
            (
                "a\n",
                json!({"line": "c", "insertafter": "^zzz"}),
                "a\nc\n",
                "line added",
            ),
            (
                "a\n",
                json!({"line": "c", "insertbefore": "^zzz"}),
                "a\nc\n",
                "line added",
            ),
            (
                "a\n",
                json!({"line": "c", "insertbefore": "BOF"}),
                "c\na\n",
                "line added",
            ),
            (
                "a\n",
                json!({"line": "c", "insertafter": "EOF"}),
                "a\nc\n",
                "line added",
            ),
            // Groups are filled in; without a match nothing is done.
            (
                "key = 1\n",
                json!({"line": "\\1 = 2", "regexp": "^(key) = \\d", "backrefs": "yes"}),
                "key = 2\n",
                "line replaced",
            ),
            (
                "other\n",
                json!({"line": "\\1 = 2", "regexp": "^(key) =", "backrefs": true}),
                "other\n",
                "",
            ),
            (
                "other",
                json!({"line": "\\1 = 2", "regexp": "^(key) =", "backrefs": true}),
                "other",
                "",
            ),
            // Without backrefs the line is taken as it is written.
            (
                "a\n",
                json!({"line": "\\1", "regexp": "^(a|.1)$"}),
                "\\1\n",
                "line replaced",
            ),
            // All that match are removed.
            (
                "x=1\ny\nx=2\n",
                json!({"regexp": "^x=", "state": "absent"}),
                "y\n",
                "2 line(s) removed",
            ),
            (
                "a\nb",
                json!({"line": "b", "state": "absent"}),
                "a\n",
                "1 line(s) removed",
            ),
            (
                "a\nab\n",
                json!({"line": "a", "state": "absent"}),
                "ab\n",
                "1 line(s) removed",
            ),
            (
                "a\n",
                json!({"search_string": "zz", "state": "absent"}),
                "a\n",
                "",
            ),
        ];
        for (before, args, after, message) in cases {
            assert_eq!(
                edit(before, args.clone()),
                ((*after).to_owned(), (*message).to_owned()),
                "{args}"
            );
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_kept() {
        let task: LineInFile =
            serde_json::from_value(json!({"path": "/f", "line": "b=2", "regexp": "^b="})).unwrap();
        let done = task
            .edit()
            .unwrap()
            .apply(b"\xff\xfe=1\nb=1\n", State::Present)
            .unwrap();
        assert_eq!(done.content, b"\xff\xfe=1\nb=2\n");
    }

    #[test]
    fn arguments_that_do_not_go_together_are_refused() {
        let refused = |args: Value| (MODULE.check)(&args).unwrap_err().to_string();
        let cases = [
            (
                json!({"path": "/f"}),
                "argument `line`: it is required where the line shall be present",
            ),
            (
                json!({"path": "/f", "state": "absent"}),
                "argument `line`: one of line, search_string and regexp is required",
            ),
            (
                json!({"path": "/f", "line": "x", "backrefs": true}),
                "argument `regexp`: it is required with backrefs",
            ),
            (
                json!({"path": "/f", "line": "x", "insertafter": "a", "insertbefore": "b"}),
                "argument `insertafter, insertbefore`: it goes with only one of them",
            ),
        ];
        for (args, message) in cases {
            assert_eq!(refused(args), message);
        }
        assert!(
            refused(json!({"path": "/f", "line": "x", "regexp": "a**"}))
                .contains("one repetition follows another")
        );
        assert!((MODULE.check)(&json!({"dest": "/f", "line": "x"})).is_ok());
    }
}
