//! Exchanges that end early: either side that goes away ends the other's, and a pod that fails
//! becomes a fault that names the request, never a hang (RC-6, RC-7).

use std::time::{Duration, Instant};

use crate::support::client::{Client, exchange, post};
use crate::support::played::{Line, PlayedPod};
use crate::support::pod::{ClosedPort, EVENTS, Pod, chunk, json};
use crate::support::process::Ringgate;

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
const PONG: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
const NOTE: &str = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n";
const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
const PLAIN: &str = "GET /file HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// What "at once" is on a busy machine; every time-out of the proxy is longer.
const AT_ONCE: Duration = Duration::from_secs(2);

/// Begins an exchange that `sent` answers in part.
fn begin(request: &str, sent: &str) -> (Ringgate, Client, Line) {
    let pod = PlayedPod::open();
    let proxy = Ringgate::before(pod.address(), &[]);
    let mut client = Client::connect(proxy.address());
    client.send(request);
    let (mut line, _) = pod.take();
    line.send(sent);
    (proxy, client, line)
}

/// RC-6: a client that closes ends the exchange with the pod at once, wherever the answer stands.
#[test]
fn clients_that_close_end_the_exchange() {
    let check = |request: &str, sent: &str, received: &str| {
        let (_proxy, mut client, mut line) = begin(request, sent);
        if !received.is_empty() {
            client.head();
            let chunk = client.chunk();
            assert_eq!(String::from_utf8_lossy(&chunk), received);
        }
        let closed = Instant::now();
        drop(client);
        line.wait_for_end();
        assert!(closed.elapsed() < AT_ONCE, "{request:?} after {sent:?}");
    };
    let ping = post(PING, "");
    let part = format!("{HEAD}Content-Length: 500000\r\n\r\n{}", &PONG[..30]);
    let chunks = format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n{}", chunk(&PONG[..30]));
    check(&ping, "", "");
    check(&ping, "HTTP/1.1 200 OK\r\nContent-Ty", "");
    check(&ping, EVENTS, "");
    check(&ping, &format!("{EVENTS}{}", chunk(NOTE)), NOTE);
    check(&ping, &format!("{EVENTS}{}30\r\ndata: {{", chunk(NOTE)), NOTE);
    check(&ping, &part, "");
    check(&ping, &chunks, "");
    check(&ping, &format!("{HEAD}\r\n{{"), "");
    check(PLAIN, "", "");
    check(PLAIN, &format!("{EVENTS}{}", chunk("data: x\n\n")), "data: x\n\n");
    check(PLAIN, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", "");
}

/// RC-6: a client that has sent its next request early is answered, not taken for one that closed.
#[test]
fn clients_that_send_early_are_not_gone() {
    let (_proxy, mut client, mut line) = begin(&post(PING, ""), "");
    client.send(post(PING, ""));
    assert!(client.is_silent_for(Duration::from_millis(50)));
    line.send(json(PONG));
    assert_eq!(client.answer().body, PONG);
    line.request();
    line.send(json(PONG));
    assert_eq!(client.answer().body, PONG);
}

/// RC-6: a client that stops reading a long answer and closes ends the exchange, though the proxy
/// was writing to it.
#[test]
fn clients_that_close_while_they_are_written_to() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n";
    let (_proxy, mut client, mut line) = begin(PLAIN, head);
    client.head();
    let some = vec![b'x'; 1 << 20];
    // More than all the buffers between here and the client hold.
    let sender = std::thread::spawn(move || {
        let sent = (0..900).take_while(|_| line.send_if_wanted(&some)).count();
        (sent, Instant::now())
    });
    assert!(!client.is_silent_for(AT_ONCE));
    let closed = Instant::now();
    drop(client);
    let (sent, ended) = sender.join().expect("the pod ends");
    assert!(sent < 900, "the pod could send all");
    assert!(ended.saturating_duration_since(closed) < AT_ONCE);
}

