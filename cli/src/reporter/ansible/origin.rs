//! The lines around a task, as Ansible shows them above a failure.

use std::path::Path;

use fleet_engine::event::TaskInfo;
use fleet_yaml::Span;

/// Lines that are shown before the one that is meant.
const BEFORE: usize = 2;

/// `FILE:LINE:COLUMN` and the lines around; `directory` is what relative names are relative to.
pub(super) fn origin(task: &TaskInfo, directory: &Path) -> Option<String> {
    // Gathering that nobody wrote has no place.
    (task.name != "Gathering Facts").then(|| place(&task.span, directory))
}

/// `FILE:LINE`
pub(super) fn path(task: &TaskInfo, directory: &Path) -> String {
    let (line, _) = task.span.line_col();
    format!("{}:{line}", file(&task.span, directory))
}

fn file(span: &Span, directory: &Path) -> String {
    let joined = directory.join(&span.source.name);
    // `./a.yml` and `roles/../a.yml` as they are meant.
    let mut parts = Vec::new();
    for part in joined.components() {
        match part {
            std::path::Component::ParentDir => {
                parts.pop();
            }
            std::path::Component::CurDir => {}
            other => parts.push(other),
        }
    }
    parts
        .into_iter()
        .collect::<std::path::PathBuf>()
        .display()
        .to_string()
}

fn place(span: &Span, directory: &Path) -> String {
    let (line, column) = span.line_col();
    let mut text = format!("Origin: {}:{line}:{column}\n", file(span, directory));
    let first = line.saturating_sub(BEFORE).max(1);
    let width = line.to_string().len();
    let lines = span.source.text.lines().enumerate();
    for (index, own) in lines.skip(first - 1).take(line + 1 - first) {
        let shown = format!("{:>width$} {own}", index + 1);
        text.push('\n');
        text.push_str(shown.trim_end());
    }
    text.push_str(&format!(
        "\n{}^ column {column}",
        " ".repeat(width + column)
    ));
    text
}

#[cfg(test)]
mod tests {
    use std::{path::Path, sync::Arc};

    use fleet_yaml::Source;

    use super::place;

    #[test]
    fn two_lines_before_are_shown_and_the_column_is_marked() {
        let text = "- hosts: all\n  tasks:\n\n    - name: one\n      ping:\n";
        let source = Source::new("site.yml", text);
        let start = text.find("name:").unwrap();
        let span = Arc::clone(&source).span(start, start + 4);
        assert_eq!(
            place(&span, Path::new("/etc/x/../fleet")),
            "Origin: /etc/fleet/site.yml:4:7\n\n2   tasks:\n3\n4     - name: one\n        ^ column 7"
        );
    }
}
