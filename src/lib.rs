//! A self-sizing thread pool that is also a futures executor, for programs that mix blocking
//! closures and async work.
//!
//! ```
//! use elastipool::ThreadPool;
//!
//! let pool = ThreadPool::default(); // finds its size: as many workers run as keep the CPUs busy
//!
//! pool.execute(|| println!("on a worker"));
//! let answer = pool.evaluate(|| 6 * 7);
//! assert_eq!(answer.await_complete(), 42);
//!
//! # #[cfg(feature = "async")] {
//! // A handle is a future, in any executor. A pending future occupies no worker.
//! let sum = pool.evaluate(|| (1..=100).sum::<u32>());
//! let doubled = pool.spawn_await(async move { sum.await.map(|sum| 2 * sum) });
//! assert_eq!(doubled.await_complete().unwrap(), 10_100);
//! # }
//! pool.shutdown_join(); // all tasks have ended, and all threads have exited
//! ```
//!
//! # Run tasks
//!
//! | you have | you want | call |
//! |---|---|---|
//! | a closure | to run it; its result | [`execute`](ThreadPool::execute); [`evaluate`](ThreadPool::evaluate) |
//! | a future that mostly waits | to run it; its output | [`spawn`](ThreadPool::spawn); [`spawn_await`](ThreadPool::spawn_await) (feature `async`) |
//! | a future that mostly computes | its output, on one worker | [`complete`](ThreadPool::complete) |
//! | tasks that borrow | to continue after all of them have ended | [`scope`](ThreadPool::scope) |
//! | tasks that can fail | to stop at the first error; one wait for all | [`group`](ThreadPool::group) |
//! | many tasks | at most `n` at a time; the result of each | [`group`](ThreadPool::group) with a [`limit`](TaskGroup::limit) |
//! | the handles of tasks | each result as soon as its task ends | [`JoinSet`] |
//! | one function, many inputs | the results, in order or as they end | [`map`](ThreadPool::map), [`try_map`](ThreadPool::try_map) |
//! | one function, many arguments | one call per argument, without an allocation | [`handler`](ThreadPool::handler) |
//!
//! # The laws
//! The crate's promises, [in full](#the-laws-in-full) below. Each has tests of its name, which fail
//! when it is broken.
//!
//! 1. **Prompt**: no task waits behind busy workers while the pool may run more. In a pool without
//!    sizes, woken futures do not wait for closures.
//! 2. **Settled**: every handle resolves, to the value, the panic, "cancelled" or "expired".
//! 3. **Quiet**: a join returns only after a moment at which nothing was queued, running or
//!    pending.
//! 4. **Bounded**: at most `max_size` workers run, not counting those that wait in blocking regions
//!    or for their own pool.
//! 5. **Cold**: surplus workers end, also under a trickle of tasks. An idle pool uses no CPU.
//! 6. **Panic-proof**: a panic in your code kills no worker, poisons no lock and skews no count.
//! 7. **Refusal-proof**: if the system refuses a thread, nothing panics and no task is lost.
//! 8. **Closed means closed**: a task accepted before the close runs, or comes back; a later one is
//!    handed back.
//! 9. **Gone**: after [`shutdown_join`](ThreadPool::shutdown_join) of the last handle, no thread of
//!    the pool is left.
//! 10. **No self-made deadlock**: tasks may wait for tasks, by handles, scopes and groups, even on
//!     a pool of one worker.
//! 11. **One entry**: one worker at a time polls a future, however often it is woken.
//! 12. **In order**: tasks that one thread outside the pool submits start in that order.
//!
//! # Add it, and its features
//!
//! ```sh
//! cargo add elastipool               # from the registry, once it is published
//! cargo add --path ../elastipool     # from a clone
//! ```
//!
//! | feature | default | what it adds |
//! |---|---|---|
//! | `async` | yes | [`spawn`](ThreadPool::spawn), [`spawn_await`](ThreadPool::spawn_await), [`TaskGroup::spawn`], [`TaskGroup::spawn_await`], their `try_` forms and those of the permits, and `futures::task::Spawn` for the pool. (The async waits, such as [`ready`](ThreadPool::ready), do not need it.) Without it, [`complete`](ThreadPool::complete) still drives futures. |
//! | `tracing` | no | [`Builder::tracing`](Builder#method.tracing): the submitter's span follows the task, and what happens to workers and tasks are events. |
//! | `metrics` | no | [`Builder::metrics`](Builder#method.metrics) and [`ThreadPool::publish_metrics`](ThreadPool#method.publish_metrics): gauges, counters and histograms. |
//! | `hyper` | no | `hyper::rt::Executor` for [`ThreadPool`] and [`WeakThreadPool`]: servers and clients of hyper 1 run on the pool. Includes `async`. |
//!
//! # Which call
//! Use a scope for the parts of one computation, such as the iterations of a loop. It blocks the
//! calling thread, its tasks cannot fail except by a panic, and no task outlives it. Use a group
//! for many tasks that make sense only together. Its tasks own what they use. Tasks can be added at
//! any time, also by other tasks of the group. Any thread can wait for the group, and none has to.
//! Both have the pool's calls, such as [`Scope::execute`], [`Scope::evaluate`] and
//! [`Scope::spawn_await`], [`TaskGroup::execute`] and [`TaskGroup::spawn`]. A handler is called by
//! [`Handler::invoke`].
//!
//! Each call has a `try_` form, which hands the task back if the pool does not accept it. [A
//! table](ThreadPool#when-a-task-is-not-accepted) lists what the other forms do then. A [`View`] is
//! a handle whose tasks have a priority, a limit, a reserve or a queue timeout of their own.
//!
//! # Wait
//!
//! | you wait for | call |
//! |---|---|
//! | one task | [`await_complete`](JoinHandle::await_complete), [`try_await_complete`](JoinHandle::try_await_complete), [`await_complete_timeout`](JoinHandle::await_complete_timeout), or `handle.await` |
//! | the tasks of a group | [`wait`](TaskGroup::wait), [`wait_timeout`](TaskGroup::wait_timeout), or `group.await` |
//! | all tasks of the pool | [`join`](ThreadPool::join), [`join_timeout`](ThreadPool::join_timeout), or `pool.quiet().await` |
//! | what runs of a [paused](ThreadPool::pause) pool or view | [`join_running`](ThreadPool::join_running), [`join_running_timeout`](ThreadPool::join_running_timeout), or `pool.running_ended().await` |
//! | capacity of a bounded queue, or a slot of a group | the call that submits, or `pool.ready().await`, `group.ready().await` |
//!
//! Tasks may wait for each other, on a pool of any size. A worker that waits for a task of its
//! pool, through a handle, a scope or a group, first runs that task on its own stack if no worker
//! has started it. It runs no other task there. So recursion costs stack, and no threads. If the
//! awaited task already runs, the wait is a [blocking region](blocking()), as is every call of
//! [`blocking()`] in a task. A worker in a region does not count against `max_size`. If work is
//! queued, another worker runs in its place until it comes back; that worker is then kept idle, as
//! a spare, for `keep_alive`. [`Builder::max_blocked`] bounds how many workers are replaced at a
//! time. [A guide](guide::blocking) says which waits need `blocking`, and what an awaited task
//! shares with its waiter.
//!
//! # Stop
//! [`shutdown_join`](ThreadPool::shutdown_join) waits until all accepted tasks have run. If the
//! pool has no other handle, or is [closed](ThreadPool::close), it also waits until all threads
//! have exited. In async code [`close`](ThreadPool::close) the pool, then await
//! [`terminated`](ThreadPool::terminated). [`shutdown_now`](ThreadPool::shutdown_now) returns the
//! queued tasks and cancels pending futures. Dropping the last handle closes the pool and does not
//! block. The process ends with `main`, and loses the tasks that are queued then: wait first. [A
//! guide](guide::shutdown) shows a shutdown with a deadline.
//!
//! # Tune it
//! [`Builder`] has all settings. [`set_sizes`](ThreadPool::set_sizes) and
//! [`set_keep_alive`](ThreadPool::set_keep_alive) change the pool while it works,
//! [`pause`](ThreadPool::pause) holds queued tasks back, and [`stats`](ThreadPool::stats) says what
//! it does.
//!
//! Guides help with the decisions: [sizing](guide::sizing), [blocking](guide::blocking),
//! [futures](guide::futures), [views](guide::views), [one pool or several](one_pool_or_several),
//! [shutdown](guide::shutdown), [errors](guide::errors), [performance](guide::performance), and
//! [moving from another pool](migration). Whole programs for common jobs are among the
//! [recipes](guide::recipes).
//!
//! # The laws in full
//! Each law has a test file of its name in `tests/` that fails when the law is broken. A model
//! checker checks the protocol behind them.
//!
//! 1. **Prompt.** An accepted task starts as soon as a worker is free. While fewer than `max_size`
//!    workers run, no task stays queued behind busy ones: an idle worker is woken or a
//!    thread is started, at once or, with [`Growth::Stalled`], after its delay, or, with
//!    [`Growth::Measured`], while fewer workers than CPUs are awake, and as far as more have
//!    helped. With [`Growth::Measured`] a ready future never waits for closures while fewer than
//!    `max_size` workers run: a worker beyond the number polls it. (The first poll of a future of a
//!    scope or group, or that a closure of the pool has spawned, may wait. So may a future while,
//!    in a pool that has had a view, that worker's poll sleeps.) The submitter wakes the idle worker, or the worker that was woken last
//!    does, once it has taken its task. If the system gives a woken worker, or the thread that
//!    wakes it, no CPU, the tasks behind its own start late, although other workers are idle. (A
//!    future woken during its own poll waits for the end of that poll; one that the poll of another
//!    future has woken may wait for the end of that poll for a moment; and any future may wait while
//!    the worker beyond the number polls another one, and that poll computes. While a worker is in
//!    its [start hook](Builder::on_worker_start), [`Growth::Stalled`] starts no other, and
//!    [`Growth::Measured`] none beyond the number. A task of a [`View`]
//!    waits while the view's limit, or the reserve of another view, leaves no worker to it. A
//!    [paused](ThreadPool::pause) task waits until it is resumed.)
//! 2. **Settled.** Every handle resolves: to the value, to the panic's payload, to "cancelled" or,
//!    in a view with a queue timeout, to "expired".
//! 3. **Quiet.** [`join`](ThreadPool::join), and [`quiet`](ThreadPool::quiet) in async code,
//!    returns only if, at some moment after the call, no accepted task was queued or running and no
//!    spawned future was pending. What those tasks wrote is visible to the caller.
//! 4. **Bounded.** At most `max_size` workers run at once.
//!    - Only a worker in a [blocking region](blocking()) does not count, and may be replaced. At
//!      most `max_blocked` workers in declared regions (calls of [`blocking()`]) are replaced at a
//!      time. A completion occupies its worker while its future waits for something outside the
//!      pool.
//!    - When a worker comes back from a region, the pool runs one worker too many until the next
//!      worker ends its task. Further workers that come back wait for that. If no worker ends a
//!      task for a while, some of them continue anyway, because the running workers may need what
//!      they hold.
//!    - Fewer than `core_size` workers exist only before the first tasks, after `core_size` was
//!      raised, after the system refused a thread, after closing, and with [`Builder::prefer_idle`]
//!      as long as fewer were enough.
//!    - A view's limit and reserve bound how many workers run tasks of which view in the same way,
//!      with the same exceptions.
//! 5. **Cold.** Idle workers are woken in a fixed order, the lowest [index](worker_index()) first.
//!    So surplus workers stay idle and end within `keep_alive`, even under a trickle of tasks. An
//!    idle pool uses no CPU.
//! 6. **Panic-proof.** A panic in a task, a future's poll, a hook or a destructor kills no worker,
//!    poisons no lock and skews no count. (The language itself aborts the process in two cases: a
//!    destructor panics while its thread unwinds, or the destructor of a thread-local panics. A
//!    panic of the pool's own code, which would be a defect, aborts it as well: no thread of a pool
//!    ends silently.)
//! 7. **Refusal-proof.** When the operating system refuses a thread, nothing panics and every count
//!    stays exact. The task runs on an existing worker, or comes back if there is none. While tasks
//!    are queued that need the thread, the pool asks again by itself, after growing pauses. A
//!    thread of the pool does that, the keeper, which sleeps otherwise. It starts before the first
//!    worker: if the system refuses it, there is no worker, and the task comes back.
//! 8. **Closed means closed.** A closed pool accepts no task and hands each one back. Every task
//!    accepted before runs, or is handed back or cancelled by
//!    [`shutdown_now`](ThreadPool::shutdown_now), or expires. The same holds for a closed view. So
//!    closing ends a [pause](ThreadPool::pause).
//! 9. **Gone.** When [`shutdown_join`](ThreadPool::shutdown_join) of the last handle returns, or
//!    [`terminated`](ThreadPool::terminated) is ready, every thread of the pool has exited. Its
//!    stop hook and the destructors of its thread-locals have run.
//! 10. **No self-made deadlock.** A worker that waits for a handle, a scope, a group, a slot in a
//!     group, or capacity in the bounded queue of its own pool does not count as running while it
//!     waits. If there is work it is always replaced, whatever `max_blocked` is. A worker that
//!     waits runs no task on its stack except the one it waits for. Nested waits cost no thread
//!     while enough of the stack is left. This holds for waits by this crate's calls, and for what
//!     a future of [`complete`](ThreadPool::complete) awaits. A closure that waits inside another
//!     crate's `block_on` [says so by `blocking`](crate::guide::blocking), within `max_blocked`, or
//!     is found by a pool that [measures](Growth::Measured). Three kinds of wait could never return
//!     and panic with a message instead: `join` and `shutdown_join`, or their async forms, in one
//!     of the pool's own tasks, a wait for a group in one of its own tasks, and one for a handle in
//!     its own task. Their forms with a timeout return `false` or `None` at once. None of them
//!     panics while its thread unwinds.
//! 11. **One entry.** A future is in the queue at most once, and one worker polls it at a time,
//!     however often and from wherever it is woken. No wake is lost.
//! 12. **In order.** Workers take the tasks of one thread outside the pool in the order they were
//!     submitted. Not promised: tasks of a scope or group beside others, tasks that a task submits,
//!     tasks of different views, an awaited task (it may start earlier, on its waiter's stack),
//!     futures beside closures with [`Growth::Measured`]. (Tasks that workers take at the moment of
//!     a pause, or at which tasks of a view come before them, may change places.)
//!
//! # How it sizes itself
//! The pool has no thread before the first submission. Below `core_size` workers, each submission
//! starts one, or with [`Builder::prefer_idle`] only if no worker is idle. From `core_size` on, a
//! submission wakes an idle worker, the one with the lowest [index](worker_index()). If none is
//! idle and fewer than `max_size` run, it starts one. A
//! pool whose sizes are not set finds the number itself: with [`Growth::Measured`], as many workers
//! run as keep the CPUs busy, however many of their tasks sleep, as far as more of them help. A
//! worker that was idle for `keep_alive` ends if there are more than `core_size`. `core_size` is
//! only a number: no worker is marked as a core worker. All three values can be changed while the
//! pool works.
//!
//! A submission wakes no worker while another one looks for work: one that spins, or was woken and
//! has not taken its task yet. A worker that was woken, and takes its first task, wakes up to two
//! others if more tasks are queued. So of two tasks that are submitted at once the second one
//! starts a wake-up later, on a CPU of its own. A few workers run a thousand tiny tasks, and a
//! thousand long ones soon get every worker that the pool may have. From `core_size` on, a
//! submission starts a thread only while fewer are starting than tasks are queued, and than there
//! are CPUs. To avoid starting threads for short bursts, use [`Growth::Stalled`].
//!
//! # What it costs
//! - **Allocations:** none for a closure of up to three words (24 bytes on a 64-bit machine), and
//!   none for a handler's call with an argument of up to two words. A closure of a scope or group
//!   and a spawned future cost one, and a task with a handle two. A future of a scope costs one
//!   more. A larger closure costs one more, as may a future of more than 2 KiB. The queue itself
//!   allocates a block for each 31 tasks from outside the pool, and one buffer per worker for the
//!   tasks that tasks submit.
//! - **Locks:** a submission takes one only to wake or start a worker, to ask the pool's own thread
//!   for a look or a measurement, or if the queue is bounded and full. Each submission to a
//!   [`View`] takes the lock of the views' queues, and each task of a pool that [tracks its
//!   tasks](Builder::track_tasks) that of its tracker. A group and a scope have a lock of their
//!   own.
//! - **CPU time:** a worker that runs out of work spins for about as long as a wake-up takes before
//!   it parks, if no more workers run than there are CPUs and no other one spins or was just woken.
//!   A parked worker uses none. A thread that waits for a task or for quiet spins as long before it
//!   parks, but a worker whose wait has a timeout does not. On Linux such a spin ends early if a
//!   thread that a pool of the process has woken waits for the same CPU. A submitter that finds a
//!   bounded queue full does not spin: the workers need the CPUs.
//! - **Memory:** an idle worker keeps its stack and the buffers of its two local queues: mostly 2
//!   KiB, or 4 KiB if it has run woken futures. After a burst the pool keeps at most 2 KiB for each
//!   worker that has left, which later workers use again, and at most 2 KiB for each future that is
//!   still pending. Until no future is pending, it also keeps one byte for each future that was
//!   pending at the peak. A handle or waker of a task that has ended keeps the task's memory, at
//!   most 2 KiB, but nothing that the task has captured. So does the queue with a task that was
//!   cancelled, or that a waiting worker has run itself, until a worker comes to its entry. Nothing
//!   bounds how many such entries there are, not even a bounded queue, whose permits they do not
//!   hold: a program that submits and cancels tasks again and again while all workers are busy keeps
//!   one for each, and so does a task that always has some handles and waits for the oldest of them.
//!   (In a group the next tasks use them.) A [`Handler`], a group or a waker keeps the pool's state
//!   after its end, without the memory of its queues: some 10 KiB, and 1.7 KiB for each worker that
//!   it had at the peak. A thread that opens scopes keeps the lists of up to four of them, at most 5
//!   KiB each, and one more for each scope that it had open at a time while entries of their tasks
//!   are queued.
//!
//! # What it is not for
//! - Data parallelism over slices and iterators: use [rayon](https://docs.rs/rayon), which splits
//!   the work.
//! - I/O and timers: futures bring their own reactor, such as [async-io](https://docs.rs/async-io),
//!   which works with any executor. Code that needs tokio's runtime needs tokio's runtime.
//! - Interrupting a running closure: no library can do that safely.
//! - The child of a process that forks without `exec`: the pool's threads do not exist there, so
//!   the child must not use it.
//! - Tasks that wait for each other in ways that the pool cannot see, such as through a channel.
//!   Put [`blocking()`] around such a wait. Without it, a pool whose `max_size` workers all wait
//!   for queued tasks waits forever.
#![deny(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod blocking;
mod crew;
mod error;
mod flight;
mod growth;
mod handed_back;
mod join_handle;
mod keeper;
#[cfg(all(test, elastipool_loom, feature = "async"))]
mod models;
mod observe;
mod priority;
mod queue;
mod report;
mod sched;
mod sizing;
mod stats;
mod submit;
mod sync;
mod task;
mod thread;
mod token;
mod views;
mod wait;
#[cfg(feature = "async")]
mod waker;
mod worker_index;

