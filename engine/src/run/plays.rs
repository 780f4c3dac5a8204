//! Plays in order, hosts side by side.

use std::{
    collections::{BTreeMap, HashMap},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use fleet_modules::module;
use fleet_wire::{Finish, Mode, OnlyIf};
use fleet_yaml::{Diagnostic, Node, Source, Span};
use tokio::task::JoinSet;

use super::{
    choice::Choice,
    connection,
    dispatch::{PlayContext, Unfit},
    host::{Host, Stop},
    scope::HostScope,
    shared::Shared,
};
use crate::{
    event::{Event, HostEnd},
    playbook::{Action, Directives, LocalAction, Play, Playbook, Task, Vars, files},
    template::Evaluated,
};

/// The hosts of a run between plays: connected ones, and those that are through.
#[derive(Default)]
pub(super) struct Roster {
    open: HashMap<String, Host>,
    ended: BTreeMap<String, HostEnd>,
}

/// Runs every play of every playbook, then ends the run on each host.
pub(super) async fn all(
    shared: &Arc<Shared>,
) -> Result<BTreeMap<String, HostEnd>, Vec<Diagnostic>> {
    // Patterns are resolved before anything is connected: a typing error must not stop a run in its middle.
    let settings = &shared.settings;
    let choice = Choice {
        inventory: &shared.inventory,
        templar: &shared.templar,
        extra_vars: &settings.extra_vars,
        limit: settings.limit.as_ref(),
        allow_no_hosts: settings.allow_no_hosts,
    };
    let mut selected = Vec::new();
    for playbook in shared.playbooks.iter() {
        for play in &playbook.plays {
            let hosts = choice.hosts(play).map_err(|problem| vec![problem])?;
            selected.push((playbook, Arc::clone(play), hosts));
        }
    }
    let mut roster = Roster::default();
    for (playbook, play, hosts) in selected {
        if hosts.is_empty() {
            let reason = "no host matches".to_owned();
            let play = title(&play);
            shared.emit(Event::PlaySkipped { play, reason }).await;
            continue;
        }
        self::play(shared, playbook, &play, &hosts, &mut roster).await?;
    }
    close(shared, roster).await
}

fn title(play: &Play) -> String {
    play.name
        .as_str()
        .map_or_else(|| play.name.raw().to_owned(), str::to_owned)
}

async fn play(
    shared: &Arc<Shared>,
    playbook: &Playbook,
    play: &Arc<Play>,
    hosts: &[String],
    roster: &mut Roster,
) -> Result<(), Vec<Diagnostic>> {
    let names: Arc<[String]> = hosts.into();
    shared
        .emit(Event::PlayStarted {
            play: title(play),
            hosts: Arc::clone(&names),
        })
        .await;
    let dir = playbook
        .path
        .parent()
        .map(Path::to_owned)
        .unwrap_or_default();
    let mut set = JoinSet::new();
    for name in hosts {
        if roster.ended.contains_key(name) {
            continue;
        }
        let open = roster.open.remove(name);
        let way = Way {
            shared: Arc::clone(shared),
            play: Arc::clone(play),
            hosts: Arc::clone(&names),
            dir: dir.clone(),
            name: name.clone(),
        };
        set.spawn(async move {
            let name = way.name.clone();
            (name, way.go(open).await)
        });
    }
    while let Some(joined) = set.join_next().await {
        match joined {
            Ok((name, Ok(host))) => {
                shared.emit(Event::PlayEnded { host: name.clone() }).await;
                roster.open.insert(name, host);
            }
            Ok((name, Err(end))) => {
                shared.state(&name).settle();
                shared
                    .emit(Event::HostEnded {
                        host: name.clone(),
                        end: end.clone(),
                    })
                    .await;
                roster.ended.insert(name, end);
            }
            Err(problem) => {
                let text = format!(
                    "a host's work ended unexpectedly ({problem}); this is a bug of fleetctl"
                );
                shared.emit(Event::Warning { host: None, text }).await;
            }
        }
    }
    Ok(())
}

/// One host's way through a play.
struct Way {
    shared: Arc<Shared>,
    play: Arc<Play>,
    hosts: Arc<[String]>,
    dir: PathBuf,
    name: String,
}

impl Way {
    async fn go(self, open: Option<Host>) -> Result<Host, HostEnd> {
        // The semaphore is never closed; without a permit a host would only start early.
        let shared = Arc::clone(&self.shared);
        let _permit = shared.forks.acquire().await.ok();
        if shared.settings.interrupted() {
            return Err(match open {
                Some(host) => interrupted(host).await,
                None => HostEnd::Interrupted { undone: None },
            });
        }
        let scope = self.scope(&[]);
        let files = self
            .vars_files(&scope)
            .map_err(|problem| HostEnd::Refused {
                message: fleet_yaml::render(&problem, false),
                person: false,
            })?;
        let scope = self.scope(&files);
        let needs_root = needs_root(&shared, &scope);
        let mut host = match open {
            Some(host) => host,
            None => self.connect(&scope, needs_root).await?,
        };
        let context = PlayContext {
            scope,
            search: files::search(&self.dir),
            as_root: needs_root,
            handlers: self.play.handlers.clone(),
        };
        match self.sections(&mut host, &context).await {
            Ok(()) | Err(Stop::Ended) => Ok(host),
            Err(Stop::Failed) => Err(undo(host, false).await),
            Err(Stop::Lost(why)) => Err(lost(&host, &why)),
        }
    }

    fn scope(&self, files: &[Arc<Vars>]) -> HostScope {
        self.shared.scope(
            &self.name,
            Some(&self.play),
            &self.hosts,
            files,
            Some(self.dir.clone()),
        )
    }

    async fn connect(&self, scope: &HostScope, needs_root: bool) -> Result<Host, HostEnd> {
        let reach = connection::reach(
            &self.shared,
            &self.name,
            Some(&self.play),
            scope,
            needs_root,
        )
        .map_err(|message| HostEnd::Refused {
            message,
            person: false,
        })?;
        let mut host = Host::connect(
            Arc::clone(&self.shared),
            self.name.clone(),
            &reach.address,
            reach.r#become.as_ref(),
            reach.state_dir,
            self.shared.mode,
        )
        .await?;
        host.planned = self.shared.settings.planned.clone();
        Ok(host)
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
                    Err(problem) => return Err(problem.into()),
                };
                match files::find(&path, "vars", &files::search(&self.dir)) {
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

    async fn sections(&self, host: &mut Host, context: &PlayContext) -> Result<(), Stop> {
        if let Some(task) = gathering(&self.play, host, context).await? {
            host.task(context, &task, None).await?;
        }
        for section in &self.play.sections {
            for task in section {
                if !self.shared.settings.tags.takes(task) {
                    continue;
                }
                if is_flush(task) {
                    flush(host, context).await?;
                } else {
                    host.task(context, task, None).await?;
                }
            }
            if !section.is_empty() {
                flush(host, context).await?;
            }
        }
        host.drain().await
    }
}

/// The task that gathers facts, unless the play does without.
async fn gathering(
    play: &Play,
    host: &mut Host,
    context: &PlayContext,
) -> Result<Option<Arc<Task>>, Stop> {
    if let Some(node) = &play.gather_facts {
        match host.truth(node, &context.scope).await {
            Ok(false) => return Ok(None),
            Ok(true) | Err(Unfit::Problem(_) | Unfit::Unknown(_)) => {}
            Err(Unfit::Stop(stop)) => return Err(stop),
        }
    }
    let Some(module) = module::find("setup") else {
        return Ok(None);
    };
    let subset = play
        .gather_subset
        .iter()
        .map(|node| ("gather_subset".to_owned(), node.clone()));
    Ok(Some(Arc::new(Task {
        id: usize::MAX - play.index,
        span: play.span.clone(),
        name: Some(Node::string("Gathering Facts", &play.span)),
        action: Action::Module {
            module,
            written: "setup".to_owned(),
            arguments: subset.collect(),
        },
        directives: Directives {
            when: Vec::new(),
            notify: Vec::new(),
            ..play.directives.clone()
        },
        vars: Arc::default(),
        r#loop: None,
        register: None,
        changed_when: Vec::new(),
        failed_when: Vec::new(),
        notify: Vec::new(),
        listen: Vec::new(),
    })))
}

fn is_flush(task: &Task) -> bool {
    matches!(&task.action, Action::Local { action: LocalAction::Meta, arguments, .. }
        if arguments.get("action").and_then(Node::as_str) == Some("flush_handlers"))
}

/// Runs the notified handlers, in the order in which they are written; those that a handler notifies, too.
async fn flush(host: &mut Host, context: &PlayContext) -> Result<(), Stop> {
    // Each round can only be caused by a handler that ran in the one before.
    for _ in 0..=context.handlers.len() {
        let mut ran = false;
        for handler in &context.handlers {
            let title = handler.title().to_owned();
            let notified = host.notified.remove(&title);
            if !notified && !host.flights.may_notify(|name| name == title) {
                continue;
            }
            ran = true;
            host.task(
                context,
                handler,
                Some(OnlyIf {
                    handler: title,
                    notified,
                }),
            )
            .await?;
        }
        host.drain().await?;
        let again = context
            .handlers
            .iter()
            .any(|handler| host.notified.contains(handler.title()));
        if !ran || !again {
            break;
        }
    }
    Ok(())
}

/// A file of variables, read once a run.
pub(super) fn vars_file(shared: &Shared, path: &Path) -> Result<Arc<Vars>, Diagnostic> {
    let cache: &Mutex<HashMap<PathBuf, Arc<Vars>>> = &shared.files;
    let known = cache
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .get(path)
        .cloned();
    if let Some(vars) = known {
        return Ok(vars);
    }
    let loaded = fleet_yaml::load(Source::read(path)?)?;
    let mut vars = Vars::new();
    for document in &loaded.documents {
        if document.is_null() {
            continue;
        }
        let Some(map) = document.as_map() else {
            let found = document.kind_name();
            return Err(Diagnostic::error(
                document.span.clone(),
                format!("expected a mapping of variables, not {found}"),
            ));
        };
        for (key, value) in map.iter() {
            let Some(name) = key.as_str() else {
                return Err(Diagnostic::error(
                    key.span.clone(),
                    "expected a variable's name",
                ));
            };
            vars.insert(name.to_owned(), value.clone());
        }
    }
    let vars = Arc::new(vars);
    cache
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(path.to_owned(), Arc::clone(&vars));
    Ok(vars)
}

/// Whether any task of the run may need root on this host; what cannot be decided yet counts as yes.
pub(super) fn needs_root(shared: &Shared, scope: &HostScope) -> bool {
    let may_be = |node: &Node| match node.as_bool() {
        Some(truth) => truth,
        None => !matches!(
            shared.templar.truth(node, &scope.shared()),
            Ok(Evaluated::Known(false))
        ),
    };
    if let Some(node) = scope.get_written("ansible_become") {
        return may_be(&node);
    }
    if shared.settings.r#become {
        return true;
    }
    let plays = shared.playbooks.iter().flat_map(|playbook| &playbook.plays);
    let directives = plays.flat_map(|play| {
        std::iter::once(&play.directives).chain(play.all_tasks().map(|task| &task.directives))
    });
    let mut seen: Option<&Span> = None;
    for node in directives.filter_map(|directives| directives.r#become.as_ref()) {
        // Tasks share the node of their play; once is enough.
        if seen == Some(&node.span) {
            continue;
        }
        seen = Some(&node.span);
        if may_be(node) {
            return true;
        }
    }
    false
}

/// A failed host is put back to what it was before the run.
async fn undo(mut host: Host, interrupted: bool) -> HostEnd {
    let applying = host.shared.mode == Mode::Apply;
    let finish = if host.shared.settings.keep_on_failure {
        Finish::Keep
    } else {
        Finish::Undo
    };
    let undone = match applying {
        true => match host.finish(finish).await {
            Ok(undone) => Some(undone),
            Err(stop) => return lost(&host, &stop.to_string()),
        },
        false => None,
    };
    if interrupted {
        HostEnd::Interrupted { undone }
    } else {
        HostEnd::Failed { undone }
    }
}

async fn interrupted(host: Host) -> HostEnd {
    undo(host, true).await
}

fn lost(host: &Host, why: &str) -> HostEnd {
    let during = host.in_flight();
    if host.shared.mode != Mode::Apply {
        return HostEnd::Unreachable {
            message: format!("{why}{during}; nothing was changed"),
        };
    }
    HostEnd::Lost {
        message: format!(
            "{why}{during}; the host undoes this run by itself, at the latest when the next run begins there: \
             `fleetctl host journal {}` tells how it ended",
            host.name
        ),
    }
}

/// Ends the run on every host that is still open.
async fn close(
    shared: &Arc<Shared>,
    roster: Roster,
) -> Result<BTreeMap<String, HostEnd>, Vec<Diagnostic>> {
    let Roster { open, mut ended } = roster;
    let mut set = JoinSet::new();
    for (name, mut host) in open {
        set.spawn(async move {
            let end = match host.shared.mode {
                Mode::Apply => match host.finish(Finish::Keep).await {
                    Ok(_) => HostEnd::Done,
                    Err(stop) => lost(&host, &stop.to_string()),
                },
                Mode::Plan | Mode::Read => HostEnd::Done,
            };
            (name, end)
        });
    }
    while let Some(joined) = set.join_next().await {
        if let Ok((name, end)) = joined {
            shared
                .emit(Event::HostEnded {
                    host: name.clone(),
                    end: end.clone(),
                })
                .await;
            ended.insert(name, end);
        }
    }
    Ok(ended)
}
