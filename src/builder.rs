//! The configuration of a pool, checked before there is one.

use std::any::Any;
use std::time::Duration;

use crate::error::BuildError;
use crate::pool::ThreadPool;
use crate::runtime::counts::MAX_WORKERS;
use crate::runtime::hooks::Hooks;
use crate::runtime::shared::Config;
use crate::runtime::sizes::{Growth, MAX_KEEP_ALIVE, Sizes, check_keep_alive, check_sizes};
use crate::sync::Counter;

const DEFAULT_KEEP_ALIVE: Duration = Duration::from_secs(60);

/// As many as tokio has threads for blocking work.
const DEFAULT_MAX_BLOCKED: usize = 512;

/// Sets up a [`ThreadPool`].
///
/// | | default |
/// |---|---|
/// | [`name`](Self::name) | `elastipool-1`, `elastipool-2`, ... |
/// | [`core_size`](Self::core_size) | the number of CPUs, but not more than `max_size` |
/// | [`max_size`](Self::max_size) | twice `core_size`, and at least 1 |
/// | [`max_blocked`](Self::max_blocked) | 512 |
/// | [`keep_alive`](Self::keep_alive) | 60 seconds |
/// | [`growth`](Self::growth) | [`Growth::Eager`] |
/// | [`queue_capacity`](Self::queue_capacity) | no limit |
/// | [`max_tasks_per_worker`](Self::max_tasks_per_worker) | no limit |
/// | [`thread_name`](Self::thread_name) | `{name}-{index}` |
/// | [`stack_size`](Self::stack_size) | the standard library's |
/// | [`on_worker_start`](Self::on_worker_start), [`on_worker_stop`](Self::on_worker_stop) | none |
/// | [`panic_handler`](Self::panic_handler) | none: the standard library's panic hook has already reported the panic |
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
#[derive(Debug, Default)]
#[must_use = "a builder does nothing until it builds"]
pub struct Builder {
    name: Option<String>,
    core_size: Option<usize>,
    max_size: Option<usize>,
    keep_alive: Option<Duration>,
    max_blocked: Option<usize>,
    queue_capacity: Option<usize>,
    max_tasks_per_worker: Option<usize>,
    stack_size: Option<usize>,
    growth: Growth,
    hooks: Hooks,
    /// Models have this only where it is the subject: it makes them slow.
    #[cfg(elastipool_loom)]
    pub(crate) spins: bool,
    /// See `spins`.
    #[cfg(elastipool_loom)]
    pub(crate) has_local_queues: bool,
}

impl Builder {
    /// A builder with the defaults.
    pub fn new() -> Self {
        Builder::default()
    }

    /// The pool's name. Its threads are named `{name}-{index}`; some systems show only the first
    /// 15 bytes of that.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Up to this number of workers, each submission starts one; and the pool does not shrink below it.
    /// May be 0: then the pool shrinks to no thread at all.
    pub fn core_size(mut self, core_size: usize) -> Self {
        self.core_size = Some(core_size);
        self
    }

    /// The number of workers that may run at once. More workers than that exist only while some are in
    /// [blocking regions](crate::blocking()), and idle for `keep_alive` after that.
    pub fn max_size(mut self, max_size: usize) -> Self {
        self.max_size = Some(max_size);
        self
    }

    /// How many workers in [blocking regions](crate::blocking()) are replaced at a time. May be 0.
    ///
    /// A worker that blocks beyond that is not replaced until another one returns: it keeps its place among the
    /// `max_size`. If as many as that block, the pool runs no other task until one of them returns. So `max_size +
    /// max_blocked` bounds the number of threads, but for the following.
    ///
    /// A worker that waits for a task of its own pool (by a handle, a scope or a group), or for room in its pool's queue, is
    /// always replaced, and does not count here: what it waits for may need a worker. This does not cost a thread for each
    /// wait, since a worker that waits for a task that has not been started runs it.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let pool = elastipool::ThreadPool::builder().core_size(1).max_size(1).max_blocked(2).build();
    /// for _ in 0..20 {
    ///     pool.execute(|| elastipool::blocking(|| std::thread::sleep(Duration::from_millis(1))));
    /// }
    /// pool.join();
    /// assert!(pool.stats().peak_workers <= 3);
    /// ```
    pub fn max_blocked(mut self, max_blocked: usize) -> Self {
        self.max_blocked = Some(max_blocked);
        self
    }

    /// How long a worker stays without work if there are more than `core_size`.
    pub fn keep_alive(mut self, keep_alive: Duration) -> Self {
        self.keep_alive = Some(keep_alive);
        self
    }

