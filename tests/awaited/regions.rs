//! Waits with a limit, waits in blocking regions, and waits while unwinding.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, ThreadId};
use std::time::Duration;

use crate::common::{Gate, LIMIT, block};
use crate::{KINDS, assert_ended_on, builder, free_capacity, here, in_task, pool};
use elastipool::{ThreadPool, blocking};

#[test]
fn a_wait_with_a_limit_runs_nothing() {
    for submit in KINDS {
        let pool = pool(1);
        in_task(&pool, move |own| {
            let (place, ran_at) = (here(), Arc::new(Mutex::new(None)));
            let notes = Arc::clone(&ran_at);
            let task = move || {
                *notes.lock().unwrap() = Some(here());
                1
            };
            // No other worker could.
            let handle = submit(own, Box::new(task));
            let Err(handle) = handle.await_complete_timeout(Duration::ZERO) else {
                panic!("another worker has no time to come");
            };
            assert_eq!(handle.await_complete_timeout(LIMIT).unwrap().unwrap(), 1);
            assert_ne!(ran_at.lock().unwrap().expect("it ran"), place);

            let scoped =
                own.scope(|s| s.evaluate(here).await_complete_timeout(LIMIT).unwrap().unwrap());
            assert_ne!(scoped, place);

            let (group, ran_at) = (own.group::<()>(), Arc::new(Mutex::new(None)));
            let notes = Arc::clone(&ran_at);
            let noted = group.execute(move || {
                *notes.lock().unwrap() = Some(here());
                Ok(())
            });
            noted.unwrap();
            assert!(group.wait_timeout(LIMIT).expect("it ends").is_ok());
            assert_ne!(ran_at.lock().unwrap().expect("it ran"), place);
        });
        assert!(pool.join_timeout(LIMIT));
        assert_eq!((pool.stats().completed, pool.stats().in_flight()), (4, 0));
    }
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

/// The limit is for what others may never end. Here the pool itself ends the wait, if it has a worker for that.
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

/// Where tasks run that a destructor waits for while its thread unwinds: by a handle, by a scope and by a group; the first
/// two only if the thread is a worker. They find themselves not panicking.
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
