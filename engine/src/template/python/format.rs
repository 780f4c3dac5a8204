//! `'%s-%05d' % (a, b)`, as in Python.

use minijinja::value::ValueKind;
use minijinja::{Error, Value};

use super::text::{float, repr, str};
use crate::template::given::{failed, items};

/// The widest field there is: wider ones are a mistake.
const WIDEST: usize = 10_000;

/// One `%…` of a format.
#[derive(Default)]
struct Directive {
    key: Option<String>,
    left: bool,
    zero: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    width: usize,
    precision: Option<usize>,
}

/// Formats `values` (a list, a dictionary for `%(name)s`, or one value) by a Python format.
///
/// # Errors
/// If the format is not one, or the values do not fit it.
pub(crate) fn percent(format: &str, values: &Value) -> Result<String, Error> {
    let list = matches!(values.kind(), ValueKind::Seq | ValueKind::Iterable) && values.is_tuple();
    let positional = if list {
        items(values)?
    } else {
        vec![values.clone()]
    };
    let mut next = positional.into_iter();
    let mut named = false;
    let mut out = String::new();
    let mut rest = format.chars().peekable();
    while let Some(c) = rest.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut directive = Directive::default();
        if rest.peek() == Some(&'(') {
            rest.next();
            directive.key = Some(rest.by_ref().take_while(|c| *c != ')').collect());
        }
        while let Some(flag) = rest.next_if(|c| "-0+ #".contains(*c)) {
            match flag {
                '-' => directive.left = true,
                '0' => directive.zero = true,
                '+' => directive.plus = true,
                ' ' => directive.space = true,
                _ => directive.alternate = true,
            }
        }
        let star = |next: &mut dyn Iterator<Item = Value>| {
            next.next()
                .and_then(|value| value.as_usize())
                .ok_or_else(|| failed("`*` in a format needs a whole number"))
        };
        directive.width = if rest.next_if_eq(&'*').is_some() {
            star(&mut next)?
        } else {
            digits(&mut rest).unwrap_or(0)
        };
        if rest.next_if_eq(&'.').is_some() {
            directive.precision = Some(if rest.next_if_eq(&'*').is_some() {
                star(&mut next)?
            } else {
                digits(&mut rest).unwrap_or(0)
            });
        }
        if directive.width > WIDEST
            || directive
                .precision
                .is_some_and(|precision| precision > WIDEST)
        {
            return Err(failed("the format asks for too wide a field"));
        }
        while rest.next_if(|c| "hlL".contains(*c)).is_some() {}
        let conversion = rest
            .next()
            .ok_or_else(|| failed(format!("the format `{format}` ends in the middle of a `%`")))?;
        if conversion == '%' {
            out.push('%');
            continue;
        }
        let value = match &directive.key {
            Some(key) => {
                named = true;
                let value = values.get_attr(key)?;
                if value.is_undefined() {
                    return Err(failed(format!(
                        "the format needs `{key}`, which was not given"
                    )));
                }
                value
            }
            None => next.next().ok_or_else(|| {
                failed(format!(
                    "the format `{format}` needs more values than it got"
                ))
            })?,
        };
        out.push_str(&directive.apply(conversion, &value)?);
    }
    if !named && values.kind() != ValueKind::Map && next.next().is_some() {
        return Err(failed(format!(
            "the format `{format}` got more values than it needs"
        )));
    }
    Ok(out)
}

