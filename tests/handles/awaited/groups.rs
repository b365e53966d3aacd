//! A worker that waits for a group runs its tasks.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use crate::awaited::{
    Runs, WHILE, assert_ended_on, assert_newest_first, at_work, here, in_task, pool,
};
use crate::common::{Drops, Gate, LIMIT, block, in_line, joined, under_way, value, wait_until};
use elastipool::TaskGroup;

#[test]
fn a_worker_that_waits_for_a_group_runs_its_tasks() {
    let waits: [fn(&TaskGroup<u32>) -> bool; 2] =
        [|group| group.wait().is_ok(), |group| group.wait_all().is_empty()];
    for wait in waits {
        let pool = pool(1);
        in_task(&pool, move |own| {
            let (runs, group) = (Arc::new(Runs::default()), own.group());
            for number in 0..5 {
                let runs = Arc::clone(&runs);
                let noted = group.execute(move || {
                    runs.lock().unwrap().push((number, here()));
                    Ok(())
                });
                noted.unwrap();
            }
            assert!(wait(&group));
            assert_newest_first(Arc::into_inner(runs).expect("the tasks are gone"), 5);
            assert_eq!(at_work(&own.stats()), (1, 0, 0));
        });
        assert_ended_on(1, &pool, 6);
    }
}

#[test]
fn a_thread_outside_of_the_pool_waits_for_a_group() {
    let pool = pool(1);
    let (gate, group) = (block(&pool), pool.group::<()>());
    let (sender, receiver) = mpsc::channel();
    group.execute(move || sender.send(here()).map_err(drop)).unwrap();
    let waits = group.clone();
    let waiter = thread::spawn(move || waits.wait().is_ok());
    thread::sleep(WHILE);
    assert_eq!((pool.queued_count(), waiter.is_finished()), (1, false));
    gate.open();
    assert!(joined(waiter));
    assert_eq!(receiver.recv().unwrap().1, Some(0));
    assert_ended_on(1, &pool, 2);
}

