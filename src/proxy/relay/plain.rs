//! An answer that is not MCP's to check: passed on as it comes, one read at a time.

use super::super::client::Client;
use super::super::forward::{Cut, Reply, watch};
use super::super::guard::Bound;
use super::super::respond::{Checked, Reception};
use super::super::state::State;
use crate::http::body::{Decoder, Framing, LAST_CHUNK, write_data};
use crate::http::head::Persistence;
use crate::limits::{BODY_READ_BYTES, LARGE_READ_BYTES};
use crate::mcp::fault::Fault;

pub(super) async fn pump(
    state: &State,
    client: &mut Client,
    reception: &Reception,
    bound: &Bound,
    mut reply: Reply,
) -> Result<Persistence, Cut> {
    let limits = &state.options.limits;
    let watch = watch(&bound.received);
    let framing = match reply.head.framing {
        // RFC 9110, section 8.6: this one says nothing of a length.
        Framing::None if reply.head.status == 204 => Framing::None,
        // What HEAD and 304 say of the length is about another answer, and travels on.
        Framing::None => reply.head.declared.unwrap_or(Framing::None),
        Framing::Length(bytes) => Framing::Length(bytes),
        Framing::Chunked | Framing::UntilClose => reception.stream_framing(),
    };
    let persistence = reception.persistence(state, client, framing);
    let mut decoder = Decoder::new(reply.head.framing);
    let mut out = Vec::with_capacity(reply.buffer.len() + 256);
    let head = (&reply.head, &reply.buffer[..]);
    reception.write_head(state, client, head, Checked::No, framing, &mut out);
    let mut chunk = reply.buffer.split_off(reply.head.bytes);
    let mut capacity = BODY_READ_BYTES;
    loop {
        let is_cut = take(&mut decoder, &chunk, framing, &mut out).is_err();
        if decoder.is_done() && framing == Framing::Chunked && !is_cut {
            out.extend_from_slice(LAST_CHUNK);
        }
        if !out.is_empty() {
            let deadline = state.clock.deadline(limits.body_timeout);
            out = client.send_back(out, deadline).await.map_err(|_| Cut::Client)?;
            out.clear();
        }
        // Part of the answer is out: the one thing left to say is that the rest is missing.
        if is_cut {
            return Ok(Persistence::Close);
        }
        if decoder.is_done() {
            reply.upstream.release(state, &reply.head, &reply.buffer);
            return Ok(persistence);
        }
        let idle = if reply.head.framing == Framing::UntilClose || framing == Framing::Chunked {
            limits.stream_idle
        } else {
            limits.upstream_read_timeout
        };
        let deadline = state.clock.deadline(idle);
        chunk = match reply.upstream.next(client, deadline, watch, capacity).await {
            Ok(bytes) => bytes,
            Err(Cut::Client) => return Err(Cut::Client),
            Err(Cut::Fault(fault)) => {
                tracing::debug!(reason = fault.row().reason, "an answer was cut");
                return Ok(Persistence::Close);
            }
        };
        if chunk.is_empty() {
            if decoder.end().is_err() {
                return Ok(Persistence::Close);
            }
            decoder = Decoder::new(Framing::None);
        }
        capacity = LARGE_READ_BYTES;
    }
}

/// Appends the body bytes of `received` to `out`.
fn take(
    decoder: &mut Decoder,
    received: &[u8],
    framing: Framing,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    let mut rest = received;
    let malformed = |_| Fault::UpstreamMalformed;
    while let Some(data) = decoder.next_data(&mut rest).map_err(malformed)? {
        write_data(data, framing, out);
    }
    if rest.is_empty() { Ok(()) } else { Err(Fault::UpstreamMalformed) }
}
