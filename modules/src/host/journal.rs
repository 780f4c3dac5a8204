//! The journal of a run: what was about to be done and what was, each on disk before the next step.
//!
//! A line is a JSON object with a number and a checksum of its own text. A line that was cut off by
//! a power failure, and all after it, never happened: nothing is done before its line is on disk.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

use fleet_wire::{Effect, Entry, Journaled, UndoClass, UndoneState, What};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::deadman::DeadMan;
use super::state::Applied;
use super::{Fault, State, body, clock, files};

/// What a line of a journal says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Record {
    /// The first line.
    Begin {
        run: String,
        who: String,
        began: String,
    },
    /// An effect is about to be performed.
    Intent(Box<Intent>),
    /// It was performed.
    Done { id: u32 },
    /// It was undone, or why not.
    Undone { id: u32, problem: Option<String> },
    /// The conversation ended and the run did not: the host looks after it, and the run may go on.
    Held { since: String },
    /// The run has ended: `kept`, `rolled_back`, `rollback_conflict`, `rollback_failed`.
    End { state: String, ended: String },
}

/// An effect that is about to be performed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Intent {
    pub(super) id: u32,
    /// The step of the plan that it belongs to.
    #[serde(default)]
    pub(super) key: String,
    /// The task, for people.
    pub(super) task: String,
    /// Without contents.
    pub(super) effect: Effect,
    /// The name beside the entry under which the new one is staged.
    pub(super) temp: Option<String>,
    /// The file in the run's backups that holds the old content.
    pub(super) backup: Option<String>,
}

/// The journal of the run in hand. Its directory is made with its first intent: a run that changes nothing leaves nothing.
#[derive(Debug)]
pub(super) struct Journal {
    state: State,
    run: String,
    who: String,
    next: u32,
    /// How many of the intents turned out to change nothing.
    voided: u32,
    file: Option<Lines>,
    /// Looks after the run where somebody has to confirm it.
    watch: Option<DeadMan>,
    /// The saved plan that is applied, and by whom.
    plan: Option<(String, Applied)>,
}

/// A journal's file, at its end.
#[derive(Debug)]
pub(super) struct Lines {
    file: File,
    sequence: u64,
    path: PathBuf,
    /// Effects that an undo will have to write a line about.
    intended: u64,
}

/// What an undo writes about one effect, in bytes, and what it writes once.
const UNDO_ROOM: u64 = 512;
const END_ROOM: u64 = 4096;

/// Where in a run's directory an old content is kept, under a name that tells which file it was.
fn backup_name(id: u32, path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or_default();
    let name: String = name.chars().take(60).collect();
    format!("backup/{id}/{name}.before")
}

impl Journal {
    pub(super) fn new(state: State, run: &str, who: &str) -> Self {
        Self {
            state,
            run: run.to_owned(),
            who: who.to_owned(),
            next: 0,
            voided: 0,
            file: None,
            watch: None,
            plan: None,
        }
    }

    pub(super) fn set_plan(&mut self, plan: &str, by: Applied) {
        self.plan = Some((plan.to_owned(), by));
    }

    /// Goes on with the journal of a run that was cut off. What was under way then is undone first; the keys of the steps of
    /// which nobody can say whether they were done.
    pub(super) fn resume(&mut self) -> Result<Vec<String>, Fault> {
        let path = self.state.journal_path(&self.run);
        if !path.exists() {
            return Ok(Vec::new());
        }
        if let Some(watch) = &mut self.watch {
            watch.arm(&self.state, &self.run)?;
        }
        let (mut lines, records) = Lines::reopen(&path)?;
        let mut open: Vec<Intent> = Vec::new();
        let mut commands = Vec::new();
        for record in records {
            match record {
                Record::Intent(intent) => {
                    self.next = self.next.max(intent.id + 1);
                    lines.intended += 1;
                    if intent.effect.undo == UndoClass::None {
                        commands.push(intent.key.clone());
                    }
                    open.push(*intent);
                }
                Record::Done { id } | Record::Undone { id, problem: None } => {
                    open.retain(|intent| intent.id != id);
                }
                _ => {}
            }
        }
        for intent in open
            .iter()
            .filter(|intent| intent.effect.undo != UndoClass::None)
        {
            super::undo::revert_one(&self.state, &self.run, intent)?;
            lines.append(&Record::Undone {
                id: intent.id,
                problem: None,
            })?;
        }
        self.file = Some(lines);
        Ok(commands)
    }

