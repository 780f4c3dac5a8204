//! The geometry of the report's charts. The template draws them as SVG; a unit is a pixel at 100 %.

use serde::Serialize;

use super::result::{Metric, ScenarioResult, Side};

/// Bars of a metric: one group a scenario, before above after, and a tick for each run.
#[derive(Debug, Serialize)]
pub(super) struct Bars {
    title: &'static str,
    height: f64,
    groups: Vec<Group>,
}

#[derive(Debug, Serialize)]
struct Group {
    name: String,
    y: f64,
    bars: Vec<Bar>,
}

#[derive(Debug, Serialize)]
struct Bar {
    side: &'static str,
    y: f64,
    width: f64,
    text: String,
    /// Where the text starts: behind the bar and its farthest run.
    text_x: f64,
    /// One x a run.
    runs: Vec<f64>,
}

/// Latency by percentile: a line a side, over a logarithmic scale.
#[derive(Debug, Serialize)]
pub(super) struct Percentiles {
    name: String,
    lines: Vec<Line>,
    grid: Vec<Mark>,
    ticks: Vec<Mark>,
}

#[derive(Debug, Serialize)]
struct Line {
    side: &'static str,
    /// `x,y x,y …` for a polyline.
    points: String,
    dots: Vec<Dot>,
}

#[derive(Debug, Serialize)]
struct Dot {
    x: f64,
    y: f64,
    text: String,
}

/// A grid line or a tick with its text.
#[derive(Debug, Serialize)]
struct Mark {
    at: f64,
    text: String,
}

const SIDES: [(Side, &str); 2] = [(Side::Before, "before"), (Side::After, "after")];

/// The longest bar.
const BAR: f64 = 250.0;

/// Bars of a metric over all scenarios of a host; none where it was not measured.
pub(super) fn bars(scenarios: &[ScenarioResult], metric: Metric) -> Option<Bars> {
    let all = scenarios.iter().flat_map(|scenario| {
        SIDES
            .into_iter()
            .flat_map(move |(side, _)| scenario.values(side, metric))
    });
    let most = all.reduce(f64::max)?;
    let scale = if most > 0.0 { BAR / most } else { 0.0 };
    let mut groups = Vec::new();
    let mut y = 0.0;
    for scenario in scenarios {
        let top = y;
        y += 20.0;
        let mut bars = Vec::new();
        for (side, name) in SIDES {
            let Some(median) = scenario.median(side, metric) else {
                continue;
            };
            let runs: Vec<f64> = scenario
                .values(side, metric)
                .iter()
                .map(|run| rounded(run * scale))
                .collect();
            let width = rounded(median * scale);
            let farthest = runs.iter().copied().fold(width, f64::max);
            bars.push(Bar {
                side: name,
                y,
                width: width.max(1.0),
                text: metric.show(median),
                text_x: farthest + 8.0,
                runs,
            });
            y += 20.0;
        }
        groups.push(Group {
            name: scenario.name.clone(),
            y: top + 13.0,
            bars,
        });
        y += 12.0;
    }
    Some(Bars {
        title: metric.title(),
        height: y,
        groups,
    })
}

const PERCENTILES: [(Metric, &str); 6] = [
    (Metric::Mean, "mean"),
    (Metric::P50, "p50"),
    (Metric::P90, "p90"),
    (Metric::P99, "p99"),
    (Metric::P999, "p99.9"),
    (Metric::Max, "max"),
];

/// The plot's area: from the left, from the top, to the right, to the bottom.
const PLOT: (f64, f64, f64, f64) = (52.0, 10.0, 380.0, 170.0);

/// The latencies of a scenario; none where nothing was answered on either side.
pub(super) fn percentiles(scenario: &ScenarioResult) -> Option<Percentiles> {
    let shown: Vec<(Metric, &str)> = PERCENTILES
        .into_iter()
        .filter(|(metric, _)| {
            SIDES
                .iter()
                .any(|(side, _)| scenario.median(*side, *metric).is_some())
        })
        .collect();
    let values = shown.iter().flat_map(|(metric, _)| {
        SIDES
            .into_iter()
            .filter_map(|(side, _)| scenario.median(side, *metric))
    });
    let values: Vec<f64> = values.filter(|value| *value > 0.0).collect();
    let (low, high) = around(&values)?;
    let (left, top, right, bottom) = PLOT;
    let y = |value: f64| {
        let share = (value.max(low) / low).ln() / (high / low).ln();
        rounded(bottom - share * (bottom - top))
    };
    let step = (right - left) / shown.len() as f64;
    let x = |index: usize| rounded(left + step * (index as f64 + 0.5));
    let mut lines = Vec::new();
    for (side, name) in SIDES {
        let dots: Vec<Dot> = shown
            .iter()
            .enumerate()
            .filter_map(|(index, (metric, title))| {
                let value = scenario.median(side, *metric)?;
                let text = format!("{title} {name}: {}", metric.show(value));
                Some(Dot {
                    x: x(index),
                    y: y(value),
                    text,
                })
            })
            .collect();
        if !dots.is_empty() {
            let points: Vec<String> = dots
                .iter()
                .map(|dot| format!("{},{}", dot.x, dot.y))
                .collect();
            lines.push(Line {
                side: name,
                points: points.join(" "),
                dots,
            });
        }
    }
    let grid = scale_marks(low, high)
        .into_iter()
        .map(|value| Mark {
            at: y(value),
            text: short_duration(value),
        })
        .collect();
    let ticks = shown
        .iter()
        .enumerate()
        .map(|(index, (_, title))| Mark {
            at: x(index),
            text: (*title).to_owned(),
        })
        .collect();
    Some(Percentiles {
        name: scenario.name.clone(),
        lines,
        grid,
        ticks,
    })
}

