use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::args::{Bool, Text};
use crate::host::{Command, Fault, Host, Private, Verdict};
use crate::module::{Module, Report, Status, Task};

mod answer;
mod words;

use answer::Answer;

pub(super) static MODULE: Module = Module::of::<External>();

/// Where a host's Python is, in the order in which it is looked for.
const PYTHONS: [&str; 16] = [
    "/usr/bin/python3",
    "/usr/bin/python3.14",
    "/usr/bin/python3.13",
    "/usr/bin/python3.12",
    "/usr/bin/python3.11",
    "/usr/bin/python3.10",
    "/usr/bin/python3.9",
    "/usr/bin/python3.8",
    "/usr/bin/python3.7",
    "/usr/bin/python3.6",
    "/usr/libexec/platform-python",
    "/usr/local/bin/python3",
    "/usr/local/bin/python",
    "/opt/bin/python3",
    "/bin/python3",
    "/usr/bin/python",
];

/// Runs a module that fleetctl has not and that came along as the task's content. Called by the engine alone.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct External {
    /// The module's name, as the task has it.
    name: Text,
    /// How it is given its arguments.
    kind: Kind,
    /// The program that runs it, with options.
    interpreter: Option<Vec<Text>>,
    /// It is run by Python, with these options.
    python: Option<Vec<Text>>,
    /// Its own arguments, with those that every module gets.
    arguments: Map<String, Value>,
    /// It can say what it would do without doing it.
    checkable: Bool,
    /// What it says in a plan is the task's result, as in Ansible's check mode.
    #[serde(default)]
    as_check: Bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum Kind {
    Python,
    JsonInText,
    WantJson,
    KeysAndValues,
    Binary,
}

impl Task for External {
    const NAME: &'static str = "_external";

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        let content = host
            .blob()?
            .ok_or_else(|| Fault::new(format!("the module `{}` did not come along", self.name)))?;
        if host.planning() {
            return self.plan(&content, host);
        }
        // What a plan did not show is rehearsed first, where that is possible.
        let line = self.line();
        if !host.foresaw(&line) {
            let answer = self.rehearse(&content, host)?;
            if answer.is_none_or(|answer| answer.verdict() == Verdict::Changed) {
                return Err(Fault::new(format!(
                    "stale: `{line}` is not in the plan: the host is not as it was when the plan was made; plan again"
                ))
                .with("stale", true));
            }
        }
        let private = host.private(self.kind == Kind::Binary)?;
        let command = self.command(&content, &private, host, false)?;
        let mut answer = None;
        let output = host.foreign(&command, |output| {
            let read = Answer::read(output);
            let verdict = read.verdict();
            answer = Some(read);
            verdict
        })?;
        answer.unwrap_or_else(|| Answer::read(&output)).report()
    }
}

impl External {
    fn line(&self) -> String {
        format!("external module {}", self.name)
    }

    fn plan(&self, content: &[u8], host: &mut Host) -> Result<Report, Fault> {
        let disturbed = host.disturbed();
        let Some(answer) = self.rehearse(content, host)? else {
            host.suppose(&self.line());
            let mut report = Report::default();
            report.fields.insert("skipped".to_owned(), true.into());
            let message = format!("remote module ({}) does not support check mode", self.name);
            report.fields.insert("msg".to_owned(), message.into());
            return Ok(report.with_status(match *self.as_check {
                true => Status::Skipped,
                false => Status::Unknown,
            }));
        };
        let verdict = answer.verdict();
        if *self.as_check {
            if verdict == Verdict::Changed {
                host.suppose(&self.line());
            }
            return answer.report();
        }
        match verdict {
            Verdict::Unchanged if !disturbed => answer.report(),
            Verdict::Failed if !disturbed => answer.report(),
            // It has seen the machine without what comes before it, or will return other values once it has changed it.
            verdict => {
                host.suppose(&self.line());
                let mut report = answer.fields();
                if verdict != Verdict::Changed {
                    let message = "known after apply: what comes before it may change its answer";
                    report.fields.insert("msg".to_owned(), message.into());
                }
                Ok(report.with_status(Status::Unknown))
            }
        }
    }

