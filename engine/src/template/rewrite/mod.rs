//! Jinja as Ansible has it, said in what minijinja understands.
//!
//! minijinja lacks three things that playbooks rely on: a chain with missing steps before `default`, `%` on strings,
//! and lists that change in place. Each is a small insertion in the text of the template; a map of places leads every
//! error back to what the user wrote. A text that cannot be walked is left alone: minijinja says what is wrong with it.

mod edits;
mod expression;
mod lexer;
mod statement;

use std::collections::BTreeSet;
use std::ops::Range;

use edits::Edits;
pub(crate) use edits::PlaceMap;
use expression::Walk;

/// One step of a chain such as `a.b['c'][0]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    Name(String),
    Attribute(String),
    Index(i64),
    /// An item whose key is itself an expression.
    Computed,
}

/// A chain of attributes and items that starts at a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chain {
    pub(crate) range: Range<usize>,
    pub(crate) path: Vec<Step>,
}

/// What the walk over a template learned; ranges are bytes of the written text.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    edits: Edits,
    strings: Vec<Range<usize>>,
    pub(crate) chains: Vec<Chain>,
    pub(crate) filters: Vec<(String, Range<usize>)>,
    pub(crate) tests: Vec<(String, Range<usize>)>,
    pub(crate) calls: Vec<(String, Range<usize>)>,
    /// Names that the template itself gives a value: loop targets, `set`, macros, imports.
    pub(crate) assigned: BTreeSet<String>,
}

/// A template ready for minijinja.
#[derive(Debug)]
pub(crate) struct Rewritten {
    pub(crate) text: String,
    pub(crate) places: PlaceMap,
    pub(crate) notes: Notes,
    /// Where the written text begins in the text it was taken from, in bytes.
    pub(crate) offset: usize,
    /// Whether it calls a method that changes its list or dictionary.
    pub(crate) mutable: bool,
}

/// The delimiters of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Delimiters {
    pub(crate) block: (String, String),
    pub(crate) variable: (String, String),
    pub(crate) comment: (String, String),
    /// Whether the newline after a block is dropped.
    pub(crate) trim_blocks: bool,
}

impl Default for Delimiters {
    fn default() -> Self {
        let pair = |start: &str, end: &str| (start.to_owned(), end.to_owned());
        Self {
            block: pair("{%", "%}"),
            variable: pair("{{", "}}"),
            comment: pair("{#", "#}"),
            trim_blocks: true,
        }
    }
}

/// Whether backslashes in the strings of expressions are escapes (template files, conditions) or stand for
/// themselves (values in YAML, where YAML has already had its say).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backslashes {
    Escape,
    Literal,
}

/// Rewrites a whole template.
pub(crate) fn template(
    source: &str,
    delimiters: &Delimiters,
    backslashes: Backslashes,
) -> Rewritten {
    let mut notes = Notes::default();
    let mutable = expression::mutates(source);
    let mut at = 0;
    while let Some((next, opening)) = next_opening(source, at, delimiters) {
        at = match opening {
            Opening::Comment => match source[next..].find(&delimiters.comment.1) {
                Some(end) => next + end + delimiters.comment.1.len(),
                None => break,
            },
            Opening::Variable => {
                let end = &delimiters.variable.1;
                let Some((tokens, stop)) = lexer::tokens(source, next, end) else {
                    break;
                };
                walk(source, &tokens, mutable, &mut notes, |walk| walk.tuple());
                after(source, stop, end)
            }
            Opening::Block => {
                let end = &delimiters.block.1;
                let Some((tokens, stop)) = lexer::tokens(source, next, end) else {
                    break;
                };
                let raw = tokens
                    .first()
                    .is_some_and(|token| &source[token.range.clone()] == "raw");
                walk(source, &tokens, mutable, &mut notes, statement::statement);
                let mut after = after(source, stop, end);
                if raw {
                    // Jinja keeps the newline after `raw`, minijinja drops it as after any block.
                    if delimiters.trim_blocks
                        && source[after..].starts_with('\n')
                        && !source[stop..].starts_with(['-', '+'])
                    {
                        notes.edits.insert(after, "\n");
                    }
                    after = end_of_raw(source, after, delimiters);
                }
                after
            }
        };
    }
    finish(source, notes, backslashes, mutable)
}

/// Rewrites a bare expression, as in `when:`.
pub(crate) fn expression(source: &str, backslashes: Backslashes) -> Rewritten {
    let mut notes = Notes::default();
    let mutable = expression::mutates(source);
    if let Some((tokens, _)) = lexer::tokens(source, 0, "") {
        walk(source, &tokens, mutable, &mut notes, |walk| walk.tuple());
    }
    finish(source, notes, backslashes, mutable)
}

