//! The user's hooks: worker start and stop, thread names, panics.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::keeper::Keeper;
#[cfg(feature = "tracing")]
use crate::observe::events;
use crate::observe::events::Event;
use crate::observe::observer::Observe;
use crate::report::Report;
use crate::sync::unwind::{Payload, abort_on_panic, contain, discard, quietly};
use crate::thread::PoolId;

type IndexHook = Arc<dyn Fn(usize) + Send + Sync>;
type AroundHook = Arc<dyn Fn(&mut dyn FnMut()) + Send + Sync>;
type NameHook = Arc<dyn Fn(usize) -> String + Send + Sync>;
type PanicHandler = Arc<dyn Fn(Payload) + Send + Sync>;
pub(super) type StallHook = Arc<dyn Fn(&Report) + Send + Sync>;

/// When the keeper reports stalls, and to which hook.
#[derive(Clone)]
pub(crate) struct Watch {
    pub(crate) after: Duration,
    pub(crate) hook: StallHook,
}

/// Makes the tracker of a pool. Only the builder's methods name such a function: so a program
/// without reports does not contain it.
pub(super) type NewTracker = fn(PoolId, &Arc<Keeper>, &Hooks) -> Arc<dyn Observe>;

/// See the [module's documentation](self). A panic of a hook, or of its destructor, is contained
/// and changes nothing: any thread may drop the last reference to a pool, such as one that drops a
/// stale waker. Shared by the pools of a cloned builder.
#[derive(Clone, Default)]
pub(crate) struct Hooks {
    pub(crate) on_worker_start: Option<IndexHook>,
    pub(crate) on_worker_stop: Option<IndexHook>,
    /// Calls its argument, which is the life of the worker.
    pub(crate) around_worker: Option<AroundHook>,
    pub(crate) thread_name: Option<NameHook>,
    pub(crate) panic_handler: Option<PanicHandler>,
    /// Context hooks and those of the integrations, in the order in which they were added.
    pub(crate) observers: Vec<Arc<dyn Observe>>,
    /// `None` if the pool does not track its tasks.
    pub(crate) tracker: Option<NewTracker>,
    /// Of the tracker. `None` if it reports no stalls.
    pub(crate) watch: Option<Watch>,
    /// Whether events are reported.
    pub(crate) traces: bool,
}

impl Hooks {
    /// Whether a worker runs user code before its first task.
    pub(crate) fn has_start_hook(&self) -> bool {
        self.has_subscriber() || self.on_worker_start.is_some() || self.around_worker.is_some()
    }

    /// Whether events are reported.
    pub(crate) fn has_subscriber(&self) -> bool {
        cfg!(feature = "tracing") && self.traces
    }

    /// Calls `live` once, inside the hook if there is one, and if that calls it.
    pub(crate) fn call_around(&self, live: impl FnOnce()) {
        let mut live = Some(live);
        // A defect of the crate inside of the hook must not look like a panic of the hook.
        let mut live_once = || live.take().into_iter().for_each(|live| abort_on_panic(live));
        if let Some(around) = &self.around_worker {
            self.call(|| around(&mut live_once));
        }
        live_once();
    }

    /// Returns the name that the user's hook gives. `None` without a hook, or if it panics.
    pub(crate) fn thread_name(&self, index: usize) -> Option<String> {
        let thread_name = self.thread_name.as_ref()?;
        match contain(|| thread_name(index)) {
            // A thread name must not contain NUL: `std` would panic.
            Ok(name) => Some(name.replace('\0', "\u{fffd}")),
            Err(payload) => {
                self.panicked(payload);
                None
            }
        }
    }

    /// Reports an event of the pool of this name. Runs the user's subscriber: no lock may be held.
    pub(crate) fn emit(&self, pool: &str, event: Event<'_>) {
        #[cfg(feature = "tracing")]
        if self.traces {
            quietly(|| events::emit(pool, event));
        }
        #[cfg(not(feature = "tracing"))]
        let _ = (pool, event);
    }

    /// Passes the panic of a task or a hook, which no handle receives, to the panic handler.
    pub(crate) fn panicked(&self, payload: Payload) {
        match &self.panic_handler {
            Some(handler) => quietly(|| handler(payload)),
            None => discard(payload),
        }
    }

    /// Calls a hook, and contains its panic.
    pub(crate) fn call(&self, hook: impl FnOnce()) {
        if let Err(payload) = contain(hook) {
            self.panicked(payload);
        }
    }
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks").finish_non_exhaustive()
    }
}
