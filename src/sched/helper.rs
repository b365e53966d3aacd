//! The helper: a pool's thread for user code that belongs to no task. The wakers of futures that
//! wait for the pool (for a permit, a slot of a group, quiet, or its end), the destructors of tasks
//! that a deadline cancels, the hook for stalls, and subscribers of the keeper's events.
//!
//! Such code may take long, or wait for the pool. The threads that cause it are in the middle of a
//! change that others rely on, or are the keeper, which gives the pool its workers. So they leave
//! it to the helper. The keeper starts the helper when there is such code, with the stack of a
//! worker, and it exits after the last worker has left. Like the keeper it is no worker, and
//! belongs to the pool (law 9). If the system refuses it, the keeper runs the code between its
//! jobs, and asks for it again after a pause, as for a worker. Without a keeper or a helper, the
//! calling thread runs the code: it is none of the pool's, or a worker that has left, such as one
//! in its stop hook.
//!
//! The first future that waits for the pool's end starts the helper too. While there is one the
//! helper stays until the pool is over, waits until all other threads are gone, and wakes those
//! futures last. Each of them then waits until the helper is gone as well, unless the helper polls
//! it in that wake. If the system refuses the helper for that long, the keeper does so in its
//! place. A pool without workers may have neither: then the future asks again.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::{io, mem, thread};

use futures_channel::oneshot;

use crate::crew::{RegistryState, ThreadKey};
use crate::keeper::{End, KeeperJob, KeeperState, PAUSE, UserCode};
use crate::observe::Event;
use crate::sched::poll_wait::{PollScope, Poller};
use crate::sched::shared::Shared;
use crate::sched::trampoline::off_trampoline;
use crate::sync::Mutex;
use crate::sync::unwind::quietly;

/// Runs user code, and contains its panic.
pub(crate) fn run(code: UserCode) {
    off_trampoline(|| quietly(code));
}

impl Shared {
    /// Lets the helper run user code.
    pub(super) fn run_later(&self, code: UserCode) {
        let mut state = self.keeper.state.lock();
        if !state.is_there && !state.has_helper {
            drop(state);
            return run(code);
        }
        state.user_code.push(code);
        let parker = if state.has_helper { &self.keeper.helper } else { &self.keeper.parker };
        drop(state);
        // Race 42: added first. The helper stays while there is any, and the keeper while there is
        // no helper.
        parker.recheck();
    }

    /// Starts the helper, unless there is one.
    pub(super) fn ensure_helper(self: &Arc<Self>, registry: &mut RegistryState) -> io::Result<()> {
        if self.keeper.state.lock().has_helper {
            return Ok(());
        }
        let started = self.start_own(registry, "helper", self.config.stack_size, Self::help);
        registry.stats.threads_refused += usize::from(started.is_err());
        let mut state = self.keeper.state.lock();
        state.has_helper = started.is_ok();
        if state.has_helper {
            state.pauses[KeeperJob::Helper as usize] = PAUSE;
        }
        drop(state);
        // Race 42: told first. Code may have come for the keeper while the helper looked and
        // parked: it looks again.
        self.keeper.helper.recheck();
        started
    }

    /// The system has refused the helper.
    pub(super) fn ask_for_helper_again(self: &Arc<Self>, error: &io::Error) {
        self.ask_again(KeeperJob::Helper);
        self.emit(Event::Refused(error.to_string()));
    }

    /// Runs user code until the pool has no worker. Returns what waits for the end of the pool,
    /// which has come.
    fn help(self: &Arc<Self>, key: ThreadKey) -> Vec<End> {
        loop {
            let code = mem::take(&mut self.keeper.state.lock().user_code);
            if code.is_empty() {
                if let Some(ends) = self.try_leave(true) {
                    return self.end(key, ends);
                }
                // Race 42: looked at before.
                self.keeper.helper.park(None);
            }
            code.into_iter().for_each(run);
        }
    }

