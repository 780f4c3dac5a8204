//! Texts.

use minijinja::value::{Tuple, ValueKind};
use minijinja::{Error, State, Value};

use crate::template::given::{Filter, Given, failed};
use crate::template::python::{format, methods, text};

pub(super) const FILTERS: &[Filter] = &[
    Filter {
        names: "string",
        parameters: "",
        run: string,
    },
    Filter {
        names: "lower",
        parameters: "",
        run: lower,
    },
    Filter {
        names: "upper",
        parameters: "",
        run: upper,
    },
    Filter {
        names: "capitalize",
        parameters: "",
        run: capitalize,
    },
    Filter {
        names: "title",
        parameters: "",
        run: title,
    },
    Filter {
        names: "trim",
        parameters: "chars",
        run: trim,
    },
    Filter {
        names: "replace",
        parameters: "old new count",
        run: replace,
    },
    Filter {
        names: "split",
        parameters: "sep maxsplit",
        run: split,
    },
    Filter {
        names: "format",
        parameters: "* **",
        run: formatted,
    },
    Filter {
        names: "indent",
        parameters: "width first blank",
        run: indent,
    },
    Filter {
        names: "center",
        parameters: "width",
        run: center,
    },
    Filter {
        names: "truncate",
        parameters: "length killwords end leeway",
        run: truncate,
    },
    Filter {
        names: "wordcount",
        parameters: "",
        run: wordcount,
    },
    Filter {
        names: "wordwrap",
        parameters: "width break_long_words wrapstring break_on_hyphens",
        run: wordwrap,
    },
    Filter {
        names: "comment",
        parameters: "style decoration newline prefix prefix_count postfix postfix_count beginning end",
        run: comment,
    },
    Filter {
        names: "quote",
        parameters: "",
        run: quote,
    },
    Filter {
        names: "escape e forceescape",
        parameters: "",
        run: escape,
    },
    Filter {
        names: "safe",
        parameters: "",
        run: string,
    },
    Filter {
        names: "striptags",
        parameters: "",
        run: striptags,
    },
    Filter {
        names: "xmlattr",
        parameters: "autospace",
        run: xmlattr,
    },
];

fn string(_: &mut State<'_, '_>, value: &Value, _: &Given) -> Result<Value, Error> {
    text::str(value).map(Value::from)
}

fn lower(_: &mut State<'_, '_>, value: &Value, _: &Given) -> Result<Value, Error> {
    Ok(text::str(value)?.to_lowercase().into())
}

fn upper(_: &mut State<'_, '_>, value: &Value, _: &Given) -> Result<Value, Error> {
    Ok(text::str(value)?.to_uppercase().into())
}

fn capitalize(_: &mut State<'_, '_>, value: &Value, _: &Given) -> Result<Value, Error> {
    let text = text::str(value)?;
    let mut letters = text.chars();
    let first: String = letters
        .next()
        .into_iter()
        .flat_map(char::to_uppercase)
        .collect();
    Ok(Value::from(first + &letters.as_str().to_lowercase()))
}

/// Words begin after blanks, dashes and opening brackets: `it's` stays one word.
fn title(_: &mut State<'_, '_>, value: &Value, _: &Given) -> Result<Value, Error> {
    let mut out = String::new();
    let mut inside = false;
    for c in text::str(value)?.chars() {
        if c.is_whitespace() || "-({[<".contains(c) {
            out.push(c);
            inside = false;
        } else if std::mem::replace(&mut inside, true) {
            out.extend(c.to_lowercase());
        } else {
            out.extend(c.to_uppercase());
        }
    }
    Ok(out.into())
}

fn trim(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let text = text::str(value)?;
    Ok(match given.some(0).map(text::str).transpose()? {
        Some(characters) => text.trim_matches(|c| characters.contains(c)),
        None => text.trim(),
    }
    .into())
}

fn replace(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let (text, old, new) = (
        text::str(value)?,
        given.need(0).and_then(text::str)?,
        given.need(1).and_then(text::str)?,
    );
    Ok(match usize::try_from(given.int(2, -1)?) {
        Ok(count) => text.replacen(&old, &new, count),
        Err(_) => text.replace(&old, &new),
    }
    .into())
}

