//! What was asked, and what of it has been answered (RV-3). Pure; any shard.

use crate::ids::RequestId;
use crate::json::text::is_same_text;
use crate::json::{Scalar, Text};
use crate::limits::{BATCH_REQUESTS_MAX, JSON_CAPTURE_BYTES_MAX, REQUEST_ID_BYTES_MAX};

/// What may be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// One request.
    One(RequestId),
    /// The requests of an array, at most [`BATCH_REQUESTS_MAX`]; none if it held none.
    Many(Vec<RequestId>),
    /// Nothing is known of what was asked, so ids are not compared: streams of GET, offline checks.
    Anything,
}

/// The requests of one exchange, and which of them have been answered.
///
/// Lives as long as the exchange, over all messages of its stream. A [`Checker`](super::Checker)
/// reads it while a message comes in and strikes ids off in `finish` only, so that a message which
/// turns out not to count leaves no trace.
#[derive(Clone, Debug)]
pub struct Awaited {
    asked: Asked,
    answered: IdSet,
}

/// Some of the requests of an exchange, by their position: one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct IdSet([u64; BATCH_REQUESTS_MAX / 64]);

/// What the id of a message is to the exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// The request at this position waits for its answer.
    Waits(usize),
    /// Its request has been answered.
    Answered,
    /// No request has it.
    Foreign,
}

const _: () = assert!(
    6 * REQUEST_ID_BYTES_MAX <= JSON_CAPTURE_BYTES_MAX,
    "an id that the automaton does not hand over whole equals no request's, even with each byte \
     of it written as an escape"
);

impl Awaited {
    /// Nothing answered yet. Ids of [`Asked::Many`] beyond [`BATCH_REQUESTS_MAX`] can't be
    /// answered; an array so long is refused before it is forwarded.
    #[must_use]
    pub fn new(asked: Asked) -> Self {
        Self { asked, answered: IdSet::default() }
    }

    /// What was asked.
    #[must_use]
    pub fn asked(&self) -> &Asked {
        &self.asked
    }

    /// Whether no request waits for its answer: true from the start when none was asked by id.
    #[must_use]
    pub fn is_answered(&self) -> bool {
        self.unanswered().next().is_none()
    }

    /// The requests that wait for their answers, in the order they were asked.
    pub fn unanswered(&self) -> impl Iterator<Item = &RequestId> {
        self.ids()
            .iter()
            .enumerate()
            .filter(|&(index, _)| !self.answered.contains(index))
            .map(|(_, id)| id)
    }

    /// What an id, a string or a number, is to the exchange, `claimed` counted as answered.
    pub(super) fn standing(&self, scalar: Scalar, text: Text<'_>, claimed: &IdSet) -> Standing {
        let mut standing = Standing::Foreign;
        for (index, id) in self.ids().iter().enumerate().take(BATCH_REQUESTS_MAX) {
            if is_same_id(id.token(), scalar, text) {
                if !self.answered.contains(index) && !claimed.contains(index) {
                    return Standing::Waits(index);
                }
                standing = Standing::Answered;
            }
        }
        standing
    }

    /// Strikes off the requests that a valid message answered.
    pub(super) fn settle(&mut self, claimed: &IdSet) {
        debug_assert!(self.answered.is_disjoint(claimed), "a request was answered twice");
        for (word, more) in self.answered.0.iter_mut().zip(claimed.0) {
            *word |= more;
        }
    }

    fn ids(&self) -> &[RequestId] {
        match &self.asked {
            Asked::One(id) => std::slice::from_ref(id),
            Asked::Many(ids) => ids,
            Asked::Anything => &[],
        }
    }
}

impl IdSet {
    pub(super) fn insert(&mut self, index: usize) {
        if let Some(word) = self.0.get_mut(index / 64) {
            *word |= 1 << (index % 64);
        }
    }

    fn contains(&self, index: usize) -> bool {
        let word = self.0.get(index / 64).copied().unwrap_or_default();
        (word >> (index % 64)) & 1 == 1
    }

    fn is_disjoint(&self, other: &Self) -> bool {
        self.0.iter().zip(other.0).all(|(one, two)| one & two == 0)
    }
}

/// Whether an answer's id is the request's: strings by what they stand for, integers exactly and
/// at any length, every other number only as it was written. A deployed client waits for ever when
/// 1 is answered as 1.0.
fn is_same_id(token: &[u8], scalar: Scalar, text: Text<'_>) -> bool {
    let Text::Whole(text) = text else {
        return false;
    };
    match (token, scalar) {
        ([b'"', asked @ .., b'"'], Scalar::String) => is_same_text(asked, text),
        ([b'"', ..], _) | (_, Scalar::String) => false,
        _ => token == text || is_zero(token) && is_zero(text),
    }
}

/// Zero is the only integer that the grammar writes in two ways.
fn is_zero(integer: &[u8]) -> bool {
    matches!(integer, b"0" | b"-0")
}
