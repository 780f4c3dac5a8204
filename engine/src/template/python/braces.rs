//! `'{:>5} {name!r}'.format(…)`, as in Python.

use minijinja::value::ValueKind;
use minijinja::{Error, Value};

use super::text::{float, repr, str, type_name};
use crate::template::given::failed;

/// The widest field there is: wider ones are a mistake.
const WIDEST: usize = 10_000;

/// What is put into the fields.
pub(crate) struct Arguments {
    pub(crate) by_place: Vec<Value>,
    pub(crate) by_name: Vec<(String, Value)>,
}

/// The text with its fields filled.
///
/// # Errors
/// If it is no format, or an argument is missing or does not fit its field.
pub(crate) fn format(text: &str, arguments: &Arguments) -> Result<String, Error> {
    Formatter { arguments, next: 0 }.fill(text, 0)
}

struct Formatter<'a> {
    arguments: &'a Arguments,
    /// The place of the argument that the next field without a name takes.
    next: usize,
}

impl Formatter<'_> {
    fn fill(&mut self, text: &str, depth: usize) -> Result<String, Error> {
        if depth > 2 {
            return Err(failed("the fields of a format are nested too deeply"));
        }
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            out.push_str(&rest[..at]);
            let brace = &rest[at..=at];
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix(brace) {
                out.push_str(brace);
                rest = after;
                continue;
            }
            if brace == "}" {
                return Err(failed("a single `}` in a format: write `}}`"));
            }
            let end = closing(rest).ok_or_else(|| failed("a `{` in a format is never closed"))?;
            out.push_str(&self.field(&rest[..end], depth)?);
            rest = &rest[end + 1..];
        }
        Ok(out + rest)
    }

    fn field(&mut self, field: &str, depth: usize) -> Result<String, Error> {
        let mut brackets = 0_usize;
        let split = field.find(|c| {
            match c {
                '[' => brackets += 1,
                ']' => brackets = brackets.saturating_sub(1),
                _ => {}
            }
            brackets == 0 && (c == '!' || c == ':')
        });
        let (name, rest) = split.map_or((field, ""), |at| field.split_at(at));
        let value = self.value(name)?;
        let (conversion, spec) = match rest.strip_prefix('!') {
            Some(rest) => rest.split_once(':').unwrap_or((rest, "")),
            None => ("", rest.strip_prefix(':').unwrap_or(rest)),
        };
        let value = match conversion {
            "" => value,
            "r" | "a" => Value::from(repr(&value)?),
            "s" => Value::from(str(&value)?),
            other => return Err(failed(format!("a format knows no conversion `!{other}`"))),
        };
        let spec = self.fill(spec, depth + 1)?;
        Spec::parse(&spec)?.apply(&value)
    }

    /// The value that a name such as `0`, `user.name` or `item[key]` means.
    fn value(&mut self, name: &str) -> Result<Value, Error> {
        let end = name.find(['.', '[']).unwrap_or(name.len());
        let (first, mut path) = name.split_at(end);
        let mut value = if first.is_empty() {
            self.next += 1;
            self.placed(self.next - 1)?
        } else if let Ok(place) = first.parse::<usize>() {
            self.placed(place)?
        } else {
            let mut named = self.arguments.by_name.iter();
            let found = named.find(|(known, _)| known == first);
            found
                .map(|(_, value)| value.clone())
                .ok_or_else(|| failed(format!("the format has no value for `{first}`")))?
        };
        while !path.is_empty() {
            let step = if let Some(rest) = path.strip_prefix('[') {
                let (step, rest) = rest
                    .split_once(']')
                    .ok_or_else(|| failed("a `[` in a format is never closed"))?;
                path = rest;
                step
            } else {
                let rest = path.strip_prefix('.').unwrap_or(path);
                let end = rest.find(['.', '[']).unwrap_or(rest.len());
                path = &rest[end..];
                &rest[..end]
            };
            let key = step
                .parse::<i64>()
                .map_or_else(|_| Value::from(step), Value::from);
            value = value.get_item(&key)?;
            if value.is_undefined() {
                return Err(failed(format!(
                    "the format asks for `{name}`, which there is not"
                )));
            }
        }
        Ok(value)
    }

    fn placed(&self, place: usize) -> Result<Value, Error> {
        self.arguments.by_place.get(place).cloned().ok_or_else(|| {
            failed(format!(
                "Replacement index {place} out of range for positional args tuple"
            ))
        })
    }
}

/// Where the field that begins a text ends.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => return Some(at),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// What stands after the colon of a field.
struct Spec {
    fill: char,
    align: Option<char>,
    sign: char,
    alternate: bool,
    width: usize,
    grouping: Option<char>,
    precision: Option<usize>,
    kind: Option<char>,
}

