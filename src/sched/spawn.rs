//! Starting threads: one for each worker, under the registry's lock.

use std::io;
use std::sync::Arc;

use crate::crew::{Exit, RegistryState, Search, Snapshot, ThreadKey, WorkerMetrics};
use crate::keeper::End;
use crate::observe::Event;
use crate::sched::context::{is_outside_of_worker, outside_of_worker};
use crate::sched::shared::Shared;
use crate::sched::worker::{self, Start};
use crate::sync::unwind::{discard, quietly};
use crate::sync::{Mutex, MutexGuard, at_thread_exit, start_thread};
use crate::thread::{Identity, identity, set_identity};

impl Shared {
    /// Starts workers until there are `core_size`. Returns how many it started.
    pub(crate) fn start_core(self: &Arc<Self>) -> usize {
        let mut started = 0;
        let start = || self.start_worker(None, None, &|now| self.is_below_core(now));
        let report = |error: &_| self.report_refusal(error);
        while !self.in_flight.is_closed() && matches!(start().inspect_err(report), Ok(true)) {
            started += 1;
        }
        started
    }

    /// Starts a worker for a task that was queued, or is queued next. The caller has begun the
    /// worker's search. Returns what [`start_worker`](Self::start_worker) does.
    pub(super) fn start_searching(
        self: &Arc<Self>,
        may: &dyn Fn(Snapshot) -> bool,
    ) -> io::Result<bool> {
        let started = self.start_worker(Some(Search::Starting), None, may);
        if !matches!(started, Ok(true)) {
            // Race 1: other submitters may have relied on this start.
            self.counts.end_search(Search::Starting).look(self);
        }
        started.inspect_err(|error| self.report_refusal(error))
    }

    /// Called after other threads can no longer rely on the start: the subscriber may be slow.
    pub(super) fn report_refusal(&self, error: &io::Error) {
        self.emit(Event::Refused(error.to_string()));
    }

    /// Reports what happens to workers. Their counts do not fit a blocking region of the
    /// subscriber's meanwhile, so the thread is no worker during the call. The keeper leaves the
    /// call to the helper.
    pub(crate) fn emit(&self, event: Event<'static>) {
        let hooks = &self.config.hooks;
        if !hooks.has_subscriber() {
            return;
        }
        // The keeper and the helper have no index.
        let is_own =
            |own: Identity| own.pool == self.id() && (own.index, own.leaving) == (None, None);
        if identity().is_some_and(is_own) {
            let (hooks, name) = (hooks.clone(), self.config.name.clone());
            return self.run_later(Box::new(move || hooks.emit(&name, event)));
        }
        let _outside = outside_of_worker();
        hooks.emit(&self.config.name, event);
    }

    /// Starts a worker if `may` allows it, evaluated under the registry's lock, and unless the pool
    /// is over: one more, or one in the place of a predecessor with this key and index, which must
    /// leave then. Returns whether it did, or the system's refusal.
    #[cold]
    pub(super) fn start_worker(
        self: &Arc<Self>,
        search: Option<Search>,
        predecessor: Option<(ThreadKey, usize)>,
        may: &dyn Fn(Snapshot) -> bool,
    ) -> io::Result<bool> {
        // A predecessor needs its own index during its stop hook.
        let inherits = predecessor.filter(|_| self.config.hooks.on_worker_stop.is_none());
        let locked = self.lock_for_start(inherits.map(|(_, index)| index), may);
        let Some((mut registry, index, name, shrinks)) = locked else {
            self.clear_if_over(self.in_flight.is_over());
            return Ok(false);
        };
        let key = registry.take_key();
        let metrics = Arc::new(WorkerMetrics::default());
        let gate = Arc::new(Mutex::new(()));
        let start = Start {
            shared: Arc::clone(self),
            gate: Arc::clone(&gate),
            key,
            index,
            has_default_name: name.is_none(),
            metrics: Arc::clone(&metrics),
            search,
            shrinks,
        };
        let name = name.unwrap_or_else(|| format!("{}-{index}", self.config.name));
        let stack_size = Some(self.config.stack_size);
        // The thread waits here until it is registered and counted.
        let gate_guard = gate.lock();
        let started = self
            .ensure_keeper(&mut registry)
            .and_then(|()| start_thread(name, stack_size, Box::new(move || worker::run(start))));
        let handle = match started {
            Ok(handle) => handle,
            Err(error) => {
                registry.stats.threads_refused += 1;
                return Err(error);
            }
        };
        if inherits.is_none() {
            registry.take_index(index);
        }
        let now = match predecessor {
            Some((left, _)) => {
                registry.deregister(left);
                self.counts.load()
            }
            None => self.counts.add_worker(),
        };
        registry.register_worker(key, handle, metrics, now.total());
        // The registry first: the new worker may start the next one at once.
        drop(registry);
        drop(gate_guard);
        if predecessor.is_none() {
            if now.total() > self.sizes.core() && now.idle() > 0 {
                // Core workers park without a deadline: now one of them is surplus and needs one.
                self.idle.recheck_all();
            }
            self.emit(Event::Grown { index, workers: now.total() });
        }
        Ok(true)
    }

