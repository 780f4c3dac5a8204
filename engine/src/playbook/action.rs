//! What a task does: a module on the host, or something that the controller does by itself.

use fleet_modules::module::Module;
use fleet_yaml::{Node, Span};
use indexmap::IndexMap;

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
    const ALL: [Self; 8] = [
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
    pub(super) fn free_form(self) -> Option<&'static str> {
        match self {
            Self::Meta => Some("action"),
            Self::IncludeVars => Some("file"),
            _ => None,
        }
    }

    /// The names of its arguments; none where any name is taken.
    pub(super) fn arguments(self) -> Option<&'static [&'static str]> {
        match self {
            Self::Assert => Some(&["fail_msg", "msg", "quiet", "success_msg", "that"]),
            Self::Copy => Some(&[
                "backup", "checksum", "content", "dest", "directory_mode", "follow", "force",
                "group", "mode", "owner", "remote_src", "src", "validate",
            ]),
            Self::Debug => Some(&["msg", "var", "verbosity"]),
            Self::Fail => Some(&["msg"]),
            Self::IncludeVars => Some(&["file", "name"]),
            Self::Meta => Some(&["action"]),
            Self::SetFact => None,
            Self::Template => Some(&[
                "backup", "block_end_string", "block_start_string", "comment_end_string",
                "comment_start_string", "dest", "follow", "force", "group", "keep_trailing_newline",
                "lstrip_blocks", "mode", "newline_sequence", "owner", "src", "trim_blocks",
                "validate", "variable_end_string", "variable_start_string",
            ]),
        }
    }

    /// The arguments that must be there.
    pub(super) fn required(self) -> &'static [&'static str] {
        match self {
            Self::Assert => &["that"],
            Self::Copy => &["dest"],
            Self::IncludeVars => &["file"],
            Self::Meta => &["action"],
            Self::Template => &["dest", "src"],
            Self::Debug | Self::Fail | Self::SetFact => &[],
        }
    }
}

impl std::fmt::Debug for Action {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct(self.name()).field("arguments", self.arguments()).finish()
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
