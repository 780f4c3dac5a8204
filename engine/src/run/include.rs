//! Dynamic includes: files of tasks and roles that are read when a host gets there.

use std::{
    hash::{Hash, Hasher},
    sync::Arc,
};

use fleet_wire::Status;
use fleet_yaml::{Diagnostic, Node};
use serde_json::json;

use super::{
    dispatch::{PlayContext, Unfit},
    host::{Host, Stop},
    scope::HostScope,
};
use crate::{
    event::{Event, TaskInfo},
    playbook::{Action, Around, Block, Include, IncludedRole, Role, RoleCall, Step, Task},
};

/// What was included for one item.
enum Included {
    Tasks(Vec<Step>),
    Role(Arc<Block>),
}

/// The deepest nesting of includes; deeper ones include themselves.
const DEPTH: usize = 512;

impl Host {
    /// Includes what a task names, once for each item, and goes through it.
    pub(super) async fn include(
        &mut self,
        play: &PlayContext,
        task: &Arc<Task>,
    ) -> Result<(), Stop> {
        let scope = self.scope_of(play, task);
        let info = self.info(task, &scope);
        let items = match self.items_of(task, &scope).await {
            Ok(items) => items,
            Err(unfit) => return self.unfit(task, &scope, &info, unfit).await,
        };
        let Some(items) = items.filter(|items| !items.is_empty()) else {
            let result = json!({"changed": false, "skipped": true, "skip_reason": "Conditional result was False"});
            return self.skipped(task, &scope, &info, result).await;
        };
        let (mut ready, mut failed) = (Vec::new(), false);
        let mut results = Vec::new();
        for (index, (value, scope)) in items.into_iter().enumerate() {
            let item = value.map(|(_, label)| label);
            match self.read_in(play, task, &info, &scope, index, item).await {
                Ok(Ok(included)) => {
                    results.push(json!({"changed": false, "failed": false, "include": true}));
                    ready.push((index, scope, included));
                }
                Ok(Err(skipped)) => results.push(skipped),
                Err(unfit) => {
                    self.unfit(task, &scope, &info, unfit).await?;
                    failed = true;
                }
            }
        }
        if let (Some(name), false) = (&task.register, failed) {
            let result = match task.r#loop.is_some() {
                true => json!({
                    "changed": false, "failed": false, "skipped": ready.is_empty(), "results": results,
                }),
                false => results.pop().unwrap_or_default(),
            };
            let value = super::content::from_json(&result);
            scope
                .state
                .set(name, crate::variables::Variable::Data(value));
        }
        for (index, scope, included) in ready {
            // The item and its like are seen by what is included.
            let inner = PlayContext {
                scope: HostScope {
                    local: scope.local.clone(),
                    ..play.scope.clone()
                },
                ..play.clone()
            };
            self.place.push(u32::try_from(index).unwrap_or(u32::MAX));
            let gone = match &included {
                Included::Tasks(steps) => self.steps(&inner, steps).await,
                Included::Role(block) => self.block(&inner, block).await,
            };
            self.place.pop();
            gone?;
        }
        Ok(())
    }

    /// Reads what is included for one item; the result of one whose condition does not hold.
    async fn read_in(
        &mut self,
        play: &PlayContext,
        task: &Arc<Task>,
        info: &Arc<TaskInfo>,
        scope: &HostScope,
        index: usize,
        item: Option<String>,
    ) -> Result<Result<Included, serde_json::Value>, Unfit> {
        let Action::Include {
            include, arguments, ..
        } = &task.action
        else {
            return Ok(Err(json!({"changed": false, "skipped": true})));
        };
        if let Some(condition) = self.all_true(&task.directives.when, scope).await? {
            let result = json!({
                "changed": false, "skipped": true, "skip_reason": "Conditional result was False",
                "false_condition": condition.raw().trim(),
            });
            self.ended(task, info, Status::Skipped, result.clone(), false, false)
                .await?;
            return Ok(Err(result));
        }
        if self.place.len() > DEPTH {
            return Err(Unfit::Problem(format!(
                "{}: more than {DEPTH} includes within each other",
                task.place()
            )));
        }
        let mut around = Around::of(task, self.in_handler, &play.dir, seed(task.id, index));
        if let Some(node) = arguments.get("apply") {
            around.apply(node);
        }
        let books = self.shared.books.clone();
        let (file, included) = match include {
            Include::Tasks => {
                let name = match arguments.get("file") {
                    Some(node) => self.words(Some(node), scope).await?,
                    None => None,
                };
                let Some(name) = name.filter(|name| !name.is_empty()) else {
                    return Err(no_file(task));
                };
                let read = books.tasks(&name, task, &around);
                let (path, steps) = read.map_err(|problems| {
                    let missing =
                        |problem: &Diagnostic| problem.message.contains("Could not find or access");
                    // A file that is not there is a failure like any other; one that makes no sense is not rescued from.
                    match (problems.iter().all(missing), unread(&problems)) {
                        (false, Unfit::Problem(text)) => Unfit::Broken(text),
                        (_, unfit) => unfit,
                    }
                })?;
                (path.display().to_string(), Included::Tasks(steps))
            }
            Include::Role => {
                let call = self.role_call(task, arguments, scope).await?;
                let name = call.name.clone();
                let IncludedRole { block, handlers } = books
                    .role(&call, task, &around)
                    .map_err(|problems| unread(&problems))?;
                self.adopt(block.role.as_ref(), handlers);
                (name, Included::Role(block))
            }
        };
        self.ran
            .extend(task.directives.role.as_ref().map(|role| role.instance));
        self.tell(vec![Event::Included {
            host: self.name.clone(),
            task: Arc::clone(info),
            file,
            item: item.filter(|_| !self.shared.settings.no_log),
        }])
        .await;
        Ok(Ok(included))
    }

    /// The handlers of an included role can be notified from now on, and what is public of it is seen.
    fn adopt(&mut self, role: Option<&Arc<Role>>, handlers: Vec<Arc<Task>>) {
        for handler in handlers {
            if self.handlers.iter().all(|own| own.id != handler.id) {
                self.handlers.push(handler);
            }
        }
        let by_default = self.shared.settings.private_role_vars == Some(false);
        if let Some(role) = role.filter(|role| role.public.unwrap_or(by_default)) {
            self.exposed.retain(|own| own.instance != role.instance);
            self.exposed.push(Arc::clone(role));
        }
    }

    async fn role_call(
        &mut self,
        task: &Task,
        arguments: &indexmap::IndexMap<String, Node>,
        scope: &HostScope,
    ) -> Result<RoleCall, Unfit> {
        let name = match arguments.get("name").or_else(|| arguments.get("role")) {
            Some(node) => self.words(Some(node), scope).await?,
            None => None,
        };
        let Some(name) = name else {
            return Err(Unfit::Problem(format!(
                "{}: 'name' is a required field for include_role.",
                task.place()
            )));
        };
        let mut from = Vec::new();
        for part in ["tasks_from", "vars_from", "defaults_from", "handlers_from"] {
            let value = self.keyword(arguments.get(part), scope).await?;
            if let Some(other) = value.as_ref().filter(|value| value.as_str().is_none()) {
                return Err(Unfit::Problem(format!(
                    "{}: Expected a string for {part} but got {} instead",
                    task.place(),
                    other.kind()
                )));
            }
            from.push(value.map(|value| value.to_string()));
        }
        let mut from = from.into_iter();
        let mut next = || from.next().flatten();
        Ok(RoleCall {
            name,
            tasks_from: next(),
            vars_from: next(),
            defaults_from: next(),
            handlers_from: next(),
            public: self.flag(arguments.get("public"), scope).await?,
            allow_duplicates: self.flag(arguments.get("allow_duplicates"), scope).await?,
            rolespec_validate: self
                .flag(arguments.get("rolespec_validate"), scope)
                .await?
                .unwrap_or(true),
            params: Arc::clone(&task.vars),
        })
    }
}

fn no_file(task: &Task) -> Unfit {
    let problem = Diagnostic::error(
        task.span.clone(),
        format!(
            "No file specified for ansible.builtin.{}",
            task.action.name()
        ),
    );
    Unfit::Problem(fleet_yaml::render(&problem, false))
}

pub(super) fn unread(problems: &[Diagnostic]) -> Unfit {
    let texts: Vec<_> = problems
        .iter()
        .map(|problem| fleet_yaml::render(problem, false))
        .collect();
    Unfit::Problem(texts.join("\n\n"))
}

/// A number for an include's tasks: the same in a plan and in the apply of it.
fn seed(task: usize, item: usize) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    (task, item).hash(&mut hasher);
    hasher.finish()
}
