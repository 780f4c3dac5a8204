use serde::Deserialize;
use serde_json::json;

use super::file::report;
use crate::args::Text;
use crate::host::{Fault, Host};
use crate::module::{ArgumentError, Module, Report, Status, Task};

pub(super) static MODULE: Module = Module::of::<TempFile>();

/// Makes an empty file or directory under a name of its own, for the acting user alone.
///
/// The name cannot be known before: in a plan the result is unknown. An undo takes it away, with what was put into it.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct TempFile {
    /// `file` or `directory`.
    #[serde(default)]
    state: State,
    /// The directory to make it in; that of the environment's `TMPDIR`, or `/tmp`.
    path: Option<Text>,
    /// What its name begins with.
    #[serde(default = "ansible")]
    prefix: Text,
    /// What its name ends with.
    #[serde(default)]
    suffix: Text,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
enum State {
    #[default]
    File,
    Directory,
}

fn ansible() -> Text {
    "ansible.".into()
}

impl Task for TempFile {
    const NAME: &'static str = "tempfile";

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        self.check_names()?;
        let from_environment = || {
            let set = host.environment().iter();
            set.clone()
                .find(|(name, _)| name == "TMPDIR")
                .map(|(_, dir)| dir.clone())
        };
        let dir = match &self.path {
            Some(path) => path.to_string(),
            None => from_environment().unwrap_or_else(|| "/tmp".to_owned()),
        };
        let dir = host.resolve(&host.expand(&dir))?;
        let directory = self.state == State::Directory;
        let made = host.make_temporary(&dir, &self.prefix, &self.suffix, directory)?;
        let Some(path) = made else {
            let message = "remote module (tempfile) does not support check mode";
            return Ok(
                Report::of(json!({"skipped": true, "msg": message})).with_status(Status::Unknown)
            );
        };
        report(host, &path.to_string_lossy(), &path)
    }
}

impl TempFile {
    /// Decided on the host, as in Ansible: the names may come from variables.
    fn check_names(&self) -> Result<(), ArgumentError> {
        for (argument, name) in [("prefix", &self.prefix), ("suffix", &self.suffix)] {
            if name.contains('/') || name.contains('\0') {
                let message = format!("{argument} must be a valid file name component");
                return Err(ArgumentError::of(argument, message));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::MODULE;
    use crate::host::{Host, State};
    use crate::module::Status;

    #[test]
    fn a_plan_does_not_know_the_name_and_makes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let mut host = Host::plan();
        let report = (MODULE.run)(json!({"path": dir.path()}), &mut host).unwrap();
        assert_eq!(report.status, Some(Status::Unknown));
        assert_eq!(host.end().len(), 1);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_file_or_directory_is_made_and_undone() {
        let dir = tempfile::tempdir().unwrap();
        let state = State::at(dir.path().join("state").to_str());
        state.prepare().unwrap();
        let mut host = Host::apply(state, "r1", "test");
        for (state, mode) in [("file", "0600"), ("directory", "0700")] {
            let args =
                json!({"path": dir.path(), "state": state, "prefix": "hello.", "suffix": ".x"});
            let made = (MODULE.run)(args, &mut host).unwrap().fields;
            let path = made["path"].as_str().unwrap();
            assert!(path.starts_with(&format!("{}/hello.", dir.path().display())));
            assert!(path.ends_with(".x") && fs::exists(path).unwrap());
            assert_eq!(
                (&made["state"], &made["mode"]),
                (&json!(state), &json!(mode))
            );
        }
        host.undo();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn names_do_not_lead_elsewhere() {
        let fault = |args| (MODULE.run)(args, &mut Host::plan()).unwrap_err().message;
        assert!(
            fault(json!({"prefix": "../x"})).contains("prefix must be a valid file name component")
        );
        assert!(fault(json!({"path": "/no/such"})).contains("/no/such does not exist"));
    }
}
