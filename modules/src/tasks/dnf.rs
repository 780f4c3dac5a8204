use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::args::{Bool, List, Number, Text};
use crate::host::{Command, Entry, Fault, Host};
use crate::module::{ArgumentError, Module, Report, Task};

pub(super) static MODULE: Module = Module::of::<Dnf>();

/// Installs, upgrades and removes packages with dnf or yum, on RedHat and its relatives.
///
/// What dnf does is known only to dnf: a plan shows its command, and an undo does not take it back.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Dnf {
    /// The packages: names, versions (`nginx-1.20`), groups (`@web`), files or URLs; `*` with `state: latest` for all.
    #[serde(default)]
    name: List,
    /// `present`, `latest` or `absent`.
    #[serde(default)]
    state: State,
    /// Repositories to use for this once.
    #[serde(default)]
    enablerepo: List,
    /// Repositories not to use for this once.
    #[serde(default)]
    disablerepo: List,
    /// Packages to leave out.
    #[serde(default)]
    exclude: List,
    /// Take packages that nobody has signed.
    #[serde(default)]
    disable_gpg_check: Bool,
    /// Read the repositories' indexes anew.
    #[serde(default)]
    update_cache: Bool,
    /// Only upgrade what is installed.
    #[serde(default)]
    update_only: Bool,
    /// Only upgrades that mend a hole.
    #[serde(default)]
    security: Bool,
    /// Only upgrades that mend a mistake.
    #[serde(default)]
    bugfix: Bool,
    /// Remove what nothing needs any more, too.
    autoremove: Option<Bool>,
    /// Install an older version where it is asked for.
    #[serde(default)]
    allow_downgrade: Bool,
    /// Remove what is in the way.
    #[serde(default)]
    allowerasing: Bool,
    /// Take the best version or fail.
    best: Option<Bool>,
    /// Leave out what cannot be solved.
    skip_broken: Option<Bool>,
    /// The release of the distribution.
    releasever: Option<Text>,
    /// Another root directory.
    installroot: Option<Text>,
    /// Another configuration file.
    conf_file: Option<Text>,
    /// Only fetch.
    #[serde(default)]
    download_only: Bool,
    /// Where to fetch to.
    download_dir: Option<Text>,
    /// Install what the packages recommend, too.
    #[serde(default = "yes")]
    install_weak_deps: Bool,
    /// Whether servers must prove who they are.
    #[serde(default = "yes")]
    sslverify: Bool,
    /// Plugins to use for this once.
    #[serde(default)]
    enable_plugin: List,
    /// Plugins not to use for this once.
    #[serde(default)]
    disable_plugin: List,
    /// What to leave out of the configuration's own exclusions.
    #[serde(default)]
    disable_excludes: Text,
    /// Not supported: asking is the part of `package_facts`.
    list: Option<Value>,
    /// Taken for Ansible's sake: dnf waits for its own lock.
    #[serde(default, rename = "lock_timeout")]
    _lock_timeout: Option<Number>,
    /// Taken for Ansible's sake.
    #[serde(default, rename = "install_repoquery")]
    _install_repoquery: Option<Value>,
    /// Taken for Ansible's sake.
    #[serde(default, rename = "nobest")]
    _nobest: Option<Value>,
    /// Taken for Ansible's sake.
    #[serde(default, rename = "cacheonly")]
    _cacheonly: Option<Value>,
    /// Taken for Ansible's sake: the host's own dnf or yum is used.
    #[serde(default, rename = "use_backend")]
    _use_backend: Option<Value>,
    /// Taken for Ansible's sake: no Python is needed.
    #[serde(default, rename = "auto_install_module_deps")]
    _auto_install_module_deps: Option<Value>,
    /// Taken for Ansible's sake: certificates are checked as `sslverify` says.
    #[serde(default, rename = "validate_certs")]
    _validate_certs: Option<Value>,
}

