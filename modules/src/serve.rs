//! The loop of `fleet-helper serve`: frames in, tasks run in order, frames out.
//!
//! A thread of its own reads, so that the end of the controller is seen while a task runs. The
//! controller sends ahead; what was sent behind a failure is answered and not run.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::{self, BufWriter, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use fleet_wire::{
    FRAME_LIMIT, Finish, FromHost, Hello, Json, Mode, Outcome, PROTOCOL, Ready, Refusal, Status,
    Task, ToHost, Undone, UndoneState, decode, encode,
};
use serde_json::{Map, Value, json};

use crate::host::{
    AGAIN, Applied, Fault, Host, Lock, Outcomes, Signs, State, Tell, forget_pending, is_run_name,
    recover, rollback, rollback_one, run_job,
};
use crate::module::{self, Report};
use spool::Spool;

mod fit;
mod spool;

/// Serves one conversation, to its end. `login` is who logged in, where the helper runs through sudo.
///
/// # Errors
/// When the output cannot be written before a run has begun.
pub fn serve(
    input: impl Read + Send + 'static,
    output: impl Write + 'static,
    login: Option<String>,
) -> io::Result<()> {
    let out = Out {
        writer: Rc::new(RefCell::new(BufWriter::new(Box::new(output)))),
        goes_on: Rc::default(),
    };
    out.raw(format!("FLEETCTL-HELPER {PROTOCOL}\n").as_bytes())?;
    let inbox = Inbox::start(input);
    let Ok(ToHost::Hello(hello)) = inbox.messages.recv() else {
        return Ok(());
    };
    match Session::open(hello, login, &out, inbox) {
        Ok(session) => session.run(),
        Err(refusal) => out.send(&FromHost::Refused(refusal)),
    }
}

/// What comes from the controller.
struct Inbox {
    messages: Receiver<ToHost>,
    parts: Receiver<Part>,
    /// Nothing more comes.
    ended: Arc<AtomicBool>,
    /// Whether the run goes on, for who looks after it.
    signs: Signs,
    /// The controller has said how the run ends: all that it sent is to be done, though it be gone.
    finishing: Arc<AtomicBool>,
}

/// A part of a content.
struct Part {
    sha256: String,
    bytes: Vec<u8>,
    last: bool,
}

impl Inbox {
    fn start(mut input: impl Read + Send + 'static) -> Self {
        let ((queue, messages), (blobs, parts)) = (channel(), channel());
        let (ended, finishing) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicBool::new(false)),
        );
        let inbox = Self {
            messages,
            parts,
            ended: ended.clone(),
            finishing: finishing.clone(),
            signs: Signs::default(),
        };
        let heard = inbox.signs.heard.clone();
        thread::spawn(move || {
            // A frame that cannot be read is the end, too: what follows it cannot be trusted.
            while let Some(message) = next(&mut input) {
                heard.store(true, Ordering::Release);
                if matches!(message, ToHost::Alive) {
                    continue;
                }
                if matches!(message, ToHost::Finish(_)) {
                    finishing.store(true, Ordering::Release);
                }
                if !pass(message, &queue, &blobs) {
                    break;
                }
            }
            ended.store(true, Ordering::Release);
        });
        inbox
    }

    /// Whether the controller went away in the middle of a run.
    fn deserted(&self) -> bool {
        self.ended.load(Ordering::Acquire) && !self.finishing.load(Ordering::Acquire)
    }
}

fn pass(message: ToHost, queue: &Sender<ToHost>, blobs: &Sender<Part>) -> bool {
    match message {
        ToHost::Blob {
            sha256,
            bytes,
            last,
        } => blobs
            .send(Part {
                sha256,
                bytes,
                last,
            })
            .is_ok(),
        other => queue.send(other).is_ok(),
    }
}

/// The next message; none at the end, or where the frame is not one.
fn next(input: &mut impl Read) -> Option<ToHost> {
    let mut length = [0; 4];
    input.read_exact(&mut length).ok()?;
    let length = usize::try_from(u32::from_be_bytes(length))
        .ok()
        .filter(|length| *length <= FRAME_LIMIT)?;
    let mut body = vec![0; length];
    input.read_exact(&mut body).ok()?;
    decode(&body).ok()
}

