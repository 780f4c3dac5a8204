//! The undo of a run from its journal alone: inverses in reverse order, then its activations once more.
//!
//! Each effect is compared first. What is as before needs nothing; what is neither as before nor as
//! after was changed by somebody else and is left. So an undo that was cut off can simply run again.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fleet_wire::{Entry, Meta, Undone, UndoneEffect, UndoneState, UnitAction, What};

use super::body::Body;
use super::files::{self, Attributes, Found, Place, Refused};
use super::journal::{Intent, Lines, Record, word};
use super::users::Names;
use super::{Fault, Host, State, entry_of, packages, same, sysctl, units};

/// How one effect's undoing went.
#[derive(Debug, PartialEq, Eq)]
enum Reverted {
    /// It is as before now.
    Now,
    /// It was as before already.
    Already,
    /// It will be by an activation after all files are back.
    Later(String, UnitAction),
    /// It can never be, and everybody knew.
    Never(&'static str),
    /// Somebody else changed it.
    Conflict(String),
}

impl Host {
    /// Undoes what this run has done so far and ends it.
    pub fn undo(&mut self) -> Undone {
        self.forget_units();
        match self.journal.take() {
            Some(journal) if journal.begun() => rollback(journal.state(), journal.run()),
            Some(journal) => unchanged(journal.run()),
            None => unchanged(""),
        }
    }
}

/// Undoes a run and ends its journal.
#[must_use]
pub fn rollback(state: &State, run: &str) -> Undone {
    match undo(state, run) {
        Ok((undone, mut lines)) => match lines.end(undone.state) {
            Ok(()) => undone,
            Err(fault) => broken(run, fault),
        },
        Err(fault) if state.journal_path(run).exists() => broken(run, fault),
        Err(_) => Undone {
            run: run.to_owned(),
            state: UndoneState::NotFound,
            effects: Vec::new(),
        },
    }
}

/// Undoes the runs that were cut off; those that were, newest first.
///
/// # Errors
/// With the one that could not be undone: its journal stays open until a person has seen to it.
pub fn recover(state: &State) -> Result<Vec<Undone>, Undone> {
    let open = state.cut_off();
    if open.is_empty() {
        return Ok(Vec::new());
    }
    let mut cut_off = state.journaled();
    cut_off.retain(|run| open.contains(&run.run));
    let mut recovered = Vec::new();
    for run in cut_off.iter().rev() {
        let (undone, mut lines) = undo(state, &run.run).map_err(|fault| broken(&run.run, fault))?;
        if undone.state == UndoneState::RollbackFailed {
            return Err(undone);
        }
        lines
            .end(undone.state)
            .map_err(|fault| broken(&run.run, fault))?;
        forget_pending(state, &run.run).map_err(|fault| broken(&run.run, fault))?;
        recovered.push(undone);
    }
    Ok(recovered)
}

/// Notifications of a run that was undone are void: what its handlers would load is not there any more.
pub(crate) fn forget_pending(state: &State, run: &str) -> Result<(), Fault> {
    let mut pending = state.pending();
    let before = pending.len();
    pending.retain(|_, notified_by| notified_by != run);
    if pending.len() == before {
        Ok(())
    } else {
        state.set_pending(&pending)
    }
}

fn unchanged(run: &str) -> Undone {
    Undone {
        run: run.to_owned(),
        state: UndoneState::Unchanged,
        effects: Vec::new(),
    }
}

fn broken(run: &str, fault: Fault) -> Undone {
    let effects = vec![UndoneEffect {
        effect: "the journal".to_owned(),
        problem: Some(fault.message),
    }];
    Undone {
        run: run.to_owned(),
        state: UndoneState::RollbackFailed,
        effects,
    }
}

fn undo(state: &State, run: &str) -> Result<(Undone, Lines), Fault> {
    let (mut lines, records) = Lines::reopen(&state.journal_path(run))?;
    let mut intents = Vec::new();
    let mut finished = Vec::new();
    let mut ended = None;
    for record in records {
        match record {
            Record::Intent(intent) => intents.push(*intent),
            Record::Undone { id, problem: None } => finished.push(id),
            Record::End { state, .. } => ended = Some(state),
            Record::Begin { .. } | Record::Done { .. } | Record::Undone { .. } => {}
        }
    }
    let mut undone = Undone {
        run: run.to_owned(),
        state: UndoneState::RolledBack,
        effects: Vec::new(),
    };
    if ended.as_deref() == Some(word(UndoneState::RolledBack)) {
        return Ok((undone, lines));
    }
    let machine = Machine {
        dir: state.run_dir(run),
        run: run.to_owned(),
        names: Names::default(),
    };
    let mut later = Vec::new();
    for intent in intents
        .iter()
        .rev()
        .filter(|intent| !finished.contains(&intent.id))
    {
        let (problem, state) = match machine.revert(intent) {
            Ok(Reverted::Already) => {
                lines.append(&Record::Undone {
                    id: intent.id,
                    problem: None,
                })?;
                continue;
            }
            Ok(Reverted::Now) => (None, UndoneState::RolledBack),
            Ok(Reverted::Later(unit, action)) => {
                later.push((unit, action));
                continue;
            }
            Ok(Reverted::Never(why)) => (Some(why.to_owned()), UndoneState::RolledBack),
            Ok(Reverted::Conflict(why)) => (Some(why), UndoneState::RollbackConflict),
            Err(fault) => (Some(fault.message), UndoneState::RollbackFailed),
        };
        undone.note(intent.effect.summary(), problem.clone(), state);
        lines.append(&Record::Undone {
            id: intent.id,
            problem,
        })?;
    }
    for (unit, action) in activations(&intents)
        .into_iter()
        .chain(later.into_iter().rev())
    {
        let (problem, state) = match activate_again(&unit, action) {
            Ok(()) => (None, UndoneState::RolledBack),
            Err(fault) => (Some(fault.message), UndoneState::RollbackFailed),
        };
        let effect = if unit.is_empty() {
            format!("systemd {action}")
        } else {
            format!("{action} {unit}")
        };
        undone.note(effect, problem, state);
    }
    Ok((undone, lines))
}

trait Note {
    fn note(&mut self, effect: String, problem: Option<String>, state: UndoneState);
}

impl Note for Undone {
    /// Adds an effect; the worst state stays.
    fn note(&mut self, effect: String, problem: Option<String>, state: UndoneState) {
        let rank = |state: UndoneState| match state {
            UndoneState::RollbackFailed => 2,
            UndoneState::RollbackConflict => 1,
            _ => 0,
        };
        if rank(state) > rank(self.state) {
            self.state = state;
        }
        self.effects.push(UndoneEffect { effect, problem });
    }
}

/// The reloads and restarts that a run made of services that were running before it, each once, in order;
/// before them systemd reads its files again where the run wrote any.
fn activations(intents: &[Intent]) -> Vec<(String, UnitAction)> {
    let mut found: Vec<(String, UnitAction)> = Vec::new();
    let read_again = |what: &What| match what {
        What::File { path, .. } => {
            units::UNIT_DIRS
                .iter()
                .any(|dir| Path::new(path).starts_with(dir))
                && units::present().is_ok()
        }
        What::Unit { action, .. } => *action == UnitAction::DaemonReload,
        _ => false,
    };
    if intents.iter().any(|intent| read_again(&intent.effect.what)) {
        found.push((String::new(), UnitAction::DaemonReload));
    }
    for intent in intents {
        if let What::Unit {
            unit,
            action,
            before,
            ..
        } = &intent.effect.what
            && matches!(action, UnitAction::Reload | UnitAction::Restart)
            && ran(before)
            && !found.contains(&(unit.clone(), *action))
        {
            found.push((unit.clone(), *action));
        }
    }
    found
}

fn activate_again(unit: &str, action: UnitAction) -> Result<(), Fault> {
    // A restart also brings back a service that failed on what the run wrote; a reload has nothing to reload in it.
    if action == UnitAction::Reload && !units::show(unit)?.running() {
        return units::activate(unit, UnitAction::Start);
    }
    units::activate(unit, action)
}

fn ran(state: &str) -> bool {
    matches!(state, "active" | "activating" | "reloading")
}

/// The machine itself, with a run's backups.
struct Machine {
    dir: PathBuf,
    run: String,
    names: Names,
}

impl Machine {
    fn revert(&self, intent: &Intent) -> Result<Reverted, Fault> {
        match &intent.effect.what {
            What::File {
                path,
                before,
                after,
            } => self.revert_file(Path::new(path), before, after, intent),
            What::Sysctl { key, before, after } => revert_sysctl(key, before, after),
            What::Unit {
                unit,
                action,
                before,
                ..
            } => revert_unit(unit, *action, before),
            What::Package { name, before, .. } => revert_package(name, before.as_deref()),
            What::Command { .. } => Ok(Reverted::Never("what a command did cannot be undone")),
        }
    }

