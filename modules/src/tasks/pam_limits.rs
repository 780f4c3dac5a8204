use std::path::Path;

use serde::Deserialize;
use serde_json::json;

use super::edited;
use crate::args::{Bool, Text};
use crate::host::{Fault, Host};
use crate::module::{ArgumentError, Module, Report, Task};

pub(super) static MODULE: Module = Module::of::<PamLimits>();

/// Sets a limit of a user or group for new logins, in `limits.conf`.
///
/// Services of systemd do not read this file: for these set `LimitNOFILE=` and its like in the unit.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct PamLimits {
    /// A user, `@group`, `%group`, `*`, or a range of numbers.
    domain: Text,
    /// `hard`, `soft`, or `-` for both.
    limit_type: Kind,
    /// What is limited.
    limit_item: Item,
    /// The limit: a number, or `unlimited` (`infinity` and `-1` mean the same); for nice and priority from -20 to 19.
    value: Option<Text>,
    /// `present` or `absent`.
    #[serde(default)]
    state: State,
    /// Keep the value that is there where it is larger.
    #[serde(default)]
    use_max: Bool,
    /// Keep the value that is there where it is smaller.
    #[serde(default)]
    use_min: Bool,
    /// A comment for the line.
    #[serde(default)]
    comment: Text,
    /// The file.
    #[serde(default = "conf")]
    dest: Text,
    /// Report where the run keeps the file as it was. It is always kept.
    #[serde(default)]
    backup: Bool,
}

