//! Templates: user-written values, conditions and files, rendered in the scope of a host.
//!
//! Values that a user wrote are lazy templates, rendered where they are used. Values from hosts are data and are never
//! rendered. An evaluation tells its caller whether it needed a result that is still on its way
//! ([`Evaluated::Pending`]) or one that only an apply can give ([`Evaluated::Unknown`]).

mod about;
#[cfg(test)]
mod behaviour;
mod check;
mod conditions;
mod controller;
mod evaluation;
mod failure;
mod file;
mod filters;
mod functions;
mod given;
mod glob;
mod lookups;
mod nodes;
mod poison;
mod python;
mod resolve;
mod rewrite;
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fleet_yaml::{Diagnostic, Node, Span};
use minijinja::value::ValueKind;
use minijinja::{AutoEscape, Environment, UndefinedBehavior};

pub(crate) use about::about;
pub use controller::{CommandOutput, Controller, NoController};
pub use failure::{EvalError, code};
pub(crate) use filters::{YamlStyle, dumped as dumped_json, yaml};
pub(crate) use glob::fits;
pub use minijinja::Value;
pub(crate) use poison::pending_variable;
pub use poison::{is_omit, omit, unknown_value};
pub(crate) use python::text::{str as python_text, type_name};

use evaluation::Evaluation;
use failure::Place;
use poison::Trace;

use crate::variables::{PendingId, Scope};
use crate::vault::Vault;

/// The name of templates that stand in YAML.
const INLINE: &str = "<inline>";

/// Steps of minijinja: enough for a loop over 100,000 items, and an end to one that never ends.
const FUEL: u64 = 5_000_000;

/// What templates need to know about the controller.
#[derive(Debug, Clone)]
pub struct TemplateSettings {
    /// Where included templates, and the files of lookups, are looked for after the directory of the including file.
    pub search_path: Vec<PathBuf>,
    /// The directory of the playbook: what relative paths start from.
    pub playbook_dir: PathBuf,
    /// Files, commands and the environment of the controller.
    pub controller: Arc<dyn Controller>,
    /// The secrets that open `!vault` values and encrypted files of lookups.
    pub vault: Vault,
    /// What `ansible_managed` says in a template: `{file}`, `{host}`, `{uid}` and `strftime`'s words have their meaning.
    pub managed: String,
}

/// What became of an evaluation.
#[derive(Debug, Clone, PartialEq)]
pub enum Evaluated<T> {
    /// The value.
    Known(T),
    /// It needs a result that is still on its way.
    Pending(PendingId),
    /// It needs what only an apply can tell.
    Unknown {
        /// The names that it looked at.
        because: Vec<String>,
    },
}

impl<T> Evaluated<T> {
    /// The same outcome with another value.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Evaluated<U> {
        match self {
            Evaluated::Known(value) => Evaluated::Known(change(value)),
            Evaluated::Pending(id) => Evaluated::Pending(id),
            Evaluated::Unknown { because } => Evaluated::Unknown { because },
        }
    }

    /// The value, if it is known.
    pub fn known(self) -> Option<T> {
        match self {
            Evaluated::Known(value) => Some(value),
            _ => None,
        }
    }
}

/// How a template file is to be read. The first line `#jinja2: trim_blocks: False` of a file overrides it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSyntax {
    /// Drop the newline after a block. Ansible: yes.
    pub trim_blocks: bool,
    /// Drop the blanks before a block. Ansible: no.
    pub lstrip_blocks: bool,
    /// `{%` and `%}` or what stands for them.
    pub block: (String, String),
    /// `{{` and `}}` or what stands for them.
    pub variable: (String, String),
    /// `{#` and `#}` or what stands for them.
    pub comment: (String, String),
    /// What makes a line a statement; empty: nothing does.
    pub line_statement: String,
    /// What makes the rest of a line a comment; empty: nothing does.
    pub line_comment: String,
    /// What ends the lines of the output.
    pub newline: String,
}

