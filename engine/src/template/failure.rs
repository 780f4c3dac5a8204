//! From an error of minijinja to a message at the place in the user's file.

use std::error::Error as _;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use fleet_yaml::{Diagnostic, Node, Source, Span, nearest};
use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, Value};

use super::evaluation::Evaluation;
use super::given::worded;
use super::poison;
use super::python::text::{pairs, type_name};
use super::rewrite::{self, Chain, Rewritten, Step};
use super::{INLINE, Templar, file};

/// The codes of the diagnostics of templates.
pub mod code {
    /// Something undefined was used.
    pub const UNDEFINED: &str = "F0301";
    /// The text is no template.
    pub const SYNTAX: &str = "F0302";
    /// A filter, test, function or lookup that does not exist.
    pub const UNKNOWN: &str = "F0303";
    /// A value that is made of itself.
    pub const RECURSIVE: &str = "F0304";
    /// Anything else that went wrong in a template.
    pub const FAILED: &str = "F0305";
}

/// Why a value could not be had, at its place in the user's file.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{diagnostic}")]
pub struct EvalError {
    diagnostic: Diagnostic,
    undefined: bool,
}

impl From<EvalError> for Diagnostic {
    fn from(error: EvalError) -> Self {
        error.diagnostic
    }
}

/// Where a template is written.
#[derive(Debug)]
pub(crate) enum Place<'a> {
    /// In a scalar of a YAML file.
    Scalar(&'a Node),
    /// In a YAML file, as a bare expression.
    Bare(&'a Span, &'a str),
    /// In a file of its own.
    File(&'a Arc<Source>),
}

impl Place<'_> {
    /// The bytes of the template as a place in the file. What is escaped or folded in YAML is looked for.
    pub(crate) fn span(&self, range: Range<usize>) -> Span {
        match self {
            Place::File(source) => source.span(range.start, range.end),
            Place::Scalar(node) => within(&node.span, node.as_str().unwrap_or_default(), range),
            Place::Bare(span, text) => within(span, text, range),
        }
    }

    fn whole(&self) -> Span {
        match self {
            Place::File(source) => source.span(0, 0),
            Place::Scalar(node) => node.span.clone(),
            Place::Bare(span, _) => (*span).clone(),
        }
    }
}

/// The part of `outer` that spells `text[range]`: the occurrence of the same number in both.
fn within(outer: &Span, text: &str, range: Range<usize>) -> Span {
    let Some(piece) = text.get(range.clone()) else {
        return outer.clone();
    };
    let piece = piece.lines().next().unwrap_or_default();
    if piece.is_empty() {
        return outer.clone();
    }
    let number = text
        .match_indices(piece)
        .take_while(|(at, _)| *at < range.start)
        .count();
    match outer.text().match_indices(piece).nth(number) {
        Some((at, _)) => outer.part(at, at + piece.len()),
        None => outer.clone(),
    }
}

impl EvalError {
    pub(crate) fn new(diagnostic: Diagnostic) -> Self {
        Self {
            diagnostic,
            undefined: false,
        }
    }

    /// The message, its place and what to do.
    pub fn diagnostic(&self) -> &Diagnostic {
        &self.diagnostic
    }

    /// Whether the reason is that something is undefined.
    pub fn is_undefined(&self) -> bool {
        self.undefined
    }

    pub(crate) fn recursive(node: &Node, chain: &[&str]) -> Self {
        Self::new(
            Diagnostic::without_place(format!(
                "Recursive loop detected in template: `{}`",
                chain.join("` → `")
            ))
            .with_code(code::RECURSIVE)
            .at(node.span.clone())
            .with_help("a variable cannot be made of itself: give one of them another name"),
        )
    }

    pub(crate) fn too_deep(node: &Node, path: &str) -> Self {
        Self::new(
            Diagnostic::without_place(format!(
                "`{path}` is made of too many templates inside each other"
            ))
            .with_code(code::RECURSIVE)
            .at(node.span.clone()),
        )
    }

    /// An error that arose when the outcome of a template was made a plain value.
    pub(crate) fn unresolved(
        evaluation: &Arc<Evaluation>,
        text: &str,
        place: &Place<'_>,
        error: &Error,
    ) -> Self {
        if let Some(inner) = carried(error) {
            return inner;
        }
        if error.kind() == ErrorKind::UndefinedError {
            let rewritten = match rewrite::is_template(text) {
                true => rewrite::template(
                    text,
                    &rewrite::Delimiters::default(),
                    rewrite::Backslashes::Literal,
                ),
                false => rewrite::expression(text, rewrite::Backslashes::Escape),
            };
            return Self::undefined(evaluation, &rewritten, place, None, place.whole());
        }
        Self::new(
            Diagnostic::without_place(message(error))
                .with_code(code::FAILED)
                .at(place.whole()),
        )
    }

