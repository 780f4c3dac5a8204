//! A task's directives, rendered for a host: as whom, with which environment, whom to notify.

use fleet_wire::As;
use fleet_yaml::Node;

use super::{
    dispatch::{PlayContext, Unfit},
    host::Host,
    scope::HostScope,
};
use crate::{playbook::Task, template::is_omit};

/// The directives of a task, rendered.
pub(super) struct Terms {
    pub(super) user: As,
    pub(super) environment: Vec<(String, String)>,
    pub(super) check: Option<bool>,
    pub(super) ignore_errors: bool,
    pub(super) secret: bool,
    pub(super) timeout_s: u32,
    pub(super) notify: Vec<String>,
}

impl Host {
    /// A keyword's yes or no.
    pub(super) async fn flag(
        &mut self,
        node: Option<&Node>,
        scope: &HostScope,
    ) -> Result<Option<bool>, Unfit> {
        let Some(node) = node else { return Ok(None) };
        let value = self.known(node, scope).await?;
        if value.is_none() || is_omit(&value) {
            return Ok(None);
        }
        Ok(Some(match value.as_str() {
            Some(text) => matches!(
                text.to_ascii_lowercase().as_str(),
                "yes" | "on" | "true" | "1" | "y" | "t"
            ),
            None => value.is_true(),
        }))
    }

    pub(super) async fn terms(
        &mut self,
        play: &PlayContext,
        task: &Task,
        scope: &HostScope,
    ) -> Result<Terms, Unfit> {
        let directives = &task.directives;
        let variable = scope.get_written("ansible_become");
        let wanted = self.flag(directives.r#become.as_ref(), scope).await?;
        let wanted = match (wanted, variable) {
            (_, Some(node)) => self.flag(Some(&node), scope).await?,
            (None, None) => Some(self.shared.settings.r#become),
            (wanted, None) => wanted,
        };
        let user = if wanted == Some(true) {
            let user = match &directives.become_user {
                Some(node) => Some(self.known(node, scope).await?.to_string()),
                None => self.shared.settings.become_user.clone(),
            };
            match user.as_deref() {
                None | Some("root") if play.as_root => As::Helper,
                None => As::User("root".to_owned()),
                Some(name) => As::User(name.to_owned()),
            }
        } else {
            As::Login
        };
        let mut environment = Vec::new();
        for node in &directives.environment {
            let value = self.known(node, scope).await?;
            if let Ok(names) = value.try_iter() {
                for name in names {
                    let text = value
                        .get_item(&name)
                        .map(|v| v.to_string())
                        .unwrap_or_default();
                    environment.push((name.to_string(), text));
                }
            }
        }
        let mut notify = Vec::new();
        for node in directives.notify.iter().chain(&task.notify) {
            let name = self.known(node, scope).await?.to_string();
            let before = notify.len();
            let answering = play
                .handlers
                .iter()
                .filter(|handler| handler.answers_to(&name));
            notify.extend(answering.map(|handler| handler.title().to_owned()));
            if notify.len() == before {
                return Err(Unfit::Problem(format!(
                    "{}: no handler of this play answers to `{name}`",
                    node.span
                )));
            }
        }
        let timeout = match &directives.timeout {
            Some(node) => i64::try_from(self.known(node, scope).await?).unwrap_or_default(),
            None => 0,
        };
        Ok(Terms {
            user,
            environment,
            check: self.flag(directives.check_mode.as_ref(), scope).await?,
            ignore_errors: self
                .flag(directives.ignore_errors.as_ref(), scope)
                .await?
                .unwrap_or(false),
            secret: self
                .flag(directives.no_log.as_ref(), scope)
                .await?
                .unwrap_or(false),
            timeout_s: u32::try_from(timeout).unwrap_or_default(),
            notify,
        })
    }
}
