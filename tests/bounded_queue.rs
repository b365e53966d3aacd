//! A bounded queue: who is accepted, who waits for room and in which order, who is told that there is none,
//! and that nobody waits for himself. (With threads refused: `law_07_refusal_proof.rs`.)

mod common;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use common::{
    Drops, Gate, HOUR, LIMIT, block, dawdle, panic_text, refused, settled, value, wait_until,
};
use elastipool::{JoinHandle, RejectReason, ThreadPool, blocking};

fn pool(max_size: usize, capacity: usize) -> ThreadPool {
    let builder = ThreadPool::builder().core_size(1).max_size(max_size).keep_alive(HOUR);
    builder.queue_capacity(capacity).build()
}

/// A thread that submits something, and can be seen to wait.
struct Producer<T> {
    name: String,
    has_begun: Arc<AtomicBool>,
    thread: thread::JoinHandle<T>,
}

impl<T: Send + 'static> Producer<T> {
    fn start(
        pool: &ThreadPool,
        submission: impl FnOnce(&ThreadPool) -> T + Send + 'static,
    ) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("producer-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let has_begun = Arc::new(AtomicBool::new(false));
        let (pool, begins) = (pool.clone(), Arc::clone(&has_begun));
        let body = move || {
            begins.store(true, Ordering::SeqCst);
            submission(&pool)
        };
        let thread = thread::Builder::new().name(name.clone()).spawn(body).unwrap();
        Producer { name, has_begun, thread }
    }

    /// Whether the thread sleeps in its submission, as far as one look can tell.
    #[cfg(target_os = "linux")]
    fn sleeps(&self) -> bool {
        let stat = self.proc_file("stat").unwrap_or_default();
        self.has_begun.load(Ordering::SeqCst)
            && stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('S'))
    }

    /// A file of the system's about this thread.
    #[cfg(target_os = "linux")]
    fn proc_file(&self, file: &str) -> Option<String> {
        std::fs::read_dir("/proc/self/task").ok()?.find_map(|task| {
            let path = task.ok()?.path();
            let name = std::fs::read_to_string(path.join("comm")).ok()?;
            (name.trim_end() == self.name)
                .then(|| std::fs::read_to_string(path.join(file)).ok())
                .flatten()
        })
    }

    /// Blocks until the producer waits. It sleeps, and not for a moment, as for a lock.
    #[track_caller]
    fn wait_until_it_waits(&self) {
        #[cfg(target_os = "linux")]
        {
            let mut looks = 0;
            wait_until(&format!("{} waits", self.name), || {
                assert!(!self.thread.is_finished(), "{} does not wait", self.name);
                looks = if self.sleeps() { looks + 1 } else { 0 };
                thread::sleep(Duration::from_micros(200));
                looks >= 10
            });
        }
        #[cfg(not(target_os = "linux"))]
        {
            wait_until(&self.name, || self.has_begun.load(Ordering::SeqCst));
            thread::sleep(Duration::from_millis(50));
        }
        assert!(!self.thread.is_finished(), "{} does not wait", self.name);
    }

    /// A producer that waits.
    #[track_caller]
    fn waiting(
        pool: &ThreadPool,
        submission: impl FnOnce(&ThreadPool) -> T + Send + 'static,
    ) -> Self {
        let producer = Producer::start(pool, submission);
        producer.wait_until_it_waits();
        producer
    }

    /// What the submission returns, which must not take for ever.
    #[track_caller]
    fn finish(self) -> T {
        wait_until(&format!("{} is let in or told", self.name), || self.thread.is_finished());
        self.thread.join().unwrap()
    }
}

