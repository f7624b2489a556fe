//! The gate of one shard: every task holds a pass, and the shard ends when all are back.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Poll, Waker};

/// Counts the tasks of a shard.
#[derive(Debug, Default)]
pub struct Gate {
    inside: Cell<usize>,
    waiting: RefCell<Option<Waker>>,
}

/// The right to run a task. Given back when dropped.
#[derive(Debug)]
pub struct Pass {
    gate: Rc<Gate>,
}

/// What a task said when it panicked.
pub struct Panic(Box<dyn Any + Send>);

impl Gate {
    /// One more task.
    #[must_use]
    pub fn enter(self: &Rc<Self>) -> Pass {
        self.inside.set(self.inside.get() + 1);
        Pass { gate: Rc::clone(self) }
    }

    /// How many tasks are inside.
    #[must_use]
    pub fn inside_count(&self) -> usize {
        self.inside.get()
    }

    /// Waits until fewer than `bound` tasks are inside. One task may wait at a time.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn fewer_than(&self, bound: usize) {
        self.fewer_than_unless(bound, || false).await;
    }

    /// The same, but ends when `is_over` says so; [`wake`](Self::wake) has it asked.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn fewer_than_unless(&self, bound: usize, is_over: impl Fn() -> bool) {
        poll_fn(|context| {
            if self.inside.get() < bound || is_over() {
                return Poll::Ready(());
            }
            *self.waiting.borrow_mut() = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

impl Gate {
    /// Has the task that waits look again.
    pub fn wake(&self) {
        let waiting = self.waiting.borrow_mut().take();
        if let Some(waker) = waiting {
            waker.wake();
        }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.gate.inside.set(self.gate.inside.get() - 1);
        self.gate.wake();
    }
}

impl Panic {
    /// The message of the panic, for the log.
    #[must_use]
    pub fn message(&self) -> &str {
        let Self(payload) = self;
        payload
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("a panic without a message")
    }
}

/// Runs `task` and turns a panic in it into an error, so that it ends this task and nothing else
/// (LM-3). The runtime itself catches none: the thread would die with all its connections.
///
/// # Errors
///
/// The task panicked; it is dropped.
///
/// # Cancel safety
///
/// As safe as the task.
pub async fn contain<T>(task: impl Future<Output = T>) -> Result<T, Panic> {
    let mut task = pin!(task);
    // Nothing of the task is looked at after a panic but what it shares through cells, none of
    // which is borrowed across an await.
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| task.as_mut().poll(context))) {
        Ok(Poll::Ready(value)) => Poll::Ready(Ok(value)),
        Ok(Poll::Pending) => Poll::Pending,
        Err(payload) => Poll::Ready(Err(Panic(payload))),
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready<T>(future: impl Future<Output = T>) -> Option<T> {
        let mut future = pin!(future);
        match future.as_mut().poll(&mut std::task::Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        }
    }

    /// LM-3: a panic ends one task, whose pass is given back; the gate goes on.
    #[test]
    fn a_panic_stays_in_its_task() {
        let gate = Rc::new(Gate::default());
        let pass = gate.enter();
        let outcome = ready(contain(async move {
            let _pass = pass;
            panic!("on purpose");
        }));
        let message = outcome.expect("the task ended").map_err(|panic| panic.message().to_owned());
        assert_eq!(message, Err::<(), _>("on purpose".to_owned()));
        assert_eq!(gate.inside_count(), 0, "the pass came back");
        assert!(ready(gate.fewer_than(1)).is_some(), "nobody is inside");
    }

    #[test]
    fn a_full_gate_waits_for_a_pass() {
        let gate = Rc::new(Gate::default());
        let pass = gate.enter();
        assert!(ready(gate.fewer_than(1)).is_none());
        drop(pass);
        assert!(ready(gate.fewer_than(1)).is_some());
    }
}
