//! From flags and the configuration to a run: the inventory, the playbooks, the settings.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use anyhow::{Context, Result};
use fleet_engine::{
    Diagnostic,
    config::{self, Config},
    event,
    fact_cache::FactCache,
    inventory::{self, Inventory, Limit, LoadOptions},
    playbook::{BookSettings, Books, Playbook, TagFilter, Vars},
    run::{self, BecomeWay, Choice, Run, Settings},
    secret::Secret,
    template::{Templar, TemplateSettings},
    transport,
    vault::Vault,
};
use fleet_wire::Mode;
use fleet_yaml::Source;

use crate::{
    ansible_cfg,
    controller::ThisMachine,
    error::{self, Invalid, Mistakes},
    flags::{Target, Tasks},
    place::{self, Places},
};

/// How many hosts are worked on at the same time, where nobody says.
const FORKS: usize = 50;

/// Whose ways a run follows where fleetctl's and Ansible's differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// An inventory must be named, and a pattern must match something.
    Native,
    /// Without an inventory there is this machine, and a pattern that matches nothing is warned of.
    Ansible,
}

/// What is to be read.
pub(crate) struct Wanted<'a> {
    pub(crate) manner: Manner,
    pub(crate) target: &'a Target,
    /// The flags that belong to playbooks, where there are any.
    pub(crate) tasks: Option<&'a Tasks>,
    pub(crate) playbooks: &'a [PathBuf],
    /// A playbook that is no file, and the directory that stands for its own.
    pub(crate) text: Option<(Arc<Source>, PathBuf)>,
}

/// What is read before any connection is made.
pub(crate) struct Setup {
    pub(crate) places: Places,
    pub(crate) config: Arc<Config>,
    pub(crate) manner: Manner,
    pub(crate) inventory: Arc<Inventory>,
    pub(crate) playbooks: Arc<[Playbook]>,
    pub(crate) templar: Templar,
    pub(crate) books: Books,
    pub(crate) extra_vars: Arc<Vars>,
    pub(crate) limit: Option<Limit>,
    sources: Vec<String>,
    options: LoadOptions,
    playbook_dir: PathBuf,
}

impl Setup {
    /// Reads everything that the flags name, and reports all mistakes of all files at once.
    /// `tasks` are the flags that belong to playbooks, where there are any.
    pub(crate) fn read(
        target: &Target,
        tasks: Option<&Tasks>,
        playbooks: &[PathBuf],
    ) -> Result<Self> {
        Self::of(&Wanted {
            manner: Manner::Native,
            target,
            tasks,
            playbooks,
            text: None,
        })
    }

