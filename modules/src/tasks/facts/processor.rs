use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{Facts, source::Source};

/// Processors, counted as Ansible counts: sockets, cores a socket, threads a core.
pub(super) fn gather(source: &Source<'_>, facts: &mut Facts) {
    let text = source.text("/proc/cpuinfo").unwrap_or_default();
    let cpus = Processors::parse(&text);
    let online = u32::try_from(cpus.logical).unwrap_or(0).max(1);
    let nproc = affinity().unwrap_or(online);
    facts.put("processor", json!(cpus.description));
    facts.put("processor_count", cpus.sockets);
    facts.put("processor_cores", cpus.cores);
    facts.put("processor_threads_per_core", cpus.threads);
    facts.put("processor_vcpus", cpus.sockets * cpus.cores * cpus.threads);
    facts.put("processor_nproc", nproc);
    facts.put("flags", json!(cpus.flags));
}

/// How many processors this process may run on: a cpuset is seen here, a quota is not.
pub(super) fn affinity() -> Option<u32> {
    rustix::thread::sched_getaffinity(None)
        .ok()
        .map(|set| set.count())
}

#[derive(Debug, PartialEq)]
struct Processors {
    /// Number, vendor and model of each, one after the other.
    description: Vec<Value>,
    flags: Vec<String>,
    logical: usize,
    sockets: usize,
    cores: usize,
    threads: usize,
}

impl Processors {
    fn parse(text: &str) -> Self {
        let mut description = Vec::new();
        let mut flags = Vec::new();
        let mut logical = 0;
        let mut sockets: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        let mut core_ids = BTreeSet::new();
        for block in text.split("\n\n") {
            let pairs: Vec<(&str, &str)> = block
                .lines()
                .filter_map(|line| line.split_once(':'))
                .map(|(key, value)| (key.trim(), value.trim()))
                .collect();
            let get = |key: &str| {
                pairs
                    .iter()
                    .find(|(k, _)| *k == key)
                    .map(|(_, value)| *value)
            };
            if get("processor").is_none() {
                continue;
            }
            logical += 1;
            for (key, value) in &pairs {
                if matches!(*key, "processor" | "vendor_id" | "model name" | "Processor") {
                    description.push(Value::from(*value));
                }
            }
            if flags.is_empty()
                && let Some(list) = get("flags").or_else(|| get("Features"))
            {
                flags = list.split_whitespace().map(str::to_owned).collect();
            }
            if let Some(socket) = get("physical id") {
                let count = |key: &str| get(key).and_then(|n| n.parse().ok()).unwrap_or(1).max(1);
                let (cores, siblings) = (count("cpu cores"), count("siblings"));
                sockets.insert(socket, (cores, siblings));
                core_ids.insert((socket, get("core id").unwrap_or_default()));
            }
        }
        let (count, cores, threads) = match sockets.values().next() {
            Some((cores, siblings)) => (sockets.len(), *cores, (siblings / cores).max(1)),
            None => (logical, 1, 1),
        };
        Self {
            description,
            flags,
            logical,
            sockets: count,
            cores,
            threads,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Processors;

    fn block(number: u32, socket: u32, core: u32, cores: u32, siblings: u32) -> String {
        format!(
            "processor\t: {number}\nvendor_id\t: GenuineIntel\nmodel name\t: Xeon\nphysical id\t: {socket}\nsiblings\t: {siblings}\ncore id\t\t: {core}\ncpu cores\t: {cores}\nflags\t\t: fpu sse2\n"
        )
    }

    fn counts(text: &str) -> (usize, usize, usize, usize) {
        let cpus = Processors::parse(text);
        (cpus.logical, cpus.sockets, cpus.cores, cpus.threads)
    }

    #[test]
    fn sockets_cores_and_threads_are_told_apart() {
        let two_sockets_two_cores_two_threads: Vec<String> =
            (0..8).map(|n| block(n, n / 4, n % 2, 2, 4)).collect();
        assert_eq!(
            counts(&two_sockets_two_cores_two_threads.join("\n")),
            (8, 2, 2, 2)
        );
    }

    #[test]
    fn a_machine_without_sockets_counts_its_processors() {
        let arm =
            "processor\t: 0\nFeatures\t: fp asimd\n\nprocessor\t: 1\nFeatures\t: fp asimd\n\n";
        assert_eq!(counts(arm), (2, 2, 1, 1));
        assert_eq!(Processors::parse(arm).flags, ["fp", "asimd"]);
    }

    #[test]
    fn the_description_lists_number_vendor_and_model() {
        assert_eq!(
            Processors::parse(&block(0, 0, 0, 1, 1)).description,
            ["0", "GenuineIntel", "Xeon"]
        );
    }
}
