//! Follows the framing of a body (RFC 9112, sections 6 and 7), resumable at any byte.

use crate::limits::{CHUNK_LINE_BYTES_MAX, TRAILER_BYTES_MAX};

/// How the end of a body is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// There is no body.
    None,
    /// So many bytes.
    Length(u64),
    /// Chunks.
    Chunked,
    /// The connection ends (answers only).
    UntilClose,
}

/// Why a body is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// A chunk line is not what RFC 9112, section 7.1 asks.
    #[error("a malformed chunk")]
    Chunk,
    /// A chunk line longer than the bound.
    #[error("a chunk line is too long")]
    ChunkLine,
    /// A trailer section that is malformed or longer than the bound.
    #[error("a malformed or long trailer section")]
    Trailer,
    /// The connection ended before the body.
    #[error("the body was cut")]
    Truncated,
}

/// What a stretch of input was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Bytes of input that were taken.
    pub consumed: usize,
    /// How many of them, at their end, are bytes of the body.
    pub data: usize,
}

/// Where the decoder is.
///
/// ```text
/// Size ─▶ (Extension) ─▶ SizeFeed ─▶ Data ─▶ DataReturn ─▶ DataFeed ─▶ Size
///   └ size 0: ─▶ LineStart ─▶ (Name ─▶ Value ─▶ LineFeed ─▶ LineStart)* ─▶ LastFeed ─▶ Done
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Length { left: u64 },
    Close,
    Data { left: u64 },
    Mark(Mark),
    Done,
}

/// What the next byte of the chunked coding itself may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    Size { size: u64, digits: u8 },
    Extension { size: u64 },
    SizeFeed { size: u64 },
    DataReturn,
    DataFeed,
    LineStart,
    Name,
    Value,
    LineFeed,
    LastFeed,
}

/// Takes a body apart.
#[derive(Clone, Copy, Debug)]
pub struct Decoder {
    state: State,
    /// Bytes of the chunk line or of the trailer section at hand.
    line_bytes: usize,
}

impl Decoder {
    /// A decoder for a body of this framing.
    #[must_use]
    pub fn new(framing: Framing) -> Self {
        let state = match framing {
            Framing::None | Framing::Length(0) => State::Done,
            Framing::Length(left) => State::Length { left },
            Framing::Chunked => State::Mark(Mark::Size { size: 0, digits: 0 }),
            Framing::UntilClose => State::Close,
        };
        Self { state, line_bytes: 0 }
    }

    /// Whether the body is complete.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Takes bytes from `input` up to the end of the next stretch of body bytes, or all of them.
    /// Nothing is taken once the body is done.
    ///
    /// # Errors
    ///
    /// See [`BodyError`]; the connection is of no use after one.
    pub fn next(&mut self, input: &[u8]) -> Result<Step, BodyError> {
        let mut consumed = 0;
        while let Some(&byte) = input.get(consumed) {
            let available = (input.len() - consumed) as u64;
            let (data, next) = match self.state {
                State::Done => break,
                State::Mark(mark) => {
                    self.state = self.after(mark, byte)?;
                    consumed += 1;
                    continue;
                }
                State::Close => (available, State::Close),
                State::Length { left } if left <= available => (left, State::Done),
                State::Length { left } => (available, State::Length { left: left - available }),
                State::Data { left } if left <= available => (left, State::Mark(Mark::DataReturn)),
                State::Data { left } => (available, State::Data { left: left - available }),
            };
            self.state = next;
            // `data` is at most what is available, so it fits.
            let data = usize::try_from(data).unwrap_or(usize::MAX);
            return Ok(Step { consumed: consumed + data, data });
        }
        Ok(Step { consumed, data: 0 })
    }

