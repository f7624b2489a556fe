//! A resumable automaton for one JSON text (RFC 8259), fed in chunks cut anywhere.
//!
//! It keeps O(depth) bits of state and no input, except the text of a reported token that a cut
//! went through (at most [`JSON_CAPTURE_BYTES_MAX`](crate::limits::JSON_CAPTURE_BYTES_MAX)). It
//! knows nothing of JSON-RPC: a [`Visitor`] is told the members of the containers that it asked to
//! see. Pure; any shard.

#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

pub mod event;
pub mod text;
pub mod scan;
mod number;
mod automaton;

pub use automaton::Automaton;
pub use event::{Container, Failure, Members, Scalar, SyntaxError, Text, Visitor};
pub use text::unescape;