    /// What it would do on the machine as it is; none where it cannot say.
    fn rehearse(&self, content: &[u8], host: &Host) -> Result<Option<Answer>, Fault> {
        if !*self.checkable {
            return Ok(None);
        }
        let private = host.private(self.kind == Kind::Binary)?;
        let command = self.command(content, &private, host, true)?;
        let answer = Answer::read(&host.rehearse(&command)?);
        Ok((!answer.skipped()).then_some(answer))
    }

    /// The command that runs it, and its files in a directory of its own.
    fn command(
        &self,
        content: &[u8],
        private: &Private,
        host: &Host,
        check: bool,
    ) -> Result<Command, Fault> {
        let mut arguments = self.arguments.clone();
        let dir = private.path().to_string_lossy();
        for (name, value) in [
            ("check_mode", Value::from(check)),
            ("tmpdir", Value::from(&*dir)),
            ("remote_tmp", Value::from(&*dir)),
        ] {
            arguments.insert(format!("_ansible_{name}"), value);
        }
        let arguments = Value::Object(arguments);
        let mut argv = self.program(host)?;
        let mut stdin = None;
        let (file, given) = match self.kind {
            Kind::Python => {
                let mut around = Map::new();
                around.insert("ANSIBLE_MODULE_ARGS".to_owned(), arguments);
                // Not in a file: there are secrets among them.
                stdin = Some(Value::Object(around).to_string().into_bytes());
                (private.put("module.zip", content, false)?, None)
            }
            Kind::JsonInText => {
                let filled = filled(content, &arguments.to_string());
                (private.put("module", &filled, true)?, None)
            }
            Kind::WantJson | Kind::Binary => {
                let file = private.put("module", content, true)?;
                (file, Some(arguments.to_string()))
            }
            Kind::KeysAndValues => {
                let file = private.put("module", content, true)?;
                (file, Some(words::of(&arguments)))
            }
        };
        argv.push(file.to_string_lossy().into_owned());
        if let Some(given) = given {
            let path = private.put("args", given.as_bytes(), false)?;
            argv.push(path.to_string_lossy().into_owned());
        }
        Ok(Command {
            argv,
            chdir: None,
            stdin,
            line: self.line(),
        })
    }

    fn program(&self, host: &Host) -> Result<Vec<String>, Fault> {
        let mut words: Vec<String> = match (&self.interpreter, &self.python) {
            (Some(words), _) => words.iter().map(ToString::to_string).collect(),
            (None, Some(_)) => vec![python(host)?],
            (None, None) => Vec::new(),
        };
        let options = self.python.iter().flatten();
        words.extend(options.map(ToString::to_string));
        Ok(words)
    }
}

/// The host's Python: the first that is there.
fn python(host: &Host) -> Result<String, Fault> {
    let named = |place: &&&str| {
        std::fs::metadata(PathBuf::from(**place)).is_ok_and(|found| found.is_file())
    };
    PYTHONS
        .iter()
        .find(named)
        .map(|place| (*place).to_owned())
        .ok_or_else(|| {
            let user = &host.user().name;
            Fault::new(format!(
                "there is no Python 3 on this host for `{user}` to run the module with: install it, or say where it is in \
                 `ansible_python_interpreter`"
            ))
        })
}

/// A text with the arguments in their place.
fn filled(content: &[u8], arguments: &str) -> Vec<u8> {
    const PLACE: &[u8] = b"<<INCLUDE_ANSIBLE_MODULE_JSON_ARGS>>";
    let mut filled = Vec::with_capacity(content.len() + arguments.len());
    let mut rest = content;
    while let Some(at) = rest.windows(PLACE.len()).position(|part| part == PLACE) {
        filled.extend(&rest[..at]);
        filled.extend(arguments.as_bytes());
        rest = &rest[at + PLACE.len()..];
    }
    filled.extend(rest);
    filled
}
