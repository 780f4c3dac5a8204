use serde_json::{Map, Value, json};

use super::{Facts, netlink, processor, source::Source};

/// What a tuning is computed from: processors and memory that may really be used, listening sockets, nginx.
pub(super) fn gather(source: &Source<'_>, facts: &mut Facts) {
    let limits = Limits::read(source, &first_cgroup(source));
    let nproc = processor::affinity().unwrap_or(1);
    facts.put(
        "fleetctl",
        json!({
            "cpus": limits.cpus(nproc),
            "cpu_quota": limits.cpu_quota,
            "cpuset": limits.cpuset.or_else(|| source.line("/sys/devices/system/cpu/online")),
            "memory_limit_mb": limits.memory.map(|bytes| bytes >> 20),
            "nofile_hard": nofile(source),
            "systemd_version": super::system::systemd_version(source),
            "listening": listening(),
            "nginx": super::nginx::describe(source),
        }),
    );
}

/// The live values of the kernel parameters that tunings touch, with white space folded, so that a
/// template can raise one without ever lowering it.
pub(super) fn sysctls(source: &Source<'_>, facts: &mut Facts) {
    let mut values: Map<String, Value> = Map::new();
    let mut put = |key: &str| {
        if let Some(text) = source.line(&format!("/proc/sys/{key}")) {
            let folded = text.split_whitespace().collect::<Vec<_>>().join(" ");
            values.insert(key.replace('/', "."), folded.into());
        }
    };
    for (dir, prefixes) in FAMILIES {
        for name in source.names(&format!("/proc/sys/{dir}")) {
            if prefixes.iter().any(|prefix| name.starts_with(prefix))
                && !SECRET.contains(&name.as_str())
            {
                put(&format!("{dir}/{name}"));
            }
        }
    }
    KEYS.iter().for_each(|key| put(key));
    facts.put("sysctl", values);
}

const FAMILIES: &[(&str, &[&str])] = &[
    (
        "net/core",
        &[
            "somaxconn",
            "netdev_",
            "rmem_",
            "wmem_",
            "optmem_max",
            "default_qdisc",
            "busy_",
            "dev_weight",
            "rps_",
        ],
    ),
    (
        "net/ipv4",
        &[
            "tcp_",
            "udp_",
            "ip_local_",
            "ip_forward",
            "ip_nonlocal_bind",
        ],
    ),
    (
        "net/netfilter",
        &[
            "nf_conntrack_max",
            "nf_conntrack_buckets",
            "nf_conntrack_count",
            "nf_conntrack_tcp_timeout_",
        ],
    ),
    ("fs/inotify", &["max_"]),
];

const KEYS: &[&str] = &[
    "fs/file-max",
    "fs/nr_open",
    "fs/aio-max-nr",
    "fs/pipe-max-size",
    "kernel/pid_max",
    "kernel/threads-max",
    "kernel/sched_autogroup_enabled",
    "vm/swappiness",
    "vm/dirty_ratio",
    "vm/dirty_background_ratio",
    "vm/dirty_bytes",
    "vm/dirty_background_bytes",
    "vm/dirty_expire_centisecs",
    "vm/dirty_writeback_centisecs",
    "vm/max_map_count",
    "vm/min_free_kbytes",
    "vm/overcommit_memory",
    "vm/overcommit_ratio",
    "vm/vfs_cache_pressure",
    "vm/nr_hugepages",
    "vm/zone_reclaim_mode",
];

/// Keys are secrets of the kernel.
const SECRET: &[&str] = &["tcp_fastopen_key", "netdev_rss_key"];

/// What a control group may use; the tightest of it and the groups above it.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Limits {
    /// In processors: 1.5 for one and a half.
    pub(super) cpu_quota: Option<f64>,
    /// `0-1,4`
    cpuset: Option<String>,
    /// In bytes.
    memory: Option<u64>,
}

impl Limits {
    pub(super) fn read(source: &Source<'_>, group: &str) -> Self {
        let unified = source.exists("/sys/fs/cgroup/cgroup.controllers");
        let mut limits = Self::default();
        for group in ancestors(group) {
            let file = |controller: &str, name: &str| {
                let dir = if unified {
                    String::new()
                } else {
                    format!("/{controller}")
                };
                source.line(&format!("/sys/fs/cgroup{dir}{group}/{name}"))
            };
            let (quota, memory) = if unified {
                (file("", "cpu.max"), file("", "memory.max"))
            } else {
                let quota = file("cpu", "cpu.cfs_quota_us");
                let period = file("cpu", "cpu.cfs_period_us");
                let quota = quota
                    .zip(period)
                    .map(|(quota, period)| format!("{quota} {period}"));
                (quota, file("memory", "memory.limit_in_bytes"))
            };
            let quota = quota.and_then(|text| processors(&text));
            limits.cpu_quota = least(limits.cpu_quota, quota, f64::min);
            // Version 1 says "no limit" by a number near the largest.
            let memory = memory
                .and_then(|text| text.parse().ok())
                .filter(|bytes| *bytes < 1 << 62);
            limits.memory = least(limits.memory, memory, u64::min);
            limits.cpuset = limits.cpuset.or_else(|| {
                let name = if unified {
                    "cpuset.cpus.effective"
                } else {
                    "cpuset.effective_cpus"
                };
                file("cpuset", name)
            });
        }
        limits
    }

