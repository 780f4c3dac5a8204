//! Reading nodes into types of one's own, every error at its place.
//!
//! Any `Deserialize` type works; derive it with `deny_unknown_fields`, and without `flatten` and `untagged`
//! (both lose the places). Conversions are Ansible's: a `bool` takes `yes`, `"on"` and `1`; a `String` takes
//! numbers and truth values as they are spelt, so that an unquoted `0644` is `"0644"`; numbers take quoted
//! numbers. [`Spanned`] keeps the place of a part, and a [`Node`] may itself be a field.

use std::cell::RefCell;
use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{
    self, Deserialize, DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, MapAccess,
    SeqAccess, Unexpected, VariantAccess, Visitor,
};

use crate::diagnostic::{Diagnostic, code};
use crate::nearest::nearest;
use crate::node::{Kind, Node};
use crate::scalar;
use crate::source::Span;

/// Reads a node into a type.
///
/// # Errors
///
/// When the node does not fit the type, at the value, the key or the mapping that is to blame.
pub fn from_node<T: DeserializeOwned>(node: &Node) -> Result<T, Diagnostic> {
    T::deserialize(Reader(node))
}

/// A value and where it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// Its place.
    pub span: Span,
}

/// A list, or a single value that stands for a list of one; nothing is the empty list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OneOrMany<T>(pub Vec<T>);

impl<T> Default for OneOrMany<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> std::ops::Deref for Spanned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> std::ops::Deref for OneOrMany<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

/// The name by which a type asks for the node itself, which serde's data model has no room for.
const WHOLE_NODE: &str = "$fleet_yaml::Node";

thread_local! {
    /// The node on its way from [`Reader::deserialize_newtype_struct`] to [`NodeVisitor`], its direct callee.
    static HANDED_OVER: RefCell<Option<Node>> = const { RefCell::new(None) };
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(WHOLE_NODE, NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value read by fleet-yaml")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, _: D) -> Result<Node, D::Error> {
        HANDED_OVER
            .take()
            .ok_or_else(|| de::Error::custom("places are known only in values read by fleet-yaml"))
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Spanned<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let node = Node::deserialize(deserializer)?;
        let value = from_node(&node).map_err(hand_back)?;
        Ok(Self {
            value,
            span: node.span.clone(),
        })
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let node = Node::deserialize(deserializer)?;
        let items = match &node.kind {
            Kind::Null => Ok(Vec::new()),
            Kind::Seq(items) => items.iter().map(from_node).collect(),
            _ => from_node(&node).map(|item| vec![item]),
        };
        items.map(Self).map_err(hand_back)
    }
}

thread_local! {
    /// The diagnostic on its way through a generic error type to [`Diagnostic::custom`].
    static HANDED_BACK: RefCell<Option<Diagnostic>> = const { RefCell::new(None) };
}

/// Keeps a diagnostic whole although serde's error type is a stranger here.
fn hand_back<E: de::Error>(diagnostic: Diagnostic) -> E {
    HANDED_BACK.set(Some(diagnostic.clone()));
    let error = E::custom(&diagnostic.message);
    HANDED_BACK.take();
    error
}

impl de::Error for Diagnostic {
    fn custom<T: fmt::Display>(message: T) -> Self {
        HANDED_BACK
            .take()
            .unwrap_or_else(|| Diagnostic::without_place(message.to_string()).with_code(code::TYPE))
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        let found = match found {
            Unexpected::Bool(_) => "a boolean",
            Unexpected::Unsigned(_) | Unexpected::Signed(_) => "an integer",
            Unexpected::Float(_) => "a number",
            Unexpected::Char(_) | Unexpected::Str(_) => "a string",
            Unexpected::Unit | Unexpected::Option => "nothing",
            Unexpected::Seq => "a list",
            Unexpected::Map => "a mapping",
            _ => "another value",
        };
        Diagnostic::without_place(format!("expected {expected}, found {found}"))
            .with_code(code::TYPE)
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Diagnostic::without_place(format!("expected {expected}, found {found}"))
            .with_code(code::TYPE)
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Diagnostic::without_place(format!("unknown key `{field}`"))
            .with_code(code::UNKNOWN_FIELD)
            .with_help(choices(field, expected, "keys"))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Diagnostic::without_place(format!("unknown value `{variant}`"))
            .with_code(code::UNKNOWN_CHOICE)
            .with_help(choices(variant, expected, "values"))
    }

    fn missing_field(field: &'static str) -> Self {
        Diagnostic::without_place(format!("`{field}` is missing")).with_code(code::MISSING_FIELD)
    }
}

