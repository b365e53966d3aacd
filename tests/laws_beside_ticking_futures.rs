//! The laws on a default pool, while futures tick in it beside closures that keep all workers busy
//! which may run: the core of each law, with the worker beyond their number that polls the futures.

#![cfg(feature = "async")]

mod common;

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Poll, Waker};
use std::thread;

use common::{Drops, LIMIT, alone, millis, value, wait_until, wait_until_asleep};
use elastipool::{JoinHandle, RejectReason, ThreadPool, View, worker_index};

/// How many futures tick.
const FUTURES: usize = 4;

/// A future that a thread of the test wakes every millisecond.
#[derive(Default)]
struct Ticking {
    waker: Mutex<Option<Waker>>,
    polls: AtomicUsize,
    is_polled: AtomicBool,
    /// Whether it was polled by two threads at once.
    is_shared: AtomicBool,
}

/// Whether the futures, and the closures, go on.
#[derive(Default)]
struct Stop {
    futures: AtomicBool,
    closures: AtomicBool,
}

/// The pool, with all that goes on in it.
struct Load {
    pool: ThreadPool,
    ticking: Arc<[Ticking; FUTURES]>,
    stop: Arc<Stop>,
    futures: Vec<JoinHandle<()>>,
    closures: Vec<JoinHandle<()>>,
    timer: thread::JoinHandle<()>,
    /// How many closures have begun. None ends before all do.
    begun: Arc<AtomicUsize>,
    /// How many may run at most, of the numbers that were seen.
    allowed: usize,
    /// Unused.
    view: Option<View>,
    _alone: MutexGuard<'static, ()>,
}

fn tick(
    ticking: Arc<[Ticking; FUTURES]>,
    index: usize,
    stop: Arc<Stop>,
) -> impl Future<Output = ()> {
    poll_fn(move |context| {
        let own = &ticking[index];
        if own.is_polled.swap(true, Ordering::SeqCst) {
            own.is_shared.store(true, Ordering::SeqCst);
        }
        // Before the end is read: the timer wakes what it finds, and then ends.
        *own.waker.lock().unwrap() = Some(context.waker().clone());
        own.polls.fetch_add(1, Ordering::SeqCst);
        let is_over = stop.futures.load(Ordering::SeqCst);
        own.is_polled.store(false, Ordering::SeqCst);
        if is_over { Poll::Ready(()) } else { Poll::Pending }
    })
}

impl Load {
    fn new(name: &str) -> Self {
        let guard = alone();
        // The settings are those of a default pool.
        let pool = ThreadPool::builder().name(name).build();
        let view = module_path!().ends_with("with_a_view").then(|| pool.view().build());
        let (ticking, stop) = (Arc::<[Ticking; FUTURES]>::default(), Arc::<Stop>::default());
        let futures = (0..FUTURES)
            .map(|index| pool.spawn_await(tick(Arc::clone(&ticking), index, Arc::clone(&stop))))
            .collect();
        let (own, until) = (Arc::clone(&ticking), Arc::clone(&stop));
        let timer = thread::spawn(move || {
            loop {
                let is_last = until.futures.load(Ordering::SeqCst);
                for future in own.iter() {
                    let waker = future.waker.lock().unwrap().take();
                    waker.into_iter().for_each(Waker::wake);
                }
                if is_last {
                    break;
                }
                thread::sleep(millis(1));
            }
        });
        let mut load = Load {
            allowed: pool.stats().allowed,
            pool,
            ticking,
            stop,
            futures,
            closures: Vec::new(),
            timer,
            begun: Arc::default(),
            view,
            _alone: guard,
        };
        for _ in 0..4 * load.allowed {
            let (begun, stop) = (Arc::clone(&load.begun), Arc::clone(&load.stop));
            load.closures.push(load.pool.evaluate(move || {
                begun.fetch_add(1, Ordering::SeqCst);
                while !stop.closures.load(Ordering::SeqCst) {
                    std::hint::spin_loop();
                }
            }));
        }
        let least = load.allowed;
        wait_until("all that may are busy", || load.begun.load(Ordering::SeqCst) >= least);
        load.wait_for_ticks();
        load
    }

