use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::edited::with_attributes;
use super::file::report;
use super::web;
use crate::args::{Bool, List, Mode, Text};
use crate::glob;
use crate::host::{Body, Entry, Fault, Host, Member, MemberKind, Put, To, Unpacked};
use crate::http::{Request, Url};
use crate::module::{ArgumentError, Module, Report, Task};

pub(super) static MODULE: Module = Module::of::<Unarchive>();

with_attributes! {
    /// Unpacks an archive: tar (plain, or packed by gzip, bzip2, xz or zstd) or zip.
    ///
    /// The host's own `tar` and `unzip` unpack it where nobody sees it; each file that differs is put in place like any
    /// other, shown by a plan and taken back by an undo.
    struct Unarchive {
        /// The archive: a file of the controller, of the host with `remote_src`, or an address with `remote_src`.
        src: Text,
        /// The directory to unpack to. It must exist.
        dest: Text,
        /// The archive is on the host.
        #[serde(default)]
        remote_src: Bool,
        /// The opposite of `remote_src`.
        copy: Option<Bool>,
        /// A path or shell pattern: where something matches, nothing is unpacked.
        creates: Option<Text>,
        /// Patterns of paths in the archive to leave out.
        #[serde(default)]
        exclude: List,
        /// Unpack these paths of the archive alone.
        #[serde(default)]
        include: List,
        /// More options for `tar` or `unzip`, such as `--strip-components=1`.
        #[serde(default)]
        extra_opts: List,
        /// Leave a file that is newer than that in the archive.
        #[serde(default)]
        keep_newer: Bool,
        /// Give the names in the archive, in the field `files`.
        #[serde(default)]
        list_files: Bool,
        /// The other side of an address must show a certificate that the host trusts.
        #[serde(default = "yes")]
        validate_certs: Bool,
        /// Decrypt an archive that is encrypted: decided on the controller.
        #[serde(default, rename = "decrypt")]
        _decrypt: Option<Bool>,
        /// Taken for Ansible's sake.
        #[serde(default, rename = "io_buffer_size")]
        _io_buffer_size: Option<crate::args::Number>,
    }
}

fn yes() -> Bool {
    Bool(true)
}

impl Task for Unarchive {
    const NAME: &'static str = "unarchive";
    const ARGUMENT_ALIASES: &'static [(&'static str, &'static str)] = &[("attr", "attributes")];

    fn check(&self) -> Result<(), ArgumentError> {
        if !self.include.is_empty() && !self.exclude.is_empty() {
            return Err(ArgumentError::of(
                "include, exclude",
                "parameters are mutually exclusive: include|exclude",
            ));
        }
        if self.copy.is_some_and(|copy| *copy) && *self.remote_src {
            return Err(ArgumentError::of(
                "copy",
                "parameters are mutually exclusive: ('copy', 'remote_src')",
            ));
        }
        match self.mode == Some(Mode::Preserve) {
            true => Err(ArgumentError::of(
                "mode",
                "files keep the archive's where none is given",
            )),
            false => Ok(()),
        }
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        if let Some(path) = &self.creates {
            let from = PathBuf::from(host.filled(path));
            if glob::first(host, &host.user().home.join(from))?.is_some() {
                let message = format!("skipped, since {path} exists");
                return Ok(Report::of(
                    json!({"msg": message, "dest": *self.dest, "src": *self.src}),
                ));
            }
        }
        let dest = host.resolve(&host.expand(&self.dest))?;
        if !matches!(host.entry(&dest)?, Entry::Dir(_)) {
            if host.open() {
                return Ok(super::edited::unknown(&dest));
            }
            return Err(Fault::new(format!(
                "dest '{}' must be an existing dir",
                dest.display()
            )));
        }
        let archive = self.archive(host)?;
        let kind =
            Kind::of(&archive).map_err(|error| Fault::io("read", Path::new(&*self.src), error))?;
        let place = host.place_to_unpack()?;
        self.unpack(host, &archive, kind, &place)?;
        let mut files = Vec::new();
        let mut warnings = Vec::new();
        for member in place.members()? {
            let shown = member.path.to_string_lossy();
            files.push(match member.kind {
                MemberKind::Dir => format!("{shown}/"),
                _ => shown.into_owned(),
            });
            self.put(host, &dest, &member, &mut warnings)?;
        }
        let mut told = report(host, &dest.to_string_lossy(), &dest)?;
        told.fields.remove("path");
        let own =
            json!({"dest": dest.to_string_lossy(), "src": *self.src, "handler": kind.handler()});
        told.fields.extend(Report::of(own).fields);
        if *self.list_files {
            told.fields.insert("files".to_owned(), json!(files));
        }
        if !self.dest.starts_with(['/', '~']) {
            warnings.push(format!(
                "Relative destination path '{}' was resolved to absolute path '{}'.",
                self.dest,
                dest.display()
            ));
        }
        if !warnings.is_empty() {
            told.fields.insert("warnings".to_owned(), json!(warnings));
        }
        Ok(told)
    }
}

