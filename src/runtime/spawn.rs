//! Starting threads: one for each worker, under the lock of the registry.

use std::io;
use std::sync::Arc;

use crate::runtime::context::outside_of_worker;
use crate::runtime::counts::{Search, Snapshot};
use crate::runtime::metrics::WorkerMetrics;
use crate::runtime::registry::RegistryState;
use crate::runtime::shared::{Shared, Start};
use crate::sync::{Mutex, MutexGuard, ThreadHandle, start_thread};

/// Why no thread was started.
#[derive(Debug)]
pub(crate) enum StartError {
    /// There is no room for one.
    AtLimit,
    /// The pool has ended.
    Over,
    /// The system refused it.
    Refused(io::Error),
}

impl Shared {
    /// Starts a worker, if there may be one more runnable.
    pub(super) fn start_for_queue(
        self: &Arc<Self>,
        search: Option<Search>,
    ) -> Result<(), StartError> {
        self.start_worker(search, |now| now.may_start(self.sizes.max()))
    }

    /// Starts workers until there are `core_size`. Returns how many it started.
    pub(crate) fn start_core(self: &Arc<Self>) -> usize {
        let mut started = 0;
        while !self.in_flight.is_closed()
            && self.start_worker(None, |now| self.is_below_core(now)).is_ok()
        {
            started += 1;
        }
        started
    }

    /// Starts a worker if there is `room` for it.
    pub(crate) fn start_worker(
        self: &Arc<Self>,
        search: Option<Search>,
        may: impl Fn(Snapshot) -> bool,
    ) -> Result<(), StartError> {
        let may = || may(self.counts.load());
        let (mut registry, index, name) = self.prepare_start(RegistryState::next_index, may)?;
        registry.take_index();
        let entered =
            self.start_named(&mut registry, index, name, search, |registry, handle, metrics| {
                let now = self.counts.add_worker();
                registry.register(handle, metrics, now.total());
                now
            });
        match entered {
            Ok(now) => {
                drop(registry);
                if now.total() > self.sizes.core() && now.idle() > 0 {
                    // They may have gone to sleep without a time limit: now one of them is surplus.
                    self.idle.recheck_all();
                }
                Ok(())
            }
            Err(error) => {
                registry.return_index(index);
                Err(StartError::Refused(error))
            }
        }
    }

    /// Locks the registry, if a thread `may` be started, and finds the index and the name for it.
    pub(super) fn prepare_start(
        &self,
        index: impl Fn(&RegistryState) -> usize,
        may: impl Fn() -> bool,
    ) -> Result<(MutexGuard<'_, RegistryState>, usize, String), StartError> {
        self.registry.reap();
        let mut registry = self.registry.lock();
        // The name for an index, if the user gives the names.
        let mut given = None;
        let (index, name) = loop {
            // A submitter may be slower than its task: by now the pool may have ended.
            if self.in_flight.is_over() {
                return Err(StartError::Over);
            }
            if !may() {
                return Err(StartError::AtLimit);
            }
            let index = index(&registry);
            match given.take() {
                Some((for_index, name)) if for_index == index => break (index, name),
                _ if self.config.hooks.thread_name.is_some() => {
                    // Not under the lock. The index may be somebody else's afterwards.
                    drop(registry);
                    // A worker that starts or leaves calls the hook as if it were no worker.
                    let name = outside_of_worker(|| self.config.hooks.thread_name(index));
                    given = Some((index, name));
                    registry = self.registry.lock();
                }
                _ => break (index, None),
            }
        };
        Ok((registry, index, name.unwrap_or_else(|| format!("{}-{index}", self.config.name))))
    }

    /// Starts a thread, which does nothing before `enter` has entered it.
    pub(super) fn start_named<R>(
        self: &Arc<Self>,
        registry: &mut RegistryState,
        index: usize,
        name: String,
        search: Option<Search>,
        enter: impl FnOnce(&mut RegistryState, ThreadHandle<()>, Arc<WorkerMetrics>) -> R,
    ) -> io::Result<R> {
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
        };
        let body = self.body;
        let shut = gate.lock();
        let started = start_thread(name, self.config.stack_size, move || body(start));
        registry.refused += usize::from(started.is_err());
        let entered = started.map(|handle| enter(registry, handle, metrics));
        drop(shut);
        entered
    }
}
