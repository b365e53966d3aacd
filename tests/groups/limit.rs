//! The limit of a task group: how many of its tasks are under way, which submitters wait and in
//! which order, and that no task waits for itself.

use crate::common;

use std::panic::catch_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use common::{
    Drops, Gate, HOUR, LIMIT, block, failure, hold, in_line, joined, refused, under_way, value,
    wait_until, waited,
};
use elastipool::{RejectReason, TaskGroup, ThreadPool, blocking};

type Group = TaskGroup<&'static str>;

fn pool(max_size: usize) -> ThreadPool {
    ThreadPool::new(1, max_size, HOUR)
}

/// How many there are at the same time, and were at most.
#[derive(Clone, Default)]
struct Peak(Arc<Mutex<(usize, usize)>>);

struct Present(Peak);

impl Peak {
    fn enter(&self) -> Present {
        let mut counts = self.0.lock().unwrap();
        counts.0 += 1;
        counts.1 = counts.1.max(counts.0);
        Present(self.clone())
    }

    fn peak(&self) -> usize {
        self.0.lock().unwrap().1
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        self.0.0.lock().unwrap().0 -= 1;
    }
}

/// Starts a thread that waits until the group admits `task`, after those that wait already. It
/// returns what the submission returns.
#[track_caller]
fn submitter<F>(group: &Group, task: F) -> thread::JoinHandle<Result<(), RejectReason>>
where
    F: FnOnce() -> Result<(), &'static str> + Send + 'static,
{
    let before = in_line(group);
    let submits = group.clone();
    let submission = move || submits.execute(task).map_err(|rejected| rejected.reason());
    let thread = thread::spawn(submission);
    wait_until("it is in line", || in_line(group) == before + 1);
    thread
}

/// Submits a task that submits two, and so on, each as a task of the group.
fn grow_tree(group: &Group, depth: u32, counts: &Arc<AtomicUsize>, peak: &Peak) {
    let (inside, inner_counts, inner_peak) = (group.clone(), Arc::clone(counts), peak.clone());
    let task = move || {
        let _present = inner_peak.enter();
        inner_counts.fetch_add(1, Ordering::SeqCst);
        if depth > 0 {
            grow_tree(&inside, depth - 1, &inner_counts, &inner_peak);
            grow_tree(&inside, depth - 1, &inner_counts, &inner_peak);
        }
        Ok(())
    };
    group.execute(task).unwrap();
}

// ----- how many -----

/// The submitting tasks are not the group's own. Their line does not turn into threads.
#[test]
fn tasks_that_submit_to_a_full_group_need_a_bounded_number_of_threads() {
    for max_size in [2, 8] {
        let pool = pool(max_size);
        let group = pool.group::<&str>().limit(1);
        let gate = hold(&group);
        let submission = |_| {
            let submits = group.clone();
            pool.evaluate(move || submits.execute(|| Ok(())).is_ok())
        };
        let submissions: Vec<_> = (0..1000).map(submission).collect();
        wait_until("all are in line", || in_line(&group) == 1000);
        let stats = pool.stats();
        assert!(stats.peak_workers <= 2 * max_size, "{stats:?}");
        gate.open();
        assert!(submissions.into_iter().all(value));
        assert!(waited(&group).is_ok());
        assert!(pool.join_timeout(LIMIT));
    }
}

/// A worker that waited does not count any more, whether it was granted a slot or the group was
/// cancelled.
#[test]
fn tasks_wait_for_a_slot_again_and_again() {
    let pool = pool(1);
    let group = pool.group::<&str>().limit(1);
    for is_cancelled in [false, true, false, true] {
        let gate = {
            let (group, gate) = (group.clone(), Gate::new());
            let passes = Arc::clone(&gate);
            // Holds the slot, and leaves the worker to others.
            let member = move || {
                blocking(|| passes.pass());
                Ok(())
            };
            group.execute(member).unwrap();
            gate.wait_for(1);
            gate
        };
        let submits = group.clone();
        let submission = pool.evaluate(move || submits.execute(|| Ok(())).is_ok());
        wait_until("it waits", || pool.stats().blocked == 2);
        assert_eq!(in_line(&group), 1);
        if is_cancelled {
            group.cancel();
        }
        gate.open();
        assert_eq!(value(submission), !is_cancelled);
        assert_eq!(waited(&group).is_ok(), !is_cancelled);
    }
}

