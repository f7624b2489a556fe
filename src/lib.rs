//! A Model Context Protocol proxy that lets through only what is well-formed, allowed and asked
//! for. The map of the tree is `docs/architecture.md`.

pub mod cli;
pub mod http;
pub mod ids;
pub mod json;
pub mod limits;
pub mod mcp;
pub mod net;
pub mod shard;
pub mod sse;
