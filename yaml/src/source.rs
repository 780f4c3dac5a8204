//! Texts, and places in them.

use std::{
    fmt,
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use crate::{Diagnostic, diagnostic::code, nearest};

/// A text that a user wrote, with the name that they know it by.
pub struct Source {
    /// The file as the user named it, or something like `--extra-vars`.
    pub name: PathBuf,
    /// The whole text.
    pub text: Arc<str>,
    /// Where each line starts, found when first asked for.
    lines: OnceLock<Vec<usize>>,
}

impl Source {
    /// A text under a name.
    #[must_use]
    pub fn new(name: impl Into<PathBuf>, text: impl Into<Arc<str>>) -> Arc<Self> {
        Arc::new(Self {
            name: name.into(),
            text: text.into(),
            lines: OnceLock::new(),
        })
    }

    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read or is not UTF-8.
    pub fn read(path: &Path) -> Result<Arc<Self>, Diagnostic> {
        let bytes = std::fs::read(path).map_err(|problem| unreadable(path, &problem))?;
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
                let bytes = problem.as_bytes();
                let bad = bytes.get(at).copied().unwrap_or_default();
                let utf16 = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
                let vault = bytes.contains(&0);
                // What is valid stays as it is, and so the offset holds in the text made of it.
                let source = Self::new(name, String::from_utf8_lossy(bytes).into_owned());
                let span = source.span(at, at + char::REPLACEMENT_CHARACTER.len_utf8());
                let help = match (utf16, vault) {
                    (true, _) => "this looks like UTF-16: save the file as UTF-8",
                    (_, true) => "this looks like a binary file, not like a text",
                    _ => "save the file as UTF-8",
                };
                Err(Diagnostic::error(span, "this is not UTF-8")
                    .with_code(code::ENCODING)
                    .with_label(format!("the byte 0x{bad:02x} cannot stand here"))
                    .with_help(help))
            }
        }
    }

    /// The part of the text between two bytes, kept within the text and to whole characters.
    #[must_use]
    pub fn span(self: &Arc<Self>, start: usize, end: usize) -> Span {
        let start = self.floor(start);
        Span {
            source: Arc::clone(self),
            start,
            end: self.floor(end).max(start),
        }
    }

    /// Line and column of a byte, from 1; columns count characters.
    #[must_use]
    pub fn line_col(&self, at: usize) -> (usize, usize) {
        let at = self.floor(at);
        let line = self.line_starts().partition_point(|start| *start <= at);
        let before = self.text.get(self.line_start(line)..at).unwrap_or_default();
        // Nobody sees a byte-order mark.
        let column = before.trim_start_matches('\u{feff}').chars().count() + 1;
        (line, column)
    }

    /// The text of a line, counted from 1, without its break.
    #[must_use]
    pub fn line(&self, line: usize) -> &str {
        self.text
            .get(self.line_start(line)..self.line_start(line + 1))
            .unwrap_or_default()
            .trim_end_matches(['\n', '\r'])
    }

    /// The byte at which a line starts, counted from 1; the end of the text for lines behind it.
    #[must_use]
    pub fn line_start(&self, line: usize) -> usize {
        let starts = self.line_starts();
        let index = line.saturating_sub(1);
        starts.get(index).copied().unwrap_or(self.text.len())
    }

    /// YAML ends lines with `\n`, `\r\n`, and a lone `\r`.
    fn line_starts(&self) -> &[usize] {
        self.lines.get_or_init(|| {
            let bytes = self.text.as_bytes();
            let breaks = bytes.iter().enumerate().filter(|(at, byte)| match byte {
                b'\n' => true,
                b'\r' => bytes.get(at + 1) != Some(&b'\n'),
                _ => false,
            });
            std::iter::once(0)
                .chain(breaks.map(|(at, _)| at + 1))
                .collect()
        })
    }

    pub(crate) fn floor(&self, at: usize) -> usize {
        let mut at = at.min(self.text.len());
        while !self.text.is_char_boundary(at) {
            at -= 1;
        }
        at
    }
}

/// Why a file cannot be read, without the numbers of the system.
fn unreadable(path: &Path, problem: &std::io::Error) -> Diagnostic {
    let shown = path.display();
    match problem.kind() {
        ErrorKind::NotFound => {
            let missing = Diagnostic::without_place(format!("there is no file {shown}"));
            match neighbour(path) {
                Some(near) => missing.with_help(format!("did you mean `{near}`?")),
                None => missing,
            }
        }
        ErrorKind::IsADirectory => {
            Diagnostic::without_place(format!("{shown} is a directory, not a file"))
                .with_help("name a file in it")
        }
        ErrorKind::PermissionDenied => {
            Diagnostic::without_place(format!("no permission to read {shown}"))
        }
        _ => Diagnostic::without_place(format!("cannot read {shown}: {problem}")),
    }
}

/// A file with nearly the same name in the same directory.
fn neighbour(path: &Path) -> Option<String> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    let entries = std::fs::read_dir(dir.unwrap_or(Path::new("."))).ok()?;
    let names: Vec<String> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    let near = nearest(
        path.file_name()?.to_str()?,
        names.iter().map(String::as_str),
    )?;
    Some(path.with_file_name(near).display().to_string())
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
        self.source.line_col(self.start)
    }

    /// The text itself.
    #[must_use]
    pub fn text(&self) -> &str {
        self.source
            .text
            .get(self.start..self.end)
            .unwrap_or_default()
    }

    /// A part of this span: `from` and `to` count bytes from its start, and are kept within the source.
    #[must_use]
    pub fn part(&self, from: usize, to: usize) -> Self {
        let last = self.source.text.len();
        let start = (self.start + from).min(last);
        Self {
            source: Arc::clone(&self.source),
            start,
            end: (self.start + to).clamp(start, last),
        }
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
        Arc::ptr_eq(&self.source, &other.source)
            && self.start == other.start
            && self.end == other.end
    }
}

impl Eq for Span {}
