//! Numbers and sizes.

use minijinja::value::ValueKind;
use minijinja::{Error, State, Value};

use crate::template::given::{Filter, Given, failed, items};
use crate::template::python::text;

pub(super) const FILTERS: &[Filter] = &[
    Filter {
        names: "int",
        parameters: "default base",
        run: int,
    },
    Filter {
        names: "float",
        parameters: "default",
        run: float,
    },
    Filter {
        names: "abs",
        parameters: "",
        run: abs,
    },
    Filter {
        names: "round",
        parameters: "precision method",
        run: round,
    },
    Filter {
        names: "log",
        parameters: "base",
        run: log,
    },
    Filter {
        names: "pow",
        parameters: "exponent",
        run: pow,
    },
    Filter {
        names: "root",
        parameters: "base",
        run: root,
    },
    Filter {
        names: "sum",
        parameters: "attribute start",
        run: sum,
    },
    Filter {
        names: "filesizeformat",
        parameters: "binary",
        run: filesizeformat,
    },
    Filter {
        names: "human_readable",
        parameters: "isbits unit",
        run: human_readable,
    },
    Filter {
        names: "human_to_bytes",
        parameters: "default_unit isbits",
        run: human_to_bytes,
    },
];

fn number(value: &Value) -> Result<f64, Error> {
    match value.kind() {
        ValueKind::Number | ValueKind::Bool => f64::try_from(value.clone()),
        _ => Err(failed(format!(
            "expected a number, found {}",
            text::type_name(value)
        ))),
    }
}

/// A number for a function of mathematics.
fn real(value: &Value, function: &str) -> Result<f64, Error> {
    number(value).map_err(|_| {
        failed(format!(
            "{function}() can only be used on numbers: must be real number, not {}",
            text::type_name(value)
        ))
    })
}

/// A whole number where the float has one that fits, as Python's `int()`.
fn whole(number: f64) -> Option<Value> {
    if !number.is_finite() || number.abs() >= 1.7e38 {
        return None;
    }
    let whole = number.trunc() as i128;
    Some(i64::try_from(whole).map_or_else(|_| Value::from(whole), Value::from))
}

fn int(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let default = given.get(0).cloned().unwrap_or_else(|| Value::from(0));
    let base = u32::try_from(given.int(1, 10)?)
        .ok()
        .filter(|base| (2..=36).contains(base))
        .ok_or_else(|| given.wrong("needs a `base` from 2 to 36"))?;
    Ok(match value.kind() {
        ValueKind::Bool => Value::from(i64::from(value.is_true())),
        ValueKind::Number if value.is_integer() => value.clone(),
        ValueKind::Number => whole(number(value)?).unwrap_or(default),
        ValueKind::String => parse_int(value.as_str().unwrap_or_default(), base).unwrap_or(default),
        _ => default,
    })
}

fn parse_int(written: &str, base: u32) -> Option<Value> {
    let plain = written.trim().replace('_', "");
    let (sign, digits) = match plain.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, plain.strip_prefix('+').unwrap_or(&plain)),
    };
    let lower = digits.to_ascii_lowercase();
    let prefix = match base {
        2 => "0b",
        8 => "0o",
        16 => "0x",
        _ => "",
    };
    let digits = lower.strip_prefix(prefix).unwrap_or(&lower);
    if let Ok(found) = i64::from_str_radix(digits, base) {
        return Some(Value::from(sign * found));
    }
    if let Ok(found) = i128::from_str_radix(digits, base) {
        return Some(Value::from(i128::from(sign) * found));
    }
    (base == 10)
        .then(|| plain.parse::<f64>().ok().and_then(whole))
        .flatten()
}

fn float(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let default = || given.get(0).cloned().unwrap_or_else(|| Value::from(0.0));
    Ok(match value.kind() {
        ValueKind::Number | ValueKind::Bool => Value::from(number(value)?),
        ValueKind::String => value
            .as_str()
            .and_then(|written| written.trim().replace('_', "").parse::<f64>().ok())
            .map_or_else(default, Value::from),
        _ => default(),
    })
}

fn abs(_: &mut State<'_, '_>, value: &Value, _: &Given) -> Result<Value, Error> {
    if let Some(whole) = value.as_i64().filter(|_| value.is_integer()) {
        return Ok(whole
            .checked_abs()
            .map_or_else(|| Value::from(whole.unsigned_abs()), Value::from));
    }
    Ok(Value::from(number(value)?.abs()))
}

fn round(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let precision = i32::try_from(given.int(0, 0)?).unwrap_or(0);
    let common = given.text(1, "common")? == "common";
    if value.kind() == ValueKind::Number && value.is_integer() && common && precision >= 0 {
        return Ok(value.clone());
    }
    let is_whole = value.kind() == ValueKind::Number && value.is_integer();
    let value = number(value)?;
    let scale = 10_f64.powi(precision.abs());
    let scaled = if precision < 0 {
        value / scale
    } else {
        value * scale
    };
    let rounded = match given.text(1, "common")?.as_str() {
        "ceil" => scaled.ceil(),
        "floor" => scaled.floor(),
        "common" if precision >= 0 => {
            // Correct decimal rounding, halves to even, as Python's round().
            let places = usize::try_from(precision).unwrap_or(0);
            return Ok(format!("{value:.places$}")
                .parse::<f64>()
                .map_or(Value::from(value), Value::from));
        }
        "common" if is_whole => {
            return Ok(
                whole(scaled.round_ties_even() * scale).unwrap_or_else(|| Value::from(value))
            );
        }
        "common" => scaled.round_ties_even(),
        other => {
            return Err(given.wrong(&format!(
                "knows the methods common, ceil and floor, not `{other}`"
            )));
        }
    };
    Ok(Value::from(if precision < 0 {
        rounded * scale
    } else {
        rounded / scale
    }))
}