    /// Waits until each future has ticked ten times more.
    #[track_caller]
    fn wait_for_ticks(&mut self) {
        let polls = |ticking: &Ticking| ticking.polls.load(Ordering::SeqCst);
        let before = self.ticking.each_ref().map(polls);
        wait_until("all futures tick", || {
            self.allowed = self.allowed.max(self.pool.stats().allowed);
            self.ticking.iter().zip(before).all(|(ticking, before)| polls(ticking) >= before + 10)
        });
    }

    #[track_caller]
    fn end_closures(&mut self) {
        self.stop.closures.store(true, Ordering::SeqCst);
        self.closures.drain(..).for_each(value);
    }

    #[track_caller]
    fn end_futures(&mut self) {
        self.stop.futures.store(true, Ordering::SeqCst);
        self.futures.drain(..).for_each(value);
    }

    #[track_caller]
    fn end(mut self) {
        self.wait_for_ticks();
        self.end_futures();
        self.end_closures();
        assert!(self.pool.shutdown_join_timeout(LIMIT));
        self.timer.join().unwrap();
    }
}

// Seen to fail without a clause for ready futures in `Shared::limit_for_another`.
#[test]
fn law_1_futures_go_on() {
    let mut load = Load::new("prompt");
    for number in 0..20 {
        assert_eq!(value(load.pool.spawn_await(async move { number })), number);
        load.wait_for_ticks();
    }
    load.end();
}

// Seen to fail if the extra worker forgets a future that it has taken.
#[test]
fn law_2_handles_settle() {
    let load = Load::new("settled");
    for _ in 0..20 {
        let (trigger, waits) = common::triggered();
        let [result, panics, cancelled] = [
            load.pool.spawn_await(async { 7 }),
            load.pool.spawn_await(async { panic!("expected") }),
            load.pool.spawn_await(async {
                waits.await;
                7
            }),
        ];
        assert_eq!(value(result), 7);
        assert!(panics.await_complete_timeout(LIMIT).unwrap().unwrap_err().is_panic());
        wait_until("it waits", || trigger.waker().is_some());
        cancelled.cancel();
        assert!(cancelled.await_complete_timeout(LIMIT).unwrap().unwrap_err().is_cancelled());
    }
    load.end();
}

// Seen to fail if each poll of a future counts as its end.
#[test]
fn law_3_a_join_waits_for_pending_futures() {
    let mut load = Load::new("quiet");
    load.end_closures();
    assert!(!load.pool.join_timeout(millis(30)), "futures are pending");
    let ended = Arc::new(AtomicUsize::new(0));
    let stop = Arc::clone(&load.stop);
    let last = Arc::clone(&ended);
    load.pool.spawn(async move {
        stop.futures.store(true, Ordering::SeqCst);
        last.store(1, Ordering::Relaxed);
    });
    assert!(load.pool.join_timeout(LIMIT));
    assert_eq!(ended.load(Ordering::Relaxed), 1, "what they have written is visible");
    assert!(load.futures.iter().all(JoinHandle::is_finished));
    load.stop.futures.store(true, Ordering::SeqCst);
    load.timer.join().unwrap();
}

// Seen to fail if the extra worker takes closures too.
#[test]
fn law_4_one_worker_comes_beyond_the_number() {
    let mut load = Load::new("bounded");
    let handles: Vec<_> = (0..64).map(|_| load.pool.spawn_await(async {})).collect();
    handles.into_iter().for_each(value);
    (0..5).for_each(|_| load.wait_for_ticks());
    let (peak, begun) = (load.pool.stats().peak_workers, load.begun.load(Ordering::SeqCst));
    let allowed = load.allowed;
    assert!(peak <= allowed + 1 && begun <= allowed, "{peak} workers, {begun} closures: {allowed}");
    load.end();
}

