//! A play: its keywords, its sections, its blocks.

use std::{path::Path, sync::Arc};

use fleet_yaml::{Kind, Map, Node};

use super::{
    Block, Directives, Play, Prompt, Step, Task,
    check::is_templated,
    files,
    keywords::Place,
    reader::{Here, PlayWide, Reader},
};

const ORDERS: [&str; 5] = [
    "inventory",
    "reverse_inventory",
    "reverse_sorted",
    "shuffle",
    "sorted",
];

impl Reader<'_> {
    /// A play, or the plays that are imported in its place.
    pub(super) fn play_or_import(&mut self, item: &Node, plays: &mut Vec<Arc<Play>>) {
        let Some(map) = self.require_map(item, "a play") else {
            return;
        };
        if let Some((key, name)) = super::imports::imported_playbook(map) {
            self.import_playbook(map, key, name, plays);
        } else {
            let play = self.play(item, map, plays.len());
            plays.push(Arc::new(play));
        }
    }

    fn play(&mut self, node: &Node, map: &Map, index: usize) -> Play {
        self.keywords(Place::Play, map, |_| false);
        let hosts = self.hosts(node, map);
        let local = |node: &Node| {
            node.as_str()
                .is_some_and(|text| text.ends_with("local") || text == "localhost")
        };
        self.makes_files |= local(&hosts) || map.get("connection").is_some_and(local);
        let mut directives = Directives::default();
        for (around, _) in &self.imports {
            directives.tags.extend(around.tags.iter().cloned());
            directives.when.extend(around.when.iter().cloned());
        }
        self.directives(map, &mut directives);
        let vars = self.own_vars(map);
        let imported: Vec<_> = self
            .imports
            .iter()
            .rev()
            .map(|(_, vars)| Arc::clone(vars))
            .collect();
        let vars_files = map
            .get("vars_files")
            .map_or_else(Vec::new, |node| self.vars_files(node));
        self.play = PlayWide::default();
        self.modules = self.shelf.modules(&self.dir);
        self.play.vars.push(Arc::clone(&vars));
        self.play.vars.extend(imported.iter().cloned());
        self.here = Here {
            files: [self.dir.clone()].into(),
            search: [self.dir.clone()].into(),
            handlers: false,
        };

        let section = |reader: &mut Self, key: &str, directives: &Directives| {
            map.get(key)
                .map_or_else(Vec::new, |node| reader.steps(node, directives))
        };
        // Behind gathering facts, before all that the play does.
        let mut before: Vec<Step> = self.play_check(map, &directives).into_iter().collect();
        before.extend(section(self, "pre_tasks", &directives));
        let (mut middle, mut roles, role_handlers) = self.role_list(map, &directives);
        middle.extend(section(self, "tasks", &directives));
        let sections = [before, middle, section(self, "post_tasks", &directives)];
        // The condition of an `import_playbook` is not handed on to handlers: who notified them ran.
        let mut for_handlers = directives.clone();
        for_handlers.when.clear();
        self.here.handlers = true;
        let own_handlers = section(self, "handlers", &for_handlers);
        self.here.handlers = false;
        roles.append(&mut self.play.roles);
        let handlers = in_order_of_running(role_handlers, own_handlers, &mut self.play.handlers);

        let play = Play {
            span: node.span.clone(),
            index,
            name: self.text(map, "name").unwrap_or_else(|| hosts.clone()),
            hosts,
            dir: self.dir.clone(),
            gather_facts: self.flag(map, "gather_facts"),
            gather_subset: map.get("gather_subset").map(|node| self.value(node)),
            gather_timeout: self.number(map, "gather_timeout", 0, i64::MAX),
            fact_path: self.text(map, "fact_path"),
            vars,
            vars_files,
            prompts: self.prompts(map),
            roles,
            serial: self.serial(map),
            max_fail_percentage: self.percentage(map, "max_fail_percentage"),
            strategy: self.strategy(map),
            order: self.keyword_value(map, "order", "one of Ansible's five orders", |node| {
                node.as_str().is_some_and(|order| ORDERS.contains(&order))
            }),
            force_handlers: self.flag(map, "force_handlers"),
            bench: map.get("bench").cloned(),
            connection: directives.connection.clone(),
            imported,
            directives,
            sections,
            handlers,
        };
        self.after_play(&play);
        play
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
        let files = match node.is_null() {
            true => Vec::new(),
            false => node
                .as_seq()
                .map_or_else(|| vec![node.clone()], <[Node]>::to_vec),
        };
        for file in &files {
            self.look(file);
            match &file.kind {
                Kind::Str(_) => self.file_of_variables(file),
                // The first that exists is taken; the others may be encrypted for others.
                Kind::Seq(choices) => {
                    if let Some(choice) = choices.iter().find(|choice| self.may_be_there(choice))
                        && choice.as_str().is_some_and(|name| !is_templated(name))
                    {
                        self.file_of_variables(choice);
                    }
                }
                _ => {
                    self.wrong_kind(file, "a file of variables");
                }
            }
        }
        files
    }

    /// Whether a file of variables is there, or has a name that cannot be told yet.
    fn may_be_there(&self, name: &Node) -> bool {
        let mut search = self.here.search.to_vec();
        search.extend(files::search(&self.dir));
        name.as_str()
            .is_none_or(|name| is_templated(name) || files::find(name, "vars", &search).is_ok())
    }

    /// `vars_prompt:`
    fn prompts(&mut self, map: &Map) -> Vec<Prompt> {
        let Some(node) = map.get("vars_prompt").filter(|node| !node.is_null()) else {
            return Vec::new();
        };
        let items = node.as_seq().unwrap_or(std::slice::from_ref(node));
        let prompts: Vec<_> = items.iter().filter_map(|item| self.prompt(item)).collect();
        prompts
    }

    fn prompt(&mut self, item: &Node) -> Option<Prompt> {
        const KNOWN: [&str; 9] = [
            "confirm",
            "default",
            "encrypt",
            "name",
            "private",
            "prompt",
            "salt",
            "salt_size",
            "unsafe",
        ];
        let map = self.require_map(item, "a question: a mapping with a `name`")?;
        for (key, _) in map.iter() {
            let name = key.key_text();
            if !KNOWN.contains(&name.as_str()) {
                let help = match fleet_yaml::nearest(&name, KNOWN) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("it takes `{}`", KNOWN.join("`, `")),
                };
                self.problem(&key.span, format!("`{name}` in `vars_prompt`"))
                    .help = Some(help);
            }
        }
        let Some(name) = map.get("name") else {
            self.problem(&item.span, "a question of `vars_prompt` needs a `name`")
                .help = Some("the variable that the answer goes to".to_owned());
            return None;
        };
        Some(Prompt {
            name: self.variable_name(name)?,
            text: self.text(map, "prompt"),
            default: map.get("default").map(|node| self.value(node)),
            private: self.flag(map, "private"),
            confirm: self.flag(map, "confirm"),
            encrypt: self.text(map, "encrypt"),
            salt: self.text(map, "salt"),
            salt_size: self.number(map, "salt_size", 1, 1024),
            r#unsafe: self.flag(map, "unsafe"),
        })
    }

    /// `serial:`: a number, a percentage, or a list of them.
    fn serial(&mut self, map: &Map) -> Option<Node> {
        let one = |node: &Node| {
            let number = node.as_i64().is_some_and(|number| number >= 0);
            let text = node.as_str().map(str::trim);
            number
                || text.is_some_and(|text| {
                    let digits = text.strip_suffix('%').unwrap_or(text);
                    super::check::is_templated(text) || digits.parse::<u32>().is_ok()
                })
        };
        let fits = |node: &Node| match node.as_seq() {
            Some(items) => !items.is_empty() && items.iter().all(one),
            None => one(node),
        };
        self.keyword_value(
            map,
            "serial",
            "a number of hosts, a percentage, or a list of them",
            fits,
        )
    }

    fn percentage(&mut self, map: &Map, key: &str) -> Option<Node> {
        self.keyword_value(map, key, "a percentage", |node| {
            let text = node.scalar_text().unwrap_or_default();
            let digits = text.trim().trim_end_matches('%');
            digits
                .parse::<f64>()
                .is_ok_and(|number| (0.0..=100.0).contains(&number))
        })
    }

    fn strategy(&mut self, map: &Map) -> Option<Node> {
        let short = |text: &str| text.rsplit('.').next().unwrap_or(text).to_owned();
        let (_, node) = map.entry("strategy")?;
        if node.as_str().is_some_and(|text| short(text) == "debug") {
            self.problem(&node.span, "`strategy: debug` is not supported")
                .help = Some("take it out; `fleetctl plan` shows what a task would do".to_owned());
            return None;
        }
        self.keyword_value(
            map,
            "strategy",
            "`linear`, `free` or `host_pinned`",
            |node| {
                let name = node.as_str().map(short).unwrap_or_default();
                matches!(name.as_str(), "linear" | "free" | "host_pinned")
            },
        )
    }

    /// The steps of a list of tasks and blocks.
    pub(super) fn steps(&mut self, node: &Node, inherited: &Directives) -> Vec<Step> {
        if node.is_null() {
            return Vec::new();
        }
        let Some(list) = node.as_seq() else {
            self.wrong_kind(node, "a list of tasks");
            return Vec::new();
        };
        let is_block = |map: &Map| {
            ["block", "rescue", "always"]
                .iter()
                .any(|key| map.get(key).is_some())
        };
        let mut steps = Vec::new();
        for item in list {
            match item.as_map() {
                Some(map) if is_block(map) => {
                    steps.push(Step::Block(Arc::new(self.block(item, map, inherited))));
                }
                _ => steps.extend(self.task(item, inherited)),
            }
        }
        steps
    }

    fn block(&mut self, item: &Node, map: &Map, inherited: &Directives) -> Block {
        self.keywords(Place::Block, map, |_| false);
        if map.get("block").is_none() {
            let key = ["rescue", "always"]
                .iter()
                .find_map(|key| map.entry(key))
                .map_or(&item.span, |(key, _)| &key.span);
            self.problem(key, format!("`{}` without a `block`", key.text()))
                .help = Some("it says what happens after the tasks of a block".to_owned());
        }
        let mut directives = inherited.clone();
        self.block_keywords(map, &mut directives);
        let part = |reader: &mut Self, key: &str| {
            map.get(key)
                .map_or_else(Vec::new, |node| reader.steps(node, &directives))
        };
        Block {
            span: item.span.clone(),
            body: part(self, "block"),
            rescue: part(self, "rescue"),
            always: part(self, "always"),
            role: None,
        }
    }

    /// What the tasks of a block inherit from it.
    pub(super) fn block_keywords(&mut self, map: &Map, directives: &mut Directives) {
        self.directives(map, directives);
        let vars = self.own_vars(map);
        if !vars.is_empty() {
            directives.vars.push(vars);
        }
        if map.get("notify").is_some() {
            directives.notify = self.names(map, "notify");
        }
    }
}

/// Handlers as Ansible has them: those of `roles:`, the play's own, those of `import_role`. Of two that are the same the
/// last is the one that is found by its name.
fn in_order_of_running(
    of_roles: Vec<Arc<Task>>,
    own: Vec<Step>,
    imported: &mut Vec<Arc<Task>>,
) -> Vec<Arc<Task>> {
    let own = own.iter().flat_map(Step::tasks).cloned();
    let all: Vec<_> = of_roles
        .into_iter()
        .chain(own)
        .chain(imported.drain(..))
        .collect();
    let key = |task: &Task| {
        let role = task.directives.role.as_ref().map(|role| role.instance);
        (role, task.span.source.name.clone(), task.span.start)
    };
    let mut later = std::collections::HashSet::new();
    let mut kept: Vec<_> = all
        .into_iter()
        .rev()
        .filter(|task| task.directives.role.is_none() || later.insert(key(task)))
        .collect();
    kept.reverse();
    kept
}

/// The directory of a file.
pub(super) fn dir_of(path: &Path) -> std::path::PathBuf {
    path.parent().map(Path::to_owned).unwrap_or_default()
}
