//! Law 4, Bounded: at most `max_size` workers are runnable at once, and fewer than `core_size` only
//! before the first tasks and when closing.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use common::{Gate, HOUR, LIMIT, dawdle, submit_party, wait_until};
use elastipool::{Builder, ThreadPool, worker_index};

/// What the workers of one pool see of each other.
#[derive(Default)]
struct Watch {
    running: AtomicUsize,
    most: AtomicUsize,
    runs: AtomicUsize,
    /// By index: whether a task runs on that worker.
    seats: Vec<AtomicBool>,
    /// Of panics, which the pool contains, nobody would hear.
    defects: AtomicUsize,
}

impl Watch {
    fn new(max_size: usize) -> Arc<Self> {
        let seats = (0..max_size).map(|_| AtomicBool::new(false)).collect();
        Arc::new(Watch { seats, ..Watch::default() })
    }

    fn run(&self) {
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(running, Ordering::SeqCst);
        match worker_index().and_then(|index| self.seats.get(index)) {
            Some(seat) => {
                let was_taken = seat.swap(true, Ordering::SeqCst);
                dawdle(300);
                seat.store(false, Ordering::SeqCst);
                self.defects.fetch_add(usize::from(was_taken), Ordering::SeqCst);
            }
            // No worker, or an index that is too large.
            None => drop(self.defects.fetch_add(1, Ordering::SeqCst)),
        }
        self.runs.fetch_add(1, Ordering::SeqCst);
        self.running.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Switched on at the end of its scope, also by a panic, so that nobody waits for it for ever.
struct SwitchedOnAtEnd<'a>(&'a AtomicBool);

impl Drop for SwitchedOnAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Submits a task and, by it, sometimes another one.
fn submit(pool: &ThreadPool, watch: &Arc<Watch>, depth: usize) {
    let (inner, watch) = (pool.clone(), Arc::clone(watch));
    pool.execute(move || {
        if depth > 0 && fastrand::bool() {
            submit(&inner, &watch, depth - 1);
        }
        watch.run();
    });
}

// Protects the limits in `Counts::begin_starting` and `Shared::notify`, and the indexes of `roster.rs`.
#[test]
fn never_more_than_max_size_at_once() {
    for (core_size, max_size, keep_alive) in
        [(0, 1, 1), (0, 3, 1), (1, 2, 5), (2, 4, 50), (3, 3, 1)]
    {
        let pool = ThreadPool::new(core_size, max_size, Duration::from_micros(keep_alive));
        let watch = Watch::new(max_size);
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let sampler = scope.spawn(|| {
                let mut most = 0;
                while !is_over.load(Ordering::Relaxed) {
                    most = most.max(pool.current_worker_count());
                    thread::yield_now();
                }
                most
            });
            let end = SwitchedOnAtEnd(&is_over);
            let producers: Vec<_> = (0..3)
                .map(|_| {
                    scope.spawn(|| {
                        for _ in 0..150 {
                            for _ in 0..fastrand::usize(1..4) {
                                submit(&pool, &watch, 2);
                            }
                            dawdle(5000);
                        }
                    })
                })
                .collect();
            for producer in producers {
                producer.join().unwrap();
            }
            drop(end);
            assert!(sampler.join().unwrap() <= max_size);
        });
        assert!(pool.join_timeout(LIMIT));
        assert!(watch.runs.load(Ordering::SeqCst) >= 450);
        assert_eq!(watch.defects.load(Ordering::SeqCst), 0, "indexes are unique and small");
        assert!(watch.most.load(Ordering::SeqCst) <= max_size);
        assert!(pool.stats().peak_workers <= max_size);
        pool.shutdown_join();
    }
}

// No atomic operation protects the count: only one worker may ever be there.
#[test]
fn a_pool_of_one_is_a_lock() {
    let pool = ThreadPool::new(0, 1, Duration::from_micros(1));
    let count = Arc::new(AtomicUsize::new(0));
    for _ in 0..500 {
        for _ in 0..10 {
            let count = Arc::clone(&count);
            pool.execute(move || {
                let before = count.load(Ordering::Relaxed);
                dawdle(20);
                count.store(before + 1, Ordering::Relaxed);
            });
        }
        dawdle(5000);
    }
    assert!(pool.join_timeout(LIMIT));
    assert_eq!(count.load(Ordering::Relaxed), 5000);
    pool.shutdown_join();
}

