//! The file system itself: what is there, and each way to change it so that nobody sees a half.
//!
//! Functions of plain values, so that they can run in a thread that acts as another user. The last
//! part of a path is never followed.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use fleet_wire::Content;
use rustix::fs::{
    self as sys, AtFlags, FileType, Gid, Mode, OFlags, RenameFlags, ResolveFlags, Uid, XattrFlags,
};

use super::body::{self, Body};

/// What is at a path, with what is needed to see whether it is still the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) kind: Kind,
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    stamp: Stamp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Absent,
    File(Content),
    Dir,
    Link(String),
    Special,
}

/// Equal stamps: nobody has touched the entry in between.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: i64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// Mode and owners by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attributes {
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
}

const ABSENT: Found = Found {
    kind: Kind::Absent,
    mode: 0,
    uid: 0,
    gid: 0,
    stamp: Stamp {
        device: 0,
        inode: 0,
        size: 0,
        modified: (0, 0),
        changed: (0, 0),
    },
};

/// What is at a path. A path through something that is no directory leads to nothing.
pub(super) fn look(path: &Path) -> io::Result<Found> {
    let stat = match sys::lstat(path) {
        Ok(stat) => stat,
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => return Ok(ABSENT),
        Err(error) => return Err(error.into()),
    };
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Kind::File(body::hash(open_file(path)?)?),
        FileType::Directory => Kind::Dir,
        FileType::Symlink => Kind::Link(
            sys::readlink(path, Vec::new())?
                .into_string()
                .map_err(|_| not_text())?,
        ),
        _ => Kind::Special,
    };
    Ok(Found {
        kind,
        mode: stat.st_mode & 0o7777,
        uid: stat.st_uid,
        gid: stat.st_gid,
        stamp: stamp(&stat),
    })
}

fn not_text() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "its name is not UTF-8")
}

fn stamp(stat: &sys::Stat) -> Stamp {
    Stamp {
        device: stat.st_dev,
        inode: stat.st_ino,
        size: stat.st_size,
        modified: (
            stat.st_mtime,
            i64::try_from(stat.st_mtime_nsec).unwrap_or_default(),
        ),
        changed: (
            stat.st_ctime,
            i64::try_from(stat.st_ctime_nsec).unwrap_or_default(),
        ),
    }
}

/// A regular file for reading: never a link, never a pipe that would wait for a writer.
pub(super) fn open_file(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(sys::open(path, flags, Mode::empty())?);
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is not a regular file",
        ))
    }
}

/// Opens a path whose links have been followed already: one that is there now was put there since, and may lead anywhere.
fn open_plain(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    match sys::openat2(
        sys::CWD,
        path,
        flags,
        Mode::empty(),
        ResolveFlags::NO_SYMLINKS,
    ) {
        // Linux before 5.6, and what filters system calls, has no openat2.
        Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => {
            Ok(sys::open(path, flags, Mode::empty())?)
        }
        opened => Ok(opened?),
    }
}

/// The names in a directory, sorted; none where there is no directory.
pub(super) fn list(dir: &Path) -> io::Result<Option<Vec<String>>> {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry?.file_name().into_string().map_err(|_| not_text())?);
    }
    names.sort_unstable();
    Ok(Some(names))
}

/// Why a change was not made.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refused {
    /// Somebody changed the entry since it was looked at.
    #[error("it was changed by somebody else in this very moment")]
    Moved,
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<rustix::io::Errno> for Refused {
    fn from(error: rustix::io::Errno) -> Self {
        Self::Io(error.into())
    }
}

/// The directory that an entry lies in, held open: renames and removals cannot be led elsewhere.
pub(super) struct Place {
    dir: OwnedFd,
    name: OsString,
    path: PathBuf,
}

