//! Host names as inventories write them: `web[01:20].example.org:2222` is twenty names and a port.

use std::net::Ipv6Addr;

/// More names than this in one pattern are taken for a slip.
const MOST: u64 = 1_000_000;

/// Why a range cannot be expanded: what is wrong, as a lowercase fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RangeError {
    /// What is wrong.
    pub(super) message: String,
    /// Where the range begins in the name, in bytes.
    pub(super) at: usize,
    /// How long it is, in bytes.
    pub(super) len: usize,
}

/// Parts a name from its port: `web:2222`, `[::1]:2222`, `web[1:3]:2222`. An IPv6 address without
/// brackets has no port.
pub(super) fn split_port(text: &str) -> (&str, Option<u16>) {
    if let Some(rest) = text.strip_prefix('[')
        && let Some((inner, after)) = rest.split_once(']')
    {
        let port = after.strip_prefix(':').and_then(|port| port.parse().ok());
        let named = !inner.contains(':') && !inner.is_empty();
        if (inner.parse::<Ipv6Addr>().is_ok() && (after.is_empty() || port.is_some()))
            || (named && port.is_some())
        {
            return (inner, port);
        }
    }
    let mut depth = 0_usize;
    let mut colons = text.char_indices().filter(|(_, char)| {
        match char {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        *char == ':' && depth == 0
    });
    match (colons.next(), colons.next()) {
        (Some((at, _)), None) => {
            let digits = &text[at + 1..];
            match digits.parse() {
                Ok(port) if digits.bytes().all(|byte| byte.is_ascii_digit()) && at > 0 => {
                    (&text[..at], Some(port))
                }
                _ => (text, None),
            }
        }
        _ => (text, None),
    }
}

/// Whether a name holds a range: a `:` between brackets.
pub(super) fn has_range(name: &str) -> bool {
    find(name).is_some()
}

/// All names that a pattern stands for, in order; the last range varies fastest.
pub(super) fn expand(pattern: &str) -> Result<Vec<String>, RangeError> {
    let mut names = vec![String::new()];
    let (mut rest, mut offset) = (pattern, 0);
    while let Some((open, close)) = find(rest) {
        let inner = &rest[open + 1..close];
        let error = |message: String| RangeError {
            message,
            at: offset + open,
            len: close + 1 - open,
        };
        let words = members(inner).map_err(&error)?;
        if names.len() as u64 * words.len() as u64 > MOST {
            return Err(error(format!("more than {MOST} hosts in one name")));
        }
        let head = &rest[..open];
        names = names
            .iter()
            .flat_map(|name| words.iter().map(move |word| format!("{name}{head}{word}")))
            .collect();
        rest = &rest[close + 1..];
        offset += close + 1;
    }
    for name in &mut names {
        name.push_str(rest);
    }
    Ok(names)
}

/// The first `[`…`]` that holds a `:`.
fn find(text: &str) -> Option<(usize, usize)> {
    let open = text.find('[')?;
    let close = open + text[open..].find(']')?;
    text[open..close].contains(':').then_some((open, close))
}

fn members(range: &str) -> Result<Vec<String>, String> {
    let parts: Vec<&str> = range.split(':').collect();
    let (begin, end, step) = match parts[..] {
        [begin, end] => (begin, end, "1"),
        [begin, end, step] => (begin, end, step),
        _ => return Err("a range is `[begin:end]` or `[begin:end:step]`".to_owned()),
    };
    let begin = if begin.is_empty() { "0" } else { begin };
    if end.is_empty() {
        return Err("a range of hosts needs an end".to_owned());
    }
    let step: u64 = match step.parse() {
        Ok(step) if step > 0 => step,
        _ => {
            return Err(format!(
                "the step of a range is a whole number from 1, not `{step}`"
            ));
        }
    };
    if let (Some(first), Some(last)) = (letter(begin), letter(end)) {
        if first > last {
            return Err(backwards(begin, end));
        }
        return Ok((first..=last)
            .step_by(step as usize)
            .map(|at| LETTERS[at].to_string())
            .collect());
    }
    let number = |text: &str| {
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u64>().ok().filter(|_| digits).ok_or_else(|| {
            format!("a range runs between two numbers or two letters, not `{begin}` and `{end}`")
        })
    };
    let (first, last) = (number(begin)?, number(end)?);
    let width = if begin.len() > 1 && begin.starts_with('0') {
        begin.len()
    } else {
        0
    };
    if width > 0 && width != end.len() {
        return Err(format!(
            "`{begin}` and `{end}` must be equally long, as the first has a leading zero"
        ));
    }
    if first > last {
        return Err(backwards(begin, end));
    }
    if (last - first) / step >= MOST {
        return Err(format!("more than {MOST} hosts in one name"));
    }
    Ok((first..=last)
        .step_by(step as usize)
        .map(|number| format!("{number:0width$}"))
        .collect())
}

fn backwards(begin: &str, end: &str) -> String {
    format!("the range ends (`{end}`) before it begins (`{begin}`)")
}

/// The order of letters in ranges: small ones before capitals.
const LETTERS: [char; 52] = {
    let mut letters = ['a'; 52];
    let mut at = 0;
    while at < 26 {
        letters[at] = (b'a' + at as u8) as char;
        letters[at + 26] = (b'A' + at as u8) as char;
        at += 1;
    }
    letters
};

fn letter(text: &str) -> Option<usize> {
    let mut chars = text.chars();
    let (first, rest) = (chars.next()?, chars.next());
    if rest.is_some() {
        return None;
    }
    LETTERS.iter().position(|letter| *letter == first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(pattern: &str) -> String {
        expand(pattern).unwrap_err().message
    }

    #[test]
    fn numbers_run_inclusively() {
        assert_eq!(
            expand("web[1:3].ex").unwrap(),
            ["web1.ex", "web2.ex", "web3.ex"]
        );
        assert_eq!(expand("web[:2]").unwrap(), ["web0", "web1", "web2"]);
        assert_eq!(expand("web").unwrap(), ["web"]);
    }

    #[test]
    fn a_leading_zero_sets_the_width() {
        assert_eq!(expand("w[08:11]").unwrap(), ["w08", "w09", "w10", "w11"]);
        assert_eq!(expand("w[0:2]").unwrap(), ["w0", "w1", "w2"]);
        assert_eq!(
            error("w[01:100]"),
            "`01` and `100` must be equally long, as the first has a leading zero"
        );
    }

    #[test]
    fn steps_skip() {
        assert_eq!(expand("w[1:6:2]").unwrap(), ["w1", "w3", "w5"]);
        assert_eq!(expand("w[a:e:2]").unwrap(), ["wa", "wc", "we"]);
        assert_eq!(
            error("w[1:6:0]"),
            "the step of a range is a whole number from 1, not `0`"
        );
    }

    #[test]
    fn letters_run_from_small_to_capital() {
        assert_eq!(expand("db-[a:c]").unwrap(), ["db-a", "db-b", "db-c"]);
        assert_eq!(
            expand("db-[y:B]").unwrap(),
            ["db-y", "db-z", "db-A", "db-B"]
        );
    }

    #[test]
    fn several_ranges_multiply() {
        assert_eq!(
            expand("r[1:2]n[a:b]").unwrap(),
            ["r1na", "r1nb", "r2na", "r2nb"]
        );
    }

    #[test]
    fn wrong_ranges_say_why() {
        assert_eq!(error("w[1:]"), "a range of hosts needs an end");
        assert_eq!(
            error("w[3:1]"),
            "the range ends (`1`) before it begins (`3`)"
        );
        assert_eq!(
            error("w[1:c]"),
            "a range runs between two numbers or two letters, not `1` and `c`"
        );
        assert_eq!(
            error("w[1:2:3:4]"),
            "a range is `[begin:end]` or `[begin:end:step]`"
        );
        assert_eq!(
            error("w[0:9999999999]"),
            "more than 1000000 hosts in one name"
        );
        assert_eq!(
            error("w[0:9999]x[0:9999]"),
            "more than 1000000 hosts in one name"
        );
        let error = expand("ab[1:2]c[3:1]").unwrap_err();
        assert_eq!((error.at, error.len), (8, 5));
    }

    #[test]
    fn ports_are_parted_from_names() {
        assert_eq!(split_port("web:2222"), ("web", Some(2222)));
        assert_eq!(split_port("web"), ("web", None));
        assert_eq!(split_port("web[1:3]:2222"), ("web[1:3]", Some(2222)));
        assert_eq!(split_port("web[1:3]"), ("web[1:3]", None));
        assert_eq!(split_port("[::1]:22"), ("::1", Some(22)));
        assert_eq!(split_port("[::1]"), ("::1", None));
        assert_eq!(split_port("[1:3]"), ("[1:3]", None));
        assert_eq!(split_port("2001:db8::1"), ("2001:db8::1", None));
        assert_eq!(split_port("web:70000"), ("web:70000", None));
        assert_eq!(split_port("web:"), ("web:", None));
    }
}
