//! Event streams on the wire: each event leaves as soon as it is proved, and a stream that can't
//! go on ends with a fault that its client can read (RV-5, FA-4, HT-4).

use std::io::Write as _;

use ringgate::ids::RequestId;
use ringgate::mcp::fault::{Fault, Style};

use crate::support::client::{Client, exchange, post};
use crate::support::played::{Line, PlayedPod};
use crate::support::pod::{EVENTS, Pod, chunk, json};
use crate::support::process::Ringgate;

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
const PONG: &str = "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n";
const NOTE: &str = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n";
const GET: &str = "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\
                   MCP-Protocol-Version: 2025-11-25\r\n\r\n";
const LAST: &str = "0\r\n\r\n";

/// A stream under way, with both its ends in the hands of the test.
struct Stream {
    _proxy: Ringgate,
    line: Line,
    client: Client,
}

impl Stream {
    /// Sends a request, answers it with a head, and reads that.
    fn begin(request: &str, head: &str, arguments: &[&str]) -> Self {
        let pod = PlayedPod::open();
        let proxy = Ringgate::before(pod.address(), arguments);
        let mut client = Client::connect(proxy.address());
        client.send(request);
        let (mut line, _) = pod.take();
        line.send(head);
        let answered = client.head();
        assert_eq!(answered.status, 200);
        assert_eq!(answered.value("Content-Type"), Some("text/event-stream"));
        assert_eq!(answered.value("Transfer-Encoding"), Some("chunked"));
        Self { _proxy: proxy, line, client }
    }

    fn of_ping() -> Self {
        Self::begin(&post(PING, ""), EVENTS, &[])
    }

    /// Reads exactly this much of the stream.
    fn expect(&mut self, text: &str) {
        let mut read = Vec::new();
        while read.len() < text.len() {
            let chunk = self.client.chunk();
            assert!(!chunk.is_empty(), "the stream ended before {text:?}");
            read.extend(chunk);
        }
        assert_eq!(String::from_utf8_lossy(&read), text);
    }

    /// Reads the last chunk, and proves that the connection serves on.
    fn expect_end(&mut self) {
        let more = self.client.chunk();
        assert_eq!(String::from_utf8_lossy(&more), "", "the stream goes on");
        self.client.send("CONNECT / HTTP/1.1\r\n\r\n");
        assert_eq!(self.client.answer().status, 400);
    }
}

fn fault_event(fault: Fault) -> String {
    let mut event = Vec::new();
    Style::default().write_event(fault, &RequestId::from_token(b"1"), &mut event);
    String::from_utf8(event).expect("a fault is text")
}

/// What a client reads of a stream that its pod sends at once.
fn through(request: &str, head: &str, body: &str, arguments: &[&str]) -> String {
    let pod = Pod::answering(format!("{head}{body}"));
    let proxy = Ringgate::before(pod.address(), arguments);
    let answered = exchange(proxy.address(), request);
    assert_eq!(answered.status, 200, "{answered:?}");
    answered.body
}

/// HT-4, RV-5: each event and each comment reaches the client before the pod sends the next;
/// requests and notifications of the pod pass as they are.
#[test]
fn events_leave_at_once() {
    let mut stream = Stream::of_ping();
    for text in [
        ": keep-alive\n\n",
        ":\r\n\r\n",
        ": one line\n",
        "id: 0-1\nretry: 500\ndata:\n\n",
        "id: 0-2\ndata: \n\n",
        "retry: 10\n\n",
        "event: ping\ndata: 2026-07-28\n\n",
        NOTE,
        concat!(
            "event: message\r\nid: 3\r\n",
            "data: {\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ping\"}\r\n\r\n"
        ),
        concat!(
            "data: {\"jsonrpc\":\"2.0\",\r\ndata:\"method\":\"notifications/progress\",\n",
            "data: \"params\":{}}\r\n\n"
        ),
        "data:{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"sampling/createMessage\"}\n\n",
        PONG,
        ": after the answer\n\n",
        NOTE,
    ] {
        stream.line.send(chunk(text));
        stream.expect(text);
    }
    stream.line.send(LAST);
    stream.expect_end();
}

/// HT-4: two events in one chunk leave together, and an event in three chunks as one.
#[test]
fn chunks_are_not_events() {
    let mut stream = Stream::of_ping();
    let (start, end) = NOTE.split_at(20);
    stream.line.send(chunk(&format!("{NOTE}{NOTE}{start}")));
    stream.expect(&format!("{NOTE}{NOTE}"));
    stream.line.send(chunk(&end[..5]));
    stream.line.send(chunk(&end[5..]));
    stream.expect(NOTE);
    stream.line.send(format!("{}{LAST}", chunk(PONG)));
    stream.expect(PONG);
    stream.expect_end();
}

