use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::encoding;
use super::stat;
use crate::args::{Bool, List, Mode, Number, Text};
use crate::checksum::Algorithm;
use crate::glob;
use crate::host::{Entry, Fault, Host};
use crate::module::{ArgumentError, Module, Report, Task};
use crate::pattern::Pattern;

pub(super) static MODULE: Module = Module::of::<Find>();

/// Lists the files in directories that have certain names, ages, sizes or contents, in the field `files`. Changes nothing.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Find {
    /// The directories to look in.
    paths: List,
    /// Shell patterns for the names, or regular expressions with `use_regex`; all names where there is none.
    #[serde(default)]
    patterns: List,
    /// Patterns of names to leave out.
    #[serde(default)]
    excludes: List,
    /// The patterns are regular expressions in Python's syntax, for the whole name.
    #[serde(default)]
    use_regex: Bool,
    /// `file`, `directory`, `link` or `any`.
    #[serde(default)]
    file_type: FileType,
    /// Look into the directories that are found, too.
    #[serde(default)]
    recurse: Bool,
    /// How many directories deep to look; no end where it is not given.
    depth: Option<Number>,
    /// Follow links to directories.
    #[serde(default)]
    follow: Bool,
    /// Take names that begin with a dot.
    #[serde(default)]
    hidden: Bool,
    /// Take what is older than this, or younger with a `-`: seconds, or with `m`, `h`, `d` or `w`.
    age: Option<Text>,
    /// The time that is meant by age: `mtime`, `atime` or `ctime`.
    #[serde(default)]
    age_stamp: Stamp,
    /// Take what is larger than this, or smaller with a `-`: bytes, or with `k`, `m`, `g` or `t`.
    size: Option<Text>,
    /// A regular expression that the content of a file must match, in a line of it from the line's beginning.
    contains: Option<Text>,
    /// Let `contains` match anywhere in the file as a whole.
    #[serde(default)]
    read_whole_file: Bool,
    /// The encoding of the contents. For others than UTF-8 the host needs `iconv`.
    encoding: Option<Text>,
    /// Take what has this mode.
    mode: Option<Mode>,
    /// Take only what has exactly this mode; without it, what has all of its bits.
    #[serde(default = "yes")]
    exact_mode: Bool,
    /// Give a checksum of each file.
    #[serde(default)]
    get_checksum: Bool,
    /// `md5`, `sha1`, `sha224`, `sha256`, `sha384` or `sha512`.
    #[serde(default)]
    checksum_algorithm: Algorithm,
    /// Stop after so many.
    limit: Option<Number>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
enum FileType {
    #[default]
    File,
    Directory,
    Link,
    Any,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
enum Stamp {
    #[default]
    Mtime,
    Atime,
    Ctime,
}

fn yes() -> Bool {
    Bool(true)
}

impl Task for Find {
    const NAME: &'static str = "find";
    const ARGUMENT_ALIASES: &'static [(&'static str, &'static str)] = &[
        ("name", "paths"),
        ("path", "paths"),
        ("pattern", "patterns"),
        ("exclude", "excludes"),
        ("checksum", "checksum_algorithm"),
        ("checksum_algo", "checksum_algorithm"),
    ];

    fn check(&self) -> Result<(), ArgumentError> {
        self.names("patterns", &self.patterns)?;
        self.names("excludes", &self.excludes)?;
        self.content().map(drop)
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        let mut search = Search {
            find: &self,
            host,
            patterns: self.names("patterns", &self.patterns)?,
            excludes: self.names("excludes", &self.excludes)?,
            contains: self.content()?,
            age: self
                .age
                .as_deref()
                .map(|age| {
                    let units = [
                        ('s', 1),
                        ('m', 60),
                        ('h', 3600),
                        ('d', 86_400),
                        ('w', 604_800),
                    ];
                    amount(age, &units).ok_or_else(|| wrong("age", age))
                })
                .transpose()?,
            size: self
                .size
                .as_deref()
                .map(|size| {
                    let units = [
                        ('b', 1),
                        ('k', 1 << 10),
                        ('m', 1 << 20),
                        ('g', 1 << 30),
                        ('t', 1 << 40),
                    ];
                    amount(size, &units).ok_or_else(|| wrong("size", size))
                })
                .transpose()?,
            now: seconds(SystemTime::now()),
            files: Vec::new(),
            examined: 0,
            skipped: Map::new(),
        };
        for path in self.paths.iter() {
            search.root(path)?;
        }
        let full = search.is_full();
        let message = match (search.skipped.is_empty(), full) {
            (false, _) => "Not all paths examined, check warnings for details",
            (true, true) => "Limit of matches reached",
            (true, false) => "All paths examined",
        };
        let mut report = Report::of(json!({
            "files": search.files,
            "matched": search.files.len(),
            "examined": search.examined,
            "skipped_paths": search.skipped,
            "msg": message,
        }));
        if !search.skipped.is_empty() {
            let warnings: Vec<String> = search
                .skipped
                .iter()
                .map(|(path, why)| {
                    format!(
                        "Skipped '{path}' path due to this access issue: {}",
                        why.as_str().unwrap_or_default()
                    )
                })
                .collect();
            report.fields.insert("warnings".to_owned(), json!(warnings));
        }
        Ok(report)
    }
}

