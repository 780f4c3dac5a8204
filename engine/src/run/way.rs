//! One host's way through a play, from its variables to its end.

use std::{path::PathBuf, sync::Arc};

use fleet_modules::module;
use fleet_wire::{Finish, Mode};
use fleet_yaml::{Diagnostic, Node};

use super::{
    confirm, connection,
    dispatch::{PlayContext, Unfit},
    host::{Host, Stop},
    plays::{needs_root, vars_file},
    scope::HostScope,
    shared::{Place, Shared},
};
use crate::{
    event::{Event, HostEnd},
    playbook::{Action, Directives, Play, Task, Vars, files},
    template::Evaluated,
};

/// One host's way through a play.
pub(super) struct Way {
    pub(super) shared: Arc<Shared>,
    pub(super) play: Arc<Play>,
    /// All hosts of the play.
    pub(super) hosts: Arc<[String]>,
    pub(super) dir: PathBuf,
    pub(super) host: Host,
}

impl Way {
    pub(super) async fn go(mut self) -> Result<(), HostEnd> {
        self.host.take_permit().await;
        if self.shared.settings.interrupted() {
            // It may have come through plays before this one; others of its batch wait for it no longer.
            let end = self.undone(true).await;
            self.host.batch.leave(&self.host.name, true);
            return Err(end);
        }
        let context = match self.context() {
            Ok(context) => context,
            Err(message) => {
                let batch = Arc::clone(&self.host.batch);
                batch.leave(&self.host.name, true);
                return Err(HostEnd::Refused {
                    message,
                    person: false,
                });
            }
        };
        let mut gone = self.sections(&context).await;
        if matches!(gone, Err(Stop::Broken)) {
            gone = Err(Stop::Failed);
        }
        if matches!(gone, Err(Stop::Failed)) && self.forces_handlers(&context) {
            gone = self.handlers_by_force(&context).await.and(gone);
        }
        let out = !matches!(gone, Ok(()) | Err(Stop::Ended | Stop::RoleEnded));
        let end = match gone {
            Ok(()) | Err(Stop::Ended | Stop::RoleEnded) => Ok(()),
            Err(Stop::Failed | Stop::Broken) => Err(self.undone(false).await),
            Err(Stop::Unreachable(message)) => Err(HostEnd::Unreachable { message }),
            Err(Stop::Refused(end)) => Err(end),
            Err(Stop::Stale(message)) => Err(match self.undone(false).await {
                HostEnd::Failed { undone } => HostEnd::Stale { message, undone },
                end => end,
            }),
            Err(Stop::Lost(why)) => {
                let during = self.host.in_flight();
                Err(lost(&self.shared, &self.host.name, &why, &during))
            }
        };
        self.host.batch.leave(&self.host.name, out);
        match end {
            Err(lost @ HostEnd::Lost { .. }) => {
                Err(confirm::truth(&self.shared, &self.host.name, lost).await)
            }
            end => end,
        }
    }

    /// What the play says of this host: its variables, and how it is reached.
    fn context(&self) -> Result<PlayContext, String> {
        let shared = &self.shared;
        let name = &self.host.name;
        let scope = |files: &[Arc<Vars>]| {
            shared.scope(
                name,
                Place {
                    play: Some(&self.play),
                    hosts: &self.hosts,
                    batch: Some(&self.host.batch),
                    files,
                },
            )
        };
        let mut files: Vec<Arc<Vars>> = shared
            .settings
            .prompted
            .get(&self.play.span.to_string())
            .into_iter()
            .cloned()
            .collect();
        let more = self
            .vars_files(&scope(&files))
            .map_err(|problem| fleet_yaml::render(&problem, false))?;
        files.extend(more);
        let place = Place {
            play: Some(&self.play),
            files: &files,
            ..Place::default()
        };
        let as_root = needs_root(shared, name, place);
        let scope = scope(&files);
        let reach = connection::reach(shared, name, Some(&self.play.directives), &scope, as_root)?;
        Ok(PlayContext {
            play: Arc::clone(&self.play),
            scope,
            dir: self.play.dir.clone(),
            inventory: shared.inventory(),
            reach: Arc::new(reach),
            as_root,
        })
    }

    /// `vars_files`: each a path, or a list of which the first that exists is taken.
    fn vars_files(&self, scope: &HostScope) -> Result<Vec<Arc<Vars>>, Diagnostic> {
        let mut found = Vec::new();
        for node in &self.play.vars_files {
            let candidates = node
                .as_seq()
                .map_or_else(|| vec![node.clone()], <[Node]>::to_vec);
            let mut tried = Vec::new();
            for candidate in &candidates {
                let path = match self.shared.templar.value(candidate, &scope.shared()) {
                    Ok(Evaluated::Known(value)) => value.to_string(),
                    Ok(_) => {
                        return Err(Diagnostic::error(
                            candidate.span.clone(),
                            "a variables file's name must be known before the host is reached",
                        ));
                    }
                    // One of several may name itself by a fact that is not there yet.
                    Err(_) if candidates.len() > 1 => {
                        tried.push(candidate.raw().to_owned());
                        continue;
                    }
                    Err(problem) => return Err(problem.into()),
                };
                let beside = self.play.span.source.name.parent().map(PathBuf::from);
                let dirs: Vec<PathBuf> = beside
                    .into_iter()
                    .chain([self.play.dir.clone(), self.dir.clone()])
                    .collect();
                match files::find(&path, "vars", &dirs) {
                    Ok(path) => {
                        found.push(vars_file(&self.shared, &path)?);
                        tried.clear();
                        break;
                    }
                    Err(_) => tried.push(path),
                }
            }
            if let Some(path) = tried.first() {
                return Err(Diagnostic::error(
                    node.span.clone(),
                    format!("there is no file `{path}`"),
                ));
            }
        }
        Ok(found)
    }