/// There is room for `max_size` tasks that run and `capacity` tasks that wait, no more and no less.
#[track_caller]
fn assert_room(pool: &ThreadPool, capacity: usize) {
    assert!(pool.join_timeout(LIMIT));
    // A future may have ended while the worker that polled it is still on its way out of it.
    wait_until("the workers are free", || pool.stats().idle == pool.stats().workers);
    let gate = Gate::new();
    for running in 1..=pool.max_size() {
        let passes = Arc::clone(&gate);
        pool.try_execute(move || passes.pass()).expect("a worker is free");
        gate.wait_for(running);
    }
    for _ in 0..capacity {
        pool.try_execute(|| ()).expect("the queue has room");
    }
    refused(pool.try_execute(|| ()), RejectReason::Full);
    assert_eq!(pool.queued_count(), capacity);
    gate.open();
    assert!(pool.join_timeout(LIMIT));
}

// ----- who is accepted -----

#[test]
fn try_forms_hand_back_the_untouched_task_when_it_is_full() {
    let (pool, drops) = (pool(1, 0), Drops::default());
    let gate = block(&pool);

    let guard = drops.issue();
    let rejected = refused(pool.try_execute(move || drop(guard)), RejectReason::Full);
    assert_eq!(rejected.to_string(), "the task was not accepted: the queue is full");
    assert_eq!(drops.count(), 0);
    rejected.into_task()();
    assert_eq!(drops.count(), 1);

    let guard = drops.issue();
    let task = move || {
        drop(guard);
        7
    };
    let task = refused(pool.try_evaluate(task), RejectReason::Full).into_task();
    assert_eq!((drops.count(), task(), drops.count()), (1, 7, 2));

    let guard = drops.issue();
    let future = async move {
        drop(guard);
        7
    };
    let future = refused(pool.try_complete(future), RejectReason::Full).into_task();
    assert_eq!(drops.count(), 2);
    assert_eq!((futures_executor::block_on(future), drops.count()), (7, 3));

    #[cfg(feature = "async")]
    {
        let guard = drops.issue();
        let future = async move { drop(guard) };
        let future = refused(pool.try_spawn(future), RejectReason::Full).into_task();
        let future = refused(pool.try_spawn_await(future), RejectReason::Full).into_task();
        assert_eq!(drops.count(), 3);
        futures_executor::block_on(future);
        assert_eq!(drops.count(), 4);
    }
    let (stats, expected) = (pool.stats(), if cfg!(feature = "async") { 5 } else { 3 });
    assert_eq!((stats.rejected, stats.in_flight(), stats.threads_refused), (expected, 1, 0));
    gate.open();
    assert_room(&pool, 0);
}

/// Blocking tasks that are accepted in a row.
fn accepted_in_a_row(pool: &ThreadPool) -> usize {
    let gate = Gate::new();
    let mut accepted = 0;
    loop {
        let passes = Arc::clone(&gate);
        match pool.try_execute(move || passes.pass()) {
            Ok(()) => accepted += 1,
            Err(rejected) => {
                assert_eq!(rejected.reason(), RejectReason::Full);
                break;
            }
        }
    }
    gate.open();
    assert!(pool.join_timeout(LIMIT));
    assert_eq!(gate.arrived(), accepted);
    accepted
}

/// Whether or not the first have been started when the last ones come, and by new workers or idle ones.
#[test]
fn without_capacity_as_many_tasks_as_workers_are_accepted_in_a_row() {
    for (core_size, max_size) in [(0, 1), (1, 1), (0, 2), (1, 3), (4, 4)] {
        for _ in 0..20 {
            let builder = ThreadPool::builder().core_size(core_size).max_size(max_size);
            let pool = builder.keep_alive(HOUR).queue_capacity(0).build();
            for _ in 0..5 {
                assert_eq!(accepted_in_a_row(&pool), max_size);
            }
        }
    }
}

