//! Tasks that borrow from the stack of the thread that opens the scope: [`ThreadPool::scope`]. In
//! one file, so that everything that its soundness depends on is in sight. (The methods that spawn
//! futures, in `scope/futures.rs`, have no `unsafe` code.)
//!
//! # Why it is sound
//! The pool's queue holds tasks without a lifetime; a scope's tasks must not outlive what they
//! borrow. [`Scope::erase`] and, for futures, [`Scope::erase_future`] erase the lifetime. These
//! facts replace the compiler's check:
//!
//! 1. A task is *unfinished* from before any thread can find it: it is in the list of the scope's
//!    unstarted tasks ([`UnstartedList`]), or counts there as running, which change under one lock.
//!    It is so until its closure was called and consumed, or dropped without a call, and its result
//!    went to its handle. This holds however the task ends, including by a panic. Only the job's
//!    memory is dropped later, and it holds nothing of the user's. A task that the scope's own
//!    thread runs after the body does not count, but has ended before that thread goes on.
//!
//!    A future too is unfinished until it was dropped, and its result went to its handle, also
//!    while it waits for a wake: then it counts as running. It lies in a box, which its task drops
//!    before it tells the list (`ScopedFuture`). Wakers, handles and entries in queues may keep
//!    the task's memory for longer, and hold nothing of the user's. If they are leaked, the future
//!    may never end: see 4.
//! 2. [`ThreadPool::scope`] neither returns nor unwinds before it has found no unfinished task
//!    under that lock, after the body. It catches a panic of the body first. If the wait itself
//!    panics, the process aborts.
//! 3. Only the body and the scope's own tasks can submit tasks, through a reference that lives for
//!    `'scope`, which ends inside [`ThreadPool::scope`]. So once the body has ended and no task is
//!    unfinished, none ever is again. (The scope's own thread looks only while it runs no task of
//!    the scope.) The list may then be used again by another scope, and an entry that is left in
//!    the queue starts that one's tasks: an entry holds no task.
//! 4. A task that is neither run nor dropped makes the scope wait forever, which is sound. The pool
//!    never hands such a task to the user: an immediate shutdown drops it.
//! 5. What a task borrows lives at least for `'scope`, and so may its result. `'scope` is
//!    invariant: it cannot be shortened, which would admit borrows of what the body owns, nor
//!    lengthened. `'env` outlives it. `std::thread::scope` has the same shape.
#![allow(unsafe_code, reason = "a lifetime is forgotten; see the module's documentation")]

#[cfg(feature = "async")]
mod futures;

use std::cell::RefCell;
use std::cmp;
use std::fmt;
use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::mem;
use std::panic::{Location, resume_unwind};
use std::pin::{Pin, pin};
use std::process;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_core::future::FusedFuture;

use crate::error::{JoinError, Rejected, or_hand_back};
use crate::join_handle::{JoinHandle, wait_for_itself};
use crate::pool::ThreadPool;
use crate::sched::{Dependency, NO_LIMIT, Route, Shared, TaskRoute, has_passed, wait_for};
use crate::submit::{Accepted, Patience, is_boxed};
#[cfg(feature = "async")]
use crate::sync::unwind::quietly;
use crate::sync::unwind::{Contained, OnDrop, Payload, contain, discard};
use crate::sync::{Mutex, thread_local};
use crate::task::{
    Closure, Job, Line, Outcome, Promise, Reporter, ScopeRecord, ScopeWait, TaskId, UnstartedList,
    ViewId, settle,
};
use crate::thread::PoolId;
use crate::wait::{run_awaited_scoped_task, run_awaited_tasks};

/// Where the entries of a list's tasks are queued.
type ScopeQueue = (PoolId, ViewId);

/// How many lists without entries a thread keeps for the scopes that it opens next: those of a few
/// nested scopes. A list costs two allocations, and the memory for its tasks.
const KEPT_LISTS: usize = 4;

thread_local! {
    /// Lists of scopes that have ended. Those beyond [`KEPT_LISTS`] have surplus entries, on which
    /// the next tasks rely: no more for each queue than the thread had scopes open at a time.
    static LISTS: RefCell<Vec<(ScopeQueue, Arc<UnstartedList>)>> = RefCell::default();
}

/// Returns the list of a new scope.
fn take_list(queue: ScopeQueue) -> Arc<UnstartedList> {
    let kept = LISTS.try_with(|lists| {
        let mut lists = lists.borrow_mut();
        // Its surplus entries must be in this queue.
        let of_queue = lists.iter().rposition(|(of, _)| *of == queue);
        let index = of_queue.or_else(|| lists.iter().position(|(_, kept)| !kept.has_surplus()))?;
        Some(lists.remove(index).1)
    });
    kept.ok().flatten().unwrap_or_else(UnstartedList::new)
}

