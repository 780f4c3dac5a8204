//! The names that may stand on a play and on a task: those that work, and those that are known
//! from Ansible and are refused with a reason instead of being ignored in silence.

use fleet_yaml::nearest;

/// Where a keyword stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Play,
    Task,
    Handler,
    Block,
}

impl Place {
    pub(super) fn noun(self) -> &'static str {
        match self {
            Self::Play => "a play",
            Self::Task => "a task",
            Self::Handler => "a handler",
            Self::Block => "a block",
        }
    }

    fn supported(self) -> &'static [&'static str] {
        match self {
            Self::Play => PLAY,
            Self::Task => TASK,
            Self::Handler => HANDLER,
            Self::Block => BLOCK,
        }
    }
}

const PLAY: &[&str] = &[
    "become",
    "become_user",
    "bench",
    "check_mode",
    "connection",
    "diff",
    "environment",
    "gather_facts",
    "gather_subset",
    "handlers",
    "hosts",
    "ignore_errors",
    "name",
    "no_log",
    "port",
    "post_tasks",
    "pre_tasks",
    "remote_user",
    "tags",
    "tasks",
    "timeout",
    "vars",
    "vars_files",
];

const TASK: &[&str] = &[
    "action",
    "args",
    "become",
    "become_user",
    "changed_when",
    "check_mode",
    "diff",
    "environment",
    "failed_when",
    "ignore_errors",
    "loop",
    "loop_control",
    "name",
    "no_log",
    "notify",
    "register",
    "tags",
    "timeout",
    "vars",
    "when",
    "with_items",
];

const HANDLER: &[&str] = &[
    "action",
    "args",
    "become",
    "become_user",
    "changed_when",
    "check_mode",
    "diff",
    "environment",
    "failed_when",
    "ignore_errors",
    "listen",
    "loop",
    "loop_control",
    "name",
    "no_log",
    "notify",
    "register",
    "tags",
    "timeout",
    "vars",
    "when",
    "with_items",
];

const BLOCK: &[&str] = &[
    "become",
    "become_user",
    "block",
    "check_mode",
    "diff",
    "environment",
    "ignore_errors",
    "name",
    "no_log",
    "notify",
    "tags",
    "timeout",
    "vars",
    "when",
];

/// Ansible's keywords that fleetctl does not have, each with what to do instead.
const REFUSED: &[(&str, &str)] = &[
    (
        "any_errors_fatal",
        "a failed host is undone by itself; limit the run with `--limit` for now",
    ),
    ("always", "put the tasks behind the block for now"),
    ("async", "take it out: tasks run to their end"),
    ("become_exe", "set `ansible_become_exe` for the host"),
    ("become_flags", "set `ansible_become_flags` for the host"),
    ("become_method", "take it out: the method is sudo"),
    (
        "collections",
        "take it out: modules are found by their short names",
    ),
    (
        "debugger",
        "take it out; `--step` style debugging is not offered",
    ),
    ("delay", "take it out together with `until`"),
    ("delegate_facts", "take it out together with `delegate_to`"),
    ("delegate_to", "write a play of its own for that host"),
    ("fact_path", "put the facts into /etc/ansible/facts.d"),
    (
        "force_handlers",
        "take it out: a failed host's changes are undone",
    ),
    (
        "gather_timeout",
        "take it out: facts are gathered in milliseconds",
    ),
    (
        "ignore_unreachable",
        "take it out: an unreachable host is always reported",
    ),
    ("local_action", "write a play for `localhost`"),
    (
        "max_fail_percentage",
        "limit the run with `--limit` for now",
    ),
    ("module_defaults", "write the arguments on each task"),
    ("order", "take it out: hosts run side by side"),
    ("poll", "take it out together with `async`"),
    (
        "rescue",
        "use `ignore_errors` and `when: result is failed` for now",
    ),
    ("retries", "take it out together with `until`"),
    (
        "roles",
        "put the role's tasks, handlers and vars into the play for now",
    ),
    ("run_once", "write a play for one host, `hosts: web[0]`"),
    ("serial", "limit the run with `--limit` for now"),
    ("strategy", "take it out"),
    ("throttle", "use `--forks`"),
    ("until", "use a command that waits by itself"),
    ("validate_argspec", "take it out"),
    ("vars_prompt", "hand the value over with `-e name=value`"),
    ("rollout", "limit the run with `--limit` for now"),
    ("health", "use a task with `assert`"),
    ("gates", "write gates into `bench:`"),
];

/// Why a key is not taken here, and what would be.
pub(super) struct Refusal {
    pub(super) message: String,
    pub(super) help: Option<String>,
}

/// Whether `key` is a keyword that works at `place`.
pub(super) fn is_supported(place: Place, key: &str) -> bool {
    place.supported().contains(&key)
}

/// Why `key`, which is not supported at `place` and is no module either, is refused.
pub(super) fn refusal(place: Place, key: &str, modules: &[&'static str]) -> Refusal {
    if let Some((_, instead)) = REFUSED.iter().find(|(name, _)| *name == key) {
        return Refusal {
            message: format!("`{key}` on {} is not supported yet", place.noun()),
            help: Some((*instead).to_owned()),
        };
    }
    if let Some(lookup) = key.strip_prefix("with_") {
        return Refusal {
            message: format!("`with_{lookup}` is not supported yet"),
            help: Some("write the list with `loop:`".to_owned()),
        };
    }
    let elsewhere = [Place::Play, Place::Task, Place::Handler, Place::Block]
        .into_iter()
        .find(|other| *other != place && is_supported(*other, key));
    if let Some(other) = elsewhere {
        return Refusal {
            message: format!(
                "`{key}` is a keyword of {}, not of {}",
                other.noun(),
                place.noun()
            ),
            help: None,
        };
    }
    let takes_modules = matches!(place, Place::Task | Place::Handler);
    if !takes_modules && modules.contains(&key) {
        return Refusal {
            message: format!(
                "`{key}` is a module, and stands on a task, not on {}",
                place.noun()
            ),
            help: Some("write it as an item of the list below `tasks:`".to_owned()),
        };
    }
    let candidates = place.supported().iter().copied().chain(
        takes_modules
            .then_some(modules)
            .into_iter()
            .flatten()
            .copied(),
    );
    let what = if takes_modules {
        "keyword or module"
    } else {
        "keyword"
    };
    let help = match nearest(key, candidates) {
        Some(near) => format!("did you mean `{near}`?"),
        None if takes_modules => {
            "`fleetctl doc` lists the modules, docs/language.md the keywords".to_owned()
        }
        None => "docs/language.md lists the keywords".to_owned(),
    };
    Refusal {
        message: format!("`{key}` is no {what} that fleetctl knows"),
        help: Some(help),
    }
}
