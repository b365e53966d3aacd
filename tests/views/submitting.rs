//! Every way of submitting goes to the view, and is counted there.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use elastipool::{GroupError, ThreadPool};

use crate::common::{Gate, block};
use crate::pool;

/// Each way, once. Returns how many tasks were submitted.
fn submit_in_all_ways(view: &ThreadPool, ran: &Arc<AtomicUsize>) -> usize {
    let task = || {
        let ran = Arc::clone(ran);
        move || {
            ran.fetch_add(1, Ordering::Relaxed);
        }
    };
    let mut count = 12;
    view.execute(task());
    view.try_execute(task()).unwrap();
    view.try_execute_for(task(), Duration::from_secs(1)).unwrap();
    view.evaluate(task()).await_complete();
    view.try_evaluate(task()).unwrap().await_complete();
    view.try_evaluate_for(task(), Duration::from_secs(1)).unwrap().await_complete();
    let (first, second) = (task(), task());
    view.complete(async move { first() }).await_complete();
    view.try_complete(async move { second() }).unwrap().await_complete();
    view.scope(|scope| scope.execute(task()));
    let group = view.group::<()>();
    let (first, second) = (task(), task());
    group
        .execute(move || {
            first();
            Ok(())
        })
        .unwrap();
    group.evaluate(second).await_complete();
    group.wait().unwrap();
    let counter = Arc::clone(ran);
    view.handler(move |n: usize| {
        counter.fetch_add(n, Ordering::Relaxed);
    })
    .invoke(1);
    #[cfg(feature = "async")]
    {
        count += 4;
        let (first, second, third, fourth) = (task(), task(), task(), task());
        view.spawn(async move { first() });
        view.try_spawn(async move { second() }).unwrap();
        view.spawn_await(async move { third() }).await_complete();
        group
            .spawn(async move {
                fourth();
                Ok(())
            })
            .unwrap();
        group.wait().unwrap();
    }
    view.join();
    count += usize::from(large(view));
    count
}

/// A task of more than 2 KiB, which is boxed.
fn large(view: &ThreadPool) -> bool {
    let bytes = [1_u8; 4096];
    view.evaluate(move || bytes.iter().map(|&byte| usize::from(byte)).sum::<usize>())
        .await_complete()
        == 4096
}

#[test]
fn a_view_offers_every_way_of_submitting() {
    let pool = pool(1, 4);
    let view = pool.view().limit(1).build();
    let ran = Arc::new(AtomicUsize::new(0));
    let count = submit_in_all_ways(&view, &ran);
    view.join();
    assert_eq!(ran.load(Ordering::Relaxed), count - 1);
    let stats = view.stats();
    assert_eq!((stats.completed, stats.accepted(), stats.in_flight()), (count, count, 0));
    pool.execute(|| ());
    pool.join();
    // The pool's statistics cover all views, the view's only its own.
    assert_eq!((pool.stats().completed, view.stats().completed), (count + 1, count));
    pool.shutdown_join();
}

/// A task of a view runs for its view, whichever worker submits it.
#[test]
fn a_task_chooses_the_view_by_the_handle() {
    let pool = pool(1, 2);
    let [one, other] = [pool.view().build(), pool.view().build()];
    let (inner, plain) = (other.clone(), pool.clone());
    one.evaluate(move || {
        inner.execute(|| ());
        plain.execute(|| ());
    })
    .await_complete();
    pool.join();
    let completed = [&pool, &one as &ThreadPool, &other].map(|view| view.stats().completed);
    assert_eq!(completed, [3, 1, 1]);
}

