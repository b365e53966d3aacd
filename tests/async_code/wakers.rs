//! The wakers of async waits are user code, which the pool calls: they may panic, submit, wait, or
//! take long.

use crate::common;

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Instant;

use common::waits::{Inline, waker};
use common::{
    Gate, HOUR, LARGE_STACK, LIMIT, block, hold, joined, millis, settled, use_much_stack, value,
    wait_until, waited,
};
use elastipool::{Growth, TaskGroup, ThreadPool, blocking};

type Waiting<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Begins a wait, whose waker calls `wake`.
fn waiting<'a>(
    wait: impl Future + Send + 'a,
    wake: impl Fn() + Send + Sync + 'static,
) -> Waiting<'a> {
    let mut wait: Waiting<'a> = Box::pin(async move {
        wait.await;
    });
    assert!(wait.as_mut().poll(&mut Context::from_waker(&waker(wake))).is_pending());
    wait
}

/// Begins a wait whose waker blocks until the gate opens, outside of the pool's sight.
fn blocking_wait<'a>(wait: impl Future + Send + 'a, gate: &Arc<Gate>) -> Waiting<'a> {
    let passes = Arc::clone(gate);
    waiting(wait, move || passes.pass())
}

/// Tasks run while a waker blocks a worker.
#[track_caller]
fn assert_runs_beside(pool: &ThreadPool, gate: &Gate) {
    gate.wait_for(1);
    for _ in 0..3 {
        value(pool.evaluate(|| ()));
    }
    gate.open();
}

fn two() -> ThreadPool {
    ThreadPool::new(2, 2, HOUR)
}

fn bounded(max_size: usize, capacity: usize) -> ThreadPool {
    let builder = ThreadPool::builder().core_size(1).max_size(max_size).keep_alive(HOUR);
    builder.queue_capacity(capacity).build()
}

#[test]
fn a_waker_of_a_joiner_that_blocks_delays_no_task() {
    for _ in 0..20 {
        let (pool, gate) = (two(), Gate::new());
        let task = block(&pool);
        let quiet = blocking_wait(pool.quiet(), &gate);
        task.open();
        assert_runs_beside(&pool, &gate);
        drop(quiet);
        pool.shutdown_join();
    }
}

#[test]
fn nor_does_one_of_a_view_or_of_a_worker_that_is_recycled() {
    let pool = two();
    let (view, gate) = (pool.view().build(), Gate::new());
    let task = block(&view);
    let quiet = blocking_wait(view.quiet(), &gate);
    task.open();
    assert_runs_beside(&pool, &gate);
    drop(quiet);

    let builder = ThreadPool::builder().core_size(1).max_size(2).max_tasks_per_worker(1);
    let (pool, gate) = (builder.build(), Gate::new());
    let task = block(&pool);
    let quiet = blocking_wait(pool.quiet(), &gate);
    task.open();
    assert_runs_beside(&pool, &gate);
    drop(quiet);
    pool.shutdown_join();
}

/// At the end of a task, and when a worker enters a region, whose permit it gives up: another task
/// is queued for the worker in its place.
#[test]
fn nor_does_one_of_a_submitter() {
    let (pool, gate) = (bounded(2, 0), Gate::new());
    let tasks = [block(&pool), block(&pool)];
    let ready = blocking_wait(pool.ready(), &gate);
    tasks[0].open();
    gate.wait_for(1);
    // The submitter has the permit of that task.
    drop(ready);
    tasks[1].open();
    assert_runs_beside(&pool, &gate);
    pool.shutdown_join();

    let (pool, gate) = (bounded(1, 1), Gate::new());
    let (enter, region) = (Gate::new(), Gate::new());
    let (enters, ends) = (Arc::clone(&enter), Arc::clone(&region));
    pool.execute(move || {
        enters.pass();
        blocking(|| ends.pass());
    });
    let queued = pool.evaluate(|| 6 * 7);
    let ready = blocking_wait(pool.ready(), &gate);
    enter.open();
    gate.wait_for(1);
    assert_eq!(value(queued), 42);
    gate.open();
    region.open();
    drop(ready);
    pool.shutdown_join();
}

