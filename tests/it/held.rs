//! Held answers on the wire: cut anywhere they arrive whole (RV-7), and they are bounded (RV-8).

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Duration;

use crate::support::client::{Client, exchange, post};
use crate::support::played::PlayedPod;
use crate::support::pod::{EVENTS, Pod, chunk, json};
use crate::support::process::Ringgate;

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";

/// A valid answer of so many bytes that does not repeat.
fn body_of(bytes: usize) -> String {
    let mut body = String::from(r#"{"jsonrpc":"2.0","id":1,"result":{"text":""#);
    let end = r#""}}"#;
    let mut word = 0_u32;
    while body.len() + 9 + end.len() <= bytes {
        write!(body, "{word:08x} ").expect("a string takes all");
        word = word.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    }
    while body.len() + end.len() < bytes {
        body.push('.');
    }
    body + end
}

/// RV-7: where an answer is cut changes neither the verdict nor a byte of it.
#[test]
fn chunks_cut_anywhere() {
    let body = |id: u64| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"a":"é\u00e9"}}}}"#);
    // The id says where the pod is to cut, and whether it answers well.
    let pod = Pod::scripted(move |received, stream| {
        let id = received.id();
        let bytes = if id % 2 == 0 { body(id) } else { body(id).replace("}}", "}]") };
        let cut = usize::try_from(id / 2).expect("an id is small");
        let (start, end) = bytes.as_bytes().split_at(cut.min(bytes.len()));
        let mut out = format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n").into_bytes();
        for part in [start, end].iter().filter(|part| !part.is_empty()) {
            out.extend(format!("{:x};a=b\r\n", part.len()).bytes());
            out.extend([part, &b"\r\n"[..]].concat());
        }
        out.extend(b"0\r\n\r\n");
        stream.write_all(&out).is_ok()
    });
    let proxy = Ringgate::before(pod.address(), &[]);
    let mut client = Client::connect(proxy.address());
    for id in 2..=2 * body(100).len() as u64 {
        let request = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        client.send(post(&request, ""));
        let answered = client.answer();
        if id % 2 == 0 {
            assert_eq!(answered.body, body(id));
        } else {
            assert_eq!(answered.fault(), Some("upstream_not_json"), "{id}");
        }
    }
}

/// RV-7: an answer that comes byte by byte, head and all.
#[test]
fn bytes_one_by_one() {
    let check = |answer: Vec<u8>, body: &str| {
        let pod = Pod::scripted(move |_, stream| {
            answer.iter().all(|byte| stream.write_all(&[*byte]).is_ok())
        });
        // So small a budget is used up at once if each byte takes a read buffer of its own.
        let proxy = Ringgate::before(pod.address(), &["--held-bytes-max", "256KiB"]);
        let answered = exchange(proxy.address(), post(PING, ""));
        assert_eq!((answered.status, answered.fault()), (200, None));
        assert!(answered.body == body, "{}", answered.body);
    };
    let body = body_of(20_000);
    check(json(&body).into(), &body);
    let chunked = format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n");
    let chunks: String = body
        .as_bytes()
        .chunks(7)
        .map(|part| chunk(std::str::from_utf8(part).expect("ASCII")))
        .collect();
    check(format!("{chunked}{chunks}0\r\n\r\n").into(), &body);
}

/// RV-7: a large answer arrives byte for byte in every framing.
#[test]
fn large_answers_arrive_whole() {
    let check = |answer: Vec<u8>, is_kept: bool, body: &str| {
        let pod = Pod::scripted(move |_, stream| stream.write_all(&answer).is_ok() && is_kept);
        let proxy = Ringgate::before(pod.address(), &[]);
        let mut client = Client::connect(proxy.address());
        for _ in 0..2 {
            client.send(post(PING, ""));
            let answered = client.answer();
            let length = body.len().to_string();
            assert_eq!(answered.value("Content-Length"), Some(length.as_str()));
            assert!(answered.body == body, "the body differs");
        }
    };
    let body = body_of(3 * 1024 * 1024);
    check(json(&body).into(), true, &body);
    check(format!("{HEAD}\r\n{body}").into(), false, &body);
    let mut chunked = format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n");
    let (mut rest, mut size) = (body.as_str(), 1);
    while !rest.is_empty() {
        let (part, left) = rest.split_at(size.min(rest.len()));
        chunked.push_str(&chunk(part));
        rest = left;
        size = size * 7 % 300_007;
    }
    chunked.push_str("0\r\n\r\n");
    check(chunked.into(), true, &body);
}

