use std::path::Path;

use fleet_wire::SettingKind;
use serde::Deserialize;
use serde_json::json;

use crate::args::{Bool, Text};
use crate::host::{Entry, Fault, Host, Put, Setting};
use crate::module::{ArgumentError, Module, Report, Task};

pub(super) static MODULE: Module = Module::of::<Selinux>();

/// Sets SELinux's mode and policy, now and for the next boot. Only hosts that have SELinux.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Selinux {
    /// The mode.
    state: State,
    /// The policy, `targeted`; required unless SELinux is to be disabled.
    policy: Option<Text>,
    /// The file of its configuration.
    #[serde(default = "config")]
    configfile: Text,
    /// Not supported: the boot loader's configuration is not touched.
    #[serde(default)]
    update_kernel_param: Bool,
}

fn config() -> Text {
    "/etc/selinux/config".into()
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
enum State {
    Enforcing,
    Permissive,
    Disabled,
}

impl State {
    fn word(self) -> &'static str {
        match self {
            Self::Enforcing => "enforcing",
            Self::Permissive => "permissive",
            Self::Disabled => "disabled",
        }
    }
}

/// Whether the kernel has SELinux.
pub(super) fn is_there(host: &Host) -> Result<bool, Fault> {
    Ok(host.entry(Path::new("/sys/fs/selinux/enforce"))? != Entry::Absent)
}

impl Task for Selinux {
    const NAME: &'static str = "selinux";
    const ARGUMENT_ALIASES: &'static [(&'static str, &'static str)] =
        &[("conf", "configfile"), ("file", "configfile")];

    fn check(&self) -> Result<(), ArgumentError> {
        if *self.update_kernel_param {
            return Err(ArgumentError::of(
                "update_kernel_param",
                "the boot loader is not touched: run `grubby` by the module command",
            ));
        }
        match self.policy.is_none() && self.state != State::Disabled {
            true => Err(ArgumentError::of(
                "policy",
                "policy is required if state is not 'disabled'",
            )),
            false => Ok(()),
        }
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        let path = Path::new(&*self.configfile);
        let Some(text) = host.read(path)? else {
            return match host.open() {
                true => Ok(super::edited::unknown(path)),
                false => Err(Fault::new(format!(
                    "this host has no SELinux: there is no {}, which its packages bring",
                    path.display()
                ))),
            };
        };
        let text = String::from_utf8_lossy(&text).into_owned();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let mut set = |name: &str, value: &str| {
            let line = format!("{name}={value}");
            match lines
                .iter()
                .position(|line| line.starts_with(&format!("{name}=")))
            {
                Some(at) => lines[at] = line,
                None => lines.push(line),
            }
        };
        set("SELINUX", self.state.word());
        if let Some(policy) = &self.policy {
            set("SELINUXTYPE", policy);
        }
        host.put(Put::content(host.resolve(path)?, lines.join("\n") + "\n"))?;
        let mut reboot = false;
        if is_there(host)? {
            match self.state {
                // A running kernel cannot give it up.
                State::Disabled => reboot = true,
                state => {
                    host.set(Setting {
                        kind: SettingKind::SelinuxMode,
                        name: "now".to_owned(),
                        value: state.word().to_owned(),
                    })?;
                }
            }
        } else {
            reboot = self.state != State::Disabled;
        }
        Ok(Report::of(json!({
            "configfile": &*self.configfile,
            "policy": self.policy.as_deref(),
            "state": self.state.word(),
            "msg": "",
            "reboot_required": reboot,
        })))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::MODULE;
    use crate::host::Host;

    #[test]
    fn a_host_without_it_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config");
        let mut host = Host::plan();
        let args = json!({"state": "permissive", "policy": "targeted", "configfile": path});
        let fault = (MODULE.run)(args.clone(), &mut host).unwrap_err();
        assert!(fault.message.starts_with("this host has no SELinux"));
        std::fs::write(&path, "# mode\nSELINUX=enforcing\nSELINUXTYPE=targeted\n").unwrap();
        if !std::path::Path::new("/sys/fs/selinux/enforce").exists() {
            let report = (MODULE.run)(args, &mut host).unwrap();
            assert_eq!(report.fields["reboot_required"], true);
            assert_eq!(
                host.read(&path).unwrap().unwrap(),
                b"# mode\nSELINUX=permissive\nSELINUXTYPE=targeted\n"
            );
        }
        assert!((MODULE.check)(&json!({"state": "enforcing"})).is_err());
    }
}
