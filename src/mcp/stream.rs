//! Decides how far an event stream of a pod may reach the client (RV-5).
//!
//! [`EventStream`] tells how many of the bytes that the relay holds may go out: whole events that
//! have been checked, and lines between events. It holds no byte of them itself and knows no
//! socket. Pure; any shard.

#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

use super::response::{Awaited, Carrier, Checker, Refusal, Why};
use crate::limits::Limits;
use crate::sse::{Event, Scanner, Step};

/// What a push decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// How many bytes may be released now, counted from the first one still held: bytes of earlier
    /// pushes first, then of this one.
    pub released_bytes: usize,
    /// The event behind the released bytes is refused. Nothing after them may be released, ever.
    pub refusal: Option<Refusal>,
}

/// How a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Every request asked by id has its answer, or none was asked by id.
    Answered,
    /// A request has no answer yet, and the client may ask for the rest of the stream by the id of
    /// the last event: a normal end of the legacy transport.
    Resumable,
    /// A request has no answer, and none can come.
    Unanswered,
}

/// Checks the events of one stream. Feed it with [`push`](Self::push), then
/// [`finish`](Self::finish).
///
/// What is released of a given number of bytes, and the verdict with its offset, do not depend on
/// how they were cut.
#[derive(Clone, Debug)]
pub struct EventStream {
    scanner: Scanner,
    checker: Checker,
    awaited: Awaited,
    depth_max: usize,
    event_bytes_max: usize,
    /// Bytes of the stream read so far.
    read_bytes: u64,
    /// The last of them that are not released.
    held_bytes: usize,
    /// Bytes of data of the event at hand that the checker was given.
    data_bytes: u64,
    /// Where in the stream the last of them ends; after a joint, where the value of its line
    /// begins.
    data_end: u64,
    /// What the checker found in the event at hand; counts only if the event proves a message.
    found: Option<Refusal>,
    /// An event with an id was released.
    is_resumable: bool,
    /// The refusal that ended the stream.
    refused: Option<Refusal>,
}

impl EventStream {
    /// A stream from its first byte, answering what `awaited` holds. Of `limits`, `event_bytes_max`
    /// and `json_depth_max` count.
    #[must_use]
    pub fn new(awaited: Awaited, limits: &Limits) -> Self {
        Self {
            scanner: Scanner::new(),
            checker: Checker::new(Carrier::Event, limits.json_depth_max),
            awaited,
            depth_max: limits.json_depth_max,
            event_bytes_max: limits.event_bytes_max,
            read_bytes: 0,
            held_bytes: 0,
            data_bytes: 0,
            data_end: 0,
            found: None,
            is_resumable: false,
            refused: None,
        }
    }

    /// Takes the next bytes of the stream. After a refusal nothing is released any more.
    pub fn push(&mut self, input: &[u8]) -> Progress {
        let mut released_bytes = 0;
        let mut rest = input;
        while !rest.is_empty() && self.refused.is_none() {
            let room = self.event_bytes_max.saturating_sub(self.held_bytes);
            if room == 0 {
                self.refused = Some(self.refusal_here(Why::EventTooLarge));
                break;
            }
            let window = rest.get(..room).unwrap_or(rest);
            let (consumed, step) = self.scanner.next(window);
            rest = rest.get(consumed..).unwrap_or_default();
            self.read_bytes += consumed as u64;
            self.held_bytes += consumed;
            match step {
                Some(Step::Data(piece)) => {
                    self.check(piece, self.read_bytes - piece.len() as u64);
                    self.data_end = self.read_bytes;
                }
                // A refusal of the joint names the end of the line before it.
                Some(Step::Joint) => {
                    self.check(b"\n", self.data_end);
                    self.data_end = self.read_bytes;
                }
                Some(Step::Dispatch(event)) => released_bytes += self.dispatch(event),
                Some(Step::Release) => released_bytes += std::mem::take(&mut self.held_bytes),
                None => {}
            }
        }
        Progress { released_bytes, refusal: self.refused }
    }

    /// Ends the stream. The bytes still held are of an event that never ended, which clients
    /// discard; they must not be released.
    #[must_use]
    pub fn finish(&self) -> End {
        if self.is_answered() {
            End::Answered
        } else if self.is_resumable {
            End::Resumable
        } else {
            End::Unanswered
        }
    }

    /// What was asked, and what of it has been answered.
    #[must_use]
    pub fn awaited(&self) -> &Awaited {
        &self.awaited
    }

    /// Whether no request waits for its answer.
    #[must_use]
    pub fn is_answered(&self) -> bool {
        self.awaited.is_answered()
    }

    /// Whether an event with an id was released, so that the client may resume the stream.
    #[must_use]
    pub fn is_resumable(&self) -> bool {
        self.is_resumable
    }

