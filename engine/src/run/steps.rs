//! Tasks whose items are done one after another, each looked at before the next: `until`, `throttle`, `pause` and
//! `break_when`, items for different machines.

use std::{sync::Arc, time::Duration};

use fleet_wire::{Json, Mode, Outcome, Status};
use fleet_yaml::Node;
use serde_json::json;
use tokio::sync::Semaphore;

use super::{
    back_again,
    content::from_json,
    dispatch::{Call, PlayContext, Prepared, Unfit, Work, done},
    fetch::{self, Fetch},
    flight::{Flight, Item},
    host::{Host, Stop},
    items::OneItem,
    local,
    scope::HostScope,
    verdict,
};
use crate::{
    event::Event,
    playbook::{Action, Loop, Task},
    variables::Variable,
};

/// How often a task is tried, and how long to wait between.
struct Patience {
    tries: u32,
    delay: Duration,
}

impl Host {
    /// Whether a task's items cannot all be sent at once.
    pub(super) fn takes_steps(&self, task: &Task) -> bool {
        let control = task.r#loop.as_ref();
        let between = |control: &Loop| control.pause.is_some() || !control.break_when.is_empty();
        !task.until.is_empty()
            || task.retries.is_some()
            || task.directives.throttle.is_some()
            || task.directives.delegate_to.is_some()
            || is_fetch(task)
            || is_reboot(task)
            || control.is_some_and(between)
    }