/// The range of a scale: from 1, 2 or 5 of a power of ten below the values to one above.
fn around(values: &[f64]) -> Option<(f64, f64)> {
    let low = values.iter().copied().reduce(f64::min)?;
    let high = values.iter().copied().reduce(f64::max)?;
    let floor = decades(low, low).into_iter().rfind(|mark| *mark <= low)?;
    let ceiling = decades(high, high * 10.0)
        .into_iter()
        .find(|mark| *mark > high)?;
    Some((floor, ceiling))
}

/// 1, 2 and 5 of each power of ten from that of `low` to that of `high`.
fn decades(low: f64, high: f64) -> Vec<f64> {
    let power = |value: f64| value.log10().floor() as i32;
    (power(low)..=power(high))
        .flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10_f64.powi(power)))
        .collect()
}

/// At most seven marks: all of 1, 2 and 5, or powers of ten only.
fn scale_marks(low: f64, high: f64) -> Vec<f64> {
    let within = |mark: &f64| (low..=high).contains(mark);
    let all: Vec<f64> = decades(low, high).into_iter().filter(within).collect();
    if all.len() <= 7 {
        return all;
    }
    all.into_iter()
        .filter(|mark| (mark.log10() - mark.log10().round()).abs() < 1e-9)
        .collect()
}

fn short_duration(us: f64) -> String {
    let (value, unit) = match us {
        us if us < 1e3 => (us, "µs"),
        us if us < 1e6 => (us / 1e3, "ms"),
        us => (us / 1e6, "s"),
    };
    format!("{} {unit}", rounded(value))
}

/// To a tenth: enough for a pixel, and short in the page.
fn rounded(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::super::result::sample::scenario;
    use super::*;

    #[test]
    fn the_farthest_run_is_as_long_as_a_bar_may_be() {
        let scenario = scenario(&[(80, 0), (80, 0)], &[(40, 0), (20, 0), (40, 0)]);
        let bars = bars(&[scenario], Metric::RequestsPerSecond).unwrap();
        let [before, after] = bars.groups[0].bars.as_slice() else {
            panic!("two bars")
        };
        assert_eq!((before.width, after.width), (62.5, 125.0));
        assert_eq!(after.runs, [125.0, 250.0, 125.0]);
        assert_eq!((after.text.as_str(), after.text_x), ("100,000", 258.0));
    }

    #[test]
    fn what_was_not_measured_has_no_chart() {
        let without = scenario(&[(80, 0)], &[]);
        assert!(bars(std::slice::from_ref(&without), Metric::CpuPerRequest).is_none());
        let one = percentiles(&without).unwrap();
        assert_eq!((one.lines.len(), one.lines[0].side), (1, "before"));
        assert!(percentiles(&scenario(&[], &[])).is_none());
    }

    #[test]
    fn higher_latencies_are_higher_up_and_marks_lie_within() {
        let chart = percentiles(&scenario(&[(80, 0)], &[(40, 0)])).unwrap();
        let heights: Vec<f64> = chart.lines[0].dots.iter().map(|dot| dot.y).collect();
        assert!(
            heights[1] > heights[2] && heights[2] > heights[3],
            "{heights:?}"
        );
        assert!(chart.lines[1].dots[3].y > chart.lines[0].dots[3].y);
        assert_eq!(chart.lines[0].dots[3].text, "p99 before: 80.0 ms");
        assert!(
            chart
                .grid
                .iter()
                .all(|mark| (PLOT.1..=PLOT.3).contains(&mark.at))
        );
    }

    #[test]
    fn scales_have_round_marks() {
        assert_eq!(around(&[152.0, 9_000.0]), Some((100.0, 10_000.0)));
        assert_eq!(
            scale_marks(100.0, 10_000.0),
            [100.0, 200.0, 500.0, 1e3, 2e3, 5e3, 1e4]
        );
        assert_eq!(scale_marks(100.0, 2e6), [100.0, 1e3, 1e4, 1e5, 1e6]);
        assert_eq!(short_duration(2e6), "2 s");
    }
}
