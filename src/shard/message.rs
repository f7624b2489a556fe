//! All that may cross from one shard to another, and from the control plane to a shard.

use crate::ids::{PodId, SessionKey, ShardId};

/// What one shard asks the owner of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// The session was opened on this pod.
    Register(SessionKey, PodId),
    /// Which pod has the session?
    Find(SessionKey),
    /// The session is over.
    Remove(SessionKey),
}

/// What the owner says. A handler answers from its own table, never awaits and never asks onward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is done.
    Done,
    /// The session is on this pod.
    Found(PodId),
    /// There is no such session.
    Unknown,
}

/// The number of a question, among those of the shard that asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticket(pub u64);

/// A message to a shard.
#[derive(Debug)]
pub enum Message {
    /// A question from another shard.
    Ask {
        /// Who asks.
        from: ShardId,
        /// Which question of theirs.
        ticket: Ticket,
        /// What.
        question: Question,
    },
    /// The answer to a question of this shard.
    Tell {
        /// Which question.
        ticket: Ticket,
        /// What the owner said.
        answer: Answer,
    },
    /// End: accept nothing more, finish what runs (OP-3).
    Drain,
}
