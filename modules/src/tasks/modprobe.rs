use std::path::{Path, PathBuf};

use fleet_wire::SettingKind;
use serde::Deserialize;
use serde_json::json;

use super::edited::make_parents;
use super::group::State;
use crate::args::Text;
use crate::host::{Fault, Host, Put, Setting};
use crate::module::{ArgumentError, Module, Report, Task};

pub(super) static MODULE: Module = Module::of::<Modprobe>();

/// Loads a module of the kernel or takes it out, now and, if it is asked for, at each boot.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Modprobe {
    /// The module.
    name: Text,
    /// `present` or `absent`.
    #[serde(default)]
    state: State,
    /// Parameters for loading it.
    #[serde(default)]
    params: Text,
    /// `present` has it loaded at each boot, `absent` no more, `disabled` leaves that as it is.
    #[serde(default)]
    persistent: Persistent,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
enum Persistent {
    #[default]
    Disabled,
    Present,
    Absent,
}

const LOADED: &str = "/etc/modules-load.d";
const OPTIONS: &str = "/etc/modprobe.d";

impl Task for Modprobe {
    const NAME: &'static str = "modprobe";

    fn check(&self) -> Result<(), ArgumentError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        match !self.name.is_empty() && !self.name.starts_with('-') && self.name.chars().all(plain) {
            true => Ok(()),
            false => Err(ArgumentError::of(
                "name",
                format!("`{}` is not the name of a kernel module", self.name),
            )),
        }
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        let value = match self.state {
            State::Absent => String::new(),
            State::Present => format!("loaded {}", &*self.params).trim_end().to_owned(),
        };
        host.set(Setting {
            kind: SettingKind::KernelModule,
            name: self.name.to_string(),
            value,
        })?;
        match self.persistent {
            Persistent::Disabled => {}
            Persistent::Present => self.keep(host)?,
            Persistent::Absent => self.forget(host)?,
        }
        let state = if self.state == State::Absent {
            "absent"
        } else {
            "present"
        };
        Ok(Report::of(
            json!({"name": &*self.name, "params": &*self.params, "state": state}),
        ))
    }
}

impl Modprobe {
    fn keep(&self, host: &mut Host) -> Result<(), Fault> {
        let name = &*self.name;
        let kept = |line: &str| line.trim() == name;
        if !lines_of(host, LOADED)?
            .iter()
            .any(|(_, text)| text.lines().any(kept))
        {
            let path = Path::new(LOADED).join(format!("{name}.conf"));
            make_parents(host, &path)?;
            host.put(Put::content(path, format!("{name}\n")))?;
        }
        let options = format!("options {name} {}", &*self.params);
        let set = |line: &str| line.split_whitespace().eq(options.split_whitespace());
        if !self.params.is_empty()
            && !lines_of(host, OPTIONS)?
                .iter()
                .any(|(_, text)| text.lines().any(set))
        {
            let path = Path::new(OPTIONS).join(format!("{name}.conf"));
            make_parents(host, &path)?;
            host.put(Put::content(path, format!("{options}\n")))?;
        }
        Ok(())
    }

    /// Turns all lines that name the module into comments.
    fn forget(&self, host: &mut Host) -> Result<(), Fault> {
        let name = &*self.name;
        let loads = |line: &str| line.trim() == name;
        let sets = |line: &str| {
            let mut words = line.split_whitespace();
            words.next() == Some("options") && words.next() == Some(name)
        };
        let mut files = lines_of(host, LOADED)?;
        let modules = PathBuf::from("/etc/modules");
        if let Some(text) = host.read(&modules)? {
            files.push((modules, String::from_utf8_lossy(&text).into_owned()));
        }
        for (path, text) in files {
            comment(host, path, &text, loads)?;
        }
        for (path, text) in lines_of(host, OPTIONS)? {
            comment(host, path, &text, sets)?;
        }
        Ok(())
    }
}

fn comment(
    host: &mut Host,
    path: PathBuf,
    text: &str,
    which: impl Fn(&str) -> bool,
) -> Result<(), Fault> {
    if !text.lines().any(&which) {
        return Ok(());
    }
    let lines: Vec<String> = text
        .lines()
        .map(|line| {
            if which(line) {
                format!("#{line}")
            } else {
                line.to_owned()
            }
        })
        .collect();
    let path = host.resolve(&path)?;
    host.put(Put::content(path, lines.join("\n") + "\n"))?;
    Ok(())
}

/// The `*.conf` files of a directory.
fn lines_of(host: &Host, dir: &str) -> Result<Vec<(PathBuf, String)>, Fault> {
    let mut files = Vec::new();
    for name in host.list(Path::new(dir))?.unwrap_or_default() {
        let path = Path::new(dir).join(&name);
        if name.ends_with(".conf")
            && let Some(text) = host.read(&path)?
        {
            files.push((path, String::from_utf8_lossy(&text).into_owned()));
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::MODULE;
    use crate::host::Host;

    #[test]
    fn a_module_is_loaded_and_kept() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let mut host = Host::plan();
        let args = json!({"name": "fleetctl_x", "params": "a=1", "persistent": "present"});
        (MODULE.run)(args.clone(), &mut host).unwrap();
        let effects: Vec<String> = host.end().iter().map(fleet_wire::Effect::summary).collect();
        assert_eq!(effects[0], "kernel module fleetctl_x");
        let options = host
            .read(Path::new("/etc/modprobe.d/fleetctl_x.conf"))
            .unwrap()
            .unwrap();
        assert_eq!(options, b"options fleetctl_x a=1\n");
        (MODULE.run)(args, &mut host).unwrap();
        assert!(host.end().is_empty());
        (MODULE.run)(
            json!({"name": "fleetctl_x", "state": "absent", "persistent": "absent"}),
            &mut host,
        )
        .unwrap();
        let list = host
            .read(Path::new("/etc/modules-load.d/fleetctl_x.conf"))
            .unwrap()
            .unwrap();
        assert_eq!(list, b"#fleetctl_x\n");
        assert!((MODULE.check)(&json!({"name": "-r"})).is_err());
    }
}
