use std::fs;

use rustix::time::{ClockId, clock_gettime};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::facts::{netlink, tuning::open_files};
use crate::args::Text;
use crate::host::{Fault, Host};
use crate::module::{Module, Report, Task};

pub(super) static MODULE: Module = Module::of::<Counters>();

/// A snapshot of what a bench compares before and after a load: CPU time of a unit and of the machine, network counters, limits, backlogs.
/// For fleetctl's own use.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Counters {
    /// The unit, `nginx.service`; none for the machine's counters alone.
    unit: Option<Text>,
}

/// Ticks of `/proc` in a second: fixed for programs on every architecture that fleetctl is built for.
const TICKS: u64 = 100;

impl Task for Counters {
    const NAME: &'static str = "_counters";

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        let unit = match &self.unit {
            Some(name) => unit(host, name)?,
            None => Value::Null,
        };
        Ok(Report::of(json!({
            "monotonic_us": monotonic_us(),
            "ticks_per_second": TICKS,
            "unit": unit,
            "cpu": cpu(&read("/proc/stat")),
            "tcp": tables(&read("/proc/net/netstat"), &read("/proc/net/snmp")),
            "sockets": sockets(&read("/proc/net/sockstat")),
            "softnet": softnet(&read("/proc/net/softnet_stat")),
            "listening": listening(),
        })))
    }
}

/// The clock that no change of the time touches, in microseconds.
pub(super) fn monotonic_us() -> i64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec * 1_000_000 + now.tv_nsec / 1_000
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// A unit's processes and what its control group has used, workers that have ended included.
fn unit(host: &Host, name: &str) -> Result<Value, Fault> {
    let state = host.unit(name)?;
    let main = state.main_pid;
    let group = group(&read(&format!("/proc/{main}/cgroup")));
    let processes: Vec<Process> = pids(main, &group)
        .into_iter()
        .filter_map(Process::read)
        .collect();
    let sum = |of: fn(&Process) -> u64| processes.iter().map(of).sum::<u64>();
    let used = group_usage(&group);
    Ok(json!({
        "name": state.id,
        "active": state.active,
        "main_pid": main,
        "count": processes.len(),
        "user_ticks": sum(|process| process.user),
        "system_ticks": sum(|process| process.system),
        "rss_kb": sum(|process| process.rss_kb),
        "group_user_us": used.map(|(user, _)| user),
        "group_system_us": used.map(|(_, system)| system),
        "processes": processes.iter().map(|process| process.describe(main)).collect::<Vec<_>>(),
    }))
}

/// The control group of a process in each hierarchy: the controllers, then the path.
fn group(text: &str) -> Vec<(String, String)> {
    let line = |line: &str| {
        let mut parts = line.splitn(3, ':').skip(1);
        Some((parts.next()?.to_owned(), parts.next()?.to_owned()))
    };
    text.lines().filter_map(line).collect()
}

/// Directories of a group under the places where its hierarchies are mounted.
fn dirs(group: &[(String, String)]) -> Vec<String> {
    let mount = |controllers: &str| match controllers {
        "" => vec![
            "/sys/fs/cgroup".to_owned(),
            "/sys/fs/cgroup/unified".to_owned(),
        ],
        "name=systemd" => vec!["/sys/fs/cgroup/systemd".to_owned()],
        other => vec![format!("/sys/fs/cgroup/{other}")],
    };
    group
        .iter()
        .filter(|(_, path)| path != "/")
        .flat_map(|(controllers, path)| {
            mount(controllers)
                .into_iter()
                .map(move |dir| format!("{dir}{path}"))
        })
        .collect()
}

/// The processes of a group; where it cannot be read, the main one and its children.
fn pids(main: u32, group: &[(String, String)]) -> Vec<u32> {
    let numbers = |text: String| {
        text.split_whitespace()
            .filter_map(|pid| pid.parse().ok())
            .collect::<Vec<u32>>()
    };
    let of_group = dirs(group)
        .into_iter()
        .map(|dir| numbers(read(&format!("{dir}/cgroup.procs"))))
        .find(|pids| pids.contains(&main));
    of_group.unwrap_or_else(|| {
        let mut pids = numbers(read(&format!("/proc/{main}/task/{main}/children")));
        if main != 0 {
            pids.insert(0, main);
        }
        pids
    })
}

