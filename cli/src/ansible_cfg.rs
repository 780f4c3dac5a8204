//! Finds `ansible.cfg` where Ansible does, and reads it together with the environment.

use std::{
    env, fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use anyhow::Result;
use fleet_engine::{
    Diagnostic,
    config::{self, Config, Reading, Written},
    sources,
};
use fleet_yaml::{Severity, Source};

use crate::error::Mistakes;

/// The mode bit of what everybody may write.
const WORLD_WRITABLE: u32 = 0o002;

/// Reads the settings; warnings go to standard error.
///
/// # Errors
/// All mistakes in the file and the environment, each at its place.
pub(crate) fn load() -> Result<Config> {
    let reading = read();
    for warning in &reading.warnings {
        anstream::eprintln!(
            "{}\n",
            fleet_engine::render(warning, crate::reporter::colored())
        );
    }
    if reading.mistakes.is_empty() {
        Ok(reading.config)
    } else {
        Err(Mistakes(reading.mistakes).into())
    }
}

/// Reads the settings, and says what is wrong with them.
pub(crate) fn read() -> Reading {
    let mut warnings = Vec::new();
    let mut mistakes = Vec::new();
    let cwd = sources::base();
    let home = env::home_dir();
    let file = find(&cwd, home.as_deref(), &mut warnings).and_then(|(path, name)| {
        match sources::read(&path) {
            Ok(bytes) => match Source::from_bytes(&name, bytes) {
                Ok(source) => Some((path, source)),
                Err(mistake) => {
                    mistakes.push(mistake);
                    None
                }
            },
            Err(problem) => {
                let what = format!("cannot read {}: {problem}", name.display());
                mistakes.push(Diagnostic::without_place(what));
                None
            }
        }
    });
    // What is not UTF-8 is no setting's value.
    let names = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let names: std::collections::BTreeSet<String> = names
        .filter(|name| name.starts_with("ANSIBLE_"))
        .chain(sources::variables("ANSIBLE_"))
        .collect();
    let environment = names
        .into_iter()
        .filter_map(|name| Some((sources::variable(&name)?, name)))
        .map(|(value, name)| (name, value));
    let written = Written { file, cwd, home };
    let mut reading = config::read(written, environment);
    warnings.append(&mut reading.warnings);
    mistakes.append(&mut reading.mistakes);
    Reading {
        warnings,
        mistakes,
        ..reading
    }
}

/// The file that counts: its absolute path, and its name as users know it.
fn find(
    cwd: &Path,
    home: Option<&Path>,
    warnings: &mut Vec<Diagnostic>,
) -> Option<(PathBuf, PathBuf)> {
    if let Some(named) = sources::variable("ANSIBLE_CONFIG").filter(|named| !named.is_empty()) {
        let mut name = match (named.strip_prefix("~/"), home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => PathBuf::from(named),
        };
        if sources::is_dir(&name) {
            name.push("ansible.cfg");
        }
        let path = cwd.join(&name);
        if readable(&path) {
            return Some((path, name));
        }
        let what = format!(
            "`ANSIBLE_CONFIG` names {}, and there is no such file",
            name.display()
        );
        warnings.push(warning(what, "other places are looked at instead"));
    }
    let here = cwd.join("ansible.cfg");
    if readable(&here) {
        let open = fs::metadata(cwd).is_ok_and(|dir| dir.mode() & WORLD_WRITABLE != 0);
        if !open {
            return Some((here, PathBuf::from("ansible.cfg")));
        }
        let what = format!(
            "ansible.cfg is passed over: everybody may write to its directory {}",
            cwd.display()
        );
        warnings.push(warning(
            what,
            "take that right away, or name the file in `ANSIBLE_CONFIG`",
        ));
    }
    let own = home.map(|home| home.join(".ansible.cfg"));
    let common = PathBuf::from("/etc/ansible/ansible.cfg");
    let found = own
        .into_iter()
        .chain([common])
        .find(|path| readable(path))?;
    Some((found.clone(), found))
}

/// Whether there is something here that can be read as a file.
fn readable(path: &Path) -> bool {
    !sources::is_dir(path) && sources::open(path).is_ok() && sources::about(path).is_ok()
}

fn warning(what: String, help: &str) -> Diagnostic {
    let mut warning = Diagnostic::without_place(what).with_help(help);
    warning.severity = Severity::Warning;
    warning
}