    fn revert_file(
        &self,
        path: &Path,
        before: &Entry,
        after: &Entry,
        intent: &Intent,
    ) -> Result<Reverted, Fault> {
        if let (Some(temp), Ok(place)) = (&intent.temp, Place::of(path)) {
            place.discard(OsStr::new(temp));
        }
        let found = files::look(path).map_err(|error| Fault::io("read", path, error))?;
        let now = entry_of(&found, &self.names);
        if same(&now, before) {
            return Ok(Reverted::Already);
        }
        if !same(&now, after) && !between(&now, before, after) {
            let kept = intent
                .backup
                .as_ref()
                .map(|backup| self.dir.join(backup))
                .filter(|backup| backup.exists());
            let kept = kept.map_or_else(String::new, |backup| {
                format!(
                    "; what was there before the run is kept in {}",
                    backup.display()
                )
            });
            return Ok(Reverted::Conflict(format!(
                "somebody else has changed it since, so it was left as it is{kept}"
            )));
        }
        match self.put_back(path, &found, &now, before, intent) {
            Ok(()) => Ok(Reverted::Now),
            Err(Refused::Moved) => Ok(Reverted::Conflict(
                "somebody else changed it in this very moment".to_owned(),
            )),
            Err(Refused::Io(error)) if error.kind() == std::io::ErrorKind::DirectoryNotEmpty => {
                Ok(Reverted::Conflict(
                    "somebody else has put something into it, so it was left".to_owned(),
                ))
            }
            Err(Refused::Io(error)) => Err(Fault::io("put back", path, error)),
        }
    }

