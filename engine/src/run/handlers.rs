//! Handlers: run once each, in the order in which they are written, where something notified them.

use std::sync::Arc;

use fleet_wire::OnlyIf;

use super::{
    dispatch::PlayContext,
    host::{Host, Stop},
    walk::Walking,
};
use crate::playbook::{Action, Task};

impl Host {
    /// All handlers that can be notified here: the play's, and those of roles that were included on the way.
    pub(super) fn all_handlers<'a>(
        &'a self,
        play: &'a PlayContext,
    ) -> impl Iterator<Item = &'a Arc<Task>> {
        play.play.handlers.iter().chain(&self.handlers)
    }

    /// Runs the notified handlers; those that a handler notifies, too.
    pub(super) fn flush<'a>(&'a mut self, play: &'a PlayContext) -> Walking<'a> {
        Box::pin(async move {
            let within = std::mem::replace(&mut self.in_handler, true);
            let flushed = self.rounds(play).await;
            self.in_handler = within;
            flushed
        })
    }

    async fn rounds(&mut self, play: &PlayContext) -> Result<(), Stop> {
        let handlers: Vec<Arc<Task>> = self.all_handlers(play).cloned().collect();
        let state = self.shared.state(&self.name);
        for handler in &handlers {
            let key = play.handler_key(self, handler);
            // Ansible forgets what a run left undone.
            if !self.shared.settings.as_ansible && state.take_notified_before(&key) {
                self.notified.insert(key);
            }
        }
        // Each round can only be caused by a handler that ran in the one before.
        for round in 0..=u32::try_from(handlers.len()).unwrap_or(u32::MAX) {
            let mut ran = false;
            for (index, handler) in (0_u32..).zip(&handlers) {
                let key = play.handler_key(self, handler);
                let notified = self.notified.contains(&key);
                if !notified && !self.flights.may_notify(|name| name == key) {
                    continue;
                }
                ran = true;
                self.place.extend([round, index]);
                let gone = self.handler(play, handler, key).await;
                self.place.truncate(self.place.len() - 2);
                gone?;
            }
            self.drain().await?;
            let again = handlers
                .iter()
                .any(|handler| self.notified.contains(&play.handler_key(self, handler)));
            if !ran || !again {
                break;
            }
        }
        Ok(())
    }

    async fn handler(
        &mut self,
        play: &PlayContext,
        handler: &Arc<Task>,
        key: String,
    ) -> Result<(), Stop> {
        // Whether a task still in flight notifies it, its machine knows best; what is done here must know it here.
        let sent = matches!(handler.action, Action::Module { .. })
            && !self.takes_steps(handler)
            && !self.waits_for_others(handler);
        if !sent {
            self.drain().await?;
            if !self.notified.remove(&key) {
                return Ok(());
            }
            self.one(play, handler).await?;
            self.drain().await?;
            self.shared.handled(&self.name, &key).await;
            return Ok(());
        }
        let notified = self.notified.remove(&key);
        let only_if = OnlyIf {
            handler: key,
            notified,
        };
        self.task(play, handler, Some(only_if)).await
    }
}
