use std::{collections::BTreeMap, path::PathBuf};

use anyhow::Result;
use fleet_engine::plan::{HostPlan, names};

use crate::{
    paint::{BAD, GOOD, HEADING, QUIET, paint},
    saved,
};

/// What is different between two saved plans
///
/// Exits with 0 where they do the same, else with 2.
#[derive(clap::Args)]
pub(crate) struct Diff {
    /// The one
    #[arg(value_name = "A.plan")]
    a: PathBuf,
    /// The other
    #[arg(value_name = "B.plan")]
    b: PathBuf,
}

impl Diff {
    pub(crate) fn run(self) -> Result<u8> {
        let (a, b) = (saved::read(&self.a)?.0, saved::read(&self.b)?.0);
        for (path, plan) in [(&self.a, &a), (&self.b, &b)] {
            let header = &plan.header;
            let about = format!("{}  made {} by {}", header.hash, header.made, header.who);
            anstream::println!("{} {}", path.display(), paint(QUIET, about));
        }
        let mut groups: BTreeMap<Vec<(bool, String)>, Vec<&str>> = BTreeMap::new();
        let all: std::collections::BTreeSet<&String> =
            a.plan.hosts.keys().chain(b.plan.hosts.keys()).collect();
        for host in all {
            let lines = match (a.plan.hosts.get(host), b.plan.hosts.get(host)) {
                (Some(_), None) => vec![(false, "the host".to_owned())],
                (None, Some(_)) => vec![(true, "the host".to_owned())],
                (Some(a), Some(b)) => different(a, b),
                (None, None) => continue,
            };
            if !lines.is_empty() {
                groups.entry(lines).or_default().push(host);
            }
        }
        if groups.is_empty() {
            anstream::println!("{}", paint(GOOD, "they do the same"));
            return Ok(0);
        }
        for (lines, hosts) in groups {
            anstream::println!("{}", paint(HEADING, names(&hosts)));
            for (more, line) in lines {
                anstream::println!(
                    "  {}",
                    match more {
                        true => paint(GOOD, format!("+ {line}")),
                        false => paint(BAD, format!("- {line}")),
                    }
                );
            }
        }
        Ok(2)
    }
}

/// What only one of two plans of a host does: in the second where the mark is set.
fn different(a: &HostPlan, b: &HostPlan) -> Vec<(bool, String)> {
    let (one, other) = (steps(a), steps(b));
    let only = |own: &[(String, String)], than: &[(String, String)], more: bool| {
        let new = own.iter().filter(|step| !than.contains(step));
        new.map(|(_, line)| (more, line.clone()))
            .collect::<Vec<_>>()
    };
    let mut lines = only(&one, &other, false);
    lines.extend(only(&other, &one, true));
    lines
}

/// Each effect of a plan, by its digest, and in words; what cannot be known by its task.
fn steps(plan: &HostPlan) -> Vec<(String, String)> {
    let mut steps = Vec::new();
    for task in &plan.tasks {
        let item = task
            .item
            .as_ref()
            .map_or_else(String::new, |item| format!(" ({item})"));
        let of = format!("{}{item}  {}", task.task.name, task.task.place);
        if task.effects.is_empty() {
            steps.push((
                format!("{:?} {of}", task.status),
                format!("{of}: {:?}", task.status).to_lowercase(),
            ));
        }
        for (effect, digest) in task.effects.iter().zip(task.digests.iter()) {
            steps.push((digest.clone(), format!("{}  {of}", effect.summary())));
        }
    }
    steps
}
