//! What a file system keeps of a path beside content, mode and owners: times, attributes, labels, and its other names.

use std::fmt::Write;
use std::path::Path;

use fleet_wire::{SettingKind, UndoClass, What};
use rustix::fs::{self as sys, AtFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};

use super::files::{Place, Refused};
use super::process::read_only;
use super::put::moved;
use super::settings::Setting;
use super::users::acting;
use super::{Body, Entry, Fault, Host};

/// A time that is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// As it is.
    Kept,
    /// The moment of the apply.
    Now,
    /// Seconds since 1970, and nanoseconds.
    At(i64, i64),
}

impl Host {
    /// Sets the times of the last change and the last access; true where something is asked for that is not so.
    ///
    /// # Errors
    /// When the acting user may not.
    pub fn set_times(
        &mut self,
        path: &Path,
        modified: Time,
        accessed: Time,
    ) -> Result<bool, Fault> {
        let mut value = String::new();
        for (field, time) in [("mtime", modified), ("atime", accessed)] {
            // Writing to a string cannot fail.
            let _ = match time {
                Time::Kept => Ok(()),
                Time::Now => write!(value, " {field}=now"),
                Time::At(seconds, nanos) => write!(value, " {field}={seconds}.{nanos:09}"),
            };
        }
        let value = value.trim_start().to_owned();
        let place = self.place(path)?;
        let name = place.to_string_lossy().into_owned();
        // What a plan has just made has no times yet, and an open effect may make what is not there.
        let before = self.setting(SettingKind::Times, &name)?;
        if value.is_empty() || !value.contains("=now") && covers(&before, &value) {
            return Ok(false);
        }
        let before = only(&before, &value);
        let identity = self.task.identity.clone();
        let setting = Setting {
            kind: SettingKind::Times,
            name,
            value: value.clone(),
        };
        self.set_by(setting, &before, |_| {
            acting(identity.as_ref(), || write_times(&place, &value))?
                .map_err(|error| Fault::io("set the times of", &place, error))
        })
        .map(|()| true)
    }

    /// Makes a path another name of a file; true where it is not yet.
    ///
    /// # Errors
    /// When there is no such file, or a directory is in the way.
    pub fn link_hard(&mut self, path: &Path, source: &Path) -> Result<bool, Fault> {
        let (place, source) = (self.place(path)?, self.place(source)?);
        let (before, found) = self.look(&place)?;
        let (after, _) = self.look(&source)?;
        if !matches!(after, Entry::File(..) | Entry::Special) {
            return Err(Fault::new(format!("{} is no file", source.display())));
        }
        if matches!(before, Entry::Dir(_)) {
            return Err(Fault::new(format!("{} is a directory", place.display())));
        }
        if !self.overlay.defines(&place) && same_inode(&place, &source) {
            return Ok(false);
        }
        let what = What::File {
            path: place.to_string_lossy().into_owned(),
            before: before.clone(),
            after: after.clone(),
        };
        let assumed = self.open() && !self.overlay.defines(&place);
        let effect = self.effect(what, UndoClass::Exact, assumed);
        if self.recording {
            let body = self.read(&source)?.map(Body::from);
            self.overlay.set(&place, &before, after, body);
            self.report(effect);
            return Ok(true);
        }
        self.allow(&effect)?;
        let found =
            found.ok_or_else(|| Fault::new(format!("{} was not looked at", place.display())))?;
        let intent = self.intend(&effect)?;
        if let Some(backup) = intent.as_ref().and_then(|intent| intent.backup.as_ref()) {
            self.back_up(&place, &before, backup)?;
        }
        let temp = intent.as_ref().and_then(|intent| intent.temp.clone());
        let temp = temp.unwrap_or_else(|| format!(".fleetctl-{}", std::process::id()));
        acting(self.task.identity.as_ref(), || -> Result<(), Refused> {
            let at = Place::of(&place)?;
            at.stage_hard(temp.as_ref(), &source)?;
            at.commit(temp.as_ref(), &found)
                .inspect_err(|_| at.discard(temp.as_ref()))
        })?
        .map_err(|refused| match refused {
            Refused::Moved => moved(&place),
            Refused::Io(error) => Fault::io("link", &place, error),
        })?;
        self.complete(intent.map(|intent| intent.id))?;
        self.report(effect);
        Ok(true)
    }
}

fn same_inode(a: &Path, b: &Path) -> bool {
    match (sys::lstat(a), sys::lstat(b)) {
        (Ok(a), Ok(b)) => (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino),
        _ => false,
    }
}

/// The value of a setting that an inode keeps; none for other settings.
pub(super) fn read(kind: SettingKind, path: &Path) -> Result<Option<String>, Fault> {
    let shown = path.to_string_lossy();
    Ok(Some(match kind {
        SettingKind::Times => match sys::lstat(path) {
            Ok(stat) => format!(
                "mtime={}.{:09} atime={}.{:09}",
                stat.st_mtime, stat.st_mtime_nsec, stat.st_atime, stat.st_atime_nsec
            ),
            Err(_) => String::new(),
        },
        SettingKind::Attributes => {
            let output = read_only(&["lsattr", "-d", "--", &shown])?;
            let text = output.text();
            let letters = text.split_whitespace().next().unwrap_or_default();
            letters.chars().filter(char::is_ascii_alphabetic).collect()
        }
        SettingKind::Label => {
            let output = read_only(&["stat", "--format=%C", "--", &shown])?;
            output.text().trim().to_owned()
        }
        _ => return Ok(None),
    }))
}