/// A future that has yielded is not left behind, nor are the futures that a poll has woken.
#[cfg(feature = "async")]
#[test]
fn a_waker_at_the_end_of_a_poll_delays_no_future() {
    let (pool, gate) = (bounded(2, 0), Gate::new());
    let held = futures::executor::block_on(pool.ready()).unwrap();
    let (enter, mut has_yielded) = (Gate::new(), false);
    let enters = Arc::clone(&enter);
    let yields = pool.spawn_await(std::future::poll_fn(move |context| {
        enters.pass();
        if std::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }));
    enter.wait_for(1);
    // Its first poll releases the permit.
    let ready = blocking_wait(pool.ready(), &gate);
    enter.open();
    gate.wait_for(1);
    value(yields);
    gate.open();
    drop((ready, held));
    pool.shutdown_join();
}

/// The waker waits for a task of the pool, whose only worker runs it.
#[test]
fn a_waker_waits_for_the_pool_as_a_poll_does() {
    for kind in 0..4 {
        let pool = bounded(1, 0);
        let task = block(&pool);
        let (sender, receiver) = mpsc::channel();
        let inner = pool.clone();
        let wake = move || {
            // The queue is full: the waiter that is woken has the permit, or this has one.
            let answer = match kind {
                0 => inner.evaluate(|| 6 * 7).await_complete(),
                1 => {
                    inner.execute(|| ());
                    inner.complete(async { 6 * 7 }).await_complete()
                }
                2 => inner.scope(|scope| scope.evaluate(|| 6 * 7).await_complete()),
                _ => blocking(|| 6 * 7),
            };
            let _ = sender.send(answer);
        };
        let wait = match kind {
            0 => waiting(pool.ready(), wake),
            _ => waiting(pool.quiet(), wake),
        };
        task.open();
        assert_eq!(receiver.recv_timeout(LIMIT), Ok(42), "{kind}");
        drop(wait);
        assert!(pool.join_timeout(LIMIT));
        assert_eq!(pool.stats().blocked, 0);
        assert!(pool.shutdown_join_timeout(LIMIT));
    }
}

/// Another thread calls them: a thread that closes or resizes the pool goes on meanwhile.
#[test]
fn a_waker_sees_what_the_thread_has_done_that_calls_it() {
    let (pool, seen) = (bounded(1, 1), Arc::new(AtomicUsize::new(0)));
    let (task, queued) = (block(&pool), Gate::new());
    let opens = Arc::clone(&queued);
    pool.execute(move || opens.open());
    let (inner, sees) = (pool.clone(), Arc::clone(&seen));
    let ready = waiting(pool.ready(), move || {
        wait_until("a worker was started", || queued.is_open());
        sees.store(inner.max_size(), Ordering::SeqCst);
        value(inner.evaluate(|| ()));
        panic!("on purpose");
    });
    pool.set_max_size(3).unwrap();
    wait_until("it has seen the size", || seen.load(Ordering::SeqCst) == 3);
    task.open();
    drop(ready);
    assert!(pool.join_timeout(LIMIT));

    pool.pause();
    let (run, runs) = (Gate::new(), pool.clone());
    let tasks: Vec<_> = (0..4).map(|number| pool.evaluate(move || number)).collect();
    let passes = Arc::clone(&run);
    let refused = waiting(pool.ready(), move || {
        // They were paused: who closes the pool resumes them.
        wait_until("they have ended", || runs.stats().completed >= 4);
        passes.open();
    });
    pool.close();
    wait_until("they have run", || run.is_open());
    tasks.into_iter().for_each(|task| _ = value(task));
    drop(refused);
    pool.shutdown_join();
}

/// A handle's cancellation may end the last task: the idle worker leaves, although the waker waits
/// for that.
#[test]
fn a_waker_on_a_canceller_may_wait_for_the_last_worker() {
    for _ in 0..20 {
        let pool = ThreadPool::new(0, 1, millis(1));
        pool.pause();
        let task = pool.evaluate(|| ());
        wait_until("the worker rests, without a deadline", || pool.stats().idle == 1);
        let (own, has_left) = (pool.clone(), Gate::new());
        let opens = Arc::clone(&has_left);
        let quiet = waiting(pool.quiet(), move || {
            wait_until("the worker has left", || own.current_worker_count() == 0);
            opens.open();
        });
        task.cancel();
        wait_until("it has seen that", || has_left.is_open());
        drop(quiet);
    }
}

