use std::collections::BTreeMap;

use fleet_wire::Status;

use super::{HostPlan, Plan};

/// Hosts whose plans are equal.
#[derive(Debug)]
pub struct Group<'a> {
    /// The hosts, sorted by name.
    pub hosts: Vec<&'a str>,
    /// What would happen on each.
    pub plan: &'a HostPlan,
}

/// What makes two hosts' plans equal: the same effects of the same tasks, and the same end.
type Key = (
    Vec<(usize, usize, String, Vec<String>, Option<String>)>,
    String,
);

pub(super) fn groups(plan: &Plan) -> Vec<Group<'_>> {
    let mut groups: BTreeMap<Key, Group<'_>> = BTreeMap::new();
    for (name, host) in &plan.hosts {
        groups
            .entry(key(host))
            .or_insert_with(|| Group {
                hosts: Vec::new(),
                plan: host,
            })
            .hosts
            .push(name);
    }
    let mut groups: Vec<_> = groups.into_values().collect();
    groups.sort_by_key(|group| {
        (
            !group.plan.changes(),
            group.hosts.len(),
            group.hosts[0].to_owned(),
        )
    });
    groups
}

fn key(host: &HostPlan) -> Key {
    let tasks = host.tasks.iter().map(|task| {
        let status = match task.status {
            Status::Changed => "changed",
            Status::Unknown => "unknown",
            _ => "failed",
        };
        let digests = task.digests.to_vec();
        (
            task.task.id,
            task.index,
            status.to_owned(),
            digests,
            task.message.clone(),
        )
    });
    (
        tasks.collect(),
        host.end
            .as_ref()
            .map(|end| format!("{end:?}"))
            .unwrap_or_default(),
    )
}

/// Host names in short: `web[01-03,07], db1`.
#[must_use]
pub fn names(hosts: &[&str]) -> String {
    let mut stems: BTreeMap<(&str, usize), Vec<u64>> = BTreeMap::new();
    let mut plain = Vec::new();
    for host in hosts {
        let stem = host.trim_end_matches(|c: char| c.is_ascii_digit());
        let digits = &host[stem.len()..];
        match digits.parse() {
            // A width of its own keeps `web01` and `web1` apart.
            Ok(number) => {
                let width = if digits.starts_with('0') {
                    digits.len()
                } else {
                    0
                };
                stems.entry((stem, width)).or_default().push(number);
            }
            Err(_) => plain.push((*host).to_owned()),
        }
    }
    // A leading zero in one number sets the width for all of that width.
    let padded: Vec<_> = stems
        .keys()
        .filter(|(_, width)| *width > 0)
        .copied()
        .collect();
    for (stem, width) in padded {
        let Some(bare) = stems.get_mut(&(stem, 0)) else {
            continue;
        };
        let (same, other): (Vec<_>, Vec<_>) = bare
            .drain(..)
            .partition(|number| number.to_string().len() == width);
        *bare = other;
        if bare.is_empty() {
            stems.remove(&(stem, 0));
        }
        stems.entry((stem, width)).or_default().extend(same);
    }
    let folded = stems.into_iter().map(|((stem, width), mut numbers)| {
        numbers.sort_unstable();
        fold(stem, width, &numbers)
    });
    plain
        .into_iter()
        .chain(folded)
        .collect::<Vec<_>>()
        .join(", ")
}

fn fold(stem: &str, width: usize, numbers: &[u64]) -> String {
    if let [one] = numbers {
        return format!("{stem}{one:0width$}");
    }
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, end)) if *end + 1 == *number => *end = *number,
            _ => ranges.push((*number, *number)),
        }
    }
    let ranges: Vec<_> = ranges
        .into_iter()
        .map(|(start, end)| match start == end {
            true => format!("{start:0width$}"),
            false => format!("{start:0width$}-{end:0width$}"),
        })
        .collect();
    format!("{stem}[{}]", ranges.join(","))
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn names_fold_into_ranges() {
        assert_eq!(names(&["web1", "web2", "web3", "web7"]), "web[1-3,7]");
        assert_eq!(names(&["web01", "web02", "web10"]), "web[01-02,10]");
        assert_eq!(names(&["db", "web1"]), "db, web1");
        assert_eq!(names(&["a.example.org", "b2"]), "a.example.org, b2");
        assert_eq!(names(&["web1", "web01"]), "web1, web01");
    }
}
