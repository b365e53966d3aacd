//! The user's functions that are called about workers and their panics.

use std::fmt;

use crate::sync::unwind::{Payload, contain, discard, quietly};

type IndexHook = Box<dyn Fn(usize) + Send + Sync>;
type NameHook = Box<dyn Fn(usize) -> String + Send + Sync>;
type PanicHandler = Box<dyn Fn(Payload) + Send + Sync>;

/// See the [module's documentation](self). A hook that panics is contained and changes nothing.
#[derive(Default)]
pub(crate) struct Hooks {
    pub(crate) on_worker_start: Option<IndexHook>,
    pub(crate) on_worker_stop: Option<IndexHook>,
    pub(crate) thread_name: Option<NameHook>,
    pub(crate) panic_handler: Option<PanicHandler>,
}

impl Hooks {
    pub(crate) fn worker_started(&self, index: usize) {
        self.call(self.on_worker_start.as_ref(), index);
    }

    pub(crate) fn has_stop_hook(&self) -> bool {
        self.on_worker_stop.is_some()
    }

    pub(crate) fn worker_stops(&self, index: usize) {
        self.call(self.on_worker_stop.as_ref(), index);
    }

    /// The name for a thread, if the user wants to say. One that panics says nothing.
    pub(crate) fn thread_name(&self, index: usize) -> Option<String> {
        let thread_name = self.thread_name.as_ref()?;
        match contain(|| thread_name(index)) {
            // The system cannot have a NUL in it.
            Ok(name) => Some(name.replace('\0', "\u{fffd}")),
            Err(payload) => {
                self.panicked(payload);
                None
            }
        }
    }

    /// A task or a hook has panicked, and nobody else will hear of it.
    pub(crate) fn panicked(&self, payload: Payload) {
        match &self.panic_handler {
            Some(handler) => quietly(|| handler(payload)),
            None => discard(payload),
        }
    }

    fn call(&self, hook: Option<&IndexHook>, index: usize) {
        if let Some(hook) = hook {
            if let Err(payload) = contain(|| hook(index)) {
                self.panicked(payload);
            }
        }
    }
}

/// The last reference to a pool may be anybody's, such as the waker of a future that has ended: he does not hear of
/// a destructor's panic.
impl Drop for Hooks {
    fn drop(&mut self) {
        discard(self.on_worker_start.take());
        discard(self.on_worker_stop.take());
        discard(self.thread_name.take());
        discard(self.panic_handler.take());
    }
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks")
            .field("on_worker_start", &self.on_worker_start.is_some())
            .field("on_worker_stop", &self.on_worker_stop.is_some())
            .field("thread_name", &self.thread_name.is_some())
            .field("panic_handler", &self.panic_handler.is_some())
            .finish()
    }
}
