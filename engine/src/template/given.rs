//! How filters, tests, lookups and functions get their arguments: by place or by name, as in Python.

use minijinja::value::{Kwargs, Rest, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, ErrorKind, State, Value};

use super::poison;
use super::python::text;

/// What a filter does with its subject.
pub(crate) type Run = fn(&mut State<'_, '_>, &Value, &Given) -> Result<Value, Error>;

/// A filter: its names, its parameters and what it does.
pub(crate) struct Filter {
    /// Names separated by spaces; each also works with `ansible.builtin.` before it.
    pub(crate) names: &'static str,
    /// Parameters separated by spaces: `*` takes any number more by place, `**` any by name.
    pub(crate) parameters: &'static str,
    pub(crate) run: Run,
}

/// A test: like a filter, but answers yes or no.
pub(crate) struct Test {
    pub(crate) names: &'static str,
    pub(crate) parameters: &'static str,
    pub(crate) run: fn(&mut State<'_, '_>, &Value, &Given) -> Result<bool, Error>,
}

/// Whether undefined and not yet known values come to the filter or end before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    /// Only real values, as nearly every filter.
    Values,
    /// Anything: `default`, `is defined`.
    Anything,
}

/// The arguments of one call, bound to the names of the parameters.
#[derive(Debug)]
pub(crate) struct Given {
    pub(crate) name: &'static str,
    parameters: &'static str,
    bound: Vec<Option<Value>>,
    /// What was given by place beyond the named parameters.
    pub(crate) rest: Vec<Value>,
    /// What was given by name beyond the named parameters.
    pub(crate) named: Vec<(String, Value)>,
}

impl Given {
    /// Binds arguments to parameters.
    ///
    /// # Errors
    /// If there are too many arguments, one is given twice, or a name is unknown.
    pub(crate) fn bind(
        name: &'static str,
        parameters: &'static str,
        arguments: &[Value],
    ) -> Result<Self, Error> {
        let names: Vec<&str> = parameters
            .split_whitespace()
            .filter(|word| !word.starts_with('*'))
            .collect();
        let mut given = Self {
            name,
            parameters,
            bound: vec![None; names.len()],
            rest: Vec::new(),
            named: Vec::new(),
        };
        // Like in Python, parameters after `*` are given by name only.
        let by_place = parameters
            .split_whitespace()
            .position(|word| word == "*")
            .unwrap_or(names.len());
        let mut place = 0;
        for argument in arguments {
            if argument.is_kwargs() {
                let keywords = Kwargs::try_from(argument.clone())?;
                for key in keywords.args() {
                    let value: Value = keywords.get(key)?;
                    match names.iter().position(|known| *known == key) {
                        Some(at) if given.bound[at].is_some() => {
                            return Err(given.wrong(&format!("got `{key}` twice")));
                        }
                        Some(at) => given.bound[at] = Some(value),
                        None if given.takes("**") => given.named.push((key.to_owned(), value)),
                        None => return Err(given.wrong(&format!("has no parameter `{key}`"))),
                    }
                }
            } else if place < by_place {
                given.bound[place] = Some(argument.clone());
                place += 1;
            } else if given.takes("*") {
                given.rest.push(argument.clone());
            } else {
                return Err(given.wrong(&format!("takes at most {} arguments", names.len())));
            }
        }
        Ok(given)
    }

    fn takes(&self, more: &str) -> bool {
        self.parameters.split_whitespace().any(|word| word == more)
    }

    /// An error about the arguments, with the parameters that there are.
    pub(crate) fn wrong(&self, what: &str) -> Error {
        let parameters: Vec<String> = self
            .parameters
            .split_whitespace()
            .map(|word| format!("`{word}`"))
            .collect();
        let known = if parameters.is_empty() {
            "it takes none".to_owned()
        } else {
            format!("its parameters: {}", parameters.join(", "))
        };
        Error::new(
            ErrorKind::InvalidOperation,
            format!("`{}` {what} ({known})", self.name),
        )
    }

    /// The argument of the parameter at `place`, if it was given.
    pub(crate) fn get(&self, place: usize) -> Option<&Value> {
        self.bound.get(place).and_then(Option::as_ref)
    }

    /// The argument, if it was given and is not `None`.
    pub(crate) fn some(&self, place: usize) -> Option<&Value> {
        self.get(place).filter(|value| !value.is_none())
    }

    /// The argument, which has to be there.
    pub(crate) fn need(&self, place: usize) -> Result<&Value, Error> {
        self.get(place).ok_or_else(|| {
            let parameter = self
                .parameters
                .split_whitespace()
                .nth(place)
                .unwrap_or("an argument");
            self.wrong(&format!("needs `{parameter}`"))
        })
    }

    /// The argument as text, or `default`.
    pub(crate) fn text(&self, place: usize, default: &str) -> Result<String, Error> {
        self.some(place)
            .map_or_else(|| Ok(default.to_owned()), text::str)
    }

