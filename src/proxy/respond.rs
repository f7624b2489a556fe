//! The only writer of answers to clients: faults, and the heads of what pods answer.

use super::client::{Client, ReceiveError, Unread};
use super::gate::{Request, shared_origin};
use super::options::FaultStatus;
use super::state::State;
use crate::http::body::Framing;
use crate::http::compose::{Fate, phrase, write_field, write_fields, write_framing, write_status};
use crate::http::field::Known;
use crate::http::head::{Method, Persistence, ResponseHead, Version};
use crate::http::media::essence;
use crate::ids::RequestId;
use crate::mcp::fault::{Addressee, Fault, Group};
use crate::mcp::request::{Call, Ids, Refusal};
use crate::mcp::revision::Era;

/// A fault and whom it answers.
#[derive(Debug)]
pub struct Refused {
    /// The fault.
    pub fault: Fault,
    /// The requests it answers.
    pub ids: Ids,
    /// Their era, where it is known.
    pub era: Option<Era>,
    /// The protocol version that was asked for, as a raw JSON string.
    pub requested: Option<Box<[u8]>>,
}

impl Refused {
    /// A fault before the id is known.
    #[must_use]
    pub fn unknown(fault: Fault) -> Self {
        Self { fault, ids: Ids::None, era: None, requested: None }
    }

    /// A fault that answers a call.
    #[must_use]
    pub fn by_call(fault: Fault, call: &Call) -> Self {
        Self { fault, ids: call.ids.clone(), era: Some(call.era), requested: None }
    }

    fn addressee(&self) -> Addressee<'_> {
        match &self.ids {
            Ids::None => Addressee::Unknown,
            Ids::One(id) => Addressee::Single(id),
            Ids::Many(ids) => Addressee::Batch(ids),
        }
    }
}

/// Why a stage ends the exchange.
#[derive(Debug)]
pub enum Halt {
    /// The proxy answers. Boxed: it is rare, and every stage's result would carry its size.
    Refused(Box<Refused>),
    /// The client went away; there is nobody to answer.
    ClientGone,
}

impl Halt {
    /// A fault whose addressee is unknown.
    #[must_use]
    pub fn fault(fault: Fault) -> Self {
        Self::Refused(Box::new(Refused::unknown(fault)))
    }

    /// A fault that answers a call, where there is one.
    #[must_use]
    pub fn by_call(fault: Fault, call: Option<&Call>) -> Self {
        match call {
            Some(call) => Self::Refused(Box::new(Refused::by_call(fault, call))),
            None => Self::fault(fault),
        }
    }
}

impl From<Refusal> for Halt {
    /// What reading or classifying a body refused.
    fn from(refusal: Refusal) -> Self {
        let Refusal { fault, id, requested, .. } = refusal;
        let ids = id.map_or(Ids::None, Ids::One);
        Self::Refused(Box::new(Refused { fault, ids, era: None, requested }))
    }
}

/// What the client's request asks of any answer to it.
#[derive(Debug)]
pub struct Reception {
    method: Method,
    version: Version,
    persistence: Persistence,
    shared_origin: Option<Vec<u8>>,
}

/// Whether an answer is MCP's, and so written the way all its clients read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    /// It was checked, or is being checked.
    Yes,
    /// It passes as it is.
    No,
}

impl Reception {
    /// What `request` asks.
    #[must_use]
    pub fn of(state: &State, request: &Request) -> Self {
        Self {
            method: request.head.method,
            version: request.head.version,
            persistence: request.head.persistence,
            shared_origin: shared_origin(state, request),
        }
    }

    /// For a request whose head could not be read.
    #[must_use]
    pub fn of_nothing() -> Self {
        Self {
            method: Method::Other,
            version: Version::Http11,
            persistence: Persistence::Close,
            shared_origin: None,
        }
    }

    /// The method of the request.
    #[must_use]
    pub fn method(&self) -> Method {
        self.method
    }

    /// Whether the client can be told more than one head, and chunks.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// How a body of unknown length is framed for this client.
    #[must_use]
    pub fn stream_framing(&self) -> Framing {
        match self.version {
            Version::Http11 => Framing::Chunked,
            Version::Http10 => Framing::UntilClose,
        }
    }

    /// Whether the connection may carry another request after an answer in this framing.
    #[must_use]
    pub fn persistence(&self, state: &State, client: &Client, framing: Framing) -> Persistence {
        let is_kept = self.persistence == Persistence::KeepAlive
            && client.unread == Unread::Nothing
            && framing != Framing::UntilClose
            && !state.is_draining.get();
        if is_kept { Persistence::KeepAlive } else { Persistence::Close }
    }

    /// Appends the head of a pod's answer as it goes to the client, framed as `framing`.
    pub fn write_head(
        &self,
        state: &State,
        client: &Client,
        reply: (&ResponseHead, &[u8]),
        checked: Checked,
        framing: Framing,
        out: &mut Vec<u8>,
    ) {
        let (head, buffer) = reply;
        write_status(head.status, head.phrase.of(buffer), out);
        let is_shared = self.shared_origin.is_some();
        write_fields(&head.fields, buffer, out, |known| {
            let is_replaced = match checked {
                Checked::Yes => known == Known::ContentType,
                Checked::No => false,
            };
            // Only the proxy says that the proxy answered.
            if is_replaced
                || known == Known::RinggateFault
                || (is_shared && known == Known::AccessControl)
            {
                Fate::Removed
            } else {
                Fate::Kept
            }
        });
        if checked == Checked::Yes
            && let Some(value) = head.fields.value(buffer, Known::ContentType)
        {
            write_media_type(value, out);
        }
        self.write_shared(out);
        self.end_head(state, client, framing, out);
    }

