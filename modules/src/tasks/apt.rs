use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use self::names::Wish;
use crate::args::{Bool, List, Number, Text};
use crate::host::{Command, Entry, Fault, Host, Managed, PackageChange};
use crate::module::{ArgumentError, Module, Report, Status, Task};

mod archive;
mod names;

pub(super) static MODULE: Module = Module::of::<Apt>();

/// Installs, upgrades and removes packages with apt.
///
/// A plan shows the exact versions that would come and go, dependencies among them. Configuration files that were changed on the host are kept.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Apt {
    /// The packages; `name=1.2-3` for one version, `name=1.2*` for the newest that begins so, `name>=1.2` for that or a newer one,
    /// `name/release` for the one of a release. A `*` in a name stands for all names that fit.
    #[serde(default)]
    name: List,
    /// `present`, `latest`, `absent`, `build-dep` (what is needed to build them) or `fixed` (repair what is broken).
    #[serde(default)]
    state: State,
    /// Read the package index anew first.
    update_cache: Option<Bool>,
    /// Read the index anew only if it is older than so many seconds.
    #[serde(default)]
    cache_valid_time: Number,
    /// How often to try to read the index.
    #[serde(default = "five")]
    update_cache_retries: Number,
    /// Most seconds to wait between two tries.
    #[serde(default = "twelve")]
    update_cache_retry_max_delay: Number,
    /// Install what the packages recommend, too; as the host is set up where it is not given.
    install_recommends: Option<Bool>,
    /// Remove configuration files with a package.
    #[serde(default)]
    purge: Bool,
    /// Remove what nothing needs any more, too.
    #[serde(default)]
    autoremove: Bool,
    /// Remove packages that are not to be had any more from the cache.
    #[serde(default)]
    autoclean: Bool,
    /// Empty the cache of packages.
    #[serde(default)]
    clean: Bool,
    /// Fail rather than remove anything.
    #[serde(default)]
    fail_on_autoremove: Bool,
    /// Take packages from this release, such as `bookworm-backports`.
    default_release: Option<Text>,
    /// Only upgrade what is installed.
    #[serde(default)]
    only_upgrade: Bool,
    /// Upgrade the whole host: `safe` (or `yes`) removes nothing, `full` and `dist` remove what is in the way.
    upgrade: Option<Value>,
    /// A package's file to install: a path on the host, or a URL.
    deb: Option<Text>,
    /// Options of dpkg without their dashes, with commas between them.
    #[serde(default = "keep")]
    dpkg_options: Text,
    /// Install an older version where it is asked for.
    #[serde(default)]
    allow_downgrade: Bool,
    /// Change packages that are held.
    #[serde(default)]
    allow_change_held_packages: Bool,
    /// Install packages that nobody has signed.
    #[serde(default)]
    allow_unauthenticated: Bool,
    /// All of the three before, and removing what is essential.
    #[serde(default)]
    force: Bool,
    /// What packages are told that want to start or stop services: 101 forbids it.
    policy_rc_d: Option<Number>,
    /// How many seconds to wait while another package manager is at work.
    #[serde(default = "minute")]
    lock_timeout: Number,
    /// Taken for Ansible's sake: apt-get is always used.
    #[serde(default, rename = "force_apt_get")]
    _force_apt_get: Option<Bool>,
    /// Taken for Ansible's sake: no Python is needed.
    #[serde(default, rename = "auto_install_module_deps")]
    _auto_install_module_deps: Option<Bool>,
}

fn minute() -> Number {
    Number(60)
}
fn five() -> Number {
    Number(5)
}
fn twelve() -> Number {
    Number(12)
}
fn keep() -> Text {
    "force-confdef,force-confold".into()
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "kebab-case")]
enum State {
    #[default]
    #[serde(alias = "installed")]
    Present,
    Latest,
    #[serde(alias = "removed")]
    Absent,
    BuildDep,
    Fixed,
}

/// How the whole host is upgraded.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Upgrade {
    Safe,
    Full,
}