    pub(super) fn set_watch(&mut self, watch: DeadMan) {
        self.watch = Some(watch);
    }

    pub(super) fn watch(&self) -> Option<&DeadMan> {
        self.watch.as_ref().filter(|watch| watch.is_armed())
    }

    /// Leaves the run as it is, for another conversation to go on with or for the host to undo.
    pub(super) fn hold(mut self) -> Result<(), Fault> {
        if let Some(watch) = &self.watch {
            watch.rest();
        }
        match &mut self.file {
            Some(lines) => lines.append(&Record::Held {
                since: clock::now(),
            }),
            None => Ok(()),
        }
    }

    /// The same, for the controller of this conversation to go on with; the host may boot before that.
    pub(super) fn leave(mut self, controller: u64) -> Result<(), Fault> {
        if let Some(watch) = &self.watch {
            watch.expect_boot();
        }
        self.state.set_left(&self.run, controller)?;
        match &mut self.file {
            Some(lines) => lines.append(&Record::Held {
                since: clock::now(),
            }),
            None => Ok(()),
        }
    }

    pub(super) fn state(&self) -> &State {
        &self.state
    }

    pub(super) fn run(&self) -> &str {
        &self.run
    }

    /// Whether anything was about to be done.
    pub(super) fn begun(&self) -> bool {
        self.file.is_some()
    }

    /// Whether anything was done.
    pub(super) fn changed(&self) -> bool {
        self.next > self.voided
    }

    /// Where the old content of an intent is kept.
    pub(super) fn backup_path(&self, backup: &str) -> PathBuf {
        self.state.run_dir(&self.run).join(backup)
    }

    /// Writes down what is about to be done; on disk when this returns.
    pub(super) fn intend(
        &mut self,
        key: &str,
        task: &str,
        effect: &Effect,
    ) -> Result<Intent, Fault> {
        // Before the journal's first line: what it begins is looked after.
        if let Some(watch) = &mut self.watch {
            watch.before(&self.state, &self.run, effect)?;
        }
        self.lines()?;
        let id = self.next;
        let mut effect = effect.clone();
        let (mut temp, mut backup) = (None, None);
        if let What::File {
            path,
            before,
            after,
        } = &mut effect.what
        {
            before.forget_bytes();
            after.forget_bytes();
            if *after != Entry::Absent {
                temp = Some(format!(".fleetctl-{}-{id}", self.run));
            }
            if matches!(before, Entry::File(..)) {
                backup = Some(backup_name(id, path));
            }
        }
        let intent = Intent {
            id,
            key: key.to_owned(),
            task: task.to_owned(),
            effect,
            temp,
            backup,
        };
        let lines = self.lines()?;
        lines.intended += 1;
        let record = Record::Intent(Box::new(intent.clone()));
        lines.set_aside(&record)?;
        lines.append(&record)?;
        self.next += 1;
        Ok(intent)
    }

    /// What was about to be done changed nothing: there is nothing to undo.
    pub(super) fn void(&mut self, id: u32) -> Result<(), Fault> {
        self.voided += 1;
        self.lines()?.append(&Record::Undone { id, problem: None })
    }

    pub(super) fn done(&mut self, id: u32) -> Result<(), Fault> {
        self.lines()?.append(&Record::Done { id })
    }

    /// Ends the run.
    pub(super) fn end(mut self, state: UndoneState) -> Result<(), Fault> {
        self.state.run_ended(&self.run, state, None);
        self.lines()?.end(state)
    }

    fn lines(&mut self) -> Result<&mut Lines, Fault> {
        if self.file.is_none() {
            self.file = Some(self.create()?);
            if let Some((plan, by)) = &self.plan {
                self.state.set_applied(plan, by)?;
            }
            let plan = self.plan.as_ref().map(|(plan, _)| plan.as_str());
            self.state.run_began(&self.run, &self.who, plan);
        }
        self.file
            .as_mut()
            .ok_or_else(|| Fault::new("the journal is not open"))
    }

