//! Dictionaries.

use indexmap::IndexMap;
use minijinja::value::ValueKind;
use minijinja::{Error, State, Value};

use crate::template::given::{Filter, Given, failed, items};
use crate::template::poison;
use crate::template::python::text::{self, pairs};

pub(super) const FILTERS: &[Filter] = &[
    Filter {
        names: "dict2items",
        parameters: "key_name value_name",
        run: dict2items,
    },
    Filter {
        names: "items2dict",
        parameters: "key_name value_name",
        run: items2dict,
    },
    Filter {
        names: "combine",
        parameters: "* recursive list_merge **",
        run: combine,
    },
    Filter {
        names: "dictsort",
        parameters: "case_sensitive by reverse",
        run: dictsort,
    },
    Filter {
        names: "items",
        parameters: "",
        run: item_pairs,
    },
    Filter {
        names: "extract",
        parameters: "container morekeys",
        run: extract,
    },
    Filter {
        names: "rekey_on_member",
        parameters: "key duplicates",
        run: rekey_on_member,
    },
    Filter {
        names: "attr",
        parameters: "name",
        run: attr,
    },
];

fn dict2items(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let (key_name, value_name) = (given.text(0, "key")?, given.text(1, "value")?);
    if value.kind() != ValueKind::Map {
        return Err(failed(format!(
            "dict2items requires a dictionary, got {} instead",
            text::type_name(value)
        )));
    }
    Ok(pairs(value)?
        .into_iter()
        .map(|(key, item)| Value::from_pairs([(key_name.clone(), key), (value_name.clone(), item)]))
        .collect::<Vec<_>>()
        .into())
}

fn items2dict(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let (key_name, value_name) = (given.text(0, "key")?, given.text(1, "value")?);
    let mut made = IndexMap::new();
    if !matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable) {
        return Err(failed(format!(
            "items2dict requires a list, got {} instead",
            text::type_name(value)
        )));
    }
    for item in items(value)? {
        if item.kind() != ValueKind::Map {
            return Err(failed(format!(
                "items2dict requires a list of dictionaries, got {} instead",
                text::repr(value)?
            )));
        }
        let part = |name: &str| {
            let part = item.get_attr(name)?;
            if part.is_undefined() {
                return Err(failed(format!(
                    "items2dict needs `{key_name}` and `{value_name}` in every item; one has no `{name}`"
                )));
            }
            Ok(part)
        };
        made.insert(part(&key_name)?, part(&value_name)?);
    }
    Ok(Value::from_pairs(made))
}

/// How lists of two dictionaries come together.
#[derive(Clone, Copy)]
enum ListMerge {
    Replace,
    Keep,
    Append,
    Prepend,
    AppendNew,
    PrependNew,
}

fn combine(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    if !given.named.is_empty() {
        return Err(failed(
            "'recursive' and 'list_merge' are the only valid keyword arguments",
        ));
    }
    let recursive = given.flag(0, false);
    let merge = match given.text(1, "replace")?.as_str() {
        "replace" => ListMerge::Replace,
        "keep" => ListMerge::Keep,
        "append" => ListMerge::Append,
        "prepend" => ListMerge::Prepend,
        "append_rp" => ListMerge::AppendNew,
        "prepend_rp" => ListMerge::PrependNew,
        other => return Err(given.wrong(&format!(
            "knows no list_merge `{other}`: replace, keep, append, prepend, append_rp, prepend_rp"
        ))),
    };
    let mut layers = Vec::new();
    for part in std::iter::once(value).chain(&given.rest) {
        gather(part, &mut layers, true)?;
    }
    let mut made = Value::from_pairs(Vec::<(String, Value)>::new());
    for layer in layers {
        made = merged(&made, &layer, recursive, merge)?;
    }
    Ok(made)
}

/// Lists of dictionaries are combined, too, in their order.
fn gather(part: &Value, layers: &mut Vec<Value>, lists: bool) -> Result<(), Error> {
    match part.kind() {
        // Nothing adds nothing.
        ValueKind::None => {}
        ValueKind::Map => layers.push(part.clone()),
        ValueKind::Seq | ValueKind::Iterable if lists => {
            for item in items(part)? {
                gather(&item, layers, false)?;
            }
        }
        _ => {
            return Err(failed(format!(
                "failed to combine variables, expected dicts but got a '{}'",
                text::type_name(part)
            )));
        }
    }
    Ok(())
}

