//! The demonstration pods over real sockets, told by a client that knows no library.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

use super::*;

/// What came back.
struct Said {
    status: u16,
    head: String,
    body: String,
}

impl Said {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.body))
    }

    fn field(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    }

    /// The messages of an event stream.
    fn events(&self) -> Vec<Value> {
        let data = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        data.map(|data| serde_json::from_str(data).unwrap()).collect()
    }
}

fn pod() -> SocketAddr {
    start(&["pod-x"]).unwrap()[0]
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

fn ask(address: SocketAddr, method: &str, fields: &str, body: &str) -> Said {
    let mut stream = connect(address);
    let length = body.len();
    write!(
        stream,
        "{method} /mcp HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{fields}\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let mut said = Said { status, head: head.to_owned(), body: body.to_owned() };
    if said.field("transfer-encoding") == Some("chunked") {
        said.body = joined(body);
    }
    said
}

/// The chunks of a body without their frames.
fn joined(mut rest: &str) -> String {
    let mut body = String::new();
    loop {
        let (size, after) = rest.split_once("\r\n").unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            return body;
        }
        body.push_str(&after[..size]);
        rest = &after[size + 2..];
    }
}

fn post(address: SocketAddr, fields: &str, body: &Value) -> Said {
    ask(address, "POST", fields, &body.to_string())
}

fn request(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": "a-1", "method": method, "params": params })
}

/// Opens a session of a revision and returns its field line.
fn session(address: SocketAddr, revision: &str) -> String {
    let params = json!({ "protocolVersion": revision, "capabilities": {} });
    let said = post(address, "", &request("initialize", &params));
    assert_eq!(said.status, 200, "{}", said.body);
    assert_eq!(said.json()["result"]["protocolVersion"], revision);
    format!("Mcp-Session-Id: {}\r\n", said.field("mcp-session-id").unwrap())
}

const MODERN_FIELD: &str = "MCP-Protocol-Version: 2026-07-28\r\n";

fn modern(method: &str, params: &Value) -> Value {
    let mut params = params.clone();
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    request(method, &params)
}

fn modern_call(address: SocketAddr, name: &str, arguments: &Value) -> Said {
    let fields = format!("{MODERN_FIELD}Mcp-Method: tools/call\r\nMcp-Name: {name}\r\n");
    post(address, &fields, &modern("tools/call", &json!({ "name": name, "arguments": arguments })))
}

#[track_caller]
fn check_error(said: &Said, status: u16, code: i32) {
    assert_eq!(said.status, status, "{}", said.body);
    assert_eq!(said.json()["error"]["code"], code, "{}", said.body);
    assert_eq!(said.json()["id"], "a-1", "{}", said.body);
}

#[track_caller]
fn check_text(said: &Said, status: u16) {
    assert_eq!(said.status, status, "{}", said.body);
    assert_eq!(said.field("content-type"), Some("text/plain; charset=utf-8"));
}

fn first_text(said: &Said) -> Value {
    said.json()["result"]["content"][0]["text"].clone()
}

#[test]
fn a_legacy_session_runs_from_handshake_to_delete() {
    let pod = pod();
    let session = session(pod, "2025-06-18");
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let said = post(pod, &session, &initialized);
    assert_eq!((said.status, said.body.as_str()), (202, ""));
    assert_eq!(post(pod, &session, &request("ping", &json!({}))).json()["result"], json!({}));
    let tools = post(pod, &session, &request("tools/list", &json!({}))).json();
    let names: Vec<&str> = tools["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["echo", "add", "where_am_i", "count"]);
    let call = request("tools/call", &json!({ "name": "where_am_i", "arguments": {} }));
    assert_eq!(first_text(&post(pod, &session, &call)), "pod-x");
    let response = json!({ "jsonrpc": "2.0", "id": 1, "result": {} });
    assert_eq!(post(pod, &session, &response).status, 202);
    assert_eq!(ask(pod, "DELETE", &session, "").status, 204);
    check_error(&post(pod, &session, &call), 404, -32_600);
    check_text(&ask(pod, "DELETE", &session, ""), 404);
}

#[test]
fn legacy_versions_are_negotiated() {
    let pod = pod();
    for revision in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        session(pod, revision);
    }
    let params = json!({ "protocolVersion": "1999-01-01", "capabilities": {} });
    let said = post(pod, "", &request("initialize", &params));
    assert_eq!(said.json()["result"]["protocolVersion"], "2025-11-25");
}

#[test]
fn legacy_refusals_name_the_request() {
    let pod = pod();
    let session = session(pod, "2025-11-25");
    let ping = request("ping", &json!({}));
    check_error(&post(pod, "", &ping), 400, -32_600);
    check_error(&post(pod, "Mcp-Session-Id: no\r\n", &ping), 404, -32_600);
    check_error(&post(pod, &format!("{session}{session}"), &ping), 400, -32_600);
    let future = format!("{session}MCP-Protocol-Version: 2099-01-01\r\n");
    check_error(&post(pod, &future, &ping), 400, -32_600);
    check_error(&post(pod, &session, &request("no/such", &json!({}))), 200, -32_601);
    let unknown = request("tools/call", &json!({ "name": "no" }));
    check_error(&post(pod, &session, &unknown), 200, -32_602);
    check_error(&post(pod, &session, &request("tools/list", &json!({"cursor": ""}))), 200, -32_602);
    check_error(&post(pod, &session, &json!({ "jsonrpc": "2.0", "id": "a-1" })), 400, -32_600);
}

/// Without an id that can be read there is no JSON-RPC error to send.
#[test]
fn refusals_without_an_id_are_text() {
    let pod = pod();
    for body in ["{", "1", "{}", r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, "\u{feff}{}"] {
        check_text(&ask(pod, "POST", "", body), 400);
    }
    check_text(&ask(pod, "POST", "Origin: http://evil.example\r\n", "{}"), 403);
    check_text(&ask(pod, "POST", "", &format!("\"{}\"", "x".repeat(1_024 * 1_024))), 413);
    assert_eq!(ask(pod, "GET", "", "").field("allow"), Some("POST, DELETE"));
    check_text(&ask(pod, "GET", "", ""), 405);
    let modern = ask(pod, "GET", MODERN_FIELD, "");
    assert_eq!((modern.status, modern.field("allow")), (405, Some("POST")));
}

#[test]
fn arrays_belong_to_one_revision() {
    let pod = pod();
    let ping = |id: u64| json!({ "jsonrpc": "2.0", "id": id, "method": "ping" });
    let array = json!([ping(1), { "jsonrpc": "2.0", "method": "notifications/x" }, ping(2)]);
    let said = post(pod, &session(pod, "2025-03-26"), &array);
    let ids: Vec<Value> =
        said.json().as_array().unwrap().iter().map(|one| one["id"].clone()).collect();
    assert_eq!((said.status, ids), (200, vec![json!(1), json!(2)]));
    check_text(&post(pod, &session(pod, "2025-03-26"), &json!([])), 400);
    check_text(&post(pod, &session(pod, "2025-06-18"), &array), 400);
    check_text(&post(pod, MODERN_FIELD, &array), 400);
}

#[test]
fn a_full_session_table_gives_up_its_oldest() {
    let pod = pod();
    let (first, second) = (session(pod, "2025-11-25"), session(pod, "2025-11-25"));
    for _ in 0..1_023 {
        session(pod, "2025-11-25");
    }
    let ping = request("ping", &json!({}));
    assert_eq!(post(pod, &first, &ping).status, 404);
    assert_eq!(post(pod, &second, &ping).status, 200);
}

#[test]
fn modern_requests_need_no_session() {
    let pod = pod();
    let fields = format!("{MODERN_FIELD}Mcp-Method: server/discover\r\n");
    let said = post(pod, &fields, &modern("server/discover", &json!({})));
    let result = &said.json()["result"];
    assert_eq!(result["supportedVersions"], json!(["2026-07-28"]));
    assert_eq!(
        (&result["resultType"], &result["cacheScope"]),
        (&json!("complete"), &json!("public"))
    );
    assert!(result["ttlMs"].is_u64() && result["capabilities"]["tools"].is_object(), "{result}");
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "pod-x");
    assert_eq!(said.field("mcp-session-id"), None);
    let fields = format!("{MODERN_FIELD}Mcp-Method: tools/list\r\n");
    let result = &post(pod, &fields, &modern("tools/list", &json!({}))).json()["result"];
    assert!(result["ttlMs"].is_u64() && result["tools"][3]["name"] == "count", "{result}");
    let said = modern_call(pod, "add", &json!({ "a": 9_007_199_254_740_993_i64, "b": 1 }));
    assert_eq!(first_text(&said), "9007199254740994");
    assert_eq!(said.json()["result"]["resultType"], "complete");
    assert_eq!(first_text(&modern_call(pod, "add", &json!({ "a": 0.5, "b": 1 }))), "1.5");
    assert_eq!(first_text(&modern_call(pod, "echo", &json!({ "text": "h\u{e9}" }))), "h\u{e9}");
    assert_eq!(modern_call(pod, "echo", &json!({})).json()["result"]["isError"], true);
    let fields =
        format!("{MODERN_FIELD}Mcp-Method: tools/call\r\nMcp-Name: =?base64?ZWNobw==?=\r\n");
    let call = modern("tools/call", &json!({ "name": "echo", "arguments": { "text": "x" } }));
    assert_eq!(first_text(&post(pod, &fields, &call)), "x");
}

