//! The first stage: what the head alone decides (RC-3, HT-5, RC-8, LM-2).

use super::options::Sessions;
use super::state::State;
use crate::http::body::Framing;
use crate::http::field::{Known, SINGLE_OF_MCP};
use crate::http::head::{Method, RequestHead};
use crate::mcp::fault::Fault;
use crate::mcp::revision;
use crate::shard::drain::Pass;

/// A request whose head was read; its body may be part of `buffer` already.
#[derive(Debug)]
pub struct Request {
    /// The head.
    pub head: RequestHead,
    /// What was received: the head, then the start of what follows it.
    pub buffer: Vec<u8>,
}

/// A request that may go on.
#[derive(Debug)]
pub struct Admitted {
    /// The request.
    pub request: Request,
    /// Counts the exchange as in flight.
    pub pass: Pass,
}

/// What the head decided.
#[derive(Debug)]
pub enum Admission {
    /// The request goes on.
    Forward(Admitted),
    /// A CORS preflight of an allowed origin; the proxy answers it.
    Preflight,
}

impl Request {
    /// The first value of a field.
    #[must_use]
    pub fn value(&self, known: Known) -> Option<&[u8]> {
        self.head.fields.value(&self.buffer, known)
    }

    /// Whether the request carries a field of MCP.
    #[must_use]
    pub fn has_mcp_field(&self) -> bool {
        self.head.fields.has_any(&SINGLE_OF_MCP)
    }
}

/// Decides by the head of a request.
///
/// # Errors
///
/// The fault to answer; the body is unread and its id unknown.
pub fn admit(state: &State, request: Request) -> Result<Admission, Fault> {
    check_method(state, &request)?;
    check_host(state, &request)?;
    check_origin(state, &request)?;
    if request.head.method != Method::Post && request.head.fields.has_repeated(&SINGLE_OF_MCP) {
        return Err(Fault::FieldDuplicated);
    }
    if is_preflight(&request) {
        return Ok(Admission::Preflight);
    }
    if let Framing::Length(bytes) = request.head.framing
        && state.options.limits.request_bytes_max < bytes
    {
        return Err(Fault::BodyTooLarge);
    }
    if state.options.limits.in_flight_max <= state.in_flight.inside_count() {
        return Err(Fault::Overloaded);
    }
    Ok(Admission::Forward(Admitted { request, pass: state.in_flight.enter() }))
}

/// RC-3: the stateless revision knows POST only.
fn check_method(state: &State, request: &Request) -> Result<(), Fault> {
    match request.head.method {
        Method::Post | Method::Options | Method::Other => Ok(()),
        Method::Get | Method::Head | Method::Delete => {
            let version = request.value(Known::McpProtocolVersion);
            let is_stateless = state.options.sessions == Sessions::Refused
                || version == Some(revision::MODERN.as_bytes());
            if is_stateless { Err(Fault::MethodNotAllowed) } else { Ok(()) }
        }
    }
}

fn check_host(state: &State, request: &Request) -> Result<(), Fault> {
    // Only HTTP/1.0 comes without a Host, and no browser speaks that.
    let is_allowed = request.value(Known::Host).is_none_or(|host| state.options.hosts.allow(host));
    if is_allowed { Ok(()) } else { Err(Fault::HostForbidden) }
}

fn check_origin(state: &State, request: &Request) -> Result<(), Fault> {
    match request.value(Known::Origin) {
        Some(origin) if !state.options.origins.allow(origin) => Err(Fault::OriginForbidden),
        Some(_) | None => Ok(()),
    }
}

fn is_preflight(request: &Request) -> bool {
    let is_asking = |name: &[u8]| name.eq_ignore_ascii_case(b"access-control-request-method");
    request.head.method == Method::Options
        && request.value(Known::Origin).is_some()
        && request.head.fields.lines().any(|field| is_asking(field.name.of(&request.buffer)))
}

/// The origin that a browser may show the answer to, if the request names one that is allowed.
#[must_use]
pub fn shared_origin(state: &State, request: &Request) -> Option<Vec<u8>> {
    let origin = request.value(Known::Origin)?;
    state.options.origins.allow(origin).then(|| origin.to_vec())
}
