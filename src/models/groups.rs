//! Scopes, groups and their tokens.

use std::pin::pin;
use std::time::Instant;

use super::{
    Arc, AtomicBool, AtomicUsize, Flagged, Gate, Mutex, Ordering, Relaxed, STARTS_KEEPER, builder,
    counting, explore, pool, thread,
};
use crate::sched::{Dependency, wait_for};
use crate::sync::Counter;
use crate::task::{Job, Outcome, Reporter, UnstartedList};
use crate::token::CancellationToken;
use crate::{GroupError, RejectReason, TaskGroup, ThreadPool};

/// A task of a group that counts its run.
fn succeeding(count: &Relaxed) -> impl FnOnce() -> Result<(), ()> + Send + 'static {
    let count = counting(count);
    move || {
        count();
        Ok(())
    }
}

/// Two tasks end while the scope's owner begins to wait: it sees the last end, and what both wrote.
#[test]
fn the_end_of_a_scope_versus_its_tasks() {
    explore(1, || {
        let pool = pool(2, 2);
        let ran = Relaxed::new();
        pool.scope(|scope| {
            scope.execute(|| ran.increment());
            scope.execute(|| ran.increment());
        });
        assert_eq!(ran.get(), 2);
        pool.shutdown_join();
    });
}

/// A worker runs a scope's task; the owner finds no other task, and waits for its end.
#[test]
fn the_end_of_a_scope_whose_task_a_worker_runs() {
    explore(1, || {
        let pool = pool(1, 1);
        let (begun, ran) = (AtomicBool::new(false), Relaxed::new());
        pool.scope(|scope| {
            scope.execute(|| {
                begun.store(true, Ordering::Relaxed);
                thread::yield_now();
                ran.increment();
            });
            while !begun.load(Ordering::Relaxed) {
                thread::yield_now();
            }
        });
        assert_eq!(ran.get(), 1);
        pool.shutdown_join();
    });
}

/// A task submits another one to its scope, and ends.
#[test]
fn a_task_submits_to_its_scope() {
    explore(2, || {
        let pool = pool(1, 1);
        let ran = Relaxed::new();
        pool.scope(|scope| {
            scope.execute(|| {
                scope.execute(|| ran.increment());
                ran.increment();
            });
        });
        assert_eq!(ran.get(), 2);
        pool.shutdown_join();
    });
}

/// A thread outside opens two scopes. It runs the first one's task, or the worker does. The worker
/// must start the second one's, which may rely on the first one's entry if the queue holds none,
/// while the worker takes that entry.
#[test]
fn a_scope_after_another_one() {
    for capacity in [None, Some(0)] {
        explore(2, move || {
            let mut builder = builder(1, 1);
            if let Some(capacity) = capacity {
                builder = builder.queue_capacity(capacity);
            }
            let pool = builder.build();
            let (ran, started) = (Relaxed::new(), Gate::new());
            pool.scope(|scope| scope.execute(|| ran.increment()));
            assert_eq!(ran.get(), 1);
            pool.scope(|scope| {
                scope.execute(|| started.open());
                started.pass();
            });
            pool.shutdown_join();
        });
    }
}

/// Two threads add a task to a list, and one entry is left over: one of the tasks relies on it,
/// unless a third thread takes it before. There is an entry for each task.
#[test]
fn two_tasks_rely_on_one_entry() {
    explore(2, || {
        let list = UnstartedList::new();
        let (entry, id) = list.add(Job::closure(|| ()), Reporter::Scope);
        let (task, _) = list.claim(id, |_| None).expect("it has not been started");
        task.run();
        let add =
            |list: Arc<UnstartedList>| move || list.add(Job::closure(|| ()), Reporter::Scope).0;
        let other = thread::spawn(add(Arc::clone(&list)));
        let worker = thread::spawn(move || entry.map(Job::run));
        let entries = [add(Arc::clone(&list))(), other.join().unwrap()].into_iter().flatten();
        let outcomes = entries.map(Job::run).chain(worker.join().unwrap());
        let ran = outcomes.filter(|outcome| matches!(outcome, Outcome::Completed));
        assert_eq!(ran.count(), 2);
        assert!(!list.has_surplus());
    });
}

/// The owner is the only worker that may be runnable.
#[test]
fn a_worker_waits_for_a_scope() {
    explore(2, || {
        let pool = pool(1, 1);
        let ran = Relaxed::new();
        let (inner, task) = (pool.clone(), ran.clone());
        let outer = pool.evaluate(move || inner.scope(|scope| scope.execute(|| task.increment())));
        outer.await_complete();
        // The model checker does not see what the handle's channel publishes.
        pool.join();
        assert_eq!(ran.get(), 1);
        pool.shutdown_join();
    });
}

