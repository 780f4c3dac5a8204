//! One evaluation: a scope seen by minijinja, with user-written values rendered where they are used.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fleet_yaml::Node;
use indexmap::IndexMap;
use minijinja::value::{Enumerator, Object, ObjectRepr};
use minijinja::{ErrorKind, Value};

use super::failure::{EvalError, Place};
use super::given::items;
use super::nodes::{self, View};
use super::poison::{self, Trace};
use super::python::mutable;
use super::resolve::resolve;
use super::{Templar, file, rewrite};
use crate::variables::{Scope, Variable};

/// Templates in templates in templates: past this the stack is in danger, and nobody means it.
const DEPTH: usize = 60;

/// What templates are evaluated in.
pub(crate) struct Evaluation {
    pub(crate) templar: Templar,
    pub(crate) scope: Arc<dyn Scope>,
    /// Names that hide those of the scope: `template_path` and the like, variables given to a lookup.
    extra: BTreeMap<String, Value>,
    pub(crate) trace: Trace,
    rendered: Mutex<HashMap<String, Option<Value>>>,
    rendering: Mutex<Vec<String>>,
    undefined: Mutex<HashMap<String, EvalError>>,
    /// What the author of an `undef(hint=…)` says about it.
    hint: Mutex<Option<String>>,
}

