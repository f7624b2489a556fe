//! The rules of one message, told token by token (RV-1, RV-2). Keeps a few words of state; the
//! only rank-one knowledge it has is the automaton's visitor. Pure; any shard.

use super::asked::{Asked, Awaited, IdSet, Standing};
use super::refusal::Why;
use crate::json::text::{is_integral, is_same_text};
use crate::json::{Container, Members, Scalar, Text, Visitor};
use crate::mcp::member::{Named, named};

/// What a valid message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// A result or an error. When ids are compared it answers a request that waited, unless it is
    /// an error without id among the answers to an array.
    Response,
    /// The pod asks the client; in an event only.
    Request,
    /// The pod notifies the client; in an event only.
    Notification,
    /// An array of messages.
    Batch,
}

/// Where a message stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// The body of an answer: only responses can stand there.
    Body,
    /// An event of a stream: the pod may also ask and notify.
    Event,
}

/// What has been read of a message.
#[derive(Clone, Debug)]
pub(super) struct Envelope {
    carrier: Carrier,
    place: Place,
    form: Form,
    /// The member whose value comes next.
    member: Member,
    /// One bit for each [`Member`] seen in the object at hand.
    seen: u16,
    /// The object at hand has a member that has no rule.
    has_foreign: bool,
    id: Id,
    /// The requests that responses read so far answer.
    claimed: IdSet,
}

/// Which container is at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Root,
    Array,
    Object,
    Error,
}

/// What the whole text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Unread,
    One(Message),
    EmptyArray,
    Array,
}

/// The members that have rules, and all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Member {
    Version,
    Id,
    Result,
    Error,
    Method,
    Params,
    Code,
    Message,
    Data,
    Other,
}

/// What the `id` of the object at hand is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Id {
    Absent,
    Null,
    Read(Standing),
}

const ENVELOPE: &[(&[u8], Member)] = &[
    (b"jsonrpc", Member::Version),
    (b"id", Member::Id),
    (b"result", Member::Result),
    (b"error", Member::Error),
    (b"method", Member::Method),
    (b"params", Member::Params),
];

const ERROR: &[(&[u8], Member)] =
    &[(b"code", Member::Code), (b"message", Member::Message), (b"data", Member::Data)];

/// An [`Envelope`] being read, with what was asked.
pub(super) struct Reader<'a> {
    pub(super) envelope: &'a mut Envelope,
    pub(super) awaited: &'a Awaited,
}

impl Envelope {
    pub(super) fn new(carrier: Carrier) -> Self {
        Self {
            carrier,
            place: Place::Root,
            form: Form::Unread,
            member: Member::Other,
            seen: 0,
            has_foreign: false,
            id: Id::Absent,
            claimed: IdSet::default(),
        }
    }

    /// The requests answered.
    pub(super) fn claimed(&self) -> &IdSet {
        &self.claimed
    }

    /// What was read, once the text is over.
    pub(super) fn message(&self) -> Option<Message> {
        match self.form {
            Form::One(message) => Some(message),
            Form::Array => Some(Message::Batch),
            Form::Unread | Form::EmptyArray => None,
        }
    }

    fn has(&self, member: Member) -> bool {
        self.seen & member.bit() != 0
    }

    fn begin_object(&mut self) -> Members {
        self.place = Place::Object;
        self.seen = 0;
        self.has_foreign = false;
        self.id = Id::Absent;
        Members::Reported
    }

    fn conclude_object(&mut self, awaited: &Awaited) -> Result<(), Why> {
        if !self.has(Member::Version) {
            return Err(Why::VersionMissing);
        }
        let message = if self.has(Member::Result) || self.has(Member::Error) {
            self.conclude_response(awaited)?
        } else if self.has(Member::Method) {
            self.conclude_call()?
        } else {
            return Err(Why::ResultMissing);
        };
        (self.place, self.form) = match self.form {
            Form::Unread | Form::One(_) => (Place::Root, Form::One(message)),
            Form::EmptyArray | Form::Array => (Place::Array, Form::Array),
        };
        Ok(())
    }

    fn conclude_response(&mut self, awaited: &Awaited) -> Result<Message, Why> {
        // One client drops such an event without a word and waits on. Such a body it rejects at
        // once, and others read it, so bodies may have them.
        let is_foreign = self.has_foreign || self.has(Member::Params);
        if self.carrier == Carrier::Event && is_foreign {
            return Err(Why::MemberForeign);
        }
        match (self.id, awaited.asked()) {
            (Id::Absent, _) if self.has(Member::Result) => return Err(Why::IdMissing),
            (Id::Null, _) if self.has(Member::Result) => return Err(Why::IdInvalid),
            // Every client waits for ever for the answer that this error was.
            (Id::Absent | Id::Null, Asked::One(_)) => return Err(Why::ErrorWithoutId),
            (Id::Absent | Id::Null, Asked::Many(_) | Asked::Anything)
            | (Id::Read(_), Asked::Anything) => {}
            (Id::Read(Standing::Waits(index)), _) => self.claimed.insert(index),
            (Id::Read(Standing::Answered), _) => return Err(Why::IdAnswered),
            (Id::Read(Standing::Foreign), _) => return Err(Why::IdNotAsked),
        }
        Ok(Message::Response)
    }

    fn conclude_call(&self) -> Result<Message, Why> {
        match (self.carrier, self.id) {
            (Carrier::Body, _) => Err(Why::NotResponse),
            (Carrier::Event, Id::Absent) => Ok(Message::Notification),
            (Carrier::Event, Id::Null) => Err(Why::IdInvalid),
            (Carrier::Event, Id::Read(_)) => Ok(Message::Request),
        }
    }