/// CPU time of a group in microseconds, user and system.
fn group_usage(group: &[(String, String)]) -> Option<(u64, u64)> {
    dirs(group).into_iter().find_map(|dir| {
        let text = read(&format!("{dir}/cpu.stat"));
        let number = |key: &str| {
            let mut lines = text.lines();
            lines.find_map(|line| line.strip_prefix(key)?.trim().parse::<u64>().ok())
        };
        Some((number("user_usec ")?, number("system_usec ")?))
    })
}

/// A process, as `/proc` has it; times in ticks.
struct Process {
    pid: u32,
    parent: u32,
    name: String,
    user: u64,
    system: u64,
    started: u64,
    threads: u64,
    rss_kb: u64,
    title: String,
    nofile: (Option<u64>, Option<u64>),
}

impl Process {
    fn read(pid: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let mut process = Self::parse(pid, &stat)?;
        let status = read(&format!("/proc/{pid}/status"));
        let rss = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        process.rss_kb = rss
            .and_then(|text| text.split_whitespace().next()?.parse().ok())
            .unwrap_or(0);
        process.title = read(&format!("/proc/{pid}/cmdline"))
            .replace('\0', " ")
            .trim()
            .to_owned();
        process.nofile = open_files(&read(&format!("/proc/{pid}/limits")));
        Some(process)
    }

    /// The name is in brackets and may hold anything, brackets too.
    fn parse(pid: u32, stat: &str) -> Option<Self> {
        let (head, tail) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = tail.split_whitespace().collect();
        // The state is the third field of the file, and the first here.
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        Some(Self {
            pid,
            parent: number(4)?.try_into().ok()?,
            name: head.split_once('(')?.1.to_owned(),
            user: number(14)?,
            system: number(15)?,
            threads: number(20)?,
            started: number(22)?,
            rss_kb: 0,
            title: String::new(),
            nofile: (None, None),
        })
    }

    fn describe(&self, main: u32) -> Value {
        json!({
            "pid": self.pid,
            "worker": self.pid != main && self.parent == main,
            "name": self.name,
            "title": self.title,
            "user_ticks": self.user,
            "system_ticks": self.system,
            "started_ticks": self.started,
            "threads": self.threads,
            "rss_kb": self.rss_kb,
            "nofile_soft": self.nofile.0,
            "nofile_hard": self.nofile.1,
        })
    }
}

/// User and system time in ticks of a process and of its children that have ended.
pub(super) fn spent(stat: &str) -> Option<(u64, u64)> {
    let (_, tail) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = tail.split_whitespace().collect();
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some((number(14)? + number(16)?, number(15)? + number(17)?))
}

/// Ticks as microseconds.
pub(super) fn microseconds(ticks: u64) -> u64 {
    ticks * (1_000_000 / TICKS)
}

