//! What a run cost the host: the difference of two snapshots that its helper took around it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A snapshot of a host: every figure counts up from boot, but `time_wait` and the memory, which are of the moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counters {
    /// CPU time of the whole host by kind, µs.
    pub cpu: Cpu,
    /// CPU time of the server's control group, µs: workers that have ended are in it. None where the
    /// kernel does not count it.
    pub group_us: Option<u64>,
    /// The server's processes; empty where it does not run.
    pub processes: Vec<Process>,
    /// Connections refused because a listen queue was full.
    pub listen_overflows: u64,
    /// Segments sent again.
    pub retransmits: u64,
    /// Connections accepted.
    pub passive_opens: u64,
    /// Connections in TIME_WAIT.
    pub time_wait: u64,
}

/// CPU time by kind, µs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    /// In programs, niced ones too.
    pub user_us: u64,
    /// In the kernel.
    pub system_us: u64,
    /// In interrupts, soft ones too: most of the network's work.
    pub softirq_us: u64,
    /// Taken by the hypervisor.
    pub steal_us: u64,
    /// Idle or waiting for a disk.
    pub idle_us: u64,
}

/// One process of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: u64,
    /// CPU time so far, user and system, µs.
    pub cpu_us: u64,
    /// Resident memory, bytes.
    pub rss_bytes: u64,
}

impl Counters {
    /// Reads what the helper's `_counters` module says.
    ///
    /// # Errors
    /// It says nothing of the CPU: another helper's answer.
    pub fn read(said: &Value) -> Result<Self, String> {
        let number = |path: &str| said.pointer(path).and_then(Value::as_u64);
        let ticks = number("/ticks_per_second").unwrap_or(100).max(1);
        let us = |count: u64| count.saturating_mul(1_000_000) / ticks;
        let cpu = |kinds: &[&str]| {
            kinds
                .iter()
                .filter_map(|kind| number(&format!("/cpu/{kind}")))
                .map(us)
                .sum()
        };
        if number("/cpu/idle").is_none() {
            return Err("the helper's counters hold no CPU times".to_owned());
        }
        let group = number("/unit/group_user_us").zip(number("/unit/group_system_us"));
        let processes = said.pointer("/unit/processes").and_then(Value::as_array);
        let process = |one: &Value| {
            let number = |key: &str| one.get(key).and_then(Value::as_u64).unwrap_or(0);
            Process {
                pid: number("pid"),
                cpu_us: us(number("user_ticks") + number("system_ticks")),
                rss_bytes: number("rss_kb") * 1024,
            }
        };
        Ok(Self {
            cpu: Cpu {
                user_us: cpu(&["user", "nice"]),
                system_us: cpu(&["system"]),
                softirq_us: cpu(&["irq", "softirq"]),
                steal_us: cpu(&["steal"]),
                idle_us: cpu(&["idle", "iowait"]),
            },
            group_us: group.map(|(user, system)| user + system),
            processes: processes.into_iter().flatten().map(process).collect(),
            listen_overflows: number("/tcp/ListenOverflows").unwrap_or(0),
            retransmits: number("/tcp/RetransSegs").unwrap_or(0),
            passive_opens: number("/tcp/PassiveOpens").unwrap_or(0),
            time_wait: number("/sockets/tw").unwrap_or(0),
        })
    }
}

/// What one run of the load tool cost the host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostCost {
    /// Server CPU a good answer, µs; none where nothing was answered or no server process was seen.
    pub cpu_us_per_request: Option<f64>,
    /// Resident memory of the server at the end, bytes.
    pub rss_bytes: u64,
    /// Shares of the host's CPU time, 0 to 1.
    pub share: CpuShare,
    /// Connections refused because a listen queue was full.
    pub listen_overflows: u64,
    /// Segments sent again.
    pub retransmits: u64,
    /// Connections accepted.
    pub accepted: u64,
    /// Connections in TIME_WAIT at the end.
    pub time_wait: u64,
}

/// Where the host's CPU time went, 0 to 1 of all CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuShare {
    /// In programs.
    pub user: f64,
    /// In the kernel.
    pub system: f64,
    /// In soft interrupts.
    pub softirq: f64,
    /// Taken by the hypervisor.
    pub steal: f64,
}

impl CpuShare {
    /// Everything but idle.
    pub fn busy(self) -> f64 {
        self.user + self.system + self.softirq + self.steal
    }
}

impl HostCost {
    /// The cost of `requests` good answers between two snapshots.
    pub fn between(start: &Counters, end: &Counters, requests: u64) -> Self {
        Self {
            cpu_us_per_request: server_cpu(start, end)
                .filter(|_| requests > 0)
                .map(|us| us as f64 / requests as f64),
            rss_bytes: end.processes.iter().map(|process| process.rss_bytes).sum(),
            share: share(start.cpu, end.cpu),
            listen_overflows: end.listen_overflows.saturating_sub(start.listen_overflows),
            retransmits: end.retransmits.saturating_sub(start.retransmits),
            accepted: end.passive_opens.saturating_sub(start.passive_opens),
            time_wait: end.time_wait,
        }
    }
}

/// CPU time of the server's group; where it is not counted, of the processes seen at the end, less what
/// they had at the start: one that began meanwhile counts whole, and one that ended is lost.
fn server_cpu(start: &Counters, end: &Counters) -> Option<u64> {
    if let Some((start, end)) = start.group_us.zip(end.group_us)
        && end >= start
    {
        return Some(end - start);
    }
    let earlier = |pid| {
        start
            .processes
            .iter()
            .find(|p| p.pid == pid)
            .map_or(0, |p| p.cpu_us)
    };
    let spent = |p: &Process| p.cpu_us.saturating_sub(earlier(p.pid));
    (!end.processes.is_empty()).then(|| end.processes.iter().map(spent).sum())
}

