//! The controller's files as a run sees them: those of the disk, or those that a saved plan holds.
//!
//! There is one set of them in a process, as there is one file system; the disk, until [`record`] or [`keep`] says
//! otherwise. What a plan is made from is recorded as it is read, and an apply of that plan reads the record: so it sees
//! the same texts at the same paths, wherever it runs and whatever has become of the files since.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Cursor, Read},
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
};

use serde::{Deserialize, Serialize};

/// What a run has asked of the controller's files, and what they answered. Paths are absolute.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The directory that relative paths start at.
    pub base: PathBuf,
    /// Files that were read or looked at.
    pub files: BTreeMap<PathBuf, About>,
    /// Directories, with the names in them where these were asked for.
    pub dirs: BTreeMap<PathBuf, Option<Vec<String>>>,
    /// Paths that lead elsewhere by links, and where.
    pub links: BTreeMap<PathBuf, PathBuf>,
    /// Variables of the environment that were asked for.
    pub environment: BTreeMap<String, Option<String>>,
    /// What programs printed (inventory scripts, `pipe`), by their command lines.
    pub outputs: BTreeMap<String, Printed>,
}

/// A file of the controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// SHA-256 of its content in lower-case hex; empty where nobody read it.
    pub sha256: String,
    /// In bytes.
    pub size: u64,
    /// Permission bits.
    pub mode: u32,
    /// The number of its owner.
    pub uid: u32,
    /// When it was changed last, in nanoseconds since 1970.
    pub modified_ns: i64,
}

/// What a program printed and how it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Printed {
    /// The exit status; -1 for a signal.
    pub status: i32,
    /// Its output.
    pub stdout: Vec<u8>,
    /// Its error output.
    pub stderr: Vec<u8>,
}

/// Where the contents of a kept snapshot come from, by their SHA-256.
pub trait Contents: Send + Sync {
    /// Opens a content.
    ///
    /// # Errors
    /// When it is not there.
    fn open(&self, sha256: &str) -> io::Result<Box<dyn Read + Send>>;
}

enum Sources {
    Disk,
    Recorded { snapshot: Snapshot, now: f64 },
    Kept(Arc<Kept>),
}

struct Kept {
    snapshot: Snapshot,
    contents: Box<dyn Contents>,
    now: f64,
    /// What the plan could not know to be asked for is looked for on the disk.
    else_disk: bool,
}

static SOURCES: RwLock<Sources> = RwLock::new(Sources::Disk);

/// From here on all that is read is recorded.
pub fn record() {
    let base = std::env::current_dir().unwrap_or_default();
    set(Sources::Recorded {
        snapshot: Snapshot {
            base,
            ..Snapshot::default()
        },
        now: clock(),
    });
}

/// What was recorded so far; none where nothing is recorded.
#[must_use]
pub fn recorded() -> Option<Snapshot> {
    match &*SOURCES.read().unwrap_or_else(PoisonError::into_inner) {
        Sources::Recorded { snapshot, .. } => Some(snapshot.clone()),
        _ => None,
    }
}

/// From here on the files are those of a snapshot. With `else_disk` what it does not know is looked for on the disk.
///
/// The time is `now`, in seconds since 1970, from here on.
pub fn keep(snapshot: Snapshot, now: f64, contents: Box<dyn Contents>, else_disk: bool) {
    set(Sources::Kept(Arc::new(Kept {
        snapshot,
        contents,
        now,
        else_disk,
    })));
}

fn set(sources: Sources) {
    *SOURCES.write().unwrap_or_else(PoisonError::into_inner) = sources;
}

fn kept() -> Option<Arc<Kept>> {
    match &*SOURCES.read().unwrap_or_else(PoisonError::into_inner) {
        Sources::Kept(kept) => Some(Arc::clone(kept)),
        _ => None,
    }
}

/// Takes something into the record, where there is one.
fn note(path: &Path, take: impl FnOnce(&mut Snapshot, PathBuf)) {
    let records = matches!(
        &*SOURCES.read().unwrap_or_else(PoisonError::into_inner),
        Sources::Recorded { .. }
    );
    if records
        && let Sources::Recorded { snapshot, .. } =
            &mut *SOURCES.write().unwrap_or_else(PoisonError::into_inner)
    {
        let path = absolute(path, &snapshot.base);
        take(snapshot, path);
    }
}

