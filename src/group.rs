//! Task groups: the first error cancels the other tasks, and one wait is for all of them.
//!
//! This file has the public type and its settings. A group's state and how it changes is in
//! `state.rs`, and what each of its tasks holds in `member.rs`.

mod error;
mod inside;
mod member;
mod state;

// The documentation of `TaskGroup` shows its methods in the order of these modules, and then those
// of this file. The empty lines keep rustfmt from sorting them.
mod submit;

mod handles;

pub(crate) mod permit;

pub(crate) mod wait;

use std::any::type_name;
use std::fmt;
use std::mem;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

pub use self::error::GroupError;
use self::state::{GroupState, Inner};
use crate::pool::ThreadPool;
use crate::sync::Mutex;
use crate::task::UnstartedList;

/// A group of tasks that can fail. Created by [`ThreadPool::group`]; shares the pool with other
/// tasks.
///
/// The tasks return a `Result`. The first error or panic cancels the group: unstarted tasks are
/// dropped, running closures can see it through the [`token`](Self::token), and futures are dropped
/// as soon as they are pending. When all tasks have ended, [`wait`](Self::wait) returns that first
/// error. Then the group can be used again.
///
/// A [`limit`](Self::limit) gives the group a number of slots: at most that many of its tasks are
/// queued, running or pending at the same time, whatever else the pool does.
/// [`execute`](Self::execute) waits for a slot, while [`try_execute`](Self::try_execute) returns
/// [`Full`](crate::RejectReason::Full).
///
/// Tasks of [`evaluate`](Self::evaluate) return any value, through a handle. Under a limit that
/// runs at most that many at a time, each with its result.
///
/// Clones share the group. Dropping the last clone detaches the tasks, which still run; to stop
/// them, call [`cancel`](Self::cancel). A group does not keep the pool open.
///
/// ```
/// let pool = elastipool::ThreadPool::default();
/// let group = pool.group();
/// for text in ["1", "2", "three", "4"] {
///     // After the first error the group hands tasks back: stop submitting.
///     if group.execute(move || text.parse::<u32>().map(drop)).is_err() {
///         break;
///     }
/// }
/// assert_eq!(group.wait().unwrap_err().to_string(), "invalid digit found in string");
///
/// // Use the group again.
/// group.execute(|| "5".parse::<u32>().map(drop)).unwrap();
/// assert!(group.wait().is_ok());
/// ```
///
/// The error type can be one of your own. Let it convert from [`JoinError`](crate::JoinError),
/// which says that a task panicked or that the group was cancelled: then
/// [`into_error`](GroupError::into_error) returns your type in all cases.
///
/// ```
/// use std::fs;
/// use elastipool::{GroupError, JoinError, ThreadPool};
///
/// #[derive(Debug)]
/// enum LoadError {
///     Missing(&'static str),
///     Join(JoinError), // a panic, or cancelled
/// }
///
/// impl From<JoinError> for LoadError {
///     fn from(error: JoinError) -> Self {
///         LoadError::Join(error)
///     }
/// }
///
/// fn load_all(pool: &ThreadPool, paths: [&'static str; 2]) -> Result<(), LoadError> {
///     let group = pool.group::<LoadError>();
///     for path in paths {
///         let load = move || fs::read(path).map(drop).map_err(|_| LoadError::Missing(path));
///         if group.execute(load).is_err() {
///             break;
///         }
///     }
///     group.wait().map_err(GroupError::into_error)
/// }
///
/// let pool = ThreadPool::default();
/// assert!(load_all(&pool, ["Cargo.toml", "Cargo.toml"]).is_ok());
/// let error = load_all(&pool, ["Cargo.toml", "no such file"]).unwrap_err();
/// assert!(matches!(error, LoadError::Missing("no such file")));
/// ```
pub struct TaskGroup<E> {
    inner: Arc<Inner<E>>,
}

/// # Tasks that can fail
impl ThreadPool {
    /// Creates an empty group. `E` is the error type of its tasks. [`TaskGroup`] has an example
    /// with an error type of your own.
    ///
    /// The compiler infers `E` from tasks that return an error, or from a type that you write, such
    /// as that of a field. If nothing tells it ("type annotations needed"), name the type:
    /// `group::<()>()` for tasks that cannot fail. `()` cannot be displayed: with
    /// [`Infallible`](std::convert::Infallible) in its place, the error of a
    /// [`wait`](TaskGroup::wait) can be printed, and returned by `?`.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let parsing = pool.group(); // of the error type of `parse`
    /// parsing.execute(|| "42".parse::<u32>().map(drop)).unwrap();
    /// assert!(parsing.wait().is_ok());
    ///
    /// let printing = pool.group::<()>(); // `Ok(..)` alone does not tell the error type
    /// printing.execute(|| Ok(println!("a task"))).unwrap();
    /// printing.wait().unwrap();
    ///
    /// let imports = pool.view().limit(2).build();
    /// let group = imports.group::<()>(); // a group of the view's tasks
    /// group.execute(|| Ok(println!("an import"))).unwrap();
    /// group.wait().unwrap();
    /// ```
    pub fn group<E>(&self) -> TaskGroup<E>
    where
        E: Send + 'static,
    {
        let inner = Inner {
            route: self.owned_route(),
            _view: self.view.clone(),
            state: Mutex::new(GroupState::new()),
            unstarted: UnstartedList::new(),
        };
        TaskGroup { inner: Arc::new(inner) }
    }
}

