//! Idle connections to one pod, of one shard. Last in, first out: the warmest goes first and the
//! surplus grows old.

use std::time::Instant;

use super::stream::{Reader, Writer};
use crate::limits::BODY_READ_BYTES;

/// A connection to a pod.
pub struct Connection {
    /// The receiving side.
    pub reader: Reader,
    /// The sending side.
    pub writer: Writer,
}

/// The idle connections.
#[derive(Default)]
pub struct Pool {
    idle: Vec<(Connection, Instant)>,
}

impl Pool {
    /// Takes a connection that is neither too old nor closed by the pod (RT-5).
    ///
    /// Each idle connection has its next read in flight. If that read has ended, the pod closed the
    /// connection or sent what nobody asked for; either way it is of no use.
    pub fn take(&mut self, now: Instant) -> Option<Connection> {
        while let Some((mut connection, expiry)) = self.idle.pop() {
            if now < expiry && connection.reader.is_silent(BODY_READ_BYTES) {
                return Some(connection);
            }
        }
        None
    }

    /// Keeps a connection until `expiry` unless there are `idle_max` already.
    pub fn put(&mut self, mut connection: Connection, expiry: Instant, idle_max: usize) {
        if self.idle.len() < idle_max && connection.reader.is_silent(BODY_READ_BYTES) {
            self.idle.push((connection, expiry));
        }
    }

    /// Closes the connections that are too old or closed by the pod.
    pub fn sweep(&mut self, now: Instant) {
        self.idle.retain_mut(|(connection, expiry)| {
            now < *expiry && connection.reader.is_silent(BODY_READ_BYTES)
        });
    }

    /// How many there are.
    #[must_use]
    pub fn idle_count(&self) -> usize {
        self.idle.len()
    }
}
