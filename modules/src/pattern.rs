//! Python's regular expressions over bytes, as Ansible's editors of files use them.
//!
//! An expression is translated for `regex-lite` (70 KB in the helper, where `regex` would be 300 KB). Text
//! is looked at as Latin-1, one character a byte: that is what Python does with byte strings, and makes
//! `\w`, `.` and `(?i)` mean the same here. What looks around, or back at a group, is matched by `backtrack`.

use std::borrow::Cow;

use regex_lite::Regex;

use backtrack::Program;

mod backtrack;

/// An expression, ready to be searched for.
#[derive(Debug)]
pub(crate) struct Pattern(Engine);

#[derive(Debug)]
enum Engine {
    Fast(Regex),
    /// For what looks around, or back at a group.
    Trying(Program),
}

/// Where an expression was found, with its groups.
pub(crate) struct Found<'t> {
    text: &'t str,
    /// The whole, then the groups.
    spans: Vec<Option<(usize, usize)>>,
    names: Vec<(String, usize)>,
}

impl Pattern {
    /// Reads an expression in Python's syntax, for single lines with or without their newline.
    ///
    /// # Errors
    /// A sentence that says what cannot be understood, or is not supported.
    pub(crate) fn new(python: &str) -> Result<Self, String> {
        Self::read(python, "", "(?m:$)")
    }

    /// The same for a text of many lines, of which `^` and `$` mean each: Python's `MULTILINE`.
    ///
    /// # Errors
    /// As [`Pattern::new`].
    pub(crate) fn over_lines(python: &str) -> Result<Self, String> {
        Self::read(python, "(?m)", "$")
    }

    /// The same for a text of many lines, of which `^` and `$` mean the whole, unless the expression says otherwise.
    ///
    /// # Errors
    /// As [`Pattern::new`].
    pub(crate) fn over_text(python: &str) -> Result<Self, String> {
        let end = if is_multiline(python) {
            "$"
        } else {
            r"(?:\n?\z)"
        };
        Self::read(python, "", end)
    }

    /// A `.` that takes newlines, too: Python's `DOTALL`.
    ///
    /// # Errors
    /// As [`Pattern::new`].
    pub(crate) fn over_all(python: &str) -> Result<Self, String> {
        Self::read(python, "(?s)", r"(?:\n?\z)")
    }

    fn read(python: &str, flags: &str, end: &'static str) -> Result<Self, String> {
        let text = latin1(python.as_bytes());
        let problem = |problem: String| format!("in the regular expression `{python}` {problem}");
        let translated = match Translation::of(&text, end) {
            Ok(translated) => translated,
            Err(refused) if refused.contains("not supported") => {
                let (many, all) = (flags.contains('m') || end == "(?m:$)", flags.contains('s'));
                let bytes: Vec<u8> = bytes(&text).collect();
                let program = Program::new(&bytes, many, all).map_err(problem)?;
                return Ok(Self(Engine::Trying(program)));
            }
            Err(refused) => return Err(problem(refused)),
        };
        Regex::new(&format!("{flags}{translated}"))
            .map(|regex| Self(Engine::Fast(regex)))
            .map_err(|error| format!("the regular expression `{python}` cannot be read: {error}"))
    }

