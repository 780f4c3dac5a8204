//! The `inventory_hostnames` lookup: the hosts that a pattern means, among those of `groups`.

use minijinja::{Error, Value};

use super::{Asked, Lookup};
use crate::template::failure::EvalError;
use crate::template::filters::python_regex;
use crate::template::given::{failed, items};
use crate::template::glob;
use crate::template::python::text;

pub(super) const LOOKUPS: &[Lookup] = &[Lookup {
    names: "inventory_hostnames",
    run: inventory_hostnames,
}];

/// Groups and their hosts, in the order of the inventory.
type Groups = Vec<(String, Vec<String>)>;

fn inventory_hostnames(asked: &Asked) -> Result<Vec<Value>, Error> {
    let known = asked
        .evaluation
        .variable("groups")
        .map_err(EvalError::into_minijinja)?
        .ok_or_else(|| failed("there is no inventory to look for hosts in"))?;
    let mut groups = Groups::new();
    for (group, members) in text::pairs(&known)? {
        let members: Result<Vec<String>, Error> = items(&members)?.iter().map(text::str).collect();
        groups.push((text::str(&group)?, members?));
    }
    let pattern = asked.texts()?.join(",");
    Ok(selected(&groups, &pattern)?
        .into_iter()
        .map(Value::from)
        .collect())
}

/// First what is named, then what is common with each `&part`, then what is left without each `!part`.
fn selected(groups: &Groups, pattern: &str) -> Result<Vec<String>, Error> {
    let parts: Vec<&str> = pattern
        .split([',', ':'])
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .collect();
    let mut found: Vec<String> = Vec::new();
    let regular: Vec<&str> = parts
        .iter()
        .filter(|part| !part.starts_with(['&', '!']))
        .copied()
        .collect();
    let all = ["all"];
    for part in if regular.is_empty() {
        &all[..]
    } else {
        &regular
    } {
        for host in matching(groups, part)? {
            if !found.contains(&host) {
                found.push(host);
            }
        }
    }
    for (sign, keep) in [('&', true), ('!', false)] {
        for part in parts.iter().filter_map(|part| part.strip_prefix(sign)) {
            let other = matching(groups, part)?;
            found.retain(|host| other.contains(host) == keep);
        }
    }
    Ok(found)
}

fn matching(groups: &Groups, part: &str) -> Result<Vec<String>, Error> {
    let regex = part
        .strip_prefix('~')
        .map(|pattern| python_regex(&format!("\\A(?:{pattern})"), false, false))
        .transpose()?;
    let fits = |name: &str| match &regex {
        Some(regex) => regex.is_match(name),
        None => Ok(glob::fits(part, name)),
    };
    let mut found: Vec<String> = Vec::new();
    let mut add = |host: &String| {
        if !found.contains(host) {
            found.push(host.clone());
        }
    };
    let mut by_group = false;
    for (group, members) in groups {
        if part == "all" || fits(group)? {
            by_group = true;
            members.iter().for_each(&mut add);
        }
    }
    if !by_group || regex.is_some() || part.contains(['.', '?', '*', '[']) {
        for (_, members) in groups {
            for host in members {
                if fits(host)? {
                    add(host);
                }
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_the_inventorys() {
        let group = |name: &str, hosts: &[&str]| {
            let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
            (name.to_owned(), hosts)
        };
        let groups = vec![
            group("all", &["a1", "a2", "b1"]),
            group("a", &["a1", "a2"]),
            group("b", &["b1"]),
        ];
        let hosts = |pattern| selected(&groups, pattern).unwrap();
        assert_eq!(hosts("a"), ["a1", "a2"]);
        assert_eq!(hosts("all:!a2"), ["a1", "b1"]);
        assert_eq!(hosts("!a"), ["b1"]);
        assert_eq!(hosts("?1:&a"), ["a1"]);
        assert_eq!(hosts("~b\\d"), ["b1"]);
        assert_eq!(hosts("nobody"), Vec::<String>::new());
    }
}