    /// Bounds the queue: at most this number of tasks wait for a worker that has something else to do. Further
    /// submissions wait for capacity, or are handed back as [`Full`](crate::RejectReason::Full) by the `try_` forms.
    ///
    /// A task that a worker is free to take at once, an idle one or one that may be started, is accepted in any case: a
    /// pool takes `queue_capacity + max_size` tasks that do not end, and no more. With a capacity of 0 nothing waits:
    /// work is handed from hand to hand. Futures that are woken do not count and do not wait.
    ///
    /// A task that submits to its own pool may have to wait for room as well; it does so in a [blocking
    /// region](crate::blocking()), so another worker can make capacity. If the system refuses the thread for that, the
    /// task is accepted above the capacity.
    ///
    /// ```
    /// use elastipool::{RejectReason, ThreadPool};
    ///
    /// let pool = ThreadPool::builder().core_size(1).max_size(1).queue_capacity(1).build();
    /// let (open, gate) = std::sync::mpsc::channel::<()>();
    /// pool.execute(move || gate.recv().unwrap()); // for the worker
    /// pool.execute(|| ()); // waits in the queue
    /// let rejected = pool.try_execute(|| ()).unwrap_err();
    /// assert_eq!(rejected.reason(), RejectReason::Full);
    /// open.send(()).unwrap();
    /// pool.execute(|| ()); // waits for room first
    /// pool.join();
    /// ```
    pub fn queue_capacity(mut self, queue_capacity: usize) -> Self {
        self.queue_capacity = Some(queue_capacity);
        self
    }

    /// How many tasks a worker runs before its thread ends, with its stop hook and the destructors of its
    /// thread-locals, and makes way for a fresh one: against what foreign code leaves behind in a thread. Each poll
    /// of a future counts as a task. May not be 0.
    ///
    /// The fresh worker is started first, if there is work for it or the pool would fall below `core_size`, so no task
    /// waits for that. If the system refuses it, the old one goes on for another term.
    pub fn max_tasks_per_worker(mut self, max_tasks_per_worker: usize) -> Self {
        self.max_tasks_per_worker = Some(max_tasks_per_worker);
        self
    }

    /// When a thread is started for a task that no worker is free for: see [`Growth`].
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
    /// assert!(pool.stats().peak_workers < 64);
    /// ```
    pub fn growth(mut self, growth: Growth) -> Self {
        self.growth = growth;
        self
    }

    /// The size of the threads' stacks in bytes. The system may round it up; a size that it cannot provide shows as a
    /// refused thread.
    pub fn stack_size(mut self, stack_size: usize) -> Self {
        self.stack_size = Some(stack_size);
        self
    }

    /// Names the threads: called with the worker's index by whoever starts the thread, possibly more than once. It
    /// must not submit to the pool or wait for its tasks. A NUL in the name, which the system cannot have, is
    /// replaced; a panic is contained, and the thread is named as if this had not been set.
    ///
    /// ```
    /// let pool = elastipool::ThreadPool::builder().thread_name(|index| format!("io #{index}")).build();
    /// let name = pool.evaluate(|| std::thread::current().name().map(str::to_owned));
    /// assert_eq!(name.await_complete().as_deref(), Some("io #0"));
    /// ```
    pub fn thread_name<F>(mut self, thread_name: F) -> Self
    where
        F: Fn(usize) -> String + Send + Sync + 'static,
    {
        self.hooks.thread_name = Some(Box::new(thread_name));
        self
    }

