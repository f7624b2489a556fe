//! A raw client: sends the bytes it is given and takes answers apart.

use std::io::{Error, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use socket2::{Domain, Socket, Type};

use super::SOON;

/// A connection to the proxy.
pub(crate) struct Client {
    stream: TcpStream,
    received: Vec<u8>,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    /// The first value of a field.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (field, value) = line.split_once(':')?;
            field.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// The reason of the fault that the proxy answered with.
    pub(crate) fn fault(&self) -> Option<&str> {
        self.value("X-Ringgate-Fault")
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body)
            .unwrap_or_else(|error| panic!("{error} in {:?}", self.body))
    }
}

impl Client {
    /// Connects.
    pub(crate) fn connect(address: SocketAddr) -> Self {
        Self::over(TcpStream::connect_timeout(&address, SOON).expect("the proxy accepts"))
    }

    /// Connects from an address of the loopback network.
    pub(crate) fn connect_from(source: Ipv4Addr, address: SocketAddr) -> Self {
        let socket = socket();
        socket.bind(&SocketAddr::from((source, 0)).into()).expect("it is of this machine");
        socket.connect(&address.into()).expect("the proxy accepts");
        Self::over(socket.into())
    }

    /// Connects with a small receive buffer, so that the proxy soon waits for a client that does
    /// not read.
    pub(crate) fn connect_narrow(address: SocketAddr) -> Self {
        let socket = socket();
        socket.set_recv_buffer_size(4096).expect("an option can be set");
        socket.connect(&address.into()).expect("the proxy accepts");
        Self::over(socket.into())
    }

    fn over(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(SOON)).expect("a time-out can be set");
        stream.set_write_timeout(Some(SOON)).expect("a time-out can be set");
        stream.set_nodelay(true).expect("an option can be set");
        Self { stream, received: Vec::new() }
    }

    /// Sends bytes as they are.
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).expect("the proxy takes bytes");
    }

    /// Sends bytes that the proxy may not want any more.
    pub(crate) fn send_if_wanted(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).is_ok()
    }

    /// Closes the sending side.
    pub(crate) fn finish(&self) {
        self.stream.shutdown(Shutdown::Write).expect("the connection is open");
    }

    /// Reads one answer to a request of any method but HEAD.
    pub(crate) fn answer(&mut self) -> Answer {
        let head = self.head();
        let has_body = !matches!(head.status, 204 | 304) && 200 <= head.status;
        let length = head.value("Content-Length").map(|value| value.parse().expect("a length"));
        let body = match (has_body, length) {
            (false, _) => Vec::new(),
            (true, Some(length)) => self.take(length),
            (true, None) if head.value("Transfer-Encoding").is_some() => self.chunks(),
            (true, None) => self.rest(),
        };
        Answer { body: String::from_utf8_lossy(&body).into_owned(), ..head }
    }

    /// Reads the head of an answer.
    pub(crate) fn head(&mut self) -> Answer {
        let end = loop {
            let found = self.received.windows(4).position(|window| window == b"\r\n\r\n");
            if let Some(end) = found {
                break end + 4;
            }
            assert!(self.fill(), "the connection ended before a head: {:?}", self.text());
        };
        let head = String::from_utf8(self.take(end)).expect("a head is text");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.unwrap_or_else(|| panic!("no status in {head:?}"));
        Answer { status, head, body: String::new() }
    }

    /// Reads one chunk; empty at the end of the body.
    pub(crate) fn chunk(&mut self) -> Vec<u8> {
        let line = loop {
            if let Some(end) = self.received.windows(2).position(|window| window == b"\r\n") {
                break self.take(end + 2);
            }
            assert!(self.fill(), "the connection ended inside a body");
        };
        let line = String::from_utf8_lossy(&line).trim().to_owned();
        let size = usize::from_str_radix(&line, 16).expect("a chunk size");
        let mut chunk = self.take(size + 2);
        chunk.truncate(size);
        chunk
    }

    /// Whether the proxy has closed, once everything it sent was read.
    pub(crate) fn is_closed(&mut self) -> bool {
        self.received.is_empty() && !self.fill()
    }

    /// Waits this long for the proxy to say something or to close.
    pub(crate) fn hears_within(&self, time: Duration) -> bool {
        let set = |time| {
            self.stream.set_read_timeout(Some(time)).expect("a time-out can be set");
        };
        set(time);
        let peeked = self.stream.peek(&mut [0]);
        set(SOON);
        !peeked.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    }

    /// Whether nothing comes for so long.
    pub(crate) fn is_silent_for(&mut self, time: Duration) -> bool {
        let limit = |stream: &TcpStream, time| {
            stream.set_read_timeout(Some(time)).expect("a time-out can be set");
        };
        limit(&self.stream, time);
        let peeked = self.stream.peek(&mut [0]);
        limit(&self.stream, SOON);
        let is_late = |error: &Error| error.kind() == ErrorKind::WouldBlock;
        self.received.is_empty() && peeked.as_ref().is_err_and(is_late)
    }

    /// Reads to the end of the connection.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        while self.fill() {}
        std::mem::take(&mut self.received)
    }

    fn chunks(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            let chunk = self.chunk();
            if chunk.is_empty() {
                return body;
            }
            body.extend_from_slice(&chunk);
        }
    }

    fn take(&mut self, length: usize) -> Vec<u8> {
        while self.received.len() < length {
            assert!(self.fill(), "the connection ended inside an answer: {:?}", self.text());
        }
        self.received.drain(..length).collect()
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.received).into_owned()
    }

    /// Reads more; false at the end of the connection.
    fn fill(&mut self) -> bool {
        let mut bytes = [0; 16 * 1024];
        match self.stream.read(&mut bytes) {
            Ok(0) => false,
            Ok(read) => {
                self.received.extend_from_slice(&bytes[..read]);
                true
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => false,
            Err(error) => panic!("nothing came: {error}; so far {:?}", self.text()),
        }
    }
}

fn socket() -> Socket {
    Socket::new(Domain::IPV4, Type::STREAM, None).expect("sockets can be made")
}

/// One request without a body, with these field lines (each ending in CRLF) added.
pub(crate) fn bare(method: &str, fields: &str) -> String {
    format!("{method} /mcp HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n")
}

/// One POST of a JSON body, with these field lines (each ending in CRLF) added.
pub(crate) fn post(body: &str, fields: &str) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\n{fields}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Sends one request on a connection of its own and reads the answer.
pub(crate) fn exchange(address: SocketAddr, request: impl AsRef<[u8]>) -> Answer {
    let mut client = Client::connect(address);
    client.send(request);
    client.answer()
}