/// RV-8: an answer that says it is too large is refused unread; one that does not, once it is.
#[test]
fn answers_over_the_limit_are_refused() {
    let check = |bytes: &str, is_refused: bool| {
        let pod = PlayedPod::open();
        let proxy = Ringgate::before(pod.address(), &["--max-response-bytes", "1000B"]);
        let mut client = Client::connect(proxy.address());
        client.send(post(PING, ""));
        let (mut line, _) = pod.take();
        line.send(bytes);
        let answered = client.answer();
        if is_refused {
            assert_eq!((answered.status, answered.fault()), (502, Some("upstream_too_large")));
            assert_eq!(answered.json()["id"], 1);
            line.wait_for_end();
        } else {
            assert_eq!(answered.status, 200);
        }
    };
    let (fits, over) = (body_of(1000), body_of(1001));
    check(&json(&fits), false);
    check(&format!("{HEAD}Content-Length: 1001\r\n\r\n"), true);
    check(&format!("{HEAD}Content-Length: 9000000000000000000\r\n\r\n"), true);
    let chunked = format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n");
    check(&format!("{chunked}{}0\r\n\r\n", chunk(&fits)), false);
    check(&format!("{chunked}{}", chunk(&over)), true);
    let (start, end) = over.split_at(500);
    check(&format!("{chunked}{}{}", chunk(start), chunk(end)), true);
    check(&format!("{HEAD}\r\n{over}"), true);
}

/// Starts an exchange whose answer, declared with 200 KiB of which 120,000 bytes have come, fills
/// most of a budget of 256 KiB.
fn fill(proxy: &Ringgate, pod: &PlayedPod) -> (Client, impl FnOnce() + use<>) {
    let mut client = Client::connect(proxy.address());
    client.send(post(PING, ""));
    let (mut line, _) = pod.take();
    let answer = json(&body_of(200 * 1024));
    let (start, end) = answer.split_at(120_000);
    line.send(start);
    let end = end.to_owned();
    (client, move || line.send(end))
}

/// RV-8: when the budget is used up a second body waits, unread, and is then refused; the first is
/// not harmed.
#[test]
fn a_body_over_the_budget_is_refused() {
    let pod = PlayedPod::open();
    let arguments = ["--held-bytes-max", "256KiB", "--held-wait", "300ms"];
    let proxy = Ringgate::before(pod.address(), &arguments);
    let (mut first, finish) = fill(&proxy, &pod);
    let (mut second, _unused) = fill(&proxy, &pod);
    let answered = second.answer();
    assert_eq!((answered.status, answered.fault()), (503, Some("overloaded")));
    assert_eq!(answered.value("Retry-After"), Some("1"));
    assert_eq!(answered.json()["id"], 1);
    finish();
    let answered = first.answer();
    assert_eq!((answered.status, answered.body.len()), (200, 200 * 1024));
}

/// RV-8: a body that waits for the budget goes on when another ends.
#[test]
fn a_body_waits_for_the_budget() {
    let pod = PlayedPod::open();
    let arguments = ["--held-bytes-max", "256KiB", "--held-wait", "1m"];
    let proxy = Ringgate::before(pod.address(), &arguments);
    let (mut first, finish_first) = fill(&proxy, &pod);
    let (mut second, finish_second) = fill(&proxy, &pod);
    finish_second();
    assert!(second.is_silent_for(Duration::from_millis(200)));
    finish_first();
    for client in [&mut first, &mut second] {
        let answered = client.answer();
        assert_eq!((answered.status, answered.body.len()), (200, 200 * 1024));
    }
}

/// RV-8, RC-6: a client that closes gives its place in front of the budget up at once.
#[test]
fn a_client_that_closes_waits_no_more() {
    let pod = PlayedPod::open();
    let arguments = ["--held-bytes-max", "256KiB", "--held-wait", "1m"];
    let proxy = Ringgate::before(pod.address(), &arguments);
    let (_first, _finish) = fill(&proxy, &pod);
    let mut second = Client::connect(proxy.address());
    second.send(post(PING, ""));
    let (mut line, _) = pod.take();
    line.send(format!("{HEAD}Content-Length: 204800\r\n\r\n"));
    assert!(second.is_silent_for(Duration::from_millis(50)));
    drop(second);
    line.wait_for_end();
}

/// RV-8, FA-4: events that are not whole count for the budget too; a stream that finds no room ends
/// with a fault, and one that has its room goes on.
#[test]
fn events_count_for_the_budget() {
    let pod = PlayedPod::open();
    let arguments = ["--held-bytes-max", "256KiB", "--held-wait", "300ms"];
    let proxy = Ringgate::before(pod.address(), &arguments);
    let text = "x".repeat(180 * 1024);
    let event =
        format!("data: {{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"text\":\"{text}\"}}}}\n\n");
    let (start, end) = event.split_at(160 * 1024);
    let begin = || {
        let mut client = Client::connect(proxy.address());
        client.send(post(PING, ""));
        let (mut line, _) = pod.take();
        line.send(format!("{EVENTS}{}", chunk(start)));
        assert_eq!(client.head().status, 200);
        (client, line)
    };
    let (mut first, mut first_line) = begin();
    let (mut second, _second_line) = begin();
    let last = String::from_utf8(second.chunk()).expect("an event is text");
    assert!(last.contains("\"reason\":\"overloaded\""), "{last}");
    assert!(second.chunk().is_empty(), "the stream ends");
    first_line.send(format!("{}0\r\n\r\n", chunk(end)));
    assert_eq!(first.chunk().len(), event.len());
}
