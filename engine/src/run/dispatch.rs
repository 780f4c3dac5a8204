//! From a task as written to tasks on the wire: conditions decided, templates rendered, sent ahead
//! as far as nothing depends on an answer that is still on its way.

use std::{path::PathBuf, sync::Arc};

use fleet_modules::module::Module;
use fleet_wire::{Json, Mode, OnlyIf, Outcome, Status};
use fleet_yaml::Node;
use indexmap::IndexMap;
use minijinja::{Value, value::ValueKind};
use serde_json::json;

use super::{
    connection::Reach,
    content::{self, from_json, to_json},
    flight::{Flight, Item},
    frame::constant,
    host::{Host, Stop},
    link::Link,
    local,
    payload::Payload,
    scope::HostScope,
    sources,
    terms::Terms,
};
use crate::{
    event::{Event, TaskEnded, TaskInfo},
    external::{self, External},
    inventory::Inventory,
    playbook::{Action, LocalAction, Play, Task, files, takes_only_text, wrong_argument},
    template::{EvalError, Evaluated, is_omit, python_text, type_name},
    transport,
    variables::{Scope, Variable},
};

/// What a play adds to the way a task is run on a host.
#[derive(Clone)]
pub(super) struct PlayContext {
    pub(super) play: Arc<Play>,
    pub(super) scope: HostScope,
    /// The playbook's directory.
    pub(super) dir: PathBuf,
    /// The hosts and groups that `scope` knows.
    pub(super) inventory: Arc<Inventory>,
    /// How the host is reached where a task does not say otherwise.
    pub(super) reach: Arc<Reach>,
    /// The helper runs as root for all tasks of this host.
    pub(super) as_root: bool,
}

impl PlayContext {
    /// Directories in which a task's files are looked for.
    pub(super) fn search(&self, task: &Task) -> Vec<PathBuf> {
        let own = task.search.iter().cloned();
        own.chain([self.dir.clone()]).collect()
    }

    /// What a handler is known by, on the host, too: its title, with its place where another has the same.
    pub(super) fn handler_key(&self, host: &Host, handler: &Task) -> String {
        let title = handler.full_title();
        let same = |other: &&Arc<Task>| other.full_title() == title;
        match host.all_handlers(self).filter(same).count() {
            0 | 1 => title,
            _ => format!("{title} ({})", handler.place()),
        }
    }
}

/// Something that could be evaluated, or is not known before an apply.
pub(super) enum Settled<T> {
    Known(T),
    Unknown(Vec<String>),
}

/// A task that cannot be sent, and why.
pub(super) enum Unfit {
    /// What the task fails with whatever `failed_when` says: nothing came of it that could be judged.
    Problem(String),
    /// What nothing in the play can make up for: the play itself is wrong.
    Broken(String),
    /// A result that says that it failed, which `failed_when` judges as any other.
    Failed(Box<serde_json::Value>),
    Unknown(Vec<String>),
    Stop(Stop),
}

impl Unfit {
    /// A result that failed with a message.
    pub(super) fn failed(message: impl Into<String>) -> Self {
        let message = message.into();
        Self::Failed(Box::new(
            json!({"changed": false, "failed": true, "msg": message}),
        ))
    }
}

impl From<Stop> for Unfit {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}

/// A module call with everything rendered.
pub(super) struct Call {
    pub(super) module: &'static Module,
    pub(super) args: serde_json::Map<String, serde_json::Value>,
    pub(super) content: Option<Payload>,
}

/// What a task asks of one item, once its condition holds.
pub(super) enum Work {
    Calls(Vec<Call>),
    /// Done on the controller.
    Local(local::Done),
}

/// An item that is over before anything was asked.
pub(super) struct Over {
    pub(super) outcome: Outcome,
    /// Nothing came of it that `failed_when` could judge.
    pub(super) judged: bool,
}

/// An item of a task that is about to be run.
pub(super) struct Prepared {
    pub(super) terms: Terms,
    pub(super) work: Work,
    /// The host that it is done on, where that is another.
    pub(super) delegate: Option<String>,
}

