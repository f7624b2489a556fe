//! A Model Context Protocol proxy that lets through only what is well-formed, allowed and asked
//! for. The map of the tree is `docs/architecture.md`.

pub mod limits;
pub mod ids;
pub mod json;
pub mod http;
pub mod sse;
pub mod mcp;
pub mod session;
pub mod upstream;
pub mod telemetry;
pub mod shard;
pub mod net;
pub mod proxy;
pub mod server;
pub mod control;
pub mod cli;
