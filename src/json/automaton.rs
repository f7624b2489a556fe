//! The machine itself: the state between two bytes, and the one function that changes it.

use super::event::{Container, Failure, Members, Scalar, SyntaxError, Text, Visitor};
use super::number::Number;
use super::scan::plain_run_bytes;
use crate::limits::{JSON_CAPTURE_BYTES_MAX, JSON_DEPTH_MAX};

/// What the next byte may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Value,
    FirstElementOrClose,
    FirstKeyOrClose,
    Key,
    Colon,
    CommaOrClose,
    End,
    Text(Role),
    Escape(Role),
    Hex { role: Role, left: u8 },
    Continuation { role: Role, left: u8, low: u8, high: u8 },
    Number(Number),
    Literal { rest: &'static [u8], scalar: Scalar },
}

/// What a string is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Key,
    Value,
}

/// The automaton. One for each text; feed it with [`push`](Self::push), then
/// [`finish`](Self::finish).
#[derive(Clone, Debug)]
pub struct Automaton {
    state: State,
    depth: usize,
    depth_max: usize,
    /// How many of the open containers, from the root, are reported.
    reported: usize,
    /// One bit a level: set for an object.
    objects: [u64; JSON_DEPTH_MAX / 64],
    /// Start of a reported token that an earlier chunk began.
    captured: Vec<u8>,
    token_bytes: usize,
    /// Bytes of the text in chunks before this one.
    consumed: u64,
}

type Verdict<V> = Result<(), Failure<<V as Visitor>::Why>>;

impl Automaton {
    /// An automaton for a text nested at most `depth_max` levels deep (at most
    /// [`JSON_DEPTH_MAX`]; more is taken as that).
    #[must_use]
    pub fn new(depth_max: usize) -> Self {
        Self {
            state: State::Value,
            depth: 0,
            depth_max: depth_max.min(JSON_DEPTH_MAX),
            reported: 0,
            objects: [0; JSON_DEPTH_MAX / 64],
            captured: Vec::new(),
            token_bytes: 0,
            consumed: 0,
        }
    }

