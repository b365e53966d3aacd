//! How the pool counts scoped tasks, and how it drains them.

use crate::common::{Gate, HOUR, LIMIT, block, wait_until};
use crate::{assert_works, in_time, panic_of, pool};
use elastipool::{ScopedJoinHandle, ThreadPool};

#[test]
fn scoped_tasks_are_counted() {
    in_time(|| {
        let pool = pool(1);
        let text = panic_of(|| {
            pool.scope(|scope| {
                scope.execute(|| ());
                scope.evaluate(|| ()).await_complete();
                let handle = scope.evaluate(|| -> u8 { panic!("for the handle") });
                handle.try_await_complete().unwrap_err();
                scope.execute(|| panic!("for the scope"));
            });
        });
        assert_eq!(text, "for the scope");
        assert!(pool.join_timeout(LIMIT));
        let stats = pool.stats();
        assert_eq!((stats.completed, stats.panicked, stats.cancelled), (2, 2, 0));
        assert_eq!((stats.accepted(), stats.in_flight(), stats.rejected), (4, 0, 0));
    });
}

#[test]
fn a_scope_shows_how_many_tasks_have_not_ended() {
    in_time(|| {
        let (pool, gate) = (pool(1), Gate::new());
        pool.scope(|scope| {
            let handles = [scope.evaluate(|| gate.pass()), scope.evaluate(|| ())];
            assert!(format!("{scope:?}").contains("unfinished: 2"), "{scope:?}");
            gate.open();
            handles.into_iter().for_each(ScopedJoinHandle::await_complete);
            wait_until("they have ended", || format!("{scope:?}").contains("unfinished: 0"));
        });
    });
}

#[test]
fn a_scoped_task_cannot_join_its_pool() {
    in_time(|| {
        let pool = ThreadPool::new_named("own", 1, 1, HOUR);
        let text = panic_of(|| pool.scope(|scope| scope.execute(|| pool.join())));
        assert!(text.contains("`join`") && text.contains("`own`"), "{text}");
        assert_works(pool);
    });
}

/// As any accepted task.
#[test]
fn scoped_tasks_of_a_closed_pool_run() {
    in_time(|| {
        let (pool, mut ran) = (pool(1), false);
        let gate = block(&pool);
        pool.scope(|scope| {
            scope.execute(|| ran = true);
            pool.close();
            gate.open();
        });
        assert!(ran);
    });
}