impl fmt::Debug for Evaluation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Evaluation")
            .field("scope", &self.scope)
            .finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Evaluation {
    pub(crate) fn new(
        templar: Templar,
        scope: Arc<dyn Scope>,
        extra: BTreeMap<String, Value>,
        trace: Trace,
    ) -> Arc<Self> {
        Arc::new(Self {
            templar,
            scope,
            extra,
            trace,
            rendered: Mutex::default(),
            rendering: Mutex::default(),
            undefined: Mutex::default(),
            hint: Mutex::default(),
        })
    }

    /// The same scope with more names on top, as part of the same evaluation.
    pub(crate) fn with(
        self: &Arc<Self>,
        more: impl IntoIterator<Item = (String, Value)>,
    ) -> Arc<Self> {
        let mut extra = self.extra.clone();
        extra.extend(more);
        Self::new(
            self.templar.clone(),
            self.scope.clone(),
            extra,
            self.trace.clone(),
        )
    }

    /// The context that minijinja looks names up in. In one for templates that change lists and dictionaries,
    /// those of the scope can change, too, for as long as that template runs.
    pub(crate) fn root(self: &Arc<Self>, mutable: bool) -> Value {
        Value::from_object(Root {
            evaluation: self.clone(),
            changing: mutable.then(Mutex::default),
        })
    }

    /// What a name stands for, rendered. `None` if it is not defined, or defined by something undefined.
    ///
    /// # Errors
    /// If its value cannot be rendered.
    pub(crate) fn variable(self: &Arc<Self>, name: &str) -> Result<Option<Value>, EvalError> {
        if let Some(value) = self.extra.get(name) {
            return Ok(Some(value.clone()));
        }
        match self.scope.get(name) {
            // All names of the scope, each rendered when it is looked at.
            None if name == "vars" => Ok(Some(self.root(false))),
            None => Ok(None),
            Some(Variable::Data(value)) => Ok(Some(value)),
            Some(Variable::Pending(id)) => Ok(Some(poison::pending_variable(name, id))),
            Some(Variable::Unknown) => Ok(Some(poison::unknown_variable(name))),
            Some(Variable::Written(node)) => self.lazily(name, &node),
        }
    }

    /// Renders a user-written value once; `path` is its name in messages.
    pub(crate) fn lazily(
        self: &Arc<Self>,
        path: &str,
        node: &Node,
    ) -> Result<Option<Value>, EvalError> {
        if let Some(known) = lock(&self.rendered).get(path) {
            return Ok(known.clone());
        }
        let _guard = self.enter(path, node)?;
        let value = match self.node(path, node) {
            Ok(value) if value.is_undefined() => None,
            Ok(value) => Some(value),
            Err(error) if error.is_undefined() => {
                lock(&self.undefined).insert(path.to_owned(), error);
                None
            }
            Err(error) => return Err(error),
        };
        lock(&self.rendered).insert(path.to_owned(), value.clone());
        Ok(value)
    }

    /// Why a variable that has a value counts as undefined: what its own template misses.
    pub(crate) fn why_undefined(&self, path: &str) -> Option<EvalError> {
        lock(&self.undefined).get(path).cloned()
    }

    /// Where files are looked for: what `ansible_search_path` says, then the settings.
    pub(crate) fn search_path(self: &Arc<Self>) -> Vec<PathBuf> {
        let said = self.variable("ansible_search_path").ok().flatten();
        let said = said
            .into_iter()
            .filter_map(|paths| items(&paths).ok())
            .flatten()
            .filter_map(|path| path.as_str().map(PathBuf::from));
        said.chain(self.templar.settings().search_path.iter().cloned())
            .collect()
    }

    /// Remembers what an undefined value's author says about it.
    pub(crate) fn hint_at(&self, hint: String) {
        *lock(&self.hint) = Some(hint);
    }

    /// What was said about an undefined value, if anything.
    pub(crate) fn hint(&self) -> Option<String> {
        lock(&self.hint).clone()
    }

    fn enter(self: &Arc<Self>, path: &str, node: &Node) -> Result<Rendering, EvalError> {
        let mut rendering = lock(&self.rendering);
        if let Some(start) = rendering.iter().position(|outer| outer == path) {
            let mut chain: Vec<&str> = rendering[start..].iter().map(String::as_str).collect();
            chain.push(path);
            return Err(EvalError::recursive(node, &chain));
        }
        if rendering.len() >= DEPTH || poison::depth() >= DEPTH {
            return Err(EvalError::too_deep(node, path));
        }
        rendering.push(path.to_owned());
        Ok(Rendering(self.clone()))
    }

    /// A user-written value with everything in it rendered, each error at its own place.
    pub(crate) fn whole(self: &Arc<Self>, node: &Node) -> Result<Value, EvalError> {
        Ok(match nodes::view(node) {
            View::Plain(value) => value,
            View::Vault => self.opened(node)?,
            View::Template(text) => {
                let place = Place::Scalar(node);
                let value = self.text(text, &place)?;
                if poison::is_omit(&value) {
                    return Ok(value);
                }
                resolve(&value)
                    .map_err(|error| EvalError::unresolved(self, text, &place, &error))?
            }
            View::List => {
                let mut made = Vec::new();
                for item in nodes::list(node) {
                    made.push(self.whole(item)?);
                }
                made.retain(|item| !poison::is_omit(item));
                Value::from(made)
            }
            View::Map => {
                let mut made = Vec::new();
                for (key, item) in node.as_map().into_iter().flat_map(|map| map.iter()) {
                    let value = self.whole(item)?;
                    if !poison::is_omit(&value) {
                        made.push((nodes::plain(key), value));
                    }
                }
                Value::from_pairs(made)
            }
        })
    }

    /// What a `!vault` value holds. It is data: never rendered.
    fn opened(self: &Arc<Self>, node: &Node) -> Result<Value, EvalError> {
        let vault = &self.templar.settings().vault;
        vault.value(node).map(Value::from).map_err(EvalError::new)
    }

    /// A user-written value: texts are rendered, lists and maps when something is taken from them.
    pub(crate) fn node(self: &Arc<Self>, path: &str, node: &Node) -> Result<Value, EvalError> {
        Ok(match nodes::view(node) {
            View::Template(text) => self.text(text, &Place::Scalar(node))?,
            View::Plain(value) => value,
            View::Vault => self.opened(node)?,
            View::List => Value::from_object(LazyList(Lazy {
                evaluation: self.clone(),
                path: path.to_owned(),
                node: node.clone(),
            })),
            View::Map => Value::from_object(LazyMap(Lazy {
                evaluation: self.clone(),
                path: path.to_owned(),
                node: node.clone(),
            })),
        })
    }

    /// A text with templates in it. If all that it prints is one value, it is that value and keeps its type; anything
    /// else makes a text. A newline at the end (of a YAML block) counts only for texts.
    pub(crate) fn text(
        self: &Arc<Self>,
        text: &str,
        place: &Place<'_>,
    ) -> Result<Value, EvalError> {
        let body = text.strip_suffix('\n').unwrap_or(text);
        let value = match rewrite::single_expression(body) {
            Some(range) => {
                let mut inner =
                    rewrite::expression(&body[range.clone()], rewrite::Backslashes::Literal);
                inner.offset = range.start;
                self.expression(&inner, place)?
            }
            None => {
                let rewritten = rewrite::template(
                    text,
                    &rewrite::Delimiters::default(),
                    rewrite::Backslashes::Literal,
                );
                self.template(&rewritten, place)?
            }
        };
        Ok(file::with_newlines(text, value))
    }

    /// The value of an expression.
    pub(crate) fn expression(
        self: &Arc<Self>,
        rewritten: &rewrite::Rewritten,
        place: &Place<'_>,
    ) -> Result<Value, EvalError> {
        let result = poison::traced(&self.trace, || {
            entered(self, || {
                self.templar
                    .environment()
                    .compile_expression_owned(rewritten.text.clone())?
                    .eval(self.root(rewritten.mutable))
            })
        });
        match result {
            Ok(value) if value.is_undefined() => Err(EvalError::explain(
                self,
                rewritten,
                place,
                &ErrorKind::UndefinedError.into(),
            )),
            Ok(value) => Ok(value),
            Err(error) => Err(EvalError::explain(self, rewritten, place, &error)),
        }
    }

    fn template(
        self: &Arc<Self>,
        rewritten: &rewrite::Rewritten,
        place: &Place<'_>,
    ) -> Result<Value, EvalError> {
        self.printed(|| {
            self.templar.environment().render_named_str(
                super::INLINE,
                &rewritten.text,
                self.root(rewritten.mutable),
            )
        })
        .map_err(|error| EvalError::explain(self, rewritten, place, &error))
    }

    /// What a template prints: nothing is `None`, one value is itself, anything else is a text.
    pub(crate) fn printed(
        self: &Arc<Self>,
        render: impl FnOnce() -> Result<String, minijinja::Error>,
    ) -> Result<Value, minijinja::Error> {
        let (text, last) = poison::traced(&self.trace, || {
            entered(self, || render().map(|text| (text, last_printed())))
        })?;
        Ok(match last {
            // `{% set l = [] %}…{{ l }}` prints nothing but the list.
            Some(last) if last.text == text => last.value,
            _ if text.is_empty() => Value::from(()),
            _ => Value::from(text),
        })
    }
}

