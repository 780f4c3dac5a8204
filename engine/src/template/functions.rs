//! The functions of templates.

use minijinja::value::{Kwargs, Object, ObjectRepr, Rest, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, State, Value, functions};

use super::given::{Given, failed, items, unusable};
use super::python::{mutable, text};
use super::{evaluation, filters, lookups, poison};

/// Adds every function and `omit`.
pub(crate) fn add(environment: &mut Environment<'static>) {
    environment.add_global("omit", poison::omit());
    environment.add_function("range", functions::range);
    environment.add_function("namespace", functions::namespace);
    for (name, as_list) in [("lookup", false), ("query", true), ("q", true)] {
        environment.add_function(
            name,
            move |state: &mut State<'_, '_>, arguments: Rest<ValueOrKwargs>| {
                let arguments = arguments.into_values();
                // What is given by name may be undefined: a default that is never needed.
                let by_place = arguments.iter().filter(|argument| !argument.is_kwargs());
                match unusable(&by_place.cloned().collect::<Vec<_>>())? {
                    Some(poisoned) => Ok(poisoned),
                    None => lookups::call(state, &arguments, as_list),
                }
            },
        );
    }
    let mut add =
        |name: &'static str, run: fn(&mut State<'_, '_>, &[Value]) -> Result<Value, Error>| {
            environment.add_function(
                name,
                move |state: &mut State<'_, '_>, arguments: Rest<ValueOrKwargs>| {
                    let arguments = arguments.into_values();
                    match unusable(&arguments)? {
                        Some(poisoned) => Ok(poisoned),
                        None => run(state, &arguments),
                    }
                },
            );
        };
    add("dict", dict);
    add("now", now);
    add("undef", undef);
    add("cycler", cycler);
    add("joiner", joiner);
    add("lipsum", |_, _| {
        Ok(Value::from(
            "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor.",
        ))
    });
}

fn dict(_: &mut State<'_, '_>, arguments: &[Value]) -> Result<Value, Error> {
    let mut made = Vec::new();
    for argument in arguments {
        if argument.is_kwargs() {
            let keywords = Kwargs::try_from(argument.clone())?;
            for key in keywords.args() {
                made.push((Value::from(key), keywords.get::<Value>(key)?));
            }
        } else if argument.kind() == ValueKind::Map {
            made.extend(text::pairs(argument)?);
        } else {
            for pair in items(argument)? {
                let [key, value] = <[Value; 2]>::try_from(items(&pair)?)
                    .map_err(|_| failed("dict() needs pairs of a key and a value"))?;
                made.push((key, value));
            }
        }
    }
    mutable::made(&Value::from_pairs(made))
}

fn now(_: &mut State<'_, '_>, arguments: &[Value]) -> Result<Value, Error> {
    let given = Given::bind("now", "utc fmt", arguments)?;
    let format = given.some(1).map(text::str).transpose()?;
    filters::now(given.flag(0, false), format.as_deref())
}

/// A variable that has to be given: using it is an error with the author's own words.
fn undef(_: &mut State<'_, '_>, arguments: &[Value]) -> Result<Value, Error> {
    let given = Given::bind("undef", "hint", arguments)?;
    let hint = match given.some(0) {
        None => "Mandatory variable has not been overridden".to_owned(),
        Some(hint) => hint
            .as_str()
            .ok_or_else(|| given.wrong("takes a text: the argument must be of type str"))?
            .to_owned(),
    };
    evaluation::current()?.hint_at(hint);
    Ok(Value::UNDEFINED)
}

#[derive(Debug)]
struct Cycler {
    items: Vec<Value>,
    at: std::sync::atomic::AtomicUsize,
}

impl Object for Cycler {
    fn repr(self: &std::sync::Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value_by_str(self: &std::sync::Arc<Self>, key: &str) -> Option<Value> {
        let at = self.at.load(std::sync::atomic::Ordering::Relaxed);
        (key == "current").then(|| self.items[at % self.items.len()].clone())
    }

    fn call_method(
        self: &std::sync::Arc<Self>,
        _: &mut State<'_, '_>,
        method: &str,
        _: &[Value],
    ) -> Result<Value, Error> {
        match method {
            "next" => {
                let at = self.at.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                Ok(self.items[at % self.items.len()].clone())
            }
            "reset" => {
                self.at.store(0, std::sync::atomic::Ordering::Relaxed);
                Ok(Value::from(()))
            }
            _ => Err(minijinja::ErrorKind::UnknownMethod.into()),
        }
    }
}

fn cycler(_: &mut State<'_, '_>, arguments: &[Value]) -> Result<Value, Error> {
    if arguments.is_empty() {
        return Err(failed("cycler() needs items"));
    }
    Ok(Value::from_object(Cycler {
        items: arguments.to_vec(),
        at: Default::default(),
    }))
}

fn joiner(_: &mut State<'_, '_>, arguments: &[Value]) -> Result<Value, Error> {
    let between = Given::bind("joiner", "sep", arguments)?.text(0, ", ")?;
    let used = std::sync::atomic::AtomicBool::new(false);
    Ok(Value::from_function(move || {
        if used.swap(true, std::sync::atomic::Ordering::Relaxed) {
            between.clone()
        } else {
            String::new()
        }
    }))
}
