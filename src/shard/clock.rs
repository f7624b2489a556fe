//! The shard's clock: read once a sweep, so that a deadline costs no system call.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::limits::SWEEP_PERIOD;

/// Reads the monotonic clock.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the one place where a shard reads the clock")]
pub fn now() -> Instant {
    Instant::now()
}

/// The time of the last sweep. One a shard.
#[derive(Debug)]
pub struct Clock {
    swept: Cell<Instant>,
}

impl Clock {
    /// A clock that was read at `now`.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        Self { swept: Cell::new(now) }
    }

    /// Notes the time of a sweep.
    pub fn advance(&self, now: Instant) {
        self.swept.set(now);
    }

    /// The time, at most one sweep period old.
    #[must_use]
    pub fn coarse(&self) -> Instant {
        self.swept.get()
    }

    /// A time at least `duration` from now and at most two sweep periods more.
    #[must_use]
    pub fn deadline(&self, duration: Duration) -> Instant {
        self.swept.get() + duration + SWEEP_PERIOD
    }
}

/// Reads the wall clock, for what peers are told of the date.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the one place where a shard reads the clock")]
pub fn wall() -> std::time::SystemTime {
    std::time::SystemTime::now()
}