    fn put_back(
        &self,
        path: &Path,
        found: &Found,
        now: &Entry,
        before: &Entry,
        intent: &Intent,
    ) -> Result<(), Refused> {
        let place = Place::of(path)?;
        let temp = format!(".fleetctl-undo-{}-{}", self.run, intent.id);
        let temp = OsStr::new(&temp);
        place.discard(temp);
        match (before, now) {
            (Entry::Absent, _) => return place.remove(found),
            (Entry::File(meta, old), Entry::File(_, new)) if old.sha256 == new.sha256 => {
                return place.set(self.attributes(meta)?, found);
            }
            (Entry::Dir(meta), Entry::Dir(_)) => return place.set(self.attributes(meta)?, found),
            (Entry::File(meta, old), _) => {
                let backup = self.dir.join(intent.backup.as_deref().unwrap_or_default());
                let kept = files::open_file(&backup)?;
                let content = super::body::hash(&kept)?;
                if content.sha256 != old.sha256 {
                    return Err(std::io::Error::other(format!(
                        "its backup {} is damaged",
                        backup.display()
                    ))
                    .into());
                }
                let like = files::open_file(&backup)?;
                place.stage_file(
                    temp,
                    &Body::Spooled(Arc::new(kept), content),
                    self.attributes(meta)?,
                    Some(&like),
                )?;
            }
            (Entry::Dir(meta), _) => place.stage_dir(temp, self.attributes(meta)?)?,
            (Entry::Link(target), _) => place.stage_link(temp, target)?,
            (Entry::Special, _) => {
                return Err(std::io::Error::other(
                    "it was a device, a socket or a pipe, which cannot be made again",
                )
                .into());
            }
        }
        place
            .commit(temp, found)
            .inspect_err(|_| place.discard(temp))
    }

