use std::path::{Path, PathBuf};

use super::edited::{self, with_attributes};
use super::file::report;
use crate::args::{Bool, Mode, Text};
use crate::checksum::Algorithm;
use crate::host::{Body, Entry, Fault, Host, Meta, Put, To, Validate};
use crate::module::{ArgumentError, Module, Report, Task};

pub(super) static MODULE: Module = Module::of::<Copy>();

const CONTENT_INTO_DIRECTORY: &str = "can not use content with a dir as dest";

with_attributes! {
    /// Puts a file with a given content in place, whole or not at all. A `template` that was rendered comes here, too.
    struct Copy {
        /// Where. A directory, or a path that ends with `/`, gets a file of the source's name.
        dest: Text,
        /// The source: a file of the controller, or of the host with `remote_src`.
        src: Option<Text>,
        /// The content itself, instead of a source.
        content: Option<Text>,
        /// The source is on the host.
        #[serde(default)]
        remote_src: Bool,
        /// The permissions of directories that are made.
        directory_mode: Option<Mode>,
        /// A command that must accept the file before it is put in place: `visudo -cf %s` sees the staged file,
        /// `nginx -t` (without `%s`) sees the whole configuration with the staged file in it.
        validate: Option<Text>,
        /// Say where the old content is kept. It is kept in any case, outside of the configuration.
        #[serde(default)]
        backup: Bool,
        /// Replace a file that is there. Without it a file that is there is left as it is.
        #[serde(default = "yes")]
        force: Bool,
        /// Where `dest` is a link, write to what it points to. Without it the link is replaced.
        #[serde(default)]
        follow: Bool,
        /// Links in a source directory are followed. Without it they are made as links.
        #[serde(default = "yes")]
        local_follow: Bool,
        /// SHA-1 of the content, which is compared before anything is written.
        checksum: Option<Text>,
        /// Decrypt a source that is encrypted: decided on the controller.
        #[serde(default, rename = "decrypt")]
        _decrypt: Option<Bool>,
        /// The source's name, where the content came by another.
        #[serde(default)]
        _original_basename: Option<Text>,
    }
}

fn yes() -> Bool {
    Bool(true)
}

impl Task for Copy {
    const NAME: &'static str = "copy";
    const ARGUMENT_ALIASES: &'static [(&'static str, &'static str)] =
        &[("thirsty", "force"), ("attr", "attributes")];

    fn check(&self) -> Result<(), ArgumentError> {
        if self.content.is_some() && self.src.is_some() {
            return Err(ArgumentError::of(
                "content",
                "src and content are mutually exclusive",
            ));
        }
        let source = self.src.as_ref().is_some_and(|src| !src.is_empty());
        if self.content.is_none() && !source {
            return Err(ArgumentError::of("src", "src (or content) is required"));
        }
        if self.content.is_some() && self.dest.ends_with('/') {
            return Err(ArgumentError::of("dest", CONTENT_INTO_DIRECTORY));
        }
        Ok(())
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        if let (true, Some(src)) = (self.remote_src.0, &self.src) {
            let src = host.resolve(&host.expand(src))?;
            if let Entry::Dir(_) = host.entry(&src)? {
                return self.tree(host, &src);
            }
        }
        let (body, preserved) = self.source(host)?;
        self.compare(host, &body)?;
        let dest = self.destination(host)?;
        let mode = match &self.mode {
            Some(Mode::Preserve) => preserved.map(Mode::Octal),
            other => other.clone(),
        };
        let before = host.entry(&dest)?;
        self.file(host, &dest, body.clone(), mode)?;
        let mut told = report(host, &dest.to_string_lossy(), &dest)?;
        told.fields
            .insert("dest".to_owned(), dest.to_string_lossy().into());
        if let Some(src) = &self.src {
            told.fields.insert("src".to_owned(), (**src).into());
        }
        if let Body::Bytes(bytes) = &body {
            let sum = Algorithm::Sha1.sum(bytes);
            told.fields.insert("checksum".to_owned(), sum.into());
            if !same_content(&before, &host.entry(&dest)?) {
                let sum = Algorithm::Md5.sum(bytes);
                told.fields.insert("md5sum".to_owned(), sum.into());
            }
        }
        if *self.backup {
            edited::tell_backup(host, &dest, "backup_file", &mut told.fields);
        }
        Ok(told)
    }
}

