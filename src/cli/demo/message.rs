//! What a demonstration pod is sent and what it says: JSON-RPC messages, apart from eras. Not for
//! the proxy itself, which keeps the bytes of a peer as they are.

use hyper::{HeaderMap, StatusCode};
use serde_json::{Map, Value, json};

pub(super) type Object = Map<String, Value>;

/// A message that asks for an answer. `id` is a string or an integer of 64 bits.
#[derive(Debug)]
pub(super) struct Request {
    pub id: Value,
    pub method: String,
    pub params: Object,
}

/// One message of a client.
#[derive(Debug)]
pub(super) enum Message {
    Request(Request),
    /// Nothing that these pods act upon, so neither method nor params are kept.
    Notification,
    /// To a request that these pods never make.
    Response,
}

/// Why a message can't be read; with its id, if at least that could be.
#[derive(Debug)]
pub(super) struct Malformed {
    pub id: Option<Value>,
    pub why: &'static str,
}

/// A field that must not be repeated was.
#[derive(Clone, Copy, Debug)]
pub(super) struct Repeated;

/// A JSON-RPC error and the status that carries it.
#[derive(Debug)]
pub(super) struct Refusal {
    pub status: StatusCode,
    pub code: i32,
    pub message: String,
    pub data: Option<Value>,
}

pub(super) const INVALID_REQUEST: i32 = -32_600;
pub(super) const METHOD_NOT_FOUND: i32 = -32_601;
pub(super) const INVALID_PARAMS: i32 = -32_602;
pub(super) const INTERNAL_ERROR: i32 = -32_603;

impl Message {
    /// Reads one message.
    ///
    /// # Errors
    ///
    /// [`Malformed`] if it is not JSON-RPC 2.0 as MCP restricts it: no id but strings and integers,
    /// no params but objects.
    pub(super) fn read(value: Value) -> Result<Self, Malformed> {
        let malformed = |id, why| Err(Malformed { id, why });
        let Value::Object(mut members) = value else {
            return malformed(None, "the message is not an object");
        };
        let id = match members.remove("id") {
            None => None,
            Some(id) if id.is_string() || id.is_i64() || id.is_u64() => Some(id),
            Some(_) => return malformed(None, "the id is neither a string nor a 64-bit integer"),
        };
        if members.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return malformed(id, "the message does not say that it is JSON-RPC 2.0");
        }
        let method = match members.remove("method") {
            Some(Value::String(method)) => method,
            None if members.contains_key("result") || members.contains_key("error") => {
                return Ok(Self::Response);
            }
            _ => return malformed(id, "the method is missing or not a string"),
        };
        let params = match members.remove("params") {
            None => Object::new(),
            Some(Value::Object(params)) => params,
            Some(_) => return malformed(id, "the params are not an object"),
        };
        match id {
            Some(id) => Ok(Self::Request(Request { id, method, params })),
            None => Ok(Self::Notification),
        }
    }
}

impl Request {
    /// A member of `params._meta`.
    pub(super) fn meta(&self, key: &str) -> Option<&Value> {
        self.params.get("_meta")?.get(key)
    }

    pub(super) fn text_param(&self, key: &str) -> Option<&str> {
        self.params.get(key)?.as_str()
    }
}

impl Refusal {
    pub(super) fn new(status: StatusCode, code: i32, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), data: None }
    }

    /// Of a request that was understood, so the error travels as an answer like any other.
    pub(super) fn in_band(code: i32, message: impl Into<String>) -> Self {
        Self::new(StatusCode::OK, code, message)
    }

    pub(super) fn to_message(&self, id: &Value) -> Value {
        let mut error = json!({ "code": self.code, "message": self.message });
        if let Some(data) = &self.data {
            error["data"] = data.clone();
        }
        json!({ "jsonrpc": "2.0", "id": id, "error": error })
    }
}

pub(super) fn result_message(id: &Value, result: &Object) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// The value of a field that may stand once.
///
/// # Errors
///
/// [`Repeated`] if it stands more than once. A value that is not ASCII text reads as the empty one,
/// which none of these fields may have.
pub(super) fn field<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Repeated> {
    let mut values = headers.get_all(name).iter();
    let value = values.next();
    if values.next().is_some() {
        return Err(Repeated);
    }
    Ok(value.map(|value| value.to_str().unwrap_or_default().trim()))
}
