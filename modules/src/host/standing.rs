//! How things stand with what fleetctl keeps on a host, and what a person can do about it.

use std::fs;
use std::path::Path;

use fleet_wire::{Locked, Standing};

use super::{Fault, State, clock, files};

/// Where damaged journals are set aside.
const ASIDE: &str = "damaged";

impl State {
    /// How things stand.
    #[must_use]
    pub fn standing(&self) -> Standing {
        let mut damaged: Vec<(String, String)> = self
            .runs()
            .into_iter()
            .filter_map(|run| Some((run.clone(), self.damage(&run)?)))
            .collect();
        if let Err(fault) = self.is_whole() {
            damaged.push(("txn".to_owned(), fault.message));
        }
        let mut open = self.journaled();
        open.retain(|run| matches!(run.state.as_str(), "open" | "held"));
        let aside = files::list(&self.dir().join(ASIDE)).ok().flatten();
        let aside = aside.unwrap_or_default().into_iter();
        Standing {
            machine_id: fs::read_to_string("/etc/machine-id")
                .unwrap_or_default()
                .trim()
                .to_owned(),
            state_dir: self.dir().display().to_string(),
            locked: self.holder(),
            open,
            pending: self.pending().into_keys().collect(),
            damaged,
            aside: aside
                .map(|name| self.dir().join(ASIDE).join(name).display().to_string())
                .collect(),
            bytes: size(self.dir()),
        }
    }

    /// Sets damaged journals aside, with their backups: what those runs did is a person's to see to.
    ///
    /// # Errors
    /// When one cannot be moved.
    pub fn repair(&self) -> Result<(), Fault> {
        let aside = self.dir().join(ASIDE);
        for run in self.runs().iter().filter(|run| self.damage(run).is_some()) {
            let to = aside.join(format!("{run}-{}", clock::now().replace(':', "")));
            fs::create_dir_all(&aside)
                .and_then(|()| fs::rename(self.run_dir(run), &to))
                .and_then(|()| files::sync_dir(&aside))
                .map_err(|error| Fault::io("set aside", &to, error))?;
        }
        let journals = self.dir().join("txn");
        fs::create_dir_all(&journals)
            .and_then(|()| files::sync_dir(self.dir()))
            .map_err(|error| Fault::io("make", &journals, error))
    }

    /// Ends the helper that holds the lock for a run.
    ///
    /// # Errors
    /// When another run holds it, or none.
    pub fn unlock(&self, run: &str) -> Result<(), Fault> {
        match self.holder() {
            None => Err(Fault::new("nobody holds the lock")),
            Some(Locked {
                run: holder,
                who,
                since,
            }) if holder != run => Err(Fault::new(format!(
                "the lock is held by run {holder} of {who} since {since}, and not by run {run}: nothing was done"
            ))),
            Some(_) => {
                self.end_holder();
                Ok(())
            }
        }
    }

    fn damage(&self, run: &str) -> Option<String> {
        let path = self.journal_path(run);
        match fs::read(&path) {
            Ok(text) => super::journal::parse(&text)
                .err()
                .map(|fault| fault.message),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => Some(format!("{}: {error}", path.display())),
        }
    }
}

fn size(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(about) if about.is_dir() => size(&entry.path()),
            Ok(about) => about.len(),
            Err(_) => 0,
        })
        .sum()
}