/// Takes the name off the list of what is being rendered.
struct Rendering(Arc<Evaluation>);

impl Drop for Rendering {
    fn drop(&mut self) {
        lock(&self.0.rendering).pop();
    }
}

/// A value and how it was printed.
struct Printed {
    value: Value,
    text: String,
}

/// An evaluation at work, and the value that it printed last.
struct Running {
    evaluation: Arc<Evaluation>,
    printed: Option<Printed>,
}

thread_local! {
    static CURRENT: RefCell<Vec<Running>> = const { RefCell::new(Vec::new()) };
}

/// Remembers a value that is printed.
pub(crate) fn prints(value: &Value, text: &str) {
    CURRENT.with_borrow_mut(|stack| {
        let Some(running) = stack.last_mut() else {
            return;
        };
        // What a macro printed comes once more, as a text, when its result is printed: the macro's value is meant.
        let again = value.as_str().is_some()
            && running
                .printed
                .as_ref()
                .is_some_and(|last| last.text == text && !text.is_empty());
        if !again {
            running.printed = Some(Printed {
                value: value.clone(),
                text: text.to_owned(),
            });
        }
    });
}

fn last_printed() -> Option<Printed> {
    CURRENT.with_borrow_mut(|stack| stack.last_mut().and_then(|running| running.printed.take()))
}

/// Runs `work` with `evaluation` as the one that lookups and functions see.
pub(crate) fn entered<T>(evaluation: &Arc<Evaluation>, work: impl FnOnce() -> T) -> T {
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            CURRENT.with_borrow_mut(|stack| stack.pop());
        }
    }
    CURRENT.with_borrow_mut(|stack| {
        stack.push(Running {
            evaluation: evaluation.clone(),
            printed: None,
        })
    });
    let _leave = Leave;
    work()
}