/// Keeps the list of a scope that has ended.
fn keep_list(tasks: Arc<UnstartedList>, queue: ScopeQueue) {
    let _ = LISTS.try_with(|lists| {
        let mut lists = lists.borrow_mut();
        if lists.len() >= KEPT_LISTS {
            if !tasks.has_surplus() {
                return;
            }
            lists.retain(|(_, kept)| kept.has_surplus());
        }
        lists.push((queue, tasks));
    });
}

/// Keeps a panic of the body or of a task whose handle was dropped. If there is an earlier panic,
/// this one goes to the panic handler.
fn report(tasks: &UnstartedList, shared: &Shared, payload: Payload) {
    if let Some(payload) = tasks.keep_panic(payload) {
        shared.config.hooks.panicked(payload);
    }
}

/// Blocks until all tasks have ended. If the scope is going to panic, cancels the futures that wait
/// to be woken.
fn wait(tasks: &UnstartedList, route: Route<'_>) -> ScopeRecord {
    loop {
        let over = pin!(poll_fn(|context| tasks.poll_ended(context.waker())));
        match wait_for(over, None, Dependency::Pool(route.id())).expect(NO_LIMIT) {
            ScopeWait::Ended(record) => return record,
            ScopeWait::Cancel(futures) => route.cancel_futures(&futures),
        }
    }
}

/// Submits tasks that borrow. Passed to the body of [`ThreadPool::scope`].
///
/// `'scope` is the lifetime of the scope itself, during which its tasks can run. `'env` is the
/// lifetime of what they borrow, and outlives `'scope`.
///
/// ```
/// let pool = elastipool::ThreadPool::default();
/// let text = String::from("borrowed by both tasks");
/// let (words, letters) = pool.scope(|scope| {
///     let words = scope.evaluate(|| text.split(' ').count());
///     let letters = scope.evaluate(|| text.chars().filter(|c| c.is_alphabetic()).count());
///     (words.await_complete(), letters.await_complete())
/// });
/// assert_eq!((words, letters), (4, 19));
/// ```
pub struct Scope<'scope, 'env: 'scope> {
    /// Borrowed: a clone per scope would make all CPUs write the same reference count.
    pool: &'scope ThreadPool,
    tasks: &'scope Arc<UnstartedList>,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// # Tasks that borrow
