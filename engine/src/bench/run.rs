//! Runs a bench: scenarios and their repeats on each host, several hosts side by side.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::counters::{Counters, HostCost};
use super::gate::{Gate, GateResult};
use super::result::{
    Bench, Errors, HostResult, Load, Measured, Metric, Origin, ScenarioResult, Side,
};
use super::spec::{Scenario, Spec};
use super::{stats, wrk};

/// How far connections and figures may be apart by Little's law before it is said.
const LITTLE: f64 = 0.20;

/// The share of its CPUs that a load generator may take before it is said.
const SATURATED: f64 = 0.80;

/// The share of CPU time taken by the hypervisor above which it is said.
const STEAL: f64 = 0.02;

/// What a load tool may take beyond its duration and its time limit.
const GRACE: Duration = Duration::from_secs(15);

/// The hands of a bench: runs things on hosts.
pub trait Bencher: Send + Sync + 'static {
    /// Takes a snapshot of a host and of a unit on it. The error says why there is none; a bench goes
    /// on without.
    fn counters(
        &self,
        host: &str,
        unit: &str,
    ) -> impl Future<Output = Result<Counters, String>> + Send;

    /// Runs a load tool on a host. A tool that ends with another code than 0 is no error, as the
    /// codes say nothing; one that could not be started, or was stopped at its time limit, is.
    fn load(
        &self,
        from: &str,
        command: Command,
    ) -> impl Future<Output = Result<Output, String>> + Send;

    /// Is told of every step before it is taken.
    fn step(&self, step: &Step<'_>);
}

/// A load tool's command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The program and its arguments; no shell.
    pub argv: Vec<String>,
    /// How many open files it needs.
    pub open_files: u32,
    /// When to stop it.
    pub timeout: Duration,
}

/// What a load tool printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
    /// CPU time that it took, µs; none where that is not known.
    pub cpu_us: Option<u64>,
}

impl Output {
    /// Reads what the helper's `_load` module says.
    pub fn read(said: &serde_json::Value) -> Self {
        let text = |name: &str| {
            let text = said.get(name).and_then(serde_json::Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        let time = |name: &str| said.get(name).and_then(serde_json::Value::as_u64);
        let cpu = time("user_us").zip(time("system_us"));
        Self {
            stdout: text("stdout"),
            stderr: text("stderr"),
            cpu_us: cpu.map(|(user, system)| user + system),
        }
    }
}

/// A host to be put under load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its name in the inventory.
    pub host: String,
    /// The spec's address, rendered for it.
    pub url: String,
    /// Where the load comes from.
    pub from: Origin,
    /// CPUs of the machine that the load comes from.
    pub cpus: u32,
}

/// A step of a bench.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step<'a> {
    /// The host under load.
    pub host: &'a str,
    /// The scenario's name.
    pub scenario: &'a str,
    /// Before or after the play.
    pub side: Side,
    /// The number of the run, from 1; 0 for the warm-up.
    pub run: u32,
    /// How many runs there are.
    pub of: u32,
    /// How long it takes.
    pub lasts: Duration,
}

/// A host that could not be measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// The host under load.
    pub host: String,
    /// Why, and what to do.
    pub message: String,
}

/// Shares load generators out: host number `index` is served by the generator of the same number,
/// counted round. Without generators a host loads itself.
pub fn origin(host: &str, index: usize, generators: &[String]) -> Origin {
    let from = generators
        .get(index % generators.len().max(1))
        .map_or(host, String::as_str);
    Origin {
        host: from.to_owned(),
        colocated: from == host,
    }
}

/// Measures one side of every target and adds it to the document. Targets of one generator are
/// taken one after the other; at most [`Spec::at_once`] are under load at the same time.
pub async fn measure<B: Bencher>(
    bencher: &Arc<B>,
    spec: &Arc<Spec>,
    targets: &[Target],
    side: Side,
    bench: &mut Bench,
) -> Vec<Failed> {
    let mut chains: BTreeMap<&str, Vec<Target>> = BTreeMap::new();
    for target in targets {
        chains
            .entry(&target.from.host)
            .or_default()
            .push(target.clone());
    }
    let slots = Arc::new(Semaphore::new(spec.at_once.max(1) as usize));
    let mut running = JoinSet::new();
    for chain in chains.into_values() {
        let (bencher, spec, slots) = (bencher.clone(), spec.clone(), slots.clone());
        running.spawn(async move {
            let mut done = Vec::new();
            for target in chain {
                // The semaphore is never closed; without a permit the host is measured all the same.
                let _slot = slots.acquire().await.ok();
                let measured = host(&*bencher, &spec, &target, side).await;
                done.push((target, measured));
            }
            done
        });
    }
    let mut measured: BTreeMap<String, Result<Vec<Run>, String>> = BTreeMap::new();
    while let Some(chain) = running.join_next().await {
        for (target, runs) in chain.unwrap_or_default() {
            measured.insert(target.host, runs);
        }
    }
    let mut failed = Vec::new();
    for target in targets {
        match measured.remove(&target.host) {
            Some(Ok(runs)) => add(bench, target, side, runs),
            Some(Err(message)) => failed.push(Failed {
                host: target.host.clone(),
                message,
            }),
            None => failed.push(Failed {
                host: target.host.clone(),
                message: "the bench of this host broke off".to_owned(),
            }),
        }
    }
    failed
}

