//! The threads of the shards: pinned, each with its own listener, event loop and state.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::mpsc;
use std::thread;

use tokio::sync::oneshot;

use super::plan::{Plan, Port};
use crate::ids::ShardId;
use crate::net::listener::{Bound, Listener, bind, probe};
use crate::proxy::state::State;
use crate::server::{AcceptEnd, accept, sweep};
use crate::shard::clock::now;
use crate::shard::mesh::{Inbox, Mailbox, Mesh, channel};
use crate::shard::message::Message;
use crate::shard::ring::{Driver, Ring, block_on, build};
use crate::telemetry::Snapshot;

/// Why the shards did not start.
#[derive(Debug, thiserror::Error)]
pub enum ShardError {
    /// The address can't be bound.
    #[error("can't listen on {address}: {reason}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why, and what to do.
        reason: String,
    },
    /// A thread, a socket pair or an event loop can't be made.
    #[error("a shard can't start: {0}")]
    Start(#[from] io::Error),
    /// The event loop that was asked for is refused.
    #[error("--driver {driver:?}: the kernel refuses it ({error}); `ringgate doctor` tells more")]
    Driver {
        /// What was asked for.
        driver: Driver,
        /// What the kernel said.
        error: io::Error,
    },
    /// A shard ended while it started.
    #[error("a shard ended while it started")]
    Died,
}

/// All shards of the process.
pub struct Fleet {
    address: SocketAddr,
    mailboxes: Vec<Mailbox>,
    ends: Vec<oneshot::Receiver<Snapshot>>,
    sum: Snapshot,
}

/// What one thread needs.
struct Berth {
    id: ShardId,
    bound: Bound,
    inbox: Inbox,
    mailboxes: Vec<Mailbox>,
    plan: Plan,
}

impl Fleet {
    /// Starts the shards; when it returns every one listens.
    ///
    /// # Errors
    ///
    /// See [`ShardError`].
    pub fn start(plan: &Plan) -> Result<Self, ShardError> {
        let listeners = bind_all(plan)?;
        let address = listeners.first().ok_or(ShardError::Died)?.address()?;
        let channels: Vec<(Mailbox, Inbox)> =
            listeners.iter().map(|_| channel()).collect::<io::Result<_>>()?;
        let (mailboxes, inboxes): (Vec<_>, Vec<_>) = channels.into_iter().unzip();
        let cores = core_affinity::get_core_ids().unwrap_or_default();
        let mut ends = Vec::new();
        let (ready, started) = mpsc::channel();
        for (index, (bound, inbox)) in listeners.into_iter().zip(inboxes).enumerate() {
            let id = ShardId(u16::try_from(index).unwrap_or(u16::MAX));
            let mailboxes = mailboxes.clone();
            let berth = Berth { id, bound, inbox, mailboxes, plan: plan.clone() };
            let core = cores.get(index % cores.len().max(1)).copied();
            let (end, ended) = oneshot::channel();
            let ready = ready.clone();
            thread::Builder::new().name(format!("shard-{index}")).spawn(move || {
                if let Some(core) = core
                    && !core_affinity::set_for_current(core)
                {
                    tracing::warn!(core = core.id, "a shard can't be pinned to its core");
                }
                let snapshot = run(berth, &ready);
                // Nobody waits for the end of a shard when the process ends at once.
                end.send(snapshot).unwrap_or_default();
            })?;
            ends.push(ended);
        }
        drop(ready);
        for _ in 0..ends.len() {
            started.recv().map_err(|_| ShardError::Died)??;
        }
        Ok(Self { address, mailboxes, ends, sum: Snapshot::default() })
    }

    /// Where the shards listen.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends a message to every shard.
    pub fn tell(&self, message: impl Fn() -> Message) {
        for mailbox in &self.mailboxes {
            if let Err(error) = mailbox.send(message()) {
                tracing::error!(%error, "a shard takes no messages");
            }
        }
    }

    /// Waits for the end of every shard and returns what they counted.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn ended(&mut self) -> Snapshot {
        while let Some(end) = self.ends.last_mut() {
            if let Ok(snapshot) = end.await {
                self.sum.merge(&snapshot);
            } else {
                tracing::error!("a shard died");
            }
            self.ends.pop();
        }
        self.sum.clone()
    }
}

