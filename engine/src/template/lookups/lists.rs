//! Lookups that rearrange lists.

use minijinja::value::ValueKind;
use minijinja::{Error, Value};

use super::{Asked, Lookup};
use crate::template::given::{failed, items};
use crate::template::python::{format, text};

pub(super) const LOOKUPS: &[Lookup] = &[
    Lookup {
        names: "items",
        run: |asked| opened(&asked.terms),
    },
    Lookup {
        names: "list",
        run: |asked| Ok(asked.terms.clone()),
    },
    Lookup {
        names: "flattened community.general.flattened",
        run: |asked| flattened(&asked.terms),
    },
    Lookup {
        names: "dict",
        run: dict,
    },
    Lookup {
        names: "indexed_items",
        run: indexed_items,
    },
    Lookup {
        names: "nested cartesian community.general.cartesian",
        run: nested,
    },
    Lookup {
        names: "together",
        run: together,
    },
    Lookup {
        names: "subelements",
        run: subelements,
    },
    Lookup {
        names: "sequence",
        run: sequence,
    },
    Lookup {
        names: "random_choice",
        run: random_choice,
    },
];

fn is_list(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable)
}

/// The terms with lists among them opened, one level.
fn opened(terms: &[Value]) -> Result<Vec<Value>, Error> {
    let mut made = Vec::new();
    for term in terms {
        if is_list(term) {
            made.extend(items(term)?)
        } else {
            made.push(term.clone())
        }
    }
    Ok(made)
}

/// The terms with all lists in them opened.
pub(super) fn flattened(terms: &[Value]) -> Result<Vec<Value>, Error> {
    let mut made = Vec::new();
    for term in terms {
        if is_list(term) {
            made.extend(flattened(&items(term)?)?)
        } else {
            made.push(term.clone())
        }
    }
    Ok(made)
}

fn dict(asked: &Asked) -> Result<Vec<Value>, Error> {
    let mut made = Vec::new();
    for term in opened(&asked.terms)? {
        if term.kind() != ValueKind::Map {
            return Err(failed(format!(
                "the 'dict' lookup plugin expects a dictionary, got {} of type {}",
                text::repr(&term)?,
                text::type_name(&term)
            )));
        }
        for (key, value) in text::pairs(&term)? {
            made.push(Value::from_pairs([("key", key), ("value", value)]));
        }
    }
    Ok(made)
}

fn indexed_items(asked: &Asked) -> Result<Vec<Value>, Error> {
    Ok(opened(&asked.terms)?
        .into_iter()
        .enumerate()
        .map(|(at, item)| text::tuple([Value::from(at), item]))
        .collect())
}

/// `with_nested` gives one list of lists, `query('nested', a, b)` gives several terms.
fn columns(terms: &[Value]) -> Result<Vec<Vec<Value>>, Error> {
    terms
        .iter()
        .map(|term| {
            if is_list(term) {
                opened(&items(term)?)
            } else {
                Ok(vec![term.clone()])
            }
        })
        .collect()
}

fn nested(asked: &Asked) -> Result<Vec<Value>, Error> {
    let columns = columns(&asked.terms)?;
    if columns.is_empty() {
        return Err(failed("nested needs at least one list"));
    }
    let mut rows: Vec<Vec<Value>> = vec![Vec::new()];
    for column in &columns {
        if rows.len().saturating_mul(column.len()) > 1_000_000 {
            return Err(failed("nested makes more than a million items"));
        }
        rows = rows
            .iter()
            .flat_map(|row| {
                column
                    .iter()
                    .map(|item| [row.clone(), vec![item.clone()]].concat())
            })
            .collect();
    }
    Ok(rows.into_iter().map(Value::from).collect())
}

