use std::path::Path;
use std::time::UNIX_EPOCH;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::args::{Bool, List, Number, Text};
use crate::glob;
use crate::host::{Entry, Fault, Host, PackageChange, PackageTo};
use crate::module::{ArgumentError, Module, Report, Task};

pub(super) static MODULE: Module = Module::of::<Apt>();

/// Installs, upgrades and removes packages with apt.
///
/// A plan shows the exact versions that would come and go, dependencies among them. Configuration files that were changed on the host are kept.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Apt {
    /// The packages; `name=1.2-3` for one version, `name=1.2*` for the newest that begins so.
    #[serde(default)]
    name: List,
    /// `present`, `latest` or `absent`.
    #[serde(default)]
    state: State,
    /// Read the package index anew first.
    update_cache: Option<Bool>,
    /// Read the index anew only if it is older than so many seconds.
    #[serde(default)]
    cache_valid_time: Number,
    /// Install what the packages recommend, too; as the host is set up where it is not given.
    install_recommends: Option<Bool>,
    /// Remove configuration files with a package.
    #[serde(default)]
    purge: Bool,
    /// Remove what nothing needs any more, too.
    #[serde(default)]
    autoremove: Bool,
    /// Take packages from this release, such as `bookworm-backports`.
    default_release: Option<Text>,
    /// Only upgrade what is installed.
    #[serde(default)]
    only_upgrade: Bool,
    /// Install packages that nobody has signed.
    #[serde(default)]
    allow_unauthenticated: Bool,
    /// How many seconds to wait while another package manager is at work.
    #[serde(default = "minutes")]
    lock_timeout: Number,
    /// Taken for Ansible's sake: apt-get is always used.
    #[serde(default, rename = "force_apt_get")]
    _force_apt_get: Option<Bool>,
    /// Not supported yet.
    deb: Option<Value>,
    /// Not supported yet.
    upgrade: Option<Value>,
}

fn minutes() -> Number {
    Number(120)
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    #[default]
    #[serde(alias = "installed")]
    Present,
    Latest,
    #[serde(alias = "removed")]
    Absent,
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
    ];

    fn check(&self) -> Result<(), ArgumentError> {
        if self.deb.is_some() {
            return Err(ArgumentError::of(
                "deb",
                "installing from a file is not supported yet: put the package in a repository of its own",
            ));
        }
        let upgrades = self
            .upgrade
            .as_ref()
            .is_some_and(|upgrade| !matches!(upgrade, Value::Bool(false)) && upgrade != "no");
        if upgrades {
            return Err(ArgumentError::of(
                "upgrade",
                "upgrading the whole host is not supported yet: name the packages with `state: latest`",
            ));
        }
        wanted(&self.name, self.state)?;
        match self.name.is_empty() && !self.updates() {
            true => Err(ArgumentError::of(
                "name",
                "nothing is asked for: name packages, or set `update_cache: true`",
            )),
            false => Ok(()),
        }
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        let updated = match self.updates() {
            true => host.refresh_packages(u64::try_from(*self.cache_valid_time).unwrap_or(0))?,
            false => false,
        };
        let mut options = vec![
            "-o".to_owned(),
            format!("DPkg::Lock::Timeout={}", *self.lock_timeout),
        ];
        if let Some(release) = &self.default_release {
            options.extend(["-t".to_owned(), release.to_string()]);
        }
        if *self.only_upgrade {
            options.push("--only-upgrade".to_owned());
        }
        if *self.allow_unauthenticated {
            options.push("--allow-unauthenticated".to_owned());
        }
        install(
            host,
            wanted(&self.name, self.state)?,
            PackageChange {
                wanted: Vec::new(),
                recommends: self.install_recommends.map(|yes| *yes),
                purge: *self.purge,
                autoremove: *self.autoremove,
                options,
            },
        )?;
        Ok(Report::of(
            json!({"cache_updated": updated, "cache_update_time": index_time()}),
        ))
    }
}

impl Apt {
    fn updates(&self) -> bool {
        self.update_cache.is_some_and(|yes| *yes)
            || (self.update_cache.is_none() && *self.cache_valid_time > 0)
    }
}

