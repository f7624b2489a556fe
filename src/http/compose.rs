//! Writes heads: what travels on, in its order and spelling, and what the proxy adds.

use super::body::Framing;
use super::field::{Fields, Known};

/// Whether a field travels on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// As it came.
    Kept,
    /// Not at all.
    Removed,
}

/// Appends the end-to-end fields of `fields` for which `fate` says so, byte for byte but for the
/// white space around values. Fields that `Connection` names are removed (RFC 9110, 7.6.1).
pub fn write_fields(fields: &Fields, head: &[u8], out: &mut Vec<u8>, fate: impl Fn(Known) -> Fate) {
    let has_options = fields.has_any(&[Known::Connection]);
    for field in fields.lines() {
        if field.known.is_hop_by_hop() || fate(field.known) == Fate::Removed {
            continue;
        }
        let name = field.name.of(head);
        let is_named = |option: &[u8]| option.eq_ignore_ascii_case(name);
        if has_options && field.known == Known::Other && fields.options(head).any(is_named) {
            continue;
        }
        write_field(name, field.value.of(head), out);
    }
}

/// Appends one field line.
pub fn write_field(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Appends the field that frames a body.
pub fn write_framing(framing: Framing, out: &mut Vec<u8>) {
    match framing {
        Framing::None | Framing::UntilClose => {}
        Framing::Length(bytes) => {
            out.extend_from_slice(b"Content-Length: ");
            out.extend_from_slice(itoa::Buffer::new().format(bytes).as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        Framing::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
    }
}

/// Appends a status line.
pub fn write_status(status: u16, phrase: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(itoa::Buffer::new().format(status).as_bytes());
    out.push(b' ');
    out.extend_from_slice(phrase);
    out.extend_from_slice(b"\r\n");
}

/// The phrase of a status that the proxy itself gives (RFC 9110, section 15).
#[must_use]
pub fn phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        204 => "No Content",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        413 => "Content Too Large",
        414 => "URI Too Long",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        _ => "",
    }
}
