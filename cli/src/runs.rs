//! The folder of a run: what happened, in a form that outlives the terminal.

use std::{
    fs::{self, File, OpenOptions},
    io::Write,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use fleet_engine::event::{Event, SCHEMA};
use serde::{Deserialize, Serialize};

use crate::{error::Invalid, flags::Target};

/// The plan of a run, in its folder.
pub(crate) const PLAN: &str = "plan.plan";

/// What it takes to reach the hosts of a run again.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct About {
    /// The schema of this file.
    pub(crate) schema: String,
    pub(crate) run: String,
    /// `plan`, `apply`, `bench`.
    pub(crate) verb: String,
    /// RFC 3339 with milliseconds.
    pub(crate) began: String,
    pub(crate) playbooks: Vec<PathBuf>,
    /// The inventories, absolute.
    pub(crate) inventory: Vec<String>,
    pub(crate) limit: Option<String>,
    pub(crate) hosts: Vec<String>,
    /// The hash of the plan that is applied, which lies beside this file as `plan.plan`.
    #[serde(default)]
    pub(crate) plan: Option<String>,
    /// Set when it is over.
    pub(crate) exit_code: Option<u8>,
}

/// A run's folder, open for writing. Readable by its owner only: diffs may show what others must not see.
pub(crate) struct Folder {
    pub(crate) path: PathBuf,
    events: File,
    about: About,
}

impl Folder {
    pub(crate) fn create(
        runs: &Path,
        run: &str,
        verb: &str,
        target: &Target,
        playbooks: &[PathBuf],
    ) -> Result<Self> {
        let path = runs.join(run);
        fs::create_dir_all(&path)
            .with_context(|| format!("cannot make the run's folder {}", path.display()))?;
        let absolute = |source: &String| match fs::canonicalize(source) {
            Ok(path) => path.display().to_string(),
            Err(_) => source.clone(),
        };
        let about = About {
            schema: "fleetctl.run/1".to_owned(),
            run: run.to_owned(),
            verb: verb.to_owned(),
            began: jiff::ZonedDateTime::now()
                .strftime("%Y-%m-%dT%H:%M:%S%.3f%:z")
                .to_string(),
            playbooks: playbooks
                .iter()
                .map(|path| fs::canonicalize(path).unwrap_or_else(|_| path.clone()))
                .collect(),
            inventory: target.inventory.iter().map(absolute).collect(),
            limit: target.limit.clone(),
            hosts: Vec::new(),
            plan: None,
            exit_code: None,
        };
        let mut events = private(&path.join("events.jsonl"))?;
        writeln!(events, "{}", serde_json::json!({"schema": SCHEMA}))?;
        let folder = Self {
            path,
            events,
            about,
        };
        folder.save()?;
        Ok(folder)
    }

    /// Opens the folder of a run that was cut off, to go on.
    pub(crate) fn reopen(runs: &Path, run: &str) -> Result<Self> {
        let path = runs.join(run);
        let mut about = about(&path)?;
        about.exit_code = None;
        let events = OpenOptions::new()
            .append(true)
            .open(path.join("events.jsonl"))
            .with_context(|| format!("cannot write to the run's folder {}", path.display()))?;
        Ok(Self {
            path,
            events,
            about,
        })
    }

    /// Keeps the plan that is applied, so that the run can go on if it is cut off.
    pub(crate) fn keep_plan(&mut self, plan: &Path, hash: &str) -> Result<()> {
        let mut copy = private(&self.path.join(PLAN))?;
        std::io::copy(&mut File::open(plan)?, &mut copy)
            .and_then(|_| copy.sync_all())
            .with_context(|| format!("cannot keep the plan in {}", self.path.display()))?;
        self.about.plan = Some(hash.to_owned());
        self.save()
    }

    /// Adds an event; a folder that cannot be written must not stop the run.
    pub(crate) fn event(&mut self, event: &Event) -> Result<()> {
        if let Event::PlayStarted { hosts, .. } = event {
            for host in hosts.iter() {
                if !self.about.hosts.contains(host) {
                    self.about.hosts.push(host.clone());
                }
            }
            self.save()?;
        }
        writeln!(self.events, "{}", serde_json::to_string(event)?)?;
        Ok(())
    }

    pub(crate) fn end(mut self, exit_code: u8) -> Result<PathBuf> {
        self.about.exit_code = Some(exit_code);
        self.save()?;
        self.events.sync_all()?;
        Ok(self.path)
    }

    /// Writes another file of the run.
    pub(crate) fn write(&self, name: &str, content: &str) -> Result<PathBuf> {
        let path = self.path.join(name);
        private(&path)?
            .write_all(content.as_bytes())
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }

    fn save(&self) -> Result<()> {
        let path = self.path.join("run.json");
        let fresh = self.path.join(".run.json.new");
        let mut file = private(&fresh)?;
        file.write_all(serde_json::to_string_pretty(&self.about)?.as_bytes())?;
        file.sync_all()?;
        fs::rename(&fresh, &path).with_context(|| format!("cannot write {}", path.display()))
    }
}

fn private(path: &Path) -> Result<File> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .with_context(|| format!("cannot write {}", path.display()))
}

/// All runs, oldest first.
pub(crate) fn all(runs: &Path) -> Result<Vec<About>> {
    let entries = match fs::read_dir(runs) {
        Ok(entries) => entries,
        Err(problem) if problem.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(problem) => {
            return Err(problem).with_context(|| format!("cannot read {}", runs.display()));
        }
    };
    let mut all: Vec<About> = entries
        .flatten()
        .filter_map(|entry| about(&entry.path()).ok())
        .collect();
    all.sort_by(|a, b| (&a.began, &a.run).cmp(&(&b.began, &b.run)));
    Ok(all)
}

/// One run by name, or the last one by `last`.
pub(crate) fn find(runs: &Path, name: &str) -> Result<About> {
    let all = all(runs)?;
    let names: Vec<String> = all.iter().map(|about| about.run.clone()).collect();
    let wanted = |about: &About| about.run == name || (name == "last" && about.verb == "apply");
    all.into_iter().rev().find(wanted).ok_or_else(|| {
        if name == "last" {
            return Invalid(format!(
                "there was no apply yet: {} holds none",
                runs.display()
            ))
            .into();
        }
        let near = fleet_engine::nearest(name, names.iter().map(String::as_str));
        let hint = near.map_or_else(
            || "`fleetctl runs` lists them".to_owned(),
            |near| format!("did you mean `{near}`?"),
        );
        Invalid(format!(
            "there is no run `{name}` in {}; {hint}",
            runs.display()
        ))
        .into()
    })
}

fn about(folder: &Path) -> Result<About> {
    Ok(serde_json::from_str(&fs::read_to_string(
        folder.join("run.json"),
    )?)?)
}
