//! Paths.

use std::path::{Component, Path, PathBuf};

use minijinja::{Error, State, Value};

use crate::template::evaluation;
use crate::template::given::{Filter, Given, failed, items};
use crate::template::python::text;

pub(super) const FILTERS: &[Filter] = &[
    Filter {
        names: "basename",
        parameters: "",
        run: basename,
    },
    Filter {
        names: "dirname",
        parameters: "",
        run: dirname,
    },
    Filter {
        names: "splitext",
        parameters: "",
        run: splitext,
    },
    Filter {
        names: "path_join",
        parameters: "",
        run: path_join,
    },
    Filter {
        names: "normpath",
        parameters: "",
        run: normpath,
    },
    Filter {
        names: "relpath",
        parameters: "start",
        run: relpath,
    },
    Filter {
        names: "realpath",
        parameters: "",
        run: realpath,
    },
    Filter {
        names: "expanduser",
        parameters: "",
        run: expanduser,
    },
    Filter {
        names: "expandvars",
        parameters: "",
        run: expandvars,
    },
    Filter {
        names: "commonpath",
        parameters: "",
        run: commonpath,
    },
    Filter {
        names: "fileglob",
        parameters: "",
        run: fileglob,
    },
    Filter {
        names: "win_basename",
        parameters: "",
        run: win_basename,
    },
    Filter {
        names: "win_dirname",
        parameters: "",
        run: win_dirname,
    },
    Filter {
        names: "win_splitdrive",
        parameters: "",
        run: win_splitdrive,
    },
];

fn basename(_: &mut State<'_, '_>, value: &Value, _: &Given) -> Result<Value, Error> {
    let path = text::str(value)?;
    Ok(Value::from(path.rsplit('/').next().unwrap_or_default()))
}

fn dirname(_: &mut State<'_, '_>, value: &Value, _: &Given) -> Result<Value, Error> {
    let path = text::str(value)?;
    let head = path.rfind('/').map_or("", |at| &path[..=at]);
    let stripped = head.trim_end_matches('/');
    Ok(Value::from(if stripped.is_empty() {
        head
    } else {
        stripped
    }))
}

fn splitext(_: &mut State<'_, '_>, value: &Value, _: &Given) -> Result<Value, Error> {
    let path = text::str(value)?;
    let start = path.rfind('/').map_or(0, |at| at + 1);
    let name = &path[start..];
    let leading = name.len() - name.trim_start_matches('.').len();
    let at = name[leading..]
        .rfind('.')
        .map_or(path.len(), |at| start + leading + at);
    Ok(Value::from(vec![
        Value::from(&path[..at]),
        Value::from(&path[at..]),
    ]))
}

fn path_join(_: &mut State<'_, '_>, value: &Value, _: &Given) -> Result<Value, Error> {
    let parts = match value.as_str() {
        Some(_) => vec![value.clone()],
        None => items(value).map_err(|_| {
            failed(format!(
                "|path_join expects string or sequence, got {} instead",
                text::type_name(value)
            ))
        })?,
    };
    let mut joined = String::new();
    for part in parts {
        let part = text::str(&part)?;
        if part.starts_with('/') {
            joined.clear();
        } else if !joined.is_empty() && !joined.ends_with('/') {
            joined.push('/');
        }
        joined.push_str(&part);
    }
    Ok(joined.into())
}

/// The path without `.`, `..` and doubled slashes.
pub(crate) fn normalized(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let absolute = path.starts_with('/');
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if kept.last().is_some_and(|last| *last != "..") => {
                kept.pop();
            }
            ".." if absolute => {}
            part => kept.push(part),
        }
    }
    let joined = kept.join("/");
    match (absolute, joined.is_empty()) {
        (true, _) => format!("/{joined}"),
        (false, true) => ".".to_owned(),
        (false, false) => joined,
    }
}

fn normpath(_: &mut State<'_, '_>, value: &Value, _: &Given) -> Result<Value, Error> {
    Ok(normalized(&text::str(value)?).into())
}

/// The path from the playbook's directory on, as the controller's working directory is none of our business.
fn absolute(path: &str) -> Result<String, Error> {
    let base = evaluation::current()?
        .templar
        .settings()
        .playbook_dir
        .clone();
    Ok(normalized(&base.join(path).to_string_lossy()))
}

fn relpath(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let path = absolute(&text::str(value)?)?;
    let start = absolute(&given.text(0, ".")?)?;
    let parts = |path: &str| {
        path.split('/')
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let (path, start) = (parts(&path), parts(&start));
    let common = path.iter().zip(&start).take_while(|(a, b)| a == b).count();
    let mut steps = vec!["..".to_owned(); start.len() - common];
    steps.extend_from_slice(&path[common..]);
    Ok(Value::from(if steps.is_empty() {
        ".".to_owned()
    } else {
        steps.join("/")
    }))
}

fn realpath(_: &mut State<'_, '_>, value: &Value, _: &Given) -> Result<Value, Error> {
    let path = PathBuf::from(absolute(&text::str(value)?)?);
    let controller = evaluation::current()?.templar.controller();
    // What exists is resolved, what does not is kept: as Python's realpath does.
    let mut resolved = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => {
                resolved.push(name);
                if let Ok(real) = controller.real_path(&resolved) {
                    resolved = real;
                }
            }
            part => resolved.push(part),
        }
    }
    Ok(Value::from(resolved.to_string_lossy().into_owned()))
}

