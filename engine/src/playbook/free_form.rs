//! `module: key=value key2="a b"`: arguments written as one string.

use std::{borrow::Cow, ops::Range};

/// Splits free-form text into `key=value` arguments and what is left, which is the text itself for
/// modules that take one (`command: ls -l chdir=/tmp`).
///
/// `known` tells the argument names: for a module that takes free text only those are taken out of
/// it, for others every word must be `key=value` (else it is in `rest`). Quotes group words and are
/// taken off values; the free text keeps its own. Templates `{{ … }}` are never split.
pub(super) fn split(text: &str, takes_text: bool, known: impl Fn(&str) -> bool) -> Split {
    let mut arguments = Vec::new();
    // What is left keeps its own white space: a script's line breaks have a meaning.
    let (mut rest, mut kept_to) = (String::new(), 0);
    for word in words(text) {
        let (start, end) = (word.start, word.end);
        match pair(&text[word]) {
            Some((key, value)) if is_key(key, takes_text) && (!takes_text || known(key)) => {
                arguments.push((key.to_owned(), unquote(&decoded(value))));
                rest.push_str(&text[kept_to..start]);
                kept_to = end;
            }
            _ => {}
        }
    }
    rest.push_str(&text[kept_to..]);
    Split {
        arguments,
        rest: rest.trim().to_owned(),
    }
}

/// A value with its escapes made what they stand for, as Ansible does it in whatever quotes: `\n`, `\x41`, `\u00e9`.
fn decoded(value: &str) -> Cow<'_, str> {
    if !value.contains('\\') {
        return Cow::Borrowed(value);
    }
    let (mut out, mut rest) = (String::with_capacity(value.len()), value);
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let escape = &rest[at + 1..];
        let (letter, taken) = match escape.chars().next() {
            Some(quoted @ ('\\' | '\'' | '"')) => (Some(quoted), 1),
            Some('a') => (Some('\x07'), 1),
            Some('b') => (Some('\x08'), 1),
            Some('f') => (Some('\x0c'), 1),
            Some('n') => (Some('\n'), 1),
            Some('r') => (Some('\r'), 1),
            Some('t') => (Some('\t'), 1),
            Some('v') => (Some('\x0b'), 1),
            Some('x') => (coded(escape, 2), 3),
            Some('u') => (coded(escape, 4), 5),
            Some('U') => (coded(escape, 8), 9),
            _ => (None, 0),
        };
        match letter {
            Some(letter) => {
                out.push(letter);
                rest = &escape[taken..];
            }
            None => {
                out.push('\\');
                rest = escape;
            }
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The character that the hexadecimal digits behind an escape's letter name.
fn coded(escape: &str, digits: usize) -> Option<char> {
    let digits = escape.get(1..=digits)?;
    let sound = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = u32::from_str_radix(digits, 16).ok().filter(|_| sound)?;
    char::from_u32(number)
}

/// A word at its first `=` that is in no template.
fn pair(word: &str) -> Option<(&str, &str)> {
    let mut depth = 0_u32;
    let bytes = word.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        match (byte, bytes.get(at + 1)) {
            (b'{', Some(b'{')) => depth += 1,
            (b'}', Some(b'}')) => depth = depth.saturating_sub(1),
            (b'=', _) if depth == 0 => return Some((&word[..at], &word[at + 1..])),
            _ => {}
        }
    }
    None
}