/// The keeper calls it, which measures the workers.
#[test]
fn a_waker_on_the_keeper_submits_without_a_wait() {
    let builder = ThreadPool::builder().core_size(1).max_size(20).keep_alive(HOUR);
    let pool = builder.growth(elastipool::Growth::measured(1)).queue_capacity(0).build();
    let gate = Gate::new();
    let passes = Arc::clone(&gate);
    pool.execute(move || passes.pass());
    gate.wait_for(1);
    let (inner, woken, submits) = (pool.clone(), Arc::new(AtomicUsize::new(0)), Arc::clone(&gate));
    let counts = Arc::clone(&woken);
    let wait = waiting(pool.ready(), move || {
        for _ in 0..4 {
            let passes = Arc::clone(&submits);
            inner.execute(move || passes.pass());
        }
        counts.fetch_add(1, Ordering::SeqCst);
    });
    wait_until("the keeper has submitted", || woken.load(Ordering::SeqCst) == 1);
    // It goes on to measure: one more may run, and then one more.
    gate.wait_for(5);
    gate.open();
    drop(wait);
    assert!(pool.join_timeout(LIMIT));
    assert!(pool.shutdown_join_timeout(LIMIT));
}

/// A producer that runs in the wakes only, beside others.
#[test]
fn an_executor_that_polls_in_the_wake_submits_no_more_than_fit() {
    const TASKS: usize = 200;
    let pool = bounded(2, 1);
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let produce = |pool: ThreadPool| {
        let (running, most) = (Arc::clone(&running), Arc::clone(&most));
        async move {
            for _ in 0..TASKS {
                let permit = pool.ready().await.unwrap();
                most.fetch_max(pool.stats().queued, Ordering::SeqCst);
                let running = Arc::clone(&running);
                permit.execute(move || _ = running.fetch_add(1, Ordering::SeqCst)).unwrap();
            }
        }
    };
    let producers: Vec<_> = (0..3).map(|_| Inline::run(produce(pool.clone()))).collect();
    wait_until("all are submitted", || producers.iter().all(|one| one.is_over()));
    assert!(pool.join_timeout(LIMIT));
    assert_eq!(running.load(Ordering::SeqCst), 3 * TASKS);
    assert!(most.load(Ordering::SeqCst) <= 5, "{most:?}");
    pool.shutdown_join();
}

/// A permit is in flight, so there is a worker, and a keeper.
#[test]
fn a_deadline_of_a_group_is_kept_while_permits_are_held() {
    let pool = ThreadPool::builder().name("kept").core_size(0).keep_alive(millis(1)).build();
    let group = pool.group::<()>().limit(1);
    let permit = futures::executor::block_on(group.ready()).unwrap();
    group.set_deadline(std::time::Instant::now() + millis(20));
    let other = {
        let group = group.clone();
        thread::spawn(move || futures::executor::block_on(group.ready()).map(drop))
    };
    assert!(joined(other).is_err(), "the deadline has passed");
    assert!(group.is_cancelled());
    assert!(permit.execute(|| Ok(())).is_err());
    assert!(waited(&group).unwrap_err().is_expired());
    #[cfg(target_os = "linux")]
    wait_until("the keeper has left", || common::threads_named("kept") == 0);
}

/// It waits in line behind a permit.
#[test]
fn a_deferred_task_of_a_permit_is_cancelled_at_its_deadline() {
    let pool = ThreadPool::new(0, 2, millis(1));
    let group = pool.group::<()>().limit(1);
    let (own, place) = (group.clone(), Arc::new(Mutex::new(None)));
    let keeps = Arc::clone(&place);
    let task = move || {
        *keeps.lock().unwrap() = Some(futures::executor::block_on(own.ready()).unwrap());
        Ok(())
    };
    group.execute(task).unwrap();
    waited(&group).unwrap();
    let without_slot = place.lock().unwrap().take().unwrap();
    let holds_slot = futures::executor::block_on(group.ready()).unwrap();
    group.set_deadline(std::time::Instant::now() + millis(20));
    let handle = without_slot.evaluate(|| ());
    assert!(settled(handle).unwrap_err().is_cancelled());
    drop(holds_slot);
    assert!(waited(&group).unwrap_err().is_expired());
    assert!(pool.shutdown_join_timeout(LIMIT));
}

