//! The undo of a run from its journal alone: inverses in reverse order, then its activations once more.
//!
//! Each effect is compared first. What is as before needs nothing; what is neither as before nor as
//! after was changed by somebody else and is left. So an undo that was cut off can simply run again.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fleet_wire::{
    AccountLine, Entry, Meta, SettingKind, Undone, UndoneEffect, UndoneState, UnitAction, What,
};

use super::body::Body;
use super::files::{self, Attributes, Found, Place, Refused};
use super::journal::{Intent, Lines, Record, word};
use super::reading::{entry_of, same};
use super::users::Names;
use super::{Fault, Host, State, accounts, packages, settings, sysctl, units};

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
    // A machine with several names has a journal of the run for each.
    let of_run = format!("{run}_");
    let mut runs: Vec<String> = state.runs();
    runs.retain(|name| name == run || name.starts_with(&of_run));
    let mut ends = runs.iter().rev().map(|run| one(state, run));
    let Some(mut undone) = ends.next() else {
        return one(state, run);
    };
    for other in ends {
        undone.state = undone.state.worse(other.state);
        undone.effects.extend(other.effects);
    }
    undone.run = run.to_owned();
    undone
}

/// Puts back the one thing that was under way when a run was cut off.
pub(super) fn revert_one(state: &State, run: &str, intent: &Intent) -> Result<(), Fault> {
    let machine = Machine {
        dir: state.run_dir(run),
        run: run.to_owned(),
        names: Names::default(),
        brought: brought(intent).into_iter().collect(),
    };
    match machine.revert(intent)? {
        Reverted::Conflict(why) => Err(Fault::new(format!("{}: {why}", intent.effect.summary()))),
        Reverted::Later(unit, action) => activate_again(&unit, action),
        Reverted::Now | Reverted::Already | Reverted::Never(_) => Ok(()),
    }
}

/// Undoes what one journal holds, and ends it.
#[must_use]
pub fn rollback_one(state: &State, run: &str) -> Undone {
    one(state, run)
}

fn one(state: &State, run: &str) -> Undone {
    match undo(state, run) {
        Ok((mut undone, mut lines)) => {
            state.run_ended(run, undone.state, state.why(run).as_deref());
            if let Err(fault) = lines.end(undone.state) {
                let effect = "the journal, which the next run will look at again".to_owned();
                undone.note(effect, Some(fault.message), UndoneState::RollbackFailed);
            }
            undone
        }
        Err(fault) if state.journal_path(run).exists() => broken(run, fault),
        Err(_) => Undone {
            run: run.to_owned(),
            state: UndoneState::NotFound,
            effects: Vec::new(),
            why: None,
        },
    }
}