    /// The error as a value that minijinja can carry to where it is used.
    pub(crate) fn into_minijinja(self) -> Error {
        let kind = if self.undefined {
            ErrorKind::UndefinedError
        } else {
            ErrorKind::InvalidOperation
        };
        Error::new(kind, self.diagnostic.message.clone()).with_source(self)
    }

    /// Explains what minijinja says about a rewritten template.
    pub(crate) fn explain(
        evaluation: &Arc<Evaluation>,
        rewritten: &Rewritten,
        place: &Place<'_>,
        error: &Error,
    ) -> Self {
        let error = innermost(error);
        if let Some(name) = error
            .name()
            .filter(|name| *name != INLINE && *name != "<expression>")
            && let Some((source, included)) = file::again(evaluation, name, place)
        {
            return Self::explained(evaluation, &included, &Place::File(&source), error);
        }
        Self::explained(evaluation, rewritten, place, error)
    }

    fn explained(
        evaluation: &Arc<Evaluation>,
        rewritten: &Rewritten,
        place: &Place<'_>,
        error: &Error,
    ) -> Self {
        let range = written_range(rewritten, error);
        let span = range.clone().map_or_else(
            || place.whole(),
            |range| place.span(shifted(rewritten, range)),
        );
        if let Some(mut inner) = carried(error) {
            if inner.diagnostic.span.as_ref() != Some(&span) {
                inner.diagnostic = inner.diagnostic.with_related(span, "used here");
            }
            return inner;
        }
        let operand = error.detail().is_some_and(|detail| {
            detail.starts_with("tried to use") && detail.contains("undefined")
        });
        if error.kind() == ErrorKind::UndefinedError || operand {
            let mut missing = Self::undefined(evaluation, rewritten, place, range, span);
            if error.detail() == Some(poison::MANDATORY)
                && let Some(name) = missing.diagnostic.message.strip_suffix(" is undefined")
            {
                let message = format!("Mandatory variable {name} not defined.");
                missing.diagnostic.message = message;
            }
            return missing;
        }
        let zero = |sign: &str| {
            error.detail().is_some_and(|detail| {
                detail.starts_with("unable to calculate") && detail.contains(&format!("{sign} 0"))
            })
        };
        if zero("/") || zero("%") {
            return Self::new(
                Diagnostic::without_place("division by zero")
                    .with_code(code::FAILED)
                    .at(span),
            );
        }
        Self::new(described(&evaluation.templar, error, rewritten).at(span))
    }

    /// Names what is undefined: the first missing step of the chains in the failing part.
    fn undefined(
        evaluation: &Arc<Evaluation>,
        rewritten: &Rewritten,
        place: &Place<'_>,
        range: Option<Range<usize>>,
        span: Span,
    ) -> Self {
        // A filter's range begins at its name: its subject stands before it, the nearest first.
        let inside = |chain: &&Chain| {
            range
                .as_ref()
                .is_none_or(|range| chain.range.start < range.end && range.start < chain.range.end)
        };
        let before = |chain: &&Chain| {
            range
                .as_ref()
                .is_some_and(|range| chain.range.end <= range.start)
        };
        let chains = &rewritten.notes.chains;
        let mut local = None;
        for chain in chains
            .iter()
            .filter(inside)
            .chain(chains.iter().rev().filter(before))
        {
            let at = place.span(shifted(rewritten, chain.range.clone()));
            let Some(Step::Name(root)) = chain.path.first() else {
                continue;
            };
            if rewritten.notes.assigned.contains(root) {
                // Only the template knows its own names; the longest chain says most.
                if chain.path.len() > 1
                    && local.as_ref().is_none_or(|(known, _): &(&Chain, Span)| {
                        chain.range.start <= known.range.start
                    })
                {
                    local = Some((chain, at));
                }
                continue;
            }
            if let Some(missing) = missing(evaluation, chain) {
                return missing.at(evaluation, at);
            }
        }
        let filter = rewritten.notes.filters.iter().find(|(_, found)| {
            range
                .as_ref()
                .is_some_and(|range| range.start == found.start)
        });
        let (message, at) = match (local, filter) {
            // The subject of a filter is made by what stands before it, not by a name.
            (_, Some((name, _))) => (format!("`{name}` was given something undefined"), span),
            (Some((chain, at)), None) => (format!("`{}` is undefined", spelled(&chain.path)), at),
            (None, None) => (
                evaluation
                    .hint()
                    .unwrap_or_else(|| "the value is undefined".to_owned()),
                span,
            ),
        };
        Self {
            diagnostic: Diagnostic::without_place(message)
                .with_code(code::UNDEFINED)
                .at(at),
            undefined: true,
        }
    }
}

