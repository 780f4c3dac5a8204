use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::json;

use crate::args::Text;
use crate::host::{Entry, Fault, Host, Put, To};
use crate::module::{ArgumentError, Module, Report, Task};

pub(super) static MODULE: Module = Module::of::<Timezone>();

/// Sets the host's time zone, and whether the hardware clock is kept in it.
///
/// It is a link and at most two small files, so the plan shows all of it and an undo puts all of it back.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Timezone {
    /// The zone: `Europe/Rome`, `Etc/UTC`.
    name: Option<Text>,
    /// What the hardware clock has: `UTC` or `local`.
    hwclock: Option<Clock>,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
enum Clock {
    #[serde(rename = "UTC")]
    Utc,
    #[serde(rename = "local")]
    Local,
}

const ZONES: &str = "/usr/share/zoneinfo";
const LINK: &str = "/etc/localtime";
const NAMED: &str = "/etc/timezone";

impl Task for Timezone {
    const NAME: &'static str = "timezone";
    const ARGUMENT_ALIASES: &'static [(&'static str, &'static str)] = &[("rtc", "hwclock")];

    fn check(&self) -> Result<(), ArgumentError> {
        match &self.name {
            Some(name)
                if name.is_empty()
                    || name.starts_with('/')
                    || name.split('/').any(|part| part == "..") =>
            {
                Err(ArgumentError::of(
                    "name",
                    format!("`{name}` is not the name of a time zone"),
                ))
            }
            None if self.hwclock.is_none() => Err(ArgumentError::of(
                "name",
                "nothing is asked for: one of name and hwclock is required",
            )),
            _ => Ok(()),
        }
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        let before = zone(host)?;
        if let Some(name) = &self.name {
            set(host, name, before.as_deref())?;
        }
        if let Some(clock) = self.hwclock {
            set_clock(host, clock)?;
        }
        let after = self
            .name
            .as_deref()
            .or(before.as_deref())
            .map(str::to_owned);
        let named =
            |zone: Option<String>| json!({"name": zone.unwrap_or_else(|| "n/a".to_owned())});
        Ok(Report::of(
            json!({"diff": {"before": named(before), "after": named(after)}}),
        ))
    }
}

/// The zone that the link names.
fn zone(host: &Host) -> Result<Option<String>, Fault> {
    let Entry::Link(target) = host.entry(Path::new(LINK))? else {
        return Ok(None);
    };
    let (_, name) = target.split_once("zoneinfo/").unwrap_or_default();
    Ok((!name.is_empty()).then(|| name.to_owned()))
}

fn set(host: &mut Host, name: &str, before: Option<&str>) -> Result<(), Fault> {
    let file = Path::new(ZONES).join(name);
    let known = matches!(host.entry(&host.resolve(&file)?)?, Entry::File(..));
    if !known && !host.open() {
        return Err(Fault::new(format!(
            "there is no time zone `{name}` on this host (no file {}): check its name, or install tzdata",
            file.display()
        )));
    }
    let systemd = Path::new("/run/systemd/system").is_dir();
    if before != Some(name) {
        // As systemd writes it where it runs.
        let up = if systemd {
            "..".to_owned() + ZONES
        } else {
            ZONES.to_owned()
        };
        host.put(Put {
            path: LINK.into(),
            to: To::Link {
                target: format!("{up}/{name}"),
            },
            validate: None,
        })?;
    }
    // Debian keeps the name a second time; its newer systemd leaves that file as it is, and so does `timedatectl`.
    let named = PathBuf::from(NAMED);
    if systemd && (before == Some(name) || !timedated_writes_it(host)?) {
        return Ok(());
    }
    let debian = host.entry(Path::new("/etc/debian_version"))? != Entry::Absent;
    if host.entry(&named)? != Entry::Absent || (debian && before != Some(name)) {
        host.put(Put::content(named, format!("{name}\n")))?;
    }
    Ok(())
}

/// Whether this host's own `timedatectl set-timezone` would write Debian's file: the program that does it has its name inside.
/// Where there is no such program, nothing but this module keeps the two alike.
fn timedated_writes_it(host: &Host) -> Result<bool, Fault> {
    let programs = [
        "/usr/lib/systemd/systemd-timedated",
        "/lib/systemd/systemd-timedated",
    ];
    for program in programs {
        if let Some(bytes) = host.read(&host.resolve(Path::new(program))?)? {
            return Ok(bytes
                .windows(NAMED.len())
                .any(|window| window == NAMED.as_bytes()));
        }
    }
    Ok(true)
}

/// The third line of adjtime(5).
fn set_clock(host: &mut Host, clock: Clock) -> Result<(), Fault> {
    let path = Path::new("/etc/adjtime");
    let text = host
        .read(path)?
        .map(|text| String::from_utf8_lossy(&text).into_owned());
    let word = match clock {
        Clock::Utc => "UTC",
        Clock::Local => "LOCAL",
    };
    if text.is_none() && clock == Clock::Utc {
        return Ok(());
    }
    let text = text.unwrap_or_else(|| "0.0 0 0.0\n0\nUTC\n".to_owned());
    let mut lines: Vec<&str> = text.lines().collect();
    lines.resize(3.max(lines.len()), "0");
    lines[2] = word;
    host.put(Put::content(path, format!("{}\n", lines.join("\n"))))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::MODULE;
    use crate::host::Host;

    #[test]
    fn a_zone_is_a_link_and_a_name() {
        if !std::path::Path::new("/usr/share/zoneinfo/Europe/Rome").exists() {
            return;
        }
        let mut host = Host::plan();
        (MODULE.run)(json!({"name": "Europe/Rome"}), &mut host).unwrap();
        let effects: Vec<String> = host.end().iter().map(fleet_wire::Effect::summary).collect();
        assert!(
            effects[0].starts_with("link /etc/localtime -> "),
            "{effects:?}"
        );
        assert!(
            effects[0].ends_with("/usr/share/zoneinfo/Europe/Rome"),
            "{effects:?}"
        );
        let report = (MODULE.run)(json!({"name": "Europe/Rome"}), &mut host).unwrap();
        assert!(host.end().is_empty());
        assert_eq!(report.fields["diff"]["before"]["name"], "Europe/Rome");
        let fault = (MODULE.run)(json!({"name": "Europe/Roam"}), &mut host).unwrap_err();
        assert!(fault.message.contains("no time zone `Europe/Roam`"));
    }

    #[test]
    fn the_hardware_clock_is_a_line_of_adjtime() {
        let mut host = Host::plan();
        (MODULE.run)(json!({"hwclock": "local"}), &mut host).unwrap();
        let text = host
            .read(std::path::Path::new("/etc/adjtime"))
            .unwrap()
            .unwrap();
        assert!(String::from_utf8(text).unwrap().ends_with("\nLOCAL\n"));
    }

    #[test]
    fn arguments_are_checked() {
        for wrong in [
            json!({}),
            json!({"name": "../../etc/passwd"}),
            json!({"hwclock": "utc"}),
        ] {
            assert!((MODULE.check)(&wrong).is_err(), "{wrong}");
        }
    }
}
