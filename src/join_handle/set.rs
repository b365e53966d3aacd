//! Results in the order in which tasks end: [`JoinSet`], and what [`Map`](crate::Map) shares with
//! it.
//!
//! Handles are kept by numbers. Each is polled with a waker that sends its number through a
//! channel. So a poll of all of them polls only those that were woken, or were not polled yet.

use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker, ready};
use std::time::{Duration, Instant};

use futures_channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use futures_core::Stream;
use futures_core::future::FusedFuture;
use futures_core::stream::FusedStream;

use super::{HAS_RESOLVED, JoinHandle};
use crate::error::JoinError;
use crate::sched::{Dependency, NO_LIMIT, PollWait, has_passed, wait_for};
use crate::task::Numbered;
use crate::thread::identity;

/// By the order in which they were submitted or added.
pub(crate) type Handles<T> = Numbered<JoinHandle<T>>;

/// The channel of the numbers of the handles to poll: those that were not polled yet, and those
/// that were woken.
pub(crate) struct ToPoll {
    sender: UnboundedSender<u64>,
    numbers: UnboundedReceiver<u64>,
    /// The wait that has polled the set last, for all handles: one that was not woken keeps the
    /// wait that has polled it before.
    poll_wait: PollWait,
}

/// The waker of one handle.
struct Woken {
    number: u64,
    sender: UnboundedSender<u64>,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        // Fails once the results are dropped.
        let _ = self.sender.unbounded_send(self.number);
    }
}

impl ToPoll {
    pub(crate) fn new() -> Self {
        let (sender, numbers) = unbounded();
        ToPoll { sender, numbers, poll_wait: PollWait::default() }
    }

    pub(crate) fn send(&self, number: u64) {
        // It holds the receiver.
        let _ = self.sender.unbounded_send(number);
    }

