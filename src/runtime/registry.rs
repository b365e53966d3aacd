//! The threads and indexes of a pool, from each thread's start until it has been joined (law 9).
//!
//! Starting and leaving happen under the registry's lock, and so does every change of `total`. A submission takes it only
//! to start a thread; going idle never does. A thread is started *under* the lock and counted only once it exists, so a
//! refused start leaves nothing to undo that another thread may have relied on (law 7).
//!
//! A thread is gone when it has been joined. Its last user code are its thread-locals' destructors. An [`Exit`] is
//! registered before all of these and, in the usual order of `std`, dropped after them: it reports that joining will
//! not block. A wait with a time limit may still exceed it by the time that it takes to join threads that have exited, and on a
//! platform with another order by more. Its result is right in any case.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::future::Future;
use std::mem;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use futures_channel::oneshot;

use crate::runtime::context::waking;
use crate::runtime::in_flight::InFlight;
use crate::runtime::metrics::{Count, Sums, WorkerMetrics};
use crate::runtime::region::{Dependency, wait_for};
use crate::stats::Stats;
use crate::sync::unwind::discard;
use crate::sync::{Mutex, MutexGuard, ThreadHandle, is_current};

/// Identifies a thread. Unlike an index it is never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ThreadKey(usize);

/// See the [module's documentation](self).
#[derive(Default)]
pub(crate) struct Registry {
    state: Mutex<RegistryState>,
}

/// The registry under its lock.
#[derive(Default)]
pub(crate) struct RegistryState {
    /// Indexes below `index_count` that no worker has.
    free_indexes: BinaryHeap<Reverse<usize>>,
    index_count: usize,
    /// Threads that have not exited, by key.
    threads: HashMap<ThreadKey, ThreadHandle<()>>,
    /// How many keys were given to threads.
    keys: usize,
    /// Whether the keeper that was started last will do jobs.
    pub(super) has_keeper: bool,
    /// Threads that have run their last user code and can be joined.
    exited: Vec<ThreadHandle<()>>,
    /// Threads that have not been joined.
    unjoined: usize,
    /// Unjoined threads that wait in their stop hooks for the others to go, or have done so and not exited yet.
    waiting: HashSet<ThreadKey>,
    /// The threads and futures that wait for others to be gone.
    joiners: Vec<oneshot::Sender<()>>,
    started: usize,
    stopped: usize,
    pub(crate) refused: usize,
    peak: usize,
    metrics: HashMap<ThreadKey, Arc<WorkerMetrics>>,
    /// The summed metrics of workers that have left.
    past: Sums,
}

impl RegistryState {
    /// The index that [`take_index`](Self::take_index) would return.
    pub(crate) fn next_index(&self) -> usize {
        self.free_indexes.peek().map_or(self.index_count, |&Reverse(index)| index)
    }

    /// Takes the smallest free index. It is below `max_size` unless others are in blocking regions or in their stop
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

    /// Frees the index of a worker that has left and has run its stop hook.
    pub(crate) fn return_index(&mut self, index: usize) {
        self.free_indexes.push(Reverse(index));
    }

    /// Returns a key for a thread that is about to be started.
    pub(super) fn take_key(&mut self) -> ThreadKey {
        self.keys += 1;
        ThreadKey(self.keys)
    }

    /// Registers a thread that has been started.
    pub(super) fn register(&mut self, key: ThreadKey, handle: ThreadHandle<()>) {
        self.threads.insert(key, handle);
        self.unjoined += 1;
    }

    /// Registers the thread of a worker. `workers` counts it.
    pub(super) fn register_worker(
        &mut self,
        key: ThreadKey,
        handle: ThreadHandle<()>,
        metrics: Arc<WorkerMetrics>,
        workers: usize,
    ) {
        self.register(key, handle);
        self.metrics.insert(key, metrics);
        self.started += 1;
        self.peak = self.peak.max(workers);
    }

    /// Deregisters a worker that has run its last task. Its thread has yet to exit. Afterwards nothing may be counted in
    /// its metrics: it would be lost.
    pub(crate) fn deregister(&mut self, key: ThreadKey) {
        self.stopped += 1;
        if let Some(metrics) = self.metrics.remove(&key) {
            metrics.add_to(&mut self.past);
        }
    }

    /// Whether the joiners must be notified of a change: it may have ended the wait of one. Notifying them of each exit would
    /// cost a system call for each thread, and the joiner a wait for each.
    fn may_end_wait(&self) -> bool {
        // With those that another thread is joining now: it asks again afterwards.
        let left = self.unjoined - self.exited.len();
        !self.joiners.is_empty() && left <= self.waiting.len()
    }

    /// Returns the summed metrics of all workers, including those that have left.
    pub(crate) fn sums(&self) -> Sums {
        let mut sums = self.past;
        for metrics in self.metrics.values() {
            metrics.add_to(&mut sums);
        }
        sums
    }

    /// Returns how many jobs all workers have begun. May wrap around.
    pub(crate) fn taken(&self) -> usize {
        let taken = self.metrics.values().map(|metrics| metrics.taken());
        taken.fold(self.past.of(Count::Taken), usize::wrapping_add)
    }

    /// Returns the metrics of the workers that have a task.
    pub(crate) fn busy(&self) -> Vec<Arc<WorkerMetrics>> {
        self.metrics.values().filter(|metrics| metrics.is_busy()).map(Arc::clone).collect()
    }

    /// Fills in the statistics that must be read under this lock to be consistent.
    pub(crate) fn describe(&self, stats: &mut Stats) {
        stats.peak_workers = self.peak;
        stats.threads_started = self.started;
        stats.threads_refused = self.refused;
        stats.threads_retired = self.stopped;
    }
}