fn together(asked: &Asked) -> Result<Vec<Value>, Error> {
    let columns = columns(&asked.terms)?;
    if columns.is_empty() {
        return Err(failed("together needs at least one list"));
    }
    let rows = columns.iter().map(Vec::len).max().unwrap_or(0);
    let cell = |column: &Vec<Value>, row: usize| {
        column.get(row).cloned().unwrap_or_else(|| Value::from(()))
    };
    Ok((0..rows)
        .map(|row| {
            Value::from(
                columns
                    .iter()
                    .map(|column| cell(column, row))
                    .collect::<Vec<_>>(),
            )
        })
        .collect())
}

fn subelements(asked: &Asked) -> Result<Vec<Value>, Error> {
    const SHAPE: &str = "subelements lookup expects a list of two or three items, first a dict or a list, second a string pointing to the subkey";
    let [outer, path, flags @ ..] = asked.terms.as_slice() else {
        return Err(failed(SHAPE));
    };
    let Some(path) = path.as_str().filter(|_| {
        flags.len() < 2
            && matches!(
                outer.kind(),
                ValueKind::Map | ValueKind::Seq | ValueKind::Iterable
            )
    }) else {
        return Err(failed(SHAPE));
    };
    let flag = |of: &Value, name: &str| {
        of.get_attr(name)
            .is_ok_and(|value| !value.is_undefined() && value.is_true())
    };
    if let Some(flags) = flags.first() {
        let known = |(key, _): &(Value, Value)| key.as_str() == Some("skip_missing");
        if flags.kind() != ValueKind::Map || !text::pairs(flags)?.iter().all(known) {
            return Err(failed(
                "the optional third item must be a dict with flags ('skip_missing',)",
            ));
        }
    }
    let skip = flags
        .first()
        .is_some_and(|flags| flag(flags, "skip_missing"))
        || asked.option_flag("skip_missing", false);
    let outer = if outer.kind() == ValueKind::Map {
        if flag(outer, "skipped") {
            return Ok(Vec::new());
        }
        text::pairs(outer)?.into_iter().map(|pair| pair.1).collect()
    } else {
        items(outer)?
    };
    let mut made = Vec::new();
    for item in outer {
        if item.kind() != ValueKind::Map {
            return Err(failed(format!(
                "subelements lookup expects a dictionary, got '{}'",
                text::str(&item)?
            )));
        }
        // What a loop over a previous task skipped has nothing in it.
        if flag(&item, "skipped") {
            continue;
        }
        let Some(inner) = inside(&item, path, skip)? else {
            continue;
        };
        // The list itself is left out of what goes with each of its elements.
        let rest = match path.contains('.') {
            false => Value::from_pairs(
                text::pairs(&item)?
                    .into_iter()
                    .filter(|(key, _)| key.as_str() != Some(path)),
            ),
            true => item.clone(),
        };
        made.extend(
            items(&inner)?
                .into_iter()
                .map(|element| text::tuple([rest.clone(), element])),
        );
    }
    Ok(made)
}

/// The list at the end of a path. None: there is none, and there need not be one.
fn inside(item: &Value, path: &str, skip: bool) -> Result<Option<Value>, Error> {
    let mut inner = item.clone();
    let steps: Vec<&str> = path.split('.').collect();
    for (at, step) in steps.iter().enumerate() {
        let next = inner.get_attr(step)?;
        if next.is_undefined() {
            return if skip {
                Ok(None)
            } else {
                Err(failed(format!(
                    "could not find '{step}' key in iterated item {}",
                    text::repr(&inner)?
                )))
            };
        }
        let last = at + 1 == steps.len();
        if (last && !is_list(&next)) || (!last && next.kind() != ValueKind::Map) {
            if skip {
                return Ok(None);
            }
            let what = if last { "list" } else { "dictionary" };
            return Err(failed(format!(
                "the key {step} should point to a {what}, got {}",
                text::repr(&next)?
            )));
        }
        inner = next;
    }
    Ok(Some(inner))
}

