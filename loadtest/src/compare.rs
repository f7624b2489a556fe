//! Two proxies under the same load, in turn: first figures, then ratios. A machine drifts, so each
//! round runs both, in a shuffled order, and a ratio is taken inside a round only.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;

use serde::Serialize;

use crate::client::Failures;
use crate::closed::{self, Plan};
use crate::cpu;
use crate::report::{Figures, errors_text, precise};

/// One of the two.
#[derive(Clone, Debug)]
pub(crate) struct Side {
    pub name: String,
    pub plan: Plan,
    /// Whose CPU time counts.
    pub pids: Vec<u32>,
}

/// What one side did in one round, or the medians over all.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Sample {
    pub requests_per_second: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    pub cpu_us_per_request: f64,
}

/// A median of ratios of the first side to the second, and how far they spread.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Ratio {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Ratios {
    pub requests_per_second: Ratio,
    pub p50: Ratio,
    pub p99: Ratio,
    pub cpu_per_request: Ratio,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Outcome {
    pub name: String,
    pub median: Sample,
    pub rounds: Vec<Sample>,
    /// Over all rounds, warm-ups included.
    pub errors: Failures,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Comparison {
    pub a: Outcome,
    pub b: Outcome,
    pub a_to_b: Ratios,
}

/// What a side has shown so far.
#[derive(Debug, Default)]
struct Record {
    rounds: Vec<Sample>,
    errors: Failures,
}

/// Runs `rounds_count` rounds, at least one, and tells each sample as it comes.
///
/// # Errors
///
/// What the system says if the CPU time of a process can't be read.
pub(crate) async fn run(
    sides: [Side; 2],
    rounds_count: usize,
    tell: impl Fn(&str),
) -> io::Result<Comparison> {
    let mut records = [Record::default(), Record::default()];
    for round in 1..=rounds_count {
        let first = usize::from(is_tails());
        for index in [first, 1 - first] {
            let (side, record) = (&sides[index], &mut records[index]);
            let (sample, errors) = sample(side).await?;
            tell(&format!("round {round}: {}", row(&side.name, &sample)));
            if errors != Failures::default() {
                tell(&format!("round {round}: {} failed: {}", side.name, errors_text(&errors)));
            }
            record.rounds.push(sample);
            record.errors.add(&errors);
        }
    }
    let [a, b] = sides;
    let [of_a, of_b] = records;
    Ok(Comparison {
        a_to_b: ratios(&of_a.rounds, &of_b.rounds),
        a: outcome(a.name, of_a),
        b: outcome(b.name, of_b),
    })
}

impl Comparison {
    pub(crate) fn is_clean(&self) -> bool {
        self.a.errors.total() == 0 && self.b.errors.total() == 0
    }

    pub(crate) fn text(&self) -> String {
        let Self { a, b, a_to_b } = self;
        let ratio = |name: &str, ratio: &Ratio| {
            let Ratio { median, min, max } = ratio;
            format!("{name:<16} {median:>10.3}  ({min:.3} to {max:.3})")
        };
        [
            format!("medians of {} rounds", a.rounds.len()),
            row(&a.name, &a.median),
            row(&b.name, &b.median),
            format!("ratios, {} to {}: median of rounds (least to greatest)", a.name, b.name),
            ratio("requests/s", &a_to_b.requests_per_second),
            ratio("p50", &a_to_b.p50),
            ratio("p99", &a_to_b.p99),
            ratio("CPU/request", &a_to_b.cpu_per_request),
            format!("errors: {}: {}", a.name, errors_text(&a.errors)),
            format!("errors: {}: {}", b.name, errors_text(&b.errors)),
        ]
        .join("\n")
    }
}

/// Loads one side once. Its CPU time covers the warm-up, and so do the requests it is divided by.
async fn sample(side: &Side) -> io::Result<(Sample, Failures)> {
    let before = cpu::time_of(&side.pids)?;
    let run = closed::run(side.plan.clone()).await;
    let spent = cpu::time_of(&side.pids)?.saturating_sub(before);
    let figures = Figures::of(&run);
    let sample = Sample {
        requests_per_second: figures.requests_per_second,
        p50_us: figures.latency_us.p50,
        p99_us: figures.latency_us.p99,
        cpu_us_per_request: spent.as_secs_f64() * 1e6 / precise(run.answered.max(1)),
    };
    Ok((sample, run.failures))
}

fn row(name: &str, sample: &Sample) -> String {
    let Sample { requests_per_second, p50_us, p99_us, cpu_us_per_request } = sample;
    format!(
        "{name:<16} {requests_per_second:>10.0} requests/s, p50 {p50_us:>8.1} µs, \
         p99 {p99_us:>8.1} µs, CPU {cpu_us_per_request:>6.2} µs/request"
    )
}

fn outcome(name: String, record: Record) -> Outcome {
    let over = |of: fn(&Sample) -> f64| median(record.rounds.iter().map(of).collect());
    let median = Sample {
        requests_per_second: over(|sample| sample.requests_per_second),
        p50_us: over(|sample| sample.p50_us),
        p99_us: over(|sample| sample.p99_us),
        cpu_us_per_request: over(|sample| sample.cpu_us_per_request),
    };
    Outcome { name, median, rounds: record.rounds, errors: record.errors }
}

fn ratios(a: &[Sample], b: &[Sample]) -> Ratios {
    let over = |of: fn(&Sample) -> f64| {
        let ratios: Vec<f64> = a.iter().zip(b).map(|(a, b)| of(a) / of(b)).collect();
        Ratio {
            min: ratios.iter().copied().fold(f64::INFINITY, f64::min),
            max: ratios.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            median: median(ratios),
        }
    };
    Ratios {
        requests_per_second: over(|sample| sample.requests_per_second),
        p50: over(|sample| sample.p50_us),
        p99: over(|sample| sample.p99_us),
        cpu_per_request: over(|sample| sample.cpu_us_per_request),
    }
}

/// The middle value, or the mean of the two middle ones; of none it is no number.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match (values.len().checked_sub(1), values.get(middle)) {
        (Some(last), Some(upper)) => f64::midpoint(values[last / 2], *upper),
        _ => f64::NAN,
    }
}

/// A coin. The standard library draws the keys of its hashers at random, which is all it takes.
fn is_tails() -> bool {
    RandomState::new().build_hasher().finish().is_multiple_of(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample_of(value: f64) -> Sample {
        Sample {
            requests_per_second: value,
            p50_us: value,
            p99_us: value,
            cpu_us_per_request: value,
        }
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "the values are exact")]
    fn medians_are_in_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(Vec::new()).is_nan());
    }

    /// The ratio of the medians would be 2; a round that was slow for both must not count twice.
    #[test]
    fn ratios_are_taken_inside_a_round() {
        let a = [8.0, 20.0, 3.0].map(sample_of);
        let b = [4.0, 5.0, 1.0].map(sample_of);
        let expected = Ratio { median: 3.0, min: 2.0, max: 4.0 };
        assert_eq!(ratios(&a, &b).p50, expected);
        assert_eq!(ratios(&a, &b).cpu_per_request, expected);
    }
}
