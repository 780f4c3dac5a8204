use std::path::Path;

use serde::Deserialize;
use serde_json::json;

use super::systemd::State;
use crate::args::{Bool, List, Number, Text};
use crate::host::{Command, Entry, Fault, Host, Output};
use crate::module::{ArgumentError, Module, Report, Task};

pub(super) static MODULE: Module = Module::of::<Sysvinit>();

/// Starts, stops and enables a service by its script in `/etc/init.d`, on hosts without systemd.
///
/// Only the script knows what it does: an undo does not stop or start it.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Sysvinit {
    /// The service.
    name: Text,
    /// `started`, `stopped`, `restarted` or `reloaded`.
    state: Option<State>,
    /// Whether it starts at boot.
    enabled: Option<Bool>,
    /// Seconds between the stop and the start of a restart.
    #[serde(default = "one")]
    sleep: Number,
    /// A text in the command line of a process that shows that it runs, for scripts that cannot tell.
    pattern: Option<Text>,
    /// The runlevels in which it is enabled; as the script says where they are not given.
    #[serde(default)]
    runlevels: List,
    /// More words for the script.
    arguments: Option<Text>,
    /// Taken for Ansible's sake: what a script starts is never ended with it.
    #[serde(default, rename = "daemonize")]
    _daemonize: Option<Bool>,
}

fn one() -> Number {
    Number(1)
}

impl Task for Sysvinit {
    const NAME: &'static str = "sysvinit";
    const ARGUMENT_ALIASES: &'static [(&'static str, &'static str)] =
        &[("service", "name"), ("args", "arguments")];

    fn check(&self) -> Result<(), ArgumentError> {
        if self.name.is_empty() || self.name.contains('/') || self.name.starts_with('-') {
            return Err(ArgumentError::of(
                "name",
                format!("`{}` is not the name of a service", self.name),
            ));
        }
        match self.state.is_some() || self.enabled.is_some() {
            true => Ok(()),
            false => Err(ArgumentError::of(
                "state",
                "nothing is asked for: one of state and enabled is required",
            )),
        }
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        let runlevels = self.runlevels.0;
        Script {
            name: &self.name,
            state: self.state,
            enabled: self.enabled.map(|enabled| *enabled),
            sleep: *self.sleep,
            pattern: self.pattern.as_deref(),
            runlevels: &runlevels,
            arguments: self.arguments.as_deref(),
        }
        .reach(host)
    }
}

/// A service by its script, and what it shall be.
pub(super) struct Script<'a> {
    pub(super) name: &'a str,
    pub(super) state: Option<State>,
    pub(super) enabled: Option<bool>,
    pub(super) sleep: i64,
    pub(super) pattern: Option<&'a str>,
    pub(super) runlevels: &'a [String],
    pub(super) arguments: Option<&'a str>,
}

