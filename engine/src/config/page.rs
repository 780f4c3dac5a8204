//! The manual of the settings, as a page.

use std::fmt::Write as _;

use super::{HONOURED, Others, PASSED_OVER, Row, UNSUPPORTED};

const HEAD: &str = "# ansible.cfg

fleetctl reads the file that Ansible would read: the one that `ANSIBLE_CONFIG` names, or else `ansible.cfg` in the working
directory (unless everybody may write to that), `~/.ansible.cfg`, or `/etc/ansible/ansible.cfg`. A variable of the
environment wins over the file, and the command line over both. Paths in the file are relative to the file; `~`, `$NAME` and
`{{CWD}}` are filled in. A value that a setting cannot have is an error with its place; what is set and not honoured is told
once. This page is made of the code: `fleetctl doc --settings > docs/ansible-cfg.md`.

## What is honoured

Types are those of Ansible, with two differences: a yes or no must be one (Ansible takes any other word for a no), and
quotes around a path are no part of it.

";

/// The page, in Markdown.
#[must_use]
pub fn page() -> String {
    let mut text = HEAD.to_owned();
    HONOURED.iter().for_each(|row| honoured(&mut text, row));
    text.push_str("\n## What is told, and not done\n\n");
    for others in UNSUPPORTED {
        let _ = writeln!(
            text,
            "* fleetctl does not {}: {}",
            others.why,
            names(others)
        );
    }
    text.push_str("\n## What is passed over in silence\n\n");
    for others in PASSED_OVER {
        let _ = writeln!(text, "* {}: {}", capital(others.why), names(others));
    }
    text
}

fn honoured(text: &mut String, row: &Row) {
    let names: Vec<String> = row
        .keys
        .iter()
        .map(|key| written(key))
        .chain(row.variables.iter().map(|name| format!("`{name}`")))
        .collect();
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "* {}:{} {}",
        names.join(", "),
        row.about,
        capital(&(row.words)()),
    );
    let _ = match row.default {
        "" => writeln!(text, "."),
        default => writeln!(text, "; `{default}`."),
    };
}

fn names(others: &Others) -> String {
    let name = |(key, variable, _): &(&str, &str, &str)| match (*key, *variable) {
        ("", variable) => format!("`{variable}`"),
        (key, _) => written(key),
    };
    let names: Vec<String> = others.settings.iter().map(name).collect();
    names.join(", ")
}

/// `[section] name`, the usual section left out.
fn written(key: &str) -> String {
    match key.split_once('.') {
        Some(("defaults", name)) => format!("`{name}`"),
        Some((section, name)) => format!("`[{section}] {name}`"),
        None => format!("`{key}`"),
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}