/// One socket a shard, all on the port of the first.
fn bind_all(plan: &Plan) -> Result<Vec<Bound>, ShardError> {
    let mut address = plan.listen;
    let refused =
        |address, error: io::Error| ShardError::Listen { address, reason: advice(&error) };
    if plan.port == Port::Own {
        probe(address).map_err(|error| refused(address, error))?;
    }
    let mut listeners = Vec::new();
    for _ in 0..plan.shards_count.max(1) {
        let bound = bind(address).map_err(|error| refused(address, error))?;
        address = bound.address()?;
        listeners.push(bound);
    }
    Ok(listeners)
}

fn advice(error: &io::Error) -> String {
    let kind = error.kind();
    if kind == io::ErrorKind::AddrInUse {
        "the port is in use (--share-port starts beside a ringgate that will drain)".to_owned()
    } else if kind == io::ErrorKind::AddrNotAvailable {
        "the address is not of this machine".to_owned()
    } else if kind == io::ErrorKind::PermissionDenied {
        "no permission; ports below 1024 need CAP_NET_BIND_SERVICE".to_owned()
    } else {
        error.to_string()
    }
}

/// The life of one shard.
fn run(berth: Berth, ready: &mpsc::Sender<Result<(), ShardError>>) -> Snapshot {
    let driver = berth.plan.driver;
    let ring = match build(driver) {
        Ok(ring) => ring,
        Err(error) => {
            // The main thread waits for this message.
            ready.send(Err(ShardError::Driver { driver, error })).unwrap_or_default();
            return Snapshot::default();
        }
    };
    if let (Ring::Epoll(_, Some(refusal)), ShardId(0)) = (&ring, berth.id) {
        tracing::warn!(
            %refusal,
            "io_uring is refused here; running on epoll (`ringgate doctor` tells more)"
        );
    }
    block_on(ring, live(berth, ready))
}

async fn live(berth: Berth, ready: &mpsc::Sender<Result<(), ShardError>>) -> Snapshot {
    let Berth { id, bound, inbox, mailboxes, plan } = berth;
    let listener = match Listener::listen(bound) {
        Ok(listener) => listener,
        Err(error) => {
            ready.send(Err(error.into())).unwrap_or_default();
            return Snapshot::default();
        }
    };
    let drain_timeout = plan.options.limits.drain_timeout;
    let mesh = Mesh::new(id, mailboxes);
    let state = Rc::new(State::new(plan.options, plan.pods, mesh, now()));
    state.sweep(now(), crate::shard::clock::wall());
    let end = Rc::new(AcceptEnd::default());
    monoio::spawn(sweep(Rc::clone(&state), Rc::clone(&end)));
    let (inbox_state, inbox_end) = (Rc::clone(&state), Rc::clone(&end));
    monoio::spawn(async move {
        let handled = inbox
            .run(|message| {
                let is_drain = matches!(message, Message::Drain);
                inbox_state.handle(message);
                if is_drain {
                    inbox_end.interrupt();
                }
            })
            .await;
        if let Err(error) = handled {
            tracing::error!(%error, "a shard hears no messages any more");
        }
    });
    ready.send(Ok(())).unwrap_or_default();
    accept(Rc::clone(&state), listener, end).await;
    drain(&state, drain_timeout).await;
    state.counters.snapshot()
}

/// Waits for what still runs; at the time-out it is told to end, and after another second cut.
async fn drain(state: &State, timeout: std::time::Duration) {
    let wait = state.waits.register();
    let deadline = state.clock.deadline(timeout);
    if wait.complete(deadline, state.connections.fewer_than(1)).await.is_ok() {
        return;
    }
    let left = state.connections.inside_count();
    tracing::warn!(connections = left, "the drain time-out cuts what still runs");
    state.waits.interrupt_all();
    let last = state.clock.deadline(crate::limits::LINGER);
    let ended = wait.complete(last, state.connections.fewer_than(1)).await;
    tracing::debug!(is_clean = ended.is_ok(), "drained");
}