/// Compares the sides and judges the gates of every scenario that has an after.
pub fn conclude(bench: &mut Bench, gates: &[Gate]) {
    for scenario in bench.hosts.iter_mut().flat_map(|host| &mut host.scenarios) {
        let compared: Vec<_> = Metric::ALL
            .into_iter()
            .filter_map(|metric| {
                let before = scenario.values(Side::Before, metric);
                let after = scenario.values(Side::After, metric);
                stats::compare(metric, &before, &after)
            })
            .collect();
        scenario.comparisons = compared;
        let measured = !scenario.after.is_empty();
        let judged: Vec<GateResult> = gates
            .iter()
            .filter(|_| measured)
            .map(|gate| gate.judge(scenario))
            .collect();
        scenario.gates = judged;
    }
}

/// The runs of one scenario.
struct Run {
    scenario: Scenario,
    url: String,
    argv: Vec<String>,
    version: String,
    measured: Vec<Measured>,
}

async fn host<B: Bencher>(
    bencher: &B,
    spec: &Spec,
    target: &Target,
    side: Side,
) -> Result<Vec<Run>, String> {
    let version = version(bencher, &target.from.host).await?;
    let mut runs = Vec::new();
    for scenario in &spec.scenarios {
        let url = scenario.url(&target.url);
        let argv = wrk::argv(scenario, &url, scenario.duration, target.cpus);
        let step = |run, lasts| Step {
            host: &target.host,
            scenario: &scenario.name,
            side,
            run,
            of: spec.pairs,
            lasts,
        };
        if !spec.warm_up.is_zero() {
            bencher.step(&step(0, spec.warm_up));
            let warm_up = wrk::argv(scenario, &url, spec.warm_up, target.cpus);
            bencher
                .load(&target.from.host, command(&warm_up, spec.warm_up, scenario))
                .await?;
        }
        let mut measured = Vec::new();
        for run in 1..=spec.pairs {
            bencher.step(&step(run, scenario.duration));
            let start = bencher.counters(&target.host, &spec.unit).await;
            let command = command(&argv, scenario.duration, scenario);
            let output = bencher.load(&target.from.host, command).await?;
            let end = bencher.counters(&target.host, &spec.unit).await;
            measured.push(read(scenario, target, &output, start, end)?);
        }
        runs.push(Run {
            scenario: scenario.clone(),
            url,
            argv,
            version: version.clone(),
            measured,
        });
    }
    Ok(runs)
}

async fn version<B: Bencher>(bencher: &B, from: &str) -> Result<String, String> {
    let command = Command {
        argv: wrk::version_argv(),
        open_files: 0,
        timeout: GRACE,
    };
    let said = bencher.load(from, command).await.map_err(|error| {
        format!("wrk does not run on {from}: {error}; install the package `wrk`")
    })?;
    Ok(wrk::version(&said.stdout)
        .or(wrk::version(&said.stderr))
        .unwrap_or_default()
        .to_owned())
}

fn command(argv: &[String], duration: Duration, scenario: &Scenario) -> Command {
    Command {
        argv: wrk::piped(argv),
        open_files: wrk::open_files(scenario),
        timeout: duration + scenario.timeout + GRACE,
    }
}