fn same_content(a: &Entry, b: &Entry) -> bool {
    matches!((a, b), (Entry::File(_, a), Entry::File(_, b)) if a.sha256 == b.sha256)
}

impl Copy {
    /// The content, and the source's mode where it is on the host.
    fn source(&self, host: &Host) -> Result<(Body, Option<u32>), Fault> {
        if let Some(content) = &self.content {
            return Ok((content.0.as_str().into(), None));
        }
        if let (true, Some(src)) = (self.remote_src.0, &self.src) {
            let path = host.resolve(&host.expand(src))?;
            return match (host.entry(&path)?, host.read(&path)?) {
                (Entry::File(meta, _), Some(bytes)) => Ok((bytes.into(), Some(meta.mode))),
                (Entry::Absent, _) => Err(Fault::new(format!("Source {src} not found"))),
                _ => Err(Fault::new(format!("Source {src} is no regular file"))),
            };
        }
        let body = host
            .body()
            .ok_or_else(|| Fault::new("the source's content did not come with the task"))?;
        Ok((body, None))
    }

    fn compare(&self, host: &Host, body: &Body) -> Result<(), Fault> {
        let Some(wanted) = &self.checksum else {
            return Ok(());
        };
        let is = match body {
            Body::Bytes(bytes) => Algorithm::Sha1.sum(bytes),
            _ => Algorithm::Sha1.sum(&host.blob()?.unwrap_or_default()),
        };
        if is.eq_ignore_ascii_case(wanted) {
            Ok(())
        } else {
            Err(Fault::new(format!(
                "Copied file does not match the expected checksum: the content's SHA-1 is {is}, not {wanted}"
            ))
            .with("checksum", is)
            .with("expected_checksum", &**wanted))
        }
    }

    /// The file's own path; makes the directory of a path that ends with `/`.
    fn destination(&self, host: &mut Host) -> Result<PathBuf, Fault> {
        let dest = host.expand(&self.dest);
        let end = host.resolve(&dest)?;
        let there = host.entry(&end)?;
        let name = self
            .src
            .as_ref()
            .and_then(|src| Path::new(&**src).file_name());
        let slash = self.dest.ends_with('/');
        if let (Entry::Dir(_), Some(name)) = (&there, name) {
            return Ok(end.join(name));
        }
        if let Entry::Dir(_) = &there {
            return Err(Fault::new(CONTENT_INTO_DIRECTORY));
        }
        if let (Entry::Absent, true, Some(name)) = (&there, slash, name) {
            self.directory(host, &end)?;
            return Ok(end.join(name));
        }
        Ok(if self.follow.0 { end } else { dest })
    }

    fn directory(&self, host: &mut Host, path: &Path) -> Result<(), Fault> {
        if let Some(above) = path.parent()
            && host.entry(above)? == Entry::Absent
        {
            self.directory(host, above)?;
        }
        let to = To::Dir {
            mode: self.directory_mode.clone(),
            owner: self.owner(),
            group: self.group(),
        };
        host.put(Put {
            path: path.to_owned(),
            to,
            validate: None,
        })
        .map(drop)
    }