impl Default for FileSyntax {
    fn default() -> Self {
        let standard = rewrite::Delimiters::default();
        Self {
            trim_blocks: true,
            lstrip_blocks: false,
            block: standard.block,
            variable: standard.variable,
            comment: standard.comment,
            line_statement: String::new(),
            line_comment: String::new(),
            newline: "\n".to_owned(),
        }
    }
}

/// Renders templates. Cheap to clone.
#[derive(Clone)]
pub struct Templar {
    inner: Arc<Inner>,
}

struct Inner {
    settings: TemplateSettings,
    environment: Environment<'static>,
}

impl fmt::Debug for Templar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Templar")
            .field("settings", &self.inner.settings)
            .finish_non_exhaustive()
    }
}

impl Templar {
    /// Builds the filters, tests and functions once.
    pub fn new(settings: TemplateSettings) -> Self {
        let environment = environment(&settings);
        Self {
            inner: Arc::new(Inner {
                settings,
                environment,
            }),
        }
    }

    /// Renders a whole YAML value: texts with templates in them, lists and maps throughout. A text that is one single
    /// `{{ … }}` becomes the value of that expression. `!unsafe` values stay as they are. Items and entries that are
    /// [`omit`] are left out; a value that is itself `omit` is given back as such (see [`is_omit`]).
    ///
    /// # Errors
    /// If a template is wrong, uses something undefined, or fails.
    pub fn value(
        &self,
        node: &Node,
        scope: &Arc<dyn Scope>,
    ) -> Result<Evaluated<Value>, EvalError> {
        self.evaluate(scope, |evaluation| evaluation.whole(node))
    }

    /// The value of a bare expression, as in `when:`, `until:` and `failed_when:`. A text with `{{ }}` in it is taken
    /// as a template that gives the value.
    ///
    /// # Errors
    /// If the expression is wrong, uses something undefined, or fails.
    pub fn expression(
        &self,
        expression: &str,
        span: &Span,
        scope: &Arc<dyn Scope>,
    ) -> Result<Evaluated<Value>, EvalError> {
        let place = Place::Bare(span, expression);
        self.evaluate(scope, |evaluation| {
            let value = if rewrite::is_template(expression) {
                evaluation.text(expression.trim(), &place)?
            } else {
                let rewritten = rewrite::expression(expression, rewrite::Backslashes::Escape);
                evaluation.expression(&rewritten, &place)?
            };
            resolve::resolve(&value)
                .map_err(|error| EvalError::unresolved(evaluation, expression, &place, &error))
        })
    }

    /// The value of a bare expression to be looked at, and what is missed in it: `<< error 1 - 'x' is undefined >>` stands
    /// where something is undefined.
    ///
    /// # Errors
    /// If the expression is wrong, or fails.
    pub fn shown(
        &self,
        expression: &str,
        span: &Span,
        scope: &Arc<dyn Scope>,
    ) -> Result<Evaluated<(Value, Vec<String>)>, EvalError> {
        let place = Place::Bare(span, expression);
        self.evaluate(scope, |evaluation| {
            let mut missed = Vec::new();
            let mut mark = |problem: &EvalError| {
                let message = problem.diagnostic().message.as_str();
                // Ansible names no path: `object of type 'dict' has no attribute 'x'`.
                let bare = message.strip_prefix('`').and_then(|rest| {
                    let (_, why) = rest.split_once("` is undefined: ")?;
                    Some(why)
                });
                missed.push(bare.unwrap_or(message).to_owned());
                let number = missed.len();
                Value::from(format!("<< error {number} - {} >>", missed[number - 1]))
            };
            let unresolved =
                |error: &_| EvalError::unresolved(evaluation, expression, &place, error);
            let rewritten = rewrite::expression(expression, rewrite::Backslashes::Escape);
            let value = match evaluation.expression(&rewritten, &place) {
                Ok(value) => {
                    let mut missing = |error| {
                        let problem = unresolved(&error);
                        Ok(mark(&problem))
                    };
                    resolve::resolve_with(&value, &mut missing)
                        .map_err(|error| unresolved(&error))?
                }
                Err(problem) if problem.is_undefined() => mark(&problem),
                Err(problem) => return Err(problem),
            };
            Ok((value, missed))
        })
    }

