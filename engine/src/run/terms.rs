//! A task's directives, rendered for a host: as whom, with which environment, whom to notify.

use std::sync::Arc;

use fleet_wire::As;
use fleet_yaml::Node;
use minijinja::{Value, value::ValueKind};

use super::{
    dispatch::{PlayContext, Unfit},
    host::Host,
    scope::HostScope,
};
use crate::{
    event::Event,
    playbook::{Action, Task},
    template::{Evaluated, is_omit},
};

/// The directives of a task, rendered.
#[derive(Clone)]
pub(super) struct Terms {
    /// The user to act as; none where `become` is not asked for.
    pub(super) r#become: Option<String>,
    pub(super) environment: Vec<(String, String)>,
    pub(super) check: Option<bool>,
    pub(super) ignore_errors: bool,
    pub(super) secret: bool,
    pub(super) timeout_s: u32,
    pub(super) background_s: Option<u32>,
    pub(super) notify: Vec<String>,
}

impl Terms {
    /// Whom the helper is to act as, where it runs as root or not.
    pub(super) fn user(&self, root: bool) -> As {
        match self.r#become.as_deref() {
            None => As::Login,
            Some("root") if root => As::Helper,
            Some(user) => As::User(user.to_owned()),
        }
    }
}

/// Whether a task gathers facts.
fn gathers(task: &Task) -> bool {
    matches!(&task.action, Action::Module { module, .. } if module.name == "setup")
}

/// A value as yes or no, in all spellings that Ansible knows.
pub(super) fn truth(value: &Value) -> bool {
    match value.as_str() {
        Some(text) => matches!(
            text.to_ascii_lowercase().as_str(),
            "yes" | "on" | "true" | "1" | "y" | "t"
        ),
        None => value.is_true(),
    }
}

impl Host {
    /// A keyword's value; none where it is absent, empty or `omit`.
    pub(super) async fn keyword(
        &mut self,
        node: Option<&Node>,
        scope: &HostScope,
    ) -> Result<Option<Value>, Unfit> {
        let Some(node) = node else { return Ok(None) };
        let value = self.known(node, scope).await?;
        Ok((!value.is_none() && !is_omit(&value)).then_some(value))
    }

    /// A keyword's yes or no.
    pub(super) async fn flag(
        &mut self,
        node: Option<&Node>,
        scope: &HostScope,
    ) -> Result<Option<bool>, Unfit> {
        let value = self.keyword(node, scope).await?;
        Ok(value.as_ref().map(truth))
    }

