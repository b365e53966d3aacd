//! `reserve`: capacity that others leave free.

use std::any::Any;
#[cfg(feature = "async")]
use std::future::pending;
#[cfg(feature = "async")]
use std::pin::Pin;
use std::sync::Arc;
#[cfg(feature = "async")]
use std::sync::Mutex;
#[cfg(feature = "async")]
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

#[cfg(feature = "async")]
use crate::common::LIMIT;
use crate::common::{Gate, block, value, wait_until};
use crate::{Level, at_gate, pool};
#[cfg(feature = "async")]
use elastipool::JoinSet;
use elastipool::View;
#[cfg(feature = "async")]
use futures::FutureExt;

/// Others never occupy the reserved worker, and the view's task finds it at once.
#[test]
fn others_leave_the_reserve_free() {
    let pool = pool(0, 3);
    let urgent = pool.view().reserve(1).build();
    let (gate, level) = (Gate::new(), Level::default());
    (0..50).for_each(|_| at_gate(&pool, &gate, &level));
    gate.wait_for(2);
    for _ in 0..20 {
        assert_eq!(urgent.evaluate(|| 7).await_complete(), 7);
    }
    assert_eq!((level.now(), level.peak()), (2, 2));
    gate.open();
    pool.join();
    assert_eq!(level.peak(), 2);
    pool.shutdown_join();
}

/// Nor does a task that the worker of a reserve waits for, and would run itself.
#[test]
fn a_claimed_task_leaves_the_reserve_free() {
    let pool = pool(0, 2);
    let requests = pool.view().reserve(1).build();
    let (gate, level) = (Gate::new(), Level::default());
    at_gate(&pool, &gate, &level);
    gate.wait_for(1);
    let (inner, passes, counts) = (pool.clone(), Arc::clone(&gate), level.clone());
    let waits = requests.evaluate(move || {
        let task = move || {
            counts.enter();
            passes.pass();
            counts.exit();
        };
        inner.evaluate(task).await_complete();
    });
    // Time is the subject: a worker at the end of a region is let in after less than this.
    thread::sleep(Duration::from_millis(500));
    assert_eq!(level.peak(), 1);
    assert_eq!(value(requests.evaluate(|| 1)), 1);
    gate.open();
    value(waits);
    pool.shutdown_join();
}

/// Two reserves at once: neither view takes the other's.
#[test]
fn reserves_add_up() {
    let pool = pool(0, 4);
    let [one, other] = [1, 2].map(|reserve| pool.view().reserve(reserve).build());
    let gates = [Gate::new(), Gate::new(), Gate::new()];
    let levels: [Level; 3] = Default::default();
    // The default view gets the one worker that is not reserved.
    (0..10).for_each(|_| at_gate(&pool, &gates[0], &levels[0]));
    gates[0].wait_for(1);
    (0..10).for_each(|_| at_gate(&one, &gates[1], &levels[1]));
    gates[1].wait_for(1);
    (0..10).for_each(|_| at_gate(&other, &gates[2], &levels[2]));
    gates[2].wait_for(2);
    // Time for another one to start, which must not happen.
    thread::sleep(Duration::from_millis(5));
    assert_eq!(levels.each_ref().map(Level::now), [1, 1, 2]);
    gates.iter().for_each(|gate| gate.open());
    pool.shutdown_join();
}

/// A view uses the shared capacity as well as its reserve.
#[test]
fn a_view_is_not_confined_to_its_reserve() {
    let pool = pool(0, 4);
    let view = pool.view().reserve(1).build();
    let gate = Gate::new();
    for _ in 0..4 {
        let gate = std::sync::Arc::clone(&gate);
        view.execute(move || gate.meet(4));
    }
    view.join();
    pool.shutdown_join();
}

/// It reserves capacity, not threads.
#[test]
fn no_thread_is_started_or_kept_for_a_reserve() {
    let pool = elastipool::ThreadPool::new(0, 4, Duration::from_millis(1));
    let view = pool.view().reserve(3).build();
    assert_eq!(pool.current_worker_count(), 0);
    view.evaluate(|| ()).await_complete();
    wait_until("the worker has left", || pool.current_worker_count() == 0);
    // Tasks that may not use the reserve start no thread for it.
    let (gate, level) = (Gate::new(), Level::default());
    at_gate(&pool, &gate, &level);
    gate.wait_for(1);
    let before = pool.stats().threads_started;
    (0..1000).for_each(|_| pool.execute(|| ()));
    assert!(pool.stats().threads_started <= before + 1, "{:?}", pool.stats());
    gate.open();
    pool.join();
}

/// When the reserve is gone, tasks that waited for it start.
#[test]
fn the_end_of_a_reserve_lets_others_start() {
    for _ in 0..100 {
        let pool = pool(0, 2);
        let view = pool.view().reserve(1).build();
        let (gate, level) = (Gate::new(), Level::default());
        (0..2).for_each(|_| at_gate(&pool, &gate, &level));
        gate.wait_for(1);
        drop(view);
        gate.wait_for(2);
        gate.open();
        pool.shutdown_join();
    }
}

