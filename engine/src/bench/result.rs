//! What a bench measured: one document a run, kept as JSON.
//!
//! The unit is the run of a load tool, not the request: a [`Measured`] is one run, and a
//! [`ScenarioResult`] holds the runs of before the play and of after it.

use serde::{Deserialize, Serialize};

use super::counters::HostCost;
use super::gate::GateResult;
use super::stats::Comparison;

/// Raised with every change of the document that an old reader cannot take.
pub const SCHEMA: u32 = 1;

/// The bench of one play over its hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bench {
    /// [`SCHEMA`] of the writer.
    pub schema: u32,
    /// The run's name.
    pub run: String,
    /// The play's name.
    pub play: String,
    /// The load tool.
    pub tool: String,
    /// The hosts under load, in the order of the play.
    pub hosts: Vec<HostResult>,
}

impl Bench {
    /// An empty document.
    pub fn new(run: impl Into<String>, play: impl Into<String>, tool: impl Into<String>) -> Self {
        Self {
            schema: SCHEMA,
            run: run.into(),
            play: play.into(),
            tool: tool.into(),
            hosts: Vec::new(),
        }
    }

    /// The host's part of the document.
    pub fn host(&self, name: &str) -> Option<&HostResult> {
        self.hosts.iter().find(|host| host.host == name)
    }

    /// Whether no gate of any host is red.
    pub fn passed(&self) -> bool {
        self.hosts.iter().all(HostResult::passed)
    }
}

/// One host's bench.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostResult {
    /// The host under load.
    pub host: String,
    /// Where the load comes from.
    pub from: Origin,
    /// Its scenarios, in the order of the play.
    pub scenarios: Vec<ScenarioResult>,
}

impl HostResult {
    /// Whether no gate of this host is red.
    pub fn passed(&self) -> bool {
        self.scenarios
            .iter()
            .flat_map(|scenario| &scenario.gates)
            .all(|gate| gate.passed)
    }
}

/// Where the load of a host comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The machine that runs the load tool.
    pub host: String,
    /// It is the host under load itself: the tool takes CPU from the server, so the figures are relative.
    pub colocated: bool,
}

impl Origin {
    /// How a reader is told: the load generator's name, or `co-located`.
    pub fn label(&self) -> String {
        if self.colocated {
            "co-located".to_owned()
        } else {
            format!("from {}", self.host)
        }
    }
}

/// One scenario of one host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScenarioResult {
    /// The scenario's name.
    pub name: String,
    /// Concurrent connections.
    pub connections: u32,
    /// The address asked for.
    pub url: String,
    /// The load tool's whole command line, the same before and after.
    pub argv: Vec<String>,
    /// What the tool says it is; empty where it would not say.
    pub version: String,
    /// The runs before the play.
    pub before: Vec<Measured>,
    /// The runs after the play.
    pub after: Vec<Measured>,
    /// Before against after, by metric; empty until both sides are there.
    pub comparisons: Vec<Comparison>,
    /// The play's gates.
    pub gates: Vec<GateResult>,
}

impl ScenarioResult {
    /// The median of a metric over the runs of a side; none where no run has it.
    pub fn median(&self, side: Side, metric: Metric) -> Option<f64> {
        super::stats::median(&self.values(side, metric))
    }

    /// A metric's value in each run of a side, runs without it left out.
    pub fn values(&self, side: Side, metric: Metric) -> Vec<f64> {
        self.runs(side)
            .iter()
            .filter_map(|run| run.value(metric))
            .collect()
    }

    /// The errors of all runs of a side together.
    pub fn errors(&self, side: Side) -> Errors {
        self.runs(side)
            .iter()
            .fold(Errors::default(), |sum, run| sum.plus(run.load.errors))
    }

    /// The runs of a side.
    pub fn runs(&self, side: Side) -> &[Measured] {
        match side {
            Side::Before => &self.before,
            Side::After => &self.after,
        }
    }
}

/// Before the play or after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The baseline.
    Before,
    /// With the play's changes in effect.
    After,
}

/// One run of the load tool, and what it cost the host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// What the client saw.
    pub load: Load,
    /// What the host spent meanwhile; none where it could not be read.
    pub cost: Option<HostCost>,
    /// The share of its machine's CPU time that the load tool took, 0 to 1; none where it is not known.
    pub client_cpu: Option<f64>,
    /// What a reader must know before trusting the figures, in plain words.
    pub doubts: Vec<String>,
}

impl Measured {
    /// The run's value of a metric; none where it was not measured.
    pub fn value(&self, metric: Metric) -> Option<f64> {
        let latency = self.load.latency.as_ref();
        let micros = |value: u64| value as f64;
        match metric {
            Metric::RequestsPerSecond => Some(self.load.requests_per_second()),
            Metric::Mean => latency.map(|l| l.mean_us),
            Metric::P50 => latency.map(|l| micros(l.p50_us)),
            Metric::P90 => latency.map(|l| micros(l.p90_us)),
            Metric::P99 => latency.map(|l| micros(l.p99_us)),
            Metric::P999 => latency.and_then(|l| l.p999_us).map(micros),
            Metric::Max => latency.map(|l| micros(l.max_us)),
            Metric::Errors => Some(self.load.errors.total() as f64),
            Metric::CpuPerRequest => self.cost.as_ref().and_then(|cost| cost.cpu_us_per_request),
            Metric::BytesPerSecond => Some(self.load.bytes_per_second()),
        }
    }
}

