//! Task groups at their edges: destructors that turn to the group they belong to, cancellations of
//! what waits for the pool, and which of several failures is returned.

use crate::common;

use std::sync::Arc;
use std::thread;

use common::{
    Gate, HOUR, LIMIT, block, failure, hold, hold_then_fail, joined, under_way, wait_until, waited,
};
use elastipool::{RejectReason, TaskGroup, ThreadPool};

fn pool(max_size: usize) -> ThreadPool {
    ThreadPool::new(1, max_size, HOUR)
}

/// A value whose destructor calls a function.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Ends when the group does, which must not take for ever. Leaks what hangs.
#[track_caller]
fn assert_ends(group: &TaskGroup<&'static str>, pool: ThreadPool) {
    let ends = group.wait_timeout(LIMIT).is_some();
    if !ends {
        std::mem::forget(pool);
        panic!("the group does not end");
    }
}

/// A future that ends at its first poll, and still has its captures then.
#[cfg(feature = "async")]
struct Ready<C>(Option<C>);

#[cfg(feature = "async")]
impl<C: Unpin> std::future::Future for Ready<C> {
    type Output = Result<(), &'static str>;

    fn poll(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Self::Output> {
        std::task::Poll::Ready(Ok(()))
    }
}

#[cfg(feature = "async")]
#[test]
fn the_destructor_of_a_future_that_has_ended_submits_to_its_full_group() {
    let pool = pool(1);
    let group = pool.group::<&str>().limit(1);
    let own = group.clone();
    let captured = OnDrop(move || drop(own.execute(|| Ok(()))));
    assert!(group.spawn(Ready(Some(captured))).is_ok());
    assert_ends(&group, pool);
}

#[test]
fn the_destructor_of_a_waiting_task_submits_to_its_full_group() {
    let pool = pool(1);
    let group = pool.group::<&str>().limit(1).keep_going();
    let (gate, inside) = (Gate::new(), group.clone());
    let passes = Arc::clone(&gate);
    let submitted = group.execute(move || {
        let own = inside.clone();
        let captured = OnDrop(move || drop(own.execute(|| Ok(()))));
        let deferred = move || {
            std::mem::forget(captured);
            Ok(())
        };
        assert!(inside.execute(deferred).is_ok());
        passes.pass();
        Ok(())
    });
    assert!(submitted.is_ok());
    gate.wait_for(1);
    drop(pool.shutdown_now());
    gate.open();
    assert_ends(&group, pool);
}

#[test]
fn the_destructor_of_a_cancelled_task_that_waits_for_its_group_panics() {
    let pool = pool(1);
    let group = pool.group::<&str>();
    let gate = hold(&group);
    let own = group.clone();
    let captured = OnDrop(move || drop(own.wait()));
    let task = move || {
        std::mem::forget(captured);
        Ok(())
    };
    assert!(group.execute(task).is_ok());
    group.cancel();
    gate.open();
    assert_ends(&group, pool);
}

#[cfg(feature = "async")]
#[test]
fn a_groups_error_goes_before_a_task_that_was_dropped() {
    let pool = pool(2);
    let group = pool.group();
    let gate = hold_then_fail(&group, "failed");
    // It can never be woken.
    group.spawn(std::future::pending()).unwrap();
    wait_until("it is dropped", || under_way(&group) == 1);
    gate.open();
    assert_eq!(failure(&group).to_string(), "failed");
}

#[test]
fn a_groups_error_goes_before_a_shutdown() {
    let pool = pool(1);
    let group = pool.group();
    let gate = hold_then_fail(&group, "failed");
    group.execute(|| Ok(())).unwrap();
    drop(pool.shutdown_now());
    gate.open();
    assert_eq!(failure(&group).to_string(), "failed");
}

#[test]
fn a_submitter_that_waits_for_the_pools_queue_gets_its_task_back_when_the_group_was_cancelled() {
    let builder = ThreadPool::builder().core_size(1).max_size(1).keep_alive(HOUR);
    let pool = builder.queue_capacity(0).build();
    let group = pool.group::<&str>();
    let gate = block(&pool);
    let submits = group.clone();
    let submitter =
        thread::spawn(move || submits.execute(|| Ok(())).map_err(|rejected| rejected.reason()));
    wait_until("it has its place", || under_way(&group) == 1);
    group.cancel();
    gate.open();
    assert_eq!(joined(submitter), Err(RejectReason::Cancelled));
    assert!(waited(&group).is_err());
    assert_eq!((group.dropped_count(), pool.stats().rejected), (0, 1));
}

#[cfg(feature = "async")]
#[test]
fn a_submitter_that_waits_for_a_group_gets_its_task_back_when_the_pool_was_closed() {
    let pool = pool(1);
    let group = pool.group::<&str>().limit(1);
    let (trigger, triggered) = common::triggered();
    let spawned = group.spawn(async {
        triggered.await;
        Ok(())
    });
    assert!(spawned.is_ok());
    wait_until("it waits", || trigger.polls() == 1);
    let submits = group.clone();
    let submitter =
        thread::spawn(move || submits.execute(|| Ok(())).map_err(|rejected| rejected.reason()));
    wait_until("it is in line", || common::in_line(&group) == 1);
    pool.close();
    trigger.fire();
    assert_eq!(joined(submitter), Err(RejectReason::Closed));
    assert!(waited(&group).is_ok());
}

#[cfg(feature = "async")]
#[test]
fn cloning_a_waiters_waker_may_look_at_the_group() {
    use std::future::{Future, IntoFuture};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, RawWaker, RawWakerVTable, Waker};