/// RV-5: wherever a stream is cut, each of its bytes arrives, whatever ends its lines.
#[test]
fn streams_cut_at_every_byte() {
    let result = r#"{"jsonrpc":"2.0","id":1,"result":{"a":"é"}}"#;
    let text = format!(
        "\u{feff}: hello\r\n\r\nid: 1\rdata:\r\revent: message\r\ndata: {{\"jsonrpc\":\"2.0\",\r\n\
         data: \"method\":\"n\"}}\r\n\r\nevent: other\ndata: x\n\ndata: {result}\r\rid\n\n: bye\n"
    );
    let sent = text.clone();
    let pod = Pod::scripted(move |received, stream| {
        let cut = received.value("X-Cut").expect("a cut is asked for");
        let cut: usize = cut.parse().expect("a cut is a number");
        let (start, end) = sent.as_bytes().split_at(cut);
        let mut out = EVENTS.as_bytes().to_vec();
        for part in [start, end].iter().filter(|part| !part.is_empty()) {
            out.extend(format!("{:x}\r\n", part.len()).bytes());
            out.extend([part, &b"\r\n"[..]].concat());
        }
        out.extend(LAST.bytes());
        // Byte by byte too, for some.
        if cut.is_multiple_of(16) {
            out.iter().all(|byte| stream.write_all(&[*byte]).is_ok())
        } else {
            stream.write_all(&out).is_ok()
        }
    });
    let proxy = Ringgate::before(pod.address(), &[]);
    let mut client = Client::connect(proxy.address());
    for cut in 0..=text.len() {
        client.send(post(PING, &format!("X-Cut: {cut}\r\n")));
        assert_eq!(client.answer().body, text, "cut at {cut}");
    }
}

/// RV-5, FA-4: a refused event is replaced by one fault event with the id, the stream ends by its
/// last chunk, the client's connection serves on and the pod's is closed.
#[test]
fn refused_events_become_the_last() {
    let check = |event: &str, fault: Fault| {
        let mut stream = Stream::begin(&post(PING, ""), EVENTS, &["--max-event-bytes", "200B"]);
        stream.line.send(chunk(NOTE));
        stream.expect(NOTE);
        stream.line.send(chunk(&format!("{event}{PONG}")));
        stream.expect(&fault_event(fault));
        stream.expect_end();
        stream.line.wait_for_end();
    };
    check("data: nonsense\n\n", Fault::UpstreamNotJson);
    check("id: 1\ndata: {\n\n", Fault::UpstreamNotJson);
    check(&format!("{}\ndata: {{}}\n\n", PONG.trim_end()), Fault::UpstreamNotJson);
    check("data: {}\n\n", Fault::UpstreamNotJsonRpc);
    check("event: message\rdata: []\r\r", Fault::UpstreamNotJsonRpc);
    check(&PONG.replace("2.0", "2"), Fault::UpstreamNotJsonRpc);
    let array = "data: [{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}]\n\n";
    check(array, Fault::UpstreamNotJsonRpc);
    check(&PONG.replace('1', "2"), Fault::UpstreamWrongId);
    check(&PONG.replace('1', "\"1\""), Fault::UpstreamWrongId);
    let id_less = "data: {\"jsonrpc\":\"2.0\",\"error\":{\"code\":1,\"message\":\"\"}}\n\n";
    check(id_less, Fault::UpstreamWrongId);
    let long = format!(
        "data: {{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"a\":\"{}\"}}}}\n\n",
        "a".repeat(200)
    );
    check(&long, Fault::UpstreamEventTooLarge);
    check(&format!(": {}", "c".repeat(300)), Fault::UpstreamEventTooLarge);
}

/// RV-5, RV-3: once the request has its answer, a refused event ends the stream without a fault
/// that nobody waits for; a second answer is such an event.
#[test]
fn nobody_is_answered_twice() {
    let check = |event: &str| {
        let body = format!("{}{}", chunk(PONG), chunk(event));
        assert_eq!(through(&post(PING, ""), EVENTS, &body, &[]), PONG, "{event}");
    };
    check(PONG);
    check("data: nonsense\n\n");
}

