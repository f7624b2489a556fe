//! The revisions of MCP and the two eras they fall into.

/// How a client and a server keep what they know of each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Era {
    /// By a handshake and an optional session (to 2025-11-25).
    Legacy,
    /// By what each request carries (from 2026-07-28).
    Modern,
}

/// The stateless revision.
pub const MODERN: &str = "2026-07-28";

/// The revisions of the session-based era.
pub const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// What an `MCP-Protocol-Version` field, or the same in `_meta`, names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// Nothing.
    Nothing,
    /// A revision of the session-based era.
    Legacy,
    /// The stateless revision.
    Modern,
    /// Something else: a revision to come, or none.
    Unknown,
}

impl Named {
    /// What a value names. An empty one names nothing.
    #[must_use]
    pub fn of(value: Option<&[u8]>) -> Self {
        match value {
            None | Some([]) => Self::Nothing,
            Some(value) if value == MODERN.as_bytes() => Self::Modern,
            Some(value) if LEGACY.iter().any(|revision| revision.as_bytes() == value) => {
                Self::Legacy
            }
            Some(_) => Self::Unknown,
        }
    }
}
