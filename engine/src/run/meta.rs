//! `meta`: what steers the play itself.

use std::sync::{Arc, atomic::Ordering};

use fleet_wire::Status;
use serde_json::json;

use super::{
    dispatch::PlayContext,
    host::{Host, Stop},
};
use crate::{event::Event, playbook::Task};

impl Host {
    /// Does a `meta` task, once its condition holds.
    pub(super) async fn meta(&mut self, play: &PlayContext, task: &Arc<Task>) -> Result<(), Stop> {
        let scope = self.scope_of(play, task);
        let info = self.info(task, &scope);
        // As Ansible has it: what is for the whole play does not depend on one host.
        let refreshes = task.action.refreshes_inventory();
        match self.all_true(&task.directives.when, &scope).await {
            _ if refreshes => {}
            Ok(None) => {}
            Ok(Some(condition)) => {
                let result = json!({
                    "changed": false, "skipped": true, "skip_reason": "Conditional result was False",
                    "false_condition": condition.raw().trim(),
                });
                return self
                    .ended(task, &info, Status::Skipped, result, false, false)
                    .await;
            }
            Err(unfit) => return self.unfit(task, &scope, &info, unfit).await,
        }
        let action = match self
            .words(task.action.arguments().get("action"), &scope)
            .await
        {
            Ok(action) => action.unwrap_or_default(),
            Err(unfit) => return self.unfit(task, &scope, &info, unfit).await,
        };
        let started = Event::TaskStarted {
            host: self.name.clone(),
            task: Arc::clone(&info),
        };
        self.tell(vec![started]).await;
        match action.as_str() {
            "flush_handlers" => self.flush(play).await,
            "end_host" => {
                self.drain().await?;
                Err(Stop::Ended)
            }
            "end_batch" | "end_play" => {
                self.drain().await?;
                self.batch.end(action == "end_play");
                Err(Stop::Ended)
            }
            "end_role" => match &task.directives.role {
                Some(_) => {
                    self.drain().await?;
                    Err(Stop::RoleEnded)
                }
                None => {
                    let message = "Cannot execute 'end_role' from outside of a role".to_owned();
                    let unfit = super::dispatch::Unfit::Problem(message);
                    self.unfit(task, &scope, &info, unfit).await
                }
            },
            "clear_facts" => {
                self.drain().await?;
                scope.state.clear_facts();
                if let Some(cache) = &self.shared.settings.fact_cache {
                    cache.forget(&self.name);
                }
                Ok(())
            }
            "clear_host_errors" => {
                self.shared.errors_cleared.store(true, Ordering::Relaxed);
                self.forgiven = true;
                Ok(())
            }
            "reset_connection" => {
                self.drain().await?;
                self.forget_link();
                let name = self.name.clone();
                self.shared.reset(&name).await.map_err(Stop::Lost)
            }
            "noop" => Ok(()),
            "refresh_inventory" => {
                self.drain().await?;
                if !task.directives.when.is_empty() {
                    let text =
                        "refresh_inventory task does not support when conditional".to_owned();
                    self.shared.warn(text).await;
                }
                match self.shared.refresh_inventory().await {
                    Ok(noticed) => {
                        for odd in noticed {
                            self.shared.warn(odd.message.clone()).await;
                        }
                        Ok(())
                    }
                    Err(problems) => {
                        let unfit = super::include::unread(&problems);
                        self.unfit(task, &scope, &info, unfit).await
                    }
                }
            }
            other => {
                let unfit = super::dispatch::Unfit::Problem(format!(
                    "{}: `meta` has no action `{other}`",
                    task.place()
                ));
                self.unfit(task, &scope, &info, unfit).await
            }
        }
    }
}