impl ThreadPool {
    /// Runs `body`, which can submit tasks that borrow from outside it. Blocks until all of them
    /// have ended.
    ///
    /// The body runs on the calling thread, the tasks on the pool's workers. Tasks may submit more
    /// tasks to the same scope, and open scopes of their own.
    ///
    /// After the body the calling thread runs the scope's unstarted tasks, the newest first,
    /// whether or not it is a worker. Such a task sees the [`worker_index`](crate::worker_index())
    /// and the thread-locals of the calling thread. If it waits for the task of a
    /// [`ScopedJoinHandle`], the thread runs that task too. (A thread that unwinds runs no task.)
    /// Then the calling thread waits; a worker waits in a [blocking region](crate::blocking()). So
    /// scopes can be nested on a pool of any size, and cost a thread only while their last tasks
    /// run elsewhere.
    ///
    /// The methods of [`Scope`] correspond to those of the pool, also for a task that is
    /// [not accepted](ThreadPool#when-a-task-is-not-accepted). For futures, see [`Scope::spawn`].
    ///
    /// # Panics
    /// If the body or a task panics. When all tasks have ended, `scope` resumes the first panic.
    /// Later ones go to the pool's [panic handler](crate::Builder::panic_handler). The panic of a
    /// task with a [`ScopedJoinHandle`] goes to the handle instead. If that handle is dropped, the
    /// panic counts here, from the moment of the drop.
    ///
    /// Also if [`shutdown_now`](Self::shutdown_now) dropped a task without a handle, if such a task
    /// of a [view](crate::View) expired, or if the last waker of such a future was dropped: nothing
    /// else would report it.
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
    /// To get the first error of fallible tasks, use their handles:
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
    /// A task cannot borrow what the body owns, which is dropped when the body ends:
    ///
    /// ```compile_fail,E0373
    /// let pool = elastipool::ThreadPool::default();
    /// pool.scope(|scope| {
    ///     let inside = 1;
    ///     scope.execute(|| println!("{inside}"));
    /// });
    /// ```
    ///
    /// A task cannot change what other code may read meanwhile:
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
    /// Two tasks cannot change the same value:
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
    /// A borrowed value cannot be moved before the end of the scope:
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
    /// The scope itself cannot leave its body:
    ///
    /// ```compile_fail,E0521
    /// let pool = elastipool::ThreadPool::default();
    /// let mut kept = None;
    /// pool.scope(|scope| kept = Some(scope));
    /// ```
    ///
    /// A task that may outlive the scope cannot submit to it:
    ///
    /// ```compile_fail,E0521
    /// let pool = elastipool::ThreadPool::default();
    /// pool.scope(|scope| {
    ///     pool.execute(|| scope.execute(|| ()));
    /// });
    /// ```
    ///
    /// A result may be a borrow, but not of what the task itself owns:
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
    /// Whatever a task captures or returns must be `Send`:
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
        let queue = (self.route().id(), self.route().view_id());
        let tasks = take_list(queue);
        let scope = Scope { pool: self, tasks: &tasks, scope: PhantomData, env: PhantomData };
        // Unwinding from here would end borrows that the tasks still use.
        let abort = OnDrop(|| process::abort());
        // Lent to `contain`: an unoptimised build would copy a large body in each of the functions
        // that it passes through.
        let mut body = Some(body);
        let call = || body.take().expect("it is called once")(&scope);
        let result = contain(call).map_err(|payload| report(&tasks, self.shared(), payload));
        let ScopeRecord { panic, lost } =
            run_awaited_tasks(self.route(), &tasks, true, false, || true)
                .unwrap_or_else(|| wait(&tasks, self.route()));
        mem::forget(abort);
        keep_list(tasks, queue);
        match (result, panic) {
            (Ok(result), None) if lost == 0 => result,
            (result, Some(payload)) => {
                discard(result);
                resume_unwind(payload)
            }
            (result, None) => {
                discard(result);
                panic!(
                    "{lost} of a scope's tasks were dropped without having been run to their \
                     ends: the pool `{}` was shut down by \
                     `shutdown_now`, the tasks expired in the queue of a view, or nothing could wake a future any more. \
                     Join the pool before a shutdown, or use `evaluate` and `spawn_await`, whose handles say so",
                    self.name()
                );
            }
        }
    }
}

