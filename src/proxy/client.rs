//! The connection to one client, as an exchange sees it.

use std::net::IpAddr;
use std::task::{Context, Poll};
use std::time::Instant;

use super::held::Reservation;
use crate::limits::HEAD_READ_BYTES;
use crate::net::stream::{Reader, Writer};
use crate::shard::wait::{Idle, Interrupt, Wait};

/// Whether a client that closes ends the exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watch {
    /// It does (RC-6).
    Yes,
    /// It announced its last request, which is no MCP call, and may have closed its sending side
    /// only; or its body is still to come, and reading that will tell.
    No,
}

/// Whether part of the request at hand is still to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    /// The next byte begins the next request.
    Nothing,
    /// The next byte belongs to a body, so the connection can't carry another request.
    Body,
}

/// A client connection.
pub struct Client {
    /// Its sending side, seen from here.
    pub writer: Writer,
    /// Its receiving side.
    pub inbound: Inbound,
    /// Its deadline.
    pub wait: Wait,
    /// Where the client is.
    pub address: IpAddr,
    /// The same as text, which every request to a pod carries.
    pub address_text: String,
    /// Whether the request at hand was read to its end.
    pub unread: Unread,
}

/// What comes from a client.
pub struct Inbound {
    reader: Reader,
    /// What was received and not yet taken.
    inbox: Vec<u8>,
    has_ended: bool,
}

/// Why nothing more comes from a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiveError {
    /// It closed, or the connection broke.
    Gone,
    /// The deadline passed.
    Late,
    /// The shard drains.
    Drained,
}

impl Client {
    /// A client that has just connected.
    #[must_use]
    pub fn new(reader: Reader, writer: Writer, wait: Wait, address: IpAddr) -> Self {
        Self {
            writer,
            wait,
            address,
            address_text: address.to_string(),
            inbound: Inbound { reader, inbox: Vec::new(), has_ended: false },
            unread: Unread::Nothing,
        }
    }

    /// The next bytes from the client, never empty.
    ///
    /// # Errors
    ///
    /// See [`ReceiveError`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: nothing that arrives is lost.
    pub async fn receive(
        &mut self,
        deadline: Instant,
        idle: Idle,
        capacity: usize,
    ) -> Result<Vec<u8>, ReceiveError> {
        let Self { wait, inbound, .. } = self;
        match wait.until(deadline, idle, |context| inbound.poll_receive(context, capacity)).await {
            Ok(Some(bytes)) => Ok(bytes),
            Ok(None) => Err(ReceiveError::Gone),
            Err(Interrupt::Expired) => Err(ReceiveError::Late),
            Err(Interrupt::Drained) => Err(ReceiveError::Drained),
        }
    }

    /// Waits until the budget has room for the reservation to hold `bytes`.
    ///
    /// # Errors
    ///
    /// [`ReceiveError::Gone`] if the client closes meanwhile and is watched, or
    /// [`ReceiveError::Late`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn reserve(
        &mut self,
        reservation: &mut Reservation,
        bytes: u64,
        watch: Watch,
        deadline: Instant,
    ) -> Result<(), ReceiveError> {
        let Self { wait, inbound, .. } = self;
        let granted = wait
            .until(deadline, Idle::No, |context| {
                if reservation.poll_hold(context, bytes).is_ready() {
                    return Poll::Ready(Ok(()));
                }
                inbound.poll_watched(context, watch).map(|()| Err(ReceiveError::Gone))
            })
            .await;
        granted.unwrap_or(Err(ReceiveError::Late))
    }

    /// Sends all of `bytes` by `deadline`.
    ///
    /// # Errors
    ///
    /// [`ReceiveError::Gone`] or [`ReceiveError::Late`]; the connection must be closed.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: the connection must be closed.
    pub async fn send(&mut self, bytes: Vec<u8>, deadline: Instant) -> Result<(), ReceiveError> {
        self.send_back(bytes, deadline).await.map(drop)
    }

    /// As [`send`](Self::send), and gives the buffer back.
    ///
    /// # Errors
    ///
    /// As there.
    ///
    /// # Cancel safety
    ///
    /// As there.
    pub async fn send_back(
        &mut self,
        bytes: Vec<u8>,
        deadline: Instant,
    ) -> Result<Vec<u8>, ReceiveError> {
        match self.wait.complete(deadline, self.writer.send(bytes)).await {
            Ok(Ok(bytes)) => Ok(bytes),
            Ok(Err(_)) => Err(ReceiveError::Gone),
            Err(_) => Err(ReceiveError::Late),
        }
    }
}

impl Inbound {
    /// Puts back what belongs to the next request, before what was received since: watching the
    /// client may have read on.
    pub fn put_back(&mut self, mut bytes: Vec<u8>) {
        bytes.append(&mut self.inbox);
        self.inbox = bytes;
    }

    /// The next bytes, never empty; `None` when the client has closed or the connection broke.
    pub fn poll_receive(
        &mut self,
        context: &mut Context<'_>,
        capacity: usize,
    ) -> Poll<Option<Vec<u8>>> {
        if !self.inbox.is_empty() {
            return Poll::Ready(Some(std::mem::take(&mut self.inbox)));
        }
        if self.has_ended {
            return Poll::Ready(None);
        }
        match self.reader.poll_chunk(context, capacity) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(bytes)) if !bytes.is_empty() => Poll::Ready(Some(bytes)),
            Poll::Ready(_) => {
                self.has_ended = true;
                Poll::Ready(None)
            }
        }
    }

    /// Ready once the client has closed, if it is watched.
    pub fn poll_watched(&mut self, context: &mut Context<'_>, watch: Watch) -> Poll<()> {
        match watch {
            Watch::Yes => self.poll_gone(context),
            Watch::No => Poll::Pending,
        }
    }

    /// Ready once the client has closed. A client that sends its next request early is watched no
    /// longer: what it sent waits in the inbox, and no more is read.
    pub fn poll_gone(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.inbox.is_empty() {
            match self.poll_receive(context, HEAD_READ_BYTES) {
                Poll::Ready(Some(bytes)) => self.inbox = bytes,
                Poll::Ready(None) => return Poll::Ready(()),
                Poll::Pending => {}
            }
        }
        Poll::Pending
    }
}
