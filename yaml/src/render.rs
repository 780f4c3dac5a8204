//! A diagnostic as a compiler shows it: the line, a caret, what was expected.

use std::{ops::Range, sync::Arc};

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Renderer, Snippet};

use crate::{Diagnostic, Severity, Span};

/// How much of a line is shown around a place, in characters on either side.
const AROUND: usize = 150;
/// How many characters of a message are shown.
const LONGEST: usize = 4000;
/// Places in one file that lie less than so many lines from each other are shown in one picture.
const TOGETHER: usize = 6;

/// Draws a diagnostic over several lines, without a line break at the end.
///
/// Long lines are cut around the place, and characters that would act on the terminal are made visible.
#[must_use]
pub fn render(diagnostic: &Diagnostic, color: bool) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let mut title = level.primary_title(words(&diagnostic.message));
    if let Some(code) = diagnostic.code {
        title = title.id(code);
    }
    let mut group = Group::with_title(title);
    let pictures = pictures(diagnostic);
    for picture in &pictures {
        group = group.element(picture.snippet.clone());
    }
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(words(help)));
    }
    let renderer = if color {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    let drawn = renderer.render(&[group]);
    // Of a cut line the renderer counts the columns that it sees.
    let moved = pictures.iter().filter_map(|picture| picture.moved.as_ref());
    moved.fold(drawn, |drawn, (seen, meant)| drawn.replacen(seen, meant, 1))
}

struct Picture {
    snippet: Snippet<'static, Annotation<'static>>,
    /// The place as the renderer will write it, and as it should be, where they differ.
    moved: Option<(String, String)>,
}

/// A place and what to say of it.
struct Place<'d> {
    span: &'d Span,
    label: Option<&'d str>,
    kind: AnnotationKind,
}

fn pictures(diagnostic: &Diagnostic) -> Vec<Picture> {
    let primary = diagnostic.span.iter().map(|span| Place {
        span,
        label: diagnostic.label.as_deref(),
        kind: AnnotationKind::Primary,
    });
    let related = diagnostic.related.iter().map(|(span, text)| Place {
        span,
        label: Some(text),
        kind: AnnotationKind::Context,
    });
    let mut groups: Vec<Vec<Place<'_>>> = Vec::new();
    for place in primary.chain(related) {
        let near = groups.iter_mut().find(|group| {
            group.iter().all(|other| {
                let lines = other.span.line_col().0.abs_diff(place.span.line_col().0);
                Arc::ptr_eq(&other.span.source, &place.span.source) && lines < TOGETHER
            })
        });
        match near {
            Some(group) => group.push(place),
            None => groups.push(vec![place]),
        }
    }
    groups.iter().filter_map(|group| picture(group)).collect()
}

fn picture(places: &[Place<'_>]) -> Option<Picture> {
    let main = places.first()?.span;
    let source = &main.source;
    let lines = places.iter().map(|place| place.span.line_col().0);
    let (first, last) = (lines.clone().min()?, lines.max()?);
    let mut text = String::new();
    let mut annotations = Vec::new();
    let mut main_column = 0;
    for number in first..=last {
        let line = source.line(number);
        let start = source.line_start(number);
        let here: Vec<_> = places
            .iter()
            .filter(|place| place.span.line_col().0 == number)
            .collect();
        // Of a longer place only the first line is marked.
        let within = |at: usize| source.floor(at).saturating_sub(start).min(line.len());
        let marks = here.iter().map(|place| {
            let from = within(place.span.start);
            from..within(place.span.end).max(from)
        });
        let shown = Shown::new(line, &marks.clone().collect::<Vec<_>>());
        for (place, mark) in here.iter().zip(marks) {
            let range =
                text.len() + shown.position(mark.start)..text.len() + shown.position(mark.end);
            if std::ptr::eq(place.span, main) {
                main_column = shown.text[..shown.position(mark.start)].chars().count() + 1;
            }
            let annotation = place.kind.span(range);
            annotations.push(match place.label {
                Some(label) => annotation.label(words(label)),
                None => annotation,
            });
        }
        text.push_str(&shown.text);
        if number < last {
            text.push('\n');
        }
    }
    let (line, column) = main.line_col();
    let name = clean(&source.name.display().to_string());
    let at = |column: usize| format!("{name}:{line}:{column}");
    let moved = (main_column != column).then(|| (at(main_column), at(column)));
    let snippet = Snippet::source(text)
        .path(name)
        .line_start(first)
        .annotations(annotations);
    Some(Picture { snippet, moved })
}

/// A line made fit to be shown.
struct Shown<'s> {
    text: String,
    line: &'s str,
    /// What of the line is shown, in bytes.
    part: Range<usize>,
}

