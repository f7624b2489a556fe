//! What one process serves, checked.

use std::net::SocketAddr;

use crate::proxy::options::Options;
use crate::shard::ring::Driver;
use crate::upstream::PodSet;

/// What a process serves.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where it listens.
    pub listen: SocketAddr,
    /// How many shards.
    pub shards_count: u16,
    /// The event loop.
    pub driver: Driver,
    /// Whether another ringgate may hold the port (an upgrade).
    pub port: Port,
    /// The pods.
    pub pods: PodSet,
    /// The pipeline's options.
    pub options: Options,
}

/// Whether the port may be held already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    /// It must be free.
    Own,
    /// A ringgate that is about to drain may hold it.
    Shared,
}