/// Installs what is not as wanted. A version with a `*` is one that is there already, if it fits.
fn install(
    host: &mut Host,
    wanted: Vec<(String, PackageTo)>,
    mut change: PackageChange,
) -> Result<bool, Fault> {
    if wanted.is_empty() {
        return Ok(false);
    }
    for (name, to) in wanted {
        let fits = match &to {
            PackageTo::Version(version) if version.contains('*') => host
                .package(&name)?
                .is_some_and(|installed| glob::matches(version, &installed)),
            _ => false,
        };
        change
            .wanted
            .push((name, if fits { PackageTo::Present } else { to }));
    }
    host.install(change)
}

fn wanted(names: &[String], state: State) -> Result<Vec<(String, PackageTo)>, ArgumentError> {
    let mut wanted = Vec::new();
    for word in names.iter().map(|name| name.trim()) {
        let (name, version) = word
            .split_once('=')
            .map_or((word, None), |(name, version)| (name, Some(version)));
        let valid = |c: char| c.is_ascii_alphanumeric() || "+-.:_".contains(c);
        if name.is_empty() || name.starts_with('-') || !name.chars().all(valid) {
            return Err(ArgumentError::of(
                "name",
                format!("`{word}` is not the name of a package, alone or with `=` and a version"),
            ));
        }
        let to = match (state, version) {
            (State::Absent, _) => PackageTo::Absent,
            (State::Latest, Some(_)) => {
                return Err(ArgumentError::of(
                    "state",
                    format!("`latest` does not go with the version in `{word}`"),
                ));
            }
            (State::Present, Some(version)) => PackageTo::Version(version.to_owned()),
            (State::Present, None) => PackageTo::Present,
            (State::Latest, None) => PackageTo::Latest,
        };
        wanted.push((name.to_owned(), to));
    }
    Ok(wanted)
}

/// When the package index was last read, in seconds since 1970.
fn index_time() -> u64 {
    let modified = std::fs::metadata("/var/lib/apt/lists").and_then(|meta| meta.modified());
    let since = modified
        .ok()
        .and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since.unwrap_or_default().as_secs()
}

/// What the module `package` does on a host with apt.
pub(super) fn packages(host: &mut Host, names: &[String], state: State) -> Result<Report, Fault> {
    let apt = Path::new("/usr/bin/apt-get");
    if host.entry(apt)? == Entry::Absent {
        return Err(Fault::new(
            "this host has no apt-get: other package managers are not supported yet",
        ));
    }
    install(host, wanted(names, state)?, PackageChange::default())?;
    Ok(Report::default())
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
        assert!(refused(json!({"deb": "/x.deb"})).contains("not supported yet"));
        assert!(refused(json!({"name": "x", "upgrade": "dist"})).contains("not supported yet"));
        assert!(
            refused(json!({"name": "x=1", "state": "latest"}))
                .contains("does not go with the version")
        );
        assert!(
            refused(json!({"name": "nginx*"})).contains("`nginx*` is not the name of a package")
        );
        assert!(refused(json!({"name": "x>=1"})).contains("is not the name of a package"));
        for fine in [
            json!({"pkg": ["a", "b=1.2*"]}),
            json!({"name": "libstdc++6:amd64", "upgrade": false}),
            json!({"cache_valid_time": 3600}),
            json!({"name": "a,b", "state": "installed"}),
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
            json!({"name": ["dpkg", prefix, format!("dpkg={version}")]}),
            &mut host,
        )
        .unwrap();
        assert!(host.end().is_empty());
        let fault = (MODULE.run)(json!({"name": "no-such-package-at-all"}), &mut host).unwrap_err();
        assert!(fault.message.contains("no-such-package-at-all"), "{fault}");
    }

    #[test]
    fn a_plan_names_what_a_removal_takes_along() {
        let mut host = Host::plan();
        let Some(version) = host.package("tzdata").ok().flatten() else {
            return;
        };
        (MODULE.run)(json!({"name": "tzdata", "state": "absent"}), &mut host).unwrap();
        let effects: Vec<What> = host.end().into_iter().map(|effect| effect.what).collect();
        let gone = What::Package {
            name: "tzdata".to_owned(),
            before: Some(version),
            after: None,
        };
        assert!(effects.contains(&gone), "{effects:?}");
        assert_eq!(host.package("tzdata").unwrap(), None);
    }
}
