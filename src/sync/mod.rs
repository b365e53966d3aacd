//! The crate's concurrency primitives: those of `std` or, with `--cfg elastipool_loom`, those of
//! the model checker [loom](https://docs.rs/loom). With `--cfg elastipool_shuttle` beside it, the
//! crate of that name is [shuttle](https://docs.rs/shuttle), which runs random schedules of the
//! same models.
//!
//! Locks do not poison. No user code runs under one (law 6), and a panic in the crate's own code
//! leaves the data under a lock valid. Others use
//!
//! - `AtomicBool`, `AtomicU32`, `AtomicUsize`, `Ordering`, `fence`: atomics.
//! - `latest`: reads an atomic that no other thread has access to any more.
//! - `Mutex`, `MutexGuard`, `RwLock`, `Condvar`: locks without poison.
//! - `UnsafeCell`: a cell of which a model checks that one thread at a time uses it.
//! - `Counter`, `Hint`: a number and a flag that order nothing, so models do not explore them.
//! - `start_thread`, `default_stack_size`, `at_thread_exit`, `ThreadHandle`, `thread_local`,
//!   `yield_now`: threads.
//! - `parker`: blocks the calling thread until a notification or a deadline.
//! - `returning`: the workers at the end of a blocking region that wait to run again.
//! - `spin`: evaluates a condition for a moment, before a thread parks.
//! - `unwind`: contains the panics of user code.
//! - `cpu`: how many CPUs the process may use.
//! - `inherit`: what the threads of a pool have from the thread that builds it.
//! - `probe`: whether another thread sleeps, what for, and its CPU time.
//! - `models`: the stand-ins of the model checker, and what a model says of time.

pub(crate) mod cpu;
pub(crate) mod inherit;
#[cfg(elastipool_loom)]
pub(crate) mod models;
pub(crate) mod parker;
pub(crate) mod probe;
pub(crate) mod returning;
pub(crate) mod spin;
pub(crate) mod unwind;
mod waking;

use std::io;
use std::sync::atomic as std_atomic;
use std::time::Instant;

#[cfg(not(elastipool_loom))]
use std::{sync as primitives, thread};
#[cfg(not(elastipool_loom))]
pub(crate) use std::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence},
    thread::{JoinHandle as ThreadHandle, yield_now},
    thread_local,
};

#[cfg(elastipool_loom)]
pub(crate) use models::*;

pub(crate) use primitives::atomic::AtomicU32;
pub(crate) use primitives::{MutexGuard, RwLock};

/// A mutex that does not poison.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(primitives::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Mutex(primitives::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(|poison| poison.into_inner())
    }
}

/// A cell whose users ensure that one thread at a time writes to it, and none reads meanwhile. The
/// one of a model checks that.
#[cfg(any(not(elastipool_loom), elastipool_shuttle))]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(any(not(elastipool_loom), elastipool_shuttle))]
impl<T> UnsafeCell<T> {
    pub(crate) fn new(value: T) -> Self {
        UnsafeCell(std::cell::UnsafeCell::new(value))
    }

    /// Lends a pointer to the value for the call. No other thread may touch the value meanwhile.
    #[inline]
    pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }

    /// Lends a pointer to the value for the call. No thread may write to the value meanwhile.
    #[inline]
    pub(crate) fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }
}

/// Returns the value of an atomic that no other thread has access to any more. A model does not track
/// the reference counts that order this after all other accesses. A read-modify-write returns the
/// latest value there.
macro_rules! latest {
    ($atomic:expr) => {{
        #[cfg(not(elastipool_loom))]
        let latest = *$atomic.get_mut();
        // AcqRel: stands in for the order that the reference counts give.
        #[cfg(elastipool_loom)]
        let latest = $atomic.fetch_add(0, $crate::sync::Ordering::AcqRel);
        latest
    }};
}

pub(crate) use latest;

/// A condition variable with an optional deadline.
#[derive(Debug, Default)]
pub(crate) struct Condvar(primitives::Condvar);

