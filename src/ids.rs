//! The names of things. Pure; any shard.

use smallvec::SmallVec;

/// One shard, by its position among the shards of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ShardId(pub u16);

/// One pod, by its position in the pod set of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PodId(pub u16);

/// The id of a JSON-RPC request as its raw token: a string with its quotes and escapes, or a
/// number as it was written. Echoed, never normalised (FA-1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestId(SmallVec<[u8; 32]>);

impl RequestId {
    /// The id of a token that the JSON automaton has accepted as a string (with quotes) or number.
    #[must_use]
    pub fn from_token(token: &[u8]) -> Self {
        Self(SmallVec::from_slice(token))
    }

    /// The token.
    #[must_use]
    pub fn token(&self) -> &[u8] {
        &self.0
    }
}

/// A legacy session id as clients see it: visible ASCII (MCP 2025-11-25, Session Management).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SessionKey(Box<[u8]>);

impl SessionKey {
    /// The key of a field value, or `None` unless it is 1 to
    /// [`SESSION_ID_BYTES_MAX`](crate::limits::SESSION_ID_BYTES_MAX) bytes of visible ASCII.
    #[must_use]
    pub fn new(value: &[u8]) -> Option<Self> {
        let is_visible = value.iter().all(u8::is_ascii_graphic);
        let is_bounded = (1..=crate::limits::SESSION_ID_BYTES_MAX).contains(&value.len());
        (is_visible && is_bounded).then(|| Self(value.into()))
    }

    /// The id's bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}
