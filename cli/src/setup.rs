//! From flags to a run: the inventory, the playbooks, the settings.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use anyhow::{Context, Result};
use fleet_engine::{
    Diagnostic,
    inventory::{Inventory, Limit, LoadOptions},
    playbook::{self, Playbook, TagFilter, Vars},
    run::{Choice, Run, Settings},
    secret::Secret,
    template::{Templar, TemplateSettings},
    transport,
};
use fleet_wire::Mode;

use crate::{
    controller::ThisMachine,
    error::{Invalid, Mistakes},
    flags::{Target, Tasks},
    place::{self, Places},
};

/// What is read before any connection is made.
pub(crate) struct Setup {
    pub(crate) places: Places,
    pub(crate) inventory: Arc<Inventory>,
    pub(crate) playbooks: Arc<[Playbook]>,
    pub(crate) templar: Templar,
    pub(crate) extra_vars: Arc<Vars>,
    pub(crate) limit: Option<Limit>,
}

impl Setup {
    /// Reads everything that the flags name, and reports all mistakes of all files at once.
    /// `tasks` are the flags that belong to playbooks, where there are any.
    pub(crate) fn read(
        target: &Target,
        tasks: Option<&Tasks>,
        playbooks: &[PathBuf],
    ) -> Result<Self> {
        let places = Places::of_this_user();
        let dirs: Vec<PathBuf> = playbooks
            .iter()
            .filter_map(|path| path.parent())
            .map(Path::to_owned)
            .collect();
        let templar = Templar::new(template_settings(&dirs));
        let mut mistakes = Vec::new();
        let mut warnings = Vec::new();

        let mut read = Vec::new();
        for path in playbooks {
            let reading = playbook::read(path, &templar);
            read.push(reading.playbook);
            warnings.extend(reading.warnings);
            mistakes.extend(reading.mistakes);
        }
        let sources = inventory_sources(target)?;
        let options = LoadOptions {
            playbook_dirs: dirs,
            run_scripts: true,
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
        let extra_vars = match fleet_engine::extra_vars::read(&target.extra_vars) {
            Ok(vars) => vars,
            Err(problem) => {
                mistakes.push(problem);
                Vars::new()
            }
        };
        for warning in &warnings {
            anstream::eprintln!(
                "{}\n",
                fleet_engine::render(warning, crate::reporter::colored())
            );
        }
        let limit = target.limit.as_deref().map(Limit::parse).transpose();
        let limit = limit
            .map_err(|problem| mistakes.push(problem))
            .unwrap_or_default();
        // An errand needs the playbooks only to know what they are; whom they mean now is not its business.
        if let (Some(inventory), Some(tasks)) = (&inventory, tasks) {
            let choice = Choice {
                inventory,
                templar: &templar,
                extra_vars: &Arc::new(extra_vars.clone()),
                limit: limit.as_ref(),
                allow_no_hosts: tasks.allow_no_hosts,
            };
            let plays = read.iter().flat_map(|playbook| &playbook.plays);
            mistakes.extend(plays.filter_map(|play| choice.hosts(play).err()));
        }
        match inventory {
            Some(inventory) if mistakes.is_empty() => Ok(Self {
                places,
                inventory: Arc::new(inventory),
                playbooks: read.into(),
                templar,
                extra_vars: Arc::new(extra_vars),
                limit,
            }),
            _ => Err(Mistakes(mistakes).into()),
        }
    }

    /// The settings of a run.
    pub(crate) fn settings(&self, target: &Target, tasks: Option<&Tasks>) -> Result<Settings> {
        let words = |args: &Option<String>| match args {
            Some(args) => shlex::split(args)
                .ok_or_else(|| anyhow::Error::new(Invalid(format!("an open quote in `{args}`")))),
            None => Ok(Vec::new()),
        };
        Ok(Settings {
            transport: transport_settings(&self.places),
            forks: target.forks.max(1),
            limit: self.limit.clone(),
            tags: tasks.map_or_else(TagFilter::default, |tasks| {
                TagFilter::parse(&tasks.tags, &tasks.skip_tags)
            }),
            extra_vars: Arc::clone(&self.extra_vars),
            user: target.user.clone(),
            r#become: target.r#become,
            become_user: target.become_user.clone(),
            become_password: become_password(target)?,
            connection: target.connection.clone(),
            private_key_file: target.private_key.clone(),
            ssh_common_args: words(&target.ssh_common_args)?,
            ssh_extra_args: words(&target.ssh_extra_args)?,
            timeout: Duration::from_secs(target.timeout as u64),
            host_keys: transport::HostKeys::Strict,
            lock_timeout: Duration::ZERO,
            diff: false,
            verbosity: target.verbose,
            who: place::who(),
            home: self.places.home.clone(),
            allow_no_hosts: tasks.is_some_and(|tasks| tasks.allow_no_hosts),
            keep_on_failure: false,
            planned: None,
            interrupt: Arc::new(AtomicBool::new(false)),
        })
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
        }
    }
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

fn inventory_sources(target: &Target) -> Result<Vec<String>> {
    if !target.inventory.is_empty() {
        return Ok(target.inventory.clone());
    }
    match std::env::var("ANSIBLE_INVENTORY") {
        Ok(sources) if !sources.is_empty() => Ok(sources.split(',').map(str::to_owned).collect()),
        _ => Err(Invalid(
            "no inventory: name one with `-i FILE`, or hosts with `-i host1,host2,`".to_owned(),
        )
        .into()),
    }
}

fn template_settings(dirs: &[PathBuf]) -> TemplateSettings {
    let search = |dir: &PathBuf| [dir.join("templates"), dir.clone(), dir.join("../templates")];
    TemplateSettings {
        search_path: dirs.iter().flat_map(search).collect(),
        playbook_dir: dirs.first().cloned().unwrap_or_default(),
        controller: Arc::new(ThisMachine),
    }
}

fn become_password(target: &Target) -> Result<Option<Secret>> {
    if let Some(path) = &target.become_password_file {
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
    if !target.ask_become_pass {
        return Ok(None);
    }
    let password = rpassword::prompt_password("sudo password: ")
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
