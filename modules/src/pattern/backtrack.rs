//! Expressions that look around themselves or back at their groups: `regex-lite` has none of that, so these are matched
//! here, by trying. Slower, and only used where an expression needs it.

use std::cell::Cell;

/// Steps after which a search is given up: an expression that needs more would never end.
const PATIENCE: u32 = 20_000_000;
/// How deep groups are repeated within each other.
const DEPTH: u32 = 20_000;

/// An expression, ready to be searched for in bytes.
#[derive(Debug)]
pub(super) struct Program {
    node: Node,
    groups: usize,
    /// Names of groups with their numbers.
    pub(super) names: Vec<(String, usize)>,
}

/// Where the groups of a match begin and end; the whole is the first.
pub(super) type Spans = Vec<Option<(usize, usize)>>;

#[derive(Debug)]
enum Node {
    Set(Box<[bool; 256]>),
    LineStart,
    LineEnd,
    TextStart,
    /// The end, or before a newline that ends the text.
    LastEnd,
    TextEnd,
    WordEdge(bool),
    Group(usize, Box<Node>),
    Seq(Vec<Node>),
    Either(Vec<Node>),
    Repeat {
        node: Box<Node>,
        least: usize,
        most: usize,
        how: How,
    },
    Back(usize, bool),
    Look {
        ahead: bool,
        negated: bool,
        node: Box<Node>,
    },
    Atomic(Box<Node>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Greedy,
    Lazy,
    Possessive,
}

impl Program {
    /// Reads an expression of Python, given as bytes.
    pub(super) fn new(python: &[u8], multiline: bool, dotall: bool) -> Result<Self, String> {
        let mut reader = Reader {
            rest: python,
            groups: 0,
            names: Vec::new(),
            flags: Flags {
                multiline,
                dotall,
                ignore_case: false,
                verbose: false,
            },
        };
        let node = reader.either()?;
        if !reader.rest.is_empty() {
            return Err("a group is closed that was not opened".to_owned());
        }
        Ok(Self {
            node,
            groups: reader.groups,
            names: reader.names,
        })
    }

    /// The names of the groups, in order.
    pub(super) fn group_names(&self) -> Vec<Option<&str>> {
        let name = |number| {
            let mut found = self.names.iter().filter(|(_, own)| *own == number);
            found.next().map(|(name, _)| name.as_str())
        };
        (1..=self.groups).map(name).collect()
    }

    /// The first match from a place on.
    pub(super) fn find(&self, text: &[u8], from: usize) -> Option<Spans> {
        let search = Search {
            text,
            steps: Cell::new(0),
            depth: Cell::new(0),
        };
        for start in from..=text.len() {
            let mut spans = vec![None; self.groups + 1];
            let mut end = None;
            let found = search.node(&self.node, start, &mut spans, &mut |at, _| {
                end = Some(at);
                true
            });
            if let (true, Some(end)) = (found, end) {
                spans[0] = Some((start, end));
                return Some(spans);
            }
            if search.steps.get() > PATIENCE {
                return None;
            }
        }
        None
    }
}

struct Search<'t> {
    text: &'t [u8],
    steps: Cell<u32>,
    depth: Cell<u32>,
}

type Next<'k> = &'k mut dyn FnMut(usize, &mut Spans) -> bool;

