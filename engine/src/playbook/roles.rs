//! Roles as a play uses them: the roles that they depend on, their variables, their tasks and handlers.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    sync::Arc,
};

use fleet_yaml::{Map, Node, Span};

use super::{
    Block, Directives, OwnVars, Role, RoleCall, Step, Task, Vars,
    keywords::Place,
    reader::Reader,
    role_files::{From, RoleFiles},
    specification::Checked,
};

/// Steps of roles, and their handlers.
pub(super) type Steps = (Vec<Step>, Vec<Arc<Task>>);

/// One use of a role, with those of the roles that it depends on.
struct Use {
    files: RoleFiles,
    /// Where it is used.
    span: Span,
    /// Its keywords there.
    keywords: Option<Map>,
    own: OwnVars,
    instance: u64,
    allow_duplicates: bool,
    validate: bool,
    dependencies: Vec<Use>,
}

/// How a role is asked for.
struct Asked {
    name: String,
    span: Span,
    keywords: Option<Map>,
    given: Arc<Vars>,
    params: Arc<Vars>,
    from: From,
    by_include: bool,
    allow_duplicates: Option<bool>,
    validate: bool,
}

impl Reader<'_> {
    /// `roles:` of a play: steps, the roles themselves, their handlers.
    pub(super) fn role_list(
        &mut self,
        map: &Map,
        inherited: &Directives,
    ) -> (Vec<Step>, Vec<Arc<Role>>, Vec<Arc<Task>>) {
        let (mut steps, mut roles, mut handlers) = (Vec::new(), Vec::new(), Vec::new());
        let Some(node) = map.get("roles").filter(|node| !node.is_null()) else {
            return (steps, roles, handlers);
        };
        let Some(entries) = node.as_seq() else {
            self.wrong_kind(node, "a list of roles");
            return (steps, roles, handlers);
        };
        for entry in entries {
            let Some(asked) = self.entry(entry, &[]) else {
                continue;
            };
            let Some(used) = self.used(asked, &[], None, &mut Vec::new()) else {
                continue;
            };
            let role = self.compile(&used, &[], inherited, &mut steps, &mut handlers);
            roles.push(role);
        }
        (steps, roles, handlers)
    }

    /// An entry of `roles:` or of dependencies: a name, or a mapping of keywords and parameters.
    fn entry(&mut self, entry: &Node, known: &[Arc<Vars>]) -> Option<Asked> {
        let asked = |name, keywords, given, params| Asked {
            name,
            span: entry.span.clone(),
            keywords,
            given,
            params,
            from: From::default(),
            by_include: false,
            allow_duplicates: None,
            validate: true,
        };
        let Some(map) = entry.as_map() else {
            if !entry.is_scalar() || entry.is_null() {
                self.wrong_kind(entry, "a role: a name, or a mapping with `role`");
                return None;
            }
            let name = self.rendered(entry, known)?;
            return Some(asked(name, None, Arc::default(), Arc::default()));
        };
        let Some(name) = ["role", "name", "src"].iter().find_map(|key| map.get(key)) else {
            self.problem(&entry.span, "a role needs its name: `role: NAME`");
            return None;
        };
        let name = self.rendered(name, known)?;
        // A dependency may carry what `ansible-galaxy` needs to fetch it.
        let galaxy = map.get("src").is_some();
        let name = match galaxy && map.get("role").is_none() && map.get("name").is_none() {
            true => {
                let last = name.rsplit('/').next().unwrap_or(&name);
                let last = last.split(',').next().unwrap_or(last);
                last.trim_end_matches(".git").to_owned()
            }
            false => name,
        };
        self.debugger(Place::Role, map);
        let mut params = Vars::new();
        for (key, value) in map.iter() {
            match key.as_str() {
                Some(name) if Place::Role.takes(name) => {}
                Some("src" | "scm" | "version") if galaxy => {}
                _ => {
                    if let Some(name) = self.variable_name(key) {
                        params.insert(name, self.value(value));
                    }
                }
            }
        }
        let given = self.own_vars(map);
        Some(asked(name, Some(map.clone()), given, Arc::new(params)))
    }

    /// What `import_role` or `include_role` calls: steps and handlers.
    pub(super) fn called_role(
        &mut self,
        call: &RoleCall,
        place: &Span,
        directives: &Directives,
        imported: bool,
    ) -> Option<Steps> {
        let chain = directives.role.as_ref().map_or_else(Vec::new, |role| {
            let mut chain = role.chain.clone();
            chain.push(Arc::clone(role));
            chain
        });
        let asked = Asked {
            name: call.name.clone(),
            span: place.clone(),
            keywords: None,
            given: Arc::default(),
            params: Arc::clone(&call.params),
            from: From {
                tasks: call.tasks_from.clone(),
                vars: call.vars_from.clone(),
                defaults: call.defaults_from.clone(),
                handlers: call.handlers_from.clone(),
            },
            by_include: true,
            allow_duplicates: Some(call.allow_duplicates.unwrap_or(true)),
            validate: call.rolespec_validate,
        };
        let collections = directives.collections.clone();
        let beside = directives.role.as_ref().map(|role| role.path.clone());
        let used = self.used(asked, &collections, beside.as_deref(), &mut Vec::new())?;
        let (mut steps, mut handlers) = (Vec::new(), Vec::new());
        let public = call.public;
        let role = self.compile_as(&used, &chain, directives, public, &mut steps, &mut handlers);
        if imported {
            self.play.roles.push(role);
        }
        Some((steps, handlers))
    }

    /// Reads a role and all that it depends on. `within` are the directories of those that depend on it.
    fn used(
        &mut self,
        asked: Asked,
        collections: &[String],
        beside: Option<&Path>,
        within: &mut Vec<PathBuf>,
    ) -> Option<Use> {
        let beside = beside.and_then(Path::parent).map(Path::to_owned);
        let found = self.find_role(&asked.name, &asked.span, collections, beside.as_deref())?;
        if within.contains(&found.1) {
            self.problem(
                &asked.span,
                format!(
                    "A recursion loop was detected with the roles specified: '{}' depends on itself",
                    asked.name
                ),
            )
            .help = Some("a role must not depend on a role that depends on it".to_owned());
            return None;
        }
        self.modules.add_role(&found.1);
        let files = self.role_files(found, &asked.span, &asked.from)?;
        let known = [
            Arc::clone(&files.defaults),
            Arc::clone(&files.vars),
            Arc::clone(&asked.given),
            Arc::clone(&asked.params),
        ];
        within.push(files.path.clone());
        let mut dependencies = Vec::new();
        for entry in &files.dependencies {
            let Some(asked) = self.entry(entry, &known) else {
                continue;
            };
            let path = files.path.clone();
            dependencies.extend(self.used(asked, &files.collections, Some(&path), within));
        }
        within.pop();
        let instance = instance(&asked, &files);
        Some(Use {
            own: OwnVars {
                defaults: Arc::clone(&files.defaults),
                vars: Arc::clone(&files.vars),
                given: asked.given,
                params: asked.params,
            },
            span: asked.span,
            keywords: asked.keywords,
            instance,
            allow_duplicates: asked.allow_duplicates.unwrap_or(files.allow_duplicates),
            validate: asked.validate,
            files,
            dependencies,
        })
    }

    fn compile(
        &mut self,
        used: &Use,
        chain: &[Arc<Role>],
        inherited: &Directives,
        steps: &mut Vec<Step>,
        handlers: &mut Vec<Arc<Task>>,
    ) -> Arc<Role> {
        self.compile_as(used, chain, inherited, None, steps, handlers)
    }

    /// The steps of a role behind those of the roles that it depends on.
    fn compile_as(
        &mut self,
        used: &Use,
        chain: &[Arc<Role>],
        inherited: &Directives,
        public: Option<bool>,
        steps: &mut Vec<Step>,
        handlers: &mut Vec<Arc<Task>>,
    ) -> Arc<Role> {
        let role = Arc::new(role_of(used, chain, public));
        let mut directives = inherited.clone();
        if let Some(keywords) = &used.keywords {
            self.directives(keywords, &mut directives);
        }
        if !used.files.collections.is_empty() {
            directives.collections.clone_from(&used.files.collections);
        }
        let mut deeper = chain.to_vec();
        deeper.push(Arc::clone(&role));
        for dependency in &used.dependencies {
            self.compile_as(dependency, &deeper, &directives, None, steps, handlers);
        }
        directives.role = Some(Arc::clone(&role));
        if !used.own.given.is_empty() {
            directives.vars.push(Arc::clone(&used.own.given));
        }
        let outer = self.here.clone();
        self.here.files = Arc::default();
        self.here.handlers = true;
        if let Some(path) = &used.files.handlers {
            let read = self.role_tasks(path, &directives, &role);
            handlers.extend(read.iter().flat_map(Step::tasks).cloned());
        }
        self.here.handlers = false;
        let mut body: Vec<Step> = Vec::new();
        if let (Some(specification), true) = (&used.files.specification, used.validate) {
            let checked = Checked {
                title: format!("'{}'", used.files.entry),
                name: &used.files.name,
                entry: &used.files.entry,
                path: &used.files.path,
                kind: "role",
                given: &used.own.params,
            };
            let task = self.argument_check(specification, &checked, &directives);
            body.push(Step::Task(Arc::new(task)));
        }
        if let Some(path) = &used.files.tasks {
            body.extend(self.role_tasks(path, &directives, &role));
        }
        self.here = outer;
        steps.push(Step::Block(Arc::new(Block {
            span: used.span.clone(),
            body,
            rescue: Vec::new(),
            always: Vec::new(),
            role: Some(Arc::clone(&role)),
        })));
        role
    }

    fn role_tasks(&mut self, path: &Path, directives: &Directives, role: &Role) -> Vec<Step> {
        let outer = std::mem::take(&mut self.here);
        self.here = self.within(path, Some(role));
        self.here.handlers = outer.handlers;
        let steps = self.task_file(path, |reader, content| {
            if !content.is_null() && content.as_seq().is_none() {
                let shown = path.strip_prefix(&role.path).unwrap_or(path).display();
                let message = format!(
                    "the {shown} file for role '{}' must contain a list of tasks",
                    role.name
                );
                reader.problem(&content.span, message);
                return Vec::new();
            }
            reader.steps(content, directives)
        });
        self.here = outer;
        steps.unwrap_or_default()
    }
}

