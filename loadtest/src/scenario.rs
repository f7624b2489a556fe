//! The requests of a load: one template a connection, of which only the digits of the id change.

use crate::target::Target;

/// What the requests look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Scenario {
    /// `tools/call` of 2026-07-28, stateless, with the fields that say the body again.
    ModernCall,
    /// `tools/call` of 2025-11-25, without a session.
    LegacyCall,
    /// `tools/call` without any field of MCP.
    Plain,
}

pub(crate) const BODY_BYTES_MAX: usize = 1_024 * 1_024;

/// Ids have ten digits, so that one `Content-Length` holds for all of them.
pub(crate) const ID_FIRST: u64 = 1_000_000_000;
const ID_DIGITS: usize = 10;

/// A whole request, ready to be sent over and over.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    bytes: Vec<u8>,
    id_offset: usize,
}

impl Template {
    /// A request whose body has `body_bytes`, or a few more if it can't be that short.
    pub(crate) fn new(target: &Target, scenario: Scenario, body_bytes: usize) -> Self {
        let meta = match scenario {
            Scenario::ModernCall => concat!(
                r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
                r#""io.modelcontextprotocol/clientCapabilities":{}}"#
            ),
            Scenario::LegacyCall | Scenario::Plain => "",
        };
        let fields = match scenario {
            Scenario::ModernCall => concat!(
                "MCP-Protocol-Version: 2026-07-28\r\n",
                "Mcp-Method: tools/call\r\n",
                "Mcp-Name: echo\r\n",
            ),
            Scenario::LegacyCall => "MCP-Protocol-Version: 2025-11-25\r\n",
            Scenario::Plain => "",
        };
        let front = r#"{"jsonrpc":"2.0","id":"#;
        let middle = concat!(
            r#","method":"tools/call","params":{"name":"echo","#,
            r#""arguments":{"text":""#
        );
        let back = format!("\"}}{meta}}}}}");
        let fixed_bytes = front.len() + ID_DIGITS + middle.len() + back.len();
        let text = "x".repeat(body_bytes.saturating_sub(fixed_bytes));
        let body = format!("{front}{ID_FIRST}{middle}{text}{back}");
        let Target { authority, path, .. } = target;
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {authority}\r\nUser-Agent: ringgate-load\r\n\
             Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             {fields}Content-Length: {}\r\n\r\n",
            body.len()
        );
        let id_offset = head.len() + front.len();
        Self { bytes: (head + &body).into_bytes(), id_offset }
    }

    /// The request with this id, which has ten digits.
    pub(crate) fn with_id(&mut self, id: u64) -> &[u8] {
        debug_assert!((ID_FIRST..10 * ID_FIRST).contains(&id), "{id} has not ten digits");
        let mut rest = id;
        for digit in self.bytes[self.id_offset..self.id_offset + ID_DIGITS].iter_mut().rev() {
            *digit = b'0' + u8::try_from(rest % 10).unwrap_or(0);
            rest /= 10;
        }
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Framing, head, message_id};

    #[test]
    fn requests_are_whole_and_of_the_size_asked_for() {
        let target = Target::read("http://127.0.0.1:1/mcp").unwrap();
        for scenario in [Scenario::ModernCall, Scenario::LegacyCall, Scenario::Plain] {
            for body_bytes in [0, 500] {
                let mut template = Template::new(&target, scenario, body_bytes);
                let bytes = template.with_id(ID_FIRST + 42).to_vec();
                let head = head(&bytes).unwrap().unwrap();
                let body = &bytes[head.bytes..];
                assert_eq!(head.framing, Framing::Length(body.len()));
                assert!(body_bytes == 0 || body.len() == body_bytes, "{}", body.len());
                assert_eq!(message_id(body), Some(&b"1000000042"[..]));
                let message: serde_json::Value = serde_json::from_slice(body).unwrap();
                assert_eq!(message["params"]["name"], "echo");
                let is_modern = message["params"]["_meta"].is_object();
                assert_eq!(is_modern, scenario == Scenario::ModernCall);
            }
        }
    }
}
