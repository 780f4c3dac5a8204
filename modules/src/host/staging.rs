//! Validators run on what is staged: before it is in place, and in a plan without a trace on the host.
//!
//! A private mount namespace holds what they see. It belongs to one thread and dies with the
//! validator that was started from it.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind_recursive, mount_change};
use rustix::thread::UnshareFlags;

use super::process::{Process, words};
use super::{Body, Entry, Fault, Host, Output, Validate};

/// The largest configuration tree that is staged, in bytes.
const TREE_LIMIT: u64 = 64 << 20;
/// A directory that exists everywhere and that no validator needs: the stage's own place.
pub(super) const STAGE: &str = "/tmp";

impl Host {
    /// Runs a validator on a file that is staged beside its place.
    pub(super) fn validate_staged(
        &self,
        validate: &Validate,
        place: &Path,
        staged: &Path,
        body: &Body,
    ) -> Result<(), Fault> {
        if !validate.command.contains("%s") {
            return self.validate_tree(validate, place, body);
        }
        let argv = substituted(validate, staged)?;
        let output = self
            .process(Process {
                argv: &argv,
                ..Process::default()
            })
            .run()?;
        verdict(validate, place, &output)
    }

    /// Runs a validator on a file that is not on disk at all.
    pub(super) fn validate_planned(
        &self,
        validate: &Validate,
        place: &Path,
        body: &Body,
    ) -> Result<(), Fault> {
        if !validate.command.contains("%s") {
            return self.validate_tree(validate, place, body);
        }
        let bytes = self.content_of(place, body)?;
        let staged = Path::new(STAGE).join(place.file_name().unwrap_or_default());
        let argv = substituted(validate, &staged)?;
        let user = self.user();
        let (uid, gid) = (user.uid, user.gid);
        let write = move || -> io::Result<()> {
            private(Path::new(STAGE))?;
            fs::write(&staged, &bytes)?;
            chown(&staged, Some(uid), Some(gid))?;
            fs::set_permissions(&staged, Permissions::from_mode(0o600))
        };
        self.in_namespace(validate, place, &argv, write)
    }

    /// Runs a validator where the configuration tree around a file is staged under its real path.
    fn validate_tree(&self, validate: &Validate, place: &Path, body: &Body) -> Result<(), Fault> {
        let argv = words(&validate.command).map_err(Fault::new)?;
        let root = tree_root(place);
        let mut tree = Vec::new();
        let mut size = 0;
        self.gather(&root, place, body, &mut tree, &mut size)?;
        let logs = root
            .file_name()
            .map(|name| Path::new("/var/log").join(name));
        let stage = move || -> io::Result<()> {
            private(Path::new(STAGE))?;
            stage_run()?;
            if let Some(logs) = logs.filter(|logs| logs.is_dir()) {
                tmpfs(&logs)?;
            }
            tmpfs(&root)?;
            tree.into_iter().try_for_each(|staged| staged.make())
        };
        self.in_namespace(validate, place, &argv, stage)
    }

    fn in_namespace(
        &self,
        validate: &Validate,
        place: &Path,
        argv: &[String],
        stage: impl FnOnce() -> io::Result<()> + Send + 'static,
    ) -> Result<(), Fault> {
        let shown = format!(
            "cannot stage {} for `{}`: ",
            place.display(),
            validate.command
        );
        let prepare = move || {
            stage().map_err(|error| {
                let hint = if error.kind() == io::ErrorKind::PermissionDenied {
                    "; it needs root, and a container may forbid it"
                } else {
                    ""
                };
                Fault::new(format!("{shown}{error}{hint}"))
            })
        };
        let process = Process {
            argv,
            prepare: Some(Box::new(prepare)),
            chdir: Some("/".into()),
            ..Process::default()
        };
        let output = self.process(process).run()?;
        verdict(validate, place, &output)
    }

    /// Reads a tree as the overlay has it, with one file's new content.
    fn gather(
        &self,
        at: &Path,
        place: &Path,
        body: &Body,
        tree: &mut Vec<Staged>,
        size: &mut u64,
    ) -> Result<(), Fault> {
        let (entry, found) = self.look(at)?;
        let number = |meta: &super::Meta| {
            (
                self.names.uid(&meta.owner).unwrap_or_default(),
                self.names.gid(&meta.group).unwrap_or_default(),
            )
        };
        let mut push = |kind: StagedKind, meta: &super::Meta| {
            let (uid, gid) = number(meta);
            tree.push(Staged {
                path: at.to_owned(),
                kind,
                mode: meta.mode,
                uid,
                gid,
            });
        };
        let usual = super::Meta {
            mode: 0o644,
            owner: "root".to_owned(),
            group: "root".to_owned(),
        };
        let mut room = |more: u64| {
            *size += more;
            if *size <= TREE_LIMIT {
                Ok(())
            } else {
                Err(Fault::new(format!(
                    "the tree around {} is too large to be staged",
                    place.display()
                )))
            }
        };
        if at == place {
            let bytes = self.content_of(place, body)?;
            room(bytes.len() as u64)?;
            let meta = match &entry {
                Entry::File(meta, _) => meta,
                _ => &usual,
            };
            push(StagedKind::File(bytes), meta);
            return Ok(());
        }
        match &entry {
            Entry::Dir(meta) => {
                push(StagedKind::Dir, meta);
                let mut names = self.list(at)?.unwrap_or_default();
                if let Some(name) = place
                    .strip_prefix(at)
                    .ok()
                    .and_then(|rest| rest.components().next())
                    .and_then(|part| part.as_os_str().to_str())
                    && !names.iter().any(|known| known == name)
                {
                    names.push(name.to_owned());
                }
                // Another file that is being staged right now is not part of the configuration.
                for name in names.iter().filter(|name| !name.starts_with(".fleetctl-")) {
                    self.gather(&at.join(name), place, body, tree, size)?;
                }
            }
            Entry::File(meta, content) => {
                room(content.size)?;
                let bytes = match &content.bytes {
                    Some(bytes) => bytes.clone(),
                    None => self.read(at)?.unwrap_or_default(),
                };
                push(StagedKind::File(bytes), meta);
            }
            Entry::Link(target) => push(StagedKind::Link(target.clone()), &usual),
            // Nothing that a configuration is read from.
            Entry::Special | Entry::Absent => drop(found),
        }
        Ok(())
    }

