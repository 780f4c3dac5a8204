//! `plugin: constructed`: variables and groups that follow from the variables of the hosts so far.

use std::{borrow::Cow, path::PathBuf, sync::Arc};

use fleet_yaml::{Diagnostic, Kind, Map, Node};
use minijinja::{Value, value::ValueKind};

use super::{flag, mapping, other, scope::Names, unknown_keys};
use crate::{
    inventory::{
        Inventory, LoadOptions,
        beside::Beside,
        build::{Build, safe_name},
        mistake::{code, mistake, oddity},
    },
    template::Templar,
    variables::Scope,
};

const KEYS: [&str; 8] = [
    "plugin",
    "strict",
    "compose",
    "groups",
    "keyed_groups",
    "leading_separator",
    "use_vars_plugins",
    "use_extra_vars",
];

const KEYED: [&str; 6] = [
    "key",
    "prefix",
    "separator",
    "parent_group",
    "default_value",
    "trailing_separator",
];

pub(super) fn read(
    build: &mut Build,
    root: &Map,
    options: &LoadOptions,
    dirs: &[PathBuf],
) -> Result<(), Diagnostic> {
    unknown_keys(build, root, &KEYS);
    let keyed = keyed(build, root)?;
    let compose = mapping(root, "compose")?;
    let groups = mapping(root, "groups")?;
    let strict = flag(root, "strict", false)?;
    let leading = flag(root, "leading_separator", true)?;
    let extra = flag(root, "use_extra_vars", options.use_extra_vars)?;
    let extra = extra.then_some(&options.extra_vars);
    let so_far = so_far(build, options, flag(root, "use_vars_plugins", false)?, dirs)?;
    for host in build.graph.hosts.keys().cloned().collect::<Vec<_>>() {
        let index = build.graph.host(&host, None, None);
        let mut names = Names::of_host(&so_far, &host, extra);
        let mut maker = Maker {
            templar: &options.templar,
            host: &host,
            strict,
            scope: Arc::new(Names::default()),
        };
        maker.scope = Arc::new(Names(names.0.clone()));
        for (name, expression) in compose.into_iter().flat_map(Map::iter) {
            let why = format!("Could not set {} for host {host}", name.raw());
            if let Some(value) = maker.value(expression, &why)? {
                let value = node(&value, expression);
                build
                    .graph
                    .set_host_var(index, &name.key_text(), value.clone());
                names.0.insert(name.key_text(), value);
            }
        }
        maker.scope = Arc::new(names);
        for (name, condition) in groups.into_iter().flat_map(Map::iter) {
            let why = format!("Could not add host {host} to group {}", name.raw());
            if maker.holds(condition, &why)? {
                let group = build.graph.group(&safe_name(&name.key_text()));
                build.graph.join(index, group);
            }
        }
        for entry in &keyed {
            maker.keyed(build, index, entry, leading)?;
        }
    }
    Ok(())
}

/// The hosts as they are, with the files beside their sources where these are wanted.
fn so_far(
    build: &Build,
    options: &LoadOptions,
    files: bool,
    dirs: &[PathBuf],
) -> Result<Inventory, Diagnostic> {
    let (beside, errors) = if files {
        Beside::find(dirs, &[], &options.vault)
    } else {
        (Beside::default(), Vec::new())
    };
    if let Some(error) = errors.into_iter().next() {
        return Err(error);
    }
    let inventory = Inventory::over(build.graph.clone(), beside, options.precedence.clone());
    inventory.map_err(|errors| {
        let first = errors.into_iter().next();
        first.unwrap_or_else(|| Diagnostic::without_place("the inventory cannot be read"))
    })
}

/// An entry of `keyed_groups`.
struct Keyed<'a> {
    key: &'a Node,
    prefix: String,
    separator: String,
    parent: Option<&'a Node>,
    default: Option<String>,
    trailing: bool,
}

