use std::fmt;

use serde::de::value::{MapDeserializer, SeqDeserializer, StrDeserializer};
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, Expected, IntoDeserializer, MapAccess,
    Unexpected, Visitor,
};
use serde_json::{Map, Value};

/// Arguments that a module cannot take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}{}", .argument.as_ref().map(|name| format!("argument `{name}`: ")).unwrap_or_default(), .expected.as_ref().map(|what| format!(" ({what})")).unwrap_or_default())]
pub struct ArgumentError {
    /// The argument that is wrong, where it is one.
    pub argument: Option<String>,
    /// What is wrong with it.
    pub message: String,
    /// A near match, or the list of what would do.
    pub expected: Option<String>,
}

impl ArgumentError {
    /// An error of one argument.
    #[must_use]
    pub fn of(argument: &str, message: impl Into<String>) -> Self {
        Self {
            argument: Some(argument.to_owned()),
            message: message.into(),
            expected: None,
        }
    }
}

/// What is said of an argument that is required and not given.
const MISSING: &str = "it is required";
/// What is said of an argument that a module does not have.
const UNKNOWN: &str = "it is not known to this module";

impl ArgumentError {
    /// The same as the failure of a task has it, where playbooks look for Ansible's words.
    #[must_use]
    pub fn of_task(&self, module: &str, free_form: Option<&str>) -> String {
        let Some(argument) = &self.argument else {
            return self.to_string();
        };
        match self.message.as_str() {
            MISSING if free_form == Some(argument.as_str()) => {
                format!("one of the following is required: _raw_params, {argument}")
            }
            MISSING => format!("missing required arguments: {argument}"),
            UNKNOWN => format!("Unsupported parameters for ({module}) module: {argument}"),
            // A fragment that needs its argument's name before it.
            message if message.starts_with("it ") || message.starts_with("expected ") => {
                self.to_string()
            }
            message => message.to_owned(),
        }
    }
}

impl de::Error for ArgumentError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self {
            argument: None,
            message: message.to_string(),
            expected: None,
        }
    }

    fn missing_field(field: &'static str) -> Self {
        Self::of(field, MISSING)
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let hint = nearest(field, expected).map_or_else(
            || format!("known are {}", expected.join(", ")),
            |name| format!("did you mean `{name}`?"),
        );
        Self {
            expected: Some(hint),
            ..Self::of(field, UNKNOWN)
        }
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::custom(format_args!("expected {expected}, not {}", Found(found)))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }

    fn unknown_variant(found: &str, known: &'static [&'static str]) -> Self {
        let hint = nearest(found, known).map(|name| format!("did you mean `{name}`?"));
        Self {
            expected: hint,
            ..Self::custom(format_args!("expected {}, not `{found}`", choice(known)))
        }
    }
}

/// What was found, in a user's words.
struct Found<'a>(Unexpected<'a>);

impl fmt::Display for Found<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Unexpected::Bool(value) => write!(f, "`{value}`"),
            Unexpected::Unsigned(value) => write!(f, "`{value}`"),
            Unexpected::Signed(value) => write!(f, "`{value}`"),
            Unexpected::Float(value) => write!(f, "`{value}`"),
            Unexpected::Str(value) => write!(f, "`{value}`"),
            Unexpected::Seq => f.write_str("a list"),
            Unexpected::Map => f.write_str("a mapping"),
            Unexpected::Unit | Unexpected::Option => f.write_str("nothing"),
            other => write!(f, "{other}"),
        }
    }
}

fn choice(names: &[&str]) -> String {
    match names {
        [only] => format!("`{only}`"),
        [first @ .., last] => format!("`{}` or `{last}`", first.join("`, `")),
        [] => "nothing".to_owned(),
    }
}

fn nearest<'n>(word: &str, names: &[&'n str]) -> Option<&'n str> {
    let close = names.iter().copied().filter(|name| near(word, name));
    close.min_by_key(|name| distance(word, name))
}

/// Reads a module's arguments from a JSON object; `null` stands for an argument that is not given, as Ansible's `omit` does.
pub(crate) fn parse<T: DeserializeOwned>(
    args: Value,
    aliases: &[(&str, &str)],
) -> Result<T, ArgumentError> {
    let given = match args {
        Value::Object(given) => given,
        Value::Null => Map::new(),
        _ => {
            return Err(de::Error::custom(
                "the arguments are not a mapping of names to values",
            ));
        }
    };
    let mut folded = Map::new();
    for (name, value) in given {
        let own = aliases
            .iter()
            .find(|(alias, _)| *alias == name)
            .map_or(name.as_str(), |(_, own)| own);
        if value.is_null() {
            continue;
        }
        if folded.insert(own.to_owned(), value).is_some() {
            return Err(ArgumentError::of(
                own,
                "it is given twice, once by another name of it",
            ));
        }
    }
    T::deserialize(Arguments {
        rest: folded.into_iter(),
        current: None,
    })
}

/// A map of arguments that knows which one it is at, so that an error can name it.
struct Arguments {
    rest: serde_json::map::IntoIter,
    current: Option<(String, Value)>,
}

