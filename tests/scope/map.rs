//! `map` and `try_map`: which results come in which order, how far ahead inputs are taken, what
//! ends it, and that its waits are those of handles.

use crate::common;

use std::collections::BTreeSet;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Context;
use std::thread;

use common::{
    CountingWaker, Drops, Gate, HOUR, block, dawdle, millis, panic_text, settled, value, wait_until,
};
use elastipool::{Growth, Map, MapStream, ThreadPool, blocking};
use futures::stream::FusedStream;
use futures::{Stream, StreamExt};

fn pool(max_size: usize) -> ThreadPool {
    ThreadPool::new(1, max_size, HOUR)
}

/// Runs `test` on a thread, which must not take for ever.
fn in_time<R: Send + 'static>(test: impl FnOnce() -> R + Send + 'static) -> R {
    let watcher = ThreadPool::new(1, 1, HOUR);
    value(watcher.evaluate(test))
}

/// Counts the inputs that are taken.
fn counted(inputs: impl Iterator<Item = usize>) -> (Arc<AtomicUsize>, impl Iterator<Item = usize>) {
    let taken = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&taken);
    let inputs = inputs.inspect(move |_| _ = counter.fetch_add(1, Ordering::SeqCst));
    (taken, inputs)
}

// ----- which results, in which order -----

#[test]
fn results_come_in_the_order_of_the_inputs() {
    let pool = pool(4);
    let squares = pool.map(0..2_000, |n: u64| (dawdle(2_000), n * n).1);
    assert!(squares.eq((0..2_000).map(|n| n * n)));
    assert_eq!(pool.map([0; 0], |n| n).next(), None);
    assert_eq!(pool.map([1, 2, 3], |n| n).unordered().in_flight(1).collect::<Vec<_>>(), [1, 2, 3]);
    pool.shutdown_join();
}

#[test]
fn in_the_order_of_completion_a_slow_call_delays_no_other() {
    let pool = pool(2);
    let gate = Gate::new();
    let passes = Arc::clone(&gate);
    let wait_at_first = move |n| {
        if n == 0 {
            passes.pass();
        }
    };
    let mut results = pool.map(0..100, move |n| (wait_at_first(n), n).1).unordered();
    let others: BTreeSet<usize> = results.by_ref().take(99).collect();
    assert_eq!(others, (1..100).collect());
    gate.open();
    assert_eq!((results.next(), results.next()), (Some(0), None));
}

#[test]
fn the_order_may_change_in_the_middle() {
    let pool = pool(4);
    let mut results = pool.map(0..50, |n| (dawdle(2_000), n).1);
    assert_eq!(results.by_ref().take(10).collect::<Vec<_>>(), (0..10).collect::<Vec<_>>());
    let rest: BTreeSet<i32> = results.unordered().collect();
    assert_eq!(rest, (10..50).collect());
}

#[test]
fn a_panic_resumes_at_its_input_and_the_next_call_goes_on() {
    let pool = pool(4);
    let odd = |n: i32| if n % 2 == 1 { panic!("{n} is odd") } else { n };
    let mut results = pool.map(0..20, odd);
    for n in 0..20 {
        match n % 2 {
            0 => assert_eq!(results.next(), Some(n)),
            _ => assert_eq!(panic_text(|| results.next()), format!("{n} is odd")),
        }
    }
    assert_eq!(results.next(), None);
    let mut results = pool.map(0..20, odd).unordered();
    let mut next = || catch_unwind(AssertUnwindSafe(|| results.next()));
    let panics = std::iter::from_fn(|| next().map_or(Some(true), |next| next.map(|_| false)));
    assert_eq!(panics.filter(|panicked| *panicked).count(), 10);
}

// ----- how many inputs -----

#[test]
fn no_more_inputs_are_taken_than_may_be_in_flight() {
    let pool = pool(4);
    for is_ordered in [true, false] {
        let (taken, inputs) = counted(0..);
        let results = pool.map(inputs, |n| n).in_flight(5);
        assert_eq!(taken.load(Ordering::SeqCst), 0, "before the first result is asked for");
        let mut results = if is_ordered { results } else { results.unordered() };
        for returned in 0..100 {
            assert!(results.next().is_some());
            assert_eq!(taken.load(Ordering::SeqCst), returned + 5);
        }
    }
}

