//! The arguments of the modules that the controller runs.

/// An argument of a module that the controller runs.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// What it takes; empty where the module `copy` says so.
    pub takes: &'static str,
    /// What it means; empty where the module `copy` says so.
    pub text: &'static str,
    /// It must be there.
    pub required: bool,
    /// What it is where it is not given.
    pub default: Option<&'static str>,
}

impl Parameter {
    const fn new(name: &'static str, takes: &'static str, text: &'static str) -> Self {
        Self {
            name,
            takes,
            text,
            required: false,
            default: None,
        }
    }

    /// One that the module `copy` on the host has, too.
    const fn of_copy(name: &'static str) -> Self {
        Self::new(name, "", "")
    }

    const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    const fn default(mut self, value: &'static str) -> Self {
        self.default = Some(value);
        self
    }
}

pub(super) const ASSERT: &[Parameter] = &[
    Parameter::new("that", "conditions", "The conditions, which must all hold.").required(),
    Parameter::new("fail_msg", "text", "The message where one does not hold."),
    Parameter::new("msg", "text", "The same as `fail_msg`."),
    Parameter::new("success_msg", "text", "The message where all hold."),
    Parameter::new(
        "quiet",
        "yes or no",
        "Taken for Ansible's sake: what holds is not listed.",
    ),
];

pub(super) const GROUP_BY: &[Parameter] = &[
    Parameter::new(
        "key",
        "text",
        "The group, which is made where there is none.",
    )
    .required(),
    Parameter::new("parents", "list", "Groups that the group is put into.").default("all"),
];

pub(super) const PAUSE: &[Parameter] = &[
    Parameter::new("minutes", "number", "How long to wait."),
    Parameter::new("seconds", "number", "How long to wait."),
    Parameter::new(
        "prompt",
        "text",
        "What the person is asked; without a time to wait, for the return key.",
    ),
    Parameter::new("echo", "yes or no", "Whether what is typed is shown.").default("true"),
];

pub(super) const WAIT_FOR_CONNECTION: &[Parameter] = &[
    Parameter::new(
        "delay",
        "number",
        "Seconds to wait before the first attempt.",
    )
    .default("0"),
    Parameter::new("timeout", "number", "Seconds after which the task fails.").default("600"),
    Parameter::new("sleep", "number", "Seconds between attempts.").default("1"),
    Parameter::new(
        "connect_timeout",
        "number",
        "Taken for Ansible's sake: `ansible_ssh_timeout` says how long one attempt may take.",
    ),
];

pub(super) const SET_STATS: &[Parameter] = &[
    Parameter::new("data", "mapping", "The values by their names.").required(),
    Parameter::new("per_host", "yes or no", "Each host has its own.").default("false"),
    Parameter::new(
        "aggregate",
        "yes or no",
        "Values of the same name are added up, not replaced.",
    )
    .default("true"),
];

pub(super) const DEBUG: &[Parameter] = &[
    Parameter::new("msg", "any value", "What to show.").default("Hello world!"),
    Parameter::new(
        "var",
        "expression",
        "Show the value of this expression, in place of `msg`.",
    ),
    Parameter::new("verbosity", "number", "Show it only with so many `-v`.").default("0"),
];

pub(super) const FAIL: &[Parameter] =
    &[Parameter::new("msg", "text", "Why.").default("Failed as requested from task")];

pub(super) const INCLUDE_VARS: &[Parameter] = &[
    Parameter::new(
        "file",
        "text",
        "The file, beside the playbook or in its `vars/`.",
    ),
    Parameter::new(
        "dir",
        "text",
        "A directory, all files of which are taken, in order.",
    ),
    Parameter::new(
        "name",
        "text",
        "Put the variables into one mapping of this name.",
    ),
    Parameter::new(
        "depth",
        "number",
        "How deep to go into a directory; 0 for all of it.",
    )
    .default("0"),
    Parameter::new(
        "extensions",
        "list",
        "The endings of files that are taken from a directory.",
    )
    .default("json, yaml, yml"),
    Parameter::new(
        "files_matching",
        "pattern",
        "Only files of a directory that this matches.",
    ),
    Parameter::new(
        "hash_behaviour",
        "`replace` or `merge`",
        "Whether mappings are merged with those that are there.",
    ),
    Parameter::new(
        "ignore_files",
        "list",
        "Files of a directory that are left out.",
    ),
    Parameter::new(
        "ignore_unknown_extensions",
        "yes or no",
        "Files of a directory with other endings are no mistake.",
    )
    .default("false"),
];

