use std::path::PathBuf;

use serde::Deserialize;
use serde_json::json;

use super::edited::{self, with_attributes};
use super::encoding;
use crate::args::{Bool, Text};
use crate::host::{Entry, Fault, Host};
use crate::module::{ArgumentError, Module, Report, Task};
use crate::pattern::{Pattern, is_multiline, latin1};

pub(super) static MODULE: Module = Module::of::<BlockInFile>();

with_attributes! {
    /// Keeps a block of lines in a file, between two marker lines by which it is found again.
    struct BlockInFile {
        /// The file. A link is followed.
        path: Text,
        /// The lines. Without any the block is removed.
        #[serde(default)]
        block: Text,
        /// Whether the block shall be in the file: `present` or `absent`.
        #[serde(default)]
        state: State,
        /// The marker lines; `{mark}` stands for `marker_begin` and `marker_end`. Each block of a file needs its own.
        #[serde(default = "managed")]
        marker: Text,
        /// What `{mark}` is in the line before the block.
        #[serde(default = "begin")]
        marker_begin: Text,
        /// What `{mark}` is in the line behind the block.
        #[serde(default = "end")]
        marker_end: Text,
        /// Where there is no block yet: insert behind the last line that this expression matches; `EOF` (the default)
        /// means at the end, `BOF` at the beginning. With `(?m)` it may match over several lines.
        insertafter: Option<Text>,
        /// Where there is no block yet: insert before the last line that this expression matches; `BOF` means at the beginning.
        insertbefore: Option<Text>,
        /// Make the file, and the directories above it, where it is absent.
        #[serde(default)]
        create: Bool,
        /// Have an empty line behind the block, unless it is at the file's end.
        #[serde(default)]
        append_newline: Bool,
        /// Have an empty line before the block, unless it is at the file's beginning.
        #[serde(default)]
        prepend_newline: Bool,
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

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
enum State {
    #[default]
    Present,
    Absent,
}

fn managed() -> Text {
    "# {mark} ANSIBLE MANAGED BLOCK".into()
}

fn begin() -> Text {
    "BEGIN".into()
}

fn end() -> Text {
    "END".into()
}

fn utf_8() -> Text {
    "utf-8".into()
}

impl Task for BlockInFile {
    const NAME: &'static str = "blockinfile";
    const ARGUMENT_ALIASES: &'static [(&'static str, &'static str)] = &[
        ("dest", "path"),
        ("destfile", "path"),
        ("name", "path"),
        ("content", "block"),
        ("attr", "attributes"),
    ];

    fn check(&self) -> Result<(), ArgumentError> {
        if self.insertafter.is_some() && self.insertbefore.is_some() {
            return Err(ArgumentError::of(
                "insertafter, insertbefore",
                "they are mutually exclusive",
            ));
        }
        self.place().map(drop)
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        edited::check_validate(self.validate.as_deref())?;
        let path = host.resolve(&host.expand(&self.path))?;
        let shown = path.display();
        let before = match host.entry(&path)? {
            Entry::Dir(_) => {
                return Err(Fault::new(format!("Path {shown} is a directory !")).with("rc", 256));
            }
            Entry::Absent if !*self.create && host.open() => return Ok(edited::unknown(&path)),
            Entry::Absent if !*self.create => {
                return Err(Fault::new(format!("Path {shown} does not exist !")).with("rc", 257));
            }
            Entry::Absent if self.lines().is_empty() => {
                return Ok(Report::of(
                    json!({"msg": format!("File {shown} not present")}),
                ));
            }
            Entry::Absent => {
                edited::make_parents(host, &path)?;
                None
            }
            _ => Some(host.read(&path)?.unwrap_or_default()),
        };
        let is_new = before.is_none();
        let before = encoding::decode(host, &self.encoding, before.unwrap_or_default())?;
        let after = self.edited(&before)?;
        let message = match (after == before, is_new, self.lines().is_empty()) {
            (true, false, _) => "",
            (_, true, _) => "File created",
            (_, _, true) => "Block removed",
            _ => "Block inserted",
        };
        self.finish(host, path, after, message)
    }
}

impl BlockInFile {
    fn finish(
        &self,
        host: &mut Host,
        path: PathBuf,
        after: Vec<u8>,
        message: &str,
    ) -> Result<Report, Fault> {
        let content = match message.is_empty() {
            true => None,
            false => Some(encoding::encode(host, &self.encoding, after)?),
        };
        let attributes = self.attributes().validated(self.validate.as_deref());
        let saved = edited::write(host, &path, content, &attributes)?;
        let mut report = Report::of(json!({"msg": saved.message(message)}));
        if *self.backup {
            edited::tell_backup(host, &path, "backup_file", &mut report.fields);
        }
        Ok(report)
    }

    fn marker(&self, mark: &str) -> String {
        self.marker.replace("{mark}", mark)
    }

    /// The block with its markers, a newline behind each line; nothing where it shall not be there.
    fn lines(&self) -> Vec<Vec<u8>> {
        if self.state == State::Absent || self.block.is_empty() {
            return Vec::new();
        }
        let mut lines = vec![self.marker(&self.marker_begin)];
        let block = self.block.split_inclusive('\n');
        lines.extend(block.map(|line| line.strip_suffix('\n').unwrap_or(line).to_owned()));
        lines.push(self.marker(&self.marker_end));
        lines
            .into_iter()
            .map(|line| format!("{line}\n").into_bytes())
            .collect()
    }

    fn place(&self) -> Result<Place, ArgumentError> {
        let pattern = |argument: &str, text: &str| {
            let read = match is_multiline(text) {
                true => Pattern::over_text(text),
                false => Pattern::new(text),
            };
            read.map_err(|problem| ArgumentError::of(argument, problem))
        };
        let (many, place) = match (self.insertafter.as_deref(), self.insertbefore.as_deref()) {
            (_, Some("BOF")) | (Some("BOF"), _) => (false, At::Start),
            (_, Some(before)) => (
                is_multiline(before),
                At::Before(pattern("insertbefore", before)?),
            ),
            (None | Some("EOF"), None) => (false, At::End),
            (Some(after), None) => (
                is_multiline(after),
                At::After(pattern("insertafter", after)?),
            ),
        };
        Ok(Place { many, place })
    }

    /// The file with the block as it shall be.
    fn edited(&self, before: &[u8]) -> Result<Vec<u8>, ArgumentError> {
        let mut lines: Vec<Vec<u8>> = before
            .split_inclusive(|byte| *byte == b'\n')
            .map(<[u8]>::to_vec)
            .collect();
        let block = self.lines();
        let marked = |mark: &str| {
            let marker = self.marker(mark);
            lines
                .iter()
                .rposition(|line| bare(line) == marker.as_bytes())
        };
        let at = match (marked(&self.marker_begin), marked(&self.marker_end)) {
            (Some(begin), Some(end)) => {
                let (first, last) = (begin.min(end), begin.max(end));
                lines.drain(first..=last);
                first
            }
            _ if block.is_empty() => return Ok(before.to_vec()),
            _ => self.place()?.find(&lines),
        };
        if block.is_empty() {
            return Ok(lines.concat());
        }
        if let Some(above) = at.checked_sub(1)
            && !lines[above].ends_with(b"\n")
        {
            lines[above].push(b'\n');
        }
        let blank = |line: &Vec<u8>| bare(line).is_empty();
        let behind = *self.append_newline && lines.get(at).is_some_and(|line| !blank(line));
        let ahead = *self.prepend_newline && at > 0 && !blank(&lines[at - 1]);
        let blank = || b"\n".to_vec();
        let added = ahead
            .then(blank)
            .into_iter()
            .chain(block)
            .chain(behind.then(blank));
        lines.splice(at..at, added);
        Ok(lines.concat())
    }
}

/// Where a block goes that is not there yet.
struct Place {
    /// The expression may match over several lines.
    many: bool,
    place: At,
}

enum At {
    Start,
    End,
    After(Pattern),
    Before(Pattern),
}

impl Place {
    fn find(&self, lines: &[Vec<u8>]) -> usize {
        let (pattern, behind) = match &self.place {
            At::Start => return 0,
            At::End => return lines.len(),
            At::After(pattern) => (pattern, true),
            At::Before(pattern) => (pattern, false),
        };
        if self.many {
            let text = lines.concat();
            let text = latin1(&text);
            let Some((start, end)) = pattern.find(&text).map(|found| found.span()) else {
                return lines.len();
            };
            let number = |at: usize| text[..at].matches('\n').count();
            return match behind {
                // An expression that took the last newline along ends where the next line begins.
                true if text[..end].ends_with('\n') => number(end),
                true => (number(end) + 1).min(lines.len()),
                false => number(start),
            };
        }
        match lines.iter().rposition(|line| pattern.is_in(line)) {
            Some(at) if behind => at + 1,
            Some(at) => at,
            None => lines.len(),
        }
    }
}

/// A line without the signs that end it.
fn bare(line: &[u8]) -> &[u8] {
    let end = line.iter().rposition(|byte| !matches!(byte, b'\r' | b'\n'));
    &line[..end.map_or(0, |at| at + 1)]
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::{Value, json};

    use super::{BlockInFile, MODULE};
    use crate::host::Host;

    /// The file after; a second run must not change it.
    fn edit(before: &str, mut args: Value) -> String {
        args["path"] = "/f".into();
        let task: BlockInFile = serde_json::from_value(args).unwrap();
        let after = task.edited(before.as_bytes()).unwrap();
        assert_eq!(task.edited(&after).unwrap(), after);
        String::from_utf8(after).unwrap()
    }

    /// The default markers around a text.
    fn block(text: &str) -> String {
        format!("# BEGIN ANSIBLE MANAGED BLOCK\n{text}# END ANSIBLE MANAGED BLOCK\n")
    }

    #[test]
    fn a_block_is_put_where_ansible_puts_it() {
        let x = block("x\n");
        for (before, args, after) in [
            ("", json!({"block": "x"}), x.clone()),
            ("a", json!({"block": "x\n"}), format!("a\n{x}")),
            (
                "a\nb\na\nc",
                json!({"block": "x", "insertafter": "a"}),
                format!("a\nb\na\n{x}c"),
            ),
            (
                "a\nb\na\nc",
                json!({"block": "x", "insertbefore": "a"}),
                format!("a\nb\n{x}a\nc"),
            ),
            (
                "a\n",
                json!({"block": "x", "insertbefore": "BOF"}),
                format!("{x}a\n"),
            ),
            (
                "a\n",
                json!({"block": "x", "insertafter": "zzz"}),
                format!("a\n{x}"),
            ),
            // What is there is replaced in its place.
            (
                "a\n# BEGIN ANSIBLE MANAGED BLOCK\nold\n# END ANSIBLE MANAGED BLOCK\nz",
                json!({"block": "x", "insertafter": "EOF"}),
                format!("a\n{x}z"),
            ),
            (
                "a\n# END ANSIBLE MANAGED BLOCK\nold\n# BEGIN ANSIBLE MANAGED BLOCK\nz",
                json!({"block": "x"}),
                format!("a\n{x}z"),
            ),
            // Half a block is none.
            (
                "a\n# BEGIN ANSIBLE MANAGED BLOCK\nold\n",
                json!({"block": "x"}),
                format!("a\n# BEGIN ANSIBLE MANAGED BLOCK\nold\n{x}"),
            ),
            // Empty lines around it.
            (
                "a\nb",
                json!({"block": "x", "insertafter": "a", "append_newline": true, "prepend_newline": true}),
                format!("a\n\n{x}\nb"),
            ),
            (
                "a",
                json!({"block": "x", "append_newline": true, "prepend_newline": true}),
                format!("a\n\n{x}"),
            ),
            // Its line ends are kept.
            ("", json!({"block": "d\r\ne\r\n"}), block("d\r\ne\r\n")),
            // Gone.
            (
                &format!("a\n{x}b\n"),
                json!({"state": "absent", "block": "x"}),
                "a\nb\n".to_owned(),
            ),
            (
                &format!("a\n{x}b\n"),
                json!({"block": "", "append_newline": true}),
                "a\nb\n".to_owned(),
            ),
            ("a", json!({"state": "absent"}), "a".to_owned()),
            (
                "",
                json!({"block": "x", "marker": "<!-- {mark} -->", "marker_begin": "on", "marker_end": "off"}),
                "<!-- on -->\nx\n<!-- off -->\n".to_owned(),
            ),
            // Over several lines.
            (
                "l = \n  (s\nl2 = \n",
                json!({"block": "x", "insertafter": "(?m)l = \\n.*\\(s"}),
                format!("l = \n  (s\n{x}l2 = \n"),
            ),
            (
                "l = \n  (s\nl2 = \n",
                json!({"block": "x", "insertafter": "l = \\n.*\\(s"}),
                format!("l = \n  (s\nl2 = \n{x}"),
            ),
        ] {
            assert_eq!(edit(before, args.clone()), after, "{args}");
        }
    }

    #[test]
    fn messages_are_ansibles() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sub/f");
        let mut host = Host::plan();
        let mut run = |args: Value| {
            let mut args = args;
            args["path"] = json!(path);
            (MODULE.run)(args, &mut host)
                .map(|report| report.fields["msg"].as_str().unwrap().to_owned())
                .unwrap_or_else(|fault| fault.message)
                .replace(&dir.path().display().to_string(), "DIR")
        };
        assert_eq!(
            run(json!({"block": "x"})),
            "Path DIR/sub/f does not exist !"
        );
        assert_eq!(
            run(json!({"state": "absent", "create": true})),
            "File DIR/sub/f not present"
        );
        assert_eq!(run(json!({"block": "x", "create": true})), "File created");
        assert_eq!(run(json!({"block": "x"})), "");
        assert_eq!(
            run(json!({"block": "y", "mode": "0600"})),
            "Block inserted and ownership, perms or SE linux context changed"
        );
        assert_eq!(run(json!({"state": "absent"})), "Block removed");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
