use fleet_wire::UnitAction;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use self::outdated::outdated;
use crate::args::{Bool, Text};
use crate::host::{Fault, Host, UnitState};
use crate::module::{ArgumentError, Module, Report, Status, Task};

mod outdated;
mod scoped;

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
    /// Start systemd itself anew before anything else.
    #[serde(default)]
    daemon_reexec: Bool,
    /// `system`; `user` for the units of the task's own user, `global` for those of all users. Units of users are not proved
    /// and not undone.
    #[serde(default)]
    scope: Scope,
    /// Override links of other units that are in the way, where it is enabled in the scopes of users.
    #[serde(default)]
    force: Bool,
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
        ("daemon-reexec", "daemon_reexec"),
    ];

    fn check(&self) -> Result<(), ArgumentError> {
        if self.scope == Scope::Global && self.state.is_some() {
            return Err(ArgumentError::of(
                "state",
                "units of all users can be enabled and masked, and not started: nobody knows for whom",
            ));
        }
        if self
            .name
            .as_ref()
            .is_some_and(|name| name.is_empty() || name.contains(['*', '?', '[']))
        {
            return Err(ArgumentError::of(
                "name",
                "it must name one unit, without patterns",
            ));
        }
        let named = self.state.is_some() || self.enabled.is_some() || self.masked.is_some();
        if named && self.name.is_none() {
            return Err(ArgumentError::of(
                "name",
                "it is required with state, enabled and masked",
            ));
        }
        match named || *self.daemon_reload || *self.daemon_reexec || self.name.is_some() {
            true => Ok(()),
            false => Err(ArgumentError::of(
                "state",
                "nothing is asked for: one of state, enabled, masked and daemon_reload is required",
            )),
        }
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        if self.scope != Scope::System {
            return scoped::reach(&self, host);
        }
        if *self.daemon_reexec {
            scoped::tell(host, &["systemctl", "daemon-reexec"])?;
        }
        if *self.daemon_reload && outdated(host, self.name.as_deref())? {
            host.act("", UnitAction::DaemonReload)?;
        }
        let Some(name) = self.name else {
            return Ok(Report::of(json!({"name": null, "status": {}})));
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
                "Could not find the requested service {}: host has no such unit: check its name, or install what brings it before this task",
                self.name
            )));
        }
        // Whether it will start what it brings, and at boot, nobody can tell.
        let otherwise = matches!(self.state, Some(State::Stopped | State::Reloaded))
            || self.enabled == Some(false)
            || self.masked == Some(false);
        if may_come && otherwise {
            let message = format!(
                "{} does not exist yet: what is before it may bring it",
                self.name
            );
            let mut report = self.report(&before);
            report.fields.insert("msg".to_owned(), message.into());
            return Ok(report.with_status(Status::Unknown));
        }
        for action in self.actions(&before, self.is_started_by_others(host, &before)?) {
            host.act(self.name, action)?;
        }
        let mut report = self.report(&before);
        let starts = self.state.is_some_and(|state| state != State::Stopped);
        if starts && !host.open() && host.unit(self.name)?.skipped() {
            let warning = format!(
                "{0} does not run: systemd leaves it out, because a condition in its unit file is not met here (`systemctl status {0}`)",
                self.name
            );
            report
                .fields
                .insert("warnings".to_owned(), json!([warning]));
        }
        Ok(report)
    }

    /// Whether a unit that is only enabled through others is so now: systemd lists the links that do it.
    fn is_started_by_others(&self, host: &Host, unit: &UnitState) -> Result<bool, Fault> {
        if self.enabled.is_none() || unit.enabled != "indirect" {
            return Ok(false);
        }
        let output = host.probe(&["systemctl", "is-enabled", "-l", "--", &unit.id])?;
        Ok(output.text().lines().count() > 1)
    }

    /// What has to be done, in the order that makes each possible.
    fn actions(&self, unit: &UnitState, by_others: bool) -> Vec<UnitAction> {
        let masked = unit.load == "masked" || unit.enabled.starts_with("masked");
        let mut actions = Vec::new();
        match self.masked {
            Some(true) if !masked => actions.push(UnitAction::Mask),
            Some(false) if masked => actions.push(UnitAction::Unmask),
            _ => {}
        }
        match self.enabled {
            Some(true) if !starts_at_boot(unit) && !by_others => actions.push(UnitAction::Enable),
            Some(false) if by_others => actions.push(UnitAction::Disable),
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
        "enabled" | "static" | "alias" | "generated" | "transient"
    )
}

/// The unit in systemd's own names, as it was before.
fn status(unit: &UnitState) -> Value {
    let yes = |yes: bool| if yes { "yes" } else { "no" };
    let mut status: Map<String, Value> = unit
        .properties
        .iter()
        .map(|(name, value)| (name.clone(), value.as_str().into()))
        .collect();
    // A plan's own effects are not among them.
    let own = json!({
        "Id": unit.id,
        "LoadState": unit.load,
        "ActiveState": unit.active,
        "SubState": unit.sub,
        "UnitFileState": unit.enabled,
        "MainPID": unit.main_pid.to_string(),
        "FragmentPath": unit.fragment,
        "CanReload": yes(unit.can_reload),
        "NeedDaemonReload": yes(unit.need_daemon_reload),
    });
    if let Value::Object(own) = own {
        status.extend(own);
    }
    status.into()
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
        .actions(&unit, false)
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
        assert!(refused(json!({})).starts_with("argument `state`: nothing is asked for"));
        assert!(
            refused(json!({"name": "x", "state": "started", "scope": "global"}))
                .contains("not started")
        );
        assert!(refused(json!({"name": "x*", "enabled": true})).contains("without patterns"));
        assert!((MODULE.check)(&json!({"daemon_reload": "yes"})).is_ok());
    }
}
