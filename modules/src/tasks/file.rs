use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::json;

use crate::args::{Bool, Mode, Text};
use crate::host::{Entry, Fault, Host, Meta, Put, To};
use crate::module::{ArgumentError, Module, Report, Task};

pub(super) static MODULE: Module = Module::of::<File>();

/// Makes and removes files, directories and links, and sets their modes and owners.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct File {
    /// The path, absolute.
    path: Text,
    /// What should be there. Without it: what is there, of which only mode and owners are set.
    state: Option<State>,
    /// The permissions: `"0644"`, or `u=rw,g=r,o=r`.
    mode: Option<Mode>,
    /// The owning user.
    owner: Option<Text>,
    /// The owning group.
    group: Option<Text>,
    /// Set mode and owners on all that is in the directory, too. Links in it are left alone.
    #[serde(default)]
    recurse: Bool,
    /// What a link points to.
    src: Option<Text>,
    /// Let a link take the place of a file or an empty directory, and point to what does not exist.
    #[serde(default)]
    force: Bool,
    /// Where the path is a link, set mode and owners of what it points to.
    #[serde(default = "yes")]
    follow: Bool,
    /// Only `preserve`: the time of the last change is left as it is.
    #[expect(
        dead_code,
        reason = "to accept the one value that it can have is all that there is to do"
    )]
    modification_time: Option<Preserve>,
    /// Only `preserve`: the time of the last access is left as it is.
    #[expect(
        dead_code,
        reason = "to accept the one value that it can have is all that there is to do"
    )]
    access_time: Option<Preserve>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
enum State {
    /// A regular file that exists already: only its mode and owners are set.
    File,
    /// A directory; it is made with the directories above it.
    Directory,
    /// A symbolic link to `src`.
    Link,
    /// A regular file; an empty one is made where there is none. The times of one that is there are not moved.
    Touch,
    /// Nothing; a directory is removed with all that is in it.
    Absent,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
enum Preserve {
    Preserve,
}

fn yes() -> Bool {
    Bool(true)
}

impl Task for File {
    const NAME: &'static str = "file";
    const ARGUMENT_ALIASES: &'static [(&'static str, &'static str)] =
        &[("dest", "path"), ("name", "path")];

    fn check(&self) -> Result<(), ArgumentError> {
        let state = self.state;
        if self.recurse.0 && !matches!(state, None | Some(State::Directory)) {
            return Err(ArgumentError::of(
                "recurse",
                "it goes with `state: directory` only",
            ));
        }
        if self.src.is_some() && !matches!(state, None | Some(State::Link)) {
            return Err(ArgumentError::of(
                "src",
                "it goes with `state: link` only; use `copy` to copy a file",
            ));
        }
        if self.mode == Some(Mode::Preserve) {
            return Err(ArgumentError::of(
                "mode",
                "`preserve` means nothing here: there is no source",
            ));
        }
        Ok(())
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        let path = PathBuf::from(&*self.path);
        let place = if self.follow.0 {
            host.resolve(&path)?
        } else {
            path.clone()
        };
        let there = host.entry(&place)?;
        let state = self
            .state
            .unwrap_or(match (&there, self.src.is_some(), self.recurse.0) {
                (_, true, _) => State::Link,
                (Entry::Dir(_), ..) | (Entry::Absent, _, true) => State::Directory,
                _ => State::File,
            });
        match state {
            State::Absent => {
                host.put(Put::absent(&path))?;
                return Ok(Report::of(
                    json!({ "path": self.path.0, "state": "absent" }),
                ));
            }
            State::File if there == Entry::Absent => {
                return Err(Fault::new(format!(
                    "{path} does not exist: `state: touch` makes an empty file, `copy` one with content",
                    path = path.display()
                )));
            }
            State::File => drop(host.put(self.wanted(&place, &there))?),
            State::Touch if there == Entry::Absent => {
                let to = To::File {
                    content: Some("".into()),
                    mode: self.mode.clone(),
                    owner: self.owner(),
                    group: self.group(),
                };
                host.put(Put {
                    path: place.clone(),
                    to,
                    validate: None,
                })?;
            }
            State::Touch => drop(host.put(self.wanted(&place, &there))?),
            State::Directory => {
                self.directories(host, &place)?;
                if self.recurse.0 {
                    self.below(host, &place)?;
                }
            }
            State::Link => self.link(host, &path)?,
        }
        report(
            host,
            &self.path,
            if state == State::Link { &path } else { &place },
        )
    }
}

impl File {
    fn owner(&self) -> Option<String> {
        self.owner.clone().map(String::from)
    }

    fn group(&self) -> Option<String> {
        self.group.clone().map(String::from)
    }