impl Task for Apt {
    const NAME: &'static str = "apt";
    const ARGUMENT_ALIASES: &'static [(&'static str, &'static str)] = &[
        ("pkg", "name"),
        ("package", "name"),
        ("update-cache", "update_cache"),
        ("install-recommends", "install_recommends"),
        ("default-release", "default_release"),
        ("allow-unauthenticated", "allow_unauthenticated"),
        ("allow-downgrade", "allow_downgrade"),
        ("allow_downgrades", "allow_downgrade"),
        ("allow-downgrades", "allow_downgrade"),
    ];

    fn check(&self) -> Result<(), ArgumentError> {
        self.upgrade()?;
        names::wishes(&self.name, self.state)?;
        let given = [
            !self.name.is_empty(),
            self.deb.is_some(),
            self.upgrade()?.is_some(),
        ];
        if given.iter().filter(|given| **given).count() > 1 {
            return Err(ArgumentError::of(
                "deb",
                "parameters are mutually exclusive: deb|package|upgrade",
            ));
        }
        let other = self.updates()
            || *self.autoremove
            || *self.autoclean
            || *self.clean
            || self.state == State::Fixed;
        match given.contains(&true) || other {
            true => Ok(()),
            false => Err(ArgumentError::of(
                "name",
                "nothing is asked for: name packages, or set update_cache, upgrade, deb, autoremove, autoclean or clean",
            )),
        }
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        if host.entry(Path::new("/usr/bin/apt-get"))? == Entry::Absent {
            return Err(Fault::new(
                "this host has no apt-get: only Debian and its relatives do",
            ));
        }
        let mut updated = false;
        if self.updates() {
            let age = u64::try_from(*self.cache_valid_time).unwrap_or(0);
            updated = refresh(
                host,
                age,
                *self.update_cache_retries,
                *self.update_cache_retry_max_delay,
            )?;
        }
        let mut managed = Managed::default();
        let mut commands = false;
        if *self.clean {
            commands |= cache(host, "clean")?;
        }
        let mut wishes = names::wishes(&self.name, self.state)?;
        let mut upgrade = self.upgrade()?;
        if wishes.iter().any(Wish::is_all) {
            if wishes.len() > 1 {
                return Err(Fault::new(
                    "unable to install additional packages when upgrading all installed packages",
                ));
            }
            upgrade = Some(Upgrade::Safe);
            wishes.clear();
        }
        let mut status = None;
        if let Some(deb) = &self.deb {
            match archive::install(host, deb, *self.force, &self.change())? {
                Some(done) => managed.add(done),
                None => status = Some(Status::Unknown),
            }
        } else if let Some(upgrade) = upgrade {
            managed.add(self.upgrade_all(host, upgrade)?);
        } else if self.state == State::Fixed {
            let change = with_option(self.change(), "--fix-broken");
            managed.add(host.manage("install", &[], &change)?);
        } else if self.state == State::BuildDep {
            let sources: Vec<String> = wishes.iter().map(|wish| wish.name().to_owned()).collect();
            managed.add(host.manage("build-dep", &sources, &self.change())?);
        } else if !wishes.is_empty() {
            managed.add(self.install(host, &wishes)?);
        } else if *self.autoremove {
            let verb = if *self.purge { "--purge" } else { "-q" };
            managed.add(host.manage("autoremove", &[], &with_option(self.change(), verb))?);
        }
        if *self.autoclean {
            commands |= cache(host, "autoclean")?;
        }
        let asked = !self.name.is_empty() || self.deb.is_some() || upgrade.is_some();
        let mut fields = json!({"cache_updated": updated, "cache_update_time": host.index_time()});
        if managed.changed {
            fields["stdout"] = managed.stdout.into();
            fields["stderr"] = managed.stderr.into();
        }
        // As Ansible has it: an index that was read is a change where nothing else was asked for.
        if updated && !asked && !managed.changed && !commands {
            status = Some(Status::Changed);
        }
        let report = Report::of(fields);
        Ok(match status {
            Some(status) => report.with_status(status),
            None => report,
        })
    }
}

impl Apt {
    fn updates(&self) -> bool {
        self.update_cache.is_some_and(|yes| *yes)
            || (self.update_cache.is_none() && *self.cache_valid_time > 0)
    }

    fn upgrade(&self) -> Result<Option<Upgrade>, ArgumentError> {
        let word = match &self.upgrade {
            None => return Ok(None),
            Some(Value::Bool(yes)) => if *yes { "yes" } else { "no" }.to_owned(),
            Some(Value::String(word)) => word.to_lowercase(),
            Some(_) => String::new(),
        };
        match word.as_str() {
            "no" | "false" => Ok(None),
            "yes" | "true" | "safe" => Ok(Some(Upgrade::Safe)),
            "full" | "dist" => Ok(Some(Upgrade::Full)),
            _ => Err(ArgumentError::of(
                "upgrade",
                "expected `dist`, `full`, `safe`, `yes` or `no`",
            )),
        }
    }

