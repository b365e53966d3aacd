//! The pool asks again by itself for a thread that was refused, while tasks are queued that need
//! it: nothing is submitted meanwhile, and all workers wait where the pool does not see it.
//!
//! The stacks of these pools' workers do not fit into the memory that is left, but that of the
//! keeper does.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::refusal::{Refusal, STACK, in_a_child};
#[cfg(feature = "async")]
use crate::common::triggered;
use crate::common::{Gate, HOUR, LIMIT, block, value, wait_until, wait_until_asleep};
use elastipool::{Builder, Growth, RejectReason, ThreadPool, View, blocking};

/// How many times in a row a thread is refused.
const TIMES: [usize; 2] = [1, 5];

fn builder(core_size: usize, max_size: usize) -> Builder {
    let sizes = ThreadPool::builder().core_size(core_size).max_size(max_size);
    sizes.keep_alive(HOUR).stack_size(4 * STACK as usize)
}

/// The system refuses the workers' threads, but not that of the keeper.
fn refuse_workers() -> Refusal {
    Refusal::begin_beyond(1)
}

/// The pool's worker waits for what a later task or future sends, by ways that the pool does not
/// see. `submit` submits that one, whose thread is refused.
#[track_caller]
fn assert_asks_again(
    builder: &Builder,
    times: usize,
    submit: impl FnOnce(&ThreadPool, mpsc::Sender<u8>),
) {
    let pool = builder.clone().build();
    let (sender, receiver) = mpsc::channel();
    let gate = Gate::new();
    let arrives = Arc::clone(&gate);
    let waits = pool.evaluate(move || {
        arrives.pass();
        receiver.recv_timeout(LIMIT)
    });
    gate.wait_for(1);
    gate.open();
    let refusal = refuse_workers();
    submit(&pool, sender);
    wait_until("it was refused", || pool.stats().threads_refused >= times);
    assert_eq!(pool.stats().queued, 1);
    drop(refusal);
    assert_eq!(value(waits), Ok(7), "the task that it waits for has run");
    assert!(pool.join_timeout(LIMIT));
    assert!(pool.shutdown_join_timeout(LIMIT));
}

#[test]
fn a_task_runs_that_was_refused_a_thread() {
    in_a_child("asks_again::a_task_runs_that_was_refused_a_thread", || {
        for times in TIMES {
            for core_size in [0, 1, 2] {
                assert_asks_again(&builder(core_size, 2), times, |pool, sender| {
                    pool.execute(move || sender.send(7).unwrap());
                });
            }
            let stalled = builder(0, 2).growth(Growth::Stalled(Duration::from_millis(1)));
            assert_asks_again(&stalled, times, |pool, sender| {
                pool.execute(move || sender.send(7).unwrap());
            });
            let bounded = builder(0, 2).queue_capacity(4);
            assert_asks_again(&bounded, times, |pool, sender| {
                pool.execute(move || sender.send(7).unwrap());
            });
        }
    });
}

#[test]
fn a_call_of_a_handler_runs_that_was_refused_a_thread() {
    in_a_child("asks_again::a_call_of_a_handler_runs_that_was_refused_a_thread", || {
        for times in TIMES {
            assert_asks_again(&builder(0, 2), times, |pool, sender| {
                pool.handler(move |number: u8| sender.send(number).unwrap()).invoke(7);
            });
        }
    });
}

#[test]
fn a_task_of_a_view_runs_that_was_refused_a_thread() {
    in_a_child("asks_again::a_task_of_a_view_runs_that_was_refused_a_thread", || {
        for times in TIMES {
            assert_asks_again(&builder(0, 2), times, |pool, sender| {
                let view: View = pool.view().limit(1).build();
                view.execute(move || sender.send(7).unwrap());
            });
        }
    });
}

#[cfg(feature = "async")]
#[test]
fn a_woken_future_runs_that_was_refused_a_thread() {
    in_a_child("asks_again::a_woken_future_runs_that_was_refused_a_thread", || {
        for times in TIMES {
            let pool = builder(0, 2).build();
            let (trigger, triggered) = triggered();
            let (sender, receiver) = mpsc::channel();
            pool.spawn(async move {
                triggered.await;
                sender.send(7).unwrap();
            });
            // Otherwise the next task might start a second worker.
            wait_until("its worker is idle", || trigger.polls() == 1 && pool.stats().idle == 1);
            let gate = Gate::new();
            let arrives = Arc::clone(&gate);
            let waits = pool.evaluate(move || {
                arrives.pass();
                receiver.recv_timeout(LIMIT)
            });
            gate.wait_for(1);
            gate.open();
            let refusal = refuse_workers();
            trigger.fire();
            wait_until("it was refused", || pool.stats().threads_refused >= times);
            drop(refusal);
            assert_eq!(value(waits), Ok(7), "the future was polled");
            assert!(pool.shutdown_join_timeout(LIMIT));
        }
    });
}

