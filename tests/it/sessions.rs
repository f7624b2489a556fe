//! Legacy sessions before several pods and on several shards, and the spread of requests without
//! one (SG-1 to SG-3, SG-6, RT-2).

use std::collections::HashSet;
use std::io::Write;
use std::net::{Ipv4Addr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::support::client::{Answer, Client, bare, exchange, post};
use crate::support::pod::{EVENTS, Pod, Received, chunk};
use crate::support::process::Ringgate;

const INITIALIZE: &str = concat!(
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","#,
    r#""capabilities":{},"clientInfo":{"name":"a","version":"1"}}}"#
);
const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
const SHARDS: [&str; 3] = ["1", "2", "3"];

/// Connections that are spread by the kernel: so many that each shard gets some.
const CONNECTIONS: usize = 24;

/// So many that each of three pods issues one but for one run in a million.
const SESSIONS: usize = 40;

/// The id that a pod issues as its `index`-th.
fn session_id(port: u16, index: usize) -> String {
    format!("{port}-{index}")
}

fn field(id: &str) -> String {
    format!("Mcp-Session-Id: {id}\r\n")
}

fn respond(stream: &mut TcpStream, status: &str, fields: &str, body: &str) -> bool {
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\n{fields}Content-Length: {length}\r\n\r\n");
    stream.write_all(format!("{head}{body}").as_bytes()).is_ok()
}

const JSON: &str = "Content-Type: application/json\r\n";

/// A pod with sessions. It tells its port and the session in each answer, and ends a session with
/// this status.
fn session_pod(delete_status: &'static str) -> Pod {
    let issued = AtomicUsize::new(0);
    Pod::scripted(move |received: &Received, stream| {
        let port = stream.local_addr().expect("it is connected").port();
        let session = received.value("Mcp-Session-Id");
        let params = json!({ "port": port, "session": session });
        match received.method() {
            "DELETE" => return respond(stream, delete_status, "", ""),
            "GET" => {
                let note = json!({ "jsonrpc": "2.0", "method": "a", "params": params });
                let event = chunk(&format!("data: {note}\n\n"));
                let text = format!("{EVENTS}{event}0\r\n\r\n");
                return stream.write_all(text.as_bytes()).is_ok();
            }
            _ => {}
        }
        let message: Value = serde_json::from_str(&received.body).expect("a message");
        let body = json!({ "jsonrpc": "2.0", "id": message["id"], "result": params });
        let mut fields = JSON.to_owned();
        if message["method"] == "initialize" {
            let index = issued.fetch_add(1, Ordering::Relaxed);
            fields.push_str(&field(&session_id(port, index)));
        }
        respond(stream, "200 OK", &fields, &body.to_string())
    })
}

fn before(pods: &[Pod], shards: &str, more: &[&str]) -> Ringgate {
    let upstreams: Vec<String> =
        pods.iter().map(|pod| format!("http://{}", pod.address())).collect();
    let mut flags = vec!["--shards", shards];
    for upstream in &upstreams {
        flags.extend(["--upstream", upstream.as_str()]);
    }
    flags.extend(more);
    Ringgate::start(&flags)
}

/// Opens a session and returns its id and the port of the pod that issued it.
fn open(client: &mut Client, fields: &str) -> (String, u64) {
    client.send(post(INITIALIZE, fields));
    let answer = client.answer();
    assert_eq!(answer.status, 200, "{answer:?}");
    let id = answer.value("Mcp-Session-Id").expect("a session was opened");
    (id.to_owned(), port_of(&answer.json()["result"]))
}

fn port_of(told: &Value) -> u64 {
    told["port"].as_u64().expect("a pod tells its port")
}

fn assert_unknown(answer: &Answer, what: &str) {
    let told = (answer.status, answer.fault());
    assert_eq!(told, (404, Some("session_unknown")), "{what}: {answer:?}");
}

/// SG-1, SG-3, RT-2: a session opened on one connection is found from every other, whichever shards
/// they are on, and each id reaches the pod that issued it and no other.
#[test]
fn sessions_are_found_from_every_connection() {
    let check = |shards: &str, pods_count: usize| {
        let pods: Vec<Pod> = (0..pods_count).map(|_| session_pod("200 OK")).collect();
        let proxy = before(&pods, shards, &["--affinity-header", "X-User"]);
        let sessions = (0..SESSIONS).map(|user| {
            let mut client = Client::connect(proxy.address());
            open(&mut client, &format!("X-User: {user}\r\n"))
        });
        let sessions: Vec<(String, u64)> = sessions.collect();
        let ports: HashSet<u64> = sessions.iter().map(|(_, port)| *port).collect();
        assert_eq!(ports.len(), pods_count, "each pod has issued an id");
        for _ in 0..CONNECTIONS {
            let mut client = Client::connect(proxy.address());
            for (id, port) in &sessions {
                // The field that chose the pod has no say any more.
                client.send(post(LIST, &format!("X-User: 1\r\n{}", field(id))));
                let told = client.answer().json()["result"].clone();
                assert_eq!(told, json!({ "port": port, "session": id }));
            }
        }
        for pod in &pods {
            let port = pod.address().port();
            let received = SESSIONS * CONNECTIONS + SESSIONS;
            let ids = (0..received).map_while(|_| pod.try_received());
            let ids: Vec<Received> = ids.collect();
            for received in &ids {
                let id = received.value("Mcp-Session-Id").unwrap_or("none yet");
                assert!(id == "none yet" || id.starts_with(&format!("{port}-")));
            }
        }
    };
    for shards in SHARDS {
        check(shards, 2);
        check(shards, 3);
    }
}

/// SG-3: GET and DELETE with a session reach its pod too, from any connection.
#[test]
fn streams_and_ends_reach_the_pod_of_the_session() {
    for shards in SHARDS {
        let pods = [session_pod("200 OK"), session_pod("200 OK")];
        let proxy = before(&pods, shards, &["--affinity-header", "X-User"]);
        for user in 0..CONNECTIONS {
            let mut client = Client::connect(proxy.address());
            let (id, port) = open(&mut client, &format!("X-User: {user}\r\n"));
            let fields = format!("Accept: text/event-stream\r\n{}", field(&id));
            let stream = exchange(proxy.address(), bare("GET", &fields));
            let told = format!(r#""params":{{"port":{port},"session":"{id}"}}"#);
            assert!(stream.body.contains(&told), "{told} in {stream:?}");
            let pod = pods.iter().find(|pod| u64::from(pod.address().port()) == port);
            let pod = pod.expect("one of the two");
            let ended = exchange(proxy.address(), bare("DELETE", &field(&id)));
            assert_eq!(ended.status, 200);
            let methods = [pod.received(), pod.received(), pod.received()];
            let methods = methods.each_ref().map(Received::method);
            assert_eq!(methods, ["POST", "GET", "DELETE"]);
        }
    }
}

/// SG-2: an unknown session is refused with the ids of what was sent, whatever era is claimed and
/// whatever the method is, and nothing reaches a pod.
#[test]
fn unknown_sessions_are_refused() {
    let pods = [session_pod("200 OK"), session_pod("200 OK")];
    let proxy = before(&pods, "2", &[]);
    let check = |body: &str, fields: &str, expected: &Value| {
        for _ in 0..4 {
            let fields = format!("{fields}{}", field("no-such-session"));
            let answer = exchange(proxy.address(), post(body, &fields));
            assert_unknown(&answer, body);
            assert_eq!(ids_of(&answer.json()), *expected, "{body}");
        }
        pods.iter().for_each(Pod::assert_untouched);
    };
    check(LIST, "", &json!(1));
    check(&LIST.replace(":1,", r#":"a b","#), "", &json!("a b"));
    check(INITIALIZE, "", &json!(1));
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let claim = format!("MCP-Protocol-Version: {version}\r\n");
        check(LIST, &claim, &json!(1));
    }
    let modern = concat!(
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"_meta":{"#,
        r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
        r#""io.modelcontextprotocol/clientInfo":{"name":"a","version":"1"},"#,
        r#""io.modelcontextprotocol/clientCapabilities":{}}}}"#
    );
    let claim = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\n";
    check(modern, claim, &json!(7));
    for method in ["GET", "DELETE"] {
        let answer = exchange(proxy.address(), bare(method, &field("no-such-session")));
        assert_unknown(&answer, method);
    }
    pods.iter().for_each(Pod::assert_untouched);
}

/// SG-2: the same for arrays, those with `initialize` too: each request in them is answered.
#[test]
fn unknown_sessions_of_arrays_are_refused() {
    let pods = [session_pod("200 OK")];
    let proxy = before(&pods, "2", &[]);
    let check = |body: &str, expected: &Value| {
        let answer = exchange(proxy.address(), post(body, &field("no-such-session")));
        assert_unknown(&answer, body);
        assert_eq!(ids_of(&answer.json()), *expected, "{body}");
        pods.iter().for_each(Pod::assert_untouched);
    };
    let other = LIST.replace(":1,", r#":"a","#);
    check(&format!("[{LIST},{other}]"), &json!([1, "a"]));
    check(&format!("[{INITIALIZE},{other}]"), &json!([1, "a"]));
    check(&format!("[{INITIALIZE}]"), &json!([1]));
}

/// The ids of errors that say that the session is unknown.
fn ids_of(body: &Value) -> Value {
    let id = |error: &Value| {
        assert_eq!(error["error"]["code"], -32_001, "{body}");
        assert_eq!(error["error"]["message"], "Session not found", "{body}");
        error["id"].clone()
    };
    match body.as_array() {
        Some(errors) => errors.iter().map(id).collect(),
        None => id(body),
    }
}

/// SG-6: a session that was ended is unknown from then on, everywhere, whatever the pod answered;
/// other sessions are not.
#[test]
fn ended_sessions_are_unknown() {
    let check = |shards: &str, status: &'static str| {
        let pods = [session_pod(status)];
        let proxy = before(&pods, shards, &[]);
        let mut opener = Client::connect(proxy.address());
        let (other, _) = open(&mut opener, "");
        for _ in 0..8 {
            let (id, _) = open(&mut opener, "");
            let ended = exchange(proxy.address(), bare("DELETE", &field(&id)));
            assert!(status.starts_with(&ended.status.to_string()), "{ended:?}");
            opener.send(post(LIST, &field(&id)));
            assert_unknown(&opener.answer(), "on the connection that opened it");
            for method in ["GET", "DELETE"] {
                let answer = exchange(proxy.address(), bare(method, &field(&id)));
                assert_unknown(&answer, method);
            }
            let answer = exchange(proxy.address(), post(LIST, &field(&other)));
            assert_eq!(answer.json()["result"]["session"], other);
        }
    };
    for shards in SHARDS {
        for status in ["200 OK", "204 No Content", "405 Method Not Allowed", "500 Oops"] {
            check(shards, status);
        }
    }
}

/// SG-1: no session comes from an answer that is refused or is no success, nor from one to another
/// request.
#[test]
fn refused_answers_open_no_session() {
    let check = |request: &str, status: &'static str, fields: &'static str, body: &'static str| {
        let pod = Pod::scripted(move |_, stream| {
            respond(stream, status, &format!("{fields}{}", field("stray")), body)
        });
        let proxy = Ringgate::before(pod.address(), &[]);
        let answer = exchange(proxy.address(), post(request, ""));
        pod.received();
        let later = exchange(proxy.address(), post(LIST, &field("stray")));
        assert_unknown(&later, &format!("{status} {body} came as {answer:?}"));
        pod.assert_untouched();
    };
    let result = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    check(INITIALIZE, "200 OK", JSON, r#"{"jsonrpc":"2.0","id":2,"result":{}}"#);
    check(INITIALIZE, "200 OK", JSON, r#"{"id":1,"result":{}}"#);
    check(INITIALIZE, "200 OK", JSON, "{");
    check(INITIALIZE, "200 OK", "Content-Type: text/html\r\n", "<p>");
    check(INITIALIZE, "500 Oops", JSON, result);
    check(INITIALIZE, "404 Not Found", JSON, result);
    check(LIST, "200 OK", JSON, result);
}

/// SG-1, LM-1: an id as long as the bound is served; a longer one, an empty one and one with other
/// bytes than visible ASCII are refused, and an `initialize` answer that issues such one too.
#[test]
fn session_ids_are_bounded() {
    let issue = |id: String| {
        Pod::scripted(move |received, stream| {
            let message: Value = serde_json::from_str(&received.body).expect("a message");
            let body = json!({ "jsonrpc": "2.0", "id": message["id"], "result": {} });
            let fields = format!("{JSON}{}", field(&id));
            respond(stream, "200 OK", &fields, &body.to_string())
        })
    };
    let longest = "x".repeat(1024);
    let pod = issue(longest.clone());
    let proxy = Ringgate::before(pod.address(), &[]);
    assert_eq!(exchange(proxy.address(), post(INITIALIZE, "")).status, 200);
    let check = |id: &str, status: u16| {
        let answer = exchange(proxy.address(), post(LIST, &field(id)));
        assert_eq!(answer.status, status, "{id:?}");
        if status == 404 {
            assert_unknown(&answer, id);
            assert_eq!(ids_of(&answer.json()), 1);
        }
    };
    check(&longest, 200);
    let bad = [
        format!("{longest}x"),
        longest[1..].to_owned(),
        String::new(),
        "a b".to_owned(),
        "a\tb".to_owned(),
        "\u{e9}".to_owned(),
    ];
    for id in &bad {
        check(id, 404);
    }
    for id in [&bad[0], &bad[3], &bad[5]] {
        let pod = issue(id.clone());
        let proxy = Ringgate::before(pod.address(), &[]);
        let answer = exchange(proxy.address(), post(INITIALIZE, ""));
        let told = (answer.status, answer.fault());
        assert_eq!(told, (502, Some("upstream_malformed")), "{id:?}");
        assert_eq!(answer.value("Mcp-Session-Id"), None);
    }
}

/// RT-2: a request without a session goes by the key of its client: the same key to the same pod,
/// whichever shard takes it, and the keys to all pods.
#[test]
fn requests_without_a_session_are_spread() {
    let pods: [Pod; 3] = std::array::from_fn(|_| Pod::proper());
    let port = |answer: &Answer| port_of(&answer.json()["result"]);
    let check = |proxy: &Ringgate, ask: &dyn Fn(u8) -> u64| {
        let mut ports = HashSet::new();
        for key in 1..=40 {
            let first = ask(key);
            ports.insert(first);
            for _ in 0..3 {
                assert_eq!(ask(key), first, "key {key} of {}", proxy.address());
            }
        }
        assert_eq!(ports.len(), 3, "all pods have a share");
    };
    for shards in SHARDS {
        let proxy = before(&pods, shards, &["--affinity-header", "X-User"]);
        let by_header = |key: u8| {
            let request = post(LIST, &format!("x-user: user-{key}\r\n"));
            port(&exchange(proxy.address(), request))
        };
        check(&proxy, &by_header);
        let proxy = before(&pods, shards, &[]);
        let by_address = |key: u8| {
            let source = Ipv4Addr::new(127, 0, 1, key);
            let mut client = Client::connect_from(source, proxy.address());
            // No field has a say.
            client.send(post(LIST, "X-User: a\r\nX-Forwarded-For: 6.6.6.6\r\n"));
            port(&client.answer())
        };
        check(&proxy, &by_address);
    }
}
