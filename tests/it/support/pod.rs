//! A pod that answers by script, in raw bytes, and tells what it received.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};

use socket2::{Domain, Socket, Type};

use super::SOON;

/// A request as it reached the pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Received {
    /// The first value of a field.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (field, value) = line.split_once(':')?;
            field.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// The method.
    pub(crate) fn method(&self) -> &str {
        self.head.split(' ').next().expect("a request line")
    }

    /// The raw token of a numeric id in the body.
    pub(crate) fn id(&self) -> u64 {
        let message: serde_json::Value = serde_json::from_str(&self.body).expect("a JSON body");
        message["id"].as_u64().expect("a numeric id")
    }
}

/// A running pod.
pub(crate) struct Pod {
    address: SocketAddr,
    received: Receiver<Received>,
    connections_count: Arc<AtomicUsize>,
}

/// What a script does with a request: answers on the stream. The connection is kept if it returns
/// true.
type Script = dyn Fn(&Received, &mut TcpStream) -> bool + Send + Sync;

impl Pod {
    /// A pod that runs `script` for each request.
    pub(crate) fn scripted(
        script: impl Fn(&Received, &mut TcpStream) -> bool + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
        let address = listener.local_addr().expect("it is bound");
        let script: Arc<Script> = Arc::new(script);
        let (sender, received) = mpsc::channel();
        let connections_count = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections_count);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                count.fetch_add(1, Ordering::SeqCst);
                let (script, sender) = (Arc::clone(&script), sender.clone());
                std::thread::spawn(move || serve(stream, &*script, &sender));
            }
        });
        Self { address, received, connections_count }
    }

    /// A pod that answers each request with these bytes and keeps the connection.
    pub(crate) fn answering(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        Self::scripted(move |_, stream| stream.write_all(&bytes).is_ok())
    }

    /// A pod that answers each JSON-RPC request properly, with its id and its own port as result.
    pub(crate) fn proper() -> Self {
        Self::scripted(answer_properly)
    }

    /// A proper pod that answers one request for each word it is given.
    pub(crate) fn on_word() -> (Self, Sender<()>) {
        let (word, given) = mpsc::channel();
        #[expect(clippy::disallowed_types, reason = "the connections of a pod are threads")]
        let given = std::sync::Mutex::new(given);
        let pod = Self::scripted(move |received, stream| {
            let given = given.lock().expect("no script panics").recv();
            given.is_ok() && answer_properly(received, stream)
        });
        (pod, word)
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many connections it has accepted.
    pub(crate) fn connections_count(&self) -> usize {
        self.connections_count.load(Ordering::SeqCst)
    }

    /// The next request that reached it.
    pub(crate) fn received(&self) -> Received {
        self.received.recv_timeout(SOON).expect("a request reaches the pod")
    }

    /// The next request, if one has reached it already.
    pub(crate) fn try_received(&self) -> Option<Received> {
        self.received.try_recv().ok()
    }

    /// Asserts that no request has reached it that was not taken with `received`.
    pub(crate) fn assert_untouched(&self) {
        let received = self.received.try_recv();
        assert!(received.is_err(), "the pod received {received:?}");
    }
}

/// A port that refuses connections, and that nobody else gets meanwhile: it is bound, and does not
/// listen.
pub(crate) struct ClosedPort(Socket);

impl ClosedPort {
    /// Takes a free port.
    pub(crate) fn open() -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("sockets can be made");
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        socket.bind(&address.into()).expect("loopback has free ports");
        Self(socket)
    }

    /// Where nobody listens.
    pub(crate) fn address(&self) -> SocketAddr {
        let Self(socket) = self;
        let address = socket.local_addr().expect("it is bound");
        address.as_socket().expect("it is a port")
    }
}

/// An answer of JSON.
pub(crate) fn json(body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// The head of an event stream in chunks.
pub(crate) const EVENTS: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

/// One chunk.
pub(crate) fn chunk(data: &str) -> String {
    format!("{:x}\r\n{data}\r\n", data.len())
}

/// Ends a connection so that the other side sees a reset.
pub(crate) fn reset(stream: &TcpStream) {
    let socket = socket2::SockRef::from(stream);
    socket.set_linger(Some(std::time::Duration::ZERO)).expect("an option can be set");
}

fn answer_properly(received: &Received, stream: &mut TcpStream) -> bool {
    let port = stream.local_addr().expect("it is connected").port();
    let id = serde_json::from_str::<serde_json::Value>(&received.body)
        .map_or(serde_json::Value::Null, |message| message["id"].clone());
    let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"port":{port}}}}}"#);
    stream.write_all(json(&body).as_bytes()).is_ok()
}

fn serve(mut stream: TcpStream, script: &Script, sender: &Sender<Received>) {
    stream.set_nodelay(true).expect("an option can be set");
    let mut buffer = Vec::new();
    while let Some(received) = read_request(&mut stream, &mut buffer) {
        // The test may not care for what arrives after its end.
        if sender.send(received.clone()).is_err() || !script(&received, &mut stream) {
            break;
        }
    }
    stream.shutdown(Shutdown::Write).unwrap_or_default();
}

/// Reads one request; `None` at the end of the connection.
pub(super) fn read_request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Received> {
    let end = loop {
        if let Some(end) = find(buffer, b"\r\n\r\n") {
            break end + 4;
        }
        fill(stream, buffer)?;
    };
    let head: Vec<u8> = buffer.drain(..end).collect();
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut received = Received { head, body: String::new() };
    let body = if received.value("Transfer-Encoding").is_some() {
        read_chunks(stream, buffer)?
    } else {
        let length = received.value("Content-Length").map_or(0, |n| n.parse().expect("a length"));
        take(stream, buffer, length)?
    };
    received.body = String::from_utf8_lossy(&body).into_owned();
    Some(received)
}

fn read_chunks(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = loop {
            if let Some(end) = find(buffer, b"\r\n") {
                break end + 2;
            }
            fill(stream, buffer)?;
        };
        let line = String::from_utf8(take(stream, buffer, end)?).expect("a chunk line is text");
        let size = usize::from_str_radix(line.trim(), 16).expect("a chunk size");
        body.extend(take(stream, buffer, size + 2)?.into_iter().take(size));
        if size == 0 {
            return Some(body);
        }
    }
}

fn take(stream: &mut TcpStream, buffer: &mut Vec<u8>, length: usize) -> Option<Vec<u8>> {
    while buffer.len() < length {
        fill(stream, buffer)?;
    }
    Some(buffer.drain(..length).collect())
}

fn fill(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<()> {
    let mut bytes = [0; 16 * 1024];
    let read = stream.read(&mut bytes).ok().filter(|read| *read > 0)?;
    buffer.extend_from_slice(&bytes[..read]);
    Some(())
}

fn find(buffer: &[u8], part: &[u8]) -> Option<usize> {
    buffer.windows(part.len()).position(|window| window == part)
}