#[test]
fn as_many_calls_run_at_a_time_as_may_be_in_flight() {
    let pool = pool(8);
    let seats = Gate::new();
    assert_eq!(pool.map(0..8, move |_| seats.meet(8)).in_flight(8).count(), 8);
}

/// Takes results of calls that sleep until `wanted` of them have run at a time.
fn grow(pool: &ThreadPool, wanted: usize) {
    let running = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&most);
    let sleep = move |_: u64| {
        most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        thread::sleep(millis(1));
        running.fetch_sub(1, Ordering::SeqCst);
        Ok::<_, ()>(())
    };
    let mut results = pool.try_map(0.., sleep);
    let has_grown = || seen.load(Ordering::SeqCst) >= wanted;
    wait_until("as many run", || results.next().is_some() && has_grown());
}

#[test]
fn calls_that_sleep_let_the_default_pool_grow() {
    let pool = ThreadPool::default();
    grow(&pool, pool.max_size().min(4 * pool.core_size()));
}

#[test]
fn one_input_for_each_worker_that_may_run_is_in_flight_and_one_for_each_cpu() {
    let cpus = ThreadPool::default().core_size();
    let max_size = 4 * cpus;
    let pool = ThreadPool::builder().growth(Growth::measured(cpus)).max_size(max_size).build();
    grow(&pool, max_size);
    let (taken, inputs) = counted(0..);
    let mut results = pool.map(inputs, |n| n);
    let mut most = 0;
    for returned in 0..2_000 {
        results.next();
        most = most.max(taken.load(Ordering::SeqCst) - returned);
    }
    assert!((2 * cpus + 1..=max_size + cpus).contains(&most), "{most} in flight");
}

#[test]
fn the_inputs_are_dropped_at_their_end() {
    let pool = pool(1);
    let drops = Drops::default();
    let issued = drops.issue();
    let inputs = (0..2).map(move |n| (&issued, n).1);
    let mut results = pool.map(inputs, |n| n).in_flight(3);
    assert_eq!(results.next(), Some(0));
    assert_eq!(drops.count(), 1);
    assert_eq!((results.next(), results.next(), results.next()), (Some(1), None, None));
}

#[test]
fn the_size_hint_counts_what_is_in_flight() {
    let pool = pool(1);
    let mut results = pool.map(0..10, |n| n).in_flight(3);
    assert_eq!(results.size_hint(), (10, Some(10)));
    results.next();
    assert_eq!(results.size_hint(), (9, Some(9)));
    assert_eq!(results.by_ref().count(), 9);
    assert_eq!(results.size_hint(), (0, Some(0)));
    let endless = pool.map(0.., |n: u8| n);
    assert_eq!(endless.size_hint(), (usize::MAX, None));
    assert_eq!(pool.try_map([1, 2], Ok::<_, ()>).size_hint(), (0, Some(2)));
}

#[test]
#[should_panic = "it must be at least 1"]
fn none_in_flight_is_an_error() {
    drop(pool(1).map(0..10, |n| n).in_flight(0));
}

// ----- its end -----

#[test]
fn the_first_error_ends_it() {
    let pool = pool(1);
    let (taken, inputs) = counted(0..);
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    let gate = Gate::new();
    let passes = Arc::clone(&gate);
    let function = move |n| {
        count.fetch_add(1, Ordering::SeqCst);
        match n {
            7 => Err("seven"),
            8 => Ok((passes.pass(), n).1),
            _ => Ok(n),
        }
    };
    let mut results = pool.try_map(inputs, function).in_flight(10);
    for n in 0..7 {
        assert_eq!(results.next(), Some(Ok(n)));
    }
    // The only worker is held by the call of 8 when the error is found, or has not begun it.
    assert_eq!(results.next(), Some(Err("seven")));
    assert_eq!(results.next(), None);
    assert_eq!(taken.load(Ordering::SeqCst), 17);
    gate.open();
    pool.join();
    let calls = calls.load(Ordering::SeqCst);
    assert!((8..=9).contains(&calls), "{calls} calls");
    let stats = pool.stats();
    assert_eq!(stats.completed + stats.cancelled, 17);
}

#[test]
fn an_error_in_the_order_of_completion_ends_it_too() {
    let pool = pool(2);
    let gate = Gate::new();
    let passes = Arc::clone(&gate);
    let function = move |n| match n {
        0 => {
            passes.pass();
            Ok(())
        }
        _ => Err(n),
    };
    let mut results = pool.try_map(0.., function).unordered();
    assert!(matches!(results.next(), Some(Err(_))));
    assert_eq!(results.next(), None);
    gate.open();
    pool.shutdown_join();
}

