use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::time::Duration;

use fleet_wire::{UndoClass, UnitAction, What};

use super::process::{Process, read_only};
use super::{Entry, Fault, Host, Output, proof};

/// How long systemd may take over one job.
const PATIENCE: Duration = Duration::from_secs(300);

/// Where systemd looks for units and their drop-ins.
pub(super) const UNIT_DIRS: [&str; 5] = [
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];

/// A systemd unit as `systemctl show` has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnitState {
    /// The unit's own name with its suffix (an alias is followed): `nginx.service`.
    pub id: String,
    /// `loaded`, `not-found`, `masked`, `bad-setting`, `error`.
    pub load: String,
    /// `active`, `inactive`, `failed`, `activating`, `deactivating`, `reloading`.
    pub active: String,
    /// The finer state: `running`, `dead`, `exited`, …
    pub sub: String,
    /// `enabled`, `disabled`, `static`, `masked`, `generated`, …; empty where the unit has no file.
    pub enabled: String,
    /// The main process; 0 for none.
    pub main_pid: u32,
    /// The unit's files have changed since systemd read them.
    pub need_daemon_reload: bool,
    /// The unit's file.
    pub fragment: String,
    /// Whether `systemctl reload` can do something.
    pub can_reload: bool,
    /// The drop-ins that systemd has read.
    pub drop_ins: Vec<String>,
    /// `simple`, `forking`, `notify`, `oneshot`, …; empty where the unit is no service.
    pub kind: String,
    /// All that systemd says of the unit, in its own words.
    pub properties: Vec<(String, String)>,
}

impl UnitState {
    /// Whether the unit is running, or about to.
    #[must_use]
    pub fn running(&self) -> bool {
        matches!(self.active.as_str(), "active" | "activating" | "reloading")
    }

    /// Whether systemd left the unit out when it was last to start, because of an unmet condition of it. To systemd that is
    /// a success: a service may have no business on this machine.
    #[must_use]
    pub fn skipped(&self) -> bool {
        let says = |name: &str, wanted: fn(&str) -> bool| {
            let mut properties = self.properties.iter();
            properties.any(|(own, value)| own == name && wanted(value))
        };
        self.active == "inactive"
            && says("ConditionResult", |value| value == "no")
            && says("ConditionTimestamp", |value| {
                !value.is_empty() && value != "n/a"
            })
    }

    /// Whether the unit exists.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.load != "not-found"
    }
}

impl Host {
    /// A unit's state; `nginx` means `nginx.service`.
    ///
    /// # Errors
    /// When systemd does not run here, or does not answer.
    pub fn unit(&self, unit: &str) -> Result<UnitState, Fault> {
        let unit = full(unit);
        let mut state = match self.overlay.units.get(&unit) {
            Some(state) => state.clone(),
            None => {
                let known = self.units.borrow().get(&unit).cloned();
                match known {
                    Some(known) => known,
                    None => {
                        let shown = show(&unit)?;
                        self.units.borrow_mut().insert(unit.clone(), shown.clone());
                        shown
                    }
                }
            }
        };
        if self.recording && self.planned_files(&unit) {
            if !state.exists() {
                "loaded".clone_into(&mut state.load);
                "disabled".clone_into(&mut state.enabled);
            }
            state.need_daemon_reload = true;
        }
        Ok(state)
    }

