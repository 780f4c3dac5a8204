use fleet_wire::{UndoClass, What};

use super::process::Process;
use super::{Command, Fault, Host, Output};

impl Host {
    /// Runs a command whose effects cannot be known; none in a plan, where its answer is unknown.
    /// One of which the playbook says that it changes nothing (`changed_when: false`) is no effect.
    ///
    /// # Errors
    /// When it cannot be started, or is not done in time. An exit status other than 0 is the caller's to judge.
    pub fn command(&mut self, command: Command) -> Result<Option<Output>, Fault> {
        // Arguments may be secrets, and the journal is read by people.
        let line = if self.task.secret {
            "(hidden by no_log)".to_owned()
        } else {
            command.line.clone()
        };
        let effect = self.effect(What::Command { line }, UndoClass::None, false);
        if self.recording {
            if !self.task.reads {
                self.overlay.open = true;
                self.report(effect);
            }
            return Ok(None);
        }
        let run = |host: &mut Self| {
            let home = || host.starting_place();
            let process = Process {
                argv: &command.argv,
                chdir: command.chdir.clone().or_else(home),
                stdin: command.stdin.as_deref(),
                leave_children: true,
                ..Process::default()
            };
            host.process(process).run()
        };
        if self.task.reads {
            return run(self).map(Some);
        }
        let output = self.perform(effect, run)?;
        self.forget_units();
        self.packages.take();
        Ok(Some(output))
    }

    /// Runs a tool whose effect is journaled by what it is and not by its command, in the C locale.
    ///
    /// # Errors
    /// When it cannot be started, or is not done in time.
    pub fn tool(&self, argv: &[&str], stdin: Option<&[u8]>) -> Result<Output, Fault> {
        let argv: Vec<String> = argv.iter().map(|&word| word.to_owned()).collect();
        self.process(Process {
            argv: &argv,
            stdin,
            leave_children: true,
            ..Process::default()
        })
        .in_c_locale()
        .run()
    }

    /// Does something whose effects are undone as any, but cannot be told before, such as making a key: a plan shows `line`.
    ///
    /// # Errors
    /// Those of the act.
    pub(crate) fn by_chance<T>(
        &mut self,
        line: &str,
        act: impl FnOnce(&mut Self) -> Result<T, Fault>,
    ) -> Result<Option<T>, Fault> {
        let what = What::Command {
            line: line.to_owned(),
        };
        let shown = self.effect(what, UndoClass::Exact, false);
        if self.recording {
            self.report(shown);
            return Ok(None);
        }
        self.allow(&shown)?;
        let planned = self.task.planned.take();
        let done = act(self);
        self.task.planned = planned;
        done.map(Some)
    }

    /// Does something beyond this host whose effects cannot be known, such as a request to a service; none in a plan.
    ///
    /// # Errors
    /// Those of the act.
    pub(crate) fn beyond<T>(
        &mut self,
        line: &str,
        act: impl FnOnce(&mut Self) -> Result<T, Fault>,
    ) -> Result<Option<T>, Fault> {
        let line = if self.task.secret {
            "(hidden by no_log)".to_owned()
        } else {
            line.to_owned()
        };
        let effect = self.effect(What::Command { line }, UndoClass::None, false);
        if self.recording {
            if !self.task.reads {
                self.report(effect);
            }
            return Ok(None);
        }
        if self.task.reads {
            return act(self).map(Some);
        }
        self.perform(effect, act).map(Some)
    }
}
