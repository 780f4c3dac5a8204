//! Lists: their ends, their order, their pieces.

use std::cmp::Ordering;

use minijinja::value::ValueKind;
use minijinja::{Error, State, Value};

use super::selection::attribute;
use crate::template::evaluation;
use crate::template::given::{Filter, Given, failed, items};
use crate::template::python::{mutable, text};

pub(super) const FILTERS: &[Filter] = &[
    Filter {
        names: "length count",
        parameters: "",
        run: length,
    },
    Filter {
        names: "list",
        parameters: "",
        run: list,
    },
    Filter {
        names: "first",
        parameters: "",
        run: first,
    },
    Filter {
        names: "last",
        parameters: "",
        run: last,
    },
    Filter {
        names: "reverse",
        parameters: "",
        run: reverse,
    },
    Filter {
        names: "sort",
        parameters: "reverse case_sensitive attribute",
        run: sort,
    },
    Filter {
        names: "min",
        parameters: "case_sensitive attribute",
        run: min,
    },
    Filter {
        names: "max",
        parameters: "case_sensitive attribute",
        run: max,
    },
    Filter {
        names: "join",
        parameters: "d attribute",
        run: join,
    },
    Filter {
        names: "batch",
        parameters: "linecount fill_with",
        run: batch,
    },
    Filter {
        names: "slice",
        parameters: "slices fill_with",
        run: slice,
    },
    Filter {
        names: "flatten",
        parameters: "levels skip_nulls",
        run: flatten,
    },
    Filter {
        names: "zip",
        parameters: "* strict",
        run: zip,
    },
    Filter {
        names: "zip_longest",
        parameters: "* fillvalue",
        run: zip_longest,
    },
    Filter {
        names: "product",
        parameters: "* repeat",
        run: product,
    },
    Filter {
        names: "combinations",
        parameters: "r",
        run: combinations,
    },
    Filter {
        names: "permutations",
        parameters: "r",
        run: permutations,
    },
    Filter {
        names: "subelements",
        parameters: "subelements skip_missing",
        run: subelements,
    },
    Filter {
        names: "groupby",
        parameters: "attribute default case_sensitive",
        run: groupby,
    },
    Filter {
        names: "random",
        parameters: "end seed start step",
        run: random,
    },
    Filter {
        names: "shuffle",
        parameters: "seed",
        run: shuffle,
    },
];

/// The most items a filter makes out of few.
const MOST: usize = 1_000_000;

fn length(_: &mut State<'_, '_>, value: &Value, _: &Given) -> Result<Value, Error> {
    if let Some(length) = value.len() {
        return Ok(Value::from(length));
    }
    match value.kind() {
        ValueKind::Iterable => Ok(Value::from(items(value)?.len())),
        _ => Err(failed(format!("{} has no length", text::type_name(value)))),
    }
}

fn list(_: &mut State<'_, '_>, value: &Value, _: &Given) -> Result<Value, Error> {
    mutable::made(&Value::from(items(value)?))
}

fn first(_: &mut State<'_, '_>, value: &Value, _: &Given) -> Result<Value, Error> {
    Ok(items(value)?.into_iter().next().unwrap_or(Value::UNDEFINED))
}

fn last(_: &mut State<'_, '_>, value: &Value, _: &Given) -> Result<Value, Error> {
    Ok(items(value)?.pop().unwrap_or(Value::UNDEFINED))
}

fn reverse(_: &mut State<'_, '_>, value: &Value, _: &Given) -> Result<Value, Error> {
    if let Some(written) = value.as_str() {
        return Ok(Value::from(written.chars().rev().collect::<String>()));
    }
    let mut all = items(value)?;
    all.reverse();
    Ok(all.into())
}

/// What an item is sorted by: numbers before texts before lists, texts without regard to case unless asked.
#[derive(PartialEq)]
pub(super) enum SortKey {
    None,
    Number(f64, Value),
    Text(String),
    List(Vec<SortKey>),
    Other(Value),
}

impl Eq for SortKey {}

