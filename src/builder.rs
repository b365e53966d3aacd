//! The configuration of a pool, checked before the pool exists. Two thirds of the file are
//! documentation.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use crate::crew::{Sizes, check_sizes};
use crate::error::BuildError;
use crate::growth::Growth;
use crate::observe::{Hooks, Observe, Tracker, Watch};
use crate::pool::ThreadPool;
use crate::report::Report;
use crate::sched::{Bounded, Config, EAGER, Growing, Shared};
use crate::sizing::{measured, stalled};
use crate::submit::bounded;
use crate::sync::cpu::{count_cpus, cpus};
use crate::sync::unwind::Contained;
use crate::sync::{Counter, default_stack_size};
use crate::task::Submission;
use crate::wait::enable_wrapping;

const DEFAULT_KEEP_ALIVE: Duration = Duration::from_secs(60);

/// Bounds the workers that are replaced at a time, and the workers of a pool that finds its size:
/// as many as tokio's default for blocking threads.
const DEFAULT_MAX: usize = 512;

/// Configures and builds a [`ThreadPool`]. [Sizing](crate::guide::sizing) says whether to set a
/// size, and which.
///
/// | setting | default |
/// |---|---|
/// | [`name`](Self::name) | `elasti-1`, `elasti-2`, ... |
/// | [`core_size`](Self::core_size) | [the number of CPUs](#the-number-of-cpus), but not more than `max_size` or the `n` of [`Growth::measured(n)`](Growth::measured) |
/// | [`max_size`](Self::max_size) | 512 under [`Growth::Measured`], or `core_size` if that is larger; else twice `core_size`; at least 1 |
/// | [`max_blocked`](Self::max_blocked) | 512 |
/// | [`keep_alive`](Self::keep_alive) | 60 seconds |
/// | [`growth`](Self::growth) | [`Growth::Measured`] if neither size is set, else [`Growth::Eager`] |
/// | [`prefer_idle`](Self::prefer_idle) | `false` |
/// | [`queue_capacity`](Self::queue_capacity) | no limit |
/// | [`max_tasks_per_worker`](Self::max_tasks_per_worker) | no limit |
/// | [`thread_name`](Self::thread_name) | `{name}-{index}` |
/// | [`stack_size`](Self::stack_size) | the standard library's |
/// | [`on_worker_start`](Self::on_worker_start), [`on_worker_stop`](Self::on_worker_stop), [`around_worker`](Self::around_worker) | none |
/// | [`panic_handler`](Self::panic_handler) | none: only the standard library's panic hook reports panics |
/// | [`task_context`](Self::task_context) | none |
/// | [`track_tasks`](Self::track_tasks), [`stall_report`](Self::stall_report) | `false`, none |
///
/// ```
/// use std::time::Duration;
///
/// let pool = elastipool::Builder::new()
///     .name("resolver")
///     .core_size(1)
///     .max_size(64)
///     .keep_alive(Duration::from_millis(500))
///     .on_worker_start(|index| println!("worker {index} starts"))
///     .build();
/// let name = pool.evaluate(|| std::thread::current().name().map(str::to_owned));
/// assert_eq!(name.await_complete().as_deref(), Some("resolver-0"));
/// ```
///
/// Clone a builder to build several pools with the same settings. They call the same hooks. Without
/// a [`name`](Self::name), each pool gets its own.
///
/// ```
/// let builder = elastipool::Builder::new().core_size(1).max_size(4);
/// let reads = builder.clone().name("reads").build();
/// let writes = builder.name("writes").build();
/// assert_eq!((reads.max_size(), writes.max_size()), (4, 4));
/// ```
///
/// # The number of CPUs
/// The default of `core_size` is the number of CPUs that the process may use when the pool is
/// built, as the crate `num_cpus` counts them. On Linux that is the smaller of:
/// - the CPUs that the main thread may run on, or the thread that builds the pool if it may run on
///   more: their affinity (`taskset`, `docker run --cpuset-cpus`). So either of the two may be
///   pinned to one CPU,
/// - the CPU quota of the process's own control group, of version 1 or 2, rounded up
///   (`docker run --cpus 1.5` and a CPU limit of 1500m in Kubernetes make 2). It is read once per
///   process.
///
/// CPU shares and weights, such as CPU requests in Kubernetes, do not count, and neither does the
/// quota of a parent of the group. [`std::thread::available_parallelism`] respects the parents'
/// quotas too, but rounds down: pass its result to `core_size` if you want that. A pool does not
/// notice later changes of the number: call [`ThreadPool::set_sizes`] then.
///
/// On Linux the pool's threads may run on the CPUs that the thread which builds the pool may run on
/// at that time. A thread that submits a task may be pinned: the worker that it starts is not.
#[derive(Clone, Debug, Default)]
#[must_use = "a builder does nothing until it builds"]
pub struct Builder {
    name: Option<String>,
    core_size: Option<usize>,
    max_size: Option<usize>,
    keep_alive: Option<Duration>,
    max_blocked: Option<usize>,
    bounded: Option<Bounded>,
    max_tasks_per_worker: Option<usize>,
    stack_size: Option<usize>,
    growth: Option<Growth>,
    prefers_idle: bool,
    pub(crate) hooks: Hooks,
    look_for_stalls: Option<fn(&Shared)>,
    /// Only models about spinning set this: it makes models slow.
    pub(crate) spins: bool,
    /// See `spins`.
    pub(crate) has_local_queues: bool,
}