/// `start=0 end=10 stride=2 format=host%02d`, `count=4`, or `0-10/2:host%02d`.
fn sequence(asked: &Asked) -> Result<Vec<Value>, Error> {
    let mut made = Vec::new();
    let mut written = asked.texts()?;
    if written.is_empty() && asked.options.iter().any(|(name, _)| name != "wantlist") {
        written.push(String::new());
    }
    for term in written {
        let mut range = Range {
            start: 1,
            end: None,
            count: None,
            stride: 1,
            format: "%d".to_owned(),
        };
        for (name, value) in &asked.options {
            range.set(name, &text::str(value)?)?;
        }
        if term.contains('=') {
            for word in term.split_whitespace() {
                let (name, value) = word
                    .split_once('=')
                    .ok_or_else(|| failed(format!("`{word}` is no setting of sequence")))?;
                range.set(name, value.trim_matches(['\'', '"']))?;
            }
        } else if !term.is_empty() {
            range.short(&term)?;
        }
        range.items(&mut made)?;
    }
    Ok(made)
}

struct Range {
    start: i64,
    end: Option<i64>,
    count: Option<i64>,
    stride: i64,
    format: String,
}

impl Range {
    fn set(&mut self, name: &str, value: &str) -> Result<(), Error> {
        match name {
            "start" => self.start = whole(value)?,
            "end" => self.end = Some(whole(value)?),
            "count" => self.count = Some(whole(value)?),
            "stride" => self.stride = whole(value)?,
            "format" => self.format = value.to_owned(),
            "wantlist" | "errors" => {}
            other => return Err(failed(format!("sequence knows no setting `{other}`"))),
        }
        Ok(())
    }

    fn short(&mut self, term: &str) -> Result<(), Error> {
        let (range, format) = term
            .split_once(':')
            .map_or((term, None), |(range, format)| (range, Some(format)));
        let (range, stride) = range
            .split_once('/')
            .map_or((range, None), |(range, stride)| (range, Some(stride)));
        match range.split_once('-').filter(|(start, _)| !start.is_empty()) {
            Some((start, end)) => {
                self.start = whole(start)?;
                self.end = Some(whole(end)?);
            }
            None => self.end = Some(whole(range)?),
        }
        if let Some(stride) = stride {
            self.stride = whole(stride)?;
        }
        if let Some(format) = format {
            self.format = format.to_owned();
        }
        Ok(())
    }

    fn items(&self, made: &mut Vec<Value>) -> Result<(), Error> {
        let end = match (self.count, self.end) {
            (Some(_), Some(_)) => return Err(failed("sequence takes count or end, not both")),
            (Some(0), None) => return Ok(()),
            (Some(count), None) => {
                let last = self.start.saturating_add(count.saturating_mul(self.stride));
                last.saturating_sub(1)
            }
            (None, Some(end)) => end,
            (None, None) => return Err(failed("sequence needs count or end")),
        };
        if self.stride == 0 {
            return Ok(());
        }
        if (self.stride > 0) != (end >= self.start) && end != self.start {
            return Err(failed(format!(
                "sequence cannot count from {} to {end} by {}",
                self.start, self.stride
            )));
        }
        let mut at = self.start;
        while if self.stride > 0 {
            at <= end
        } else {
            at >= end
        } {
            if made.len() > 1_000_000 {
                return Err(failed("sequence makes more than a million items"));
            }
            made.push(format::percent(&self.format, &Value::from(at))?.into());
            let Some(next) = at.checked_add(self.stride) else {
                break;
            };
            at = next;
        }
        Ok(())
    }
}

fn whole(written: &str) -> Result<i64, Error> {
    let written = written.trim();
    let parsed = match written.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16),
        None => match written
            .strip_prefix('0')
            .filter(|digits| !digits.is_empty())
        {
            Some(digits) => i64::from_str_radix(digits.trim_start_matches('o'), 8),
            None => written.parse(),
        },
    };
    parsed.map_err(|_| failed(format!("sequence needs whole numbers, not `{written}`")))
}

fn random_choice(asked: &Asked) -> Result<Vec<Value>, Error> {
    let number = asked.evaluation.templar.controller().random();
    let at = (number % asked.terms.len().max(1) as u64) as usize;
    Ok(asked.terms.get(at).cloned().into_iter().collect())
}
