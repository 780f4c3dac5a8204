//! What is looked at when a whole play is read: names of handlers, and what its includes name.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use fleet_yaml::Node;

use super::{
    Action, Directives, Include, Play, RoleCall, Step, Task,
    call::is_plain,
    check::{is_templated, truth},
    reader::{Here, Reader},
};

/// What the includes of a play bring in, as far as it can be told before the run.
#[derive(Default)]
struct Included {
    tasks: Vec<Arc<Task>>,
    /// Those of them that no condition keeps hosts from.
    sure: Vec<Step>,
    handlers: Vec<Arc<Task>>,
    /// Something is included whose name is a template.
    open: bool,
}

impl Included {
    fn took(&mut self, steps: Vec<Step>, conditional: bool) {
        let tasks = steps.iter().flat_map(Step::tasks);
        self.tasks.extend(tasks.cloned());
        if !conditional {
            self.sure.extend(steps);
        }
    }
}

impl Reader<'_> {
    /// Looks at all that can only be judged when the play is whole.
    pub(super) fn after_play(&mut self, play: &Play) {
        let included = self.follow();
        self.unset_names(play, &included.sure, &included.tasks, included.open);
        let tasks: Vec<&Arc<Task>> = play.all_tasks().chain(&included.tasks).collect();
        let handlers: Vec<&Arc<Task>> = play.handlers.iter().chain(&included.handlers).collect();
        let named_later = handlers.iter().any(|handler| {
            is_templated(handler.title())
                || handler
                    .listen
                    .iter()
                    .any(|node| node.as_str().is_some_and(is_templated))
                || matches!(handler.action, Action::Include { .. })
        });
        if included.open || named_later {
            return;
        }
        for task in tasks {
            for node in task.notify.iter().chain(&task.directives.notify) {
                let Some(name) = node.scalar_text().filter(|name| !is_templated(name)) else {
                    continue;
                };
                if !handlers.iter().any(|handler| handler.answers_to(&name)) {
                    self.no_handler(&name, node, &handlers);
                }
            }
        }
    }

    fn no_handler(&mut self, name: &str, node: &Node, handlers: &[&Arc<Task>]) {
        if self.left_out.contains(name) {
            return;
        }
        let names = handlers.iter().flat_map(|handler| {
            let listened = handler.listen.iter().filter_map(Node::as_str);
            listened.chain([handler.title()])
        });
        let help = match fleet_yaml::nearest(name, names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "write one with that name, or that listens to it, below `handlers:`".to_owned(),
        };
        self.late(
            &node.span,
            format!("no handler of this play answers to `{name}`"),
        )
        .help = Some(help);
    }

    /// Reads what the includes of the play name by a plain name, and what is included there, without keeping it.
    fn follow(&mut self) -> Included {
        let mut included = Included::default();
        let mut seen: HashSet<(String, PathBuf, bool)> = HashSet::new();
        let (id, here) = (self.next_id, self.here.clone());
        let (first, roles) = (self.play.handlers.len(), self.play.roles.len());
        let conditional = self.conditional;
        while let Some((task, handlers)) = self.includes.pop() {
            let Action::Include {
                include, arguments, ..
            } = &task.action
            else {
                continue;
            };
            if task.args.is_some() || !is_plain(arguments) {
                included.open = true;
                continue;
            }
            self.here = Here {
                files: Arc::clone(&task.files),
                search: Arc::clone(&task.search),
                handlers,
            };
            // What a condition keeps hosts from, or what may fail, is not sure to be reached.
            self.conditional = conditional
                || !task.directives.when.is_empty()
                || task.r#loop.is_some()
                || task
                    .directives
                    .ignore_errors
                    .as_ref()
                    .is_some_and(|node| truth(node) != Some(false));
            let mut around = super::Around::of(&task, false, &self.dir, 0).directives;
            if let Some(apply) = arguments.get("apply") {
                let _ = self.applied(apply, &mut around);
            }
            self.all_late(|reader| match include {
                Include::Tasks => reader.follow_tasks(&task, &around, &mut seen, &mut included),
                Include::Role => reader.follow_role(&task, &around, &mut seen, &mut included),
            });
        }
        included.handlers.extend(self.play.handlers.drain(first..));
        self.play.roles.truncate(roles);
        (self.next_id, self.here, self.conditional) = (id, here, conditional);
        included
    }

    fn follow_tasks(
        &mut self,
        task: &Task,
        around: &Directives,
        seen: &mut HashSet<(String, PathBuf, bool)>,
        included: &mut Included,
    ) {
        let Some(file) = task
            .action
            .arguments()
            .get("file")
            .and_then(Node::scalar_text)
        else {
            return;
        };
        let role = around.role.clone();
        let path = match self.find_tasks(&file, role.as_deref()) {
            Ok(path) => path,
            Err(_) if self.makes_files || self.conditional => return,
            Err(_) => {
                self.included_tasks(&file, task, around);
                return;
            }
        };
        let by = role.map_or_else(PathBuf::new, |role| role.path.clone());
        if !seen.insert((path.display().to_string(), by, self.conditional)) {
            return;
        }
        let steps = self.file_of_tasks(&path, around).unwrap_or_default();
        included.took(steps, self.conditional);
    }

    fn follow_role(
        &mut self,
        task: &Task,
        around: &Directives,
        seen: &mut HashSet<(String, PathBuf, bool)>,
        included: &mut Included,
    ) {
        let arguments = task.action.arguments();
        let text = |key: &str| {
            let node = arguments.get(key)?;
            node.scalar_text().map(std::borrow::Cow::into_owned)
        };
        let Some(name) = text("name").or_else(|| text("role")) else {
            return;
        };
        let call = RoleCall {
            tasks_from: text("tasks_from"),
            vars_from: text("vars_from"),
            defaults_from: text("defaults_from"),
            handlers_from: text("handlers_from"),
            name,
            ..RoleCall::default()
        };
        let key = format!("{call:?}");
        if !seen.insert((key, PathBuf::new(), self.conditional)) {
            return;
        }
        if self.conditional && !self.is_there(&call.name, around) {
            return;
        }
        let place = arguments.get("name").or(arguments.get("role"));
        let place = place.map_or(&task.span, |node| &node.span).clone();
        if let Some((steps, handlers)) = self.called_role(&call, &place, around, false) {
            included.took(steps, self.conditional);
            included.handlers.extend(handlers);
        }
    }

    /// Whether a role is there at all.
    fn is_there(&mut self, name: &str, around: &Directives) -> bool {
        let place = fleet_yaml::Source::new(PathBuf::new(), "").span(0, 0);
        let beside = around.role.as_ref().map(|role| role.path.clone());
        let beside = beside.as_deref().and_then(Path::parent);
        self.silently(|reader| {
            let found = reader.find_role(name, &place, &around.collections, beside);
            found.is_some()
        })
    }
}