/// The wait for another task, in a pool of one: what it waits for needs another worker. And a
/// region of the user's.
#[test]
fn a_worker_in_a_region_is_replaced_whose_thread_was_refused() {
    in_a_child("asks_again::a_worker_in_a_region_is_replaced_whose_thread_was_refused", || {
        let waits: [fn(&ThreadPool, Refusal) -> u8; 2] = [
            |pool, refusal| {
                let (sender, receiver) = mpsc::channel();
                pool.execute(move || sender.send(7).unwrap());
                end_later(pool, refusal);
                blocking(|| receiver.recv_timeout(LIMIT)).unwrap()
            },
            |pool, refusal| {
                let handle = pool.evaluate(|| 7);
                end_later(pool, refusal);
                handle.await_complete_timeout(LIMIT).expect("it has run").unwrap()
            },
        ];
        for wait in waits {
            let pool = builder(1, 1).build();
            let own = pool.clone();
            let task = pool.evaluate(move || {
                let refusal = refuse_workers();
                wait(&own, refusal)
            });
            assert_eq!(value(task), 7);
            assert!(pool.shutdown_join_timeout(LIMIT));
        }
    });
}

/// Another thread ends the refusal once the pool was refused a thread five times.
fn end_later(pool: &ThreadPool, refusal: Refusal) {
    let pool = pool.clone();
    // On a small stack, which fits.
    let ends = thread::Builder::new().stack_size(1 << 20).spawn(move || {
        wait_until("it was refused", || pool.stats().threads_refused >= 5);
        drop(refusal);
    });
    ends.unwrap();
}

/// While threads are refused for good, the pauses grow: a pool that can do nothing uses no CPU.
#[test]
fn a_pool_that_asks_again_uses_no_cpu() {
    in_a_child("asks_again::a_pool_that_asks_again_uses_no_cpu", || {
        let pool = builder(0, 2).name("asking").build();
        let gate = Gate::new();
        let passes = Arc::clone(&gate);
        pool.execute(move || passes.pass());
        gate.wait_for(1);
        let refusal = refuse_workers();
        let queued = pool.evaluate(|| 7);
        wait_until_asleep(1, Duration::from_millis(200), |name| name == "asking-keeper");
        assert!(pool.stats().threads_refused >= 8, "each pause is twice as long");
        drop(refusal);
        assert_eq!(value(queued), 7);
        gate.open();
        assert!(pool.shutdown_join_timeout(LIMIT));
    });
}

/// In a pool that measures its workers, and with a future that a poll has left behind, the keeper
/// looks at the queue at other times too.
#[test]
fn no_other_look_of_the_keeper_asks_for_a_refused_thread() {
    in_a_child("asks_again::no_other_look_of_the_keeper_asks_for_a_refused_thread", || {
        let pool = builder(0, 4).growth(Growth::measured(1)).build();
        let gate = block(&pool);
        let (begin, refusal) = (Instant::now(), refuse_workers());
        let queued = pool.evaluate(|| 7);
        assert_pauses_grow(&pool, begin);
        drop(refusal);
        assert_eq!(value(queued), 7);
        gate.open();
        assert!(pool.shutdown_join_timeout(LIMIT));
    });
}

#[cfg(feature = "async")]
#[test]
fn a_look_at_futures_that_are_left_behind_asks_for_no_refused_thread() {
    in_a_child(
        "asks_again::a_look_at_futures_that_are_left_behind_asks_for_no_refused_thread",
        || {
            let pool = builder(0, 2).build();
            let (trigger, triggered) = triggered();
            let left_behind = pool.spawn_await(async move {
                triggered.await;
                7
            });
            wait_until("its worker is idle", || trigger.polls() == 1 && pool.stats().idle == 1);
            let gate = Gate::new();
            let passes = Arc::clone(&gate);
            let (begin, refusal) = (Instant::now(), refuse_workers());
            let mut has_yielded = false;
            // A woken poll that wakes another one, and then blocks.
            pool.spawn(std::future::poll_fn(move |context| {
                if !std::mem::replace(&mut has_yielded, true) {
                    context.waker().wake_by_ref();
                    return std::task::Poll::Pending;
                }
                trigger.fire();
                passes.pass();
                std::task::Poll::Ready(())
            }));
            assert_pauses_grow(&pool, begin);
            drop(refusal);
            assert_eq!(value(left_behind), 7);
            gate.open();
            assert!(pool.shutdown_join_timeout(LIMIT));
        },
    );
}

