use std::path::{Path, PathBuf};

use super::Host;

impl Host {
    /// A path of an argument, absolute: variables and a leading `~` filled in, and from where the task stands where it begins with neither.
    #[must_use]
    pub fn expand(&self, written: &str) -> PathBuf {
        let filled = self.filled(written);
        let path = Path::new(&filled);
        match path.is_absolute() || written.is_empty() {
            true => path.to_owned(),
            // What it is seen from, without a `./` on the way.
            false => self.base().join(path).components().collect(),
        }
    }

    /// Fills in variables of the task and a leading `~`, as Python's `expandvars` and `expanduser` do; what is not known stays.
    #[must_use]
    pub fn filled(&self, word: &str) -> String {
        let user = self.user();
        let variable = |name: &str| {
            let set = self.environment().iter().find(|(known, _)| known == name);
            set.map(|(_, value)| value.clone()).or_else(|| match name {
                "HOME" => Some(user.home.display().to_string()),
                "USER" | "LOGNAME" => Some(user.name.clone()),
                "SHELL" => Some(user.shell.display().to_string()),
                "PATH" => {
                    let own = std::env::var("PATH").unwrap_or_default();
                    Some(super::search_path(&own))
                }
                other => std::env::var(other).ok(),
            })
        };
        let word = with_variables(word, variable);
        let Some(rest) = word.strip_prefix('~') else {
            return word;
        };
        let (name, tail) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let home = match name {
            "" => variable("HOME"),
            name => self
                .account(name)
                .map(|user| user.home.display().to_string()),
        };
        home.map_or_else(
            || word.clone(),
            |home| format!("{}{tail}", home.trim_end_matches('/')),
        )
    }
}

fn with_variables(word: &str, variable: impl Fn(&str) -> Option<String>) -> String {
    let mut out = String::new();
    let mut rest = word;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let end = |text: &str| {
            text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .unwrap_or(text.len())
        };
        let (name, length) = match after
            .strip_prefix('{')
            .and_then(|inner| inner.split_once('}'))
        {
            Some((name, _)) => (name, name.len() + 2),
            None => (&after[..end(after)], end(after)),
        };
        match variable(name) {
            Some(value) => out.push_str(&value),
            None => out.push_str(&rest[at..=at + length]),
        }
        rest = &after[length..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_filled_in_where_they_are_known() {
        let known = |name: &str| (name == "HOME").then(|| "/root".to_owned());
        for (word, filled) in [
            ("$HOME/x", "/root/x"),
            ("${HOME}x", "/rootx"),
            ("$HOMEX ${NO} $", "$HOMEX ${NO} $"),
            ("a$b", "a$b"),
            ("${HOME", "${HOME"),
        ] {
            assert_eq!(with_variables(word, known), filled);
        }
    }

    #[test]
    fn paths_become_absolute() {
        let host = Host::plan();
        let home = &host.user().home;
        for (written, path) in [
            ("/a/$HOMEX", PathBuf::from("/a/$HOMEX")),
            ("~/a", home.join("a")),
            ("$HOME/a", home.join("a")),
            ("./a", host.base().join("a")),
            ("", PathBuf::new()),
        ] {
            assert_eq!(host.expand(written), path, "{written}");
        }
    }
}
