//! Regular expressions, written as for Python.

use fancy_regex::{Captures, Regex};
use minijinja::value::ValueKind;
use minijinja::{Error, State, Value};

use crate::template::given::{Filter, Given, failed, items};
use crate::template::python::text;

pub(super) const FILTERS: &[Filter] = &[
    Filter {
        names: "regex_replace",
        parameters: "pattern replacement ignorecase multiline count mandatory_count",
        run: replace,
    },
    Filter {
        names: "regex_search",
        parameters: "regex * ignorecase multiline",
        run: search,
    },
    Filter {
        names: "regex_findall",
        parameters: "regex multiline ignorecase",
        run: findall,
    },
    Filter {
        names: "regex_escape",
        parameters: "re_type",
        run: escape,
    },
];

/// A pattern of Python's `re`.
pub(crate) struct Pattern(Regex);

impl Pattern {
    /// Whether the text has a match anywhere.
    ///
    /// # Errors
    /// If looking for one takes too many steps.
    pub(crate) fn is_match(&self, text: &str) -> Result<bool, Error> {
        self.0.is_match(text).map_err(too_hard)
    }

    /// The first match.
    ///
    /// # Errors
    /// As [`Pattern::is_match`].
    fn first<'t>(&self, text: &'t str) -> Result<Option<Captures<'t, str>>, Error> {
        self.0.captures(text).map_err(too_hard)
    }

    /// All matches as Python finds them: an empty one may follow right after one that is not.
    ///
    /// # Errors
    /// As [`Pattern::is_match`].
    fn all<'t>(&self, text: &'t str) -> Result<Vec<Captures<'t, str>>, Error> {
        let mut found = Vec::new();
        let mut at = 0;
        let mut empty_at = None;
        while at <= text.len() {
            let Some(captures) = self.0.captures_from_pos(text, at).map_err(too_hard)? else {
                break;
            };
            let Some(whole) = captures.get(0) else { break };
            let (start, end) = (whole.start(), whole.end());
            if start == end && empty_at == Some(start) {
                // Past the character where nothing was found already.
                at = start + text[start..].chars().next().map_or(1, char::len_utf8);
                empty_at = None;
                continue;
            }
            empty_at = (start == end).then_some(start);
            at = end;
            found.push(captures);
        }
        Ok(found)
    }
}

fn too_hard(error: fancy_regex::Error) -> Error {
    failed(format!(
        "the pattern cannot be followed to its end: {error}"
    ))
}

/// Compiles a pattern of Python's `re`.
///
/// # Errors
/// If it is wrong.
pub(crate) fn python(pattern: &str, ignore_case: bool, multiline: bool) -> Result<Pattern, Error> {
    let mut flags = String::new();
    if ignore_case {
        flags.push('i');
    }
    if multiline {
        flags.push('m');
    }
    let flags = if flags.is_empty() {
        flags
    } else {
        format!("(?{flags})")
    };
    Regex::new(&format!("{flags}{}", translated(pattern, multiline)))
        .map(Pattern)
        .map_err(|error| {
            failed(format!(
                "the pattern `{pattern}` is wrong: {}",
                first_line(&error.to_string())
                    .replace("Target of repeat operator is invalid", "nothing to repeat")
            ))
        })
}

fn first_line(said: &str) -> &str {
    said.lines()
        .rfind(|line| !line.trim().is_empty())
        .unwrap_or(said)
        .trim_start_matches("error: ")
}

