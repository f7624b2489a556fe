//! As much of HTTP/1.1 as a load needs, on both sides. It trusts its peer to be a proxy under test:
//! what it does not know is malformed, never guessed. It shares no code with the proxy, so that a
//! mistake there can't hide behind the same one here.

use memchr::{memchr, memmem};

pub(crate) const HEAD_BYTES_MAX: usize = 64 * 1_024;

/// How long a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Neither field says so: no body in a request, until the end of the connection in an answer.
    Unsaid,
    Length(usize),
    Chunked,
}

/// Whether more may follow on the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Persistence {
    Kept,
    Closed,
}

/// The head of a request or of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head<'a> {
    /// The request line or the status line, without its line end.
    pub first_line: &'a [u8],
    /// Length of the head with the empty line.
    pub bytes: usize,
    pub framing: Framing,
    pub persistence: Persistence,
}

/// The bytes are not HTTP/1.1, or longer than this module takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Reads a head off the front of `bytes`; none if it is not whole yet.
///
/// # Errors
///
/// [`Malformed`] also if a head is longer than [`HEAD_BYTES_MAX`].
pub(crate) fn head(bytes: &[u8]) -> Result<Option<Head<'_>>, Malformed> {
    let Some(end) = memmem::find(bytes, b"\r\n\r\n") else {
        return if HEAD_BYTES_MAX < bytes.len() { Err(Malformed) } else { Ok(None) };
    };
    let mut rest = bytes.get(..end + 2).ok_or(Malformed)?;
    let first_line = line(&mut rest)?;
    let mut framing = Framing::Unsaid;
    let mut persistence = Persistence::Kept;
    while !rest.is_empty() {
        let field = line(&mut rest)?;
        let colon = memchr(b':', field).ok_or(Malformed)?;
        let (name, value) = field.split_at(colon);
        let value = value[1..].trim_ascii();
        // The length alone tells most other fields apart.
        match name.len() {
            14 if name.eq_ignore_ascii_case(b"content-length") => {
                framing = Framing::Length(number(value, 10)?);
            }
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => framing = Framing::Chunked,
            10 if name.eq_ignore_ascii_case(b"connection")
                && value.eq_ignore_ascii_case(b"close") =>
            {
                persistence = Persistence::Closed;
            }
            _ => {}
        }
    }
    Ok(Some(Head { first_line, bytes: end + 4, framing, persistence }))
}

/// The chunks of one body, joined as they come.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    pub body: Vec<u8>,
    /// Where the next chunk starts.
    offset: usize,
}

impl Chunks {
    pub(crate) fn clear(&mut self) {
        self.body.clear();
        self.offset = 0;
    }

    /// Takes all whole chunks of `bytes`, which is all that came since the head. Returns the length
    /// of the chunked body once its last chunk is there.
    ///
    /// # Errors
    ///
    /// [`Malformed`] for a size that is no number, and for trailers: nobody here sends them.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Result<Option<usize>, Malformed> {
        loop {
            let rest = bytes.get(self.offset..).ok_or(Malformed)?;
            let Some(size_end) = memmem::find(rest, b"\r\n") else { return Ok(None) };
            let size_line = &rest[..size_end];
            let size = &size_line[..memchr(b';', size_line).unwrap_or(size_end)];
            let size = number(size.trim_ascii(), 16)?;
            let start = size_end + 2;
            let end = start.checked_add(size).ok_or(Malformed)?;
            let Some(after) = rest.get(end..).filter(|after| 2 <= after.len()) else {
                return Ok(None);
            };
            if !after.starts_with(b"\r\n") {
                return Err(Malformed);
            }
            self.body.extend_from_slice(&rest[start..end]);
            self.offset += end + 2;
            if size == 0 {
                return Ok(Some(self.offset));
            }
        }
    }
}

/// The value of the member `id` of a JSON object, as it stands there; none without such a member.
/// Strings are skipped and brackets are counted, so an `id` inside the params is not taken for it.
pub(crate) fn message_id(message: &[u8]) -> Option<&[u8]> {
    let mut depth = 0_usize;
    let mut offset = 0;
    while let Some(byte) = message.get(offset) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.checked_sub(1)?,
            b'"' => {
                let end = string_end(message, offset)?;
                let is_key = depth == 1 && &message[offset..end] == br#""id""#;
                offset = end;
                if let Some(start) = is_key.then(|| value_start(message, end)).flatten() {
                    return value(message, start);
                }
                continue;
            }
            _ => {}
        }
        offset += 1;
    }
    None
}

