//! Python literals, as `ast.literal_eval` reads them: the rule for values in INI inventories.
//!
//! A value that is no literal stays the string that it is, so `flag=False` is a boolean while
//! `flag=false` is the string `false`. Tuples and sets become lists, byte strings texts that are data, and
//! complex numbers and `...` the strings that they are.

/// A value read from a Python literal.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Literal {
    /// `None`
    None,
    /// `True`, `False`
    Bool(bool),
    /// An integer that fits.
    Int(i64),
    /// An integer beyond 64 bits: its decimal digits.
    Big(String),
    /// A number with a point or an exponent.
    Float(f64),
    /// A quoted string.
    Str(String),
    /// A byte string: no template, ever.
    Bytes(String),
    /// A list, a tuple or a set.
    List(Vec<Literal>),
    /// A dictionary; a repeated key keeps its first place and its last value.
    Dict(Vec<(Literal, Literal)>),
}

/// Brackets may nest this deep, as in Python's own parser.
const DEPTH: usize = 100;

/// Reads a whole text as one literal. `None` where it is not one.
pub(super) fn parse(text: &str) -> Option<Literal> {
    let mut reader = Reader {
        rest: text.trim_start_matches([' ', '\t']),
        depth: 0,
    };
    let value = reader.tuple_or_value()?;
    reader.skip_blanks();
    reader.rest.is_empty().then_some(value)
}

struct Reader<'a> {
    rest: &'a str,
    depth: usize,
}