/// A pattern for names.
enum Name {
    Shell(String),
    Expression(Pattern),
}

impl Name {
    fn fits(&self, name: &str) -> bool {
        match self {
            Self::Shell(pattern) => glob::matches(pattern, name),
            Self::Expression(pattern) => pattern.is_in(name.as_bytes()),
        }
    }
}

impl Find {
    fn names(&self, argument: &str, patterns: &List) -> Result<Vec<Name>, ArgumentError> {
        let name = |text: &String| {
            if !*self.use_regex {
                return Ok(Name::Shell(text.clone()));
            }
            // As Python's `match`: from the beginning, not to the end.
            Pattern::over_text(&format!("\\A(?:{text})"))
                .map(Name::Expression)
                .map_err(|problem| ArgumentError::of(argument, problem))
        };
        patterns.iter().map(name).collect()
    }

    fn content(&self) -> Result<Option<Pattern>, ArgumentError> {
        let Some(contains) = &self.contains else {
            return Ok(None);
        };
        match *self.read_whole_file {
            true => Pattern::over_text(contains),
            false => Pattern::new(&format!("\\A(?:{})", &**contains)),
        }
        .map(Some)
        .map_err(|problem| ArgumentError::of("contains", problem))
    }
}

fn wrong(what: &str, value: &str) -> Fault {
    Fault::new(format!("failed to process {what}")).with(what, value)
}

/// `-2d` in the smallest unit.
fn amount(text: &str, units: &[(char, i64)]) -> Option<i64> {
    let text = text.trim().to_ascii_lowercase();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text[digits.len()..].chars().next() {
        Some(letter) => units.iter().find(|(unit, _)| *unit == letter)?.1,
        None => 1,
    };
    digits.trim().parse::<i64>().ok()?.checked_mul(unit)
}

fn seconds(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs_f64()
}

struct Search<'a> {
    find: &'a Find,
    host: &'a Host,
    patterns: Vec<Name>,
    excludes: Vec<Name>,
    contains: Option<Pattern>,
    age: Option<i64>,
    size: Option<i64>,
    now: f64,
    files: Vec<Value>,
    examined: u64,
    skipped: Map<String, Value>,
}

