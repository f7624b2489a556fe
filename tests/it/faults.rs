//! Every answer that the proxy itself makes: its bytes, its documentation, and how it looks on the
//! wire (FA-1 to FA-5).

use std::fmt::Write as _;
use std::path::Path;

use expect_test::expect_file;
use ringgate::ids::RequestId;
use ringgate::mcp::fault::{Addressee, Codes, Fault, Group, Style};
use serde_json::Value;

use crate::support::client::{Answer, Client, exchange, post};
use crate::support::pod::{ClosedPort, EVENTS, Pod, chunk, json};
use crate::support::process::Ringgate;

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
const BEGIN: &str = "<!-- begin: the table of src/mcp/fault.rs -->\n";
const END: &str = "<!-- end -->\n";

/// A request of the stateless revision, with the fields that mirror it.
fn modern() -> String {
    let body = concat!(
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"#,
        r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
        r#""io.modelcontextprotocol/clientCapabilities":{}}}}"#
    );
    post(body, "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\n")
}

fn id(token: &str) -> RequestId {
    RequestId::from_token(token.as_bytes())
}

fn body(style: &Style, fault: Fault, addressee: Addressee<'_>) -> String {
    let mut bytes = Vec::new();
    let requested = Some(&br#""1999-01-01""#[..]);
    style.write_body(fault, addressee, requested, &mut bytes);
    String::from_utf8(bytes).expect("a fault is text")
}

fn event(style: &Style, fault: Fault, id: &RequestId) -> String {
    let mut bytes = Vec::new();
    style.write_event(fault, id, &mut bytes);
    String::from_utf8(bytes).expect("a fault is text")
}

fn group(fault: Fault) -> &'static str {
    match fault.row().group {
        Group::Failed => "failed",
        Group::Denied => "denied",
        Group::Unsupported => "unsupported",
    }
}

