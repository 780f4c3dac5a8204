//! Gates: what a bench must reach, or the host's changes are undone.
//!
//! `errors: 0` bounds a figure from above; `p99: "<= before * 1.05"` compares it with the baseline.
//! Medians over the runs are judged, but errors by the worst run.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::result::{Metric, ScenarioResult, Side};

/// A bound on a metric of every scenario.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gate {
    /// What is judged.
    pub metric: Metric,
    /// How it must compare with the bound.
    pub relation: Relation,
    /// The bound.
    pub bound: Bound,
}

/// How a figure must compare with its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    Greater,
    /// `>=`
    AtLeast,
}

/// What a figure is compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// A fixed figure, in the metric's own unit.
    Fixed(f64),
    /// The baseline times a factor.
    Before(f64),
}

/// A gate, judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GateResult {
    /// The gate as a reader knows it: `p99 <= before * 1.05`.
    pub gate: String,
    /// Whether it is green. A figure that was not measured is red; one without a baseline, where the
    /// gate asks for one, is green.
    pub passed: bool,
    /// The figure and its bound, in words.
    pub detail: String,
}

impl Gate {
    /// Reads a gate's right side: `0`, `< 50ms`, `>= before`, `<= before * 1.05`. A bare figure is
    /// the most that is allowed, or the least where more is better.
    pub fn parse(metric: Metric, text: &str) -> Result<Self, String> {
        let text = text.trim();
        let by_sign = [
            ("<=", Relation::AtMost),
            (">=", Relation::AtLeast),
            ("<", Relation::Less),
            (">", Relation::Greater),
        ];
        let (relation, rest) = by_sign
            .iter()
            .find_map(|(sign, relation)| Some((*relation, text.strip_prefix(sign)?.trim())))
            .unwrap_or(if metric.more_is_better() {
                (Relation::AtLeast, text)
            } else {
                (Relation::AtMost, text)
            });
        let bound = match rest.strip_prefix("before").map(str::trim) {
            Some("") => Bound::Before(1.0),
            Some(times) => Bound::Before(factor(times).ok_or_else(|| malformed(text))?),
            None => Bound::Fixed(figure(metric, rest).ok_or_else(|| malformed(text))?),
        };
        Ok(Self {
            metric,
            relation,
            bound,
        })
    }

    /// Judges a scenario.
    pub fn judge(&self, scenario: &ScenarioResult) -> GateResult {
        let after = self.figure(scenario, Side::After);
        let bound = match self.bound {
            Bound::Fixed(bound) => Some(bound),
            Bound::Before(factor) => self.figure(scenario, Side::Before).map(|it| it * factor),
        };
        let (passed, detail) = match (after, bound) {
            (None, _) => (false, format!("{} was not measured", self.metric.title())),
            (Some(after), None) => (
                true,
                format!("{}, with no baseline to compare", self.metric.show(after)),
            ),
            (Some(after), Some(bound)) => {
                let passed = match self.relation {
                    Relation::Less => after < bound,
                    Relation::AtMost => after <= bound,
                    Relation::Greater => after > bound,
                    Relation::AtLeast => after >= bound,
                };
                let sign = if passed { "against" } else { "beyond" };
                let show = |value| self.metric.show(value);
                (passed, format!("{} {sign} {}", show(after), show(bound)))
            }
        };
        GateResult {
            gate: self.to_string(),
            passed,
            detail,
        }
    }

    fn figure(&self, scenario: &ScenarioResult, side: Side) -> Option<f64> {
        if self.metric == Metric::Errors {
            scenario
                .values(side, self.metric)
                .into_iter()
                .reduce(f64::max)
        } else {
            scenario.median(side, self.metric)
        }
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match self.relation {
            Relation::Less => "<",
            Relation::AtMost => "<=",
            Relation::Greater => ">",
            Relation::AtLeast => ">=",
        };
        write!(f, "{} {sign} ", self.metric.name())?;
        match self.bound {
            Bound::Fixed(bound) => f.write_str(&self.metric.show(bound)),
            Bound::Before(1.0) => f.write_str("before"),
            Bound::Before(factor) => write!(f, "before * {factor}"),
        }
    }
}

