//! The parser's complaints, in the words of the person who made the mistake, and at its start.

use std::{ops::Range, sync::Arc};

use granit_parser::{ErrorKind, ScanError};

use crate::{Diagnostic, Source, Span, diagnostic::code};

/// Refuses the control characters that YAML forbids, where the parser would read on.
pub(crate) fn check_characters(source: &Arc<Source>) -> Result<(), Diagnostic> {
    let forbidden = |byte: &u8| matches!(byte, 0..=8 | 11 | 12 | 14..=31 | 127);
    let bytes = source.text.as_bytes();
    let Some((at, byte)) = bytes.iter().enumerate().find(|(_, byte)| forbidden(byte)) else {
        return Ok(());
    };
    let message = format!("the control character U+{byte:04X} cannot stand in YAML");
    Err(Diagnostic::error(source.span(at, at + 1), message)
        .with_code(code::ENCODING)
        .with_help(format!(
            "remove it, or write it as `\\x{byte:02x}` in double quotes"
        )))
}

/// Tells of a template that YAML takes for a mapping in a mapping. `inner` says that it stands in
/// brackets, where it ends with its braces.
pub(crate) fn check_template(span: &Span, inner: bool) -> Result<(), Diagnostic> {
    if span
        .source
        .text
        .get(span.start..)
        .is_some_and(|rest| rest.starts_with("{{"))
    {
        return Err(unquoted_template(&span.source, span.start, inner));
    }
    Ok(())
}

fn unquoted_template(source: &Arc<Source>, start: usize, inner: bool) -> Diagnostic {
    let rest = rest_of_line(source, start);
    let close = rest.find("}}").map(|at| at + 2);
    let value = match close {
        Some(end) if inner || rest[end..].trim_start().starts_with(':') => &rest[..end],
        _ => rest.split(" #").next().unwrap_or(rest).trim_end(),
    };
    let mut mistake =
        Diagnostic::error(source.span(start, start + value.len()), "unquoted template")
            .with_code(code::UNQUOTED_TEMPLATE)
            .with_help(format!("write {}", quoted(value)));
    if value.starts_with("{{") {
        mistake.label = Some("YAML takes this for a mapping".to_owned());
    }
    mistake
}

/// Turns an error of the parser into ours. `bracket` is the innermost `[` or `{` that is open.
pub(crate) fn explain(
    source: &Arc<Source>,
    error: &ScanError,
    bracket: Option<usize>,
) -> Diagnostic {
    let at = source.floor(error.marker().byte_offset().unwrap_or(source.text.len()));
    let complaint = Complaint {
        source,
        at,
        bracket,
    };
    let mut mistake = complaint.explain(error.kind());
    mistake.code.get_or_insert(code::SYNTAX);
    mistake
}

struct Complaint<'s> {
    source: &'s Arc<Source>,
    /// Where the parser complains.
    at: usize,
    bracket: Option<usize>,
}

/// A line, by what people see in it.
struct Line<'s> {
    number: usize,
    /// Where its text starts, blanks and the dashes of list items left out.
    start: usize,
    /// Its text from there, without a comment.
    text: &'s str,
    /// Its first column that is not blank, from 1.
    column: usize,
    item: bool,
}

impl<'s> Line<'s> {
    /// The key, and the value behind it with its place.
    fn pair(&self) -> Option<(&'s str, &'s str, usize)> {
        let colon = self.text.match_indices(':').map(|(at, _)| at).find(|at| {
            let behind = &self.text[at + 1..];
            behind.is_empty() || behind.starts_with([' ', '\t'])
        })?;
        let behind = &self.text[colon + 1..];
        let value = behind.trim_start();
        let start = self.start + colon + 1 + (behind.len() - value.len());
        Some((self.text[..colon].trim_end(), value.trim_end(), start))
    }

    /// `key:value`, which lacks its blank.
    fn tight_pair(&self) -> Option<(&'s str, &'s str)> {
        let (key, value) = self
            .text
            .split_once(':')
            .filter(|_| self.pair().is_none())?;
        let word = |text: &str| {
            text.chars()
                .all(|c| c.is_alphanumeric() || "_-.".contains(c))
        };
        (!key.is_empty() && word(key) && !value.starts_with(['/', ':'])).then_some((key, value))
    }
}