    /// The same for any manner.
    pub(crate) fn of(wanted: &Wanted<'_>) -> Result<Self> {
        let Wanted { manner, target, .. } = *wanted;
        let config = Arc::new(ansible_cfg::load()?);
        let places = Places::of_this_user();
        let mut dirs: Vec<PathBuf> = wanted
            .playbooks
            .iter()
            .filter_map(|path| path.parent())
            .map(Path::to_owned)
            .collect();
        dirs.extend(wanted.text.iter().map(|(_, dir)| dir.clone()));
        let vault = target.vault.vault(&config)?;
        error::keep_secret(&vault);
        let templar = Templar::new(template_settings(&dirs, &vault, &config));
        let mut mistakes = Vec::new();
        let mut warnings = Vec::new();

        let extra_vars = fleet_engine::extra_vars::read(&target.extra_vars, &vault);
        let (extra_vars, wrong) = match extra_vars {
            Ok(vars) => (Arc::new(vars), None),
            Err(problem) => (Arc::default(), Some(problem)),
        };
        let books = Books::new(book_settings(&config, target, &templar, &extra_vars));
        let mut readings: Vec<_> = wanted
            .playbooks
            .iter()
            .map(|path| books.playbook(path))
            .collect();
        if let Some((source, dir)) = &wanted.text {
            readings.push(books.text(Arc::clone(source), dir));
        }
        let (mut read, mut unset) = (Vec::new(), Vec::new());
        for reading in readings {
            read.push(reading.playbook);
            warnings.extend(reading.warnings);
            mistakes.extend(reading.mistakes);
            // Where a run is to do as Ansible does, a task that is reached finds them for itself.
            if manner == Manner::Native {
                mistakes.extend(reading.late);
                unset.extend(reading.unset);
            }
        }

        let sources = inventory_sources(target, &config, manner)?;
        let options = LoadOptions {
            playbook_dirs: dirs.clone(),
            extra_vars: (*extra_vars).clone(),
            ..match manner {
                Manner::Native => LoadOptions::strict(&config),
                Manner::Ansible => LoadOptions::as_ansible(&config),
            }
            .with_vault(&vault)
        };
        let inventory = match Inventory::load(&sources, &options) {
            Ok((inventory, noticed)) => {
                warnings.extend(noticed);
                Some(inventory)
            }
            Err(problems) => {
                mistakes.extend(problems);
                None
            }
        };
        mistakes.extend(wrong);
        if let Some(inventory) = &inventory {
            unset.retain(|unset| !sets(inventory, &unset.name));
            mistakes.extend(unset.into_iter().map(|unset| unset.told));
        }
        for warning in &warnings {
            if manner == Manner::Ansible {
                let place = warning.span.as_ref();
                let place = place.map_or_else(String::new, |span| format!("\nOrigin: {span}\n"));
                crate::commands::play::warn("WARNING", &format!("{}{place}", warning.message));
                continue;
            }
            anstream::eprintln!(
                "{}\n",
                fleet_engine::render(warning, crate::reporter::colored())
            );
        }
        let limit = target.limit.as_deref().map(Limit::parse).transpose();
        let limit = limit
            .map_err(|problem| mistakes.push(problem))
            .unwrap_or_default();
        let limit = match (&inventory, limit) {
            (Some(inventory), Some(limit)) if manner == Manner::Ansible => {
                Some(lenient(inventory, limit, target)?)
            }
            (_, limit) => limit,
        };
        // An errand needs the playbooks only to know what they are; whom they mean now is not its business.
        if let (Some(inventory), Some(tasks)) = (&inventory, wanted.tasks) {
            let choice = Choice {
                inventory,
                templar: &templar,
                extra_vars: &extra_vars,
                limit: limit.as_ref(),
                prompted: &HashMap::new(),
                allow_no_hosts: tasks.allow_no_hosts || manner == Manner::Ansible,
            };
            // Whom a play is for may depend on what is asked.
            let plays = read.iter().flat_map(|playbook| &playbook.plays);
            let plays = plays.filter(|play| play.prompts.is_empty());
            mistakes.extend(choice.check(plays));
        }
        match inventory {
            Some(inventory) if mistakes.is_empty() => Ok(Self {
                places,
                config,
                manner,
                inventory: Arc::new(inventory),
                playbooks: read.into(),
                templar,
                books,
                extra_vars,
                limit,
                sources,
                options,
                playbook_dir: place::absolute_dir(dirs.first()),
            }),
            _ => Err(Mistakes(mistakes).into()),
        }
    }

