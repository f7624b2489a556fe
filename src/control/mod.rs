//! The control plane: starts the shards, waits for signals and ends them. It runs on the main
//! thread; nothing on a shard ever waits for it.

pub mod plan;
pub mod shards;

use std::io;
use std::net::SocketAddr;

use tokio::signal::unix::{SignalKind, signal};

use crate::shard::message::Message;
use crate::telemetry::Snapshot;
use plan::Plan;
use shards::{Fleet, ShardError};

/// Why serving ended without being asked to.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The shards could not start.
    #[error(transparent)]
    Start(#[from] ShardError),
    /// Signals can't be waited for.
    #[error("signals can't be waited for: {0}")]
    Signals(io::Error),
}

/// Serves until SIGTERM or SIGINT, then drains: new connections are refused, answers say
/// `Connection: close`, and what still runs at the drain time-out is cut. A second signal ends the
/// process at once (OP-3).
///
/// `started` is called with the address once every shard listens.
///
/// # Errors
///
/// See [`ServeError`].
pub fn serve(plan: &Plan, started: impl FnOnce(SocketAddr)) -> Result<Snapshot, ServeError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(ServeError::Signals)?;
    runtime.block_on(async {
        // Before the shards: a signal that comes while they start must not kill the process.
        let mut terminate = signal(SignalKind::terminate()).map_err(ServeError::Signals)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(ServeError::Signals)?;
        let mut fleet = Fleet::start(plan)?;
        started(fleet.address());
        let mut is_draining = false;
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
                snapshot = fleet.ended() => return Ok(snapshot),
            }
            if is_draining {
                tracing::warn!("a second signal: ending at once");
                return Ok(Snapshot::default());
            }
            is_draining = true;
            tracing::info!("draining");
            fleet.tell(|| Message::Drain);
        }
    })
}
