//! One connection to what is under test: sends a request, reads the answer whole and checks it.

use std::io;

use memchr::memmem;
use serde::Serialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::target::Target;
use crate::wire::{self, Chunks, Framing, Head, Persistence};

/// Longest answer that is read, with its head.
const ANSWER_BYTES_MAX: usize = 16 * 1_024 * 1_024;
const BUFFER_BYTES: usize = 8 * 1_024;

/// What can be wrong with an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// No connection came about.
    Connect,
    /// The connection ended before the answer was whole.
    Broken,
    /// What came is not HTTP/1.1, or too long.
    Malformed,
    /// The status is not 200.
    Status,
    /// The answer does not carry the id of the request.
    WrongId,
    /// The answer has no result.
    NoResult,
    /// The run was over, and long over, before the answer came.
    Unanswered,
}

/// How often each failure happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Failures {
    pub connect: u64,
    pub broken: u64,
    pub malformed: u64,
    pub status: u64,
    pub wrong_id: u64,
    pub no_result: u64,
    pub unanswered: u64,
}

impl Failures {
    pub(crate) fn count(&mut self, failure: Failure) {
        let counter = match failure {
            Failure::Connect => &mut self.connect,
            Failure::Broken => &mut self.broken,
            Failure::Malformed => &mut self.malformed,
            Failure::Status => &mut self.status,
            Failure::WrongId => &mut self.wrong_id,
            Failure::NoResult => &mut self.no_result,
            Failure::Unanswered => &mut self.unanswered,
        };
        *counter += 1;
    }

    pub(crate) fn rows(&self) -> [(&'static str, u64); 7] {
        [
            ("connect", self.connect),
            ("broken", self.broken),
            ("malformed", self.malformed),
            ("status", self.status),
            ("wrong id", self.wrong_id),
            ("no result", self.no_result),
            ("unanswered", self.unanswered),
        ]
    }

    pub(crate) fn add(&mut self, other: &Self) {
        let Self { connect, broken, malformed, status, wrong_id, no_result, unanswered } = other;
        self.connect += connect;
        self.broken += broken;
        self.malformed += malformed;
        self.status += status;
        self.wrong_id += wrong_id;
        self.no_result += no_result;
        self.unanswered += unanswered;
    }

    pub(crate) fn total(&self) -> u64 {
        self.rows().iter().map(|(_, count)| count).sum()
    }
}

/// A kept connection. Nothing of an earlier answer is left in the buffer when a request goes out.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    chunks: Chunks,
}

/// Where an answer stands in the buffer.
struct Extent {
    body_offset: usize,
    bytes: usize,
    framing: Framing,
    persistence: Persistence,
}

impl Connection {
    /// Connects. Cancel safe: dropping the future gives the attempt up.
    pub(crate) async fn open(target: &Target) -> Result<Self, Failure> {
        let stream = TcpStream::connect(target.address).await.map_err(|_| Failure::Connect)?;
        stream.set_nodelay(true).map_err(|_| Failure::Connect)?;
        Ok(Self { stream, buffer: vec![0; BUFFER_BYTES], chunks: Chunks::default() })
    }

    /// Sends a request and checks its answer. After an error the connection is of no more use.
    ///
    /// Not cancel safe: dropping the future loses the place in the answer.
    pub(crate) async fn exchange(
        &mut self,
        request: &[u8],
        id: u64,
    ) -> Result<Persistence, Failure> {
        self.stream.write_all(request).await.map_err(|_| Failure::Broken)?;
        let mut filled = 0;
        self.chunks.clear();
        let extent = loop {
            filled = self.read_more(filled).await?;
            if let Some(extent) = extent(&self.buffer[..filled], &mut self.chunks)? {
                break extent;
            }
        };
        if extent.bytes < filled {
            return Err(Failure::Malformed);
        }
        let body = match extent.framing {
            Framing::Chunked => &self.chunks.body[..],
            Framing::Length(_) | Framing::Unsaid => &self.buffer[extent.body_offset..extent.bytes],
        };
        check(body, id)?;
        Ok(extent.persistence)
    }

    /// Returns once the peer has closed the connection, or sent what nobody asked for. Cancel safe.
    pub(crate) async fn until_closed(&mut self) {
        while matches!(self.stream.read(&mut self.buffer).await, Ok(read) if 0 < read) {}
    }