#[test]
fn counts_are_those_of_the_view() {
    let pool = pool(1, 1);
    let view = pool.view().build();
    let gate = block(&view);
    let handles: Vec<_> = (0..3).map(|_| view.evaluate(|| ())).collect();
    pool.execute(|| ());
    assert_eq!((view.queued_count(), pool.queued_count()), (3, 4));
    let stats = view.stats();
    assert_eq!((stats.queued, stats.active, stats.pending), (3, 1, 0));
    let all = pool.stats();
    assert_eq!((all.queued, all.active, all.pending), (4, 1, 0));
    assert_eq!(stats.workers, 1);
    handles[0].cancel();
    let panics = view.evaluate(|| panic!("on purpose"));
    gate.open();
    assert!(panics.try_await_complete().unwrap_err().is_panic());
    view.join();
    let stats = view.stats();
    assert_eq!((stats.completed, stats.panicked, stats.cancelled), (3, 1, 1));
    pool.join();
    assert_eq!(pool.stats().completed, 4);
}

/// `join` of a view waits for its tasks, and for no others.
#[test]
fn a_join_waits_for_the_view_alone() {
    let pool = pool(2, 2);
    let [one, other] = [pool.view().build(), pool.view().build()];
    let gate = block(&one);
    let ran = Arc::new(AtomicUsize::new(0));
    for _ in 0..100 {
        let ran = Arc::clone(&ran);
        other.execute(move || {
            ran.fetch_add(1, Ordering::Relaxed);
        });
    }
    other.join();
    assert_eq!(ran.load(Ordering::Relaxed), 100);
    assert!(!one.join_timeout(Duration::from_millis(1)));
    assert!(!pool.join_timeout(Duration::from_millis(1)));
    gate.open();
    one.join();
    pool.join();
}

/// After a join the handles of the view's tasks are finished.
#[test]
fn handles_are_finished_after_a_join() {
    let pool = pool(2, 4);
    let view = pool.view().limit(2).build();
    for _ in 0..200 {
        let handles: Vec<_> = (0..10).map(|i| view.evaluate(move || i)).collect();
        #[cfg(feature = "async")]
        let futures: Vec<_> = (0..10).map(|i| view.spawn_await(async move { i })).collect();
        view.join();
        assert!(handles.iter().all(|handle| handle.is_finished()));
        #[cfg(feature = "async")]
        assert!(futures.iter().all(|handle| handle.is_finished()));
    }
    pool.shutdown_join();
}

/// A panic of a group's task in a view reaches the wait.
#[test]
fn a_group_of_a_view_fails_as_any_other() {
    let pool = pool(1, 2);
    let view = pool.view().limit(1).build();
    let group = view.group::<&str>().limit(2);
    group.execute(|| Err("broken")).unwrap();
    assert!(matches!(group.wait(), Err(GroupError::Failed("broken"))));
    // Tasks in line: a task of the group submits others.
    let inner = group.clone();
    group
        .execute(move || {
            (0..10).for_each(|_| inner.execute(|| Ok(())).unwrap());
            Ok(())
        })
        .unwrap();
    group.wait().unwrap();
    view.join();
    assert_eq!(view.stats().completed, 12);
    pool.shutdown_join();
}

/// A task of the pool that joins a view would wait for itself, or could.
#[test]
fn a_join_in_a_task_panics() {
    let pool = pool(1, 2);
    let view = pool.view().build();
    let inner = view.clone();
    let error = view.evaluate(move || inner.join()).try_await_complete().unwrap_err();
    assert!(error.is_panic());
    let inner = view.clone();
    assert!(!pool.evaluate(move || inner.join_timeout(Duration::from_secs(60))).await_complete());
}

/// In a bounded queue the permits are the pool's.
#[test]
fn a_view_has_no_queue_capacity_of_its_own() {
    let pool = ThreadPool::builder().core_size(1).max_size(1).queue_capacity(2).build();
    let view = pool.view().build();
    let gate = Gate::new();
    let passes = Arc::clone(&gate);
    view.execute(move || passes.pass());
    gate.wait_for(1);
    view.try_execute(|| ()).unwrap();
    pool.try_execute(|| ()).unwrap();
    assert!(view.try_execute(|| ()).is_err());
    assert!(pool.try_execute(|| ()).is_err());
    assert_eq!((view.stats().rejected, pool.stats().rejected), (1, 2));
    gate.open();
    pool.join();
    (0..100).for_each(|_| view.execute(|| ()));
    pool.shutdown_join();
}
