//! Starting threads: one for each worker, under the registry's lock.

use std::io;
use std::sync::Arc;

use crate::runtime::context::outside_of_worker;
use crate::runtime::counts::{Search, Snapshot};
use crate::runtime::events::Event;
use crate::runtime::metrics::WorkerMetrics;
use crate::runtime::registry::RegistryState;
use crate::runtime::shared::{Shared, Start};
use crate::sync::{Mutex, MutexGuard, ThreadHandle, start_thread};

/// Why no thread was started.
#[derive(Debug)]
pub(crate) enum StartError {
    /// The caller's condition for a start does not hold.
    AtLimit,
    /// The pool is over.
    Over,
    /// The system refused it.
    Refused(io::Error),
}

/// What is decided about a thread before it is started.
pub(super) struct NewThread {
    pub(super) index: usize,
    name: String,
    /// The value of `shrinks` before `max_size` was read.
    shrinks: usize,
}

impl Shared {
    /// Starts a worker if none is idle and there is spare capacity.
    pub(super) fn start_for_queue(
        self: &Arc<Self>,
        search: Option<Search>,
    ) -> Result<(), StartError> {
        self.start_worker(search, |now| now.may_start(self.sizes.max()))
    }

    /// Reports a refused thread. Returns whether a worker was started.
    pub(super) fn report_start(&self, started: Result<(), StartError>) -> bool {
        if let Err(StartError::Refused(error)) = &started {
            self.emit(Event::Refused(error));
        }
        started.is_ok()
    }

    /// Starts workers until there are `core_size`. Returns how many it started.
    pub(crate) fn start_core(self: &Arc<Self>) -> usize {
        let mut started = 0;
        while !self.in_flight.is_closed()
            && self.report_start(self.start_worker(None, |now| self.is_below_core(now)))
        {
            started += 1;
        }
        started
    }

    /// Reports what happens to workers. Their counts do not fit a blocking region of the subscriber's meanwhile, so the thread
    /// is no worker during the call.
    #[inline]
    pub(super) fn emit(&self, event: Event<'_>) {
        #[cfg(feature = "tracing")]
        if self.config.hooks.traces {
            outside_of_worker(|| self.config.hooks.emit(&self.config.name, event));
        }
        #[cfg(not(feature = "tracing"))]
        let _ = event;
    }

    /// Starts a worker if `may` allows it, evaluated under the registry's lock.
    pub(crate) fn start_worker(
        self: &Arc<Self>,
        search: Option<Search>,
        may: impl Fn(Snapshot) -> bool,
    ) -> Result<(), StartError> {
        let may = || may(self.counts.load());
        let (registry, thread) = self
            .lock_for_start(RegistryState::next_index, may)
            .inspect_err(|error| self.clear_if_over(matches!(error, StartError::Over)))?;
        let index = thread.index;
        let registered =
            self.start_registered(registry, thread, search, |registry, handle, metrics| {
                let taken = registry.take_index();
                debug_assert_eq!(taken, index, "the registry was locked all the time");
                let now = self.counts.add_worker();
                registry.register(handle, metrics, now.total());
                now
            });
        match registered {
            Ok(now) => {
                if now.total() > self.sizes.core() && now.idle() > 0 {
                    // Core workers park without a deadline: now one of them is surplus and needs
                    // one.
                    self.idle.recheck_all();
                }
                self.emit(Event::Grown { index, workers: now.total() });
                Ok(())
            }
            Err(error) => Err(StartError::Refused(error)),
        }
    }

    /// Locks the registry if a thread `may` be started, and finds an index and a name for it.
    pub(super) fn lock_for_start(
        &self,
        index: impl Fn(&RegistryState) -> usize,
        may: impl Fn() -> bool,
    ) -> Result<(MutexGuard<'_, RegistryState>, NewThread), StartError> {
        let mut registry = self.registry.lock_reaped();
        // The name that the user's hook gave, and the index that it is for.
        let mut hook_name = None;
        let (index, name, shrinks) = loop {
            // Race 16: the pool may be over by now.
            if self.in_flight.is_over() {
                return Err(StartError::Over);
            }
            // Race 15: before `max_size`. A worker that was started under a larger one notices that when it rests.
            let shrinks = self.shrinks.get();
            if !may() {
                return Err(StartError::AtLimit);
            }
            let index = index(&registry);
            match hook_name.take() {
                Some((for_index, name)) if for_index == index => break (index, name, shrinks),
                _ if self.config.hooks.thread_name.is_some() => {
                    // User code runs outside of the lock. The index may be taken afterwards: then
                    // ask again. Reserving the index first would save the loop, but two starters
                    // could then hold the indexes 1 and 2 where one more worker is allowed. If the
                    // starter with 1 gives up, a worker runs with an index of `max_size` or above.
                    drop(registry);
                    // In the hook, a worker that starts another or leaves is no worker.
                    let name = outside_of_worker(|| self.config.hooks.thread_name(index));
                    hook_name = Some((index, name));
                    registry = self.registry.lock_reaped();
                }
                _ => break (index, None, shrinks),
            }
        };
        let name = name.unwrap_or_else(|| format!("{}-{index}", self.config.name));
        Ok((registry, NewThread { index, name, shrinks }))
    }

    /// Starts a thread, calls `register` for it, and unlocks the registry. The thread waits at the gate until then.
    pub(super) fn start_registered<R>(
        self: &Arc<Self>,
        mut registry: MutexGuard<'_, RegistryState>,
        thread: NewThread,
        search: Option<Search>,
        register: impl FnOnce(&mut RegistryState, ThreadHandle<()>, Arc<WorkerMetrics>) -> R,
    ) -> io::Result<R> {
        let NewThread { index, name, shrinks } = thread;
        let key = registry.next_key();
        let metrics = Arc::new(WorkerMetrics::default());
        let gate = Arc::new(Mutex::new(()));
        let start = Start {
            shared: Arc::clone(self),
            gate: Arc::clone(&gate),
            key,
            index,
            metrics: Arc::clone(&metrics),
            search,
            shrinks,
        };
        let body = self.body;
        let gate_guard = gate.lock();
        let stack_size = Some(self.config.stack_size);
        let started = self
            .ensure_keeper(&mut registry)
            .and_then(|()| start_thread(name, stack_size, move || body(start)));
        registry.refused += usize::from(started.is_err());
        let registered = started.map(|handle| register(&mut registry, handle, metrics));
        // The registry first: the new worker may start the next one at once.
        drop(registry);
        drop(gate_guard);
        registered
    }
}