impl Search<'_> {
    fn node(&self, node: &Node, at: usize, spans: &mut Spans, next: Next<'_>) -> bool {
        self.steps.set(self.steps.get().saturating_add(1));
        if self.steps.get() > PATIENCE {
            return false;
        }
        let text = self.text;
        match node {
            Node::Set(set) => {
                text.get(at).is_some_and(|byte| set[usize::from(*byte)]) && next(at + 1, spans)
            }
            Node::LineStart => (at == 0 || text[at - 1] == b'\n') && next(at, spans),
            Node::LineEnd => (at == text.len() || text[at] == b'\n') && next(at, spans),
            Node::TextStart => at == 0 && next(at, spans),
            Node::LastEnd => (at == text.len() || &text[at..] == b"\n") && next(at, spans),
            Node::TextEnd => at == text.len() && next(at, spans),
            Node::WordEdge(wanted) => {
                let is_word = |byte: Option<&u8>| {
                    byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
                };
                let before = at.checked_sub(1).and_then(|at| text.get(at));
                (is_word(before) != is_word(text.get(at))) == *wanted && next(at, spans)
            }
            Node::Group(number, inner) => self.node(inner, at, spans, &mut |end, spans| {
                let before = spans[*number].replace((at, end));
                if next(end, spans) {
                    return true;
                }
                spans[*number] = before;
                false
            }),
            Node::Seq(nodes) => self.seq(nodes, at, spans, next),
            Node::Either(nodes) => nodes.iter().any(|node| self.node(node, at, spans, next)),
            Node::Repeat {
                node,
                least,
                most,
                how,
            } => match &**node {
                Node::Set(set) => self.run(set, (*least, *most), *how, at, spans, next),
                inner if *how == How::Possessive => {
                    let greedy = |end: &mut Option<usize>, spans: &mut Spans| {
                        self.again(
                            inner,
                            (*least, *most),
                            How::Greedy,
                            0,
                            at,
                            spans,
                            &mut |to, _| {
                                *end = Some(to);
                                true
                            },
                        )
                    };
                    let mut end = None;
                    greedy(&mut end, spans) && end.is_some_and(|end| next(end, spans))
                }
                inner => self.again(inner, (*least, *most), *how, 0, at, spans, next),
            },
            Node::Back(number, ignore_case) => {
                let Some((start, end)) = spans.get(*number).copied().flatten() else {
                    return false;
                };
                let (same, length) = (&text[start..end], end - start);
                let here = text.get(at..at + length);
                let equal = here.is_some_and(|here| match ignore_case {
                    true => here.eq_ignore_ascii_case(same),
                    false => here == same,
                });
                equal && next(at + length, spans)
            }
            Node::Look {
                ahead,
                negated,
                node,
            } => {
                let mut own = spans.clone();
                let found = match ahead {
                    true => self.node(node, at, &mut own, &mut |_, _| true),
                    false => (0..=at)
                        .rev()
                        .any(|start| self.node(node, start, &mut own, &mut |end, _| end == at)),
                };
                if found == *negated {
                    return false;
                }
                if found {
                    *spans = own;
                }
                next(at, spans)
            }
            Node::Atomic(inner) => {
                let mut end = None;
                let found = self.node(inner, at, spans, &mut |to, _| {
                    end = Some(to);
                    true
                });
                found && end.is_some_and(|end| next(end, spans))
            }
        }
    }

    fn seq(&self, nodes: &[Node], at: usize, spans: &mut Spans, next: Next<'_>) -> bool {
        match nodes.split_first() {
            None => next(at, spans),
            Some((first, rest)) => self.node(first, at, spans, &mut |at, spans| {
                self.seq(rest, at, spans, next)
            }),
        }
    }

    /// A set, several times: without a step for each.
    fn run(
        &self,
        set: &[bool; 256],
        (least, most): (usize, usize),
        how: How,
        at: usize,
        spans: &mut Spans,
        next: Next<'_>,
    ) -> bool {
        let fits = self.text[at..].iter().take(most);
        let longest = fits.take_while(|byte| set[usize::from(**byte)]).count();
        if longest < least {
            return false;
        }
        match how {
            How::Greedy => (least..=longest).rev().any(|count| next(at + count, spans)),
            How::Lazy => (least..=longest).any(|count| next(at + count, spans)),
            How::Possessive => next(at + longest, spans),
        }
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "a repetition is what is repeated, how often it may be and was, and what follows"
    )]
    fn again(
        &self,
        node: &Node,
        (least, most): (usize, usize),
        how: How,
        count: usize,
        at: usize,
        spans: &mut Spans,
        next: Next<'_>,
    ) -> bool {
        if self.depth.get() > DEPTH {
            return false;
        }
        let enough = count >= least;
        if enough && how == How::Lazy && next(at, spans) {
            return true;
        }
        self.depth.set(self.depth.get() + 1);
        let more = count < most
            && self.node(node, at, spans, &mut |to, spans| {
                // What matches nothing would be repeated for ever.
                (to != at || count < least)
                    && self.again(node, (least, most), how, count + 1, to, spans, next)
            });
        self.depth.set(self.depth.get() - 1);
        more || enough && how != How::Lazy && next(at, spans)
    }
}

#[derive(Clone, Copy)]
struct Flags {
    multiline: bool,
    dotall: bool,
    ignore_case: bool,
    verbose: bool,
}

