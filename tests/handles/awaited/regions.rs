//! Waits with a limit, waits in blocking regions, and waits while unwinding.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, ThreadId};
use std::time::Duration;

use crate::awaited::{
    KINDS, assert_ended_on, builder, free_capacity, here, in_task, pool, settled,
};
use crate::common::{Gate, LIMIT, block};
use elastipool::{ThreadPool, blocking};

/// The limit is for what runs elsewhere.
#[test]
fn a_wait_with_a_limit_runs_the_task_that_it_waits_for() {
    for submit in KINDS {
        let pool = pool(1);
        in_task(&pool, move |own| {
            let (place, ran_at) = (here(), Arc::new(Mutex::new(None)));
            let note = || {
                let notes = Arc::clone(&ran_at);
                move || *notes.lock().unwrap() = Some(here())
            };
            let noted = || ran_at.lock().unwrap().take();
            // A limit of zero is a look.
            let handle = submit(own, Box::new(|| 1));
            let Err(handle) = handle.await_complete_timeout(Duration::ZERO) else {
                panic!("no other worker could");
            };
            assert_eq!(handle.await_complete_timeout(LIMIT).unwrap().unwrap(), 1);

            own.scope(|s| {
                let Err(handle) = s.evaluate(note()).await_complete_timeout(Duration::ZERO) else {
                    panic!("no other worker could");
                };
                assert!(handle.await_complete_timeout(LIMIT).is_ok());
            });
            assert_eq!(noted(), Some(place));

            let group = own.group::<()>();
            let task = note();
            let task = move || {
                task();
                Ok(())
            };
            group.execute(task).unwrap();
            assert!(group.wait_timeout(Duration::ZERO).is_none());
            assert_eq!(noted(), None);
            assert!(group.wait_timeout(LIMIT).expect("it ends").is_ok());
            assert_eq!(noted(), Some(place));
        });
        assert_ended_on(1, &pool, 4);
    }
}

/// After its limit, a wait for a group begins none of the group's tasks.
#[test]
fn a_wait_with_a_limit_begins_no_task_after_it() {
    let pool = pool(1);
    in_task(&pool, |own| {
        let group = own.group::<()>();
        let limit = Duration::from_millis(5);
        for _ in 0..2 {
            // Time is the subject: whichever comes first outlasts the limit.
            let task = move || {
                thread::sleep(2 * limit);
                Ok(())
            };
            group.execute(task).unwrap();
        }
        assert!(group.wait_timeout(limit).is_none());
        let stats = own.stats();
        assert_eq!((stats.completed, stats.queued), (1, 1), "{stats:?}");
    });
    assert_ended_on(1, &pool, 3);
}

/// Recursion by waits with a limit costs no more threads than by others.
#[test]
fn recursion_by_waits_with_a_limit_costs_few_threads() {
    fn fib(pool: &ThreadPool, n: u64) -> u64 {
        if n < 2 {
            return n;
        }
        let own = pool.clone();
        let left = pool.evaluate(move || fib(&own, n - 1));
        fib(pool, n - 2) + left.await_complete_timeout(LIMIT).expect("it ends").unwrap()
    }

    let pool = pool(2);
    let own = pool.clone();
    assert_eq!(settled(pool.evaluate(move || fib(&own, 18))).unwrap(), 2584);
    let peak = pool.stats().peak_workers;
    // Each wait for a task that another worker runs may cost a thread: a few at a time.
    assert!(peak <= 40, "{peak} workers");
}

