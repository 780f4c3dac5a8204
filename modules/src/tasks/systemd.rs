use fleet_wire::UnitAction;
use serde::Deserialize;
use serde_json::{Value, json};

use self::outdated::outdated;
use crate::args::{Bool, Text};
use crate::host::{Fault, Host, UnitState};
use crate::module::{ArgumentError, Module, Report, Task};

mod outdated;

pub(super) static MODULE: Module = Module::of::<Systemd>();

/// Starts, stops, restarts, reloads, enables and masks a systemd unit, and has systemd read its files again.
///
/// What is done is proved: the unit must be up after a start, and nginx must have new workers after a reload.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Systemd {
    /// The unit; `.service` may be left off.
    name: Option<Text>,
    /// `started`, `stopped`, `restarted` or `reloaded`. A unit that is not running is started by the last two.
    state: Option<State>,
    /// Whether the unit starts at boot.
    enabled: Option<Bool>,
    /// Whether the unit is kept from being started at all.
    masked: Option<Bool>,
    /// Have systemd read its files again before anything else, where they have changed since it did.
    #[serde(default)]
    daemon_reload: Bool,
    /// `system`; units of users are not managed yet.
    #[serde(default)]
    scope: Scope,
    /// Taken for Ansible's sake: what is done is waited for, because it is proved.
    #[serde(default, rename = "no_block")]
    _no_block: Option<Bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    Started,
    Stopped,
    Restarted,
    Reloaded,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
enum Scope {
    #[default]
    System,
    User,
    Global,
}

impl Task for Systemd {
    const NAME: &'static str = "systemd";
    const ALIASES: &'static [&'static str] = &["systemd_service"];
    const ARGUMENT_ALIASES: &'static [(&'static str, &'static str)] = &[
        ("service", "name"),
        ("unit", "name"),
        ("daemon-reload", "daemon_reload"),
    ];

    fn check(&self) -> Result<(), ArgumentError> {
        if self.scope != Scope::System {
            return Err(ArgumentError::of("scope", "only `system` is supported yet"));
        }
        let named = self.state.is_some() || self.enabled.is_some() || self.masked.is_some();
        if named && self.name.is_none() {
            return Err(ArgumentError::of(
                "name",
                "it is required with state, enabled and masked",
            ));
        }
        match named || *self.daemon_reload {
            true => Ok(()),
            false => Err(ArgumentError::of(
                "state",
                "nothing is asked for: one of state, enabled, masked and daemon_reload is required",
            )),
        }
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        if *self.daemon_reload && outdated(host, self.name.as_deref())? {
            host.act("", UnitAction::DaemonReload)?;
        }
        let Some(name) = self.name else {
            return Ok(Report::default());
        };
        Wanted {
            name: &name,
            state: self.state,
            enabled: self.enabled.map(|enabled| *enabled),
            masked: self.masked.map(|masked| *masked),
        }
        .reach(host)
    }
}

/// What a unit shall be.
pub(super) struct Wanted<'a> {
    pub(super) name: &'a str,
    pub(super) state: Option<State>,
    pub(super) enabled: Option<bool>,
    pub(super) masked: Option<bool>,
}

impl Wanted<'_> {
    pub(super) fn reach(&self, host: &mut Host) -> Result<Report, Fault> {
        let before = host.unit(self.name)?;
        // What came before in a plan may bring the unit.
        let may_come = host.open() && !before.exists();
        if !before.exists() && !may_come && self.masked != Some(true) {
            return Err(Fault::new(format!(
                "there is no unit {} on this host: check its name, or install what brings it before this task",
                self.name
            )));
        }
        for action in self.actions(&before) {
            host.act(self.name, action)?;
        }
        let after = host.unit(self.name)?;
        Ok(self.report(&after))
    }

    /// What has to be done, in the order that makes each possible.
    fn actions(&self, unit: &UnitState) -> Vec<UnitAction> {
        let masked = unit.load == "masked" || unit.enabled.starts_with("masked");
        let mut actions = Vec::new();
        match self.masked {
            Some(true) if !masked => actions.push(UnitAction::Mask),
            Some(false) if masked => actions.push(UnitAction::Unmask),
            _ => {}
        }
        match self.enabled {
            Some(true) if !starts_at_boot(unit) => actions.push(UnitAction::Enable),
            Some(false)
                if matches!(
                    unit.enabled.as_str(),
                    "enabled" | "enabled-runtime" | "linked" | "linked-runtime" | "alias"
                ) =>
            {
                actions.push(UnitAction::Disable);
            }
            _ => {}
        }
        match self.state {
            Some(State::Started) if !unit.running() => actions.push(UnitAction::Start),
            Some(State::Stopped) if unit.running() => actions.push(UnitAction::Stop),
            Some(State::Restarted) => actions.push(UnitAction::Restart),
            Some(State::Reloaded) if unit.running() => actions.push(UnitAction::Reload),
            Some(State::Reloaded) => actions.push(UnitAction::Start),
            _ => {}
        }
        actions
    }

    fn report(&self, unit: &UnitState) -> Report {
        let mut fields = json!({"name": self.name, "status": status(unit)});
        if let Some(state) = self.state {
            fields["state"] = match state {
                State::Stopped => "stopped",
                State::Started | State::Restarted | State::Reloaded => "started",
            }
            .into();
        }
        if let Some(enabled) = self.enabled {
            fields["enabled"] = enabled.into();
        }
        Report::of(fields)
    }
}

