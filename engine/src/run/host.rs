//! One host's way through a play: what is in flight for it, what it was notified of, and why it stops.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
    time::Duration,
};

use fleet_wire::{Outcome, Status, ToHost};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::{
    batch::Batch,
    flight::{Flight, Flights},
    link::{Ear, Heard, Link},
    payload::Payload,
    shared::Shared,
};
use crate::{
    event::{Event, HostEnd, TaskEnded, TaskInfo},
    playbook::{Part, Position, Role, Task},
    variables::{PendingId, Variable},
};

/// Tasks sent ahead of their answers at the most, so that memory stays bounded on both sides.
const WINDOW: usize = 256;

/// A host on its way through a play.
pub(super) struct Host {
    pub(super) shared: Arc<Shared>,
    pub(super) name: String,
    pub(super) batch: Arc<Batch>,
    /// Its line of tasks, on whatever machine they run.
    pub(super) lane: u32,
    ear: Ear,
    heard: mpsc::UnboundedReceiver<Heard>,
    /// Where the tasks in flight are. Tasks for another machine wait until they are over.
    at_work: Option<Arc<Link>>,
    pub(super) flights: Flights,
    /// Flights that are looked at before they are judged, as they have landed.
    returned: HashMap<u32, Flight>,
    pub(super) next_group: u32,
    /// Handlers whose notification the controller knows of.
    pub(super) notified: BTreeSet<String>,
    /// The group in which each handler was last sent: what lands before it is the helper's to weigh.
    pub(super) handlers_sent: HashMap<String, u32>,
    /// Effects that a plan showed for each task, by task and item; none where nothing was planned.
    pub(super) planned: Option<Arc<super::PlannedEffects>>,
    /// The blocks around the task that is on: the part that runs, and whether they have a `rescue` or an `always`.
    pub(super) guards: Vec<Guard>,
    /// Handlers of roles that were included on the way.
    pub(super) handlers: Vec<Arc<Task>>,
    /// Included roles whose variables the rest of the play sees.
    pub(super) exposed: Vec<Arc<Role>>,
    /// Roles that it has gone through, and those of which something was done.
    pub(super) completed: HashSet<u64>,
    pub(super) ran: HashSet<u64>,
    /// Where it is in the play.
    pub(super) place: Vec<u32>,
    /// Its leave to work beside others; none while it waits for them.
    pub(super) permit: Option<OwnedSemaphorePermit>,
    /// The last task that failed, for `ansible_failed_task`.
    pub(super) failure: Option<Failure>,
    /// Tasks are passed over until the one of `--start-at-task`.
    pub(super) passing: bool,
    /// It is running a handler.
    pub(super) in_handler: bool,
    /// `meta: clear_host_errors` has made up for its failures.
    pub(super) forgiven: bool,
    /// How often each item of each task was sent.
    sent: Mutex<HashMap<(usize, usize), u32>>,
}

/// A block around a task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Guard {
    pub(super) part: Part,
    pub(super) rescue: bool,
    pub(super) always: bool,
}

/// A task that failed, and how.
#[derive(Clone)]
pub(super) struct Failure {
    pub(super) task: Arc<Task>,
    pub(super) info: Arc<TaskInfo>,
    pub(super) result: serde_json::Value,
}

/// Why a host goes no further.
#[derive(Debug)]
pub(super) enum Stop {
    /// A task failed, and was told.
    Failed,
    /// The same, and no `rescue` or `always` makes up for it.
    Broken,
    /// The host could not be reached for a task, which was told.
    Unreachable(String),
    /// `meta: end_host`, `end_play`, `end_batch`.
    Ended,
    /// `meta: end_role`
    RoleEnded,
    /// The channel broke in the middle.
    Lost(String),
    /// The host will not work with us: it is locked, or not fit.
    Refused(HostEnd),
    /// The host is not as it was when the plan was made.
    Stale(String),
}

impl Host {
    pub(super) fn new(shared: &Arc<Shared>, name: &str, batch: &Arc<Batch>) -> Self {
        let (ear, heard) = mpsc::unbounded_channel();
        Self {
            name: name.to_owned(),
            batch: Arc::clone(batch),
            lane: shared.next_lane.fetch_add(1, Ordering::Relaxed),
            ear,
            heard,
            at_work: None,
            flights: Flights::default(),
            returned: HashMap::new(),
            next_group: shared.state(name).next_group(),
            notified: BTreeSet::new(),
            handlers_sent: HashMap::new(),
            planned: shared.settings.planned.clone(),
            guards: Vec::new(),
            handlers: Vec::new(),
            exposed: Vec::new(),
            completed: HashSet::new(),
            ran: HashSet::new(),
            place: Vec::new(),
            permit: None,
            failure: None,
            passing: shared.settings.start_at.is_some(),
            in_handler: false,
            forgiven: false,
            sent: Mutex::default(),
            shared: Arc::clone(shared),
        }
    }

