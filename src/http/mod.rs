//! HTTP/1.1 framing (RFC 9112), strict: what can be read in two ways is refused.
//!
//! Pure: bytes in, heads and pieces of bodies out. It knows nothing of MCP but the names of its
//! fields. `head` reads heads, `compose` writes them, `body` follows the framing of a body.

#![deny(clippy::indexing_slicing)]

pub mod body;
pub mod compose;
pub mod field;
pub mod head;
