use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use fleet_wire::{UndoClass, What};

use super::process::Process;
use super::{Entry, Fault, Host, Output, Put, To};
use crate::args::Mode;

const STATUS: &str = "/var/lib/dpkg/status";
const LISTS: &str = "/var/lib/apt/lists";
/// What some hosts touch whenever the index was read in full.
const STAMP: &str = "/var/lib/apt/periodic/update-success-stamp";
/// What says whether services may be started.
const POLICY: &str = "/usr/sbin/policy-rc.d";
/// How long the package manager may take where the task does not say.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Packages that are wanted, or not.
#[derive(Clone, Debug, Default)]
pub struct PackageChange {
    /// Each package and what it should be.
    pub wanted: Vec<(String, PackageTo)>,
    /// Also install what the packages recommend; none as the host is set.
    pub recommends: Option<bool>,
    /// Remove configuration files with a package.
    pub purge: bool,
    /// Also remove what nothing needs any more.
    pub autoremove: bool,
    /// Further words for `apt-get`.
    pub options: Vec<String>,
    /// Options of dpkg, without their dashes; none for those that keep changed configuration files.
    pub dpkg_options: Option<Vec<String>>,
    /// What `invoke-rc.d` is told whenever a package wants to start or stop a service; none to let it.
    pub policy_rc_d: Option<i64>,
}

/// What the package manager did, or would do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Managed {
    /// Whether a package comes, goes, or changes its version.
    pub changed: bool,
    /// What it said; in a plan the simulation.
    pub stdout: String,
    /// What it warned of.
    pub stderr: String,
}

/// What a package should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PackageTo {
    /// Installed, in any version.
    Present,
    /// Installed, in the newest version that the host knows.
    Latest,
    /// Installed in this version.
    Version(String),
    /// Installed from this release.
    Release(String),
    /// Not installed.
    Absent,
}

/// One package's step in a simulation or a run.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Step {
    name: String,
    before: Option<String>,
    after: Option<String>,
}

impl Host {
    /// A package's installed version.
    ///
    /// # Errors
    /// When the host has no dpkg, or its status cannot be read.
    pub fn package(&self, name: &str) -> Result<Option<String>, Fault> {
        if let Some(version) = self.overlay.packages.get(name) {
            return Ok(version.clone());
        }
        let mut known = self.packages.borrow_mut();
        let known = match &mut *known {
            Some(known) => known,
            unread => unread.insert(installed()?),
        };
        Ok(known.get(name).cloned())
    }

    /// Installs, upgrades or removes packages, in one call of the package manager for each kind.
    ///
    /// # Errors
    /// When a package is not known, or the package manager fails.
    pub fn install(&mut self, change: PackageChange) -> Result<Managed, Fault> {
        let (mut add, mut remove) = (Vec::new(), Vec::new());
        for (name, to) in &change.wanted {
            if name.is_empty() || name.starts_with('-') || name.contains(char::is_whitespace) {
                return Err(Fault::new(format!("`{name}` is not the name of a package")));
            }
            let has = self.package(name)?;
            match (to, has) {
                (PackageTo::Present, Some(_)) => {}
                (PackageTo::Absent, None) => {
                    // Its configuration files are still there.
                    if change.purge && !self.overlay.packages.contains_key(name) && !gone(name)? {
                        remove.push(name.clone());
                    }
                }
                (PackageTo::Version(wanted), Some(has)) if *wanted == has => {}
                (PackageTo::Present | PackageTo::Latest, _) => add.push(name.clone()),
                (PackageTo::Version(wanted), _) => add.push(format!("{name}={wanted}")),
                (PackageTo::Release(release), _) => add.push(format!("{name}/{release}")),
                (PackageTo::Absent, Some(_)) => remove.push(name.clone()),
            }
        }
        let mut managed = Managed::default();
        if !remove.is_empty() {
            let verb = if change.purge { "purge" } else { "remove" };
            managed.add(self.manage(verb, &remove, &change)?);
        }
        if !add.is_empty() {
            managed.add(self.manage("install", &add, &change)?);
        }
        Ok(managed)
    }

