//! Files that are replaced whole: nobody ever sees half of one, or one that is more open than it is to be.

use std::{
    fs::{self, File, Metadata},
    io::{self, Seek, Write},
    os::unix::fs::{MetadataExt, PermissionsExt, fchown},
    path::Path,
};

/// Who may read a file that is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permissions {
    /// Whoever could before; a new file is its owner's only.
    Kept,
    /// Its owner only, as far as the owner could before: it holds a secret in plain.
    Private,
}

/// Replaces a file, or makes it: written beside it, flushed to disk and put in its place. Links are followed; owner and
/// mode stay, but for what [`Permissions::Private`] takes away. What a plain file held is overwritten where `wipe` is
/// said and nothing else links to it.
///
/// # Errors
/// As the system says; the file is then as it was.
pub fn replace(
    path: &Path,
    content: &[u8],
    permissions: Permissions,
    wipe: bool,
) -> io::Result<()> {
    let path = match fs::canonicalize(path) {
        Ok(real) => real,
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => path.to_owned(),
        Err(problem) => return Err(problem),
    };
    let old = match fs::metadata(&path) {
        Ok(metadata) => Some(metadata),
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => None,
        Err(problem) => return Err(problem),
    };
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    // Made with mode 0600, and removed on every way out but the last.
    let mut fresh = tempfile::Builder::new()
        .prefix(".vault-")
        .tempfile_in(folder)?;
    fresh.write_all(content)?;
    if let Some(old) = &old {
        take_over(fresh.as_file(), old, permissions)?;
    }
    fresh.as_file().sync_all()?;
    let before = match &old {
        Some(old) if wipe && old.is_file() => File::options().write(true).open(&path).ok(),
        _ => None,
    };
    fresh.persist(&path).map_err(|problem| problem.error)?;
    if let Some(before) = before {
        overwrite(before)?;
    }
    Ok(())
}

fn take_over(fresh: &File, old: &Metadata, permissions: Permissions) -> io::Result<()> {
    let own = fresh.metadata()?;
    if (own.uid(), own.gid()) != (old.uid(), old.gid()) {
        fchown(fresh, Some(old.uid()), Some(old.gid()))?;
    }
    let mode = match permissions {
        Permissions::Kept => old.mode() & 0o7777,
        Permissions::Private => old.mode() & 0o600,
    };
    fresh.set_permissions(fs::Permissions::from_mode(mode))
}

/// Overwrites a file that nothing links to any more.
fn overwrite(mut file: File) -> io::Result<()> {
    let metadata = file.metadata()?;
    if metadata.nlink() > 0 {
        return Ok(());
    }
    file.rewind()?;
    io::copy(
        &mut io::Read::take(io::repeat(0), metadata.len()),
        &mut file,
    )?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::{Permissions, replace};

    #[test]
    fn mode_and_links_stay() {
        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().join("real"), dir.path().join("link"));
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink("real", &link).unwrap();
        replace(&link, b"new", Permissions::Kept, false).unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(path.metadata().unwrap().mode() & 0o7777, 0o640);
        replace(&link, b"plain", Permissions::Private, false).unwrap();
        assert_eq!(path.metadata().unwrap().mode() & 0o7777, 0o600);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_new_file_is_its_owners_only() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new");
        replace(&path, b"x", Permissions::Kept, true).unwrap();
        assert_eq!(path.metadata().unwrap().mode() & 0o7777, 0o600);
    }

    #[test]
    fn what_was_plain_is_overwritten_unless_it_has_another_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("plain");
        fs::write(&path, "secret").unwrap();
        let held = fs::File::open(&path).unwrap();
        replace(&path, b"sealed", Permissions::Kept, true).unwrap();
        let left = std::io::read_to_string(held).unwrap();
        assert_eq!(left, "\0\0\0\0\0\0");

        fs::write(&path, "secret").unwrap();
        fs::hard_link(&path, dir.path().join("other")).unwrap();
        replace(&path, b"sealed", Permissions::Kept, true).unwrap();
        assert_eq!(
            fs::read_to_string(dir.path().join("other")).unwrap(),
            "secret"
        );
    }
}
