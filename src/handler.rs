//! One function for many arguments.

use std::fmt;
use std::panic::{Location, RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

use crate::error::{Rejected, or_hand_back};
use crate::pool::ThreadPool;
use crate::sched::OwnedRoute;
use crate::submit::{Patience, is_boxed};
use crate::task::Job;
use crate::views::ViewHandle;

/// One function that the workers of a pool call with many arguments. Created by
/// [`ThreadPool::handler`].
///
/// Each call is a task like one of [`ThreadPool::execute`]: it waits in the same queue, under the
/// same capacity, and counts in the same statistics. A panic is contained. What a handler saves is
/// the allocation: an argument of up to two words is stored in the queue itself. (Two words are 16
/// bytes on a 64-bit machine; the argument's alignment must not exceed a word's. The queue
/// allocates a block for each 31 tasks.)
///
/// Clones call the same function. A handler does not keep the pool open.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// let pool = elastipool::ThreadPool::default();
/// let sum = Arc::new(AtomicUsize::new(0));
/// let add = {
///     let sum = Arc::clone(&sum);
///     pool.handler(move |number| { sum.fetch_add(number, Ordering::Relaxed); })
/// };
/// for number in 1..=100 {
///     add.invoke(number);
/// }
/// pool.join();
/// assert_eq!(sum.load(Ordering::Relaxed), 5050);
/// ```
pub struct Handler<T> {
    route: OwnedRoute,
    /// Keeps the reserve of the route's view.
    view: Option<ViewHandle>,
    function: Function<T>,
}

/// One word, which leaves two of a stored closure's three words for the argument.
pub(crate) type Function<T, R = ()> = Arc<Box<dyn Fn(T) -> R + Send + Sync>>;

/// # One function, many arguments
impl ThreadPool {
    /// Wraps a function that the workers call with many arguments. Queues nothing yet: see
    /// [`Handler::invoke`].
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let print = pool.handler(|line: &str| println!("{line}"));
    /// print.invoke("hello");
    /// pool.join();
    /// ```
    pub fn handler<T, F>(&self, function: F) -> Handler<T>
    where
        F: Fn(T) + Send + Sync + 'static,
        T: Send + 'static,
    {
        Handler {
            route: self.owned_route(),
            view: self.view.clone(),
            function: Arc::new(Box::new(function)),
        }
    }
}

impl<T: Send + 'static> Handler<T> {
    /// Queues a call of the function with this argument, for a worker.
    ///
    /// Blocks only while it starts a thread, and while it waits for capacity if the queue is
    /// [bounded](crate::Builder::queue_capacity) and full. If the pool has no worker and the system
    /// refuses a thread, the calling thread calls the function.
    ///
    /// # Panics
    /// If the pool is closed, or is closed while the call waits for capacity.
    /// [`try_invoke`](Self::try_invoke) returns the argument instead.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let print = pool.handler(|line: String| println!("{line}"));
    /// print.invoke(String::from("hello"));
    /// pool.join();
    /// ```
    #[track_caller]
    pub fn invoke(&self, argument: T) {
        self.route.route().execute(self.call(argument), "try_invoke");
    }

    /// Makes the job of a call.
    fn call(&self, argument: T) -> Job {
        let function = Arc::clone(&self.function);
        if const { is_boxed::<T>() } {
            let argument = Box::new(argument);
            Job::closure(move || function(*argument))
        } else {
            Job::closure(move || function(argument))
        }
    }

    /// Like [`invoke`](Self::invoke), but hands the argument back if it is not accepted. Does not
    /// wait for capacity.
    ///
    /// # Errors
    /// If the pool is closed, if its queue is full, or if it has no worker and the system refuses
    /// to start a thread.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let print = pool.handler(|line: String| println!("{line}"));
    /// pool.close();
    /// let rejected = print.try_invoke(String::from("hello")).unwrap_err();
    /// assert_eq!(rejected.into_task(), "hello");
    /// ```
    #[track_caller]
    pub fn try_invoke(&self, argument: T) -> Result<(), Rejected<T>> {
        let accepted = self.route.route().accept(Patience::None, Location::caller());
        or_hand_back!(accepted, argument).enqueue_closure(self.call(argument));
        Ok(())
    }
}

impl<T> Clone for Handler<T> {
    fn clone(&self) -> Self {
        let (route, view) = (self.route.clone(), self.view.clone());
        Handler { route, view, function: Arc::clone(&self.function) }
    }
}

/// No panic leaves the pool in an invalid state (law 6). As with [`ThreadPool::execute`], the
/// function's own captures are not protected.
impl<T> UnwindSafe for Handler<T> {}

/// As for [`UnwindSafe`].
impl<T> RefUnwindSafe for Handler<T> {}

impl<T> fmt::Debug for Handler<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handler")
            .field("pool", &self.route.route().shared.config.name)
            .finish_non_exhaustive()
    }
}