/// Sets what an inode keeps; false for other settings.
pub(super) fn write(kind: SettingKind, path: &Path, to: &str) -> Result<bool, Fault> {
    let shown = path.to_string_lossy();
    let flags = format!("={to}");
    let output = match kind {
        SettingKind::Times => {
            return write_times(path, to)
                .map(|()| true)
                .map_err(|error| Fault::io("set the times of", path, error));
        }
        SettingKind::Attributes => read_only(&["chattr", &flags, "--", &shown])?,
        SettingKind::Label => read_only(&["chcon", "-h", "--", to, &shown])?,
        _ => return Ok(false),
    };
    match output.ok() {
        true => Ok(true),
        false => {
            let what = format!("cannot set the {kind} {shown}: {}", output.complaint());
            Err(Fault::new(what).with("rc", output.rc))
        }
    }
}

fn write_times(path: &Path, to: &str) -> std::io::Result<()> {
    let time = |field: &str| {
        let (seconds, nanos) = match value(to, field) {
            None => (0, UTIME_OMIT),
            Some("now") => (0, UTIME_NOW),
            Some(text) => {
                let (seconds, nanos) = text.split_once('.').unwrap_or((text, "0"));
                (seconds.parse().unwrap_or(0), nanos.parse().unwrap_or(0))
            }
        };
        Timespec {
            tv_sec: seconds,
            tv_nsec: nanos,
        }
    };
    let times = Timestamps {
        last_access: time("atime"),
        last_modification: time("mtime"),
    };
    Ok(sys::utimensat(
        sys::CWD,
        path,
        &times,
        AtFlags::SYMLINK_NOFOLLOW,
    )?)
}

fn value<'v>(times: &'v str, field: &str) -> Option<&'v str> {
    let mut fields = times.split(' ').filter_map(|part| part.split_once('='));
    fields
        .find(|(name, _)| *name == field)
        .map(|(_, value)| value)
}

/// Whether all that is asked for is so.
fn covers(is: &str, wanted: &str) -> bool {
    ["mtime", "atime"]
        .iter()
        .all(|field| value(wanted, field).is_none_or(|wanted| value(is, field) == Some(wanted)))
}

/// The fields of one that another has, too.
fn only(times: &str, like: &str) -> String {
    let kept = times.split(' ').filter(|part| {
        let name = part.split('=').next().unwrap_or_default();
        value(like, name).is_some()
    });
    kept.collect::<Vec<_>>().join(" ")
}

/// Whether two values are one, as far as both say something; the moment of an apply may be any.
pub(super) fn same_times(a: &str, b: &str) -> bool {
    !a.is_empty()
        && !b.is_empty()
        && ["mtime", "atime"]
            .iter()
            .all(|field| match (value(a, field), value(b, field)) {
                (Some(a), Some(b)) => a == b || a == "now" || b == "now",
                _ => true,
            })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    use super::*;
    use crate::host::State;

    #[test]
    fn times_are_set_and_put_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        fs::write(&path, "x").unwrap();
        let times = || {
            let meta = fs::metadata(&path).unwrap();
            (meta.mtime(), meta.mtime_nsec(), meta.atime())
        };
        write_times(&path, "mtime=1000.5 atime=2000.0").unwrap();
        let state = State::at(dir.path().join("state").to_str());
        state.prepare().unwrap();
        let mut host = Host::apply(state, "r1", "test");
        assert!(
            !host
                .set_times(&path, Time::At(1000, 5), Time::Kept)
                .unwrap()
        );
        assert!(
            host.set_times(&path, Time::At(3000, 0), Time::Kept)
                .unwrap()
        );
        assert_eq!(times(), (3000, 0, 2000));
        assert!(host.set_times(&path, Time::Now, Time::Now).unwrap());
        assert!(times().0 > 1_700_000_000);
        host.undo();
        assert_eq!(times(), (1000, 5, 2000));
        let mut plan = Host::plan();
        assert!(plan.set_times(&path, Time::Now, Time::Kept).unwrap());
        assert_eq!(times(), (1000, 5, 2000));
        assert_eq!(
            plan.end()[0].summary(),
            format!("times of {}", path.display())
        );
    }

    #[test]
    fn a_file_gets_another_name_and_loses_it_again() {
        let dir = tempfile::tempdir().unwrap();
        let (file, other) = (dir.path().join("f"), dir.path().join("g"));
        fs::write(&file, "x").unwrap();
        fs::write(&other, "old").unwrap();
        let state = State::at(dir.path().join("state").to_str());
        state.prepare().unwrap();
        let mut host = Host::apply(state, "r1", "test");
        assert!(host.link_hard(&other, &file).unwrap());
        assert!(same_inode(&file, &other));
        assert!(!host.link_hard(&other, &file).unwrap());
        host.undo();
        assert_eq!(fs::read_to_string(&other).unwrap(), "old");
        assert_eq!(fs::read_to_string(&file).unwrap(), "x");
        let mut plan = Host::plan();
        assert!(plan.link_hard(&dir.path().join("new"), &file).unwrap());
        let new = plan.read(&dir.path().join("new")).unwrap();
        assert_eq!(new.as_deref(), Some(&b"x"[..]));
    }
}