    /// Whether a condition holds: Python's truth, except that the texts `true` and `false` mean what they say. A node
    /// that is a boolean, or a list of conditions that all have to hold, is understood, too; and `{{ name }}` stands for
    /// the conditions that a user wrote under that name.
    ///
    /// # Errors
    /// As [`Templar::expression`].
    pub fn truth(
        &self,
        condition: &Node,
        scope: &Arc<dyn Scope>,
    ) -> Result<Evaluated<bool>, EvalError> {
        conditions::hold(self, condition, scope, 0)
    }

    /// Renders a template file as Ansible's template module does: `trim_blocks` on, `lstrip_blocks` off, the newline at
    /// the end kept, a `#jinja2:` header obeyed. `extra` hides names of the scope.
    ///
    /// # Errors
    /// If the template is wrong, uses something undefined, or fails; the place is in the file.
    pub fn file(
        &self,
        path: &Path,
        text: &str,
        scope: &Arc<dyn Scope>,
        extra: BTreeMap<String, Value>,
        syntax: &FileSyntax,
    ) -> Result<Evaluated<String>, EvalError> {
        let evaluation = Evaluation::new(self.clone(), scope.clone(), extra, Trace::default());
        let rendered = poison::traced(&evaluation.trace, || {
            let value = file::render(&evaluation, path, text, syntax)?;
            python::text::printed(&value).map_err(|error| {
                let source = failure::source(path, text);
                EvalError::unresolved(&evaluation, "", &Place::File(&source), &error)
            })
        });
        finish(&evaluation.trace, rendered)
    }

    /// What the lookup of a `with_…` finds. Terms of `with_first_found` may be undefined: they are passed over.
    ///
    /// # Errors
    /// If a term cannot be rendered, there is no such lookup, or it fails.
    pub fn with(
        &self,
        name: &str,
        terms: &Node,
        scope: &Arc<dyn Scope>,
    ) -> Result<Evaluated<Vec<Value>>, EvalError> {
        let span = &terms.span;
        self.evaluate(scope, |evaluation| {
            let place = Place::Bare(span, "");
            let unresolved = |error| EvalError::unresolved(evaluation, "", &place, &error);
            let lenient = name.trim_start_matches("ansible.builtin.") == "first_found";
            let value = if lenient {
                evaluation.node("with_first_found", terms)?
            } else {
                evaluation.whole(terms)?
            };
            let terms = match value.kind() {
                ValueKind::Seq | ValueKind::Iterable => given::items(&value).map_err(unresolved)?,
                _ => vec![value],
            };
            let asked = lookups::Asked {
                evaluation: evaluation.clone(),
                terms,
                options: Vec::new(),
            };
            lookups::find(name, &asked)
                .and_then(|found| found.iter().map(resolve::resolve).collect())
                .map_err(unresolved)
        })
    }

    /// Whether there is a lookup of this name: what may stand after `with_`.
    pub fn has_lookup(name: &str) -> bool {
        lookups::names().any(|known| known == name)
    }

    /// The variables of another scope as one value whose entries are rendered when they are taken out: what
    /// `hostvars['web1']` and `vars` are made of.
    pub fn variables(&self, scope: &Arc<dyn Scope>) -> Value {
        let trace = poison::current().unwrap_or_default();
        Evaluation::new(self.clone(), scope.clone(), BTreeMap::new(), trace).root(false)
    }

    /// What is wrong with the templates in a value, as far as it shows without any variable: syntax, unknown filters,
    /// tests and functions.
    pub fn check(&self, node: &Node) -> Vec<Diagnostic> {
        check::node(self, node)
    }