impl Reader<'_> {
    /// Passes blanks and comments; line ends only within brackets, where they mean nothing.
    fn skip_blanks(&mut self) {
        loop {
            let nested = self.depth > 0;
            let trimmed = self.rest.trim_start_matches(|char| match char {
                ' ' | '\t' | '\u{c}' => true,
                '\n' | '\r' => nested,
                _ => false,
            });
            self.rest = trimmed;
            if !trimmed.starts_with('#') {
                break;
            }
            self.rest = trimmed.find('\n').map_or("", |end| &trimmed[end..]);
        }
        if self.depth == 0 && self.rest.chars().all(char::is_whitespace) {
            self.rest = "";
        }
    }

    fn eat(&mut self, token: &str) -> bool {
        self.skip_blanks();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// `80,443` is a tuple without parentheses.
    fn tuple_or_value(&mut self) -> Option<Literal> {
        let first = self.value()?;
        if !self.eat(",") {
            return Some(first);
        }
        let mut items = vec![first];
        loop {
            self.skip_blanks();
            if self.rest.is_empty() {
                return Some(Literal::List(items));
            }
            items.push(self.value()?);
            if !self.eat(",") {
                return Some(Literal::List(items));
            }
        }
    }

    fn value(&mut self) -> Option<Literal> {
        self.skip_blanks();
        match self.rest.chars().next()? {
            '[' => self.list(),
            '(' => self.parenthesised(),
            '{' => self.dict_or_set(),
            '\'' | '"' => self.strings(),
            '.' if self.eat("...") => Some(Literal::Str("...".to_owned())),
            '+' | '-' | '.' | '0'..='9' => self.signed(),
            _ => self.word(),
        }
    }

    fn nested(&mut self, open: &str) -> Option<()> {
        if self.depth == DEPTH || !self.eat(open) {
            return None;
        }
        self.depth += 1;
        Some(())
    }

    /// Values up to a closing bracket, and whether a comma was among them.
    fn items(&mut self, close: &str) -> Option<(Vec<Literal>, bool)> {
        let (mut items, mut comma) = (Vec::new(), false);
        loop {
            if self.eat(close) {
                self.depth -= 1;
                return Some((items, comma));
            }
            if !items.is_empty() && !comma {
                return None;
            }
            items.push(self.value()?);
            let more = self.eat(",");
            comma |= more;
            if !more {
                if !self.eat(close) {
                    return None;
                }
                self.depth -= 1;
                return Some((items, comma));
            }
        }
    }

    fn list(&mut self) -> Option<Literal> {
        self.nested("[")?;
        Some(Literal::List(self.items("]")?.0))
    }

    fn parenthesised(&mut self) -> Option<Literal> {
        self.nested("(")?;
        let (mut items, comma) = self.items(")")?;
        if items.len() == 1 && !comma {
            items.pop()
        } else {
            Some(Literal::List(items))
        }
    }

    fn dict_or_set(&mut self) -> Option<Literal> {
        self.nested("{")?;
        if self.eat("}") {
            self.depth -= 1;
            return Some(Literal::Dict(Vec::new()));
        }
        let first = self.value()?;
        if !self.eat(":") {
            let mut items = vec![first];
            if self.eat(",") {
                items.extend(self.items("}")?.0);
            } else if self.eat("}") {
                self.depth -= 1;
            } else {
                return None;
            }
            let mut unique: Vec<Literal> = Vec::with_capacity(items.len());
            for item in items {
                if !unique.contains(&item) {
                    unique.push(item);
                }
            }
            return Some(Literal::List(unique));
        }
        let mut pairs: Vec<(Literal, Literal)> = Vec::new();
        let mut key = first;
        loop {
            if matches!(key, Literal::List(_) | Literal::Dict(_)) {
                return None;
            }
            let value = self.value()?;
            match pairs.iter_mut().find(|(known, _)| *known == key) {
                Some((_, old)) => *old = value,
                None => pairs.push((key, value)),
            }
            let more = self.eat(",");
            if self.eat("}") {
                self.depth -= 1;
                return Some(Literal::Dict(pairs));
            }
            if !more {
                return None;
            }
            key = self.value()?;
            if !self.eat(":") {
                return None;
            }
        }
    }

    /// `None`, `True`, `False`, `set()`, and strings with a prefix.
    fn word(&mut self) -> Option<Literal> {
        let end = self
            .rest
            .find(|char: char| !char.is_alphanumeric() && char != '_')
            .unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        let value = match word {
            "None" => Literal::None,
            "True" => Literal::Bool(true),
            "False" => Literal::Bool(false),
            "set" => {
                self.rest = rest;
                return (self.eat("(") && self.eat(")")).then_some(Literal::List(Vec::new()));
            }
            "b" | "B" if rest.starts_with(['\'', '"']) => {
                self.rest = rest;
                return match self.strings()? {
                    Literal::Str(text) if text.is_ascii() => Some(Literal::Bytes(text)),
                    _ => None,
                };
            }
            "r" | "R" | "u" | "U" if rest.starts_with(['\'', '"']) => return self.strings(),
            _ => return None,
        };
        self.rest = rest;
        Some(value)
    }

    /// Strings side by side are one string.
    fn strings(&mut self) -> Option<Literal> {
        let mut text = String::new();
        loop {
            self.string(&mut text)?;
            self.skip_blanks();
            let bare = self.rest.trim_start_matches(['r', 'R', 'u', 'U']);
            if self.rest.len() - bare.len() > 1 || !bare.starts_with(['\'', '"']) {
                return Some(Literal::Str(text));
            }
        }
    }

    fn string(&mut self, text: &mut String) -> Option<()> {
        let raw = self.rest.starts_with(['r', 'R']);
        let body = self.rest.trim_start_matches(['r', 'R', 'u', 'U']);
        let quote = body.chars().next()?;
        let triple = body.starts_with(if quote == '"' { "\"\"\"" } else { "'''" });
        let width = if triple { 3 } else { 1 };
        let (close, mut rest) = (&body[..width], &body[width..]);
        loop {
            if let Some(after) = rest.strip_prefix(close) {
                self.rest = after;
                return Some(());
            }
            let char = rest.chars().next()?;
            rest = &rest[char.len_utf8()..];
            match char {
                '\\' if raw => {
                    let next = rest.chars().next()?;
                    rest = &rest[next.len_utf8()..];
                    text.push('\\');
                    text.push(next);
                }
                '\\' => rest = escape(rest, text)?,
                '\n' if !triple => return None,
                char => text.push(char),
            }
        }
    }

    fn signed(&mut self) -> Option<Literal> {
        let sign = self
            .rest
            .chars()
            .next()
            .filter(|char| matches!(char, '+' | '-'));
        if sign.is_some() {
            self.rest = &self.rest[1..];
            self.skip_blanks();
        }
        let number = self.number()?;
        Some(match (number, sign) {
            (Literal::Int(number), Some('-')) => Literal::Int(-number),
            (Literal::Float(number), Some('-')) => Literal::Float(-number),
            (Literal::Big(digits), Some('-')) if digits == "9223372036854775808" => {
                Literal::Int(i64::MIN)
            }
            (Literal::Big(digits), Some('-')) => Literal::Big(format!("-{digits}")),
            (number, _) => number,
        })
    }

    fn number(&mut self) -> Option<Literal> {
        let bytes = self.rest.as_bytes();
        let mut end = 0;
        while let Some(byte) = bytes.get(end) {
            let exponent_sign = matches!(byte, b'+' | b'-')
                && matches!(bytes[end.saturating_sub(1)], b'e' | b'E')
                && end > 0
                && !matches!(bytes.get(1), Some(b'x' | b'X'));
            if !(byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_') || exponent_sign) {
                break;
            }
            end += 1;
        }
        let (word, rest) = self.rest.split_at(end);
        let value = number(word)?;
        self.rest = rest;
        Some(value)
    }
}