    fn find_from<'t>(&self, text: &'t str, from: usize) -> Option<Found<'t>> {
        match &self.0 {
            Engine::Fast(regex) => {
                let captures = regex.captures_at(text, from)?;
                let spans = captures.iter();
                let spans = spans.map(|group| group.map(|group| (group.start(), group.end())));
                let names = regex.capture_names().enumerate();
                let names = names.filter_map(|(at, name)| Some((name?.to_owned(), at)));
                Some(Found {
                    text,
                    spans: spans.collect(),
                    names: names.collect(),
                })
            }
            Engine::Trying(program) => {
                let bytes: Vec<u8> = bytes(text).collect();
                // Characters of the text are bytes there, and the other way round.
                let mut places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
                places.push(text.len());
                let from = places.binary_search(&from).ok()?;
                let spans = program.find(&bytes, from)?;
                let spans = spans.into_iter();
                let spans = spans.map(|span| span.map(|(start, end)| (places[start], places[end])));
                Some(Found {
                    text,
                    spans: spans.collect(),
                    names: program.names.clone(),
                })
            }
        }
    }

    /// Replaces all matches in a text from [`latin1`], as Python's `sub` does; the bytes, and how many there were.
    ///
    /// # Errors
    /// As [`Found::expand`].
    pub(crate) fn replace_all(
        &self,
        text: &str,
        template: &str,
    ) -> Result<(Vec<u8>, usize), String> {
        let (mut out, mut count, mut at) = (Vec::with_capacity(text.len()), 0, 0);
        while let Some(found) = self.find_from(text, at) {
            let (start, end) = found.span();
            out.extend(bytes(&text[at..start]));
            out.extend(found.expand(template)?);
            count += 1;
            at = end;
            if start == end {
                // An empty match is followed by one that is not at the same place.
                let Some(letter) = text[end..].chars().next() else {
                    return Ok((out, count));
                };
                at += letter.len_utf8();
                out.extend(bytes(&text[end..at]));
            }
        }
        out.extend(bytes(&text[at.min(text.len())..]));
        Ok((out, count))
    }

    /// The first match in a text from [`latin1`].
    pub(crate) fn find<'t>(&self, text: &'t str) -> Option<Found<'t>> {
        self.find_from(text, 0)
    }

    /// The names of the groups, in order; none for one that has only its number.
    pub(crate) fn group_names(&self) -> Vec<Option<&str>> {
        match &self.0 {
            Engine::Fast(regex) => regex.capture_names().skip(1).collect(),
            Engine::Trying(program) => program.group_names(),
        }
    }

    /// Whether there is a match in these bytes.
    pub(crate) fn is_in(&self, bytes: &[u8]) -> bool {
        match &self.0 {
            Engine::Fast(regex) => regex.is_match(&latin1(bytes)),
            Engine::Trying(program) => program.find(bytes, 0).is_some(),
        }
    }
}

/// Whether an expression itself says that `^` and `$` mean each line.
pub(crate) fn is_multiline(python: &str) -> bool {
    let flags = python
        .strip_prefix("(?")
        .and_then(|rest| rest.split_once(')'));
    flags.is_some_and(|(flags, _)| {
        flags.contains('m') && flags.chars().all(|flag| flag.is_ascii_alphabetic())
    })
}

/// Bytes as characters of the same numbers.
pub(crate) fn latin1(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) if bytes.is_ascii() => Cow::Borrowed(text),
        _ => bytes.iter().map(|byte| char::from(*byte)).collect(),
    }
}

/// The bytes of a text from [`latin1`].
fn bytes(text: &str) -> impl Iterator<Item = u8> {
    text.chars().filter_map(|letter| u8::try_from(letter).ok())
}

impl Found<'_> {
    /// Where it begins and ends in the text.
    pub(crate) fn span(&self) -> (usize, usize) {
        self.spans.first().copied().flatten().unwrap_or_default()
    }

    /// The groups, in order; none for one that took no part.
    pub(crate) fn groups(&self) -> Vec<Option<&str>> {
        let groups = self.spans.iter().skip(1);
        groups
            .map(|span| span.map(|(start, end)| &self.text[start..end]))
            .collect()
    }

    /// Where a group begins and ends in the text; none where it took no part.
    pub(crate) fn group_span(&self, name: &str) -> Option<(usize, usize)> {
        let (_, at) = self.names.iter().find(|(own, _)| own == name)?;
        self.spans.get(*at).copied().flatten()
    }

    /// A replacement with its groups (`\1`, `\g<1>`, `\g<name>`) and escapes filled in, as Python's `expand` does.
    ///
    /// # Errors
    /// When it names a group that the expression does not have, or has an escape that Python does not know.
    pub(crate) fn expand(&self, template: &str) -> Result<Vec<u8>, String> {
        let problem = |what: String| format!("in the replacement `{template}` {what}");
        let text = latin1(template.as_bytes());
        let mut letters = text.chars().peekable();
        let mut out = Vec::new();
        while let Some(letter) = letters.next() {
            if letter != '\\' {
                out.extend(u8::try_from(letter));
                continue;
            }
            match letters.next() {
                None => return Err(problem("nothing follows the last backslash".to_owned())),
                Some('g') => {
                    let name: String = letters
                        .by_ref()
                        .skip_while(|c| *c == '<')
                        .take_while(|c| *c != '>')
                        .collect();
                    out.extend(self.group(&name).map_err(problem)?);
                }
                Some(first @ '1'..='9') => {
                    let mut name = first.to_string();
                    name.extend(letters.next_if(char::is_ascii_digit));
                    out.extend(self.group(&name).map_err(problem)?);
                }
                Some('0') => {
                    let digits: String =
                        std::iter::from_fn(|| letters.next_if(|c| ('0'..='7').contains(c)))
                            .take(2)
                            .collect();
                    out.push(u8::from_str_radix(&digits, 8).unwrap_or(0));
                }
                Some('\\') => out.push(b'\\'),
                Some(other) => match control(other) {
                    Some(byte) => out.push(byte),
                    None if other.is_ascii_alphabetic() => {
                        return Err(problem(format!("`\\{other}` is no escape")));
                    }
                    None => {
                        out.push(b'\\');
                        out.extend(u8::try_from(other));
                    }
                },
            }
        }
        Ok(out)
    }

    /// A group that took no part in the match is empty.
    fn group(&self, name: &str) -> Result<Vec<u8>, String> {
        let named = || {
            self.names
                .iter()
                .find(|(own, _)| own == name)
                .map(|(_, at)| *at)
        };
        let at = name.parse().ok().or_else(named);
        let Some(span) = at.and_then(|at: usize| self.spans.get(at)) else {
            return Err(format!("there is no group `{name}`"));
        };
        let text = span.map_or("", |(start, end)| &self.text[start..end]);
        Ok(bytes(text).collect())
    }
}

