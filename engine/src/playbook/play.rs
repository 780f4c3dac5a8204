use std::sync::Arc;

use fleet_yaml::{Map, Node};

use super::{
    Connection, Directives, Play, Task, Vars,
    keywords::{self, Place},
    reader::Reader,
};

impl Reader<'_> {
    pub(super) fn play(&mut self, node: &Node, index: usize) -> Option<Play> {
        let map = self.require_map(node, "a play")?;
        for (key, _) in map.iter() {
            self.keyword(Place::Play, key);
        }
        let Some(hosts) = map.get("hosts") else {
            self.problem(&node.span, "this play has no `hosts:`").help =
                Some("name a group, a host or a pattern; `all` for every host".to_owned());
            return None;
        };
        let mut directives = Directives::default();
        self.directives(map, &mut directives);
        // A play's own variables have a rank of their own (12), below vars files; they are not inherited.
        directives.vars.clear();

        let section = |reader: &mut Self, key: &str| {
            map.get(key).map_or_else(Vec::new, |node| reader.tasks(node, Place::Task, &directives))
        };
        let sections = [
            section(self, "pre_tasks"),
            section(self, "tasks"),
            section(self, "post_tasks"),
        ];
        let handlers = map
            .get("handlers")
            .map_or_else(Vec::new, |node| self.tasks(node, Place::Handler, &directives));
        let play = Play {
            span: node.span.clone(),
            index,
            name: map.get("name").unwrap_or(hosts).clone(),
            hosts: self.value(hosts),
            gather_facts: map.get("gather_facts").cloned(),
            gather_subset: map.get("gather_subset").cloned(),
            vars: map.get("vars").map_or_else(Arc::default, |node| self.vars(node)),
            vars_files: map.get("vars_files").map_or_else(Vec::new, |node| self.conditions(node)),
            connection: Connection {
                kind: map.get("connection").cloned(),
                port: map.get("port").cloned(),
                user: map.get("remote_user").cloned(),
            },
            bench: map.get("bench").cloned(),
            directives,
            sections,
            handlers,
        };
        self.notified_names(&play);
        Some(play)
    }

    fn keyword(&mut self, place: Place, key: &Node) {
        match key.as_str() {
            Some(name) if keywords::is_supported(place, name) => {}
            Some(name) => {
                let refusal = keywords::refusal(place, name, &[]);
                self.problem(&key.span, refusal.message).help = refusal.help;
            }
            None => self.wrong_kind(key, "a keyword"),
        }
    }

    /// Reads the inherited keywords of `map` into `directives`, which hold those of what is around it.
    pub(super) fn directives(&mut self, map: &Map, directives: &mut Directives) {
        let replace = |key: &str, slot: &mut Option<Node>| {
            if let Some(node) = map.get(key) {
                *slot = Some(node.clone());
            }
        };
        replace("become", &mut directives.r#become);
        replace("become_user", &mut directives.become_user);
        replace("check_mode", &mut directives.check_mode);
        replace("diff", &mut directives.diff);
        replace("ignore_errors", &mut directives.ignore_errors);
        replace("no_log", &mut directives.no_log);
        replace("timeout", &mut directives.timeout);
        if let Some(node) = map.get("environment") {
            directives.environment.push(self.value(node));
        }
        if let Some(node) = map.get("tags") {
            directives.tags.extend(self.strings(node, true));
        }
        if let Some(node) = map.get("when") {
            directives.when.extend(self.conditions(node));
        }
    }

    /// The tasks of a list, those of blocks among them, each with what it inherits.
    pub(super) fn tasks(
        &mut self,
        node: &Node,
        place: Place,
        inherited: &Directives,
    ) -> Vec<Arc<Task>> {
        if node.is_null() {
            return Vec::new();
        }
        let Some(list) = node.as_seq() else {
            self.wrong_kind(node, "a list of tasks");
            return Vec::new();
        };
        let mut tasks = Vec::new();
        for item in list {
            match item.as_map().and_then(|map| map.get("block").map(|block| (map, block))) {
                Some((map, block)) => tasks.extend(self.block(map, block, place, inherited)),
                None => tasks.extend(self.task(item, place, inherited).map(Arc::new)),
            }
        }
        tasks
    }

    fn block(
        &mut self,
        map: &Map,
        block: &Node,
        place: Place,
        inherited: &Directives,
    ) -> Vec<Arc<Task>> {
        for (key, _) in map.iter() {
            self.keyword(Place::Block, key);
        }
        let mut directives = inherited.clone();
        self.directives(map, &mut directives);
        if let Some(node) = map.get("vars") {
            directives.vars.push(self.vars(node));
        }
        if let Some(node) = map.get("notify") {
            directives.notify.extend(self.conditions(node));
        }
        self.tasks(block, place, &directives)
    }

    /// A notified name without a template must be some handler's.
    fn notified_names(&mut self, play: &Play) {
        for task in play.all_tasks() {
            for node in task.notify.iter().chain(&task.directives.notify) {
                let Some(name) = node.as_str() else {
                    self.wrong_kind(node, "a handler's name");
                    continue;
                };
                let templated = |text: &str| text.contains("{{") || text.contains("{%");
                let may_be_named_later = play.handlers.iter().any(|h| templated(h.title()));
                if templated(name)
                    || may_be_named_later
                    || play.handlers.iter().any(|handler| handler.answers_to(name))
                {
                    continue;
                }
                let names = play.handlers.iter().flat_map(|handler| {
                    handler.listen.iter().map(String::as_str).chain([handler.title()])
                });
                let near = fleet_yaml::nearest(name, names).map(str::to_owned);
                self.problem(&node.span, format!("no handler of this play answers to `{name}`"))
                    .help = near.map(|near| format!("did you mean `{near}`?"));
            }
        }
    }
}

/// An empty map of variables, shared.
pub(super) fn no_vars() -> Arc<Vars> {
    Arc::default()
}
