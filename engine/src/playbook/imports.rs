//! Static imports and dynamic includes: where they look, and what they hand on.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use fleet_yaml::{Map, Node, Span};

use crate::sources;

use super::{
    Directives, IncludedRole, Play, Role, RoleCall, Step, Task, Vars,
    call::Call,
    check::is_templated,
    keywords::Place,
    play::dir_of,
    reader::{DEPTH, Here, Reader},
};

/// The key and the file of an item that imports a playbook.
pub(super) fn imported_playbook(map: &Map) -> Option<(&Node, &Node)> {
    [
        "import_playbook",
        "ansible.builtin.import_playbook",
        "ansible.legacy.import_playbook",
    ]
    .iter()
    .find_map(|key| map.entry(key))
}

impl Reader<'_> {
    /// The plays of another playbook in place of this item.
    pub(super) fn import_playbook(
        &mut self,
        map: &Map,
        key: &Node,
        name: &Node,
        plays: &mut Vec<Arc<Play>>,
    ) {
        let full = key.as_str().unwrap_or_default().to_owned();
        self.keywords(Place::Playbook, map, |name| name == full);
        let mut around = Directives::default();
        self.directives(map, &mut around);
        let vars = self.own_vars(map);
        let Some(file) = name.scalar_text().filter(|text| !text.is_empty()) else {
            self.wrong_kind(name, "a playbook's file");
            return;
        };
        let known = [Arc::clone(&vars)];
        let Some(file) = self.rendered(&Node::string(&file, &name.span), &known) else {
            return;
        };
        let beside = self.dir.join(&file);
        let path = match sources::exists(&beside) {
            true => beside,
            false => self
                .shelf
                .in_collection(&file, "playbooks", &self.dir)
                .unwrap_or(beside),
        };
        if !sources::is_file(&path) {
            let tried = [path];
            self.tell(super::files::missing(&file, &name.span, &tried), false);
            return;
        }
        if self.too_deep(&name.span, "playbooks") {
            return;
        }
        let Some(file) = self.open(&path) else {
            return;
        };
        let dir = std::mem::replace(&mut self.dir, dir_of(&path));
        self.depth += 1;
        // What an import hands over wins over the play's own, and is known to the names of its static imports.
        self.imports.push((around, vars));
        self.plays(&file, plays);
        self.imports.pop();
        self.depth -= 1;
        self.dir = dir;
    }

    /// Whether imports stand in one another without an end.
    fn too_deep(&mut self, span: &Span, what: &str) -> bool {
        if self.depth < DEPTH {
            return false;
        }
        self.problem(
            span,
            format!("a recursion loop was detected: {what} that import one another"),
        );
        true
    }

    /// A name, rendered with what is known before the run.
    pub(super) fn rendered(&mut self, node: &Node, more: &[Arc<Vars>]) -> Option<String> {
        let Some(text) = node.scalar_text() else {
            self.wrong_kind(node, "a name");
            return None;
        };
        if !is_templated(&text) {
            return Some(text.into_owned());
        }
        let vars = self.known_before_the_run(more, &node.span);
        match self.shelf.settings.check.render(node, &vars) {
            Ok(rendered) => match rendered.scalar_text() {
                Some(text) => Some(text.into_owned()),
                None => {
                    self.wrong_kind(&rendered, "a name");
                    None
                }
            },
            Err(problem) => {
                let problem = problem.or_at(&node.span);
                let help = "what is imported is read before any host is known: only `vars`, the defaults of roles and `-e` \
                            are known to it; an include is read when a host reaches it";
                self.tell(problem.with_help(help), false);
                None
            }
        }
    }

    /// Variables that are known before the run, lowest first.
    pub(super) fn known_before_the_run(&self, more: &[Arc<Vars>], span: &Span) -> Vec<Arc<Vars>> {
        let mut vars = self.play.vars.clone();
        vars.extend(more.iter().cloned());
        vars.push(Arc::clone(&self.shelf.settings.extra_vars));
        vars.push(self.magic(span));
        vars
    }

    /// Magic variables that are known before the run.
    fn magic(&self, span: &Span) -> Arc<Vars> {
        let dir = super::files::absolute(&self.dir);
        let text = |text: &str| Node::string(text, span);
        Arc::new(Vars::from_iter([(
            "playbook_dir".to_owned(),
            text(&dir.display().to_string()),
        )]))
    }

    /// `import_tasks`: the tasks of the file in place of this one.
    pub(super) fn import_tasks(
        &mut self,
        map: &Map,
        call: &Call,
        inherited: &Directives,
    ) -> Vec<Step> {
        self.no_loop(map, call, "import_tasks", "include_tasks");
        if !self.only_known(call, "import_tasks", &["file"]) {
            return Vec::new();
        }
        let Some(name) = self.required_file(call, "import_tasks") else {
            return Vec::new();
        };
        let mut directives = inherited.clone();
        self.block_keywords(map, &mut directives);
        let known = known_to(&directives, &name.span);
        let Some(file) = self.rendered(&name, &known) else {
            return Vec::new();
        };
        let role = directives.role.clone();
        let path = match self.find_tasks(&file, role.as_deref()) {
            Ok(path) => path,
            Err(wanted) => {
                self.no_such_tasks(&wanted, &name.span);
                return Vec::new();
            }
        };
        if self.too_deep(&name.span, "files of tasks") {
            return Vec::new();
        }
        self.file_of_tasks(&path, &directives).unwrap_or_default()
    }

    /// The tasks of a file, at its place.
    pub(super) fn file_of_tasks(
        &mut self,
        path: &Path,
        directives: &Directives,
    ) -> Option<Vec<Step>> {
        let within = self.within(path, directives.role.as_deref());
        let outer = std::mem::replace(&mut self.here, within);
        self.depth += 1;
        let steps = self.task_file(path, |reader, content| reader.steps(content, directives));
        self.depth -= 1;
        self.here = outer;
        steps
    }

    /// The place of a file that is read from here.
    pub(super) fn within(&self, path: &Path, role: Option<&Role>) -> Here {
        let dir = dir_of(path);
        let mut files = vec![dir.clone()];
        files.extend(
            self.here
                .files
                .iter()
                .filter(|known| **known != dir)
                .cloned(),
        );
        let mut search = Vec::new();
        if let Some(role) = role {
            search.push(role.path.clone());
            let parents = role.parents.iter().rev().map(|(_, path)| path.clone());
            search.extend(parents);
        }
        search.push(dir);
        Here {
            files: files.into(),
            search: search.into(),
            handlers: self.here.handlers,
        }
    }

    /// A dynamic include of tasks, while the play runs.
    pub(super) fn included_tasks(
        &mut self,
        file: &str,
        including: &Task,
        directives: &Directives,
    ) -> Option<(PathBuf, Vec<Step>)> {
        let place = place_of(including, "file");
        if file.is_empty() {
            self.problem(
                &including.span,
                "No file specified for ansible.builtin.include_tasks",
            );
            return None;
        }
        match self.find_tasks(file, directives.role.as_deref()) {
            Ok(path) => {
                let steps = self.file_of_tasks(&path, directives)?;
                Some((path, steps))
            }
            Err(wanted) => {
                self.no_such_tasks(&wanted, &place);
                None
            }
        }
    }

    /// A dynamic include of a role, while the play runs.
    pub(super) fn included_role(
        &mut self,
        call: &RoleCall,
        including: &Task,
        directives: &Directives,
    ) -> Option<IncludedRole> {
        let place = place_of(including, "name");
        let (mut steps, handlers) = self.called_role(call, &place, directives, false)?;
        let Some(Step::Block(own)) = steps.pop() else {
            return None;
        };
        // One block, so that whoever runs it knows the role; those that it depends on are blocks within it.
        let block = match steps.is_empty() {
            true => own,
            false => {
                steps.extend(own.body.iter().cloned());
                Arc::new(super::Block {
                    span: own.span.clone(),
                    body: steps,
                    rescue: Vec::new(),
                    always: Vec::new(),
                    role: own.role.clone(),
                })
            }
        };
        Some(IncludedRole { block, handlers })
    }

    /// `apply:`
    pub(super) fn applied(&mut self, apply: &Node, directives: &mut Directives) -> Option<()> {
        if apply.is_null() {
            return Some(());
        }
        let map = self.require_map(apply, "keywords of a block")?.clone();
        self.keywords(Place::Block, &map, |_| false);
        self.block_keywords(&map, directives);
        Some(())
    }

    /// `import_role`: its tasks in place of this one; its handlers and variables go to the play.
    pub(super) fn import_role(
        &mut self,
        map: &Map,
        call: &Call,
        inherited: &Directives,
    ) -> Vec<Step> {
        const KNOWN: [&str; 9] = [
            "allow_duplicates",
            "defaults_from",
            "handlers_from",
            "name",
            "public",
            "role",
            "rolespec_validate",
            "tasks_from",
            "vars_from",
        ];
        self.no_loop(map, call, "import_role", "include_role");
        if self.here.handlers {
            self.problem(
                &call.key.span,
                "Using 'import_role' as a handler is not supported.",
            );
            return Vec::new();
        }
        if !self.only_known(call, "import_role", &KNOWN) {
            return Vec::new();
        }
        let mut directives = inherited.clone();
        self.block_keywords(map, &mut directives);
        let Some(wanted) = self.role_call(call, &known_to(&directives, &call.key.span)) else {
            return Vec::new();
        };
        let place = call
            .arguments
            .get("name")
            .or_else(|| call.arguments.get("role"))
            .map_or(&call.key.span, |name| &name.span)
            .clone();
        if self.too_deep(&place, "roles") {
            return Vec::new();
        }
        self.depth += 1;
        let read = self.called_role(&wanted, &place, &directives, true);
        self.depth -= 1;
        let (steps, mut handlers) = read.unwrap_or_default();
        self.play.handlers.append(&mut handlers);
        steps
    }

    /// What `import_role`, or an `include_role` without templates, asks for.
    pub(super) fn role_call(&mut self, call: &Call, known: &[Arc<Vars>]) -> Option<RoleCall> {
        let name = call.arguments.get("name");
        let Some(name) = name.or_else(|| call.arguments.get("role")) else {
            self.problem(
                &call.key.span,
                format!("'name' is a required field for {}.", call.short()),
            );
            return None;
        };
        let name = self.rendered(name, known)?;
        let mut from = |key: &str| match call.arguments.get(key) {
            None => Some(None),
            Some(node) if node.as_str().is_some() => self.rendered(node, known).map(Some),
            Some(node) => {
                let found = node.kind_name();
                self.problem(
                    &node.span,
                    format!("Expected a string for {key} but got {found} instead"),
                );
                None
            }
        };
        let call_of = RoleCall {
            name,
            tasks_from: from("tasks_from")?,
            vars_from: from("vars_from")?,
            defaults_from: from("defaults_from")?,
            handlers_from: from("handlers_from")?,
            public: None,
            allow_duplicates: None,
            rolespec_validate: true,
            params: Arc::default(),
        };
        let mut flag = |key: &str| {
            let node = call.arguments.get(key)?;
            super::check::truth(node).or_else(|| {
                let text = self.rendered(node, known)?;
                super::check::truth(&Node::string(&text, &node.span))
            })
        };
        Some(RoleCall {
            public: flag("public"),
            allow_duplicates: flag("allow_duplicates"),
            rolespec_validate: flag("rolespec_validate").unwrap_or(true),
            ..call_of
        })
    }

    fn no_loop(&mut self, map: &Map, call: &Call, name: &str, instead: &str) {
        let loops = |key: &Node| {
            key.as_str()
                .is_some_and(|key| key == "loop" || key.starts_with("with_"))
        };
        if map.iter().any(|(key, _)| loops(key)) {
            self.problem(
                &call.key.span,
                format!(
                    "You cannot use loops on '{name}' statements. You should use '{instead}' instead."
                ),
            );
        }
    }

    /// Whether an import or include has only arguments that it takes.
    pub(super) fn only_known(&mut self, call: &Call, name: &str, known: &[&str]) -> bool {
        let wrong: Vec<&String> = call
            .arguments
            .keys()
            .filter(|key| !known.contains(&key.as_str()))
            .collect();
        let Some(first) = wrong.first() else {
            return true;
        };
        let span = call.place_of(first);
        let names: Vec<&str> = wrong.iter().map(|key| key.as_str()).collect();
        let help = match fleet_yaml::nearest(first, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("it takes `{}`", known.join("`, `")),
        };
        let message = format!("Invalid options for {name}: {}", names.join(","));
        self.problem(&span, message).help = Some(help);
        false
    }

    /// The `file` of an import or include.
    pub(super) fn required_file(&mut self, call: &Call, name: &str) -> Option<Node> {
        let file = call.arguments.get("file");
        match file.filter(|file| file.scalar_text().is_some_and(|text| !text.is_empty())) {
            Some(file) => Some(file.clone()),
            None => {
                let message = format!("No file specified for ansible.builtin.{name}");
                self.problem(&call.task, message).help = Some(format!("name it: `{name}: FILE`"));
                None
            }
        }
    }

    fn no_such_tasks(&mut self, wanted: &Path, place: &Span) {
        let plain = super::files::absolute(wanted);
        let near = super::files::neighbour(std::slice::from_ref(&plain));
        let message = format!(
            "Could not find or access '{}' on the Ansible Controller.",
            plain.display()
        );
        self.problem(place, message).help = near.map(|near| format!("did you mean `{near}`?"));
    }

    /// A file of tasks: beside this one, beside those that include it, in the role, beside the playbook.
    ///
    /// # Errors
    /// Where it should be.
    pub(super) fn find_tasks(&self, file: &str, role: Option<&Role>) -> Result<PathBuf, PathBuf> {
        let given = Path::new(file);
        if given.is_absolute() {
            let found = sources::is_file(given);
            return found
                .then(|| given.to_owned())
                .ok_or_else(|| given.to_owned());
        }
        let mut candidates: Vec<PathBuf> =
            self.here.files.iter().map(|dir| dir.join(given)).collect();
        let kind = match self.here.handlers {
            true => "handlers",
            false => "tasks",
        };
        let wanted = match role {
            Some(role) => {
                candidates.push(role.path.join(kind).join(given));
                candidates.push(role.path.join("tasks").join(given));
                candidates.push(role.path.join(given));
                role.path.join(kind).join(given)
            }
            None => self.dir.join(given),
        };
        candidates.push(self.dir.join(given));
        let found = candidates.into_iter().find(|path| sources::is_file(path));
        found.ok_or(wanted)
    }
}