    /// The argument as a whole number, or `default`.
    pub(crate) fn int(&self, place: usize, default: i64) -> Result<i64, Error> {
        match self.some(place) {
            None => Ok(default),
            Some(value) => whole(value).ok_or_else(|| {
                let parameter = self
                    .parameters
                    .split_whitespace()
                    .nth(place)
                    .unwrap_or_default();
                self.wrong(&format!(
                    "needs a whole number for `{parameter}`, got {}",
                    text::type_name(value)
                ))
            }),
        }
    }

    /// The argument as a yes or no, or `default`.
    pub(crate) fn flag(&self, place: usize, default: bool) -> bool {
        self.get(place).map_or(default, Value::is_true)
    }
}

fn whole(value: &Value) -> Option<i64> {
    match value.kind() {
        ValueKind::Bool => Some(i64::from(value.is_true())),
        ValueKind::Number => value.as_i64().or_else(|| {
            f64::try_from(value.clone())
                .ok()
                .map(|number| number as i64)
        }),
        ValueKind::String => value.as_str()?.trim().parse().ok(),
        _ => None,
    }
}

/// A failure of a filter, test or function.
pub(crate) fn failed(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, what.into()).with_source(Worded)
}

/// Whether the message was worded here.
pub(crate) fn worded(error: &Error) -> bool {
    std::error::Error::source(error).is_some_and(|source| source.is::<Worded>())
}

/// Marks a message as worded here: Ansible's own phrases keep their capitals, because playbooks look for them.
#[derive(Debug, thiserror::Error)]
#[error("worded by fleetctl")]
struct Worded;

/// The items of a list, each of them valid.
///
/// # Errors
/// If the value cannot be iterated over.
pub(crate) fn items(value: &Value) -> Result<Vec<Value>, Error> {
    if value.is_none() || value.kind() == ValueKind::Number || value.kind() == ValueKind::Bool {
        return Err(failed(format!(
            "'{}' object is not iterable",
            text::type_name(value)
        )));
    }
    value.try_iter()?.checked().collect()
}

/// Adds the filters under all their names.
pub(crate) fn add_filters(
    environment: &mut Environment<'static>,
    filters: &'static [Filter],
    takes: Takes,
) {
    for filter in filters {
        let first = filter.names.split_whitespace().next().unwrap_or_default();
        for name in filter.names.split_whitespace() {
            for full in spellings(name) {
                environment.add_filter(
                    full,
                    move |state: &mut State<'_, '_>, arguments: Rest<ValueOrKwargs>| {
                        let arguments = arguments.into_values();
                        if takes == Takes::Values
                            && let Some(poisoned) = unusable(&arguments)?
                        {
                            return Ok(poisoned);
                        }
                        let (subject, rest) =
                            arguments.split_first().ok_or(ErrorKind::MissingArgument)?;
                        (filter.run)(
                            state,
                            subject,
                            &Given::bind(first, filter.parameters, rest)?,
                        )
                    },
                );
            }
        }
    }
}

/// Adds the tests under all their names.
pub(crate) fn add_tests(
    environment: &mut Environment<'static>,
    tests: &'static [Test],
    takes: Takes,
) {
    for test in tests {
        let first = test.names.split_whitespace().next().unwrap_or_default();
        for name in test.names.split_whitespace() {
            for full in spellings(name) {
                environment.add_test(
                    full,
                    move |state: &mut State<'_, '_>, arguments: Rest<ValueOrKwargs>| {
                        let arguments = arguments.into_values();
                        if takes == Takes::Values && unknown(&arguments)?.is_some() {
                            return Ok(false);
                        }
                        let (subject, rest) =
                            arguments.split_first().ok_or(ErrorKind::MissingArgument)?;
                        (test.run)(state, subject, &Given::bind(first, test.parameters, rest)?)
                    },
                );
            }
        }
    }
}

/// The name, and the name with its collection where it is one of Ansible's own.
fn spellings(name: &str) -> Vec<String> {
    let mut all = vec![name.to_owned()];
    if !name.contains('.') && !name.starts_with("__") {
        all.push(format!("ansible.builtin.{name}"));
    }
    all
}

/// The first argument that is not there yet, which is noted.
///
/// # Errors
/// If an argument is undefined or carries a failure.
pub(crate) fn unknown(arguments: &[Value]) -> Result<Option<Value>, Error> {
    match unusable(arguments)? {
        Some(undefined) if undefined.is_undefined() => Err(poison::undefined(&undefined)),
        unknown => Ok(unknown),
    }
}

/// The first argument that is undefined, or not there yet, which is noted. What it is given to is then the same:
/// `nothing | upper | default('x')` is `x`, as in Ansible since 2.19.
///
/// # Errors
/// If an argument carries a failure.
pub(crate) fn unusable(arguments: &[Value]) -> Result<Option<Value>, Error> {
    for argument in arguments {
        if argument.is_undefined() || poison::touch(argument) {
            return Ok(Some(argument.clone()));
        }
        if argument.is_kwargs() {
            let keywords = Kwargs::try_from(argument.clone())?;
            for key in keywords.args() {
                let value: Value = keywords.get(key)?;
                if let Some(poisoned) = unusable(std::slice::from_ref(&value))? {
                    return Ok(Some(poisoned));
                }
            }
        }
    }
    Ok(None)
}
