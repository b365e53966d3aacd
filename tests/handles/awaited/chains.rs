//! Chains of waits that are longer than a stack is deep.

use std::collections::HashMap;
use std::hint::black_box;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, ThreadId};
use std::time::Duration;

use crate::awaited::{builder, here, in_task, pool, settled};
use crate::common::{LIMIT, block, child};
use elastipool::{JoinHandle, ThreadPool};

/// A chain of tasks, each of which waits for the next one. All are queued, the first in front.
fn queued_chain(pool: &ThreadPool, links: usize) -> JoinHandle<usize> {
    let handles = Arc::new(Mutex::new(Vec::new()));
    // No task looks before all are queued.
    let mut queued = handles.lock().unwrap();
    for link in 0..links {
        let next = Arc::clone(&handles);
        queued.push(Some(pool.evaluate(move || {
            let next = next.lock().unwrap().get_mut(link + 1).and_then(Option::take);
            next.map_or(0, |next: JoinHandle<usize>| next.await_complete() + 1)
        })));
    }
    queued[0].take().expect("it is still there")
}

fn chain_of_handles(pool: &ThreadPool, links: usize) -> usize {
    if links == 0 {
        return 0;
    }
    let own = pool.clone();
    pool.evaluate(move || chain_of_handles(&own, links - 1)).await_complete() + 1
}

fn chain_of_scopes(pool: &ThreadPool, links: usize) -> usize {
    let mut count = 0;
    if links > 0 {
        pool.scope(|scope| scope.execute(|| count = chain_of_scopes(pool, links - 1) + 1));
    }
    count
}

/// Counts the scopes as they begin.
fn counted_chain(pool: &ThreadPool, links: usize, depth: &AtomicUsize) {
    if links > 0 {
        depth.fetch_add(1, Relaxed);
        pool.scope(|scope| scope.execute(|| counted_chain(pool, links - 1, depth)));
    }
}

fn chain_of_groups(pool: &ThreadPool, links: usize) -> usize {
    if links == 0 {
        return 0;
    }
    let (group, own) = (pool.group::<()>(), pool.clone());
    let (sender, receiver) = mpsc::channel();
    let task = move || sender.send(chain_of_groups(&own, links - 1)).map_err(drop);
    group.execute(task).unwrap();
    group.wait().unwrap();
    receiver.recv().unwrap() + 1
}

const CHAINS: [fn(&ThreadPool, usize) -> usize; 3] =
    [chain_of_handles, chain_of_scopes, chain_of_groups];

/// A stack that overflows aborts the process.
fn in_child(test: &str, body: impl FnOnce()) {
    child::run(test, [], body);
}

#[test]
fn a_chain_of_queued_tasks_ends() {
    in_child("chains::a_chain_of_queued_tasks_ends", || {
        for size in [1, 2] {
            let pool = pool(size);
            assert_eq!(settled(queued_chain(&pool, 10_000)).unwrap(), 9_999);
            assert!(pool.join_timeout(LIMIT));
            let stats = pool.stats();
            assert_eq!((stats.blocked, stats.in_flight()), (0, 0), "{stats:?}");
            assert!(stats.peak_workers < 1000, "{stats:?}");
        }
    });
}

#[test]
fn a_chain_of_nested_tasks_ends() {
    in_child("chains::a_chain_of_nested_tasks_ends", || {
        for chain in CHAINS {
            let pool = pool(1);
            assert_eq!(in_task(&pool, move |own| chain(own, 10_000)), 10_000);
            assert!(pool.join_timeout(LIMIT));
            let stats = pool.stats();
            assert_eq!((stats.blocked, stats.in_flight()), (0, 0), "{stats:?}");
            assert!(stats.peak_workers < 1000, "{stats:?}");
        }
    });
}

#[test]
fn a_long_chain_leaves_half_of_the_stack() {
    const STACK: usize = 1 << 20;
    type Places = Arc<Mutex<HashMap<ThreadId, Vec<usize>>>>;

    fn chain(pool: &ThreadPool, links: usize, places: &Places) {
        let local = black_box(0_u8);
        let place = ptr::from_ref(&local).addr();
        places.lock().unwrap().entry(thread::current().id()).or_default().push(place);
        if links > 0 {
            let (own, inner) = (pool.clone(), Arc::clone(places));
            pool.evaluate(move || chain(&own, links - 1, &inner)).await_complete();
        }
    }

    in_child("chains::a_long_chain_leaves_half_of_the_stack", || {
        let (pool, places) = (builder(1).stack_size(STACK).build(), Places::default());
        let inner = Arc::clone(&places);
        in_task(&pool, move |own| chain(own, 5000, &inner));
        let used =
            |places: &Vec<usize>| places.iter().max().unwrap() - places.iter().min().unwrap();
        let used: Vec<_> = places.lock().unwrap().values().map(used).collect();
        assert!(used.iter().all(|&used| used < STACK / 8 * 5), "{used:?}");
        assert!(used.iter().any(|&used| used > STACK / 8 * 3), "{used:?}");
    });
}

#[test]
fn a_chain_on_small_stacks_ends() {
    in_child("chains::a_chain_on_small_stacks_ends", || {
        for chain in CHAINS {
            let pool = builder(1).stack_size(128 << 10).build();
            assert_eq!(in_task(&pool, move |own| chain(own, 1000)), 1000);
            assert_eq!(settled(queued_chain(&pool, 1000)).unwrap(), 999);
        }
    });
}

/// The size of the stack of a thread outside the pool is not known.
#[test]
fn a_chain_of_scopes_outside_ends() {
    in_child("chains::a_chain_of_scopes_outside_ends", || {
        let pool = pool(1);
        let (depth, gate) = (AtomicUsize::new(0), block(&pool));
        thread::scope(|scope| {
            // The worker takes no link before the thread waits for it, and nests no further.
            scope.spawn(|| {
                let mut seen = None;
                while seen.replace(depth.load(Relaxed)) != Some(depth.load(Relaxed)) {
                    thread::sleep(Duration::from_millis(50));
                }
                gate.open();
            });
            counted_chain(&pool, 10_000, &depth);
        });
        assert_eq!(depth.into_inner(), 10_000);
        // Then the thread nests as before.
        let (place, gate) = (here(), block(&pool));
        pool.scope(|scope| scope.execute(move || assert_eq!(here(), place)));
        gate.open();
        assert!(pool.join_timeout(LIMIT));
    });
}
