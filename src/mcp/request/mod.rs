//! What a client's body asks for: read in one pass (RC-1), then placed in its era (RC-2).

#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod read;
mod classify;
#[cfg(test)]
mod tests;

pub use classify::{Call, CallKind, Ids, classify};
pub use read::{Batch, Kind, Message, Meta, Refusal, Single, read};
