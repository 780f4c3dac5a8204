//! The types that settings have, and how each is read from a text.

use std::path::{Component, Path, PathBuf};

use crate::secret::Secret;

/// Where a text stands, as far as its meaning depends on that.
pub struct Place<'a> {
    /// Whether it is from a file, where values may be in quotes.
    pub(super) in_file: bool,
    /// What relative paths are relative to.
    pub(super) base: &'a Path,
    pub(super) surroundings: &'a Surroundings,
}

/// What paths may refer to.
#[derive(Clone, Debug, Default)]
pub(super) struct Surroundings {
    pub(super) cwd: PathBuf,
    pub(super) home: Option<PathBuf>,
    /// The environment, for `$NAME` in paths.
    pub(super) variables: std::collections::HashMap<String, String>,
}

/// A text that is none of the type.
#[derive(Debug)]
pub struct Wrong {
    pub(super) expected: String,
    /// The word that was meant, where one is near.
    pub(super) meant: Option<&'static str>,
}

impl From<&str> for Wrong {
    fn from(expected: &str) -> Self {
        Self {
            expected: format!("expected {expected}"),
            meant: None,
        }
    }
}

/// A type of settings.
pub trait Typed: Sized {
    /// As a getter hands it out.
    type Seen<'a>
    where
        Self: 'a;
    /// Whether a text that does not fit is only warned of: a plugin's name that fleetctl has not got.
    const LENIENT: bool = false;

    /// Reads a text.
    ///
    /// # Errors
    /// What was expected instead.
    fn read(text: &str, place: &Place<'_>) -> Result<Self, Wrong>;

    fn seen(&self) -> Self::Seen<'_>;

    /// The type in words, for the manual.
    fn words() -> String;
}

/// A text without the quotes around it, where it is from a file.
fn unquoted<'a>(text: &'a str, place: &Place<'_>) -> &'a str {
    let quoted = ['"', '\''].into_iter().find_map(|quote| {
        text.strip_prefix(quote)
            .and_then(|rest| rest.strip_suffix(quote))
    });
    quoted.filter(|_| place.in_file).unwrap_or(text)
}

impl Typed for bool {
    type Seen<'a> = bool;

    fn read(text: &str, place: &Place<'_>) -> Result<Self, Wrong> {
        match unquoted(text, place).trim().to_lowercase().as_str() {
            "y" | "yes" | "on" | "1" | "true" | "t" | "1.0" => Ok(true),
            "n" | "no" | "off" | "0" | "false" | "f" | "0.0" | "" | "none" => Ok(false),
            _ => Err("`true` or `false`".into()),
        }
    }

    fn seen(&self) -> bool {
        *self
    }

    fn words() -> String {
        "yes or no".to_owned()
    }
}

/// A whole number as Python reads it: `7`, `+7`, `7.0`, `1e1`, `1_000`.
fn whole(text: &str, place: &Place<'_>) -> Option<i64> {
    let text = unquoted(text, place).trim().replace('_', "");
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    let number: f64 = text.parse().ok()?;
    let fits = number.fract() == 0.0 && number.abs() < 9e15;
    #[expect(clippy::cast_possible_truncation, reason = "it is whole and small")]
    fits.then_some(number as i64)
}

macro_rules! numbers {
    ($($kind:ty, $from:literal, $words:literal;)*) => { $(
        impl Typed for $kind {
            type Seen<'a> = $kind;

            fn read(text: &str, place: &Place<'_>) -> Result<Self, Wrong> {
                let number = whole(text, place).filter(|number| *number >= $from);
                number
                    .and_then(|number| number.try_into().ok())
                    .ok_or_else(|| $words.into())
            }

            fn seen(&self) -> $kind {
                *self
            }

            fn words() -> String {
                $words.to_owned()
            }
        }
    )* };
}

numbers! {
    u64, 0, "a whole number";
    u16, 1, "a port, from 1 to 65535";
    usize, 0, "a whole number";
}

/// How many at the same time: a whole number from 1 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Many(usize);

impl Typed for Many {
    type Seen<'a> = usize;

    fn read(text: &str, place: &Place<'_>) -> Result<Self, Wrong> {
        match usize::read(text, place) {
            Ok(number) if number > 0 => Ok(Self(number)),
            _ => Err("a whole number from 1 on".into()),
        }
    }

    fn seen(&self) -> usize {
        self.0
    }