#[test]
fn dropping_it_cancels_what_is_queued_and_drops_its_inputs() {
    for is_ordered in [true, false] {
        let pool = pool(1);
        let drops = Drops::default();
        let issues = drops.clone();
        let gate = Gate::new();
        let passes = Arc::clone(&gate);
        let inputs = (0..).map(move |n| (n, issues.issue()));
        let hold_second = move |n| {
            if n == 1 {
                passes.pass();
            }
        };
        let results = pool.map(inputs, move |(n, _input)| hold_second(n)).in_flight(6);
        let mut results = if is_ordered { results } else { results.unordered() };
        assert!(results.next().is_some());
        gate.wait_for(1);
        drop(results);
        // That of the call which runs is left.
        assert_eq!(drops.count(), 5);
        gate.open();
        pool.join();
        assert_eq!((drops.count(), pool.stats().cancelled), (6, 4));
    }
}

#[test]
fn it_keeps_the_pool_open() {
    let results = pool(2).map(0..100, |n| n);
    assert_eq!(results.sum::<u32>(), 4_950);
}

#[test]
fn a_closed_pool_ends_it_after_the_results_of_accepted_calls() {
    let pool = pool(1);
    let mut results = pool.map(0.., |n| n).in_flight(3);
    assert_eq!(results.next(), Some(0));
    pool.close();
    assert_eq!((results.next(), results.next()), (Some(1), Some(2)));
    let text = panic_text(|| results.next());
    assert!(text.contains("the pool is closed; to go on without it, use"), "{text}");
    assert_eq!(results.next(), None);

    let view = self::pool(1).view().build();
    view.close();
    let text = panic_text(|| view.map(0.., |n| n).unordered().next());
    assert!(text.contains("the view is closed"), "{text}");
}

#[test]
fn calls_that_a_shutdown_drops_have_no_result() {
    let pool = pool(1);
    let gate = block(&pool);
    let stop = pool.clone();
    let queued = thread::spawn(move || {
        let mut results = pool.map([1, 2], |n| n).in_flight(2);
        let texts = [(), ()].map(|()| panic_text(|| results.next()));
        (texts, results.next())
    });
    wait_until("two calls are queued", || stop.queued_count() == 2);
    drop(stop.shutdown_now());
    gate.open();
    let (texts, last) = queued.join().unwrap();
    assert!(texts.iter().all(|text| text.contains("was cancelled")), "{texts:?}");
    assert_eq!(last, None);
}

#[test]
fn a_late_call_of_a_view_has_no_result() {
    let pool = pool(1);
    let gate = block(&pool);
    let view = pool.view().queue_timeout(millis(1)).build();
    let text = panic_text(|| view.map([1], |n| n).next());
    assert!(text.contains("expired"), "{text}");
    gate.open();
}

// ----- on workers, and in bounded queues -----

/// How many of the leaves of a tree are counted by nested maps.
fn leaves(pool: &ThreadPool, depth: u32, is_ordered: bool) -> usize {
    if depth == 0 {
        return 1;
    }
    let inner = pool.clone();
    let results = pool.map(0..5, move |_| leaves(&inner, depth - 1, is_ordered));
    let results = if is_ordered { results } else { results.unordered() };
    results.sum()
}

#[test]
fn nested_ones_need_no_second_thread() {
    for is_ordered in [true, false] {
        let pool = pool(1);
        let inner = pool.clone();
        let count = pool.evaluate(move || leaves(&inner, 4, is_ordered));
        assert_eq!(value(count), 625);
        assert_eq!(pool.stats().threads_started, 1);
        pool.shutdown_join();
    }
}

#[test]
fn a_worker_waits_for_a_call_that_runs_elsewhere() {
    for is_ordered in [true, false] {
        let pool = pool(2);
        let inner = pool.clone();
        // Each pair needs two workers at a time: one of them is the one that asks.
        let pairs = pool.evaluate(move || {
            let seats = Gate::new();
            let results = inner.map(0..2, move |_| seats.meet(2)).in_flight(2);
            let results = if is_ordered { results } else { results.unordered() };
            results.count()
        });
        assert_eq!(value(pairs), 2);
        pool.shutdown_join();
    }
}

