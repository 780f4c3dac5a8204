//! `plugin: generator`: hosts and groups by layers of words, every combination one host.

use std::sync::Arc;

use fleet_yaml::{Diagnostic, Map, Node, Span};
use indexmap::IndexMap;

use super::{flag, mapping, scope::Names, unknown_keys};
use crate::{
    inventory::{
        LoadOptions,
        build::Build,
        graph::Mention,
        mistake::{code, mistake},
    },
    template::Templar,
    variables::Scope,
};

pub(super) fn read(
    build: &mut Build,
    root: &Map,
    mention: &Arc<Mention>,
    options: &LoadOptions,
) -> Result<(), Diagnostic> {
    unknown_keys(
        build,
        root,
        &["plugin", "hosts", "layers", "use_extra_vars"],
    );
    let Some(hosts) = mapping(root, "hosts")? else {
        return Ok(());
    };
    let mut layers = Vec::new();
    for (name, words) in mapping(root, "layers")?.into_iter().flat_map(Map::iter) {
        let Some(words) = words.as_seq() else {
            return Err(super::other(words, name.raw(), "a list of words"));
        };
        layers.push((name.key_text(), words));
    }
    let extra = flag(root, "use_extra_vars", options.use_extra_vars)?;
    let Some(name) = hosts.get("name") else {
        return Ok(());
    };
    for words in combinations(&layers) {
        let mut names = words;
        if extra {
            names.extend(
                options
                    .extra_vars
                    .iter()
                    .map(|(name, value)| (name.clone(), value.clone())),
            );
        }
        let scope: Arc<dyn Scope> = Arc::new(Names(names));
        let maker = Maker {
            templar: &options.templar,
            scope,
        };
        let host = maker.text(name)?;
        let host = build.host(&host, None, &name.span, mention);
        maker.parents(build, Some(host), None, hosts.get("parents"))?;
    }
    Ok(())
}

/// One word of each layer, in every way; the last layer changes fastest.
fn combinations(layers: &[(String, &[Node])]) -> Vec<IndexMap<String, Node>> {
    let mut all = vec![IndexMap::new()];
    for (name, words) in layers {
        all = all
            .iter()
            .flat_map(|before: &IndexMap<String, Node>| {
                words.iter().map(|word| {
                    let mut names = before.clone();
                    names.insert(name.clone(), word.clone());
                    names
                })
            })
            .collect();
    }
    all
}

/// Makes groups for one combination.
struct Maker<'a> {
    templar: &'a Templar,
    scope: Arc<dyn Scope>,
}

impl Maker<'_> {
    /// A rendered name.
    fn text(&self, node: &Node) -> Result<String, Diagnostic> {
        let value = self.value(node)?;
        Ok(value.to_string())
    }

    fn value(&self, node: &Node) -> Result<minijinja::Value, Diagnostic> {
        let value = self.templar.value(node, &self.scope);
        let value = value.map_err(|error| error.diagnostic().clone().or_at(&node.span))?;
        value.known().ok_or_else(|| unknown(&node.span))
    }

    /// Puts a host or a group into its parents, and these into theirs.
    fn parents(
        &self,
        build: &mut Build,
        host: Option<usize>,
        child: Option<usize>,
        parents: Option<&Node>,
    ) -> Result<(), Diagnostic> {
        let Some(parents) = parents.filter(|parents| !parents.is_null()) else {
            return Ok(());
        };
        let Some(list) = parents.as_seq() else {
            return Err(super::other(parents, "parents", "a list of groups"));
        };
        for parent in list {
            let Some(name) = parent.get("name") else {
                return Err(mistake(
                    code::GROUP,
                    &parent.span,
                    "a parent without a `name`",
                ));
            };
            let group = build.group(&self.text(name)?);
            if let Some(vars) = parent
                .as_map()
                .map(|map| mapping(map, "vars"))
                .transpose()?
                .flatten()
            {
                for (name, value) in vars.iter() {
                    let rendered = serde_json::to_value(self.value(value)?).unwrap_or_default();
                    build.group_var(
                        group,
                        &name.key_text(),
                        Node::from_json(&rendered, &value.span),
                    )?;
                }
            }
            if let Some(host) = host {
                build.graph.join(host, group);
            }
            if let Some(child) = child {
                build.contain(group, child, &name.span)?;
            }
            self.parents(build, None, Some(group), parent.get("parents"))?;
        }
        Ok(())
    }
}

fn unknown(span: &Span) -> Diagnostic {
    mistake(code::SOURCE, span, "this cannot be known before a run")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::lab::{errors, hosts, load, members, var};

    const TEXT: &str = "plugin: generator\nhosts:\n  name: '{{ operation }}_{{ app }}'\n  parents:\n    - name: '{{ app }}'\n      vars: {app: '{{ app }}', n: '{{ [1, 2] }}'}\n      parents:\n        - name: apps\n    - name: '{{ operation }}'\nlayers:\n  operation: [build, launch]\n  app: [web, api]\n";

    #[test]
    fn every_combination_is_a_host_in_its_groups() {
        let inventory = load("g.yml", TEXT);
        assert_eq!(
            hosts(&inventory),
            ["build_web", "build_api", "launch_web", "launch_api"]
        );
        assert_eq!(members(&inventory, "web"), ["build_web", "launch_web"]);
        assert_eq!(members(&inventory, "build"), ["build_web", "build_api"]);
        assert_eq!(members(&inventory, "apps").len(), 4);
        assert_eq!(var(&inventory, "launch_api", "app"), json!("api"));
        assert_eq!(var(&inventory, "launch_api", "n"), json!([1, 2]));
    }

    #[test]
    fn mistakes_have_their_places() {
        insta::assert_snapshot!(errors("g.yml", "plugin: generator\nhosts: {name: '{{ nope }}'}\n"), @"
        error[F0301]: 'nope' is undefined
         --> g.yml:2:19
          |
        2 | hosts: {name: '{{ nope }}'}
          |                   ^^^^
          |
          = help: define it, or say what to take instead: `nope | default(…)`
        ");
        insta::assert_snapshot!(errors("g.yml", "plugin: generator\nhosts: {name: a, parents: [{vars: {a: 1}}]}\n"), @"
        error[F0205]: a parent without a `name`
         --> g.yml:2:28
          |
        2 | hosts: {name: a, parents: [{vars: {a: 1}}]}
          |                            ^^^^^^^^^^^^^^
        ");
        insta::assert_snapshot!(errors("g.yml", "plugin: generator\nhosts: {name: a}\nlayers: {a: b}\n"), @"
        error[F0201]: `a` is a string
         --> g.yml:3:13
          |
        3 | layers: {a: b}
          |             ^ expected a list of words
        ");
        insta::assert_snapshot!(errors("g.yml", "plugin: generatr\n"), @"
        error[F0201]: inventory plugin `generatr` is not supported
         --> g.yml:1:9
          |
        1 | plugin: generatr
          |         ^^^^^^^^
          |
          = help: did you mean `generator`?
        ");
    }
}
