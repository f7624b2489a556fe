//! The vocabulary of the protocol: faults, eras, requests, answers. Pure; any shard.

pub mod fault;
pub mod revision;
mod member;
pub mod headers;
pub mod request;
pub mod response;
pub mod stream;
#[cfg(test)]
mod hostile;
