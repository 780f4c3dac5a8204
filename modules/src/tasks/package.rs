use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{apt, dnf};
use crate::args::{List, Text};
use crate::host::{Entry, Fault, Host};
use crate::module::{ArgumentError, Module, Report, Task};

pub(super) static MODULE: Module = Module::of::<Package>();

/// Installs, upgrades and removes packages with the host's own package manager.
///
/// Arguments that only one manager knows go to that manager's module.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Package {
    /// The packages.
    name: List,
    /// `present`, `latest` or `absent`.
    state: Option<Text>,
    /// The package manager: `auto`, `apt`, `dnf`, `yum`.
    r#use: Option<Text>,
    /// What else the manager's own module takes.
    #[serde(flatten)]
    more: Map<String, Value>,
}

impl Task for Package {
    const NAME: &'static str = "package";
    const ARGUMENT_ALIASES: &'static [(&'static str, &'static str)] = &[("pkg", "name")];

    fn check(&self) -> Result<(), ArgumentError> {
        const STATES: [&str; 5] = ["present", "installed", "latest", "absent", "removed"];
        if let Some(state) = self
            .state
            .as_deref()
            .filter(|state| !STATES.contains(state))
        {
            return Err(ArgumentError::of(
                "state",
                format!("expected `present`, `latest` or `absent`, not `{state}`"),
            ));
        }
        match self.name.is_empty() {
            true => Err(ArgumentError::of("name", "no package is named")),
            false => Ok(()),
        }
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        let module = self.manager(host)?;
        let mut args = self.more;
        args.insert("name".to_owned(), self.name.0.into());
        if let Some(state) = self.state {
            args.insert("state".to_owned(), state.to_string().into());
        }
        (module.run)(args.into(), host)
    }
}

impl Package {
    fn manager(&self, host: &Host) -> Result<&'static Module, Fault> {
        let named = |name: &str| {
            let bare = name.rsplit('.').next().unwrap_or(name);
            match bare {
                "apt" | "apt_get" => Some(&apt::MODULE),
                "dnf" | "dnf5" | "yum" | "dnf4" => Some(&dnf::MODULE),
                _ => None,
            }
        };
        match self.r#use.as_deref() {
            None | Some("auto") => {}
            Some(name) => {
                return named(name).ok_or_else(|| {
                    Fault::new(format!(
                        "the package manager `{name}` is not supported: apt, dnf and yum are"
                    ))
                });
            }
        }
        for (program, module) in [
            ("apt-get", &apt::MODULE),
            ("dnf", &dnf::MODULE),
            ("yum", &dnf::MODULE),
        ] {
            if host.entry(&host.resolve(&Path::new("/usr/bin").join(program))?)? != Entry::Absent {
                return Ok(module);
            }
        }
        Err(Fault::new(
            "Could not detect which package manager to use: this host has none of apt-get, dnf and yum",
        ))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::MODULE;
    use crate::host::Host;

    #[test]
    fn arguments_are_checked() {
        assert!(
            (MODULE.check)(&json!({"name": ["a", "b"], "state": "latest", "enablerepo": "epel"}))
                .is_ok()
        );
        let refused = |args| (MODULE.check)(&args).unwrap_err().to_string();
        assert_eq!(
            refused(json!({"name": []})),
            "argument `name`: no package is named"
        );
        assert!(refused(json!({"name": "x", "state": "there"})).contains("not `there`"));
    }

    #[test]
    fn the_hosts_own_manager_is_taken() {
        let mut host = Host::plan();
        if host.package("dpkg").ok().flatten().is_none() {
            return;
        }
        (MODULE.run)(json!({"name": "dpkg", "state": "present"}), &mut host).unwrap();
        assert!(host.end().is_empty());
        let fault =
            (MODULE.run)(json!({"name": "dpkg", "enablerepo": "epel"}), &mut host).unwrap_err();
        assert!(fault.message.contains("enablerepo"), "{fault}");
        let fault = (MODULE.run)(json!({"name": "dpkg", "use": "zypper"}), &mut host).unwrap_err();
        assert!(
            fault.message.contains("`zypper` is not supported"),
            "{fault}"
        );
    }
}
