//! Plays in order, their hosts in batches.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, atomic::Ordering},
};

use fleet_wire::{Finish, Mode, UndoneState};
use fleet_yaml::{Diagnostic, Node};
use tokio::task::JoinSet;

use super::{
    batch::Batch,
    choice::Choice,
    confirm,
    host::Host,
    order,
    shared::{Place, Shared},
    way::{Way, ended},
};
use crate::{
    event::{Event, HostEnd, Strategy},
    playbook::{Play, Playbook, Vars},
    template::Evaluated,
};

/// How the hosts of a run fared so far.
#[derive(Default)]
struct Roster {
    /// Hosts that are out of the run, and why.
    ended: BTreeMap<String, HostEnd>,
    /// Hosts that were in some play.
    seen: Vec<String>,
}

/// Runs every play of every playbook, then ends the run on each host.
pub(super) async fn all(
    shared: &Arc<Shared>,
) -> Result<BTreeMap<String, HostEnd>, Vec<Diagnostic>> {
    // Patterns are resolved before anything is connected: a typing error must not stop a run in its middle.
    let plays: Vec<(PathBuf, Arc<Play>)> = shared
        .playbooks
        .iter()
        .flat_map(|playbook| {
            let dir = directory(playbook);
            let plays = playbook.plays.iter();
            plays.map(move |play| (dir.clone(), Arc::clone(play)))
        })
        .collect();
    let problems = choice(shared, &shared.inventory()).check(plays.iter().map(|(_, play)| play));
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut roster = Roster::default();
    for (dir, play) in &plays {
        let mut hosts = choice(shared, &shared.inventory())
            .hosts(play)
            .map_err(|problem| vec![problem])?;
        hosts.retain(|name| !shared.settings.left_alone.contains(name));
        if hosts.is_empty() {
            let reason = "no hosts matched".to_owned();
            let play = title(play);
            shared.emit(Event::PlaySkipped { play, reason }).await;
            continue;
        }
        self::play(shared, dir, play, hosts, &mut roster).await?;
        if shared.errors_cleared.swap(false, Ordering::Relaxed) {
            roster.ended.clear();
        }
        if shared.settings.interrupted() {
            break;
        }
    }
    Ok(close(shared, roster).await)
}

fn choice<'a>(shared: &'a Shared, inventory: &'a crate::inventory::Inventory) -> Choice<'a> {
    let settings = &shared.settings;
    Choice {
        inventory,
        templar: &shared.templar,
        extra_vars: &settings.extra_vars,
        limit: settings.limit.as_ref(),
        prompted: &settings.prompted,
        allow_no_hosts: settings.allow_no_hosts,
    }
}

/// A playbook's directory.
pub(super) fn directory(playbook: &Playbook) -> PathBuf {
    let dir = playbook.path.parent().map(Path::to_owned);
    dir.filter(|dir| !dir.as_os_str().is_empty())
        .unwrap_or_else(|| PathBuf::from("."))
}

fn title(play: &Play) -> String {
    play.name
        .as_str()
        .map_or_else(|| play.name.raw().to_owned(), str::to_owned)
}

async fn play(
    shared: &Arc<Shared>,
    dir: &Path,
    play: &Arc<Play>,
    mut hosts: Vec<String>,
    roster: &mut Roster,
) -> Result<(), Vec<Diagnostic>> {
    let strategy = strategy(shared, play).map_err(|problem| vec![problem])?;
    order::sort(shared, play, &mut hosts).map_err(|problem| vec![problem])?;
    let left: Vec<String> = hosts
        .iter()
        .filter(|name| !roster.ended.contains_key(*name))
        .cloned()
        .collect();
    roster.seen.extend(left.iter().cloned());
    let batches = order::batches(shared, play, &left).map_err(|problem| vec![problem])?;
    let all: Arc<[String]> = hosts.into();
    for names in batches {
        let batch = Arc::new(Batch::new(names.into(), strategy));
        shared
            .emit(Event::PlayStarted {
                play: title(play),
                hosts: Arc::clone(&batch.hosts),
                strategy,
            })
            .await;
        let ended = self::batch(shared, dir, play, &all, &batch).await;
        let failed = ended.len();
        roster.ended.extend(ended);
        if failed == batch.hosts.len() {
            shared.emit(Event::NoHostsLeft).await;
            break;
        }
        if batch.has_ended_the_play() || batch.is_fatal() || shared.settings.interrupted() {
            break;
        }
    }
    Ok(())
}