#[test]
fn a_group_limit_of_zero_is_refused() {
    let pool = pool(1);
    let payload = catch_unwind(|| drop(pool.group::<()>().limit(0))).unwrap_err();
    let text = payload.downcast_ref::<&str>().unwrap();
    assert!(text.starts_with("the limit of a group is 0; it must be at least 1"), "{text}");
}

#[test]
fn a_full_group_rejects_a_submitter_that_does_not_wait() {
    let pool = pool(4);
    let group = pool.group::<&str>().limit(2);
    let gates = [hold(&group), hold(&group)];
    let rejected = refused(group.try_execute(|| Ok(())), RejectReason::Full);
    assert_eq!(rejected.to_string(), "the task was not accepted: the group is full");
    assert_eq!((pool.stats().rejected, under_way(&group)), (1, 2));
    // The pool itself is not full.
    assert_eq!(value(pool.evaluate(|| 7)), 7);
    gates[0].open();
    wait_until("there is a place", || under_way(&group) == 1);
    group.try_execute(rejected.into_task()).unwrap();
    gates[1].open();
    assert!(waited(&group).is_ok());
}

#[test]
fn as_many_tasks_as_the_groups_limit_run_at_the_same_time() {
    for limit in [1, 2, 5] {
        let pool = pool(limit);
        let group = pool.group::<&str>().limit(limit);
        let table = Gate::new();
        for _ in 0..limit {
            let table = Arc::clone(&table);
            group
                .try_execute(move || {
                    table.meet(limit);
                    Ok(())
                })
                .unwrap();
        }
        assert!(waited(&group).is_ok());
    }
}

#[test]
fn the_limit_of_a_group_holds_in_a_storm() {
    for limit in [1, 3] {
        let pool = pool(8);
        let (group, other) = (pool.group::<&str>().limit(limit), pool.group::<&str>().limit(2));
        let (peak, others) = (Peak::default(), Peak::default());
        let ran = Arc::new(AtomicUsize::new(0));
        let submit = |group: &Group, peak: &Peak| {
            let (peak, ran) = (peak.clone(), Arc::clone(&ran));
            let task = move || {
                let _present = peak.enter();
                common::dawdle(200);
                ran.fetch_add(1, Ordering::SeqCst);
                Ok(())
            };
            group.execute(task).unwrap();
        };
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        submit(&group, &peak);
                        submit(&other, &others);
                        pool.execute(|| common::dawdle(100));
                    }
                });
            }
            grow_tree(&group, 6, &ran, &peak);
        });
        assert!(waited(&group).is_ok());
        assert!(waited(&other).is_ok());
        assert_eq!(ran.load(Ordering::SeqCst), 800 + 127);
        assert!(peak.peak() <= limit && others.peak() <= 2);
        assert_eq!((under_way(&group), in_line(&group)), (0, 0));
    }
}

#[test]
fn a_raised_group_limit_admits_waiting_submitters() {
    let pool = pool(4);
    let group = pool.group::<&str>().limit(1);
    let gate = hold(&group);
    let table = Gate::new();
    let submitters: Vec<_> = (0..3)
        .map(|_| {
            let table = Arc::clone(&table);
            submitter(&group, move || {
                table.pass();
                Ok(())
            })
        })
        .collect();
    drop(group.clone().limit(3));
    table.wait_for(2);
    assert_eq!((under_way(&group), in_line(&group)), (3, 1));
    table.open();
    gate.open();
    submitters.into_iter().for_each(|submitter| joined(submitter).unwrap());
    assert!(waited(&group).is_ok());
}

#[test]
fn a_lowered_group_limit_admits_no_task_until_it_holds() {
    let pool = pool(4);
    let group = pool.group::<&str>().limit(2);
    let gates = [hold(&group), hold(&group)];
    let group = group.limit(1);
    let submitter = submitter(&group, || Ok(()));
    gates[0].open();
    wait_until("one has ended", || under_way(&group) == 1);
    assert_eq!(in_line(&group), 1);
    gates[1].open();
    joined(submitter).unwrap();
    assert!(waited(&group).is_ok());
}