/// The way to the controller.
#[derive(Clone)]
struct Out {
    writer: Rc<RefCell<BufWriter<Box<dyn Write>>>>,
    /// Nobody has to hear what is said.
    goes_on: Rc<Cell<bool>>,
}

impl Out {
    fn send(&self, message: &FromHost) -> io::Result<()> {
        let frame = encode(message).map_err(io::Error::other)?;
        self.raw(&frame)
    }

    fn raw(&self, bytes: &[u8]) -> io::Result<()> {
        let mut out = self.writer.borrow_mut();
        match out.write_all(bytes).and_then(|()| out.flush()) {
            Err(_) if self.goes_on.get() => Ok(()),
            said => said,
        }
    }
}

/// A conversation that is open.
struct Session {
    host: Host,
    mode: Mode,
    state: State,
    run: String,
    /// Tells the controller from others.
    controller: u64,
    /// Journals of the same run from conversations before this one, oldest first.
    earlier: Vec<String>,
    /// Dropped with the session, or when the run has ended.
    lock: Option<Lock>,
    inbox: Rc<Inbox>,
    out: Out,
    /// Handlers that were notified and have not run, with the run that notified them.
    pending: BTreeMap<String, String>,
    /// Lanes that a failure stopped, with the group of the failed task: of each only what is left of that group runs.
    stopped: BTreeMap<u32, u32>,
    finished: bool,
    /// The saved plan that is applied.
    plan: Option<String>,
    /// What its tasks came to.
    outcomes: Option<Outcomes>,
    /// Steps that were under way when the run was cut off, and cannot be done twice.
    uncertain: Vec<String>,
}