/// FA-5: the bytes of every fault, for each addressee.
#[test]
fn golden() {
    let style = Style::default();
    let ids = [id("0"), id(r#""a\"b""#)];
    let mut text = String::new();
    for fault in Fault::ALL {
        let row = fault.row();
        let single = body(&style, fault, Addressee::Single(&id("9007199254740993")));
        let batch = body(&style, fault, Addressee::Batch(&ids));
        let unknown = body(&style, fault, Addressee::Unknown);
        let event = event(&style, fault, &ids[0]);
        let (reason, status, code) = (row.reason, row.status, row.code);
        write!(
            text,
            "# {reason}: {status}, {code}, {}\n{single}\n{batch}\n{unknown}{event}",
            group(fault)
        )
        .expect("a string takes all");
    }
    expect_file!["faults.golden"].assert_eq(&text);
}

/// FA-5: the documentation has every fault as the code has it.
#[test]
fn documented() {
    let mut table =
        String::from("| Reason | HTTP status | Code | Group | Message |\n|---|---|---|---|---|\n");
    for fault in Fault::ALL {
        let row = fault.row();
        let (reason, status, code, message) = (row.reason, row.status, row.code, row.message);
        writeln!(table, "| `{reason}` | {status} | {code} | {} | {message} |", group(fault))
            .expect("a string takes all");
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/faults.md");
    let text = std::fs::read_to_string(&path).expect("faults are documented");
    let (before, rest) = text.split_once(BEGIN).expect("the table has a beginning");
    let (_, after) = rest.split_once(END).expect("the table has an end");
    let expected = format!("{before}{BEGIN}{table}{END}{after}");
    expect_file![path].assert_eq(&expected);
}

/// FA-1, FA-2: every fault is a JSON-RPC error with the raw id, and says who answers and why.
#[test]
fn faults_conform() {
    let check = |fault: Fault, token: &str| {
        let text = body(&Style::default(), fault, Addressee::Single(&id(token)));
        let start = format!(r#"{{"jsonrpc":"2.0","id":{token},"error":{{"code":"#);
        assert!(text.starts_with(&start), "{text}");
        let message: Value = serde_json::from_str(&text).expect("a fault is JSON");
        let row = fault.row();
        let error = &message["error"];
        assert_eq!(error["code"], row.code);
        assert_eq!(error["message"], row.message);
        assert_eq!(error["data"]["origin"], "ringgate");
        assert_eq!(error["data"]["reason"], row.reason);
        let keys = |value: &Value| -> Vec<String> {
            let object = value.as_object().expect("an object");
            object.keys().cloned().collect()
        };
        assert_eq!(keys(&message), ["error", "id", "jsonrpc"]);
        assert_eq!(keys(error), ["code", "data", "message"]);
        let event = event(&Style::default(), fault, &id(token));
        assert!(event.starts_with("event: message\ndata: {"), "{event}");
        assert!(event.ends_with("}\n\n") && event.lines().count() == 3, "{event}");
    };
    for (index, fault) in Fault::ALL.into_iter().enumerate() {
        assert_eq!(fault as usize, index, "{fault:?} is out of order");
        for token in ["0", "9007199254740993", r#""a\"b""#, r#""""#] {
            check(fault, token);
        }
        let twins = Fault::ALL.iter().filter(|other| other.row().reason == fault.row().reason);
        assert_eq!(twins.count(), 1, "{fault:?}");
        let text = body(&Style::default(), fault, Addressee::Unknown);
        assert!(!text.contains('{') && text.ends_with('\n'), "{text}");
        assert_eq!(body(&Style::default(), fault, Addressee::Batch(&[])), text);
    }
}

/// FA-3: the codes of the groups lie outside every reserved block, and older peers' code stands
/// for these three only.
#[test]
fn codes() {
    let legacy = Style { codes: Codes::Legacy, ..Style::default() };
    for fault in Fault::ALL {
        let row = fault.row();
        let is_reserved = (-32_768..=-32_000).contains(&row.code);
        let own = match row.group {
            Group::Failed => -31_998,
            Group::Denied => -31_999,
            Group::Unsupported => -31_997,
        };
        assert!(is_reserved || row.code == own, "{fault:?}");
        let text = body(&legacy, fault, Addressee::Single(&id("1")));
        let message: Value = serde_json::from_str(&text).expect("a fault is JSON");
        let expected = if is_reserved { row.code } else { -32_000 };
        assert_eq!(message["error"]["code"], expected, "{fault:?}");
    }
}

/// What a client gets when no pod can be reached.
fn unreachable(arguments: &[&str], request: &str) -> Answer {
    let port = ClosedPort::open();
    let proxy = Ringgate::before(port.address(), arguments);
    exchange(proxy.address(), request)
}

/// FA-1, FA-2: ids survive as they were written, and head and body name the same reason.
#[test]
fn ids_survive_on_the_wire() {
    for token in ["0", "-7", "9007199254740993", r#""a\"b""#, r#""""#, r#""é\n""#] {
        let request = format!(r#"{{"jsonrpc":"2.0","id":{token},"method":"ping"}}"#);
        let answered = unreachable(&[], &post(&request, ""));
        let expected =
            body(&Style::default(), Fault::UpstreamUnreachable, Addressee::Single(&id(token)));
        assert_eq!(answered.body, expected);
        assert_eq!(answered.status, 502);
        assert_eq!(answered.fault(), Some("upstream_unreachable"));
        assert_eq!(answered.value("Content-Type"), Some("application/json"));
    }
}

/// FA-1: where no id is known the body is text, whatever the request was.
#[test]
fn faults_without_an_id_are_text() {
    let check = |request: &str, status: u16, reason: &str| {
        let answered = unreachable(&["--max-request-bytes", "100B"], request);
        assert_eq!((answered.status, answered.fault()), (status, Some(reason)));
        let text = Some("text/plain; charset=utf-8");
        assert_eq!(answered.value("Content-Type"), text, "{reason}");
        assert!(answered.body.starts_with("ringgate: "), "{reason}");
        answered
    };
    let heard = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    check(&post(heard, ""), 502, "upstream_unreachable");
    check("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 502, "upstream_unreachable");
    check(&post(&PING.replace("ping", &"p".repeat(100)), ""), 413, "body_too_large");
    check(&post("{", ""), 400, "not_json");
    check("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403, "host_forbidden");
    let modern = "GET / HTTP/1.1\r\nHost: localhost\r\nMCP-Protocol-Version: 2026-07-28\r\n\r\n";
    let refused = check(modern, 405, "method_not_allowed");
    assert_eq!(refused.value("Allow"), Some("POST, OPTIONS"));
}

/// FA-2, FA-3: who answers, and with which code, is the operator's choice, in bodies and events.
#[test]
fn origin_and_codes_on_the_wire() {
    let arguments = ["--origin", "edge-1.example", "--fault-codes", "legacy"];
    let answered = unreachable(&arguments, &post(PING, ""));
    let error = &answered.json()["error"];
    assert_eq!(error["code"], -32_000);
    assert_eq!(error["data"]["origin"], "edge-1.example");
    assert_eq!(answered.fault(), Some("upstream_unreachable"));
    let text = unreachable(&arguments, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").body;
    assert_eq!(text, "edge-1.example: The pod can't be reached\n");
    let session = unreachable(&arguments, &post(PING, "Mcp-Session-Id: none\r\n"));
    assert_eq!(session.status, 404);
    assert_eq!(session.json()["error"]["code"], -32_001);
    let pod = Pod::answering(format!("{EVENTS}{}", chunk("data: x\n\n")));
    let proxy = Ringgate::before(pod.address(), &arguments);
    let streamed = exchange(proxy.address(), post(PING, "")).body;
    let style = Style { origin: "edge-1.example".to_owned(), codes: Codes::Legacy };
    assert_eq!(streamed, event(&style, Fault::UpstreamNotJson, &id("1")));
}

/// FA-3: faults that answer legacy requests may come at 200, and no others: not those of the
/// stateless revision, not an unknown session, not what has no id, not what was denied.
#[test]
fn in_band_faults() {
    let check = |request: &str, status: (u16, u16), reason: &str| {
        for (arguments, status) in
            [(&[][..], status.0), (&["--legacy-fault-status", "200"][..], status.1)]
        {
            let answered = unreachable(arguments, request);
            assert_eq!((answered.status, answered.fault()), (status, Some(reason)));
        }
    };
    let heard = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let legacy = post(PING, "MCP-Protocol-Version: 2025-11-25\r\n");
    check(&legacy, (502, 200), "upstream_unreachable");
    check(&post(PING, ""), (502, 200), "upstream_unreachable");
    check(&modern(), (502, 502), "upstream_unreachable");
    check(&post(heard, ""), (502, 502), "upstream_unreachable");
    let session = post(PING, "Mcp-Session-Id: none\r\n");
    check(&session, (404, 404), "session_unknown");
    check(&post("{", ""), (400, 400), "not_json");
    let pod = Pod::answering(json("{}"));
    let proxy = Ringgate::before(pod.address(), &["--legacy-fault-status", "200"]);
    let mut client = Client::connect(proxy.address());
    for _ in 0..2 {
        client.send(post(PING, ""));
        let answered = client.answer();
        assert_eq!((answered.status, answered.fault()), (200, Some("upstream_not_json_rpc")));
        assert_eq!(answered.json()["id"], 1);
    }
}
