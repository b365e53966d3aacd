//! Destructors that wait for the pool or the group whose task they run in. A panic in a destructor
//! aborts the process if the thread unwinds already, and in that of a thread-local in any case: so
//! these tests run in processes of their own.

use crate::common;

use std::cell::RefCell;
use std::future::IntoFuture;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

#[cfg(feature = "async")]
use common::wait_until;
use common::{Gate, HOUR, LIMIT, WAYS, Way, block, failure, settled, submit_interdependent, value};
#[cfg(feature = "async")]
use elastipool::JoinHandle;
use elastipool::{Builder, GroupError, TaskGroup, ThreadPool};
use futures_executor::block_on;

/// A time that a wait may well take. What it waits for is held back by a gate.
const MOMENT: Duration = Duration::from_millis(20);

/// What tasks and hooks panic with.
const PANIC: &str = "a panic that unwinds";

/// Calls a function in its destructor.
struct AtEnd<F: FnOnce()>(Option<F>);

impl<F: FnOnce()> AtEnd<F> {
    fn new(f: F) -> Self {
        AtEnd(Some(f))
    }
}

impl<F: FnOnce()> Drop for AtEnd<F> {
    fn drop(&mut self) {
        self.0.take().unwrap()();
    }
}

/// What a destructor does.
type Ending = Box<dyn FnOnce() + Send>;

/// Panics, and calls `f` in a destructor while it unwinds.
fn unwind_through(f: impl FnOnce()) {
    let _at_end = AtEnd::new(|| {
        assert!(thread::panicking());
        f();
    });
    panic!("{PANIC}");
}

fn in_a_child(name: &str, body: impl FnOnce()) {
    common::child::run(name, [], body);
}

fn named(name: &str) -> ThreadPool {
    ThreadPool::new_named(name, 1, 2, HOUR)
}

/// The way of this name. It would have to return at once, with this.
fn way(name: &str) -> (Way, Option<bool>) {
    let (_, way) = WAYS.into_iter().find(|(known, _)| *known == name).unwrap();
    (way, name.ends_with("_timeout").then_some(false))
}

// ----- a task that unwinds -----

/// Tasks of all kinds panic, and destructors in them wait for the pool while they unwind.
#[track_caller]
fn tasks_that_unwind(way: Way, returns: Option<bool>) {
    let pool = named("unwinds");
    let (sender, receiver) = mpsc::channel();
    let unwinds = || {
        let (own, sender) = (pool.clone(), sender.clone());
        move || unwind_through(move || sender.send(way(own)).unwrap())
    };
    let mut handles = Vec::new();
    let task = unwinds();
    handles.push(pool.evaluate(task));
    let task = unwinds();
    handles.push(pool.complete(async move { task() }));
    #[cfg(feature = "async")]
    {
        let task = unwinds();
        handles.push(pool.spawn_await(async move { task() }));
        let (trigger, triggered) = common::triggered();
        let task = unwinds();
        handles.push(pool.spawn_await(async move {
            triggered.await;
            task();
        }));
        wait_until("it is pending", || trigger.waker().is_some());
        trigger.fire();
        wait_until("it has ended", || handles.iter().all(JoinHandle::is_finished));
    }
    let count = handles.len();
    for handle in handles {
        // It received the first panic: there was no other.
        let text = settled(handle).unwrap_err().to_string();
        assert!(text.ends_with(PANIC), "{text}");
    }
    pool.execute(unwinds());
    for _ in 0..=count {
        assert_eq!(receiver.recv_timeout(LIMIT), Ok(returns));
    }
    // The pool is none the worse for it.
    assert!(pool.join_timeout(LIMIT));
    assert!(!pool.is_closed());
    submit_interdependent(&pool, 2, || ()).into_iter().for_each(value);
    assert!(pool.join_timeout(LIMIT));
    assert_eq!((pool.stats().panicked, pool.stats().in_flight()), (count + 1, 0));
    assert!(pool.shutdown_join_timeout(LIMIT));
}

#[test]
fn join_while_a_task_unwinds() {
    in_a_child("join_while_a_task_unwinds", || {
        let (way, returns) = way("join");
        tasks_that_unwind(way, returns);
    });
}

