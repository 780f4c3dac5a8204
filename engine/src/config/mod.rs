//! `ansible.cfg` and the variables of the environment that stand beside it.
//!
//! [`read`] takes the text of the file and the environment, and gives a [`Config`]: a getter a setting. A variable wins
//! over the file, and the file over the default; the command line wins over all, which is its reader's business. What is
//! set and not honoured is told once, and so is what nobody knows. [`page`] is the manual, made of the same table.

mod file;
mod kind;
mod others;
mod page;
mod settings;

use std::{
    collections::{BTreeSet, HashMap},
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use fleet_yaml::{Diagnostic, Severity, Source, Span, nearest};

pub use kind::{
    DuplicateKey, FactCaching, Gathering, GroupNames, HashBehaviour, Mismatch, ResultFormat,
    StdoutCallback, Strategy, VarsLevel, VarsRoot,
};
pub use page::page;

use file::Entry;
use kind::{Place, Surroundings, Typed, Wrong};
use others::{Others, PASSED_OVER, UNSUPPORTED};
use settings::{HONOURED, Values};

/// The codes of the diagnostics that settings make.
pub mod code {
    /// A line that cannot be read.
    pub const LINE: &str = "F0401";
    /// A value that a setting cannot have.
    pub const VALUE: &str = "F0402";
    /// A setting that fleetctl does not honour.
    pub const UNSUPPORTED: &str = "F0403";
    /// A setting that there is not.
    pub const UNKNOWN: &str = "F0404";
}

/// The settings: what is written, or else the defaults.
#[derive(Debug)]
pub struct Config {
    values: Values,
    file: Option<PathBuf>,
}

impl Config {
    /// The file that was read.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// The user to become by a method, where it is not said elsewhere.
    #[must_use]
    pub fn become_user_by(&self, method: &str) -> &str {
        let own = match method {
            "sudo" => self.sudo_user(),
            "su" => self.su_user(),
            _ => None,
        };
        own.unwrap_or_else(|| self.become_user())
    }

    /// The program of a method, where one is set.
    #[must_use]
    pub fn become_exe_by(&self, method: &str) -> Option<&str> {
        let own = match method {
            "sudo" => self.sudo_exe(),
            "su" => self.su_exe(),
            _ => None,
        };
        own.or_else(|| self.become_exe())
    }

    /// The arguments of a method's program, where some are set.
    #[must_use]
    pub fn become_flags_by(&self, method: &str) -> Option<&str> {
        let own = match method {
            "sudo" => self.sudo_flags(),
            "su" => self.su_flags(),
            _ => None,
        };
        own.or_else(|| self.become_flags())
    }
}

impl Default for Config {
    /// What counts where nothing is set, and nobody is at home.
    fn default() -> Self {
        read(Written::default(), []).config
    }
}

/// A value, and where it is from.
#[derive(Debug)]
struct Given<T> {
    value: T,
    /// None: it is the default.
    origin: Option<Origin>,
}

/// Where a setting's value is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A place in the file.
    File(Span),
    /// A variable of the environment.
    Variable(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(span) => {
                let (line, _) = span.line_col();
                write!(f, "{}:{line}", span.source.name.display())
            }
            Self::Variable(name) => f.write_str(name),
        }
    }
}

/// What is written besides the environment.
#[derive(Debug, Default)]
pub struct Written {
    /// The file, with its absolute path.
    pub file: Option<(PathBuf, Arc<Source>)>,
    /// The working directory.
    pub cwd: PathBuf,
    /// The user's home, for `~`.
    pub home: Option<PathBuf>,
}

/// Settings, and what is wrong with them.
#[derive(Debug)]
pub struct Reading {
    /// With the default in place of each mistake.
    pub config: Config,
    /// What is set and does not count, and what nobody knows.
    pub warnings: Vec<Diagnostic>,
    /// Values that cannot be, and lines that cannot be read.
    pub mistakes: Vec<Diagnostic>,
}

