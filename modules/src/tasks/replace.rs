use std::path::Path;

use serde_json::json;

use super::edited::{self, with_attributes};
use super::encoding;
use crate::args::{Bool, Text};
use crate::host::{Entry, Fault, Host};
use crate::module::{ArgumentError, Module, Report, Task};
use crate::pattern::{Pattern, latin1};

pub(super) static MODULE: Module = Module::of::<Replace>();

with_attributes! {
    /// Replaces all that a regular expression matches in a file.
    ///
    /// Make the expression such that it does not match any more what it was replaced by: then a second run changes nothing.
    struct Replace {
        /// The file. A link is followed.
        path: Text,
        /// A regular expression in Python's syntax; `^` and `$` stand for each line, `.` does not take a newline.
        regexp: Text,
        /// What takes its place, with `\1` or `\g<name>` for groups. Empty to remove what matches.
        #[serde(default)]
        replace: Text,
        /// Only replace behind the first match of this expression.
        after: Option<Text>,
        /// Only replace before a match of this expression.
        before: Option<Text>,
        /// The file's encoding. For others than UTF-8 the host needs `iconv`.
        #[serde(default = "utf_8")]
        encoding: Text,
        /// Say where the old content is kept. It is kept in any case, outside of the configuration.
        #[serde(default)]
        backup: Bool,
        /// A command that must accept the new file before it is put in place; `%s` stands for it.
        validate: Option<Text>,
    }
}

fn utf_8() -> Text {
    "utf-8".into()
}

impl Task for Replace {
    const NAME: &'static str = "replace";
    const ARGUMENT_ALIASES: &'static [(&'static str, &'static str)] = &[
        ("dest", "path"),
        ("destfile", "path"),
        ("name", "path"),
        ("attr", "attributes"),
    ];

    fn check(&self) -> Result<(), ArgumentError> {
        self.section()?;
        self.pattern().map(drop)
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        let path = host.resolve(&host.expand(&self.path))?;
        let before = match host.entry(&path)? {
            Entry::Absent if host.open() => return Ok(edited::unknown(&path)),
            Entry::Absent => return Err(missing(&path, "does not exist !", 257)),
            Entry::Dir(_) => return Err(missing(&path, "is a directory !", 256)),
            _ => read(host, &path)?,
        };
        let before = encoding::decode(host, &self.encoding, before)?;
        let text = latin1(&before);
        let range = match self.section()? {
            None => 0..text.len(),
            Some(section) => match section
                .find(&text)
                .and_then(|it| it.group_span("subsection"))
            {
                Some((start, end)) => start..end,
                None => {
                    let message = format!(
                        "Pattern for before/after params did not match the given file: {}",
                        self.section_text()
                    );
                    return Ok(Report::of(json!({"msg": message, "rc": 0})));
                }
            },
        };
        let (new, count) = self
            .pattern()?
            .replace_all(&text[range.clone()], &self.replace)
            .map_err(|problem| {
                Fault::new(format!("Unable to process replace due to error: {problem}"))
            })?;
        let bytes = |text: &str| text.chars().map(|letter| letter as u8).collect::<Vec<_>>();
        let after = [bytes(&text[..range.start]), new, bytes(&text[range.end..])].concat();
        let message = match count > 0 && after != before {
            true => format!("{count} replacements made"),
            false => String::new(),
        };
        let content = match message.is_empty() {
            true => None,
            false => Some(encoding::encode(host, &self.encoding, after)?),
        };
        let attributes = self.attributes().validated(self.validate.as_deref());
        let saved = edited::write(host, &path, content, &attributes)?;
        let mut report = Report::of(json!({"msg": saved.message(&message), "rc": 0}));
        if *self.backup {
            edited::tell_backup(host, &path, "backup_file", &mut report.fields);
        }
        Ok(report)
    }
}

impl Replace {
    fn pattern(&self) -> Result<Pattern, ArgumentError> {
        Pattern::over_lines(&self.regexp).map_err(|problem| ArgumentError::of("regexp", problem))
    }

    fn section_text(&self) -> String {
        match (self.after.as_deref(), self.before.as_deref()) {
            (Some(after), Some(before)) => format!("{after}(?P<subsection>.*?){before}"),
            (Some(after), None) => format!("{after}(?P<subsection>.*)"),
            (None, Some(before)) => format!("(?P<subsection>.*){before}"),
            (None, None) => String::new(),
        }
    }

