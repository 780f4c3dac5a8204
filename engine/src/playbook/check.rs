//! What of a playbook can be looked at without a host: templates, conditions, values that stand for themselves.

use std::path::Path;

use fleet_yaml::{Diagnostic, Kind, Node, Span};

use crate::template::{FileSyntax, Templar};

/// Looks at templates without rendering them.
pub trait Check {
    /// The templates in a value.
    fn value(&self, node: &Node) -> Vec<Diagnostic>;
    /// A bare expression.
    fn expression(&self, expression: &str, span: &Span) -> Vec<Diagnostic>;
    /// A template file.
    fn file(&self, path: &Path, text: &str, syntax: &FileSyntax) -> Vec<Diagnostic>;
}

impl Check for Templar {
    fn value(&self, node: &Node) -> Vec<Diagnostic> {
        self.check(node)
    }

    fn expression(&self, expression: &str, span: &Span) -> Vec<Diagnostic> {
        self.check_expression(expression, span)
    }

    fn file(&self, path: &Path, text: &str, syntax: &FileSyntax) -> Vec<Diagnostic> {
        self.check_file(path, text, syntax)
    }
}

/// Whether a text has a template in it.
pub(super) fn is_templated(text: &str) -> bool {
    ["{{", "{%", "{#"].iter().any(|open| text.contains(open))
}

/// Whether a value stands for itself: no template in it, nothing encrypted.
pub(super) fn is_literal(node: &Node) -> bool {
    if node.has_tag("vault") || node.has_tag("vault-encrypted") {
        return false;
    }
    match &node.kind {
        Kind::Str(text) => !is_templated(text) || node.has_tag("unsafe"),
        Kind::Seq(items) => items.iter().all(is_literal),
        Kind::Map(map) => map
            .iter()
            .all(|(key, value)| is_literal(key) && is_literal(value)),
        Kind::Null | Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) => true,
    }
}

/// Yes or no, as Ansible spells it.
pub(super) fn truth(node: &Node) -> Option<bool> {
    match &node.kind {
        Kind::Bool(truth) => Some(*truth),
        Kind::Int(number @ (0 | 1)) => Some(*number == 1),
        Kind::Str(text) => match text.to_ascii_lowercase().as_str() {
            "yes" | "on" | "true" | "1" | "y" | "t" => Some(true),
            "no" | "off" | "false" | "0" | "n" | "f" => Some(false),
            _ => None,
        },
        _ => None,
    }
}
