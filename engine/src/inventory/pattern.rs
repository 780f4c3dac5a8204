//! Host patterns as written: `web:&prod:!db`, `web*`, `~web\d+`, `web[0:2]`.

use std::{io::ErrorKind, net::Ipv6Addr, path::Path};

use fleet_yaml::{Diagnostic, Source, Span};
use regex::Regex;

use crate::sources;

use super::{
    glob,
    mistake::{code, mistake, placeless},
};

/// What a text selects of an inventory.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// Additions first, then intersections, then exclusions; each in the order of writing.
    pub(super) terms: Vec<Term>,
}

/// A second pattern, by which a user narrows what a play selects (`--limit`).
#[derive(Clone, Debug)]
pub struct Limit(pub(super) Pattern);

/// How a term changes the selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Effect {
    Add,
    Intersect,
    Exclude,
}

/// One part of a pattern.
#[derive(Clone, Debug)]
pub(super) struct Term {
    pub(super) effect: Effect,
    /// As written, without its mark.
    pub(super) text: String,
    pub(super) names: Names,
    pub(super) slice: Option<Slice>,
    pub(super) span: Option<Span>,
}

/// Which names a term means.
#[derive(Clone, Debug)]
pub(super) enum Names {
    One(String),
    Glob(Regex),
    Regex(Regex),
}

/// A part of a term's hosts, by position; negative ones count from the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slice {
    At(i64),
    /// Both ends included.
    Between(i64, i64),
}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    ///
    /// A regular expression that is none, or a bracket that is never closed.
    pub fn parse(text: &str) -> Result<Pattern, Diagnostic> {
        let mut terms = Vec::new();
        add_terms(text, None, &mut terms)?;
        Ok(Pattern::of(terms))
    }

    fn of(mut terms: Vec<Term>) -> Pattern {
        terms.sort_by_key(|term| term.effect);
        Pattern { terms }
    }
}

impl Limit {
    /// Reads a limit: a pattern, in which `@FILE` stands for the patterns in a file, one a line.
    ///
    /// # Errors
    ///
    /// Those of patterns, and a file that cannot be read.
    pub fn parse(text: &str) -> Result<Limit, Diagnostic> {
        let source = Source::new("--limit", text);
        let mut terms = Vec::new();
        for (start, part) in parts(text) {
            let span = source.span(start, start + part.len());
            match part.strip_prefix('@') {
                Some(path) => read_terms(Path::new(path), &span, &mut terms)?,
                None => add_terms(part, Some(&span), &mut terms)?,
            }
        }
        Ok(Limit(Pattern::of(terms)))
    }
}

fn read_terms(path: &Path, span: &Span, terms: &mut Vec<Term>) -> Result<(), Diagnostic> {
    let bytes = sources::read(path).map_err(|error| {
        let shown = path.display();
        let what = match error.kind() {
            ErrorKind::NotFound => format!("Unable to find limit file `{shown}`"),
            ErrorKind::IsADirectory => {
                format!("limit starting with \"@\" must be a file, not a directory: `{shown}`")
            }
            _ => format!("cannot read limit file `{shown}`: {error}"),
        };
        mistake(code::PATTERN, span, what)
    })?;
    let source = Source::from_bytes(path, bytes)?;
    let mut start = 0;
    for line in source.text.split_inclusive('\n') {
        let trimmed = line.trim();
        if !trimmed.is_empty() && !trimmed.starts_with('#') {
            let from = start + (line.len() - line.trim_start().len());
            add_terms(
                trimmed,
                Some(&source.span(from, from + trimmed.len())),
                terms,
            )?;
        }
        start += line.len();
    }
    Ok(())
}

fn add_terms(text: &str, span: Option<&Span>, terms: &mut Vec<Term>) -> Result<(), Diagnostic> {
    for (start, part) in parts(text) {
        let span = span.map(|span| span.part(start, start + part.len()));
        terms.push(term(part, span)?);
    }
    Ok(())
}

