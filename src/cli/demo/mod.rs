//! The demonstration pods: small MCP servers of both eras, so that the first command shows the
//! product working. They run on a thread of their own, apart from every shard, and know nothing of
//! the proxy in front of them.

mod message;
mod tools;
mod answer;
mod legacy;
mod modern;

use std::cell::RefCell;
use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, ORIGIN};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, StatusCode, Uri};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime;
use tokio::task::{JoinSet, LocalSet};
use tokio::time::{sleep, timeout};

use answer::Answer;
use legacy::Sessions;

const CONNECTIONS_MAX: usize = 1_024;
const HEAD_BYTES_MAX: usize = 64 * 1_024;
const BODY_BYTES_MAX: usize = 1_024 * 1_024;
/// From the end of an answer to the end of the next head, so it bounds idle connections as well.
const HEAD_TIMEOUT: Duration = Duration::from_mins(2);
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// A process that is out of descriptors gets one back when a connection ends, not at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// One pod. All of its connections are tasks of one thread.
struct Pod {
    name: &'static str,
    sessions: RefCell<Sessions>,
}

/// Starts one pod a name, each on a free port of 127.0.0.1, and returns their addresses in that
/// order. They listen from here on and end with the process.
///
/// # Errors
///
/// What the system says if a port, the event loop or the thread can't be had.
pub fn start(names: &[&'static str]) -> io::Result<Vec<SocketAddr>> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    let mut pods = Vec::new();
    let mut addresses = Vec::new();
    for name in names {
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
        addresses.push(listener.local_addr()?);
        pods.push((listener, Pod { name, sessions: RefCell::default() }));
    }
    std::thread::Builder::new().name("demo-pods".to_owned()).spawn(move || {
        let local = LocalSet::new();
        for (listener, pod) in pods {
            local.spawn_local(serve(listener, Rc::new(pod)));
        }
        runtime.block_on(local);
    })?;
    Ok(addresses)
}

/// Serves for good. Dropping the future closes the listener and all connections.
async fn serve(listener: TcpListener, pod: Rc<Pod>) {
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        if CONNECTIONS_MAX <= connections.len() {
            connections.join_next().await;
            continue;
        }
        match listener.accept().await {
            Ok((stream, _)) => {
                connections.spawn_local(converse(stream, Rc::clone(&pod)));
            }
            Err(_) => sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// Serves one connection until it ends. Dropping the future closes it.
async fn converse(stream: TcpStream, pod: Rc<Pod>) {
    let service = service_fn(|request| exchange(&pod, request));
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(pod = pod.name, %error, "a demonstration connection broke off");
    }
}

/// Answers one request. Not cancel safe: dropping it loses what was read of the body.
async fn exchange(pod: &Pod, request: Request<Incoming>) -> Result<Answer, Infallible> {
    let (head, body) = request.into_parts();
    let refused = |status, why| Ok(answer::text(status, why));
    if head.uri.path() != "/mcp" {
        return refused(StatusCode::NOT_FOUND, "the endpoint is /mcp");
    }
    if !is_local_origin(&head.headers) {
        return refused(StatusCode::FORBIDDEN, "this origin is not served");
    }
    if head.method != Method::POST {
        return Ok(without_body(pod, &head.method, &head.headers));
    }
    if !is_json(&head.headers) {
        return refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body must be application/json");
    }
    match read(body).await {
        Ok(body) => Ok(post(pod, &head.headers, &body)),
        Err((status, why)) => refused(status, why),
    }
}

fn without_body(pod: &Pod, method: &Method, headers: &HeaderMap) -> Answer {
    if modern::is_named(headers) {
        return answer::not_allowed("POST");
    }
    if method == Method::DELETE {
        return legacy::delete(&mut pod.sessions.borrow_mut(), headers);
    }
    answer::not_allowed("POST, DELETE")
}

fn post(pod: &Pod, headers: &HeaderMap, body: &[u8]) -> Answer {
    let Ok(body) = serde_json::from_slice::<Value>(body) else {
        return answer::text(StatusCode::BAD_REQUEST, "the body is not JSON");
    };
    if modern::is_meant(headers, &body) {
        modern::post(pod.name, headers, body)
    } else {
        legacy::post(pod.name, &mut pod.sessions.borrow_mut(), headers, body)
    }
}

/// Reads a body whole.
async fn read(body: Incoming) -> Result<Bytes, (StatusCode, &'static str)> {
    let Ok(body) = timeout(BODY_TIMEOUT, Limited::new(body, BODY_BYTES_MAX).collect()).await else {
        return Err((StatusCode::REQUEST_TIMEOUT, "the body did not come in time"));
    };
    match body {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            Err((StatusCode::PAYLOAD_TOO_LARGE, "the body is longer than 1 MiB"))
        }
        Err(_) => Err((StatusCode::BAD_REQUEST, "the body broke off")),
    }
}

/// A browser may only come from a page of this machine: every revision asks for this check.
fn is_local_origin(headers: &HeaderMap) -> bool {
    let is_local = |origin: &hyper::header::HeaderValue| {
        let uri: Option<Uri> = origin.to_str().ok().and_then(|origin| origin.parse().ok());
        let host = uri.as_ref().and_then(Uri::host);
        host.is_some_and(|host| matches!(host, "localhost" | "127.0.0.1" | "[::1]"))
    };
    headers.get_all(ORIGIN).iter().all(is_local)
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json")
}

#[cfg(test)]
mod tests;
