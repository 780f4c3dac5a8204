use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::host::{Fault, Host};
use crate::module::{Module, Report, Task};

pub(super) static MODULE: Module = Module::of::<ServiceFacts>();

/// Lists the host's services as the fact `services`: by name, each with its state, whether it starts at boot, and who manages it.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct ServiceFacts {}

/// What a unit's own line says that is worse than any file of it.
const BAD: [&str; 3] = ["not-found", "masked", "failed"];

type Services = Map<String, Value>;

impl Task for ServiceFacts {
    const NAME: &'static str = "service_facts";

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        let mut services = Services::new();
        if Path::new("/etc/init.d").is_dir() && Path::new("/usr/sbin/service").exists() {
            let output = host.probe(&["service", "--status-all"])?;
            scripts(&output.text(), &mut services);
        }
        if Path::new("/run/systemd/system").is_dir() {
            units(host, &mut services)?;
        }
        if services.is_empty() {
            return Ok(Report::of(json!({
                "ansible_facts": {},
                "msg": "Failed to find any services. This can be due to privileges or some other configuration issue.",
            })));
        }
        Ok(Report::of(json!({"ansible_facts": {"services": services}})))
    }
}

/// The scripts of sysvinit: ` [ + ]  cron`.
fn scripts(text: &str, services: &mut Services) {
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let (Some("["), Some(sign), Some("]"), Some(name)) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            continue;
        };
        let state = match sign {
            "+" => "running",
            "-" => "stopped",
            _ => continue,
        };
        services.insert(
            name.to_owned(),
            json!({"name": name, "state": state, "source": "sysv"}),
        );
    }
}

fn units(host: &Host, services: &mut Services) -> Result<(), Fault> {
    let list = [
        "--no-pager",
        "--type",
        "service",
        "--all",
        "--plain",
        "--no-legend",
    ];
    let systemctl = |verb: &str| {
        let argv = ["systemctl", verb]
            .iter()
            .chain(&list)
            .copied()
            .collect::<Vec<_>>();
        host.probe(&argv).map(|output| output.text())
    };
    loaded(&systemctl("list-units")?, services);
    let files = systemctl("list-unit-files")?;
    let unknown: Vec<&str> = files
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| !services.contains_key(*name) && !name.contains("@."))
        .collect();
    let mut states = Map::new();
    if !unknown.is_empty() {
        let argv = ["systemctl", "show", "--property=Id,Names,ActiveState", "--"];
        let argv: Vec<&str> = argv.into_iter().chain(unknown.iter().copied()).collect();
        let shown = host.probe(&argv)?.text();
        // The paragraphs come in the order of the names.
        for (name, paragraph) in unknown.iter().zip(shown.split("\n\n")) {
            let state = paragraph
                .lines()
                .find_map(|line| line.strip_prefix("ActiveState="));
            states.insert((*name).to_owned(), json!(state.unwrap_or("unknown")));
        }
    }
    with_files(&files, &states, services);
    Ok(())
}

fn loaded(text: &str, services: &mut Services) {
    for line in text.lines().filter(|line| line.contains(".service")) {
        let mut fields: Vec<&str> = line.split_whitespace().collect();
        fields.retain(|field| *field != "●" && *field != "*");
        let [name, _, _, sub, ..] = fields[..] else {
            continue;
        };
        let status = BAD
            .iter()
            .find(|bad| fields.contains(bad))
            .unwrap_or(&"unknown");
        let state = if sub == "running" {
            "running"
        } else {
            "stopped"
        };
        services.insert(
            name.to_owned(),
            json!({"name": name, "state": state, "status": status, "source": "systemd"}),
        );
    }
}

fn with_files(text: &str, states: &Map<String, Value>, services: &mut Services) {
    for line in text.lines().filter(|line| line.contains(".service")) {
        let mut words = line.split_whitespace();
        let (Some(name), Some(status)) = (words.next(), words.next()) else {
            continue;
        };
        match services.get_mut(name) {
            Some(known) => {
                if !BAD.iter().any(|bad| known["status"] == *bad) {
                    known["status"] = status.into();
                }
            }
            None => {
                let state = states
                    .get(name)
                    .cloned()
                    .unwrap_or_else(|| "unknown".into());
                let service =
                    json!({"name": name, "state": state, "status": status, "source": "systemd"});
                services.insert(name.to_owned(), service);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::{loaded, scripts, with_files};

    #[test]
    fn units_and_scripts_are_listed_in_ansibles_words() {
        let mut services = Map::new();
        scripts(
            " [ + ]  cron\n [ - ]  sudo\n [ ? ]  hwclock.sh\n",
            &mut services,
        );
        loaded(
            "cron.service loaded active running Regular\n● ntp.service not-found inactive dead ntp.service\nx.service loaded active exited X\n",
            &mut services,
        );
        let states = Map::from_iter([("off.service".to_owned(), json!("inactive"))]);
        with_files(
            "cron.service enabled enabled\noff.service disabled enabled\ngetty@.service enabled enabled\nntp.service enabled\n",
            &states,
            &mut services,
        );
        let service = |name: &str, state: &str, status: &str| json!({"name": name, "state": state, "status": status, "source": "systemd"});
        assert_eq!(
            Value::from(services),
            json!({
                "cron": {"name": "cron", "state": "running", "source": "sysv"},
                "sudo": {"name": "sudo", "state": "stopped", "source": "sysv"},
                "cron.service": service("cron.service", "running", "enabled"),
                "ntp.service": service("ntp.service", "stopped", "not-found"),
                "x.service": service("x.service", "stopped", "unknown"),
                "off.service": service("off.service", "inactive", "disabled"),
                "getty@.service": service("getty@.service", "unknown", "enabled"),
            })
        );
    }
}
