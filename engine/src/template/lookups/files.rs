//! Lookups that read the controller's files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use minijinja::value::ValueKind;
use minijinja::{Error, Value};

use super::{Asked, Lookup, lists};
use crate::template::given::{failed, items};
use crate::template::python::text;
use crate::template::{FileSyntax, file, glob};

pub(super) const LOOKUPS: &[Lookup] = &[
    Lookup {
        names: "file",
        run: contents,
    },
    Lookup {
        names: "unvault",
        run: contents,
    },
    Lookup {
        names: "template",
        run: template,
    },
    Lookup {
        names: "fileglob",
        run: fileglob,
    },
    Lookup {
        names: "first_found",
        run: first_found,
    },
    Lookup {
        names: "lines",
        run: |asked| super::outside::output(asked, true),
    },
    Lookup {
        names: "ini",
        run: ini,
    },
    Lookup {
        names: "csvfile",
        run: csvfile,
    },
];

/// Where a name may be: as it is, beside the running role and playbook, and in the directory of its kind there.
fn candidates(asked: &Asked, name: &str, kind: &str) -> Vec<PathBuf> {
    let templar = &asked.evaluation.templar;
    let path = templar.expand_user(Path::new(name));
    if path.is_absolute() {
        return vec![path];
    }
    let settings = templar.settings();
    settings
        .search_path
        .iter()
        .chain([&settings.playbook_dir])
        .flat_map(|directory| [directory.join(kind).join(&path), directory.join(&path)])
        .collect()
}

fn located(asked: &Asked, name: &str, kind: &str) -> Result<PathBuf, Error> {
    let candidates = candidates(asked, name, kind);
    let controller = asked.evaluation.templar.controller();
    if let Some(found) = candidates
        .iter()
        .find(|path| controller.exists(path) && !controller.is_dir(path))
    {
        return Ok(found.clone());
    }
    let places: Vec<String> = candidates
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    Err(failed(format!(
        "there is no file `{name}` on the controller (looked at {})",
        places.join(", ")
    )))
}

fn read(asked: &Asked, path: &Path) -> Result<String, Error> {
    let bytes = asked
        .evaluation
        .templar
        .controller()
        .read(path)
        .map_err(|error| failed(format!("{} cannot be read: {error}", path.display())))?;
    String::from_utf8(bytes)
        .map_err(|_| failed(format!("{} is no text (not UTF-8)", path.display())))
}

fn contents(asked: &Asked) -> Result<Vec<Value>, Error> {
    let mut found = Vec::new();
    for name in asked.texts()? {
        let mut text = read(asked, &located(asked, &name, "files")?)?;
        if asked.option_flag("lstrip", false) {
            text = text.trim_start().to_owned();
        }
        if asked.option_flag("rstrip", true) {
            text = text.trim_end().to_owned();
        }
        found.push(text.into());
    }
    Ok(found)
}

fn template(asked: &Asked) -> Result<Vec<Value>, Error> {
    let mut syntax = FileSyntax {
        trim_blocks: asked.option_flag("trim_blocks", true),
        lstrip_blocks: asked.option_flag("lstrip_blocks", false),
        ..FileSyntax::default()
    };
    syntax.variable.0 = asked.option_text("variable_start_string", &syntax.variable.0)?;
    syntax.variable.1 = asked.option_text("variable_end_string", &syntax.variable.1)?;
    syntax.comment.0 = asked.option_text("comment_start_string", &syntax.comment.0)?;
    syntax.comment.1 = asked.option_text("comment_end_string", &syntax.comment.1)?;
    let extra: BTreeMap<String, Value> = match asked.option("template_vars") {
        Some(vars) => text::pairs(vars)?
            .into_iter()
            .map(|(key, value)| Ok((text::str(&key)?, value)))
            .collect::<Result<_, Error>>()?,
        None => BTreeMap::new(),
    };
    let evaluation = asked.evaluation.with(extra);
    let mut found = Vec::new();
    for name in asked.texts()? {
        let path = located(asked, &name, "templates")?;
        let text = read(asked, &path)?;
        let rendered = file::render(&evaluation, &path, &text, &syntax)
            .map_err(crate::template::EvalError::into_minijinja)?;
        found.push(rendered.into());
    }
    Ok(found)
}

fn fileglob(asked: &Asked) -> Result<Vec<Value>, Error> {
    let controller = asked.evaluation.templar.controller();
    let mut found = Vec::new();
    for pattern in asked.texts()? {
        // The first directory that has any match is the one that is meant.
        let matches = candidates(asked, &pattern, "files")
            .iter()
            .map(|candidate| glob::files(&*controller, candidate))
            .find(|files| !files.is_empty());
        found.extend(
            matches
                .unwrap_or_default()
                .iter()
                .map(|path| Value::from(path.to_string_lossy().into_owned())),
        );
    }
    Ok(found)
}

