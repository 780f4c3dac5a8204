//! Inventory scripts, and their JSON: groups with lists of hosts, `_meta` with the hosts' variables.

use std::{io, path::Path, process::Command, sync::Arc};

use fleet_yaml::{Diagnostic, Map, Node, Source};

use crate::sources;

use super::{
    build::Build,
    graph::Mention,
    mistake::{code, mistake, placeless, placeless_oddity},
    yaml::entries,
};

/// Runs a script with `--list` and reads what it prints into the inventory. Where it gives no
/// `_meta`, it is run with `--host` for each of its hosts.
pub(super) fn run(build: &mut Build, path: &Path, mention: &Arc<Mention>) {
    let root = match output(build, path, &["--list"]) {
        Ok(root) => root,
        Err(mistake) => return build.errors.push(mistake),
    };
    let Some(map) = root.as_map() else {
        build.errors.push(
            mistake(
                code::SCRIPT,
                &root.span,
                format!("`{} --list` prints {}", path.display(), root.kind_name()),
            )
            .with_help("an inventory script prints a JSON object of groups"),
        );
        return;
    };
    let Read { hosts, meta } = read(build, map, mention);
    if meta {
        return;
    }
    for host in hosts {
        let name = build.graph.hosts[host].name.clone();
        let vars = match output(build, path, &["--host", &name]) {
            Ok(vars) => vars,
            Err(mistake) => return build.errors.push(mistake),
        };
        host_vars(build, host, &vars);
    }
}

/// Whether a mapping has the form that scripts print: `_meta`, or lists where a YAML inventory has
/// mappings.
pub(super) fn is_script_form(root: &Map) -> bool {
    root.get("_meta").is_some()
        || root.iter().any(|(_, data)| {
            let list = |key| data.get(key).is_some_and(|value| value.as_seq().is_some());
            data.as_seq().is_some() || list("hosts") || list("children")
        })
}

/// What a script's list of groups held.
pub(super) struct Read {
    /// All hosts named, as indexes.
    hosts: Vec<usize>,
    /// Whether their variables came with it.
    meta: bool,
}

/// Reads groups in the form that scripts print. Names are taken as they are: no ranges, no ports.
pub(super) fn read(build: &mut Build, root: &Map, mention: &Arc<Mention>) -> Read {
    let mut hosts = indexmap::IndexSet::new();
    for (key, data) in root.iter() {
        match key.as_str() {
            Some("_meta") => {}
            Some(name) => group(build, name, data, mention, &mut hosts),
            None => build.errors.push(super::yaml::not_a_name("group", key)),
        }
    }
    let vars = root.get("_meta").and_then(|meta| meta.get("hostvars"));
    if let Some(vars) = vars.and_then(Node::as_map) {
        for host in &hosts {
            if let Some(vars) = vars.get(&build.graph.hosts[*host].name) {
                host_vars(build, *host, vars);
            }
        }
    }
    Read {
        hosts: hosts.into_iter().collect(),
        meta: vars.is_some(),
    }
}

fn group(
    build: &mut Build,
    name: &str,
    data: &Node,
    mention: &Arc<Mention>,
    hosts: &mut indexmap::IndexSet<usize>,
) {
    let group = build.group(name);
    let mut join = |build: &mut Build, host: &str, node: &Node| {
        let host = build.host(host, None, &node.span, mention);
        build.graph.join(host, group);
        hosts.insert(host);
    };
    let known = ["hosts", "children", "vars"]
        .iter()
        .any(|key| data.get(key).is_some());
    if let Some(vars) = data.as_map().filter(|map| !known && !map.is_empty()) {
        // The oldest form: a host that stands where a group should.
        join(build, name, data);
        for (key, value) in vars.iter() {
            if let Some(key) = key.as_str() {
                let set = build.group_var(group, key, value.clone());
                build.note(set);
            }
        }
        return;
    }
    for (host, node) in names(
        build,
        name,
        "hosts",
        data.as_seq()
            .map_or_else(|| data.get("hosts"), |_| Some(data)),
    ) {
        join(build, &host, &node);
    }
    for (child, node) in names(build, name, "children", data.get("children")) {
        let child = build.group(&child);
        let added = build.contain(group, child, &node.span);
        build.note(added);
    }
    if let Some(vars) = data.get("vars")
        && let Some(vars) = entries(
            build,
            vars,
            &format!("`vars` of group `{name}`"),
            "an object of variables",
        )
    {
        for (key, value) in vars.iter() {
            if let Some(key) = key.as_str() {
                let set = build.group_var(group, key, value.clone());
                build.note(set);
            }
        }
    }
    if data.as_map().is_none() && data.as_seq().is_none() && !data.is_null() {
        entries(
            build,
            data,
            &format!("group `{name}`"),
            "`hosts`, `children` and `vars`",
        );
    }
}

