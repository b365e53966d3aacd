//! A handle that does not keep its pool open.

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::{Arc, Weak};

use crate::pool::{Handle, ThreadPool};
use crate::sched::running_handle;
use crate::sync::unwind::discard;
use crate::view::View;
use crate::views::ViewHandle;

/// A handle that does not keep its pool open. Returned by [`ThreadPool::downgrade`] and, inside a
/// task, by [`ThreadPool::current`].
///
/// Tasks and futures of a pool that submit to it need a handle. With a [`ThreadPool`], which they
/// own, they would keep the pool open themselves: dropping all other handles would not close it. A
/// weak handle does not count. When the last `ThreadPool` is dropped, the pool closes, and
/// [`upgrade`](Self::upgrade) returns `None` from then on.
///
/// The accept loop of a server, on the pool that also serves the connections:
///
/// ```
/// # #[cfg(feature = "async")] {
/// use elastipool::{ThreadPool, WeakThreadPool};
/// use futures::StreamExt;
/// use futures::channel::mpsc::UnboundedReceiver;
///
/// type Connection = u32;
///
/// async fn accept(mut listener: UnboundedReceiver<Connection>, pool: WeakThreadPool) {
///     while let Some(connection) = listener.next().await {
///         // Keep the pool open only while it is used, never across an `.await`.
///         let Some(pool) = pool.upgrade() else { break };
///         // It may have been closed all the same.
///         let serves = pool.try_spawn(async move { println!("serving {connection}") });
///         if serves.is_err() {
///             break;
///         }
///     }
/// }
///
/// let pool = ThreadPool::default();
/// let (clients, listener) = futures::channel::mpsc::unbounded();
/// let server = pool.spawn_await(accept(listener, pool.downgrade()));
/// clients.unbounded_send(1).unwrap();
/// pool.shutdown(); // The last handle: the pool closes.
/// let _ = clients.unbounded_send(2); // The loop sees that with the next connection, if not before.
/// server.await_complete();
/// # }
/// ```
///
/// A closed pool still waits for its pending futures, and so for an accept loop without a next
/// connection. To end that loop too, call [`shutdown_now`](ThreadPool::shutdown_now) before the
/// last handle is dropped: it cancels pending futures.
///
/// A weak handle of a [view](crate::View) upgrades to a handle of that view
/// ([`upgrade_view`](Self::upgrade_view): to the `View`). It keeps the view's settings in force,
/// such as its reserve.
#[derive(Clone)]
pub struct WeakThreadPool {
    handle: Weak<Handle>,
    view: Option<ViewHandle>,
}

/// # Weak handles
impl ThreadPool {
    /// Returns a handle that does not keep the pool open, for the pool's own tasks and futures. See
    /// [`WeakThreadPool`].
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let weak = pool.downgrade();
    /// assert_eq!(weak.upgrade().as_ref(), Some(&pool));
    /// drop(pool);
    /// assert_eq!(weak.upgrade(), None);
    /// ```
    pub fn downgrade(&self) -> WeakThreadPool {
        WeakThreadPool { handle: Arc::downgrade(&self.handle), view: self.view.clone() }
    }

    /// Returns a weak handle of the pool whose task the calling code is part of, so that library
    /// code can submit more work to it without being passed a handle. In a task of a
    /// [view](crate::View) it is that of the view: what is submitted through it belongs to the view
    /// as well. It does not keep the pool open. Never blocks and never panics.
    ///
    /// `None` outside of tasks, and once all handles of the pool have been dropped.
    ///
    /// | code | pool |
    /// |---|---|
    /// | closures, also of scopes, groups and handlers; polls and destructors of futures | the task's, on whichever thread: also where a thread outside the pool [runs it](crate::guide::blocking#tasks-that-wait-for-tasks) in a wait, or drops it as [cancelled](crate::JoinHandle::cancel) |
    /// | tasks inside others, of the same or of another pool | the inner task's |
    /// | start and stop hooks, destructors of thread-locals, the hook of [`stall_report`](crate::Builder::stall_report) | the pool that the thread belongs to |
    /// | other hooks, wakers | that of the task which the thread runs, if it runs one |
    /// | a [`Task`](crate::Task) that was handed back | none: it is no longer the pool's |
    ///
    /// ```
    /// use elastipool::ThreadPool;
    ///
    /// /// Sums on the caller's pool, in two parts, or here if there is none.
    /// fn sum(numbers: std::ops::Range<u64>) -> u64 {
    ///     let middle = numbers.start.midpoint(numbers.end);
    ///     let Some(pool) = ThreadPool::current().and_then(|pool| pool.upgrade()) else {
    ///         return numbers.sum();
    ///     };
    ///     let low = pool.evaluate(move || (numbers.start..middle).sum::<u64>());
    ///     (middle..numbers.end).sum::<u64>() + low.await_complete()
    /// }
    ///
    /// let pool = ThreadPool::default();
    /// assert_eq!(pool.evaluate(|| sum(0..101)).await_complete(), 5050);
    /// assert_eq!(sum(0..101), 5050);
    /// assert_eq!(ThreadPool::current(), None);
    /// ```
    #[doc(alias("current_thread", "try_current", "handle"))]
    pub fn current() -> Option<WeakThreadPool> {
        let (handle, view) = running_handle()?;
        let handle = handle.downcast::<Handle>().ok()?;
        let view = view.map(ViewHandle::new);
        let weak = WeakThreadPool { handle: Arc::downgrade(&handle), view };
        // If it has become the last one, this closes the pool, which may run user code.
        discard(handle);
        Some(weak)
    }
}

