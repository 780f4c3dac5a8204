//! The names that may stand on a play, a task and their like, and what is said of those that may not.

use fleet_yaml::nearest;

/// Where a keyword stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Play,
    Task,
    Handler,
    Block,
    /// An entry of `roles:` or of a role's dependencies.
    Role,
    /// An `import_playbook`.
    Playbook,
    /// An `include_tasks` or `include_role`.
    Include,
}

/// What every place takes.
const EVERYWHERE: &[&str] = &[
    "any_errors_fatal",
    "become",
    "become_exe",
    "become_flags",
    "become_method",
    "become_user",
    "check_mode",
    "collections",
    "connection",
    "debugger",
    "diff",
    "environment",
    "ignore_errors",
    "ignore_unreachable",
    "module_defaults",
    "name",
    "no_log",
    "port",
    "remote_user",
    "run_once",
    "tags",
    "throttle",
    "timeout",
    "vars",
];

const PLAY: &[&str] = &[
    "bench",
    "fact_path",
    "force_handlers",
    "gather_facts",
    "gather_subset",
    "gather_timeout",
    "handlers",
    "hosts",
    "max_fail_percentage",
    "order",
    "post_tasks",
    "pre_tasks",
    "roles",
    "serial",
    "strategy",
    "tasks",
    "user",
    "validate_argspec",
    "vars_files",
    "vars_prompt",
];

const TASK: &[&str] = &[
    "action",
    "args",
    "async",
    "async_val",
    "changed_when",
    "delay",
    "delegate_facts",
    "delegate_to",
    "failed_when",
    "local_action",
    "loop",
    "loop_control",
    "notify",
    "poll",
    "register",
    "retries",
    "until",
    "when",
];

const BLOCK: &[&str] = &[
    "always",
    "block",
    "delegate_facts",
    "delegate_to",
    "notify",
    "rescue",
    "when",
];

const ROLE: &[&str] = &["delegate_facts", "delegate_to", "role", "when"];

const PLAYBOOK: &[&str] = &["import_playbook", "when"];

/// All that a dynamic include takes: what it includes takes the rest from what is around it.
const INCLUDE: &[&str] = &[
    "action",
    "args",
    "collections",
    "debugger",
    "ignore_errors",
    "loop",
    "loop_control",
    "name",
    "no_log",
    "register",
    "run_once",
    "tags",
    "timeout",
    "vars",
    "when",
];

/// Names that fleetctl has of its own and does not have yet, each with what to do instead.
const NOT_YET: &[(&str, &str)] = &[
    ("rollout", "limit the run with `serial` for now"),
    ("health", "use a task with `assert`"),
    ("gates", "write gates into `bench:`"),
];

impl Place {
    const ALL: [Self; 6] = [
        Self::Play,
        Self::Task,
        Self::Handler,
        Self::Block,
        Self::Role,
        Self::Playbook,
    ];

    pub(super) fn noun(self) -> &'static str {
        match self {
            Self::Play => "a play",
            Self::Task => "a task",
            Self::Handler => "a handler",
            Self::Block => "a block",
            Self::Role => "a role",
            Self::Playbook => "an `import_playbook`",
            Self::Include => "a dynamic include",
        }
    }

    /// Whether tasks stand there, and with them modules.
    pub(super) fn takes_modules(self) -> bool {
        matches!(self, Self::Task | Self::Handler | Self::Include)
    }

    /// Its keywords.
    pub(super) fn keywords(self) -> impl Iterator<Item = &'static str> {
        let (own, shared): (&[&str], &[&str]) = match self {
            Self::Play => (PLAY, EVERYWHERE),
            Self::Task => (TASK, EVERYWHERE),
            Self::Handler => (TASK, EVERYWHERE),
            Self::Block => (BLOCK, EVERYWHERE),
            Self::Role => (ROLE, EVERYWHERE),
            Self::Playbook => (PLAYBOOK, EVERYWHERE),
            Self::Include => (INCLUDE, &[]),
        };
        let listen = (self == Self::Handler).then_some("listen");
        own.iter().chain(shared).copied().chain(listen)
    }

    /// Whether `key` is one of its keywords.
    pub(super) fn takes(self, key: &str) -> bool {
        let looped = matches!(self, Self::Task | Self::Handler | Self::Include);
        (looped && key.starts_with("with_")) || self.keywords().any(|keyword| keyword == key)
    }
}

/// Why a key is not taken here, and what would be.
pub(super) struct Refusal {
    pub(super) message: String,
    pub(super) help: Option<String>,
}

/// Why `key`, which is not taken at `place` and is no module either, is refused.
pub(super) fn refusal(place: Place, key: &str, modules: &[&'static str]) -> Refusal {
    if let Some((_, instead)) = NOT_YET.iter().find(|(name, _)| *name == key) {
        return Refusal {
            message: format!("`{key}` on {} is not supported yet", place.noun()),
            help: Some((*instead).to_owned()),
        };
    }
    let takes_modules = place.takes_modules();
    if let Some(other) = Place::ALL.into_iter().find(|other| other.takes(key)) {
        return Refusal {
            message: format!(
                "`{key}` is a keyword of {}, not of {}",
                other.noun(),
                place.noun()
            ),
            help: None,
        };
    }
    if !takes_modules && modules.contains(&key) {
        return Refusal {
            message: format!(
                "`{key}` is a module, and stands on a task, not on {}",
                place.noun()
            ),
            help: Some("write it as an item of the list below `tasks:`".to_owned()),
        };
    }
    let modules = takes_modules.then_some(modules).into_iter().flatten();
    let candidates = place.keywords().chain(modules.copied());
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

#[cfg(test)]
mod tests {
    use super::{Place, refusal};

    #[test]
    fn every_place_has_its_own_words() {
        assert!(Place::Handler.takes("listen") && !Place::Task.takes("listen"));
        assert!(Place::Task.takes("with_dict") && !Place::Block.takes("with_dict"));
        assert!(Place::Block.takes("rescue") && !Place::Play.takes("when"));
        assert!(Place::Include.takes("when") && !Place::Include.takes("become"));
    }

    #[test]
    fn a_word_of_another_place_is_told_as_such() {
        let told = refusal(Place::Task, "serial", &[]).message;
        assert_eq!(told, "`serial` is a keyword of a play, not of a task");
        let told = refusal(Place::Play, "copy", &["copy"]).message;
        assert_eq!(
            told,
            "`copy` is a module, and stands on a task, not on a play"
        );
        let told = refusal(Place::Task, "tempalte", &["template"]).help;
        assert_eq!(told.as_deref(), Some("did you mean `template`?"));
    }
}
