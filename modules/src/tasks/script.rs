use std::path::PathBuf;

use serde::Deserialize;
use serde_json::json;

use super::raw::finish;
use crate::args::Text;
use crate::glob;
use crate::host::{Fault, Host, Script, words};
use crate::module::{ArgumentError, Module, Report, Status, Task};

pub(super) static MODULE: Module = Module::of::<RunScript>();

/// Runs a script of the controller on the host.
///
/// What it does cannot be known before it has run: a plan calls it unknown, unless `creates` or `removes` says that it does not run.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct RunScript {
    /// The script, beside the playbook or in its `files/`, and its arguments. The free text of the task.
    cmd: Text,
    /// What runs it; what its first line says where none is given.
    executable: Option<Text>,
    /// The directory to run in; the user's home where none is given.
    chdir: Option<Text>,
    /// A path or shell pattern: where something matches, the script is not run.
    creates: Option<Text>,
    /// A path or shell pattern: where nothing matches, the script is not run.
    removes: Option<Text>,
    /// Decrypt the script where it is encrypted: decided on the controller.
    #[serde(default, rename = "decrypt")]
    _decrypt: Option<crate::args::Bool>,
}

impl Task for RunScript {
    const NAME: &'static str = "script";
    const ARGUMENT_ALIASES: &'static [(&'static str, &'static str)] =
        &[("_raw_params", "cmd"), ("free_form", "cmd")];
    const FREE_FORM: Option<&'static str> = Some("cmd");

    fn check(&self) -> Result<(), ArgumentError> {
        let words = words(&self.cmd).map_err(|problem| ArgumentError::of("cmd", problem))?;
        match words.is_empty() {
            true => Err(ArgumentError::of(
                "cmd",
                "one of the following is required: _raw_params, cmd",
            )),
            false => Ok(()),
        }
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        if let Some(because) = self.skips(host)? {
            return Ok(Report::of(json!({"msg": because})).with_status(Status::Skipped));
        }
        let body = host
            .body()
            .ok_or_else(|| Fault::new("the script's content did not come with the task"))?;
        let (name, arguments) = split(&self.cmd);
        let name = name.rsplit('/').next().unwrap_or_default();
        let script = Script {
            body,
            name: if name.is_empty() { "script" } else { name }.to_owned(),
            executable: self.executable.as_ref().map(ToString::to_string),
            arguments: arguments.to_owned(),
            chdir: self
                .chdir
                .as_ref()
                .map(|dir| PathBuf::from(host.filled(dir))),
            line: self.cmd.to_string(),
        };
        match host.script(&script)? {
            None => {
                // Conditions that were looked at say that it would change something.
                let looked = self.creates.is_some() || self.removes.is_some();
                let told = if looked { "changed" } else { "skipped" };
                Ok(Report::of(json!({told: true})).with_status(Status::Unknown))
            }
            Some(output) => finish(&output),
        }
    }
}

impl RunScript {
    fn skips(&self, host: &Host) -> Result<Option<String>, Fault> {
        let found = |path: &str| {
            let path = PathBuf::from(host.filled(path));
            glob::first(host, &host.user().home.join(path))
        };
        if let Some(path) = &self.creates
            && found(path)?.is_some()
        {
            return Ok(Some(format!("{path} exists, matching creates option")));
        }
        if let Some(path) = &self.removes
            && !host.open()
            && found(path)?.is_none()
        {
            return Ok(Some(format!(
                "{path} does not exist, matching removes option"
            )));
        }
        Ok(None)
    }
}

/// A line's first word without its quotes, and what follows it as it is written.
fn split(line: &str) -> (String, &str) {
    let line = line.trim();
    let mut quote = None;
    let mut escaped = false;
    let end = line.find(|letter: char| {
        if escaped {
            escaped = false;
            return false;
        }
        match (quote, letter) {
            (None, '\'' | '"') => quote = Some(letter),
            (Some(open), letter) if open == letter => quote = None,
            (None | Some('"'), '\\') => escaped = true,
            (None, letter) => return letter.is_whitespace(),
            _ => {}
        }
        false
    });
    let (first, rest) = line.split_at(end.unwrap_or(line.len()));
    let first = words(first).unwrap_or_default();
    (first.into_iter().next().unwrap_or_default(), rest.trim())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{MODULE, split};
    use crate::host::Host;
    use crate::module::Status;

    #[test]
    fn the_first_word_is_the_script() {
        for (line, name, rest) in [
            ("a.sh", "a.sh", ""),
            (" a.sh  -x 'b c' | cat", "a.sh", "-x 'b c' | cat"),
            ("'space path/a.sh' -Ӧther", "space path/a.sh", "-Ӧther"),
            ("a\\ b.sh c", "a b.sh", "c"),
        ] {
            assert_eq!(split(line), (name.to_owned(), rest));
        }
    }

    #[test]
    fn conditions_say_why_it_is_not_run() {
        let run = |args| (MODULE.run)(args, &mut Host::plan()).unwrap();
        let skipped = run(json!({"cmd": "a.sh", "creates": "/etc/passwd"}));
        assert_eq!(skipped.status, Some(Status::Skipped));
        assert_eq!(
            skipped.fields["msg"],
            "/etc/passwd exists, matching creates option"
        );
        let skipped = run(json!({"cmd": "a.sh", "removes": "/no/such"}));
        assert_eq!(
            skipped.fields["msg"],
            "/no/such does not exist, matching removes option"
        );
    }
}