    fn content_of(&self, place: &Path, body: &Body) -> Result<Vec<u8>, Fault> {
        self.fetch(body)?
            .bytes()
            .map_err(|error| Fault::io("read the new content of", place, error))
    }
}

/// An entry of a staged tree.
struct Staged {
    path: PathBuf,
    kind: StagedKind,
    mode: u32,
    uid: u32,
    gid: u32,
}

enum StagedKind {
    Dir,
    File(Vec<u8>),
    Link(String),
}

impl Staged {
    fn make(self) -> io::Result<()> {
        match self.kind {
            StagedKind::Link(target) => return symlink(target, &self.path),
            StagedKind::Dir => match DirBuilder::new().mode(0o700).create(&self.path) {
                // The root of the tree is where the empty file system was mounted.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => made?,
            },
            StagedKind::File(bytes) => {
                let mut file = OpenOptions::new()
                    .create_new(true)
                    .write(true)
                    .mode(0o600)
                    .open(&self.path)?;
                io::Write::write_all(&mut file, &bytes)?;
            }
        }
        chown(&self.path, Some(self.uid), Some(self.gid))?;
        fs::set_permissions(&self.path, Permissions::from_mode(self.mode))
    }
}

/// The configuration tree that a file belongs to: the directory under `/etc`, else its own.
fn tree_root(place: &Path) -> PathBuf {
    let parent = place.parent().unwrap_or(place);
    let mut parts = parent.components();
    match (parts.next(), parts.next(), parts.next()) {
        (Some(_), Some(etc), Some(name)) if etc.as_os_str() == "etc" => {
            Path::new("/etc").join(name)
        }
        _ => parent.to_owned(),
    }
}

/// Leaves the host's mounts behind: what this thread mounts from here on is seen by it and its children alone.
#[expect(
    deprecated,
    reason = "rustix deprecated it for the flag FILES, which is not used; the successor is unsafe"
)]
pub(super) fn private(stage: &Path) -> io::Result<()> {
    rustix::thread::unshare(UnshareFlags::NEWNS | UnshareFlags::FS)?;
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )?;
    tmpfs(stage)
}

fn tmpfs(at: &Path) -> io::Result<()> {
    Ok(mount(
        "fleetctl",
        at,
        "tmpfs",
        MountFlags::NOSUID | MountFlags::NODEV,
        None,
    )?)
}

/// Replaces `/run` by one in which files may be written (a pid file) while sockets and all directories stay those of the host.
fn stage_run() -> io::Result<()> {
    let real = Path::new(STAGE).join("run");
    fs::create_dir(&real)?;
    mount_bind_recursive("/run", &real)?;
    tmpfs(Path::new("/run"))?;
    for entry in fs::read_dir(&real)? {
        let entry = entry?;
        let to = Path::new("/run").join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            fs::create_dir(&to)?;
            mount_bind_recursive(entry.path(), &to)?;
        } else if kind.is_symlink() {
            symlink(fs::read_link(entry.path())?, &to)?;
        } else if kind.is_file() {
            fs::copy(entry.path(), &to)?;
        }
    }
    Ok(())
}

fn substituted(validate: &Validate, staged: &Path) -> Result<Vec<String>, Fault> {
    let staged = staged.to_string_lossy();
    let words = words(&validate.command).map_err(Fault::new)?;
    Ok(words
        .into_iter()
        .map(|word| word.replace("%s", &staged))
        .collect())
}

fn verdict(validate: &Validate, place: &Path, output: &Output) -> Result<(), Fault> {
    if output.ok() {
        return Ok(());
    }
    let (command, shown) = (&validate.command, place.display());
    Err(Fault::new(format!(
        "`{command}` refuses the new content of {shown}, which was not put in place: {}",
        output.complaint()
    ))
    .with("rc", output.rc)
    .with("stdout", output.text())
    .with("stderr", output.error_text()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_the_directory_under_etc() {
        assert_eq!(
            tree_root(Path::new("/etc/nginx/sites-enabled/default")),
            Path::new("/etc/nginx")
        );
        assert_eq!(
            tree_root(Path::new("/etc/nginx/nginx.conf")),
            Path::new("/etc/nginx")
        );
        assert_eq!(
            tree_root(Path::new("/srv/app/app.conf")),
            Path::new("/srv/app")
        );
    }
}