/// As above.
#[test]
fn as_many_tasks_as_workers_and_the_capacity_are_accepted_in_a_row() {
    for (core_size, max_size, capacity) in [(0, 1, 1), (1, 1, 3), (1, 3, 2), (2, 2, 5)] {
        for _ in 0..20 {
            let builder = ThreadPool::builder().core_size(core_size).max_size(max_size);
            let pool = builder.keep_alive(HOUR).queue_capacity(capacity).build();
            for _ in 0..5 {
                assert_eq!(accepted_in_a_row(&pool), max_size + capacity);
            }
        }
    }
}

/// As above.
#[test]
fn workers_in_their_start_hooks_do_not_take_up_room() {
    for max_size in [2, 4] {
        let (hooks, builder) = (Gate::new(), ThreadPool::builder().core_size(0));
        let passes = Arc::clone(&hooks);
        let builder = builder.max_size(max_size).queue_capacity(0);
        let pool = builder.on_worker_start(move |_| passes.pass()).build();
        for number in 1..=max_size {
            pool.try_execute(|| ()).expect("a worker may be started");
            hooks.wait_for(number);
        }
        refused(pool.try_execute(|| ()), RejectReason::Full);
        hooks.open();
        assert_room(&pool, 0);
    }
}

#[test]
fn with_all_workers_busy_the_capacity_is_accepted() {
    for (max_size, capacity) in [(1, 0), (1, 1), (3, 0), (3, 2), (2, 5)] {
        let pool = pool(max_size, capacity);
        for _ in 0..3 {
            assert_room(&pool, capacity);
        }
        assert_eq!(pool.stats().rejected, 3);
    }
}

/// Room is neither lost nor won, whatever becomes of a task.
#[test]
fn every_end_of_a_task_gives_back_its_room() {
    for capacity in [0, 2] {
        let pool = pool(2, capacity);
        for _ in 0..100 {
            let own = pool.clone();
            pool.execute(|| panic!("contained"));
            pool.evaluate(|| ()).cancel();
            drop(pool.complete(async { dawdle(500) }));
            pool.execute(|| blocking(|| dawdle(500)));
            pool.execute(move || value(own.evaluate(|| ())));
            #[cfg(feature = "async")]
            {
                let (teller, told) = common::told();
                pool.spawn(told);
                let unpolled = pool.spawn_await(std::future::pending::<()>());
                dawdle(500);
                unpolled.cancel();
                teller.tell();
                let (_, never) = common::told();
                pool.spawn(never);
            }
        }
        assert_room(&pool, capacity);
    }
}

// ----- waiting for room -----

/// Submits in each way that waits; each task counts itself and has the value 7.
type Submission = fn(&ThreadPool, Arc<AtomicUsize>) -> Option<JoinHandle<u8>>;

fn run(count: &AtomicUsize) -> u8 {
    count.fetch_add(1, Ordering::SeqCst);
    7
}

const PATIENT: &[Submission] = &[
    |pool, count| {
        pool.execute(move || _ = run(&count));
        None
    },
    |pool, count| Some(pool.evaluate(move || run(&count))),
    |pool, count| Some(pool.complete(async move { run(&count) })),
    |pool, count| {
        pool.try_execute_for(move || _ = run(&count), HOUR).unwrap();
        None
    },
    // A time that no clock can hold.
    |pool, count| Some(pool.try_evaluate_for(move || run(&count), Duration::MAX).unwrap()),
    #[cfg(feature = "async")]
    |pool, count| {
        pool.spawn(async move { _ = run(&count) });
        None
    },
    #[cfg(feature = "async")]
    |pool, count| Some(pool.spawn_await(async move { run(&count) })),
];

#[test]
fn the_others_wait_for_room_and_run() {
    for capacity in [0, 1] {
        for &submission in PATIENT {
            let pool = pool(1, capacity);
            let gate = block(&pool);
            for _ in 0..capacity {
                pool.execute(|| ());
            }
            let count = Arc::new(AtomicUsize::new(0));
            let counts = Arc::clone(&count);
            let producer = Producer::waiting(&pool, move |pool| submission(pool, counts));
            assert_eq!((count.load(Ordering::SeqCst), pool.queued_count()), (0, capacity));
            gate.open();
            if let Some(handle) = producer.finish() {
                assert_eq!(value(handle), 7);
            }
            assert!(pool.join_timeout(LIMIT));
            assert_eq!((count.load(Ordering::SeqCst), pool.stats().rejected), (1, 0));
            assert_room(&pool, capacity);
        }
    }
}