impl Session {
    fn open(hello: Hello, login: Option<String>, out: &Out, inbox: Inbox) -> Result<Self, Refusal> {
        if hello.protocol != PROTOCOL {
            return Err(Refusal::Protocol(PROTOCOL));
        }
        if !is_run_name(&hello.run) {
            return Err(Refusal::Unfit(format!(
                "`{}` is not the name of a run: letters, digits, `-` and `_` are",
                hello.run
            )));
        }
        // New files have the modes that are asked for, whatever the login shell has set.
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
        if hello
            .state_dir
            .as_ref()
            .is_some_and(|dir| !dir.starts_with('/'))
        {
            return Err(Refusal::Unfit(
                "the state directory that was asked for is not an absolute path".to_owned(),
            ));
        }
        let mut state = State::at(hello.state_dir.as_deref());
        let transaction = &hello.transaction;
        let machine_id = std::fs::read_to_string("/etc/machine-id").unwrap_or_default();
        let machine_id = machine_id.trim().to_owned();
        if transaction
            .machine_id
            .as_ref()
            .is_some_and(|wanted| *wanted != machine_id)
        {
            return Err(Refusal::Identity { found: machine_id });
        }
        let (mut lock, mut recovered) = (None, Vec::new());
        let mut run = hello.run.clone();
        let mut earlier = Vec::new();
        let mut goes_on = None;
        if hello.mode == Mode::Apply {
            // Out of the login session, whose end must not end an undo. It fails where this leads a group already.
            let _ = rustix::process::setsid();
            state.prepare().map_err(|fault| {
                Refusal::Unfit(format!("{}: `fleetctl host repair`", fault.message))
            })?;
            lock = Some(state.lock(
                &hello.who,
                &hello.run,
                hello.controller,
                Duration::from_millis(hello.lock_timeout_ms),
            )?);
            if lock.as_ref().is_some_and(Lock::is_joined) {
                // What is open belongs to the conversation that was here before. This one keeps a journal of its own.
                run = format!("{run}_{}", std::process::id());
                state = state.beside();
            } else {
                state
                    .gather_pending()
                    .map_err(|fault| Refusal::Unfit(fault.message))?;
                // A run that the host has begun to undo does not go on.
                let own = (transaction.resume || state.is_left_by(&hello.run, hello.controller))
                    && !state.is_being_undone(&hello.run);
                let own = own.then_some(hello.run.as_str());
                recovered = recover(&state, own).map_err(Refusal::Unrecovered)?;
                state.prune();
                // A conversation of the run was here before, and ended: this one goes on behind it.
                earlier = state.journals_of(&hello.run);
                if let Some(plan) = &transaction.plan {
                    once(&state, plan, &hello, &earlier)?;
                }
                if own.is_some() && earlier.last().is_some_and(|name| state.is_open(name)) {
                    goes_on = earlier.pop();
                    run = goes_on.clone().unwrap_or(run);
                } else if let Some(undone) = recovered.iter().find(|undone| undone.run == hello.run)
                {
                    let why = undone.why.as_deref();
                    return Err(Refusal::Unfit(format!(
                        "this run was undone here before it went on ({}): begin anew",
                        why.unwrap_or("it had been cut off")
                    )));
                } else if !earlier.is_empty() {
                    run = format!("{run}{AGAIN}{}", earlier.len());
                }
            }
        }
        let pending = state.pending();
        let mut host = match hello.mode {
            Mode::Apply => Host::apply(state.clone(), &run, &hello.who),
            Mode::Plan | Mode::Read | Mode::Care => Host::plan(),
        };
        host.set_login(login);
        if let (Mode::Apply, Some(seconds)) = (hello.mode, transaction.confirm_s) {
            let said = out.clone();
            let tell = Tell(Box::new(move |run: &str| {
                // Who does not hear of it finds out later.
                let _ = said.send(&FromHost::LookedAfter {
                    run: run.to_owned(),
                });
            }));
            host.look_after(
                seconds,
                transaction.plan.is_some(),
                inbox.signs.clone(),
                tell,
            );
        }
        if let Some(plan) = &transaction.plan {
            let by = Applied {
                run: hello.run.clone(),
                controller: hello.controller,
            };
            host.applies_plan(plan, by);
            // What a saved plan has sent is decided: it is done, whoever hears of it.
            out.goes_on.set(hello.mode == Mode::Apply);
        }
        let mut uncertain = Vec::new();
        let outcomes = transaction
            .plan
            .as_ref()
            .filter(|_| hello.mode == Mode::Apply);
        let outcomes = outcomes.map(|_| Outcomes::of(&state, &run));
        if let Some(name) = &goes_on {
            if transaction.confirm_s.is_none() {
                state.take_back(name);
            }
            uncertain = host
                .resume()
                .map_err(|fault| Refusal::Unfit(fault.message))?;
            if let Some(outcomes) = &outcomes {
                uncertain.retain(|key| outcomes.get(key, 0).is_none());
            }
        }
        host.set_digest_key(hello.digest_key);
        let inbox = Rc::new(inbox);
        let spool = (hello.mode == Mode::Apply).then(|| state.clone());
        host.set_contents(Box::new(Spool::new(out.clone(), inbox.clone(), spool)));
        let ready = Ready {
            protocol: PROTOCOL,
            uid: rustix::process::geteuid().as_raw(),
            machine_id,
            recovered,
            pending: pending.keys().cloned().collect(),
        };
        // Nothing has begun: a controller that is gone already is found out by the end of its messages.
        let _ = out.send(&FromHost::Ready(ready));
        if host.is_looked_after() {
            let _ = out.send(&FromHost::LookedAfter { run: run.clone() });
        }
        Ok(Self {
            host,
            mode: hello.mode,
            state,
            run,
            controller: hello.controller,
            earlier,
            lock,
            inbox,
            out: out.clone(),
            pending,
            stopped: BTreeMap::new(),
            finished: false,
            plan: hello.transaction.plan.clone(),
            outcomes,
            uncertain,
        })
    }

    fn run(mut self) -> io::Result<()> {
        let mut heard = Ok(());
        while let Ok(message) = self.inbox.messages.recv() {
            if self.inbox.deserted() && self.mode == Mode::Apply && self.plan.is_none() {
                break;
            }
            heard = self.answer(message);
            if heard.is_err() {
                break;
            }
        }
        if self.mode == Mode::Apply && !self.finished {
            match self.plan {
                // It may go on; until then the host looks after it.
                Some(_) => {
                    let _ = self.host.hold();
                }
                // The controller went away: nobody can say that the change is good.
                None => drop(self.undo()),
            }
        }
        heard
    }

