use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use serde_json::{Value, json};

use super::facts::date_time;
use crate::args::{Bool, Text};
use crate::glob;
use crate::host::{Command, Entry, Fault, Host, Output, words};
use crate::module::{ArgumentError, Module, Report, Status, Task};

pub(super) static MODULE: Module = Module::of::<Run>();

/// What a command has to say for itself that failed, in Ansible's words.
const NON_ZERO: &str = "The command exited with a non-zero return code.";

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
    /// The directory to run in; where none is given the home of the user who logged in, on the controller's own machine the
    /// playbook's directory.
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
    /// Taken for Ansible's sake; it does nothing there either, but for a warning.
    executable: Option<Text>,
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
            argv = argv.into_iter().map(|word| host.filled(&word)).collect();
        }
        let execution = Execution {
            cmd: json!(argv),
            argv,
            line,
            chdir: self.chdir.as_deref(),
            creates: self.creates.as_deref(),
            removes: self.removes.as_deref(),
            stdin: self.stdin.as_deref(),
            stdin_newline: *self.stdin_add_newline,
            strip: *self.strip_empty_ends,
        };
        let mut report = execution.run(host)?;
        if let Some(shell) = &self.executable {
            let warning = format!(
                "As of Ansible 2.4, the parameter 'executable' is no longer supported with the 'command' module. Not using '{shell}'."
            );
            report
                .fields
                .insert("warnings".to_owned(), json!([warning]));
        }
        Ok(report)
    }
}

