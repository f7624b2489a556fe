//! What a shard counts, by closed labels. Counted without a lock by the shard alone; a snapshot is
//! a copy that can be sent and merged.

use std::cell::Cell;

use crate::mcp::fault::Fault;
use crate::mcp::response::Why;

/// Things that are counted apart from faults and refused answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A client connected.
    Connection,
    /// An exchange ended, whatever its end.
    Exchange,
    /// A client went away in the middle of an exchange.
    ClientGone,
    /// An exchange panicked (LM-3).
    Panic,
    /// Accepting paused because descriptors ran out (LM-2).
    AcceptPaused,
    /// A pooled connection proved closed and a new one was opened (RT-5).
    UpstreamReopened,
}

impl Event {
    /// Every event.
    pub const ALL: [Self; 6] = [
        Self::Connection,
        Self::Exchange,
        Self::ClientGone,
        Self::Panic,
        Self::AcceptPaused,
        Self::UpstreamReopened,
    ];

    /// The label.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Connection => "connections",
            Self::Exchange => "exchanges",
            Self::ClientGone => "clients_gone",
            Self::Panic => "panics",
            Self::AcceptPaused => "accept_pauses",
            Self::UpstreamReopened => "upstreams_reopened",
        }
    }
}

/// The counters of one shard.
#[derive(Debug)]
pub struct Counters {
    events: [Cell<u64>; Event::ALL.len()],
    faults: [Cell<u64>; Fault::ALL.len()],
    refusals: [Cell<u64>; Why::ALL.len()],
}

/// The counters of one shard or of several, at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    events: [u64; Event::ALL.len()],
    faults: [u64; Fault::ALL.len()],
    refusals: [u64; Why::ALL.len()],
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            events: std::array::from_fn(|_| Cell::new(0)),
            faults: std::array::from_fn(|_| Cell::new(0)),
            refusals: std::array::from_fn(|_| Cell::new(0)),
        }
    }
}

impl Default for Snapshot {
    fn default() -> Self {
        Counters::default().snapshot()
    }
}

impl Counters {
    /// Counts an event.
    pub fn count(&self, event: Event) {
        add_one(self.events.get(event as usize));
    }

    /// Counts a fault that was answered.
    pub fn count_fault(&self, fault: Fault) {
        add_one(self.faults.get(fault as usize));
    }

    /// Counts why an upstream's answer was refused (RV-11).
    pub fn count_refusal(&self, why: Why) {
        add_one(self.refusals.get(why as usize));
    }

    /// The counters as they are.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            events: self.events.each_ref().map(Cell::get),
            faults: self.faults.each_ref().map(Cell::get),
            refusals: self.refusals.each_ref().map(Cell::get),
        }
    }
}

impl Snapshot {
    /// Adds the counters of another shard.
    pub fn merge(&mut self, other: &Self) {
        let pairs = self.events.iter_mut().zip(&other.events);
        let pairs = pairs.chain(self.faults.iter_mut().zip(&other.faults));
        for (sum, count) in pairs.chain(self.refusals.iter_mut().zip(&other.refusals)) {
            *sum += count;
        }
    }

    /// Each label with its count, those that are zero left out; faults and refusals are prefixed.
    pub fn counted(&self) -> impl Iterator<Item = (String, u64)> {
        let events =
            Event::ALL.iter().zip(self.events).map(|(event, n)| (event.label().to_owned(), n));
        let faults = Fault::ALL
            .iter()
            .zip(self.faults)
            .map(|(fault, n)| (format!("fault_{}", fault.row().reason), n));
        let refusals = Why::ALL
            .iter()
            .zip(self.refusals)
            .map(|(why, n)| (format!("refused_{}", why.label()), n));
        events.chain(faults).chain(refusals).filter(|(_, count)| *count > 0)
    }
}

fn add_one(counter: Option<&Cell<u64>>) {
    if let Some(counter) = counter {
        counter.set(counter.get() + 1);
    }
}
