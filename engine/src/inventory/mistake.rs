//! What is wrong with an inventory, as diagnostics.

use fleet_yaml::{Diagnostic, Severity, Span, nearest};

/// The codes of the diagnostics that inventories make.
pub mod code {
    /// A source that cannot be read.
    pub const SOURCE: &str = "F0201";
    /// A line of an INI inventory.
    pub const LINE: &str = "F0202";
    /// A heading of an INI inventory.
    pub const SECTION: &str = "F0203";
    /// A host's name, port or range.
    pub const HOST: &str = "F0204";
    /// A group: its name, its keys, or that it is missing.
    pub const GROUP: &str = "F0205";
    /// Groups that hold each other.
    pub const CIRCLE: &str = "F0206";
    /// Variables, in the inventory or beside it.
    pub const VARS: &str = "F0207";
    /// A script and what it prints.
    pub const SCRIPT: &str = "F0209";
    /// A host pattern or a limit.
    pub const PATTERN: &str = "F0210";
}

/// A mistake at a place.
pub(super) fn mistake(code: &'static str, span: &Span, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(span.clone(), message).with_code(code)
}

/// Something odd at a place.
pub(super) fn oddity(code: &'static str, span: &Span, message: impl Into<String>) -> Diagnostic {
    Diagnostic::warning(span.clone(), message).with_code(code)
}

/// A mistake that lies in no text.
pub(super) fn placeless(code: &'static str, message: impl Into<String>) -> Diagnostic {
    Diagnostic::without_place(message).with_code(code)
}

/// Something odd that lies in no text.
pub(super) fn placeless_oddity(code: &'static str, message: impl Into<String>) -> Diagnostic {
    let mut oddity = placeless(code, message);
    oddity.severity = Severity::Warning;
    oddity
}

/// Adds the nearest of the names that were possible.
pub(super) fn meant<'a>(
    diagnostic: Diagnostic,
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Diagnostic {
    match nearest(word, candidates) {
        Some(near) => diagnostic.with_help(format!("did you mean `{near}`?")),
        None => diagnostic,
    }
}
