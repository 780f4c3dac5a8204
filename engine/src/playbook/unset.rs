//! Variables that nothing sets: told where a task uses one for certain, and only where all that may set one is known.
//!
//! Only the first operand of an expression is sure to be looked at: `a` in `a == 1 and b`, and in `a | upper`; not in
//! `a is defined`, nor in `a | default(1)`.

use std::{collections::BTreeSet, sync::Arc};

use fleet_yaml::{Diagnostic, Kind, Node};

use super::{
    Action, Block, LocalAction, Play, Step, Task, Vars,
    check::{is_templated, truth},
    files,
    reader::Reader,
};

/// A variable that nothing sets, as far as the playbook tells: an inventory may.
#[derive(Clone, Debug)]
pub struct Unset {
    /// Its name.
    pub name: String,
    /// What is to be said of it where no inventory sets it, either.
    pub told: Diagnostic,
}

/// Names that are there without anybody setting them. All that begins with `ansible_` is, too.
const MAGIC: &[&str] = &[
    "False",
    "None",
    "True",
    "environment",
    "false",
    "group_names",
    "groups",
    "hostvars",
    "inventory_dir",
    "inventory_file",
    "inventory_hostname",
    "inventory_hostname_short",
    "item",
    "loop",
    "none",
    "not",
    "omit",
    "packages",
    "play_hosts",
    "playbook_dir",
    "role_name",
    "role_names",
    "role_path",
    "self",
    "services",
    "true",
    "undef",
    "vars",
];

/// What may be set.
#[derive(Default)]
struct Known {
    names: BTreeSet<String>,
    /// Something sets names that cannot be told.
    open: bool,
}

impl Known {
    fn vars(&mut self, vars: &Vars) {
        self.names.extend(vars.keys().cloned());
    }

    fn has(&self, name: &str) -> bool {
        let gathered = ["ansible_", "facter_", "ohai_", "getent_"];
        self.open
            || MAGIC.contains(&name)
            || gathered.iter().any(|prefix| name.starts_with(prefix))
            || self.names.contains(name)
    }
}

