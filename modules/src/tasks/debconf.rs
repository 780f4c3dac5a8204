use fleet_wire::SettingKind;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::args::{Bool, Text};
use crate::host::{Fault, Host, Setting};
use crate::module::{ArgumentError, Module, Report, Task};

pub(super) static MODULE: Module = Module::of::<Debconf>();

/// Answers a question of a Debian package before or after it is installed, or reads all of its answers.
///
/// The plan shows the answer (but no password), and an undo gives the old one, or takes the question away.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Debconf {
    /// The package.
    name: Text,
    /// The question; without one the answers are only read.
    question: Option<Text>,
    /// The question's type.
    vtype: Option<Kind>,
    /// The answer: a text, a boolean, or a list for `multiselect`.
    value: Option<Value>,
    /// Leave the question marked as one that nobody has seen.
    #[serde(default)]
    unseen: Bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
enum Kind {
    Boolean,
    Error,
    Multiselect,
    Note,
    Password,
    Seen,
    Select,
    String,
    Text,
    Title,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::Boolean => "boolean",
            Self::Error => "error",
            Self::Multiselect => "multiselect",
            Self::Note => "note",
            Self::Password => "password",
            Self::Seen => "seen",
            Self::Select => "select",
            Self::String => "string",
            Self::Text => "text",
            Self::Title => "title",
        }
    }
}

impl Task for Debconf {
    const NAME: &'static str = "debconf";
    const ARGUMENT_ALIASES: &'static [(&'static str, &'static str)] = &[
        ("pkg", "name"),
        ("selection", "question"),
        ("setting", "question"),
        ("answer", "value"),
    ];

    fn check(&self) -> Result<(), ArgumentError> {
        let word = |text: &str| {
            !text.is_empty() && !text.starts_with('-') && !text.contains(char::is_whitespace)
        };
        if !word(&self.name) {
            return Err(ArgumentError::of(
                "name",
                format!("`{}` is not the name of a package", self.name),
            ));
        }
        let Some(question) = &self.question else {
            return match self.value.is_some() || self.vtype.is_some() {
                true => Err(ArgumentError::of(
                    "question",
                    "it is required with vtype and value",
                )),
                false => Ok(()),
            };
        };
        if !word(question) {
            return Err(ArgumentError::of(
                "question",
                format!("`{question}` is no question of debconf"),
            ));
        }
        if self.vtype.is_none() || self.value.is_none() {
            return Err(ArgumentError::of(
                "vtype",
                "when supplying a question you must supply a valid vtype and value",
            ));
        }
        match self.answer().is_ok_and(|answer| answer.contains('\n')) {
            true => Err(ArgumentError::of("value", "an answer is one line")),
            false => Ok(()),
        }
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        if !host.probe(&["which", "debconf-communicate"])?.ok() {
            return Err(Fault::new(
                "this host has no debconf: only Debian and its relatives do",
            ));
        }
        let (Some(question), Some(kind)) = (&self.question, self.vtype) else {
            let current = shown(&host.probe(&["debconf-show", &self.name])?.text());
            return Ok(Report::of(json!({"msg": "", "current": current})));
        };
        let answer = self.answer()?;
        let name = format!("{} {question}", self.name);
        let before = host.setting(SettingKind::Debconf, &name)?;
        let (known, old) = before.split_once(' ').unwrap_or((&before, ""));
        let same = match (kind, &self.value) {
            _ if before.is_empty() => false,
            (Kind::Boolean, _) => old.eq_ignore_ascii_case(&answer),
            (Kind::Multiselect, Some(Value::Array(_))) => sorted(old) == sorted(&answer),
            _ => old == answer && known == kind.word(),
        };
        if !same {
            let setting = Setting {
                kind: SettingKind::Debconf,
                name: name.clone(),
                value: format!("{} {answer}", kind.word()).trim_end().to_owned(),
            };
            match *self.unseen {
                true => self.set_unseen(host, setting, &before)?,
                false => drop(host.set(setting)?),
            }
        }
        let tell = |answer: &str| match kind {
            Kind::Password => json!({}),
            _ => json!({&**question: answer}),
        };
        Ok(Report::of(json!({
            "msg": "",
            "current": tell(&answer),
            "previous": tell(old),
        })))
    }
}

