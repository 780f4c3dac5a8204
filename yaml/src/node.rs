//! The tree: values that know where they were written.

use std::{
    borrow::Cow,
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

use indexmap::{
    Equivalent, IndexMap,
    map::{Entry, MutableKeys},
};

use crate::{Span, scalar::python_float};

/// A value with the place where it was written. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Node {
    /// Where.
    pub span: Span,
    /// A tag of the user's own without its `!`: `vault`, `unsafe`.
    pub tag: Option<Arc<str>>,
    /// What.
    pub kind: Kind,
    style: Style,
}

/// What a node holds.
#[derive(Clone, Debug)]
pub enum Kind {
    /// Nothing.
    Null,
    /// Yes or no.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number with a fraction.
    Float(f64),
    /// A text.
    Str(Str),
    /// A list.
    Seq(Arc<[Node]>),
    /// A mapping.
    Map(Map),
}

/// A text.
pub type Str = Arc<str>;

/// How a scalar is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Without quotes.
    Plain,
    /// Within quotes.
    Quoted,
    /// As a `|` or `>` block.
    Block,
    /// Not a scalar, or not from a file.
    Other,
}

/// A mapping, in order. Keys are nodes, too; a value is found in constant time.
#[derive(Clone, Default)]
pub struct Map(Arc<IndexMap<Key, Node>>);

/// A scalar that is compared by its value alone.
#[derive(Clone)]
pub(crate) struct Key(Node);

impl Map {
    /// A mapping of entries; of two with the same key the last counts, in the place of the first.
    #[must_use]
    pub fn new(entries: Vec<(Node, Node)>) -> Self {
        let mut map = Unfinished::default();
        for (key, value) in entries {
            map.insert(key, value);
        }
        map.finish()
    }

    /// The entries, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Node, &Node)> + DoubleEndedIterator {
        self.0.iter().map(|(key, value)| (&key.0, value))
    }

    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value under a string key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.0.get(&Text(key))
    }

    /// The key's own node, and the value under it.
    #[must_use]
    pub fn entry(&self, key: &str) -> Option<(&Node, &Node)> {
        self.0
            .get_key_value(&Text(key))
            .map(|(key, value)| (&key.0, value))
    }

    /// The keys that are strings, in order: what a misspelt one may have meant.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().filter_map(|key| key.0.as_str())
    }
}

/// A mapping that is still read.
#[derive(Default)]
pub(crate) struct Unfinished(IndexMap<Key, Node>);

impl Unfinished {
    /// Puts an entry in, and gives back the key that stood there before.
    pub(crate) fn insert(&mut self, key: Node, value: Node) -> Option<Node> {
        match self.0.entry(Key(key.clone())) {
            Entry::Vacant(slot) => {
                slot.insert(value);
                None
            }
            Entry::Occupied(mut slot) => {
                slot.insert(value);
                let index = slot.index();
                // The place of the key that counts is the one to know.
                let (old, _) = self.0.get_index_mut2(index)?;
                Some(std::mem::replace(old, Key(key)).0)
            }
        }
    }

    pub(crate) fn into_entries(self) -> impl Iterator<Item = (Node, Node)> {
        self.0.into_iter().map(|(key, value)| (key.0, value))
    }

    pub(crate) fn finish(self) -> Map {
        Map(Arc::new(self.0))
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0.kind, &other.0.kind) {
            // Whatever hashes alike must be alike: `.nan` is the same key as `.nan`.
            (Kind::Float(a), Kind::Float(b)) => a.to_bits() == b.to_bits(),
            (a, b) => a == b,
        }
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match &self.0.kind {
            Kind::Str(text) => Text(text).hash(state),
            Kind::Bool(value) => (1u8, value).hash(state),
            Kind::Int(value) => (2u8, value).hash(state),
            Kind::Float(value) => (3u8, value.to_bits()).hash(state),
            Kind::Null => 4u8.hash(state),
            // Not from a file, where they are refused as keys; equality alone decides.
            Kind::Seq(_) | Kind::Map(_) => 5u8.hash(state),
        }
    }
}

/// A string to find a key by, which hashes as the [`Key`] of that string does.
struct Text<'a>(&'a str);

impl Hash for Text<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (0u8, self.0).hash(state);
    }
}

impl Equivalent<Key> for Text<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        key.0.as_str() == Some(self.0)
    }
}

impl PartialEq for Map {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl Node {
    pub(crate) fn new(span: Span, kind: Kind, style: Style, tag: Option<Arc<str>>) -> Self {
        Self {
            span,
            tag,
            kind,
            style,
        }
    }