/// The strings of a list.
fn names(build: &mut Build, group: &str, key: &str, list: Option<&Node>) -> Vec<(String, Node)> {
    let Some(list) = list.filter(|list| !list.is_null()) else {
        return Vec::new();
    };
    let mut mistake = |node: &Node| {
        build.errors.push(
            mistake(
                code::GROUP,
                &node.span,
                format!("`{key}` of group `{group}` holds {}", node.kind_name()),
            )
            .with_label("expected a list of names"),
        );
    };
    let Some(items) = list.as_seq() else {
        mistake(list);
        return Vec::new();
    };
    let mut names = Vec::with_capacity(items.len());
    for item in items {
        match item.as_str() {
            Some(name) if !name.is_empty() => names.push((name.to_owned(), item.clone())),
            _ => mistake(item),
        }
    }
    names
}

fn host_vars(build: &mut Build, host: usize, vars: &Node) {
    let what = format!("the variables of host `{}`", build.graph.hosts[host].name);
    let Some(vars) = entries(build, vars, &what, "an object of variables") else {
        return;
    };
    for (key, value) in vars.iter() {
        if let Some(key) = key.as_str() {
            build.graph.set_host_var(host, key, value.clone());
        }
    }
}

/// What a script prints, as JSON. Nothing at all is an empty object.
fn output(build: &mut Build, path: &Path, args: &[&str]) -> Result<Node, Diagnostic> {
    let call = format!("{} {}", path.display(), args.join(" "));
    let failed = |message: String| placeless(code::SCRIPT, message);
    // A path without a folder would be looked for among the commands.
    let program = sources::rooted(path).unwrap_or_else(|_| path.to_owned());
    let output = sources::output(&call, || {
        sources::printed(Command::new(&program).args(args))
    })
    .map_err(|error| not_run(&call, &program, &error))?;
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if output.status != 0 {
        let how = match output.status {
            -1 => "it was ended by a signal".to_owned(),
            status => format!("exit status: {status}"),
        };
        let mistake = failed(format!("`{call}` failed: {how}"));
        return Err(if said.is_empty() {
            mistake
        } else {
            mistake.with_help(format!("it said: {said}"))
        });
    }
    if !said.is_empty() {
        build.warnings.push(placeless_oddity(
            code::SCRIPT,
            format!("`{call}` said: {said}"),
        ));
    }
    let source = Source::from_bytes(Path::new(&call), output.stdout)?;
    json(&source).map_err(|error| error.with_help("an inventory script prints one JSON object"))
}

/// Reads JSON. Values have their own places where YAML reads the text alike, as it nearly always
/// does; else that of the whole.
pub(super) fn json(source: &Arc<Source>) -> Result<Node, Diagnostic> {
    let text = if source.text.trim().is_empty() {
        "{}"
    } else {
        &*source.text
    };
    let value: serde_json::Value = serde_json::from_str(text).map_err(|error| {
        let at = source.line_start(error.line()) + error.column().saturating_sub(1);
        mistake(
            code::SCRIPT,
            &source.span(at, at + 1),
            format!("not JSON: {error}"),
        )
    })?;
    let placed = fleet_yaml::load(Arc::clone(source))
        .ok()
        .and_then(|loaded| loaded.documents.into_iter().next());
    let placed = placed.filter(|node| node.to_json() == value);
    Ok(placed.unwrap_or_else(|| Node::from_json(&value, &source.span(0, 0))))
}

