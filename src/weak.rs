//! A handle that does not keep its pool open.

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::{Arc, Weak};

use crate::pool::{Handle, ThreadPool};
use crate::runtime::view::ViewCore;

/// A handle that does not keep its pool open. Returned by [`ThreadPool::downgrade`].
///
/// Tasks and futures of a pool that submit to it need a handle. With a [`ThreadPool`], which they own, they would keep
/// the pool open themselves: dropping all other handles would not close it. A weak handle does not count. When the last
/// `ThreadPool` is dropped, the pool closes, and [`upgrade`](Self::upgrade) returns `None` from then on.
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
/// A closed pool still waits for its pending futures, and so for an accept loop without a next connection. To end that loop
/// too, call [`shutdown_now`](ThreadPool::shutdown_now) before the last handle is dropped: it cancels pending futures.
///
/// A weak handle of a [view](crate::View) upgrades to a handle of that view. It keeps the view's settings in force, such as
/// its reserve.
#[derive(Clone)]
pub struct WeakThreadPool {
    handle: Weak<Handle>,
    view: Option<Arc<ViewCore>>,
}

/// # Weak handles
impl ThreadPool {
    /// Returns a handle that does not keep the pool open, for the pool's own tasks and futures. See [`WeakThreadPool`].
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
}

impl WeakThreadPool {
    /// Returns a handle of the pool, or `None` if all have been dropped. Does not block.
    ///
    /// The handle counts like every other: the pool does not close before it is dropped. It may be the last one when it is
    /// dropped, and then closes the pool. A pool that was closed by [`close`](ThreadPool::close) or
    /// [`shutdown_now`](ThreadPool::shutdown_now) is returned while a handle exists, and accepts no task.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let weak = pool.downgrade();
    /// weak.upgrade().expect("a handle exists").execute(|| println!("on the pool"));
    /// pool.shutdown();
    /// assert!(weak.upgrade().is_none());
    /// ```
    pub fn upgrade(&self) -> Option<ThreadPool> {
        // If it is upgraded, the pool is not closing: the last `Arc` closes it after this `Weak` has ceased to upgrade.
        let handle = self.handle.upgrade()?;
        Some(ThreadPool { handle, view: self.view.clone() })
    }
}

/// Weak handles are equal if they are of the same pool, whether or not it still exists, and of the same view.
impl PartialEq for WeakThreadPool {
    fn eq(&self, other: &Self) -> bool {
        let view = |pool: &Self| pool.view.as_ref().map(Arc::as_ptr);
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