/// The variables that are known to the names of static imports, lowest first.
fn known_to(directives: &Directives, span: &Span) -> Vec<Arc<Vars>> {
    let mut known = Vec::new();
    if let Some(role) = &directives.role {
        known.extend(role.defaults.iter().cloned());
        known.extend(role.vars.iter().cloned());
    }
    known.extend(directives.vars.iter().cloned());
    if let Some(role) = &directives.role {
        known.extend(role.params.iter().cloned());
    }
    known.extend(directives.include_params.iter().cloned());
    if let Some(role) = &directives.role {
        known.push(Arc::new(of_role(role, span)));
    }
    known
}

/// Magic variables of a role that are known before the run.
fn of_role(role: &Role, span: &Span) -> Vars {
    let text = |text: &str| Node::string(text, span);
    let bare = role.name.rsplit('.').next().unwrap_or(&role.name);
    let path = role.path.display().to_string();
    let own = [
        ("role_name", text(bare)),
        ("ansible_role_name", text(&role.name)),
        ("role_path", text(&path)),
    ];
    Vars::from_iter(own.map(|(name, value)| (name.to_owned(), value)))
}

/// The place of an argument of an include.
fn place_of(including: &Task, argument: &str) -> Span {
    let arguments = including.action.arguments();
    let node = arguments.get(argument).or_else(|| arguments.get("role"));
    node.map_or(&including.span, |node| &node.span).clone()
}
