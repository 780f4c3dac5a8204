//! A connection to a helper, shared by all lanes that work on its machine: a host's own, and those of hosts that delegate
//! to it.

use std::{
    collections::HashMap,
    io,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use fleet_wire::{
    Finish, FromHost, Hello, Mode, Outcome, PROTOCOL, Refusal, ToHost, Transaction, Undone,
};
use tokio::sync::{Mutex as AsyncMutex, mpsc, oneshot};

use super::{Confirm, connection::Reach, payload::Payload, shared::Shared};
use crate::{
    event::{Event, HostEnd},
    transport::{self, Receiver, Sender},
};

/// What a lane hears of its tasks.
pub(super) enum Heard {
    /// A task has begun.
    Started(u32),
    /// A task has ended.
    Done(Outcome),
    /// The link broke; nothing more comes from it.
    Lost(String),
}

/// Lets a host that looks after the run know that its controller is there.
async fn breathe(link: Weak<Link>, often: Duration) {
    loop {
        tokio::time::sleep(often).await;
        let Some(link) = link.upgrade().filter(|link| !link.is_lost()) else {
            return;
        };
        if link.send(&ToHost::Alive).await.is_err() {
            return;
        }
        link.flush().await;
    }
}

/// How a conversation ended.
pub(super) enum Finished {
    /// With this.
    Over(Undone),
    /// The host undoes the run of this name unless it is confirmed.
    Armed(String),
}

/// What is known of a run that its host looks after, when the link is gone, too.
pub(super) struct Watched {
    /// How the machine is reached.
    pub(super) reach: Reach,
    run: Mutex<Option<String>>,
}

impl Watched {
    /// The run's name in the host's journal; none where the host does not look after it.
    pub(super) fn run(&self) -> Option<String> {
        self.run
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// What holds a run's conversations with a host together.
fn transaction(settings: &super::Settings, name: &str, mode: Mode) -> Transaction {
    let saved = settings.saved.as_ref();
    let applies = mode == Mode::Apply;
    Transaction {
        plan: saved.filter(|_| applies).map(|saved| saved.hash.clone()),
        resume: saved.is_some_and(|saved| saved.resume),
        machine_id: saved.and_then(|saved| saved.identities.get(name)).cloned(),
        confirm_s: (applies && settings.confirm != Confirm::Never).then(|| {
            u32::try_from(settings.confirm_timeout.as_secs())
                .unwrap_or(u32::MAX)
                .max(1)
        }),
    }
}

/// Where a lane hears.
pub(super) type Ear = mpsc::UnboundedSender<Heard>;

/// A connection to a helper.
pub(super) struct Link {
    /// The helper runs as root there.
    pub(super) root: bool,
    /// How the machine is reached, and what it looks after.
    pub(super) watched: Arc<Watched>,
    mode: Mode,
    sender: AsyncMutex<Sender>,
    waiting: Mutex<Waiting>,
    lost: AtomicBool,
}

#[derive(Default)]
struct Waiting {
    /// Who hears of each task under way.
    tasks: HashMap<u32, Ear>,
    /// Contents that tasks under way may be asked for, by hash, with the number of those tasks.
    contents: HashMap<String, (Payload, usize)>,
    /// The content that goes with a task under way.
    offered: HashMap<u32, String>,
    /// Who waits for an answer that belongs to no task.
    answer: Option<oneshot::Sender<FromHost>>,
}

impl Link {
    /// Connects and says hello.
    ///
    /// # Errors
    /// How the host ended before it began.
    pub(super) async fn connect(
        shared: &Arc<Shared>,
        name: &str,
        reach: &Reach,
        mode: Mode,
    ) -> Result<Arc<Self>, HostEnd> {
        Self::reach_by(shared, name, reach, mode, &shared.settings.transport).await
    }

    /// The same with settings of its own for the way there.
    ///
    /// # Errors
    /// How the host ended before it began.
    pub(super) async fn reach_by(
        shared: &Shared,
        name: &str,
        reach: &Reach,
        mode: Mode,
        way: &transport::Settings,
    ) -> Result<Arc<Self>, HostEnd> {
        let started = Instant::now();
        let unreachable = |message: String| HostEnd::Unreachable { message };
        let settings = &shared.settings;
        let channel = transport::connect(&reach.address, reach.r#become.as_ref(), way)
            .await
            .map_err(|problem| match problem.is_unreachable() {
                true => unreachable(problem.to_string()),
                false => HostEnd::Refused {
                    message: problem.to_string(),
                    person: false,
                },
            })?;
        let uploaded = channel.uploaded;
        let (mut sender, mut receiver) = channel.split();
        let hello = Hello {
            protocol: PROTOCOL,
            mode,
            run: shared.run.clone(),
            controller: shared.controller,
            who: settings.who.clone(),
            state_dir: reach.state_dir.clone(),
            transaction: transaction(settings, name, mode),
            digest_key: settings.digest_key.as_ref().map(|key| key.of(name)),
            lock_timeout_ms: u64::try_from(settings.lock_timeout.as_millis()).unwrap_or(u64::MAX),
        };
        let broken = |problem: transport::ChannelError| unreachable(problem.to_string());
        sender.send(&ToHost::Hello(hello)).await.map_err(broken)?;
        sender.flush().await.map_err(broken)?;
        match receiver.next().await.map_err(broken)? {
            Some(FromHost::Ready(_)) if mode == Mode::Care => {}
            Some(FromHost::Ready(ready)) => {
                shared
                    .emit(Event::Connected {
                        host: name.to_owned(),
                        took: started.elapsed(),
                        uploaded,
                        identity: ready.machine_id,
                        recovered: ready.recovered,
                        pending: ready.pending.clone(),
                    })
                    .await;
                shared.state(name).notified_before(ready.pending);
            }
            Some(FromHost::Refused(refusal)) => return Err(refused(refusal)),
            Some(_) => return Err(unreachable("the helper answered out of turn".to_owned())),
            None => return Err(unreachable("the helper ended without a word".to_owned())),
        }
        let link = Arc::new(Self {
            root: reach.r#become.is_some(),
            watched: Arc::new(Watched {
                reach: reach.clone(),
                run: Mutex::default(),
            }),
            mode,
            sender: AsyncMutex::new(sender),
            waiting: Mutex::default(),
            lost: AtomicBool::new(false),
        });
        tokio::spawn(Arc::clone(&link).listen(receiver));
        if mode == Mode::Apply && settings.confirm != Confirm::Never {
            let often = settings
                .confirm_timeout
                .div_f32(4.0)
                .max(Duration::from_millis(200));
            tokio::spawn(breathe(Arc::downgrade(&link), often));
        }
        Ok(link)
    }

    /// Sends a task whose end `ear` is to hear of, and the content that it may ask for.
    ///
    /// # Errors
    /// When the link is gone.
    pub(super) async fn task(
        &self,
        task: fleet_wire::Task,
        content: Option<Payload>,
        ear: &Ear,
    ) -> Result<(), String> {
        {
            let mut waiting = self.waiting();
            waiting.tasks.insert(task.id, ear.clone());
            if let Some(content) = content {
                let sha256 = content.sha256.clone();
                waiting.offered.insert(task.id, sha256.clone());
                waiting.contents.entry(sha256).or_insert((content, 0)).1 += 1;
            }
        }
        self.send(&ToHost::Task(Box::new(task))).await
    }

    /// Sends a message; it may wait for others until [`Link::flush`].
    ///
    /// # Errors
    /// When the link is gone.
    pub(super) async fn send(&self, message: &ToHost) -> Result<(), String> {
        if self.lost.load(Ordering::Acquire) {
            return Err("the connection is gone".to_owned());
        }
        let mut sender = self.sender.lock().await;
        sender
            .send(message)
            .await
            .map_err(|problem| problem.to_string())
    }

    /// Sends what waits. A link that is gone tells its lanes so by itself.
    pub(super) async fn flush(&self) {
        let _ = self.sender.lock().await.flush().await;
    }

    /// Ends the run on this machine.
    ///
    /// # Errors
    /// When the link is gone.
    pub(super) async fn finish(&self, finish: Finish) -> Result<Finished, String> {
        match self.ask(&ToHost::Finish(finish)).await? {
            FromHost::Finished(undone) => Ok(Finished::Over(undone)),
            FromHost::Armed { run } => Ok(Finished::Armed(run)),
            _ => Err("the helper answered out of turn".to_owned()),
        }
    }

    /// Sends a message that has one answer.
    ///
    /// # Errors
    /// When the link is gone.
    pub(super) async fn ask(&self, message: &ToHost) -> Result<FromHost, String> {
        let (answer, answered) = oneshot::channel();
        self.waiting().answer = Some(answer);
        self.send(message).await?;
        self.flush().await;
        answered
            .await
            .map_err(|_| "the connection was lost".to_owned())
    }

    /// Whether the connection is gone.
    pub(super) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// Whether effects are performed here.
    pub(super) fn applies(&self) -> bool {
        self.mode == Mode::Apply
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands on what comes from the helper, to its end.
    async fn listen(self: Arc<Self>, mut receiver: Receiver) {
        let why = loop {
            match receiver.next().await {
                Ok(Some(FromHost::Need { sha256 })) => {
                    if let Err(why) = self.supply(&sha256).await {
                        break why;
                    }
                }
                Ok(Some(message)) => self.pass(message),
                Ok(None) => break "the helper ended without a word".to_owned(),
                Err(problem) => break problem.to_string(),
            }
        };
        self.lost.store(true, Ordering::Release);
        let waiting = std::mem::take(&mut *self.waiting());
        for ear in waiting.tasks.into_values() {
            // A lane that has gone needs to hear no more.
            let _ = ear.send(Heard::Lost(why.clone()));
        }
    }

    fn pass(&self, message: FromHost) {
        let mut waiting = self.waiting();
        match message {
            FromHost::Started { id } => {
                if let Some(ear) = waiting.tasks.get(&id) {
                    let _ = ear.send(Heard::Started(id));
                }
            }
            FromHost::LookedAfter { run } => {
                let watched = self.watched.run.lock();
                *watched.unwrap_or_else(PoisonError::into_inner) = Some(run);
            }
            FromHost::Done(outcome) => {
                if let Some(sha256) = waiting.offered.remove(&outcome.id)
                    && let Some((_, users)) = waiting.contents.get_mut(&sha256)
                {
                    *users -= 1;
                    if *users == 0 {
                        waiting.contents.remove(&sha256);
                    }
                }
                if let Some(ear) = waiting.tasks.remove(&outcome.id) {
                    let _ = ear.send(Heard::Done(*outcome));
                }
            }
            other => {
                if let Some(answer) = waiting.answer.take() {
                    let _ = answer.send(other);
                }
            }
        }
    }

    async fn supply(&self, sha256: &str) -> Result<(), String> {
        let content = self
            .waiting()
            .contents
            .get(sha256)
            .map(|(content, _)| content.clone());
        let Some(content) = content else {
            return Err(format!(
                "the host asked for a content that was never offered ({sha256})"
            ));
        };
        let unreadable = |problem: io::Error| problem.to_string();
        for part in content.parts().map_err(unreadable)? {
            let (bytes, last) = part.map_err(unreadable)?;
            let part = ToHost::Blob {
                sha256: sha256.to_owned(),
                bytes,
                last,
            };
            self.send(&part).await?;
        }
        self.flush().await;
        Ok(())
    }
}

fn refused(refusal: Refusal) -> HostEnd {
    let refused = |message| HostEnd::Refused {
        message,
        person: false,
    };
    match refusal {
        Refusal::Locked(locked) => HostEnd::Locked {
            message: format!(
                "run {} of {} has held this host since {}; wait for it with `--lock-timeout 5m`",
                locked.run, locked.who, locked.since
            ),
        },
        Refusal::Protocol(theirs) => refused(format!(
            "the helper speaks protocol {theirs}, and this fleetctl {PROTOCOL}; build both anew"
        )),
        Refusal::Unfit(message) => refused(message),
        Refusal::Identity { found } => HostEnd::Stale {
            message: format!(
                "it is another machine than the plan was made for (its machine-id is {found} now): plan again"
            ),
            undone: None,
        },
        Refusal::Applied { run, state } => HostEnd::Stale {
            message: format!(
                "this plan was applied here by run {run} already ({state}), and a plan is applied once: plan again"
            ),
            undone: None,
        },
        Refusal::Unrecovered(undone) => HostEnd::Refused {
            message: format!(
                "run {} was cut off here and could not be undone, so no other begins (`fleetctl host status` tells more, \
                 `fleetctl host repair` sets aside what is damaged): {}",
                undone.run,
                undone
                    .effects
                    .iter()
                    .filter_map(|effect| Some(format!(
                        "{}: {}",
                        effect.effect,
                        effect.problem.as_ref()?
                    )))
                    .collect::<Vec<_>>()
                    .join("; ")
            ),
            person: true,
        },
    }
}
