//! The program of rusty_pool's README, and rusty_pool's own tests, with elastipool in their
//! imports.
//!
//! Both are from [rusty_pool](https://github.com/robinfriedli/rusty_pool) 1.0.0 by robinfriedli,
//! under the Apache License, Version 2.0 (`LICENSE-APACHE`). So these files are under that license
//! alone, and are not part of the published package. What was changed:
//!
//! - **Imports.** [`RustyPoolNames`] adds the getters whose names differ.
//! - **Times.** A second is 50 milliseconds here, by [`Duration`], and 10 in `stress_test`, 200 in
//!   `test_panic_some`: the tests would take twelve minutes. So a busy machine may need longer than
//!   a pause for threads to start and end, and six tests wait for that
//!   ([`RustyPoolNames::expect_workers`]). One test limits the time of a thread's start. That limit
//!   is longer.
//! - **`stress_test`** is not ignored.
//! - **Hooks** receive the worker's index: `|| ..` became `|_| ..`.
//! - **Texts of panics**: `#[should_panic]` expects those of elastipool. A handle resumes the
//!   task's own panic.
//! - **Idle** are workers that have looked for work and found none, a moment after
//!   `start_core_threads` and `join`. Five tests wait for that ([`RustyPoolNames::settle`]).
//! - **Private fields**: `worker_data` became `stats`. After `shutdown_join` nothing is left to
//!   ask; `law_09_gone` tests that all threads have exited.
//!
//! These tests are left out, with the reason:
//!
//! | test | reason |
//! |---|---|
//! | `worker_count_test`, `test_try_increment_worker_total` | of the private type `WorkerCountData` |
//! | `test_worker_start_callback_panic` | demands that a panic of the start hook ends the worker and loses its task. Here the task runs (laws 6 and 8) |
//! | `test_worker_callbacks_on_task_panic`, `test_worker_stop_callback_panic_during_task_panic` | demand that a task's panic ends its worker. Here the worker continues (law 6) |
#![allow(unused_must_use, reason = "rusty_pool's waits with a timeout return nothing")]
#![allow(
    clippy::needless_return,
    clippy::semicolon_if_nothing_returned,
    unused_variables,
    reason = "the style of the original"
)]

#[path = "../common/mod.rs"]
mod common;
mod own_tests;
mod readme;

use common::wait_until;
use elastipool::ThreadPool;

/// Durations of which a second is 50 milliseconds.
type Duration = Scaled<50>;

/// Makes durations shorter: a second is `SECOND` milliseconds.
struct Scaled<const SECOND: u64>;

impl<const SECOND: u64> Scaled<SECOND> {
    fn from_secs(seconds: u64) -> std::time::Duration {
        std::time::Duration::from_millis(seconds.saturating_mul(SECOND))
    }

    fn from_millis(milliseconds: u64) -> std::time::Duration {
        std::time::Duration::from_millis(milliseconds * SECOND / 1_000)
    }
}

/// The names of rusty_pool's getters.
trait RustyPoolNames {
    fn get_current_worker_count(&self) -> usize;
    fn get_idle_worker_count(&self) -> usize;

    /// Waits until there are `count` workers.
    fn expect_workers(&self, count: usize);

    /// Waits until each worker without a task is idle.
    fn settle(&self);
}

impl RustyPoolNames for ThreadPool {
    fn get_current_worker_count(&self) -> usize {
        self.current_worker_count()
    }

    fn get_idle_worker_count(&self) -> usize {
        self.idle_worker_count()
    }

    fn expect_workers(&self, count: usize) {
        wait_until(&format!("{count} workers"), || self.current_worker_count() == count);
    }

    fn settle(&self) {
        wait_until("all workers are idle", || {
            self.idle_worker_count() == self.current_worker_count()
        });
    }
}
