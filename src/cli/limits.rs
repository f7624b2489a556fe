//! The flags of every limit (LM-1). Names and defaults are those of [`Limits`];
//! `docs/configuration.md` lists them.

use std::time::Duration;

use bytesize::ByteSize;
use clap::builder::{TypedValueParser, ValueParser};

use crate::limits::{FIELDS_MAX, JSON_DEPTH_MAX, Limits};

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const GIB: u64 = 1024 * MIB;
const TIB: u64 = 1024 * GIB;

/// One large read must fit the budget of held bytes.
const LEAST_HELD: u64 = 256 * KIB;

/// The limits as flags.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Limits")]
pub struct LimitArgs {
    /// Longest head of a request or an answer.
    #[arg(long, value_name = "BYTES", default_value = "16KiB", value_parser = bytes(KIB, MIB))]
    pub max_head_bytes: u64,
    /// Most fields in a head.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = count(1, FIELDS_MAX))]
    pub max_fields: usize,
    /// Longest request target.
    #[arg(long, value_name = "BYTES", default_value = "8KiB", value_parser = bytes(64, MIB))]
    pub max_target_bytes: u64,
    /// Largest request body.
    #[arg(long, value_name = "BYTES", default_value = "8MiB", value_parser = bytes(1, TIB))]
    pub max_request_bytes: u64,
    /// Largest checked answer.
    #[arg(long, value_name = "BYTES", default_value = "100MiB", value_parser = bytes(1, TIB))]
    pub max_response_bytes: u64,
    /// Most bytes of unchecked bodies held by one shard.
    #[arg(long, value_name = "BYTES", default_value = "512MiB")]
    #[arg(value_parser = bytes(LEAST_HELD, TIB))]
    pub held_bytes_max: u64,
    /// Largest event of an event stream.
    #[arg(long, value_name = "BYTES", default_value = "4MiB", value_parser = bytes(64, GIB))]
    pub max_event_bytes: u64,
    /// Deepest nesting of a JSON text.
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = count(4, JSON_DEPTH_MAX))]
    pub max_json_depth: usize,
    /// Most client connections of one shard.
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = count(1, 10_000_000))]
    pub max_connections: usize,
    /// Most exchanges at once on one shard.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = count(1, 10_000_000))]
    pub max_in_flight: usize,
    /// Most exchanges at once from one shard to one pod.
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = count(1, 10_000_000))]
    pub max_in_flight_per_pod: usize,
    /// Most idle upstream connections of one shard to one pod.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = count(0, 10_000_000))]
    pub max_idle_upstreams: usize,
    /// Most legacy sessions of one shard.
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = count(1, 10_000_000))]
    pub max_sessions: usize,
    /// Longest idle time of a legacy session.
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = duration())]
    pub session_idle: Duration,
    /// From the first byte of a head to its end.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration())]
    pub head_timeout: Duration,
    /// Between two reads of a request body, and for a client to take what is sent.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration())]
    pub body_timeout: Duration,
    /// A client connection between two requests.
    #[arg(long, value_name = "TIME", default_value = "75s", value_parser = duration())]
    pub client_idle: Duration,
    /// To open a connection to a pod.
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = duration())]
    pub connect_timeout: Duration,
    /// From the request to the head of the pod's answer.
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = duration())]
    pub first_byte_timeout: Duration,
    /// Between two reads of a pod's answer that is not an event stream.
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = duration())]
    pub upstream_read_timeout: Duration,
    /// Between two reads of an event stream; keep it above the pods' keep-alives.
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = duration())]
    pub stream_idle: Duration,
    /// An upstream connection between two requests.
    #[arg(long, value_name = "TIME", default_value = "4s", value_parser = duration())]
    pub upstream_idle: Duration,
    /// How long a body waits for held bytes to be released.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration())]
    pub held_wait: Duration,
    /// From SIGTERM to the end of what still runs.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration())]
    pub drain_timeout: Duration,
}

impl LimitArgs {
    /// The limits that the flags set.
    #[must_use]
    pub fn limits(&self) -> Limits {
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        Limits {
            head_bytes_max: size(self.max_head_bytes),
            fields_max: self.max_fields,
            target_bytes_max: size(self.max_target_bytes),
            request_bytes_max: self.max_request_bytes,
            response_bytes_max: self.max_response_bytes,
            held_bytes_max: self.held_bytes_max,
            event_bytes_max: size(self.max_event_bytes),
            json_depth_max: self.max_json_depth,
            connections_max: self.max_connections,
            in_flight_max: self.max_in_flight,
            in_flight_per_pod_max: self.max_in_flight_per_pod,
            idle_upstreams_max: self.max_idle_upstreams,
            sessions_max: self.max_sessions,
            session_idle: self.session_idle,
            head_timeout: self.head_timeout,
            body_timeout: self.body_timeout,
            client_idle: self.client_idle,
            connect_timeout: self.connect_timeout,
            first_byte_timeout: self.first_byte_timeout,
            upstream_read_timeout: self.upstream_read_timeout,
            stream_idle: self.stream_idle,
            upstream_idle: self.upstream_idle,
            held_wait: self.held_wait,
            drain_timeout: self.drain_timeout,
        }
    }
}

fn bytes(least: u64, most: u64) -> ValueParser {
    ValueParser::new(move |text: &str| {
        let size: ByteSize = text.parse().map_err(|_| expected(least, most))?;
        let ByteSize(bytes) = size;
        if (least..=most).contains(&bytes) { Ok(bytes) } else { Err(expected(least, most)) }
    })
}

fn expected(least: u64, most: u64) -> String {
    let text = |bytes: u64| {
        let units = [(GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")];
        let unit = units.iter().find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit));
        unit.map_or(bytes.to_string(), |(unit, name)| format!("{}{name}", bytes / unit))
    };
    format!("expected a size from {} to {}", text(least), text(most))
}

fn count(least: usize, most: usize) -> impl TypedValueParser<Value = usize> {
    clap::builder::RangedU64ValueParser::<usize>::new().range(least as u64..=most as u64)
}

fn duration() -> ValueParser {
    const MOST: Duration = Duration::from_hours(24 * 365);
    ValueParser::new(|text: &str| {
        let expected =
            || "expected a time with its unit, from 1ms to 365days, such as 250ms, 10s or 2m";
        let time = humantime::parse_duration(text).map_err(|_| expected())?;
        let is_in_range = Duration::from_millis(1) <= time && time <= MOST;
        if is_in_range { Ok(time) } else { Err(expected()) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        limits: LimitArgs,
    }

    /// LM-1: without flags the limits are those that `limits.rs` states.
    #[test]
    fn the_defaults_agree() {
        let only = Only::try_parse_from(["ringgate"]).expect("no flag is needed");
        assert_eq!(only.limits.limits(), Limits::default());
    }
}
