use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::Diagnostic;

/// A text that a user wrote, with the name that they know it by.
pub struct Source {
    /// The file as the user named it, or something like `--extra-vars`.
    pub name: PathBuf,
    /// The whole text.
    pub text: Arc<str>,
}

impl Source {
    /// A text under a name.
    #[must_use]
    pub fn new(name: impl Into<PathBuf>, text: impl Into<Arc<str>>) -> Arc<Self> {
        Arc::new(Self { name: name.into(), text: text.into() })
    }

    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read or is not UTF-8.
    pub fn read(path: &Path) -> Result<Arc<Self>, Diagnostic> {
        let bytes = std::fs::read(path)
            .map_err(|problem| Diagnostic::without_place(format!("cannot read {}: {problem}", path.display())))?;
        Self::from_bytes(path, bytes)
    }

    /// Takes bytes that should be UTF-8.
    ///
    /// # Errors
    /// When they are not; the place is where they stop to be.
    pub fn from_bytes(name: &Path, bytes: Vec<u8>) -> Result<Arc<Self>, Diagnostic> {
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Self::new(name, text)),
            Err(problem) => {
                let at = problem.utf8_error().valid_up_to();
                let text = String::from_utf8_lossy(problem.as_bytes()).into_owned();
                let source = Self::new(name, text);
                let span = Span { source, start: at, end: at + '\u{fffd}'.len_utf8() };
                let mut mistake = Diagnostic::error(span, "this is not UTF-8");
                mistake.help = Some("save the file as UTF-8".to_owned());
                Err(mistake)
            }
        }
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Source({})", self.name.display())
    }
}

/// A part of a source, in bytes.
#[derive(Clone)]
pub struct Span {
    /// Where it is from.
    pub source: Arc<Source>,
    /// The first byte.
    pub start: usize,
    /// The byte behind the last.
    pub end: usize,
}

impl Span {
    /// Line and column of the start, from 1; columns count characters.
    #[must_use]
    pub fn line_col(&self) -> (usize, usize) {
        let text = &self.source.text;
        let mut start = self.start.min(text.len());
        while !text.is_char_boundary(start) {
            start -= 1;
        }
        let before = &text[..start];
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or(before).chars().count() + 1;
        (line, column)
    }

    /// The text itself.
    #[must_use]
    pub fn text(&self) -> &str {
        self.source.text.get(self.start..self.end).unwrap_or_default()
    }

    /// A part of this span: `from` and `to` count bytes from its start, and are kept within the source.
    #[must_use]
    pub fn part(&self, from: usize, to: usize) -> Self {
        let last = self.source.text.len();
        let start = (self.start + from).min(last);
        Self { source: Arc::clone(&self.source), start, end: (self.start + to).clamp(start, last) }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, column) = self.line_col();
        write!(f, "{}:{line}:{column}", self.source.name.display())
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl PartialEq for Span {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.source, &other.source) && self.start == other.start && self.end == other.end
    }
}

impl Eq for Span {}