fn keyed<'a>(build: &mut Build, root: &'a Map) -> Result<Vec<Keyed<'a>>, Diagnostic> {
    let Some(list) = root.get("keyed_groups").filter(|list| !list.is_null()) else {
        return Ok(Vec::new());
    };
    let Some(items) = list.as_seq() else {
        return Err(other(list, "keyed_groups", "a list of mappings"));
    };
    let mut keyed = Vec::new();
    for item in items {
        let Some(map) = item.as_map() else {
            return Err(other(item, "keyed_groups", "a mapping with a `key`"));
        };
        unknown_keys(build, map, &KEYED);
        let Some(key) = map.get("key").filter(|key| !key.is_null()) else {
            let what = "a keyed group without a `key` is passed over";
            build.warnings.push(oddity(code::SOURCE, &item.span, what));
            continue;
        };
        let words = |key| {
            let node = map.get(key).filter(|node| !node.is_null());
            node.and_then(Node::scalar_text).map(Cow::into_owned)
        };
        let trailing = flag(map, "trailing_separator", true)?;
        let default = words("default_value");
        if default.is_some() && map.get("trailing_separator").is_some() {
            let what = "parameters are mutually exclusive for keyed groups: default_value|trailing_separator";
            return Err(mistake(code::SOURCE, &item.span, what));
        }
        keyed.push(Keyed {
            key,
            prefix: words("prefix").unwrap_or_default(),
            separator: words("separator").unwrap_or_else(|| "_".to_owned()),
            parent: map.get("parent_group").filter(|parent| !parent.is_null()),
            default,
            trailing,
        });
    }
    Ok(keyed)
}

/// A value that an expression gave, at the place of the expression: data, which is never rendered again.
fn node(value: &Value, written: &Node) -> Node {
    let value = serde_json::to_value(value).unwrap_or_default();
    as_data(Node::from_json(&value, &written.span))
}

fn as_data(mut node: Node) -> Node {
    match &node.kind {
        Kind::Str(_) => node.tag = Some("unsafe".into()),
        Kind::Seq(items) => {
            let items: Vec<Node> = items.iter().cloned().map(as_data).collect();
            node = Node::sequence(items, &node.span);
        }
        Kind::Map(map) => {
            let entries = map
                .iter()
                .map(|(key, item)| (key.clone(), as_data(item.clone())));
            let entries: Vec<_> = entries.collect();
            node = Node::mapping(entries, &node.span);
        }
        _ => {}
    }
    node
}

/// Works out expressions for one host.
struct Maker<'a> {
    templar: &'a Templar,
    host: &'a str,
    strict: bool,
    scope: Arc<dyn Scope>,
}

