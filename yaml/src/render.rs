//! A diagnostic as a compiler shows it: the line, a caret, what was expected.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use crate::{Diagnostic, Severity, Span};

/// The longest line that is shown whole, in bytes; of a longer one the part around the place is.
const LONG: usize = 300;

/// Draws a diagnostic over several lines, without a line break at the end.
#[must_use]
pub fn render(diagnostic: &Diagnostic, color: bool) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let message = clean(&diagnostic.message);
    let label = diagnostic.label.as_deref().map(clean);
    let places: Vec<_> = diagnostic.related.iter().map(|(span, text)| (window(span), clean(text))).collect();
    let place = diagnostic.span.as_ref().map(window);
    let help = diagnostic.help.as_deref().map(clean);

    let mut title = level.primary_title(&message);
    if let Some(code) = diagnostic.code {
        title = title.id(code);
    }
    let mut group = Group::with_title(title);
    if let Some(place) = &place {
        let mut mark = AnnotationKind::Primary.span(place.start..place.end);
        if let Some(label) = &label {
            mark = mark.label(label);
        }
        group = group.element(place.snippet().annotation(mark));
    }
    for (place, text) in &places {
        let mark = AnnotationKind::Context.span(place.start..place.end).label(text);
        group = group.element(place.snippet().annotation(mark));
    }
    if let Some(help) = &help {
        group = group.element(Level::HELP.message(help));
    }
    let renderer = if color { Renderer::styled() } else { Renderer::plain() };
    renderer.render(&[group]).to_string()
}

/// The lines around a place, made fit to be shown.
struct Window {
    name: String,
    line: usize,
    text: String,
    start: usize,
    end: usize,
}

impl Window {
    fn snippet(&self) -> Snippet<'_, annotate_snippets::Annotation<'_>> {
        Snippet::source(&self.text).path(&self.name).line_start(self.line).fold(true)
    }
}

fn window(span: &Span) -> Window {
    let text = &span.source.text;
    let (line, _) = span.line_col();
    let floor = |mut at: usize| {
        at = at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let start = floor(span.start);
    let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
    let line_end = text[start..].find('\n').map_or(text.len(), |newline| start + newline);
    // Only the first line of a longer place is marked.
    let end = floor(span.end).clamp(start, line_end);
    let from = if start - line_start > LONG { floor(start - LONG / 2) } else { line_start };
    let to = if line_end - end > LONG { floor(end + LONG / 2) } else { line_end };
    let end = end.min(to);
    let before = clean_line(&text[from..start]);
    let marked = clean_line(&text[start..end]);
    let after = clean_line(&text[end..to]);
    let cut = if from > line_start { "…" } else { "" };
    let start = cut.len() + before.len();
    let end = start + marked.len();
    Window {
        name: clean(&span.source.name.display().to_string()),
        line,
        text: format!("{cut}{before}{marked}{after}{}", if to < line_end { "…" } else { "" }),
        start,
        end,
    }
}

fn clean_line(text: &str) -> String {
    clean(text).replace('\n', " ")
}

/// Control and direction-changing characters are made visible: a message must not paint over itself.
fn clean(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\t' => c,
            '\r' => ' ',
            c if c.is_control() => '\u{fffd}',
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
            c => c,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::render;
    use crate::{Diagnostic, Source, Span};

    fn at(text: &str, word: &str) -> Span {
        let start = text.find(word).unwrap();
        Span { source: Source::new("site.yml", text), start, end: start + word.len() }
    }

    #[test]
    fn a_mistake_is_shown_with_its_line_and_a_caret() {
        let span = at("- hosts: all\n  tasks:\n    - tempalte: {}\n", "tempalte");
        let mistake = Diagnostic::error(span, "`tempalte` is no keyword or module").with_help("did you mean `template`?");
        insta::assert_snapshot!(render(&mistake, false), @r"
        error: `tempalte` is no keyword or module
         --> site.yml:3:7
          |
        3 |     - tempalte: {}
          |       ^^^^^^^^
          |
          = help: did you mean `template`?
        ");
    }

    #[test]
    fn long_lines_are_cut_and_control_characters_defused() {
        let text = format!("{}\u{1b}[31mhere{}", "x".repeat(5000), "y".repeat(5000));
        let shown = render(&Diagnostic::error(at(&text, "here"), "m"), false);
        assert!(shown.len() < 2000, "{}", shown.len());
        assert!(!shown.contains('\u{1b}'));
        assert!(shown.contains("here"));
    }

    #[test]
    fn a_place_behind_the_end_is_no_panic() {
        let source = Source::new("x", "ü");
        for start in 0..4 {
            for end in 0..4 {
                let span = Span { source: source.clone(), start, end };
                assert!(render(&Diagnostic::error(span, "m"), false).contains('m'));
            }
        }
    }
}
