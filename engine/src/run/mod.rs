//! A run: a playbook over an inventory, planned or applied.

mod choice;
mod connection;
mod content;
mod dispatch;
mod errand;
mod flight;
mod frame;
mod host;
mod items;
mod local;
mod payload;
mod plays;
mod scope;
mod shared;
mod terms;
mod verdict;

use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use fleet_wire::Mode;
use fleet_yaml::Diagnostic;
use tokio::sync::mpsc;

use crate::{
    event::{Event, HostEnd},
    inventory::{Inventory, Limit},
    playbook::{Play, Playbook, TagFilter, Vars},
    secret::Secret,
    template::Templar,
    transport::{self, HostKeys},
};

pub use choice::Choice;
pub use errand::Errand;

use shared::Shared;

/// What the command line and the configuration say of a run.
#[derive(Clone)]
pub struct Settings {
    /// How hosts are connected to.
    pub transport: transport::Settings,
    /// `-f`: hosts that work at the same time.
    pub forks: usize,
    /// `-l`
    pub limit: Option<Limit>,
    /// `-t` and `--skip-tags`
    pub tags: TagFilter,
    /// `-e`
    pub extra_vars: Arc<Vars>,
    /// `-u`
    pub user: Option<String>,
    /// `-b`
    pub r#become: bool,
    /// `--become-user`
    pub become_user: Option<String>,
    /// `-K`
    pub become_password: Option<Secret>,
    /// `-c`
    pub connection: Option<String>,
    /// `--private-key`
    pub private_key_file: Option<PathBuf>,
    /// `--ssh-common-args`
    pub ssh_common_args: Vec<String>,
    /// `--ssh-extra-args`
    pub ssh_extra_args: Vec<String>,
    /// `-T`
    pub timeout: Duration,
    /// What to do with unknown host keys.
    pub host_keys: HostKeys,
    /// `--lock-timeout`
    pub lock_timeout: Duration,
    /// `-D`
    pub diff: bool,
    /// `-v`, counted.
    pub verbosity: u8,
    /// Who runs it: `user@machine`.
    pub who: String,
    /// The user's home directory, for `~` in paths.
    pub home: Option<PathBuf>,
    /// A play whose pattern matches nothing is passed over.
    pub allow_no_hosts: bool,
    /// A failed host keeps its changes, as with Ansible.
    pub keep_on_failure: bool,
    /// The effects that were shown; an apply refuses any other. None where nothing was planned.
    pub planned: Option<Arc<PlannedEffects>>,
    /// Set when the run is to be interrupted: hosts in flight are finished, no more are started.
    pub interrupt: Arc<AtomicBool>,
}

impl Settings {
    fn interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }

    fn expand_home(&self, path: &str) -> PathBuf {
        match (path.strip_prefix("~/"), &self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => PathBuf::from(path),
        }
    }
}

/// What a plan said of each item of each task; none where it said `known after apply`.
type PlannedTasks = HashMap<(usize, usize), Option<Vec<String>>>;

/// A play with its hosts.
pub type PlayHosts = (Arc<Play>, Vec<String>);

/// The digests of the effects that a plan showed, by host, task and item.
#[derive(Debug, Default)]
pub struct PlannedEffects {
    hosts: HashMap<String, PlannedTasks>,
}

impl PlannedEffects {
    /// Adds what a plan said of one item of a task; none where it said `known after apply`.
    pub fn add(&mut self, host: &str, task: usize, item: usize, digests: Option<Vec<String>>) {
        self.hosts
            .entry(host.to_owned())
            .or_default()
            .insert((task, item), digests);
    }

    /// What a task may do: any effect where it was unknown, none where it was not planned to run.
    fn of(&self, host: &str, task: usize, item: usize) -> Option<Vec<String>> {
        let planned = self
            .hosts
            .get(host)
            .and_then(|tasks| tasks.get(&(task, item)));
        planned.cloned().unwrap_or_else(|| Some(Vec::new()))
    }
}

/// A run, ready to go.
pub struct Run {
    /// Its name: unique, and sortable by time.
    pub name: String,
    /// Plan or apply.
    pub mode: Mode,
    /// What the command line says.
    pub settings: Settings,
    /// The hosts.
    pub inventory: Arc<Inventory>,
    /// The playbooks, in order.
    pub playbooks: Arc<[Playbook]>,
    /// The template engine.
    pub templar: Templar,
}

/// Hosts that errands can be run on.
#[derive(Clone)]
pub struct Errands {
    shared: Arc<Shared>,
}