    async fn sections(&mut self, context: &PlayContext) -> Result<(), Stop> {
        self.host.place = vec![0];
        if let Some(task) = self.gathering(context).await? {
            self.host.one_anyway(context, &task).await?;
        }
        let play = Arc::clone(&self.play);
        for (index, section) in (0_u32..).zip(&play.sections) {
            self.host.place = vec![index * 2 + 1];
            self.host.steps(context, section).await?;
            if !section.is_empty() {
                self.host.place = vec![index * 2 + 2];
                self.host.flush(context).await?;
            }
        }
        self.host.drain().await
    }

    fn forces_handlers(&self, context: &PlayContext) -> bool {
        let settings = &self.shared.settings;
        let said = self.play.force_handlers.as_ref().map(|node| {
            matches!(
                self.shared.templar.truth(node, &context.scope.shared()),
                Ok(Evaluated::Known(true))
            )
        });
        // Where a failure is undone there is nothing left that a handler could belong to.
        (settings.keep_on_failure || self.shared.mode != Mode::Apply)
            && said.unwrap_or(settings.force_handlers)
    }

    async fn handlers_by_force(&mut self, context: &PlayContext) -> Result<(), Stop> {
        self.host.recover().await?;
        self.host.guards.clear();
        self.host.place = vec![u32::MAX - 1];
        self.host.flush(context).await?;
        self.host.drain().await
    }

    /// The task that gathers facts, unless the play does without.
    async fn gathering(&mut self, context: &PlayContext) -> Result<Option<Arc<Task>>, Stop> {
        let gathers = match &self.play.gather_facts {
            Some(node) => match self.host.truth(node, &context.scope).await {
                Ok(truth) => truth,
                Err(Unfit::Stop(stop)) => return Err(stop),
                Err(_) => true,
            },
            None => match self.shared.settings.gathering {
                super::Gathering::Implicit => true,
                super::Gathering::Explicit => false,
                super::Gathering::Smart => self.shared.state(&self.host.name).facts().is_empty(),
            },
        };
        let Some(module) = module::find("setup").filter(|_| gathers) else {
            return Ok(None);
        };
        let play = &self.play;
        let arguments = [
            ("gather_subset", &play.gather_subset),
            ("gather_timeout", &play.gather_timeout),
            ("fact_path", &play.fact_path),
        ]
        .into_iter()
        .filter_map(|(name, node)| Some((name.to_owned(), node.clone()?)))
        .collect();
        Ok(Some(Arc::new(Task {
            id: usize::MAX - play.index,
            span: play.span.clone(),
            name: Some(Node::string("Gathering Facts", &play.span)),
            action: Action::Module {
                module,
                written: "setup".to_owned(),
                arguments,
            },
            args: None,
            directives: Directives {
                when: Vec::new(),
                notify: Vec::new(),
                run_once: None,
                tags: vec![Node::string("always", &play.span)],
                ..play.directives.clone()
            },
            vars: Arc::default(),
            r#loop: None,
            register: None,
            projections: Arc::default(),
            changed_when: Vec::new(),
            failed_when: Vec::new(),
            until: Vec::new(),
            retries: None,
            delay: None,
            r#async: None,
            poll: None,
            notify: Vec::new(),
            listen: Vec::new(),
            search: Arc::from([]),
            files: Arc::from([]),
        })))
    }

    /// A failed host is put back to what it was before the run.
    async fn undone(&mut self, interrupted: bool) -> HostEnd {
        let shared = Arc::clone(&self.shared);
        let name = &self.host.name.clone();
        let undone = if shared.mode == Mode::Apply {
            // Nothing that is sent behind the failure is reached; it only has to be heard of.
            if let Err(stop @ Stop::Lost(_)) = self.host.recover().await {
                return lost(&shared, name, &stop.to_string(), &self.host.in_flight());
            }
            match shared.settings.keep_on_failure {
                // The link stays for what others delegate, and for the plays behind `clear_host_errors`.
                true => None,
                false => match shared.finish(name, Finish::Undo).await {
                    Ok(undone) => undone,
                    Err(why) => return lost(&shared, name, &why, ""),
                },
            }
        } else {
            None
        };
        match interrupted {
            true => HostEnd::Interrupted { undone },
            false => HostEnd::Failed { undone },
        }
    }
}

/// Tells how a host ended.
pub(super) async fn ended(shared: &Shared, name: &str, end: &HostEnd) {
    shared
        .emit(Event::HostEnded {
            host: name.to_owned(),
            end: end.clone(),
        })
        .await;
}

/// How a host ended whose link broke.
pub(super) fn lost(shared: &Shared, name: &str, why: &str, during: &str) -> HostEnd {
    if shared.mode != Mode::Apply {
        return HostEnd::Unreachable {
            message: format!("{why}{during}; nothing was changed"),
        };
    }
    let settings = &shared.settings;
    if settings.saved.is_some() && settings.confirm != super::Confirm::Never {
        let seconds = settings.confirm_timeout.as_secs();
        return HostEnd::Lost {
            message: format!(
                "{why}{during}; the host finishes what it was sent, and undoes it {seconds} s later unless the run goes on: \
                 `fleetctl resume {}`",
                shared.run
            ),
        };
    }
    HostEnd::Lost {
        message: format!(
            "{why}{during}; the host undoes this run by itself, at the latest when the next run begins there: \
             `fleetctl host journal {name}` tells how it ended"
        ),
    }
}
