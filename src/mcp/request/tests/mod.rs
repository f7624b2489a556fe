//! Tables of bodies and what becomes of them.

mod differential;

use super::*;
use crate::limits::REQUEST_ID_BYTES_MAX;
use crate::mcp::fault::Fault;
use crate::mcp::headers::Mirrored;
use crate::mcp::revision::Era;

const DEPTH: usize = 128;

fn reading(body: &[u8]) -> Result<Message<'_>, (Fault, Option<String>, bool)> {
    read(body, DEPTH).map_err(|refusal| {
        let id = refusal.id.map(|id| String::from_utf8_lossy(id.token()).into_owned());
        (refusal.fault, id, refusal.is_json_rpc_shaped)
    })
}

fn refused(body: impl AsRef<[u8]>, fault: Fault, id: Option<&str>) {
    let body = body.as_ref();
    let text = String::from_utf8_lossy(body).into_owned();
    match reading(body) {
        Err((found, found_id, _)) => {
            assert_eq!((found, found_id.as_deref()), (fault, id), "{text}");
        }
        Ok(message) => panic!("{text} was read as {message:?}"),
    }
}

fn single(body: &str) -> Single<'_> {
    match reading(body.as_bytes()) {
        Ok(Message::Single(single)) => single,
        other => panic!("{body} was read as {other:?}"),
    }
}

/// RC-1: shape, id token, method and the members that route, escapes resolved.
#[test]
fn a_request_is_read() {
    let body = r#"{"jsonrpc":"2.0","id":9007199254740993,"method":"tools\/call","params":
        {"name":"\u00e9cho","uri":"a:b","taskId":"t","cursor":"","arguments":{"name":"x","id":3},
        "_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",
        "io.modelcontextprotocol/clientCapabilities":{"a":{}}}}}"#;
    let read = single(body);
    assert_eq!(read.kind(), Kind::Request);
    assert_eq!(read.id.expect("an id").token(), b"9007199254740993");
    assert_eq!(read.method.as_deref(), Some("tools/call"));
    assert_eq!(read.name.as_deref(), Some("écho"));
    assert_eq!(read.uri.as_deref(), Some("a:b"));
    assert_eq!(read.task_id.as_deref(), Some("t"));
    assert_eq!(read.meta.protocol_version, Some(&b"2026-07-28"[..]));
    assert!(read.meta.has_capabilities && read.meta.is_reserved);
}

/// RC-1: ids are strings or integers, and echoed as they were written.
#[test]
fn ids() {
    let body = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
    for id in ["0", "-0", "1", "1.0", "1e0", "9007199254740993", r#""""#, r#""a\"b""#] {
        let text = body(id);
        assert_eq!(single(&text).id.expect("an id").token(), id.as_bytes());
    }
    let forty = "1".repeat(40);
    assert_eq!(single(&body(&forty)).id.expect("an id").token(), forty.as_bytes());
    for id in ["null", "true", "1.5", "1e-1", "{}", "[]", "[1]"] {
        refused(body(id), Fault::IdInvalid, None);
    }
    refused(body(&format!("{:?}", "x".repeat(REQUEST_ID_BYTES_MAX))), Fault::IdInvalid, None);
    refused(body(&"1".repeat(REQUEST_ID_BYTES_MAX + 1)), Fault::IdInvalid, None);
}

