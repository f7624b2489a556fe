//! The second stage: reads the body of a request that may be MCP, and says what it calls.
//!
//! A body that can't be MCP is left where it is and streams to the pod later.

use std::ops::Range;

use super::client::{Client, ReceiveError, Unread, Watch};
use super::gate::{Admitted, Request};
use super::held::Reservation;
use super::options::Batches;
use super::respond::{Halt, Refused};
use super::state::State;
use crate::http::body::{Decoder, Framing};
use crate::http::field::{Field, Known, SINGLE_OF_MCP};
use crate::http::head::Method;
use crate::http::media::Media;
use crate::limits::BODY_READ_BYTES;
use crate::mcp::fault::Fault;
use crate::mcp::headers::Mirrored;
use crate::mcp::request::{self, Call, CallKind, Ids};
use crate::shard::wait::Idle;

/// The body of a request.
#[derive(Debug)]
pub enum Body {
    /// There is none, or it has come in one piece with the head.
    Inline(Range<usize>),
    /// It was gathered.
    Gathered(Vec<u8>, Reservation),
    /// It is still to come, in this framing.
    Coming(Decoder),
}

/// A request whose body, if it may be MCP, was read.
#[derive(Debug)]
pub struct Received {
    /// The request.
    pub admitted: Admitted,
    /// Its body.
    pub body: Body,
    /// What it calls; `None` for traffic that is not MCP's POST.
    pub call: Option<Call>,
}

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Reads the body and classifies it.
///
/// # Errors
///
/// The body is malformed, too large or too slow, or is a message that is refused.
///
/// # Cancel safety
///
/// Not cancel safe: the connection must be closed.
pub async fn receive(
    state: &State,
    client: &mut Client,
    mut admitted: Admitted,
) -> Result<Received, Halt> {
    let request = &mut admitted.request;
    let head_bytes = request.head.bytes;
    let arrived_bytes = (request.buffer.len() - head_bytes) as u64;
    if request.head.framing != Framing::None {
        client.unread = Unread::Body;
        if request.head.expects_continue && arrived_bytes == 0 {
            let deadline = state.clock.deadline(state.options.limits.body_timeout);
            client.send(CONTINUE.to_vec(), deadline).await.map_err(|_| Halt::ClientGone)?;
        }
    }
    let is_buffered = may_be_mcp(request);
    let body = match request.head.framing {
        Framing::None | Framing::UntilClose => inline(client, request, 0),
        Framing::Length(bytes) if bytes <= arrived_bytes => inline(client, request, bytes),
        framing @ (Framing::Length(_) | Framing::Chunked) => {
            let decoder = Decoder::new(framing);
            if is_buffered {
                gather(state, client, request, decoder).await?
            } else {
                Body::Coming(decoder)
            }
        }
    };
    let call = if is_buffered { call(state, &admitted.request, &body)? } else { None };
    Ok(Received { admitted, body, call })
}

/// RV-4 and RC-1: a POST that says it is MCP or JSON.
fn may_be_mcp(request: &Request) -> bool {
    request.head.method == Method::Post
        && (request.has_mcp_field() || Media::of(request.value(Known::ContentType)) == Media::Json)
}

/// The body stands in the buffer behind the head; what follows it belongs to the next request.
fn inline(client: &mut Client, request: &mut Request, bytes: u64) -> Body {
    let start = request.head.bytes;
    // It has arrived, so it fits.
    let end = start + usize::try_from(bytes).unwrap_or(usize::MAX);
    if end < request.buffer.len() {
        client.inbound.put_back(request.buffer.split_off(end));
    }
    client.unread = Unread::Nothing;
    Body::Inline(start..end)
}