fn conf() -> Text {
    "/etc/security/limits.conf".into()
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
enum Kind {
    Hard,
    Soft,
    #[serde(rename = "-")]
    Both,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::Hard => "hard",
            Self::Soft => "soft",
            Self::Both => "-",
        }
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

/// The items of limits.conf(5).
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
enum Item {
    As,
    Chroot,
    Core,
    Cpu,
    Data,
    Fsize,
    Locks,
    Maxlogins,
    Maxsyslogins,
    Memlock,
    Msgqueue,
    Nice,
    Nofile,
    Nonewprivs,
    Nproc,
    Priority,
    Rss,
    Rtprio,
    Sigpending,
    Stack,
}

impl Item {
    fn word(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    fn is_signed(self) -> bool {
        matches!(self, Self::Nice | Self::Priority)
    }
}

impl Task for PamLimits {
    const NAME: &'static str = "pam_limits";

    fn check(&self) -> Result<(), ArgumentError> {
        if self.domain.is_empty()
            || self.domain.contains(char::is_whitespace)
            || self.domain.starts_with('#')
        {
            return Err(ArgumentError::of(
                "domain",
                format!("`{}` is not a user, a group or `*`", self.domain),
            ));
        }
        if *self.use_max && *self.use_min {
            return Err(ArgumentError::of("use_min", "it does not go with use_max"));
        }
        if self.comment.contains('\n') {
            return Err(ArgumentError::of("comment", "it must be one line"));
        }
        match (&self.value, self.state) {
            (None, State::Present) => Err(ArgumentError::of("value", "it is required")),
            (Some(value), State::Present) if Limit::parse(value, self.limit_item).is_none() => {
                let range = if self.limit_item.is_signed() {
                    "a number from -20 to 19"
                } else {
                    "a number, or `unlimited`"
                };
                Err(ArgumentError::of(
                    "value",
                    format!("`{value}` is not {range}"),
                ))
            }
            _ => Ok(()),
        }
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        let path = host.resolve(Path::new(&*self.dest))?;
        let before = match host.read(&path)? {
            Some(bytes) => String::from_utf8(bytes)
                .map_err(|_| Fault::new(format!("{} is not text", path.display())))?,
            None if self.state == State::Absent => return Ok(Report::default()),
            // A drop-in in limits.d begins empty; without the directory PAM is not there.
            None => String::new(),
        };
        let after = self.edit(&before);
        let content = (after != before).then(|| after.into_bytes());
        edited::write(host, &path, content, &edited::Attributes::default())?;
        let mut report = Report::of(json!({"dest": path.display().to_string()}));
        if *self.backup {
            let kept = host.backup_of(&path).map(|path| path.display().to_string());
            report
                .fields
                .insert("backup".to_owned(), kept.unwrap_or_default().into());
        }
        Ok(report)
    }
}

impl PamLimits {
    /// Only the lines of this domain, type and item change; a line that says the same in other words is left.
    fn edit(&self, text: &str) -> String {
        let mut lines = Vec::new();
        let mut found = false;
        for line in text.split_inclusive('\n') {
            let Some(current) = self.value_in(line) else {
                lines.push(line.to_owned());
                continue;
            };
            match self.state {
                State::Absent => {}
                State::Present => lines.push(self.replaced(line, current)),
            }
            found = true;
        }
        if !found && self.state == State::Present {
            if let Some(last) = lines.last_mut()
                && !last.ends_with('\n')
            {
                last.push('\n');
            }
            // The usual last line, `# End of file`, is only a comment: what follows it counts.
            lines.push(self.line(self.value.as_deref().unwrap_or_default(), &self.comment));
        }
        lines.concat()
    }

    /// The value in a line, if the line is about the same limit.
    fn value_in<'l>(&self, line: &'l str) -> Option<&'l str> {
        let mut words = line.split('#').next()?.split_whitespace();
        let matches = words.next()? == &*self.domain
            && words.next()? == self.limit_type.word()
            && words.next()? == self.limit_item.word();
        matches.then(|| words.next()).flatten()
    }

    fn replaced(&self, line: &str, current: &str) -> String {
        let wanted = self.value.as_deref().unwrap_or_default();
        let limit = |text: &str| Limit::parse(text, self.limit_item);
        let keep = match (limit(current), limit(wanted)) {
            (Some(there), Some(wanted)) => {
                there == wanted
                    || (*self.use_max && there > wanted)
                    || (*self.use_min && there < wanted)
            }
            _ => false,
        };
        let there = line
            .split_once('#')
            .map_or("", |(_, comment)| comment.trim());
        let comment = if self.comment.is_empty() {
            there
        } else {
            &*self.comment
        };
        match keep && comment == there {
            true => line.to_owned(),
            false => self.line(if keep { current } else { wanted }, comment),
        }
    }

    fn line(&self, value: &str, comment: &str) -> String {
        let (domain, kind, item) = (&self.domain, self.limit_type.word(), self.limit_item.word());
        let comment = if comment.is_empty() {
            String::new()
        } else {
            format!("\t# {comment}")
        };
        format!("{domain}\t{kind}\t{item}\t{value}{comment}\n")
    }
}

/// A limit's value, by its meaning. More is larger, and no limit is the largest.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
enum Limit {
    Number(i64),
    Unlimited,
}

