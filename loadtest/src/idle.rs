//! Many connections that do almost nothing: one request each, then silence. It shows what a kept
//! connection costs the proxy, and whether it keeps them.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use serde::Serialize;
use tokio::sync::Semaphore;
use tokio::task::{JoinSet, LocalSet};
use tokio::time::{Instant, timeout, timeout_at};

use crate::client::{Connection, Failure, Failures};
use crate::clock::now;
use crate::scenario::{ID_FIRST, Scenario, Template};
use crate::target::Target;
use crate::wire::Persistence;

/// How many connect at a time: fewer than the usual backlog of a listener.
const OPENING_MAX: usize = 256;
const OPENING_TIMEOUT: Duration = Duration::from_secs(10);

/// What to run. The silence lasts from the moment all connections are there.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub target: Target,
    pub connections_count: usize,
    pub silence: Duration,
}

/// What became of the connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Run {
    /// Answered their one request and said that they stay open.
    pub established: u64,
    /// Of those, how many the peer closed before the end.
    pub closed: u64,
    pub failures: Failures,
}

/// Opens the connections and waits. Not cancel safe: dropping the future loses the counts.
pub(crate) async fn run(plan: Plan) -> Run {
    let tally = Rc::new(RefCell::new(Run::default()));
    LocalSet::new().run_until(hold_all(Rc::new(plan), &tally)).await;
    tally.take()
}

async fn hold_all(plan: Rc<Plan>, tally: &Rc<RefCell<Run>>) {
    let opening = Rc::new(Semaphore::new(OPENING_MAX));
    let mut openings = JoinSet::new();
    for _ in 0..plan.connections_count {
        openings.spawn_local(open(Rc::clone(&plan), Rc::clone(&opening)));
    }
    let mut held = JoinSet::new();
    while let Some(opened) = openings.join_next().await {
        match opened {
            Ok(Ok(mut connection)) => {
                tally.borrow_mut().established += 1;
                let tally = Rc::clone(tally);
                held.spawn_local(async move {
                    connection.until_closed().await;
                    tally.borrow_mut().closed += 1;
                });
            }
            Ok(Err(failure)) => tally.borrow_mut().failures.count(failure),
            Err(_) => tally.borrow_mut().failures.count(Failure::Connect),
        }
    }
    let end = Instant::from_std(now() + plan.silence);
    while let Ok(Some(_)) = timeout_at(end, held.join_next()).await {}
}

/// Opens one connection and makes its request, when it is its turn.
async fn open(plan: Rc<Plan>, turns: Rc<Semaphore>) -> Result<Connection, Failure> {
    let turn = turns.acquire().await;
    let opened = timeout(OPENING_TIMEOUT, ask_once(&plan.target)).await;
    drop(turn);
    opened.unwrap_or(Err(Failure::Unanswered))
}

async fn ask_once(target: &Target) -> Result<Connection, Failure> {
    let mut connection = Connection::open(target).await?;
    let mut template = Template::new(target, Scenario::ModernCall, 0);
    match connection.exchange(template.with_id(ID_FIRST), ID_FIRST).await? {
        Persistence::Kept => Ok(connection),
        Persistence::Closed => Err(Failure::Broken),
    }
}