fn control(letter: char) -> Option<u8> {
    Some(match letter {
        'a' => 7,
        'b' => 8,
        't' => b'\t',
        'n' => b'\n',
        'v' => 11,
        'f' => 12,
        'r' => b'\r',
        _ => return None,
    })
}

/// An expression on its way from Python's syntax to that of `regex-lite`.
struct Translation<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    out: String,
    /// What `$` becomes.
    end: &'static str,
}

impl<'a> Translation<'a> {
    fn of(python: &'a str, end: &'static str) -> Result<String, String> {
        let mut translation = Self {
            rest: python.chars().peekable(),
            out: String::new(),
            end,
        };
        while let Some(letter) = translation.rest.next() {
            translation.item(letter)?;
        }
        Ok(translation.out)
    }

    fn item(&mut self, letter: char) -> Result<(), String> {
        match letter {
            '\\' => self.escape(),
            '[' => self.class(),
            '(' => self.group(),
            // At the end, and before a newline that ends the text.
            '$' => {
                self.out.push_str(self.end);
                Ok(())
            }
            '{' => match self.bounds() {
                Some(bounds) => {
                    self.out.push_str(&bounds);
                    self.after_repetition()
                }
                None => {
                    self.literal('{');
                    Ok(())
                }
            },
            '*' | '+' | '?' => {
                self.out.push(letter);
                self.after_repetition()
            }
            '.' | '^' | '|' | ')' => {
                self.out.push(letter);
                Ok(())
            }
            other => {
                self.literal(other);
                Ok(())
            }
        }
    }

    fn literal(&mut self, letter: char) {
        if r"\.+*?()|[]{}^$#&-~".contains(letter) {
            self.out.push('\\');
        }
        self.out.push(letter);
    }

    fn after_repetition(&mut self) -> Result<(), String> {
        match self.rest.peek() {
            Some('?') => {
                self.out.push('?');
                self.rest.next();
                Ok(())
            }
            Some('+') => Err("possessive repetition (`*+`) is not supported".to_owned()),
            Some('*') => Err("one repetition follows another".to_owned()),
            _ => Ok(()),
        }
    }

    /// `{2}`, `{2,}`, `{,3}` or `{2,3}` after the brace; any other brace stands for itself.
    fn bounds(&mut self) -> Option<String> {
        let ahead: String = self.rest.clone().take_while(|c| *c != '}').collect();
        let closed = self.rest.clone().nth(ahead.chars().count()) == Some('}');
        let number = |text: &str| text.chars().all(|c| c.is_ascii_digit());
        let bounds = match ahead.split_once(',') {
            Some((least, most)) if number(least) && number(most) => {
                let least = if least.is_empty() { "0" } else { least };
                format!("{{{least},{most}}}")
            }
            None if !ahead.is_empty() && number(&ahead) => format!("{{{ahead}}}"),
            _ => return None,
        };
        if !closed {
            return None;
        }
        self.rest.nth(ahead.chars().count());
        Some(bounds)
    }

