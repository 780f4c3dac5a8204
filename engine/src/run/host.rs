//! One host's way through a run: its channel, what is in flight on it, and how it ends.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

use fleet_wire::{Finish, FromHost, Hello, Mode, Outcome, PROTOCOL, Refusal, ToHost, Undone};

use super::{flight::Flights, payload::Payload, shared::Shared};
use crate::{
    event::{Event, HostEnd, TaskEnded},
    transport::{self, Address, Become, Receiver, Sender},
    variables::{PendingId, Variable},
};

/// Tasks sent ahead of their answers at the most, so that memory stays bounded on both sides.
const WINDOW: usize = 256;

/// A host that is connected.
pub(super) struct Host {
    pub(super) shared: Arc<Shared>,
    pub(super) name: String,
    sender: Sender,
    receiver: Receiver,
    pub(super) flights: Flights,
    /// Contents that tasks in flight may ask for, by hash.
    pub(super) contents: HashMap<String, Payload>,
    pub(super) next_task: u32,
    pub(super) next_group: u32,
    /// Handlers whose notification the controller knows of.
    pub(super) notified: BTreeSet<String>,
    /// The group in which each handler was last sent: what lands before it is the helper's to weigh.
    pub(super) handlers_sent: HashMap<String, u32>,
    /// Effects that a plan showed for each task, by task and item; none where nothing was planned.
    pub(super) planned: Option<Arc<super::PlannedEffects>>,
    pub(super) changed: bool,
}

/// Why a host goes no further.
#[derive(Debug)]
pub(super) enum Stop {
    /// A task failed, and was told.
    Failed,
    /// `meta: end_host` or `end_play`.
    Ended,
    /// The channel broke.
    Lost(String),
}

