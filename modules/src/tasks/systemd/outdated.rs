//! Whether systemd knows other files than those that are there.
//!
//! Its own `NeedDaemonReload` is not enough: it does not see a drop-in in a directory that is new since
//! units were last loaded. So the files are compared with the time of that.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::host::{Fault, Host};
use crate::tasks::counters::monotonic_us;

/// Where units are, the host's own first.
const DIRS: [&str; 4] = [
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
];

/// Whether the files of a unit, or of any where none is named, have changed since systemd read them, or would have in a plan.
pub(super) fn outdated(host: &Host, name: Option<&str>) -> Result<bool, Fault> {
    let Some(name) = name else {
        let dirs = [DIRS[0], DIRS[2], DIRS[3]].map(PathBuf::from);
        return Ok(planned(host, Path::new(DIRS[0]))? || is_newer(&dirs, loaded(host)?));
    };
    let unit = host.unit(name)?;
    if unit.need_daemon_reload || !unit.exists() {
        return Ok(true);
    }
    let drop_ins = DIRS
        .iter()
        .map(|dir| Path::new(dir).join(format!("{}.d", unit.id)));
    let places: Vec<PathBuf> = drop_ins.chain([PathBuf::from(&unit.fragment)]).collect();
    Ok(is_newer(&places, loaded(host)?))
}

/// When systemd last loaded units, in microseconds since 1970; none where it does not say (before version 250 or so).
fn loaded(host: &Host) -> Result<Option<i64>, Fault> {
    let shown = host
        .probe(&[
            "systemctl",
            "show",
            "--property=UnitsLoadTimestampMonotonic",
        ])?
        .text();
    let since_boot = shown
        .trim()
        .strip_prefix("UnitsLoadTimestampMonotonic=")
        .and_then(|number| number.parse::<i64>().ok());
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let boot = i64::try_from(now.as_micros()).unwrap_or(0) - monotonic_us();
    Ok(since_boot
        .filter(|since| *since > 0)
        .map(|since| boot + since))
}

/// Whether one of these, or what is in it or in the drop-in directories in it, was changed after a time.
fn is_newer(places: &[PathBuf], than: Option<i64>) -> bool {
    let Some(than) = than else { return false };
    let changed = |meta: &Metadata| meta.ctime() * 1_000_000 + meta.ctime_nsec() / 1_000 > than;
    places.iter().any(|place| {
        let Ok(meta) = fs::symlink_metadata(place) else {
            return false;
        };
        if changed(&meta) {
            return true;
        }
        let inside: Vec<PathBuf> = match meta.is_dir() {
            true => children(place),
            false => Vec::new(),
        };
        inside.iter().any(|path| {
            let Ok(meta) = fs::symlink_metadata(path) else {
                return false;
            };
            let drop_ins = meta.is_dir() && path.extension().is_some_and(|end| end == "d");
            changed(&meta) || (drop_ins && is_newer(&children(path), Some(than)))
        })
    })
}

fn children(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// Whether a plan would have other files in a directory, or in the drop-in directories in it, than the machine has.
fn planned(host: &Host, dir: &Path) -> Result<bool, Fault> {
    if !host.planning() {
        return Ok(false);
    }
    let names = host.list(dir)?.unwrap_or_default();
    let mut there: Vec<String> = children(dir)
        .iter()
        .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
        .collect();
    there.sort();
    if names != there {
        return Ok(true);
    }
    for name in names {
        let path = dir.join(&name);
        let Ok(meta) = fs::symlink_metadata(&path) else {
            return Ok(true);
        };
        if meta.is_dir() {
            if name.ends_with(".d") && planned(host, &path)? {
                return Ok(true);
            }
        } else if meta.is_file() && host.read(&path)? != fs::read(&path).ok() {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::{SystemTime, UNIX_EPOCH};

    use super::{is_newer, planned};
    use crate::host::{Host, Put};

    #[test]
    fn a_change_in_a_drop_in_directory_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let drop_ins = dir.path().join("x.service.d");
        fs::create_dir(&drop_ins).unwrap();
        fs::write(drop_ins.join("a.conf"), "").unwrap();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let now = i64::try_from(now.as_micros()).unwrap();
        let places = [dir.path().to_owned()];
        let minute = 60_000_000;
        assert!(is_newer(&places, Some(now - minute)));
        assert!(!is_newer(&places, Some(now + minute)));
        assert!(!is_newer(&places, None));
        assert!(!is_newer(&[dir.path().join("none")], Some(0)));
    }

    #[test]
    fn a_plan_sees_the_files_that_it_would_write() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("x.service.d")).unwrap();
        fs::write(dir.path().join("x.service.d/a.conf"), "old").unwrap();
        let mut host = Host::plan();
        assert!(!planned(&host, dir.path()).unwrap());
        host.put(Put::content(dir.path().join("x.service.d/a.conf"), "new"))
            .unwrap();
        assert!(planned(&host, dir.path()).unwrap());
    }
}
