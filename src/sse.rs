//! A resumable automaton for event streams (WHATWG HTML, section 9.2.6), fed in chunks cut
//! anywhere.
//!
//! It tells where events end and hands out their data piece by piece; the caller keeps the bytes
//! and forwards them as they came. A few bytes of state, whatever the stream. It knows nothing of
//! JSON. Pure; any shard.

#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

use memchr::{memchr2, memchr3};

/// What a part of the stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// The next bytes of the data of the event at hand, never empty; they are the last ones
    /// consumed.
    Data(&'a [u8]),
    /// A line feed of that data: it joins what came before to the `data` line that begins here.
    Joint,
    /// A blank line ended the event; every byte up to here may be released.
    Dispatch(Event),
    /// The bytes up to here belong to no event (a comment or a blank line between events) and may
    /// be released.
    Release,
}

/// An event that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The type is absent, empty or `message`: clients of the protocol look at no other.
    pub is_message: bool,
    /// The data is not empty. Clients dispatch no event without data.
    pub has_data: bool,
    /// An `id` field that clients keep and that is not empty, so that they may resume after it.
    pub has_id: bool,
    /// Length of the data, in bytes.
    pub data_bytes: u64,
}

/// The automaton. One for each stream.
#[derive(Clone, Debug)]
pub struct Scanner {
    state: State,
    /// A line that is neither blank nor a comment has begun since the last dispatch.
    is_open: bool,
    has_data_line: bool,
    has_id: bool,
    kind: Kind,
    data_bytes: u64,
}

/// What the next byte is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The byte order mark that the stream may begin with; so many bytes of it came.
    Mark(usize),
    LineStart,
    /// A line ended with a carriage return; a line feed now is part of that end.
    AfterReturn,
    Comment,
    Name(Name),
    /// Behind the colon: one space is not part of the value.
    ValueStart(Field),
    Value(Field),
}

/// The start of a field's name: longer than [`NAME_BYTES_MAX`] is no name that matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Name {
    bytes: [u8; NAME_BYTES_MAX],
    length: usize,
}

/// A field whose value is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Data,
    Event,
    Id(IdValue),
    Other,
}

/// What has been read of the value of an `id` field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IdValue {
    Empty,
    Some,
    /// It has a NUL, so clients ignore the field.
    Ignored,
}

/// How the type of the event at hand compares with `message`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// So many of its bytes, and no other.
    Prefix(usize),
    Other,
}

const MARK: &[u8] = b"\xEF\xBB\xBF";
const MESSAGE: &[u8] = b"message";
const NAME_BYTES_MAX: usize = 5;

/// Place in the input at hand.
struct Cursor<'a> {
    input: &'a [u8],
    at: usize,
}

impl Default for Scanner {
    fn default() -> Self {
        Self::new()
    }
}

impl Scanner {
    /// A scanner at the start of a stream.
    #[must_use]
    pub fn new() -> Self {
        Self {
            state: State::Mark(0),
            is_open: false,
            has_data_line: false,
            has_id: false,
            kind: Kind::Prefix(0),
            data_bytes: 0,
        }
    }

