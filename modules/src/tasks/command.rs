use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use serde_json::{Value, json};

use super::facts::date_time;
use crate::args::{Bool, Text};
use crate::glob;
use crate::host::{Command, Fault, Host, Output, words};
use crate::module::{ArgumentError, Module, Report, Status, Task};

pub(super) static MODULE: Module = Module::of::<Run>();

/// Runs a command without a shell: no pipes, no redirections, no patterns.
///
/// What it does cannot be known before it has run: a plan calls it unknown, unless `creates` or `removes` says that it does not run.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Run {
    /// The command as a line, split into words as a shell would. The free text of the task.
    cmd: Option<Text>,
    /// The command as a list of words, in place of `cmd`.
    argv: Option<Vec<Text>>,
    /// The directory to run in; the user's home where none is given.
    chdir: Option<Text>,
    /// A path or shell pattern: where something matches, the command is not run.
    creates: Option<Text>,
    /// A path or shell pattern: where nothing matches, the command is not run.
    removes: Option<Text>,
    /// What the command reads.
    stdin: Option<Text>,
    /// End `stdin` with a newline.
    #[serde(default = "yes")]
    stdin_add_newline: Bool,
    /// Take the newlines off the end of the outputs.
    #[serde(default = "yes")]
    strip_empty_ends: Bool,
    /// Fill in `$VARIABLE`, `${VARIABLE}` and `~` in the words.
    #[serde(default = "yes")]
    expand_argument_vars: Bool,
    /// Taken for Ansible's sake; it does nothing there either.
    #[serde(default, rename = "executable")]
    _executable: Option<Text>,
    /// Taken for Ansible's sake; it does nothing there either.
    #[serde(default, rename = "warn")]
    _warn: Option<Bool>,
}

fn yes() -> Bool {
    Bool(true)
}

impl Task for Run {
    const NAME: &'static str = "command";
    const ARGUMENT_ALIASES: &'static [(&'static str, &'static str)] = &[("_raw_params", "cmd")];
    const FREE_FORM: Option<&'static str> = Some("cmd");

    fn check(&self) -> Result<(), ArgumentError> {
        self.words().map(drop)
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        let mut argv = self.words()?;
        let line = self
            .cmd
            .as_ref()
            .map_or_else(|| argv.join(" "), ToString::to_string);
        if *self.expand_argument_vars {
            argv = argv.into_iter().map(|word| expanded(host, &word)).collect();
        }
        Execution {
            cmd: json!(argv),
            argv,
            line,
            chdir: self.chdir.as_deref(),
            creates: self.creates.as_deref(),
            removes: self.removes.as_deref(),
            stdin: self.stdin.as_deref(),
            stdin_newline: *self.stdin_add_newline,
            strip: *self.strip_empty_ends,
        }
        .run(host)
    }
}

impl Run {
    fn words(&self) -> Result<Vec<String>, ArgumentError> {
        let argv = match (&self.cmd, &self.argv) {
            (Some(_), Some(_)) => {
                return Err(ArgumentError::of(
                    "argv",
                    "it does not go with a command line",
                ));
            }
            (Some(line), None) => {
                words(line).map_err(|problem| ArgumentError::of("cmd", problem))?
            }
            (None, Some(argv)) => argv.iter().map(ToString::to_string).collect(),
            (None, None) => Vec::new(),
        };
        match argv.is_empty() {
            true => Err(ArgumentError::of("cmd", "no command is given")),
            false => Ok(argv),
        }
    }
}

/// A command with the conditions on it, as `command` and `shell` have them.
pub(super) struct Execution<'a> {
    /// The command as `register` sees it.
    pub(super) cmd: Value,
    pub(super) argv: Vec<String>,
    pub(super) line: String,
    pub(super) chdir: Option<&'a str>,
    pub(super) creates: Option<&'a str>,
    pub(super) removes: Option<&'a str>,
    pub(super) stdin: Option<&'a str>,
    pub(super) stdin_newline: bool,
    pub(super) strip: bool,
}

