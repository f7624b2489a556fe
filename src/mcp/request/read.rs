//! One pass over a body: the shape of the message, its id, and the members that route it. A key
//! that occurs twice, or in a second spelling, is refused: two parsers would read two messages, and
//! a policy decided on one would be bypassed by the other.

use std::borrow::Cow;
use std::convert::Infallible;

use crate::ids::RequestId;
use crate::json::text::is_integral;
use crate::json::{Automaton, Container, Failure, Members, Scalar, Text, Visitor, unescape};
use crate::limits::{BATCH_REQUESTS_MAX, REQUEST_ID_BYTES_MAX};
use crate::mcp::fault::Fault;
use crate::mcp::member::{Named, named};

/// A body that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// One message.
    Single(Single<'a>),
    /// An array of messages.
    Batch(Batch),
}

/// An array of messages: requests and notifications, or responses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// The ids of the requests in it, distinct.
    pub ids: Vec<RequestId>,
    /// Whether one of them is `initialize`.
    pub has_initialize: bool,
}

/// What one message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It has a method and an id.
    Request,
    /// It has a method and no id.
    Notification,
    /// It answers a request of the pod.
    Response,
}

/// One message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Single<'a> {
    /// `id` of a request or a response.
    pub id: Option<RequestId>,
    /// `method`
    pub method: Option<Cow<'a, str>>,
    /// `params.name`
    pub name: Option<Cow<'a, str>>,
    /// `params.uri`
    pub uri: Option<Cow<'a, str>>,
    /// `params.taskId`
    pub task_id: Option<Cow<'a, str>>,
    /// `params._meta`, as far as it is reserved.
    pub meta: Meta<'a>,
}

/// The reserved keys of `params._meta`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta<'a> {
    /// `io.modelcontextprotocol/protocolVersion` as it is written, without its quotes.
    pub protocol_version: Option<&'a [u8]>,
    /// `io.modelcontextprotocol/clientCapabilities` is an object.
    pub has_capabilities: bool,
    /// Any of the keys that only modern clients send is there, whatever its value.
    pub is_reserved: bool,
}

/// Why a body is refused, and whom that answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The fault.
    pub fault: Fault,
    /// The request's id, if it was read and is valid.
    pub id: Option<RequestId>,
    /// The protocol version that was asked for, as a raw JSON string.
    pub requested: Option<Box<[u8]>>,
    /// Whether the body means to be JSON-RPC: it has a `jsonrpc` key, or a method and an id.
    pub is_json_rpc_shaped: bool,
}

impl Message<'_> {
    /// The id of a single request.
    #[must_use]
    pub fn id(&self) -> Option<&RequestId> {
        match self {
            Self::Single(single) if single.kind() == Kind::Request => single.id.as_ref(),
            Self::Single(_) | Self::Batch(_) => None,
        }
    }
}

impl Single<'_> {
    /// What the message is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match (&self.method, &self.id) {
            (None, _) => Kind::Response,
            (Some(_), None) => Kind::Notification,
            (Some(_), Some(_)) => Kind::Request,
        }
    }
}

/// Reads a body.
///
/// # Errors
///
/// - [`Fault::NotJson`]: it is not one JSON text of at most `depth_max` levels, in UTF-8.
/// - [`Fault::MessageInvalid`]: it is no JSON-RPC 2.0 message, or no array of such.
/// - [`Fault::DuplicateKey`]: a key that routes occurs twice or in disguise.
/// - [`Fault::IdInvalid`]: the id is neither a string nor an integer, or too long.
pub fn read(body: &[u8], depth_max: usize) -> Result<Message<'_>, Refusal> {
    let mut automaton = Automaton::new(depth_max);
    let mut reader = Reader { body, ..Reader::default() };
    let mut refused = automaton.push(body, &mut reader).err();
    if refused.is_none() {
        refused = automaton.finish(&mut reader).err();
    }
    match refused {
        None => reader.conclude(),
        Some(Failure::Syntax { .. }) => Err(Refusal {
            fault: Fault::NotJson,
            id: None,
            requested: None,
            is_json_rpc_shaped: reader.is_json_rpc_shaped,
        }),
        Some(Failure::Rule { why, .. }) => match why {},
    }
}

/// The members of a message that have rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Member {
    Version,
    Id,
    Method,
    Params,
    Result,
    Error,
    Name,
    Uri,
    TaskId,
    Meta,
    Cursor,
    Arguments,
    ProtocolVersion,
    ClientInfo,
    ClientCapabilities,
    LogLevel,
    Other,
}

impl Member {
    const fn bit(self) -> u32 {
        1 << self as u32
    }
}

const ENVELOPE: &[(&[u8], Member)] = &[
    (b"jsonrpc", Member::Version),
    (b"id", Member::Id),
    (b"method", Member::Method),
    (b"params", Member::Params),
    (b"result", Member::Result),
    (b"error", Member::Error),
];