    /// Reads on in `input` up to the end of the next step, and returns how many bytes that took.
    ///
    /// Without a step all of `input` was taken; a step may take no byte. Call it again with the
    /// rest, then with the bytes that follow: only how data is split into pieces depends on the
    /// cuts.
    pub fn next<'a>(&mut self, input: &'a [u8]) -> (usize, Option<Step<'a>>) {
        let mut cursor = Cursor { input, at: 0 };
        while let Some(&byte) = input.get(cursor.at) {
            let step = match self.state {
                State::Mark(seen) => {
                    self.mark(seen, byte, &mut cursor);
                    None
                }
                State::AfterReturn => self.after_return(byte, &mut cursor),
                State::LineStart => self.line_start(byte, &mut cursor),
                State::Comment => self.comment(&mut cursor),
                State::Name(name) => self.name(name, &mut cursor),
                State::ValueStart(field) => {
                    cursor.at += usize::from(byte == b' ');
                    self.state = State::Value(field);
                    None
                }
                State::Value(field) => self.value(field, &mut cursor),
            };
            if step.is_some() {
                return (cursor.at, step);
            }
        }
        (cursor.at, None)
    }

    fn mark(&mut self, seen: usize, byte: u8, cursor: &mut Cursor<'_>) {
        if MARK.get(seen) == Some(&byte) {
            cursor.at += 1;
            self.state =
                if seen + 1 == MARK.len() { State::LineStart } else { State::Mark(seen + 1) };
        } else if seen == 0 {
            self.state = State::LineStart;
        } else {
            // A part of the mark begins a name that no field has.
            self.is_open = true;
            self.state = State::Name(Name::UNKNOWN);
        }
    }

    fn after_return(&mut self, byte: u8, cursor: &mut Cursor<'_>) -> Option<Step<'static>> {
        self.state = State::LineStart;
        if byte != b'\n' {
            return None;
        }
        cursor.at += 1;
        self.released_unless_open()
    }

    fn line_start(&mut self, byte: u8, cursor: &mut Cursor<'_>) -> Option<Step<'static>> {
        match byte {
            b'\r' | b'\n' => {
                self.end_line(byte, cursor);
                if !self.is_open {
                    return Some(Step::Release);
                }
                let event = Event {
                    is_message: matches!(self.kind, Kind::Prefix(0 | 7)),
                    has_data: self.data_bytes != 0,
                    has_id: self.has_id,
                    data_bytes: self.data_bytes,
                };
                *self = Self { state: self.state, ..Self::new() };
                return Some(Step::Dispatch(event));
            }
            b':' => {
                cursor.at += 1;
                self.state = State::Comment;
            }
            _ => {
                self.is_open = true;
                self.state = State::Name(Name::EMPTY);
            }
        }
        None
    }

    fn comment(&mut self, cursor: &mut Cursor<'_>) -> Option<Step<'static>> {
        cursor.take_line();
        let &end = cursor.input.get(cursor.at)?;
        self.end_line(end, cursor);
        self.released_unless_open()
    }

    fn name(&mut self, mut name: Name, cursor: &mut Cursor<'_>) -> Option<Step<'static>> {
        let rest = cursor.rest();
        let length = memchr3(b':', b'\r', b'\n', rest).unwrap_or(rest.len());
        name.extend(rest.get(..length).unwrap_or_default());
        cursor.at += length;
        self.state = State::Name(name);
        let &end = cursor.input.get(cursor.at)?;
        let field = name.field();
        self.state = if end == b':' {
            cursor.at += 1;
            State::ValueStart(field)
        } else {
            // A line without colon is a field whose value is empty.
            State::Value(field)
        };
        match field {
            Field::Data if self.has_data_line => {
                self.data_bytes += 1;
                return Some(Step::Joint);
            }
            Field::Data => self.has_data_line = true,
            Field::Event => self.kind = Kind::Prefix(0),
            Field::Id(_) | Field::Other => {}
        }
        None
    }

    fn value<'a>(&mut self, field: Field, cursor: &mut Cursor<'a>) -> Option<Step<'a>> {
        let piece = cursor.take_line();
        match field {
            Field::Data if !piece.is_empty() => {
                self.data_bytes += piece.len() as u64;
                return Some(Step::Data(piece));
            }
            Field::Data | Field::Other => {}
            Field::Event => self.kind = self.kind.after(piece),
            Field::Id(id) => self.state = State::Value(Field::Id(id.after(piece))),
        }
        let &end = cursor.input.get(cursor.at)?;
        if let State::Value(Field::Id(id)) = self.state {
            match id {
                IdValue::Empty => self.has_id = false,
                IdValue::Some => self.has_id = true,
                IdValue::Ignored => {}
            }
        }
        self.end_line(end, cursor);
        None
    }

    fn end_line(&mut self, end: u8, cursor: &mut Cursor<'_>) {
        cursor.at += 1;
        self.state = if end == b'\r' { State::AfterReturn } else { State::LineStart };
    }

    fn released_unless_open(&self) -> Option<Step<'static>> {
        (!self.is_open).then_some(Step::Release)
    }
}

impl<'a> Cursor<'a> {
    fn rest(&self) -> &'a [u8] {
        self.input.get(self.at..).unwrap_or_default()
    }

    /// Takes what is left of the line, without its end.
    fn take_line(&mut self) -> &'a [u8] {
        let rest = self.rest();
        let length = memchr2(b'\r', b'\n', rest).unwrap_or(rest.len());
        self.at += length;
        rest.get(..length).unwrap_or_default()
    }
}

impl Name {
    const EMPTY: Self = Self { bytes: [0; NAME_BYTES_MAX], length: 0 };
    const UNKNOWN: Self = Self { length: NAME_BYTES_MAX + 1, ..Self::EMPTY };

    fn extend(&mut self, piece: &[u8]) {
        for &byte in piece.iter().take(NAME_BYTES_MAX + 1) {
            if let Some(slot) = self.bytes.get_mut(self.length) {
                *slot = byte;
            }
            self.length = (self.length + 1).min(NAME_BYTES_MAX + 1);
        }
    }

    fn field(&self) -> Field {
        match self.bytes.get(..self.length) {
            Some(b"data") => Field::Data,
            Some(b"event") => Field::Event,
            Some(b"id") => Field::Id(IdValue::Empty),
            _ => Field::Other,
        }
    }
}

impl IdValue {
    fn after(self, piece: &[u8]) -> Self {
        if self == Self::Ignored || piece.contains(&0) {
            Self::Ignored
        } else if piece.is_empty() {
            self
        } else {
            Self::Some
        }
    }
}

impl Kind {
    fn after(self, piece: &[u8]) -> Self {
        let Self::Prefix(length) = self else {
            return self;
        };
        let rest = MESSAGE.get(length..).unwrap_or_default();
        if rest.starts_with(piece) { Self::Prefix(length + piece.len()) } else { Self::Other }
    }
}

const _: () = assert!(MESSAGE.len() == 7, "a whole match is told by its length");

#[cfg(test)]
mod tests {
    use super::*;

