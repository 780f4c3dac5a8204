use std::fs::{File, Metadata};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use fleet_wire::{Content, Entry};
use rustix::fs::{IFlags, ioctl_getflags};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::args::{Bool, Text};
use crate::checksum::Algorithm;
use crate::host::{Fault, Host};
use crate::module::{Module, Report, Task};

pub(super) static MODULE: Module = Module::of::<Stat>();

/// Says what is at a path, in the field `stat` of its result. Changes nothing.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Stat {
    /// The path.
    path: Text,
    /// Look at what a link points to, not at the link.
    #[serde(default)]
    follow: Bool,
    /// Give a regular file's checksum.
    #[serde(default = "yes")]
    get_checksum: Bool,
    /// `md5`, `sha1`, `sha224`, `sha256`, `sha384` or `sha512`.
    #[serde(default)]
    checksum_algorithm: Algorithm,
    /// Say what kind of content it has, as the host's program `file` sees it; `unknown` without that program.
    #[serde(default = "yes")]
    get_mime: Bool,
    /// Give the attributes that `lsattr` shows.
    #[serde(default = "yes")]
    get_attributes: Bool,
    /// Give the SELinux label, in the field `selinux_context`.
    #[serde(default)]
    get_selinux_context: Bool,
}

fn yes() -> Bool {
    Bool(true)
}

impl Task for Stat {
    const NAME: &'static str = "stat";
    const ARGUMENT_ALIASES: &'static [(&'static str, &'static str)] = &[
        ("dest", "path"),
        ("name", "path"),
        ("checksum", "checksum_algorithm"),
        ("checksum_algo", "checksum_algorithm"),
        ("mime", "get_mime"),
        ("mime_type", "get_mime"),
        ("mime-type", "get_mime"),
        ("attr", "get_attributes"),
        ("attributes", "get_attributes"),
    ];

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        let asked = &host.expand(&self.path);
        let path = match *self.follow {
            true => host.resolve(asked)?,
            false => asked.to_owned(),
        };
        let entry = host.entry(&path)?;
        let mut stat = Map::new();
        let exists = entry != Entry::Absent;
        stat.insert("exists".to_owned(), exists.into());
        if exists {
            stat.insert("path".to_owned(), (*self.path).into());
            stat.extend(described(host, &path, &entry));
            stat.extend(access(&stat, host));
            if *self.get_mime {
                stat.extend(mime(host, &path, &entry)?);
            }
            if *self.get_attributes {
                stat.extend(attributes(&path, &entry));
            }
            if *self.get_selinux_context {
                let label = label(host, &path)?;
                stat.insert("selinux_context".to_owned(), label);
            }
        }
        match &entry {
            Entry::File(_, content) if *self.get_checksum => {
                if let Some(sum) = self.checksum(host, &path, content)? {
                    stat.insert("checksum".to_owned(), sum.into());
                }
            }
            Entry::Link(target) => {
                stat.insert("lnk_target".to_owned(), target.as_str().into());
                let end = host.resolve(&path)?;
                stat.insert("lnk_source".to_owned(), end.display().to_string().into());
            }
            _ => {}
        }
        Ok(Report::of(json!({"stat": stat})))
    }
}