#[test]
fn a_wait_for_room_has_a_limit() {
    let (pool, drops) = (pool(1, 0), Drops::default());
    let gate = block(&pool);
    for timeout in [Duration::ZERO, Duration::from_millis(1), Duration::from_millis(40)] {
        let (before, drops_before) = (Instant::now(), drops.count());
        let guard = drops.issue();
        let rejected = pool.try_execute_for(move || drop(guard), timeout);
        let task = refused(rejected, RejectReason::Full).into_task();
        assert!(before.elapsed() >= timeout);
        let rejected = pool.try_evaluate_for(task, timeout);
        let task = refused(rejected, RejectReason::Full).into_task();
        assert!(before.elapsed() >= 2 * timeout);
        assert_eq!(drops.count(), drops_before, "untouched");
        task();
        assert_eq!(drops.count(), drops_before + 1);
    }
    assert_eq!(pool.stats().rejected, 6);
    gate.open();
    // Those who gave up have left no trace.
    assert_room(&pool, 0);
}

/// A task that gives up does not keep back those behind it.
#[test]
fn who_gives_up_is_passed_over() {
    let pool = pool(1, 0);
    let gate = block(&pool);
    let impatient = Producer::start(&pool, |pool| {
        let rejected = pool.try_evaluate_for(|| (), Duration::from_millis(100));
        refused(rejected, RejectReason::Full);
    });
    let patient = Producer::waiting(&pool, |pool| pool.evaluate(|| 7));
    impatient.finish();
    patient.wait_until_it_waits();
    gate.open();
    assert_eq!(value(patient.finish()), 7);
    assert_room(&pool, 0);
}