/// # Limit and failures
impl<E: Send + 'static> TaskGroup<E> {
    /// Sets the number of slots: how many of the group's tasks may be queued, running or pending at
    /// the same time. By default a group has no limit.
    ///
    /// A thread that submits to a full group waits for a slot. Of the pool's workers at most
    /// [`max_size`](crate::ThreadPool::max_size) wait at a time, for slots and for capacity, since
    /// another worker runs in place of each. What further workers submit is accepted, and waits in
    /// line for its slot.
    ///
    /// # Panics
    /// If `limit` is 0: no task could run.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let group = pool.group::<()>().limit(4);
    /// for i in 0..100 {
    ///     group.execute(move || Ok(println!("{i}"))).unwrap(); // waits for one of four slots
    /// }
    /// group.wait().unwrap();
    /// ```
    #[must_use = "this is the group, and dropping it drops this clone"]
    #[track_caller]
    pub fn limit(self, limit: usize) -> Self {
        self.set_limit(limit);
        self
    }

    /// Changes the [limit](Self::limit), for all clones and at once. If it grows, waiting
    /// submitters and tasks get the new slots. If it shrinks, tasks that have a slot keep it.
    ///
    /// # Panics
    /// If `limit` is 0: no task could run.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let group = pool.group::<()>().limit(1);
    /// group.set_limit(4);
    /// group.execute(|| Ok(())).unwrap();
    /// group.wait().unwrap();
    /// ```
    #[track_caller]
    pub fn set_limit(&self, limit: usize) {
        assert!(
            limit > 0,
            "the limit of a group is 0; it must be at least 1, or no task could ever run (for no \
             limit, do not set it)"
        );
        self.inner.update(|state, after| {
            state.limit = limit;
            state.grant(after);
        });
    }

    /// Keeps the group going when a task fails, instead of cancelling it. All tasks run, and
    /// [`wait_all`](Self::wait_all) returns every error. Until a wait takes them, the group keeps
    /// them. A group that only limits how many tasks there are needs this too: without it the panic
    /// of one task, also of one with a handle, cancels the others.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let group = pool.group().keep_going();
    /// for text in ["1", "two", "three", "4"] {
    ///     group.execute(move || text.parse::<u32>().map(drop).map_err(|_| text)).unwrap();
    /// }
    /// let mut failed: Vec<_> = group.wait_all().iter().map(|error| error.to_string()).collect();
    /// failed.sort();
    /// assert_eq!(failed, ["three", "two"]);
    /// ```
    #[must_use = "this is the group, and dropping it drops this clone"]
    pub fn keep_going(self) -> Self {
        self.inner.state.lock().keeps_going = true;
        self
    }
}