/// Reads the file and the environment, `NAME` and value each. Nothing else is looked at.
#[must_use]
pub fn read(written: Written, environment: impl IntoIterator<Item = (String, String)>) -> Reading {
    let (entries, mistakes) = match &written.file {
        Some((_, source)) => file::read(source),
        None => (Vec::new(), Vec::new()),
    };
    let path = written.file.map(|(path, _)| path);
    let base = path.as_deref().and_then(Path::parent);
    let base = base.unwrap_or(&written.cwd).to_owned();
    let mut reader = Reader {
        surroundings: Surroundings {
            cwd: written.cwd,
            home: written.home,
            variables: environment.into_iter().collect(),
        },
        entries: &entries,
        base,
        ansible_home: PathBuf::new(),
        warnings: Vec::new(),
        mistakes,
    };
    if let Some(row) = HONOURED.first() {
        reader.ansible_home = reader.home(row);
    }
    let values = Values::read(&mut reader);
    reader.rest();
    let (mut warnings, mut mistakes) = (reader.warnings, reader.mistakes);
    for told in [&mut warnings, &mut mistakes] {
        told.sort_by_key(|one| match &one.span {
            Some(span) => (false, span.line_col()),
            None => (true, (0, 0)),
        });
    }
    Reading {
        config: Config { values, file: path },
        warnings,
        mistakes,
    }
}

/// A row of the table of what is honoured.
struct Row {
    /// The getter.
    name: &'static str,
    /// Where it stands in the file, as `section.name`; the last counts.
    keys: &'static [&'static str],
    /// Its variables; the last counts.
    variables: &'static [&'static str],
    /// As it would be written.
    default: &'static str,
    /// Its type in words.
    words: fn() -> String,
    /// What it is for.
    about: &'static str,
}

struct Reader<'a> {
    surroundings: Surroundings,
    entries: &'a [Entry],
    /// The file's directory.
    base: PathBuf,
    ansible_home: PathBuf,
    warnings: Vec<Diagnostic>,
    mistakes: Vec<Diagnostic>,
}

impl Reader<'_> {
    /// Where the row is set: the text, and its place.
    fn found(&self, row: &Row) -> Option<(&str, Origin)> {
        let variables = row.variables.iter().rev();
        let variable = variables.copied().find_map(|name| {
            let value = self.surroundings.variables.get(name)?;
            Some((value.as_str(), Origin::Variable(name.to_owned())))
        });
        variable.or_else(|| {
            let mut keys = row.keys.iter().rev();
            let entry = keys.find_map(|key| self.entries.iter().find(|entry| entry.is(key)))?;
            Some((entry.value.as_str(), Origin::File(entry.value_span.clone())))
        })
    }

    fn place(&self, origin: Option<&Origin>) -> Place<'_> {
        let in_file = matches!(origin, Some(Origin::File(_)));
        Place {
            in_file,
            base: if in_file {
                &self.base
            } else {
                &self.surroundings.cwd
            },
            surroundings: &self.surroundings,
        }
    }

    /// The directory that defaults lie in.
    fn home(&self, row: &Row) -> PathBuf {
        let found = self.found(row);
        let (text, origin) = match found {
            Some((text, origin)) => (text, Some(origin)),
            None => (row.default, None),
        };
        PathBuf::read(text, &self.place(origin.as_ref())).unwrap_or_default()
    }

    fn setting<T: Typed>(&mut self, row: &'static Row) -> Given<T> {
        if let Some((text, origin)) = self.found(row) {
            match T::read(text, &self.place(Some(&origin))) {
                Ok(value) => {
                    return Given {
                        value,
                        origin: Some(origin),
                    };
                }
                Err(wrong) => {
                    let told = told(row, text, &origin, &wrong, T::LENIENT);
                    if T::LENIENT {
                        self.warnings.push(told);
                    } else {
                        self.mistakes.push(told);
                    }
                }
            }
        }
        let home = self.ansible_home.to_string_lossy();
        let text = row.default.replace("{{ANSIBLE_HOME}}", &home);
        match T::read(&text, &self.place(None)) {
            Ok(value) => Given {
                value,
                origin: None,
            },
            Err(wrong) => unreachable!("the default of `{}`: {wrong:?}", row.name),
        }
    }

    /// Tells what is set and not honoured, and what nobody knows.
    fn rest(&mut self) {
        let mut told = BTreeSet::new();
        for entry in self.entries {
            let key = format!("{}.{}", entry.section, entry.name);
            if HONOURED.iter().any(|row| row.keys.contains(&&*key)) {
                continue;
            }
            if among(PASSED_OVER, |(known, _, _)| *known == key).is_some() {
                continue;
            }
            if let Some((why, default)) = among(UNSUPPORTED, |(known, _, _)| *known == key) {
                if !same(&entry.value, default) {
                    let what = format!("`{}` is set, and fleetctl does not {why}", entry.name);
                    self.warnings.push(
                        Diagnostic::warning(entry.name_span.clone(), what)
                            .with_code(code::UNSUPPORTED),
                    );
                }
                continue;
            }
            let sections: BTreeSet<&str> = known_keys().filter_map(section).collect();
            if sections.contains(entry.section.as_str()) {
                self.warnings.push(unknown_key(entry));
            } else if told.insert(&entry.section) && !foreign(&entry.section) {
                self.warnings.push(unknown_section(entry, &sections));
            }
        }
        let mut variables: Vec<_> = self.surroundings.variables.iter().collect();
        variables.sort();
        for (name, value) in variables {
            if let Some((why, default)) = among(UNSUPPORTED, |(_, known, _)| known == name) {
                if !value.is_empty() && !same(value, default) {
                    let mut told = Diagnostic::without_place(format!(
                        "`{name}` is set, and fleetctl does not {why}"
                    ))
                    .with_code(code::UNSUPPORTED);
                    told.severity = Severity::Warning;
                    self.warnings.push(told);
                }
            } else if let Some(near) = meant_variable(name) {
                let mut told = Diagnostic::without_place(format!("there is no setting `{name}`"))
                    .with_code(code::UNKNOWN)
                    .with_help(format!("did you mean `{near}`?"));
                told.severity = Severity::Warning;
                self.warnings.push(told);
            }
        }
    }
}

