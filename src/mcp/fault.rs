//! The one table of answers that the proxy itself makes (FA-1 to FA-5). Pure; any shard.
//!
//! A fault is a row: HTTP status, JSON-RPC code, reason, message. It carries nothing of a peer but
//! the caller's own id and, for an unsupported version, the version the caller asked for.

use crate::ids::RequestId;

/// Why the proxy answers instead of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each variant is documented by its row")]
pub enum Fault {
    BatchRefused,
    BodyFraming,
    BodyTooLarge,
    ConnectionNominates,
    Draining,
    DuplicateKey,
    FieldDuplicated,
    HeadMalformed,
    HeadTooLarge,
    HeaderMismatch,
    HostForbidden,
    IdInvalid,
    MessageInvalid,
    MetaInvalid,
    MethodNotAllowed,
    NoServingPod,
    NotJson,
    OriginForbidden,
    Overloaded,
    RequestTimeout,
    SessionUnknown,
    TargetTooLong,
    UpstreamClosed,
    UpstreamEncoded,
    UpstreamEventTooLarge,
    UpstreamMalformed,
    UpstreamMediaType,
    UpstreamNoAnswer,
    UpstreamNotJson,
    UpstreamNotJsonRpc,
    UpstreamRedirect,
    UpstreamTimeout,
    UpstreamTooLarge,
    UpstreamUnreachable,
    UpstreamWrongId,
    VersionUnsupported,
    VersionOfHttpUnsupported,
}

/// What a fault says about the proxy's part in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// The proxy or what stands behind it could not do it.
    Failed,
    /// The proxy would not do it.
    Denied,
    /// The proxy does not know how to do it.
    Unsupported,
}

/// One fault, defined. Status, body, metrics label and documentation are read off this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// HTTP status.
    pub status: u16,
    /// JSON-RPC error code.
    pub code: i32,
    /// The proxy's part.
    pub group: Group,
    /// `error.data.reason` and the value of `X-Ringgate-Fault`.
    pub reason: &'static str,
    /// `error.message`.
    pub message: &'static str,
}

/// Code of [`Group::Unsupported`].
pub const CODE_UNSUPPORTED: i32 = -31_997;
/// Code of [`Group::Failed`].
pub const CODE_FAILED: i32 = -31_998;
/// Code of [`Group::Denied`].
pub const CODE_DENIED: i32 = -31_999;
/// What older peers give for all three (`--fault-codes legacy`).
pub const CODE_LEGACY: i32 = -32_000;

const PARSE_ERROR: i32 = -32_700;
const INVALID_REQUEST: i32 = -32_600;
const INVALID_PARAMS: i32 = -32_602;
const SESSION_NOT_FOUND: i32 = -32_001;
const HEADER_MISMATCH: i32 = -32_020;
const UNSUPPORTED_VERSION: i32 = -32_022;

impl Row {
    const fn failed(status: u16, reason: &'static str, message: &'static str) -> Self {
        Self { status, code: CODE_FAILED, group: Group::Failed, reason, message }
    }

    const fn denied(status: u16, reason: &'static str, message: &'static str) -> Self {
        Self { status, code: CODE_DENIED, group: Group::Denied, reason, message }
    }

    const fn unsupported(status: u16, reason: &'static str, message: &'static str) -> Self {
        Self { status, code: CODE_UNSUPPORTED, group: Group::Unsupported, reason, message }
    }

    const fn with_code(self, code: i32) -> Self {
        Self { code, ..self }
    }
}

impl Fault {
    /// Every fault, in the order of the documentation.
    pub const ALL: [Self; 37] = [
        Self::BatchRefused,
        Self::BodyFraming,
        Self::BodyTooLarge,
        Self::ConnectionNominates,
        Self::Draining,
        Self::DuplicateKey,
        Self::FieldDuplicated,
        Self::HeadMalformed,
        Self::HeadTooLarge,
        Self::HeaderMismatch,
        Self::HostForbidden,
        Self::IdInvalid,
        Self::MessageInvalid,
        Self::MetaInvalid,
        Self::MethodNotAllowed,
        Self::NoServingPod,
        Self::NotJson,
        Self::OriginForbidden,
        Self::Overloaded,
        Self::RequestTimeout,
        Self::SessionUnknown,
        Self::TargetTooLong,
        Self::UpstreamClosed,
        Self::UpstreamEncoded,
        Self::UpstreamEventTooLarge,
        Self::UpstreamMalformed,
        Self::UpstreamMediaType,
        Self::UpstreamNoAnswer,
        Self::UpstreamNotJson,
        Self::UpstreamNotJsonRpc,
        Self::UpstreamRedirect,
        Self::UpstreamTimeout,
        Self::UpstreamTooLarge,
        Self::UpstreamUnreachable,
        Self::UpstreamWrongId,
        Self::VersionUnsupported,
        Self::VersionOfHttpUnsupported,
    ];

