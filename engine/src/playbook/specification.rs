//! `meta/argument_specs.yml` of a role and the `.meta.yml` of a playbook: tasks that check arguments before all others.

use std::{path::Path, sync::Arc};

use fleet_yaml::{Map, Node};
use indexmap::IndexMap;

use crate::sources;

use super::{Action, Directives, LocalAction, Step, Task, Vars, check::truth, reader::Reader};

/// What is checked.
pub(super) struct Checked<'a> {
    /// As the task's name has it.
    pub(super) title: String,
    /// The role or the play.
    pub(super) name: &'a str,
    /// The specification's name in its file.
    pub(super) entry: &'a str,
    pub(super) path: &'a Path,
    /// `role` or `play`
    pub(super) kind: &'a str,
    pub(super) given: &'a Vars,
}

impl Reader<'_> {
    /// The task that checks arguments.
    pub(super) fn argument_check(
        &mut self,
        specification: &Node,
        checked: &Checked<'_>,
        directives: &Directives,
    ) -> Task {
        let span = &specification.span;
        let text = |text: &str| Node::string(text, span);
        let description = specification
            .get("short_description")
            .and_then(Node::scalar_text)
            .map_or_else(String::new, |text| format!(" - {text}"));
        let title = format!(
            "Validating arguments against arg spec {}{description}",
            checked.title
        );
        let context = [
            ("argument_spec_name", checked.entry),
            // A role of a collection goes by its own name here.
            (
                "name",
                checked.name.rsplit('.').next().unwrap_or(checked.name),
            ),
            (
                "path",
                &super::files::absolute(checked.path).display().to_string(),
            ),
            ("type", checked.kind),
        ]
        .map(|(key, value)| (text(key), text(value)));
        let given = checked.given.iter();
        let given = given.map(|(name, value)| (text(name), value.clone()));
        let options = specification.get("options");
        let options = options.filter(|options| !options.is_null()).cloned();
        let arguments = [
            (
                "argument_spec",
                options.unwrap_or_else(|| Node::mapping([], span)),
            ),
            ("provided_arguments", Node::mapping(given, span)),
            ("validate_args_context", Node::mapping(context, span)),
        ];
        let arguments = arguments.map(|(name, node)| (name.to_owned(), node));
        let mut directives = directives.clone();
        directives.tags.push(text("always"));
        let id = self.next_id;
        self.next_id += 1;
        Task {
            id,
            name: Some(text(&title)),
            action: Action::Local {
                action: LocalAction::ValidateArgumentSpec,
                arguments: IndexMap::from(arguments),
                span: span.clone(),
            },
            search: Arc::clone(&self.here.search),
            files: Arc::clone(&self.here.files),
            ..Task::bare(directives, span)
        }
    }

    /// `validate_argspec:` of a play: the task that checks its variables against the file beside the playbook.
    pub(super) fn play_check(&mut self, map: &Map, directives: &Directives) -> Option<Step> {
        let (key, node) = map.entry("validate_argspec")?;
        let rendered = match node.as_str() {
            Some(text) if super::check::is_templated(text) => {
                let vars = self.known_before_the_run(&[], &node.span);
                match self.shelf.settings.check.render(node, &vars) {
                    Ok(rendered) => rendered,
                    Err(mut problem) => {
                        problem.message = format!(
                            "Error processing keyword 'validate_argspec': {}",
                            problem.message
                        );
                        self.tell(problem.or_at(&node.span), false);
                        return None;
                    }
                }
            }
            _ => node.clone(),
        };
        let entry = match rendered.as_str() {
            Some(name) => name.to_owned(),
            None if truth(&rendered) == Some(true) => {
                let name = map.get("name").filter(|name| !name.is_null());
                let name = name.and_then(|name| self.rendered(name, &[]));
                let Some(name) = name.filter(|name| !name.is_empty()) else {
                    self.problem(
                        &key.span,
                        "A play name is required when validate_argspec is True.",
                    );
                    return None;
                };
                name
            }
            None => return None,
        };
        let playbook = key.span.source.name.clone();
        let candidates = [".meta.yml", ".meta.yaml", ".meta.json", ".meta"].map(|ending| {
            let stem = playbook.file_stem().unwrap_or_default().to_string_lossy();
            playbook.with_file_name(format!("{stem}{ending}"))
        });
        let Some(path) = candidates.iter().find(|path| sources::is_file(path)) else {
            let shown: Vec<String> = candidates
                .iter()
                .map(|path| format!("  - {}", super::files::absolute(path).display()))
                .collect();
            self.problem(
                &key.span,
                format!(
                    "A playbook meta file is required. Considered:\n{}",
                    shown.join("\n")
                ),
            );
            return None;
        };
        let content = self.open(path)?.content();
        let all = content.get("argument_specs");
        let Some(specification) = all.and_then(|all| all.get(&entry)).cloned() else {
            let shown = super::files::absolute(path);
            self.problem(
                &node.span,
                format!("No argument spec named '{entry}' in {}", shown.display()),
            );
            return None;
        };
        let checked = Checked {
            title: entry.clone(),
            name: &entry,
            entry: &entry,
            path,
            kind: "play",
            given: &Vars::new(),
        };
        let task = self.argument_check(&specification, &checked, directives);
        Some(Step::Task(Arc::new(task)))
    }
}