/// A figure of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Successful answers a second.
    RequestsPerSecond,
    /// Mean latency, µs.
    Mean,
    /// Median latency, µs.
    P50,
    /// 90th percentile of latency, µs.
    P90,
    /// 99th percentile of latency, µs.
    P99,
    /// 99.9th percentile of latency, µs.
    P999,
    /// The slowest answer, µs.
    Max,
    /// Failed requests of all kinds.
    Errors,
    /// CPU time of the server a request, µs.
    CpuPerRequest,
    /// Bytes received a second.
    BytesPerSecond,
}

impl Metric {
    /// Every metric.
    pub const ALL: [Self; 10] = [
        Self::RequestsPerSecond,
        Self::Mean,
        Self::P50,
        Self::P90,
        Self::P99,
        Self::P999,
        Self::Max,
        Self::Errors,
        Self::CpuPerRequest,
        Self::BytesPerSecond,
    ];

    /// Its name in a gate and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::RequestsPerSecond => "requests_per_second",
            Self::Mean => "mean",
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P99 => "p99",
            Self::P999 => "p999",
            Self::Max => "max",
            Self::Errors => "errors",
            Self::CpuPerRequest => "cpu_per_request",
            Self::BytesPerSecond => "bytes_per_second",
        }
    }

    /// Its name for a reader.
    pub fn title(self) -> &'static str {
        match self {
            Self::RequestsPerSecond => "requests/s",
            Self::Mean => "mean",
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
            Self::Max => "max",
            Self::Errors => "errors",
            Self::CpuPerRequest => "CPU/request",
            Self::BytesPerSecond => "transfer",
        }
    }

    /// Whether more of it is better.
    pub fn more_is_better(self) -> bool {
        matches!(self, Self::RequestsPerSecond | Self::BytesPerSecond)
    }

    /// A value with its unit, short: `36.7 k`, `62.4 ms`, `11.7 µs`, `17.1 MB/s`.
    pub fn show(self, value: f64) -> String {
        match self {
            Self::RequestsPerSecond => thousands(value.round()),
            Self::Errors => thousands(value.round()),
            Self::BytesPerSecond => bytes_per_second(value),
            _ => duration_us(value),
        }
    }
}

/// What the client of one run saw.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Answers, whatever their status.
    pub answers: u64,
    /// How long the load lasted, µs.
    pub duration_us: u64,
    /// Bytes received.
    pub bytes: u64,
    /// Latency of the answers; none where there was no answer.
    pub latency: Option<Latency>,
    /// What went wrong.
    pub errors: Errors,
}

impl Load {
    /// Answers with a good status.
    pub fn successes(&self) -> u64 {
        self.answers.saturating_sub(self.errors.status)
    }

    /// Good answers a second.
    pub fn requests_per_second(&self) -> f64 {
        per_second(self.successes(), self.duration_us)
    }

    /// Bytes a second.
    pub fn bytes_per_second(&self) -> f64 {
        per_second(self.bytes, self.duration_us)
    }

    /// How many connections the figures account for: by Little's law, answers a second times mean
    /// latency. None where nothing was answered.
    pub fn concurrency(&self) -> Option<f64> {
        let latency = self.latency.as_ref()?;
        Some(per_second(self.answers, self.duration_us) * latency.mean_us / 1e6)
    }
}

fn per_second(count: u64, duration_us: u64) -> f64 {
    if duration_us == 0 {
        0.0
    } else {
        count as f64 * 1e6 / duration_us as f64
    }
}

/// Latency of answers, from the first byte written to the whole answer, µs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// The mean.
    pub mean_us: f64,
    /// The median.
    pub p50_us: u64,
    /// 75th percentile.
    pub p75_us: u64,
    /// 90th percentile.
    pub p90_us: u64,
    /// 99th percentile.
    pub p99_us: u64,
    /// 99.9th percentile, where the tool gives it.
    pub p999_us: Option<u64>,
    /// The slowest.
    pub max_us: u64,
}

/// Failures by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Errors {
    /// The connection could not be made.
    pub connect: u64,
    /// Closed or reset while an answer was awaited, or while idle.
    pub read: u64,
    /// The request could not be written.
    pub write: u64,
    /// The answer came later than the tool's time limit.
    pub timeout: u64,
    /// The answer's status was above 399.
    pub status: u64,
}

impl Errors {
    /// All kinds together.
    pub fn total(self) -> u64 {
        self.kinds().iter().map(|(_, count)| count).sum()
    }