impl Stat {
    /// None for a content that a plan knows by its hash alone.
    fn checksum(
        &self,
        host: &Host,
        path: &Path,
        content: &Content,
    ) -> Result<Option<String>, Fault> {
        if self.checksum_algorithm == Algorithm::Sha256 {
            return Ok(Some(content.sha256.clone()));
        }
        // A large file is not taken into memory: it is the machine's own where its hash is the known one.
        if let Ok(mut file) = File::open(path)
            && let Ok((known, sum)) = self.checksum_algorithm.of(&mut file)
            && known == content.sha256
        {
            return Ok(Some(sum));
        }
        let Some(bytes) = host.read(path)? else {
            return Ok(None);
        };
        let sum = self.checksum_algorithm.of(&mut bytes.as_slice());
        Ok(sum.ok().map(|(_, sum)| sum))
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// All that is known of an entry: what the machine says of its path, and over it what a plan has made of it by now.
pub(super) fn described(host: &Host, path: &Path, entry: &Entry) -> Map<String, Value> {
    let mut fields = std::fs::symlink_metadata(path)
        .map(|meta| object(metadata(&meta)))
        .unwrap_or_default();
    let named = |id: &str| fields.get(id).and_then(Value::as_u64);
    let number = |id: &str| named(id).and_then(|number| u32::try_from(number).ok());
    if let (Some(user), Some(group)) = (number("uid"), number("gid")) {
        let (user, group) = host.owners(user, group);
        fields.insert("pw_name".to_owned(), user.into());
        fields.insert("gr_name".to_owned(), group.into());
    }
    fields.extend(planned(host, entry));
    fields.extend(bits(&fields));
    fields
}

/// What the machine says of a path.
fn metadata(meta: &Metadata) -> Value {
    let kind = meta.file_type();
    #[expect(
        clippy::cast_precision_loss,
        reason = "Ansible gives times as fractions of seconds"
    )]
    let time = |seconds: i64, nanos: i64| seconds as f64 + nanos as f64 / 1e9;
    json!({
        "mode": format!("{:04o}", meta.mode() & 0o7777),
        "isdir": kind.is_dir(),
        "isreg": kind.is_file(),
        "islnk": kind.is_symlink(),
        "ischr": kind.is_char_device(),
        "isblk": kind.is_block_device(),
        "isfifo": kind.is_fifo(),
        "issock": kind.is_socket(),
        "uid": meta.uid(),
        "gid": meta.gid(),
        "size": meta.size(),
        "inode": meta.ino(),
        "dev": meta.dev(),
        "nlink": meta.nlink(),
        "atime": time(meta.atime(), meta.atime_nsec()),
        "mtime": time(meta.mtime(), meta.mtime_nsec()),
        "ctime": time(meta.ctime(), meta.ctime_nsec()),
        "blocks": meta.blocks(),
        "block_size": meta.blksize(),
        "disk_usage_bytes": meta.blocks() * 512,
        "device_type": meta.rdev(),
    })
}

/// What is at the path by now, as far as a plan knows it.
fn planned(host: &Host, entry: &Entry) -> Map<String, Value> {
    let (meta, kind, size) = match entry {
        Entry::File(meta, content) => (meta, "isreg", Some(content.size)),
        Entry::Dir(meta) => (meta, "isdir", None),
        Entry::Link(_) => {
            return object(json!({"isreg": false, "isdir": false, "islnk": true}));
        }
        Entry::Absent | Entry::Special => return Map::new(),
    };
    let mut fields = json!({
        "mode": format!("{:04o}", meta.mode),
        "pw_name": meta.owner,
        "gr_name": meta.group,
        "isreg": false,
        "isdir": false,
        "islnk": false,
    });
    let (uid, gid) = host.numbers(meta);
    for (field, number) in [("uid", uid), ("gid", gid)] {
        if let Some(number) = number {
            fields[field] = number.into();
        }
    }
    fields[kind] = true.into();
    if let Some(size) = size {
        fields["size"] = size.into();
    }
    object(fields)
}

/// What kind of content it is, in the words of the program `file`.
fn mime(host: &Host, path: &Path, entry: &Entry) -> Result<Map<String, Value>, Fault> {
    let told = match entry {
        Entry::Dir(_) => Some("inode/directory; charset=binary".to_owned()),
        Entry::Link(_) => Some("inode/symlink; charset=binary".to_owned()),
        Entry::File(_, content) if content.size == 0 => {
            Some("inode/x-empty; charset=binary".to_owned())
        }
        Entry::File(..) if host.entry(Path::new("/usr/bin/file"))? != Entry::Absent => {
            let path = path.to_string_lossy();
            let output = host.probe(&["/usr/bin/file", "-b", "-i", "--", &path])?;
            Some(output.text()).filter(|_| output.ok())
        }
        // A host without that program: whether it is text shows by itself.
        Entry::File(_, content) if content.size <= LOOKED_AT => {
            host.read(path)?.map(|bytes| kind_of(&bytes).to_owned())
        }
        _ => None,
    };
    let told = told.unwrap_or_default();
    let (kind, charset) = told
        .trim()
        .split_once("; charset=")
        .unwrap_or(("unknown", "unknown"));
    Ok(object(json!({"mimetype": kind, "charset": charset})))
}