async fn gather(
    state: &State,
    client: &mut Client,
    request: &mut Request,
    mut decoder: Decoder,
) -> Result<Body, Halt> {
    let limits = &state.options.limits;
    let mut body = Vec::new();
    let mut reservation = state.held.reservation();
    let mut input = request.buffer.split_off(request.head.bytes);
    loop {
        let mut rest = &input[..];
        let malformed = |_| Halt::fault(Fault::BodyFraming);
        while let Some(data) = decoder.next_data(&mut rest).map_err(malformed)? {
            body.extend_from_slice(data);
        }
        if limits.request_bytes_max < body.len() as u64 {
            return Err(Halt::fault(Fault::BodyTooLarge));
        }
        if decoder.is_done() {
            if !rest.is_empty() {
                client.inbound.put_back(rest.to_vec());
            }
            client.unread = Unread::Nothing;
            return Ok(Body::Gathered(body, reservation));
        }
        let deadline = state.clock.deadline(limits.body_timeout);
        input = match client.receive(deadline, Idle::No, BODY_READ_BYTES).await {
            Ok(input) => input,
            Err(ReceiveError::Late) => return Err(Halt::fault(Fault::RequestTimeout)),
            Err(ReceiveError::Gone | ReceiveError::Drained) => return Err(Halt::ClientGone),
        };
        let deadline = state.clock.deadline(limits.held_wait);
        let bytes = (body.len() + input.len()) as u64;
        // The body is still to come: reading on will tell if the client goes.
        let granted = client.reserve(&mut reservation, bytes, Watch::No, deadline).await;
        granted.map_err(|_| Halt::fault(Fault::Overloaded))?;
    }
}

impl Body {
    /// The bytes that have come.
    #[must_use]
    pub fn bytes<'a>(&'a self, request: &'a Request) -> &'a [u8] {
        match self {
            Self::Inline(range) => request.buffer.get(range.clone()).unwrap_or_default(),
            Self::Gathered(bytes, _) => bytes,
            Self::Coming(_) => &[],
        }
    }
}

/// What a body calls. JSON that is no JSON-RPC message is no MCP traffic, unless a field of the
/// head says that it is.
fn call(state: &State, request: &Request, body: &Body) -> Result<Option<Call>, Halt> {
    let bytes = body.bytes(request);
    let is_declared = request.has_mcp_field();
    if bytes.is_empty() && !is_declared {
        return Ok(None);
    }
    let message = match request::read(bytes, state.options.limits.json_depth_max) {
        Ok(message) => message,
        Err(refusal)
            if refusal.fault != Fault::NotJson && !refusal.is_json_rpc_shaped && !is_declared =>
        {
            return Ok(None);
        }
        Err(refusal) => return Err(refusal.into()),
    };
    let fields = &request.head.fields;
    if fields.has_repeated(&SINGLE_OF_MCP) || has_repeated_param(request) {
        let id = message.id().cloned();
        let ids = id.map_or(Ids::None, Ids::One);
        let fault = Fault::FieldDuplicated;
        let refused = Refused { fault, ids, era: None, requested: None };
        return Err(Halt::Refused(Box::new(refused)));
    }
    let params: Vec<&[u8]> = fields.values(&request.buffer, Known::McpParam).collect();
    let mirrored = Mirrored {
        protocol_version: request.value(Known::McpProtocolVersion),
        method: request.value(Known::McpMethod),
        name: request.value(Known::McpName),
        params: &params,
    };
    let call = request::classify(message, &mirrored)?;
    let is_batch = matches!(call.kind, CallKind::Batch | CallKind::OpeningBatch);
    if is_batch && state.options.batches == Batches::Refuse {
        return Err(Halt::by_call(Fault::BatchRefused, Some(&call)));
    }
    Ok(Some(call))
}

/// Whether one `Mcp-Param-*` occurs twice.
fn has_repeated_param(request: &Request) -> bool {
    let Request { head, buffer } = request;
    if !head.fields.has_repeated(&[Known::McpParam]) {
        return false;
    }
    let mut params = head.fields.lines().filter(|field| field.known == Known::McpParam);
    while let Some(param) = params.next() {
        let is_same =
            |other: &Field| other.name.of(buffer).eq_ignore_ascii_case(param.name.of(buffer));
        if params.clone().any(is_same) {
            return true;
        }
    }
    false
}