    fn answer(&mut self, message: ToHost) -> io::Result<()> {
        let reply = match message {
            ToHost::Task(task) => FromHost::Done(Box::new(self.task(&task)?)),
            ToHost::Clear(lane) => {
                self.stopped.remove(&lane);
                return Ok(());
            }
            ToHost::Handled(handler) => {
                self.handled(&handler);
                return Ok(());
            }
            ToHost::Finish(Finish::Keep) if self.host.is_looked_after() => {
                self.finished = true;
                let _ = self.host.hold();
                self.lock = None;
                FromHost::Armed {
                    run: self.run.clone(),
                }
            }
            ToHost::Finish(how) => FromHost::Finished(self.finish(how)),
            ToHost::Confirm { run } if is_run_name(&run) => {
                FromHost::Finished(self.state.confirm(&run))
            }
            ToHost::Confirm { run } => FromHost::Finished(not_found(&run)),
            ToHost::Rollback { run } => FromHost::Finished(self.rollback(&run)),
            ToHost::Standing => FromHost::Standing(self.state.standing()),
            ToHost::Repair => self.standing_after(self.state.repair()),
            ToHost::Unlock { run } => self.standing_after(self.state.unlock(&run)),
            ToHost::Journal => FromHost::Journal(self.state.journaled()),
            // A second hello and parts that nobody asked for mean nothing.
            ToHost::Hello(_) | ToHost::Blob { .. } | ToHost::Alive => return Ok(()),
        };
        self.out.send(&reply)
    }

    fn task(&mut self, task: &Task) -> io::Result<Outcome> {
        let began = Instant::now();
        let stopped = self.stopped.get(&task.lane);
        if stopped.is_some_and(|group| *group != task.group) {
            return Ok(outcome(task, Status::NotReached, Map::new()));
        }
        if let Some(only_if) = &task.only_if
            && !only_if.notified
            && !self.pending.contains_key(&only_if.handler)
        {
            return Ok(outcome(task, Status::NotNotified, Map::new()));
        }
        if let Some(outcome) = self.told(task) {
            return Ok(outcome);
        }
        self.out.send(&FromHost::Started { id: task.id })?;
        self.inbox.signs.busy.store(true, Ordering::Release);
        let done = self.perform(task);
        self.inbox.signs.busy.store(false, Ordering::Release);
        let mut effects = self.host.end();
        let judged = done.and_then(|report| {
            let status = judge(task, &report, !effects.is_empty());
            self.notify(task, status).map(|()| (status, report.fields))
        });
        let (status, mut fields) = judged.unwrap_or_else(|fault| {
            let mut fields = fault.fields;
            fields.insert("failed".to_owned(), true.into());
            fields.insert("msg".to_owned(), fault.message.into());
            (Status::Failed, fields)
        });
        // A plan that cannot say more may still say that something would change.
        let would = status == Status::Unknown && fields.get("changed") == Some(&true.into());
        let changed =
            would || status == Status::Changed || status == Status::Failed && !effects.is_empty();
        fields.insert("changed".to_owned(), changed.into());
        if status == Status::Skipped {
            fields.insert("skipped".to_owned(), true.into());
        }
        if status == Status::Failed && !task.ignore_errors {
            self.stopped.insert(task.lane, task.group);
        }
        fit::effects(&mut effects, &mut fields);
        fit::result(&mut fields);
        let took_us = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        let outcome = Outcome {
            effects,
            took_us,
            ..outcome(task, status, fields)
        };
        let over = !matches!(status, Status::Failed | Status::NotReached);
        if let (true, true, Some(outcomes)) = (over, self.host.begun(), &mut self.outcomes)
            && let Err(fault) = outcomes.keep(&task.key, &outcome, task.no_log)
        {
            let said = Map::from_iter([("msg".to_owned(), fault.message.into())]);
            self.stopped.insert(task.lane, task.group);
            return Ok(Outcome {
                effects: outcome.effects,
                ..self::outcome(task, Status::Failed, said)
            });
        }
        Ok(outcome)
    }

    /// How things stand behind an attempt to change that.
    fn standing_after(&self, done: Result<(), Fault>) -> FromHost {
        match done {
            Ok(()) => FromHost::Standing(self.state.standing()),
            Err(fault) => FromHost::Refused(Refusal::Unfit(fault.message)),
        }
    }