// ----- who waits, and in which order -----

#[test]
fn a_group_admits_submitters_in_the_order_in_which_they_came() {
    let pool = pool(1);
    let group = pool.group::<&str>().limit(1);
    let order = Arc::new(Mutex::new(Vec::new()));
    let note = |number: usize, order: &Arc<Mutex<Vec<usize>>>| {
        let order = Arc::clone(order);
        move || {
            order.lock().unwrap().push(number);
            Ok(())
        }
    };
    // Half of those that wait are submitters, the others tasks of this one.
    let (numbers, received) = mpsc::channel();
    let (inside, inner_order) = (group.clone(), Arc::clone(&order));
    group
        .execute(move || {
            for number in received {
                inside.execute(note(number, &inner_order)).unwrap();
            }
            Ok(())
        })
        .unwrap();
    let mut submitters = Vec::new();
    for number in [0, 2, 4] {
        submitters.push(submitter(&group, note(number, &order)));
        numbers.send(number + 1).unwrap();
        wait_until("the task is in line", || in_line(&group) == number + 2);
    }
    refused(group.try_execute(|| Ok(())), RejectReason::Full);
    drop(numbers);
    submitters.into_iter().for_each(|submitter| joined(submitter).unwrap());
    assert!(waited(&group).is_ok());
    assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn a_cancellation_hands_waiting_submitters_their_tasks_back() {
    let pool = pool(1);
    let group = pool.group::<&str>().limit(1);
    let gate = hold(&group);
    let drops = Drops::default();
    let submitters: Vec<_> = (0..3)
        .map(|_| {
            let captured = drops.issue();
            submitter(&group, move || {
                std::mem::forget(captured);
                Ok(())
            })
        })
        .collect();
    group.cancel();
    // While the group is still full.
    for submitter in submitters {
        assert_eq!(joined(submitter), Err(RejectReason::Cancelled));
    }
    assert_eq!((drops.count(), in_line(&group), pool.stats().rejected), (3, 0, 3));
    gate.open();
    assert!(failure(&group).is_cancelled());
    assert_eq!(group.dropped_count(), 0);
}

#[test]
fn a_cancellation_drops_the_waiting_tasks() {
    let pool = pool(1);
    let group = pool.group::<&str>().limit(1);
    let (drops, inside) = (Drops::default(), group.clone());
    let issues = drops.clone();
    group
        .execute(move || {
            for _ in 0..5 {
                let captured = issues.issue();
                let deferred = move || {
                    std::mem::forget(captured);
                    Ok(())
                };
                inside.execute(deferred).unwrap();
            }
            assert_eq!(in_line(&inside), 5);
            inside.cancel();
            assert_eq!((in_line(&inside), issues.count()), (0, 5));
            refused(inside.execute(|| Ok(())), RejectReason::Cancelled);
            Ok(())
        })
        .unwrap();
    assert!(failure(&group).is_cancelled());
    assert_eq!((drops.count(), group.dropped_count()), (5, 5));
    assert!(pool.join_timeout(LIMIT));
    assert_eq!((pool.stats().cancelled, pool.stats().completed), (5, 1));
    // The whole limit is free again.
    let gate = hold(&group);
    refused(group.try_execute(|| Ok(())), RejectReason::Full);
    gate.open();
    assert!(waited(&group).is_ok());
}

#[test]
fn a_closed_pool_rejects_submitters_that_wait_for_a_group() {
    let pool = pool(1);
    let group = pool.group::<&str>().limit(1);
    let gate = hold(&group);
    let submitters = [submitter(&group, || Ok(())), submitter(&group, || Ok(()))];
    pool.close();
    gate.open();
    for submitter in submitters {
        assert_eq!(joined(submitter), Err(RejectReason::Closed));
    }
    assert!(waited(&group).is_ok());
    assert!(pool.shutdown_join_timeout(LIMIT));
}

#[test]
fn a_worker_that_waits_for_a_full_group_is_in_a_blocking_region() {
    let pool = pool(1);
    let group = pool.group::<&str>().limit(1);
    let gate = Gate::new();
    let passes = Arc::clone(&gate);
    group
        .execute(move || {
            blocking(|| passes.pass());
            Ok(())
        })
        .unwrap();
    gate.wait_for(1);
    let submits = group.clone();
    let submitter = pool.evaluate(move || submits.execute(|| Ok(())).is_ok());
    wait_until("it is in line", || in_line(&group) == 1);
    wait_until("it is in a region", || pool.stats().blocked == 2);
    assert_eq!(value(pool.evaluate(|| 7)), 7);
    gate.open();
    assert!(value(submitter));
    assert!(waited(&group).is_ok());
}

// ----- inside -----

#[test]
fn a_tree_of_tasks_grows_within_its_group() {
    for (max_size, limit) in [(1, 1), (1, 2), (2, 1), (4, 2)] {
        let pool = pool(max_size);
        let group = pool.group::<&str>().limit(limit);
        let (counts, peak) = (Arc::new(AtomicUsize::new(0)), Peak::default());
        grow_tree(&group, 7, &counts, &peak);
        assert!(waited(&group).is_ok());
        assert_eq!(counts.load(Ordering::SeqCst), 255);
        assert!(peak.peak() <= limit);
    }
}

#[test]
fn a_task_that_does_not_wait_is_refused_by_its_own_full_group() {
    let pool = pool(1);
    let group = pool.group::<&str>().limit(1);
    let inside = group.clone();
    group
        .execute(move || {
            refused(inside.try_execute(|| Ok(())), RejectReason::Full);
            inside.execute(|| Ok(())).unwrap();
            Ok(())
        })
        .unwrap();
    assert!(waited(&group).is_ok());
}

#[test]
fn a_task_that_is_not_of_the_full_group_waits() {
    let pool = pool(2);
    let (group, other) = (pool.group::<&str>().limit(1), pool.group::<&str>());
    let gate = hold(&group);
    let (submits, has_returned) = (group.clone(), Arc::new(AtomicUsize::new(0)));
    let returns = Arc::clone(&has_returned);
    other
        .execute(move || {
            submits.execute(|| Ok(())).unwrap();
            returns.store(1, Ordering::SeqCst);
            Ok(())
        })
        .unwrap();
    wait_until("it is in line", || in_line(&group) == 1);
    assert_eq!((has_returned.load(Ordering::SeqCst), under_way(&other)), (0, 1));
    gate.open();
    assert!(waited(&other).is_ok());
    assert!(waited(&group).is_ok());
}

#[test]
fn a_wait_for_a_group_is_also_for_its_waiting_tasks() {
    let pool = pool(1);
    let group = pool.group::<&str>().limit(1);
    let inside = group.clone();
    group
        .execute(move || {
            let last = inside.clone();
            inside
                .execute(move || last.execute(|| Err("the last")).map_err(|_| "refused"))
                .unwrap();
            Ok(())
        })
        .unwrap();
    assert_eq!(failure(&group).to_string(), "the last");
}

#[test]
fn a_limited_group_on_a_bounded_queue_runs_everything() {
    for (max_size, capacity, limit) in [(1, 0, 1), (1, 1, 2), (2, 0, 4), (2, 3, 2)] {
        let builder = ThreadPool::builder().core_size(1).max_size(max_size).keep_alive(HOUR);
        let pool = builder.queue_capacity(capacity).build();
        let group = pool.group::<&str>().limit(limit);
        let (counts, peak) = (Arc::new(AtomicUsize::new(0)), Peak::default());
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| (0..4).for_each(|_| grow_tree(&group, 3, &counts, &peak)));
            }
        });
        assert!(waited(&group).is_ok());
        assert_eq!(counts.load(Ordering::SeqCst), 12 * 15);
        assert!(peak.peak() <= limit);
        assert!(pool.join_timeout(LIMIT));
        // No permit is lost.
        let gate = Gate::new();
        for running in 1..=max_size {
            let passes = Arc::clone(&gate);
            pool.execute(move || passes.pass());
            gate.wait_for(running);
        }
        let queued = (0..8).take_while(|_| pool.try_execute(|| ()).is_ok()).count();
        assert_eq!(queued, capacity);
        gate.open();
    }
}

