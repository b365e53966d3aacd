//! The errors, one type per operation. In one file, to be read side by side. Two fifths of it are
//! documentation.

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::{fmt, io};

use crate::sync::unwind::{Payload, text_of};

/// Why a pool did not accept a task.
///
/// It is an [`Error`] without the task. So it always converts into [`std::io::Error`],
/// `anyhow::Error` and `Box<dyn Error>`. A [`Rejected`] converts into the last two only if its task
/// is `Send`, `Sync` and `'static`. See [`Rejected::into_reason`].
///
/// ```
/// use elastipool::{RejectReason, ThreadPool};
///
/// let pool = ThreadPool::builder().queue_capacity(100).build();
/// if let Err(rejected) = pool.try_execute(|| println!("hello")) {
///     match rejected.reason() {
///         RejectReason::Full => rejected.into_task()(), // slows the submitter down
///         reason => eprintln!("{reason}"),
///     }
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RejectReason {
    /// The pool was closed, by [`close`](crate::ThreadPool::close) or by dropping its last handle.
    /// Or the task was submitted to a [view](crate::View) that was closed.
    Closed,
    /// The queue is [bounded](crate::Builder::queue_capacity) and full, and no worker was free to
    /// take the task at once. Or a [`TaskGroup`](crate::TaskGroup) is at its limit.
    ///
    /// Try again later, wait with [`execute`](crate::ThreadPool::execute) or
    /// [`try_execute_for`](crate::ThreadPool::try_execute_for), or run the task on the calling
    /// thread.
    Full,
    /// The pool has no worker and the operating system refused to start a thread. The system's
    /// error is the [`source`](Error::source) of the [`Rejected`]; the reason alone has no source.
    /// The next submission tries again.
    NoThread,
    /// The [`TaskGroup`](crate::TaskGroup) was cancelled, by a task that failed or by
    /// [`cancel`](crate::TaskGroup::cancel). It accepts tasks again after a
    /// [wait](crate::TaskGroup::wait).
    Cancelled,
}

impl RejectReason {
    fn text(self) -> &'static str {
        match self {
            RejectReason::Closed => "the pool is closed",
            RejectReason::Full => "the queue or the group is full",
            RejectReason::NoThread => {
                "the pool has no worker and the system refused to start a thread"
            }
            RejectReason::Cancelled => "the group was cancelled",
        }
    }
}

impl fmt::Display for RejectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{NOT_ACCEPTED}: {}", self.text())
    }
}

impl Error for RejectReason {}

/// An error that holds the reason, as [`get_ref`](io::Error::get_ref) shows. Its kind is
/// [`WouldBlock`](io::ErrorKind::WouldBlock) for [`Full`](RejectReason::Full), and
/// [`Other`](io::ErrorKind::Other) for all other reasons.
///
/// ```
/// use std::io;
/// use elastipool::{Rejected, ThreadPool};
///
/// fn submit(pool: &ThreadPool) -> io::Result<()> {
///     pool.try_execute(|| println!("hello")).map_err(Rejected::into_reason)?;
///     Ok(())
/// }
///
/// let pool = ThreadPool::default();
/// assert!(submit(&pool).is_ok());
/// pool.close();
/// let error = submit(&pool).unwrap_err();
/// assert_eq!(error.to_string(), "the task was not accepted: the pool is closed");
/// ```
impl From<RejectReason> for io::Error {
    fn from(reason: RejectReason) -> Self {
        let is_full = reason == RejectReason::Full;
        let kind = if is_full { io::ErrorKind::WouldBlock } else { io::ErrorKind::Other };
        io::Error::new(kind, reason)
    }
}

/// How the text of each rejection starts.
const NOT_ACCEPTED: &str = "the task was not accepted";