impl Host {
    /// Evaluates something, waiting for results that it depends on.
    pub(super) async fn settled<T>(
        &mut self,
        mut evaluate: impl FnMut() -> Result<Evaluated<T>, EvalError>,
    ) -> Result<Settled<T>, Unfit> {
        loop {
            match evaluate() {
                Ok(Evaluated::Known(value)) => return Ok(Settled::Known(value)),
                Ok(Evaluated::Unknown { because }) => return Ok(Settled::Unknown(because)),
                Ok(Evaluated::Pending(id)) => self.settle(id).await?,
                Err(problem) => return Err(Unfit::Problem(describe(&problem))),
            }
        }
    }

    pub(super) async fn value(
        &mut self,
        node: &Node,
        scope: &HostScope,
    ) -> Result<Settled<Value>, Unfit> {
        let shared = Arc::clone(&self.shared);
        let scope = scope.shared();
        self.settled(|| shared.templar.value(node, &scope)).await
    }

    pub(super) async fn known(&mut self, node: &Node, scope: &HostScope) -> Result<Value, Unfit> {
        match self.value(node, scope).await? {
            Settled::Known(value) => Ok(value),
            Settled::Unknown(because) => Err(Unfit::Unknown(because)),
        }
    }

    pub(super) async fn truth(&mut self, node: &Node, scope: &HostScope) -> Result<bool, Unfit> {
        let shared = Arc::clone(&self.shared);
        let scope = scope.shared();
        match self.settled(|| shared.templar.truth(node, &scope)).await? {
            Settled::Known(truth) => Ok(truth),
            Settled::Unknown(because) => Err(Unfit::Unknown(because)),
        }
    }

    /// Whether all conditions hold.
    pub(super) async fn all_true(
        &mut self,
        conditions: &[Node],
        scope: &HostScope,
    ) -> Result<Option<Node>, Unfit> {
        for condition in conditions {
            if !self.truth(condition, scope).await? {
                return Ok(Some(condition.clone()));
            }
        }
        Ok(None)
    }

    /// The scope within a task.
    pub(super) fn scope_of(&self, play: &PlayContext, task: &Task) -> HostScope {
        let private = self.shared.settings.private_role_vars == Some(true);
        let of_play = play.play.roles.iter();
        let of_play = of_play.filter(|role| role.public.unwrap_or(!private));
        let mut scope = play.scope.of_task(task, of_play.chain(&self.exposed));
        scope.reached = Some(Arc::clone(&play.reach));
        let search = play.search(task);
        let search: Value = search
            .iter()
            .map(|dir| Value::from(files::absolute(dir).display().to_string()))
            .collect();
        scope.with("ansible_search_path", Variable::Data(search))
    }

    /// Sends a task on its way, or does it here.
    pub(super) async fn task(
        &mut self,
        play: &PlayContext,
        task: &Arc<Task>,
        only_if: Option<OnlyIf>,
    ) -> Result<(), Stop> {
        self.room().await?;
        let scope = self.scope_of(play, task);
        let info = self.info(task, &scope);
        let prepared = Box::pin(self.prepare(play, task, &scope, &info, only_if)).await;
        match prepared {
            // What is done on this machine may make files that the next task reads here; there is no line to wait for.
            Ok(()) if play.reach.address.kind == transport::Kind::Local => self.drain().await,
            Ok(()) => Ok(()),
            Err(unfit) => self.unfit(task, &scope, &info, unfit).await,
        }
    }