#[test]
fn a_full_queue_rejects_a_task_that_its_group_admits() {
    let builder = ThreadPool::builder().core_size(1).max_size(1).keep_alive(HOUR);
    let pool = builder.queue_capacity(0).build();
    let group = pool.group::<&str>().limit(1);
    let gate = block(&pool);
    let rejected = refused(group.try_execute(|| Ok(())), RejectReason::Full);
    assert_eq!(rejected.to_string(), "the task was not accepted: the queue is full");
    assert_eq!((under_way(&group), group.dropped_count()), (0, 0));
    assert!(waited(&group).is_ok());
    gate.open();
}

#[test]
fn workers_that_retire_cost_a_group_no_task() {
    let builder = ThreadPool::builder().core_size(1).max_size(2).keep_alive(HOUR);
    let pool = builder.max_tasks_per_worker(1).build();
    let group = pool.group::<&str>().limit(2);
    let (counts, peak) = (Arc::new(AtomicUsize::new(0)), Peak::default());
    grow_tree(&group, 5, &counts, &peak);
    assert!(waited(&group).is_ok());
    assert_eq!(counts.load(Ordering::SeqCst), 63);
    assert!(peak.peak() <= 2);
}

// ----- futures -----

#[cfg(feature = "async")]
mod futures {
    use super::common::{Trigger, triggered};
    use super::*;