impl Spec {
    fn parse(spec: &str) -> Result<Self, Error> {
        let wrong = || failed(format!("`{spec}` is no format of a field"));
        let mut rest = spec;
        let mut parsed = Self {
            fill: ' ',
            align: None,
            sign: '-',
            alternate: false,
            width: 0,
            grouping: None,
            precision: None,
            kind: None,
        };
        let is_align = |c: char| "<>=^".contains(c);
        let mut characters = rest.chars();
        let (first, second) = (characters.next(), characters.next());
        match (first, second) {
            (Some(fill), Some(align)) if is_align(align) => {
                (parsed.fill, parsed.align) = (fill, Some(align));
                rest = characters.as_str();
            }
            (Some(align), _) if is_align(align) => {
                parsed.align = Some(align);
                rest = &rest[1..];
            }
            _ => {}
        }
        let mut take = |wanted: &[char]| {
            let found = rest.chars().next().filter(|c| wanted.contains(c))?;
            rest = &rest[1..];
            Some(found)
        };
        parsed.sign = take(&['+', '-', ' ']).unwrap_or('-');
        parsed.alternate = take(&['#']).is_some();
        if take(&['0']).is_some() && parsed.align.is_none() {
            (parsed.fill, parsed.align) = ('0', Some('='));
        }
        let number = |rest: &mut &str| -> Result<Option<usize>, Error> {
            let end = rest
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(rest.len());
            let (digits, after) = rest.split_at(end);
            *rest = after;
            if digits.is_empty() {
                return Ok(None);
            }
            digits
                .parse()
                .ok()
                .filter(|number| *number <= WIDEST)
                .map(Some)
                .ok_or_else(|| failed("the format asks for too wide a field"))
        };
        parsed.width = number(&mut rest)?.unwrap_or(0);
        if rest.starts_with([',', '_']) {
            parsed.grouping = rest.chars().next();
            rest = &rest[1..];
        }
        if let Some(after) = rest.strip_prefix('.') {
            rest = after;
            parsed.precision = Some(number(&mut rest)?.ok_or_else(wrong)?);
        }
        let mut characters = rest.chars();
        parsed.kind = characters.next();
        if characters.next().is_some() {
            return Err(wrong());
        }
        Ok(parsed)
    }

    fn apply(&self, value: &Value) -> Result<String, Error> {
        let unknown = || {
            failed(format!(
                "Unknown format code '{}' for object of type '{}'",
                self.kind.unwrap_or(' '),
                type_name(value)
            ))
        };
        let numeric = value.kind() == ValueKind::Number
            || (value.kind() == ValueKind::Bool && self.kind.is_some_and(|kind| kind != 's'));
        if !numeric {
            if !matches!(self.kind, None | Some('s')) {
                return Err(unknown());
            }
            let text = str(value)?;
            let text: String = match self.precision {
                Some(precision) => text.chars().take(precision).collect(),
                None => text,
            };
            return Ok(self.padded("", &text, '<'));
        }
        let whole = i128::try_from(value.clone())
            .ok()
            .filter(|_| value.is_integer() || value.kind() == ValueKind::Bool);
        let (negative, prefix, digits) = match (self.kind, whole) {
            (None | Some('d' | 'n'), Some(number)) => (
                number < 0,
                "",
                self.grouped(&number.unsigned_abs().to_string(), 3),
            ),
            (Some('b'), Some(number)) => (
                number < 0,
                "0b",
                self.grouped(&format!("{:b}", number.unsigned_abs()), 4),
            ),
            (Some('o'), Some(number)) => (
                number < 0,
                "0o",
                self.grouped(&format!("{:o}", number.unsigned_abs()), 4),
            ),
            (Some('x'), Some(number)) => (
                number < 0,
                "0x",
                self.grouped(&format!("{:x}", number.unsigned_abs()), 4),
            ),
            (Some('X'), Some(number)) => (
                number < 0,
                "0X",
                self.grouped(&format!("{:X}", number.unsigned_abs()), 4),
            ),
            (Some('c'), Some(number)) => {
                let c = u32::try_from(number).ok().and_then(char::from_u32);
                return Ok(self.padded("", &c.ok_or_else(unknown)?.to_string(), '<'));
            }
            (None | Some('e' | 'E' | 'f' | 'F' | 'g' | 'G' | 'n' | '%'), _) => {
                let number = if value.kind() == ValueKind::Bool {
                    f64::from(u8::from(value.is_true()))
                } else {
                    f64::try_from(value.clone())?
                };
                let written = self.float(number.abs());
                let (whole, rest) = written.split_at(
                    written
                        .find(|c: char| !c.is_ascii_digit())
                        .unwrap_or(written.len()),
                );
                (
                    number.is_sign_negative(),
                    "",
                    format!("{}{rest}", self.grouped(whole, 3)),
                )
            }
            _ => return Err(unknown()),
        };
        let sign = match (negative, self.sign) {
            (true, _) => "-",
            (false, '+') => "+",
            (false, ' ') => " ",
            _ => "",
        };
        let prefix = if self.alternate { prefix } else { "" };
        Ok(self.padded(&format!("{sign}{prefix}"), &digits, '>'))
    }

