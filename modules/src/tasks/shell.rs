use serde::Deserialize;
use serde_json::json;

use super::command::Execution;
use crate::args::{Bool, Text};
use crate::host::{Fault, Host};
use crate::module::{ArgumentError, Module, Report, Task};

pub(super) static MODULE: Module = Module::of::<Shell>();

/// Runs a command in a shell, `/bin/sh` where no other is named.
///
/// What it does cannot be known before it has run: a plan calls it unknown, unless `creates` or `removes` says that it does not run.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Shell {
    /// What the shell shall do. The free text of the task.
    cmd: Text,
    /// The shell, an absolute path.
    #[serde(default = "sh")]
    executable: Text,
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
    /// Taken for Ansible's sake; it does nothing there either.
    #[serde(default, rename = "warn")]
    _warn: Option<Bool>,
}

fn sh() -> Text {
    "/bin/sh".into()
}

fn yes() -> Bool {
    Bool(true)
}

impl Task for Shell {
    const NAME: &'static str = "shell";
    const ARGUMENT_ALIASES: &'static [(&'static str, &'static str)] = &[("_raw_params", "cmd")];
    const FREE_FORM: Option<&'static str> = Some("cmd");

    fn check(&self) -> Result<(), ArgumentError> {
        if self.cmd.trim().is_empty() {
            return Err(ArgumentError::of(
                "cmd",
                "one of the following is required: _raw_params, cmd",
            ));
        }
        match self.executable.starts_with('/') {
            true => Ok(()),
            false => Err(ArgumentError::of(
                "executable",
                "it must be an absolute path, such as /bin/bash",
            )),
        }
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        Execution {
            cmd: json!(&*self.cmd),
            argv: vec![
                self.executable.to_string(),
                "-c".to_owned(),
                self.cmd.to_string(),
            ],
            line: self.cmd.to_string(),
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::MODULE;
    use crate::host::Host;
    use crate::module::Status;

    #[test]
    fn a_plan_does_not_know_what_a_shell_does() {
        let report = (MODULE.run)(json!({"cmd": "echo a | cat"}), &mut Host::plan()).unwrap();
        assert_eq!(report.status, Some(Status::Unknown));
        assert_eq!(report.fields["cmd"], "echo a | cat");
    }

    #[test]
    fn the_shell_is_an_absolute_path() {
        let refused = (MODULE.check)(&json!({"cmd": "x", "executable": "bash"})).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "argument `executable`: it must be an absolute path, such as /bin/bash"
        );
    }
}
