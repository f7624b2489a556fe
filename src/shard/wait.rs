//! Deadlines without timers: each connection has one slot, and one sweep a shard looks at them all.
//!
//! A registered timer costs 127 ns and its time-out drops the read it guards. Here a sweep wakes
//! the task, which then gives the connection up itself, so a read is dropped only with its
//! connection.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use slab::Slab;

/// Why a wait ended before what it waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupt {
    /// The deadline passed.
    Expired,
    /// The shard drains, and the wait was an idle one.
    Drained,
}

/// Whether a drain ends a wait at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// Nothing is lost by ending the wait.
    Yes,
    /// Work is under way.
    No,
}

#[derive(Debug)]
struct Slot {
    deadline: Cell<Option<Instant>>,
    idle: Cell<Idle>,
    interrupt: Cell<Option<Interrupt>>,
    waker: RefCell<Option<Waker>>,
}

/// All waits of one shard.
#[derive(Debug, Default)]
pub struct Waits {
    slots: RefCell<Slab<Rc<Slot>>>,
    is_draining: Cell<bool>,
}

/// The wait of one task. Released when dropped.
#[derive(Debug)]
pub struct Wait {
    waits: Rc<Waits>,
    slot: Rc<Slot>,
    key: usize,
}

impl Waits {
    /// A wait for one more task.
    #[must_use]
    pub fn register(self: &Rc<Self>) -> Wait {
        let slot = Rc::new(Slot {
            deadline: Cell::new(None),
            idle: Cell::new(Idle::No),
            interrupt: Cell::new(None),
            waker: RefCell::new(None),
        });
        let key = self.slots.borrow_mut().insert(Rc::clone(&slot));
        Wait { waits: Rc::clone(self), slot, key }
    }

    /// Wakes each task whose deadline passed. Costs a look at every slot.
    pub fn sweep(&self, now: Instant) {
        for (_, slot) in &*self.slots.borrow() {
            if slot.deadline.get().is_some_and(|deadline| deadline <= now) {
                slot.interrupt(Interrupt::Expired);
            }
        }
    }

    /// Ends the idle waits, those of now and those to come.
    pub fn drain(&self) {
        self.is_draining.set(true);
        for (_, slot) in &*self.slots.borrow() {
            if slot.idle.get() == Idle::Yes {
                slot.interrupt(Interrupt::Drained);
            }
        }
    }

    /// Ends every wait, idle or not: the shard is out of time.
    pub fn interrupt_all(&self) {
        for (_, slot) in &*self.slots.borrow() {
            if slot.deadline.get().is_some() {
                slot.interrupt(Interrupt::Drained);
            }
        }
    }
}

impl Slot {
    fn interrupt(&self, interrupt: Interrupt) {
        self.interrupt.set(Some(interrupt));
        self.deadline.set(None);
        let waker = self.waker.borrow_mut().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Wait {
    /// Polls `poll` until it is ready, the deadline passes or, in an idle wait, the shard drains.
    ///
    /// # Errors
    ///
    /// The [`Interrupt`]; what `poll` had begun goes on where it is owned.
    ///
    /// # Cancel safety
    ///
    /// As safe as what `poll` polls.
    pub async fn until<T>(
        &self,
        deadline: Instant,
        idle: Idle,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Result<T, Interrupt> {
        self.slot.deadline.set(Some(deadline));
        self.slot.idle.set(idle);
        self.slot.interrupt.set(None);
        if idle == Idle::Yes && self.waits.is_draining.get() {
            self.slot.interrupt.set(Some(Interrupt::Drained));
        }
        let outcome = poll_fn(|context| {
            if let Poll::Ready(value) = poll(context) {
                return Poll::Ready(Ok(value));
            }
            if let Some(interrupt) = self.slot.interrupt.get() {
                return Poll::Ready(Err(interrupt));
            }
            let mut waker = self.slot.waker.borrow_mut();
            if !waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
                *waker = Some(context.waker().clone());
            }
            Poll::Pending
        })
        .await;
        self.slot.deadline.set(None);
        self.slot.idle.set(Idle::No);
        outcome
    }

    /// Moves the deadline of the wait under way, after progress.
    pub fn extend(&self, deadline: Instant) {
        self.slot.deadline.set(Some(deadline));
    }

    /// Awaits `future` until the deadline.
    ///
    /// # Errors
    ///
    /// [`Interrupt::Expired`]; the future is dropped, and with it what it lent to the ring.
    ///
    /// # Cancel safety
    ///
    /// As safe as the future.
    pub async fn complete<T>(
        &self,
        deadline: Instant,
        future: impl Future<Output = T>,
    ) -> Result<T, Interrupt> {
        let mut future = pin!(future);
        self.until(deadline, Idle::No, |context| future.as_mut().poll(context)).await
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        self.waits.slots.borrow_mut().remove(self.key);
    }
}