    fn attributes(&self, meta: &Meta) -> std::io::Result<Attributes> {
        let missing = |name: &str| {
            std::io::Error::other(format!(
                "`{name}`, which it belonged to, is not known any more"
            ))
        };
        Ok(Attributes {
            mode: meta.mode,
            uid: self
                .names
                .uid(&meta.owner)
                .ok_or_else(|| missing(&meta.owner))?,
            gid: self
                .names
                .gid(&meta.group)
                .ok_or_else(|| missing(&meta.group))?,
        })
    }
}

/// Whether an entry is on the way from one to the other: a change of mode and owners that was cut off in the middle.
fn between(now: &Entry, before: &Entry, after: &Entry) -> bool {
    let metas = match (now, before, after) {
        (Entry::File(now, is), Entry::File(before, was), Entry::File(after, _))
            if is.sha256 == was.sha256 =>
        {
            (now, before, after)
        }
        (Entry::Dir(now), Entry::Dir(before), Entry::Dir(after)) => (now, before, after),
        _ => return false,
    };
    let (now, before, after) = metas;
    // The kernel takes setuid and setgid away when the owner changes.
    let modes = [
        before.mode,
        after.mode,
        before.mode & 0o1777,
        after.mode & 0o1777,
    ];
    modes.contains(&now.mode)
        && [&before.owner, &after.owner].contains(&&now.owner)
        && [&before.group, &after.group].contains(&&now.group)
}

fn revert_sysctl(key: &str, before: &str, after: &str) -> Result<Reverted, Fault> {
    match sysctl::read(key)? {
        Some(now) if now == before => Ok(Reverted::Already),
        Some(now) if now == after => sysctl::write(key, before).map(|()| Reverted::Now),
        Some(now) => Ok(Reverted::Conflict(format!(
            "somebody else has set it to `{now}` since, so it was left as it is"
        ))),
        None => Err(Fault::new(format!(
            "there is no kernel parameter {key} any more"
        ))),
    }
}

fn revert_unit(unit: &str, action: UnitAction, before: &str) -> Result<Reverted, Fault> {
    if matches!(action, UnitAction::Reload | UnitAction::DaemonReload)
        || action == UnitAction::Restart && ran(before)
    {
        // Made once more after all files are back.
        return Ok(Reverted::Already);
    }
    let now = units::show(unit)?;
    let inverse = match action {
        UnitAction::Start | UnitAction::Restart if !ran(before) && now.running() => {
            UnitAction::Stop
        }
        UnitAction::Stop if ran(before) && !now.running() => {
            return Ok(Reverted::Later(unit.to_owned(), UnitAction::Start));
        }
        UnitAction::Enable | UnitAction::Disable | UnitAction::Mask | UnitAction::Unmask
            if now.enabled != before =>
        {
            match before {
                "enabled" => UnitAction::Enable,
                "masked" => UnitAction::Mask,
                _ if now.enabled == "masked" => UnitAction::Unmask,
                _ if now.enabled == "enabled" => UnitAction::Disable,
                _ => return Ok(Reverted::Already),
            }
        }
        _ => return Ok(Reverted::Already),
    };
    units::activate(unit, inverse)?;
    Ok(Reverted::Now)
}

fn revert_package(name: &str, before: Option<&str>) -> Result<Reverted, Fault> {
    if packages::installed()?.get(name).map(String::as_str) == before {
        return Ok(Reverted::Already);
    }
    packages::revert(name, before)?;
    Ok(Reverted::Now)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::process::Command;

    use tempfile::TempDir;

    use fleet_wire::Effect;

    use super::super::{Put, To, journal};
    use super::*;
    use crate::args::Mode;

    /// A small generator: the same numbers for the same seed, so that a failure can be seen again.
    struct Dice(u64);

    impl Dice {
        fn roll(&mut self, sides: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0 % sides
        }

        fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
            &from[usize::try_from(self.roll(from.len() as u64)).unwrap()]
        }
    }

    struct World {
        dir: TempDir,
        dice: Dice,
    }

    const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

    impl World {
        fn new(seed: u64) -> Self {
            let mut world = Self {
                dir: tempfile::tempdir().unwrap(),
                dice: Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            };
            world.state().prepare().unwrap();
            fs::create_dir(world.root()).unwrap();
            let root = world.root();
            world.grow(&root, 2);
            world
        }

        fn root(&self) -> PathBuf {
            self.dir.path().join("tree")
        }

        fn state(&self) -> State {
            State::at(self.dir.path().join("state").to_str())
        }

        fn host(&self) -> Host {
            Host::apply(self.state(), "r1", "test")
        }

        fn mode(&mut self) -> u32 {
            *self
                .dice
                .pick(&[0o644, 0o600, 0o755, 0o700, 0o4755, 0o2750, 0o1777, 0o640])
        }

        fn grow(&mut self, dir: &Path, depth: u32) {
            for name in NAMES {
                let path = dir.join(name);
                match self.dice.roll(if depth > 0 { 5 } else { 4 }) {
                    0 => continue,
                    1 | 2 => {
                        fs::write(&path, format!("{}", self.dice.roll(3))).unwrap();
                        fs::set_permissions(&path, fs::Permissions::from_mode(self.mode()))
                            .unwrap();
                    }
                    3 => symlink(self.dice.pick(&NAMES), &path).unwrap(),
                    _ => {
                        fs::create_dir(&path).unwrap();
                        self.grow(&path, depth - 1);
                        let mode = self.mode() | 0o700;
                        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
                    }
                }
            }
        }

