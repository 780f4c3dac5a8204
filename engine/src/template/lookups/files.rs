//! Lookups that read the controller's files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use minijinja::value::ValueKind;
use minijinja::{Error, Value};

use super::{Asked, Lookup};
use crate::template::failure::EvalError;
use crate::template::filters::normalized;
use crate::template::given::{failed, items};
use crate::template::python::text;
use crate::template::{FileSyntax, about, file, glob};

pub(super) const LOOKUPS: &[Lookup] = &[
    Lookup {
        names: "file",
        run: |asked| contents(asked, true),
    },
    Lookup {
        names: "unvault",
        // As with Ansible, all of it.
        run: |asked| contents(asked, false),
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
];

/// Where a name may be: as it is, beside the running role and playbook, and in the directory of its kind there.
fn candidates(asked: &Asked, name: &str, kind: &str) -> Vec<PathBuf> {
    let templar = &asked.evaluation.templar;
    let path = templar.expand_user(Path::new(name));
    if path.is_absolute() {
        return vec![path];
    }
    let mut directories = asked.evaluation.search_path();
    directories.push(templar.settings().playbook_dir.clone());
    let mut all: Vec<PathBuf> = Vec::new();
    for directory in directories {
        // The files of a role lie beside its tasks.
        let role = directory
            .file_name()
            .is_some_and(|name| name == "tasks")
            .then(|| directory.parent())
            .flatten();
        for place in role.into_iter().chain([&*directory]) {
            for candidate in [place.join(kind).join(&path), place.join(&path)] {
                if !all.contains(&candidate) {
                    all.push(candidate);
                }
            }
        }
    }
    all
}

pub(super) fn located(asked: &Asked, name: &str, kind: &str) -> Result<PathBuf, Error> {
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
        "Unable to access the file '{name}': No such file or directory on the controller (looked at {})",
        places.join(", ")
    )))
}

/// A file's bytes; what a vault holds is opened.
pub(super) fn bytes(asked: &Asked, path: &Path) -> Result<Vec<u8>, Error> {
    let templar = &asked.evaluation.templar;
    let bytes = templar
        .controller()
        .read(path)
        .map_err(|error| failed(format!("{} cannot be read: {error}", path.display())))?;
    templar
        .settings()
        .vault
        .plain(path, bytes)
        .map_err(|error| EvalError::new(error).into_minijinja())
}

fn read(asked: &Asked, path: &Path) -> Result<String, Error> {
    String::from_utf8(bytes(asked, path)?)
        .map_err(|_| failed(format!("{} is no text (not UTF-8)", path.display())))
}

fn contents(asked: &Asked, rstrip: bool) -> Result<Vec<Value>, Error> {
    let mut found = Vec::new();
    for name in asked.texts()? {
        let mut text = read(asked, &located(asked, &name, "files")?)?;
        if asked.option_flag("lstrip", false) {
            text = text.trim_start().to_owned();
        }
        if asked.option_flag("rstrip", rstrip) {
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
    let managed = &asked.evaluation.templar.settings().managed;
    let mut found = Vec::new();
    for name in asked.texts()? {
        let path = located(asked, &name, "templates")?;
        let text = read(asked, &path)?;
        let mut own = about(&name, &path, managed);
        own.extend(extra.clone());
        let evaluation = asked.evaluation.with(own);
        let rendered =
            file::render(&evaluation, &path, &text, &syntax).map_err(EvalError::into_minijinja)?;
        found.push(rendered);
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

/// What `first_found` looks for: every name, in order, and whether it may find none.
#[derive(Default)]
struct Search {
    names: Vec<String>,
    skip: bool,
}

impl Search {
    /// Names from a list, or from a text with separators. What is undefined is passed over.
    fn list(value: Option<&Value>, separators: &[char]) -> Result<Vec<String>, Error> {
        let Some(value) = value.filter(|value| !value.is_undefined() && !value.is_none()) else {
            return Ok(Vec::new());
        };
        if let Some(written) = value.as_str() {
            return Ok(written
                .split(separators)
                .map(str::trim)
                .filter(|name| !name.is_empty())
                .map(str::to_owned)
                .collect());
        }
        let mut all = Vec::new();
        for item in items(value)? {
            all.extend(Self::list(Some(&item), separators)?);
        }
        Ok(all)
    }

    fn files(value: Option<&Value>) -> Result<Vec<String>, Error> {
        Self::list(value, &[',', ';'])
    }

    fn paths(value: Option<&Value>) -> Result<Vec<String>, Error> {
        Self::list(value, &[',', ';', ':'])
    }

    fn add(&mut self, files: Vec<String>, paths: &[String]) {
        if paths.is_empty() {
            self.names.extend(files);
        } else if files.is_empty() {
            self.names.extend(paths.iter().cloned());
        } else {
            let joined = |path: &String| {
                let path = path.clone();
                let join = move |file: &String| format!("{}/{file}", path.trim_end_matches('/'));
                files.iter().map(join).collect::<Vec<_>>()
            };
            self.names.extend(paths.iter().flat_map(joined));
        }
    }

    fn term(&mut self, term: &Value, paths: &[String]) -> Result<(), Error> {
        match term.kind() {
            ValueKind::Undefined => {}
            ValueKind::String => self.add(Self::files(Some(term))?, paths),
            ValueKind::Map => {
                let part = |name: &str| term.get_attr(name);
                let own = Self::paths(Some(&part("paths")?))?;
                let own = if own.is_empty() { paths } else { &own };
                self.add(Self::files(Some(&part("files")?))?, own);
                let said = part("skip")?;
                self.skip |= !said.is_undefined() && said.is_true();
            }
            ValueKind::Seq | ValueKind::Iterable => {
                for inner in items(term)? {
                    self.term(&inner, paths)?;
                }
            }
            _ => {
                return Err(failed(format!(
                    "Invalid term supplied: a term is a text, a list or a dictionary, not '{}'",
                    text::type_name(term)
                )));
            }
        }
        Ok(())
    }
}

/// The first file of a list that exists; `files`, `paths` and `skip` may come in a dictionary, too.
fn first_found(asked: &Asked) -> Result<Vec<Value>, Error> {
    let mut search = Search {
        skip: asked.option_flag("skip", false),
        ..Search::default()
    };
    for option in ["files", "paths"] {
        if let Some(undefined) = asked.option(option).filter(|value| value.is_undefined()) {
            return Ok(vec![undefined.clone()]);
        }
    }
    let paths = Search::paths(asked.option("paths"))?;
    let files = Search::files(asked.option("files"))?;
    if asked.terms.is_empty() || !files.is_empty() {
        search.add(files, &paths);
    }
    for term in &asked.terms {
        search.term(term, &paths)?;
    }
    let controller = asked.evaluation.templar.controller();
    for name in &search.names {
        for kind in ["files", "templates", "vars"] {
            if let Some(found) = candidates(asked, name, kind)
                .into_iter()
                .find(|path| controller.exists(path))
            {
                let found = normalized(&found.to_string_lossy());
                return Ok(vec![Value::from(found)]);
            }
        }
    }
    if search.skip {
        return Ok(Vec::new());
    }
    Err(failed(format!(
        "No file was found when using first_found: none of these is there: {}",
        search.names.join(", ")
    )))
}