fn choices(word: &str, expected: &[&str], what: &str) -> String {
    let all = if expected.is_empty() {
        format!("no {what} are allowed here")
    } else {
        format!("the {what} are {}", expected.join(", "))
    };
    match nearest(word, expected.iter().copied()) {
        Some(near) => format!("did you mean `{near}`? {all}"),
        None => all,
    }
}

/// A node as serde's source of data.
#[derive(Clone, Copy)]
struct Reader<'n>(&'n Node);

impl Reader<'_> {
    fn mismatch(self, expected: &str) -> Diagnostic {
        Diagnostic::without_place(format!("expected {expected}, found {}", self.0.kind_name()))
            .with_code(code::TYPE)
            .at(self.0.span.clone())
    }

    /// A secret must be opened before it is read: its text here is the encrypted one.
    fn open(self) -> Result<Self, Diagnostic> {
        if self.0.has_tag("vault") {
            return Err(
                Diagnostic::without_place("an encrypted value cannot be used here")
                    .with_code(code::TYPE)
                    .at(self.0.span.clone()),
            );
        }
        Ok(self)
    }

    fn text(&self) -> Result<std::borrow::Cow<'_, str>, Diagnostic> {
        self.open()?
            .0
            .scalar_text()
            .ok_or_else(|| self.mismatch("a string"))
    }

    fn integer<T: TryFrom<i128>>(
        self,
        least: impl fmt::Display,
        most: impl fmt::Display,
    ) -> Result<T, Diagnostic> {
        let number = match &self.open()?.0.kind {
            Kind::Int(value) => Some(i128::from(*value)),
            Kind::Str(text) => text.trim().parse().ok(),
            _ => None,
        };
        let number = number.ok_or_else(|| self.mismatch("an integer"))?;
        T::try_from(number).map_err(|_| {
            Diagnostic::without_place(format!(
                "{number} is out of range, {least} to {most} are allowed"
            ))
            .with_code(code::TYPE)
            .at(self.0.span.clone())
        })
    }

    fn float(self) -> Result<f64, Diagnostic> {
        match &self.open()?.0.kind {
            Kind::Int(value) => Some(*value as f64),
            Kind::Float(value) => Some(*value),
            Kind::Str(text) => text.trim().parse().ok(),
            _ => None,
        }
        .ok_or_else(|| self.mismatch("a number"))
    }

    fn truth(self) -> Result<bool, Diagnostic> {
        match &self.open()?.0.kind {
            Kind::Bool(value) => Some(*value),
            Kind::Int(0) => Some(false),
            Kind::Int(1) => Some(true),
            Kind::Str(text) => scalar::truth(text),
            _ => None,
        }
        .ok_or_else(|| self.mismatch("a boolean").with_help("write true or false"))
    }

    /// Gives an error of the visitor's its place, unless it has one from deeper inside.
    fn place<T>(self, result: Result<T, Diagnostic>) -> Result<T, Diagnostic> {
        result.map_err(|error| error.or_at(&self.0.span))
    }
}

macro_rules! integers {
    ($($method:ident $visit:ident $type:ty),*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Diagnostic> {
            self.place(visitor.$visit(self.integer::<$type>(<$type>::MIN, <$type>::MAX)?))
        }
    )*};
}

