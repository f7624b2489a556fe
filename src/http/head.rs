//! Reads heads. httparse does the grammar; here is what it leaves out: bare LF, sizes, the form of
//! the target, and the fields that frame a message (HT-1).

use std::mem::MaybeUninit;

use httparse::Status;

use super::body::Framing;
use super::field::{Field, Fields, Known, SINGLE, Span};
use crate::limits::{FIELDS_MAX, Limits};

/// Why a head is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeadError {
    /// It is not HTTP/1.
    #[error("not an HTTP/1 head")]
    Malformed,
    /// A line ends in LF alone.
    #[error("a line ends in a bare LF")]
    BareLineFeed,
    /// More bytes or fields than the limits allow.
    #[error("the head is too large")]
    TooLarge,
    /// The target is longer than the limit.
    #[error("the target is too long")]
    TargetTooLong,
    /// The target has a form or a byte that is not served.
    #[error("the target is malformed")]
    Target,
    /// No Host, more than one, or one that is not a host.
    #[error("the Host field is missing, repeated or malformed")]
    Host,
    /// The length of the body can be read in two ways, or not at all.
    #[error("the body length is ambiguous or malformed")]
    Length,
    /// Neither HTTP/1.0 nor HTTP/1.1.
    #[error("the HTTP version is not served")]
    Version,
    /// `Connection` names a field that must travel on.
    #[error("Connection names an end-to-end field")]
    Nominated,
    /// A field that must be single occurs twice.
    #[error("a single field occurs twice")]
    Duplicated,
}

/// The minor version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1
    Http11,
}

/// Request methods that the proxy tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is named after its method")]
pub enum Method {
    Delete,
    Get,
    Head,
    Options,
    Other,
    Post,
}

/// What the peer wants of the connection after this message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persistence {
    /// It may carry another message.
    KeepAlive,
    /// It ends.
    Close,
}

/// A request head; spans name parts of the buffer it was read from.
#[derive(Clone, Debug)]
pub struct RequestHead {
    /// The method.
    pub method: Method,
    /// The method as written.
    pub method_span: Span,
    /// The target in origin form (or `*`).
    pub target: Span,
    /// The version.
    pub version: Version,
    /// The fields in order.
    pub fields: Fields,
    /// How the body is framed.
    pub framing: Framing,
    /// Whether the connection may go on.
    pub persistence: Persistence,
    /// Whether the client waits for 100 (Continue).
    pub expects_continue: bool,
    /// Length of the head, in bytes.
    pub bytes: usize,
}

/// A response head; spans name parts of the buffer it was read from.
#[derive(Clone, Debug)]
pub struct ResponseHead {
    /// The status code.
    pub status: u16,
    /// The reason phrase.
    pub phrase: Span,
    /// The fields in order.
    pub fields: Fields,
    /// How the body is framed, for the method of the request.
    pub framing: Framing,
    /// What the fields say of the length; differs where there is no body all the same.
    pub declared: Option<Framing>,
    /// Whether the connection may go on.
    pub persistence: Persistence,
    /// Length of the head, in bytes.
    pub bytes: usize,
}

/// Looks for the end of a head in a buffer that grows, each byte once.
#[derive(Clone, Copy, Debug, Default)]
pub struct EndFinder {
    searched: usize,
}

impl EndFinder {
    /// The length of the head at the start of `buffer`, once it is whole.
    ///
    /// # Errors
    ///
    /// [`HeadError::BareLineFeed`], or [`HeadError::TooLarge`] past `bytes_max`.
    pub fn find(&mut self, buffer: &[u8], bytes_max: usize) -> Result<Option<usize>, HeadError> {
        let fresh = buffer.get(self.searched..).unwrap_or_default();
        for found in memchr::memchr_iter(b'\n', fresh) {
            let at = self.searched + found;
            let line = buffer.get(..at).unwrap_or_default();
            if line.last() != Some(&b'\r') {
                return Err(HeadError::BareLineFeed);
            }
            if line.ends_with(b"\r\n\r") && line.len() > 3 {
                let bytes = at + 1;
                return if bytes <= bytes_max { Ok(Some(bytes)) } else { Err(HeadError::TooLarge) };
            }
        }
        self.searched = buffer.len();
        if bytes_max < buffer.len() { Err(HeadError::TooLarge) } else { Ok(None) }
    }
}

