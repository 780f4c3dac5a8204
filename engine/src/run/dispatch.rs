//! From a task as written to tasks on the wire: conditions decided, templates rendered, sent ahead
//! as far as nothing depends on an answer that is still on its way.

use std::sync::Arc;

use fleet_modules::module::Module;
use fleet_wire::{Json, OnlyIf, Outcome, Status, ToHost};
use fleet_yaml::Node;
use indexmap::IndexMap;
use minijinja::Value;
use serde_json::json;

use super::{
    content::{self, from_json, to_json},
    flight::{Flight, Item},
    frame::constant,
    host::{Host, Stop},
    local,
    payload::Payload,
    scope::HostScope,
};
use crate::{
    event::{TaskEnded, TaskInfo},
    playbook::{Action, LocalAction, Task, wrong_argument},
    template::{EvalError, Evaluated, is_omit},
    variables::Variable,
};

/// What a play adds to the way a task is run on a host.
pub(super) struct PlayContext {
    pub(super) scope: HostScope,
    /// Directories in which `src:` is looked for.
    pub(super) search: Vec<std::path::PathBuf>,
    /// The helper runs as root.
    pub(super) as_root: bool,
    /// The play's handlers, in the order in which they run.
    pub(super) handlers: Vec<Arc<Task>>,
}

/// Something that could be evaluated, or is not known before an apply.
pub(super) enum Settled<T> {
    Known(T),
    Unknown(Vec<String>),
}

/// A task that cannot be sent, and why.
pub(super) enum Unfit {
    Problem(String),
    Unknown(Vec<String>),
    Stop(Stop),
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

    /// Sends a task on its way, or does it here.
    pub(super) async fn task(
        &mut self,
        play: &PlayContext,
        task: &Arc<Task>,
        only_if: Option<OnlyIf>,
    ) -> Result<(), Stop> {
        self.room().await?;
        let scope = play.scope.of_task(task);
        let info = self.info(task, &scope, only_if.is_some());
        match self.prepare(play, task, &scope, &info, only_if).await {
            Ok(()) => Ok(()),
            Err(Unfit::Stop(stop)) => Err(stop),
            Err(Unfit::Unknown(because)) => {
                let result =
                    json!({"changed": true, "msg": "known after apply", "depends_on": because});
                if let Some(name) = &task.register {
                    scope.state.set(name, Variable::Unknown);
                }
                self.ended(&info, Status::Unknown, result, false, false)
                    .await
            }
            Err(Unfit::Problem(message)) => {
                // Only a task that is reached can fail: what is before it must have gone through.
                self.drain().await?;
                let ignored = self
                    .flag(task.directives.ignore_errors.as_ref(), &scope)
                    .await;
                let ignored = matches!(ignored, Ok(Some(true)));
                let secret = self.flag(task.directives.no_log.as_ref(), &scope).await;
                let secret = !matches!(secret, Ok(None | Some(false)));
                let result = json!({"changed": false, "failed": true, "msg": message});
                if let Some(name) = &task.register {
                    scope.state.set(name, Variable::Data(from_json(&result)));
                }
                self.ended(&info, Status::Failed, result, ignored, secret)
                    .await
            }
        }
    }

    async fn ended(
        &mut self,
        info: &Arc<TaskInfo>,
        status: Status,
        result: serde_json::Value,
        ignored: bool,
        secret: bool,
    ) -> Result<(), Stop> {
        let ended = TaskEnded {
            host: self.name.clone(),
            task: Arc::clone(info),
            item: None,
            index: 0,
            status,
            result,
            effects: Arc::from([]),
            took: std::time::Duration::ZERO,
            ignored,
            secret,
        };
        if status == Status::Failed {
            return self.fail(ended).await;
        }
        self.tell(vec![crate::event::Event::TaskEnded(Box::new(ended))])
            .await;
        Ok(())
    }

