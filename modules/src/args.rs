//! Lenient argument types: what people write in playbooks, read without guessing.

use std::fmt;
use std::ops::Deref;

use serde::de::{self, Deserialize, Deserializer, SeqAccess, Visitor};

pub use mode::Mode;

mod mode;

/// `true`, `false`, and Ansible's other spellings: `yes`, `no`, `on`, `off`, `y`, `n`, `t`, `f`, `1`, `0`, quoted or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(serde::Serialize))]
pub struct Bool(pub bool);

/// A string; a number or a boolean is taken as it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "schema", derive(serde::Serialize))]
pub struct Text(pub String);

/// A list, a comma separated string, or one scalar, as strings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(serde::Serialize))]
pub struct List(pub Vec<String>);

/// A whole number, quoted or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(serde::Serialize))]
pub struct Number(pub i64);

impl Deref for Bool {
    type Target = bool;
    fn deref(&self) -> &bool {
        &self.0
    }
}

impl Deref for Text {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl Deref for List {
    type Target = [String];
    fn deref(&self) -> &[String] {
        &self.0
    }
}

impl Deref for Number {
    type Target = i64;
    fn deref(&self) -> &i64 {
        &self.0
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<Text> for String {
    fn from(text: Text) -> Self {
        text.0
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl<'de> Deserialize<'de> for Bool {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Spelling;
        impl Visitor<'_> for Spelling {
            type Value = Bool;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true or false (yes, no, on, off, 1, 0)")
            }
            fn visit_bool<E: de::Error>(self, value: bool) -> Result<Bool, E> {
                Ok(Bool(value))
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Bool, E> {
                match value {
                    0 => Ok(Bool(false)),
                    1 => Ok(Bool(true)),
                    other => Err(E::invalid_value(de::Unexpected::Unsigned(other), &self)),
                }
            }
            fn visit_str<E: de::Error>(self, value: &str) -> Result<Bool, E> {
                match value.to_ascii_lowercase().as_str() {
                    "true" | "yes" | "on" | "y" | "t" | "1" => Ok(Bool(true)),
                    "false" | "no" | "off" | "n" | "f" | "0" => Ok(Bool(false)),
                    _ => Err(E::invalid_value(de::Unexpected::Str(value), &self)),
                }
            }
        }
        from.deserialize_any(Spelling)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Scalar).map(Self)
    }
}

impl<'de> Deserialize<'de> for List {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Items;
        impl<'de> Visitor<'de> for Items {
            type Value = List;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list, or a string of items with commas between them")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<List, A::Error> {
                let mut items = Vec::new();
                while let Some(Text(item)) = seq.next_element()? {
                    items.push(item);
                }
                Ok(List(items))
            }
            fn visit_str<E: de::Error>(self, value: &str) -> Result<List, E> {
                let items = value.split(',').map(str::trim).filter(|s| !s.is_empty());
                Ok(List(items.map(str::to_owned).collect()))
            }
            fn visit_bool<E: de::Error>(self, value: bool) -> Result<List, E> {
                Scalar.visit_bool(value).map(|one| List(vec![one]))
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<List, E> {
                Ok(List(vec![value.to_string()]))
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<List, E> {
                Ok(List(vec![value.to_string()]))
            }
            fn visit_f64<E: de::Error>(self, value: f64) -> Result<List, E> {
                Ok(List(vec![value.to_string()]))
            }
        }
        from.deserialize_any(Items)
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Whole;
        impl Visitor<'_> for Whole {
            type Value = Number;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number")
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Number, E> {
                Ok(Number(value))
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Number, E> {
                i64::try_from(value)
                    .map(Number)
                    .map_err(|_| E::invalid_value(de::Unexpected::Unsigned(value), &self))
            }
            fn visit_str<E: de::Error>(self, value: &str) -> Result<Number, E> {
                value
                    .trim()
                    .parse()
                    .map(Number)
                    .map_err(|_| E::invalid_value(de::Unexpected::Str(value), &self))
            }
        }
        from.deserialize_any(Whole)
    }
}

/// Reads any scalar as the string that a person would see.
struct Scalar;

impl Visitor<'_> for Scalar {
    type Value = String;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, a number or a boolean")
    }
    fn visit_str<E: de::Error>(self, value: &str) -> Result<String, E> {
        Ok(value.to_owned())
    }
    fn visit_string<E: de::Error>(self, value: String) -> Result<String, E> {
        Ok(value)
    }
    fn visit_bool<E: de::Error>(self, value: bool) -> Result<String, E> {
        // As Ansible turns a YAML boolean into a string.
        Ok(if value { "True" } else { "False" }.to_owned())
    }
    fn visit_u64<E: de::Error>(self, value: u64) -> Result<String, E> {
        Ok(value.to_string())
    }
    fn visit_i64<E: de::Error>(self, value: i64) -> Result<String, E> {
        Ok(value.to_string())
    }
    fn visit_f64<E: de::Error>(self, value: f64) -> Result<String, E> {
        Ok(value.to_string())
    }
}