impl Builder {
    /// Returns a builder with the defaults.
    ///
    /// ```
    /// let pool = elastipool::Builder::new().max_size(4).build();
    /// assert_eq!(pool.max_size(), 4);
    /// ```
    pub fn new() -> Self {
        Builder::default()
    }

    /// Sets the pool's name. Its threads are named `{name}-{index}`. Linux shows only 15 bytes of
    /// that: in `top` and debuggers a longer name is cut before the index, so worker 10 of
    /// `elastipool-10` is `elastipool-1-10`. [`Thread::name`](std::thread::Thread::name) and panics
    /// have the whole name. The default is so short that nothing is cut, up to the thousandth
    /// worker of the 999th pool. [`try_build`](Self::try_build) rejects a name with a NUL byte.
    ///
    /// ```
    /// let pool = elastipool::Builder::new().name("resolver").build();
    /// assert_eq!(pool.name(), "resolver");
    /// ```
    #[doc(alias("thread_name_prefix", "name_prefix"))]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the number of workers below which each submission starts one (unless
    /// [`prefer_idle`](Self::prefer_idle) is set and a worker is idle), and below which the pool
    /// does not shrink. May be 0: then an idle pool shrinks to no thread. At most `max_size`. The
    /// default is [the number of CPUs](#the-number-of-cpus), which a container can limit.
    ///
    /// ```
    /// let pool = elastipool::Builder::new().core_size(2).max_size(8).build();
    /// pool.execute(|| ());
    /// pool.execute(|| ());
    /// assert!(pool.current_worker_count() >= 2); // two of them stay
    /// ```
    #[doc(alias("num_threads", "worker_threads"))]
    pub fn core_size(mut self, core_size: usize) -> Self {
        self.core_size = Some(core_size);
        self
    }

    /// Sets the number of workers that may run at once. More workers exist only while some are in
    /// [blocking regions](crate::blocking()), and idle ones for `keep_alive` after that. A future
    /// that is run by [`complete`](ThreadPool::complete) counts also while it waits for something
    /// outside of the pool: at most `max_size` of these run at a time.
    ///
    /// At least 1, at least `core_size`, and at most [`ThreadPool::MAX_SIZE`]: 1,048,575 on a
    /// 64-bit machine. For "as many as needed", set that constant.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let pool = elastipool::Builder::new().core_size(1).max_size(2).build();
    /// for _ in 0..10 {
    ///     pool.execute(|| std::thread::sleep(Duration::from_millis(1)));
    /// }
    /// pool.join();
    /// assert!(pool.stats().peak_workers <= 2);
    /// ```
    #[doc(alias("num_threads", "max_blocking_threads", "pool_size"))]
    pub fn max_size(mut self, max_size: usize) -> Self {
        self.max_size = Some(max_size);
        self
    }

    /// Bounds how many workers in [blocking regions](crate::blocking()) are replaced at a time. Any
    /// number is valid: 0 replaces none, and `usize::MAX` means no bound. A pool never has more
    /// than [`ThreadPool::MAX_SIZE`] workers.
    ///
    /// A worker that blocks beyond this bound is not replaced until another blocked worker comes
    /// back, and counts against `max_size` meanwhile. If `max_size` workers block beyond the bound,
    /// the pool runs no other task until one of them comes back. If they wait for such a task by
    /// means that the pool does not know, they wait for ever. So at most `max_size + max_blocked`
    /// workers exist, with one exception:
    ///
    /// A worker that waits for its own pool (for a handle, a scope, a group, or capacity in the
    /// queue) is always replaced and does not count here, because the task it waits for may need a
    /// worker. Such waits do not cost one thread each: a worker runs the task it waits for, if no
    /// worker has started it. For capacity no more than `max_size` workers
    /// [wait](Self::queue_capacity), and fewer under [`Growth::Measured`].
    ///
    /// There may be a few more threads than workers: a worker in its [stop
    /// hook](Self::on_worker_stop) or in the destructors of its thread-locals no longer counts. And
    /// beside its workers a pool has one thread, the keeper, which does what is due at a time: it
    /// asks for [refused threads](crate#the-laws), starts workers under [`Growth::Stalled`],
    /// measures them under [`Growth::Measured`], ends groups at their
    /// [deadlines](crate::TaskGroup::deadline), and looks for stalls in a pool with a
    /// [`stall_report`](Self::stall_report). A second one, the helper, starts with
    /// the first user code that belongs to no task: a waker of [`ready`](ThreadPool::ready),
    /// [`quiet`](ThreadPool::quiet), [`running_ended`](ThreadPool::running_ended) or
    /// [`terminated`](ThreadPool::terminated), a group's [deadline](crate::TaskGroup::deadline) that
    /// passes, a stall report, or with the feature `tracing` an event of the keeper, such as each
    /// change of the number under [`Growth::Measured`].
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let pool = elastipool::Builder::new().core_size(1).max_size(1).max_blocked(2).build();
    /// for _ in 0..20 {
    ///     let waits = || std::thread::sleep(Duration::from_millis(1));
    ///     pool.execute(move || elastipool::blocking(waits));
    /// }
    /// pool.join();
    /// assert!(pool.stats().peak_workers <= 3);
    /// ```
    pub fn max_blocked(mut self, max_blocked: usize) -> Self {
        self.max_blocked = Some(max_blocked);
        self
    }