    /// The part of the file to replace in; none for the whole.
    fn section(&self) -> Result<Option<Pattern>, ArgumentError> {
        let text = self.section_text();
        if text.is_empty() {
            return Ok(None);
        }
        let argument = if self.after.is_some() {
            "after"
        } else {
            "before"
        };
        Pattern::over_all(&text)
            .map(Some)
            .map_err(|problem| ArgumentError::of(argument, problem))
    }
}

/// A file's content; of what is no regular file, nothing.
fn read(host: &Host, path: &Path) -> Result<Vec<u8>, Fault> {
    match host.entry(path)? {
        Entry::Special => Ok(Vec::new()),
        _ => Ok(host.read(path)?.unwrap_or_default()),
    }
}

fn missing(path: &Path, what: &str, rc: i32) -> Fault {
    Fault::new(format!("Path {} {what}", path.display())).with("rc", rc)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::{Value, json};

    use super::MODULE;
    use crate::host::Host;

    /// The file after and the message, in a plan.
    fn replaced(before: &str, mut args: Value) -> (String, String) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        fs::write(&path, before).unwrap();
        args["path"] = json!(path);
        let mut host = Host::plan();
        let report = (MODULE.run)(args, &mut host).unwrap();
        let after = host.read(&path).unwrap().unwrap();
        let message = report.fields["msg"].as_str().unwrap().to_owned();
        assert_eq!(fs::read_to_string(&path).unwrap(), before);
        (String::from_utf8(after).unwrap(), message)
    }

    #[test]
    fn matches_are_replaced_as_ansible_does() {
        let three = "one\ntwo\nthree\n";
        for (before, args, after, count) in [
            (
                three,
                json!({"regexp": "^t", "replace": "T"}),
                "one\nTwo\nThree\n",
                2,
            ),
            (
                three,
                json!({"regexp": "^(.+)$", "replace": "\"\\1\""}),
                "\"one\"\n\"two\"\n\"three\"\n",
                3,
            ),
            (
                three,
                json!({"regexp": "e", "after": "two"}),
                "one\ntwo\nthr\n",
                2,
            ),
            (
                three,
                json!({"regexp": "o", "before": "two"}),
                "ne\ntwo\nthree\n",
                1,
            ),
            (
                three,
                json!({"regexp": "o", "after": "one", "before": "three", "replace": "0"}),
                "one\ntw0\nthree\n",
                1,
            ),
            (
                "a 1\nb\na 2\n",
                json!({"regexp": "\\d", "after": "a", "before": "b", "replace": "9"}),
                "a 9\nb\na 2\n",
                1,
            ),
            (
                "a\r\n",
                json!({"regexp": "\\r\\n", "replace": "\n"}),
                "a\n",
                1,
            ),
            (
                "café\n",
                json!({"regexp": "é$", "replace": "e\\n"}),
                "cafe\n\n",
                1,
            ),
            (
                "abxd",
                json!({"regexp": "x*", "replace": "-"}),
                "-a-b--d-",
                5,
            ),
        ] {
            let found = replaced(before, args.clone());
            assert_eq!(
                found,
                (after.to_owned(), format!("{count} replacements made")),
                "{args}"
            );
        }
        assert_eq!(
            replaced("a", json!({"regexp": "b"})),
            ("a".to_owned(), String::new())
        );
    }

    #[test]
    fn a_section_that_is_not_there_is_told() {
        let (_, message) = replaced("a\n", json!({"regexp": "a", "after": "zzz"}));
        assert_eq!(
            message,
            "Pattern for before/after params did not match the given file: zzz(?P<subsection>.*)"
        );
    }

    #[test]
    fn what_cannot_be_edited_is_told_in_ansibles_words() {
        let fault = |args| (MODULE.run)(args, &mut Host::plan()).unwrap_err();
        let missing = fault(json!({"path": "/no/such", "regexp": "a"}));
        assert_eq!(missing.message, "Path /no/such does not exist !");
        assert_eq!(missing.fields["rc"], 257);
        assert_eq!(
            fault(json!({"path": "/tmp", "regexp": "a"})).message,
            "Path /tmp is a directory !"
        );
        let escape = fault(
            json!({"path": "/dev/null", "after": "^", "before": "$", "regexp": "", "replace": "\\D"}),
        );
        assert!(
            escape.message.starts_with("Unable to process replace"),
            "{escape}"
        );
    }

    #[test]
    fn other_encodings_go_by_iconv() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        fs::write(&path, b"caf\xe9\n").unwrap();
        let mut host = Host::plan();
        let args = json!({"path": path, "regexp": "é", "replace": "è", "encoding": "latin-1"});
        (MODULE.run)(args, &mut host).unwrap();
        assert_eq!(host.read(&path).unwrap().unwrap(), b"caf\xe8\n");
    }
}
