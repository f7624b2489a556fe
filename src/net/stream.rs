//! One TCP connection, split in a reader that owns its pending read and a writer.
//!
//! Dropping a read future of the ring loses the bytes it may have read. Here the read in flight
//! belongs to the [`Reader`], so whoever awaits it may give up and come back. It also lets a task
//! watch a peer for its end while it does something else, at no extra operation: the read that
//! would see the next request sees the end of the connection too.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use monoio::buf::{IoBuf, VecBuf};
use monoio::io::{
    AsyncReadRent, AsyncWriteRent, AsyncWriteRentExt, OwnedReadHalf, OwnedWriteHalf, Splitable,
};
use monoio::net::TcpStream;

type Completion = (OwnedReadHalf<TcpStream>, io::Result<usize>, Vec<u8>);

enum Reading {
    Rest(OwnedReadHalf<TcpStream>),
    InFlight(Pin<Box<dyn Future<Output = Completion>>>),
    Ended,
}

/// The receiving side of a connection.
pub struct Reader {
    reading: Reading,
}

/// The sending side of a connection.
pub struct Writer {
    half: OwnedWriteHalf<TcpStream>,
}

/// Splits a connection. Small writes leave at once (`TCP_NODELAY`).
///
/// # Errors
///
/// The socket refuses its options.
pub fn split(stream: TcpStream) -> io::Result<(Reader, Writer)> {
    stream.set_nodelay(true)?;
    let (reader, writer) = stream.into_split();
    Ok((Reader { reading: Reading::Rest(reader) }, Writer { half: writer }))
}

/// Opens a connection to a pod.
///
/// # Errors
///
/// What connecting said.
///
/// # Cancel safety
///
/// Cancel safe: a connection that is still opened is closed by the ring.
pub async fn connect(address: SocketAddr) -> io::Result<(Reader, Writer)> {
    split(TcpStream::connect_addr(address).await?)
}

impl Reader {
    /// Starts a read of at most `capacity` bytes unless one is in flight.
    pub fn begin(&mut self, capacity: usize) {
        self.reading = match std::mem::replace(&mut self.reading, Reading::Ended) {
            Reading::Rest(mut half) => Reading::InFlight(Box::pin(async move {
                let (result, bytes) = half.read(Vec::with_capacity(capacity)).await;
                (half, result, bytes)
            })),
            reading @ (Reading::InFlight(_) | Reading::Ended) => reading,
        };
    }

    /// The next bytes: empty at the end of the stream. `capacity` bounds a read that begins here;
    /// one in flight keeps its own.
    pub fn poll_chunk(
        &mut self,
        context: &mut Context<'_>,
        capacity: usize,
    ) -> Poll<io::Result<Vec<u8>>> {
        self.begin(capacity);
        let Reading::InFlight(read) = &mut self.reading else {
            return Poll::Ready(Ok(Vec::new()));
        };
        let Poll::Ready((half, result, mut bytes)) = read.as_mut().poll(context) else {
            return Poll::Pending;
        };
        self.reading = match result {
            Ok(0) | Err(_) => Reading::Ended,
            Ok(_) => Reading::Rest(half),
        };
        Poll::Ready(result.map(|read| {
            bytes.truncate(read);
            bytes
        }))
    }

    /// The next bytes: empty at the end of the stream.
    ///
    /// # Errors
    ///
    /// What reading said.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the read goes on and its bytes come with the next call.
    pub async fn chunk(&mut self, capacity: usize) -> io::Result<Vec<u8>> {
        poll_fn(|context| self.poll_chunk(context, capacity)).await
    }

    /// Whether the peer is silent: neither bytes nor the end of the stream have arrived. Leaves a
    /// read in flight; bytes that had arrived are dropped, as whoever asks has no use for them.
    pub fn is_silent(&mut self, capacity: usize) -> bool {
        self.poll_chunk(&mut Context::from_waker(Waker::noop()), capacity).is_pending()
    }
}

impl Writer {
    /// Sends all of `bytes`, and gives the buffer back.
    ///
    /// # Errors
    ///
    /// What writing said; how much was sent is then unknown.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: the connection must be closed, since part of the bytes may be sent.
    pub async fn send(&mut self, bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        let (result, bytes) = self.half.write_all(bytes).await;
        result.map(|_| bytes)
    }

    /// Sends all of `parts`, vectored, and calls `progress` after each write.
    ///
    /// monoio's own loop (`write_vectored_all`) sends a part from its start again after a short
    /// write into it, so the rest of such a part is sent apart here.
    ///
    /// # Errors
    ///
    /// What writing said; how much was sent is then unknown.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: the connection must be closed, since part of the bytes may be sent.
    pub async fn send_vectored(
        &mut self,
        parts: Vec<Vec<u8>>,
        progress: impl Fn(),
    ) -> io::Result<()> {
        /// Parts of one system call; the kernel takes 1024 at most.
        const PARTS_MAX: usize = 64;
        let mut parts = parts.into_iter().filter(|part| !part.is_empty()).peekable();
        while parts.peek().is_some() {
            let group: Vec<Vec<u8>> = parts.by_ref().take(PARTS_MAX).collect();
            let (result, group) = self.half.writev(VecBuf::from(group)).await;
            let mut sent = result?;
            progress();
            for part in Vec::<Vec<u8>>::from(group) {
                let skipped = sent.min(part.len());
                sent -= skipped;
                if skipped < part.len() {
                    let (result, _) = self.half.write_all(part.slice(skipped..)).await;
                    result?;
                    progress();
                }
            }
        }
        Ok(())
    }

    /// Ends the sending direction, so that the peer sees the end after the last byte.
    ///
    /// # Errors
    ///
    /// The connection is already gone.
    pub async fn shutdown(&mut self) -> io::Result<()> {
        self.half.shutdown().await
    }
}
