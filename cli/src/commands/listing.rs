//! `--list-hosts`, `--list-tasks` and `--list-tags`.

use std::collections::BTreeSet;

use anyhow::Result;
use fleet_engine::{playbook::Step, run::Run};

use crate::{
    error::Mistakes,
    flags::Tasks,
    paint::{HEADING, QUIET, paint},
    tags::Tags,
};

/// Prints what was asked for.
pub(crate) fn list(run: &Run, tasks: &Tasks) -> Result<u8> {
    let tags = Tags {
        templar: &run.templar,
        extra_vars: &run.settings.extra_vars,
    };
    for (play, hosts) in run.plays().map_err(Mistakes)? {
        anstream::println!("{}", paint(HEADING, play.name.as_str().unwrap_or_default()));
        if tasks.list_hosts {
            anstream::println!("  hosts ({}):", hosts.len());
            for host in &hosts {
                anstream::println!("    {host}");
            }
        }
        let steps = play.sections.iter().flatten().flat_map(Step::tasks);
        let chosen: Vec<_> = steps
            .map(|task| (task, tags.of(&play, task)))
            .filter(|(_, own)| run.settings.tags.takes_tags(own))
            .collect();
        if tasks.list_tasks {
            anstream::println!("  tasks:");
            for (task, own) in &chosen {
                let own = match own.as_slice() {
                    [] => String::new(),
                    own => format!("  [{}]", own.join(", ")),
                };
                anstream::println!(
                    "    {}{}",
                    task.full_title(),
                    paint(QUIET, format!("  {}{own}", task.place()))
                );
            }
        }
        if tasks.list_tags {
            let all: BTreeSet<&str> = chosen
                .iter()
                .flat_map(|(_, own)| own)
                .map(String::as_str)
                .collect();
            anstream::println!("  tags: {}", all.into_iter().collect::<Vec<_>>().join(", "));
        }
    }
    Ok(0)
}