impl<'de> Deserializer<'de> for Arguments {
    type Error = ArgumentError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ArgumentError> {
        visitor.visit_map(self)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de> MapAccess<'de> for Arguments {
    type Error = ArgumentError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, ArgumentError> {
        self.current = self.rest.next();
        let Some((name, _)) = &self.current else {
            return Ok(None);
        };
        let name: StrDeserializer<'_, ArgumentError> = name.as_str().into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, ArgumentError> {
        let (name, value) = self.current.take().unwrap_or_default();
        seed.deserialize(Given(value))
            .map_err(|error: ArgumentError| ArgumentError {
                argument: Some(name),
                ..error
            })
    }
}

/// One argument's value. What is wrong with it is said in a user's words, which serde_json's own errors are not.
struct Given(Value);

impl<'de> Deserializer<'de> for Given {
    type Error = ArgumentError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ArgumentError> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(value),
            Value::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(value), _) => visitor.visit_u64(value),
                (None, Some(value)) => visitor.visit_i64(value),
                (None, None) => visitor.visit_f64(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(text) => visitor.visit_string(text),
            Value::Array(items) => {
                visitor.visit_seq(SeqDeserializer::new(items.into_iter().map(Given)))
            }
            Value::Object(entries) => {
                let entries = entries
                    .into_iter()
                    .map(|(name, value)| (name, Given(value)));
                visitor.visit_map(MapDeserializer::new(entries))
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ArgumentError> {
        match self.0 {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ArgumentError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ArgumentError> {
        let found = match self.0 {
            Value::String(text) => return visitor.visit_enum(text.into_deserializer()),
            Value::Array(_) => "a list".to_owned(),
            Value::Object(_) => "a mapping".to_owned(),
            scalar => format!("`{scalar}`"),
        };
        Err(de::Error::custom(format_args!(
            "expected {}, not {found}",
            choice(known)
        )))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        seq tuple tuple_struct map struct identifier ignored_any
    }
}

impl IntoDeserializer<'_, ArgumentError> for Given {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

fn near(a: &str, b: &str) -> bool {
    distance(a, b) <= 1 + a.len().max(b.len()) / 4
}

/// Levenshtein's distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;
    use crate::args::{Bool, Mode, Text};

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Args {
        path: Text,
        mode: Option<Mode>,
        #[serde(default)]
        recurse: Bool,
        state: Option<State>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "lowercase")]
    enum State {
        Present,
        Absent,
    }

    fn read(args: Value) -> Result<Args, String> {
        parse(args, &[("dest", "path")]).map_err(|error| error.to_string())
    }

    #[test]
    fn aliases_are_folded_and_null_is_not_given() {
        let args = read(json!({"dest": "/a", "mode": null, "recurse": "yes"})).unwrap();
        assert_eq!(
            args,
            Args {
                path: "/a".into(),
                mode: None,
                recurse: Bool(true),
                state: None
            }
        );
    }

    #[test]
    fn an_error_names_the_argument() {
        let wrong = |args| read(args).unwrap_err();
        assert_eq!(wrong(json!({})), "argument `path`: it is required");
        assert_eq!(
            wrong(json!({"path": "/a", "recurce": true})),
            "argument `recurce`: it is not known to this module (did you mean `recurse`?)"
        );
        assert_eq!(
            wrong(json!({"path": "/a", "zzz": true})),
            "argument `zzz`: it is not known to this module (known are path, mode, recurse, state)"
        );
        assert_eq!(
            wrong(json!({"path": "/a", "dest": "/b"})),
            "argument `path`: it is given twice, once by another name of it"
        );
        assert_eq!(
            wrong(json!({"path": "/a", "mode": "rw"})).split(':').next(),
            Some("argument `mode`")
        );
    }

    #[test]
    fn a_task_fails_in_ansibles_words() {
        let told = |args, free_form| {
            let error = parse::<Args>(args, &[]).unwrap_err();
            error.of_task("file", free_form)
        };
        assert_eq!(told(json!({}), None), "missing required arguments: path");
        assert_eq!(
            told(json!({}), Some("path")),
            "one of the following is required: _raw_params, path"
        );
        assert_eq!(
            told(json!({"path": "/a", "x": 1}), None),
            "Unsupported parameters for (file) module: x"
        );
        let own = ArgumentError::of("src", "src and content are mutually exclusive");
        assert_eq!(
            own.of_task("copy", None),
            "src and content are mutually exclusive"
        );
    }

    #[test]
    fn a_wrong_value_is_told_in_a_users_words() {
        let wrong = |args| read(args).unwrap_err();
        assert_eq!(
            wrong(json!({"path": "/a", "recurse": "maybe"})),
            "argument `recurse`: expected true or false (yes, no, on, off, 1, 0), not `maybe`"
        );
        assert_eq!(
            wrong(json!({"path": ["/a"]})),
            "argument `path`: expected a string, a number or a boolean, not a list"
        );
        assert_eq!(
            wrong(json!({"path": "/a", "state": "presnt"})),
            "argument `state`: expected `present` or `absent`, not `presnt` (did you mean `present`?)"
        );
        assert_eq!(
            wrong(json!({"path": "/a", "state": 1})),
            "argument `state`: expected `present` or `absent`, not `1`"
        );
    }
}