    /// Sets how long a worker stays idle before it ends, if there are more than `core_size`. Any
    /// duration is valid: `Duration::MAX` means forever, and zero means that the worker ends as
    /// soon as it finds no task.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let builder = elastipool::Builder::new().core_size(0).max_size(4);
    /// let pool = builder.keep_alive(Duration::MAX).build();
    /// pool.execute(|| ());
    /// pool.join();
    /// // Never 0 again, unless `keep_alive` or `max_size` is changed:
    /// assert_eq!(pool.current_worker_count(), 1);
    /// ```
    #[doc(alias = "thread_keep_alive")]
    pub fn keep_alive(mut self, keep_alive: Duration) -> Self {
        self.keep_alive = Some(keep_alive);
        self
    }

    /// Bounds the queue: at most this number of tasks wait for a busy worker. Further submissions
    /// wait for capacity; the `try_` forms hand the task back as
    /// [`Full`](crate::RejectReason::Full).
    ///
    /// The pool always accepts a task that a worker can take at once, an idle one or one that may
    /// be started. So it accepts `queue_capacity + max_size` tasks that do not end, and no more.
    /// Under [`Growth::Measured`] the number of workers that may run counts instead of `max_size`:
    /// it grows while tasks are queued or rejected, or submitters wait, and the workers sleep. With
    /// a capacity of 0 no task waits in the queue: each goes straight to a worker. Woken futures
    /// neither count nor wait. A task that runs above `max_size`, after a blocking region or after
    /// that number was lowered, takes a place in the queue until it ends.
    ///
    /// A queued task that is cancelled frees its capacity at once, but leaves an entry of a few
    /// bytes in the queue until a worker comes to it. Once there are as many such entries as
    /// `queue_capacity`, the next ones keep the capacity until then. So memory is bounded also
    /// where tasks are cancelled as fast as they are submitted.
    ///
    /// A task that submits to its own pool may have to wait for capacity too. It waits in a
    /// [blocking region](crate::blocking()), so another worker can free capacity. At most
    /// `max_size` workers wait like this at a time: what further ones submit meanwhile, the pool
    /// accepts above its capacity, as it does if the system refuses a thread. So tasks that submit
    /// tasks, such as those of a crawl, need `2 * max_size` threads at most, and the queue holds
    /// what is left to do. Under [`Growth::Measured`] no more workers wait than are wanted awake.
    /// So such tasks cost few threads, and exceed the capacity more often. A hook never waits for
    /// capacity: what it submits is accepted above it.
    ///
    /// ```
    /// use elastipool::{RejectReason, ThreadPool};
    ///
    /// let pool = ThreadPool::builder().core_size(1).max_size(1).queue_capacity(1).build();
    /// let (open, gate) = std::sync::mpsc::channel::<()>();
    /// pool.execute(move || gate.recv().unwrap()); // occupies the worker
    /// pool.execute(|| ()); // waits in the queue
    /// let rejected = pool.try_execute(|| ()).unwrap_err();
    /// assert_eq!(rejected.reason(), RejectReason::Full);
    /// open.send(()).unwrap();
    /// pool.execute(|| ()); // waits for capacity first
    /// pool.join();
    /// ```
    pub fn queue_capacity(mut self, queue_capacity: usize) -> Self {
        self.bounded = Some(bounded(queue_capacity));
        self
    }

    /// Sets a task quota: after this number of tasks a worker is recycled. Its thread ends, with
    /// its stop hook and the destructors of its thread-locals, and a new worker replaces it. This
    /// limits what foreign code leaves behind in a thread. Each poll of a future counts as a task.
    /// May not be 0.
    ///
    /// The old worker starts the new one before it leaves, so no task waits for the change. It
    /// starts none if no work is left for it and `core_size` others remain. If the system refuses
    /// the thread, the old worker continues with a new quota.
    ///
    /// ```
    /// let builder = elastipool::Builder::new().core_size(1).max_size(1);
    /// let pool = builder.max_tasks_per_worker(10).build();
    /// for _ in 0..100 {
    ///     pool.execute(|| ());
    /// }
    /// pool.join();
    /// assert!(pool.stats().threads_started >= 10);
    /// ```
    pub fn max_tasks_per_worker(mut self, max_tasks_per_worker: usize) -> Self {
        self.max_tasks_per_worker = Some(max_tasks_per_worker);
        self
    }