fn read(
    scenario: &Scenario,
    target: &Target,
    output: &Output,
    start: Result<Counters, String>,
    end: Result<Counters, String>,
) -> Result<Measured, String> {
    let mut doubts = Vec::new();
    let load = match wrk::parse(&output.stdout, &output.stderr) {
        Ok(load) => load,
        Err(wrk::WrkError::Unreachable(reason)) => {
            doubts.push(reason);
            nothing_reached(scenario)
        }
        Err(error) => return Err(error.to_string()),
    };
    let cost = match (start, end) {
        (Ok(start), Ok(end)) => Some(HostCost::between(&start, &end, load.successes())),
        (Err(error), _) | (_, Err(error)) => {
            doubts.push(format!("what it cost the host is not known: {error}"));
            None
        }
    };
    doubts.extend(doubt(scenario, &load, cost.as_ref()));
    let client = client_share(target, &load, output);
    if let Some(share) = client.filter(|share| *share > SATURATED) {
        doubts.push(format!(
            "the load tool took {:.0} % of its machine's CPU time: it may be what limits the figures",
            share * 100.0
        ));
    }
    Ok(Measured {
        load,
        cost,
        client_cpu: client,
        doubts,
    })
}

/// The share of its machine's CPU time that the load tool took.
fn client_share(target: &Target, load: &Load, output: &Output) -> Option<f64> {
    let all = load.duration_us as f64 * f64::from(target.cpus);
    output
        .cpu_us
        .filter(|_| all > 0.0)
        .map(|spent| spent as f64 / all)
}

/// No connection could be made: each counts as failed.
fn nothing_reached(scenario: &Scenario) -> Load {
    Load {
        answers: 0,
        duration_us: u64::try_from(scenario.duration.as_micros()).unwrap_or(u64::MAX),
        bytes: 0,
        latency: None,
        errors: Errors {
            connect: u64::from(scenario.connections),
            ..Errors::default()
        },
    }
}

fn doubt(scenario: &Scenario, load: &Load, cost: Option<&HostCost>) -> Vec<String> {
    let mut doubts = Vec::new();
    let wanted = f64::from(scenario.connections);
    if let Some(seen) = load.concurrency()
        && scenario.keepalive
        && (wanted - seen).abs() / wanted > LITTLE
    {
        doubts.push(if seen < wanted {
            format!(
                "requests/s times latency accounts for {seen:.0} of {wanted:.0} connections: \
                 the others waited unseen, or never got in"
            )
        } else {
            format!(
                "requests/s times latency accounts for {seen:.0} connections where there were \
                 {wanted:.0}: answers stalled, and the tool counts the requests held up behind them"
            )
        });
    }
    if let Some(cost) = cost {
        if load.answers > 0 && cost.accepted > 0 && cost.accepted < u64::from(scenario.connections)
        {
            doubts.push(format!(
                "the host accepted only {} of {wanted:.0} connections",
                cost.accepted
            ));
        }
        if cost.share.steal > STEAL {
            doubts.push(format!(
                "the hypervisor took {:.0} % of the CPU time",
                cost.share.steal * 100.0
            ));
        }
    }
    doubts
}