    /// Counts an item of a task that is sent.
    pub(super) fn count_sent(&self, task: usize, item: usize) -> u32 {
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        let count = sent.entry((task, item)).or_default();
        *count += 1;
        *count
    }

    /// Turns to a machine: what is in flight elsewhere is over then.
    pub(super) async fn turn_to(&mut self, link: &Arc<Link>) -> Result<(), Stop> {
        if let Some(now) = &self.at_work
            && !Arc::ptr_eq(now, link)
        {
            self.drain().await?;
        }
        self.at_work = Some(Arc::clone(link));
        Ok(())
    }

    /// Turns away from its machine, whose connection is about to go.
    pub(super) fn forget_link(&mut self) {
        self.at_work = None;
    }

    /// Sends a task to the machine that is turned to.
    pub(super) async fn send(
        &mut self,
        task: fleet_wire::Task,
        content: Option<Payload>,
    ) -> Result<(), Stop> {
        let Some(link) = &self.at_work else {
            return Err(Stop::Lost("no connection was made".to_owned()));
        };
        link.task(task, content, &self.ear)
            .await
            .map_err(Stop::Lost)
    }

    /// Takes in the next message about this host's tasks.
    pub(super) async fn step(&mut self) -> Result<(), Stop> {
        if let Some(link) = &self.at_work {
            link.flush().await;
        }
        match self.heard.recv().await {
            Some(Heard::Done(outcome)) => self.landed(outcome).await,
            Some(Heard::Started(id)) => {
                if let Some(task) = self.flights.info(id) {
                    self.shared
                        .emit(Event::TaskStarted {
                            host: self.name.clone(),
                            task,
                        })
                        .await;
                }
                Ok(())
            }
            Some(Heard::Lost(why)) => Err(Stop::Lost(why)),
            None => Err(Stop::Lost("the connection was closed".to_owned())),
        }
    }

    async fn landed(&mut self, outcome: Outcome) -> Result<(), Stop> {
        let Some(flight) = self.flights.land(outcome) else {
            return Ok(());
        };
        if flight.returns {
            self.flights.tell(flight.group, Vec::new());
            self.returned.insert(flight.group, flight);
            return Ok(());
        }
        self.over(flight).await
    }

    /// A flight is over: judges it, and tells what can be told.
    pub(super) async fn over(&mut self, flight: Flight) -> Result<(), Stop> {
        let task = Arc::clone(&flight.task);
        let info = Arc::clone(&flight.info);
        let judged = super::verdict::judge(&self.shared, &self.name, flight);
        let sent = &self.handlers_sent;
        let later = |title: &String| sent.get(title).is_none_or(|group| *group < judged.group);
        self.notified
            .extend(judged.notify.into_iter().filter(later));
        if judged.events.iter().any(is_done) {
            self.ran
                .extend(task.directives.role.as_ref().map(|role| role.instance));
        }
        self.flights.tell(judged.group, judged.events);
        let moved = self.shared.state(&self.name).take_moved();
        if judged.failed {
            // What was told behind it was not to be reached.
            self.flights.forget_behind(judged.group);
            self.failure = Some(Failure {
                task,
                info,
                result: judged.result,
            });
        }
        self.tell_ready().await;
        if !moved.is_empty() {
            return Err(Stop::Stale(moved.join("; ")));
        }
        if judged.failed {
            Err(Stop::Failed)
        } else {
            Ok(())
        }
    }

    async fn tell_ready(&mut self) {
        for event in self.flights.ready() {
            self.shared.emit(event).await;
        }
    }

    /// A flight that came back without being judged.
    pub(super) async fn back(&mut self, group: u32) -> Result<Option<Flight>, Stop> {
        while self.flights.contains(group) {
            self.step().await?;
        }
        Ok(self.returned.remove(&group))
    }

    /// Tells `events` in their order behind what is in flight.
    pub(super) async fn tell(&mut self, events: Vec<Event>) {
        let group = self.new_group();
        self.flights.tell(group, events);
        self.tell_ready().await;
    }

    pub(super) fn new_group(&mut self) -> u32 {
        self.next_group = self.shared.state(&self.name).next_group();
        self.next_group
    }

