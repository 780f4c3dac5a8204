//! Tasks that go on by themselves (`async` with `poll: 0`): what the helper leaves behind for them, and what becomes of them.
//!
//! A job is a process of its own that outlives the conversation and the run. It works with a journal and a lock of its own,
//! below `jobs/` in the state directory: the next run waits for no job, and takes none for a run that was cut off. So it is
//! no part of the run's undo, and a plan says so. What it comes to stands in a file of the task's user, where Ansible has it.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fleet_wire::{Blob, Status, Task, ToHost, UndoClass, What, decode, encode};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{Fault, Host, State, executor, files, temporary, users};
use crate::module::Report;

/// Where results are, where nobody says: `ANSIBLE_ASYNC_DIR` in the task's environment does.
const RESULTS: &str = "~/.ansible_async";
/// How much longer than its time a job may take to end by itself.
const GRACE: Duration = Duration::from_secs(5);

/// What a job is told beside its task.
#[derive(Serialize, Deserialize)]
struct Brief {
    id: String,
    login: Option<String>,
    results: PathBuf,
    seconds: u32,
}

impl Host {
    /// The directory of the task's user that has the results of jobs.
    #[must_use]
    pub fn job_results(&self) -> PathBuf {
        let set = self
            .environment()
            .iter()
            .find(|(name, _)| name == "ANSIBLE_ASYNC_DIR");
        self.expand(set.map_or(RESULTS, |(_, dir)| dir))
    }

    /// Starts a task that goes on by itself for so many seconds at the most; nothing in a plan.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start_job(&mut self, task: &Task, seconds: u32) -> Result<Report, Fault> {
        let line = format!("{} in the background", task.module);
        let effect = self.effect(What::Command { line }, UndoClass::None, false);
        if self.recording {
            self.overlay.open = true;
            self.report(effect);
            return Ok(Report {
                status: Some(Status::Unknown),
                ..Report::default()
            });
        }
        let Some(state) = self.journal.as_ref().map(|journal| journal.state().clone()) else {
            return Err(Fault::new("a task can be left running by an apply only"));
        };
        let number = temporary::random()?
            .bytes()
            .fold(0_u64, |all, byte| all * 31 + u64::from(byte));
        let id = format!("j{}.{}", number % 1_000_000_000_000, std::process::id());
        let results = self.job_results().join(&id);
        let mut own = task.clone();
        own.background_s = None;
        own.timeout_s = seconds;
        own.notify = Vec::new();
        own.only_if = None;
        own.planned = None;
        if let Some(blob) = &task.blob
            && blob.bytes.is_none()
        {
            own.blob = Some(Blob {
                bytes: self.blob()?,
                ..blob.clone()
            });
        }
        let brief = Brief {
            id: id.clone(),
            login: self.login.clone(),
            results: results.clone(),
            seconds,
        };
        let begun = json!({
            "started": true, "finished": false, "ansible_job_id": id, "results_file": results, "changed": true,
        });
        self.perform(effect, |host| {
            users::acting(host.task.identity.as_ref(), || {
                write_result(
                    &results,
                    &json!({"started": 1, "finished": 0, "ansible_job_id": brief.id}),
                )
            })?
            .map_err(|error| Fault::io("write", &results, error))?;
            let dir = state.dir().join("jobs").join(&id);
            leave(&dir, &brief, own).map_err(|error| Fault::io("start a job in", &dir, error))
        })?;
        Ok(Report::of(begun))
    }
}

/// Leaves a job's files and starts its process, out of the reach of the session that this one is in.
fn leave(dir: &Path, brief: &Brief, task: Task) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    private(&dir.join("brief"), &serde_json::to_vec(brief)?)?;
    let frame = encode(&ToHost::Task(Box::new(task))).map_err(io::Error::other)?;
    private(&dir.join("task"), &frame)?;
    executor::leave_behind(
        &std::env::current_exe()?,
        [OsStr::new("job"), dir.as_os_str()],
    )
}

fn private(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(content)
}

/// Puts a result in its place, whole.
fn write_result(path: &Path, result: &Value) -> io::Result<()> {
    if let Some(dir) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    }
    let fresh = path.with_file_name(format!(
        ".{}.tmp",
        path.file_name().unwrap_or_default().to_string_lossy()
    ));
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&fresh)?;
    file.write_all(result.to_string().as_bytes())?;
    fs::rename(&fresh, path)
}

/// A job: its task, run to its end or to the end of its time. The directory has its brief, and is gone afterwards.
///
/// # Errors
/// When it cannot begin, or its result cannot be written.
pub fn run_job(
    dir: &Path,
    perform: impl FnOnce(&Task, &mut Host) -> Result<Report, Fault>,
) -> io::Result<()> {
    // It fails where this leads a session already.
    let _ = rustix::process::setsid();
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    let brief: Brief = serde_json::from_slice(&fs::read(dir.join("brief"))?)?;
    let frame = fs::read(dir.join("task"))?;
    let body = frame.get(4..).unwrap_or_default();
    let Ok(ToHost::Task(task)) = decode(body) else {
        return Err(io::Error::other("its task cannot be read"));
    };
    let unfit = |fault: Fault| io::Error::other(fault.message);
    let state = State::at(dir.join("state").to_str());
    state.prepare().map_err(unfit)?;
    let mut host = Host::apply(state, &brief.id.replace('.', "_"), "a job");
    host.set_login(brief.login);
    host.begin(&task).map_err(unfit)?;
    let identity = host.task.identity.clone();
    let (results, id) = (brief.results, brief.id);
    let say = move |mut fields: Map<String, Value>| {
        fields.insert("ansible_job_id".to_owned(), id.clone().into());
        users::acting(identity.as_ref(), || write_result(&results, &fields.into()))
    };
    let limit = Duration::from_secs(brief.seconds.into());
    let began = std::time::Instant::now();
    let too_long = say.clone();
    std::thread::spawn(move || {
        std::thread::sleep(limit + GRACE);
        let _ = too_long(timeout());
        // All that the job has started goes with it.
        let _ = rustix::process::kill_current_process_group(rustix::process::Signal::KILL);
    });
    let done = perform(&task, &mut host);
    let changed = !host.end().is_empty();
    let fields = match done {
        Err(_) if began.elapsed() >= limit => timeout(),
        Ok(report) => {
            let mut fields = report.fields;
            let said = match report.status {
                Some(Status::Ok | Status::Skipped) => false,
                Some(Status::Changed) => true,
                _ => changed,
            };
            fields.insert("changed".to_owned(), task.changed.unwrap_or(said).into());
            fields
        }
        Err(fault) => {
            let mut fields = fault.fields;
            fields.insert("failed".to_owned(), true.into());
            fields.insert("msg".to_owned(), fault.message.into());
            fields.entry("changed").or_insert(false.into());
            fields
        }
    };
    let _ = host.keep();
    say(fields).map_err(unfit)??;
    fs::remove_dir_all(dir)?;
    files::sync_dir(dir.parent().unwrap_or(dir))
}

fn timeout() -> Map<String, Value> {
    let fields = json!({"failed": true, "changed": false, "msg": "Timeout exceeded"});
    fields.as_object().cloned().unwrap_or_default()
}