const PARAMS: &[(&[u8], Member)] = &[
    (b"name", Member::Name),
    (b"arguments", Member::Arguments),
    (b"_meta", Member::Meta),
    (b"uri", Member::Uri),
    (b"cursor", Member::Cursor),
    (b"taskId", Member::TaskId),
];

const META: &[(&[u8], Member)] = &[
    (b"io.modelcontextprotocol/protocolVersion", Member::ProtocolVersion),
    (b"io.modelcontextprotocol/clientInfo", Member::ClientInfo),
    (b"io.modelcontextprotocol/clientCapabilities", Member::ClientCapabilities),
    (b"io.modelcontextprotocol/logLevel", Member::LogLevel),
];

/// Where the next token stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Root,
    Array,
    Message,
    Params,
    Meta,
}

/// What was read so far. What is wrong is noted, and the reading goes on: whether a body means to
/// be JSON-RPC, and whose id it has, may show only at its end.
#[derive(Debug, Default)]
struct Reader<'a> {
    body: &'a [u8],
    place: Place,
    is_array: bool,
    member: Option<Member>,
    /// One bit for each member that the message at hand has.
    seen: u32,
    id: Id,
    fault: Option<Fault>,
    is_json_rpc_shaped: bool,
    single: Single<'a>,
    batch: Batch,
    calls_count: usize,
    responses_count: usize,
}

/// What the id of the message at hand is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Id {
    #[default]
    Single,
    Invalid,
    Doubled,
}

impl<'a> Reader<'a> {
    fn has(&self, member: Member) -> bool {
        self.seen & member.bit() != 0
    }

    /// Notes what is wrong; the first thing counts.
    fn refuse(&mut self, fault: Fault) {
        self.fault.get_or_insert(fault);
    }

    fn invalid_unless(&mut self, is_valid: bool) {
        if !is_valid {
            self.refuse(Fault::MessageInvalid);
        }
    }

    fn begin_message(&mut self) {
        self.place = Place::Message;
        self.seen = 0;
        self.id = Id::Single;
        self.single = Single::default();
    }

    /// The message at hand is over.
    fn end_message(&mut self) {
        let has_answer = self.has(Member::Result) || self.has(Member::Error);
        // Two answers in one, of which two readers take different ones.
        self.invalid_unless(!(self.has(Member::Result) && self.has(Member::Error)));
        let is_call = self.has(Member::Method);
        self.is_json_rpc_shaped |= self.has(Member::Version) || (is_call && self.has(Member::Id));
        self.invalid_unless(self.has(Member::Version) && has_answer != is_call);
        if self.id == Id::Invalid {
            self.refuse(Fault::IdInvalid);
        }
        self.place = if self.is_array { Place::Array } else { Place::Root };
        if self.is_array {
            self.gather();
        }
    }

    /// Adds the message at hand to those of the array.
    fn gather(&mut self) {
        let single = std::mem::take(&mut self.single);
        self.batch.has_initialize |= single.method.as_deref() == Some("initialize");
        match (single.kind(), single.id) {
            (Kind::Response, _) => self.responses_count += 1,
            (Kind::Notification, _) | (Kind::Request, None) => self.calls_count += 1,
            (Kind::Request, Some(id)) => {
                self.calls_count += 1;
                let is_room = self.batch.ids.len() < BATCH_REQUESTS_MAX;
                self.invalid_unless(is_room && !self.batch.ids.contains(&id));
                if is_room {
                    self.batch.ids.push(id);
                }
            }
        }
    }

    fn conclude(mut self) -> Result<Message<'a>, Refusal> {
        if self.is_array {
            let is_mixed = self.calls_count > 0 && self.responses_count > 0;
            let is_empty = self.calls_count + self.responses_count == 0;
            self.invalid_unless(!is_mixed && !is_empty);
        }
        let Some(fault) = self.fault else {
            return Ok(if self.is_array {
                Message::Batch(self.batch)
            } else {
                Message::Single(self.single)
            });
        };
        // What answers an array, a response, or a message whose id is no id, has no addressee.
        let is_known = !self.is_array && self.id == Id::Single && self.has(Member::Method);
        let id = self.single.id.filter(|_| is_known);
        let is_json_rpc_shaped = self.is_json_rpc_shaped;
        Err(Refusal { fault, id, requested: None, is_json_rpc_shaped })
    }

    /// The text of a string that routes; unescaped as every parser would. NUL ends a string for
    /// some and not for others, so a text with one routes nowhere.
    fn routing_text(text: Text<'_>, body: &'a [u8]) -> Option<Cow<'a, str>> {
        unescape(within(text, body)?).filter(|text| !text.contains('\0'))
    }

    fn read_id(&mut self, scalar: Scalar, text: Text<'_>) {
        let token = match (scalar, within(text, self.body)) {
            (Scalar::String, Some(text)) => quoted(text, self.body),
            (Scalar::Number, Some(text)) if is_integral(text) => Some(text),
            _ => None,
        };
        match token.filter(|token| token.len() <= REQUEST_ID_BYTES_MAX) {
            Some(token) => self.single.id = Some(RequestId::from_token(token)),
            None if self.id == Id::Single => self.id = Id::Invalid,
            None => {}
        }
    }

    /// A member's value is a container that is not looked into.
    fn handle_container(&mut self, container: Container) {
        let is_object = container == Container::Object;
        match self.member {
            Some(Member::Id) => self.id = Id::Invalid,
            Some(Member::Version | Member::Method | Member::Params) => self.invalid_unless(false),
            Some(Member::Error) => self.invalid_unless(is_object),
            Some(Member::ClientCapabilities) => self.single.meta.has_capabilities = is_object,
            Some(_) | None => {}
        }
    }

    /// A string that routes. What is no string routes nothing: the pod refuses it.
    fn handle_routing(&mut self, member: Member, scalar: Scalar, text: Text<'_>) {
        if scalar != Scalar::String {
            self.invalid_unless(member != Member::Method);
            return;
        }
        let routing = Self::routing_text(text, self.body);
        self.invalid_unless(routing.is_some());
        let single = &mut self.single;
        if member == Member::Method {
            single.method = routing;
        } else if member == Member::Name {
            single.name = routing;
        } else if member == Member::Uri {
            single.uri = routing;
        } else {
            single.task_id = routing;
        }
    }
}

