//! The last stage: brings the pod's answer to the client, checked if it is MCP's.
//!
//! `message` holds a JSON answer until it is proved, `events` lets an event stream through event by
//! event, `plain` passes on what is not MCP's.

mod message;
mod events;
mod plain;

use super::client::Client;
use super::forward::{Cut, Reply};
use super::gate::Request;
use super::guard::{Bound, close_session};
use super::respond::{Halt, Reception};
use super::state::State;
use crate::http::body::Framing;
use crate::http::field::Known;
use crate::http::head::{Method, Persistence};
use crate::http::media::Media;
use crate::mcp::fault::Fault;
use crate::mcp::request::{Call, Ids};

/// What becomes of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Treatment {
    /// Held until it is proved a JSON-RPC message.
    Message,
    /// Let through event by event.
    Events,
    /// Passed on.
    Plain,
}

/// Brings the answer to the client.
///
/// # Errors
///
/// The answer is refused and nothing of it has been sent.
///
/// # Cancel safety
///
/// Not cancel safe: the client's connection must be closed.
pub async fn pump(
    state: &State,
    client: &mut Client,
    reception: &Reception,
    bound: &Bound,
    reply: Reply,
) -> Result<Persistence, Halt> {
    let request = &bound.received.admitted.request;
    let call = bound.received.call.as_ref();
    let treatment = match treatment(state, request, call, &reply) {
        Ok(treatment) => treatment,
        Err(fault) => return Err(Halt::by_call(fault, call)),
    };
    close_session(state, client, bound).await;
    let persistence = match treatment {
        Treatment::Message => message::pump(state, client, reception, bound, reply).await,
        Treatment::Events => events::pump(state, client, reception, bound, reply).await,
        Treatment::Plain => plain::pump(state, client, reception, bound, reply).await,
    };
    persistence.map_err(|cut| match cut {
        Cut::Client => Halt::ClientGone,
        Cut::Fault(fault) => Halt::by_call(fault, call),
    })
}

/// RV-4, and for requests with an id what MCP says of every answer to one: JSON or an event stream
/// (2025-11-25, Streamable HTTP, Sending Messages to the Server, item 5). Clients were measured to
/// hang on anything else with a status of success.
fn treatment(
    state: &State,
    request: &Request,
    call: Option<&Call>,
    reply: &Reply,
) -> Result<Treatment, Fault> {
    let (fields, buffer) = (&reply.head.fields, &reply.buffer);
    let media = Media::of(fields.value(buffer, Known::ContentType));
    let is_success = (200..300).contains(&reply.head.status);
    if (300..400).contains(&reply.head.status) && leaks_credentials(request, reply) {
        return Err(Fault::UpstreamRedirect);
    }
    let treatment = match call {
        None if is_mcp_stream(request) && is_success && media == Media::EventStream => {
            Treatment::Events
        }
        None => Treatment::Plain,
        Some(_) if !is_success => Treatment::Plain,
        Some(call) => match (media, &call.ids) {
            (Media::EventStream, _) => Treatment::Events,
            (Media::Json, Ids::None) if has_no_body(reply) => Treatment::Plain,
            (Media::Json, _) => Treatment::Message,
            (Media::Other, Ids::None) => Treatment::Plain,
            (Media::Other, _) if is_two_endpoint(request) => Treatment::Plain,
            (Media::Other, _) => return Err(Fault::UpstreamMediaType),
        },
    };
    if treatment == Treatment::Plain {
        return Ok(treatment);
    }
    let mut codings = fields.values(buffer, Known::ContentEncoding);
    if codings.any(|coding| !coding.eq_ignore_ascii_case(b"identity")) {
        return Err(Fault::UpstreamEncoded);
    }
    if let Framing::Length(bytes) = reply.head.framing
        && treatment == Treatment::Message
        && state.options.limits.response_bytes_max < bytes
    {
        return Err(Fault::UpstreamTooLarge);
    }
    Ok(treatment)
}

/// A GET of the session-based transport: it carries a field of MCP.
fn is_mcp_stream(request: &Request) -> bool {
    request.head.method == Method::Get && request.has_mcp_field()
}

fn has_no_body(reply: &Reply) -> bool {
    matches!(reply.head.framing, Framing::None | Framing::Length(0))
}

/// The transport of 2024-11-05 answers on another connection; its POSTs name the session in the
/// query and are accepted with 202.
fn is_two_endpoint(request: &Request) -> bool {
    let target = request.head.target.of(&request.buffer);
    [&b"?sessionId="[..], b"&sessionId=", b"?session_id=", b"&session_id="]
        .iter()
        .any(|parameter| memchr::memmem::find(target, parameter).is_some())
}

/// HT-6: a redirect of a request with credentials to another authority makes the client send them
/// there.
fn leaks_credentials(request: &Request, reply: &Reply) -> bool {
    let credentials = [Known::Authorization, Known::Cookie, Known::McpSessionId];
    let host = request.value(Known::Host).unwrap_or_default();
    let mut locations = reply.head.fields.values(&reply.buffer, Known::Location);
    request.head.fields.has_any(&credentials)
        && locations.any(|location| leads_elsewhere(location, host))
}

/// Whether a client may take `location` for a reference to another authority than `host`. Clients
/// that follow the WHATWG URL standard take backslashes for slashes, any number of them after a
/// scheme, and drop tabs.
fn leads_elsewhere(location: &[u8], host: &[u8]) -> bool {
    let is_slash = |byte: &u8| matches!(byte, b'/' | b'\\');
    let is_of_scheme = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    let scheme_bytes = location.iter().take_while(|byte| is_of_scheme(byte)).count();
    let has_scheme = scheme_bytes > 0 && location.get(scheme_bytes) == Some(&b':');
    let rest = match location.get(scheme_bytes + 1..) {
        Some(rest) if has_scheme => rest,
        Some(_) | None => location,
    };
    let slashes_count = rest.iter().take_while(|byte| is_slash(byte)).count();
    let authority = rest
        .split(|byte| is_slash(byte) || matches!(byte, b'?' | b'#'))
        .nth(slashes_count)
        .unwrap_or_default();
    let has_authority = has_scheme || slashes_count >= 2;
    location.contains(&b'\t') || has_authority && !authority.eq_ignore_ascii_case(host)
}
