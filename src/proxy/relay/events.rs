//! An event stream: each event is held until it is whole and checked, then leaves at once (RV-5,
//! HT-4). Once the stream has begun a fault is its last event (FA-4).

use super::super::client::{Client, Watch};
use super::super::forward::{Cut, Reply, no_room, watch};
use super::super::guard::{Bound, open_session};
use super::super::held::Reservation;
use super::super::respond::{Checked, Reception, write_fault_event};
use super::super::state::State;
use crate::http::body::{Decoder, Framing, LAST_CHUNK, write_data};
use crate::http::field::Known;
use crate::http::head::Persistence;
use crate::limits::BODY_READ_BYTES;
use crate::mcp::fault::Fault;
use crate::mcp::response::Awaited;
use crate::mcp::stream::{End, EventStream};

/// What goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// The stream.
    More,
    /// Nothing; its last event was as it should be.
    Whole,
    /// Nothing: the pod's stream is broken, or the proxy ends it.
    Cut(Fault),
}

/// The stream as it is passed on.
struct Relay {
    decoder: Decoder,
    stream: EventStream,
    /// Received, and not yet proved.
    held: Vec<u8>,
    /// Room in the shard's budget for what is held beyond one read.
    reservation: Reservation,
    framing: Framing,
}

pub(super) async fn pump(
    state: &State,
    client: &mut Client,
    reception: &Reception,
    bound: &Bound,
    mut reply: Reply,
) -> Result<Persistence, Cut> {
    let limits = &state.options.limits;
    let watch = watch(&bound.received);
    let framing = reception.stream_framing();
    let persistence = reception.persistence(state, client, framing);
    let mut head = Vec::with_capacity(reply.buffer.len() + 256);
    let parts = (&reply.head, &reply.buffer[..]);
    reception.write_head(state, client, parts, Checked::Yes, framing, &mut head);
    let mut chunk = reply.buffer.split_off(reply.head.bytes);
    let mut relay = Relay {
        decoder: Decoder::new(reply.head.framing),
        stream: EventStream::new(Awaited::new(bound.asked()), limits),
        held: Vec::new(),
        reservation: state.held.reservation(),
        framing,
    };
    // What is ready to leave; empty once it has left.
    let mut out = head;
    let mut phase = if opens_session(bound, &reply) { Phase::Opening } else { Phase::Flowing };
    loop {
        let next = relay.take(state, &chunk, &mut out);
        if phase == Phase::Opening {
            phase = open(state, client, bound, &reply, (&relay, next, out.len())).await?;
        }
        if phase == Phase::Flowing {
            if next != Next::More {
                relay.end(state, next, &mut out);
            }
            if !out.is_empty() {
                let deadline = state.clock.deadline(limits.body_timeout);
                out = client.send_back(out, deadline).await.map_err(|_| Cut::Client)?;
                out.clear();
            }
        }
        match next {
            Next::More => {}
            Next::Whole => {
                reply.upstream.release(state, &reply.head, &reply.buffer);
                return Ok(persistence);
            }
            Next::Cut(_) => return Ok(persistence),
        }
        let received = match relay.account(state, client, watch).await {
            Ok(()) => {
                let deadline = state.clock.deadline(limits.stream_idle);
                reply.upstream.next(client, deadline, watch, BODY_READ_BYTES).await
            }
            Err(cut) => Err(cut),
        };
        let fault = match received {
            Ok(bytes) if !bytes.is_empty() => {
                chunk = bytes;
                continue;
            }
            Ok(_) if relay.decoder.end().is_ok() => {
                relay.decoder = Decoder::new(Framing::None);
                chunk = Vec::new();
                continue;
            }
            Ok(_) => Fault::UpstreamClosed,
            Err(Cut::Fault(fault)) => fault,
            Err(Cut::Client) => return Err(Cut::Client),
        };
        return match phase {
            Phase::Opening => Err(Cut::Fault(fault)),
            Phase::Flowing => relay.cut(state, client, fault, persistence).await,
        };
    }
}

/// Whether what is released leaves at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Not yet: the head names a session, and `initialize` is not answered. The id of a session
    /// must not leave before it is proved (SG-1), and until then a fault is a whole answer.
    Opening,
    /// It does (HT-4).
    Flowing,
}

/// Whether the head of the stream names a session that the stream has still to prove.
fn opens_session(bound: &Bound, reply: &Reply) -> bool {
    bound.received.call.as_ref().is_some_and(|call| call.is_initialize)
        && reply.head.fields.has_any(&[Known::McpSessionId])
}