impl Search<'_> {
    fn is_full(&self) -> bool {
        let limit = self
            .find
            .limit
            .and_then(|limit| usize::try_from(*limit).ok());
        limit.is_some_and(|limit| self.files.len() >= limit)
    }

    fn root(&mut self, shown: &str) -> Result<(), Fault> {
        let root = self.host.resolve(&self.host.expand(shown))?;
        // The paths of the result begin as they are written, but for a `~`.
        let written = match !shown.starts_with('/') {
            true => root.clone(),
            false => PathBuf::from(shown.trim_end_matches('/')),
        };
        if !matches!(self.host.entry(&root)?, Entry::Dir(_)) {
            let why = format!("'{shown}' is not a directory");
            self.skipped.insert(shown.to_owned(), why.into());
            return Ok(());
        }
        if let Err(fault) = self.walk(&written, 1) {
            self.skipped.insert(shown.to_owned(), fault.message.into());
        }
        Ok(())
    }

    fn walk(&mut self, dir: &Path, depth: i64) -> Result<(), Fault> {
        let names = match self.host.list(dir) {
            Ok(names) => names.unwrap_or_default(),
            Err(fault) => {
                let why = match fault.message.contains("permission denied") {
                    true => format!("[Errno 13] Permission denied: '{}'", dir.display()),
                    false => fault.message,
                };
                self.skipped.insert(dir.display().to_string(), why.into());
                return Ok(());
            }
        };
        // All of a directory is counted, though its names be too deep to be taken.
        self.examined += names.len() as u64;
        if self
            .find
            .depth
            .is_some_and(|most| *most > 0 && depth > *most)
        {
            return Ok(());
        }
        let mut deeper = Vec::new();
        for name in names {
            if self.is_full() {
                return Ok(());
            }
            let path = dir.join(&name);
            let entry = self.host.entry(&path)?;
            let followed = match (&entry, *self.find.follow) {
                (Entry::Link(_), true) => self.host.entry(&self.host.resolve(&path)?)?,
                _ => entry.clone(),
            };
            self.take(&path, &name, &entry)?;
            if *self.find.recurse && matches!(followed, Entry::Dir(_)) {
                deeper.push(path);
            }
        }
        for path in deeper {
            if self.is_full() {
                return Ok(());
            }
            self.walk(&path, depth + 1)?;
        }
        Ok(())
    }

    fn take(&mut self, path: &Path, name: &str, entry: &Entry) -> Result<(), Fault> {
        if !*self.find.hidden && name.starts_with('.') {
            return Ok(());
        }
        let kind = match entry {
            Entry::File(..) => FileType::File,
            Entry::Dir(_) => FileType::Directory,
            Entry::Link(_) => FileType::Link,
            Entry::Special | Entry::Absent => FileType::Any,
        };
        let wanted = self.find.file_type;
        let fits = (wanted == FileType::Any || wanted == kind)
            && (self.patterns.is_empty() || self.patterns.iter().any(|it| it.fits(name)))
            && !self.excludes.iter().any(|it| it.fits(name));
        if !fits {
            return Ok(());
        }
        let mut fields = stat::described(self.host, path, entry);
        if !self.fits_mode(&fields) || !self.fits_age(&fields) || !self.fits_size(&fields, kind) {
            return Ok(());
        }
        if kind == FileType::File && matches!(wanted, FileType::File | FileType::Any) {
            if !self.fits_content(path)? {
                return Ok(());
            }
            if *self.find.get_checksum
                && let Some(content) = self.host.read(path)?
            {
                let sum = self.find.checksum_algorithm.sum(&content);
                fields.insert("checksum".to_owned(), sum.into());
            }
        }
        let mut all = Map::from_iter([("path".to_owned(), path.to_string_lossy().into())]);
        all.extend(fields);
        self.files.push(all.into());
        Ok(())
    }

    fn fits_mode(&self, fields: &Map<String, Value>) -> bool {
        let Some(wanted) = &self.find.mode else {
            return true;
        };
        let is = fields.get("mode").and_then(Value::as_str).unwrap_or("0");
        let is = u32::from_str_radix(is, 8).unwrap_or(0);
        let directory = fields
            .get("isdir")
            .and_then(Value::as_bool)
            .unwrap_or(false);
        let wanted = wanted.resolve(0, directory);
        match *self.find.exact_mode {
            true => is == wanted,
            false => is & wanted == wanted,
        }
    }

    fn fits_age(&self, fields: &Map<String, Value>) -> bool {
        let Some(age) = self.age else {
            return true;
        };
        let stamp = match self.find.age_stamp {
            Stamp::Mtime => "mtime",
            Stamp::Atime => "atime",
            Stamp::Ctime => "ctime",
        };
        // What a plan has just made is as young as can be.
        let stamp = fields
            .get(stamp)
            .and_then(Value::as_f64)
            .unwrap_or(self.now);
        #[expect(
            clippy::cast_precision_loss,
            reason = "ages are far below what a float holds"
        )]
        let (is, limit) = (self.now - stamp, age.unsigned_abs() as f64);
        if age >= 0 { is >= limit } else { is <= limit }
    }

    fn fits_size(&self, fields: &Map<String, Value>, kind: FileType) -> bool {
        let Some(size) = self.size else {
            return true;
        };
        // Only files have a size that anybody looks for.
        if kind != FileType::File {
            return false;
        }
        let is = fields.get("size").and_then(Value::as_u64).unwrap_or(0);
        if size >= 0 {
            is >= size.unsigned_abs()
        } else {
            is <= size.unsigned_abs()
        }
    }

    fn fits_content(&self, path: &Path) -> Result<bool, Fault> {
        let Some(pattern) = &self.contains else {
            return Ok(true);
        };
        let content = self.host.read(path)?.unwrap_or_default();
        let content = match self.find.encoding.as_deref() {
            Some(name) => self.decoded(path, name, content)?,
            None if std::str::from_utf8(&content).is_err() => {
                return Err(undecoded(path, "UTF-8 (Python default)"));
            }
            None => content,
        };
        Ok(match *self.find.read_whole_file {
            true => pattern.is_in(&content),
            false => content
                .split_inclusive(|byte| *byte == b'\n')
                .any(|line| pattern.is_in(line)),
        })
    }

    fn decoded(&self, path: &Path, name: &str, content: Vec<u8>) -> Result<Vec<u8>, Fault> {
        let decoded = encoding::decode(self.host, name, content).map_err(|fault| {
            let unknown = ["supported", "failed to start"]
                .iter()
                .any(|it| fault.message.contains(it));
            match unknown {
                true => Fault::new(format!("unknown encoding: {name}")),
                false => undecoded(path, name),
            }
        })?;
        match std::str::from_utf8(&decoded) {
            Ok(_) => Ok(decoded),
            Err(_) => Err(undecoded(path, name)),
        }
    }
}

