//! An effect, drawn: lines that a terminal colours and a report marks up.

use std::time::{Duration, Instant};

use fleet_wire::{Content, Effect, Entry, Meta, What};
use similar::{ChangeTag, TextDiff};

/// A line of a drawn effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// What the line is.
    pub kind: LineKind,
    /// Its text in pieces.
    pub segments: Vec<Segment>,
}

/// What a line of a drawn effect is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    /// Something about the whole: a path, a mode, a range of lines.
    Note,
    /// A line that stays.
    Context,
    /// A line that goes.
    Removed,
    /// A line that comes.
    Added,
}

/// A piece of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The text, control characters made visible.
    pub text: String,
    /// It is what differs within a changed line.
    pub emphasis: bool,
}

/// Lines of context around a change.
const CONTEXT: usize = 3;
/// How long a diff may take before it becomes coarser.
const DEADLINE: Duration = Duration::from_millis(500);

/// Draws an effect: what it changes from, and what to.
#[must_use]
pub fn draw(effect: &Effect) -> Vec<Line> {
    match &effect.what {
        What::File { before, after, .. } => file(before, after, effect.secret),
        What::Sysctl { before, after, .. } => vec![removed(before), added(after)],
        What::Unit { before, after, .. } if before == after => Vec::new(),
        What::Unit { before, after, .. } => vec![note(&format!("{before} → {after}"))],
        What::Package { before, after, .. } => {
            let version =
                |version: &Option<String>| version.as_deref().unwrap_or("absent").to_owned();
            vec![note(&format!("{} → {}", version(before), version(after)))]
        }
        What::Command { .. } => vec![note("what it does is known after apply")],
        What::Setting { .. } if effect.secret => vec![note("(hidden)")],
        What::Setting { before, after, .. } => {
            [(removed as fn(&str) -> Line, before), (added, after)]
                .into_iter()
                .filter(|(_, value)| !value.is_empty())
                .map(|(line, value)| line(value))
                .collect()
        }
        What::Account { lines, .. } => lines
            .iter()
            .flat_map(|line| {
                let secret = effect.secret || line.secret();
                let shown = |line: &Option<String>, how: fn(&str) -> Line| {
                    line.as_deref().filter(|_| !secret).map(how)
                };
                let hidden = if secret { " (hidden)" } else { "" };
                [
                    Some(note(&format!("{}{hidden}", line.path))),
                    shown(&line.before, removed),
                    shown(&line.after, added),
                ]
            })
            .flatten()
            .collect(),
    }
}

fn file(before: &Entry, after: &Entry, secret: bool) -> Vec<Line> {
    let mut lines = Vec::new();
    if let (Some(old), Some(new)) = (meta(before), meta(after)) {
        let mut differs = |what: &str, old: String, new: String| {
            if old != new {
                lines.push(note(&format!("{what} {old} → {new}")));
            }
        };
        differs(
            "mode",
            format!("{:04o}", old.mode),
            format!("{:04o}", new.mode),
        );
        differs("owner", old.owner.clone(), new.owner.clone());
        differs("group", old.group.clone(), new.group.clone());
    } else if let Some(new) = meta(after) {
        lines.push(note(&format!(
            "mode {:04o}, owner {}, group {}",
            new.mode, new.owner, new.group
        )));
    }
    match (before, after) {
        (Entry::Link(old), Entry::Link(new)) => {
            lines.extend([removed(&format!("-> {old}")), added(&format!("-> {new}"))]);
        }
        (Entry::Link(old), _) => lines.push(note(&format!("was a link to {old}"))),
        (Entry::Special, _) => lines.push(note("was no regular file")),
        _ => {}
    }
    let (old, new) = (content(before), content(after));
    let same = matches!((old, new), (Some(old), Some(new)) if old.sha256 == new.sha256);
    if same || (old.is_none() && new.is_none()) {
        return lines;
    }
    if secret {
        if old.is_some() {
            lines.push(removed("*** (before)"));
        }
        if new.is_some() {
            lines.push(added("*** (after)"));
        }
        return lines;
    }
    match (text(old), text(new)) {
        // Vaults' secrets are hidden in both.
        (Some(old), Some(new)) if old == new => lines.push(note("what differs is hidden")),
        (Some(old), Some(new)) => lines.extend(unified(&old, &new)),
        _ => {
            let size = |content: Option<&Content>| match content {
                Some(content) => format!(
                    "{} bytes, sha256 {}",
                    content.size,
                    &content.sha256[..12.min(content.sha256.len())]
                ),
                None => "absent".to_owned(),
            };
            lines.push(note(&format!(
                "binary or large: {} → {}",
                size(old),
                size(new)
            )));
        }
    }
    lines
}

fn meta(entry: &Entry) -> Option<&Meta> {
    match entry {
        Entry::File(meta, _) | Entry::Dir(meta) => Some(meta),
        _ => None,
    }
}

fn content(entry: &Entry) -> Option<&Content> {
    match entry {
        Entry::File(_, content) => Some(content),
        _ => None,
    }
}

/// A content as text: what is absent is empty, what is binary or did not travel is none.
fn text(content: Option<&Content>) -> Option<String> {
    let Some(content) = content else {
        return Some(String::new());
    };
    let bytes = content
        .bytes
        .as_deref()
        .or((content.size == 0).then_some(&[]))?;
    if bytes.contains(&0) {
        return None;
    }
    std::str::from_utf8(bytes).ok().map(str::to_owned)
}