/// The first missing step of a chain.
struct Missing {
    path: String,
    parent: String,
    /// What the parent is, in Python's words.
    kind: &'static str,
    step: String,
    root: String,
    keys: Vec<String>,
    inner: Option<EvalError>,
}

fn missing(evaluation: &Arc<Evaluation>, chain: &Chain) -> Option<Missing> {
    let Step::Name(root) = chain.path.first()? else {
        return None;
    };
    let gone = |path: &[Step], parent: &[Step], step: &str, kind, keys| Missing {
        path: spelled(path),
        parent: spelled(parent),
        kind,
        step: step.to_owned(),
        root: root.clone(),
        keys,
        inner: evaluation.why_undefined(&spelled(path)),
    };
    let Some(mut value) = evaluation.variable(root).ok()? else {
        if evaluation
            .templar
            .environment()
            .globals()
            .any(|(name, _)| name == root)
        {
            return None;
        }
        let names = evaluation.scope.names();
        return Some(gone(&chain.path[..1], &[], root, "", names));
    };
    for at in 1..chain.path.len() {
        if poison::is_poison(&value) {
            return None;
        }
        let (key, step) = match &chain.path[at] {
            Step::Name(name) | Step::Attribute(name) => (Value::from(name.as_str()), name.clone()),
            Step::Index(index) => (Value::from(*index), index.to_string()),
            Step::Computed => return None,
        };
        let next = match value.kind() {
            ValueKind::None | ValueKind::Bool | ValueKind::Number => Value::UNDEFINED,
            _ => value.get_item(&key).ok()?,
        };
        if next.is_undefined() {
            let keys = pairs(&value).unwrap_or_default();
            let names = keys
                .iter()
                .filter_map(|(key, _)| key.as_str().map(str::to_owned))
                .collect();
            let (path, parent) = (&chain.path[..=at], &chain.path[..at]);
            return Some(gone(path, parent, &step, type_name(&value), names));
        }
        value = next;
    }
    None
}

impl Missing {
    fn at(self, evaluation: &Arc<Evaluation>, span: Span) -> EvalError {
        if let Some(mut inner) = self.inner {
            inner.diagnostic = inner
                .diagnostic
                .with_related(span, format!("`{}` is used here", self.path));
            return inner;
        }
        let mut help = Vec::new();
        if let Some(near) = nearest(&self.step, self.keys.iter().map(String::as_str)) {
            help.push(format!(
                "did you mean `{}`?",
                if self.parent.is_empty() {
                    near.to_owned()
                } else {
                    format!("{}.{near}", self.parent)
                }
            ));
        } else if !self.parent.is_empty() && (1..=8).contains(&self.keys.len()) {
            help.push(format!("`{}` has: {}", self.parent, self.keys.join(", ")));
        }
        if !self.parent.is_empty()
            && let Some(origin) = evaluation.scope.origin(&self.root)
        {
            help.push(format!("`{}` comes from {origin}", self.root));
        }
        if help.is_empty() {
            help.push(format!(
                "define it, or say what to take instead: `{} | default(…)`",
                self.path
            ));
        }
        // Ansible's words: playbooks look for them in the messages of tasks that are to fail.
        let message = if self.parent.is_empty() {
            format!("'{}' is undefined", self.path)
        } else {
            let step = match self.step.parse::<i64>() {
                Ok(index) => index.to_string(),
                Err(_) => format!("'{}'", self.step),
            };
            match self.step.parse::<i64>() {
                Ok(index) if ["list", "tuple"].contains(&self.kind) => format!(
                    "`{}` is undefined: {} object has no element {index}",
                    self.path, self.kind
                ),
                _ => format!(
                    "`{}` is undefined: object of type '{}' has no attribute {step}",
                    self.path, self.kind
                ),
            }
        };
        let diagnostic = Diagnostic::without_place(message)
            .with_code(code::UNDEFINED)
            .at(span)
            .with_help(help.join("\n"));
        EvalError {
            diagnostic,
            undefined: true,
        }
    }
}

/// A chain as it is written most plainly.
fn spelled(path: &[Step]) -> String {
    let mut out = String::new();
    for step in path {
        match step {
            Step::Name(name) => out.push_str(name),
            Step::Attribute(name) => {
                out.push('.');
                out.push_str(name);
            }
            Step::Index(index) => out.push_str(&format!("[{index}]")),
            Step::Computed => out.push_str("[…]"),
        }
    }
    out
}