struct Reader<'p> {
    rest: &'p [u8],
    groups: usize,
    names: Vec<(String, usize)>,
    flags: Flags,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn take(&mut self, text: &[u8]) -> bool {
        let taken = self.rest.strip_prefix(text);
        if let Some(rest) = taken {
            self.rest = rest;
        }
        taken.is_some()
    }

    fn until(&mut self, end: u8) -> Result<String, String> {
        let at = self.rest.iter().position(|byte| *byte == end);
        let at = at.ok_or_else(|| format!("a `{}` is missing", char::from(end)))?;
        let text = String::from_utf8_lossy(&self.rest[..at]).into_owned();
        self.rest = &self.rest[at + 1..];
        Ok(text)
    }

    fn either(&mut self) -> Result<Node, String> {
        let mut ways = vec![self.seq()?];
        while self.take(b"|") {
            ways.push(self.seq()?);
        }
        Ok(match ways.len() {
            1 => ways.remove(0),
            _ => Node::Either(ways),
        })
    }

    fn seq(&mut self) -> Result<Node, String> {
        let mut nodes = Vec::new();
        while let Some(byte) = self.rest.first().copied() {
            if matches!(byte, b'|' | b')') {
                break;
            }
            self.next();
            if self.flags.verbose && (byte.is_ascii_whitespace() || byte == b'#') {
                if byte == b'#' {
                    let end = self.rest.iter().position(|byte| *byte == b'\n');
                    self.rest = &self.rest[end.unwrap_or(self.rest.len())..];
                }
                continue;
            }
            let Some(node) = self.atom(byte)? else {
                continue;
            };
            let node = self.repeated(node)?;
            nodes.push(node);
        }
        Ok(Node::Seq(nodes))
    }

    fn repeated(&mut self, node: Node) -> Result<Node, String> {
        let (least, most) = match usual_sign(self.rest) {
            Some(b'{') => match self.bounds() {
                Some(bounds) => bounds,
                None => return Ok(node),
            },
            Some(sign) => {
                self.next();
                match sign {
                    b'*' => (0, usize::MAX),
                    b'+' => (1, usize::MAX),
                    _ => (0, 1),
                }
            }
            None => return Ok(node),
        };
        let how = if self.take(b"?") {
            How::Lazy
        } else if self.take(b"+") {
            How::Possessive
        } else {
            How::Greedy
        };
        match usual_sign(self.rest).filter(|sign| *sign != b'{') {
            Some(_) => Err("one repetition follows another".to_owned()),
            _ => Ok(Node::Repeat {
                node: Box::new(node),
                least,
                most,
                how,
            }),
        }
    }

    /// `{2}`, `{2,}`, `{,3}` or `{2,3}`; any other brace stands for itself.
    fn bounds(&mut self) -> Option<(usize, usize)> {
        let inner = self.rest.strip_prefix(b"{")?;
        let end = inner.iter().position(|byte| *byte == b'}')?;
        let text = std::str::from_utf8(&inner[..end]).ok()?;
        let number = |text: &str, usual: usize| match text.is_empty() {
            true => Some(usual),
            false => text.parse().ok(),
        };
        let bounds = match text.split_once(',') {
            Some((least, most)) => (number(least, 0)?, number(most, usize::MAX)?),
            None => {
                let exact = text.parse().ok()?;
                (exact, exact)
            }
        };
        self.rest = &inner[end + 1..];
        Some(bounds)
    }

    /// What a byte begins; none for what matches nothing by itself.
    fn atom(&mut self, byte: u8) -> Result<Option<Node>, String> {
        Ok(Some(match byte {
            b'.' => {
                let dotall = self.flags.dotall;
                set(|byte| dotall || byte != b'\n')
            }
            b'^' if self.flags.multiline => Node::LineStart,
            b'^' => Node::TextStart,
            b'$' if self.flags.multiline => Node::LineEnd,
            b'$' => Node::LastEnd,
            b'[' => self.class()?,
            b'(' => return self.group(),
            b'\\' => self.escape()?,
            b'*' | b'+' | b'?' => return Err("there is nothing to repeat".to_owned()),
            other => self.letter(other),
        }))
    }

    fn letter(&self, letter: u8) -> Node {
        let both = self.flags.ignore_case;
        set(|byte| byte == letter || both && byte.eq_ignore_ascii_case(&letter))
    }

    fn escape(&mut self) -> Result<Node, String> {
        let letter = self.next().ok_or("nothing follows the last backslash")?;
        if let Some(class) = known_class(letter) {
            return Ok(set(class));
        }
        Ok(match letter {
            b'A' => Node::TextStart,
            b'Z' => Node::TextEnd,
            b'b' => Node::WordEdge(true),
            b'B' => Node::WordEdge(false),
            b'1'..=b'9' => {
                let mut number = usize::from(letter - b'0');
                if let Some(digit) = self.rest.first().filter(|byte| byte.is_ascii_digit()) {
                    number = number * 10 + usize::from(digit - b'0');
                    self.next();
                }
                match number <= self.groups {
                    true => Node::Back(number, self.flags.ignore_case),
                    false => return Err(format!("there is no group {number} to look back at")),
                }
            }
            other => {
                let literal = self.escaped(other)?;
                self.letter(literal)
            }
        })
    }

    fn escaped(&mut self, letter: u8) -> Result<u8, String> {
        Ok(match letter {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'f' => 12,
            b'v' => 11,
            b'a' => 7,
            b'0' => 0,
            b'x' => {
                let digits: Vec<u8> = [self.next(), self.next()].into_iter().flatten().collect();
                let digits = String::from_utf8_lossy(&digits).into_owned();
                u8::from_str_radix(&digits, 16)
                    .map_err(|_| format!("`\\x{digits}` is not two hexadecimal digits"))?
            }
            other if other.is_ascii_alphanumeric() => {
                return Err(format!("`\\{}` is no escape", char::from(other)));
            }
            other => other,
        })
    }

    fn class(&mut self) -> Result<Node, String> {
        const OPEN: &str = "a `[` is not closed";
        let negated = self.take(b"^");
        let mut members = [false; 256];
        let mut first = true;
        loop {
            let mut letter = self.next().ok_or(OPEN)?;
            if letter == b']' && !first {
                break;
            }
            first = false;
            if letter == b'\\' {
                let escaped = self.next().ok_or(OPEN)?;
                if let Some(class) = known_class(escaped) {
                    (0..=255).for_each(|byte| members[usize::from(byte)] |= class(byte));
                    continue;
                }
                letter = match escaped {
                    b'b' => 8,
                    other => self.escaped(other)?,
                };
            }
            let mut last = letter;
            if let [b'-', end, ..] = self.rest
                && *end != b']'
            {
                self.next();
                last = self.next().ok_or(OPEN)?;
                if last == b'\\' {
                    let escaped = self.next().ok_or(OPEN)?;
                    last = self.escaped(escaped)?;
                }
            }
            (letter..=last).for_each(|byte| members[usize::from(byte)] = true);
        }
        let both = self.flags.ignore_case;
        let has = |byte: u8| members[usize::from(byte)];
        Ok(set(|byte| {
            let here = has(byte)
                || both && (has(byte.to_ascii_lowercase()) || has(byte.to_ascii_uppercase()));
            here != negated
        }))
    }

    fn group(&mut self) -> Result<Option<Node>, String> {
        let flags = self.flags;
        let mut number = None;
        let mut looks: Option<(bool, bool)> = None;
        let mut atomic = false;
        if self.take(b"?") {
            if self.take(b"#") {
                self.until(b')')?;
                return Ok(None);
            } else if self.take(b"P=") {
                let name = self.until(b')')?;
                let known = self.names.iter().find(|(own, _)| *own == name);
                let number = known
                    .ok_or_else(|| format!("there is no group `{name}`"))?
                    .1;
                return Ok(Some(Node::Back(number, flags.ignore_case)));
            } else if self.take(b"P<") {
                let name = self.until(b'>')?;
                self.groups += 1;
                number = Some(self.groups);
                self.names.push((name, self.groups));
            } else if self.take(b"=") {
                looks = Some((true, false));
            } else if self.take(b"!") {
                looks = Some((true, true));
            } else if self.take(b"<=") {
                looks = Some((false, false));
            } else if self.take(b"<!") {
                looks = Some((false, true));
            } else if self.take(b">") {
                atomic = true;
            } else if !self.take(b":") && self.flags()? {
                return Ok(None);
            }
        } else {
            self.groups += 1;
            number = Some(self.groups);
        }
        let inner = self.either()?;
        if !self.take(b")") {
            return Err("a group is not closed".to_owned());
        }
        self.flags = flags;
        let inner = match looks {
            Some((ahead, negated)) => Node::Look {
                ahead,
                negated,
                node: Box::new(inner),
            },
            None if atomic => Node::Atomic(Box::new(inner)),
            None => inner,
        };
        Ok(Some(match number {
            Some(number) => Node::Group(number, Box::new(inner)),
            None => inner,
        }))
    }

    /// `(?im)`, which holds from here on, or the beginning of `(?i:…)`; true for the first.
    fn flags(&mut self) -> Result<bool, String> {
        let mut value = true;
        loop {
            match self.next().ok_or("a group is not closed")? {
                b')' => return Ok(true),
                b':' => return Ok(false),
                b'-' => value = false,
                b'i' => self.flags.ignore_case = value,
                b'm' => self.flags.multiline = value,
                b's' => self.flags.dotall = value,
                b'x' => self.flags.verbose = value,
                // Bytes are ASCII to Python.
                b'a' => {}
                other => return Err(format!("the flag `{}` is not supported", char::from(other))),
            }
        }
    }
}

