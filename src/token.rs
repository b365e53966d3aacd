//! Whether something has been cancelled, for those who do it: [`CancellationToken`].

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use slab::Slab;

use crate::sync::unwind::{discard, quietly};
use crate::sync::{AtomicUsize, Mutex, Ordering};

/// Tells the tasks of a [`TaskGroup`](crate::TaskGroup) whether the group has been cancelled. From
/// [`TaskGroup::token`](crate::TaskGroup::token).
///
/// Clones tell the same. A closure that takes long asks [`is_cancelled`](Self::is_cancelled) now and then; a future can
/// wait by [`cancelled`](Self::cancelled). A token stays cancelled: when its group is used again after a
/// [`wait`](crate::TaskGroup::wait), that has a new one.
///
/// ```
/// let pool = elastipool::ThreadPool::default();
/// let group = pool.group::<&str>();
/// let token = group.token();
/// group.execute(move || {
///     while !token.is_cancelled() {
///         std::thread::yield_now(); // a piece of work
///     }
///     Ok(())
/// }).unwrap();
/// group.execute(|| Err("no such file")).unwrap();
/// assert_eq!(group.wait().unwrap_err().to_string(), "no such file");
/// ```
#[derive(Clone)]
pub struct CancellationToken {
    state: Arc<State>,
}

struct State {
    /// 0, or 1 for ever.
    is_cancelled: AtomicUsize,
    wakers: Mutex<Slab<Waker>>,
}

impl CancellationToken {
    pub(crate) fn new() -> Self {
        let wakers = Mutex::new(Slab::new());
        CancellationToken { state: Arc::new(State { is_cancelled: AtomicUsize::new(0), wakers }) }
    }

    /// Whether it has been cancelled. Costs one load of memory that is seldom written.
    pub fn is_cancelled(&self) -> bool {
        // Acquire: what the canceller did before, such as the failure that is the reason.
        self.state.is_cancelled.load(Ordering::Acquire) != 0
    }

    /// Resolves when it is cancelled, on any executor.
    ///
    /// What waits for this, and for nothing else, waits for somebody to cancel the group: do that before you drop the last
    /// clone of it.
    ///
    /// ```
    /// # #[cfg(feature = "async")] {
    /// let pool = elastipool::ThreadPool::default();
    /// let group = pool.group::<()>();
    /// let told = pool.spawn_await(group.token().cancelled());
    /// group.cancel();
    /// told.await_complete();
    /// # }
    /// ```
    pub fn cancelled(&self) -> Cancelled {
        Cancelled { token: self.clone(), place: None }
    }

    /// Cancels it. Those who wait are [told](Self::tell) after that: not by this, which may be called under a lock.
    pub(crate) fn cancel(&self) {
        self.state.is_cancelled.store(1, Ordering::Release);
    }

    /// Wakes those who wait for the cancellation that has come.
    pub(crate) fn tell(&self) {
        let wakers: Vec<_> = self.state.wakers.lock().drain().collect();
        for waker in wakers {
            // Another executor's, perhaps.
            quietly(|| waker.wake());
        }
    }
}

impl fmt::Debug for CancellationToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancellationToken").field("is_cancelled", &self.is_cancelled()).finish()
    }
}

/// Resolves when a token is cancelled: from [`CancellationToken::cancelled`].
#[must_use = "futures do nothing unless they are polled"]
pub struct Cancelled {
    token: CancellationToken,
    /// Where its waker is, if the token has not been cancelled since.
    place: Option<usize>,
}

impl Future for Cancelled {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let waker = context.waker().clone();
        let state = Arc::clone(&self.token.state);
        let mut wakers = state.wakers.lock();
        // Looked at under the lock: whoever cancels does so before it takes the lock to wake those who wait.
        if self.token.is_cancelled() {
            self.place = None;
            return Poll::Ready(());
        }
        let before = match self.place {
            Some(place) => Some(std::mem::replace(&mut wakers[place], waker)),
            None => {
                self.place = Some(wakers.insert(waker));
                None
            }
        };
        drop(wakers);
        discard(before);
        Poll::Pending
    }
}

impl Drop for Cancelled {
    fn drop(&mut self) {
        let Some(place) = self.place else { return };
        let mut wakers = self.token.state.wakers.lock();
        // After a cancellation it is no longer there, or about to be taken from there.
        let waker = if self.token.is_cancelled() { None } else { wakers.try_remove(place) };
        drop(wakers);
        discard(waker);
    }
}

impl fmt::Debug for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cancelled").field("token", &self.token).finish_non_exhaustive()
    }
}