pub(super) const META: &[Parameter] = &[Parameter::new(
    "action",
    "`flush_handlers`, `end_host`, `end_play` or `noop`",
    "What to do.",
)
.required()];

pub(super) const COPY: &[Parameter] = &[
    Parameter::of_copy("dest").required(),
    Parameter::new(
        "src",
        "text",
        "The source: a file or a directory of the controller, beside the playbook or in its `files/`; of the host with \
         `remote_src`. `dir/` copies what is in the directory, `dir` the directory itself.",
    ),
    Parameter::new(
        "content",
        "any value",
        "The content itself, instead of a source. What is no text becomes JSON.",
    ),
    Parameter::of_copy("backup"),
    Parameter::of_copy("checksum"),
    Parameter::of_copy("directory_mode"),
    Parameter::of_copy("follow"),
    Parameter::of_copy("force"),
    Parameter::of_copy("group"),
    Parameter::of_copy("mode"),
    Parameter::of_copy("owner"),
    Parameter::of_copy("remote_src"),
    Parameter::of_copy("validate"),
    Parameter::new(
        "decrypt",
        "yes or no",
        "Open a source that the vault has encrypted; without it the host gets the encrypted file.",
    )
    .default("true"),
];

pub(super) const TEMPLATE: &[Parameter] = &[
    Parameter::of_copy("dest").required(),
    Parameter::new(
        "src",
        "text",
        "The template, beside the playbook or in its `templates/`.",
    )
    .required(),
    Parameter::of_copy("backup"),
    Parameter::new("block_end_string", "text", "What ends a statement.").default("%}"),
    Parameter::new("block_start_string", "text", "What begins a statement.").default("{%"),
    Parameter::new("comment_end_string", "text", "What ends a comment.").default("#}"),
    Parameter::new("comment_start_string", "text", "What begins a comment.").default("{#"),
    Parameter::of_copy("follow"),
    Parameter::of_copy("force"),
    Parameter::of_copy("group"),
    Parameter::new(
        "keep_trailing_newline",
        "yes or no",
        "Taken for Ansible's sake: the newline at the end is kept, as it is there.",
    ),
    Parameter::new(
        "lstrip_blocks",
        "yes or no",
        "Drop the blanks before a statement.",
    )
    .default("false"),
    Parameter::of_copy("mode"),
    Parameter::new("newline_sequence", "text", "What ends the lines.").default("\\n"),
    Parameter::of_copy("owner"),
    Parameter::new(
        "trim_blocks",
        "yes or no",
        "Drop the newline after a statement.",
    )
    .default("true"),
    Parameter::of_copy("validate"),
    Parameter::new("variable_end_string", "text", "What ends an expression.").default("}}"),
    Parameter::new(
        "variable_start_string",
        "text",
        "What begins an expression.",
    )
    .default("{{"),
];

pub(super) const VALIDATE_ARGUMENT_SPEC: &[Parameter] = &[
    Parameter::new(
        "argument_spec",
        "mapping",
        "What each argument is, by its name: `type`, `required`, `choices`, `default`, `options` and so on.",
    )
    .required(),
    Parameter::new(
        "provided_arguments",
        "mapping",
        "The arguments; variables of the same names where they are not given.",
    ),
    Parameter::new(
        "validate_args_context",
        "mapping",
        "What the result says of where the specification is from.",
    ),
];
