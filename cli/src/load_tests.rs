//! The load tests of an apply: before it, after it, and what their gates say.

use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
    sync::Arc,
};

use anyhow::Result;
use fleet_engine::{
    bench::{
        counters::Counters,
        html::{self, Diff, Matrix, Report},
        result::{Bench, Side},
        run::{self, Bencher, Command, Failed, Output, Step, Target},
        spec::{From, Spec},
        table,
    },
    event::HostEnd,
    plan::{Line, Plan, draw},
    recap::Recap,
    run::{Errand, Errands, Settings},
};
use fleet_wire::{Mode, UndoneState, What};
use fleet_yaml::Node;
use tokio::sync::Mutex;

use crate::{
    error::{Invalid, Mistakes},
    paint::{BAD, QUIET, paint},
    reporter,
    runs::Folder,
    setup::Setup,
};

/// Whether any play asks for load tests.
pub(crate) fn any(setup: &Setup) -> bool {
    setup
        .playbooks
        .iter()
        .flat_map(|book| &book.plays)
        .any(|play| play.bench.is_some())
}

/// Reads all `bench:` blocks, so that a mistake in one is told before anything is connected.
pub(crate) fn check(setup: &Setup, settings: Settings) -> Result<()> {
    LoadTests::new(setup, "check", settings, None, true).map(drop)
}

/// Load tests of one run.
pub(crate) struct LoadTests {
    hands: Arc<Hands>,
    plays: Vec<PlayTests>,
    run: String,
}

struct PlayTests {
    spec: Arc<Spec>,
    targets: Vec<Target>,
    bench: Bench,
}

impl LoadTests {
    /// Reads the `bench:` blocks; only hosts of `only` are tested.
    pub(crate) fn new(
        setup: &Setup,
        name: &str,
        settings: Settings,
        only: Option<&[String]>,
        silent: bool,
    ) -> Result<Self> {
        let run = setup.run(name, Mode::Read, settings);
        let plays = run.plays().map_err(Mistakes)?;
        let (events, _unread) = tokio::sync::mpsc::channel(16);
        let errands = run.errands(events);
        let hands = Arc::new(Hands {
            errands,
            open: Mutex::default(),
            silent,
        });
        let mut tests = Self {
            hands,
            plays: Vec::new(),
            run: name.to_owned(),
        };
        let blocks = plays.into_iter().flat_map(|(play, hosts)| {
            let blocks = match &play.bench {
                Some(node) => node
                    .as_seq()
                    .map_or_else(|| vec![node.clone()], <[Node]>::to_vec),
                None => Vec::new(),
            };
            blocks
                .into_iter()
                .map(move |block| (Arc::clone(&play), hosts.clone(), block))
        });
        for (play, hosts, block) in blocks {
            let hosts: Vec<String> = hosts
                .into_iter()
                .filter(|host| only.is_none_or(|only| only.contains(host)))
                .collect();
            let Some(first) = hosts.first() else { continue };
            let errands = &tests.hands.errands;
            let spec = Spec::read(&block, &|node| errands.text(first, Some(&play), node))
                .map_err(Mistakes)?;
            let generators = match &spec.from {
                From::Itself => Vec::new(),
                From::Hosts(pattern) => errands.any_hosts(pattern).map_err(|problem| {
                    let text = format!("the load is to come from `{pattern}`, and {}; `from: self` takes the host itself", problem.message);
                    anyhow::Error::new(Invalid(text))
                })?,
            };
            let mut targets = Vec::new();
            for (index, host) in hosts.iter().enumerate() {
                let url = Node::string(&spec.url, &block.span);
                targets.push(Target {
                    host: host.clone(),
                    url: errands
                        .text(host, Some(&play), &url)
                        .map_err(crate::setup::one)?,
                    from: run::origin(host, index, &generators),
                    cpus: 1,
                });
            }
            let title = play.name.as_str().unwrap_or_default();
            let bench = Bench::new(name, title, spec.tool.name());
            tests.plays.push(PlayTests {
                spec: Arc::new(spec),
                targets,
                bench,
            });
        }
        Ok(tests)
    }

    /// Whether there is nothing to test.
    pub(crate) fn is_empty(&self) -> bool {
        self.plays.is_empty()
    }

    /// Measures every host as it is now.
    pub(crate) async fn baseline(&mut self) -> Result<()> {
        self.measure(Side::Before, &|_| true).await
    }

    /// Measures again the hosts that went through, and judges.
    pub(crate) async fn after(&mut self, recap: &Recap) -> Result<()> {
        let through = |host: &str| {
            matches!(
                recap.hosts.get(host).and_then(|host| host.end.as_ref()),
                Some(HostEnd::Done)
            )
        };
        self.measure(Side::After, &through).await?;
        for tests in &mut self.plays {
            run::conclude(&mut tests.bench, &tests.spec.gates);
        }
        Ok(())
    }

