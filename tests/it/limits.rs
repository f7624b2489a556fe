//! Every bound of a connection and of a shard, on the wire (LM-1, LM-2).

use std::io::Write;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use crate::support::SOON;
use crate::support::client::{Answer, Client, bare, exchange, post};
use crate::support::pod::{EVENTS, Pod, chunk, json};
use crate::support::process::Ringgate;

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

fn ping(id: u64) -> String {
    post(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#), "")
}

fn assert_overloaded(answer: &Answer) {
    assert_eq!((answer.status, answer.fault()), (503, Some("overloaded")), "{answer:?}");
    assert!(answer.value("Retry-After").is_some(), "{answer:?}");
}

/// LM-1, LM-2: a head at its bounds is served, and one beyond them is refused with the status that
/// says which; the connection ends and nothing reaches the pod.
#[test]
fn heads_are_bounded() {
    let pod = Pod::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let flags = ["--max-head-bytes", "2KiB", "--max-fields", "10", "--max-target-bytes", "100"];
    let proxy = Ringgate::before(pod.address(), &flags);
    let check = |request: &str, refusal: Option<(u16, &str)>| {
        let mut client = Client::connect(proxy.address());
        client.send(request);
        let answer = client.answer();
        let Some((status, reason)) = refusal else {
            assert_eq!(answer.status, 200, "{request:?}");
            assert_eq!(pod.received().method(), "GET", "{request:?}");
            return;
        };
        assert_eq!((answer.status, answer.fault()), (status, Some(reason)), "{request:?}");
        assert!(client.is_closed(), "{request:?}");
        pod.assert_untouched();
    };
    let sized = |bytes: usize| {
        let empty = bare("GET", "X: \r\n");
        bare("GET", &format!("X: {}\r\n", "x".repeat(bytes - empty.len())))
    };
    check(&sized(2048), None);
    check(&sized(2049), Some((431, "head_too_large")));
    // Refused once the bound is passed, before the end of the head.
    let endless = format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {}", "x".repeat(4096));
    check(&endless, Some((431, "head_too_large")));
    check(&bare("GET", &"X: y\r\n".repeat(9)), None);
    let many = bare("GET", &"X: y\r\n".repeat(10));
    check(&many, Some((431, "head_too_large")));
    let target = |bytes: usize| {
        let path = "x".repeat(bytes - 1);
        format!("GET /{path} HTTP/1.1\r\nHost: localhost\r\n\r\n")
    };
    check(&target(100), None);
    check(&target(101), Some((414, "target_too_long")));
}

/// RC-8, LM-2: a body at the bound is served. A larger one is refused, from its head alone if it is
/// declared; the client can read the refusal although it still sends, and then the connection ends.
#[test]
fn request_bodies_are_bounded() {
    let pod = Pod::proper();
    let proxy = Ringgate::before(pod.address(), &["--max-request-bytes", "1KiB"]);
    let json_of = |bytes: usize| {
        let frame = r#"{"jsonrpc":"2.0","id":1,"method":""}"#.len();
        let method = "m".repeat(bytes - frame);
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}"}}"#)
    };
    let head = |media: &str, framing: &str| {
        bare("POST", &format!("Content-Type: {media}\r\n{framing}\r\n"))
    };
    let declared = |media: &str, body: &str| {
        let length = format!("Content-Length: {}", body.len());
        format!("{}{body}", head(media, &length))
    };
    let undeclared = |media: &str, body: &str| {
        let head = head(media, "Transfer-Encoding: chunked");
        format!("{head}{}0\r\n\r\n", chunk(body))
    };
    let filler = "x".repeat(64 * 1024);
    let refused = |start: &str| {
        let mut client = Client::connect(proxy.address());
        client.send(start);
        for _ in 0..4 {
            client.send_if_wanted(&filler);
        }
        let answer = client.answer();
        assert_eq!((answer.status, answer.fault()), (413, Some("body_too_large")), "{start:?}");
        // Closing with bytes unread would reset the connection, and the reset could overtake the
        // answer: what still comes is read for a while.
        for _ in 0..4 {
            assert!(client.send_if_wanted(&filler), "{start:?}");
        }
        let deadline = Instant::now() + SOON;
        while client.send_if_wanted(&filler) {
            assert!(Instant::now() < deadline, "the connection does not end");
        }
    };
    for media in ["application/json", "application/octet-stream"] {
        let (fitting, larger) = (json_of(1024), json_of(1025));
        for request in [declared(media, &fitting), undeclared(media, &fitting)] {
            assert_eq!(exchange(proxy.address(), &request).status, 200, "{media}");
            assert_eq!(pod.received().body, fitting);
        }
        refused(&declared(media, &larger));
        refused(&head(media, "Content-Length: 999999999999"));
        pod.assert_untouched();
        refused(&undeclared(media, &larger));
        let chunked = head(media, "Transfer-Encoding: chunked");
        refused(&format!("{chunked}{}ffffff\r\n", chunk("{")));
    }
}

