//! One evaluation: a scope seen by minijinja, with user-written values rendered where they are used.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fleet_yaml::Node;
use minijinja::value::{Enumerator, Object, ObjectRepr};
use minijinja::{ErrorKind, Value};

use super::failure::{EvalError, Place};
use super::nodes::{self, View};
use super::poison::{self, Trace};
use super::python::text::printed;
use super::resolve::resolve;
use super::{Templar, rewrite};
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

    /// The context that minijinja looks names up in.
    pub(crate) fn root(self: &Arc<Self>) -> Value {
        Value::from_object(Root(self.clone()))
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
        let view = nodes::view(node)?;
        Ok(match view {
            View::Plain(value) => value,
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

    /// A user-written value: texts are rendered, lists and maps when something is taken from them.
    pub(crate) fn node(self: &Arc<Self>, path: &str, node: &Node) -> Result<Value, EvalError> {
        Ok(match nodes::view(node)? {
            View::Template(text) => self.text(text, &Place::Scalar(node))?,
            View::Plain(value) => value,
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
                    body,
                    &rewrite::Delimiters::default(),
                    rewrite::Backslashes::Literal,
                );
                self.template(&rewritten, place)?
            }
        };
        Ok(match value.as_str() {
            Some(line) if body.len() < text.len() => Value::from(format!("{line}\n")),
            _ => value,
        })
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
                    .eval(self.root())
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
        let (result, last) = poison::traced(&self.trace, || {
            entered(self, || {
                let result = self.templar.environment().render_named_str(
                    super::INLINE,
                    &rewritten.text,
                    self.root(),
                );
                (result, last_printed())
            })
        });
        let text = result.map_err(|error| EvalError::explain(self, rewritten, place, &error))?;
        // `{% set l = [] %}…{{ l }}` prints nothing but the list.
        let whole = last.filter(|value| {
            value.as_str().is_none()
                && printed(value).is_ok_and(|printed| printed == text && !text.is_empty())
        });
        Ok(whole.unwrap_or_else(|| Value::from(text)))
    }
}

/// Takes the name off the list of what is being rendered.
struct Rendering(Arc<Evaluation>);

impl Drop for Rendering {
    fn drop(&mut self) {
        lock(&self.0.rendering).pop();
    }
}

/// An evaluation at work, and the value that it printed last.
struct Running {
    evaluation: Arc<Evaluation>,
    printed: Option<Value>,
}

thread_local! {
    static CURRENT: RefCell<Vec<Running>> = const { RefCell::new(Vec::new()) };
}

/// Remembers a value that is printed.
pub(crate) fn prints(value: &Value) {
    CURRENT.with_borrow_mut(|stack| {
        if let Some(running) = stack.last_mut() {
            running.printed = Some(value.clone());
        }
    });
}

fn last_printed() -> Option<Value> {
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
struct Root(Arc<Evaluation>);

impl Object for Root {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        carried(self.0.variable(key))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.0.scope.names().into_iter().map(Value::from).collect())
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
        let result = match nodes::view(node) {
            Ok(View::Plain(value)) => Ok(Some(value)),
            Ok(_) => self
                .evaluation
                .lazily(&format!("{}{step}", self.path), node),
            Err(error) => Err(error),
        };
        carried(result)
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
