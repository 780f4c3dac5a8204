//! What a task does: a module on the host, or something that the controller does by itself.

use std::sync::Arc;

use fleet_modules::module::Module;
use fleet_yaml::{Node, Span};
use indexmap::IndexMap;

use super::parameters::{self, Parameter};
use crate::external::External;

/// A task's module and arguments, checked by name; values are rendered when it is used.
#[derive(Clone)]
pub enum Action {
    /// A module that runs on the host.
    Module {
        /// The module.
        module: &'static Module,
        /// The name as written, for messages.
        written: String,
        /// Its arguments as written, under their own names.
        arguments: IndexMap<String, Node>,
    },
    /// A module that the controller runs, with or without a part on the host.
    Local {
        /// Which one.
        action: LocalAction,
        /// Its arguments as written.
        arguments: IndexMap<String, Node>,
        /// The place of the arguments.
        span: Span,
    },
    /// `include_tasks` or `include_role`: read and run when a host reaches it.
    Include {
        /// Which of the two.
        include: Include,
        /// Its arguments as written: `file`, or `name`, `tasks_from`, …; `apply` among them.
        arguments: IndexMap<String, Node>,
        /// What stands around the include, without its own keywords: what it includes inherits that.
        around: Box<super::Directives>,
        /// The place of the arguments.
        span: Span,
    },
    /// A module of the project.
    External {
        /// The module.
        module: Arc<External>,
        /// Its arguments as written; free text is `_raw_params`.
        arguments: IndexMap<String, Node>,
        /// The place of the arguments.
        span: Span,
    },
    /// `action: "{{ … }}"`: which module it is shows when the name is rendered; [`super::Books::action`] reads it then.
    Templated {
        /// The name as written.
        name: Node,
        /// Its arguments as written; free text is `_raw_params`.
        arguments: IndexMap<String, Node>,
        /// The place of the arguments.
        span: Span,
    },
    /// A module that fleetctl does not have, where a condition may keep hosts from it. A host that reaches it fails.
    Missing {
        /// Its name as written.
        name: String,
        /// Its arguments as written.
        arguments: IndexMap<String, Node>,
        /// The place of the arguments.
        span: Span,
    },
}

/// A dynamic include.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Include {
    /// `include_tasks`
    Tasks,
    /// `include_role`
    Role,
}

impl Include {
    /// The module's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tasks => "include_tasks",
            Self::Role => "include_role",
        }
    }
}

/// The modules that run on the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalAction {
    /// Adds a host to the inventory.
    AddHost,
    /// Checks conditions.
    Assert,
    /// Copies a file or a directory, or a text, to the host.
    Copy,
    /// Shows a message or a variable.
    Debug,
    /// Fails with a message.
    Fail,
    /// Puts the host into a group.
    GroupBy,
    /// Includes variables from a file.
    IncludeVars,
    /// Runs the notified handlers now, or ends the play.
    Meta,
    /// Waits for a time or a person.
    Pause,
    /// Sets variables of the host.
    SetFact,
    /// Keeps values for the end of the run.
    SetStats,
    /// Renders a template and writes it to the host.
    Template,
    /// Checks arguments against a specification.
    ValidateArgumentSpec,
    /// Waits until the host can be reached.
    WaitForConnection,
}

impl LocalAction {
    /// Every such module.
    pub const ALL: [Self; 14] = [
        Self::AddHost,
        Self::Assert,
        Self::Copy,
        Self::Debug,
        Self::Fail,
        Self::GroupBy,
        Self::IncludeVars,
        Self::Meta,
        Self::Pause,
        Self::SetFact,
        Self::SetStats,
        Self::Template,
        Self::ValidateArgumentSpec,
        Self::WaitForConnection,
    ];