#[test]
fn a_full_queue_delays_it_and_loses_nothing() {
    for (capacity, is_ordered) in [(0, true), (0, false), (3, true), (3, false)] {
        let pool = ThreadPool::builder().core_size(1).max_size(2).queue_capacity(capacity).build();
        let run = move |pool: &ThreadPool| {
            let results = pool.map(0..200_u64, |n| n).in_flight(16);
            let results = if is_ordered { results } else { results.unordered() };
            results.sum::<u64>()
        };
        let (outside, inner) = (pool.clone(), pool.clone());
        let outside = thread::spawn(move || run(&outside));
        let inside = pool.evaluate(move || run(&inner));
        assert_eq!(value(inside), 19_900);
        assert_eq!(in_time(move || outside.join().unwrap()), 19_900);
        pool.join();
        assert_eq!(pool.stats().rejected, 0);
    }
}

/// It submits again when a call has ended, so the user gets no rejection.
#[test]
fn a_stream_of_a_full_pool_counts_no_rejection() {
    let pool = ThreadPool::builder().core_size(1).max_size(1).queue_capacity(0).build();
    let results = pool.map(0..50, |n| n).in_flight(8).into_stream();
    assert_eq!(futures::executor::block_on(results.count()), 50);
    pool.join();
    assert_eq!(pool.stats().rejected, 0);
}

#[test]
fn the_function_of_a_full_pool_may_submit_too() {
    let pool = ThreadPool::builder().core_size(1).max_size(1).queue_capacity(1).build();
    let inner = pool.clone();
    let results = pool.map(0..50_u64, move |n| inner.map(0..n, |m| m).unordered().sum::<u64>());
    let results = value(pool.evaluate(move || results.sum::<u64>()));
    assert_eq!(results, (0..50).map(|n| (0..n).sum::<u64>()).sum());
}

#[test]
fn a_view_limits_it() {
    let pool = pool(4);
    let view = pool.view().limit(1).build();
    let running = Arc::new(AtomicUsize::new(0));
    let peaks = view.map(0..100, move |_| {
        let others = running.fetch_add(1, Ordering::SeqCst);
        dawdle(500);
        running.fetch_sub(1, Ordering::SeqCst);
        others
    });
    assert_eq!(peaks.max(), Some(0));
}

#[cfg(target_os = "linux")]
#[test]
fn the_caller_computes_if_the_system_refuses_all_threads() {
    common::refusal::in_a_child("the_caller_computes_if_the_system_refuses_all_threads", || {
        let pool = pool(2);
        let _refusal = common::refusal::Refusal::begin();
        assert!(pool.map(0..20, |n| n).eq(0..20));
        assert_eq!(pool.map(0..20, |n| n).unordered().sum::<u32>(), 190);
        let stream = pool.map(0..20, |n| n).into_stream();
        assert_eq!(futures::executor::block_on(stream.count()), 20);
    });
}

// ----- as a stream -----

/// Polls the stream once. Returns a result that is there.
fn poll_once<S: Stream + Unpin>(stream: &mut S) -> Option<S::Item> {
    let (_, waker) = CountingWaker::new();
    match pin!(stream.next()).poll(&mut Context::from_waker(&waker)) {
        std::task::Poll::Ready(item) => Some(item.expect("it goes on")),
        std::task::Poll::Pending => None,
    }
}

#[test]
fn a_stream_has_the_results_in_both_orders() {
    let pool = pool(4);
    let double = |n: u64| (dawdle(1_000), 2 * n).1;
    let ordered = pool.map(0..1_000, double).into_stream();
    let doubled = ordered.collect::<Vec<_>>();
    // By the pool itself, and by another executor.
    let doubled = value(pool.complete(doubled));
    assert!(doubled.into_iter().eq((0..1_000).map(|n| 2 * n)));
    let unordered = pool.map(0..1_000, double).unordered().into_stream();
    let sum = in_time(move || {
        futures::executor::block_on(unordered.fold(0, |sum, n| async move { sum + n }))
    });
    assert_eq!(sum, 999_000);
    pool.shutdown_join();
}

