//! A JSON answer: held as it was received, checked as it arrives, sent when it is proved (RV-1,
//! RV-7 to RV-10). The chunks are not copied to be checked.

use super::super::client::Client;
use super::super::forward::{Cut, Reply, no_room, watch};
use super::super::guard::{Bound, open_session};
use super::super::held::Reservation;
use super::super::respond::{Checked, Reception};
use super::super::state::State;
use crate::http::body::{Decoder, Framing};
use crate::http::field::Known;
use crate::http::head::Persistence;
use crate::limits::{BODY_READ_BYTES, COPIED_ANSWER_BYTES_MAX, LARGE_READ_BYTES};
use crate::mcp::fault::Fault;
use crate::mcp::response::{Awaited, Carrier, Checker, Refusal};

/// A checked body: what came behind the head, and the chunks after it.
struct Held {
    /// The bytes of the body in the buffer that the head is in.
    first: std::ops::Range<usize>,
    /// The rest, as it was received.
    chunks: Vec<Vec<u8>>,
    bytes: u64,
    _reservation: Reservation,
}

pub(super) async fn pump(
    state: &State,
    client: &mut Client,
    reception: &Reception,
    bound: &Bound,
    mut reply: Reply,
) -> Result<Persistence, Cut> {
    let held = hold(state, client, bound, &mut reply).await?;
    let session = reply.head.fields.value(&reply.buffer, Known::McpSessionId);
    let opened = (reply.upstream.pod, session);
    open_session(state, client, bound, opened).await.map_err(Cut::Fault)?;
    let framing = Framing::Length(held.bytes);
    let persistence = reception.persistence(state, client, framing);
    let Reply { head, buffer, upstream } = reply;
    let mut out = Vec::with_capacity(buffer.len() + 128);
    reception.write_head(state, client, (&head, &buffer), Checked::Yes, framing, &mut out);
    // Whatever follows is no answer to this request, so the connection is free before the client
    // has read.
    upstream.release(state, &head, &buffer);
    out.extend_from_slice(buffer.get(held.first.clone()).unwrap_or_default());
    let deadline = state.clock.deadline(state.options.limits.body_timeout);
    let is_small = held.bytes <= COPIED_ANSWER_BYTES_MAX as u64;
    if held.chunks.is_empty() || is_small {
        held.chunks.iter().for_each(|chunk| out.extend_from_slice(chunk));
        client.send(out, deadline).await.map_err(|_| Cut::Client)?;
    } else {
        let mut parts = Vec::with_capacity(held.chunks.len() + 1);
        parts.push(out);
        parts.extend(held.chunks);
        let Client { wait, writer, .. } = client;
        let progress = || wait.extend(state.clock.deadline(state.options.limits.body_timeout));
        let sent = wait.complete(deadline, writer.send_vectored(parts, progress)).await;
        if !matches!(sent, Ok(Ok(()))) {
            return Err(Cut::Client);
        }
    }
    Ok(persistence)
}

/// Reads the body to its end and checks it.
async fn hold(
    state: &State,
    client: &mut Client,
    bound: &Bound,
    reply: &mut Reply,
) -> Result<Held, Cut> {
    let limits = &state.options.limits;
    let watch = watch(&bound.received);
    let mut check = Check {
        decoder: Decoder::new(reply.head.framing),
        checker: Checker::new(Carrier::Body, limits.json_depth_max),
        awaited: Awaited::new(bound.asked()),
        bytes: 0,
        bytes_max: limits.response_bytes_max,
    };
    let refuse = |refusal: Refusal| {
        state.counters.count_refusal(refusal.why);
        tracing::debug!(why = refusal.why.label(), offset = refusal.offset, "answer refused");
        Cut::Fault(refusal.why.fault())
    };
    let start = reply.head.bytes;
    let end = check.take(&mut reply.buffer, start).map_err(|error| error.cut(refuse))?;
    let mut chunks = Vec::new();
    let mut reservation = state.held.reservation();
    let mut held_bytes = 0;
    while !check.decoder.is_done() {
        let capacity = check.read_bytes(reply.head.framing);
        let deadline = state.clock.deadline(limits.held_wait);
        let wanted = (held_bytes + capacity) as u64;
        client.reserve(&mut reservation, wanted, watch, deadline).await.map_err(no_room)?;
        let deadline = state.clock.deadline(limits.upstream_read_timeout);
        let mut chunk = reply.upstream.next(client, deadline, watch, capacity).await?;
        if chunk.is_empty() {
            check.decoder.end().map_err(|_| Cut::Fault(Fault::UpstreamClosed))?;
            break;
        }
        let end = check.take(&mut chunk, 0).map_err(|error| error.cut(refuse))?;
        chunk.truncate(end);
        held_bytes += keep(&mut chunks, chunk);
        reservation.shrink_to(held_bytes as u64);
    }
    let Check { checker, mut awaited, bytes, .. } = check;
    checker.finish(&mut awaited).map_err(refuse)?;
    Ok(Held { first: start..end, chunks, bytes, _reservation: reservation })
}