impl Unarchive {
    fn is_remote(&self) -> bool {
        *self.remote_src || self.copy.is_some_and(|copy| !*copy)
    }

    fn archive(&self, host: &Host) -> Result<Body, Fault> {
        let src = &*self.src;
        if !self.is_remote() {
            return host
                .fetched()?
                .ok_or_else(|| Fault::new(format!("Source '{src}' did not come with the task")));
        }
        if src.contains("://") {
            let mut request = Request::get(Url::parse(src)?);
            request.tls.validate = *self.validate_certs;
            let failed = |why: String| Fault::new(format!("Failure downloading {src}, {why}"));
            let answer = request
                .send(host)
                .map_err(|fault| failed(web::unanswered(&fault)))?;
            return match answer.status {
                200 => Ok(answer.body),
                status => Err(failed(format!("HTTP Error {status}: {}", answer.reason))),
            };
        }
        host.content(&host.expand(src))?
            .ok_or_else(|| Fault::new(format!("Source '{src}' does not exist")))
    }

    fn unpack(
        &self,
        host: &Host,
        archive: &Body,
        kind: Kind,
        place: &Unpacked,
    ) -> Result<(), Fault> {
        let mut words: Vec<String> = Vec::new();
        let mut add = |more: &[&str]| words.extend(more.iter().map(|word| (*word).to_owned()));
        let program = kind.program();
        let found = ["/usr/bin", "/bin", "/usr/local/bin"]
            .iter()
            .map(|dir| format!("{dir}/{program}"))
            .find(|path| Path::new(path).exists())
            .ok_or_else(|| {
                Fault::new(format!(
                    "Failed to find handler for \"{}\". Make sure the required command to extract the file is installed. Unable to find required '{program}' binary in the path",
                    self.src
                ))
            })?;
        if kind == Kind::Zip {
            add(&[&found, "-o", "-q"]);
            words.extend(self.extra_opts.0.clone());
            words.push("{archive}".to_owned());
            words.extend(self.include.0.clone());
            if !self.exclude.is_empty() {
                words.push("-x".to_owned());
                words.extend(self.exclude.0.clone());
            }
            words.extend(["-d".to_owned(), "{place}".to_owned()]);
        } else {
            add(&[&found, "--extract", "-C", "{place}"]);
            if kind == Kind::Zstd {
                add(&["--use-compress-program=zstd"]);
            }
            words.extend(self.extra_opts.0.clone());
            words.extend(
                self.exclude
                    .iter()
                    .map(|pattern| format!("--exclude={pattern}")),
            );
            words.extend(["-f".to_owned(), "{archive}".to_owned()]);
            if !self.include.is_empty() {
                words.push("--wildcards".to_owned());
                words.extend(self.include.0.clone());
            }
        }
        let output = host.unpack(archive, place, &words)?;
        // Of unzip, 1 is a warning; so is a file that is to be left out and is not there.
        let fine = output.ok()
            || kind == Kind::Zip && (output.rc == 1 || output.rc == 11 && !self.exclude.is_empty());
        match fine {
            true => Ok(()),
            false => Err(Fault::new(format!(
                "Unable to list files in the archive: {}",
                output.complaint()
            ))
            .with("rc", output.rc)),
        }
    }

