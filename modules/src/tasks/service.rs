use std::path::Path;

use serde::Deserialize;

use super::systemd::{State, Wanted};
use super::sysvinit::Script;
use crate::args::{Bool, Number, Text};
use crate::host::{Fault, Host};
use crate::module::{ArgumentError, Module, Report, Task};

pub(super) static MODULE: Module = Module::of::<Service>();

/// Starts, stops, restarts, reloads and enables a service, by systemd where it runs and else by the service's script.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Service {
    /// The service.
    name: Text,
    /// `started`, `stopped`, `restarted` or `reloaded`. A service that is not running is started by the last two.
    state: Option<State>,
    /// Whether the service starts at boot.
    enabled: Option<Bool>,
    /// The service manager: `auto`, `systemd` or `sysvinit`.
    #[serde(default)]
    r#use: Manager,
    /// Seconds between the stop and the start of a restart. systemd needs none.
    #[serde(default = "one")]
    sleep: Number,
    /// A text in the command line of a process that shows that it runs. systemd knows by itself.
    pattern: Option<Text>,
    /// More words for the service's script. systemd takes none.
    arguments: Option<Text>,
    /// Taken for Ansible's sake: only OpenRC has it.
    #[serde(default, rename = "runlevel")]
    _runlevel: Option<Text>,
}

fn one() -> Number {
    Number(1)
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
enum Manager {
    #[default]
    Auto,
    Systemd,
    #[serde(alias = "service")]
    Sysvinit,
}

impl Task for Service {
    const NAME: &'static str = "service";
    const ARGUMENT_ALIASES: &'static [(&'static str, &'static str)] = &[("args", "arguments")];

    fn check(&self) -> Result<(), ArgumentError> {
        match self.state.is_some() || self.enabled.is_some() {
            true => Ok(()),
            false => Err(ArgumentError::of(
                "state",
                "nothing is asked for: one of state and enabled is required",
            )),
        }
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        let enabled = self.enabled.map(|enabled| *enabled);
        let runs = Path::new("/run/systemd/system").is_dir();
        let scripts = Path::new("/etc/init.d").is_dir();
        match self.r#use {
            Manager::Auto if !runs && scripts => {}
            Manager::Sysvinit => {}
            // Without either it says what is missing.
            Manager::Auto | Manager::Systemd => {
                return Wanted {
                    name: &self.name,
                    state: self.state,
                    enabled,
                    masked: None,
                }
                .reach(host);
            }
        }
        Script {
            name: self.name.trim_end_matches(".service"),
            state: self.state,
            enabled,
            sleep: *self.sleep,
            pattern: self.pattern.as_deref(),
            runlevels: &[],
            arguments: self.arguments.as_deref(),
        }
        .reach(host)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::MODULE;

    #[test]
    fn arguments_are_checked() {
        let refused = |args| (MODULE.check)(&args).unwrap_err().to_string();
        assert_eq!(
            refused(json!({"name": "x"})),
            "argument `state`: nothing is asked for: one of state and enabled is required"
        );
        assert!(
            refused(json!({"name": "x", "state": "running"}))
                .contains("or `reloaded`, not `running`")
        );
        assert!(
            (MODULE.check)(&json!({"name": "x", "state": "started", "use": "systemd", "pattern": "x", "args": "-v"})).is_ok()
        );
    }
}