/// None of them waits: the permit's task does, in line for its slot.
#[test]
fn completions_that_wait_for_a_slot_need_a_bounded_number_of_threads() {
    const TASKS: usize = 300;
    for max_size in [1, 2, 4] {
        let pool = ThreadPool::new(1, max_size, HOUR);
        let group = pool.group::<()>().limit(1);
        let ran = Arc::new(AtomicUsize::new(0));
        for _ in 0..TASKS {
            let (group, ran) = (group.clone(), Arc::clone(&ran));
            drop(pool.complete(async move {
                let permit = group.ready().await.unwrap();
                permit.execute(move || Ok(_ = ran.fetch_add(1, Ordering::SeqCst))).unwrap();
            }));
        }
        assert!(pool.join_timeout(LIMIT));
        assert_eq!(ran.load(Ordering::SeqCst), TASKS);
        let stats = pool.stats();
        assert!(stats.peak_workers <= 2 * max_size, "{stats:?}");
        assert_eq!(stats.blocked, 0);
        waited(&group).unwrap();
    }
}

/// Polls once with a waker that panics, submits, waits for the pool, or wakes the thread.
fn poll_oddly<T>(
    random: &mut fastrand::Rng,
    pool: &ThreadPool,
    ran: &Arc<AtomicUsize>,
    submitted: &Arc<AtomicUsize>,
    future: &mut Pin<Box<impl Future<Output = T>>>,
) -> Poll<T> {
    let (own, kind, thread) = (pool.clone(), random.u64(..6), thread::current());
    let (ran, submitted) = (Arc::clone(ran), Arc::clone(submitted));
    let wake = move || {
        thread.unpark();
        match kind {
            // That thread has paused the pool, and will resume it.
            1 | 2 if thread::current().name() == Some("disturber") => {}
            0 => panic!("on purpose"),
            1 => {
                submitted.fetch_add(1, Ordering::SeqCst);
                let ran = Arc::clone(&ran);
                own.execute(move || _ = ran.fetch_add(1, Ordering::SeqCst));
            }
            2 => assert_eq!(own.evaluate(|| 1).await_complete(), 1),
            3 => blocking(thread::yield_now),
            _ => {}
        }
    };
    let waker = waker(wake);
    future.as_mut().poll(&mut Context::from_waker(&waker))
}

/// Some threads submit by permits, in tasks and outside, and give up at random, while others resize
/// and pause the pool. Nothing is lost: no permit, no slot, no task, no thread.
#[test]
fn random_submitters_lose_nothing() {
    let seeds: u64 = std::env::var("SEEDS").map_or(8, |seeds| seeds.parse().unwrap());
    let first: u64 = std::env::var("SEED").map_or(1, |seed| seed.parse().unwrap());
    for seed in first..first + seeds {
        submit_randomly(seed);
    }
}

fn submit_randomly(seed: u64) {
    const THREADS: u64 = 4;
    let mut random = fastrand::Rng::with_seed(seed);
    let capacity = random.u64(..3) as usize;
    let builder = ThreadPool::builder().core_size(1).max_size(2).keep_alive(millis(1));
    let builder = if random.u64(..2) == 0 { builder.max_tasks_per_worker(3) } else { builder };
    let pool = builder.queue_capacity(capacity).panic_handler(|_| ()).build();
    let view = pool.view().limit(1).build();
    let group = pool.group::<()>().limit(1 + random.u64(..2) as usize).keep_going();
    let (ran, submitted) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let is_over = Arc::new(AtomicBool::new(false));
    let submitters: Vec<_> = (0..THREADS)
        .map(|number| {
            let (pool, view, group) = (pool.clone(), view.clone(), group.clone());
            let (ran, submitted) = (Arc::clone(&ran), Arc::clone(&submitted));
            let mut random = fastrand::Rng::with_seed(seed * 1_000 + number + 1);
            thread::spawn(move || {
                for _ in 0..60 {
                    let pool = if random.u64(..3) == 0 { &view } else { &pool };
                    submit_once(&mut random, pool, &group, &ran, &submitted);
                }
            })
        })
        .collect();
    let disturber = {
        let (pool, view, is_over) = (pool.clone(), view.clone(), Arc::clone(&is_over));
        let disturber = thread::Builder::new().name("disturber".into());
        let disturb = move || {
            while !is_over.load(Ordering::SeqCst) {
                match random.u64(..8) {
                    0 | 1 => pool.set_max_size(1 + random.u64(..3) as usize).unwrap(),
                    2 => view.pause(),
                    3 => pool.pause(),
                    4 => view.set_limit(1 + random.u64(..2) as usize).unwrap(),
                    _ => {
                        view.resume();
                        pool.resume();
                    }
                }
                // So that the submitters come in between.
                thread::sleep(std::time::Duration::from_micros(random.u64(..300)));
                view.resume();
                pool.resume();
            }
            pool.set_max_size(2).unwrap();
        };
        disturber.spawn(disturb).unwrap()
    };
    submitters.into_iter().for_each(joined);
    is_over.store(true, Ordering::SeqCst);
    joined(disturber);
    waited(&group).unwrap();
    assert!(pool.join_timeout(LIMIT), "{seed}: {pool:?}");
    assert_eq!(ran.load(Ordering::SeqCst), submitted.load(Ordering::SeqCst), "{seed}");
    // A waker may have the worker still.
    let permits = || (0..2 + capacity).map_while(|_| poll_now(pool.ready())).count();
    wait_until("all permits are free", || permits() == 2 + capacity);
    let stats = pool.stats();
    assert_eq!((stats.blocked, under_way_and_in_line(&group)), (0, (0, 0)), "{seed}");
    futures::executor::block_on(pool.quiet());
    drop(view);
    pool.close();
    futures::executor::block_on(pool.terminated());
}

