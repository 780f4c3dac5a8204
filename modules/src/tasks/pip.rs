use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::args::{Bool, List, Text};
use crate::host::{Command, Entry, Fault, Host, Output};
use crate::module::{ArgumentError, Module, Report, Task};

pub(super) static MODULE: Module = Module::of::<Pip>();

/// Installs and removes packages of Python, in a virtual environment or the system's own.
///
/// Only pip knows what it does: a plan shows its command, and an undo does not take it back. Where pip can say what it would
/// do, nothing is run that would do nothing.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Pip {
    /// The packages: names, with versions (`flask==2.0`), or addresses.
    #[serde(default)]
    name: Names,
    /// The version of the one package.
    version: Option<Text>,
    /// A file that lists packages.
    requirements: Option<Text>,
    /// `present`, `latest`, `absent` or `forcereinstall`.
    #[serde(default)]
    state: State,
    /// The virtual environment; it is made where it is missing.
    virtualenv: Option<Text>,
    /// What makes one; `python3 -m venv` where there is no `virtualenv`.
    #[serde(default = "virtualenv")]
    virtualenv_command: Text,
    /// The Python of a new one.
    virtualenv_python: Option<Text>,
    /// A new one sees the system's own packages.
    #[serde(default)]
    virtualenv_site_packages: Bool,
    /// More words for pip.
    extra_args: Option<Text>,
    /// Install in place, for a package under development.
    #[serde(default)]
    editable: Bool,
    /// The directory to run in.
    chdir: Option<Text>,
    /// The pip to run.
    executable: Option<Text>,
    /// The umask for files, such as `"0022"`.
    umask: Option<Text>,
    /// Install into the system's own Python though its packages are another manager's.
    #[serde(default)]
    break_system_packages: Bool,
}

/// Names with versions: a comma in a version is no end of it.
#[derive(Debug, Default, Deserialize)]
#[serde(from = "List")]
struct Names(Vec<String>);

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Names {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        List::schema_name()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        List::json_schema(generator)
    }
}

impl From<List> for Names {
    fn from(list: List) -> Self {
        let mut names: Vec<String> = Vec::new();
        for item in list.0 {
            // `a>=1,<2` is one package: what follows a comma and begins with a comparison goes on with it.
            match names.last_mut() {
                Some(last) if item.trim_start().starts_with(['<', '>', '=', '!', '~']) => {
                    last.push(',');
                    last.push_str(item.trim());
                }
                _ => names.push(item.trim().to_owned()),
            }
        }
        Self(names)
    }
}