    /// What is known already of a task of a run that goes on.
    fn told(&mut self, task: &Task) -> Option<Outcome> {
        let outcomes = self.outcomes.as_ref()?;
        if let Some(outcome) = outcomes.get(&task.key, task.id) {
            if let Some(only_if) = &task.only_if {
                self.pending.remove(&only_if.handler);
            }
            return Some(outcome);
        }
        if !self.uncertain.contains(&task.key) {
            return None;
        }
        let fields = json!({
            "failed": true, "changed": true, "uncertain": true,
            "msg": "it was under way when the run was cut off, and what came of it is not known; it is not done again",
        });
        self.stopped.insert(task.lane, task.group);
        let fields = fields.as_object().cloned().unwrap_or_default();
        Some(outcome(task, Status::Failed, fields))
    }

    fn perform(&mut self, task: &Task) -> Result<Report, Fault> {
        if self.finished {
            return Err(Fault::new(
                "the run has ended on this host, and a task came after its end",
            ));
        }
        let module = module::find(&task.module)
            .ok_or_else(|| Fault::new(format!("this helper has no module `{}`", task.module)))?;
        let args: Value = serde_json::from_str(&task.args.0)
            .map_err(|error| Fault::new(format!("the arguments cannot be read: {error}")))?;
        self.host.begin(task)?;
        if let Some(seconds) = task.background_s {
            return self.host.start_job(task, seconds);
        }
        guarded(module.name, || (module.run)(args, &mut self.host))
    }

    /// Keeps what a change notifies and forgets what a handler has done.
    fn notify(&mut self, task: &Task, status: Status) -> Result<(), Fault> {
        let before = self.pending.clone();
        // A plan cannot say whether an unknown task changes something: as a rule it does.
        let changes =
            status == Status::Changed || status == Status::Unknown && task.changed != Some(false);
        if changes {
            self.pending.extend(
                task.notify
                    .iter()
                    .map(|handler| (handler.clone(), self.run.clone())),
            );
        }
        if let Some(only_if) = &task.only_if {
            self.pending.remove(&only_if.handler);
        }
        let real = self.mode == Mode::Apply && task.check != Some(true);
        if real && self.pending != before {
            self.state.set_pending(&self.pending)
        } else {
            Ok(())
        }
    }

    /// Forgets a notification. One that stays on a full disk only makes its handler run once more.
    fn handled(&mut self, handler: &str) {
        if self.pending.remove(handler).is_some() && self.mode == Mode::Apply {
            let _ = self.state.set_pending(&self.pending);
        }
    }

    fn finish(&mut self, how: Finish) -> Undone {
        let state = match how {
            Finish::Undo => return self.undo(),
            // A conversation that shares a run ends for itself.
            Finish::Leave if self.lock.as_ref().is_some_and(Lock::is_joined) => self.host.keep(),
            Finish::Leave if self.plan.is_some() || self.host.is_looked_after() => {
                self.host.leave(self.controller)
            }
            Finish::Leave => self.host.keep(),
            Finish::Keep => self.host.keep(),
        };
        if how == Finish::Keep {
            // Armed for an effect that came to nothing.
            self.state.take_back(&self.run);
        }
        self.finished = true;
        self.lock = None;
        match state {
            Ok(state) => Undone {
                run: self.run.clone(),
                state,
                effects: Vec::new(),
                why: None,
            },
            Err(fault) => broken(&self.run, fault),
        }
    }

    fn undo(&mut self) -> Undone {
        if self.host.begun() {
            self.state.take_over(&self.run);
        }
        let mut undone = self.host.undo();
        for earlier in std::mem::take(&mut self.earlier).iter().rev() {
            let own = rollback_one(&self.state, earlier);
            undone.state = undone.state.worse(own.state);
            undone.effects.extend(own.effects);
        }
        undone.run.clone_from(&self.run);
        self.forget(&mut undone);
        self.finished = true;
        self.lock = None;
        undone
    }

    fn rollback(&mut self, run: &str) -> Undone {
        if self.lock.is_none() {
            return broken(
                run,
                Fault::new(
                    "a rollback needs the host's lock, which this conversation does not hold",
                ),
            );
        }
        if !is_run_name(run) {
            return not_found(run);
        }
        self.state.take_over(run);
        let mut undone = rollback(&self.state, run);
        self.forget(&mut undone);
        undone
    }

