//! What the rewriting puts into a template in the place of operators. Never written by a user.

use fleet_yaml::{Node, Source};
use minijinja::value::ValueKind;
use minijinja::{Error, State, Value};

use crate::template::evaluation;
use crate::template::failure::{EvalError, Place};

use crate::template::given::{Filter, Given, failed, unknown};
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
        names: "__minus",
        parameters: "other",
        run: minus,
    },
    Filter {
        names: "__less",
        parameters: "other",
        run: |_, value, given| compared(value, given, "<"),
    },
    Filter {
        names: "__most",
        parameters: "other",
        run: |_, value, given| compared(value, given, "<="),
    },
    Filter {
        names: "__more",
        parameters: "other",
        run: |_, value, given| compared(value, given, ">"),
    },
    Filter {
        names: "__least",
        parameters: "other",
        run: |_, value, given| compared(value, given, ">="),
    },
    Filter {
        names: "__render",
        parameters: "",
        run: rendered,
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
    unknown(std::slice::from_ref(value))?;
    Ok(value.clone())
}

fn concat(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let other = given.need(0)?;
    if let Some(poisoned) = unknown(&[value.clone(), other.clone()])? {
        return Ok(poisoned);
    }
    Ok(Value::from(text::str(value)? + &text::str(other)?))
}

/// `-` on numbers, and the time between two moments.
fn minus(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let other = given.need(0)?;
    if let Some(poisoned) = unknown(&[value.clone(), other.clone()])? {
        return Ok(poisoned);
    }
    if let Some(difference) = super::time::difference(value, other)? {
        return Ok(difference);
    }
    let numeric = |value: &Value| matches!(value.kind(), ValueKind::Number | ValueKind::Bool);
    let whole = |value: &Value| value.is_integer() || value.kind() == ValueKind::Bool;
    if !numeric(value) || !numeric(other) {
        return Err(failed(format!(
            "unsupported operand type(s) for -: '{}' and '{}'",
            text::type_name(value),
            text::type_name(other)
        )));
    }
    if whole(value) && whole(other) {
        let (a, b) = (
            i128::try_from(value.clone())?,
            i128::try_from(other.clone())?,
        );
        let made = a
            .checked_sub(b)
            .ok_or_else(|| failed("the difference is too large a number"))?;
        return Ok(i64::try_from(made).map_or_else(|_| Value::from(made), Value::from));
    }
    Ok(Value::from(
        f64::try_from(value.clone())? - f64::try_from(other.clone())?,
    ))
}

/// `%`: formats a text, or takes the remainder with the sign of the divisor.
fn percent(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let other = given.need(0)?;
    if let Some(poisoned) = unknown(&[value.clone(), other.clone()])? {
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

fn compared(value: &Value, given: &Given, operator: &str) -> Result<Value, Error> {
    let other = given.need(0)?;
    if let Some(poisoned) = unknown(&[value.clone(), other.clone()])? {
        return Ok(poisoned);
    }
    ordered(value, other, operator).map(Value::from)
}

/// Whether one value stands to another as an operator says. Numbers are before and after numbers, texts texts, lists
/// lists; Python has no order between the kinds.
///
/// # Errors
/// If the two have no order.
pub(crate) fn ordered(value: &Value, other: &Value, operator: &str) -> Result<bool, Error> {
    let family = |value: &Value| match value.kind() {
        ValueKind::Bool | ValueKind::Number => Some(0),
        ValueKind::String => Some(1),
        ValueKind::Seq | ValueKind::Iterable if text::is_tuple(value) => Some(2),
        ValueKind::Seq | ValueKind::Iterable => Some(3),
        ValueKind::Plain => Some(4),
        _ => None,
    };
    if family(value).is_none() || family(value) != family(other) {
        return Err(failed(format!(
            "'{operator}' not supported between instances of '{}' and '{}'",
            text::type_name(value),
            text::type_name(other)
        )));
    }
    let is_nan = |value: &Value| f64::try_from(value.clone()).is_ok_and(f64::is_nan);
    let order = value.cmp(other);
    Ok(
        !(family(value) == Some(0) && (is_nan(value) || is_nan(other)))
            && match operator {
                "<" => order.is_lt(),
                "<=" => order.is_le(),
                ">" => order.is_gt(),
                _ => order.is_ge(),
            },
    )
}

/// A text with a template in it, written inside of a template as what a lookup shall look for.
fn rendered(_: &mut State<'_, '_>, value: &Value, _: &Given) -> Result<Value, Error> {
    let written = text::str(value)?;
    let source = Source::new("<lookup>", &*written);
    let node = Node::string(&written, &source.span(0, written.len()));
    evaluation::current()?
        .text(&written, &Place::Scalar(&node))
        .map_err(EvalError::into_minijinja)
}

fn made_mutable(_: &mut State<'_, '_>, value: &Value, _: &Given) -> Result<Value, Error> {
    mutable::made(value)
}
