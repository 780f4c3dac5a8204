//! Errands: one thing asked of a host outside of a play. Facts, load tests, journals, rollbacks.

use std::sync::Arc;

use fleet_wire::{As, Finish, FromHost, Journaled, Json, Mode, Status, ToHost, Undone};

use super::{
    choice::Choice,
    connection,
    host::{Host, Stop},
    shared::Shared,
};
use crate::{event::HostEnd, playbook::Play};

/// A host that errands can be run on. The connection stays until it is dropped.
pub struct Errand {
    host: Host,
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
        let scope = shared.scope(name, play.as_deref(), &[], &[], None);
        let reach =
            connection::reach(shared, name, play.as_deref(), &scope, root).map_err(|message| {
                HostEnd::Refused {
                    message,
                    person: false,
                }
            })?;
        let host = Host::connect(
            Arc::clone(shared),
            name.to_owned(),
            &reach.address,
            reach.r#become.as_ref(),
            reach.state_dir,
            mode,
        )
        .await?;
        Ok(Self { host })
    }

    /// Undoes a past run on this host, from the host's own journal.
    ///
    /// # Errors
    /// When the host is lost on the way.
    pub async fn rollback(&mut self, run: &str) -> Result<Undone, HostEnd> {
        self.host.rollback(run).await.map_err(|stop| lost(&stop))
    }

    /// The runs in the host's journal, oldest first.
    ///
    /// # Errors
    /// When the host is lost on the way.
    pub async fn journal(&mut self) -> Result<Vec<Journaled>, HostEnd> {
        self.host.journal().await.map_err(|stop| lost(&stop))
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
        self.host.next_task += 1;
        let task = fleet_wire::Task {
            id: self.host.next_task,
            epoch: 0,
            group: self.host.next_task,
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
        };
        self.host
            .send(&ToHost::Task(Box::new(task)))
            .await
            .map_err(|stop| lost(&stop))?;
        loop {
            match self.host.receive().await.map_err(|stop| lost(&stop))? {
                FromHost::Started { .. } => {}
                FromHost::Done(outcome) => {
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
                _ => {
                    return Err(lost(&Stop::Lost(
                        "the helper answered out of turn".to_owned(),
                    )));
                }
            }
        }
    }

    /// Ends the conversation.
    pub async fn close(mut self) {
        // Whatever the helper answers, there is nothing left to keep or to undo.
        let _ = self.host.finish(Finish::Keep).await;
    }
}

fn lost(stop: &Stop) -> HostEnd {
    HostEnd::Lost {
        message: stop.to_string(),
    }
}

/// The play that says how a host is reached (`connection:`, `port:`, `remote_user:`), where one does.
fn reached_by(shared: &Shared, name: &str) -> Option<Arc<Play>> {
    let choice = Choice {
        inventory: &shared.inventory,
        templar: &shared.templar,
        extra_vars: &shared.settings.extra_vars,
        limit: None,
        allow_no_hosts: true,
    };
    let says_how = |play: &&Arc<Play>| {
        let connection = &play.connection;
        connection.kind.is_some() || connection.port.is_some() || connection.user.is_some()
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
