//! A plan as text and as JSON.

use std::fmt::Write;

use fleet_engine::{
    event::HostEnd,
    plan::{Group, Plan, PlannedTask, Summary, draw, names},
};
use fleet_wire::{Effect, Status, UndoClass, What};

use crate::count::count;
use crate::paint::{BAD, CHANGED, GOOD, HEADING, QUIET, UNKNOWN, diff_line, paint};

/// The plan, group by group, and its sum.
pub(crate) fn plan(plan: &Plan, diffs: bool) -> String {
    let mut text = String::new();
    for group in plan.groups() {
        self::group(&mut text, &group, diffs);
    }
    text.push_str(&summary(&plan.summary()));
    text
}

fn group(text: &mut String, group: &Group<'_>, diffs: bool) {
    let many_hosts = match group.hosts.len() {
        1 => String::new(),
        many => paint(QUIET, format!(" ({many} hosts)")),
    };
    let heading = paint(HEADING, names(&group.hosts));
    if group.plan.tasks.is_empty() && matches!(group.plan.end, None | Some(HostEnd::Done)) {
        let unchanged = group.plan.unchanged;
        let _ = writeln!(
            text,
            "{heading}{many_hosts}: {}",
            paint(
                GOOD,
                format!("nothing to change ({} in place)", count(unchanged, "task"))
            )
        );
        return;
    }
    let _ = writeln!(text, "{heading}{many_hosts}");
    for task in &group.plan.tasks {
        self::task(text, task, diffs);
    }
    if let Some(end) = &group.plan.end {
        host_end(text, end);
    }
    text.push('\n');
}

fn host_end(text: &mut String, end: &HostEnd) {
    let (word, message) = match end {
        HostEnd::Done | HostEnd::Failed { .. } => return,
        HostEnd::Unreachable { message } => ("unreachable", message.as_str()),
        HostEnd::Locked { message } => ("locked", message.as_str()),
        HostEnd::Refused { message, .. } => ("refused", message.as_str()),
        HostEnd::Lost { message } => ("lost", message.as_str()),
        HostEnd::Stale { message, .. } => ("stale", message.as_str()),
        HostEnd::Interrupted { .. } => ("interrupted", "not planned"),
    };
    let _ = writeln!(
        text,
        "  {} {}",
        paint(BAD, word),
        message.replace('\n', "\n    ")
    );
}

fn task(text: &mut String, task: &PlannedTask, diffs: bool) {
    let (mark, style) = match task.status {
        Status::Changed => ('~', CHANGED),
        Status::Unknown => ('?', UNKNOWN),
        _ => ('!', BAD),
    };
    let item = task
        .item
        .as_ref()
        .map(|item| format!(" ({item})"))
        .unwrap_or_default();
    let place = paint(QUIET, &task.task.place);
    let _ = writeln!(
        text,
        "  {} {}{item}  {place}",
        paint(style, mark),
        task.task.name
    );
    let unknown = (task.status == Status::Unknown).then_some("known after apply");
    // What a module registers in Ansible's check mode is for playbooks; here it is a plan that speaks.
    let plans = |message: &&str| unknown.is_none_or(|unknown| message.starts_with(unknown));
    if let Some(message) = task.message.as_deref().filter(plans).or(unknown) {
        let _ = writeln!(
            text,
            "      {}",
            paint(style, message).replace('\n', "\n      ")
        );
    }
    for effect in task.effects.iter() {
        let _ = writeln!(text, "      {}{}", effect.summary(), flags(effect));
        for line in draw(effect).iter().filter(|_| diffs) {
            let _ = writeln!(text, "        {}", diff_line(line));
        }
    }
}

fn flags(effect: &Effect) -> String {
    let mut flags = String::new();
    if effect.undo == UndoClass::None && !matches!(effect.what, What::Unit { .. }) {
        flags.push_str(&paint(BAD, "  cannot be undone"));
    }
    if effect.undo == UndoClass::BestEffort {
        flags.push_str(&paint(CHANGED, "  undone as well as can be"));
    }
    if effect.interrupts() {
        flags.push_str(&paint(CHANGED, "  interrupts the service"));
    }
    if effect.assumed {
        flags.push_str(&paint(UNKNOWN, "  assumed: checked again at apply"));
    }
    flags
}

fn summary(summary: &Summary) -> String {
    let Summary {
        hosts,
        changing,
        effects,
        unknown,
        irreversible,
        restarts,
        failed,
    } = *summary;
    let mut parts = vec![format!(
        "{} on {changing} of {}",
        count(effects, "effect"),
        count(hosts, "host")
    )];
    let mut add = |number: usize, text: &str, style| {
        if number > 0 {
            parts.push(paint(style, text));
        }
    };
    add(unknown, &format!("{unknown} known after apply"), UNKNOWN);
    add(
        restarts,
        &format!("{} of a service", count(restarts, "interruption")),
        CHANGED,
    );
    add(
        irreversible,
        &format!("{irreversible} cannot be undone"),
        BAD,
    );
    add(
        failed,
        &format!("{} could not be planned", count(failed, "host")),
        BAD,
    );
    format!("{}: {}", paint(HEADING, "plan"), parts.join(", "))
}

/// The plan as one JSON document.
pub(crate) fn json(run: &str, plan: &Plan) -> String {
    let groups: Vec<_> = plan
        .groups()
        .iter()
        .map(|group| serde_json::json!({"hosts": group.hosts, "tasks": group.plan.tasks, "end": group.plan.end}))
        .collect();
    serde_json::json!({
        "schema": "fleetctl.plan/1",
        "run": run,
        "summary": plan.summary(),
        "groups": groups,
    })
    .to_string()
}
