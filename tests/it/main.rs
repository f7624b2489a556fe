//! Behaviour on the wire: every test drives the built binary over loopback sockets.
#![expect(clippy::disallowed_methods, reason = "tests read the clock to bound their waits")]

mod commands;
mod drain;
mod framing;
mod gate;
mod hostile;
mod idle;
mod limits;
mod peers;
mod sessions;
mod support;
