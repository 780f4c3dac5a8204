use std::path::{Path, PathBuf};

/// Where facts are read from: the files of a machine and, where no file has the answer, a program.
/// Tests hand in a captured tree.
pub(in crate::tasks) struct Source<'a> {
    root: PathBuf,
    user: (u32, u32),
    environment: &'a [(String, String)],
    probe: &'a dyn Fn(&[&str]) -> Option<Answer>,
}

/// What a program said.
#[derive(Debug, Default)]
pub(in crate::tasks) struct Answer {
    pub(in crate::tasks) ok: bool,
    pub(in crate::tasks) stdout: String,
    pub(in crate::tasks) stderr: String,
}

/// Longer files are not facts: a fact file that is a device or a log must not fill the memory.
const LONGEST: u64 = 16 << 20;

impl<'a> Source<'a> {
    pub(in crate::tasks) fn new(
        root: &Path,
        user: (u32, u32),
        environment: &'a [(String, String)],
        probe: &'a dyn Fn(&[&str]) -> Option<Answer>,
    ) -> Self {
        Self {
            root: root.to_owned(),
            user,
            environment,
            probe,
        }
    }

    /// The numbers of the user that the task acts as, and of its group.
    pub(super) fn user(&self) -> (u32, u32) {
        self.user
    }

    /// Variables that the task sets on top of the helper's own.
    pub(super) fn environment(&self) -> &[(String, String)] {
        self.environment
    }

    /// The path on this machine of an absolute path of the source.
    pub(super) fn at(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// The text of a file; none where it cannot be read.
    pub(super) fn text(&self, path: &str) -> Option<String> {
        use std::io::Read;
        let file = std::fs::File::open(self.at(path)).ok()?;
        let mut bytes = Vec::new();
        file.take(LONGEST).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The trimmed text of a file; none where it cannot be read or is empty.
    pub(super) fn line(&self, path: &str) -> Option<String> {
        let text = self.text(path)?;
        let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// A file that holds one number.
    pub(super) fn number(&self, path: &str) -> Option<i64> {
        self.line(path)?.parse().ok()
    }

    /// The names in a directory, sorted; none where it cannot be read.
    pub(super) fn names(&self, dir: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.at(dir)) else {
            return Vec::new();
        };
        let mut names: Vec<String> = entries
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        names.sort();
        names
    }

    pub(super) fn exists(&self, path: &str) -> bool {
        self.at(path).exists()
    }

    /// The last part of what a symbolic link points to.
    pub(super) fn link_name(&self, path: &str) -> Option<String> {
        let target = std::fs::read_link(self.at(path)).ok()?;
        Some(target.file_name()?.to_string_lossy().into_owned())
    }

    /// Runs a program that only reads.
    pub(super) fn probe(&self, argv: &[&str]) -> Option<Answer> {
        (self.probe)(argv)
    }
}

/// `KEY=value` lines in the style of a shell: `/etc/os-release`, `/etc/lsb-release`.
pub(super) fn assignments(text: &str) -> Vec<(&str, &str)> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once('='))
        .map(|(key, value)| (key.trim(), unquoted(value.trim())))
        .collect()
}

fn unquoted(value: &str) -> &str {
    for quote in ['"', '\''] {
        if let Some(inner) = value
            .strip_prefix(quote)
            .and_then(|v| v.strip_suffix(quote))
        {
            return inner;
        }
    }
    value
}