/// Reads the request head that fills `head`.
///
/// # Errors
///
/// See [`HeadError`]; nothing of the request can be trusted after one.
pub fn read_request(head: &[u8], limits: &Limits) -> Result<RequestHead, HeadError> {
    // RFC 9112, section 2.2: one empty line before the request line is to be ignored. More than one
    // is no robustness but a way to hide.
    if head.starts_with(b"\r\n\r\n") {
        return Err(HeadError::Malformed);
    }
    let mut storage = [MaybeUninit::uninit(); FIELDS_MAX];
    let mut request = httparse::Request::new(&mut []);
    let parsed = request.parse_with_uninit_headers(head, &mut storage).map_err(grammar)?;
    if parsed != Status::Complete(head.len()) {
        return Err(HeadError::Malformed);
    }
    let version = version(request.version)?;
    let method = request.method.unwrap_or_default();
    let fields = collect(request.headers, head, limits.fields_max)?;
    let target = target(request.path.unwrap_or_default(), head, &fields, limits)?;
    let framing = framing(&fields, head, version)?.unwrap_or(Framing::None);
    check_host(&fields, head, version)?;
    if fields.has_repeated(&SINGLE) {
        return Err(HeadError::Duplicated);
    }
    Ok(RequestHead {
        method: match method {
            "POST" => Method::Post,
            "GET" => Method::Get,
            "HEAD" => Method::Head,
            "DELETE" => Method::Delete,
            "OPTIONS" => Method::Options,
            "CONNECT" => return Err(HeadError::Target),
            _ => Method::Other,
        },
        method_span: Span::locate(method.as_bytes(), head),
        target,
        version,
        persistence: persistence(&fields, head, version)?,
        expects_continue: version == Version::Http11
            && fields.values(head, Known::Expect).any(|v| v.eq_ignore_ascii_case(b"100-continue")),
        fields,
        framing,
        bytes: head.len(),
    })
}

/// Reads the response head that fills `head`, the answer to a request of `method`.
///
/// # Errors
///
/// See [`HeadError`]; nothing of the answer can be trusted after one.
pub fn read_response(
    head: &[u8],
    method: Method,
    limits: &Limits,
) -> Result<ResponseHead, HeadError> {
    let mut storage = [MaybeUninit::uninit(); FIELDS_MAX];
    let mut response = httparse::Response::new(&mut []);
    let parsed = httparse::ParserConfig::default()
        .parse_response_with_uninit_headers(&mut response, head, &mut storage)
        .map_err(grammar)?;
    // httparse skips empty lines before the status line; a server sends none.
    if parsed != Status::Complete(head.len()) || !head.starts_with(b"HTTP/1.") {
        return Err(HeadError::Malformed);
    }
    let version = version(response.version)?;
    let status = response.code.unwrap_or_default();
    let fields = collect(response.headers, head, limits.fields_max)?;
    let declared = framing(&fields, head, version)?;
    if fields.has_repeated(&[Known::ContentType, Known::McpSessionId]) {
        return Err(HeadError::Duplicated);
    }
    // RFC 9112, section 6.3: these have no body whatever they declare.
    let is_bodiless = method == Method::Head || matches!(status, 100..200 | 204 | 304);
    let framing = match declared {
        _ if is_bodiless => Framing::None,
        Some(framing) => framing,
        None => Framing::UntilClose,
    };
    let mut persistence = persistence(&fields, head, version)?;
    if framing == Framing::UntilClose {
        persistence = Persistence::Close;
    }
    let phrase = Span::locate(response.reason.unwrap_or_default().as_bytes(), head);
    Ok(ResponseHead { status, phrase, fields, framing, declared, persistence, bytes: head.len() })
}

fn grammar(error: httparse::Error) -> HeadError {
    match error {
        httparse::Error::TooManyHeaders => HeadError::TooLarge,
        httparse::Error::Version => HeadError::Version,
        httparse::Error::HeaderName
        | httparse::Error::HeaderValue
        | httparse::Error::NewLine
        | httparse::Error::Status
        | httparse::Error::Token => HeadError::Malformed,
    }
}

fn version(minor: Option<u8>) -> Result<Version, HeadError> {
    match minor {
        Some(0) => Ok(Version::Http10),
        Some(1) => Ok(Version::Http11),
        _ => Err(HeadError::Version),
    }
}

