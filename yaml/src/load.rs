use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use granit_parser::{Event, Parser, ScalarStyle, Span as Marks, Tag};

use crate::{
    Diagnostic, Kind, Map, Node, Source, Span,
    node::Style,
    scalar::{is_sexagesimal, resolve},
};

/// How deep lists and mappings may stand in one another.
const DEPTH: usize = 128;
/// How many nodes a file may come to, those that aliases repeat counted again.
const NODES: usize = 8_000_000;

/// What a file holds.
#[derive(Debug)]
pub struct Loaded {
    /// Its documents, in order.
    pub documents: Vec<Node>,
    /// What is taken, but may not be meant: duplicate keys, numbers to base 60.
    pub warnings: Vec<Diagnostic>,
}

/// Reads a source.
///
/// # Errors
/// The first place that is no YAML, or too much of it.
pub fn load(source: Arc<Source>) -> Result<Loaded, Diagnostic> {
    let text = Arc::clone(&source.text);
    let mut loader = Loader {
        source,
        anchors: HashMap::new(),
        open: HashSet::new(),
        nodes: 0,
        warnings: Vec::new(),
    };
    let mut parser = Parser::new_from_str(&text);
    let mut documents = Vec::new();
    loop {
        match loader.next(&mut parser)? {
            Some((Event::DocumentStart(..), _)) => {
                loader.anchors.clear();
                documents.push(loader.node(&mut parser)?);
            }
            Some((Event::StreamEnd, _)) | None => break,
            Some(_) => {}
        }
    }
    Ok(Loaded { documents, warnings: loader.warnings })
}

type Events<'input> = Parser<'input, granit_parser::StrInput<'input>>;

struct Loader {
    source: Arc<Source>,
    /// What an anchor stands for, and how many nodes that is.
    anchors: HashMap<usize, (Node, usize)>,
    /// Anchors whose node is not complete yet.
    open: HashSet<usize>,
    nodes: usize,
    warnings: Vec<Diagnostic>,
}

