//! Sockets of one shard: streams whose reads are never lost, the listener, and the pools of
//! connections to pods. It knows nothing of what travels on them.

pub mod stream;
pub mod pool;
pub mod listener;