/// The machine's CPU time in ticks, and how many processors there are.
fn cpu(stat: &str) -> Value {
    const NAMES: [&str; 8] = [
        "user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal",
    ];
    let total = stat
        .lines()
        .find_map(|line| line.strip_prefix("cpu "))
        .unwrap_or_default();
    let numbers = total
        .split_whitespace()
        .filter_map(|number| number.parse::<u64>().ok());
    let mut cpu: Map<String, Value> = NAMES
        .iter()
        .zip(numbers)
        .map(|(name, ticks)| ((*name).to_owned(), ticks.into()))
        .collect();
    let is_one = |line: &&str| {
        line.strip_prefix("cpu")
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    cpu.insert(
        "cpus".to_owned(),
        stat.lines().filter(is_one).count().into(),
    );
    cpu.into()
}

/// Counters that say something of a bench, from the kernel's tables of names and values.
const WANTED: [&str; 22] = [
    "ListenOverflows",
    "ListenDrops",
    "TCPReqQFullDrop",
    "TCPReqQFullDoCookies",
    "SyncookiesSent",
    "TCPTimeWaitOverflow",
    "TW",
    "TCPTimeouts",
    "TCPLostRetransmit",
    "TCPSynRetrans",
    "TCPFastRetrans",
    "TCPSlowStartRetrans",
    "TCPAbortOnMemory",
    "TCPAbortOnOverflow",
    "TCPBacklogDrop",
    "TCPRcvQDrop",
    "TCPMigrateReqSuccess",
    "RetransSegs",
    "ActiveOpens",
    "PassiveOpens",
    "OutRsts",
    "EstabResets",
];

fn tables(netstat: &str, snmp: &str) -> Value {
    let mut found = Map::new();
    for text in [netstat, snmp] {
        let lines: Vec<&str> = text.lines().collect();
        for pair in lines
            .chunks_exact(2)
            .filter(|pair| pair[0].starts_with("Tcp"))
        {
            for (name, value) in pair[0].split_whitespace().zip(pair[1].split_whitespace()) {
                if WANTED.contains(&name) {
                    found.insert(name.to_owned(), value.parse::<i64>().ok().into());
                }
            }
        }
    }
    found.into()
}

/// `TCP: inuse 5 orphan 0 tw 10 alloc 7 mem 1`
fn sockets(sockstat: &str) -> Value {
    let tcp = sockstat
        .lines()
        .find_map(|line| line.strip_prefix("TCP:"))
        .unwrap_or_default();
    let words: Vec<&str> = tcp.split_whitespace().collect();
    let pairs = words
        .chunks_exact(2)
        .map(|pair| (pair[0].to_owned(), pair[1].parse::<u64>().ok().into()));
    pairs.collect::<Map<_, _>>().into()
}

/// Packets that came in, that found the queue full, and how often the time for them ran out; of all processors.
fn softnet(stat: &str) -> Value {
    let column = |at: usize| -> u64 {
        let numbers = stat
            .lines()
            .filter_map(|line| u64::from_str_radix(line.split_whitespace().nth(at)?, 16).ok());
        numbers.sum()
    };
    json!({"processed": column(0), "dropped": column(1), "squeezed": column(2)})
}

fn listening() -> Vec<Value> {
    let mut sockets = netlink::listeners().unwrap_or_default();
    sockets.sort_by_key(|socket| (socket.port, socket.address));
    sockets
        .iter()
        .map(|socket| {
            json!({"address": socket.address.to_string(), "port": socket.port, "backlog": socket.backlog, "queued": socket.queued})
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{MODULE, Process, cpu, dirs, group, sockets, softnet, spent, tables};
    use crate::host::Host;

    #[test]
    fn a_process_is_read_whatever_its_name() {
        let stat =
            "42 (nginx: (w) x) S 7 42 42 0 -1 4194624 1 2 3 4 150 25 10 5 20 0 1 0 9876 1 2 3";
        let process = Process::parse(42, stat).unwrap();
        assert_eq!((process.parent, process.name.as_str()), (7, "nginx: (w) x"));
        assert_eq!(
            (
                process.user,
                process.system,
                process.threads,
                process.started
            ),
            (150, 25, 1, 9876)
        );
        assert_eq!(spent(stat), Some((160, 30)));
    }

    #[test]
    fn a_group_is_looked_for_in_each_hierarchy() {
        let group = group(
            "0::/system.slice/nginx.service\n9:name=systemd:/system.slice/nginx.service\n5:devices:/\n",
        );
        assert_eq!(
            dirs(&group),
            [
                "/sys/fs/cgroup/system.slice/nginx.service",
                "/sys/fs/cgroup/unified/system.slice/nginx.service",
                "/sys/fs/cgroup/systemd/system.slice/nginx.service"
            ]
        );
    }

    #[test]
    fn the_kernels_tables_are_read() {
        assert_eq!(
            tables(
                "TcpExt: SyncookiesSent ListenOverflows Other\nTcpExt: 1 26 3\nIpExt: InNoRoutes\nIpExt: 0\n",
                "Ip: Forwarding\nIp: 1\nTcp: RetransSegs MaxConn\nTcp: 12 -1\n"
            ),
            json!({"SyncookiesSent": 1, "ListenOverflows": 26, "RetransSegs": 12})
        );
        assert_eq!(
            cpu("cpu  1 2 3 4 5 6 7 8 0 0\ncpu0 1 1 1 1 1 1 1 1\ncpu1 0 0 0 0 0 0 0 0\nintr 5\n"),
            json!({"user": 1, "nice": 2, "system": 3, "idle": 4, "iowait": 5, "irq": 6, "softirq": 7, "steal": 8, "cpus": 2})
        );
        assert_eq!(
            sockets("sockets: used 9\nTCP: inuse 5 tw 10\n"),
            json!({"inuse": 5, "tw": 10})
        );
        assert_eq!(
            softnet("0000000a 00000001 00000000\n00000001 00000002 00000003\n"),
            json!({"processed": 11, "dropped": 3, "squeezed": 3})
        );
    }

    #[test]
    fn this_machine_has_counters() {
        let fields = (MODULE.run)(json!({}), &mut Host::plan()).unwrap().fields;
        assert!(fields["cpu"]["user"].as_u64().unwrap() > 0);
        assert!(fields["tcp"]["ListenOverflows"].is_i64());
        assert!(fields["monotonic_us"].as_i64().unwrap() > 0);
    }
}
