//! A run: a playbook over an inventory, planned or applied.

mod argument_spec;
mod back_again;
mod batch;
mod choice;
mod confirm;
mod connection;
mod content;
mod dispatch;
mod errand;
mod fetch;
mod flight;
mod frame;
mod handlers;
mod host;
mod include;
mod include_vars;
mod items;
mod link;
mod links;
mod local;
mod meta;
mod new_hosts;
mod order;
mod pause;
mod payload;
mod plays;
mod scope;
mod shared;
mod shown;
mod sources;
mod state;
mod steps;
mod terms;
mod verdict;
mod walk;
mod way;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use fleet_wire::{DigestKey, Mode, Undone};
use fleet_yaml::Diagnostic;
use tokio::sync::mpsc;

use crate::{
    event::{Event, HostEnd, Strategy},
    fact_cache::FactCache,
    inventory::{Inventory, Limit},
    playbook::{Books, Play, Playbook, TagFilter, Vars},
    secret::Secret,
    template::Templar,
    transport::{self, HostKeys},
};

pub use choice::Choice;
pub use errand::Errand;
pub use state::is_restless as restless;

use shared::{Place, Shared};

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
    /// `--become-method`
    pub become_method: Option<String>,
    /// What the configuration says of `sudo` and `su`.
    pub become_ways: BTreeMap<&'static str, BecomeWay>,
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
    /// `--confirm`
    pub confirm: Confirm,
    /// `--confirm-timeout`
    pub confirm_timeout: Duration,
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
    /// Hosts that plays pass over, whatever their patterns say.
    pub left_alone: BTreeSet<String>,
    /// Makes the digests of secrets in plans, and compares them.
    pub digest_key: Option<DigestKey>,
    /// The saved plan that is applied.
    pub saved: Option<Arc<SavedPlan>>,
    /// Set when the run is to be interrupted: hosts in flight are finished, no more are started.
    pub interrupt: Arc<AtomicBool>,
    /// `no_log` where a task does not say.
    pub no_log: bool,
    /// `any_errors_fatal` where a play does not say.
    pub any_errors_fatal: bool,
    /// `force_handlers` where a play does not say.
    pub force_handlers: bool,
    /// `strategy` where a play does not say.
    pub strategy: Strategy,
    /// A task that notifies a handler that there is not fails; else that is only told.
    pub missing_handlers_fail: bool,
    /// Whether plays gather facts that do not say so.
    pub gathering: Gathering,
    /// Reads the inventory's sources anew (`meta: refresh_inventory`).
    pub read_inventory: Option<ReadInventory>,
    /// Where facts are kept between runs.
    pub fact_cache: Option<Arc<FactCache>>,
    /// Whether variables of roles are seen by their own tasks alone, where somebody has said so.
    pub private_role_vars: Option<bool>,
    /// `--start-at-task`
    pub start_at: Option<String>,
    /// `--step`: asked before each task, with the host's and the task's name.
    pub step: Option<Step>,
    /// The answers to `vars_prompt`, by the place of the play.
    pub prompted: Arc<HashMap<String, Arc<Vars>>>,
    /// Where Ansible and fleetctl differ, it is Ansible's way that is wanted: `fleetctl play`.
    pub as_ansible: bool,
    /// Results tell what their modules were called with.
    pub tells_invocations: bool,
    /// Asks the person at the terminal, whose answer is shown as it is typed or not; none where nobody is there.
    pub ask: Option<Ask>,
    /// Mappings of variables are merged with those of lower precedence by `include_vars` (`hash_behaviour`).
    pub merges_hashes: bool,
    /// `-i`, as given.
    pub sources: Vec<String>,
    /// `-l`, as given.
    pub limit_text: Option<String>,
    /// The configuration file that was read.
    pub config_file: Option<PathBuf>,
    /// The directory of the first playbook.
    pub playbook_dir: PathBuf,
}