impl Registry {
    pub(crate) fn lock(&self) -> MutexGuard<'_, RegistryState> {
        self.state.lock()
    }

    /// Joins the threads that have exited, which frees their stacks. Does not block for long.
    pub(crate) fn reap(&self) {
        drop(self.lock_reaped());
    }

    /// Joins the threads that have exited, and keeps the lock.
    pub(super) fn lock_reaped(&self) -> MutexGuard<'_, RegistryState> {
        self.reap_locked(self.lock())
    }

    fn reap_locked<'a>(
        &'a self,
        mut state: MutexGuard<'a, RegistryState>,
    ) -> MutexGuard<'a, RegistryState> {
        loop {
            // A waker that the calling thread has called as it exits may be here. No thread can join itself.
            let (own, exited) = mem::take(&mut state.exited).into_iter().partition(is_current);
            state.exited = own;
            if exited.is_empty() {
                return state;
            }
            drop(state);
            let joined = exited.len();
            for handle in exited {
                if let Err(payload) = handle.join() {
                    discard(payload);
                }
            }
            state = self.lock();
            // Subtract only after the join: another waiter for these threads must not return before they are gone.
            state.unjoined -= joined;
            Self::notify(state);
            state = self.lock();
        }
    }

    /// Wakes the joiners if the wait of one may have ended. They register under the lock, and look before.
    fn notify(mut state: MutexGuard<'_, RegistryState>) {
        if state.may_end_wait() {
            let joiners = mem::take(&mut state.joiners);
            // Unlock first: otherwise a joiner would wake and block on the lock.
            drop(state);
            joiners.into_iter().for_each(|joiner| waking(|| _ = joiner.send(())));
        }
    }

    /// The pool is over. Wakes the joiners if it has no thread whose exit does that.
    #[cold]
    pub(crate) fn notify_over(&self) {
        Self::notify(self.lock());
    }

    /// Blocks until all threads are gone or `deadline` has passed. Returns whether they are gone. A `leaving` thread of
    /// the pool itself, in its stop hook, waits only for threads that do not wait likewise.
    pub(crate) fn wait_gone(
        &self,
        in_flight: &InFlight,
        leaving: Option<ThreadKey>,
        deadline: Option<Instant>,
    ) -> bool {
        if let Some(key) = leaving {
            let mut state = self.lock();
            state.waiting.insert(key);
            Self::notify(state);
        }
        let gone = pin!(GoneWait::new(self, in_flight, leaving));
        let is_gone = wait_for(gone, deadline, Dependency::Exit).is_some();
        if let (Some(key), false) = (leaving, is_gone) {
            self.lock().waiting.remove(&key);
        }
        is_gone
    }
}

/// Waits until the pool is over and all of its threads are gone, or all others for a thread that is `leaving`.
pub(crate) struct GoneWait<'a> {
    registry: &'a Registry,
    in_flight: &'a InFlight,
    leaving: Option<ThreadKey>,
    notified: Option<oneshot::Receiver<()>>,
}

impl<'a> GoneWait<'a> {
    pub(crate) fn new(
        registry: &'a Registry,
        in_flight: &'a InFlight,
        leaving: Option<ThreadKey>,
    ) -> Self {
        GoneWait { registry, in_flight, leaving, notified: None }
    }
}

impl Future for GoneWait<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        loop {
            if let Some(notified) = &mut self.notified {
                if Pin::new(notified).poll(context).is_pending() {
                    return Poll::Pending;
                }
            }
            let mut state = self.registry.lock_reaped();
            let may_stay = if self.leaving.is_some() { state.waiting.len() } else { 0 };
            // Race 12: looks and registers under the lock. The thread that makes the pool over takes it afterwards.
            let is_over = self.leaving.is_some() || self.in_flight.is_over();
            if is_over && state.unjoined - state.exited.len() <= may_stay {
                return Poll::Ready(());
            }
            let (joiner, notified) = oneshot::channel();
            state.joiners.push(joiner);
            drop(state);
            self.notified = Some(notified);
        }
    }
}

impl Drop for GoneWait<'_> {
    fn drop(&mut self) {
        if let Some(notified) = &self.notified {
            let is_other = |joiner: &oneshot::Sender<()>| !joiner.is_connected_to(notified);
            self.registry.lock().joiners.retain(is_other);
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
        state.waiting.remove(&self.key);
        if let Some(handle) = state.threads.remove(&self.key) {
            state.exited.push(handle);
        }
        Registry::notify(state);
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use std::future::Future;
    use std::task::{Context, Waker};
    use std::time::Duration;

    use crate::ThreadPool;

    /// As after a task that its submitter has run, because the system refused a thread.
    #[test]
    fn a_pool_without_threads_ends_with_its_last_task() {
        let pool = ThreadPool::new(0, 1, Duration::ZERO);
        let shared = pool.shared();
        assert!(shared.in_flight.accept(1));
        pool.close();
        let joiners = || shared.registry.lock().joiners.len();
        let context = &mut Context::from_waker(Waker::noop());
        let [mut terminated, mut gives_up] = [(); 2].map(|()| Box::pin(pool.terminated()));
        assert!(terminated.as_mut().poll(context).is_pending());
        assert!(gives_up.as_mut().poll(context).is_pending());
        assert_eq!(joiners(), 2);
        drop(gives_up);
        assert_eq!(joiners(), 1);
        shared.finish(1);
        assert_eq!(joiners(), 0, "it is woken");
        assert!(terminated.as_mut().poll(context).is_ready());
    }
}
