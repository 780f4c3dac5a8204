//! Shell patterns over the controller's files.

use std::path::{Path, PathBuf};

use super::controller::Controller;

/// The files (not directories) that match a pattern, sorted.
pub(crate) fn files(controller: &dyn Controller, pattern: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = matches(controller, pattern)
        .into_iter()
        .filter(|path| !controller.is_dir(path))
        .collect();
    found.sort();
    found
}

fn matches(controller: &dyn Controller, pattern: &Path) -> Vec<PathBuf> {
    let mut reached = vec![PathBuf::new()];
    for part in pattern.components() {
        let written = part.as_os_str().to_string_lossy();
        if !written.contains(['*', '?', '[']) {
            for path in &mut reached {
                path.push(part);
            }
            continue;
        }
        reached = reached
            .iter()
            .flat_map(|directory| {
                let names = controller.list(directory).unwrap_or_default();
                names
                    .into_iter()
                    // A leading dot has to be written out, as in a shell.
                    .filter(|name| {
                        (!name.starts_with('.') || written.starts_with('.')) && fits(&written, name)
                    })
                    .map(|name| directory.join(name))
                    .collect::<Vec<_>>()
            })
            .collect();
    }
    reached
        .into_iter()
        .filter(|path| controller.exists(path))
        .collect()
}

/// Whether a name fits a pattern of `*`, `?` and `[a-z]`.
pub(crate) fn fits(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    fits_from(&pattern, &name)
}

fn fits_from(pattern: &[char], name: &[char]) -> bool {
    let Some((first, rest)) = pattern.split_first() else {
        return name.is_empty();
    };
    match first {
        '*' => (0..=name.len()).any(|skipped| fits_from(rest, &name[skipped..])),
        '?' => !name.is_empty() && fits_from(rest, &name[1..]),
        '[' => match (set(rest), name.split_first()) {
            (Some((holds, after)), Some((c, others))) => holds(*c) && fits_from(after, others),
            (None, Some(('[', others))) => fits_from(rest, others),
            _ => false,
        },
        c => name.first() == Some(c) && fits_from(rest, &name[1..]),
    }
}

type Holds = Box<dyn Fn(char) -> bool>;

/// The set that begins a pattern after `[`, and the pattern after it.
fn set(pattern: &[char]) -> Option<(Holds, &[char])> {
    let negated = matches!(pattern.first(), Some('!' | '^'));
    let start = usize::from(negated);
    let end = (start + 1..pattern.len()).find(|at| pattern[*at] == ']')?;
    let members = pattern[start..end].to_vec();
    let holds = move |c: char| {
        let mut at = 0;
        let mut found = false;
        while at < members.len() {
            if members.get(at + 1) == Some(&'-') && at + 2 < members.len() {
                found |= (members[at]..=members[at + 2]).contains(&c);
                at += 3;
            } else {
                found |= members[at] == c;
                at += 1;
            }
        }
        found != negated
    };
    Some((Box::new(holds), &pattern[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn patterns_fit_as_in_a_shell() {
        assert!(fits("*.conf", "a.conf"));
        assert!(!fits("*.conf", "a.conf.bak"));
        assert!(fits("[0-9]?-*", "10-x"));
        assert!(fits("[!a]b", "cb"));
        assert!(!fits("[!a]b", "ab"));
        assert!(fits("a[", "a["));
    }
}
