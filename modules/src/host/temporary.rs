use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use fleet_wire::{UndoClass, What};

use super::{Entry, Fault, Host, Put, To};
use crate::args::Mode;

/// How often a name is tried that somebody else has taken.
const TRIES: usize = 100;
/// The letters of a name that nobody can guess: as many as a byte holds evenly.
const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz012345";

impl Host {
    /// Makes an empty file or directory of the acting user alone, under a name of its own. None in a plan, where the name
    /// cannot be known.
    ///
    /// # Errors
    /// When the directory is missing, or not to be written to.
    pub fn make_temporary(
        &mut self,
        dir: &Path,
        prefix: &str,
        suffix: &str,
        directory: bool,
    ) -> Result<Option<PathBuf>, Fault> {
        let line = format!(
            "mktemp {}{}/{prefix}XXXXXXXX{suffix}",
            if directory { "-d " } else { "" },
            dir.display()
        );
        // A plan can show the pattern alone: that is what an apply holds against it.
        let shown = self.effect(What::Command { line }, UndoClass::Exact, false);
        if !matches!(self.entry(&self.resolve(dir)?)?, Entry::Dir(_)) && !self.open() {
            return Err(Fault::new(format!(
                "the directory {} does not exist",
                dir.display()
            )));
        }
        if self.recording {
            self.report(shown);
            return Ok(None);
        }
        self.allow(&shown)?;
        let (owner, group, mode) = (None, None, |bits| Some(Mode::Octal(bits)));
        for _ in 0..TRIES {
            let path = dir.join(format!("{prefix}{}{suffix}", random()?));
            if self.entry(&path)? != Entry::Absent {
                continue;
            }
            let to = if directory {
                To::Dir {
                    mode: mode(0o700),
                    owner,
                    group,
                }
            } else {
                To::File {
                    content: Some("".into()),
                    mode: mode(0o600),
                    owner,
                    group,
                }
            };
            let planned = self.task.planned.take();
            let made = self.put(Put {
                path: path.clone(),
                to,
                validate: None,
            });
            self.task.planned = planned;
            return made.map(|_| Some(path));
        }
        Err(Fault::new(format!(
            "no free name was found in {}",
            dir.display()
        )))
    }
}

pub(super) fn random() -> Result<String, Fault> {
    let mut bytes = [0; 8];
    File::open("/dev/urandom")
        .and_then(|mut source| source.read_exact(&mut bytes))
        .map_err(|error| Fault::io("read", Path::new("/dev/urandom"), error))?;
    let letter = |byte: &u8| char::from(LETTERS[usize::from(*byte) % LETTERS.len()]);
    Ok(bytes.iter().map(letter).collect())
}