fn merged(under: &Value, over: &Value, recursive: bool, merge: ListMerge) -> Result<Value, Error> {
    let mut made: IndexMap<Value, Value> = pairs(under)?.into_iter().collect();
    for (key, new) in pairs(over)? {
        let value = match made.get(&key) {
            None => new,
            Some(old) => {
                let list =
                    |value: &Value| matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable);
                if recursive && old.kind() == ValueKind::Map && new.kind() == ValueKind::Map {
                    merged(old, &new, recursive, merge)?
                } else if list(old) && list(&new) {
                    merged_list(old, &new, merge)?
                } else {
                    new
                }
            }
        };
        made.insert(key, value);
    }
    Ok(Value::from_pairs(made))
}

fn merged_list(old: &Value, new: &Value, merge: ListMerge) -> Result<Value, Error> {
    let (old, new) = (items(old)?, items(new)?);
    let without = |list: &[Value], present: &[Value]| -> Vec<Value> {
        list.iter()
            .filter(|item| !present.contains(item))
            .cloned()
            .collect()
    };
    Ok(match merge {
        ListMerge::Replace => new,
        ListMerge::Keep => old,
        ListMerge::Append => [old, new].concat(),
        ListMerge::Prepend => [new, old].concat(),
        ListMerge::AppendNew => [without(&old, &new), new].concat(),
        ListMerge::PrependNew => {
            let kept = without(&old, &new);
            [new, kept].concat()
        }
    }
    .into())
}

fn dictsort(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let by_value = match given.text(1, "key")?.as_str() {
        "key" => false,
        "value" => true,
        other => return Err(given.wrong(&format!("sorts by key or value, not by `{other}`"))),
    };
    let case = given.flag(0, false);
    let mut found = pairs(value)?;
    found.sort_by_cached_key(|(key, item)| {
        super::order::sort_key(if by_value { item } else { key }, case)
    });
    if given.flag(2, false) {
        found.reverse();
    }
    Ok(found
        .into_iter()
        .map(|(key, item)| text::tuple([key, item]))
        .collect::<Vec<_>>()
        .into())
}

fn item_pairs(_: &mut State<'_, '_>, value: &Value, _: &Given) -> Result<Value, Error> {
    Ok(pairs(value)?
        .into_iter()
        .map(|(key, item)| text::tuple([key, item]))
        .collect::<Vec<_>>()
        .into())
}

fn extract(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let mut found = given.need(0)?.get_item(value)?;
    let more = match given.some(1) {
        None => Vec::new(),
        Some(keys) if matches!(keys.kind(), ValueKind::Seq | ValueKind::Iterable) => items(keys)?,
        Some(key) => vec![key.clone()],
    };
    for key in more {
        if poison::touch(&found) {
            return Ok(found);
        }
        found = poison::step(&found).get_item(&key)?;
    }
    Ok(found)
}

fn rekey_on_member(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let member = given.need(0)?;
    let overwrite = match given.text(1, "error")?.as_str() {
        "error" => false,
        "overwrite" => true,
        other => {
            return Err(failed(format!(
                "duplicates parameter to rekey_on_member has unknown value '{other}': it is error or overwrite"
            )));
        }
    };
    let all = match value.kind() {
        ValueKind::Map => pairs(value)?.into_iter().map(|pair| pair.1).collect(),
        ValueKind::Seq | ValueKind::Iterable => items(value)?,
        _ => return Err(failed("Type is not a valid list, set, or dict")),
    };
    let mut made = IndexMap::new();
    for item in all {
        if item.kind() != ValueKind::Map {
            return Err(failed("List item is not a valid dict"));
        }
        let key = item.get_item(member)?;
        if key.is_undefined() {
            return Err(failed(format!("Key '{member}' was not found")));
        }
        if made.insert(key.clone(), item).is_some() && !overwrite {
            return Err(failed(format!(
                "Key {} is not unique, cannot convert to dict",
                text::repr(&key)?
            )));
        }
    }
    Ok(Value::from_pairs(made))
}

fn attr(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    // The keys of a dictionary are no attributes of it.
    match value.kind() {
        ValueKind::Map => Ok(Value::UNDEFINED),
        _ => value.get_item(given.need(0)?),
    }
}
