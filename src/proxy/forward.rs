//! The fourth stage: sends the request to a pod and waits for the head of the answer.
//!
//! A request is sent once. It goes to another pod only when connecting failed, or when a pooled
//! connection proved closed before its first byte was written (RC-7).

use std::pin::pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use super::client::{Client, ReceiveError, Unread, Watch};
use super::gate::Request;
use super::guard::{Bound, Route};
use super::intake::{Body, Received};
use super::respond::{Halt, Reception, write_interim};
use super::state::State;
use super::upload::{UploadError, stream, upload};
use crate::http::body::Framing;
use crate::http::compose::{Fate, write_field, write_fields, write_framing};
use crate::http::field::Known;
use crate::http::head::{
    EndFinder, HeadError, Method, Persistence, ResponseHead, Version, read_response,
};
use crate::ids::PodId;
use crate::limits::{BODY_READ_BYTES, INTERIM_ANSWERS_MAX};
use crate::mcp::fault::Fault;
use crate::net::pool::Connection;
use crate::net::stream::connect;
use crate::shard::drain::Pass;
use crate::shard::wait::{Idle, Interrupt};
use crate::telemetry::Event;

/// The head of a pod's answer, and the connection that the rest comes on.
pub struct Reply {
    /// The head.
    pub head: ResponseHead,
    /// What was received: the head, then the start of the body.
    pub buffer: Vec<u8>,
    /// The rest.
    pub upstream: Upstream,
}

/// A connection to a pod, in use.
pub struct Upstream {
    /// The connection.
    pub connection: Connection,
    /// The pod.
    pub pod: PodId,
    /// Whether the whole request went out.
    is_sent: bool,
    _pass: Pass,
}

/// How to watch the client of this request.
#[must_use]
pub fn watch(received: &Received) -> Watch {
    let is_last = received.admitted.request.head.persistence == Persistence::Close;
    if is_last && received.call.is_none() { Watch::No } else { Watch::Yes }
}

/// Sends the request and reads the head of the answer.
///
/// # Errors
///
/// No pod could be reached, or the one that took the request did not answer as it must.
///
/// # Cancel safety
///
/// Not cancel safe: the client's connection must be closed.
pub async fn send(
    state: &State,
    client: &mut Client,
    reception: &Reception,
    bound: &mut Bound,
) -> Result<Reply, Halt> {
    let Bound { received, route } = bound;
    let halt = |cut, received: &Received| match cut {
        Cut::Client => Halt::ClientGone,
        Cut::Fault(fault) => Halt::by_call(fault, received.call.as_ref()),
    };
    let opened = open(state, client, watch(received), route).await;
    let (connection, pod, pass) = opened.map_err(|cut| halt(cut, received))?;
    let mut upstream = Upstream { connection, pod, is_sent: false, _pass: pass };
    match converse(state, client, reception, received, &mut upstream).await {
        Ok((head, buffer)) => Ok(Reply { head, buffer, upstream }),
        Err(cut) => Err(halt(cut, received)),
    }
}

/// Why nothing more comes from a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The client went away.
    Client,
    /// The pod failed.
    Fault(Fault),
}

/// What a refused reservation of held bytes means for an answer.
#[must_use]
pub fn no_room(error: ReceiveError) -> Cut {
    match error {
        ReceiveError::Gone | ReceiveError::Drained => Cut::Client,
        ReceiveError::Late => Cut::Fault(Fault::Overloaded),
    }
}

/// A connection to the first of the pods that can be reached and is not full.
async fn open(
    state: &State,
    client: &mut Client,
    watch: Watch,
    route: &Route,
) -> Result<(Connection, PodId, Pass), Cut> {
    let pods = match route {
        Route::Session(_, pod) => std::slice::from_ref(pod),
        Route::Preferred(pods) => pods.as_slice(),
    };
    let mut fault = if pods.len() > 1 { Fault::NoServingPod } else { Fault::UpstreamUnreachable };
    for &pod in pods {
        let Some(gate) = state.pod_gate(pod) else {
            continue;
        };
        if state.options.limits.in_flight_per_pod_max <= gate.inside_count() {
            fault = Fault::Overloaded;
            continue;
        }
        let pass = gate.enter();
        if let Some(connection) = checkout(state, client, watch, pod).await? {
            return Ok((connection, pod, pass));
        }
    }
    Err(Cut::Fault(fault))
}

