//! The fields that the proxy knows by name, and what each is to it.

/// A part of a buffer, by distance from the buffer's start in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The bytes of `buffer` that this span names; empty when they lie outside.
    #[must_use]
    pub fn of(self, buffer: &[u8]) -> &[u8] {
        buffer.get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    /// The place of `part` in `whole`, of which it must be a slice unless it is empty.
    pub(crate) fn locate(part: &[u8], whole: &[u8]) -> Self {
        if part.is_empty() {
            return Self { start: 0, end: 0 };
        }
        let start = (part.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize);
        debug_assert!(start + part.len() <= whole.len(), "the part is a slice of the whole");
        let clamp = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
        Self { start: clamp(start), end: clamp(start + part.len()) }
    }
}

/// One field line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The name as it was written.
    pub name: Span,
    /// The value without the white space around it.
    pub value: Span,
    /// Which field it is.
    pub known: Known,
}

/// The field lines of one head, in order. One bit a known field tells which are there and which
/// occur twice, so that looking for one that is absent costs no look at the lines.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    lines: Vec<Field>,
    present: u32,
    repeated: u32,
}

impl Fields {
    /// No field, with room for `count`.
    #[must_use]
    pub fn with_capacity(count: usize) -> Self {
        Self { lines: Vec::with_capacity(count), present: 0, repeated: 0 }
    }

    /// Adds a line.
    pub fn push(&mut self, field: Field) {
        let bit = field.known.bit();
        self.repeated |= self.present & bit;
        self.present |= bit;
        self.lines.push(field);
    }

    /// The lines.
    pub fn lines(&self) -> std::slice::Iter<'_, Field> {
        self.lines.iter()
    }

    /// Whether any of these fields is there.
    #[must_use]
    pub fn has_any(&self, fields: &[Known]) -> bool {
        self.present & bits(fields) != 0
    }

    /// Whether any of these fields occurs twice.
    #[must_use]
    pub fn has_repeated(&self, fields: &[Known]) -> bool {
        self.repeated & bits(fields) != 0
    }

    /// The values of one field, in order. `head` is what the lines were read from.
    pub fn values<'a>(&'a self, head: &'a [u8], known: Known) -> impl Iterator<Item = &'a [u8]> {
        let lines = if self.has_any(&[known]) { &self.lines[..] } else { &[] };
        lines.iter().filter(move |field| field.known == known).map(|field| field.value.of(head))
    }

    /// The first value of a field. `head` is what the lines were read from.
    #[must_use]
    pub fn value<'a>(&self, head: &'a [u8], known: Known) -> Option<&'a [u8]> {
        if !self.has_any(&[known]) {
            return None;
        }
        self.lines.iter().find(|field| field.known == known).map(|field| field.value.of(head))
    }

    /// The options of `Connection`: `close`, `keep-alive`, and names of fields to be removed.
    pub fn options<'a>(&'a self, head: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        self.values(head, Known::Connection)
            .flat_map(|value| value.split(|byte| *byte == b','))
            .map(<[u8]>::trim_ascii)
            .filter(|option| !option.is_empty())
    }
}

fn bits(fields: &[Known]) -> u32 {
    fields.iter().fold(0, |bits, known| bits | known.bit())
}

/// The fields that the proxy treats apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is named after its field")]
pub enum Known {
    AcceptEncoding,
    AccessControl,
    Authorization,
    Connection,
    ContentEncoding,
    ContentLength,
    ContentType,
    Cookie,
    Expect,
    Forwarded,
    Host,
    KeepAlive,
    LastEventId,
    Location,
    McpMethod,
    McpName,
    McpParam,
    McpProtocolVersion,
    McpSessionId,
    Origin,
    Other,
    ProxyConnection,
    RinggateFault,
    Te,
    Trailer,
    TransferEncoding,
    Upgrade,
    Vary,
}