// Seen to fail if the keeper's looks for the extra worker go on for ever.
#[test]
fn law_5_the_pool_becomes_cold() {
    let mut load = Load::new("cold");
    load.end_futures();
    load.end_closures();
    load.pool.set_keep_alive(millis(1));
    let core_size = load.pool.core_size();
    wait_until("surplus workers have left", || load.pool.current_worker_count() == core_size);
    // The keeper too.
    wait_until_asleep(core_size + 1, millis(300), |name| name.starts_with("cold"));
    assert!(load.pool.shutdown_join_timeout(LIMIT));
    load.timer.join().unwrap();
}

// Seen to fail if a panic is counted as a value.
#[test]
fn law_6_a_panic_of_a_poll_changes_nothing() {
    let mut load = Load::new("panics");
    for _ in 0..20 {
        let (trigger, waits) = common::triggered();
        let poll = load.pool.spawn_await(async move {
            waits.await;
            panic!("expected");
        });
        wait_until("it waits", || trigger.waker().is_some());
        trigger.fire();
        let error = poll.await_complete_timeout(LIMIT).unwrap().unwrap_err();
        assert!(error.is_panic());
    }
    load.wait_for_ticks();
    let stats = load.pool.stats();
    assert_eq!((stats.panicked, stats.completed, stats.threads_retired), (20, 0, 0), "{stats:?}");
    load.end();
}

// Seen to fail if a refused thread counts as one that starts.
#[cfg(target_os = "linux")]
#[test]
fn law_7_a_refused_worker_is_asked_for_again() {
    use common::refusal::{Refusal, in_a_child};

    in_a_child("law_7_a_refused_worker_is_asked_for_again", || {
        let pool = ThreadPool::default();
        let stop = Arc::new(AtomicBool::new(false));
        let begun = Arc::new(AtomicUsize::new(0));
        let allowed = pool.stats().allowed;
        for _ in 0..allowed {
            let (begun, stop) = (Arc::clone(&begun), Arc::clone(&stop));
            pool.execute(move || {
                begun.fetch_add(1, Ordering::SeqCst);
                while !stop.load(Ordering::SeqCst) {
                    std::hint::spin_loop();
                }
            });
        }
        wait_until("all are busy", || begun.load(Ordering::SeqCst) == allowed);
        let refusal = Refusal::begin();
        let future = pool.spawn_await(async { 7 });
        wait_until("the thread is refused", || pool.stats().threads_refused > 0);
        assert_eq!((pool.stats().workers, pool.stats().queued), (allowed, 1));
        refusal.end();
        assert_eq!(value(future), 7, "without a new submission");
        stop.store(true, Ordering::SeqCst);
        assert!(pool.shutdown_join_timeout(LIMIT));
    });
}

// Seen to fail if a shutdown cancels no pending futures.
#[test]
fn law_8_a_shutdown_hands_back_and_cancels() {
    let mut load = Load::new("closed");
    let queued = load.pool.stats().queued;
    load.pool.close();
    assert_eq!(load.pool.try_spawn(async {}).unwrap_err().reason(), RejectReason::Closed);
    load.wait_for_ticks();
    let returned = load.pool.shutdown_now();
    // Those that tick may be queued just now.
    assert!(
        (queued.saturating_sub(FUTURES)..=queued + FUTURES).contains(&returned.len()),
        "{queued}"
    );
    drop(returned);
    for future in load.futures.drain(..) {
        let result = future.await_complete_timeout(LIMIT).unwrap();
        assert!(result.unwrap_err().is_cancelled());
    }
    load.stop.closures.store(true, Ordering::SeqCst);
    load.stop.futures.store(true, Ordering::SeqCst);
    for closure in load.closures.drain(..) {
        let _ = closure.await_complete_timeout(LIMIT).expect("it ends or was handed back");
    }
    assert!(load.pool.shutdown_join_timeout(LIMIT));
    load.timer.join().unwrap();
}