    fn escape(&mut self) -> Result<(), String> {
        let letter = self
            .rest
            .next()
            .ok_or("nothing follows the last backslash")?;
        match letter {
            'd' | 'D' | 'w' | 'W' | 's' | 'S' | 'b' | 'B' | 'A' => {
                self.out.push('\\');
                self.out.push(letter);
            }
            'Z' => self.out.push_str("\\z"),
            '1'..='9' => {
                return Err(format!("the back reference `\\{letter}` is not supported"));
            }
            other => {
                let literal = self.escaped(other)?;
                self.literal(literal);
            }
        }
        Ok(())
    }

    /// The character that an escape stands for, in a class or outside of one.
    fn escaped(&mut self, letter: char) -> Result<char, String> {
        match letter {
            'x' => {
                let digits: String = self.rest.by_ref().take(2).collect();
                u8::from_str_radix(&digits, 16)
                    .map(char::from)
                    .map_err(|_| format!("`\\x{digits}` is not two hexadecimal digits"))
            }
            '0' => {
                let mut value = 0;
                for _ in 0..2 {
                    let Some(digit) = self.rest.peek().and_then(|c| c.to_digit(8)) else {
                        break;
                    };
                    value = value * 8 + digit;
                    self.rest.next();
                }
                Ok(char::from(u8::try_from(value).unwrap_or(0)))
            }
            'b' => Err("`\\b` is out of place".to_owned()),
            other => match control(other) {
                Some(byte) => Ok(byte.into()),
                None if other.is_ascii_alphanumeric() => Err(format!("`\\{other}` is no escape")),
                None => Ok(other),
            },
        }
    }

    fn class(&mut self) -> Result<(), String> {
        const OPEN: &str = "a `[` is not closed";
        self.out.push('[');
        if self.rest.next_if_eq(&'^').is_some() {
            self.out.push('^');
        }
        let mut first = true;
        loop {
            let letter = self.rest.next().ok_or(OPEN)?;
            match letter {
                ']' if !first => break,
                '\\' => match self.rest.next().ok_or(OPEN)? {
                    set @ ('d' | 'D' | 'w' | 'W' | 's' | 'S') => {
                        self.out.push('\\');
                        self.out.push(set);
                    }
                    'b' => self.out.push_str("\\x08"),
                    other => {
                        let literal = self.escaped(other)?;
                        self.literal(literal);
                    }
                },
                // Between two characters a range; else itself.
                '-' if !first && !matches!(self.rest.peek(), Some(']') | None) => {
                    self.out.push('-')
                }
                other => self.literal(other),
            }
            first = false;
        }
        self.out.push(']');
        Ok(())
    }

    fn group(&mut self) -> Result<(), String> {
        if self.rest.next_if_eq(&'?').is_none() {
            self.out.push('(');
            return Ok(());
        }
        const OPEN: &str = "a group is not closed";
        match self.rest.next().ok_or(OPEN)? {
            ':' => self.out.push_str("(?:"),
            'P' => match self.rest.next().ok_or(OPEN)? {
                '<' => self.out.push_str("(?P<"),
                _ => return Err("the back reference `(?P=…)` is not supported".to_owned()),
            },
            '#' => {
                self.rest.by_ref().find(|c| *c == ')').ok_or(OPEN)?;
                return Ok(());
            }
            '=' | '!' => {
                return Err("look-ahead (`(?=…)`, `(?!…)`) is not supported: match the whole line, or use search_string".to_owned());
            }
            '<' => {
                return Err("look-behind (`(?<=…)`, `(?<!…)`) is not supported: match the whole line, or use search_string".to_owned());
            }
            '>' => return Err("atomic groups (`(?>…)`) are not supported".to_owned()),
            '(' => return Err("conditional groups (`(?(1)…)`) are not supported".to_owned()),
            first => return self.flags(first),
        }
        if self.out.ends_with('<') {
            // The name stands as it is.
            let name: String = self.rest.by_ref().take_while(|c| *c != '>').collect();
            self.out.push_str(&name);
            self.out.push('>');
        }
        Ok(())
    }

