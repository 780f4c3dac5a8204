use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use fleet_wire::{UndoClass, What};

use super::process::Process;
use super::users::acting;
use super::{Body, Fault, Host, Output, temporary};

/// A script whose content came with its task.
#[derive(Clone, Debug)]
pub struct Script {
    /// The content.
    pub body: Body,
    /// The name of the file that it becomes for a moment.
    pub name: String,
    /// What runs it; none for what its first line says, or the shell.
    pub executable: Option<String>,
    /// Its arguments as a shell reads them.
    pub arguments: String,
    /// The directory to run in; none for the acting user's home.
    pub chdir: Option<PathBuf>,
    /// The command as a person would type it.
    pub line: String,
}

impl Host {
    /// Runs a script whose effects cannot be known; none in a plan. Its file is gone when this returns.
    ///
    /// # Errors
    /// When it cannot be put down or started. An exit status other than 0 is the caller's to judge.
    pub fn script(&mut self, script: &Script) -> Result<Option<Output>, Fault> {
        let line = match self.task.secret {
            true => "(hidden by no_log)".to_owned(),
            false => script.line.clone(),
        };
        let effect = self.effect(What::Command { line }, UndoClass::None, false);
        if self.recording {
            if !self.task.reads {
                self.overlay.open = true;
                self.report(effect);
            }
            return Ok(None);
        }
        let body = self.fetch(&script.body)?;
        let run = |host: &mut Self| host.run_script(script, &body);
        if self.task.reads {
            return run(self).map(Some);
        }
        let output = self.perform(effect, run)?;
        self.forget_units();
        self.packages.take();
        Ok(Some(output))
    }

    fn run_script(&self, script: &Script, body: &Body) -> Result<Output, Fault> {
        let identity = self.task.identity.as_ref();
        let dir = Path::new("/tmp").join(format!("fleetctl-{}", temporary::random()?));
        let file = dir.join(&script.name);
        let interpreter = match &script.executable {
            Some(executable) => executable.clone(),
            None => interpreter(body).map_err(|error| Fault::io("read", &file, error))?,
        };
        let kept = acting(identity, || keep(&dir, &file, body))?
            .map_err(|error| Fault::io("write", &file, error));
        let home = || self.starting_place();
        let ran = kept.and_then(|()| {
            let shown = quoted(&file.to_string_lossy());
            let line = format!("{interpreter} {shown} {}", script.arguments);
            let argv = [
                "/bin/sh".to_owned(),
                "-c".to_owned(),
                line.trim().to_owned(),
            ];
            self.process(Process {
                argv: &argv,
                chdir: script.chdir.clone().or_else(home),
                leave_children: true,
                ..Process::default()
            })
            .run()
        });
        // Nobody else could write into it, so that what is in it is the script alone.
        let _ = acting(identity, || fs::remove_dir_all(&dir))?;
        ran
    }
}

fn keep(dir: &Path, file: &Path, body: &Body) -> io::Result<()> {
    fs::create_dir(dir)?;
    fs::set_permissions(dir, fs::Permissions::from_mode(0o700))?;
    let mut file = OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(0o700)
        .open(file)?;
    io::copy(&mut body.reader()?, &mut file)?;
    file.flush()
}

/// What runs a script, by its first line. It is named, so that a `/tmp` from which nothing may be run is no hindrance;
/// a program that is no script runs by itself.
fn interpreter(body: &Body) -> io::Result<String> {
    let mut head = Vec::new();
    body.reader()?.take(512).read_to_end(&mut head)?;
    if head.starts_with(b"\x7fELF") {
        return Ok(String::new());
    }
    let first = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let first = String::from_utf8_lossy(first);
    Ok(match first.trim_end().strip_prefix("#!") {
        Some(interpreter) => interpreter.trim().to_owned(),
        None => "/bin/sh".to_owned(),
    })
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::State;

    #[test]
    fn a_script_runs_and_leaves_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let state = State::at(dir.path().to_str());
        state.prepare().unwrap();
        let mut host = Host::apply(state, "r1", "test");
        let mut run = |content: &str, executable: Option<&str>| {
            let script = Script {
                body: content.into(),
                name: "it's.sh".to_owned(),
                executable: executable.map(str::to_owned),
                arguments: "'a b' \"$((1 + 1))\"".to_owned(),
                chdir: Some("/".into()),
                line: "it's.sh".to_owned(),
            };
            host.script(&script).unwrap().unwrap()
        };
        let output = run("#!/bin/sh -e\necho $0 \"$1|$2\" $(pwd)\nfalse\n", None);
        assert_eq!(output.rc, 1);
        let said = output.text();
        let (path, rest) = said.trim().split_once(".sh ").unwrap();
        assert_eq!(rest, "a b|2 /");
        assert!(!Path::new(&format!("{path}.sh")).exists());
        assert_eq!(run("echo $2\n", None).text(), "2\n");
        assert_eq!(run("x\n", Some("head -c 1")).rc, 1);
    }
}
