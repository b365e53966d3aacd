//! A task of some hundred KiB costs its submitter and its worker no more stack than a thread's own
//! closure of that size: unoptimised code copies it in each function that it passes through. A
//! defect here overflows a stack, and aborts the test.

use crate::common;

use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;
use std::thread;

use common::{HOUR, LIMIT, settled, value, wait_until};
use elastipool::{Builder, JoinHandle, Permit, ThreadPool};
#[cfg(feature = "async")]
use futures::task::SpawnExt;

/// The size of a task, in bytes.
const SIZE: usize = 400 << 10;

/// The stack of a submitter. In an unoptimised build `std::thread::spawn` copies its closure 9
/// times.
const SUBMITTERS_STACK: usize = 9 * SIZE;

/// The stack of a worker. A thread of `std` copies its closure 12 times.
const WORKERS_STACK: usize = 5 * SIZE;

/// Runs `submit` on a thread with a small stack, and the tasks on workers with small stacks.
fn submit_from_small_stack(name: &str, is_closed: bool, submit: fn(&ThreadPool)) {
    let builder = Builder::new().core_size(1).max_size(1).keep_alive(HOUR).name(name);
    let pool = builder.stack_size(WORKERS_STACK).build();
    if is_closed {
        pool.close();
    }
    let submitters = pool.clone();
    let submitter = thread::Builder::new()
        .name(name.to_owned())
        .stack_size(SUBMITTERS_STACK)
        .spawn(move || submit(&submitters))
        .unwrap();
    common::joined(submitter);
    assert!(pool.shutdown_join_timeout(LIMIT));
}

/// A closure of [`SIZE`] bytes that calls another with 7.
macro_rules! large {
    ($then:expr) => {{
        let captured = [7_u8; SIZE];
        move || $then(black_box(&captured)[SIZE - 1])
    }};
}

/// A future of [`SIZE`] bytes that calls a closure with 7.
#[cfg(feature = "async")]
macro_rules! large_future {
    ($then:expr) => {{
        let captured = [7_u8; SIZE];
        async move {
            std::future::ready(()).await;
            $then(black_box(&captured)[SIZE - 1])
        }
    }};
}

macro_rules! tests {
    ($($name:ident, $is_closed:literal, $submit:expr;)*) => {$(
        #[test]
        fn $name() {
            submit_from_small_stack(stringify!($name), $is_closed, $submit);
        }
    )*};
}

fn assert_seven(number: u8) {
    assert_eq!(number, 7);
}

fn permit(pool: &ThreadPool) -> Permit {
    futures::executor::block_on(pool.ready()).unwrap()
}

fn assert_panics(call: impl FnOnce()) {
    catch_unwind(AssertUnwindSafe(call)).unwrap_err();
}

/// All tasks have ended, and none has panicked.
#[track_caller]
fn assert_completed(pool: &ThreadPool) {
    assert!(pool.join_timeout(LIMIT));
    assert_eq!((pool.stats().completed, pool.stats().panicked), (1, 0));
}

tests! {
    execute, false, |pool| {
        pool.execute(large!(assert_seven));
        assert_completed(pool);
    };
    execute_rejected, true, |pool| assert_panics(|| pool.execute(large!(assert_seven)));
    try_execute, false, |pool| {
        assert!(pool.try_execute(large!(assert_seven)).is_ok());
        assert_completed(pool);
    };
    try_execute_rejected, true, |pool| assert!(pool.try_execute(large!(assert_seven)).is_err());
    try_execute_for, false, |pool| {
        assert!(pool.try_execute_for(large!(assert_seven), LIMIT).is_ok());
        assert_completed(pool);
    };
    evaluate, false, |pool| assert_eq!(value(pool.evaluate(large!(u32::from))), 7);
    evaluate_rejected, true, |pool| assert!(settled(pool.evaluate(large!(u32::from))).is_err());
    try_evaluate, false, |pool| assert_eq!(value(pool.try_evaluate(large!(u32::from)).unwrap()), 7);
    permit_execute, false, |pool| {
        assert!(permit(pool).execute(large!(assert_seven)).is_ok());
        assert_completed(pool);
    };
    permit_execute_rejected, false, |pool| {
        let permit = permit(pool);
        drop(pool.shutdown_now());
        assert!(permit.execute(large!(assert_seven)).is_err());
    };
    permit_evaluate, false, |pool| assert_eq!(value(permit(pool).evaluate(large!(u32::from))), 7);
    group_permit, false, |pool| {
        let group = pool.group::<()>();
        let permit = futures::executor::block_on(group.ready()).unwrap();
        assert_eq!(value(permit.evaluate(large!(u32::from))), 7);
    };
    scope_body, false, |pool| {
        let captured = [7_u8; SIZE];
        pool.scope(move |_| assert_seven(black_box(&captured)[0]));
    };
    scope_execute, false, |pool| {
        let mut written = 0;
        let place = &mut written;
        pool.scope(|scope| scope.execute(large!(|seven| *place = seven)));
        assert_eq!(written, 7);
    };
    scope_evaluate, false, |pool| {
        let result = pool.scope(|scope| scope.evaluate(large!(u32::from)).await_complete());
        assert_eq!(result, 7);
    };
    scope_try_evaluate, false, |pool| {
        pool.scope(|scope| {
            let Ok(handle) = scope.try_evaluate(large!(u32::from)) else { panic!("rejected") };
            assert_eq!(handle.await_complete(), 7);
        });
    };
    group, false, |pool| {
        let group = pool.group();
        assert!(group.execute(large!(Err)).is_ok());
        assert_eq!(common::failure(&group).to_string(), "7");
    };
    group_rejected, true, |pool| {
        let group = pool.group::<u8>();
        assert!(group.execute(large!(Err)).is_err());
    };
    group_evaluate, false, |pool| {
        let group = pool.group::<()>();
        assert_eq!(value(group.evaluate(large!(u32::from))), 7);
    };
    group_evaluate_rejected, true, |pool| {
        let group = pool.group::<()>();
        assert!(settled(group.evaluate(large!(u32::from))).is_err());
    };
    group_evaluate_cancelled, false, |pool| {
        let group = pool.group::<()>();
        group.cancel();
        assert!(settled(group.evaluate(large!(u32::from))).is_err());
    };
    group_try_evaluate, false, |pool| {
        let group = pool.group::<()>();
        let Ok(handle) = group.try_evaluate(large!(u32::from)) else { panic!("rejected") };
        assert_eq!(value(handle), 7);
    };
    group_try_evaluate_rejected, true, |pool| {
        let group = pool.group::<()>();
        assert!(group.try_evaluate(large!(u32::from)).is_err());
    };
    handler, false, |pool| {
        let handler = pool.handler(|argument: [u8; SIZE]| assert_seven(black_box(&argument)[0]));
        handler.invoke([7; SIZE]);
        assert_completed(pool);
    };
    handler_invoke_rejected, true, |pool| {
        let handler = pool.handler(|argument: [u8; SIZE]| assert_seven(black_box(&argument)[0]));
        assert_panics(|| handler.invoke([7; SIZE]));
    };
    handler_try_invoke, false, |pool| {
        let handler = pool.handler(|argument: [u8; SIZE]| assert_seven(black_box(&argument)[0]));
        assert!(handler.try_invoke([7; SIZE]).is_ok());
        assert_completed(pool);
    };
    handler_try_invoke_rejected, true, |pool| {
        let handler = pool.handler(|argument: [u8; SIZE]| assert_seven(black_box(&argument)[0]));
        assert!(handler.try_invoke([7; SIZE]).is_err());
    };
    complete, false, |pool| {
        let captured = [7_u8; SIZE];
        let future = std::future::poll_fn(move |_| Poll::Ready(black_box(&captured)[0]));
        assert_eq!(value(pool.complete(future)), 7);
    };
}

