//! Errands: one thing asked of a host outside of a play. Facts, load tests, journals, rollbacks.

use std::sync::{Arc, atomic::Ordering};

use fleet_wire::{As, Finish, FromHost, Journaled, Json, Mode, Standing, Status, ToHost, Undone};
use tokio::sync::mpsc;

use super::{
    choice::Choice,
    connection,
    link::{Heard, Link},
    shared::{Place, Shared},
};
use crate::{event::HostEnd, playbook::Play};

/// A host that errands can be run on. The connection stays until it is dropped.
pub struct Errand {
    shared: Arc<Shared>,
    link: Arc<Link>,
}

impl Errand {
    /// Connects; as root where `root` is set, else as the login user.
    ///
    /// # Errors
    /// Why the host cannot be asked.
    pub(crate) async fn connect(
        shared: &Arc<Shared>,
        name: &str,
        root: bool,
        mode: Mode,
    ) -> Result<Self, HostEnd> {
        let play = reached_by(shared, name);
        let scope = shared.scope(
            name,
            Place {
                play: play.as_deref(),
                ..Place::default()
            },
        );
        let directives = play.as_ref().map(|play| &play.directives);
        let reach =
            connection::reach(shared, name, directives, &scope, root).map_err(|message| {
                HostEnd::Refused {
                    message,
                    person: false,
                }
            })?;
        let link = Link::connect(shared, name, &reach, mode).await?;
        Ok(Self {
            shared: Arc::clone(shared),
            link,
        })
    }

    /// Undoes a past run on this host, from the host's own journal.
    ///
    /// # Errors
    /// When the host is lost on the way.
    pub async fn rollback(&mut self, run: &str) -> Result<Undone, HostEnd> {
        let run = run.to_owned();
        match self.link.ask(&ToHost::Rollback { run }).await {
            Ok(FromHost::Finished(undone)) => Ok(undone),
            Ok(_) => Err(out_of_turn()),
            Err(why) => Err(lost(why)),
        }
    }

    /// How things stand with what fleetctl keeps on the host, after `what` was asked of it.
    ///
    /// # Errors
    /// When the host refuses, or is lost on the way.
    pub async fn standing(&mut self, what: &ToHost) -> Result<Standing, HostEnd> {
        match self.link.ask(what).await {
            Ok(FromHost::Standing(standing)) => Ok(standing),
            Ok(FromHost::Refused(fleet_wire::Refusal::Unfit(message))) => Err(HostEnd::Refused {
                message,
                person: false,
            }),
            Ok(_) => Err(out_of_turn()),
            Err(why) => Err(lost(why)),
        }
    }

    /// The runs in the host's journal, oldest first.
    ///
    /// # Errors
    /// When the host is lost on the way.
    pub async fn journal(&mut self) -> Result<Vec<Journaled>, HostEnd> {
        match self.link.ask(&ToHost::Journal).await {
            Ok(FromHost::Journal(runs)) => Ok(runs),
            Ok(_) => Err(out_of_turn()),
            Err(why) => Err(lost(why)),
        }
    }

    /// Runs a module that changes nothing, and returns its result.
    ///
    /// # Errors
    /// When the module fails, or the host is lost on the way.
    pub async fn module(
        &mut self,
        module: &str,
        args: &serde_json::Value,
    ) -> Result<serde_json::Value, HostEnd> {
        let id = self.shared.next_task.fetch_add(1, Ordering::Relaxed);
        let task = fleet_wire::Task {
            id,
            key: String::new(),
            lane: 0,
            group: id,
            name: module.to_owned(),
            place: "fleetctl".to_owned(),
            module: module.to_owned(),
            args: Json(args.to_string()),
            blob: None,
            user: As::Helper,
            environment: Vec::new(),
            check: None,
            ignore_errors: true,
            changed: Some(false),
            no_log: false,
            notify: Vec::new(),
            only_if: None,
            planned: None,
            timeout_s: 0,
            background_s: None,
        };
        let (ear, mut heard) = mpsc::unbounded_channel();
        self.link.task(task, None, &ear).await.map_err(lost)?;
        self.link.flush().await;
        loop {
            let outcome = match heard.recv().await {
                Some(Heard::Started(_)) => continue,
                Some(Heard::Done(outcome)) => outcome,
                Some(Heard::Lost(why)) => return Err(lost(why)),
                None => return Err(out_of_turn()),
            };
            let result: serde_json::Value =
                serde_json::from_str(&outcome.result.0).unwrap_or_default();
            if outcome.status == Status::Failed {
                let message = result
                    .get("msg")
                    .and_then(serde_json::Value::as_str)
                    .unwrap_or("it failed");
                return Err(HostEnd::Refused {
                    message: format!("{module}: {message}"),
                    person: false,
                });
            }
            return Ok(result);
        }
    }

    /// Ends the conversation.
    pub async fn close(self) {
        // Whatever the helper answers, there is nothing left to keep or to undo.
        let _ = self.link.finish(Finish::Keep).await;
    }
}

fn lost(message: String) -> HostEnd {
    HostEnd::Lost { message }
}

fn out_of_turn() -> HostEnd {
    lost("the helper answered out of turn".to_owned())
}

/// The play that says how a host is reached (`connection:`, `port:`, `remote_user:`), where one does.
fn reached_by(shared: &Shared, name: &str) -> Option<Arc<Play>> {
    let inventory = shared.inventory();
    let choice = Choice {
        inventory: &inventory,
        templar: &shared.templar,
        extra_vars: &shared.settings.extra_vars,
        limit: None,
        prompted: &shared.settings.prompted,
        allow_no_hosts: true,
    };
    let says_how = |play: &&Arc<Play>| {
        let connection = &play.connection;
        let own = &play.directives;
        connection.kind.is_some()
            || connection.port.is_some()
            || connection.user.is_some()
            || own.become_method.is_some()
            || own.become_exe.is_some()
            || own.become_flags.is_some()
    };
    let is_for = |play: &&Arc<Play>| {
        choice
            .hosts(play)
            .is_ok_and(|hosts| hosts.iter().any(|host| host == name))
    };
    let mut plays = shared
        .playbooks
        .iter()
        .flat_map(|playbook| &playbook.plays)
        .filter(says_how);
    plays.find(is_for).map(Arc::clone)
}
