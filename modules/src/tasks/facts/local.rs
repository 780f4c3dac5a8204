use serde_json::{Map, Value, json};

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
    serde_json::from_str(&text)
        .ok()
        .or_else(|| ini(&text))
        .unwrap_or_else(|| {
            json!(format!(
                "error loading facts as JSON or ini - please check content: {path}"
            ))
        })
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
        section.insert(key.clone(), bare[at + 1..].trim().into());
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
