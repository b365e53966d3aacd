//! What the threads of a round do.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use elastipool::{Task, blocking};
use fastrand::Rng;

use crate::KEEP_ALIVES;
use crate::checks::check_progress;
use crate::nests;
use crate::oracle::{HANDED_BACK, Ticket, in_region};
use crate::submit::{Kept, Round};

impl Round {
    /// What some tasks do.
    pub(crate) fn work_inside(&self, ticket: &Ticket, rng: &mut Rng, depth: u32) {
        for _ in 0..rng.u32(1..4) {
            match rng.u8(0..10) {
                0 if self.regions => in_region(&self.oracle, || blocking(thread::yield_now)),
                1 if self.regions => in_region(&self.oracle, || {
                    // The inner one changes nothing.
                    blocking(|| blocking(|| drop(self.submit(rng, depth))));
                }),
                2 | 3 if self.regions => {
                    if let Some((case, handle)) = self.submit(rng, depth) {
                        self.hear(&case, handle);
                    }
                }
                // What is in there waits.
                4 if self.regions && depth > 0 => self.scope(rng, depth - 1),
                5 if self.regions && depth > 0 => self.group(rng, depth - 1),
                2..6 if depth > 0 => self.nest(rng, depth - 1),
                _ => drop(self.submit(rng, depth)),
            }
            ticket.step();
        }
    }

    /// What one thread outside does to the pool.
    pub(crate) fn produce(&self, rng: &mut Rng) {
        let mut kept: Vec<Kept> = Vec::new();
        for _ in 0..rng.u32(1..60) {
            match rng.u8(0..24) {
                0 => self.scope(rng, 3),
                1 => self.group(rng, 3),
                2 => self.nest(rng, nests::DEPTH),
                _ => {}
            }
            let submitted = self.submit(rng, 3);
            match (rng.u8(0..16), submitted) {
                (0..2, Some((case, handle))) => case.hear(handle.try_await_complete()),
                (2..4, Some(submitted)) => kept.push(submitted),
                (4, Some((case, handle))) => {
                    let timeout = Duration::from_micros(rng.u64(0..200));
                    match handle.await_complete_timeout(timeout) {
                        Ok(result) => case.hear(result),
                        Err(handle) => kept.push((case, handle)),
                    }
                }
                (5, _) => drop(self.pool.join_timeout(Duration::from_micros(rng.u64(0..500)))),
                (6, _) => drop(self.pool.start_core_threads()),
                (7, _) => assert!(format!("{:?}", self.pool).contains("ThreadPool")),
                (8, _) => thread::sleep(Duration::from_micros(rng.u64(0..100))),
                _ => {}
            }
        }
        for (case, handle) in kept {
            case.hear(handle.try_await_complete());
        }
    }

    /// Changes the sizes, to pairs that make sense and to others.
    pub(crate) fn tune(&self, rng: &mut Rng) {
        for _ in 0..rng.u32(1..20) {
            let size = rng.usize(0..8);
            match rng.u8(0..4) {
                0 => drop(self.pool.set_core_size(size)),
                1 | 2 => {
                    self.oracle.largest_max.fetch_max(size, Ordering::SeqCst);
                    drop(self.pool.set_max_size(size));
                }
                _ => self.pool.set_keep_alive(KEEP_ALIVES[rng.usize(0..4)]),
            }
            thread::sleep(Duration::from_micros(rng.u64(0..100)));
        }
    }

    /// Looks at the statistics while everything moves.
    pub(crate) fn observe(&self, rng: &mut Rng) {
        let mut before = self.pool.stats();
        for _ in 0..rng.u32(1..50) {
            let now = self.pool.stats();
            check_progress(&before, &now);
            before = now;
            thread::sleep(Duration::from_micros(rng.u64(0..50)));
        }
    }

    /// Closes the pool, in one of all ways.
    pub(crate) fn end(&self, rng: &mut Rng) {
        thread::sleep(Duration::from_micros(rng.u64(0..300)));
        if rng.bool() {
            self.pool.close();
            return;
        }
        self.oracle.shut_down_now.set();
        for task in self.pool.shutdown_now() {
            dispose(task, rng);
        }
        assert!(self.pool.is_closed());
    }
}

/// Runs or drops a task that was handed back.
fn dispose(task: Task, rng: &mut Rng) {
    HANDED_BACK.set(true);
    if rng.bool() {
        task.run();
    } else {
        drop(task);
    }
    HANDED_BACK.set(false);
}