impl<'scope> Scope<'scope, '_> {
    /// Runs a closure on a worker. Blocks as [`ThreadPool::execute`] does.
    ///
    /// # Panics
    /// If the pool is closed. [`try_execute`](Self::try_execute) returns the closure instead.
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
    #[track_caller]
    pub fn execute<F>(&'scope self, task: F)
    where
        F: FnOnce() + Send + 'scope,
    {
        match self.pool.accept(Patience::Endless) {
            Ok(accepted) => self.add_closure(accepted, task),
            Err(refusal) => {
                discard(Box::new(task));
                refusal.panic("try_execute");
            }
        }
    }

    /// Like [`execute`](Self::execute), but hands the closure back if it is not accepted. Does not
    /// wait for capacity.
    ///
    /// # Errors
    /// As for [`ThreadPool::try_execute`].
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let mut count = 0;
    /// pool.scope(|scope| {
    ///     if let Err(rejected) = scope.try_execute(|| count += 1) {
    ///         rejected.into_task()(); // on this thread
    ///     }
    /// });
    /// assert_eq!(count, 1);
    /// ```
    #[track_caller]
    pub fn try_execute<F>(&'scope self, task: F) -> Result<(), Rejected<F>>
    where
        F: FnOnce() + Send + 'scope,
    {
        let accepted = or_hand_back!(self.pool.accept(Patience::None), task);
        self.add_closure(accepted, task);
        Ok(())
    }

    /// Runs a closure on a worker and returns a handle to its result. Blocks as
    /// [`ThreadPool::execute`] does.
    ///
    /// If the pool is closed, the handle resolves to "cancelled".
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let text = String::from("of the caller's");
    /// let count = || text.split(' ').count();
    /// let words = pool.scope(|scope| scope.evaluate(count).await_complete());
    /// assert_eq!(words, 3);
    /// ```
    #[track_caller]
    pub fn evaluate<F, R>(&'scope self, task: F) -> ScopedJoinHandle<'scope, R>
    where
        F: FnOnce() -> R + Send + 'scope,
        R: Send + 'scope,
    {
        match self.pool.accept(Patience::Endless) {
            Ok(accepted) => self.add_evaluation(accepted, task),
            Err(refusal) => {
                self.scoped(JoinHandle::refused(self.route(), &refusal, Box::new(task)), None)
            }
        }
    }

    /// Like [`evaluate`](Self::evaluate), but hands the closure back if it is not accepted. Does
    /// not wait for capacity.
    ///
    /// # Errors
    /// As for [`ThreadPool::try_evaluate`].
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let numbers = [1, 2, 3];
    /// let sum: i32 = pool.scope(|scope| match scope.try_evaluate(|| numbers.iter().sum()) {
    ///     Ok(handle) => handle.await_complete(),
    ///     Err(rejected) => rejected.into_task()(), // on this thread
    /// });
    /// assert_eq!(sum, 6);
    /// ```
    #[track_caller]
    pub fn try_evaluate<F, R>(
        &'scope self,
        task: F,
    ) -> Result<ScopedJoinHandle<'scope, R>, Rejected<F>>
    where
        F: FnOnce() -> R + Send + 'scope,
        R: Send + 'scope,
    {
        let accepted = or_hand_back!(self.pool.accept(Patience::None), task);
        Ok(self.add_evaluation(accepted, task))
    }

    /// Calls `f` for each item, on the workers: those of a slice, a `Vec`, a range, or the chunks
    /// of a slice. Submits tasks of several items each, and returns. The scope waits for them.
    /// Blocks as [`execute`](Self::execute) does.
    ///
    /// The items are divided into four tasks for each worker that may run now
    /// ([`Growth::Measured`](crate::Growth::Measured): as many as keep the CPUs busy; otherwise
    /// `max_size`), so that a worker that ends early has more to do. With fewer items each is a
    /// task. If more workers may run later, because the items wait or `max_size` was raised,
    /// further tasks take what is left. The order of the calls is not promised.
    ///
    /// For the data parallelism of iterators (maps, sums, sorting), rayon has more to offer.
    ///
    /// # Panics
    /// If the pool is closed. If `f` panics, the [scope](ThreadPool::scope) resumes the panic, and
    /// some of the items that come later may be dropped: at most the share of the task.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let mut numbers: Vec<u32> = (0..1000).collect();
    /// pool.scope(|scope| scope.for_each(&mut numbers, |number| *number *= 2));
    /// assert_eq!(numbers[999], 1998);
    /// ```
    #[doc(alias("par_iter", "parallel_for", "for_each_mut"))]
    #[track_caller]
    pub fn for_each<I, F>(&'scope self, items: I, f: F)
    where
        I: IntoIterator<Item: Send + 'scope, IntoIter: ExactSizeIterator>,
        F: Fn(I::Item) + Send + Sync + 'scope,
    {
        let mut left: Vec<_> = items.into_iter().collect();
        left.reverse();
        let len = left.len();
        let share = self.share(len);
        let tasks = len.div_ceil(share);
        let state = Mutex::new(Items { left, tasks });
        let items = Arc::new(ForEach { f, len, line: Location::caller(), state });
        for _ in 0..tasks {
            let items = Arc::clone(&items);
            self.execute(move || self.visit(&items, share));
        }
    }

    /// Returns how many of `len` items each task visits.
    fn share(&self, len: usize) -> usize {
        let workers = self.pool.shared().sizes.limit();
        len.div_ceil(workers.saturating_mul(4)).max(1)
    }

    /// Visits a share of the items, as long as there are any. In a pool that may grow, takes one
    /// item first, then at most eight times as many as it has visited: while the task is busy with
    /// these, workers that come later take what it has left.
    fn visit<T, F>(&'scope self, items: &Arc<ForEach<T, F>>, share: usize)
    where
        T: Send + 'scope,
        F: Fn(T) + Send + Sync + 'scope,
    {
        let sizes = &self.pool.shared().sizes;
        let mut visited = 0;
        while visited < share {
            let now = self.share(items.len);
            let most = if sizes.limit() < sizes.max() { (8 * visited).max(1) } else { now };
            let piece = items.state.lock().take(cmp::min(most, now));
            if piece.is_empty() {
                return;
            }
            visited += piece.len();
            self.divide(items, now);
            piece.into_iter().rev().for_each(&items.f);
        }
    }

    /// Adds tasks until there is one for each `share`. If the pool accepts none, those that there
    /// are visit all items.
    fn divide<T, F>(&'scope self, items: &Arc<ForEach<T, F>>, share: usize)
    where
        T: Send + 'scope,
        F: Fn(T) + Send + Sync + 'scope,
    {
        while items.state.lock().lacks_tasks(items.len.div_ceil(share)) {
            let accepted = self.route().accept_uncounted(Patience::None, items.line);
            let Ok(accepted) = accepted else { return };
            items.state.lock().tasks += 1;
            let items = Arc::clone(items);
            self.add_closure(accepted, move || self.visit(&items, share));
        }
    }

    fn route(&self) -> Route<'_> {
        self.pool.route()
    }

    fn add_closure<F: FnOnce() + Send + 'scope>(&self, accepted: Accepted<'_>, task: F) {
        let own = TaskRoute::own(self.route(), accepted.line, false);
        if const { is_boxed::<F>() } {
            let task = Box::new(task);
            self.add(accepted, Reporter::Scope, own, move || run_closure(task));
        } else {
            self.add(accepted, Reporter::Scope, own, move || run_closure(task));
        }
    }

    fn add_evaluation<F, R>(
        &'scope self,
        accepted: Accepted<'_>,
        task: F,
    ) -> ScopedJoinHandle<'scope, R>
    where
        F: FnOnce() -> R + Send + 'scope,
        R: Send + 'scope,
    {
        let own = TaskRoute::own(self.route(), accepted.line, false);
        let (promise, handle) = JoinHandle::new(self.route(), own.expiry());
        let id = if const { is_boxed::<F>() } {
            self.add(accepted, Reporter::Handle, own, evaluation(Box::new(task), promise))
        } else {
            self.add(accepted, Reporter::Handle, own, evaluation(task, promise))
        };
        self.scoped(handle, Some(id))
    }

    /// Adds an accepted task to the scope's unstarted tasks.
    fn add<F>(&self, accepted: Accepted<'_>, reporter: Reporter, own: TaskRoute, run: F) -> TaskId
    where
        F: FnOnce() -> Outcome + Send + 'scope,
    {
        accepted.enqueue_unstarted(self.tasks, Self::erase(run).with_route(own), reporter)
    }

    /// Forgets the lifetime of an unfinished task, for [`add`](Self::add) alone.
    fn erase(run: impl FnOnce() -> Outcome + Send + 'scope) -> Job {
        // SAFETY: what `run` borrows lives until the scope ends. The scope waits until this task is
        // no longer unfinished, which is after `run` was called or dropped. See the module's
        // documentation.
        Job::stored(unsafe { Closure::new_borrowing(run) })
    }

    /// Makes a future that is dropped when it has ended, and then delivers its result. Forgets the
    /// lifetime of the unfinished task. If it is dropped instead, the future goes first, as in
    /// [`evaluation`].
    #[cfg(feature = "async")]
    fn erase_future<F, S>(future: F, settle: S) -> ErasedFuture
    where
        F: Future + Send + 'scope,
        S: FnOnce(Result<F::Output, Payload>) -> Outcome + Send + 'scope,
    {
        let mut parts = (Some(future), Some(Contained::new(settle)));
        let future: Pin<Box<dyn Future<Output = Outcome> + Send + 'scope>> = Box::pin(async move {
            // Captures both as one, so they are dropped in this order.
            let (future, settle) = &mut parts;
            // SAFETY: the future lies in the box, and is not moved until it is dropped in place.
            let mut future = unsafe { Pin::new_unchecked(future) };
            let poll = |context: &mut Context<'_>| {
                let future = future.as_mut().as_pin_mut().expect("it has not ended");
                match contain(|| future.poll(context)) {
                    Ok(polled) => polled.map(Ok),
                    Err(payload) => Poll::Ready(Err(payload)),
                }
            };
            let result = poll_fn(poll).await;
            quietly(|| future.set(None));
            let settle = settle.take().expect("it ends once");
            settle.into_inner()(result)
        });
        // SAFETY: only the lifetime changes. What the future borrows lives until the scope ends.
        // The scope waits until this task is no longer unfinished, which is after the future was
        // dropped. See the module's documentation.
        unsafe { mem::transmute::<_, ErasedFuture>(future) }
    }

    fn scoped<R>(
        &'scope self,
        handle: JoinHandle<R>,
        id: Option<TaskId>,
    ) -> ScopedJoinHandle<'scope, R> {
        ScopedJoinHandle { handle, id, pool: self.pool, tasks: self.tasks }
    }
}