    fn words() -> String {
        "a whole number from 1 on".to_owned()
    }
}

impl Typed for String {
    type Seen<'a> = &'a str;

    fn read(text: &str, place: &Place<'_>) -> Result<Self, Wrong> {
        Ok(unquoted(text, place).to_owned())
    }

    fn seen(&self) -> &str {
        self
    }

    fn words() -> String {
        "a text".to_owned()
    }
}

impl Typed for Secret {
    type Seen<'a> = &'a Secret;

    fn read(text: &str, place: &Place<'_>) -> Result<Self, Wrong> {
        String::read(text, place).map(Secret::new)
    }

    fn seen(&self) -> &Secret {
        self
    }

    fn words() -> String {
        "a password".to_owned()
    }
}

impl Typed for PathBuf {
    type Seen<'a> = &'a Path;

    fn read(text: &str, place: &Place<'_>) -> Result<Self, Wrong> {
        Ok(path(unquoted(text, place), place))
    }

    fn seen(&self) -> &Path {
        self
    }

    fn words() -> String {
        "a path".to_owned()
    }
}

/// An absolute path: `~`, `$NAME` and `{{CWD}}` filled in, relative ones from where they are written.
fn path(text: &str, place: &Place<'_>) -> PathBuf {
    let around = place.surroundings;
    let text = text.replace("{{CWD}}", &around.cwd.to_string_lossy());
    let text = expanded(&text, around);
    let home = around.home.as_deref();
    let path = match (text.strip_prefix('~'), home) {
        (Some(""), Some(home)) => home.to_owned(),
        (Some(rest), Some(home)) if rest.starts_with('/') => home.join(&rest[1..]),
        _ => place.base.join(&text),
    };
    normal(&path)
}

/// `$NAME` and `${NAME}` filled in; unknown ones stay.
fn expanded(text: &str, around: &Surroundings) -> String {
    let mut all = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        all.push_str(&rest[..at]);
        let behind = &rest[at + 1..];
        let (name, length) = match behind.strip_prefix('{') {
            Some(inner) => match inner.find('}') {
                Some(end) => (&inner[..end], end + 2),
                None => ("", 0),
            },
            None => {
                let end = behind
                    .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                    .unwrap_or(behind.len());
                (&behind[..end], end)
            }
        };
        match around.variables.get(name) {
            Some(value) => all.push_str(value),
            None => all.push_str(&rest[at..=at + length]),
        }
        rest = &behind[length..];
    }
    all.push_str(rest);
    all
}

/// A path without `.` and `..`, by its words alone.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            part => normal.push(part),
        }
    }
    normal
}

impl<T: Typed> Typed for Option<T> {
    type Seen<'a>
        = Option<T::Seen<'a>>
    where
        T: 'a;
    const LENIENT: bool = T::LENIENT;

    fn read(text: &str, place: &Place<'_>) -> Result<Self, Wrong> {
        // Said and left empty means that there is none.
        if text.is_empty() {
            return Ok(None);
        }
        T::read(text, place).map(Some)
    }

    fn seen(&self) -> Option<T::Seen<'_>> {
        self.as_ref().map(T::seen)
    }

    fn words() -> String {
        T::words()
    }
}

/// The parts of a list, none of them empty.
fn parts(text: &str, separator: char) -> impl Iterator<Item = &str> {
    text.split(separator)
        .map(str::trim)
        .filter(|part| !part.is_empty())
}

/// Words with commas between.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct List<T>(Vec<T>);

impl<T: Typed + 'static> Typed for List<T> {
    type Seen<'a>
        = &'a [T]
    where
        T: 'a;
    const LENIENT: bool = T::LENIENT;

    fn read(text: &str, place: &Place<'_>) -> Result<Self, Wrong> {
        parts(text, ',')
            .map(|part| T::read(part, place))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    fn seen(&self) -> &[T] {
        &self.0
    }

    fn words() -> String {
        format!("{}, several with commas between", T::words())
    }
}

/// Directories to search, with colons between.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchPath(Vec<PathBuf>);

impl Typed for SearchPath {
    type Seen<'a> = &'a [PathBuf];

    fn read(text: &str, place: &Place<'_>) -> Result<Self, Wrong> {
        Ok(Self(
            parts(unquoted(text, place), ':')
                .map(|part| path(part, place))
                .collect(),
        ))
    }

    fn seen(&self) -> &[PathBuf] {
        &self.0
    }