    fn spawn_triggered(group: &Group) -> Trigger {
        let (trigger, triggered) = triggered();
        let spawned = group.spawn(async {
            triggered.await;
            Ok(())
        });
        assert!(spawned.is_ok());
        trigger
    }

    #[test]
    fn a_pending_future_counts_for_its_groups_limit() {
        let pool = pool(1);
        let group = pool.group::<&str>().limit(2);
        let triggers = [spawn_triggered(&group), spawn_triggered(&group)];
        wait_until("both wait", || pool.stats().pending == 2);
        refused(group.try_spawn(async { Ok(()) }), RejectReason::Full);
        refused(group.try_execute(|| Ok(())), RejectReason::Full);
        let submitter = submitter(&group, || Ok(()));
        triggers[1].fire();
        joined(submitter).unwrap();
        triggers[0].fire();
        assert!(waited(&group).is_ok());
    }

    #[test]
    fn a_waiting_future_comes_back_when_its_group_is_cancelled() {
        let pool = pool(1);
        let group = pool.group::<&str>().limit(1);
        let trigger = spawn_triggered(&group);
        wait_until("it waits", || trigger.polls() == 1);
        let submits = group.clone();
        let submitter = thread::spawn(move || submits.spawn(async { Err("mine") }).unwrap_err());
        wait_until("it is in line", || in_line(&group) == 1);
        group.cancel();
        let rejected = joined(submitter);
        assert_eq!(rejected.reason(), RejectReason::Cancelled);
        assert_eq!(futures_executor::block_on(rejected.into_task()), Err("mine"));
        assert!(failure(&group).is_cancelled());
    }

    fn grow_future_tree(group: &Group, depth: u32, counts: &Arc<AtomicUsize>, peak: &Peak) {
        let (inside, inner_counts, inner_peak) = (group.clone(), Arc::clone(counts), peak.clone());
        let task = async move {
            let _present = inner_peak.enter();
            inner_counts.fetch_add(1, Ordering::SeqCst);
            if depth > 0 {
                grow_future_tree(&inside, depth - 1, &inner_counts, &inner_peak);
                yield_now().await;
                grow_future_tree(&inside, depth - 1, &inner_counts, &inner_peak);
            }
            Ok(())
        };
        group.spawn(task).unwrap();
    }

    async fn yield_now() {
        let mut has_yielded = false;
        let yields = std::future::poll_fn(|context| {
            if std::mem::replace(&mut has_yielded, true) {
                return std::task::Poll::Ready(());
            }
            context.waker().wake_by_ref();
            std::task::Poll::Pending
        });
        yields.await;
    }

    #[test]
    fn a_tree_of_futures_grows_within_its_group() {
        for (max_size, limit) in [(1, 1), (1, 2), (3, 2)] {
            let pool = pool(max_size);
            let group = pool.group::<&str>().limit(limit);
            let (counts, peak) = (Arc::new(AtomicUsize::new(0)), Peak::default());
            grow_future_tree(&group, 6, &counts, &peak);
            assert!(waited(&group).is_ok());
            assert_eq!(counts.load(Ordering::SeqCst), 127);
            assert!(peak.peak() <= limit);
        }
    }
}

