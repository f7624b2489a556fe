//! A pod that the test plays itself, step by step, so that the order of events is the test's.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use super::SOON;
use super::pod::{Received, read_request, reset};

/// A pod that accepts and answers when the test says so.
pub(crate) struct PlayedPod {
    listener: TcpListener,
    address: SocketAddr,
}

/// One connection of the proxy to a played pod.
pub(crate) struct Line {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl PlayedPod {
    /// Listens on a free port.
    pub(crate) fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
        // On Linux the time-out of reads bounds accept too.
        let socket = socket2::SockRef::from(&listener);
        socket.set_read_timeout(Some(SOON)).expect("a time-out can be set");
        let address = listener.local_addr().expect("it is bound");
        Self { listener, address }
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The next connection.
    pub(crate) fn accept(&self) -> Line {
        let (stream, _) = self.listener.accept().expect("the proxy connects");
        stream.set_read_timeout(Some(SOON)).expect("a time-out can be set");
        stream.set_write_timeout(Some(SOON)).expect("a time-out can be set");
        stream.set_nodelay(true).expect("an option can be set");
        Line { stream, buffer: Vec::new() }
    }

    /// Asserts that no connection waits to be accepted.
    pub(crate) fn assert_unconnected(&self) {
        self.listener.set_nonblocking(true).expect("an option can be set");
        let accepted = self.listener.accept();
        let is_none = accepted.as_ref();
        let is_none = is_none.is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
        assert!(is_none, "the proxy connected: {accepted:?}");
    }

    /// The next connection and the request that comes on it.
    pub(crate) fn take(&self) -> (Line, Received) {
        let mut line = self.accept();
        let received = line.request();
        (line, received)
    }
}

impl Line {
    /// The next request.
    pub(crate) fn request(&mut self) -> Received {
        read_request(&mut self.stream, &mut self.buffer).expect("a request reaches the pod")
    }

    /// Sends bytes as they are.
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).expect("the proxy takes bytes");
    }

    /// Sends bytes for as long as the proxy reads; whether it took all.
    pub(crate) fn send_if_wanted(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).is_ok()
    }

    /// Waits for the proxy to close, with or without a reset.
    pub(crate) fn wait_for_end(&mut self) {
        let mut bytes = [0; 1024];
        match self.stream.read(&mut bytes) {
            Ok(0) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
            Ok(read) => panic!("more came: {:?}", String::from_utf8_lossy(&bytes[..read])),
            Err(error) => panic!("the proxy keeps the connection: {error}"),
        }
    }

    /// Ends the connection as a killed process does: with a reset.
    pub(crate) fn kill(self) {
        reset(&self.stream);
    }
}