/// A task that was not accepted. Holds the closure or future, unchanged.
///
/// ```
/// use elastipool::{RejectReason, ThreadPool};
///
/// let pool = ThreadPool::default();
/// pool.close();
/// let rejected = pool.try_execute(|| println!("run by the caller")).unwrap_err();
/// assert_eq!(rejected.reason(), RejectReason::Closed);
/// rejected.into_task()();
/// ```
///
/// For `?`, give up the task: see [`into_reason`](Self::into_reason).
pub struct Rejected<F> {
    pub(crate) task: F,
    pub(crate) refusal: Refusal,
}

/// Returns what the pool or group has granted to a task. If it has refused the task, the function
/// that calls this returns the task.
macro_rules! or_hand_back {
    ($granted:expr, $task:ident) => {
        match $granted {
            Ok(granted) => granted,
            Err(refusal) => return Err($crate::error::Rejected { task: $task, refusal }),
        }
    };
}

pub(crate) use or_hand_back;

impl<F> Rejected<F> {
    /// Returns why the task was not accepted.
    ///
    /// ```
    /// use elastipool::{RejectReason, ThreadPool};
    ///
    /// let pool = ThreadPool::default();
    /// pool.close();
    /// assert_eq!(pool.try_execute(|| ()).unwrap_err().reason(), RejectReason::Closed);
    /// ```
    pub fn reason(&self) -> RejectReason {
        self.refusal.reason()
    }

    /// Returns the closure or future.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// pool.close();
    /// let task = pool.try_execute(|| println!("run by the caller")).unwrap_err().into_task();
    /// task();
    /// ```
    pub fn into_task(self) -> F {
        self.task
    }

    /// Drops the closure or future, and returns why it was not accepted: an error for `?`.
    ///
    /// A `Rejected` converts into `anyhow::Error` or `Box<dyn Error + Send + Sync>` only if its
    /// task is `Send`, `Sync` and `'static`. A boxed closure, a captured receiver and most futures
    /// are not `Sync`, and a scope's closures borrow. The reason always converts. It does not hold
    /// the system's error, which is the [`source`](Error::source) of the `Rejected`.
    ///
    /// ```
    /// use std::error::Error;
    /// use elastipool::{Rejected, ThreadPool};
    ///
    /// type Task = Box<dyn FnOnce() + Send>;
    ///
    /// fn submit(pool: &ThreadPool, task: Task) -> Result<(), Box<dyn Error + Send + Sync>> {
    ///     pool.try_execute(task).map_err(Rejected::into_reason)?;
    ///     Ok(())
    /// }
    ///
    /// let pool = ThreadPool::default();
    /// pool.close();
    /// let error = submit(&pool, Box::new(|| ())).unwrap_err();
    /// assert_eq!(error.to_string(), "the task was not accepted: the pool is closed");
    /// ```
    pub fn into_reason(self) -> RejectReason {
        self.reason()
    }

    /// Returns why the task was not accepted, and the closure or future.
    ///
    /// ```
    /// use elastipool::{RejectReason, ThreadPool};
    ///
    /// let pool = ThreadPool::default();
    /// pool.close();
    /// let rejected = pool.try_execute(|| println!("run by the caller")).unwrap_err();
    /// let (reason, task) = rejected.split();
    /// assert_eq!(reason, RejectReason::Closed);
    /// task();
    /// ```
    pub fn split(self) -> (RejectReason, F) {
        (self.reason(), self.task)
    }
}

/// Says what to do also where the error is unwrapped.
impl<F> fmt::Debug for Rejected<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let instead = match &self.refusal {
            Refusal::Cancelled => "; `wait` of the group returns why",
            Refusal::Full | Refusal::GroupFull => "; the forms without `try_` wait for space",
            _ => "",
        };
        write!(f, "Rejected({:?}: {self}{instead}; `into_task` returns the task", self.reason())?;
        self.source().map_or(Ok(()), |source| write!(f, "; source: {source}"))?;
        f.write_str(")")
    }
}

impl<F> fmt::Display for Rejected<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{NOT_ACCEPTED}: {}", self.refusal.text())
    }
}

