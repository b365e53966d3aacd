//! Tasks, and destructors of what they captured, submit tasks to their scope.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::common::{Gate, LIMIT};
use crate::{MOMENT, OnDrop, assert_works, hosted, in_time, pool, wait_for_wait};
use elastipool::{Scope, ThreadPool};

#[test]
fn tasks_submit_tasks_to_their_scope() {
    fn submit<'scope>(scope: &'scope Scope<'scope, '_>, depth: usize, count: &'scope AtomicUsize) {
        count.fetch_add(1, Ordering::Relaxed);
        if depth > 0 {
            for _ in 0..2 {
                scope.execute(move || submit(scope, depth - 1, count));
            }
        }
    }

    in_time(|| {
        for size in [1, 3] {
            let count = AtomicUsize::new(0);
            pool(size).scope(|scope| submit(scope, 7, &count));
            assert_eq!(count.into_inner(), 255);
        }
    });
}

/// The scope's only task ends only after it has submitted the next: there is no moment without any.
#[test]
fn a_scope_waits_for_what_is_submitted_after_its_body() {
    hosted(|host| {
        let (mut last, begun) = (0, Gate::new());
        pool(1).scope(|scope| {
            scope.execute(|| {
                begun.meet(2);
                wait_for_wait(host);
                scope.execute(|| {
                    thread::sleep(MOMENT);
                    last = 2;
                });
            });
            begun.meet(2);
        });
        assert_eq!(last, 2);
    });
}

#[test]
fn a_destructor_of_a_scoped_capture_submits() {
    hosted(|host| {
        let (mut last, begun) = (0, Gate::new());
        let pool = pool(1);
        pool.scope(|scope| {
            let mut task = Some(|| {
                thread::sleep(MOMENT);
                last = 1;
            });
            let begins = Arc::clone(&begun);
            let capture = OnDrop(move || {
                begins.meet(2);
                wait_for_wait(host);
                scope.execute(task.take().unwrap());
            });
            scope.execute(move || drop(capture));
            begun.meet(2);
        });
        assert_eq!(last, 1);
    });
}

#[test]
fn a_task_waits_for_a_task_of_its_scope() {
    in_time(|| {
        let pool = pool(1);
        let sum = pool.scope(|scope| {
            let outer = scope.evaluate(|| {
                let inner = scope.evaluate(|| scope.evaluate(|| 1).await_complete() + 1);
                inner.await_complete() + 1
            });
            outer.await_complete()
        });
        assert_eq!(sum, 3);
    });
}

#[test]
fn a_scope_in_a_task_borrows_from_that_task() {
    in_time(|| {
        let (pool, mut sums) = (pool(2), [0; 3]);
        pool.scope(|scope| {
            for (index, sum) in sums.iter_mut().enumerate() {
                let pool = &pool;
                scope.execute(move || {
                    let mut parts = [0; 4];
                    pool.scope(|scope| {
                        for part in &mut parts {
                            scope.execute(move || *part = index);
                        }
                    });
                    *sum = parts.iter().sum();
                });
            }
        });
        assert_eq!(sums, [0, 4, 8]);
    });
}

#[test]
fn a_task_of_an_inner_scope_submits_to_the_outer_one() {
    hosted(|host| {
        let (pool, mut ended, begun) = (pool(1), false, Gate::new());
        pool.scope(|outer| {
            let (pool, ended, begun) = (&pool, &mut ended, &begun);
            pool.scope(|inner| {
                inner.execute(move || {
                    outer.execute(move || {
                        begun.meet(2);
                        wait_for_wait(host);
                        thread::sleep(MOMENT);
                        *ended = true;
                    });
                });
            });
            begun.meet(2);
        });
        assert!(ended);
    });
}

#[test]
fn scopes_nest_deeply_in_a_pool_of_one() {
    fn sum_to(pool: &ThreadPool, number: usize) -> usize {
        if number == 0 {
            return 0;
        }
        let mut rest = 0;
        pool.scope(|scope| scope.execute(|| rest = sum_to(pool, number - 1)));
        number + rest
    }

    in_time(|| {
        let pool = pool(1);
        assert_eq!(sum_to(&pool, 25), 325);
        assert!(pool.join_timeout(LIMIT));
        assert_eq!(pool.stats().blocked, 0);
        assert_works(pool);
    });
}