/// The first file of a list that exists; `files`, `paths` and `skip` may come in a dictionary, too.
fn first_found(asked: &Asked) -> Result<Vec<Value>, Error> {
    let mut names = Vec::new();
    let mut skip = asked.option_flag("skip", false);
    let option_list = |value: Option<&Value>| -> Result<Vec<String>, Error> {
        let Some(value) = value.filter(|value| !value.is_undefined()) else {
            return Ok(Vec::new());
        };
        match value.as_str() {
            Some(written) => Ok(written
                .split([',', ';', ':'])
                .map(|name| name.trim().to_owned())
                .filter(|name| !name.is_empty())
                .collect()),
            None => items(value)?.iter().map(text::str).collect(),
        }
    };
    let mut combine = |files: Vec<String>, paths: Vec<String>| {
        if paths.is_empty() {
            names.extend(files);
        } else {
            names.extend(
                paths
                    .iter()
                    .flat_map(|path| files.iter().map(move |file| format!("{path}/{file}"))),
            );
        }
    };
    combine(
        option_list(asked.option("files"))?,
        option_list(asked.option("paths"))?,
    );
    for term in lists::flattened(&asked.terms)? {
        if term.kind() == ValueKind::Map {
            let part = |name: &str| term.get_attr(name);
            combine(
                option_list(Some(&part("files")?))?,
                option_list(Some(&part("paths")?))?,
            );
            let said = part("skip")?;
            skip |= !said.is_undefined() && said.is_true();
        } else {
            combine(vec![text::str(&term)?], Vec::new());
        }
    }
    let controller = asked.evaluation.templar.controller();
    for name in &names {
        for kind in ["files", "templates", "vars", "tasks"] {
            if let Some(found) = candidates(asked, name, kind)
                .into_iter()
                .find(|path| controller.exists(path))
            {
                return Ok(vec![Value::from(found.to_string_lossy().into_owned())]);
            }
        }
    }
    if skip {
        return Ok(Vec::new());
    }
    Err(failed(format!(
        "none of these files is there: {}",
        names.join(", ")
    )))
}

fn ini(asked: &Asked) -> Result<Vec<Value>, Error> {
    let path = located(asked, &asked.option_text("file", "ansible.ini")?, "files")?;
    let text = read(asked, &path)?;
    let properties = asked.option_text("type", "ini")? == "properties";
    let section = asked.option_text("section", "global")?;
    let default = asked
        .option("default")
        .cloned()
        .unwrap_or_else(|| Value::from(""));
    let case_sensitive = asked.option_flag("case_sensitive", false);
    let mut current = if properties {
        section.clone()
    } else {
        String::new()
    };
    let mut entries: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        let plain = line.trim();
        if let Some(name) = plain
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            current = name.to_owned();
        } else if current == section && !plain.is_empty() && !plain.starts_with(['#', ';']) {
            if let (true, Some(last)) = (line.starts_with([' ', '\t']), entries.last_mut()) {
                last.1.push('\n');
                last.1.push_str(plain);
            } else if let Some(at) = plain.find(['=', ':']) {
                entries.push((
                    plain[..at].trim().to_owned(),
                    plain[at + 1..].trim().to_owned(),
                ));
            }
        }
    }
    let by_pattern = asked.option_flag("re", false);
    let mut found = Vec::new();
    for key in asked.texts()? {
        if by_pattern {
            let pattern = crate::template::filters::python_regex(
                &format!("\\A(?:{key})"),
                !case_sensitive,
                false,
            )?;
            found.extend(
                entries
                    .iter()
                    .filter(|(name, _)| pattern.is_match(name))
                    .map(|(_, value)| Value::from(value.as_str())),
            );
            continue;
        }
        let same = |name: &str| {
            if case_sensitive {
                name == key
            } else {
                name.eq_ignore_ascii_case(&key)
            }
        };
        let value = entries
            .iter()
            .rev()
            .find(|(name, _)| same(name))
            .map_or_else(|| default.clone(), |(_, value)| Value::from(value.as_str()));
        found.push(value);
    }
    Ok(found)
}

fn csvfile(asked: &Asked) -> Result<Vec<Value>, Error> {
    let text = read(
        asked,
        &located(asked, &asked.option_text("file", "ansible.csv")?, "files")?,
    )?;
    let delimiter = match asked.option_text("delimiter", "\t")?.as_str() {
        "TAB" | "\\t" => '\t',
        written => written.chars().next().unwrap_or('\t'),
    };
    let column = |name: &str, default: &str| -> Result<usize, Error> {
        asked
            .option_text(name, default)?
            .parse()
            .map_err(|_| failed(format!("csvfile needs a number for `{name}`")))
    };
    let (column, key_column) = (column("col", "1")?, column("keycol", "0")?);
    let mut found = Vec::new();
    for key in asked.texts()? {
        let row = text
            .lines()
            .map(|line| fields(line, delimiter))
            .find(|row| row.get(key_column) == Some(&key));
        let value = row
            .and_then(|row| row.get(column).cloned())
            .map(Value::from);
        found.extend(value.or_else(|| asked.option("default").cloned()));
    }
    Ok(found)
}

fn fields(line: &str, delimiter: char) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    let mut characters = line.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '"' if quoted && characters.next_if_eq(&'"').is_some() => push(&mut fields, '"'),
            '"' => quoted = !quoted,
            c if c == delimiter && !quoted => fields.push(String::new()),
            c => push(&mut fields, c),
        }
    }
    fields
}

fn push(fields: &mut [String], c: char) {
    if let Some(last) = fields.last_mut() {
        last.push(c);
    }
}
