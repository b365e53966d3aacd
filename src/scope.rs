//! Tasks that borrow from the stack of whoever submits them: [`ThreadPool::scope`].
//!
//! # Why it is sound
//! A worker's queue holds tasks that may live for ever; a scope's tasks may not outlive what they borrow. The lifetime
//! is forgotten in one place, [`Scope::add`], and these facts take its place:
//!
//! 1. Each task is counted as unfinished from before it can be found until its closure has been called and consumed, or
//!    dropped without a call, and its result has gone to its handle: then its [`Owner`] hears of it. This is so however the
//!    task ends, panics included. What is dropped after that, the memory of the job, holds nothing of the user's.
//! 2. [`ThreadPool::scope`] does not return, nor unwind, before no task is counted: a panic of the body is caught first,
//!    and should the wait itself panic, the process aborts.
//! 3. Tasks can be submitted by the body and by the scope's own tasks only, by a reference that lives for `'scope`,
//!    which ends inside of [`ThreadPool::scope`]: once the body has ended and the count is zero, it stays zero.
//! 4. A task that is never run nor dropped leaves the scope waiting: that is not nice, but sound. The pool gives no
//!    such task away: an immediate shutdown drops it at once.
//! 5. What a task borrows lives for `'scope` at least, and a result may live as long. `'scope` is invariant (it can
//!    neither be shortened, to let in what the body owns, nor lengthened), and `'env` outlives it: as in
//!    `std::thread::scope`, whose shape this is.
#![allow(unsafe_code, reason = "a lifetime is forgotten; see the module's documentation")]

use std::fmt;
use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::mem;
use std::panic::resume_unwind;
use std::pin::{Pin, pin};
use std::process;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::error::{JoinError, Rejected};
use crate::join_handle::JoinHandle;
use crate::pool::ThreadPool;
use crate::runtime::awaited::{run_awaited_scope, run_awaited_scoped_task};
use crate::runtime::region::{Dependency, wait_for};
use crate::runtime::shared::PoolId;
use crate::runtime::shared::Shared;
use crate::sync::unwind::{Payload, contain, discard};
use crate::sync::{AtomicUsize, Mutex, Ordering};
use crate::task::closure::Closure;
use crate::task::job::{Job, Outcome, run_closure, settle};
use crate::task::promise::Promise;
use crate::task::unstarted::{Owner, TaskId, Unstarted};

/// What a scope's owner and its tasks share. Holds nothing that is borrowed.
struct Progress {
    /// Tasks that have not ended.
    unfinished: AtomicUsize,
    /// The owner, when it waits.
    owner: Mutex<Option<Waker>>,
    record: Mutex<Record>,
}

/// How a scope's tasks have ended.
#[derive(Default)]
struct Record {
    /// The first panic that nobody else has heard of.
    panic: Option<Payload>,
    /// Tasks without a handle that were dropped without having been run.
    lost: usize,
}

impl Progress {
    fn new() -> Self {
        Progress {
            unfinished: AtomicUsize::new(0),
            owner: Mutex::new(None),
            record: Mutex::new(Record::default()),
        }
    }

    /// Keeps the payload if it is the first. Otherwise it comes back.
    fn keep(&self, payload: Payload) -> Option<Payload> {
        let mut record = self.record.lock();
        if record.panic.is_some() {
            return Some(payload);
        }
        record.panic = Some(payload);
        None
    }

    /// A panic that was not a task's: the first of all is resumed, others are for the panic handler.
    fn report(&self, shared: &Shared, payload: Payload) {
        if let Some(payload) = self.keep(payload) {
            shared.config.hooks.panicked(payload);
        }
    }

    fn is_finished(&self) -> bool {
        // Acquire: what the tasks wrote.
        self.unfinished.load(Ordering::Acquire) == 0
    }