    fn forget(&mut self, undone: &mut Undone) {
        if self.mode != Mode::Apply {
            return;
        }
        if let Err(fault) = forget_pending(&self.state, &undone.run) {
            undone.effects.push(fleet_wire::UndoneEffect {
                effect: "pending handlers".to_owned(),
                problem: Some(fault.message),
            });
        }
        self.pending = self.state.pending();
    }
}

/// Runs a task that was left running, in a process of its own. `dir` has what the task is.
///
/// # Errors
/// When it cannot begin, or what it came to cannot be written.
pub fn job(dir: &Path) -> io::Result<()> {
    run_job(dir, |task, host| {
        let module = module::find(&task.module)
            .ok_or_else(|| Fault::new(format!("this helper has no module `{}`", task.module)))?;
        let args: Value = serde_json::from_str(&task.args.0)
            .map_err(|error| Fault::new(format!("the arguments cannot be read: {error}")))?;
        guarded(module.name, || (module.run)(args, host))
    })
}

fn judge(task: &Task, report: &Report, effects: bool) -> Status {
    match (report.status, task.changed) {
        (Some(status @ (Status::Skipped | Status::Unknown)), _) => status,
        (_, Some(true)) => Status::Changed,
        (_, Some(false)) => Status::Ok,
        (Some(status), None) => status,
        (None, None) if effects => Status::Changed,
        (None, None) => Status::Ok,
    }
}

fn not_found(run: &str) -> Undone {
    Undone {
        run: run.to_owned(),
        state: UndoneState::NotFound,
        effects: Vec::new(),
        why: None,
    }
}

/// A plan is applied once, by one run.
fn once(state: &State, plan: &str, hello: &Hello, earlier: &[String]) -> Result<(), Refusal> {
    let Some(Applied { run, controller }) = state.applied(plan) else {
        return Ok(());
    };
    // Its own controller may come in several conversations: behind a boot, or for another name of this machine.
    let own = run == hello.run && (hello.transaction.resume || controller == hello.controller);
    let ended = state.journaled().into_iter().find(|known| known.run == run);
    let undone = ended
        .as_ref()
        .is_some_and(|known| known.state.starts_with("roll"));
    match own && (!undone || earlier.is_empty()) {
        true => Ok(()),
        false => Err(Refusal::Applied {
            state: ended.map_or_else(|| "forgotten".to_owned(), |known| known.state),
            run,
        }),
    }
}

fn outcome(task: &Task, status: Status, fields: Map<String, Value>) -> Outcome {
    Outcome {
        id: task.id,
        status,
        result: Json(Value::Object(fields).to_string()),
        effects: Vec::new(),
        took_us: 0,
    }
}

fn broken(run: &str, fault: Fault) -> Undone {
    let effect = fleet_wire::UndoneEffect {
        effect: "the journal".to_owned(),
        problem: Some(fault.message),
    };
    Undone {
        run: run.to_owned(),
        state: UndoneState::RollbackFailed,
        effects: vec![effect],
        why: None,
    }
}

/// Runs a module so that its panic is a failure of its task, and not the end of the run without an undo.
fn guarded(module: &str, run: impl FnOnce() -> Result<Report, Fault>) -> Result<Report, Fault> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let said = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied());
        let said = said.unwrap_or("no reason is known");
        Err(Fault::new(format!(
            "the module `{module}` broke down, which is a defect of fleetctl: {said}"
        )))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_failed_task() {
        let fault = guarded("copy", || panic!("index {} is out of range", 3)).unwrap_err();
        assert_eq!(
            fault.message,
            "the module `copy` broke down, which is a defect of fleetctl: index 3 is out of range"
        );
    }

    #[test]
    fn a_frame_over_the_limit_is_not_read() {
        let mut huge = &[0xff, 0xff, 0xff, 0xff, 0][..];
        assert!(next(&mut huge).is_none());
        let mut torn = &[0, 0, 0, 9, 1, 2][..];
        assert!(next(&mut torn).is_none());
    }
}
