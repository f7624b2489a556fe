//! The end of a process and the take-over of its port, on the wire (OP-3).

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::support::SOON;
use crate::support::client::{Client, bare, exchange, post};
use crate::support::pod::{EVENTS, Pod, chunk};
use crate::support::process::{Ringgate, run};

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
const NOTE: &str = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#;
const PONG: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
const DRIVERS: [&str; 2] = ["io-uring", "epoll"];

/// Tells the proxy to end, and returns once its one shard has heard of it.
fn drain(proxy: &Ringgate, signal: Signal) {
    let mut idle = Client::connect(proxy.address());
    idle.send("OPTIONS * HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    assert_eq!(idle.answer().status, 403, "an answer of the proxy itself");
    proxy.signal(signal);
    let started = Instant::now();
    assert!(idle.is_closed(), "an idle connection ends");
    let waited = started.elapsed();
    assert!(waited < Duration::from_secs(2), "it was held for {waited:?}");
}

fn assert_ends(mut proxy: Ringgate) {
    let status = proxy.wait();
    assert_eq!(status.code(), Some(0), "{status}");
}

/// OP-3: without work the process ends at once, whatever connections are open, with status 0.
#[test]
fn an_idle_process_ends_at_once() {
    for driver in DRIVERS {
        for signal in [Signal::SIGTERM, Signal::SIGINT] {
            let pod = Pod::proper();
            let proxy = Ringgate::before(pod.address(), &["--driver", driver]);
            let mut used = Client::connect(proxy.address());
            used.send(post(PING, ""));
            assert_eq!(used.answer().status, 200);
            let mut unused = Client::connect(proxy.address());
            let started = Instant::now();
            drain(&proxy, signal);
            assert!(used.is_closed() && unused.is_closed());
            assert_ends(proxy);
            let waited = started.elapsed();
            assert!(waited < Duration::from_secs(4), "{driver}: {waited:?}");
        }
    }
}

/// OP-3: an exchange under way gets its answer, which says that the connection ends; meanwhile new
/// connections are refused.
#[test]
fn busy_exchanges_are_finished() {
    for driver in DRIVERS {
        let (pod, word) = Pod::on_word();
        let proxy = Ringgate::before(pod.address(), &["--driver", driver]);
        let mut busy = Client::connect(proxy.address());
        busy.send(post(PING, ""));
        pod.received();
        drain(&proxy, Signal::SIGTERM);
        let deadline = Instant::now() + SOON;
        while TcpStream::connect(proxy.address()).is_ok() {
            assert!(Instant::now() < deadline, "{driver}: connections are accepted");
        }
        word.send(()).expect("the pod waits");
        let answer = busy.answer();
        assert_eq!((answer.status, answer.json()["id"].as_u64()), (200, Some(1)));
        assert_eq!(answer.value("Connection"), Some("close"), "{driver}");
        assert!(busy.is_closed(), "{driver}");
        assert_ends(proxy);
    }
}

/// OP-3: a request whose head is on its way when the drain begins is answered.
#[test]
fn a_request_under_way_is_answered() {
    let pod = Pod::proper();
    let proxy = Ringgate::before(pod.address(), &[]);
    let request = post(PING, "");
    let (start, rest) = request.split_at(20);
    let mut client = Client::connect(proxy.address());
    client.send(start);
    // Served by the same shard, and so after those bytes.
    assert_eq!(exchange(proxy.address(), post(PING, "")).status, 200);
    drain(&proxy, Signal::SIGTERM);
    client.send(rest);
    let answer = client.answer();
    assert_eq!((answer.status, answer.value("Connection")), (200, Some("close")));
    assert_ends(proxy);
}

/// A pod that begins an event stream, and then sends an event for each word.
fn streaming_pod() -> (Pod, std::sync::mpsc::Sender<&'static str>) {
    let (sender, words) = std::sync::mpsc::channel::<&str>();
    #[expect(clippy::disallowed_types, reason = "the connections of a pod are threads")]
    let words = std::sync::Mutex::new(words);
    let pod = Pod::scripted(move |_, stream| {
        let mut send = |text: &str| stream.write_all(text.as_bytes()).is_ok();
        let words = words.lock().expect("no script panics");
        send(EVENTS) && words.iter().all(|data| send(&chunk(&format!("data: {data}\n\n"))))
    });
    (pod, sender)
}

/// OP-3, FA-4: event streams go on until the drain time-out. Then one that owes an answer ends with
/// the fault as its last event, one that owes nothing just ends, and the status is 0.
#[test]
fn event_streams_live_until_the_time_out() {
    let listening = bare("GET", "MCP-Protocol-Version: 2025-06-18\r\n");
    let check = |driver: &str, request: &str, is_answered: bool, has_fault: bool| {
        let (pod, word) = streaming_pod();
        let flags = ["--drain-timeout", "1s", "--driver", driver];
        let mut proxy = Ringgate::before(pod.address(), &flags);
        proxy.announce("the drain time-out cuts");
        let mut client = Client::connect(proxy.address());
        client.send(request);
        assert_eq!(client.head().status, 200);
        let mut event = |data: &'static str| {
            word.send(data).expect("the pod waits");
            let received = String::from_utf8(client.chunk()).expect("text");
            assert_eq!(received, format!("data: {data}\n\n"), "{driver}");
        };
        event(NOTE);
        let started = Instant::now();
        drain(&proxy, Signal::SIGTERM);
        event(NOTE);
        if is_answered {
            event(PONG);
        }
        let mut last = String::from_utf8(client.chunk()).expect("text");
        let waited = started.elapsed();
        assert!(Duration::from_millis(850) < waited, "{driver}: {waited:?}");
        if has_fault {
            assert!(last.contains(r#""id":1"#), "{driver}: {last:?}");
            assert!(last.contains(r#""reason":"draining""#), "{driver}: {last:?}");
            assert!(last.ends_with("\n\n"), "{driver}: {last:?}");
            last = String::from_utf8(client.chunk()).expect("text");
        }
        assert_eq!(last, "", "{driver}: the end of the stream");
        assert!(client.is_closed(), "{driver}");
        assert_ends(proxy);
        drop(word);
    };
    for driver in DRIVERS {
        check(driver, &post(PING, ""), false, true);
        check(driver, &post(PING, ""), true, false);
        check(driver, &listening, false, false);
    }
}

/// OP-3: the drain time-out holds when the shard is full too, and with it new connections wait.
#[test]
fn a_full_shard_drains() {
    let (pod, word) = streaming_pod();
    let flags = ["--drain-timeout", "500ms", "--max-connections", "1"];
    let mut proxy = Ringgate::before(pod.address(), &flags);
    proxy.announce("the drain time-out cuts");
    let mut client = Client::connect(proxy.address());
    client.send(post(PING, ""));
    assert_eq!(client.head().status, 200);
    proxy.signal(Signal::SIGTERM);
    let last = String::from_utf8(client.chunk()).expect("text");
    assert!(last.contains(r#""reason":"draining""#), "{last:?}");
    assert_ends(proxy);
    drop(word);
}

/// OP-3: a second signal ends the process at once.
#[test]
fn a_second_signal_ends_the_process() {
    let (pod, _word) = streaming_pod();
    let mut proxy = Ringgate::before(pod.address(), &[]);
    proxy.announce("a second signal");
    let mut client = Client::connect(proxy.address());
    client.send(post(PING, ""));
    assert_eq!(client.head().status, 200);
    drain(&proxy, Signal::SIGTERM);
    assert!(!client.hears_within(Duration::from_millis(100)), "it drains");
    let started = Instant::now();
    proxy.signal(Signal::SIGTERM);
    assert_ends(proxy);
    let waited = started.elapsed();
    assert!(waited < Duration::from_secs(2), "after {waited:?}");
}

/// OP-3: once the process has ended the port is free: nothing accepts, and it can be bound.
#[test]
fn the_port_is_free_after_the_end() {
    let pod = Pod::proper();
    for driver in DRIVERS {
        for _ in 0..5 {
            let mut proxy = Ringgate::before(pod.address(), &["--driver", driver]);
            let address = proxy.address();
            assert_eq!(exchange(address, post(PING, "")).status, 200);
            proxy.signal(Signal::SIGTERM);
            assert_eq!(proxy.wait().code(), Some(0));
            let connected = TcpStream::connect(address).map_err(|error| error.kind());
            assert_eq!(connected.err(), Some(ErrorKind::ConnectionRefused), "{driver}");
            let bound = TcpListener::bind(address);
            assert!(bound.is_ok(), "{driver}: {bound:?}");
        }
    }
}

/// One request on a connection of its own.
fn try_exchange(address: SocketAddr) -> io::Result<()> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(SOON))?;
    stream.write_all(post(PING, "Connection: close\r\n").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    if answer.starts_with("HTTP/1.1 200 ") && answer.contains(r#""port":"#) {
        Ok(())
    } else {
        Err(io::Error::other(format!("the answer is {answer:?}")))
    }
}

/// Clients that never stop to ask, each time on a new connection.
struct Siege {
    is_over: Arc<AtomicBool>,
    answered: Arc<AtomicU64>,
    clients: Vec<JoinHandle<Vec<String>>>,
}

impl Siege {
    fn lay(address: SocketAddr, clients_count: usize) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let answered = Arc::new(AtomicU64::new(0));
        let clients = (0..clients_count).map(|_| {
            let (is_over, answered) = (Arc::clone(&is_over), Arc::clone(&answered));
            std::thread::spawn(move || {
                let mut failures = Vec::new();
                while !is_over.load(Ordering::Relaxed) {
                    match try_exchange(address) {
                        Ok(()) => {
                            answered.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(error) => failures.push(error.to_string()),
                    }
                }
                failures
            })
        });
        let clients = clients.collect();
        Self { is_over, answered, clients }
    }

    /// Waits until so many more requests were answered.
    fn wait_for(&self, more: u64) {
        let count = self.answered.load(Ordering::Relaxed) + more;
        let deadline = Instant::now() + SOON;
        while self.answered.load(Ordering::Relaxed) < count {
            assert!(Instant::now() < deadline, "the clients get no answers");
            std::thread::yield_now();
        }
    }

    /// What failed.
    fn lift(self) -> Vec<String> {
        self.is_over.store(true, Ordering::Relaxed);
        let joined = self.clients.into_iter().map(JoinHandle::join);
        joined.flat_map(|failures| failures.expect("no client panics")).collect()
    }
}

/// OP-3: a successor that shares the port takes over without a failed request.
#[test]
fn a_successor_takes_over() {
    let pod = Pod::proper();
    for driver in DRIVERS {
        let upstream = format!("http://{}", pod.address());
        let flags = ["--shards", "2", "--driver", driver, "--upstream", &upstream];
        let mut proxy = Ringgate::start(&flags);
        let listen = proxy.address().to_string();
        let siege = Siege::lay(proxy.address(), 2);
        siege.wait_for(20);
        for _ in 0..3 {
            let mut all = vec!["--share-port", "--listen", &listen];
            all.extend_from_slice(&flags);
            let successor = Ringgate::start_under(&[], &all);
            siege.wait_for(20);
            proxy.signal(Signal::SIGTERM);
            assert_eq!(proxy.wait().code(), Some(0));
            proxy = successor;
            siege.wait_for(20);
        }
        assert_eq!(siege.lift(), Vec::<String>::new(), "{driver}");
    }
}

/// OP-3: without the flag the port is not shared: one line says so, and the status is 1.
#[test]
fn a_port_in_use_is_refused() {
    let pod = Pod::proper();
    let proxy = Ringgate::before(pod.address(), &[]);
    let upstream = format!("http://{}", pod.address());
    let listen = proxy.address().to_string();
    let ended = run(&["--listen", &listen, "--upstream", &upstream], "");
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    for part in [listen.as_str(), "the port is in use", "--share-port"] {
        assert!(ended.stderr.contains(part), "{ended:?} lacks {part:?}");
    }
}