    /// Sends a fault as the whole answer.
    ///
    /// # Errors
    ///
    /// The client is gone or does not read.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: the connection must be closed.
    pub async fn refuse(
        &self,
        state: &State,
        client: &mut Client,
        refused: &Refused,
    ) -> Result<Persistence, ReceiveError> {
        let fault = refused.fault;
        state.counters.count_fault(fault);
        tracing::debug!(reason = fault.row().reason, "refused");
        let mut body = Vec::new();
        let requested = refused.requested.as_deref();
        state.options.style.write_body(fault, refused.addressee(), requested, &mut body);
        let mut out = Vec::with_capacity(512 + body.len());
        let status = status(state, refused);
        write_status(status, phrase(status).as_bytes(), &mut out);
        let content_type: &[u8] = match refused.addressee() {
            Addressee::Unknown => b"text/plain; charset=utf-8",
            Addressee::Single(_) | Addressee::Batch(_) => b"application/json",
        };
        write_field(b"Content-Type", content_type, &mut out);
        write_field(b"X-Ringgate-Fault", fault.row().reason.as_bytes(), &mut out);
        if fault == Fault::MethodNotAllowed {
            write_field(b"Allow", b"POST, OPTIONS", &mut out);
        }
        if status == 503 {
            write_field(b"Retry-After", b"1", &mut out);
        }
        self.write_shared(&mut out);
        let framing = Framing::Length(body.len() as u64);
        write_date(state, &mut out);
        let persistence = self.end_head(state, client, framing, &mut out);
        if self.method != Method::Head {
            out.extend_from_slice(&body);
        }
        client.send(out, state.clock.deadline(state.options.limits.body_timeout)).await?;
        Ok(persistence)
    }

    /// Answers a CORS preflight (HT-5).
    ///
    /// # Errors
    ///
    /// The client is gone or does not read.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: the connection must be closed.
    pub async fn allow(
        &self,
        state: &State,
        client: &mut Client,
    ) -> Result<Persistence, ReceiveError> {
        let mut out = Vec::with_capacity(512);
        write_status(204, phrase(204).as_bytes(), &mut out);
        write_field(b"Access-Control-Allow-Methods", b"POST, GET, DELETE, OPTIONS", &mut out);
        write_field(
            b"Access-Control-Allow-Headers",
            b"Content-Type, Accept, Authorization, MCP-Protocol-Version, Mcp-Session-Id, \
              Last-Event-ID, Mcp-Method, Mcp-Name",
            &mut out,
        );
        write_field(b"Access-Control-Max-Age", b"600", &mut out);
        self.write_shared(&mut out);
        write_date(state, &mut out);
        let persistence = self.end_head(state, client, Framing::None, &mut out);
        client.send(out, state.clock.deadline(state.options.limits.body_timeout)).await?;
        Ok(persistence)
    }

    /// Appends what ends every final head: how the body is framed, and whether the connection ends.
    fn end_head(
        &self,
        state: &State,
        client: &Client,
        framing: Framing,
        out: &mut Vec<u8>,
    ) -> Persistence {
        write_framing(framing, out);
        let persistence = self.persistence(state, client, framing);
        if persistence == Persistence::Close {
            write_field(b"Connection", b"close", out);
        }
        out.extend_from_slice(b"\r\n");
        persistence
    }

    /// Lets a browser show the answer to the page of an allowed origin.
    fn write_shared(&self, out: &mut Vec<u8>) {
        let Some(origin) = &self.shared_origin else {
            return;
        };
        write_field(b"Access-Control-Allow-Origin", origin, out);
        write_field(
            b"Access-Control-Expose-Headers",
            b"Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate, X-Ringgate-Fault",
            out,
        );
        write_field(b"Vary", b"Origin", out);
    }
}

fn write_date(state: &State, out: &mut Vec<u8>) {
    out.extend_from_slice(b"Date: ");
    state.write_date(out);
    out.extend_from_slice(b"\r\n");
}

/// FA-3: faults of the proxy itself may be sent in-band to legacy requests, since one popular
/// client gives its whole session up at any other status but 404.
fn status(state: &State, refused: &Refused) -> u16 {
    let row = refused.fault.row();
    let is_in_band = state.options.legacy_fault_status == FaultStatus::InBand
        && refused.era == Some(Era::Legacy)
        && refused.ids != Ids::None
        && row.group == Group::Failed;
    if is_in_band { 200 } else { row.status }
}

/// Appends the head of an interim answer (1xx) of a pod.
pub fn write_interim((head, buffer): (&ResponseHead, &[u8]), out: &mut Vec<u8>) {
    write_status(head.status, head.phrase.of(buffer), out);
    write_fields(&head.fields, buffer, out, |known| {
        if known == Known::RinggateFault { Fate::Removed } else { Fate::Kept }
    });
    out.extend_from_slice(b"\r\n");
}

/// Appends the fault as the event that ends a stream (FA-4).
pub fn write_fault_event(state: &State, fault: Fault, id: &RequestId, out: &mut Vec<u8>) {
    state.counters.count_fault(fault);
    state.options.style.write_event(fault, id, out);
}

/// Writes the type in lower case: it is case-insensitive (RFC 9110, section 8.3.1), and a deployed
/// client that compares it byte for byte was measured to hang on `Text/Event-Stream`.
fn write_media_type(value: &[u8], out: &mut Vec<u8>) {
    let essence_bytes = essence(value).len();
    let (essence, parameters) = value.split_at(essence_bytes.min(value.len()));
    out.extend_from_slice(b"Content-Type: ");
    out.extend(essence.iter().map(u8::to_ascii_lowercase));
    out.extend_from_slice(parameters);
    out.extend_from_slice(b"\r\n");
}
