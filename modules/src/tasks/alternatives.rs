use fleet_wire::SettingKind;
use serde::Deserialize;
use serde_json::json;

use crate::args::{Number, Text};
use crate::host::{Fault, Host, Setting};
use crate::module::{ArgumentError, Module, Report, Task};

pub(super) static MODULE: Module = Module::of::<Alternatives>();

/// Chooses among the programs that go by one name (`update-alternatives`), and makes them known.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Alternatives {
    /// The name of the choice: `editor`, `java`.
    name: Text,
    /// The program.
    path: Option<Text>,
    /// The link that leads to the choice, `/usr/bin/java`; needed for a name that the host does not know yet.
    link: Option<Text>,
    /// How much the program is to be preferred where nobody has chosen; 50 where it is not given.
    priority: Option<Number>,
    /// `selected` chooses the program, `present` only makes it known, `auto` leaves the choice to the host, `absent` forgets the program.
    #[serde(default)]
    state: State,
    /// Links that follow the choice.
    #[serde(default)]
    subcommands: Vec<Subcommand>,
    /// Only RedHat's `alternatives` has it: refused.
    family: Option<Text>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Subcommand {
    /// The name of the following choice.
    name: Text,
    /// Its program.
    path: Text,
    /// Its link.
    link: Text,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
enum State {
    #[default]
    Selected,
    Present,
    Auto,
    Absent,
}

impl Task for Alternatives {
    const NAME: &'static str = "alternatives";
    const ARGUMENT_ALIASES: &'static [(&'static str, &'static str)] = &[("slaves", "subcommands")];

    fn check(&self) -> Result<(), ArgumentError> {
        if self.family.is_some() {
            return Err(ArgumentError::of(
                "family",
                "only RedHat's `alternatives` has it",
            ));
        }
        if self.path.is_none() && self.state != State::Auto {
            return Err(ArgumentError::of(
                "path",
                "it is required with any state but auto",
            ));
        }
        let links = self
            .subcommands
            .iter()
            .flat_map(|sub| [Some(&sub.name), Some(&sub.path), Some(&sub.link)]);
        let words = [Some(&self.name), self.path.as_ref(), self.link.as_ref()]
            .into_iter()
            .chain(links);
        let bad = |word: &&Text| {
            word.is_empty() || word.starts_with('-') || word.contains(char::is_whitespace)
        };
        match words.flatten().find(bad) {
            Some(word) => Err(ArgumentError::of(
                "name",
                format!("`{word}` is neither a name nor a path of an alternative"),
            )),
            None => Ok(()),
        }
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        let name = self.name.to_string();
        let choice = |value: &str| Setting {
            kind: SettingKind::Alternative,
            name: name.clone(),
            value: value.to_owned(),
        };
        let path = self.path.as_deref().unwrap_or_default();
        let known = Setting {
            kind: SettingKind::Alternative,
            name: format!("{name} {path}"),
            value: String::new(),
        };
        if self.state == State::Absent {
            host.set(known)?;
            return Ok(Report::of(json!({"name": name})));
        }
        let mut selected = false;
        if !path.is_empty() {
            let group = Group::read(host, &name)?;
            let priority = self.make_known(host, known)?;
            selected = group.would_select(path, priority);
        }
        match self.state {
            State::Selected => !selected && host.set(choice(path))?,
            State::Auto => host.set(choice("auto"))?,
            State::Present | State::Absent => false,
        };
        Ok(Report::of(json!({"name": name})))
    }
}

impl Alternatives {
    /// Registers the program where it is not, or not so; its priority.
    fn make_known(&self, host: &mut Host, known: Setting) -> Result<i64, Fault> {
        let before = host.setting(SettingKind::Alternative, &known.name)?;
        let mut old = before.split(' ');
        let (old_link, old_priority) = (
            old.next().unwrap_or_default(),
            old.next().unwrap_or_default(),
        );
        let rest: Vec<&str> = old.collect();
        let link = match (self.link.as_deref(), old_link) {
            (Some(link), _) => link.to_owned(),
            (None, "") => {
                let query = host
                    .probe(&["update-alternatives", "--query", &self.name])?
                    .text();
                let link = query.lines().find_map(|line| line.strip_prefix("Link: "));
                link.map(str::to_owned).ok_or_else(|| {
                    Fault::new(format!(
                        "Needed to install the alternative, but unable to do so as we are missing the link: \
                         give `link`, for this host has no alternatives for `{}` yet",
                        self.name
                    ))
                })?
            }
            (None, link) => link.to_owned(),
        };
        let priority = match self.priority {
            Some(priority) => priority.to_string(),
            None if old_priority.is_empty() => "50".to_owned(),
            None => old_priority.to_owned(),
        };
        let number = priority.parse().unwrap_or_default();
        let mut words = vec![link, priority];
        if self.subcommands.is_empty() {
            words.extend(rest.iter().map(|&word| word.to_owned()));
        }
        for sub in &self.subcommands {
            words.extend([
                sub.link.to_string(),
                sub.name.to_string(),
                sub.path.to_string(),
            ]);
        }
        host.set(Setting {
            value: words.join(" "),
            ..known
        })?;
        Ok(number)
    }
}

/// What is chosen before anything is made known.
struct Group {
    auto: bool,
    value: String,
    /// The other programs' priorities.
    priorities: Vec<(String, i64)>,
}

impl Group {
    fn read(host: &Host, name: &str) -> Result<Self, Fault> {
        let output = host.probe(&["update-alternatives", "--query", name])?;
        let query = output.text();
        let field = |text: &str, name: &str| {
            let found = text.lines().find_map(|line| line.strip_prefix(name));
            found.map(str::to_owned)
        };
        let programs = query.split("\n\n").skip(1).filter_map(|text| {
            Some((
                field(text, "Alternative: ")?,
                field(text, "Priority: ")?.parse().ok()?,
            ))
        });
        Ok(Self {
            auto: !output.ok() || field(&query, "Status: ").as_deref() == Some("auto"),
            value: field(&query, "Value: ").unwrap_or_default(),
            priorities: programs.collect(),
        })
    }

    /// Whether the program is the choice without anybody choosing it.
    fn would_select(&self, path: &str, priority: i64) -> bool {
        let best = self
            .priorities
            .iter()
            .filter(|(other, _)| other != path)
            .all(|(_, other)| *other < priority);
        match self.auto {
            true => {
                best || self.value == path
                    && self
                        .priorities
                        .iter()
                        .any(|(known, old)| known == path && *old == priority)
            }
            false => self.value == path,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Group, MODULE};
    use crate::host::Host;

    #[test]
    fn a_program_is_made_known_and_chosen() {
        let root = rustix::process::geteuid().is_root();
        if !root || !std::path::Path::new("/usr/bin/update-alternatives").exists() {
            return;
        }
        let mut host = Host::plan();
        let args =
            json!({"name": "fleetctl-x", "path": "/bin/true", "link": "/usr/bin/fleetctl-x"});
        (MODULE.run)(args.clone(), &mut host).unwrap();
        let effects: Vec<String> = host.end().iter().map(fleet_wire::Effect::summary).collect();
        assert_eq!(effects, ["alternative fleetctl-x /bin/true"]);
        (MODULE.run)(args, &mut host).unwrap();
        assert!(host.end().is_empty());
        let group = Group {
            auto: true,
            value: "/bin/a".to_owned(),
            priorities: vec![("/bin/a".to_owned(), 50), ("/bin/b".to_owned(), 10)],
        };
        assert!(group.would_select("/bin/c", 60) && group.would_select("/bin/a", 50));
        assert!(!group.would_select("/bin/b", 10) && !group.would_select("/bin/c", 50));
        let fault = (MODULE.run)(
            json!({"name": "fleetctl-y", "path": "/bin/true"}),
            &mut host,
        )
        .unwrap_err();
        assert!(fault.message.contains("missing the link"), "{fault}");
        assert!((MODULE.check)(&json!({"name": "x"})).is_err());
    }
}
