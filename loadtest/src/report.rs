//! What is told about a run: for people in lines, for programs in one JSON object.

use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;

use crate::client::Failures;
use crate::closed::Run;
use crate::idle;

/// The figures of a closed loop.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Figures {
    /// Answered while it was measured.
    pub requests: u64,
    pub seconds: f64,
    pub requests_per_second: f64,
    pub latency_us: Latencies,
    pub errors: Failures,
}

/// In microseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Latencies {
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
}

impl Figures {
    pub(crate) fn of(run: &Run) -> Self {
        let seconds = run.measured.as_secs_f64();
        let requests = run.latencies.len();
        let at = |quantile| micros(run.latencies.value_at_quantile(quantile));
        Self {
            requests,
            seconds,
            requests_per_second: if 0.0 < seconds { precise(requests) / seconds } else { 0.0 },
            latency_us: Latencies {
                p50: at(0.5),
                p90: at(0.9),
                p99: at(0.99),
                p999: at(0.999),
                max: micros(run.latencies.max()),
            },
            errors: run.failures,
        }
    }

    pub(crate) fn text(&self) -> String {
        let Latencies { p50, p90, p99, p999, max } = self.latency_us;
        format!(
            "{:.0} requests/s ({} in {:.2} s)\n\
             latency in µs: p50 {p50:.1}, p90 {p90:.1}, p99 {p99:.1}, p99.9 {p999:.1}, \
             max {max:.1}\n\
             errors: {}",
            self.requests_per_second,
            self.requests,
            self.seconds,
            errors_text(&self.errors)
        )
    }
}

pub(crate) fn idle_text(run: &idle::Run) -> String {
    format!(
        "{} established, {} of them closed by the peer\nerrors: {}",
        run.established,
        run.closed,
        errors_text(&run.failures)
    )
}

/// The kinds that happened.
pub(crate) fn errors_text(failures: &Failures) -> String {
    let mut text = String::new();
    for (kind, count) in failures.rows().into_iter().filter(|(_, count)| 0 < *count) {
        let comma = if text.is_empty() { "" } else { ", " };
        write!(text, "{comma}{count} {kind}").expect("a string takes any text");
    }
    if text.is_empty() { "none".to_owned() } else { text }
}

/// # Panics
///
/// Never: no type here has a map, a key or a number that JSON can't say.
pub(crate) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("figures are plain structs")
}

pub(crate) fn micros(nanos: u64) -> f64 {
    Duration::from_nanos(nanos).as_secs_f64() * 1e6
}

/// A count as a float. Exact up to 2^53, which no run reaches.
#[expect(clippy::cast_precision_loss, reason = "counts of requests stay far below 2^53")]
pub(crate) fn precise(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::Histogram;

    #[test]
    fn figures_are_told_in_lines_and_in_json() {
        let mut latencies = Histogram::new_with_bounds(1, 60_000_000_000, 3).unwrap();
        for micros in 1..=1_000 {
            latencies.record(micros * 1_000).unwrap();
        }
        let failures = Failures { status: 2, broken: 1, ..Failures::default() };
        let measured = Duration::from_millis(500);
        let figures = Figures::of(&Run { latencies, failures, answered: 1_200, measured });
        let text = figures.text();
        for part in ["2000 requests/s (1000 in 0.50 s)", "p50 500", "1 broken, 2 status"] {
            assert!(text.contains(part), "{text}");
        }
        let told: serde_json::Value = serde_json::from_str(&json(&figures)).unwrap();
        assert_eq!((&told["requests"], &told["errors"]["status"]), (&1_000.into(), &2.into()));
        assert_eq!(errors_text(&Failures::default()), "none");
    }
}