    /// Blocks until all tasks have ended.
    fn wait(&self, pool: PoolId) {
        if self.is_finished() {
            return;
        }
        let finished = pin!(poll_fn(|context| {
            *self.owner.lock() = Some(context.waker().clone());
            // Said first, then looked; the last task counts first, and then looks who waits.
            if self.is_finished() { Poll::Ready(()) } else { Poll::Pending }
        }));
        let finished = wait_for(finished, None, Dependency::Pool(pool));
        debug_assert!(finished.is_some(), "a wait without a limit does not time out");
    }
}

/// A scope's tasks that have not been started, and what all of its tasks share with its owner.
type Tasks = Arc<Unstarted<Progress>>;

impl Progress {
    /// A task and what it has borrowed are gone.
    fn finish_one(&self) {
        // Release: what the task did, for the owner. Acquire: so that the last one passes on what the others did.
        if self.unfinished.fetch_sub(1, Ordering::AcqRel) == 1 {
            if let Some(owner) = self.owner.lock().take() {
                owner.wake();
            }
        }
    }
}

/// Hears of a task when its closure has been consumed.
impl Owner for Progress {
    fn ended(&self, outcome: Outcome) -> Outcome {
        let outcome = match outcome {
            Outcome::Panicked(Some(payload)) => Outcome::Panicked(self.keep(payload)),
            outcome => outcome,
        };
        self.finish_one();
        outcome
    }

    fn dropped(&self, has_handle: bool) {
        if !has_handle {
            self.record.lock().lost += 1;
        }
        self.finish_one();
    }
}

/// Ends the process when it is dropped.
struct Abort;

impl Drop for Abort {
    fn drop(&mut self) {
        process::abort();
    }
}

/// Where tasks can be submitted that borrow: see [`ThreadPool::scope`].
///
/// `'scope` is the time during which the scope's tasks can run; what they borrow lives longer, `'env` at least.
pub struct Scope<'scope, 'env: 'scope> {
    /// Borrowed: all CPUs would write its reference count, for each scope.
    shared: &'scope Arc<Shared>,
    tasks: Tasks,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