        /// One random change, as a module would ask for it. It may be refused, which changes nothing.
        fn change(&mut self, host: &mut Host) {
            let mut path = self.root();
            for _ in 0..=self.dice.roll(3) {
                path.push(self.dice.pick(&NAMES));
            }
            let mode = (self.dice.roll(2) == 0).then(|| Mode::Octal(self.mode()));
            let root = rustix::process::geteuid().is_root();
            let owner = (root && self.dice.roll(4) == 0).then(|| "daemon".to_owned());
            let to = match self.dice.roll(6) {
                0 => To::Absent,
                1 => To::Dir {
                    mode: mode.map(|_| Mode::Octal(0o750)),
                    owner,
                    group: None,
                },
                2 => To::Link {
                    target: (*self.dice.pick(&NAMES)).to_owned(),
                },
                3 => To::File {
                    content: None,
                    mode,
                    owner,
                    group: None,
                },
                _ => To::File {
                    content: Some(format!("{}", self.dice.roll(4)).into()),
                    mode,
                    owner,
                    group: None,
                },
            };
            drop(host.put(Put {
                path,
                to,
                validate: None,
            }));
        }

        /// All that the tree is: kinds, modes, owners, contents, targets.
        fn picture(&self) -> BTreeMap<PathBuf, Entry> {
            let mut all = BTreeMap::new();
            picture(&self.root(), &mut all);
            all
        }
    }

    fn picture(path: &Path, all: &mut BTreeMap<PathBuf, Entry>) {
        let found = files::look(path).unwrap();
        if found.kind == files::Kind::Dir {
            for name in files::list(path).unwrap().unwrap_or_default() {
                picture(&path.join(name), all);
            }
        }
        all.insert(path.to_owned(), entry_of(&found, &Names::default()));
    }

    fn copy(from: &Path, to: &Path) {
        drop(fs::remove_dir_all(to));
        assert!(
            Command::new("cp")
                .arg("-a")
                .args([from, to])
                .status()
                .unwrap()
                .success()
        );
    }

    #[test]
    fn an_undo_after_any_changes_is_as_if_nothing_had_been() {
        for seed in 1..=60 {
            let mut world = World::new(seed);
            let before = world.picture();
            let mut host = world.host();
            for _ in 0..8 {
                world.change(&mut host);
            }
            let changed = world.picture() != before;
            let undone = host.undo();
            assert_eq!(world.picture(), before, "seed {seed}: {undone:?}");
            assert!(
                matches!(
                    undone.state,
                    UndoneState::RolledBack | UndoneState::Unchanged
                ),
                "seed {seed}: {undone:?}"
            );
            assert!(
                !changed || undone.state == UndoneState::RolledBack,
                "seed {seed}"
            );
            assert!(world.state().cut_off().is_empty());
        }
    }