// Seen to fail if a shutdown does not wait for the threads.
#[test]
fn law_9_the_threads_are_gone() {
    thread_local! {
        static GUARDS: RefCell<Vec<common::Dropped>> = const { RefCell::new(Vec::new()) };
    }
    let mut load = Load::new("gone");
    let drops = Drops::default();
    for _ in 0..50 {
        let guard = drops.issue();
        value(load.pool.spawn_await(async move {
            GUARDS.with_borrow_mut(|guards| guards.push(guard));
        }));
    }
    assert_eq!(drops.count(), 0);
    load.end_futures();
    load.end_closures();
    let Load { pool, view, timer, .. } = load;
    drop(view);
    pool.shutdown_join();
    assert_eq!(drops.count(), 50, "the destructors of thread-locals have run");
    timer.join().unwrap();
}

// Seen to fail if no waiter runs the task that it waits for.
#[test]
fn law_10_a_poll_may_wait_for_its_pool() {
    let load = Load::new("waits");
    for _ in 0..20 {
        let pool = load.pool.clone();
        let waits = load.pool.spawn_await(async move {
            let closure = pool.evaluate(|| 1).await_complete();
            let future = pool.spawn_await(async { 2 }).await_complete();
            let mut third = 0;
            pool.scope(|scope| scope.execute(|| third = 4));
            closure + future + third
        });
        assert_eq!(value(waits), 7);
    }
    load.end();
}

// Seen to fail if a wake queues a future that is queued.
#[test]
fn law_11_a_future_is_polled_by_one_worker_at_a_time() {
    let mut load = Load::new("entries");
    let (ticking, stop) = (Arc::clone(&load.ticking), Arc::clone(&load.stop));
    let wakes = thread::spawn(move || {
        while !stop.futures.load(Ordering::SeqCst) {
            for future in ticking.iter() {
                let waker = future.waker.lock().unwrap().clone();
                waker.iter().for_each(Waker::wake_by_ref);
            }
            thread::yield_now();
        }
    });
    // Also beside workers that are free.
    load.wait_for_ticks();
    load.end_closures();
    (0..20).for_each(|_| load.wait_for_ticks());
    assert!(load.ticking.iter().all(|future| !future.is_shared.load(Ordering::SeqCst)));
    let ticking = Arc::clone(&load.ticking);
    load.end();
    wakes.join().unwrap();
    assert!(ticking.iter().all(|future| !future.is_shared.load(Ordering::SeqCst)));
}

// Seen to fail if a worker takes the second entry of an injector first.
#[test]
fn law_12_futures_and_closures_start_in_order() {
    let mut load = Load::new("order");
    let log = Arc::new(Mutex::new(Vec::new()));
    let enter = |number| {
        let log = Arc::clone(&log);
        move || log.lock().unwrap().push((worker_index(), number))
    };
    let mut futures = Vec::new();
    let mut closures = Vec::new();
    for number in 0..200 {
        let (of_future, of_closure) = (enter(number), enter(1000 + number));
        futures.push(load.pool.spawn_await(async move { of_future() }));
        closures.push(load.pool.evaluate(of_closure));
    }
    futures.into_iter().for_each(value);
    load.wait_for_ticks();
    load.end_closures();
    closures.into_iter().for_each(value);
    let log = log.lock().unwrap();
    // Of several workers each enters what it takes in order.
    for is_closure in [false, true] {
        let of_kind = log.iter().filter(|(_, number)| (*number >= 1000) == is_closure);
        assert_eq!(of_kind.clone().count(), 200);
        for worker in 0..load.pool.stats().peak_workers {
            let own = of_kind.clone().filter(|(index, _)| *index == Some(worker));
            assert!(own.is_sorted_by_key(|(_, number)| *number), "{log:?}");
        }
    }
    drop(log);
    load.end();
}
