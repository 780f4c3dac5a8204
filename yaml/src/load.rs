//! From a text to a tree: the parser's events, put together by Ansible's rules.

use std::{collections::HashMap, sync::Arc};

use granit_parser::{Event, Parser, ScalarStyle, Span as Marks, StructureStyle, Tag};

use crate::{
    Diagnostic, Kind, Node, Source, Span,
    diagnostic::code,
    nearest,
    node::{Style, Unfinished},
    scalar::{is_sexagesimal, resolve},
    syntax,
};

/// How deep lists and mappings may stand in one another, aliases followed.
const DEPTH: usize = 128;
/// How many nodes a file may come to, those that aliases repeat counted again.
const NODES: usize = 8_000_000;
/// How many entries merge keys may copy, which costs memory where an alias costs none.
const MERGED: usize = 1_000_000;

/// What a file holds.
#[derive(Debug, Default)]
pub struct Loaded {
    /// Its documents, in order; none where there are only comments.
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
    load_text(source, &text)
}

/// Reads what of a source can be read, so that one mistake does not hide all others: the item of a list in which something
/// is no YAML is left out, and its text is told.
#[must_use]
pub fn load_around(source: &Arc<Source>) -> Partly {
    let mut text = source.text.to_string();
    let mut partly = Partly::default();
    loop {
        let problem = match load_text(Arc::clone(source), &text) {
            Ok(loaded) => {
                partly.loaded = loaded;
                return partly;
            }
            Err(problem) => problem,
        };
        let place = problem.span.as_ref().map_or(0, |span| span.start);
        partly.mistakes.push(problem);
        match blank(&mut text, place) {
            Some(left_out) if partly.mistakes.len() < RECOVERIES => partly.left_out += &left_out,
            _ => {
                // What comes behind may be no more than the first mistake, seen from elsewhere.
                partly.mistakes.truncate(1);
                partly.left_out = source.text.to_string();
                return partly;
            }
        }
    }
}

/// What could be read of a source, and what could not.
#[derive(Debug, Default)]
pub struct Partly {
    /// What could be read.
    pub loaded: Loaded,
    /// Each place that is no YAML.
    pub mistakes: Vec<Diagnostic>,
    /// The text that was left out for them.
    pub left_out: String,
}

/// How many places that are no YAML are told of one source.
const RECOVERIES: usize = 8;

/// Blanks the item of a list that `place` is in, keeping all offsets; none where there is no such item with a text.
fn blank(text: &mut String, place: usize) -> Option<String> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut lines: Vec<(usize, &str)> = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        lines.push((start, line));
        start += line.len();
    }
    let own = lines.iter().rposition(|(start, _)| *start <= place)?;
    let is_item = |(_, line): &(usize, &str)| {
        let line = line.trim_start();
        line.starts_with("- ") || line.trim_end() == "-"
    };
    let first = lines[..=own].iter().rposition(is_item)?;
    let depth = indent(lines[first].1);
    let ends = |(_, line): &&(usize, &str)| !line.trim().is_empty() && indent(line) <= depth;
    let after = lines[own + 1..].iter().find(ends);
    let range = lines[first].0..after.map_or(text.len(), |(start, _)| *start);
    let left_out = text[range.clone()].to_owned();
    let blanked: String = left_out
        .bytes()
        .map(|byte| if byte == b'\n' { '\n' } else { ' ' })
        .collect();
    text.replace_range(range, &blanked);
    Some(left_out)
}

/// Reads a text whose places are those of the source.
fn load_text(source: Arc<Source>, text: &str) -> Result<Loaded, Diagnostic> {
    syntax::check_characters(&source)?;
    let options = granit_parser::options! {
        emit_comments: false,
        emit_anchor_events: true,
        emit_unresolved_aliases: true,
        block_scalar_eof_without_line_feed: true,
    };
    let mut loader = Loader::new(source);
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, marks) =
            event.map_err(|error| syntax::explain(&loader.source, &error, loader.bracket()))?;
        loader.take(event, &marks)?;
    }
    Ok(Loaded {
        documents: loader.documents,
        warnings: loader.warnings,
    })
}