    /// A text that stands for what is at `span`.
    #[must_use]
    pub fn string(text: &str, span: &Span) -> Self {
        Self::new(span.clone(), Kind::Str(text.into()), Style::Other, None)
    }

    /// A list that stands for what is at `span`.
    #[must_use]
    pub fn sequence(items: impl IntoIterator<Item = Self>, span: &Span) -> Self {
        Self::new(
            span.clone(),
            Kind::Seq(items.into_iter().collect()),
            Style::Other,
            None,
        )
    }

    /// A mapping that stands for what is at `span`.
    #[must_use]
    pub fn mapping(entries: impl IntoIterator<Item = (Self, Self)>, span: &Span) -> Self {
        let map = Map::new(entries.into_iter().collect());
        Self::new(span.clone(), Kind::Map(map), Style::Other, None)
    }

    /// A JSON value that stands for what is at `span`.
    #[must_use]
    pub fn from_json(value: &serde_json::Value, span: &Span) -> Self {
        use serde_json::Value;
        let kind = match value {
            Value::Null => Kind::Null,
            Value::Bool(value) => Kind::Bool(*value),
            Value::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(int), _) => Kind::Int(int),
                // A number beyond 64 bits keeps its digits as a text.
                (None, Some(float)) if !number.is_u64() => Kind::Float(float),
                _ => Kind::Str(number.to_string().into()),
            },
            Value::String(text) => Kind::Str(text.as_str().into()),
            Value::Array(items) => Kind::Seq(
                items
                    .iter()
                    .map(|item| Self::from_json(item, span))
                    .collect(),
            ),
            Value::Object(fields) => {
                let entry = |(key, value): (&String, &Value)| {
                    (Self::string(key, span), Self::from_json(value, span))
                };
                Kind::Map(Map::new(fields.iter().map(entry).collect()))
            }
        };
        Self::new(span.clone(), kind, Style::Other, None)
    }

    /// As JSON; keys that are no strings take their spelling. Tags are lost: look at them first.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        use serde_json::Value;
        match &self.kind {
            Kind::Null => Value::Null,
            Kind::Bool(value) => (*value).into(),
            Kind::Int(value) => (*value).into(),
            // JSON has no infinities; Python spells them so.
            Kind::Float(value) => serde_json::Number::from_f64(*value)
                .map_or_else(|| python_float(*value).into(), Value::Number),
            Kind::Str(text) => text.as_ref().into(),
            Kind::Seq(items) => items.iter().map(Self::to_json).collect(),
            Kind::Map(map) => map
                .iter()
                .map(|(key, value)| (key.key_text(), value.to_json()))
                .collect::<serde_json::Map<_, _>>()
                .into(),
        }
    }

    /// A key as a text.
    #[must_use]
    pub fn key_text(&self) -> String {
        match &self.kind {
            Kind::Str(text) => text.to_string(),
            _ if self.style == Style::Other => self.to_json().to_string(),
            _ => self.raw().to_owned(),
        }
    }

    /// The text of a string.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match &self.kind {
            Kind::Str(text) => Some(text),
            _ => None,
        }
    }

    /// Yes or no.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        match self.kind {
            Kind::Bool(value) => Some(value),
            _ => None,
        }
    }

    /// A whole number.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        match self.kind {
            Kind::Int(value) => Some(value),
            _ => None,
        }
    }

    /// A number.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        match self.kind {
            #[expect(
                clippy::cast_precision_loss,
                reason = "a number beyond 2^53 is no measure of anything here"
            )]
            Kind::Int(value) => Some(value as f64),
            Kind::Float(value) => Some(value),
            _ => None,
        }
    }

    /// The items of a list.
    #[must_use]
    pub fn as_seq(&self) -> Option<&[Self]> {
        match &self.kind {
            Kind::Seq(items) => Some(items),
            _ => None,
        }
    }

    /// A mapping.
    #[must_use]
    pub fn as_map(&self) -> Option<&Map> {
        match &self.kind {
            Kind::Map(map) => Some(map),
            _ => None,
        }
    }

    /// Whether there is nothing here.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self.kind, Kind::Null)
    }

    /// Whether it is neither a list nor a mapping.
    #[must_use]
    pub fn is_scalar(&self) -> bool {
        !matches!(self.kind, Kind::Seq(_) | Kind::Map(_))
    }

    /// Whether it is a scalar without quotes.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.style == Style::Plain
    }

    /// How a scalar is written.
    #[must_use]
    pub fn style(&self) -> Style {
        self.style
    }

    /// Whether it carries a tag of the user's own, named without its `!`: `has_tag("vault")`.
    #[must_use]
    pub fn has_tag(&self, name: &str) -> bool {
        self.tag.as_deref() == Some(name)
    }

    /// The value under a key, where this is a mapping that has it.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.as_map()?.get(key)
    }

    /// A scalar as a string: numbers and truth values as they are spelt, or as Python has them where
    /// they are from no file. None for nothing, lists and mappings.
    #[must_use]
    pub fn scalar_text(&self) -> Option<Cow<'_, str>> {
        Some(match &self.kind {
            Kind::Str(text) => Cow::Borrowed(&**text),
            Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) if self.is_plain() => {
                Cow::Borrowed(self.raw())
            }
            Kind::Bool(value) => Cow::Borrowed(if *value { "True" } else { "False" }),
            Kind::Int(value) => Cow::Owned(value.to_string()),
            Kind::Float(value) => Cow::Owned(python_float(*value)),
            Kind::Null | Kind::Seq(_) | Kind::Map(_) => return None,
        })
    }

    /// The exact spelling in the source.
    #[must_use]
    pub fn raw(&self) -> &str {
        self.span.text()
    }

    /// What it is, for messages: `a string`, `a list`.
    #[must_use]
    pub fn kind_name(&self) -> &'static str {
        match self.kind {
            Kind::Null => "nothing",
            Kind::Bool(_) => "a yes or no",
            Kind::Int(_) | Kind::Float(_) => "a number",
            Kind::Str(_) => "a string",
            Kind::Seq(_) => "a list",
            Kind::Map(_) => "a mapping",
        }
    }
}