    /// What `stream` says, one character a step: data as it is with `/` for a joint, `!` for a
    /// message, `?` for another event, `.` for one without data, `#` for an id, `_` for a release.
    fn told(pieces: &[&[u8]]) -> String {
        let mut scanner = Scanner::new();
        let mut told = String::new();
        for piece in pieces {
            let mut rest = *piece;
            while !rest.is_empty() {
                let (consumed, step) = scanner.next(rest);
                assert!(
                    step.is_some() || consumed == rest.len(),
                    "a call without a step takes all bytes"
                );
                rest = rest.get(consumed..).expect("no more than the input");
                match step {
                    Some(Step::Data(data)) => told.push_str(&String::from_utf8_lossy(data)),
                    Some(Step::Joint) => told.push('/'),
                    Some(Step::Release) => told.push('_'),
                    Some(Step::Dispatch(event)) => {
                        told.push(if event.is_message { '!' } else { '?' });
                        if !event.has_data {
                            told.push('.');
                        }
                        if event.has_id {
                            told.push('#');
                        }
                    }
                    None => {}
                }
            }
        }
        told
    }

    fn check(stream: &str, expected: &str) {
        let bytes = stream.as_bytes();
        assert_eq!(told(&[bytes]), expected, "{stream:?}");
        for cut in 0..=bytes.len() {
            let (head, tail) = bytes.split_at(cut);
            assert_eq!(told(&[head, tail]), expected, "{stream:?} cut at {cut}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(told(&single), expected, "{stream:?} byte by byte");
    }

    /// RV-5: line ends are LF, CR and CRLF, in any mixture and however they are cut.
    #[test]
    fn lines_end_in_three_ways() {
        check("data: a\n\n", "a!");
        check("data: a\r\r", "a!");
        check("data: a\r\n\r\n", "a!_");
        check("data: a\r\ndata: b\rdata: c\n\r\n", "a/b/c!_");
        check("data: a\n\r\ndata: b\r\n\n", "a!_b!");
        check("data: a\r\r\ndata: b\n\n", "a!_b!");
        check("\r\n\n\r\r\n", "______");
        check("data: a\n", "a");
        check("data: a", "a");
    }

    /// RV-5: fields, comments and lines without colon are read as clients read them.
    #[test]
    fn fields_are_told_apart() {
        check("data:a\n\n", "a!");
        check("data:  a \n\n", " a !");
        check("data: a:b\n\n", "a:b!");
        check("data\n\n", "!.");
        check("data:\n\n", "!.");
        check("data\ndata\n\n", "/!");
        check("data:\ndata: a\ndata\n\n", "/a/!");
        check(" data: a\n\n", "!.");
        check("Data: a\n\n", "!.");
        check("datas: a\n\n", "!.");
        check("dat: a\n\n", "!.");
        check("retry: 100\nfoo: bar\nfoo\n\n", "!.");
        check("\u{0}: a\n\n", "!.");
        check(": hello\n\n:\n", "___");
        check("data: a\n: inside\ndata: b\n\n", "a/b!");
        check(":a\r\n:b\r", "___");
    }

    /// RV-5: only the type `message`, written or implied, is a message; the last one counts.
    #[test]
    fn types_are_compared_whole() {
        check("event: message\ndata: a\n\n", "a!");
        check("data: a\nevent:message\n\n", "a!");
        check("event:\ndata: a\n\n", "a!");
        check("event\ndata: a\n\n", "a!");
        check("event: error\ndata: a\n\ndata: b\n\n", "a?b!");
        check("data: a\nevent: ping\n\n", "a?");
        check("event: ping\nevent: message\ndata: a\n\n", "a!");
        check("event: message\nevent: ping\ndata: a\n\n", "a?");
        check("event: messag\ndata: a\n\n", "a?");
        check("event: messages\ndata: a\n\n", "a?");
        check("event: message \ndata: a\n\n", "a?");
        check("event:  message\ndata: a\n\n", "a?");
        check("event: Message\ndata: a\n\n", "a?");
        check("event: messagemessage\ndata: a\n\n", "a?");
    }

    /// RV-5: an id counts unless it is empty or has a NUL.
    #[test]
    fn ids_are_seen() {
        check("id: 1\n\n", "!.#");
        check("id: 1\ndata:\n\ndata: a\n\n", "!.#a!");
        check("data: a\nid:1\n\n", "a!#");
        check("id\ndata: a\n\n", "a!");
        check("id: 1\nid:\ndata: a\n\n", "a!");
        check("id: 1\u{0}\ndata: a\n\n", "a!");
        check("id: 1\nid: \u{0}2\n\n", "!.#");
        check("idx: 1\n\n", "!.");
    }

    /// RV-5: one byte order mark at the start is no part of the first line.
    #[test]
    fn mark_is_skipped_once() {
        check("\u{FEFF}data: a\n\n", "a!");
        check("\u{FEFF}\u{FEFF}data: a\n\n", "!.");
        check("\n\u{FEFF}data: a\n\n", "_!.");
        check("\u{FEFF}\n", "_");
        check("\u{FEFE}data: a\n\n", "!.");
    }
}
