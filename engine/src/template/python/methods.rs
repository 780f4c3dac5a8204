//! Python's methods on texts, lists and dictionaries. What is not here comes from minijinja's own set.

use minijinja::value::{Tuple, ValueKind};
use minijinja::{Error, ErrorKind, State, Value};

use super::braces;
use super::text::{pairs, str};
use crate::template::given::{Given, failed, items, unusable};

/// Calls a method that minijinja does not know.
///
/// # Errors
/// If there is no such method, or its arguments do not fit.
pub(crate) fn call(
    state: &mut State<'_, '_>,
    value: &Value,
    method: &str,
    arguments: &[Value],
) -> Result<Value, Error> {
    if let Some(poisoned) = unusable(std::slice::from_ref(value))?.or(unusable(arguments)?) {
        return Ok(poisoned);
    }
    let found = match value.kind() {
        ValueKind::String => text_method(value.as_str().unwrap_or_default(), method, arguments)?,
        ValueKind::Seq | ValueKind::Iterable => list_method(value, method, arguments)?,
        ValueKind::Map => map_method(value, method, arguments)?,
        ValueKind::Number => match method {
            "bit_length" if value.is_integer() => {
                let bits = i128::try_from(value.clone())?.unsigned_abs();
                Some(Value::from(u128::BITS - bits.leading_zeros()))
            }
            "is_integer" => Some(Value::from(
                f64::try_from(value.clone()).is_ok_and(|number| number.fract() == 0.0),
            )),
            _ => None,
        },
        _ => None,
    };
    match found {
        Some(value) => Ok(value),
        None => {
            minijinja_contrib::pycompat::unknown_method_callback(state, value, method, arguments)
        }
    }
}

/// The arguments of a padding method: width and the character to fill with.
fn padding(
    method: &'static str,
    text: &str,
    arguments: &[Value],
) -> Result<(usize, String), Error> {
    let given = Given::bind(method, "width fillchar", arguments)?;
    let width = usize::try_from(given.int(0, 0)?)
        .unwrap_or(0)
        .min(1_000_000);
    Ok((
        width.saturating_sub(text.chars().count()),
        given.text(1, " ")?.chars().take(1).collect(),
    ))
}