const CUT: &str = "…";

impl<'s> Shown<'s> {
    /// Cuts a line around its marks; where they are far from each other, around the first.
    fn new(line: &'s str, marks: &[Range<usize>]) -> Self {
        let from = marks.iter().map(|mark| mark.start).min().unwrap_or(0);
        let to = marks
            .iter()
            .map(|mark| mark.end)
            .max()
            .unwrap_or(0)
            .min(from + 2 * AROUND);
        let start = back(line, from, AROUND);
        let end = forth(line, to.max(from), AROUND);
        let mut text = String::new();
        if start > 0 {
            text.push_str(CUT);
        }
        text.push_str(&clean(&line[start..end]));
        if end < line.len() {
            text.push_str(CUT);
        }
        Self {
            text,
            line,
            part: start..end,
        }
    }

    /// Where a byte of the line is in the text shown.
    fn position(&self, at: usize) -> usize {
        let cut = if self.part.start > 0 { CUT.len() } else { 0 };
        let at = at.clamp(self.part.start, self.part.end);
        let before = self.line.get(self.part.start..at).unwrap_or_default();
        cut + clean(before).len()
    }
}

/// The byte so many characters before another.
fn back(line: &str, at: usize, characters: usize) -> usize {
    let before = line.get(..at).unwrap_or(line);
    before
        .char_indices()
        .rev()
        .take(characters)
        .last()
        .map_or(before.len(), |(at, _)| at)
}

/// The byte so many characters behind another.
fn forth(line: &str, at: usize, characters: usize) -> usize {
    let start = (at..=line.len())
        .find(|at| line.is_char_boundary(*at))
        .unwrap_or(line.len());
    line[start..]
        .char_indices()
        .nth(characters)
        .map_or(line.len(), |(more, _)| start + more)
}

/// A message made fit to be shown: it may quote a key as long as the file.
fn words(text: &str) -> String {
    let end = forth(text, 0, LONGEST);
    clean(&text[..end]) + if end < text.len() { CUT } else { "" }
}

/// Makes the characters visible that would move the cursor, change colours or reverse the text.
fn clean(text: &str) -> String {
    let visible = |c: char| match c {
        '\n' | '\t' => c,
        '\0'..='\u{1f}' => {
            char::from_u32(0x2400 + u32::from(c)).unwrap_or(char::REPLACEMENT_CHARACTER)
        }
        '\u{7f}' => '\u{2421}',
        c if c.is_control() => char::REPLACEMENT_CHARACTER,
        // Directions, isolates, and what takes no room at all.
        '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}' => char::REPLACEMENT_CHARACTER,
        c => c,
    };
    text.chars().map(visible).collect()
}

#[cfg(test)]
mod tests {
    use super::render;
    use crate::{Diagnostic, Source, Span};

    fn at(text: &str, word: &str) -> Span {
        let start = text.find(word).unwrap();
        Source::new("site.yml", text).span(start, start + word.len())
    }