impl<F> Error for Rejected<F> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.refusal {
            Refusal::NoThread(error) => Some(error),
            _ => None,
        }
    }
}

/// A [`RejectReason`] with its details.
#[derive(Debug)]
pub(crate) enum Refusal {
    Closed,
    ViewClosed,
    Full,
    GroupFull,
    NoThread(io::Error),
    Cancelled,
}

impl Refusal {
    pub(crate) fn reason(&self) -> RejectReason {
        match self {
            Refusal::Closed | Refusal::ViewClosed => RejectReason::Closed,
            Refusal::Full | Refusal::GroupFull => RejectReason::Full,
            Refusal::NoThread(_) => RejectReason::NoThread,
            Refusal::Cancelled => RejectReason::Cancelled,
        }
    }

    fn text(&self) -> &'static str {
        match self {
            Refusal::ViewClosed => "the view is closed",
            Refusal::Full => "the queue is full",
            Refusal::GroupFull => "the group is full",
            Refusal::Closed | Refusal::NoThread(_) | Refusal::Cancelled => self.reason().text(),
        }
    }

    /// Panics. The task has been dropped: a destructor that panics while the thread unwinds aborts
    /// the process.
    #[track_caller]
    pub(crate) fn panic(self, instead: &str) -> ! {
        panic!("{}; `{instead}` hands it back", Rejected { task: (), refusal: self });
    }
}

/// Why a task has no result: it panicked, it was cancelled, it expired, or the pool was closed.
///
/// Returned by a wait for a [`JoinHandle`](crate::JoinHandle).
///
/// Clones share the payload of a panic, so a handle may be shared with `FutureExt::shared` of the
/// crate `futures`:
///
/// ```
/// use futures::FutureExt;
///
/// let pool = elastipool::ThreadPool::default();
/// let answer = pool.evaluate(|| 6 * 7).shared();
/// let sum = futures::future::join(answer.clone(), answer);
/// let sum = pool.complete(async move {
///     let (one, other) = sum.await;
///     one.unwrap() + other.unwrap()
/// });
/// assert_eq!(sum.await_complete(), 84);
/// ```
///
/// ```
/// let pool = elastipool::ThreadPool::default();
/// let error = pool.evaluate(|| panic!("lost my keys")).try_await_complete().unwrap_err();
/// assert_eq!(error.to_string(), "the task panicked: lost my keys");
/// ```
#[derive(Clone)]
pub struct JoinError(Cause);

#[derive(Clone)]
enum Cause {
    /// `None` once a clone has given the payload away. The mutex makes the error `Sync`: a payload
    /// is only `Send`.
    Panic(Arc<Mutex<Option<Payload>>>),
    Cancelled,
    /// Not accepted. Says what was closed.
    Closed(&'static str),
    Expired,
    /// Of a group.
    DeadlinePassed,
}

impl JoinError {
    pub(crate) const CANCELLED: Self = JoinError(Cause::Cancelled);
    pub(crate) const EXPIRED: Self = JoinError(Cause::Expired);
    pub(crate) const DEADLINE_PASSED: Self = JoinError(Cause::DeadlinePassed);

    pub(crate) fn panicked(payload: Payload) -> Self {
        JoinError(Cause::Panic(Arc::new(Mutex::new(Some(payload)))))
    }

    /// The error of a task that was not accepted, and dropped.
    pub(crate) fn refused(refusal: &Refusal) -> Self {
        JoinError(match refusal {
            Refusal::Closed | Refusal::ViewClosed => Cause::Closed(refusal.text()),
            _ => Cause::Cancelled,
        })
    }

    /// Returns whether the task panicked.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let error = pool.evaluate(|| panic!("lost my keys")).try_await_complete().unwrap_err();
    /// assert!(error.is_panic() && !error.is_cancelled());
    /// ```
    pub fn is_panic(&self) -> bool {
        matches!(self.0, Cause::Panic(_))
    }