impl Maker<'_> {
    /// The value of an expression. None where it has none and need not have one.
    fn value(&self, expression: &Node, why: &str) -> Result<Option<Value>, Diagnostic> {
        let text = format!("{{{{ {} }}}}", expression.scalar_text().unwrap_or_default());
        let template = Node::string(&text, &expression.span);
        let value = self.templar.value(&template, &self.scope);
        self.settled(
            value.map(|value| value.known()).map_err(Into::into),
            expression,
            why,
        )
    }

    /// Whether a condition is true: nothing else will do, as with Ansible.
    fn holds(&self, condition: &Node, why: &str) -> Result<bool, Diagnostic> {
        let Some(value) = self.value(condition, why)? else {
            return Ok(false);
        };
        if value.kind() != ValueKind::Bool && self.strict {
            let what = format!(
                "{why}: the condition is {}, and not true or false",
                value.kind()
            );
            return Err(mistake(code::SOURCE, &condition.span, what));
        }
        Ok(value == Value::from(true))
    }

    /// A rendered text.
    fn text(&self, node: &Node, why: &str) -> Result<Option<String>, Diagnostic> {
        let value = self.templar.value(node, &self.scope);
        let value = value.map(|value| value.known()).map_err(Into::into);
        let value = self.settled(value, node, why)?;
        Ok(value.map(|value| value.to_string()))
    }

    fn settled<T>(
        &self,
        value: Result<Option<T>, Diagnostic>,
        written: &Node,
        why: &str,
    ) -> Result<Option<T>, Diagnostic> {
        match value {
            Ok(value) => Ok(value),
            Err(_) if !self.strict => Ok(None),
            Err(mut mistake) => {
                mistake.message = format!("{why}: {}", mistake.message);
                Err(mistake.or_at(&written.span))
            }
        }
    }

    /// Puts the host into the groups that an entry names, and these into their parent.
    fn keyed(
        &self,
        build: &mut Build,
        host: usize,
        entry: &Keyed<'_>,
        leading: bool,
    ) -> Result<(), Diagnostic> {
        let Some(names) = self.names(entry)? else {
            return Ok(());
        };
        let parent = match entry.parent {
            Some(written) => match self.text(written, &self.no_group(entry))? {
                Some(parent) => Some((parent, written)),
                None => return Ok(()),
            },
            None => None,
        };
        for name in names {
            let separator = if entry.prefix.is_empty() && !leading {
                ""
            } else {
                &entry.separator
            };
            let name = format!("{}{separator}{name}", entry.prefix);
            let group = build.graph.group(&safe_name(&name));
            build.graph.join(host, group);
            if let Some((parent, written)) = &parent {
                let parent = build.graph.group(&safe_name(parent));
                build.contain(parent, group, &written.span)?;
            }
        }
        Ok(())
    }

    /// The names that a key stands for: a text, the items of a list, or the entries of a mapping.
    fn names(&self, entry: &Keyed<'_>) -> Result<Option<Vec<String>>, Diagnostic> {
        let Some(value) = self.value(entry.key, &self.no_group(entry))? else {
            return Ok(None);
        };
        let or_default = |value: &Value| match &entry.default {
            Some(default) if value.is_none() || value.as_str() == Some("") => default.clone(),
            _ => text(value),
        };
        if !value.is_true() {
            let empty = value.is_none() || value.as_str() == Some("");
            return match &entry.default {
                Some(default) if empty => Ok(Some(vec![default.clone()])),
                _ if self.strict => Err(mistake(
                    code::SOURCE,
                    &entry.key.span,
                    format!(
                        "No key or key resulted empty for {} in host {}, invalid entry",
                        entry.key.raw(),
                        self.host
                    ),
                )),
                _ => Ok(None),
            };
        }
        let items = || value.try_iter().into_iter().flatten();
        Ok(Some(match value.kind() {
            ValueKind::String => vec![value.to_string()],
            ValueKind::Seq => items().map(|item| or_default(&item)).collect(),
            ValueKind::Map => items()
                .map(|key| {
                    let item = value.get_item(&key).unwrap_or_default();
                    let nothing = item.is_none() || item.as_str() == Some("");
                    if nothing && !entry.trailing {
                        return text(&key);
                    }
                    format!("{}{}{}", text(&key), entry.separator, or_default(&item))
                })
                .collect(),
            kind => {
                let what =
                    "Invalid group name format, expected a string or a list of them or dictionary";
                return Err(mistake(
                    code::SOURCE,
                    &entry.key.span,
                    format!("{what}, got: {kind}"),
                ));
            }
        }))
    }

    fn no_group(&self, entry: &Keyed<'_>) -> String {
        format!(
            "Could not generate group for host {} from {} entry",
            self.host,
            entry.key.raw()
        )
    }
}

