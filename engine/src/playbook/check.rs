//! What of a playbook can be looked at without a host: templates, conditions, values that stand for themselves.

use std::{path::Path, sync::Arc};

use fleet_yaml::{Diagnostic, Kind, Node, Source, Span};

use super::Vars;
use crate::{
    template::{Evaluated, FileSyntax, Templar},
    variables::{Scope, Variable},
    vault::Vault,
};

/// Looks at templates without a host.
pub trait Check {
    /// The templates in a value.
    fn value(&self, node: &Node) -> Vec<Diagnostic>;
    /// A bare expression.
    fn expression(&self, expression: &str, span: &Span) -> Vec<Diagnostic>;
    /// A template file.
    fn file(&self, path: &Path, text: &str, syntax: &FileSyntax) -> Vec<Diagnostic>;
    /// Renders a value with no other variables than these, of which the later ones win: names of static imports.
    ///
    /// # Errors
    /// When it needs another variable, or fails.
    fn render(&self, node: &Node, vars: &[Arc<Vars>]) -> Result<Node, Diagnostic>;
    /// The text of a file, opened where it is encrypted.
    ///
    /// # Errors
    /// When it cannot be read or opened, or is not UTF-8.
    fn source(&self, path: &Path) -> Result<Arc<Source>, Diagnostic>;
    /// Whether a file that is encrypted can be opened.
    ///
    /// # Errors
    /// Why it cannot.
    fn opens(&self, path: &Path) -> Result<(), Diagnostic>;
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

    fn render(&self, node: &Node, vars: &[Arc<Vars>]) -> Result<Node, Diagnostic> {
        let scope: Arc<dyn Scope> = Arc::new(Layers(vars.to_vec()));
        match Templar::value(self, node, &scope)? {
            Evaluated::Known(value) => {
                let json = serde_json::to_value(&value)
                    .map_err(|problem| Diagnostic::error(node.span.clone(), problem.to_string()))?;
                Ok(Node::from_json(&json, &node.span))
            }
            Evaluated::Pending(_) | Evaluated::Unknown { .. } => Err(Diagnostic::error(
                node.span.clone(),
                "this is known only on a host",
            )),
        }
    }

    fn source(&self, path: &Path) -> Result<Arc<Source>, Diagnostic> {
        match crate::sources::read(path) {
            Ok(bytes) => Source::from_bytes(path, self.vault().plain(path, bytes)?),
            // It says what is wrong with it.
            Err(_) => Source::read(path),
        }
    }

    fn opens(&self, path: &Path) -> Result<(), Diagnostic> {
        match crate::sources::read(path) {
            Ok(bytes) if Vault::is_vault_at(path) => self.vault().plain(path, bytes).map(drop),
            _ => Ok(()),
        }
    }
}

/// Finds nothing: for what was looked at before.
pub(super) struct Trusting;

impl Check for Trusting {
    fn value(&self, _: &Node) -> Vec<Diagnostic> {
        Vec::new()
    }

    fn expression(&self, _: &str, _: &Span) -> Vec<Diagnostic> {
        Vec::new()
    }

    fn file(&self, _: &Path, _: &str, _: &FileSyntax) -> Vec<Diagnostic> {
        Vec::new()
    }

    fn render(&self, node: &Node, _: &[Arc<Vars>]) -> Result<Node, Diagnostic> {
        Ok(node.clone())
    }

    fn source(&self, path: &Path) -> Result<Arc<Source>, Diagnostic> {
        Source::read(path)
    }

    fn opens(&self, _: &Path) -> Result<(), Diagnostic> {
        Ok(())
    }
}

/// Variables without a host.
#[derive(Debug)]
struct Layers(Vec<Arc<Vars>>);

impl Scope for Layers {
    fn get(&self, name: &str) -> Option<Variable> {
        let node = self.0.iter().rev().find_map(|vars| vars.get(name))?;
        Some(Variable::Written(node.clone()))
    }

    fn names(&self) -> Vec<String> {
        self.0
            .iter()
            .flat_map(|vars| vars.keys().cloned())
            .collect()
    }

    fn origin(&self, name: &str) -> Option<String> {
        let node = self.0.iter().rev().find_map(|vars| vars.get(name))?;
        Some(node.span.to_string())
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
