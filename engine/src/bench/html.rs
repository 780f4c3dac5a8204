//! The report: one HTML page that needs nothing else, made from what a run did and measured.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior};
use serde::Serialize;

use super::chart::{self, Bars, Percentiles};
use super::gate::GateResult;
use super::result::{Bench, HostResult, Metric, ScenarioResult, Side, thousands};
use super::stats::{self, Verdict};

/// What a page is made of. Parts that are empty are left out of it.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    /// The page's title: the play's name, say.
    pub title: &'a str,
    /// The run's name.
    pub run: &'a str,
    /// When it began, for a reader.
    pub when: &'a str,
    /// How it ended, in a sentence.
    pub outcome: &'a str,
    /// What was measured.
    pub bench: Option<&'a Bench>,
    /// What was changed, each diff once with the hosts that it is the same on.
    pub diffs: &'a [Diff],
    /// What the hosts were tuned to.
    pub matrix: Option<&'a Matrix>,
}

/// A change, as a unified diff.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diff {
    /// What is changed: a path, a key, a unit.
    pub title: String,
    /// On which hosts.
    pub hosts: Vec<String>,
    /// The diff's lines: those that begin with `+`, `-` and `@` are marked.
    pub lines: Vec<String>,
}

/// What each host was tuned to: a row a tunable, a column a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matrix {
    /// The columns.
    pub hosts: Vec<String>,
    /// A tunable, and its value on each host, in the order of `hosts`.
    pub rows: Vec<(String, Vec<String>)>,
}

/// A page could not be made.
#[derive(Debug, thiserror::Error)]
#[error("the report cannot be drawn: {0}")]
pub struct HtmlError(#[from] minijinja::Error);

/// Makes the page.
///
/// # Errors
/// The template and the data do not fit: a defect.
pub fn page(report: &Report<'_>) -> Result<String, HtmlError> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_syntax(
        SyntaxConfig::builder()
            .trim_blocks(true)
            .lstrip_blocks(true)
            .build()?,
    );
    environment.add_template("report.html", include_str!("report.html.j2"))?;
    let page = environment
        .get_template("report.html")?
        .render(Serde(&view(report)))?;
    Ok(page)
}

#[derive(Debug, Serialize)]
struct View<'a> {
    title: &'a str,
    run: &'a str,
    when: &'a str,
    outcome: &'a str,
    measured: bool,
    passed: bool,
    cards: Vec<Card>,
    hosts: Vec<HostView<'a>>,
    diffs: Vec<DiffView<'a>>,
    matrix: Option<MatrixView<'a>>,
    tool: &'a str,
    version: String,
}

/// A scenario over the whole fleet.
#[derive(Debug, Serialize)]
struct Card {
    name: String,
    connections: String,
    hosts: usize,
    figures: Vec<Figure>,
    errors_before: String,
    errors_after: String,
    better: bool,
}

/// A metric over the fleet: the median host, before and after.
#[derive(Debug, Serialize)]
struct Figure {
    title: &'static str,
    before: String,
    after: String,
    ratio: String,
    mood: &'static str,
}

#[derive(Debug, Serialize)]
struct HostView<'a> {
    host: &'a str,
    from: String,
    colocated: bool,
    passed: bool,
    bars: Vec<Bars>,
    scenarios: Vec<ScenarioView<'a>>,
}

#[derive(Debug, Serialize)]
struct ScenarioView<'a> {
    name: &'a str,
    connections: String,
    argv: String,
    chart: Option<Percentiles>,
    rows: Vec<Row>,
    gates: &'a [GateResult],
    notes: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Row {
    title: &'static str,
    before: String,
    after: String,
    ratio: String,
    interval: String,
    verdict: &'static str,
    mood: &'static str,
}

#[derive(Debug, Serialize)]
struct DiffView<'a> {
    title: &'a str,
    hosts: String,
    lines: Vec<LineView<'a>>,
}

#[derive(Debug, Serialize)]
struct LineView<'a> {
    kind: &'static str,
    text: &'a str,
}

#[derive(Debug, Serialize)]
struct MatrixView<'a> {
    hosts: &'a [String],
    rows: Vec<MatrixRow<'a>>,
}

#[derive(Debug, Serialize)]
struct MatrixRow<'a> {
    name: &'a str,
    cells: Vec<MatrixCell<'a>>,
}

#[derive(Debug, Serialize)]
struct MatrixCell<'a> {
    text: &'a str,
    /// It differs from what most hosts have.
    apart: bool,
}

const NONE: &str = "–";

