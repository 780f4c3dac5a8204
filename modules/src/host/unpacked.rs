//! Archives, unpacked by the host's own programs where nobody sees it, so that what is in them can be compared
//! and put in place like any other content.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use fleet_wire::Content;

use super::process::{self, Process};
use super::users::acting;
use super::{Body, Entry, Fault, Host, Output, body, files, staging, temporary};

/// A place to unpack to. What is in it is gone when it is dropped.
pub struct Unpacked {
    root: PathBuf,
    /// The thread whose mounts it lies in, until this is dropped.
    _thread: Option<Sender<()>>,
    /// A directory to remove.
    dir: Option<PathBuf>,
}

/// Something that was unpacked.
#[derive(Debug)]
pub struct Member {
    /// Where, seen from the top.
    pub path: PathBuf,
    /// What it is.
    pub kind: MemberKind,
    /// Permission bits.
    pub mode: u32,
    /// The owning user's and group's numbers.
    pub owner: (u32, u32),
    /// The last change: seconds since 1970, and nanoseconds.
    pub modified: (i64, i64),
}

/// What was unpacked.
#[derive(Debug)]
pub enum MemberKind {
    /// A directory.
    Dir,
    /// A regular file, opened when its content is needed.
    File(PathBuf),
    /// A symbolic link.
    Link(String),
    /// A device or a pipe.
    Special,
}

impl Host {
    /// The content of a file without taking it into memory where it is large; none where there is none.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn content(&self, path: &Path) -> Result<Option<Body>, Fault> {
        let path = self.resolve(path)?;
        match self.entry(&path)? {
            Entry::Absent => Ok(None),
            Entry::File(_, content) if content.bytes.is_none() && !self.overlay.defines(&path) => {
                let opened = acting(self.task.identity.as_ref(), || files::open_file(&path))?;
                let file = opened.map_err(|error| Fault::io("read", &path, error))?;
                Ok(Some(Body::Spooled(Arc::new(file), content)))
            }
            _ => Ok(self.read(&path)?.map(Into::into)),
        }
    }

    /// A place to unpack an archive to: on the disk where things may be written, in memory in a plan.
    ///
    /// # Errors
    /// When there is none.
    pub fn place_to_unpack(&self) -> Result<Unpacked, Fault> {
        let dir = match &self.journal {
            Some(journal) => journal.state().dir().to_owned(),
            None => {
                // Without root there is no place that nobody sees: a directory that is removed has to do.
                if let Ok(place) = Unpacked::in_memory() {
                    return Ok(place);
                }
                PathBuf::from("/tmp")
            }
        };
        let dir = dir.join(format!("unpack-{}", temporary::random()?));
        files::make_private(&dir).map_err(|error| Fault::io("make", &dir, error))?;
        Ok(Unpacked {
            root: dir.clone(),
            _thread: None,
            dir: Some(dir),
        })
    }

    /// Runs a program that unpacks an archive; `{archive}` and `{place}` in its words stand for what they say.
    ///
    /// # Errors
    /// When the program is missing, or the archive cannot be read.
    pub fn unpack(
        &self,
        archive: &Body,
        place: &Unpacked,
        argv: &[String],
    ) -> Result<Output, Fault> {
        let wrong = |error: io::Error| Fault::new(format!("cannot lay the archive down: {error}"));
        let (path, _open) = place.lay(&self.fetch(archive)?).map_err(wrong)?;
        let (path, root) = (
            path.to_string_lossy().into_owned(),
            place.top().to_string_lossy().into_owned(),
        );
        let argv: Vec<String> = argv
            .iter()
            .map(|word| word.replace("{archive}", &path).replace("{place}", &root))
            .collect();
        // As the helper itself: what is unpacked is nobody's until it is put in place.
        Process {
            argv: &argv,
            environment: vec![
                ("TAR_OPTIONS".to_owned(), String::new()),
                ("UNZIP".to_owned(), String::new()),
            ],
            timeout: Some(self.task.timeout.unwrap_or(process::READ_ONLY * 5)),
            ..Process::default()
        }
        .in_c_locale()
        .run()
    }

    /// Whether what is unpacked may keep its owners: only root can give a file away.
    #[must_use]
    pub fn may_give_away(&self) -> bool {
        self.task.user.uid == 0
    }
}