    fn file(
        &self,
        host: &mut Host,
        dest: &Path,
        body: Body,
        mode: Option<Mode>,
    ) -> Result<(), Fault> {
        if !self.force.0 && host.entry(&host.resolve(dest)?)? != Entry::Absent {
            return Ok(());
        }
        if let Some(above) = dest.parent()
            && !host.open()
            && host.entry(&host.resolve(above)?)? == Entry::Absent
        {
            return Err(Fault::new(format!(
                "Destination directory {} does not exist: create it first (`file` with `state: directory`)",
                above.display()
            )));
        }
        let to = To::File {
            content: Some(body),
            mode,
            owner: self.owner(),
            group: self.group(),
        };
        let validate = self.validate.as_ref().map(|command| Validate {
            command: command.0.clone(),
        });
        host.put(Put {
            path: dest.to_owned(),
            to,
            validate,
        })?;
        self.attributes().labels.set(host, dest).map(drop)
    }

    /// Copies a directory of the host: itself, or only what is in it where the source ends with `/`.
    fn tree(&self, host: &mut Host, src: &Path) -> Result<Report, Fault> {
        let mut dest = host.expand(&self.dest);
        let whole = self.src.as_ref().is_some_and(|src| !src.ends_with('/'));
        if let (true, Some(name)) = (whole, src.file_name()) {
            dest.push(name);
        }
        self.copy_dir(host, src, &dest)?;
        report(host, &dest.to_string_lossy(), &dest)
    }

    fn copy_dir(&self, host: &mut Host, src: &Path, dest: &Path) -> Result<(), Fault> {
        if !matches!(host.entry(&host.resolve(dest)?)?, Entry::Dir(_)) {
            self.directory(host, dest)?;
        }
        for name in host.list(src)?.unwrap_or_default() {
            let (from, to) = (src.join(&name), dest.join(&name));
            match host.entry(&from)? {
                Entry::Dir(_) => self.copy_dir(host, &from, &to)?,
                Entry::Link(target) if !*self.local_follow => drop(host.put(Put {
                    path: to,
                    to: To::Link { target },
                    validate: None,
                })?),
                Entry::Link(_) => {
                    let end = host.resolve(&from)?;
                    match host.entry(&end)? {
                        Entry::Dir(_) if from.starts_with(&end) => {}
                        Entry::Dir(_) => self.copy_dir(host, &end, &to)?,
                        Entry::File(meta, _) => self.copy_file(host, &end, &meta, &to)?,
                        _ => {}
                    }
                }
                Entry::File(meta, _) => self.copy_file(host, &from, &meta, &to)?,
                Entry::Special | Entry::Absent => {}
            }
        }
        Ok(())
    }

    fn copy_file(&self, host: &mut Host, from: &Path, meta: &Meta, to: &Path) -> Result<(), Fault> {
        let mode = match &self.mode {
            Some(Mode::Preserve) => Some(Mode::Octal(meta.mode)),
            other => other.clone(),
        };
        let bytes = host.read(from)?.unwrap_or_default();
        self.file(host, to, bytes.into(), mode)
    }

    fn owner(&self) -> Option<String> {
        self.owner.clone().map(String::from)
    }

