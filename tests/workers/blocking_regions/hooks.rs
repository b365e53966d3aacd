//! Hooks in which a worker blocks.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::task::Poll;
use std::time::Duration;
use std::{mem, thread};

use crate::blocking_regions::assert_is_itself_again;
use crate::common::{Gate, HOUR, LIMIT, block, value, wait_until};
use elastipool::{Builder, ThreadPool, blocking};

type Hook = Box<dyn Fn(usize) + Send + Sync>;

/// A pool whose hook is called with it, by the first worker only.
fn with_hook(
    builder: Builder,
    set: fn(Builder, Hook) -> Builder,
    hook: impl Fn(&ThreadPool) + Send + Sync + 'static,
) -> ThreadPool {
    let own = Arc::new(Mutex::new(None::<ThreadPool>));
    let place = Arc::clone(&own);
    let call = move |_: usize| {
        let own = place.lock().unwrap().take();
        if let Some(own) = own {
            hook(&own);
        }
    };
    let pool = set(builder, Box::new(call)).build();
    *own.lock().unwrap() = Some(pool.clone());
    pool
}

#[test]
fn a_start_hook_may_wait_for_a_task_of_its_pool() {
    for core_size in [0, 1] {
        let (sender, receiver) = std::sync::mpsc::channel();
        let builder = Builder::new().core_size(core_size).max_size(1).keep_alive(HOUR);
        let pool = with_hook(
            builder,
            |builder, hook| builder.on_worker_start(hook),
            move |own| sender.send(own.evaluate(|| 7).await_complete()).unwrap(),
        );
        assert_eq!(value(pool.evaluate(|| 8)), 8);
        assert_eq!(receiver.recv_timeout(LIMIT), Ok(7));
        assert_is_itself_again(&pool);
    }
}

/// Also if its queue is full by then.
#[test]
fn a_start_hook_may_wait_for_a_task_of_its_bounded_pool() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let builder = Builder::new().core_size(1).max_size(1).queue_capacity(0);
    let pool = with_hook(
        builder,
        |builder, hook| builder.on_worker_start(hook),
        move |own| sender.send(own.evaluate(|| 7).await_complete()).unwrap(),
    );
    assert_eq!(value(pool.evaluate(|| 8)), 8);
    assert_eq!(receiver.recv_timeout(LIMIT), Ok(7));
    assert_is_itself_again(&pool);
}

#[test]
fn a_start_hook_that_does_not_return_holds_no_task_back() {
    let (stuck, release) = (Gate::new(), Gate::new());
    let (arrives, waits) = (Arc::clone(&stuck), Arc::clone(&release));
    let builder = Builder::new().core_size(0).max_size(8).keep_alive(HOUR);
    let pool = with_hook(
        builder,
        |builder, hook| builder.on_worker_start(hook),
        move |_| {
            arrives.open();
            waits.pass();
        },
    );
    let first = pool.evaluate(|| ());
    stuck.pass();
    // What it waits for.
    let opens = Arc::clone(&release);
    value(pool.evaluate(move || opens.open()));
    value(first);
    assert_is_itself_again(&pool);
}

/// Workers that were started to run instead would block in the same hook.
#[test]
fn start_hooks_that_block_undeclared_count_as_runnable() {
    let gate = Gate::new();
    let passes = Arc::clone(&gate);
    let builder = Builder::new().core_size(0).max_size(2).keep_alive(HOUR);
    let pool = builder.on_worker_start(move |_| blocking(|| passes.pass())).build();
    let tasks: Vec<_> = (0..3).map(|_| pool.evaluate(|| ())).collect();
    gate.wait_for(2);
    let stats = pool.stats();
    assert_eq!((stats.threads_started, stats.blocked), (2, 0));
    gate.open();
    tasks.into_iter().for_each(value);
    assert_is_itself_again(&pool);
    assert_eq!(pool.stats().threads_started, 2);
}

/// Which waits for a task of the pool, and the first worker is busy.
#[test]
fn start_hooks_that_wait_start_no_more_than_max_size_in_addition() {
    const MAX_SIZE: usize = 2;
    let own = Arc::new(OnceLock::<ThreadPool>::new());
    let place = Arc::clone(&own);
    let builder = Builder::new().core_size(0).max_size(1).keep_alive(HOUR);
    let wait = move |_| {
        if let Some(own) = place.get() {
            value(own.evaluate(|| ()));
        }
    };
    let pool = builder.on_worker_start(wait).build();
    let gate = block(&pool);
    own.set(pool.clone()).unwrap();
    pool.set_max_size(MAX_SIZE).unwrap();
    let task = pool.evaluate(|| ());
    wait_until("as many have come", || pool.current_worker_count() >= 2 * MAX_SIZE);
    // Time for a defect.
    thread::sleep(Duration::from_millis(20));
    let stats = pool.stats();
    assert_eq!((stats.threads_started, stats.blocked), (2 * MAX_SIZE, MAX_SIZE));
    gate.open();
    value(task);
    assert_is_itself_again(&pool);
    assert!(pool.shutdown_join_timeout(LIMIT));
}

#[test]
fn a_stop_hook_may_wait_for_a_task_of_its_pool() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let builder = Builder::new().core_size(0).max_size(1).keep_alive(Duration::from_millis(1));
    let pool = with_hook(
        builder,
        |builder, hook| builder.on_worker_stop(hook),
        move |own| {
            let blocked = blocking(|| own.stats().blocked);
            sender.send((blocked, own.evaluate(|| 7).await_complete())).unwrap();
        },
    );
    assert_eq!(value(pool.evaluate(|| 8)), 8);
    // The worker is counted no longer, so there is no region for it, and no need of one.
    assert_eq!(receiver.recv_timeout(LIMIT), Ok((0, 7)));
    assert_is_itself_again(&pool);
    assert!(pool.shutdown_join_timeout(LIMIT));
}

/// A future that yields has nothing to wait for: its worker stays runnable, though a task is
/// queued.
#[test]
fn a_completion_that_yields_is_in_no_region() {
    let pool = ThreadPool::new(1, 1, HOUR);
    let (queued, is_queued) = mpsc::channel::<()>();
    let completion = pool.complete(async move {
        is_queued.recv().unwrap();
        for _ in 0..1_000 {
            let mut yielded = false;
            poll_fn(|context| {
                if mem::replace(&mut yielded, true) {
                    return Poll::Ready(());
                }
                context.waker().wake_by_ref();
                Poll::Pending
            })
            .await;
        }
    });
    let task = pool.evaluate(|| ());
    queued.send(()).unwrap();
    completion.await_complete();
    task.await_complete();
    assert_eq!(pool.stats().threads_started, 1);
    assert!(pool.shutdown_join_timeout(LIMIT));
}