impl Entry {
    fn is(&self, key: &str) -> bool {
        key.split_once('.') == Some((&self.section, &self.name))
    }
}

/// What is wrong with a value.
fn told(row: &Row, text: &str, origin: &Origin, wrong: &Wrong, lenient: bool) -> Diagnostic {
    let span = match origin {
        Origin::File(span) => span.clone(),
        Origin::Variable(name) => Source::new(name, text).span(0, text.len()),
    };
    let what = if lenient {
        format!("fleetctl has no {} `{text}`", row.name.replace('_', " "))
    } else {
        format!("`{text}` is no value of `{}`", row.name)
    };
    let told = Diagnostic::error(span, what)
        .with_label(&wrong.expected)
        .with_code(code::VALUE);
    if !lenient {
        return match wrong.meant {
            Some(meant) => told.with_help(format!("did you mean `{meant}`?")),
            None => told,
        };
    }
    let mut told = told
        .with_help(format!("`{}` is taken instead", row.default))
        .with_code(code::UNSUPPORTED);
    told.severity = Severity::Warning;
    told
}

fn unknown_key(entry: &Entry) -> Diagnostic {
    let (section, name) = (&entry.section, &entry.name);
    let told = Diagnostic::warning(
        entry.name_span.clone(),
        format!("there is no setting `{name}` in `[{section}]`"),
    )
    .with_code(code::UNKNOWN);
    let elsewhere =
        known_keys().find(|key| key.split_once('.').is_some_and(|(_, key)| key == name));
    if let Some((section, _)) = elsewhere.and_then(|key| key.split_once('.')) {
        return told.with_help(format!("it belongs into `[{section}]`"));
    }
    let here = known_keys()
        .filter_map(|key| key.split_once('.'))
        .filter(|(known, _)| known == section);
    match nearest(name, here.map(|(_, key)| key)) {
        Some(near) => told.with_help(format!("did you mean `{near}`?")),
        None => told,
    }
}

