//! The rules of answers and event streams once more: whole texts, no state, slow and plain, over
//! a JSON parser that is not ours.

use ringgate::mcp::response::{Asked, Carrier};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The requests that wait, by their tokens.
pub(crate) struct Waiting {
    is_one: bool,
    is_compared: bool,
    tokens: Vec<String>,
    own: Vec<String>,
}

impl Waiting {
    pub(crate) fn new(asked: &Asked) -> Self {
        let ids = match asked {
            Asked::One(id) => vec![id.clone()],
            Asked::Many(ids) => ids.clone(),
            Asked::Anything => vec![],
        };
        let token = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("tokens are text");
        let tokens: Vec<String> = ids.iter().map(|id| token(id.token())).collect();
        Self {
            is_one: matches!(asked, Asked::One(_)),
            is_compared: !matches!(asked, Asked::Anything),
            own: tokens.clone(),
            tokens,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }
}

/// Whether `text` is JSON nested at most `depth_max` levels deep.
pub(crate) fn is_json(text: &[u8], depth_max: usize) -> bool {
    let Ok(text) = std::str::from_utf8(text) else {
        return false;
    };
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok() && depth(text) <= depth_max
}

/// Whether `text` is a valid message; if so the ids it answers no longer wait.
pub(crate) fn is_valid(
    text: &[u8],
    carrier: Carrier,
    depth_max: usize,
    waiting: &mut Waiting,
) -> bool {
    if !is_json(text, depth_max) {
        return false;
    }
    let before = waiting.tokens.clone();
    let is_valid = if text.trim_ascii_start().starts_with(b"[") {
        let elements: Vec<&RawValue> = serde_json::from_slice(text).expect("it is an array");
        !waiting.is_one
            && !elements.is_empty()
            && elements.iter().all(|element| is_message(element.get(), carrier, waiting))
    } else {
        is_message(str_of(text), carrier, waiting)
    };
    if !is_valid {
        waiting.tokens = before;
    }
    is_valid
}

/// What must come of a stream: bytes released, whether it is refused, whether an id was seen.
pub(crate) fn released(
    stream: &[u8],
    depth_max: usize,
    event_bytes_max: usize,
    waiting: &mut Waiting,
) -> (usize, bool, bool) {
    let mut hold = 0;
    let mut is_resumable = false;
    let mut lines: Vec<&[u8]> = Vec::new();
    let mut at = if stream.starts_with("\u{FEFF}".as_bytes()) { 3 } else { 0 };
    while at < stream.len() {
        let rest = &stream[at..];
        let is_end = |byte: &u8| *byte == b'\n' || *byte == b'\r';
        let Some(length) = rest.iter().position(is_end) else {
            break;
        };
        let line = &rest[..length];
        at += length + 1;
        if event_bytes_max < at - hold {
            return (hold, true, is_resumable);
        }
        if line.is_empty() && !lines.is_empty() {
            let Some(event) = judged(&lines, depth_max, waiting) else {
                return (hold, true, is_resumable);
            };
            is_resumable |= event.has_id;
            lines.clear();
        } else if !line.is_empty() && !line.starts_with(b":") {
            lines.push(line);
        }
        if lines.is_empty() {
            hold = at;
        }
        if rest[length] == b'\r' && stream.get(at) == Some(&b'\n') {
            at += 1;
            if event_bytes_max < at - hold {
                return (hold, true, is_resumable);
            }
            if lines.is_empty() {
                hold = at;
            }
        }
    }
    (hold, event_bytes_max < stream.len() - hold, is_resumable)
}

struct Event {
    has_id: bool,
}

/// The event of `lines`, or `None` if it is a message that is not valid.
fn judged(lines: &[&[u8]], depth_max: usize, waiting: &mut Waiting) -> Option<Event> {
    let mut kind: &[u8] = b"";
    let mut data: Option<Vec<u8>> = None;
    let mut has_id = false;
    for line in lines {
        let (name, value) = match line.iter().position(|byte| *byte == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (*line, &b""[..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"event" => kind = value,
            b"id" if !value.contains(&0) => has_id = !value.is_empty(),
            b"data" => match &mut data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => data = Some(value.to_vec()),
            },
            _ => {}
        }
    }
    let data = data.unwrap_or_default();
    let is_message = (kind.is_empty() || kind == b"message") && !data.is_empty();
    if is_message && !is_valid(&data, Carrier::Event, depth_max, waiting) {
        return None;
    }
    Some(Event { has_id })
}

fn is_message(text: &str, carrier: Carrier, waiting: &mut Waiting) -> bool {
    let names = ["jsonrpc", "id", "result", "error", "method", "params"];
    let Some(members) = Members::of(text, &names) else {
        return false;
    };
    if members.of_name("jsonrpc").map(unescaped) != Some(Some(b"2.0".to_vec())) {
        return false;
    }
    let id = members.of_name("id");
    let is_id = id.is_some_and(|id| id.starts_with('"') || is_number(id));
    let is_call = members.of_name("method").is_some();
    let result = members.of_name("result");
    let answer_names = [&b"jsonrpc"[..], b"id", b"result", b"error"];
    let is_foreign = |(key, _): &(Vec<u8>, &str)| !answer_names.contains(&&key[..]);
    if carrier == Carrier::Event && !is_call && members.0.iter().any(is_foreign) {
        return false;
    }
    match (result, members.of_name("error"), is_call) {
        (Some(result), None, false) => {
            result.starts_with('{') && is_id && id.is_some_and(|id| is_awaited(id, waiting))
        }
        (None, Some(error), false) => {
            let is_without = id.is_none_or(|id| id == "null");
            is_error(error)
                && if is_without {
                    !waiting.is_one
                } else {
                    is_id && id.is_some_and(|id| is_awaited(id, waiting))
                }
        }
        (None, None, true) => {
            let method = members.of_name("method");
            carrier == Carrier::Event
                && method.is_some_and(|method| method.starts_with('"'))
                && id.is_none_or(|id| {
                    id.starts_with('"') || is_number(id) && (is_integral(id) || is_own(id, waiting))
                })
        }
        _ => false,
    }
}

fn is_error(text: &str) -> bool {
    let Some(members) = Members::of(text, &["code", "message", "data"]) else {
        return false;
    };
    members.of_name("code").is_some_and(|code| is_number(code) && is_integral(code))
        && members.of_name("message").is_some_and(|message| message.starts_with('"'))
}

fn is_awaited(id: &str, waiting: &mut Waiting) -> bool {
    if !waiting.is_compared {
        return id.starts_with('"') || is_integral(id);
    }
    let found = waiting.tokens.iter().position(|token| is_same(token, id));
    found.map(|at| waiting.tokens.remove(at)).is_some()
}

/// Whether a number is, byte for byte, the id of a request, answered or not.
fn is_own(id: &str, waiting: &Waiting) -> bool {
    waiting.own.iter().any(|token| token == id)
}

fn is_same(token: &str, id: &str) -> bool {
    let zero = |text: &str| text.replace("-0", "0");
    match (token.starts_with('"'), id.starts_with('"')) {
        (true, true) => unescaped(token) == unescaped(id),
        (false, false) if token.contains(['.', 'e', 'E']) || id.contains(['.', 'e', 'E']) => {
            token == id
        }
        (false, false) if token == "-0" || id == "-0" => zero(token) == zero(id),
        (false, false) => token == id,
        _ => false,
    }
}

fn is_number(text: &str) -> bool {
    text.starts_with(|first: char| first == '-' || first.is_ascii_digit())
}

/// Shifts the point and looks at the digits behind it.
fn is_integral(number: &str) -> bool {
    let number = number.trim_start_matches('-').to_lowercase();
    let (mantissa, exponent) = number.split_once('e').unwrap_or((&number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let far = if exponent.starts_with('-') { -100_000 } else { 100_000 };
    let exponent: i64 = exponent.parse().map_or(far, |near: i64| near.clamp(-100_000, 100_000));
    let point = i64::try_from(whole.len()).expect("it is short") + exponent;
    let point = usize::try_from(point.max(0)).expect("it is not negative");
    digits.chars().skip(point).all(|digit| digit == '0')
}

fn depth(text: &str) -> usize {
    let (mut depth, mut deepest, mut in_string, mut is_escaped) = (0_usize, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !in_string => depth -= 1,
            _ => {}
        }
    }
    deepest
}

fn str_of(text: &[u8]) -> &str {
    std::str::from_utf8(text).expect("it is UTF-8")
}

/// What a string stands for, halves of surrogate pairs included; `None` for another value.
fn unescaped(text: &str) -> Option<Vec<u8>> {
    serde_json::from_str::<Characters>(text).ok().map(|text| text.0)
}

/// The members of an object, in order, none of the names twice or in disguise.
struct Members<'a>(Vec<(Vec<u8>, &'a str)>);

impl<'a> Members<'a> {
    fn of(text: &'a str, names: &[&str]) -> Option<Self> {
        let members: AllMembers<'a> = serde_json::from_str(text).ok()?;
        let mut seen = Vec::new();
        for (key, _) in &members.0 {
            let Ok(key) = std::str::from_utf8(key) else {
                continue;
            };
            let folded: String = key
                .chars()
                .take_while(|character| *character != '\0')
                .map(|character| match character {
                    '\u{17f}' => 's',
                    '\u{212a}' => 'k',
                    _ => character.to_ascii_lowercase(),
                })
                .collect();
            if names.contains(&folded.as_str()) {
                if folded != key || seen.contains(&folded) {
                    return None;
                }
                seen.push(folded);
            }
        }
        Some(Self(members.0))
    }

    fn of_name(&self, name: &str) -> Option<&'a str> {
        let found = self.0.iter().find(|(key, _)| key == name.as_bytes());
        found.map(|(_, value)| *value)
    }
}

struct AllMembers<'a>(Vec<(Vec<u8>, &'a str)>);

impl<'de> Deserialize<'de> for AllMembers<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = AllMembers<'de>;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((key, value)) = map.next_entry::<Characters, &RawValue>()? {
                    members.push((key.0, value.get()));
                }
                Ok(AllMembers(members))
            }
        }
        deserializer.deserialize_map(All)
    }
}

/// The characters of a string, as the bytes the parser gives: UTF-8 that also encodes halves.
struct Characters(Vec<u8>);

impl<'de> Deserialize<'de> for Characters {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Characters;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("a string")
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Characters, E> {
                Ok(Characters(bytes.to_vec()))
            }
        }
        deserializer.deserialize_bytes(Text)
    }
}