    /// Sets when the pool starts a thread for a task that no worker is free to take: see
    /// [`Growth`].
    ///
    /// ```
    /// use std::time::Duration;
    /// use elastipool::{Growth, ThreadPool};
    ///
    /// let pool = ThreadPool::builder()
    ///     .core_size(0)
    ///     .max_size(64)
    ///     .growth(Growth::Stalled(Duration::from_millis(1)))
    ///     .build();
    /// for _ in 0..1_000 {
    ///     pool.execute(|| ());
    /// }
    /// pool.join();
    /// println!("at most {} workers at a time", pool.stats().peak_workers);
    /// ```
    pub fn growth(mut self, growth: Growth) -> Self {
        self.growth = Some(growth);
        self
    }

    /// Sets whether a submission below `core_size` wakes an idle worker instead of starting
    /// another.
    ///
    /// By default each submission below [`core_size`](Self::core_size) starts a worker, also while
    /// others are idle: the pool reaches `core_size` after that many tasks, and later tasks find
    /// enough workers. With `true`, a submission starts one only if no worker is idle or looks for
    /// a task. So a pool whose tasks come one at a time has few threads, and a burst starts its
    /// threads when it comes. No task waits behind a busy worker for that.
    /// [`start_core_threads`](crate::ThreadPool::start_core_threads) starts all of them as before.
    ///
    /// `docs/performance.md` in the repository has figures of both.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::builder().core_size(8).prefer_idle(true).build();
    /// for i in 0..100 {
    ///     pool.evaluate(move || i).await_complete();
    ///     while pool.idle_worker_count() < pool.current_worker_count() {
    ///         std::thread::yield_now(); // a pause between the tasks
    ///     }
    /// }
    /// assert_eq!(pool.current_worker_count(), 1);
    /// ```
    pub fn prefer_idle(mut self, prefer_idle: bool) -> Self {
        self.prefers_idle = prefer_idle;
        self
    }

    /// Sets the size of the stacks of the workers and the [helper](Self::max_blocked), in bytes.
    /// That of the keeper is at least the default one. The system may round it up. If it cannot
    /// provide a stack of this size, it refuses the thread.
    ///
    /// ```
    /// let pool = elastipool::Builder::new().stack_size(16 << 20).build(); // 16 MiB
    /// let count = pool.evaluate(|| [1_u8; 4 << 20].iter().filter(|&&byte| byte == 1).count());
    /// assert_eq!(count.await_complete(), 4 << 20);
    /// ```
    #[doc(alias = "thread_stack_size")]
    pub fn stack_size(mut self, stack_size: usize) -> Self {
        self.stack_size = Some(stack_size);
        self
    }

    /// Sets a function that names the threads. The thread that starts a worker calls it with the
    /// worker's index, possibly more than once.
    ///
    /// The function must not submit to the pool or wait for its tasks, and should return at once:
    /// the pool's keeper starts workers too, and each start waits for its name. A NUL byte in the
    /// name is replaced, since the system does not allow it. Linux shows only the first 15 bytes of
    /// the name.
    ///
    /// A panic of the function is contained, and goes to the [panic handler](Self::panic_handler).
    /// The thread gets its default name. A thread that is started from inside this function, the
    /// panic handler that it calls, or a subscriber of the feature `tracing` gets its default name
    /// too, of whichever pool it is: the function is not called there.
    ///
    /// ```
    /// let pool = elastipool::Builder::new().thread_name(|index| format!("io #{index}")).build();
    /// let name = pool.evaluate(|| std::thread::current().name().map(str::to_owned));
    /// assert_eq!(name.await_complete().as_deref(), Some("io #0"));
    /// ```
    pub fn thread_name<F>(mut self, thread_name: F) -> Self
    where
        F: Fn(usize) -> String + Send + Sync + 'static,
    {
        let thread_name = Contained::new(thread_name);
        self.hooks.thread_name = Some(Arc::new(move |index| thread_name.get()(index)));
        self
    }