fn factor(times: &str) -> Option<f64> {
    positive(times.strip_prefix('*')?)
}

fn figure(metric: Metric, text: &str) -> Option<f64> {
    match metric {
        Metric::RequestsPerSecond | Metric::Errors | Metric::BytesPerSecond => positive(text),
        _ => {
            let units = [("ms", 1e3), ("us", 1.0), ("µs", 1.0), ("s", 1e6)];
            units
                .iter()
                .find_map(|(unit, scale)| Some(positive(text.strip_suffix(unit)?)? * scale))
        }
    }
}

fn positive(text: &str) -> Option<f64> {
    text.trim()
        .parse()
        .ok()
        .filter(|number: &f64| number.is_finite() && *number >= 0.0)
}

fn malformed(text: &str) -> String {
    format!("`{text}` is no bound: write `0`, `< 50ms`, `>= before` or `<= before * 1.05`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::result::sample::scenario;

    fn gate(metric: Metric, text: &str) -> Gate {
        Gate::parse(metric, text).unwrap()
    }

    #[test]
    fn gates_as_they_are_written() {
        let shown = |metric, text| gate(metric, text).to_string();
        assert_eq!(shown(Metric::Errors, "0"), "errors <= 0");
        assert_eq!(
            shown(Metric::P99, "<= before * 1.05"),
            "p99 <= before * 1.05"
        );
        assert_eq!(shown(Metric::P99, "< 50ms"), "p99 < 50.0 ms");
        assert_eq!(
            shown(Metric::RequestsPerSecond, ">=before"),
            "requests_per_second >= before"
        );
        assert_eq!(
            shown(Metric::RequestsPerSecond, "20000"),
            "requests_per_second >= 20,000"
        );
    }

    #[test]
    fn what_is_no_bound_is_refused_with_examples() {
        for text in [
            "",
            "fast",
            "<= after",
            "before + 3",
            "before *",
            "50",
            "-1",
            "<= NaN",
        ] {
            let error = Gate::parse(Metric::P99, text).unwrap_err();
            assert!(
                error.starts_with(&format!("`{text}` is no bound")),
                "{error}"
            );
        }
    }

    #[test]
    fn medians_are_judged_and_errors_by_the_worst_run() {
        // Before: 50, 52, 54 ms of p99 and 10 errors in all; after: 50, 51, 90 ms and one error.
        let scenario = scenario(&[(50, 0), (52, 0), (54, 10)], &[(50, 0), (51, 0), (90, 1)]);
        let judged = |metric, text| gate(metric, text).judge(&scenario);
        assert_eq!(
            judged(Metric::P99, "<= before"),
            GateResult {
                gate: "p99 <= before".to_owned(),
                passed: true,
                detail: "51.0 ms against 52.0 ms".to_owned(),
            }
        );
        assert!(!judged(Metric::P99, "< before * 0.5").passed);
        let errors = judged(Metric::Errors, "0");
        assert_eq!(
            (errors.passed, errors.detail.as_str()),
            (false, "1 beyond 0")
        );
    }

    #[test]
    fn a_figure_that_was_not_measured_is_red_and_a_missing_baseline_is_not() {
        let judged = gate(Metric::P99, "<= before").judge(&scenario(&[(50, 0)], &[]));
        assert_eq!(
            (judged.passed, judged.detail.as_str()),
            (false, "p99 was not measured")
        );
        let judged = gate(Metric::P99, "<= before").judge(&scenario(&[], &[(50, 0)]));
        assert_eq!(
            (judged.passed, judged.detail.as_str()),
            (true, "50.0 ms, with no baseline to compare")
        );
    }
}
