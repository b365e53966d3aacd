//! The one door to concurrency primitives: those of `std`, or those of the model checker
//! [loom](https://docs.rs/loom) in a build with `--cfg elastipool_loom`.
//!
//! Locks here do not poison: no user code ever runs under one (law 6), and a guard that is dropped
//! by a panic of our own leaves data that is as valid as before.

pub(crate) mod parker;
pub(crate) mod spin;
pub(crate) mod unwind;
pub(crate) mod waiters;

use std::io;
use std::sync::atomic as std_atomic;
use std::time::Instant;

#[cfg(not(elastipool_loom))]
use std::cell;
#[cfg(not(elastipool_loom))]
use std::sync as primitives;
#[cfg(not(elastipool_loom))]
pub(crate) use std::{
    sync::atomic::{AtomicUsize, Ordering, fence},
    thread::{JoinHandle as ThreadHandle, yield_now},
    thread_local,
};

#[cfg(elastipool_loom)]
use loom::cell;
#[cfg(elastipool_loom)]
use loom::sync as primitives;
#[cfg(elastipool_loom)]
pub(crate) use loom::{
    sync::atomic::{AtomicUsize, Ordering, fence},
    thread::{JoinHandle as ThreadHandle, yield_now},
    thread_local,
};

pub(crate) use primitives::MutexGuard;

/// A mutex that does not poison.
#[derive(Debug)]
pub(crate) struct Mutex<T>(primitives::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Mutex(primitives::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(|poison| poison.into_inner())
    }
}

/// What only one thread at a time may touch, as those say who use it; a model checks that they are right.
pub(crate) struct UnsafeCell<T>(cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    pub(crate) fn new(value: T) -> Self {
        UnsafeCell(cell::UnsafeCell::new(value))
    }

    /// Lends a pointer to the value for the time of the call, in which nobody else may touch it.
    #[cfg(not(elastipool_loom))]
    #[inline]
    pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }

    /// Lends a pointer to the value for the time of the call, in which nobody may change it.
    #[cfg(not(elastipool_loom))]
    #[inline]
    pub(crate) fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }

    /// As above, checked.
    #[cfg(elastipool_loom)]
    pub(crate) fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        self.0.with(f)
    }

    /// As above, checked.
    #[cfg(elastipool_loom)]
    pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        self.0.with_mut(f)
    }
}

/// The latest value of an atomic that is nobody else's any more.
#[cfg(not(elastipool_loom))]
pub(crate) fn latest(atomic: &mut AtomicUsize) -> usize {
    *atomic.get_mut()
}

/// A model does not see reference counts: for it this is a change, which sees all others.
#[cfg(elastipool_loom)]
pub(crate) fn latest(atomic: &mut AtomicUsize) -> usize {
    atomic.fetch_add(0, Ordering::AcqRel)
}

/// A condition variable with one way to wait: until notified, or until a deadline.
#[derive(Debug)]
pub(crate) struct Condvar(primitives::Condvar);

impl Condvar {
    pub(crate) fn new() -> Self {
        Condvar(primitives::Condvar::new())
    }

    /// Waits for a notification. `None` waits without a limit. Returns `false` if the deadline has
    /// passed; may wake without a cause, so callers loop.
    ///
    /// Time does not pass in a model: there a deadline is never reached.
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

    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// A counter that is part of no protocol: the models do not explore it.
#[derive(Debug, Default)]
pub(crate) struct Counter(std_atomic::AtomicUsize);

impl Counter {
    pub(crate) const fn new(value: usize) -> Self {
        Counter(std_atomic::AtomicUsize::new(value))
    }

    /// Counts, and returns the value before.
    pub(crate) fn increment(&self) -> usize {
        // Relaxed: a count publishes nothing but itself.
        self.0.fetch_add(1, std_atomic::Ordering::Relaxed)
    }

    /// Counts, where only one thread ever does.
    pub(crate) fn add_alone(&self, count: usize) {
        self.0.store(self.get().wrapping_add(count), std_atomic::Ordering::Relaxed);
    }

    /// Undoes one [`increment`](Self::increment).
    pub(crate) fn decrement(&self) {
        self.0.fetch_sub(1, std_atomic::Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> usize {
        self.0.load(std_atomic::Ordering::Relaxed)
    }
}

/// The largest of some numbers. Part of no protocol: the models do not explore it.
#[derive(Debug, Default)]
pub(crate) struct Peak(std_atomic::AtomicUsize);

impl Peak {
    pub(crate) fn raise(&self, value: usize) {
        // Looked at first: most of the time it is larger already, and need not be written.
        if value > self.get() {
            self.0.fetch_max(value, std_atomic::Ordering::Relaxed);
        }
    }

    pub(crate) fn get(&self) -> usize {
        self.0.load(std_atomic::Ordering::Relaxed)
    }
}

/// A flag that decides nothing: who sees it looks properly then. The models do not explore it.
#[derive(Debug, Default)]
pub(crate) struct Hint(std_atomic::AtomicBool);

impl Hint {
    pub(crate) fn set(&self, value: bool) {
        // Relaxed: whoever sees it takes the lock that goes with it.
        self.0.store(value, std_atomic::Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> bool {
        self.0.load(std_atomic::Ordering::Relaxed)
    }
}

/// Starts a thread, if the system lets us.
#[cfg(not(elastipool_loom))]
pub(crate) fn start_thread(
    name: String,
    stack_size: Option<usize>,
    body: impl FnOnce() + Send + 'static,
) -> io::Result<ThreadHandle<()>> {
    let builder = std::thread::Builder::new().name(name);
    match stack_size {
        Some(stack_size) => builder.stack_size(stack_size),
        None => builder,
    }
    .spawn(body)
}

/// Starts a thread, unless the model has it refused.
#[cfg(elastipool_loom)]
pub(crate) fn start_thread(
    name: String,
    _stack_size: Option<usize>,
    body: impl FnOnce() + Send + 'static,
) -> io::Result<ThreadHandle<()>> {
    if REFUSE_NEXT.replace(false) {
        return Err(io::Error::other("refused by the model"));
    }
    loom::thread::Builder::new().name(name).spawn(body)
}

#[cfg(elastipool_loom)]
std::thread_local! {
    /// Whether the next start is refused. All threads of a model are one thread of the system.
    pub(crate) static REFUSE_NEXT: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Keeps `guard` until the thread has run all other destructors of its thread-locals, as far as the
/// platform lets one say so. The caller keeps what is returned until the end of the thread's body.
#[cfg(not(elastipool_loom))]
pub(crate) fn at_thread_exit<T: 'static>(guard: T) -> Option<T> {
    use std::any::Any;
    use std::cell::RefCell;

    thread_local! {
        static GUARD: RefCell<Option<Box<dyn Any>>> = const { RefCell::new(None) };
    }
    GUARD.with(|place| *place.borrow_mut() = Some(Box::new(guard)));
    None
}

/// In a model a thread has no other locals: the guard is dropped at the end of the caller's scope.
#[cfg(elastipool_loom)]
pub(crate) fn at_thread_exit<T: 'static>(guard: T) -> Option<T> {
    Some(guard)
}
