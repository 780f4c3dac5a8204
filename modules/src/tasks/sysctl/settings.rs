//! A file of kernel parameters, with all that people write in it.

/// A file's lines; only those of keys that are set are rewritten, and only their values.
pub(super) struct Settings {
    lines: Vec<String>,
    before: String,
}

/// What a line sets.
#[derive(Debug, PartialEq)]
pub(super) struct Setting {
    pub(super) key: String,
    pub(super) value: String,
}

impl Settings {
    pub(super) fn parse(text: &str) -> Self {
        Self {
            lines: text.split_inclusive('\n').map(str::to_owned).collect(),
            before: text.to_owned(),
        }
    }

    /// The last value of a key: that is the one in force.
    pub(super) fn get(&self, key: &str) -> Option<&str> {
        let line = self.lines.iter().rev().find(|line| sets(line, key))?;
        line.split_once('=').map(|(_, value)| value.trim())
    }

    /// Makes the last line of a key say a value, in the line's own style; a new line where there is none.
    pub(super) fn set(&mut self, key: &str, value: &str) {
        match self.lines.iter_mut().rev().find(|line| sets(line, key)) {
            Some(line) => {
                let Some((head, tail)) = line.split_once('=') else {
                    return;
                };
                if folded(tail) != value {
                    let gap: String = tail
                        .chars()
                        .take_while(|c| *c == ' ' || *c == '\t')
                        .collect();
                    let end = if line.ends_with('\n') { "\n" } else { "" };
                    *line = format!("{head}={gap}{value}{end}");
                }
            }
            None => {
                if let Some(last) = self.lines.last_mut()
                    && !last.ends_with('\n')
                {
                    last.push('\n');
                }
                self.lines.push(format!("{key}={value}\n"));
            }
        }
    }

    pub(super) fn remove(&mut self, key: &str) {
        self.lines.retain(|line| !sets(line, key));
    }

    /// The new text; none where it is the old one.
    pub(super) fn changed(self) -> Option<String> {
        let text = self.lines.concat();
        (text != self.before).then_some(text)
    }
}

fn sets(line: &str, key: &str) -> bool {
    setting(line).is_some_and(|setting| setting.key == key)
}

/// What a line sets; none for a comment. A dash before the key means that errors do not matter.
pub(super) fn setting(line: &str) -> Option<Setting> {
    let line = line.trim();
    if line.starts_with(['#', ';']) {
        return None;
    }
    let (key, value) = line.split_once('=')?;
    let key = key.trim();
    Some(Setting {
        key: canonical(key.strip_prefix('-').unwrap_or(key).trim()),
        value: folded(value),
    })
}

/// A key with dots between its parts. The first separator says which one separates: `net/ipv4/conf/eth0.100/x` is `net.ipv4.conf.eth0/100.x`.
pub(super) fn canonical(key: &str) -> String {
    match key.find(['.', '/']).map(|at| &key[at..=at]) {
        Some("/") => key.chars().map(swapped).collect(),
        _ => key.to_owned(),
    }
}

/// The path below `/proc/sys` of a key in its usual spelling.
pub(super) fn slashed(key: &str) -> String {
    key.chars().map(swapped).collect()
}

fn swapped(letter: char) -> char {
    match letter {
        '.' => '/',
        '/' => '.',
        other => other,
    }
}

pub(super) fn folded(value: &str) -> String {
    value.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::{Settings, canonical, setting, slashed};

    #[test]
    fn a_value_is_changed_in_its_own_line_and_style() {
        let cases = [
            ("a.b = 1\n", "a.b = 2\n"),
            ("a.b=1", "a.b=2"),
            ("-a/b =\t1\nc=3", "-a/b =\t2\nc=3"),
            ("# a.b=1\n", "# a.b=1\na.b=2\n"),
            ("c=3", "c=3\na.b=2\n"),
            ("", "a.b=2\n"),
            ("a.b=2\na.b=1\n", "a.b=2\na.b=2\n"),
        ];
        for (before, after) in cases {
            let mut settings = Settings::parse(before);
            settings.set("a.b", "2");
            assert_eq!(settings.changed().as_deref(), Some(after), "{before:?}");
            let mut again = Settings::parse(after);
            again.set("a.b", "2");
            assert_eq!(again.changed(), None, "{after:?}");
        }
    }

    #[test]
    fn white_space_in_a_value_is_no_difference() {
        let mut settings = Settings::parse("a.b = 1\t2   3\n");
        settings.set("a.b", "1 2 3");
        assert_eq!(settings.changed(), None);
    }

    #[test]
    fn keys_have_one_spelling() {
        assert_eq!(
            canonical("net/ipv4/conf/eth0.100/rp_filter"),
            "net.ipv4.conf.eth0/100.rp_filter"
        );
        assert_eq!(
            slashed("net.ipv4.conf.eth0/100.rp_filter"),
            "net/ipv4/conf/eth0.100/rp_filter"
        );
        assert_eq!(
            setting(" - net/core/somaxconn = 1 \n").unwrap().key,
            "net.core.somaxconn"
        );
        assert_eq!(setting("; a=1"), None);
    }
}