impl<'s> Complaint<'s> {
    fn explain(&self, kind: &ErrorKind) -> Diagnostic {
        if let Some(start) = self.template() {
            return unquoted_template(self.source, start, self.bracket.is_some());
        }
        match kind {
            ErrorKind::TabNotAllowed
            | ErrorKind::TabInBlockIndentation
            | ErrorKind::TabInIndentation
            | ErrorKind::TabInPlainScalar
            | ErrorKind::TabAtBlockScalarStart => self.tab(),
            ErrorKind::UnclosedQuotedScalar | ErrorKind::DocumentIndicatorInQuotedScalar => self
                .here(1, "this quote is never closed")
                .with_help(format!("put a {} where the text ends", self.character())),
            ErrorKind::InvalidTrailingDoubleQuotedScalar
            | ErrorKind::InvalidTrailingSingleQuotedScalar => self.behind_a_quote(),
            ErrorKind::UnknownQuotedScalarEscape
            | ErrorKind::InvalidQuotedScalarHexEscape
            | ErrorKind::InvalidUnicodeEscape
            | ErrorKind::InvalidLowSurrogateHexEscape
            | ErrorKind::InvalidLowSurrogate
            | ErrorKind::MissingLowSurrogate
            | ErrorKind::UnpairedLowSurrogate => self.escape(),
            ErrorKind::UnclosedFlowCollection { open } => {
                self.here(1, format!("this `{open}` is never closed"))
            }
            ErrorKind::MismatchedFlowCollectionEnd { open, close } => {
                self.here(1, format!("this `{open}` is closed by a `{close}`"))
            }
            ErrorKind::MisplacedFlowCollectionEnd => {
                self.here(1, format!("this `{}` closes nothing", self.character()))
            }
            _ if self.bracket.is_some() => self.in_brackets(kind),
            ErrorKind::MappingValueNotAllowed => self.colon(),
            ErrorKind::SimpleKeyExpected => self.no_key(&self.line()),
            ErrorKind::ExpectedBlockMappingKey | ErrorKind::ExpectedBlockSequenceEntry => {
                self.indentation(kind)
            }
            ErrorKind::BlockSequenceEntryNotAllowed => self
                .here(1, "a list cannot start in the line of its key")
                .with_help("put each `-` in a line of its own below the key"),
            ErrorKind::UnexpectedCharacter { character } => self.cannot_start(*character),
            ErrorKind::UnexpectedEofBlockMapping if self.character() == ',' => {
                self.cannot_start(',')
            }
            ErrorKind::UndeclaredTagHandle => self
                .here(1, "this tag is not known")
                .with_help("quote a string that starts with `!`"),
            ErrorKind::RecursionLimitExceeded => self
                .here(1, "lists and mappings stand too deep in one another")
                .with_code(code::LIMIT),
            ErrorKind::CommentNotSeparated => self
                .here(1, "a comment needs a space before its `#`")
                .with_help("put a space before the `#`, or quotes around the whole value"),
            _ => self.here(1, format!("this is no YAML: {kind}")),
        }
    }

    fn here(&self, length: usize, message: impl Into<String>) -> Diagnostic {
        let end = (self.at + length..)
            .find(|at| *at >= self.source.text.len() || self.source.text.is_char_boundary(*at));
        Diagnostic::error(self.source.span(self.at, end.unwrap_or(self.at)), message)
    }

    fn character(&self) -> char {
        self.source.text[self.at..].chars().next().unwrap_or(' ')
    }

