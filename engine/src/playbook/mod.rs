//! Playbooks: what a user wrote, read whole and checked before any connection is made.
//!
//! Reading decides all that does not depend on a host: which keywords and modules there are, which
//! arguments they take, how directives are inherited. Values stay as they were written (nodes with
//! places) and are rendered per host when they are used.

mod action;
mod arguments;
#[cfg(test)]
mod behaviour;
mod block;
mod books;
mod call;
mod check;
mod directives;
mod elsewhere;
pub(crate) mod files;
mod free_form;
mod handlers;
mod imports;
mod keywords;
mod looping;
mod parameters;
mod play;
mod reader;
mod role_files;
mod roles;
pub mod schema;
mod specification;
mod tags;
mod task;
#[cfg(test)]
mod testing;
mod unset;
mod values;

use std::{path::PathBuf, sync::Arc};

use fleet_yaml::{Node, Span};
use indexmap::IndexMap;

pub use action::{Action, Include, LocalAction};
pub(crate) use arguments::takes_only_text;
pub use block::{Block, OwnVars, Part, Position, Role, Step};
pub use books::{Around, BookSettings, Books, IncludedRole, Reading, RoleCall};
pub use check::Check;
pub(crate) use free_form::{unquote, words as argument_words};
pub use parameters::Parameter;
pub use tags::TagFilter;
pub use unset::Unset;
pub(crate) use values::wrong_argument;

/// Variables as written, by name.
pub type Vars = IndexMap<String, Node>;

/// A playbook: plays in order.
#[derive(Debug)]
pub struct Playbook {
    /// The file, as the user named it.
    pub path: PathBuf,
    /// The plays, in order, those of imported playbooks among them.
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
    /// `gather_facts:`; as the configuration says where it is absent.
    pub gather_facts: Option<Node>,
    /// `gather_subset:`
    pub gather_subset: Option<Node>,
    /// `gather_timeout:` in seconds.
    pub gather_timeout: Option<Node>,
    /// `fact_path:`, the directory of the host's own facts.
    pub fact_path: Option<Node>,
    /// `vars:`
    pub vars: Arc<Vars>,
    /// `vars_files:`, each a path or a list of which the first that exists is taken.
    pub vars_files: Vec<Node>,
    /// `vars_prompt:`
    pub prompts: Vec<Prompt>,
    /// The directory that its files are looked for in: that of its own playbook file.
    pub dir: PathBuf,
    /// What tasks inherit. A `when` here is an `import_playbook`'s, and holds for gathering facts, too.
    pub directives: Directives,
    /// `roles:` and those of `import_role`, in order. Their variables, and those of the roles that they depend on,
    /// are seen by the whole play.
    pub roles: Vec<Arc<Role>>,
    /// `pre_tasks`, then `roles` and `tasks`, then `post_tasks`; notified handlers run after each.
    pub sections: [Vec<Step>; 3],
    /// The handlers, in the order in which they run.
    pub handlers: Vec<Arc<Task>>,
    /// `serial:`: a number, a percentage or a list of them.
    pub serial: Option<Node>,
    /// `max_fail_percentage:`
    pub max_fail_percentage: Option<Node>,
    /// `strategy:` (`linear`, `free`, `host_pinned`)
    pub strategy: Option<Node>,
    /// `order:`
    pub order: Option<Node>,
    /// `force_handlers:`
    pub force_handlers: Option<Node>,
    /// `bench:`: load tests before and after.
    pub bench: Option<Node>,
    /// `connection:`, `port:` and `remote_user:` of the play itself.
    pub connection: Connection,
    /// The variables that `import_playbook` hands over, outermost last. They win over the play's own.
    pub imported: Vec<Arc<Vars>>,
}

/// One question of `vars_prompt:`.
#[derive(Clone, Debug)]
pub struct Prompt {
    /// `name:`, the variable.
    pub name: String,
    /// `prompt:`, the text; the name where it is absent.
    pub text: Option<Node>,
    /// `default:`
    pub default: Option<Node>,
    /// `private:`: the answer is not shown. True where it is absent.
    pub private: Option<Node>,
    /// `confirm:`: it is asked for twice.
    pub confirm: Option<Node>,
    /// `encrypt:`: the answer is hashed with this method.
    pub encrypt: Option<Node>,
    /// `salt:`
    pub salt: Option<Node>,
    /// `salt_size:`
    pub salt_size: Option<Node>,
    /// `unsafe:`: braces in the answer are no template.
    pub r#unsafe: Option<Node>,
}

/// How a host is reached, over what the inventory says.
#[derive(Clone, Debug, Default)]
pub struct Connection {
    /// `connection:` (`ssh` or `local`).
    pub kind: Option<Node>,
    /// `port:`
    pub port: Option<Node>,
    /// `remote_user:`
    pub user: Option<Node>,
}

