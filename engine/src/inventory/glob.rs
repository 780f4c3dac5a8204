//! Shell globs over names, as Python's `fnmatch` has them: `*`, `?`, `[abc]`, `[a-z]`, `[!abc]`.

use regex::Regex;

/// Whether a text holds anything that a glob treats specially.
pub(super) fn is_glob(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// The regular expression that matches what a glob matches: the whole name. A `[` without its `]`
/// stands for itself.
pub(super) fn to_regex(glob: &str) -> Result<Regex, regex::Error> {
    let mut pattern = String::from(r"(?s)\A");
    let mut rest = glob;
    while let Some(char) = rest.chars().next() {
        rest = &rest[char.len_utf8()..];
        match char {
            '*' => pattern.push_str(".*"),
            '?' => pattern.push('.'),
            '[' => match class(rest) {
                Some((class, after)) => {
                    pattern.push_str(&class);
                    rest = after;
                }
                None => pattern.push_str(r"\["),
            },
            char => pattern.push_str(&regex::escape(char.encode_utf8(&mut [0; 4]))),
        }
    }
    pattern.push_str(r"\z");
    Regex::new(&pattern)
}

/// A character class after its `[`, as a regular expression, and what follows it.
fn class(rest: &str) -> Option<(String, &str)> {
    let negated = rest.starts_with('!');
    let body = rest.strip_prefix('!').unwrap_or(rest);
    // A `]` that comes first is a member of the class.
    let first = body.chars().next()?.len_utf8();
    let end = first + body[first..].find(']')?;
    let members: Vec<char> = body[..end].chars().collect();
    let mut class = String::from(if negated { "[^" } else { "[" });
    let mut at = 0;
    let escaped = |char: char| {
        let mark = if char.is_ascii_punctuation() && !matches!(char, '<' | '>') {
            r"\"
        } else {
            ""
        };
        format!("{mark}{char}")
    };
    while at < members.len() {
        if at + 2 < members.len() && members[at + 1] == '-' {
            // A range that runs backwards matches nothing.
            if members[at] <= members[at + 2] {
                class.push_str(&format!(
                    "{}-{}",
                    escaped(members[at]),
                    escaped(members[at + 2])
                ));
            }
            at += 3;
        } else {
            class.push_str(&escaped(members[at]));
            at += 1;
        }
    }
    class.push(']');
    match class.as_str() {
        "[]" => class = r"[^\s\S]".to_owned(),
        "[^]" => class = ".".to_owned(),
        _ => {}
    }
    Some((class, &body[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_whole_names() {
        for (glob, name, matches) in [
            ("web*", "web1", true),
            ("web*", "xweb1", false),
            ("w?b", "wab", true),
            ("w?b", "wb", false),
            ("[hz]1", "z1", true),
            ("[!hz]1", "z1", false),
            ("[!hz]1", "a1", true),
            ("h[0-3]", "h2", true),
            ("h[0-3]", "h4", false),
            ("h[3-0]", "h2", false),
            ("h[!3-0]", "h2", true),
            ("h[]a]", "h]", true),
            ("h[a-]", "h-", true),
            ("h[^a]", "h^", true),
            ("h[1", "h[1", true),
            ("a.b", "axb", false),
            ("a.b*", "a.bc", true),
            ("*", "", true),
        ] {
            assert_eq!(
                to_regex(glob).unwrap().is_match(name),
                matches,
                "{glob} on {name}"
            );
        }
    }
}