    fn create(&self) -> Result<Lines, Fault> {
        let dir = self.state.run_dir(&self.run);
        let path = dir.join("journal");
        let made = || -> io::Result<File> {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(dir.join("backup"))?;
            let file = OpenOptions::new()
                .create_new(true)
                .append(true)
                .mode(0o600)
                .open(&path)?;
            files::sync_dir(&dir)?;
            dir.parent().map_or(Ok(()), files::sync_dir)?;
            Ok(file)
        };
        let file = made().map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Fault::new(format!(
                "the run {} has a journal on this host already: a run's name is used once",
                self.run
            )),
            _ => Fault::io("make the journal", &path, error),
        })?;
        let mut lines = Lines {
            file,
            sequence: 0,
            path,
            intended: 0,
        };
        lines.append(&Record::Begin {
            run: self.run.clone(),
            who: self.who.clone(),
            began: clock::now(),
        })?;
        Ok(lines)
    }
}

impl Lines {
    /// Opens a journal to write on behind its last whole line.
    pub(super) fn reopen(path: &Path) -> Result<(Self, Vec<Record>), Fault> {
        let opened = || -> io::Result<(File, Vec<u8>)> {
            let mut file = OpenOptions::new().read(true).write(true).open(path)?;
            let mut text = Vec::new();
            file.read_to_end(&mut text)?;
            Ok((file, text))
        };
        let (mut file, text) =
            opened().map_err(|error| Fault::io("read the journal", path, error))?;
        let (records, whole) = parse(&text)?;
        let mut cut = || -> io::Result<()> {
            // Even to its own length it would give back the room that was set aside behind it.
            if whole < text.len() {
                file.set_len(whole as u64)?;
            }
            file.seek(SeekFrom::End(0)).map(drop)
        };
        cut().map_err(|error| Fault::io("write the journal", path, error))?;
        Ok((
            Self {
                file,
                sequence: records.len() as u64,
                path: path.to_owned(),
                intended: 0,
            },
            records,
        ))
    }

    /// Sets aside the room for a line, and for all that an undo up to it will write: the disk may be full by then.
    fn set_aside(&self, record: &Record) -> Result<(), Fault> {
        let need = line(self.sequence, record).len() as u64 + END_ROOM + UNDO_ROOM * self.intended;
        let at = self
            .file
            .metadata()
            .map_err(|error| Fault::io("read the journal", &self.path, error))?
            .len();
        match fallocate(&self.file, FallocateFlags::KEEP_SIZE, at, need) {
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            Err(Errno::NOSPC) => Err(Fault::new(format!(
                "the disk is full: {need} bytes are needed for the journal {}, so that what is done can be undone; nothing was changed by this task",
                self.path.display()
            ))),
            Err(error) => Err(Fault::io(
                "write the journal",
                &self.path,
                io::Error::from(error),
            )),
        }
    }

    pub(super) fn append(&mut self, record: &Record) -> Result<(), Fault> {
        let text = line(self.sequence, record);
        let whole = self.file.metadata().map(|file| file.len());
        let written = self
            .file
            .write_all(text.as_bytes())
            .and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            // Half a line would hide all that is written behind it.
            let _ = whole
                .and_then(|whole| self.file.set_len(whole))
                .and_then(|()| self.file.seek(SeekFrom::End(0)));
            return Err(Fault::io("write the journal", &self.path, error));
        }
        self.sequence += 1;
        Ok(())
    }

    pub(super) fn end(&mut self, state: UndoneState) -> Result<(), Fault> {
        self.append(&Record::End {
            state: word(state).to_owned(),
            ended: clock::now(),
        })
    }
}

#[derive(Serialize, Deserialize)]
struct Line {
    seq: u64,
    record: Record,
}

const SUM: &str = ",\"sum\":\"";

fn line(seq: u64, record: &Record) -> String {
    line_of(seq, record)
}

/// A line of a record, with its number and the checksum of its own text.
pub(super) fn line_of(seq: u64, record: &impl Serialize) -> String {
    #[derive(Serialize)]
    struct Line<'a, T> {
        seq: u64,
        record: &'a T,
    }
    let mut text = serde_json::to_string(&Line { seq, record }).unwrap_or_default();
    text.pop();
    let sum = checksum(&text);
    format!("{text}{SUM}{sum}\"}}\n")
}