fn split(state: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let none = || Value::from(());
    let arguments = [
        given.get(0).cloned().unwrap_or_else(none),
        given.get(1).cloned().unwrap_or_else(|| Value::from(-1)),
    ];
    methods::call(state, &text::str(value)?.into(), "split", &arguments)
}

fn formatted(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let format = text::str(value)?;
    if !given.rest.is_empty() && !given.named.is_empty() {
        return Err(given.wrong("takes values by place or by name, not both"));
    }
    let values = match given.named.is_empty() {
        true => Value::from(Tuple::from(given.rest.clone())),
        false => Value::from_pairs(given.named.clone()),
    };
    format::percent(&format, &values).map(Value::from)
}

fn indent(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let text = text::str(value)?;
    let by = match given.some(0) {
        Some(width) if width.kind() == ValueKind::String => text::str(width)?,
        _ => " ".repeat(usize::try_from(given.int(0, 4)?).unwrap_or(0).min(10_000)),
    };
    let (first, blank) = (given.flag(1, false), given.flag(2, false));
    let mut out = String::new();
    for (at, line) in text.split_inclusive('\n').enumerate() {
        let indented = if at == 0 {
            first
        } else {
            blank || !line.trim_end_matches('\n').is_empty()
        };
        if indented {
            out.push_str(&by);
        }
        out.push_str(line);
    }
    if blank && text.ends_with('\n') {
        out.push_str(&by);
    }
    Ok(out.into())
}

fn center(state: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    methods::call(
        state,
        &text::str(value)?.into(),
        "center",
        &[given.get(0).cloned().unwrap_or_else(|| Value::from(80))],
    )
}

fn truncate(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let text: Vec<char> = text::str(value)?.chars().collect();
    let end = given.text(2, "...")?;
    let size = |place, default| {
        given
            .int(place, default)
            .map(|size| usize::try_from(size).unwrap_or(0))
    };
    let (length, leeway) = (size(0, 255)?, size(3, 5)?);
    if text.len() <= length.saturating_add(leeway) {
        return Ok(value.clone());
    }
    let kept: String = text[..length.saturating_sub(end.chars().count())]
        .iter()
        .collect();
    if given.flag(1, false) {
        return Ok(Value::from(kept + &end));
    }
    Ok(Value::from(format!(
        "{}{end}",
        kept.rsplit_once(' ')
            .map_or(kept.as_str(), |(head, _)| head)
    )))
}

fn wordcount(_: &mut State<'_, '_>, value: &Value, _: &Given) -> Result<Value, Error> {
    Ok(Value::from(
        text::str(value)?
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .filter(|word| !word.is_empty())
            .count(),
    ))
}

fn wordwrap(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let width = usize::try_from(given.int(0, 79)?).unwrap_or(0).max(1);
    let break_long = given.flag(1, true);
    let between = given.text(2, "\n")?;
    let hyphens = given.flag(3, true);
    let text = text::str(value)?;
    let lines: Vec<String> = text
        .lines()
        .map(|line| wrapped(line, width, break_long, hyphens).join(&between))
        .collect();
    Ok(lines.join(&between).into())
}

fn wrapped(line: &str, width: usize, break_long: bool, hyphens: bool) -> Vec<String> {
    let mut lines = Vec::new();
    let mut current = String::new();
    let mut pieces: Vec<String> = Vec::new();
    for piece in line.split_inclusive(' ') {
        match hyphens {
            true => pieces.extend(piece.split_inclusive('-').map(str::to_owned)),
            false => pieces.push(piece.to_owned()),
        }
    }
    for piece in pieces {
        let length = |text: &str| text.chars().count();
        let mut piece = piece;
        if length(&current) + length(piece.trim_end()) > width && !current.is_empty() {
            lines.push(std::mem::take(&mut current).trim_end().to_owned());
        }
        while break_long && length(piece.trim_end()) > width {
            let rest: String = piece.chars().skip(width).collect();
            lines.push(piece.chars().take(width).collect());
            piece = rest;
        }
        current.push_str(&piece);
    }
    if !current.trim_end().is_empty() || lines.is_empty() {
        lines.push(current.trim_end().to_owned());
    }
    lines
}

