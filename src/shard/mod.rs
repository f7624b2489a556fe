//! One shard: a thread pinned to a core, its event loop, its clock, its deadlines and its end.
//! It knows nothing of HTTP or MCP: what runs on it is given as a future.

pub mod clock;
pub mod drain;
pub mod message;
pub mod wait;
pub mod mesh;
pub mod ring;