impl Loader {
    fn next<'input>(&self, parser: &mut Events<'input>) -> Result<Option<(Event<'input>, Marks)>, Diagnostic> {
        loop {
            match parser.next_event() {
                Some(Ok((Event::Comment(..), _))) => {}
                Some(Ok(event)) => return Ok(Some(event)),
                Some(Err(problem)) => {
                    let at = problem.marker().byte_offset().unwrap_or(self.source.text.len());
                    return Err(self.explain(at, &problem.info()));
                }
                None => return Ok(None),
            }
        }
    }

    /// A syntax error in words that say what was most likely meant.
    fn explain(&self, at: usize, info: &str) -> Diagnostic {
        let mistake = Diagnostic::error(self.span(at, at + 1), format!("this is no YAML: {info}"));
        let start = self.source.text[..floor(&self.source.text, at)].rfind('\n').map_or(0, |newline| newline + 1);
        let line = self.source.text[start..].lines().next().unwrap_or_default();
        if line.trim_start_matches(' ').starts_with('\t') || self.source.text.get(at..=at) == Some("\t") {
            return mistake.with_help("indent with spaces, not with tabs");
        }
        if line.contains("{{") && !line.contains("\"{{") && !line.contains("'{{") {
            return mistake.with_help("a value that starts with `{{` needs quotes: `\"{{ … }}\"`");
        }
        mistake
    }

    fn span(&self, start: usize, end: usize) -> Span {
        let text = &self.source.text;
        let start = floor(text, start);
        let end = floor(text, end.max(start));
        Span { source: Arc::clone(&self.source), start, end }
    }

    fn place(&self, marks: &Marks) -> Span {
        let last = self.source.text.len();
        let range = marks.byte_range().unwrap_or(last..last);
        self.span(range.start, range.end)
    }

    fn node(&mut self, parser: &mut Events<'_>) -> Result<Node, Diagnostic> {
        match self.next(parser)? {
            Some((event, marks)) => self.build(parser, event, &marks, 0),
            None => Ok(Node::new(self.span(0, 0), Kind::Null, Style::Plain, None)),
        }
    }

    fn build<'input>(
        &mut self,
        parser: &mut Events<'input>,
        event: Event<'input>,
        marks: &Marks,
        depth: usize,
    ) -> Result<Node, Diagnostic> {
        let span = self.place(marks);
        if depth > DEPTH {
            return Err(Diagnostic::error(span, format!("lists and mappings stand more than {DEPTH} deep in one another")));
        }
        let before = self.nodes;
        self.count(1, &span)?;
        let (node, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => (self.scalar(&text, style, tag.as_deref(), span), anchor),
            Event::SequenceStart(_, anchor, tag) => {
                self.open.insert(anchor);
                let mut items = Vec::new();
                let end = loop {
                    match self.next(parser)? {
                        Some((Event::SequenceEnd, marks)) => break marks,
                        Some((event, marks)) => items.push(self.build(parser, event, &marks, depth + 1)?),
                        None => return Err(Diagnostic::error(span, "this list does not end")),
                    }
                };
                self.open.remove(&anchor);
                let span = self.around(&span, &end, items.last());
                (Node::new(span, Kind::Seq(items.into()), Style::Other, own_tag(tag.as_deref())), anchor)
            }
            Event::MappingStart(_, anchor, tag) => {
                self.open.insert(anchor);
                let mut entries = Vec::new();
                let end = loop {
                    let key = match self.next(parser)? {
                        Some((Event::MappingEnd, marks)) => break marks,
                        Some((event, marks)) => self.build(parser, event, &marks, depth + 1)?,
                        None => return Err(Diagnostic::error(span, "this mapping does not end")),
                    };
                    let value = match self.next(parser)? {
                        Some((event, marks)) => self.build(parser, event, &marks, depth + 1)?,
                        None => return Err(Diagnostic::error(key.span, "this key has no value")),
                    };
                    entries.push((key, value));
                };
                self.open.remove(&anchor);
                let span = self.around(&span, &end, entries.last().map(|(_, value)| value));
                let map = self.mapping(entries, &span)?;
                (Node::new(span, Kind::Map(map), Style::Other, own_tag(tag.as_deref())), anchor)
            }
            Event::Alias(anchor) => {
                if self.open.contains(&anchor) {
                    return Err(Diagnostic::error(span, "this alias stands within what it stands for"));
                }
                let Some((node, size)) = self.anchors.get(&anchor).cloned() else {
                    return Err(Diagnostic::error(span, "this alias stands for nothing"));
                };
                self.count(size, &span)?;
                return Ok(node);
            }
            _ => return Err(Diagnostic::error(span, "a value was expected here")),
        };
        if anchor != 0 {
            self.anchors.insert(anchor, (node.clone(), self.nodes - before));
        }
        Ok(node)
    }

    fn count(&mut self, nodes: usize, span: &Span) -> Result<(), Diagnostic> {
        self.nodes += nodes;
        if self.nodes > NODES {
            return Err(Diagnostic::error(span.clone(), format!("this file comes to more than {NODES} values"))
                .with_help("aliases that repeat aliases multiply"));
        }
        Ok(())
    }

    /// From a collection's first mark to its end: its closing bracket, or its last value.
    fn around(&self, start: &Span, end: &Marks, last: Option<&Node>) -> Span {
        let close = self.place(end);
        let inner = last.filter(|node| Arc::ptr_eq(&node.span.source, &self.source)).map_or(start.end, |node| node.span.end);
        let end = if close.end > close.start { close.end } else { inner };
        self.span(start.start, end.max(start.end))
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, tag: Option<&Tag>, span: Span) -> Node {
        let core = tag.and_then(Tag::core_suffix);
        let string = || Kind::Str(text.into());
        let (kind, style) = match style {
            ScalarStyle::Plain => {
                let kind = match core {
                    Some("str") => string(),
                    _ if tag.is_some() && core.is_none() => string(),
                    _ => resolve(text).unwrap_or_else(string),
                };
                if matches!(kind, Kind::Str(_)) && is_sexagesimal(text) {
                    self.warnings.push(
                        Diagnostic::warning(span.clone(), format!("`{text}` is a number to base 60 for Ansible; here it is a string"))
                            .with_help(format!("write \"{text}\"")),
                    );
                }
                (kind, Style::Plain)
            }
            ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => (string(), Style::Quoted),
            ScalarStyle::Literal | ScalarStyle::Folded => (string(), Style::Block),
        };
        Node::new(span, kind, style, own_tag(tag))
    }

    /// Merge keys taken in, duplicate keys told of.
    fn mapping(&mut self, entries: Vec<(Node, Node)>, span: &Span) -> Result<Map, Diagnostic> {
        if let [(key, value)] = entries.as_slice()
            && !key.is_scalar()
            && value.is_null()
            && self.source.text[..key.span.start].ends_with('{')
        {
            let inner = key.raw().trim_matches(['{', '}', ' ']);
            return Err(Diagnostic::error(span.clone(), "a template without quotes is a mapping in YAML")
                .with_help(format!("write \"{{{{ {inner} }}}}\"")));
        }
        let mut seen: HashMap<String, usize> = HashMap::with_capacity(entries.len());
        let mut own: Vec<(Node, Node)> = Vec::with_capacity(entries.len());
        let mut merged = Vec::new();
        for (key, value) in entries {
            if key.is_plain() && key.as_str() == Some("<<") {
                self.merge(&value, &mut merged)?;
                continue;
            }
            if !key.is_scalar() {
                return Err(Diagnostic::error(key.span.clone(), format!("{} cannot be a key", key.kind_name()))
                    .with_help("a value that starts with `{` needs quotes where it is a template"));
            }
            let name = format!("{}{}", key.kind_name(), key.key_text());
            match seen.get(&name) {
                Some(at) => {
                    let first = own[*at].0.span.clone();
                    self.warnings.push(
                        Diagnostic::warning(key.span.clone(), format!("the key `{}` is here twice; the last one counts", key.key_text()))
                            .with_related(first, "the first"),
                    );
                    own[*at] = (key, value);
                }
                None => {
                    seen.insert(name, own.len());
                    own.push((key, value));
                }
            }
        }
        for (key, value) in merged {
            let name = format!("{}{}", key.kind_name(), key.key_text());
            if seen.contains_key(&name) {
                continue;
            }
            seen.insert(name, own.len());
            self.count(1, &key.span)?;
            own.push((key, value));
        }
        Ok(Map::new(own))
    }

    /// `<<: *a` and `<<: [*a, *b]`: of two that have a key the first counts.
    fn merge(&self, value: &Node, merged: &mut Vec<(Node, Node)>) -> Result<(), Diagnostic> {
        if let Some(map) = value.as_map() {
            merged.extend(map.iter().map(|(key, value)| (key.clone(), value.clone())));
            return Ok(());
        }
        let Some(items) = value.as_seq() else {
            return Err(Diagnostic::error(value.span.clone(), format!("`<<` takes a mapping or a list of them, not {}", value.kind_name())));
        };
        for item in items {
            if item.as_map().is_none() {
                return Err(Diagnostic::error(item.span.clone(), format!("`<<` takes mappings, not {}", item.kind_name())));
            }
            self.merge(item, merged)?;
        }
        Ok(())
    }
}