#[cfg(feature = "async")]
#[test]
fn a_stream_in_a_spawned_future_needs_no_second_worker() {
    let pool = pool(1);
    for is_ordered in [true, false] {
        let results = pool.map(0..100, |n| n);
        let results = if is_ordered { results } else { results.unordered() };
        let sum = results.into_stream().fold(0, |sum, n| async move { sum + n });
        assert_eq!(value(pool.spawn_await(sum)), 4_950);
    }
    assert_eq!(pool.stats().threads_started, 1);
}

#[test]
fn a_closure_that_drives_a_stream_on_the_only_worker_is_replaced() {
    let pool = pool(1);
    for is_ordered in [true, false] {
        let results = pool.map(0..100, |n| n);
        let results = if is_ordered { results } else { results.unordered() };
        let driven = move || futures::executor::block_on_stream(results.into_stream()).sum::<u32>();
        assert_eq!(value(pool.evaluate(|| blocking(driven))), 4_950);
    }
}

#[test]
fn a_stream_does_not_block_at_a_full_queue() {
    let pool = ThreadPool::builder().core_size(1).max_size(1).queue_capacity(0).build();
    let gate = Gate::new();
    let passes = Arc::clone(&gate);
    let (taken, inputs) = counted(0..4);
    let results = pool.map(inputs, move |n| (passes.pass(), n).1).in_flight(3);
    let mut stream = results.into_stream();
    let (waits, first) = in_time(move || {
        let first = poll_once(&mut stream);
        (stream, first)
    });
    assert_eq!(first, None);
    gate.open();
    assert_eq!(in_time(|| futures::executor::block_on(waits.collect::<Vec<_>>())), [0, 1, 2, 3]);
    assert_eq!(taken.load(Ordering::SeqCst), 4);
}

#[test]
fn a_stream_ends_like_an_iterator() {
    let pool = pool(1);
    let mut results = pool.try_map(0.., |n| if n < 3 { Ok(n) } else { Err(n) }).into_stream();
    assert!(!results.is_terminated());
    let all = futures::executor::block_on(results.by_ref().collect::<Vec<_>>());
    assert_eq!(all, [Ok(0), Ok(1), Ok(2), Err(3)]);
    assert!(results.is_terminated());

    let panicking = pool.map([1], |n: u32| -> u32 { panic!("{n} is odd") }).into_stream();
    let text = panic_text(|| futures::executor::block_on(panicking.count()));
    assert_eq!(text, "1 is odd");

    let drops = Drops::default();
    let gate = block(&pool);
    let inputs: Vec<_> = (0..4).map(|_| drops.issue()).collect();
    let mut dropped = pool.map(inputs, drop).in_flight(2).unordered().into_stream();
    assert!(poll_once(&mut dropped).is_none());
    drop(dropped);
    assert_eq!(drops.count(), 4);
    gate.open();
}

// ----- the types -----

#[test]
fn both_types_may_go_to_another_thread_and_are_shown() {
    fn check<T: Send + Unpin + 'static>(_: &T) {}
    let pool = ThreadPool::builder().name("types").max_size(1).core_size(1).build();
    let mut map: Map<std::ops::Range<u8>, u8> = pool.map(0..9, |n| n).in_flight(4);
    check(&map);
    assert_eq!(map.next(), Some(0));
    let text = "Map { pool: \"types\", in_flight: 3 of 4, taken: 4, is_ordered: true }";
    assert_eq!(format!("{map:?}"), text);
    let stream: MapStream<std::ops::Range<u8>, u8> = map.into_stream();
    check(&stream);
    assert_eq!(format!("{stream:?}"), format!("MapStream({text})"));
}

#[test]
fn inputs_and_results_need_not_be_sync_nor_inputs_iterators_send() {
    let pool = pool(2);
    let not_send = std::rc::Rc::new(1);
    let inputs = (0..10).map(move |n| std::cell::Cell::new(n + *not_send));
    let results = pool.map(inputs, |cell| std::cell::Cell::new(cell.get()));
    assert_eq!(results.map(|cell| cell.get()).sum::<i32>(), 55);
}

#[test]
fn an_inputs_iterator_may_wait_for_the_same_pool() {
    let pool = pool(1);
    let inner = pool.clone();
    let inputs = (0..20).map(move |n| inner.evaluate(move || n).await_complete());
    let sum = pool.evaluate({
        let pool = pool.clone();
        move || pool.map(inputs, |n| n).sum::<i32>()
    });
    assert_eq!(settled(sum).unwrap(), 190);
}
