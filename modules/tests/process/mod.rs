//! The helper's own binary under test.

use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use fleet_wire::{Finish, Mode};

use crate::talk::Talk;

/// The real helper, as a process that speaks over pipes.
pub(crate) struct Helper {
    child: Child,
    pub(crate) talk: Talk<ChildStdin, ChildStdout>,
}

/// Starts it and says hello.
pub(crate) fn helper(mode: Mode, run: &str, state: &Path) -> Helper {
    let mut child = Command::new(env!("CARGO_BIN_EXE_fleet-helper"))
        .arg("serve")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut talk = Talk::new(child.stdin.take().unwrap(), child.stdout.take().unwrap());
    talk.ready(mode, run, state);
    Helper { child, talk }
}

impl Helper {
    /// Ends the run and the process.
    pub(crate) fn end(mut self, how: Finish) -> fleet_wire::Undone {
        let undone = self.talk.finish(how);
        self.talk.hang_up();
        self.child.wait().unwrap();
        undone
    }
}