    fn line(&self) -> Line<'s> {
        let (number, _) = self.source.line_col(self.at);
        self.numbered(number)
    }

    fn numbered(&self, number: usize) -> Line<'s> {
        let whole = self.source.line(number).trim_start_matches('\u{feff}');
        let inner = whole.trim_start_matches([' ', '\t']);
        let mut text = inner;
        while let Some(rest) = text.strip_prefix("- ") {
            text = rest.trim_start();
        }
        let end = self.source.line_start(number) + self.source.line(number).len();
        let start = end - text.len();
        let text = if text.starts_with('#') {
            ""
        } else {
            text.split(" #").next().unwrap_or(text)
        };
        Line {
            number,
            start,
            text: text.trim_end(),
            column: whole.len() - inner.len() + 1,
            item: inner.starts_with("- ") || inner == "-",
        }
    }

    /// The nearest line above with something in it that `wanted` likes.
    fn above(&self, number: usize, wanted: impl Fn(&Line<'_>) -> bool) -> Option<Line<'s>> {
        // Far above nothing is helpful any more, and a hostile file has many lines.
        let first = number.saturating_sub(1000).max(1);
        (first..number)
            .rev()
            .map(|number| self.numbered(number))
            .filter(|line| !line.text.is_empty())
            .find(wanted)
    }

    /// A value in this line that starts as a template and has no quotes.
    fn template(&self) -> Option<usize> {
        let line = self.line();
        let (value, start) = match line.pair() {
            Some((_, value, start)) => (value, start),
            None => (line.text, line.start),
        };
        (value.starts_with("{{") || value.starts_with("{%")).then_some(start)
    }

    fn tab(&self) -> Diagnostic {
        let text = &self.source.text;
        // The parser complains behind the tab, or before the line that has it.
        let before = text[..self.at].trim_end_matches('\t').len();
        let behind = self.at + text[self.at..].find('\t').unwrap_or(0);
        let start = if before < self.at { before } else { behind };
        let tabs = text[start..].len() - text[start..].trim_start_matches('\t').len();
        Diagnostic::error(
            self.source.span(start, start + tabs.max(1)),
            "a tab cannot indent in YAML",
        )
        .with_help("indent with spaces")
    }

    fn behind_a_quote(&self) -> Diagnostic {
        let rest = rest_of_line(self.source, self.at);
        let mistake = self.here(rest.len().max(1), "there is text behind the closing quote");
        let before = &self.source.text[..self.at];
        if before.ends_with('\'') && rest.starts_with(char::is_alphanumeric) {
            return mistake.with_help("within single quotes write `''` for a quote");
        }
        match self.line().pair() {
            Some((_, value, _)) => {
                mistake.with_help(format!("quote the whole value: {}", quoted(value)))
            }
            None => mistake.with_help("quote the whole text"),
        }
    }

    fn escape(&self) -> Diagnostic {
        let bad = bad_escape(&self.source.text[self.at..]);
        let span = match &bad {
            Some(range) => self.source.span(self.at + range.start, self.at + range.end),
            None => self.source.span(self.at, self.at + 1),
        };
        let message = match span.text() {
            text if bad.is_some() => format!("`{text}` is no escape that YAML knows"),
            _ => "there is an escape in this text that YAML does not know".to_owned(),
        };
        Diagnostic::error(span, message)
            .with_help("in double quotes write `\\\\` for a backslash, or use single quotes")
    }

    fn in_brackets(&self, kind: &ErrorKind) -> Diagnostic {
        let Some(start) = self.bracket else {
            return self.here(1, kind.to_string());
        };
        let open = self.source.text[start..].chars().next().unwrap_or('[');
        let lines = self.source.line_col(start).0..self.source.line_col(self.at).0;
        if lines.is_empty() {
            let what = if open == '{' { "mapping" } else { "list" };
            return self
                .here(1, format!("this does not fit in a {what} in brackets"))
                .with_related(self.source.span(start, start + 1), format!("the {what} starts here"))
                .with_help("separate what is in it with `, `, and quote strings with `,`, `: `, brackets or braces");
        }
        Diagnostic::error(
            self.source.span(start, start + 1),
            format!("this `{open}` is never closed"),
        )
        .with_related(
            self.source.span(self.at, self.at + 1),
            "here it can no longer go on",
        )
    }

    /// A `: ` where no key can be.
    fn colon(&self) -> Diagnostic {
        let line = self.line();
        if let Some((key, value, start)) = line.pair()
            && start <= self.at
        {
            return Diagnostic::error(
                self.source.span(start, start + value.len()),
                format!("the value of `{key}` has a `: ` in it and no quotes"),
            )
            .with_help(format!("write {}", quoted(value)));
        }
        let key = line.text.split(':').next().unwrap_or_default();
        let span = self.source.span(line.start, line.start + key.len());
        let Some(above) = self.above(line.number, |_| true) else {
            return self.here(1, "no key can stand here");
        };
        match above.pair() {
            Some((owner, value, start)) if !value.is_empty() && line.column > above.column => {
                let column = above.source_column(self.source);
                Diagnostic::error(
                    span,
                    format!("`{key}` is indented too far: `{owner}` has a value already"),
                )
                .with_related(
                    self.source.span(start, start + value.len()),
                    format!("the value of `{owner}`"),
                )
                .with_help(format!("start `{key}` in column {column}, below `{owner}`"))
            }
            None => self.no_key(&above),
            Some(_) => Diagnostic::error(span, format!("the key `{key}` cannot stand here")),
        }
    }

    /// A line that should be `key: value`.
    fn no_key(&self, line: &Line<'_>) -> Diagnostic {
        let span = self.source.span(line.start, line.start + line.text.len());
        if let Some((key, value)) = line.tight_pair() {
            return Diagnostic::error(span, format!("there is no space behind `{key}:`"))
                .with_help(format!("write `{key}: {value}`"));
        }
        Diagnostic::error(span, "this is no `key: value`")
            .with_help("end a key with `:`, or indent a text that goes on further than its key")
    }

    fn indentation(&self, kind: &ErrorKind) -> Diagnostic {
        let line = self.line();
        let start = self.source.line_start(line.number) + line.column - 1;
        let span = self.source.span(start, line.start + line.text.len());
        let peer = self.above(line.number, |above| {
            let comparable = above.item == line.item && (line.item || above.pair().is_some());
            comparable && above.column != line.column
        });
        let near = self.above(line.number, |_| true);
        match (peer, near) {
            // Fewer columns than the line above, and still not those of any line above it.
            (Some(peer), Some(near))
                if line.column < near.column.max(peer.column) || line.column > peer.column =>
            {
                let what = if line.item { "list item" } else { "key" };
                Diagnostic::error(span, format!("this {what} lines up with nothing above it"))
                    .with_help(format!(
                        "the {what} in line {} starts in column {}",
                        peer.number, peer.column
                    ))
            }
            _ if matches!(kind, ErrorKind::ExpectedBlockSequenceEntry) => {
                Diagnostic::error(span, "a key where the next item of a list is expected")
                    .with_help("start it with `- `, or indent it to the key of the item above")
            }
            _ if line.item => Diagnostic::error(span, "a list item where a key is expected")
                .with_help("put the list below a key of its own"),
            _ => self.no_key(&line),
        }
    }

    fn cannot_start(&self, character: char) -> Diagnostic {
        let value = rest_of_line(self.source, self.at)
            .split(" #")
            .next()
            .unwrap_or_default()
            .trim_end();
        self.here(
            1,
            format!("a value cannot start with `{}`", character.escape_debug()),
        )
        .with_help(format!("quote it: {}", quoted(value)))
    }
}

impl Line<'_> {
    /// The column, from 1, at which the text starts behind blanks and dashes.
    fn source_column(&self, source: &Arc<Source>) -> usize {
        source.line_col(self.start).1
    }
}

