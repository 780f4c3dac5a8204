//! Plans in files: made by `plan --out`, shown and compared from the file alone, and applied as they are.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result};
use clap::Parser;
use fleet_engine::{
    event::Event,
    plan::{Facts, Header, Plan, PlanFileError, Saved, Wave},
    run::SavedPlan,
    sources,
};

use crate::{
    commands::plan,
    error::{Invalid, PLAN_REFUSED, Refused},
    flags::Target,
    place,
    runs::{About, PLAN},
};

/// What a plan is made of while its events come in.
#[derive(Debug, Default)]
pub(crate) struct Making {
    pub(crate) plan: Plan,
    waves: Vec<Wave>,
}

impl Making {
    /// Takes an event of a planning run in.
    pub(crate) fn take(&mut self, event: &Event) {
        self.plan.take(event);
        if let Event::PlayStarted { play, hosts, .. } = event {
            self.waves.push(Wave {
                play: play.clone(),
                hosts: hosts.to_vec(),
            });
        }
    }

    /// The plan as it is saved.
    pub(crate) fn save(&self, run: &str, words: Vec<String>) -> Result<Saved> {
        let made_s = sources::now();
        let made = jiff::Timestamp::from_second(made_s as i64).unwrap_or_default();
        let mut plan = self.plan.clone();
        let mut pinned = std::collections::BTreeMap::new();
        for (name, host) in &mut plan.hosts {
            let facts = std::mem::take(&mut host.facts);
            let (restless, still): (Facts, Facts) = facts
                .into_iter()
                .partition(|(fact, _)| fleet_engine::plan::is_restless(fact));
            host.facts = still;
            if !restless.is_empty() {
                pinned.insert(name.clone(), restless);
            }
        }
        let header = Header {
            schema: String::new(),
            hash: String::new(),
            run: run.to_owned(),
            made: made.to_string(),
            made_s,
            who: place::who(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pinned,
        };
        let sources =
            sources::recorded().context("nothing was recorded while the plan was made")?;
        Saved::new(header, words, sources, self.waves.clone(), plan)
            .context("cannot write the plan")
    }
}

/// Refuses `-e name=value` where the name says that it is a secret: a plan holds what its command line said.
///
/// # Errors
/// With the name, and what to do instead.
pub(crate) fn no_secrets(target: &Target) -> Result<()> {
    let words = target
        .extra_vars
        .iter()
        .filter(|text| !text.starts_with('@'));
    for word in words.flat_map(|text| text.split_whitespace()) {
        let name = word.split(['=', ':']).next().unwrap_or_default();
        let name = name.trim_matches(['{', '"', '\'', ' ']);
        if word.len() > name.len() && sources::may_be_secret(name) {
            return Err(Invalid(format!(
                "`-e {name}=…` would stand in the plan as it is: put it into an encrypted file, and say `-e @FILE` (`fleetctl vault create FILE`)"
            ))
            .into());
        }
    }
    Ok(())
}

/// The words of this call that say what is planned: all but the verb, and but what says where it goes.
pub(crate) fn words() -> Vec<String> {
    let mut words = std::env::args().skip(2);
    let mut kept = Vec::new();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--out" | "-o" | "--log-dir" => {
                words.next();
            }
            "--json"
            | "--detailed-exitcode"
            | "--no-diff"
            | "--yes"
            | "-y"
            | "--no-bench"
            | "--check"
            | "-C"
            | "--diff"
            | "-D" => {}
            word if word.starts_with("--out=") || word.starts_with("--log-dir=") => {}
            _ => kept.push(word),
        }
    }
    kept
}

/// What an apply asks of a plan before it begins.
#[derive(Debug, Default)]
pub(crate) struct Terms<'a> {
    pub(crate) expect: Option<&'a str>,
    pub(crate) max_age: Option<Duration>,
}

/// A plan that was opened to be applied.
pub(crate) struct Opened {
    pub(crate) saved: Saved,
    /// What the plan was made by.
    pub(crate) made_by: plan::Plan,
}

/// The command line that a plan was made by.
#[derive(Parser)]
#[command(name = "fleetctl plan", no_binary_name = true)]
struct MadeBy {
    #[command(flatten)]
    plan: plan::Plan,
}

/// Whether a file is a plan; one that cannot be read is none.
pub(crate) fn is_plan(path: &Path) -> bool {
    use std::io::Read;
    let mut head = [0; 30];
    let start = br#"{"schema":"fleetctl.plan-file/"#;
    std::fs::File::open(path).is_ok_and(|mut file| file.read_exact(&mut head).is_ok())
        && head == *start
        || path.extension().is_some_and(|ending| ending == "plan")
}

/// Reads a plan.
///
/// # Errors
/// When it is damaged, with the exit code of a plan that is refused.
pub(crate) fn read(path: &Path) -> Result<(Saved, fleet_engine::plan::Store)> {
    Saved::read(path).map_err(|problem| match problem {
        PlanFileError::Io { ref error, .. } if error.kind() == std::io::ErrorKind::NotFound => {
            Invalid(format!("there is no plan {}", path.display())).into()
        }
        problem => Refused::new(PLAN_REFUSED, problem.to_string()).into(),
    })
}