#[test]
fn modern_fields_and_envelope_must_agree() {
    let pod = pod();
    let method = "Mcp-Method: tools/call\r\n";
    let name = "Mcp-Name: echo\r\n";
    let call = modern("tools/call", &json!({ "name": "echo", "arguments": { "text": "x" } }));
    let check = |fields: &str, status, code| check_error(&post(pod, fields, &call), status, code);
    check(&format!("{method}{name}"), 400, -32_020);
    check(&format!("MCP-Protocol-Version: 2025-11-25\r\n{method}{name}"), 400, -32_020);
    check(&format!("{MODERN_FIELD}{MODERN_FIELD}{method}{name}"), 400, -32_020);
    check(&format!("{MODERN_FIELD}{name}"), 400, -32_020);
    check(&format!("{MODERN_FIELD}Mcp-Method: Tools/Call\r\n{name}"), 400, -32_020);
    check(&format!("{MODERN_FIELD}{method}"), 400, -32_020);
    check(&format!("{MODERN_FIELD}{method}Mcp-Name: add\r\n"), 400, -32_020);
    check(&format!("{MODERN_FIELD}{method}Mcp-Name: =?base64?ZWNobw?=\r\n"), 400, -32_020);
    let check = |fields: &str, body: &Value, status, code| {
        check_error(&post(pod, fields, body), status, code);
    };
    check(MODERN_FIELD, &request("tools/list", &json!({})), 400, -32_602);
    check(MODERN_FIELD, &request("initialize", &json!({})), 400, -32_020);
    let initialize = format!("{MODERN_FIELD}Mcp-Method: initialize\r\n");
    check(&initialize, &modern("initialize", &json!({})), 404, -32_601);
    let mut bare = call.clone();
    bare["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!(1);
    check(&format!("{MODERN_FIELD}{method}{name}"), &bare, 400, -32_602);
    let mut future = call.clone();
    future["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2099-01-01");
    let said = post(pod, &format!("MCP-Protocol-Version: 2099-01-01\r\n{method}{name}"), &future);
    check_error(&said, 400, -32_022);
    let data = json!({ "supported": ["2026-07-28"], "requested": "2099-01-01" });
    assert_eq!(said.json()["error"]["data"], data);
    check_error(&modern_call(pod, "no", &json!({})), 200, -32_602);
    let notification = json!({ "jsonrpc": "2.0", "method": "notifications/x" });
    assert_eq!(post(pod, MODERN_FIELD, &notification).status, 202);
    let response = json!({ "jsonrpc": "2.0", "id": 1, "result": {} });
    check_text(&post(pod, MODERN_FIELD, &response), 400);
}

#[test]
fn a_count_tells_its_progress() {
    let pod = pod();
    let params = json!({
        "name": "count",
        "arguments": { "to": 3, "delay_ms": 1 },
        "_meta": { "progressToken": 7 },
    });
    let fields = format!("{MODERN_FIELD}Mcp-Method: tools/call\r\nMcp-Name: count\r\n");
    let said = post(pod, &fields, &modern("tools/call", &params));
    assert_eq!(said.field("content-type"), Some("text/event-stream"));
    let events = said.events();
    let steps: Vec<_> =
        events.iter().filter_map(|event| event["params"]["progress"].as_u64()).collect();
    assert_eq!((events.len(), steps), (4, vec![1, 2, 3]));
    assert_eq!(events[0]["params"]["progressToken"], 7);
    assert_eq!(events[3]["id"], "a-1");
    assert_eq!(events[3]["result"]["content"][0]["text"], "counted to 3");
    let call =
        request("tools/call", &json!({ "name": "count", "arguments": { "to": 2, "delay_ms": 0 } }));
    let said = post(pod, &session(pod, "2025-11-25"), &call);
    assert_eq!(said.events().len(), 1, "{}", said.body);
    let said = modern_call(pod, "count", &json!({ "to": 101 }));
    assert_eq!(said.json()["result"]["isError"], true);
}

/// Two requests on one connection, the second sent before the first is answered.
#[test]
fn connections_are_kept() {
    let pod = pod();
    let mut stream = connect(pod);
    let body = request("initialize", &json!({ "protocolVersion": "2025-11-25" })).to_string();
    let one = format!(
        "POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Type: application/json; charset=utf-8\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(format!("{one}{one}").as_bytes()).unwrap();
    let mut answers = Vec::new();
    let mut piece = [0; 4_096];
    while String::from_utf8_lossy(&answers).matches("\"id\":\"a-1\"").count() < 2 {
        let length = stream.read(&mut piece).unwrap();
        assert!(0 < length, "the pod closed the connection");
        answers.extend_from_slice(&piece[..length]);
    }
}
