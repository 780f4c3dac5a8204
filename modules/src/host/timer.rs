//! What looks after a run when its helper is gone: a timer of systemd that survives a boot, or a process of its own.

use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::{Fault, State, executor, files, hex, process, units};

/// Where the timers are.
const UNITS: &str = "/etc/systemd/system";
/// What systemd starts with a boot, below that; a bare host has no such directory.
const WANTS: &str = "timers.target.wants";
/// Says in a run's directory that this one was made for it.
const MADE: &str = "made-wants";
/// How often a run is looked at, in seconds.
pub(super) const LOOK: u64 = 5;

/// What the names of kept helpers begin with, and of those that are being written.
const KEPT: &str = "undo-";
const NEW: &str = ".undo-";

/// A copy of this helper that nobody but the state's owner can replace, and that stays for as long as it is needed.
///
/// # Errors
/// When it cannot be written.
pub(super) fn keep_helper(state: &State) -> Result<PathBuf, Fault> {
    let dir = state.dir().join("bin");
    let failed = |error| Fault::io("keep the helper in", &dir, error);
    let own = fs::read("/proc/self/exe").map_err(failed)?;
    let name = hex(&Sha256::digest(&own)[..8]);
    let path = dir.join(format!("{KEPT}{name}"));
    let kept = || -> io::Result<()> {
        if fs::read(&path).is_ok_and(|there| there == own) {
            return Ok(());
        }
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&dir)?;
        if state.armed().is_empty() {
            // Helpers that serve are kept there as well.
            let mut old = files::list(&dir)?.unwrap_or_default();
            old.retain(|name| name.starts_with(KEPT) || name.starts_with(NEW));
            for name in old {
                fs::remove_file(dir.join(name))?;
            }
        }
        let temp = dir.join(format!("{NEW}{name}-{}", std::process::id()));
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o700)
            .open(&temp)?;
        file.write_all(&own)?;
        file.sync_all()?;
        drop(file);
        fs::rename(&temp, &path)?;
        files::sync_dir(&dir)?;
        files::sync_dir(state.dir())
    };
    kept().map_err(failed)?;
    let words = [path.display().to_string(), "--version".to_owned()];
    let runs = process::read_only(&[&words[0], &words[1]]);
    match runs {
        Ok(said) if said.ok() => Ok(path),
        // No program can be run from there (`noexec`).
        _ => std::env::current_exe().map_err(failed),
    }
}

/// Has a run looked after, and sees that it is.
///
/// # Errors
/// When that cannot be done.
pub(super) fn start(state: &State, run: &str, helper: &Path) -> Result<(), Fault> {
    let root = rustix::process::geteuid().is_root();
    if !root || units::present().is_err() {
        let words = ["look-after", "--stay"].map(OsStr::new);
        let words = words
            .into_iter()
            .chain([state.dir().as_os_str(), OsStr::new(run)]);
        let what = "start a process that looks after the run with";
        return executor::leave_behind(helper, words)
            .map_err(|error| Fault::io(what, helper, error));
    }
    let name = unit(state, run);
    let timer = format!("{name}.timer");
    let service = format!(
        "[Unit]\nDescription=fleetctl: undo of run {run}, unless it is confirmed\n\n[Service]\nType=oneshot\nExecStart={} look-after {} {run}\n",
        helper.display(),
        state.dir().display()
    );
    let text = format!(
        "[Unit]\nDescription=fleetctl: looks after run {run}\n\n[Timer]\nOnActiveSec={LOOK}s\nOnBootSec={LOOK}s\nOnUnitInactiveSec={LOOK}s\nAccuracySec=1s\n\n[Install]\nWantedBy=timers.target\n"
    );
    let units = Path::new(UNITS);
    let made = || -> io::Result<()> {
        write_unit(&units.join(format!("{name}.service")), &service)?;
        write_unit(&units.join(&timer), &text)?;
        let wants = units.join(WANTS);
        if !wants.exists() {
            fs::write(state.run_dir(run).join(MADE), "")?;
            fs::create_dir(&wants)?;
        }
        match symlink(units.join(&timer), wants.join(&timer)) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        files::sync_dir(&wants)?;
        files::sync_dir(units)
    };
    made().map_err(|error| Fault::io("make a timer in", units, error))?;
    let run = |argv: &[&str]| process::read_only(argv);
    run(&["systemctl", "daemon-reload"])?;
    run(&["systemctl", "start", &timer])?;
    let active = run(&["systemctl", "is-active", &timer])?;
    match active.ok() {
        true => Ok(()),
        false => Err(Fault::new(format!(
            "the timer {timer} that is to undo this run does not run ({}): nothing was changed",
            active.text().trim()
        ))),
    }
}

fn write_unit(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o644)
        .open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Takes the timer away.
pub(super) fn forget(state: &State, run: &str) {
    let name = unit(state, run);
    let timer = format!("{name}.timer");
    let path = Path::new(UNITS).join(&timer);
    if !path.exists() {
        return;
    }
    // What stays looks for a run that has ended, and then takes itself away.
    let wants = Path::new(UNITS).join(WANTS);
    let _ = fs::remove_file(wants.join(&timer));
    if state.run_dir(run).join(MADE).exists() {
        // Where somebody has put something else into it, it stays.
        let _ = fs::remove_dir(&wants);
    }
    let _ = fs::remove_file(&path);
    let _ = fs::remove_file(Path::new(UNITS).join(format!("{name}.service")));
    let _ = process::read_only(&["systemctl", "stop", "--no-block", &timer]);
    let _ = process::read_only(&["systemctl", "daemon-reload"]);
}

/// The name of the units: a machine may keep several states, each with a run of that name.
fn unit(state: &State, run: &str) -> String {
    let place = hex(&Sha256::digest(state.dir().as_os_str().as_encoded_bytes())[..4]);
    format!("fleetctl-undo-{run}-{place}")
}