    /// What is there, with the mode and owners of the arguments.
    fn wanted(&self, path: &Path, there: &Entry) -> Put {
        let (mode, owner, group) = (self.mode.clone(), self.owner(), self.group());
        let to = match there {
            Entry::Dir(_) => To::Dir { mode, owner, group },
            _ => To::File {
                content: None,
                mode,
                owner,
                group,
            },
        };
        Put {
            path: path.to_owned(),
            to,
            validate: None,
        }
    }

    /// The directory, and those above it that are missing, with the same mode and owners.
    fn directories(&self, host: &mut Host, path: &Path) -> Result<(), Fault> {
        let mut missing = Vec::new();
        let mut above = path.parent();
        while let Some(dir) = above.filter(|dir| matches!(host.entry(dir), Ok(Entry::Absent))) {
            missing.push(dir.to_owned());
            above = dir.parent();
        }
        missing.reverse();
        missing.push(path.to_owned());
        for dir in missing {
            let to = To::Dir {
                mode: self.mode.clone(),
                owner: self.owner(),
                group: self.group(),
            };
            host.put(Put {
                path: dir,
                to,
                validate: None,
            })?;
        }
        Ok(())
    }

    fn below(&self, host: &mut Host, dir: &Path) -> Result<(), Fault> {
        for name in host.list(dir)?.unwrap_or_default() {
            let path = dir.join(name);
            let there = host.entry(&path)?;
            if matches!(there, Entry::Dir(_) | Entry::File(..)) {
                host.put(self.wanted(&path, &there))?;
            }
            if matches!(there, Entry::Dir(_)) {
                self.below(host, &path)?;
            }
        }
        Ok(())
    }

    fn link(&self, host: &mut Host, path: &Path) -> Result<(), Fault> {
        let there = host.entry(path)?;
        let shown = path.display();
        let target = match (&self.src, &there) {
            (Some(src), _) => src.0.clone(),
            (None, Entry::Link(target)) => target.clone(),
            (None, _) => {
                return Err(Fault::new(format!(
                    "`src` is missing: it says what the link {shown} points to"
                )));
            }
        };
        let end = path.parent().unwrap_or(path).join(&target);
        if !self.force.0 && host.entry(&host.resolve(&end)?)? == Entry::Absent && !host.open() {
            return Err(Fault::new(format!(
                "{shown} would point to {}, which does not exist: `force: true` makes the link all the same",
                end.display()
            )));
        }
        match there {
            Entry::Absent | Entry::Link(_) => {}
            _ if !self.force.0 => {
                return Err(Fault::new(format!(
                    "{shown} is no link but something else: `force: true` lets a link take its place"
                )));
            }
            Entry::Dir(_) => {
                if host.list(path)?.is_some_and(|names| !names.is_empty()) {
                    return Err(Fault::new(format!(
                        "the directory {shown} is not empty: a link does not take its place"
                    )));
                }
                host.put(Put::absent(path))?;
            }
            Entry::File(..) | Entry::Special => {}
        }
        host.put(Put {
            path: path.to_owned(),
            to: To::Link { target },
            validate: None,
        })?;
        if self.follow.0 && (self.mode.is_some() || self.owner.is_some() || self.group.is_some()) {
            let end = host.resolve(&end)?;
            let there = host.entry(&end)?;
            if there != Entry::Absent {
                host.put(self.wanted(&end, &there))?;
            }
        }
        Ok(())
    }
}

/// What `register` sees of an entry, in Ansible's words.
pub(super) fn report(host: &Host, shown: &str, path: &Path) -> Result<Report, Fault> {
    let meta = |kind: &str, meta: &Meta| json!({ "path": shown, "state": kind, "mode": format!("{:04o}", meta.mode), "owner": meta.owner, "group": meta.group });
    Ok(Report::of(match host.entry(path)? {
        Entry::File(file, content) => {
            let mut fields = meta("file", &file);
            fields["size"] = content.size.into();
            fields
        }
        Entry::Dir(dir) => meta("directory", &dir),
        Entry::Link(target) => {
            json!({ "path": shown, "dest": shown, "state": "link", "src": target })
        }
        Entry::Special | Entry::Absent => json!({ "path": shown }),
    }))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use serde_json::Value;

    use super::*;
    use crate::host::State as HostState;
    use crate::module::find;

    /// Runs the module for real in a directory; what it reports, and how many effects it had.
    fn apply(dir: &Path, args: Value) -> Result<(Value, usize), String> {
        let state = HostState::at(dir.join("state").to_str());
        state.prepare().unwrap();
        let mut host = Host::apply(
            state,
            &format!("r{}", fs::read_dir(dir.join("state/txn")).unwrap().count()),
            "test",
        );
        let report = (find("file").unwrap().run)(args, &mut host).map_err(|fault| fault.message)?;
        let effects = host.end().len();
        host.keep().unwrap();
        Ok((Value::Object(report.fields), effects))
    }

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn a_directory_is_made_with_those_above_it_and_then_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b/c");
        let args = json!({ "path": path, "state": "directory", "mode": "0750" });
        let (report, effects) = apply(dir.path(), args.clone()).unwrap();
        assert_eq!(
            (effects, mode(&path), mode(&dir.path().join("a"))),
            (3, 0o750, 0o750)
        );
        assert_eq!(
            (&report["state"], &report["mode"]),
            (&json!("directory"), &json!("0750"))
        );
        assert_eq!(apply(dir.path(), args).unwrap().1, 0);
    }