/// Its destructor takes a moment. The count is no step of the model: a handle orders nothing there.
struct Captured(Arc<Counter>);

impl Drop for Captured {
    fn drop(&mut self) {
        thread::yield_now();
        self.0.increment();
    }
}

/// An immediate shutdown while a scope submits: the scope ends in any case. The task's handle
/// resolves when what the task has captured is gone.
#[test]
fn shutdown_now_versus_a_scope() {
    explore(2, || {
        let pool = pool(1, 1);
        let stopping = {
            let pool = pool.clone();
            thread::spawn(move || assert!(pool.shutdown_now().is_empty()))
        };
        let (ran, gone) = (Relaxed::new(), Arc::new(Counter::default()));
        let captured = Captured(Arc::clone(&gone));
        let has_run = pool.scope(|scope| {
            let accepted = scope.try_evaluate(|| {
                let _captured = captured;
                ran.increment();
            });
            accepted.is_ok_and(|handle| {
                let has_run = handle.try_await_complete().is_ok();
                assert_eq!(gone.get(), 1);
                has_run
            })
        });
        assert_eq!(ran.get(), usize::from(has_run));
        stopping.join().unwrap();
        pool.shutdown_join();
    });
}

/// Two tasks end while a thread begins to wait; a second wait returns at once.
#[test]
fn the_wait_for_a_group_versus_its_tasks() {
    explore(1, || {
        let pool = pool(2, 2);
        let group = pool.group();
        let ran = Relaxed::new();
        group.execute(succeeding(&ran)).unwrap();
        group.execute(succeeding(&ran)).unwrap();
        group.wait().unwrap();
        assert_eq!(ran.get(), 2);
        group.wait().unwrap();
        pool.shutdown_join();
    });
}

/// Two threads wait for a task that fails. One receives the error; the other learns that there was
/// one, unless it began to wait after the end.
#[test]
fn two_wait_for_an_error() {
    explore(2, || {
        let pool = pool(1, 1);
        let group = pool.group();
        group.execute(|| Err(())).unwrap();
        let other = {
            let group = group.clone();
            thread::spawn(move || group.wait_all())
        };
        let mut errors = group.wait_all();
        errors.append(&mut other.join().unwrap());
        let failures = errors.iter().filter(|error| matches!(error, GroupError::Failed(())));
        assert_eq!(failures.count(), 1);
        assert!(errors.len() <= 2);
        assert!(!group.is_cancelled());
        pool.shutdown_join();
    });
}

/// Cancel versus submit: the task runs, is dropped and counted, or is handed back. The next round
/// works.
#[test]
fn cancel_versus_submit_to_a_group() {
    explore(2, || {
        let pool = pool(1, 1);
        let group = pool.group();
        let ran = Relaxed::new();
        let canceller = {
            let group: TaskGroup<()> = group.clone();
            thread::spawn(move || group.cancel())
        };
        let rejected = match group.execute(succeeding(&ran)) {
            Ok(()) => 0,
            Err(rejected) => {
                assert_eq!(rejected.reason(), RejectReason::Cancelled);
                1
            }
        };
        canceller.join().unwrap();
        assert!(group.wait().unwrap_err().is_cancelled());
        assert_eq!(ran.get() + group.dropped_count() + rejected, 1);
        group.execute(succeeding(&ran)).unwrap();
        group.wait().unwrap();
        pool.shutdown_join();
    });
}

/// A group is cancelled while a worker takes its tasks and another thread waits for it. Each task
/// runs or is dropped, once, and the entries that are left count for nothing.
#[test]
fn cancel_versus_its_worker_and_a_waiter() {
    explore(2, || {
        let pool = pool(1, 1);
        let group = pool.group::<()>();
        let ran = Relaxed::new();
        group.execute(succeeding(&ran)).unwrap();
        let handle = group.evaluate(counting(&ran));
        let waiter = {
            let group = group.clone();
            thread::spawn(move || drop(group.wait()))
        };
        group.cancel();
        drop(handle.try_await_complete());
        drop(group.wait());
        waiter.join().unwrap();
        assert_eq!(ran.get() + group.dropped_count(), 2);
        pool.shutdown_join();
    });
}

/// The only worker runs a task of others until the group's wait has returned.
#[test]
fn cancel_versus_its_worker_that_is_busy() {
    explore(2, || {
        let pool = pool(1, 1);
        let gate = Gate::new();
        let passes = gate.clone();
        pool.execute(move || passes.pass());
        let group = pool.group::<()>();
        group.execute(|| Ok(())).unwrap();
        group.cancel();
        assert!(group.wait().unwrap_err().is_cancelled());
        assert_eq!(group.dropped_count(), 1);
        gate.open();
        pool.shutdown_join();
    });
}