    /// All that is said of how packages are managed.
    fn change(&self) -> PackageChange {
        let mut options = vec![
            "-o".to_owned(),
            format!("DPkg::Lock::Timeout={}", *self.lock_timeout),
        ];
        let flags = [
            (self.only_upgrade, "--only-upgrade"),
            (self.allow_unauthenticated, "--allow-unauthenticated"),
            (self.allow_downgrade, "--allow-downgrades"),
            (
                self.allow_change_held_packages,
                "--allow-change-held-packages",
            ),
            (self.fail_on_autoremove, "--no-remove"),
        ];
        options.extend(
            flags
                .iter()
                .filter(|(on, _)| **on)
                .map(|(_, flag)| (*flag).to_owned()),
        );
        if *self.force {
            let all = [
                "--allow-downgrades",
                "--allow-remove-essential",
                "--allow-change-held-packages",
                "--allow-unauthenticated",
            ];
            options.extend(all.map(str::to_owned));
        }
        if let Some(release) = &self.default_release {
            options.extend(["-t".to_owned(), release.to_string()]);
        }
        let dpkg = self
            .dpkg_options
            .split(',')
            .map(str::trim)
            .filter(|option| !option.is_empty());
        PackageChange {
            wanted: Vec::new(),
            recommends: self.install_recommends.map(|yes| *yes),
            purge: *self.purge,
            autoremove: *self.autoremove,
            options,
            dpkg_options: Some(
                dpkg.map(|option| option.trim_start_matches("--").to_owned())
                    .collect(),
            ),
            policy_rc_d: self.policy_rc_d.map(|code| *code),
        }
    }

    fn upgrade_all(&self, host: &mut Host, upgrade: Upgrade) -> Result<Managed, Fault> {
        match upgrade {
            Upgrade::Safe => host.manage(
                "upgrade",
                &[],
                &with_option(self.change(), "--with-new-pkgs"),
            ),
            Upgrade::Full => host.manage("dist-upgrade", &[], &self.change()),
        }
    }

    fn install(&self, host: &mut Host, wishes: &[Wish]) -> Result<Managed, Fault> {
        let mut change = self.change();
        let release = self.default_release.as_deref();
        for wish in wishes {
            let known = wish.known(host)?;
            for name in known {
                if *self.only_upgrade && host.package(&name)?.is_none() {
                    continue;
                }
                let to = wish.resolve(host, &name, release)?;
                change.wanted.push((name, to));
            }
        }
        install(host, change)
    }
}

fn with_option(mut change: PackageChange, option: &str) -> PackageChange {
    change.options.push(option.to_owned());
    change
}

fn install(host: &mut Host, change: PackageChange) -> Result<Managed, Fault> {
    match change.wanted.is_empty() {
        true => Ok(Managed::default()),
        false => host.install(change).map_err(unavailable),
    }
}

/// Says in Ansible's words that a package is not known.
fn unavailable(fault: Fault) -> Fault {
    let unknown = fault
        .message
        .split_once("Unable to locate package ")
        .map(|(_, rest)| rest.to_owned());
    match unknown {
        Some(rest) => {
            let name = rest.split_whitespace().next().unwrap_or_default();
            Fault {
                message: format!(
                    "No package matching '{name}' is available: check its name, or read the package index anew (`update_cache: true`)"
                ),
                ..fault
            }
        }
        None => fault,
    }
}

/// Reads the package index anew, more than once where that fails; true where there was something new.
pub(super) fn refresh(
    host: &mut Host,
    older_than_s: u64,
    retries: i64,
    max_delay_s: i64,
) -> Result<bool, Fault> {
    let before = host.index_time();
    let mut tries = 0;
    loop {
        match host.refresh_packages(older_than_s) {
            Ok(read) => return Ok(read && (host.planning() || host.index_time() != before)),
            Err(fault) if tries >= retries => {
                return Err(Fault {
                    message: format!(
                        "Failed to update apt cache after {tries} retries: {}",
                        fault.message
                    ),
                    ..fault
                });
            }
            Err(_) => {
                let delay = 1_u64 << tries.clamp(0, 10);
                std::thread::sleep(Duration::from_secs(
                    delay.min(u64::try_from(max_delay_s).unwrap_or(0)),
                ));
                tries += 1;
            }
        }
    }
}

