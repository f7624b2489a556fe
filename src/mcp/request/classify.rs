//! Places a message in its era (RC-2) and holds its mirrored fields against it (RC-4).
//!
//! The order of the checks is that of deployed servers: envelope, version field, version served,
//! then the other fields (MCP 2026-07-28, Streamable HTTP, Server Validation).

use super::read::{Batch, Kind, Message, Refusal, Single};
use crate::ids::RequestId;
use crate::json::unescape;
use crate::mcp::fault::Fault;
use crate::mcp::headers::{Mirrored, agrees, decode};
use crate::mcp::revision::{Era, Named};

/// What a client asks of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its era. Nothing that guards hangs on it: a client can claim what it likes.
    pub era: Era,
    /// Its shape.
    pub kind: CallKind,
    /// The requests that wait for answers.
    pub ids: Ids,
    /// Whether it opens a legacy session.
    pub is_initialize: bool,
}

/// The shapes of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    /// One request.
    Request,
    /// One notification.
    Notification,
    /// One response.
    Response,
    /// An array.
    Batch,
    /// An array with `initialize` in it. Every revision forbids it, since it would open a session
    /// past the guard; the guard refuses it, after it has looked at the session.
    OpeningBatch,
}

/// The requests of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ids {
    /// None, or none that is known.
    None,
    /// The one.
    One(RequestId),
    /// Those of an array; at least one.
    Many(Vec<RequestId>),
}

/// Places a message in its era.
///
/// # Errors
///
/// The message is a modern request that is malformed: [`Fault::MetaInvalid`],
/// [`Fault::VersionUnsupported`] or [`Fault::HeaderMismatch`].
pub fn classify(message: Message<'_>, mirrored: &Mirrored<'_>) -> Result<Call, Refusal> {
    let single = match message {
        Message::Batch(Batch { ids, has_initialize }) => {
            let ids = if ids.is_empty() { Ids::None } else { Ids::Many(ids) };
            let kind = if has_initialize { CallKind::OpeningBatch } else { CallKind::Batch };
            return Ok(Call { era: Era::Legacy, kind, ids, is_initialize: false });
        }
        Message::Single(single) => single,
    };
    let kind = match single.kind() {
        Kind::Request => CallKind::Request,
        Kind::Notification => CallKind::Notification,
        Kind::Response => CallKind::Response,
    };
    if kind != CallKind::Request {
        return Ok(Call { era: Era::Legacy, kind, ids: Ids::None, is_initialize: false });
    }
    let refuse = |fault, requested: Option<&[u8]>| Refusal {
        fault,
        id: single.id.clone(),
        requested: requested.map(quote),
        is_json_rpc_shaped: true,
    };
    let era =
        era(&single, mirrored).map_err(|fault| refuse(fault, single.meta.protocol_version))?;
    if era == Era::Modern {
        check_mirrored(&single, mirrored).map_err(|fault| refuse(fault, None))?;
    }
    let is_initialize = era == Era::Legacy && single.method.as_deref() == Some("initialize");
    let ids = single.id.map_or(Ids::None, Ids::One);
    Ok(Call { era, kind, ids, is_initialize })
}

/// The era of a request: its `_meta` against its `MCP-Protocol-Version`.
///
/// | `_meta` names | field absent | field legacy | field modern | field unknown |
/// |---|---|---|---|---|
/// | nothing, no reserved key | legacy | legacy | `meta_invalid` | legacy |
/// | nothing, but a reserved key | `meta_invalid` | legacy | `meta_invalid` | legacy |
/// | a legacy revision | unsupported | legacy | mismatch | unsupported |
/// | the modern revision | mismatch | mismatch | modern | mismatch |
/// | something unknown | mismatch | mismatch | mismatch | unsupported, or mismatch |
///
/// `initialize` that names no modern revision in its `_meta` is legacy in every row, since a client
/// that opens a session can do so by no other request. An unknown version in a field alone goes to
/// the pod, which knows what it serves.
///
/// # Errors
///
/// [`Fault::MetaInvalid`], [`Fault::VersionUnsupported`] or [`Fault::HeaderMismatch`].
fn era(single: &Single<'_>, mirrored: &Mirrored<'_>) -> Result<Era, Fault> {
    let field = Named::of(mirrored.protocol_version);
    let version = single.meta.protocol_version.and_then(unescape);
    let version = version.as_deref().map(str::as_bytes);
    let body = match Named::of(version) {
        // Half a surrogate pair is no text, but it is there.
        Named::Nothing if single.meta.protocol_version.is_some_and(|text| !text.is_empty()) => {
            Named::Unknown
        }
        named @ (Named::Nothing | Named::Legacy | Named::Modern | Named::Unknown) => named,
    };
    if single.method.as_deref() == Some("initialize") && body != Named::Modern {
        return Ok(Era::Legacy);
    }
    match (body, field) {
        (Named::Nothing, Named::Modern) => Err(Fault::MetaInvalid),
        (Named::Nothing, Named::Nothing) if single.meta.is_reserved => Err(Fault::MetaInvalid),
        (Named::Nothing | Named::Legacy, Named::Legacy)
        | (Named::Nothing, Named::Nothing | Named::Unknown) => Ok(Era::Legacy),
        (Named::Modern, Named::Modern) if !single.meta.has_capabilities => Err(Fault::MetaInvalid),
        (Named::Modern, Named::Modern) => Ok(Era::Modern),
        (Named::Modern, Named::Nothing | Named::Legacy | Named::Unknown)
        | (Named::Unknown, Named::Nothing | Named::Legacy)
        | (Named::Legacy | Named::Unknown, Named::Modern) => Err(Fault::HeaderMismatch),
        (Named::Unknown, Named::Unknown) if mirrored.protocol_version != version => {
            Err(Fault::HeaderMismatch)
        }
        (Named::Legacy, Named::Nothing | Named::Unknown) | (Named::Unknown, Named::Unknown) => {
            Err(Fault::VersionUnsupported)
        }
    }
}

/// RC-4: the fields of a modern request say what its body says.
fn check_mirrored(single: &Single<'_>, mirrored: &Mirrored<'_>) -> Result<(), Fault> {
    let method = single.method.as_deref().unwrap_or_default();
    if mirrored.method != Some(method.as_bytes()) {
        return Err(Fault::HeaderMismatch);
    }
    let (named, is_required) = match method {
        "tools/call" | "prompts/get" => (&single.name, true),
        "resources/read" => (&single.uri, true),
        "tasks/get" | "tasks/update" | "tasks/cancel" => (&single.task_id, true),
        _ => (&single.name, false),
    };
    let agrees = match (mirrored.name, named) {
        (Some(field), Some(text)) => agrees(field, text),
        // What the body leaves out the pod refuses; a field for it is one too many.
        (Some(_), None) | (None, Some(_)) => !is_required,
        (None, None) => true,
    };
    let is_decodable = |value: &&[u8]| decode(value).is_ok();
    let name_is_decodable = mirrored.name.is_none_or(|name| decode(name).is_ok());
    if agrees && name_is_decodable && mirrored.params.iter().all(is_decodable) {
        Ok(())
    } else {
        Err(Fault::HeaderMismatch)
    }
}

fn quote(text: &[u8]) -> Box<[u8]> {
    [b"\"", text, b"\""].concat().into_boxed_slice()
}
