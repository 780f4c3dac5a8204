//! A folder of files for tests, and inventories loaded from it.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};

use fleet_yaml::{Diagnostic, render};

use super::{Inventory, LoadOptions};

pub(super) struct Lab {
    dir: tempfile::TempDir,
}

impl Lab {
    /// Files by path and text; a text that begins with `#!` is executable.
    pub(super) fn new(files: &[(&str, &str)]) -> Lab {
        let lab = Lab {
            dir: tempfile::tempdir().unwrap(),
        };
        for (path, text) in files {
            let path = lab.path(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            if text.starts_with("#!") {
                fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            }
        }
        lab
    }

    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    fn try_load(
        &self,
        sources: &[&str],
        playbook: Option<&str>,
    ) -> Result<(Inventory, Vec<Diagnostic>), Vec<Diagnostic>> {
        let full = |source: &&str| match source.contains(',') {
            true => (*source).to_owned(),
            false => self.path(source).to_str().unwrap().to_owned(),
        };
        let sources: Vec<String> = sources.iter().map(full).collect();
        let playbook_dirs = playbook.iter().map(|dir| self.path(dir)).collect();
        Inventory::load(
            &sources,
            &LoadOptions {
                playbook_dirs,
                ..LoadOptions::default()
            },
        )
    }

    pub(super) fn load(&self, sources: &[&str]) -> Inventory {
        self.try_load(sources, None)
            .map_err(|errors| self.shown(&errors))
            .unwrap()
            .0
    }

    pub(super) fn load_beside(&self, sources: &[&str], playbook: &str) -> Inventory {
        self.try_load(sources, Some(playbook))
            .map_err(|errors| self.shown(&errors))
            .unwrap()
            .0
    }

    /// The errors as users see them, without the folder's own path.
    pub(super) fn errors(&self, sources: &[&str]) -> String {
        self.shown(&self.try_load(sources, None).unwrap_err())
    }

    pub(super) fn warnings(&self, sources: &[&str]) -> String {
        self.shown(
            &self
                .try_load(sources, None)
                .map_err(|errors| self.shown(&errors))
                .unwrap()
                .1,
        )
    }

    pub(super) fn shown(&self, diagnostics: &[Diagnostic]) -> String {
        let shown: Vec<String> = diagnostics.iter().map(|one| render(one, false)).collect();
        shown
            .join("\n\n")
            .replace(&format!("{}/", self.dir.path().display()), "")
    }
}

/// An inventory of one file.
pub(super) fn load(name: &str, text: &str) -> Inventory {
    Lab::new(&[(name, text)]).load(&[name])
}

/// The errors of one file.
pub(super) fn errors(name: &str, text: &str) -> String {
    Lab::new(&[(name, text)]).errors(&[name])
}

/// The warnings of one file.
pub(super) fn warnings(name: &str, text: &str) -> String {
    Lab::new(&[(name, text)]).warnings(&[name])
}

/// All hosts in inventory order.
pub(super) fn hosts(inventory: &Inventory) -> Vec<&str> {
    inventory.hosts().map(|host| host.name.as_str()).collect()
}

/// The hosts of a group and of those below it.
pub(super) fn members<'a>(inventory: &'a Inventory, group: &str) -> Vec<&'a str> {
    inventory
        .members(group)
        .unwrap()
        .iter()
        .map(|host| host.name.as_str())
        .collect()
}

/// What a variable of a host comes to, as JSON.
pub(super) fn var(inventory: &Inventory, host: &str, name: &str) -> serde_json::Value {
    let vars = super::show::host(inventory, host, super::show::Choice::default()).unwrap();
    serde_json::from_str::<serde_json::Value>(&vars).unwrap()[name].clone()
}
