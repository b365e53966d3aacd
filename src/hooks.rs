//! The user's functions that workers call about themselves.

use std::fmt;

use crate::unwind::quietly;

type IndexHook = Box<dyn Fn(usize) + Send + Sync>;

/// See the [module's documentation](self). A hook that panics is contained and changes nothing.
#[derive(Default)]
pub(crate) struct Hooks {
    pub(crate) on_worker_start: Option<IndexHook>,
    pub(crate) on_worker_stop: Option<IndexHook>,
}

impl Hooks {
    pub(crate) fn worker_started(&self, index: usize) {
        call(self.on_worker_start.as_ref(), index);
    }

    pub(crate) fn worker_stops(&self, index: usize) {
        call(self.on_worker_stop.as_ref(), index);
    }
}

fn call(hook: Option<&IndexHook>, index: usize) {
    if let Some(hook) = hook {
        quietly(|| hook(index));
    }
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks")
            .field("on_worker_start", &self.on_worker_start.is_some())
            .field("on_worker_stop", &self.on_worker_stop.is_some())
            .finish()
    }
}