    /// Does the items of a task one after another.
    pub(super) async fn steps_of(
        &mut self,
        play: &PlayContext,
        task: &Arc<Task>,
        mut flight: Flight,
        items: Vec<OneItem>,
    ) -> Result<(), Unfit> {
        self.drain().await?;
        let turn = self.turn(task, &flight.scope).await?;
        let _turn = match &turn {
            Some(turn) => turn.acquire().await.ok(),
            None => None,
        };
        flight.returns = true;
        flight.judged = true;
        let looped = flight.looped;
        for (index, (value, scope)) in items.into_iter().enumerate() {
            if let (Some(r#loop), true) = (&task.r#loop, index > 0)
                && let Some(seconds) = self.number(r#loop.pause.as_ref(), &scope).await?
            {
                tokio::time::sleep(Duration::from_secs_f64(seconds.max(0.0))).await;
            }
            let label = value.as_ref().map(|(_, label)| label.clone());
            let (end, prepared) = self.item(play, task, &scope, looped).await?;
            let end = match (prepared, end) {
                (Some(prepared), _) => {
                    flight.take_terms(&prepared.terms);
                    let tried = self
                        .tries(play, task, &mut flight, index, &scope, label, prepared)
                        .await;
                    match tried {
                        // One item out of reach leaves the others their turn, as a failed one does.
                        Err(Unfit::Problem(message)) if looped => {
                            done(Status::Failed, &json!({"failed": true, "msg": message}))
                        }
                        tried => tried?,
                    }
                }
                (None, Some(over)) => {
                    if over.outcome.status == Status::Failed {
                        self.failed_early(task, &scope, &mut flight).await;
                    }
                    match over.judged {
                        true => over.outcome,
                        false => self.judged(task, &flight, &scope, over.outcome).0,
                    }
                }
                (None, None) => continue,
            };
            let mut end = end;
            let result = from_json(&serde_json::from_str(&end.result.0).unwrap_or_default());
            let breaks = match self.breaks(task, &scope, result).await {
                Err(Unfit::Problem(why)) => {
                    let failed = end.status == Status::Failed;
                    if failed {
                        add(
                            &mut end,
                            "break_when_suppressed_exception",
                            "(traceback unavailable)".into(),
                        );
                    } else {
                        add(
                            &mut end,
                            "msg",
                            format!("A 'break_when' expression failed: {why}").into(),
                        );
                        add(&mut end, "failed", true.into());
                        end.status = Status::Failed;
                    }
                    add(&mut end, "break_when_result", why.into());
                    true
                }
                breaks => breaks?,
            };
            flight.items.push(Item {
                value,
                scope: scope.clone(),
                end: Some(end),
                judged: true,
                invocation: None,
            });
            if breaks {
                break;
            }
        }
        flight.returns = false;
        Ok(self.over_here(flight).await?)
    }

    /// What a host has to hold while it does a throttled task.
    async fn turn(
        &mut self,
        task: &Task,
        scope: &HostScope,
    ) -> Result<Option<Arc<Semaphore>>, Unfit> {
        let keyword = self.keyword(task.directives.throttle.as_ref(), scope);
        let throttle = match keyword.await {
            Ok(None) => None,
            Ok(Some(value)) => {
                let text = value.to_string();
                let number = text.trim().parse::<f64>();
                let why = || format!("invalid literal for int() with base 10: '{text}'");
                Some(number.map_err(|_| no_throttle(&why()))?)
            }
            Err(Unfit::Problem(why)) => return Err(no_throttle(&why)),
            Err(other) => return Err(other),
        };
        let places = throttle.filter(|places| *places >= 1.0);
        Ok(places.map(|places| self.shared.turns(task.id, places as usize)))
    }

    /// Whether the loop ends behind this item.
    async fn breaks(
        &mut self,
        task: &Task,
        scope: &HostScope,
        result: minijinja::Value,
    ) -> Result<bool, Unfit> {
        let Some(r#loop) = task
            .r#loop
            .as_ref()
            .filter(|own| !own.break_when.is_empty())
        else {
            return Ok(false);
        };
        let scope = match &task.register {
            Some(name) => scope.with(name, Variable::Data(result)),
            None => scope.clone(),
        };
        Ok(self.all_true(&r#loop.break_when, &scope).await?.is_none())
    }

    async fn patience(
        &mut self,
        task: &Task,
        scope: &HostScope,
    ) -> Result<Option<Patience>, Unfit> {
        let retries = self.number(task.retries.as_ref(), scope).await?;
        if task.until.is_empty() && retries.is_none() {
            return Ok(None);
        }
        let delay = self.number(task.delay.as_ref(), scope).await?;
        Ok(Some(Patience {
            tries: retries.unwrap_or(3.0).max(0.0) as u32 + 1,
            delay: Duration::from_secs_f64(delay.unwrap_or(5.0).max(0.0)),
        }))
    }

    /// Does one item, as often as it takes.
    #[expect(
        clippy::too_many_arguments,
        reason = "an item is all of its task's rendered parts"
    )]
    async fn tries(
        &mut self,
        play: &PlayContext,
        task: &Arc<Task>,
        flight: &mut Flight,
        index: usize,
        scope: &HostScope,
        label: Option<String>,
        first: Prepared,
    ) -> Result<Outcome, Unfit> {
        let patience = self.patience(task, scope).await?;
        let mut prepared = first;
        let mut attempt = 1;
        loop {
            let mut outcome = self
                .attempt(play, task, flight, index, scope, prepared)
                .await?;
            if patience.is_some() {
                add(&mut outcome, "attempts", attempt.into());
            }
            let (mut outcome, scope) = self.judged(task, flight, scope, outcome);
            let Some(patience) = &patience else {
                return Ok(outcome);
            };
            let over = match outcome.status {
                Status::Unknown | Status::Skipped => true,
                _ if task.until.is_empty() => outcome.status != Status::Failed,
                _ => self.all_true(&task.until, &scope).await?.is_none(),
            };
            if over {
                return Ok(outcome);
            }
            if attempt >= patience.tries {
                add(&mut outcome, "attempts", (attempt - 1).into());
                // Where the task says itself what a failure is, having tried often enough is none.
                return Ok(match task.failed_when.is_empty() {
                    true => given_up(outcome, &task.until),
                    false => outcome,
                });
            }
            self.shared
                .emit(Event::Retrying {
                    host: self.name.clone(),
                    task: Arc::clone(&flight.info),
                    item: label.clone().filter(|_| !flight.secret),
                    left: patience.tries - attempt,
                    result: match flight.secret {
                        true => serde_json::Value::Null,
                        false => serde_json::from_str(&outcome.result.0).unwrap_or_default(),
                    },
                })
                .await;
            if self.shared.settings.interrupted() {
                return Ok(outcome);
            }
            tokio::time::sleep(patience.delay).await;
            attempt += 1;
            prepared = match self.item(play, task, &scope, false).await? {
                (None, Some(prepared)) => prepared,
                (Some(over), _) => return Ok(over.outcome),
                (None, None) => return Ok(outcome),
            };
        }
    }

    /// One try of one item. A file that is fetched comes in parts.
    async fn attempt(
        &mut self,
        play: &PlayContext,
        task: &Arc<Task>,
        flight: &mut Flight,
        index: usize,
        scope: &HostScope,
        prepared: Prepared,
    ) -> Result<Outcome, Unfit> {
        let plans = prepared
            .terms
            .check
            .unwrap_or(self.shared.mode == Mode::Plan);
        if is_fetch(task) && plans {
            let message = "check mode not (yet) supported for this module";
            return Ok(done(
                Status::Skipped,
                &json!({"skipped": true, "msg": message}),
            ));
        }
        let name = prepared
            .delegate
            .clone()
            .unwrap_or_else(|| self.name.clone());
        let (terms, delegate) = (prepared.terms.clone(), prepared.delegate.clone());
        let fetch = Fetch::of(&prepared.work, &name, &play.play.dir)?;
        let args = match &prepared.work {
            Work::Calls(calls) if is_reboot(task) && !plans => {
                calls.first().map(|call| call.args.clone())
            }
            _ => None,
        };
        let mut outcome = self
            .turn_of(play, task, flight, index, scope, prepared)
            .await?;
        if let Some(args) = args
            && outcome.status == Status::Changed
        {
            return self.rebooted(&name, &args, &outcome).await;
        }
        let Some(mut fetch) = fetch else {
            return Ok(outcome);
        };
        let call = |args| {
            Some(Call {
                module: fleet_modules::module::find(fetch::MODULE)?,
                args,
                content: None,
            })
        };
        while let Some(next) = fetch.take(&outcome, &call) {
            let next = Prepared {
                terms: terms.clone(),
                work: Work::Calls(vec![next]),
                delegate: delegate.clone(),
            };
            outcome = self.turn_of(play, task, flight, index, scope, next).await?;
        }
        Ok(fetch.finish(outcome))
    }

    /// Sends what one item asks for, and waits for the answer.
    async fn turn_of(
        &mut self,
        play: &PlayContext,
        task: &Arc<Task>,
        flight: &mut Flight,
        index: usize,
        scope: &HostScope,
        prepared: Prepared,
    ) -> Result<Outcome, Unfit> {
        let Prepared {
            terms,
            work,
            delegate,
        } = prepared;
        flight.delegated.clone_from(&delegate);
        let own_facts = self
            .flag(task.directives.delegate_facts.as_ref(), scope)
            .await?
            != Some(true);
        flight.facts_of = delegate
            .as_ref()
            .filter(|_| !own_facts)
            .map(|name| self.shared.state(name));
        let calls = match work {
            Work::Local(local::Done { status, result }) => return Ok(done(status, &result)),
            Work::Calls(calls) => calls,
        };
        let link = self
            .link_for(play, task, scope, &terms, delegate.as_deref())
            .await?;
        self.turn_to(&link).await?;
        let group = self.new_group();
        let own = Flight {
            group,
            task: Arc::clone(task),
            info: Arc::clone(&flight.info),
            scope: scope.clone(),
            items: vec![Item {
                value: None,
                scope: scope.clone(),
                end: None,
                judged: false,
                invocation: None,
            }],
            open: calls.len(),
            looped: false,
            ignore_errors: true,
            secret: flight.secret,
            judged: true,
            notify: Vec::new(),
            returns: true,
            rehearsed: false,
            rescued: false,
            delegated: None,
            facts_of: None,
        };
        let (mut ids, mut frames) = (Vec::new(), Vec::new());
        for call in calls {
            let (frame, content) = self.frame(&own, index, call, &terms, None, &link);
            ids.push((frame.id, 0));
            frames.push((frame, content));
        }
        self.flights.add(own, ids);
        for (frame, content) in frames {
            self.send(frame, content).await?;
        }
        let back = self.back(group).await?;
        back.and_then(|mut flight| flight.items.pop()?.end)
            .ok_or_else(|| Unfit::Stop(Stop::Lost("an answer did not come back".to_owned())))
    }

    /// A try after `failed_when` and `changed_when`, and the scope in which its result is seen.
    fn judged(
        &self,
        task: &Task,
        flight: &Flight,
        scope: &HostScope,
        outcome: Outcome,
    ) -> (Outcome, HostScope) {
        let item = Item {
            value: None,
            scope: scope.clone(),
            end: None,
            judged: false,
            invocation: None,
        };
        let (status, result) = verdict::item_verdict(&self.shared, flight, &item, &outcome);
        let scope = match &task.register {
            Some(name) => scope.with(name, Variable::Data(from_json(&result))),
            None => scope.clone(),
        };
        let outcome = Outcome {
            status,
            result: Json(result.to_string()),
            ..outcome
        };
        (outcome, scope)
    }
}

/// Who cannot tell how many hosts may do a task at once cannot run it at all.
fn no_throttle(why: &str) -> Unfit {
    // Of a message with its place the message.
    let first = why.lines().next().unwrap_or_default();
    let bare = match first.strip_prefix("error") {
        Some(rest) => rest.split_once(": ").map_or(first, |(_, bare)| bare),
        None => first,
    };
    Unfit::Broken(format!(
        "Failed to convert the throttle value to an integer: {bare}"
    ))
}

fn is_reboot(task: &Task) -> bool {
    matches!(&task.action, Action::Module { module, .. } if module.name == back_again::REBOOT)
}

fn is_fetch(task: &Task) -> bool {
    matches!(&task.action, Action::Module { module, .. } if module.name == fetch::MODULE)
}

/// A task that was tried often enough: it has failed, though its last try may have gone through.
fn given_up(mut outcome: Outcome, until: &[Node]) -> Outcome {
    if outcome.status != Status::Failed {
        let conditions: Vec<_> = until.iter().map(|until| until.raw().trim()).collect();
        let why = format!("`{}` did not come true", conditions.join("` and `"));
        add(&mut outcome, "failed", true.into());
        let result: serde_json::Value = serde_json::from_str(&outcome.result.0).unwrap_or_default();
        if result.get("msg").is_none() {
            add(&mut outcome, "msg", why.into());
        }
        outcome.status = Status::Failed;
    }
    outcome
}

fn add(outcome: &mut Outcome, name: &str, value: serde_json::Value) {
    let mut result: serde_json::Value =
        serde_json::from_str(&outcome.result.0).unwrap_or_else(|_| json!({}));
    if let Some(fields) = result.as_object_mut() {
        fields.insert(name.to_owned(), value);
    }
    outcome.result = Json(result.to_string());
}
