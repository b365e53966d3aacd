//! Tasks of a group whose results come through handles.

use crate::common;

use std::future::{Future, IntoFuture};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::task::{Context, Wake, Waker};
use std::thread;

use common::{Drops, Gate, HOUR, LIMIT, block, hold, refused, settled, wait_until, waited};
use elastipool::{JoinHandle, RejectReason, TaskGroup, ThreadPool};

fn pool(max_size: usize) -> ThreadPool {
    ThreadPool::new(0, max_size, HOUR)
}

/// Counts how many tasks run at the same time.
#[derive(Clone, Default)]
struct Running(Arc<(AtomicUsize, AtomicUsize)>);

impl Running {
    fn run(&self) {
        let now = 1 + self.0.0.fetch_add(1, Ordering::SeqCst);
        self.0.1.fetch_max(now, Ordering::SeqCst);
        thread::yield_now();
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }

    fn peak(&self) -> usize {
        self.0.1.load(Ordering::SeqCst)
    }
}

fn is_cancelled<T>(handle: JoinHandle<T>) -> bool {
    settled(handle).is_err_and(|error| error.is_cancelled())
}

#[test]
fn at_most_the_limit_runs_and_each_has_its_result() {
    let pool = pool(8);
    let group = pool.group::<()>().limit(3);
    let running = Running::default();
    // As many as may run at a time meet.
    let meeting = Arc::new(Barrier::new(3));
    let handles: Vec<_> = (0..300)
        .map(|i| {
            let (running, meeting) = (running.clone(), Arc::clone(&meeting));
            group.evaluate(move || {
                if i < 3 {
                    meeting.wait();
                }
                running.run();
                i
            })
        })
        .collect();
    waited(&group).unwrap();
    assert!(handles.iter().all(JoinHandle::is_finished), "the wait is for their results too");
    assert!(handles.into_iter().map(|handle| settled(handle).unwrap()).eq(0..300));
    assert!(running.peak() <= 3, "{} at a time", running.peak());
}

#[test]
fn an_error_as_value_does_not_fail_the_group() {
    let pool = pool(2);
    let group = pool.group::<&str>();
    let handle = group.evaluate(|| Err::<u8, _>("a value like any other"));
    assert!(settled(handle).unwrap().is_err());
    waited(&group).unwrap();
}

#[test]
fn a_panic_cancels_the_group_and_goes_to_the_handle() {
    for keeps_going in [false, true] {
        let pool = pool(1);
        let group = pool.group::<()>();
        let group = if keeps_going { group.keep_going() } else { group };
        let gate = hold(&group);
        let panics = group.evaluate(|| -> u8 { panic!("on purpose") });
        let next = group.evaluate(|| 1);
        gate.open();
        assert_eq!(settled(panics).unwrap_err().to_string(), "the task panicked: on purpose");
        let next = settled(next);
        assert_eq!(next.is_ok(), keeps_going);
        assert!(keeps_going || next.unwrap_err().is_cancelled());
        assert!(waited(&group).unwrap_err().is_cancelled(), "the handle has the panic");
        waited(&group).unwrap();
        assert_eq!(group.dropped_count(), usize::from(!keeps_going));
    }
}

#[test]
fn a_panic_goes_to_the_group_if_the_handle_is_gone() {
    let pool = pool(1);
    let group = pool.group::<()>();
    let gate = hold(&group);
    drop(group.evaluate(|| -> u8 { panic!("on purpose") }));
    gate.open();
    assert!(waited(&group).unwrap_err().is_panic());
}

#[test]
fn cancelling_the_group_cancels_the_handles() {
    let pool = pool(1);
    let group = pool.group::<()>().limit(2);
    let gate = hold(&group);
    let queued = group.evaluate(|| 1);
    let (inner, before) = (group.clone(), Drops::default());
    let captured = before.issue();
    let in_line = thread::spawn(move || inner.evaluate(move || drop(captured)));
    wait_until("it is in line", || common::in_line(&group) == 1);
    group.cancel();
    assert!(is_cancelled(in_line.join().unwrap()), "a submitter that waits for a slot");
    assert_eq!(before.count(), 1);
    gate.open();
    assert!(is_cancelled(queued));
    assert!(is_cancelled(group.evaluate(|| 1)));
    assert!(waited(&group).unwrap_err().is_cancelled());
    pool.close();
    assert!(is_cancelled(group.evaluate(|| 1)));
}

