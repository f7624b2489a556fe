//! What the exchanges of one shard share. `Rc` and cells: it never leaves its thread.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Instant, SystemTime};

use super::held::Budget;
use super::options::Options;
use crate::ids::PodId;
use crate::net::pool::Pool;
use crate::session;
use crate::shard::clock::Clock;
use crate::shard::drain::Gate;
use crate::shard::mesh::Mesh;
use crate::shard::message::{Answer, Message, Question};
use crate::shard::wait::Waits;
use crate::telemetry::Counters;
use crate::upstream::PodSet;

/// One shard's state.
pub struct State {
    /// What the operator set.
    pub options: Options,
    /// The pods.
    pub pods: PodSet,
    /// Time, read once a sweep.
    pub clock: Clock,
    /// All deadlines.
    pub waits: Rc<Waits>,
    /// The way to the other shards.
    pub mesh: Mesh,
    /// What happened.
    pub counters: Counters,
    /// Bytes that may be held.
    pub held: Rc<Budget>,
    /// Client connections.
    pub connections: Rc<Gate>,
    /// Exchanges at once.
    pub in_flight: Rc<Gate>,
    /// Whether this shard ends.
    pub is_draining: Cell<bool>,
    sessions: RefCell<session::Table>,
    upstreams: Vec<Upstream>,
    date: RefCell<String>,
}

/// One pod as this shard sees it.
#[derive(Default)]
struct Upstream {
    pool: RefCell<Pool>,
    in_flight: Rc<Gate>,
}

impl State {
    /// The state of a shard that starts at `now`.
    #[must_use]
    pub fn new(options: Options, pods: PodSet, mesh: Mesh, now: Instant) -> Self {
        let limits = &options.limits;
        let sessions = session::Table::new(limits.sessions_max, limits.session_idle);
        Self {
            clock: Clock::new(now),
            waits: Rc::default(),
            mesh,
            counters: Counters::default(),
            held: Rc::new(Budget::new(limits.held_bytes_max)),
            connections: Rc::default(),
            in_flight: Rc::default(),
            is_draining: Cell::new(false),
            sessions: RefCell::new(sessions),
            upstreams: (0..pods.pods_count()).map(|_| Upstream::default()).collect(),
            date: RefCell::default(),
            options,
            pods,
        }
    }

    /// The idle connections to a pod, for as long as `use_pool` runs.
    pub fn with_pool<T>(&self, pod: PodId, use_pool: impl FnOnce(&mut Pool) -> T) -> Option<T> {
        let upstream = self.upstreams.get(usize::from(pod.0))?;
        Some(use_pool(&mut upstream.pool.borrow_mut()))
    }

    /// The gate of the exchanges with a pod.
    #[must_use]
    pub fn pod_gate(&self, pod: PodId) -> Option<Rc<Gate>> {
        self.upstreams.get(usize::from(pod.0)).map(|upstream| Rc::clone(&upstream.in_flight))
    }

    /// Answers a question about a session that this shard owns.
    pub fn answer(&self, question: Question) -> Answer {
        let now = self.clock.coarse();
        let mut sessions = self.sessions.borrow_mut();
        match question {
            Question::Register(key, pod) => {
                sessions.register(key, pod, now);
                Answer::Done
            }
            Question::Find(key) => match sessions.find(&key, now) {
                Some(pod) => Answer::Found(pod),
                None => Answer::Unknown,
            },
            Question::Remove(key) => {
                sessions.remove(&key);
                Answer::Done
            }
        }
    }

    /// Takes a message from another thread.
    pub fn handle(&self, message: Message) {
        match message {
            Message::Ask { from, ticket, question } => {
                let answer = self.answer(question);
                self.mesh.reply(from, ticket, answer);
            }
            Message::Tell { ticket, answer } => self.mesh.handle_tell(ticket, answer),
            Message::Drain => {
                self.is_draining.set(true);
                self.waits.drain();
                // The shard may wait for room to accept in.
                self.connections.wake();
            }
        }
    }

    /// Looks for what is over: deadlines, sessions, idle connections to pods.
    pub fn sweep(&self, now: Instant, wall: SystemTime) {
        self.clock.advance(now);
        self.waits.sweep(now);
        self.sessions.borrow_mut().expire(now);
        for upstream in &self.upstreams {
            upstream.pool.borrow_mut().sweep(now);
        }
        *self.date.borrow_mut() = httpdate::fmt_http_date(wall);
    }

    /// Appends the value of a Date field (RFC 9110, section 6.6.1).
    pub fn write_date(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.date.borrow().as_bytes());
    }
}
