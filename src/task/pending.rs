//! The list of pending futures, in which an immediate shutdown finds them (feature `async`).
//!
//! A future is registered when its first poll is not ready, and deregistered when it ends. A future
//! that is ready at once never comes here. The locks order registrations and the shutdown: either
//! the shutdown finds the future, or the registration fails (race 24).

use std::mem;
use std::num::NonZeroU32;
use std::sync::Weak;

use crossbeam_utils::CachePadded;

use crate::sync::Mutex;
use crate::task::job::Run;
use crate::task::paged::Paged;

/// The number of lists, each with a lock. With eight, few workers contend for one lock. A model has
/// few workers, and each lock costs it time.
const SHARDS: usize = if cfg!(elastipool_loom) { 1 } else { 8 };

/// See the [module's documentation](self).
#[derive(Default)]
pub(crate) struct Pending {
    shards: [CachePadded<Mutex<Shard>>; SHARDS],
}

/// Identifies a registered future: one more than its index in the shard times the number of shards,
/// plus the shard's number. A future stores it in 32 bits: they suffice for half a billion pending
/// futures, or more.
pub(crate) type PendingKey = NonZeroU32;

#[derive(Default)]
struct Shard {
    futures: Paged<Weak<dyn Run>>,
    is_shut: bool,
}

impl Pending {
    /// Registers a future. Returns `None` after [`shut`](Self::shut): the caller cancels it.
    pub(crate) fn register(&self, future: Weak<dyn Run>) -> Option<PendingKey> {
        // Any number that differs between futures will do. The low bits of addresses hardly differ.
        let shard = (future.as_ptr().addr() >> 6) % SHARDS;
        let mut state = self.shards[shard].lock();
        if state.is_shut {
            return None;
        }
        let number = state.futures.insert(future) * SHARDS + shard;
        let key = u32::try_from(number + 1).ok().and_then(PendingKey::new);
        Some(key.expect("no shard has 2^29 pending futures"))
    }

    /// Deregisters a future. Does nothing after [`shut`](Self::shut).
    pub(crate) fn deregister(&self, key: PendingKey) {
        let number = key.get() as usize - 1;
        let mut state = self.shards[number % SHARDS].lock();
        if state.is_shut {
            return;
        }
        let future = state.futures.remove(number / SHARDS);
        drop(state);
        drop(future);
    }

    /// Takes all registered futures out, and refuses every later registration, shard by shard.
    pub(crate) fn shut(&self) -> impl Iterator<Item = Paged<Weak<dyn Run>>> {
        self.shards.iter().map(|shard| {
            let mut state = shard.lock();
            state.is_shut = true;
            mem::take(&mut state.futures)
        })
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use std::sync::Arc;

    use super::Pending;
    use crate::task::job::{Action, Begin, Outcome, Run, Withdrawal};

    struct Nothing;

    impl Run for Nothing {
        fn advance(self: Arc<Self>, _: Action, _: Option<Begin<'_>>) -> Outcome {
            Outcome::Skipped
        }

        fn take_if_stale(&self) -> bool {
            true
        }

        fn withdraw(&self, _: bool) -> Withdrawal {
            Withdrawal::Abandon
        }

        fn cancel(self: Arc<Self>) {}
    }

    #[test]
    fn shut_finds_the_futures_that_are_registered() {
        let pending = Pending::default();
        let futures: Vec<Arc<dyn Run>> = (0..100).map(|_| Arc::new(Nothing) as _).collect();
        let register = |future| pending.register(Arc::downgrade(future)).unwrap();
        let mut keys: Vec<_> = futures.iter().map(register).collect();
        // The address of a zero-sized future lies behind its reference counts, so all addresses
        // differ.
        for _ in 0..3 {
            for key in keys.drain(50..) {
                pending.deregister(key);
            }
            keys.extend(futures[50..].iter().map(register));
        }
        for key in keys.drain(..10) {
            pending.deregister(key);
        }
        let shut = || pending.shut().flat_map(|mut futures| futures.drain());
        let mut found: Vec<_> = shut().map(|future| future.as_ptr()).collect();
        found.sort_unstable_by_key(|future| future.addr());
        let mut expected: Vec<_> = futures[10..].iter().map(Arc::as_ptr).collect();
        expected.sort_unstable_by_key(|future| future.addr());
        assert_eq!(found.len(), 90);
        assert!(found.iter().zip(&expected).all(|(one, other)| one.addr() == other.addr()));
        assert!(pending.register(Arc::downgrade(&futures[0])).is_none());
        assert!(shut().next().is_none());
        // Futures that end after the shutdown.
        keys.into_iter().for_each(|key| pending.deregister(key));
    }
}
