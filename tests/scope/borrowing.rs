//! Tasks borrow what lives outside of the scope, and the scope waits for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use crate::common::{Gate, wait_until};
use crate::{MOMENT, OnDrop, hosted, in_time, pool, wait_for_wait};
use elastipool::worker_index;

#[test]
fn scoped_tasks_share_what_lives_outside_of_the_scope() {
    in_time(|| {
        let texts = [String::from("one"), String::from("three")];
        let sum = AtomicUsize::new(0);
        pool(2).scope(|scope| {
            for _ in 0..10 {
                scope.execute(|| {
                    sum.fetch_add(texts.iter().map(String::len).sum(), Ordering::Relaxed);
                });
            }
        });
        assert_eq!((sum.into_inner(), texts.len()), (80, 2));
    });
}

#[test]
fn scoped_tasks_change_what_lives_outside_of_the_scope() {
    in_time(|| {
        let mut numbers = vec![0; 100];
        pool(2).scope(|scope| {
            for (index, part) in numbers.chunks_mut(7).enumerate() {
                scope.execute(move || part.fill(index));
            }
        });
        assert!((0..100).all(|index| numbers[index] == index / 7), "{numbers:?}");
    });
}

#[test]
fn scoped_tasks_run_on_workers_and_the_body_on_the_caller() {
    in_time(|| {
        let here = thread::current().id();
        let pool = pool(1);
        pool.scope(|scope| {
            assert_eq!(thread::current().id(), here);
            let there = scope.evaluate(|| (thread::current().id(), worker_index()));
            let (thread, index) = there.await_complete();
            assert_ne!(thread, here);
            assert_eq!(index, Some(0));
        });
    });
}

#[test]
fn a_scope_waits_for_a_task() {
    hosted(|host| {
        let (ended, begun) = (AtomicBool::new(false), Gate::new());
        pool(1).scope(|scope| {
            scope.execute(|| {
                begun.meet(2);
                wait_for_wait(host);
                thread::sleep(MOMENT);
                ended.store(true, Ordering::Relaxed);
            });
            begun.meet(2);
        });
        assert!(ended.into_inner());
    });
}

#[test]
fn a_scope_waits_for_a_task_whose_handle_was_dropped() {
    hosted(|host| {
        let (ended, begun) = (AtomicBool::new(false), Gate::new());
        pool(1).scope(|scope| {
            drop(scope.evaluate(|| {
                begun.meet(2);
                wait_for_wait(host);
                thread::sleep(MOMENT);
                ended.store(true, Ordering::Relaxed);
            }));
            begun.meet(2);
        });
        assert!(ended.into_inner());
    });
}

#[test]
fn a_scope_waits_for_the_last_of_many_tasks() {
    hosted(|host| {
        let (pool, ended, begun) = (pool(3), AtomicUsize::new(0), Gate::new());
        pool.scope(|scope| {
            for place in 0..3 {
                let (ended, pool, begun) = (&ended, &pool, &begun);
                scope.execute(move || {
                    begun.meet(4);
                    wait_for_wait(host);
                    wait_until("the others have ended", || pool.stats().completed == place);
                    thread::sleep(MOMENT / 4);
                    ended.fetch_add(1, Ordering::Relaxed);
                });
            }
            begun.meet(4);
        });
        assert_eq!(ended.into_inner(), 3);
    });
}

/// When the task has returned its captures are still there, and may look at what is borrowed.
#[test]
fn a_scope_waits_for_slow_destructors_of_captures() {
    hosted(|host| {
        let (dropped, begun) = (AtomicBool::new(false), Gate::new());
        pool(1).scope(|scope| {
            let capture = OnDrop(|| {
                wait_for_wait(host);
                thread::sleep(MOMENT);
                dropped.store(true, Ordering::Relaxed);
            });
            let begins = Arc::clone(&begun);
            scope.execute(move || {
                let _captured = &capture;
                begins.meet(2);
            });
            begun.meet(2);
        });
        assert!(dropped.into_inner());
    });
}

#[test]
fn a_scope_waits_for_slow_destructors_of_results_without_a_handle() {
    hosted(|host| {
        let dropped = AtomicBool::new(false);
        pool(1).scope(|scope| {
            let result = OnDrop(|| {
                wait_for_wait(host);
                thread::sleep(MOMENT);
                dropped.store(true, Ordering::Relaxed);
            });
            // With its handle gone by then, or the thread that drops it would drop the result.
            let gate = Gate::new();
            let passes = Arc::clone(&gate);
            drop(scope.evaluate(move || {
                passes.pass();
                result
            }));
            gate.wait_for(1);
            gate.open();
        });
        assert!(dropped.into_inner());
    });
}

/// Without a further synchronisation. By many tasks, so that there is more than one last.
#[test]
fn what_tasks_wrote_is_visible_after_the_scope() {
    in_time(|| {
        let pool = pool(3);
        for _ in 0..200 {
            let count = AtomicUsize::new(0);
            let mut plain = [0_u8; 8];
            pool.scope(|scope| {
                for part in &mut plain {
                    let count = &count;
                    scope.execute(move || {
                        count.fetch_add(1, Ordering::Relaxed);
                        *part = 1;
                    });
                }
            });
            assert_eq!(count.load(Ordering::Relaxed), 8);
            assert_eq!(plain, [1; 8]);
        }
    });
}
