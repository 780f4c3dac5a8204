use serde_json::{Map, Value};

use super::{Facts, source::Source};

/// Facts that the host's owner keeps in `*.fact` files: JSON or INI, or a program that prints one of these.
pub(super) fn gather(source: &Source<'_>, dir: &str, facts: &mut Facts) {
    let mut local = Map::new();
    for name in source.names(dir) {
        if let Some(key) = name.strip_suffix(".fact") {
            let path = format!("{dir}/{name}");
            local.insert(key.to_owned(), fact(source, &path));
        }
    }
    facts.put("local", local);
}

/// What is wrong with a fact stands in its place, as in Ansible: one bad file must not hide the others.
fn fact(source: &Source<'_>, path: &str) -> Value {
    use std::os::unix::fs::PermissionsExt;
    let text = match std::fs::metadata(source.at(path)) {
        Err(error) => return format!("Could not stat fact ({path}): {error}").into(),
        Ok(meta) if meta.permissions().mode() & 0o100 == 0 => source.text(path).unwrap_or_default(),
        Ok(_) => match source.probe(&[path]) {
            None => return format!("Could not execute fact script ({path})").into(),
            Some(answer) if !answer.ok => {
                return format!(
                    "Failure executing fact script ({path}), err: {}",
                    answer.stderr
                )
                .into();
            }
            Some(answer) => answer.stdout,
        },
    };
    let read = serde_json::from_str(&text).ok().or_else(|| ini(&text));
    let Some(mut read) = read else {
        return format!("error loading facts as JSON or ini - please check content: {path}").into();
    };
    match filled(&mut read) {
        Ok(()) => read,
        Err(problem) => {
            format!("error loading facts as ini - please check content: {path} ({problem})").into()
        }
    }
}

/// Marks a value of an INI file in which `%(key)s` is still to be filled in. JSON's values have none.
const RAW: char = '\u{1}';

/// Fills in what `%(key)s` stands for in the values of INI sections; `%%` is a percent sign.
fn filled(sections: &mut Value) -> Result<(), String> {
    let sections = sections
        .as_object_mut()
        .into_iter()
        .flat_map(|map| map.values_mut());
    for section in sections.filter_map(Value::as_object_mut) {
        let own = section.clone();
        for value in section.values_mut() {
            if let Some(raw) = value.as_str().and_then(|text| text.strip_prefix(RAW)) {
                *value = fill(raw, &own, 0)?.into();
            }
        }
    }
    Ok(())
}

fn fill(text: &str, section: &Map<String, Value>, depth: usize) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        let sign = &rest[at..];
        if let Some(after) = sign.strip_prefix("%%") {
            out.push('%');
            rest = after;
            continue;
        }
        let named = sign
            .strip_prefix("%(")
            .and_then(|named| named.split_once(")s"));
        let Some((name, after)) = named else {
            return Err(format!(
                "'%' must be followed by '%' or '(', found: '{sign}'"
            ));
        };
        let value = section.get(&name.to_lowercase()).and_then(Value::as_str);
        let Some(value) = value.filter(|_| depth < 10) else {
            return Err(format!("Bad value substitution: `{name}`"));
        };
        out.push_str(&fill(value.trim_start_matches(RAW), section, depth + 1)?);
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

/// Sections of `key = value` or `key: value`, keys in lower case, `[DEFAULT]` in each of them; indented lines
/// go on with the value before.
fn ini(text: &str) -> Option<Value> {
    let mut sections: Vec<(String, Map<String, Value>)> = Vec::new();
    let mut last: Option<String> = None;
    for line in text.lines() {
        let bare = line.trim();
        if bare.is_empty() || bare.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = bare
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            if sections.iter().any(|(known, _)| known == name) {
                return None;
            }
            sections.push((name.to_owned(), Map::new()));
            last = None;
            continue;
        }
        let (_, section) = sections.last_mut()?;
        if line.starts_with([' ', '\t'])
            && let Some(Value::String(value)) = last.as_ref().and_then(|key| section.get_mut(key))
        {
            value.push('\n');
            value.push_str(bare);
            continue;
        }
        let at = bare.find(['=', ':'])?;
        let key = bare[..at].trim().to_lowercase();
        let value = bare[at + 1..].trim();
        section.insert(key.clone(), format!("{RAW}{value}").into());
        last = Some(key);
    }
    let defaults = sections
        .iter()
        .find(|(name, _)| name == "DEFAULT")
        .map(|(_, section)| section.clone())
        .unwrap_or_default();
    let sections: Map<String, Value> = sections
        .into_iter()
        .filter(|(name, _)| name != "DEFAULT")
        .map(|(name, own)| {
            let mut section = defaults.clone();
            section.extend(own);
            (name, section.into())
        })
        .collect();
    Some(sections.into())
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt, path::Path};

    use serde_json::json;

    use super::super::{
        Facts,
        source::{Answer, Source},
    };

    #[test]
    fn fact_files_are_json_or_ini_or_programs() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("etc/ansible/facts.d");
        fs::create_dir_all(&dir).unwrap();
        let write = |name: &str, text: &str, mode: u32| {
            fs::write(dir.join(name), text).unwrap();
            fs::set_permissions(dir.join(name), fs::Permissions::from_mode(mode)).unwrap();
        };
        write("a.fact", "{\"role\": \"web\"}", 0o644);
        write(
            "b.fact",
            "[DEFAULT]\nzone = x\n[General]\nAsdf: 1\nbar=2\n  more\n",
            0o644,
        );
        write("c.fact", "#!/bin/sh\n", 0o755);
        write("d.fact", "neither\n", 0o644);
        write("ignored.txt", "{}", 0o644);
        let program = |argv: &[&str]| {
            assert_eq!(argv, ["/etc/ansible/facts.d/c.fact"]);
            Some(Answer {
                ok: true,
                stdout: "[1, 2]".to_owned(),
                stderr: String::new(),
            })
        };
        let source = Source::new(Path::new(root.path()), (0, 0), &[], &program);
        let mut facts = Facts::default();
        super::gather(&source, "/etc/ansible/facts.d", &mut facts);
        assert_eq!(
            facts.get("local"),
            Some(&json!({
                "a": {"role": "web"},
                "b": {"General": {"zone": "x", "asdf": "1", "bar": "2\nmore"}},
                "c": [1, 2],
                "d": "error loading facts as JSON or ini - please check content: /etc/ansible/facts.d/d.fact",
            }))
        );
    }
}
