use std::path::Path;

use serde::Deserialize;
use serde_json::json;

use super::group::State;
use crate::args::List;
use crate::host::{Command, Fault, Host, Put};
use crate::module::{ArgumentError, Module, Report, Task};

pub(super) static MODULE: Module = Module::of::<LocaleGen>();

/// Makes locales on Debian and its relatives: their lines in `/etc/locale.gen`, and `locale-gen`.
///
/// An undo puts the file back; what `locale-gen` compiled stays until it runs again.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct LocaleGen {
    /// The locales: `en_US.UTF-8`, `de_CH.UTF-8`.
    name: List,
    /// `present` or `absent`.
    #[serde(default)]
    state: State,
}

const LIST: &str = "/etc/locale.gen";
const SUPPORTED: [&str; 2] = [
    "/usr/share/i18n/SUPPORTED",
    "/usr/local/share/i18n/SUPPORTED",
];

impl Task for LocaleGen {
    const NAME: &'static str = "locale_gen";

    fn check(&self) -> Result<(), ArgumentError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_.@-".contains(c);
        if self.name.is_empty() {
            return Err(ArgumentError::of("name", "no locale is named"));
        }
        match self.name.iter().find(|name| !name.chars().all(plain)) {
            Some(name) => Err(ArgumentError::of(
                "name",
                format!("`{name}` is not the name of a locale"),
            )),
            None => Ok(()),
        }
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        let Some(text) = host.read(Path::new(LIST))? else {
            return match host.open() {
                true => Ok(super::edited::unknown(Path::new(LIST))),
                false => Err(Fault::new(format!(
                    "/etc/locale.gen and {} are missing: is the package 'locales' installed?",
                    SUPPORTED[0]
                ))),
            };
        };
        let mut text = String::from_utf8_lossy(&text).into_owned();
        let mut supported = String::new();
        for file in SUPPORTED {
            supported.push_str(&String::from_utf8_lossy(
                &host.read(Path::new(file))?.unwrap_or_default(),
            ));
        }
        let compiled = host.probe(&["locale", "-a"])?.text();
        let wanted = self.state == State::Present;
        let mut differs = false;
        for name in self.name.iter() {
            let named = |line: &&str| line.split_whitespace().next() == Some(name);
            let line = supported.lines().find(named).map(str::trim);
            let line = line.map_or_else(|| format!("{name} {}", charset(name)), str::to_owned);
            if wanted && !supported.is_empty() && !supported.lines().any(|line| named(&line)) {
                return Err(Fault::new(format!(
                    "The locales you've entered are not available on your system: {name}"
                )));
            }
            let there = compiled.lines().any(|known| normal(known) == normal(name));
            if there != wanted {
                differs = true;
            }
            text = listed(&text, name, &line, wanted);
        }
        let changed = host.put(Put::content(LIST, text))?;
        if differs || changed {
            let output = host.command(Command {
                argv: vec!["locale-gen".to_owned()],
                line: "locale-gen".to_owned(),
                ..Command::default()
            })?;
            if let Some(output) = output.filter(|output| !output.ok()) {
                return Err(
                    Fault::new(format!("cannot make the locales: {}", output.complaint()))
                        .with("rc", output.rc),
                );
            }
        }
        Ok(Report::of(
            json!({"name": *self.name, "mechanisms": ["glibc"]}),
        ))
    }
}

/// The list with a locale in it, or as a comment.
fn listed(text: &str, name: &str, line: &str, wanted: bool) -> String {
    let bare = |line: &str| line.trim_start_matches(['#', ' ', '\t']).to_owned();
    let is = |line: &&str| bare(line).split_whitespace().next() == Some(name);
    let mut lines: Vec<String> = Vec::new();
    let mut found = false;
    for old in text.lines() {
        if !is(&old) || bare(old).split_whitespace().count() != 2 {
            lines.push(old.to_owned());
            continue;
        }
        let active = !old.trim_start().starts_with('#');
        found |= active;
        lines.push(match (wanted, active) {
            (true, false) if !found => {
                found = true;
                bare(old)
            }
            (false, true) => format!("# {old}"),
            _ => old.to_owned(),
        });
    }
    if wanted && !found {
        lines.push(line.to_owned());
    }
    lines.join("\n") + "\n"
}

fn charset(name: &str) -> &str {
    name.split_once('.')
        .map_or("ISO-8859-1", |(_, charset)| charset)
}

/// A locale's name as `locale -a` has it.
fn normal(name: &str) -> String {
    match name.split_once('.') {
        Some((language, charset)) => {
            format!("{language}.{}", charset.to_lowercase().replace('-', ""))
        }
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{listed, normal};

    #[test]
    fn a_line_of_the_list_is_made_active_once_and_a_comment_again() {
        let text = "# This file lists locales.\n# de_DE.UTF-8 UTF-8\nen_US.UTF-8 UTF-8\n";
        let german = listed(text, "de_DE.UTF-8", "de_DE.UTF-8 UTF-8", true);
        assert_eq!(
            german,
            "# This file lists locales.\nde_DE.UTF-8 UTF-8\nen_US.UTF-8 UTF-8\n"
        );
        assert_eq!(
            listed(&german, "de_DE.UTF-8", "de_DE.UTF-8 UTF-8", true),
            german
        );
        assert_eq!(listed(&german, "de_DE.UTF-8", "x", false), text);
        assert!(
            listed(text, "fr_FR.UTF-8", "fr_FR.UTF-8 UTF-8", true)
                .ends_with("\nfr_FR.UTF-8 UTF-8\n")
        );
        assert_eq!(normal("en_US.UTF-8"), normal("en_US.utf8"));
    }
}