    /// Waits until all other threads are gone, if futures wait for that. Returns these.
    pub(super) fn end(&self, key: ThreadKey, ends: Vec<End>) -> Vec<End> {
        if !ends.is_empty() {
            self.registry.wait_last(key);
        }
        ends
    }

    /// Lets the helper or the keeper leave if the pool has no worker. The one that runs user code
    /// leaves none behind, and stays until the pool is over if futures wait for that. Takes these.
    pub(super) fn try_leave(&self, is_helper: bool) -> Option<Vec<End>> {
        if self.counts.load().total() > 0 {
            return None;
        }
        // The starter holds the lock until it has told that the helper is there or, after the
        // keeper, until the worker is counted.
        let _registry = self.registry.lock();
        let KeeperState { is_there, has_helper, user_code, ends, .. } =
            &mut *self.keeper.state.lock();
        let runs_code = is_helper || !*has_helper;
        let is_done = user_code.is_empty() && (ends.is_empty() || self.in_flight.is_over());
        if self.counts.load().total() > 0 || (runs_code && !is_done) {
            return None;
        }
        *(if is_helper { has_helper } else { is_there }) = false;
        Some(if runs_code { mem::take(ends) } else { Vec::new() })
    }

    /// Polls [`begin_end_wait`](Self::begin_end_wait) until it succeeds.
    pub(crate) fn poll_begin_end_wait(
        self: &Arc<Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<oneshot::Receiver<()>>> {
        self.begin_end_wait().map_or_else(
            |_| {
                // No thread of the pool could do so after a while.
                thread::sleep(PAUSE);
                context.waker().wake_by_ref();
                Poll::Pending
            },
            Poll::Ready,
        )
    }

    /// Returns what is ready when the pool is closed and all of its threads but the helper are
    /// gone. `None` if all are gone now. An error if the system refuses the helper, and there is no
    /// keeper.
    fn begin_end_wait(self: &Arc<Self>) -> io::Result<Option<oneshot::Receiver<()>>> {
        let mut registry = self.registry.lock_reaped();
        // Under the lock: a shutdown that has seen the last thread go has closed the pool before
        // (race 16).
        if self.in_flight.is_over() && registry.is_gone() {
            return Ok(None);
        }
        let refused = self.ensure_helper(&mut registry).err();
        let (sender, end) = oneshot::channel();
        let mut state = self.keeper.state.lock();
        let (given_up, waiting): (Vec<_>, _) =
            mem::take(&mut state.ends).into_iter().partition(End::is_canceled);
        state.ends = waiting;
        let is_served = state.has_helper || state.is_there;
        if is_served {
            state.ends.push(sender);
        }
        drop((state, registry));
        // Unlocked first: this may call a waker that is about to be dropped.
        drop(given_up);
        match refused {
            Some(error) if !is_served => return Err(error),
            Some(error) => self.ask_for_helper_again(&error),
            None => {}
        }
        Ok(Some(end))
    }
}

/// What wakes a future that waits for the pool.
struct Relay {
    shared: Weak<Shared>,
    /// `None` once it has been called. Moved, since to clone it is user code.
    waker: Mutex<Option<Waker>>,
}

impl Wake for Relay {
    fn wake(self: Arc<Self>) {
        let Some(waker) = self.waker.lock().take() else { return };
        // What it polls is polled as if by an executor outside the pool.
        let code = move || {
            let _polls = PollScope::begin(Poller::Waker);
            waker.wake();
        };
        match self.shared.upgrade() {
            Some(shared) => shared.run_later(Box::new(code)),
            None => run(Box::new(code)),
        }
    }
}

/// Awaits a future which threads of the pool wake.
pub(crate) async fn relayed<F: Future + Unpin>(shared: &Arc<Shared>, mut future: F) -> F::Output {
    let poll = |context: &mut Context<'_>| {
        let waker = Mutex::new(Some(context.waker().clone()));
        let relay = Relay { shared: Arc::downgrade(shared), waker };
        Pin::new(&mut future).poll(&mut Context::from_waker(&Waker::from(Arc::new(relay))))
    };
    poll_fn(poll).await
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests;