async fn checkout(
    state: &State,
    client: &mut Client,
    watch: Watch,
    pod: PodId,
) -> Result<Option<Connection>, Cut> {
    let now = state.clock.coarse();
    let had_idle = state.with_pool(pod, |pool| pool.idle_count()).unwrap_or_default() > 0;
    if let Some(connection) = state.with_pool(pod, |pool| pool.take(now)).flatten() {
        return Ok(Some(connection));
    }
    if had_idle {
        state.counters.count(Event::UpstreamReopened);
    }
    let Some(address) = state.pods.pod(pod).map(|pod| pod.address) else { return Ok(None) };
    let Client { wait, inbound, .. } = client;
    let mut connecting = pin!(connect(address));
    let deadline = state.clock.deadline(state.options.limits.connect_timeout);
    let connected = wait
        .until(deadline, Idle::No, |context| {
            if let Poll::Ready(result) = connecting.as_mut().poll(context) {
                return Poll::Ready(Ok(result));
            }
            inbound.poll_watched(context, watch).map(|()| Err(Cut::Client))
        })
        .await;
    match connected {
        Ok(Ok(Ok((reader, writer)))) => Ok(Some(Connection { reader, writer })),
        Ok(Ok(Err(error))) => {
            tracing::debug!(%error, %address, "a pod can't be reached");
            Ok(None)
        }
        Ok(Err(cut)) => Err(cut),
        Err(_) => {
            tracing::debug!(%address, "a pod takes too long to connect to");
            Ok(None)
        }
    }
}

async fn converse(
    state: &State,
    client: &mut Client,
    reception: &Reception,
    received: &mut Received,
    upstream: &mut Upstream,
) -> Result<(ResponseHead, Vec<u8>), Cut> {
    let watch = watch(received);
    let is_mcp = received.call.is_some();
    let answer = transmit(state, client, received, upstream).await?;
    read_head(state, client, reception, (watch, is_mcp), upstream, answer).await
}

/// Sends the request while it looks for the answer: a pod may answer before it has read all, and
/// then stop reading. Returns the start of the answer if it came so early.
async fn transmit(
    state: &State,
    client: &mut Client,
    received: &mut Received,
    upstream: &mut Upstream,
) -> Result<Vec<u8>, Cut> {
    let body_timeout = state.options.limits.body_timeout;
    let head = request_head(state, client, received, upstream.pod);
    let is_coming = matches!(received.body, Body::Coming(_));
    let watch = watch(received);
    let Client { wait, inbound, unread, .. } = client;
    let Connection { reader, writer } = &mut upstream.connection;
    let mut early = Vec::new();
    let progress = || wait.extend(state.clock.deadline(body_timeout));
    let bytes_max = state.options.limits.request_bytes_max;
    let deadline = state.clock.deadline(body_timeout);
    let mut listen = |context: &mut Context<'_>| match reader.poll_chunk(context, BODY_READ_BYTES) {
        Poll::Ready(result) => {
            early = result.unwrap_or_default();
            Poll::Ready(Err(UploadError::Pod))
        }
        Poll::Pending => Poll::Pending,
    };
    let sent = if is_coming {
        // Reading the body tells if the client goes.
        let mut upload = pin!(stream(head, received, inbound, writer, bytes_max, &progress));
        let poll = |context: &mut Context<'_>| match upload.as_mut().poll(context) {
            Poll::Ready(result) => Poll::Ready(result),
            Poll::Pending => listen(context),
        };
        wait.until(deadline, Idle::No, poll).await
    } else {
        let mut upload = pin!(upload(head, received, writer, &progress));
        let poll = |context: &mut Context<'_>| {
            if let Poll::Ready(result) = upload.as_mut().poll(context) {
                return Poll::Ready(result);
            }
            if let Poll::Ready(result) = listen(context) {
                return Poll::Ready(result);
            }
            inbound.poll_watched(context, watch).map(|()| Err(UploadError::Client))
        };
        wait.until(deadline, Idle::No, poll).await
    };
    match sent {
        Ok(Ok(())) => {
            upstream.is_sent = true;
            if is_coming {
                *unread = Unread::Nothing;
            }
        }
        // A pod that stops reading may still have answered.
        Ok(Err(UploadError::Pod)) => {}
        Ok(Err(UploadError::Client)) => return Err(Cut::Client),
        Ok(Err(UploadError::Framing)) => return Err(Cut::Fault(Fault::BodyFraming)),
        Ok(Err(UploadError::TooLarge)) => return Err(Cut::Fault(Fault::BodyTooLarge)),
        Err(_) if is_coming => return Err(Cut::Fault(Fault::RequestTimeout)),
        Err(_) => return Err(Cut::Fault(Fault::UpstreamTimeout)),
    }
    Ok(early)
}