/// Race 48: the same, while the task is submitted. It is handed back or dropped.
#[test]
fn cancel_versus_a_late_task() {
    explore(2, || {
        let pool = pool(1, 1);
        let gate = Gate::new();
        let passes = gate.clone();
        pool.execute(move || passes.pass());
        let group = pool.group::<()>();
        let canceller = {
            let group = group.clone();
            thread::spawn(move || group.cancel())
        };
        let accepted = group.execute(|| Ok(())).is_ok();
        canceller.join().unwrap();
        assert!(group.wait().unwrap_err().is_cancelled());
        assert_eq!(group.dropped_count(), usize::from(accepted));
        gate.open();
        pool.shutdown_join();
    });
}

/// The keeper cancels the group at its deadline while its task is started and ends.
#[test]
fn a_deadline_versus_a_task() {
    explore(1, || {
        STARTS_KEEPER.set(true);
        let pool = pool(1, 1);
        let (group, ran) = (pool.group::<()>(), Relaxed::new());
        group.execute(succeeding(&ran)).unwrap();
        group.set_deadline(Instant::now());
        pool.shared().keeper.expire();
        let result = group.wait();
        assert!(result.is_ok() || result.unwrap_err().is_expired());
        assert_eq!(ran.get() + group.dropped_count(), 1);
        pool.shutdown_join();
    });
}

/// Race 48: a worker drops the group's task, and the next round begins, while the canceller takes
/// the group's tasks. It has cancelled one round only.
#[test]
fn the_next_round_versus_cancel() {
    explore(2, || {
        let pool = pool(1, 1);
        let group = pool.group::<()>();
        group.execute(|| Ok(())).unwrap();
        let canceller = {
            let group = group.clone();
            thread::spawn(move || group.cancel())
        };
        let first = group.wait();
        // Handed back, if the group is cancelled only now.
        let _ = group.execute(|| Ok(()));
        let second = group.wait();
        canceller.join().unwrap();
        assert!(first.is_ok() || second.is_ok());
        pool.shutdown_join();
    });
}

/// Close versus submit.
#[test]
fn close_versus_submit_to_a_group() {
    explore(2, || {
        let pool = pool(1, 1);
        let group = pool.group();
        let ran = Relaxed::new();
        let closer = {
            let pool = pool.clone();
            thread::spawn(move || pool.close())
        };
        let accepted = group.execute(succeeding(&ran)).is_ok();
        closer.join().unwrap();
        group.wait().unwrap();
        assert_eq!(ran.get(), usize::from(accepted));
        pool.shutdown_join();
    });
}

/// A submitter begins to wait for the only slot while the task in it ends. Two tasks never overlap.
#[test]
fn a_full_group_versus_the_end_of_a_task() {
    explore(1, || {
        let pool = pool(2, 2);
        let group = pool.group::<()>().limit(1);
        let running = Arc::new(AtomicUsize::new(0));
        for _ in 0..2 {
            let running = Arc::clone(&running);
            let task = move || {
                assert_eq!(running.fetch_add(1, Ordering::Relaxed), 0);
                assert_eq!(running.fetch_sub(1, Ordering::Relaxed), 1);
                Ok(())
            };
            group.execute(task).unwrap();
        }
        group.wait().unwrap();
        pool.shutdown_join();
    });
}

/// A submitter begins to wait for a slot while the group is cancelled.
#[test]
fn a_full_group_versus_cancel() {
    explore(2, || {
        let pool = pool(1, 1);
        let group = pool.group::<()>().limit(1);
        let gate = Gate::new();
        let passes = gate.clone();
        group
            .execute(move || {
                passes.pass();
                Ok(())
            })
            .unwrap();
        let canceller = {
            let group = group.clone();
            thread::spawn(move || group.cancel())
        };
        let rejected = group.execute(|| Ok(())).unwrap_err();
        assert_eq!(rejected.reason(), RejectReason::Cancelled);
        gate.open();
        canceller.join().unwrap();
        assert!(group.wait().unwrap_err().is_cancelled());
        pool.shutdown_join();
    });
}

