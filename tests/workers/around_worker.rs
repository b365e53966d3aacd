//! `Builder::around_worker`: what is made around the life of each worker.

use crate::common;

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;

use common::{Drops, Gate, LIMIT, block, millis, value};
use elastipool::{Builder, ThreadPool, blocking, worker_index};

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// A guard that borrows, as that of tokio does.
struct Entered<'a> {
    log: &'a Log,
    name: &'static str,
}

#[derive(Clone)]
struct Log(Sender<String>);

impl Log {
    fn write(&self, text: impl Into<String>) {
        self.0.send(text.into()).unwrap();
    }

    fn enter(&self, name: &'static str) -> Entered<'_> {
        DEPTH.set(DEPTH.get() + 1);
        self.write(format!("{name} enters"));
        Entered { log: self, name }
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.log.write(format!("{} leaves", self.name));
    }
}

fn log() -> (Log, Receiver<String>) {
    let (sender, receiver) = mpsc::channel();
    (Log(sender), receiver)
}

fn one_worker() -> Builder {
    Builder::new().core_size(1).max_size(1)
}

#[test]
fn guards_live_around_the_hooks_and_tasks_of_their_thread() {
    let (log, lines) = log();
    let [outer, inner, start, stop, task] = [(); 5].map(|()| log.clone());
    drop(log);
    let pool = one_worker()
        .around_worker(move |work| {
            let _entered = outer.enter("outer");
            work();
        })
        .around_worker(move |work| {
            let _entered = inner.enter("inner");
            assert_eq!(worker_index(), Some(0));
            work();
            assert_eq!(worker_index(), None);
            assert_eq!(ThreadPool::current(), None, "all handles are gone");
        })
        .on_worker_start(move |_| start.write("start"))
        .on_worker_stop(move |_| stop.write("stop"))
        .build();
    pool.execute(move || task.write(format!("task {}", DEPTH.get())));
    pool.shutdown_join();
    let expected =
        ["outer enters", "inner enters", "start", "task 2", "stop", "inner leaves", "outer leaves"];
    assert_eq!(lines.try_iter().collect::<Vec<_>>(), expected, "shutdown_join waits for all");
}

#[test]
fn each_worker_has_its_own_guard() {
    let drops = Drops::default();
    let issue = drops.clone();
    let pool = Builder::new()
        .core_size(0)
        .max_size(4)
        .keep_alive(millis(1))
        .around_worker(move |work| {
            let _guard = issue.issue();
            work();
        })
        .build();
    let gate = Gate::new();
    for _ in 0..4 {
        let gate = Arc::clone(&gate);
        pool.execute(move || gate.meet(4));
    }
    pool.join();
    common::wait_until("the surplus workers end", || drops.count() == 4);
    pool.shutdown_join();
}

#[test]
fn a_hook_that_panics_or_forgets_its_worker_costs_no_task() {
    let before: fn(&mut dyn FnMut()) = |_| panic!("before");
    let after: fn(&mut dyn FnMut()) = |work| {
        work();
        panic!("after");
    };
    let twice: fn(&mut dyn FnMut()) = |work| {
        work();
        work();
    };
    for (hook, expected) in
        [(before, Some("before")), (after, Some("after")), (|_| (), None), (twice, None)]
    {
        let panics = Arc::new(Mutex::new(Vec::new()));
        let handler = Arc::clone(&panics);
        let pool = one_worker()
            .around_worker(hook)
            .panic_handler(move |payload| {
                let text = payload.downcast_ref::<&str>().copied().unwrap();
                handler.lock().unwrap().push(text);
            })
            .build();
        assert_eq!(value(pool.evaluate(|| 42)), 42);
        assert_eq!(value(pool.evaluate(worker_index)), Some(0));
        assert!(pool.shutdown_join_timeout(LIMIT));
        assert_eq!(*panics.lock().unwrap(), expected.into_iter().collect::<Vec<_>>());
    }
}

/// As in a start hook: the worker is not replaced, and may not join its pool.
#[test]
fn before_its_tasks_the_hook_is_a_start_hook() {
    let (sender, joins) = mpsc::channel();
    let weak = Arc::new(Mutex::new(None::<elastipool::WeakThreadPool>));
    let known = Arc::clone(&weak);
    let pool = one_worker()
        .around_worker(move |work| {
            blocking(|| ());
            let pool = known.lock().unwrap().clone().and_then(|pool| pool.upgrade());
            if let Some(pool) = pool {
                sender.send(pool.join_timeout(LIMIT)).unwrap();
            }
            work();
        })
        .build();
    *weak.lock().unwrap() = Some(pool.downgrade());
    assert_eq!(value(pool.evaluate(|| 42)), 42);
    assert_eq!(joins.recv_timeout(LIMIT), Ok(false), "it does not wait for itself");
    assert!(pool.shutdown_join_timeout(LIMIT));
}

/// A worker that is not out of the hook's first part is no help on the way for more than one task.
#[test]
fn a_slow_hook_keeps_no_task_from_another_worker() {
    // One for each CPU: so many searches are enough.
    let busy = thread::available_parallelism().unwrap().get();
    let gate = Gate::new();
    let (passes, started) = (Arc::clone(&gate), AtomicUsize::new(0));
    let pool = Builder::new()
        .core_size(0)
        .max_size(2 * busy + 1)
        .around_worker(move |work| {
            if (busy..2 * busy).contains(&started.fetch_add(1, Ordering::SeqCst)) {
                passes.pass();
            }
            work();
        })
        .build();
    let releases: Vec<_> = (0..busy).map(|_| block(&pool)).collect();
    let first: Vec<_> = (0..busy).map(|_| pool.evaluate(|| ())).collect();
    gate.wait_for(busy);
    for other in [(); 4].map(|()| pool.evaluate(|| ())) {
        value(other);
    }
    first.into_iter().for_each(value);
    gate.open();
    releases.iter().for_each(|release| release.open());
    assert!(pool.shutdown_join_timeout(LIMIT));
}
