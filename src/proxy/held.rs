//! The budget of one shard for bytes that are held until they are checked (RV-8).
//!
//! When it is used up, bodies wait: their peer is not read. One that waits too long is refused.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// The budget.
#[derive(Debug)]
pub struct Budget {
    free: Cell<u64>,
    waiting: RefCell<VecDeque<Waker>>,
}

/// Bytes taken from a budget; given back when dropped.
#[derive(Debug)]
pub struct Reservation {
    budget: Rc<Budget>,
    bytes: u64,
}

impl Budget {
    /// A budget of `bytes`.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        Self { free: Cell::new(bytes), waiting: RefCell::default() }
    }

    /// An empty reservation.
    #[must_use]
    pub fn reservation(self: &Rc<Self>) -> Reservation {
        Reservation { budget: Rc::clone(self), bytes: 0 }
    }

    /// How many bytes are free.
    #[must_use]
    pub fn free_bytes(&self) -> u64 {
        self.free.get()
    }
}

impl Reservation {
    /// Takes `bytes` more, once there are so many.
    fn poll_grow(&mut self, context: &mut Context<'_>, bytes: u64) -> Poll<()> {
        let Some(free) = self.budget.free.get().checked_sub(bytes) else {
            let mut waiting = self.budget.waiting.borrow_mut();
            if !waiting.iter().any(|waker| waker.will_wake(context.waker())) {
                waiting.push_back(context.waker().clone());
            }
            return Poll::Pending;
        };
        self.budget.free.set(free);
        self.bytes += bytes;
        Poll::Ready(())
    }

    /// Takes what is missing to `bytes`, once there is so much, or gives back what is too much.
    pub fn poll_hold(&mut self, context: &mut Context<'_>, bytes: u64) -> Poll<()> {
        if let Some(missing) = bytes.checked_sub(self.bytes) {
            return self.poll_grow(context, missing);
        }
        self.shrink_to(bytes);
        Poll::Ready(())
    }

    /// Gives back what is more than `bytes`.
    pub fn shrink_to(&mut self, bytes: u64) {
        let surplus = self.bytes.saturating_sub(bytes);
        if surplus == 0 {
            return;
        }
        self.bytes -= surplus;
        self.budget.free.set(self.budget.free.get() + surplus);
        // All look again: which of them fits hangs on how much each wants.
        let waiting = std::mem::take(&mut *self.budget.waiting.borrow_mut());
        for waker in waiting {
            waker.wake();
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RV-8: what is over the budget waits, and goes on when bytes come back.
    #[test]
    fn a_full_budget_waits() {
        let budget = Rc::new(Budget::new(100));
        let mut context = Context::from_waker(Waker::noop());
        let mut first = budget.reservation();
        assert!(first.poll_hold(&mut context, 70).is_ready());
        let mut second = budget.reservation();
        assert!(second.poll_hold(&mut context, 40).is_pending());
        assert!(second.poll_hold(&mut context, 30).is_ready());
        first.shrink_to(20);
        assert!(second.poll_hold(&mut context, 80).is_ready());
        assert!(first.poll_hold(&mut context, 21).is_pending());
        assert!(first.poll_hold(&mut context, 10).is_ready());
        drop(first);
        assert!(second.poll_hold(&mut context, 100).is_ready());
        drop(second);
        assert_eq!(budget.free_bytes(), 100);
    }
}