    /// Returns whether the task never ran to its end, for one of these reasons: its
    /// [handle](crate::JoinHandle::cancel) or its [group](crate::TaskGroup::cancel) was cancelled;
    /// [`shutdown_now`](crate::ThreadPool::shutdown_now) cancelled it, or returned it as a
    /// [`Task`](crate::Task) that was dropped; it was not accepted, as
    /// [`is_closed`](Self::is_closed) tells; or it was a future whose last waker was dropped.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// pool.close();
    /// let error = pool.evaluate(|| 42).try_await_complete().unwrap_err();
    /// assert!(error.is_cancelled() && !error.is_panic());
    /// ```
    pub fn is_cancelled(&self) -> bool {
        matches!(self.0, Cause::Cancelled | Cause::Closed(_))
    }

    /// Returns whether the task was dropped at once because its pool or [view](crate::View) was
    /// closed. Such a task is also [cancelled](Self::is_cancelled).
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// pool.close();
    /// let error = pool.evaluate(|| 42).try_await_complete().unwrap_err();
    /// assert!(error.is_closed());
    /// assert_eq!(error.to_string(), "the task was not accepted: the pool is closed");
    /// ```
    pub fn is_closed(&self) -> bool {
        matches!(self.0, Cause::Closed(_))
    }

    /// Returns whether the task was never run because no worker started it within the
    /// [`queue_timeout`](crate::ViewBuilder::queue_timeout) of its [view](crate::View). Such a task
    /// is not "cancelled". Of an error from a wait for a group: whether the group's
    /// [deadline](crate::TaskGroup::deadline) has passed.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let pool = elastipool::ThreadPool::new(1, 1, Duration::from_secs(1));
    /// let requests = pool.view().queue_timeout(Duration::from_millis(1)).build();
    /// let (open, gate) = std::sync::mpsc::channel::<()>();
    /// pool.execute(move || gate.recv().unwrap()); // occupies the only worker
    /// while pool.stats().active == 0 {
    ///     std::thread::yield_now();
    /// }
    /// let late = requests.evaluate(|| 42);
    /// assert!(late.try_await_complete().unwrap_err().is_expired());
    /// open.send(()).unwrap();
    /// ```
    pub fn is_expired(&self) -> bool {
        matches!(self.0, Cause::Expired | Cause::DeadlinePassed)
    }

    /// Returns the payload of the task's panic, for [`std::panic::resume_unwind`].
    ///
    /// # Panics
    /// If the task did not panic. Check [`is_panic`](Self::is_panic) first, or use
    /// [`try_into_panic`](Self::try_into_panic).
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let error = pool.evaluate(|| panic!("lost my keys")).try_await_complete().unwrap_err();
    /// assert!(error.is_panic());
    /// assert_eq!(error.into_panic().downcast_ref::<&str>(), Some(&"lost my keys"));
    /// ```
    #[track_caller]
    pub fn into_panic(self) -> Box<dyn std::any::Any + Send + 'static> {
        match self.try_into_panic() {
            Ok(payload) => payload,
            Err(_) => panic!(
                "`into_panic` was called on the error of a task that was cancelled or has \
                 expired, which has no payload. \
                 Check `is_panic` first, or use `try_into_panic`"
            ),
        }
    }

    /// Returns the payload of the task's panic.
    ///
    /// A payload that is a text, as `panic!` makes it, comes from each clone of the error. Of
    /// another payload there is only one: the first clone that is asked returns it, and the others
    /// return a `String` that says so.
    ///
    /// # Errors
    /// Returns the error itself if the task did not panic.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let error = pool.evaluate(|| panic!("lost my keys")).try_await_complete().unwrap_err();
    /// match error.try_into_panic() {
    ///     Ok(payload) => assert_eq!(payload.downcast_ref::<&str>(), Some(&"lost my keys")),
    ///     Err(error) => eprintln!("{error}"), // cancelled or expired
    /// }
    /// ```
    pub fn try_into_panic(self) -> Result<Box<dyn std::any::Any + Send + 'static>, JoinError> {
        match &self.0 {
            Cause::Panic(payload) => Ok(take_or_copy(payload)),
            _ => Err(self),
        }
    }
}

