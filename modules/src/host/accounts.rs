//! Users and groups: lines in the host's own databases, each told by its first field.
//!
//! They are edited as the tools of the host edit them: under the lock that all of these take, each database replaced at
//! once. So an undo puts back lines, and what others did to other lines stays.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use fleet_wire::{AccountLine, Entry, UndoClass, What};
use rustix::fs::{FlockOperation, fcntl_lock};

use super::files::{self, Attributes, Kind, Place, Refused};
use super::overlay::Seen;
use super::process;
use super::users::Names;
use super::{Body, Fault, Host};

/// What all tools lock that write accounts: lckpwdf(3).
const LOCK: &str = "/etc/.pwd.lock";
/// How long to wait for it, as they do.
const PATIENCE: Duration = Duration::from_secs(15);

impl Host {
    /// The lines of a database of accounts (`/etc/passwd`) that hold one; none where the host has no such database.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn accounts(&self, database: &str) -> Result<Option<Vec<String>>, Fault> {
        let text = self.read(Path::new(database))?;
        Ok(text.map(|text| {
            let text = String::from_utf8_lossy(&text);
            let lines = text.lines().filter(|line| !line.trim().is_empty());
            lines.map(str::to_owned).collect()
        }))
    }

    /// Brings lines of the databases to what is wanted, as one effect; true where something changes.
    ///
    /// # Errors
    /// When a line is not what it was said to be, or the database cannot be written.
    pub fn set_account(&mut self, account: &str, lines: Vec<AccountLine>) -> Result<bool, Fault> {
        let lines: Vec<AccountLine> = lines
            .into_iter()
            .filter(|line| line.before != line.after)
            .collect();
        if lines.is_empty() {
            return Ok(false);
        }
        self.as_root(&format!("change the {account}"))?;
        let defined = lines
            .iter()
            .all(|line| self.overlay.defines(Path::new(&line.path)));
        let assumed = self.open() && !defined;
        let what = What::Account {
            account: account.to_owned(),
            lines: lines.clone(),
        };
        let effect = self.effect(what, UndoClass::Exact, assumed);
        if self.recording {
            for line in &lines {
                self.plan_line(line)?;
            }
            self.report(effect);
        } else {
            self.perform(effect, |_| write(&lines))?;
        }
        self.names = self.names_now();
        Ok(true)
    }

    /// The users and groups as this task sees them.
    pub(super) fn names_now(&self) -> Names {
        let planned = |path: &str| match self.overlay.see(Path::new(path)) {
            Seen::Node(node) => node.body.as_ref()?.bytes().ok(),
            Seen::Nothing | Seen::Machine => None,
        };
        Names::of(planned("/etc/passwd"), planned("/etc/group"))
    }

    fn plan_line(&mut self, line: &AccountLine) -> Result<(), Fault> {
        let path = Path::new(&line.path);
        let text = self.read(path)?.unwrap_or_default();
        let body = Body::from(edited(&text, line)?);
        let before = self.look(path)?.0;
        let after = match &before {
            Entry::File(meta, _) => Entry::File(meta.clone(), body.content().clone()),
            _ => return Err(missing(path)),
        };
        self.overlay.set(path, &before, after, Some(body));
        Ok(())
    }
}

/// The line as it is on the machine.
pub(super) fn line(of: &AccountLine) -> Result<Option<String>, Fault> {
    let path = Path::new(&of.path);
    match std::fs::read(path) {
        Ok(text) => Ok(find(&text, key(of)).map(|(line, _)| line)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Fault::io("read", path, error)),
    }
}

/// Writes lines into the machine's databases.
pub(super) fn write(lines: &[AccountLine]) -> Result<(), Fault> {
    if lines.is_empty() {
        return Ok(());
    }
    let _lock = lock()?;
    for line in lines {
        replace(line)?;
    }
    // A cache would go on with what it knows. It may not run.
    if Path::new("/run/nscd/socket").exists() {
        for database in ["passwd", "group"] {
            let _ = process::read_only(&["nscd", "-i", database]);
        }
    }
    Ok(())
}

fn replace(line: &AccountLine) -> Result<(), Fault> {
    static STAGED: AtomicU32 = AtomicU32::new(0);
    let path = Path::new(&line.path);
    let failed = |error: std::io::Error| Fault::io("write", path, error);
    let refused = |refused: Refused| match refused {
        Refused::Io(error) => failed(error),
        Refused::Moved => Fault::new(format!(
            "somebody else has written {} in this very moment: run it again",
            path.display()
        )),
    };
    let found = files::look(path).map_err(failed)?;
    if !matches!(found.kind, Kind::File(_)) {
        return Err(missing(path));
    }
    let old = files::open_file(path).map_err(failed)?;
    let text = std::fs::read(path).map_err(failed)?;
    let body = Body::from(edited(&text, line)?);
    let attributes = Attributes {
        mode: found.mode,
        uid: found.uid,
        gid: found.gid,
    };
    let number = STAGED.fetch_add(1, Ordering::Relaxed);
    let temp = format!(".fleetctl-accounts-{}-{number}", std::process::id());
    let temp = OsStr::new(&temp);
    let place = Place::of(path).map_err(failed)?;
    place
        .stage_file(temp, &body, attributes, Some(&old))
        .map_err(failed)
        .and_then(|()| place.commit(temp, &found).map_err(refused))
        .inspect_err(|_| place.discard(temp))
}

