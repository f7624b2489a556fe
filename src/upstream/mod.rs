//! The pods and how a key chooses among them: consistent hashing, so that a pod that joins or
//! leaves moves about its own share of the keys (RT-2). Pure; each shard has its copy.

use std::net::SocketAddr;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::ids::PodId;

/// Points of one pod on the ring. More points, evener shares: 160 keep a pod within about a tenth
/// of its share.
const POINTS: u64 = 160;

/// One pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// As it was configured.
    pub name: String,
    /// Where it listens.
    pub address: SocketAddr,
}

/// All pods, as one value that never changes.
#[derive(Clone, Debug)]
pub struct PodSet {
    pods: Vec<Pod>,
    ring: Vec<(u64, PodId)>,
}

impl PodSet {
    /// The set of these pods. A pod's share of the keys hangs on its name alone.
    ///
    /// # Panics
    ///
    /// If there are more pods than a [`PodId`] can tell apart (65,536).
    #[must_use]
    pub fn new(pods: Vec<Pod>) -> Self {
        let mut ring = Vec::new();
        for (index, pod) in pods.iter().enumerate() {
            let id = PodId(u16::try_from(index).expect("at most 65,536 pods"));
            let points = (0..POINTS).map(|seed| xxh3_64_with_seed(pod.name.as_bytes(), seed));
            ring.extend(points.map(|point| (point, id)));
        }
        ring.sort_unstable();
        Self { pods, ring }
    }

    /// The pod of this id.
    #[must_use]
    pub fn pod(&self, id: PodId) -> Option<&Pod> {
        self.pods.get(usize::from(id.0))
    }

    /// How many pods there are.
    #[must_use]
    pub fn pods_count(&self) -> usize {
        self.pods.len()
    }

    /// Every pod once, the one that owns `key` first and those that would take its place after it.
    pub fn preference(&self, key: &[u8]) -> impl Iterator<Item = PodId> + use<'_> {
        let point = xxh3_64_with_seed(key, POINTS);
        let start = self.ring.partition_point(|(at, _)| *at < point);
        let mut is_seen = vec![false; self.pods.len()];
        let (before, after) = self.ring.split_at(start);
        after.iter().chain(before).filter_map(move |(_, id)| {
            let seen = is_seen.get_mut(usize::from(id.0))?;
            (!std::mem::replace(seen, true)).then_some(*id)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(count: usize) -> PodSet {
        let pod = |index| Pod {
            name: format!("pod-{index}"),
            address: SocketAddr::from(([127, 0, 0, 1], 1)),
        };
        PodSet::new((0..count).map(pod).collect())
    }

    fn first(set: &PodSet, key: u32) -> PodId {
        set.preference(&key.to_le_bytes()).next().expect("there is a pod")
    }

    /// RT-2: one more pod takes about its share and moves no key between the others.
    #[test]
    fn a_pod_that_joins_moves_its_share() {
        let (before, after) = (set(10), set(11));
        let keys = 0..20_000;
        let moved: Vec<PodId> = keys
            .clone()
            .filter(|key| first(&before, *key) != first(&after, *key))
            .map(|key| first(&after, key))
            .collect();
        assert!(moved.iter().all(|pod| *pod == PodId(10)), "only the new pod gains");
        let bound = keys.end as usize * 12 / 110;
        assert!(moved.len() <= bound, "{} of {} keys moved", moved.len(), keys.end);
    }

    #[test]
    fn every_pod_is_preferred_once() {
        let mut order: Vec<PodId> = set(7).preference(b"key").collect();
        assert_eq!(order.len(), 7);
        order.sort_unstable();
        order.dedup();
        assert_eq!(order.len(), 7);
    }
}