/// LM-1: a head that is not whole in time is refused, however it trickles, and so is a body that
/// stops; the connection ends.
#[test]
fn slow_requests_are_refused() {
    let pod = Pod::proper();
    let flags = ["--head-timeout", "400ms", "--body-timeout", "400ms"];
    let proxy = Ringgate::before(pod.address(), &flags);
    let check = |start: &str, trickle: &str| {
        let started = Instant::now();
        let mut client = Client::connect(proxy.address());
        client.send(start);
        let mut trickle = trickle.bytes().cycle();
        while !client.hears_within(Duration::from_millis(20)) {
            if let Some(byte) = trickle.next() {
                client.send_if_wanted([byte]);
            }
            assert!(started.elapsed() < SOON, "{start:?} is waited for");
        }
        let answer = client.answer();
        assert_eq!((answer.status, answer.fault()), (408, Some("request_timeout")), "{start:?}");
        assert!(client.is_closed(), "{start:?}");
        // Time is read once a sweep.
        let waited = started.elapsed();
        assert!(Duration::from_millis(250) < waited, "after {waited:?}");
    };
    check("G", "");
    check("GET / HTTP/1.1\r\nHost: localhost\r\nX: ", "");
    check("GET / HTTP/1.1\r\nHost: localhost\r\nX: ", "xyz");
    let started = |media: &str, framing: &str| {
        let fields = format!("Content-Type: {media}\r\n{framing}\r\n");
        format!("{}{}", bare("POST", &fields), chunk("{"))
    };
    for media in ["application/json", "application/octet-stream"] {
        check(&started(media, "Content-Length: 100"), "");
        check(&started(media, "Transfer-Encoding: chunked"), "");
    }
}

/// LM-1, LM-2: a client that does not read what is sent to it is dropped after the body time-out,
/// whatever the answer is.
#[test]
fn clients_that_do_not_read_are_dropped() {
    const BYTES: usize = 16 * 1024 * 1024;
    let check = |request: &str, answer: String| {
        let pod = Pod::scripted(move |received, stream| {
            let is_large = received.value("X-Large").is_some();
            let small = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
            let bytes = if is_large { answer.as_str() } else { small };
            stream.write_all(bytes.as_bytes()).is_ok()
        });
        let flags = ["--body-timeout", "500ms", "--max-connections", "1"];
        let proxy = Ringgate::before(pod.address(), &flags);
        let mut slow = Client::connect_narrow(proxy.address());
        slow.send(request);
        pod.received();
        // The only place is taken until the slow client is dropped.
        let started = Instant::now();
        assert_eq!(exchange(proxy.address(), bare("GET", "")).body, "ok");
        let waited = started.elapsed();
        assert!(Duration::from_millis(300) < waited, "after {waited:?}");
        let received = slow.rest().len();
        assert!(received < BYTES, "the slow client has got all");
    };
    let large = "X-Large: 1\r\n";
    let text = "x".repeat(BYTES);
    let plain = format!("HTTP/1.1 200 OK\r\nContent-Length: {BYTES}\r\n\r\n{text}");
    check(&bare("GET", large), plain);
    let result = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"text":"{text}"}}}}"#);
    check(&post(PING, large), json(&result));
    let event = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"text"}}"#;
    let events = format!("data: {event}\n\n").repeat(500);
    let chunks = chunk(&events).repeat(BYTES / events.len());
    check(&post(PING, large), format!("{EVENTS}{chunks}"));
}