    /// The settings of a run: what the flags say, else the configuration.
    pub(crate) fn settings(&self, target: &Target, tasks: Option<&Tasks>) -> Result<Settings> {
        let config = &self.config;
        let words = |args: Option<&str>| match args {
            Some(args) => shlex::split(args)
                .ok_or_else(|| anyhow::Error::new(Invalid(format!("an open quote in `{args}`")))),
            None => Ok(Vec::new()),
        };
        let ansible = self.manner == Manner::Ansible;
        let method = target
            .become_method
            .as_deref()
            .unwrap_or_else(|| config.become_method());
        let Some(known) = transport::Method::named(method) else {
            return Err(Invalid(format!(
                "`{method}` is no way to become another user here: `sudo` and `su` are"
            ))
            .into());
        };
        if target.ask_pass || target.connection_password_file.is_some() {
            return Err(Invalid(
                "fleetctl never types an ssh password: log in with a key (`--private-key`)"
                    .to_owned(),
            )
            .into());
        }
        let become_user = target.become_user.clone().or_else(|| {
            let own = config.become_user_by(known.name());
            (own != "root").then(|| own.to_owned())
        });
        let timeout = target
            .timeout
            .map_or_else(|| config.timeout(), |own| own as u64);
        let tags = tasks.map_or_else(TagFilter::default, |tasks| {
            let or = |own: &[String], set: &[String]| match own.is_empty() {
                true => set.to_vec(),
                false => own.to_vec(),
            };
            TagFilter::parse(
                &or(&tasks.tags, config.tags_run()),
                &or(&tasks.skip_tags, config.tags_skip()),
            )
        });
        Ok(Settings {
            transport: transport_settings(&self.places),
            forks: self.forks(target),
            limit: self.limit.clone(),
            tags,
            extra_vars: Arc::clone(&self.extra_vars),
            user: target
                .user
                .clone()
                .or_else(|| config.remote_user().map(str::to_owned)),
            r#become: target.r#become || config.r#become(),
            become_user,
            become_method: Some(method.to_owned()),
            become_ways: ["sudo", "su"]
                .map(|method| {
                    let way = BecomeWay {
                        exe: config.become_exe_by(method).map(str::to_owned),
                        flags: config.become_flags_by(method).map(str::to_owned),
                    };
                    (method, way)
                })
                .into(),
            become_password: become_password(target, config)?,
            connection: target.connection.clone().or_else(|| {
                let own = config.transport();
                (own != "ssh" && own != "smart").then(|| own.to_owned())
            }),
            private_key_file: target
                .private_key
                .clone()
                .or_else(|| config.private_key_file().map(Path::to_owned)),
            ssh_common_args: words(
                target
                    .ssh_common_args
                    .as_deref()
                    .or(config.ssh_common_args()),
            )?,
            ssh_extra_args: words(target.ssh_extra_args.as_deref().or(config.ssh_extra_args()))?,
            timeout: Duration::from_secs(timeout.max(1)),
            host_keys: match config.host_key_checking() {
                true => transport::HostKeys::Strict,
                false => transport::HostKeys::No,
            },
            confirm: run::Confirm::Never,
            confirm_timeout: Duration::from_secs(60),
            lock_timeout: Duration::ZERO,
            diff: config.diff_always(),
            verbosity: self.verbosity(target),
            who: place::who(),
            home: self.places.home.clone(),
            allow_no_hosts: ansible || tasks.is_some_and(|tasks| tasks.allow_no_hosts),
            keep_on_failure: ansible,
            planned: None,
            saved: None,
            digest_key: None,
            left_alone: std::collections::BTreeSet::new(),
            interrupt: Arc::new(AtomicBool::new(false)),
            no_log: config.no_log(),
            any_errors_fatal: config.any_errors_fatal(),
            force_handlers: config.force_handlers()
                || tasks.is_some_and(|tasks| tasks.force_handlers),
            strategy: match config.strategy() {
                config::Strategy::Linear => event::Strategy::Linear,
                config::Strategy::Free => event::Strategy::Free,
                config::Strategy::HostPinned => event::Strategy::HostPinned,
            },
            gathering: match config.gathering() {
                config::Gathering::Implicit => run::Gathering::Implicit,
                config::Gathering::Explicit => run::Gathering::Explicit,
                config::Gathering::Smart => run::Gathering::Smart,
            },
            read_inventory: Some(self.read_inventory()),
            fact_cache: self.fact_cache(tasks)?,
            missing_handlers_fail: config.error_on_missing_handler(),
            private_role_vars: config
                .origin("private_role_vars")
                .map(|_| config.private_role_vars()),
            start_at: tasks.and_then(|tasks| tasks.start_at_task.clone()),
            step: tasks
                .filter(|tasks| tasks.step)
                .map(|_| crate::questions::step()),
            prompted: Arc::new(HashMap::new()),
            as_ansible: ansible,
            tells_invocations: config.inject_invocation(),
            ask: crate::questions::ask(),
            merges_hashes: config.hash_behaviour() == config::HashBehaviour::Merge,
            sources: self.sources.clone(),
            limit_text: target.limit.clone(),
            config_file: config.file().map(Path::to_owned),
            playbook_dir: self.playbook_dir.clone(),
        })
    }