/// Values are compared, places are not.
impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        self.tag == other.tag && self.kind == other.kind
    }
}

/// Mappings are equal whatever the order of their entries.
impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a == b,
            (Self::Str(a), Self::Str(b)) => a == b,
            (Self::Seq(a), Self::Seq(b)) => a == b,
            (Self::Map(a), Self::Map(b)) => a == b,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, Map, Node};
    use crate::{Source, load};

    fn one(text: &str) -> Node {
        load(Source::new("t.yml", text))
            .unwrap()
            .documents
            .remove(0)
    }

    #[test]
    fn keys_are_found_by_their_value_not_their_spelling() {
        let node = one("{a: 1, 'b': 2, 80: 3, yes: 4, ~: 5, 0x50: 6}");
        let map = node.as_map().unwrap();
        assert_eq!(map.get("b").and_then(Node::as_i64), Some(2));
        assert!(map.get("80").is_none(), "a number is no string");
        assert_eq!(map.len(), 5, "0x50 is 80");
        assert_eq!(map.names().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(
            node.to_json().to_string(),
            r#"{"a":1,"b":2,"0x50":6,"yes":4,"~":5}"#
        );
    }

    #[test]
    fn a_mapping_made_of_entries_keeps_the_last_of_a_key() {
        let span = one("x").span;
        let entry = |key: &str, value: i64| {
            (
                Node::string(key, &span),
                Node::from_json(&value.into(), &span),
            )
        };
        let map = Map::new(vec![entry("a", 1), entry("b", 2), entry("a", 3)]);
        assert_eq!(
            map.iter()
                .map(|(key, value)| (key.as_str().unwrap(), value.as_i64().unwrap()))
                .collect::<Vec<_>>(),
            [("a", 3), ("b", 2)]
        );
    }

    #[test]
    fn values_are_equal_whatever_their_place_and_order() {
        assert_eq!(one("{a: [1, x], b: 2}"), one("b: 0x2\na:\n- 1\n- 'x'\n"));
        assert_ne!(one("!vault x"), one("x"));
        assert_ne!(one("1"), one("1.0"));
    }

    #[test]
    fn json_goes_in_and_out_unchanged() {
        let json = serde_json::json!({"z": [1, -2, 0.5, "x", null, true], "a": {"b": {}}});
        let node = Node::from_json(&json, &one("x").span);
        assert_eq!(node.to_json().to_string(), json.to_string());
        assert_eq!(one(&json.to_string()), node);
        let big = Node::from_json(&serde_json::json!(u64::MAX), &node.span);
        assert_eq!(big.as_str(), Some("18446744073709551615"), "as in a file");
        assert_eq!(
            one("[.inf, -.inf]").to_json(),
            serde_json::json!(["inf", "-inf"])
        );
    }

    #[test]
    fn scalars_have_a_text() {
        let texts: Vec<_> = one("[0644, yes, 'q', 1.50]")
            .as_seq()
            .unwrap()
            .iter()
            .map(|item| item.scalar_text().unwrap().into_owned())
            .collect();
        assert_eq!(texts, ["0644", "yes", "q", "1.50"]);
        assert!(one("~").scalar_text().is_none());
        assert!(matches!(one("5").kind, Kind::Int(5)));
    }
}