fn under_way_and_in_line<E>(group: &elastipool::TaskGroup<E>) -> (usize, usize) {
    (common::under_way(group), common::in_line(group))
}

/// What a future resolves to at its first poll.
fn poll_now<T>(future: impl Future<Output = T>) -> Option<T> {
    match std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

fn submit_once(
    random: &mut fastrand::Rng,
    pool: &ThreadPool,
    group: &elastipool::TaskGroup<()>,
    ran: &Arc<AtomicUsize>,
    submitted: &Arc<AtomicUsize>,
) {
    let counted = || {
        submitted.fetch_add(1, Ordering::SeqCst);
        let ran = Arc::clone(ran);
        move || _ = ran.fetch_add(1, Ordering::SeqCst)
    };
    match random.u64(..9) {
        // Gives up, perhaps after it was granted a permit.
        0 => {
            let mut ready = Box::pin(pool.ready());
            let _ = poll_oddly(random, pool, ran, submitted, &mut ready);
            (0..random.u64(..3)).for_each(|_| thread::yield_now());
        }
        1 => {
            let mut ready = Box::pin(group.ready());
            let _ = poll_oddly(random, pool, ran, submitted, &mut ready);
            (0..random.u64(..3)).for_each(|_| thread::yield_now());
        }
        2 => {
            let mut quiet = Box::pin(pool.quiet());
            let _ = poll_oddly(random, pool, ran, submitted, &mut quiet);
        }
        3 => {
            let mut ready = Box::pin(pool.ready());
            let permit = loop {
                match poll_oddly(random, pool, ran, submitted, &mut ready) {
                    Poll::Ready(permit) => break permit.unwrap(),
                    Poll::Pending => thread::park_timeout(millis(1)),
                }
            };
            permit.execute(counted()).unwrap();
        }
        4 => {
            let task = counted();
            let permit = futures::executor::block_on(group.ready()).unwrap();
            permit.execute(ok(task)).unwrap();
        }
        5 => pool.execute(counted()),
        // In a task, in a region.
        6 => {
            let (own, task, outer) = (pool.clone(), counted(), counted());
            pool.execute(move || {
                outer();
                let permit = blocking(|| futures::executor::block_on(own.ready())).unwrap();
                permit.execute(task).unwrap();
            });
        }
        7 => {
            let (own, task, outer) = (pool.clone(), counted(), counted());
            let group = group.clone();
            drop(pool.complete(async move {
                outer();
                drop(own.ready().await.unwrap());
                group.ready().await.unwrap().execute(ok(task)).unwrap();
            }));
        }
        _ => {
            let (own, inner) = (pool.clone(), group.clone());
            let (task, outer, last) = (counted(), counted(), counted());
            let permit = futures::executor::block_on(group.ready()).unwrap();
            let submits = move || {
                outer();
                let permit = futures::executor::block_on(inner.ready()).unwrap();
                permit.execute(ok(task)).unwrap();
                own.execute(last);
                Ok(())
            };
            permit.execute(submits).unwrap();
        }
    }
}

fn ok(task: impl FnOnce()) -> impl FnOnce() -> Result<(), ()> {
    move || {
        task();
        Ok(())
    }
}

/// Neither the measurements nor the starts of the keeper, which others wait for.
#[test]
fn a_waker_that_takes_long_delays_no_start() {
    for growth in [Growth::Stalled(millis(1)), Growth::measured(1)] {
        let builder = ThreadPool::builder().core_size(0).max_size(4).keep_alive(HOUR);
        let (pool, gate) = (builder.growth(growth).build(), Gate::new());
        let task = block(&pool);
        let quiet = blocking_wait(pool.quiet(), &gate);
        task.open();
        gate.wait_for(1);
        let task = block(&pool);
        value(pool.evaluate(|| ()));
        task.open();
        gate.open();
        drop(quiet);
        pool.shutdown_join();
    }
}

/// Two producers that hand each other a permit, in their wakes.
fn pass_a_permit_until_cancelled(
    pool: &ThreadPool,
    group: &TaskGroup<()>,
    each: impl Fn() + Send + Sync + 'static,
) -> [Arc<Inline>; 2] {
    let held = futures::executor::block_on(pool.ready()).unwrap();
    let each = Arc::new(each);
    let producers = [(); 2].map(|()| {
        let (pool, token, each) = (pool.clone(), group.token(), Arc::clone(&each));
        Inline::run(async move {
            while !token.is_cancelled() {
                drop(pool.ready().await.unwrap());
                each();
            }
        })
    });
    drop(held);
    producers
}

#[test]
fn wakers_without_end_do_not_delay_a_deadline() {
    let pool = bounded(2, 0);
    let group = pool.group::<()>();
    let gate = hold(&group);
    let rounds = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&rounds);
    let producers = pass_a_permit_until_cancelled(&pool, &group, move || {
        counts.fetch_add(1, Ordering::Relaxed);
    });
    wait_until("they are at it", || rounds.load(Ordering::Relaxed) > 100);
    group.set_deadline(Instant::now() + millis(1));
    wait_until("the deadline passes", || group.is_cancelled());
    wait_until("they have ended", || producers.iter().all(|one| one.is_over()));
    gate.open();
    pool.shutdown_join();
}

