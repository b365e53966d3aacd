//! What a program does wrong says what to do instead: the text of each panic, and of each error
//! that is unwrapped, names the wrong value or call, and another one.

use crate::common;

use std::panic::catch_unwind;
use std::time::Duration;

use common::{HOUR, block};
use elastipool::{Growth, ThreadPool};

fn closed() -> ThreadPool {
    let pool = ThreadPool::default();
    pool.close();
    pool
}

/// Makes a wrong call, which panics.
type Wrong = fn();

/// What a call panics with, a constant text or one that was made at run time.
fn text_of(wrong: Wrong) -> String {
    let payload = catch_unwind(wrong).expect_err("does not panic");
    let constant = payload.downcast_ref::<&str>().map(|text| text.to_string());
    constant.or_else(|| payload.downcast_ref().cloned()).expect("panics with a text")
}

#[test]
fn each_wrong_call_says_what_to_do() {
    let calls: [(Wrong, &[&str]); 23] = [
        // A closed pool.
        (|| closed().execute(|| ()), &["pool is closed", "`try_execute`"]),
        (|| closed().try_execute(|| ()).unwrap(), &["pool is closed", "`into_task`"]),
        (|| closed().evaluate(|| ()).await_complete(), &["is closed", "`try_await_complete`"]),
        (|| closed().map(0..1, drop).for_each(drop), &["is closed", "`evaluate`"]),
        (|| closed().handler(drop).invoke(0), &["is closed", "`try_invoke`"]),
        (|| closed().scope(|scope| scope.for_each(0..1, drop)), &["is closed", "`try_execute`"]),
        // Numbers that make no sense, where they panic and where their error is unwrapped.
        (|| drop(ThreadPool::fixed(0)), &["max_size is 0", "at least 1"]),
        (|| drop(ThreadPool::new(4, 2, HOUR)), &["max_size is 2", "core_size, which is 4"]),
        (|| ThreadPool::fixed(2).set_core_size(4).unwrap(), &["max_size is 2", "which is 4"]),
        (|| ThreadPool::fixed(2).set_max_size(0).unwrap(), &["max_size is 0", "at least 1"]),
        (|| drop(ThreadPool::default().view().limit(0).build()), &["limit", "pause it"]),
        (|| ThreadPool::default().view().build().set_limit(0).unwrap(), &["limit", "pause it"]),
        (|| ThreadPool::default().view().build().set_weight(0).unwrap(), &["weight", "at least 1"]),
        (
            || drop(ThreadPool::fixed(2).view().reserve(2).build()),
            &["reserve 2", "leave at least one"],
        ),
        (|| drop(ThreadPool::default().group::<()>().limit(0)), &["limit", "do not set it"]),
        (|| drop(ThreadPool::default().map(0..1, drop).in_flight(0)), &["in flight", "at least 1"]),
        (stalled_at_once, &["Stalled", "Growth::Eager"]),
        // Waits that could never end.
        (join_in_a_task, &["`join`", "wait for the handles"]),
        (join_of_a_paused_view, &["a view of the pool", "Call `resume` first", "`join_running`"]),
        // Results and tasks.
        (full, &["queue is full", "`try_`", "`into_task`"]),
        (cancelled, &["was cancelled", "`try_await_complete`"]),
        (submit_to_a_failed_group, &["group was cancelled", "`wait` of the group", "`into_task`"]),
        (polled_again, &["after a poll", "`is_terminated`"]),
    ];
    for (number, (call, parts)) in calls.into_iter().enumerate() {
        let text = text_of(call);
        for part in parts {
            assert!(text.contains(part), "call {number}: {part:?} is missing in {text:?}");
        }
    }
}

fn stalled_at_once() {
    drop(ThreadPool::builder().growth(Growth::Stalled(Duration::ZERO)).build());
}

fn join_in_a_task() {
    let pool = ThreadPool::fixed(1);
    let own = pool.clone();
    pool.evaluate(move || own.join()).await_complete();
}

fn join_of_a_paused_view() {
    let pool = ThreadPool::fixed(1);
    let imports = pool.view().build();
    imports.pause();
    imports.execute(|| ());
    pool.join();
}

fn full() {
    let pool = ThreadPool::builder().core_size(1).max_size(1).queue_capacity(0).build();
    let _gate = block(&pool);
    pool.try_execute(|| ()).unwrap();
}

fn cancelled() {
    let pool = ThreadPool::fixed(1);
    let _gate = block(&pool);
    let handle = pool.evaluate(|| ());
    handle.cancel();
    handle.cancel();
    handle.await_complete();
}

fn submit_to_a_failed_group() {
    let pool = ThreadPool::fixed(1);
    let group = pool.group::<&str>();
    group.cancel();
    group.execute(|| Ok(())).unwrap();
}

fn polled_again() {
    let pool = ThreadPool::fixed(1);
    let mut handle = pool.evaluate(|| ());
    for _ in 0..2 {
        futures::executor::block_on(&mut handle).unwrap();
    }
}