#[cfg(feature = "schema")]
mod schema {
    use std::borrow::Cow;

    use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

    use super::{Bool, List, Mode, Number, Text};

    macro_rules! schema {
        ($type:ty, $name:literal, $schema:tt) => {
            impl JsonSchema for $type {
                fn schema_name() -> Cow<'static, str> {
                    $name.into()
                }
                fn inline_schema() -> bool {
                    true
                }
                fn json_schema(_: &mut SchemaGenerator) -> Schema {
                    json_schema!($schema)
                }
            }
        };
    }

    schema!(Bool, "Bool", { "type": ["boolean", "string", "integer"] });
    schema!(Text, "Text", { "type": ["string", "number", "boolean"] });
    schema!(List, "List", { "type": ["array", "string", "number", "boolean"], "items": { "type": ["string", "number", "boolean"] } });
    schema!(Number, "Number", { "type": ["integer", "string"], "pattern": "^\\s*-?[0-9]+\\s*$" });
    schema!(Mode, "Mode", { "type": "string", "description": "octal with a leading zero (\"0644\"), symbolic (\"u=rw,g=r,o=r\"), or \"preserve\"" });
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    #[test]
    fn booleans_take_ansibles_spellings() {
        for yes in [
            json!(true),
            json!("yes"),
            json!("On"),
            json!("1"),
            json!(1),
            json!("True"),
        ] {
            assert_eq!(from_value::<Bool>(yes).unwrap(), Bool(true));
        }
        for no in [
            json!(false),
            json!("no"),
            json!("OFF"),
            json!(0),
            json!("f"),
        ] {
            assert_eq!(from_value::<Bool>(no).unwrap(), Bool(false));
        }
        let refused = from_value::<Bool>(json!("maybe")).unwrap_err().to_string();
        assert!(
            refused.contains("maybe") && refused.contains("yes, no"),
            "{refused}"
        );
        assert!(from_value::<Bool>(json!(2)).is_err());
    }

    #[test]
    fn a_list_is_a_list_a_comma_string_or_one_scalar() {
        let list = |value| from_value::<List>(value).unwrap().0;
        assert_eq!(list(json!(["a", 1, true])), ["a", "1", "True"]);
        assert_eq!(list(json!("a, b,c")), ["a", "b", "c"]);
        assert_eq!(list(json!(7)), ["7"]);
        assert_eq!(list(json!("")), Vec::<String>::new());
    }

    #[test]
    fn numbers_and_texts_take_either_spelling() {
        assert_eq!(from_value::<Number>(json!(" 42 ")).unwrap(), Number(42));
        assert_eq!(from_value::<Number>(json!(-1)).unwrap(), Number(-1));
        assert!(from_value::<Number>(json!("4k")).is_err());
        assert_eq!(&*from_value::<Text>(json!(65535)).unwrap(), "65535");
        assert_eq!(&*from_value::<Text>(json!(1.5)).unwrap(), "1.5");
        assert!(from_value::<Text>(json!(["x"])).is_err());
    }
}
