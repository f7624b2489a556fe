//! A stub pod: answers each JSON-RPC request with a valid result, or wrongly in one set way. It
//! reads just enough of a request to find its id, so that it is never what limits a measurement.

mod answer;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

pub(crate) use answer::{Mode, Settings};

use crate::wire::{self, Chunks, Framing, Malformed, Persistence};

/// Longest request that is read, with its head.
const REQUEST_BYTES_MAX: usize = 16 * 1_024 * 1_024;
const BUFFER_BYTES: usize = 8 * 1_024;
/// A process that is out of descriptors gets one back when a connection ends, not at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A pod and what it has done.
#[derive(Debug)]
pub(crate) struct Pod {
    pub settings: Settings,
    /// Requests that were answered, well or badly.
    pub answered: AtomicU64,
}

/// One request, as far as a pod looks at it.
struct Request<'a> {
    bytes: usize,
    verb: Verb,
    /// As it stands in the body; none in a notification.
    id: Option<&'a [u8]>,
    persistence: Persistence,
}

enum Verb {
    Post,
    Other,
}

/// Serves for good. Dropping the future closes the listener, not the connections.
pub(crate) async fn serve(listener: TcpListener, pod: Arc<Pod>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(converse(stream, Arc::clone(&pod)));
            }
            Err(_) => sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// Serves one connection. A break is no failure here: the proxy sees it too, and may have made it.
async fn converse(mut stream: TcpStream, pod: Arc<Pod>) {
    if stream.set_nodelay(true).is_ok() {
        exchange_all(&mut stream, &pod).await.unwrap_or_default();
    }
}

/// Answers requests until the connection ends. Requests that came together are answered together.
async fn exchange_all(stream: &mut TcpStream, pod: &Pod) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut filled = 0;
    let mut chunks = Chunks::default();
    let mut out = Vec::new();
    loop {
        let mut start = 0;
        let mut persistence = Persistence::Kept;
        while persistence == Persistence::Kept {
            let found = request(&buffer[start..filled], &mut chunks);
            let found = found.map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
            let Some(request) = found else { break };
            start += request.bytes;
            persistence = answer(pod, &request, stream, &mut out).await?;
            chunks.clear();
        }
        stream.write_all(&out).await?;
        out.clear();
        if persistence == Persistence::Closed {
            return stream.shutdown().await;
        }
        buffer.copy_within(start..filled, 0);
        filled -= start;
        if filled == buffer.len() {
            if REQUEST_BYTES_MAX <= filled {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            buffer.resize(2 * filled, 0);
        }
        match stream.read(&mut buffer[filled..]).await? {
            0 => return Ok(()),
            read => filled += read,
        }
    }
}

/// Takes a request off the front of `bytes`, once it is whole.
fn request<'a>(bytes: &'a [u8], chunks: &'a mut Chunks) -> Result<Option<Request<'a>>, Malformed> {
    let Some(head) = wire::head(bytes)? else { return Ok(None) };
    let rest = &bytes[head.bytes..];
    let (body, body_bytes) = match head.framing {
        Framing::Unsaid => (&rest[..0], 0),
        Framing::Length(length) => match rest.get(..length) {
            Some(body) => (body, length),
            None => return Ok(None),
        },
        Framing::Chunked => match chunks.take(rest)? {
            Some(length) => (&chunks.body[..], length),
            None => return Ok(None),
        },
    };
    Ok(Some(Request {
        bytes: head.bytes + body_bytes,
        verb: if head.first_line.starts_with(b"POST ") { Verb::Post } else { Verb::Other },
        id: wire::message_id(body),
        persistence: head.persistence,
    }))
}

/// Appends the answer to `out`, or sends it in its own way.
async fn answer(
    pod: &Pod,
    request: &Request<'_>,
    stream: &mut TcpStream,
    out: &mut Vec<u8>,
) -> io::Result<Persistence> {
    let id = match (&request.verb, request.id) {
        (Verb::Post, Some(id)) => id,
        (Verb::Post, None) => {
            out.extend_from_slice(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n");
            return Ok(request.persistence);
        }
        (Verb::Other, _) => {
            out.extend_from_slice(
                b"HTTP/1.1 405 Method Not Allowed\r\nAllow: POST\r\nContent-Length: 0\r\n\r\n",
            );
            return Ok(request.persistence);
        }
    };
    pod.answered.fetch_add(1, Ordering::Relaxed);
    let settings = &pod.settings;
    match settings.mode {
        Mode::Ok | Mode::Sse | Mode::InvalidJson | Mode::WrongId | Mode::Gzip => {
            answer::append(settings, id, out)?;
            Ok(request.persistence)
        }
        Mode::Slow => {
            sleep(settings.delay).await;
            let body_bytes = answer::append(settings, id, out)?;
            let middle = out.len() - body_bytes / 2;
            stream.write_all(&out[..middle]).await?;
            out.drain(..middle);
            sleep(settings.delay).await;
            Ok(request.persistence)
        }
        Mode::Truncate => {
            let body_bytes = answer::append(settings, id, out)?;
            out.truncate(out.len() - body_bytes / 2);
            Ok(Persistence::Closed)
        }
        Mode::Reset => {
            let body_bytes = answer::append(settings, id, out)?;
            stream.write_all(&out[..out.len() - body_bytes / 2]).await?;
            // A linger time of zero makes the close that follows a reset.
            set_socket_linger(&*stream, Some(Duration::ZERO))?;
            Err(io::ErrorKind::ConnectionReset.into())
        }
        Mode::Oversize => {
            stream.write_all(out).await?;
            out.clear();
            flood(settings, id, stream).await?;
            Ok(Persistence::Closed)
        }
    }
}

/// Sends the start of an answer, and text without end until the peer has had enough.
async fn flood(settings: &Settings, id: &[u8], stream: &mut TcpStream) -> io::Result<()> {
    const PIECE_BYTES: usize = 64 * 1_024;
    stream.write_all(answer::OVERSIZE_HEAD).await?;
    let front = answer::endless_front(id);
    let mut chunk = format!("{:x}\r\n", front.len()).into_bytes();
    chunk.extend_from_slice(&front);
    chunk.extend_from_slice(b"\r\n");
    stream.write_all(&chunk).await?;
    chunk.clear();
    chunk.extend_from_slice(format!("{PIECE_BYTES:x}\r\n").as_bytes());
    chunk.resize(chunk.len() + PIECE_BYTES, b'x');
    chunk.extend_from_slice(b"\r\n");
    let mut sent = 0;
    while sent < settings.oversize_bytes {
        stream.write_all(&chunk).await?;
        sent += PIECE_BYTES as u64;
    }
    Ok(())
}