    /// The one definition of this fault.
    #[must_use]
    #[expect(clippy::too_many_lines, reason = "one row a fault")]
    pub const fn row(self) -> Row {
        match self {
            Self::BatchRefused => {
                Row::denied(400, "batch_refused", "Arrays of messages are not accepted here")
                    .with_code(INVALID_REQUEST)
            }
            Self::BodyFraming => {
                Row::denied(400, "body_framing", "The request body is not framed as HTTP/1.1 asks")
            }
            Self::BodyTooLarge => {
                Row::denied(413, "body_too_large", "The request body is larger than the limit")
            }
            Self::ConnectionNominates => Row::denied(
                400,
                "connection_nominates",
                "Connection names a field that must reach the pod",
            ),
            Self::Draining => Row::failed(503, "draining", "The proxy is shutting down"),
            Self::DuplicateKey => Row::denied(
                400,
                "duplicate_key",
                "A key of the message occurs twice or in a second spelling",
            )
            .with_code(INVALID_REQUEST),
            Self::FieldDuplicated => {
                Row::denied(400, "field_duplicated", "A field that must be single occurs twice")
                    .with_code(HEADER_MISMATCH)
            }
            Self::HeadMalformed => {
                Row::denied(400, "head_malformed", "The request head is not valid HTTP/1.1")
            }
            Self::HeadTooLarge => {
                Row::denied(431, "head_too_large", "The request head is larger than the limit")
            }
            Self::HeaderMismatch => Row::denied(
                400,
                "header_mismatch",
                "A mirrored header is missing, malformed or differs from the body",
            )
            .with_code(HEADER_MISMATCH),
            Self::HostForbidden => {
                Row::denied(403, "host_forbidden", "The Host of the request is not served here")
            }
            Self::IdInvalid => {
                Row::denied(400, "id_invalid", "The id is not a string or an integer")
                    .with_code(INVALID_REQUEST)
            }
            Self::MessageInvalid => {
                Row::denied(400, "message_invalid", "The body is not a JSON-RPC 2.0 message")
                    .with_code(INVALID_REQUEST)
            }
            Self::MetaInvalid => {
                Row::denied(400, "meta_invalid", "params._meta names no valid protocol version")
                    .with_code(INVALID_PARAMS)
            }
            Self::MethodNotAllowed => Row::unsupported(
                405,
                "method_not_allowed",
                "The stateless revision is served by POST only",
            ),
            Self::NoServingPod => Row::failed(503, "no_serving_pod", "No pod takes requests now"),
            Self::NotJson => Row::denied(400, "not_json", "The request body is not valid JSON")
                .with_code(PARSE_ERROR),
            Self::OriginForbidden => {
                Row::denied(403, "origin_forbidden", "The Origin of the request is not allowed")
            }
            Self::Overloaded => {
                Row::failed(503, "overloaded", "The proxy is at its limit; try again")
            }
            Self::RequestTimeout => {
                Row::failed(408, "request_timeout", "The request did not arrive in time")
            }
            Self::SessionUnknown => Row::denied(404, "session_unknown", "Session not found")
                .with_code(SESSION_NOT_FOUND),
            Self::TargetTooLong => {
                Row::denied(414, "target_too_long", "The request target is longer than the limit")
            }
            Self::UpstreamClosed => Row::failed(
                502,
                "upstream_closed",
                "The pod ended its answer before it was complete",
            ),
            Self::UpstreamEncoded => Row::failed(
                502,
                "upstream_encoded",
                "The pod encoded an answer that can't be checked",
            ),
            Self::UpstreamEventTooLarge => Row::failed(
                502,
                "upstream_event_too_large",
                "The pod sent an event larger than the limit",
            ),
            Self::UpstreamMalformed => {
                Row::failed(502, "upstream_malformed", "The pod's answer is not valid HTTP/1.1")
            }
            Self::UpstreamMediaType => Row::failed(
                502,
                "upstream_media_type",
                "The pod's answer to a request is neither JSON nor an event stream",
            ),
            Self::UpstreamNoAnswer => Row::failed(
                502,
                "upstream_no_answer",
                "The pod ended the stream without answering the request",
            ),
            Self::UpstreamNotJson => {
                Row::failed(502, "upstream_not_json", "The pod's answer is not valid JSON")
            }
            Self::UpstreamNotJsonRpc => Row::failed(
                502,
                "upstream_not_json_rpc",
                "The pod's answer is not a valid JSON-RPC message",
            ),
            Self::UpstreamRedirect => Row::failed(
                502,
                "upstream_redirect",
                "The pod redirects credentials to another origin",
            ),
            Self::UpstreamTimeout => {
                Row::failed(504, "upstream_timeout", "The pod did not answer in time")
            }
            Self::UpstreamTooLarge => {
                Row::failed(502, "upstream_too_large", "The pod's answer is larger than the limit")
            }
            Self::UpstreamUnreachable => {
                Row::failed(502, "upstream_unreachable", "The pod can't be reached")
            }
            Self::UpstreamWrongId => Row::failed(
                502,
                "upstream_wrong_id",
                "The pod's answer carries an id that was not asked",
            ),
            Self::VersionUnsupported => Row::unsupported(
                400,
                "protocol_version_unsupported",
                "The protocol version is not supported",
            )
            .with_code(UNSUPPORTED_VERSION),
            Self::VersionOfHttpUnsupported => Row::unsupported(
                505,
                "http_version_unsupported",
                "Only HTTP/1.0 and 1.1 are served",
            ),
        }
    }
}

