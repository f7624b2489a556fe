//! Behaviour on the wire: every test drives the built binary over loopback sockets.
#![expect(clippy::disallowed_methods, reason = "tests read the clock to bound their waits")]

mod framing;
mod hostile;
mod peers;
mod support;
