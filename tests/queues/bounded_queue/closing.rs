//! A close rejects the tasks of waiting submitters.

use std::sync::Arc;

use crate::bounded_queue::{Submitter, pool};
use crate::common::{
    Drops, Gate, HOUR, LIMIT, block, panic_text, refused, settled, value, wait_until,
};
use elastipool::{RejectReason, ThreadPool};

/// Two ways of closing.
const CLOSINGS: [fn(&ThreadPool); 2] =
    [ThreadPool::close, |pool| assert_eq!(pool.shutdown_now().len(), 1)];

/// Closes a pool while a submitter waits for capacity. Returns what the submission returns.
#[track_caller]
fn reject_by_closing<T: Send + 'static>(
    closing: usize,
    submission: impl FnOnce(&ThreadPool) -> T + Send + 'static,
) -> T {
    let pool = pool(1, 1);
    let gate = block(&pool);
    let queued = pool.evaluate(|| ());
    let submitter = Submitter::waiting(&pool, submission);
    CLOSINGS[closing](&pool);
    // Rejected at once, not when the worker ends its task.
    let result = submitter.finish();
    refused(pool.try_execute(|| ()), RejectReason::Closed);
    gate.open();
    assert_eq!(settled(queued).is_ok(), closing == 0);
    let (completed, handed_back) = [(2, 0), (1, 1)][closing];
    assert!(pool.join_timeout(LIMIT));
    let stats = pool.stats();
    assert_eq!((stats.completed, stats.handed_back), (completed, handed_back));
    assert_eq!((stats.rejected, stats.in_flight()), (2, 0));
    assert!(pool.shutdown_join_timeout(LIMIT));
    result
}

#[test]
fn closing_rejects_waiting_submitters() {
    for closing in [0, 1] {
        let drops = Drops::default();
        let guard = drops.issue();
        let result =
            reject_by_closing(closing, |pool| pool.try_execute_for(move || drop(guard), HOUR));
        let task = refused(result, RejectReason::Closed).into_task();
        assert_eq!(drops.count(), 0, "untouched");
        task();
        assert_eq!(drops.count(), 1);

        let result = reject_by_closing(closing, |pool| pool.try_evaluate_for(|| 7, HOUR));
        assert_eq!(refused(result, RejectReason::Closed).into_task()(), 7);

        let handle = reject_by_closing(closing, |pool| pool.evaluate(|| ()));
        assert!(settled(handle).unwrap_err().is_cancelled());
        let handle = reject_by_closing(closing, |pool| pool.complete(async {}));
        assert!(settled(handle).unwrap_err().is_cancelled());
        let text = reject_by_closing(closing, |pool| panic_text(|| pool.execute(|| ())));
        assert!(text.contains("closed") && text.contains("try_execute"), "{text}");
        #[cfg(feature = "async")]
        {
            let handle = reject_by_closing(closing, |pool| pool.spawn_await(async {}));
            assert!(settled(handle).unwrap_err().is_cancelled());
            let text = reject_by_closing(closing, |pool| panic_text(|| pool.spawn(async {})));
            assert!(text.contains("closed") && text.contains("try_spawn"), "{text}");
        }
    }
}

/// All of them, not only the first.
#[test]
fn closing_rejects_a_crowd_of_waiting_submitters() {
    for close in [ThreadPool::close, |pool: &ThreadPool| drop(pool.shutdown_now())] {
        let pool = pool(1, 0);
        let gate = block(&pool);
        let submitters = [(); 5].map(|()| {
            Submitter::waiting(&pool, |pool| {
                refused(pool.try_execute_for(|| (), HOUR), RejectReason::Closed);
            })
        });
        close(&pool);
        submitters.into_iter().for_each(Submitter::finish);
        gate.open();
        assert!(pool.join_timeout(LIMIT));
        assert_eq!(pool.stats().rejected, 5);
        assert!(pool.shutdown_join_timeout(LIMIT));
    }
}

/// A task of the pool that submits is rejected as other submitters are.
#[test]
fn closing_rejects_a_waiting_task_of_the_pool() {
    let pool = pool(1, 0);
    let (gate, own) = (Gate::new(), pool.clone());
    let passes = Arc::clone(&gate);
    let task = pool.evaluate(move || {
        let inner = Arc::clone(&passes);
        own.execute(move || inner.pass());
        // While it is blocked, the first task runs.
        own.try_execute_for(|| (), HOUR).map_err(|rejected| rejected.reason())
    });
    gate.wait_for(1);
    wait_until("it waits", || pool.stats().blocked == 1);
    pool.close();
    assert_eq!(value(task), Err(RejectReason::Closed));
    gate.open();
    assert!(pool.shutdown_join_timeout(LIMIT));
}
