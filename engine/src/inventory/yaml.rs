//! YAML inventories: groups with `hosts`, `children` and `vars`.

use std::sync::Arc;

use fleet_yaml::{Diagnostic, Map, Node};

use super::{
    build::Build,
    graph::Mention,
    mistake::{code, meant, mistake, oddity},
};

/// The keys of a group.
const KEYS: [&str; 3] = ["hosts", "children", "vars"];

/// Reads a whole file into the inventory. Mistakes are gathered; reading goes on behind them.
pub(super) fn read(build: &mut Build, root: &Map, mention: &Arc<Mention>) {
    for (name, data) in root.iter() {
        group(build, name, data, mention);
    }
}

/// Reads a group and those below it. `None` if it has no name.
fn group(build: &mut Build, name: &Node, data: &Node, mention: &Arc<Mention>) -> Option<usize> {
    let Some(text) = name.as_str() else {
        build.errors.push(not_a_name("group", name));
        return None;
    };
    if build.lenient && data.as_map().is_none() && !data.is_null() {
        let what = format!("Skipping '{text}' as this is not a valid group definition");
        build.warnings.push(oddity(code::GROUP, &data.span, what));
        return None;
    }
    let text = &build.group_name(text);
    let group = build.group(text);
    if let Some(sections) = entries(
        build,
        data,
        &format!("group `{text}`"),
        "`hosts`, `children` and `vars`",
    ) {
        for (key, value) in sections.iter() {
            section(build, group, key, value, mention);
        }
    }
    Some(group)
}

fn section(build: &mut Build, group: usize, key: &Node, value: &Node, mention: &Arc<Mention>) {
    let name = build.graph.groups[group].name.clone();
    let what = key.as_str().unwrap_or_default();
    if !KEYS.contains(&what) {
        let warning = oddity(
            code::GROUP,
            &key.span,
            format!(
                "unknown key `{}` in group `{name}` is passed over",
                key.raw()
            ),
        )
        .with_label("expected `hosts`, `children` or `vars`");
        build.warnings.push(meant(warning, what, KEYS));
        return;
    }
    // A single name may stand for a mapping of one: `hosts: web1`.
    if let Some(single) = value.as_str() {
        match what {
            "hosts" => host(build, group, single, value, None, mention),
            "children" => {
                let child = build.group(single);
                let added = build.contain(group, child, &value.span);
                build.note(added);
            }
            _ => {
                entries(
                    build,
                    value,
                    &format!("`vars` of group `{name}`"),
                    "`name: value` a line",
                );
            }
        }
        return;
    }
    let expected = match what {
        "hosts" => "host names as keys: `web1:` a line, without a dash",
        "children" => "group names as keys: `web:` a line, without a dash",
        _ => "`name: value` a line, without a dash",
    };
    let Some(map) = entries(
        build,
        value,
        &format!("`{what}` of group `{name}`"),
        expected,
    ) else {
        return;
    };
    for (key, value) in map.iter() {
        match (what, key.as_str()) {
            ("children", _) => {
                if let Some(child) = self::group(build, key, value, mention) {
                    let added = build.contain(group, child, &key.span);
                    build.note(added);
                }
            }
            ("hosts", Some(pattern)) => host(build, group, pattern, key, Some(value), mention),
            ("vars", Some(name)) => {
                let set = build.group_var(group, name, value.clone());
                build.note(set);
            }
            ("hosts", None) => build.errors.push(no_pattern(key)),
            _ => build.errors.push(not_a_name("variable", key)),
        }
    }
}

fn host(
    build: &mut Build,
    group: usize,
    pattern: &str,
    key: &Node,
    vars: Option<&Node>,
    mention: &Arc<Mention>,
) {
    let hosts = match build.hosts(pattern, &key.span, mention) {
        Ok(hosts) => hosts,
        Err(mistake) => return build.errors.push(mistake),
    };
    for host in &hosts {
        build.graph.join(*host, group);
    }
    let Some(vars) = vars else { return };
    let Some(vars) = entries(
        build,
        vars,
        &format!("host `{pattern}`"),
        "its variables, `name: value` a line",
    ) else {
        return;
    };
    for (name, value) in vars.iter() {
        let Some(text) = name.as_str() else {
            build.errors.push(not_a_name("variable", name));
            continue;
        };
        for host in &hosts {
            build.graph.set_host_var(*host, text, value.clone());
        }
    }
}

/// The entries of a mapping. Nothing at all is an empty one; anything else is a mistake.
pub(super) fn entries(build: &mut Build, node: &Node, what: &str, expected: &str) -> Option<Map> {
    if node.as_map().is_none() && !node.is_null() {
        build.errors.push(
            mistake(
                code::GROUP,
                &node.span,
                format!("{what} holds {}", node.kind_name()),
            )
            .with_label(format!("expected {expected}")),
        );
    }
    node.as_map().cloned()
}

/// A host's name that is no text, told as Ansible does.
fn no_pattern(key: &Node) -> Diagnostic {
    mistake(
        code::HOST,
        &key.span,
        format!("Host pattern {} must be a string", key.raw()),
    )
    .with_label("put it in quotes")
}