    fn flags(&mut self, first: char) -> Result<(), String> {
        let mut flags = String::new();
        let mut letter = first;
        while letter != ')' && letter != ':' {
            match letter {
                // ASCII is all there is in bytes.
                'a' => {}
                'i' | 'm' | 's' | '-' => flags.push(letter),
                other => return Err(format!("the flag `{other}` is not supported")),
            }
            letter = self.rest.next().ok_or("a group is not closed")?;
        }
        match (flags.is_empty(), letter) {
            (true, ')') => {}
            (_, end) => {
                self.out.push_str("(?");
                self.out.push_str(&flags);
                self.out.push(end);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Pattern, latin1};

    fn finds(pattern: &str, text: &str) -> bool {
        Pattern::new(pattern).unwrap().is_in(text.as_bytes())
    }

    #[test]
    fn expressions_mean_what_python_means() {
        let cases = [
            (r"^#?\s*PermitRootLogin", "#PermitRootLogin yes\n", true),
            // The end is before the newline that ends the line, too.
            ("foo$", "foo\n", true),
            ("foo$", "foo", true),
            (r"foo\Z", "foo\n", false),
            ("^$", "\n", true),
            // A brace that bounds nothing stands for itself.
            ("^server {", "server {\n", true),
            ("a{,2}b{1}c{2,}", "bcc", true),
            ("{{ x }}", "{{ x }}", true),
            // Escapes of punctuation, slashes and quotes among them.
            (r#"\/etc\/\"x\"\=\<"#, "/etc/\"x\"=<", true),
            (r"\x41\n\012\t", "A\n\n\t", true),
            // Classes: a bracket first, a dash last, signs that other dialects take for operators.
            ("[]a]+$", "]a]", true),
            ("[^]a]", "]a", false),
            ("[a&&b]", "&", true),
            ("[[a]", "[", true),
            (r"[\w.-]+@", "a.b-c@", true),
            (r"[a\-z]$", "-", true),
            (r"[a\-z]$", "m", false),
            (r"[\]]", "]", true),
            ("(?i)LISTEN", "listen", true),
            ("(?i:ab)c", "ABC", false),
            ("(?#a note)x", "x", true),
            ("(?a)x", "x", true),
            // Bytes, not characters: one letter outside of ASCII is two.
            ("^..$", "é\n", true),
            (r"\w", "é", false),
            ("é", "café", true),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(finds(pattern, text), expected, "{pattern} in {text:?}");
        }
    }

    #[test]
    fn what_cannot_be_done_is_refused_by_name() {
        let cases = [
            ("(a)(?(1)b)", "is not supported"),
            ("a**", "one repetition follows another"),
            (r"\q", "`\\q` is no escape"),
            ("[a", "not closed"),
            ("(a", "cannot be read"),
        ];
        for (pattern, reason) in cases {
            let refused = Pattern::new(pattern).unwrap_err();
            assert!(
                refused.contains(reason) && refused.contains(pattern),
                "{pattern}: {refused}"
            );
        }
    }

    #[test]
    fn a_replacement_is_filled_in_as_python_does() {
        let expand = |pattern: &str, text: &str, template: &str| {
            let pattern = Pattern::new(pattern).unwrap();
            let text = latin1(text.as_bytes());
            pattern
                .find(&text)
                .unwrap()
                .expand(template)
                .map(|bytes| String::from_utf8(bytes).unwrap())
        };
        assert_eq!(
            expand(r"^(\S+)\s*=\s*(.*)$", "a = é\n", r"\1=\2!").unwrap(),
            "a=é!"
        );
        assert_eq!(
            expand("(?P<key>a)", "a", r"\g<key>\g<1>\t\\1").unwrap(),
            "aa\t\\1"
        );
        assert_eq!(expand("(a)|(b)", "a", r"[\2]").unwrap(), "[]");
        assert_eq!(expand("(a)", "a", r"\.").unwrap(), "\\.");
        assert!(
            expand("(a)", "a", r"\3")
                .unwrap_err()
                .contains("no group `3`")
        );
        assert!(expand("(a)", "a", r"\q").unwrap_err().contains("no escape"));
    }
}
