//! A self-sizing thread pool that is also a futures executor, for programs that mix blocking closures and
//! async work.
//!
//! ```
//! use std::time::Duration;
//! use elastipool::ThreadPool;
//!
//! // 2 threads for ordinary times, up to 16 when all are busy; the surplus ends after 5 idle seconds.
//! let pool = ThreadPool::new(2, 16, Duration::from_secs(5));
//!
//! // Closures: fire and forget, or with a handle.
//! pool.execute(|| println!("on a worker"));
//! let sum = pool.evaluate(|| (1..=100).sum::<u32>());
//! assert_eq!(sum.await_complete(), 5050);
//!
//! // Futures: polled by the same workers, and occupying none while they wait.
//! # #[cfg(feature = "async")] {
//! let (sender, receiver) = futures::channel::oneshot::channel();
//! let doubled = pool.spawn_await(async move { receiver.await.map(|n: u32| 2 * n) });
//! sender.send(21).unwrap();
//! assert_eq!(doubled.await_complete(), Ok(42));
//! # }
//!
//! // Everything done, every thread gone.
//! pool.shutdown_join();
//! ```
//!
//! # Which call for what
//!
//! | you have | you want | call |
//! |---|---|---|
//! | a closure | it to run | [`execute`](ThreadPool::execute) |
//! | a closure | its result | [`evaluate`](ThreadPool::evaluate) |
//! | closures that borrow from the stack | all of them to have ended before you go on | [`scope`](ThreadPool::scope), then [`Scope::execute`], [`Scope::evaluate`] |
//! | closures or futures that can fail | to stop at the first error, no more than some at a time, one wait for all | [`group`](ThreadPool::group), then [`TaskGroup::execute`], `TaskGroup::spawn` |
//! | one function, many arguments | a call for each, without an allocation | [`handler`](ThreadPool::handler), then [`Handler::invoke`] |
//! | a future that mostly waits | it to run | `spawn` (feature `async`) |
//! | a future that mostly waits | its output | `spawn_await` (feature `async`) |
//! | a future that mostly computes | its output, on one worker from start to end | [`complete`](ThreadPool::complete) |
//!
//! A scope is for parts of one piece of work, as a loop would be: it holds the calling thread, its tasks cannot fail but
//! by a panic, and nothing outlives it. A group is for many pieces of work that make sense together only; its tasks own
//! what they use, can be added at any time, also by each other, and be waited for from anywhere or not at all.
//!
//! Each has a `try_` form that hands the task back if the pool does not accept it. What the others do then is
//! [here](ThreadPool#what-becomes-of-a-task-that-is-not-accepted). Code in a task that waits for something other than
//! the CPU says so by [`blocking()`].
//!
//! # How it sizes itself
//! No thread exists before the first submission. Below `core_size` workers, each submission starts one.
//! Above it, a submission wakes the worker that went idle last; only if none is idle, and there are fewer
//! than `max_size`, one is started. A worker that was idle for `keep_alive` ends if there are more than
//! `core_size`. Core workers are not special: `core_size` is a number. All three can be changed while the pool works.
//!
//! Of a burst of tasks, only the first wakes a worker; this one, when it takes the task, wakes the next if more is
//! queued. Where none is idle up to three threads at a time are on their way, never more than tasks are queued. So a
//! thousand tiny tasks are left to a few workers, while a thousand long ones get all the workers that the pool may have,
//! one shortly after the other. A pool that shall be slower to start threads for what may be over in a moment is built
//! with [`Growth::Stalled`].
//!
//! # Waiting
//! Tasks may wait for each other, on a pool of any size. A worker that waits for a task of its pool, by a handle, a scope or
//! a group, runs that very task on its own stack if it has not been started, so recursion costs stack and no threads. It
//! runs no other task there. If the awaited task runs already, the wait is a [blocking region](blocking()), as is
//! whatever a task puts into [`blocking()`]: the worker does not count against `max_size`, and if there is work another
//! takes its place until it comes back. That one is kept as a spare worker for `keep_alive`.
//! [`Builder::max_blocked`] bounds how many workers are replaced at a time.
//!
//! For the code that waits this means:
//! - An awaited task sees what is on its waiter's thread: a thread-local that is borrowed across the wait is borrowed in the
//!   task, and the stack is as deep as the waits are.
//! - A lock that is held across the wait deadlocks if the awaited task takes it, as it would with any other thread.
//! - An awaited task may start before tasks that were submitted earlier.
//! - Waits with a limit (`await_complete_timeout`, `wait_timeout`) run nothing, so that they end in time.
//! - A thread outside of the pool runs unstarted tasks of the [`scope`](ThreadPool::scope) that it waits for (they borrow
//!   from its stack in any case), and nothing else. [`worker_index`] is `None` in such a task.
//! - [`complete`](ThreadPool::complete) keeps its worker's place while its future waits for something outside of the pool,
//!   so `max_size` limits how many completions run at a time.
//!
//! # The laws
//! What the pool promises. Each has a test of its name in `tests/` that fails when it is broken; the protocol
//! behind them is checked by a model checker.
//!
//! 1. **Prompt.** An accepted task starts as soon as a worker is free. While fewer than `max_size` workers
//!    are runnable, no task stays queued behind busy ones: an idle one is woken or a thread is started, at once or,
//!    with [`Growth::Stalled`], after its delay. (A future that is woken by a poll, its own or another future's, may wait
//!    for the end of that poll.)
//! 2. **Settled.** Every handle resolves: to the value, to the panic's payload, or to "cancelled".
//! 3. **Quiet.** [`join`](ThreadPool::join) returns only if, at some moment after the call, no accepted task
//!    was queued, running, or a spawned future still pending. What those tasks wrote is visible.
//! 4. **Bounded.** At most `max_size` workers run at once. Only a worker in a [blocking region](blocking()) does not count,
//!    and may be replaced; when it comes back the pool is one over until the next worker ends its task. While the pool is
//!    one over, others that come back wait for that; if no worker ends a task for 100 ms, one of them goes on all the same, then
//!    two, then four, since those that run may need what they hold. At most `max_blocked` workers in declared regions are replaced at a
//!    time. A completion keeps its place while its future waits for something outside of the pool. Fewer than `core_size` workers exist only before the first tasks, after `core_size` was raised, and after
//!    closing.
//! 5. **Cold.** Idle workers are woken last-in first-out, so surplus ones go cold and end within
//!    `keep_alive`, even under a trickle of tasks. An idle pool uses no CPU.
//! 6. **Panic-proof.** A panic in a task, a future's poll, a hook or a destructor kills no worker, poisons no
//!    lock, skews no count. (A panic while another unwinds through the same destructor aborts the process, and so does
//!    one in the destructor of a thread-local: that is the language's law.)
//! 7. **Refusal-proof.** When the operating system refuses a thread, nothing panics and no count is wrong. The
//!    task runs on an existing worker, or comes back if there is none. The next submission tries again.
//! 8. **Closed means closed.** A closed pool accepts nothing and hands the task back; everything accepted
//!    before runs, or is handed back or cancelled by [`shutdown_now`](ThreadPool::shutdown_now).
//! 9. **Gone.** When [`shutdown_join`](ThreadPool::shutdown_join) of the last handle returns, every thread of
//!    the pool has exited, with its stop hook and the destructors of its thread-locals.
//! 10. **No self-made deadlock.** A worker that waits for a handle, a scope, a group, a place in a group, or room in the
//!     bounded queue of its own pool does not count as running while it waits, and is always replaced if there is work,
//!     whatever `max_blocked` says. No task runs on the stack of another that waits, but the one it waits for. `join` and
//!     `shutdown_join` from one of the pool's own tasks and a wait for a group from one of its own, which could never return,
//!     panic with a message; their forms with a limit return `false` or `None` at once, and none of them panics while its
//!     thread unwinds.
//! 11. **One entry.** A future is in the queue at most once and polled by one worker at a time, however often
//!     and from wherever it is woken. No wake is lost.
//! 12. **In order.** Tasks that one thread outside of the pool submits are taken from the queue in that order. (A task that
//!     is waited for may start earlier, on its waiter's stack.)
//!
//! # What it costs
//! Beside the queue's own memory (a block for each 31 tasks from outside; for those that tasks submit, a buffer of each
//! worker): a closure of up to three words (24 bytes on a 64-bit machine) and a call of a handler with an argument of up
//! to two cost no allocation. A larger closure, and one of a scope or group, costs one, with a handle two; so does a
//! spawned future of up to 2 KiB. Submitting takes no lock unless there is a worker to wake or to start, or the queue is
//! bounded; a group and a scope have a lock of their own. One worker at a time that runs out of work looks for more for 25
//! microseconds before it parks; from then on it costs its stack and at most 32 KiB, and no CPU time.
//!
//! # What it is not for
//! - Data parallelism over slices and iterators, where [rayon](https://docs.rs/rayon) splits the work.
//! - I/O and timers: futures bring their own reactor, such as [async-io](https://docs.rs/async-io), which
//!   works with any executor. Code that needs tokio's runtime needs tokio's runtime.
//! - Stopping a closure that runs: nothing can, safely.
//! - Tasks that wait for each other by means that the pool does not know, such as a channel: put
//!   [`blocking()`] around the wait, or a pool of `max_size` workers that all wait for queued tasks waits for ever; and so
//!   does the poll of a future that waits like that for another one that it has woken itself (law 1).
//!
//! # Features
//! `async` (default): `spawn`, `spawn_await`, `TaskGroup::spawn` and their `try_` forms. Without it, futures can be driven by
//! [`complete`](ThreadPool::complete).
#![deny(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod builder;
mod error;
mod group;
mod handed_back;
mod handler;
mod join_handle;
#[cfg(all(test, elastipool_loom, feature = "async"))]
mod models;
mod pool;
mod queue;
mod runtime;
mod scope;
mod stats;
mod sync;
mod task;
mod token;
#[cfg(feature = "async")]
mod waker;

pub use builder::Builder;
pub use error::{BuildError, JoinError, RejectReason, Rejected};
pub use group::{GroupError, GroupWait, TaskGroup};
pub use handed_back::Task;
pub use handler::Handler;
pub use join_handle::JoinHandle;
pub use pool::ThreadPool;
pub use runtime::context::worker_index;
pub use runtime::region::blocking;
pub use runtime::sizes::Growth;
pub use scope::{Scope, ScopedJoinHandle};
pub use stats::Stats;
pub use token::{CancellationToken, Cancelled};

/// The README's examples, as tests.
#[cfg(all(doctest, feature = "async"))]
#[doc = include_str!("../README.md")]
struct Readme;
