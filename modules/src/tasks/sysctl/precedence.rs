//! Which file has the last word on a kernel parameter at boot, as systemd-sysctl reads them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::settings::{Setting, setting};
use crate::host::{Fault, Host};

/// A file hides those of the same name in the directories after it.
const DIRS: [&str; 4] = [
    "/etc/sysctl.d",
    "/run/sysctl.d",
    "/usr/local/lib/sysctl.d",
    "/usr/lib/sysctl.d",
];

/// The files that are read at boot, in their order, with what they set.
pub(super) struct Precedence(Vec<(PathBuf, Vec<Setting>)>);

impl Precedence {
    pub(super) fn read(host: &Host) -> Result<Self, Fault> {
        let mut names: BTreeMap<String, PathBuf> = BTreeMap::new();
        for dir in DIRS.map(Path::new) {
            for name in host.list(dir)?.unwrap_or_default() {
                if name.ends_with(".conf") {
                    names.entry(name.clone()).or_insert_with(|| dir.join(name));
                }
            }
        }
        let mut files = Vec::new();
        for path in names.into_values() {
            let path = host.resolve(&path)?;
            // A link to /dev/null switches a file off.
            if !path.starts_with("/dev") {
                let text = host.read(&path)?.unwrap_or_default();
                let settings = String::from_utf8_lossy(&text)
                    .lines()
                    .filter_map(setting)
                    .collect();
                files.push((path, settings));
            }
        }
        Ok(Self(files))
    }

    pub(super) fn is_read(&self, file: &Path) -> bool {
        self.0.iter().any(|(path, _)| path == file)
    }

    /// The file after this one that gives a key another value.
    pub(super) fn overrides(&self, file: &Path, key: &str, value: &str) -> Option<(&Path, &str)> {
        let at = self.0.iter().position(|(path, _)| path == file)?;
        let (path, last) = self.0[at + 1..].iter().rev().find_map(|(path, settings)| {
            let last = settings.iter().rev().find(|setting| setting.key == key)?;
            Some((path, last))
        })?;
        (last.value != value).then_some((path.as_path(), last.value.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Precedence, Setting};

    #[test]
    fn the_last_file_that_sets_a_key_wins() {
        let file = |name: &str, pairs: &[(&str, &str)]| {
            let settings = pairs.iter().map(|(key, value)| Setting {
                key: (*key).to_owned(),
                value: (*value).to_owned(),
            });
            (Path::new("/etc/sysctl.d").join(name), settings.collect())
        };
        let order = Precedence(vec![
            file("10-a.conf", &[("k", "1"), ("l", "1")]),
            file("50-b.conf", &[("k", "2")]),
            file("99-c.conf", &[("k", "3"), ("k", "1")]),
        ]);
        let overrides = |name: &str, key: &str, value: &str| {
            let found = order.overrides(&Path::new("/etc/sysctl.d").join(name), key, value);
            found.map(|(path, value)| {
                (
                    path.file_name().unwrap().to_str().unwrap().to_owned(),
                    value.to_owned(),
                )
            })
        };
        assert_eq!(overrides("10-a.conf", "k", "1"), None);
        assert_eq!(
            overrides("10-a.conf", "k", "9"),
            Some(("99-c.conf".to_owned(), "1".to_owned()))
        );
        assert_eq!(overrides("10-a.conf", "l", "1"), None);
        assert_eq!(overrides("99-c.conf", "k", "3"), None);
        assert!(!order.is_read(Path::new("/etc/sysctl.conf")));
    }
}
