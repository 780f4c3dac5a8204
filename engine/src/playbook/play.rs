use std::sync::Arc;

use fleet_yaml::{Kind, Map, Node};

use super::{
    Connection, Directives, Play, Task, Vars,
    check::is_templated,
    keywords::{self, Place},
    reader::Reader,
};

impl Reader<'_> {
    pub(super) fn play(&mut self, node: &Node, index: usize) -> Option<Play> {
        let map = self.require_map(node, "a play")?;
        for (key, _) in map.iter() {
            self.keyword(Place::Play, key);
        }
        let hosts = self.hosts(node, map);
        let local = |node: &Node| {
            node.as_str()
                .is_some_and(|text| text.ends_with("local") || text == "localhost")
        };
        self.makes_files |= local(&hosts) || map.get("connection").is_some_and(local);
        let mut directives = Directives::default();
        self.directives(map, &mut directives);
        // A play's own variables have a rank of their own (12), below vars files; they are not inherited.
        directives.vars.clear();

        let section = |reader: &mut Self, key: &str| {
            map.get(key).map_or_else(Vec::new, |node| {
                reader.tasks(node, Place::Task, &directives)
            })
        };
        let sections = [
            section(self, "pre_tasks"),
            section(self, "tasks"),
            section(self, "post_tasks"),
        ];
        let handlers = map.get("handlers").map_or_else(Vec::new, |node| {
            self.tasks(node, Place::Handler, &directives)
        });
        let play = Play {
            span: node.span.clone(),
            index,
            name: self.text(map, "name").unwrap_or_else(|| hosts.clone()),
            hosts,
            gather_facts: self.flag(map, "gather_facts"),
            gather_subset: map.get("gather_subset").map(|node| self.value(node)),
            vars: map
                .get("vars")
                .map_or_else(Arc::default, |node| self.vars(node)),
            vars_files: map
                .get("vars_files")
                .map_or_else(Vec::new, |node| self.vars_files(node)),
            connection: Connection {
                kind: self.connection_kind(map),
                port: self.number(map, "port", 1, 65_535),
                user: self.text(map, "remote_user"),
            },
            bench: map.get("bench").cloned(),
            directives,
            sections,
            handlers,
        };
        self.notified_names(&play);
        Some(play)
    }

    /// `hosts:`; where there is none, one that stands for it, so that the rest of the play is looked at, too.
    fn hosts(&mut self, play: &Node, map: &Map) -> Node {
        const HELP: &str = "name a group, a host or a pattern; `all` for every host";
        let Some(hosts) = map.get("hosts") else {
            self.problem(&play.span, "this play has no `hosts:`").help = Some(HELP.to_owned());
            return Node::string("all", &play.span);
        };
        let patterns = hosts.as_seq().unwrap_or(std::slice::from_ref(hosts));
        let wrong = patterns
            .iter()
            .find(|pattern| !pattern.is_scalar() || pattern.is_null());
        let wrong = wrong.or(patterns.is_empty().then_some(hosts));
        match wrong {
            Some(_) if patterns.is_empty() => {
                self.problem(&hosts.span, "`hosts` is empty").help = Some(HELP.to_owned());
            }
            Some(pattern) => {
                let found = pattern.kind_name();
                self.problem(
                    &pattern.span,
                    format!("`hosts` takes a host pattern, not {found}"),
                )
                .help = Some(HELP.to_owned());
            }
            None => return self.value(hosts),
        }
        Node::string("all", &hosts.span)
    }

    /// `vars_files:`, each a path or a list of which the first that exists is taken.
    fn vars_files(&mut self, node: &Node) -> Vec<Node> {
        let files = node
            .as_seq()
            .map_or_else(|| vec![node.clone()], <[Node]>::to_vec);
        for file in &files {
            self.problems.extend(self.check.value(file));
            match &file.kind {
                Kind::Str(_) => {
                    self.named_file(file, "vars");
                }
                Kind::Seq(_) => {}
                _ => self.wrong_kind(file, "a file of variables"),
            }
        }
        files
    }

    fn keyword(&mut self, place: Place, key: &Node) {
        match key.as_str() {
            Some(name) if keywords::is_supported(place, name) => {}
            Some(name) => {
                let refusal = keywords::refusal(place, name, &super::task::module_names());
                self.problem(&key.span, refusal.message).help = refusal.help;
            }
            None => self.wrong_kind(key, "a keyword"),
        }
    }

    /// Reads the inherited keywords of `map` into `directives`, which hold those of what is around it.
    pub(super) fn directives(&mut self, map: &Map, directives: &mut Directives) {
        let replace = |found: Option<Node>, slot: &mut Option<Node>| {
            if found.is_some() {
                *slot = found;
            }
        };
        replace(self.flag(map, "become"), &mut directives.r#become);
        replace(self.text(map, "become_user"), &mut directives.become_user);
        replace(self.flag(map, "check_mode"), &mut directives.check_mode);
        replace(self.flag(map, "diff"), &mut directives.diff);
        replace(
            self.flag(map, "ignore_errors"),
            &mut directives.ignore_errors,
        );
        replace(self.flag(map, "no_log"), &mut directives.no_log);
        replace(
            self.number(map, "timeout", 0, i64::MAX),
            &mut directives.timeout,
        );
        directives.environment.extend(self.environment(map));
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
            match item
                .as_map()
                .and_then(|map| map.get("block").map(|block| (map, block)))
            {
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
            directives.notify.extend(self.list(node));
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
                let may_be_named_later = play.handlers.iter().any(|h| is_templated(h.title()));
                if is_templated(name)
                    || may_be_named_later
                    || play.handlers.iter().any(|handler| handler.answers_to(name))
                {
                    continue;
                }
                let names = play.handlers.iter().flat_map(|handler| {
                    handler
                        .listen
                        .iter()
                        .map(String::as_str)
                        .chain([handler.title()])
                });
                let near = fleet_yaml::nearest(name, names).map(str::to_owned);
                let help = match near {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "write one with that name, or that listens to it, below `handlers:`"
                        .to_owned(),
                };
                self.problem(
                    &node.span,
                    format!("no handler of this play answers to `{name}`"),
                )
                .help = Some(help);
            }
        }
    }
}

/// An empty map of variables, shared.
pub(super) fn no_vars() -> Arc<Vars> {
    Arc::default()
}