/// Keeps a chunk as it is, unless most of its buffer is empty and the one before has room for it:
/// a body that comes in small pieces must not hold a read buffer for each. Returns the size of the
/// buffer that is held more than before.
fn keep(chunks: &mut Vec<Vec<u8>>, chunk: Vec<u8>) -> usize {
    let is_sparse = chunk.len() <= chunk.capacity() / 2;
    match chunks.last_mut() {
        Some(last) if is_sparse && chunk.len() <= last.capacity() - last.len() => {
            last.extend_from_slice(&chunk);
            0
        }
        Some(_) | None => {
            let held_bytes = chunk.capacity();
            chunks.push(chunk);
            held_bytes
        }
    }
}

/// The check of one body.
struct Check {
    decoder: Decoder,
    checker: Checker,
    awaited: Awaited,
    bytes: u64,
    bytes_max: u64,
}

/// Why a chunk is refused.
enum TakeError {
    Framing,
    Surplus,
    TooLarge,
    Refused(Refusal),
}

impl TakeError {
    fn cut(self, refuse: impl FnOnce(Refusal) -> Cut) -> Cut {
        match self {
            Self::Framing | Self::Surplus => Cut::Fault(Fault::UpstreamMalformed),
            Self::TooLarge => Cut::Fault(Fault::UpstreamTooLarge),
            Self::Refused(refusal) => refuse(refusal),
        }
    }
}

impl Check {
    /// How much to read next: what is left, or more each time while no end is in sight.
    fn read_bytes(&self, framing: Framing) -> usize {
        match framing {
            Framing::Length(bytes) => {
                let left = usize::try_from(bytes - self.bytes).unwrap_or(usize::MAX);
                left.clamp(1, LARGE_READ_BYTES)
            }
            Framing::None | Framing::Chunked | Framing::UntilClose => {
                let grown = usize::try_from(self.bytes).unwrap_or(usize::MAX);
                grown.clamp(BODY_READ_BYTES, LARGE_READ_BYTES)
            }
        }
    }

    /// Takes what `buffer` has from `start` on, leaves the bytes of the body together there, and
    /// returns where they end. Only chunk marks between them make bytes move.
    fn take(&mut self, buffer: &mut [u8], start: usize) -> Result<usize, TakeError> {
        let mut from = start;
        let mut end = start;
        while from < buffer.len() && !self.decoder.is_done() {
            let step = self.decoder.next(&buffer[from..]).map_err(|_| TakeError::Framing)?;
            let taken = from + step.consumed;
            let data = taken - step.data..taken;
            self.bytes += step.data as u64;
            if self.bytes_max < self.bytes {
                return Err(TakeError::TooLarge);
            }
            self.checker.push(&buffer[data.clone()], &self.awaited).map_err(TakeError::Refused)?;
            if data.start != end {
                buffer.copy_within(data.clone(), end);
            }
            end += step.data;
            from = taken;
        }
        // Bytes behind the body would be taken for the answer to the next request.
        if from < buffer.len() { Err(TakeError::Surplus) } else { Ok(end) }
    }
}