/// Why a script cannot be run. A missing interpreter looks as if the script itself were missing.
fn not_run(call: &str, program: &Path, error: &io::Error) -> Diagnostic {
    let mistake = placeless(code::SCRIPT, format!("cannot run `{call}`: {error}"));
    let head = sources::read(program).unwrap_or_default();
    let line = String::from_utf8_lossy(&head)
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned();
    match line.strip_prefix("#!") {
        Some(interpreter) if error.kind() == io::ErrorKind::NotFound => mistake.with_help(format!(
            "is its interpreter `{}` installed?",
            interpreter.trim()
        )),
        _ => mistake,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::lab::{Lab, errors, hosts, load, members, var, warnings};

    #[test]
    fn a_script_lists_groups_and_the_variables_of_hosts() {
        let text = r#"#!/bin/sh
test "$1" = --list && cat <<'JSON'
{"web": {"hosts": ["w1", "w2:22"], "vars": {"v": "{{ 1 }}"}, "children": ["edge"]},
 "edge": ["e1"], "all": {"vars": {"z": true}},
 "_meta": {"hostvars": {"w1": {"a": 1e3}, "elsewhere": {"b": 1}}}}
JSON
"#;
        let inventory = load("i", text);
        assert_eq!(
            hosts(&inventory),
            ["w1", "w2:22", "e1"],
            "names are taken as they are"
        );
        assert_eq!(members(&inventory, "edge"), ["e1"]);
        assert_eq!(var(&inventory, "w1", "a"), json!(1000.0));
        assert_eq!(var(&inventory, "e1", "v"), json!("{{ 1 }}"));
        assert_eq!(var(&inventory, "w2:22", "z"), json!(true));
    }

    #[test]
    fn without_meta_each_host_is_asked_for() {
        let text = "#!/bin/sh\ncase $1 in --list) echo '{\"web\": [\"a\", \"b\"]}';; --host) test $2 = b || echo \"{\\\"n\\\": \\\"$2\\\"}\";; esac\n";
        let inventory = load("i", text);
        assert_eq!(var(&inventory, "a", "n"), json!("a"));
        assert_eq!(
            var(&inventory, "b", "n"),
            json!(null),
            "nothing printed is no variable"
        );
    }

    #[test]
    fn a_group_that_is_only_variables_is_a_host() {
        let inventory = load(
            "i",
            "#!/bin/sh\necho '{\"h\": {\"k\": 1}, \"_meta\": {\"hostvars\": {}}}'\n",
        );
        assert_eq!(
            (hosts(&inventory), var(&inventory, "h", "k")),
            (vec!["h"], json!(1))
        );
    }

    #[test]
    fn the_same_form_is_read_from_a_file() {
        let inventory = load(
            "i.json",
            r#"{"web": {"hosts": ["w1"]}, "_meta": {"hostvars": {"w1": {"a": 1}}}}"#,
        );
        assert_eq!(var(&inventory, "w1", "a"), json!(1));
    }

    #[test]
    fn an_executable_text_is_no_script() {
        use std::{fs, os::unix::fs::PermissionsExt};
        let lab = Lab::new(&[("i.ini", "[web]\nw1\n")]);
        fs::set_permissions(lab.path("i.ini"), fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(hosts(&lab.load(&["i.ini"])), ["w1"]);
    }

    #[test]
    fn what_a_script_says_is_a_warning() {
        insta::assert_snapshot!(warnings("i", "#!/bin/sh\necho careful >&2; echo '{\"_meta\": {\"hostvars\": {}}}'\n"), @"warning[F0209]: `i --list` said: careful");
    }

    #[test]
    fn a_script_that_fails_is_told_with_what_it_said() {
        insta::assert_snapshot!(errors("i", "#!/bin/sh\necho oops >&2; exit 3\n"), @"
        error[F0209]: `i --list` failed: exit status: 3
         |
         = help: it said: oops
        ");
        insta::assert_snapshot!(errors("i", "#!/no/such/program\n"), @"
        error[F0209]: cannot run `i --list`: No such file or directory (os error 2)
         |
         = help: is its interpreter `/no/such/program` installed?
        ");
    }

    #[test]
    fn what_it_prints_wrong_is_shown() {
        insta::assert_snapshot!(errors("i", "#!/bin/sh\necho '{\"web\": x}'\n"), @r#"
        error[F0209]: not JSON: expected value at line 1 column 9
         --> i --list:1:9
          |
        1 | {"web": x}
          |         ^
          |
          = help: an inventory script prints one JSON object
        "#);
        insta::assert_snapshot!(errors("i", "#!/bin/sh\necho '{\"web\": {\"hosts\": 5, \"vars\": [1]}, \"db\": 5}'\n"), @r#"
        error[F0205]: `hosts` of group `web` holds a number
         --> i --list:1:19
          |
        1 | {"web": {"hosts": 5, "vars": [1]}, "db": 5}
          |                   ^ expected a list of names

        error[F0205]: `vars` of group `web` holds a list
         --> i --list:1:30
          |
        1 | {"web": {"hosts": 5, "vars": [1]}, "db": 5}
          |                              ^^^ expected an object of variables

        error[F0205]: group `db` holds a number
         --> i --list:1:42
          |
        1 | {"web": {"hosts": 5, "vars": [1]}, "db": 5}
          |                                          ^ expected `hosts`, `children` and `vars`
        "#);
        insta::assert_snapshot!(errors("i", "#!/bin/sh\necho '[]'\n"), @"
        error[F0209]: `i --list` prints a list
         --> i --list:1:1
          |
        1 | []
          | ^^
          |
          = help: an inventory script prints a JSON object of groups
        ");
    }
}
