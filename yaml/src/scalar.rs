//! Plain scalars as PyYAML, and so Ansible, resolves them: YAML 1.1, not 1.2.

use crate::Kind;

/// What a plain scalar means; none for a string.
pub(crate) fn resolve(text: &str) -> Option<Kind> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Some(Kind::Null),
        "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Some(Kind::Bool(true));
        }
        "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Some(Kind::Bool(false));
        }
        _ => {}
    }
    // Most strings start with a letter: no number does.
    let first = text.bytes().next()?;
    if !(first.is_ascii_digit() || matches!(first, b'+' | b'-' | b'.')) {
        return None;
    }
    int(text)
        .map(Kind::Int)
        .or_else(|| float(text).map(Kind::Float))
}

/// Binary, octal (a leading 0), decimal, hexadecimal; `_` between digits is left out. A number
/// beyond 64 bits stays a string, so that its digits are not lost.
fn int(text: &str) -> Option<i64> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (radix, digits) = if let Some(rest) = digits.strip_prefix("0b") {
        (2, rest)
    } else if let Some(rest) = digits.strip_prefix("0x") {
        (16, rest)
    } else if digits.len() > 1 && digits.starts_with('0') {
        (8, &digits[1..])
    } else {
        (10, digits)
    };
    if digits.is_empty() || (radix == 10 && digits.starts_with('_')) {
        return None;
    }
    let bare = match digits.replace('_', "") {
        // `0_` is the octal number without digits, which is 0 for Python.
        bare if bare.is_empty() && radix == 8 => "0".to_owned(),
        bare => bare,
    };
    if bare.is_empty() || !bare.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    let signed = if negative { format!("-{bare}") } else { bare };
    i64::from_str_radix(&signed, radix).ok()
}

/// PyYAML's floats have a point; an exponent needs one, too, and a sign (`1e3` is a string).
fn float(text: &str) -> Option<f64> {
    let (sign, bare) = match text.as_bytes().first()? {
        b'-' => (-1.0, &text[1..]),
        b'+' => (1.0, &text[1..]),
        _ => (1.0, text),
    };
    match bare {
        ".inf" | ".Inf" | ".INF" => return Some(sign * f64::INFINITY),
        ".nan" | ".NaN" | ".NAN" if bare.len() == text.len() => return Some(f64::NAN),
        _ => {}
    }
    let (whole, rest) = bare.split_once('.')?;
    let (fraction, exponent) = match rest.find(['e', 'E']) {
        Some(at) => (&rest[..at], Some(&rest[at + 1..])),
        None => (rest, None),
    };
    let digits = |part: &str| {
        part.bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'_')
    };
    let starts_with_digit = |part: &str| {
        part.bytes()
            .next()
            .is_some_and(|byte| byte.is_ascii_digit())
    };
    if !digits(whole) || !digits(fraction) || (whole.is_empty() && !starts_with_digit(fraction)) {
        return None;
    }
    // `-.5` is a string: PyYAML has no sign before a bare point.
    if whole.is_empty() && bare.len() < text.len() {
        return None;
    }
    if !whole.is_empty() && !starts_with_digit(whole) {
        return None;
    }
    if let Some(exponent) = exponent {
        let power = exponent.strip_prefix(['+', '-'])?;
        if power.is_empty() || !power.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
    }
    let plain = bare.replace('_', "");
    let plain = plain.strip_suffix('.').unwrap_or(&plain).to_owned();
    plain.parse::<f64>().ok().map(|value| sign * value)
}

/// `12:30` and `1:30:00`: numbers to base 60 in YAML 1.1, which nobody means.
pub(crate) fn is_sexagesimal(text: &str) -> bool {
    let bare = text.strip_prefix(['+', '-']).unwrap_or(text);
    let mut parts = bare.split(':');
    let first = parts.next().unwrap_or_default();
    let mut count = 0;
    let rest = parts.all(|part| {
        count += 1;
        (1..=2).contains(&part.len())
            && part.bytes().all(|b| b.is_ascii_digit())
            && part.parse::<u8>().is_ok_and(|n| n < 60)
    });
    rest && count > 0
        && !first.is_empty()
        && !first.starts_with('0')
        && first.bytes().all(|b| b.is_ascii_digit() || b == b'_')
}