fn text_method(text: &str, method: &str, arguments: &[Value]) -> Result<Option<Value>, Error> {
    let triple = |(head, separator, tail): (&str, &str, &str)| {
        Value::from(Tuple::from([
            Value::from(head),
            Value::from(separator),
            Value::from(tail),
        ]))
    };
    Ok(Some(match method {
        "zfill" => {
            let (missing, _) = padding("zfill", text, arguments)?;
            let sign = text.len() - text.trim_start_matches(['+', '-']).len();
            Value::from(format!(
                "{}{}{}",
                &text[..sign.min(1)],
                "0".repeat(missing),
                &text[sign.min(1)..]
            ))
        }
        "ljust" => {
            let (missing, fill) = padding("ljust", text, arguments)?;
            Value::from(format!("{text}{}", fill.repeat(missing)))
        }
        "rjust" => {
            let (missing, fill) = padding("rjust", text, arguments)?;
            Value::from(format!("{}{text}", fill.repeat(missing)))
        }
        "center" => {
            let (missing, fill) = padding("center", text, arguments)?;
            let width = missing + text.chars().count();
            // Python puts the odd one to the left where the width is odd.
            let left = missing / 2 + (missing & width & 1);
            Value::from(format!(
                "{}{text}{}",
                fill.repeat(left),
                fill.repeat(missing - left)
            ))
        }
        "partition" | "rpartition" => {
            let given = Given::bind("partition", "sep", arguments)?;
            let separator = given.need(0).and_then(str)?;
            if separator.is_empty() {
                return Err(failed("an empty separator splits nothing"));
            }
            let split = if method == "partition" {
                text.split_once(&*separator)
            } else {
                text.rsplit_once(&*separator)
            };
            match split {
                Some((head, tail)) => triple((head, &separator, tail)),
                None if method == "partition" => triple((text, "", "")),
                None => triple(("", "", text)),
            }
        }
        "rsplit" => rsplit(text, &Given::bind("rsplit", "sep maxsplit", arguments)?)?,
        "split" => split(text, &Given::bind("split", "sep maxsplit", arguments)?)?,
        "splitlines" => {
            let given = Given::bind("splitlines", "keepends", arguments)?;
            let keep = given.flag(0, false);
            let lines = text.split_inclusive('\n').map(|line| {
                if keep {
                    line
                } else {
                    line.trim_end_matches('\n').trim_end_matches('\r')
                }
            });
            lines.map(Value::from).collect::<Vec<_>>().into()
        }
        "removeprefix" => {
            let prefix = Given::bind("removeprefix", "prefix", arguments)?
                .need(0)
                .and_then(str)?;
            Value::from(text.strip_prefix(&*prefix).unwrap_or(text))
        }
        "removesuffix" => {
            let suffix = Given::bind("removesuffix", "suffix", arguments)?
                .need(0)
                .and_then(str)?;
            Value::from(text.strip_suffix(&*suffix).unwrap_or(text))
        }
        "index" | "rindex" | "find" | "rfind" => {
            let given = Given::bind("index", "sub start end", arguments)?;
            let found = position(text, &given, method.starts_with('r'))?;
            match found {
                None if method.ends_with("index") => {
                    return Err(failed("the text does not have what index() looks for"));
                }
                found => Value::from(found.map_or(-1, |at| at as i64)),
            }
        }
        "join" => {
            let given = Given::bind("join", "iterable", arguments)?;
            let mut parts = Vec::new();
            for item in items(given.need(0)?)? {
                let Some(part) = item.as_str() else {
                    return Err(failed(format!(
                        "join() needs texts, found {}",
                        super::text::type_name(&item)
                    )));
                };
                parts.push(part.to_owned());
            }
            Value::from(parts.join(text))
        }
        // There are no bytes to tell from texts here.
        "encode" | "decode" => Value::from(text),
        "istitle" => Value::from(text.chars().any(char::is_alphabetic) && titled(text) == text),
        "isascii" => Value::from(text.is_ascii()),
        "isidentifier" => Value::from(
            text.chars().all(|c| c.is_alphanumeric() || c == '_')
                && !text.starts_with(|c: char| c.is_numeric())
                && !text.is_empty(),
        ),
        "isnumeric" | "isdigit" => {
            Value::from(!text.is_empty() && text.chars().all(char::is_numeric))
        }
        "expandtabs" => {
            let size = usize::try_from(Given::bind("expandtabs", "tabsize", arguments)?.int(0, 8)?)
                .unwrap_or(0)
                .min(1000);
            Value::from(text.replace('\t', &" ".repeat(size)))
        }
        "swapcase" => Value::from(
            text.chars()
                .flat_map(|c| {
                    if c.is_uppercase() {
                        c.to_lowercase().collect::<Vec<_>>()
                    } else {
                        c.to_uppercase().collect()
                    }
                })
                .collect::<String>(),
        ),
        "format" => {
            let given = Given::bind("format", "* **", arguments)?;
            let arguments = braces::Arguments {
                by_place: given.rest,
                by_name: given.named,
            };
            Value::from(braces::format(text, &arguments)?)
        }
        "format_map" => {
            let given = Given::bind("format_map", "mapping", arguments)?;
            let names = pairs(given.need(0)?)?;
            let arguments = braces::Arguments {
                by_place: Vec::new(),
                by_name: names
                    .into_iter()
                    .map(|(name, value)| Ok((str(&name)?, value)))
                    .collect::<Result<_, Error>>()?,
            };
            Value::from(braces::format(text, &arguments)?)
        }
        "casefold" => Value::from(text.to_lowercase()),
        "title" => Value::from(titled(text)),
        "isdecimal" => Value::from(!text.is_empty() && text.chars().all(|c| c.is_ascii_digit())),
        _ => return Ok(None),
    }))
}

/// The text with every word capitalised, as Python's `title()`: any non-letter ends a word.
pub(crate) fn titled(text: &str) -> String {
    let mut out = String::new();
    let mut inside = false;
    for c in text.chars() {
        if inside {
            out.extend(c.to_lowercase())
        } else {
            out.extend(c.to_uppercase())
        }
        inside = c.is_alphabetic();
    }
    out
}

fn position(text: &str, given: &Given, last: bool) -> Result<Option<usize>, Error> {
    let wanted = given.need(0).and_then(str)?;
    let characters: Vec<char> = text.chars().collect();
    let bound = |index: i64| {
        if index < 0 {
            characters
                .len()
                .saturating_sub(index.unsigned_abs() as usize)
        } else {
            (index as usize).min(characters.len())
        }
    };
    let start = bound(given.int(1, 0)?);
    let end = bound(given.int(2, i64::MAX)?).max(start);
    let part: String = characters[start..end].iter().collect();
    let at = if last {
        part.rfind(&*wanted)
    } else {
        part.find(&*wanted)
    };
    Ok(at.map(|at| start + part[..at].chars().count()))
}