fn digits(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<usize> {
    let mut found: Option<usize> = None;
    while let Some(digit) = rest.peek().and_then(|c| c.to_digit(10)) {
        rest.next();
        found = Some(
            found
                .unwrap_or(0)
                .saturating_mul(10)
                .saturating_add(digit as usize),
        );
    }
    found
}

impl Directive {
    fn apply(&self, conversion: char, value: &Value) -> Result<String, Error> {
        let precision = self.precision.unwrap_or(6);
        let whole = || self.whole(conversion, value);
        let (sign, body) = match conversion {
            's' => (String::new(), self.cut(str(value)?)),
            'r' | 'a' => (String::new(), self.cut(repr(value)?)),
            'c' => (String::new(), self.character(value)?),
            'd' | 'i' | 'u' => self.signed(&whole()?.to_string()),
            'o' => {
                let number = whole()?;
                self.signed(&format!(
                    "{}{:o}",
                    if number < 0 { "-" } else { "" },
                    number.unsigned_abs()
                ))
            }
            'x' | 'X' => {
                let number = whole()?;
                let prefix = if self.alternate { "0x" } else { "" };
                let made = format!(
                    "{}{prefix}{:x}",
                    if number < 0 { "-" } else { "" },
                    number.unsigned_abs()
                );
                self.signed(&if conversion == 'X' {
                    made.to_uppercase()
                } else {
                    made
                })
            }
            'f' | 'F' => self.signed(&format!("{:.precision$}", number(value)?)),
            'e' | 'E' => {
                let made = exponent(number(value)?, precision);
                self.signed(&if conversion == 'E' {
                    made.to_uppercase()
                } else {
                    made
                })
            }
            'g' | 'G' => {
                let made = general(number(value)?, precision.max(1));
                self.signed(&if conversion == 'G' {
                    made.to_uppercase()
                } else {
                    made
                })
            }
            other => return Err(failed(format!("a format knows no `%{other}`"))),
        };
        let length = sign.chars().count() + body.chars().count();
        let missing = self.width.saturating_sub(length);
        let numeric = !"srac".contains(conversion);
        Ok(if self.left {
            format!("{sign}{body}{}", " ".repeat(missing))
        } else if self.zero && numeric {
            format!("{sign}{}{body}", "0".repeat(missing))
        } else {
            format!("{}{sign}{body}", " ".repeat(missing))
        })
    }

    fn cut(&self, text: String) -> String {
        match self.precision {
            Some(precision) => text.chars().take(precision).collect(),
            None => text,
        }
    }

    fn character(&self, value: &Value) -> Result<String, Error> {
        if let Some(text) = value.as_str().filter(|text| text.chars().count() == 1) {
            return Ok(text.to_owned());
        }
        let code = value
            .as_i64()
            .and_then(|code| u32::try_from(code).ok())
            .and_then(char::from_u32);
        code.map(String::from)
            .ok_or_else(|| failed("`%c` needs one character"))
    }

    fn whole(&self, conversion: char, value: &Value) -> Result<i128, Error> {
        match value.kind() {
            ValueKind::Bool => Ok(i128::from(value.is_true())),
            ValueKind::Number if value.is_integer() => i128::try_from(value.clone()),
            ValueKind::Number if "diu".contains(conversion) => {
                Ok(f64::try_from(value.clone())?.trunc() as i128)
            }
            _ => Err(failed(format!(
                "`%{conversion}` needs a number, got {}",
                super::text::type_name(value)
            ))),
        }
    }

    fn signed(&self, written: &str) -> (String, String) {
        match written.strip_prefix('-') {
            Some(body) => ("-".to_owned(), body.to_owned()),
            None if self.plus => ("+".to_owned(), written.to_owned()),
            None if self.space => (" ".to_owned(), written.to_owned()),
            None => (String::new(), written.to_owned()),
        }
    }
}

fn number(value: &Value) -> Result<f64, Error> {
    match value.kind() {
        ValueKind::Number | ValueKind::Bool => f64::try_from(value.clone()),
        _ => Err(failed(format!(
            "a format for numbers got {}",
            super::text::type_name(value)
        ))),
    }
}

fn exponent(number: f64, precision: usize) -> String {
    let made = format!("{number:.precision$e}");
    let Some((digits, power)) = made.split_once('e') else {
        return made;
    };
    let (sign, power) = power
        .strip_prefix('-')
        .map_or(('+', power), |power| ('-', power));
    format!("{digits}e{sign}{power:0>2}")
}

fn general(number: f64, precision: usize) -> String {
    if number == 0.0 || !number.is_finite() {
        return float(number).trim_end_matches(".0").to_owned();
    }
    let scientific = exponent(number, precision - 1);
    let power: i32 = scientific
        .split_once('e')
        .and_then(|(_, power)| power.parse().ok())
        .unwrap_or(0);
    let trim = |text: &str| {
        if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text.to_owned()
        }
    };
    if power < -4 || power >= i32::try_from(precision).unwrap_or(i32::MAX) {
        let (digits, power) = scientific.split_once('e').unwrap_or((&scientific, "+00"));
        return format!("{}e{power}", trim(digits));
    }
    let places = usize::try_from(i32::try_from(precision).unwrap_or(0) - 1 - power).unwrap_or(0);
    trim(&format!("{number:.places$}"))
}

#[cfg(test)]
mod tests {
    use minijinja::value::Tuple;

    use super::*;

    fn formatted(format: &str, values: Vec<Value>) -> String {
        percent(format, &Value::from(Tuple::from(values))).unwrap()
    }

    #[test]
    fn formats_as_python_does() {
        assert_eq!(formatted("%s-%05d", vec!["a".into(), 42.into()]), "a-00042");
        assert_eq!(
            formatted("%-5s|%5s|%.2s", vec!["a".into(), "b".into(), "cde".into()]),
            "a    |    b|cd"
        );
        assert_eq!(
            formatted(
                "%+d % d %x %#X %o",
                vec![1.into(), 2.into(), 255.into(), 255.into(), 8.into()]
            ),
            "+1  2 ff 0XFF 10"
        );
        assert_eq!(
            formatted(
                "%.2f %e %g %g %g",
                vec![
                    2.675.into(),
                    12345.678.into(),
                    0.0001.into(),
                    1e-5.into(),
                    1234567.0.into()
                ]
            ),
            "2.67 1.234568e+04 0.0001 1e-05 1.23457e+06"
        );
        assert_eq!(
            formatted("%r %s%%", vec!["a".into(), Value::from(())]),
            "'a' None%"
        );
    }

    #[test]
    fn one_value_needs_no_tuple() {
        assert_eq!(percent("%s", &Value::from(vec![1, 2])).unwrap(), "[1, 2]");
    }

    #[test]
    fn names_take_from_a_dictionary() {
        assert_eq!(
            percent(
                "%(a)s=%(b)03d",
                &Value::from_pairs([("a", Value::from("x")), ("b", Value::from(7))])
            )
            .unwrap(),
            "x=007"
        );
    }

    #[test]
    fn too_few_and_too_many_values_are_refused() {
        assert!(percent("%s %s", &Value::from("a")).is_err());
        assert!(
            percent(
                "%s",
                &Value::from(Tuple::from(vec![Value::from(1), Value::from(2)]))
            )
            .is_err()
        );
        assert!(percent("%z", &Value::from("a")).is_err());
    }
}