fn collect(
    headers: &[httparse::Header<'_>],
    head: &[u8],
    fields_max: usize,
) -> Result<Fields, HeadError> {
    if fields_max < headers.len() {
        return Err(HeadError::TooLarge);
    }
    let field = |header: &httparse::Header<'_>| Field {
        name: Span::locate(header.name.as_bytes(), head),
        value: Span::locate(header.value.trim_ascii(), head),
        known: Known::of(header.name.as_bytes()),
    };
    let mut fields = Fields::with_capacity(headers.len());
    headers.iter().map(field).for_each(|field| fields.push(field));
    Ok(fields)
}

/// The target in origin form. The absolute form is taken when it names the Host that the request
/// names (RFC 9112, section 3.2.2); a second authority would be read in two ways.
fn target(path: &str, head: &[u8], fields: &Fields, limits: &Limits) -> Result<Span, HeadError> {
    if limits.target_bytes_max < path.len() {
        return Err(HeadError::TargetTooLong);
    }
    let is_served = |byte: u8| {
        matches!(byte, 0x21..0x7F)
            && !matches!(byte, b'#' | b'<' | b'>' | b'"' | b'\\' | b'^' | b'`')
    };
    if !path.bytes().all(is_served) {
        return Err(HeadError::Target);
    }
    if path.starts_with('/') || path == "*" {
        return Ok(Span::locate(path.as_bytes(), head));
    }
    let scheme = path.get(..7).filter(|scheme| scheme.eq_ignore_ascii_case("http://"));
    let rest = scheme.and_then(|_| path.get(7..)).ok_or(HeadError::Target)?;
    let (authority, path) = rest.split_at(rest.find('/').ok_or(HeadError::Target)?);
    let host = fields.value(head, Known::Host).unwrap_or_default();
    if authority.as_bytes().eq_ignore_ascii_case(host) {
        Ok(Span::locate(path.as_bytes(), head))
    } else {
        Err(HeadError::Target)
    }
}

/// RFC 9112, section 6.1 and 6.3, without the leniency: one length, one way to read it.
fn framing(fields: &Fields, head: &[u8], version: Version) -> Result<Option<Framing>, HeadError> {
    let mut lengths = fields.values(head, Known::ContentLength);
    let mut codings = fields.values(head, Known::TransferEncoding);
    let framing = match (lengths.next(), codings.next()) {
        (None, None) => return Ok(None),
        (Some(length), None) => Framing::Length(decimal(length).ok_or(HeadError::Length)?),
        (None, Some(coding))
            if coding.eq_ignore_ascii_case(b"chunked") && version == Version::Http11 =>
        {
            Framing::Chunked
        }
        (_, Some(_)) => return Err(HeadError::Length),
    };
    if lengths.next().is_some() || codings.next().is_some() {
        return Err(HeadError::Length);
    }
    Ok(Some(framing))
}

fn decimal(digits: &[u8]) -> Option<u64> {
    let is_decimal = (1..=19).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    if !is_decimal {
        return None;
    }
    Some(digits.iter().fold(0, |value, digit| value * 10 + u64::from(digit - b'0')))
}

fn check_host(fields: &Fields, head: &[u8], version: Version) -> Result<(), HeadError> {
    let mut hosts = fields.values(head, Known::Host);
    let is_host = |host: &[u8]| {
        !host.is_empty()
            && host.iter().all(|byte| {
                byte.is_ascii_alphanumeric()
                    || matches!(byte, b'.' | b'-' | b'_' | b':' | b'[' | b']')
            })
    };
    match (hosts.next(), hosts.next()) {
        (Some(host), None) if is_host(host) => Ok(()),
        (None, None) if version == Version::Http10 => Ok(()),
        _ => Err(HeadError::Host),
    }
}