impl Run {
    fn words(&self) -> Result<Vec<String>, ArgumentError> {
        let argv = match (&self.cmd, &self.argv) {
            (Some(_), Some(_)) => {
                return Err(ArgumentError::of(
                    "argv",
                    "parameters are mutually exclusive: cmd|argv",
                ));
            }
            (Some(line), None) => {
                words(line).map_err(|problem| ArgumentError::of("cmd", problem))?
            }
            (None, Some(argv)) => argv.iter().map(ToString::to_string).collect(),
            (None, None) => Vec::new(),
        };
        match argv.is_empty() {
            true => Err(ArgumentError::of(
                "cmd",
                "one of the following is required: _raw_params, cmd, argv",
            )),
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
        let cmd = self.cmd.clone();
        match self.execute(host) {
            // What it needs may be among what comes before it.
            Err(fault) if host.ahead() => {
                let message = format!(
                    "known after apply: now, before what comes first in the plan, it fails: {fault}"
                );
                Ok(Report::of(unrun(&cmd, &message)).with_status(Status::Unknown))
            }
            done => done,
        }
    }

    fn execute(self, host: &mut Host) -> Result<Report, Fault> {
        let chdir = self.chdir.map(|dir| PathBuf::from(host.filled(dir)));
        if let Some(dir) = &chdir
            && !host.open()
            && !matches!(host.entry(&host.resolve(dir)?)?, Entry::Dir(_))
        {
            let message = format!(
                "Unable to change directory before execution: {} is no directory",
                dir.display()
            );
            return Err(not_run(message, &self.cmd));
        }
        if let Some(because) = self.skips(host, chdir.as_deref())? {
            let did = if host.planning() { "Would" } else { "Did" };
            let shown = because.replace('\'', "");
            let mut fields = unrun(&self.cmd, &format!("{did} not run command since {because}"));
            fields["stdout"] = format!("skipped, since {shown}").into();
            fields["stdout_lines"] = json!([fields["stdout"]]);
            return Ok(Report::of(fields));
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
        let program = command.argv[0].clone();
        let ran = host.command(command).map_err(|fault| {
            match fault.message.starts_with(&format!("cannot run {program}")) {
                true => not_run(format!("Error executing command: {fault}"), &program.into())
                    .with("rc", 2),
                false => fault,
            }
        })?;
        let Some(output) = ran else {
            let mut fields = unrun(&self.cmd, "Command would have run if not in check mode");
            // Conditions that were looked at say that it would change something.
            match self.creates.or(self.removes) {
                Some(_) => fields["changed"] = true.into(),
                None => fields["skipped"] = true.into(),
            }
            return Ok(Report::of(fields).with_status(Status::Unknown));
        };
        let fields = result(self.cmd, &output, self.strip, start, SystemTime::now());
        let report = Report::of(fields);
        if output.ok() {
            return Ok(report);
        }
        let mut fault = Fault::new(NON_ZERO);
        fault.fields = report.fields;
        Err(fault)
    }

    /// Why it is not run: `/x exists`.
    fn skips(&self, host: &Host, chdir: Option<&Path>) -> Result<Option<String>, Fault> {
        let found = |path: &str| {
            let path = PathBuf::from(host.filled(path));
            let base = host.base();
            let from = chdir.unwrap_or(&base);
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

/// What `register` sees of a command that was not run.
fn unrun(cmd: &Value, message: &str) -> Value {
    json!({
        "cmd": cmd, "rc": 0, "msg": message, "start": null, "end": null, "delta": null,
        "stdout": "", "stderr": "", "stdout_lines": [], "stderr_lines": [],
    })
}

/// A command that could not be run at all.
fn not_run(message: String, cmd: &Value) -> Fault {
    let fields = Report::of(unrun(cmd, "")).fields;
    let mut fault = Fault::new(message);
    fault.fields.extend(fields);
    fault.fields.remove("rc");
    fault
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
        "msg": if output.ok() { "" } else { NON_ZERO },
    });
    if output.cut {
        fields["warnings"] = json!([
            "its output is cut to the first 2 MiB of each stream: write it to a file on the host"
        ]);
    }
    fields
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use serde_json::{Value, json};

    use super::{MODULE, result};
    use crate::host::{Host, Output};
    use crate::module::Status;

    /// The status and the message in a plan.
    fn plan(args: Value) -> (Option<Status>, String) {
        let report = (MODULE.run)(args, &mut Host::plan()).unwrap();
        let message = report.fields["msg"].as_str().unwrap().to_owned();
        (report.status, message)
    }

    #[test]
    fn a_plan_knows_only_what_creates_and_removes_say() {
        let would = |because: &str| (None, format!("Would not run command since {because}"));
        let unknown = || {
            let message = "Command would have run if not in check mode".to_owned();
            (Some(Status::Unknown), message)
        };
        for (args, told) in [
            (json!({"cmd": "reboot"}), unknown()),
            (
                json!({"cmd": "reboot", "creates": "/etc/passw*"}),
                would("'/etc/passw*' exists"),
            ),
            (json!({"cmd": "reboot", "creates": "/no/such"}), unknown()),
            (
                json!({"cmd": "reboot", "removes": "/no/such"}),
                would("'/no/such' does not exist"),
            ),
            (
                json!({"cmd": "reboot", "chdir": "/etc", "removes": "passwd"}),
                unknown(),
            ),
        ] {
            assert_eq!(plan(args.clone()), told, "{args}");
        }
    }

    #[test]
    fn what_cannot_be_run_is_told() {
        let fault = |args| (MODULE.run)(args, &mut Host::plan()).unwrap_err();
        let chdir = fault(json!({"cmd": "ls", "chdir": "/no/such"}));
        assert_eq!(
            chdir.message,
            "Unable to change directory before execution: /no/such is no directory"
        );
        assert_eq!(chdir.fields["stdout"], "");
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
    fn a_command_is_given_once() {
        let refused = |args: Value| (MODULE.check)(&args).unwrap_err().to_string();
        assert_eq!(
            refused(json!({})),
            "argument `cmd`: one of the following is required: _raw_params, cmd, argv"
        );
        assert_eq!(
            refused(json!({"cmd": "a", "argv": ["b"]})),
            "argument `argv`: parameters are mutually exclusive: cmd|argv"
        );
        assert!(refused(json!({"cmd": "a 'b"})).contains("not closed"));
        assert!((MODULE.check)(&json!({"_raw_params": "a b"})).is_ok());
    }
}