#[test]
fn cancelling_a_handle_does_not_fail_the_group() {
    let pool = pool(1);
    let group = pool.group::<()>();
    let (gate, drops) = (block(&pool), Drops::default());
    let captured = drops.issue();
    let handle = group.evaluate(move || drop(captured));
    let other = group.evaluate(|| 1);
    handle.cancel();
    assert!(is_cancelled(handle));
    gate.open();
    assert_eq!(settled(other).unwrap(), 1);
    waited(&group).unwrap();
    assert_eq!((drops.count(), group.dropped_count()), (1, 1));
}

/// The waker of a wait for the group is called when the last slot is released, and looks at the
/// handle then.
#[test]
fn the_handle_of_a_dropped_task_resolves_before_its_slot_is_free() {
    type Drops = fn(&ThreadPool, &TaskGroup<()>);
    type Submits = fn(&TaskGroup<()>) -> JoinHandle<()>;

    struct Looks(JoinHandle<()>, AtomicUsize);

    impl Wake for Looks {
        fn wake(self: Arc<Self>) {
            self.1.store(if self.0.is_finished() { 1 } else { 2 }, Ordering::SeqCst);
        }
    }

    let drops: [(&str, Drops); 2] = [
        ("a shutdown", |pool, _| assert_eq!(pool.shutdown_now().len(), 0)),
        ("its group", |_, group| group.cancel()),
    ];
    let submits: &[Submits] = &[
        |group| group.evaluate(|| ()),
        #[cfg(feature = "async")]
        |group| group.spawn_await(async {}),
    ];
    for (by, drops) in drops {
        for submits in submits {
            let pool = pool(1);
            let (group, gate) = (pool.group::<()>(), block(&pool));
            let looks = Arc::new(Looks(submits(&group), AtomicUsize::new(0)));
            let waker = Waker::from(Arc::clone(&looks));
            let mut quiet = pin!((&group).into_future());
            let context = &mut Context::from_waker(&waker);
            assert!(quiet.as_mut().poll(context).is_pending());
            drops(&pool, &group);
            gate.open();
            wait_until("the group is quiet", || looks.1.load(Ordering::SeqCst) > 0);
            assert_eq!(looks.1.load(Ordering::SeqCst), 1, "dropped by {by}");
        }
    }
}

#[test]
fn try_evaluate_hands_the_closure_back() {
    let pool = pool(1);
    let group = pool.group::<()>().limit(1);
    let gate = hold(&group);
    let rejected = refused(group.try_evaluate(|| 1), RejectReason::Full);
    assert_eq!(rejected.into_task()(), 1);
    gate.open();
    waited(&group).unwrap();
    assert_eq!(settled(group.try_evaluate(|| 1).unwrap()).unwrap(), 1);
    // The handle resolves before its slot is free.
    waited(&group).unwrap();
    pool.close();
    let _ = refused(group.try_evaluate(|| 1), RejectReason::Closed);
}

/// The worker runs the task that it waits for on its own stack, as through a pool's handle (law
/// 10).
#[test]
fn a_worker_runs_the_task_that_it_waits_for() {
    fn waits(
        group: &TaskGroup<()>,
        submit: impl Fn(&TaskGroup<()>) -> JoinHandle<thread::ThreadId>,
    ) {
        let mine = thread::current().id();
        assert_eq!(settled_here(submit(group)), mine);
        // Also from beneath older ones, which stay where they are.
        let [first, second, third] = [submit(group), submit(group), submit(group)];
        assert_eq!(settled_here(second), mine);
        assert_eq!(settled_here(third), mine);
        drop(first);
    }

    fn settled_here<T>(handle: JoinHandle<T>) -> T {
        handle.await_complete()
    }

    let pool = ThreadPool::new(1, 1, HOUR);
    let group = pool.group::<()>().limit(4);
    let inner = group.clone();
    let worker = pool.evaluate(move || {
        waits(&inner, |group| group.evaluate(|| thread::current().id()));
        #[cfg(feature = "async")]
        waits(&inner, |group| group.spawn_await(async { thread::current().id() }));
        // A wait for the group meets tasks that were claimed through their handles.
        let [one, _other] = [inner.evaluate(|| 1), inner.evaluate(|| 2)];
        assert_eq!(settled_here(one), 1);
        inner.wait().is_ok()
    });
    assert!(settled(worker).unwrap());
    assert!(pool.join_timeout(LIMIT));
    let stats = pool.stats();
    assert_eq!((stats.queued, stats.in_flight(), stats.peak_blocked), (0, 0, 0));
    let completed = if cfg!(feature = "async") { 11 } else { 7 };
    assert_eq!((stats.completed, stats.cancelled), (completed, 0));
}