fn comment(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let style = given.text(0, "plain")?;
    let (decoration, beginning, end) = match style.as_str() {
        "plain" => ("# ", "", ""),
        "erlang" => ("% ", "", ""),
        "c" => ("// ", "", ""),
        "cblock" => (" * ", "/*", " */"),
        "xml" => (" - ", "<!--", "-->"),
        other => {
            return Err(failed(format!(
                "Invalid style '{other}': there are plain, erlang, c, cblock and xml"
            )));
        }
    };
    let decoration = given.text(1, decoration)?;
    let newline = given.text(2, "\n")?;
    let (beginning, end) = (given.text(7, beginning)?, given.text(8, end)?);
    let bare = decoration.trim_end().to_owned();
    let block = |text: String, count: i64| {
        (0..count.clamp(0, 1000))
            .map(|_| format!("{text}{newline}"))
            .collect::<String>()
    };
    let prefix = match given.text(3, &bare)? {
        empty if empty.is_empty() => String::new(),
        // A prefix that is a newline needs no other.
        line if line == newline => block(String::new(), given.int(4, 1)?),
        prefix => block(prefix, given.int(4, 1)?),
    };
    let postfix_count = given.int(6, 1)?;
    let postfix_text = given.text(5, &bare)?;
    let postfix = (0..postfix_count.clamp(0, 1000))
        .map(|_| format!("{newline}{postfix_text}"))
        .collect::<String>();
    let text = text::str(value)?;
    let lines: Vec<&str> = text.split(&*newline).collect();
    let body: Vec<String> = lines
        .iter()
        .enumerate()
        .map(|(at, line)| {
            // An empty line has no blank at its end, except the last.
            if line.is_empty() && at + 1 < lines.len() {
                decoration.trim_end().to_owned()
            } else {
                format!("{decoration}{line}")
            }
        })
        .collect();
    let beginning = if beginning.is_empty() {
        String::new()
    } else {
        beginning + &newline
    };
    let end = if end.is_empty() {
        String::new()
    } else {
        format!("{newline}{end}")
    };
    Ok(format!("{beginning}{prefix}{}{postfix}{end}", body.join(&newline)).into())
}

/// The text as one word for a shell.
pub(crate) fn shell_quoted(text: &str) -> String {
    if !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "@%+=:,./-_".contains(c))
    {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\"'\"'"))
}

fn quote(_: &mut State<'_, '_>, value: &Value, _: &Given) -> Result<Value, Error> {
    let text = if value.is_none() {
        String::new()
    } else {
        text::str(value)?
    };
    Ok(shell_quoted(&text).into())
}

/// The text with the signs of HTML replaced.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\'' => out.push_str("&#39;"),
            '"' => out.push_str("&#34;"),
            c => out.push(c),
        }
    }
    out
}

fn escape(_: &mut State<'_, '_>, value: &Value, _: &Given) -> Result<Value, Error> {
    Ok(escaped(&text::str(value)?).into())
}

fn striptags(_: &mut State<'_, '_>, value: &Value, _: &Given) -> Result<Value, Error> {
    let text = text::str(value)?;
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some(start) = rest.find('<') {
        out.push_str(&rest[..start]);
        let end = if rest[start..].starts_with("<!--") {
            rest[start..].find("-->").map(|at| at + 3)
        } else {
            rest[start..].find('>').map(|at| at + 1)
        };
        let Some(end) = end else { break };
        rest = &rest[start + end..];
    }
    out.push_str(rest);
    let words: Vec<&str> = out.split_whitespace().collect();
    let plain = words.join(" ");
    Ok(plain
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&#34;", "\"")
        .replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&amp;", "&")
        .into())
}

fn xmlattr(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let mut parts = Vec::new();
    for (key, item) in text::pairs(value)? {
        if item.is_none() || item.is_undefined() {
            continue;
        }
        let key = text::str(&key)?;
        if key.contains(|c: char| c.is_whitespace() || "/>=".contains(c)) {
            return Err(failed(format!("`{key}` is no name of an attribute")));
        }
        parts.push(format!(
            "{}=\"{}\"",
            escaped(&key),
            escaped(&text::str(&item)?)
        ));
    }
    let joined = parts.join(" ");
    Ok(Value::from(if given.flag(0, true) && !joined.is_empty() {
        format!(" {joined}")
    } else {
        joined
    }))
}
