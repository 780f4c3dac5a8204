use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::edited::{Attributes, unknown, with_attributes};
use crate::args::{Bool, Mode, Text};
use crate::host::{Entry, Fault, Host, Put, Time, To};
use crate::module::{ArgumentError, Module, Report, Task};

pub(super) static MODULE: Module = Module::of::<File>();

with_attributes! {
    /// Makes and removes files, directories and links, and sets their modes, owners and times.
    struct File {
        /// The path.
        path: Text,
        /// What should be there. Without it: what is there, of which only the attributes are set.
        state: Option<State>,
        /// Set the attributes on all that is in the directory, too.
        #[serde(default)]
        recurse: Bool,
        /// What a link points to, or the file that gets another name with `state: hard`.
        src: Option<Text>,
        /// Let a link take the place of a file or an empty directory, and point to what does not exist.
        #[serde(default)]
        force: Bool,
        /// Where the path is a link, set the attributes of what it points to; with `recurse` those of links in it, too.
        #[serde(default = "yes")]
        follow: Bool,
        /// The time of the last change: `preserve`, `now`, or one in `modification_time_format`. `now` for `touch`.
        modification_time: Option<Text>,
        /// How `modification_time` is written: `%Y`, `%m`, `%d`, `%H`, `%M`, `%S`, in the host's time zone; `%s` for seconds since 1970.
        #[serde(default = "format")]
        modification_time_format: Text,
        /// The time of the last access: `preserve`, `now`, or one in `access_time_format`. `now` for `touch`.
        access_time: Option<Text>,
        /// How `access_time` is written.
        #[serde(default = "format")]
        access_time_format: Text,
        /// Taken for Ansible's sake.
        #[serde(default, rename = "_diff_peek")]
        _diff_peek: Option<Bool>,
        /// Taken for Ansible's sake.
        #[serde(default, rename = "_original_basename")]
        _original_basename: Option<Text>,
    }
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
enum State {
    /// A regular file that exists already: only its attributes are set.
    File,
    /// A directory; it is made with the directories above it.
    Directory,
    /// A symbolic link to `src`.
    Link,
    /// Another name of the file `src`.
    Hard,
    /// A regular file; an empty one is made where there is none. The times of one that is there are set.
    Touch,
    /// Nothing; a directory is removed with all that is in it.
    Absent,
}

fn yes() -> Bool {
    Bool(true)
}

fn format() -> Text {
    "%Y%m%d%H%M.%S".into()
}

impl Task for File {
    const NAME: &'static str = "file";
    const ARGUMENT_ALIASES: &'static [(&'static str, &'static str)] =
        &[("dest", "path"), ("name", "path"), ("attr", "attributes")];

    fn check(&self) -> Result<(), ArgumentError> {
        if self.mode == Some(Mode::Preserve) {
            return Err(ArgumentError::of(
                "mode",
                "`preserve` means nothing here: there is no source",
            ));
        }
        Ok(())
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        let warnings = self.unknown_owners(host);
        let warn = |fields: &mut Map<String, Value>| {
            if !warnings.is_empty() {
                fields.insert("warnings".to_owned(), json!(warnings));
            }
        };
        match self.bring(host) {
            Ok(mut report) => {
                warn(&mut report.fields);
                Ok(report)
            }
            Err(mut fault) => {
                warn(&mut fault.fields);
                Err(fault)
            }
        }
    }
}

impl File {
    fn bring(&self, host: &mut Host) -> Result<Report, Fault> {
        let path = host.expand(&self.path);
        let wrong = |message: String| Fault::new(message).with("path", &*self.path);
        let own = host.entry(&path);
        if self.state == Some(State::Absent) {
            return self.remove(host, &path, own);
        }
        let own = own?;
        let place = if *self.follow {
            host.resolve(&path)?
        } else {
            path.clone()
        };
        let there = host.entry(&place)?;
        let state = self.state.unwrap_or(match (&own, &there) {
            (Entry::Link(_), _) => State::Link,
            (_, Entry::Dir(_)) => State::Directory,
            (_, Entry::Absent) if *self.recurse => State::Directory,
            _ => State::File,
        });
        if *self.recurse && state != State::Directory {
            return Err(wrong(
                "recurse option requires state to be 'directory'".to_owned(),
            ));
        }
        let links = matches!(self.state, Some(State::Link | State::Hard));
        if self.src.is_some() && !links {
            return Err(wrong(
                "src option requires state to be 'link' or 'hard'".to_owned(),
            ));
        }
        let times = self.times(host, state == State::Touch)?;
        match state {
            State::Absent => Ok(Report::default()),
            State::File => {
                if let kind @ ("absent" | "directory" | "link") = kind(&there) {
                    let shown = place.display();
                    let message = format!("file ({shown}) is {kind}, cannot continue");
                    return Err(wrong(message).with("state", kind));
                }
                self.attribute(host, &place, &there, times)?;
                report(host, &place.to_string_lossy(), &place)
            }
            State::Touch => {
                let made = there == Entry::Absent;
                if made {
                    self.make_empty(host, &place)?;
                }
                let there = host.entry(&place)?;
                // A new file's times are those of its making, unless others are asked for.
                let fresh = |time| {
                    if made && time == Time::Now {
                        Time::Kept
                    } else {
                        time
                    }
                };
                self.attribute(host, &place, &there, (fresh(times.0), fresh(times.1)))?;
                as_dest(report(host, &place.to_string_lossy(), &place)?, &path)
            }
            State::Directory => {
                if !matches!(there, Entry::Dir(_) | Entry::Absent) {
                    return Err(wrong(format!(
                        "{} already exists as a {}",
                        place.display(),
                        kind(&there)
                    )));
                }
                self.directories(host, &place, times)?;
                if *self.recurse {
                    self.below(host, &place, times)?;
                }
                report(host, &place.to_string_lossy(), &place)
            }
            State::Link => {
                let target = self.link(host, &path, times)?;
                let mut told = as_dest(report(host, &self.path, &path)?, &path)?;
                told.fields.insert("src".to_owned(), target.into());
                Ok(told)
            }
            State::Hard => {
                self.hard(host, &path, times)?;
                let mut told = as_dest(report(host, &self.path, &path)?, &path)?;
                if let Some(src) = &self.src {
                    told.fields.insert("src".to_owned(), (**src).into());
                }
                told.fields.insert("state".to_owned(), "hard".into());
                Ok(told)
            }
        }
    }

    fn remove(
        &self,
        host: &mut Host,
        path: &Path,
        own: Result<Entry, Fault>,
    ) -> Result<Report, Fault> {
        let mut report = Report::of(json!({ "path": self.path.0, "state": "absent" }));
        match own {
            Err(fault) if fault.message.contains("permission denied") => {
                let warning = format!(
                    "Insufficient permissions to access {}: Treating as absent.",
                    path.display()
                );
                report
                    .fields
                    .insert("warnings".to_owned(), json!([warning]));
            }
            Err(fault) => return Err(fault),
            // A package may bring what is to go.
            Ok(Entry::Absent) if host.open() => return Ok(unknown(path)),
            Ok(_) => drop(host.put(Put::absent(path))?),
        }
        Ok(report)
    }

    /// Owners that a plan would give a file to and that the host does not have, in Ansible's words.
    fn unknown_owners(&self, host: &Host) -> Vec<String> {
        let mut warnings = Vec::new();
        let mut unknown = |kind: &str, id: &str, name: &Option<Text>, known: bool| {
            let Some(name) = name.as_ref().filter(|_| !known && host.planning()) else {
                return;
            };
            let with = match name.parse::<u32>() {
                Ok(_) => format!(" with {id}"),
                Err(_) => String::new(),
            };
            warnings.push(format!(
                "failed to look up {kind}{with} {name}. Create {kind} up to this point in real play"
            ));
        };
        let has = |name: &Option<Text>, has: &dyn Fn(&str) -> bool| name.as_deref().is_none_or(has);
        unknown(
            "user",
            "uid",
            &self.owner,
            has(&self.owner, &|name| host.has_user(name)),
        );
        unknown(
            "group",
            "gid",
            &self.group,
            has(&self.group, &|name| host.has_group(name)),
        );
        warnings
    }

    /// The times of the last change and the last access that are asked for.
    fn times(&self, host: &Host, touch: bool) -> Result<(Time, Time), Fault> {
        let time = |asked: &Option<Text>, format: &str| match asked.as_deref() {
            None if touch => Ok(Time::Now),
            None | Some("preserve" | "") => Ok(Time::Kept),
            Some("now") => Ok(Time::Now),
            Some(text) => parsed(host, text, format),
        };
        Ok((
            time(&self.modification_time, &self.modification_time_format)?,
            time(&self.access_time, &self.access_time_format)?,
        ))
    }

    /// Sets the attributes of what is there.
    fn attribute(
        &self,
        host: &mut Host,
        path: &Path,
        there: &Entry,
        times: (Time, Time),
    ) -> Result<(), Fault> {
        let Attributes {
            mode,
            owner,
            group,
            labels,
            ..
        } = self.attributes();
        let (owner, group) = (owner.map(str::to_owned), group.map(str::to_owned));
        let asked = mode.is_some() || owner.is_some() || group.is_some();
        let to = match there {
            Entry::Dir(_) => Some(To::Dir { mode, owner, group }),
            // A link has none of its own, and a device without any asked for is left alone.
            Entry::Link(_) | Entry::Absent => None,
            Entry::Special if !asked => None,
            Entry::File(..) | Entry::Special => Some(To::File {
                content: None,
                mode,
                owner,
                group,
            }),
        };
        if let Some(to) = to {
            host.put(Put {
                path: path.to_owned(),
                to,
                validate: None,
            })?;
            labels.set(host, path)?;
        }
        host.set_times(path, times.0, times.1).map(drop)
    }

    fn make_empty(&self, host: &mut Host, path: &Path) -> Result<(), Fault> {
        let Attributes {
            mode, owner, group, ..
        } = self.attributes();
        host.put(Put {
            path: path.to_owned(),
            to: To::File {
                content: Some("".into()),
                mode,
                owner: owner.map(str::to_owned),
                group: group.map(str::to_owned),
            },
            validate: None,
        })
        .map(drop)
    }

    /// The directory, and those above it that are missing, with the same attributes.
    fn directories(&self, host: &mut Host, path: &Path, times: (Time, Time)) -> Result<(), Fault> {
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
                owner: self.owner.clone().map(String::from),
                group: self.group.clone().map(String::from),
            };
            host.put(Put {
                path: dir.clone(),
                to,
                validate: None,
            })?;
            self.attributes().labels.set(host, &dir)?;
        }
        host.set_times(path, times.0, times.1).map(drop)
    }

    fn below(&self, host: &mut Host, dir: &Path, times: (Time, Time)) -> Result<(), Fault> {
        for name in host.list(dir)?.unwrap_or_default() {
            let mut path = dir.join(name);
            let mut there = host.entry(&path)?;
            if matches!(there, Entry::Link(_)) && *self.follow {
                path = host.resolve(&path)?;
                there = host.entry(&path)?;
            }
            if !matches!(there, Entry::Dir(_) | Entry::File(..)) {
                continue;
            }
            self.attribute(host, &path, &there, times)?;
            // A link may lead back to where it lies.
            if matches!(there, Entry::Dir(_)) && !dir.starts_with(&path) {
                self.below(host, &path, times)?;
            }
        }
        Ok(())
    }

    /// Makes the link; what it points to.
    fn link(&self, host: &mut Host, path: &Path, times: (Time, Time)) -> Result<String, Fault> {
        let there = host.entry(path)?;
        let shown = path.display();
        let wrong = |message: String| Fault::new(message).with("path", &*self.path);
        let target = match (&self.src, &there) {
            (Some(src), _) => src.0.clone(),
            (None, Entry::Link(target)) => target.clone(),
            (None, _) => {
                return Err(Fault::new("src is required for creating new symlinks"));
            }
        };
        // Into a directory in its place a link would be read from.
        let from = match &there {
            Entry::Dir(_) => path,
            _ => path.parent().unwrap_or(path),
        };
        let end = from.join(&target);
        if !*self.force
            && self.src.is_some()
            && host.entry(&host.resolve(&end)?)? == Entry::Absent
            && !host.open()
        {
            return Err(wrong(format!(
                "src file does not exist, use 'force=yes' if you really want to create the link: {}",
                end.display()
            ))
            .with("src", target));
        }
        match &there {
            Entry::Absent | Entry::Link(_) => {}
            other if !*self.force => {
                return Err(wrong(format!(
                    "refusing to convert from {} to symlink for {shown}",
                    kind(other)
                )));
            }
            Entry::Dir(_) => {
                if host.list(path)?.is_some_and(|names| !names.is_empty()) {
                    return Err(wrong(format!(
                        "the directory {shown} is not empty, refusing to convert it"
                    )));
                }
                host.put(Put::absent(path))?;
            }
            Entry::File(..) | Entry::Special => {}
        }
        host.put(Put {
            path: path.to_owned(),
            to: To::Link {
                target: target.clone(),
            },
            validate: None,
        })?;
        if *self.follow {
            let end = host.resolve(&path.parent().unwrap_or(path).join(&target))?;
            let there = host.entry(&end)?;
            self.attribute(host, &end, &there, times)?;
        }
        Ok(target)
    }

    fn hard(&self, host: &mut Host, path: &Path, times: (Time, Time)) -> Result<(), Fault> {
        let there = host.entry(path)?;
        let wrong = |message: String| Fault::new(message).with("dest", &*self.path);
        let Some(src) = &self.src else {
            // A file that has other names already is one.
            let names = std::fs::symlink_metadata(path).map_or(0, |meta| meta.nlink());
            if matches!(there, Entry::File(..)) && names > 1 {
                return self.attribute(host, path, &there, times);
            }
            return Err(Fault::new("src is required for creating new hardlinks"));
        };
        let mut source = host.expand(src);
        if *self.follow {
            source = host.resolve(&source)?;
        }
        match host.entry(&source)? {
            Entry::Absent if !host.open() => {
                return Err(wrong("src does not exist".to_owned()).with("src", &**src));
            }
            Entry::Dir(_) => {
                return Err(wrong(format!("{src} is a directory: it has one name only")));
            }
            _ => {}
        }
        match &there {
            Entry::Absent | Entry::File(..) => {}
            other if !*self.force => {
                return Err(wrong(format!(
                    "Cannot convert from {} to hard link for {}",
                    kind(other),
                    path.display()
                )));
            }
            Entry::Dir(_) => {
                if host.list(path)?.is_some_and(|names| !names.is_empty()) {
                    return Err(wrong(format!(
                        "the directory {} is not empty, refusing to convert it",
                        path.display()
                    )));
                }
                host.put(Put::absent(path))?;
            }
            _ => {}
        }
        host.link_hard(path, &source)?;
        let there = host.entry(path)?;
        self.attribute(host, path, &there, times)
    }
}

