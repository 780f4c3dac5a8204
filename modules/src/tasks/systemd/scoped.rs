//! Units of users: those of one (`systemctl --user`) and of all (`systemctl --global`). Only their own systemd knows them.

use std::collections::BTreeMap;

use serde_json::json;

use super::{Scope, State, Systemd};
use crate::host::{Command, Fault, Host, Output};
use crate::module::Report;

/// Runs a command of systemd's that is no effect on one unit.
pub(super) fn tell(host: &mut Host, argv: &[&str]) -> Result<(), Fault> {
    let argv: Vec<String> = argv.iter().map(|&word| word.to_owned()).collect();
    let line = argv
        .iter()
        .filter(|word| !word.contains('='))
        .skip_while(|word| *word == "env");
    let line = line.cloned().collect::<Vec<_>>().join(" ");
    let output = host.command(Command {
        argv,
        line: line.clone(),
        ..Command::default()
    })?;
    match output.filter(|output| !output.ok()) {
        Some(output) => Err(
            Fault::new(format!("`{line}` failed: {}", output.complaint()))
                .with("rc", output.rc)
                .with("stderr", output.error_text()),
        ),
        None => Ok(()),
    }
}

/// Brings a unit of users to what is wanted.
pub(super) fn reach(wanted: &Systemd, host: &mut Host) -> Result<Report, Fault> {
    let scope = Manager {
        place: format!("XDG_RUNTIME_DIR=/run/user/{}", host.user().uid),
        flag: if wanted.scope == Scope::Global {
            "--global"
        } else {
            "--user"
        },
    };
    if *wanted.daemon_reexec {
        scope.act(host, &["daemon-reexec"])?;
    }
    if *wanted.daemon_reload && wanted.scope == Scope::User {
        scope.act(host, &["daemon-reload"])?;
    }
    let Some(name) = wanted.name.as_deref() else {
        return Ok(Report::default());
    };
    let status = match wanted.scope {
        Scope::Global => BTreeMap::new(),
        _ => scope.show(host, name)?,
    };
    let property = |name: &str| status.get(name).map(String::as_str).unwrap_or_default();
    if property("LoadState") == "not-found" && !host.open() && wanted.masked.is_none() {
        return Err(Fault::new(format!(
            "Could not find the requested service {name}: host has no such unit of users"
        )));
    }
    let enabled = scope
        .probe(host, &["is-enabled", "--", name])?
        .text()
        .trim()
        .to_owned();
    if let Some(masked) = wanted.masked
        && *masked != (enabled == "masked")
    {
        scope.act(host, &[if *masked { "mask" } else { "unmask" }, "--", name])?;
    }
    if let Some(enable) = wanted.enabled
        && *enable
            != matches!(
                enabled.as_str(),
                "enabled" | "static" | "alias" | "generated"
            )
    {
        let force = if *wanted.force {
            vec!["--force"]
        } else {
            Vec::new()
        };
        let verb = [if *enable { "enable" } else { "disable" }];
        let words: Vec<&str> = verb.into_iter().chain(force).chain(["--", name]).collect();
        scope.act(host, &words)?;
    }
    let running = matches!(
        property("ActiveState"),
        "active" | "activating" | "reloading"
    );
    let verb = match wanted.state {
        Some(State::Started) if !running => Some("start"),
        Some(State::Stopped) if running => Some("stop"),
        Some(State::Restarted) => Some("restart"),
        Some(State::Reloaded) => Some(if running { "reload" } else { "start" }),
        _ => None,
    };
    if let Some(verb) = verb {
        scope.act(host, &[verb, "--", name])?;
    }
    let state = wanted.state.map(|state| {
        if state == State::Stopped {
            "stopped"
        } else {
            "started"
        }
    });
    let mut fields = json!({"name": name, "status": status});
    if let Some(state) = state {
        fields["state"] = state.into();
    }
    if let Some(enabled) = wanted.enabled {
        fields["enabled"] = (*enabled).into();
    }
    Ok(Report::of(fields))
}

struct Manager {
    place: String,
    flag: &'static str,
}

impl Manager {
    fn words<'a>(&'a self, words: &[&'a str]) -> Vec<&'a str> {
        ["env", &self.place, "systemctl", self.flag]
            .into_iter()
            .chain(words.iter().copied())
            .collect()
    }

    fn act(&self, host: &mut Host, words: &[&str]) -> Result<(), Fault> {
        tell(host, &self.words(words))
    }

    fn probe(&self, host: &Host, words: &[&str]) -> Result<Output, Fault> {
        host.probe(&self.words(words))
    }

    fn show(&self, host: &Host, name: &str) -> Result<BTreeMap<String, String>, Fault> {
        let output = self.probe(host, &["show", "--", name])?;
        if !output.ok() {
            return Err(Fault::new(format!(
                "cannot ask the systemd of the user `{}` about {name}: {}; does it run (`loginctl enable-linger`)?",
                host.user().name,
                output.complaint()
            )));
        }
        let text = output.text();
        let pairs = text.lines().filter_map(|line| line.split_once('='));
        Ok(pairs
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect())
    }
}