    #[test]
    fn a_mistake_is_shown_with_its_line_and_a_caret() {
        let span = at("- hosts: all\n  tasks:\n    - tempalte: {}\n", "tempalte");
        let mistake = Diagnostic::error(span, "`tempalte` is no keyword or module")
            .with_code("F0201")
            .with_label("not known")
            .with_help("did you mean `template`?");
        insta::assert_snapshot!(render(&mistake, false), @r"
        error[F0201]: `tempalte` is no keyword or module
         --> site.yml:3:7
          |
        3 |     - tempalte: {}
          |       ^^^^^^^^ not known
          |
          = help: did you mean `template`?
        ");
        assert!(render(&mistake, true).contains("\u{1b}[1m"));
    }

    #[test]
    fn places_near_each_other_share_a_picture_and_others_do_not() {
        let text = "a: 1\nb: 2\na: 3\n\n\n\n\n\n\n\nfar: 4\n";
        let span = at(text, "a: 3");
        let source = span.source.clone();
        let mistake = Diagnostic::warning(span, "`a` is here twice")
            .with_related(source.span(0, 1), "the first")
            .with_related(
                source.span(text.find("far").unwrap(), text.len()),
                "far away",
            )
            .with_related(at("x: y", "y"), "another file");
        insta::assert_snapshot!(render(&mistake, false), @r"
        warning: `a` is here twice
          --> site.yml:3:1
           |
         1 | a: 1
           | - the first
         2 | b: 2
         3 | a: 3
           | ^^^^
           |
          ::: site.yml:11:1
           |
        11 | far: 4
           | ------ far away
           |
          ::: site.yml:1:4
           |
         1 | x: y
           |    - another file
        ");
    }

    #[test]
    fn a_mistake_without_a_place_has_no_picture() {
        let mistake = Diagnostic::without_place("no inventory").with_help("say which with -i");
        insta::assert_snapshot!(render(&mistake, false), @r"
        error: no inventory
         |
         = help: say which with -i
        ");
    }

    #[test]
    fn of_a_longer_place_the_first_line_is_marked() {
        let text = "- name: x\n  copy:\n    a: 1\n";
        let source = Source::new("t.yml", text);
        let mistake = Diagnostic::error(
            source.span(text.find("name").unwrap(), text.len()),
            "`src` is missing",
        );
        insta::assert_snapshot!(render(&mistake, false), @r"
        error: `src` is missing
         --> t.yml:1:3
          |
        1 | - name: x
          |   ^^^^^^^
        ");
    }

    #[test]
    fn a_long_line_is_cut_around_its_place_and_keeps_its_column() {
        let text = format!("{}here{}", "x".repeat(500_000), "y".repeat(500_000));
        let shown = render(&Diagnostic::error(at(&text, "here"), "m"), false);
        assert!(shown.len() < 1000, "{}", shown.len());
        assert!(shown.contains("--> site.yml:1:500001\n"), "{shown}");
        assert!(shown.contains("xxherey"), "{shown}");
        let long = Diagnostic::error(Source::new("t", text.clone()).span(0, text.len()), "m");
        assert!(render(&long, false).len() < 2000);
        assert!(render(&Diagnostic::without_place(text), false).len() < 5000);
    }

    #[test]
    fn what_would_act_on_the_terminal_is_made_visible() {
        let span = at("a\u{1b}]0;x\u{7}\u{202e}b\rc\u{9b}d here", "here");
        let mistake = Diagnostic::error(span, "m\u{1b}[2J")
            .with_help("h\u{8}")
            .with_label("l\u{1b}c");
        let shown = render(&mistake, false);
        assert!(
            !shown.contains(|c: char| c.is_control() && c != '\n'),
            "{shown:?}"
        );
        assert!(!shown.contains('\u{202e}'), "{shown:?}");
    }

    #[test]
    fn columns_count_characters_and_no_byte_order_mark() {
        let span = at("\u{feff}ä: ö\n", "ö");
        assert!(render(&Diagnostic::error(span, "m"), false).contains("--> site.yml:1:4\n"));
    }

    #[test]
    fn a_place_behind_the_end_is_no_panic() {
        for text in ["", "ü", "\n", "a\r\nb", "\t"] {
            let source = Source::new("x", text);
            for start in 0..5 {
                for end in 0..5 {
                    let span = Span {
                        source: source.clone(),
                        start,
                        end,
                    };
                    let other = Span {
                        source: source.clone(),
                        start: end,
                        end: start,
                    };
                    let mistake = Diagnostic::error(span, "m").with_related(other, "r");
                    assert!(render(&mistake, false).contains('m'));
                }
            }
        }
    }
}
