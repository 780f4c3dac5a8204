//! `is version('1.2', '>=')`.

use std::cmp::Ordering;

use minijinja::{Error, State, Value};

use crate::template::filters;
use crate::template::given::{Given, Test, failed};
use crate::template::python::text;

pub(super) const TESTS: &[Test] = &[Test {
    names: "version version_compare",
    parameters: "version operator strict version_type",
    run: version,
}];

/// A piece of a version: numbers before words at the same place.
#[derive(Debug, PartialEq, Eq)]
enum Piece {
    Number(u64),
    Word(String),
}

fn pieces(written: &str) -> Vec<Piece> {
    let mut found = Vec::new();
    let mut rest = written;
    while let Some(first) = rest.chars().next() {
        let (kind, end) = if first.is_ascii_digit() {
            (0, rest.find(|c: char| !c.is_ascii_digit()))
        } else if first == '.' {
            (1, Some(1))
        } else {
            (2, rest.find(|c: char| c.is_ascii_digit() || c == '.'))
        };
        let end = end.unwrap_or(rest.len());
        match kind {
            0 => found.push(
                rest[..end]
                    .parse()
                    .map_or_else(|_| Piece::Word(rest[..end].to_owned()), Piece::Number),
            ),
            1 => {}
            _ => found.push(Piece::Word(rest[..end].to_owned())),
        }
        rest = &rest[end..];
    }
    found
}

/// Python's loose comparison; where it refuses to compare a number with a word, the number is the later.
fn loose(a: &str, b: &str) -> Ordering {
    let (a, b) = (pieces(a), pieces(b));
    for (x, y) in a.iter().zip(&b) {
        let order = match (x, y) {
            (Piece::Number(x), Piece::Number(y)) => x.cmp(y),
            (Piece::Word(x), Piece::Word(y)) => x.cmp(y),
            (Piece::Number(_), Piece::Word(_)) => Ordering::Greater,
            (Piece::Word(_), Piece::Number(_)) => Ordering::Less,
        };
        if order != Ordering::Equal {
            return order;
        }
    }
    a.len().cmp(&b.len())
}

/// Semantic versions and Python's own: a pre-release comes before its release, and missing numbers are zeros.
fn released(a: &str, b: &str) -> Ordering {
    let split = |written: &str| -> (Vec<u64>, String) {
        let plain = written
            .trim_start_matches(['v', 'V'])
            .split('+')
            .next()
            .unwrap_or_default()
            .to_owned();
        let end = plain
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(plain.len());
        let numbers = plain[..end]
            .split('.')
            .filter_map(|number| number.parse().ok())
            .collect();
        (
            numbers,
            plain[end..]
                .trim_start_matches(['-', '.', '_'])
                .to_lowercase(),
        )
    };
    let ((mut a, a_pre), (mut b, b_pre)) = (split(a), split(b));
    let length = a.len().max(b.len());
    a.resize(length, 0);
    b.resize(length, 0);
    let rank = |pre: &str| {
        if pre.is_empty() {
            1
        } else if pre.starts_with("post") {
            2
        } else {
            0
        }
    };
    a.cmp(&b)
        .then_with(|| rank(&a_pre).cmp(&rank(&b_pre)))
        .then_with(|| loose(&a_pre, &b_pre))
}

fn version(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<bool, Error> {
    let (a, b) = (text::str(value)?, given.need(0).and_then(text::str)?);
    if a.is_empty() {
        return Err(failed("Input version value cannot be empty"));
    }
    if b.is_empty() {
        return Err(failed(
            "Version parameter to compare against cannot be empty",
        ));
    }
    if given.some(2).is_some() && given.some(3).is_some() {
        return Err(failed("Cannot specify both 'strict' and 'version_type'"));
    }
    let kind = given.text(
        3,
        if given.flag(2, false) {
            "strict"
        } else {
            "loose"
        },
    )?;
    let shape = match kind.as_str() {
        "strict" => Some((r"^\d+\.\d+(\.\d+)?([ab]\d+)?$", "version number")),
        "semver" | "semantic" => Some((
            r"^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$",
            "semantic version",
        )),
        "pep440" => Some((
            r"(?i)^v?(\d+!)?\d+(\.\d+)*[-_.]?((a|b|c|rc|alpha|beta|pre|preview)[-_.]?\d*)?(-\d+|[-_.]?(post|rev|r)[-_.]?\d*)?([-_.]?dev[-_.]?\d*)?(\+[a-z0-9]+([-_.][a-z0-9]+)*)?$",
            "version",
        )),
        _ => None,
    };
    if let Some((shape, what)) = shape {
        let shape = filters::python_regex(shape, false, false)?;
        for version in [&a, &b] {
            if !shape.is_match(version)? {
                return Err(failed(format!(
                    "Version comparison failed: invalid {what} '{version}'"
                )));
            }
        }
    }
    let order = match kind.as_str() {
        "loose" => loose(&a, &b),
        "strict" | "semver" | "semantic" | "pep440" => released(&a, &b),
        other => {
            return Err(given.wrong(&format!(
                "knows the types loose, strict, semver and pep440, not `{other}`"
            )));
        }
    };
    Ok(match given.text(1, "eq")?.as_str() {
        "==" | "=" | "eq" => order.is_eq(),
        "<" | "lt" => order.is_lt(),
        "<=" | "le" => order.is_le(),
        ">" | "gt" => order.is_gt(),
        ">=" | "ge" => order.is_ge(),
        "!=" | "<>" | "ne" => order.is_ne(),
        other => return Err(given.wrong(&format!("knows no operator `{other}`"))),
    })
}