impl View {
    /// Returns a weak handle of the view whose task the calling code is part of: that of
    /// [`ThreadPool::current`], if it is one of a view.
    /// [`upgrade_view`](WeakThreadPool::upgrade_view) makes it a [`View`]. Never blocks and never
    /// panics.
    ///
    /// `None` outside of tasks, in tasks of the default view, and once all handles of the pool have
    /// been dropped.
    ///
    /// ```
    /// use elastipool::{ThreadPool, View};
    ///
    /// let pool = ThreadPool::default();
    /// let reports = pool.view().name("reports").limit(1).build();
    /// let name = || Some(View::current()?.upgrade_view()?.name().to_owned());
    /// assert_eq!(reports.evaluate(name).await_complete().as_deref(), Some("reports"));
    /// assert_eq!(pool.evaluate(name).await_complete(), None);
    /// ```
    pub fn current() -> Option<WeakThreadPool> {
        ThreadPool::current().filter(|pool| pool.view.is_some())
    }
}

impl WeakThreadPool {
    /// Returns a handle of the pool, or `None` if all have been dropped. Does not block.
    ///
    /// The handle counts like every other: the pool does not close before it is dropped. It may be
    /// the last one when it is dropped, and then closes the pool. A pool that was closed by
    /// [`close`](ThreadPool::close) or [`shutdown_now`](ThreadPool::shutdown_now) is returned while
    /// a handle exists, and accepts no task.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let weak = pool.downgrade();
    /// weak.upgrade().expect("a handle exists").execute(|| println!("on the pool"));
    /// pool.shutdown();
    /// assert!(weak.upgrade().is_none());
    /// ```
    pub fn upgrade(&self) -> Option<ThreadPool> {
        // If it is upgraded, the pool is not closing: the last `Arc` closes it after this `Weak`
        // has ceased to upgrade.
        let handle = self.handle.upgrade()?;
        Some(ThreadPool { handle, view: self.view.clone() })
    }

    /// Like [`upgrade`](Self::upgrade), but returns the view itself, with its methods. `None` also
    /// if this is no handle of a view.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let reports = pool.view().name("reports").build();
    /// assert_eq!(reports.downgrade().upgrade_view().unwrap().name(), "reports");
    /// assert!(pool.downgrade().upgrade_view().is_none());
    /// ```
    pub fn upgrade_view(&self) -> Option<View> {
        self.view.as_ref()?;
        self.upgrade().map(View)
    }
}

/// Weak handles are equal if they are of the same pool, whether or not it still exists, and of the
/// same view.
impl PartialEq for WeakThreadPool {
    fn eq(&self, other: &Self) -> bool {
        let view = |pool: &Self| pool.view.as_deref().map(|view| view.id);
        self.handle.ptr_eq(&other.handle) && view(self) == view(other)
    }
}

impl Eq for WeakThreadPool {}

/// As for [`ThreadPool`].
impl UnwindSafe for WeakThreadPool {}

/// As for [`UnwindSafe`].
impl RefUnwindSafe for WeakThreadPool {}

impl fmt::Debug for WeakThreadPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakThreadPool")
            .field("has_handles", &(self.handle.strong_count() > 0))
            .finish()
    }
}
