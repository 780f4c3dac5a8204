//! `--list-hosts`, `--list-tasks` and `--list-tags`.

use std::collections::BTreeSet;

use anyhow::Result;
use fleet_engine::run::Run;

use crate::{
    error::Mistakes,
    flags::Tasks,
    paint::{HEADING, QUIET, paint},
};

/// Prints what was asked for.
pub(crate) fn list(run: &Run, tasks: &Tasks) -> Result<u8> {
    for (play, hosts) in run.plays().map_err(Mistakes)? {
        anstream::println!("{}", paint(HEADING, play.name.as_str().unwrap_or_default()));
        if tasks.list_hosts {
            anstream::println!("  hosts ({}):", hosts.len());
            for host in &hosts {
                anstream::println!("    {host}");
            }
        }
        let chosen = || {
            play.all_tasks()
                .filter(|task| run.settings.tags.takes(task))
        };
        if tasks.list_tasks {
            anstream::println!("  tasks:");
            for task in chosen() {
                let tags = task.directives.tags.join(", ");
                let tags = if tags.is_empty() {
                    tags
                } else {
                    format!("  [{tags}]")
                };
                anstream::println!(
                    "    {}{}",
                    task.title(),
                    paint(QUIET, format!("  {}{tags}", task.place()))
                );
            }
        }
        if tasks.list_tags {
            let tags: BTreeSet<&str> = chosen()
                .flat_map(|task| &task.directives.tags)
                .map(String::as_str)
                .collect();
            anstream::println!(
                "  tags: {}",
                tags.into_iter().collect::<Vec<_>>().join(", ")
            );
        }
    }
    Ok(0)
}