    /// A task that could not be sent on its way.
    pub(super) async fn unfit(
        &mut self,
        task: &Arc<Task>,
        scope: &HostScope,
        info: &Arc<TaskInfo>,
        unfit: Unfit,
    ) -> Result<(), Stop> {
        let result = match unfit {
            Unfit::Stop(Stop::Unreachable(message)) => {
                return self.unreachable(task, scope, info, message).await;
            }
            Unfit::Stop(stop) => return Err(stop),
            Unfit::Unknown(because) => {
                let result =
                    json!({"changed": true, "msg": "known after apply", "depends_on": because});
                if let Some(name) = &task.register {
                    scope.state.set(name, Variable::Unknown);
                }
                return self
                    .ended(task, info, Status::Unknown, result, false, false)
                    .await;
            }
            Unfit::Broken(message) => {
                self.drain().await?;
                let result = json!({
                    "changed": false, "failed": true, "rescuable": false, "msg": message,
                });
                let ended = self.bare_end(info, Status::Failed, result);
                self.tell(vec![Event::TaskEnded(Box::new(ended))]).await;
                return Err(Stop::Broken);
            }
            Unfit::Problem(message) => {
                json!({"changed": false, "failed": true, "msg": message})
            }
            Unfit::Failed(result) => *result,
        };
        // Only a task that is reached can fail: what is before it must have gone through.
        self.drain().await?;
        let ignored = self
            .flag(task.directives.ignore_errors.as_ref(), scope)
            .await;
        let ignored = matches!(ignored, Ok(Some(true)));
        let secret = self.flag(task.directives.no_log.as_ref(), scope).await;
        let secret = !matches!(secret, Ok(None | Some(false)));
        if let Some(name) = &task.register {
            scope.state.set(name, Variable::Data(from_json(&result)));
        }
        self.ended(task, info, Status::Failed, result, ignored, secret)
            .await
    }

    /// A host that cannot be reached for a task.
    async fn unreachable(
        &mut self,
        task: &Arc<Task>,
        scope: &HostScope,
        info: &Arc<TaskInfo>,
        message: String,
    ) -> Result<(), Stop> {
        let ignored = self
            .flag(task.directives.ignore_unreachable.as_ref(), scope)
            .await;
        let ignored = matches!(ignored, Ok(Some(true)));
        let result = json!({"changed": false, "unreachable": true, "msg": message});
        if let (true, Some(name)) = (ignored, &task.register) {
            scope.state.set(name, Variable::Data(from_json(&result)));
        }
        let ended = TaskEnded {
            unreachable: true,
            ignored,
            ..self.bare_end(info, Status::Failed, result)
        };
        self.tell(vec![Event::TaskEnded(Box::new(ended))]).await;
        if ignored {
            Ok(())
        } else {
            Err(Stop::Unreachable(message))
        }
    }

    fn bare_end(
        &self,
        info: &Arc<TaskInfo>,
        status: Status,
        result: serde_json::Value,
    ) -> TaskEnded {
        TaskEnded {
            host: self.name.clone(),
            task: Arc::clone(info),
            item: None,
            index: 0,
            last: true,
            status,
            result,
            effects: Arc::from([]),
            digests: Arc::default(),
            took: std::time::Duration::ZERO,
            ignored: false,
            rescued: false,
            unreachable: false,
            delegated: None,
            secret: false,
        }
    }

    /// Tells a task's end that was decided here.
    pub(super) async fn ended(
        &mut self,
        task: &Arc<Task>,
        info: &Arc<TaskInfo>,
        status: Status,
        result: serde_json::Value,
        ignored: bool,
        secret: bool,
    ) -> Result<(), Stop> {
        let failed = status == Status::Failed;
        if status != Status::Skipped {
            self.ran
                .extend(task.directives.role.as_ref().map(|role| role.instance));
        }
        let ended = TaskEnded {
            ignored,
            secret,
            rescued: failed && !ignored && self.is_rescued(),
            ..self.bare_end(info, status, result)
        };
        if failed {
            return self.fail(task, ended).await;
        }
        self.tell(vec![Event::TaskEnded(Box::new(ended))]).await;
        Ok(())
    }

    pub(super) fn info(&self, task: &Task, scope: &HostScope) -> Arc<TaskInfo> {
        // A name whose variables are not there (yet) is shown as it is written.
        let name = match &task.name {
            Some(node) => match self.shared.templar.value(node, &scope.shared()) {
                Ok(Evaluated::Known(value)) => value.to_string(),
                _ => task.title().to_owned(),
            },
            None => task.title().to_owned(),
        };
        Arc::new(TaskInfo {
            id: task.id,
            name,
            module: task.action.name().to_owned(),
            place: task.place(),
            handler: self.in_handler,
            role: task.directives.role.as_ref().map(|role| role.name.clone()),
            position: self.position(),
            span: task.span.clone(),
            check: said(
                &task.directives.check_mode,
                self.shared.mode != fleet_wire::Mode::Apply,
            ),
        })
    }

