//! The vocabulary of the protocol: faults, eras, requests, answers. Pure; any shard.

pub mod fault;
#[cfg(test)]
mod hostile;
pub mod response;
pub mod stream;