/// Units without an install section are started by others: there is nothing to enable or disable.
fn starts_at_boot(unit: &UnitState) -> bool {
    matches!(
        unit.enabled.as_str(),
        "enabled" | "static" | "alias" | "indirect" | "generated" | "transient"
    )
}

/// The unit in systemd's own names.
fn status(unit: &UnitState) -> Value {
    let yes = |yes: bool| if yes { "yes" } else { "no" };
    json!({
        "Id": unit.id,
        "LoadState": unit.load,
        "ActiveState": unit.active,
        "SubState": unit.sub,
        "UnitFileState": unit.enabled,
        "MainPID": unit.main_pid.to_string(),
        "FragmentPath": unit.fragment,
        "CanReload": yes(unit.can_reload),
        "NeedDaemonReload": yes(unit.need_daemon_reload),
    })
}

#[cfg(test)]
mod tests {
    use fleet_wire::UnitAction::{self, *};
    use serde_json::json;

    use super::{MODULE, State, Wanted};
    use crate::host::UnitState;

    fn actions(
        load: &str,
        active: &str,
        enabled: &str,
        state: Option<State>,
        boot: Option<bool>,
        masked: Option<bool>,
    ) -> Vec<UnitAction> {
        let unit = UnitState {
            load: load.to_owned(),
            active: active.to_owned(),
            enabled: enabled.to_owned(),
            ..UnitState::default()
        };
        Wanted {
            name: "x",
            state,
            enabled: boot,
            masked,
        }
        .actions(&unit)
    }

    #[test]
    fn only_what_is_missing_is_done() {
        use State::{Reloaded, Restarted, Started, Stopped};
        let loaded =
            |active, enabled, state, boot| actions("loaded", active, enabled, state, boot, None);
        assert_eq!(
            loaded("inactive", "disabled", Some(Started), Some(true)),
            [Enable, Start]
        );
        assert_eq!(loaded("active", "enabled", Some(Started), Some(true)), []);
        assert_eq!(
            loaded("active", "enabled", Some(Stopped), Some(false)),
            [Disable, Stop]
        );
        assert_eq!(loaded("failed", "disabled", Some(Stopped), Some(false)), []);
        assert_eq!(
            loaded("active", "enabled", Some(Restarted), None),
            [Restart]
        );
        assert_eq!(loaded("active", "enabled", Some(Reloaded), None), [Reload]);
        assert_eq!(loaded("inactive", "enabled", Some(Reloaded), None), [Start]);
        assert_eq!(loaded("activating", "enabled", Some(Started), None), []);
        // A unit that cannot be enabled or disabled is as wanted either way.
        assert_eq!(loaded("active", "static", None, Some(true)), []);
        assert_eq!(loaded("active", "static", None, Some(false)), []);
        assert_eq!(
            actions("loaded", "active", "enabled", None, None, Some(true)),
            [Mask]
        );
        assert_eq!(
            actions(
                "masked",
                "inactive",
                "masked",
                Some(Started),
                None,
                Some(false)
            ),
            [Unmask, Start]
        );
        assert_eq!(
            actions("masked", "inactive", "masked", None, None, Some(true)),
            []
        );
    }

    #[test]
    fn something_must_be_asked_for() {
        let refused = |args| (MODULE.check)(&args).unwrap_err().to_string();
        assert_eq!(
            refused(json!({"state": "started"})),
            "argument `name`: it is required with state, enabled and masked"
        );
        assert!(
            refused(json!({"name": "x"})).starts_with("argument `state`: nothing is asked for")
        );
        assert_eq!(
            refused(json!({"name": "x", "state": "started", "scope": "user"})),
            "argument `scope`: only `system` is supported yet"
        );
        assert!((MODULE.check)(&json!({"daemon_reload": "yes"})).is_ok());
    }
}