#[test]
fn join_timeout_while_a_task_unwinds() {
    in_a_child("join_timeout_while_a_task_unwinds", || {
        let (way, returns) = way("join_timeout");
        tasks_that_unwind(way, returns);
    });
}

#[test]
fn shutdown_join_while_a_task_unwinds() {
    in_a_child("shutdown_join_while_a_task_unwinds", || {
        let (way, returns) = way("shutdown_join");
        tasks_that_unwind(way, returns);
    });
}

#[test]
fn shutdown_join_timeout_while_a_task_unwinds() {
    in_a_child("shutdown_join_timeout_while_a_task_unwinds", || {
        let (way, returns) = way("shutdown_join_timeout");
        tasks_that_unwind(way, returns);
    });
}

/// The same with the last handle: the pool does what it has accepted, and ends.
#[track_caller]
fn a_last_handle(way: Way, returns: Option<bool>) {
    let (gate, stopped) = (Gate::new(), Gate::new());
    let stops = Arc::clone(&stopped);
    let sizes = Builder::new().core_size(1).max_size(1).keep_alive(HOUR);
    let pool = sizes.on_worker_stop(move |_| stops.open()).build();
    let (sender, receiver) = mpsc::channel();
    let (own, passes) = (pool.clone(), Arc::clone(&gate));
    let unwinds = pool.evaluate(move || {
        passes.pass();
        unwind_through(move || sender.send(way(own)).unwrap());
    });
    let queued = pool.evaluate(|| 7);
    drop(pool);
    gate.open();
    assert_eq!(receiver.recv_timeout(LIMIT), Ok(returns));
    assert!(settled(unwinds).unwrap_err().to_string().ends_with(PANIC));
    assert_eq!(value(queued), 7);
    stopped.pass();
}

#[test]
fn shutdown_join_of_the_last_handle_while_a_task_unwinds() {
    in_a_child("shutdown_join_of_the_last_handle_while_a_task_unwinds", || {
        let (way, returns) = way("shutdown_join");
        a_last_handle(way, returns);
    });
}

#[test]
fn shutdown_join_timeout_of_the_last_handle_while_a_task_unwinds() {
    in_a_child("shutdown_join_timeout_of_the_last_handle_while_a_task_unwinds", || {
        let (way, returns) = way("shutdown_join_timeout");
        a_last_handle(way, returns);
    });
}

/// Waits for the pool, whose worker is busy, in a destructor while the calling thread unwinds.
/// `run` calls that.
#[track_caller]
fn waits_while_it_unwinds(name: &str, way: Way, run: impl FnOnce(Ending)) {
    let pool = named("waited for");
    let (gate, (sender, receiver)) = (block(&pool), mpsc::channel());
    let looks = pool.clone();
    run(Box::new(move || {
        unwind_through(move || {
            let returned = way(pool);
            sender.send((returned, looks.stats().in_flight())).unwrap();
        });
    }));
    let early = receiver.recv_timeout(MOMENT);
    assert!(early.is_err(), "`{name}` has not waited: {early:?}");
    gate.open();
    let (returned, in_flight) = receiver.recv_timeout(LIMIT).unwrap();
    assert_ne!(returned, Some(false), "`{name}` has given up");
    assert_eq!(in_flight, 0, "`{name}` has not waited");
}

/// Only a wait that would be for the caller itself is cut short: not one for another pool, nor one
/// in a thread that belongs to none.
#[test]
fn destructors_wait_for_others_while_their_thread_unwinds() {
    in_a_child("destructors_wait_for_others_while_their_thread_unwinds", || {
        for (name, way) in WAYS {
            let pool = named("waits");
            waits_while_it_unwinds(name, way, |unwinds| pool.execute(unwinds));
            waits_while_it_unwinds(name, way, |unwinds| drop(thread::spawn(unwinds)));
        }
    });
}

// ----- a hook that unwinds, and what comes after it -----

type Hook = Box<dyn Fn(usize) + Send + Sync>;