impl ThreadPool {
    /// Runs `body`, which can submit tasks that borrow from outside of it, and returns when all of them have ended.
    ///
    /// The body runs on the calling thread, the tasks on the pool's workers: they may submit more tasks to the same
    /// scope, and open scopes in turn. After the body the calling thread runs those tasks that have not been started, the
    /// newest first, whether or not it is a worker; in such a task [`worker_index`](crate::worker_index) and the thread's
    /// locals are those of the calling thread. (A thread that unwinds runs none.) Then it waits; a worker does so in a
    /// [blocking region](crate::blocking()). So scopes may be nested on a pool of any size, and cost no thread.
    ///
    /// [`Scope`]'s methods are those of the pool, and treat a task that is not accepted as those do.
    ///
    /// # Panics
    /// If the body or one of the tasks panics: the first panic is resumed when all tasks have ended, later ones go to
    /// the pool's [panic handler](crate::Builder::panic_handler). The panic of a task with a [`ScopedJoinHandle`] is for
    /// whoever waits for that; it counts here, from that moment, if the handle is dropped instead.
    ///
    /// Also if a task without a handle was dropped without being run, by
    /// [`shutdown_now`](Self::shutdown_now): the caller could not know otherwise.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let numbers: Vec<u32> = (1..=1000).collect();
    /// let mut squares = vec![0; 1000];
    /// pool.scope(|scope| {
    ///     for (numbers, squares) in numbers.chunks(100).zip(squares.chunks_mut(100)) {
    ///         scope.execute(move || {
    ///             for (number, square) in numbers.iter().zip(squares) {
    ///                 *square = number * number;
    ///             }
    ///         });
    ///     }
    /// });
    /// assert_eq!(squares[999], 1_000_000);
    /// ```
    ///
    /// The first error among the results of fallible tasks, by their handles:
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let texts = ["1", "2", "three"];
    /// let sum: Result<u32, _> = pool.scope(|scope| {
    ///     let parsed = texts.map(|text| scope.evaluate(|| text.parse::<u32>()));
    ///     parsed.into_iter().map(|handle| handle.await_complete()).sum()
    /// });
    /// assert_eq!(sum.unwrap_err().to_string(), "invalid digit found in string");
    /// ```
    ///
    /// # What does not compile
    /// A task cannot borrow what the body owns, which is gone when the body ends:
    ///
    /// ```compile_fail,E0373
    /// let pool = elastipool::ThreadPool::default();
    /// pool.scope(|scope| {
    ///     let inside = 1;
    ///     scope.execute(|| println!("{inside}"));
    /// });
    /// ```
    ///
    /// It cannot change what somebody else may look at meanwhile,
    ///
    /// ```compile_fail,E0502
    /// let pool = elastipool::ThreadPool::default();
    /// let mut numbers = vec![1];
    /// pool.scope(|scope| {
    ///     scope.execute(|| numbers.push(2));
    ///     println!("{}", numbers.len());
    /// });
    /// ```
    ///
    /// nor can two tasks change the same thing,
    ///
    /// ```compile_fail,E0499
    /// let pool = elastipool::ThreadPool::default();
    /// let mut numbers = vec![1];
    /// pool.scope(|scope| {
    ///     scope.execute(|| numbers.push(2));
    ///     scope.execute(|| numbers.push(3));
    /// });
    /// ```
    ///
    /// and nothing that is borrowed can be given away before the end of the scope.
    ///
    /// ```compile_fail,E0505
    /// let pool = elastipool::ThreadPool::default();
    /// let numbers = vec![1];
    /// pool.scope(|scope| {
    ///     scope.execute(|| println!("{numbers:?}"));
    ///     drop(numbers);
    /// });
    /// ```
    ///
    /// The scope itself does not leave its body,
    ///
    /// ```compile_fail,E0521
    /// let pool = elastipool::ThreadPool::default();
    /// let mut kept = None;
    /// pool.scope(|scope| kept = Some(scope));
    /// ```
    ///
    /// and its tasks cannot be submitted by one that may outlive it.
    ///
    /// ```compile_fail,E0521
    /// let pool = elastipool::ThreadPool::default();
    /// pool.scope(|scope| {
    ///     pool.execute(|| scope.execute(|| ()));
    /// });
    /// ```
    ///
    /// A result may be borrowed as well, but not from the task itself,
    ///
    /// ```compile_fail,E0515
    /// let pool = elastipool::ThreadPool::default();
    /// pool.scope(|scope| {
    ///     let handle = scope.evaluate(|| {
    ///         let text = String::from("text");
    ///         text.as_str()
    ///     });
    ///     println!("{}", handle.await_complete());
    /// });
    /// ```
    ///
    /// and whatever a task captures or returns goes from one thread to another.
    ///
    /// ```compile_fail,E0277
    /// let pool = elastipool::ThreadPool::default();
    /// let counted = std::rc::Rc::new(1);
    /// pool.scope(|scope| scope.execute(|| println!("{counted}")));
    /// ```
    #[track_caller]
    pub fn scope<'env, F, R>(&self, body: F) -> R
    where
        F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R,
    {
        let tasks = Unstarted::new(Progress::new());
        let scope = Scope { shared: self.shared(), tasks, scope: PhantomData, env: PhantomData };
        let progress = &scope.tasks.owner();
        // Until all tasks have ended they borrow what an unwinding would take from them.
        let abort = Abort;
        let result =
            contain(|| body(&scope)).map_err(|payload| progress.report(self.shared(), payload));
        run_awaited_scope(self.shared(), &scope.tasks);
        progress.wait(self.shared().id());
        mem::forget(abort);
        let Record { panic, lost } = mem::take(&mut *progress.record.lock());
        match (result, panic) {
            (Ok(result), None) if lost == 0 => result,
            (result, Some(payload)) => {
                discard(result);
                resume_unwind(payload)
            }
            (result, None) => {
                discard(result);
                panic!(
                    "{lost} of a scope's tasks were dropped without having been run: the pool `{}` was shut down by \
                     `shutdown_now`. Join the pool before that, or use `evaluate`, whose handle says so",
                    self.name()
                );
            }
        }
    }
}

