//! Colours, each with one meaning. All output is understandable without them.

use std::fmt::Display;

use anstyle::{AnsiColor, Style};
use fleet_engine::plan::{Line, LineKind};

/// Good, or added.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// Bad, or removed.
pub(crate) const BAD: Style = AnsiColor::Red.on_default();
/// Changed, or worth a look.
pub(crate) const CHANGED: Style = AnsiColor::Yellow.on_default();
/// Not known yet.
pub(crate) const UNKNOWN: Style = AnsiColor::Magenta.on_default();
/// Less important.
pub(crate) const QUIET: Style = Style::new().dimmed();
/// A heading.
pub(crate) const HEADING: Style = Style::new().bold();
/// A place in a diff.
const PLACE: Style = AnsiColor::Cyan.on_default();

/// `text` in `style`; the streams take it out again where colours are not wanted.
pub(crate) fn paint(style: Style, text: impl Display) -> String {
    format!("{style}{text}{style:#}")
}

/// A line of a drawn effect, with what differs in it inverted.
pub(crate) fn diff_line(line: &Line) -> String {
    let (mark, style) = match line.kind {
        LineKind::Note => return paint(PLACE, line.text()),
        LineKind::Context => return format!(" {}", line.text()),
        LineKind::Removed => ('-', BAD),
        LineKind::Added => ('+', GOOD),
    };
    let mut painted = paint(style, mark);
    for segment in &line.segments {
        let style = if segment.emphasis {
            style.bold().invert()
        } else {
            style
        };
        painted.push_str(&paint(style, &segment.text));
    }
    painted
}