/// Takes a payload, unless it is a text and others may want it, too.
fn take_or_copy(shared: &Arc<Mutex<Option<Payload>>>) -> Payload {
    let mut payload = shared.lock().unwrap_or_else(PoisonError::into_inner);
    if Arc::strong_count(shared) > 1 {
        let payload = payload.as_deref();
        if let Some(text) = payload.and_then(|payload| payload.downcast_ref::<&'static str>()) {
            return Box::new(*text);
        }
        if let Some(text) = payload.and_then(|payload| payload.downcast_ref::<String>()) {
            return Box::new(text.clone());
        }
    }
    let other = "a clone of the task's error has returned the payload of its panic";
    payload.take().unwrap_or_else(|| Box::new(String::from(other)))
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let payload = match &self.0 {
            Cause::Panic(payload) => payload,
            Cause::Cancelled => return f.write_str("the task was cancelled"),
            Cause::Closed(what) => return write!(f, "{NOT_ACCEPTED}: {what}"),
            Cause::Expired => {
                return f.write_str(
                    "the task expired: it was not started within the queue timeout of its view",
                );
            }
            Cause::DeadlinePassed => return f.write_str("the deadline of the group has passed"),
        };
        let payload = payload.lock().unwrap_or_else(PoisonError::into_inner);
        match payload.as_deref().and_then(text_of) {
            Some(text) => write!(f, "the task panicked: {text}"),
            None => f.write_str("the task panicked"),
        }
    }
}

impl fmt::Debug for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JoinError({self})")
    }
}

impl Error for JoinError {}

/// An error of the kind [`Other`](io::ErrorKind::Other) that holds the `JoinError`, as
/// [`get_ref`](io::Error::get_ref) shows.
///
/// ```
/// let pool = elastipool::ThreadPool::default();
/// let read = |pool: &elastipool::ThreadPool| -> std::io::Result<u64> {
///     let file = pool.evaluate(|| std::fs::metadata("Cargo.toml"));
///     file.try_await_complete()?.map(|file| file.len())
/// };
/// assert!(read(&pool).unwrap() > 0);
/// pool.close();
/// let error = read(&pool).unwrap_err();
/// assert_eq!(error.to_string(), "the task was not accepted: the pool is closed");
/// ```
impl From<JoinError> for io::Error {
    fn from(error: JoinError) -> Self {
        io::Error::other(error)
    }
}

