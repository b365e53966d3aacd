//! Law 4, Bounded: at most `max_size` workers run at once, or one more after one has come back from
//! a blocking region, and fewer than `core_size` only before the first tasks and when closing. (How
//! many blocked workers are replaced: `workers/max_blocked.rs`. `Builder::prefer_idle`, under which
//! fewer may be enough: `law_01_prompt.rs`.)

mod common;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use common::{
    BuildPool, Gate, HOUR, LIMIT, Trigger, block, dawdle, new_pool, submit_interdependent,
    triggered, value, wait_until, waited,
};
use elastipool::{Builder, ThreadPool, blocking, worker_index};

/// What the workers of one pool see of each other.
#[derive(Default)]
struct Observer {
    running: AtomicUsize,
    most: AtomicUsize,
    runs: AtomicUsize,
    /// By index: whether a task runs on that worker.
    seats: Vec<AtomicBool>,
    /// Counted, because the pool would contain a panic.
    defects: AtomicUsize,
}

impl Observer {
    fn new(max_size: usize) -> Arc<Self> {
        let seats = (0..max_size).map(|_| AtomicBool::new(false)).collect();
        Arc::new(Observer { seats, ..Observer::default() })
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

/// Switched on at the end of its scope, also by a panic, so that no task waits for it for ever.
struct SwitchedOnAtEnd<'a>(&'a AtomicBool);

impl Drop for SwitchedOnAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Submits a task and, by it, sometimes another one.
fn submit(pool: &ThreadPool, observer: &Arc<Observer>, depth: usize) {
    let (inner, observer) = (pool.clone(), Arc::clone(observer));
    pool.execute(move || {
        if depth > 0 && fastrand::bool() {
            submit(&inner, &observer, depth - 1);
        }
        observer.run();
    });
}

// Protects the limits in `Counts::begin_starting` and `Shared::notify`, and the indexes of
// `registry.rs`.
#[test]
fn never_more_than_max_size_tasks_run_at_once() {
    for (core_size, max_size, keep_alive) in
        [(0, 1, 1), (0, 3, 1), (1, 2, 5), (2, 4, 50), (3, 3, 1)]
    {
        let pool = new_pool(core_size, max_size, Duration::from_micros(keep_alive));
        let observer = Observer::new(max_size);
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
                                submit(&pool, &observer, 2);
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
        assert!(observer.runs.load(Ordering::SeqCst) >= 450);
        assert_eq!(observer.defects.load(Ordering::SeqCst), 0, "indexes are unique and small");
        assert!(observer.most.load(Ordering::SeqCst) <= max_size);
        assert!(pool.stats().peak_workers <= max_size);
        pool.shutdown_join();
    }
}

// No atomic operation protects the count: only one worker may ever be there.
#[test]
fn a_pool_of_one_is_a_lock() {
    let pool = new_pool(0, 1, Duration::from_micros(1));
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

/// What the hooks of one pool's workers see of each other.
struct Hooks {
    starting: AtomicUsize,
    /// Workers in their start hook at the same time, at most.
    most_starting: AtomicUsize,
    /// By index: whether a worker with this index has started and not ended its stop hook.
    seats: Vec<AtomicBool>,
    defects: AtomicUsize,
}

// A worker counts from before its start hook, and its index is free only when its stop hook has
// ended. Protects the order in `Worker::stop`.
#[test]
fn workers_in_their_hooks_are_counted() {
    const MAX_SIZE: usize = 3;
    // Workers in their stop hooks are counted no longer.
    let seats = (0..64).map(|_| AtomicBool::new(false)).collect();
    let hooks = Arc::new(Hooks {
        starting: AtomicUsize::new(0),
        most_starting: AtomicUsize::new(0),
        seats,
        defects: AtomicUsize::new(0),
    });
    let (starts, stops) = (Arc::clone(&hooks), Arc::clone(&hooks));
    let start = move |index: usize| {
        let starting = starts.starting.fetch_add(1, Ordering::SeqCst) + 1;
        starts.most_starting.fetch_max(starting, Ordering::SeqCst);
        let was_taken = starts.seats[index].swap(true, Ordering::SeqCst);
        starts.defects.fetch_add(usize::from(was_taken), Ordering::SeqCst);
        dawdle(2000);
        starts.starting.fetch_sub(1, Ordering::SeqCst);
    };
    let stop = move |index: usize| {
        dawdle(2000);
        stops.seats[index].store(false, Ordering::SeqCst);
    };
    let pool = Builder::new()
        .core_size(0)
        .max_size(MAX_SIZE)
        .keep_alive(Duration::from_micros(1))
        .on_worker_start(start)
        .on_worker_stop(stop)
        .build_pool();
    for _ in 0..500 {
        for _ in 0..fastrand::usize(1..5) {
            pool.execute(|| dawdle(200));
        }
        dawdle(10_000);
    }
    assert!(pool.join_timeout(LIMIT));
    assert!(pool.stats().peak_workers <= MAX_SIZE);
    pool.shutdown_join();
    let most = hooks.most_starting.load(Ordering::SeqCst);
    assert!((1..=MAX_SIZE).contains(&most), "{most}");
    assert_eq!(hooks.defects.load(Ordering::SeqCst), 0, "an index was given away twice");
    assert!(hooks.seats.iter().all(|seat| !seat.load(Ordering::SeqCst)));
}

// The same, held open: a worker in its stop hook is counted no longer, but no other worker has its
// index.
#[test]
fn a_worker_in_its_stop_hook_keeps_its_index() {
    let stopping = Gate::new();
    let hook = {
        let stopping = Arc::clone(&stopping);
        move |_| stopping.pass()
    };
    let builder = Builder::new().core_size(0).max_size(1).keep_alive(Duration::from_millis(1));
    let pool = builder.on_worker_stop(hook).build_pool();
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
    let handles = submit_interdependent(pool, count, || worker_index().unwrap());
    let mut indexes: Vec<_> = handles.into_iter().map(|handle| handle.await_complete()).collect();
    indexes.sort_unstable();
    indexes
}

// Protects `take_index`, which hands out the smallest free index, and `return_index`, which frees
// it.
#[test]
fn indexes_of_workers_are_dense_and_reused() {
    let pool = new_pool(0, 5, Duration::from_millis(1));
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

// A start checks the limit and counts the worker under one lock: at random this notices if it does
// not.
#[test]
fn concurrent_starts_do_not_exceed_the_sizes() {
    for _ in 0..100 {
        let pool = new_pool(3, 3, HOUR);
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

// Of two surplus workers only one may retire. Protects the lock in `Shared::try_retire`.
#[test]
fn retiring_workers_leave_core_size_workers() {
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
    let pool = builder.on_worker_stop(hook).build_pool();
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
fn never_fewer_than_core_size_workers_once_they_have_started() {
    let pool = new_pool(2, 5, Duration::from_micros(1));
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

// ----- workers that come back from blocking regions -----

/// How many run at the same time, and how long none of them ended.
struct Work {
    running: AtomicUsize,
    most: AtomicUsize,
    ended: Mutex<(usize, Instant, Duration)>,
}

impl Work {
    fn new() -> Arc<Self> {
        Arc::new(Work {
            running: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
            ended: Mutex::new((0, Instant::now(), Duration::ZERO)),
        })
    }

    /// From now on.
    fn begin(&self) {
        self.ended.lock().unwrap().1 = Instant::now();
    }

    fn run(&self) {
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(running, Ordering::SeqCst);
        // Off the CPU: others that may run can be seen.
        thread::sleep(Duration::from_micros(100));
        self.running.fetch_sub(1, Ordering::SeqCst);
        let now = Instant::now();
        let mut ended = self.ended.lock().unwrap();
        let standstill = ended.2.max(now.saturating_duration_since(ended.1));
        *ended = (ended.0 + 1, now, standstill);
    }
}

// Protects the order in `returning.rs`, and the limit in `Counts::return_from_region`.
#[test]
fn a_crowd_of_returning_workers_runs_a_few_at_a_time() {
    const CROWD: usize = 200;
    const MAX_SIZE: usize = 2;
    for _ in 0..10 {
        let pool = new_pool(0, MAX_SIZE, HOUR);
        let (region, work) = (Gate::new(), Work::new());
        let mut tasks = Vec::new();
        for _ in 0..CROWD {
            let (region, work) = (Arc::clone(&region), Arc::clone(&work));
            tasks.push(pool.evaluate(move || {
                blocking(|| region.pass());
                work.run();
            }));
        }
        region.wait_for(CROWD);
        assert_eq!(pool.stats().blocked, CROWD);
        work.begin();
        region.open();
        for _ in 0..CROWD {
            let work = Arc::clone(&work);
            tasks.push(pool.evaluate(move || work.run()));
        }
        tasks.into_iter().for_each(value);
        let (ended, _, standstill) = *work.ended.lock().unwrap();
        assert_eq!(ended, 2 * CROWD);
        assert!(pool.shutdown_join_timeout(LIMIT));
        // One more worker returns when no running task ends for 100 ms. If a busy machine made them
        // as slow as that, the round says nothing.
        if standstill < Duration::from_millis(50) {
            assert!(work.most.load(Ordering::SeqCst) <= MAX_SIZE + 1, "{:?}", work.most);
            return;
        }
    }
    panic!("the machine is too busy for this test");
}

/// The running tasks wait, undeclared, for what a worker holds that waits to return from its
/// region.
#[test]
fn a_returning_worker_is_admitted_if_no_task_ends() {
    let pool = new_pool(1, 1, HOUR);
    let lock = Arc::new(Mutex::new(()));
    let regions = [Gate::new(), Gate::new()];
    let holder = {
        let (lock, region) = (Arc::clone(&lock), Arc::clone(&regions[0]));
        pool.evaluate(move || {
            let _guard = lock.lock().unwrap();
            blocking(|| region.pass());
        })
    };
    regions[0].wait_for(1);
    let back = Gate::new();
    let first = {
        let (lock, region, back) = (Arc::clone(&lock), Arc::clone(&regions[1]), Arc::clone(&back));
        pool.evaluate(move || {
            blocking(|| region.pass());
            back.open();
            drop(lock.lock().unwrap());
        })
    };
    regions[1].wait_for(1);
    let begins = Gate::new();
    let second = {
        let (lock, begins) = (Arc::clone(&lock), Arc::clone(&begins));
        pool.evaluate(move || {
            begins.open();
            drop(lock.lock().unwrap());
        })
    };
    begins.pass();
    regions[1].open();
    back.pass();
    // Two run on a pool of one, which is as many as may, and both wait for the lock.
    let before = Instant::now();
    regions[0].open();
    value(holder);
    assert!(before.elapsed() >= Duration::from_millis(50), "it has not waited to return");
    value(first);
    value(second);
    assert!(pool.shutdown_join_timeout(LIMIT));
}

/// A worker that ends its task admits a returning worker at once.
#[test]
fn a_worker_that_ends_its_task_admits_a_returning_one() {
    // Each of the five would wait for 100 ms otherwise. On a busy machine one of them may do so.
    let is_fast = |_| time_of_five_returns() < Duration::from_millis(400);
    assert!((0..10).any(is_fast));
}

fn time_of_five_returns() -> Duration {
    let pool = new_pool(1, 1, HOUR);
    let region = Gate::new();
    let backs: Vec<_> = (0..5).map(|_| Gate::new()).collect();
    let tasks: Vec<_> = backs
        .iter()
        .map(|back| {
            let (region, back) = (Arc::clone(&region), Arc::clone(back));
            pool.evaluate(move || {
                blocking(|| region.pass());
                back.pass();
            })
        })
        .collect();
    region.wait_for(5);
    let busy = block(&pool);
    let are_back = || backs.iter().filter(|back| back.arrived() > 0).count();
    let before = Instant::now();
    region.open();
    // More if none has ended its task for 100 ms.
    wait_until("one is back", || are_back() >= 1);
    busy.open();
    wait_until("another one is back", || are_back() >= 2);
    for back in &backs {
        back.open();
    }
    tasks.into_iter().for_each(value);
    let time = before.elapsed();
    assert!(pool.shutdown_join_timeout(LIMIT));
    time
}

/// Each start needs all workers to be blocked or running at that moment. A worker in a region of
/// nothing is blocked for less than a microsecond; a busy machine may stop a few of them in there.
#[test]
fn short_regions_start_few_threads() {
    const TASKS: usize = 5_000;
    for max_size in [1, 2] {
        let pool = new_pool(0, max_size, HOUR);
        let gates: Vec<_> = (0..max_size).map(|_| block(&pool)).collect();
        for _ in 0..TASKS {
            pool.execute(|| blocking(|| ()));
        }
        gates.iter().for_each(|gate| gate.open());
        assert!(pool.join_timeout(LIMIT));
        let stats = pool.stats();
        assert_eq!((stats.completed, stats.blocked), (TASKS + max_size, 0));
        println!(
            "max {max_size}: {} threads started, {} blocked",
            stats.threads_started, stats.peak_blocked
        );
        assert!(stats.threads_started <= 40, "{stats:?}");
        assert!(pool.shutdown_join_timeout(LIMIT));
    }
}

/// An idle worker is not woken for queued tasks while `max_size` others run.
#[test]
fn an_idle_worker_is_not_woken_at_max_size() {
    const MAX_SIZE: usize = 2;
    const SURPLUS: usize = 3;
    let pool = new_pool(0, MAX_SIZE, HOUR);
    let region = Gate::new();
    for _ in 0..SURPLUS {
        let region = Arc::clone(&region);
        pool.execute(move || blocking(|| region.pass()));
    }
    region.wait_for(SURPLUS);
    let gates = [block(&pool), block(&pool)];
    region.open();
    wait_until("the others are idle", || pool.idle_worker_count() == SURPLUS);
    let observer = Observer::new(MAX_SIZE + SURPLUS);
    for _ in 0..200 {
        let observer = Arc::clone(&observer);
        pool.execute(move || observer.run());
        dawdle(500);
    }
    // Time for a defect.
    thread::sleep(Duration::from_millis(20));
    let stats = pool.stats();
    assert_eq!((stats.idle, stats.queued, stats.active), (SURPLUS, 200, MAX_SIZE));
    gates.iter().for_each(|gate| gate.open());
    assert!(pool.join_timeout(LIMIT));
    assert_eq!(observer.runs.load(Ordering::SeqCst), 200);
    assert_eq!(observer.defects.load(Ordering::SeqCst), 0);
    assert!(observer.most.load(Ordering::SeqCst) <= MAX_SIZE, "{:?}", observer.most);
    assert_eq!(pool.stats().threads_started, MAX_SIZE + SURPLUS);
    assert!(pool.shutdown_join_timeout(LIMIT));
}

// ----- completions -----

/// A completion that waits for something outside of the pool counts as runnable.
#[test]
fn no_more_completions_than_max_size_are_under_way() {
    const MAX_SIZE: usize = 2;
    const COUNT: usize = 50;
    let pool = new_pool(MAX_SIZE, MAX_SIZE, HOUR);
    let (triggers, handles): (Vec<_>, Vec<_>) = (0..COUNT)
        .map(|_| {
            let (trigger, triggered) = triggered();
            (trigger, pool.complete(triggered))
        })
        .unzip();
    let mut waiting: Vec<&Trigger> = triggers.iter().collect();
    while !waiting.is_empty() {
        let expected = waiting.len().min(MAX_SIZE);
        let under_way = || waiting.iter().filter(|trigger| trigger.polls() > 0).count();
        wait_until("as many as may be have been polled", || under_way() >= expected);
        dawdle(5000);
        assert_eq!(under_way(), expected);
        assert_eq!(pool.stats().blocked, 0);
        let next = waiting.iter().rposition(|trigger| trigger.polls() > 0).unwrap();
        waiting.remove(next).fire();
    }
    handles.into_iter().for_each(value);
    assert!(pool.join_timeout(LIMIT));
    let stats = pool.stats();
    assert_eq!((stats.completed, stats.threads_started, stats.peak_blocked), (COUNT, MAX_SIZE, 0));
    assert!(pool.shutdown_join_timeout(LIMIT));
}

/// Only while its last poll waited for a task of its own pool, a completion does not count as
/// runnable.
#[test]
fn a_completion_that_waits_for_tasks_of_its_pool_lets_them_run() {
    type Waits = fn(ThreadPool) -> std::pin::Pin<Box<dyn Future<Output = u8> + Send>>;
    let waits: [Waits; 4] = [
        |own| Box::pin(async move { own.evaluate(|| 7).await.unwrap() }),
        |own| {
            Box::pin(async move {
                let group = own.group::<()>();
                group.execute(|| Ok(())).unwrap();
                group.execute(|| Ok(())).unwrap();
                group.await.unwrap();
                7
            })
        },
        // For a completion that waits, too.
        |own| {
            Box::pin(async move {
                let inner = own.clone();
                own.complete(async move { inner.evaluate(|| 7).await.unwrap() }).await.unwrap()
            })
        },
        // For something outside first, and for a task beside something that never comes.
        |own| {
            Box::pin(async move {
                let (trigger, triggered) = triggered();
                let outside = thread::spawn(move || {
                    trigger.fire();
                    trigger
                });
                triggered.await;
                drop(outside.join());
                let never = std::future::pending::<u8>();
                match futures::future::select(own.evaluate(|| 7), Box::pin(never)).await {
                    futures::future::Either::Left((settled, _)) => settled.unwrap(),
                    futures::future::Either::Right((never, _)) => never,
                }
            })
        },
    ];
    for (number, wait) in waits.into_iter().enumerate() {
        let pool = new_pool(1, 1, HOUR);
        assert_eq!(value(pool.complete(wait(pool.clone()))), 7, "{number}");
        assert!(pool.join_timeout(LIMIT));
        assert!(pool.stats().peak_blocked >= 1, "{number}");
        assert!(pool.shutdown_join_timeout(LIMIT));
    }
}

/// Another pool's tasks do not need this one's workers.
#[test]
fn a_completion_that_waits_for_another_pool_holds_its_place() {
    let (pool, other) = (new_pool(1, 1, HOUR), new_pool(1, 1, HOUR));
    let group = other.group::<()>();
    let gate = common::hold(&group);
    let handle = other.evaluate(|| 7);
    let awaits = group.clone();
    let polled = Gate::new();
    let polls = Arc::clone(&polled);
    let completion = pool.complete(async move {
        let value = handle.await.unwrap();
        polls.pass();
        awaits.await.unwrap();
        value
    });
    let queued = pool.evaluate(|| 8);
    let assert_holds = || {
        // Time for a defect.
        thread::sleep(Duration::from_millis(20));
        let stats = pool.stats();
        assert_eq!((stats.workers, stats.blocked, stats.queued), (1, 0, 1));
    };
    wait_until("the completion is polled", || pool.queued_count() == 1);
    assert_holds();
    assert_eq!(polled.arrived(), 0);
    gate.open();
    polled.wait_for(1);
    let held = common::hold(&group);
    polled.open();
    assert_holds();
    held.open();
    assert_eq!(value(completion), 7);
    assert_eq!(value(queued), 8);
    waited(&group).unwrap();
    assert_eq!((pool.stats().threads_started, pool.stats().peak_blocked), (1, 0));
    assert!(pool.shutdown_join_timeout(LIMIT));
    assert!(other.shutdown_join_timeout(LIMIT));
}

/// Each of these tasks is started a worker for, up to `core_size`. The workers that have come do
/// not start others for it.
#[test]
fn below_core_size_a_task_starts_one_thread() {
    const TASKS: usize = 32;
    const ROUNDS: usize = 20;
    let is_exact = |_: &usize| {
        let pool = ThreadPool::new(2 * TASKS, 2 * TASKS, HOUR);
        let gate = Gate::new();
        for _ in 0..TASKS {
            let gate = Arc::clone(&gate);
            pool.execute(move || gate.pass());
        }
        gate.wait_for(TASKS);
        let started = pool.stats().threads_started;
        gate.open();
        assert!(pool.shutdown_join_timeout(LIMIT));
        started == TASKS
    };
    // A worker that loses its CPU between its two looks, at the tasks and at the arriving workers,
    // may start one more.
    let exact = (0..ROUNDS).filter(is_exact).count();
    assert!(exact > ROUNDS / 2, "in {exact} of {ROUNDS} rounds");
}

/// Closures use up the number of a pool that measures. However many futures are ready, one thread
/// is started for them beyond the number.
#[cfg(feature = "async")]
#[test]
fn ready_futures_start_one_thread_beside_closures() {
    const ROUNDS: usize = 5;
    for (count, are_woken) in [(1, false), (1, true), (64, false), (64, true)] {
        let is_within = |_: &usize| {
            let pool = common::or_view(ThreadPool::default());
            let (stop, begun) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
            let (triggers, futures): (Vec<_>, Vec<_>) = (0..count).map(|_| triggered()).unzip();
            let spawn = |futures: Vec<_>| -> Vec<_> {
                futures.into_iter().map(|future| pool.spawn_await(future)).collect()
            };
            let mut handles = Vec::new();
            let mut futures = Some(futures);
            if are_woken {
                handles.extend(futures.take().map(spawn));
                wait_until("they wait", || pool.stats().pending == count);
            } else {
                triggers.iter().for_each(Trigger::fire);
            }
            for _ in 0..50 {
                let (stop, begun) = (Arc::clone(&stop), Arc::clone(&begun));
                pool.execute(move || {
                    begun.fetch_add(1, Ordering::SeqCst);
                    while !stop.load(Ordering::SeqCst) {
                        std::hint::spin_loop();
                    }
                });
            }
            let mut allowed = pool.stats().allowed;
            wait_until("all that may are busy", || begun.load(Ordering::SeqCst) >= allowed);
            match futures {
                Some(futures) => handles.push(spawn(futures)),
                None => triggers.iter().for_each(Trigger::fire),
            }
            let handles = handles.pop().expect("they were spawned");
            // The number may be raised meanwhile, and lowered.
            wait_until("the futures have run", || {
                allowed = allowed.max(pool.stats().allowed);
                handles.iter().all(|handle| handle.is_finished())
            });
            allowed = allowed.max(pool.stats().allowed);
            stop.store(true, Ordering::SeqCst);
            let peak = pool.stats().peak_workers;
            assert!(pool.shutdown_join_timeout(LIMIT));
            peak <= allowed + 1
        };
        // This thread may miss a higher number.
        let within = (0..ROUNDS).filter(is_within).count();
        assert!(within > ROUNDS / 2, "in {within} of {ROUNDS} rounds, {count} futures");
    }
}