    /// Like [`Templar::check`], for a bare expression.
    pub fn check_expression(&self, expression: &str, span: &Span) -> Vec<Diagnostic> {
        check::expression(self, expression, span)
    }

    /// Like [`Templar::check`], for a template file.
    pub fn check_file(&self, path: &Path, text: &str, syntax: &FileSyntax) -> Vec<Diagnostic> {
        check::file(self, path, text, syntax)
    }

    fn evaluate<T>(
        &self,
        scope: &Arc<dyn Scope>,
        work: impl FnOnce(&Arc<Evaluation>) -> Result<T, EvalError>,
    ) -> Result<Evaluated<T>, EvalError> {
        let evaluation = Evaluation::new(
            self.clone(),
            scope.clone(),
            BTreeMap::new(),
            Trace::default(),
        );
        let result = poison::traced(&evaluation.trace, || {
            evaluation::entered(&evaluation, || work(&evaluation))
        });
        finish(&evaluation.trace, result)
    }

    pub(crate) fn environment(&self) -> &Environment<'static> {
        &self.inner.environment
    }

    pub(crate) fn settings(&self) -> &TemplateSettings {
        &self.inner.settings
    }

    /// The same with what opens encrypted values and files.
    #[must_use]
    pub fn with_vault(&self, vault: &Vault) -> Self {
        Self::new(TemplateSettings {
            vault: vault.clone(),
            ..self.inner.settings.clone()
        })
    }

    /// What opens encrypted values and files, and hides what was in them.
    #[must_use]
    pub fn vault(&self) -> &Vault {
        &self.inner.settings.vault
    }

    pub(crate) fn controller(&self) -> Arc<dyn Controller> {
        self.inner.settings.controller.clone()
    }

    /// The path with `~` replaced, from the playbook's directory on.
    pub(crate) fn expand_user(&self, path: &Path) -> PathBuf {
        match path.strip_prefix("~") {
            Ok(rest) => match self.controller().environment("HOME") {
                Some(home) if rest.as_os_str().is_empty() => PathBuf::from(home),
                Some(home) => Path::new(&home).join(rest),
                None => path.to_owned(),
            },
            Err(_) => path.to_owned(),
        }
    }
}

/// The outcome by what was touched: pending wins over unknown, and both over an error that they may have caused.
fn finish<T>(trace: &Trace, result: Result<T, EvalError>) -> Result<Evaluated<T>, EvalError> {
    let mut touched = trace.looked_at();
    if result.is_err() {
        touched.add(trace.met());
    }
    if let Some(id) = touched.pending {
        return Ok(Evaluated::Pending(id));
    }
    if !touched.unknown.is_empty() {
        return Ok(Evaluated::Unknown {
            because: touched.unknown.into_iter().collect(),
        });
    }
    result.map(Evaluated::Known)
}

/// minijinja with Ansible's filters, tests and functions.
fn environment(settings: &TemplateSettings) -> Environment<'static> {
    let mut environment = Environment::empty();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_fuel(Some(FUEL));
    // Debug mode copies variables into every error; the places are known without it.
    environment.set_debug(false);
    environment.set_unknown_method_callback(python::methods::call);
    environment.set_formatter(|out, _, value| {
        // An inline `if` without `else` prints nothing; other undefined values never come here.
        if value.is_undefined() {
            return Ok(());
        }
        let text = python::text::printed(value)?;
        evaluation::prints(value, &text);
        out.write_str(&text).map_err(minijinja::Error::from)
    });
    if let Ok(syntax) = file::syntax(&FileSyntax::default()) {
        environment.set_syntax(syntax);
    }
    file::set_loader(&mut environment, settings, None, &FileSyntax::default());
    filters::add(&mut environment);
    tests::add(&mut environment);
    functions::add(&mut environment);
    environment
}
