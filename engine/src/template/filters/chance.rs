//! Chance: by seed the same as Python's, without one from the controller's randomness.

use minijinja::value::ValueKind;
use minijinja::{Error, State, Value};

use crate::template::evaluation;
use crate::template::given::{Filter, Given, failed, items};
use crate::template::python::mersenne::Mersenne;

pub(super) const FILTERS: &[Filter] = &[
    Filter {
        names: "random",
        parameters: "start step seed",
        run: random,
    },
    Filter {
        names: "shuffle",
        parameters: "seed",
        run: shuffle,
    },
];

/// Python's `Random(seed)`.
///
/// # Errors
/// If the seed is neither a text nor a number.
pub(crate) fn seeded(seed: &Value) -> Result<Mersenne, Error> {
    match seed.kind() {
        ValueKind::String => Ok(Mersenne::of_text(seed.as_str().unwrap_or_default())),
        ValueKind::Bool => Ok(Mersenne::of_number(u128::from(seed.is_true()))),
        ValueKind::Number if seed.is_integer() => Ok(Mersenne::of_number(
            i128::try_from(seed.clone())?.unsigned_abs(),
        )),
        _ => Err(failed("a seed is a text or a whole number")),
    }
}

fn dice(given: &Given, place: usize) -> Result<Mersenne, Error> {
    match given.some(place) {
        Some(seed) => seeded(seed),
        None => Ok(Mersenne::of_number(u128::from(
            evaluation::current()?.templar.controller().random(),
        ))),
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
    let mut dice = dice(given, 2)?;
    let Some(end) = value.as_i64().filter(|_| value.is_integer()) else {
        if given.some(0).is_some() || given.some(1).is_some() {
            return Err(failed(
                "start and step can only be used with integer values",
            ));
        }
        let all = match value.as_str() {
            Some(written) => written
                .chars()
                .map(|c| Value::from(c.to_string()))
                .collect(),
            None => items(value)
                .map_err(|_| failed("random can only be used on sequences and integers"))?,
        };
        if all.is_empty() {
            return Ok(Value::UNDEFINED);
        }
        let at = dice.below(all.len() as u64) as usize;
        return Ok(all.into_iter().nth(at).unwrap_or(Value::UNDEFINED));
    };
    let (start, step) = (given.int(0, 0)?, given.int(1, 1)?);
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
    if !matches!(
        value.kind(),
        ValueKind::Seq | ValueKind::Iterable | ValueKind::String
    ) {
        return Ok(value.clone());
    }
    let mut dice = dice(given, 0)?;
    let mut all = match value.as_str() {
        Some(written) => written
            .chars()
            .map(|c| Value::from(c.to_string()))
            .collect(),
        None => items(value)?,
    };
    for at in (1..all.len()).rev() {
        all.swap(at, dice.below(at as u64 + 1) as usize);
    }
    Ok(all.into())
}
