//! A closed loop: each connection sends its next request as soon as the last one is answered. It
//! shows what a proxy can do at most; a stall slows the load down with it, so latencies at a set
//! rate are not what this measures.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tokio::task::{JoinSet, LocalSet};
use tokio::time::{sleep, timeout_at};

use crate::client::{Connection, Failure, Failures};
use crate::clock::now;
use crate::scenario::{ID_FIRST, Scenario, Template};
use crate::target::Target;
use crate::wire::Persistence;

/// How long answers may still come after the end of the run.
const GRACE: Duration = Duration::from_secs(2);
/// Before a connection that failed is opened again, so that a dead peer is not asked in a hot loop.
const RETRY_PAUSE: Duration = Duration::from_millis(20);
const LATENCY_NS_MAX: u64 = 60_000_000_000;

/// What to run.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub target: Target,
    pub scenario: Scenario,
    pub connections_count: usize,
    /// Not part of the figures.
    pub warmup: Duration,
    pub measured: Duration,
    pub body_bytes: usize,
    /// Over all connections, the warm-up included.
    pub requests_max: u64,
}

/// What came of it.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    /// Of the answers that came while it was measured, in nanoseconds.
    pub latencies: Histogram<u64>,
    /// Over the whole run.
    pub failures: Failures,
    /// Good answers over the whole run, the warm-up included.
    pub answered: u64,
    pub measured: Duration,
}

/// What all connections share.
struct Load {
    plan: Plan,
    /// When the warm-up is over.
    from: Instant,
    until: Instant,
    tally: RefCell<Tally>,
}

struct Tally {
    latencies: Histogram<u64>,
    failures: Failures,
    started: u64,
    answered: u64,
}

/// Runs a plan on this thread.
///
/// Not cancel safe: dropping the future loses the figures.
pub(crate) async fn run(plan: Plan) -> Run {
    let latencies =
        Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3).expect("the bounds are in order");
    let tally = Tally { latencies, failures: Failures::default(), started: 0, answered: 0 };
    let from = now() + plan.warmup;
    let until = from + plan.measured;
    let load = Rc::new(Load { plan, from, until, tally: RefCell::new(tally) });
    let ended = LocalSet::new().run_until(converse_all(&load)).await;
    let tally = load.tally.borrow();
    Run {
        latencies: tally.latencies.clone(),
        failures: tally.failures,
        answered: tally.answered,
        measured: ended.min(until).saturating_duration_since(from),
    }
}

/// Runs all connections and returns when the last one was done.
async fn converse_all(load: &Rc<Load>) -> Instant {
    let mut connections = JoinSet::new();
    for _ in 0..load.plan.connections_count {
        connections.spawn_local(converse(Rc::clone(load)));
    }
    let deadline = (load.until + GRACE).into();
    while let Ok(Some(_)) = timeout_at(deadline, connections.join_next()).await {}
    for _ in 0..connections.len() {
        load.tally.borrow_mut().failures.count(Failure::Unanswered);
    }
    connections.abort_all();
    now()
}

/// One place in the loop: a connection, and the ones that follow it if it ends.
async fn converse(load: Rc<Load>) {
    let Plan { target, scenario, body_bytes, .. } = &load.plan;
    let mut template = Template::new(target, *scenario, *body_bytes);
    let mut id = ID_FIRST;
    while now() < load.until && !load.is_spent() {
        let failed = match Connection::open(target).await {
            Ok(connection) => exchange_all(&load, connection, &mut template, &mut id).await.err(),
            Err(failure) => Some(failure),
        };
        if let Some(failure) = failed {
            load.tally.borrow_mut().failures.count(failure);
            sleep(RETRY_PAUSE).await;
        }
    }
}

/// Uses a connection until it ends or the run does.
async fn exchange_all(
    load: &Load,
    mut connection: Connection,
    template: &mut Template,
    id: &mut u64,
) -> Result<(), Failure> {
    let mut started = now();
    while started < load.until && !load.is_spent() {
        load.tally.borrow_mut().started += 1;
        let persistence = connection.exchange(template.with_id(*id), *id).await?;
        *id += 1;
        let ended = now();
        load.note(started, ended);
        if persistence == Persistence::Closed {
            return Ok(());
        }
        started = ended;
    }
    Ok(())
}

impl Load {
    fn is_spent(&self) -> bool {
        self.plan.requests_max <= self.tally.borrow().started
    }

    fn note(&self, started: Instant, ended: Instant) {
        let mut tally = self.tally.borrow_mut();
        tally.answered += 1;
        if self.from <= ended && ended < self.until {
            let latency = ended.saturating_duration_since(started).as_nanos();
            tally.latencies.saturating_record(u64::try_from(latency).unwrap_or(LATENCY_NS_MAX));
        }
    }
}

#[cfg(test)]
mod tests;