    async fn measure(&mut self, side: Side, takes: &(dyn Fn(&str) -> bool + Sync)) -> Result<()> {
        for tests in &mut self.plays {
            let mut targets: Vec<Target> = tests
                .targets
                .iter()
                .filter(|target| takes(&target.host))
                .cloned()
                .collect();
            for target in &mut targets {
                target.cpus = self.hands.cpus(&target.from.host).await.unwrap_or(1);
            }
            let failed =
                run::measure(&self.hands, &tests.spec, &targets, side, &mut tests.bench).await;
            // A load test that cannot be had proves nothing: without a baseline nothing is applied.
            if let (Side::Before, Some(Failed { host, message })) = (side, failed.first()) {
                anyhow::bail!(
                    "no baseline of {host}: {message}; `--no-bench` applies without load tests"
                );
            }
            for Failed { host, message } in failed {
                anstream::eprintln!("  {} {host}: {message}", paint(BAD, "bench"));
            }
        }
        Ok(())
    }

    /// Hosts with a gate that is red, or without the measurement that a gate needs.
    pub(crate) fn red_gates(&self, recap: &Recap) -> Vec<String> {
        let mut red = Vec::new();
        for tests in self
            .plays
            .iter()
            .filter(|tests| !tests.spec.gates.is_empty())
        {
            for target in &tests.targets {
                let done = matches!(
                    recap
                        .hosts
                        .get(&target.host)
                        .and_then(|host| host.end.as_ref()),
                    Some(HostEnd::Done)
                );
                let measured = tests.bench.host(&target.host);
                let passed = measured.is_some_and(|host| {
                    host.passed() && host.scenarios.iter().all(|s| !s.after.is_empty())
                });
                if done && !passed && !red.contains(&target.host) {
                    red.push(target.host.clone());
                }
            }
        }
        red
    }

    /// Takes the run back on the hosts whose gates are red; whether all of it could be.
    pub(crate) async fn undo(&self, hosts: &[String]) -> bool {
        let mut whole = true;
        for host in hosts {
            let undone = async {
                let mut errand = self.hands.errands.host(host, true, Mode::Apply).await?;
                errand.rollback(&self.run).await
            };
            match undone.await {
                Ok(undone) => {
                    whole &= matches!(
                        undone.state,
                        UndoneState::RolledBack | UndoneState::Unchanged
                    );
                    anstream::eprintln!("  {host} {}", reporter::undone_text(&undone));
                }
                Err(end) => {
                    whole = false;
                    anstream::eprintln!(
                        "  {host} {} {}",
                        paint(BAD, "could not be undone:"),
                        reporter::end_text(&end)
                    );
                }
            }
        }
        whole
    }

    /// The gates that are red, in words.
    pub(crate) fn gate_text(&self) -> String {
        let mut lines = vec![paint(BAD, "a gate is red: the hosts below are put back")];
        for host in self.plays.iter().flat_map(|tests| &tests.bench.hosts) {
            for scenario in &host.scenarios {
                for gate in scenario.gates.iter().filter(|gate| !gate.passed) {
                    lines.push(format!(
                        "  {} {}: {} ({})",
                        host.host, scenario.name, gate.gate, gate.detail
                    ));
                }
            }
        }
        lines.join("\n")
    }