/// The parts of a pattern and where they begin: between commas if there is one; else, unless the
/// whole is one address, between colons outside brackets.
fn parts(text: &str) -> Vec<(usize, &str)> {
    let mut depth = 0_usize;
    let mut between_colons = |char: char| {
        match char {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        char == ':' && depth == 0
    };
    let pieces: Vec<&str> = if text.contains(',') {
        text.split(',').collect()
    } else if is_address(text) {
        vec![text]
    } else {
        text.split(&mut between_colons).collect()
    };
    let mut start = 0;
    let mut parts = Vec::new();
    for piece in pieces {
        let trimmed = piece.trim();
        if !trimmed.is_empty() {
            parts.push((start + (piece.len() - piece.trim_start().len()), trimmed));
        }
        start += piece.len() + 1;
    }
    parts
}

/// An IPv6 address, or one name with a port.
fn is_address(text: &str) -> bool {
    let named = |(name, port): (&str, &str)| {
        !name.is_empty()
            && !name.starts_with(['!', '&', '~', '@'])
            && !name.contains(':')
            && !port.is_empty()
            && port.bytes().all(|byte| byte.is_ascii_digit())
    };
    text.trim().parse::<Ipv6Addr>().is_ok() || text.trim().rsplit_once(':').is_some_and(named)
}

fn term(part: &str, span: Option<Span>) -> Result<Term, Diagnostic> {
    let (effect, text) = match part.as_bytes().first() {
        Some(b'!') => (Effect::Exclude, &part[1..]),
        Some(b'&') => (Effect::Intersect, &part[1..]),
        _ => (Effect::Add, part),
    };
    let wrong = |message: String| {
        let mistake = placeless(code::PATTERN, message);
        match &span {
            Some(span) => mistake.at(span.clone()),
            None => mistake,
        }
    };
    if text.is_empty() {
        return Err(wrong(format!(
            "nothing stands behind `{part}` in a host pattern"
        )));
    }
    if let Some(written) = text.strip_prefix('~') {
        let regex = Regex::new(&format!(r"\A(?:{written})")).map_err(|error| {
            let last = error
                .to_string()
                .lines()
                .last()
                .unwrap_or_default()
                .trim()
                .to_owned();
            let why = last.strip_prefix("error: ").unwrap_or(&last).to_owned();
            wrong(format!("`{written}` is no regular expression: {why}"))
        })?;
        return Ok(Term {
            effect,
            text: text.to_owned(),
            names: Names::Regex(regex),
            slice: None,
            span,
        });
    }
    if text.matches('[').count() > text.matches(']').count() {
        return Err(wrong(format!(
            "a `[` is never closed in the host pattern `{text}`"
        ))
        .with_help("a subscript is `web[0]`, `web[0:2]`, `web[1:]` or `web[-1]`"));
    }
    let (name, slice) = subscript(text);
    let names = if glob::is_glob(name) {
        let regex = glob::to_regex(name)
            .map_err(|_| wrong(format!("`{name}` is too large a host pattern")))?;
        Names::Glob(regex)
    } else {
        Names::One(name.to_owned())
    };
    Ok(Term {
        effect,
        text: text.to_owned(),
        names,
        slice,
        span,
    })
}

/// Parts a name from its subscript: `[0]`, `[-1]`, `[0:2]`, `[1:]`, `[:2]`.
fn subscript(text: &str) -> (&str, Option<Slice>) {
    let whole = (text, None);
    let Some((name, inner)) = text
        .strip_suffix(']')
        .and_then(|rest| rest.rsplit_once('['))
    else {
        return whole;
    };
    let number = |text: &str, none: i64| {
        if text.is_empty() {
            Some(none)
        } else {
            text.parse().ok()
        }
    };
    let slice = match inner.split_once(':') {
        None => inner.parse().ok().map(Slice::At),
        Some((first, last)) => number(first, 0)
            .zip(number(last, -1))
            .filter(|_| inner != ":")
            .map(|(first, last)| Slice::Between(first, last)),
    };
    let plain = !inner.contains('+') && !name.is_empty();
    match slice.filter(|_| plain) {
        Some(slice) => (name, Some(slice)),
        None => whole,
    }
}

impl Slice {
    /// The range of indexes that it means of so many hosts; an empty one where it lies outside.
    pub(super) fn range(self, len: usize) -> std::ops::Range<usize> {
        let count = i64::try_from(len).unwrap_or(i64::MAX);
        let place = |at: i64| if at < 0 { at.saturating_add(count) } else { at };
        let (first, last) = match self {
            Slice::At(at) => (place(at), place(at)),
            Slice::Between(first, last) => (place(first).max(0), place(last).min(count - 1)),
        };
        if first < 0 || last < first || last >= count {
            return 0..0;
        }
        first as usize..last as usize + 1
    }
}