// The place of a worker is free only when its stop hook has ended. Protects the order of `stop` and
// `leave` in `worker::run`.
#[test]
fn workers_in_their_hooks_are_counted() {
    let (present, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let start = {
        let (present, most) = (Arc::clone(&present), Arc::clone(&most));
        move |_| {
            most.fetch_max(present.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        }
    };
    let stop = {
        let present = Arc::clone(&present);
        move |_| {
            dawdle(2000);
            present.fetch_sub(1, Ordering::SeqCst);
        }
    };
    let pool = Builder::new()
        .core_size(0)
        .max_size(3)
        .keep_alive(Duration::from_micros(1))
        .on_worker_start(start)
        .on_worker_stop(stop)
        .build();
    for _ in 0..500 {
        for _ in 0..fastrand::usize(1..5) {
            pool.execute(|| dawdle(200));
        }
        dawdle(10_000);
    }
    pool.shutdown_join();
    assert!((1..=3).contains(&most.load(Ordering::SeqCst)), "{most:?}");
    assert_eq!(present.load(Ordering::SeqCst), 0);
}

// The same, held open: a worker in its stop hook is counted no longer, but its index is nobody else's.
#[test]
fn a_worker_in_its_stop_hook_keeps_its_index() {
    let stopping = Gate::new();
    let hook = {
        let stopping = Arc::clone(&stopping);
        move |_| stopping.pass()
    };
    let builder = Builder::new().core_size(0).max_size(1).keep_alive(Duration::from_millis(1));
    let pool = builder.on_worker_stop(hook).build();
    pool.execute(|| ());
    stopping.wait_for(1);
    assert_eq!(pool.current_worker_count(), 0);
    assert_eq!(pool.evaluate(worker_index).await_complete(), Some(1));
    stopping.wait_for(2);
    assert_eq!((pool.stats().threads_started, pool.stats().peak_workers), (2, 1));
    stopping.open();
    pool.shutdown_join();
}

/// The indexes of `count` workers that are busy at the same time, sorted.
fn indexes(pool: &ThreadPool, count: usize) -> Vec<usize> {
    let handles = submit_party(pool, count, || worker_index().unwrap());
    let mut indexes: Vec<_> = handles.into_iter().map(|handle| handle.await_complete()).collect();
    indexes.sort_unstable();
    indexes
}

// Protects `take_index`, which hands out the smallest free index, and `strike_out`, which frees it.
#[test]
fn indexes_are_dense_and_reused() {
    let pool = ThreadPool::new(0, 5, Duration::from_millis(1));
    for round in 0..60 {
        let count = [5, 2, 3, 1][round % 4];
        let before = pool.stats();
        assert_eq!(before.workers, 0);
        let indexes = indexes(&pool, count);
        assert!(indexes.is_sorted_by(|left, right| left < right), "{indexes:?}: not unique");
        // Mostly as many as there are tasks; now and then one is started that finds its task taken.
        let limit = (pool.stats().threads_started - before.threads_started).min(5);
        assert!(indexes.iter().all(|index| *index < limit), "{indexes:?}: not below {limit}");
        wait_until("the pool has shrunk", || pool.current_worker_count() == 0);
    }
    pool.shutdown_join();
}

// A place is looked for and taken under one lock: with luck this notices if it is not.
#[test]
fn starts_at_the_same_time_do_not_exceed_the_limits() {
    for _ in 0..100 {
        let pool = ThreadPool::new(3, 3, HOUR);
        let ready = Gate::new();
        let started: usize = thread::scope(|scope| {
            let starters: Vec<_> = (0..4)
                .map(|number| {
                    let (pool, ready) = (&pool, &ready);
                    scope.spawn(move || {
                        ready.meet(4);
                        pool.execute(|| ());
                        if number < 2 { pool.start_core_threads() } else { 0 }
                    })
                })
                .collect();
            starters.into_iter().map(|starter| starter.join().unwrap()).sum()
        });
        assert!(started <= 3);
        let stats = pool.stats();
        assert_eq!((stats.workers, stats.peak_workers, stats.threads_started), (3, 3, 3));
        pool.shutdown_join();
    }
}

// Two surplus workers may not both take the place of one. Protects the lock in `Shared::may_leave`.
#[test]
fn retiring_workers_leave_core_size() {
    let (is_held, stopping) = (Arc::new(AtomicBool::new(false)), Gate::new());
    let hook = {
        let (is_held, stopping) = (Arc::clone(&is_held), Arc::clone(&stopping));
        move |_| {
            if is_held.load(Ordering::SeqCst) {
                stopping.pass();
            }
        }
    };
    let builder = Builder::new().core_size(2).max_size(5).keep_alive(Duration::from_millis(1));
    let pool = builder.on_worker_stop(hook).build();
    let release = Gate::new();
    for _ in 0..5 {
        let release = Arc::clone(&release);
        pool.execute(move || release.pass());
    }
    release.wait_for(5);
    is_held.store(true, Ordering::SeqCst);
    release.open();
    // Three leave, and are held; then the others have time for it, but must not.
    stopping.wait_for(3);
    thread::sleep(Duration::from_millis(20));
    assert_eq!(stopping.arrived(), 3);
    assert_eq!(pool.current_worker_count(), 2);
    stopping.open();
    pool.shutdown_join();
}

#[test]
fn never_fewer_than_core_size_once_they_are_there() {
    let pool = ThreadPool::new(2, 5, Duration::from_micros(1));
    assert_eq!(pool.start_core_threads(), 2);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let sampler = scope.spawn(|| {
            let mut fewest = usize::MAX;
            while !is_over.load(Ordering::Relaxed) {
                fewest = fewest.min(pool.current_worker_count());
                thread::yield_now();
            }
            fewest
        });
        let end = SwitchedOnAtEnd(&is_over);
        for _ in 0..300 {
            let count = fastrand::usize(1..=5);
            indexes(&pool, count);
            dawdle(10_000);
        }
        drop(end);
        assert!(sampler.join().unwrap() >= 2);
    });
    pool.shutdown_join();
}