    /// The next stretch of body bytes in `input`, which moves on behind it. `None` once the input
    /// is taken or the body is done; what is left of the input then lies behind the body.
    ///
    /// # Errors
    ///
    /// See [`BodyError`]; the connection is of no use after one.
    pub fn next_data<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<&'a [u8]>, BodyError> {
        while !input.is_empty() && !self.is_done() {
            let step = self.next(input)?;
            let (taken, rest) = input.split_at(step.consumed);
            *input = rest;
            if let Some((_, data)) = taken.split_at_checked(step.consumed - step.data)
                && !data.is_empty()
            {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }

    /// The connection ended.
    ///
    /// # Errors
    ///
    /// [`BodyError::Truncated`] unless the body is complete with that.
    pub fn end(&self) -> Result<(), BodyError> {
        match self.state {
            State::Close | State::Done => Ok(()),
            State::Length { .. } | State::Data { .. } | State::Mark(_) => Err(BodyError::Truncated),
        }
    }

    /// One byte of the framing itself.
    fn after(&mut self, mark: Mark, byte: u8) -> Result<State, BodyError> {
        self.line_bytes += 1;
        if mark.bytes_max() < self.line_bytes {
            return Err(mark.error_when_long());
        }
        let next = match (mark, byte) {
            (Mark::Size { size, digits }, _) => Self::after_size(size, digits, byte)?,
            (Mark::Extension { size }, b'\r') => Mark::SizeFeed { size },
            (Mark::Extension { size }, b'\t' | b' '..=b'~') => Mark::Extension { size },
            (Mark::SizeFeed { size: 0 }, b'\n') => self.begin_line(Mark::LineStart),
            (Mark::SizeFeed { size }, b'\n') => return Ok(State::Data { left: size }),
            (Mark::DataReturn, b'\r') => Mark::DataFeed,
            (Mark::DataFeed, b'\n') => self.begin_line(Mark::Size { size: 0, digits: 0 }),
            (Mark::LineStart, b'\r') => Mark::LastFeed,
            (Mark::LastFeed, b'\n') => return Ok(State::Done),
            (Mark::LineStart | Mark::Name, _) if is_token(byte) => Mark::Name,
            (Mark::Name, b':') | (Mark::Value, b'\t' | b' '..=b'~' | 0x80..) => Mark::Value,
            (Mark::Value, b'\r') => Mark::LineFeed,
            (Mark::LineFeed, b'\n') => Mark::LineStart,
            _ => return Err(mark.error()),
        };
        Ok(State::Mark(next))
    }

    fn begin_line(&mut self, mark: Mark) -> Mark {
        self.line_bytes = 0;
        mark
    }

    /// 1 to 15 hexadecimal digits, then an extension or the end of the line; nothing between.
    fn after_size(size: u64, digits: u8, byte: u8) -> Result<Mark, BodyError> {
        match byte {
            b'\r' if digits > 0 => Ok(Mark::SizeFeed { size }),
            b';' if digits > 0 => Ok(Mark::Extension { size }),
            _ => {
                let digit = (byte as char).to_digit(16).ok_or(BodyError::Chunk)?;
                if digits == 15 {
                    return Err(BodyError::Chunk);
                }
                Ok(Mark::Size { size: size * 16 + u64::from(digit), digits: digits + 1 })
            }
        }
    }
}

impl Mark {
    fn error(self) -> BodyError {
        match self {
            Self::Size { .. }
            | Self::Extension { .. }
            | Self::SizeFeed { .. }
            | Self::DataReturn
            | Self::DataFeed => BodyError::Chunk,
            Self::LineStart | Self::Name | Self::Value | Self::LineFeed | Self::LastFeed => {
                BodyError::Trailer
            }
        }
    }

    fn error_when_long(self) -> BodyError {
        if self.error() == BodyError::Chunk { BodyError::ChunkLine } else { BodyError::Trailer }
    }