    /// Puts something that was unpacked in its place, where it is not so yet.
    fn put(
        &self,
        host: &mut Host,
        dest: &Path,
        member: &Member,
        warnings: &mut Vec<String>,
    ) -> Result<(), Fault> {
        let path = dest.join(&member.path);
        // A link on the way may lead anywhere: what was unpacked goes into the directory alone.
        if let Some(above) = path.parent()
            && above != dest
            && !host.resolve(above)?.starts_with(dest)
        {
            return Err(Fault::new(format!(
                "{} would be written through a link that leads out of {}",
                path.display(),
                dest.display()
            )));
        }
        let there = host.entry(&path)?;
        let is_dir = matches!(member.kind, MemberKind::Dir);
        let mode = self
            .mode
            .as_ref()
            .map(|mode| Mode::Octal(mode.resolve(member.mode, is_dir)));
        let own = Some(Mode::Octal(member.mode));
        let (user, group) = match host.may_give_away() {
            true => {
                let (user, group) = host.owners(member.owner.0, member.owner.1);
                (Some(user), Some(group))
            }
            false => (None, None),
        };
        let asked = |asked: &Option<Text>| asked.as_ref().map(ToString::to_string);
        let (user, group) = (asked(&self.owner).or(user), asked(&self.group).or(group));
        let to = match &member.kind {
            MemberKind::Dir => match there {
                // A directory that is there is changed only as the arguments say.
                Entry::Dir(_) => To::Dir {
                    mode,
                    owner: asked(&self.owner),
                    group: asked(&self.group),
                },
                _ => To::Dir {
                    mode: mode.or(own),
                    owner: user,
                    group,
                },
            },
            MemberKind::File(_) => {
                if *self.keep_newer && newer(&path, member.modified) {
                    return Ok(());
                }
                To::File {
                    content: Some(member.body()?),
                    mode: mode.or(own),
                    owner: user,
                    group,
                }
            }
            MemberKind::Link(target) => To::Link {
                target: target.clone(),
            },
            MemberKind::Special => {
                warnings.push(format!(
                    "{} is a device or a pipe, and was left out",
                    member.path.display()
                ));
                return Ok(());
            }
        };
        // What is there gives way, as tar has it.
        let gives_way = match (&there, &to) {
            (Entry::Link(_), To::Dir { .. }) => false,
            (Entry::File(..) | Entry::Special, To::Dir { .. })
            | (Entry::Special, To::File { .. }) => true,
            _ => false,
        };
        if gives_way {
            host.put(Put::absent(&path))?;
        }
        if matches!((&there, &to), (Entry::Link(_), To::Dir { .. }))
            && matches!(host.entry(&host.resolve(&path)?)?, Entry::Dir(_))
        {
            return Ok(());
        }
        let put = Put {
            path: path.clone(),
            to,
            validate: None,
        };
        match is_dir {
            true => host.put(put)?,
            false => host.put_dated(put, member.modified)?,
        };
        if matches!(member.kind, MemberKind::File(_) | MemberKind::Dir) {
            self.attributes().labels.set(host, &path)?;
        }
        Ok(())
    }
}

/// Whether a file was changed after this time.
fn newer(path: &Path, than: (i64, i64)) -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::symlink_metadata(path)
        .is_ok_and(|meta| meta.is_file() && (meta.mtime(), meta.mtime_nsec()) > than)
}

/// What an archive is, by how it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Zip,
    Tar,
    Gzip,
    Bzip,
    Xz,
    Zstd,
}

impl Kind {
    fn of(archive: &Body) -> std::io::Result<Self> {
        let mut head = Vec::new();
        if !matches!(archive, Body::Remote(_)) {
            archive.reader()?.take(8).read_to_end(&mut head)?;
        }
        Ok(match head.as_slice() {
            [b'P', b'K', 3 | 5, ..] => Self::Zip,
            [0x1f, 0x8b, ..] => Self::Gzip,
            [b'B', b'Z', b'h', ..] => Self::Bzip,
            [0xfd, b'7', b'z', b'X', b'Z', ..] => Self::Xz,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
            _ => Self::Tar,
        })
    }