impl Limit {
    fn parse(text: &str, item: Item) -> Option<Self> {
        let number = text.parse::<i64>().ok();
        if item.is_signed() {
            return number
                .filter(|number| (-20..=19).contains(number))
                .map(Self::Number);
        }
        match (text, number) {
            ("unlimited" | "infinity" | "-1", _) => Some(Self::Unlimited),
            (_, Some(number)) if number >= 0 => Some(Self::Number(number)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{MODULE, PamLimits};

    fn edit(before: &str, args: Value) -> String {
        let mut args = args;
        for (key, value) in [
            ("domain", "nginx"),
            ("limit_type", "soft"),
            ("limit_item", "nofile"),
        ] {
            if args.get(key).is_none() {
                args[key] = value.into();
            }
        }
        let task: PamLimits = serde_json::from_value(args.clone()).unwrap();
        let after = task.edit(before);
        assert_eq!(task.edit(&after), after, "second run of {args}");
        after
    }

    #[test]
    fn only_the_line_of_the_limit_changes() {
        let cases: &[(&str, Value, &str)] = &[
            ("", json!({"value": 65535}), "nginx\tsoft\tnofile\t65535\n"),
            (
                "# End of file",
                json!({"value": 65535}),
                "# End of file\nnginx\tsoft\tnofile\t65535\n",
            ),
            // Another line's comment and spacing are its own.
            (
                "root  hard core 0   # ops team\n\n",
                json!({"value": 65535, "comment": "web"}),
                "root  hard core 0   # ops team\n\nnginx\tsoft\tnofile\t65535\t# web\n",
            ),
            (
                "nginx soft nofile 1024 # old\n",
                json!({"value": 65535}),
                "nginx\tsoft\tnofile\t65535\t# old\n",
            ),
            (
                "nginx   soft nofile   65535\n",
                json!({"value": 65535}),
                "nginx   soft nofile   65535\n",
            ),
            // A comment alone is a change, too.
            (
                "nginx soft nofile 65535\n",
                json!({"value": 65535, "comment": "web"}),
                "nginx\tsoft\tnofile\t65535\t# web\n",
            ),
            // Words of the same meaning are no change.
            (
                "nginx soft nofile -1\n",
                json!({"value": "unlimited"}),
                "nginx soft nofile -1\n",
            ),
            // A line that nobody understands is not ours to judge.
            (
                "bad line\nnginx hard nofile 1\n",
                json!({"value": 5}),
                "bad line\nnginx hard nofile 1\nnginx\tsoft\tnofile\t5\n",
            ),
            // The larger or the smaller stays.
            (
                "nginx soft nofile 99\n",
                json!({"value": 50, "use_max": true}),
                "nginx soft nofile 99\n",
            ),
            (
                "nginx soft nofile 10\n",
                json!({"value": 50, "use_max": true}),
                "nginx\tsoft\tnofile\t50\n",
            ),
            (
                "nginx soft nofile unlimited\n",
                json!({"value": 50, "use_max": true}),
                "nginx soft nofile unlimited\n",
            ),
            (
                "nginx soft nofile unlimited\n",
                json!({"value": 50, "use_min": true}),
                "nginx\tsoft\tnofile\t50\n",
            ),
            // Whichever of several lines counts, it is right.
            (
                "nginx soft nofile 1\nx - core 0\nnginx soft nofile 2\n",
                json!({"value": 5}),
                "nginx\tsoft\tnofile\t5\nx - core 0\nnginx\tsoft\tnofile\t5\n",
            ),
            (
                "nginx soft nofile 1\n#nginx soft nofile 2\n",
                json!({"state": "absent"}),
                "#nginx soft nofile 2\n",
            ),
            (
                "@web - nproc 5\n",
                json!({"value": 6, "domain": "@web", "limit_type": "-", "limit_item": "nproc"}),
                "@web\t-\tnproc\t6\n",
            ),
        ];
        for (before, args, after) in cases {
            assert_eq!(edit(before, args.clone()), *after, "{before:?} {args}");
        }
    }

    #[test]
    fn values_are_checked() {
        let check = |item: &str, value: Value| {
            let args =
                json!({"domain": "x", "limit_type": "hard", "limit_item": item, "value": value});
            (MODULE.check)(&args).map_err(|error| error.to_string())
        };
        assert_eq!(check("nofile", json!(65535)), Ok(()));
        assert_eq!(check("nofile", json!("-1")), Ok(()));
        assert_eq!(check("nice", json!(-10)), Ok(()));
        assert_eq!(
            check("nofile", json!("64k")),
            Err("argument `value`: `64k` is not a number, or `unlimited`".to_owned())
        );
        assert_eq!(
            check("nice", json!("unlimited")),
            Err("argument `value`: `unlimited` is not a number from -20 to 19".to_owned())
        );
        assert!(check("nofiles", json!(1)).unwrap_err().contains("nofiles"));
    }
}
