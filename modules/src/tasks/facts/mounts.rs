use std::{
    path::{Path, PathBuf},
    sync::mpsc,
    time::Duration,
};

use serde_json::{Map, Value, json};

use super::{Facts, source::Source};

/// File systems behind a network may hang: this long is waited for each of them.
const PATIENCE: Duration = Duration::from_secs(1);

/// The mounted file systems that have a device or a server, with their sizes.
pub(super) fn gather(source: &Source<'_>, facts: &mut Facts) {
    let table = source.text("/proc/self/mounts").unwrap_or_default();
    let uuids = uuids(source);
    let mounts: Vec<Value> = table
        .lines()
        .filter_map(Mount::parse)
        .filter(Mount::is_storage)
        .map(|mount| {
            let mut entry = json!({
                "mount": mount.point,
                "device": mount.device,
                "fstype": mount.fstype,
                "options": mount.options,
                "dump": 0,
                "passno": 0,
                "uuid": uuids.iter().find(|(device, _)| *device == mount.device).map_or("N/A", |(_, uuid)| uuid),
            });
            let path = source.at(&mount.point);
            let size = if mount.is_remote() { within(PATIENCE, path) } else { size(&path) };
            if let (Some(entry), Some(size)) = (entry.as_object_mut(), size) {
                entry.extend(size);
            }
            entry
        })
        .collect();
    facts.put("mounts", mounts);
}

#[derive(Debug, PartialEq)]
struct Mount {
    device: String,
    point: String,
    fstype: String,
    options: String,
}

impl Mount {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ').map(unescaped);
        Some(Self {
            device: words.next()?,
            point: words.next()?,
            fstype: words.next()?,
            options: words.next()?,
        })
    }

    /// Of a device or a server, not of the kernel's own.
    fn is_storage(&self) -> bool {
        (self.device.starts_with('/') || self.device.contains(":/")) && self.fstype != "none"
    }

    fn is_remote(&self) -> bool {
        self.device.contains(":/")
            || self.device.starts_with("//")
            || self.fstype.starts_with("fuse")
    }
}

/// Blanks and backslashes are octal escapes in the table.
fn unescaped(word: &str) -> String {
    word.replace("\\040", " ")
        .replace("\\011", "\t")
        .replace("\\012", "\n")
        .replace("\\134", "\\")
}

fn uuids(source: &Source<'_>) -> Vec<(String, String)> {
    let dir = "/dev/disk/by-uuid";
    source
        .names(dir)
        .into_iter()
        .filter_map(|uuid| {
            Some((
                format!("/dev/{}", source.link_name(&format!("{dir}/{uuid}"))?),
                uuid,
            ))
        })
        .collect()
}

/// The id of a device's file system; none where nobody knows one.
pub(in crate::tasks) fn uuid(device: &str) -> Option<String> {
    let mut names = std::fs::read_dir("/dev/disk/by-uuid").ok()?.flatten();
    let device = std::fs::canonicalize(device).ok()?;
    let named =
        names.find(|name| std::fs::canonicalize(name.path()).is_ok_and(|path| path == device))?;
    Some(named.file_name().to_string_lossy().into_owned())
}

/// The sizes of the file system at a path.
pub(in crate::tasks) fn size(path: &Path) -> Option<Map<String, Value>> {
    let fs = rustix::fs::statvfs(path).ok()?;
    let sizes = json!({
        "size_total": fs.f_frsize * fs.f_blocks,
        "size_available": fs.f_frsize * fs.f_bavail,
        "block_size": fs.f_bsize,
        "block_total": fs.f_blocks,
        "block_available": fs.f_bavail,
        "block_used": fs.f_blocks - fs.f_bavail,
        "inode_total": fs.f_files,
        "inode_available": fs.f_favail,
        "inode_used": fs.f_files - fs.f_favail,
    });
    sizes.as_object().cloned()
}

/// The thread of a server that does not answer is left behind: nothing can end it.
pub(in crate::tasks) fn within(patience: Duration, path: PathBuf) -> Option<Map<String, Value>> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(size(&path)));
    receiver.recv_timeout(patience).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::Mount;

    #[test]
    fn only_file_systems_with_storage_are_listed() {
        let table = "proc /proc proc rw 0 0\n/dev/vda1 /srv/my\\040data ext4 rw,noatime 0 0\nnas:/export /mnt nfs4 rw 0 0\ntmpfs /run tmpfs rw 0 0\n";
        let mounts: Vec<Mount> = table
            .lines()
            .filter_map(Mount::parse)
            .filter(Mount::is_storage)
            .collect();
        let seen: Vec<(&str, bool)> = mounts
            .iter()
            .map(|mount| (mount.point.as_str(), mount.is_remote()))
            .collect();
        assert_eq!(seen, [("/srv/my data", false), ("/mnt", true)]);
    }
}
