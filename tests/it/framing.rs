//! HTTP/1.1 framing on the wire, both ways: what can be read in two ways is refused (HT-1 to HT-3).

use std::io::Write;
use std::net::Shutdown;

use crate::support::SOON;
use crate::support::client::{Client, exchange, post};
use crate::support::pod::{ClosedPort, EVENTS, Pod, chunk, json, reset};
use crate::support::process::Ringgate;

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
const PONG: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

/// HT-1: an ambiguous or malformed request is refused with its own status and reason, the
/// connection ends, and nothing reaches the pod.
#[test]
fn malformed_requests_are_refused() {
    let pod = Pod::answering(json(PONG));
    let proxy = Ringgate::before(pod.address(), &[]);
    let check = |request: &str, status: u16, reason: &str| {
        let mut client = Client::connect(proxy.address());
        client.send(request);
        let answer = client.answer();
        assert_eq!((answer.status, answer.fault()), (status, Some(reason)), "{request:?}");
        assert!(client.is_closed(), "{request:?}");
    };
    let with = |field: &str| format!("POST / HTTP/1.1\r\nHost: localhost\r\n{field}\r\n");
    check(&with("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n"), 400, "body_framing");
    check(&with("Content-Length: 4\r\nContent-Length: 4\r\n"), 400, "body_framing");
    check(&with("Content-Length: 4\r\nContent-Length: 5\r\n"), 400, "body_framing");
    for length in ["+4", "-4", "0x4", "4, 4", "", "4 4", "99999999999999999999"] {
        check(&with(&format!("Content-Length: {length}\r\n")), 400, "body_framing");
    }
    for coding in ["gzip, chunked", "chunked, chunked", "xchunked", "identity", "chunked;a"] {
        check(&with(&format!("Transfer-Encoding: {coding}\r\n")), 400, "body_framing");
    }
    let two = "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n";
    check(&with(two), 400, "body_framing");
    check(&with("A: b\r\n c: d\r\n"), 400, "head_malformed");
    check(&with("A : b\r\n"), 400, "head_malformed");
    check(&with("A: b\rc\r\n"), 400, "head_malformed");
    check(&with("A: b\0c\r\n"), 400, "head_malformed");
    check(&with("A: b\nC: d\r\n"), 400, "head_malformed");
    check(&with("Host: localhost\r\n"), 400, "head_malformed");
    check("GET / HTTP/1.1\r\n\r\n", 400, "head_malformed");
    check("GET / HTTP/1.1\nHost: localhost\n\n", 400, "head_malformed");
    check("\r\n\r\nGET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, "head_malformed");
    check("GET /a#b HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, "head_malformed");
    check("GET  / HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, "head_malformed");
    check("GET http://other/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, "head_malformed");
    check("CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n", 400, "head_malformed");
    check("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400, "head_malformed");
    check("GET / HTTP/2.0\r\nHost: localhost\r\n\r\n", 505, "http_version_unsupported");
    check("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, "http_version_unsupported");
    check(&with("Connection: authorization\r\n"), 400, "connection_nominates");
    check(&with("Connection: close, Mcp-Session-Id\r\n"), 400, "connection_nominates");
    check(&with("Origin: a\r\nOrigin: a\r\n"), 400, "field_duplicated");
    check(&with("Authorization: a\r\nAuthorization: b\r\n"), 400, "field_duplicated");
    pod.assert_untouched();
}

/// RC-4: a field of MCP that occurs twice is refused with the id of the request, and with none
/// where there is no body.
#[test]
fn doubled_mcp_fields_are_refused() {
    let pod = Pod::answering(json(PONG));
    let proxy = Ringgate::before(pod.address(), &[]);
    for name in
        ["Mcp-Method", "Mcp-Name", "MCP-Protocol-Version", "Mcp-Session-Id", "Mcp-Param-Region"]
    {
        let fields = format!("{name}: a\r\n{}: a\r\n", name.to_lowercase());
        let answer = exchange(proxy.address(), post(PING, &fields));
        assert_eq!((answer.status, answer.fault()), (400, Some("field_duplicated")), "{name}");
        let error = answer.json();
        assert_eq!((&error["id"], &error["error"]["code"]), (&1.into(), &(-32_020).into()));
    }
    let fields = "Mcp-Session-Id: a\r\nMcp-Session-Id: a\r\n";
    let get = format!("GET / HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n");
    let answer = exchange(proxy.address(), get);
    assert_eq!((answer.status, answer.fault()), (400, Some("field_duplicated")));
    assert_eq!(
        exchange(proxy.address(), post(PING, "Mcp-Param-A: a\r\nMcp-Param-B: a\r\n")).status,
        200
    );
    pod.received();
    pod.assert_untouched();
}

/// HT-1: every way to break a chunk of a request is refused before the pod sees the request.
#[test]
fn malformed_chunks_are_refused() {
    let pod = Pod::answering(json(PONG));
    let proxy = Ringgate::before(pod.address(), &[]);
    let check = |body: &str| {
        let head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                    Transfer-Encoding: chunked\r\n\r\n";
        let answer = exchange(proxy.address(), format!("{head}{body}"));
        assert_eq!((answer.status, answer.fault()), (400, Some("body_framing")), "{body:?}");
    };
    for body in [
        "\r\n\r\nGET / HTTP/1.1\r\n\r\n",
        ";a\r\n",
        "+4\r\nabcd\r\n0\r\n\r\n",
        "0x4\r\nabcd\r\n0\r\n\r\n",
        "4 \r\nabcd\r\n0\r\n\r\n",
        "4\nabcd\r\n0\r\n\r\n",
        "4\r\nabcdX\r\n0\r\n\r\n",
        "4\r\nabcd\n0\r\n\r\n",
        "4;a\nb\r\nabcd\r\n0\r\n\r\n",
        "fffffffffffffffff\r\n",
        "0\r\nbad trailer\r\n\r\n",
        "0\r\na: b\nc: d\r\n\r\n",
    ] {
        check(body);
    }
    pod.assert_untouched();
}

/// HT-1: an answer that can be read in two ways is never passed on.
#[test]
fn malformed_answers_become_faults() {
    let check = |answer: &str, reason: &str| {
        let pod = Pod::answering(answer);
        let proxy = Ringgate::before(pod.address(), &[]);
        let answered = exchange(proxy.address(), post(PING, ""));
        assert_eq!((answered.status, answered.fault()), (502, Some(reason)), "{answer:?}");
        assert_eq!(answered.json()["id"], 1, "{answer:?}");
    };
    let json_type = "Content-Type: application/json";
    for fields in [
        "Content-Length: 36\r\nTransfer-Encoding: chunked",
        "Content-Length: 36\r\nContent-Length: 37",
        "Content-Length: +36",
        "Transfer-Encoding: gzip",
        "A : b\r\nContent-Length: 36",
        "A: b\nContent-Length: 36",
        "Content-Length: 36\r\nContent-Type: text/event-stream",
    ] {
        let head = format!("HTTP/1.1 200 OK\r\n{json_type}\r\n{fields}\r\n\r\n{PONG}");
        check(&head, "upstream_malformed");
    }
    check("HTTP/2.0 200 OK\r\n\r\n", "upstream_malformed");
    check("HTTP/1.1 101 Switching Protocols\r\n\r\n", "upstream_malformed");
    check(&format!("{}{PONG}", json(PONG)), "upstream_malformed");
    let chunked = format!("HTTP/1.1 200 OK\r\n{json_type}\r\nTransfer-Encoding: chunked\r\n\r\n");
    check(&format!("{chunked}\r\n{PONG}\r\n0\r\n\r\n"), "upstream_malformed");
    check(&format!("{chunked}{}0\r\nbad\r\n\r\n", chunk(PONG)), "upstream_malformed");
    let interim = "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(20);
    check(&interim, "upstream_malformed");
}

/// HT-3: chunked answers with trailers, close-delimited ones and interim ones come through.
#[test]
fn framings_of_answers_come_through() {
    let check = |answer: String, is_kept: bool| {
        let pod =
            Pod::scripted(move |_, stream| stream.write_all(answer.as_bytes()).is_ok() && is_kept);
        let proxy = Ringgate::before(pod.address(), &[]);
        let mut client = Client::connect(proxy.address());
        for _ in 0..2 {
            client.send(post(PING, ""));
            let answered = client.answer();
            assert_eq!((answered.status, answered.body.as_str()), (200, PONG));
        }
    };
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
    let (start, end) = PONG.split_at(7);
    check(
        format!(
            "{head}Transfer-Encoding: chunked\r\n\r\n{}{}0\r\nTrailer: a\r\n\r\n",
            chunk(start),
            chunk(end)
        ),
        true,
    );
    check(format!("{head}\r\n{PONG}"), false);
    check(format!("HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n{PONG}"), false);
    check(json(PONG).replace("200 OK", "200"), true);
    check(json(PONG).replace("200 OK", "200 "), true);
    check(format!("HTTP/1.1 100 Continue\r\n\r\n{}", json(PONG)), true);
    check(format!("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n{}", json(PONG)), true);
}

/// HT-3: requests sent without waiting are answered in order, on one connection.
#[test]
fn pipelined_requests_are_answered_in_order() {
    let pod = Pod::proper();
    let proxy = Ringgate::before(pod.address(), &[]);
    let mut client = Client::connect(proxy.address());
    let requests: String = (1..=20)
        .map(|id| post(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#), ""))
        .collect();
    client.send(requests);
    for id in 1..=20 {
        assert_eq!(client.answer().json()["id"], id);
    }
}

/// HT-3: a client that waits for 100 (Continue) gets it from the proxy, and the pod never sees the
/// expectation.
#[test]
fn a_waiting_client_is_told_to_continue() {
    let pod = Pod::answering(json(PONG));
    let proxy = Ringgate::before(pod.address(), &[]);
    let mut client = Client::connect(proxy.address());
    let request = post(PING, "Expect: 100-continue\r\n");
    let (head, body) = request.split_at(request.len() - PING.len());
    client.send(head);
    assert_eq!(client.head().status, 100);
    client.send(body);
    assert_eq!(client.answer().body, PONG);
    assert_eq!(pod.received().value("Expect"), None);
}

/// HT-3: HEAD has no body but keeps its length; HTTP/1.0 is answered without chunks and closed.
#[test]
fn head_and_http_1_0() {
    let pod = Pod::answering("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
    let proxy = Ringgate::before(pod.address(), &[]);
    let mut client = Client::connect(proxy.address());
    for _ in 0..2 {
        client.send("HEAD /x HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let head = client.head();
        assert_eq!((head.status, head.value("Content-Length")), (200, Some("5")));
    }
    let stream = format!("{EVENTS}{}0\r\n\r\n", chunk("data: x\n\n"));
    let pod = Pod::answering(stream);
    let proxy = Ringgate::before(pod.address(), &[]);
    let mut client = Client::connect(proxy.address());
    client.send("GET /x HTTP/1.0\r\n\r\n");
    let answer = client.answer();
    assert_eq!(answer.value("Transfer-Encoding"), None);
    assert_eq!((answer.value("Connection"), answer.body.as_str()), (Some("close"), "data: x\n\n"));
}

/// HT-3: a plain client that closes its sending side after its last request still gets the answer.
#[test]
fn a_half_closed_client_gets_its_answer() {
    let pod = Pod::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let proxy = Ringgate::before(pod.address(), &[]);
    let mut client = Client::connect(proxy.address());
    client.send("GET /x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    client.finish();
    assert_eq!(client.answer().body, "ok");
}

/// HT-3: chunked requests reach the pod whole: framed by length when they were read for MCP, in
/// chunks when they stream.
#[test]
fn chunked_requests_reach_the_pod() {
    let pod = Pod::proper();
    let proxy = Ringgate::before(pod.address(), &[]);
    let send = |content_type: &str, body: &str| {
        let (start, end) = body.split_at(body.len() / 2);
        let request = format!(
            "POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Type: {content_type}\r\n\
             Transfer-Encoding: chunked\r\n\r\n{}{}0\r\nA: trailer\r\n\r\n",
            chunk(start),
            chunk(end)
        );
        assert_eq!(exchange(proxy.address(), request).status, 200);
        pod.received()
    };
    let received = send("application/json", PING);
    assert_eq!((received.body.as_str(), received.value("Transfer-Encoding")), (PING, None));
    let received = send("application/octet-stream", "some plain bytes");
    assert_eq!(received.body, "some plain bytes");
    assert_eq!(received.value("Transfer-Encoding"), Some("chunked"));
}

/// RC-5, HT-2: what travels on and what does not.
#[test]
fn fields_travel_on_or_are_replaced() {
    let pod = Pod::answering(json(PONG));
    let proxy = Ringgate::before(pod.address(), &[]);
    let fields = "X-Custom: a  b\r\nMCP-Protocol-Version: 2025-06-18\r\nAccept-Encoding: gzip\r\n\
                  X-Forwarded-For: 6.6.6.6\r\nForwarded: for=6.6.6.6\r\nX-Hop: 1\r\n\
                  Connection: keep-alive, X-Hop\r\nKeep-Alive: timeout=5\r\nTE: trailers\r\n\
                  Proxy-Connection: x\r\nUpgrade: websocket\r\nX-Ringgate-Fault: forged\r\n";
    assert_eq!(exchange(proxy.address(), post(PING, fields)).status, 200);
    let received = pod.received();
    assert_eq!(received.body, PING);
    let expect = |name: &str, value: Option<&str>| {
        assert_eq!(received.value(name), value, "{name} in {}", received.head);
    };
    expect("Host", Some("localhost"));
    expect("X-Custom", Some("a  b"));
    expect("MCP-Protocol-Version", Some("2025-06-18"));
    expect("Accept-Encoding", Some("identity"));
    expect("X-Forwarded-For", Some("127.0.0.1"));
    expect("X-Forwarded-Host", Some("localhost"));
    expect("X-Forwarded-Proto", Some("http"));
    expect("Via", Some("1.1 ringgate"));
    for name in ["Forwarded", "X-Hop", "Connection", "Keep-Alive", "TE", "Proxy-Connection"] {
        expect(name, None);
    }
    expect("Upgrade", None);
    expect("X-Ringgate-Fault", None);
    assert_eq!(received.head.matches("6.6.6.6").count(), 0);
}

/// RC-7, RT-5: a pooled connection that the pod has closed is not used, and no request is lost. The
/// next request is sent once the pod has closed: one that crosses the close can't be saved.
#[test]
fn a_closed_pooled_connection_is_not_used() {
    let (closing, closed) = std::sync::mpsc::channel();
    let pod = Pod::scripted(move |received, stream| {
        let body = PONG.replace('1', &received.id().to_string());
        stream.write_all(json(&body).as_bytes()).expect("the proxy takes the answer");
        stream.shutdown(Shutdown::Both).expect("the connection is open");
        closing.send(()).is_err()
    });
    let proxy = Ringgate::before(pod.address(), &[]);
    let mut client = Client::connect(proxy.address());
    for _ in 0..50 {
        client.send(post(PING, ""));
        assert_eq!(client.answer().status, 200);
        closed.recv_timeout(SOON).expect("the pod closes");
    }
}

/// RC-7: a request that may have reached the pod is not sent again.
#[test]
fn a_request_is_sent_once() {
    let pod = Pod::scripted(|_, stream| {
        reset(stream);
        false
    });
    let proxy = Ringgate::before(pod.address(), &[]);
    let answer = exchange(proxy.address(), post(PING, ""));
    assert_eq!((answer.status, answer.fault()), (502, Some("upstream_closed")));
    pod.received();
    pod.assert_untouched();
}

/// HT-3: a request behind a streamed body is answered in its turn, although the proxy read on while
/// it connected: nothing that was received is lost or put in another order.
#[test]
fn requests_behind_a_streamed_body_keep_their_order() {
    let pod = Pod::scripted(|received, stream| {
        let body = received.head.split(' ').nth(1).expect("a target").to_owned();
        // Each request has to connect, and while it does the proxy reads on.
        let fields = format!("Connection: close\r\nContent-Length: {}\r\n", body.len());
        let answer = format!("HTTP/1.1 200 OK\r\n{fields}\r\n{body}");
        stream.write_all(answer.as_bytes()).is_ok_and(|()| false)
    });
    // With pods that are down before it, so that connecting takes a while.
    let down: [ClosedPort; 3] = std::array::from_fn(|_| ClosedPort::open());
    let urls = down.iter().map(ClosedPort::address).chain([pod.address()]);
    let urls: Vec<String> = urls.map(|address| format!("http://{address}")).collect();
    let upstreams = urls.iter().flat_map(|url| ["--upstream", url]);
    let arguments = ["--shards", "1", "--affinity-header", "X-Key"].into_iter().chain(upstreams);
    let proxy = Ringgate::start(&arguments.collect::<Vec<_>>());
    let plain = |target: &str, key: usize, padding: usize| {
        format!(
            "POST {target} HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n\
             X-Key: {key}\r\nTransfer-Encoding: chunked\r\n\r\n{}0\r\n\r\n",
            chunk(&"x".repeat(padding))
        )
    };
    for key in 0..20 {
        let mut client = Client::connect(proxy.address());
        client.send(
            plain("/first", key, 1) + &plain("/second", key, 9_000) + &plain("/third", key, 1),
        );
        for target in ["/first", "/second", "/third"] {
            assert_eq!(client.answer().body, target, "key {key}");
        }
    }
}

/// HT-1, HT-3: what is sent behind a request that the proxy itself answers is the next request,
/// from its first byte on, wherever a read ends.
#[test]
fn requests_behind_refused_ones_are_whole() {
    let pod = Pod::answering(json(PONG));
    let proxy = Ringgate::before(pod.address(), &[]);
    let gated = "GET /mcp HTTP/1.1\r\nHost: localhost\r\nMCP-Protocol-Version: 2026-07-28\r\n\r\n";
    let foreign = "GET /mcp HTTP/1.1\r\nHost: evil.example\r\n\r\n";
    let preflight = "OPTIONS / HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\n\
                     Access-Control-Request-Method: POST\r\n\r\n";
    let unknown = "GET /mcp HTTP/1.1\r\nHost: localhost\r\nMcp-Session-Id: none\r\n\r\n";
    for (first, status) in [(gated, 405), (foreign, 403), (preflight, 204), (unknown, 404)] {
        let next = post(PING, "");
        // Whole, and cut where the rest alone would be another request.
        let hiding = format!("X: {}\r\n", "y".repeat(8_000)) + "Z: GET / HTTP/1.1\r\n";
        for next in [next, post(PING, &hiding)] {
            let mut client = Client::connect(proxy.address());
            client.send(format!("{first}{next}"));
            assert_eq!(client.answer().status, status, "{first}");
            assert_eq!(client.answer().body, PONG, "behind {first}");
        }
    }
}

/// HT-3: an interim answer reaches a plain client without what only the proxy may say; an answer of
/// 204 says nothing of a length.
#[test]
fn interim_and_empty_answers() {
    let pod = Pod::answering(
        "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nX-Ringgate-Fault: forged\r\nX-Hop: 1\r\n\
         Connection: X-Hop\r\n\r\nHTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n",
    );
    let proxy = Ringgate::before(pod.address(), &[]);
    let mut client = Client::connect(proxy.address());
    for _ in 0..2 {
        client.send("GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let interim = client.head();
        assert_eq!((interim.status, interim.value("Link")), (103, Some("</a>")));
        assert_eq!((interim.fault(), interim.value("X-Hop")), (None, None));
        let answer = client.answer();
        assert_eq!((answer.status, answer.value("Content-Length")), (204, None));
    }
}