    /// Called with the payload of each panic that nobody else receives: of a task without a handle, or whose handle has
    /// been dropped by the time the task ends, and of a worker hook. Called where the panic happened, while the task
    /// still counts as running. A panic of the handler itself is contained.
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
        self.hooks.panic_handler = Some(Box::new(panic_handler));
        self
    }

    /// Called by each worker, with its index, before its first task. A panic in it is contained.
    ///
    /// A worker in its start hook keeps its place: [`blocking`](crate::blocking()) has no effect in it. It may wait for
    /// the pool's tasks by their handles, but not in every worker: there must be one that runs them.
    pub fn on_worker_start<F>(mut self, hook: F) -> Self
    where
        F: Fn(usize) + Send + Sync + 'static,
    {
        self.hooks.on_worker_start = Some(Box::new(hook));
        self
    }

    /// Called by each worker, with its index, after its last task: it is counted no longer, its place may be filled
    /// already, but the index is still its own. A panic in it is contained.
    pub fn on_worker_stop<F>(mut self, hook: F) -> Self
    where
        F: Fn(usize) + Send + Sync + 'static,
    {
        self.hooks.on_worker_stop = Some(Box::new(hook));
        self
    }

    /// Makes the pool. It starts no thread.
    ///
    /// # Panics
    /// If the configuration makes no sense, with the text of the error that
    /// [`try_build`](Self::try_build) returns.
    #[track_caller]
    pub fn build(self) -> ThreadPool {
        match self.try_build() {
            Ok(pool) => pool,
            Err(error) => panic!("{error}"),
        }
    }

    /// Makes the pool. It starts no thread.
    ///
    /// # Errors
    /// If the configuration makes no sense; the error names the value and the limit.
    ///
    /// ```
    /// let error = elastipool::Builder::new().core_size(4).max_size(2).try_build().unwrap_err();
    /// assert_eq!(error.to_string(), "max_size is 2; it must be at least core_size, which is 4");
    /// ```
    pub fn try_build(self) -> Result<ThreadPool, BuildError> {
        if self.max_size == Some(0) {
            return Err(BuildError::MaxSizeZero);
        }
        // What was not said follows from what was.
        let core_size = self
            .core_size
            .unwrap_or_else(|| num_cpus::get().min(self.max_size.unwrap_or(MAX_WORKERS)));
        let default_max = core_size.saturating_mul(2).clamp(1, MAX_WORKERS);
        let max_size = self.max_size.unwrap_or(default_max);
        check_sizes(core_size, max_size)?;
        let keep_alive = self.keep_alive.unwrap_or(DEFAULT_KEEP_ALIVE);
        check_keep_alive(keep_alive)?;
        let growth = match self.growth {
            Growth::Stalled(Duration::ZERO) => return Err(BuildError::StallZero),
            // Longer than anybody lives is never, and does not overflow a clock.
            Growth::Stalled(delay) => Growth::Stalled(delay.min(MAX_KEEP_ALIVE)),
            Growth::Eager => Growth::Eager,
        };
        if self.max_tasks_per_worker == Some(0) {
            return Err(BuildError::MaxTasksZero);
        }
        let name = self.name.unwrap_or_else(next_name);
        if let Some(position) = name.bytes().position(|byte| byte == 0) {
            return Err(BuildError::NameContainsNul { name, position });
        }
        let config = Config {
            name,
            queue_capacity: self.queue_capacity,
            max_tasks_per_worker: self.max_tasks_per_worker,
            stack_size: self.stack_size,
            growth,
            #[cfg(not(elastipool_loom))]
            spins: true,
            #[cfg(elastipool_loom)]
            spins: self.spins,
            #[cfg(not(elastipool_loom))]
            has_local_queues: self.queue_capacity.is_none(),
            #[cfg(elastipool_loom)]
            has_local_queues: self.has_local_queues,
            max_blocked: self.max_blocked.unwrap_or(DEFAULT_MAX_BLOCKED),
            hooks: self.hooks,
        };
        Ok(ThreadPool::from_config(config, Sizes::new(core_size, max_size, keep_alive)))
    }
}

/// Making a pool.
impl ThreadPool {
    /// A pool with a name of the form `elastipool-1`.
    ///
    /// Below `core_size` workers, each submission starts one; above it, and up to `max_size`, one is
    /// started only if no worker is idle. A worker that was idle for `keep_alive` ends if there are more
    /// than `core_size`.
    ///
    /// # Panics
    /// If the numbers make no sense, with the text of the [`BuildError`] that
    /// [`Builder::try_build`] would return.
    pub fn new(core_size: usize, max_size: usize, keep_alive: Duration) -> Self {
        Builder::new().core_size(core_size).max_size(max_size).keep_alive(keep_alive).build()
    }

    /// A pool whose threads are named `{name}-{index}`. See [`new`](Self::new).
    ///
    /// # Panics
    /// As [`new`](Self::new), and if the name contains a NUL byte.
    pub fn new_named(
        name: impl Into<String>,
        core_size: usize,
        max_size: usize,
        keep_alive: Duration,
    ) -> Self {
        let sizes = Builder::new().core_size(core_size).max_size(max_size);
        sizes.keep_alive(keep_alive).name(name).build()
    }

    /// For everything that can be set.
    pub fn builder() -> Builder {
        Builder::new()
    }
}

/// A pool with as many core workers as there are CPUs, up to twice as many in all, and a keep-alive of
/// 60 seconds.
impl Default for ThreadPool {
    fn default() -> Self {
        Builder::new().build()
    }
}

fn next_name() -> String {
    static NEXT: Counter = Counter::new(1);
    format!("elastipool-{}", NEXT.increment())
}