    /// Reads the inventory once more, as it was read for this setup.
    fn read_inventory(&self) -> run::ReadInventory {
        let (sources, options) = (self.sources.clone(), self.options.clone());
        Arc::new(move || Inventory::load(&sources, &options))
    }

    /// Where facts are kept between runs; with `--flush-cache` those of all hosts are forgotten first.
    fn fact_cache(&self, tasks: Option<&Tasks>) -> Result<Option<Arc<FactCache>>> {
        let config = &self.config;
        if config.fact_caching() != config::FactCaching::Jsonfile {
            return Ok(None);
        }
        let Some(dir) = config.fact_caching_connection() else {
            let text = "`fact_caching = jsonfile` needs `fact_caching_connection`: the directory of the files";
            return Err(Invalid(text.to_owned()).into());
        };
        let seconds = config.fact_caching_timeout();
        let cache = FactCache {
            dir: dir.to_owned(),
            prefix: config.fact_caching_prefix().to_owned(),
            timeout: (seconds > 0).then(|| Duration::from_secs(seconds)),
        };
        if tasks.is_some_and(|tasks| tasks.flush_cache) {
            self.inventory
                .hosts()
                .for_each(|host| cache.forget(&host.name));
            cache.forget("localhost");
        }
        Ok(Some(Arc::new(cache)))
    }

    /// The key of the digests of secrets in plans.
    pub(crate) fn digest_key(&self) -> Result<fleet_wire::DigestKey> {
        let state = self.places.runs.parent().unwrap_or(Path::new("/"));
        crate::digest_key::of(self.templar.vault(), state)
    }

    /// How many hosts are worked on at the same time.
    pub(crate) fn forks(&self, target: &Target) -> usize {
        let set = match self.config.origin("forks") {
            Some(_) => self.config.forks(),
            None => FORKS,
        };
        target.forks.unwrap_or(set).max(1)
    }

    /// So many `-v`.
    pub(crate) fn verbosity(&self, target: &Target) -> u8 {
        let set = u8::try_from(self.config.verbosity()).unwrap_or(u8::MAX);
        if target.verbose > 0 {
            target.verbose
        } else {
            set
        }
    }

    /// The run itself.
    pub(crate) fn run(&self, name: &str, mode: Mode, settings: Settings) -> Run {
        Run {
            name: name.to_owned(),
            mode,
            settings,
            inventory: Arc::clone(&self.inventory),
            playbooks: Arc::clone(&self.playbooks),
            templar: self.templar.clone(),
            books: self.books.clone(),
        }
    }
}

/// Whether the inventory sets a variable for any host.
fn sets(inventory: &Inventory, name: &str) -> bool {
    inventory
        .hosts()
        .flat_map(|host| inventory.layers(&host.name))
        .any(|layer| layer.vars.contains_key(name))
}

/// One mistake as an error.
pub(crate) fn one(mistake: Diagnostic) -> anyhow::Error {
    Mistakes(vec![mistake]).into()
}

pub(crate) fn transport_settings(places: &Places) -> transport::Settings {
    transport::Settings::new(
        places.control.clone(),
        transport::Helpers::new(places.helpers.clone()),
    )
}

/// The limit without its parts that match nothing, which Ansible warns of.
fn lenient(inventory: &Inventory, limit: Limit, target: &Target) -> Result<Limit> {
    if inventory.select("all", Some(&limit)).is_ok() || inventory.hosts().next().is_none() {
        return Ok(limit);
    }
    let text = target.limit.as_deref().unwrap_or_default();
    let unmatched = inventory
        .select(text, None)
        .map(|selection| selection.unmatched);
    for own in unmatched.unwrap_or_default() {
        let text = format!("Could not match supplied host pattern, ignoring: {own}");
        crate::commands::play::warn("WARNING", &text);
    }
    let hosts = inventory.within(&limit);
    if hosts.is_empty() {
        let text =
            "Specified inventory, host pattern and/or --limit leaves us with no hosts to target.";
        return Err(Invalid(text.to_owned()).into());
    }
    Limit::parse(&hosts.join(",")).map_err(one)
}

