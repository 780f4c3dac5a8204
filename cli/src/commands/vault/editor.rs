//! The editor: a plain text that is on no disk longer than somebody looks at it.

use std::{
    fs::{self, OpenOptions, Permissions},
    io::{self, Seek, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;
use tokio::signal::unix::{SignalKind, signal};
use zeroize::Zeroizing;

/// A plain text in a file of its own, which is overwritten and removed when this is dropped.
struct Draft {
    path: PathBuf,
    _folder: TempDir,
}

impl Draft {
    /// In memory where the system has a place for that, readable by this user only.
    fn new(name: &Path, text: &[u8]) -> io::Result<Self> {
        let memory = std::env::var_os("XDG_RUNTIME_DIR")
            .map(PathBuf::from)
            .into_iter()
            .chain([PathBuf::from("/dev/shm")]);
        let places = memory.chain([std::env::temp_dir()]);
        let folder = made_in_first(places)?;
        let mut file = PathBuf::from("vault");
        // Editors know a file's language by its ending.
        if let Some(ending) = name.extension() {
            file.set_extension(ending);
        }
        let path = folder.path().join(file);
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?
            .write_all(text)?;
        Ok(Self {
            path,
            _folder: folder,
        })
    }

    fn wipe(&self) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).open(&self.path)?;
        let length = file.metadata()?.len();
        file.rewind()?;
        io::copy(&mut io::Read::take(io::repeat(0), length), &mut file)?;
        file.sync_all()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // What the editor has put in its place or taken away is none of ours to wipe; the folder goes in any case.
        let _ = self.wipe();
    }
}

fn made_in_first(places: impl Iterator<Item = PathBuf>) -> io::Result<TempDir> {
    let mut problem = io::Error::from(io::ErrorKind::NotFound);
    for place in places {
        let made = tempfile::Builder::new()
            .prefix("fleetctl-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(&place);
        match made {
            Ok(folder) => return Ok(folder),
            Err(failed) => problem = failed,
        }
    }
    Err(problem)
}

/// Lets a person edit a text; `name` is the file that it is the content of. `command` is the editor with its arguments.
///
/// # Errors
/// When the editor cannot be run or fails: whatever was written is thrown away.
pub(super) async fn edit(command: &str, name: &Path, text: &[u8]) -> Result<Zeroizing<Vec<u8>>> {
    let Some((program, arguments)) = shlex::split(command).and_then(|words| {
        words
            .split_first()
            .map(|(first, rest)| (first.clone(), rest.to_vec()))
    }) else {
        bail!("`{command}` is no command of an editor: set `EDITOR`");
    };
    let draft = Draft::new(name, text).context("cannot make a place for the plain text")?;
    // While these are awaited, a signal does not end this process before the draft is gone.
    let mut interrupted = signal(SignalKind::interrupt())?;
    let (mut ended, mut hung_up) = (
        signal(SignalKind::terminate())?,
        signal(SignalKind::hangup())?,
    );
    let mut editor = tokio::process::Command::new(&program)
        .args(arguments)
        .arg(&draft.path)
        .spawn()
        .with_context(|| format!("cannot run the editor `{command}`"))?;
    let status = loop {
        tokio::select! {
            status = editor.wait() => break status?,
            // The editor hears it from the terminal itself.
            _ = interrupted.recv() => {}
            _ = ended.recv() => editor.start_kill()?,
            _ = hung_up.recv() => editor.start_kill()?,
        }
    };
    if !status.success() {
        bail!("the editor `{command}` failed ({status}): nothing was changed");
    }
    Ok(Zeroizing::new(fs::read(&draft.path).context(
        "cannot read what the editor has written: nothing was changed",
    )?))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;

    use super::{Draft, edit};

    #[test]
    fn a_draft_is_its_owners_only_and_leaves_nothing() {
        let draft = Draft::new(Path::new("group_vars/all.yml"), b"secret").unwrap();
        let path = draft.path.clone();
        let folder = path.parent().unwrap().to_owned();
        assert_eq!(path.extension().unwrap(), "yml");
        assert_eq!(path.metadata().unwrap().mode() & 0o7777, 0o600);
        assert_eq!(folder.metadata().unwrap().mode() & 0o7777, 0o700);
        let held = std::fs::File::open(&path).unwrap();
        drop(draft);
        assert!(!folder.exists());
        assert_eq!(std::io::read_to_string(held).unwrap(), "\0\0\0\0\0\0");
    }

    #[tokio::test]
    async fn what_a_failed_editor_wrote_is_thrown_away() {
        let command = "sh -c 'echo more >> \"$0\"; exit 3'";
        let failed = edit(command, Path::new("x"), b"a\n").await.unwrap_err();
        assert!(failed.to_string().contains("exit status: 3"), "{failed}");
        let command = "sh -c 'echo more >> \"$0\"'";
        let made = edit(command, Path::new("x"), b"a\n").await.unwrap();
        assert_eq!(*made, b"a\nmore\n");
    }
}
