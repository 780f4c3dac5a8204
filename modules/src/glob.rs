//! Shell patterns, `*`, `?` and `[…]`, over names and over a host's paths.

use std::path::{Component, Path, PathBuf};

use fleet_wire::Entry;

use crate::host::{Fault, Host};

/// Whether a text matches a pattern as a whole.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let Some(first) = pattern.chars().next() else {
        return text.is_empty();
    };
    let rest = &pattern[first.len_utf8()..];
    let mut letters = text.chars();
    match first {
        '*' => (0..=text.len()).any(|at| text.is_char_boundary(at) && matches(rest, &text[at..])),
        '?' => letters.next().is_some() && matches(rest, letters.as_str()),
        '[' => {
            let (Some(end), Some(letter)) = (rest.find(']'), letters.next()) else {
                return false;
            };
            let set = &rest[..end];
            let (negated, set) = set
                .strip_prefix('!')
                .map_or((false, set), |set| (true, set));
            in_set(set, letter) != negated && matches(&rest[end + 1..], letters.as_str())
        }
        _ => letters.next() == Some(first) && matches(rest, letters.as_str()),
    }
}

fn in_set(set: &str, letter: char) -> bool {
    let set: Vec<char> = set.chars().collect();
    let mut at = 0;
    while at < set.len() {
        if at + 2 < set.len() && set[at + 1] == '-' {
            if (set[at]..=set[at + 2]).contains(&letter) {
                return true;
            }
            at += 3;
        } else if set[at] == letter {
            return true;
        } else {
            at += 1;
        }
    }
    false
}

/// The first path of the host that a pattern matches, links not followed; hidden names only where a pattern begins with a dot.
///
/// # Errors
/// When a directory on the way cannot be read.
pub(crate) fn first(host: &Host, pattern: &Path) -> Result<Option<PathBuf>, Fault> {
    let parts: Vec<String> = pattern
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
            Component::ParentDir => Some("..".to_owned()),
            _ => None,
        })
        .collect();
    descend(host, Path::new("/"), &parts)
}

fn descend(host: &Host, dir: &Path, parts: &[String]) -> Result<Option<PathBuf>, Fault> {
    let Some((part, rest)) = parts.split_first() else {
        return Ok((host.entry(dir)? != Entry::Absent).then(|| dir.to_owned()));
    };
    if !part.contains(['*', '?', '[']) {
        return descend(host, &dir.join(part), rest);
    }
    for name in host.list(dir)?.unwrap_or_default() {
        let shown = !name.starts_with('.') || part.starts_with('.');
        if shown
            && matches(part, &name)
            && let Some(found) = descend(host, &dir.join(name), rest)?
        {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::{first, matches};
    use crate::host::Host;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, text, expected) in [
            ("a?c*", "abcd", true),
            ("*.conf", "nginx.conf", true),
            ("*.conf", "nginx.conf.bak", false),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("a", "ab", false),
            ("", "", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn paths_are_found_by_pattern() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("a/b")).unwrap();
        std::fs::write(dir.path().join("a/b/x.pid"), "").unwrap();
        std::fs::write(dir.path().join("a/b/.hidden"), "").unwrap();
        let found = |pattern: &str| {
            let found = first(&Host::plan(), &dir.path().join(pattern)).unwrap();
            found.map(|path| path.strip_prefix(dir.path()).unwrap().display().to_string())
        };
        assert_eq!(found("*/b/*.pid").as_deref(), Some("a/b/x.pid"));
        assert_eq!(found("a/b/x.pid").as_deref(), Some("a/b/x.pid"));
        assert_eq!(found("a/*.pid"), None);
        assert_eq!(found("a/b/*idden"), None);
    }
}