    fn words() -> String {
        "paths with colons between".to_owned()
    }
}

/// Types of a few words.
macro_rules! choices {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident $($lenient:ident)? {
            $($(#[doc = $text:literal])* $variant:ident = $word:literal,)*
        }
    )*) => { $(
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[doc = $text])* $variant,)*
        }

        impl $name {
            /// All of them, as they are written.
            pub const WORDS: &[&str] = &[$($word),*];

            /// As it is written.
            #[must_use]
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }
        }

        impl Typed for $name {
            type Seen<'a> = Self;
            $(const LENIENT: bool = stringify!($lenient).len() > 0;)?

            fn read(text: &str, place: &Place<'_>) -> Result<Self, Wrong> {
                let word = unquoted(text, place);
                let short = word.strip_prefix("ansible.builtin.").unwrap_or(word);
                match short {
                    $($word => Ok(Self::$variant),)*
                    _ => Err(Wrong {
                        expected: format!("expected {}", listed(Self::WORDS)),
                        meant: fleet_yaml::nearest(word, Self::WORDS.iter().copied()),
                    }),
                }
            }

            fn seen(&self) -> Self {
                *self
            }

            fn words() -> String {
                listed(Self::WORDS)
            }
        }
    )* };
}

/// `a`, `b` or `c`.
fn listed(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

choices! {
    /// When facts are gathered.
    Gathering {
        /// Unless a play says `gather_facts: false`.
        Implicit = "implicit",
        /// Only where a play says `gather_facts: true`.
        Explicit = "explicit",
        /// As `implicit`, but no host twice.
        Smart = "smart",
    }
    /// What becomes of a mapping that is set at two levels.
    HashBehaviour {
        /// The higher level counts.
        Replace = "replace",
        /// Both are merged, key by key.
        Merge = "merge",
    }
    /// What happens where a pattern names a host or group that there is not.
    Mismatch {
        /// A warning.
        Warning = "warning",
        /// An error.
        Error = "error",
        /// Nothing.
        Ignore = "ignore",
    }
    /// What happens where a key is twice in a mapping.
    DuplicateKey {
        /// An error.
        Error = "error",
        /// A warning.
        Warn = "warn",
        /// Nothing.
        Ignore = "ignore",
    }
    /// Beside which playbooks `group_vars` and `host_vars` are looked for.
    VarsRoot {
        /// The one on the command line.
        Top = "top",
        /// The one that is running.
        Bottom = "bottom",
        /// All from the one on the command line to the one that is running.
        All = "all",
    }
    /// Where facts are kept between runs.
    FactCaching lenient {
        /// Nowhere.
        Memory = "memory",
        /// In files of one directory.
        Jsonfile = "jsonfile",
    }
    /// How hosts go through a play.
    Strategy lenient {
        /// Task by task.
        Linear = "linear",
        /// Each as fast as it can.
        Free = "free",
        /// Each as fast as it can, and to the end before another begins.
        HostPinned = "host_pinned",
    }
    /// What a run looks like on the terminal.
    StdoutCallback lenient {
        /// Plays, tasks, results and a recap.
        Default = "default",
        /// As `default`, results as YAML.
        Yaml = "yaml",
        /// Results only.
        Minimal = "minimal",
        /// One line a result.
        Oneline = "oneline",
    }
    /// How results are written out.
    ResultFormat {
        /// As JSON.
        Json = "json",
        /// As YAML.
        Yaml = "yaml",
    }
    /// A level of variables that come with the inventory.
    VarsLevel {
        /// The inventory's variables of `all`.
        AllInventory = "all_inventory",
        /// The inventory's variables of groups.
        GroupsInventory = "groups_inventory",
        /// `group_vars/all` beside the inventory.
        AllPluginsInventory = "all_plugins_inventory",
        /// `group_vars/all` beside the playbook.
        AllPluginsPlay = "all_plugins_play",
        /// `group_vars` beside the inventory.
        GroupsPluginsInventory = "groups_plugins_inventory",
        /// `group_vars` beside the playbook.
        GroupsPluginsPlay = "groups_plugins_play",
    }
    /// What is done to names of groups that are no names of variables.
    GroupNames {
        /// They are kept, and warned of.
        Never = "never",
        /// They are kept.
        Ignore = "ignore",
        /// They are changed, and warned of.
        Always = "always",
        /// They are changed.
        Silently = "silently",
    }
}