/// Cleans apt's cache; what it would remove is asked first.
fn cache(host: &mut Host, verb: &str) -> Result<bool, Fault> {
    let asked = host.apt_get(vec![verb.to_owned(), "--simulate".to_owned()])?;
    let text = asked.text();
    let removes = text
        .lines()
        .any(|line| line.starts_with("Del ") && !line.ends_with('*'));
    let packages = || {
        let files = std::fs::read_dir("/var/cache/apt/archives")
            .into_iter()
            .flatten()
            .flatten();
        files
            .into_iter()
            .any(|file| file.file_name().to_string_lossy().ends_with(".deb"))
    };
    let caches = || Path::new("/var/cache/apt/pkgcache.bin").exists();
    let full = verb == "clean" && (packages() || caches());
    if !removes && !full {
        return Ok(false);
    }
    let words = ["apt-get", "-y", verb];
    let output = host.command(Command {
        argv: words.map(str::to_owned).to_vec(),
        line: words.join(" "),
        ..Command::default()
    })?;
    match output.filter(|output| !output.ok()) {
        Some(output) => Err(Fault::new(format!(
            "cannot {verb} apt's cache: {}",
            output.complaint()
        ))
        .with("rc", output.rc)),
        None => Ok(true),
    }
}

#[cfg(test)]
mod tests {
    use fleet_wire::What;
    use serde_json::{Value, json};

    use super::MODULE;
    use crate::host::Host;

    fn refused(args: Value) -> String {
        (MODULE.check)(&args).unwrap_err().to_string()
    }

    #[test]
    fn arguments_are_checked() {
        assert!(refused(json!({})).starts_with("argument `name`: nothing is asked for"));
        assert!(refused(json!({"name": "x", "deb": "/x.deb"})).contains("mutually exclusive"));
        assert!(refused(json!({"upgrade": "some"})).contains("expected `dist`"));
        assert!(refused(json!({"name": "x;y"})).contains("`x;y` is not the name of a package"));
        for fine in [
            json!({"pkg": ["a", "b=1.2*", "c>=2", "d/bookworm-backports", "e*"]}),
            json!({"name": "libstdc++6:amd64", "upgrade": false}),
            json!({"cache_valid_time": 3600}),
            json!({"name": "a,b", "state": "installed"}),
            json!({"name": "a", "state": "build-dep"}),
            json!({"state": "fixed"}),
            json!({"upgrade": "dist"}),
            json!({"autoremove": true, "purge": true}),
        ] {
            assert!((MODULE.check)(&fine).is_ok(), "{fine}");
        }
    }

    #[test]
    fn what_is_installed_changes_nothing() {
        let mut host = Host::plan();
        let Some(version) = host.package("dpkg").ok().flatten() else {
            return;
        };
        let prefix = format!("dpkg={}*", &version[..4]);
        (MODULE.run)(
            json!({"name": ["dpkg", prefix, format!("dpkg={version}"), "dpkg>=1.0"]}),
            &mut host,
        )
        .unwrap();
        assert!(host.end().is_empty());
        let fault = (MODULE.run)(json!({"name": "no-such-package-at-all"}), &mut host).unwrap_err();
        assert!(
            fault
                .message
                .starts_with("No package matching 'no-such-package-at-all'"),
            "{fault}"
        );
        (MODULE.run)(
            json!({"name": "no-such-package-at-all", "state": "absent"}),
            &mut host,
        )
        .unwrap();
        (MODULE.run)(
            json!({"name": "no-such-package-at-all", "only_upgrade": true}),
            &mut host,
        )
        .unwrap();
        assert!(host.end().is_empty());
    }

    #[test]
    fn a_plan_names_what_a_removal_takes_along() {
        let mut host = Host::plan();
        let Some(version) = host.package("tzdata").ok().flatten() else {
            return;
        };
        let report = (MODULE.run)(json!({"name": "tzdata", "state": "absent"}), &mut host).unwrap();
        let effects: Vec<What> = host.end().into_iter().map(|effect| effect.what).collect();
        let gone = What::Package {
            name: "tzdata".to_owned(),
            before: Some(version),
            after: None,
        };
        assert!(effects.contains(&gone), "{effects:?}");
        assert!(
            report.fields["stdout"]
                .as_str()
                .unwrap()
                .contains("Remv tzdata")
        );
        assert_eq!(host.package("tzdata").unwrap(), None);
    }
}
