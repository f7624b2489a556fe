//! The stateless era of a demonstration pod: 2026-07-28. Each request says all that it needs, in
//! `_meta` and again in fields, and both must agree.
//!
//! Nothing here needs a capability of the client, so -32021 is never answered.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use super::answer::{self, Answer};
use super::message::{INVALID_PARAMS, METHOD_NOT_FOUND, Message, Refusal, Request, field};
use super::tools::{self, Called};
use crate::mcp::revision::MODERN;

const VERSION_FIELD: &str = "mcp-protocol-version";
const METHOD_FIELD: &str = "mcp-method";
const NAME_FIELD: &str = "mcp-name";

const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
const SERVER_KEY: &str = "io.modelcontextprotocol/serverInfo";

const HEADER_MISMATCH: i32 = -32_020;
const UNSUPPORTED_VERSION: i32 = -32_022;

/// How long a client may keep what a pod says of itself, in milliseconds.
const TTL_MS: u64 = 60_000;

/// Whether a POST is of this era: its body or its version field says so.
pub(super) fn is_meant(headers: &HeaderMap, body: &Value) -> bool {
    let is_enveloped =
        body.pointer("/params/_meta").is_some_and(|meta| meta.get(VERSION_KEY).is_some());
    is_enveloped || is_named(headers)
}

/// Whether the version field names this era.
pub(super) fn is_named(headers: &HeaderMap) -> bool {
    headers.get_all(VERSION_FIELD).iter().any(|version| version == MODERN)
}

/// Answers a POST of this era.
pub(super) fn post(pod: &str, headers: &HeaderMap, body: Value) -> Answer {
    match Message::read(body) {
        Ok(Message::Request(request)) => match respond(pod, headers, &request) {
            Ok(called) => answer::called(&request, &called),
            Err(refusal) => answer::refused(&request.id, &refusal),
        },
        Ok(Message::Notification) => answer::accepted(),
        Ok(Message::Response) => {
            answer::text(StatusCode::BAD_REQUEST, "this era has no responses of clients")
        }
        Err(malformed) => answer::malformed(&malformed),
    }
}

fn respond(pod: &str, headers: &HeaderMap, request: &Request) -> Result<Called, Refusal> {
    check_envelope(headers, request)?;
    check_fields(headers, request)?;
    let mut called = match request.method.as_str() {
        "server/discover" => discover(),
        "tools/list" => cacheable(tools::list(request)?),
        "tools/call" => tools::call(pod, request)?,
        _ => {
            let why = "there is no such method";
            return Err(Refusal::new(StatusCode::NOT_FOUND, METHOD_NOT_FOUND, why));
        }
    };
    called.result.insert("resultType".to_owned(), json!("complete"));
    let server = json!({ "name": pod, "version": env!("CARGO_PKG_VERSION") });
    called.result.insert("_meta".to_owned(), json!({ SERVER_KEY: server }));
    Ok(called)
}

/// The envelope is whole, its version agrees with the field, and is served.
fn check_envelope(headers: &HeaderMap, request: &Request) -> Result<(), Refusal> {
    let bad = |code, why: &str| Err(Refusal::new(StatusCode::BAD_REQUEST, code, why));
    let Some(version) = request.meta(VERSION_KEY) else {
        // The handshake of the other era under the version of this one: the field is what is wrong.
        return if request.method == "initialize" {
            bad(HEADER_MISMATCH, "MCP-Protocol-Version names a revision without initialize")
        } else {
            bad(INVALID_PARAMS, "params._meta lacks io.modelcontextprotocol/protocolVersion")
        };
    };
    let Some(version) = version.as_str() else {
        return bad(INVALID_PARAMS, "the protocolVersion of params._meta is not a string");
    };
    if !request.meta(CAPABILITIES_KEY).is_some_and(Value::is_object) {
        return bad(INVALID_PARAMS, "the clientCapabilities of params._meta are not an object");
    }
    match field(headers, VERSION_FIELD) {
        Ok(Some(named)) if named == version => {}
        _ => return bad(HEADER_MISMATCH, "MCP-Protocol-Version is not what params._meta says"),
    }
    if version != MODERN {
        let why = "this revision is not served without a handshake";
        let refusal = Refusal::new(StatusCode::BAD_REQUEST, UNSUPPORTED_VERSION, why);
        let data = Some(json!({ "supported": [MODERN], "requested": version }));
        return Err(Refusal { data, ..refusal });
    }
    Ok(())
}

/// The fields that say the method and the name again say the same.
fn check_fields(headers: &HeaderMap, request: &Request) -> Result<(), Refusal> {
    let bad = |why: &str| Err(Refusal::new(StatusCode::BAD_REQUEST, HEADER_MISMATCH, why));
    match field(headers, METHOD_FIELD) {
        Ok(Some(method)) if method == request.method => {}
        _ => return bad("Mcp-Method is not the method of the body"),
    }
    let key = match request.method.as_str() {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        _ => return Ok(()),
    };
    // A body without the name is refused for its params, not for its fields.
    let Some(expected) = request.text_param(key) else { return Ok(()) };
    match field(headers, NAME_FIELD) {
        Ok(Some(name)) if decoded(name).as_deref() == Some(expected) => Ok(()),
        _ => bad("Mcp-Name is not the name of the body"),
    }
}

/// What a field says: as it stands, or between the marks of its base64 form.
fn decoded(value: &str) -> Option<String> {
    let Some(encoded) = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="))
    else {
        return Some(value.to_owned());
    };
    String::from_utf8(STANDARD.decode(encoded).ok()?).ok()
}

fn discover() -> Called {
    cacheable(
        json!({
            "supportedVersions": [MODERN],
            "capabilities": { "tools": {} },
            "instructions": "A demonstration pod of ringgate. Try the tool where_am_i.",
        })
        .into(),
    )
}

/// All pods say the same, to everybody.
fn cacheable(mut called: Called) -> Called {
    called.result.insert("ttlMs".to_owned(), json!(TTL_MS));
    called.result.insert("cacheScope".to_owned(), json!("public"));
    called
}
