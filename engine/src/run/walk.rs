//! A host's walk through the steps of a play: blocks with their ways out, roles that are run once, and the places where
//! hosts wait for each other.

use std::{collections::BTreeMap, pin::Pin, sync::Arc};

use fleet_wire::Mode;
use minijinja::Value;

use super::{
    batch::{Once, Part as Turn},
    content::{from_json, to_json},
    dispatch::{PlayContext, Unfit},
    host::{Failure, Guard, Host, Stop},
    scope::HostScope,
};
use crate::{
    event::Strategy,
    playbook::{Action, Block, LocalAction, Part, Step, Task},
    template::Evaluated,
    variables::Variable,
};

/// Behind a task, where all that it did is seen.
const BEHIND: u32 = u32::MAX;

/// A walk that may come back to where it began.
pub(super) type Walking<'a> = Pin<Box<dyn Future<Output = Result<(), Stop>> + Send + 'a>>;

impl Host {
    /// Goes through steps in order.
    pub(super) fn steps<'a>(&'a mut self, play: &'a PlayContext, steps: &'a [Step]) -> Walking<'a> {
        Box::pin(async move {
            for (index, step) in (0_u32..).zip(steps) {
                self.place.push(index);
                let gone = match step {
                    Step::Task(task) => self.one(play, task).await,
                    Step::Block(block) => self.block(play, block).await,
                };
                self.place.pop();
                gone?;
            }
            Ok(())
        })
    }

    /// Goes through a block, with its `rescue` and `always`.
    pub(super) fn block<'a>(
        &'a mut self,
        play: &'a PlayContext,
        block: &'a Arc<Block>,
    ) -> Walking<'a> {
        Box::pin(async move {
            let Some(role) = &block.role else {
                return self.guarded(play, block).await;
            };
            if self.completed.contains(&role.instance) && !role.allow_duplicates {
                // Only a role of which something was done is spared a second time.
                self.drain().await?;
                if self.ran.contains(&role.instance) {
                    return Ok(());
                }
            }
            let gone = match self.guarded(play, block).await {
                Err(Stop::RoleEnded) => Ok(()),
                gone => gone,
            };
            if gone.is_ok() {
                self.completed.insert(role.instance);
            }
            gone
        })
    }

    async fn guarded(&mut self, play: &PlayContext, block: &Arc<Block>) -> Result<(), Stop> {
        if !block.catches() {
            return self.part(play, block, Part::Body).await;
        }
        // What fails from here on belongs to the block, and what was sent before does not.
        self.drain().await?;
        let mut gone = self.part(play, block, Part::Body).await;
        if let (Err(Stop::Failed), false) = (&gone, block.rescue.is_empty()) {
            self.recover().await?;
            self.show_failure(play);
            gone = self.part(play, block, Part::Rescue).await;
        }
        if block.always.is_empty() {
            return gone;
        }
        match &gone {
            Ok(()) | Err(Stop::RoleEnded) => {}
            Err(Stop::Failed) => {
                self.recover().await?;
                self.show_failure(play);
            }
            Err(_) => return gone,
        }
        let failure = self.failure.take();
        self.forgiven = false;
        let always = self.part(play, block, Part::Always).await;
        if self.failure.is_none() {
            self.failure = failure;
        }
        match std::mem::take(&mut self.forgiven) {
            true => always,
            false => always.and(gone),
        }
    }

    async fn part(&mut self, play: &PlayContext, block: &Block, part: Part) -> Result<(), Stop> {
        self.place.push(part as u32);
        self.guards.push(Guard {
            part,
            rescue: !block.rescue.is_empty(),
            always: !block.always.is_empty(),
        });
        let mut gone = self.steps(play, block.part(part)).await;
        if gone.is_ok() && block.catches() {
            gone = self.drain().await;
        }
        self.guards.pop();
        self.place.pop();
        gone
    }

    /// `ansible_failed_task` and `ansible_failed_result`, for who rescues.
    fn show_failure(&self, play: &PlayContext) {
        let Some(Failure { task, info, result }) = &self.failure else {
            return;
        };
        let scope = self.scope_of(play, task);
        let args: BTreeMap<String, serde_json::Value> = task
            .action
            .arguments()
            .iter()
            .map(|(name, node)| {
                let value = match self.shared.templar.value(node, &scope.shared()) {
                    Ok(Evaluated::Known(value)) => to_json(&value),
                    _ => serde_json::Value::from(node.raw()),
                };
                (name.clone(), value)
            })
            .collect();
        let about = serde_json::json!({
            "name": info.name, "action": task.action.name(), "args": args,
            "register": task.register, "path": task.place(),
        });
        let state = self.shared.state(&self.name);
        state.set("ansible_failed_task", Variable::Data(from_json(&about)));
        state.set("ansible_failed_result", Variable::Data(from_json(result)));
    }

    /// A task that runs whatever tags and `--start-at-task` say.
    pub(super) async fn one_anyway(
        &mut self,
        play: &PlayContext,
        task: &Arc<Task>,
    ) -> Result<(), Stop> {
        self.batch.pass(&self.name, &self.place);
        self.act(play, task).await
    }

    /// One task of the play.
    pub(super) async fn one(&mut self, play: &PlayContext, task: &Arc<Task>) -> Result<(), Stop> {
        if self.batch.has_ended() {
            return Err(Stop::Ended);
        }
        self.batch.pass(&self.name, &self.place);
        let fresh;
        let play = match self.play_now(play) {
            Some(now) if !now.inventory.knows(&self.name) => {
                // It has gone from the sources, and so from the play.
                self.drain().await?;
                return Err(Stop::Ended);
            }
            Some(now) => {
                fresh = now;
                &fresh
            }
            None => play,
        };
        let scope = self.scope_of(play, task);
        if !self.takes(task, &scope) || self.is_passed_over(task, &scope) {
            return Ok(());
        }
        if let Some(step) = &self.shared.settings.step
            && !step(&self.name, &self.info(task, &scope).name)
        {
            return Ok(());
        }
        match self.manner(play, task, &scope).await {
            Ok(Manner::Alone) => self.act(play, task).await,
            Ok(Manner::Together { fatal }) => self.together(play, task, fatal).await,
            Ok(Manner::Once) => self.once(play, task).await,
            Err(unfit) => {
                let info = self.info(task, &scope);
                self.unfit(task, &scope, &info, unfit).await
            }
        }
    }

    /// The play with groups as they are now, where they have changed since the play began.
    fn play_now(&self, play: &PlayContext) -> Option<PlayContext> {
        let inventory = self.shared.inventory();
        if Arc::ptr_eq(&inventory, &play.inventory) {
            return None;
        }
        Some(PlayContext {
            scope: self.shared.refreshed(&self.name, &play.scope),
            inventory,
            ..play.clone()
        })
    }

    /// Whether the tags choose a task.
    pub(super) fn takes(&self, task: &Task, scope: &HostScope) -> bool {
        if self.in_handler {
            // A handler belongs to what notified it, and that was chosen.
            return true;
        }
        let filter = &self.shared.settings.tags;
        let mut tags = Vec::new();
        for node in &task.directives.tags {
            let raw = || vec![node.as_str().unwrap_or_else(|| node.raw()).to_owned()];
            let templated = node.as_str().is_some_and(|text| text.contains("{{"));
            let own = match templated {
                false => raw(),
                true => match self.shared.templar.value(node, &scope.shared()) {
                    Ok(Evaluated::Known(value)) => names(&value),
                    _ => raw(),
                },
            };
            tags.extend(own);
        }
        filter.takes_tags(&tags)
    }

    /// `--start-at-task`: whether the task is before the one to start at.
    fn is_passed_over(&mut self, task: &Task, scope: &HostScope) -> bool {
        if !self.passing {
            return false;
        }
        let Some(start) = &self.shared.settings.start_at else {
            return false;
        };
        let name = self.info(task, scope).name.clone();
        let full = match &task.directives.role {
            Some(role) => format!("{} : {name}", role.name),
            None => name.clone(),
        };
        let glob = crate::template::fits(start, &name) || crate::template::fits(start, &full);
        self.passing = !glob;
        self.passing
    }

    /// How hosts go about a task: each for itself, all at the same time, or one for all.
    async fn manner(
        &mut self,
        play: &PlayContext,
        task: &Arc<Task>,
        scope: &HostScope,
    ) -> Result<Manner, Unfit> {
        if self.batch.hosts.len() < 2 {
            return Ok(Manner::Alone);
        }
        let directives = &task.directives;
        if task.action.is_for_all_hosts()
            || self.flag(directives.run_once.as_ref(), scope).await? == Some(true)
        {
            return Ok(Manner::Once);
        }
        let fatal = self
            .flag(directives.any_errors_fatal.as_ref(), scope)
            .await?
            .unwrap_or(self.shared.settings.any_errors_fatal);
        if fatal || play.play.max_fail_percentage.is_some() {
            return Ok(Manner::Together { fatal });
        }
        Ok(match self.waits_for_others(task) {
            true => Manner::Together { fatal: false },
            false => Manner::Alone,
        })
    }

    /// Whether others must have come as far before a task is begun.
    pub(super) fn waits_for_others(&self, task: &Task) -> bool {
        self.batch.hosts.len() > 1
            && self.batch.strategy == Strategy::Linear
            && self.shared.mode == Mode::Apply
            && is_seen_by_others(task)
    }

    /// Waits until every other host has come here, too.
    pub(super) async fn gather(&mut self) -> Result<(), Stop> {
        self.drain().await?;
        let batch = Arc::clone(&self.batch);
        batch.pass(&self.name, &self.place);
        self.permit = None;
        batch.gather(&self.place).await;
        self.take_permit().await;
        Ok(())
    }

    /// All hosts do a task at the same time; where it is fatal, all fail with the first that does.
    async fn together(
        &mut self,
        play: &PlayContext,
        task: &Arc<Task>,
        fatal: bool,
    ) -> Result<(), Stop> {
        if self.batch.strategy == Strategy::Linear {
            self.gather().await?;
        }
        let mut gone = self.act(play, task).await;
        if gone.is_ok() {
            gone = self.drain().await;
        }
        let place = {
            let mut place = self.place.clone();
            place.push(BEHIND);
            place
        };
        let failed = matches!(
            gone,
            Err(Stop::Failed | Stop::Broken | Stop::Unreachable(_))
        );
        if failed {
            self.batch.count_failure(&self.name);
        }
        if failed && (fatal || self.fails_too_many(play)) {
            self.batch.fail_all(&place);
        }
        if matches!(gone, Ok(()) | Err(Stop::Failed)) && self.batch.strategy == Strategy::Linear {
            let own = std::mem::replace(&mut self.place, place.clone());
            let gathered = match &gone {
                Ok(()) => self.gather().await,
                _ => {
                    // What is in flight behind a failure comes in when it is recovered from.
                    self.batch.pass(&self.name, &self.place);
                    Ok(())
                }
            };
            self.place = own;
            gathered?;
        }
        if gone.is_ok() && self.batch.fails_at(&place) {
            return Err(Stop::Failed);
        }
        gone
    }

    fn fails_too_many(&self, play: &PlayContext) -> bool {
        let Some(node) = &play.play.max_fail_percentage else {
            return false;
        };
        let Ok(Evaluated::Known(most)) = self.shared.templar.value(node, &play.scope.shared())
        else {
            return false;
        };
        let most: f64 = most
            .to_string()
            .trim_end_matches('%')
            .parse()
            .unwrap_or(100.0);
        let share = self.batch.failed() as f64 / self.batch.hosts.len() as f64 * 100.0;
        share > most
    }

    /// One host does a task for all of them.
    async fn once(&mut self, play: &PlayContext, task: &Arc<Task>) -> Result<(), Stop> {
        if self.batch.strategy != Strategy::Linear && !task.action.is_for_all_hosts() {
            return self.act(play, task).await;
        }
        self.gather().await?;
        let batch = Arc::clone(&self.batch);
        let place = self.place.clone();
        let once = match batch.once(&self.name, &place).await {
            Turn::Reader(_) if matches!(task.action, Action::Include { .. }) => {
                // What is included may itself be run once for all hosts.
                self.place.push(BEHIND);
                let gathered = self.gather().await;
                self.place.pop();
                return gathered;
            }
            Turn::Reader(once) => once,
            // What is included is for the one host that includes it.
            Turn::Doer if matches!(task.action, Action::Include { .. }) => {
                batch.done_once(&place, Once::default());
                return self.act(play, task).await;
            }
            Turn::Doer => {
                let state = self.shared.state(&self.name);
                state.begin_record();
                let mut gone = self.act(play, task).await;
                if gone.is_ok() {
                    gone = self.drain().await;
                }
                let changes = state.end_record();
                for other in batch.alive().iter().filter(|other| **other != self.name) {
                    self.shared.state(other).replay(&changes);
                }
                batch.done_once(
                    &place,
                    Once {
                        failed: matches!(
                            gone,
                            Err(Stop::Failed | Stop::Broken | Stop::Unreachable(_))
                        ),
                        ended: matches!(gone, Err(Stop::Ended)),
                    },
                );
                return gone;
            }
        };
        match (once.failed, once.ended) {
            (true, _) => Err(Stop::Failed),
            (_, true) => Err(Stop::Ended),
            _ => Ok(()),
        }
    }

    /// Does a task here and now.
    fn act<'a>(&'a mut self, play: &'a PlayContext, task: &'a Arc<Task>) -> Walking<'a> {
        Box::pin(async move {
            match &task.action {
                Action::Include { .. } => self.include(play, task).await,
                Action::Local {
                    action: LocalAction::Meta,
                    ..
                } => self.meta(play, task).await,
                Action::Templated { name, .. } => {
                    let scope = self.scope_of(play, task);
                    let named = match self.words(Some(name), &scope).await {
                        Ok(named) => named.unwrap_or_default(),
                        Err(unfit) => {
                            let info = self.info(task, &scope);
                            return self.unfit(task, &scope, &info, unfit).await;
                        }
                    };
                    match self.shared.books.action(&named, task, &play.dir) {
                        Ok(action) => {
                            let task = Arc::new(task.with_action(action));
                            self.act(play, &task).await
                        }
                        Err(problems) => {
                            let info = self.info(task, &scope);
                            let unfit = super::include::unread(&problems);
                            self.unfit(task, &scope, &info, unfit).await
                        }
                    }
                }
                _ => self.task(play, task, None).await,
            }
        })
    }
}

/// How hosts go about a task.
enum Manner {
    Alone,
    Together { fatal: bool },
    Once,
}

/// Whether other hosts can tell that a task has been done: services and commands, but not files.
fn is_seen_by_others(task: &Task) -> bool {
    let quiet = super::frame::constant(&task.changed_when) == Some(false);
    match &task.action {
        Action::Module { module, .. } => match module.name {
            "command" | "shell" | "raw" | "script" | "expect" => !quiet,
            "service" | "systemd" | "uri" | "wait_for" | "reboot" => true,
            _ => false,
        },
        Action::Local { action, .. } => action.is_seen_by_others(),
        _ => false,
    }
}

fn names(value: &Value) -> Vec<String> {
    match value.as_str() {
        Some(text) => text.split(',').map(|tag| tag.trim().to_owned()).collect(),
        None => match value.try_iter() {
            Ok(items) => items.map(|item| item.to_string()).collect(),
            Err(_) => vec![value.to_string()],
        },
    }
}
