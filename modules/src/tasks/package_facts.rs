use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::args::List;
use crate::host::{Fault, Host};
use crate::module::{ArgumentError, Module, Report, Task};

pub(super) static MODULE: Module = Module::of::<PackageFacts>();

/// Lists the installed packages as the fact `packages`: by name, each with version, architecture and source.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct PackageFacts {
    /// The package managers to ask: `auto`, `apt`, `rpm` (or `dnf`, `yum`, `zypper`), `apk`, `pacman`.
    #[serde(default = "auto")]
    manager: List,
    /// `first` asks the first one that the host has, `all` all of them.
    #[serde(default)]
    strategy: Strategy,
}

fn auto() -> List {
    List(vec!["auto".to_owned()])
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
enum Strategy {
    #[default]
    First,
    All,
}

/// Names of package managers, and whose packages they are.
const MANAGERS: [(&str, &str); 14] = [
    ("apt", "apt"),
    ("rpm", "rpm"),
    ("yum", "rpm"),
    ("dnf", "rpm"),
    ("dnf5", "rpm"),
    ("zypper", "rpm"),
    ("apk", "apk"),
    ("pacman", "pacman"),
    ("pkg", ""),
    ("pkg5", ""),
    ("pkgng", ""),
    ("pkg_info", ""),
    ("openbsd_pkg", ""),
    ("portage", ""),
];

type Packages = Map<String, Value>;

impl Task for PackageFacts {
    const NAME: &'static str = "package_facts";

    fn check(&self) -> Result<(), ArgumentError> {
        let known = |name: &str| name == "auto" || MANAGERS.iter().any(|(known, _)| *known == name);
        match self
            .manager
            .iter()
            .find(|name| !known(&name.to_lowercase()))
        {
            Some(unknown) => Err(ArgumentError {
                expected: Some(
                    "known are auto, apt, rpm, dnf, yum, zypper, apk and pacman".to_owned(),
                ),
                ..ArgumentError::of(
                    "manager",
                    format!("there is no package manager `{unknown}`"),
                )
            }),
            None => Ok(()),
        }
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        let mut wanted: Vec<&str> = Vec::new();
        for name in self.manager.iter().map(|name| name.to_lowercase()) {
            let more: Vec<&str> = match name.as_str() {
                "auto" => vec!["apt", "rpm", "apk", "pacman"],
                name => MANAGERS
                    .iter()
                    .filter(|(known, _)| *known == name)
                    .map(|(_, kind)| *kind)
                    .collect(),
            };
            more.into_iter().for_each(|kind| {
                if !wanted.contains(&kind) {
                    wanted.push(kind);
                }
            });
        }
        let mut packages = Packages::new();
        let mut found = false;
        for kind in wanted {
            let known = match kind {
                "apt" => debian(host)?,
                "rpm" => rpm(host)?,
                "apk" => apk(host)?,
                "pacman" => pacman(host)?,
                _ => None,
            };
            let Some(known) = known.filter(|known| !known.is_empty()) else {
                continue;
            };
            found = true;
            for (name, versions) in known {
                packages.entry(name).or_insert(versions);
            }
            if self.strategy == Strategy::First {
                break;
            }
        }
        match found {
            true => Ok(Report::of(json!({"ansible_facts": {"packages": packages}}))),
            false => Err(Fault::new(format!(
                "Could not detect a supported package manager from the following list: {}: this host has none of them",
                self.manager.join(", ")
            ))),
        }
    }
}

fn add(packages: &mut Packages, package: Value) {
    let name = package["name"].as_str().unwrap_or_default().to_owned();
    match packages.get_mut(&name) {
        Some(Value::Array(versions)) => versions.push(package),
        _ => drop(packages.insert(name, json!([package]))),
    }
}

fn debian(host: &Host) -> Result<Option<Packages>, Fault> {
    let Some(text) = host.read(Path::new("/var/lib/dpkg/status"))? else {
        return Ok(None);
    };
    let mut packages = parse_status(&String::from_utf8_lossy(&text));
    // What a plan would have installed or removed.
    let names: Vec<String> = packages.keys().cloned().collect();
    for name in names.iter().filter(|_| host.planning()) {
        if host.package(name)?.is_none() {
            packages.remove(name);
        }
    }
    Ok(Some(packages))
}

fn parse_status(text: &str) -> Packages {
    let mut packages = Packages::new();
    for paragraph in text.split("\n\n") {
        let field = |name: &str| {
            let found = paragraph
                .lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            found.unwrap_or_default()
        };
        if !field("Status").ends_with(" installed") {
            continue;
        }
        add(
            &mut packages,
            json!({
                "name": field("Package"),
                "version": field("Version"),
                "arch": field("Architecture"),
                "category": field("Section"),
                "origin": field("Origin"),
                "source": "apt",
            }),
        );
    }
    packages
}

fn rpm(host: &Host) -> Result<Option<Packages>, Fault> {
    const FORMAT: &str = "%{NAME}\t%{VERSION}\t%{RELEASE}\t%{EPOCH}\t%{ARCH}\n";
    if !has(host, "/usr/bin/rpm") && !has(host, "/bin/rpm") {
        return Ok(None);
    }
    let output = host.probe(&["rpm", "-qa", "--qf", FORMAT])?;
    Ok(output.ok().then(|| parse_rpm(&output.text())))
}

fn parse_rpm(text: &str) -> Packages {
    let mut packages = Packages::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [name, version, release, epoch, arch] = fields[..] else {
            continue;
        };
        add(
            &mut packages,
            json!({
                "name": name,
                "version": version,
                "release": release,
                "epoch": epoch.parse::<u32>().ok(),
                "arch": arch,
                "source": "rpm",
            }),
        );
    }
    packages
}