impl<'de> Deserializer<'de> for Reader<'_> {
    type Error = Diagnostic;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Diagnostic> {
        let result = match &self.open()?.0.kind {
            Kind::Null => visitor.visit_unit(),
            Kind::Bool(value) => visitor.visit_bool(*value),
            Kind::Int(value) => match u64::try_from(*value) {
                Ok(value) => visitor.visit_u64(value),
                Err(_) => visitor.visit_i64(*value),
            },
            Kind::Float(value) => visitor.visit_f64(*value),
            Kind::Str(text) => visitor.visit_str(text),
            Kind::Seq(_) => return self.deserialize_seq(visitor),
            Kind::Map(_) => return self.deserialize_map(visitor),
        };
        self.place(result)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Diagnostic> {
        self.place(visitor.visit_bool(self.truth()?))
    }

    integers! {
        deserialize_i8 visit_i8 i8, deserialize_i16 visit_i16 i16, deserialize_i32 visit_i32 i32,
        deserialize_i64 visit_i64 i64, deserialize_u8 visit_u8 u8, deserialize_u16 visit_u16 u16,
        deserialize_u32 visit_u32 u32, deserialize_u64 visit_u64 u64
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Diagnostic> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Diagnostic> {
        self.place(visitor.visit_f64(self.float()?))
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Diagnostic> {
        self.deserialize_str(visitor)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Diagnostic> {
        self.place(visitor.visit_str(&self.text()?))
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Diagnostic> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Diagnostic> {
        self.place(visitor.visit_bytes(self.text()?.as_bytes()))
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Diagnostic> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Diagnostic> {
        self.place(if self.0.is_null() {
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        })
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Diagnostic> {
        if !self.0.is_null() {
            return Err(self.mismatch("nothing"));
        }
        self.place(visitor.visit_unit())
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Diagnostic> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Diagnostic> {
        if name == WHOLE_NODE {
            HANDED_OVER.set(Some(self.0.clone()));
        }
        self.place(visitor.visit_newtype_struct(self))
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Diagnostic> {
        let items = self.0.as_seq().ok_or_else(|| self.mismatch("a list"))?;
        self.place(visitor.visit_seq(Items(items.iter())))
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, Diagnostic> {
        let items = self.0.as_seq().ok_or_else(|| self.mismatch("a list"))?;
        if items.len() != length {
            return Err(Diagnostic::without_place(format!(
                "expected {length} items, found {}",
                items.len()
            ))
            .with_code(code::TYPE)
            .at(self.0.span.clone()));
        }
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, Diagnostic> {
        self.deserialize_tuple(length, visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Diagnostic> {
        let map = self.0.as_map().ok_or_else(|| self.mismatch("a mapping"))?;
        self.place(visitor.visit_map(Entries {
            rest: map.iter(),
            value: None,
        }))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Diagnostic> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Diagnostic> {
        let (name, content) = match &self.open()?.0.kind {
            Kind::Map(map) if map.len() == 1 => match map.iter().next() {
                Some((key, value)) => (key, Some(value)),
                None => return Err(self.mismatch("a string")),
            },
            Kind::Map(_) | Kind::Seq(_) | Kind::Null => return Err(self.mismatch("a string")),
            _ => (self.0, None),
        };
        self.place(visitor.visit_enum(Choice { name, content }))
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Diagnostic> {
        self.deserialize_str(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Diagnostic> {
        visitor.visit_unit()
    }
}

struct Items<'n>(std::slice::Iter<'n, Node>);

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = Diagnostic;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Diagnostic> {
        self.0
            .next()
            .map(|node| Reader(node).place(seed.deserialize(Reader(node))))
            .transpose()
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

struct Entries<'n, I> {
    rest: I,
    value: Option<&'n Node>,
}

impl<'de, 'n, I: Iterator<Item = (&'n Node, &'n Node)>> MapAccess<'de> for Entries<'n, I> {
    type Error = Diagnostic;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Diagnostic> {
        let Some((key, value)) = self.rest.next() else {
            return Ok(None);
        };
        self.value = Some(value);
        Reader(key).place(seed.deserialize(Reader(key))).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, Diagnostic> {
        let value = self
            .value
            .take()
            .ok_or_else(|| <Diagnostic as de::Error>::custom("a value without its key"))?;
        Reader(value).place(seed.deserialize(Reader(value)))
    }
}

struct Choice<'n> {
    name: &'n Node,
    content: Option<&'n Node>,
}

impl<'de, 'n> EnumAccess<'de> for Choice<'n> {
    type Error = Diagnostic;
    type Variant = Content<'n>;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Content<'n>), Diagnostic> {
        let name = Reader(self.name);
        let text = name.text()?;
        let variant = name.place(seed.deserialize(StrDeserializer::<Diagnostic>::new(&text)))?;
        Ok((
            variant,
            Content {
                name: self.name,
                content: self.content,
            },
        ))
    }
}

struct Content<'n> {
    name: &'n Node,
    content: Option<&'n Node>,
}

impl<'n> Content<'n> {
    fn reader(&self) -> Result<Reader<'n>, Diagnostic> {
        self.content.map(Reader).ok_or_else(|| {
            Diagnostic::without_place(format!(
                "`{}` needs a value: write it as a key",
                self.name.raw()
            ))
            .with_code(code::TYPE)
            .at(self.name.span.clone())
        })
    }
}

impl<'de> VariantAccess<'de> for Content<'_> {
    type Error = Diagnostic;

    fn unit_variant(self) -> Result<(), Diagnostic> {
        match self.content {
            Some(node) if !node.is_null() => Err(Reader(node).mismatch("nothing")),
            _ => Ok(()),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(
        self,
        seed: T,
    ) -> Result<T::Value, Diagnostic> {
        let reader = self.reader()?;
        reader.place(seed.deserialize(reader))
    }

    fn tuple_variant<V: Visitor<'de>>(
        self,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, Diagnostic> {
        self.reader()?.deserialize_tuple(length, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Diagnostic> {
        self.reader()?.deserialize_map(visitor)
    }
}