    /// The tables for a terminal.
    pub(crate) fn table(&self) -> String {
        let color =
            anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never;
        let style = if color {
            table::Style::Colour
        } else {
            table::Style::Plain
        };
        self.plays
            .iter()
            .map(|tests| table::bench(&tests.bench, style))
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// What was measured, as JSON.
    pub(crate) fn json(&self) -> Result<String> {
        let all: Vec<&Bench> = self.plays.iter().map(|tests| &tests.bench).collect();
        Ok(serde_json::to_string_pretty(&all)?)
    }

    /// Writes `bench.json` and `report.html` into the run's folder; returns the report's path.
    pub(crate) fn write(
        &self,
        folder: &Folder,
        plan: Option<&Plan>,
        outcome: &str,
    ) -> Result<Option<PathBuf>> {
        let Some(first) = self.plays.first() else {
            return Ok(None);
        };
        let mut all = first.bench.clone();
        all.hosts.extend(
            self.plays
                .iter()
                .skip(1)
                .flat_map(|tests| tests.bench.hosts.clone()),
        );
        folder.write("bench.json", &self.json()?)?;
        let diffs = plan.map_or_else(Vec::new, diffs);
        let when = jiff::ZonedDateTime::now()
            .strftime("%Y-%m-%d %H:%M %Z")
            .to_string();
        let page = html::page(&Report {
            title: &first.bench.play,
            run: &self.run,
            when: &when,
            outcome,
            bench: Some(&all),
            diffs: &diffs,
            matrix: plan.map(matrix).as_ref(),
        })?;
        Ok(Some(folder.write("report.html", &page)?))
    }
}

/// Each effect once, with the hosts that it is the same on.
fn diffs(plan: &Plan) -> Vec<Diff> {
    let mut diffs: Vec<Diff> = Vec::new();
    for group in plan.groups() {
        for effect in group.plan.tasks.iter().flat_map(|task| task.effects.iter()) {
            let (title, lines) = (
                effect.summary(),
                draw(effect).iter().map(Line::marked).collect(),
            );
            let hosts = group.hosts.iter().map(ToString::to_string);
            match diffs
                .iter_mut()
                .find(|diff| diff.title == title && diff.lines == lines)
            {
                Some(same) => same.hosts.extend(hosts),
                None => diffs.push(Diff {
                    title,
                    hosts: hosts.collect(),
                    lines,
                }),
            }
        }
    }
    diffs
}

/// The kernel parameters that the plan sets, and to what on each host.
fn matrix(plan: &Plan) -> Matrix {
    let mut rows: BTreeMap<String, BTreeMap<&str, String>> = BTreeMap::new();
    for (host, own) in &plan.hosts {
        for effect in own.tasks.iter().flat_map(|task| task.effects.iter()) {
            if let What::Sysctl { key, after, .. } = &effect.what {
                rows.entry(key.clone())
                    .or_default()
                    .insert(host, after.clone());
            }
        }
    }
    let hosts: Vec<String> = plan.hosts.keys().cloned().collect();
    let row = |(key, values): (String, BTreeMap<&str, String>)| {
        let value = |host: &String| {
            values
                .get(host.as_str())
                .cloned()
                .unwrap_or_else(|| "as it was".to_owned())
        };
        (key, hosts.iter().map(value).collect())
    };
    let rows = rows.into_iter().map(row).collect();
    Matrix { hosts, rows }
}

/// Runs things on hosts for a bench; keeps one connection a host.
struct Hands {
    errands: Errands,
    open: Mutex<HashMap<String, Arc<Mutex<Errand>>>>,
    silent: bool,
}

impl Hands {
    async fn module(
        &self,
        host: &str,
        module: &str,
        args: &serde_json::Value,
    ) -> Result<serde_json::Value, String> {
        let errand = {
            let mut open = self.open.lock().await;
            match open.get(host) {
                Some(errand) => Arc::clone(errand),
                None => {
                    // Another user's processes and their limits are only root's to see.
                    let errand = self
                        .errands
                        .host(host, true, Mode::Read)
                        .await
                        .map_err(|end| reporter::end_text(&end))?;
                    let errand = Arc::new(Mutex::new(errand));
                    open.insert(host.to_owned(), Arc::clone(&errand));
                    errand
                }
            }
        };
        let mut errand = errand.lock().await;
        errand
            .module(module, args)
            .await
            .map_err(|end| reporter::end_text(&end))
    }

    async fn cpus(&self, host: &str) -> Option<u32> {
        let facts = self
            .module(
                host,
                "setup",
                &serde_json::json!({"filter": "ansible_processor_vcpus"}),
            )
            .await
            .ok()?;
        let cpus = facts
            .get("ansible_facts")?
            .get("ansible_processor_vcpus")?
            .as_u64()?;
        u32::try_from(cpus).ok()
    }
}

impl Bencher for Hands {
    async fn counters(&self, host: &str, unit: &str) -> Result<Counters, String> {
        let snapshot = self
            .module(host, "_counters", &serde_json::json!({"unit": unit}))
            .await?;
        Counters::read(&snapshot)
    }

    async fn load(&self, from: &str, command: Command) -> Result<Output, String> {
        let args = serde_json::json!({
            "argv": command.argv,
            "nofile": command.open_files,
            "timeout_s": command.timeout.as_secs().max(1),
        });
        let result = self.module(from, "_load", &args).await?;
        Ok(Output::read(&result))
    }

    fn step(&self, step: &Step<'_>) {
        if self.silent {
            return;
        }
        let side = match step.side {
            Side::Before => "before",
            Side::After => "after",
        };
        let run = if step.run == 0 {
            "warm-up".to_owned()
        } else {
            format!("{}/{}", step.run, step.of)
        };
        let text = format!(
            "  bench    {} {side} {} {run} ({} s)",
            step.host,
            step.scenario,
            step.lasts.as_secs()
        );
        anstream::eprintln!("{}", paint(QUIET, text));
    }
}