/// A tag of the user's own, without its `!`.
fn own_tag(tag: Option<&Tag>) -> Option<Arc<str>> {
    let tag = tag.filter(|tag| tag.core_suffix().is_none())?;
    Some(tag.original().trim_start_matches('!').into())
}

fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::load;
    use crate::{Node, Source};

    fn one(text: &str) -> Node {
        load(Source::new("t.yml", text)).unwrap().documents.remove(0)
    }

    fn mistake(text: &str) -> String {
        load(Source::new("t.yml", text)).unwrap_err().to_string()
    }

    #[test]
    fn values_know_their_place_and_spelling() {
        let node = one("a: 0644\nb:\n  - 'yes'\n  - yes\n");
        let map = node.as_map().unwrap();
        assert_eq!(map.get("a").unwrap().as_i64(), Some(420));
        assert_eq!(map.get("a").unwrap().raw(), "0644");
        assert_eq!(map.get("a").unwrap().span.to_string(), "t.yml:1:4");
        let list = map.get("b").unwrap().as_seq().unwrap();
        assert_eq!(list[0].as_str(), Some("yes"));
        assert_eq!(list[1].as_bool(), Some(true));
        assert_eq!(map.entry("b").unwrap().0.span.to_string(), "t.yml:2:1");
    }

    #[test]
    fn merge_keys_yield_to_own_keys_and_to_earlier_ones() {
        let node = one("a: &a {x: 1, y: 1}\nb: &b {x: 2, z: 2}\nc:\n  <<: [*a, *b]\n  y: 3\n");
        let c = node.as_map().unwrap().get("c").unwrap().to_json();
        assert_eq!(c, serde_json::json!({"y": 3, "x": 1, "z": 2}));
    }

    #[test]
    fn a_key_twice_is_told_with_both_places() {
        let loaded = load(Source::new("t.yml", "a: 1\nb: 2\na: 3\n")).unwrap();
        assert_eq!(loaded.documents[0].to_json(), serde_json::json!({"a": 3, "b": 2}));
        assert_eq!(loaded.warnings[0].to_string(), "t.yml:3:1: the key `a` is here twice; the last one counts");
        assert_eq!(loaded.warnings[0].related[0].0.to_string(), "t.yml:1:1");
    }

    #[test]
    fn tags_of_the_users_own_are_kept() {
        let node = one("a: !vault |\n  secret\nb: !unsafe '{{ x }}'\nc: !!str 5\n");
        let map = node.as_map().unwrap();
        assert_eq!(map.get("a").unwrap().tag.as_deref(), Some("vault"));
        assert_eq!(map.get("b").unwrap().tag.as_deref(), Some("unsafe"));
        assert_eq!(map.get("c").unwrap().as_str(), Some("5"));
        assert_eq!(map.get("c").unwrap().tag, None);
    }

    #[test]
    fn a_template_without_quotes_is_explained() {
        assert_eq!(
            mistake("msg: {{ foo }}\n"),
            "t.yml:1:6: a template without quotes is a mapping in YAML (write \"{{ foo }}\")"
        );
    }

    #[test]
    fn mistakes_are_told_at_their_place() {
        assert!(mistake("a: [1, 2\nb: 3\n").starts_with("t.yml:"));
        assert!(mistake("a:\n\t- b\n").contains("spaces, not with tabs"));
        assert!(mistake("a: &x [*x]\n").contains("stands within what it stands for"));
        assert!(mistake("a: *nowhere\n").starts_with("t.yml:1:"));
    }

    #[test]
    fn hostile_files_end_soon() {
        let mut laughs = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
        for level in 1..12 {
            let last = level - 1;
            let items = vec![format!("*a{last}"); 10].join(",");
            laughs.push_str(&format!("a{level}: &a{level} [{items}]\n"));
        }
        assert!(mistake(&laughs).contains("more than 8000000 values"));
        assert!(load(Source::new("t", "[".repeat(100_000))).is_err());
        assert!(load(Source::new("t", "- ".repeat(300) + "x")).is_err());
    }

    #[test]
    fn a_byte_order_mark_and_several_documents_are_read() {
        let loaded = load(Source::new("t", "\u{feff}a: 1\nb: 2\n---\n- c\n")).unwrap();
        assert_eq!(loaded.documents.len(), 2);
        assert!(load(Source::new("t", "")).unwrap().documents.is_empty());
    }

    #[test]
    fn no_prefix_of_a_file_panics() {
        let text = "a: &x {b: [1, 'zwei', \"drei\\n\"], <<: {c: ü}}\n? k\n: |\n  é\n  text\nd: *x\n# end\n--- !t\n- {{ y }}\n";
        for (at, _) in text.char_indices() {
            let _ = load(Source::new("t", &text[..at]));
            let _ = load(Source::new("t", &text[at..]));
        }
    }
}