fn rest_of_line(source: &Arc<Source>, start: usize) -> &str {
    let rest = source.text.get(start..).unwrap_or_default();
    rest.split(['\n', '\r'])
        .next()
        .unwrap_or_default()
        .trim_end()
}

/// A value as it should be written; only outlined where that is not simple.
fn quoted(value: &str) -> String {
    match (value.contains(['"', '\\']), value.contains('\'')) {
        _ if value.len() > 60 => "\"…\"".to_owned(),
        (false, _) => format!("\"{value}\""),
        (true, false) => format!("'{value}'"),
        (true, true) => format!("'{}'", value.replace('\'', "''")),
    }
}

/// The first escape in a double-quoted text that is none.
fn bad_escape(text: &str) -> Option<Range<usize>> {
    let mut rest = text.char_indices().skip(1);
    while let Some((at, c)) = rest.next() {
        match c {
            '"' => return None,
            '\\' => {}
            _ => continue,
        }
        let (letter_at, letter) = rest.next()?;
        let digits = match letter {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            _ if "0abt\tnvfre \"/\\N_LP\n\r".contains(letter) => 0,
            _ => return Some(at..letter_at + letter.len_utf8()),
        };
        let number: String = text[letter_at + 1..]
            .chars()
            .take(digits)
            .take_while(char::is_ascii_hexdigit)
            .collect();
        let scalar = u32::from_str_radix(&number, 16)
            .ok()
            .is_some_and(|number| char::from_u32(number).is_some());
        if digits > 0 && (number.len() < digits || !scalar) {
            return Some(at..letter_at + 1 + number.len());
        }
    }
    None
}