    async fn prepare(
        &mut self,
        play: &PlayContext,
        task: &Arc<Task>,
        scope: &HostScope,
        info: &Arc<TaskInfo>,
        only_if: Option<OnlyIf>,
    ) -> Result<(), Unfit> {
        let Some(items) = self.items_of(task, scope).await? else {
            let result = json!({"changed": false, "skipped": true, "skip_reason": "Conditional result was False"});
            return Ok(self.skipped(task, scope, info, result).await?);
        };
        if items.is_empty() {
            let result = json!({"changed": false, "skipped": true, "results": [], "skipped_reason": "No items in the list"});
            return Ok(self.skipped(task, scope, info, result).await?);
        }
        // What is set here would be there though a task before it failed, where somebody can still look.
        let leaves_a_trace =
            matches!(&task.action, Action::Local { action, .. } if action.sets_something());
        if leaves_a_trace && self.is_guarded() {
            self.drain().await?;
        }
        let group = self.new_group();
        if let Some(only_if) = &only_if {
            self.handlers_sent.insert(only_if.handler.clone(), group);
        }
        let mut flight = Flight {
            group,
            task: Arc::clone(task),
            info: Arc::clone(info),
            scope: scope.clone(),
            items: Vec::new(),
            open: 0,
            looped: task.r#loop.is_some(),
            ignore_errors: false,
            secret: self.is_secret(task, scope).await?,
            judged: !task.failed_when.is_empty()
                || !task.changed_when.is_empty()
                    && (constant(&task.changed_when).is_none() || is_local(task)),
            notify: Vec::new(),
            returns: false,
            rehearsed: self.shared.settings.as_ansible && self.shared.mode == Mode::Plan,
            rescued: self.is_rescued(),
            delegated: None,
            facts_of: None,
        };
        if self.takes_steps(task) {
            return self.steps_of(play, task, flight, items).await;
        }

        let mut ids = Vec::new();
        let mut frames = Vec::new();
        for (value, scope) in items {
            let index = flight.items.len();
            let (over, prepared) = self.item(play, task, &scope, flight.looped).await?;
            let failed = |over: &Over| over.outcome.status == Status::Failed;
            if over.as_ref().is_some_and(failed) {
                self.failed_early(task, &scope, &mut flight).await;
            }
            let mut invocation = None;
            if let Some(prepared) = prepared {
                flight.take_terms(&prepared.terms);
                match prepared.work {
                    Work::Local(local::Done { status, result }) => {
                        flight
                            .items
                            .push(Item::over(value, scope, done(status, &result)));
                        continue;
                    }
                    Work::Calls(calls) => {
                        let link = self
                            .link_for(play, task, &scope, &prepared.terms, None)
                            .await?;
                        self.turn_to(&link).await?;
                        for call in calls {
                            if self.shared.settings.tells_invocations {
                                invocation = Some(call.args.clone().into());
                            }
                            let (frame, content) = self.frame(
                                &flight,
                                index,
                                call,
                                &prepared.terms,
                                only_if.as_ref(),
                                &link,
                            );
                            ids.push((frame.id, index));
                            frames.push((frame, content));
                        }
                    }
                }
            }
            flight.items.push(Item {
                value,
                scope,
                judged: over.as_ref().is_some_and(|over| over.judged),
                end: over.map(|over| over.outcome),
                invocation,
            });
        }
        for (frame, _) in &mut frames {
            // One item whose errors are ignored speaks for all of them.
            frame.ignore_errors |= flight.ignore_errors;
        }
        flight.open = ids.len();
        let judged = flight.judged;
        if flight.open == 0 {
            return Ok(self.over_here(flight).await?);
        }
        self.under_way(task, scope, group);
        self.flights.add(flight, ids);
        for (frame, content) in frames {
            self.send(frame, content).await?;
        }
        if judged {
            let own = self.shared.state(&self.name).pending(group);
            self.settle(own).await?;
        }
        Ok(())
    }

