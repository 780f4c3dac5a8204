//! `--list-hosts`, `--list-tasks`, `--list-tags` and `--syntax-check` as ansible-playbook prints them.

use std::collections::BTreeSet;

use anyhow::Result;
use fleet_engine::{
    playbook::{Play, Step, TagFilter},
    run::Run,
};

use crate::{error::Mistakes, flags::Tasks, tags::Tags};

/// Prints what was asked for.
pub(super) fn list(run: &Run, tasks: &Tasks, syntax_only: bool) -> Result<u8> {
    let tags = Tags {
        templar: &run.templar,
        extra_vars: &run.settings.extra_vars,
    };
    let mut plays = run.plays().map_err(Mistakes)?.into_iter();
    for book in run.playbooks.iter() {
        anstream::println!("\nplaybook: {}", book.path.display());
        let own: Vec<_> = plays.by_ref().take(book.plays.len()).collect();
        if syntax_only {
            continue;
        }
        for (index, (play, hosts)) in own.iter().enumerate() {
            anstream::print!(
                "{}",
                of_play(index, play, hosts, tasks, &run.settings.tags, &tags)
            );
        }
    }
    Ok(0)
}

fn of_play(
    index: usize,
    play: &Play,
    hosts: &[String],
    asked: &Tasks,
    filter: &TagFilter,
    tags: &Tags<'_>,
) -> String {
    let patterns = play
        .hosts
        .as_seq()
        .unwrap_or(std::slice::from_ref(&play.hosts));
    let patterns: Vec<_> = patterns
        .iter()
        .map(|pattern| pattern.scalar_text().unwrap_or_default())
        .collect();
    let mut text = format!(
        "\n  play #{} ({}): {}\tTAGS: [{}]\n",
        index + 1,
        patterns.join(","),
        play.name.scalar_text().unwrap_or_default(),
        tags.of_play(play).join(",")
    );
    if asked.list_hosts {
        let quoted: Vec<_> = patterns.iter().map(|own| format!("'{own}'")).collect();
        text.push_str(&format!("    pattern: [{}]\n", quoted.join(", ")));
        text.push_str(&format!("    hosts ({}):\n", hosts.len()));
        for host in hosts {
            text.push_str(&format!("      {host}\n"));
        }
    }
    // Tags are all listed, those of tasks that never run by themselves among them.
    let every = TagFilter::parse(&["all,never".to_owned()], &filter.skip);
    let filter = match asked.list_tags && filter.only.is_empty() {
        true => &every,
        false => filter,
    };
    let steps = play.sections.iter().flatten();
    let chosen: Vec<_> = steps
        .flat_map(Step::tasks)
        .map(|task| (task, tags.of(play, task)))
        .filter(|(_, own)| filter.takes_tags(own))
        .map(|(task, own)| (task, BTreeSet::from_iter(own)))
        .collect();
    if asked.list_tasks {
        text.push_str("    tasks:\n");
        for (task, own) in &chosen {
            text.push_str(&format!(
                "      {}\tTAGS: [{}]\n",
                task.full_title(),
                joined(own)
            ));
        }
    }
    if asked.list_tags {
        let all = chosen.into_iter().flat_map(|(_, own)| own).collect();
        text.push_str(&format!("      TASK TAGS: [{}]\n", joined(&all)));
    }
    text
}

fn joined(tags: &BTreeSet<String>) -> String {
    let tags: Vec<_> = tags.iter().map(String::as_str).collect();
    tags.join(", ")
}
