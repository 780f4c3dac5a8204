//! Lists in pieces and in rows: cut up, opened, paired, and every way to combine their items.

use minijinja::value::ValueKind;
use minijinja::{Error, State, Value};

use crate::template::given::{Filter, Given, failed, items};
use crate::template::python::text;

pub(super) const FILTERS: &[Filter] = &[
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
];

/// The most items a filter makes out of few.
const MOST: usize = 1_000_000;

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
            text::tuple(
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
        .map(|at| text::tuple(row(at)))
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
    Ok(rows.into_iter().map(text::tuple).collect::<Vec<_>>().into())
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
        made.push(text::tuple(chosen.clone()));
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
        made.push(text::tuple(
            chosen.iter().map(|at| all[*at].clone()).collect::<Vec<_>>(),
        ));
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
        None => items(path).map_err(|_| failed("subelements must be a list or a string"))?,
    };
    let skip_missing = given.flag(1, false);
    let outer = if value.kind() == ValueKind::Map {
        text::pairs(value)?.into_iter().map(|pair| pair.1).collect()
    } else {
        items(value).map_err(|_| failed("obj must be a list of dicts or a nested dict"))?
    };
    let mut made = Vec::new();
    for item in outer {
        let mut inner = item.clone();
        for step in &steps {
            if !inner.is_undefined() && inner.kind() != ValueKind::Map {
                return Err(failed(format!(
                    "the key {step} should point to a dictionary, got '{}'",
                    text::str(&inner)?
                )));
            }
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
                "could not find {} key in iterated item {}: give it one, or say skip_missing=true",
                text::repr(path)?,
                text::repr(&item)?
            )));
        }
        if !matches!(inner.kind(), ValueKind::Seq | ValueKind::Iterable) {
            return Err(failed(format!(
                "the key {} should point to a list, got {}",
                text::repr(path)?,
                text::repr(&inner)?
            )));
        }
        for element in items(&inner)? {
            made.push(text::tuple([item.clone(), element]));
        }
    }
    Ok(made.into())
}
