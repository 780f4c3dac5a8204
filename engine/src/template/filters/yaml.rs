//! Values as PyYAML writes them: the same quotes, the same line breaks, so that files written by Ansible do not change.
//!
//! The rules are those of libyaml's and PyYAML's emitter (MIT licence): which texts may stand without quotes, where lines are folded
//! (after column 80), how lists in maps are not indented.

use std::sync::LazyLock;

use minijinja::value::ValueKind;
use minijinja::{Error, Value};
use regex::Regex;

use crate::template::given::{failed, items};
use crate::template::python::text::{float, pairs, type_name};

/// How YAML is written.
pub(crate) struct YamlStyle {
    /// Blanks a level; PyYAML takes 2 to 9.
    pub(crate) indent: usize,
    /// Where lines are folded.
    pub(crate) width: usize,
    /// All collections in brackets, none, or only those that hold nothing but scalars.
    pub(crate) flow: Option<bool>,
    /// Whether keys are sorted.
    pub(crate) sort_keys: bool,
    /// Whether letters outside of ASCII are written as they are.
    pub(crate) unicode: bool,
}

/// The value as YAML, with a newline at its end.
///
/// # Errors
/// If something in it cannot be written.
pub(crate) fn dump(value: &Value, style: &YamlStyle) -> Result<String, Error> {
    let mut emitter = Emitter {
        style,
        out: String::new(),
        column: 0,
        indent: None,
        whitespace: true,
        indention: true,
        flow_level: 0,
    };
    emitter.node(value, Context::Root)?;
    emitter.out.push('\n');
    Ok(emitter.out)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Context {
    Root,
    Sequence,
    MapValue,
    SimpleKey,
}

struct Emitter<'a> {
    style: &'a YamlStyle,
    out: String,
    column: usize,
    indent: Option<usize>,
    whitespace: bool,
    indention: bool,
    flow_level: usize,
}

