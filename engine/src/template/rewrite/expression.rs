//! The walk over one Jinja expression that notes what has to be said differently for minijinja.

use std::ops::Range;

use super::lexer::{Token, TokenKind};
use super::{Chain, Notes, Step};

/// As deep as minijinja itself goes.
const DEPTH: usize = 140;

/// Methods that change the value they are called on. A template that calls one gets lists and dicts that can change.
const MUTATING: [&str; 12] = [
    "append",
    "extend",
    "insert",
    "pop",
    "popitem",
    "remove",
    "reverse",
    "sort",
    "clear",
    "update",
    "setdefault",
    "difference_update",
];

/// Whether the text calls a method that changes its list or dict.
pub(crate) fn mutates(source: &str) -> bool {
    MUTATING.iter().any(|method| {
        source.match_indices(method).any(|(at, _)| {
            source[..at].trim_end().ends_with('.')
                && source[at + method.len()..].trim_start().starts_with('(')
        })
    })
}

/// A cursor over the tokens of one expression or statement.
pub(crate) struct Walk<'a> {
    source: &'a str,
    tokens: &'a [Token],
    at: usize,
    depth: usize,
    mutable: bool,
    /// How many calls of lookups are around the cursor.
    lookups: usize,
    notes: &'a mut Notes,
}

/// The bytes of an operand, and whether it is sure to be there: a constant, or made by an operator.
struct Operand {
    range: Range<usize>,
    constant: bool,
}

/// The walk met something that is no expression; minijinja will say what.
pub(crate) struct NotAnExpression;

type Walked<T> = Result<T, NotAnExpression>;

impl<'a> Walk<'a> {
    pub(crate) fn new(
        source: &'a str,
        tokens: &'a [Token],
        mutable: bool,
        notes: &'a mut Notes,
    ) -> Self {
        Self {
            source,
            tokens,
            at: 0,
            depth: 0,
            mutable,
            lookups: 0,
            notes,
        }
    }

    pub(crate) fn done(&self) -> bool {
        self.at >= self.tokens.len()
    }

    pub(crate) fn notes(&mut self) -> &mut Notes {
        self.notes
    }