impl Known {
    /// The field of a name. Field names are case-insensitive (RFC 9110, section 5.1).
    #[must_use]
    pub fn of(name: &[u8]) -> Self {
        let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
        match name.len() {
            2 if is(b"te") => Self::Te,
            4 if is(b"host") => Self::Host,
            4 if is(b"vary") => Self::Vary,
            6 if is(b"cookie") => Self::Cookie,
            6 if is(b"expect") => Self::Expect,
            6 if is(b"origin") => Self::Origin,
            7 if is(b"trailer") => Self::Trailer,
            7 if is(b"upgrade") => Self::Upgrade,
            8 if is(b"location") => Self::Location,
            8 if is(b"mcp-name") => Self::McpName,
            9 if is(b"forwarded") => Self::Forwarded,
            10 if is(b"connection") => Self::Connection,
            10 if is(b"keep-alive") => Self::KeepAlive,
            10 if is(b"mcp-method") => Self::McpMethod,
            12 if is(b"content-type") => Self::ContentType,
            13 if is(b"authorization") => Self::Authorization,
            13 if is(b"last-event-id") => Self::LastEventId,
            14 if is(b"content-length") => Self::ContentLength,
            14 if is(b"mcp-session-id") => Self::McpSessionId,
            15 if is(b"accept-encoding") => Self::AcceptEncoding,
            16 if is(b"content-encoding") => Self::ContentEncoding,
            16 if is(b"proxy-connection") => Self::ProxyConnection,
            16 if is(b"x-ringgate-fault") => Self::RinggateFault,
            17 if is(b"transfer-encoding") => Self::TransferEncoding,
            20 if is(b"mcp-protocol-version") => Self::McpProtocolVersion,
            _ if starts_with(name, b"mcp-param-") => Self::McpParam,
            _ if starts_with(name, b"x-forwarded-") => Self::Forwarded,
            _ if starts_with(name, b"access-control-") => Self::AccessControl,
            _ => Self::Other,
        }
    }

    /// Whether the field belongs to one connection and never travels on (RFC 9110, section 7.6.1).
    /// Both length fields are here because the proxy frames what it sends itself.
    #[must_use]
    pub fn is_hop_by_hop(self) -> bool {
        match self {
            Self::Connection
            | Self::ContentLength
            | Self::KeepAlive
            | Self::ProxyConnection
            | Self::Te
            | Self::Trailer
            | Self::TransferEncoding
            | Self::Upgrade => true,
            Self::AcceptEncoding
            | Self::AccessControl
            | Self::Authorization
            | Self::ContentEncoding
            | Self::ContentType
            | Self::Cookie
            | Self::Expect
            | Self::Forwarded
            | Self::Host
            | Self::LastEventId
            | Self::Location
            | Self::McpMethod
            | Self::McpName
            | Self::McpParam
            | Self::McpProtocolVersion
            | Self::McpSessionId
            | Self::Origin
            | Self::Other
            | Self::RinggateFault
            | Self::Vary => false,
        }
    }

    /// Whether `Connection` may name the field: it may name any but those that the proxy or the pod
    /// decides by, since naming one would have it removed on the way (HT-2).
    #[must_use]
    pub fn may_be_nominated(self) -> bool {
        matches!(
            self,
            Self::KeepAlive
                | Self::Other
                | Self::ProxyConnection
                | Self::Te
                | Self::Trailer
                | Self::Upgrade
        )
    }

    const fn bit(self) -> u32 {
        1 << self as u32
    }
}

/// Fields of which a second occurrence is refused at once (RC-4): two readers may take different
/// ones.
pub const SINGLE: [Known; 4] =
    [Known::Authorization, Known::ContentType, Known::LastEventId, Known::Origin];

/// Fields of which a second occurrence is refused likewise, but with the id of the request, since
/// they make its body be read.
pub const SINGLE_OF_MCP: [Known; 4] =
    [Known::McpMethod, Known::McpName, Known::McpProtocolVersion, Known::McpSessionId];

fn starts_with(name: &[u8], prefix: &[u8]) -> bool {
    name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}
