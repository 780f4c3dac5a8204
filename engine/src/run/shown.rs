//! What a task changed, as `register` sees it in diff mode: Ansible's `diff`, made of the effects.

use fleet_wire::{Content, Effect, Entry, Meta, SettingKind, What};
use serde_json::{Map, Value, json};

/// The field `diff` of a result; none where there is nothing that Ansible would show.
pub(super) fn diff(module: &str, result: &Value, effects: &[Effect]) -> Option<Value> {
    if module == "file" {
        return Some(attributes(result, effects));
    }
    let mut shown: Vec<Value> = effects.iter().filter_map(content).collect();
    match module {
        // One file, one mapping.
        "assemble" | "replace" => shown.pop(),
        _ if shown.is_empty() => None,
        _ => Some(shown.into()),
    }
}

/// A file's old and new content.
fn content(effect: &Effect) -> Option<Value> {
    let What::File {
        path,
        before,
        after,
    } = &effect.what
    else {
        return None;
    };
    if effect.secret || !matches!((before, after), (Entry::File(..), _) | (_, Entry::File(..))) {
        return None;
    }
    let text = |entry: &Entry| match entry {
        Entry::File(_, Content { bytes, size, .. }) => match bytes {
            Some(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            None if *size == 0 => String::new(),
            None => "diff skipped: source file is too large".to_owned(),
        },
        _ => String::new(),
    };
    let header = |entry: &Entry| match entry {
        Entry::File(..) => path.as_str(),
        _ => "",
    };
    let (before_header, after_header) = (header(before), header(after));
    Some(
        json!({"before": text(before), "after": text(after), "before_header": before_header, "after_header": after_header}),
    )
}

/// What `file` set: of the path alone where that was nothing.
fn attributes(result: &Value, effects: &[Effect]) -> Value {
    let path = ["path", "dest"]
        .iter()
        .find_map(|name| result.get(name)?.as_str());
    let mut before = Map::from_iter([("path".to_owned(), path.into())]);
    let mut after = before.clone();
    for effect in effects {
        match &effect.what {
            What::File {
                path: own,
                before: old,
                after: new,
            } if Some(own.as_str()) == path => differences(old, new, &mut before, &mut after),
            What::Setting {
                kind: SettingKind::Times,
                before: old,
                after: new,
                ..
            } => {
                for (side, times) in [(&mut before, old), (&mut after, new)] {
                    let times = times.split(' ').filter_map(|time| time.split_once('='));
                    side.extend(times.map(|(name, at)| (name.to_owned(), at.into())));
                }
            }
            _ => {}
        }
    }
    let gone: Vec<(&str, &Entry)> = effects
        .iter()
        .filter_map(|effect| match &effect.what {
            What::File {
                path: own,
                before,
                after: Entry::Absent,
            } if Some(own.as_str()) != path => Some((own.as_str(), before)),
            _ => None,
        })
        .collect();
    let was_dir = before.get("state").and_then(Value::as_str) == Some("directory");
    if was_dir && after.get("state").and_then(Value::as_str) == Some("absent") {
        let of = |dirs: bool| -> Vec<&str> {
            let fits = |entry: &Entry| matches!(entry, Entry::Dir(_)) == dirs;
            gone.iter()
                .filter(|(_, entry)| fits(entry))
                .map(|(path, _)| *path)
                .collect()
        };
        let content = json!({"directories": of(true), "files": of(false)});
        before.insert("path_content".to_owned(), content);
    }
    json!({"before": before, "after": after})
}

fn differences(
    old: &Entry,
    new: &Entry,
    before: &mut Map<String, Value>,
    after: &mut Map<String, Value>,
) {
    let state = |entry: &Entry| match entry {
        Entry::Absent => "absent",
        Entry::File(..) | Entry::Special => "file",
        Entry::Dir(_) => "directory",
        Entry::Link(_) => "link",
    };
    let mut differ = |name: &str, old: Option<String>, new: Option<String>| {
        if old != new {
            before.insert(name.to_owned(), old.into());
            after.insert(name.to_owned(), new.into());
        }
    };
    differ(
        "state",
        Some(state(old).to_owned()),
        Some(state(new).to_owned()),
    );
    let target = |entry: &Entry| match entry {
        Entry::Link(target) => Some(target.clone()),
        _ => None,
    };
    differ("src", target(old), target(new));
    let meta = |entry: &Entry| -> Option<Meta> {
        match entry {
            Entry::File(meta, _) | Entry::Dir(meta) => Some(meta.clone()),
            _ => None,
        }
    };
    if let (Some(old), Some(new)) = (meta(old), meta(new)) {
        let mode = |mode: u32| Some(format!("0{mode:03o}"));
        differ("mode", mode(old.mode), mode(new.mode));
        differ("owner", Some(old.owner), Some(new.owner));
        differ("group", Some(old.group), Some(new.group));
    }
}

#[cfg(test)]
mod tests {
    use fleet_wire::UndoClass;

    use super::*;

    fn effect(path: &str, before: Entry, after: Entry) -> Effect {
        Effect {
            what: What::File {
                path: path.to_owned(),
                before,
                after,
            },
            undo: UndoClass::Exact,
            assumed: false,
            secret: false,
        }
    }

    fn meta(mode: u32) -> Meta {
        Meta {
            mode,
            owner: "root".to_owned(),
            group: "root".to_owned(),
        }
    }

    fn file(text: &str) -> Entry {
        let content = Content {
            sha256: text.to_owned(),
            size: text.len() as u64,
            bytes: Some(text.into()),
        };
        Entry::File(meta(0o644), content)
    }

    #[test]
    fn contents_are_shown_as_ansible_does() {
        let one = effect("/f", Entry::Absent, file("new"));
        let shown =
            json!({"before": "", "after": "new", "before_header": "", "after_header": "/f"});
        assert_eq!(
            diff("copy", &json!({}), std::slice::from_ref(&one)),
            Some(json!([shown]))
        );
        assert_eq!(diff("assemble", &json!({}), &[one]), Some(shown));
        assert_eq!(diff("copy", &json!({}), &[]), None);
    }

    #[test]
    fn attributes_are_shown_where_they_differ() {
        let told = json!({"path": "/f"});
        let moded = effect("/f", Entry::Dir(meta(0o755)), Entry::Dir(meta(0o1777)));
        assert_eq!(
            diff("file", &told, &[moded]),
            Some(
                json!({"before": {"path": "/f", "mode": "0755"}, "after": {"path": "/f", "mode": "01777"}})
            )
        );
        assert_eq!(
            diff("file", &told, &[]),
            Some(json!({"before": {"path": "/f"}, "after": {"path": "/f"}}))
        );
        let gone = [
            effect("/f/d/x", file("x"), Entry::Absent),
            effect("/f/d", Entry::Dir(meta(0o755)), Entry::Absent),
            effect("/f", Entry::Dir(meta(0o755)), Entry::Absent),
        ];
        let shown = diff("file", &told, &gone).unwrap();
        assert_eq!(
            shown["before"]["path_content"],
            json!({"directories": ["/f/d"], "files": ["/f/d/x"]})
        );
        assert_eq!(
            (&shown["before"]["state"], &shown["after"]["state"]),
            (&json!("directory"), &json!("absent"))
        );
    }
}
