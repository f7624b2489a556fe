//! The bytes that a stub pod answers with.

use std::io::{self, Write};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;

/// How a pod answers, well or badly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Mode {
    /// A JSON body.
    Ok,
    /// An event stream: a comment, then the answer.
    Sse,
    /// Waits before the answer, and again in the middle of the body.
    Slow,
    /// Closes in the middle of the body.
    Truncate,
    /// A body without an end in sight.
    Oversize,
    /// A control byte inside the body.
    InvalidJson,
    /// The answer to a request that nobody made.
    WrongId,
    /// Resets the connection in the middle of the body.
    Reset,
    /// A JSON body in gzip.
    Gzip,
}

/// What a pod was told to be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub mode: Mode,
    /// Of the whole JSON body; it is longer only if it can't be that short.
    pub answer_bytes: usize,
    /// Of each pause of [`Mode::Slow`].
    pub delay: Duration,
    /// Offset of the bad byte of [`Mode::InvalidJson`]; by default the middle.
    pub invalid_offset: Option<usize>,
    /// After which [`Mode::Oversize`] gives up.
    pub oversize_bytes: u64,
}

pub(crate) const OVERSIZE_HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";

const FRONT: &[u8] = br#"{"jsonrpc":"2.0","id":"#;
const MIDDLE: &[u8] = br#","result":{"resultType":"complete","content":[{"type":"text","text":""#;
const BACK: &[u8] = br#""}]}}"#;

const EVENT_FRONT: &[u8] = b": stub\n\nevent: message\ndata: ";
const EVENT_BACK: &[u8] = b"\n\n";

/// The start of a message that goes on for ever.
pub(crate) fn endless_front(id: &[u8]) -> Vec<u8> {
    [FRONT, id, MIDDLE].concat()
}

/// Appends a whole answer, as its mode shapes it, and returns the length of its body as sent.
///
/// # Errors
///
/// None that a vector gives; the signature is that of the encoders.
pub(crate) fn append(settings: &Settings, id: &[u8], out: &mut Vec<u8>) -> io::Result<usize> {
    match settings.mode {
        Mode::Sse => append_event(settings, id, out),
        Mode::Gzip => append_gzip(settings, id, out),
        Mode::WrongId => {
            let wrong: &[u8] = if id == b"0" { b"1" } else { b"0" };
            append_json(settings, wrong, out)
        }
        Mode::InvalidJson => {
            let body_bytes = append_json(settings, id, out)?;
            let offset = settings.invalid_offset.unwrap_or(body_bytes / 2).min(body_bytes - 1);
            let start = out.len() - body_bytes;
            // No control byte is allowed anywhere in JSON but four blanks, of which this is none.
            out[start + offset] = 1;
            Ok(body_bytes)
        }
        Mode::Ok | Mode::Slow | Mode::Truncate | Mode::Oversize | Mode::Reset => {
            append_json(settings, id, out)
        }
    }
}

fn append_json(settings: &Settings, id: &[u8], out: &mut Vec<u8>) -> io::Result<usize> {
    let text_bytes = text_bytes(settings, id);
    let body_bytes = message_bytes(id) + text_bytes;
    write!(
        out,
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {body_bytes}\r\n\r\n"
    )?;
    append_message(text_bytes, id, out);
    Ok(body_bytes)
}

fn append_event(settings: &Settings, id: &[u8], out: &mut Vec<u8>) -> io::Result<usize> {
    let text_bytes = text_bytes(settings, id);
    let body_bytes = EVENT_FRONT.len() + message_bytes(id) + text_bytes + EVENT_BACK.len();
    write!(
        out,
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n\
         Transfer-Encoding: chunked\r\n\r\n{body_bytes:x}\r\n"
    )?;
    out.extend_from_slice(EVENT_FRONT);
    append_message(text_bytes, id, out);
    out.extend_from_slice(EVENT_BACK);
    out.extend_from_slice(b"\r\n0\r\n\r\n");
    Ok(body_bytes)
}

fn append_gzip(settings: &Settings, id: &[u8], out: &mut Vec<u8>) -> io::Result<usize> {
    let mut message = Vec::new();
    append_message(text_bytes(settings, id), id, &mut message);
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&message)?;
    let body = encoder.finish()?;
    write!(
        out,
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    )?;
    out.extend_from_slice(&body);
    Ok(body.len())
}

/// Length of a message with an empty text.
fn message_bytes(id: &[u8]) -> usize {
    FRONT.len() + id.len() + MIDDLE.len() + BACK.len()
}

fn text_bytes(settings: &Settings, id: &[u8]) -> usize {
    settings.answer_bytes.saturating_sub(message_bytes(id))
}

fn append_message(text_bytes: usize, id: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(FRONT);
    out.extend_from_slice(id);
    out.extend_from_slice(MIDDLE);
    out.resize(out.len() + text_bytes, b'x');
    out.extend_from_slice(BACK);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Chunks, Framing, head, message_id};

    fn body(mode: Mode, id: &str) -> Vec<u8> {
        let delay = Duration::ZERO;
        let (invalid_offset, oversize_bytes) = (None, 0);
        let settings = Settings { mode, answer_bytes: 500, delay, invalid_offset, oversize_bytes };
        let mut out = Vec::new();
        append(&settings, id.as_bytes(), &mut out).unwrap();
        let head = head(&out).unwrap().unwrap();
        let body = &out[head.bytes..];
        if head.framing == Framing::Chunked {
            let mut chunks = Chunks::default();
            assert_eq!(chunks.take(body), Ok(Some(body.len())));
            return chunks.body;
        }
        assert_eq!(head.framing, Framing::Length(body.len()));
        body.to_vec()
    }

    #[test]
    fn good_answers_are_valid_and_of_the_size_asked_for() {
        let bytes = body(Mode::Ok, "\"a\"");
        assert_eq!(bytes.len(), 500);
        let message: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(
            (&message["id"], &message["result"]["resultType"]),
            (&"a".into(), &"complete".into())
        );
        let event = String::from_utf8(body(Mode::Sse, "7")).unwrap();
        let data = event.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
        assert_eq!((data.len(), message_id(data.as_bytes())), (500, Some(&b"7"[..])));
        let mut plain = Vec::new();
        let mut decoder = flate2::write::GzDecoder::new(&mut plain);
        decoder.write_all(&body(Mode::Gzip, "7")).unwrap();
        decoder.finish().unwrap();
        assert_eq!(plain, body(Mode::Ok, "7"));
    }

    #[test]
    fn bad_answers_are_bad_as_named() {
        let message: serde_json::Value = serde_json::from_slice(&body(Mode::WrongId, "7")).unwrap();
        assert_eq!(message["id"], 0);
        let refused = serde_json::from_slice::<serde_json::Value>(&body(Mode::InvalidJson, "7"));
        assert!(refused.is_err());
    }
}