impl Host {
    /// Connects and says hello.
    ///
    /// # Errors
    /// How the host ended before it began.
    pub(super) async fn connect(
        shared: Arc<Shared>,
        name: String,
        address: &Address,
        r#become: Option<&Become>,
        state_dir: Option<String>,
        mode: Mode,
    ) -> Result<Self, HostEnd> {
        let started = Instant::now();
        let channel = transport::connect(address, r#become, &shared.settings.transport)
            .await
            .map_err(|problem| match problem.is_unreachable() {
                true => HostEnd::Unreachable {
                    message: problem.to_string(),
                },
                false => HostEnd::Refused {
                    message: problem.to_string(),
                    person: false,
                },
            })?;
        let uploaded = channel.uploaded;
        let (sender, receiver) = channel.split();
        let mut host = Self {
            shared,
            name,
            sender,
            receiver,
            flights: Flights::default(),
            contents: HashMap::new(),
            next_task: 0,
            next_group: 0,
            notified: BTreeSet::new(),
            handlers_sent: HashMap::new(),
            planned: None,
            changed: false,
        };
        let hello = Hello {
            protocol: PROTOCOL,
            mode,
            run: host.shared.run.clone(),
            who: host.shared.settings.who.clone(),
            state_dir,
            lock_timeout_ms: u64::try_from(host.shared.settings.lock_timeout.as_millis())
                .unwrap_or(u64::MAX),
        };
        let lost = |message: String| HostEnd::Unreachable { message };
        host.send(&ToHost::Hello(hello))
            .await
            .map_err(|stop| lost(stop.to_string()))?;
        match host
            .receive()
            .await
            .map_err(|stop| lost(stop.to_string()))?
        {
            FromHost::Ready(ready) => {
                host.shared
                    .emit(Event::Connected {
                        host: host.name.clone(),
                        took: started.elapsed(),
                        uploaded,
                        recovered: ready.recovered,
                        pending: ready.pending.clone(),
                    })
                    .await;
                host.notified.extend(ready.pending);
                Ok(host)
            }
            FromHost::Refused(refusal) => Err(refused(refusal)),
            _ => Err(lost("the helper answered out of turn".to_owned())),
        }
    }

    pub(super) async fn send(&mut self, message: &ToHost) -> Result<(), Stop> {
        self.sender
            .send(message)
            .await
            .map_err(|problem| Stop::Lost(problem.to_string()))
    }

    pub(super) async fn receive(&mut self) -> Result<FromHost, Stop> {
        self.sender
            .flush()
            .await
            .map_err(|problem| Stop::Lost(problem.to_string()))?;
        match self.receiver.next().await {
            Ok(Some(message)) => Ok(message),
            Ok(None) => Err(Stop::Lost("the helper ended without a word".to_owned())),
            Err(problem) => Err(Stop::Lost(problem.to_string())),
        }
    }

    /// Takes in the next message of the host.
    async fn step(&mut self) -> Result<(), Stop> {
        match self.receive().await? {
            FromHost::Done(outcome) => self.landed(*outcome).await,
            FromHost::Need { sha256 } => self.supply(&sha256).await,
            FromHost::Started { id } => {
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
            _ => Err(Stop::Lost("the helper answered out of turn".to_owned())),
        }
    }

    async fn supply(&mut self, sha256: &str) -> Result<(), Stop> {
        let Some(content) = self.contents.get(sha256).cloned() else {
            return Err(Stop::Lost(format!(
                "the host asked for a content that was never offered ({sha256})"
            )));
        };
        let unreadable = |problem: std::io::Error| Stop::Lost(problem.to_string());
        for part in content.parts().map_err(unreadable)? {
            let (bytes, last) = part.map_err(unreadable)?;
            let part = ToHost::Blob {
                sha256: sha256.to_owned(),
                bytes,
                last,
            };
            self.send(&part).await?;
        }
        Ok(())
    }

    async fn landed(&mut self, outcome: Outcome) -> Result<(), Stop> {
        let Some(flight) = self.flights.land(outcome) else {
            return Ok(());
        };
        let judged = super::verdict::judge(&self.shared, &self.name, flight);
        self.changed |= judged.changed;
        let sent = &self.handlers_sent;
        let later = |title: &String| sent.get(title).is_none_or(|group| *group < judged.group);
        self.notified
            .extend(judged.notify.into_iter().filter(later));
        self.flights.tell(judged.group, judged.events);
        for event in self.flights.ready() {
            self.shared.emit(event).await;
        }
        if judged.failed {
            Err(Stop::Failed)
        } else {
            Ok(())
        }
    }

    /// Tells `events` in their order behind what is in flight.
    pub(super) async fn tell(&mut self, events: Vec<Event>) {
        self.next_group += 1;
        self.flights.tell(self.next_group, events);
        for event in self.flights.ready() {
            self.shared.emit(event).await;
        }
    }

    /// Waits for what `pending` stands for.
    pub(super) async fn settle(&mut self, pending: PendingId) -> Result<(), Stop> {
        let Some(group) = self.shared.state(&self.name).group(pending) else {
            return self.settle_elsewhere().await;
        };
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
        tokio::time::sleep(Duration::from_millis(5)).await;
        Ok(())
    }

    /// Waits for everything in flight.
    pub(super) async fn drain(&mut self) -> Result<(), Stop> {
        while !self.flights.is_empty() {
            self.step().await?;
        }
        self.contents.clear();
        Ok(())
    }

    /// Makes room for another task.
    pub(super) async fn room(&mut self) -> Result<(), Stop> {
        while self.flights.len() >= WINDOW {
            self.step().await?;
        }
        Ok(())
    }

    /// Ends the run on this host.
    pub(super) async fn finish(&mut self, finish: Finish) -> Result<Undone, Stop> {
        self.send(&ToHost::Finish(finish)).await?;
        loop {
            match self.receive().await? {
                FromHost::Finished(undone) => return Ok(undone),
                // What was still in flight behind a failure was not reached; nothing is to be told.
                FromHost::Done(_) | FromHost::Started { .. } => {}
                FromHost::Need { sha256 } => self.supply(&sha256).await?,
                _ => return Err(Stop::Lost("the helper answered out of turn".to_owned())),
            }
        }
    }

    /// Undoes a past run.
    pub(super) async fn rollback(&mut self, run: &str) -> Result<Undone, Stop> {
        self.send(&ToHost::Rollback {
            run: run.to_owned(),
        })
        .await?;
        match self.receive().await? {
            FromHost::Finished(undone) => Ok(undone),
            _ => Err(Stop::Lost("the helper answered out of turn".to_owned())),
        }
    }

    /// The host's own account of its runs.
    pub(super) async fn journal(&mut self) -> Result<Vec<fleet_wire::Journaled>, Stop> {
        self.send(&ToHost::Journal).await?;
        match self.receive().await? {
            FromHost::Journal(runs) => Ok(runs),
            _ => Err(Stop::Lost("the helper answered out of turn".to_owned())),
        }
    }

    /// A task failed on the controller's side: an undefined variable, an `assert`, a missing file.
    pub(super) async fn fail(&mut self, ended: TaskEnded) -> Result<(), Stop> {
        let ignored = ended.ignored;
        self.tell(vec![Event::TaskEnded(Box::new(ended))]).await;
        if ignored { Ok(()) } else { Err(Stop::Failed) }
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
}

impl std::fmt::Display for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Failed => f.write_str("a task failed"),
            Self::Ended => f.write_str("the play ended here"),
            Self::Lost(why) => f.write_str(why),
        }
    }
}

fn refused(refusal: Refusal) -> HostEnd {
    match refusal {
        Refusal::Locked(locked) => HostEnd::Locked {
            message: format!(
                "run {} of {} has held this host since {}; wait for it with `--lock-timeout 5m`",
                locked.run, locked.who, locked.since
            ),
        },
        Refusal::Protocol(theirs) => HostEnd::Refused {
            message: format!(
                "the helper speaks protocol {theirs}, and this fleetctl {PROTOCOL}; build both anew"
            ),
            person: false,
        },
        Refusal::Unfit(message) => HostEnd::Refused {
            message,
            person: false,
        },
        Refusal::Unrecovered(undone) => HostEnd::Refused {
            message: format!(
                "run {} was cut off here and could not be undone: {}",
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

/// How long a task took, as the host measured it.
pub(super) fn took(outcome: &Outcome) -> Duration {
    Duration::from_micros(outcome.took_us)
}