fn limit(given: &Given) -> Result<Option<usize>, Error> {
    Ok(usize::try_from(given.int(1, -1)?).ok())
}

fn split(text: &str, given: &Given) -> Result<Value, Error> {
    let limit = limit(given)?;
    let parts: Vec<&str> = match given.some(0).map(str).transpose()? {
        Some(separator) if separator.is_empty() => {
            return Err(failed("an empty separator splits nothing"));
        }
        Some(separator) => match limit {
            Some(limit) => text.splitn(limit + 1, &*separator).collect(),
            None => text.split(&*separator).collect(),
        },
        None => {
            let mut parts = Vec::new();
            let mut rest = text.trim_start();
            while !rest.is_empty() {
                if limit == Some(parts.len()) {
                    parts.push(rest.trim_end());
                    break;
                }
                let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
                parts.push(&rest[..end]);
                rest = rest[end..].trim_start();
            }
            parts
        }
    };
    Ok(parts
        .into_iter()
        .map(Value::from)
        .collect::<Vec<_>>()
        .into())
}

fn rsplit(text: &str, given: &Given) -> Result<Value, Error> {
    let Some(limit) = limit(given)? else {
        return split(text, given);
    };
    let mut parts: Vec<String> = match given.some(0).map(str).transpose()? {
        Some(separator) if separator.is_empty() => {
            return Err(failed("an empty separator splits nothing"));
        }
        Some(separator) => text
            .rsplitn(limit + 1, &*separator)
            .map(str::to_owned)
            .collect(),
        None => {
            let mut parts = Vec::new();
            let mut rest = text.trim_end();
            while !rest.is_empty() {
                if limit == parts.len() {
                    parts.push(rest.trim_start().to_owned());
                    break;
                }
                let start = rest.rfind(char::is_whitespace).map_or(0, |at| {
                    at + rest[at..].chars().next().map_or(0, char::len_utf8)
                });
                parts.push(rest[start..].to_owned());
                rest = rest[..start].trim_end();
            }
            parts
        }
    };
    parts.reverse();
    Ok(parts
        .into_iter()
        .map(Value::from)
        .collect::<Vec<_>>()
        .into())
}

fn list_method(value: &Value, method: &str, arguments: &[Value]) -> Result<Option<Value>, Error> {
    Ok(Some(match method {
        "index" => {
            let given = Given::bind("index", "value", arguments)?;
            let wanted = given.need(0)?;
            let at = items(value)?.iter().position(|item| item == wanted);
            Value::from(at.ok_or_else(|| failed("the list does not have what index() looks for"))?)
        }
        "count" => {
            let given = Given::bind("count", "value", arguments)?;
            let wanted = given.need(0)?;
            Value::from(items(value)?.iter().filter(|item| *item == wanted).count())
        }
        "copy" => super::mutable::made(value)?,
        "append" | "extend" | "insert" | "pop" | "remove" | "reverse" | "sort" | "clear" => {
            return Err(fixed(method, "list"));
        }
        _ => return Ok(None),
    }))
}

fn map_method(value: &Value, method: &str, arguments: &[Value]) -> Result<Option<Value>, Error> {
    Ok(Some(match method {
        "keys" => pairs(value)?
            .into_iter()
            .map(|pair| pair.0)
            .collect::<Vec<_>>()
            .into(),
        "values" => pairs(value)?
            .into_iter()
            .map(|pair| pair.1)
            .collect::<Vec<_>>()
            .into(),
        "items" => pairs(value)?
            .into_iter()
            .map(|(key, item)| Value::from(Tuple::from([key, item])))
            .collect::<Vec<_>>()
            .into(),
        "get" => {
            let given = Given::bind("get", "key default", arguments)?;
            let found = value
                .as_object()
                .and_then(|object| given.get(0).and_then(|key| object.get_value(key)));
            found.unwrap_or_else(|| given.get(1).cloned().unwrap_or_else(|| Value::from(())))
        }
        "copy" => super::mutable::made(value)?,
        // A dictionary may hold a value under this name that can be called.
        "update" | "setdefault" | "pop" | "popitem" | "clear" => {
            return Err(fixed(method, "dictionary"));
        }
        _ => return Ok(None),
    }))
}

fn fixed(method: &str, what: &str) -> Error {
    Error::new(
        ErrorKind::InvalidOperation,
        format!(
            "{method}() changes its {what}, and only a {what} made in the template itself can change: start from `x | list`, `dict(x)` or a literal"
        ),
    )
}