fn apk(host: &Host) -> Result<Option<Packages>, Fault> {
    let Some(text) = host.read(Path::new("/lib/apk/db/installed"))? else {
        return Ok(None);
    };
    let text = String::from_utf8_lossy(&text);
    let mut packages = Packages::new();
    for paragraph in text.split("\n\n") {
        let field = |name: &str| paragraph.lines().find_map(|line| line.strip_prefix(name));
        if let (Some(name), Some(version)) = (field("P:"), field("V:")) {
            let (version, release) = version.rsplit_once("-r").unwrap_or((version, ""));
            add(
                &mut packages,
                json!({"name": name, "version": version, "release": release, "arch": field("A:"), "source": "apk"}),
            );
        }
    }
    Ok(Some(packages))
}

fn pacman(host: &Host) -> Result<Option<Packages>, Fault> {
    if !has(host, "/usr/bin/pacman") {
        return Ok(None);
    }
    let text = host.probe(&["pacman", "-Q"])?.text();
    let mut packages = Packages::new();
    for (name, version) in text.lines().filter_map(|line| line.split_once(' ')) {
        add(
            &mut packages,
            json!({"name": name, "version": version, "source": "pacman"}),
        );
    }
    Ok(Some(packages))
}

fn has(host: &Host, program: &str) -> bool {
    host.entry(Path::new(program))
        .is_ok_and(|entry| entry != crate::host::Entry::Absent)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{MODULE, parse_rpm, parse_status};
    use crate::host::Host;

    #[test]
    fn packages_are_listed_by_name() {
        let text = "Package: libc6\nStatus: install ok installed\nSection: libs\nArchitecture: amd64\nVersion: 2.36-9\n\n\
            Package: libc6\nStatus: install ok installed\nArchitecture: i386\nVersion: 2.36-9\n\n\
            Package: gone\nStatus: deinstall ok config-files\nVersion: 1\n";
        let packages = parse_status(text);
        assert_eq!(packages.len(), 1);
        assert_eq!(
            packages["libc6"][0],
            json!({"name": "libc6", "version": "2.36-9", "arch": "amd64", "category": "libs", "origin": "", "source": "apt"})
        );
        assert_eq!(packages["libc6"][1]["arch"], "i386");
        let packages = parse_rpm("bash\t5.1\t2.el9\t(none)\tx86_64\nvim\t8\t1\t2\tx86_64\n");
        assert_eq!(packages["bash"][0]["epoch"], json!(null));
        assert_eq!(packages["vim"][0]["epoch"], 2);
    }

    #[test]
    fn this_host_has_packages() {
        let Ok(report) = (MODULE.run)(json!({}), &mut Host::plan()) else {
            return;
        };
        assert!(
            !report.fields["ansible_facts"]["packages"]
                .as_object()
                .unwrap()
                .is_empty()
        );
        assert!((MODULE.check)(&json!({"manager": "npm"})).is_err());
        let fault = (MODULE.run)(json!({"manager": "pkgng"}), &mut Host::plan()).unwrap_err();
        assert!(
            fault
                .message
                .starts_with("Could not detect a supported package manager")
        );
    }
}