    /// What is to be made of an item that failed before its terms were known.
    pub(super) async fn failed_early(
        &mut self,
        task: &Task,
        scope: &HostScope,
        flight: &mut Flight,
    ) {
        let ignored = self
            .flag(task.directives.ignore_errors.as_ref(), scope)
            .await;
        flight.ignore_errors |= matches!(ignored, Ok(Some(true)));
        let secret = self.flag(task.directives.no_log.as_ref(), scope).await;
        flight.secret |= !matches!(secret, Ok(None | Some(false)));
    }

    /// Whether a task's results and items are hidden; they are where that cannot be told yet.
    async fn is_secret(&mut self, task: &Task, scope: &HostScope) -> Result<bool, Unfit> {
        match self.flag(task.directives.no_log.as_ref(), scope).await {
            Ok(said) => Ok(said.unwrap_or(self.shared.settings.no_log)),
            Err(Unfit::Stop(stop)) => Err(Unfit::Stop(stop)),
            Err(_) => Ok(true),
        }
    }

    /// What a task leaves behind is on its way.
    fn under_way(&self, task: &Task, scope: &HostScope, group: u32) {
        if let Some(name) = &task.register {
            scope.state.set(name, self.pending(group));
        }
        if matches!(&task.action, Action::Module { module, .. } if returns_facts(module)) {
            scope.state.facts_pending(self.pending(group));
        }
    }

    /// A task that is left out.
    pub(super) async fn skipped(
        &mut self,
        task: &Arc<Task>,
        scope: &HostScope,
        info: &Arc<TaskInfo>,
        result: serde_json::Value,
    ) -> Result<(), Stop> {
        if let Some(name) = &task.register {
            scope.state.set(name, Variable::Data(from_json(&result)));
        }
        self.ended(task, info, Status::Skipped, result, false, false)
            .await
    }

    /// A flight that never left is over.
    pub(super) async fn over_here(&mut self, mut flight: Flight) -> Result<(), Stop> {
        flight.group = self.new_group();
        let failing = |item: &Item| matches!(&item.end, Some(end) if end.status == Status::Failed);
        if flight.items.iter().any(failing) {
            self.drain().await?;
        }
        let group = flight.group;
        self.handlers_sent.retain(|_, sent| *sent < group);
        self.over(flight).await
    }

    /// What one item asks for, or how it ended before anything was asked.
    pub(super) async fn item(
        &mut self,
        play: &PlayContext,
        task: &Arc<Task>,
        scope: &HostScope,
        looped: bool,
    ) -> Result<(Option<Over>, Option<Prepared>), Unfit> {
        let over = |status, result: &serde_json::Value, judged| {
            let outcome = done(status, result);
            Ok((Some(Over { outcome, judged }), None))
        };
        match self.prepared(play, task, scope).await {
            Ok(Ok(prepared)) => Ok((None, Some(prepared))),
            Ok(Err(condition)) => {
                let result = json!({
                    "changed": false, "skipped": true, "skip_reason": "Conditional result was False",
                    "false_condition": to_json_scalar(&condition),
                });
                over(Status::Skipped, &result, true)
            }
            Err(Unfit::Unknown(because)) => {
                let result =
                    json!({"changed": true, "msg": "known after apply", "depends_on": because});
                over(Status::Unknown, &result, true)
            }
            // A failing item of a loop leaves the other items their turn.
            Err(Unfit::Problem(message)) if looped || is_local(task) => {
                self.drain().await?;
                let result = json!({"changed": false, "failed": true, "msg": message});
                over(Status::Failed, &result, true)
            }
            Err(Unfit::Failed(result)) => {
                self.drain().await?;
                over(Status::Failed, &result, false)
            }
            Err(other) => Err(other),
        }
    }