/// A pool of one. `hook` adds a hook, in which a destructor waits for the pool while the hook
/// unwinds.
#[track_caller]
fn hook_that_unwinds(way: Way, hook: fn(Builder, Hook) -> Builder) -> Option<bool> {
    let handle = Arc::new(Mutex::new(None::<ThreadPool>));
    let (sender, receiver) = mpsc::channel();
    let place = Arc::clone(&handle);
    let unwinds = move |_| {
        let own = place.lock().unwrap().take().unwrap();
        unwind_through(|| sender.send(way(own)).unwrap());
    };
    let sizes = Builder::new().core_size(1).max_size(1).keep_alive(HOUR);
    let pool = hook(sizes, Box::new(unwinds)).build();
    *handle.lock().unwrap() = Some(pool.clone());
    assert_eq!(value(pool.evaluate(|| 7)), 7);
    pool.close();
    let returned = receiver.recv_timeout(LIMIT).expect("it hangs");
    assert!(pool.shutdown_join_timeout(LIMIT));
    returned
}

#[test]
fn waits_while_a_start_hook_unwinds() {
    in_a_child("waits_while_a_start_hook_unwinds", || {
        for (name, _) in WAYS {
            let (way, returns) = way(name);
            assert_eq!(hook_that_unwinds(way, Builder::on_worker_start), returns);
        }
    });
}

/// `shutdown_join*` wait for the other threads there, of which there are none.
#[test]
fn waits_while_a_stop_hook_unwinds() {
    in_a_child("waits_while_a_stop_hook_unwinds", || {
        let returned = WAYS.map(|(_, way)| hook_that_unwinds(way, Builder::on_worker_stop));
        assert_eq!(returned, [None, Some(false), None, Some(true)]);
    });
}

thread_local! {
    static AT_EXIT: RefCell<Option<AtEnd<Ending>>> = const { RefCell::new(None) };
}

/// The worker has left by then, and the pool can be quiet without it.
#[cfg_attr(
    windows,
    ignore = "Windows runs the destructors of thread-locals one at a time, and starts no thread meanwhile"
)]
#[test]
fn waits_in_the_destructor_of_a_thread_local() {
    in_a_child("waits_in_the_destructor_of_a_thread_local", || {
        for (name, way) in WAYS {
            // The worker leaves as soon as it is idle, and others come.
            let pool = ThreadPool::new(0, 1, Duration::from_millis(1));
            let (gate, (sender, receiver)) = (Gate::new(), mpsc::channel());
            let (own, passes) = (pool.clone(), Arc::clone(&gate));
            pool.execute(move || {
                let at_exit = move || {
                    passes.pass();
                    let looks = own.clone();
                    let returned = way(own);
                    sender.send((returned, looks.stats().in_flight())).unwrap();
                };
                AT_EXIT.set(Some(AtEnd::new(Box::new(at_exit))));
            });
            gate.wait_for(1);
            let busy = block(&pool);
            pool.close();
            gate.open();
            let early = receiver.recv_timeout(MOMENT);
            assert!(early.is_err(), "`{name}` has not waited: {early:?}");
            busy.open();
            let (returned, in_flight) = receiver.recv_timeout(LIMIT).expect("it hangs");
            assert_ne!(returned, Some(false), "`{name}` has given up");
            assert_eq!(in_flight, 0, "`{name}` has not waited");
            assert!(pool.shutdown_join_timeout(LIMIT));
        }
    });
}

// ----- groups -----

type Group = TaskGroup<&'static str>;

/// A task of a group panics, and a destructor in it waits for the group while it unwinds. What that
/// returns.
#[track_caller]
fn group_task_that_unwinds<R: Send + 'static>(wait: fn(Group) -> R) -> R {
    let pool = named("unwinds");
    let (group, (sender, receiver)) = (pool.group(), mpsc::channel());
    let own = group.clone();
    let task = move || {
        unwind_through(move || sender.send(wait(own)).unwrap());
        Ok(())
    };
    group.execute(task).unwrap();
    let returned = receiver.recv_timeout(LIMIT).expect("it hangs");
    // The group is none the worse for it, and its failure is for the one who really waits.
    assert!(failure(&group).to_string().ends_with(PANIC));
    group.execute(|| Ok(())).unwrap();
    assert!(group.wait().is_ok());
    assert!(pool.shutdown_join_timeout(LIMIT));
    returned
}