/// Runs a closure without a handle.
fn run_closure(closure: impl FnOnce()) -> Outcome {
    Outcome::of(contain(closure))
}

/// Returns what runs a closure and delivers its result.
///
/// If it is dropped instead, the closure goes first: the handle resolves when what that has
/// captured is gone. And the panic of a waker does not meet the panic of a destructor.
fn evaluation<R>(task: impl FnOnce() -> R, promise: Promise<R>) -> impl FnOnce() -> Outcome {
    let parts = (task, Contained::new(promise));
    move || deliver(parts)
}

fn deliver<R>((task, promise): (impl FnOnce() -> R, Contained<Promise<R>>)) -> Outcome {
    let result = contain(task);
    settle(promise.into_inner(), result)
}

/// What the tasks of a [`Scope::for_each`] share.
struct ForEach<T, F> {
    f: F,
    /// How many items there were.
    len: usize,
    line: Line,
    state: Mutex<Items<T>>,
}

struct Items<T> {
    /// Those that no task has taken, the first one last.
    left: Vec<T>,
    /// How many tasks have been added. The shares of the first ones are all items together, so none
    /// is left.
    tasks: usize,
}

impl<T> Items<T> {
    fn lacks_tasks(&self, wanted: usize) -> bool {
        self.tasks < wanted && !self.left.is_empty()
    }

