//! Files that are put together of the files in a directory, on the host and on the controller alike.

use crate::pattern::Pattern;

/// Which files of a directory are parts.
#[derive(Debug)]
pub struct Chosen {
    pattern: Option<Pattern>,
    ignore_hidden: bool,
}

impl Chosen {
    /// Those whose names begin as an expression of Python says, and not with a dot where these are left out.
    ///
    /// # Errors
    /// When the expression cannot be understood.
    pub fn new(regexp: Option<&str>, ignore_hidden: bool) -> Result<Self, String> {
        let pattern = regexp.map(|regexp| Pattern::over_text(&format!("\\A(?:{regexp})")));
        Ok(Self {
            pattern: pattern.transpose()?,
            ignore_hidden,
        })
    }

    /// Whether a name is one of them.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        let fits = |pattern: &Pattern| pattern.is_in(name.as_bytes());
        self.pattern.as_ref().is_none_or(fits) && !(self.ignore_hidden && name.starts_with('.'))
    }
}

/// Parts one behind the other, with a line between them; each begins on a line of its own.
#[must_use]
pub fn joined(parts: Vec<Vec<u8>>, delimiter: Option<&str>) -> Vec<u8> {
    let delimiter = delimiter.map(|text| {
        let mut line = unescaped(text).into_bytes();
        if line.last() != Some(&b'\n') {
            line.push(b'\n');
        }
        line
    });
    let mut all = Vec::new();
    let mut ended = true;
    for (number, part) in parts.into_iter().enumerate() {
        if !ended {
            all.push(b'\n');
        }
        if let Some(line) = delimiter.as_ref().filter(|_| number > 0) {
            all.extend_from_slice(line);
        }
        // An empty part is a line, too, as in Ansible.
        ended = part.last() == Some(&b'\n');
        all.extend(part);
    }
    all
}

/// The escapes that a delimiter may have.
fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (letter, letter == '\\') {
            (_, true) => match letters.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('r') => out.push('\r'),
                Some('\\') | None => out.push('\\'),
                Some(other) => out.extend(['\\', other]),
            },
            (letter, false) => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_stand_as_ansible_puts_them() {
        let parts = || {
            ["a", "", "c\n", "d"]
                .map(|part| part.as_bytes().to_vec())
                .into()
        };
        assert_eq!(joined(parts(), None), b"a\n\nc\nd");
        assert_eq!(joined(parts(), Some("--")), b"a\n--\n\n--\nc\n--\nd");
        assert_eq!(
            joined(parts(), Some("x\\ny")),
            b"a\nx\ny\n\nx\ny\nc\nx\ny\nd"
        );
    }

    #[test]
    fn names_are_chosen_by_how_they_begin() {
        let chosen = Chosen::new(Some("[0-9]"), true).unwrap();
        assert!(chosen.has("10-a") && !chosen.has("a-10"));
        assert!(!Chosen::new(None, true).unwrap().has(".x"));
    }
}