impl Execution<'_> {
    pub(super) fn run(self, host: &mut Host) -> Result<Report, Fault> {
        let chdir = self.chdir.map(|dir| PathBuf::from(expanded(host, dir)));
        if let Some(message) = self.skips(host, chdir.as_deref())? {
            let fields = json!({"cmd": self.cmd, "rc": 0, "stdout": format!("skipped, since {message}"), "stderr": "", "stdout_lines": [], "stderr_lines": [], "msg": format!("Did not run command since {message}")});
            return Ok(Report::of(fields).with_status(Status::Skipped));
        }
        let stdin = self.stdin.map(|text| {
            let mut bytes = text.as_bytes().to_vec();
            if self.stdin_newline {
                bytes.push(b'\n');
            }
            bytes
        });
        let command = Command {
            argv: self.argv,
            chdir,
            stdin,
            line: self.line,
        };
        let start = SystemTime::now();
        let Some(output) = host.command(command)? else {
            return Ok(Report::of(json!({"cmd": self.cmd})).with_status(Status::Unknown));
        };
        let fields = result(self.cmd, &output, self.strip, start, SystemTime::now());
        let report = Report::of(fields);
        if output.ok() {
            return Ok(report);
        }
        let mut fault = Fault::new("non-zero return code");
        fault.fields = report.fields;
        Err(fault)
    }

    /// Why it is not run: `/x exists`.
    fn skips(&self, host: &Host, chdir: Option<&Path>) -> Result<Option<String>, Fault> {
        let found = |path: &str| {
            let path = PathBuf::from(expanded(host, path));
            let from = chdir.unwrap_or(&host.user().home);
            glob::first(host, &from.join(path))
        };
        if let Some(path) = self.creates
            && found(path)?.is_some()
        {
            return Ok(Some(format!("'{path}' exists")));
        }
        if let Some(path) = self.removes
            // What comes before in a plan may make it yet.
            && !host.open()
            && found(path)?.is_none()
        {
            return Ok(Some(format!("'{path}' does not exist")));
        }
        Ok(None)
    }
}

fn result(cmd: Value, output: &Output, strip: bool, start: SystemTime, end: SystemTime) -> Value {
    let text = |text: String| match strip {
        true => text.trim_end_matches(['\r', '\n']).to_owned(),
        false => text,
    };
    let (stdout, stderr) = (text(output.text()), text(output.error_text()));
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let micros = end.duration_since(start).unwrap_or_default().as_micros();
    let (seconds, rest) = (micros / 1_000_000, micros % 1_000_000);
    let stamp =
        |time: SystemTime| date_time::stamp(time.duration_since(UNIX_EPOCH).unwrap_or_default());
    let mut fields = json!({
        "cmd": cmd,
        "rc": output.rc,
        "stdout": stdout,
        "stderr": stderr,
        "stdout_lines": lines(&stdout),
        "stderr_lines": lines(&stderr),
        "start": stamp(start),
        "end": stamp(end),
        "delta": format!("{}:{:02}:{:02}.{rest:06}", seconds / 3600, seconds / 60 % 60, seconds % 60),
        "msg": if output.ok() { "" } else { "non-zero return code" },
    });
    if output.cut {
        fields["warnings"] = json!([
            "its output is cut to the first 2 MiB of each stream: write it to a file on the host"
        ]);
    }
    fields
}

/// Fills in variables and a leading `~`, as Python's `expandvars` and `expanduser` do; what is not known stays.
fn expanded(host: &Host, word: &str) -> String {
    let user = host.user();
    let variable = |name: &str| {
        let set = host.environment().iter().find(|(known, _)| known == name);
        set.map(|(_, value)| value.clone()).or_else(|| match name {
            "HOME" => Some(user.home.display().to_string()),
            "USER" | "LOGNAME" => Some(user.name.clone()),
            "SHELL" => Some(user.shell.display().to_string()),
            _ => None,
        })
    };
    let word = with_variables(word, variable);
    let Some(rest) = word.strip_prefix('~') else {
        return word;
    };
    let (name, tail) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let home = match name {
        "" => variable("HOME"),
        name => home_of(host, name),
    };
    home.map_or_else(
        || word.clone(),
        |home| format!("{}{tail}", home.trim_end_matches('/')),
    )
}