fn checksum(text: &str) -> String {
    body::hex(&Sha256::digest(text)[..8])
}

/// The records up to the first line that is not whole, and how many bytes they take.
///
/// # Errors
/// When a line is whole and yet says what this helper does not know: a newer one wrote it, and to go
/// on without it would undo half.
pub(super) fn parse(text: &[u8]) -> Result<(Vec<Record>, usize), Fault> {
    let mut records = Vec::new();
    let mut whole = 0;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let Some(text) = verified(line) else {
            let behind = text[whole + line.len()..].split_inclusive(|byte| *byte == b'\n');
            if behind.filter_map(verified).next().is_some() {
                return Err(Fault::new(format!(
                    "the journal is damaged at its line {}, and whole lines are behind it: what they did cannot be undone for sure; see to it by hand",
                    records.len() + 1
                )));
            }
            break;
        };
        let line_of: Line = serde_json::from_str(&text).map_err(|error| {
            Fault::new(format!("the journal's line {} was written by another version of fleetctl ({error}): use that one", records.len() + 1))
        })?;
        if line_of.seq != records.len() as u64 {
            break;
        }
        records.push(line_of.record);
        whole += line.len();
    }
    Ok((records, whole))
}

/// A line's own text, where its checksum is right.
pub(super) fn verified(line: &[u8]) -> Option<String> {
    let line = std::str::from_utf8(line).ok()?.strip_suffix("\"}\n")?;
    let (text, sum) = line.rsplit_once(SUM)?;
    (checksum(text) == sum).then(|| format!("{text}}}"))
}

pub(super) fn word(state: UndoneState) -> &'static str {
    match state {
        UndoneState::Kept => "kept",
        UndoneState::Unchanged => "unchanged",
        UndoneState::RolledBack => "rolled_back",
        UndoneState::RollbackConflict => "rollback_conflict",
        UndoneState::RollbackFailed => "rollback_failed",
        UndoneState::NotFound => "not_found",
    }
}

impl State {
    pub(super) fn journal_path(&self, run: &str) -> PathBuf {
        self.run_dir(run).join("journal")
    }

    /// The runs that changed something here, oldest first.
    #[must_use]
    pub fn journaled(&self) -> Vec<Journaled> {
        let armed = self.armed();
        let mut found: Vec<Journaled> = self
            .runs()
            .iter()
            .filter_map(|run| self.summary(run))
            .collect();
        for run in &mut found {
            let own = armed.iter().find(|(name, _)| *name == run.run);
            run.waits_s = own.map(|(_, seconds)| *seconds);
        }
        found.sort_by(|a, b| (&a.began, &a.run).cmp(&(&b.began, &b.run)));
        found
    }

    fn summary(&self, name: &str) -> Option<Journaled> {
        let text = fs::read(self.journal_path(name)).ok()?;
        let records = parse(&text).map(|(records, _)| records).unwrap_or_default();
        let mut summary = Journaled {
            run: name.to_owned(),
            who: String::new(),
            began: String::new(),
            state: "open".to_owned(),
            effects: 0,
            why: self.why(name),
            waits_s: None,
        };
        for record in records {
            match record {
                Record::Begin { who, began, .. } => (summary.who, summary.began) = (who, began),
                Record::Intent(_) => summary.effects += 1,
                Record::End { state, .. } => summary.state = state,
                Record::Held { .. } => "held".clone_into(&mut summary.state),
                Record::Done { .. } | Record::Undone { .. } => {}
            }
        }
        Some(summary)
    }

    /// Forgets the runs that ended well, are older than thirty days and not among the newest twenty. To be called with
    /// the lock held, before a run.
    pub fn prune(&self) {
        self.prune_before(&clock::days_ago(30));
        // What a helper unpacked that was killed; nobody else is at work while the lock is held.
        let left = files::list(self.dir()).ok().flatten().unwrap_or_default();
        for name in left.iter().filter(|name| name.starts_with("unpack-")) {
            let _ = fs::remove_dir_all(self.dir().join(name));
        }
    }

