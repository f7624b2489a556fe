//! The reader against another JSON parser, over messages drawn from a seed.

use std::fmt::Write as _;

use serde_json::Value;

use super::*;

/// A small generator (splitmix64): the seed alone replays a message.
struct Prng(u64);

impl Prng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).expect("it is below a usize")
    }

    fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        let index = self.below(choices.len());
        choices[index]
    }

    /// `text` as a JSON string, each character escaped or not.
    fn string(&mut self, text: &str) -> String {
        let mut quoted = String::from("\"");
        for letter in text.chars() {
            if self.below(6) == 0 {
                let mut units = [0; 2];
                for unit in letter.encode_utf16(&mut units) {
                    write!(quoted, "\\u{unit:04x}").expect("a string takes any text");
                }
            } else {
                quoted.push(letter);
            }
        }
        quoted.push('"');
        quoted
    }

    /// An object of some of `members`, in a drawn order.
    fn object(&mut self, mut members: Vec<(&str, String)>) -> String {
        for left in (1..members.len()).rev() {
            let right = self.below(left + 1);
            members.swap(left, right);
        }
        let mut parts = Vec::new();
        for (key, value) in members {
            if self.below(8) != 0 {
                let key = self.string(key);
                let blanks = ["", "", "", " ", "\n", "\t\r "];
                parts.push(format!("{}{key}{}:{value}", self.pick(&blanks), self.pick(&blanks)));
            }
        }
        format!("{{{}}}", parts.join(","))
    }

    fn value(&mut self) -> String {
        self.pick(&[
            "null",
            "true",
            "0",
            "-1.25",
            "\"x\"",
            "\"a\\\"b\\\\\"",
            "[]",
            "[1,{\"id\":2}]",
            "{}",
            "{\"method\":\"y\",\"_meta\":{\"a\":[[]]}}",
            "\"\u{1f600}\"",
        ])
        .to_owned()
    }

    fn message(&mut self) -> String {
        let version = self.pick(&["2026-07-28", "2025-11-25", "v999", ""]);
        let meta = vec![
            ("io.modelcontextprotocol/protocolVersion", format!("\"{version}\"")),
            ("io.modelcontextprotocol/clientCapabilities", self.value()),
            ("io.modelcontextprotocol/clientInfo", self.value()),
            ("progressToken", self.value()),
        ];
        let name = self.pick(&["x", "\u{e9}", "a/b", ""]);
        let params = vec![
            ("_meta", self.object(meta)),
            ("name", self.string(name)),
            ("uri", self.value()),
            ("arguments", self.value()),
            ("other", self.value()),
        ];
        let method = self.pick(&["tools/call", "resources/read", "initialize", "x"]);
        let id = self.pick(&["0", "\"a\"", "9007199254740993", "1.5", "null", "{}", "-0"]);
        let version = self.pick(&["\"2.0\"", "\"2.0\"", "\"2.0\"", "2.0"]);
        let mut members = vec![
            ("jsonrpc", version.to_owned()),
            ("id", id.to_owned()),
            ("params", self.object(params)),
            ("extra", self.value()),
        ];
        if self.below(5) == 0 {
            members.push(("result", self.value()));
        } else {
            members.push(("method", self.string(method)));
        }
        self.object(members)
    }
}

/// What was read, in a form that both parsers can give.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    kind: Kind,
    method: Option<String>,
    name: Option<String>,
    uri: Option<String>,
    version: Option<String>,
    has_capabilities: bool,
    is_reserved: bool,
}

/// What `read` should say, from a whole document: no key is doubled in a drawn message, so which
/// occurrence a parser takes does not matter.
fn expected(body: &str) -> Result<Found, Fault> {
    let document: Value = serde_json::from_str(body).map_err(|_| Fault::NotJson)?;
    let has = |key: &str| document.get(key).is_some();
    let params = document.get("params");
    let method = document.get("method").and_then(Value::as_str);
    if document.get("jsonrpc").and_then(Value::as_str) != Some("2.0")
        || params.is_some_and(|params| !params.is_object())
        || has("result") == has("method")
    {
        return Err(Fault::MessageInvalid);
    }
    let is_id = |id: &Value| id.is_string() || id.is_i64() || id.is_u64() || *id == -0.0;
    if document.get("id").is_some_and(|id| !is_id(id)) {
        return Err(Fault::IdInvalid);
    }
    let of_params = |key: &str| params.and_then(|params| params.get(key));
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let of_meta = |key: &str| {
        let key = format!("io.modelcontextprotocol/{key}");
        of_params("_meta").and_then(|meta| meta.get(&key))
    };
    let reserved = ["protocolVersion", "clientCapabilities", "clientInfo"];
    Ok(Found {
        kind: match (method, has("id")) {
            (None, _) => Kind::Response,
            (Some(_), true) => Kind::Request,
            (Some(_), false) => Kind::Notification,
        },
        method: method.map(str::to_owned),
        name: text(of_params("name")),
        uri: text(of_params("uri")),
        version: text(of_meta("protocolVersion")),
        has_capabilities: of_meta("clientCapabilities").is_some_and(Value::is_object),
        is_reserved: reserved.iter().any(|key| of_meta(key).is_some()),
    })
}

fn found(body: &[u8]) -> Result<Found, Fault> {
    let single = match read(body, DEPTH) {
        Ok(Message::Single(single)) => single,
        Ok(Message::Batch(_)) => panic!("no array is drawn"),
        Err(refusal) => return Err(refusal.fault),
    };
    let owned = |text: Option<std::borrow::Cow<'_, str>>| text.map(std::borrow::Cow::into_owned);
    let version = single.meta.protocol_version.map(String::from_utf8_lossy);
    Ok(Found {
        kind: single.kind(),
        version: owned(version),
        method: owned(single.method),
        name: owned(single.name),
        uri: owned(single.uri),
        has_capabilities: single.meta.has_capabilities,
        is_reserved: single.meta.is_reserved,
    })
}

/// RC-1: the reader and a parser of whole documents see the same message.
#[test]
fn the_reader_agrees_with_a_whole_document_parser() {
    let mut passed = 0;
    for seed in 0..4_000 {
        let body = Prng(seed).message();
        let found = found(body.as_bytes());
        passed += u32::from(found.is_ok());
        assert_eq!(found, expected(&body), "seed {seed}: {body}");
    }
    assert!(1_000 < passed, "{passed} of the drawn messages are valid");
}

/// RC-1: a damaged body is JSON to the reader exactly when it is to the other parser.
#[test]
fn the_reader_agrees_on_what_is_json() {
    let mut valid = 0;
    for seed in 0..8_000 {
        let mut prng = Prng(seed);
        let mut body = prng.message().into_bytes();
        for _ in 0..=prng.below(2) {
            let index = prng.below(body.len());
            body[index] = b"{}[],:\"\\0x \x00\xC3\xFF"[prng.below(14)];
        }
        let is_json =
            read(&body, DEPTH).map_or_else(|refusal| refusal.fault != Fault::NotJson, |_| true);
        let is_expected = serde_json::from_slice::<Value>(&body).is_ok();
        valid += u32::from(is_expected);
        let shown = String::from_utf8_lossy(&body);
        // The other parser refuses half a pair in any string; the reader leaves that to the values.
        if !shown.contains("\\ud") {
            assert_eq!(is_json, is_expected, "seed {seed}: {shown}");
        }
    }
    assert!(1_000 < valid, "{valid} of the damaged messages are JSON");
}