// The documentation of `ThreadPool` shows its methods in the order of these modules. The empty
// lines keep rustfmt from sorting them.
mod builder;

mod permit;

mod pool;

#[cfg(feature = "async")]
mod futures;

mod scope;

mod group;

mod map;

mod handler;

mod control;

// Without a `cfg`, which the badges of its items would repeat.
mod integrations;

mod view;

mod weak;

// Its examples need tokio, and are tested in `demos`.
#[cfg(feature = "async")]
#[cfg_attr(not(doctest), doc = include_str!("../docs/migration.md"))]
pub mod migration {}

#[doc = include_str!("../docs/one-pool.md")]
pub mod one_pool_or_several {}

pub mod guide;

pub use blocking::blocking;
pub use builder::Builder;
pub use error::{BuildError, JoinError, RejectReason, Rejected};
pub use group::permit::GroupPermit;
pub use group::wait::GroupWait;
pub use group::{GroupError, TaskGroup};
pub use growth::Growth;
pub use handed_back::Task;
pub use handler::Handler;
pub use join_handle::JoinHandle;
pub use join_handle::abort::AbortHandle;
pub use join_handle::set::JoinSet;
pub use map::{Map, MapStream};
pub use permit::Permit;
pub use pool::ThreadPool;
pub use priority::Priority;
pub use report::{Report, RunningThread, TaskInfo, TaskState, Wait};
pub use scope::{Scope, ScopedJoinHandle};
pub use stats::Stats;
pub use token::{CancellationToken, Cancelled};
pub use view::{View, ViewBuilder};
pub use weak::WeakThreadPool;
pub use worker_index::worker_index;

/// The README's examples, as tests.
#[cfg(all(doctest, feature = "async"))]
#[doc = include_str!("../README.md")]
struct Readme;