/// RFC 9112, section 9.3. HTTP/1.0 connections always end: `keep-alive` there is no standard.
fn persistence(fields: &Fields, head: &[u8], version: Version) -> Result<Persistence, HeadError> {
    let mut persistence = match version {
        Version::Http10 => Persistence::Close,
        Version::Http11 => Persistence::KeepAlive,
    };
    for option in fields.options(head) {
        if option.eq_ignore_ascii_case(b"close") {
            persistence = Persistence::Close;
        } else if !Known::of(option).may_be_nominated() {
            return Err(HeadError::Nominated);
        }
    }
    Ok(persistence)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(head: &str) -> Result<RequestHead, HeadError> {
        read_request(head.as_bytes(), &Limits::default())
    }

    /// HT-1: the end of a head is found wherever the network cut it, each byte looked at once.
    #[test]
    fn the_end_is_found_at_any_cut() {
        let head = b"GET / HTTP/1.1\r\nHost: a\r\n\r\nrest";
        for cut in 0..head.len() {
            let mut finder = EndFinder::default();
            let early = finder.find(&head[..cut], 100).expect("nothing is wrong");
            let end = head.len() - 4;
            assert_eq!(early, (end <= cut).then_some(end), "cut at {cut}");
            assert_eq!(finder.find(head, 100), Ok(Some(end)), "cut at {cut}");
        }
    }

    /// LM-1: one byte over the bound is too much, whether the end has come or not.
    #[test]
    fn the_bound_is_exact() {
        let head = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        let find = |bytes: &[u8], bound| EndFinder::default().find(bytes, bound);
        assert_eq!(find(head, head.len()), Ok(Some(head.len())));
        assert_eq!(find(head, head.len() - 1), Err(HeadError::TooLarge));
        assert_eq!(find(&head[..20], 20), Ok(None));
        assert_eq!(find(&head[..21], 20), Err(HeadError::TooLarge));
    }

    /// HT-1: one length, read in one way.
    #[test]
    fn lengths() {
        let check = |fields: &str, expected: Result<Framing, HeadError>| {
            let head = format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
            assert_eq!(request(&head).map(|head| head.framing), expected, "{fields:?}");
        };
        check("", Ok(Framing::None));
        check("Content-Length: 0\r\n", Ok(Framing::Length(0)));
        check("Content-Length: 00012\r\n", Ok(Framing::Length(12)));
        check("content-length:7\r\n", Ok(Framing::Length(7)));
        check("Transfer-Encoding: Chunked\r\n", Ok(Framing::Chunked));
        for fields in [
            "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n",
            "Content-Length: 1\r\nContent-Length: 1\r\n",
            "Content-Length: 1, 1\r\n",
            "Content-Length: \r\n",
            "Content-Length: 18446744073709551616\r\n",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding: gzip, chunked\r\n",
            "Transfer-Encoding: \r\n",
        ] {
            check(fields, Err(HeadError::Length));
        }
        let old = "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(request(old).map(|head| head.framing), Err(HeadError::Length));
    }

    /// HT-1: the absolute form is taken when it names the same Host, and becomes the origin form.
    #[test]
    fn targets() {
        let check = |target: &str, expected: Result<&str, HeadError>| {
            let head = format!("GET {target} HTTP/1.1\r\nHost: a:1\r\n\r\n");
            let read = request(&head);
            let target = read.map(|read| read.target);
            let text = target.map(|span| std::str::from_utf8(span.of(head.as_bytes())).unwrap());
            assert_eq!(text, expected, "{target:?}");
        };
        check("/a?b=c", Ok("/a?b=c"));
        check("*", Ok("*"));
        check("http://a:1/x", Ok("/x"));
        check("HTTP://A:1/x", Ok("/x"));
        for target in ["http://b/x", "http://a:1", "ftp://a:1/", "a:1", "/a#b", "/a\"b", "/\u{e9}"]
        {
            check(target, Err(HeadError::Target));
        }
    }

    /// RFC 9112, section 6.3: what has no body has none, whatever it declares.
    #[test]
    fn bodiless_answers() {
        let check = |method, status: u16, expected: Framing| {
            let head = format!("HTTP/1.1 {status} X\r\nContent-Length: 5\r\n\r\n");
            let head = read_response(head.as_bytes(), method, &Limits::default());
            assert_eq!(head.map(|head| head.framing), Ok(expected), "{method:?} {status}");
        };
        check(Method::Get, 200, Framing::Length(5));
        check(Method::Head, 200, Framing::None);
        check(Method::Get, 204, Framing::None);
        check(Method::Get, 304, Framing::None);
        check(Method::Get, 103, Framing::None);
    }

    /// A name of 70,000 bytes is too large, not a panic; so are too many fields.
    #[test]
    fn large_heads() {
        let long = format!("GET / HTTP/1.1\r\nHost: a\r\n{}: b\r\n\r\n", "x".repeat(70_000));
        assert!(request(&long).is_ok(), "its size is the business of the finder");
        assert_eq!(
            EndFinder::default().find(long.as_bytes(), Limits::default().head_bytes_max),
            Err(HeadError::TooLarge)
        );
        let many = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "a: b\r\n".repeat(100));
        assert_eq!(request(&many).map(|head| head.bytes), Err(HeadError::TooLarge));
        let far_too_many = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "a: b\r\n".repeat(300));
        assert_eq!(request(&far_too_many).map(|head| head.bytes), Err(HeadError::TooLarge));
    }
}