fn expanduser(_: &mut State<'_, '_>, value: &Value, _: &Given) -> Result<Value, Error> {
    let path = text::str(value)?;
    Ok(Value::from(
        evaluation::current()?
            .templar
            .expand_user(Path::new(&path))
            .to_string_lossy()
            .into_owned(),
    ))
}

fn expandvars(_: &mut State<'_, '_>, value: &Value, _: &Given) -> Result<Value, Error> {
    let path = text::str(value)?;
    let controller = evaluation::current()?.templar.controller();
    let mut out = String::new();
    let mut rest = path.as_str();
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let (name, length) = if let Some(braced) = after.strip_prefix('{') {
            match braced.find('}') {
                Some(end) => (&braced[..end], end + 2),
                None => ("", 0),
            }
        } else {
            let end = after
                .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .unwrap_or(after.len());
            (&after[..end], end)
        };
        match controller.environment(name).filter(|_| !name.is_empty()) {
            Some(found) => out.push_str(&found),
            None => out.push_str(&rest[at..at + 1 + length]),
        }
        rest = &after[length..];
    }
    out.push_str(rest);
    Ok(out.into())
}

fn commonpath(_: &mut State<'_, '_>, value: &Value, _: &Given) -> Result<Value, Error> {
    if value.as_str().is_some() {
        return Err(failed("|commonpath expects sequence, got str instead"));
    }
    let paths: Vec<String> = items(value)?
        .iter()
        .map(text::str)
        .collect::<Result<_, _>>()?;
    let first = paths
        .first()
        .ok_or_else(|| failed("commonpath needs at least one path"))?;
    let absolute = first.starts_with('/');
    if paths.iter().any(|path| path.starts_with('/') != absolute) {
        return Err(failed("commonpath cannot mix absolute and relative paths"));
    }
    let split = |path: &str| {
        path.split('/')
            .filter(|part| !part.is_empty() && *part != ".")
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let mut common = split(first);
    for path in &paths {
        let kept = common
            .iter()
            .zip(split(path))
            .take_while(|(a, b)| *a == b)
            .count();
        common.truncate(kept);
    }
    Ok(Value::from(format!(
        "{}{}",
        if absolute { "/" } else { "" },
        common.join("/")
    )))
}

fn fileglob(_: &mut State<'_, '_>, value: &Value, _: &Given) -> Result<Value, Error> {
    let written = text::str(value)?;
    let pattern = absolute(&written)?;
    let evaluation = evaluation::current()?;
    let found =
        crate::template::glob::files(&*evaluation.templar.controller(), Path::new(&pattern));
    // What is asked for from the playbook's directory on is told so, too.
    let base = match written.starts_with('/') {
        true => Path::new(""),
        false => &evaluation.templar.settings().playbook_dir,
    };
    Ok(found
        .into_iter()
        .map(|path| path.strip_prefix(base).map(Path::to_owned).unwrap_or(path))
        .map(|path| Value::from(path.to_string_lossy().into_owned()))
        .collect::<Vec<_>>()
        .into())
}

fn win_parts(path: &str) -> (&str, &str, &str) {
    let drive = if path.as_bytes().get(1) == Some(&b':') {
        2
    } else {
        0
    };
    let rest = &path[drive..];
    let name = rest.rfind(['\\', '/']).map_or(0, |at| at + 1);
    (&path[..drive], &rest[..name], &rest[name..])
}

fn win_basename(_: &mut State<'_, '_>, value: &Value, _: &Given) -> Result<Value, Error> {
    Ok(Value::from(win_parts(&text::str(value)?).2))
}

fn win_dirname(_: &mut State<'_, '_>, value: &Value, _: &Given) -> Result<Value, Error> {
    let path = text::str(value)?;
    let (drive, head, _) = win_parts(&path);
    let stripped = head.trim_end_matches(['\\', '/']);
    Ok(Value::from(format!(
        "{drive}{}",
        if stripped.is_empty() { head } else { stripped }
    )))
}

fn win_splitdrive(_: &mut State<'_, '_>, value: &Value, _: &Given) -> Result<Value, Error> {
    let path = text::str(value)?;
    let (drive, _, _) = win_parts(&path);
    Ok(Value::from(vec![
        Value::from(drive),
        Value::from(&path[drive.len()..]),
    ]))
}