impl Emitter<'_> {
    fn write(&mut self, text: &str) {
        self.column += text.chars().count();
        self.out.push_str(text);
    }

    fn indicator(
        &mut self,
        indicator: &str,
        need_whitespace: bool,
        whitespace: bool,
        indention: bool,
    ) {
        if !self.whitespace && need_whitespace {
            self.write(" ");
        }
        self.whitespace = whitespace;
        self.indention = self.indention && indention;
        self.write(indicator);
    }

    fn line_break(&mut self) {
        self.whitespace = true;
        self.indention = true;
        self.out.push('\n');
        self.column = 0;
    }

    fn write_indent(&mut self) {
        let indent = self.indent.unwrap_or(0);
        if !self.indention || self.column > indent || (self.column == indent && !self.whitespace) {
            self.line_break();
        }
        if self.column < indent {
            self.whitespace = true;
            self.write(&" ".repeat(indent - self.column));
        }
    }

    fn increase(&mut self, flow: bool, indentless: bool) -> Option<usize> {
        let before = self.indent;
        let by = if (2..10).contains(&self.style.indent) {
            self.style.indent
        } else {
            2
        };
        self.indent = match before {
            None => Some(if flow { by } else { 0 }),
            Some(indent) if indentless => Some(indent),
            Some(indent) => Some(indent + by),
        };
        before
    }

    fn node(&mut self, value: &Value, context: Context) -> Result<(), Error> {
        match value.kind() {
            ValueKind::Seq | ValueKind::Iterable => self.list(&items(value)?, context),
            ValueKind::Map => {
                let mut entries = pairs(value)?;
                if self.style.sort_keys {
                    entries.sort_by(|a, b| a.0.cmp(&b.0));
                }
                self.map(&entries)
            }
            _ => self.scalar(value, context),
        }
    }

    fn in_flow<'v>(&self, children: impl Iterator<Item = &'v Value>) -> bool {
        let mut children = children;
        self.flow_level > 0
            || self
                .style
                .flow
                .unwrap_or_else(|| children.all(|child| !is_collection(child)))
    }

    fn list(&mut self, list: &[Value], context: Context) -> Result<(), Error> {
        if list.is_empty() || self.in_flow(list.iter()) {
            return self.flow("[", "]", list, |emitter, item| {
                emitter.node(item, Context::Sequence)
            });
        }
        let indentless = context == Context::MapValue && !self.indention;
        let before = self.increase(false, indentless);
        for item in list {
            self.write_indent();
            self.indicator("-", true, false, true);
            self.node(item, Context::Sequence)?;
        }
        self.indent = before;
        Ok(())
    }

    fn map(&mut self, entries: &[(Value, Value)]) -> Result<(), Error> {
        if entries.is_empty() || self.in_flow(entries.iter().flat_map(|(key, value)| [key, value]))
        {
            return self.flow("{", "}", entries, |emitter, (key, value)| {
                emitter.entry(key, value)
            });
        }
        let before = self.increase(false, false);
        for (key, value) in entries {
            self.write_indent();
            self.entry(key, value)?;
        }
        self.indent = before;
        Ok(())
    }

    fn entry(&mut self, key: &Value, value: &Value) -> Result<(), Error> {
        if simple_key(key) {
            self.node(key, Context::SimpleKey)?;
            self.indicator(":", false, false, false);
        } else {
            self.indicator("?", true, false, true);
            self.node(key, Context::MapValue)?;
            if self.flow_level == 0 {
                self.write_indent();
                self.indicator(":", true, false, true);
            } else {
                self.indicator(":", true, false, false);
            }
        }
        self.node(value, Context::MapValue)
    }

    fn flow<T>(
        &mut self,
        open: &str,
        close: &str,
        all: &[T],
        mut each: impl FnMut(&mut Self, &T) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.indicator(open, true, true, false);
        self.flow_level += 1;
        let before = self.increase(true, false);
        for (at, item) in all.iter().enumerate() {
            if at > 0 {
                self.indicator(",", false, false, false);
            }
            if self.column > self.style.width {
                self.write_indent();
            }
            each(self, item)?;
        }
        self.indent = before;
        self.flow_level -= 1;
        self.indicator(close, false, false, false);
        Ok(())
    }

    fn scalar(&mut self, value: &Value, context: Context) -> Result<(), Error> {
        let simple_key = context == Context::SimpleKey;
        let plain = match value.kind() {
            ValueKind::String => {
                let text = value.as_str().unwrap_or_default();
                let analysis = Analysis::of(text, self.style.unicode);
                // As in PyYAML, a scalar is folded relative to one level more than what it stands in.
                let before = self.increase(true, false);
                if !resolves_otherwise(text)
                    && analysis.plain(self.flow_level > 0)
                    && !(simple_key && analysis.multiline)
                {
                    self.plain(text, !simple_key);
                } else if analysis.single_quoted && !(simple_key && analysis.multiline) {
                    self.single_quoted(text, !simple_key);
                } else {
                    self.double_quoted(text, !simple_key);
                }
                self.indent = before;
                return Ok(());
            }
            ValueKind::None => "null".to_owned(),
            ValueKind::Bool => if value.is_true() { "true" } else { "false" }.to_owned(),
            ValueKind::Number if value.is_integer() => value.to_string(),
            ValueKind::Number => yaml_float(f64::try_from(value.clone())?),
            _ => {
                return Err(failed(format!(
                    "{} cannot be written as YAML",
                    type_name(value)
                )));
            }
        };
        self.plain(&plain, !simple_key);
        Ok(())
    }

    fn plain(&mut self, text: &str, split: bool) {
        if text.is_empty() {
            return;
        }
        if !self.whitespace {
            self.write(" ");
        }
        self.whitespace = false;
        self.indention = false;
        self.folded(text, split);
    }

    /// Writes words and blanks; a single blank past the width becomes a new line.
    fn folded(&mut self, text: &str, split: bool) {
        let characters: Vec<char> = text.chars().collect();
        let mut at = 0;
        while at < characters.len() {
            let blank = characters[at] == ' ';
            let end = (at..characters.len())
                .find(|next| (characters[*next] == ' ') != blank)
                .unwrap_or(characters.len());
            if blank && end - at == 1 && self.column > self.style.width && split {
                self.write_indent();
                self.whitespace = false;
                self.indention = false;
            } else {
                let piece: String = characters[at..end].iter().collect();
                self.write(&piece);
            }
            at = end;
        }
    }

    fn single_quoted(&mut self, text: &str, split: bool) {
        self.indicator("'", true, false, false);
        let characters: Vec<char> = text.chars().collect();
        let class = |c: char| match c {
            ' ' => 0,
            '\n' => 1,
            _ => 2,
        };
        let mut at = 0;
        while at < characters.len() {
            let kind = class(characters[at]);
            let end = (at..characters.len())
                .find(|next| class(characters[*next]) != kind)
                .unwrap_or(characters.len());
            let piece: String = characters[at..end].iter().collect();
            match kind {
                0 if end - at == 1
                    && self.column > self.style.width
                    && split
                    && at != 0
                    && end != characters.len() =>
                {
                    self.write_indent()
                }
                1 => {
                    // A fold would swallow the first of them.
                    for _ in 0..=piece.len() {
                        self.line_break();
                    }
                    self.write_indent();
                }
                _ => self.write(&piece.replace('\'', "''")),
            }
            at = end;
        }
        self.indicator("'", false, false, false);
    }

    fn double_quoted(&mut self, text: &str, split: bool) {
        self.indicator("\"", true, false, false);
        let characters: Vec<char> = text.chars().collect();
        let (mut start, mut end) = (0, 0);
        while end <= characters.len() {
            let c = characters.get(end).copied();
            if c.is_none_or(|c| escaped(c, self.style.unicode).is_some()) {
                if start < end {
                    let piece: String = characters[start..end].iter().collect();
                    self.write(&piece);
                    start = end;
                }
                if let Some(escape) = c.and_then(|c| escaped(c, self.style.unicode)) {
                    self.write(&escape);
                    start = end + 1;
                }
            }
            let inside = end > 0 && end + 1 < characters.len();
            if inside
                && (c == Some(' ') || start >= end)
                && self.column + end.saturating_sub(start) > self.style.width
                && split
            {
                let mut piece: String = characters[start.min(end)..end].iter().collect();
                piece.push('\\');
                if start < end {
                    start = end;
                }
                self.write(&piece);
                self.write_indent();
                self.whitespace = false;
                self.indention = false;
                if characters.get(start) == Some(&' ') {
                    self.write("\\");
                }
            }
            end += 1;
        }
        self.indicator("\"", false, false, false);
    }
}