/// Takes the lock; it goes with the file.
fn lock() -> Result<File, Fault> {
    let path = Path::new(LOCK);
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)
        .map_err(|error| Fault::io("lock", path, error))?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        match fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(_) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(100));
            }
            Err(error) => {
                return Err(Fault::new(format!(
                    "cannot lock the accounts of this host ({LOCK}), another program holds them: {error}"
                )));
            }
        }
    }
}

/// A database's text with one line made what it should be.
fn edited(text: &[u8], line: &AccountLine) -> Result<Vec<u8>, Fault> {
    let key = key(line);
    let found = find(text, key);
    if found.as_ref().map(|(line, _)| line) != line.before.as_ref() {
        return Err(Fault::new(format!(
            "the line of `{key}` in {} is not what it was a moment ago: somebody else has changed it",
            line.path
        )));
    }
    let (from, to) = found.map_or_else(|| (end(text), end(text)), |(_, range)| range);
    let mut new = Vec::new();
    if from == text.len() && from > 0 && text[from - 1] != b'\n' {
        new.push(b'\n');
    }
    if let Some(after) = &line.after {
        new.extend([after.as_bytes(), b"\n"].concat());
    }
    Ok([&text[..from], &new, &text[to..]].concat())
}

/// Where a new line goes: behind all others, but for what takes in another database (`+::::`).
fn end(text: &[u8]) -> usize {
    let mut at = 0;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        if matches!(line.first(), Some(b'+' | b'-')) {
            return at;
        }
        at += line.len();
    }
    at
}

/// The line with this first field, and where it stands with its end.
fn find(text: &[u8], key: &str) -> Option<(String, (usize, usize))> {
    let mut at = 0;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let next = at + line.len();
        if line.split(|byte| *byte == b':').next() == Some(key.as_bytes()) {
            let line = String::from_utf8_lossy(line);
            let line = line.trim_end_matches('\n').to_owned();
            return Some((line, (at, next)));
        }
        at = next;
    }
    None
}

/// What tells a line from others: the name before the first colon.
fn key(line: &AccountLine) -> &str {
    let any = line.after.as_ref().or(line.before.as_ref());
    any.and_then(|line| line.split(':').next())
        .unwrap_or_default()
}

fn missing(path: &Path) -> Fault {
    Fault::new(format!(
        "{} is not there, or is no regular file: the host keeps its accounts elsewhere",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(before: Option<&str>, after: Option<&str>) -> AccountLine {
        AccountLine {
            path: "/etc/passwd".to_owned(),
            before: before.map(str::to_owned),
            after: after.map(str::to_owned),
        }
    }

    fn text(text: &str, line: &AccountLine) -> String {
        String::from_utf8(edited(text.as_bytes(), line).unwrap()).unwrap()
    }

    #[test]
    fn a_line_comes_changes_and_goes_and_the_others_stay() {
        let two = "root:x:0:0:\nbin:x:2:2:\n";
        let ann = "ann:x:1000:1000:";
        assert_eq!(text(two, &change(None, Some(ann))), format!("{two}{ann}\n"));
        assert_eq!(
            text("root:x", &change(None, Some(ann))),
            format!("root:x\n{ann}\n")
        );
        assert_eq!(
            text("root:x\n+::\n", &change(None, Some(ann))),
            format!("root:x\n{ann}\n+::\n")
        );
        assert_eq!(
            text(two, &change(Some("root:x:0:0:"), Some("root:*:0:0:"))),
            "root:*:0:0:\nbin:x:2:2:\n"
        );
        assert_eq!(
            text(two, &change(Some("root:x:0:0:"), None)),
            "bin:x:2:2:\n"
        );
        assert_eq!(
            text(two, &change(Some("bin:x:2:2:"), None)),
            "root:x:0:0:\n"
        );
    }

    #[test]
    fn a_line_that_somebody_else_changed_is_not_written_over() {
        let fault = edited(b"ann:x:1:1:\n", &change(Some("ann:x:2:2:"), None)).unwrap_err();
        assert!(
            fault
                .message
                .contains("the line of `ann` in /etc/passwd is not what it was")
        );
        assert!(edited(b"ann:x:1:1:\n", &change(None, Some("ann:x:1:1:"))).is_err());
    }

    #[test]
    fn a_plan_knows_the_users_that_it_would_make() {
        let mut host = Host::plan();
        let ann = "fleetctl-ann:x:61234:61234::/home/ann:/bin/sh";
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let line = change(None, Some(ann));
        assert!(host.set_account("user fleetctl-ann", vec![line]).unwrap());
        assert_eq!(host.names.uid("fleetctl-ann"), Some(61234));
        let lines = host.accounts("/etc/passwd").unwrap().unwrap();
        assert_eq!(lines.last().map(String::as_str), Some(ann));
        assert_eq!(host.end()[0].summary(), "create user fleetctl-ann");
        assert!(
            !std::fs::read_to_string("/etc/passwd")
                .unwrap()
                .contains("fleetctl-ann")
        );
    }
}