/// The path as a snapshot knows it: from the root on, without `.` and `..`.
fn absolute(path: &Path, base: &Path) -> PathBuf {
    use std::path::Component;
    let mut plain = PathBuf::new();
    for part in base.join(path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

/// The bytes of a file.
///
/// # Errors
/// As the system says; in a snapshot, where it was not read when the plan was made.
pub fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let path = path.as_ref();
    if kept().is_some() {
        let mut bytes = Vec::new();
        open(path)?.read_to_end(&mut bytes)?;
        return Ok(bytes);
    }
    let bytes = fs::read(path)?;
    read_now(path, || hex(&bytes));
    Ok(bytes)
}

/// The text of a file.
///
/// # Errors
/// As [`read`], and where it is not UTF-8.
pub fn read_to_string(path: impl AsRef<Path>) -> io::Result<String> {
    String::from_utf8(read(path)?)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Opens a file; its content is recorded by [`hashed`].
///
/// # Errors
/// As [`read`].
pub fn open(path: impl AsRef<Path>) -> io::Result<Box<dyn Read + Send>> {
    let path = path.as_ref();
    if let Some(kept) = kept() {
        let known = kept.snapshot.resolve(path);
        return match kept.snapshot.files.get(&known) {
            Some(about) if about.size == 0 => Ok(Box::new(Cursor::new(Vec::new()))),
            Some(about) if !about.sha256.is_empty() => kept.contents.open(&about.sha256),
            _ if kept.else_disk => Ok(Box::new(File::open(path)?)),
            _ if kept.snapshot.is_dir(&known) => Err(io::ErrorKind::IsADirectory.into()),
            _ => Err(not_kept(path)),
        };
    }
    Ok(Box::new(File::open(path)?))
}

/// Takes into the record that a file was read whole, and what its SHA-256 is.
pub fn hashed(path: &Path, sha256: &str) {
    read_now(path, || sha256.to_owned());
}

fn read_now(path: &Path, sha256: impl FnOnce() -> String) {
    note(path, |snapshot, key| {
        if let Ok(mut about) = on_disk(path) {
            about.sha256 = sha256();
            snapshot.files.insert(key, about);
        }
    });
}

/// What is known of a file or directory, links followed.
///
/// # Errors
/// As the system says, or where a snapshot does not know it.
pub fn about(path: impl AsRef<Path>) -> io::Result<About> {
    let path = path.as_ref();
    if let Some(kept) = kept() {
        return match kept.snapshot.files.get(&kept.snapshot.resolve(path)) {
            Some(about) => Ok(about.clone()),
            None if kept.else_disk => on_disk(path),
            None => Err(not_kept(path)),
        };
    }
    let about = on_disk(path)?;
    note(path, |snapshot, key| {
        if path.is_file() {
            snapshot.files.entry(key).or_insert_with(|| about.clone());
        }
    });
    Ok(about)
}

fn on_disk(path: &Path) -> io::Result<About> {
    let found = fs::metadata(path)?;
    Ok(About {
        sha256: String::new(),
        size: found.len(),
        mode: found.permissions().mode() & 0o7777,
        uid: found.uid(),
        modified_ns: found.mtime() * 1_000_000_000 + found.mtime_nsec(),
    })
}

/// Whether there is a file, links followed.
#[must_use]
pub fn is_file(path: impl AsRef<Path>) -> bool {
    let path = path.as_ref();
    match kept() {
        Some(kept) => {
            let known = kept.snapshot.resolve(path);
            kept.snapshot.files.contains_key(&known)
                || kept.else_disk && !kept.snapshot.is_dir(&known) && path.is_file()
        }
        None => path.is_file() && about(path).is_ok(),
    }
}

/// Whether there is a directory, links followed.
#[must_use]
pub fn is_dir(path: impl AsRef<Path>) -> bool {
    let path = path.as_ref();
    if let Some(kept) = kept() {
        let known = kept.snapshot.resolve(path);
        return kept.snapshot.is_dir(&known)
            || kept.else_disk && !kept.snapshot.files.contains_key(&known) && path.is_dir();
    }
    let is_dir = path.is_dir();
    if is_dir {
        note(path, |snapshot, key| {
            snapshot.dirs.entry(key).or_default();
        });
    }
    is_dir
}

/// Whether there is anything, links followed.
#[must_use]
pub fn exists(path: impl AsRef<Path>) -> bool {
    is_dir(path.as_ref()) || is_file(path.as_ref())
}

/// The names in a directory, sorted; those that are no UTF-8 are left out.
///
/// # Errors
/// As the system says, or where a snapshot does not know them.
pub fn list(path: impl AsRef<Path>) -> io::Result<Vec<String>> {
    let path = path.as_ref();
    if let Some(kept) = kept() {
        let known = kept.snapshot.resolve(path);
        return match kept.snapshot.dirs.get(&known) {
            Some(Some(names)) => Ok(names.clone()),
            _ if kept.else_disk => on_disk_list(path),
            _ if kept.snapshot.files.contains_key(&known) => {
                Err(io::ErrorKind::NotADirectory.into())
            }
            _ => Err(not_kept(path)),
        };
    }
    let names = on_disk_list(path)?;
    note(path, |snapshot, key| {
        snapshot.dirs.insert(key, Some(names.clone()));
    });
    Ok(names)
}

fn on_disk_list(path: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(path)? {
        names.extend(entry?.file_name().into_string().ok());
    }
    names.sort_unstable();
    Ok(names)
}

/// The path without links.
///
/// # Errors
/// As the system says.
pub fn real_path(path: impl AsRef<Path>) -> io::Result<PathBuf> {
    let path = path.as_ref();
    if let Some(kept) = kept() {
        let known = absolute(path, &kept.snapshot.base);
        return match kept.snapshot.links.get(&known) {
            Some(real) => Ok(real.clone()),
            None if kept.snapshot.files.contains_key(&known) || kept.snapshot.is_dir(&known) => {
                Ok(known)
            }
            None if kept.else_disk => fs::canonicalize(path),
            None => Err(not_kept(path)),
        };
    }
    let real = fs::canonicalize(path)?;
    note(path, |snapshot, key| {
        if key != real {
            snapshot.links.insert(key, real.clone());
        }
    });
    Ok(real)
}

/// What a program printed: run now, or as it was when the plan was made.
///
/// # Errors
/// When it cannot be started.
pub fn output(line: &str, run: impl FnOnce() -> io::Result<Printed>) -> io::Result<Printed> {
    if let Some(kept) = kept()
        && let Some(printed) = kept.snapshot.outputs.get(line)
    {
        return Ok(printed.clone());
    }
    let printed = run()?;
    note(Path::new(""), |snapshot, _| {
        snapshot.outputs.insert(line.to_owned(), printed.clone());
    });
    Ok(printed)
}

/// Runs a program to its end; what it printed.
///
/// # Errors
/// When it cannot be started.
pub fn printed(command: &mut std::process::Command) -> io::Result<Printed> {
    let output = command.stdin(std::process::Stdio::null()).output()?;
    Ok(Printed {
        status: output.status.code().unwrap_or(-1),
        stdout: output.stdout,
        stderr: output.stderr,
    })
}

/// A variable of the environment.
#[must_use]
pub fn variable(name: &str) -> Option<String> {
    if let Some(kept) = kept()
        && let Some(value) = kept.snapshot.environment.get(name)
    {
        return value.clone();
    }
    let value = std::env::var(name).ok();
    if !may_be_secret(name) {
        note(Path::new(""), |snapshot, _| {
            snapshot.environment.insert(name.to_owned(), value.clone());
        });
    }
    value
}

/// Whether a name says that it stands for a secret: no plan keeps its value.
#[must_use]
pub fn may_be_secret(name: &str) -> bool {
    const TELLING: [&str; 6] = ["pass", "secret", "token", "credential", "private", "key"];
    let name = name.to_lowercase();
    TELLING.iter().any(|telling| name.contains(telling))
}

/// The names of the variables that a kept snapshot has and that begin so.
#[must_use]
pub fn variables(prefix: &str) -> Vec<String> {
    let names = kept().map(|kept| {
        kept.snapshot
            .environment
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    });
    let mut names = names.unwrap_or_default();
    names.retain(|name| name.starts_with(prefix));
    names
}

/// What time it is for templates, in seconds since 1970: the time at which the plan was begun, where one is made or applied.
#[must_use]
pub fn now() -> f64 {
    match &*SOURCES.read().unwrap_or_else(PoisonError::into_inner) {
        Sources::Disk => clock(),
        Sources::Recorded { now, .. } => *now,
        Sources::Kept(kept) => kept.now,
    }
}

fn clock() -> f64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_secs_f64())
}

