use std::collections::{BTreeMap, HashMap};

use sha2::{Digest, Sha256};

use super::{HostPlan, Plan};

/// Hosts whose plans are equal.
#[derive(Debug)]
pub struct Group<'a> {
    /// The hosts, sorted by name.
    pub hosts: Vec<&'a str>,
    /// What would happen on each.
    pub plan: &'a HostPlan,
}

pub(super) fn groups(plan: &Plan) -> Vec<Group<'_>> {
    let mut groups: HashMap<[u8; 32], Group<'_>> = HashMap::new();
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

/// What makes two hosts' plans equal: the same effects of the same tasks, and the same end. A digest of it, for there may
/// be hundreds of effects on thousands of hosts.
fn key(host: &HostPlan) -> [u8; 32] {
    let mut digest = Sha256::new();
    let mut add = |text: &str| {
        digest.update((text.len() as u64).to_le_bytes());
        digest.update(text);
    };
    for task in &host.tasks {
        add(&format!(
            "{} {} {:?}",
            task.task.id, task.index, task.status
        ));
        for effect in task.digests.iter() {
            add(effect);
        }
        add(task.message.as_deref().unwrap_or_default());
    }
    add(&format!("{:?}", host.end));
    digest.finalize().into()
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