    /// Sets a function that receives the payload of each panic that reaches no handle: the panic of
    /// a task without a handle, of a task whose handle was dropped before the task ended, or of a
    /// worker hook.
    ///
    /// Some of the panics without a handle go elsewhere: [`scope`](ThreadPool::scope) resumes the
    /// first one of its tasks. A [`wait`](crate::TaskGroup::wait) for a group returns one that is
    /// the group's first failure, and [`wait_all`](crate::TaskGroup::wait_all) returns each. The
    /// function receives the others.
    ///
    /// The thread that panicked calls it, while the task still counts as running. The panics of a
    /// group, and one whose [`ScopedJoinHandle`](crate::ScopedJoinHandle) is dropped, come later:
    /// from the thread that waits for the group, or drops the last of it or the handle. A panic of
    /// the function itself is contained.
    ///
    /// ```
    /// use std::sync::mpsc;
    ///
    /// let (sender, payloads) = mpsc::channel();
    /// let pool = elastipool::ThreadPool::builder()
    ///     .panic_handler(move |payload| sender.send(payload).unwrap())
    ///     .build();
    /// pool.execute(|| panic!("lost my keys"));
    /// let payload = payloads.recv().unwrap();
    /// assert_eq!(payload.downcast_ref::<&str>(), Some(&"lost my keys"));
    /// ```
    pub fn panic_handler<F>(mut self, panic_handler: F) -> Self
    where
        F: Fn(Box<dyn Any + Send>) + Send + Sync + 'static,
    {
        let panic_handler = Contained::new(panic_handler);
        self.hooks.panic_handler = Some(Arc::new(move |payload| panic_handler.get()(payload)));
        self
    }

    /// Sets a start hook: each worker calls it with its index before its first task. A panic in it
    /// is contained.
    ///
    /// By then the worker has what it inherits. On Linux that is from the thread that built the
    /// pool, as it was then, and not from the thread that submits the first task: on which CPUs it
    /// may run (affinity), and which signals it blocks. So a process that handles signals on one
    /// thread blocks them before it builds the pool, or in this hook. The pool blocks none by
    /// itself: a child process that a task starts with [`Command`](std::process::Command) inherits
    /// the mask of its worker, and would ignore `SIGTERM`. Elsewhere a worker inherits what the
    /// standard library's threads do, from the thread that starts it.
    ///
    /// A worker in its start hook counts as running: [`blocking`](crate::blocking()) has no effect
    /// there. The hook may wait for handles of the pool's tasks, by the handles' blocking methods,
    /// but not in every worker: one worker must be left to run the tasks. What the hook submits may
    /// exceed the [capacity](Self::queue_capacity).
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::builder()
    ///     .on_worker_start(|index| println!("worker {index} starts"))
    ///     .on_worker_stop(|index| println!("worker {index} stops"))
    ///     .build();
    /// pool.execute(|| println!("a task"));
    /// pool.shutdown_join();
    /// ```
    #[doc(alias("on_thread_start", "start_handler", "after_start"))]
    pub fn on_worker_start<F>(mut self, hook: F) -> Self
    where
        F: Fn(usize) + Send + Sync + 'static,
    {
        let hook = Contained::new(hook);
        self.hooks.on_worker_start = Some(Arc::new(move |index| hook.get()(index)));
        self
    }

    /// Sets a stop hook: each worker calls it with its index after its last task. A panic in it is
    /// contained.
    ///
    /// The worker no longer counts then, and another worker may already have replaced it. The index
    /// is still its own.
    ///
    /// ```
    /// let (sender, stopped) = std::sync::mpsc::channel();
    /// let pool = elastipool::Builder::new()
    ///     .on_worker_stop(move |index| sender.send(index).unwrap())
    ///     .build();
    /// pool.execute(|| ());
    /// pool.shutdown_join();
    /// assert_eq!(stopped.recv(), Ok(0));
    /// ```
    #[doc(alias("on_thread_stop", "exit_handler", "before_stop"))]
    pub fn on_worker_stop<F>(mut self, hook: F) -> Self
    where
        F: Fn(usize) + Send + Sync + 'static,
    {
        let hook = Contained::new(hook);
        self.hooks.on_worker_stop = Some(Arc::new(move |index| hook.get()(index)));
        self
    }

    /// Adds a hook around the life of each worker: it is called on the worker's thread, and calls
    /// the function that it is given, which runs the worker from its start hook to its stop hook.
    /// So what the hook makes before is there for all tasks, even if it borrows, and is dropped
    /// after them on the same thread: the guard of a runtime, a subscriber, a scoped thread-local.
    ///
    /// A builder may have several such hooks. The first is the outermost, whose values are dropped
    /// last.
    ///
    /// A panic of the hook is contained, and goes to the [panic handler](Self::panic_handler). If
    /// the hook panics before it calls the function, or does not call it, the worker lives after
    /// the hook. A second call does nothing. Before the call, the worker is in its [start
    /// hook](Self::on_worker_start), which says what may be done there. After it, the worker has
    /// left the pool, and has no [`worker_index`](crate::worker_index());
    /// [`shutdown_join`](ThreadPool::shutdown_join) waits for the end of the hook.
    ///
    /// In a program with tokio, the workers enter its runtime:
    /// `.around_worker(move |work| { let _entered = handle.enter(); work() })`. [Moving from
    /// tokio](crate::migration) has the whole program.
    ///
    /// ```
    /// use std::cell::Cell;
    ///
    /// thread_local! { static LEVEL: Cell<u32> = const { Cell::new(0) } }
    ///
    /// let pool = elastipool::ThreadPool::builder()
    ///     .around_worker(|work| {
    ///         LEVEL.set(7);
    ///         work(); // all tasks of this worker
    ///         println!("worker ended at level {}", LEVEL.get());
    ///     })
    ///     .build();
    /// assert_eq!(pool.evaluate(|| LEVEL.get()).await_complete(), 7);
    /// pool.shutdown_join();
    /// ```
    #[doc(alias("spawn_handler", "enter", "worker_guard"))]
    pub fn around_worker<F>(mut self, hook: F) -> Self
    where
        F: Fn(&mut dyn FnMut()) + Send + Sync + 'static,
    {
        let hook = Contained::new(hook);
        self.hooks.around_worker = Some(match self.hooks.around_worker.take() {
            Some(outer) => Arc::new(move |work| outer(&mut || hook.get()(work))),
            None => Arc::new(move |work| hook.get()(work)),
        });
        self
    }