/// A name, or a template that makes one where there is no free text to confuse it with.
fn is_key(key: &str, takes_text: bool) -> bool {
    is_name(key)
        || !takes_text && key.contains("{{") && key.ends_with(|c: char| c == '}' || is_word(c))
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Free-form text, taken apart.
pub(super) struct Split {
    pub(super) arguments: Vec<(String, String)>,
    pub(super) rest: String,
}

fn is_name(key: &str) -> bool {
    !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The words of `text`: white space parts them outside quotes and templates.
pub(crate) fn words(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut words = Vec::new();
    let (mut start, mut quote, mut depth, mut at) = (None, None, 0_u32, 0_usize);
    while at < bytes.len() {
        let byte = bytes[at];
        let pair = bytes.get(at..at + 2);
        if quote.is_none() && pair == Some(b"{{") {
            depth += 1;
            start.get_or_insert(at);
            at += 2;
            continue;
        }
        if quote.is_none() && depth > 0 && pair == Some(b"}}") {
            depth -= 1;
            at += 2;
            continue;
        }
        if depth == 0 {
            match (quote, byte) {
                (_, b'\\') => {
                    start.get_or_insert(at);
                    at += 2;
                    continue;
                }
                (Some(open), _) if open == byte => quote = None,
                (None, b'\'' | b'"') => {
                    quote = Some(byte);
                    start.get_or_insert(at);
                }
                (None, _) if byte.is_ascii_whitespace() => {
                    if let Some(start) = start.take() {
                        words.push(start..at);
                    }
                }
                _ => {
                    start.get_or_insert(at);
                }
            }
        }
        at += 1;
    }
    if let Some(start) = start {
        words.push(start..text.len());
    }
    words
}

pub(crate) fn unquote(value: &str) -> String {
    for quote in ['"', '\''] {
        if value.len() >= 2 && value.starts_with(quote) && value.ends_with(quote) {
            return value[1..value.len() - 1].to_owned();
        }
    }
    value.to_owned()
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn every_word_of_a_plain_module_is_an_argument() {
        let split = split(
            "src=a.j2 dest=\"/etc/my app.conf\" mode=0644",
            false,
            |_| true,
        );
        assert_eq!(
            split.arguments,
            [
                ("src", "a.j2"),
                ("dest", "/etc/my app.conf"),
                ("mode", "0644")
            ]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
        );
        assert_eq!(split.rest, "");
    }

    #[test]
    fn free_text_keeps_what_is_not_an_argument_of_the_module() {
        let split = split("dd if=/dev/zero of='a b' creates=/x", true, |key| {
            key == "creates"
        });
        assert_eq!(split.arguments, [("creates".to_owned(), "/x".to_owned())]);
        assert_eq!(split.rest, "dd if=/dev/zero of='a b'");
    }

    #[test]
    fn templates_are_not_split() {
        let split = split("path={{ base + '/x y' }}/z state=absent", false, |_| true);
        assert_eq!(split.arguments[0].1, "{{ base + '/x y' }}/z");
        assert_eq!(split.arguments[1].1, "absent");
    }

    #[test]
    fn a_template_may_make_an_arguments_name() {
        let split = split("{{ 'a=' + b }}_x={{ c }} d=1", false, |_| true);
        let pairs = [("{{ 'a=' + b }}_x", "{{ c }}"), ("d", "1")];
        assert_eq!(
            split.arguments,
            pairs.map(|(k, v)| (k.to_owned(), v.to_owned()))
        );
        assert_eq!(split.rest, "");
    }

    #[test]
    fn a_script_keeps_its_lines() {
        let split = split("set -e\n  echo a\necho b chdir=/tmp", true, |key| {
            key == "chdir"
        });
        assert_eq!(split.rest, "set -e\n  echo a\necho b");
    }

    #[test]
    fn escapes_in_values_stand_for_what_they_name() {
        let split = split(
            r#"a="x\ny\\z" b='it\'s' c=\x41\u00e9\q d="C:\new" e="a=\"b\"" echo 'a\tb'"#,
            true,
            |_| true,
        );
        let pairs = [
            ("a", "x\ny\\z"),
            ("b", "it's"),
            ("c", "A\u{e9}\\q"),
            ("d", "C:\new"),
            ("e", "a=\"b\""),
        ];
        assert_eq!(
            split.arguments,
            pairs.map(|(k, v)| (k.to_owned(), v.to_owned()))
        );
        assert_eq!(split.rest, r"echo 'a\tb'");
    }

    #[test]
    fn a_backslash_at_the_end_is_no_panic() {
        assert_eq!(split("a=\\", false, |_| true).arguments[0].1, "\\");
        assert_eq!(split("a=\\xé", false, |_| true).arguments[0].1, "\\xé");
        assert_eq!(split("a\\", true, |_| false).rest, "a\\");
    }
}
