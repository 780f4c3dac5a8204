//! A bench as text: one table a host, and one for the fleet. Understandable without colour.

use super::gate::GateResult;
use super::result::{Bench, HostResult, Measured, Metric, ScenarioResult, Side, thousands};
use super::stats::{Comparison, Verdict};

/// The figures of a host's table, in this order; the errors have a line of their own.
const METRICS: [Metric; 5] = [
    Metric::RequestsPerSecond,
    Metric::P50,
    Metric::P99,
    Metric::Max,
    Metric::CpuPerRequest,
];

/// Whether a text is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// No escapes.
    Plain,
    /// ANSI colours.
    Colour,
}

/// Every host's table, and below them the fleet's where there are several hosts.
pub fn bench(bench: &Bench, style: Style) -> String {
    let mut parts: Vec<String> = bench.hosts.iter().map(|one| host(one, style)).collect();
    if bench.hosts.len() > 1 {
        parts.push(fleet(bench, style));
    }
    parts.join("\n")
}

/// One host: before and after of each scenario, with gates and doubts.
pub fn host(host: &HostResult, style: Style) -> String {
    let mut grid = Grid::new(&[
        "scenario",
        "",
        "before",
        "after",
        "ratio",
        "95 % interval",
        "",
    ]);
    for scenario in &host.scenarios {
        let mut name = scenario.name.clone();
        for metric in METRICS {
            if let Some(row) = figures(std::mem::take(&mut name), scenario, metric) {
                grid.row(row);
            }
        }
        let errors = |side| {
            let text = if scenario.runs(side).is_empty() {
                "–".to_owned()
            } else {
                scenario.errors(side).show()
            };
            Cell::right(text).tinted(if scenario.errors(side).total() > 0 {
                Tint::Bad
            } else {
                Tint::None
            })
        };
        grid.row(vec![
            Cell::left(name),
            Cell::left("errors in all"),
            errors(Side::Before),
            errors(Side::After),
            Cell::left(""),
            Cell::left(""),
            verdict(comparison(scenario, Metric::Errors)),
        ]);
    }
    let mut text = format!("{}, {}\n{}", host.host, host.from.label(), grid.draw(style));
    for scenario in &host.scenarios {
        for gate in &scenario.gates {
            text.push_str(&gate_line(scenario, gate, style));
        }
        for (side, doubt, times) in doubts(scenario) {
            let often = if times > 1 {
                format!(" ({times} times)")
            } else {
                String::new()
            };
            text.push_str(&format!(
                "  note: {} {side}: {doubt}{often}\n",
                scenario.name
            ));
        }
    }
    text
}

/// The fleet: one line a host and scenario.
pub fn fleet(bench: &Bench, style: Style) -> String {
    let mut grid = Grid::new(&[
        "host",
        "scenario",
        "requests/s",
        "",
        "",
        "p99",
        "",
        "CPU/request",
        "",
        "errors",
        "",
        "gates",
    ]);
    for host in &bench.hosts {
        let mut name = host.host.clone();
        for scenario in &host.scenarios {
            let show = |side, metric: Metric| {
                Cell::right(
                    scenario
                        .median(side, metric)
                        .map_or("–".to_owned(), |value| metric.show(value)),
                )
            };
            let errors = |side| {
                let total = scenario.errors(side).total();
                let text = if scenario.runs(side).is_empty() {
                    "–".to_owned()
                } else {
                    thousands(total as f64)
                };
                Cell::right(text).tinted(if total > 0 { Tint::Bad } else { Tint::None })
            };
            let ratio = comparison(scenario, Metric::RequestsPerSecond).and_then(|c| c.ratio);
            grid.row(vec![
                Cell::left(std::mem::take(&mut name)),
                Cell::left(scenario.name.as_str()),
                show(Side::Before, Metric::RequestsPerSecond),
                show(Side::After, Metric::RequestsPerSecond),
                Cell::right(ratio.map_or(String::new(), |ratio| format!("× {ratio:.2}"))),
                show(Side::Before, Metric::P99),
                show(Side::After, Metric::P99),
                show(Side::Before, Metric::CpuPerRequest),
                show(Side::After, Metric::CpuPerRequest),
                errors(Side::Before),
                errors(Side::After),
                gates(scenario),
            ]);
        }
    }
    format!("fleet, before and after\n{}", grid.draw(style))
}