    fn conclude_error(&mut self) -> Result<(), Why> {
        if !self.has(Member::Code) {
            return Err(Why::ErrorCodeMissing);
        }
        if !self.has(Member::Message) {
            return Err(Why::ErrorMessageMissing);
        }
        self.place = Place::Object;
        Ok(())
    }

    fn read_id(&mut self, scalar: Scalar, text: Text<'_>, awaited: &Awaited) -> Result<(), Why> {
        if scalar == Scalar::Null {
            self.id = Id::Null;
            return Ok(());
        }
        let standing = awaited.standing(scalar, text, &self.claimed);
        let is_valid = match scalar {
            Scalar::String => true,
            Scalar::Number => standing != Standing::Foreign || is_integer(text),
            Scalar::Boolean | Scalar::Null => false,
        };
        if !is_valid {
            return Err(Why::IdInvalid);
        }
        self.id = Id::Read(standing);
        Ok(())
    }
}

impl Visitor for Reader<'_> {
    type Why = Why;

    fn open(&mut self, container: Container) -> Result<Members, Why> {
        let envelope = &mut *self.envelope;
        match (envelope.place, container) {
            (Place::Root | Place::Array, Container::Object) => Ok(envelope.begin_object()),
            (Place::Root, Container::Array) => match self.awaited.asked() {
                Asked::One(_) => Err(Why::ArrayNotAsked),
                Asked::Many(_) | Asked::Anything => {
                    (envelope.place, envelope.form) = (Place::Array, Form::EmptyArray);
                    Ok(Members::Reported)
                }
            },
            (Place::Array, Container::Array) => Err(Why::NotObject),
            (Place::Object | Place::Error, _) => match (envelope.member, container) {
                (Member::Result, Container::Object)
                | (Member::Params | Member::Data | Member::Other, _) => Ok(Members::Skipped),
                (Member::Error, Container::Object) => {
                    envelope.place = Place::Error;
                    Ok(Members::Reported)
                }
                (Member::Result, Container::Array) => Err(Why::ResultNotObject),
                (Member::Error, Container::Array) => Err(Why::ErrorNotObject),
                (Member::Version, _) => Err(Why::VersionWrong),
                (Member::Id, _) => Err(Why::IdInvalid),
                (Member::Method, _) => Err(Why::MethodInvalid),
                (Member::Code, _) => Err(Why::ErrorCodeInvalid),
                (Member::Message, _) => Err(Why::ErrorMessageInvalid),
            },
        }
    }

    fn close(&mut self, _: Container) -> Result<(), Why> {
        let envelope = &mut *self.envelope;
        match envelope.place {
            Place::Object => envelope.conclude_object(self.awaited),
            Place::Error => envelope.conclude_error(),
            Place::Root | Place::Array => {
                if envelope.form == Form::EmptyArray {
                    return Err(Why::ArrayEmpty);
                }
                envelope.place = Place::Root;
                Ok(())
            }
        }
    }

    fn key(&mut self, text: Text<'_>) -> Result<(), Why> {
        let envelope = &mut *self.envelope;
        let names = match envelope.place {
            Place::Error => ERROR,
            Place::Root | Place::Array | Place::Object => ENVELOPE,
        };
        let member = match named(text, names) {
            Named::Exactly(member) => member,
            Named::Disguised => return Err(Why::KeyDisguised),
            Named::Not => Member::Other,
        };
        envelope.member = member;
        if member == Member::Other {
            envelope.has_foreign |= envelope.place == Place::Object;
            return Ok(());
        }
        if envelope.has(member) {
            return Err(Why::KeyDuplicated);
        }
        envelope.seen |= member.bit();
        let has_result = envelope.has(Member::Result);
        let has_error = envelope.has(Member::Error);
        if has_result && has_error {
            return Err(Why::ResultAndError);
        }
        if envelope.has(Member::Method) && (has_result || has_error) {
            return Err(Why::MethodBesideAnswer);
        }
        Ok(())
    }

    fn scalar(&mut self, scalar: Scalar, text: Text<'_>) -> Result<(), Why> {
        let envelope = &mut *self.envelope;
        match envelope.place {
            Place::Root | Place::Array => return Err(Why::NotObject),
            Place::Object | Place::Error => {}
        }
        let is_string = scalar == Scalar::String;
        match envelope.member {
            Member::Version if !is_string || !is_two(text) => Err(Why::VersionWrong),
            Member::Id => envelope.read_id(scalar, text, self.awaited),
            Member::Result => Err(Why::ResultNotObject),
            Member::Error => Err(Why::ErrorNotObject),
            Member::Method if !is_string => Err(Why::MethodInvalid),
            Member::Code if scalar != Scalar::Number || !is_integer(text) => {
                Err(Why::ErrorCodeInvalid)
            }
            Member::Message if !is_string => Err(Why::ErrorMessageInvalid),
            Member::Version
            | Member::Method
            | Member::Params
            | Member::Code
            | Member::Message
            | Member::Data
            | Member::Other => Ok(()),
        }
    }
}

impl Member {
    const fn bit(self) -> u16 {
        1 << self as u16
    }
}

fn is_two(text: Text<'_>) -> bool {
    match text {
        Text::Whole(text) => is_same_text(text, b"2.0"),
        Text::TooLong => false,
    }
}

/// Whether a number is an integer by its value. One too long to be handed over whole is taken for
/// none.
fn is_integer(text: Text<'_>) -> bool {
    match text {
        Text::Whole(number) => is_integral(number),
        Text::TooLong => false,
    }
}