fn virtualenv() -> Text {
    "virtualenv".into()
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
enum State {
    #[default]
    Present,
    Latest,
    Absent,
    ForceReinstall,
}

impl Task for Pip {
    const NAME: &'static str = "pip";

    fn check(&self) -> Result<(), ArgumentError> {
        if self.name.0.is_empty() && self.requirements.is_none() && self.virtualenv.is_none() {
            return Err(ArgumentError::of(
                "name",
                "one of name, requirements and virtualenv is required",
            ));
        }
        if self.executable.is_some() && self.virtualenv.is_some() {
            return Err(ArgumentError::of(
                "executable",
                "it does not go with virtualenv",
            ));
        }
        if self.version.is_some() && self.name.0.len() != 1 {
            return Err(ArgumentError::of(
                "version",
                "'version' argument is ambiguous when installing multiple package distributions",
            ));
        }
        if self.requirements.is_some() && self.state == State::Latest && !self.name.0.is_empty() {
            return Err(ArgumentError::of(
                "requirements",
                "it does not go with name and state=latest",
            ));
        }
        match self
            .name
            .0
            .iter()
            .find(|name| name.is_empty() || name.starts_with('-'))
        {
            Some(name) => Err(ArgumentError::of(
                "name",
                format!("`{name}` is not the name of a package"),
            )),
            None => Ok(()),
        }
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        let made = self.environment(host)?;
        let Some(pip) = self.pip(host)? else {
            return match made || host.open() {
                true => self.planned(host),
                false => Err(Fault::new(
                    "Unable to find any of pip3, pip to use. pip needs to be installed.",
                )),
            };
        };
        let names = self.names();
        if names.is_empty() && self.requirements.is_none() {
            return Ok(Report::of(self.fields(None)));
        }
        if !self.differs(host, &pip)? {
            return Ok(Report::of(self.fields(None)));
        }
        let argv = self.command(&pip, &[]);
        let line = argv.join(" ");
        let output = host.command(Command {
            argv: self.with_umask(argv),
            chdir: self.chdir.as_ref().map(|dir| PathBuf::from(&**dir)),
            line,
            ..Command::default()
        })?;
        if let Some(output) = output.as_ref().filter(|output| !output.ok()) {
            return Err(Fault::new(format!(
                "cannot manage packages of Python: {}",
                output.complaint()
            ))
            .with("rc", output.rc)
            .with("stdout", output.text())
            .with("stderr", output.error_text()));
        }
        Ok(Report::of(self.fields(output.as_ref())))
    }
}

impl Pip {
    fn names(&self) -> Vec<String> {
        let mut names = self.name.0.clone();
        if let (Some(version), [name]) = (&self.version, &mut names[..]) {
            let bare = version.trim();
            let compared = bare.starts_with(['<', '>', '=', '!', '~']);
            name.push_str(&if compared {
                bare.to_owned()
            } else {
                format!("=={bare}")
            });
        }
        names
    }

    fn fields(&self, output: Option<&Output>) -> Value {
        let mut fields = json!({
            "name": self.name.0,
            "version": self.version.as_deref(),
            "requirements": self.requirements.as_deref(),
            "virtualenv": self.virtualenv.as_deref(),
            "state": match self.state {
                State::Present => "present",
                State::Latest => "latest",
                State::Absent => "absent",
                State::ForceReinstall => "forcereinstall",
            },
        });
        if let Some(output) = output {
            fields["stdout"] = output.text().into();
            fields["stderr"] = output.error_text().into();
        }
        fields
    }

    /// What can be said of an environment that is only planned.
    fn planned(&self, host: &mut Host) -> Result<Report, Fault> {
        let argv = self.command(&["pip".to_owned()], &[]);
        let line = argv.join(" ");
        if !self.name.0.is_empty() || self.requirements.is_some() {
            host.command(Command {
                argv,
                line,
                ..Command::default()
            })?;
        }
        Ok(Report::of(self.fields(None)))
    }

    /// Makes the virtual environment where it is missing; true where it is only planned.
    fn environment(&self, host: &mut Host) -> Result<bool, Fault> {
        let Some(dir) = &self.virtualenv else {
            return Ok(false);
        };
        let python = Path::new(&**dir).join("bin/python");
        if host.entry(&host.resolve(&python)?)? != Entry::Absent
            || host.entry(&python)? != Entry::Absent
        {
            return Ok(false);
        }
        let mut argv = crate::host::words(&self.virtualenv_command).map_err(Fault::new)?;
        let program = argv.first().cloned().unwrap_or_default();
        let own = &*self.virtualenv_command == "virtualenv";
        if own
            && !host
                .probe(&["which", "--", &program])
                .is_ok_and(|output| output.ok())
        {
            argv = ["python3", "-m", "venv"].map(str::to_owned).to_vec();
        }
        if *self.virtualenv_site_packages {
            argv.push("--system-site-packages".to_owned());
        }
        if let Some(python) = &self.virtualenv_python {
            match argv.iter().any(|word| word == "venv") {
                true => {
                    return Err(Fault::new(format!(
                        "virtualenv_python should not be used when using the venv module or pyvenv as virtualenv_command: it is `{}`",
                        &**python
                    )));
                }
                false => argv.extend(["-p".to_owned(), python.to_string()]),
            }
        }
        argv.push(dir.to_string());
        let line = argv.join(" ");
        let output = host.command(Command {
            argv: self.with_umask(argv),
            chdir: self.chdir.as_ref().map(|dir| PathBuf::from(&**dir)),
            line,
            ..Command::default()
        })?;
        match output {
            None => Ok(true),
            Some(output) if output.ok() => Ok(false),
            Some(output) => Err(Fault::new(format!(
                "cannot make the virtual environment {}: {}",
                &**dir,
                output.complaint()
            ))
            .with("rc", output.rc)),
        }
    }

    /// The words that run pip.
    fn pip(&self, host: &Host) -> Result<Option<Vec<String>>, Fault> {
        let runs = |argv: &[String]| {
            let words: Vec<&str> = argv
                .iter()
                .map(String::as_str)
                .chain(["--version"])
                .collect();
            host.probe(&words).is_ok_and(|output| output.ok())
        };
        let mut candidates: Vec<Vec<String>> = Vec::new();
        match (&self.executable, &self.virtualenv) {
            (Some(program), _) => candidates.push(vec![program.to_string()]),
            (None, Some(dir)) => {
                let python = Path::new(&**dir).join("bin/python").display().to_string();
                candidates.push([&python, "-m", "pip"].map(str::to_owned).to_vec());
            }
            (None, None) => {
                candidates.push(["python3", "-m", "pip"].map(str::to_owned).to_vec());
                candidates.push(vec!["pip3".to_owned()]);
            }
        }
        Ok(candidates.into_iter().find(|argv| runs(argv)))
    }

    fn command(&self, pip: &[String], more: &[&str]) -> Vec<String> {
        let mut argv = pip.to_vec();
        let own = |words: &[&str]| {
            words
                .iter()
                .map(|&word| word.to_owned())
                .collect::<Vec<_>>()
        };
        argv.extend(match self.state {
            State::Absent => own(&["uninstall", "-y"]),
            State::Present => own(&["install"]),
            State::Latest => own(&["install", "-U"]),
            State::ForceReinstall => own(&["install", "-U", "--force-reinstall"]),
        });
        argv.extend(own(more));
        if *self.break_system_packages {
            argv.push("--break-system-packages".to_owned());
        }
        argv.extend(
            self.extra_args
                .iter()
                .flat_map(|words| crate::host::words(words).unwrap_or_default()),
        );
        for name in self.names() {
            if *self.editable {
                argv.push("-e".to_owned());
            }
            argv.push(name);
        }
        if let Some(file) = &self.requirements {
            argv.extend(["-r".to_owned(), file.to_string()]);
        }
        argv
    }

    fn with_umask(&self, argv: Vec<String>) -> Vec<String> {
        match &self.umask {
            None => argv,
            Some(umask) => {
                let shell = ["sh", "-c", "umask \"$1\"; shift; exec \"$@\"", "sh", umask];
                shell.map(str::to_owned).into_iter().chain(argv).collect()
            }
        }
    }

    /// Whether pip would do anything.
    fn differs(&self, host: &Host, pip: &[String]) -> Result<bool, Fault> {
        let run = |words: &[String]| {
            let mut argv: Vec<&str> = Vec::new();
            if let Some(dir) = &self.chdir {
                argv.extend(["env", "-C", dir]);
            }
            argv.extend(words.iter().map(String::as_str));
            host.probe(&argv)
        };
        if self.state == State::ForceReinstall {
            return Ok(true);
        }
        if self.state == State::Absent {
            if self.requirements.is_some() {
                return Ok(true);
            }
            let mut installed = false;
            for name in &self.name.0 {
                let bare: String = name
                    .chars()
                    .take_while(|c| c.is_alphanumeric() || "._-".contains(*c))
                    .collect();
                let argv = [pip, &["show".to_owned(), "-q".to_owned(), bare]].concat();
                installed |= run(&argv)?.ok();
            }
            return Ok(installed);
        }
        let output = run(&self.command(pip, &["--dry-run", "-q", "--no-input", "--report", "-"]))?;
        if !output.ok() {
            // Older ones cannot say, and what fails says so when it is run.
            return Ok(true);
        }
        let report: Value = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
        Ok(report["install"]
            .as_array()
            .is_none_or(|install| !install.is_empty())
            || *self.editable && !self.name.0.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{MODULE, Pip};

    #[test]
    fn arguments_are_checked() {
        let refused = |args| (MODULE.check)(&args).unwrap_err().to_string();
        assert!(refused(json!({})).starts_with("argument `name`"));
        assert!(refused(json!({"name": ["a", "b"], "version": "1"})).contains("ambiguous"));
        assert!(refused(json!({"name": "--index-url=x"})).contains("not the name of a package"));
        assert!(
            refused(json!({"name": "a", "virtualenv": "/v", "executable": "/p"}))
                .contains("does not go with virtualenv")
        );
    }

    #[test]
    fn words_are_made_of_names_and_versions() {
        let of = |args| serde_json::from_value::<Pip>(args).unwrap();
        assert_eq!(of(json!({"name": "a>=1,<2,b"})).names(), ["a>=1,<2", "b"]);
        assert_eq!(
            of(json!({"name": "a", "version": "1.0"})).names(),
            ["a==1.0"]
        );
        let words = of(json!({"name": "a", "state": "latest", "extra_args": "--no-deps -i 'x y'"}))
            .command(&["pip".to_owned()], &[]);
        assert_eq!(
            words,
            ["pip", "install", "-U", "--no-deps", "-i", "x y", "a"]
        );
        let words =
            of(json!({"name": ["a", "b"], "state": "absent"})).command(&["pip".to_owned()], &[]);
        assert_eq!(words, ["pip", "uninstall", "-y", "a", "b"]);
    }
}