    /// When the package index was last read, in seconds since 1970; 0 where it never was.
    #[must_use]
    pub fn index_time(&self) -> u64 {
        let modified = |path: &str| fs::metadata(path).and_then(|data| data.modified()).ok();
        let time = modified(STAMP).or_else(|| modified(LISTS));
        let since = time.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
        since.unwrap_or_default().as_secs()
    }

    /// Reads the package index anew if it is older than so many seconds; true where it was.
    /// No effect, for nothing that is installed changes; in a plan it is not done, and what is planned after it is assumed.
    ///
    /// # Errors
    /// When the package manager fails.
    pub fn refresh_packages(&mut self, older_than_s: u64) -> Result<bool, Fault> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let age = now
            .unwrap_or_default()
            .as_secs()
            .saturating_sub(self.index_time());
        if older_than_s > 0 && age < older_than_s {
            return Ok(false);
        }
        if self.recording {
            let known = self.overlay.index_stale;
            self.overlay.index_stale = true;
            // What was read a moment ago in this very plan is not old.
            return Ok(!known || older_than_s == 0);
        }
        let output = self.apt_get(vec!["update".to_owned(), "-q".to_owned()])?;
        // apt-get ends with 0 where an index could not be read, and only warns.
        let missed = output
            .error_text()
            .lines()
            .any(|line| line.starts_with("E:") || line.contains("Failed to fetch"));
        if !output.ok() || missed {
            return Err(told("cannot read the package index anew", &output));
        }
        Ok(true)
    }

    /// Has the package manager do something: what its simulation shows are the effects.
    ///
    /// # Errors
    /// When it fails.
    pub fn manage(
        &mut self,
        verb: &str,
        names: &[String],
        change: &PackageChange,
    ) -> Result<Managed, Fault> {
        let mut words: Vec<String> = ["-y", "-q"].map(str::to_owned).to_vec();
        let usual = ["force-confdef", "force-confold"].map(str::to_owned);
        for option in change.dpkg_options.as_deref().unwrap_or(&usual) {
            words.extend(["-o".to_owned(), format!("Dpkg::Options::=--{option}")]);
        }
        match change.recommends {
            Some(true) => words.push("--install-recommends".to_owned()),
            Some(false) => words.push("--no-install-recommends".to_owned()),
            None => {}
        }
        if change.autoremove {
            words.push("--auto-remove".to_owned());
        }
        words.extend(change.options.iter().cloned());
        words.push(verb.to_owned());
        words.push("--".to_owned());
        words.extend(names.iter().cloned());

        let simulation = self.apt_get(simulated(&words))?;
        let unsure = self.open() || self.recording && self.overlay.index_stale;
        let steps = match simulation.ok() {
            true => steps(&simulation.text()),
            false if unsure => names.iter().map(|name| guess(name, verb)).collect(),
            false => {
                return Err(told(&tried(verb, names), &simulation));
            }
        };
        if steps.is_empty() {
            return Ok(Managed::default());
        }
        let steps: Vec<Step> = steps
            .into_iter()
            .map(|step| {
                match step.after.is_none() && matches!(self.package(&step.name), Ok(None)) {
                    // Only configuration files of it were left.
                    true => Step {
                        before: None,
                        ..step
                    },
                    false => step,
                }
            })
            .collect();
        let old_policy = self.set_policy(change.policy_rc_d)?;
        let effects: Vec<_> = steps
            .iter()
            .map(
                |Step {
                     name,
                     before,
                     after,
                 }| {
                    let undo = if before.is_none() {
                        UndoClass::Inverse
                    } else {
                        UndoClass::BestEffort
                    };
                    self.effect(
                        What::Package {
                            name: name.clone(),
                            before: before.clone(),
                            after: after.clone(),
                        },
                        undo,
                        unsure,
                    )
                },
            )
            .collect();
        if self.recording {
            for step in steps {
                self.overlay.packages.insert(step.name, step.after);
            }
            self.overlay.open = true;
            effects.into_iter().for_each(|effect| self.report(effect));
            self.restore_policy(old_policy)?;
            return Ok(Managed::of(&simulation));
        }
        effects.iter().try_for_each(|effect| self.allow(effect))?;
        let intents = effects
            .iter()
            .map(|effect| self.intend(effect))
            .collect::<Result<Vec<_>, _>>()?;
        let output = self.apt_get(words);
        self.packages.take();
        self.forget_units();
        self.names = self.names_now();
        self.restore_policy(old_policy)?;
        let output = output?;
        if !output.ok() {
            return Err(told(&tried(verb, names), &output));
        }
        for intent in intents.into_iter().flatten() {
            self.complete(Some(intent.id))?;
        }
        effects.into_iter().for_each(|effect| self.report(effect));
        Ok(Managed::of(&output))
    }

    /// Says what services may do while packages come and go; what was said before.
    fn set_policy(&mut self, code: Option<i64>) -> Result<Option<Option<Put>>, Fault> {
        let Some(code) = code else {
            return Ok(None);
        };
        let path = Path::new(POLICY);
        let put = |content: Vec<u8>, mode: u32| Put {
            path: path.to_owned(),
            to: To::File {
                content: Some(content.into()),
                mode: Some(Mode::Octal(mode)),
                owner: None,
                group: None,
            },
            validate: None,
        };
        let old = match self.entry(path)? {
            Entry::File(meta, _) => Some(put(self.read(path)?.unwrap_or_default(), meta.mode)),
            _ => None,
        };
        self.put(put(format!("#!/bin/sh\nexit {code}\n").into_bytes(), 0o755))?;
        Ok(Some(old))
    }

    fn restore_policy(&mut self, old: Option<Option<Put>>) -> Result<(), Fault> {
        match old {
            Some(old) => self
                .put(old.unwrap_or_else(|| Put::absent(POLICY)))
                .map(drop),
            None => Ok(()),
        }
    }

    /// Runs `apt-get` for what it keeps beside packages (its caches).
    ///
    /// # Errors
    /// When it cannot be run.
    pub fn apt_get(&self, words: Vec<String>) -> Result<Output, Fault> {
        let process = apt_get(&words);
        let argv = process.argv.clone();
        let timeout = self.task.timeout.or(Some(PATIENCE));
        let environment = process.environment;
        self.process(Process {
            argv: &argv,
            environment,
            timeout,
            leave_children: true,
            ..Process::default()
        })
        .run()
    }
}