    /// The module's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::AddHost => "add_host",
            Self::Assert => "assert",
            Self::GroupBy => "group_by",
            Self::Pause => "pause",
            Self::SetStats => "set_stats",
            Self::Copy => "copy",
            Self::Debug => "debug",
            Self::Fail => "fail",
            Self::IncludeVars => "include_vars",
            Self::Meta => "meta",
            Self::SetFact => "set_fact",
            Self::Template => "template",
            Self::ValidateArgumentSpec => "validate_argument_spec",
            Self::WaitForConnection => "wait_for_connection",
        }
    }

    /// Whether it leaves something behind that later tasks see.
    pub(crate) fn sets_something(self) -> bool {
        matches!(
            self,
            Self::AddHost | Self::GroupBy | Self::IncludeVars | Self::SetFact | Self::SetStats
        )
    }

    /// Whether other hosts can tell that it has been done.
    pub(crate) fn is_seen_by_others(self) -> bool {
        matches!(self, Self::Pause | Self::GroupBy | Self::WaitForConnection)
    }

    /// Every such module's name.
    pub(super) fn names() -> impl Iterator<Item = &'static str> {
        Self::ALL.into_iter().map(Self::name)
    }

    /// By name, with or without `ansible.builtin.`.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        let short = name
            .strip_prefix("ansible.builtin.")
            .or_else(|| name.strip_prefix("ansible.legacy."))
            .unwrap_or(name);
        Self::ALL.into_iter().find(|action| action.name() == short)
    }

    /// The argument that takes the free text, where there is one.
    #[must_use]
    pub fn free_form(self) -> Option<&'static str> {
        match self {
            Self::Meta => Some("action"),
            Self::IncludeVars => Some("file"),
            _ => None,
        }
    }

    /// What it does.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::AddHost => {
                "Adds a host to the inventory, or groups and variables to one that is there, for the rest of the run. It is \
                 done once for all hosts of a play; arguments that it does not have are variables."
            }
            Self::GroupBy => {
                "Puts the host into a group that is named by what is known of it, for the rest of the run."
            }
            Self::Pause => "Waits for a time, or for a person at the terminal.",
            Self::WaitForConnection => {
                "Waits until the host can be reached and works. The changes that the run has made so far stay, whatever becomes \
                 of the connection; a later failure undoes them, too."
            }
            Self::SetStats => "Keeps values for the end of the run, where they are shown.",
            Self::Assert => "Fails the host where a condition does not hold.",
            Self::Copy => {
                "Copies a file, a directory or a text to the host.\n\nA file is put in place whole or not at all, with its old \
                 state kept in the journal."
            }
            Self::Debug => "Shows a message or a variable.",
            Self::Fail => "Fails the host with a message.",
            Self::IncludeVars => "Takes in the variables of a file of the controller.",
            Self::Meta => {
                "Steers the play: runs the notified handlers now, or ends the play for the host."
            }
            Self::SetFact => {
                "Sets variables of the host, for the rest of the run. Its arguments are the variables."
            }
            Self::Template => {
                "Renders a template of the controller and puts the result in place, as `copy` does.\n\nThe syntax is \
                 Jinja's; a first line `#jinja2: trim_blocks: False` sets options for one file."
            }
            Self::ValidateArgumentSpec => {
                "Checks arguments against a specification, as roles do that have one in `meta/argument_specs.yml`."
            }
        }
    }

    /// Its arguments; none where any name is taken. What is put on the host is an argument of the module `copy`, too.
    #[must_use]
    pub fn arguments(self) -> Option<&'static [Parameter]> {
        match self {
            Self::AddHost => None,
            Self::GroupBy => Some(parameters::GROUP_BY),
            Self::Pause => Some(parameters::PAUSE),
            Self::SetStats => Some(parameters::SET_STATS),
            Self::Assert => Some(parameters::ASSERT),
            Self::Copy => Some(parameters::COPY),
            Self::Debug => Some(parameters::DEBUG),
            Self::Fail => Some(parameters::FAIL),
            Self::IncludeVars => Some(parameters::INCLUDE_VARS),
            Self::Meta => Some(parameters::META),
            Self::SetFact => None,
            Self::Template => Some(parameters::TEMPLATE),
            Self::ValidateArgumentSpec => Some(parameters::VALIDATE_ARGUMENT_SPEC),
            Self::WaitForConnection => Some(parameters::WAIT_FOR_CONNECTION),
        }
    }
}

impl std::fmt::Debug for Action {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct(self.name())
            .field("arguments", self.arguments())
            .finish()
    }
}

impl Action {
    /// The module's own name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Module { written, .. } => written,
            Self::Local { action, .. } => action.name(),
            Self::Include { include, .. } => include.name(),
            Self::External { module, .. } => &module.name,
            Self::Templated { name, .. } => name.as_str().unwrap_or_default(),
            Self::Missing { name, .. } => name,
        }
    }

    /// The module's name with its collection, as Ansible's messages have it.
    pub(crate) fn full_name(&self) -> String {
        let name = self.name();
        match self {
            Self::External { .. } | Self::Templated { .. } | Self::Missing { .. } => {
                name.to_owned()
            }
            _ if name.contains('.') => name.to_owned(),
            _ => format!("ansible.builtin.{name}"),
        }
    }

    /// Whether it may have text that is no `key=value` among its arguments.
    pub(crate) fn takes_text(&self) -> bool {
        match self {
            Self::Module { module, .. } => module.free_form.is_some(),
            Self::Local { action, .. } => {
                action.free_form().is_some() || *action == LocalAction::SetFact
            }
            _ => true,
        }
    }

    /// Whether `name` names its module, whatever collection stands before it.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        match self {
            Self::Module { module, .. } => {
                fleet_modules::module::find(name).is_some_and(|named| named.name == module.name)
            }
            Self::Local { action, .. } => LocalAction::find(name) == Some(*action),
            Self::External { module, .. } => module.name == name,
            Self::Include { .. } | Self::Templated { .. } | Self::Missing { .. } => false,
        }
    }

    /// Whether it is done once for all hosts of a play, whatever the task says.
    #[must_use]
    pub fn is_for_all_hosts(&self) -> bool {
        matches!(
            self,
            Self::Local {
                action: LocalAction::AddHost | LocalAction::Pause,
                ..
            }
        ) || self.refreshes_inventory()
    }

    /// Whether it reads the inventory's sources anew.
    #[must_use]
    pub fn refreshes_inventory(&self) -> bool {
        let Self::Local {
            action: LocalAction::Meta,
            arguments,
            ..
        } = self
        else {
            return false;
        };
        arguments.get("action").and_then(Node::as_str) == Some("refresh_inventory")
    }

    /// Whether hosts or groups may come of it that later plays are for.
    #[must_use]
    pub fn may_make_hosts(&self) -> bool {
        matches!(
            self,
            Self::Include { .. }
                | Self::Templated { .. }
                | Self::Local {
                    action: LocalAction::AddHost | LocalAction::GroupBy,
                    ..
                }
        ) || self.refreshes_inventory()
    }

    /// The arguments as written.
    #[must_use]
    pub fn arguments(&self) -> &IndexMap<String, Node> {
        match self {
            Self::Module { arguments, .. }
            | Self::Local { arguments, .. }
            | Self::Include { arguments, .. }
            | Self::External { arguments, .. }
            | Self::Templated { arguments, .. }
            | Self::Missing { arguments, .. } => arguments,
        }
    }
}