    /// Does something to a unit, and proves that it took. Nothing is done where it is so already.
    ///
    /// # Errors
    /// When there is no such unit, or it does not take.
    pub fn act(&mut self, unit: &str, action: UnitAction) -> Result<(), Fault> {
        let unit = if action == UnitAction::DaemonReload {
            String::new()
        } else {
            full(unit)
        };
        let state = if unit.is_empty() {
            UnitState::default()
        } else {
            self.unit(&unit)?
        };
        if is_so(&state, action) {
            return Ok(());
        }
        self.as_root(&format!("{action} {unit}"))?;
        let missing = !unit.is_empty() && !state.exists();
        if missing && !self.open() {
            return Err(Fault::new(format!(
                "Could not find the requested service {unit}: host has no such unit: check its name, or install what brings it first"
            )));
        }
        let loads = matches!(
            action,
            UnitAction::Start | UnitAction::Restart | UnitAction::Reload
        );
        if loads && state.need_daemon_reload {
            // Else systemd would go on with what it has read of the unit before.
            self.act("", UnitAction::DaemonReload)?;
        }
        let mut after = state.clone();
        becomes(&mut after, action);
        let file = |state: &UnitState| {
            if of_files(action) {
                state.enabled.clone()
            } else {
                state.active.clone()
            }
        };
        let what = What::Unit {
            unit: unit.clone(),
            action,
            before: file(&state),
            after: file(&after),
        };
        let undo = if of_files(action) {
            UndoClass::Exact
        } else {
            UndoClass::Inverse
        };
        let assumed = self.open() && !self.overlay.units.contains_key(&unit);
        let effect = self.effect(what, undo, assumed);
        // Whether its condition is still unmet only a start can tell.
        let skipped = !of_files(action) && action != UnitAction::Stop && state.skipped();
        if skipped && (self.recording && !self.overlay.touched || self.allow(&effect).is_err()) {
            return Ok(());
        }
        if self.recording {
            if unit.is_empty() {
                self.overlay.read_units = UNIT_DIRS
                    .iter()
                    .flat_map(|dir| self.overlay.under(Path::new(dir)))
                    .map(|(path, node)| (path.to_owned(), node.entry.clone()))
                    .collect();
            } else {
                after.need_daemon_reload = false;
                self.overlay.units.insert(unit, after);
            }
            self.report(effect);
            return Ok(());
        }
        self.forget_units();
        // Before the intent: of what is refused here nothing was begun, so an undo leaves the unit alone.
        let proof = proof::Proof::before(&unit, action)?;
        if state.running() || of_files(action) || unit.is_empty() {
            return self.perform(effect, |_| carry_out(&unit, action, &proof));
        }
        self.allow(&effect)?;
        let intent = self.intend(&effect)?.map(|intent| intent.id);
        carry_out(&unit, action, &proof)?;
        let took = !show(&unit)?.skipped();
        match (&mut self.journal, intent) {
            (Some(journal), Some(id)) if !took => journal.void(id)?,
            (_, intent) => self.complete(intent)?,
        }
        if took {
            self.report(effect);
        }
        Ok(())
    }

    /// What systemd says may be another thing after this.
    pub(super) fn forget_units(&self) {
        self.units.borrow_mut().clear();
    }

    /// Whether an effect of the plan wrote a file of this unit that no planned daemon-reload has read.
    fn planned_files(&self, unit: &str) -> bool {
        UNIT_DIRS.iter().any(|dir| {
            let (file, drop_ins) = (
                Path::new(dir).join(unit),
                Path::new(dir).join(format!("{unit}.d")),
            );
            let mut written = self
                .overlay
                .under(&file)
                .chain(self.overlay.under(&drop_ins));
            written.any(|(path, node)| {
                !matches!(node.entry, Entry::Dir(_))
                    && self.overlay.read_units.get(path) != Some(&node.entry)
            })
        })
    }
}

/// A unit's name with its suffix.
fn full(unit: &str) -> String {
    const SUFFIXES: [&str; 11] = [
        ".service",
        ".socket",
        ".timer",
        ".target",
        ".mount",
        ".path",
        ".slice",
        ".scope",
        ".device",
        ".swap",
        ".automount",
    ];
    if SUFFIXES.iter().any(|suffix| unit.ends_with(suffix)) {
        unit.to_owned()
    } else {
        format!("{unit}.service")
    }
}

/// Whether an action is about a unit's files, and not about its processes.
fn of_files(action: UnitAction) -> bool {
    matches!(
        action,
        UnitAction::Enable | UnitAction::Disable | UnitAction::Mask | UnitAction::Unmask
    )
}

fn is_so(state: &UnitState, action: UnitAction) -> bool {
    match action {
        UnitAction::Start => state.running(),
        UnitAction::Stop => !state.running(),
        UnitAction::Enable => state.enabled == "enabled",
        UnitAction::Disable => state.enabled == "disabled",
        UnitAction::Mask => state.enabled == "masked" || state.load == "masked",
        UnitAction::Unmask => state.enabled != "masked" && state.load != "masked",
        UnitAction::Restart | UnitAction::Reload | UnitAction::DaemonReload => false,
    }
}