fn inventory_sources(target: &Target, config: &Config, manner: Manner) -> Result<Vec<String>> {
    if !target.inventory.is_empty() {
        return Ok(target.inventory.clone());
    }
    let sources = inventory::sources(config);
    if sources.is_empty() && manner == Manner::Native {
        return Err(Invalid(
            "no inventory: name one with `-i FILE`, or hosts with `-i host1,host2,`".to_owned(),
        )
        .into());
    }
    Ok(sources)
}

fn template_settings(dirs: &[PathBuf], vault: &Vault, config: &Arc<Config>) -> TemplateSettings {
    let search = |dir: &PathBuf| [dir.join("templates"), dir.clone(), dir.join("../templates")];
    TemplateSettings {
        search_path: dirs.iter().flat_map(search).collect(),
        playbook_dir: place::absolute_dir(dirs.first()),
        controller: Arc::new(ThisMachine {
            config: Arc::clone(config),
        }),
        vault: vault.clone(),
        managed: config.ansible_managed().to_owned(),
    }
}

fn book_settings(
    config: &Config,
    target: &Target,
    templar: &Templar,
    extra_vars: &Arc<Vars>,
) -> BookSettings {
    let named = target
        .module_path
        .iter()
        .flat_map(|path| path.split(':'))
        .filter(|path| !path.is_empty())
        .map(PathBuf::from);
    BookSettings {
        check: Arc::new(templar.clone()),
        roles_path: config.roles_path().to_vec(),
        collections_path: config.collections_path().to_vec(),
        library: named.chain(config.library().iter().cloned()).collect(),
        module_utils: config.module_utils().to_vec(),
        extra_vars: Arc::clone(extra_vars),
    }
}

fn become_password(target: &Target, config: &Config) -> Result<Option<Secret>> {
    let file = target
        .become_password_file
        .as_deref()
        .or(config.become_password_file())
        .filter(|_| !target.ask_become_pass);
    if let Some(path) = file {
        let text = std::fs::read_to_string(path).map_err(|problem| {
            let why = match problem.kind() {
                std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
                _ => problem.to_string(),
            };
            Invalid(format!(
                "cannot read the sudo password from {}: {why}",
                path.display()
            ))
        })?;
        return Ok(Some(Secret::new(
            text.trim_end_matches(['\r', '\n']).to_owned(),
        )));
    }
    if !target.ask_become_pass && !config.become_ask_pass() {
        let set = config.sudo_pass().or(config.become_pass());
        return Ok(set.cloned());
    }
    let password = rpassword::prompt_password("BECOME password: ")
        .context("cannot ask for the sudo password")?;
    Ok(Some(Secret::new(password)))
}

/// A run's name: when it began, and five letters. The first two tell the parts of the second, so that names sort by time;
/// the others keep two runs of one moment apart.
pub(crate) fn run_name() -> String {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let now = jiff::ZonedDateTime::now();
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    let salt = hasher.finish();
    let letter = |number: u64| char::from(b'a' + u8::try_from(number % 26).unwrap_or(0));
    let part = u64::try_from(now.subsec_nanosecond()).unwrap_or(0) * 26 * 26 / 1_000_000_000;
    let letters: String = [letter(part / 26), letter(part)]
        .into_iter()
        .chain((0..3).map(|place| letter(salt >> (place * 8))))
        .collect();
    format!("{}-{letters}", now.strftime("%Y%m%d-%H%M%S"))
}

#[cfg(test)]
mod tests {
    use super::run_name;

    #[test]
    fn names_of_runs_sort_by_time() {
        let mut names = Vec::new();
        for _ in 0..20 {
            names.push(run_name());
            std::thread::sleep(std::time::Duration::from_millis(3));
        }
        assert!(names.is_sorted(), "{names:?}");
        assert_eq!(names[0].len(), "20261201-022659-abcde".len());
    }
}
