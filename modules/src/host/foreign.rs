use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, chown};
use std::path::{Path, PathBuf};

use fleet_wire::{Effect, UndoClass, What};
use rustix::fs::{StatVfsMountFlags, statvfs};

use super::process::Process;
use super::temporary::random;
use super::{Command, Fault, Host, Output};

/// How often a name is tried that somebody else has taken.
const TRIES: usize = 100;

/// A directory of the task's user alone, gone with everything in it when this is dropped.
#[derive(Debug)]
pub struct Private {
    path: PathBuf,
    owner: Option<(u32, u32)>,
}

impl Private {
    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Puts a file in it that only the user may read, and execute where `executable` is set.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn put(&self, name: &str, content: &[u8], executable: bool) -> Result<PathBuf, Fault> {
        let path = self.path.join(name);
        let written = || -> io::Result<()> {
            let mut file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(if executable { 0o700 } else { 0o600 })
                .open(&path)?;
            file.write_all(content)?;
            self.give(&path)
        };
        written().map_err(|error| Fault::io("write", &path, error))?;
        Ok(path)
    }

    fn give(&self, path: &Path) -> io::Result<()> {
        match self.owner {
            Some((uid, gid)) => chown(path, Some(uid), Some(gid)),
            None => Ok(()),
        }
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        // What is left of it is in a directory that is emptied at the next start.
        let _ = fs::remove_dir_all(&self.path);
    }
}

impl Host {
    /// A directory of the task's user alone, for what comes with the task and is gone with it; on a file system from which
    /// programs may be run where `executable` is set.
    ///
    /// # Errors
    /// When there is no place for one.
    pub fn private(&self, executable: bool) -> Result<Private, Fault> {
        let user = &self.task.user;
        let owner = self.task.identity.is_some().then_some((user.uid, user.gid));
        let places = [Path::new("/tmp"), Path::new("/var/tmp"), &user.home];
        let mut unfit = StatVfsMountFlags::RDONLY;
        unfit.set(StatVfsMountFlags::NOEXEC, executable);
        let fit =
            |place: &&&Path| statvfs(**place).is_ok_and(|found| !found.f_flag.intersects(unfit));
        let mut problem = None;
        for place in places.iter().filter(fit) {
            for _ in 0..TRIES {
                let path = place.join(format!(".fleetctl-{}", random()?));
                match DirBuilder::new().mode(0o700).create(&path) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    Err(error) => {
                        problem = Some(Fault::io("make the directory", &path, error));
                        break;
                    }
                    Ok(()) => {
                        let private = Private { path, owner };
                        return match private.give(&private.path) {
                            Ok(()) => Ok(private),
                            Err(error) => Err(Fault::io("give away", &private.path, error)),
                        };
                    }
                }
            }
        }
        Err(problem.unwrap_or_else(|| {
            Fault::new("there is no place for a module's files: /tmp, /var/tmp and the home are read-only, or run no programs")
        }))
    }

    /// Runs a command that only says what it would do, also in a plan; as the task's user and in its environment.
    ///
    /// # Errors
    /// When it cannot be started, or is not done in time.
    pub fn rehearse(&self, command: &Command) -> Result<Output, Fault> {
        let home = || self.starting_place();
        self.process(Process {
            argv: &command.argv,
            chdir: command.chdir.clone().or_else(home),
            stdin: command.stdin.as_deref(),
            leave_children: true,
            ..Process::default()
        })
        .run()
    }

    /// Whether a plan showed this command, or there was none: what it changes may be changed.
    #[must_use]
    pub fn foresaw(&self, line: &str) -> bool {
        self.allow(&self.foreign_effect(line)).is_ok()
    }

    /// Says that a command may change something, in a plan.
    pub fn suppose(&mut self, line: &str) {
        if !self.task.reads {
            self.overlay.open = true;
            let effect = self.foreign_effect(line);
            self.report(effect);
        }
    }

    /// Whether an effect came before in a plan, which a command that runs on the machine as it is does not see.
    #[must_use]
    pub fn disturbed(&self) -> bool {
        self.recording && self.overlay.touched
    }

    /// Whether a task that is performed while planning (`check_mode: false`) lacks what an earlier one would have made.
    #[must_use]
    pub fn ahead(&self) -> bool {
        self.plan && self.aside.as_ref().is_some_and(|planned| planned.touched)
    }

    /// Runs a command that says itself whether it changed anything: only then it is an effect. `verdict` reads that from
    /// its output.
    ///
    /// # Errors
    /// When it cannot be started, or is not done in time.
    pub fn foreign(
        &mut self,
        command: &Command,
        verdict: impl FnOnce(&Output) -> Verdict,
    ) -> Result<Output, Fault> {
        if self.task.reads {
            return self.rehearse(command);
        }
        let effect = self.foreign_effect(&command.line);
        let intent = self.intend(&effect)?.map(|intent| intent.id);
        let output = self.rehearse(command)?;
        let verdict = verdict(&output);
        match (verdict, &mut self.journal, intent) {
            (Verdict::Unchanged, Some(journal), Some(id)) => journal.void(id)?,
            (_, _, intent) => self.complete(intent)?,
        }
        if verdict == Verdict::Changed {
            self.report(effect);
        }
        self.forget_units();
        self.packages.take();
        Ok(output)
    }

    fn foreign_effect(&self, line: &str) -> Effect {
        let line = line.to_owned();
        self.effect(What::Command { line }, UndoClass::None, false)
    }
}

/// What a command says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All is as it was.
    Unchanged,
    /// Something is not as it was.
    Changed,
    /// It failed: nobody knows.
    Failed,
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    use super::Host;

    #[test]
    fn a_private_directory_is_the_users_alone_and_goes_away() {
        let host = Host::plan();
        let private = host.private(true).unwrap();
        let path = private.put("run", b"#!/bin/sh\n", true).unwrap();
        let mode = |path| fs::metadata(path).unwrap().mode() & 0o7777;
        assert_eq!((mode(private.path()), mode(&path)), (0o700, 0o700));
        let path = private.put("args", b"{}", false).unwrap();
        assert_eq!(mode(&path), 0o600);
        let dir = private.path().to_owned();
        drop(private);
        assert!(!dir.exists());
    }
}