fn tried(verb: &str, names: &[String]) -> String {
    let verb = verb.trim_start_matches("--");
    format!("cannot {verb} {}", names.join(" "))
        .trim_end()
        .to_owned()
}

impl Managed {
    fn of(output: &Output) -> Self {
        Self {
            changed: true,
            stdout: output.text(),
            stderr: output.error_text(),
        }
    }

    /// Adds what came after.
    pub fn add(&mut self, other: Self) {
        self.changed |= other.changed;
        self.stdout.push_str(&other.stdout);
        self.stderr.push_str(&other.stderr);
    }
}

struct AptGet {
    argv: Vec<String>,
    environment: Vec<(String, String)>,
}

fn apt_get(words: &[String]) -> AptGet {
    let environment = [
        ("DEBIAN_FRONTEND", "noninteractive"),
        ("APT_LISTCHANGES_FRONTEND", "none"),
        ("LC_ALL", "C"),
    ];
    AptGet {
        // Another apt may be at work (unattended upgrades): wait for it a while.
        argv: [
            vec![
                "apt-get".to_owned(),
                "-o".to_owned(),
                "DPkg::Lock::Timeout=120".to_owned(),
            ],
            words.to_vec(),
        ]
        .concat(),
        environment: environment
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec(),
    }
}

