//! Tells tasks to stop: [`CancellationToken`].

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use slab::Slab;

use crate::sched::off_trampoline;
use crate::sync::unwind::{discard, quietly};
use crate::sync::{AtomicUsize, Mutex, Ordering};

/// Tells tasks to stop. Each round of a [`TaskGroup`](crate::TaskGroup) has a token
/// ([`TaskGroup::token`](crate::TaskGroup::token)). [`new`](Self::new) makes one for any other
/// tasks.
///
/// Clones share their state. A long closure checks [`is_cancelled`](Self::is_cancelled) now and
/// then; a future can await [`cancelled`](Self::cancelled). A cancelled token stays cancelled:
/// after a [`wait`](crate::TaskGroup::wait) its group has a new token.
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
#[derive(Clone, Default)]
pub struct CancellationToken {
    state: Arc<TokenState>,
}

#[derive(Default)]
struct TokenState {
    /// 0, or 1 forever once cancelled.
    is_cancelled: AtomicUsize,
    wakers: Mutex<Slab<Waker>>,
    /// The group whose token it is, once a user has it.
    owner: Mutex<Option<Weak<dyn TokenOwner>>>,
}

/// A group, as its tokens see it.
pub(crate) trait TokenOwner: Send + Sync {
    /// Cancels the group, unless the round of this token is over.
    fn cancel_round(&self, token: &CancellationToken);
}

impl CancellationToken {
    /// Makes a token that is not cancelled and belongs to no group.
    ///
    /// ```
    /// use elastipool::{CancellationToken, ThreadPool};
    ///
    /// let pool = ThreadPool::default();
    /// let token = CancellationToken::new();
    /// let stop = token.clone();
    /// let steps = pool.evaluate(move || {
    ///     let mut steps = 0;
    ///     while !stop.is_cancelled() {
    ///         std::thread::yield_now(); // a piece of work
    ///         steps += 1;
    ///     }
    ///     steps
    /// });
    /// token.cancel();
    /// println!("{} steps", steps.await_complete());
    /// ```
    pub fn new() -> Self {
        CancellationToken::default()
    }

    /// Cancels the token. Does nothing if it was cancelled before. A token cannot be reset.
    ///
    /// That of a group cancels the group, as [`TaskGroup::cancel`](crate::TaskGroup::cancel) does,
    /// which drops the group's unstarted tasks on the calling thread. An old token, of before a
    /// wait for the cancelled group, does nothing.
    ///
    /// The futures that wait for the token are woken by this call. A panic of a waker is contained.
    /// Does not wait for tasks. For a group's token, destructors of its tasks run on the calling
    /// thread: do not hold a lock that they take.
    ///
    /// ```
    /// use elastipool::{CancellationToken, ThreadPool};
    ///
    /// let pool = ThreadPool::default();
    /// let token = CancellationToken::new();
    /// let stopped = pool.complete(token.cancelled());
    /// token.cancel();
    /// stopped.await_complete();
    ///
    /// let group = pool.group::<()>();
    /// group.token().cancel();
    /// assert!(group.is_cancelled());
    /// ```
    pub fn cancel(&self) {
        let owner = self.state.owner.lock().clone();
        match owner.and_then(|owner| owner.upgrade()) {
            Some(group) => {
                group.cancel_round(self);
                // It may be the last reference.
                discard(group);
            }
            None => {
                self.mark_cancelled();
                self.wake_all();
            }
        }
    }

    /// Lets [`cancel`](Self::cancel) cancel the group.
    pub(crate) fn set_owner(&self, group: Weak<dyn TokenOwner>) {
        self.state.owner.lock().get_or_insert(group);
    }

    /// Whether both are clones of one token.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.state, &other.state)
    }

    /// Returns whether the token was cancelled. Costs one atomic load of memory that is rarely
    /// written.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let group = pool.group::<()>();
    /// let token = group.token();
    /// assert!(!token.is_cancelled());
    /// group.cancel();
    /// assert!(token.is_cancelled());
    /// ```
    pub fn is_cancelled(&self) -> bool {
        // Acquire: makes visible what the canceller wrote before (`cancel`).
        self.state.is_cancelled.load(Ordering::Acquire) != 0
    }

    /// Returns a future that resolves when the token is cancelled, on any executor.
    ///
    /// A task that waits only for this ends only if the token is cancelled: cancel it, or its
    /// group, before you drop the last handle of it.
    ///
    /// ```
    /// # #[cfg(feature = "async")] {
    /// let pool = elastipool::ThreadPool::default();
    /// let group = pool.group::<()>();
    /// let cancelled = pool.spawn_await(group.token().cancelled());
    /// group.cancel();
    /// cancelled.await_complete();
    /// # }
    /// ```
    pub fn cancelled(&self) -> Cancelled {
        Cancelled { token: self.clone(), place: None }
    }

    /// Marks the token. The caller then [wakes](Self::wake_all) the waiters, after it has released
    /// its locks.
    pub(crate) fn mark_cancelled(&self) {
        // Release: publishes what the canceller wrote before, such as the error (`is_cancelled`).
        self.state.is_cancelled.store(1, Ordering::Release);
    }

    /// Wakes the futures that wait for the cancellation.
    pub(crate) fn wake_all(&self) {
        let wakers: Vec<_> = self.state.wakers.lock().drain().collect();
        for waker in wakers {
            // The waker may be a foreign executor's: contain its panics, and let it run its own
            // follow-up work.
            off_trampoline(|| quietly(|| waker.wake()));
        }
    }
}

impl fmt::Debug for CancellationToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancellationToken").field("is_cancelled", &self.is_cancelled()).finish()
    }
}

/// A future that resolves when a token is cancelled. Returned by [`CancellationToken::cancelled`].
///
/// ```
/// let pool = elastipool::ThreadPool::default();
/// let group = pool.group::<()>();
/// let token = group.token();
/// let stopped = pool.complete(async move {
///     token.cancelled().await;
///     "stopped"
/// });
/// group.cancel();
/// assert_eq!(stopped.await_complete(), "stopped");
/// ```
#[must_use = "futures do nothing unless they are polled"]
pub struct Cancelled {
    token: CancellationToken,
    /// The slot of its waker in the token's list. Invalid once the token is cancelled.
    place: Option<usize>,
}

impl Future for Cancelled {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let waker = context.waker().clone();
        let state = Arc::clone(&self.token.state);
        let mut wakers = state.wakers.lock();
        // Checked under the lock: a canceller sets the flag before it takes the lock to wake the
        // waiters.
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
        // After a cancellation the canceller takes the waker out of the list, or has done so.
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