/// Runs a play on a batch of its hosts; those that are out of the run after it.
async fn batch(
    shared: &Arc<Shared>,
    dir: &Path,
    play: &Arc<Play>,
    all: &Arc<[String]>,
    batch: &Arc<Batch>,
) -> BTreeMap<String, HostEnd> {
    let mut out = BTreeMap::new();
    let mut set = JoinSet::new();
    for name in batch.hosts.iter() {
        let way = Way {
            shared: Arc::clone(shared),
            play: Arc::clone(play),
            hosts: Arc::clone(all),
            dir: dir.to_owned(),
            host: Host::new(shared, name, batch),
        };
        set.spawn(async move {
            let name = way.host.name.clone();
            let shared = Arc::clone(&way.shared);
            let gone = way.go().await;
            shared.keep_facts(&name).await;
            (name, gone)
        });
    }
    while let Some(joined) = set.join_next().await {
        match joined {
            Ok((name, Ok(()))) => {
                shared.emit(Event::PlayEnded { host: name }).await;
            }
            Ok((name, Err(end))) => {
                shared.state(&name).settle();
                ended(shared, &name, &end).await;
                out.insert(name, end);
            }
            Err(problem) => {
                let text = format!(
                    "a host's work ended unexpectedly ({problem}); this is a bug of fleetctl"
                );
                shared.emit(Event::Warning { host: None, text }).await;
            }
        }
    }
    out
}

/// The play's strategy.
fn strategy(shared: &Shared, play: &Play) -> Result<Strategy, Diagnostic> {
    let Some(node) = &play.strategy else {
        return Ok(shared.settings.strategy);
    };
    let Some(name) = order::text(shared, play, node)? else {
        return Ok(shared.settings.strategy);
    };
    let bare = name.rsplit('.').next().unwrap_or_default();
    match bare {
        "linear" => Ok(Strategy::Linear),
        "free" => Ok(Strategy::Free),
        "host_pinned" => Ok(Strategy::HostPinned),
        other => Err(Diagnostic::error(
            node.span.clone(),
            format!("there is no strategy `{other}`"),
        )
        .with_help("`linear`, `free` and `host_pinned` are")),
    }
}

/// Ends the run on every machine that is still connected.
async fn close(shared: &Arc<Shared>, roster: Roster) -> BTreeMap<String, HostEnd> {
    if shared.mode == Mode::Plan {
        for host in &roster.seen {
            let mut facts = shared.state(host).used_facts();
            // A secret stays on its host: an apply takes it from there.
            facts.retain(|_, fact| !shared.templar.vault().hides(fact));
            shared
                .emit(Event::FactsUsed {
                    host: host.clone(),
                    facts,
                })
                .await;
        }
    }
    let Roster { mut ended, seen } = roster;
    let mut set = JoinSet::new();
    let mut names = shared.links.names();
    names.extend(seen.iter().cloned());
    names.sort_unstable();
    names.dedup();
    for name in names {
        let shared = Arc::clone(shared);
        set.spawn(async move {
            let finished = match shared.finish(&name, Finish::Keep).await {
                Ok(undone) => Ok(undone),
                Err(why) => {
                    let lost = super::way::lost(&shared, &name, &why, "");
                    Err(confirm::truth(&shared, &name, lost).await)
                }
            };
            (name, finished)
        });
    }
    while let Some(joined) = set.join_next().await {
        let Ok((name, finished)) = joined else {
            continue;
        };
        // A machine that others delegated to has no part of its own in the run.
        if ended.contains_key(&name) || !seen.contains(&name) {
            continue;
        }
        let end = match finished {
            Ok(undone) => match undone.filter(|undone| is_undone(undone.state)) {
                Some(undone) => HostEnd::Failed {
                    undone: Some(undone),
                },
                None => HostEnd::Done,
            },
            Err(end) => end,
        };
        shared
            .emit(Event::HostEnded {
                host: name.clone(),
                end: end.clone(),
            })
            .await;
        ended.insert(name, end);
    }
    ended
}

/// Whether a host has put back what the run did.
fn is_undone(state: UndoneState) -> bool {
    !matches!(state, UndoneState::Kept | UndoneState::Unchanged)
}

/// A file of variables, read once a run.
pub(super) fn vars_file(shared: &Shared, path: &Path) -> Result<Arc<Vars>, Diagnostic> {
    let known = shared
        .files
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .get(path)
        .cloned();
    if let Some(vars) = known {
        return Ok(vars);
    }
    let vault = shared.templar.vault();
    let loaded = fleet_yaml::load(vault.read(path)?)?;
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
    shared
        .files
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(path.to_owned(), Arc::clone(&vars));
    Ok(vars)
}

/// Whether any task of the run may need root on this host; what cannot be decided yet counts as yes.
pub(super) fn needs_root(shared: &Shared, name: &str, place: Place<'_>) -> bool {
    let scope = shared.scope(name, place);
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
    let mut seen: Option<&fleet_yaml::Span> = None;
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
