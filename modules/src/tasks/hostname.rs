use std::path::Path;

use serde::Deserialize;
use serde_json::json;

use crate::args::Text;
use crate::host::{Entry, Fault, Host, Put};
use crate::module::{ArgumentError, Module, Report, Task};

pub(super) static MODULE: Module = Module::of::<Hostname>();

/// Sets the host's name, now and for the next boot.
///
/// The file and the kernel's own name are two effects that an undo puts back.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Hostname {
    /// The name, with or without a domain.
    name: Text,
    /// Where the host keeps its name; found out where it is not given.
    r#use: Option<Strategy>,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
enum Strategy {
    Alpine,
    Debian,
    Generic,
    Openrc,
    Redhat,
    Sles,
    Systemd,
    Freebsd,
    Macos,
    Macosx,
    Darwin,
    Openbsd,
    Solaris,
}

impl Task for Hostname {
    const NAME: &'static str = "hostname";

    fn check(&self) -> Result<(), ArgumentError> {
        use Strategy::{Darwin, Freebsd, Macos, Macosx, Openbsd, Solaris};
        if matches!(
            self.r#use,
            Some(Freebsd | Macos | Macosx | Darwin | Openbsd | Solaris)
        ) {
            return Err(ArgumentError::of("use", "only Linux hosts are managed"));
        }
        if self.name.is_empty() || self.name.contains(char::is_whitespace) {
            return Err(ArgumentError::of(
                "name",
                format!("`{}` cannot be the name of a host", self.name),
            ));
        }
        // What the kernel takes.
        match self.name.len() > 64 {
            true => Err(ArgumentError::of(
                "name",
                "name cannot be longer than 64 characters on Linux, try a shorter name",
            )),
            false => Ok(()),
        }
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        let name = &*self.name;
        let before = host.sysctl("kernel.hostname")?.unwrap_or_default();
        let strategy = match self.r#use {
            Some(strategy) => strategy,
            None => guess(host)?,
        };
        match strategy {
            Strategy::Generic => {}
            Strategy::Openrc => edit(
                host,
                "/etc/conf.d/hostname",
                "hostname=",
                &format!("hostname=\"{name}\""),
            )?,
            Strategy::Redhat => edit(
                host,
                "/etc/sysconfig/network",
                "HOSTNAME=",
                &format!("HOSTNAME={name}"),
            )?,
            Strategy::Sles => drop(host.put(Put::content("/etc/HOSTNAME", format!("{name}\n")))?),
            _ => {
                let path = Path::new("/etc/hostname");
                let text = host.read(path)?.unwrap_or_default();
                let text = String::from_utf8_lossy(&text).into_owned();
                // A comment or a missing end of line is no other name.
                let mut names = text
                    .lines()
                    .map(str::trim)
                    .filter(|line| !line.is_empty() && !line.starts_with('#'));
                if names.next() != Some(name) {
                    host.put(Put::content(path, format!("{name}\n")))?;
                }
            }
        }
        host.set_sysctl("kernel.hostname", name)?;
        let (short, domain) = name.split_once('.').unwrap_or((name, ""));
        Ok(Report::of(json!({
            "name": name,
            "ansible_facts": {
                "ansible_hostname": short,
                "ansible_nodename": name,
                "ansible_fqdn": name,
                "ansible_domain": domain,
            },
            "diff": {"before": format!("hostname = {before}\n"), "after": format!("hostname = {name}\n")},
        })))
    }
}

fn guess(host: &Host) -> Result<Strategy, Fault> {
    if Path::new("/run/systemd/system").is_dir() {
        return Ok(Strategy::Systemd);
    }
    let there = |path: &str| Ok::<_, Fault>(host.entry(Path::new(path))? != Entry::Absent);
    Ok(if there("/etc/conf.d/hostname")? {
        Strategy::Openrc
    } else if there("/etc/HOSTNAME")? {
        Strategy::Sles
    } else if there("/etc/sysconfig/network")? && !there("/etc/hostname")? {
        Strategy::Redhat
    } else {
        Strategy::Debian
    })
}

/// Sets the line that begins so, or adds it.
fn edit(host: &mut Host, path: &str, start: &str, line: &str) -> Result<(), Fault> {
    let text = host.read(Path::new(path))?.unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    let mut lines: Vec<&str> = text.lines().collect();
    match lines
        .iter()
        .position(|old| old.trim_start().starts_with(start))
    {
        Some(at) => lines[at] = line,
        None => lines.push(line),
    }
    host.put(Put::content(path, format!("{}\n", lines.join("\n"))))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::MODULE;
    use crate::host::Host;

    #[test]
    fn a_name_is_a_file_and_the_kernels_own() {
        let mut host = Host::plan();
        let args = json!({"name": "web1.example.com", "use": "debian"});
        let report = (MODULE.run)(args.clone(), &mut host).unwrap();
        let effects: Vec<String> = host.end().iter().map(fleet_wire::Effect::summary).collect();
        assert_eq!(
            effects.last().map(String::as_str),
            Some("sysctl kernel.hostname")
        );
        assert_eq!(
            host.read(Path::new("/etc/hostname")).unwrap().unwrap(),
            b"web1.example.com\n"
        );
        assert_eq!(report.fields["ansible_facts"]["ansible_hostname"], "web1");
        assert_eq!(
            report.fields["ansible_facts"]["ansible_domain"],
            "example.com"
        );
        (MODULE.run)(args, &mut host).unwrap();
        assert!(host.end().is_empty());
    }

    #[test]
    fn arguments_are_checked() {
        let refused = |args| (MODULE.check)(&args).unwrap_err().to_string();
        assert!(refused(json!({"name": "x".repeat(65)})).contains("longer than 64"));
        assert!(refused(json!({"name": "x", "use": "macos"})).contains("only Linux"));
        assert!(refused(json!({"name": ""})).contains("cannot be the name"));
    }
}