/// Undoes the runs that were cut off; those that were, newest first. `but` is one that goes on.
///
/// # Errors
/// With the one that could not be undone: its journal stays open until a person has seen to it.
pub fn recover(state: &State, but: Option<&str>) -> Result<Vec<Undone>, Undone> {
    let mut open = state.cut_off();
    open.retain(|run| Some(run.as_str()) != but);
    if open.is_empty() {
        return Ok(Vec::new());
    }
    let mut cut_off = state.journaled();
    cut_off.retain(|run| open.contains(&run.run));
    // What cannot be read is not what was never written.
    if let Some(run) = open
        .iter()
        .find(|run| !cut_off.iter().any(|read| read.run == **run))
    {
        let path = state.journal_path(run);
        return Err(broken(
            run,
            Fault::new(format!("{} cannot be read", path.display())),
        ));
    }
    let mut recovered = Vec::new();
    for run in cut_off.iter().rev() {
        if state.is_confirmed(&run.run) {
            state
                .keep_confirmed(&run.run)
                .map_err(|fault| broken(&run.run, fault))?;
            continue;
        }
        state.take_over(&run.run);
        let (undone, mut lines) = undo(state, &run.run).map_err(|fault| broken(&run.run, fault))?;
        if undone.state == UndoneState::RollbackFailed {
            return Err(undone);
        }
        state.run_ended(&run.run, undone.state, Some("it had been cut off"));
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
        why: None,
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
        why: None,
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
            Record::Begin { .. }
            | Record::Held { .. }
            | Record::Done { .. }
            | Record::Undone { .. } => {}
        }
    }
    let mut undone = Undone {
        run: run.to_owned(),
        state: UndoneState::RolledBack,
        effects: Vec::new(),
        why: None,
    };
    if ended.as_deref() == Some(word(UndoneState::RolledBack)) {
        return Ok((undone, lines));
    }
    let machine = Machine {
        dir: state.run_dir(run),
        run: run.to_owned(),
        names: Names::default(),
        brought: intents.iter().filter_map(brought).collect(),
    };
    let mut later = Vec::new();
    for intent in intents
        .iter()
        .rev()
        .filter(|intent| !finished.contains(&intent.id))
    {
        let (problem, state) = match machine.revert(intent) {
            Ok(Reverted::Already) => {
                undone_now(&mut lines, intent.id, None);
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
        undone_now(&mut lines, intent.id, problem);
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

/// Writes down that an effect was undone. A full disk must not stop the undo here: what stands nowhere is compared once
/// more by the next one.
fn undone_now(lines: &mut Lines, id: u32, problem: Option<String>) {
    let _ = lines.append(&Record::Undone { id, problem });
}

trait Note {
    fn note(&mut self, effect: String, problem: Option<String>, state: UndoneState);
}

impl Note for Undone {
    /// Adds an effect; the worst state stays.
    fn note(&mut self, effect: String, problem: Option<String>, state: UndoneState) {
        // What went as it should says nothing about the whole.
        if matches!(
            state,
            UndoneState::RollbackFailed | UndoneState::RollbackConflict
        ) {
            self.state = self.state.worse(state);
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

fn brought(intent: &Intent) -> Option<&str> {
    match &intent.effect.what {
        What::Package {
            name, before: None, ..
        } => Some(name),
        _ => None,
    }
}

fn ran(state: &str) -> bool {
    matches!(state, "active" | "activating" | "reloading")
}

/// The machine itself, with a run's backups.
struct Machine<'a> {
    dir: PathBuf,
    run: String,
    names: Names,
    /// The packages that the run brought and that were not there before.
    brought: BTreeSet<&'a str>,
}

impl Machine<'_> {
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
            What::Package { name, before, .. } => {
                revert_package(name, before.as_deref(), &self.brought)
            }
            What::Command { .. } => Ok(Reverted::Never("what a command did cannot be undone")),
            What::Account { lines, .. } => revert_account(lines),
            What::Setting {
                kind,
                name,
                before,
                after,
            } => revert_setting(*kind, name, before, after),
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

fn revert_setting(
    kind: SettingKind,
    name: &str,
    before: &str,
    after: &str,
) -> Result<Reverted, Fault> {
    let now = settings::read(kind, name)?;
    if settings::same(kind, &now, before) {
        return Ok(Reverted::Already);
    }
    if settings::same(kind, &now, after) {
        return settings::write(kind, name, &now, before).map(|()| Reverted::Now);
    }
    Ok(Reverted::Conflict(
        "somebody else has changed it since, so it was left as it is".to_owned(),
    ))
}

/// Puts each line back that is as the run left it.
fn revert_account(lines: &[AccountLine]) -> Result<Reverted, Fault> {
    let (mut back, mut theirs) = (Vec::new(), Vec::new());
    for line in lines.iter().rev() {
        let now = accounts::line(line)?;
        if now == line.before {
            continue;
        }
        match now == line.after {
            true => back.push(AccountLine {
                path: line.path.clone(),
                before: now,
                after: line.before.clone(),
            }),
            false => theirs.push(line.path.as_str()),
        }
    }
    accounts::write(&back)?;
    match (back.is_empty(), theirs.is_empty()) {
        (_, false) => Ok(Reverted::Conflict(format!(
            "somebody else has changed its line since, so it was left as it is, in {}",
            theirs.join(", ")
        ))),
        (true, true) => Ok(Reverted::Already),
        (false, true) => Ok(Reverted::Now),
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
    if now.active == "failed"
        && before != "failed"
        && matches!(action, UnitAction::Start | UnitAction::Restart)
    {
        // Nothing runs that could be stopped, but systemd would go on calling the host degraded.
        return units::forget_failure(unit).map(|()| Reverted::Now);
    }
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

fn revert_package(
    name: &str,
    before: Option<&str>,
    brought: &BTreeSet<&str>,
) -> Result<Reverted, Fault> {
    let so = match before {
        Some(_) => packages::installed()?.get(name).map(String::as_str) == before,
        None => packages::gone(name)?,
    };
    if so {
        return Ok(Reverted::Already);
    }
    if before.is_none() {
        let others = packages::taken_along(name, brought)?;
        if !others.is_empty() {
            return Ok(Reverted::Conflict(format!(
                "it was left, for what somebody else has installed needs it: {}",
                others.join(", ")
            )));
        }
    }
    packages::revert(name, before)?;
    Ok(Reverted::Now)
}

#[cfg(test)]
mod laws;
