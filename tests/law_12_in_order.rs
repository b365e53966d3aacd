//! Law 12, In order: tasks submitted by one thread from outside the pool are taken in the order
//! they were submitted.

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use common::{BuildPool, Gate, HOUR, LIMIT, dawdle, new_pool};
use elastipool::{Builder, ThreadPool};

/// The order in which tasks ran.
#[derive(Clone, Default)]
struct Log<T>(Arc<Mutex<Vec<T>>>);

impl<T: Copy + Send + 'static> Log<T> {
    fn new() -> Self {
        Log(Arc::new(Mutex::new(Vec::new())))
    }

    /// Submits a task that enters `item`, in one of the ways there are.
    fn submit(&self, pool: &ThreadPool, item: T) {
        let log = Log(Arc::clone(&self.0));
        let task = move || log.enter(item);
        match fastrand::u8(0..5) {
            0 => drop(pool.evaluate(task)),
            1 => drop(pool.complete(async move { task() })),
            #[cfg(feature = "async")]
            2 => pool.spawn(async move { task() }),
            #[cfg(feature = "async")]
            3 => drop(pool.spawn_await(async move { task() })),
            _ => pool.execute(task),
        }
    }

    fn enter(&self, item: T) {
        self.items().push(item);
    }

    fn items(&self) -> MutexGuard<'_, Vec<T>> {
        self.0.lock().expect("no task panics while it enters an item")
    }

    fn take(&self) -> Vec<T> {
        std::mem::take(&mut self.items())
    }
}

// The defect: A, B, C ran A, C, B. Protects `queue/mod.rs`, and that there is one way into it.
#[test]
fn a_pool_of_one_runs_tasks_in_order() {
    for (core_size, keep_alive) in [(1, HOUR), (0, HOUR), (0, Duration::from_micros(1))] {
        let pool = new_pool(core_size, 1, keep_alive);
        let log = Log::new();
        for _ in 0..300 {
            let count = fastrand::usize(1..12);
            for item in 0..count {
                log.submit(&pool, item);
                if fastrand::u8(0..4) == 0 {
                    // Long enough for the worker to rest, or to expire.
                    dawdle(5000);
                }
            }
            assert!(pool.join_timeout(LIMIT));
            assert_eq!(log.take(), (0..count).collect::<Vec<_>>());
        }
        pool.shutdown_join();
    }
}

#[test]
fn thousands_of_tasks_behind_a_busy_worker_run_in_order() {
    let pool = new_pool(1, 1, HOUR);
    let release = Gate::new();
    let busy = Arc::clone(&release);
    pool.execute(move || busy.pass());
    let log = Log::new();
    for item in 0..5000 {
        log.submit(&pool, item);
    }
    release.open();
    assert!(pool.join_timeout(LIMIT));
    assert_eq!(log.take(), (0..5000).collect::<Vec<_>>());
    pool.shutdown_join();
}

// The way it came about: a submission that starts a thread gave its task to that thread, past the
// queue. Here one worker gets to work, and it is one of the last to be started: it must begin with
// A.
#[test]
fn a_started_worker_begins_with_the_oldest_task() {
    for core_size in [0, 1, 3] {
        for _ in 0..20 {
            let (starting, starts) = (Gate::new(), Arc::new(AtomicUsize::new(0)));
            let hook = {
                let (starting, starts) = (Arc::clone(&starting), Arc::clone(&starts));
                move |_| {
                    if starts.fetch_add(1, Ordering::SeqCst) < 2 {
                        starting.pass();
                    }
                }
            };
            let builder = Builder::new().core_size(core_size).max_size(3);
            let pool = builder.keep_alive(HOUR).on_worker_start(hook).build_pool();
            let log = Log::new();
            for item in ['A', 'B', 'C', 'D', 'E'] {
                log.submit(&pool, item);
                dawdle(3000);
            }
            assert!(pool.join_timeout(LIMIT));
            assert_eq!(log.take(), ['A', 'B', 'C', 'D', 'E']);
            starting.open();
            pool.shutdown_join();
        }
    }
}

// With several workers, each may have taken one task that it has not begun: no task begins before
// more of its predecessors than that.
#[test]
fn several_workers_take_tasks_in_order() {
    for (core_size, max_size, keep_alive) in
        [(4, 4, HOUR), (1, 4, HOUR), (0, 2, Duration::from_micros(1))]
    {
        let pool = new_pool(core_size, max_size, keep_alive);
        for _ in 0..40 {
            let begun = Arc::new(AtomicUsize::new(0));
            let violations = Arc::new(AtomicUsize::new(0));
            let count = fastrand::usize(1..200);
            for item in 0..count {
                let (begun, violations) = (Arc::clone(&begun), Arc::clone(&violations));
                pool.execute(move || {
                    let before = begun.fetch_add(1, Ordering::SeqCst);
                    if before + (max_size - 1) < item {
                        violations.fetch_add(1, Ordering::SeqCst);
                    }
                    dawdle(300);
                });
                dawdle(100);
            }
            assert!(pool.join_timeout(LIMIT));
            assert_eq!(begun.load(Ordering::SeqCst), count);
            assert_eq!(violations.load(Ordering::SeqCst), 0);
        }
        pool.shutdown_join();
    }
}

#[test]
fn each_of_several_producers_finds_its_tasks_in_order() {
    for (core_size, keep_alive) in [(1, HOUR), (0, Duration::from_micros(1))] {
        let pool = new_pool(core_size, 1, keep_alive);
        let log = Log::new();
        thread::scope(|scope| {
            for producer in 0..4 {
                let (pool, log) = (&pool, &log);
                scope.spawn(move || {
                    for item in 0..500 {
                        log.submit(pool, (producer, item));
                        if item % 50 == 0 {
                            dawdle(5000);
                        }
                    }
                });
            }
        });
        assert!(pool.join_timeout(LIMIT));
        let log = log.take();
        for producer in 0..4 {
            let items: Vec<_> =
                log.iter().filter(|entry| entry.0 == producer).map(|entry| entry.1).collect();
            assert_eq!(items, (0..500).collect::<Vec<_>>());
        }
        pool.shutdown_join();
    }
}