    /// What one item asks for; the condition that does not hold where there is one.
    async fn prepared(
        &mut self,
        play: &PlayContext,
        task: &Arc<Task>,
        scope: &HostScope,
    ) -> Result<Result<Prepared, Node>, Unfit> {
        let delegating;
        let scope = match &task.directives.delegate_to {
            // A task that is left out may be delegated to a host that nobody knows.
            Some(node) => match self.words(Some(node), scope).await {
                Ok(Some(name)) => {
                    delegating = self.delegating(&name, scope);
                    &delegating
                }
                Err(Unfit::Stop(stop)) => return Err(Unfit::Stop(stop)),
                _ => scope,
            },
            None => scope,
        };
        if let Some(condition) = self.all_true(&task.directives.when, scope).await? {
            return Ok(Err(condition));
        }
        let terms = self.terms(play, task, scope).await?;
        let delegate = self
            .words(task.directives.delegate_to.as_ref(), scope)
            .await?;
        let written = self.written_arguments(task, scope).await?;
        if written.contains_key("_raw_params") && !task.action.takes_text() {
            return Err(Unfit::Problem(format!(
                "Task failed: Action '{}' does not support raw params.",
                task.action.full_name()
            )));
        }
        let work = match &task.action {
            Action::Module {
                module,
                written: name,
                ..
            } => {
                let mut args = self.arguments(&written, scope).await?;
                if self.shared.settings.as_ansible {
                    as_python_writes(module, &mut args);
                }
                let vault = self.shared.templar.vault();
                let content = sources::content(play, task, module.name, &args, &written, vault)?;
                Work::Calls(vec![checked_call(module, name, args, content, &written)?])
            }
            Action::Local {
                action: LocalAction::Template | LocalAction::Copy,
                ..
            } => Work::Calls(content::calls(self, play, task, &written, scope).await?),
            Action::Local { action, .. } if unknown(*action, &written).is_some() => {
                return Err(Unfit::Problem(
                    unknown(*action, &written).unwrap_or_default(),
                ));
            }
            Action::Local { action, .. } => {
                let limit = terms.timeout_s;
                let acting = local::act(self, *action, &written, play, task, scope);
                Work::Local(match limit {
                    0 => acting.await?,
                    _ => {
                        let patience = std::time::Duration::from_secs(limit.into());
                        match tokio::time::timeout(patience, acting).await {
                            Ok(done) => done?,
                            Err(_) => {
                                return Err(Unfit::Failed(Box::new(json!({
                                    "changed": false, "failed": true, "timedout": {"period": limit},
                                    "msg": format!("Timed out after {limit} second(s)"),
                                }))));
                            }
                        }
                    }
                })
            }
            Action::External { module, .. } => {
                let args = self.arguments(&written, scope).await?;
                Work::Calls(vec![self.external_call(task, module, args, scope, &terms)?])
            }
            Action::Missing { name, .. } => {
                return Err(Unfit::Problem(format!(
                    "{}: fleetctl has no module `{name}`, and the project has none beside its playbooks",
                    task.place()
                )));
            }
            Action::Templated { .. } | Action::Include { .. } => {
                return Err(Unfit::Problem(format!(
                    "{}: an include cannot stand here",
                    task.place()
                )));
            }
        };
        Ok(Ok(Prepared {
            terms,
            work,
            delegate,
        }))
    }

    /// The scope of a task that is done on another host, whose variables it sees in `ansible_delegated_vars`.
    fn delegating(&self, name: &str, scope: &HostScope) -> HostScope {
        let other = self.shared.scope(name, super::shared::Place::default());
        let vars = self.shared.templar.variables(&other.shared());
        let delegated = Value::from_pairs([(name, vars)]);
        scope.with("ansible_delegated_vars", Variable::Data(delegated))
    }

