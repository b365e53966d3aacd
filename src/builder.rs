//! The configuration of a pool, checked before there is one.

use std::time::Duration;

use crate::counts::MAX_WORKERS;
use crate::error::BuildError;
use crate::hooks::Hooks;
use crate::pool::ThreadPool;
use crate::shared::Config;
use crate::sync::Tick;

const DEFAULT_KEEP_ALIVE: Duration = Duration::from_secs(60);

/// Far beyond what anybody means, and far below what a clock cannot add.
const MAX_KEEP_ALIVE: Duration = Duration::from_secs(u32::MAX as u64);

/// Sets up a [`ThreadPool`].
///
/// | | default |
/// |---|---|
/// | [`name`](Self::name) | `elastipool-1`, `elastipool-2`, ... |
/// | [`core_size`](Self::core_size) | the number of CPUs, but not more than `max_size` |
/// | [`max_size`](Self::max_size) | twice `core_size`, and at least 1 |
/// | [`keep_alive`](Self::keep_alive) | 60 seconds |
/// | [`on_worker_start`](Self::on_worker_start), [`on_worker_stop`](Self::on_worker_stop) | none |
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
    hooks: Hooks,
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

    /// The number of workers that is never exceeded.
    pub fn max_size(mut self, max_size: usize) -> Self {
        self.max_size = Some(max_size);
        self
    }

    /// How long a worker stays without work if there are more than `core_size`.
    pub fn keep_alive(mut self, keep_alive: Duration) -> Self {
        self.keep_alive = Some(keep_alive);
        self
    }

    /// Called by each worker, with its index, before its first task. A worker that takes over again in
    /// the very moment of its end calls it again, after its stop hook. A panic in it is contained.
    pub fn on_worker_start<F>(mut self, hook: F) -> Self
    where
        F: Fn(usize) + Send + Sync + 'static,
    {
        self.hooks.on_worker_start = Some(Box::new(hook));
        self
    }

    /// Called by each worker, with its index, after its last task. A panic in it is contained.
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
        for size in [core_size, self.max_size.unwrap_or(0)] {
            if size > MAX_WORKERS {
                return Err(BuildError::SizeTooLarge { size, limit: MAX_WORKERS });
            }
        }
        let max_size =
            self.max_size.unwrap_or_else(|| core_size.saturating_mul(2).clamp(1, MAX_WORKERS));
        if max_size < core_size {
            return Err(BuildError::MaxBelowCore { max_size, core_size });
        }
        let keep_alive = self.keep_alive.unwrap_or(DEFAULT_KEEP_ALIVE);
        if keep_alive.is_zero() {
            return Err(BuildError::KeepAliveZero);
        }
        if keep_alive > MAX_KEEP_ALIVE {
            return Err(BuildError::KeepAliveTooLong { keep_alive, limit: MAX_KEEP_ALIVE });
        }
        let name = self.name.unwrap_or_else(next_name);
        if let Some(position) = name.bytes().position(|byte| byte == 0) {
            return Err(BuildError::NameContainsNul { name, position });
        }
        let hooks = self.hooks;
        Ok(ThreadPool::from_config(Config { name, core_size, max_size, keep_alive, hooks }))
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
    static NEXT: Tick = Tick::new(1);
    format!("elastipool-{}", NEXT.increment())
}
