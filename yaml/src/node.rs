use std::sync::Arc;

use indexmap::IndexMap;

use crate::Span;

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

/// A mapping, in the order in which it is written. Keys are nodes, too.
#[derive(Clone, Debug, Default)]
pub struct Map {
    entries: Arc<[(Node, Node)]>,
    index: Arc<IndexMap<Arc<str>, usize>>,
}

/// Up to so many entries are searched without an index.
const SMALL: usize = 8;

impl Map {
    /// A mapping of entries whose keys differ.
    #[must_use]
    pub fn new(entries: Vec<(Node, Node)>) -> Self {
        let index = if entries.len() > SMALL {
            let keys = entries.iter().enumerate();
            keys.filter_map(|(at, (key, _))| match &key.kind {
                Kind::Str(text) => Some((Arc::clone(text), at)),
                _ => None,
            })
            .collect()
        } else {
            IndexMap::new()
        };
        Self { entries: entries.into(), index: Arc::new(index) }
    }

    /// The entries, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Node, &Node)> {
        self.entries.iter().map(|(key, value)| (key, value))
    }

    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The value under a string key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|(_, value)| value)
    }

    /// The key's own node, and the value under it.
    #[must_use]
    pub fn entry(&self, key: &str) -> Option<(&Node, &Node)> {
        let at = if self.entries.len() > SMALL {
            *self.index.get(key)?
        } else {
            self.entries.iter().position(|(own, _)| own.as_str() == Some(key))?
        };
        self.entries.get(at).map(|(key, value)| (key, value))
    }
}

impl Node {
    pub(crate) fn new(span: Span, kind: Kind, style: Style, tag: Option<Arc<str>>) -> Self {
        Self { span, tag, kind, style }
    }

    /// A text that stands for what is at `span`.
    #[must_use]
    pub fn string(text: &str, span: &Span) -> Self {
        Self::new(span.clone(), Kind::Str(text.into()), Style::Other, None)
    }

    /// A list that stands for what is at `span`.
    #[must_use]
    pub fn sequence(items: impl IntoIterator<Item = Self>, span: &Span) -> Self {
        Self::new(span.clone(), Kind::Seq(items.into_iter().collect()), Style::Other, None)
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
            Value::Array(items) => Kind::Seq(items.iter().map(|item| Self::from_json(item, span)).collect()),
            Value::Object(fields) => {
                let entry = |(key, value): (&String, &Value)| (Self::string(key, span), Self::from_json(value, span));
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
            Kind::Float(value) => serde_json::Number::from_f64(*value).map_or_else(|| value.to_string().into(), Value::Number),
            Kind::Str(text) => text.as_ref().into(),
            Kind::Seq(items) => items.iter().map(Self::to_json).collect(),
            Kind::Map(map) => map.iter().map(|(key, value)| (key.key_text(), value.to_json())).collect::<serde_json::Map<_, _>>().into(),
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
            #[expect(clippy::cast_precision_loss, reason = "a number beyond 2^53 is no measure of anything here")]
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
        self.tag == other.tag
            && match (&self.kind, &other.kind) {
                (Kind::Null, Kind::Null) => true,
                (Kind::Bool(a), Kind::Bool(b)) => a == b,
                (Kind::Int(a), Kind::Int(b)) => a == b,
                (Kind::Float(a), Kind::Float(b)) => a == b,
                (Kind::Str(a), Kind::Str(b)) => a == b,
                (Kind::Seq(a), Kind::Seq(b)) => a == b,
                (Kind::Map(a), Kind::Map(b)) => a.entries == b.entries,
                _ => false,
            }
    }
}