/// Files up to this size are looked into, in bytes.
const LOOKED_AT: u64 = 1 << 20;

/// What `file -i` says of texts, and of whatever is none.
fn kind_of(bytes: &[u8]) -> &'static str {
    let controls =
        |byte: &u8| *byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x0c | 0x08 | 0x1b);
    match std::str::from_utf8(bytes) {
        Ok(_) if bytes.iter().any(controls) => "application/octet-stream; charset=binary",
        Ok(text)
            if text.starts_with("#!")
                && text.lines().next().is_some_and(|line| line.ends_with("sh")) =>
        {
            "text/x-shellscript; charset=us-ascii"
        }
        Ok(text) if text.is_ascii() => "text/plain; charset=us-ascii",
        Ok(_) => "text/plain; charset=utf-8",
        Err(_) => "application/octet-stream; charset=binary",
    }
}

/// The attributes of `lsattr`, with the names that Ansible gives them.
fn attributes(path: &Path, entry: &Entry) -> Map<String, Value> {
    const NAMES: [(IFlags, char, &str); 9] = [
        (IFlags::SYNC, 'S', "synchronous"),
        (IFlags::DIRSYNC, 'D', "dirsync"),
        (IFlags::IMMUTABLE, 'i', "immutable"),
        (IFlags::APPEND, 'a', "append"),
        (IFlags::NODUMP, 'd', "nodump"),
        (IFlags::NOATIME, 'A', "noatime"),
        (IFlags::COMPRESSED, 'c', "compressed"),
        (IFlags::JOURNALING, 'j', "journalled"),
        (IFlags::NOTAIL, 't', "notail"),
    ];
    // Not among the names of the system's own interface, though every file of ext4 has it.
    const EXTENTS: u32 = 0x0008_0000;
    const INDEXED: u32 = 0x0000_1000;
    const NO_COW: u32 = 0x0080_0000;
    let opened = match entry {
        Entry::File(..) | Entry::Dir(_) => File::open(path).ok(),
        _ => None,
    };
    let flags = opened
        .and_then(|file| ioctl_getflags(&file).ok())
        .unwrap_or(IFlags::empty());
    let others = [
        (INDEXED, 'I', "indexed"),
        (EXTENTS, 'e', "extents"),
        (NO_COW, 'C', "nocow"),
    ];
    let known = NAMES.map(|(flag, letter, name)| (flag.bits(), letter, name));
    let set: Vec<(char, &str)> = known
        .into_iter()
        .chain(others)
        .filter(|(bit, ..)| flags.bits() & bit != 0)
        .map(|(_, letter, name)| (letter, name))
        .collect();
    object(json!({
        "attr_flags": set.iter().map(|(letter, _)| letter).collect::<String>(),
        "attributes": set.iter().map(|(_, name)| name).collect::<Vec<_>>(),
        "version": null,
    }))
}

/// The parts of the SELinux label; nothing in their places where there is none.
fn label(host: &Host, path: &Path) -> Result<Value, Fault> {
    if !Path::new("/sys/fs/selinux/enforce").exists() {
        return Ok(json!([null, null, null]));
    }
    let path = path.to_string_lossy();
    let label = host.probe(&["stat", "--format=%C", "--", &path])?.text();
    Ok(json!(label.trim().splitn(4, ':').collect::<Vec<_>>()))
}

/// The permission bits one by one.
fn bits(stat: &Map<String, Value>) -> Map<String, Value> {
    let mode = stat.get("mode").and_then(Value::as_str);
    let Some(mode) = mode.and_then(|mode| u32::from_str_radix(mode, 8).ok()) else {
        return Map::new();
    };
    let bit = |bit: u32| mode & bit != 0;
    object(json!({
        "rusr": bit(0o400), "wusr": bit(0o200), "xusr": bit(0o100),
        "rgrp": bit(0o040), "wgrp": bit(0o020), "xgrp": bit(0o010),
        "roth": bit(0o004), "woth": bit(0o002), "xoth": bit(0o001),
        "isuid": bit(0o4000), "isgid": bit(0o2000),
    }))
}