/// LM-1: a connection is closed when it is idle too long, both before its first request and after
/// one, and never while a request is under way.
#[test]
fn idle_clients_are_closed() {
    let (pod, word) = Pod::on_word();
    let proxy = Ringgate::before(pod.address(), &["--client-idle", "400ms"]);
    let check = |client: &mut Client| {
        let started = Instant::now();
        assert!(client.is_closed(), "the connection is idle");
        let waited = started.elapsed();
        assert!(Duration::from_millis(250) < waited, "after {waited:?}");
    };
    check(&mut Client::connect(proxy.address()));
    let mut client = Client::connect(proxy.address());
    client.send(ping(7));
    pod.received();
    assert!(!client.hears_within(Duration::from_millis(900)), "busy");
    word.send(()).expect("the pod waits");
    assert_eq!(client.answer().json()["id"], 7);
    check(&mut client);
}

/// LM-1, LM-2: connections over the bound wait, and are served when one leaves.
#[test]
fn connections_over_the_bound_wait() {
    let pod = Pod::proper();
    let proxy = Ringgate::before(pod.address(), &["--max-connections", "2"]);
    let mut inside: Vec<Client> = (0..2).map(|_| Client::connect(proxy.address())).collect();
    let exchanges = |inside: &mut [Client], ids: std::ops::Range<u64>| {
        for (id, client) in ids.zip((0..2).cycle()) {
            inside[client].send(ping(id));
            assert_eq!(inside[client].answer().json()["id"], id);
            assert_eq!(pod.received().id(), id);
        }
    };
    exchanges(&mut inside, 0..2);
    let mut waiting: Vec<Client> = (0..3).map(|_| Client::connect(proxy.address())).collect();
    for (client, id) in waiting.iter_mut().zip(100..) {
        client.send(ping(id));
    }
    exchanges(&mut inside, 2..100);
    // They come in in turn, each when another has left.
    for (mut client, id) in waiting.into_iter().zip(100..) {
        assert!(!client.hears_within(Duration::from_millis(1)), "{id} waits");
        inside.pop();
        assert_eq!(client.answer().json()["id"], id);
        inside.insert(0, client);
    }
}

/// LM-1, LM-2: exchanges over the bound of a shard are refused, with the time to come back.
#[test]
fn exchanges_over_the_bound_are_refused() {
    let (pod, word) = Pod::on_word();
    let proxy = Ringgate::before(pod.address(), &["--max-in-flight", "2"]);
    let mut busy: Vec<Client> = (0..2).map(|_| Client::connect(proxy.address())).collect();
    for (client, id) in busy.iter_mut().zip(0..) {
        client.send(ping(id));
        assert_eq!(pod.received().id(), id);
    }
    let mut late = Client::connect(proxy.address());
    late.send(ping(2));
    assert_overloaded(&late.answer());
    pod.assert_untouched();
    for _ in &busy {
        word.send(()).expect("the pod waits");
    }
    for (client, id) in busy.iter_mut().zip(0..) {
        assert_eq!(client.answer().json()["id"], id);
    }
    word.send(()).expect("the pod waits");
    let answer = exchange(proxy.address(), ping(3));
    assert_eq!(answer.json()["id"], 3);
}

/// LM-1, RT-4: exchanges over the bound of a pod go to another pod, and are refused with their id
/// when every pod is full.
#[test]
fn exchanges_over_the_bound_of_a_pod_go_elsewhere() {
    let pods = [Pod::on_word(), Pod::on_word()];
    let second = format!("http://{}", pods[1].0.address());
    let flags = ["--max-in-flight-per-pod", "1", "--upstream", &second];
    let proxy = Ringgate::before(pods[0].0.address(), &flags);
    let mut busy: Vec<Client> = (0..2).map(|_| Client::connect(proxy.address())).collect();
    for (client, id) in busy.iter_mut().zip(0..) {
        client.send(ping(id));
    }
    // One each, whichever pod is preferred.
    let mut ids: Vec<u64> = pods.iter().map(|(pod, _)| pod.received().id()).collect();
    ids.sort_unstable();
    assert_eq!(ids, [0, 1]);
    let mut late = Client::connect(proxy.address());
    late.send(ping(2));
    let answer = late.answer();
    assert_overloaded(&answer);
    assert_eq!(answer.json()["id"], 2);
    for (pod, word) in &pods {
        pod.assert_untouched();
        word.send(()).expect("the pod waits");
    }
    for (client, id) in busy.iter_mut().zip(0..) {
        assert_eq!(client.answer().json()["id"], id);
    }
}