/// The bytes of the written text that an error is about.
fn written_range(rewritten: &Rewritten, error: &Error) -> Option<Range<usize>> {
    if let Some(range) = error.range() {
        return Some(rewritten.places.old_range(range));
    }
    let line = error.line()?;
    let start: usize = rewritten
        .text
        .split_inclusive('\n')
        .take(line.saturating_sub(1))
        .map(str::len)
        .sum();
    let length = rewritten.text[start..]
        .lines()
        .next()
        .unwrap_or_default()
        .len();
    Some(rewritten.places.old_range(start..start + length))
}

fn shifted(rewritten: &Rewritten, range: Range<usize>) -> Range<usize> {
    range.start + rewritten.offset..range.end + rewritten.offset
}

/// The error that others were wrapped around: the failing line of an included template.
fn innermost(error: &Error) -> &Error {
    match error
        .source()
        .and_then(|source| source.downcast_ref::<Error>())
    {
        Some(inner) => innermost(inner),
        None => error,
    }
}

/// A failure of ours that came through minijinja.
fn carried(error: &Error) -> Option<EvalError> {
    innermost(error)
        .source()?
        .downcast_ref::<EvalError>()
        .cloned()
}

/// What minijinja says, as a fragment.
fn message(error: &Error) -> String {
    let said = error
        .detail()
        .map_or_else(|| error.kind().to_string(), str::to_owned);
    if worded(error) {
        return said;
    }
    let mut letters = said.chars();
    match letters.next() {
        // A name such as `URL` keeps its capitals.
        Some(first) if letters.as_str().starts_with(|c: char| c.is_lowercase()) => {
            first.to_lowercase().chain(letters).collect()
        }
        _ => said,
    }
}

/// A parser's message with what one would type, in place of what the parser calls it.
fn in_symbols(message: &str) -> String {
    const SYMBOLS: [(&str, &str); 9] = [
        (
            "unexpected end of input, expected end of block",
            "a block is never closed: `{% endif %}`, `{% endfor %}` or its like is missing",
        ),
        ("end of variable block", "`}}`"),
        ("unexpected identifier", "unexpected name"),
        ("end of block", "`%}`"),
        ("end of input", "end of the template"),
        ("expected identifier", "expected a name"),
        ("identifier", "name"),
        ("expected expression", "expected an expression"),
        ("expected statement", "expected a statement"),
    ];
    let replaced = |text: String, (name, symbol): &(&str, &str)| text.replace(name, symbol);
    SYMBOLS.iter().fold(message.to_owned(), replaced)
}

/// The message for an error that is not about something undefined.
pub(crate) fn described(templar: &Templar, error: &Error, rewritten: &Rewritten) -> Diagnostic {
    let named = |found: &[(String, Range<usize>)], what: &str| {
        let name = error
            .detail()
            .and_then(|detail| detail.split_whitespace().nth(1))
            .unwrap_or_default()
            .to_owned();
        let name = found
            .iter()
            .map(|(name, _)| name)
            .find(|known| **known == name)
            .cloned()
            .unwrap_or(name);
        super::check::unknown(templar, what, &name)
    };
    match error.kind() {
        ErrorKind::SyntaxError => {
            Diagnostic::without_place(in_symbols(&message(error))).with_code(code::SYNTAX)
        }
        ErrorKind::UnknownFilter => named(&rewritten.notes.filters, "filter"),
        ErrorKind::UnknownTest => named(&rewritten.notes.tests, "test"),
        ErrorKind::UnknownFunction => {
            let name = error
                .detail()
                .and_then(|detail| detail.split_whitespace().next())
                .unwrap_or_default();
            super::check::unknown(templar, "function", name)
        }
        ErrorKind::OutOfFuel => Diagnostic::without_place("the template does not come to an end")
            .with_code(code::FAILED)
            .with_help(
                "it took more steps than any template needs: look for a loop over too many items",
            ),
        _ => match operator(error) {
            Some(diagnostic) => diagnostic,
            None => Diagnostic::without_place(message(error)).with_code(code::FAILED),
        },
    }
}

/// An operator between values that it does not work on.
fn operator(error: &Error) -> Option<Diagnostic> {
    let (operator, types) = error
        .detail()?
        .strip_prefix("tried to use ")?
        .split_once(" operator on unsupported types ")?;
    let diagnostic = Diagnostic::without_place(format!("`{operator}` does not work on {types}"))
        .with_code(code::FAILED);
    let mixed = operator == "+" && types.contains("string") && types.contains("number");
    Some(if mixed {
        diagnostic.with_help("`~` joins as texts; `| int` makes a number of a text")
    } else {
        diagnostic
    })
}

/// The name of a source for messages.
pub(crate) fn source(path: &Path, text: &str) -> Arc<Source> {
    Source::new(path, text)
}