    /// Takes the next ones.
    fn take(&mut self, most: usize) -> Vec<T> {
        let rest = self.left.len().saturating_sub(most);
        self.left.split_off(rest)
    }
}

/// A future of a scope, without its lifetime. All of them have this type, so what polls them is
/// compiled once.
#[cfg(feature = "async")]
type ErasedFuture = Pin<Box<dyn Future<Output = Outcome> + Send>>;

impl fmt::Debug for Scope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope")
            .field("unfinished", &self.tasks.unfinished())
            .finish_non_exhaustive()
    }
}

/// A handle to the result of a scope's task. Returned by [`Scope::evaluate`] and `spawn_await`.
///
/// Like a [`JoinHandle`] it always resolves, can be waited for on any thread, and is a [`Future`].
/// Dropping it detaches the task; if the task panics, or has panicked, the scope resumes the panic.
///
/// ```
/// let pool = elastipool::ThreadPool::default();
/// let text = String::from("a b c");
/// // A result may borrow what the task borrows.
/// let first = || text.split(' ').next();
/// let first = pool.scope(|scope| scope.evaluate(first).await_complete());
/// assert_eq!(first, Some("a"));
/// ```
#[must_use = "dropping a handle detaches its task; use `execute` or `spawn` if the result is of \
    no interest"]
pub struct ScopedJoinHandle<'scope, T> {
    /// Cannot reach the task.
    handle: JoinHandle<T>,
    /// `None` if the task was not accepted.
    id: Option<TaskId>,
    pool: &'scope ThreadPool,
    tasks: &'scope Arc<UnstartedList>,
}

