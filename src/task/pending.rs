//! The futures that wait to be woken, so that an immediate shutdown can find them (feature `async`).
//!
//! A future is entered when its first poll does not complete it and struck out when it ends: one that is
//! ready at once never comes here. Entering and the shutdown exclude each other: a future is found by the
//! shutdown, or finds that it is not wanted any more.

use std::num::NonZeroUsize;
use std::sync::Weak;

use crossbeam_utils::CachePadded;
use slab::Slab;

use crate::sync::Mutex;
use crate::task::promise::Cancel;

/// As many locks, so that workers seldom meet. One in models, which have few workers and little time.
const SHARDS: usize = if cfg!(elastipool_loom) { 1 } else { 8 };

/// See the [module's documentation](self).
pub(crate) struct Pending {
    shards: [CachePadded<Mutex<Shard>>; SHARDS],
}

/// Where a future is entered: one more than its place, times the number of shards, plus its shard. One word, since each
/// future has an `Option` of this.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingKey(NonZeroUsize);

impl PendingKey {
    fn new(shard: usize, place: usize) -> Self {
        // There are fewer places than a 16th of the addresses: no overflow.
        let word = (place + 1) * SHARDS + shard;
        PendingKey(NonZeroUsize::new(word).expect("a place is counted from one here"))
    }

    fn shard(self) -> usize {
        self.0.get() % SHARDS
    }

    fn place(self) -> usize {
        self.0.get() / SHARDS - 1
    }
}

struct Shard {
    futures: Slab<Weak<dyn Cancel>>,
    is_shut: bool,
}

impl Pending {
    pub(crate) fn new() -> Self {
        let shard = || CachePadded::new(Mutex::new(Shard { futures: Slab::new(), is_shut: false }));
        Pending { shards: std::array::from_fn(|_| shard()) }
    }

    /// Enters a future. `None` if all are cancelled, and so is this one.
    pub(crate) fn register(&self, future: Weak<dyn Cancel>) -> Option<PendingKey> {
        // Any number that differs between futures will do. Allocations are at least 16 bytes apart.
        let shard = (future.as_ptr().addr() >> 6) % SHARDS;
        let mut state = self.shards[shard].lock();
        if state.is_shut {
            return None;
        }
        let place = state.futures.insert(future);
        Some(PendingKey::new(shard, place))
    }

    /// Strikes a future out.
    pub(crate) fn deregister(&self, entry: PendingKey) {
        let mut state = self.shards[entry.shard()].lock();
        if state.is_shut {
            return;
        }
        let future = state.futures.remove(entry.place());
        drop(state);
        drop(future);
    }

    /// Returns all futures that are entered. None can be entered after this.
    pub(crate) fn shut(&self) -> Vec<Weak<dyn Cancel>> {
        let mut all = Vec::new();
        for shard in &self.shards {
            let mut state = shard.lock();
            state.is_shut = true;
            all.extend(state.futures.drain());
        }
        all
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use std::sync::{Arc, Weak};

    use super::Pending;
    use crate::task::promise::Cancel;

    struct Nothing;

    impl Cancel for Nothing {
        fn cancel(self: Arc<Self>) {}
    }

    #[test]
    fn what_is_entered_and_not_struck_out_is_found_at_the_end() {
        let pending = Pending::new();
        let futures: Vec<Arc<dyn Cancel>> = (0..100).map(|_| Arc::new(Nothing) as _).collect();
        let enter = |future| pending.register(Arc::downgrade(future)).unwrap();
        let mut entries: Vec<_> = futures.iter().map(enter).collect();
        // A zero-sized future's address is of its reference counts: all differ.
        for _ in 0..3 {
            for entry in entries.drain(50..) {
                pending.deregister(entry);
            }
            entries.extend(futures[50..].iter().map(enter));
        }
        for entry in entries.drain(..10) {
            pending.deregister(entry);
        }
        let mut found: Vec<_> = pending.shut().iter().map(Weak::as_ptr).collect();
        found.sort_unstable_by_key(|future| future.addr());
        let mut expected: Vec<_> = futures[10..].iter().map(Arc::as_ptr).collect();
        expected.sort_unstable_by_key(|future| future.addr());
        assert_eq!(found.len(), 90);
        assert!(found.iter().zip(&expected).all(|(one, other)| one.addr() == other.addr()));
        assert!(pending.register(Arc::downgrade(&futures[0])).is_none());
        assert!(pending.shut().is_empty());
        // Those who have not heard of it yet.
        entries.into_iter().for_each(|entry| pending.deregister(entry));
    }
}