fn view<'a>(report: &Report<'a>) -> View<'a> {
    let hosts = report.bench.map_or(&[][..], |bench| bench.hosts.as_slice());
    let version = hosts
        .iter()
        .flat_map(|host| &host.scenarios)
        .map(|it| it.version.clone())
        .next();
    View {
        title: report.title,
        run: report.run,
        when: report.when,
        outcome: report.outcome,
        measured: !hosts.is_empty(),
        passed: report.bench.is_some_and(Bench::passed) && hosts.iter().all(has_after),
        cards: cards(hosts),
        hosts: hosts.iter().map(host_view).collect(),
        diffs: report.diffs.iter().map(diff_view).collect(),
        matrix: report
            .matrix
            .filter(|matrix| !matrix.rows.is_empty())
            .map(matrix_view),
        tool: report.bench.map_or("", |bench| bench.tool.as_str()),
        version: version.unwrap_or_default(),
    }
}

fn has_after(host: &HostResult) -> bool {
    host.scenarios
        .iter()
        .all(|scenario| !scenario.after.is_empty())
}

fn cards(hosts: &[HostResult]) -> Vec<Card> {
    let mut names: Vec<&str> = Vec::new();
    for scenario in hosts.iter().flat_map(|host| &host.scenarios) {
        if !names.contains(&scenario.name.as_str()) {
            names.push(&scenario.name);
        }
    }
    names
        .into_iter()
        .filter_map(|name| card(name, hosts))
        .collect()
}

fn card(name: &str, hosts: &[HostResult]) -> Option<Card> {
    let all: Vec<&ScenarioResult> = hosts
        .iter()
        .flat_map(|host| &host.scenarios)
        .filter(|scenario| scenario.name == name)
        .collect();
    let errors = |side| -> Option<u64> {
        let measured = all.iter().any(|scenario| !scenario.runs(side).is_empty());
        measured.then(|| {
            all.iter()
                .map(|scenario| scenario.errors(side).total())
                .sum()
        })
    };
    let (before, after) = (errors(Side::Before), errors(Side::After));
    let figures = [
        Metric::RequestsPerSecond,
        Metric::P99,
        Metric::CpuPerRequest,
    ]
    .into_iter()
    .filter_map(|metric| figure(metric, &all))
    .collect();
    Some(Card {
        name: name.to_owned(),
        connections: thousands(f64::from(all.first()?.connections)),
        hosts: all.len(),
        figures,
        errors_before: before.map_or(NONE.to_owned(), |count| thousands(count as f64)),
        errors_after: after.map_or(NONE.to_owned(), |count| thousands(count as f64)),
        better: after == Some(0),
    })
}

/// The median host's figures. Its colour is that of the hosts' verdicts, where they agree.
fn figure(metric: Metric, scenarios: &[&ScenarioResult]) -> Option<Figure> {
    let of = |side| {
        let medians: Vec<f64> = scenarios
            .iter()
            .filter_map(|scenario| scenario.median(side, metric))
            .collect();
        stats::median(&medians)
    };
    let (before, after) = (of(Side::Before), of(Side::After));
    before.or(after)?;
    let compared: Vec<_> = scenarios
        .iter()
        .flat_map(|scenario| &scenario.comparisons)
        .filter(|comparison| comparison.metric == metric)
        .collect();
    let ratios: Vec<f64> = compared
        .iter()
        .filter_map(|comparison| comparison.ratio)
        .collect();
    let same = |verdict| !compared.is_empty() && compared.iter().all(|c| c.verdict == verdict);
    let agreed = [Verdict::Improved, Verdict::Regressed]
        .into_iter()
        .find(|verdict| same(*verdict));
    Some(Figure {
        title: metric.title(),
        before: show(metric, before),
        after: show(metric, after),
        ratio: ratio(stats::median(&ratios)),
        mood: agreed.map_or("", mood),
    })
}

fn host_view(host: &HostResult) -> HostView<'_> {
    let metrics = [
        Metric::RequestsPerSecond,
        Metric::CpuPerRequest,
        Metric::Errors,
    ];
    HostView {
        host: &host.host,
        from: host.from.label(),
        colocated: host.from.colocated,
        passed: host.passed(),
        bars: metrics
            .into_iter()
            .filter_map(|metric| chart::bars(&host.scenarios, metric))
            .collect(),
        scenarios: host.scenarios.iter().map(scenario_view).collect(),
    }
}

