//! Behaviour on the wire: every test drives the built binary over loopback sockets.
#![expect(clippy::disallowed_methods, reason = "tests read the clock to bound their waits")]

mod answers;
mod calls;
mod commands;
mod drain;
mod ends;
mod faults;
mod framing;
mod gate;
mod held;
mod hostile;
mod idle;
mod limits;
mod noise;
mod peers;
mod sessions;
mod streams;
mod support;
