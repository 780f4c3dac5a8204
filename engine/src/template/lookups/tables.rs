//! Lookups in tables: INI files, properties and CSV.

use std::borrow::Cow;

use minijinja::value::ValueKind;
use minijinja::{Error, Value};

use super::files::{bytes, located};
use super::inline::Inline;
use super::{Asked, Lookup};
use crate::template::filters::{decoded, python_regex};
use crate::template::given::{failed, items};
use crate::template::python::text;

pub(super) const LOOKUPS: &[Lookup] = &[
    Lookup {
        names: "ini",
        run: ini,
    },
    Lookup {
        names: "csvfile",
        run: csvfile,
    },
];

/// A section of an INI file.
type Section = Vec<(String, Option<String>)>;

/// An INI file, as Python's `configparser` reads it.
struct Ini {
    sections: Vec<(String, Section)>,
    interpolation: bool,
}

/// How an INI file is read.
#[derive(Clone, Copy)]
struct Reading<'a> {
    file: &'a str,
    case_sensitive: bool,
    allow_no_value: bool,
    interpolation: bool,
}

/// The section whose values count in every other.
const DEFAULT: &str = "DEFAULT";

impl Ini {
    fn parse(text: &str, start: Option<&str>, reading: Reading<'_>) -> Result<Self, Error> {
        let mut sections: Vec<(String, Section)> = Vec::new();
        sections.extend(start.map(|name| (name.to_owned(), Section::new())));
        let mut indent = 0;
        for (at, line) in text.lines().enumerate() {
            let plain = line.trim();
            if plain.is_empty() || plain.starts_with(['#', ';']) {
                continue;
            }
            let own = line.len() - line.trim_start().len();
            let last = sections
                .last_mut()
                .and_then(|(_, section)| section.last_mut());
            if let (true, Some((_, Some(value)))) = (own > indent, last) {
                value.push('\n');
                value.push_str(plain);
                continue;
            }
            indent = own;
            let heading = plain
                .strip_prefix('[')
                .and_then(|rest| rest.split_once(']'));
            if let Some((name, _)) = heading {
                if !sections.iter().any(|(known, _)| known == name) {
                    sections.push((name.to_owned(), Section::new()));
                }
                continue;
            }
            let split = plain.find(['=', ':']).map(|at| {
                (
                    plain[..at].trim_end(),
                    Some(plain[at + 1..].trim().to_owned()),
                )
            });
            let (name, value) = match split {
                Some(split) => split,
                None if reading.allow_no_value => (plain, None),
                None => {
                    return Err(failed(format!(
                        "{} contains parsing errors: line {}: {}",
                        reading.file,
                        at + 1,
                        text::repr(&Value::from(line))?
                    )));
                }
            };
            let name = if reading.case_sensitive {
                name.to_owned()
            } else {
                name.to_lowercase()
            };
            let Some((section_name, section)) = sections.last_mut() else {
                return Err(failed(format!(
                    "{} has a line before its first section: {plain}",
                    reading.file
                )));
            };
            if section.iter().any(|(known, _)| *known == name) {
                return Err(failed(format!(
                    "Duplicate option in '{}': option '{name}' in section '{section_name}' already exists (line {})",
                    reading.file,
                    at + 1
                )));
            }
            section.push((name, value));
        }
        Ok(Self {
            sections,
            interpolation: reading.interpolation,
        })
    }

    fn section(&self, name: &str) -> Option<&Section> {
        let found = self.sections.iter().find(|(known, _)| known == name);
        found.map(|(_, section)| section)
    }

    fn raw<'a>(&'a self, section: &'a Section, name: &str) -> Option<&'a Option<String>> {
        section
            .iter()
            .chain(self.section(DEFAULT).into_iter().flatten())
            .find(|(known, _)| known == name)
            .map(|(_, value)| value)
    }