    pub(crate) fn text(&self) -> &'a str {
        self.ahead(0)
    }

    fn ahead(&self, by: usize) -> &'a str {
        self.tokens
            .get(self.at + by)
            .map_or("", |token| &self.source[token.range.clone()])
    }

    pub(crate) fn kind(&self) -> Option<TokenKind> {
        self.tokens.get(self.at).map(|token| token.kind)
    }

    pub(crate) fn take(&mut self) -> Walked<Token> {
        let token = self.tokens.get(self.at).cloned().ok_or(NotAnExpression)?;
        self.at += 1;
        Ok(token)
    }

    /// Takes the token if it reads `text` and is not a quoted string.
    pub(crate) fn accept(&mut self, text: &str) -> bool {
        let found = self.is(text);
        self.at += usize::from(found);
        found
    }

    pub(crate) fn is(&self, text: &str) -> bool {
        self.kind() != Some(TokenKind::Text) && self.text() == text && !text.is_empty()
    }

    fn expect(&mut self, text: &str) -> Walked<usize> {
        let token = self.take()?;
        if &self.source[token.range.clone()] == text {
            Ok(token.range.end)
        } else {
            Err(NotAnExpression)
        }
    }

    pub(crate) fn name(&mut self) -> Walked<(&'a str, Range<usize>)> {
        let token = self.take()?;
        match token.kind {
            TokenKind::Name => Ok((&self.source[token.range.clone()], token.range)),
            _ => Err(NotAnExpression),
        }
    }

    fn start(&self) -> Walked<usize> {
        self.tokens
            .get(self.at)
            .map(|token| token.range.start)
            .ok_or(NotAnExpression)
    }

    fn end(&self) -> usize {
        self.tokens[self.at - 1].range.end
    }

    /// One expression, or several with commas between them.
    pub(crate) fn tuple(&mut self) -> Walked<()> {
        self.expression()?;
        while self.accept(",") {
            if self.done() || self.is("=") || self.is(")") {
                break;
            }
            self.expression()?;
        }
        Ok(())
    }

    pub(crate) fn expression(&mut self) -> Walked<()> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(NotAnExpression);
        }
        self.or()?;
        while self.accept("if") {
            self.or()?;
            if self.accept("else") {
                self.expression()?;
            }
        }
        self.depth -= 1;
        Ok(())
    }

    pub(crate) fn or(&mut self) -> Walked<()> {
        self.and()?;
        while self.accept("or") {
            self.and()?;
        }
        Ok(())
    }

    fn and(&mut self) -> Walked<()> {
        self.not()?;
        while self.accept("and") {
            self.not()?;
        }
        Ok(())
    }

    fn not(&mut self) -> Walked<()> {
        while self.accept("not") {}
        self.comparison()
    }

    /// Both sides are looked at before minijinja compares them, which never fails: `undefined == 1` has to, and so
    /// has `1 < 'a'`.
    fn comparison(&mut self) -> Walked<()> {
        let mut left = Some(self.sum()?);
        while let Some((operator, range)) = self.comparator() {
            let right = self.sum()?;
            let ordering = match operator {
                "<" => Some("__less"),
                "<=" => Some("__most"),
                ">" => Some("__more"),
                ">=" => Some("__least"),
                _ => None,
            };
            let mark = self.at;
            let chained = self.comparator().is_some();
            self.at = mark;
            match (ordering, left.take()) {
                (Some(filter), Some(left)) if !chained => {
                    self.notes.edits.insert(left.range.start, "((");
                    self.notes.edits.replace(range, format!(")|{filter}("));
                    self.notes.edits.insert(right.range.end, "))");
                }
                (_, left) => {
                    if let Some(left) = left {
                        self.look_at(&left);
                    }
                    self.look_at(&right);
                }
            }
        }
        Ok(())
    }

    /// Takes an operator that compares.
    fn comparator(&mut self) -> Option<(&'a str, Range<usize>)> {
        let range = self.tokens.get(self.at)?.range.clone();
        if self.is("not") && self.ahead(1) == "in" {
            self.at += 2;
            return Some(("not in", range));
        }
        ["==", "!=", "<", "<=", ">", ">=", "in"]
            .into_iter()
            .find(|operator| self.accept(operator))
            .map(|operator| (operator, range))
    }

    fn look_at(&mut self, operand: &Operand) {
        if !operand.constant {
            self.notes.edits.insert(operand.range.start, "((");
            self.notes.edits.insert(operand.range.end, ")|__look)");
        }
    }

    fn sum(&mut self) -> Walked<Operand> {
        let mut left = self.concatenation()?;
        loop {
            if self.accept("+") {
                left = self.arithmetic(left, Self::concatenation)?;
            } else if self.is("-") {
                left = self.binary_filter(left, "-", "__minus", Self::concatenation)?;
            } else {
                return Ok(left);
            }
        }
    }

    /// The right side of an operator; its operands are looked at, so that one that is not there is named.
    fn arithmetic(
        &mut self,
        left: Operand,
        operand: fn(&mut Self) -> Walked<Operand>,
    ) -> Walked<Operand> {
        self.look_at(&left);
        let right = operand(self)?;
        self.look_at(&right);
        // What an operator made is there.
        Ok(Operand {
            range: left.range.start..self.end(),
            constant: true,
        })
    }

    /// `a ~ b` prints both, so it has to print as Python does.
    fn concatenation(&mut self) -> Walked<Operand> {
        let left = self.product()?;
        self.binary_filter(left, "~", "__concat", Self::product)
    }

    fn product(&mut self) -> Walked<Operand> {
        let mut left = self.power()?;
        loop {
            if self.accept("*") || self.accept("/") || self.accept("//") {
                left = self.arithmetic(left, Self::power)?;
            } else if self.is("%") {
                left = self.binary_filter(left, "%", "__percent", Self::power)?;
            } else {
                return Ok(left);
            }
        }
    }

    /// Writes `a OP b` as `((a )|filter( b))`, which binds as tightly as is needed anywhere.
    fn binary_filter(
        &mut self,
        mut left: Operand,
        operator: &str,
        filter: &str,
        operand: fn(&mut Self) -> Walked<Operand>,
    ) -> Walked<Operand> {
        while self.is(operator) {
            let token = self.take()?;
            self.notes.edits.insert(left.range.start, "((");
            self.notes
                .edits
                .replace(token.range, format!(")|{filter}("));
            operand(self)?;
            self.notes.edits.insert(self.end(), "))");
            left = Operand {
                range: left.range.start..self.end(),
                constant: true,
            };
        }
        Ok(left)
    }

    fn power(&mut self) -> Walked<Operand> {
        let mut left = self.unary()?;
        while self.accept("**") {
            left = self.arithmetic(left, Self::unary)?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> Walked<Operand> {
        let start = self.start()?;
        let mut operand = self.operand()?;
        while self.is("|") || self.is("is") {
            if self.accept("|") {
                self.filter()?;
            } else {
                self.at += 1;
                self.test()?;
            }
            operand.constant = false;
        }
        Ok(Operand {
            range: start..self.end(),
            constant: operand.constant,
        })
    }

    /// A signed primary with its attributes, items and calls, but without filters and tests.
    fn operand(&mut self) -> Walked<Operand> {
        let start = self.start()?;
        let mut signed = false;
        while self.accept("-") || self.accept("+") {
            signed = true;
        }
        if signed
            && self
                .tokens
                .get(self.at.wrapping_sub(1))
                .is_some_and(|token| &self.source[token.range.clone()] == "+")
        {
            // minijinja knows no unary plus; it means nothing.
            let plus = self.tokens[self.at - 1].range.clone();
            self.notes.edits.replace(plus, " ");
        }
        let constant = self.chain()?;
        Ok(Operand {
            range: start..self.end(),
            constant,
        })
    }

    /// The name of a filter or a test, which may have dots.
    fn dotted(&mut self) -> Walked<(String, Range<usize>)> {
        let (first, mut range) = self.name()?;
        let mut name = first.to_owned();
        while self.is(".") {
            self.at += 1;
            let (part, part_range) = self.name()?;
            name.push('.');
            name.push_str(part);
            range.end = part_range.end;
        }
        Ok((name, range))
    }

    pub(crate) fn filter(&mut self) -> Walked<()> {
        let filter = self.dotted()?;
        self.notes.filters.push(filter);
        if self.is("(") {
            self.arguments()?;
        }
        Ok(())
    }

    fn test(&mut self) -> Walked<()> {
        self.accept("not");
        let test = self.dotted()?;
        self.notes.tests.push(test);
        if self.is("(") {
            return self.arguments();
        }
        let argument = match self.kind() {
            Some(TokenKind::Text | TokenKind::Number) => true,
            Some(TokenKind::Name) => {
                !["and", "or", "else", "is", "if", "not", "in", "recursive"].contains(&self.text())
            }
            Some(TokenKind::Operator) => ["[", "{"].contains(&self.text()),
            None => false,
        };
        if argument {
            // minijinja takes one word for such an argument, Jinja a chain of attributes.
            let mark = self.notes.edits.len();
            let argument = self.operand()?;
            let simple = mark == self.notes.edits.len() && !argument.range.is_empty();
            if !simple || self.source[argument.range.clone()].contains(['.', '(', '[', '{']) {
                self.notes.edits.insert(argument.range.start, "(");
                self.notes.edits.insert(argument.range.end, ")");
            }
        }
        Ok(())
    }

    fn arguments(&mut self) -> Walked<()> {
        self.expect("(")?;
        while !self.accept(")") {
            if !(self.accept("**") || self.accept("*"))
                && self.kind() == Some(TokenKind::Name)
                && self.ahead(1) == "="
            {
                self.at += 2;
            }
            self.expression()?;
            if !self.is(")") && !self.accept(",") {
                return Err(NotAnExpression);
            }
        }
        Ok(())
    }

    /// A primary and its postfixes. Every step but the last is marked so that a missing one can be passed over
    /// (`a.b.c | default('x')` with no `a`). Answers whether it is a constant.
    fn chain(&mut self) -> Walked<bool> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(NotAnExpression);
        }
        let start = self.start()?;
        let mut path = Vec::new();
        let mut constant = true;
        let first = self.take()?;
        let text = &self.source[first.range.clone()];
        match first.kind {
            TokenKind::Name => {
                if !["true", "false", "none", "True", "False", "None"].contains(&text) {
                    constant = false;
                    path.push(Step::Name(text.to_owned()));
                    if self.is("(") {
                        self.notes
                            .calls
                            .push((text.to_owned(), first.range.clone()));
                    }
                }
            }
            TokenKind::Text => {
                self.notes.strings.push(first.range.clone());
                while self.kind() == Some(TokenKind::Text) {
                    let next = self.take()?;
                    self.notes.strings.push(next.range);
                }
                // Old playbooks write templates into what a lookup is to look for: `lookup('pipe', 'id {{ user }}')`.
                if self.lookups > 0 && super::is_template(&self.source[start..self.end()]) {
                    self.notes.edits.insert(start, "(");
                    self.notes.edits.insert(self.end(), "|__render)");
                }
            }
            TokenKind::Number => {}
            TokenKind::Operator => {
                constant = false;
                self.bracketed(text, start)?;
            }
        }
        if !path.is_empty() && !self.is("(") {
            self.notes.chains.push(Chain {
                range: start..self.end(),
                path: path.clone(),
            });
        }
        self.postfixes(start, &mut path, &mut constant)?;
        self.depth -= 1;
        Ok(constant)
    }

    fn bracketed(&mut self, open: &str, start: usize) -> Walked<()> {
        match open {
            "(" => {
                if !self.accept(")") {
                    self.tuple()?;
                    self.expect(")")?;
                }
                return Ok(());
            }
            "[" => {
                while !self.accept("]") {
                    self.expression()?;
                    if !self.is("]") && !self.accept(",") {
                        return Err(NotAnExpression);
                    }
                }
            }
            "{" => {
                while !self.accept("}") {
                    self.expression()?;
                    self.expect(":")?;
                    self.expression()?;
                    if !self.is("}") && !self.accept(",") {
                        return Err(NotAnExpression);
                    }
                }
            }
            _ => return Err(NotAnExpression),
        }
        if self.mutable {
            self.notes.edits.insert(start, "(");
            self.notes.edits.insert(self.end(), "|__mutable)");
        }
        Ok(())
    }

    fn postfixes(&mut self, start: usize, path: &mut Vec<Step>, constant: &mut bool) -> Walked<()> {
        loop {
            let end = self.end();
            if self.is(".") {
                let called = self.ahead(2) == "(";
                // minijinja itself knows what `self` and `loop` can do.
                let own =
                    matches!(&path[..], [Step::Name(name)] if name == "self" || name == "loop");
                if !called || !(*constant || own) {
                    self.pass_over(start, end);
                }
                *constant = false;
                self.at += 1;
                let part = self.take()?;
                let text = &self.source[part.range.clone()];
                match part.kind {
                    TokenKind::Name if called => path.clear(),
                    TokenKind::Name => extend(path, Step::Attribute(text.to_owned())),
                    TokenKind::Number => {
                        extend(path, text.parse().map_or(Step::Computed, Step::Index))
                    }
                    _ => return Err(NotAnExpression),
                }
            } else if self.is("[") {
                *constant = false;
                self.at += 1;
                let (step, slice) = self.subscript()?;
                if slice {
                    path.clear();
                } else {
                    self.pass_over(start, end);
                    extend(path, step);
                }
            } else if self.is("(") {
                *constant = false;
                let lookup = matches!(
                    &path[..],
                    [Step::Name(name)] if ["lookup", "query", "q"].contains(&name.as_str())
                );
                path.clear();
                self.lookups += usize::from(lookup);
                self.arguments()?;
                self.lookups -= usize::from(lookup);
            } else {
                return Ok(());
            }
            if !path.is_empty() {
                self.notes.chains.push(Chain {
                    range: start..self.end(),
                    path: path.clone(),
                });
            }
        }
    }

    fn pass_over(&mut self, start: usize, end: usize) {
        self.notes.edits.insert(start, "(");
        self.notes.edits.insert(end, "|__step)");
    }

    /// What stands in brackets, and whether it is a slice.
    fn subscript(&mut self) -> Walked<(Step, bool)> {
        let constant = match (self.kind(), self.ahead(1)) {
            (Some(TokenKind::Text), "]") => {
                let quoted = self.text();
                Step::Attribute(quoted[1..quoted.len() - 1].to_owned())
            }
            (Some(TokenKind::Number), "]") => {
                self.text().parse().map_or(Step::Computed, Step::Index)
            }
            _ => Step::Computed,
        };
        let mut slice = false;
        while !self.accept("]") {
            if self.accept(":") {
                slice = true;
            } else {
                self.expression()?;
            }
        }
        Ok((constant, slice))
    }
}

fn extend(path: &mut Vec<Step>, step: Step) {
    if !path.is_empty() {
        path.push(step);
    }
}
