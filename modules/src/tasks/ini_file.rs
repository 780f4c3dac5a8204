use serde::Deserialize;

use super::edited::{self, with_attributes};
use super::file::report;
use crate::args::{Bool, Text};
use crate::host::{Fault, Host};
use crate::module::{ArgumentError, Module, Report, Task};

pub(super) static MODULE: Module = Module::of::<IniFile>();

with_attributes! {
    /// Keeps an option in a section of an INI file, or a section itself.
    struct IniFile {
        /// The file. A link is replaced, unless `follow` is set.
        path: Text,
        /// The section. Without it, what stands before the first section.
        section: Option<Text>,
        /// The option. Without it the section itself is meant.
        option: Option<Text>,
        /// The value.
        value: Option<Text>,
        /// Several values of the same option, each on a line of its own.
        values: Option<Vec<Text>>,
        /// Whether the option shall be in the file: `present` or `absent`.
        #[serde(default)]
        state: State,
        /// Remove other values of the option. Without it they may stand beside those that are given.
        #[serde(default = "yes")]
        exclusive: Bool,
        /// Write `option=value` without blanks.
        #[serde(default)]
        no_extra_spaces: Bool,
        /// Blanks around the `=` are no difference.
        #[serde(default)]
        ignore_spaces: Bool,
        /// An option may stand without a value.
        #[serde(default)]
        allow_no_value: Bool,
        /// Let the option take the place of a comment that has it.
        #[serde(default = "yes")]
        modify_inactive_option: Bool,
        /// Make the file where it is absent.
        #[serde(default = "yes")]
        create: Bool,
        /// Where the file is a link, write to what it points to.
        #[serde(default)]
        follow: Bool,
        /// Say where the old content is kept. It is kept in any case, outside of the configuration.
        #[serde(default)]
        backup: Bool,
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

fn yes() -> Bool {
    Bool(true)
}

impl Task for IniFile {
    const NAME: &'static str = "ini_file";
    const ARGUMENT_ALIASES: &'static [(&'static str, &'static str)] =
        &[("dest", "path"), ("attr", "attributes")];

    fn check(&self) -> Result<(), ArgumentError> {
        if self.value.is_some() && self.values.is_some() {
            return Err(ArgumentError::of("values", "it does not go with `value`"));
        }
        let valued =
            self.value.is_some() || self.values.as_ref().is_some_and(|all| !all.is_empty());
        if self.state == State::Present && self.option.is_some() && !valued && !*self.allow_no_value
        {
            return Err(ArgumentError::of(
                "value",
                "it is required with an option, unless `allow_no_value` is set",
            ));
        }
        Ok(())
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        let mut path = host.expand(&self.path);
        if *self.follow {
            path = host.resolve(&path)?;
        }
        let before = host.read(&path)?;
        if before.is_none() && !*self.create {
            if host.open() {
                return Ok(edited::unknown(&path));
            }
            let message = format!("Destination {} does not exist!", path.display());
            return Err(Fault::new(message).with("rc", 257));
        }
        let text = before.unwrap_or_default();
        let text = String::from_utf8(text)
            .map_err(|_| Fault::new(format!("{} is not UTF-8 text", path.display())))?;
        let (after, message) = self.edited(&text);
        let changed = after != text;
        if changed {
            edited::make_parents(host, &path)?;
        }
        let content = changed.then(|| after.into_bytes());
        if changed || !text.is_empty() {
            edited::write(host, &path, content, &self.attributes())?;
        }
        let mut told = report(host, &self.path, &path)?;
        told.fields.insert(
            "msg".to_owned(),
            if changed { message } else { "OK" }.into(),
        );
        if *self.backup {
            edited::tell_backup(host, &path, "backup_file", &mut told.fields);
        }
        Ok(told)
    }
}

impl IniFile {
    fn line(&self, value: Option<&str>) -> String {
        let option = self.option.as_deref().unwrap_or_default();
        let sign = if *self.no_extra_spaces { "=" } else { " = " };
        match value {
            Some(value) => format!("{option}{sign}{value}\n"),
            None => format!("{option}\n"),
        }
    }

    /// The values that shall be there; one that is none for an option without.
    fn wanted(&self) -> Vec<Option<&str>> {
        match (&self.value, &self.values) {
            (Some(value), _) => vec![Some(value)],
            (None, Some(values)) if !values.is_empty() => {
                values.iter().map(|it| Some(&**it)).collect()
            }
            _ => vec![None],
        }
    }

    /// The file as it shall be, and what was done, in Ansible's words.
    fn edited(&self, before: &str) -> (String, &'static str) {
        let mut lines: Vec<String> = before.split_inclusive('\n').map(str::to_owned).collect();
        if let Some(last) = lines.last_mut().filter(|last| !last.ends_with('\n')) {
            last.push('\n');
        }
        let Some((start, end)) = self.bounds(&lines) else {
            if self.state == State::Absent {
                return (before.to_owned(), "OK");
            }
            lines.extend(self.section.as_deref().map(|name| format!("[{name}]\n")));
            if self.option.is_none() {
                return (lines.concat(), "section added");
            }
            lines.extend(self.wanted().into_iter().map(|value| self.line(value)));
            return (lines.concat(), "section and option added");
        };
        if self.option.is_none() {
            if self.state == State::Absent && self.section.is_some() {
                lines.drain(start - 1..end);
                return (lines.concat(), "section removed");
            }
            return (before.to_owned(), "OK");
        }
        let mut body: Vec<String> = lines[start..end].to_vec();
        let message = match self.state {
            State::Present => self.present(&mut body),
            State::Absent => {
                body.retain(|line| !self.is_to_go(line));
                "option changed"
            }
        };
        if body == lines[start..end] {
            return (before.to_owned(), "OK");
        }
        lines.splice(start..end, body);
        (lines.concat(), message)
    }

    /// Where the section's own lines begin and end; none where it is not there.
    fn bounds(&self, lines: &[String]) -> Option<(usize, usize)> {
        let header = |line: &String| {
            let line = line.trim();
            line.starts_with('[') && line.contains(']')
        };
        let start = match self.section.as_deref() {
            None | Some("") => 0,
            Some(name) => {
                let wanted = format!("[{name}]");
                lines
                    .iter()
                    .position(|line| header(line) && line.trim().starts_with(&wanted))?
                    + 1
            }
        };
        let length = lines[start..].iter().position(header);
        Some((start, length.map_or(lines.len(), |length| start + length)))
    }

    fn is_to_go(&self, line: &str) -> bool {
        let Some((active, value)) = self.found(line) else {
            return false;
        };
        let given = self.value.is_some() || self.values.is_some();
        active && (*self.exclusive || !given || self.wanted().contains(&value))
    }

    fn present(&self, body: &mut Vec<String>) -> &'static str {
        let mut missing = self.wanted();
        // What is there already stays as it is.
        let mut kept = vec![false; body.len()];
        for (at, line) in body.iter().enumerate() {
            if let Some((true, value)) = self.found(line)
                && let Some(place) = missing.iter().position(|wanted| *wanted == value)
                && (*self.ignore_spaces || *line == self.line(value))
            {
                kept[at] = true;
                missing.remove(place);
            }
        }
        let mut message = "option added";
        let mut out = Vec::new();
        let mut last = None;
        let actives = body
            .iter()
            .filter(|line| matches!(self.found(line), Some((true, _))))
            .count();
        for (at, line) in body.iter().enumerate() {
            let found = self.found(line);
            let fits = match found {
                _ if kept[at] => None,
                Some((true, _)) => Some(true),
                // A comment makes way only where no line of its own does.
                Some((false, _)) => {
                    Some(false).filter(|_| *self.modify_inactive_option && actives == 0)
                }
                None => None,
            };
            match fits {
                Some(active) if !missing.is_empty() && (*self.exclusive || !active) => {
                    out.push(self.line(missing.remove(0)));
                    last = Some(out.len());
                    message = "option changed";
                }
                Some(true) if *self.exclusive => message = "option changed",
                _ => {
                    out.push(line.clone());
                    if found.is_some_and(|(active, _)| active) {
                        last = Some(out.len());
                    }
                }
            }
        }
        // Behind the option's other lines, or behind the last line that is not empty.
        let at = last.unwrap_or_else(|| {
            let filled = out.iter().rposition(|line| !line.trim().is_empty());
            filled.map_or(0, |at| at + 1)
        });
        let added = missing.into_iter().map(|value| self.line(value));
        out.splice(at..at, added);
        *body = out;
        message
    }

    /// Whether a line has the option: as itself or in a comment, and its value.
    fn found<'l>(&self, line: &'l str) -> Option<(bool, Option<&'l str>)> {
        let option = self.option.as_deref()?;
        let text = line.trim();
        let bare = text.trim_start_matches(['#', ';']).trim_start();
        let active = bare.len() == text.len();
        let rest = bare.strip_prefix(option)?;
        let rest = rest.trim_start();
        match rest.strip_prefix('=') {
            Some(value) => Some((active, Some(value.trim()))),
            // A word of a sentence is no option.
            None => (rest.is_empty() && (active || *self.allow_no_value)).then_some((active, None)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{IniFile, MODULE};

    /// The file after and what was done; a second run must not change it.
    fn edit(before: &str, mut args: Value) -> (String, &'static str) {
        args["path"] = "/f".into();
        let task: IniFile = serde_json::from_value(args).unwrap();
        let (after, message) = task.edited(before);
        assert_eq!(task.edited(&after).0, after, "second run");
        (after, message)
    }

    #[test]
    fn options_are_kept_in_their_sections() {
        let file = "top=1\n[a]\nx = 1\n# y = 2\n\n[b]\nx = 2\n";
        for (before, args, after, message) in [
            (
                "",
                json!({"section": "a", "option": "x", "value": "1"}),
                "[a]\nx = 1\n",
                "section and option added",
            ),
            (
                "",
                json!({"option": "x", "value": 1, "no_extra_spaces": true}),
                "x=1\n",
                "option added",
            ),
            (
                file,
                json!({"section": "a", "option": "x", "value": "1"}),
                file,
                "OK",
            ),
            (
                file,
                json!({"section": "b", "option": "x", "value": "3"}),
                "top=1\n[a]\nx = 1\n# y = 2\n\n[b]\nx = 3\n",
                "option changed",
            ),
            (
                file,
                json!({"section": "a", "option": "y", "value": "3"}),
                "top=1\n[a]\nx = 1\ny = 3\n\n[b]\nx = 2\n",
                "option changed",
            ),
            (
                file,
                json!({"section": "a", "option": "y", "value": "3", "modify_inactive_option": false}),
                "top=1\n[a]\nx = 1\n# y = 2\ny = 3\n\n[b]\nx = 2\n",
                "option added",
            ),
            (
                file,
                json!({"section": "a", "option": "z", "value": "3"}),
                "top=1\n[a]\nx = 1\n# y = 2\nz = 3\n\n[b]\nx = 2\n",
                "option added",
            ),
            (
                file,
                json!({"section": "c", "option": "z", "value": "3"}),
                "top=1\n[a]\nx = 1\n# y = 2\n\n[b]\nx = 2\n[c]\nz = 3\n",
                "section and option added",
            ),
            (
                file,
                json!({"section": "a", "option": "x", "state": "absent"}),
                "top=1\n[a]\n# y = 2\n\n[b]\nx = 2\n",
                "option changed",
            ),
            (
                file,
                json!({"section": "a", "state": "absent"}),
                "top=1\n[b]\nx = 2\n",
                "section removed",
            ),
            (
                file,
                json!({"option": "top", "value": "1", "ignore_spaces": true}),
                file,
                "OK",
            ),
            (
                "[a]\nx",
                json!({"section": "a", "option": "x", "allow_no_value": true}),
                "[a]\nx",
                "OK",
            ),
            (
                "[a]\nx = 1\nx = 2\n",
                json!({"section": "a", "option": "x", "values": ["2", "3"]}),
                "[a]\nx = 3\nx = 2\n",
                "option changed",
            ),
            (
                "[a]\nx = 1\nz = 1\n",
                json!({"section": "a", "option": "x", "value": "2", "exclusive": false}),
                "[a]\nx = 1\nx = 2\nz = 1\n",
                "option added",
            ),
            (
                "[a]\nx = 1\nx = 2\n",
                json!({"section": "a", "option": "x", "value": "2", "exclusive": false, "state": "absent"}),
                "[a]\nx = 1\n",
                "option changed",
            ),
        ] {
            assert_eq!(
                edit(before, args.clone()),
                (after.to_owned(), message),
                "{args}"
            );
        }
    }

    #[test]
    fn an_option_needs_a_value() {
        let refused = (MODULE.check)(&json!({"path": "/f", "option": "x"})).unwrap_err();
        assert_eq!(refused.argument.as_deref(), Some("value"));
        assert!((MODULE.check)(&json!({"path": "/f", "option": "x", "state": "absent"})).is_ok());
    }
}