    /// Adds a hook that carries the submitter's context to the task: a request number, a locale,
    /// the context of a tracing library.
    ///
    /// Each submission calls `capture` on its thread, once the pool has accepted the task. What
    /// that returns is called on the thread that runs the task: once before a closure, and before
    /// each poll of a spawned future. Its result is dropped after the closure or the poll. So it is
    /// usually a guard that installs the context. A builder may have several such hooks: a task
    /// enters them in the order of these calls and leaves them in reverse.
    ///
    /// Outside the context are: the destructor of a closure that is never run, a future's
    /// destructor, that of a result without a receiver, and the [panic
    /// handler](Self::panic_handler). In a scope, a future that has ended and a result without a
    /// receiver are dropped inside, and a handle may resolve a moment before the context is left. A
    /// panic of the hook is contained: the task runs without this context. The hook must neither
    /// submit tasks to its own pool, which would call it again, nor wait for that pool, nor keep a
    /// handle of it.
    ///
    /// Each task of the pool pays for the hook: about five allocations, and two for each further
    /// poll. Without a hook it pays nothing.
    ///
    /// ```
    /// use std::cell::Cell;
    ///
    /// thread_local! { static REQUEST: Cell<u32> = const { Cell::new(0) } }
    ///
    /// /// Sets the request number, and resets it when dropped.
    /// struct Entered(u32);
    ///
    /// impl Drop for Entered {
    ///     fn drop(&mut self) {
    ///         REQUEST.set(self.0);
    ///     }
    /// }
    ///
    /// let pool = elastipool::Builder::new()
    ///     .task_context(|| {
    ///         let request = REQUEST.get(); // of the submitter
    ///         move || Entered(REQUEST.replace(request))
    ///     })
    ///     .build();
    /// REQUEST.set(42);
    /// assert_eq!(pool.evaluate(|| REQUEST.get()).await_complete(), 42);
    /// ```
    ///
    /// With OpenTelemetry, the hook is
    /// `|| { let context = Context::current(); move || context.clone().attach() }`.
    pub fn task_context<F, E, G>(self, capture: F) -> Self
    where
        F: Fn() -> E + Send + Sync + 'static,
        E: Fn() -> G + Send + Sync + 'static,
        G: 'static,
    {
        self.observe(Arc::new(Contained::new(move |_: Submission<'_>| Some(capture()))))
    }

    pub(crate) fn observe(mut self, observer: Arc<dyn Observe>) -> Self {
        enable_wrapping();
        self.hooks.observers.push(observer);
        self
    }

    /// Sets whether the pool keeps track of its tasks, for [`ThreadPool::report`]: what each does,
    /// since when, and which line submitted it. Default: `false`. `false` also removes the hook of
    /// [`stall_report`](Self::stall_report).
    ///
    /// The line is that of the call of this crate's method. Where another crate calls it, as for
    /// `futures::task::SpawnExt` and for hyper, it is a line of that crate.
    ///
    /// A closure takes a lock that all threads of the pool share four times, and each poll and each
    /// blocking region twice more. That costs about 0.3 microseconds for a closure, and about one
    /// if several threads need the lock at the same time.
    ///
    /// ```
    /// let pool = elastipool::Builder::new().track_tasks(true).build();
    /// assert!(pool.report().is_some());
    /// ```
    pub fn track_tasks(mut self, tracks: bool) -> Self {
        enable_wrapping();
        self.hooks.watch = self.hooks.watch.filter(|_| tracks);
        self.hooks.tracker = tracks.then_some(Tracker::observer);
        self
    }

    /// Sets a hook that gets a [`Report`] when tasks stall, and makes the pool [track its
    /// tasks](Self::track_tasks).
    ///
    /// A stall is either of these: a closure or a single poll has run for `after`, or tasks are
    /// queued and none was started for `after`. A task that waits for a slot of its group is queued
    /// here, although [`Stats`](crate::Stats) counts it as pending. Each stall is reported once, at
    /// most a quarter of `after` late (and a millisecond). Choose a time above that of the longest
    /// healthy task: the pool cannot tell a deadlock from a long computation.
    ///
    /// The pool's keeper, a thread named `{name}-keeper`, looks for stalls. It starts with the
    /// first worker, sleeps while the pool has no task, and exits with the last worker. The hook is
    /// called on another thread, named `{name}-helper`. There is one helper, which runs one piece
    /// of user code after the other. If the hook takes long, tasks and starts of workers go on, but
    /// [wakers](ThreadPool::ready) and deadlines of groups wait for it. Likewise a waker or a
    /// destructor that never returns holds up all later reports. A panic of the hook is contained.
    /// The hook must not keep a handle of the pool, which would never close then.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use std::time::Duration;
    ///
    /// let (sender, reports) = mpsc::channel();
    /// let pool = elastipool::Builder::new()
    ///     .stall_report(Duration::from_millis(50), move |report| {
    ///         sender.send(report.to_string()).unwrap();
    ///     })
    ///     .build();
    ///
    /// // Two tasks that wait for each other.
    /// let (to_first, first) = mpsc::channel::<()>();
    /// let (to_second, second) = mpsc::channel::<()>();
    /// let release = to_first.clone();
    /// pool.execute(move || { first.recv().unwrap(); to_second.send(()).unwrap(); });
    /// pool.execute(move || { second.recv().unwrap(); let _ = to_first.send(()); });
    ///
    /// let report = reports.recv().unwrap(); // names both lines
    /// assert!(report.contains("submitted at"));
    /// release.send(()).unwrap();
    /// pool.shutdown_join();
    /// ```
    pub fn stall_report<F>(mut self, after: Duration, hook: F) -> Self
    where
        F: Fn(&Report) + Send + Sync + 'static,
    {
        let hook = Contained::new(hook);
        let hook = Arc::new(move |report: &Report| hook.get()(report));
        enable_wrapping();
        self.hooks.tracker = Some(Tracker::observer);
        self.hooks.watch = Some(Watch { after, hook });
        self.look_for_stalls = Some(Shared::look_for_stalls);
        self
    }

    /// Builds the pool. Starts no thread.
    ///
    /// # Panics
    /// If the configuration is invalid, with the text of the error that
    /// [`try_build`](Self::try_build) returns.
    ///
    /// ```
    /// let pool = elastipool::Builder::new().core_size(2).build();
    /// assert_eq!(pool.current_worker_count(), 0); // threads start with the first tasks
    /// ```
    #[track_caller]
    pub fn build(self) -> ThreadPool {
        built(self.try_build())
    }

    /// Builds the pool. Starts no thread.
    ///
    /// # Errors
    /// If the configuration is invalid. The error names the value and the limit.
    ///
    /// ```
    /// let error = elastipool::Builder::new().core_size(4).max_size(2).try_build().unwrap_err();
    /// assert_eq!(error.to_string(), "max_size is 2; it must be at least core_size, which is 4");
    /// ```
    pub fn try_build(self) -> Result<ThreadPool, BuildError> {
        if self.max_size == Some(0) {
            return Err(BuildError::MaxSizeZero);
        }
        let has_no_size = self.core_size.or(self.max_size).is_none();
        let unset = if has_no_size { Growth::Measured } else { Growth::Eager };
        let growth = self.growth.unwrap_or(unset);
        let awake = match growth {
            Growth::Measured => Some(count_cpus()),
            Growth::Awake(awake) => Some(awake.max(1)),
            Growth::Eager | Growth::Stalled(_) => None,
        };
        // Unset sizes follow from those that are set.
        let most = awake.into_iter().chain(self.max_size).min().unwrap_or(ThreadPool::MAX_SIZE);
        let core_size = self.core_size.unwrap_or_else(|| count_cpus().min(most));
        let default_max = match awake {
            Some(_) => core_size.max(DEFAULT_MAX),
            None => core_size.saturating_mul(2).max(1),
        };
        let max_size = self.max_size.unwrap_or(default_max.min(ThreadPool::MAX_SIZE));
        check_sizes(core_size, max_size)?;
        let growing = match growth {
            Growth::Eager => EAGER,
            Growth::Stalled(Duration::ZERO) => return Err(BuildError::StallZero),
            Growth::Stalled(delay) => stalled(delay),
            Growth::Measured | Growth::Awake(_) => measured(),
        };
        let keep_alive = self.keep_alive.unwrap_or(DEFAULT_KEEP_ALIVE);
        let sizes = Sizes::new(core_size, max_size, keep_alive);
        let sizes = awake.into_iter().fold(sizes, Sizes::measured);
        self.build_with(sizes, growing)
    }

    /// Builds a pool of these sizes, which have been checked, without the code of other growths.
    fn build_with(self, sizes: Sizes, growing: Growing) -> Result<ThreadPool, BuildError> {
        // Counted now, since that takes a while: otherwise the first submission would.
        cpus();
        if self.max_tasks_per_worker == Some(0) {
            return Err(BuildError::MaxTasksZero);
        }
        if self.hooks.watch.as_ref().is_some_and(|watch| watch.after.is_zero()) {
            return Err(BuildError::StallReportZero);
        }
        let name = self.name.unwrap_or_else(next_name);
        if let Some(position) = name.bytes().position(|byte| byte == 0) {
            return Err(BuildError::NameContainsNul { name, position });
        }
        let config = Config {
            name,
            bounded: self.bounded,
            max_tasks_per_worker: self.max_tasks_per_worker,
            stack_size: self.stack_size.unwrap_or_else(default_stack_size),
            growing,
            look_for_stalls: self.look_for_stalls.unwrap_or(|_| ()),
            prefers_idle: self.prefers_idle,
            spins: !cfg!(elastipool_loom) || self.spins,
            has_local_queues: !cfg!(elastipool_loom) || self.has_local_queues,
            max_blocked: self.max_blocked.unwrap_or(DEFAULT_MAX),
            hooks: self.hooks,
        };
        Ok(ThreadPool::new_with(|handle| Shared::new(config, sizes, handle)))
    }

    /// Builds a pool of these sizes with [`Growth::Eager`], and no other setting but a name.
    #[track_caller]
    fn build_sized(self, core_size: usize, max_size: usize, keep_alive: Duration) -> ThreadPool {
        let sizes = || Sizes::new(core_size, max_size, keep_alive);
        let checked = check_sizes(core_size, max_size);
        built(checked.and_then(|()| self.build_with(sizes(), EAGER)))
    }
}

#[track_caller]
pub(crate) fn built<T>(built: Result<T, BuildError>) -> T {
    match built {
        Ok(built) => built,
        Err(error) => panic!("{error}"),
    }
}

/// # Creating
impl ThreadPool {
    /// Creates a pool with a name of the form `elasti-1`. Starts no thread.
    ///
    /// Below `core_size` workers, each submission starts one. From `core_size` up to `max_size`, a
    /// submission starts one only if no worker is idle. A worker that was idle for `keep_alive`
    /// ends if there are more than `core_size`.
    ///
    /// # Panics
    /// If the numbers are invalid, with the text of the [`BuildError`] that [`Builder::try_build`]
    /// would return.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let pool = elastipool::ThreadPool::new(2, 16, Duration::from_secs(5));
    /// pool.execute(|| println!("on a worker"));
    /// pool.shutdown_join();
    /// ```
    #[track_caller]
    pub fn new(core_size: usize, max_size: usize, keep_alive: Duration) -> Self {
        Builder::new().build_sized(core_size, max_size, keep_alive)
    }

    /// Creates a pool like [`new`](Self::new), whose threads are named `{name}-{index}`.
    ///
    /// # Panics
    /// As [`new`](Self::new), and if the name contains a NUL byte.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let pool = elastipool::ThreadPool::new_named("decoder", 2, 16, Duration::from_secs(5));
    /// let name = pool.evaluate(|| std::thread::current().name().map(str::to_owned));
    /// assert_eq!(name.await_complete().as_deref(), Some("decoder-0"));
    /// ```
    #[track_caller]
    pub fn new_named(
        name: impl Into<String>,
        core_size: usize,
        max_size: usize,
        keep_alive: Duration,
    ) -> Self {
        Builder::new().name(name).build_sized(core_size, max_size, keep_alive)
    }

    /// Creates a pool of a fixed size, named as by [`new`](Self::new): at most `size` workers run,
    /// and once started, they stay until the pool has ended. Below that, each submission starts
    /// one. More threads exist only while workers are [blocked](crate::blocking()), and for 60
    /// seconds after that.
    ///
    /// # Panics
    /// If `size` is 0 or above [`MAX_SIZE`](Self::MAX_SIZE), with the text of the [`BuildError`].
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::fixed(4);
    /// assert_eq!((pool.core_size(), pool.max_size()), (4, 4));
    /// ```
    #[doc(alias("with_threads", "num_threads", "new_fixed"))]
    #[track_caller]
    pub fn fixed(size: usize) -> Self {
        Builder::new().build_sized(size, size, DEFAULT_KEEP_ALIVE)
    }

    /// Returns a [`Builder`] with the defaults.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::builder().name("resolver").max_size(64).build();
    /// assert_eq!((pool.name(), pool.max_size()), ("resolver", 64));
    /// ```
    pub fn builder() -> Builder {
        Builder::new()
    }
}

/// Creates a pool that finds its size ([`Growth::Measured`]): as many workers run as keep the CPUs
/// busy, at most 512. Its `core_size` is the number of CPUs, and its `keep_alive` 60 seconds. In a
/// container or with a CPU affinity, [`Builder`](Builder#the-number-of-cpus) says what that number
/// is.
impl Default for ThreadPool {
    fn default() -> Self {
        Builder::new().build()
    }
}

fn next_name() -> String {
    static NEXT: Counter = Counter::new(1);
    // Linux keeps 15 bytes of a thread's name, which ends with `-` and the worker's index.
    format!("elasti-{}", NEXT.increment())
}