/// Their stack is that of the workers.
#[test]
fn wakers_have_the_stack_of_a_worker() {
    let builder = ThreadPool::builder().core_size(1).max_size(1).stack_size(LARGE_STACK);
    let pool = builder.build();
    let (deep, ends) = mpsc::channel();
    let wake = move || {
        use_much_stack();
        deep.send(()).unwrap();
    };
    let task = block(&pool);
    let (quiet, end) = (waiting(pool.quiet(), wake.clone()), waiting(pool.terminated(), wake));
    task.open();
    ends.recv_timeout(LIMIT).unwrap();
    pool.close();
    ends.recv_timeout(LIMIT).unwrap();
    drop((quiet, end));
}

/// While the system refuses threads, the keeper calls them.
#[cfg(target_os = "linux")]
mod refused {
    use super::*;
    use crate::common::refusal::{Refusal, STACK, in_a_child};

    #[test]
    fn wakers_of_a_refused_helper_do_not_delay_a_deadline() {
        in_a_child("refused::wakers_of_a_refused_helper_do_not_delay_a_deadline", || {
            let builder = ThreadPool::builder().name("waking").core_size(1).max_size(2);
            let builder = builder.queue_capacity(0).stack_size(4 * STACK as usize);
            let pool = builder.build();
            let (group, until) = (pool.group::<()>(), pool.group::<()>());
            let gate = hold(&group);
            let (begin, refusal) = (Instant::now(), Refusal::begin_beyond(1));
            let callers = Arc::new(Mutex::new(String::new()));
            let calls = Arc::clone(&callers);
            let producers = pass_a_permit_until_cancelled(&pool, &until, move || {
                thread::current().name().unwrap().clone_into(&mut calls.lock().unwrap());
            });
            let is_called_by = |name| *callers.lock().unwrap() == name;
            wait_until("it was refused", || pool.stats().threads_refused >= 8);
            let time = begin.elapsed();
            assert!(time >= millis(127), "the pauses do not grow: {time:?}");
            assert!(is_called_by("waking-keeper"));
            group.set_deadline(Instant::now() + millis(1));
            wait_until("the deadline passes", || group.is_cancelled());
            drop(refusal);
            wait_until("the helper goes on", || is_called_by("waking-helper"));
            until.cancel();
            wait_until("they have ended", || producers.iter().all(|one| one.is_over()));
            gate.open();
            assert!(pool.shutdown_join_timeout(LIMIT));
        });
    }
}
