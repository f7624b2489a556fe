//! What a client may call: malformed messages are refused with their id before a pod sees them
//! (RC-1, RC-2, RC-4), and array answers are held against what was asked (RV-3).

use serde_json::{Value, json};

use crate::support::client::{exchange, post};
use crate::support::pod::{Pod, json as json_answer};
use crate::support::process::Ringgate;

/// A request of the stateless revision with these members of `_meta` and `params`.
fn modern(method: &str, version: &str, params: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{{{params}"_meta":{{
        "io.modelcontextprotocol/protocolVersion":"{version}",
        "io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
    )
}

/// RC-1, RC-2, RC-4, FA-1: each malformed call gets 400 with its own code, reason and id, and
/// nothing reaches the pod.
#[test]
fn malformed_calls_are_refused() {
    let pod = Pod::proper();
    let proxy = Ringgate::before(pod.address(), &[]);
    let check = |body: &str, fields: &str, reason: &str, code: i32| {
        let answer = exchange(proxy.address(), post(body, fields));
        assert_eq!((answer.status, answer.fault()), (400, Some(reason)), "{body} {fields}");
        let error = answer.json();
        assert_eq!(error["id"], 7, "{body}");
        assert_eq!(error["error"]["code"], code, "{body}");
        assert_eq!(error["error"]["data"]["origin"], "ringgate");
        error["error"]["data"].clone()
    };
    let twice = r#"{"jsonrpc":"2.0","id":7,"method":"a","m\u0065thod":"b"}"#;
    check(twice, "", "duplicate_key", -32_600);
    let disguised = r#"{"jsonrpc":"2.0","id":7,"method":"a","params":{"name":"a","Name":"b"}}"#;
    check(disguised, "", "duplicate_key", -32_600);
    check(r#"{"jsonrpc":"1.0","id":7,"method":"a"}"#, "", "message_invalid", -32_600);
    check(r#"{"jsonrpc":"2.0","id":7,"method":"a","params":[]}"#, "", "message_invalid", -32_600);
    let version = "MCP-Protocol-Version: 2026-07-28\r\n";
    let list = modern("tools/list", "2026-07-28", "");
    check(&list, "Mcp-Method: tools/list\r\n", "header_mismatch", -32_020);
    check(&list, version, "header_mismatch", -32_020);
    let other = format!("{version}Mcp-Method: tools/call\r\n");
    check(&list, &other, "header_mismatch", -32_020);
    let call = modern("tools/call", "2026-07-28", r#""name":"a","#);
    let named = format!("{version}Mcp-Method: tools/call\r\nMcp-Name: b\r\n");
    check(&call, &named, "header_mismatch", -32_020);
    let bare = r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#;
    check(bare, version, "meta_invalid", -32_602);
    let unknown = modern("tools/list", "2099-01-01", "");
    let told = check(
        &unknown,
        "MCP-Protocol-Version: 2099-01-01\r\nMcp-Method: tools/list\r\n",
        "protocol_version_unsupported",
        -32_022,
    );
    assert_eq!(
        (&told["requested"], &told["supported"]),
        (&"2099-01-01".into(), &json!(["2026-07-28"]))
    );
    pod.assert_untouched();
}

/// RC-1, FA-1: where no id can be known the refusal is text, since an error without id hangs
/// clients.
#[test]
fn refusals_without_an_id_are_text() {
    let pod = Pod::proper();
    let proxy = Ringgate::before(pod.address(), &[]);
    let check = |body: &str, reason: &str| {
        let answer = exchange(proxy.address(), post(body, ""));
        assert_eq!((answer.status, answer.fault()), (400, Some(reason)), "{body}");
        assert_eq!(answer.value("Content-Type"), Some("text/plain; charset=utf-8"), "{body}");
    };
    check("{bad", "not_json");
    check(r#"{"jsonrpc":"2.0","id":7,"method":"a"} x"#, "not_json");
    check(&"[".repeat(5_000), "not_json");
    check(r#"{"jsonrpc":"2.0","id":1.5,"method":"a"}"#, "id_invalid");
    check(r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#, "id_invalid");
    check(r#"{"id":7,"id":8,"jsonrpc":"2.0","method":"a"}"#, "duplicate_key");
    check(r#"[{"jsonrpc":"2.0","id":7,"method":"a"},1]"#, "message_invalid");
    pod.assert_untouched();
}

/// RC-5, RC-2: what is well-formed reaches the pod byte for byte, odd spelling and all; JSON that
/// is no JSON-RPC does too.
#[test]
fn other_calls_reach_the_pod() {
    let pod = Pod::proper();
    let proxy = Ringgate::before(pod.address(), &[]);
    let check = |body: &str, fields: &str| {
        assert_eq!(exchange(proxy.address(), post(body, fields)).status, 200, "{body}");
        assert_eq!(pod.received().body, body);
    };
    check(" { \"id\" : 9007199254740993 ,\"jsonrpc\":\"2.0\",\r\n\"method\":\"p\\u0069ng\"} ", "");
    check(r#"{"client_name":"x","redirect_uris":["http://localhost/"]}"#, "");
    let fields = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: resources/read\r\n\
                  Mcp-Name: =?base64?w6k=?=\r\nMcp-Param-Any: thing\r\n";
    check(&modern("resources/read", "2026-07-28", "\"uri\":\"\u{e9}\","), fields);
    let stray = r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{"_meta":{
        "io.modelcontextprotocol/clientInfo":{}}}}"#;
    check(stray, "MCP-Protocol-Version: 2025-06-18\r\n");
}

const BATCH: &str = r#"[{"jsonrpc":"2.0","id":1,"method":"a"},
    {"jsonrpc":"2.0","id":"x","method":"b"}, {"jsonrpc":"2.0","method":"c"}]"#;

/// RV-3, FA-1: an array answer is valid to an array only, each id in it asked and once; a fault
/// answers each request of the array.
#[test]
fn arrays_are_answered_by_arrays() {
    let check = |answer: &str, reason: Option<&str>| {
        let pod = Pod::answering(json_answer(answer));
        let proxy = Ringgate::before(pod.address(), &[]);
        let answered = exchange(proxy.address(), post(BATCH, ""));
        assert_eq!(answered.fault(), reason, "{answer}");
        if reason.is_none() {
            assert_eq!(answered.body, answer);
            return;
        }
        assert_eq!(answered.status, 502);
        let faults = answered.json();
        let ids: Vec<&Value> =
            faults.as_array().expect("an array").iter().map(|fault| &fault["id"]).collect();
        assert_eq!(ids, [&json!(1), &json!("x")], "{answer}");
    };
    let one = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    let x = r#"{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"m"}}"#;
    check(&format!("[{one},{x}]"), None);
    check(&format!("[{x}, {one}]"), None);
    check(&format!("[{one},{one}]"), Some("upstream_wrong_id"));
    check(&format!("[{one},{}]", x.replace("\"x\"", "\"y\"")), Some("upstream_wrong_id"));
    check("[]", Some("upstream_not_json_rpc"));
    check(&format!("[{one},1]"), Some("upstream_not_json_rpc"));
    let pod = Pod::answering(json_answer(&format!("[{one}]")));
    let proxy = Ringgate::before(pod.address(), &[]);
    let single = r#"{"jsonrpc":"2.0","id":1,"method":"a"}"#;
    let answered = exchange(proxy.address(), post(single, ""));
    assert_eq!(answered.fault(), Some("upstream_not_json_rpc"), "an array to a single request");
}

/// RC-2: `--batches refuse` answers each request of an array; an array that would open a session is
/// refused always.
#[test]
fn arrays_may_be_refused() {
    let check = |arguments: &[&str], body: &str, reason: &str| {
        let pod = Pod::proper();
        let proxy = Ringgate::before(pod.address(), arguments);
        let answer = exchange(proxy.address(), post(body, ""));
        assert_eq!((answer.status, answer.fault()), (400, Some(reason)));
        assert_eq!(answer.json()[0]["id"], 1);
        assert_eq!(answer.json()[0]["error"]["code"], -32_600);
        pod.assert_untouched();
    };
    check(&["--batches", "refuse"], BATCH, "batch_refused");
    check(&[], &BATCH.replace("\"a\"", "\"initialize\""), "message_invalid");
}