/// Opens the session once its request is answered.
async fn open(
    state: &State,
    client: &Client,
    bound: &Bound,
    reply: &Reply,
    (relay, next, held_bytes): (&Relay, Next, usize),
) -> Result<Phase, Cut> {
    if relay.stream.is_answered() {
        let session = reply.head.fields.value(&reply.buffer, Known::McpSessionId);
        let opened = (reply.upstream.pod, session);
        open_session(state, client, bound, opened).await.map_err(Cut::Fault)?;
        return Ok(Phase::Flowing);
    }
    match next {
        Next::More if state.options.limits.event_bytes_max < held_bytes => {
            Err(Cut::Fault(Fault::UpstreamEventTooLarge))
        }
        Next::More => Ok(Phase::Opening),
        Next::Whole => Err(Cut::Fault(Fault::UpstreamNoAnswer)),
        Next::Cut(fault) => Err(Cut::Fault(fault)),
    }
}

impl Relay {
    /// Takes received bytes and appends to `out` what may leave, in one chunk.
    fn take(&mut self, state: &State, received: &[u8], out: &mut Vec<u8>) -> Next {
        let mut rest = received;
        let mut released_bytes = 0;
        let mut next = Next::More;
        while next == Next::More {
            let data = match self.decoder.next_data(&mut rest) {
                Ok(Some(data)) => data,
                Ok(None) => break,
                Err(_) => {
                    next = Next::Cut(Fault::UpstreamMalformed);
                    break;
                }
            };
            self.held.extend_from_slice(data);
            let progress = self.stream.push(data);
            released_bytes += progress.released_bytes;
            if let Some(refusal) = progress.refusal {
                state.counters.count_refusal(refusal.why);
                tracing::debug!(
                    why = refusal.why.label(),
                    offset = refusal.offset,
                    "event refused"
                );
                next = Next::Cut(refusal.why.fault());
            }
        }
        if next == Next::More && self.decoder.is_done() {
            next = if rest.is_empty() { Next::Whole } else { Next::Cut(Fault::UpstreamMalformed) };
        }
        let released = self.held.get(..released_bytes).unwrap_or_default();
        write_data(released, self.framing, out);
        self.held.drain(..released_bytes.min(self.held.len()));
        next
    }

    /// Has the budget of the shard cover what is held beyond one read.
    async fn account(
        &mut self,
        state: &State,
        client: &mut Client,
        watch: Watch,
    ) -> Result<(), Cut> {
        let bytes = self.held.len().saturating_sub(BODY_READ_BYTES) as u64;
        let deadline = state.clock.deadline(state.options.limits.held_wait);
        client.reserve(&mut self.reservation, bytes, watch, deadline).await.map_err(no_room)
    }

    /// Appends the end of the stream: before it, for each request that has no answer and can get
    /// none, the fault. A stream that the client may resume just ends.
    fn end(&self, state: &State, next: Next, out: &mut Vec<u8>) {
        let fault = match (next, self.stream.finish()) {
            (Next::Cut(fault), End::Answered | End::Unanswered | End::Resumable) => Some(fault),
            (Next::Whole | Next::More, End::Unanswered) => Some(Fault::UpstreamNoAnswer),
            (Next::Whole | Next::More, End::Answered | End::Resumable) => None,
        };
        if let Some(fault) = fault {
            let mut events = Vec::new();
            for id in self.stream.awaited().unanswered() {
                write_fault_event(state, fault, id, &mut events);
            }
            write_data(&events, self.framing, out);
        }
        if self.framing == Framing::Chunked {
            out.extend_from_slice(LAST_CHUNK);
        }
    }

    /// Ends a stream that was cut: by its pod, by time or by a drain.
    async fn cut(
        &self,
        state: &State,
        client: &mut Client,
        fault: Fault,
        persistence: Persistence,
    ) -> Result<Persistence, Cut> {
        let mut out = Vec::new();
        // What a client may resume is not lost with one connection to a pod.
        let is_resumable = fault == Fault::UpstreamClosed && self.stream.is_resumable();
        self.end(state, if is_resumable { Next::Whole } else { Next::Cut(fault) }, &mut out);
        let deadline = state.clock.deadline(state.options.limits.body_timeout);
        client.send(out, deadline).await.map_err(|_| Cut::Client)?;
        Ok(persistence)
    }
}