impl Condvar {
    /// Waits for a notification. Returns `false` if the deadline had passed at the call. May wake
    /// spuriously or at the deadline, so callers loop.
    ///
    /// A model has no time and ignores the deadline.
    pub(crate) fn wait<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        deadline: Option<Instant>,
    ) -> (MutexGuard<'a, T>, bool) {
        let deadline = if cfg!(elastipool_loom) { None } else { deadline };
        match deadline {
            None => {
                let guard = self.0.wait(guard);
                (guard.unwrap_or_else(|poison| poison.into_inner()), true)
            }
            Some(deadline) => {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return (guard, false);
                }
                let (guard, _) =
                    self.0.wait_timeout(guard, left).unwrap_or_else(|poison| poison.into_inner());
                (guard, true)
            }
        }
    }

    fn notify_one(&self) {
        self.0.notify_one();
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// A counter that orders nothing, so models do not explore it. Where a protocol reads one, a lock
/// or the program order of one thread orders it, or each value that it may read is right.
#[derive(Debug, Default)]
pub(crate) struct Counter(std_atomic::AtomicUsize);

impl Counter {
    pub(crate) const fn new(value: usize) -> Self {
        Counter(std_atomic::AtomicUsize::new(value))
    }

    /// Adds one and returns the value before.
    pub(crate) fn increment(&self) -> usize {
        // Relaxed, here and below: a count publishes nothing but itself.
        self.0.fetch_add(1, std_atomic::Ordering::Relaxed)
    }

    /// Adds `count` by a load and a store, for a counter that only the calling thread changes.
    #[inline]
    pub(crate) fn add_alone(&self, count: usize) {
        self.0.store(self.get().wrapping_add(count), std_atomic::Ordering::Relaxed);
    }

    /// Replaces the value by a load and a store, for a counter that only the calling thread
    /// changes. Returns the one before.
    pub(crate) fn replace_alone(&self, value: usize) -> usize {
        let before = self.get();
        self.0.store(value, std_atomic::Ordering::Relaxed);
        before
    }

    /// Raises it to `value`, if it is lower.
    pub(crate) fn raise(&self, value: usize) {
        // Mostly it is not, and a load is cheaper than a write.
        if value > self.get() {
            self.0.fetch_max(value, std_atomic::Ordering::Relaxed);
        }
    }

    /// Subtracts `count` and returns the rest.
    pub(crate) fn subtract(&self, count: usize) -> usize {
        self.0.fetch_sub(count, std_atomic::Ordering::Relaxed) - count
    }

    #[inline]
    pub(crate) fn get(&self) -> usize {
        self.0.load(std_atomic::Ordering::Relaxed)
    }
}

/// A flag that affects only speed, or that only makes a thread look at what a lock guards. Models
/// do not explore it.
#[derive(Debug, Default)]
pub(crate) struct Hint(std_atomic::AtomicBool);

impl Hint {
    pub(crate) fn set(&self, value: bool) {
        // Relaxed: it orders nothing.
        self.0.store(value, std_atomic::Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> bool {
        // Relaxed: as in `set`.
        self.0.load(std_atomic::Ordering::Relaxed)
    }
}

/// Returns the size of the stack that the standard library gives to a thread for which none is set.
pub(crate) fn default_stack_size() -> usize {
    let configured =
        std::env::var_os("RUST_MIN_STACK").and_then(|size| size.to_str()?.parse().ok());
    configured.unwrap_or(2 << 20)
}

/// Starts a thread of a pool, or returns the system's refusal. A panic of `body`
/// [aborts](unwind::abort_on_panic) the process.
pub(crate) fn start_thread(
    name: String,
    stack_size: Option<usize>,
    body: Box<dyn FnOnce() + Send>,
) -> io::Result<ThreadHandle<()>> {
    #[cfg(elastipool_loom)]
    if REFUSE_NEXT.replace(false) {
        return Err(io::Error::other("refused by the model"));
    }
    let mut builder = thread::Builder::new().name(name);
    if let Some(stack_size) = stack_size {
        builder = builder.stack_size(stack_size);
    }
    builder.spawn(|| unwind::abort_on_panic(body))
}

/// Keeps `guard` until the thread has run the destructors of its other thread-locals, as far as the
/// platform orders them. The caller holds the returned value until the end of the thread's body.
///
/// If the body ends the process, by `std::process::exit`, that runs these destructors and then
/// other user code (`atexit`) on the same thread. The thread does not exit then, and `guard` is
/// leaked.
#[cfg(not(elastipool_loom))]
pub(crate) fn at_thread_exit<T: 'static>(guard: T) -> impl Drop {
    use std::any::Any;
    use std::cell::{Cell, RefCell};

    thread_local! {
        static GUARD: RefCell<Option<AtExit>> = const { RefCell::new(None) };
        // Has no destructor, so that the guard's can read it.
        static HAS_RETURNED: Cell<bool> = const { Cell::new(false) };
    }

    struct AtExit(Option<Box<dyn Any>>);

    impl Drop for AtExit {
        fn drop(&mut self) {
            if !HAS_RETURNED.get() {
                std::mem::forget(self.0.take());
            }
        }
    }

    GUARD.with(|place| *place.borrow_mut() = Some(AtExit(Some(Box::new(guard)))));
    unwind::OnDrop(|| HAS_RETURNED.set(true))
}