    fn bytes_max(self) -> usize {
        if self.error() == BodyError::Chunk { CHUNK_LINE_BYTES_MAX } else { TRAILER_BYTES_MAX }
    }
}

/// RFC 9110, section 5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Appends the line before a chunk of `bytes` bytes.
pub fn write_chunk_size(bytes: usize, out: &mut Vec<u8>) {
    let digits = (usize::BITS - bytes.leading_zeros()).div_ceil(4).max(1);
    for place in (0..digits).rev() {
        let digit = u32::try_from((bytes >> (place * 4)) & 15).unwrap_or(0);
        out.push(char::from_digit(digit, 16).map_or(b'0', |digit| digit as u8));
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends bytes of a body in `framing`: as a chunk of their own if it is chunked.
pub fn write_data(data: &[u8], framing: Framing, out: &mut Vec<u8>) {
    if data.is_empty() {
        return;
    }
    match framing {
        Framing::Chunked => {
            write_chunk_size(data.len(), out);
            out.extend_from_slice(data);
            out.extend_from_slice(b"\r\n");
        }
        Framing::None | Framing::Length(_) | Framing::UntilClose => out.extend_from_slice(data),
    }
}

/// The last chunk and an empty trailer section.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

#[cfg(test)]
mod tests {
    use super::*;

    /// The body that `input` carries, fed in two parts cut at `cut`.
    fn decode(framing: Framing, input: &[u8], cut: usize) -> Result<(Vec<u8>, usize), BodyError> {
        let mut decoder = Decoder::new(framing);
        let mut body = Vec::new();
        let mut consumed = 0;
        let (start, end) = input.split_at(cut);
        for mut part in [start, end] {
            while !part.is_empty() && !decoder.is_done() {
                let step = decoder.next(part)?;
                body.extend_from_slice(&part[step.consumed - step.data..step.consumed]);
                consumed += step.consumed;
                part = &part[step.consumed..];
            }
        }
        decoder.end()?;
        Ok((body, consumed))
    }

    fn check(framing: Framing, input: &str, expected: Result<(&str, usize), BodyError>) {
        let expected = expected.map(|(body, consumed)| (body.as_bytes().to_vec(), consumed));
        for cut in 0..=input.len() {
            let decoded = decode(framing, input.as_bytes(), cut);
            assert_eq!(decoded, expected, "{input:?} cut at {cut}");
        }
    }

    /// HT-1, HT-3: chunks with extensions and trailers, at every cut; what follows is left alone.
    #[test]
    fn chunks() {
        let chunked = Framing::Chunked;
        check(chunked, "0\r\n\r\n", Ok(("", 5)));
        check(chunked, "3\r\nabc\r\n0\r\n\r\nGET /", Ok(("abc", 13)));
        check(
            chunked,
            "3;x=\"y z\"\r\nabc\r\nA;\r\n0123456789\r\n0\r\n\r\n",
            Ok(("abc0123456789", 37)),
        );
        check(chunked, "000000000000003\r\nabc\r\n0\r\nA: b\r\nC:\r\n\r\n", Ok(("abc", 37)));
        for input in [
            "\r\n",
            ";a\r\n",
            "g\r\n",
            "+1\r\n",
            "-1\r\n",
            " 1\r\n",
            "1 \r\n",
            "1\n",
            "0x1\r\n",
            "0000000000000003\r\nabc\r\n0\r\n\r\n",
            "1;a\nb\r\n",
            "1;\0\r\n",
            "1\r\nab\r\n",
            "1\r\na\n",
            "1\r\r\n",
        ] {
            check(chunked, input, Err(BodyError::Chunk));
        }
        for input in ["0\r\n\n", "0\r\n: a\r\n", "0\r\na b: c\r\n", "0\r\na: b\nc", "0\r\n\r\r"] {
            check(chunked, input, Err(BodyError::Trailer));
        }
        for input in ["", "3", "3\r\n", "3\r\nab", "3\r\nabc\r\n0\r\n", "0\r\nA: b\r\n"] {
            check(chunked, input, Err(BodyError::Truncated));
        }
    }

    /// LM-2: endless extensions and trailers end at their bounds.
    #[test]
    fn bounds() {
        let long = format!("1;{}", "x".repeat(CHUNK_LINE_BYTES_MAX));
        assert_eq!(decode(Framing::Chunked, long.as_bytes(), 0), Err(BodyError::ChunkLine));
        let long = format!("0\r\n{}", "a: b\r\n".repeat(TRAILER_BYTES_MAX));
        assert_eq!(decode(Framing::Chunked, long.as_bytes(), 0), Err(BodyError::Trailer));
    }

    #[test]
    fn lengths_and_ends() {
        check(Framing::None, "GET /", Ok(("", 0)));
        check(Framing::Length(0), "GET /", Ok(("", 0)));
        check(Framing::Length(3), "abcGET /", Ok(("abc", 3)));
        check(Framing::Length(9), "abc", Err(BodyError::Truncated));
        check(Framing::UntilClose, "abc", Ok(("abc", 3)));
    }

    #[test]
    fn chunk_sizes_are_written_in_hexadecimal() {
        let written = |bytes| {
            let mut out = Vec::new();
            write_chunk_size(bytes, &mut out);
            String::from_utf8(out).expect("digits")
        };
        for bytes in [0, 1, 15, 16, 255, 256, 4_096, 1_048_575, 1_048_576] {
            assert_eq!(written(bytes), format!("{bytes:x}\r\n"));
        }
    }
}