impl Errands {
    /// The hosts of a pattern, in order.
    ///
    /// # Errors
    /// When it matches nothing or cannot be understood.
    pub fn hosts(&self, pattern: &str) -> Result<Vec<String>, Diagnostic> {
        let selection = self
            .shared
            .inventory
            .select(pattern, self.shared.settings.limit.as_ref())?;
        if selection.hosts.is_empty() {
            return Err(Diagnostic::without_place(format!(
                "no host matches `{pattern}`"
            )));
        }
        Ok(selection.hosts)
    }

    /// The hosts of a pattern whatever the run is limited to.
    ///
    /// # Errors
    /// When it matches nothing or cannot be understood.
    pub fn any_hosts(&self, pattern: &str) -> Result<Vec<String>, Diagnostic> {
        let selection = self.shared.inventory.select(pattern, None)?;
        if selection.hosts.is_empty() {
            return Err(Diagnostic::without_place(format!(
                "no host matches `{pattern}`"
            )));
        }
        Ok(selection.hosts)
    }

    /// Connects to a host; as root where `root` is set.
    ///
    /// # Errors
    /// Why it cannot be asked.
    pub async fn host(&self, name: &str, root: bool, mode: Mode) -> Result<Errand, HostEnd> {
        Errand::connect(&self.shared, name, root, mode).await
    }

    /// Whether the playbooks work as root on a host, and so keep their journal as root.
    #[must_use]
    pub fn needs_root(&self, name: &str) -> bool {
        plays::needs_root(&self.shared, &self.shared.scope(name, None, &[], &[], None))
    }

    /// How a host is reached.
    ///
    /// # Errors
    /// When its variables make no sense.
    pub fn address(&self, name: &str) -> Result<transport::Address, String> {
        let scope = self.shared.scope(name, None, &[], &[], None);
        connection::reach(&self.shared, name, None, &scope, false).map(|reach| reach.address)
    }

    /// A value as written, rendered for a host.
    ///
    /// # Errors
    /// When it cannot be rendered without facts.
    pub fn text(
        &self,
        host: &str,
        play: Option<&Play>,
        node: &fleet_yaml::Node,
    ) -> Result<String, Diagnostic> {
        let scope = self.shared.scope(host, play, &[], &[], None);
        match self.shared.templar.value(node, &scope.shared()) {
            Ok(crate::template::Evaluated::Known(value)) => Ok(value.to_string()),
            Ok(_) => Err(Diagnostic::error(
                node.span.clone(),
                "this cannot be known here",
            )),
            Err(problem) => Err(problem.into()),
        }
    }
}

impl Run {
    /// The plays with the hosts of each, in order.
    ///
    /// # Errors
    /// A pattern that matches nothing, a play whose hosts cannot be known.
    pub fn plays(&self) -> Result<Vec<PlayHosts>, Vec<Diagnostic>> {
        let choice = Choice {
            inventory: &self.inventory,
            templar: &self.templar,
            extra_vars: &self.settings.extra_vars,
            limit: self.settings.limit.as_ref(),
            allow_no_hosts: self.settings.allow_no_hosts,
        };
        let (mut plays, mut problems) = (Vec::new(), Vec::new());
        for play in self.playbooks.iter().flat_map(|playbook| &playbook.plays) {
            match choice.hosts(play) {
                Ok(hosts) => plays.push((Arc::clone(play), hosts)),
                Err(problem) => problems.push(problem),
            }
        }
        if problems.is_empty() {
            Ok(plays)
        } else {
            Err(problems)
        }
    }

    /// Makes errands of what would have been a run.
    #[must_use]
    pub fn errands(self, events: mpsc::Sender<Event>) -> Errands {
        let shared = Shared::new(
            self.name,
            self.mode,
            self.settings,
            self.inventory,
            self.playbooks,
            self.templar,
            events,
        );
        Errands { shared }
    }

    /// Runs it, and tells `events` what happens.
    ///
    /// # Errors
    /// When it cannot begin: a pattern that matches nothing, a play whose hosts cannot be known.
    pub async fn go(
        self,
        events: mpsc::Sender<Event>,
    ) -> Result<BTreeMap<String, HostEnd>, Vec<Diagnostic>> {
        let started = Instant::now();
        let playbooks = self
            .playbooks
            .iter()
            .map(|playbook| playbook.path.display().to_string())
            .collect();
        events
            .send(Event::RunStarted {
                run: self.name.clone(),
                mode: self.mode,
                playbooks,
            })
            .await
            .ok();
        let shared = Shared::new(
            self.name,
            self.mode,
            self.settings,
            self.inventory,
            self.playbooks,
            self.templar,
            events,
        );
        let ends = plays::all(&shared).await?;
        shared
            .emit(Event::RunEnded {
                took: started.elapsed(),
            })
            .await;
        Ok(ends)
    }
}
