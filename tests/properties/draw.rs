//! Random messages and event streams: most of them nearly valid.

use crate::prng::Prng;
use ringgate::ids::RequestId;
use ringgate::mcp::response::Asked;

const TOKENS: &[&str] = &[
    "1",
    "2",
    "-7",
    "0",
    "\"a\"",
    "\"1\"",
    "1.0",
    "1.5",
    "\"\u{e9}\"",
    "123456789012345678901234567890",
];

const TEXTS: &[&str] = &[
    "",
    "a",
    "plain text that is longer than a word",
    "caf\u{e9}",
    "\u{4e2d}\u{6587}",
    "\u{1F600}",
    r"\n\t\u0041",
    r"\ud83d\ude00",
    r"\ud800",
    r"\\",
    r#"\"x\""#,
    r"\/",
    r"\uDC00\ud800",
    r"{}[],:",
    "\u{7f}",
    "\u{10FFFF}",
    "\u{FEFF}",
];

const NUMBERS: &[&str] = &[
    "0",
    "-0",
    "1",
    "-32000",
    "1.0",
    "1.5",
    "1e3",
    "1E-1",
    "10e-1",
    "1e400",
    "0e-1",
    "0.0",
    "12345678901234567890",
    "1e99999999999999999999",
    "1e-99999999999999999999",
    "1.25e2",
];

const KEYS: &[&str] = &[
    "jsonrpc",
    "id",
    "result",
    "error",
    "method",
    "params",
    "code",
    "message",
    "data",
    "x",
    "",
    "ID",
    "Result",
    "re\u{17f}ult",
    "\u{212A}ey",
    "error ",
    "_meta",
];

const TAGS: &[&str] = &[
    "\"", "\\", "{", "}", "[", "]", ",", ":", "null", "true", "1", "-", ".", "e", "\\u", "\\ud8",
    "\u{FEFF}", "\u{1}", "\n", " ", "\u{c}", "\u{1a}", "\u{a0}", "//",
];

pub(crate) fn asked(prng: &mut Prng) -> Asked {
    let mut id = || RequestId::from_token(prng.pick(TOKENS).as_bytes());
    let (first, second, third) = (id(), id(), id());
    match prng.below(4) {
        0 | 1 => Asked::One(first),
        2 => Asked::Many(vec![first, second, third]),
        _ => Asked::Anything,
    }
}

/// A message, or an array of some, that often answers `asked`, sometimes with bytes changed.
pub(crate) fn text(prng: &mut Prng, asked: &Asked) -> Vec<u8> {
    let is_array = match asked {
        Asked::One(_) => prng.once_in(20),
        Asked::Many(_) => !prng.once_in(4),
        Asked::Anything => prng.once_in(3),
    };
    let text = if is_array {
        let count = prng.below(4);
        let messages: Vec<String> = (0..count).map(|_| message(prng, asked)).collect();
        format!("[{}]", messages.join(","))
    } else {
        message(prng, asked)
    };
    let mut bytes = text.into_bytes();
    if prng.once_in(3) {
        for _ in 0..=prng.below(3) {
            mutate(prng, &mut bytes);
        }
    }
    bytes
}

/// A stream of events and lines between them, with mixed line ends, often cut short.
pub(crate) fn stream(prng: &mut Prng, asked: &Asked) -> Vec<u8> {
    let mut stream = Vec::new();
    if prng.once_in(20) {
        stream.extend_from_slice("\u{FEFF}".as_bytes());
    }
    for _ in 0..prng.below(12) {
        let end = prng.pick(&["\n", "\n", "\r\n", "\r"]);
        match prng.below(8) {
            0 => stream
                .extend_from_slice(prng.pick(&[": c", ":", "retry: 1", "x", "data"]).as_bytes()),
            1 => stream.extend_from_slice(
                prng.pick(&["event: message", "event:ping", "event", "event: messag"]).as_bytes(),
            ),
            2 => stream.extend_from_slice(prng.pick(&["id: 1", "id", "id: \0"]).as_bytes()),
            3 => {}
            _ => {
                let text = text(prng, asked);
                let at = prng.below(text.len() + 1);
                let (head, tail) = text.split_at(if prng.once_in(3) { at } else { text.len() });
                stream.extend_from_slice(prng.pick(&["data: ", "data:"]).as_bytes());
                stream.extend_from_slice(head);
                stream.extend_from_slice(end.as_bytes());
                if !tail.is_empty() {
                    stream.extend_from_slice(b"data:");
                    stream.extend_from_slice(tail);
                    stream.extend_from_slice(end.as_bytes());
                }
            }
        }
        stream.extend_from_slice(end.as_bytes());
    }
    if prng.once_in(3) && !stream.is_empty() {
        mutate(prng, &mut stream);
    }
    stream
}

