//! Media types, as far as the proxy tells them apart (RV-4).

/// What an answer or a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Media {
    /// `application/json` or `application/json-rpc`.
    Json,
    /// `text/event-stream`.
    EventStream,
    /// Anything else, or nothing said.
    Other,
}

impl Media {
    /// The media type of a Content-Type value. Parameters are allowed, whatever they are; names are
    /// case-insensitive (RFC 9110, section 8.3.1), and a longer name is another type.
    #[must_use]
    pub fn of(content_type: Option<&[u8]>) -> Self {
        let essence = essence(content_type.unwrap_or_default());
        let is = |name: &[u8]| essence.eq_ignore_ascii_case(name);
        if is(b"application/json") || is(b"application/json-rpc") {
            Self::Json
        } else if is(b"text/event-stream") {
            Self::EventStream
        } else {
            Self::Other
        }
    }
}

/// The type and subtype of a Content-Type value.
#[must_use]
pub fn essence(content_type: &[u8]) -> &[u8] {
    content_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RV-4: exactly these types, with any parameters, in any case.
    #[test]
    fn types() {
        let check =
            |value: &str, media| assert_eq!(Media::of(Some(value.as_bytes())), media, "{value}");
        check("application/json", Media::Json);
        check("Application/JSON; charset=utf-8", Media::Json);
        check("application/json ;broken", Media::Json);
        check("application/json-rpc", Media::Json);
        check("text/event-stream;x", Media::EventStream);
        check("application/jsonp", Media::Other);
        check("application/problem+json", Media::Other);
        check("", Media::Other);
        assert_eq!(Media::of(None), Media::Other);
    }
}
