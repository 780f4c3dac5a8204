//! What the system would refuse half-way is refused before anything is begun, in a plan too.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statvfs, statx};

use super::{Entry, Fault, Host};

/// What a new entry takes beside its content, in bytes: its own block, and one of its directory's.
const ENTRY: u64 = 8 << 10;

impl Host {
    /// Looks for marks that forbid a change, and for the room that the new content and the old one's backup need.
    pub(super) fn preflight(
        &self,
        place: &Path,
        before: &Entry,
        new: Option<u64>,
    ) -> Result<(), Fault> {
        let Some(parent) = place.parent() else {
            return Ok(());
        };
        if *before != Entry::Absent {
            unmarked(place, place)?;
        }
        unmarked(parent, place)?;
        let old = match before {
            Entry::File(_, content) => Some(content.size),
            _ => None,
        };
        let kept = self
            .journal
            .as_ref()
            .zip(old)
            .map(|(journal, size)| (journal.state().dir(), size));
        let mut needed = new.map_or(0, |size| size + ENTRY);
        if let Some((dir, size)) = kept {
            if device(dir) == device(parent) {
                needed += size + ENTRY;
            } else {
                roomy(dir, size + ENTRY, place)?;
            }
        }
        match needed {
            0 => Ok(()),
            needed => roomy(parent, needed, place),
        }
    }
}

fn device(path: &Path) -> Option<u64> {
    fs::metadata(path).map(|found| found.dev()).ok()
}

/// Refuses an entry that chattr(1) has marked. What cannot be looked at is told by who opens it.
fn unmarked(path: &Path, place: &Path) -> Result<(), Fault> {
    let Ok(found) = statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::empty()) else {
        return Ok(());
    };
    let (mark, letter) = if found.stx_attributes.contains(StatxAttributes::IMMUTABLE) {
        ("immutable", 'i')
    } else if found.stx_attributes.contains(StatxAttributes::APPEND) {
        ("append-only", 'a')
    } else {
        return Ok(());
    };
    // Into a directory that is append-only something may be put, but what is staged there cannot be renamed.
    Err(Fault::new(format!(
        "cannot write {}: {} is marked {mark} (take the mark away first: `chattr -{letter} {}`)",
        place.display(),
        path.display(),
        path.display()
    )))
}

fn roomy(dir: &Path, needed: u64, place: &Path) -> Result<(), Fault> {
    // A directory that is yet to be made lies where the one above it does.
    let Some(found) = dir.ancestors().find_map(|dir| statvfs(dir).ok()) else {
        return Ok(());
    };
    // Without blocks it is no disk.
    if found.f_blocks == 0 {
        return Ok(());
    }
    let free = if rustix::process::geteuid().is_root() {
        found.f_bfree
    } else {
        found.f_bavail
    }
    .saturating_mul(found.f_frsize);
    if free < needed {
        return Err(Fault::new(format!(
            "cannot write {}: {needed} bytes are needed on the file system of {}, and {free} are free",
            place.display(),
            dir.display()
        )));
    }
    if found.f_files > 0 && found.f_ffree == 0 {
        return Err(Fault::new(format!(
            "cannot write {}: no inode is free on the file system of {}",
            place.display(),
            dir.display()
        )));
    }
    Ok(())
}
