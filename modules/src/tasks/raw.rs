use serde::Deserialize;
use serde_json::json;

use crate::args::Text;
use crate::host::{Command, Fault, Host, Output};
use crate::module::{ArgumentError, Module, Report, Status, Task};

pub(super) static MODULE: Module = Module::of::<Raw>();

/// Runs a command in a shell, with nothing of `shell`'s conditions. What it does is unknown to a plan.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Raw {
    /// What the shell shall do. The free text of the task.
    cmd: Text,
    /// The shell.
    #[serde(default = "sh")]
    executable: Text,
}

fn sh() -> Text {
    "/bin/sh".into()
}

impl Task for Raw {
    const NAME: &'static str = "raw";
    const ARGUMENT_ALIASES: &'static [(&'static str, &'static str)] =
        &[("_raw_params", "cmd"), ("free_form", "cmd")];
    const FREE_FORM: Option<&'static str> = Some("cmd");

    fn check(&self) -> Result<(), ArgumentError> {
        match self.executable.trim().is_empty() {
            true => Err(ArgumentError::of("executable", "it is empty")),
            false => Ok(()),
        }
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        let command = Command {
            argv: vec![
                self.executable.to_string(),
                "-c".to_owned(),
                self.cmd.to_string(),
            ],
            line: self.cmd.to_string(),
            ..Command::default()
        };
        match host.command(command)? {
            None => Ok(Report::of(json!({"skipped": true})).with_status(Status::Unknown)),
            Some(output) => finish(&output),
        }
    }
}

/// What `register` sees of a command that Ansible runs without a module.
pub(super) fn finish(output: &Output) -> Result<Report, Fault> {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let (stdout, stderr) = (output.text(), output.error_text());
    let report = Report::of(json!({
        "rc": output.rc,
        "stdout": stdout,
        "stdout_lines": lines(&stdout),
        "stderr": stderr,
        "stderr_lines": lines(&stderr),
    }));
    if output.ok() {
        return Ok(report);
    }
    let mut fault = Fault::new("non-zero return code");
    fault.fields = report.fields;
    Err(fault)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::MODULE;
    use crate::host::{Host, State};
    use crate::module::Status;

    #[test]
    fn a_command_is_run_as_it_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let state = State::at(dir.path().to_str());
        state.prepare().unwrap();
        let mut host = Host::apply(state, "r1", "test");
        let done = (MODULE.run)(
            json!({"cmd": "echo 'foo,bar' | cut -d\\, -f2; echo err >&2"}),
            &mut host,
        )
        .unwrap();
        assert_eq!(done.fields["stdout"], "bar\n");
        assert_eq!(done.fields["stdout_lines"], json!(["bar"]));
        assert_eq!(done.fields["stderr"], "err\n");
        let failed = (MODULE.run)(json!({"cmd": "exit 3"}), &mut host).unwrap_err();
        assert_eq!(failed.fields["rc"], 3);
        let planned = (MODULE.run)(json!({"cmd": "exit 3"}), &mut Host::plan()).unwrap();
        assert_eq!(planned.status, Some(Status::Unknown));
    }
}
