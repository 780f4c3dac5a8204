//! What a task does: a module on the host, or something that the controller does by itself.

use fleet_modules::module::Module;
use fleet_yaml::{Node, Span};
use indexmap::IndexMap;

use super::parameters::{self, Parameter};

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
}

/// The modules that run on the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalAction {
    /// Checks conditions.
    Assert,
    /// Copies a file or a directory, or a text, to the host.
    Copy,
    /// Shows a message or a variable.
    Debug,
    /// Fails with a message.
    Fail,
    /// Includes variables from a file.
    IncludeVars,
    /// Runs the notified handlers now, or ends the play.
    Meta,
    /// Sets variables of the host.
    SetFact,
    /// Renders a template and writes it to the host.
    Template,
}

impl LocalAction {
    /// Every such module.
    pub const ALL: [Self; 8] = [
        Self::Assert,
        Self::Copy,
        Self::Debug,
        Self::Fail,
        Self::IncludeVars,
        Self::Meta,
        Self::SetFact,
        Self::Template,
    ];

    /// The module's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Assert => "assert",
            Self::Copy => "copy",
            Self::Debug => "debug",
            Self::Fail => "fail",
            Self::IncludeVars => "include_vars",
            Self::Meta => "meta",
            Self::SetFact => "set_fact",
            Self::Template => "template",
        }
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
        }
    }

    /// Its arguments; none where any name is taken. What is put on the host is an argument of the module `copy`, too.
    #[must_use]
    pub fn arguments(self) -> Option<&'static [Parameter]> {
        match self {
            Self::Assert => Some(parameters::ASSERT),
            Self::Copy => Some(parameters::COPY),
            Self::Debug => Some(parameters::DEBUG),
            Self::Fail => Some(parameters::FAIL),
            Self::IncludeVars => Some(parameters::INCLUDE_VARS),
            Self::Meta => Some(parameters::META),
            Self::SetFact => None,
            Self::Template => Some(parameters::TEMPLATE),
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
        }
    }

    /// The arguments as written.
    #[must_use]
    pub fn arguments(&self) -> &IndexMap<String, Node> {
        match self {
            Self::Module { arguments, .. } | Self::Local { arguments, .. } => arguments,
        }
    }
}