/// LM-1, RT-5: of the connections to a pod so many are kept as the bound says.
#[test]
fn idle_upstreams_are_bounded() {
    const AT_ONCE: u64 = 3;
    let check = |bound: &str, expected_connections: usize| {
        let barrier = Arc::new(Barrier::new(3));
        let pod = Pod::scripted(move |received, stream| {
            barrier.wait();
            let port = stream.peer_addr().expect("it is connected").port();
            let id = received.id();
            let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"port":{port}}}}}"#);
            stream.write_all(json(&body).as_bytes()).is_ok()
        });
        let flags = ["--max-idle-upstreams", bound, "--upstream-idle", "60s"];
        let proxy = Ringgate::before(pod.address(), &flags);
        let mut ports = Vec::new();
        for _ in 0..3 {
            let clients = (0..AT_ONCE).map(|id| {
                let mut client = Client::connect(proxy.address());
                client.send(ping(id));
                client
            });
            let clients: Vec<Client> = clients.collect();
            for mut client in clients {
                let answer = client.answer().json();
                ports.push(answer["result"]["port"].as_u64().expect("a port"));
            }
        }
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), expected_connections, "with {bound}");
    };
    check("0", 9);
    check("1", 3 + 2 + 2);
    check("256", 3);
}

/// LM-1: an answer nested as deep as the bound is passed on, and one level deeper it is refused.
#[test]
fn answers_are_bounded_in_depth() {
    let check = |levels: usize, expected: (u16, Option<&str>)| {
        // The envelope and the result are a level each.
        let (open, close) = ("[".repeat(levels - 2), "]".repeat(levels - 2));
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"a":{open}{close}}}}}"#);
        let pod = Pod::answering(json(&body));
        let proxy = Ringgate::before(pod.address(), &["--max-json-depth", "8"]);
        let answer = exchange(proxy.address(), post(PING, ""));
        assert_eq!((answer.status, answer.fault()), expected, "{levels} levels");
        assert_eq!(answer.json()["id"], 1);
    };
    check(8, (200, None));
    check(9, (502, Some("upstream_not_json")));
}

/// LM-2: out of descriptors, accepting pauses without spinning, what is connected is served, and
/// accepting resumes when clients leave.
#[test]
fn accepting_pauses_without_descriptors() {
    const CLIENTS: u64 = 60;
    let check = |driver: &str| {
        let pod = Pod::proper();
        let upstream = format!("http://{}", pod.address());
        let mut proxy = Ringgate::start_under(
            &["prlimit", "--nofile=40:40"],
            &[
                "--listen",
                "127.0.0.1:0",
                "--shards",
                "1",
                "--driver",
                driver,
                "--upstream",
                &upstream,
                "--upstream-idle",
                "60s",
            ],
        );
        proxy.announce("accepting pauses");
        let mut first = Client::connect(proxy.address());
        let mut exchange = |id: u64| {
            first.send(ping(id));
            assert_eq!(first.answer().json()["id"], id, "{driver}");
        };
        // Opens the connection to the pod, which is kept.
        exchange(0);
        let mut clients: Vec<Client> =
            (0..CLIENTS).map(|_| Client::connect(proxy.address())).collect();
        let started = Instant::now();
        proxy.wait_for_lines("accepting pauses", 1);
        exchange(1);
        proxy.wait_for_lines("accepting pauses", 6);
        let waited = started.elapsed();
        assert!(Duration::from_millis(240) < waited, "six in {waited:?}");
        let mut last = clients.pop().expect("there are many");
        last.send(ping(2));
        clients.clear();
        assert_eq!(last.answer().json()["id"], 2, "{driver}");
    };
    check("auto");
    check("epoll");
}