    fn float(&self, number: f64) -> String {
        let precision = self.precision.unwrap_or(6);
        match self.kind {
            Some('f' | 'F') => format!("{number:.precision$}"),
            Some('%') => format!("{:.precision$}%", number * 100.0),
            Some('e') => exponent(&format!("{number:.precision$e}")),
            Some('E') => exponent(&format!("{number:.precision$e}")).to_uppercase(),
            Some('g' | 'n') => general(number, precision),
            Some('G') => general(number, precision).to_uppercase(),
            _ => match self.precision {
                Some(precision) => {
                    let short = general(number, precision);
                    if short.contains(['.', 'e', 'n']) {
                        short
                    } else {
                        short + ".0"
                    }
                }
                None => float(number),
            },
        }
    }

    fn grouped(&self, digits: &str, size: usize) -> String {
        let Some(mark) = self.grouping else {
            return digits.to_owned();
        };
        let mut out = String::new();
        for (at, c) in digits.chars().enumerate() {
            if at > 0 && (digits.len() - at).is_multiple_of(size) {
                out.push(mark);
            }
            out.push(c);
        }
        out
    }

    fn padded(&self, sign: &str, text: &str, default: char) -> String {
        let missing = self
            .width
            .saturating_sub(sign.chars().count() + text.chars().count());
        let fill = |count: usize| self.fill.to_string().repeat(count);
        match self.align.unwrap_or(default) {
            '<' => format!("{sign}{text}{}", fill(missing)),
            '^' => format!(
                "{}{sign}{text}{}",
                fill(missing / 2),
                fill(missing - missing / 2)
            ),
            '=' => format!("{sign}{}{text}", fill(missing)),
            _ => format!("{}{sign}{text}", fill(missing)),
        }
    }
}

/// Rust's `1e5` as Python writes it: `1e+05`.
fn exponent(written: &str) -> String {
    match written.split_once('e') {
        Some((digits, exponent)) => {
            let exponent: i32 = exponent.parse().unwrap_or(0);
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
        None => written.to_owned(),
    }
}

/// `%g`: so many digits, without zeros at the end, with an exponent where the number is far from 1.
fn general(number: f64, precision: usize) -> String {
    if !number.is_finite() {
        return float(number);
    }
    let precision = precision.max(1);
    let scientific = format!("{number:.*e}", precision - 1);
    let power: i32 = scientific
        .split_once('e')
        .and_then(|(_, power)| power.parse().ok())
        .unwrap_or(0);
    let trimmed = |digits: &str| {
        if digits.contains('.') {
            digits
                .trim_end_matches('0')
                .trim_end_matches('.')
                .to_owned()
        } else {
            digits.to_owned()
        }
    };
    if power < -4 || power >= precision as i32 {
        let digits = scientific.split('e').next().unwrap_or_default();
        return exponent(&format!("{}e{power}", trimmed(digits)));
    }
    let decimals = (precision as i32 - 1 - power).max(0) as usize;
    trimmed(&format!("{number:.decimals$}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_filled_as_in_python() {
        let arguments = Arguments {
            by_place: vec![
                Value::from("a"),
                Value::from(1_234_567),
                Value::from(2.5),
                Value::from(vec![Value::from("x")]),
            ],
            by_name: vec![("name".to_owned(), Value::from("it's"))],
        };
        for (text, filled) in [
            ("{} {}", "a 1234567"),
            ("{1:,} {1:_x} {1:+d}", "1,234,567 12_d687 +1234567"),
            ("{0!r:>5}|{0:^5}|{0:*<3}", "  'a'|  a  |a**"),
            ("{name!r} {3[0]} {{}}", "\"it's\" x {}"),
            (
                "{2:.2f} {2:08.3f} {2:e} {2:g} {2:%}",
                "2.50 0002.500 2.500000e+00 2.5 250.000000%",
            ),
            (
                "{1:#x} {1:#o} {1:b}",
                "0x12d687 0o4553207 100101101011010000111",
            ),
            ("{0:{1}}", "a"),
        ] {
            let got = format(text, &arguments);
            match text {
                "{0:{1}}" => assert!(got.is_err()),
                _ => assert_eq!(got.unwrap(), filled, "{text}"),
            }
        }
    }
}
