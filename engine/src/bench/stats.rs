//! Whether a difference is one: ratio of medians with a bootstrap interval, and an exact
//! Mann-Whitney test. The unit is the run, so the numbers are few, and three a side can never be
//! significant (the smallest two-sided p is 0.10).

use serde::{Deserialize, Serialize};

use super::result::Metric;

/// Runs a side below which nothing is ever decided.
pub const FEWEST: usize = 4;

/// A change within this share is none: the interval of an `equivalent` metric lies inside 1 ± 0.03.
pub const EQUIVALENCE: f64 = 0.03;

/// The level of the test, and of the interval (95 %).
const ALPHA: f64 = 0.05;

const RESAMPLES: usize = 10_000;

/// A metric before and after.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// What was measured.
    pub metric: Metric,
    /// The median of the runs before.
    pub before: f64,
    /// The median of the runs after.
    pub after: f64,
    /// Runs before and after.
    pub runs: (usize, usize),
    /// `after / before`; none where before is 0.
    pub ratio: Option<f64>,
    /// The 95 % bootstrap interval of the ratio; none where a resample had no ratio.
    pub interval: Option<(f64, f64)>,
    /// Two-sided p of the exact Mann-Whitney test.
    pub p: f64,
    /// What may be said.
    pub verdict: Verdict,
}

/// What may be said of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Better, and more than chance.
    Improved,
    /// Worse, and more than chance.
    Regressed,
    /// The same within 3 %.
    Equivalent,
    /// Too few runs or too much noise to say.
    Inconclusive,
}

impl Verdict {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Improved => "improved",
            Self::Regressed => "regressed",
            Self::Equivalent => "equivalent",
            Self::Inconclusive => "inconclusive",
        }
    }
}

/// Compares the runs of two sides; none where a side has no run.
pub fn compare(metric: Metric, before: &[f64], after: &[f64]) -> Option<Comparison> {
    let (from, to) = (median(before)?, median(after)?);
    let ratio = (from > 0.0).then(|| to / from);
    let interval = bootstrap(before, after);
    let p = mann_whitney(before, after);
    let verdict = if before.len().min(after.len()) < FEWEST {
        Verdict::Inconclusive
    } else {
        judge(metric, from, to, interval, p)
    };
    Some(Comparison {
        metric,
        before: from,
        after: to,
        runs: (before.len(), after.len()),
        ratio,
        interval,
        p,
        verdict,
    })
}

fn judge(metric: Metric, from: f64, to: f64, interval: Option<(f64, f64)>, p: f64) -> Verdict {
    if from == to && p > ALPHA && interval.is_none_or(|(low, high)| low == high) {
        return Verdict::Equivalent;
    }
    if interval.is_some_and(|(low, high)| low >= 1.0 - EQUIVALENCE && high <= 1.0 + EQUIVALENCE) {
        return Verdict::Equivalent;
    }
    let beyond_chance = p < ALPHA && interval.is_none_or(|(low, high)| low > 1.0 || high < 1.0);
    match (beyond_chance, (to > from) == metric.more_is_better()) {
        (false, _) => Verdict::Inconclusive,
        (true, true) => Verdict::Improved,
        (true, false) => Verdict::Regressed,
    }
}

/// The median; none of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    Some((sorted.get(middle.checked_sub(1)?)? + upper) / 2.0)
}

/// The 95 % percentile interval of the ratio of medians. The generator starts from a fixed seed, so
/// that the same runs always give the same interval.
fn bootstrap(before: &[f64], after: &[f64]) -> Option<(f64, f64)> {
    let mut random = SplitMix(0x5EED);
    let mut ratios = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        let from = median(&resample(before, &mut random))?;
        let to = median(&resample(after, &mut random))?;
        if from <= 0.0 {
            return None;
        }
        ratios.push(to / from);
    }
    ratios.sort_by(f64::total_cmp);
    let at = |share: f64| {
        ratios
            .get((share * (RESAMPLES - 1) as f64).round() as usize)
            .copied()
    };
    Some((at(ALPHA / 2.0)?, at(1.0 - ALPHA / 2.0)?))
}

fn resample(values: &[f64], random: &mut SplitMix) -> Vec<f64> {
    (0..values.len())
        .filter_map(|_| values.get(random.below(values.len())).copied())
        .collect()
}

/// Sebastiano Vigna's SplitMix64.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }
}

/// The two-sided p of the exact Mann-Whitney test, ties by mid-ranks: the share of all ways to deal
/// the ranks to the two sides that lie at least as far from the middle as what was seen.
fn mann_whitney(before: &[f64], after: &[f64]) -> f64 {
    let ranks = doubled_ranks(before, after);
    let total: usize = ranks.iter().sum();
    let (n, m) = (before.len(), after.len());
    // ways[k][s]: in how many ways k of the ranks sum up to s.
    let mut ways = vec![vec![0.0_f64; total + 1]; n + 1];
    ways[0][0] = 1.0;
    for rank in &ranks {
        for k in (1..=n).rev() {
            for sum in (*rank..=total).rev() {
                ways[k][sum] += ways[k - 1][sum - rank];
            }
        }
    }
    let middle = total as f64 * n as f64 / (n + m) as f64;
    let seen: usize = ranks.iter().take(n).sum();
    let distance = (seen as f64 - middle).abs() - 1e-9;
    let all: f64 = ways[n].iter().sum();
    let far: f64 = ways[n]
        .iter()
        .enumerate()
        .filter(|(sum, _)| (*sum as f64 - middle).abs() >= distance)
        .map(|(_, count)| count)
        .sum();
    far / all
}