/// RV-5, FA-4: a stream that ends without the answer says so, unless its client can resume it; of
/// an event that never ended nothing is passed.
#[test]
fn streams_that_end_without_an_answer() {
    let check = |text: &str, passed: &str, fault: Option<Fault>| {
        let chunks = if text.is_empty() { String::new() } else { chunk(text) };
        let expected = format!("{passed}{}", fault.map(fault_event).unwrap_or_default());
        let body = through(&post(PING, ""), EVENTS, &format!("{chunks}{LAST}"), &[]);
        assert_eq!(body, expected, "{text:?}");
    };
    let missing = Some(Fault::UpstreamNoAnswer);
    check("", "", missing);
    check(NOTE, NOTE, missing);
    check("data:\n\n", "data:\n\n", missing);
    let cut = PONG.trim_end();
    check(cut, "", missing);
    check(&format!("{NOTE}{cut}\n"), NOTE, missing);
    let priming = "id: 1\ndata:\n\n";
    check(priming, priming, None);
    let resumable = format!("id: 1\n{NOTE}");
    check(&resumable, &resumable, None);
    check(&format!("{resumable}{cut}"), &resumable, None);
    check(&format!("id: 1\n{cut}"), "", missing);
}

/// RC-6, FA-4: a pod that dies in the middle of a stream ends it with a fault event, unless the
/// client has its answer or can resume.
#[test]
fn pods_that_die_in_a_stream() {
    let check = |sent: &str, passed: &str, fault: Option<Fault>, is_killed: bool| {
        let mut stream = Stream::of_ping();
        stream.line.send(sent);
        stream.expect(passed);
        if is_killed {
            stream.line.kill();
        } else {
            drop(stream.line);
        }
        let mut rest = Vec::new();
        loop {
            let chunk = stream.client.chunk();
            if chunk.is_empty() {
                break;
            }
            rest.extend(chunk);
        }
        let expected = fault.map(fault_event).unwrap_or_default();
        assert_eq!(String::from_utf8_lossy(&rest), expected, "{sent:?}");
    };
    let closed = Some(Fault::UpstreamClosed);
    let answered = format!("{NOTE}{PONG}");
    let resumable = format!("id: 1\n{NOTE}");
    for is_killed in [true, false] {
        check("", "", closed, is_killed);
        check(&chunk(NOTE), NOTE, closed, is_killed);
        let in_a_chunk = format!("100\r\n{NOTE}data: {{\"json");
        check(&in_a_chunk, NOTE, closed, is_killed);
        check(&format!("{}1", chunk(NOTE)), NOTE, closed, is_killed);
        check(&chunk(&answered), &answered, None, is_killed);
        check(&chunk(&resumable), &resumable, None, is_killed);
        let in_a_chunk = format!("100\r\n{resumable}data: {{\"json");
        check(&in_a_chunk, &resumable, None, is_killed);
    }
}

/// HT-1, FA-4: broken framing in the middle of a stream ends it with a fault event.
#[test]
fn broken_framing_in_a_stream() {
    for broken in ["x\r\n", "\r\n", "5\r\ndata:X", "0\r\nbad\r\n\r\n"] {
        let body = format!("{}{broken}", chunk(NOTE));
        let expected = format!("{NOTE}{}", fault_event(Fault::UpstreamMalformed));
        assert_eq!(through(&post(PING, ""), EVENTS, &body, &[]), expected);
    }
}

/// FA-4: a stream that falls silent for too long ends with a fault event.
#[test]
fn silent_streams_end() {
    let mut stream = Stream::begin(&post(PING, ""), EVENTS, &["--stream-idle", "300ms"]);
    stream.line.send(chunk(NOTE));
    stream.expect(NOTE);
    stream.expect(&fault_event(Fault::UpstreamTimeout));
    stream.expect_end();
    stream.line.wait_for_end();
}

/// RV-5: the streams of a GET with a field of MCP are checked, but no id is expected of them;
/// there is nobody whom a fault could answer.
#[test]
fn streams_of_get() {
    let check = |sent: &str, passed: &str| {
        let body = format!("{}{LAST}", chunk(sent));
        assert_eq!(through(GET, EVENTS, &body, &[]), passed, "{sent:?}");
    };
    let replayed = PONG.replace('1', "77");
    check(&replayed, &replayed);
    check(NOTE, NOTE);
    let asked = "id: 4\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n\n";
    check(asked, asked);
    check(&format!("{NOTE}data: nonsense\n\n{NOTE}"), NOTE);
    check(&format!("{NOTE}data: {{}}\n\n"), NOTE);
    let mut stream = Stream::begin(GET, EVENTS, &[]);
    for text in [NOTE, ": ping\n\n", asked] {
        stream.line.send(chunk(text));
        stream.expect(text);
    }
}