pub(super) fn not_a_name(what: &str, key: &Node) -> Diagnostic {
    mistake(
        code::GROUP,
        &key.span,
        format!("the name of a {what} is {}", key.kind_name()),
    )
    .with_label("expected a string: put it in quotes")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::lab::{errors, hosts, load, members, var, warnings};

    #[test]
    fn groups_nest() {
        let inventory = load(
            "i.yml",
            "all:\n  hosts:\n    lone:\n  children:\n    web:\n      hosts:\n        w1: {rack: 1}\n      children:\n        edge:\n          hosts: {w2: }\n          vars: {tier: edge}\n      vars: {tier: web, x: no}\n",
        );
        assert_eq!(hosts(&inventory), ["lone", "w1", "w2"]);
        assert_eq!(members(&inventory, "web"), ["w1", "w2"]);
        assert_eq!(members(&inventory, "ungrouped"), ["lone"]);
        assert_eq!(var(&inventory, "w1", "tier"), json!("web"));
        assert_eq!(var(&inventory, "w2", "tier"), json!("edge"));
        assert_eq!(var(&inventory, "w2", "x"), json!(false));
        assert_eq!(var(&inventory, "w1", "rack"), json!(1));
    }

    #[test]
    fn keys_may_be_ranges_with_ports_and_groups_may_stand_at_the_top() {
        let inventory = load(
            "i.yml",
            "db:\n  hosts:\n    'd[a:b]:5432': {x: 1}\n    d[b:c]: {x: 2}\n",
        );
        assert_eq!(hosts(&inventory), ["da", "db", "dc"]);
        assert_eq!(var(&inventory, "da", "ansible_port"), json!(5432));
        assert_eq!(var(&inventory, "da", "x"), json!(1));
        assert_eq!(var(&inventory, "db", "x"), json!(2));
    }

    #[test]
    fn empty_keys_and_single_names_are_fine() {
        let inventory = load(
            "i.yml",
            "web:\n  hosts: w1\n  vars:\nother:\n  children: web\nempty:\n",
        );
        assert_eq!(members(&inventory, "other"), ["w1"]);
        assert_eq!(members(&inventory, "empty"), [""; 0]);
    }

    #[test]
    fn unknown_keys_are_warned_of() {
        insta::assert_snapshot!(warnings("i.yml", "web:\n  hots:\n    w1:\n"), @"
        warning[F0205]: unknown key `hots` in group `web` is passed over
         --> i.yml:2:3
          |
        2 |   hots:
          |   ^^^^ expected `hosts`, `children` or `vars`
          |
          = help: did you mean `hosts`?
        ");
    }

    #[test]
    fn every_mistake_is_told_at_its_place() {
        let text = "all:\n  hosts:\n    - h2\n  children:\n    web: [h3]\n    1: {}\n    db:\n      hosts:\n        d[3:1]:\n        d1: 5\n        12:\n        'x:':\n      children: all\n  vars: x\n";
        insta::assert_snapshot!(errors("i.yml", text), @"
        error[F0205]: `hosts` of group `all` holds a list
         --> i.yml:3:5
          |
        3 |     - h2
          |     ^^^^ expected host names as keys: `web1:` a line, without a dash

        error[F0205]: group `web` holds a list
         --> i.yml:5:10
          |
        5 |     web: [h3]
          |          ^^^^ expected `hosts`, `children` and `vars`

        error[F0205]: the name of a group is a number
         --> i.yml:6:5
          |
        6 |     1: {}
          |     ^ expected a string: put it in quotes

        error[F0204]: the range ends (`1`) before it begins (`3`)
         --> i.yml:9:10
          |
        9 |         d[3:1]:
          |          ^^^^^

        error[F0205]: host `d1` holds a number
          --> i.yml:10:13
           |
        10 |         d1: 5
           |             ^ expected its variables, `name: value` a line

        error[F0204]: Host pattern 12 must be a string
          --> i.yml:11:9
           |
        11 |         12:
           |         ^^ put it in quotes

        error[F0204]: the host name `x:` ends with `:`
          --> i.yml:12:9
           |
        12 |         'x:':
           |         ^^^^ expected a host name, or a name and a port (`web1:2222`)

        error[F0206]: `all` cannot be in another group
          --> i.yml:13:17
           |
        13 |       children: all
           |                 ^^^ `all` holds every host and every group already

        error[F0205]: `vars` of group `all` holds a string
          --> i.yml:14:9
           |
        14 |   vars: x
           |         ^ expected `name: value` a line
        ");
    }

    #[test]
    fn a_plugin_is_refused() {
        insta::assert_snapshot!(errors("aws_ec2.yml", "plugin: aws_ec2\nregions: [x]\n"), @"
        error[F0201]: inventory plugin `aws_ec2` is not supported
         --> aws_ec2.yml:1:9
          |
        1 | plugin: aws_ec2
          |         ^^^^^^^
          |
          = help: a script that prints the inventory as JSON does the same: `fleetctl` runs it
        ");
    }

    #[test]
    fn a_group_in_itself_is_told() {
        insta::assert_snapshot!(errors("i.yml", "a:\n  children:\n    a:\n"), @"
        error[F0206]: groups hold each other: a > a
         --> i.yml:3:5
          |
        3 |     a:
          |     ^ `a` is put into `a` here
        ");
    }
}
