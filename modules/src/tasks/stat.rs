use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use fleet_wire::{Content, Entry};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sha2::Digest;

use crate::args::{Bool, Text};
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
    /// `sha1`, `sha224`, `sha256`, `sha384` or `sha512`.
    #[serde(default)]
    checksum_algorithm: Algorithm,
    /// Taken for Ansible's sake: the kind of a content is not guessed.
    #[serde(default, rename = "get_mime")]
    _get_mime: Option<Bool>,
    /// Taken for Ansible's sake: file attributes are not read.
    #[serde(default, rename = "get_attributes")]
    _get_attributes: Option<Bool>,
}

fn yes() -> Bool {
    Bool(true)
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
enum Algorithm {
    #[default]
    Sha1,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
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
        let asked = Path::new(&*self.path);
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
            // What a plan would make has no metadata of its own yet.
            if let Ok(meta) = std::fs::symlink_metadata(&path) {
                stat.extend(object(metadata(&meta)));
            }
            stat.extend(object(described(&entry)));
            stat.extend(access(&stat, host));
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

impl Algorithm {
    /// SHA-256 and the checksum asked for, in one pass.
    fn of(self, from: &mut impl Read) -> std::io::Result<(String, String)> {
        match self {
            Self::Sha1 => both::<sha1::Sha1>(from),
            Self::Sha224 => both::<sha2::Sha224>(from),
            Self::Sha256 => both::<sha2::Sha256>(from),
            Self::Sha384 => both::<sha2::Sha384>(from),
            Self::Sha512 => both::<sha2::Sha512>(from),
        }
    }
}

fn both<D: Digest>(from: &mut impl Read) -> std::io::Result<(String, String)> {
    let (mut known, mut asked) = (sha2::Sha256::new(), D::new());
    let mut buffer = vec![0; 64 << 10];
    loop {
        let read = from.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        known.update(&buffer[..read]);
        asked.update(&buffer[..read]);
    }
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok((hex(&known.finalize()), hex(&asked.finalize())))
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
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
        "device_type": meta.rdev(),
    })
}

/// What is at the path by now, as far as a plan knows it: it goes over what the machine says.
fn described(entry: &Entry) -> Value {
    let (meta, kind, size) = match entry {
        Entry::File(meta, content) => (meta, "isreg", Some(content.size)),
        Entry::Dir(meta) => (meta, "isdir", None),
        Entry::Link(_) => return json!({"isreg": false, "isdir": false, "islnk": true}),
        Entry::Absent | Entry::Special => return json!({}),
    };
    let mut fields = json!({
        "mode": format!("{:04o}", meta.mode),
        "pw_name": meta.owner,
        "gr_name": meta.group,
        "isreg": false,
        "isdir": false,
        "islnk": false,
    });
    fields[kind] = true.into();
    if let Some(size) = size {
        fields["size"] = size.into();
    }
    fields
}

/// The permission bits one by one, and what the task's user may do.
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
        "rusr": bit(0o400), "wusr": bit(0o200), "xusr": bit(0o100),
        "rgrp": bit(0o040), "wgrp": bit(0o020), "xgrp": bit(0o010),
        "roth": bit(0o004), "woth": bit(0o002), "xoth": bit(0o001),
        "isuid": bit(0o4000), "isgid": bit(0o2000),
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
