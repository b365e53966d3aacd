//! The threads and indexes of a pool, from each thread's start until it has been joined (law 9).
//!
//! Starting and leaving happen under the registry's lock, and so does every change of `total`. A
//! submission takes it to start a thread, and under [`Growth::Stalled`](crate::Growth::Stalled) to
//! read how many tasks were taken; going idle never does. A thread is started *under* the lock and
//! counted only once it exists, so a refused start leaves nothing to undo that another thread may
//! have relied on (law 7).
//!
//! A thread is gone when it has been joined. Its last user code are its thread-locals' destructors.
//! An [`Exit`] is registered before all of these and, in the usual order of `std`, dropped after
//! them: it reports that joining will not block. A wait with a time limit may still exceed it by
//! the time that it takes to join threads that have exited, and on a platform with another order by
//! more. Its result is right in any case.

use std::mem;
use std::sync::Arc;
use std::time::Instant;

use crate::crew::metrics::{Count, Sums, WorkerMetrics};
use crate::stats::Stats;
use crate::sync::unwind::discard;
use crate::sync::{Condvar, Mutex, MutexGuard, ThreadHandle};

/// Identifies a thread. Unlike an index it is never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThreadKey(usize);

/// See the [module's documentation](self).
#[derive(Default)]
pub(crate) struct Registry {
    state: Mutex<RegistryState>,
    exited: Condvar,
}

/// The registry under its lock.
#[derive(Default)]
pub(crate) struct RegistryState {
    /// Whether a worker has the index.
    indexes: Vec<bool>,
    /// Threads that have not exited.
    threads: Vec<(ThreadKey, ThreadHandle<()>)>,
    /// How many keys were given to threads.
    keys: usize,
    /// Threads that have run their last user code and can be joined.
    exited: Vec<ThreadHandle<()>>,
    /// Threads that have not been joined.
    unjoined: usize,
    /// Unjoined threads that wait in their stop hooks for the others to go, or have done so and not
    /// exited yet.
    waiting: Vec<ThreadKey>,
    /// Of these, the ones that wait for all of the others.
    last: Vec<ThreadKey>,
    /// Of these only the counts of threads, and the peak of workers.
    pub(crate) stats: Stats,
    metrics: Vec<(ThreadKey, Arc<WorkerMetrics>)>,
    /// The summed metrics of workers that have left.
    past: Sums,
}

/// Removes what belongs to a thread. There are few threads: looking at one after the other takes
/// less than the exit of one.
fn remove<T>(list: &mut Vec<(ThreadKey, T)>, key: ThreadKey) -> Option<T> {
    let index = list.iter().position(|(other, _)| *other == key)?;
    Some(list.swap_remove(index).1)
}

impl RegistryState {
    /// Returns the smallest free index. It is below `max_size` unless others are in blocking
    /// regions or in their stop hooks.
    pub(crate) fn next_index(&self) -> usize {
        self.indexes.iter().position(|is_taken| !is_taken).unwrap_or(self.indexes.len())
    }

    /// Takes the [next index](Self::next_index).
    pub(crate) fn take_index(&mut self, index: usize) {
        self.indexes.resize(self.indexes.len().max(index + 1), true);
        self.indexes[index] = true;
    }

    /// Frees the index of a worker that has left and has run its stop hook.
    pub(crate) fn return_index(&mut self, index: usize) {
        self.indexes[index] = false;
    }

    /// Returns a key for a thread that is about to be started.
    pub(crate) fn take_key(&mut self) -> ThreadKey {
        self.keys += 1;
        ThreadKey(self.keys)
    }

    /// Whether all threads have been joined.
    pub(crate) fn is_gone(&self) -> bool {
        self.unjoined == 0
    }

    /// Registers a thread that has been started.
    pub(crate) fn register(&mut self, key: ThreadKey, handle: ThreadHandle<()>) {
        self.threads.push((key, handle));
        self.unjoined += 1;
    }