impl Visitor for Reader<'_> {
    type Why = Infallible;

    fn open(&mut self, container: Container) -> Result<Members, Infallible> {
        match (self.place, container) {
            (Place::Root | Place::Array, Container::Object) => self.begin_message(),
            (Place::Root, Container::Array) => {
                self.is_array = true;
                self.place = Place::Array;
            }
            (Place::Array, Container::Array) => {
                self.invalid_unless(false);
                return Ok(Members::Skipped);
            }
            (Place::Message, Container::Object) if self.member == Some(Member::Params) => {
                self.place = Place::Params;
            }
            (Place::Params, Container::Object) if self.member == Some(Member::Meta) => {
                self.place = Place::Meta;
            }
            (Place::Message | Place::Params | Place::Meta, _) => {
                self.handle_container(container);
                return Ok(Members::Skipped);
            }
        }
        Ok(Members::Reported)
    }

    fn close(&mut self, _: Container) -> Result<(), Infallible> {
        match self.place {
            Place::Meta => self.place = Place::Params,
            Place::Params => self.place = Place::Message,
            Place::Message => self.end_message(),
            Place::Array | Place::Root => self.place = Place::Root,
        }
        Ok(())
    }

    fn key(&mut self, text: Text<'_>) -> Result<(), Infallible> {
        let names = match self.place {
            Place::Root | Place::Array | Place::Message => ENVELOPE,
            Place::Params => PARAMS,
            Place::Meta => META,
        };
        let member = match named(text, names) {
            Named::Exactly(member) => member,
            Named::Disguised => {
                self.refuse(Fault::DuplicateKey);
                Member::Other
            }
            Named::Not => Member::Other,
        };
        self.member = Some(member);
        if member == Member::Other {
            return Ok(());
        }
        if self.has(member) {
            self.refuse(Fault::DuplicateKey);
            if member == Member::Id {
                self.id = Id::Doubled;
            }
        }
        self.seen |= member.bit();
        if matches!(
            member,
            Member::ProtocolVersion | Member::ClientInfo | Member::ClientCapabilities
        ) {
            self.single.meta.is_reserved = true;
        }
        Ok(())
    }

    fn scalar(&mut self, scalar: Scalar, text: Text<'_>) -> Result<(), Infallible> {
        if matches!(self.place, Place::Root | Place::Array) {
            self.invalid_unless(false);
            return Ok(());
        }
        match self.member {
            Some(Member::Version) => {
                let version = Self::routing_text(text, self.body);
                let is_two = scalar == Scalar::String && version.as_deref() == Some("2.0");
                self.invalid_unless(is_two);
            }
            Some(Member::Id) => self.read_id(scalar, text),
            Some(Member::Params | Member::Error) => self.invalid_unless(false),
            Some(member @ (Member::Method | Member::Name | Member::Uri | Member::TaskId)) => {
                self.handle_routing(member, scalar, text);
            }
            Some(Member::ProtocolVersion) if scalar == Scalar::String => {
                self.single.meta.protocol_version = within(text, self.body);
            }
            Some(_) | None => {}
        }
        Ok(())
    }
}

/// The same bytes as a part of the body. The body is pushed whole, so every token is one.
fn within<'a>(text: Text<'_>, body: &'a [u8]) -> Option<&'a [u8]> {
    let Text::Whole(text) = text else { return None };
    let start = (text.as_ptr() as usize).checked_sub(body.as_ptr() as usize)?;
    body.get(start..start + text.len())
}

/// A string token with its quotes.
fn quoted<'a>(text: &'a [u8], body: &'a [u8]) -> Option<&'a [u8]> {
    let start = (text.as_ptr() as usize).checked_sub(body.as_ptr() as usize)?;
    body.get(start.checked_sub(1)?..start + text.len() + 1)
}