/// Whom a fault answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addressee<'a> {
    /// No id can be known: the body is plain text, since an id-less JSON-RPC error hangs clients.
    Unknown,
    /// One request.
    Single(&'a RequestId),
    /// The requests of an array.
    Batch(&'a [RequestId]),
}

/// How faults are rendered; set by the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Style {
    /// `error.data.origin` (`--origin`).
    pub origin: String,
    /// Codes of the three groups.
    pub codes: Codes,
}

/// Which codes the three groups have (`--fault-codes`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codes {
    /// -31997, -31998 and -31999, outside every reserved block.
    Own,
    /// -32000, as older peers do.
    Legacy,
}

impl Default for Style {
    fn default() -> Self {
        Self { origin: "ringgate".to_owned(), codes: Codes::Own }
    }
}

impl Style {
    /// Appends the body of `fault` to `out`: one JSON-RPC error, an array of them, or a line of
    /// text.
    ///
    /// `requested` is the raw JSON string of the protocol version that the caller asked for; it is
    /// used by [`Fault::VersionUnsupported`] only.
    pub fn write_body(
        &self,
        fault: Fault,
        addressee: Addressee<'_>,
        requested: Option<&[u8]>,
        out: &mut Vec<u8>,
    ) {
        match addressee {
            Addressee::Unknown | Addressee::Batch([]) => {
                out.extend_from_slice(self.origin.as_bytes());
                out.extend_from_slice(b": ");
                out.extend_from_slice(fault.row().message.as_bytes());
                out.push(b'\n');
            }
            Addressee::Single(id) => self.write_error(fault, id, requested, out),
            Addressee::Batch(ids) => {
                for (index, id) in ids.iter().enumerate() {
                    out.push(if index == 0 { b'[' } else { b',' });
                    self.write_error(fault, id, requested, out);
                }
                out.push(b']');
            }
        }
    }

    /// Appends `fault` as one `message` event (FA-4).
    pub fn write_event(&self, fault: Fault, id: &RequestId, out: &mut Vec<u8>) {
        out.extend_from_slice(b"event: message\ndata: ");
        self.write_error(fault, id, None, out);
        out.extend_from_slice(b"\n\n");
    }

    fn write_error(
        &self,
        fault: Fault,
        id: &RequestId,
        requested: Option<&[u8]>,
        out: &mut Vec<u8>,
    ) {
        let row = fault.row();
        out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
        out.extend_from_slice(id.token());
        out.extend_from_slice(b",\"error\":{\"code\":");
        out.extend_from_slice(itoa::Buffer::new().format(self.code(row)).as_bytes());
        out.extend_from_slice(b",\"message\":\"");
        out.extend_from_slice(row.message.as_bytes());
        out.extend_from_slice(b"\",\"data\":{\"origin\":\"");
        out.extend_from_slice(self.origin.as_bytes());
        out.extend_from_slice(b"\",\"reason\":\"");
        out.extend_from_slice(row.reason.as_bytes());
        out.push(b'"');
        if fault == Fault::VersionUnsupported {
            out.extend_from_slice(b",\"supported\":[\"2026-07-28\"],\"requested\":");
            out.extend_from_slice(requested.unwrap_or(b"\"\""));
        }
        out.extend_from_slice(b"}}}");
    }

    fn code(&self, row: Row) -> i32 {
        let is_own = matches!(row.code, CODE_DENIED | CODE_FAILED | CODE_UNSUPPORTED);
        match self.codes {
            Codes::Legacy if is_own => CODE_LEGACY,
            Codes::Own | Codes::Legacy => row.code,
        }
    }
}