/// RC-6, RC-7: a pod that dies before its answer is whole becomes a fault with the id, and the
/// request is not sent again.
#[test]
fn pods_that_die_before_the_answer_is_whole() {
    let check = |sent: &str, is_killed: bool| {
        let pod = PlayedPod::open();
        let proxy = Ringgate::before(pod.address(), &[]);
        let mut client = Client::connect(proxy.address());
        client.send(post(PING, ""));
        let (mut line, _) = pod.take();
        line.send(sent);
        if is_killed {
            line.kill();
        } else {
            drop(line);
        }
        let answered = client.answer();
        assert_eq!((answered.status, answered.fault()), (502, Some("upstream_closed")), "{sent:?}");
        assert_eq!(answered.json()["id"], 1, "{sent:?}");
        pod.assert_unconnected();
    };
    let part = &PONG[..30];
    let chunks = format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n{}", chunk(part));
    for is_killed in [true, false] {
        check("", is_killed);
        check("HTTP/1.1 200 OK\r\nContent-Ty", is_killed);
        check("HTTP/1.1 103 Early Hints\r\n\r\n", is_killed);
        check(&format!("{HEAD}Content-Length: 36\r\n\r\n"), is_killed);
        check(&format!("{HEAD}Content-Length: 36\r\n\r\n{part}"), is_killed);
        check(&chunks, is_killed);
        check(&format!("{chunks}24\r\n{}", &PONG[30..33]), is_killed);
        check(&format!("{chunks}6\r\n{}\r\n0\r\n", &PONG[30..]), is_killed);
    }
    check(&format!("{HEAD}\r\n{part}"), true);
}

/// RC-6: of an answer that passes unchecked part is out, so its break is shown by a connection that
/// ends before the answer does.
#[test]
fn pods_that_die_in_a_plain_answer() {
    let check = |sent: &str, received: &str| {
        let (_proxy, mut client, line) = begin(PLAIN, sent);
        let head = client.head();
        assert_eq!((head.status, head.fault()), (200, None));
        line.kill();
        let rest = client.rest();
        assert_eq!(String::from_utf8_lossy(&rest), received);
    };
    check("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", "abc");
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    check(&format!("{chunked}{}", chunk("abc")), "3\r\nabc\r\n");
    check("HTTP/1.1 200 OK\r\n\r\nabc", "3\r\nabc\r\n");
}

/// FA-3: a pod that does not answer in time becomes a fault with the id, and its connection ends.
#[test]
fn pods_that_do_not_answer() {
    let check = |argument: &str, sent: &str| {
        let pod = PlayedPod::open();
        let proxy = Ringgate::before(pod.address(), &[argument, "300ms"]);
        let mut client = Client::connect(proxy.address());
        client.send(post(PING, ""));
        let (mut line, _) = pod.take();
        line.send(sent);
        let answered = client.answer();
        assert_eq!(
            (answered.status, answered.fault()),
            (504, Some("upstream_timeout")),
            "{sent:?}"
        );
        assert_eq!(answered.json()["id"], 1);
        line.wait_for_end();
    };
    check("--first-byte-timeout", "");
    check("--first-byte-timeout", "HTTP/1.1 200 OK\r\n");
    check("--first-byte-timeout", "HTTP/1.1 100 Continue\r\n\r\n");
    let part = format!("{HEAD}Content-Length: 36\r\n\r\n{{");
    check("--upstream-read-timeout", &part);
}

/// RC-7, FA-3: a pod that refuses connections becomes a fault with the id.
#[test]
fn pods_that_are_down() {
    let port = ClosedPort::open();
    let proxy = Ringgate::before(port.address(), &[]);
    let mut client = Client::connect(proxy.address());
    for _ in 0..2 {
        client.send(post(PING, ""));
        let answered = client.answer();
        assert_eq!((answered.status, answered.fault()), (502, Some("upstream_unreachable")));
        assert_eq!(answered.json()["id"], 1);
    }
    let plain = exchange(proxy.address(), PLAIN);
    assert_eq!(plain.value("Content-Type"), Some("text/plain; charset=utf-8"));
    assert_eq!(plain.body, "ringgate: The pod can't be reached\n");
}

/// RC-7: with one of two pods down the other serves every request, whichever was preferred.
#[test]
fn another_pod_takes_over() {
    let pod = Pod::proper();
    let port = ClosedPort::open();
    let (up, down) = (pod.address(), port.address());
    let urls = [up, down].map(|address| format!("http://{address}"));
    let [up, down] = &urls;
    let all = [["--upstream", up, "--upstream", down], ["--upstream", down, "--upstream", up]];
    for upstreams in all {
        let mut arguments = vec!["--shards", "1", "--affinity-header", "X-Key"];
        arguments.extend(upstreams);
        let proxy = Ringgate::start(&arguments);
        for key in 0..20 {
            let request = post(PING, &format!("X-Key: {key}\r\n"));
            assert_eq!(exchange(proxy.address(), request).status, 200, "key {key}");
            assert_eq!(pod.received().id(), 1);
        }
    }
    pod.assert_untouched();
    let downs = ["--shards", "1", "--upstream", down, "--upstream", "http://127.0.0.1:1"];
    let proxy = Ringgate::start(&downs);
    let answered = exchange(proxy.address(), post(PING, ""));
    assert_eq!((answered.status, answered.fault()), (503, Some("no_serving_pod")));
}
