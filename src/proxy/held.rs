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
    pub fn poll_grow(&mut self, context: &mut Context<'_>, bytes: u64) -> Poll<()> {
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

    /// Gives `bytes` back, or all if there are fewer.
    pub fn shrink(&mut self, bytes: u64) {
        let bytes = bytes.min(self.bytes);
        if bytes == 0 {
            return;
        }
        self.bytes -= bytes;
        self.budget.free.set(self.budget.free.get() + bytes);
        // All look again: which of them fits hangs on how much each wants.
        let waiting = std::mem::take(&mut *self.budget.waiting.borrow_mut());
        for waker in waiting {
            waker.wake();
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.shrink(self.bytes);
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
        assert!(first.poll_grow(&mut context, 70).is_ready());
        let mut second = budget.reservation();
        assert!(second.poll_grow(&mut context, 40).is_pending());
        assert!(second.poll_grow(&mut context, 30).is_ready());
        first.shrink(50);
        assert!(second.poll_grow(&mut context, 50).is_ready());
        drop(first);
        assert!(second.poll_grow(&mut context, 20).is_ready());
        drop(second);
        assert_eq!(budget.free_bytes(), 100);
    }
}