#[test]
fn wait_while_a_task_of_the_group_unwinds() {
    in_a_child("wait_while_a_task_of_the_group_unwinds", || {
        assert!(group_task_that_unwinds(|group| group.wait()).unwrap_err().is_cancelled());
        let errors = group_task_that_unwinds(|group| group.wait_all());
        assert!(matches!(&errors[..], [error] if error.is_cancelled()));
    });
}

#[test]
fn wait_timeout_while_a_task_of_the_group_unwinds() {
    in_a_child("wait_timeout_while_a_task_of_the_group_unwinds", || {
        assert!(group_task_that_unwinds(|group| group.wait_timeout(HOUR)).is_none());
    });
}

#[test]
fn await_while_a_task_of_the_group_unwinds() {
    in_a_child("await_while_a_task_of_the_group_unwinds", || {
        let returned = group_task_that_unwinds(|group| block_on(group.into_future()));
        assert!(returned.is_err_and(|error| error.is_cancelled()));
    });
}

/// Only a wait for its own group is cut short.
#[test]
fn a_destructor_waits_for_another_group_while_a_task_unwinds() {
    in_a_child("a_destructor_waits_for_another_group_while_a_task_unwinds", || {
        let pool = named("waits");
        let (group, (sender, receiver)) = (pool.group::<&str>(), mpsc::channel());
        let other = pool.group::<&str>();
        other.execute(|| Err("of the other")).unwrap();
        let task = move || {
            unwind_through(move || sender.send(other.wait()).unwrap());
            Ok(())
        };
        group.execute(task).unwrap();
        let returned = receiver.recv_timeout(LIMIT).expect("it hangs");
        assert!(matches!(returned, Err(GroupError::Failed("of the other"))), "{returned:?}");
        assert!(failure(&group).is_panic());
    });
}

// ----- a process that exits -----

#[cfg(target_os = "linux")]
mod at_exit {
    use std::sync::{Mutex, mpsc};
    use std::thread;

    use elastipool::ThreadPool;

    use super::common::joined;
    use super::{HOUR, LIMIT, in_a_child, settled};

    static POOL: Mutex<Option<ThreadPool>> = Mutex::new(None);

    /// Runs on the worker that exits the process, when its thread-locals have been destroyed.
    extern "C" fn use_the_pool() {
        let pool = POOL.lock().unwrap().take().unwrap();
        pool.execute(|| ());
        assert_eq!(settled(pool.evaluate(|| 42)).unwrap(), 42);
        assert_eq!(settled(pool.complete(async { 42 })).unwrap(), 42);
        let numbers = [20, 22];
        let sum = pool.scope(|scope| {
            let parts = numbers.map(|number| scope.evaluate(move || number));
            parts.into_iter().map(|part| part.await_complete()).sum::<u32>()
        });
        assert_eq!(sum, 42);
        let group = pool.group::<()>();
        group.execute(|| Ok(())).unwrap();
        assert!(group.wait_timeout(LIMIT).unwrap().is_ok());
        elastipool::blocking(|| ());
        let starts = pool.clone();
        assert!(joined(thread::spawn(move || starts.start_core_threads())) <= 4);
        assert_eq!(elastipool::worker_index(), Some(0));
        // The test harness cannot say so any more.
        println!("1 passed");
    }

    #[test]
    fn a_handler_at_exit_uses_the_pool_of_its_thread() {
        in_a_child("at_exit::a_handler_at_exit_uses_the_pool_of_its_thread", || {
            let pool = ThreadPool::new_named("exits", 4, 4, HOUR);
            *POOL.lock().unwrap() = Some(pool.clone());
            // SAFETY: the handler is a function, which stays.
            assert_eq!(unsafe { libc::atexit(use_the_pool) }, 0);
            pool.execute(|| {
                // So that the thread has everything that a task may leave in it.
                let pool = POOL.lock().unwrap().clone().unwrap();
                assert_eq!(pool.evaluate(|| 1).await_complete(), 1);
                drop(pool);
                std::process::exit(0);
            });
            let (_sender, receiver) = mpsc::channel::<()>();
            let _ = receiver.recv();
            thread::park();
        });
    }
}