fn is_collection(value: &Value) -> bool {
    matches!(
        value.kind(),
        ValueKind::Seq | ValueKind::Iterable | ValueKind::Map
    )
}

fn simple_key(key: &Value) -> bool {
    match key.as_str() {
        Some(text) => text.chars().count() < 128 && !text.contains('\n'),
        None => !is_collection(key) || key.len() == Some(0),
    }
}

fn yaml_float(number: f64) -> String {
    if number.is_nan() {
        return ".nan".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    let written = float(number);
    if written.contains('.') {
        written
    } else {
        written.replacen('e', ".0e", 1)
    }
}

fn escaped(c: char, unicode: bool) -> Option<String> {
    let short = match c {
        '\0' => '0',
        '\u{7}' => 'a',
        '\u{8}' => 'b',
        '\t' => 't',
        '\n' => 'n',
        '\u{b}' => 'v',
        '\u{c}' => 'f',
        '\r' => 'r',
        '\u{1b}' => 'e',
        '"' => '"',
        '\\' => '\\',
        '\u{85}' => 'N',
        '\u{2028}' => 'L',
        '\u{2029}' => 'P',
        '\u{a0}' if !unicode => '_',
        ' '..='~' => return None,
        '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' if unicode && c != '\u{feff}' => {
            return None;
        }
        c => {
            let code = c as u32;
            return Some(match code {
                0..=0xff => format!("\\x{code:02X}"),
                0x100..=0xffff => format!("\\u{code:04X}"),
                _ => format!("\\U{code:08X}"),
            });
        }
    };
    Some(format!("\\{short}"))
}

/// What a text's characters allow.
struct Analysis {
    multiline: bool,
    flow_plain: bool,
    block_plain: bool,
    single_quoted: bool,
}

impl Analysis {
    fn plain(&self, in_flow: bool) -> bool {
        if in_flow {
            self.flow_plain
        } else {
            self.block_plain
        }
    }

    fn of(text: &str, unicode: bool) -> Self {
        let characters: Vec<char> = text.chars().collect();
        let Some((first, last)) = characters.first().copied().zip(characters.last().copied())
        else {
            return Self {
                multiline: false,
                flow_plain: false,
                block_plain: false,
                single_quoted: true,
            };
        };
        let blank = |c: Option<&char>| {
            c.is_none_or(|c| {
                matches!(
                    c,
                    '\0' | ' ' | '\t' | '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}'
                )
            })
        };
        let is_break = |c: char| matches!(c, '\n' | '\u{85}' | '\u{2028}' | '\u{2029}');
        let mut flow_indicator = text.starts_with("---") || text.starts_with("...");
        let mut block_indicator = flow_indicator;
        let (mut special, mut line_breaks, mut space_break, mut break_space) =
            (false, false, false, false);
        let mut previous = None;
        for (at, c) in characters.iter().copied().enumerate() {
            let followed = blank(characters.get(at + 1));
            let preceded = at == 0 || blank(characters.get(at - 1));
            if at == 0 {
                if "#,[]{}&*!|>'\"%@`".contains(c) {
                    (flow_indicator, block_indicator) = (true, true);
                }
                if "?:".contains(c) {
                    flow_indicator = true;
                    block_indicator |= followed;
                }
                if c == '-' && followed {
                    (flow_indicator, block_indicator) = (true, true);
                }
            } else {
                flow_indicator |= ",?[]{}:".contains(c);
                block_indicator |= c == ':' && followed;
                if c == '#' && preceded {
                    (flow_indicator, block_indicator) = (true, true);
                }
            }
            line_breaks |= is_break(c);
            let printable = matches!(c, '\n' | ' '..='~');
            let letter = (c == '\u{85}'
                || matches!(c, '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}'))
                && c != '\u{feff}';
            special |= !(printable || letter && unicode);
            break_space |= c == ' ' && previous.is_some_and(is_break);
            space_break |= is_break(c) && previous == Some(' ');
            previous = Some(c);
        }
        let edge = |c: char| c == ' ' || is_break(c);
        let mut plain = !edge(first) && !edge(last) && !line_breaks;
        let mut single_quoted = true;
        if break_space {
            (plain, single_quoted) = (false, false);
        }
        if space_break || special {
            (plain, single_quoted) = (false, false);
        }
        Self {
            multiline: line_breaks,
            flow_plain: plain && !flow_indicator,
            block_plain: plain && !block_indicator,
            single_quoted,
        }
    }
}

/// Whether the text would be read as something else than a text by a reader of YAML 1.1.
fn resolves_otherwise(text: &str) -> bool {
    static OTHER: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(concat!(
            r"^(?:yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF",
            r"|~|null|Null|NULL||<<|=",
            r"|[-+]?0b[0-1_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+|[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+",
            r"|[-+]?(?:[0-9][0-9_]*)\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?",
            r"|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
            r"|[0-9]{4}-[0-9]{2}-[0-9]{2}",
            r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt]|[ \t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?(?:[ \t]*(?:Z|[-+][0-9]{1,2}(?::[0-9]{2})?))?",
            r")$"
        ))
        .ok()
    });
    OTHER.as_ref().is_some_and(|pattern| pattern.is_match(text))
}