fn add(bench: &mut Bench, target: &Target, side: Side, runs: Vec<Run>) {
    let place = bench.hosts.iter().position(|host| host.host == target.host);
    let place = place.unwrap_or_else(|| {
        bench.hosts.push(HostResult {
            host: target.host.clone(),
            from: target.from.clone(),
            scenarios: Vec::new(),
        });
        bench.hosts.len() - 1
    });
    let Some(host) = bench.hosts.get_mut(place) else {
        return;
    };
    for run in runs {
        let known = host
            .scenarios
            .iter()
            .position(|known| known.name == run.scenario.name);
        let index = known.unwrap_or_else(|| {
            host.scenarios.push(ScenarioResult {
                name: run.scenario.name.clone(),
                connections: run.scenario.connections,
                url: run.url,
                argv: run.argv,
                version: run.version,
                before: Vec::new(),
                after: Vec::new(),
                comparisons: Vec::new(),
                gates: Vec::new(),
            });
            host.scenarios.len() - 1
        });
        if let Some(scenario) = host.scenarios.get_mut(index) {
            match side {
                Side::Before => scenario.before = run.measured,
                Side::After => scenario.after = run.measured,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::super::spec::{From, Tool};
    use super::*;

    const DEFAULT: &str = include_str!("../../tests/data/wrk-default-c2000-r0.txt");
    const TUNED: &str = include_str!("../../tests/data/wrk-tuned-c2000-r0.txt");
    const REFUSED: &str = include_str!("../../tests/data/wrk-refused.txt");

    /// Answers with a recorded output, and keeps what was asked of it.
    struct Recorded {
        output: &'static str,
        asked: Mutex<Vec<String>>,
        busy: Mutex<(u32, u32)>,
    }

    impl Recorded {
        fn new(output: &'static str) -> Arc<Self> {
            Arc::new(Self {
                output,
                asked: Mutex::default(),
                busy: Mutex::default(),
            })
        }

        fn note(&self, what: String) {
            self.asked.lock().unwrap().push(what);
        }
    }

    impl Bencher for Recorded {
        async fn counters(&self, host: &str, unit: &str) -> Result<Counters, String> {
            self.note(format!("counters {host} {unit}"));
            Err("no helper".to_owned())
        }

        async fn load(&self, from: &str, command: Command) -> Result<Output, String> {
            if command.argv == wrk::version_argv() {
                return Ok(Output {
                    stdout: "wrk 4.1.0 [epoll]".to_owned(),
                    ..Output::default()
                });
            }
            {
                let mut busy = self.busy.lock().unwrap();
                busy.0 += 1;
                busy.1 = busy.1.max(busy.0);
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
            self.busy.lock().unwrap().0 -= 1;
            let url = command.argv.last().cloned().unwrap_or_default();
            self.note(format!("load {from} {} {url}", command.argv[8]));
            Ok(Output {
                stdout: self.output.to_owned(),
                stderr: String::new(),
                cpu_us: Some(19_000_000),
            })
        }

        fn step(&self, step: &Step<'_>) {
            self.note(format!(
                "step {} {} {}/{}",
                step.host, step.scenario, step.run, step.of
            ));
        }
    }

    fn spec(pairs: u32, at_once: u32) -> Arc<Spec> {
        Arc::new(Spec {
            from: From::Hosts("loadgen".to_owned()),
            url: String::new(),
            tool: Tool::Wrk,
            unit: "nginx.service".to_owned(),
            scenarios: vec![Scenario {
                name: "c2000".to_owned(),
                connections: 2000,
                duration: Duration::from_secs(10),
                threads: None,
                keepalive: true,
                path: Some("/bench/small.html".to_owned()),
                timeout: Duration::from_secs(2),
            }],
            pairs,
            warm_up: Duration::from_secs(2),
            at_once,
            gates: vec![Gate::parse(Metric::Errors, "0").unwrap()],
        })
    }

    fn targets(hosts: &[&str], generators: &[&str]) -> Vec<Target> {
        let generators: Vec<String> = generators.iter().map(|name| (*name).to_owned()).collect();
        let target = |(index, host): (usize, &&str)| Target {
            host: (*host).to_owned(),
            url: format!("http://{host}/"),
            from: origin(host, index, &generators),
            cpus: 2,
        };
        hosts.iter().enumerate().map(target).collect()
    }

    #[tokio::test]
    async fn a_host_is_warmed_up_and_then_measured_between_two_snapshots() {
        let bencher = Recorded::new(TUNED);
        let mut bench = Bench::new("r1", "tune", "wrk");
        let targets = targets(&["web1"], &["load1"]);
        let failed = measure(&bencher, &spec(2, 1), &targets, Side::Before, &mut bench).await;
        assert_eq!(failed, []);
        assert_eq!(
            *bencher.asked.lock().unwrap(),
            [
                "step web1 c2000 0/2",
                "load load1 -d2s http://web1:80/bench/small.html",
                "step web1 c2000 1/2",
                "counters web1 nginx.service",
                "load load1 -d10s http://web1:80/bench/small.html",
                "counters web1 nginx.service",
                "step web1 c2000 2/2",
                "counters web1 nginx.service",
                "load load1 -d10s http://web1:80/bench/small.html",
                "counters web1 nginx.service",
            ]
        );
        let scenario = &bench.hosts[0].scenarios[0];
        assert_eq!(
            (scenario.before.len(), scenario.version.as_str()),
            (2, "4.1.0")
        );
        assert_eq!(
            scenario.before[0].doubts,
            [
                "what it cost the host is not known: no helper",
                "the load tool took 94 % of its machine's CPU time: it may be what limits the figures",
            ]
        );
    }

    #[tokio::test]
    async fn both_sides_make_a_judged_document() {
        let mut bench = Bench::new("r1", "tune", "wrk");
        let (targets, spec) = (targets(&["web1"], &[]), spec(5, 1));
        measure(
            &Recorded::new(DEFAULT),
            &spec,
            &targets,
            Side::Before,
            &mut bench,
        )
        .await;
        measure(
            &Recorded::new(TUNED),
            &spec,
            &targets,
            Side::After,
            &mut bench,
        )
        .await;
        conclude(&mut bench, &spec.gates);
        let host = bench.host("web1").unwrap();
        assert_eq!(host.from.label(), "co-located");
        let scenario = &host.scenarios[0];
        assert_eq!((scenario.before.len(), scenario.after.len()), (5, 5));
        assert_eq!(scenario.errors(Side::Before).read, 5 * 60_096);
        let errors = scenario
            .comparisons
            .iter()
            .find(|c| c.metric == Metric::Errors)
            .unwrap();
        assert_eq!(errors.verdict, stats::Verdict::Improved);
        assert!(bench.passed());
        let json = serde_json::to_string(&bench).unwrap();
        assert_eq!(serde_json::from_str::<Bench>(&json).unwrap(), bench);
    }

    #[tokio::test]
    async fn a_baseline_without_a_server_is_one_with_every_connection_failed() {
        let mut bench = Bench::new("r1", "tune", "wrk");
        let (targets, spec) = (targets(&["web1"], &[]), spec(1, 1));
        measure(
            &Recorded::new(REFUSED),
            &spec,
            &targets,
            Side::Before,
            &mut bench,
        )
        .await;
        let run = &bench.hosts[0].scenarios[0].before[0];
        assert_eq!((run.load.errors.connect, run.load.latency), (2000, None));
        assert_eq!(
            run.doubts[0],
            "unable to connect to 127.0.0.1:8999 Connection refused"
        );
    }

    #[tokio::test]
    async fn an_output_that_is_none_of_the_tool_s_fails_the_host() {
        let mut bench = Bench::new("r1", "tune", "wrk");
        let bencher = Recorded::new("sh: 1: wrk: not found");
        let targets = targets(&["web1"], &[]);
        let failed = measure(&bencher, &spec(1, 1), &targets, Side::Before, &mut bench).await;
        assert_eq!(
            failed,
            [Failed {
                host: "web1".to_owned(),
                message: "wrk gave no result: sh: 1: wrk: not found".to_owned(),
            }]
        );
        assert_eq!(bench.hosts, []);
    }

    #[tokio::test]
    async fn one_generator_serves_one_host_at_a_time_and_hosts_keep_their_order() {
        for (generators, at_once, most) in [
            (&["load1"][..], 4, 1),
            (&["load1", "load2"][..], 4, 2),
            (&[][..], 3, 3),
        ] {
            let bencher = Recorded::new(TUNED);
            let mut bench = Bench::new("r1", "tune", "wrk");
            let targets = targets(&["web4", "web3", "web2", "web1"], generators);
            measure(
                &bencher,
                &spec(3, at_once),
                &targets,
                Side::Before,
                &mut bench,
            )
            .await;
            let hosts: Vec<_> = bench.hosts.iter().map(|host| host.host.as_str()).collect();
            assert_eq!(hosts, ["web4", "web3", "web2", "web1"]);
            assert_eq!(bencher.busy.lock().unwrap().1, most, "{generators:?}");
        }
    }

    #[test]
    fn what_the_helper_says_of_a_load_is_read() {
        let said = serde_json::json!({"rc": 1, "stdout": "o", "stderr": "e", "user_us": 30_000, "system_us": 4_000});
        let output = Output {
            stdout: "o".to_owned(),
            stderr: "e".to_owned(),
            cpu_us: Some(34_000),
        };
        assert_eq!(Output::read(&said), output);
        assert_eq!(Output::read(&serde_json::json!({})), Output::default());
    }

    #[test]
    fn figures_that_cannot_be_are_doubted() {
        let spec = spec(1, 1);
        let scenario = &spec.scenarios[0];
        let load = wrk::parse(TUNED, "").unwrap();
        assert_eq!(doubt(scenario, &load, None), Vec::<String>::new());
        let eight = Scenario {
            connections: 8000,
            ..scenario.clone()
        };
        assert_eq!(
            doubt(&eight, &load, None),
            [
                "requests/s times latency accounts for 1698 of 8000 connections: \
              the others waited unseen, or never got in"
            ]
        );
        let few = Scenario {
            connections: 1000,
            ..scenario.clone()
        };
        assert_eq!(
            doubt(&few, &load, None),
            [
                "requests/s times latency accounts for 1698 connections where there were 1000: \
              answers stalled, and the tool counts the requests held up behind them"
            ]
        );
        let cost = HostCost::between(
            &Counters::default(),
            &Counters {
                passive_opens: 900,
                ..Counters::default()
            },
            load.successes(),
        );
        assert_eq!(
            doubt(scenario, &load, Some(&cost)),
            ["the host accepted only 900 of 2000 connections"]
        );
    }
}