    /// Bytes pushed and not released.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Gives the checker the next bytes of data, which stand at `start` of the stream.
    fn check(&mut self, piece: &[u8], start: u64) {
        if self.found.is_none()
            && let Err(refusal) = self.checker.push(piece, &self.awaited)
        {
            // The last byte of a token may be the one before this piece.
            let offset = (start + refusal.offset).saturating_sub(self.data_bytes);
            self.found = Some(Refusal { offset, ..refusal });
        }
        self.data_bytes += piece.len() as u64;
    }

    /// Ends the event at hand and returns how many bytes that releases.
    fn dispatch(&mut self, event: Event) -> usize {
        debug_assert_eq!(event.data_bytes, self.data_bytes, "the checker was given all data");
        let fresh = Checker::new(Carrier::Event, self.depth_max);
        let checker = std::mem::replace(&mut self.checker, fresh);
        let found = self.found.take();
        let data_bytes = std::mem::take(&mut self.data_bytes);
        if event.is_message && event.has_data {
            self.refused = found.or_else(|| {
                let refusal = checker.finish(&mut self.awaited).err()?;
                let offset = (self.data_end + refusal.offset).saturating_sub(data_bytes);
                Some(Refusal { offset, ..refusal })
            });
            if self.refused.is_some() {
                return 0;
            }
        }
        self.is_resumable |= event.has_id;
        std::mem::take(&mut self.held_bytes)
    }

