//! Who works here: the threads of a pool, from their start until the operating system has none of
//! them left (law 9).
//!
//! Starting and leaving happen under the registry's lock, and so does every change of the count of
//! workers; submitting and going idle never take it. A thread is started *inside* of the lock: a
//! place is then taken only by a thread that exists, and a refused start leaves nothing to undo that
//! somebody may have relied on (law 7).
//!
//! A thread is gone when it has been joined. Its last user code are the destructors of its
//! thread-locals; an [`Exit`] among them, registered before all others and therefore run after them
//! where `std` keeps the usual order, tells the registry that joining it will not block. (If another
//! platform runs them in another order, a wait with a time limit may exceed it; it is never wrong.)

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::mem;
use std::sync::Arc;
use std::time::Instant;

use crate::runtime::metrics::{Sums, WorkerMetrics};
use crate::stats::Stats;
use crate::sync::unwind::discard;
use crate::sync::{Condvar, Mutex, MutexGuard, ThreadHandle};

/// A thread's number in the order of the starts: unlike its index it is never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ThreadKey(usize);

/// See the [module's documentation](self).
pub(crate) struct Registry {
    state: Mutex<RegistryState>,
    exited: Condvar,
}

/// The registry under its lock.
pub(crate) struct RegistryState {
    /// Indexes below `index_count` that no worker has.
    free_indexes: BinaryHeap<Reverse<usize>>,
    index_count: usize,
    /// Threads that have not exited, by key.
    threads: HashMap<ThreadKey, ThreadHandle<()>>,
    /// Threads that have run their last user code and can be joined.
    exited: Vec<ThreadHandle<()>>,
    /// Threads that have not been joined.
    unjoined: usize,
    /// Those among them that wait in their stop hooks for the others to go, or have done so and have not exited yet.
    waiting: HashSet<ThreadKey>,
    started: usize,
    stopped: usize,
    pub(crate) refused: usize,
    peak: usize,
    metrics: HashMap<ThreadKey, Arc<WorkerMetrics>>,
    /// The sums of the metrics of workers that have left.
    past: Sums,
}

impl RegistryState {
    /// The index that [`take_index`](Self::take_index) would return.
    pub(crate) fn next_index(&self) -> usize {
        self.free_indexes.peek().map_or(self.index_count, |&Reverse(index)| index)
    }

    /// The smallest index that no worker has: below `max_size` unless others are in blocking regions or in their stop
    /// hooks.
    pub(crate) fn take_index(&mut self) -> usize {
        match self.free_indexes.pop() {
            Some(Reverse(index)) => index,
            None => {
                self.index_count += 1;
                self.index_count - 1
            }
        }
    }

    /// Makes an index available again, of a worker that has left and is past its stop hook.
    pub(crate) fn return_index(&mut self, index: usize) {
        self.free_indexes.push(Reverse(index));
    }

    pub(crate) fn next_key(&self) -> ThreadKey {
        ThreadKey(self.started)
    }

    /// Enters a worker whose thread has been started with [`next_key`](Self::next_key).
    pub(crate) fn register(
        &mut self,
        handle: ThreadHandle<()>,
        metrics: Arc<WorkerMetrics>,
        workers: usize,
    ) {
        let key = self.next_key();
        self.threads.insert(key, handle);
        self.metrics.insert(key, metrics);
        self.unjoined += 1;
        self.started += 1;
        self.peak = self.peak.max(workers);
    }

    /// Strikes out a worker that has run its last task; its thread is still to exit.
    pub(crate) fn deregister(&mut self, key: ThreadKey) {
        self.stopped += 1;
        if let Some(metrics) = self.metrics.remove(&key) {
            metrics.add_to(&mut self.past);
        }
    }

    /// What the workers have done, those that have left included.
    pub(crate) fn sums(&self) -> Sums {
        let mut sums = self.past;
        for metrics in self.metrics.values() {
            metrics.add_to(&mut sums);
        }
        sums
    }

    /// How often a worker has taken something from the queue.
    pub(crate) fn taken(&self) -> usize {
        let taken = self.metrics.values().map(|metrics| metrics.taken());
        taken.fold(self.past.taken, usize::wrapping_add)
    }

    /// The part of the statistics that only this lock makes consistent.
    pub(crate) fn describe(&self, stats: &mut Stats) {
        stats.peak_workers = self.peak;
        stats.threads_started = self.started;
        stats.threads_refused = self.refused;
        stats.threads_retired = self.stopped;
    }
}

impl Registry {
    pub(crate) fn new() -> Self {
        let state = RegistryState {
            free_indexes: BinaryHeap::new(),
            index_count: 0,
            threads: HashMap::new(),
            exited: Vec::new(),
            unjoined: 0,
            waiting: HashSet::new(),
            started: 0,
            stopped: 0,
            refused: 0,
            peak: 0,
            metrics: HashMap::new(),
            past: Sums::default(),
        };
        Registry { state: Mutex::new(state), exited: Condvar::new() }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, RegistryState> {
        self.state.lock()
    }

    /// Joins the threads that have exited, so that their stacks are freed. Does not block for long.
    pub(crate) fn reap(&self) {
        drop(self.reap_locked(self.lock()));
    }

    fn reap_locked<'a>(
        &'a self,
        mut state: MutexGuard<'a, RegistryState>,
    ) -> MutexGuard<'a, RegistryState> {
        while !state.exited.is_empty() {
            let exited = mem::take(&mut state.exited);
            drop(state);
            let joined = exited.len();
            for handle in exited {
                if let Err(payload) = handle.join() {
                    discard(payload);
                }
            }
            state = self.lock();
            // Only now: another thread that waits for the same exits must not be early.
            state.unjoined -= joined;
            self.exited.notify_all();
        }
        state
    }

    /// Blocks until all threads are gone, or until `deadline`. `true` if they are. A `leaving` thread of the pool
    /// itself, in its stop hook, waits for those that do not wait like it.
    pub(crate) fn wait_gone(&self, leaving: Option<ThreadKey>, deadline: Option<Instant>) -> bool {
        let mut state = self.lock();
        if let Some(key) = leaving {
            state.waiting.insert(key);
            self.exited.notify_all();
        }
        let mut in_time = true;
        let gone = loop {
            state = self.reap_locked(state);
            let gone = state.unjoined <= if leaving.is_some() { state.waiting.len() } else { 0 };
            if gone || !in_time {
                break gone;
            }
            (state, in_time) = self.exited.wait(state, deadline);
        };
        if let (Some(key), false) = (leaving, gone) {
            state.waiting.remove(&key);
        }
        gone
    }
}

/// Reports its thread's exit when it is dropped as a thread-local.
pub(crate) struct Exit {
    pub(crate) registry: Arc<Registry>,
    pub(crate) key: ThreadKey,
}

impl Drop for Exit {
    fn drop(&mut self) {
        let mut state = self.registry.lock();
        state.waiting.remove(&self.key);
        if let Some(handle) = state.threads.remove(&self.key) {
            state.exited.push(handle);
        }
        self.registry.exited.notify_all();
    }
}