/// A task that waits for a slot is not run by its waiter: the limit would not hold.
#[test]
fn a_task_in_line_is_not_run_by_its_waiter() {
    let pool = pool(4);
    let group = pool.group::<()>().limit(1);
    let (gate, drops) = (Gate::new(), Drops::default());
    let (inner, passes, captured) = (group.clone(), Arc::clone(&gate), drops.issue());
    let (send, receive) = std::sync::mpsc::channel();
    let keeps_slot = group.evaluate(move || {
        send.send(inner.evaluate(move || drop(captured))).unwrap();
        passes.pass();
    });
    let in_line = receive.recv_timeout(LIMIT).unwrap();
    let waits = pool.evaluate(move || in_line.await_complete());
    wait_until("a worker waits", || pool.stats().blocked == 1 || drops.count() == 1);
    assert_eq!(drops.count(), 0, "the slot is taken");
    gate.open();
    settled(waits).unwrap();
    settled(keeps_slot).unwrap();
    waited(&group).unwrap();
}

/// Claimed through its handle, its place in the list of the group is skipped by an immediate
/// shutdown.
#[test]
fn an_immediate_shutdown_meets_tasks_that_were_claimed() {
    let pool = ThreadPool::new(1, 1, HOUR);
    let group = pool.group::<()>();
    let inner = group.clone();
    let stops = pool.clone();
    let worker = pool.evaluate(move || {
        let (claimed, dropped) = (inner.evaluate(|| 1), inner.evaluate(|| 2));
        #[cfg(feature = "async")]
        let (polled, unpolled) = (inner.spawn_await(async { 3 }), inner.spawn_await(async { 4 }));
        assert_eq!(claimed.await_complete(), 1);
        #[cfg(feature = "async")]
        assert_eq!(polled.await_complete(), 3);
        assert_eq!(stops.shutdown_now().len(), 0, "a group gives no task away");
        #[cfg(feature = "async")]
        assert!(unpolled.try_await_complete().unwrap_err().is_cancelled());
        dropped.try_await_complete().unwrap_err().is_cancelled()
    });
    assert!(settled(worker).unwrap());
    waited(&group).unwrap();
    assert!(pool.join_timeout(LIMIT));
    let stats = pool.stats();
    let (completed, cancelled) = if cfg!(feature = "async") { (3, 2) } else { (2, 1) };
    assert_eq!((stats.completed, stats.cancelled, stats.in_flight()), (completed, cancelled, 0));
}

#[cfg(feature = "async")]
mod futures {
    use super::common::triggered;
    use super::*;

    #[test]
    fn at_most_the_limit_is_pending_and_each_has_its_result() {
        let pool = pool(2);
        let group = pool.group::<()>().limit(2);
        let [(one, one_fires), (two, two_fires)] = [1, 2].map(|i| {
            let (trigger, triggered) = triggered();
            let handle = group.spawn_await(async move {
                triggered.await;
                i
            });
            (handle, trigger)
        });
        let _ = refused(group.try_spawn_await(async { 3 }), RejectReason::Full);
        one_fires.fire();
        assert_eq!(settled(one).unwrap(), 1);
        assert_eq!(settled(group.spawn_await(async { 3 })).unwrap(), 3);
        two_fires.fire();
        assert_eq!(settled(two).unwrap(), 2);
        waited(&group).unwrap();
    }

    #[test]
    fn a_panic_cancels_the_group_and_goes_to_the_handle() {
        let pool = pool(2);
        let group = pool.group::<()>();
        let (_trigger, triggered) = triggered();
        let waits = group.spawn_await(triggered);
        let panics = group.spawn_await(async { panic!("on purpose") });
        assert_eq!(settled(panics).unwrap_err().to_string(), "the task panicked: on purpose");
        assert!(is_cancelled(waits));
        assert!(waited(&group).unwrap_err().is_cancelled());
    }

    #[test]
    fn cancelling_a_handle_or_the_group() {
        let pool = pool(2);
        let group = pool.group::<()>();
        let drops = Drops::default();
        let spawn = || {
            let (captured, (trigger, triggered)) = (drops.issue(), triggered());
            let handle = group.spawn_await(async move {
                let _captured = captured;
                triggered.await;
            });
            (handle, trigger)
        };
        let [(one, _one_fires), (other, _other_fires)] = [spawn(), spawn()];
        assert!(one.cancel_and_wait().unwrap_err().is_cancelled());
        assert_eq!(drops.count(), 1);
        assert!(!other.is_finished() && !group.is_cancelled());
        group.cancel();
        assert!(is_cancelled(other));
        assert!(waited(&group).unwrap_err().is_cancelled());
        assert_eq!((drops.count(), group.dropped_count()), (2, 2));
    }
}

