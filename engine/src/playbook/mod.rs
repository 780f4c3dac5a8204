//! Playbooks: what a user wrote, read whole and checked before any connection is made.
//!
//! Reading decides all that does not depend on a host: which keywords and modules there are, which
//! arguments they take, how directives are inherited. Values stay as they were written (nodes with
//! places) and are rendered per host when they are used.

mod action;
mod check;
pub(crate) mod files;
mod free_form;
mod keywords;
mod parameters;
mod play;
mod reader;
mod tags;
mod task;
mod values;

use std::{path::PathBuf, sync::Arc};

use fleet_yaml::{Node, Span};
use indexmap::IndexMap;

pub use action::{Action, LocalAction};
pub use check::Check;
pub use parameters::Parameter;
pub use reader::{Reading, read};
pub use tags::TagFilter;
pub(crate) use values::wrong_argument;

/// Variables as written, by name.
pub type Vars = IndexMap<String, Node>;

/// A playbook: plays in order.
#[derive(Debug)]
pub struct Playbook {
    /// The file, as the user named it.
    pub path: PathBuf,
    /// The plays, in order.
    pub plays: Vec<Arc<Play>>,
}

/// A play: a set of hosts and what is to be true on them.
#[derive(Debug)]
pub struct Play {
    /// The place of the play.
    pub span: Span,
    /// Its position in the playbook, from 0.
    pub index: usize,
    /// `name:`, else the host pattern.
    pub name: Node,
    /// `hosts:`: a pattern or a list of them, perhaps a template over extra and play variables.
    pub hosts: Node,
    /// `gather_facts:`; facts are gathered where it is absent.
    pub gather_facts: Option<Node>,
    /// `gather_subset:`
    pub gather_subset: Option<Node>,
    /// `vars:`
    pub vars: Arc<Vars>,
    /// `vars_files:`, each a path or a list of which the first that exists is taken.
    pub vars_files: Vec<Node>,
    /// What tasks inherit.
    pub directives: Directives,
    /// `pre_tasks`, `tasks` and `post_tasks`; notified handlers run after each.
    pub sections: [Vec<Arc<Task>>; 3],
    /// `handlers:`, in the order in which they run.
    pub handlers: Vec<Arc<Task>>,
    /// `bench:`: load tests before and after.
    pub bench: Option<Node>,
    /// `connection:`, `port:` and `remote_user:` for the play's hosts.
    pub connection: Connection,
}

/// How a play reaches its hosts, over what the inventory says.
#[derive(Clone, Debug, Default)]
pub struct Connection {
    /// `connection:` (`ssh` or `local`).
    pub kind: Option<Node>,
    /// `port:`
    pub port: Option<Node>,
    /// `remote_user:`
    pub user: Option<Node>,
}

/// Keywords that a task inherits from its blocks and its play. An inner one replaces the outer one,
/// but for conditions and environments, which add up.
#[derive(Clone, Debug, Default)]
pub struct Directives {
    /// `become:`
    pub r#become: Option<Node>,
    /// `become_user:`
    pub become_user: Option<Node>,
    /// `check_mode:`
    pub check_mode: Option<Node>,
    /// `diff:`
    pub diff: Option<Node>,
    /// `environment:`, outermost first.
    pub environment: Vec<Node>,
    /// `ignore_errors:`
    pub ignore_errors: Option<Node>,
    /// `no_log:`
    pub no_log: Option<Node>,
    /// `notify:` of the blocks around a task.
    pub notify: Vec<Node>,
    /// `tags:`, all of them.
    pub tags: Vec<String>,
    /// `timeout:` in seconds.
    pub timeout: Option<Node>,
    /// `vars:` of the blocks around a task, outermost first (precedence 16).
    pub vars: Vec<Arc<Vars>>,
    /// `when:` of the blocks around a task and its own, outermost first.
    pub when: Vec<Node>,
}

/// A task or a handler.
#[derive(Debug)]
pub struct Task {
    /// Unique in its playbook, rising in the order of reading.
    pub id: usize,
    /// The place of the task.
    pub span: Span,
    /// `name:`
    pub name: Option<Node>,
    /// What it does.
    pub action: Action,
    /// Its own and its inherited directives.
    pub directives: Directives,
    /// `vars:` of the task itself (precedence 17).
    pub vars: Arc<Vars>,
    /// `loop:` or `with_items:`
    pub r#loop: Option<Loop>,
    /// `register:`
    pub register: Option<String>,
    /// `changed_when:`, all of which must hold.
    pub changed_when: Vec<Node>,
    /// `failed_when:`, all of which must hold.
    pub failed_when: Vec<Node>,
    /// `notify:`
    pub notify: Vec<Node>,
    /// `listen:`, for handlers.
    pub listen: Vec<String>,
}

/// `loop:` and its control.
#[derive(Debug)]
pub struct Loop {
    /// The list, or a template that makes one.
    pub items: Node,
    /// `with_items` flattens one level of nested lists.
    pub flatten: bool,
    /// `loop_control.loop_var`, `item` unless said otherwise.
    pub variable: String,
    /// `loop_control.index_var`
    pub index_variable: Option<String>,
    /// `loop_control.label`
    pub label: Option<Node>,
}

impl Task {
    /// The name as written, else the module's; templates in it are not rendered.
    #[must_use]
    pub fn title(&self) -> &str {
        self.name
            .as_ref()
            .and_then(Node::as_str)
            .unwrap_or_else(|| self.action.name())
    }

    /// Where it is written, `file:line`.
    #[must_use]
    pub fn place(&self) -> String {
        let (line, _) = self.span.line_col();
        format!("{}:{line}", self.span.source.name.display())
    }

    /// Whether notifying `name` reaches this handler.
    #[must_use]
    pub fn answers_to(&self, name: &str) -> bool {
        self.title() == name || self.listen.iter().any(|listened| listened == name)
    }
}

impl Play {
    /// All tasks and handlers, in the order of reading.
    pub fn all_tasks(&self) -> impl Iterator<Item = &Arc<Task>> {
        self.sections.iter().flatten().chain(&self.handlers)
    }
}