    fn group(&self) -> Option<String> {
        self.group.clone().map(String::from)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use serde_json::{Value, json};

    use super::*;
    use crate::host::State;
    use crate::module::find;

    fn apply(dir: &Path, args: Value) -> Result<(Value, usize), String> {
        let state = State::at(dir.join("state").to_str());
        state.prepare().unwrap();
        let mut host = Host::apply(
            state,
            &format!("r{}", fs::read_dir(dir.join("state/txn")).unwrap().count()),
            "test",
        );
        let report = (find("ansible.builtin.copy").unwrap().run)(args, &mut host)
            .map_err(|fault| fault.message)?;
        let effects = host.end().len();
        Ok((Value::Object(report.fields), effects))
    }

    #[test]
    fn content_is_written_once_with_its_mode() {
        let dir = tempfile::tempdir().unwrap();
        let dest = dir.path().join("motd");
        let args = json!({ "dest": dest, "content": "hello\n", "mode": "0640" });
        let (report, effects) = apply(dir.path(), args.clone()).unwrap();
        assert_eq!(
            (effects, fs::read_to_string(&dest).unwrap().as_str()),
            (1, "hello\n")
        );
        assert_eq!(
            fs::metadata(&dest).unwrap().permissions().mode() & 0o7777,
            0o640
        );
        assert_eq!(
            report["checksum"],
            "f572d396fae9206628714fb2ce00f72e94f2258f"
        );
        assert_eq!(apply(dir.path(), args).unwrap().1, 0);
    }

    #[test]
    fn the_old_content_is_kept_where_backup_says() {
        let dir = tempfile::tempdir().unwrap();
        let dest = dir.path().join("conf");
        fs::write(&dest, "old").unwrap();
        let (report, _) = apply(
            dir.path(),
            json!({ "dest": dest, "content": "new", "backup": "yes" }),
        )
        .unwrap();
        let kept = Path::new(report["backup_file"].as_str().unwrap());
        assert_eq!(fs::read_to_string(kept).unwrap(), "old");
        assert_eq!(
            fs::metadata(kept).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(
            fs::read_dir(dir.path()).unwrap().count(),
            2,
            "nothing lies beside the file but the state"
        );
    }

    #[test]
    fn a_refused_content_leaves_a_link_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("real.conf"), "good").unwrap();
        let dest = dir.path().join("site.conf");
        symlink("real.conf", &dest).unwrap();
        let args = json!({ "dest": dest, "content": "bad", "validate": "grep -q good %s" });
        let fault = apply(dir.path(), args).unwrap_err();
        assert!(
            fault.starts_with("`grep -q good %s` refuses the new content of"),
            "{fault}"
        );
        assert_eq!(fs::read_link(&dest).unwrap(), Path::new("real.conf"));
        assert_eq!(
            fs::read_dir(dir.path()).unwrap().count(),
            3,
            "nothing staged is left"
        );

        let args = json!({ "dest": dest, "content": "good too", "validate": "grep -q good %s" });
        apply(dir.path(), args).unwrap();
        assert!(fs::symlink_metadata(&dest).unwrap().is_file());
        assert_eq!(
            fs::read_to_string(dir.path().join("real.conf")).unwrap(),
            "good"
        );
    }