struct Loader {
    source: Arc<Source>,
    documents: Vec<Node>,
    warnings: Vec<Diagnostic>,
    /// Lists and mappings whose end has not come yet, the innermost last.
    open: Vec<Open>,
    anchors: HashMap<usize, Anchor>,
    nodes: usize,
    merged: usize,
}

struct Open {
    start: usize,
    /// The end of the last thing in it; the parser's own end lies behind blank lines and comments.
    end: usize,
    flow: bool,
    anchor: usize,
    tag: Option<Arc<str>>,
    size: Size,
    content: Content,
}

enum Content {
    Seq(Vec<Node>),
    Map {
        entries: Unfinished,
        merges: Vec<Node>,
        key: Option<Node>,
    },
}

/// What a node comes to with its aliases followed.
#[derive(Clone, Copy)]
struct Size {
    nodes: usize,
    depth: usize,
}

const SCALAR: Size = Size { nodes: 1, depth: 0 };

struct Anchor {
    name: String,
    span: Span,
    /// None while its node is still read.
    value: Option<(Node, Size)>,
}

impl Loader {
    fn new(source: Arc<Source>) -> Self {
        Self {
            source,
            documents: Vec::new(),
            warnings: Vec::new(),
            open: Vec::new(),
            anchors: HashMap::new(),
            nodes: 0,
            merged: 0,
        }
    }

