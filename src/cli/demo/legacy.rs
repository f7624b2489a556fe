//! The session-based era of a demonstration pod: 2025-03-26, 2025-06-18 and 2025-11-25.

use std::collections::VecDeque;
use std::fmt::Write;

use hyper::{HeaderMap, StatusCode};
use rustix::rand::{GetRandomFlags, getrandom};
use serde_json::{Value, json};

use super::answer::{self, Answer};
use super::message::{
    INTERNAL_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, Message, Refusal, Request, field,
    result_message,
};
use super::tools::{self, Called};

/// Oldest first.
const SERVED: [&str; 3] = [WITH_BATCHES, "2025-06-18", LATEST];
const LATEST: &str = "2025-11-25";
/// The one revision in which a client may send several messages as an array.
const WITH_BATCHES: &str = "2025-03-26";

const SESSIONS_MAX: usize = 1_024;
const SESSION_ID_BYTES: usize = 16;
const BATCH_MESSAGES_MAX: usize = 64;

const SESSION_FIELD: &str = "mcp-session-id";
const VERSION_FIELD: &str = "mcp-protocol-version";

/// The sessions of one pod, oldest first. A full table gives up its oldest.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    open: VecDeque<Session>,
}

#[derive(Debug)]
struct Session {
    id: String,
    /// What was agreed upon at `initialize`.
    revision: &'static str,
}

impl Sessions {
    /// Opens a session and returns its id, 128 random bits in hexadecimal digits.
    fn open(&mut self, revision: &'static str) -> Result<String, Refusal> {
        let mut bits = [0; SESSION_ID_BYTES];
        let drawn = getrandom(&mut bits[..], GetRandomFlags::empty());
        if drawn != Ok(SESSION_ID_BYTES) {
            let why = "the system gives no random bytes";
            return Err(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, INTERNAL_ERROR, why));
        }
        let mut id = String::with_capacity(2 * SESSION_ID_BYTES);
        for byte in bits {
            write!(id, "{byte:02x}").expect("a string takes any text");
        }
        if self.open.len() == SESSIONS_MAX {
            self.open.pop_front();
        }
        self.open.push_back(Session { id: id.clone(), revision });
        Ok(id)
    }

    /// The session that a request names.
    fn named(&self, headers: &HeaderMap) -> Result<&Session, Refusal> {
        let refuse = |status, why: &str| Err(Refusal::new(status, INVALID_REQUEST, why));
        let Ok(id) = field(headers, SESSION_FIELD) else {
            return refuse(StatusCode::BAD_REQUEST, "Mcp-Session-Id is repeated");
        };
        let Some(id) = id else {
            return refuse(StatusCode::BAD_REQUEST, "Mcp-Session-Id is missing");
        };
        match self.open.iter().find(|session| session.id == id) {
            Some(session) => Ok(session),
            None => refuse(StatusCode::NOT_FOUND, "there is no such session"),
        }
    }

    fn close(&mut self, headers: &HeaderMap) -> Result<(), Refusal> {
        let id = self.named(headers)?.id.clone();
        self.open.retain(|session| session.id != id);
        Ok(())
    }
}

/// Answers a POST of this era.
pub(super) fn post(pod: &str, sessions: &mut Sessions, headers: &HeaderMap, body: Value) -> Answer {
    if let Value::Array(messages) = body {
        return batch(pod, sessions, headers, messages);
    }
    match Message::read(body) {
        Ok(Message::Request(request)) => match respond(pod, sessions, headers, &request) {
            Ok(answer) => answer,
            Err(refusal) => answer::refused(&request.id, &refusal),
        },
        Ok(Message::Notification | Message::Response) => match admit(sessions, headers) {
            Ok(_) => answer::accepted(),
            Err(refusal) => answer::text(refusal.status, &refusal.message),
        },
        Err(malformed) => answer::malformed(&malformed),
    }
}

/// Answers a DELETE: ends the session.
pub(super) fn delete(sessions: &mut Sessions, headers: &HeaderMap) -> Answer {
    match sessions.close(headers) {
        Ok(()) => answer::empty(StatusCode::NO_CONTENT),
        Err(refusal) => answer::text(refusal.status, &refusal.message),
    }
}

fn respond(
    pod: &str,
    sessions: &mut Sessions,
    headers: &HeaderMap,
    request: &Request,
) -> Result<Answer, Refusal> {
    if request.method == "initialize" {
        return initialize(pod, sessions, request);
    }
    admit(sessions, headers)?;
    Ok(answer::called(request, &call(pod, request)?))
}

fn initialize(pod: &str, sessions: &mut Sessions, request: &Request) -> Result<Answer, Refusal> {
    let asked = request.text_param("protocolVersion");
    let revision = SERVED.into_iter().find(|served| asked == Some(served)).unwrap_or(LATEST);
    let id = sessions.open(revision)?;
    let result = Called::from(json!({
        "protocolVersion": revision,
        "capabilities": { "tools": {} },
        "serverInfo": { "name": pod, "version": env!("CARGO_PKG_VERSION") },
    }));
    let mut answer = answer::called(request, &result);
    let id = id.parse().expect("hexadecimal digits are a field value");
    answer.headers_mut().insert(SESSION_FIELD, id);
    Ok(answer)
}

/// What holds for every message but `initialize`: a session, and a version that is served.
fn admit<'a>(sessions: &'a Sessions, headers: &HeaderMap) -> Result<&'a Session, Refusal> {
    let session = sessions.named(headers)?;
    match field(headers, VERSION_FIELD) {
        Ok(version) if version.is_none_or(|version| SERVED.contains(&version)) => Ok(session),
        _ => {
            let why = "MCP-Protocol-Version names no revision that is served";
            Err(Refusal::new(StatusCode::BAD_REQUEST, INVALID_REQUEST, why))
        }
    }
}

fn call(pod: &str, request: &Request) -> Result<Called, Refusal> {
    match request.method.as_str() {
        "ping" => Ok(json!({}).into()),
        "tools/list" => tools::list(request),
        "tools/call" => tools::call(pod, request),
        _ => Err(Refusal::in_band(METHOD_NOT_FOUND, "there is no such method")),
    }
}

/// Answers an array. What is wrong with the array itself is told in plain text, since no one id
/// stands for it. Nothing is counted here: the results come at once.
fn batch(pod: &str, sessions: &Sessions, headers: &HeaderMap, messages: Vec<Value>) -> Answer {
    let session = match admit(sessions, headers) {
        Ok(session) => session,
        Err(refusal) => return answer::text(refusal.status, &refusal.message),
    };
    let refuse = |why| answer::text(StatusCode::BAD_REQUEST, why);
    if session.revision != WITH_BATCHES {
        return refuse("arrays of messages are not part of this revision");
    }
    if messages.is_empty() || BATCH_MESSAGES_MAX < messages.len() {
        return refuse("an array has 1 to 64 messages");
    }
    let mut answers = Vec::new();
    for message in messages {
        match Message::read(message) {
            Ok(Message::Request(request)) => answers.push(batched(pod, &request)),
            Ok(Message::Notification | Message::Response) => {}
            Err(malformed) => return refuse(malformed.why),
        }
    }
    if answers.is_empty() {
        return answer::accepted();
    }
    answer::message(StatusCode::OK, &Value::Array(answers))
}

/// The answer to one request of an array; `initialize` is no method there.
fn batched(pod: &str, request: &Request) -> Value {
    match call(pod, request) {
        Ok(called) => result_message(&request.id, &called.result),
        Err(refusal) => refusal.to_message(&request.id),
    }
}
