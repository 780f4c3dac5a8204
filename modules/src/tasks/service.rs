use serde::Deserialize;

use super::systemd::{State, Wanted};
use crate::args::{Bool, Number, Text};
use crate::host::{Fault, Host};
use crate::module::{ArgumentError, Module, Report, Task};

pub(super) static MODULE: Module = Module::of::<Service>();

/// Starts, stops, restarts, reloads and enables a service. Hosts with systemd only.
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
    /// The service manager: `auto` or `systemd`.
    #[serde(default)]
    r#use: Manager,
    /// Taken for Ansible's sake: systemd needs no pause between a stop and a start.
    #[serde(default, rename = "sleep")]
    _sleep: Option<Number>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
enum Manager {
    #[default]
    Auto,
    Systemd,
}

impl Task for Service {
    const NAME: &'static str = "service";

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
        // Both managers are one so far.
        let (Manager::Auto | Manager::Systemd) = self.r#use;
        Wanted {
            name: &self.name,
            state: self.state,
            enabled: self.enabled.map(|enabled| *enabled),
            masked: None,
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
            (MODULE.check)(&json!({"name": "x", "state": "started", "use": "systemd"})).is_ok()
        );
    }
}