/// What Python writes otherwise: `\Z` for the very end, `$` before a last newline, too, and `[` unescaped in a set.
fn translated(pattern: &str, multiline: bool) -> String {
    let multiline = multiline || pattern.starts_with("(?m") || pattern.starts_with("(?im");
    let mut out = String::with_capacity(pattern.len());
    let mut inside = false;
    let mut characters = pattern.chars().peekable();
    let mut set_start = false;
    while let Some(c) = characters.next() {
        let first_in_set = std::mem::take(&mut set_start);
        match c {
            '\\' => {
                out.push('\\');
                match characters.next() {
                    Some('Z') => out.push('z'),
                    // Python lets any sign be escaped, and treats it as itself.
                    Some(next) if next == '<' || next == '>' => {
                        out.pop();
                        out.push(next);
                    }
                    Some(
                        next @ ('"' | '\'' | '/' | ' ' | ':' | ',' | ';' | '=' | '@' | '!' | '%'
                        | '_' | '`'),
                    ) => {
                        out.pop();
                        if next == ' ' {
                            out.push_str("\\x20")
                        } else {
                            out.push(next)
                        }
                    }
                    Some(next) => out.push(next),
                    None => {}
                }
            }
            '[' if inside => out.push_str("\\["),
            '[' => {
                inside = true;
                set_start = true;
                out.push('[');
                if characters.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
            }
            // A bracket that comes first in a set is a member of it.
            ']' if first_in_set => out.push_str("\\]"),
            ']' => {
                inside = false;
                out.push(']');
            }
            '$' if !inside && !multiline => out.push_str("(?=\\n?\\z)"),
            '&' | '~' if inside && characters.peek() == Some(&c) => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

/// What a replacement of Python's `re.sub` makes of a match: `\1`, `\g<name>`, escapes.
fn expanded(replacement: &str, captures: &Captures<'_, str>) -> Result<String, Error> {
    let mut out = String::new();
    let mut rest = replacement.chars().peekable();
    let group = |name: &str| -> Result<String, Error> {
        let found = match name.parse::<usize>() {
            Ok(number) if number >= captures.len() => {
                return Err(failed(format!("the pattern has no group {number}")));
            }
            Ok(number) => captures.get(number),
            Err(_) => captures.name(name),
        };
        Ok(found.map_or_else(String::new, |found| found.as_str().to_owned()))
    };
    while let Some(c) = rest.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match rest.next() {
            Some('g') if rest.next_if_eq(&'<').is_some() => {
                let name: String = rest.by_ref().take_while(|c| *c != '>').collect();
                out.push_str(&group(&name)?);
            }
            Some(digit) if digit.is_ascii_digit() => {
                let mut name = digit.to_string();
                if let Some(second) = rest.next_if(char::is_ascii_digit) {
                    name.push(second);
                }
                out.push_str(&group(&name)?);
            }
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some(other) if other.is_ascii_alphabetic() => {
                return Err(failed(format!(
                    "`\\{other}` means nothing in a replacement"
                )));
            }
            Some(other) => {
                if other != '\\' {
                    out.push('\\');
                }
                out.push(other);
            }
            None => out.push('\\'),
        }
    }
    Ok(out)
}

fn replace(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let text = text::str(value)?;
    let pattern = python(
        &given.text(0, "")?,
        given.flag(2, false),
        given.flag(3, false),
    )?;
    let replacement = given.text(1, "")?;
    let count = usize::try_from(given.int(4, 0)?).unwrap_or(0);
    let mut out = String::new();
    let mut last = 0;
    let mut done = 0;
    for captures in pattern.all(&text)? {
        if count > 0 && done == count {
            break;
        }
        let Some(whole) = captures.get(0) else {
            continue;
        };
        out.push_str(&text[last..whole.start()]);
        out.push_str(&expanded(&replacement, &captures)?);
        last = whole.end();
        done += 1;
    }
    out.push_str(&text[last..]);
    let wanted = given.int(5, 0)?;
    if wanted > 0 && done as i64 != wanted {
        return Err(failed(format!(
            "'{}' should match {wanted} times, but matches {done} times in '{text}'",
            given.text(0, "")?
        )));
    }
    Ok(out.into())
}

fn search(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let text = text::str(value)?;
    // `ignorecase` and `multiline` come by name, what to take of the match by place.
    let pattern = python(
        &given.need(0).and_then(text::str)?,
        given.flag(1, false),
        given.flag(2, false),
    )?;
    let Some(captures) = pattern.first(&text)? else {
        return Ok(Value::from(()));
    };
    let part = |found: Option<fancy_regex::Match<'_>>| {
        found.map_or_else(|| Value::from(()), |found| Value::from(found.as_str()))
    };
    if given.rest.is_empty() {
        return Ok(part(captures.get(0)));
    }
    let mut parts = Vec::new();
    for wanted in &given.rest {
        let wanted = text::str(wanted)?;
        let found = if let Some(number) = wanted
            .strip_prefix('\\')
            .and_then(|number| number.parse::<usize>().ok())
        {
            if number >= captures.len() {
                return Err(failed(format!("the pattern has no group {number}")));
            }
            captures.get(number)
        } else if let Some(name) = wanted
            .strip_prefix("\\g<")
            .and_then(|name| name.strip_suffix('>'))
        {
            match name.parse::<usize>() {
                Ok(number) => captures.get(number),
                Err(_) => captures.name(name),
            }
        } else {
            return Err(failed(format!(
                "Unknown argument `{wanted}`, which names no group: write `\\\\1` or `\\\\g<name>`"
            )));
        };
        parts.push(part(found));
    }
    Ok(parts.into())
}

fn findall(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let text = text::str(value)?;
    let pattern = python(
        &given.need(0).and_then(text::str)?,
        given.flag(2, false),
        given.flag(1, false),
    )?;
    let group = |captures: &Captures<'_, str>, number| {
        captures
            .get(number)
            .map_or("", |found| found.as_str())
            .to_owned()
    };
    let all = pattern
        .all(&text)?
        .into_iter()
        .map(|captures| match captures.len() {
            1 => Value::from(group(&captures, 0)),
            2 => Value::from(group(&captures, 1)),
            groups => text::tuple(
                (1..groups)
                    .map(|number| Value::from(group(&captures, number)))
                    .collect::<Vec<_>>(),
            ),
        });
    Ok(all.collect::<Vec<_>>().into())
}

fn escape(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    if matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable) {
        let escaped: Result<Vec<Value>, Error> = items(value)?
            .iter()
            .map(|item| escaped(&text::str(item)?, given))
            .collect();
        return Ok(escaped?.into());
    }
    escaped(&text::str(value)?, given)
}

fn escaped(text: &str, given: &Given) -> Result<Value, Error> {
    let special = match given.text(0, "python")?.as_str() {
        "python" => "()[]{}?*+-|^$\\.&~# \t\n\r\u{b}\u{c}",
        "posix_basic" => "].[^$*\\",
        other @ "posix_extended" => {
            return Err(failed(format!("Regex type ({other}) not yet implemented")));
        }
        other => {
            return Err(failed(format!(
                "Invalid regex type ({other}): there are python and posix_basic"
            )));
        }
    };
    let mut out = String::new();
    for c in text.chars() {
        if special.contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    Ok(out.into())
}