    /// A keyword's number.
    pub(super) async fn number(
        &mut self,
        node: Option<&Node>,
        scope: &HostScope,
    ) -> Result<Option<f64>, Unfit> {
        let Some(value) = self.keyword(node, scope).await? else {
            return Ok(None);
        };
        let text = value.to_string();
        match text.trim().parse::<f64>() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(Unfit::Problem(format!(
                "{}: a number is wanted here, not `{text}`",
                node.map_or_else(String::new, |node| node.span.to_string())
            ))),
        }
    }

    /// A keyword's text.
    pub(super) async fn words(
        &mut self,
        node: Option<&Node>,
        scope: &HostScope,
    ) -> Result<Option<String>, Unfit> {
        let value = self.keyword(node, scope).await?;
        Ok(value.map(|value| value.to_string()))
    }

    pub(super) async fn terms(
        &mut self,
        play: &PlayContext,
        task: &Task,
        scope: &HostScope,
    ) -> Result<Terms, Unfit> {
        let directives = &task.directives;
        let mut environment: Vec<(String, String)> = Vec::new();
        for node in &directives.environment {
            let value = match self.known(node, scope).await {
                // What facts are to tell cannot be known while they are gathered.
                Err(Unfit::Problem(_)) if gathers(task) => self.known_entries(node, scope).await?,
                value => value?,
            };
            let parts = match value.kind() {
                ValueKind::Seq => value.try_iter().map(Iterator::collect).unwrap_or_default(),
                _ => vec![value],
            };
            for part in parts {
                for name in part.try_iter().into_iter().flatten() {
                    let text = part.get_item(&name).unwrap_or_default();
                    if is_omit(&text) {
                        continue;
                    }
                    environment.retain(|(own, _)| *own != name.to_string());
                    environment.push((name.to_string(), text.to_string()));
                }
            }
        }
        let limit = self.number(task.r#async.as_ref(), scope).await?;
        let limit = limit.filter(|seconds| *seconds > 0.0);
        let poll = self.number(task.poll.as_ref(), scope).await?;
        let timeout = self.number(directives.timeout.as_ref(), scope).await?;
        let background = limit.filter(|_| poll == Some(0.0));
        let about_jobs = background.is_some() || task.action.is_called("async_status");
        if about_jobs
            && let Some(node) = scope.get_written("ansible_async_dir")
            && environment
                .iter()
                .all(|(name, _)| name != "ANSIBLE_ASYNC_DIR")
            && let Some(dir) = self.words(Some(&node), scope).await?
        {
            environment.push(("ANSIBLE_ASYNC_DIR".to_owned(), dir));
        }
        // A task that is polled for is one that has so long: nothing waits on the line but its answer.
        let waited = limit.filter(|_| background.is_none());
        let timeout = [timeout.filter(|seconds| *seconds > 0.0), waited]
            .into_iter()
            .flatten()
            .reduce(f64::min);
        let whole = |seconds: f64| seconds.ceil() as u32;
        Ok(Terms {
            r#become: self.become_user(task, scope).await?,
            environment,
            check: self.flag(directives.check_mode.as_ref(), scope).await?,
            ignore_errors: self
                .flag(directives.ignore_errors.as_ref(), scope)
                .await?
                .unwrap_or(false),
            secret: self
                .flag(directives.no_log.as_ref(), scope)
                .await?
                .unwrap_or(self.shared.settings.no_log),
            timeout_s: timeout.map_or(0, whole),
            background_s: background.map(whole),
            notify: self.notifications(play, task, scope).await?,
        })
    }

    /// Those entries of a mapping that can be known.
    async fn known_entries(&mut self, node: &Node, scope: &HostScope) -> Result<Value, Unfit> {
        let mut known = Vec::new();
        for (key, value) in node.as_map().into_iter().flat_map(fleet_yaml::Map::iter) {
            match self.known(value, scope).await {
                Ok(value) => known.push((
                    Value::from(key.scalar_text().unwrap_or_default().as_ref()),
                    value,
                )),
                Err(Unfit::Stop(stop)) => return Err(Unfit::Stop(stop)),
                Err(_) => {}
            }
        }
        Ok(Value::from_pairs(known))
    }

    /// The user that a task is done as; none where it is the one who logged in.
    async fn become_user(
        &mut self,
        task: &Task,
        scope: &HostScope,
    ) -> Result<Option<String>, Unfit> {
        let variable = scope.get_written("ansible_become");
        let node = variable.as_ref().or(task.directives.r#become.as_ref());
        let wanted = self.flag(node, scope).await?;
        if !wanted.unwrap_or(self.shared.settings.r#become) {
            return Ok(None);
        }
        let variable = scope.get_written("ansible_become_user");
        let node = variable.as_ref().or(task.directives.become_user.as_ref());
        let user = self.words(node, scope).await?;
        let user = user.or_else(|| self.shared.settings.become_user.clone());
        Ok(Some(user.unwrap_or_else(|| "root".to_owned())))
    }

    /// The handlers that a change notifies, by their keys.
    async fn notifications(
        &mut self,
        play: &PlayContext,
        task: &Task,
        scope: &HostScope,
    ) -> Result<Vec<String>, Unfit> {
        let mut notify = Vec::new();
        for node in task.directives.notify.iter().chain(&task.notify) {
            let Some(value) = self.keyword(Some(node), scope).await? else {
                continue;
            };
            let names: Vec<String> = match value.kind() {
                ValueKind::Seq => value
                    .try_iter()
                    .into_iter()
                    .flatten()
                    .map(|name| name.to_string())
                    .collect(),
                _ => vec![value.to_string()],
            };
            for name in names.into_iter().filter(|name| !name.is_empty()) {
                let answering = self.answering(play, &name, scope);
                if answering.is_empty() {
                    let text = format!(
                        "The requested handler '{name}' was not found in either the main handlers list nor in the \
                         listening handlers list"
                    );
                    self.shared
                        .emit(Event::Warning {
                            host: Some(self.name.clone()),
                            text,
                        })
                        .await;
                    if self.shared.settings.missing_handlers_fail {
                        return Err(Unfit::Problem(format!(
                            "{}: no handler is called `{name}`, and none listens to it",
                            node.span
                        )));
                    }
                }
                notify.extend(answering);
            }
        }
        Ok(notify)
    }

    /// The keys of the handlers that answer to a name: the last one of that name, and all that listen to it.
    fn answering(&self, play: &PlayContext, name: &str, scope: &HostScope) -> Vec<String> {
        let handlers: Vec<&Arc<Task>> = self.all_handlers(play).collect();
        let rendered = |node: &Node| match self.shared.templar.value(node, &scope.shared()) {
            Ok(Evaluated::Known(value)) => Some(value),
            _ => None,
        };
        let of_role = |handler: &Arc<Task>, title: &str| {
            handler.directives.role.as_ref().is_some_and(|role| {
                let short = role.name.rsplit('.').next().unwrap_or_default();
                [role.name.as_str(), short]
                    .iter()
                    .any(|role| name == format!("{role} : {title}"))
            })
        };
        let named = |handler: &&&Arc<Task>| {
            let title = handler.name.as_ref().and_then(&rendered);
            let title = title.map_or_else(|| handler.title().to_owned(), |title| title.to_string());
            title == name || of_role(handler, &title)
        };
        // Unlike names, topics are no templates.
        let listens = |handler: &Arc<Task>| {
            let mut topics = handler.listen.iter().filter_map(Node::as_str);
            topics.any(|topic| topic == name || of_role(handler, topic))
        };
        // Of lists of handlers the last counts: the play's own hides a role's. Within one list it is the first.
        let list = |handler: &Arc<Task>| {
            let role = handler.directives.role.as_ref().map(|role| role.instance);
            (role, handler.span.source.name.clone())
        };
        let last_list = handlers.iter().rev().find(named).map(|last| list(last));
        let mut of_list = handlers.iter().filter(named);
        let last = of_list
            .find(|handler| Some(list(handler)) == last_list)
            .map(|first| first.id);
        let answers = |handler: &&&Arc<Task>| Some(handler.id) == last || listens(handler);
        let answering = handlers.iter().filter(answers);
        answering
            .map(|handler| play.handler_key(self, handler))
            .collect()
    }
}