/// What the task's user may do.
fn access(stat: &Map<String, Value>, host: &Host) -> Map<String, Value> {
    let mode = stat.get("mode").and_then(Value::as_str);
    let Some(mode) = mode.and_then(|mode| u32::from_str_radix(mode, 8).ok()) else {
        return Map::new();
    };
    let user = host.user();
    let is =
        |field: &str, number: u32| stat.get(field).and_then(Value::as_u64) == Some(number.into());
    let shift = if is("uid", user.uid) {
        6
    } else if is("gid", user.gid) {
        3
    } else {
        0
    };
    let root = user.uid == 0;
    let may = |bit: u32| root || mode >> shift & bit != 0;
    let bit = |bit: u32| mode & bit != 0;
    object(json!({
        "readable": may(4), "writeable": may(2),
        // Root may execute what anybody may.
        "executable": if root { bit(0o111) } else { may(1) },
    }))
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{PermissionsExt, symlink},
    };

    use serde_json::{Value, json};

    use super::MODULE;
    use crate::host::{Host, Put};

    fn stat(host: &mut Host, args: Value) -> Value {
        (MODULE.run)(args, host).unwrap().fields["stat"].clone()
    }

    #[test]
    fn a_host_without_the_program_file_still_knows_a_text() {
        assert_eq!(super::kind_of(b"hello\n"), "text/plain; charset=us-ascii");
        assert_eq!(
            super::kind_of("caf\u{e9}".as_bytes()),
            "text/plain; charset=utf-8"
        );
        assert_eq!(
            super::kind_of(b"#!/bin/sh\n"),
            "text/x-shellscript; charset=us-ascii"
        );
        assert_eq!(
            super::kind_of(b"\x7fELF\0"),
            "application/octet-stream; charset=binary"
        );
    }

    #[test]
    fn a_path_is_described_in_ansibles_words() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        fs::write(&file, "hello\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o4750)).unwrap();
        symlink("f", dir.path().join("l")).unwrap();
        let host = &mut Host::plan();
        let seen = stat(host, json!({"path": file}));
        assert_eq!(seen["checksum"], "f572d396fae9206628714fb2ce00f72e94f2258f");
        assert_eq!(
            (&seen["mode"], &seen["size"], &seen["isreg"]),
            (&json!("4750"), &json!(6), &json!(true))
        );
        assert_eq!(
            (&seen["isuid"], &seen["wgrp"], &seen["xgrp"], &seen["xoth"]),
            (&json!(true), &json!(false), &json!(true), &json!(false))
        );
        let link = stat(host, json!({"path": dir.path().join("l")}));
        assert_eq!(
            (&link["islnk"], &link["isreg"], &link["lnk_target"]),
            (&json!(true), &json!(false), &json!("f"))
        );
        assert_eq!(link["lnk_source"], json!(file));
        let followed = stat(
            host,
            json!({"path": dir.path().join("l"), "follow": true, "checksum_algorithm": "sha256"}),
        );
        assert_eq!(
            followed["checksum"],
            "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"
        );
        assert_eq!(
            stat(host, json!({"path": dir.path().join("none")})),
            json!({"exists": false})
        );
        assert_eq!(stat(host, json!({"path": dir.path()}))["isdir"], true);
    }

    #[test]
    fn a_plan_sees_what_would_be_there() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        let mut host = Host::plan();
        host.put(Put::content(&file, "hello\n")).unwrap();
        let seen = stat(&mut host, json!({"path": file}));
        assert_eq!(
            (&seen["exists"], &seen["size"], &seen["mode"]),
            (&json!(true), &json!(6), &json!("0644"))
        );
        assert_eq!(seen["checksum"], "f572d396fae9206628714fb2ce00f72e94f2258f");
        assert!(!file.exists());
    }
}