/// A truth value as Ansible's `type: bool` takes it from a string, quoted or not.
pub(crate) fn truth(text: &str) -> Option<bool> {
    let text = text.trim();
    let is = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    if is(&["yes", "on", "true", "1", "y", "t"]) {
        Some(true)
    } else if is(&["no", "off", "false", "0", "n", "f"]) {
        Some(false)
    } else {
        None
    }
}

/// A number as Python prints it: `1.0`, `1e+16`, `inf`.
pub(crate) fn python_float(value: f64) -> String {
    let size = value.abs();
    if value.is_nan() {
        "nan".to_owned()
    } else if value.is_infinite() {
        value.to_string()
    } else if size != 0.0 && !(1e-4..1e16).contains(&size) {
        let text = format!("{value:e}");
        match text.split_once('e') {
            Some((mantissa, exponent)) => match exponent.strip_prefix('-') {
                Some(digits) => format!("{mantissa}e-{digits:0>2}"),
                None => format!("{mantissa}e+{exponent:0>2}"),
            },
            None => text,
        }
    } else {
        // Rust's `Debug` has the point that Python wants, and no exponent in this range.
        format!("{value:?}")
    }
}

#[cfg(test)]
mod tests {
    use super::{is_sexagesimal, resolve};
    use crate::Kind;

    fn int(text: &str) -> Option<i64> {
        match resolve(text) {
            Some(Kind::Int(value)) => Some(value),
            _ => None,
        }
    }

    fn float(text: &str) -> Option<f64> {
        match resolve(text) {
            Some(Kind::Float(value)) => Some(value),
            _ => None,
        }
    }

    fn is_string(text: &str) -> bool {
        resolve(text).is_none()
    }

    #[test]
    fn words_of_yaml_1_1_are_booleans() {
        for word in ["yes", "Yes", "on", "ON", "True"] {
            assert!(matches!(resolve(word), Some(Kind::Bool(true))), "{word}");
        }
        for word in ["no", "Off", "FALSE"] {
            assert!(matches!(resolve(word), Some(Kind::Bool(false))), "{word}");
        }
        for word in ["y", "n", "yEs", "tRue"] {
            assert!(is_string(word), "{word}");
        }
    }

    #[test]
    fn numbers_are_those_of_pyyaml() {
        assert_eq!(int("0644"), Some(420));
        assert_eq!(int("0b11"), Some(3));
        assert_eq!(int("0x1F"), Some(31));
        assert_eq!(int("1_000"), Some(1000));
        assert_eq!(int("-5"), Some(-5));
        assert_eq!(int("0"), Some(0));
        assert_eq!(int("-9223372036854775808"), Some(i64::MIN));
        for text in [
            "0o644",
            "08",
            "18446744073709551616",
            "1e3",
            "1-2",
            "+",
            "-",
            ".",
            "0x",
            "1.2.3",
            "_1",
        ] {
            assert!(is_string(text), "{text}");
        }
        assert_eq!(float("1.5"), Some(1.5));
        assert_eq!(float("1."), Some(1.0));
        assert_eq!(float(".5"), Some(0.5));
        assert_eq!(float("1.0e+3"), Some(1000.0));
        assert_eq!(float("-.inf"), Some(f64::NEG_INFINITY));
        assert_eq!(float("1_0.5_0"), Some(10.5));
        assert_eq!(int("0_"), Some(0));
        for text in ["1.0e3", "-.5", "+.5", "-.nan", ".iNF", "1.e", "_.5", "."] {
            assert!(is_string(text), "{text}");
        }
    }

    #[test]
    fn truth_and_numbers_of_strings_are_those_of_python() {
        use super::{python_float, truth};
        assert_eq!(
            (truth(" Yes "), truth("OFF"), truth("2"), truth("")),
            (Some(true), Some(false), None, None)
        );
        let floats = [
            (1.0, "1.0"),
            (0.1, "0.1"),
            (1e16, "1e+16"),
            (1.5e-5, "1.5e-05"),
            (-0.0, "-0.0"),
            (f64::NAN, "nan"),
        ];
        for (value, text) in floats {
            assert_eq!(python_float(value), text);
        }
        assert_eq!(python_float(f64::NEG_INFINITY), "-inf");
    }

    #[test]
    fn times_are_seen_but_stay_strings() {
        assert!(is_sexagesimal("12:30"));
        assert!(is_sexagesimal("1:30:00"));
        assert!(!is_sexagesimal("12:60"));
        assert!(!is_sexagesimal("a:1"));
        assert!(!is_sexagesimal("12"));
        assert!(is_string("12:30"));
        assert!(is_string("2024-01-01"));
    }
}