/// A time in a format of `strptime`, in the host's time zone.
fn parsed(host: &Host, text: &str, format: &str) -> Result<Time, Fault> {
    let wrong = || {
        Fault::new(format!(
            "Error while obtaining timestamp for time {text} using format {format}: time data '{text}' does not match format '{format}'"
        ))
    };
    let mut rest = text;
    let mut fields = [1970, 1, 1, 0, 0, 0];
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            rest = rest.strip_prefix(letter).ok_or_else(wrong)?;
            continue;
        }
        let (field, most) = match letters.next() {
            Some('Y') => (0, 4),
            Some('m') => (1, 2),
            Some('d') => (2, 2),
            Some('H') => (3, 2),
            Some('M') => (4, 2),
            Some('S') => (5, 2),
            Some('s') => return rest.parse().map(|at| Time::At(at, 0)).map_err(|_| wrong()),
            Some('%') => {
                rest = rest.strip_prefix('%').ok_or_else(wrong)?;
                continue;
            }
            other => {
                let other = other.map(String::from).unwrap_or_default();
                return Err(Fault::new(format!(
                    "`%{other}` in the format `{format}` is not supported"
                )));
            }
        };
        let digits = rest
            .bytes()
            .take(most)
            .take_while(u8::is_ascii_digit)
            .count();
        fields[field] = rest[..digits].parse::<u32>().map_err(|_| wrong())?;
        rest = &rest[digits..];
    }
    if !rest.is_empty() {
        return Err(wrong());
    }
    let [year, month, day, hour, minute, second] = fields;
    let date = format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}");
    let answer = host.probe(&["date", "-d", &date, "+%s"])?;
    let seconds = answer.text().trim().parse().ok().filter(|_| answer.ok());
    seconds.map(|at| Time::At(at, 0)).ok_or_else(wrong)
}