/// The bytes of the expression if the template is exactly one `{{ … }}`.
pub(crate) fn single_expression(source: &str) -> Option<Range<usize>> {
    let inner = source.strip_prefix("{{")?;
    let start = 2 + usize::from(inner.starts_with(['-', '+']));
    let (tokens, stop) = lexer::tokens(source, start, "}}")?;
    let first = tokens.first()?.range.start;
    let last = tokens.last()?.range.end;
    (after(source, stop, "}}") == source.len()).then_some(first..last)
}

/// Whether a string has anything to render.
pub(crate) fn is_template(text: &str) -> bool {
    text.contains("{{") || text.contains("{%") || text.contains("{#")
}

fn walk(
    source: &str,
    tokens: &[lexer::Token],
    mutable: bool,
    notes: &mut Notes,
    step: impl FnOnce(&mut Walk<'_>) -> Result<(), expression::NotAnExpression>,
) {
    let mark = notes.edits.len();
    let mut walk = Walk::new(source, tokens, mutable, notes);
    let walked = step(&mut walk);
    if walked.is_err() || !walk.done() {
        notes.edits.truncate(mark);
    }
}

fn finish(source: &str, mut notes: Notes, backslashes: Backslashes, mutable: bool) -> Rewritten {
    let mut edits = std::mem::take(&mut notes.edits);
    if backslashes == Backslashes::Literal {
        for range in &notes.strings {
            double_backslashes(source, range, &mut edits);
        }
    }
    let (text, places) = edits.apply(source);
    Rewritten {
        text,
        places,
        notes,
        offset: 0,
        mutable,
    }
}

/// Makes every backslash of a quoted string stand for itself. One before the string's own quote keeps it from ending
/// the string, and stands for itself all the same.
fn double_backslashes(source: &str, range: &Range<usize>, edits: &mut Edits) {
    let quote = source[range.clone()].chars().next();
    let mut characters = source[range.clone()].char_indices();
    while let Some((at, c)) = characters.next() {
        if c != '\\' {
            continue;
        }
        let at = range.start + at;
        match characters.next() {
            Some((_, next)) if Some(next) == quote => edits.insert(at, "\\\\"),
            Some((second, '\\')) => {
                edits.insert(at, "\\");
                edits.insert(range.start + second, "\\");
            }
            _ => edits.insert(at, "\\"),
        }
    }
}

enum Opening {
    Comment,
    Variable,
    Block,
}

/// The next opening delimiter and the first byte after it and its whitespace control.
fn next_opening(source: &str, from: usize, delimiters: &Delimiters) -> Option<(usize, Opening)> {
    let find = |start: &str| {
        source[from..]
            .find(start)
            .map(|at| (from + at, start.len()))
    };
    let (at, length, opening) = [
        find(&delimiters.comment.0).map(|(at, length)| (at, length, Opening::Comment)),
        find(&delimiters.block.0).map(|(at, length)| (at, length, Opening::Block)),
        find(&delimiters.variable.0).map(|(at, length)| (at, length, Opening::Variable)),
    ]
    .into_iter()
    .flatten()
    // Of two that start at one place the longer is meant.
    .min_by_key(|(at, length, _)| (*at, usize::MAX - *length))?;
    let mut next = at + length;
    if !matches!(opening, Opening::Comment) && source[next..].starts_with(['-', '+']) {
        next += 1;
    }
    Some((next, opening))
}

/// The byte after the closing delimiter at `stop`, which may begin with whitespace control.
fn after(source: &str, stop: usize, end: &str) -> usize {
    stop + usize::from(!source[stop..].starts_with(end)) + end.len()
}

fn end_of_raw(source: &str, from: usize, delimiters: &Delimiters) -> usize {
    let mut at = from;
    while let Some(found) = source[at..].find(&delimiters.block.0) {
        let inside = at + found + delimiters.block.0.len();
        let words = source[inside..].trim_start_matches(['-', '+']).trim_start();
        if words.starts_with("endraw") {
            return source[inside..]
                .find(&delimiters.block.1)
                .map_or(source.len(), |end| inside + end + delimiters.block.1.len());
        }
        at = inside;
    }
    source.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bare(source: &str) -> String {
        expression(source, Backslashes::Escape).text
    }

    fn whole(source: &str) -> String {
        template(source, &Delimiters::default(), Backslashes::Escape).text
    }

    #[test]
    fn every_step_but_the_last_is_passed_over() {
        assert_eq!(bare("a"), "a");
        assert_eq!(bare("a.b"), "(a|__step).b");
        assert_eq!(bare("a.b['c'].d"), "(((a|__step).b|__step)['c']|__step).d");
    }

    #[test]
    fn a_method_of_what_is_missing_is_missing() {
        assert_eq!(
            bare("a.b.split(',')[0]"),
            "((((a|__step).b|__step).split(',')|__step)[0]".replacen('(', "", 1)
        );
        assert_eq!(bare("','.join(a)"), "','.join(a)");
    }

    #[test]
    fn kinds_that_have_no_order_are_found_out() {
        assert_eq!(bare("a < 1"), "((a )|__less( 1))");
        assert_eq!(bare("1 < a < 3"), "1 < ((a)|__look) < 3");
    }

    #[test]
    fn templates_inside_of_lookups_are_rendered() {
        assert_eq!(
            bare("lookup('pipe', 'id {{ user }}') ~ '{{ x }}'"),
            "((lookup('pipe', ('id {{ user }}'|__render)) )|__concat( '{{ x }}'))"
        );
    }

    #[test]
    fn percent_and_tilde_become_filters() {
        assert_eq!(bare("'%s-%d' % (a, b)"), "(('%s-%d' )|__percent( (a, b)))");
        assert_eq!(
            bare("a * b % c"),
            "((((a)|__look) * ((b)|__look) )|__percent( c))"
        );
        assert_eq!(bare("a % b % c"), "((((a )|__percent( b)) )|__percent( c))");
        assert_eq!(bare("a ~ 'x'"), "((a )|__concat( 'x'))");
    }

    #[test]
    fn comparisons_look_at_what_is_not_constant() {
        assert_eq!(
            bare("a == 'x' and 'k' not in b.c"),
            "((a)|__look) == 'x' and 'k' not in (((b|__step).c)|__look)"
        );
    }

    #[test]
    fn arithmetic_looks_at_its_operands_once() {
        assert_eq!(bare("a + b * 1"), "((a)|__look) + ((b)|__look) * 1");
        assert_eq!(
            bare("a + b - 1"),
            "((((a)|__look) + ((b)|__look) )|__minus( 1))"
        );
    }

    #[test]
    fn lists_change_only_where_a_template_changes_them() {
        assert_eq!(whole("{{ [1] }}"), "{{ [1] }}");
        assert_eq!(
            whole("{% set l = [] %}{% set _ = l.append(1) %}"),
            "{% set l = ([]|__mutable) %}{% set _ = (l|__step).append(1) %}"
        );
    }

    #[test]
    fn filters_and_tests_keep_their_arguments() {
        assert_eq!(
            bare("x | map(attribute='a.b') | list is not match('a') or y.z"),
            "x | map(attribute='a.b') | list is not match('a') or (y|__step).z"
        );
        let notes = expression(
            "x | ansible.builtin.upper is version('1', '>=')",
            Backslashes::Escape,
        )
        .notes;
        assert_eq!(notes.filters[0].0, "ansible.builtin.upper");
        assert_eq!(notes.tests[0].0, "version");
    }

    #[test]
    fn raw_blocks_and_comments_are_left_alone() {
        let source = "{% raw %}{{ a.b }}{% endraw %}{# {{ a.b }} #}{{ a.b }}";
        assert_eq!(
            whole(source),
            "{% raw %}{{ a.b }}{% endraw %}{# {{ a.b }} #}{{ (a|__step).b }}"
        );
    }

    #[test]
    fn statements_are_walked() {
        assert_eq!(
            whole("{% for k, v in a.b.items() if v.c %}"),
            "{% for k, v in ((a|__step).b|__step).items() if (v|__step).c %}"
        );
        assert_eq!(whole("{%- if a.b -%}"), "{%- if (a|__step).b -%}");
        assert_eq!(
            whole("{% include 'x' without context %}"),
            "{% include 'x'   %}"
        );
    }

    #[test]
    fn backslashes_are_doubled_where_they_stand_for_themselves() {
        let rewritten = template(
            r"{{ x | regex_replace('(\d)', '\1') }}",
            &Delimiters::default(),
            Backslashes::Literal,
        );
        assert_eq!(rewritten.text, r"{{ x | regex_replace('(\\d)', '\\1') }}");
    }

    #[test]
    fn a_quote_behind_a_backslash_ends_no_string() {
        let rewritten = expression(r"'it\'s' ~ 'a\\'", Backslashes::Literal);
        assert_eq!(rewritten.text, r"(('it\\\'s' )|__concat( 'a\\\\'))");
    }

    #[test]
    fn what_is_no_expression_stays_as_it_is() {
        assert_eq!(whole("{{ a.b c }} {{ ] }}"), "{{ a.b c }} {{ ] }}");
    }

    #[test]
    fn a_single_expression_is_known() {
        assert_eq!(single_expression("{{ a }}"), Some(3..4));
        assert_eq!(single_expression("{{ {'a': {}} }}"), Some(3..12));
        assert_eq!(single_expression("{{ a }} {{ b }}"), None);
        assert_eq!(single_expression(" {{ a }}"), None);
    }
}