fn home_of(host: &Host, name: &str) -> Option<String> {
    let passwd = host.read(Path::new("/etc/passwd")).ok()??;
    let passwd = String::from_utf8_lossy(&passwd);
    let mut accounts = passwd
        .lines()
        .map(|line| line.split(':').collect::<Vec<_>>());
    let account = accounts.find(|fields| fields.len() == 7 && fields[0] == name)?;
    Some(account[5].to_owned())
}

fn with_variables(word: &str, variable: impl Fn(&str) -> Option<String>) -> String {
    let mut out = String::new();
    let mut rest = word;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let end = |text: &str| {
            text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .unwrap_or(text.len())
        };
        let (name, length) = match after
            .strip_prefix('{')
            .and_then(|inner| inner.split_once('}'))
        {
            Some((name, _)) => (name, name.len() + 2),
            None => (&after[..end(after)], end(after)),
        };
        match variable(name) {
            Some(value) => out.push_str(&value),
            None => out.push_str(&rest[at..=at + length]),
        }
        rest = &after[length..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use serde_json::{Value, json};

    use super::{MODULE, result, with_variables};
    use crate::host::{Host, Output};
    use crate::module::Status;

    fn plan(args: Value) -> Option<Status> {
        (MODULE.run)(args, &mut Host::plan()).unwrap().status
    }

    #[test]
    fn a_plan_knows_only_what_creates_and_removes_say() {
        assert_eq!(plan(json!({"cmd": "reboot"})), Some(Status::Unknown));
        assert_eq!(
            plan(json!({"cmd": "reboot", "creates": "/etc/passw*"})),
            Some(Status::Skipped)
        );
        assert_eq!(
            plan(json!({"cmd": "reboot", "creates": "/no/such"})),
            Some(Status::Unknown)
        );
        assert_eq!(
            plan(json!({"cmd": "reboot", "removes": "/no/such"})),
            Some(Status::Skipped)
        );
        assert_eq!(
            plan(json!({"cmd": "reboot", "chdir": "/etc", "removes": "passwd"})),
            Some(Status::Unknown)
        );
    }

    #[test]
    fn what_came_before_in_a_plan_may_make_what_is_removed() {
        let mut host = Host::plan();
        (MODULE.run)(json!({"cmd": "make /no/such"}), &mut host).unwrap();
        let after = (MODULE.run)(json!({"cmd": "x", "removes": "/no/such"}), &mut host).unwrap();
        assert_eq!(after.status, Some(Status::Unknown));
    }

    #[test]
    fn the_result_has_ansibles_fields() {
        let output = Output {
            rc: 0,
            stdout: b"a\nb\n\n".to_vec(),
            stderr: Vec::new(),
            ..Output::default()
        };
        let start = UNIX_EPOCH + Duration::from_micros(1_796_087_195_000_001);
        let fields = result(
            json!(["x"]),
            &output,
            true,
            start,
            start + Duration::from_micros(3_723_000_042),
        );
        assert_eq!(fields["stdout"], "a\nb");
        assert_eq!(fields["stdout_lines"], json!(["a", "b"]));
        assert_eq!(fields["delta"], "1:02:03.000042");
        assert_eq!(fields["start"], "2026-12-01 01:06:35.000001");
        assert_eq!(
            result(json!("x"), &output, false, start, start)["stdout"],
            "a\nb\n\n"
        );
    }

    #[test]
    fn variables_are_filled_in_where_they_are_known() {
        let known = |name: &str| (name == "HOME").then(|| "/root".to_owned());
        for (word, filled) in [
            ("$HOME/x", "/root/x"),
            ("${HOME}x", "/rootx"),
            ("$HOMEX ${NO} $", "$HOMEX ${NO} $"),
            ("a$b", "a$b"),
            ("${HOME", "${HOME"),
        ] {
            assert_eq!(with_variables(word, known), filled);
        }
    }

    #[test]
    fn a_command_is_given_once() {
        let refused = |args: Value| (MODULE.check)(&args).unwrap_err().to_string();
        assert_eq!(refused(json!({})), "argument `cmd`: no command is given");
        assert_eq!(
            refused(json!({"cmd": "a", "argv": ["b"]})),
            "argument `argv`: it does not go with a command line"
        );
        assert!(refused(json!({"cmd": "a 'b"})).contains("not closed"));
        assert!((MODULE.check)(&json!({"_raw_params": "a b"})).is_ok());
    }
}