    /// Starts a thread of the pool that is no worker. The last that it does is to send what `body`
    /// returns.
    pub(super) fn start_own(
        self: &Arc<Self>,
        registry: &mut RegistryState,
        what: &str,
        stack_size: usize,
        body: fn(&Arc<Self>, ThreadKey) -> Vec<End>,
    ) -> io::Result<()> {
        let key = registry.take_key();
        let shared = Arc::clone(self);
        let name = format!("{}-{what}", self.config.name);
        let body = move || {
            // Made here: if the system refuses the thread, this closure is dropped under the
            // registry's lock, which the drop of an `Exit` takes.
            let exit = Exit { registry: Arc::clone(&shared.registry), key };
            let _exit = at_thread_exit(exit);
            shared.inherited.apply();
            // The user code that it runs belongs to the pool, like a worker's hooks: it may not
            // join the pool, which would wait for it.
            set_identity(shared.id(), None, None);
            let ends = body(&shared, key);
            set_identity(shared.id(), None, Some(key));
            // This may drop the last reference to the pool, and with it the user's hooks.
            discard(shared);
            for end in ends {
                quietly(|| _ = end.send(()));
            }
        };
        // The thread cannot exit before it is registered: its exit takes the registry's lock.
        registry.register(key, start_thread(name, Some(stack_size), Box::new(body))?);
        Ok(())
    }

    /// Locks the registry if a thread `may` be started, and finds an index, unless that is `given`.
    /// Returns also the user's name for it, if there is a hook, and the value of `shrinks` before
    /// `may` has read `max_size`.
    fn lock_for_start(
        &self,
        given: Option<usize>,
        may: &dyn Fn(Snapshot) -> bool,
    ) -> Option<(MutexGuard<'_, RegistryState>, usize, Option<String>, usize)> {
        // Not inside another hook on this thread, such as this one, which has submitted a task that
        // needs a thread. Calling it again could submit the next task, and so on without end.
        let hooks = &self.config.hooks;
        let asks = hooks.thread_name.is_some() && !is_outside_of_worker();
        let mut registry = self.registry.lock_reaped();
        // The name that the user's hook gave, and the index that it is for.
        let mut name = None;
        loop {
            // Race 16: the pool may be over by now.
            if self.in_flight.is_over() {
                return None;
            }
            // Race 15: before `max_size`. A worker that was started under a larger one notices that
            // when it rests.
            let shrinks = self.shrinks.get();
            if !may(self.counts.load()) {
                return None;
            }
            let index = given.unwrap_or_else(|| registry.next_index());
            if !asks || name.as_ref().is_some_and(|(of, _)| *of == index) {
                return Some((registry, index, name.and_then(|(_, name)| name), shrinks));
            }
            // User code runs outside of the lock. The index may be taken afterwards: then ask
            // again. Reserving the index first would save the loop, but two starters could then
            // hold the indexes 1 and 2 where one more worker is allowed. If the starter with 1
            // gives up, a worker runs with an index of `max_size` or above.
            drop(registry);
            // In the hook, a worker that starts another or leaves is no worker.
            let outside = outside_of_worker();
            name = Some((index, hooks.thread_name(index)));
            drop(outside);
            registry = self.registry.lock_reaped();
        }
    }
}