    struct Looks {
        group: TaskGroup<&'static str>,
        clones: AtomicUsize,
    }

    static VTABLE: RawWakerVTable = RawWakerVTable::new(clone, drop_it, |_| (), drop_it);

    fn clone(data: *const ()) -> RawWaker {
        // SAFETY: the test leaks what it points to.
        let looks = unsafe { &*data.cast::<Looks>() };
        looks.clones.fetch_add(1, Ordering::SeqCst);
        let _ = looks.group.is_cancelled();
        RawWaker::new(data, &VTABLE)
    }

    fn drop_it(_: *const ()) {}

    let pool = pool(1);
    let group = pool.group::<&str>();
    let gate = hold(&group);
    let looks = Looks { group: group.clone(), clones: AtomicUsize::new(0) };
    let looks: &'static Looks = Box::leak(Box::new(looks));
    let data: *const Looks = looks;
    // SAFETY: the functions do nothing with the data but to read what is never freed.
    let waker = unsafe { Waker::from_raw(RawWaker::new(data.cast(), &VTABLE)) };
    let mut wait = group.clone().into_future();
    let first = std::pin::Pin::new(&mut wait).poll(&mut Context::from_waker(&waker));
    assert!(first.is_pending());
    gate.open();
    let looking = thread::spawn(move || under_way(&group));
    let deadline = std::time::Instant::now() + LIMIT / 5;
    while !looking.is_finished() && std::time::Instant::now() < deadline {
        thread::yield_now();
    }
    if !looking.is_finished() || !pool.join_timeout(LIMIT / 5) {
        std::mem::forget((wait, pool));
        panic!("the group is locked for ever");
    }
}

#[test]
fn a_formatter_may_look_at_the_group() {
    use std::fmt::{self, Write};

    struct Looks(TaskGroup<()>);

    impl Write for Looks {
        fn write_str(&mut self, _: &str) -> fmt::Result {
            assert!(!self.0.is_cancelled());
            Ok(())
        }
    }

    let group = pool(1).group::<()>();
    let writes = thread::spawn(move || {
        let mut looks = Looks(group.clone());
        write!(looks, "{group:?}").unwrap();
    });
    joined(writes);
}