/// Opens a plan to be applied: from here on the controller's files are those that it was made from.
///
/// # Errors
/// When it is damaged, or another than is expected, or too old: nothing is connected then.
pub(crate) fn open(
    path: &Path,
    terms: &Terms<'_>,
    target: &Target,
    else_disk: bool,
) -> Result<Opened> {
    let (saved, store) = read(path)?;
    let refused = |text: String| Refused::new(PLAN_REFUSED, format!("{}: {text}", path.display()));
    if let Some(expect) = terms.expect
        && expect != saved.header.hash
    {
        let text = format!("it is {}, and {expect} was expected", saved.header.hash);
        return Err(refused(text).into());
    }
    let made: jiff::Timestamp = saved
        .header
        .made
        .parse()
        .map_err(|_| refused("it does not say when it was made".to_owned()))?;
    let age = jiff::Timestamp::now().duration_since(made);
    if let Some(most) = terms.max_age
        && age > jiff::SignedDuration::try_from(most).unwrap_or(jiff::SignedDuration::MAX)
    {
        let text = format!(
            "it was made {} ago, and `--max-age` allows {}: plan again",
            crate::count::length(age.unsigned_abs()),
            crate::count::length(most)
        );
        return Err(refused(text).into());
    }
    let mut made_by = MadeBy::try_parse_from(&saved.words)
        .map_err(|problem| {
            refused(format!(
                "the command that it was made by is not understood: {problem}"
            ))
        })?
        .plan;
    override_by(&mut made_by.target, target)?;
    for path in moved(&saved) {
        anstream::eprintln!(
            "warning: {} is another than when the plan was made; the plan is applied as it was made",
            path.display()
        );
    }
    sources::keep(
        saved.sources.clone(),
        saved.header.made_s,
        Box::new(store),
        else_disk,
    );
    Ok(Opened { saved, made_by })
}

/// Where a run applied a saved plan: makes the controller's files those of the plan, so that its hosts are reached as they
/// were then. The playbooks of the run, and its inventories in `target`.
///
/// # Errors
/// When the plan that was kept with the run is damaged.
pub(crate) fn revive(about: &About, runs: &Path, target: &mut Target) -> Result<Vec<PathBuf>> {
    let path = runs.join(&about.run).join(PLAN);
    if about.plan.is_none() || !path.exists() {
        if target.inventory.is_empty() {
            target.inventory.clone_from(&about.inventory);
        }
        return Ok(about.playbooks.clone());
    }
    let limit = target.limit.take();
    let inventory = std::mem::take(&mut target.inventory);
    let (saved, store) = read(&path)?;
    let mut made_by = MadeBy::try_parse_from(&saved.words)
        .context("the command that the plan was made by is not understood")?
        .plan;
    override_by(&mut made_by.target, target)?;
    *target = made_by.target;
    target.limit = limit;
    if !inventory.is_empty() {
        // Hosts have moved: what is said now counts.
        target.inventory = inventory;
        return Ok(about.playbooks.clone());
    }
    sources::keep(saved.sources, saved.header.made_s, Box::new(store), true);
    Ok(made_by.playbooks)
}

/// The files that a plan was made from and that are others now.
fn moved(saved: &Saved) -> Vec<PathBuf> {
    let differs = |path: &&PathBuf| {
        let about = &saved.sources.files[*path];
        !about.sha256.is_empty()
            && path.exists()
            && std::fs::read(path).is_ok_and(|bytes| sources::sha256(&bytes) != about.sha256)
    };
    saved
        .sources
        .files
        .keys()
        .filter(differs)
        .cloned()
        .collect()
}

/// What an apply may say beside its plan: how hosts are reached and what opens the vaults. The rest is the plan's.
fn override_by(made_by: &mut Target, own: &Target) -> Result<()> {
    let said = [
        ("--inventory", !own.inventory.is_empty()),
        ("--limit", own.limit.is_some()),
        ("--user", own.user.is_some()),
        ("--connection", own.connection.is_some()),
        ("--become", own.r#become),
        ("--become-user", own.become_user.is_some()),
        ("--become-method", own.become_method.is_some()),
        ("--extra-vars", !own.extra_vars.is_empty()),
        ("--module-path", !own.module_path.is_empty()),
    ];
    if let Some((flag, _)) = said.iter().find(|(_, said)| *said) {
        return Err(Invalid(format!(
            "a plan is applied as it was made: `{flag}` belongs to `fleetctl plan`"
        ))
        .into());
    }
    made_by.forks = own.forks.or(made_by.forks);
    made_by.timeout = own.timeout.or(made_by.timeout);
    made_by.private_key = own.private_key.clone().or(made_by.private_key.take());
    made_by.ask_become_pass |= own.ask_become_pass;
    made_by.become_password_file = own
        .become_password_file
        .clone()
        .or(made_by.become_password_file.take());
    made_by.verbose = made_by.verbose.max(own.verbose);
    if own.vault.is_said() {
        made_by.vault = own.vault.clone();
    }
    Ok(())
}

/// A plan as its run keeps to it.
pub(crate) fn kept(saved: &Saved, resume: bool) -> Arc<SavedPlan> {
    let mut facts: HashMap<String, Arc<Facts>> = HashMap::new();
    let mut identities = HashMap::new();
    for (name, host) in &saved.plan.hosts {
        let mut own = host.facts.clone();
        own.extend(saved.header.pinned.get(name).cloned().unwrap_or_default());
        facts.insert(name.clone(), Arc::new(own));
        if !host.identity.is_empty() {
            identities.insert(name.clone(), host.identity.clone());
        }
    }
    Arc::new(SavedPlan {
        hash: saved.header.hash.clone(),
        run: saved.header.run.clone(),
        facts,
        identities,
        resume,
    })
}