fn scenario_view(scenario: &ScenarioResult) -> ScenarioView<'_> {
    let mut rows: Vec<Row> = Metric::ALL
        .into_iter()
        .filter(|metric| *metric != Metric::Errors)
        .filter_map(|metric| row(scenario, metric))
        .collect();
    rows.push(errors_row(scenario));
    rows.extend(cost_rows(scenario));
    ScenarioView {
        name: &scenario.name,
        connections: thousands(f64::from(scenario.connections)),
        argv: scenario.argv.join(" "),
        chart: chart::percentiles(scenario),
        rows,
        gates: &scenario.gates,
        notes: notes(scenario),
    }
}

fn row(scenario: &ScenarioResult, metric: Metric) -> Option<Row> {
    let (before, after) = (
        scenario.median(Side::Before, metric),
        scenario.median(Side::After, metric),
    );
    before.or(after)?;
    let compared = scenario
        .comparisons
        .iter()
        .find(|comparison| comparison.metric == metric);
    Some(Row {
        title: metric.title(),
        before: show(metric, before),
        after: show(metric, after),
        ratio: ratio(compared.and_then(|c| c.ratio)),
        interval: compared
            .and_then(|c| c.interval)
            .map_or(String::new(), |(low, high)| format!("{low:.2} – {high:.2}")),
        verdict: compared.map_or("", |c| c.verdict.name()),
        mood: compared.map_or("", |c| mood(c.verdict)),
    })
}

fn errors_row(scenario: &ScenarioResult) -> Row {
    let text = |side| {
        if scenario.runs(side).is_empty() {
            NONE.to_owned()
        } else {
            scenario.errors(side).show()
        }
    };
    let compared = scenario
        .comparisons
        .iter()
        .find(|c| c.metric == Metric::Errors);
    Row {
        title: "errors in all runs",
        before: text(Side::Before),
        after: text(Side::After),
        ratio: String::new(),
        interval: String::new(),
        verdict: compared.map_or("", |c| c.verdict.name()),
        mood: compared.map_or("", |c| mood(c.verdict)),
    }
}

/// What the host counted meanwhile, the median over the runs.
fn cost_rows(scenario: &ScenarioResult) -> Vec<Row> {
    type Counted = fn(&super::counters::HostCost) -> f64;
    type Shown = fn(f64) -> String;
    let megabytes: Shown = |value| format!("{:.1} MB", value / 1e6);
    let percent: Shown = |value| format!("{:.0} %", value * 100.0);
    let counted: [(&'static str, Counted, Shown); 5] = [
        ("server memory", |cost| cost.rss_bytes as f64, megabytes),
        ("host CPU busy", |cost| cost.share.busy(), percent),
        (
            "listen queue overflows",
            |cost| cost.listen_overflows as f64,
            thousands,
        ),
        (
            "segments sent again",
            |cost| cost.retransmits as f64,
            thousands,
        ),
        (
            "connections in TIME_WAIT",
            |cost| cost.time_wait as f64,
            thousands,
        ),
    ];
    let median = |side, of: Counted| {
        let values: Vec<f64> = scenario
            .runs(side)
            .iter()
            .filter_map(|run| run.cost.as_ref())
            .map(of)
            .collect();
        stats::median(&values)
    };
    counted
        .into_iter()
        .filter_map(|(title, of, show)| {
            let (before, after) = (median(Side::Before, of), median(Side::After, of));
            before.or(after)?;
            let text = |value: Option<f64>| value.map_or(NONE.to_owned(), show);
            Some(Row {
                title,
                before: text(before),
                after: text(after),
                ratio: String::new(),
                interval: String::new(),
                verdict: "",
                mood: "",
            })
        })
        .collect()
}

fn notes(scenario: &ScenarioResult) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for (side, runs) in [("before", &scenario.before), ("after", &scenario.after)] {
        for (index, run) in runs.iter().enumerate() {
            let of_run = |doubt: &String| format!("{side}, run {}: {doubt}", index + 1);
            notes.extend(run.doubts.iter().map(of_run));
        }
    }
    notes
}

fn diff_view(diff: &Diff) -> DiffView<'_> {
    let kind = |line: &str| match line.chars().next() {
        Some('+') => "added",
        Some('-') => "removed",
        Some('@') => "hunk",
        _ => "same",
    };
    DiffView {
        title: &diff.title,
        hosts: diff.hosts.join(", "),
        lines: diff
            .lines
            .iter()
            .map(|line| LineView {
                kind: kind(line),
                text: line,
            })
            .collect(),
    }
}