/// A value as a part of a name.
fn text(value: &Value) -> String {
    match value.kind() {
        ValueKind::None | ValueKind::Undefined => "None".to_owned(),
        ValueKind::Bool if value.is_true() => "True".to_owned(),
        ValueKind::Bool => "False".to_owned(),
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::lab::{Lab, var};

    const HOSTS: &str = "all:\n  hosts:\n    h0:\n      d: {a: x, e: '', n: ~, b: true}\n      l: [db, '', ~, 5]\n      s: str\n      none: ~\n      num: 7\n";

    /// The groups that a constructed inventory adds to the host.
    fn groups(text: &str) -> String {
        let lab = lab(text);
        let inventory = lab.load(&["h.yml", "c.yml"]);
        inventory
            .group_names(inventory.host("h0").unwrap())
            .join(" ")
    }

    fn lab(text: &str) -> Lab {
        Lab::new(&[
            ("h.yml", HOSTS),
            (
                "c.yml",
                &format!("plugin: ansible.builtin.constructed\n{text}\n"),
            ),
        ])
    }

    #[test]
    fn variables_follow_from_variables() {
        let text =
            "compose: {num: num + 1, b: num * 2, no: nope, s: \"'{{ x }}' ~ inventory_hostname\"}";
        let inventory = lab(text).load(&["h.yml", "c.yml"]);
        assert_eq!(var(&inventory, "h0", "num"), json!(8));
        // All are worked out from what was there before.
        assert_eq!(var(&inventory, "h0", "b"), json!(14));
        assert_eq!(var(&inventory, "h0", "s"), json!("{{ x }}h0"));
        assert_eq!(var(&inventory, "h0", "no"), json!(null));
    }

    #[test]
    fn conditions_make_groups_where_they_are_true_itself() {
        let text = "groups: {a-b: true, c: s == 'str', d: nope, n: num, f: \"inventory_hostname in group_names\"}";
        assert_eq!(groups(text), "a_b c");
    }

    #[test]
    fn keys_make_groups() {
        let keyed = |entry: &str| groups(&format!("keyed_groups: [{{{entry}}}]"));
        assert_eq!(keyed("key: s, prefix: p"), "p_str");
        assert_eq!(keyed("key: s"), "_str");
        assert_eq!(keyed("key: s, separator: ''"), "str");
        assert_eq!(keyed("key: l, prefix: p"), "p_ p_5 p_None p_db");
        assert_eq!(keyed("key: l, prefix: p, default_value: x"), "p_5 p_db p_x");
        assert_eq!(keyed("key: d, prefix: p"), "p_a_x p_b_True p_e_ p_n_None");
        assert_eq!(
            keyed("key: d, prefix: p, default_value: x"),
            "p_a_x p_b_True p_e_x p_n_x"
        );
        assert_eq!(
            keyed("key: d, prefix: p, trailing_separator: no"),
            "p_a_x p_b_True p_e p_n"
        );
        assert_eq!(keyed("key: none, prefix: p, default_value: x"), "p_x");
        assert_eq!(keyed("key: nope, prefix: p, default_value: x"), "ungrouped");
        assert_eq!(keyed("key: s, parent_group: 'all_{{ s }}'"), "_str all_str");
        assert_eq!(keyed("key: s, parent_group: '{{ nope }}'"), "ungrouped");
        assert_eq!(
            groups("keyed_groups: [{key: s}]\nleading_separator: no"),
            "str"
        );
    }

    #[test]
    fn what_is_strict_or_of_no_use_is_told() {
        let errors = |text: &str| lab(text).errors(&["h.yml", "c.yml"]);
        insta::assert_snapshot!(errors("strict: yes\ncompose: {a: nope}"), @"
        error[F0301]: Could not set a for host h0: 'nope' is undefined
         --> c.yml:3:14
          |
        3 | compose: {a: nope}
          |              ^^^^
          |
          = help: did you mean `none`?
        ");
        insta::assert_snapshot!(errors("keyed_groups: [{key: num}]"), @"
        error[F0201]: Invalid group name format, expected a string or a list of them or dictionary, got: number
         --> c.yml:2:22
          |
        2 | keyed_groups: [{key: num}]
          |                      ^^^
        ");
        insta::assert_snapshot!(errors("keyed_groups: {key: num}"), @"
        error[F0201]: `keyed_groups` is a mapping
         --> c.yml:2:15
          |
        2 | keyed_groups: {key: num}
          |               ^^^^^^^^^^ expected a list of mappings
        ");
    }

    #[test]
    fn files_of_variables_are_seen_where_they_are_wanted() {
        let files = [
            ("h.yml", "web: {hosts: {h0: }}\n"),
            ("group_vars/web", "v: x\n"),
            (
                "without.yml",
                "plugin: constructed\nkeyed_groups: [{key: v}]\n",
            ),
            (
                "with.yml",
                "plugin: constructed\nuse_vars_plugins: yes\nkeyed_groups: [{key: v}]\n",
            ),
        ];
        for (file, groups) in [("without.yml", "web"), ("with.yml", "_x web")] {
            let inventory = Lab::new(&files).load(&["h.yml", file]);
            let host = inventory.host("h0").unwrap();
            assert_eq!(inventory.group_names(host).join(" "), groups);
        }
    }
}
