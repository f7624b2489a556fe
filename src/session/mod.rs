//! Legacy sessions: which pod issued which id. One table a shard; an id belongs to the shard that
//! its hash names. Pure: the time is an argument.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use xxhash_rust::xxh3::xxh3_64;

use crate::ids::{PodId, SessionKey, ShardId};

/// The shard whose table has the session, of `shards_count` shards (SG-3).
///
/// # Panics
///
/// If there are no shards.
#[must_use]
pub fn owner(key: &SessionKey, shards_count: usize) -> ShardId {
    assert!(shards_count > 0, "a process has a shard");
    let index = xxh3_64(key.bytes()) % shards_count as u64;
    ShardId(u16::try_from(index).expect("a shard's position fits its id"))
}

#[derive(Debug)]
struct Entry {
    pod: PodId,
    used: Instant,
}

/// The sessions of one shard, bounded in number and in idle time.
#[derive(Debug)]
pub struct Table {
    /// Keyed hashing: clients choose the ids they present, and pods those they issue.
    entries: HashMap<SessionKey, Entry>,
    /// Each entry once, oldest first as of when it was queued. An entry that was used since is
    /// queued again when it comes up.
    idle: VecDeque<(SessionKey, Instant)>,
    sessions_max: usize,
    idle_max: Duration,
}

impl Table {
    /// A table of at most `sessions_max` sessions that lapse after `idle_max` without use.
    #[must_use]
    pub fn new(sessions_max: usize, idle_max: Duration) -> Self {
        Self { entries: HashMap::new(), idle: VecDeque::new(), sessions_max, idle_max }
    }

    /// Notes that `pod` issued `key`. When the table is full the oldest idle session goes.
    pub fn register(&mut self, key: SessionKey, pod: PodId, now: Instant) {
        if let Some(entry) = self.entries.get_mut(&key) {
            *entry = Entry { pod, used: now };
            return;
        }
        self.expire(now);
        while self.sessions_max <= self.entries.len() {
            if self.remove_oldest().is_none() {
                return;
            }
        }
        self.idle.push_back((key.clone(), now));
        self.entries.insert(key, Entry { pod, used: now });
    }

    /// The pod of a session, which counts as used.
    pub fn find(&mut self, key: &SessionKey, now: Instant) -> Option<PodId> {
        let entry = self.entries.get_mut(key)?;
        if entry.used + self.idle_max <= now {
            return None;
        }
        entry.used = now;
        Some(entry.pod)
    }

    /// Ends a session.
    pub fn remove(&mut self, key: &SessionKey) {
        self.entries.remove(key);
        // What is left in the queue goes when it comes up; when it is mostly such, it goes now.
        if self.entries.len() * 2 + 64 < self.idle.len() {
            let entries = &self.entries;
            self.idle.retain(|(key, _)| entries.contains_key(key));
        }
    }

    /// Ends the sessions that were idle too long.
    pub fn expire(&mut self, now: Instant) {
        while let Some((_, queued)) = self.idle.front() {
            if now < *queued + self.idle_max || self.requeue_or_remove(Some(now)).is_none() {
                return;
            }
        }
    }

    /// How many sessions there are.
    #[must_use]
    pub fn sessions_count(&self) -> usize {
        self.entries.len()
    }

    fn remove_oldest(&mut self) -> Option<()> {
        let before = self.entries.len();
        while self.entries.len() == before {
            self.requeue_or_remove(None)?;
        }
        Some(())
    }

    /// Takes the head of the queue: queues it again if it was used since it was queued, else ends
    /// it. With `now`, ends it only if it lapsed.
    fn requeue_or_remove(&mut self, now: Option<Instant>) -> Option<()> {
        let (key, queued) = self.idle.pop_front()?;
        let Some(entry) = self.entries.get(&key) else {
            return Some(());
        };
        let is_lapsed = now.is_none_or(|now| entry.used + self.idle_max <= now);
        if queued < entry.used || !is_lapsed {
            let used = entry.used;
            self.idle.push_back((key, used));
        } else {
            self.entries.remove(&key);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shard::clock::now as start;

    fn key(name: &str) -> SessionKey {
        SessionKey::new(name.as_bytes()).expect("visible ASCII")
    }

    const IDLE: Duration = Duration::from_mins(1);

    /// SG-4: at the bound the session that was used longest ago goes, not the one opened first.
    #[test]
    fn the_oldest_idle_session_makes_room() {
        let start = start();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut table = Table::new(2, IDLE);
        table.register(key("a"), PodId(0), at(0));
        table.register(key("b"), PodId(1), at(1));
        assert_eq!(table.find(&key("a"), at(2)), Some(PodId(0)));
        table.register(key("c"), PodId(2), at(3));
        assert_eq!(table.find(&key("b"), at(4)), None);
        assert_eq!(table.find(&key("a"), at(4)), Some(PodId(0)));
        assert_eq!(table.find(&key("c"), at(4)), Some(PodId(2)));
        assert_eq!(table.sessions_count(), 2);
    }

    /// SG-4: an idle session lapses; each use starts its time anew.
    #[test]
    fn an_idle_session_lapses() {
        let start = start();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut table = Table::new(8, IDLE);
        table.register(key("a"), PodId(0), at(0));
        assert_eq!(table.find(&key("a"), at(50)), Some(PodId(0)));
        assert_eq!(table.find(&key("a"), at(109)), Some(PodId(0)));
        table.expire(at(120));
        assert_eq!(table.sessions_count(), 1, "used 11 seconds ago");
        assert_eq!(table.find(&key("a"), at(169)), None);
        table.expire(at(169));
        assert_eq!(table.sessions_count(), 0);
    }

    /// Opening and ending sessions for ever keeps the queue as small as the table.
    #[test]
    fn ended_sessions_leave_nothing_behind() {
        let start = start();
        let mut table = Table::new(1_000, IDLE);
        for round in 0..10_000 {
            let key = key(&format!("session-{round}"));
            table.register(key.clone(), PodId(0), start);
            table.remove(&key);
        }
        assert_eq!(table.sessions_count(), 0);
        assert!(table.idle.len() <= 65, "{} left", table.idle.len());
    }

    /// SG-3: the owner depends on the id and the number of shards, and the ids spread.
    #[test]
    fn owners_spread_evenly() {
        let mut counts = [0_u32; 4];
        for index in 0..4_000 {
            let owner = owner(&key(&format!("id-{index}")), counts.len());
            counts[usize::from(owner.0)] += 1;
        }
        assert!(counts.iter().all(|count| (800..1_200).contains(count)), "{counts:?}");
    }
}
