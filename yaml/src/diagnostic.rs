//! What is wrong with something that a user wrote: one type, for all files.

use std::{
    fmt,
    ops::{Deref, DerefMut},
};

use crate::Span;

/// Stable names of the kinds of mistakes that this crate finds.
pub mod code {
    /// The text is not YAML.
    pub const SYNTAX: &str = "F0101";
    /// A key is twice in one mapping.
    pub const DUPLICATE_KEY: &str = "F0102";
    /// A template stands where YAML reads its braces as a mapping.
    pub const UNQUOTED_TEMPLATE: &str = "F0103";
    /// A number to base 60 for Ansible, a string here.
    pub const SEXAGESIMAL: &str = "F0104";
    /// Too deep, or too many values.
    pub const LIMIT: &str = "F0105";
    /// An alias without its anchor, or inside it.
    pub const ALIAS: &str = "F0106";
    /// No UTF-8, or a character that YAML forbids.
    pub const ENCODING: &str = "F0107";
    /// A list or a mapping as a key.
    pub const KEY: &str = "F0108";
    /// `<<` on something that is no mapping.
    pub const MERGE: &str = "F0109";
    /// A value of another type than the one that is needed.
    pub const TYPE: &str = "F0110";
    /// A key that is not known here.
    pub const UNKNOWN_FIELD: &str = "F0111";
    /// A key that must be there.
    pub const MISSING_FIELD: &str = "F0112";
    /// A word outside the list of those allowed.
    pub const UNKNOWN_CHOICE: &str = "F0113";
}

/// A mistake in something that a user wrote, or a thing to look at: what, where, and what to do.
///
/// As large as one pointer, so that it can be returned everywhere; its fields are those of [`Details`].
/// `Display` is one line, `file:line:col: message (help)`; [`crate::render`] shows the source, too.
#[derive(Clone, Debug)]
pub struct Diagnostic(Box<Details>);

/// The fields of a [`Diagnostic`].
#[derive(Clone, Debug)]
pub struct Details {
    /// Whether it stops the work.
    pub severity: Severity,
    /// A stable name of its kind, where it has one.
    pub code: Option<&'static str>,
    /// What is wrong: a fragment in lower case without a full stop.
    pub message: String,
    /// Where.
    pub span: Option<Span>,
    /// What stands below the marked place.
    pub label: Option<String>,
    /// Other places that belong to it.
    pub related: Vec<(Span, String)>,
    /// What to do.
    pub help: Option<String>,
}

/// Whether a diagnostic stops the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It does.
    Error,
    /// It does not.
    Warning,
}

impl Diagnostic {
    /// A mistake at a place.
    #[must_use]
    pub fn error(span: Span, message: impl Into<String>) -> Self {
        Self::without_place(message).at(span)
    }

    /// Something to look at.
    #[must_use]
    pub fn warning(span: Span, message: impl Into<String>) -> Self {
        let mut warning = Self::error(span, message);
        warning.severity = Severity::Warning;
        warning
    }

    /// A mistake that is in no file.
    #[must_use]
    pub fn without_place(message: impl Into<String>) -> Self {
        Self(Box::new(Details {
            severity: Severity::Error,
            code: None,
            message: message.into(),
            span: None,
            label: None,
            related: Vec::new(),
            help: None,
        }))
    }

    /// The same at this place.
    #[must_use]
    pub fn at(mut self, span: Span) -> Self {
        self.span = Some(span);
        self
    }

    /// The same at this place, unless a more exact one is known already.
    #[must_use]
    pub fn or_at(mut self, span: &Span) -> Self {
        self.span.get_or_insert_with(|| span.clone());
        self
    }

    /// The same with the name of its kind.
    #[must_use]
    pub fn with_code(mut self, code: &'static str) -> Self {
        self.code = Some(code);
        self
    }

    /// The same with advice.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The same with a text below the marked place.
    #[must_use]
    pub fn with_label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// The same with another place that belongs to it.
    #[must_use]
    pub fn with_related(mut self, span: Span, text: impl Into<String>) -> Self {
        self.related.push((span, text.into()));
        self
    }
}

impl Deref for Diagnostic {
    type Target = Details;

    fn deref(&self) -> &Details {
        &self.0
    }
}

impl DerefMut for Diagnostic {
    fn deref_mut(&mut self) -> &mut Details {
        &mut self.0
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(span) = &self.span {
            write!(f, "{span}: ")?;
        }
        f.write_str(&self.message)?;
        match &self.help {
            Some(help) => write!(f, " ({help})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Diagnostic {}
