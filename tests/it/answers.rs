//! JSON answers on the wire: what is checked, what passes, and what a refused one becomes
//! (RV-1 to RV-4, RV-6 to RV-10, HT-6).

use std::io::Write as _;

use crate::support::client::{Answer, Client, exchange, post};
use crate::support::played::PlayedPod;
use crate::support::pod::{Pod, json};
use crate::support::process::Ringgate;

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
const PONG: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
const HEARD: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// What a client gets for `request` when its pod answers with these bytes.
fn through(answer: impl Into<Vec<u8>>, request: &str) -> Answer {
    let pod = Pod::answering(answer);
    let proxy = Ringgate::before(pod.address(), &[]);
    exchange(proxy.address(), request)
}

/// An answer with a status line, field lines (each ending in CRLF) and a body.
fn answer(status: &str, fields: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let head = format!("HTTP/1.1 {status}\r\n{fields}Content-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

const JSON: &str = "Content-Type: application/json\r\n";

fn assert_refused(answered: &Answer, reason: &str, about: &str) {
    assert_eq!((answered.status, answered.fault()), (502, Some(reason)), "{about}: {answered:?}");
    let body = answered.json();
    assert_eq!(body["id"], 1, "{about}");
    assert_eq!(body["error"]["data"]["reason"], reason, "{about}");
}

/// RV-1, RV-2: a body that is not one JSON text of JSON-RPC answers never reaches the client.
#[test]
fn invalid_bodies_become_faults() {
    let check = |body: &[u8], reason: &str| {
        let answered = through(answer("200 OK", JSON, body), &post(PING, ""));
        assert_refused(&answered, reason, &String::from_utf8_lossy(body));
    };
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"a":{}{}}}}}"#,
        "[".repeat(127),
        "]".repeat(127)
    );
    for body in [
        &b""[..],
        b"pong",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}} x",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}{}",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":\"\xff\"}}",
        b"{'jsonrpc':'2.0','id':1,'result':{}}",
        b"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":\"\n\"}}",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":\"\\x\"}}",
        deep.as_bytes(),
    ] {
        check(body, "upstream_not_json");
    }
    for body in [
        "null",
        "[]",
        r#""pong""#,
        r#"{"id":1,"result":{}}"#,
        r#"{"jsonrpc":2.0,"id":1,"result":{}}"#,
        r#"{"jsonrpc":"1.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1}"#,
        r#"{"jsonrpc":"2.0","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":true,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":"no"}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":"1","message":""}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":1}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":null}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":[]}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":""}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":1}}"#,
        r#"{"jsonrpc":"2.0","id":null,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{},"ID":2}"#,
        r#"{"jsonrpc":"2.0","id":1,"id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"\u0069d":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"code":2,"message":""}}"#,
    ] {
        check(body.as_bytes(), "upstream_not_json_rpc");
    }
}