    /// A value with every `%(name)s` in it replaced.
    fn value(&self, section: &Section, name: &str, depth: usize) -> Result<Option<Value>, Error> {
        let Some(Some(written)) = self.raw(section, name) else {
            return Ok(None);
        };
        if !self.interpolation || !written.contains('%') {
            return Ok(Some(Value::from(written.as_str())));
        }
        if depth > 10 {
            return Err(failed(format!("`{name}` is made of itself")));
        }
        let mut out = String::new();
        let mut rest = written.as_str();
        while let Some(at) = rest.find('%') {
            out.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix('%') {
                out.push('%');
                rest = after;
                continue;
            }
            let reference = rest
                .strip_prefix('(')
                .and_then(|rest| rest.split_once(")s"));
            let Some((inner, after)) = reference else {
                return Err(failed(format!(
                    "'%' must be followed by '%' or '(', found: `%{rest}` (interpolation=false takes it as it is)"
                )));
            };
            let Some(value) = self.value(section, &inner.to_lowercase(), depth + 1)? else {
                return Err(failed(format!(
                    "`{name}` is made of `{inner}`, which there is not"
                )));
            };
            out.push_str(&text::str(&value)?);
            rest = after;
        }
        Ok(Some(Value::from(out + rest)))
    }
}

fn ini(asked: &Asked) -> Result<Vec<Value>, Error> {
    const OPTIONS: [&str; 10] = [
        "type",
        "file",
        "section",
        "re",
        "encoding",
        "default",
        "case_sensitive",
        "allow_no_value",
        "allow_none",
        "interpolation",
    ];
    let mut found = Vec::new();
    for term in asked.texts()? {
        let inline = Inline::parse("ini", &term, &OPTIONS)?;
        let file = inline.text(asked, "file", "ansible.ini")?;
        let content = bytes(asked, &located(asked, &file, "files")?)?;
        let content = decoded(&content, &inline.text(asked, "encoding", "utf-8")?)?;
        let properties = inline.text(asked, "type", "ini")? == "properties";
        let section_name = if properties {
            "java_properties".to_owned()
        } else {
            inline.text(asked, "section", "global")?
        };
        let reading = Reading {
            file: &file,
            case_sensitive: inline.flag(asked, "case_sensitive", false),
            allow_no_value: inline.flag(asked, "allow_no_value", false)
                || inline.flag(asked, "allow_none", false),
            interpolation: inline.flag(asked, "interpolation", true),
        };
        let start = properties.then_some(section_name.as_str());
        let ini = Ini::parse(&content, start, reading)?;
        let Some(section) = ini.section(&section_name) else {
            return Err(failed(format!("No section '{section_name}' in '{file}'")));
        };
        if inline.flag(asked, "re", false) {
            let pattern = format!("\\A(?:{})", inline.key);
            let pattern = python_regex(&pattern, !reading.case_sensitive, false)?;
            for (name, _) in section {
                if pattern.is_match(name)? {
                    found.extend(ini.value(section, name, 0)?);
                }
            }
            continue;
        }
        let key = if reading.case_sensitive {
            inline.key.clone()
        } else {
            inline.key.to_lowercase()
        };
        match ini.raw(section, &key) {
            Some(_) => found.extend(ini.value(section, &key, 0)?),
            None => add(
                &mut found,
                inline
                    .option(asked, "default")
                    .unwrap_or_else(|| Value::from("")),
            )?,
        }
    }
    Ok(found)
}

/// A value, or each of a list of values.
fn add(found: &mut Vec<Value>, value: Value) -> Result<(), Error> {
    match value.kind() {
        ValueKind::Seq | ValueKind::Iterable => found.extend(items(&value)?),
        _ => found.push(value),
    }
    Ok(())
}

