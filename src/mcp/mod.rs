//! The vocabulary of the protocol: faults, eras, requests, answers. Pure; any shard.

pub mod fault;
pub mod response;