impl Unpacked {
    /// A place in the mounts of a thread of its own, which only this process finds its way to.
    fn in_memory() -> io::Result<Self> {
        let (ready, begun) = channel();
        let (keep, end) = channel::<()>();
        thread::spawn(move || {
            let made =
                staging::private(Path::new(staging::STAGE)).map(|()| rustix::thread::gettid());
            let fine = made.is_ok();
            if ready.send(made).is_ok() && fine {
                // Ends when the place is dropped.
                let _ = end.recv();
            }
        });
        let thread = begun.recv().map_err(io::Error::other)??;
        let root = PathBuf::from(format!(
            "/proc/{}/task/{}/root{}",
            std::process::id(),
            thread.as_raw_nonzero(),
            staging::STAGE
        ));
        Ok(Self {
            root,
            _thread: Some(keep),
            dir: None,
        })
    }

    fn top(&self) -> PathBuf {
        self.root.join("top")
    }

    /// A path of the archive for another program, and the file that must stay open for it.
    fn lay(&self, archive: &Body) -> io::Result<(PathBuf, Option<Arc<File>>)> {
        fs::create_dir_all(self.top())?;
        if let Body::Spooled(file, _) = archive {
            let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
            return Ok((path.into(), Some(file.clone())));
        }
        let path = self.root.join("archive");
        if !path.exists() {
            let mut file = File::create_new(&path)?;
            io::copy(&mut archive.reader()?, &mut file)?;
            file.flush()?;
        }
        Ok((path, None))
    }

    /// What was unpacked, directories before what is in them.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn members(&self) -> Result<Vec<Member>, Fault> {
        let mut members = Vec::new();
        let top = self.top();
        walk(&top, Path::new(""), &mut members)
            .map_err(|error| Fault::new(format!("cannot read what was unpacked: {error}")))?;
        Ok(members)
    }
}

fn walk(top: &Path, at: &Path, members: &mut Vec<Member>) -> io::Result<()> {
    let mut names = Vec::new();
    for entry in fs::read_dir(top.join(at))? {
        names.push(entry?.file_name());
    }
    names.sort();
    for name in names {
        let path = at.join(name);
        let full = top.join(&path);
        let meta = fs::symlink_metadata(&full)?;
        let kind = if meta.is_dir() {
            MemberKind::Dir
        } else if meta.is_file() {
            MemberKind::File(full.clone())
        } else if meta.is_symlink() {
            MemberKind::Link(fs::read_link(&full)?.to_string_lossy().into_owned())
        } else {
            MemberKind::Special
        };
        let below = meta.is_dir().then(|| path.clone());
        members.push(Member {
            path,
            kind,
            mode: meta.mode() & 0o7777,
            owner: (meta.uid(), meta.gid()),
            modified: (meta.mtime(), meta.mtime_nsec()),
        });
        if let Some(below) = below {
            walk(top, &below, members)?;
        }
    }
    Ok(())
}

impl Member {
    /// The content of a file.
    ///
    /// # Errors
    /// When it is none, or cannot be read.
    pub fn body(&self) -> Result<Body, Fault> {
        let MemberKind::File(path) = &self.kind else {
            return Err(Fault::new(format!("{} is no file", self.path.display())));
        };
        let wrong = |error: io::Error| Fault::io("read", &self.path, error);
        let file = Arc::new(File::open(path).map_err(wrong)?);
        let content: Content = body::hash(Body::positioned(&file)).map_err(wrong)?;
        Ok(match content.bytes {
            Some(bytes) => bytes.into(),
            None => Body::Spooled(file, content),
        })
    }
}

impl Drop for Unpacked {
    fn drop(&mut self) {
        if let Some(dir) = &self.dir {
            // What cannot be removed lies in the helper's own directory.
            let _ = fs::remove_dir_all(dir);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_unpacks_without_a_trace() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("d")).unwrap();
        fs::write(dir.path().join("d/f"), "hello").unwrap();
        let tar = dir.path().join("a.tar");
        let made = std::process::Command::new("tar")
            .args([
                "-C",
                dir.path().to_str().unwrap(),
                "-cf",
                tar.to_str().unwrap(),
                "d",
            ])
            .status()
            .unwrap();
        assert!(made.success());
        let host = Host::plan();
        let place = host.place_to_unpack().unwrap();
        let archive = host.content(&tar).unwrap().unwrap();
        let argv = ["tar", "-xf", "{archive}", "-C", "{place}"].map(str::to_owned);
        let output = host.unpack(&archive, &place, &argv).unwrap();
        assert!(output.ok(), "{}", output.complaint());
        let members = place.members().unwrap();
        let paths: Vec<_> = members
            .iter()
            .map(|member| member.path.to_str().unwrap())
            .collect();
        assert_eq!(paths, ["d", "d/f"]);
        assert_eq!(members[1].body().unwrap().bytes().unwrap(), b"hello");
        if rustix::process::geteuid().is_root() {
            assert!(place.dir.is_none() && !Path::new("/tmp/top").exists());
        }
    }
}