impl<T> ScopedJoinHandle<'_, T> {
    /// Blocks until the task has ended and returns its value.
    ///
    /// # Panics
    /// As for [`JoinHandle::await_complete`].
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let numbers = [1, 2, 3];
    /// let add = || numbers.iter().sum::<i32>();
    /// let sum = pool.scope(|scope| scope.evaluate(add).await_complete());
    /// assert_eq!(sum, 6);
    /// ```
    #[track_caller]
    pub fn await_complete(mut self) -> T {
        JoinHandle::value_of(self.wait(None).expect(NO_LIMIT))
    }

    /// Blocks until the task has ended and returns its result.
    ///
    /// # Errors
    /// If the task panicked, was not accepted, or was dropped: by
    /// [`shutdown_now`](ThreadPool::shutdown_now), by the queue timeout of a view, since its scope
    /// is going to panic, or since nothing could wake the future any more.
    ///
    /// # Panics
    /// If a poll has returned the result, or if the task itself waits, whose end it would wait for.
    /// (A future that waits for itself in a later poll than the first one waits for ever.)
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let text = String::from("not a number");
    /// let parse = || text.parse::<u32>().unwrap();
    /// let parsed = pool.scope(|scope| scope.evaluate(parse).try_await_complete());
    /// assert!(parsed.unwrap_err().is_panic()); // and the scope does not panic
    /// ```
    #[track_caller]
    pub fn try_await_complete(mut self) -> Result<T, JoinError> {
        self.wait(None).expect(NO_LIMIT)
    }

    /// Blocks until the task has ended, for at most `timeout`. As for
    /// [`JoinHandle::await_complete_timeout`], the timeout bounds only the wait for a task that
    /// runs elsewhere. In the task itself it returns the handle at once.
    ///
    /// # Errors
    /// As for [`JoinHandle::await_complete_timeout`].
    ///
    /// # Panics
    /// If a poll has returned the result, and in the task itself if the clock cannot represent the
    /// deadline.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let pool = elastipool::ThreadPool::default();
    /// let (open, gate) = std::sync::mpsc::channel::<()>();
    /// pool.scope(|scope| {
    ///     let handle = scope.evaluate(move || gate.recv().is_ok());
    ///     let handle = handle.await_complete_timeout(Duration::from_millis(1)).unwrap_err();
    ///     open.send(()).unwrap();
    ///     assert!(handle.await_complete());
    /// });
    /// ```
    #[track_caller]
    pub fn await_complete_timeout(
        mut self,
        timeout: Duration,
    ) -> Result<Result<T, JoinError>, Self> {
        // No deadline if the clock cannot represent it.
        self.wait(Instant::now().checked_add(timeout)).ok_or(self)
    }

    /// Returns whether the handle has resolved, to a value or an error. Then waiting does not
    /// block.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::default();
    /// let numbers = [1, 2, 3];
    /// pool.scope(|scope| {
    ///     let sum = scope.evaluate(|| numbers.iter().sum::<i32>());
    ///     while !sum.is_finished() {
    ///         std::thread::yield_now(); // something useful
    ///     }
    ///     assert_eq!(sum.await_complete(), 6); // does not block
    /// });
    /// ```
    pub fn is_finished(&self) -> bool {
        self.handle.is_finished()
    }

    /// Waits as [`JoinHandle::wait`]. First runs the task if it is unstarted, and the caller is a
    /// worker or runs a task of another scope.
    #[track_caller]
    fn wait(&mut self, deadline: Option<Instant>) -> Option<Result<T, JoinError>> {
        if let Some(id) = self.id {
            if self.tasks.is_own(id) {
                return wait_for_itself(deadline);
            }
            if !has_passed(deadline) {
                let at_once = deadline.is_some() || self.handle.may_expire();
                run_awaited_scoped_task(self.pool.route(), self.tasks, id, at_once);
            }
        }
        let result = self.handle.wait(deadline);
        if let (Some(Err(error)), Some(id)) = (&result, self.id) {
            if error.is_expired() {
                self.pool.route().drop_expired(self.tasks, id);
            }
        }
        result
    }
}

impl<T> Drop for ScopedJoinHandle<'_, T> {
    fn drop(&mut self) {
        if let Some(payload) = self.handle.close() {
            report(self.tasks, self.pool.shared(), payload);
        }
    }
}

/// A result is never pinned.
impl<T> Unpin for ScopedJoinHandle<'_, T> {}

/// Resolves when the task has ended. A poll after that panics: [`FusedFuture`] says whether the
/// result was taken.
impl<T> Future for ScopedJoinHandle<'_, T> {
    type Output = Result<T, JoinError>;

    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.handle).poll(context)
    }
}

impl<T> FusedFuture for ScopedJoinHandle<'_, T> {
    fn is_terminated(&self) -> bool {
        self.handle.is_terminated()
    }
}

impl<T> fmt::Debug for ScopedJoinHandle<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopedJoinHandle").field("is_finished", &self.is_finished()).finish()
    }
}

#[cfg(all(test, not(elastipool_loom)))]
mod tests {
    use std::sync::{Arc, Barrier};
    use std::thread;
    use std::time::Duration;

    use super::{KEPT_LISTS, ThreadPool, keep_list, take_list};
    #[cfg(feature = "async")]
    use super::{Poll, contain, poll_fn, resume_unwind};
    use crate::task::{Claim, DEFAULT_VIEW, Job, Reporter};

    #[test]
    fn a_list_is_used_again_and_freed_in_the_end() {
        // A thread of its own: its lists are dropped when it ends.
        let weak = thread::spawn(|| {
            let pool = ThreadPool::new(1, 1, Duration::ZERO);
            let queue = (pool.shared().id(), DEFAULT_VIEW);
            let lists = [(); KEPT_LISTS + 1].map(|()| take_list(queue));
            let weak = lists.each_ref().map(|list| {
                let entry = list.add(Job::closure(|| ()), Reporter::Scope).0;
                let claim = list.claim_newest(|| true, |_| entry);
                assert!(matches!(claim, Claim::Task(..)));
                Arc::downgrade(list)
            });
            lists.into_iter().for_each(|list| keep_list(list, queue));
            let kept = weak.iter().filter(|list| list.strong_count() > 0).count();
            assert_eq!(kept, KEPT_LISTS);
            let again = take_list(queue);
            assert!(weak.iter().any(|list| list.as_ptr() == Arc::as_ptr(&again)));
            drop(again);
            weak
        })
        .join()
        .expect("no assertion has failed");
        assert!(weak.iter().all(|list| list.strong_count() == 0));
    }

