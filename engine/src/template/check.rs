//! What is wrong with templates as far as it shows without values.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use fleet_yaml::{Diagnostic, Kind, Node, Span, nearest};

use super::evaluation::Evaluation;
use super::failure::{self, Place, code};
use super::nodes::{self, View};
use super::rewrite::{self, Rewritten};
use super::{FileSyntax, INLINE, Templar, file, filters, tests};
use crate::variables::{Scope, Variable};
use crate::vault::Vault;

/// Checks every template in a value.
pub(super) fn node(templar: &Templar, node: &Node) -> Vec<Diagnostic> {
    match &node.kind {
        Kind::Seq(items) => items
            .iter()
            .flat_map(|item| self::node(templar, item))
            .collect(),
        Kind::Map(map) => map
            .iter()
            .flat_map(|(_, value)| self::node(templar, value))
            .collect(),
        _ => match nodes::view(node) {
            View::Template(text) => inline(templar, text, &Place::Scalar(node)),
            // It may be for somebody who has another secret: whether it opens is seen at its use.
            View::Vault => Vault::check(node).into_iter().collect(),
            _ => Vec::new(),
        },
    }
}

fn inline(templar: &Templar, text: &str, place: &Place<'_>) -> Vec<Diagnostic> {
    let rewritten = rewrite::template(
        text,
        &rewrite::Delimiters::default(),
        rewrite::Backslashes::Literal,
    );
    let outcome = templar
        .environment()
        .template_from_named_str(INLINE, &rewritten.text)
        .map(drop);
    outcome_of(templar, &rewritten, place, outcome)
}

/// Checks a bare expression.
pub(super) fn expression(templar: &Templar, expression: &str, span: &Span) -> Vec<Diagnostic> {
    let place = Place::Bare(span, expression);
    if rewrite::is_template(expression) {
        return inline(templar, expression, &place);
    }
    let rewritten = rewrite::expression(expression, rewrite::Backslashes::Escape);
    let outcome = templar
        .environment()
        .compile_expression(&rewritten.text)
        .map(drop);
    outcome_of(templar, &rewritten, &place, outcome)
}

/// Checks a template file.
pub(super) fn file(
    templar: &Templar,
    path: &Path,
    text: &str,
    syntax: &FileSyntax,
) -> Vec<Diagnostic> {
    let source = failure::source(path, text);
    let place = Place::File(&source);
    match file::compile(templar, path, text, syntax) {
        Ok(compiled) => outcome_of(templar, &compiled.rewritten, &place, compiled.outcome),
        Err(error) => vec![
            Diagnostic::without_place(error.to_string())
                .with_code(code::SYNTAX)
                .at(source.span(0, 0)),
        ],
    }
}

fn outcome_of(
    templar: &Templar,
    rewritten: &Rewritten,
    place: &Place<'_>,
    outcome: Result<(), minijinja::Error>,
) -> Vec<Diagnostic> {
    if let Err(error) = outcome {
        let evaluation = Evaluation::new(
            templar.clone(),
            Arc::new(Nothing),
            Default::default(),
            Default::default(),
        );
        return vec![failure::EvalError::explain(&evaluation, rewritten, place, &error).into()];
    }
    let environment = templar.environment();
    let mut found = Vec::new();
    let mut report = |what: &str, name: &str, range: &Range<usize>| {
        let range = range.start + rewritten.offset..range.end + rewritten.offset;
        found.push(unknown(templar, what, name).at(place.span(range)));
    };
    for (name, range) in &rewritten.notes.filters {
        if !named(filters::names(), name) {
            report("filter", name, range);
        }
    }
    for (name, range) in &rewritten.notes.tests {
        if !named(tests::names(), name) {
            report("test", name, range);
        }
    }
    for (name, range) in &rewritten.notes.calls {
        let known = rewritten.notes.assigned.contains(name)
            || ["loop", "caller", "super", "self"].contains(&name.as_str())
            || environment.globals().any(|(global, _)| global == name);
        if !known {
            report("function", name, range);
        }
    }
    found
}

/// Whether a name, with or without Ansible's collection, is one of these.
pub(super) fn named(mut names: impl Iterator<Item = &'static str>, name: &str) -> bool {
    let plain = name.strip_prefix("ansible.builtin.").unwrap_or(name);
    names.any(|known| known == name || known == plain)
}

/// The message about a name that does not exist.
pub(super) fn unknown(templar: &Templar, what: &str, name: &str) -> Diagnostic {
    let globals: Vec<&str> = templar
        .environment()
        .globals()
        .map(|(name, _)| name)
        .collect();
    let near = match what {
        "filter" => nearest(name, filters::names()),
        "test" => nearest(name, tests::names()),
        _ => nearest(name, globals.iter().copied()),
    };
    let diagnostic =
        Diagnostic::without_place(format!("there is no {what} `{name}`")).with_code(code::UNKNOWN);
    match near {
        Some(near) => diagnostic.with_help(format!("did you mean `{near}`?")),
        None => diagnostic.with_help(format!("docs/language.md lists every {what} there is")),
    }
}

/// A scope without names: a check knows none.
#[derive(Debug)]
struct Nothing;

impl Scope for Nothing {
    fn get(&self, _: &str) -> Option<Variable> {
        None
    }

    fn names(&self) -> Vec<String> {
        Vec::new()
    }

    fn origin(&self, _: &str) -> Option<String> {
        None
    }
}

#[cfg(test)]
mod unit {
    use super::super::{NoController, TemplateSettings, lookups};
    use super::*;

    /// Messages send people to this page.
    #[test]
    fn the_page_of_the_language_lists_every_name() {
        let page = include_str!("../../../docs/language.md");
        let listed = |heading: &str| -> Vec<&str> {
            let part = page
                .split("\n* **")
                .find(|part| part.starts_with(heading))
                .unwrap();
            part.split("\n\n")
                .next()
                .unwrap()
                .split('`')
                .skip(1)
                .step_by(2)
                .collect()
        };
        let templar = Templar::new(TemplateSettings {
            search_path: Vec::new(),
            playbook_dir: "/".into(),
            controller: Arc::new(NoController),
            vault: crate::vault::Vault::default(),
            managed: "Ansible managed".to_owned(),
        });
        let functions = templar
            .environment()
            .globals()
            .map(|(name, _)| name.to_owned());
        let own = |names: &mut dyn Iterator<Item = &'static str>| {
            names.map(str::to_owned).collect::<Vec<_>>()
        };
        for (heading, mut names) in [
            ("Filters", own(&mut filters::names())),
            ("Tests", own(&mut tests::names())),
            ("Lookups", own(&mut lookups::names())),
            ("Functions", functions.collect()),
        ] {
            names.sort_unstable();
            names.dedup();
            assert_eq!(
                listed(heading).join("`, `"),
                names.join("`, `"),
                "{heading}"
            );
        }
    }
}