    #[test]
    fn a_run_that_was_cut_off_anywhere_is_recovered() {
        let mut moments = 0;
        for seed in 100..=118 {
            let mut world = World::new(seed);
            let before = world.picture();
            let mut host = world.host();
            let journal = world.state().journal_path("r1");
            let shots = world.dir.path().join("shots");
            fs::create_dir(&shots).unwrap();
            // The tree behind each effect: an effect is atomic, so there is nothing in between but what is staged.
            copy(&world.root(), &shots.join("0"));
            let mut effects = 0;
            for _ in 0..6 {
                world.change(&mut host);
                let now = host.end().len();
                if now == 1 {
                    effects += 1;
                    copy(&world.root(), &shots.join(effects.to_string()));
                } else if now > 1 {
                    // A tree that was removed: its steps are looked at by the other seeds.
                    break;
                }
            }
            let Ok(text) = fs::read(&journal) else {
                continue;
            };
            let backups = world.dir.path().join("backups");
            copy(&world.state().run_dir("r1"), &backups);
            let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
            for cut in 1..lines.len().min(2 * effects + 2) {
                let records = journal::parse(&lines[..cut].concat()).unwrap().0;
                let done = records
                    .iter()
                    .filter(|record| matches!(record, Record::Done { .. }))
                    .count();
                let intent = match records.last() {
                    Some(Record::Intent(intent)) => Some((**intent).clone()),
                    _ => None,
                };
                // Before the effect was performed, and after it was but before that was written down.
                for performed in if intent.is_some() {
                    vec![done, done + 1]
                } else {
                    vec![done]
                } {
                    let shot = shots.join(performed.to_string());
                    if !shot.exists() {
                        continue;
                    }
                    copy(&shot, &world.root());
                    copy(&backups, &world.state().run_dir("r1"));
                    // With a torn line behind, as a power failure leaves it.
                    fs::write(
                        &journal,
                        [
                            lines[..cut].concat(),
                            lines[cut][..lines[cut].len() / 2].to_vec(),
                        ]
                        .concat(),
                    )
                    .unwrap();
                    if let Some(Intent {
                        temp: Some(temp),
                        effect:
                            Effect {
                                what: What::File { path, .. },
                                ..
                            },
                        ..
                    }) = &intent
                        && performed == done
                    {
                        fs::write(Path::new(path).with_file_name(temp), "half").unwrap();
                    }
                    let recovered = recover(&world.state())
                        .unwrap_or_else(|undone| panic!("seed {seed}, line {cut}: {undone:?}"));
                    assert_eq!(recovered.len(), 1);
                    assert_eq!(
                        world.picture(),
                        before,
                        "seed {seed}, line {cut}, {performed} performed"
                    );
                    assert!(world.state().cut_off().is_empty());
                    moments += 1;
                }
            }
        }
        assert!(moments > 40, "only {moments} moments were looked at");
    }

    #[test]
    fn an_undo_that_was_cut_off_goes_on() {
        let world = World::new(7);
        let mut host = world.host();
        let file = world.root().join("new");
        host.put(Put::content(&file, "1")).unwrap();
        host.put(Put::content(world.root().join("newer"), "2"))
            .unwrap();
        fs::remove_file(world.root().join("newer")).unwrap();
        assert_eq!(host.undo().state, UndoneState::RolledBack);
        assert!(!file.exists());
    }

    #[test]
    fn what_somebody_else_wrote_is_left_and_the_old_is_kept() {
        let world = World::new(3);
        let (mine, theirs) = (world.root().join("mine"), world.root().join("theirs"));
        fs::write(&mine, "before").unwrap();
        fs::write(&theirs, "before").unwrap();
        let mut host = world.host();
        host.put(Put::content(&mine, "run")).unwrap();
        host.put(Put::content(&theirs, "run")).unwrap();
        fs::write(&theirs, "somebody").unwrap();
        let undone = host.undo();
        assert_eq!(undone.state, UndoneState::RollbackConflict);
        assert_eq!(fs::read_to_string(&mine).unwrap(), "before");
        assert_eq!(fs::read_to_string(&theirs).unwrap(), "somebody");
        let problem = undone
            .effects
            .iter()
            .find_map(|effect| effect.problem.clone())
            .unwrap();
        let kept = problem.rsplit(' ').next().unwrap();
        assert_eq!(fs::read_to_string(kept).unwrap(), "before");
        assert_eq!(world.state().journaled()[0].state, "rollback_conflict");
    }

    #[test]
    fn a_kept_run_can_be_rolled_back_later_and_only_once() {
        let world = World::new(4);
        let file = world.root().join("conf");
        fs::write(&file, "before").unwrap();
        let mut host = world.host();
        host.put(Put::content(&file, "after")).unwrap();
        assert_eq!(host.keep().unwrap(), UndoneState::Kept);
        assert_eq!(
            rollback(&world.state(), "r1").state,
            UndoneState::RolledBack
        );
        assert_eq!(fs::read_to_string(&file).unwrap(), "before");
        fs::write(&file, "after").unwrap();
        assert_eq!(rollback(&world.state(), "r1").effects.len(), 0);
        assert_eq!(fs::read_to_string(&file).unwrap(), "after");
        assert_eq!(rollback(&world.state(), "r2").state, UndoneState::NotFound);
    }

    #[test]
    fn a_damaged_backup_is_not_put_in_place() {
        let world = World::new(5);
        let file = world.root().join("conf");
        fs::write(&file, "before").unwrap();
        let mut host = world.host();
        host.put(Put::content(&file, "after")).unwrap();
        fs::write(world.state().run_dir("r1").join("backup/0"), "garbage").unwrap();
        let undone = host.undo();
        assert_eq!(undone.state, UndoneState::RollbackFailed);
        assert_eq!(fs::read_to_string(&file).unwrap(), "after");
    }
}