/// Notes how many tasks run at once.
#[derive(Default)]
struct Crowd {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Crowd {
    fn visit(&self) {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        crate::common::dawdle(300);
        self.now.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Workers take the group's tasks while one waits for it and takes them as well. Half of them are
/// submitted by others of the group.
#[test]
fn the_limit_of_a_group_holds_for_those_that_its_waiter_runs() {
    for (size, limit) in [(1, 1), (2, 1), (3, 1), (3, 2)] {
        let pool = pool(size);
        for _ in 0..20 {
            let most = in_task(&pool, move |own| {
                let (crowd, group) = (Arc::new(Crowd::default()), own.group::<()>().limit(limit));
                for _ in 0..10 {
                    let (inside, crowd) = (group.clone(), Arc::clone(&crowd));
                    let submitted = group.execute(move || {
                        crowd.visit();
                        let crowd = Arc::clone(&crowd);
                        let submitted = inside.execute(move || {
                            crowd.visit();
                            Ok(())
                        });
                        submitted.map_err(drop)
                    });
                    assert!(submitted.is_ok());
                }
                assert!(group.wait().is_ok());
                assert_eq!((under_way(&group), in_line(&group)), (0, 0));
                crowd.most.load(Ordering::SeqCst)
            });
            assert!((1..=limit).contains(&most), "{most} at once");
        }
        assert!(pool.join_timeout(LIMIT));
        assert_eq!((pool.stats().completed, pool.stats().in_flight()), (20 * 21, 0));
    }
}

/// A group of limit one whose task runs on another worker has nothing for its waiter to run until
/// that task has ended.
#[test]
fn a_waiter_runs_no_task_that_its_group_has_not_admitted() {
    let pool = pool(2);
    let group = pool.group::<()>().limit(1);
    let (crowd, gate) = (Arc::new(Crowd::default()), Gate::new());
    let (inside, counted, passes) = (group.clone(), Arc::clone(&crowd), Arc::clone(&gate));
    let held = group.execute(move || {
        for _ in 0..3 {
            let counted = Arc::clone(&counted);
            let submitted = inside.execute(move || {
                counted.visit();
                Ok(())
            });
            submitted.map_err(drop)?;
        }
        passes.pass();
        Ok(())
    });
    held.unwrap();
    gate.wait_for(1);
    let waits = group.clone();
    let waiter = pool.evaluate(move || waits.wait().is_ok());
    wait_until("the worker waits", || pool.stats().blocked == 1);
    assert_eq!((in_line(&group), crowd.most.load(Ordering::SeqCst)), (3, 0));
    gate.open();
    assert!(value(waiter));
    assert_eq!(crowd.most.load(Ordering::SeqCst), 1);
}

#[test]
fn errors_of_tasks_that_the_waiter_runs_end_the_group() {
    let pool = pool(1);
    in_task(&pool, |own| {
        let (drops, group) = (Drops::default(), own.group());
        let fill = |error: fn() -> Result<(), u32>| {
            for _ in 0..3 {
                let guard = drops.issue();
                let task = move || {
                    drop(guard);
                    Ok(())
                };
                group.execute(task).unwrap();
            }
            group.execute(error).unwrap();
        };
        fill(|| Err(7));
        // The newest one is run first; the others are cancelled.
        assert_eq!(group.wait().unwrap_err().to_string(), "7");
        assert_eq!((drops.count(), group.dropped_count()), (3, 3));
        fill(|| panic!("on the stack of the waiter"));
        let errors = group.wait_all();
        assert!(errors.len() == 1 && errors[0].is_panic(), "{errors:?}");
        assert_eq!((drops.count(), group.dropped_count()), (6, 6));
        let cancels = group.clone();
        fill(|| Ok(()));
        let task = move || {
            cancels.cancel();
            Ok(())
        };
        group.execute(task).unwrap();
        assert!(group.wait().unwrap_err().is_cancelled());
        assert_eq!((drops.count(), group.dropped_count()), (9, 10));

        let group = own.group().keep_going();
        group.execute(|| Ok(())).unwrap();
        for error in 0..3 {
            group.execute(move || Err(error)).unwrap();
        }
        let errors: Vec<_> = group.wait_all().iter().map(ToString::to_string).collect();
        assert_eq!(errors, ["2", "1", "0"]);
        assert_eq!(group.dropped_count(), 0);
    });
    assert_ended_on(1, &pool, 18);
    let stats = pool.stats();
    assert_eq!((stats.completed, stats.panicked, stats.cancelled), (7, 1, 10));
}

/// A group is over when it is quiet for a moment: what comes after that the waiter does not depend
/// on. Here that comes in the same moment, and needs the waiter.
#[test]
fn a_waiter_runs_nothing_that_comes_after_its_group_was_quiet() {
    use std::future::IntoFuture;
    use std::pin::pin;
    use std::task::{Context, Wake, Waker};

    /// Submits a task to the group that it receives, and does not end before the gate is opened.
    struct Submits(TaskGroup<()>, Arc<Gate>);

    impl Wake for Submits {
        fn wake(self: Arc<Self>) {
            let gate = Arc::clone(&self.1);
            let task = move || {
                gate.pass();
                Ok(())
            };
            self.0.execute(task).unwrap();
        }
    }

    let pool = pool(1);
    let (group, gate) = (pool.group(), Gate::new());
    let (own, opens) = (pool.clone(), Arc::clone(&gate));
    let waits = group.clone();
    let (begun, go) = (Gate::new(), Gate::new());
    let (begins, goes) = (Arc::clone(&begun), Arc::clone(&go));
    let waiter = pool.evaluate(move || {
        waits.execute(|| Ok(())).unwrap();
        begins.open();
        goes.pass();
        let is_ok = waits.wait().is_ok();
        let queued = own.queued_count();
        opens.open();
        (is_ok, queued)
    });
    begun.pass();
    let mut other = pin!(group.clone().into_future());
    let waker = Waker::from(Arc::new(Submits(group.clone(), gate)));
    assert!(other.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    go.open();
    assert_eq!(value(waiter), (true, 1));
    assert!(other.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
    group.wait().unwrap();
    assert_ended_on(1, &pool, 3);
}

/// Another thread cancels the group while its waiter runs one of its tasks.
#[test]
fn a_group_that_is_cancelled_while_its_waiter_runs_it_drops_the_rest() {
    let pool = pool(1);
    let (group, gate) = (pool.group::<()>(), Gate::new());
    let (waits, passes) = (group.clone(), Arc::clone(&gate));
    let waiter = pool.evaluate(move || {
        let ran = Arc::new(AtomicUsize::new(0));
        for _ in 0..3 {
            let ran = Arc::clone(&ran);
            waits.execute(move || Ok(_ = ran.fetch_add(1, Ordering::SeqCst))).unwrap();
        }
        let task = move || {
            passes.pass();
            Ok(())
        };
        waits.execute(task).unwrap();
        let error = waits.wait().unwrap_err();
        (error.is_cancelled(), waits.dropped_count(), ran.load(Ordering::SeqCst))
    });
    gate.wait_for(1);
    group.cancel();
    gate.open();
    assert_eq!(value(waiter), (true, 3, 0));
    assert_ended_on(1, &pool, 5);
    assert_eq!(pool.stats().cancelled, 3);
}