    /// Polls for the result of any of the handles, and removes that handle. Ready with `None` if
    /// there is none.
    pub(crate) fn poll<T>(
        &mut self,
        handles: &mut Handles<T>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<T, JoinError>>> {
        let polled = self.poll_woken(handles, context);
        let pools = handles.iter().map(|(_, handle)| handle.origin.pool);
        self.poll_wait.note_any(polled.is_pending(), pools, context.waker());
        polled
    }

    fn poll_woken<T>(
        &mut self,
        handles: &mut Handles<T>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<T, JoinError>>> {
        while handles.len() > 0 {
            let number = ready!(Pin::new(&mut self.numbers).poll_next(context));
            let Some(number) = number else { unreachable!("it holds a sender") };
            // Absent after a wake of a handle that was ready already.
            let Some(handle) = handles.get_mut(number) else { continue };
            if handle.is_terminated() {
                // Removed first: no wake would bring its number again.
                drop(handles.remove(number));
                panic!("{HAS_RESOLVED}");
            }
            let waker = Waker::from(Arc::new(Woken { number, sender: self.sender.clone() }));
            if let Poll::Ready(result) = Pin::new(handle).poll(&mut Context::from_waker(&waker)) {
                handles.remove(number);
                return Poll::Ready(Some(result));
            }
        }
        Poll::Ready(None)
    }

    /// Blocks for what [`poll`](Self::poll) returns, until `deadline`.
    pub(crate) fn wait<T>(
        &mut self,
        handles: &mut Handles<T>,
        deadline: Option<Instant>,
        dependency: Dependency,
    ) -> Option<Option<Result<T, JoinError>>> {
        let mut wait_until = |handles: &mut _, deadline| {
            wait_for(pin!(poll_fn(|context| self.poll(handles, context))), deadline, dependency)
        };
        if identity().is_some() {
            // Looks, and does not wait.
            if let Some(result) = wait_until(handles, Some(Instant::now())) {
                return Some(result);
            }
            // Law 10: a worker runs the oldest task that is not started. The poll below finds which
            // handle has its result.
            let run = |(_, handle): (_, &mut JoinHandle<T>)| {
                has_passed(deadline) || handle.run_if_unstarted()
            };
            let _ = handles.iter_mut().any(run);
        }
        wait_until(handles, deadline)
    }
}

/// A set of handles that gives the results in the order in which the tasks end. Of those that have
/// ended before the set first asks for a result, the handles that were added first come first. The
/// handles may be of any pools, views and groups, and of closures and futures.
///
/// Dropping the set [cancels](JoinHandle::cancel) the tasks that are left in it. Running closures
/// go on; let them look at a [token](crate::CancellationToken).
///
/// A race: the first success wins, and the rest is cancelled.
///
/// ```
/// use std::iter;
/// use elastipool::{JoinSet, ThreadPool};
///
/// fn fetch(mirror: u32) -> Result<String, String> {
///     if mirror > 1 { Ok(format!("from {mirror}")) } else { Err("no such host".into()) }
/// }
///
/// let pool = ThreadPool::default();
/// let mut race: JoinSet<_> = (1..=3).map(|mirror| pool.evaluate(move || fetch(mirror))).collect();
/// let winner = iter::from_fn(|| race.next_finished()).find_map(|result| result.ok()?.ok());
/// drop(race); // cancels the others, if they are still queued
/// assert!(winner.unwrap().starts_with("from"));
/// ```
///
/// In async code it is a stream: `while let Some(result) = set.next().await`, with
/// `futures::StreamExt`. (In tokio's words, [`push`](Self::push) of a pool's handle is `spawn`, and
/// that `next` is `join_next`.)
///
/// For one function over many inputs, [`ThreadPool::map`](crate::ThreadPool::map) submits them by
/// and by.
#[must_use = "dropping a set cancels its tasks"]
pub struct JoinSet<T> {
    handles: Handles<T>,
    to_poll: ToPoll,
}

impl<T> JoinSet<T> {
    /// Makes an empty set.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let mut set = elastipool::JoinSet::new();
    /// set.push(pool.evaluate(|| 6 * 7));
    /// assert_eq!(set.next_finished().unwrap().unwrap(), 42);
    /// assert!(set.next_finished().is_none());
    /// ```
    pub fn new() -> Self {
        JoinSet { handles: Handles::default(), to_poll: ToPoll::new() }
    }

    /// Adds a handle. `set.extend(handles)` and `handles.collect()` add many. Does not block.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let mut set = elastipool::JoinSet::new();
    /// set.push(pool.evaluate(|| "a closure"));
    /// set.push(pool.complete(async { "a future" }));
    /// assert_eq!(set.len(), 2);
    /// ```
    #[doc(alias = "spawn")]
    #[doc(alias = "spawn_blocking")]
    pub fn push(&mut self, handle: JoinHandle<T>) {
        self.to_poll.send(self.handles.push(handle));
    }

    /// Blocks until the next task has ended, removes it from the set and returns its result: a
    /// value, or a panic, "cancelled" or "expired". `None` if the set is empty.
    ///
    /// If no task has ended yet, a worker first [runs
    /// one](crate::guide::blocking#tasks-that-wait-for-tasks) of those of its own pool that no
    /// worker has started, the oldest. Otherwise it waits in a [blocking
    /// region](crate::blocking()).
    ///
    /// # Panics
    /// If a poll of one of the handles had returned its result before it was added. Polls of the
    /// set panic then, too. The set is without that handle afterwards.
    ///
    /// ```
    /// use elastipool::{JoinSet, ThreadPool};
    ///
    /// let pool = ThreadPool::default();
    /// let mut set: JoinSet<_> = (1..=3).map(|number| pool.evaluate(move || number * number)).collect();
    /// let mut sum = 0;
    /// while let Some(result) = set.next_finished() {
    ///     sum += result.unwrap(); // in whatever order they end
    /// }
    /// assert_eq!(sum, 14);
    /// ```
    #[doc(alias = "join_next")]
    #[track_caller]
    pub fn next_finished(&mut self) -> Option<Result<T, JoinError>> {
        // A wait for the pool, if a handle is of the worker's pool: their polls say so.
        self.to_poll.wait(&mut self.handles, None, Dependency::Other).expect(NO_LIMIT)
    }

    /// Like [`next_finished`](Self::next_finished), but blocks for at most `timeout`. Returns
    /// `None` if no task has ended in time: then the set is as before. `Some(None)` if the set is
    /// empty.
    ///
    /// A worker begins no task after the timeout, and ends the one that it runs.
    ///
    /// # Panics
    /// As for [`next_finished`](Self::next_finished).
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let pool = elastipool::ThreadPool::default();
    /// let mut set = elastipool::JoinSet::new();
    /// let (open, gate) = std::sync::mpsc::channel::<()>();
    /// set.push(pool.evaluate(move || gate.recv().is_ok()));
    /// assert!(set.next_finished_timeout(Duration::from_millis(1)).is_none());
    /// open.send(()).unwrap();
    /// let result = set.next_finished_timeout(Duration::from_secs(60)).expect("in time");
    /// assert_eq!(result.expect("the set is not empty").unwrap(), true);
    /// ```
    #[must_use = "`None` says that no task has ended; otherwise it holds a result"]
    #[track_caller]
    pub fn next_finished_timeout(
        &mut self,
        timeout: Duration,
    ) -> Option<Option<Result<T, JoinError>>> {
        let deadline = Instant::now().checked_add(timeout);
        self.to_poll.wait(&mut self.handles, deadline, Dependency::Other)
    }

    /// Polls for the next result: [`next_finished`](Self::next_finished) for async code. The same
    /// as `poll_next` of the set's [`Stream`], for code without the crate `futures`. The last
    /// poll's waker is woken when a task ends.
    ///
    /// ```
    /// use std::future::poll_fn;
    /// use elastipool::{JoinSet, ThreadPool};
    ///
    /// let pool = ThreadPool::default();
    /// let mut set: JoinSet<_> = (1..=3).map(|number| pool.evaluate(move || number * number)).collect();
    /// let sum = pool.complete(async move {
    ///     let mut sum = 0;
    ///     while let Some(result) = poll_fn(|context| set.poll_next_finished(context)).await {
    ///         sum += result.unwrap();
    ///     }
    ///     sum
    /// });
    /// assert_eq!(sum.await_complete(), 14);
    /// ```
    #[track_caller]
    pub fn poll_next_finished(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<T, JoinError>>> {
        self.to_poll.poll(&mut self.handles, context)
    }

    /// Cancels all tasks of the set, as [`JoinHandle::cancel`] does each. Their results are still
    /// to be taken.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let mut set: elastipool::JoinSet<_> = (0..3).map(|n| pool.evaluate(move || n)).collect();
    /// set.cancel_all();
    /// while let Some(result) = set.next_finished() {
    ///     println!("{result:?}"); // a value, or "cancelled"
    /// }
    /// ```
    #[doc(alias = "abort_all")]
    pub fn cancel_all(&self) {
        self.handles.iter().for_each(|(_, handle)| handle.cancel());
    }

    /// Returns how many results are to be taken.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let set: elastipool::JoinSet<_> = (0..3).map(|n| pool.evaluate(move || n)).collect();
    /// assert_eq!(set.len(), 3);
    /// ```
    pub fn len(&self) -> usize {
        self.handles.len()
    }

    /// Returns whether all results have been taken.
    ///
    /// ```
    /// assert!(elastipool::JoinSet::<()>::new().is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.handles.len() == 0
    }
}

/// Yields what [`next_finished`](JoinSet::next_finished) returns, and ends when the set is empty.
impl<T> Stream for JoinSet<T> {
    type Item = Result<T, JoinError>;

    #[track_caller]
    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_next_finished(context)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len(), Some(self.len()))
    }
}

/// Terminated while the set is empty.
impl<T> FusedStream for JoinSet<T> {
    fn is_terminated(&self) -> bool {
        self.is_empty()
    }
}

/// As for [`JoinHandle`].
impl<T> UnwindSafe for JoinSet<T> {}

/// As for [`UnwindSafe`].
impl<T> RefUnwindSafe for JoinSet<T> {}

impl<T> Drop for JoinSet<T> {
    fn drop(&mut self) {
        self.cancel_all();
    }
}

impl<T> Default for JoinSet<T> {
    fn default() -> Self {
        JoinSet::new()
    }
}

impl<T> Extend<JoinHandle<T>> for JoinSet<T> {
    fn extend<I: IntoIterator<Item = JoinHandle<T>>>(&mut self, handles: I) {
        handles.into_iter().for_each(|handle| self.push(handle));
    }
}

impl<T> FromIterator<JoinHandle<T>> for JoinSet<T> {
    fn from_iter<I: IntoIterator<Item = JoinHandle<T>>>(handles: I) -> Self {
        let mut set = JoinSet::new();
        set.extend(handles);
        set
    }
}

impl<T> fmt::Debug for JoinSet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinSet").field("len", &self.len()).finish_non_exhaustive()
    }
}