/// RC-1: keys that route and occur twice, by escapes too, or in a spelling that another parser
/// takes for them. The id is echoed unless it is what is doubled.
#[test]
fn duplicate_keys() {
    let seven = Some("7");
    let dup = |body: &str, id| refused(body, Fault::DuplicateKey, id);
    dup(r#"{"jsonrpc":"2.0","id":7,"method":"a","method":"b"}"#, seven);
    dup(r#"{"jsonrpc":"2.0","id":7,"method":"a","m\u0065thod":"b"}"#, seven);
    dup(r#"{"jsonrpc":"2.0","method":"a","method":"b","id":7}"#, seven);
    dup(r#"{"jsonrpc":"2.0","jsonrpc":"2.0","id":7,"method":"a"}"#, seven);
    dup(r#"{"jsonrpc":"2.0","id":7,"method":"a","Method":"b"}"#, seven);
    dup(r#"{"jsonrpc":"2.0","id":7,"method":"a","PARAMS":{}}"#, seven);
    dup("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"a\",\"param\u{17f}\":{}}", seven);
    dup(r#"{"jsonrpc":"2.0","id":7,"method":"a","params":{},"params":{}}"#, seven);
    dup(r#"{"jsonrpc":"2.0","id":7,"method":"a","params":{"name":"a","name":"b"}}"#, seven);
    dup(r#"{"jsonrpc":"2.0","id":7,"method":"a","params":{"name":"a","NAME":"b"}}"#, seven);
    dup(r#"{"jsonrpc":"2.0","id":7,"method":"a","params":{"_meta":{},"_meta":{}}}"#, seven);
    dup(r#"{"jsonrpc":"2.0","id":7,"method":"a","params":{"taskid":"b"}}"#, seven);
    let version = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
    let meta = format!("{version},{version}");
    dup(
        &format!(r#"{{"jsonrpc":"2.0","id":7,"method":"a","params":{{"_meta":{{{meta}}}}}}}"#),
        seven,
    );
    dup(r#"{"jsonrpc":"2.0","id":7,"id":8,"method":"a"}"#, None);
    dup(r#"{"id":7,"id":8,"jsonrpc":"2.0","method":"a"}"#, None);
    dup(r#"{"jsonrpc":"2.0","id":7,"\u0069d":8,"method":"a"}"#, None);
    // What routes nothing may occur twice: arguments are the pod's own.
    single(r#"{"jsonrpc":"2.0","id":7,"method":"a","params":{"arguments":{"a":1,"a":2}}}"#);
    single(r#"{"jsonrpc":"2.0","id":7,"method":"a","params":{"_meta":{"x":1,"x":2}}}"#);
}

/// RC-1: text on which parsers differ is refused as no JSON at all.
#[test]
fn not_json() {
    let valid = r#"{"jsonrpc":"2.0","id":7,"method":"a"}"#;
    for body in [
        "",
        " ",
        "{bad",
        "\u{feff}{}",
        &format!("{valid} x"),
        &format!("{valid}{valid}"),
        &format!("{valid},"),
        r#"{"jsonrpc":"2.0","id":07,"method":"a"}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"\x"}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"a","params":{"x":"\uZZZZ"}}"#,
        "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"a\0\"}",
        r#"{"jsonrpc":"2.0","id":7,"method":"a",}"#,
    ] {
        refused(body, Fault::NotJson, None);
    }
    refused(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"\xff\"}", Fault::NotJson, None);
    let nested = |levels: usize| {
        let (open, close) = ("[".repeat(levels), "]".repeat(levels));
        format!(r#"{{"jsonrpc":"2.0","id":7,"method":"a","params":{{"x":{open}{close}}}}}"#)
    };
    single(&nested(DEPTH - 2));
    refused(nested(DEPTH - 1), Fault::NotJson, None);
    refused("[".repeat(100_000), Fault::NotJson, None);
}

/// RC-1: JSON that is no JSON-RPC message; whether it means to be one decides if it may pass as
/// other traffic.
#[test]
fn not_a_message() {
    let check = |body: &str, id: Option<&str>, is_shaped: bool| {
        let expected = Err((Fault::MessageInvalid, id.map(str::to_owned), is_shaped));
        assert_eq!(reading(body.as_bytes()), expected, "{body}");
    };
    check("{}", None, false);
    check("1", None, false);
    check("null", None, false);
    check(r#"{"client_name":"x","redirect_uris":[]}"#, None, false);
    check(r#"{"method":"x"}"#, None, false);
    check("[]", None, false);
    check("[1]", None, false);
    check(r#"[1,{"jsonrpc":"2.0","id":1,"method":"a"}]"#, None, true);
    check(r#"[[{"jsonrpc":"2.0","id":1,"method":"a"}]]"#, None, false);
    check(r#"{"method":"x","id":7}"#, Some("7"), true);
    check(r#"{"jsonrpc":"2.0"}"#, None, true);
    check(r#"{"jsonrpc":"1.0","id":7,"method":"a"}"#, Some("7"), true);
    check(r#"{"jsonrpc":2.0,"id":7,"method":"a"}"#, Some("7"), true);
    check(r#"{"jsonrpc":"2.0","id":7,"method":1}"#, Some("7"), true);
    check(r#"{"jsonrpc":"2.0","id":7,"method":"a","params":[]}"#, Some("7"), true);
    check(r#"{"jsonrpc":"2.0","id":7,"method":"a","params":null}"#, Some("7"), true);
    check(r#"{"jsonrpc":"2.0","id":7,"method":"a","result":{}}"#, Some("7"), true);
    check(r#"{"jsonrpc":"2.0","id":7,"method":"x\u0000"}"#, Some("7"), true);
    check(r#"{"jsonrpc":"2.0","id":7,"result":{},"error":{}}"#, None, true);
    check(r#"{"jsonrpc":"2.0","id":7,"method":"\ud800"}"#, Some("7"), true);
    check(r#"{"jsonrpc":"2.0","id":7,"method":"a","params":{"name":"\udc00"}}"#, Some("7"), true);
}

/// RC-2: arrays are of one kind, never empty, never with `initialize`, and bounded.
#[test]
fn batches() {
    let ids = |body: &str| match reading(body.as_bytes()) {
        Ok(Message::Batch(batch)) => {
            batch.ids.iter().map(|id| id.token().to_vec()).collect::<Vec<_>>()
        }
        other => panic!("{body} was read as {other:?}"),
    };
    let ping = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
    let note = r#"{"jsonrpc":"2.0","method":"notifications/x"}"#;
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    assert_eq!(ids(&format!("[{},{},{note}]", ping("1"), ping("\"a\""))), [&b"1"[..], b"\"a\""]);
    assert!(ids(&format!("[{note}]")).is_empty());
    assert!(ids(&format!("[{answer},{answer}]")).is_empty());
    let invalid = |body: String| refused(body, Fault::MessageInvalid, None);
    invalid(format!("[{},{answer}]", ping("1")));
    invalid(format!("[{},{}]", ping("1"), ping("1")));
    let opening = r#"[{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}]"#;
    let kind = classified_kind(opening);
    assert_eq!(kind, CallKind::OpeningBatch);
    let many = |count: usize| {
        let all: Vec<String> = (0..count).map(|id| ping(&id.to_string())).collect();
        format!("[{}]", all.join(","))
    };
    assert_eq!(ids(&many(256)).len(), 256);
    invalid(many(257));
    refused(format!("[{}]", ping("null")), Fault::IdInvalid, None);
    refused(r#"[{"jsonrpc":"2.0","id":1,"id":2,"method":"a"}]"#, Fault::DuplicateKey, None);
}

fn classified_kind(body: &str) -> CallKind {
    let message = reading(body.as_bytes()).expect("the body is a message");
    classify(message, &Mirrored::default()).expect("it is not refused here").kind
}

fn classified(body: &str, mirrored: &Mirrored<'_>) -> Result<(Era, CallKind), Fault> {
    let message = reading(body.as_bytes()).expect("the body is a message");
    classify(message, mirrored).map(|call| (call.era, call.kind)).map_err(|refusal| {
        assert!(refusal.id.is_some(), "{body}: the id is echoed");
        refusal.fault
    })
}

/// RC-2: the whole table of eras: what `_meta` names against what the field names.
#[test]
fn eras() {
    let meta = |version: &str| {
        let capabilities = r#""io.modelcontextprotocol/clientCapabilities":{}"#;
        match version {
            "" => String::new(),
            "reserved" => format!(r#","params":{{"_meta":{{{capabilities}}}}}"#),
            version => {
                let version = format!(r#""io.modelcontextprotocol/protocolVersion":"{version}""#);
                format!(r#","params":{{"_meta":{{{version},{capabilities}}}}}"#)
            }
        }
    };
    let fields = ["", "2025-11-25", "2026-07-28", "2099-01-01"];
    let table = [
        ("", ["legacy", "legacy", "meta_invalid", "legacy"]),
        ("reserved", ["meta_invalid", "legacy", "meta_invalid", "legacy"]),
        ("2025-11-25", ["unsupported", "legacy", "mismatch", "unsupported or mismatch"]),
        ("2026-07-28", ["mismatch", "mismatch", "modern", "mismatch"]),
        ("2099-01-01", ["mismatch", "mismatch", "mismatch", "unsupported"]),
    ];
    for (version, row) in table {
        for (field, expected) in fields.iter().zip(row) {
            let meta = meta(version);
            let body = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/list"{meta}}}"#);
            let mirrored = Mirrored {
                protocol_version: (!field.is_empty()).then_some(field.as_bytes()),
                method: Some(b"tools/list"),
                ..Mirrored::default()
            };
            let found = match classified(&body, &mirrored) {
                Ok((Era::Legacy, _)) => "legacy",
                Ok((Era::Modern, _)) => "modern",
                Err(Fault::MetaInvalid) => "meta_invalid",
                Err(Fault::HeaderMismatch) => "mismatch",
                Err(Fault::VersionUnsupported) => "unsupported",
                Err(other) => panic!("{other:?}"),
            };
            assert!(expected.contains(found), "_meta {version:?}, field {field:?}: {found}");
        }
    }
}

/// RC-2: what is no request of one message is never refused for its era, and `initialize` is legacy
/// whatever the field says, unless its `_meta` is modern.
#[test]
fn eras_of_other_messages() {
    let modern = Mirrored { protocol_version: Some(b"2026-07-28"), ..Mirrored::default() };
    let legacy = |body: &str, kind| {
        assert_eq!(classified(body, &modern), Ok((Era::Legacy, kind)), "{body}");
    };
    legacy(r#"{"jsonrpc":"2.0","method":"notifications/x"}"#, CallKind::Notification);
    legacy(r#"{"jsonrpc":"2.0","id":7,"result":{}}"#, CallKind::Response);
    legacy(r#"[{"jsonrpc":"2.0","id":7,"method":"ping"}]"#, CallKind::Batch);
    legacy(r#"{"jsonrpc":"2.0","id":7,"method":"initialize","params":{}}"#, CallKind::Request);
    let modern_initialize = r#"{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"_meta":{
        "io.modelcontextprotocol/protocolVersion":"2026-07-28",
        "io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let mirrored = Mirrored { method: Some(b"initialize"), ..modern };
    assert_eq!(classified(modern_initialize, &mirrored), Ok((Era::Modern, CallKind::Request)));
}

/// RC-2: a modern request without the capabilities object is malformed.
#[test]
fn capabilities_are_required() {
    let mirrored = Mirrored {
        protocol_version: Some(b"2026-07-28"),
        method: Some(b"tools/list"),
        ..Mirrored::default()
    };
    for capabilities in ["", r#","io.modelcontextprotocol/clientCapabilities":1"#] {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{{"_meta":{{
            "io.modelcontextprotocol/protocolVersion":"2026-07-28"{capabilities}}}}}}}"#
        );
        assert_eq!(classified(&body, &mirrored), Err(Fault::MetaInvalid));
    }
}

/// RC-2: the version that was asked for is echoed as it was written.
#[test]
fn the_requested_version_is_echoed() {
    let body = r#"{"jsonrpc":"2.0","id":7,"method":"a","params":{"_meta":{
        "io.modelcontextprotocol/protocolVersion":"2025\u002d11-25"}}}"#;
    let message = read(body.as_bytes(), DEPTH).expect("the body is a message");
    let refusal = classify(message, &Mirrored::default()).expect_err("the version is old");
    assert_eq!(refusal.fault, Fault::VersionUnsupported);
    assert_eq!(refusal.requested.as_deref(), Some(&br#""2025\u002d11-25""#[..]));
}

/// RC-4: `Mcp-Method`, `Mcp-Name` and `Mcp-Param-*` of a modern request agree with its body.
#[test]
fn mirrored_fields() {
    let body = |method: &str, params: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{{{params}"_meta":{{
            "io.modelcontextprotocol/protocolVersion":"2026-07-28",
            "io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
        )
    };
    let check = |body: &str, method: &str, name: &str, param: &str, is_agreed: bool| {
        let params = [param.as_bytes()];
        let mirrored = Mirrored {
            protocol_version: Some(b"2026-07-28"),
            method: (!method.is_empty()).then_some(method.as_bytes()),
            name: (!name.is_empty()).then_some(name.as_bytes()),
            params: if param.is_empty() { &[] } else { &params },
        };
        let expected = if is_agreed {
            Ok((Era::Modern, CallKind::Request))
        } else {
            Err(Fault::HeaderMismatch)
        };
        assert_eq!(classified(body, &mirrored), expected, "{body} {method} {name} {param}");
    };
    let call = body("tools/call", r#""name":"écho","#);
    check(&call, "tools/call", "=?base64?w6ljaG8=?=", "", true);
    check(&call, "tools/call", "écho", "", true);
    check(&call, "tools/call", "echo", "", false);
    check(&call, "tools/call", "", "", false);
    check(&call, "tools/list", "écho", "", false);
    check(&call, "Tools/call", "écho", "", false);
    check(&call, "", "écho", "", false);
    check(&call, "tools/call", "écho", "x", true);
    check(&call, "tools/call", "écho", "=?base64?w6k=?=", true);
    check(&call, "tools/call", "écho", "=?base64?!?=", false);
    let list = body("tools/list", "");
    check(&list, "tools/list", "", "", true);
    check(&list, "tools/list", "=?base64?!?=", "", false);
    check(&body("resources/read", r#""uri":"a:b","name":"x","#), "resources/read", "a:b", "", true);
    check(&body("resources/read", r#""uri":"a:b","name":"x","#), "resources/read", "x", "", false);
    check(&body("tasks/get", r#""taskId":"t","#), "tasks/get", "t", "", true);
    check(&body("prompts/get", ""), "prompts/get", "", "", true);
}
