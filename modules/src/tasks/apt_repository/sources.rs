//! A list of apt's sources in one-line style.

/// A repository: its line with single spaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Source(String);

impl Source {
    pub(super) fn parse(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let rest = match words.split_first()? {
            (&("deb" | "deb-src"), rest) => rest,
            _ => return None,
        };
        let place = match rest.first()?.starts_with('[') {
            true => &rest[rest.iter().position(|word| word.ends_with(']'))? + 1..],
            false => rest,
        };
        // A suite that ends with a slash needs no components.
        (place.len() >= 2).then(|| Self(words.join(" ")))
    }

    /// The name of a list for it.
    pub(super) fn name(&self) -> String {
        let options = |line: &str| match (line.find('['), line.find(']')) {
            (Some(from), Some(to)) if from < to => format!("{}{}", &line[..from], &line[to + 1..]),
            _ => line.to_owned(),
        };
        let line = options(&self.0);
        let address = line.split_whitespace().nth(1).unwrap_or_default();
        let address = address.split_once("://").map_or(address, |(_, rest)| rest);
        let address = address.split_once('@').map_or(address, |(_, rest)| rest);
        let words = address.split(|c: char| !c.is_ascii_alphanumeric());
        words
            .filter(|word| !word.is_empty())
            .collect::<Vec<_>>()
            .join("_")
    }
}

/// The lines of a list.
#[derive(Debug, Default)]
pub(super) struct Sources {
    lines: Vec<String>,
}

/// The repository of a line, and whether it is more than a comment.
fn source(line: &str) -> Option<(Source, bool)> {
    let trimmed = line.trim();
    let bare = trimmed.trim_start_matches('#');
    let enabled = bare.len() == trimmed.len();
    // A comment may stand behind it.
    let bare = bare.split_once(" #").map_or(bare, |(line, _)| line);
    Some((Source::parse(bare)?, enabled))
}

impl Sources {
    pub(super) fn parse(text: &str) -> Self {
        Self {
            lines: text.lines().map(str::to_owned).collect(),
        }
    }

    pub(super) fn text(&self) -> String {
        self.lines.join("\n") + "\n"
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.iter().all(|line| line.trim().is_empty())
    }

    pub(super) fn has(&self, wanted: &Source) -> bool {
        self.lines
            .iter()
            .filter_map(|line| source(line))
            .any(|(source, enabled)| enabled && source == *wanted)
    }

    pub(super) fn add(&mut self, wanted: &Source) {
        self.lines.push(wanted.0.clone());
    }

    /// Makes lines of it that are comments active; true where there were any.
    pub(super) fn enable(&mut self, wanted: &Source) -> bool {
        let mut changed = false;
        for line in &mut self.lines {
            if source(line).is_some_and(|(source, enabled)| !enabled && source == *wanted) {
                line.clone_from(&wanted.0);
                changed = true;
            }
        }
        changed
    }

    /// Takes out its lines that are active; true where there were any.
    pub(super) fn remove(&mut self, wanted: &Source) -> bool {
        let before = self.lines.len();
        self.lines.retain(|line| {
            !source(line).is_some_and(|(source, enabled)| enabled && source == *wanted)
        });
        self.lines.len() != before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_known_with_any_spaces_and_behind_a_comment_sign() {
        let wanted = Source::parse("deb  http://x.org/debian\tsid main").unwrap();
        assert_eq!(wanted.name(), "x_org_debian");
        let mut list = Sources::parse(
            "# comment\n# deb http://x.org/debian sid main\ndeb http://y.org sid/\n",
        );
        assert!(!list.has(&wanted));
        assert!(list.enable(&wanted) && list.has(&wanted) && !list.enable(&wanted));
        assert_eq!(
            list.text(),
            "# comment\ndeb http://x.org/debian sid main\ndeb http://y.org sid/\n"
        );
        assert!(list.remove(&wanted) && !list.remove(&wanted));
        assert_eq!(list.text(), "# comment\ndeb http://y.org sid/\n");
        assert!(Sources::parse("\n \n").is_empty());
    }

    #[test]
    fn what_is_no_source_is_none() {
        for wrong in [
            "",
            "deb",
            "rpm http://x y",
            "deb [arch=amd64 http://x y",
            "deb http://x",
        ] {
            assert_eq!(Source::parse(wrong), None, "{wrong}");
        }
        let key = "deb [signed-by=/k.gpg arch=amd64] https://u:p@nginx.org/packages/debian/ bookworm nginx";
        assert_eq!(
            Source::parse(key).unwrap().name(),
            "nginx_org_packages_debian"
        );
    }
}