    #[test]
    fn a_list_with_entries_is_kept() {
        let pool = ThreadPool::new(1, 1, Duration::ZERO);
        let queue = (pool.shared().id(), DEFAULT_VIEW);
        let lists = [(); KEPT_LISTS + 1].map(|()| take_list(queue));
        let entries = lists.each_ref().map(|list| {
            let (entry, id) = list.add(Job::closure(|| ()), Reporter::Scope);
            let claimed = list.claim(id, |_| None);
            claimed.expect("it has not been started").0.run();
            entry
        });
        lists.into_iter().for_each(|list| keep_list(list, queue));
        for _ in entries {
            assert!(take_list(queue).has_surplus());
        }
        assert!(!take_list(queue).has_surplus());
    }

    /// For Miri: what is left of the task of a future, in its waker, holds nothing of the scope's.
    #[cfg(feature = "async")]
    #[test]
    fn the_waker_of_a_scopes_future_outlives_the_scope() {
        let pool = ThreadPool::new(1, 1, Duration::ZERO);
        for panics in [false, true] {
            let (mut wakers, mut text) = (Vec::new(), String::from("borrowed"));
            let unwound = contain(|| {
                pool.scope(|scope| {
                    let (wakers, text) = (&mut wakers, &mut text);
                    let handle = scope.spawn_await(poll_fn(move |context| {
                        wakers.push(context.waker().clone());
                        text.push('.');
                        if wakers.len() == 2 {
                            return Poll::Ready(text.len());
                        }
                        if !panics {
                            context.waker().wake_by_ref();
                        }
                        Poll::Pending
                    }));
                    if panics {
                        drop(handle);
                        resume_unwind(Box::new("of the body"));
                    }
                    scope.spawn(async { assert_eq!(handle.await.unwrap(), 10) });
                });
            });
            assert_eq!(unwound.is_err(), panics);
            drop(text);
            for waker in wakers {
                waker.wake_by_ref();
                waker.wake();
            }
        }
        pool.shutdown_join();
    }

    /// Lets the pool's only worker run a task until the barrier is met.
    fn occupy(pool: &ThreadPool) -> Arc<Barrier> {
        let (gate, begun) = [(); 2].map(|()| Arc::new(Barrier::new(2))).into();
        let (opened, begins) = (Arc::clone(&gate), Arc::clone(&begun));
        pool.execute(move || {
            begins.wait();
            opened.wait();
        });
        begun.wait();
        gate
    }

    /// The only worker is busy, so the thread that opens the scopes runs all tasks. The entries
    /// that it cannot take back stay in the queue until the worker skips them.
    #[test]
    fn scopes_outside_leave_few_entries_beside_a_busy_worker() {
        const SCOPES: usize = 640;
        let pool = ThreadPool::new(1, 1, Duration::from_secs(3600));
        for tasks in [1, 3, 100] {
            let before = pool.stats().completed;
            let gate = occupy(&pool);
            for _ in 0..SCOPES {
                pool.scope(|scope| {
                    (0..tasks).for_each(|_| scope.execute(|| ()));
                    assert_eq!(pool.stats().queued, tasks, "also if they rely on stale entries");
                });
                let queued = pool.shared().queue.len();
                assert_eq!(queued, tasks);
                let stats = pool.stats();
                assert_eq!((stats.queued, stats.active, stats.pending), (0, 1, 0));
            }
            gate.wait();
            pool.join();
            let stats = pool.stats();
            assert_eq!((stats.queued, stats.active, stats.pending), (0, 0, 0));
            assert_eq!(stats.completed - before, SCOPES * tasks + 1);
        }
        pool.shutdown_join();
    }

    /// The only worker is busy, so the thread that opens the outermost scope runs all tasks.
    #[test]
    fn nested_scopes_outside_leave_an_entry_for_each_task_that_was_queued_at_a_time() {
        let pool = ThreadPool::new(1, 1, Duration::from_secs(3600));
        let gate = occupy(&pool);
        for _ in 0..100 {
            pool.scope(|scope| {
                scope.execute(|| {
                    for _ in 0..3 {
                        pool.scope(|inner| {
                            inner.execute(|| ());
                            inner.execute(|| scope.execute(|| ()));
                        });
                    }
                });
            });
            assert_eq!(pool.shared().queue.len(), 5, "three of `scope`, and two of `inner`");
        }
        assert_eq!(pool.shared().in_flight.count(), 1, "the worker's task");
        gate.wait();
        pool.shutdown_join();
    }
}
