//! `add_host` and `group_by`: hosts and groups that come of a run.

use fleet_wire::Status;
use fleet_yaml::{Diagnostic, Node};
use indexmap::IndexMap;
use serde_json::json;

use super::{
    dispatch::{Unfit, data_node},
    host::Host,
    local::{Done, list, text},
    scope::HostScope,
};
use crate::inventory::NewHost;

pub(super) async fn add_host(
    host: &mut Host,
    arguments: &IndexMap<String, Node>,
    scope: &HostScope,
) -> Result<Done, Unfit> {
    let mut name = None;
    for key in ["name", "hostname", "host"] {
        name = name.or(text(host, arguments, key, scope).await?);
    }
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        return Err(Unfit::Problem(
            "name, host or hostname needs to be provided".to_owned(),
        ));
    };
    // A port may stand behind the name.
    let (name, port) = match name.rsplit_once(':') {
        Some((bare, port)) if !bare.contains(':') && port.parse::<u16>().is_ok() => {
            (bare.to_owned(), port.parse::<u16>().ok())
        }
        _ => (name, None),
    };
    let mut groups = Vec::new();
    for key in ["groups", "groupname", "group"] {
        groups.extend(list(host, arguments, key, scope).await?.unwrap_or_default());
    }
    const OWN: [&str; 6] = ["name", "hostname", "host", "groups", "groupname", "group"];
    let mut vars = IndexMap::new();
    let mut shown = serde_json::Map::new();
    for (key, node) in arguments
        .iter()
        .filter(|(key, _)| !OWN.contains(&key.as_str()))
    {
        let value = host.known(node, scope).await?;
        shown.insert(key.clone(), super::content::to_json(&value));
        vars.insert(key.clone(), data_node(&value, node));
    }
    if let Some(port) = port {
        let place = arguments.values().next().map(|node| node.span.clone());
        shown.insert("ansible_ssh_port".to_owned(), port.into());
        if let Some(span) = place {
            let node = Node::from_json(&port.into(), &span);
            vars.insert("ansible_ssh_port".to_owned(), node);
        }
    }
    let inventory = host.shared.inventory();
    let is_new = inventory.host(&name).is_none_or(|known| {
        let of = inventory.group_names(known);
        !groups.iter().all(|group| of.contains(&group.as_str()))
    }) || !shown.iter().all(|(key, value)| {
        let layers = inventory.layers(&name);
        let own = layers.iter().rev().find_map(|layer| layer.vars.get(key));
        own.is_some_and(|own| own.value.to_json() == *value)
    });
    let new = NewHost {
        name: name.clone(),
        groups: groups.clone(),
        vars,
    };
    host.shared
        .change_inventory(move |inventory| inventory.add_hosts([new.clone()]))
        .map_err(|problems| unchanged(&problems))?;
    Ok(Done {
        status: if is_new { Status::Changed } else { Status::Ok },
        result: json!({
            "changed": is_new,
            "add_host": {"host_name": name, "groups": groups, "host_vars": shown},
        }),
    })
}

pub(super) async fn group_by(
    host: &mut Host,
    arguments: &IndexMap<String, Node>,
    scope: &HostScope,
) -> Result<Done, Unfit> {
    let Some(key) = text(host, arguments, "key", scope).await? else {
        return Err(Unfit::failed(
            "the 'key' param is required when using group_by",
        ));
    };
    let group = key.replace(' ', "-");
    let parents = list(host, arguments, "parents", scope)
        .await?
        .unwrap_or_else(|| vec!["all".to_owned()]);
    let parents: Vec<String> = parents.iter().map(|name| name.replace(' ', "-")).collect();
    let inventory = host.shared.inventory();
    let is_new = inventory.host(&host.name).is_none_or(|known| {
        let own = inventory.group_names(known);
        let mut wanted = parents.iter().filter(|parent| *parent != "all");
        !own.contains(&group.as_str()) || wanted.any(|parent| !own.contains(&parent.as_str()))
    });
    if is_new {
        let members = [(host.name.clone(), group.clone())];
        host.shared
            .change_inventory({
                let parents = parents.clone();
                move |inventory| inventory.group_by(&members, &parents)
            })
            .map_err(|problems| unchanged(&problems))?;
    }
    Ok(Done {
        status: if is_new { Status::Changed } else { Status::Ok },
        result: json!({"changed": is_new, "add_group": group, "parent_groups": parents}),
    })
}

fn unchanged(problems: &[Diagnostic]) -> Unfit {
    super::include::unread(problems)
}