fn yes() -> Bool {
    Bool(true)
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
enum State {
    #[default]
    #[serde(alias = "installed")]
    Present,
    Latest,
    #[serde(alias = "removed")]
    Absent,
}

impl Task for Dnf {
    const NAME: &'static str = "dnf";
    const ALIASES: &'static [&'static str] = &["yum", "dnf5"];
    const ARGUMENT_ALIASES: &'static [(&'static str, &'static str)] =
        &[("pkg", "name"), ("expire-cache", "update_cache")];

    fn check(&self) -> Result<(), ArgumentError> {
        if self.list.is_some() {
            return Err(ArgumentError::of(
                "list",
                "it is not supported: `package_facts` lists packages",
            ));
        }
        if let Some(name) = self
            .name
            .iter()
            .find(|name| name.is_empty() || name.starts_with('-'))
        {
            return Err(ArgumentError::of(
                "name",
                format!("`{name}` is not the name of a package"),
            ));
        }
        let autoremove = self.autoremove.is_some_and(|yes| *yes);
        match self.name.is_empty() && !*self.update_cache && !autoremove {
            true => Err(ArgumentError::of(
                "name",
                "nothing is asked for: one of name, update_cache and autoremove is required",
            )),
            false => Ok(()),
        }
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        let programs = ["dnf", "dnf5", "yum", "microdnf"];
        let mut found = None;
        for program in programs {
            if host.entry(&host.resolve(&Path::new("/usr/bin").join(program))?)? != Entry::Absent {
                found = Some(program);
                break;
            }
        }
        let Some(program) = found else {
            return Err(Fault::new(
                "this host has neither dnf nor yum: it is no relative of RedHat; use the module package, which takes the host's own manager",
            ));
        };
        if *self.update_cache && !host.planning() {
            let output = host.tool(&[program, "-y", "makecache"], None)?;
            if !output.ok() {
                return Err(Fault::new(format!(
                    "cannot read the indexes anew: {}",
                    output.complaint()
                )));
            }
        }
        let names = self.differing(host)?;
        let all = self.state == State::Latest && self.name.iter().any(|name| name == "*");
        if names.is_empty() && !all && self.name.is_empty() && self.autoremove.is_none() {
            return Ok(Report::of(json!({"msg": "Cache updated", "results": []})));
        }
        if names.is_empty() && !all && !self.name.is_empty() {
            return Ok(Report::of(
                json!({"msg": "Nothing to do", "results": [], "rc": 0}),
            ));
        }
        let mut argv = vec![program.to_owned(), "-y".to_owned()];
        argv.extend(self.options());
        argv.push(self.verb().to_owned());
        if !all {
            argv.extend(names);
        }
        let line = argv.join(" ");
        let Some(output) = host.command(Command {
            argv,
            line,
            ..Command::default()
        })?
        else {
            return Ok(Report::of(json!({"results": []})));
        };
        if !output.ok() {
            return Err(Fault::new(format!(
                "cannot manage packages with {program}: {}",
                output.complaint()
            ))
            .with("rc", output.rc)
            .with("results", Vec::<String>::new()));
        }
        Ok(Report::of(
            json!({"msg": "", "rc": 0, "results": [output.text()]}),
        ))
    }
}

impl Dnf {
    fn verb(&self) -> &'static str {
        match self.state {
            State::Absent => "remove",
            _ if self.name.is_empty() => "autoremove",
            State::Latest if self.name.iter().any(|name| name == "*") => "upgrade",
            State::Latest if *self.update_only => "upgrade",
            State::Present | State::Latest => "install",
        }
    }

    /// The packages that are not as wanted. Whether a newer one is to be had only dnf knows.
    fn differing(&self, host: &Host) -> Result<Vec<String>, Fault> {
        let mut names = Vec::new();
        for name in self.name.iter().filter(|name| *name != "*") {
            let installed = host.probe(&["rpm", "-q", "--whatprovides", name])?.ok()
                || host.probe(&["rpm", "-q", name])?.ok();
            let differs = match self.state {
                State::Present => !installed,
                State::Absent => installed,
                State::Latest if installed => {
                    host.probe(&["dnf", "-q", "check-update", name])?.rc == 100
                }
                State::Latest => !*self.update_only,
            };
            if differs || name.starts_with('@') || name.contains('/') {
                names.push(name.clone());
            }
        }
        Ok(names)
    }

    fn options(&self) -> Vec<String> {
        let mut options = Vec::new();
        let lists = [
            ("--enablerepo", &self.enablerepo),
            ("--disablerepo", &self.disablerepo),
            ("--exclude", &self.exclude),
            ("--enableplugin", &self.enable_plugin),
            ("--disableplugin", &self.disable_plugin),
        ];
        for (flag, list) in lists {
            options.extend(list.iter().map(|item| format!("{flag}={item}")));
        }
        let flags = [
            (*self.disable_gpg_check, "--nogpgcheck"),
            (*self.security, "--security"),
            (*self.bugfix, "--bugfix"),
            (
                *self.allowerasing || *self.allow_downgrade,
                "--allowerasing",
            ),
            (self.best.is_some_and(|best| *best), "--best"),
            (self.best.is_some_and(|best| !*best), "--nobest"),
            (self.skip_broken.is_some_and(|skip| *skip), "--skip-broken"),
            (*self.download_only, "--downloadonly"),
            (!*self.install_weak_deps, "--setopt=install_weak_deps=False"),
            (!*self.sslverify, "--setopt=sslverify=False"),
        ];
        options.extend(
            flags
                .iter()
                .filter(|(on, _)| *on)
                .map(|(_, flag)| (*flag).to_owned()),
        );
        let texts = [
            ("--releasever", &self.releasever),
            ("--installroot", &self.installroot),
            ("--config", &self.conf_file),
            ("--downloaddir", &self.download_dir),
        ];
        for (flag, text) in texts {
            options.extend(text.iter().map(|text| format!("{flag}={text}")));
        }
        if !self.disable_excludes.is_empty() {
            options.push(format!("--disableexcludes={}", self.disable_excludes));
        }
        options
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::MODULE;
    use crate::host::Host;

    #[test]
    fn a_host_without_it_says_so() {
        if ["dnf", "yum"]
            .iter()
            .any(|name| std::path::Path::new("/usr/bin").join(name).exists())
        {
            return;
        }
        let fault = (MODULE.run)(
            json!({"name": "nginx", "enablerepo": "epel"}),
            &mut Host::plan(),
        )
        .unwrap_err();
        assert!(
            fault
                .message
                .starts_with("this host has neither dnf nor yum"),
            "{fault}"
        );
        assert!((MODULE.check)(&json!({})).is_err());
        assert!((MODULE.check)(&json!({"name": "-x"})).is_err());
    }
}