fn share(start: Cpu, end: Cpu) -> CpuShare {
    let kinds = |cpu: Cpu| {
        [
            cpu.user_us,
            cpu.system_us,
            cpu.softirq_us,
            cpu.steal_us,
            cpu.idle_us,
        ]
    };
    let (from, to) = (kinds(start), kinds(end));
    let mut spent = [0.0; 5];
    for (slot, (from, to)) in spent.iter_mut().zip(from.iter().zip(to)) {
        *slot = to.saturating_sub(*from) as f64;
    }
    let all: f64 = spent.iter().sum();
    if all <= 0.0 {
        return CpuShare::default();
    }
    let [user, system, softirq, steal, _] = spent.map(|part| part / all);
    CpuShare {
        user,
        system,
        softirq,
        steal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(cpu_us: &[(u64, u64)]) -> Counters {
        Counters {
            processes: cpu_us
                .iter()
                .map(|(pid, cpu_us)| Process {
                    pid: *pid,
                    cpu_us: *cpu_us,
                    rss_bytes: 4 << 20,
                })
                .collect(),
            ..Counters::default()
        }
    }

    #[test]
    fn the_server_s_cpu_time_is_shared_out_over_the_requests() {
        let start = snapshot(&[(10, 5_000), (11, 1_000_000), (12, 2_000_000)]);
        let end = snapshot(&[(10, 5_000), (11, 1_400_000), (12, 2_600_000)]);
        let cost = HostCost::between(&start, &end, 100_000);
        assert_eq!(cost.cpu_us_per_request, Some(10.0));
        assert_eq!(cost.rss_bytes, 12 << 20);
    }

    #[test]
    fn the_group_s_own_count_wins() {
        let start = Counters {
            group_us: Some(1_000),
            ..snapshot(&[(11, 900)])
        };
        let end = Counters {
            group_us: Some(501_000),
            ..snapshot(&[(21, 100)])
        };
        assert_eq!(
            HostCost::between(&start, &end, 50_000).cpu_us_per_request,
            Some(10.0)
        );
    }

    #[test]
    fn what_the_helper_says_is_read() {
        let said = serde_json::json!({
            "ticks_per_second": 100,
            "unit": {
                "group_user_us": null,
                "group_system_us": null,
                "processes": [
                    {"pid": 10, "user_ticks": 1, "system_ticks": 0, "rss_kb": 1_000},
                    {"pid": 11, "user_ticks": 150, "system_ticks": 25, "rss_kb": 4_000},
                ],
            },
            "cpu": {"user": 1, "nice": 2, "system": 3, "idle": 4, "iowait": 5, "irq": 6, "softirq": 7, "steal": 8, "cpus": 2},
            "tcp": {"ListenOverflows": 1_461, "RetransSegs": 30, "PassiveOpens": 2_000},
            "sockets": {"inuse": 5, "tw": 125},
        });
        let counters = Counters::read(&said).unwrap();
        assert_eq!(
            counters,
            Counters {
                cpu: Cpu {
                    user_us: 30_000,
                    system_us: 30_000,
                    softirq_us: 130_000,
                    steal_us: 80_000,
                    idle_us: 90_000,
                },
                group_us: None,
                processes: vec![
                    Process {
                        pid: 10,
                        cpu_us: 10_000,
                        rss_bytes: 1_024_000
                    },
                    Process {
                        pid: 11,
                        cpu_us: 1_750_000,
                        rss_bytes: 4_096_000
                    },
                ],
                listen_overflows: 1_461,
                retransmits: 30,
                passive_opens: 2_000,
                time_wait: 125,
            }
        );
        assert!(Counters::read(&serde_json::json!({"failed": true})).is_err());
    }

    #[test]
    fn workers_that_were_replaced_do_not_count_below_zero() {
        let start = snapshot(&[(11, 9_000_000)]);
        let end = snapshot(&[(21, 300_000)]);
        assert_eq!(
            HostCost::between(&start, &end, 100_000).cpu_us_per_request,
            Some(3.0)
        );
    }

    #[test]
    fn no_answer_or_no_server_has_no_cost_a_request() {
        let start = snapshot(&[(11, 0)]);
        let end = snapshot(&[(11, 300_000)]);
        assert_eq!(HostCost::between(&start, &end, 0).cpu_us_per_request, None);
        assert_eq!(
            HostCost::between(&start, &snapshot(&[]), 10).cpu_us_per_request,
            None
        );
    }

    #[test]
    fn counters_are_subtracted_and_states_are_taken_at_the_end() {
        let start = Counters {
            listen_overflows: 1_000,
            retransmits: 50,
            passive_opens: 7_000,
            time_wait: 4,
            cpu: Cpu {
                user_us: 10,
                system_us: 20,
                softirq_us: 0,
                steal_us: 0,
                idle_us: 1_000,
            },
            ..Counters::default()
        };
        let end = Counters {
            listen_overflows: 2_461,
            retransmits: 80,
            passive_opens: 9_000,
            time_wait: 125,
            cpu: Cpu {
                user_us: 110,
                system_us: 220,
                softirq_us: 50,
                steal_us: 0,
                idle_us: 1_050,
            },
            ..Counters::default()
        };
        let cost = HostCost::between(&start, &end, 1);
        assert_eq!(
            (
                cost.listen_overflows,
                cost.retransmits,
                cost.accepted,
                cost.time_wait
            ),
            (1_461, 30, 2_000, 125)
        );
        assert_eq!(
            cost.share,
            CpuShare {
                user: 0.25,
                system: 0.5,
                softirq: 0.125,
                steal: 0.0
            }
        );
    }
}
