//! Carries messages between shards: a bounded queue each, and one byte through a socket pair to
//! wake a shard that sleeps in its event loop.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::poll_fn;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, Waker};
use std::time::Instant;

use crossbeam_queue::ArrayQueue;
use monoio::io::AsyncReadRent;

use super::message::{Answer, Message, Question, Ticket};
use super::wait::Wait;
use crate::ids::ShardId;
use crate::limits::MESH_QUEUE_MAX;

/// Why a question has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// The queue of the other shard is full.
    #[error("the queue of the shard is full")]
    Full,
    /// No answer came in time.
    #[error("the shard did not answer in time")]
    Late,
}

/// The sending end of one shard's queue. Any thread may hold one.
#[derive(Clone, Debug)]
pub struct Mailbox {
    queue: Arc<ArrayQueue<Message>>,
    is_woken: Arc<AtomicBool>,
    wake: Arc<UnixStream>,
}

/// The receiving end. Belongs to one shard.
#[derive(Debug)]
pub struct Inbox {
    queue: Arc<ArrayQueue<Message>>,
    is_woken: Arc<AtomicBool>,
    woken: UnixStream,
}

/// A queue for one shard.
///
/// # Errors
///
/// Descriptors ran out.
pub fn channel() -> io::Result<(Mailbox, Inbox)> {
    let (wake, woken) = UnixStream::pair()?;
    wake.set_nonblocking(true)?;
    woken.set_nonblocking(true)?;
    let queue = Arc::new(ArrayQueue::new(MESH_QUEUE_MAX));
    let is_woken = Arc::new(AtomicBool::new(false));
    let mailbox = Mailbox {
        queue: Arc::clone(&queue),
        is_woken: Arc::clone(&is_woken),
        wake: Arc::new(wake),
    };
    Ok((mailbox, Inbox { queue, is_woken, woken }))
}

impl Mailbox {
    /// Queues a message.
    ///
    /// # Errors
    ///
    /// [`AskError::Full`]; the message is dropped.
    pub fn send(&self, message: Message) -> Result<(), AskError> {
        self.queue.push(message).map_err(|_| AskError::Full)?;
        // The shard clears the flag before it empties the queue, so a message queued after that
        // finds the flag down and wakes it again.
        if !self.is_woken.swap(true, Ordering::AcqRel)
            && let Err(error) = (&*self.wake).write(&[1])
        {
            tracing::debug!(%error, "a shard that ends was not woken");
        }
        Ok(())
    }
}

impl Inbox {
    /// Hands each message to `handle` as it comes. Never returns while the shard lives.
    ///
    /// # Errors
    ///
    /// The socket pair failed.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: run it as a task.
    pub async fn run(self, mut handle: impl FnMut(Message)) -> io::Result<()> {
        let mut woken = monoio::net::UnixStream::from_std(self.woken)?;
        let mut bytes = Vec::with_capacity(64);
        loop {
            let (result, lent) = woken.read(bytes).await;
            bytes = lent;
            if result? == 0 {
                return Ok(());
            }
            self.is_woken.store(false, Ordering::Release);
            while let Some(message) = self.queue.pop() {
                handle(message);
            }
        }
    }
}

#[derive(Debug)]
enum Asked {
    Waiting(Option<Waker>),
    Answered(Answer),
}

/// One shard's view of all shards.
#[derive(Debug)]
pub struct Mesh {
    own: ShardId,
    shards: Vec<Mailbox>,
    asked: RefCell<HashMap<Ticket, Asked>>,
    tickets: Cell<u64>,
}

/// Forgets a question when its asker is gone.
struct Pending<'a> {
    mesh: &'a Mesh,
    ticket: Ticket,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.mesh.asked.borrow_mut().remove(&self.ticket);
    }
}

impl Mesh {
    /// The view of shard `own`; `shards` are all mailboxes in the order of their ids.
    #[must_use]
    pub fn new(own: ShardId, shards: Vec<Mailbox>) -> Self {
        Self { own, shards, asked: RefCell::default(), tickets: Cell::new(0) }
    }

    /// This shard.
    #[must_use]
    pub fn own(&self) -> ShardId {
        self.own
    }

    /// How many shards there are.
    #[must_use]
    pub fn shards_count(&self) -> usize {
        self.shards.len()
    }

    /// Asks another shard.
    ///
    /// # Errors
    ///
    /// See [`AskError`]. A late answer is dropped; what was asked may have been done.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the answer is dropped, what was asked may have been done.
    pub async fn ask(
        &self,
        shard: ShardId,
        question: Question,
        wait: &Wait,
        deadline: Instant,
    ) -> Result<Answer, AskError> {
        let ticket = Ticket(self.tickets.get());
        self.tickets.set(ticket.0.wrapping_add(1));
        let mailbox = self.shards.get(usize::from(shard.0)).ok_or(AskError::Full)?;
        self.asked.borrow_mut().insert(ticket, Asked::Waiting(None));
        let pending = Pending { mesh: self, ticket };
        mailbox.send(Message::Ask { from: self.own, ticket, question })?;
        let answer = poll_fn(|context| match pending.mesh.asked.borrow_mut().get_mut(&ticket) {
            Some(Asked::Answered(answer)) => Poll::Ready(*answer),
            Some(Asked::Waiting(waker)) => {
                *waker = Some(context.waker().clone());
                Poll::Pending
            }
            None => Poll::Pending,
        });
        wait.complete(deadline, answer).await.map_err(|_| AskError::Late)
    }

    /// Sends the answer to a question of another shard. If its queue is full the asker's deadline
    /// ends the wait.
    pub fn reply(&self, shard: ShardId, ticket: Ticket, answer: Answer) {
        let mailbox = self.shards.get(usize::from(shard.0));
        if let Some(Err(error)) = mailbox.map(|to| to.send(Message::Tell { ticket, answer })) {
            tracing::warn!(%error, shard = shard.0, "an answer to another shard was dropped");
        }
    }

    /// Takes the answer to a question of this shard.
    pub fn handle_tell(&self, ticket: Ticket, answer: Answer) {
        let waker = match self.asked.borrow_mut().get_mut(&ticket) {
            Some(asked) => match std::mem::replace(asked, Asked::Answered(answer)) {
                Asked::Waiting(waker) => waker,
                Asked::Answered(_) => None,
            },
            None => None,
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