    /// A call of a module of the project.
    fn external_call(
        &self,
        task: &Task,
        module: &External,
        args: serde_json::Map<String, serde_json::Value>,
        scope: &HostScope,
        terms: &Terms,
    ) -> Result<Call, Unfit> {
        let text = |name: &str| match scope.get(name) {
            Some(Variable::Written(node)) => {
                match self.shared.templar.value(&node, &scope.shared()) {
                    Ok(Evaluated::Known(value)) => Some(value),
                    _ => None,
                }
            }
            Some(Variable::Data(value)) => Some(value),
            _ => None,
        };
        let context = external::Context {
            written: task.action.name().to_owned(),
            check: terms.check == Some(true),
            diff: self.shared.settings.diff,
            verbosity: self.shared.settings.verbosity,
            no_log: terms.secret,
            interpreter: module
                .interpreter_variable()
                .and_then(|name| text(&name))
                .map(|value| value.to_string()),
            invocation: text("ansible_inject_invocation").is_some_and(|value| value.is_true()),
            shell: text("ansible_shell_executable").map(|value| value.to_string()),
        };
        let args = module.call(&args, &context).map_err(Unfit::Problem)?;
        let payload = module.payload().map_err(Unfit::Problem)?;
        let runner = fleet_modules::module::find(external::MODULE)
            .ok_or_else(|| Unfit::Problem("no module `_external` in this build".to_owned()))?;
        Ok(Call {
            module: runner,
            args,
            content: Some(Payload::held(payload.to_vec())),
        })
    }

    /// A task's arguments as written, with `args:` and `module_defaults:` behind them.
    async fn written_arguments(
        &mut self,
        task: &Task,
        scope: &HostScope,
    ) -> Result<IndexMap<String, Node>, Unfit> {
        let mut arguments = task.action.arguments().clone();
        let mut add = |value: &Value, place: &Node| {
            for name in value.try_iter().into_iter().flatten() {
                let own = value.get_item(&name).unwrap_or_default();
                arguments
                    .entry(name.to_string())
                    .or_insert_with(|| data_node(&own, place));
            }
        };
        if let Some(node) = &task.args {
            let value = self.known(node, scope).await?;
            match value.kind() {
                _ if is_omit(&value) => {}
                ValueKind::Map => add(&value, node),
                _ => {
                    return Err(Unfit::Problem(format!(
                        "Task failed: Finalization of task args for '{}' failed: \
                         Task args must resolve to a 'dict' not '{}'.",
                        task.action.full_name(),
                        type_name(&value)
                    )));
                }
            }
        }
        for node in task.directives.module_defaults.iter().rev() {
            let value = self.known(node, scope).await?;
            for name in value.try_iter().into_iter().flatten() {
                if task.action.is_called(&name.to_string()) {
                    add(&value.get_item(&name).unwrap_or_default(), node);
                }
            }
        }
        Ok(arguments)
    }

    /// A module's arguments, rendered; `omit` leaves them out.
    pub(super) async fn arguments(
        &mut self,
        arguments: &IndexMap<String, Node>,
        scope: &HostScope,
    ) -> Result<serde_json::Map<String, serde_json::Value>, Unfit> {
        let mut rendered = serde_json::Map::new();
        for (name, node) in arguments {
            // A mode keeps its spelling: 0644 is octal, and its digits must survive.
            if name.ends_with("mode") && node.as_i64().is_some() {
                rendered.insert(name.clone(), node.raw().into());
                continue;
            }
            let value = self.known(node, scope).await?;
            if !is_omit(&value) {
                rendered.insert(name.clone(), to_json(&value));
            }
        }
        Ok(rendered)
    }