    fn refusal_here(&self, why: Why) -> Refusal {
        Refusal { why, offset: self.read_bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::RequestId;
    use crate::mcp::response::Asked;

    const RESULT: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    const NOTIFICATION: &str = r#"{"jsonrpc":"2.0","method":"notifications/message"}"#;

    fn one() -> Asked {
        Asked::One(RequestId::from_token(b"1"))
    }

    /// The bytes released, and how it ended: `answered`, `resumable`, `unanswered`, or the label
    /// of the refusal and its offset.
    fn told(asked: &Asked, event_bytes_max: usize, pieces: &[&[u8]]) -> String {
        let limits = Limits { event_bytes_max, ..Limits::default() };
        let mut stream = EventStream::new(Awaited::new(asked.clone()), &limits);
        let (mut released, mut pushed, mut refusal) = (0, 0, None);
        for piece in pieces {
            let progress = stream.push(piece);
            pushed += piece.len();
            released += progress.released_bytes;
            refusal = progress.refusal;
            assert!(
                refusal.is_some() || released + stream.held_bytes() == pushed,
                "every byte is released or held"
            );
        }
        match (refusal, stream.finish()) {
            (Some(Refusal { why, offset }), _) => format!("{released} {} {offset}", why.label()),
            (None, end) => format!("{released} {end:?}").to_lowercase(),
        }
    }

    fn check_bounded(asked: &Asked, event_bytes_max: usize, text: &str, expected: &str) {
        let bytes = text.as_bytes();
        assert_eq!(told(asked, event_bytes_max, &[bytes]), expected, "{text:?}");
        for cut in 0..=bytes.len() {
            let (head, tail) = bytes.split_at(cut);
            let cut_verdict = told(asked, event_bytes_max, &[head, tail]);
            assert_eq!(cut_verdict, expected, "{text:?} cut at {cut}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(told(asked, event_bytes_max, &single), expected, "{text:?} byte by byte");
    }

    /// A stream that answers the request 1.
    fn check(text: &str, expected: &str) {
        check_bounded(&one(), 4096, text, expected);
    }

    /// RV-5: an event is released once it is whole and checked; what lies between events at once.
    #[test]
    fn whole_events_are_released() {
        check(&format!("data: {RESULT}\n\n"), "44 answered");
        check(&format!("data: {RESULT}\n"), "0 unanswered");
        check(&format!("data: {RESULT}\r\n\r\n"), "46 answered");
        check(&format!("data: {RESULT}\r\r"), "44 answered");
        check(": hi\n\n", "6 unanswered");
        check(": hi", "0 unanswered");
        check(&format!(": hi\r\n\r\ndata: {NOTIFICATION}\n\nretry: 1"), "66 unanswered");
        check(&format!("event: message\ndata: {RESULT}\n\nevent: m"), "59 answered");
        check("", "0 unanswered");
    }

    /// RV-5: the data of several lines is one text, joined by line feeds.
    #[test]
    fn lines_of_data_are_one_text() {
        let (head, tail) = RESULT.split_at(17);
        check(&format!("data: {head}\ndata: {tail}\n\n"), "51 answered");
        check(&format!("data: {head}\r\n: c\r\ndata:{tail}\r\ndata\n\n"), "62 answered");
        let (head, tail) = RESULT.split_at(5);
        check(&format!("data: {head}\ndata: {tail}\n\n"), "0 json_control 11");
        check("data: 12\ndata: 3\n\n", "0 not_object 7");
        check("data: {\ndata\ndata: x\n\n", "0 json_unexpected 19");
        check("data\ndata\n\n", "0 json_truncated 9");
        check("data: {\ndata:\n\n", "0 json_truncated 13");
        check("data: {\n\n", "0 json_truncated 7");
        check("data: 1\n\n", "0 not_object 6");
    }

    /// RV-5: an invalid message is refused where the event ends, with its place in the stream.
    #[test]
    fn invalid_messages_are_refused() {
        check(&format!(": hi\n\ndata: {{oops\n\ndata: {RESULT}\n\n"), "6 json_unexpected 13");
        check(&format!("data: {NOTIFICATION}\n\ndata: [{RESULT}]\n\n"), "58 array_not_asked 64");
        check("data: {oops\n", "0 unanswered");
        check(&format!("data: {}\n\n", RESULT.replace('1', "2")), "0 id_not_asked 41");
        check(&format!("data: \u{FEFF}{RESULT}\n\n"), "0 json_unexpected 6");
        check(&format!("data: {RESULT} {RESULT}\n\n"), "0 json_trailing 43");
        check("data:  \n\n", "0 json_truncated 7");
    }

    /// RV-5: events of another type, and events without data, are no messages and pass.
    #[test]
    fn other_events_pass_and_answer_nothing() {
        check(&format!("event: error\ndata: {RESULT}\n\n"), "57 unanswered");
        check(&format!("data: {RESULT}\nevent: ping\n\n"), "56 unanswered");
        check("data: {oops\nevent: ping\n\n", "25 unanswered");
        check(&format!("data: x\nevent: a\n\ndata: {RESULT}\n\n"), "62 answered");
        check(&format!("data: {RESULT}\nevent: x\n\ndata: {RESULT}\n\n"), "97 answered");
        check("data: \n\n", "8 unanswered");
        check("retry: 5\n\n", "10 unanswered");
        check("line without colon\n\n", "20 unanswered");
    }

    /// RV-3, RV-5: a request is answered once; what follows may notify and ask, not answer.
    #[test]
    fn requests_are_answered_once() {
        let answer = format!("data: {RESULT}\n\n");
        check(&format!("{answer}{answer}"), "44 id_answered 85");
        check(&format!("{answer}data: {NOTIFICATION}\n\n"), "102 answered");
        let many = Asked::Many(vec![RequestId::from_token(b"1"), RequestId::from_token(b"\"1\"")]);
        let other = answer.replace('1', "\"1\"");
        check_bounded(&many, 4096, &answer, "44 unanswered");
        check_bounded(&many, 4096, &format!("{other}{answer}"), "90 answered");
        check_bounded(&many, 4096, &format!("{answer}{answer}"), "44 id_answered 85");
        check_bounded(&many, 4096, &format!("data: [{RESULT}]\n\n"), "46 unanswered");
        check_bounded(&Asked::Anything, 4096, &format!("{answer}{answer}"), "88 answered");
        check_bounded(&Asked::Anything, 4096, "", "0 answered");
    }

    /// RV-5: a stream that ends after an event with an id may be resumed.
    #[test]
    fn streams_with_ids_are_resumable() {
        check("id: e1\nretry: 100\ndata: \n\n", "26 resumable");
        check("id: e1\n\n: c\n", "12 resumable");
        check("id: e1\n\ndata:\n\n", "15 resumable");
        check("id: e1\ndata: \n", "0 unanswered");
        check("id\ndata: \n\n", "11 unanswered");
        check(&format!("id: 1\ndata: {RESULT}\n\n"), "50 answered");
        check("id: 1\ndata: {\n\n", "0 json_truncated 13");
    }

    /// RV-5: one event, or one line between events, is bounded to the byte.
    #[test]
    fn events_are_bounded() {
        let answer = format!("data: {RESULT}\n\n");
        check_bounded(&one(), 44, &answer, "44 answered");
        check_bounded(&one(), 43, &answer, "0 event_too_large 43");
        check_bounded(&one(), 44, &format!(": c\n\n{answer}"), "49 answered");
        check_bounded(&one(), 43, &format!(": c\n\n{answer}"), "5 event_too_large 48");
        check_bounded(&one(), 8, ": 3456789", "0 event_too_large 8");
        check_bounded(&one(), 8, "retry: 10", "0 event_too_large 8");
        check_bounded(&one(), 44, &answer.replace('\n', "\r\n"), "0 event_too_large 44");
        check_bounded(&one(), 45, &answer.replace('\n', "\r\n"), "46 answered");
    }
}
