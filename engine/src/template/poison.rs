//! Values that are not there: results on their way, results known only after apply, `omit`, and the undefined.
//!
//! A template may carry such a value about (`x is defined`, the branch not taken). As soon as it is looked at, that is
//! noted in the trace of the evaluation, and whatever the template makes of it, the outcome is "pending" or "unknown".

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use minijinja::value::{Enumerator, Object, ObjectRepr};
use minijinja::{Error, ErrorKind, State, Value};

use crate::variables::PendingId;

/// What an evaluation has touched.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    pub(crate) pending: Option<PendingId>,
    pub(crate) unknown: BTreeSet<String>,
}

impl Touched {
    /// Joins what another evaluation touched.
    pub(crate) fn add(&mut self, other: Touched) {
        self.pending = self.pending.or(other.pending);
        self.unknown.extend(other.unknown);
    }

    fn note(&mut self, poison: &Poison) {
        match poison.reason {
            Reason::Pending(id) => self.pending = self.pending.or(Some(id)),
            Reason::Unknown => {
                self.unknown.insert(poison.name.clone());
            }
        }
    }
}

/// What one evaluation has met and looked at; shared with the evaluations inside it.
#[derive(Debug, Default, Clone)]
pub(crate) struct Trace {
    looked_at: Arc<Mutex<Touched>>,
    met: Arc<Mutex<Touched>>,
}

impl Trace {
    /// What was looked at.
    pub(crate) fn looked_at(&self) -> Touched {
        std::mem::take(&mut *lock(&self.looked_at))
    }

    /// What was met at all: if the evaluation failed, this is why.
    pub(crate) fn met(&self) -> Touched {
        std::mem::take(&mut *lock(&self.met))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    static TRACES: RefCell<Vec<Trace>> = const { RefCell::new(Vec::new()) };
}

/// Runs `work` with `trace` as the place where touches are noted.
pub(crate) fn traced<T>(trace: &Trace, work: impl FnOnce() -> T) -> T {
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            TRACES.with_borrow_mut(|traces| traces.pop());
        }
    }
    TRACES.with_borrow_mut(|traces| traces.push(trace.clone()));
    let _leave = Leave;
    work()
}

/// The trace of the evaluation that runs on this thread, if any.
pub(crate) fn current() -> Option<Trace> {
    TRACES.with_borrow(|traces| traces.last().cloned())
}

#[derive(Debug, Clone, Copy)]
enum Reason {
    Pending(PendingId),
    Unknown,
}

/// A value that is not there yet.
#[derive(Debug, Clone)]
struct Poison {
    reason: Reason,
    name: String,
}

impl Poison {
    fn look(&self) {
        if let Some(trace) = current() {
            lock(&trace.looked_at).note(self);
        }
    }
}

impl Object for Poison {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value(self: &Arc<Self>, _: &Value) -> Option<Value> {
        self.look();
        Some(Value::from_dyn_object(self.clone()))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        self.look();
        Enumerator::Empty
    }

    fn is_true(self: &Arc<Self>) -> bool {
        self.look();
        false
    }

    fn call(self: &Arc<Self>, _: &mut State<'_, '_>, _: &[Value]) -> Result<Value, Error> {
        self.look();
        Ok(Value::from_dyn_object(self.clone()))
    }

    fn call_method(
        self: &Arc<Self>,
        _: &mut State<'_, '_>,
        _: &str,
        _: &[Value],
    ) -> Result<Value, Error> {
        self.look();
        Ok(Value::from_dyn_object(self.clone()))
    }

    fn render(self: &Arc<Self>, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.look();
        Ok(())
    }
}

/// A value known only after apply, to be put into a result: `stdout` of a command in a plan. The name says what it is
/// (`result.stdout`) when a plan explains what it could not decide.
pub fn unknown_value(name: impl Into<String>) -> Value {
    Value::from_object(Poison {
        reason: Reason::Unknown,
        name: name.into(),
    })
}

/// The value of a variable that is not known, met under its name.
pub(crate) fn unknown_variable(name: &str) -> Value {
    met(Poison {
        reason: Reason::Unknown,
        name: name.to_owned(),
    })
}

/// The value of a variable whose result is on its way.
pub(crate) fn pending_variable(name: &str, id: PendingId) -> Value {
    met(Poison {
        reason: Reason::Pending(id),
        name: name.to_owned(),
    })
}

fn met(poison: Poison) -> Value {
    if let Some(trace) = current() {
        lock(&trace.met).note(&poison);
    }
    Value::from_object(poison)
}

/// Whether the value is one that is not there yet.
pub(crate) fn is_poison(value: &Value) -> bool {
    value.downcast_object_ref::<Poison>().is_some()
}

/// Whether the value is not there yet; if so, notes that it was looked at.
pub(crate) fn touch(value: &Value) -> bool {
    let Some(poison) = value.downcast_object_ref::<Poison>() else {
        return false;
    };
    poison.look();
    true
}

/// The value that leaves out what it is given to.
#[derive(Debug)]
struct Omit;

impl Object for Omit {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<<Omit>>")
    }
}

/// The value of `omit`.
pub fn omit() -> Value {
    Value::from_object(Omit)
}

/// Whether a rendered value is `omit`: the argument was not given.
pub fn is_omit(value: &Value) -> bool {
    value.downcast_object_ref::<Omit>().is_some()
}

/// A missing step of a chain: it has nothing in it, so the next step is undefined, too.
#[derive(Debug)]
struct Missing;

impl Object for Missing {
    fn call_method(
        self: &Arc<Self>,
        _: &mut State<'_, '_>,
        _: &str,
        _: &[Value],
    ) -> Result<Value, Error> {
        Ok(Value::UNDEFINED)
    }
}

/// The base for the next step of a chain: an undefined one may be passed over.
pub(crate) fn step(value: &Value) -> Value {
    if value.is_undefined() {
        Value::from_object(Missing)
    } else {
        value.clone()
    }
}

/// Marks the error of `| mandatory`.
pub(crate) const MANDATORY: &str = "mandatory";

/// An undefined value was used. The message names it when the error is explained.
pub(crate) fn undefined(_value: &Value) -> Error {
    Error::from(ErrorKind::UndefinedError)
}

/// How many evaluations run inside each other on this thread.
pub(crate) fn depth() -> usize {
    TRACES.with_borrow(Vec::len)
}