impl<'scope> Scope<'scope, '_> {
    /// Runs a closure on a worker, as [`ThreadPool::execute`] does.
    ///
    /// # Panics
    /// If the pool is closed; [`try_execute`](Self::try_execute) returns the closure instead.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let (mut left, mut right) = (0, 0);
    /// pool.scope(|scope| {
    ///     scope.execute(|| {
    ///         left = 1;
    ///         scope.execute(|| right = 2);
    ///     });
    /// });
    /// assert_eq!((left, right), (1, 2));
    /// ```
    pub fn execute<F>(&'scope self, task: F)
    where
        F: FnOnce() + Send + 'scope,
    {
        if let Err(rejected) = self.shared().submit_or_run(task, |task| self.closure(task)) {
            rejected.panic("try_execute");
        }
    }

    /// Like [`execute`](Self::execute), but hands the closure back if it is not accepted. Does not wait.
    ///
    /// # Errors
    /// As those of [`ThreadPool::try_execute`].
    pub fn try_execute<F>(&'scope self, task: F) -> Result<(), Rejected<F>>
    where
        F: FnOnce() + Send + 'scope,
    {
        self.shared().try_submit(task, |task| self.closure(task))
    }

    /// Runs a closure on a worker, with a handle to wait for its result, as [`ThreadPool::evaluate`] does.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let text = String::from("of the caller's");
    /// let words = pool.scope(|scope| scope.evaluate(|| text.split(' ').count()).await_complete());
    /// assert_eq!(words, 3);
    /// ```
    pub fn evaluate<F, R>(&'scope self, task: F) -> ScopedJoinHandle<'scope, R>
    where
        F: FnOnce() -> R + Send + 'scope,
        R: Send + 'scope,
    {
        match self.shared().submit_or_run(task, |task| self.evaluation(task)) {
            Ok((handle, id)) => self.scoped(handle, Some(id)),
            Err(rejected) => {
                discard(rejected);
                self.scoped(JoinHandle::cancelled(self.shared().id()), None)
            }
        }
    }

    /// Like [`evaluate`](Self::evaluate), but hands the closure back if it is not accepted. Does not wait.
    ///
    /// # Errors
    /// As those of [`ThreadPool::try_evaluate`].
    pub fn try_evaluate<F, R>(
        &'scope self,
        task: F,
    ) -> Result<ScopedJoinHandle<'scope, R>, Rejected<F>>
    where
        F: FnOnce() -> R + Send + 'scope,
        R: Send + 'scope,
    {
        let (handle, id) = self.shared().try_submit(task, |task| self.evaluation(task))?;
        Ok(self.scoped(handle, Some(id)))
    }

    fn shared(&self) -> &Arc<Shared> {
        self.shared
    }

    fn closure<F>(&self, task: F) -> (Job, ())
    where
        F: FnOnce() + Send + 'scope,
    {
        let (entry, _) = self.add(false, move || run_closure(task));
        (entry, ())
    }

    fn evaluation<F, R>(&self, task: F) -> (Job, (JoinHandle<R>, TaskId))
    where
        F: FnOnce() -> R + Send + 'scope,
        R: Send + 'scope,
    {
        let (promise, receiver) = Promise::new();
        let (entry, id) = self.add(true, move || settle(promise, contain(task)));
        (entry, (JoinHandle::new(receiver, None, self.shared().id()), id))
    }

    /// Adds a task to those of this scope that have not been started, and returns its entry.
    fn add<F>(&self, has_handle: bool, run: F) -> (Job, TaskId)
    where
        F: FnOnce() -> Outcome + Send + 'scope,
    {
        // Relaxed: the caller is the owner or one of the tasks, so the scope does not end meanwhile.
        self.tasks.owner().unfinished.fetch_add(1, Ordering::Relaxed);
        // SAFETY: what `run` borrows lives until the scope's end, which waits until the task is counted no longer, and that
        // comes after `run` was called or dropped. See the module's documentation.
        let job = Job::Closure(unsafe { Closure::new_borrowing(run) });
        self.tasks.add(job, has_handle)
    }

    fn scoped<R>(&self, handle: JoinHandle<R>, id: Option<TaskId>) -> ScopedJoinHandle<'scope, R> {
        ScopedJoinHandle {
            handle: Some(handle),
            id,
            shared: self.shared,
            tasks: Arc::clone(&self.tasks),
            scope: PhantomData,
        }
    }
}

impl fmt::Debug for Scope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope")
            .field("unfinished", &self.tasks.owner().unfinished.load(Ordering::Relaxed))
            .finish_non_exhaustive()
    }
}