/// Twice the mid-rank of each value among all, those of `before` first: whole numbers.
fn doubled_ranks(before: &[f64], after: &[f64]) -> Vec<usize> {
    let all: Vec<f64> = before.iter().chain(after).copied().collect();
    all.iter()
        .map(|value| {
            let below = all.iter().filter(|other| *other < value).count();
            let equal = all.iter().filter(|other| *other == value).count();
            2 * below + equal + 1
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(metric: Metric, before: &[f64], after: &[f64]) -> Verdict {
        compare(metric, before, after).unwrap().verdict
    }

    #[test]
    fn medians() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn the_smallest_p_of_the_exact_test() {
        let low = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let high = [11.0, 12.0, 13.0, 14.0, 15.0, 16.0];
        let p = |n: usize| (mann_whitney(&low[..n], &high[..n]) * 10_000.0).round() / 10_000.0;
        assert_eq!((p(3), p(4), p(5), p(6)), (0.1, 0.0286, 0.0079, 0.0022));
    }

    #[test]
    fn overlapping_sides_have_the_tabled_p() {
        // U = 2 of 5 and 5: 8 of 252 ways are as far out or farther, both ends counted.
        let before = [1.0, 2.0, 3.0, 4.0, 7.0];
        let after = [5.0, 6.0, 8.0, 9.0, 10.0];
        assert!((mann_whitney(&before, &after) - 8.0 / 252.0).abs() < 1e-12);
    }

    #[test]
    fn equal_sides_have_p_1() {
        assert_eq!(
            mann_whitney(&[2.0, 2.0, 2.0, 2.0], &[2.0, 2.0, 2.0, 2.0]),
            1.0
        );
    }

    #[test]
    fn three_repeats_are_never_enough() {
        let comparison = compare(Metric::P99, &[100.0, 101.0, 102.0], &[10.0, 10.1, 10.2]).unwrap();
        assert_eq!(comparison.verdict, Verdict::Inconclusive);
        assert!((comparison.p - 0.1).abs() < 1e-12);
    }

    #[test]
    fn less_latency_and_more_requests_are_better() {
        let small = [10.0, 10.2, 10.1, 10.4, 10.3, 9.9];
        let large = [14.0, 14.2, 14.1, 14.4, 14.3, 13.9];
        assert_eq!(verdict(Metric::P99, &large, &small), Verdict::Improved);
        assert_eq!(verdict(Metric::P99, &small, &large), Verdict::Regressed);
        assert_eq!(
            verdict(Metric::RequestsPerSecond, &small, &large),
            Verdict::Improved
        );
        assert_eq!(
            verdict(Metric::RequestsPerSecond, &large, &small),
            Verdict::Regressed
        );
    }

    #[test]
    fn noise_is_inconclusive_and_a_hair_is_equivalent() {
        let noisy = [50.0, 90.0, 70.0, 110.0, 65.0, 80.0];
        let also = [60.0, 100.0, 75.0, 95.0, 85.0, 72.0];
        assert_eq!(
            verdict(Metric::RequestsPerSecond, &noisy, &also),
            Verdict::Inconclusive
        );
        let one = [100.0, 100.4, 99.8, 100.1, 99.9, 100.2];
        let other = [100.5, 100.9, 100.3, 100.6, 100.4, 100.7];
        assert_eq!(
            verdict(Metric::RequestsPerSecond, &one, &other),
            Verdict::Equivalent
        );
    }

    #[test]
    fn errors_to_zero_have_a_ratio_and_zero_to_errors_have_none() {
        let some = [60_096.0, 89_971.0, 4_000.0, 5_760.0];
        let none = [0.0; 4];
        let gone = compare(Metric::Errors, &some, &none).unwrap();
        assert_eq!((gone.ratio, gone.verdict), (Some(0.0), Verdict::Improved));
        let came = compare(Metric::Errors, &none, &some).unwrap();
        assert_eq!(
            (came.ratio, came.interval, came.verdict),
            (None, None, Verdict::Regressed)
        );
        assert_eq!(verdict(Metric::Errors, &none, &none), Verdict::Equivalent);
    }

    #[test]
    fn the_interval_is_the_same_every_time_and_holds_the_ratio() {
        let before = [11.7, 12.0, 11.7, 12.3, 11.5, 11.9];
        let after = [8.1, 8.4, 8.3, 8.2, 8.6, 8.0];
        let one = compare(Metric::CpuPerRequest, &before, &after).unwrap();
        assert_eq!(
            compare(Metric::CpuPerRequest, &before, &after),
            Some(one.clone())
        );
        let (low, high) = one.interval.unwrap();
        let ratio = one.ratio.unwrap();
        assert!(
            low < ratio && ratio < high && low > 0.65 && high < 0.75,
            "{low} {ratio} {high}"
        );
    }
}