/// Keywords that a task inherits from its blocks, roles and its play. An inner one replaces the outer one,
/// but for conditions, environments and their like, which add up.
#[derive(Clone, Debug, Default)]
pub struct Directives {
    /// `any_errors_fatal:`
    pub any_errors_fatal: Option<Node>,
    /// `become:`
    pub r#become: Option<Node>,
    /// `become_exe:`
    pub become_exe: Option<Node>,
    /// `become_flags:`
    pub become_flags: Option<Node>,
    /// `become_method:`
    pub become_method: Option<Node>,
    /// `become_user:`
    pub become_user: Option<Node>,
    /// `check_mode:`
    pub check_mode: Option<Node>,
    /// `collections:`, in which short names of modules and roles are looked for.
    pub collections: Vec<String>,
    /// `connection:`, `port:` and `remote_user:`, the play's own among them.
    pub connection: Connection,
    /// `delegate_facts:`
    pub delegate_facts: Option<Node>,
    /// `delegate_to:`
    pub delegate_to: Option<Node>,
    /// `diff:`
    pub diff: Option<Node>,
    /// `environment:`, outermost first.
    pub environment: Vec<Node>,
    /// `ignore_errors:`
    pub ignore_errors: Option<Node>,
    /// `ignore_unreachable:`
    pub ignore_unreachable: Option<Node>,
    /// `module_defaults:`, outermost first.
    pub module_defaults: Vec<Node>,
    /// `no_log:`
    pub no_log: Option<Node>,
    /// `notify:` of the nearest block around a task; the task's own are in place of them.
    pub notify: Vec<Node>,
    /// `run_once:`
    pub run_once: Option<Node>,
    /// `tags:`, all of them, perhaps templates.
    pub tags: Vec<Node>,
    /// `throttle:`
    pub throttle: Option<Node>,
    /// `timeout:` in seconds.
    pub timeout: Option<Node>,
    /// `vars:` of the blocks around a task, outermost first (precedence 16).
    pub vars: Vec<Arc<Vars>>,
    /// `vars:` of dynamic includes around a task, outermost first (precedence 21).
    pub include_params: Vec<Arc<Vars>>,
    /// `when:` of the blocks around a task and its own, outermost first.
    pub when: Vec<Node>,
    /// The role that a task belongs to.
    pub role: Option<Arc<Role>>,
}

/// A task or a handler.
#[derive(Clone, Debug)]
pub struct Task {
    /// Unique in a run, the same in a plan and in its apply; rising in the order of reading within a file.
    pub id: usize,
    /// The place of the task.
    pub span: Span,
    /// `name:`
    pub name: Option<Node>,
    /// What it does.
    pub action: Action,
    /// `args:` where it is a template as a whole.
    pub args: Option<Node>,
    /// Its own and its inherited directives.
    pub directives: Directives,
    /// `vars:` of the task itself (precedence 17).
    pub vars: Arc<Vars>,
    /// `loop:` or `with_…:`
    pub r#loop: Option<Loop>,
    /// `register:`
    pub register: Option<String>,
    /// `register:` as a mapping: variables, and the expressions that they stand for. They see the task as `_task`
    /// (`result`, `loop_result`) and one another.
    pub projections: Arc<Vars>,
    /// `changed_when:`, all of which must hold.
    pub changed_when: Vec<Node>,
    /// `failed_when:`, all of which must hold.
    pub failed_when: Vec<Node>,
    /// `until:`, all of which must hold.
    pub until: Vec<Node>,
    /// `retries:`
    pub retries: Option<Node>,
    /// `delay:` in seconds.
    pub delay: Option<Node>,
    /// `async:` in seconds.
    pub r#async: Option<Node>,
    /// `poll:` in seconds.
    pub poll: Option<Node>,
    /// `notify:`
    pub notify: Vec<Node>,
    /// `listen:`, for handlers.
    pub listen: Vec<Node>,
    /// Directories in which its files are looked for, nearest first; the playbook's own comes behind them.
    pub search: Arc<[PathBuf]>,
    /// The directories of its file and of the files that included that, nearest first: where includes look.
    pub files: Arc<[PathBuf]>,
}

/// `loop:` and its control.
#[derive(Clone, Debug)]
pub struct Loop {
    /// The list, or a template that makes one; the terms of the lookup for `with_…`.
    pub items: Node,
    /// The lookup of `with_…`; none for `loop:`. `items` for `with_items`, which flattens one level.
    pub lookup: Option<String>,
    /// `loop_control.loop_var`, `item` unless said otherwise.
    pub variable: String,
    /// `loop_control.index_var`
    pub index_variable: Option<String>,
    /// `loop_control.label`
    pub label: Option<Node>,
    /// `loop_control.pause` in seconds.
    pub pause: Option<Node>,
    /// `loop_control.extended`
    pub extended: Option<Node>,
    /// `loop_control.extended_allitems`; true where it is absent.
    pub extended_allitems: Option<Node>,
    /// `loop_control.break_when`, all of which must hold.
    pub break_when: Vec<Node>,
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

    /// The same task with another action: that of its module once its name is known.
    #[must_use]
    pub fn with_action(&self, action: Action) -> Self {
        Self {
            action,
            ..self.clone()
        }
    }

    /// The title with its role before it: `nginx : install`.
    #[must_use]
    pub fn full_title(&self) -> String {
        match &self.directives.role {
            Some(role) => format!("{} : {}", role.name, self.title()),
            None => self.title().to_owned(),
        }
    }

    /// Whether notifying `name` reaches this handler, as far as that can be told without rendering.
    #[must_use]
    pub fn answers_to(&self, name: &str) -> bool {
        self.title() == name
            || self.full_title() == name
            || self
                .listen
                .iter()
                .any(|listened| listened.as_str() == Some(name))
    }
}

impl Play {
    /// All tasks and handlers that are known before the run, in the order of reading.
    pub fn all_tasks(&self) -> impl Iterator<Item = &Arc<Task>> {
        let steps = self.sections.iter().flatten();
        steps.flat_map(Step::tasks).chain(&self.handlers)
    }
}