/// The worker is runnable while it runs what it waits for, and blocked before and after.
#[test]
fn a_worker_that_waits_in_a_region_comes_back_for_the_task() {
    for submit in KINDS {
        let pool = pool(1);
        in_task(&pool, move |own| {
            let place = here();
            blocking(|| {
                // The worker that runs instead has another task.
                let other = block(own);
                assert_eq!(own.stats().blocked, 1);
                let inside = own.clone();
                let task = move || {
                    assert_eq!(here(), place);
                    inside.stats().blocked
                };
                assert_eq!(submit(own, Box::new(task)).await_complete(), 0);
                assert_eq!(own.stats().blocked, 1);

                let mut scoped = Vec::new();
                own.scope(|scope| scope.execute(|| scoped.push((here(), own.stats().blocked))));
                assert_eq!((scoped, own.stats().blocked), (vec![(place, 0)], 1));

                // A region in the awaited task is one.
                let inside = own.clone();
                let task = move || blocking(|| inside.stats().blocked);
                assert_eq!(submit(own, Box::new(task)).await_complete(), 1);
                assert_eq!(own.stats().blocked, 1);
                other.open();
            });
            assert_eq!(own.stats().blocked, 0);
        });
        assert_ended_on(2, &pool, 5);
    }
}

/// The limit is for what others may never end. Here the pool itself ends the wait, if it has a
/// worker for that.
#[test]
fn a_wait_for_the_own_pool_in_a_region_is_not_limited_by_max_blocked() {
    for max_blocked in [0, 1] {
        let pool = builder(1).max_blocked(max_blocked).queue_capacity(1).build();
        let regions: Vec<_> = (0..max_blocked)
            .map(|_| {
                let gate = Gate::new();
                let passes = Arc::clone(&gate);
                pool.execute(move || blocking(|| passes.pass()));
                gate.wait_for(1);
                gate
            })
            .collect();
        in_task(&pool, |own| {
            blocking(|| {
                let handle = own.evaluate(|| 1);
                let handle = handle.await_complete_timeout(LIMIT);
                assert_eq!(handle.expect("another worker runs it").unwrap(), 1);
                // Waits for capacity.
                for _ in 0..5 {
                    own.execute(|| ());
                }
            });
            let group = own.group::<()>();
            blocking(|| {
                group.execute(|| Ok(())).unwrap();
                group.wait_timeout(LIMIT).expect("another worker runs it").unwrap();
            });
        });
        regions.iter().for_each(|gate| gate.open());
        assert!(pool.join_timeout(LIMIT));
        let stats = pool.stats();
        assert_eq!((stats.blocked, stats.in_flight()), (0, 0), "{stats:?}");
        assert_eq!(free_capacity(&pool), 1);
    }
}

/// Calls a function when it is dropped.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Where tasks run that a destructor waits for while its thread unwinds: by a handle, by a scope
/// and by a group; the first two only if the thread is a worker. They find themselves not
/// panicking.
fn waits_while_unwinding(pool: &ThreadPool) -> Vec<ThreadId> {
    let places = Mutex::new(Vec::new());
    let note = || {
        assert!(!thread::panicking());
        thread::current().id()
    };
    let result = catch_unwind(AssertUnwindSafe(|| {
        let _waits = OnDrop(|| {
            assert!(thread::panicking());
            let mut scoped = None;
            pool.scope(|scope| {
                scope.execute(|| scoped = Some(note()));
            });
            places.lock().unwrap().extend(scoped);
            places.lock().unwrap().push(pool.evaluate(note).await_complete());
            let group = pool.group::<()>();
            let (sender, receiver) = mpsc::channel();
            group.execute(move || sender.send(note()).map_err(drop)).unwrap();
            group.wait().unwrap();
            places.lock().unwrap().push(receiver.recv().unwrap());
        });
        panic!("the waiter unwinds");
    }));
    assert_eq!(result.unwrap_err().downcast_ref(), Some(&"the waiter unwinds"));
    places.into_inner().unwrap()
}

#[test]
fn a_thread_that_unwinds_runs_nothing() {
    let pool = pool(1);
    let (place, places) =
        in_task(&pool, |own| (thread::current().id(), waits_while_unwinding(own)));
    assert_eq!(places.len(), 3);
    assert!(!places.contains(&place), "{place:?} {places:?}");
    let here = thread::current().id();
    let places = waits_while_unwinding(&pool);
    assert!(places.len() == 3 && !places.contains(&here), "{here:?} {places:?}");
    assert!(pool.join_timeout(LIMIT));
    assert_eq!((pool.stats().completed, pool.stats().in_flight()), (7, 0));
}