/// Reads on until the head of the final answer is whole.
async fn read_head(
    state: &State,
    client: &mut Client,
    reception: &Reception,
    (watch, is_mcp): (Watch, bool),
    upstream: &mut Upstream,
    mut answer: Vec<u8>,
) -> Result<(ResponseHead, Vec<u8>), Cut> {
    let limits = &state.options.limits;
    let deadline = state.clock.deadline(limits.first_byte_timeout);
    let malformed = |_: HeadError| Cut::Fault(Fault::UpstreamMalformed);
    let mut finder = EndFinder::default();
    let mut interim_count = 0;
    loop {
        let found = finder.find(&answer, limits.head_bytes_max).map_err(malformed)?;
        let Some(bytes) = found else {
            let more = upstream.next(client, deadline, watch, BODY_READ_BYTES).await?;
            if more.is_empty() {
                return Err(Cut::Fault(Fault::UpstreamClosed));
            }
            append(&mut answer, more);
            continue;
        };
        let (head_bytes, _) = answer.split_at(bytes);
        let head = read_response(head_bytes, reception.method(), limits).map_err(malformed)?;
        match head.status {
            200.. => return Ok((head, answer)),
            // Nobody asked for another protocol: the request's Upgrade was not passed on. The proxy
            // itself answers `Expect`, so a 100 has no taker either.
            102..200 if !is_mcp && reception.version() == Version::Http11 => {
                let mut interim = Vec::with_capacity(bytes);
                write_interim((&head, head_bytes), &mut interim);
                client.send(interim, deadline).await.map_err(|_| Cut::Client)?;
            }
            101 => return Err(Cut::Fault(Fault::UpstreamMalformed)),
            _ => {}
        }
        interim_count += 1;
        if INTERIM_ANSWERS_MAX < interim_count {
            return Err(Cut::Fault(Fault::UpstreamMalformed));
        }
        answer.drain(..bytes);
        finder = EndFinder::default();
    }
}

/// Appends `more`, without a copy where nothing was there.
fn append(bytes: &mut Vec<u8>, more: Vec<u8>) {
    if bytes.is_empty() {
        *bytes = more;
    } else {
        bytes.extend_from_slice(&more);
    }
}