fn undecoded(path: &Path, encoding: &str) -> Fault {
    Fault::new(format!(
        "Failed to decode the file '{}' with encoding: {encoding}",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;

    use serde_json::{Value, json};

    use super::{MODULE, amount};
    use crate::host::Host;

    fn tree() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        fs::create_dir_all(at("a/b/c")).unwrap();
        for (path, content) in [
            ("a/1.txt", "one\nOK"),
            ("a/b/2.jpg", ""),
            ("a/b/c/3.txt", "KO\nthree\n"),
            ("a/.hidden", "x"),
        ] {
            fs::write(at(path), content).unwrap();
        }
        symlink("1.txt", at("a/link")).unwrap();
        fs::set_permissions(at("a/1.txt"), fs::Permissions::from_mode(0o640)).unwrap();
        dir
    }

    fn found(dir: &Path, mut args: Value) -> (Vec<String>, u64) {
        args["paths"] = json!(dir);
        let report = (MODULE.run)(args, &mut Host::plan()).unwrap().fields;
        let files = report["files"].as_array().unwrap();
        assert_eq!(report["matched"], files.len());
        let path = |file: &Value| {
            let path = Path::new(file["path"].as_str().unwrap());
            path.strip_prefix(dir).unwrap().display().to_string()
        };
        (
            files.iter().map(path).collect(),
            report["examined"].as_u64().unwrap(),
        )
    }

    #[test]
    fn files_are_found_by_name_kind_mode_size_and_content() {
        let dir = tree();
        for (args, names) in [
            (json!({}), vec![]),
            (
                json!({"recurse": true, "patterns": "*.txt,*.jpg"}),
                vec!["a/1.txt", "a/b/2.jpg", "a/b/c/3.txt"],
            ),
            (
                json!({"recurse": true, "patterns": "*.txt", "depth": 2}),
                vec!["a/1.txt"],
            ),
            (
                json!({"recurse": true, "hidden": true, "excludes": "*.txt"}),
                vec!["a/.hidden", "a/b/2.jpg"],
            ),
            (
                json!({"recurse": true, "use_regex": true, "patterns": [".*\\.t"], "excludes": ["3"]}),
                vec!["a/1.txt"],
            ),
            (
                json!({"recurse": true, "file_type": "directory"}),
                vec!["a", "a/b", "a/b/c"],
            ),
            (
                json!({"recurse": true, "file_type": "link"}),
                vec!["a/link"],
            ),
            (
                json!({"recurse": true, "mode": "u=rw,g=r"}),
                vec!["a/1.txt"],
            ),
            (
                json!({"recurse": true, "mode": "0040", "exact_mode": false, "patterns": "1*"}),
                vec!["a/1.txt"],
            ),
            (json!({"recurse": true, "size": "7"}), vec!["a/b/c/3.txt"]),
            (json!({"recurse": true, "size": "-3"}), vec!["a/b/2.jpg"]),
            (
                json!({"recurse": true, "age": "-1h", "patterns": "2*"}),
                vec!["a/b/2.jpg"],
            ),
            (json!({"recurse": true, "age": "1h"}), vec![]),
            (
                json!({"recurse": true, "contains": "KO$"}),
                vec!["a/b/c/3.txt"],
            ),
            (json!({"recurse": true, "contains": "hree"}), vec![]),
            (
                json!({"recurse": true, "contains": "O[KX]$", "read_whole_file": true}),
                vec!["a/1.txt"],
            ),
            (
                json!({"recurse": true, "contains": "KO\\nthree", "read_whole_file": true}),
                vec!["a/b/c/3.txt"],
            ),
        ] {
            assert_eq!(found(dir.path(), args.clone()).0, names, "{args}");
        }
    }

    #[test]
    fn what_was_looked_at_is_counted_as_ansible_does() {
        let dir = tree();
        assert_eq!(found(dir.path(), json!({"recurse": true})).1, 8);
        assert_eq!(found(dir.path(), json!({})).1, 1);
        // What lies one deeper is looked at, and not taken.
        assert_eq!(found(dir.path(), json!({"recurse": true, "depth": 2})).1, 7);
    }

    #[test]
    fn what_cannot_be_looked_at_is_told() {
        let report = (MODULE.run)(json!({"paths": "/no/such"}), &mut Host::plan()).unwrap();
        assert_eq!(
            report.fields["skipped_paths"],
            json!({"/no/such": "'/no/such' is not a directory"})
        );
        assert_eq!(
            report.fields["msg"],
            "Not all paths examined, check warnings for details"
        );
    }

    #[test]
    fn amounts_have_units() {
        let units = [('s', 1), ('h', 3600)];
        assert_eq!(amount("-2h", &units), Some(-7200));
        assert_eq!(amount("5", &units), Some(5));
        assert_eq!(amount("5x", &units), None);
        assert_eq!(amount("", &units), None);
    }
}