    /// Takes the next bytes of the text.
    ///
    /// # Errors
    ///
    /// The first failure; after one the automaton must not be fed again.
    pub fn push<V: Visitor>(&mut self, chunk: &[u8], visitor: &mut V) -> Verdict<V> {
        let mut cursor = Cursor { chunk, at: 0, token: 0 };
        while let Some(&byte) = chunk.get(cursor.at) {
            match self.state {
                State::Text(role) => self.text(role, &mut cursor, visitor)?,
                State::Number(number) => self.number(number, byte, &mut cursor, visitor)?,
                State::Value
                | State::FirstElementOrClose
                | State::FirstKeyOrClose
                | State::Key
                | State::Colon
                | State::CommaOrClose
                | State::End => {
                    if matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                        cursor.at += 1;
                    } else {
                        self.token(byte, &mut cursor, visitor)?;
                    }
                }
                State::Escape(_) | State::Hex { .. } | State::Continuation { .. } => {
                    self.inside_string(byte, &cursor)?;
                    cursor.at += 1;
                }
                State::Literal { rest, scalar } => {
                    self.literal(rest, scalar, byte, &mut cursor, visitor)?;
                }
            }
        }
        self.keep_cut_token(&cursor);
        self.consumed += chunk.len() as u64;
        Ok(())
    }

    /// Ends the text.
    ///
    /// # Errors
    ///
    /// [`SyntaxError::Truncated`] when the value is not whole, or what the visitor says of a number
    /// that only the end of the text ended.
    pub fn finish<V: Visitor>(&mut self, visitor: &mut V) -> Verdict<V> {
        let cursor = Cursor { chunk: &[], at: 0, token: 0 };
        if let State::Number(number) = self.state
            && number.may_end()
        {
            self.end_scalar(Scalar::Number, &cursor, 0, visitor)?;
        }
        if self.state == State::End {
            return Ok(());
        }
        Err(self.syntax(SyntaxError::Truncated, &cursor))
    }

    fn token<V: Visitor>(
        &mut self,
        byte: u8,
        cursor: &mut Cursor<'_>,
        visitor: &mut V,
    ) -> Verdict<V> {
        match (self.state, byte) {
            (State::FirstElementOrClose, b']')
            | (State::FirstKeyOrClose, b'}')
            | (State::CommaOrClose, b']' | b'}') => return self.close(byte, cursor, visitor),
            (State::Value | State::FirstElementOrClose, _) => {
                return self.begin_value(byte, cursor, visitor);
            }
            (State::FirstKeyOrClose | State::Key, b'"') => self.begin_string(Role::Key, cursor),
            (State::Colon, b':') => {
                self.state = State::Value;
                cursor.at += 1;
            }
            (State::CommaOrClose, b',') => {
                self.state = if self.in_object() { State::Key } else { State::Value };
                cursor.at += 1;
            }
            (State::End, _) => return Err(self.syntax(SyntaxError::Trailing, cursor)),
            _ => return Err(self.syntax(SyntaxError::Unexpected, cursor)),
        }
        Ok(())
    }

    fn begin_value<V: Visitor>(
        &mut self,
        byte: u8,
        cursor: &mut Cursor<'_>,
        visitor: &mut V,
    ) -> Verdict<V> {
        match byte {
            b'{' => return self.open(Container::Object, cursor, visitor),
            b'[' => return self.open(Container::Array, cursor, visitor),
            b'"' => self.begin_string(Role::Value, cursor),
            b'-' => self.begin_scalar(State::Number(Number::Minus), cursor),
            b'0' => self.begin_scalar(State::Number(Number::Zero), cursor),
            b'1'..=b'9' => self.begin_scalar(State::Number(Number::Integer), cursor),
            b't' => self.begin_literal(b"rue", Scalar::Boolean, cursor),
            b'f' => self.begin_literal(b"alse", Scalar::Boolean, cursor),
            b'n' => self.begin_literal(b"ull", Scalar::Null, cursor),
            _ => return Err(self.syntax(SyntaxError::Unexpected, cursor)),
        }
        Ok(())
    }

    fn begin_string(&mut self, role: Role, cursor: &mut Cursor<'_>) {
        cursor.at += 1;
        cursor.token = cursor.at;
        self.token_bytes = 0;
        self.state = State::Text(role);
    }

    fn begin_scalar(&mut self, state: State, cursor: &mut Cursor<'_>) {
        cursor.token = cursor.at;
        cursor.at += 1;
        self.token_bytes = 0;
        self.state = state;
    }

    fn begin_literal(&mut self, rest: &'static [u8], scalar: Scalar, cursor: &mut Cursor<'_>) {
        self.begin_scalar(State::Literal { rest, scalar }, cursor);
    }

    fn open<V: Visitor>(
        &mut self,
        container: Container,
        cursor: &mut Cursor<'_>,
        visitor: &mut V,
    ) -> Verdict<V> {
        if self.depth_max <= self.depth {
            return Err(self.syntax(SyntaxError::Depth, cursor));
        }
        let is_watched = self.is_watched();
        cursor.at += 1;
        if let Some(word) = self.objects.get_mut(self.depth / 64) {
            let bit = 1 << (self.depth % 64);
            match container {
                Container::Object => *word |= bit,
                Container::Array => *word &= !bit,
            }
        }
        self.depth += 1;
        self.state = match container {
            Container::Object => State::FirstKeyOrClose,
            Container::Array => State::FirstElementOrClose,
        };
        if is_watched {
            match visitor.open(container) {
                Ok(Members::Reported) => self.reported += 1,
                Ok(Members::Skipped) => {}
                Err(why) => return Err(self.rule(why, cursor)),
            }
        }
        Ok(())
    }

    fn close<V: Visitor>(
        &mut self,
        byte: u8,
        cursor: &mut Cursor<'_>,
        visitor: &mut V,
    ) -> Verdict<V> {
        let container = if self.in_object() { Container::Object } else { Container::Array };
        let expected = match container {
            Container::Object => b'}',
            Container::Array => b']',
        };
        if byte != expected {
            return Err(self.syntax(SyntaxError::Unexpected, cursor));
        }
        cursor.at += 1;
        let is_watched = self.is_watched();
        self.depth -= 1;
        if is_watched {
            self.reported -= 1;
            if let Err(why) = visitor.close(container) {
                return Err(self.rule(why, cursor));
            }
        }
        self.state = self.after_value();
        Ok(())
    }

    fn text<V: Visitor>(
        &mut self,
        role: Role,
        cursor: &mut Cursor<'_>,
        visitor: &mut V,
    ) -> Verdict<V> {
        let rest = cursor.chunk.get(cursor.at..).unwrap_or_default();
        cursor.at += plain_run_bytes(rest);
        let Some(&byte) = cursor.chunk.get(cursor.at) else {
            return Ok(());
        };
        match byte {
            b'"' => {
                let end = cursor.at;
                cursor.at += 1;
                match role {
                    Role::Value => return self.end_scalar(Scalar::String, cursor, end, visitor),
                    Role::Key => {
                        if self.is_watched() {
                            let text = self.token_text(cursor, end);
                            if let Err(why) = visitor.key(text) {
                                return Err(self.rule(why, cursor));
                            }
                        }
                        self.captured.clear();
                        self.state = State::Colon;
                    }
                }
            }
            b'\\' => {
                self.state = State::Escape(role);
                cursor.at += 1;
            }
            0x80.. => {
                let Some((left, low, high)) = continuation(byte) else {
                    return Err(self.syntax(SyntaxError::Utf8, cursor));
                };
                self.state = State::Continuation { role, left, low, high };
                cursor.at += 1;
            }
            _ => return Err(self.syntax(SyntaxError::Control, cursor)),
        }
        Ok(())
    }

    /// One byte of an escape or of a character of several bytes. Generic over no visitor: nothing
    /// is reported inside a string.
    fn inside_string<Why>(&mut self, byte: u8, cursor: &Cursor<'_>) -> Result<(), Failure<Why>> {
        self.state = match (self.state, byte) {
            (State::Escape(role), b'u') => State::Hex { role, left: 4 },
            (State::Escape(role), b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't')
            | (State::Hex { role, left: 1 }, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                State::Text(role)
            }
            (State::Hex { role, left }, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                State::Hex { role, left: left - 1 }
            }
            (State::Continuation { role, left, low, high }, _) if low <= byte && byte <= high => {
                if left == 1 {
                    State::Text(role)
                } else {
                    State::Continuation { role, left: left - 1, low: 0x80, high: 0xBF }
                }
            }
            (State::Continuation { .. }, _) => {
                return Err(self.syntax(SyntaxError::Utf8, cursor));
            }
            _ => return Err(self.syntax(SyntaxError::Escape, cursor)),
        };
        Ok(())
    }

    fn number<V: Visitor>(
        &mut self,
        number: Number,
        byte: u8,
        cursor: &mut Cursor<'_>,
        visitor: &mut V,
    ) -> Verdict<V> {
        if let Some(next) = number.after(byte) {
            self.state = State::Number(next);
            cursor.at += 1;
            return Ok(());
        }
        if !number.may_end() {
            return Err(self.syntax(SyntaxError::Unexpected, cursor));
        }
        // The byte that ends a number belongs to what follows it.
        self.end_scalar(Scalar::Number, cursor, cursor.at, visitor)
    }

    fn literal<V: Visitor>(
        &mut self,
        rest: &'static [u8],
        scalar: Scalar,
        byte: u8,
        cursor: &mut Cursor<'_>,
        visitor: &mut V,
    ) -> Verdict<V> {
        let Some((&expected, rest)) = rest.split_first() else {
            return Err(self.syntax(SyntaxError::Unexpected, cursor));
        };
        if byte != expected {
            return Err(self.syntax(SyntaxError::Unexpected, cursor));
        }
        cursor.at += 1;
        if rest.is_empty() {
            return self.end_scalar(scalar, cursor, cursor.at, visitor);
        }
        self.state = State::Literal { rest, scalar };
        Ok(())
    }

    fn end_scalar<V: Visitor>(
        &mut self,
        scalar: Scalar,
        cursor: &Cursor<'_>,
        end: usize,
        visitor: &mut V,
    ) -> Verdict<V> {
        if self.is_watched() {
            let text = self.token_text(cursor, end);
            if let Err(why) = visitor.scalar(scalar, text) {
                return Err(self.rule(why, cursor));
            }
        }
        self.captured.clear();
        self.state = self.after_value();
        Ok(())
    }

    /// The token that ends at `end`: a slice of this chunk, or joined behind what was kept.
    fn token_text<'a>(&'a mut self, cursor: &Cursor<'a>, end: usize) -> Text<'a> {
        let here = cursor.chunk.get(cursor.token..end).unwrap_or_default();
        if JSON_CAPTURE_BYTES_MAX < self.token_bytes + here.len() {
            Text::TooLong
        } else if self.token_bytes == 0 {
            Text::Whole(here)
        } else {
            self.captured.extend_from_slice(here);
            Text::Whole(&self.captured)
        }
    }

    /// Keeps what this chunk has of a reported token that goes on in the next one.
    fn keep_cut_token(&mut self, cursor: &Cursor<'_>) {
        let is_token = match self.state {
            State::Text(_)
            | State::Escape(_)
            | State::Hex { .. }
            | State::Continuation { .. }
            | State::Number(_)
            | State::Literal { .. } => true,
            State::Value
            | State::FirstElementOrClose
            | State::FirstKeyOrClose
            | State::Key
            | State::Colon
            | State::CommaOrClose
            | State::End => false,
        };
        if !is_token || !self.is_watched() {
            return;
        }
        let here = cursor.chunk.get(cursor.token..).unwrap_or_default();
        self.token_bytes = self.token_bytes.saturating_add(here.len());
        if self.token_bytes <= JSON_CAPTURE_BYTES_MAX {
            self.captured.extend_from_slice(here);
        }
    }

    fn is_watched(&self) -> bool {
        self.depth == self.reported
    }

    fn in_object(&self) -> bool {
        let Some(level) = self.depth.checked_sub(1) else {
            return false;
        };
        let word = self.objects.get(level / 64).copied().unwrap_or_default();
        (word >> (level % 64)) & 1 == 1
    }

    fn after_value(&self) -> State {
        if self.depth == 0 { State::End } else { State::CommaOrClose }
    }

    fn syntax<Why>(&self, error: SyntaxError, cursor: &Cursor<'_>) -> Failure<Why> {
        Failure::Syntax { error, offset: self.consumed + cursor.at as u64 }
    }

    fn rule<Why>(&self, why: Why, cursor: &Cursor<'_>) -> Failure<Why> {
        Failure::Rule { why, offset: self.consumed + cursor.at as u64 }
    }
}

/// A place in the chunk at hand.
struct Cursor<'a> {
    chunk: &'a [u8],
    at: usize,
    /// Where the token at hand begins in this chunk; 0 when it began before.
    token: usize,
}

/// How many bytes follow the first byte of a character, and the range of the next one
/// (RFC 3629, section 4).
fn continuation(first: u8) -> Option<(u8, u8, u8)> {
    match first {
        0xC2..=0xDF => Some((1, 0x80, 0xBF)),
        0xE0 => Some((2, 0xA0, 0xBF)),
        0xE1..=0xEC | 0xEE..=0xEF => Some((2, 0x80, 0xBF)),
        0xED => Some((2, 0x80, 0x9F)),
        0xF0 => Some((3, 0x90, 0xBF)),
        0xF1..=0xF3 => Some((3, 0x80, 0xBF)),
        0xF4 => Some((3, 0x80, 0x8F)),
        _ => None,
    }
}
