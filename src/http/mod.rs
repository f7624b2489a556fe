//! HTTP/1.1 framing (RFC 9112), strict: what can be read in two ways is refused.
//!
//! Pure: bytes in, heads and pieces of bodies out. It knows nothing of MCP but the names of its
//! fields. `head` reads heads, `compose` writes them, `body` follows the framing of a body.

#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

pub mod body;
pub mod field;
pub mod media;
pub mod head;
pub mod compose;