impl Upstream {
    /// The next bytes of the answer, empty when the pod has closed.
    ///
    /// # Errors
    ///
    /// The connection broke, the deadline passed, the shard drains, or the client went away.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: nothing that arrives is lost.
    pub async fn next(
        &mut self,
        client: &mut Client,
        deadline: Instant,
        watch: Watch,
        capacity: usize,
    ) -> Result<Vec<u8>, Cut> {
        let Client { wait, inbound, .. } = client;
        let reader = &mut self.connection.reader;
        let next = wait
            .until(deadline, Idle::No, |context| {
                if let Poll::Ready(result) = reader.poll_chunk(context, capacity) {
                    let closed = |_| Cut::Fault(Fault::UpstreamClosed);
                    return Poll::Ready(result.map_err(closed));
                }
                inbound.poll_watched(context, watch).map(|()| Err(Cut::Client))
            })
            .await;
        match next {
            Ok(result) => result,
            Err(Interrupt::Expired) => Err(Cut::Fault(Fault::UpstreamTimeout)),
            Err(Interrupt::Drained) => Err(Cut::Fault(Fault::Draining)),
        }
    }

    /// Keeps the connection for another request, if the exchange on it is complete.
    pub fn release(self, state: &State, head: &ResponseHead, buffer: &[u8]) {
        if !self.is_sent || head.persistence == Persistence::Close {
            return;
        }
        let limits = &state.options.limits;
        let offered = head.fields.value(buffer, Known::KeepAlive).and_then(keep_alive);
        // The pod counts from when it sent the answer; a request that crosses its close is lost.
        let idle = offered.map_or(limits.upstream_idle, |offered| {
            offered.saturating_sub(Duration::from_secs(1)).min(limits.upstream_idle)
        });
        let expiry = state.clock.coarse() + idle;
        let Self { connection, pod, .. } = self;
        state.with_pool(pod, |pool| {
            pool.put(connection, expiry, limits.idle_upstreams_max);
        });
    }
}

/// The `timeout` parameter of a Keep-Alive field.
fn keep_alive(value: &[u8]) -> Option<Duration> {
    let parameter = |part: &[u8]| {
        let seconds = part.trim_ascii().strip_prefix(b"timeout=")?;
        std::str::from_utf8(seconds).ok()?.parse().ok().map(Duration::from_secs)
    };
    value.split(|byte| *byte == b',').find_map(parameter)
}

/// The head of the request as it goes to the pod.
fn request_head(state: &State, client: &Client, received: &Received, pod: PodId) -> Vec<u8> {
    let request = &received.admitted.request;
    let Request { head, buffer } = request;
    let is_mcp = received.call.is_some();
    let body_bytes = received.body.bytes(request).len();
    let mut out = Vec::with_capacity(buffer.len() + 256);
    out.extend_from_slice(head.method_span.of(buffer));
    out.push(b' ');
    out.extend_from_slice(head.target.of(buffer));
    out.extend_from_slice(b" HTTP/1.1\r\n");
    write_fields(&head.fields, buffer, &mut out, |known| {
        // The client's word on who it is and which way it came is not trusted.
        let is_replaced = matches!(known, Known::Expect | Known::Forwarded | Known::RinggateFault);
        if is_replaced || (is_mcp && known == Known::AcceptEncoding) {
            Fate::Removed
        } else {
            Fate::Kept
        }
    });
    let host = request.value(Known::Host);
    match (host, state.pods.pod(pod)) {
        (Some(host), _) => write_field(b"X-Forwarded-Host", host, &mut out),
        (None, Some(pod)) => write_field(b"Host", pod.address.to_string().as_bytes(), &mut out),
        (None, None) => {}
    }
    write_field(b"X-Forwarded-For", client.address_text.as_bytes(), &mut out);
    out.extend_from_slice(b"X-Forwarded-Proto: http\r\nVia: 1.1 ringgate\r\n");
    if is_mcp {
        // What the pod encodes can't be checked (RV-6).
        out.extend_from_slice(b"Accept-Encoding: identity\r\n");
    }
    let framing = match (&received.body, head.framing) {
        (Body::Coming(_), framing) => framing,
        (Body::Inline(_) | Body::Gathered(..), Framing::None) if head.method != Method::Post => {
            Framing::None
        }
        (Body::Inline(_) | Body::Gathered(..), _) => Framing::Length(body_bytes as u64),
    };
    write_framing(framing, &mut out);
    out.extend_from_slice(b"\r\n");
    out
}
