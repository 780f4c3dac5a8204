use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::args::{List, Number, Text};
use crate::host::{Command, Fault, Host};
use crate::module::{ArgumentError, Module, Report, Task};

pub(super) static MODULE: Module = Module::of::<Make>();

/// Makes targets of a makefile that are not up to date.
///
/// Only make knows what it does: a plan shows its command, and an undo does not take it back.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Make {
    /// The directory to run in.
    chdir: Text,
    /// The target; the makefile's own first one where it is not given.
    target: Option<Text>,
    /// Several targets.
    #[serde(default)]
    targets: List,
    /// Variables: a mapping of names to values, or to nothing for a bare name.
    #[serde(default)]
    params: Map<String, Value>,
    /// The makefile.
    file: Option<Text>,
    /// How many things to do at once.
    jobs: Option<Number>,
    /// The make to run.
    make: Option<Text>,
}

impl Task for Make {
    const NAME: &'static str = "make";

    fn check(&self) -> Result<(), ArgumentError> {
        match self.target.is_some() && !self.targets.is_empty() {
            true => Err(ArgumentError::of("targets", "it does not go with target")),
            false => Ok(()),
        }
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        let dir = Path::new(&*self.chdir);
        let argv = self.words();
        let line = argv.join(" ");
        let mut fields = json!({
            "chdir": &*self.chdir,
            "command": line,
            "file": self.file.as_deref(),
            "jobs": self.jobs.map(|jobs| *jobs),
            "params": self.params,
            "target": self.target.as_deref(),
            "targets": self.targets.0,
        });
        // Asked first: what is up to date changes nothing.
        let mut question = vec!["env", "-C", &*self.chdir];
        question.extend(argv.iter().map(String::as_str));
        question.push("--question");
        if dir.is_dir() && host.probe(&question)?.ok() {
            return Ok(Report::of(fields));
        }
        let output = host.command(Command {
            argv,
            chdir: Some(PathBuf::from(dir)),
            line,
            ..Command::default()
        })?;
        let Some(output) = output else {
            return Ok(Report::of(fields));
        };
        fields["stdout"] = output.text().into();
        fields["stderr"] = output.error_text().into();
        match output.ok() {
            true => Ok(Report::of(fields)),
            false => Err(Fault::new(format!("make failed: {}", output.complaint()))
                .with("rc", output.rc)
                .with("stdout", output.text())
                .with("stderr", output.error_text())),
        }
    }
}

impl Make {
    fn words(&self) -> Vec<String> {
        let mut argv = vec![self.make.as_deref().unwrap_or("make").to_owned()];
        if let Some(jobs) = self.jobs {
            argv.extend(["-j".to_owned(), jobs.to_string()]);
        }
        if let Some(file) = &self.file {
            argv.extend(["-f".to_owned(), file.to_string()]);
        }
        argv.extend(self.target.iter().map(ToString::to_string));
        argv.extend(self.targets.iter().cloned());
        argv.extend(self.params.iter().map(|(name, value)| match value {
            Value::Null => name.clone(),
            Value::String(text) => format!("{name}={text}"),
            other => format!("{name}={other}"),
        }));
        argv
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{MODULE, Make};
    use crate::host::Host;

    #[test]
    fn only_what_is_not_up_to_date_is_made() {
        let words = |args| {
            serde_json::from_value::<Make>(args)
                .unwrap()
                .words()
                .join(" ")
        };
        let args = json!({"chdir": "/x", "target": "all", "jobs": 4, "params": {"A": 1, "B": "b"}});
        assert_eq!(words(args), "make -j 4 all A=1 B=b");
        if !std::path::Path::new("/usr/bin/make").exists() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("Makefile"), "a: b\n\tcp b a\n").unwrap();
        std::fs::write(dir.path().join("b"), "").unwrap();
        let mut host = Host::plan();
        (MODULE.run)(json!({"chdir": dir.path()}), &mut host).unwrap();
        assert_eq!(host.end().len(), 1);
        std::fs::write(dir.path().join("a"), "").unwrap();
        (MODULE.run)(json!({"chdir": dir.path()}), &mut host).unwrap();
        assert!(host.end().is_empty());
    }
}