/// A task submits another one to its full group: that one waits for a slot, even if the pool is
/// closed.
#[test]
fn a_task_in_line_versus_close() {
    explore(2, || {
        let pool = pool(0, 1);
        let group = pool.group::<()>().limit(1);
        let ran = Relaxed::new();
        let accepted = Relaxed::new();
        let (inner, task, counted) = (group.clone(), succeeding(&ran), counting(&accepted));
        group
            .execute(move || {
                if inner.execute(task).is_ok() {
                    counted();
                }
                Ok(())
            })
            .unwrap();
        pool.shutdown_join();
        assert_eq!(ran.get(), accepted.get());
        group.wait().unwrap();
    });
}

/// A task that waits for a slot versus cancel: it runs, or is dropped and counted before the wait
/// ends.
#[test]
fn a_task_in_line_versus_cancel() {
    explore(2, || {
        let pool = pool(1, 1);
        let group = pool.group::<()>().limit(1);
        let [submitted, ran] = [Relaxed::new(), Relaxed::new()];
        submitted.increment();
        let (inner, task, counted) = (group.clone(), succeeding(&ran), counting(&submitted));
        let first = succeeding(&ran);
        let first = move || {
            if inner.execute(task).is_ok() {
                counted();
            }
            first()
        };
        group.execute(first).unwrap();
        group.cancel();
        assert!(group.wait().unwrap_err().is_cancelled());
        assert_eq!(ran.get() + group.dropped_count(), submitted.get());
        pool.shutdown_join();
    });
}

/// An immediate shutdown while a task makes another one wait for a slot.
#[test]
fn a_task_in_line_versus_shutdown_now() {
    explore(2, || {
        let pool = pool(1, 1);
        let group = pool.group::<()>().limit(1);
        let ran = Relaxed::new();
        let (inner, task) = (group.clone(), succeeding(&ran));
        group
            .execute(move || {
                let _ = inner.execute(task);
                Ok(())
            })
            .unwrap();
        assert!(pool.shutdown_now().is_empty());
        pool.shutdown_join();
        let _ = group.wait();
    });
}

/// A task in line is cancelled through its handle while its slot becomes free.
#[test]
fn cancel_versus_the_slot_of_a_task_in_line() {
    explore(2, || {
        let pool = pool(1, 1);
        let group = pool.group::<()>().limit(1);
        let ran = Relaxed::new();
        let (inner, task) = (group.clone(), counting(&ran));
        let handle = Arc::new(Mutex::new(None));
        let place = Arc::clone(&handle);
        let submits = move || {
            let handle = inner.evaluate(task);
            *place.lock().unwrap() = Some(handle);
            Ok(())
        };
        group.execute(submits).unwrap();
        let handle = loop {
            let handle = handle.lock().unwrap().take();
            match handle {
                Some(handle) => break handle,
                None => thread::yield_now(),
            }
        };
        let has_run = handle.cancel_and_wait().is_ok();
        assert!(group.wait().is_ok());
        assert_eq!((ran.get(), group.dropped_count()), (has_run.into(), (!has_run).into()));
        pool.shutdown_join();
    });
}

/// A group is cancelled while its future is polled for the first time, or is pending: it is
/// dropped.
#[test]
fn cancel_versus_a_future_of_a_group() {
    explore(2, || {
        let pool = pool(1, 1);
        let group = pool.group::<()>();
        let waker = Arc::new(Mutex::new(None));
        let future = Flagged { ready: Arc::new(AtomicBool::new(false)), waker: Arc::clone(&waker) };
        group
            .spawn(async move {
                future.await;
                Ok(())
            })
            .unwrap();
        group.cancel();
        assert!(group.wait().unwrap_err().is_cancelled());
        assert_eq!(group.dropped_count(), 1);
        pool.shutdown_join();
    });
}

/// A failure cancels the future that another worker polls.
#[test]
fn a_failure_versus_a_future_of_its_group() {
    explore(1, || {
        let pool: ThreadPool = pool(2, 2);
        let group = pool.group();
        let waker = Arc::new(Mutex::new(None));
        let future = Flagged { ready: Arc::new(AtomicBool::new(false)), waker: Arc::clone(&waker) };
        group
            .spawn(async move {
                future.await;
                Ok(())
            })
            .unwrap();
        let accepted = group.execute(|| Err(())).is_ok();
        assert!(accepted);
        assert!(matches!(group.wait(), Err(GroupError::Failed(()))));
        assert_eq!(group.dropped_count(), 1);
        pool.shutdown_join();
    });
}

/// A thread begins to wait for a token while it is cancelled.
#[test]
fn cancelled_versus_cancel() {
    explore(3, || {
        let token = CancellationToken::new();
        let other = {
            let token = token.clone();
            thread::spawn(move || token.cancel())
        };
        assert!(wait_for(pin!(token.cancelled()), None, Dependency::Other).is_some());
        assert!(token.is_cancelled());
        other.join().unwrap();
    });
}
