//! What can go wrong, one type per operation.

use std::error::Error;
use std::sync::Mutex;
use std::time::Duration;
use std::{fmt, io};

use crate::sync::unwind::{Payload, discard};

/// Why a pool did not accept a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RejectReason {
    /// The pool was closed, by [`close`](crate::ThreadPool::close) or by dropping its last handle.
    Closed,
    /// The queue is [bounded](crate::Builder::queue_capacity), it had no room for the task, and no worker was free to
    /// take it at once. Nothing is wrong with the pool: try again later, wait by
    /// [`execute`](crate::ThreadPool::execute) or [`try_execute_for`](crate::ThreadPool::try_execute_for), or do
    /// something else with the task. Or a [`TaskGroup`](crate::TaskGroup) is at its limit.
    Full,
    /// The pool has no worker at all and the operating system refused to start a thread. The error's
    /// [`source`](Error::source) is what the system said. The next submission tries again.
    NoThread,
    /// The [`TaskGroup`](crate::TaskGroup) has been cancelled: a task of it has failed, or somebody has called
    /// [`cancel`](crate::TaskGroup::cancel). It accepts tasks again when it has been
    /// [waited](crate::TaskGroup::wait) for.
    Cancelled,
}

impl fmt::Display for RejectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RejectReason::Closed => "the pool is closed",
            RejectReason::Full => "the queue is full",
            RejectReason::NoThread => {
                "the pool has no worker and the system refused to start a thread"
            }
            RejectReason::Cancelled => "the group was cancelled",
        })
    }
}

/// A task that was not accepted: the closure or future comes back, untouched.
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
pub struct Rejected<F> {
    task: F,
    refusal: Refusal,
}

impl<F> Rejected<F> {
    pub(crate) fn new(task: F, refusal: Refusal) -> Self {
        Rejected { task, refusal }
    }

    /// For a way of submitting that has no other way of saying so.
    #[track_caller]
    pub(crate) fn panic(self, instead: &str) -> ! {
        let text = self.to_string();
        // Not by the panic's unwinding: if the task's destructor panics too, that would abort the process.
        discard(self);
        panic!("{text}; `{instead}` hands it back");
    }

    /// Why the task was not accepted.
    pub fn reason(&self) -> RejectReason {
        match self.refusal {
            Refusal::Closed => RejectReason::Closed,
            Refusal::Full | Refusal::GroupFull => RejectReason::Full,
            Refusal::NoThread(_) => RejectReason::NoThread,
            Refusal::Cancelled => RejectReason::Cancelled,
        }
    }

    /// Takes the task back.
    pub fn into_task(self) -> F {
        self.task
    }
}

impl<F> fmt::Debug for Rejected<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rejected")
            .field("reason", &self.reason())
            .field("source", &self.source())
            .finish_non_exhaustive()
    }
}

impl<F> fmt::Display for Rejected<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the task was not accepted: ")?;
        match self.refusal {
            Refusal::GroupFull => f.write_str("the group is full"),
            _ => self.reason().fmt(f),
        }
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

/// [`RejectReason`], with what else is known.
#[derive(Debug)]
pub(crate) enum Refusal {
    Closed,
    Full,
    GroupFull,
    NoThread(io::Error),
    Cancelled,
}

/// Why a task has no result.
///
/// Comes from waiting for a [`JoinHandle`](crate::JoinHandle).
pub struct JoinError(Cause);

enum Cause {
    /// In a mutex because a payload may be sent between threads but not shared, and an error should
    /// be both.
    Panic(Mutex<Payload>),
    Cancelled,
}

impl JoinError {
    pub(crate) fn panicked(payload: Payload) -> Self {
        JoinError(Cause::Panic(Mutex::new(payload)))
    }

    pub(crate) fn cancelled() -> Self {
        JoinError(Cause::Cancelled)
    }

    /// The task panicked.
    pub fn is_panic(&self) -> bool {
        matches!(self.0, Cause::Panic(_))
    }

    /// The task never ran to its end: it was [cancelled](crate::JoinHandle::cancel), not accepted, or
    /// a future that nobody could wake any more.
    pub fn is_cancelled(&self) -> bool {
        matches!(self.0, Cause::Cancelled)
    }

