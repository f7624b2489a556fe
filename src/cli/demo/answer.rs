//! HTTP answers of a demonstration pod, and the body that counts.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use hyper::{HeaderMap, Response, StatusCode};
use serde_json::{Value, json};
use tokio::time::{Sleep, sleep};

use super::message::{INVALID_REQUEST, Malformed, Refusal, Request, result_message};
use super::tools::{Called, Count};

pub(super) type Answer = Response<Body>;

/// The body of an answer.
pub(super) enum Body {
    /// Not yet sent bytes, all in one frame.
    Whole(Bytes),
    /// An event stream. It is counted where it is sent, so a client that leaves ends the count.
    Counting(Box<Counting>),
}

/// An event stream underway: `counted` steps are told.
pub(super) struct Counting {
    count: Count,
    counted: u64,
    progress_token: Option<Value>,
    /// The last event; taken once it is sent.
    result: Option<Value>,
    next_step: Pin<Box<Sleep>>,
}

/// Answers a request with what its call gave.
pub(super) fn called(request: &Request, called: &Called) -> Answer {
    let result = result_message(&request.id, &called.result);
    let Some(count) = called.count else {
        return message(StatusCode::OK, &result);
    };
    let token = request.meta("progressToken").filter(|token| token.is_string() || token.is_i64());
    let counting = Counting {
        count,
        counted: 0,
        progress_token: token.cloned(),
        result: Some(result),
        next_step: Box::pin(sleep(count.delay)),
    };
    let mut answer = Response::new(Body::Counting(Box::new(counting)));
    set(answer.headers_mut(), CONTENT_TYPE, "text/event-stream");
    set(answer.headers_mut(), CACHE_CONTROL, "no-cache");
    set(answer.headers_mut(), "x-accel-buffering", "no");
    answer
}

/// Answers a request with an error that carries its id.
pub(super) fn refused(id: &Value, refusal: &Refusal) -> Answer {
    message(refusal.status, &refusal.to_message(id))
}

/// Answers what can't be read: with its id if that is known, else in plain text. A JSON-RPC error
/// without an id, or with a null one, leaves some clients waiting for good.
pub(super) fn malformed(malformed: &Malformed) -> Answer {
    match &malformed.id {
        Some(id) => {
            refused(id, &Refusal::new(StatusCode::BAD_REQUEST, INVALID_REQUEST, malformed.why))
        }
        None => text(StatusCode::BAD_REQUEST, malformed.why),
    }
}

/// An answer of one JSON value.
pub(super) fn message(status: StatusCode, message: &Value) -> Answer {
    whole(status, "application/json", message.to_string())
}

/// An answer for people, where no request can be named.
pub(super) fn text(status: StatusCode, text: &str) -> Answer {
    whole(status, "text/plain; charset=utf-8", format!("{text}\n"))
}

/// The answer to notifications and to responses.
pub(super) fn accepted() -> Answer {
    empty(StatusCode::ACCEPTED)
}

/// An answer that is only its status.
pub(super) fn empty(status: StatusCode) -> Answer {
    let mut answer = Response::new(Body::Whole(Bytes::new()));
    *answer.status_mut() = status;
    answer
}

/// The answer to another method than `allowed`.
pub(super) fn not_allowed(allowed: &'static str) -> Answer {
    let mut answer = text(StatusCode::METHOD_NOT_ALLOWED, "this method is not served here");
    set(answer.headers_mut(), ALLOW, allowed);
    answer
}

fn whole(status: StatusCode, kind: &'static str, body: String) -> Answer {
    let mut answer = Response::new(Body::Whole(Bytes::from(body)));
    *answer.status_mut() = status;
    set(answer.headers_mut(), CONTENT_TYPE, kind);
    answer
}

fn set(headers: &mut HeaderMap, name: impl hyper::header::IntoHeaderName, value: &'static str) {
    headers.insert(name, hyper::header::HeaderValue::from_static(value));
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Self::Counting(counting) => {
                let event = counting.poll_event(context);
                event.map(|event| event.map(|event| Ok(Frame::data(event))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_empty(),
            Self::Counting(counting) => counting.result.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Counting(_) => SizeHint::default(),
        }
    }
}

impl Counting {
    /// The next event, or none once the result is sent.
    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        while self.counted < self.count.to {
            if self.next_step.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            self.counted += 1;
            let next = self.next_step.deadline() + self.count.delay;
            self.next_step.as_mut().reset(next);
            if let Some(token) = &self.progress_token {
                return Poll::Ready(Some(event(&self.progress(token))));
            }
        }
        Poll::Ready(self.result.take().map(|result| event(&result)))
    }

    fn progress(&self, token: &Value) -> Value {
        json!({
            "jsonrpc": "2.0",
            "method": "notifications/progress",
            "params": {
                "progressToken": token,
                "progress": self.counted,
                "total": self.count.to,
            },
        })
    }
}

/// One event. JSON in one line has no line feed, so one `data` line holds it.
fn event(message: &Value) -> Bytes {
    Bytes::from(format!("event: message\ndata: {message}\n\n"))
}