fn figures(name: String, scenario: &ScenarioResult, metric: Metric) -> Option<Vec<Cell>> {
    let of = |side| scenario.median(side, metric);
    if of(Side::Before).is_none() && of(Side::After).is_none() {
        return None;
    }
    let show = |side| Cell::right(of(side).map_or("–".to_owned(), |value| metric.show(value)));
    let compared = comparison(scenario, metric);
    let ratio = compared
        .and_then(|c| c.ratio)
        .map_or(String::new(), |ratio| format!("× {ratio:.2}"));
    let interval = compared
        .and_then(|c| c.interval)
        .map_or(String::new(), |(low, high)| format!("{low:.2} – {high:.2}"));
    Some(vec![
        Cell::left(name),
        Cell::left(metric.title()),
        show(Side::Before),
        show(Side::After),
        Cell::right(ratio),
        Cell::right(interval),
        verdict(compared),
    ])
}

fn comparison(scenario: &ScenarioResult, metric: Metric) -> Option<&Comparison> {
    scenario
        .comparisons
        .iter()
        .find(|comparison| comparison.metric == metric)
}

fn verdict(comparison: Option<&Comparison>) -> Cell {
    let Some(comparison) = comparison else {
        return Cell::left("");
    };
    Cell::left(comparison.verdict.name()).tinted(match comparison.verdict {
        Verdict::Improved => Tint::Good,
        Verdict::Regressed => Tint::Bad,
        Verdict::Equivalent | Verdict::Inconclusive => Tint::Faint,
    })
}

fn gates(scenario: &ScenarioResult) -> Cell {
    let red = scenario.gates.iter().filter(|gate| !gate.passed).count();
    match (scenario.gates.len(), red) {
        (0, _) => Cell::left(""),
        (_, 0) => Cell::left("green").tinted(Tint::Good),
        (all, red) => Cell::left(format!("{red} of {all} red")).tinted(Tint::Bad),
    }
}

fn gate_line(scenario: &ScenarioResult, gate: &GateResult, style: Style) -> String {
    let (word, tint) = if gate.passed {
        ("green", Tint::Good)
    } else {
        ("red", Tint::Bad)
    };
    let word = tint.paint(word, style);
    format!(
        "  gate {word}: {} {} ({})\n",
        scenario.name, gate.gate, gate.detail
    )
}