    /// The link that a task goes over: this host's, or that of the host that it is delegated to.
    pub(super) async fn link_for(
        &mut self,
        play: &PlayContext,
        task: &Task,
        scope: &HostScope,
        terms: &Terms,
        delegate: Option<&str>,
    ) -> Result<Arc<Link>, Unfit> {
        let shared = Arc::clone(&self.shared);
        let other = delegate.filter(|name| *name != self.name);
        let link = match other {
            Some(name) => shared.link_elsewhere(name, terms.r#become.is_some()).await,
            None => {
                let root = play.as_root || terms.r#become.is_some();
                shared.link(&self.name, play, task, scope, root).await
            }
        };
        link.map_err(|end| {
            Unfit::Stop(match end {
                crate::event::HostEnd::Unreachable { message } => Stop::Unreachable(message),
                end => Stop::Refused(end),
            })
        })
    }
}

/// Whether a module's result becomes facts of the host.
fn returns_facts(module: &Module) -> bool {
    matches!(
        module.name,
        "setup" | "gather_facts" | "package_facts" | "service_facts" | "getent" | "mount_facts"
    )
}

/// A value that was rendered already.
pub(super) fn data_node(value: &Value, place: &Node) -> Node {
    let mut node = Node::from_json(&to_json(value), &place.span);
    node.tag = Some("unsafe".into());
    node
}

/// Ansible takes a list or a mapping for a text as Python writes it.
fn as_python_writes(
    module: &'static Module,
    args: &mut serde_json::Map<String, serde_json::Value>,
) {
    for (name, value) in args {
        if (value.is_array() || value.is_object())
            && takes_only_text(module, name)
            && let Ok(text) = python_text(&from_json(value))
        {
            *value = text.into();
        }
    }
}

/// What Ansible says of an argument that a module of the controller does not have.
fn unknown(action: LocalAction, arguments: &IndexMap<String, Node>) -> Option<String> {
    let known = action.arguments()?;
    let is_known = |name: &String| known.iter().any(|own| own.name == name);
    let argument = arguments.keys().find(|name| !is_known(name))?;
    let module = action.name();
    Some(match action {
        LocalAction::Assert | LocalAction::Debug | LocalAction::Pause => {
            let mut names: Vec<_> = known.iter().map(|own| own.name).collect();
            names.sort_unstable();
            format!(
                "Unsupported parameters for ({module}) module: {argument}. Supported parameters include: {}.",
                names.join(", ")
            )
        }
        LocalAction::IncludeVars => format!("{argument} is not a valid option in {module}"),
        _ => format!("Invalid options for {module}: {argument}"),
    })
}

fn is_local(task: &Task) -> bool {
    matches!(task.action, Action::Local { .. })
}

fn to_json_scalar(node: &Node) -> serde_json::Value {
    match node.as_bool() {
        Some(truth) => truth.into(),
        None => node.raw().trim().into(),
    }
}

/// A module's call, its arguments checked before anything is sent.
pub(super) fn checked_call(
    module: &'static Module,
    written: &str,
    args: serde_json::Map<String, serde_json::Value>,
    content: Option<Payload>,
    places: &IndexMap<String, Node>,
) -> Result<Call, Unfit> {
    let value = serde_json::Value::Object(args);
    (module.check)(&value).map_err(|problem| {
        let node = problem.argument.as_ref().and_then(|name| places.get(name));
        let said = problem.of_task(module.name, module.free_form);
        let message = match node {
            // What has a place of its own is shown there.
            Some(node) if said == problem.to_string() => {
                fleet_yaml::render(&wrong_argument(written, &problem, &node.span), false)
            }
            _ => said,
        };
        // With Ansible these look at their arguments before anything comes of them.
        match module.name {
            "async_status" | "fetch" | "script" | "unarchive" => Unfit::Problem(message),
            _ => Unfit::failed(message),
        }
    })?;
    let serde_json::Value::Object(args) = value else {
        return Err(Unfit::Problem(format!(
            "{written}: arguments are a mapping"
        )));
    };
    Ok(Call {
        module,
        args,
        content,
    })
}

/// The end of an item that was decided here.
pub(super) fn done(status: Status, result: &serde_json::Value) -> Outcome {
    Outcome {
        id: 0,
        status,
        result: Json(result.to_string()),
        effects: Vec::new(),
        took_us: 0,
    }
}

/// An evaluation's failure as the user sees it: with its place, its line and a hint.
pub(super) fn describe(problem: &EvalError) -> String {
    fleet_yaml::render(problem.diagnostic(), false)
}

/// What a keyword says without being rendered.
fn said(node: &Option<Node>, otherwise: bool) -> bool {
    node.as_ref().and_then(Node::as_bool).unwrap_or(otherwise)
}