// ----- without threads -----

#[cfg(target_os = "linux")]
mod refused_threads {
    use super::common::refusal::{Refusal, in_a_child};
    use super::*;

    /// Runs `body` where no thread can be had, on a thread with a small stack.
    fn without_threads<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> T {
        let gate = Gate::new();
        let passes = Arc::clone(&gate);
        let begun = move || {
            passes.pass();
            body()
        };
        let thread = thread::Builder::new().stack_size(256 << 10).spawn(begun).unwrap();
        gate.wait_for(1);
        // Memory that was used once can be had again: it lies below something that is in use.
        let pieces: Vec<_> = (0..300_000).map(|_| Box::new([1_u8; 120])).collect();
        let last = Box::new([1_u8; 120]);
        drop(pieces);
        let refusal = Refusal::begin();
        gate.open();
        let result = joined(thread);
        refusal.end();
        drop(last);
        result
    }

    #[test]
    fn tasks_of_a_group_run_on_the_caller() {
        in_a_child("refused_threads::tasks_of_a_group_run_on_the_caller", || {
            without_threads(|| {
                let pool = pool(1);
                let group = pool.group::<&str>().limit(1);
                drop(refused(group.try_execute(|| Ok(())), RejectReason::NoThread));
                assert_eq!(under_way(&group), 0);
                let (caller, inside) = (thread::current().id(), group.clone());
                let ran = Arc::new(AtomicUsize::new(0));
                let counts = Arc::clone(&ran);
                let is_here =
                    move || (thread::current().id() == caller).then_some(()).ok_or("away");
                group
                    .execute(move || {
                        inside
                            .execute(move || {
                                counts.fetch_add(1, Ordering::SeqCst);
                                is_here()
                            })
                            .unwrap();
                        is_here()
                    })
                    .unwrap();
                assert!(waited(&group).is_ok());
                assert_eq!(ran.load(Ordering::SeqCst), 1);
                group.execute(|| Err("here")).unwrap();
                assert_eq!(failure(&group).to_string(), "here");
                assert_eq!((pool.stats().completed, pool.stats().threads_started), (3, 0));
            });
        });
    }

    #[test]
    fn a_hundred_thousand_waiting_tasks_run_on_the_caller() {
        in_a_child("refused_threads::a_hundred_thousand_waiting_tasks_run_on_the_caller", || {
            let ran = without_threads(|| {
                let pool = pool(1);
                let group = pool.group::<&str>().limit(1);
                let ran = Arc::new(AtomicUsize::new(0));
                let (inside, counts) = (group.clone(), Arc::clone(&ran));
                group
                    .execute(move || {
                        for _ in 0..100_000 {
                            let counts = Arc::clone(&counts);
                            let deferred = move || {
                                counts.fetch_add(1, Ordering::SeqCst);
                                Ok(())
                            };
                            inside.execute(deferred).unwrap();
                        }
                        Ok(())
                    })
                    .unwrap();
                assert!(waited(&group).is_ok());
                assert!(pool.shutdown_join_timeout(LIMIT));
                ran.load(Ordering::SeqCst)
            });
            assert_eq!(ran, 100_000);
        });
    }

    /// What it waits for must not come after it.
    #[test]
    fn a_waiting_task_waits_for_another_group() {
        in_a_child("refused_threads::a_waiting_task_waits_for_another_group", || {
            without_threads(|| {
                let pool = pool(1);
                let group = pool.group::<&str>().limit(1);
                let (inside, inner) = (group.clone(), pool.group::<&str>().limit(1));
                group
                    .execute(move || {
                        let deferred = move || {
                            let again = inner.clone();
                            inner
                                .execute(move || again.execute(|| Ok(())).map_err(|_| ""))
                                .unwrap();
                            waited(&inner).map_err(|_| "failed")
                        };
                        inside.execute(deferred).unwrap();
                        Ok(())
                    })
                    .unwrap();
                assert!(waited(&group).is_ok());
            });
        });
    }
}