/// The directory that relative paths start at: the one that fleetctl was started in, or that the plan was made in.
#[must_use]
pub fn base() -> PathBuf {
    match kept() {
        Some(kept) => kept.snapshot.base.clone(),
        None => std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
    }
}

/// The path from the root on, as [`std::path::absolute`] makes it.
///
/// # Errors
/// When it is empty.
pub fn rooted(path: impl AsRef<Path>) -> io::Result<PathBuf> {
    match path.as_ref() {
        path if path.as_os_str().is_empty() => std::path::absolute(path),
        path => std::path::absolute(base().join(path)),
    }
}

fn not_kept(path: &Path) -> io::Error {
    io::Error::new(
        io::ErrorKind::NotFound,
        format!(
            "the plan does not hold {}, for nothing asked for it when the plan was made",
            path.display()
        ),
    )
}

/// SHA-256 in lower-case hex, as a snapshot has it.
#[must_use]
pub fn sha256(bytes: &[u8]) -> String {
    hex(bytes)
}

fn hex(bytes: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

impl Snapshot {
    /// The path as it is known here.
    fn resolve(&self, path: &Path) -> PathBuf {
        let path = absolute(path, &self.base);
        match self.links.get(&path) {
            Some(real) if !self.files.contains_key(&path) && !self.dirs.contains_key(&path) => {
                real.clone()
            }
            _ => path,
        }
    }

    /// Whether there was a directory: one that was asked for, or that something known is in.
    fn is_dir(&self, path: &Path) -> bool {
        let below = |first: Option<&PathBuf>| {
            first.is_some_and(|first| first.starts_with(path) && first != path)
        };
        self.dirs.contains_key(path)
            || below(
                self.files
                    .range(path.to_owned()..)
                    .find(|(own, _)| *own != path)
                    .map(|(own, _)| own),
            )
            || below(
                self.dirs
                    .range(path.to_owned()..)
                    .find(|(own, _)| *own != path)
                    .map(|(own, _)| own),
            )
    }
}