/// Submits a task from inside a group with one slot, so that the task waits in line, behind as many
/// `others` that add one to `ran`. The submitter keeps the slot until the gate opens.
fn deferred(
    group: &TaskGroup<()>,
    others: usize,
    ran: &Arc<AtomicUsize>,
    task: impl FnOnce() + Send + 'static,
) -> (Arc<Gate>, JoinHandle<()>) {
    let (gate, inner) = (Gate::new(), group.clone());
    let passes = Arc::clone(&gate);
    let (sender, receiver) = mpsc::channel();
    let ran = Arc::clone(ran);
    let submits = move || {
        for _ in 0..others {
            let ran = Arc::clone(&ran);
            let other = move || {
                ran.fetch_add(1, Ordering::SeqCst);
                Ok(())
            };
            inner.execute(other).unwrap();
        }
        sender.send(inner.evaluate(task)).unwrap();
        passes.pass();
        Ok(())
    };
    group.execute(submits).unwrap();
    (gate, receiver.recv_timeout(LIMIT).unwrap())
}

/// The defect: the worker that waited dropped the task, which gave back a slot that it never had.
/// Then the task's turn came, or its group or pool ended, and met a task that was gone.
#[test]
fn a_cancelled_task_in_line_leaves_the_line() {
    let ends: [fn(&ThreadPool, &TaskGroup<()>); 3] =
        [|_, _| {}, |_, group| group.cancel(), |pool, _| drop(pool.shutdown_now())];
    for end in ends {
        let pool = pool(4);
        let group = pool.group::<()>().limit(1);
        let ran = Arc::default();
        let (gate, handle) = deferred(&group, 2, &ran, || ());
        assert_eq!(common::in_line(&group), 3);
        handle.cancel();
        assert_eq!(common::in_line(&group), 2);
        let waits = pool.evaluate(move || handle.cancel_and_wait().is_err());
        wait_until("it is gone", || waits.is_finished());
        assert_eq!(ran.load(Ordering::SeqCst), 0, "there is one slot");
        end(&pool, &group);
        gate.open();
        assert!(settled(waits).unwrap());
        let _ = waited(&group);
        assert!(pool.join_timeout(LIMIT));
    }
}

/// The ways to cancel a task by its handle.
const WAYS: [fn(JoinHandle<()>); 3] = [
    |handle| {
        handle.cancel();
        assert!(is_cancelled(handle));
    },
    |handle| drop(handle.cancel_on_drop()),
    |handle| assert!(handle.cancel_and_wait().unwrap_err().is_cancelled()),
];

/// Submits tasks from inside a group with one slot, whose submitter keeps the only worker busy.
/// Returns their handles.
fn submitted_inside<R: Send + 'static>(
    group: &TaskGroup<()>,
    submit: impl FnOnce(&TaskGroup<()>) -> R + Send + 'static,
) -> (Arc<Gate>, R) {
    let (gate, inner) = (Gate::new(), group.clone());
    let passes = Arc::clone(&gate);
    let (sender, receiver) = mpsc::channel();
    let submits = move || {
        sender.send(submit(&inner)).unwrap();
        passes.pass();
        Ok(())
    };
    group.execute(submits).unwrap();
    (gate, receiver.recv_timeout(LIMIT).unwrap())
}

/// The defect: what they had captured stayed until they had a slot and a worker came to them.
#[test]
fn cancelled_tasks_that_wait_in_line_are_dropped_at_once() {
    // In line for a slot, or behind the busy worker with one: then they hold a permit too.
    for has_slot in [false, true] {
        let pool = ThreadPool::builder().core_size(1).max_size(1).queue_capacity(8).build();
        let group = pool.group::<()>().limit(1);
        let (ran, drops) = (Arc::new(AtomicUsize::new(0)), Drops::default());
        let (runs, issues) = (Arc::clone(&ran), drops.clone());
        let (gate, handles) = submitted_inside(&group, move |group| {
            let task = || {
                let (runs, captured) = (Arc::clone(&runs), issues.issue());
                move || {
                    runs.fetch_add(1, Ordering::SeqCst);
                    drop(captured);
                }
            };
            #[cfg_attr(not(feature = "async"), expect(unused_mut, reason = "futures follow"))]
            let mut handles: Vec<_> = (0..4).map(|_| group.evaluate(task())).collect();
            #[cfg(feature = "async")]
            handles.extend((0..4).map(|_| {
                let task = task();
                group.spawn_await(async move { task() })
            }));
            handles
        });
        if has_slot {
            group.set_limit(100);
        }
        let count = handles.len();
        assert_eq!(pool.stats().in_flight(), 1 + count);
        let mut left = count;
        let mut kept = Vec::new();
        for (number, handle) in handles.into_iter().enumerate() {
            if number % 4 == 3 {
                kept.push(handle);
                continue;
            }
            WAYS[number % 4](handle);
            left -= 1;
            assert_eq!(drops.count(), count - left, "dropped by its canceller");
            assert_eq!(pool.stats().in_flight(), 1 + left);
            assert_eq!(common::in_line(&group), if has_slot { 0 } else { left });
        }
        assert_eq!(ran.load(Ordering::SeqCst), 0);
        gate.open();
        kept.into_iter().for_each(|handle| settled(handle).unwrap());
        waited(&group).unwrap();
        assert_eq!((group.dropped_count(), drops.count()), (count - left, count));
        assert!(pool.join_timeout(LIMIT));
        let stats = pool.stats();
        assert_eq!((stats.cancelled, stats.queued, stats.active), (count - left, 0, 0));
        // The group's slots and the pool's permits are all free.
        let gate = block(&pool);
        assert!((0..8).all(|_| pool.try_execute(|| ()).is_ok()));
        assert!(pool.try_execute(|| ()).is_err());
        gate.open();
        assert!(pool.shutdown_join_timeout(LIMIT));
    }
}