#[test]
fn producers_are_let_in_one_by_one_in_the_order_in_which_they_came() {
    for capacity in [0, 2] {
        let pool = pool(1, capacity);
        let mut gates = Vec::from([block(&pool)]);
        for _ in 0..capacity {
            let gate = Gate::new();
            gates.push(Arc::clone(&gate));
            pool.execute(move || gate.pass());
        }
        let let_in = Arc::new(Mutex::new(Vec::new()));
        let mut producers = Vec::new();
        for number in 0..5 {
            let gate = Gate::new();
            gates.push(Arc::clone(&gate));
            let let_in = Arc::clone(&let_in);
            producers.push(Producer::waiting(&pool, move |pool| {
                pool.execute(move || gate.pass());
                let_in.lock().unwrap().push(number);
            }));
        }
        for number in 0..5 {
            // One task ends, one is started, one is let in.
            gates[number].open();
            wait_until("one is let in", || let_in.lock().unwrap().len() > number);
            refused(pool.try_execute(|| ()), RejectReason::Full);
            for other in &producers[number + 1..] {
                other.wait_until_it_waits();
            }
            let expected: Vec<_> = (0..=number).collect();
            assert_eq!(*let_in.lock().unwrap(), expected);
        }
        for gate in gates {
            gate.open();
        }
        producers.into_iter().for_each(Producer::finish);
        assert_room(&pool, capacity);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn producers_that_wait_use_no_cpu() {
    let pool = pool(1, 0);
    let gate = block(&pool);
    let wait = |_| Producer::waiting(&pool, |pool| pool.execute(|| ()));
    let producers: Vec<_> = (0..4).map(wait).collect();
    // CPU time in ns, and how often they were switched to.
    let usage = || {
        producers.iter().fold((0, 0), |(time, switches), producer| {
            let text = producer.proc_file("schedstat").unwrap();
            let mut numbers = text.split_whitespace().map(|number| number.parse::<u64>().unwrap());
            (time + numbers.next().unwrap(), switches + numbers.nth(1).unwrap())
        })
    };
    let before = usage();
    // Time is the subject.
    thread::sleep(Duration::from_millis(300));
    let after = usage();
    let (time, switches) = (after.0 - before.0, after.1 - before.1);
    assert!(switches <= 12, "{switches} switches");
    assert!(time <= 5_000_000, "{time} ns");
    gate.open();
    producers.into_iter().for_each(Producer::finish);
    assert!(pool.join_timeout(LIMIT));
    assert_eq!(pool.stats().completed, 5);
}

/// More producers than room, for a while: nobody is forgotten, and there are never more queued than may be.
#[test]
fn a_crowd_of_producers_is_served() {
    for (max_size, capacity) in [(1, 0), (2, 0), (1, 1), (2, 3)] {
        let pool = pool(max_size, capacity);
        let (ran, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let producers: Vec<_> = (0..4)
            .map(|_| {
                let (ran, most) = (Arc::clone(&ran), Arc::clone(&most));
                Producer::start(&pool, move |pool| {
                    for _ in 0..200 {
                        let ran = Arc::clone(&ran);
                        pool.execute(move || {
                            dawdle(300);
                            ran.fetch_add(1, Ordering::SeqCst);
                        });
                        most.fetch_max(pool.queued_count(), Ordering::SeqCst);
                        dawdle(300);
                    }
                })
            })
            .collect();
        producers.into_iter().for_each(Producer::finish);
        assert!(pool.join_timeout(LIMIT));
        assert_eq!((ran.load(Ordering::SeqCst), pool.stats().rejected), (800, 0));
        // For a free worker, or waiting for one.
        assert!(most.load(Ordering::SeqCst) <= max_size + capacity, "{most:?}");
        assert_room(&pool, capacity);
    }
}

// ----- what makes room -----

#[test]
fn a_cancelled_task_keeps_its_room_until_a_worker_drops_it() {
    let pool = pool(1, 1);
    let gate = block(&pool);
    let queued = pool.evaluate(|| ());
    queued.cancel();
    assert!(settled(queued).unwrap_err().is_cancelled());
    refused(pool.try_execute(|| ()), RejectReason::Full);
    let producer = Producer::waiting(&pool, |pool| pool.evaluate(|| 7));
    gate.open();
    assert_eq!(value(producer.finish()), 7);
    assert_room(&pool, 1);
}

#[test]
fn a_raised_max_size_lets_producers_in() {
    let pool = pool(1, 0);
    let gate = block(&pool);
    let producers = [(); 3].map(|()| {
        let gate = Arc::clone(&gate);
        Producer::waiting(&pool, move |pool| pool.evaluate(move || gate.pass()))
    });
    pool.set_max_size(3).unwrap();
    // Two of them, on workers of their own.
    gate.wait_for(3);
    refused(pool.try_execute(|| ()), RejectReason::Full);
    let returned = || producers.iter().filter(|producer| producer.thread.is_finished()).count();
    wait_until("two have returned", || returned() == 2);
    producers[2].wait_until_it_waits();
    gate.open();
    producers.into_iter().map(Producer::finish).for_each(value);
    assert_room(&pool, 0);
    pool.set_max_size(1).unwrap();
    assert_room(&pool, 0);
}

#[test]
fn a_worker_that_enters_a_region_makes_room() {
    let pool = pool(1, 0);
    let (enters, leaves, ends) = (Gate::new(), Gate::new(), Gate::new());
    let gates = [Arc::clone(&enters), Arc::clone(&leaves), Arc::clone(&ends)];
    pool.execute(move || {
        gates[0].pass();
        blocking(|| gates[1].pass());
        gates[2].pass();
    });
    enters.wait_for(1);
    let producer = Producer::waiting(&pool, |pool| pool.evaluate(|| 7));
    enters.open();
    assert_eq!(value(producer.finish()), 7);
    leaves.wait_for(1);
    wait_until("the other worker is free", || pool.idle_worker_count() == 1);
    pool.try_execute(|| ()).expect("a worker is free");
    // Back at work: as many as may be are running, and the other worker, which is idle, makes no room.
    leaves.open();
    ends.wait_for(1);
    wait_until("it runs alone", || pool.stats().active == 1 && pool.idle_worker_count() == 1);
    refused(pool.try_execute(|| ()), RejectReason::Full);
    ends.open();
    assert_room(&pool, 0);
}

/// It is called by whoever starts a thread: also by a worker between two tasks.
#[test]
fn a_thread_name_may_be_waited_for() {
    let named = Arc::new(AtomicUsize::new(0));
    let names = Arc::clone(&named);
    let builder = ThreadPool::builder().core_size(0).max_size(2).queue_capacity(4);
    let pool = builder
        .keep_alive(Duration::from_millis(1))
        .thread_name(move |index| {
            blocking(|| dawdle(100));
            names.fetch_add(1, Ordering::SeqCst);
            format!("named {index}")
        })
        .build();
    for _ in 0..100 {
        value(pool.evaluate(|| ()));
        let gate = Gate::new();
        for _ in 0..2 {
            let meets = Arc::clone(&gate);
            pool.execute(move || meets.meet(2));
        }
        gate.wait_for(2);
        assert!(pool.join_timeout(LIMIT));
        wait_until("none is left", || pool.current_worker_count() == 0);
    }
    assert_eq!(pool.stats().blocked, 0);
    assert!(named.load(Ordering::SeqCst) >= pool.stats().threads_started);
    assert_room(&pool, 4);
}

#[cfg(feature = "async")]
mod futures_in_a_full_queue {
    use super::*;
    use common::told;

    #[test]
    fn a_woken_future_does_not_wait_and_does_not_count() {
        for capacity in [0, 1, 2] {
            let pool = pool(1, capacity);
            let futures = [told(), told(), told()].map(|(teller, told)| {
                let handle = pool.spawn_await(told);
                wait_until("it is pending", || teller.polls() == 1);
                (teller, handle)
            });
            let gate = block(&pool);
            let (first, rest) = futures.split_first().unwrap();
            // This thread would wait for ever.
            first.0.tell();
            for _ in 0..capacity {
                pool.try_execute(|| ()).expect("it takes up no room");
            }
            refused(pool.try_execute(|| ()), RejectReason::Full);
            for (teller, _) in rest {
                teller.tell();
            }
            assert_eq!(pool.queued_count(), capacity + 3);
            let producer = Producer::waiting(&pool, |pool| pool.evaluate(|| 7));
            gate.open();
            for (_teller, handle) in futures {
                value(handle);
            }
            assert_eq!(value(producer.finish()), 7);
            assert_room(&pool, capacity);
        }
    }

    #[test]
    fn a_future_that_wakes_itself_goes_on_while_producers_wait() {
        let pool = pool(1, 0);
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        let future = pool.spawn_await(std::future::poll_fn(move |context| {
            if ends.load(Ordering::SeqCst) {
                return std::task::Poll::Ready(());
            }
            context.waker().wake_by_ref();
            std::task::Poll::Pending
        }));
        let producers: Vec<_> =
            (0..20).map(|_| Producer::start(&pool, |pool| pool.evaluate(|| ()))).collect();
        for producer in producers {
            value(producer.finish());
        }
        is_over.store(true, Ordering::SeqCst);
        value(future);
        assert_room(&pool, 0);
    }
}

// ----- nobody waits for himself -----

/// Each task submits `width` others, down to `depth`.
fn submit_tree(pool: &ThreadPool, width: usize, depth: usize, count: &Arc<AtomicUsize>) {
    for _ in 0..width {
        let (own, count) = (pool.clone(), Arc::clone(count));
        pool.execute(move || {
            count.fetch_add(1, Ordering::SeqCst);
            if depth > 1 {
                submit_tree(&own, width, depth - 1, &count);
            }
        });
    }
}

#[test]
fn a_task_submits_to_its_own_full_queue() {
    for (max_size, capacity) in [(1, 0), (1, 1), (2, 0), (2, 1)] {
        let pool = pool(max_size, capacity);
        let count = Arc::new(AtomicUsize::new(0));
        let (own, counts) = (pool.clone(), Arc::clone(&count));
        value(pool.evaluate(move || submit_tree(&own, 20, 1, &counts)));
        assert!(pool.join_timeout(LIMIT));
        assert_eq!(count.load(Ordering::SeqCst), 20);
        // From all workers at once, and from those that take their places.
        submit_tree(&pool, 3, 4, &count);
        assert!(pool.join_timeout(LIMIT));
        assert_eq!(count.load(Ordering::SeqCst), 20 + 3 + 9 + 27 + 81);
        let stats = pool.stats();
        assert_eq!((stats.rejected, stats.blocked), (0, 0));
        assert_room(&pool, capacity);
    }
}

#[test]
fn a_task_waits_for_what_it_submits_to_its_own_full_queue() {
    fn sum_to(pool: &ThreadPool, number: usize) -> usize {
        if number == 0 {
            return 0;
        }
        let own = pool.clone();
        number + value(pool.evaluate(move || sum_to(&own, number - 1)))
    }
    for capacity in [0, 1] {
        let pool = pool(1, capacity);
        assert_eq!(sum_to(&pool, 10), 55);
        let own = pool.clone();
        let all = pool.evaluate(move || {
            let handles: Vec<_> = (0..20).map(|number| own.evaluate(move || number)).collect();
            handles.into_iter().map(value).sum::<usize>()
        });
        assert_eq!(value(all), 190);
        assert_room(&pool, capacity);
    }
}

/// To its own queue, and not only to its own: two full pools feed each other.
#[test]
fn tasks_of_two_pools_submit_to_each_other() {
    fn volley(to: &ThreadPool, back: &ThreadPool, left: usize, count: &Arc<AtomicUsize>) {
        count.fetch_add(1, Ordering::SeqCst);
        for _ in 0..usize::from(left > 0) * 2 {
            let (own, other, count) = (to.clone(), back.clone(), Arc::clone(count));
            to.execute(move || volley(&other, &own, left - 1, &count));
        }
    }
    let (left, right) = (pool(1, 0), pool(1, 0));
    let count = Arc::new(AtomicUsize::new(0));
    volley(&left, &right, 6, &count);
    wait_until("all have run", || count.load(Ordering::SeqCst) == 127);
    assert_room(&left, 0);
    assert_room(&right, 0);
}

#[test]
fn a_task_that_does_not_wait_for_room_is_told_that_there_is_none() {
    let pool = pool(1, 0);
    let own = pool.clone();
    let task = pool.evaluate(move || refused(own.try_execute(|| ()), RejectReason::Full).reason());
    assert_eq!(value(task), RejectReason::Full);
    let own = pool.clone();
    let task = pool.evaluate(move || {
        // Its own place becomes free while it waits, if anybody may have it.
        own.try_evaluate_for(|| 7, LIMIT).map(value).unwrap()
    });
    assert_eq!(value(task), 7);
    assert_room(&pool, 0);
}

// ----- closing -----

/// Two ways of closing.
const CLOSINGS: [fn(&ThreadPool); 2] =
    [ThreadPool::close, |pool| assert_eq!(pool.shutdown_now().len(), 1)];

/// A producer that waits for room of a pool that is closed now.
#[track_caller]
fn told_of_closing<T: Send + 'static>(
    closing: usize,
    submission: impl FnOnce(&ThreadPool) -> T + Send + 'static,
) -> T {
    let pool = pool(1, 1);
    let gate = block(&pool);
    let queued = pool.evaluate(|| ());
    let producer = Producer::waiting(&pool, submission);
    CLOSINGS[closing](&pool);
    // Told at once, not when the worker ends its task.
    let result = producer.finish();
    refused(pool.try_execute(|| ()), RejectReason::Closed);
    gate.open();
    assert_eq!(settled(queued).is_ok(), closing == 0);
    let (completed, handed_back) = [(2, 0), (1, 1)][closing];
    assert!(pool.join_timeout(LIMIT));
    let stats = pool.stats();
    assert_eq!((stats.completed, stats.handed_back), (completed, handed_back));
    assert_eq!((stats.rejected, stats.in_flight()), (2, 0));
    assert!(pool.shutdown_join_timeout(LIMIT));
    result
}

#[test]
fn closing_tells_producers_that_wait() {
    for closing in [0, 1] {
        let drops = Drops::default();
        let guard = drops.issue();
        let result =
            told_of_closing(closing, |pool| pool.try_execute_for(move || drop(guard), HOUR));
        let task = refused(result, RejectReason::Closed).into_task();
        assert_eq!(drops.count(), 0, "untouched");
        task();
        assert_eq!(drops.count(), 1);

        let result = told_of_closing(closing, |pool| pool.try_evaluate_for(|| 7, HOUR));
        assert_eq!(refused(result, RejectReason::Closed).into_task()(), 7);

        let handle = told_of_closing(closing, |pool| pool.evaluate(|| ()));
        assert!(settled(handle).unwrap_err().is_cancelled());
        let handle = told_of_closing(closing, |pool| pool.complete(async {}));
        assert!(settled(handle).unwrap_err().is_cancelled());
        let text = told_of_closing(closing, |pool| panic_text(|| pool.execute(|| ())));
        assert!(text.contains("closed") && text.contains("try_execute"), "{text}");
        #[cfg(feature = "async")]
        {
            let handle = told_of_closing(closing, |pool| pool.spawn_await(async {}));
            assert!(settled(handle).unwrap_err().is_cancelled());
            let text = told_of_closing(closing, |pool| panic_text(|| pool.spawn(async {})));
            assert!(text.contains("closed") && text.contains("try_spawn"), "{text}");
        }
    }
}

/// All of them, not only the first.
#[test]
fn closing_tells_a_crowd() {
    for close in [ThreadPool::close, |pool: &ThreadPool| drop(pool.shutdown_now())] {
        let pool = pool(1, 0);
        let gate = block(&pool);
        let producers = [(); 5].map(|()| {
            Producer::waiting(&pool, |pool| {
                refused(pool.try_execute_for(|| (), HOUR), RejectReason::Closed);
            })
        });
        close(&pool);
        producers.into_iter().for_each(Producer::finish);
        gate.open();
        assert!(pool.join_timeout(LIMIT));
        assert_eq!(pool.stats().rejected, 5);
        assert!(pool.shutdown_join_timeout(LIMIT));
    }
}

/// A task of the pool is told like everybody else.
#[test]
fn closing_tells_a_task_that_waits() {
    let pool = pool(1, 0);
    let (gate, own) = (Gate::new(), pool.clone());
    let passes = Arc::clone(&gate);
    let task = pool.evaluate(move || {
        let inner = Arc::clone(&passes);
        own.execute(move || inner.pass());
        // The place that this makes is for the first.
        own.try_execute_for(|| (), HOUR).map_err(|rejected| rejected.reason())
    });
    gate.wait_for(1);
    wait_until("it waits", || pool.stats().blocked == 1);
    pool.close();
    assert_eq!(value(task), Err(RejectReason::Closed));
    gate.open();
    assert!(pool.shutdown_join_timeout(LIMIT));
}