fn becomes(state: &mut UnitState, action: UnitAction) {
    let (field, word) = match action {
        UnitAction::Start | UnitAction::Restart | UnitAction::Reload => {
            (&mut state.active, "active")
        }
        UnitAction::Stop => (&mut state.active, "inactive"),
        UnitAction::Enable => (&mut state.enabled, "enabled"),
        UnitAction::Disable | UnitAction::Unmask => (&mut state.enabled, "disabled"),
        UnitAction::Mask => (&mut state.enabled, "masked"),
        UnitAction::DaemonReload => return,
    };
    word.clone_into(field);
    match action {
        UnitAction::Mask => "masked".clone_into(&mut state.load),
        UnitAction::Unmask => "loaded".clone_into(&mut state.load),
        _ => {}
    }
}

/// What systemd says of a unit now.
pub(super) fn show(unit: &str) -> Result<UnitState, Fault> {
    present()?;
    let output = read_only(&["systemctl", "show", "--", unit])?;
    if !output.ok() {
        return Err(Fault::new(format!(
            "cannot ask systemd about {unit}: {}",
            output.complaint()
        )));
    }
    let mut state = parse(&output.text());
    state.need_daemon_reload |= drop_ins_missed(&state);
    Ok(state)
}

/// Whether drop-ins are on disk that systemd has not read, or the other way round. systemd 252 itself says
/// `NeedDaemonReload=no` of a drop-in in a directory that is new, for it only looks into those it knows.
fn drop_ins_missed(state: &UnitState) -> bool {
    let own = format!("{}.d", state.id);
    let read = state
        .drop_ins
        .iter()
        .map(Path::new)
        .filter(|file| file.parent().is_some_and(|dir| dir.ends_with(&own)));
    let read: BTreeSet<_> = read
        .filter_map(Path::file_name)
        .map(OsStr::to_owned)
        .collect();
    let there = UNIT_DIRS
        .iter()
        .filter_map(|dir| fs::read_dir(Path::new(dir).join(&own)).ok())
        .flatten()
        .filter_map(Result::ok);
    let there = there.filter(|entry| {
        entry
            .path()
            .extension()
            .is_some_and(|suffix| suffix == "conf")
    });
    // A link to /dev/null takes a drop-in away.
    let there = there.filter(|entry| {
        fs::read_link(entry.path()).map_or(true, |target| target != Path::new("/dev/null"))
    });
    read != there.map(|entry| entry.file_name()).collect()
}

fn parse(text: &str) -> UnitState {
    let mut state = UnitState::default();
    for (name, value) in text.lines().filter_map(|line| line.split_once('=')) {
        state.properties.push((name.to_owned(), value.to_owned()));
        let field = match name {
            "Id" => &mut state.id,
            "LoadState" => &mut state.load,
            "ActiveState" => &mut state.active,
            "SubState" => &mut state.sub,
            "UnitFileState" => &mut state.enabled,
            "FragmentPath" => &mut state.fragment,
            "Type" => &mut state.kind,
            "MainPID" => {
                state.main_pid = value.parse().unwrap_or_default();
                continue;
            }
            "NeedDaemonReload" => {
                state.need_daemon_reload = value == "yes";
                continue;
            }
            "DropInPaths" => {
                state.drop_ins = value.split_whitespace().map(str::to_owned).collect();
                continue;
            }
            "CanReload" => {
                state.can_reload = value == "yes";
                continue;
            }
            _ => continue,
        };
        value.clone_into(field);
    }
    state
}

pub(super) fn present() -> Result<(), Fault> {
    // The test of sd_booted(3).
    if Path::new("/run/systemd/system").is_dir() {
        return Ok(());
    }
    Err(Fault::new(
        "systemd does not run on this host, so no unit can be looked at or changed (a container has none unless it was booted)",
    ))
}