/// One number by Python's spelling: underscores only between digits, no leading zeros but in
/// floats and zero itself.
fn number(word: &str) -> Option<Literal> {
    let misplaced = |digit: fn(&u8) -> bool, text: &str| {
        let bytes = text.as_bytes();
        bytes.iter().enumerate().any(|(at, byte)| {
            *byte == b'_'
                && !(at > 0 && digit(&bytes[at - 1]) && bytes.get(at + 1).is_some_and(digit))
        })
    };
    let lower = word.to_ascii_lowercase();
    for (prefix, radix) in [("0x", 16), ("0o", 8), ("0b", 2)] {
        if let Some(digits) = lower.strip_prefix(prefix) {
            let digits = digits.strip_prefix('_').unwrap_or(digits);
            if misplaced(u8::is_ascii_hexdigit, digits) || digits.starts_with(['+', '-']) {
                return None;
            }
            let value = i128::from_str_radix(&digits.replace('_', ""), radix).ok()?;
            return Some(
                i64::try_from(value).map_or(Literal::Big(value.to_string()), Literal::Int),
            );
        }
    }
    if misplaced(u8::is_ascii_digit, word) || !word.contains(|char: char| char.is_ascii_digit()) {
        return None;
    }
    let plain = lower.replace('_', "");
    if let Some(imaginary) = plain.strip_suffix('j') {
        let number: f64 = imaginary.parse().ok()?;
        return Some(Literal::Str(format!("{number}j")));
    }
    if plain.bytes().all(|byte| byte.is_ascii_digit()) {
        let digits = plain.trim_start_matches('0');
        if digits.is_empty() {
            return Some(Literal::Int(0));
        }
        if digits.len() < plain.len() {
            return None;
        }
        return Some(
            digits
                .parse()
                .map_or_else(|_| Literal::Big(digits.to_owned()), Literal::Int),
        );
    }
    let known = |char: char| char.is_ascii_digit() || matches!(char, '.' | 'e' | '+' | '-');
    if !plain.chars().all(known) || plain.starts_with('e') {
        return None;
    }
    plain.parse().ok().map(Literal::Float)
}