    fn take(&mut self, event: Event<'_>, marks: &Marks) -> Result<(), Diagnostic> {
        let end = self.source.text.len();
        let bytes = marks.byte_range().unwrap_or(end..end);
        let span = self.source.span(bytes.start, bytes.end);
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let node = self.scalar(&text, style, tag.as_deref(), span)?;
                self.complete(node, SCALAR, anchor)
            }
            Event::SequenceStart(style, anchor, tag) => self.start(
                span,
                style,
                anchor,
                tag.as_deref(),
                Content::Seq(Vec::new()),
            ),
            Event::MappingStart(style, anchor, tag) => {
                if style == StructureStyle::Flow {
                    let inner = self.bracket().is_some();
                    syntax::check_template(&span, inner)?;
                }
                let content = Content::Map {
                    entries: Unfinished::default(),
                    merges: Vec::new(),
                    key: None,
                };
                self.start(span, style, anchor, tag.as_deref(), content)
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(&span),
            Event::Anchor(id, name) => {
                let anchor = self.anchor(id, span);
                anchor.name = name.into_owned();
                Ok(())
            }
            Event::Alias(id) => self.alias(id, span),
            Event::UnresolvedAlias(name) => Err(self.unknown_alias(&name, span)),
            Event::DocumentStart(..) => {
                self.anchors.clear();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The innermost `[` or `{` that is open.
    fn bracket(&self) -> Option<usize> {
        self.open
            .last()
            .filter(|open| open.flow)
            .map(|open| open.start)
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        tag: Option<&Tag>,
        span: Span,
    ) -> Result<Node, Diagnostic> {
        let style = match style {
            ScalarStyle::Plain => Style::Plain,
            ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => Style::Quoted,
            ScalarStyle::Literal | ScalarStyle::Folded => Style::Block,
        };
        let string = || Kind::Str(text.into());
        let kind = match tag.map(Tag::core_suffix) {
            None if style == Style::Plain => resolve(text).unwrap_or_else(string),
            None | Some(None | Some("str" | "seq" | "map")) => string(),
            Some(Some("null")) => Kind::Null,
            Some(Some(core)) => match (core, resolve(text)) {
                ("bool", Some(kind @ Kind::Bool(_))) | ("int", Some(kind @ Kind::Int(_))) => kind,
                ("float", Some(kind @ Kind::Float(_))) => kind,
                ("float", Some(Kind::Int(_))) => {
                    text.parse().map_or_else(|_| string(), Kind::Float)
                }
                _ => {
                    return Err(Diagnostic::error(
                        span,
                        format!("this does not fit its tag `!!{core}`"),
                    )
                    .with_code(code::TYPE));
                }
            },
        };
        let span = if span.start == span.end && style == Style::Plain {
            self.place_of_nothing(span)
        } else {
            span
        };
        if tag.is_none()
            && style == Style::Plain
            && matches!(kind, Kind::Str(_))
            && is_sexagesimal(text)
        {
            let message =
                format!("`{text}` is a number to base 60 for Ansible; here it is a string");
            let warning = Diagnostic::warning(span.clone(), message);
            self.warnings.push(
                warning
                    .with_code(code::SEXAGESIMAL)
                    .with_help(format!("write \"{text}\"")),
            );
        }
        Ok(Node::new(span, kind, style, own_tag(tag)))
    }

    /// The parser puts a value that is not there where it stopped to look for it; people look behind the key.
    fn place_of_nothing(&self, span: Span) -> Span {
        let Some(Open {
            content: Content::Map { key: Some(key), .. },
            ..
        }) = self.open.last()
        else {
            return span;
        };
        let behind = self.source.text.get(key.span.end..).unwrap_or_default();
        let blank = behind.len() - behind.trim_start_matches([' ', '\t']).len();
        let at = key.span.end
            + if behind[blank..].starts_with(':') {
                blank + 1
            } else {
                0
            };
        self.source.span(at, at)
    }

    fn start(
        &mut self,
        span: Span,
        style: StructureStyle,
        anchor: usize,
        tag: Option<&Tag>,
        content: Content,
    ) -> Result<(), Diagnostic> {
        if self.open.len() >= DEPTH {
            return Err(too_deep(span));
        }
        self.open.push(Open {
            start: span.start,
            end: span.end,
            flow: style == StructureStyle::Flow,
            anchor,
            tag: own_tag(tag),
            size: SCALAR,
            content,
        });
        if anchor != 0 {
            self.anchor(anchor, span);
        }
        Ok(())
    }

    fn end(&mut self, span: &Span) -> Result<(), Diagnostic> {
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        let end = if open.flow { span.end } else { open.end };
        let span = self.source.span(open.start, end);
        let kind = match open.content {
            Content::Seq(items) => Kind::Seq(items.into()),
            Content::Map {
                entries, merges, ..
            } => Kind::Map(self.merge(entries, &merges)?.finish()),
        };
        self.complete(
            Node::new(span, kind, Style::Other, open.tag),
            open.size,
            open.anchor,
        )
    }

    fn anchor(&mut self, id: usize, span: Span) -> &mut Anchor {
        self.anchors.entry(id).or_insert_with(|| Anchor {
            name: String::new(),
            span,
            value: None,
        })
    }

    fn alias(&mut self, id: usize, span: Span) -> Result<(), Diagnostic> {
        let Some(anchor) = self.anchors.get(&id) else {
            return Err(self.unknown_alias("", span));
        };
        let Some((node, size)) = anchor.value.clone() else {
            return Err(
                Diagnostic::error(span, "this alias stands within what it stands for")
                    .with_code(code::ALIAS)
                    .with_related(anchor.span.clone(), "its anchor"),
            );
        };
        if self.open.len() + size.depth > DEPTH {
            return Err(too_deep(span));
        }
        self.add(node, size, &span)
    }

    fn unknown_alias(&self, name: &str, span: Span) -> Diagnostic {
        let known = self.anchors.values().map(|anchor| anchor.name.as_str());
        let help = nearest(name, known).map_or_else(
            || format!("a string that starts with `*` needs quotes; an alias needs its anchor `&{name}` before it"),
            |near| format!("did you mean `*{near}`?"),
        );
        Diagnostic::error(span, format!("the alias `*{name}` stands for nothing"))
            .with_code(code::ALIAS)
            .with_help(help)
    }

    fn complete(&mut self, node: Node, size: Size, anchor: usize) -> Result<(), Diagnostic> {
        let span = node.span.clone();
        if anchor != 0 {
            self.anchor(anchor, span.clone()).value = Some((node.clone(), size));
        }
        // What is in it was counted when it came.
        self.nodes -= size.nodes - 1;
        self.add(node, size, &span)
    }

    /// Gives a node to the list or mapping that it stands in. `place` is where it is used.
    fn add(&mut self, node: Node, size: Size, place: &Span) -> Result<(), Diagnostic> {
        self.nodes += size.nodes;
        if self.nodes > NODES {
            return Err(Diagnostic::error(
                place.clone(),
                format!("this file comes to more than {NODES} values"),
            )
            .with_code(code::LIMIT)
            .with_help("aliases that repeat aliases multiply"));
        }
        let Some(open) = self.open.last_mut() else {
            self.documents.push(node);
            return Ok(());
        };
        open.size.nodes += size.nodes;
        open.size.depth = open.size.depth.max(size.depth + 1);
        open.end = open.end.max(place.end);
        let Content::Map {
            entries,
            merges,
            key,
        } = &mut open.content
        else {
            if let Content::Seq(items) = &mut open.content {
                items.push(node);
            }
            return Ok(());
        };
        match key.take() {
            None if node.is_scalar() => *key = Some(node),
            None => {
                return Err(Diagnostic::error(
                    place.clone(),
                    format!("{} cannot be a key", node.kind_name()),
                )
                .with_code(code::KEY)
                .with_help("put quotes around it where a string is meant"));
            }
            Some(key) if key.is_plain() && key.tag.is_none() && key.as_str() == Some("<<") => {
                merges.push(node)
            }
            Some(key) => {
                let (span, name) = (key.span.clone(), key.clone());
                if let Some(first) = entries.insert(key, node) {
                    let message = format!(
                        "the key `{}` is here twice; the last one counts",
                        name.key_text()
                    );
                    self.warnings.push(
                        Diagnostic::warning(span, message)
                            .with_code(code::DUPLICATE_KEY)
                            .with_label("this one counts")
                            .with_related(first.span, "this one does not"),
                    );
                }
            }
        }
        Ok(())
    }

    /// Puts the entries of merged mappings before those of the mapping itself, which win.
    fn merge(&mut self, own: Unfinished, merges: &[Node]) -> Result<Unfinished, Diagnostic> {
        if merges.is_empty() {
            return Ok(own);
        }
        let mut whole = Unfinished::default();
        for merge in merges {
            // The first of a list wins, and so is laid over the others.
            let maps: Vec<_> = match &merge.kind {
                Kind::Seq(items) => items.iter().rev().collect(),
                _ => vec![merge],
            };
            for node in maps {
                let Some(map) = node.as_map() else {
                    let message = format!(
                        "`<<` takes a mapping or a list of them, not {}",
                        node.kind_name()
                    );
                    return Err(
                        Diagnostic::error(node.span.clone(), message).with_code(code::MERGE)
                    );
                };
                self.merged += map.len();
                if self.merged > MERGED {
                    let message = format!("merge keys come to more than {MERGED} entries");
                    return Err(
                        Diagnostic::error(node.span.clone(), message).with_code(code::LIMIT)
                    );
                }
                for (key, value) in map.iter() {
                    whole.insert(key.clone(), value.clone());
                }
            }
        }
        for (key, value) in own.into_entries() {
            whole.insert(key, value);
        }
        Ok(whole)
    }
}

/// A tag of the user's own, without its `!`.
fn own_tag(tag: Option<&Tag>) -> Option<Arc<str>> {
    let tag = tag.filter(|tag| tag.core_suffix().is_none())?;
    let original = tag.original();
    // The lone `!` only says that the scalar is a string.
    Some(original.trim_start_matches('!').into()).filter(|name: &Arc<str>| !name.is_empty())
}

fn too_deep(span: Span) -> Diagnostic {
    Diagnostic::error(
        span,
        format!("lists and mappings stand more than {DEPTH} deep in one another"),
    )
    .with_code(code::LIMIT)
}

#[cfg(test)]
mod around {
    use super::load_around;
    use crate::Source;

    #[test]
    fn an_item_that_is_no_yaml_hides_no_other() {
        let text = "- a: 1\n- b: [1, 2}\n  c: x\n- d: 4\n";
        let partly = load_around(&Source::new("x.yml", text));
        let items = partly.loaded.documents[0].as_seq().unwrap();
        assert_eq!(items.len(), 2);
        let place = items[1].span.line_col();
        assert_eq!((place, partly.mistakes.len()), ((4, 3), 1));
        assert_eq!(partly.left_out, "- b: [1, 2}\n  c: x\n");
    }

    #[test]
    fn what_is_no_list_is_left_out_whole() {
        let partly = load_around(&Source::new("x.yml", "a: [1, 2}\n"));
        assert!(partly.loaded.documents.is_empty() && partly.mistakes.len() == 1);
    }
}

#[cfg(test)]
mod tests {
    use super::load;
    use crate::{Node, Source};

    fn one(text: &str) -> Node {
        load(Source::new("t.yml", text))
            .unwrap()
            .documents
            .remove(0)
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
        assert_eq!(
            loaded.documents[0].to_json(),
            serde_json::json!({"a": 3, "b": 2})
        );
        assert_eq!(
            loaded.warnings[0].to_string(),
            "t.yml:3:1: the key `a` is here twice; the last one counts"
        );
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
            "t.yml:1:6: unquoted template (write \"{{ foo }}\")"
        );
    }

    #[test]
    fn mistakes_are_told_at_their_place() {
        assert!(mistake("a: [1, 2\nb: 3\n").starts_with("t.yml:"));
        assert!(mistake("a:\n\t- b\n").contains("a tab cannot indent"));
        assert!(mistake("a: &x [*x]\n").contains("stands within what it stands for"));
        assert!(mistake("a: *nowhere\n").starts_with("t.yml:1:"));
    }

    #[test]
    fn a_byte_order_mark_and_several_documents_are_read() {
        let loaded = load(Source::new("t", "\u{feff}a: 1\nb: 2\n---\n- c\n")).unwrap();
        assert_eq!(loaded.documents.len(), 2);
        assert!(load(Source::new("t", "")).unwrap().documents.is_empty());
    }

    #[test]
    fn merged_entries_come_first_and_keep_their_order_as_in_python() {
        let node = one("b: &b {z: 1, y: 2}\na: &a {y: 3, x: 4}\nm: {w: 5, <<: [*a, *b], y: 6}\n");
        let merged = node.get("m").unwrap();
        assert_eq!(merged.to_json().to_string(), r#"{"z":1,"y":6,"x":4,"w":5}"#);
        // The place of a key is where the value that counts is written.
        let (key, _) = merged.as_map().unwrap().entry("y").unwrap();
        assert_eq!(key.span.to_string(), "t.yml:3:25");
        assert_eq!(one("'<<': 5").to_json().to_string(), r#"{"<<":5}"#);
    }

    #[test]
    fn aliases_share_their_value_and_its_place() {
        let node = one("a: &x [1]\nb: *x\nc: &x 2\nd: *x\n");
        assert_eq!(node.get("b"), node.get("a"));
        assert_eq!(node.get("b").unwrap().span.to_string(), "t.yml:1:7");
        assert_eq!(node.get("d").unwrap().as_i64(), Some(2));
    }

    #[test]
    fn spans_end_where_their_text_does() {
        let node =
            one("a:\n  - x\n  - y: 1 # z\n\n# end\nb: |\n  t\nc: ['d',\n  e]\nf:\ng: \"\\n\"\n");
        let raw = |key: &str| node.get(key).unwrap().raw().to_owned();
        assert_eq!(raw("a"), "- x\n  - y: 1");
        assert_eq!(raw("c"), "['d',\n  e]");
        assert_eq!(raw("f"), "");
        assert_eq!(node.get("f").unwrap().span.to_string(), "t.yml:10:3");
        assert_eq!(raw("g"), r#""\n""#);
        assert_eq!(node.get("g").unwrap().as_str(), Some("\n"));
    }

    #[test]
    fn a_tag_of_yaml_decides_the_type() {
        let node = one("[!!str 5, !!int '5', !!float 5, ! 5, !!null x, !unsafe 5, !!bool 'on']");
        assert_eq!(
            node.to_json().to_string(),
            r#"["5",5,5.0,"5",null,"5",true]"#
        );
        assert!(mistake("!!int x").contains("does not fit its tag `!!int`"));
    }

    #[test]
    fn a_block_ends_as_in_pyyaml() {
        for (text, value) in [
            ("|\n  a\n", "a\n"),
            ("|\n  a", "a"),
            ("|-\n  a\n", "a"),
            ("|+\n  a\n\n", "a\n\n"),
            (">\n  a\n  b\n", "a b\n"),
        ] {
            assert_eq!(one(text).as_str(), Some(value), "{text:?}");
        }
    }
}