fn unknown_section(entry: &Entry, sections: &BTreeSet<&str>) -> Diagnostic {
    let section = &entry.section;
    let plugins = ["callback_", "_plugin", "_lookup", "_plugins"];
    let own = sections.iter().copied();
    let own = own.filter(|known| !plugins.iter().any(|part| known.contains(part)));
    match nearest(section, own) {
        Some(near) => Diagnostic::warning(
            entry.section_span.clone(),
            format!("there is no section `[{section}]`"),
        )
        .with_code(code::UNKNOWN)
        .with_help(format!("did you mean `[{near}]`?")),
        None => Diagnostic::warning(
            entry.section_span.clone(),
            format!("`[{section}]` is set, and fleetctl does not know whose settings these are"),
        )
        .with_code(code::UNSUPPORTED),
    }
}

/// Sections of other programs.
fn foreign(section: &str) -> bool {
    section.starts_with("galaxy_server.")
}

/// All settings of the file, as `section.name`.
fn known_keys() -> impl Iterator<Item = &'static str> {
    let honoured = HONOURED.iter().flat_map(|row| row.keys.iter().copied());
    let others = PASSED_OVER
        .iter()
        .chain(UNSUPPORTED)
        .flat_map(|others| others.settings);
    honoured
        .chain(others.map(|(key, _, _)| *key))
        .filter(|key| !key.is_empty())
}

/// All variables.
fn known_variables() -> impl Iterator<Item = &'static str> {
    let honoured = HONOURED
        .iter()
        .flat_map(|row| row.variables.iter().copied());
    let others = PASSED_OVER
        .iter()
        .chain(UNSUPPORTED)
        .flat_map(|others| others.settings);
    honoured
        .chain(others.map(|(_, name, _)| *name))
        .filter(|name| !name.is_empty())
}

fn section(key: &str) -> Option<&str> {
    key.split_once('.').map(|(section, _)| section)
}

/// The known variable that an unknown one was meant to be. Others use the prefix, too, so only a slip or two counts.
fn meant_variable(name: &str) -> Option<&'static str> {
    let own = name.strip_prefix("ANSIBLE_")?;
    if known_variables().any(|known| known == name) || own == "CONFIG" || own.starts_with("TEST_") {
        return None;
    }
    let known = known_variables().filter_map(|known| known.strip_prefix("ANSIBLE_"));
    let near = nearest(own, known)?;
    let slip = near.len().abs_diff(own.len()) <= 2 && own.len() > 3;
    let letters: HashMap<char, i32> = own
        .chars()
        .map(|letter| (letter, 1))
        .chain(near.chars().map(|letter| (letter, -1)))
        .fold(HashMap::new(), |mut letters, (letter, by)| {
            *letters.entry(letter).or_default() += by;
            letters
        });
    let differ: i32 = letters.values().map(|by| by.abs()).sum();
    let full = known_variables().find(|known| known.strip_prefix("ANSIBLE_") == Some(near));
    full.filter(|_| slip && differ <= 2)
}

