use fleet_wire::SettingKind;
use serde::Deserialize;
use serde_json::json;

use crate::args::{Bool, Text};
use crate::host::{Command, Fault, Host, Setting};
use crate::module::{ArgumentError, Module, Report, Task};

pub(super) static MODULE: Module = Module::of::<Seboolean>();

/// Sets a boolean of SELinux. Only hosts that have SELinux.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Seboolean {
    /// The boolean.
    name: Text,
    /// Whether it is on.
    state: Bool,
    /// Also after a boot. An undo sets it back for now only.
    #[serde(default)]
    persistent: Bool,
    /// Taken for Ansible's sake: modules of policies are never looked at.
    #[serde(default, rename = "ignore_selinux_state")]
    _ignore_selinux_state: Bool,
}

impl Task for Seboolean {
    const NAME: &'static str = "seboolean";

    fn check(&self) -> Result<(), ArgumentError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        match !self.name.is_empty() && self.name.chars().all(plain) {
            true => Ok(()),
            false => Err(ArgumentError::of(
                "name",
                format!("`{}` is not the name of a boolean", &*self.name),
            )),
        }
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        if !super::selinux::is_there(host)? {
            return Err(Fault::new("SELinux is disabled on this host."));
        }
        let value = if *self.state { "on" } else { "off" };
        let changed = host.set(Setting {
            kind: SettingKind::SelinuxBoolean,
            name: self.name.to_string(),
            value: value.to_owned(),
        })?;
        // What is kept for boots only the policy's own store knows.
        if *self.persistent && (changed || !self.is_kept(host, value)?) {
            let argv = ["setsebool", "-P", &self.name, value]
                .map(str::to_owned)
                .to_vec();
            let line = argv.join(" ");
            let output = host.command(Command {
                argv,
                line,
                ..Command::default()
            })?;
            if let Some(output) = output.filter(|output| !output.ok()) {
                return Err(Fault::new(format!(
                    "Failed to set boolean {} persistently: {}",
                    &*self.name,
                    output.complaint()
                )));
            }
        }
        Ok(Report::of(
            json!({"name": &*self.name, "persistent": *self.persistent, "state": *self.state}),
        ))
    }
}

impl Seboolean {
    fn is_kept(&self, host: &Host, value: &str) -> Result<bool, Fault> {
        let output = host.probe(&["semanage", "boolean", "-l", "--noheading"]);
        let Ok(output) = output else {
            return Ok(false);
        };
        // `name (on , off) text`: now, and at boot.
        let text = output.text();
        let line = text
            .lines()
            .find(|line| line.split_whitespace().next() == Some(&*self.name));
        let kept = line.and_then(|line| line.split(['(', ')']).nth(1)?.split(',').nth(1));
        Ok(kept.map(str::trim) == Some(value))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::MODULE;
    use crate::host::Host;

    #[test]
    fn a_host_without_it_says_so() {
        if std::path::Path::new("/sys/fs/selinux/enforce").exists() {
            return;
        }
        let args = json!({"name": "httpd_can_network_connect", "state": true, "persistent": true});
        let fault = (MODULE.run)(args, &mut Host::plan()).unwrap_err();
        assert_eq!(fault.message, "SELinux is disabled on this host.");
        assert!((MODULE.check)(&json!({"name": "a b", "state": true})).is_err());
    }
}
