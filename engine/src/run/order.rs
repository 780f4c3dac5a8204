//! In which order the hosts of a play are taken, and how many at a time: `order` and `serial`.

use fleet_yaml::{Diagnostic, Node};
use minijinja::{Value, value::ValueKind};

use super::shared::{Place, Shared};
use crate::{
    playbook::Play,
    template::{Evaluated, is_omit},
};

/// Puts hosts into the order that the play asks for.
///
/// # Errors
/// An order that there is not.
pub(super) fn sort(shared: &Shared, play: &Play, hosts: &mut [String]) -> Result<(), Diagnostic> {
    let Some(node) = &play.order else {
        return Ok(());
    };
    match text(shared, play, node)?.as_deref().unwrap_or_default() {
        "inventory" | "" | "None" => {}
        "sorted" => hosts.sort_unstable(),
        "reverse_sorted" => {
            hosts.sort_unstable();
            hosts.reverse();
        }
        "reverse_inventory" => hosts.reverse(),
        "shuffle" => shuffle(hosts),
        other => {
            return Err(Diagnostic::error(
                node.span.clone(),
                format!("there is no order `{other}`"),
            )
            .with_help(
                "`inventory`, `reverse_inventory`, `sorted`, `reverse_sorted` and `shuffle` are",
            ));
        }
    }
    Ok(())
}

/// Chance from the hasher's keys, which the standard library draws anew for each.
fn shuffle(hosts: &mut [String]) {
    use std::hash::{BuildHasher, RandomState};
    for last in (1..hosts.len()).rev() {
        let chance = RandomState::new().hash_one(last);
        let other = usize::try_from(chance % (last as u64 + 1)).unwrap_or(0);
        hosts.swap(last, other);
    }
}

/// The hosts in batches: a `serial` of several sizes repeats its last.
///
/// # Errors
/// A size that is none.
pub(super) fn batches(
    shared: &Shared,
    play: &Play,
    hosts: &[String],
) -> Result<Vec<Vec<String>>, Diagnostic> {
    let sizes = match &play.serial {
        Some(node) => sizes(shared, play, node, hosts.len())?,
        None => Vec::new(),
    };
    let mut batches = Vec::new();
    let mut left = hosts;
    let mut index = 0;
    while !left.is_empty() {
        let size = sizes.get(index).or(sizes.last()).copied().unwrap_or(0);
        let size = if size == 0 {
            left.len()
        } else {
            size.min(left.len())
        };
        batches.push(left[..size].to_vec());
        left = &left[size..];
        index += 1;
    }
    Ok(batches)
}

fn sizes(
    shared: &Shared,
    play: &Play,
    node: &Node,
    hosts: usize,
) -> Result<Vec<usize>, Diagnostic> {
    let Some(value) = value(shared, play, node)? else {
        return Ok(Vec::new());
    };
    let written: Vec<Value> = match value.kind() {
        ValueKind::Seq => value.try_iter().into_iter().flatten().collect(),
        _ => vec![value],
    };
    written
        .iter()
        .map(|size| {
            let text = size.to_string();
            let wrong = || {
                Diagnostic::error(
                    node.span.clone(),
                    format!("`serial` takes a number of hosts or a percentage, not `{text}`"),
                )
            };
            match text.trim().strip_suffix('%') {
                // A percentage of few hosts is one host at the least.
                Some(share) => share
                    .trim()
                    .parse::<f64>()
                    .map(|share| ((share / 100.0 * hosts as f64) as usize).max(1))
                    .map_err(|_| wrong()),
                None => text.trim().parse::<usize>().map_err(|_| wrong()),
            }
        })
        .collect()
}

/// A keyword of a play, which depends on no host; none where it is `omit`.
pub(super) fn text(
    shared: &Shared,
    play: &Play,
    node: &Node,
) -> Result<Option<String>, Diagnostic> {
    Ok(value(shared, play, node)?.map(|value| value.to_string()))
}

fn value(shared: &Shared, play: &Play, node: &Node) -> Result<Option<Value>, Diagnostic> {
    let scope = shared.scope(
        "localhost",
        Place {
            play: Some(play),
            ..Place::default()
        },
    );
    match shared.templar.value(node, &scope.shared()) {
        Ok(Evaluated::Known(value)) => Ok((!is_omit(&value)).then_some(value)),
        Ok(_) => Err(Diagnostic::error(
            node.span.clone(),
            "this must be known before the play begins",
        )),
        Err(problem) => Err(problem.into()),
    }
}