/// The reason and the default of the setting that fits.
fn among(
    table: &'static [Others],
    fits: impl Fn(&(&'static str, &'static str, &'static str)) -> bool,
) -> Option<(&'static str, &'static str)> {
    table.iter().find_map(|others| {
        let setting = others.settings.iter().find(|setting| fits(setting))?;
        Some((others.why, setting.2))
    })
}

/// Whether a value is the default, in whichever spelling.
fn same(value: &str, default: &str) -> bool {
    let truth = |text: &str| match text.to_lowercase().as_str() {
        "y" | "yes" | "on" | "1" | "true" | "t" => Some(true),
        "n" | "no" | "off" | "0" | "false" | "f" => Some(false),
        _ => None,
    };
    value == default || (truth(value).is_some() && truth(value) == truth(default))
}

#[cfg(test)]
mod tests {
    use fleet_yaml::render;

    use super::*;

    fn reading(text: &str, environment: &[(&str, &str)]) -> Reading {
        let written = Written {
            file: Some((
                "/etc/fleet/ansible.cfg".into(),
                Source::new("ansible.cfg", text),
            )),
            cwd: "/work".into(),
            home: Some("/home/ops".into()),
        };
        let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        read(written, environment.iter().map(pair))
    }

    fn config(text: &str, environment: &[(&str, &str)]) -> Config {
        let reading = reading(text, environment);
        assert!(reading.mistakes.is_empty(), "{:?}", reading.mistakes);
        reading.config
    }

    fn told(text: &str, environment: &[(&str, &str)]) -> String {
        let reading = reading(text, environment);
        let all = reading.mistakes.iter().chain(&reading.warnings);
        let shown: Vec<String> = all.map(|one| render(one, false)).collect();
        shown.join("\n")
    }

    fn paths(paths: &[PathBuf]) -> Vec<&str> {
        paths.iter().map(|path| path.to_str().unwrap()).collect()
    }

    #[test]
    fn a_variable_wins_over_the_file_and_the_file_over_the_default() {
        let text = "[defaults]\nforks = 7\ntimeout = 3\n[ssh_connection]\ntimeout = 4\n";
        let config = config(text, &[("ANSIBLE_FORKS", "9")]);
        assert_eq!(
            (config.forks(), config.timeout(), config.poll_interval()),
            (9, 4, 15)
        );
        let origin = |name| config.origin(name).map(ToString::to_string);
        assert_eq!(origin("forks").unwrap(), "ANSIBLE_FORKS");
        assert_eq!(origin("timeout").unwrap(), "ansible.cfg:5");
        assert_eq!(origin("poll_interval"), None);
    }

    #[test]
    fn every_default_is_a_value() {
        let config = Config::default();
        assert_eq!(config.forks(), 50);
        assert_eq!(config.gathering(), Gathering::Implicit);
        assert_eq!(config.precedence().len(), 6);
        assert_eq!(config.remote_user(), None);
        assert!(config.host_key_checking() && !config.r#become());
    }

    #[test]
    fn paths_are_relative_to_where_they_are_written() {
        let text = "[defaults]\nroles_path = roles:../r:~/rr:/abs:{{CWD}}/c:$HOME/y:${NO}/z\ninventory = a, /b/c ,~/x,\nprivate_key_file = \"keys/k\"\nlog_path =\n";
        let config = config(text, &[("HOME", "/h"), ("ANSIBLE_LIBRARY", "lib:./l")]);
        let expected = [
            "/etc/fleet/roles",
            "/etc/r",
            "/home/ops/rr",
            "/abs",
            "/work/c",
            "/h/y",
            "/etc/fleet/${NO}/z",
        ];
        assert_eq!(paths(config.roles_path()), expected);
        assert_eq!(
            paths(config.inventory()),
            ["/etc/fleet/a", "/b/c", "/home/ops/x"]
        );
        assert_eq!(
            config.private_key_file(),
            Some(Path::new("/etc/fleet/keys/k"))
        );
        assert_eq!(config.log_path(), None);
        assert_eq!(paths(config.library()), ["/work/lib", "/work/l"]);
    }

    #[test]
    fn defaults_lie_in_the_home_that_is_set() {
        let own = config("[defaults]\nhome = h\n", &[]);
        assert_eq!(
            own.collections_path()[0],
            Path::new("/etc/fleet/h/collections")
        );
        assert_eq!(
            config("", &[]).local_tmp(),
            Path::new("/home/ops/.ansible/tmp")
        );
        assert_eq!(
            config("", &[("ANSIBLE_HOME", "z")]).home(),
            Path::new("/work/z")
        );
    }

    #[test]
    fn types_are_read_as_python_reads_them() {
        let text = "[defaults]\nforks = 1e1\ntimeout = 7.0\npoll_interval = 1_0\nno_log = On\nforce_handlers =\ninterpreter_python = 'auto'\nremote_user = \"bob\"\nstrategy = ansible.builtin.free\n[tags]\nrun = \"a\", 'b',,c\n";
        let config = config(text, &[("ANSIBLE_BECOME_FLAGS", "'-H'")]);
        assert_eq!(
            (config.forks(), config.timeout(), config.poll_interval()),
            (10, 7, 10)
        );
        assert_eq!((config.no_log(), config.force_handlers()), (true, false));
        assert_eq!(config.interpreter_python(), "auto");
        assert_eq!(config.remote_user(), Some("bob"));
        assert_eq!(config.strategy(), Strategy::Free);
        assert_eq!(config.tags_run(), ["a", "b", "c"]);
        // Quotes in the environment were the shell's business.
        assert_eq!(config.become_flags(), Some("'-H'"));
    }

    #[test]
    fn a_method_of_becoming_has_its_own_settings() {
        let text = "[privilege_escalation]\nbecome_user = app\nbecome_exe = doit\n[su_become_plugin]\nuser = db\n";
        let config = config(text, &[("ANSIBLE_SUDO_EXE", "/opt/sudo")]);
        assert_eq!(
            (config.become_user_by("sudo"), config.become_user_by("su")),
            ("app", "db")
        );
        assert_eq!(config.become_exe_by("sudo"), Some("/opt/sudo"));
        assert_eq!(config.become_exe_by("su"), Some("doit"));
        assert_eq!(config.become_flags_by("su"), None);
    }

    #[test]
    fn passwords_are_not_shown() {
        let config = config("", &[("ANSIBLE_BECOME_PASS", "hunter2")]);
        assert_eq!(config.become_pass().unwrap().expose(), "hunter2");
        assert!(!format!("{config:?}").contains("hunter2"));
    }

    #[test]
    fn wrong_values_are_errors_with_their_place() {
        let text = "[defaults]\nforks = 0\nno_log = maybe\ngathering = smrt\nremote_port = 99999\nprecedence = all_inventory, all\n";
        insta::assert_snapshot!(told(text, &[("ANSIBLE_TIMEOUT", "10s")]), @"
        error[F0402]: `10s` is no value of `timeout`
         --> ANSIBLE_TIMEOUT:1:1
          |
        1 | 10s
          | ^^^ expected a whole number
        error[F0402]: `0` is no value of `forks`
         --> ansible.cfg:2:9
          |
        2 | forks = 0
          |         ^ expected a whole number from 1 on
        error[F0402]: `maybe` is no value of `no_log`
         --> ansible.cfg:3:10
          |
        3 | no_log = maybe
          |          ^^^^^ expected `true` or `false`
        error[F0402]: `smrt` is no value of `gathering`
         --> ansible.cfg:4:13
          |
        4 | gathering = smrt
          |             ^^^^ expected `implicit`, `explicit` or `smart`
          |
          = help: did you mean `smart`?
        error[F0402]: `99999` is no value of `remote_port`
         --> ansible.cfg:5:15
          |
        5 | remote_port = 99999
          |               ^^^^^ expected a port, from 1 to 65535
        error[F0402]: `all_inventory, all` is no value of `precedence`
         --> ansible.cfg:6:14
          |
        6 | precedence = all_inventory, all
          |              ^^^^^^^^^^^^^^^^^^ expected `all_inventory`, `groups_inventory`, `all_plugins_inventory`, `all_plugins_play`, `groups_plugins_inventory` or `groups_plugins_play`
        ");
    }

    #[test]
    fn plugins_that_there_are_not_are_warned_of() {
        insta::assert_snapshot!(told("[defaults]\nstrategy = mitogen_linear\nfact_caching=redis\n", &[]), @"
        warning[F0403]: fleetctl has no strategy `mitogen_linear`
         --> ansible.cfg:2:12
          |
        2 | strategy = mitogen_linear
          |            ^^^^^^^^^^^^^^ expected `linear`, `free` or `host_pinned`
          |
          = help: `linear` is taken instead
        warning[F0403]: fleetctl has no fact caching `redis`
         --> ansible.cfg:3:14
          |
        3 | fact_caching=redis
          |              ^^^^^ expected `memory` or `jsonfile`
          |
          = help: `memory` is taken instead
        ");
    }

    #[test]
    fn what_is_not_honoured_is_told_once() {
        let text = "[defaults]\nnocows = 1\nretry_files_enabled = no\ncallbacks_enabled = timer\nfilter_plugins = ./f\n[callback_timer]\nx = 1\ny = 2\n[galaxy_server.hub]\nurl = x\n[colors]\nok = green\n";
        insta::assert_snapshot!(told(text, &[("ANSIBLE_FILTER_PLUGINS", "f"), ("ANSIBLE_NOCOWS", "1")]), @"
        warning[F0403]: `callbacks_enabled` is set, and fleetctl does not run callbacks: `fleetctl runs` and `--json` tell what happened
         --> ansible.cfg:4:1
          |
        4 | callbacks_enabled = timer
          | ^^^^^^^^^^^^^^^^^
        warning[F0403]: `filter_plugins` is set, and fleetctl does not run plugins of one's own, which are Python
         --> ansible.cfg:5:1
          |
        5 | filter_plugins = ./f
          | ^^^^^^^^^^^^^^
        warning[F0403]: `[callback_timer]` is set, and fleetctl does not know whose settings these are
         --> ansible.cfg:6:1
          |
        6 | [callback_timer]
          | ^^^^^^^^^^^^^^^^
        warning[F0403]: `ANSIBLE_FILTER_PLUGINS` is set, and fleetctl does not run plugins of one's own, which are Python
        ");
    }

    #[test]
    fn unknown_names_are_told_with_the_one_that_was_meant() {
        let text = "[defaults]\nfork = 7\npipelining = true\nssh_args = -C\nbecome = true\nquux = 1\n[default]\nforks = 1\n";
        insta::assert_snapshot!(told(text, &[("ANSIBLE_FORK", "7"), ("ANSIBLE_VAULT_PASS", "x"), ("ANSIBLE_TEST_X", "y"), ("ANSIBLE_CONFIG", "z")]), @"
        warning[F0404]: there is no setting `fork` in `[defaults]`
         --> ansible.cfg:2:1
          |
        2 | fork = 7
          | ^^^^
          |
          = help: did you mean `forks`?
        warning[F0404]: there is no setting `ssh_args` in `[defaults]`
         --> ansible.cfg:4:1
          |
        4 | ssh_args = -C
          | ^^^^^^^^
          |
          = help: it belongs into `[ssh_connection]`
        warning[F0404]: there is no setting `become` in `[defaults]`
         --> ansible.cfg:5:1
          |
        5 | become = true
          | ^^^^^^
          |
          = help: it belongs into `[privilege_escalation]`
        warning[F0404]: there is no setting `quux` in `[defaults]`
         --> ansible.cfg:6:1
          |
        6 | quux = 1
          | ^^^^
        warning[F0404]: there is no section `[default]`
         --> ansible.cfg:7:1
          |
        7 | [default]
          | ^^^^^^^^^
          |
          = help: did you mean `[defaults]`?
        warning[F0404]: there is no setting `ANSIBLE_FORK`
         |
         = help: did you mean `ANSIBLE_FORKS`?
        ");
    }

    #[test]
    fn a_name_stands_in_the_table_once() {
        let mut keys: Vec<&str> = known_keys().collect();
        let mut variables: Vec<&str> = known_variables().collect();
        for names in [&mut keys, &mut variables] {
            names.sort_unstable();
            let twice: Vec<_> = names.windows(2).filter(|pair| pair[0] == pair[1]).collect();
            assert!(twice.is_empty(), "{twice:?}");
        }
        assert!(
            keys.iter().all(|key| key.split_once('.').is_some()),
            "{keys:?}"
        );
    }

    #[test]
    fn the_page_tells_of_every_setting() {
        let page = page();
        assert!(
            page.contains(
                "* `forks`, `ANSIBLE_FORKS`: How many hosts are worked on at the same time."
            ),
            "{page}"
        );
        assert!(page.contains("`[galaxy] server`"));
        let lines = page.lines().filter(|line| line.starts_with("* "));
        assert_eq!(
            lines.count(),
            HONOURED.len() + UNSUPPORTED.len() + PASSED_OVER.len()
        );
    }
}