    /// Whole processors that can be busy at once: those that may be run on, or fewer by the quota.
    fn cpus(&self, nproc: u32) -> u32 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a quota of processors is small and positive"
        )]
        let quota = self.cpu_quota.map_or(u32::MAX, |quota| quota.ceil() as u32);
        nproc.min(quota).max(1)
    }
}

/// `200000 100000` is 2 processors; `max 100000` and `-1 100000` are no limit.
fn processors(text: &str) -> Option<f64> {
    let mut words = text.split_whitespace();
    let quota: f64 = words.next()?.parse().ok()?;
    let period: f64 = words.next()?.parse().ok()?;
    (quota > 0.0 && period > 0.0).then_some(quota / period)
}

fn least<T: Copy>(one: Option<T>, other: Option<T>, smaller: fn(T, T) -> T) -> Option<T> {
    one.zip(other).map(|(a, b)| smaller(a, b)).or(one).or(other)
}

/// `/a/b` is `/a/b`, `/a` and the root, which is empty.
fn ancestors(group: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(group.trim_end_matches('/')), |group| {
        group.rfind('/').map(|at| &group[..at])
    })
}

/// The group of the first process stands for the machine: a service's own is below it.
fn first_cgroup(source: &Source<'_>) -> String {
    let text = source.text("/proc/1/cgroup").unwrap_or_default();
    let unified = text.lines().find_map(|line| line.strip_prefix("0::"));
    let group = unified.unwrap_or("/");
    group
        .strip_suffix("/init.scope")
        .unwrap_or(group)
        .to_owned()
}

/// The hard limit of open files of the first process, which services inherit unless they say otherwise.
fn nofile(source: &Source<'_>) -> Option<u64> {
    open_files(&source.text("/proc/1/limits")?).1
}

/// Soft and hard limit of open files in a process's `limits`.
pub(in crate::tasks) fn open_files(limits: &str) -> (Option<u64>, Option<u64>) {
    let mut numbers = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))
        .unwrap_or_default()
        .split_whitespace()
        .map(|word| word.parse().ok());
    (numbers.next().flatten(), numbers.next().flatten())
}

/// The TCP sockets that listen; the backlog is the one in force, which a later rise of `somaxconn` does not change.
fn listening() -> Vec<Value> {
    let mut sockets = netlink::listeners().unwrap_or_default();
    sockets.sort_by_key(|socket| (socket.port, socket.address));
    sockets
        .iter()
        .map(|socket| json!({"address": socket.address.to_string(), "port": socket.port, "backlog": socket.backlog}))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::{Files, gathered, with_source};
    use super::{Limits, open_files};

    #[test]
    fn the_tightest_limit_of_a_group_and_those_above_it_holds() {
        let unified = ("/sys/fs/cgroup/cgroup.controllers", "cpu memory cpuset");
        let cases: &[(Files<'_>, Option<f64>, u32)] = &[
            (&[unified], None, 4),
            (
                &[unified, ("/sys/fs/cgroup/cpu.max", "150000 100000\n")],
                Some(1.5),
                2,
            ),
            (
                &[
                    unified,
                    ("/sys/fs/cgroup/a/b/cpu.max", "max 100000"),
                    ("/sys/fs/cgroup/a/cpu.max", "50000 100000"),
                ],
                Some(0.5),
                1,
            ),
            (
                &[
                    ("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "300000"),
                    ("/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000"),
                    ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1"),
                    ("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000"),
                ],
                Some(3.0),
                3,
            ),
        ];
        for (files, quota, cpus) in cases {
            with_source(files, |source| {
                let limits = Limits::read(source, "/a/b");
                assert_eq!(limits.cpu_quota, *quota, "{files:?}");
                assert_eq!(limits.cpus(4), *cpus, "{files:?}");
            });
        }
    }

    #[test]
    fn memory_without_a_limit_is_none() {
        with_source(
            &[(
                "/sys/fs/cgroup/memory/memory.limit_in_bytes",
                "9223372036854771712\n",
            )],
            |source| {
                assert_eq!(Limits::read(source, "/"), Limits::default());
            },
        );
        with_source(
            &[
                ("/sys/fs/cgroup/cgroup.controllers", ""),
                ("/sys/fs/cgroup/memory.max", "536870912\n"),
            ],
            |source| {
                assert_eq!(Limits::read(source, "/").memory, Some(512 << 20));
            },
        );
    }

    #[test]
    fn live_values_are_folded_and_secrets_left_out() {
        let facts = gathered(
            super::sysctls,
            &[
                ("/proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n"),
                ("/proc/sys/net/ipv4/tcp_fastopen_key", "00000000-1"),
                ("/proc/sys/net/core/somaxconn", "4096\n"),
                ("/proc/sys/vm/swappiness", "60\n"),
                ("/proc/sys/vm/compact_memory", "1\n"),
            ],
        );
        assert_eq!(
            facts.get("sysctl"),
            Some(
                &json!({"net.ipv4.tcp_rmem": "4096 131072 6291456", "net.core.somaxconn": "4096", "vm.swappiness": "60"})
            )
        );
    }

    #[test]
    fn limits_of_open_files_are_soft_and_hard() {
        let text = "Limit   Soft Limit  Hard Limit  Units\nMax open files            1024                 524288               files     \n";
        assert_eq!(open_files(text), (Some(1024), Some(524_288)));
        assert_eq!(
            open_files("Max open files unlimited unlimited files"),
            (None, None)
        );
    }
}
