//! Any bytes from any peer: a refusal or a close, never a panic, a hang or an end of the process
//! (LM-2, LM-3, HT-1). Requests and answers are drawn from a seed and damaged; `SEED` replays one.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};

use nix::sys::signal::Signal;

use crate::support::SOON;
use crate::support::pod::Pod;
use crate::support::process::Ringgate;

const REQUESTS: [&[u8]; 6] = [
    b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
      Content-Length: 40\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}",
    b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
      Transfer-Encoding: chunked\r\n\r\n\
      28\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r\n0\r\n\r\n",
    b"GET /mcp HTTP/1.1\r\nHost: localhost\r\nMCP-Protocol-Version: 2025-11-25\r\n\r\n",
    b"GET /x HTTP/1.0\r\n\r\n",
    b"POST /p HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n\
      Content-Length: 5\r\n\r\nhello",
    b"OPTIONS / HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\n\
      Access-Control-Request-Method: POST\r\n\r\n",
];

const ANSWERS: [&[u8]; 6] = [
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 36\r\n\r\n\
      {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}",
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n\
      24\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n\
      2c\r\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n\
      id: 1\n: x\n\ndata: {\"jsonrpc\":\"2.0\",\ndata: \"id\":1,\"result\":{}}\n\n",
    b"HTTP/1.1 100 Continue\r\n\r\n\
      HTTP/1.1 302 Found\r\nLocation: //a/\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\nnope",
];

/// A small generator (splitmix64).
struct Prng(u64);

impl Prng {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((mixed ^ (mixed >> 31)) % bound.max(1) as u64).expect("it is below a usize")
    }

    /// One of `messages`, damaged in up to four places.
    fn damaged(&mut self, messages: &[&[u8]]) -> Vec<u8> {
        let mut bytes = messages[self.below(messages.len())].to_vec();
        for _ in 0..self.below(5) {
            let at = self.below(bytes.len());
            let part: &[u8] = match self.below(8) {
                0 => b"\r\n",
                1 => b"\n",
                2 => b"\xff",
                3 => b"[[[[[[[[{{{{",
                4 => &[b'A'; 16_384],
                5 => {
                    bytes.truncate(at);
                    b""
                }
                6 => {
                    bytes.drain(at..bytes.len().min(at + 5));
                    b""
                }
                _ => &[b' ', b':', b'0', b'"'][self.below(4)..][..1],
            };
            let at = at.min(bytes.len());
            bytes.splice(at..at, part.iter().copied());
        }
        bytes
    }
}

fn seed() -> u64 {
    std::env::var("SEED").map_or(1, |seed| seed.parse().expect("SEED is a number"))
}

/// Sends damaged requests on one connection and waits for its end.
fn converse(proxy: SocketAddr, prng: &mut Prng, seed: u64) {
    let mut stream = TcpStream::connect(proxy).expect("the proxy accepts");
    stream.set_read_timeout(Some(SOON)).expect("a time-out can be set");
    for _ in 0..=prng.below(3) {
        // The proxy may have closed on what came before.
        if stream.write_all(&prng.damaged(&REQUESTS)).is_err() {
            return;
        }
    }
    if prng.below(3) == 0 && stream.shutdown(Shutdown::Write).is_err() {
        return;
    }
    let mut bytes = [0; 4096];
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                panic!("SEED={seed}: a connection neither answered nor ended")
            }
            Err(_) => return,
        }
    }
}

/// LM-2, LM-3, HT-1: damaged requests meet damaged answers; every connection ends in time, nothing
/// panics, and the process serves on and ends in order.
#[test]
fn damaged_bytes_end_in_refusals() {
    let seed = seed();
    let draws = AtomicU64::new(seed << 32);
    let pod = Pod::scripted(move |_, stream| {
        let mut prng = Prng(draws.fetch_add(1, Ordering::Relaxed));
        stream.write_all(&prng.damaged(&ANSWERS)).is_ok() && prng.below(3) > 0
    });
    let short = ["--first-byte-timeout", "--upstream-read-timeout", "--stream-idle"];
    let short = short.iter().chain(&["--head-timeout", "--body-timeout", "--client-idle"]);
    let arguments: Vec<&str> =
        short.flat_map(|flag| [*flag, "300ms"]).chain(["--log", "info"]).collect();
    let mut proxy = Ringgate::before(pod.address(), &arguments);
    std::thread::scope(|scope| {
        for worker in 0..16 {
            let proxy = proxy.address();
            scope.spawn(move || {
                let mut prng = Prng(seed * 1_000 + worker);
                for _ in 0..40 {
                    converse(proxy, &mut prng, seed);
                }
            });
        }
    });
    proxy.signal(Signal::SIGTERM);
    assert!(proxy.wait().success(), "the process ends in order");
    proxy.wait_for_line("label=\"exchanges\"");
    let said = proxy.said();
    assert!(!said.contains("label=\"panics\""), "SEED={seed}: {said}");
}
