use std::fmt;

use crate::Span;

/// A mistake in something that a user wrote, or a thing to look at: what, where, and what to do.
#[derive(Clone, Debug)]
pub struct Diagnostic {
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
        Self { span: Some(span), ..Self::without_place(message) }
    }

    /// Something to look at.
    #[must_use]
    pub fn warning(span: Span, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(span, message) }
    }

    /// A mistake that is in no file.
    #[must_use]
    pub fn without_place(message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            code: None,
            message: message.into(),
            span: None,
            label: None,
            related: Vec::new(),
            help: None,
        }
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
