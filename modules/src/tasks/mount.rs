use std::path::{Path, PathBuf};

use fleet_wire::SettingKind;
use serde::Deserialize;
use serde_json::json;

use crate::args::{Bool, Text};
use crate::host::{Entry, Fault, Host, Put, Setting, To};
use crate::module::{ArgumentError, Module, Report, Task};

use self::fstab::{Fstab, Line};

mod fstab;

pub(super) static MODULE: Module = Module::of::<Mount>();

/// Mounts a file system, now and at each boot.
///
/// The line of `/etc/fstab` and the mount are two effects; an undo puts back the file and unmounts or mounts again.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Mount {
    /// Where it is mounted.
    path: Text,
    /// What is wanted: `mounted` (now and at boot), `present` (at boot), `ephemeral` (now), `unmounted` (not now), `remounted`,
    /// `absent_from_fstab` (not at boot), `absent` (neither, and the directory goes).
    state: State,
    /// The device, image or remote directory.
    src: Option<Text>,
    /// The type of file system.
    fstype: Option<Text>,
    /// The options.
    opts: Option<Text>,
    /// The file to write instead of `/etc/fstab`.
    fstab: Option<Text>,
    /// Whether it is mounted at boot.
    #[serde(default = "yes")]
    boot: Bool,
    /// Whether dump(8) saves it.
    dump: Option<Text>,
    /// When fsck(8) checks it.
    passno: Option<Text>,
    /// Say where the old file is kept: an undo of the run finds it there.
    #[serde(default)]
    backup: Bool,
    /// Do not tell the options in the result.
    #[serde(default)]
    opts_no_log: Bool,
}

fn yes() -> Bool {
    Bool(true)
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "snake_case")]
enum State {
    Absent,
    AbsentFromFstab,
    Mounted,
    Present,
    Unmounted,
    Remounted,
    Ephemeral,
}

impl Task for Mount {
    const NAME: &'static str = "mount";
    const ARGUMENT_ALIASES: &'static [(&'static str, &'static str)] = &[("name", "path")];

    fn check(&self) -> Result<(), ArgumentError> {
        let needed: &[(&str, &Option<Text>)] = match self.state {
            State::Mounted | State::Present | State::Ephemeral => {
                &[("src", &self.src), ("fstype", &self.fstype)]
            }
            _ => &[],
        };
        if let Some((name, _)) = needed.iter().find(|(_, value)| value.is_none()) {
            return Err(ArgumentError::of(
                name,
                "it is required with the states mounted, present and ephemeral",
            ));
        }
        if self.state == State::Ephemeral && self.fstab.is_some() {
            return Err(ArgumentError::of(
                "fstab",
                "it does not go with the state ephemeral, which writes no file",
            ));
        }
        let words = [
            self.fstype.as_ref(),
            self.opts.as_ref(),
            self.dump.as_ref(),
            self.passno.as_ref(),
        ];
        match words
            .into_iter()
            .flatten()
            .any(|word| word.is_empty() || word.contains(char::is_whitespace))
        {
            true => Err(ArgumentError::of(
                "opts",
                "a field of fstab has no white space in it",
            )),
            false => Ok(()),
        }
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        let file = PathBuf::from(self.fstab.as_deref().unwrap_or("/etc/fstab"));
        let text = host.read(&file)?.unwrap_or_default();
        let mut fstab = Fstab::parse(&String::from_utf8_lossy(&text));
        let path = self.place();
        match self.state {
            State::Present | State::Mounted => fstab.set(self.line()),
            State::Absent | State::AbsentFromFstab => fstab.remove(&path, self.src.as_deref()),
            State::Unmounted | State::Remounted | State::Ephemeral => {}
        }
        let saved = match self.state {
            State::Unmounted | State::Remounted | State::Ephemeral => false,
            _ if fstab.text().as_bytes() == text => false,
            _ => {
                let file = host.resolve(&file)?;
                host.put(Put::content(file, fstab.text()))?
            }
        };
        let backup = host.backup_of(&file).filter(|_| *self.backup);
        self.act(host, &path, saved)?;
        let opts = if *self.opts_no_log {
            None
        } else {
            self.opts.as_deref()
        };
        let mut fields = json!({
            "name": path,
            "src": self.src.as_deref(),
            "fstype": self.fstype.as_deref(),
            "opts": opts,
            "boot": if *self.boot { "yes" } else { "no" },
            "dump": self.dump.as_deref().unwrap_or("0"),
            "passno": self.passno.as_deref().unwrap_or("0"),
            "fstab": file,
        });
        if let Some(backup) = backup {
            fields["backup_file"] = json!(backup);
        }
        Ok(Report::of(fields))
    }
}

impl Mount {
    /// The mount point as the kernel tells it.
    fn place(&self) -> String {
        match self.path.trim_end_matches('/') {
            "" => "/".to_owned(),
            path => path.to_owned(),
        }
    }

    fn line(&self) -> Line {
        let text =
            |text: &Option<Text>, default: &str| text.as_deref().unwrap_or(default).to_owned();
        let mut options = text(&self.opts, "defaults");
        if !*self.boot && !options.split(',').any(|option| option == "noauto") {
            options.push_str(",noauto");
        }
        Line {
            source: text(&self.src, ""),
            path: self.place(),
            kind: text(&self.fstype, ""),
            options,
            dump: text(&self.dump, "0"),
            pass: text(&self.passno, "0"),
        }
    }