/// The pauses: 1 ms, then 2, 4, 8, and so on. Two refusals may be none of the keeper's.
#[track_caller]
fn assert_pauses_grow(pool: &ThreadPool, begin: Instant) {
    wait_until("it was refused", || pool.stats().threads_refused >= 11);
    let time = begin.elapsed();
    assert!(time >= Duration::from_millis(255), "{time:?}");
}

/// The task that needed the thread runs on the worker that there is. Then nothing asks any more.
#[test]
fn a_pool_asks_no_more_when_nothing_is_queued() {
    in_a_child("asks_again::a_pool_asks_no_more_when_nothing_is_queued", || {
        let pool = builder(0, 2).build();
        let gate = Gate::new();
        let passes = Arc::clone(&gate);
        pool.execute(move || passes.pass());
        gate.wait_for(1);
        let refusal = refuse_workers();
        let queued = pool.evaluate(|| 7);
        wait_until("it asks again", || pool.stats().threads_refused >= 3);
        gate.open();
        assert_eq!(value(queued), 7);
        let refused = pool.stats().threads_refused;
        // Time for a defect: more than the next pause.
        thread::sleep(Duration::from_millis(50));
        assert!(pool.stats().threads_refused <= refused + 1);
        drop(refusal);
        assert_eq!(pool.stats().threads_started, 1);
        assert!(pool.shutdown_join_timeout(LIMIT));
    });
}

/// All threads are refused for a while, not only once, and then nothing calls the pool: its only
/// worker waits unseen, and this thread for what the worker sends.
#[test]
fn a_pool_that_nothing_calls_asks_again() {
    in_a_child("asks_again::a_pool_that_nothing_calls_asks_again", || {
        let pool = ThreadPool::builder().core_size(0).max_size(2).keep_alive(HOUR).build();
        let (sender, receiver) = mpsc::channel();
        let (to_this, from_worker) = mpsc::channel();
        let gate = Gate::new();
        let arrives = Arc::clone(&gate);
        pool.execute(move || {
            arrives.pass();
            to_this.send(receiver.recv_timeout(LIMIT)).unwrap();
        });
        gate.wait_for(1);
        gate.open();
        let refusal = Refusal::begin();
        pool.execute(move || sender.send(7).unwrap());
        // Time is the subject: a refusal that lasts.
        thread::sleep(Duration::from_millis(200));
        drop(refusal);
        assert_eq!(from_worker.recv_timeout(LIMIT), Ok(Ok(7)));
        assert!(pool.shutdown_join_timeout(LIMIT));
    });
}

/// There is no worker without a keeper. The workers' stacks fit into the memory that is left, but
/// that of the keeper does not.
#[test]
fn a_task_comes_back_if_the_keeper_is_refused() {
    in_a_child("asks_again::a_task_comes_back_if_the_keeper_is_refused", || {
        let small = ThreadPool::builder().core_size(1).max_size(2).stack_size(1 << 20);
        let pool = small.build();
        let refusal = Refusal::begin();
        let rejected = pool.try_execute(|| ()).unwrap_err();
        assert_eq!(rejected.reason(), RejectReason::NoThread);
        assert_eq!(pool.stats().workers, 0);
        drop(refusal);
        pool.execute(rejected.into_task());
        assert!(pool.join_timeout(LIMIT));
        assert_eq!(pool.stats().workers, 1);
        assert!(pool.shutdown_join_timeout(LIMIT));
    });
}

/// The keeper leaves after the last worker, and comes back with the next one.
#[cfg(target_os = "linux")]
#[test]
fn the_keeper_comes_and_goes_with_the_workers() {
    let pool =
        ThreadPool::builder().name("comes").core_size(0).keep_alive(Duration::from_millis(1));
    let pool = pool.build();
    let asleep = |count| {
        wait_until_asleep(count, Duration::from_millis(1), |name| name.starts_with("comes-"));
    };
    for _ in 0..3 {
        let gate = Gate::new();
        let passes = Arc::clone(&gate);
        pool.execute(move || passes.pass());
        gate.wait_for(1);
        asleep(2);
        gate.open();
        wait_until("the last worker has left", || pool.stats().workers == 0);
        asleep(0);
    }
    assert!(pool.shutdown_join_timeout(LIMIT));
}
