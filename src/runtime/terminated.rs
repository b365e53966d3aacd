//! Waiting for the end of a pool in async code. One thread waits for all such futures of a pool, as `shutdown_join` does, and wakes them.
//! It is none of the pool's threads: those are gone when it calls wakers, which are user code.

use std::sync::Arc;
use std::time::Instant;
use std::{io, mem};

use futures_channel::oneshot;

use crate::runtime::shared::Shared;
use crate::sync::unwind::{discard, quietly};
use crate::sync::{is_current, start_thread};

impl Shared {
    /// Returns what is ready when the pool is closed and its threads are gone. `None` if it is so now. An error if the system refuses the
    /// thread that would wait.
    pub(crate) fn begin_end_wait(self: &Arc<Self>) -> io::Result<Option<oneshot::Receiver<()>>> {
        if self.in_flight.is_over() && self.registry.wait_gone(None, Some(Instant::now())) {
            return Ok(None);
        }
        let (sender, end) = oneshot::channel();
        let mut waiting = self.ends.waiting.lock();
        if let Some(senders) = &mut *waiting {
            let given_up: Vec<_>;
            (given_up, *senders) =
                mem::take(senders).into_iter().partition(oneshot::Sender::is_canceled);
            senders.push(sender);
            // Unlock first: this may call a waker that is about to be dropped.
            drop(waiting);
            drop(given_up);
            return Ok(Some(end));
        }
        let shared = Arc::clone(self);
        let name = format!("{}-end", self.config.name);
        let thread = start_thread(name, None, move || shared.wait_for_end())?;
        *waiting = Some(vec![sender]);
        *self.ends.thread.lock() = Some(thread);
        Ok(Some(end))
    }

    /// Joins the thread that has waited, unless the caller is polled in a wake by that thread, or another caller joins it.
    pub(crate) fn join_end_thread(&self) {
        // Unlock first: that thread may come here in a wake that follows.
        let thread = self.ends.thread.lock().take_if(|thread| !is_current(thread));
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }

    fn wait_for_end(self: Arc<Self>) {
        self.inherited.apply();
        self.registry.wait_closed(&self.in_flight);
        self.in_flight.wait_quiet(None);
        self.registry.wait_gone(None, None);
        let waiting = self.ends.waiting.lock().take();
        // This may drop the last reference to the pool, and with it the user's hooks.
        discard(self);
        for sender in waiting.into_iter().flatten() {
            quietly(|| _ = sender.send(()));
        }
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use futures_executor::block_on;

    use crate::ThreadPool;

    #[test]
    fn a_wait_that_is_dropped_leaves_nothing_behind() {
        let pool = ThreadPool::default();
        let shared = pool.shared();
        for _ in 0..10 {
            drop(shared.begin_end_wait().unwrap());
        }
        let _end = shared.begin_end_wait().unwrap();
        assert_eq!(shared.ends.waiting.lock().as_ref().unwrap().len(), 1);
        pool.close();
    }

    #[test]
    fn the_thread_that_has_waited_is_joined() {
        let pool = ThreadPool::default();
        let end = pool.shared().begin_end_wait().unwrap().unwrap();
        pool.close();
        block_on(end).unwrap();
        block_on(pool.terminated());
        assert!(pool.shared().ends.thread.lock().is_none());
    }
}