fn csvfile(asked: &Asked) -> Result<Vec<Value>, Error> {
    const OPTIONS: [&str; 6] = ["file", "delimiter", "col", "keycol", "default", "encoding"];
    let terms = asked.texts()?;
    if terms.is_empty() {
        return Err(failed("csvfile: Search key is required but was not found"));
    }
    let mut found = Vec::new();
    for term in terms {
        let inline = Inline::parse("csvfile", &term, &OPTIONS)?;
        let file = inline.text(asked, "file", "ansible.csv")?;
        let content = bytes(asked, &located(asked, &file, "files")?)?;
        let content = decoded(&content, &inline.text(asked, "encoding", "utf-8")?)?;
        let delimiter = match inline.text(asked, "delimiter", "\t")?.as_str() {
            "TAB" | "\\t" => '\t',
            written => written.chars().next().unwrap_or('\t'),
        };
        let column = |name: &str, default: &str| -> Result<usize, Error> {
            let written = inline.text(asked, name, default)?;
            written.parse().map_err(|_| {
                failed(format!(
                    "Config '{name}' for 'csvfile' lookup plugin has an invalid value: Invalid value provided for 'int': '{written}'"
                ))
            })
        };
        let (column, key_column) = (column("col", "1")?, column("keycol", "0")?);
        let row = rows(&content, delimiter)
            .into_iter()
            .find(|row| row.get(key_column) == Some(&inline.key));
        match row {
            Some(row) => found.push(
                row.get(column)
                    .map(|cell| Value::from(cell.as_str()))
                    .ok_or_else(|| {
                        failed(format!(
                            "the row of `{}` has no column {column}",
                            inline.key
                        ))
                    })?,
            ),
            None => {
                if let Some(default) = inline.option(asked, "default") {
                    add(&mut found, default)?;
                }
            }
        }
    }
    Ok(found)
}

/// Rows as Python's `csv` reads them: a quote counts only where a cell begins, and a quoted cell may have line ends.
fn rows(text: &str, delimiter: char) -> Vec<Vec<String>> {
    #[derive(PartialEq)]
    enum At {
        Start,
        Plain,
        Quoted,
    }
    let text = if text.contains('\r') {
        Cow::Owned(text.replace("\r\n", "\n"))
    } else {
        Cow::Borrowed(text)
    };
    let (mut rows, mut row, mut cell) = (Vec::new(), Vec::new(), String::new());
    let mut at = At::Start;
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        match (c, &at) {
            ('"', At::Quoted) if characters.next_if_eq(&'"').is_some() => cell.push('"'),
            ('"', At::Quoted) => at = At::Plain,
            (c, At::Quoted) => cell.push(c),
            ('"', At::Start) => at = At::Quoted,
            ('\n', _) => {
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
                at = At::Start;
            }
            (c, _) if c == delimiter => {
                row.push(std::mem::take(&mut cell));
                at = At::Start;
            }
            (c, _) => {
                cell.push(c);
                at = At::Plain;
            }
        }
    }
    if !row.is_empty() || !cell.is_empty() || at != At::Start {
        row.push(cell);
        rows.push(row);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_pythons() {
        assert_eq!(
            rows("a,\"b \"\"c\"\"\n,d\",e\"f\r\nx\n", ','),
            [vec!["a", "b \"c\"\n,d", "e\"f"], vec!["x"]]
        );
    }

    #[test]
    fn values_of_ini_files_may_refer_to_others() {
        let reading = Reading {
            file: "x.ini",
            case_sensitive: false,
            allow_no_value: false,
            interpolation: true,
        };
        let text = "[DEFAULT]\nroot=/srv\n[a]\nPath: %(root)s/x\n  more\npart=50%%\n";
        let ini = Ini::parse(text, None, reading).unwrap();
        let section = ini.section("a").unwrap();
        let value = |name| ini.value(section, name, 0).unwrap().unwrap().to_string();
        assert_eq!(value("path"), "/srv/x\nmore");
        assert_eq!(value("part"), "50%");
        assert!(Ini::parse("[a]\nx\n", None, reading).is_err());
        assert!(Ini::parse("[a]\nx=1\nX=2\n", None, reading).is_err());
    }
}