    #[test]
    fn recurse_reaches_files_with_symbolic_modes() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().join("top");
        fs::create_dir_all(top.join("sub")).unwrap();
        fs::write(top.join("sub/file"), "x").unwrap();
        fs::set_permissions(top.join("sub/file"), fs::Permissions::from_mode(0o644)).unwrap();
        let args =
            json!({ "path": top, "state": "directory", "mode": "u=rwX,go=", "recurse": true });
        assert_eq!(apply(dir.path(), args.clone()).unwrap().1, 3);
        assert_eq!(
            (mode(&top.join("sub")), mode(&top.join("sub/file"))),
            (0o700, 0o600)
        );
        assert_eq!(apply(dir.path(), args).unwrap().1, 0);
    }

    #[test]
    fn a_link_is_made_moved_and_kept() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("one"), "1").unwrap();
        fs::write(dir.path().join("two"), "2").unwrap();
        let link = dir.path().join("link");
        for (target, effects) in [("one", 1), ("one", 0), ("two", 1)] {
            let args = json!({ "dest": link, "src": target, "state": "link" });
            assert_eq!(apply(dir.path(), args).unwrap().1, effects, "{target}");
            assert_eq!(fs::read_link(&link).unwrap(), Path::new(target));
        }
        let broken = json!({ "dest": link, "src": "three", "state": "link" });
        assert!(
            apply(dir.path(), broken)
                .unwrap_err()
                .ends_with("which does not exist: `force: true` makes the link all the same")
        );
        let over_file = json!({ "dest": dir.path().join("one"), "src": "two", "state": "link" });
        assert!(
            apply(dir.path(), over_file)
                .unwrap_err()
                .ends_with("`force: true` lets a link take its place")
        );
    }

    #[test]
    fn absent_removes_a_link_and_not_what_it_points_to() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("real/deep")).unwrap();
        fs::write(dir.path().join("real/deep/file"), "x").unwrap();
        symlink("real", dir.path().join("link")).unwrap();
        assert_eq!(
            apply(
                dir.path(),
                json!({ "path": dir.path().join("link"), "state": "absent" })
            )
            .unwrap()
            .1,
            1
        );
        assert!(dir.path().join("real/deep/file").exists());
        assert_eq!(
            apply(
                dir.path(),
                json!({ "path": dir.path().join("real"), "state": "absent" })
            )
            .unwrap()
            .1,
            3
        );
        assert!(!dir.path().join("real").exists());
        assert_eq!(
            apply(
                dir.path(),
                json!({ "path": dir.path().join("real"), "state": "absent" })
            )
            .unwrap()
            .1,
            0
        );
    }

    #[test]
    fn touch_makes_an_empty_file_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("flag");
        let args = json!({ "path": path, "state": "touch", "mode": "0600" });
        assert_eq!(apply(dir.path(), args.clone()).unwrap().1, 1);
        assert_eq!((fs::read(&path).unwrap(), mode(&path)), (Vec::new(), 0o600));
        assert_eq!(apply(dir.path(), args).unwrap().1, 0);
    }

    #[test]
    fn what_cannot_be_done_names_the_path() {
        let dir = tempfile::tempdir().unwrap();
        let missing = dir.path().join("missing");
        let fault = apply(dir.path(), json!({ "path": missing, "state": "file" })).unwrap_err();
        assert_eq!(
            fault,
            format!(
                "{} does not exist: `state: touch` makes an empty file, `copy` one with content",
                missing.display()
            )
        );
        let fault = apply(
            dir.path(),
            json!({ "path": dir.path(), "owner": "no-such-user" }),
        )
        .unwrap_err();
        assert!(
            fault.starts_with("there is no user `no-such-user` on this host"),
            "{fault}"
        );
        let fault = apply(dir.path(), json!({ "path": "relative" })).unwrap_err();
        assert!(fault.contains("not absolute"), "{fault}");
        let check = find("file").unwrap().check;
        assert_eq!(
            check(&json!({ "path": "/a", "state": "file", "recurse": true }))
                .unwrap_err()
                .argument
                .as_deref(),
            Some("recurse")
        );
    }
}