fn unified(old: &str, new: &str) -> Vec<Line> {
    let diff = TextDiff::configure()
        .deadline(Instant::now() + DEADLINE)
        .diff_lines(old, new);
    let mut lines = Vec::new();
    for group in diff.grouped_ops(CONTEXT) {
        if let (Some(first), Some(last)) = (group.first(), group.last()) {
            let range = |start: usize, end: usize| match end - start {
                0 => format!("{start},0"),
                1 => format!("{}", start + 1),
                length => format!("{},{length}", start + 1),
            };
            lines.push(note(&format!(
                "@@ -{} +{} @@",
                range(first.old_range().start, last.old_range().end),
                range(first.new_range().start, last.new_range().end),
            )));
        }
        for op in &group {
            for change in diff.iter_inline_changes(op) {
                let kind = match change.tag() {
                    ChangeTag::Equal => LineKind::Context,
                    ChangeTag::Delete => LineKind::Removed,
                    ChangeTag::Insert => LineKind::Added,
                };
                let segments = change
                    .iter_strings_lossy()
                    .map(|(emphasis, text)| Segment {
                        text: visible(text.trim_end_matches('\n')),
                        emphasis,
                    })
                    .collect();
                lines.push(Line { kind, segments });
                if change.missing_newline() {
                    lines.push(note("\\ No newline at end of file"));
                }
            }
        }
    }
    lines
}

/// Control and direction-changing characters, made visible: a diff must not be able to paint over itself.
#[must_use]
fn visible(text: &str) -> String {
    let hidden = |c: char| {
        (c.is_control() && c != '\t')
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    text.chars()
        .fold(String::with_capacity(text.len()), |mut shown, c| {
            if hidden(c) {
                shown.extend(c.escape_unicode());
            } else {
                shown.push(c);
            }
            shown
        })
}

fn line(kind: LineKind, text: &str) -> Line {
    Line {
        kind,
        segments: vec![Segment {
            text: visible(text),
            emphasis: false,
        }],
    }
}

fn note(text: &str) -> Line {
    line(LineKind::Note, text)
}

fn removed(text: &str) -> Line {
    line(LineKind::Removed, text)
}

fn added(text: &str) -> Line {
    line(LineKind::Added, text)
}

impl Line {
    /// The line with the mark of a unified diff; notes have none.
    #[must_use]
    pub fn marked(&self) -> String {
        let mark = match self.kind {
            LineKind::Note => "",
            LineKind::Context => " ",
            LineKind::Removed => "-",
            LineKind::Added => "+",
        };
        format!("{mark}{}", self.text())
    }

    /// The line's text without marks.
    #[must_use]
    pub fn text(&self) -> String {
        self.segments
            .iter()
            .map(|segment| segment.text.as_str())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use fleet_wire::{Content, Effect, Entry, Meta, UndoClass, What};

    use super::{Line, LineKind, draw};

    fn entry(mode: u32, text: &str) -> Entry {
        let meta = Meta {
            mode,
            owner: "root".to_owned(),
            group: "root".to_owned(),
        };
        let content = Content {
            sha256: format!("{text:?}"),
            size: text.len() as u64,
            bytes: Some(text.as_bytes().to_vec()),
        };
        Entry::File(meta, content)
    }

    fn effect(before: Entry, after: Entry, secret: bool) -> Effect {
        let what = What::File {
            path: "/etc/x".to_owned(),
            before,
            after,
        };
        Effect {
            what,
            undo: UndoClass::Exact,
            assumed: false,
            secret,
        }
    }

    fn shown(lines: &[Line]) -> String {
        let mark = |kind| match kind {
            LineKind::Note => '~',
            LineKind::Context => ' ',
            LineKind::Removed => '-',
            LineKind::Added => '+',
        };
        lines
            .iter()
            .map(|line| format!("{}{}\n", mark(line.kind), line.text()))
            .collect()
    }

    #[test]
    fn a_changed_line_is_shown_with_what_differs_in_it() {
        let lines = draw(&effect(
            entry(0o644, "a 1\nb\n"),
            entry(0o600, "a 2\nb\n"),
            false,
        ));
        insta::assert_snapshot!(shown(&lines), @r"
        ~mode 0644 → 0600
        ~@@ -1,2 +1,2 @@
        -a 1
        +a 2
         b
        ");
        let emphasised: Vec<_> = lines[3]
            .segments
            .iter()
            .filter(|s| s.emphasis)
            .map(|s| s.text.as_str())
            .collect();
        assert_eq!(emphasised, ["2"]);
    }

    #[test]
    fn a_secret_shows_that_it_changed_and_not_what() {
        let lines = draw(&effect(entry(0o600, "old"), entry(0o600, "new"), true));
        insta::assert_snapshot!(shown(&lines), @r"
        -*** (before)
        +*** (after)
        ");
    }

    #[test]
    fn a_diff_cannot_paint_over_itself() {
        let lines = draw(&effect(
            Entry::Absent,
            entry(0o644, "\u{1b}[2Jx\u{202e}y\n"),
            false,
        ));
        assert_eq!(lines[2].text(), "\\u{1b}[2Jx\\u{202e}y");
    }

    #[test]
    fn a_missing_last_newline_is_said() {
        let lines = draw(&effect(entry(0o644, "a\n"), entry(0o644, "a"), false));
        assert!(shown(&lines).contains("No newline at end of file"));
    }
}