    fn info(&self, task: &Task, scope: &HostScope, handler: bool) -> Arc<TaskInfo> {
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
            handler,
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
        let terms = self.terms(play, task, scope).await?;
        let looped = task.r#loop.is_some();
        let items = match &task.r#loop {
            // A condition that holds for no item spares the list, which may not even be defined then.
            Some(r#loop) => self.items(r#loop, scope).await?,
            None => vec![(None, scope.clone())],
        };
        if items.is_empty() {
            let result = json!({"changed": false, "skipped": true, "results": [], "msg": "No items in the list"});
            if let Some(name) = &task.register {
                scope.state.set(name, Variable::Data(from_json(&result)));
            }
            return Ok(self
                .ended(info, Status::Skipped, result, false, false)
                .await?);
        }

        self.next_group += 1;
        let group = self.next_group;
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
            looped,
            ignore_errors: terms.ignore_errors,
            secret: terms.secret,
            judged: !task.failed_when.is_empty()
                || constant(&task.changed_when).is_none() && !task.changed_when.is_empty(),
            notify: terms.notify.clone(),
        };
        let mut ids = Vec::new();
        let mut frames = Vec::new();
        for (value, scope) in items {
            let index = flight.items.len();
            let mut end = None;
            match self.item(play, task, &scope).await {
                Ok(None) => {
                    end = Some(done(
                        Status::Skipped,
                        &json!({
                            "changed": false, "skipped": true, "skip_reason": "Conditional result was False",
                        }),
                    ));
                }
                Ok(Some(Work::Local(local::Done { status, result }))) => {
                    end = Some(done(status, &result))
                }
                Ok(Some(Work::Calls(calls))) => {
                    for call in calls {
                        self.next_task += 1;
                        ids.push((self.next_task, index));
                        frames.push(self.frame(
                            group,
                            call,
                            info,
                            &terms,
                            task,
                            only_if.as_ref(),
                            &flight,
                        ));
                    }
                }
                Err(Unfit::Unknown(because)) => {
                    end = Some(done(
                        Status::Unknown,
                        &json!({
                            "changed": true, "msg": "known after apply", "depends_on": because,
                        }),
                    ));
                }
                // A failing item of a loop leaves the other items their turn.
                Err(Unfit::Problem(message))
                    if looped || matches!(task.action, Action::Local { .. }) =>
                {
                    self.drain().await?;
                    end = Some(done(
                        Status::Failed,
                        &json!({"changed": false, "failed": true, "msg": message}),
                    ));
                }
                Err(other) => return Err(other),
            }
            flight.items.push(Item { value, scope, end });
        }
        flight.open = ids.len();
        let judged = flight.judged;
        if let Some(name) = &task.register {
            scope.state.set(name, self.pending(group));
        }
        if matches!(&task.action, Action::Module { module, .. } if module.name == "setup") {
            scope.state.facts_pending(self.pending(group));
        }
        if flight.open == 0 {
            return Ok(self.landed_here(flight).await?);
        }
        self.flights.add(flight, ids);
        for frame in frames {
            self.send(&ToHost::Task(Box::new(frame))).await?;
        }
        if judged {
            let own = self.shared.state(&self.name).pending(group);
            self.settle(own).await?;
        }
        Ok(())
    }

    async fn landed_here(&mut self, flight: Flight) -> Result<(), Stop> {
        let judged = super::verdict::judge(&self.shared, &self.name, flight);
        self.notified.extend(judged.notify);
        let failed = judged.failed;
        self.tell(judged.events).await;
        if failed { Err(Stop::Failed) } else { Ok(()) }
    }

    /// What one item asks for; none where its condition does not hold.
    async fn item(
        &mut self,
        play: &PlayContext,
        task: &Task,
        scope: &HostScope,
    ) -> Result<Option<Work>, Unfit> {
        for condition in &task.directives.when {
            if !self.truth(condition, scope).await? {
                return Ok(None);
            }
        }
        match &task.action {
            Action::Module {
                module,
                arguments,
                written,
            } => {
                let args = self.arguments(arguments, scope).await?;
                let call = checked_call(module, written, args, None, arguments)?;
                Ok(Some(Work::Calls(vec![call])))
            }
            Action::Local {
                action: LocalAction::Template | LocalAction::Copy,
                ..
            } => content::calls(self, play, task, scope)
                .await
                .map(|calls| Some(Work::Calls(calls))),
            Action::Local {
                action,
                arguments,
                span,
            } => local::act(self, *action, arguments, span, play, task, scope)
                .await
                .map(|done| Some(Work::Local(done))),
        }
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
        Unfit::Problem(match node {
            Some(node) => fleet_yaml::render(&wrong_argument(written, &problem, &node.span), false),
            None => format!("{written}: {problem}"),
        })
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

fn done(status: Status, result: &serde_json::Value) -> Outcome {
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