/// The same for two uses that Ansible takes for one.
fn instance(asked: &Asked, files: &RoleFiles) -> u64 {
    let mut hasher = DefaultHasher::new();
    let values = |vars: &Vars| {
        let mut values: Vec<String> = vars
            .iter()
            .map(|(name, value)| format!("{name}={}", value.to_json()))
            .collect();
        values.sort();
        values
    };
    let keyword = |key: &str| {
        let node = asked.keywords.as_ref().and_then(|map| map.get(key));
        node.map(|node| {
            let items = node.as_seq().unwrap_or(std::slice::from_ref(node));
            items
                .iter()
                .map(|item| item.to_json().to_string())
                .collect::<Vec<_>>()
        })
    };
    files.name.hash(&mut hasher);
    files.path.hash(&mut hasher);
    values(&asked.params).hash(&mut hasher);
    values(&asked.given).hash(&mut hasher);
    keyword("when").hash(&mut hasher);
    keyword("tags").hash(&mut hasher);
    asked.from.hash(&mut hasher);
    asked.by_include.hash(&mut hasher);
    hasher.finish()
}

/// The role with the variables of those around it, as its tasks see them.
fn role_of(used: &Use, chain: &[Arc<Role>], public: Option<bool>) -> Role {
    let mut below = Vec::new();
    all_below(used, &mut below);
    let of_chain = |own: fn(&OwnVars) -> &Arc<Vars>| {
        chain
            .iter()
            .map(move |role| Arc::clone(own(&role.own)))
            .collect::<Vec<_>>()
    };
    let of_below = |own: fn(&OwnVars) -> &Arc<Vars>| {
        below
            .iter()
            .map(move |used| Arc::clone(own(&used.own)))
            .collect::<Vec<_>>()
    };
    let set = |lists: Vec<Vec<Arc<Vars>>>| {
        let all = lists.into_iter().flatten();
        all.filter(|vars| !vars.is_empty()).collect::<Vec<_>>()
    };
    let around = chain
        .iter()
        .flat_map(|role| [Arc::clone(&role.own.vars), Arc::clone(&role.own.given)])
        .collect();
    Role {
        name: used.files.name.clone(),
        path: used.files.path.clone(),
        defaults: set(vec![
            of_below(|own| &own.defaults),
            of_chain(|own| &own.defaults),
            vec![Arc::clone(&used.own.defaults)],
        ]),
        vars: set(vec![
            around,
            of_below(|own| &own.vars),
            vec![Arc::clone(&used.own.vars)],
        ]),
        params: set(vec![
            of_chain(|own| &own.params),
            vec![Arc::clone(&used.own.params)],
        ]),
        own: used.own.clone(),
        instance: used.instance,
        allow_duplicates: used.allow_duplicates,
        parents: chain
            .iter()
            .map(|role| (role.name.clone(), role.path.clone()))
            .collect(),
        chain: chain.to_vec(),
        collections: used.files.collections.clone(),
        dependencies: below.iter().map(|used| used.files.name.clone()).collect(),
        public,
    }
}

/// All uses that this one depends on, those deeper down first.
fn all_below<'a>(used: &'a Use, below: &mut Vec<&'a Use>) {
    for dependency in &used.dependencies {
        all_below(dependency, below);
        below.push(dependency);
    }
}