    /// Registers the thread of a worker. `workers` counts it.
    pub(crate) fn register_worker(
        &mut self,
        key: ThreadKey,
        handle: ThreadHandle<()>,
        metrics: Arc<WorkerMetrics>,
        workers: usize,
    ) {
        self.register(key, handle);
        self.metrics.push((key, metrics));
        self.stats.threads_started += 1;
        self.stats.peak_workers = self.stats.peak_workers.max(workers);
    }

    /// Deregisters a worker that has run its last task. Its thread has yet to exit. Afterwards
    /// nothing may be counted in its metrics: it would be lost.
    pub(crate) fn deregister(&mut self, key: ThreadKey) {
        self.stats.threads_retired += 1;
        if let Some(metrics) = remove(&mut self.metrics, key) {
            metrics.add_to(&mut self.past);
        }
    }

    /// Returns the summed metrics of all workers, including those that have left.
    pub(crate) fn sums(&self) -> Sums {
        let mut sums = self.past;
        for (_, metrics) in &self.metrics {
            metrics.add_to(&mut sums);
        }
        sums
    }

    /// Returns how many jobs all workers have begun. May wrap around.
    pub(crate) fn taken(&self) -> usize {
        let taken = self.metrics.iter().map(|(_, metrics)| metrics.taken());
        taken.fold(self.past.of(Count::Taken), usize::wrapping_add)
    }

    /// Returns the metrics of the workers that have a task.
    pub(crate) fn busy(&self) -> Vec<Arc<WorkerMetrics>> {
        let metrics = self.metrics.iter().map(|(_, metrics)| metrics);
        metrics.filter(|metrics| metrics.is_busy()).map(Arc::clone).collect()
    }
}

impl Registry {
    pub(crate) fn lock(&self) -> MutexGuard<'_, RegistryState> {
        self.state.lock()
    }

    /// Joins the threads that have exited, which frees their stacks, and keeps the lock. Does not
    /// block for long.
    pub(crate) fn lock_reaped(&self) -> MutexGuard<'_, RegistryState> {
        self.reap_locked(self.lock())
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
            // Subtract only after the join: another waiter for these threads must not return before
            // they are gone.
            state.unjoined -= joined;
            self.exited.notify_all();
        }
        state
    }

    /// Blocks until all threads are gone or `deadline` has passed. Returns whether they are gone. A
    /// `leaving` thread of the pool itself, in its stop hook, waits only for threads that do not
    /// wait likewise.
    pub(crate) fn wait_gone(&self, leaving: Option<ThreadKey>, deadline: Option<Instant>) -> bool {
        let mut state = self.lock();
        if let Some(key) = leaving {
            state.waiting.retain(|waiting| *waiting != key);
            state.waiting.push(key);
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
            state.waiting.retain(|waiting| *waiting != key);
        }
        gone
    }

    /// Blocks until every other thread is gone, except those that are in this call too. A thread
    /// that waits in its stop hook does not wait for the calling one, but this waits for it.
    pub(crate) fn wait_last(&self, key: ThreadKey) {
        self.wait_gone(Some(key), None);
        let mut state = self.lock_reaped();
        state.last.push(key);
        self.exited.notify_all();
        while state.unjoined > state.last.len() {
            state = self.reap_locked(self.exited.wait(state, None).0);
        }
    }
}

/// A thread-local that reports its thread's exit when it is dropped.
pub(crate) struct Exit {
    pub(crate) registry: Arc<Registry>,
    pub(crate) key: ThreadKey,
}

impl Drop for Exit {
    fn drop(&mut self) {
        let mut state = self.registry.lock();
        state.waiting.retain(|waiting| *waiting != self.key);
        state.last.retain(|last| *last != self.key);
        if let Some(handle) = remove(&mut state.threads, self.key) {
            state.exited.push(handle);
        }
        // Unlock first: otherwise the joiner would wake and block on the lock.
        drop(state);
        self.registry.exited.notify_all();
    }
}