/// The evaluation that runs on this thread.
///
/// # Errors
/// If none does: the function was called from outside.
pub(crate) fn current() -> Result<Arc<Evaluation>, minijinja::Error> {
    CURRENT
        .with_borrow(|stack| stack.last().map(|running| running.evaluation.clone()))
        .ok_or_else(|| {
            minijinja::Error::new(
                ErrorKind::InvalidOperation,
                "called outside of an evaluation",
            )
        })
}

/// The value that minijinja sees: a failure travels inside it to the place of its use.
fn carried(result: Result<Option<Value>, EvalError>) -> Option<Value> {
    match result {
        Ok(value) => value,
        Err(error) => Some(Value::from(error.into_minijinja())),
    }
}

#[derive(Debug)]
struct Root {
    evaluation: Arc<Evaluation>,
    changing: Option<Mutex<HashMap<String, Value>>>,
}

impl Object for Root {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        if let Some(known) = self
            .changing
            .as_ref()
            .and_then(|changing| lock(changing).get(key).cloned())
        {
            return Some(known);
        }
        let found = carried(self.evaluation.variable(key))?;
        let Some(changing) = &self.changing else {
            return Some(found);
        };
        if !is_written(&found) {
            return Some(found);
        }
        // What cannot be had as a whole stays as it is: perhaps only a part of it is asked for.
        let found = mutable::made(&found).unwrap_or(found);
        lock(changing).insert(key.to_owned(), found.clone());
        Some(found)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        // Who asks for all of a host's variables does not mean those of every other host in each of them.
        let names = self.evaluation.scope.names();
        let mut seen = HashSet::from(["hostvars".to_owned(), "vars".to_owned()]);
        let own = names.into_iter().filter(|name| seen.insert(name.clone()));
        Enumerator::Values(own.map(Value::from).collect())
    }
}

#[derive(Debug)]
struct Lazy {
    evaluation: Arc<Evaluation>,
    path: String,
    node: Node,
}

impl Lazy {
    fn child(&self, step: &str, node: &Node) -> Option<Value> {
        carried(match nodes::view(node) {
            View::Plain(value) => Ok(Some(value)),
            _ => self
                .evaluation
                .lazily(&format!("{}{step}", self.path), node),
        })
    }
}

/// Why an item of a user-written list or map is undefined: what its own template misses.
pub(crate) fn why_undefined(container: &Value, key: &Value) -> Option<EvalError> {
    if let Some(list) = container.downcast_object_ref::<LazyList>() {
        return list
            .0
            .evaluation
            .why_undefined(&format!("{}[{key}]", list.0.path));
    }
    let map = container.downcast_object_ref::<LazyMap>()?;
    let (step, _) = nodes::entry(&map.0.node, key)?;
    map.0
        .evaluation
        .why_undefined(&format!("{}{step}", map.0.path))
}

/// Whether the value is a plain list or dictionary: written by a user, or from data. (`hostvars`, `vars` and the like
/// only look like one.)
pub(crate) fn is_written(value: &Value) -> bool {
    value.downcast_object_ref::<LazyList>().is_some()
        || value.downcast_object_ref::<LazyMap>().is_some()
        || value.downcast_object_ref::<Vec<Value>>().is_some()
        || value
            .downcast_object_ref::<IndexMap<Value, Value>>()
            .is_some()
}

#[derive(Debug)]
struct LazyList(Lazy);

impl Object for LazyList {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let index = key.as_usize()?;
        let node = nodes::list(&self.0.node).get(index)?;
        self.0.child(&format!("[{index}]"), node)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Seq(nodes::list(&self.0.node).len())
    }
}

#[derive(Debug)]
struct LazyMap(Lazy);

impl Object for LazyMap {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let (step, node) = nodes::entry(&self.0.node, key)?;
        self.0.child(&step, node)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        let node = self.0.node.get(key)?;
        self.0.child(&format!(".{key}"), node)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(nodes::keys(&self.0.node))
    }
}