fn log(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let value = real(value, "log")?;
    Ok(Value::from(match given.some(0) {
        None => value.ln(),
        Some(base) => {
            let base = real(base, "log")?;
            if base == 10.0 {
                value.log10()
            } else {
                value.ln() / base.ln()
            }
        }
    }))
}

fn pow(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    Ok(Value::from(
        real(value, "pow")?.powf(real(given.need(0)?, "pow")?),
    ))
}

fn root(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let value = real(value, "root")?;
    let base = given.some(0).map_or(Ok(2.0), number)?;
    Ok(Value::from(if base == 2.0 {
        value.sqrt()
    } else {
        value.powf(1.0 / base)
    }))
}

fn sum(state: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let mut total = given.get(1).cloned().unwrap_or_else(|| Value::from(0));
    for item in items(value)? {
        let item = match given.some(0) {
            Some(attribute) => super::selection::attribute(&item, attribute)?,
            None => item,
        };
        total = add(state, &total, &item)?;
    }
    Ok(total)
}

/// `+`, for numbers and for lists.
fn add(_: &mut State<'_, '_>, left: &Value, right: &Value) -> Result<Value, Error> {
    if let (Some(a), Some(b)) = (left.as_i64(), right.as_i64())
        && left.is_integer()
        && right.is_integer()
        && let Some(sum) = a.checked_add(b)
    {
        return Ok(Value::from(sum));
    }
    if left.kind() == ValueKind::Seq || left.kind() == ValueKind::Iterable {
        let mut joined = items(left)?;
        joined.extend(items(right)?);
        return Ok(Value::from(joined));
    }
    Ok(Value::from(number(left)? + number(right)?))
}

const UNITS: [char; 8] = ['K', 'M', 'G', 'T', 'P', 'E', 'Z', 'Y'];

fn filesizeformat(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let bytes = match value.as_str() {
        Some(written) => written
            .trim()
            .parse()
            .map_err(|_| failed(format!("`{written}` is no number")))?,
        None => number(value)?,
    };
    let binary = given.flag(0, false);
    let base: f64 = if binary { 1024.0 } else { 1000.0 };
    if bytes == 1.0 {
        return Ok(Value::from("1 Byte"));
    }
    if bytes < base {
        return Ok(Value::from(format!("{} Bytes", bytes.trunc() as i64)));
    }
    let mut unit = base;
    for (at, name) in ["k", "M", "G", "T", "P", "E", "Z", "Y"].iter().enumerate() {
        unit *= base;
        if bytes < unit || at == 7 {
            let name = if binary {
                format!("{}i", name.to_uppercase())
            } else {
                (*name).to_owned()
            };
            return Ok(Value::from(format!("{:.1} {name}B", base * bytes / unit)));
        }
    }
    Ok(Value::from(bytes))
}

fn human_readable(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let size = match value.as_str() {
        Some(written) => written.trim().parse().map_err(|_| {
            failed(format!(
                "human_readable() failed on bad input: `{written}` is no number"
            ))
        })?,
        None => number(value)?,
    };
    let base = if given.flag(0, false) {
        "bits"
    } else {
        "Bytes"
    };
    let wanted = given.some(1).map(text::str).transpose()?;
    for (at, unit) in UNITS.iter().enumerate().rev() {
        let limit = 1024_f64.powi(i32::try_from(at).unwrap_or(0) + 1);
        let chosen = match &wanted {
            Some(wanted) => wanted.to_ascii_uppercase().starts_with(*unit),
            None => size >= limit,
        };
        if chosen {
            let letter = if base == "bits" { 'b' } else { 'B' };
            return Ok(Value::from(format!("{:.2} {unit}{letter}", size / limit)));
        }
    }
    Ok(Value::from(format!("{size:.2} {base}")))
}

fn human_to_bytes(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let written = text::str(value)?;
    let wrong = || {
        failed(format!(
            "`{written}` is no size: write a number and a unit, such as `10 MB`"
        ))
    };
    let plain = written.trim();
    let split = plain
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(plain.len());
    let size: f64 = plain[..split].parse().map_err(|_| wrong())?;
    let mut unit = plain[split..].trim().to_owned();
    if unit.is_empty() {
        unit = given.text(0, "")?;
    }
    let bits = given.flag(1, false);
    let Some(first) = unit.chars().next() else {
        return Ok(Value::from(size.round_ties_even() as i64));
    };
    let upper = first.to_ascii_uppercase();
    let rest = &unit[first.len_utf8()..];
    let power = match UNITS.iter().position(|known| *known == upper) {
        Some(at) => i32::try_from(at).unwrap_or(0) + 1,
        None if upper == 'B' => 0,
        None => return Err(wrong()),
    };
    let said = if power == 0 { unit.as_str() } else { rest };
    let fits = match said {
        "" => true,
        "b" | "bit" | "bits" => bits,
        "B" => !bits,
        other => !bits && ["byte", "bytes"].contains(&other.to_ascii_lowercase().as_str()),
    };
    if !fits {
        return Err(wrong());
    }
    Ok(Value::from(
        (size * 1024_f64.powi(power)).round_ties_even() as i64
    ))
}
