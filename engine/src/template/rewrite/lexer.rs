//! Tokens of a Jinja expression, each with its bytes in the template.

use std::ops::Range;

/// What a token is. Names and operators are compared by their text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind {
    Name,
    Text,
    Number,
    Operator,
}

/// One token and where it stands in the template.
#[derive(Debug, Clone)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) range: Range<usize>,
}

const OPERATORS: [&str; 26] = [
    "**", "//", "==", "!=", ">=", "<=", "+", "-", "*", "/", "%", "~", "|", ".", ",", ":", "(", ")",
    "[", "]", "{", "}", "=", "<", ">", ";",
];

/// The tokens from `start` to the delimiter `end` at bracket depth 0, and where that delimiter (with its
/// whitespace control) begins. `None` if the text is not an expression, or `end` never comes; an empty `end`
/// stands for the end of the text.
pub(crate) fn tokens(source: &str, start: usize, end: &str) -> Option<(Vec<Token>, usize)> {
    let mut found = Vec::new();
    let mut at = start;
    let mut depth = 0_usize;
    loop {
        let rest = &source[at..];
        let trimmed = rest.trim_start();
        at += rest.len() - trimmed.len();
        let rest = trimmed;
        if rest.is_empty() {
            return end.is_empty().then_some((found, at));
        }
        if depth == 0 && !end.is_empty() {
            let controlled = rest.starts_with(['-', '+']) && rest[1..].starts_with(end);
            if rest.starts_with(end) || controlled {
                return Some((found, at));
            }
        }
        let kind_and_length = token(rest, found.last(), source)?;
        let (kind, length) = kind_and_length;
        if kind == TokenKind::Operator {
            match &rest[..length] {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth = depth.checked_sub(1)?,
                _ => {}
            }
        }
        found.push(Token {
            kind,
            range: at..at + length,
        });
        at += length;
    }
}

fn token(rest: &str, previous: Option<&Token>, source: &str) -> Option<(TokenKind, usize)> {
    let first = rest.chars().next()?;
    if first == '"' || first == '\'' {
        return Some((TokenKind::Text, text_length(rest, first)?));
    }
    if first.is_ascii_digit() {
        let after_dot = previous.is_some_and(|token| &source[token.range.clone()] == ".");
        return Some((TokenKind::Number, number_length(rest, after_dot)));
    }
    if first.is_alphabetic() || first == '_' {
        let length = rest
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        return Some((TokenKind::Name, length));
    }
    let operator = OPERATORS
        .iter()
        .find(|operator| rest.starts_with(**operator))?;
    Some((TokenKind::Operator, operator.len()))
}

/// The bytes of a quoted string, quotes included.
fn text_length(rest: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// After a dot (`a.0.1`) a number is an index, never a float.
fn number_length(rest: &str, after_dot: bool) -> usize {
    let digits = |text: &str| {
        text.find(|c: char| !c.is_ascii_digit() && c != '_')
            .unwrap_or(text.len())
    };
    if rest.starts_with("0x") || rest.starts_with("0o") || rest.starts_with("0b") {
        return 2 + rest[2..]
            .find(|c: char| !c.is_ascii_hexdigit() && c != '_')
            .unwrap_or(rest.len() - 2);
    }
    let mut length = digits(rest);
    if after_dot {
        return length;
    }
    if rest[length..].starts_with('.')
        && rest[length + 1..].starts_with(|c: char| c.is_ascii_digit())
    {
        length += 1 + digits(&rest[length + 1..]);
    }
    if rest[length..].starts_with(['e', 'E']) {
        let exponent = &rest[length + 1..];
        let sign = usize::from(exponent.starts_with(['+', '-']));
        if exponent[sign..].starts_with(|c: char| c.is_ascii_digit()) {
            length += 1 + sign + digits(&exponent[sign..]);
        }
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str, end: &str) -> Vec<String> {
        let (tokens, _) = tokens(source, 0, end).unwrap();
        tokens
            .into_iter()
            .map(|token| source[token.range].to_owned())
            .collect()
    }

    #[test]
    fn splits_names_strings_numbers_and_operators() {
        assert_eq!(
            texts("a.b['c\\'d'] // 1.5e-3 ** x", ""),
            [
                "a", ".", "b", "[", "'c\\'d'", "]", "//", "1.5e-3", "**", "x"
            ]
        );
    }

    #[test]
    fn an_index_after_a_dot_is_no_float() {
        assert_eq!(texts("a.0.1", ""), ["a", ".", "0", ".", "1"]);
    }

    #[test]
    fn the_end_counts_only_outside_brackets() {
        let source = "{'a': {'b': 1}} -}} tail }}";
        let (tokens, end) = tokens(source, 0, "}}").unwrap();
        assert_eq!(tokens.len(), 9);
        assert_eq!(&source[end..end + 3], "-}}");
    }

    #[test]
    fn an_unfinished_string_is_no_expression() {
        assert!(tokens("'abc", 0, "").is_none());
    }
}