impl Place {
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "it is not a path of an entry",
            ));
        };
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = open_plain(parent, flags | OFlags::RDONLY)
            .or_else(|_| open_plain(parent, flags | OFlags::PATH))?;
        Ok(Self {
            dir,
            name: name.to_owned(),
            path: path.to_owned(),
        })
    }

    /// Makes a file beside the entry, whole and on disk, under a name that no `include` takes.
    /// The attributes that no argument names (access lists, labels) are those of another file, else of the one that it replaces.
    pub(super) fn stage_file(
        &self,
        temp: &OsStr,
        body: &Body,
        attributes: Attributes,
        like: Option<&File>,
    ) -> io::Result<()> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(sys::openat(
            &self.dir,
            temp,
            flags,
            Mode::from_raw_mode(0o600),
        )?);
        io::copy(&mut body.reader()?, &mut file)?;
        match like {
            Some(like) => copy_extended(like, &file),
            None => {
                if let Ok(old) = open_file(&self.path) {
                    copy_extended(&old, &file);
                }
            }
        }
        own(&file, attributes)?;
        sys::fchmod(&file, Mode::from_raw_mode(attributes.mode))?;
        file.sync_all()
    }

    /// Makes a directory beside the entry.
    pub(super) fn stage_dir(&self, temp: &OsStr, attributes: Attributes) -> io::Result<()> {
        sys::mkdirat(&self.dir, temp, Mode::from_raw_mode(0o700))?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let dir = sys::openat(&self.dir, temp, flags, Mode::empty())?;
        own(&dir, attributes)?;
        sys::fchmod(&dir, Mode::from_raw_mode(attributes.mode))?;
        Ok(sys::fsync(&dir)?)
    }

    /// Makes a link beside the entry.
    pub(super) fn stage_link(&self, temp: &OsStr, target: &str) -> io::Result<()> {
        Ok(sys::symlinkat(target, &self.dir, temp)?)
    }

    /// Sets the time of the last change of what was staged: seconds since 1970, and nanoseconds.
    pub(super) fn date(&self, temp: &OsStr, modified: (i64, i64)) -> io::Result<()> {
        let times = sys::Timestamps {
            last_access: sys::Timespec {
                tv_sec: 0,
                tv_nsec: sys::UTIME_OMIT,
            },
            last_modification: sys::Timespec {
                tv_sec: modified.0,
                tv_nsec: modified.1,
            },
        };
        Ok(sys::utimensat(
            &self.dir,
            temp,
            &times,
            AtFlags::SYMLINK_NOFOLLOW,
        )?)
    }

    /// Makes another name of a file beside the entry.
    pub(super) fn stage_hard(&self, temp: &OsStr, source: &Path) -> io::Result<()> {
        Ok(sys::linkat(
            sys::CWD,
            source,
            &self.dir,
            temp,
            AtFlags::empty(),
        )?)
    }

    /// Puts what was staged in the entry's place, if what is there is still `before`.
    pub(super) fn commit(&self, temp: &OsStr, before: &Found) -> Result<(), Refused> {
        self.unchanged(before)?;
        if before.kind == Kind::Absent {
            match sys::renameat_with(
                &self.dir,
                temp,
                &self.dir,
                &self.name,
                RenameFlags::NOREPLACE,
            ) {
                Err(rustix::io::Errno::EXIST) => return Err(Refused::Moved),
                // Some file systems cannot promise it.
                Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
                    sys::renameat(&self.dir, temp, &self.dir, &self.name)?;
                }
                done => done?,
            }
        } else {
            sys::renameat(&self.dir, temp, &self.dir, &self.name)?;
        }
        self.sync()
    }

    /// Takes back what was staged, where it is still there.
    pub(super) fn discard(&self, temp: &OsStr) {
        // What cannot be removed is found again by its name at the next recovery.
        let _ = sys::unlinkat(&self.dir, temp, AtFlags::empty())
            .or_else(|_| sys::unlinkat(&self.dir, temp, AtFlags::REMOVEDIR));
    }

    /// Sets mode and owners of a file or directory in its place.
    pub(super) fn set(&self, attributes: Attributes, before: &Found) -> Result<(), Refused> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let entry = sys::openat(&self.dir, &self.name, flags, Mode::empty())?;
        if stamp(&sys::fstat(&entry)?) != before.stamp {
            return Err(Refused::Moved);
        }
        // A descriptor that was opened by path alone has no fchmod; its name in /proc leads to the very entry.
        own(&entry, attributes)?;
        let way = format!("/proc/thread-self/fd/{}", entry.as_raw_fd());
        // Opened before it may be closed to its own owner; a file that cannot be read is left to the kernel's own pace.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let readable = sys::open(&way, flags, Mode::empty());
        sys::chmod(&way, Mode::from_raw_mode(attributes.mode))?;
        // Mode and owners are in the entry itself: a sync of its directory does not bring them to disk.
        if let Ok(readable) = readable {
            sys::fsync(&readable)?;
        }
        self.sync()
    }

    /// Removes the entry; a directory must be empty.
    pub(super) fn remove(&self, before: &Found) -> Result<(), Refused> {
        // A directory's times move with what is removed from it first.
        let flags = if before.kind == Kind::Dir {
            AtFlags::REMOVEDIR
        } else {
            self.unchanged(before)?;
            AtFlags::empty()
        };
        sys::unlinkat(&self.dir, &self.name, flags)?;
        self.sync()
    }

    fn unchanged(&self, before: &Found) -> Result<(), Refused> {
        match sys::statat(&self.dir, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if stamp(&stat) == before.stamp => Ok(()),
            Err(rustix::io::Errno::NOENT) if before.kind == Kind::Absent => Ok(()),
            Ok(_) | Err(rustix::io::Errno::NOENT) => Err(Refused::Moved),
            Err(error) => Err(error.into()),
        }
    }

    fn sync(&self) -> Result<(), Refused> {
        match sys::fsync(&self.dir) {
            // A directory that may be searched but not read cannot be synced.
            Ok(()) | Err(rustix::io::Errno::BADF | rustix::io::Errno::INVAL) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Sets the owners where they differ: somebody who is not root may not even set them to what they are.
fn own(entry: impl AsFd, attributes: Attributes) -> io::Result<()> {
    let stat = sys::fstat(&entry)?;
    let uid = (stat.st_uid != attributes.uid).then(|| Uid::from_raw(attributes.uid));
    let gid = (stat.st_gid != attributes.gid).then(|| Gid::from_raw(attributes.gid));
    if uid.is_some() || gid.is_some() {
        sys::chownat(&entry, "", uid, gid, AtFlags::EMPTY_PATH)?;
    }
    Ok(())
}

/// Copies a file into a new one of mode 0600, on disk when this returns.
pub(super) fn copy_private(mut from: &File, to: &Path) -> io::Result<Content> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(sys::open(to, flags, Mode::from_raw_mode(0o600))?);
    io::copy(&mut from, &mut file)?;
    copy_extended(from, &file);
    // An access list that was copied may have widened it.
    sys::fchmod(&file, Mode::from_raw_mode(0o600))?;
    file.sync_all()?;
    body::hash(open_file(to)?)
}

/// Makes a directory of mode 0700, where it is not there yet.
pub(super) fn make_private(dir: &Path) -> io::Result<()> {
    match sys::mkdir(dir, Mode::from_raw_mode(0o700)) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Makes what was done in a directory last.
pub(super) fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

fn copy_extended(from: &File, to: &File) {
    let mut names = vec![0; 64 << 10];
    let Ok(length) = sys::flistxattr(from, &mut names[..]) else {
        return;
    };
    for name in names[..length]
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
    {
        let mut value = vec![0; 64 << 10];
        // Not every file system takes every attribute, and not everybody may set them.
        if let Ok(length) = sys::fgetxattr(from, name, &mut value[..]) {
            let _ = sys::fsetxattr(to, name, &value[..length], XattrFlags::empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn staged(dir: &Path) -> (Place, &'static OsStr, Found) {
        let path = dir.join("conf");
        let before = look(&path).unwrap();
        let place = Place::of(&path).unwrap();
        let own = look(dir).unwrap();
        let attributes = Attributes {
            mode: 0o640,
            uid: own.uid,
            gid: own.gid,
        };
        place
            .stage_file(OsStr::new(".staged"), &"new".into(), attributes, None)
            .unwrap();
        (place, OsStr::new(".staged"), before)
    }

    #[test]
    fn what_was_staged_takes_the_place_at_once() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("conf"), "old").unwrap();
        let (place, temp, before) = staged(dir.path());
        place.commit(temp, &before).unwrap();
        let now = look(&dir.path().join("conf")).unwrap();
        assert_eq!(
            (
                now.mode,
                fs::read_to_string(dir.path().join("conf"))
                    .unwrap()
                    .as_str()
            ),
            (0o640, "new")
        );
        assert_eq!(list(dir.path()).unwrap().unwrap(), ["conf"]);
    }

    #[test]
    fn somebody_elses_change_in_between_is_not_written_over() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("conf");
        // Where nothing was, something is now.
        let (place, temp, before) = staged(dir.path());
        fs::write(&path, "theirs").unwrap();
        assert!(matches!(place.commit(temp, &before), Err(Refused::Moved)));
        place.discard(temp);
        // What was there is another now, and then is gone.
        let (place, temp, before) = staged(dir.path());
        fs::write(&path, "theirs again").unwrap();
        assert!(matches!(place.commit(temp, &before), Err(Refused::Moved)));
        assert!(matches!(place.remove(&before), Err(Refused::Moved)));
        fs::remove_file(&path).unwrap();
        assert!(matches!(place.commit(temp, &before), Err(Refused::Moved)));
        place.discard(temp);
        assert_eq!(list(dir.path()).unwrap().unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_pipe_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        sys::mknodat(
            sys::CWD,
            &pipe,
            FileType::Fifo,
            Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        assert_eq!(look(&pipe).unwrap().kind, Kind::Special);
        assert!(open_file(&pipe).is_err());
    }
}