    #[test]
    fn follow_writes_through_a_link() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("real"), "old").unwrap();
        let dest = dir.path().join("link");
        symlink("real", &dest).unwrap();
        apply(
            dir.path(),
            json!({ "dest": dest, "content": "new", "follow": true }),
        )
        .unwrap();
        assert_eq!(fs::read_to_string(dir.path().join("real")).unwrap(), "new");
        assert!(fs::symlink_metadata(&dest).unwrap().is_symlink());
    }

    #[test]
    fn a_source_of_the_host_goes_into_a_directory_under_its_name() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("from/sub")).unwrap();
        fs::write(dir.path().join("from/sub/a"), "a").unwrap();
        fs::set_permissions(
            dir.path().join("from/sub/a"),
            fs::Permissions::from_mode(0o751),
        )
        .unwrap();
        let to = format!("{}/to/", dir.path().display());
        let args = json!({ "src": dir.path().join("from/sub/a"), "dest": to, "remote_src": true, "mode": "preserve" });
        assert_eq!(apply(dir.path(), args).unwrap().1, 2);
        assert_eq!(
            fs::metadata(dir.path().join("to/a"))
                .unwrap()
                .permissions()
                .mode()
                & 0o777,
            0o751
        );

        let args = json!({ "src": format!("{}/from/", dir.path().display()), "dest": dir.path().join("all"), "remote_src": true });
        assert_eq!(apply(dir.path(), args.clone()).unwrap().1, 3);
        assert_eq!(
            fs::read_to_string(dir.path().join("all/sub/a")).unwrap(),
            "a"
        );
        assert_eq!(apply(dir.path(), args).unwrap().1, 0);
    }

    #[test]
    fn force_false_leaves_a_file_that_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let dest = dir.path().join("conf");
        fs::write(&dest, "mine").unwrap();
        assert_eq!(
            apply(
                dir.path(),
                json!({ "dest": dest, "content": "theirs", "force": false })
            )
            .unwrap()
            .1,
            0
        );
        assert_eq!(fs::read_to_string(&dest).unwrap(), "mine");
    }

    #[test]
    fn a_missing_directory_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let fault = apply(
            dir.path(),
            json!({ "dest": dir.path().join("no/file"), "content": "x" }),
        )
        .unwrap_err();
        assert!(
            fault.contains(&format!(
                "Destination directory {}/no does not exist",
                dir.path().display()
            )),
            "{fault}"
        );
        assert!(
            !dir.path().join("state/txn/r0").exists(),
            "a run that changed nothing leaves nothing"
        );
    }

    #[test]
    fn a_plan_sees_its_own_effects_and_writes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let mut host = Host::plan();
        let run = |host: &mut Host, name: &str, args: Value| {
            (find(name).unwrap().run)(args, host).map_err(|fault| fault.message)
        };
        let new = dir.path().join("new");
        run(
            &mut host,
            "file",
            json!({ "path": new, "state": "directory" }),
        )
        .unwrap();
        run(
            &mut host,
            "copy",
            json!({ "dest": new.join("a"), "content": "a\n" }),
        )
        .unwrap();
        run(
            &mut host,
            "copy",
            json!({ "src": new.join("a"), "dest": new.join("b"), "remote_src": true }),
        )
        .unwrap();
        assert_eq!(host.end().len(), 3);
        assert_eq!(
            host.read(&new.join("b")).unwrap().as_deref(),
            Some(&b"a\n"[..])
        );
        assert_eq!(host.list(&new).unwrap().unwrap(), ["a", "b"]);
        run(
            &mut host,
            "copy",
            json!({ "dest": new.join("a"), "content": "a\n" }),
        )
        .unwrap();
        assert_eq!(
            host.end().len(),
            0,
            "the second time there is nothing to do"
        );
        run(&mut host, "file", json!({ "path": new, "state": "absent" })).unwrap();
        assert_eq!(host.entry(&new.join("a")).unwrap(), Entry::Absent);
        let fault = run(
            &mut host,
            "copy",
            json!({ "dest": new.join("c"), "content": "" }),
        )
        .unwrap_err();
        assert!(fault.contains("does not exist"), "{fault}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_plan_validates_what_it_does_not_write() {
        let dir = tempfile::tempdir().unwrap();
        let mut host = Host::plan();
        let dest = dir.path().join("conf");
        let args = |content: &str| json!({ "dest": dest, "content": content, "validate": "grep -q good %s" });
        let run = find("copy").unwrap().run;
        let good = run(args("good"), &mut host);
        if good
            .as_ref()
            .is_err_and(|fault| fault.message.starts_with("cannot stage"))
        {
            return; // Without root there is no mount namespace.
        }
        good.unwrap();
        let fault = run(args("bad"), &mut host).unwrap_err();
        assert!(
            fault.message.contains("refuses the new content of"),
            "{fault}"
        );
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_validator_without_a_place_sees_the_whole_tree() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("main.conf"), "include part.conf").unwrap();
        fs::write(dir.path().join("part.conf"), "old").unwrap();
        let part = dir.path().join("part.conf");
        let grep = format!("grep -q new {}", part.display());
        let fault = apply(
            dir.path(),
            json!({ "dest": part, "content": "other", "validate": grep }),
        );
        match fault {
            Err(fault) if fault.starts_with("cannot stage") => return,
            other => assert!(
                other.unwrap_err().contains("refuses"),
                "the validator saw the staged file"
            ),
        }
        assert_eq!(fs::read_to_string(&part).unwrap(), "old");
        let both = format!(
            "sh -c 'grep -q new {} && grep -q include {}/main.conf'",
            part.display(),
            dir.path().display()
        );
        apply(
            dir.path(),
            json!({ "dest": part, "content": "new", "validate": both }),
        )
        .unwrap();
        assert_eq!(fs::read_to_string(&part).unwrap(), "new");
    }
}