/// RV-1, RV-3: valid answers arrive byte for byte, white space and key order and all.
#[test]
fn valid_bodies_arrive_byte_for_byte() {
    let check = |body: &str| {
        let answered = through(answer("200 OK", JSON, body), &post(PING, ""));
        assert_eq!((answered.status, answered.body.as_str()), (200, body));
        assert_eq!(answered.fault(), None, "{body}");
    };
    check(PONG);
    check(" \r\n\t{ \"result\" : {\"id\":2,\"id\":3} , \"id\" : 1 ,\"jsonrpc\":\"2.0\"}\n\n");
    check(r#"{"jsonrpc":"2.0","\u0069d":1,"result":{"text":"\u00e9é"}}"#);
    check(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no","data":[1]}}"#);
}

/// RV-3: an answer to another request is none.
#[test]
fn wrong_ids_become_faults() {
    let check = |asked: &str, answered_id: &str, reason: Option<&str>| {
        let request = format!(r#"{{"jsonrpc":"2.0","id":{asked},"method":"ping"}}"#);
        let body = format!(r#"{{"jsonrpc":"2.0","id":{answered_id},"result":{{}}}}"#);
        let answered = through(json(&body), &post(&request, ""));
        assert_eq!(answered.fault(), reason, "{answered_id} answers {asked}");
        if reason.is_some() {
            let head = format!(r#"{{"jsonrpc":"2.0","id":{asked},"error":"#);
            assert!(answered.body.starts_with(&head), "{}", answered.body);
        }
    };
    let wrong = Some("upstream_wrong_id");
    check("1", "2", wrong);
    check("1", r#""1""#, wrong);
    check(r#""1""#, "1", wrong);
    check("9007199254740993", "9007199254740992", wrong);
    check("9007199254740993", "9007199254740993", None);
    check("1", "1.0", wrong);
    check("1.0", "1.0", None);
    check("1e0", "1", wrong);
    check("0", "-0", None);
    check("0", "0", None);
    check(r#""a\"b""#, r#""\u0061\"b""#, None);
    check(r#""a""#, r#""A""#, wrong);
    let array = format!("[{PONG}]");
    let answered = through(json(&array), &post(PING, ""));
    assert_refused(&answered, "upstream_not_json_rpc", "an array nobody asked");
    for id in ["", r#""id":null,"#] {
        let error = format!(r#"{{"jsonrpc":"2.0",{id}"error":{{"code":1,"message":"no"}}}}"#);
        let answered = through(json(&error), &post(PING, ""));
        assert_refused(&answered, "upstream_wrong_id", "an error that answers nobody");
    }
}

/// RV-4: the media type decides, with parameters and in any case; the client gets it in lower
/// case.
#[test]
fn media_types() {
    let bad = "{}";
    let check = |media_type: &str, expected: &str| {
        let fields = format!("Content-Type: {media_type}\r\n");
        let answered = through(answer("200 OK", &fields, PONG), &post(PING, ""));
        assert_eq!(answered.value("Content-Type"), Some(expected));
        assert_eq!(answered.body, PONG);
        let answered = through(answer("200 OK", &fields, bad), &post(PING, ""));
        assert_refused(&answered, "upstream_not_json_rpc", media_type);
    };
    check("application/json", "application/json");
    check("application/json-rpc", "application/json-rpc");
    check("Application/JSON; charset=UTF-8", "application/json; charset=UTF-8");
    check("application/json ;broken", "application/json ;broken");
    let check = |status: &str, fields: &str| {
        let answered = through(answer(status, fields, PONG), &post(PING, ""));
        assert_refused(&answered, "upstream_media_type", fields);
    };
    check("200 OK", "Content-Type: application/jsonp\r\n");
    check("200 OK", "Content-Type: application/problem+json\r\n");
    check("200 OK", "Content-Type: text/plain\r\n");
    check("200 OK", "Content-Type: text/html; a=application/json\r\n");
    check("200 OK", "");
    check("202 Accepted", "Content-Type: text/plain\r\n");
}

/// RV-4: a request with an id gets JSON or events, whatever the status of success says; a
/// notification gets what there is.
#[test]
fn successes_without_an_answer() {
    let empty = |status: &str| format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
    let none = "HTTP/1.1 204 No Content\r\n\r\n";
    for answer in [empty("202 Accepted"), empty("200 OK"), none.to_owned()] {
        let answered = through(answer.clone(), &post(PING, ""));
        assert_refused(&answered, "upstream_media_type", &answer);
        let answered = through(answer.clone(), &post(HEARD, ""));
        assert_eq!(answered.fault(), None, "{answer:?}");
        assert!(answered.status < 300, "{answer:?}");
    }
    for status in ["201 Created", "202 Accepted", "299 Odd"] {
        let answered = through(answer(status, JSON, "{}"), &post(PING, ""));
        assert_refused(&answered, "upstream_not_json_rpc", status);
        let answered = through(answer(status, JSON, PONG), &post(PING, ""));
        assert_eq!(answered.body, PONG, "{status}");
        assert!(status.starts_with(&answered.status.to_string()));
    }
    let text = answer("200 OK", "Content-Type: text/plain\r\n", "noted");
    assert_eq!(through(text, &post(HEARD, "")).body, "noted");
    let accepted = answer("202 Accepted", JSON, "");
    assert_eq!(through(accepted, &post(HEARD, "")).status, 202);
    let bad = through(answer("200 OK", JSON, "nonsense"), &post(HEARD, ""));
    assert_eq!(
        (bad.status, bad.fault()),
        (502, Some("upstream_not_json")),
        "JSON is checked whoever asked"
    );
    let id_less = bad.value("Content-Type");
    assert_eq!(id_less, Some("text/plain; charset=utf-8"), "no id is known");
}

/// RV-4, FA-2: errors of a pod pass unchanged but for what only the proxy may say.
#[test]
fn errors_of_pods_pass_unchanged() {
    let check = |status: u16, media_type: &str, body: &str| {
        let fields = format!(
            "Content-Type: {media_type}\r\nWWW-Authenticate: Bearer\r\nX-Pod: a  b\r\n\
             X-Ringgate-Fault: forged\r\n"
        );
        let answered =
            through(answer(&format!("{status} Own Phrase"), &fields, body), &post(PING, ""));
        assert_eq!((answered.status, answered.body.as_str()), (status, body));
        assert!(answered.head.contains(" Own Phrase\r\n"));
        assert_eq!(answered.value("Content-Type"), Some(media_type));
        assert_eq!(answered.value("WWW-Authenticate"), Some("Bearer"));
        assert_eq!(answered.value("X-Pod"), Some("a  b"));
        assert_eq!(answered.fault(), None, "{status}");
    };
    check(400, "application/json", "nonsense");
    check(401, "Text/Plain", "who are you?");
    check(404, "application/json", r#"{"error":"no session"}"#);
    check(429, "application/json", r#"{"jsonrpc":"2.0","id":null,"error":{}}"#);
    check(500, "text/html", "<p>oops</p>");
    check(503, "application/json", "");
}

/// RV-4, FA-2: traffic that is not MCP's passes unchecked, and still can't forge a fault.
#[test]
fn other_traffic_passes() {
    let forged =
        answer("200 OK", "Content-Type: application/json\r\nX-Ringgate-Fault: x\r\n", "{}");
    let get = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let form = "POST /token HTTP/1.1\r\nHost: localhost\r\n\
                Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 3\r\n\r\na=b";
    for request in [get, form] {
        let answered = through(forged.clone(), request);
        assert_eq!((answered.status, answered.body.as_str()), (200, "{}"));
        assert_eq!(answered.fault(), None, "{request}");
    }
    let odd = answer(
        "200 OK",
        "Content-Type: Application/JSON\r\nContent-Encoding: gzip\r\n",
        b"\x1f\x8b",
    );
    let answered = through(odd, get);
    assert_eq!(answered.value("Content-Type"), Some("Application/JSON"));
    assert_eq!(answered.value("Content-Encoding"), Some("gzip"));
}

/// RV-4: the two-endpoint transport accepts a POST and answers it on another connection.
#[test]
fn the_two_endpoint_transport_passes() {
    let accepted = "HTTP/1.1 202 Accepted\r\nContent-Length: 8\r\n\r\nAccepted";
    let check = |target: &str, status: u16| {
        let request = post(PING, "").replacen("/mcp", target, 1);
        assert_eq!(through(accepted, &request).status, status, "{target}");
    };
    check("/messages?sessionId=0a1b", 202);
    check("/messages/?session_id=0a1b", 202);
    check("/messages?a=b&sessionId=0a1b", 202);
    check("/messages?a=b&session_id=0a1b", 202);
    check("/messages?sessionIdea=1", 502);
    check("/sessionId=0a1b", 502);
    let request = post(PING, "").replacen("/mcp", "/messages?sessionId=0", 1);
    let answered = through(answer("200 OK", JSON, "{}"), &request);
    assert_refused(&answered, "upstream_not_json_rpc", "its JSON is checked as any");
}

/// RV-6: pods are asked for identity, and an answer encoded all the same is refused.
#[test]
fn encoded_answers_are_refused() {
    for coding in ["gzip", "br", "GZIP, identity", "made-up"] {
        let pod = Pod::answering(answer(
            "200 OK",
            &format!("{JSON}Content-Encoding: {coding}\r\n"),
            PONG,
        ));
        let proxy = Ringgate::before(pod.address(), &[]);
        let answered = exchange(proxy.address(), post(PING, "Accept-Encoding: gzip, br\r\n"));
        assert_refused(&answered, "upstream_encoded", coding);
        let received = pod.received();
        assert_eq!(received.value("Accept-Encoding"), Some("identity"));
        assert_eq!(received.head.matches("ccept-").count(), 1);
    }
    let fields = format!("{JSON}Content-Encoding: Identity\r\n");
    let answered = through(answer("200 OK", &fields, PONG), &post(PING, ""));
    assert_eq!(answered.body, PONG);
}

const INITIALIZE: &str = concat!(
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","#,
    r#""capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"#
);

/// RV-9: nothing of the pod's head is on a fault, and an answer that was refused opens no session.
#[test]
fn a_refused_answer_leaves_no_trace() {
    let fields = format!(
        "{JSON}Mcp-Session-Id: from-the-pod\r\nSet-Cookie: a=b\r\nETag: \"e\"\r\n\
         Cache-Control: max-age=60\r\nX-Other: x\r\nAccess-Control-Allow-Origin: *\r\n"
    );
    let check = |body: &str, session: (u16, Option<&str>)| {
        let initialized = answer("200 OK", &fields, body);
        let pod = Pod::scripted(move |received, stream| {
            let is_first = received.body == INITIALIZE;
            let bytes = if is_first { initialized.clone() } else { json(PONG).into() };
            stream.write_all(&bytes).is_ok()
        });
        let proxy = Ringgate::before(pod.address(), &[]);
        let answered = exchange(proxy.address(), post(INITIALIZE, ""));
        let later = post(PING, "Mcp-Session-Id: from-the-pod\r\n");
        let later = exchange(proxy.address(), later);
        assert_eq!((later.status, later.fault()), session, "{body}");
        answered
    };
    let result = PONG.replace("{}}", r#"{"protocolVersion":"2025-11-25"}}"#);
    let answered = check(&result, (200, None));
    assert_eq!(answered.value("Mcp-Session-Id"), Some("from-the-pod"));
    let bad = result.replace("2.0", "1.0");
    let answered = check(&bad, (404, Some("session_unknown")));
    assert_refused(&answered, "upstream_not_json_rpc", &bad);
    let names: Vec<&str> = answered.head.lines().skip(1).collect();
    let names = names.iter().filter_map(|line| Some(line.split_once(':')?.0));
    let own = ["Content-Type", "X-Ringgate-Fault", "Date", "Content-Length"];
    assert_eq!(names.collect::<Vec<_>>(), own);
}

/// RV-10: what follows a refused answer on its connection is never read as another.
#[test]
fn the_connection_of_a_refused_answer_is_closed() {
    let check = |answer: Vec<u8>, count: usize| {
        let pod = Pod::answering(answer.clone());
        let proxy = Ringgate::before(pod.address(), &[]);
        let mut client = Client::connect(proxy.address());
        for _ in 0..4 {
            client.send(post(PING, ""));
            client.answer();
        }
        let about = String::from_utf8_lossy(&answer);
        assert_eq!(pod.connections_count(), count, "{about}");
    };
    check(answer("200 OK", JSON, PONG), 1);
    check(answer("200 OK", JSON, "{}"), 4);
    check(answer("200 OK", "Content-Type: text/plain\r\n", "{}"), 4);
    check(answer("200 OK", &format!("{JSON}Content-Encoding: br\r\n"), PONG), 4);
    check(answer("500 Oops", JSON, "{}"), 1);
    let pod = PlayedPod::open();
    let proxy = Ringgate::before(pod.address(), &[]);
    let mut client = Client::connect(proxy.address());
    client.send(post(PING, ""));
    let (mut line, _) = pod.take();
    line.send(json("{}"));
    assert_refused(&client.answer(), "upstream_not_json_rpc", "{}");
    line.wait_for_end();
}

/// HT-6: a redirect passes, unless it would make the client send credentials to another authority.
#[test]
fn redirects_pass_unless_they_leak_credentials() {
    let check = |location: &str, credentials: &str, is_passed: bool| {
        let moved = answer("307 Temporary Redirect", &format!("Location: {location}\r\n"), "moved");
        let answered = through(moved, &post(PING, credentials));
        if is_passed {
            assert_eq!(answered.status, 307, "{location} {credentials}");
            assert_eq!(answered.value("Location"), Some(location));
            assert_eq!(answered.body, "moved");
        } else {
            assert_refused(&answered, "upstream_redirect", location);
            assert_eq!(answered.value("Location"), None);
        }
    };
    let token = "Authorization: Bearer x\r\n";
    for location in [
        "/other",
        "other?a=http://evil.example",
        "?a=b",
        "http://localhost/other",
        "http://LOCALHOST/",
        "//localhost/x?a:b",
        "/a:b//evil.example",
    ] {
        check(location, token, true);
    }
    for location in [
        "http://evil.example/",
        "HTTPS://evil.example",
        "//evil.example/",
        "//evil.example:8080/",
        "//evil.example/?a:b",
        "http://localhost@evil.example/",
        "http://localhost:1/",
        "http://evil.example\\@localhost/",
        "http:\\\\evil.example",
        "\\\\evil.example",
        "/\\evil.example",
        "https:evil.example",
        "http:///evil.example",
        "/\t/evil.example",
    ] {
        check(location, token, false);
        check(location, "", true);
    }
    check("//evil.example", "Cookie: a=b\r\n", false);
    let two = "/here\r\nLocation: //evil.example";
    let moved = answer("302 Found", &format!("Location: {two}\r\n"), "");
    let answered = through(moved, &post(PING, token));
    assert_refused(&answered, "upstream_redirect", two);
}