    /// Waits for what `pending` stands for.
    pub(super) async fn settle(&mut self, pending: PendingId) -> Result<(), Stop> {
        let Some(group) = self.shared.state(&self.name).group(pending) else {
            return self.settle_elsewhere().await;
        };
        if !self.flights.contains(group) {
            // Nobody is on the way with it any more.
            self.shared.state(&self.name).settle();
        }
        while self.flights.contains(group) {
            self.step().await?;
        }
        Ok(())
    }

    /// Waits a little for a result of another host. Its own results come in meanwhile: two hosts
    /// that look at each other must both go on.
    async fn settle_elsewhere(&mut self) -> Result<(), Stop> {
        if !self.flights.is_empty() {
            return self.step().await;
        }
        let batch = Arc::clone(&self.batch);
        self.permit = None;
        let _ = tokio::time::timeout(Duration::from_millis(20), batch.next_move()).await;
        self.take_permit().await;
        Ok(())
    }

    /// Takes its leave to work.
    pub(super) async fn take_permit(&mut self) {
        // The semaphore is never closed; without a permit a host would only start early.
        self.permit = Arc::clone(&self.shared.forks).acquire_owned().await.ok();
    }

    /// Waits for everything in flight.
    pub(super) async fn drain(&mut self) -> Result<(), Stop> {
        while !self.flights.is_empty() {
            self.step().await?;
        }
        Ok(())
    }

    /// After a failure: nothing is in flight, and the machine takes tasks again.
    pub(super) async fn recover(&mut self) -> Result<(), Stop> {
        loop {
            match self.drain().await {
                Ok(()) => break,
                Err(Stop::Failed) => {}
                Err(other) => return Err(other),
            }
        }
        self.shared.state(&self.name).settle();
        if let Some(link) = &self.at_work {
            link.send(&ToHost::Clear(self.lane))
                .await
                .map_err(Stop::Lost)?;
        }
        Ok(())
    }

    /// Makes room for another task.
    pub(super) async fn room(&mut self) -> Result<(), Stop> {
        while self.flights.len() >= WINDOW {
            self.step().await?;
        }
        Ok(())
    }

    /// A task failed on the controller's side: an undefined variable, an `assert`, a missing file.
    pub(super) async fn fail(&mut self, task: &Arc<Task>, ended: TaskEnded) -> Result<(), Stop> {
        let ignored = ended.ignored;
        let failure = Failure {
            task: Arc::clone(task),
            info: Arc::clone(&ended.task),
            result: ended.result.clone(),
        };
        self.tell(vec![Event::TaskEnded(Box::new(ended))]).await;
        if ignored {
            return Ok(());
        }
        self.failure = Some(failure);
        Err(Stop::Failed)
    }

    /// Whether a failure here is taken over by a `rescue` at once.
    pub(super) fn is_rescued(&self) -> bool {
        for guard in self.guards.iter().rev() {
            match guard.part {
                Part::Body if guard.rescue => return true,
                Part::Body | Part::Rescue if guard.always => return false,
                _ => {}
            }
        }
        false
    }

    /// Whether a failure of what is in flight may be caught: then nothing behind it may have left a trace.
    pub(super) fn is_guarded(&self) -> bool {
        self.guards.iter().any(|guard| guard.rescue || guard.always)
    }

    /// What is in flight, for a message about a broken link.
    pub(super) fn in_flight(&self) -> String {
        self.flights.first().map_or_else(String::new, |task| {
            format!(" while `{}` ({}) was under way", task.name, task.place)
        })
    }

    pub(super) fn pending(&self, group: u32) -> Variable {
        Variable::Pending(self.shared.state(&self.name).pending(group))
    }

    /// Where it is in the play, for events.
    pub(super) fn position(&self) -> Position {
        self.place.as_slice().into()
    }
}

impl std::fmt::Display for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Failed | Self::Broken => f.write_str("a task failed"),
            Self::Ended => f.write_str("the play ended here"),
            Self::RoleEnded => f.write_str("the role ended here"),
            Self::Lost(why) | Self::Unreachable(why) | Self::Stale(why) => f.write_str(why),
            Self::Refused(_) => f.write_str("the host refused to work"),
        }
    }
}

/// Whether an event says that something was done.
fn is_done(event: &Event) -> bool {
    matches!(event, Event::TaskEnded(ended) if ended.status != Status::Skipped)
}

/// How long a task took, as the host measured it.
pub(super) fn took(outcome: &Outcome) -> Duration {
    Duration::from_micros(outcome.took_us)
}
