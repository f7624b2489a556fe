//! Decides whether a message of a pod may reach the client (RV-1, RV-2, RV-3).
//!
//! A [`Checker`] is fed the bytes of one message, cut anywhere, and keeps none of them. It does
//! not know HTTP or event streams; who holds the bytes, and how many, is the caller's business.
//! Pure; any shard.

#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod asked;
mod refusal;
mod envelope;
#[cfg(test)]
mod tests;

pub use asked::{Asked, Awaited};
pub use envelope::{Carrier, Message};
pub use refusal::{Refusal, Why};

use crate::json::Automaton;
use envelope::{Envelope, Reader};

/// Checks one message. Feed it with [`push`](Self::push), then [`finish`](Self::finish).
///
/// The [`Awaited`] of the exchange must be the same in each call, and unchanged between them.
/// The verdict and its offset do not depend on the cuts, and the first refusal is final.
#[derive(Clone, Debug)]
pub struct Checker {
    automaton: Automaton,
    envelope: Envelope,
    refused: Option<Refusal>,
}

impl Checker {
    /// A checker for a message nested at most `depth_max` levels deep (at most
    /// [`JSON_DEPTH_MAX`](crate::limits::JSON_DEPTH_MAX)).
    #[must_use]
    pub fn new(carrier: Carrier, depth_max: usize) -> Self {
        Self {
            automaton: Automaton::new(depth_max),
            envelope: Envelope::new(carrier),
            refused: None,
        }
    }

    /// Takes the next bytes of the message.
    ///
    /// # Errors
    ///
    /// The first refusal, again in every later call.
    pub fn push(&mut self, chunk: &[u8], awaited: &Awaited) -> Result<(), Refusal> {
        if let Some(refusal) = self.refused {
            return Err(refusal);
        }
        let mut reader = Reader { envelope: &mut self.envelope, awaited };
        self.automaton
            .push(chunk, &mut reader)
            .map_err(|failure| *self.refused.insert(failure.into()))
    }

    /// Ends the message, and strikes the requests it answers off `awaited` if it is valid.
    ///
    /// # Errors
    ///
    /// The first refusal; [`Why::JsonTruncated`] when the message is not whole.
    pub fn finish(mut self, awaited: &mut Awaited) -> Result<Message, Refusal> {
        if let Some(refusal) = self.refused {
            return Err(refusal);
        }
        let mut reader = Reader { envelope: &mut self.envelope, awaited };
        self.automaton.finish(&mut reader)?;
        awaited.settle(self.envelope.claimed());
        // An array or an object has been read whole, so there is a message.
        self.envelope.message().ok_or(Refusal { why: Why::NotObject, offset: 0 })
    }
}