/// Does something to a unit and proves it, on the machine itself.
pub(super) fn activate(unit: &str, action: UnitAction) -> Result<(), Fault> {
    let proof = proof::Proof::before(unit, action)?;
    carry_out(unit, action, &proof)
}

fn carry_out(unit: &str, action: UnitAction, proof: &proof::Proof) -> Result<(), Fault> {
    present()?;
    let verb = action.to_string();
    let words: &[&str] = if unit.is_empty() {
        &[&verb]
    } else {
        &[&verb, "--", unit]
    };
    let output = systemctl(words)?;
    if !output.ok() {
        return Err(failed(unit, action, &output));
    }
    proof.after()
}

fn systemctl(words: &[&str]) -> Result<Output, Fault> {
    let argv = ["systemctl", "--no-ask-password"].iter().chain(words);
    let argv: Vec<String> = argv.map(|&word| word.to_owned()).collect();
    Process {
        argv: &argv,
        timeout: Some(PATIENCE),
        ..Process::default()
    }
    .in_c_locale()
    .run()
}

/// Takes a unit that failed for one that was never started.
pub(super) fn forget_failure(unit: &str) -> Result<(), Fault> {
    let output = systemctl(&["reset-failed", "--", unit])?;
    if output.ok() {
        return Ok(());
    }
    Err(Fault::new(format!(
        "cannot make systemd forget that {unit} failed: {}",
        output.complaint()
    )))
}

fn failed(unit: &str, action: UnitAction, output: &Output) -> Fault {
    Fault::new(format!(
        "cannot {action} {unit}: {}{}",
        output.complaint(),
        last_words(unit)
    ))
    .with("rc", output.rc)
    .with("stderr", output.error_text())
}

/// The last lines that a unit itself had to say, to stand behind a message.
pub(super) fn last_words(unit: &str) -> String {
    let said = read_only(&[
        "journalctl",
        "--no-pager",
        "--quiet",
        "--output=cat",
        "--lines=5",
        "--unit",
        unit,
    ]);
    let said = said.map(|output| output.text()).unwrap_or_default();
    if said.trim().is_empty() {
        String::new()
    } else {
        format!("; its log ends with: {}", said.trim())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_systemd_shows_is_read() {
        let state = parse(
            "Type=forking\nMainPID=42\nId=nginx.service\nLoadState=loaded\nActiveState=active\nSubState=running\nFragmentPath=/lib/systemd/system/nginx.service\nUnitFileState=enabled\nNeedDaemonReload=no\nCanReload=yes\n",
        );
        assert_eq!(
            (state.id.as_str(), state.main_pid, state.can_reload),
            ("nginx.service", 42, true)
        );
        assert!(state.running() && state.exists() && !state.need_daemon_reload);
        assert!(
            is_so(&state, UnitAction::Start)
                && is_so(&state, UnitAction::Enable)
                && !is_so(&state, UnitAction::Reload)
        );
    }

    #[test]
    fn a_unit_whose_condition_is_unmet_was_left_out() {
        let of = |text: &str| parse(text).skipped();
        let tried = "ConditionTimestamp=Tue 2026-12-01 05:49:13 UTC\n";
        assert!(of(&format!(
            "ActiveState=inactive\nConditionResult=no\n{tried}"
        )));
        assert!(!of(&format!(
            "ActiveState=inactive\nConditionResult=yes\n{tried}"
        )));
        assert!(!of(&format!(
            "ActiveState=active\nConditionResult=no\n{tried}"
        )));
        // One that was never to start has no result either.
        assert!(!of(
            "ActiveState=inactive\nConditionResult=no\nConditionTimestamp=\n"
        ));
    }

    #[test]
    fn a_name_without_a_suffix_is_a_service() {
        assert_eq!(full("nginx"), "nginx.service");
        assert_eq!(full("fstrim.timer"), "fstrim.timer");
        assert_eq!(full("org.example.agent"), "org.example.agent.service");
    }

    #[test]
    fn without_systemd_a_unit_is_a_clear_fault() {
        if present().is_ok() {
            return;
        }
        let fault = Host::plan().unit("nginx").unwrap_err();
        assert!(
            fault
                .message
                .starts_with("systemd does not run on this host"),
            "{fault}"
        );
    }
}