/// Each doubt of a side once, with how often it came.
fn doubts(scenario: &ScenarioResult) -> Vec<(&'static str, &str, usize)> {
    let mut all: Vec<(&'static str, &str, usize)> = Vec::new();
    for (side, runs) in [("before", &scenario.before), ("after", &scenario.after)] {
        for doubt in runs.iter().flat_map(|run: &Measured| &run.doubts) {
            match all
                .iter_mut()
                .find(|(s, known, _)| *s == side && alike(known, doubt))
            {
                Some((_, _, times)) => *times += 1,
                None => all.push((side, doubt, 1)),
            }
        }
    }
    all
}

/// Whether two doubts differ in their numbers only.
fn alike(one: &str, other: &str) -> bool {
    let words = |text: &str| text.replace(|letter: char| letter.is_ascii_digit(), "");
    words(one) == words(other)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tint {
    None,
    Good,
    Bad,
    Faint,
}

impl Tint {
    fn paint(self, text: &str, style: Style) -> String {
        let code = match (style, self) {
            (Style::Plain, _) | (_, Self::None) => return text.to_owned(),
            _ if text.is_empty() => return String::new(),
            (_, Self::Good) => "32",
            (_, Self::Bad) => "31",
            (_, Self::Faint) => "2",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

#[derive(Clone, Debug)]
struct Cell {
    text: String,
    right: bool,
    tint: Tint,
}

impl Cell {
    fn left(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            right: false,
            tint: Tint::None,
        }
    }

    fn right(text: impl Into<String>) -> Self {
        Self {
            right: true,
            ..Self::left(text)
        }
    }

    fn tinted(self, tint: Tint) -> Self {
        Self { tint, ..self }
    }

    fn width(&self) -> usize {
        self.text.chars().count()
    }
}

struct Grid {
    rows: Vec<Vec<Cell>>,
}

impl Grid {
    fn new(head: &[&str]) -> Self {
        Self {
            rows: vec![
                head.iter()
                    .map(|text| Cell::left(*text).tinted(Tint::Faint))
                    .collect(),
            ],
        }
    }

    fn row(&mut self, row: Vec<Cell>) {
        self.rows.push(row);
    }

    fn draw(&self, style: Style) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(Cell::width)
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        // A head stands over its figures: to the right where they do.
        let rights: Vec<bool> = (0..columns)
            .map(|column| {
                self.rows
                    .iter()
                    .any(|row| row.get(column).is_some_and(|cell| cell.right))
            })
            .collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::from(" ");
            for ((cell, width), right) in row.iter().zip(&widths).zip(&rights) {
                let blank = " ".repeat(width - cell.width());
                let painted = cell.tint.paint(&cell.text, style);
                line.push(' ');
                if *right {
                    line.push_str(&blank);
                    line.push_str(&painted);
                } else {
                    line.push_str(&painted);
                    line.push_str(&blank);
                }
                line.push(' ');
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::super::gate::Gate;
    use super::super::result::{Origin, sample};
    use super::super::run;
    use super::*;

    fn judged(before: &[(u64, u64)], after: &[(u64, u64)]) -> Bench {
        let mut bench = Bench::new("r1", "tune", "wrk");
        for (name, from) in [("web1", "load1"), ("web2", "web2")] {
            bench.hosts.push(HostResult {
                host: name.to_owned(),
                from: Origin {
                    host: from.to_owned(),
                    colocated: from == name,
                },
                scenarios: vec![sample::scenario(before, after)],
            });
        }
        bench.hosts[0].scenarios[0].before[0].doubts = vec!["only 900 of 2000".to_owned()];
        bench.hosts[0].scenarios[0].before[1].doubts = vec!["only 910 of 2000".to_owned()];
        run::conclude(&mut bench, &[Gate::parse(Metric::Errors, "0").unwrap()]);
        bench
    }

    const BEFORE: [(u64, u64); 5] = [(80, 60_000), (82, 5_000), (84, 2_000), (81, 0), (83, 0)];
    const AFTER: [(u64, u64); 5] = [(40, 0), (41, 0), (42, 0), (40, 0), (41, 0)];

    #[test]
    fn before_and_after_of_a_fleet() {
        insta::assert_snapshot!(bench(&judged(&BEFORE, &AFTER), Style::Plain), @r"
        web1, from load1
          scenario                      before    after   ratio  95 % interval
          c2000     requests/s          48,780   97,561  × 2.00    1.95 – 2.08  improved
                    p50                28.7 ms  14.3 ms  × 0.50    0.48 – 0.51  improved
                    p99                82.0 ms  41.0 ms  × 0.50    0.48 – 0.51  improved
                    max                 164 ms  82.0 ms  × 0.50    0.48 – 0.51  improved
                    errors in all  read 67,000     none                         inconclusive
          gate green: c2000 errors <= 0 (0 against 0)
          note: c2000 before: only 900 of 2000 (2 times)

        web2, co-located
          scenario                      before    after   ratio  95 % interval
          c2000     requests/s          48,780   97,561  × 2.00    1.95 – 2.08  improved
                    p50                28.7 ms  14.3 ms  × 0.50    0.48 – 0.51  improved
                    p99                82.0 ms  41.0 ms  × 0.50    0.48 – 0.51  improved
                    max                 164 ms  82.0 ms  × 0.50    0.48 – 0.51  improved
                    errors in all  read 67,000     none                         inconclusive
          gate green: c2000 errors <= 0 (0 against 0)

        fleet, before and after
          host  scenario  requests/s                      p99           CPU/request     errors     gates
          web1  c2000         48,780  97,561  × 2.00  82.0 ms  41.0 ms            –  –  67,000  0  green
          web2  c2000         48,780  97,561  × 2.00  82.0 ms  41.0 ms            –  –  67,000  0  green
        ");
    }

    #[test]
    fn a_baseline_alone_has_no_after_and_no_verdict() {
        insta::assert_snapshot!(host(&judged(&BEFORE, &[]).hosts[1], Style::Plain), @r"
        web2, co-located
          scenario                      before  after  ratio  95 % interval
          c2000     requests/s          48,780      –
                    p50                28.7 ms      –
                    p99                82.0 ms      –
                    max                 164 ms      –
                    errors in all  read 67,000      –
        ");
    }

    #[test]
    fn colour_changes_no_letter() {
        let bench_result = judged(&BEFORE, &AFTER);
        let coloured = bench(&bench_result, Style::Colour);
        assert!(coloured.contains("\u{1b}[31mread 67,000\u{1b}[0m"));
        let mut bare = coloured;
        for code in ["\u{1b}[31m", "\u{1b}[32m", "\u{1b}[2m", "\u{1b}[0m"] {
            bare = bare.replace(code, "");
        }
        assert_eq!(bare, bench(&bench_result, Style::Plain));
    }
}
