//! What the rewriting puts into a template in the place of operators. Never written by a user.

use minijinja::value::ValueKind;
use minijinja::{Error, State, Value};

use crate::template::given::{Filter, Given, failed, unusable};
use crate::template::poison;
use crate::template::python::{format, mutable, text};

pub(super) const FILTERS: &[Filter] = &[
    Filter {
        names: "__step",
        parameters: "",
        run: step,
    },
    Filter {
        names: "__look",
        parameters: "",
        run: look,
    },
    Filter {
        names: "__concat",
        parameters: "other",
        run: concat,
    },
    Filter {
        names: "__percent",
        parameters: "other",
        run: percent,
    },
    Filter {
        names: "__mutable",
        parameters: "",
        run: made_mutable,
    },
];

fn step(_: &mut State<'_, '_>, value: &Value, _: &Given) -> Result<Value, Error> {
    Ok(poison::step(value))
}

fn look(_: &mut State<'_, '_>, value: &Value, _: &Given) -> Result<Value, Error> {
    unusable(std::slice::from_ref(value))?;
    Ok(value.clone())
}

fn concat(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let other = given.need(0)?;
    if let Some(poisoned) = unusable(&[value.clone(), other.clone()])? {
        return Ok(poisoned);
    }
    Ok(Value::from(text::str(value)? + &text::str(other)?))
}

/// `%`: formats a text, or takes the remainder with the sign of the divisor.
fn percent(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let other = given.need(0)?;
    if let Some(poisoned) = unusable(&[value.clone(), other.clone()])? {
        return Ok(poisoned);
    }
    if let Some(template) = value.as_str() {
        return format::percent(template, other).map(Value::from);
    }
    let numeric = |value: &Value| matches!(value.kind(), ValueKind::Number | ValueKind::Bool);
    if !numeric(value) || !numeric(other) {
        return Err(failed(format!(
            "`%` cannot be used on {} and {}",
            text::type_name(value),
            text::type_name(other)
        )));
    }
    let is_float = |value: &Value| value.kind() == ValueKind::Number && !value.is_integer();
    if is_float(value) || is_float(other) {
        let (a, b) = (f64::try_from(value.clone())?, f64::try_from(other.clone())?);
        if b == 0.0 {
            return Err(failed("division by zero"));
        }
        return Ok(Value::from(a - b * (a / b).floor()));
    }
    let (a, b) = (
        i128::try_from(value.clone())?,
        i128::try_from(other.clone())?,
    );
    let remainder = a.checked_rem(b).ok_or_else(|| failed("division by zero"))?;
    let floored = if remainder != 0 && (remainder < 0) != (b < 0) {
        remainder + b
    } else {
        remainder
    };
    Ok(i64::try_from(floored).map_or_else(|_| Value::from(floored), Value::from))
}

fn made_mutable(_: &mut State<'_, '_>, value: &Value, _: &Given) -> Result<Value, Error> {
    mutable::made(value)
}