fn matrix_view<'a>(matrix: &'a Matrix) -> MatrixView<'a> {
    let row = |(name, values): &'a (String, Vec<String>)| {
        let often = |value: &String| values.iter().filter(|other| *other == value).count();
        let most = values.iter().map(often).max().unwrap_or(0);
        // A value is apart only where the hosts have a usual one.
        let apart = |value| most * 2 > values.len() && often(value) < most;
        let cell = |text: &'a String| MatrixCell {
            text,
            apart: apart(text),
        };
        MatrixRow {
            name,
            cells: values.iter().map(cell).collect(),
        }
    };
    let rows = matrix.rows.iter().map(row).collect();
    MatrixView {
        hosts: &matrix.hosts,
        rows,
    }
}

fn show(metric: Metric, value: Option<f64>) -> String {
    value.map_or(NONE.to_owned(), |value| metric.show(value))
}

fn ratio(ratio: Option<f64>) -> String {
    ratio.map_or(String::new(), |ratio| format!("× {ratio:.2}"))
}

fn mood(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Improved => "good",
        Verdict::Regressed => "bad",
        Verdict::Equivalent | Verdict::Inconclusive => "faint",
    }
}

#[cfg(test)]
mod tests {
    use super::super::gate::Gate;
    use super::super::result::{Origin, sample};
    use super::super::run;
    use super::*;

    fn bench() -> Bench {
        let mut bench = Bench::new("r1", "tune", "wrk");
        bench.hosts.push(HostResult {
            host: "web1".to_owned(),
            from: Origin {
                host: "web1".to_owned(),
                colocated: true,
            },
            scenarios: vec![sample::scenario(
                &[(80, 9_000), (82, 5_000), (84, 2_000), (81, 3_000)],
                &[(40, 0), (41, 0), (42, 0), (40, 0)],
            )],
        });
        run::conclude(&mut bench, &[Gate::parse(Metric::Errors, "0").unwrap()]);
        bench
    }

    fn report<'a>(bench: Option<&'a Bench>, diffs: &'a [Diff]) -> Report<'a> {
        Report {
            title: "Tune <web>",
            run: "r1",
            when: "2026-12-01",
            outcome: "kept on 1 host",
            bench,
            diffs,
            matrix: None,
        }
    }

    #[test]
    fn the_page_tells_what_was_measured() {
        let page = page(&report(Some(&bench()), &[])).unwrap();
        for part in [
            "<!DOCTYPE html>",
            "<p class=\"errors\">19,000 → <span class=\"good\">0</span>",
            "<h3>web1</h3><span class=\"tag\">co-located</span>",
            "<td>p99</td><td class=\"n\">81.5 ms</td><td class=\"n\">40.5 ms</td><td class=\"n\">× 0.50</td>",
            "<polyline points=\"",
            "gate <code>errors &lt;= 0</code> is <strong class=\"good\">green</strong>",
        ] {
            assert!(page.contains(part), "{part}");
        }
    }

    #[test]
    fn nothing_is_loaded_from_elsewhere_and_nothing_runs() {
        let page = page(&report(Some(&bench()), &[])).unwrap();
        for part in [
            "<script",
            "<link",
            "<img",
            "src=",
            "@import",
            "url(",
            "href=\"http",
        ] {
            assert!(!page.contains(part), "{part}");
        }
    }

    #[test]
    fn what_came_from_outside_is_escaped() {
        let diffs = [Diff {
            title: "/etc/a".to_owned(),
            hosts: vec!["web1".to_owned(), "web2".to_owned()],
            lines: vec![
                "@@ -1 +1 @@".to_owned(),
                "-<b>".to_owned(),
                "+</pre>&".to_owned(),
            ],
        }];
        let page = page(&report(None, &diffs)).unwrap();
        assert!(page.contains("<h1>Tune &lt;web&gt;</h1>"));
        assert!(page.contains(
            "<span class=\"hunk\">@@ -1 +1 @@</span><span class=\"removed\">-&lt;b&gt;</span>\
             <span class=\"added\">+&lt;&#x2f;pre&gt;&amp;</span>"
        ));
        assert!(page.contains("web1, web2"));
        assert!(!page.contains("<section"), "nothing was measured");
    }

    #[test]
    fn a_value_apart_from_the_usual_one_is_marked() {
        let values = |values: [&str; 3]| values.map(str::to_owned).to_vec();
        let matrix = Matrix {
            hosts: values(["web1", "web2", "web3"]),
            rows: vec![
                ("backlog".to_owned(), values(["8192", "8192", "4096"])),
                ("workers".to_owned(), values(["2", "4", "8"])),
            ],
        };
        let page = page(&Report {
            matrix: Some(&matrix),
            ..report(None, &[])
        })
        .unwrap();
        assert!(page.contains("<td class=\"n\">8192</td><td class=\"n apart\">4096</td>"));
        assert_eq!(page.matches(" apart\"").count(), 1);
    }
}
