//! Whole pools of three to five workers, with more tasks than a model can explore in every
//! interleaving: random schedules, run by `cargo xtask schedules`. The other models run there as
//! well.

use std::sync::atomic::AtomicUsize as Total;

use super::{
    Arc, Gate, Ordering, REFUSE_NEXT, Relaxed, builder, counting, expire_all_workers, explore_as,
    pair, thread,
};
use crate::{Builder, ThreadPool, blocking};

/// Runs a scenario on pools as they are shipped, and as the smaller models have them. All tasks
/// have ended, and all threads have left, when it returns: otherwise it deadlocks.
fn on_pools(
    core_size: usize,
    max_size: usize,
    with: fn(Builder) -> Builder,
    scenario: fn(&ThreadPool, &Relaxed),
    tasks: usize,
) {
    for configuration in [super::Configuration::Shipped, super::Configuration::Reduced] {
        explore_as(configuration, 0, move || {
            let pool = with(builder(core_size, max_size)).build();
            let ran = Relaxed::new();
            scenario(&pool, &ran);
            pool.shutdown_join();
            assert_eq!(ran.get(), tasks, "each task runs once");
        });
    }
}

fn as_is(builder: Builder) -> Builder {
    builder
}

/// Starts threads of the user that submit, and joins them.
fn submitters(
    pool: &ThreadPool,
    count: usize,
    submit: impl Fn(&ThreadPool) + Send + Sync + 'static,
) {
    let submit = Arc::new(submit);
    let threads: Vec<_> = (0..count)
        .map(|_| {
            let (pool, submit) = (pool.clone(), Arc::clone(&submit));
            thread::spawn(move || submit(&pool))
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn tasks_that_submit_and_need_each_other() {
    on_pools(
        1,
        5,
        as_is,
        |pool, ran| {
            let ran = ran.clone();
            submitters(pool, 2, move |pool| {
                let (inner, ran) = (pool.clone(), ran.clone());
                pool.execute(move || {
                    pair().into_iter().for_each(|task| inner.execute(task));
                    inner.evaluate(counting(&ran)).await_complete();
                });
            });
        },
        2,
    );
}

#[cfg(feature = "async")]
#[test]
fn futures_that_yield_and_wake_each_other() {
    on_pools(
        2,
        4,
        as_is,
        |pool, ran| {
            let handles: Vec<_> = (0..4)
                .map(|_| {
                    let (inner, ran) = (pool.clone(), ran.clone());
                    let mut polls = 0;
                    pool.spawn_await(async move {
                        std::future::poll_fn(move |context| {
                            polls += 1;
                            context.waker().wake_by_ref();
                            if polls == 3 {
                                std::task::Poll::Ready(())
                            } else {
                                std::task::Poll::Pending
                            }
                        })
                        .await;
                        inner.spawn_await(async {}).await.unwrap();
                        inner.evaluate(counting(&ran)).await.unwrap();
                    })
                })
                .collect();
            handles.into_iter().for_each(|handle| handle.await_complete());
        },
        4,
    );
}

#[test]
fn groups_with_a_limit_and_a_first_error() {
    on_pools(
        2,
        3,
        as_is,
        |pool, ran| {
            let group = pool.group::<()>().limit(2);
            for number in 0..5 {
                let (ran, refused) = (ran.clone(), ran.clone());
                let submitted = group.execute(move || {
                    ran.increment();
                    if number == 2 { Err(()) } else { Ok(()) }
                });
                if submitted.is_err() {
                    // After the first error.
                    refused.increment();
                }
            }
            _ = group.wait();
            // Those that the first error has cancelled count, too.
            (0..group.dropped_count()).for_each(|_| ran.increment());
        },
        5,
    );
}

#[test]
fn scopes_in_tasks_and_outside() {
    on_pools(
        1,
        3,
        as_is,
        |pool, ran| {
            let total = Total::new(0);
            pool.scope(|scope| {
                for _ in 0..3 {
                    scope.execute(|| {
                        pool.scope(|inner| {
                            inner.execute(|| _ = total.fetch_add(1, Ordering::Relaxed));
                            inner.execute(|| _ = total.fetch_add(1, Ordering::Relaxed));
                        });
                    });
                }
            });
            (0..total.into_inner()).for_each(|_| ran.increment());
        },
        6,
    );
}

#[test]
fn views_with_limits_reserves_and_pauses() {
    on_pools(
        1,
        4,
        as_is,
        |pool, ran| {
            let limited = pool.view().limit(1).build();
            let reserved = pool.view().reserve(1).build();
            let paused = pool.view().limit(2).build();
            paused.pause();
            for view in [&limited, &reserved, &paused] {
                (0..2).for_each(|_| view.execute(counting(ran)));
            }
            (0..2).for_each(|_| pool.execute(counting(ran)));
            paused.resume();
            limited.join();
            pool.join();
        },
        8,
    );
}

#[test]
fn permits_of_a_bounded_queue() {
    on_pools(
        1,
        3,
        |builder| builder.queue_capacity(1),
        |pool, ran| {
            let ran = ran.clone();
            submitters(pool, 3, move |pool| {
                pool.execute(counting(&ran));
                pool.evaluate(counting(&ran)).await_complete();
            });
        },
        6,
    );
}

#[test]
fn an_immediate_shutdown_loses_no_task() {
    on_pools(
        1,
        3,
        as_is,
        |pool, ran| {
            let closer = {
                let pool = pool.clone();
                thread::spawn(move || {
                    for task in pool.shutdown_now() {
                        // Handed back.
                        task.run();
                    }
                })
            };
            for _ in 0..4 {
                if let Err(refused) = pool.try_execute(counting(ran)) {
                    (refused.task)();
                }
            }
            closer.join().unwrap();
        },
        4,
    );
}

#[test]
fn sizes_change_while_tasks_run() {
    on_pools(
        2,
        4,
        as_is,
        |pool, ran| {
            let resizer = {
                let pool = pool.clone();
                thread::spawn(move || {
                    pool.set_sizes(0, 1).unwrap();
                    pool.set_sizes(0, 3).unwrap();
                })
            };
            (0..5).for_each(|_| pool.execute(counting(ran)));
            resizer.join().unwrap();
            pool.join();
            expire_all_workers(pool);
            pool.execute(counting(ran));
        },
        6,
    );
}

#[test]
fn refused_threads_lose_no_task() {
    on_pools(
        1,
        4,
        as_is,
        |pool, ran| {
            pool.execute(counting(ran));
            for _ in 0..4 {
                REFUSE_NEXT.set(true);
                pool.execute(counting(ran));
            }
            REFUSE_NEXT.set(false);
        },
        5,
    );
}

#[test]
fn blocked_workers_are_replaced() {
    on_pools(
        1,
        3,
        as_is,
        |pool, ran| {
            let gate = Gate::new();
            for _ in 0..3 {
                let (waiting, ran) = (gate.clone(), ran.clone());
                pool.execute(move || {
                    blocking(|| waiting.pass());
                    ran.increment();
                });
            }
            let (inner, opening) = (pool.clone(), gate.clone());
            // Waits for its own pool, beside workers that are blocked.
            pool.execute(move || inner.evaluate(move || opening.open()).await_complete());
        },
        3,
    );
}
