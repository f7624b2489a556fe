//! What the wire tests share: the built proxy as a child, raw clients, and pods that answer by
//! script. Every wait has a deadline.

pub(crate) mod client;
pub(crate) mod peer;
pub(crate) mod played;
pub(crate) mod pod;
pub(crate) mod process;

use std::time::Duration;

/// Longest wait for anything that should come at once.
pub(crate) const SOON: Duration = Duration::from_secs(10);