impl Script<'_> {
    pub(super) fn reach(&self, host: &mut Host) -> Result<Report, Fault> {
        let path = format!("/etc/init.d/{}", self.name);
        if host.entry(&host.resolve(Path::new(&path))?)? == Entry::Absent && !host.open() {
            return Err(Fault::new(format!(
                "Could not find the requested service {}: host has no {path}: check its name, or install what brings it first",
                self.name
            )));
        }
        if let Some(enabled) = self.enabled
            && enabled != self.is_enabled(host)?
        {
            self.enable(host, enabled)?;
        }
        if let Some(state) = self.state {
            let running = self.is_running(host)?;
            let verbs: &[&str] = match state {
                State::Started if !running => &["start"],
                State::Stopped if running => &["stop"],
                State::Restarted => &["stop", "start"],
                State::Reloaded if running => &["reload"],
                State::Reloaded => &["start"],
                _ => &[],
            };
            for (number, verb) in verbs.iter().enumerate() {
                if number > 0 && !host.planning() {
                    std::thread::sleep(std::time::Duration::from_secs(
                        u64::try_from(self.sleep).unwrap_or(1),
                    ));
                }
                let mut argv = vec![path.clone(), (*verb).to_owned()];
                argv.extend(
                    self.arguments
                        .unwrap_or_default()
                        .split_whitespace()
                        .map(str::to_owned),
                );
                let output = run(host, argv)?;
                // What is stopped already need not be stopped.
                let matters = !(state == State::Restarted && *verb == "stop");
                if let Some(output) = output.filter(|output| !output.ok() && matters) {
                    return Err(Fault::new(format!(
                        "Failed to {verb} service {}: {}",
                        self.name,
                        output.complaint()
                    ))
                    .with("rc", output.rc)
                    .with("stdout", output.text())
                    .with("stderr", output.error_text()));
                }
            }
        }
        let mut fields = json!({"name": self.name});
        if let Some(state) = self.state {
            fields["state"] = if state == State::Stopped {
                "stopped"
            } else {
                "started"
            }
            .into();
        }
        if let Some(enabled) = self.enabled {
            fields["enabled"] = enabled.into();
        }
        Ok(Report::of(fields))
    }

    fn is_running(&self, host: &Host) -> Result<bool, Fault> {
        if let Some(pattern) = self.pattern {
            return Ok(commands().any(|command| command.contains(pattern)));
        }
        let output = host.probe(&["env", &format!("/etc/init.d/{}", self.name), "status"])?;
        let said = output.text().to_lowercase();
        let stopped = ["not running", "is stopped", "is not"]
            .iter()
            .any(|word| said.contains(word));
        Ok(output.ok() && !stopped)
    }

    fn is_enabled(&self, host: &Host) -> Result<bool, Fault> {
        let levels: Vec<&str> = match self.runlevels {
            [] => vec!["2", "3", "4", "5", "S"],
            levels => levels.iter().map(String::as_str).collect(),
        };
        let mut all = Vec::new();
        for level in levels {
            let names = host
                .list(Path::new(&format!("/etc/rc{level}.d")))?
                .unwrap_or_default();
            let starts = |name: &String| {
                name.strip_prefix('S').is_some_and(|rest| {
                    rest.trim_start_matches(|c: char| c.is_ascii_digit()) == self.name
                })
            };
            all.push(names.iter().any(starts));
        }
        Ok(match self.runlevels.is_empty() {
            true => all.contains(&true),
            false => !all.contains(&false),
        })
    }

    fn enable(&self, host: &mut Host, enabled: bool) -> Result<(), Fault> {
        let word = if enabled { "enable" } else { "disable" };
        let chkconfig = host.entry(Path::new("/sbin/chkconfig"))? != Entry::Absent;
        let commands: Vec<Vec<&str>> = if chkconfig {
            vec![vec![
                "chkconfig",
                self.name,
                if enabled { "on" } else { "off" },
            ]]
        } else {
            let defaults = vec!["update-rc.d", self.name, "defaults"];
            let mut own = vec!["update-rc.d", self.name, word];
            own.extend(self.runlevels.iter().map(String::as_str));
            if enabled {
                vec![defaults, own]
            } else {
                vec![own]
            }
        };
        for argv in commands {
            let output = run(host, argv.iter().map(|&word| word.to_owned()).collect())?;
            if let Some(output) = output.filter(|output| !output.ok()) {
                return Err(Fault::new(format!(
                    "Failed to {word} service {}: {}",
                    self.name,
                    output.complaint()
                ))
                .with("rc", output.rc));
            }
        }
        Ok(())
    }
}

fn run(host: &mut Host, argv: Vec<String>) -> Result<Option<Output>, Fault> {
    let line = argv.join(" ");
    host.command(Command {
        argv,
        line,
        ..Command::default()
    })
}

/// The command lines of all processes.
fn commands() -> impl Iterator<Item = String> {
    let own = std::process::id().to_string();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter(move |entry| entry.file_name() != own.as_str())
        .filter_map(|entry| {
            let line = std::fs::read(entry.path().join("cmdline")).ok()?;
            Some(String::from_utf8_lossy(&line).replace('\0', " "))
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::MODULE;
    use crate::host::Host;

    #[test]
    fn a_service_without_a_script_is_not_found() {
        let fault = (MODULE.run)(
            json!({"name": "no-such", "state": "started"}),
            &mut Host::plan(),
        )
        .unwrap_err();
        assert!(
            fault
                .message
                .starts_with("Could not find the requested service no-such")
        );
        assert!((MODULE.check)(&json!({"name": "../x", "state": "started"})).is_err());
        assert!((MODULE.check)(&json!({"name": "x"})).is_err());
    }
}