/// An invalid configuration. Its text names the value and the limit.
///
/// Returned by [`Builder::try_build`](crate::Builder::try_build), and by the functions that change
/// the sizes of a pool, such as [`set_max_size`](crate::ThreadPool::set_max_size), or the settings
/// of a view, such as [`View::set_limit`](crate::View::set_limit), which then change nothing, and
/// by [`ViewBuilder::try_build`](crate::ViewBuilder::try_build). `build`, `new` and `new_named`
/// panic with the same text.
///
/// ```
/// use elastipool::{BuildError, ThreadPool};
///
/// let error = ThreadPool::builder().core_size(4).max_size(2).try_build().unwrap_err();
/// assert_eq!(error, BuildError::MaxBelowCore { max_size: 2, core_size: 4 });
/// assert_eq!(error.to_string(), "max_size is 2; it must be at least core_size, which is 4");
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// `max_size` is zero: no task could run.
    MaxSizeZero,
    /// `max_size` is smaller than `core_size`.
    MaxBelowCore {
        /// The `max_size` asked for.
        max_size: usize,
        /// The `core_size` asked for.
        core_size: usize,
    },
    /// `core_size` or `max_size` exceeds [`ThreadPool::MAX_SIZE`](crate::ThreadPool::MAX_SIZE).
    SizeTooLarge {
        /// The size asked for.
        size: usize,
        /// The largest size, [`ThreadPool::MAX_SIZE`](crate::ThreadPool::MAX_SIZE).
        limit: usize,
    },
    /// `growth` is `Growth::Stalled` with a delay of zero.
    StallZero,
    /// `stall_report` is set with a time of zero: every task would be reported.
    StallReportZero,
    /// `max_tasks_per_worker` is zero: no worker could run a task.
    MaxTasksZero,
    /// The limit of a view is zero: none of its tasks could run.
    ViewLimitZero,
    /// The weight of a view is zero: none of its tasks would have a turn.
    ViewWeightZero,
    /// The limit of a view is below its own reserve: the rest of the reserve could never be used.
    ViewLimitBelowReserve {
        /// The limit asked for.
        limit: usize,
        /// The reserve asked for.
        reserve: usize,
    },
    /// The reserves of all views leave no worker to the tasks that have none.
    ReservesTooLarge {
        /// The sum of all reserves, with the one asked for.
        reserved: usize,
        /// The pool's `max_size`, or the one asked for.
        max_size: usize,
    },
    /// The queue timeout of a view is zero: each of its tasks would expire at once.
    QueueTimeoutZero,
    /// The name contains a NUL byte, which the name of a thread cannot contain.
    NameContainsNul {
        /// The name asked for.
        name: String,
        /// The position of its first NUL byte, in bytes from the start.
        position: usize,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::MaxSizeZero => {
                f.write_str("max_size is 0; it must be at least 1, or no task could ever run")
            }
            BuildError::MaxBelowCore { max_size, core_size } => write!(
                f,
                "max_size is {max_size}; it must be at least core_size, which is {core_size}"
            ),
            BuildError::SizeTooLarge { size, limit } => write!(
                f,
                "a size of {size} workers was asked for; it must be at most \
                 ThreadPool::MAX_SIZE, which is {limit}"
            ),
            BuildError::StallZero => f.write_str(
                "growth is Stalled after 0 seconds; it must be at least 1 nanosecond (to start \
                 threads at once, set it to Growth::Eager)",
            ),
            BuildError::StallReportZero => f.write_str(
                "stall_report is after 0 seconds; it must be at least 1 nanosecond, and above the \
                 time of the longest healthy task",
            ),
            BuildError::MaxTasksZero => f.write_str(
                "max_tasks_per_worker is 0; it must be at least 1 (for no limit, do not set it)",
            ),
            BuildError::ViewLimitZero => f.write_str(
                "the limit of the view is 0; it must be at least 1, or none of its tasks could \
                 ever run (for no limit, do not set it; to stop the view for a while, pause it)",
            ),
            BuildError::ViewWeightZero => f.write_str(
                "the weight of the view is 0; it must be at least 1, or its tasks would have no \
                 turn",
            ),
            BuildError::ViewLimitBelowReserve { limit, reserve } => write!(
                f,
                "the limit of the view is {limit}; it must be at least its reserve, which is \
                 {reserve}"
            ),
            BuildError::ReservesTooLarge { reserved, max_size } => write!(
                f,
                "the views of the pool reserve {reserved} workers; they must leave at least one \
                 of max_size, which is {max_size}, to tasks without a reserve"
            ),
            BuildError::QueueTimeoutZero => f.write_str(
                "the queue timeout of the view is 0 seconds; it must be at least 1 nanosecond \
                 (for no timeout, do not set it)",
            ),
            BuildError::NameContainsNul { name, position } => write!(
                f,
                "the name {name:?} has a NUL byte at position {position}; it must have none"
            ),
        }
    }
}

/// Says what to do also where the error is unwrapped.
impl fmt::Debug for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BuildError({self})")
    }
}

impl Error for BuildError {}