    fn prune_before(&self, oldest: &str) {
        const NEWEST: usize = 20;
        if self.runs().len() <= NEWEST {
            return;
        }
        let runs = self.journaled();
        let old = runs.len().saturating_sub(NEWEST);
        for run in runs.iter().take(old) {
            let well = matches!(run.state.as_str(), "kept" | "rolled_back");
            if well && run.began.as_str() < oldest {
                // The journal first: without it a run is not found, while one without its backups would fail to be undone.
                // What stays behind is only space, which the next run looks at again.
                let _ = fs::remove_file(self.journal_path(&run.run))
                    .and_then(|()| fs::remove_dir_all(self.run_dir(&run.run)));
            }
        }
    }

    /// The runs whose journal has no end: they were cut off.
    pub(super) fn cut_off(&self) -> Vec<String> {
        let mut runs = self.runs();
        runs.retain(|run| !self.ended(run));
        runs
    }

    /// Whether a journal's last line is an end; read from its tail, for there may be many journals.
    fn ended(&self, run: &str) -> bool {
        let tail = || -> io::Result<Vec<u8>> {
            let mut file = File::open(self.journal_path(run))?;
            let size = file.metadata()?.len();
            file.seek(SeekFrom::Start(size.saturating_sub(300)))?;
            let mut tail = Vec::new();
            file.read_to_end(&mut tail)?;
            Ok(tail)
        };
        match tail() {
            Ok(tail) => {
                let start = tail[..tail.len().saturating_sub(1)]
                    .iter()
                    .rposition(|byte| *byte == b'\n')
                    .map_or(0, |at| at + 1);
                let last = String::from_utf8_lossy(&tail[start..]);
                last.contains("\"record\":{\"end\":") && last.ends_with("\"}\n")
            }
            // No journal was begun, so nothing was done.
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines() -> Vec<u8> {
        let begin = Record::Begin {
            run: "r1".into(),
            who: "ann@desk".into(),
            began: "2026-12-01T00:00:00Z".into(),
        };
        let records = [
            begin,
            Record::Done { id: 0 },
            Record::End {
                state: "kept".into(),
                ended: "2026-12-01T00:00:01Z".into(),
            },
        ];
        records
            .iter()
            .zip(0..)
            .map(|(record, seq)| line(seq, record))
            .collect::<String>()
            .into_bytes()
    }

    #[test]
    fn old_runs_that_ended_well_are_forgotten_and_no_others() {
        let dir = tempfile::tempdir().unwrap();
        let state = State::at(dir.path().to_str());
        state.prepare().unwrap();
        for number in 0..23 {
            let journal = Journal::new(state.clone(), &format!("r{number:02}"), "ann@desk");
            let mut lines = journal.create().unwrap();
            match number {
                0 => {}
                1 => lines.end(UndoneState::RollbackConflict).unwrap(),
                _ => lines.end(UndoneState::Kept).unwrap(),
            }
        }
        state.prune();
        assert_eq!(state.runs().len(), 23, "none is old");
        state.prune_before("9999");
        let runs = state.runs();
        assert_eq!(
            (runs.len(), &runs[..3]),
            (
                22,
                &["r00".to_owned(), "r01".to_owned(), "r03".to_owned()][..]
            )
        );
    }

    #[test]
    fn a_torn_tail_is_ignored() {
        let text = lines();
        assert_eq!(parse(&text).unwrap().0.len(), 3);
        let second = text.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        for cut in second..text.len() {
            let (records, whole) = parse(&text[..cut]).unwrap();
            assert!(matches!(records.len(), 1 | 2), "{cut}");
            assert!(whole <= cut);
        }
    }

    #[test]
    fn a_line_of_a_newer_version_is_not_taken_for_a_torn_one() {
        let text = "{\"seq\":0,\"record\":{\"teleport\":{}}";
        let line = format!("{text}{SUM}{}\"}}\n", checksum(text));
        assert!(
            parse(line.as_bytes())
                .unwrap_err()
                .message
                .contains("another version")
        );
    }

    #[test]
    fn a_line_that_was_altered_is_no_torn_tail() {
        let mut text = lines();
        let at = text.windows(4).position(|four| four == b"done").unwrap();
        text[at] = b'D';
        assert!(
            parse(&text)
                .unwrap_err()
                .message
                .starts_with("the journal is damaged at its line 2")
        );
        let end = text.windows(4).position(|four| four == b"kept").unwrap();
        assert_eq!(parse(&text[..end]).unwrap().0.len(), 1);
    }
}