/// Takes a line, without its line end, off the front of bytes that end in one.
fn line<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], Malformed> {
    let end = memchr(b'\n', rest).ok_or(Malformed)?;
    let line = rest[..end].strip_suffix(b"\r").ok_or(Malformed)?;
    *rest = &rest[end + 1..];
    Ok(line)
}

fn number(digits: &[u8], radix: u32) -> Result<usize, Malformed> {
    if digits.first().is_none_or(|digit| *digit == b'+') {
        return Err(Malformed);
    }
    let digits = std::str::from_utf8(digits).map_err(|_| Malformed)?;
    usize::from_str_radix(digits, radix).map_err(|_| Malformed)
}

/// Where the string that starts at `start` is over.
fn string_end(message: &[u8], start: usize) -> Option<usize> {
    let mut offset = start + 1;
    loop {
        match message.get(offset)? {
            b'"' => return Some(offset + 1),
            b'\\' => offset += 2,
            _ => offset += 1,
        }
    }
}

/// Where the value of a key that is over at `end` starts; none if it is no key.
fn value_start(message: &[u8], end: usize) -> Option<usize> {
    let colon = skip_blanks(message, end);
    (message.get(colon) == Some(&b':')).then(|| skip_blanks(message, colon + 1))
}

fn skip_blanks(message: &[u8], start: usize) -> usize {
    let blanks = message[start..].iter().take_while(|byte| byte.is_ascii_whitespace());
    start + blanks.count()
}

/// A string or a number.
fn value(message: &[u8], start: usize) -> Option<&[u8]> {
    if message.get(start) == Some(&b'"') {
        return message.get(start..string_end(message, start)?);
    }
    let rest = message.get(start..)?;
    let is_over = |byte: &u8| matches!(byte, b',' | b'}') || byte.is_ascii_whitespace();
    let end = rest.iter().position(is_over)?;
    rest.get(..end).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read_once_they_are_whole() {
        let bytes = b"POST /mcp HTTP/1.1\r\nHost: x\r\ncontent-LENGTH: 12\r\n\r\nbody";
        let found = head(bytes).unwrap().unwrap();
        assert_eq!(found.first_line, b"POST /mcp HTTP/1.1");
        assert_eq!((found.bytes, found.framing), (bytes.len() - 4, Framing::Length(12)));
        assert_eq!(found.persistence, Persistence::Kept);
        for cut in 0..found.bytes {
            assert_eq!(head(&bytes[..cut]), Ok(None), "cut at {cut}");
        }
        let bytes = b"HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n";
        let found = head(bytes).unwrap().unwrap();
        assert_eq!((found.framing, found.persistence), (Framing::Chunked, Persistence::Closed));
    }

    #[test]
    fn what_is_no_head_is_malformed() {
        for bytes in ["x\n\r\n\r\n", "x\r\nno colon\r\n\r\n", "x\r\nContent-Length: +1\r\n\r\n"] {
            assert_eq!(head(bytes.as_bytes()), Err(Malformed), "{bytes:?}");
        }
        assert_eq!(head(&vec![b'x'; HEAD_BYTES_MAX + 1]), Err(Malformed));
    }

    /// The joined body must not depend on where the network cut the bytes.
    #[test]
    fn chunks_are_joined_wherever_they_are_cut() {
        let bytes = b"3\r\nabc\r\n00A;x=y\r\n0123456789\r\n0\r\n\r\n";
        for cut in 0..bytes.len() {
            let mut chunks = Chunks::default();
            assert_eq!(chunks.take(&bytes[..cut]), Ok(None), "cut at {cut}");
            assert_eq!(chunks.take(bytes), Ok(Some(bytes.len())), "cut at {cut}");
            assert_eq!(chunks.body, b"abc0123456789");
        }
        for bytes in ["x\r\n", "1\r\nab\r\n", "0\r\nTrailer: x\r\n\r\n"] {
            assert_eq!(Chunks::default().take(bytes.as_bytes()), Err(Malformed), "{bytes:?}");
        }
    }

    #[test]
    fn ids_are_found_at_the_top_only() {
        let check = |message: &str, id: Option<&str>| {
            let found = message_id(message.as_bytes()).map(|id| std::str::from_utf8(id).unwrap());
            assert_eq!(found, id, "{message}");
        };
        check(r#"{"jsonrpc":"2.0","id":12,"method":"x"}"#, Some("12"));
        check(r#"{"params":{"id":1,"a":["id",2]}, "id" : "a\"b" }"#, Some(r#""a\"b""#));
        check(r#"{"method":"id","params":{"text":"\",\"id\":1"}}"#, None);
        check(r#"{"method":"x"}"#, None);
        check(r#"{"id":"#, None);
        check("}", None);
    }
}
