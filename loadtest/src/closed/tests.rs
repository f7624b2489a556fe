//! A whole load against a whole stub pod, in one process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::net::TcpListener;

use super::*;
use crate::idle;
use crate::pod::{self, Mode, Pod, Settings};

fn settings(mode: Mode) -> Settings {
    Settings {
        mode,
        answer_bytes: 1_024,
        delay: Duration::from_millis(1),
        invalid_offset: None,
        oversize_bytes: 32 * 1_024 * 1_024,
    }
}

/// A running pod and where it listens.
async fn start(mode: Mode) -> (Arc<Pod>, Target) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let pod = Arc::new(Pod { settings: settings(mode), answered: AtomicU64::new(0) });
    tokio::spawn(pod::serve(listener, Arc::clone(&pod)));
    (pod, Target::read(&url).unwrap())
}

fn plan(target: Target, scenario: Scenario) -> Plan {
    Plan {
        target,
        scenario,
        connections_count: 8,
        warmup: Duration::ZERO,
        measured: Duration::from_mins(1),
        body_bytes: 200,
        requests_max: 1_000,
    }
}

/// Runs some requests and returns what came of them, with how many the pod says it answered.
async fn load(mode: Mode, scenario: Scenario, requests_max: u64) -> (Run, u64) {
    let (pod, target) = start(mode).await;
    let run = run(Plan { requests_max, ..plan(target, scenario) }).await;
    (run, pod.answered.load(Ordering::Relaxed))
}

#[tokio::test]
async fn client_and_pod_count_the_same() {
    for scenario in [Scenario::ModernCall, Scenario::LegacyCall, Scenario::Plain] {
        for mode in [Mode::Ok, Mode::Sse, Mode::Slow] {
            let (run, answered) = load(mode, scenario, 1_000).await;
            assert_eq!(run.failures, Failures::default(), "{mode:?}");
            assert_eq!((run.answered, answered), (1_000, 1_000), "{mode:?}");
            assert_eq!(run.latencies.len(), 1_000, "{mode:?}");
        }
    }
}

/// Each fault is seen, every time, and as what it is.
#[tokio::test]
async fn faults_are_counted_by_kind() {
    let check = async |mode, of_kind: fn(&Failures) -> u64| {
        let (run, answered) = load(mode, Scenario::ModernCall, 100).await;
        assert_eq!((run.answered, answered), (0, 100), "{mode:?}");
        assert_eq!(of_kind(&run.failures), 100, "{mode:?}: {:?}", run.failures);
    };
    check(Mode::WrongId, |failures| failures.wrong_id).await;
    check(Mode::Truncate, |failures| failures.broken).await;
    check(Mode::Reset, |failures| failures.broken).await;
}

#[tokio::test]
async fn an_endless_answer_is_given_up() {
    let (_, target) = start(Mode::Oversize).await;
    let plan = Plan { requests_max: 1, connections_count: 1, ..plan(target, Scenario::Plain) };
    assert_eq!(run(plan).await.failures.malformed, 1);
}

#[tokio::test]
async fn time_ends_a_run() {
    let (pod, target) = start(Mode::Ok).await;
    let plan = Plan {
        warmup: Duration::from_millis(50),
        measured: Duration::from_millis(100),
        requests_max: u64::MAX,
        ..plan(target, Scenario::ModernCall)
    };
    let run = run(plan).await;
    assert_eq!(run.measured, Duration::from_millis(100));
    assert_eq!(run.answered, pod.answered.load(Ordering::Relaxed));
    assert!(!run.latencies.is_empty() && run.latencies.len() < run.answered);
}

#[tokio::test]
async fn nobody_listening_is_a_failure_to_connect() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    let plan = Plan {
        measured: Duration::from_millis(100),
        ..plan(Target::read(&url).unwrap(), Scenario::Plain)
    };
    let run = run(plan).await;
    assert!(8 <= run.failures.connect && run.failures.connect == run.failures.total());
}

#[tokio::test]
async fn idle_connections_stay() {
    let (_, target) = start(Mode::Ok).await;
    let silence = Duration::from_millis(50);
    let plan = idle::Plan { target, connections_count: 300, silence };
    let run = idle::run(plan).await;
    assert_eq!((run.established, run.closed, run.failures.total()), (300, 0, 0));
}