fn message(prng: &mut Prng, asked: &Asked) -> String {
    let mut members = vec![member("jsonrpc", "\"2.0\"")];
    if !prng.once_in(12) {
        members.push(member("id", &id(prng, asked)));
    }
    match prng.below(10) {
        0..=4 => members.push(member("result", &object(prng, 2))),
        5..=7 => members.push(member("error", &error(prng))),
        8 => members.push(member("method", "\"ping\"")),
        _ => {}
    }
    while prng.once_in(3) {
        let key = prng.pick(KEYS);
        members.push(member(key, &value(prng, 2)));
    }
    if prng.once_in(12) {
        let at = prng.below(members.len());
        members.remove(at);
    }
    joined(prng, members)
}

fn error(prng: &mut Prng) -> String {
    let code = if prng.once_in(10) { value(prng, 1) } else { prng.pick(NUMBERS).to_owned() };
    let mut members = vec![member("code", &code)];
    if !prng.once_in(10) {
        members.push(member("message", "\"m\""));
    }
    while prng.once_in(3) {
        let key = prng.pick(KEYS);
        members.push(member(key, &value(prng, 1)));
    }
    joined(prng, members)
}

fn member(key: &str, value: &str) -> (String, String) {
    (key.to_owned(), value.to_owned())
}

/// An object of `members` in any order, with keys spelled and blanks set at random.
fn joined(prng: &mut Prng, mut members: Vec<(String, String)>) -> String {
    let mut text = String::from("{");
    while !members.is_empty() {
        let (key, value) = members.swap_remove(prng.below(members.len()));
        let blank = prng.pick(&["", "", "", " ", "\n\t\r "]);
        let key = respelled(prng, &key);
        let parts = [blank, "\"", &key, "\"", blank, ":", blank, &value, blank];
        text.extend(parts);
        if !members.is_empty() {
            text.push(',');
        }
    }
    text.push('}');
    text
}

/// `text` with some of its ASCII letters and digits written as escapes.
fn respelled(prng: &mut Prng, text: &str) -> String {
    if !prng.once_in(6) {
        return text.to_owned();
    }
    text.chars()
        .map(|character| {
            if character.is_ascii_alphanumeric() && prng.once_in(2) {
                format!("\\u{:04x}", u32::from(character))
            } else {
                character.to_string()
            }
        })
        .collect()
}

fn id(prng: &mut Prng, asked: &Asked) -> String {
    let tokens: &[RequestId] = match asked {
        Asked::One(id) => std::slice::from_ref(id),
        Asked::Many(ids) => ids,
        Asked::Anything => &[],
    };
    if tokens.is_empty() || prng.once_in(8) {
        return match prng.below(3) {
            0 => value(prng, 1),
            _ => prng.pick(TOKENS).to_owned(),
        };
    }
    let token = std::str::from_utf8(tokens[prng.below(tokens.len())].token());
    let token = token.expect("tokens are text");
    match token {
        "0" if prng.once_in(2) => "-0".to_owned(),
        _ if token.starts_with('"') => respelled(prng, token),
        _ => token.to_owned(),
    }
}

fn object(prng: &mut Prng, levels: usize) -> String {
    let members =
        (0..prng.below(4)).map(|_| (prng.pick(KEYS).to_owned(), value(prng, levels))).collect();
    joined(prng, members)
}

fn value(prng: &mut Prng, levels: usize) -> String {
    match prng.below(if levels == 0 { 5 } else { 8 }) {
        0 => prng.pick(&["null", "true", "false"]).to_owned(),
        1 | 2 => prng.pick(NUMBERS).to_owned(),
        3 | 4 => format!("\"{}\"", prng.pick(TEXTS)),
        5 => object(prng, levels - 1),
        6 => {
            let values: Vec<String> = (0..prng.below(4)).map(|_| value(prng, levels - 1)).collect();
            format!("[{}]", values.join(","))
        }
        _ => {
            let deep = prng.below(24);
            format!("{}{}", "[".repeat(deep + 1), "]".repeat(deep + 1))
        }
    }
}

fn mutate(prng: &mut Prng, bytes: &mut Vec<u8>) {
    let at = prng.below(bytes.len() + 1);
    match prng.below(6) {
        0 => bytes.insert(at, prng.byte()),
        1 => {
            let tag = prng.pick(TAGS).as_bytes();
            bytes.splice(at..at, tag.iter().copied());
        }
        2 => bytes.truncate(at),
        3 => {
            let end = (at + 1 + prng.below(4)).min(bytes.len());
            bytes.drain(at..end);
        }
        4 => {
            let end = (at + prng.below(12)).min(bytes.len());
            let again: Vec<u8> = bytes[at..end].to_vec();
            bytes.splice(at..at, again);
        }
        _ => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << prng.below(8);
            }
        }
    }
}