impl Reader<'_> {
    /// Looks for names that nothing sets in the tasks of a play and in those that its includes are sure to bring in.
    pub(super) fn unset_names(
        &mut self,
        play: &Play,
        sure: &[Step],
        included: &[Arc<Task>],
        open: bool,
    ) {
        let mut known = Known {
            open,
            ..Known::default()
        };
        self.known_to_play(play, &mut known);
        let handlers: Vec<Step> = play.handlers.iter().cloned().map(Step::Task).collect();
        let steps = || {
            let sections = play.sections.iter().flatten();
            sections.chain(&handlers).chain(sure)
        };
        for task in steps().flat_map(Step::tasks).chain(included) {
            self.known_by(task, &mut known);
        }
        if !known.open {
            for step in steps() {
                self.look_into(step, &known);
            }
        }
    }

    fn known_to_play(&mut self, play: &Play, known: &mut Known) {
        known.vars(&self.shelf.settings.extra_vars);
        known.vars(&play.vars);
        for vars in &play.imported {
            known.vars(vars);
        }
        for prompt in &play.prompts {
            known.names.insert(prompt.name.clone());
        }
        let choices = play.vars_files.iter();
        for file in choices.flat_map(|node| node.as_seq().unwrap_or(std::slice::from_ref(node))) {
            self.known_by_file(Some(file), known);
        }
    }

    /// The names of a file of variables.
    fn known_by_file(&self, file: Option<&Node>, known: &mut Known) {
        let Some(name) = file
            .and_then(Node::as_str)
            .filter(|name| !is_templated(name))
        else {
            known.open = true;
            return;
        };
        let mut search = self.here.search.to_vec();
        search.extend(files::search(&self.dir));
        let content = files::find(name, "vars", &search)
            .ok()
            .and_then(|path| self.shelf.file(&path).ok())
            .map(|file| file.content());
        match content.as_ref().map(|content| &content.kind) {
            Some(Kind::Map(map)) => known.names.extend(map.names().map(str::to_owned)),
            Some(Kind::Null) => {}
            // It is missing, and that is told by itself; or it is written by a task.
            _ => known.open = true,
        }
    }

    fn known_by(&mut self, task: &Task, known: &mut Known) {
        known.vars(&task.vars);
        let layers = task.directives.vars.iter();
        for vars in layers.chain(&task.directives.include_params) {
            known.vars(vars);
        }
        if let Some(role) = &task.directives.role {
            let layers = role.defaults.iter().chain(&role.vars).chain(&role.params);
            for vars in layers {
                known.vars(vars);
            }
        }
        known.names.extend(task.register.clone());
        known.names.extend(task.projections.keys().cloned());
        if let Some(control) = &task.r#loop {
            known.names.insert(control.variable.clone());
            known.names.extend(control.index_variable.clone());
            known.open |= is_templated(&control.variable);
        }
        match &task.action {
            Action::Local {
                action: LocalAction::SetFact | LocalAction::AddHost,
                arguments,
                ..
            } => {
                known.open |=
                    task.args.is_some() || arguments.keys().any(|name| is_templated(name));
                known.names.extend(arguments.keys().cloned());
            }
            Action::Local {
                action: LocalAction::IncludeVars,
                arguments,
                ..
            } => match arguments.get("name").and_then(Node::as_str) {
                Some(name) => {
                    known.open |= is_templated(name);
                    known.names.insert(name.to_owned());
                }
                None => {
                    let outer = std::mem::replace(&mut self.here.search, task.search.clone());
                    self.known_by_file(arguments.get("file"), known);
                    self.here.search = outer;
                }
            },
            // They may say that anything is a fact of the host.
            Action::External { .. } | Action::Templated { .. } => known.open = true,
            Action::Module { .. }
            | Action::Local { .. }
            | Action::Include { .. }
            | Action::Missing { .. } => {}
        }
    }

    fn look_into(&mut self, step: &Step, known: &Known) {
        match step {
            Step::Task(task) => self.look_for_unset(task, known),
            Step::Block(block) => self.look_into_block(block, known),
        }
    }

    fn look_into_block(&mut self, block: &Block, known: &Known) {
        // What fails there may be meant to.
        let body = block.rescue.is_empty().then_some(&block.body);
        let steps = body.into_iter().flatten();
        for step in steps.chain(&block.rescue).chain(&block.always) {
            self.look_into(step, known);
        }
    }

    fn look_for_unset(&mut self, task: &Task, known: &Known) {
        let ignores =
            |node: &Option<Node>| node.as_ref().is_some_and(|node| truth(node) != Some(false));
        if ignores(&task.directives.ignore_errors) || !task.failed_when.is_empty() {
            return;
        }
        if let Some(condition) = task.directives.when.first()
            && let Some(text) = condition.as_str()
        {
            let name = match is_templated(text) {
                true => None,
                false => first_operand(text),
            };
            self.use_of(name, condition, known, false);
        }
        let conditional = !task.directives.when.is_empty();
        let mut sure = true;
        if let Some(control) = &task.r#loop {
            self.uses_in(&control.items, known, conditional);
            // Over nothing, nothing is done.
            sure = control
                .items
                .as_seq()
                .is_some_and(|items| !items.is_empty());
        }
        if sure {
            for argument in task.action.arguments().values() {
                self.uses_in(argument, known, conditional);
            }
        }
    }

    /// The names in the templates of a value.
    fn uses_in(&mut self, node: &Node, known: &Known, conditional: bool) {
        if node.has_tag("unsafe") {
            return;
        }
        match &node.kind {
            Kind::Str(text) if !text.contains("{%") && !text.contains("{#") => {
                for part in text.split("{{").skip(1) {
                    let inner = part.split("}}").next().unwrap_or(part);
                    let inner = inner.trim_start_matches(['-', '+']);
                    let name = first_operand(inner);
                    self.use_of(name, node, known, conditional);
                }
            }
            Kind::Seq(items) => items
                .iter()
                .for_each(|item| self.uses_in(item, known, conditional)),
            Kind::Map(map) => map
                .iter()
                .for_each(|(_, value)| self.uses_in(value, known, conditional)),
            _ => {}
        }
    }

    fn use_of(&mut self, name: Option<&str>, node: &Node, known: &Known, conditional: bool) {
        let Some(name) = name.filter(|name| !known.has(name)) else {
            return;
        };
        // The shorter a name, the more names are near it.
        let near = fleet_yaml::nearest(name, known.names.iter().map(String::as_str))
            .filter(|_| name.len() > 3);
        // What a condition may keep hosts from may be set by those who want it; a slip of the pen is one all the same.
        if conditional && near.is_none() {
            return;
        }
        let raw = node.raw();
        let span = match raw.find(name) {
            Some(at) => node.span.part(at, at + name.len()),
            None => node.span.clone(),
        };
        let help = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                "set it in the inventory, in `vars`, or with `-e`; or say what holds without it: `| default(…)`".to_owned()
            }
        };
        let told = Diagnostic::error(span, format!("nothing sets the variable `{name}`"));
        let told = told.with_help(help);
        let text = told.to_string();
        // A condition is handed on to many tasks.
        if self
            .unset
            .iter()
            .all(|known| known.told.to_string() != text)
        {
            let name = name.to_owned();
            self.unset.push(Unset { name, told });
        }
    }
}

/// The variable that an expression looks at first, where it is sure to fail without it.
fn first_operand(expression: &str) -> Option<&str> {
    let mut text = expression.trim();
    while let Some(rest) = text.strip_prefix("not ") {
        text = rest.trim_start();
    }
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let end = text.find(|c| !is_name(c)).unwrap_or(text.len());
    let (name, mut rest) = text.split_at(end);
    let first = name.chars().next()?;
    if !(first.is_alphabetic() || first == '_') {
        return None;
    }
    // `a if b else c` looks at `b` first.
    let words = || rest.split(|c| !is_name(c));
    if words().any(|word| matches!(word, "if" | "default" | "d")) {
        return None;
    }
    // The rest of the path: what is not there may still have a default, which was looked for above.
    rest = rest.trim_start();
    let called = rest.starts_with('(');
    let tested = rest.split(|c| !is_name(c)).next() == Some("is");
    let in_quotes = rest.starts_with(['\'', '"']);
    (!called && !tested && !in_quotes).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::first_operand;

    #[test]
    fn only_what_is_looked_at_for_certain_counts() {
        assert_eq!(first_operand(" port "), Some("port"));
        assert_eq!(first_operand("not ready"), Some("ready"));
        assert_eq!(first_operand("a.b == 1 and c"), Some("a"));
        assert_eq!(first_operand("names | join(',')"), Some("names"));
        assert_eq!(first_operand("a | default(1)"), None);
        assert_eq!(first_operand("a is defined and a"), None);
        assert_eq!(first_operand("a if b else c"), None);
        assert_eq!(first_operand("lookup('env', 'HOME')"), None);
        assert_eq!(first_operand("'text' ~ a"), None);
        assert_eq!(first_operand("(a or b)"), None);
        assert_eq!(first_operand("1 + a"), None);
    }
}