    /// Reads once behind what is filled and returns how much is filled then.
    async fn read_more(&mut self, filled: usize) -> Result<usize, Failure> {
        if filled == self.buffer.len() {
            if ANSWER_BYTES_MAX <= filled {
                return Err(Failure::Malformed);
            }
            self.buffer.resize(2 * filled, 0);
        }
        let read: io::Result<usize> = self.stream.read(&mut self.buffer[filled..]).await;
        match read {
            Ok(0) | Err(_) => Err(Failure::Broken),
            Ok(read) => Ok(filled + read),
        }
    }
}

/// The extent of the answer in `bytes`, once it is whole.
fn extent(bytes: &[u8], chunks: &mut Chunks) -> Result<Option<Extent>, Failure> {
    let Some(head) = wire::head(bytes).map_err(|_| Failure::Malformed)? else { return Ok(None) };
    match head.first_line {
        [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'1', b' ', b'2', b'0', b'0', b' ', ..] => {}
        line if line.starts_with(b"HTTP/1.1 ") => return Err(Failure::Status),
        _ => return Err(Failure::Malformed),
    }
    let body_offset = head.bytes;
    let body_bytes = match head.framing {
        Framing::Length(length) => (length <= bytes.len() - body_offset).then_some(length),
        Framing::Chunked => chunks.take(&bytes[body_offset..]).map_err(|_| Failure::Malformed)?,
        Framing::Unsaid => return Err(Failure::Malformed),
    };
    let Head { framing, persistence, .. } = head;
    Ok(body_bytes.map(|body_bytes| Extent {
        body_offset,
        bytes: body_offset + body_bytes,
        framing,
        persistence,
    }))
}

/// The answer is to this request, and a result. This only looks for both: whether the answer is
/// valid is for tests to say, and parsing it would cost more than sending it.
fn check(body: &[u8], id: u64) -> Result<(), Failure> {
    let mut rest = body;
    let is_answered = loop {
        let Some(found) = memmem::find(rest, b"\"id\"") else { break false };
        rest = &rest[found + 4..];
        if leading_number(rest) == Some(id) {
            break true;
        }
    };
    if !is_answered {
        return Err(Failure::WrongId);
    }
    match memmem::find(body, b"\"result\"") {
        Some(_) => Ok(()),
        None => Err(Failure::NoResult),
    }
}

/// The number behind the colon of a key.
fn leading_number(rest: &[u8]) -> Option<u64> {
    let rest = rest.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_held_against_their_requests() {
        let held = |body: &str| check(body.as_bytes(), 12);
        assert_eq!(held(r#"{"jsonrpc":"2.0","id":12,"result":{}}"#), Ok(()));
        assert_eq!(held(r#"data: {"id" : 12 , "result":{}}"#), Ok(()));
        assert_eq!(held(r#"{"result":{"id":1},"id":12}"#), Ok(()));
        assert_eq!(held(r#"{"id":123,"result":{}}"#), Err(Failure::WrongId));
        assert_eq!(held(r#"{"id":"12","result":{}}"#), Err(Failure::WrongId));
        assert_eq!(held(r#"{"id":12,"error":{}}"#), Err(Failure::NoResult));
    }

    #[test]
    fn the_extent_is_known_once_the_answer_is_whole() {
        let bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
        for cut in 0..bytes.len() {
            assert!(extent(&bytes[..cut], &mut Chunks::default()).unwrap().is_none(), "{cut}");
        }
        let whole = extent(bytes, &mut Chunks::default()).unwrap().unwrap();
        assert_eq!((whole.body_offset, whole.bytes), (bytes.len() - 2, bytes.len()));
        let refused = |bytes: &[u8]| extent(bytes, &mut Chunks::default()).err();
        assert_eq!(refused(b"HTTP/1.1 502 Bad\r\n\r\n"), Some(Failure::Status));
        assert_eq!(refused(b"HTTP/1.1 200 OK\r\n\r\n"), Some(Failure::Malformed));
        assert_eq!(refused(b"HTTP/2 200\r\n\r\n"), Some(Failure::Malformed));
    }
}
