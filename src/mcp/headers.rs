//! The fields of a request that mirror its body, and whether they agree with it (RC-4;
//! MCP 2026-07-28, Streamable HTTP, Standard Request Headers).

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The MCP fields of a request head, white space around them removed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mirrored<'a> {
    /// `MCP-Protocol-Version`
    pub protocol_version: Option<&'a [u8]>,
    /// `Mcp-Method`
    pub method: Option<&'a [u8]>,
    /// `Mcp-Name`
    pub name: Option<&'a [u8]>,
    /// The values of all `Mcp-Param-*`.
    pub params: &'a [&'a [u8]],
}

/// The value does not decode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a value between =?base64? and ?= is not the base64 of UTF-8 text")]
pub struct EncodingError;

/// What a mirrored value stands for: `=?base64?…?=` is the base64 of UTF-8 text, anything else
/// stands for itself. Both marks are lower case and whole, or they are no marks. The base64 must be
/// canonical: two spellings of one name would let one of them past whoever compares spellings.
///
/// # Errors
///
/// [`EncodingError`]
pub fn decode(value: &[u8]) -> Result<Cow<'_, [u8]>, EncodingError> {
    let encoded = value.strip_prefix(b"=?base64?").and_then(|rest| rest.strip_suffix(b"?="));
    let Some(encoded) = encoded else { return Ok(Cow::Borrowed(value)) };
    let decoded = STANDARD.decode(encoded).map_err(|_| EncodingError)?;
    match std::str::from_utf8(&decoded) {
        Ok(_) => Ok(Cow::Owned(decoded)),
        Err(_) => Err(EncodingError),
    }
}

/// Whether a mirrored value stands for `text`.
#[must_use]
pub fn agrees(value: &[u8], text: &str) -> bool {
    decode(value).is_ok_and(|decoded| *decoded == *text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RC-4: the marks are exact, the base64 strict and canonical, the rest literal.
    #[test]
    fn values() {
        let check = |value: &str, expected: Result<&str, EncodingError>| {
            let decoded = decode(value.as_bytes());
            let expected = expected.map(|text| Cow::Borrowed(text.as_bytes()));
            assert_eq!(decoded, expected, "{value}");
        };
        check("echo", Ok("echo"));
        check("", Ok(""));
        check("=?base64?w6k=?=", Ok("é"));
        check("=?base64??=", Ok(""));
        check("=?BASE64?w6k=?=", Ok("=?BASE64?w6k=?="));
        check("=?base64?w6k=", Ok("=?base64?w6k="));
        check("w6k=?=", Ok("w6k=?="));
        for value in ["w6k", "w6k=x", "w6l=", "w-k=", " w6k=", "/w==", "w6k=="] {
            check(&format!("=?base64?{value}?="), Err(EncodingError));
        }
    }
}