impl Ord for SortKey {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (SortKey::Number(a, x), SortKey::Number(b, y)) => a.total_cmp(b).then_with(|| x.cmp(y)),
            (SortKey::Text(a), SortKey::Text(b)) => a.cmp(b),
            (SortKey::List(a), SortKey::List(b)) => a.cmp(b),
            (SortKey::Other(a), SortKey::Other(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for SortKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl SortKey {
    fn rank(&self) -> u8 {
        match self {
            SortKey::None => 0,
            SortKey::Number(..) => 1,
            SortKey::Text(_) => 2,
            SortKey::List(_) => 3,
            SortKey::Other(_) => 4,
        }
    }
}

pub(super) fn sort_key(value: &Value, case_sensitive: bool) -> SortKey {
    match value.kind() {
        ValueKind::None => SortKey::None,
        ValueKind::Bool | ValueKind::Number => match f64::try_from(value.clone()) {
            Ok(number) => SortKey::Number(number, value.clone()),
            Err(_) => SortKey::Other(value.clone()),
        },
        ValueKind::String => {
            let written = value.as_str().unwrap_or_default();
            SortKey::Text(if case_sensitive {
                written.to_owned()
            } else {
                written.to_lowercase()
            })
        }
        ValueKind::Seq | ValueKind::Iterable => SortKey::List(
            items(value)
                .unwrap_or_default()
                .iter()
                .map(|item| sort_key(item, case_sensitive))
                .collect(),
        ),
        _ => SortKey::Other(value.clone()),
    }
}

/// The items with what they are compared by: themselves, or one or several attributes (`a,b.c`).
fn keyed(
    value: &Value,
    by: Option<&Value>,
    case_sensitive: bool,
) -> Result<Vec<(SortKey, Value)>, Error> {
    let paths: Vec<Value> = match by {
        None => Vec::new(),
        Some(by) => match by.as_str() {
            Some(written) => written
                .split(',')
                .map(|part| Value::from(part.trim()))
                .collect(),
            None => vec![by.clone()],
        },
    };
    let mut found = Vec::new();
    for item in items(value)? {
        let key = if paths.is_empty() {
            sort_key(&item, case_sensitive)
        } else {
            let mut keys = Vec::new();
            for path in &paths {
                let key = attribute(&item, path)?;
                if key.is_undefined() {
                    return Err(failed(format!("an item has no `{path}` to be compared by")));
                }
                keys.push(sort_key(&key, case_sensitive));
            }
            SortKey::List(keys)
        };
        found.push((key, item));
    }
    Ok(found)
}

fn sort(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let mut found = keyed(value, given.some(2), given.flag(1, false))?;
    if given.flag(0, false) {
        // Equal items keep their order, as in Python.
        found.sort_by(|a, b| b.0.cmp(&a.0));
    } else {
        found.sort_by(|a, b| a.0.cmp(&b.0));
    }
    mutable::made(
        &found
            .into_iter()
            .map(|pair| pair.1)
            .collect::<Vec<_>>()
            .into(),
    )
}

fn min(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let found = keyed(value, given.some(1), given.flag(0, false))?;
    let first = found
        .into_iter()
        .reduce(|best, next| if next.0 < best.0 { next } else { best });
    Ok(first.map_or(Value::UNDEFINED, |pair| pair.1))
}

fn max(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let found = keyed(value, given.some(1), given.flag(0, false))?;
    let first = found
        .into_iter()
        .reduce(|best, next| if next.0 > best.0 { next } else { best });
    Ok(first.map_or(Value::UNDEFINED, |pair| pair.1))
}

fn join(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let between = given.text(0, "")?;
    let mut out = String::new();
    for (at, item) in items(value)?.iter().enumerate() {
        if at > 0 {
            out.push_str(&between);
        }
        let item = match given.some(1) {
            Some(path) => &attribute(item, path)?,
            None => item,
        };
        out.push_str(&text::str(item)?);
    }
    Ok(out.into())
}

fn size(given: &Given, place: usize) -> Result<usize, Error> {
    usize::try_from(given.int(place, 0)?)
        .ok()
        .filter(|size| *size > 0)
        .ok_or_else(|| given.wrong("needs a number above 0"))
}

fn batch(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let size = size(given, 0)?;
    let rows = items(value)?
        .chunks(size)
        .map(|row| {
            let mut row = row.to_vec();
            if let Some(fill) = given.some(1).filter(|_| size <= MOST) {
                row.resize(size, fill.clone());
            }
            Value::from(row)
        })
        .collect::<Vec<_>>();
    Ok(rows.into())
}

fn slice(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let slices = size(given, 0)?.min(MOST / 100);
    let all = items(value)?;
    let (each, longer) = (all.len() / slices, all.len() % slices);
    let mut rest = all.into_iter();
    let mut made = Vec::new();
    for at in 0..slices {
        let mut part: Vec<Value> = rest
            .by_ref()
            .take(each + usize::from(at < longer))
            .collect();
        if let Some(fill) = given.some(1).filter(|_| longer > 0 && at >= longer) {
            part.push(fill.clone());
        }
        made.push(Value::from(part));
    }
    Ok(made.into())
}

fn flatten(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let levels = given.some(0).map(|_| given.int(0, 0)).transpose()?;
    let mut made = Vec::new();
    flatten_into(&items(value)?, levels, given.flag(1, true), &mut made)?;
    Ok(made.into())
}

fn flatten_into(
    all: &[Value],
    levels: Option<i64>,
    skip_nulls: bool,
    made: &mut Vec<Value>,
) -> Result<(), Error> {
    for item in all {
        let null = item.is_none() || matches!(item.as_str(), Some("None" | "null"));
        if skip_nulls && null {
            continue;
        }
        match levels {
            _ if !matches!(item.kind(), ValueKind::Seq | ValueKind::Iterable) => {
                made.push(item.clone())
            }
            Some(..1) => made.push(item.clone()),
            _ => flatten_into(
                &items(item)?,
                levels.map(|levels| levels - 1),
                skip_nulls,
                made,
            )?,
        }
    }
    Ok(())
}

fn columns(value: &Value, given: &Given) -> Result<Vec<Vec<Value>>, Error> {
    std::iter::once(value)
        .chain(&given.rest)
        .map(items)
        .collect()
}

fn zip(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let columns = columns(value, given)?;
    let rows = columns.iter().map(Vec::len).min().unwrap_or(0);
    if given.flag(0, false) && columns.iter().any(|column| column.len() != rows) {
        return Err(failed("zip with strict=true needs lists of one length"));
    }
    Ok((0..rows)
        .map(|row| {
            Value::from(
                columns
                    .iter()
                    .map(|column| column[row].clone())
                    .collect::<Vec<_>>(),
            )
        })
        .collect::<Vec<_>>()
        .into())
}

fn zip_longest(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let columns = columns(value, given)?;
    let fill = given.get(0).cloned().unwrap_or_else(|| Value::from(()));
    let rows = columns.iter().map(Vec::len).max().unwrap_or(0);
    let row = |at: usize| {
        columns
            .iter()
            .map(|column| column.get(at).unwrap_or(&fill).clone())
            .collect::<Vec<_>>()
    };
    Ok((0..rows)
        .map(|at| Value::from(row(at)))
        .collect::<Vec<_>>()
        .into())
}

fn product(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let columns = columns(value, given)?;
    let repeat = usize::try_from(given.int(0, 1)?).unwrap_or(0).min(100);
    let mut rows = vec![Vec::new()];
    for _ in 0..repeat {
        for column in &columns {
            if rows.len().saturating_mul(column.len()) > MOST {
                return Err(failed("the product has more than a million items"));
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
    }
    Ok(rows.into_iter().map(Value::from).collect::<Vec<_>>().into())
}

fn combinations(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let all = items(value)?;
    let size = usize::try_from(given.need(0).and_then(|_| given.int(0, 0))?)
        .map_err(|_| given.wrong("needs a number from 0"))?;
    let mut made = Vec::new();
    if size <= all.len() {
        choose(&all, size, &mut Vec::new(), 0, &mut made)?;
    }
    Ok(made.into())
}

fn choose(
    all: &[Value],
    size: usize,
    chosen: &mut Vec<Value>,
    from: usize,
    made: &mut Vec<Value>,
) -> Result<(), Error> {
    if chosen.len() == size {
        if made.len() >= MOST {
            return Err(failed("there are more than a million combinations"));
        }
        made.push(Value::from(chosen.clone()));
        return Ok(());
    }
    // Where too few are left to fill up, nothing can come of it.
    for at in from..=all.len().saturating_sub(size - chosen.len()) {
        chosen.push(all[at].clone());
        choose(all, size, chosen, at + 1, made)?;
        chosen.pop();
    }
    Ok(())
}

fn permutations(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let all = items(value)?;
    let size = match given.some(0) {
        Some(_) => {
            usize::try_from(given.int(0, 0)?).map_err(|_| given.wrong("needs a number from 0"))?
        }
        None => all.len(),
    };
    let mut made = Vec::new();
    if size <= all.len() {
        arrange(&all, size, &mut Vec::new(), &mut made)?;
    }
    Ok(made.into())
}

fn arrange(
    all: &[Value],
    size: usize,
    chosen: &mut Vec<usize>,
    made: &mut Vec<Value>,
) -> Result<(), Error> {
    if chosen.len() == size {
        if made.len() >= MOST {
            return Err(failed("there are more than a million permutations"));
        }
        made.push(
            chosen
                .iter()
                .map(|at| all[*at].clone())
                .collect::<Vec<_>>()
                .into(),
        );
        return Ok(());
    }
    for at in 0..all.len() {
        if !chosen.contains(&at) {
            chosen.push(at);
            arrange(all, size, chosen, made)?;
            chosen.pop();
        }
    }
    Ok(())
}

fn subelements(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let path = given.need(0)?;
    let steps: Vec<Value> = match path.as_str() {
        Some(written) => written.split('.').map(Value::from).collect(),
        None => items(path)?,
    };
    let skip_missing = given.flag(1, false);
    let outer = if value.kind() == ValueKind::Map {
        text::pairs(value)?.into_iter().map(|pair| pair.1).collect()
    } else {
        items(value)?
    };
    let mut made = Vec::new();
    for item in outer {
        let mut inner = item.clone();
        for step in &steps {
            inner = if inner.is_undefined() {
                inner
            } else {
                inner.get_item(step)?
            };
        }
        if inner.is_undefined() {
            if skip_missing {
                continue;
            }
            return Err(failed(format!(
                "an item has no `{path}`: give it one, or say skip_missing=true"
            )));
        }
        for element in items(&inner)? {
            made.push(Value::from(vec![item.clone(), element]));
        }
    }
    Ok(made.into())
}

fn groupby(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let path = given.need(0)?;
    let case_sensitive = given.flag(2, false);
    let mut found = Vec::new();
    for item in items(value)? {
        let mut key = attribute(&item, path)?;
        if key.is_undefined() {
            key = given
                .get(1)
                .cloned()
                .ok_or_else(|| failed(format!("an item has no `{path}` to be grouped by")))?;
        }
        found.push((sort_key(&key, case_sensitive), key, item));
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    let mut groups: Vec<(SortKey, Value, Vec<Value>)> = Vec::new();
    for (sorted_by, key, item) in found {
        match groups.last_mut() {
            Some(group) if group.0 == sorted_by => group.2.push(item),
            _ => groups.push((sorted_by, key, vec![item])),
        }
    }
    Ok(groups
        .into_iter()
        .map(|(_, key, group)| Value::from(vec![key, Value::from(group)]))
        .collect::<Vec<_>>()
        .into())
}

/// A source of numbers that a seed makes repeatable. (Not Python's: the same seed gives other numbers there.)
struct Dice(u64);

impl Dice {
    fn new(given: &Given, place: usize) -> Result<Self, Error> {
        let seed = match given.some(place) {
            Some(seed) => blake3::hash(text::str(seed)?.as_bytes()),
            None => blake3::hash(
                &evaluation::current()?
                    .templar
                    .controller()
                    .random()
                    .to_le_bytes(),
            ),
        };
        Ok(Self(
            seed.as_bytes()
                .iter()
                .take(8)
                .fold(0, |made, byte| made << 8 | u64::from(*byte))
                | 1,
        ))
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((u128::from(self.0) * u128::from(limit)) >> 64) as u64
    }
}

/// A text of random characters of an alphabet.
pub(crate) fn letters(count: usize, alphabet: &str) -> Result<String, Error> {
    let alphabet: Vec<char> = alphabet.chars().collect();
    let controller = evaluation::current()?.templar.clone();
    // Every character from fresh randomness: these are passwords and salts.
    Ok((0..count)
        .filter_map(|_| {
            alphabet.get((controller.controller().random() % alphabet.len().max(1) as u64) as usize)
        })
        .collect())
}

fn random(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let mut dice = Dice::new(given, 1)?;
    let end = if value.is_integer() {
        value.as_i64()
    } else {
        None
    };
    let Some(end) = end else {
        let all = items(value)?;
        let at = dice.below(all.len() as u64) as usize;
        return Ok(all.into_iter().nth(at).unwrap_or(Value::UNDEFINED));
    };
    // `9 | random(1, 2)` counts the end of the range as `end` only by name.
    let (start, step) = match given.some(2) {
        Some(_) => (given.int(2, 0)?, given.int(3, 1)?),
        None => (given.int(0, 0)?, given.int(3, 1)?),
    };
    let step = step.max(1);
    let count = (end.saturating_sub(start).max(0) as u64).div_ceil(step as u64);
    if count == 0 {
        return Err(failed(format!(
            "there is no number from {start} below {end}"
        )));
    }
    Ok(Value::from(start.saturating_add(
        step.saturating_mul(dice.below(count) as i64),
    )))
}

fn shuffle(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let mut dice = Dice::new(given, 0)?;
    let mut all = items(value)?;
    for at in (1..all.len()).rev() {
        all.swap(at, dice.below(at as u64 + 1) as usize);
    }
    Ok(all.into())
}