/// # Races and deadlines
impl<E: Send + 'static> TaskGroup<E> {
    /// Makes the group a race: the first task of [`execute`](Self::execute) or
    /// [`spawn`](Self::spawn) that returns `Ok` cancels the others, as [`cancel`](Self::cancel)
    /// does, whether or not a thread waits. Errors and panics cancel nothing.
    ///
    /// [`wait`](Self::wait) returns `Ok` if a task has won, once the others have ended: those that
    /// run learn of it by the [token](Self::token). The errors of the losers are dropped, and their
    /// panics go to the [panic handler](crate::Builder::panic_handler). If none has won, it returns
    /// the first error, or `Ok` if the group had no task.
    ///
    /// The race has no value, and a task with a handle cannot win: it is cancelled with the others.
    /// For the first value, put handles into a [`JoinSet`](crate::JoinSet), as [the
    /// recipe](crate::guide::recipes#the-first-of-several-mirrors) does.
    ///
    /// ```
    /// use std::sync::mpsc;
    ///
    /// let pool = elastipool::ThreadPool::default();
    /// let group = pool.group().first_success();
    /// let (sender, winner) = mpsc::channel();
    /// for mirror in ["1", "two", "3"] {
    ///     let sender = sender.clone();
    ///     let task = move || mirror.parse::<u32>().map(|number| sender.send(number).unwrap());
    ///     if group.execute(task).is_err() {
    ///         break; // the race is over
    ///     }
    /// }
    /// assert!(group.wait().is_ok());
    /// println!("{} has won", winner.recv().unwrap());
    /// ```
    #[must_use = "this is the group, and dropping it drops this clone"]
    #[doc(alias("invoke_any", "race", "shutdown_on_success"))]
    pub fn first_success(self) -> Self {
        let mut state = self.inner.state.lock();
        (state.races, state.keeps_going) = (true, true);
        drop(state);
        self
    }

    /// Sets a deadline: when it has passed and tasks have not ended, the group is cancelled as by
    /// [`cancel`](Self::cancel), whether or not a thread waits. From then on it hands new tasks
    /// back. [`wait`](Self::wait) returns the error of a failed task, or one that [is
    /// "expired"](GroupError::is_expired). [`deadline_in`](Self::deadline_in) takes a duration.
    ///
    /// The pool's helper, a thread with the [stack](crate::Builder::stack_size) of a worker,
    /// cancels the group. So it drops the unstarted tasks and pending futures. Their destructors
    /// may wait for tasks of the pool, but hold up other deadlines and the
    /// [wakers](crate::ThreadPool::ready) of async waits: there is one helper, and a piece of user
    /// code that never returns there holds up all later deadlines. If a submission finds first that
    /// the deadline has passed, the submitter cancels the group, and the destructors run on its
    /// thread: they must not take a lock that it holds. A closure that runs goes on; it sees the
    /// [token](Self::token).
    ///
    /// A deadline that has cancelled the group is over, and after the next wait the group can be
    /// used without one. Any other stays after a wait: [set](Self::set_deadline) another one, or
    /// remove it, before you use the group again. To wait for a limited time and cancel nothing,
    /// use [`wait_timeout`](Self::wait_timeout).
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    ///
    /// let pool = elastipool::ThreadPool::new(1, 1, Duration::from_secs(1));
    /// let (open, gate) = std::sync::mpsc::channel::<()>();
    /// pool.execute(move || gate.recv().unwrap()); // occupies the only worker
    /// let group = pool.group::<()>().deadline(Instant::now() + Duration::from_millis(1));
    /// let _ = group.execute(|| Ok(println!("never printed")));
    /// assert!(group.wait().unwrap_err().is_expired()); // does not wait for the worker
    /// open.send(()).unwrap();
    /// ```
    #[must_use = "this is the group, and dropping it drops this clone"]
    pub fn deadline(self, at: Instant) -> Self {
        self.set_deadline(at);
        self
    }

    /// Sets a [deadline](Self::deadline) that is this long from now. A time that the clock cannot
    /// represent is none.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let pool = elastipool::ThreadPool::default();
    /// let group = pool.group::<()>().deadline_in(Duration::from_secs(60));
    /// group.execute(|| Ok(println!("in time"))).unwrap();
    /// group.wait().unwrap();
    /// ```
    #[must_use = "this is the group, and dropping it drops this clone"]
    #[doc(alias("timeout", "within"))]
    pub fn deadline_in(self, time: Duration) -> Self {
        self.set_deadline(Instant::now().checked_add(time));
        self
    }

    /// Sets the [deadline](Self::deadline) for all clones, in place of an earlier one. `None`
    /// removes it.
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    ///
    /// let pool = elastipool::ThreadPool::default();
    /// let group = pool.group::<()>();
    /// for _ in 0..3 {
    ///     group.set_deadline(Instant::now() + Duration::from_secs(60)); // of this round
    ///     group.execute(|| Ok(())).unwrap();
    ///     group.wait().unwrap();
    /// }
    /// ```
    pub fn set_deadline(&self, at: impl Into<Option<Instant>>) {
        let at = at.into();
        let group: Weak<Inner<E>> = Arc::downgrade(&self.inner);
        let mut state = self.inner.state.lock();
        let before = mem::replace(&mut state.deadline, at);
        state.is_deadline_over = false;
        // Under the group's lock: of two calls at once, the later one has set both.
        let next = at.map(|at| (at, group as _));
        self.inner.route().shared.set_deadline(self.inner.id(), before, next);
    }
}

impl<E> Clone for TaskGroup<E> {
    fn clone(&self) -> Self {
        TaskGroup { inner: Arc::clone(&self.inner) }
    }
}

/// No panic leaves the group in an invalid state.
impl<E> UnwindSafe for TaskGroup<E> {}

/// As for [`UnwindSafe`].
impl<E> RefUnwindSafe for TaskGroup<E> {}

impl<E> fmt::Debug for TaskGroup<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.inner.state.lock();
        let limit = (state.limit < usize::MAX).then_some(state.limit);
        let (under_way, in_line) = (state.slots, state.queue.len());
        let (is_cancelled, keeps_going) = (state.token.is_cancelled(), state.keeps_going);
        let (races, deadline) = (state.races, state.deadline);
        // Release the lock first: the formatter may call user code.
        drop(state);
        f.debug_struct("TaskGroup")
            .field("pool", &self.inner.route().shared.config.name)
            .field("error", &type_name::<E>())
            .field("limit", &limit)
            .field("keep_going", &keeps_going)
            .field("first_success", &races)
            .field("deadline", &deadline)
            .field("under_way", &under_way)
            .field("in_line", &in_line)
            .field("is_cancelled", &is_cancelled)
            .finish()
    }
}