impl Debconf {
    fn set_unseen(&self, host: &mut Host, setting: Setting, before: &str) -> Result<(), Fault> {
        let line = format!("{} {}\n", setting.name, setting.value);
        host.set_by(setting, before, |host| {
            let argv = ["debconf-set-selections", "-u"];
            let output = host.tool(&argv, Some(line.as_bytes()))?;
            match output.ok() {
                true => Ok(()),
                false => Err(Fault::new(format!(
                    "cannot answer the question: {}",
                    output.complaint()
                ))),
            }
        })
    }

    /// The answer as debconf has it.
    fn answer(&self) -> Result<String, Fault> {
        let scalar = |value: &Value| match value {
            Value::Bool(true) => "True".to_owned(),
            Value::Bool(false) => "False".to_owned(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let value = self.value.as_ref().unwrap_or(&Value::Null);
        match (self.vtype, value) {
            (Some(Kind::Multiselect), Value::Array(items)) => {
                let items: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
                items.map(|items| items.join(", ")).ok_or_else(|| {
                    Fault::new(
                        "Invalid value provided for 'multiselect': its list must be of strings",
                    )
                })
            }
            (_, Value::Array(_) | Value::Object(_)) => Err(Fault::new(
                "Invalid value provided: only a multiselect takes a list",
            )),
            (Some(Kind::Boolean), value) => Ok(scalar(value).to_lowercase()),
            (_, value) => Ok(scalar(value)),
        }
    }
}

fn sorted(answer: &str) -> Vec<&str> {
    let mut items: Vec<&str> = answer.split(',').map(str::trim).collect();
    items.sort_unstable();
    items
}

/// What `debconf-show` lists: `* package/question: answer`.
fn shown(text: &str) -> Map<String, Value> {
    let lines = text.lines().filter_map(|line| {
        let (question, answer) = line.trim_start_matches(['*', ' ']).split_once(':')?;
        Some((question.trim().to_owned(), answer.trim().into()))
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{MODULE, shown};
    use crate::host::Host;

    #[test]
    fn answers_are_read_and_planned() {
        assert_eq!(
            Value::from(shown("* tzdata/Zones/Etc: UTC\n  tzdata/Areas: \n")),
            json!({"tzdata/Zones/Etc": "UTC", "tzdata/Areas": ""})
        );
        let root = rustix::process::geteuid().is_root();
        if !root || !std::path::Path::new("/usr/bin/debconf-communicate").exists() {
            return;
        }
        let mut host = Host::plan();
        let mut run = |args| {
            let report = (MODULE.run)(args, &mut host).unwrap();
            let effects = host.end();
            assert!(!format!("{effects:?}").contains("geheim"), "{effects:?}");
            (report.fields["current"].clone(), effects.len())
        };
        let question = |vtype: &str, value: Value| json!({"name": "fleetctl-x", "question": "fleetctl-x/q", "vtype": vtype, "value": value});
        assert_eq!(
            run(question("boolean", json!(true))),
            (json!({"fleetctl-x/q": "true"}), 1)
        );
        assert_eq!(run(question("boolean", json!("TRUE"))).1, 0);
        assert_eq!(run(question("multiselect", json!(["b", "a"]))).1, 1);
        assert_eq!(run(question("multiselect", json!(["a", "b"]))).1, 0);
        assert_eq!(run(question("multiselect", json!("a, b"))).1, 1);
        assert_eq!(run(question("password", json!("geheim"))), (json!({}), 1));
    }

    #[test]
    fn arguments_are_checked() {
        let refused = |args| (MODULE.check)(&args).unwrap_err().message;
        assert!(
            refused(json!({"name": "x", "question": "x/y"})).contains("must supply a valid vtype")
        );
        assert!(refused(json!({"name": "-x"})).contains("not the name of a package"));
        assert!(refused(json!({"name": "x", "value": "y"})).contains("required with vtype"));
        assert!(
            (MODULE.check)(&json!({"pkg": "x", "setting": "x/y", "vtype": "string", "answer": 1}))
                .is_ok()
        );
    }
}