/// The defect: their permits were never released.
#[test]
fn a_group_that_is_cancelled_releases_the_permits_of_tasks_that_have_waited_in_line() {
    let pool = ThreadPool::builder().core_size(1).max_size(1).queue_capacity(8).build();
    let group = pool.group::<()>().limit(1);
    let (gate, handles) = submitted_inside(&group, |group| {
        #[cfg_attr(not(feature = "async"), expect(unused_mut, reason = "futures follow"))]
        let mut handles: Vec<_> = (0..2).map(|_| group.evaluate(|| ())).collect();
        #[cfg(feature = "async")]
        handles.extend((0..4).map(|_| group.spawn_await(async {})));
        handles
    });
    group.set_limit(100);
    let count = handles.len();
    group.cancel();
    assert!(handles.iter().all(JoinHandle::is_finished));
    let stats = pool.stats();
    assert_eq!((stats.in_flight(), stats.queued, stats.cancelled), (1, 0, count));
    assert!((0..8).all(|_| pool.try_execute(|| ()).is_ok()));
    assert!(pool.try_execute(|| ()).is_err());
    gate.open();
    assert!(waited(&group).unwrap_err().is_cancelled());
    assert!(pool.shutdown_join_timeout(LIMIT));
}

/// The defect: it ran on the thread that shut the pool down.
#[test]
fn an_immediate_shutdown_drops_a_task_that_has_waited_in_line() {
    struct SlowDrop(Arc<Gate>);
    impl Drop for SlowDrop {
        fn drop(&mut self) {
            self.0.pass();
        }
    }

    let pool = pool(1);
    let group = pool.group::<()>().limit(1);
    let (ran, slow) = (Arc::default(), Gate::new());
    let (runs, captured) = (Arc::clone(&ran), SlowDrop(Arc::clone(&slow)));
    let (gate, handle) = deferred(&group, 0, &ran, move || {
        runs.fetch_add(1, Ordering::SeqCst);
        drop(captured);
    });
    group.set_limit(2);
    let stops = pool.clone();
    let stopper = thread::spawn(move || stops.shutdown_now().len());
    slow.wait_for(1);
    // Law 2: the handle resolves when the task is gone.
    assert!(!handle.is_finished());
    slow.open();
    assert_eq!(stopper.join().unwrap(), 0);
    assert!(is_cancelled(handle));
    gate.open();
    assert_eq!(ran.load(Ordering::SeqCst), 0);
    assert!(pool.join_timeout(LIMIT));
}

/// The defect: the destructor waited for the slot of the task whose value it drops.
#[test]
fn the_destructor_of_an_unclaimed_value_is_code_of_the_group() {
    struct Submits(TaskGroup<()>, mpsc::Sender<bool>);

    impl Drop for Submits {
        fn drop(&mut self) {
            self.1.send(self.0.execute(|| Ok(())).is_ok()).unwrap();
        }
    }

    let pool = pool(2);
    let group = pool.group::<()>().limit(1);
    let (sender, receiver) = mpsc::channel();
    let value = Submits(group.clone(), sender.clone());
    drop(group.evaluate(move || value));
    assert_eq!(receiver.recv_timeout(LIMIT), Ok(true));
    #[cfg(feature = "async")]
    {
        let value = Submits(group.clone(), sender);
        drop(group.spawn_await(async move { value }));
        assert_eq!(receiver.recv_timeout(LIMIT), Ok(true));
    }
    waited(&group).unwrap();
}
