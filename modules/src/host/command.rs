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
            // Without a directory of its own a command starts where its user would.
            let home = || Some(host.task.user.home.clone()).filter(|home| home.is_dir());
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
}