    fn act(&self, host: &mut Host, path: &str, saved: bool) -> Result<(), Fault> {
        let before = host.setting(SettingKind::Mount, path)?;
        let mounted = !before.is_empty();
        let none = || Setting {
            kind: SettingKind::Mount,
            name: path.to_owned(),
            value: String::new(),
        };
        match self.state {
            State::Present | State::AbsentFromFstab => {}
            State::Unmounted => drop(host.set(none())?),
            State::Absent => {
                host.set(none())?;
                self.remove_directory(host, path)?;
            }
            State::Remounted if !mounted => {
                if !host.open() {
                    return Err(Fault::new(format!(
                        "cannot remount {path}: nothing is mounted there"
                    )));
                }
            }
            State::Remounted => self.remount(host, path)?,
            State::Mounted if mounted && saved => self.remount(host, path)?,
            State::Mounted if mounted => {}
            State::Mounted | State::Ephemeral => {
                let line = self.line();
                if mounted {
                    let source = before.split(' ').next().unwrap_or_default();
                    if source != line.source {
                        return Err(Fault::new(format!(
                            "Ephemeral mount point is already mounted with a different source: {source} and not {}",
                            line.source
                        )));
                    }
                    return Ok(());
                }
                self.make_directory(host, path)?;
                let value = line.mounted();
                let wanted = Setting {
                    value: value.clone(),
                    ..none()
                };
                if self.state == State::Ephemeral || self.fstab.is_some() {
                    host.set(wanted)?;
                    return Ok(());
                }
                host.set_by(wanted, &before, |host| {
                    let output = host.tool(&["mount", "--", path], None)?;
                    match output.ok() {
                        true => Ok(()),
                        false => Err(Fault::new(format!(
                            "Error mounting {path}: {}",
                            output.complaint()
                        ))
                        .with("rc", output.rc)),
                    }
                })?;
            }
        }
        Ok(())
    }

    fn remount(&self, host: &mut Host, path: &str) -> Result<(), Fault> {
        let options = match (&self.opts, self.state) {
            (Some(options), State::Remounted) => format!("remount,{}", &**options),
            _ => "remount".to_owned(),
        };
        let argv = ["mount", "-o", &options, path].map(str::to_owned).to_vec();
        let line = argv.join(" ");
        let output = host.command(crate::host::Command {
            argv,
            line,
            ..crate::host::Command::default()
        })?;
        match output.filter(|output| !output.ok()) {
            Some(output) => Err(Fault::new(format!(
                "Error remounting {path}: {}",
                output.complaint()
            ))
            .with("rc", output.rc)),
            None => Ok(()),
        }
    }

    fn make_directory(&self, host: &mut Host, path: &str) -> Result<(), Fault> {
        let path = Path::new(path);
        if host.entry(path)? != Entry::Absent {
            return Ok(());
        }
        super::edited::make_parents(host, path)?;
        host.put(Put {
            path: path.to_owned(),
            to: To::Dir {
                mode: None,
                owner: None,
                group: None,
            },
            validate: None,
        })?;
        Ok(())
    }

    /// Removes the mount point where nothing is in it.
    fn remove_directory(&self, host: &mut Host, path: &str) -> Result<(), Fault> {
        let path = Path::new(path);
        if host.list(path)?.is_some_and(|names| names.is_empty()) {
            host.put(Put::absent(path))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::MODULE;
    use crate::host::Host;

    #[test]
    fn a_file_system_is_written_down_and_mounted() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let (fstab, path) = (dir.path().join("fstab"), dir.path().join("mnt"));
        std::fs::write(&fstab, "# mine\n/dev/sda1 / ext4 defaults 0 1\n").unwrap();
        let mut host = Host::plan();
        let args = json!({"path": path, "src": "tmpfs", "fstype": "tmpfs", "opts": "size=1m", "state": "mounted", "fstab": fstab});
        (MODULE.run)(args.clone(), &mut host).unwrap();
        let effects: Vec<String> = host.end().iter().map(fleet_wire::Effect::summary).collect();
        assert_eq!(effects.len(), 3, "{effects:?}");
        assert_eq!(effects[2], format!("mount {}", path.display()));
        let text = host.read(Path::new(&fstab)).unwrap().unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(
            text.ends_with(&format!("tmpfs {} tmpfs size=1m 0 0\n", path.display())),
            "{text}"
        );
        (MODULE.run)(args, &mut host).unwrap();
        assert!(host.end().is_empty());
        (MODULE.run)(
            json!({"path": path, "state": "absent", "fstab": fstab}),
            &mut host,
        )
        .unwrap();
        assert_eq!(host.end().len(), 3);
        assert_eq!(
            host.read(Path::new(&fstab)).unwrap().unwrap(),
            b"# mine\n/dev/sda1 / ext4 defaults 0 1\n"
        );
    }

    #[test]
    fn arguments_are_checked() {
        let refused = |args| (MODULE.check)(&args).unwrap_err().to_string();
        assert!(refused(json!({"path": "/x", "state": "mounted"})).starts_with("argument `src`"));
        assert!(refused(json!({"path": "/x"})).starts_with("argument `state`"));
        assert!(
            refused(json!({"path": "/x", "state": "absent", "opts": "a b"}))
                .contains("no white space")
        );
    }
}