/// Asks a person a question; none where there is no answer.
pub type Ask = Arc<dyn Fn(&str, bool) -> Option<String> + Send + Sync>;

/// Reads an inventory, and tells what is odd about it, or all mistakes in it.
pub type ReadInventory =
    Arc<dyn Fn() -> Result<(Inventory, Vec<Diagnostic>), Vec<Diagnostic>> + Send + Sync>;

/// Whether a task is to be run.
pub type Step = Arc<dyn Fn(&str, &str) -> bool + Send + Sync>;

/// Whether plays gather facts that do not say so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Gathering {
    /// They do.
    #[default]
    Implicit,
    /// They do not.
    Explicit,
    /// They do where nothing is known of a host yet.
    Smart,
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

/// How a change is confirmed that the host would undo by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Confirm {
    /// Over a fresh connection, at the end of the run.
    #[default]
    Auto,
    /// By a person: `fleetctl confirm`.
    Manual,
    /// Not at all: the host looks after nothing.
    Never,
}

/// What the configuration says of a program that makes another user of one.
#[derive(Clone, Debug, Default)]
pub struct BecomeWay {
    /// The program to run in its place.
    pub exe: Option<String>,
    /// Its flags.
    pub flags: Option<String>,
}

/// A saved plan as its apply keeps to it.
#[derive(Clone, Debug, Default)]
pub struct SavedPlan {
    /// Its hash.
    pub hash: String,
    /// The run that made it.
    pub run: String,
    /// The facts that it was made with, by host.
    pub facts: HashMap<String, Arc<crate::plan::Facts>>,
    /// `/etc/machine-id` of each host.
    pub identities: HashMap<String, String>,
    /// The run goes on that was cut off.
    pub resume: bool,
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
    /// Reads what is included on the way.
    pub books: Books,
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
            .inventory()
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
        let selection = self.shared.inventory().select(pattern, None)?;
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

    /// Confirms a run on a host, over a fresh connection; how it ended there.
    ///
    /// # Errors
    /// Why the host cannot be asked.
    pub async fn confirm(&self, name: &str, root: bool, run: &str) -> Result<Undone, HostEnd> {
        let scope = self.shared.scope(name, Place::default());
        let reach = connection::reach(&self.shared, name, None, &scope, root);
        let reach = reach.map_err(|message| HostEnd::Refused {
            message,
            person: false,
        })?;
        let answer = confirm::ask(&self.shared, name, &reach, run).await;
        answer.map_err(|message| HostEnd::Unreachable { message })
    }

    /// Whether the playbooks work as root on a host, and so keep their journal as root.
    #[must_use]
    pub fn needs_root(&self, name: &str) -> bool {
        plays::needs_root(&self.shared, name, Place::default())
    }

    /// How a host is reached.
    ///
    /// # Errors
    /// When its variables make no sense.
    pub fn address(&self, name: &str) -> Result<transport::Address, String> {
        let scope = self.shared.scope(name, Place::default());
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
        let scope = self.shared.scope(
            host,
            Place {
                play,
                ..Place::default()
            },
        );
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
            prompted: &self.settings.prompted,
            allow_no_hosts: self.settings.allow_no_hosts,
        };
        let (mut plays, mut problems) = (Vec::new(), Vec::new());
        let mut may_come = false;
        for play in self.playbooks.iter().flat_map(|playbook| &playbook.plays) {
            match choice.hosts(play) {
                Ok(hosts) => plays.push((Arc::clone(play), hosts)),
                // Its hosts may be made by the plays before it.
                Err(_) if may_come => plays.push((Arc::clone(play), Vec::new())),
                Err(problem) => problems.push(problem),
            }
            may_come |= play.all_tasks().any(|task| task.action.may_make_hosts());
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
        let shared = Shared::new(self, events);
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
        let shared = Shared::new(self, events);
        let ends = plays::all(&shared).await?;
        shared
            .emit(Event::RunEnded {
                took: started.elapsed(),
            })
            .await;
        Ok(ends)
    }
}