/// The words of a simulation, which leaves no trace: neither a lock nor apt's caches on disk.
fn simulated(words: &[String]) -> Vec<String> {
    let quiet = [
        "--simulate",
        "-o",
        "Debug::NoLocking=1",
        "-o",
        "Dir::Cache::pkgcache=",
        "-o",
        "Dir::Cache::srcpkgcache=",
    ];
    quiet
        .iter()
        .map(|&word| word.to_owned())
        .chain(words.iter().cloned())
        .collect()
}

/// The packages that a removal would take along, but for those that the run itself brought.
pub(super) fn taken_along(name: &str, own: &BTreeSet<&str>) -> Result<Vec<String>, Fault> {
    let words = ["purge", "--", name].map(str::to_owned);
    let AptGet { argv, environment } = apt_get(&simulated(&words));
    let output = Process {
        argv: &argv,
        environment,
        timeout: Some(PATIENCE),
        ..Process::default()
    }
    .run()?;
    if !output.ok() {
        return Err(told(&format!("cannot purge {name}"), &output));
    }
    let others = steps(&output.text()).into_iter().map(|step| step.name);
    Ok(others
        .filter(|other| other != name && !own.contains(other.as_str()))
        .collect())
}

/// Whether nothing of a package but configuration files is there. One that was unpacked and not configured is not gone.
pub(super) fn gone(name: &str) -> Result<bool, Fault> {
    let text = status()?;
    Ok(!text.split("\n\n").any(|paragraph| {
        let field = |name: &str| paragraph.lines().find_map(|line| line.strip_prefix(name));
        let status = field("Status: ").unwrap_or_default();
        let named = field("Package: ").is_some_and(|known| {
            known == name
                || field("Architecture: ")
                    .is_some_and(|architecture| format!("{known}:{architecture}") == name)
        });
        named && !status.ends_with(" not-installed") && !status.ends_with(" config-files")
    }))
}

/// Brings packages back to what they were, as well as can be: the undo's part.
pub(super) fn revert(name: &str, before: Option<&str>) -> Result<(), Fault> {
    let mut words: Vec<String> = [
        "-y",
        "-q",
        "--allow-downgrades",
        "-o",
        "Dpkg::Options::=--force-confold",
    ]
    .map(str::to_owned)
    .to_vec();
    match before {
        None => words.extend(["purge".to_owned(), "--".to_owned(), name.to_owned()]),
        Some(version) => words.extend([
            "install".to_owned(),
            "--".to_owned(),
            format!("{name}={version}"),
        ]),
    }
    let AptGet { argv, environment } = apt_get(&words);
    let output = Process {
        argv: &argv,
        environment,
        timeout: Some(PATIENCE),
        leave_children: true,
        ..Process::default()
    }
    .run()?;
    if output.ok() {
        Ok(())
    } else {
        Err(told(
            &format!("cannot bring the package {name} back"),
            &output,
        ))
    }
}

/// The installed packages with their versions, from dpkg's own file.
pub(super) fn installed() -> Result<BTreeMap<String, String>, Fault> {
    Ok(parse_status(&status()?))
}

fn status() -> Result<String, Fault> {
    let text = fs::read(STATUS).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Fault::new(
            "this host has no dpkg: packages can only be managed where Debian's package manager is",
        ),
        _ => Fault::io("read", Path::new(STATUS), error),
    })?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn parse_status(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for paragraph in text.split("\n\n") {
        let field = |name: &str| paragraph.lines().find_map(|line| line.strip_prefix(name));
        let installed = field("Status: ").is_some_and(|status| status.ends_with(" installed"));
        if let (true, Some(name), Some(version)) =
            (installed, field("Package: "), field("Version: "))
        {
            if let Some(architecture) = field("Architecture: ") {
                found.insert(format!("{name}:{architecture}"), version.to_owned());
            }
            found.insert(name.to_owned(), version.to_owned());
        }
    }
    found
}