    /// Each kind with its count.
    pub fn kinds(self) -> [(&'static str, u64); 5] {
        [
            ("connect", self.connect),
            ("read", self.read),
            ("write", self.write),
            ("timeout", self.timeout),
            ("status", self.status),
        ]
    }

    /// In words: `read 60,096, timeout 144`, or `none`.
    pub fn show(self) -> String {
        let kinds = self.kinds();
        let parts: Vec<String> = kinds
            .iter()
            .filter(|(_, count)| *count > 0)
            .map(|(kind, count)| format!("{kind} {}", thousands(*count as f64)))
            .collect();
        if parts.is_empty() {
            "none".to_owned()
        } else {
            parts.join(", ")
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            connect: self.connect + other.connect,
            read: self.read + other.read,
            write: self.write + other.write,
            timeout: self.timeout + other.timeout,
            status: self.status + other.status,
        }
    }
}

/// A whole number with a comma between thousands: `60,096`.
pub(super) fn thousands(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut out = String::with_capacity(digits.len() + digits.len() / 3 + 1);
    if value < 0.0 {
        out.push('-');
    }
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A duration given in µs, in the unit that reads best: `152 µs`, `62.6 ms`, `1.99 s`.
pub(super) fn duration_us(us: f64) -> String {
    if us < 100.0 {
        format!("{us:.1} µs")
    } else if us < 1_000.0 {
        format!("{us:.0} µs")
    } else if us < 100_000.0 {
        format!("{:.1} ms", us / 1e3)
    } else if us < 1_000_000.0 {
        format!("{:.0} ms", us / 1e3)
    } else {
        format!("{:.2} s", us / 1e6)
    }
}

fn bytes_per_second(value: f64) -> String {
    match value {
        v if v < 1e3 => format!("{v:.0} B/s"),
        v if v < 1e6 => format!("{:.1} kB/s", v / 1e3),
        v if v < 1e9 => format!("{:.1} MB/s", v / 1e6),
        v => format!("{:.2} GB/s", v / 1e9),
    }
}

#[cfg(test)]
pub(super) mod sample {
    use super::*;

    /// A scenario from `(p99 in ms, read errors)` of its runs before and after.
    pub(in super::super) fn scenario(
        before: &[(u64, u64)],
        after: &[(u64, u64)],
    ) -> ScenarioResult {
        let runs = |runs: &[(u64, u64)]| runs.iter().map(|(p99, read)| run(*p99, *read)).collect();
        ScenarioResult {
            name: "c2000".to_owned(),
            connections: 2000,
            url: "http://10.0.0.1/".to_owned(),
            argv: vec!["wrk".to_owned(), "http://10.0.0.1/".to_owned()],
            version: "4.1.0".to_owned(),
            before: runs(before),
            after: runs(after),
            comparisons: Vec::new(),
            gates: Vec::new(),
        }
    }

    fn run(p99_ms: u64, read: u64) -> Measured {
        let latency = Latency {
            mean_us: p99_ms as f64 * 400.0,
            p50_us: p99_ms * 350,
            p75_us: p99_ms * 500,
            p90_us: p99_ms * 700,
            p99_us: p99_ms * 1_000,
            p999_us: Some(p99_ms * 1_500),
            max_us: p99_ms * 2_000,
        };
        Measured {
            load: Load {
                answers: 40_000_000 / p99_ms,
                duration_us: 10_000_000,
                bytes: 40_000_000 / p99_ms * 850,
                latency: Some(latency),
                errors: Errors {
                    read,
                    ..Errors::default()
                },
            },
            cost: None,
            client_cpu: None,
            doubts: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_good_answers_count_as_requests() {
        let load = Load {
            answers: 31_666,
            duration_us: 2_000_000,
            bytes: 0,
            latency: None,
            errors: Errors {
                status: 31_666,
                ..Errors::default()
            },
        };
        assert_eq!(load.requests_per_second(), 0.0);
        assert_eq!(load.errors.total(), 31_666);
    }

    #[test]
    fn figures_read_well() {
        assert_eq!(thousands(1_234_567.0), "1,234,567");
        assert_eq!(thousands(999.0), "999");
        assert_eq!(Metric::P50.show(152.0), "152 µs");
        assert_eq!(Metric::P99.show(62_570.0), "62.6 ms");
        assert_eq!(Metric::Max.show(1_990_000.0), "1.99 s");
        assert_eq!(Metric::CpuPerRequest.show(11.72), "11.7 µs");
        assert_eq!(Metric::BytesPerSecond.show(17_090_000.0), "17.1 MB/s");
        assert_eq!(Metric::RequestsPerSecond.show(21_004.7), "21,005");
        let errors = Errors {
            read: 60_096,
            timeout: 144,
            ..Errors::default()
        };
        assert_eq!(errors.show(), "read 60,096, timeout 144");
        assert_eq!(Errors::default().show(), "none");
    }

    #[test]
    fn a_gate_may_name_every_metric_as_json_does() {
        for metric in Metric::ALL {
            assert_eq!(
                serde_json::to_value(metric).ok(),
                Some(metric.name().into())
            );
        }
    }
}