/// Has a task of the view end whose wakers are kept. Returns what else of it the user keeps.
#[cfg(feature = "async")]
type End = fn(&View, Wakers) -> Box<dyn Any>;

/// A user may keep wakers, handles and cancellers of tasks that have ended. The others have the
/// reserve all the same, and a new view can.
#[cfg(feature = "async")]
#[test]
fn an_ended_task_keeps_no_reserve() {
    let ends: [End; 7] = [
        |view, wakers| {
            view.spawn(wakers);
            Box::new(())
        },
        |view, wakers| Box::new(view.spawn_await(wakers)),
        |view, wakers| {
            Box::new(view.spawn_await(wakers.map(|()| -> u8 { panic!("on purpose") })).shared())
        },
        |view, wakers| {
            let group = view.group::<()>();
            group.spawn(wakers.map(Ok)).unwrap();
            Box::new(group.token())
        },
        |view, wakers| {
            view.scope(|scope| scope.spawn(wakers));
            Box::new(JoinSet::from_iter([view.evaluate(|| ())]))
        },
        |view, wakers| Box::new(view.spawn_await(wakers).abort_handle()),
        |view, wakers| {
            let polls = wakers.clone();
            let pending = view.spawn_await(wakers.then(|()| pending::<()>()));
            // Cancelled before its first poll, it would leave no waker.
            wait_until("it was polled twice", || polls.0.lock().unwrap().len() > 1);
            pending.cancel();
            Box::new(pending)
        },
    ];
    for (number, end) in ends.into_iter().enumerate() {
        let pool = pool(0, 2);
        let view = pool.view().reserve(1).build();
        let wakers = Wakers::default();
        let kept = end(&view, wakers.clone());
        assert!(view.join_timeout(LIMIT));
        assert!(!wakers.0.lock().unwrap().is_empty());
        drop(view);
        wait_until(&format!("the reserve is free after end {number}"), || {
            pool.view().reserve(1).try_build().is_ok()
        });
        let (gate, level) = (Gate::new(), Level::default());
        (0..2).for_each(|_| at_gate(&pool, &gate, &level));
        gate.wait_for(2);
        gate.open();
        assert!(pool.join_timeout(LIMIT));
        // A late wake, and the last one.
        wakers.0.lock().unwrap().drain(..).for_each(Waker::wake);
        drop(kept);
        pool.shutdown_join();
    }
}

/// Ready at its second poll. The user keeps its wakers.
#[cfg(feature = "async")]
#[derive(Clone, Default)]
struct Wakers(Arc<Mutex<Vec<Waker>>>);

#[cfg(feature = "async")]
impl Future for Wakers {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut wakers = self.0.lock().unwrap();
        wakers.push(context.waker().clone());
        if wakers.len() > 1 {
            return Poll::Ready(());
        }
        drop(wakers);
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

/// Opens its gate when it is dropped.
struct OnDrop(Arc<Gate>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.open();
    }
}

/// What has a handle of the view keeps the reserve, and so does a task that runs.
#[test]
fn a_handle_of_any_kind_keeps_the_reserve() {
    let keeps: [fn(View) -> Box<dyn Any>; 6] = [
        |view| Box::new(view.group::<()>()),
        |view| Box::new(view.handler(|()| ()).clone()),
        |view| Box::new(view.downgrade()),
        |view| Box::new(view.map([1], |n| n)),
        |view| Box::new(futures::executor::block_on(view.ready()).unwrap()),
        |view| {
            let gate = block(&view);
            Box::new(OnDrop(gate))
        },
    ];
    for keep in keeps {
        let pool = pool(1, 2);
        let kept = keep(pool.view().reserve(1).build());
        assert!(pool.view().reserve(1).try_build().is_err());
        drop(kept);
        wait_until("it is free", || pool.view().reserve(1).try_build().is_ok());
    }
}

/// A larger `max_size` is shared capacity.
#[test]
fn a_larger_max_size_lets_others_start() {
    let pool = pool(0, 2);
    let view = pool.view().reserve(1).build();
    let (gate, level) = (Gate::new(), Level::default());
    (0..3).for_each(|_| at_gate(&pool, &gate, &level));
    gate.wait_for(1);
    pool.set_max_size(4).unwrap();
    gate.wait_for(3);
    assert_eq!(view.evaluate(|| 7).await_complete(), 7);
    gate.open();
    pool.shutdown_join();
}

/// Tasks that may not run yet wake no idle worker either.
#[test]
fn tasks_that_may_not_run_wake_no_worker() {
    let pool = pool(2, 2);
    let view = pool.view().reserve(1).build();
    assert_eq!(pool.start_core_threads(), 2);
    let (gate, level) = (Gate::new(), Level::default());
    at_gate(&pool, &gate, &level);
    gate.wait_for(1);
    wait_until("the other worker is idle", || pool.idle_worker_count() == 1);
    for _ in 0..100 {
        pool.execute(|| ());
        assert_eq!(pool.idle_worker_count(), 1);
    }
    gate.open();
    pool.join();
    drop(view);
    pool.shutdown_join();
}