#[cfg(feature = "async")]
tests! {
    spawn, false, |pool| {
        pool.spawn(large_future!(assert_seven));
        assert_completed(pool);
    };
    spawn_await, false, |pool| assert_eq!(value(pool.spawn_await(large_future!(u32::from))), 7);
    permit_spawn_await, false, |pool| {
        assert_eq!(value(permit(pool).spawn_await(large_future!(u32::from))), 7);
    };
    try_spawn_await, false, |pool| {
        let Ok(handle) = pool.try_spawn_await(large_future!(u32::from)) else { panic!("rejected") };
        assert_eq!(value(handle), 7);
    };
    scope_spawn, false, |pool| {
        let mut written = 0;
        let place = &mut written;
        pool.scope(|scope| scope.spawn(large_future!(|seven| *place = seven)));
        assert_eq!(written, 7);
    };
    scope_spawn_rejected, true, |pool| {
        pool.scope(|scope| assert_panics(|| scope.spawn(large_future!(assert_seven))));
    };
    scope_spawn_await, false, |pool| {
        let result = pool.scope(|s| s.spawn_await(large_future!(u32::from)).await_complete());
        assert_eq!(result, 7);
    };
    group_spawn, false, |pool| {
        let group = pool.group();
        assert!(group.spawn(large_future!(Err)).is_ok());
        assert_eq!(common::failure(&group).to_string(), "7");
    };
    group_spawn_rejected, true, |pool| {
        let group = pool.group::<u8>();
        assert!(group.spawn(large_future!(Err)).is_err());
    };
    group_spawn_await, false, |pool| {
        let group = pool.group::<()>();
        assert_eq!(value(group.spawn_await(large_future!(u32::from))), 7);
    };
    group_spawn_await_rejected, true, |pool| {
        let group = pool.group::<()>();
        assert!(settled(group.spawn_await(large_future!(u32::from))).is_err());
    };
    group_try_spawn_await, false, |pool| {
        let group = pool.group::<()>();
        let Ok(handle) = group.try_spawn_await(large_future!(u32::from)) else { panic!("rejected") };
        assert_eq!(value(handle), 7);
    };
    spawn_trait, false, |pool| {
        assert!(SpawnExt::spawn(pool, large_future!(assert_seven)).is_ok());
        assert_completed(pool);
    };
    spawn_trait_rejected, true, |pool| {
        assert!(SpawnExt::spawn(pool, large_future!(assert_seven)).is_err());
    };
}

/// Handles are moved a lot: into vectors, by their waits.
#[test]
fn a_handle_has_no_space_for_the_result() {
    assert_eq!(size_of::<JoinHandle<[u8; 1 << 20]>>(), size_of::<JoinHandle<()>>());
    let pool = ThreadPool::new(1, 1, HOUR);
    let handle = pool.evaluate(|| [7_u8; 1 << 14]);
    wait_until("the task finishes", || handle.is_finished());
    assert!(handle.is_finished(), "asked twice");
    assert!(handle.await_complete().iter().all(|&byte| byte == 7));
}