/// RV-4: an event stream that is not MCP's passes byte for byte, and as it comes.
#[test]
fn other_streams_pass_untouched() {
    let request = "GET /feed HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut stream = Stream::begin(request, EVENTS, &["--max-event-bytes", "64B"]);
    let long = format!("data: {}\n\n", "x".repeat(1000));
    for text in ["data: nonsense\n\n", "data: half an", " event\n\n", &long] {
        stream.line.send(chunk(text));
        stream.expect(text);
    }
    stream.line.send(LAST);
    stream.expect_end();
}

/// RV-5: a stream that its end delimits becomes chunked for a client of HTTP/1.1, and its end is
/// told from a break.
#[test]
fn close_delimited_streams() {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: Text/Event-Stream\r\n\r\n";
    let mut stream = Stream::begin(&post(PING, ""), head, &[]);
    for text in [NOTE, PONG] {
        stream.line.send(text);
        stream.expect(text);
    }
    drop(stream.line);
    assert!(stream.client.chunk().is_empty());
    let check = |is_killed: bool, fault: Fault| {
        let mut stream = Stream::begin(&post(PING, ""), head, &[]);
        stream.line.send(NOTE);
        stream.expect(NOTE);
        if is_killed {
            stream.line.kill();
        } else {
            drop(stream.line);
        }
        let end = stream.client.chunk();
        assert_eq!(String::from_utf8_lossy(&end), fault_event(fault));
        assert!(stream.client.chunk().is_empty());
    };
    check(true, Fault::UpstreamClosed);
    check(false, Fault::UpstreamNoAnswer);
}

/// RV-5, RV-6: before a stream has begun a fault is the answer, never an event.
#[test]
fn encoded_streams_are_refused() {
    let head = EVENTS.replace("\r\n\r\n", "\r\nContent-Encoding: gzip\r\n\r\n");
    let pod = Pod::answering(format!("{head}{}{LAST}", chunk(PONG)));
    let proxy = Ringgate::before(pod.address(), &[]);
    let answered = exchange(proxy.address(), post(PING, ""));
    assert_eq!((answered.status, answered.fault()), (502, Some("upstream_encoded")));
    assert_eq!(answered.json()["id"], 1);
}

/// SG-1, RV-9: the id of a session that a stream would open leaves with the answer to `initialize`
/// and not before; without an answer the stream is refused as a whole.
#[test]
fn sessions_of_streams() {
    let check = |body: &str, refusal: Option<&str>| {
        let head = EVENTS.replace("\r\n\r\n", "\r\nMcp-Session-Id: of-a-stream\r\n\r\n");
        let answer = format!("{head}{body}");
        let is_whole = body.ends_with(LAST);
        let pod = Pod::scripted(move |received, stream| {
            let is_first = received.value("Mcp-Session-Id").is_none();
            let answer =
                if is_first { answer.clone() } else { json(PONG.trim_start_matches("data: ")) };
            stream.write_all(answer.as_bytes()).is_ok() && (is_whole || !is_first)
        });
        let proxy = Ringgate::before(pod.address(), &[]);
        let initialize = concat!(
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"#,
            r#""2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"#
        );
        let answered = exchange(proxy.address(), post(initialize, ""));
        let is_open = refusal.is_none();
        assert_eq!(answered.fault(), refusal, "{body}");
        assert_eq!(answered.status, if is_open { 200 } else { 502 }, "{body}");
        assert_eq!(answered.value("Mcp-Session-Id").is_some(), is_open, "{body}");
        assert_eq!(answered.body.contains(PONG), is_open, "{body}");
        let later = exchange(proxy.address(), post(PING, "Mcp-Session-Id: of-a-stream\r\n"));
        assert_eq!(later.status, if is_open { 200 } else { 404 }, "{body}");
    };
    let prime = chunk("id: 1\ndata:\n\n");
    check(&format!("{}{LAST}", chunk(PONG)), None);
    check(&format!("{prime}{}{}{LAST}", chunk(NOTE), chunk(PONG)), None);
    check(&format!("{prime}{LAST}"), Some("upstream_no_answer"));
    check(&format!("{}{LAST}", chunk(NOTE)), Some("upstream_no_answer"));
    check(&chunk("data: nonsense\n\n"), Some("upstream_not_json"));
    check(&prime, Some("upstream_closed"));
}
