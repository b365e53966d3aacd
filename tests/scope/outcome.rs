//! What a scope returns or resumes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::common::{Drops, Gate, block, wait_until};
use crate::{
    MOMENT, assert_received, assert_works, handled, hosted, in_time, panic_of, pool, wait_for_wait,
};

#[test]
fn a_scope_returns_its_bodys_value() {
    in_time(|| {
        let text = String::from("of the caller's");
        let borrowed: &str = pool(1).scope(|scope| {
            scope.execute(|| ());
            &text[..2]
        });
        assert_eq!(borrowed, "of");
    });
}

#[test]
fn a_scope_without_tasks_starts_no_thread() {
    in_time(|| {
        let pool = pool(2);
        assert_eq!(pool.scope(|_| 7), 7);
        let stats = pool.stats();
        assert_eq!((stats.threads_started, stats.accepted()), (0, 0));
        pool.close();
        assert_eq!(pool.scope(|_| 8), 8);
    });
}

#[test]
fn a_scope_resumes_its_bodys_panic_when_the_tasks_have_ended() {
    hosted(|host| {
        let (ended, begun) = (AtomicBool::new(false), Gate::new());
        let text = panic_of(|| {
            pool(1).scope(|scope| {
                scope.execute(|| {
                    begun.meet(2);
                    wait_for_wait(host);
                    thread::sleep(MOMENT);
                    ended.store(true, Ordering::Relaxed);
                });
                begun.meet(2);
                panic!("the body");
            });
        });
        assert_eq!(text, "the body");
        assert!(ended.into_inner());
    });
}

#[test]
fn a_scope_resumes_a_tasks_panic_when_the_others_have_ended() {
    hosted(|host| {
        let (pool, ended, begun) = (pool(1), AtomicBool::new(false), Gate::new());
        let text = panic_of(|| {
            pool.scope(|scope| {
                scope.execute(|| panic!("the task"));
                scope.execute(|| {
                    begun.meet(2);
                    wait_for_wait(host);
                    thread::sleep(MOMENT);
                    ended.store(true, Ordering::Relaxed);
                });
                begun.meet(2);
            });
        });
        assert_eq!(text, "the task");
        assert!(ended.into_inner());
        assert_works(pool);
    });
}

#[test]
fn a_scope_drops_its_bodys_value_if_a_task_panics() {
    in_time(|| {
        let drops = Drops::default();
        let result = panic_of(|| {
            pool(1).scope(|scope| {
                scope.execute(|| panic!("the task"));
                drops.issue()
            })
        });
        assert_eq!((&*result, drops.count()), ("the task", 1));
    });
}

#[test]
fn a_scope_resumes_the_first_panic_of_two_tasks() {
    in_time(|| {
        let (pool, received) = handled(2);
        let text = panic_of(|| {
            pool.scope(|scope| {
                scope.execute(|| {
                    wait_until("the other has panicked", || pool.stats().panicked == 1);
                    panic!("later");
                });
                scope.execute(|| panic!("first"));
            });
        });
        assert_eq!(text, "first");
        assert_received(&pool, &received, &["later"]);
        assert_works(pool);
    });
}

#[test]
fn a_scope_resumes_the_panic_of_a_task_before_that_of_its_body() {
    in_time(|| {
        let (pool, received) = handled(1);
        let text = panic_of(|| {
            pool.scope(|scope| {
                scope.execute(|| panic!("the task"));
                wait_until("the task has panicked", || pool.stats().panicked == 1);
                panic!("the body");
            });
        });
        assert_eq!(text, "the task");
        assert_received(&pool, &received, &["the body"]);
    });
}

#[test]
fn a_scope_resumes_the_panic_of_its_body_before_those_of_tasks() {
    hosted(|host| {
        let (pool, received) = handled(1);
        let begun = Gate::new();
        let text = panic_of(|| {
            pool.scope(|scope| {
                scope.execute(|| {
                    begun.meet(2);
                    wait_for_wait(host);
                    panic!("the task");
                });
                begun.meet(2);
                panic!("the body");
            });
        });
        assert_eq!(text, "the body");
        assert_received(&pool, &received, &["the task"]);
    });
}

#[test]
fn a_panic_of_an_inner_scope_goes_through_the_outer_one() {
    in_time(|| {
        let (pool, received) = handled(1);
        let text = panic_of(|| {
            pool.scope(|scope| {
                scope.execute(|| pool.scope(|scope| scope.execute(|| panic!("inside"))));
            });
        });
        assert_eq!(text, "inside");
        assert_received(&pool, &received, &[]);
        assert_eq!(pool.stats().panicked, 2);
    });
}

#[test]
fn a_scope_that_panicked_leaves_the_next_one_of_its_pool_alone() {
    in_time(|| {
        let pool = pool(1);
        for _ in 0..3 {
            assert_eq!(panic_of(|| pool.scope(|s| s.execute(|| panic!("again")))), "again");
            assert_eq!(pool.scope(|scope| scope.evaluate(|| 1).await_complete()), 1);
        }
        assert_works(pool);
    });
}

/// The owner runs the newer task first.
#[test]
fn a_scope_resumes_the_panic_of_a_task_that_is_not_its_last() {
    in_time(|| {
        let pool = pool(1);
        let gate = block(&pool);
        let text = panic_of(|| {
            pool.scope(|scope| {
                scope.execute(|| ());
                scope.execute(|| panic!("on purpose"));
            });
        });
        assert_eq!(text, "on purpose");
        gate.open();
        assert_works(pool);
    });
}