/// Reads what follows a backslash; an unknown escape keeps its backslash.
fn escape<'a>(rest: &'a str, text: &mut String) -> Option<&'a str> {
    let kind = rest.chars().next()?;
    let after = &rest[kind.len_utf8()..];
    let hex = |width: usize, text: &mut String| {
        let digits = after.get(..width)?;
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        text.push(char::from_u32(u32::from_str_radix(digits, 16).ok()?)?);
        Some(&after[width..])
    };
    match kind {
        '\n' => return Some(after),
        '\\' | '\'' | '"' => text.push(kind),
        'a' => text.push('\u{7}'),
        'b' => text.push('\u{8}'),
        'f' => text.push('\u{c}'),
        'n' => text.push('\n'),
        'r' => text.push('\r'),
        't' => text.push('\t'),
        'v' => text.push('\u{b}'),
        'x' => return hex(2, text),
        'u' => return hex(4, text),
        'U' => return hex(8, text),
        'N' => return None,
        '0'..='7' => {
            let width = rest
                .bytes()
                .take(3)
                .take_while(|byte| (b'0'..=b'7').contains(byte))
                .count();
            text.push(char::from_u32(
                u32::from_str_radix(&rest[..width], 8).ok()?,
            )?);
            return Some(&rest[width..]);
        }
        _ => {
            text.push('\\');
            text.push(kind);
        }
    }
    Some(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(items: &[i64]) -> Literal {
        Literal::List(items.iter().map(|item| Literal::Int(*item)).collect())
    }

    fn text(text: &str) -> Option<Literal> {
        Some(Literal::Str(text.to_owned()))
    }

    #[test]
    fn names() {
        assert_eq!(parse("True"), Some(Literal::Bool(true)));
        assert_eq!(parse("False"), Some(Literal::Bool(false)));
        assert_eq!(parse("None"), Some(Literal::None));
        for string in ["true", "false", "no", "yes", "null", "nan", "inf", "x"] {
            assert_eq!(parse(string), None, "{string}");
        }
    }

    #[test]
    fn integers() {
        for (written, value) in [
            ("5", 5),
            ("-5", -5),
            ("+5", 5),
            ("- 5", -5),
            ("0x10", 16),
            ("0o17", 15),
            ("0b101", 5),
            ("00", 0),
            ("0", 0),
            ("1_000", 1000),
            ("(5)", 5),
            ("5 # comment", 5),
            (" 5", 5),
            ("-9223372036854775808", i64::MIN),
        ] {
            assert_eq!(parse(written), Some(Literal::Int(value)), "{written}");
        }
        for string in [
            "012", "1__0", "_1", "1_", "0x", "0o8", "--5", "~5", "1+2", "5x", "1 2", "0x+1",
        ] {
            assert_eq!(parse(string), None, "{string}");
        }
        assert_eq!(
            parse("9223372036854775808"),
            Some(Literal::Big("9223372036854775808".into()))
        );
    }

    #[test]
    fn floats() {
        for (written, value) in [
            ("1.5", 1.5),
            ("1e3", 1000.0),
            (".5", 0.5),
            ("1.", 1.0),
            ("012.5", 12.5),
            ("1e-3", 0.001),
        ] {
            assert_eq!(parse(written), Some(Literal::Float(value)), "{written}");
        }
        for string in ["1.2.3.4", "10.0.0.1", "e3", ".", "1e", "1.2.3"] {
            assert_eq!(parse(string), None, "{string}");
        }
    }

    #[test]
    fn what_json_has_not_got_becomes_texts_and_lists() {
        let items = vec![
            Literal::Str("...".to_owned()),
            Literal::Str("1j".to_owned()),
            Literal::List(Vec::new()),
            Literal::List(vec![Literal::Int(1), Literal::Int(2)]),
            Literal::Bytes("x".to_owned()),
        ];
        assert_eq!(
            parse("[..., 1j, set(), {1, 2}, b'x']"),
            Some(Literal::List(items))
        );
    }

    #[test]
    fn strings() {
        assert_eq!(parse("'a'"), text("a"));
        assert_eq!(parse("\"a\""), text("a"));
        assert_eq!(parse("'a' 'b'"), text("ab"));
        assert_eq!(parse(r"'a\tb\q\x41\u00e9\101'"), text("a\tb\\qAéA"));
        assert_eq!(parse(r"r'a\n'"), text(r"a\n"));
        assert_eq!(parse("u'x'"), text("x"));
        assert_eq!(parse("'''it's'''"), text("it's"));
        for string in ["'a", "f'x'", "'a' b", "'a\nb'", "b'ü'"] {
            assert_eq!(parse(string), None, "{string}");
        }
    }

    #[test]
    fn lists_tuples_and_sets_are_lists() {
        for written in [
            "[1, 2]", "(1, 2)", "1,2", "1, 2", "{1, 2}", "[1,2,]", "{1,2,1}",
        ] {
            let expected = (!written.contains("2-2")).then(|| list(&[1, 2]));
            assert_eq!(parse(written), expected, "{written}");
        }
        assert_eq!(parse("(1,)"), Some(list(&[1])));
        assert_eq!(parse("1,"), Some(list(&[1])));
        for empty in ["[]", "()", "set()"] {
            assert_eq!(parse(empty), Some(list(&[])), "{empty}");
        }
        for string in ["[1", "[1 2]", "[,]", ",", "[*[1]]", "[a]"] {
            assert_eq!(parse(string), None, "{string}");
        }
    }

    #[test]
    fn dictionaries() {
        assert_eq!(parse("{}"), Some(Literal::Dict(vec![])));
        assert_eq!(
            parse("{'a': [1, (2, 3)], 'b': None, 1: 2, 'a': 0}"),
            Some(Literal::Dict(vec![
                (Literal::Str("a".into()), Literal::Int(0)),
                (Literal::Str("b".into()), Literal::None),
                (Literal::Int(1), Literal::Int(2)),
            ]))
        );
        for string in [
            "{'a'}}",
            "{'a':}",
            "{'a' 1}",
            "{a: 1}",
            "{{ x }}",
            "{[1]: 2}",
            "{'a':1 'b':2}",
        ] {
            assert_eq!(parse(string), None, "{string}");
        }
    }

    #[test]
    fn deep_nesting_is_a_string_and_no_crash() {
        assert_eq!(parse(&"[".repeat(100_000)), None);
        assert_eq!(parse(""), None);
    }
}
