use std::collections::BTreeMap;

use fleet_engine::{
    event::HostEnd,
    plan::names,
    recap::{HostRecap, Recap},
};
use fleet_wire::UndoneState;

use crate::paint::{BAD, CHANGED, GOOD, HEADING, paint};

/// The end of a run, hosts with the same counts in one line.
pub(crate) fn recap(recap: &Recap) -> String {
    let mut rows: BTreeMap<String, (Vec<&str>, &HostRecap)> = BTreeMap::new();
    for (host, counts) in &recap.hosts {
        rows.entry(format!("{counts:?}"))
            .or_insert_with(|| (Vec::new(), counts))
            .0
            .push(host);
    }
    let mut rows: Vec<_> = rows.into_values().collect();
    rows.sort_by_key(|(hosts, _)| hosts[0]);
    let width = rows
        .iter()
        .map(|(hosts, _)| names(hosts).chars().count())
        .max()
        .unwrap_or(0)
        .min(48);
    let mut text = paint(HEADING, "recap");
    for (hosts, counts) in rows {
        text.push_str(&format!(
            "\n  {:<width$}  {}  ok={} changed={} effects={}",
            names(&hosts),
            state(counts),
            counts.ok,
            counts.changed,
            counts.effects,
        ));
        for (name, count) in [
            ("failed", counts.failed),
            ("ignored", counts.ignored),
            ("skipped", counts.skipped),
            ("unknown", counts.unknown),
        ] {
            if count > 0 {
                text.push_str(&format!(" {name}={count}"));
            }
        }
    }
    text
}

fn state(counts: &HostRecap) -> String {
    let undone = |undone: &Option<fleet_wire::Undone>| undone.as_ref().map(|undone| undone.state);
    let (word, style) = match &counts.end {
        Some(HostEnd::Done) | None if counts.changed > 0 => ("changed", CHANGED),
        Some(HostEnd::Done) | None => ("unchanged", GOOD),
        Some(HostEnd::Unreachable { .. }) => ("unreachable", BAD),
        Some(HostEnd::Locked { .. }) => ("locked", BAD),
        Some(HostEnd::Refused { .. }) => ("refused", BAD),
        Some(HostEnd::Lost { .. }) => ("lost", BAD),
        Some(HostEnd::Stale { .. }) => ("stale", BAD),
        Some(HostEnd::Failed { undone: state } | HostEnd::Interrupted { undone: state }) => {
            match undone(state) {
                Some(UndoneState::RolledBack) => ("rolled_back", BAD),
                Some(UndoneState::RollbackConflict) => ("rollback_conflict", BAD),
                Some(UndoneState::RollbackFailed) => ("rollback_failed", BAD),
                _ => ("failed", BAD),
            }
        }
    };
    paint(style, format!("{word:<11}"))
}