/// What Ansible calls a thing.
fn kind(entry: &Entry) -> &'static str {
    match entry {
        Entry::Absent => "absent",
        Entry::File(..) | Entry::Special => "file",
        Entry::Dir(_) => "directory",
        Entry::Link(_) => "link",
    }
}

/// A report that says `dest` where others say `path`.
fn as_dest(mut report: Report, path: &Path) -> Result<Report, Fault> {
    report.fields.remove("path");
    let dest = path.to_string_lossy().into_owned();
    report.fields.insert("dest".to_owned(), dest.into());
    Ok(report)
}

/// What `register` sees of an entry, in Ansible's words.
pub(super) fn report(host: &Host, shown: &str, path: &Path) -> Result<Report, Fault> {
    let entry = host.entry(path)?;
    let mut fields = Map::from_iter([("path".to_owned(), shown.into())]);
    if entry == Entry::Absent {
        fields.insert("state".to_owned(), "absent".into());
        return Ok(Report::of(fields.into()));
    }
    fields.insert("state".to_owned(), kind(&entry).into());
    let mode = |mode: u32| format!("0{:03o}", mode & 0o7777);
    if let Ok(meta) = std::fs::symlink_metadata(path) {
        let (owner, group) = host.owners(meta.uid(), meta.gid());
        let own = json!({
            "mode": mode(meta.mode()), "owner": owner, "group": group,
            "uid": meta.uid(), "gid": meta.gid(), "size": meta.size(),
        });
        fields.extend(Report::of(own).fields);
        if matches!(entry, Entry::File(..)) && meta.nlink() > 1 {
            fields.insert("state".to_owned(), "hard".into());
        }
    }
    // What a plan has made of it goes over what the machine says.
    if let Entry::File(meta, _) | Entry::Dir(meta) = &entry {
        let (uid, gid) = host.numbers(meta);
        let own = json!({"mode": mode(meta.mode), "owner": meta.owner, "group": meta.group, "uid": uid, "gid": gid});
        fields.extend(Report::of(own).fields);
    }
    match &entry {
        Entry::File(_, content) => drop(fields.insert("size".to_owned(), content.size.into())),
        Entry::Link(target) => drop(fields.insert("src".to_owned(), target.as_str().into())),
        _ => {}
    }
    Ok(Report::of(fields.into()))
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
    fn what_a_command_before_may_make_is_not_known_to_be_absent() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("default");
        let gone = serde_json::json!({"path": path, "state": "absent"});
        let mut host = Host::plan();
        let status = |host: &mut Host| (MODULE.run)(gone.clone(), host).unwrap().status;
        assert_eq!(status(&mut host), None);
        host.command(crate::host::Command {
            argv: vec!["make".to_owned()],
            line: "make".to_owned(),
            ..crate::host::Command::default()
        })
        .unwrap();
        assert_eq!(status(&mut host), Some(crate::module::Status::Unknown));
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
        assert_eq!(
            apply(dir.path(), broken).unwrap_err(),
            format!(
                "src file does not exist, use 'force=yes' if you really want to create the link: {}/three",
                dir.path().display()
            )
        );
        let one = dir.path().join("one");
        let over_file = json!({ "dest": one, "src": "two", "state": "link" });
        assert_eq!(
            apply(dir.path(), over_file).unwrap_err(),
            format!(
                "refusing to convert from file to symlink for {}",
                one.display()
            )
        );
        let forced = json!({ "dest": one, "src": "two", "state": "link", "force": true });
        assert_eq!(apply(dir.path(), forced).unwrap().0["src"], "two");
    }

    #[test]
    fn a_file_gets_another_name() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) = (dir.path().join("one"), dir.path().join("two"));
        fs::write(&one, "1").unwrap();
        let args = json!({ "dest": two, "src": one, "state": "hard" });
        let (report, effects) = apply(dir.path(), args.clone()).unwrap();
        assert_eq!((effects, &report["state"]), (1, &json!("hard")));
        assert_eq!(apply(dir.path(), args).unwrap().1, 0);
        let fault = |args| apply(dir.path(), args).unwrap_err();
        assert_eq!(
            fault(
                json!({ "dest": dir.path().join("x"), "src": dir.path().join("no"), "state": "hard" })
            ),
            "src does not exist"
        );
        assert_eq!(
            fault(json!({ "dest": dir.path().join("x"), "state": "hard" })),
            "src is required for creating new hardlinks"
        );
    }

    #[test]
    fn times_are_set_as_they_are_written() {
        use std::os::unix::fs::MetadataExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        fs::write(&path, "").unwrap();
        let args = json!({ "path": path, "modification_time": "1644329640", "modification_time_format": "%s" });
        assert_eq!(apply(dir.path(), args.clone()).unwrap().1, 1);
        assert_eq!(fs::metadata(&path).unwrap().mtime(), 1_644_329_640);
        assert_eq!(apply(dir.path(), args).unwrap().1, 0);
        let fault = apply(dir.path(), json!({ "path": path, "access_time": "x" })).unwrap_err();
        assert!(
            fault.ends_with("time data 'x' does not match format '%Y%m%d%H%M.%S'"),
            "{fault}"
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
    fn touch_makes_an_empty_file_and_sets_the_times_of_one_that_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("flag");
        let args = json!({ "path": path, "state": "touch", "mode": "0600" });
        assert_eq!(apply(dir.path(), args.clone()).unwrap().1, 1);
        assert_eq!((fs::read(&path).unwrap(), mode(&path)), (Vec::new(), 0o600));
        assert_eq!(apply(dir.path(), args).unwrap().1, 1);
        let kept = json!({ "path": path, "state": "touch", "access_time": "preserve", "modification_time": "preserve" });
        assert_eq!(apply(dir.path(), kept).unwrap().1, 0);
    }

    #[test]
    fn what_cannot_be_done_names_the_path() {
        let dir = tempfile::tempdir().unwrap();
        let missing = dir.path().join("missing");
        let fault = apply(dir.path(), json!({ "path": missing, "state": "file" })).unwrap_err();
        assert_eq!(
            fault,
            format!("file ({}) is absent, cannot continue", missing.display())
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
        let fault = apply(dir.path(), json!({ "path": "" })).unwrap_err();
        assert_eq!(fault, "the path is empty");
        let args = json!({ "path": "/etc/passwd", "state": "file", "recurse": true });
        assert_eq!(
            apply(dir.path(), args).unwrap_err(),
            "recurse option requires state to be 'directory'"
        );
    }
}