/// The steps that a simulation shows: `Inst name [old] (new …)` and `Remv name [old]`.
fn steps(text: &str) -> Vec<Step> {
    let mut found = Vec::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let (verb, Some(name)) = (words.next(), words.next()) else {
            continue;
        };
        let between = |open, close| {
            line.split_once(open)
                .and_then(|(_, rest)| rest.split([close, ' ']).next())
                .map(str::to_owned)
        };
        let before = between('[', ']');
        match verb {
            Some("Inst") => {
                // `[old]` stands before the parenthesis; a bracket within it is the architecture.
                let upgrade = line
                    .find('[')
                    .zip(line.find('('))
                    .is_some_and(|(old, new)| old < new);
                found.push(Step {
                    name: name.to_owned(),
                    before: before.filter(|_| upgrade),
                    after: between('(', ')'),
                });
            }
            Some("Remv" | "Purg") if !found.iter().any(|step: &Step| step.name == name) => {
                found.push(Step {
                    name: name.to_owned(),
                    before,
                    after: None,
                });
            }
            _ => {}
        }
    }
    found
}

/// What a package will be where the index does not know it yet.
fn guess(name: &str, verb: &str) -> Step {
    let file = name
        .starts_with('/')
        .then(|| Path::new(name).file_stem()?.to_str());
    let name = match file.flatten() {
        Some(file) => file.split('_').next().unwrap_or(file),
        None => name.split('/').next().unwrap_or(name),
    };
    let (name, version) = name
        .split_once('=')
        .map_or((name, None), |(name, version)| (name, Some(version)));
    let after = (verb == "install").then(|| version.unwrap_or("latest").to_owned());
    Step {
        name: name.to_owned(),
        before: None,
        after,
    }
}

fn told(what: &str, output: &Output) -> Fault {
    let stderr = output.error_text();
    let errors: Vec<&str> = stderr
        .lines()
        .filter(|line| line.starts_with("E:"))
        .collect();
    let said = if errors.is_empty() {
        output.complaint()
    } else {
        errors.join(" ")
    };
    Fault::new(format!("{what}: {said}"))
        .with("rc", output.rc)
        .with("stdout", output.text())
        .with("stderr", stderr)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dpkgs_status_is_read() {
        let text = "Package: nginx\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1.22.1-9\n\nPackage: gone\nStatus: deinstall ok config-files\nVersion: 1\n";
        let known = parse_status(text);
        assert_eq!(known.get("nginx").map(String::as_str), Some("1.22.1-9"));
        assert_eq!(
            known.get("nginx:amd64").map(String::as_str),
            Some("1.22.1-9")
        );
        assert_eq!(known.get("gone"), None);
    }

    #[test]
    fn a_simulation_becomes_steps() {
        let text = "NOTE: This is only a simulation!\nInst libfoo (1.2-3 Debian:12/stable [amd64])\nInst nginx [1.22.1-9] (1.22.1-10 Debian:12 [amd64]) []\nRemv old [0.9]\nConf libfoo (1.2-3 Debian:12 [amd64])\n";
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            steps(text),
            [
                Step {
                    name: "libfoo".into(),
                    before: None,
                    after: some("1.2-3")
                },
                Step {
                    name: "nginx".into(),
                    before: some("1.22.1-9"),
                    after: some("1.22.1-10")
                },
                Step {
                    name: "old".into(),
                    before: some("0.9"),
                    after: None
                },
            ]
        );
    }

    #[test]
    fn what_is_installed_is_not_installed_again() {
        let mut host = Host::plan();
        let Ok(Some(_)) = host.package("dpkg") else {
            return;
        };
        let change = PackageChange {
            wanted: vec![("dpkg".to_owned(), PackageTo::Present)],
            ..PackageChange::default()
        };
        assert!(!host.install(change).unwrap().changed);
        assert!(host.end().is_empty());
    }
}