    fn program(self) -> &'static str {
        if self == Self::Zip { "unzip" } else { "tar" }
    }

    fn handler(self) -> &'static str {
        match self {
            Self::Zip => "ZipArchive",
            Self::Tar => "TarArchive",
            Self::Gzip => "TgzArchive",
            Self::Bzip => "TarBzipArchive",
            Self::Xz => "TarXzArchive",
            Self::Zstd => "TarZstdArchive",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    use std::path::Path;
    use std::process::Command;

    use serde_json::{Value, json};

    use super::MODULE;
    use crate::host::{Host, State};

    fn apply(dir: &Path, args: Value) -> Result<(Value, usize), String> {
        let state = State::at(dir.join("state").to_str());
        state.prepare().unwrap();
        let run = format!("r{}", fs::read_dir(dir.join("state/txn")).unwrap().count());
        let mut host = Host::apply(state, &run, "test");
        let report = (MODULE.run)(args, &mut host).map_err(|fault| fault.message)?;
        let effects = host.end().len();
        host.keep().unwrap();
        Ok((Value::Object(report.fields), effects))
    }

    /// `tree/` with a file, a link and a directory, packed as the name says.
    fn pack(dir: &Path, name: &str) {
        let tree = dir.join("tree");
        if !tree.exists() {
            fs::create_dir_all(tree.join("sub")).unwrap();
            fs::write(tree.join("sub/f"), "one").unwrap();
            fs::set_permissions(tree.join("sub/f"), fs::Permissions::from_mode(0o640)).unwrap();
            let old = fs::FileTimes::new().set_modified(
                std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000),
            );
            fs::File::options()
                .write(true)
                .open(tree.join("sub/f"))
                .unwrap()
                .set_times(old)
                .unwrap();
            symlink("sub/f", tree.join("l")).unwrap();
        }
        let (program, args): (_, &[&str]) = match name.ends_with("zip") {
            true => ("zip", &["-qry", name, "tree"]),
            false => ("tar", &["-caf", name, "tree"]),
        };
        assert!(
            Command::new(program)
                .args(args)
                .current_dir(dir)
                .status()
                .unwrap()
                .success()
        );
    }

    #[test]
    fn archives_are_unpacked_once() {
        for name in ["a.tar", "a.tar.gz", "a.tar.xz", "a.zip"] {
            let dir = tempfile::tempdir().unwrap();
            if name.ends_with("zip") && !Path::new("/usr/bin/unzip").exists() {
                continue;
            }
            pack(dir.path(), name);
            let dest = dir.path().join("to");
            fs::create_dir(&dest).unwrap();
            let args = json!({"src": dir.path().join(name), "dest": dest, "remote_src": true, "list_files": true});
            let (report, effects) = apply(dir.path(), args.clone()).unwrap();
            assert_eq!(
                (effects, &report["files"]),
                (4, &json!(["tree/", "tree/l", "tree/sub/", "tree/sub/f"])),
                "{name}"
            );
            let meta = fs::metadata(dest.join("tree/sub/f")).unwrap();
            assert_eq!((meta.mode() & 0o777, meta.mtime()), (0o640, 1_000_000_000));
            assert_eq!(
                fs::read_link(dest.join("tree/l")).unwrap(),
                Path::new("sub/f")
            );
            assert_eq!(apply(dir.path(), args.clone()).unwrap().1, 0, "{name}");
            fs::write(dest.join("tree/sub/f"), "mine").unwrap();
            let mut newer = args.clone();
            newer["keep_newer"] = true.into();
            assert_eq!(apply(dir.path(), newer).unwrap().1, 0);
            assert_eq!(apply(dir.path(), args).unwrap().1, 1);
        }
    }

    #[test]
    fn modes_options_and_parts_are_taken() {
        let dir = tempfile::tempdir().unwrap();
        pack(dir.path(), "a.tar.gz");
        let dest = dir.path().join("to");
        fs::create_dir(&dest).unwrap();
        let args = |more: Value| {
            let mut args =
                json!({"src": dir.path().join("a.tar.gz"), "dest": dest, "remote_src": true});
            args.as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            args
        };
        let stripped = json!({"extra_opts": ["--strip-components=1"], "exclude": ["tree/l"], "mode": "u=rwX,go="});
        assert_eq!(apply(dir.path(), args(stripped)).unwrap().1, 2);
        assert_eq!(
            fs::metadata(dest.join("sub")).unwrap().mode() & 0o777,
            0o700
        );
        assert_eq!(
            fs::metadata(dest.join("sub/f")).unwrap().mode() & 0o777,
            0o600
        );
        let fault = apply(dir.path(), args(json!({"extra_opts": "--no-such"}))).unwrap_err();
        assert!(
            fault.starts_with(
                "Unable to list files in the archive: /usr/bin/tar: unrecognized option '--no-such'"
            ),
            "{fault}"
        );
        let missing = json!({"src": "/no/such", "dest": dest, "remote_src": true});
        assert_eq!(
            apply(dir.path(), missing).unwrap_err(),
            "Source '/no/such' does not exist"
        );
        let nowhere =
            json!({"src": dir.path().join("a.tar.gz"), "dest": "/no/such", "remote_src": true});
        assert_eq!(
            apply(dir.path(), nowhere).unwrap_err(),
            "dest '/no/such' must be an existing dir"
        );
        assert_eq!(
            apply(dir.path(), args(json!({"creates": "/etc/passwd"})))
                .unwrap()
                .1,
            0
        );
    }

    #[test]
    fn a_link_leads_nothing_astray() {
        let dir = tempfile::tempdir().unwrap();
        pack(dir.path(), "a.tar");
        let (dest, elsewhere) = (dir.path().join("to"), dir.path().join("elsewhere"));
        fs::create_dir(&elsewhere).unwrap();
        fs::create_dir(&dest).unwrap();
        symlink(&elsewhere, dest.join("tree")).unwrap();
        let fault = apply(
            dir.path(),
            json!({"src": dir.path().join("a.tar"), "dest": dest, "remote_src": true}),
        )
        .unwrap_err();
        assert!(
            fault.contains("through a link that leads out of"),
            "{fault}"
        );
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    }
}