/// A handle to wait for the result of a scope's task, from [`Scope::evaluate`].
///
/// As a [`JoinHandle`], it always resolves, can be waited for anywhere, and is a [`Future`]. If it is dropped and the
/// task panics, now or later, the scope resumes the panic.
#[must_use = "dropping a handle detaches its task; use `execute` if the result is of no interest"]
pub struct ScopedJoinHandle<'scope, T> {
    /// Until it is waited for.
    handle: Option<JoinHandle<T>>,
    /// `None` if the task was not accepted.
    id: Option<TaskId>,
    shared: &'scope Arc<Shared>,
    tasks: Tasks,
    scope: PhantomData<&'scope ()>,
}

impl<T> ScopedJoinHandle<'_, T> {
    /// Blocks until the task has ended and returns its value.
    ///
    /// # Panics
    /// As [`JoinHandle::await_complete`].
    pub fn await_complete(mut self) -> T {
        self.run_awaited();
        self.take().await_complete()
    }

    /// Blocks until the task has ended.
    ///
    /// # Errors
    /// If the task panicked, or was not accepted or dropped by
    /// [`shutdown_now`](ThreadPool::shutdown_now).
    pub fn try_await_complete(mut self) -> Result<T, JoinError> {
        self.run_awaited();
        self.take().try_await_complete()
    }

    /// Blocks until the task has ended, for at most `timeout`.
    ///
    /// # Errors
    /// As [`JoinHandle::await_complete_timeout`].
    pub fn await_complete_timeout(
        mut self,
        timeout: Duration,
    ) -> Result<Result<T, JoinError>, Self> {
        self.take().await_complete_timeout(timeout).map_err(|handle| {
            self.handle = Some(handle);
            self
        })
    }

    /// Whether the handle has resolved, in whichever way: then waiting does not block.
    pub fn is_finished(&self) -> bool {
        self.handle.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Before a wait without a limit.
    fn run_awaited(&self) {
        if let Some(id) = self.id {
            run_awaited_scoped_task(self.shared, &self.tasks, id);
        }
    }

    fn take(&mut self) -> JoinHandle<T> {
        match self.handle.take() {
            Some(handle) => handle,
            None => unreachable!("a handle is given up when it is waited for"),
        }
    }
}

impl<T> Drop for ScopedJoinHandle<'_, T> {
    fn drop(&mut self) {
        let Some(handle) = self.handle.take() else { return };
        if let Some(payload) = handle.close() {
            self.tasks.owner().report(self.shared, payload);
        }
    }
}

/// The value is never pinned.
impl<T> Unpin for ScopedJoinHandle<'_, T> {}

/// Resolves when the task has ended. Not to be polled again after that.
impl<T> Future for ScopedJoinHandle<'_, T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(handle) = &mut self.handle else {
            panic!("a ScopedJoinHandle was polled after it had resolved");
        };
        let polled = Pin::new(handle).poll(context);
        if polled.is_ready() {
            self.handle = None;
        }
        polled
    }
}

impl<T> fmt::Debug for ScopedJoinHandle<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopedJoinHandle").field("is_finished", &self.is_finished()).finish()
    }
}
