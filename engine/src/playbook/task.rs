//! A task: its keywords, and what becomes of it: one step, or the steps of what it imports.

use std::sync::Arc;

use fleet_yaml::{Kind, Map, Node, Span};
use indexmap::IndexMap;

use super::{
    Action, Directives, Include, Step, Task, Vars,
    call::{Call, Target},
    check::is_templated,
    keywords::Place,
    play::dir_of,
    reader::Reader,
};

impl Task {
    /// A task that does nothing yet.
    pub(super) fn bare(directives: Directives, span: &Span) -> Self {
        let dir = dir_of(&span.source.name);
        Self {
            id: 0,
            span: span.clone(),
            name: None,
            action: Action::Templated {
                name: Node::string("", span),
                arguments: IndexMap::new(),
                span: span.clone(),
            },
            args: None,
            directives,
            vars: Arc::default(),
            r#loop: None,
            register: None,
            projections: Arc::default(),
            changed_when: Vec::new(),
            failed_when: Vec::new(),
            until: Vec::new(),
            retries: None,
            delay: None,
            r#async: None,
            poll: None,
            notify: Vec::new(),
            listen: Vec::new(),
            search: [dir.clone()].into(),
            files: [dir].into(),
        }
    }
}

impl Reader<'_> {
    /// The steps that an item of a list of tasks comes to.
    pub(super) fn task(&mut self, node: &Node, inherited: &Directives) -> Vec<Step> {
        let place = match self.here.handlers {
            true => Place::Handler,
            false => Place::Task,
        };
        let Some(map) = self.require_map(node, place.noun()) else {
            return Vec::new();
        };
        let Some(call) = self.call(node, map, &inherited.collections) else {
            // What else is wrong with it is told, too.
            self.directives(map, &mut inherited.clone());
            self.r#loop(map);
            return Vec::new();
        };
        self.debugger(place, map);
        match call.target {
            Target::Import(Include::Tasks) => self.import_tasks(map, &call, inherited),
            Target::Import(Include::Role) => self.import_role(map, &call, inherited),
            Target::Include(include) => self
                .include(map, &call, include, inherited)
                .into_iter()
                .collect(),
            _ => {
                let task = self.one_task(map, &call, inherited);
                task.map(|task| Step::Task(Arc::new(task)))
                    .into_iter()
                    .collect()
            }
        }
    }

    /// `meta: end_role` ends a role, and so stands in one, and not among its handlers.
    fn end_role(&mut self, call: &Call, in_role: bool) {
        let asked = call
            .arguments
            .values()
            .any(|node| node.as_str() == Some("end_role"));
        if !asked || call.short() != "meta" {
            return;
        }
        if self.here.handlers {
            self.problem(&call.key.span, "Cannot execute 'end_role' from a handler");
        } else if !in_role {
            self.problem(
                &call.key.span,
                "Cannot execute 'end_role' from outside of a role",
            );
        }
    }

    fn one_task(&mut self, map: &Map, call: &Call, inherited: &Directives) -> Option<Task> {
        let mut directives = inherited.clone();
        self.directives(map, &mut directives);
        if call.local {
            directives.delegate_to = Some(Node::string("localhost", &call.key.span));
        }
        let notify = self.names(map, "notify");
        // Its own are in place of the block's.
        if map.get("notify").is_some() {
            directives.notify.clear();
        }
        self.end_role(call, directives.role.is_some());
        let conditional = self.conditional;
        self.conditional |= !directives.when.is_empty();
        let action = self.action(call, inherited, &directives);
        self.conditional = conditional;
        let conditions = |reader: &mut Self, key: &str| {
            map.get(key)
                .map_or_else(Vec::new, |node| reader.conditions(node))
        };
        let asynchronous = match map.get("async_val") {
            Some(_) => "async_val",
            None => "async",
        };
        let task = Task {
            id: self.next_id,
            span: call.task.clone(),
            name: self.text(map, "name"),
            args: call.template.clone(),
            vars: self.own_vars(map),
            r#loop: self.r#loop(map),
            register: map.get("register").and_then(|node| self.register(node)),
            projections: map
                .get("register")
                .map_or_else(Arc::default, |node| self.projections(node)),
            changed_when: conditions(self, "changed_when"),
            failed_when: conditions(self, "failed_when"),
            until: conditions(self, "until"),
            retries: self.number(map, "retries", 0, i64::MAX),
            delay: self.seconds(map, "delay"),
            r#async: self.number(map, asynchronous, 0, i64::MAX),
            poll: self.number(map, "poll", 0, i64::MAX),
            notify,
            listen: self.names(map, "listen"),
            search: Arc::clone(&self.here.search),
            files: Arc::clone(&self.here.files),
            directives,
            action: action?,
        };
        self.next_id += 1;
        Some(task)
    }

    fn register(&mut self, node: &Node) -> Option<String> {
        match &node.kind {
            Kind::Str(name) if is_templated(name) => {
                self.problem(
                    &node.span,
                    "`register` takes a variable's name, and no template",
                );
                None
            }
            Kind::Null | Kind::Map(_) => None,
            _ => self.variable_name(node),
        }
    }

    /// `register:` as a mapping of expressions.
    fn projections(&mut self, node: &Node) -> Arc<Vars> {
        let mut projections = Vars::new();
        for (key, value) in node.as_map().into_iter().flat_map(Map::iter) {
            if let Some(text) = value.as_str() {
                self.look_at_expression(text, &value.span);
            }
            if let Some(name) = self.variable_name(key) {
                projections.insert(name, value.clone());
            }
        }
        Arc::new(projections)
    }

    /// `include_tasks` and `include_role`.
    fn include(
        &mut self,
        map: &Map,
        call: &Call,
        include: Include,
        inherited: &Directives,
    ) -> Option<Step> {
        const ROLE: [&str; 11] = [
            "allow_duplicates",
            "apply",
            "defaults_from",
            "handlers_from",
            "name",
            "public",
            "rescuable",
            "role",
            "rolespec_validate",
            "tasks_from",
            "vars_from",
        ];
        for (key, _) in map.iter() {
            let name = key.as_str().unwrap_or_default();
            let other = key.span != call.key.span && !Place::Include.takes(name);
            // A handler that is an include answers to a name, too.
            if other && !(self.here.handlers && name == "listen") {
                let class = match include {
                    Include::Tasks => "TaskInclude",
                    Include::Role => "IncludeRole",
                };
                self.problem(
                    &key.span,
                    format!("'{name}' is not a valid attribute for a {class}"),
                )
                .help = Some(format!(
                    "what is included takes it: write it below `apply:`, or on a block around `{}`",
                    call.name
                ));
            }
        }
        let (name, known): (_, &[&str]) = match include {
            Include::Tasks => ("include_tasks", &["apply", "file"]),
            Include::Role => ("include_role", &ROLE),
        };
        if !self.only_known(call, name, known) {
            return None;
        }
        if include == Include::Role {
            if self.here.handlers {
                self.problem(
                    &call.key.span,
                    "Using 'include_role' as a handler is not supported.",
                );
                return None;
            }
            let name = call.arguments.get("name").or(call.arguments.get("role"));
            if name.is_none() && call.template.is_none() {
                self.problem(
                    &call.key.span,
                    "'name' is a required field for include_role.",
                );
                return None;
            }
            for key in ["tasks_from", "vars_from", "defaults_from", "handlers_from"] {
                if let Some(node) = call.arguments.get(key)
                    && node.as_str().is_none()
                {
                    let found = node.kind_name();
                    self.problem(
                        &node.span,
                        format!("Expected a string for {key} but got {found} instead"),
                    );
                }
            }
        } else if call.template.is_none() {
            self.required_file(call, name)?;
        }
        if let Some(apply) = call.arguments.get("apply").filter(|apply| !is_text(apply)) {
            self.applied(apply, &mut Directives::default());
        }
        let task = self.one_task(map, call, inherited)?;
        let task = Arc::new(task);
        self.includes.push((Arc::clone(&task), self.here.handlers));
        Some(Step::Task(task))
    }

    /// A keyword that takes a number of seconds.
    fn seconds(&mut self, map: &Map, key: &str) -> Option<Node> {
        self.keyword_value(map, key, "a number of seconds", |node| {
            let text = node.scalar_text().unwrap_or_default();
            text.trim().parse::<f64>().is_ok_and(|number| number >= 0.0)
        })
    }
}

fn is_text(node: &Node) -> bool {
    node.as_str().is_some()
}
