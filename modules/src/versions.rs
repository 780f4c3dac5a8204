//! Helpers of other versions that nobody has sent for a long time.

use std::{fs, path::Path, time::Duration};

/// How long another version is kept after it was sent.
const KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Removes the helpers beside `own` that were sent longer ago than [`KEPT`]. They are named `helper-HASH`; where `own`
/// is not, this is no host's cache, and nothing is touched. What cannot be removed stays.
pub fn sweep(own: &Path) {
    let is_cached = |path: &Path| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("helper-"))
    };
    let Some(dir) = own.parent().filter(|_| is_cached(own)) else {
        return;
    };
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        let sent = entry.metadata().and_then(|metadata| metadata.modified());
        let age = sent.ok().and_then(|sent| sent.elapsed().ok());
        if path != own && is_cached(&path) && age.is_some_and(|age| age > KEPT) {
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, File},
        time::{Duration, SystemTime},
    };

    use super::sweep;

    #[test]
    fn only_old_helpers_beside_a_cached_one_go() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let long_ago = SystemTime::now() - Duration::from_secs(31 * 24 * 60 * 60);
        for name in ["helper-own", "helper-old", "something-old"] {
            File::create(path(name))
                .unwrap()
                .set_modified(long_ago)
                .unwrap();
        }
        File::create(path("helper-new")).unwrap();
        sweep(&path("something-old"));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 4);
        sweep(&path("helper-own"));
        assert!(!path("helper-old").exists());
        for name in ["helper-own", "helper-new", "something-old"] {
            assert!(path(name).exists(), "{name}");
        }
    }
}
