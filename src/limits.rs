//! Every bound of the proxy, with its unit. Constants are what code is built around; [`Limits`] is
//! what an operator may set.

use std::time::Duration;

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// Deepest nesting of arrays and objects that can be followed, in levels. One bit each.
pub const JSON_DEPTH_MAX: usize = 512;

/// Longest key or scalar that is handed to a visitor whole, in bytes as written.
pub const JSON_CAPTURE_BYTES_MAX: usize = 8 * KIB;

/// Longest request id, in bytes of its raw token.
pub const REQUEST_ID_BYTES_MAX: usize = 1024;

/// Longest legacy session id, in bytes.
pub const SESSION_ID_BYTES_MAX: usize = 1024;

/// Most requests in one array (batch), and so most ids that its answer is compared with.
pub const BATCH_REQUESTS_MAX: usize = 256;

/// Most fields in one head that [`Limits::fields_max`] may allow.
pub const FIELDS_MAX: usize = 256;

/// Longest line of chunk size and extensions, in bytes.
pub const CHUNK_LINE_BYTES_MAX: usize = 4 * KIB;

/// Longest trailer section, in bytes.
pub const TRAILER_BYTES_MAX: usize = 8 * KIB;

/// First read of a head, in bytes; enough for a usual MCP request with its body.
pub const HEAD_READ_BYTES: usize = 4 * KIB;

/// A read of a body or of an upstream answer, in bytes.
pub const BODY_READ_BYTES: usize = 16 * KIB;

/// A read while a large body flows, in bytes.
pub const LARGE_READ_BYTES: usize = 128 * KIB;

/// Largest answer that is copied behind its head and sent at once; above it the chunks are sent as
/// they were received, vectored. One send of 4 KiB costs less than a vectored one.
pub const COPIED_ANSWER_BYTES_MAX: usize = 8 * KIB;

/// Interim answers (1xx) taken from an upstream for one request.
pub const INTERIM_ANSWERS_MAX: usize = 8;

/// Pods that are tried for one request before it is refused.
pub const PODS_TRIED_MAX: usize = 4;

/// Bytes read and dropped of a body that nobody wants, so that the client reads the answer to it.
pub const LINGER_BYTES_MAX: usize = 1024 * KIB;

/// How long a connection whose body nobody wants is read on.
pub const LINGER: Duration = Duration::from_secs(1);

/// How long a shard that drains waits for handshakes under way once nobody can begin another.
pub const HANDSHAKE_GRACE: Duration = Duration::from_millis(20);

/// How long a client that connected just before or while a shard drains has for its request.
pub const FIRST_REQUEST_GRACE: Duration = Duration::from_secs(1);

/// Messages waiting for one shard.
pub const MESH_QUEUE_MAX: usize = 1024;

/// How often a shard looks for waits that are over.
pub const SWEEP_PERIOD: Duration = Duration::from_millis(100);

/// How long a shard waits for another shard's answer.
pub const MESH_DEADLINE: Duration = Duration::from_secs(1);

/// How long accepting pauses when descriptors run out.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Waiting connections of one listener.
pub const LISTEN_BACKLOG: i32 = 4096;

/// What an operator may set. Every field has a flag of the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest head of a request or an answer, in bytes.
    pub head_bytes_max: usize,
    /// Most fields in a head.
    pub fields_max: usize,
    /// Longest request target, in bytes.
    pub target_bytes_max: usize,
    /// Largest request body, in bytes (RC-8).
    pub request_bytes_max: u64,
    /// Largest checked answer, in bytes (RV-8).
    pub response_bytes_max: u64,
    /// Most bytes of answers held at once by one shard (RV-8).
    pub held_bytes_max: u64,
    /// Largest event of an event stream, in bytes as received (RV-5).
    pub event_bytes_max: usize,
    /// Deepest nesting of a JSON text, in levels.
    pub json_depth_max: usize,
    /// Most client connections of one shard.
    pub connections_max: usize,
    /// Most exchanges at once on one shard.
    pub in_flight_max: usize,
    /// Most exchanges at once from one shard to one pod.
    pub in_flight_per_pod_max: usize,
    /// Most idle upstream connections that one shard keeps to one pod.
    pub idle_upstreams_max: usize,
    /// Most legacy sessions of one shard; the oldest idle one goes first (SG-4).
    pub sessions_max: usize,
    /// Longest idle time of a legacy session (SG-4).
    pub session_idle: Duration,
    /// From the first byte of a head to its end.
    pub head_timeout: Duration,
    /// Between two reads of a request body, and until the client takes what is sent.
    pub body_timeout: Duration,
    /// A client connection between two requests.
    pub client_idle: Duration,
    /// To open a connection to a pod.
    pub connect_timeout: Duration,
    /// From the request to the first byte of the pod's answer.
    pub first_byte_timeout: Duration,
    /// Between two reads of a pod's answer that is not an event stream.
    pub upstream_read_timeout: Duration,
    /// Between two reads of an event stream; longer than the keep-alives of 15 s.
    pub stream_idle: Duration,
    /// An upstream connection that waits for its next request.
    pub upstream_idle: Duration,
    /// How long bodies wait for held bytes to be released before they are refused.
    pub held_wait: Duration,
    /// From the first SIGTERM to the end of the process at the latest (OP-3).
    pub drain_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head_bytes_max: 16 * KIB,
            fields_max: 100,
            target_bytes_max: 8 * KIB,
            request_bytes_max: 8 * MIB as u64,
            response_bytes_max: 100 * MIB as u64,
            held_bytes_max: 512 * MIB as u64,
            event_bytes_max: 4 * MIB,
            json_depth_max: 128,
            connections_max: 20_000,
            in_flight_max: 10_000,
            in_flight_per_pod_max: 2_000,
            idle_upstreams_max: 256,
            sessions_max: 1_000_000,
            session_idle: Duration::from_mins(30),
            head_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            client_idle: Duration::from_secs(75),
            connect_timeout: Duration::from_secs(3),
            first_byte_timeout: Duration::from_mins(2),
            upstream_read_timeout: Duration::from_mins(1),
            stream_idle: Duration::from_mins(5),
            upstream_idle: Duration::from_secs(4),
            held_wait: Duration::from_secs(5),
            drain_timeout: Duration::from_secs(30),
        }
    }
}

const _: () = {
    assert!(JSON_DEPTH_MAX.is_multiple_of(64), "the depth stack is whole u64 words");
    assert!(REQUEST_ID_BYTES_MAX <= JSON_CAPTURE_BYTES_MAX, "an id is captured whole");
    assert!(HEAD_READ_BYTES <= BODY_READ_BYTES, "reads grow");
    assert!(BODY_READ_BYTES <= LARGE_READ_BYTES, "reads grow");
};
