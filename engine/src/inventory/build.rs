//! An inventory while its sources are read: what all formats have in common.

use std::sync::Arc;

use fleet_yaml::{Diagnostic, Node, Span};
use indexmap::IndexSet;

use super::{
    LoadOptions, Unparsed,
    graph::{ALL_INDEX, Graph, Mention},
    mistake::{code, mistake, placeless_oddity},
    range,
};
use crate::config::GroupNames;

/// Hosts and groups so far, and what was wrong with their sources.
pub(super) struct Build {
    pub(super) graph: Graph,
    pub(super) errors: Vec<Diagnostic>,
    pub(super) warnings: Vec<Diagnostic>,
    /// Whether what Ansible passes over with a warning is no error.
    pub(super) lenient: bool,
    group_names: GroupNames,
    /// Names of groups that are no names of variables.
    odd_names: IndexSet<String>,
}

impl Build {
    pub(super) fn new(options: &LoadOptions) -> Build {
        Build {
            graph: Graph::default(),
            errors: Vec::new(),
            warnings: Vec::new(),
            lenient: options.unparsed != Unparsed::Error,
            group_names: options.group_names,
            odd_names: IndexSet::new(),
        }
    }

    /// The group of this name, made where it is new.
    pub(super) fn group(&mut self, name: &str) -> usize {
        let name = self.group_name(name);
        self.graph.group(&name)
    }

    /// The name that a group has here: as written, or made a name of a variable, as the settings want it.
    pub(super) fn group_name(&mut self, name: &str) -> String {
        let safe = safe_name(name);
        if safe == name {
            return safe;
        }
        self.odd_names.insert(name.to_owned());
        match self.group_names {
            GroupNames::Never | GroupNames::Ignore => name.to_owned(),
            GroupNames::Always | GroupNames::Silently => safe,
        }
    }

    /// Tells of the names of groups that were odd, all in one.
    pub(super) fn told_names(&mut self) {
        let what = match self.group_names {
            GroupNames::Never => "but not replaced",
            GroupNames::Always => "and automatically replaced",
            GroupNames::Ignore | GroupNames::Silently => return,
        };
        if self.odd_names.is_empty() {
            return;
        }
        let names: Vec<&str> = self.odd_names.iter().map(String::as_str).collect();
        let warning = placeless_oddity(
            code::GROUP,
            format!(
                "Invalid characters were found in group names {what}: {}",
                names.join(", ")
            ),
        );
        self.warnings.push(
            warning.with_help(
                "use letters, digits and `_`, or set `force_valid_group_names = ignore`",
            ),
        );
    }
    /// The hosts that a pattern such as `web[01:20]:2222` names, made where they are new.
    pub(super) fn hosts(
        &mut self,
        pattern: &str,
        span: &Span,
        mention: &Arc<Mention>,
    ) -> Result<Vec<usize>, Diagnostic> {
        let (name, port) = range::split_port(pattern);
        if name.is_empty() {
            return Err(mistake(code::HOST, span, "a host without a name"));
        }
        if name.ends_with(':') {
            let what = format!("the host name `{name}` ends with `:`");
            return Err(mistake(code::HOST, span, what)
                .with_label("expected a host name, or a name and a port (`web1:2222`)"));
        }
        if let Some((host, port)) = name.rsplit_once(':')
            && !host.contains(':')
            && !range::has_range(name)
            && !port.is_empty()
        {
            return Err(mistake(code::HOST, span, format!("`{port}` is not a port"))
                .with_label("expected a number from 0 to 65535 after the colon"));
        }
        let names = range::expand(name).map_err(|error| {
            // Quotes may have moved the name within its span.
            let place = span
                .text()
                .find(name)
                .map(|at| span.part(at + error.at, at + error.at + error.len));
            mistake(
                code::HOST,
                &place.unwrap_or_else(|| span.clone()),
                error.message,
            )
        })?;
        Ok(names
            .iter()
            .map(|name| self.host(name, port, span, mention))
            .collect())
    }

    /// One host by its very name.
    pub(super) fn host(
        &mut self,
        name: &str,
        port: Option<u16>,
        span: &Span,
        mention: &Arc<Mention>,
    ) -> usize {
        let index = self.graph.host(name, Some(span), Some(mention));
        if let Some(port) = port {
            let host = &mut self.graph.hosts[index];
            host.port = Some(port);
            if !host.vars.contains_key("ansible_port") {
                let value = Node::from_json(&port.into(), span);
                self.graph.set_host_var(index, "ansible_port", value);
            }
        }
        index
    }

    /// Puts a group into another.
    pub(super) fn contain(
        &mut self,
        parent: usize,
        child: usize,
        span: &Span,
    ) -> Result<(), Diagnostic> {
        if child == ALL_INDEX {
            return Err(
                mistake(code::CIRCLE, span, "`all` cannot be in another group")
                    .with_label("`all` holds every host and every group already"),
            );
        }
        self.graph.contain(parent, child, Some(span));
        Ok(())
    }

    /// A variable of a group.
    pub(super) fn group_var(
        &mut self,
        group: usize,
        name: &str,
        value: Node,
    ) -> Result<(), Diagnostic> {
        self.graph.set_group_var(group, name, value, |value| {
            let text = value.as_str().and_then(|text| text.trim().parse().ok());
            value.as_i64().or(text).ok_or_else(|| {
                mistake(
                    code::VARS,
                    &value.span,
                    "`ansible_group_priority` is not a whole number",
                )
                .with_label(format!(
                    "expected a number such as 10, found {}",
                    value.kind_name()
                ))
            })
        })
    }

    /// Goes on behind a mistake.
    pub(super) fn note(&mut self, result: Result<(), Diagnostic>) {
        self.errors.extend(result.err());
    }
}

/// A name with `_` in place of what no name of a variable has.
pub(super) fn safe_name(name: &str) -> String {
    let fits = |at: usize, char: char| {
        char == '_' || char.is_alphabetic() || (at > 0 && char.is_alphanumeric())
    };
    let letters = name.chars().enumerate();
    letters
        .map(|(at, char)| if fits(at, char) { char } else { '_' })
        .collect()
}