    /// The payload of the task's panic, for [`std::panic::resume_unwind`].
    ///
    /// # Panics
    /// If the task did not panic but was cancelled: see [`is_panic`](Self::is_panic), or use
    /// [`try_into_panic`](Self::try_into_panic).
    #[track_caller]
    pub fn into_panic(self) -> Box<dyn std::any::Any + Send + 'static> {
        match self.try_into_panic() {
            Ok(payload) => payload,
            Err(_) => panic!("into_panic was called on the error of a task that was cancelled"),
        }
    }

    /// The payload of the task's panic, or the error itself if the task was cancelled.
    ///
    /// # Errors
    /// The error comes back if the task was cancelled.
    pub fn try_into_panic(self) -> Result<Box<dyn std::any::Any + Send + 'static>, JoinError> {
        match self.0 {
            Cause::Panic(payload) => {
                Ok(payload.into_inner().unwrap_or_else(|poison| poison.into_inner()))
            }
            Cause::Cancelled => Err(self),
        }
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cause::Panic(payload) = &self.0 else {
            return f.write_str("the task was cancelled");
        };
        let payload = payload.lock().unwrap_or_else(|poison| poison.into_inner());
        let text = payload
            .downcast_ref::<&'static str>()
            .copied()
            .or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        match text {
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

/// A configuration that makes no sense. Its text names the value and the limit.
///
/// From [`Builder::try_build`](crate::Builder::try_build) and from changing the sizes of a pool that exists, such as
/// [`set_max_size`](crate::ThreadPool::set_max_size), which then changes nothing; `build`, `new` and `new_named` panic
/// with the same text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// `max_size` is zero: no task could ever run.
    MaxSizeZero,
    /// `max_size` is smaller than `core_size`.
    MaxBelowCore {
        /// The `max_size` asked for.
        max_size: usize,
        /// The `core_size` asked for.
        core_size: usize,
    },
    /// `core_size` or `max_size` is larger than the pool can count.
    SizeTooLarge {
        /// The size asked for.
        size: usize,
        /// The largest size: 2²⁰ − 1 on a 64-bit machine, 2⁹ − 1 on a 32-bit one.
        limit: usize,
    },
    /// `keep_alive` is zero: a worker would end before it could ever be reused.
    KeepAliveZero,
    /// `keep_alive` is longer than a clock can be trusted to count.
    KeepAliveTooLong {
        /// The `keep_alive` asked for.
        keep_alive: Duration,
        /// The longest `keep_alive`: 2³² − 1 seconds, about 136 years.
        limit: Duration,
    },
    /// `growth` is `Growth::Stalled` with a time of zero.
    StallZero,
    /// `max_tasks_per_worker` is zero: no worker could ever run a task.
    MaxTasksZero,
    /// The name contains a NUL byte, which the name of a thread cannot hold.
    NameContainsNul {
        /// The name asked for.
        name: String,
        /// Where its first NUL byte is, in bytes from its start.
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
            BuildError::SizeTooLarge { size, limit } => {
                write!(f, "a size of {size} workers was asked for; the limit is {limit}")
            }
            BuildError::KeepAliveZero => {
                f.write_str("keep_alive is 0; it must be at least 1 nanosecond")
            }
            BuildError::KeepAliveTooLong { keep_alive, limit } => write!(
                f,
                "keep_alive is {keep_alive:?}; the limit is {limit:?} (to keep workers for ever, set \
                 core_size to max_size)"
            ),
            BuildError::StallZero => f.write_str(
                "growth is Stalled after 0 seconds; it must be at least 1 nanosecond (to start threads at once, \
                 set it to Growth::Eager)",
            ),
            BuildError::MaxTasksZero => f.write_str(
                "max_tasks_per_worker is 0; it must be at least 1 (for no limit, do not set it)",
            ),
            BuildError::NameContainsNul { name, position } => write!(
                f,
                "the name {name:?} has a NUL byte at position {position}; the limit is 0 NUL bytes"
            ),
        }
    }
}

impl Error for BuildError {}
