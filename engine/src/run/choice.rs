//! Which hosts a play is for.

use std::{collections::HashMap, sync::Arc};

use fleet_yaml::Diagnostic;

use super::{scope::HostScope, state::HostState};
use crate::{
    inventory::{Inventory, Limit, Selection},
    playbook::{Play, Vars},
    template::{Evaluated, Templar},
};

/// What the patterns of plays are resolved with.
#[derive(Clone, Copy)]
pub struct Choice<'a> {
    /// The hosts and groups there are.
    pub inventory: &'a Inventory,
    /// Renders patterns that are templates.
    pub templar: &'a Templar,
    /// `-e`
    pub extra_vars: &'a Arc<Vars>,
    /// `-l`
    pub limit: Option<&'a Limit>,
    /// The answers to `vars_prompt`, by the place of the play.
    pub prompted: &'a HashMap<String, Arc<Vars>>,
    /// A pattern may match nothing.
    pub allow_no_hosts: bool,
}

impl Choice<'_> {
    /// The hosts of a play, in order.
    ///
    /// # Errors
    /// A pattern that cannot be read or known, and one that matches nothing.
    pub fn hosts(&self, play: &Play) -> Result<Vec<String>, Diagnostic> {
        let patterns = self.patterns(play)?;
        let selection = self
            .inventory
            .select(&patterns, self.limit)
            .map_err(|problem| problem.or_at(&play.hosts.span))?;
        if selection.hosts.is_empty() && !self.allow_no_hosts {
            return Err(self.nothing(play, &patterns, &selection));
        }
        Ok(selection.hosts)
    }

    /// What is wrong with the patterns of plays, as far as it shows before the run: behind a play that may add hosts or
    /// groups nobody can tell.
    #[must_use]
    pub fn check<'p>(&self, plays: impl Iterator<Item = &'p Arc<Play>>) -> Vec<Diagnostic> {
        let mut problems = Vec::new();
        for play in plays {
            problems.extend(self.hosts(play).err());
            if play.all_tasks().any(|task| task.action.may_make_hosts()) {
                break;
            }
        }
        problems
    }

    /// A play's pattern may depend on extra variables and its own, on nothing of a host's.
    fn patterns(&self, play: &Play) -> Result<String, Diagnostic> {
        let scope = HostScope {
            magic: Arc::default(),
            role_magic: None,
            local: Vec::new(),
            extra: Arc::clone(self.extra_vars),
            params: Vec::new(),
            state: Arc::new(HostState::new(0, None)),
            written: std::iter::once(Arc::clone(&play.vars))
                .chain(self.prompted.get(&play.span.to_string()).cloned())
                .collect(),
            inventory: Arc::from([]),
            defaults: Vec::new(),
            reached: None,
            beside: None,
        };
        let span = || play.hosts.span.clone();
        let patterns = match self.templar.value(&play.hosts, &scope.shared()) {
            Ok(Evaluated::Known(value)) => value,
            Ok(_) => {
                return Err(Diagnostic::error(
                    span(),
                    "the hosts of a play must be known before it starts",
                ));
            }
            Err(problem) => return Err(problem.into()),
        };
        match patterns.as_str() {
            Some(text) => Ok(text.to_owned()),
            None => patterns
                .try_iter()
                .map(|items| {
                    items
                        .map(|item| item.to_string())
                        .collect::<Vec<_>>()
                        .join(",")
                })
                .map_err(|_| {
                    Diagnostic::error(span(), "expected a host pattern or a list of them")
                }),
        }
    }

    fn nothing(&self, play: &Play, patterns: &str, selection: &Selection) -> Diagnostic {
        let unmatched = selection.unmatched.first();
        let message = match unmatched {
            Some(pattern) => format!("no host and no group matches `{pattern}`"),
            None => format!("no host is left of `{patterns}`"),
        };
        let near = unmatched.and_then(|pattern| self.inventory.nearest(pattern));
        Diagnostic::error(play.hosts.span.clone(), message).with_help(match near {
            Some(near) => {
                format!("did you mean `{near}`? `--allow-no-hosts` lets such a play pass")
            }
            None => "`--allow-no-hosts` lets such a play pass".to_owned(),
        })
    }
}