fn usual_sign(rest: &[u8]) -> Option<u8> {
    rest.first().copied().filter(|byte| b"*+?{".contains(byte))
}

fn set(has: impl Fn(u8) -> bool) -> Node {
    let mut members = Box::new([false; 256]);
    (0..=255).for_each(|byte| members[usize::from(byte)] = has(byte));
    Node::Set(members)
}

fn known_class(letter: u8) -> Option<fn(u8) -> bool> {
    fn is_word(byte: u8) -> bool {
        byte.is_ascii_alphanumeric() || byte == b'_'
    }
    fn is_space(byte: u8) -> bool {
        matches!(byte, b' ' | b'\t'..=b'\r')
    }
    Some(match letter {
        b'd' => |byte| byte.is_ascii_digit(),
        b'D' => |byte| !byte.is_ascii_digit(),
        b'w' => is_word,
        b'W' => |byte| !is_word(byte),
        b's' => is_space,
        b'S' => |byte| !is_space(byte),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(pattern: &str, text: &str) -> Option<String> {
        let program = Program::new(pattern.as_bytes(), false, false).unwrap();
        let spans = program.find(text.as_bytes(), 0)?;
        let all = spans
            .iter()
            .map(|span| span.map_or("-", |(start, end)| &text[start..end]));
        Some(all.collect::<Vec<_>>().join("|"))
    }

    #[test]
    fn expressions_that_look_around_match_as_in_python() {
        for (pattern, text, found) in [
            ("^(?!#)Port (\\d+)", "Port 22", Some("Port 22|22")),
            ("^(?!#)Port", "#Port 22", None),
            ("(?<=a)b+", "b abb", Some("bb")),
            ("(?<!a)b", "ab b", Some("b")),
            ("^(REF) .* \\1$", "REF x REF", Some("REF x REF|REF")),
            ("(?P<q>['\"]).*?(?P=q)", "say 'hi' \"x\"", Some("'hi'|'")),
            ("(a|ab)(?=c)", "abc", Some("ab|ab")),
            ("(?>a+)ab", "aaab", None),
            ("a++b", "aaab", Some("aaab")),
            ("(?i)(?=PORT)p\\w{2,3}", "xPoRt", Some("PoRt")),
            ("(?:x(\\d))*(?!.)", "x1x2", Some("x1x2|2")),
            ("(?!)|[^\\]a-c]{2}\\b", "]ab dd", Some("dd")),
            ("(?x) a (?= b ) # comment", "ab", Some("a")),
            ("(a*)*(?=b)", "aab", Some("aa|aa")),
        ] {
            assert_eq!(find(pattern, text).as_deref(), found, "{pattern} {text}");
        }
    }

    #[test]
    fn what_would_never_end_is_given_up() {
        let text = "a".repeat(60);
        assert_eq!(find("(?!x)(a+)+$(?<=b)", &text), None);
    }

    #[test]
    fn what_is_wrong_is_told() {
        let wrong = |pattern: &str| Program::new(pattern.as_bytes(), false, false).unwrap_err();
        assert_eq!(wrong("(?=a"), "a group is not closed");
        assert_eq!(wrong("(?=a))"), "a group is closed that was not opened");
        assert_eq!(wrong("(?=a)\\1"), "there is no group 1 to look back at");
        assert_eq!(wrong("(?=a)**"), "one repetition follows another");
    }
}
