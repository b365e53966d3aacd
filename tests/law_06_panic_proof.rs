//! Law 6, panic-proof: a panic in user code (task, future's poll or drop, hook, drop of a result or
//! payload) kills no worker, poisons no lock, skews no count, aborts no process.

mod common;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, ThreadId};

use common::{Drops, Gate, HOUR, LIMIT, panic_text, settled, value, wait_until};
use elastipool::{Builder, JoinHandle, ThreadPool, worker_index};
use futures::FutureExt;

/// A pool of `SIZE` workers, all of them started, that is checked for harm afterwards.
struct Crew {
    pool: ThreadPool,
    before: BTreeMap<usize, ThreadId>,
    /// Tasks accepted so far.
    accepted: usize,
}

const SIZE: usize = 4;

/// How the accepted tasks are to have ended, besides those that completed.
#[derive(Default)]
struct Toll {
    accepted: usize,
    panicked: usize,
    cancelled: usize,
}

impl Crew {
    fn new() -> Self {
        Crew::of(Builder::new())
    }

    fn of(builder: Builder) -> Self {
        let pool = builder.core_size(SIZE).max_size(SIZE).keep_alive(HOUR).build();
        assert_eq!(pool.start_core_threads(), SIZE);
        let mut crew = Crew { pool, before: BTreeMap::new(), accepted: 0 };
        crew.before = crew.roll_call();
        crew
    }

    /// Who works here, by index: there are `SIZE` workers, or they would not all meet.
    fn roll_call(&mut self) -> BTreeMap<usize, ThreadId> {
        let (gate, (here, present)) = (Gate::new(), mpsc::channel());
        for _ in 0..SIZE {
            let (gate, here) = (Arc::clone(&gate), here.clone());
            self.pool.execute(move || {
                gate.meet(SIZE);
                here.send((worker_index().unwrap(), thread::current().id())).unwrap();
            });
        }
        self.accepted += SIZE;
        let receive = |_| present.recv_timeout(LIMIT).expect("a worker is missing");
        let present = (0..SIZE).map(receive).collect();
        // They say that they are here before their tasks have ended.
        assert!(self.pool.join_timeout(LIMIT), "a task is in flight for ever");
        present
    }

    /// Checks that nothing but `toll` has come of whatever was done to the pool.
    #[track_caller]
    fn assert_unharmed(mut self, toll: &Toll) {
        assert!(self.pool.join_timeout(LIMIT), "a task is in flight for ever");
        assert_eq!(self.roll_call(), self.before, "the same threads in the same places");
        // One may have been woken for a task that another one took.
        wait_until("all are idle", || self.pool.idle_worker_count() == SIZE);
        let accepted = self.accepted + toll.accepted;
        let stats = self.pool.stats();
        assert_eq!((stats.panicked, stats.cancelled), (toll.panicked, toll.cancelled));
        assert_eq!(stats.completed, accepted - toll.panicked - toll.cancelled);
        assert_eq!((stats.queued, stats.in_flight()), (0, 0));
        assert_eq!(stats.workers, SIZE);
        assert_eq!((stats.threads_started, stats.threads_retired), (SIZE, 0));
        let looker = self.pool.clone();
        self.pool.close();
        assert!(self.pool.shutdown_join_timeout(LIMIT), "the workers do not end");
        let stats = looker.stats();
        assert_eq!((stats.workers, stats.idle, stats.threads_retired), (0, 0, SIZE));
    }
}

/// Panics when it is dropped, with such a bomb as payload, as many times as it says.
#[derive(Clone)]
struct Bomb(u32);

impl Drop for Bomb {
    fn drop(&mut self) {
        if self.0 > 0 {
            panic_any(Bomb(self.0 - 1));
        }
    }
}

/// Does what must not panic here. A bomb that came out would go off once more in the test harness.
#[track_caller]
fn contained<R>(f: impl FnOnce() -> R) -> R {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|payload| {
        std::mem::forget(payload);
        panic!("a panic was not contained")
    })
}

#[track_caller]
fn is_panic<T>(handle: JoinHandle<T>) -> bool {
    settled(handle).err().is_some_and(|error| error.is_panic())
}

#[track_caller]
fn is_cancelled<T>(handle: JoinHandle<T>) -> bool {
    settled(handle).err().is_some_and(|error| error.is_cancelled())
}

/// A future that comes to its end only when there is no handle to it any more: what it leaves
/// behind is the worker's to drop.
fn let_go<F: Future>(submit: impl FnOnce(Held<F>) -> JoinHandle<F::Output>, future: F) {
    let gate = Gate::new();
    drop(submit(Held(Arc::clone(&gate), Box::pin(future))));
    gate.open();
}

/// Waits for its gate in its first poll.
struct Held<F>(Arc<Gate>, Pin<Box<F>>);

impl<F: Future> Future for Held<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        self.0.pass();
        self.1.as_mut().poll(context)
    }
}

/// The same for closures.
fn let_go_closure<R: Send + 'static>(pool: &ThreadPool, f: impl FnOnce() -> R + Send + 'static) {
    let gate = Gate::new();
    let passes = Arc::clone(&gate);
    drop(pool.evaluate(move || {
        passes.pass();
        f()
    }));
    gate.open();
}

// ----- closures -----

#[test]
fn closures_that_panic_are_contained() {
    let crew = Crew::new();
    for round in 0..100 {
        crew.pool.execute(move || assert!(round % 2 == 0, "odd"));
    }
    crew.assert_unharmed(&Toll { accepted: 100, panicked: 50, ..Toll::default() });
}

#[test]
fn closures_that_panic_all_at_once_are_contained() {
    let crew = Crew::new();
    let gate = Gate::new();
    for _ in 0..SIZE {
        let gate = Arc::clone(&gate);
        crew.pool.execute(move || {
            gate.meet(SIZE);
            panic!("as one");
        });
    }
    crew.assert_unharmed(&Toll { accepted: SIZE, panicked: SIZE, ..Toll::default() });
}

#[test]
fn evaluations_that_panic_are_contained() {
    let crew = Crew::new();
    for _ in 0..20 {
        assert!(is_panic(crew.pool.evaluate(|| -> u8 { panic!("with a handle") })));
        drop(crew.pool.evaluate(|| -> u8 { panic!("without a handle") }));
        assert!(is_panic(crew.pool.complete(async { panic!("with a handle") })));
        drop(crew.pool.complete(async { panic!("without a handle") }));
    }
    crew.assert_unharmed(&Toll { accepted: 80, panicked: 80, ..Toll::default() });
}

/// Mostly the awaited task runs on the stack of the one that waits. Only the awaited one ends with
/// the panic.
#[test]
fn the_panic_of_an_awaited_task_does_not_end_its_waiter() {
    let crew = Crew::new();
    for _ in 0..20 {
        let own = crew.pool.clone();
        let outer = crew.pool.evaluate(move || {
            let panics = || -> u8 { panic!("awaited") };
            let by_handle = own.evaluate(panics).try_await_complete().unwrap_err().is_panic();
            let by_scope =
                catch_unwind(|| own.scope(|scope| scope.execute(|| panic!("of a scope"))));
            by_handle && by_scope.is_err()
        });
        assert!(value(outer));
    }
    crew.assert_unharmed(&Toll { accepted: 60, panicked: 40, ..Toll::default() });
}

#[test]
fn payloads_whose_drop_panics_are_contained() {
    let crew = Crew::new();
    for depth in 0..5 {
        crew.pool.execute(move || panic_any(Bomb(depth)));
        let_go_closure(&crew.pool, move || -> u8 { panic_any(Bomb(depth)) });
        let_go(|future| crew.pool.complete(future), async move { panic_any(Bomb(depth)) });
    }
    crew.assert_unharmed(&Toll { accepted: 15, panicked: 15, ..Toll::default() });
}

#[test]
fn results_whose_drop_panics_are_contained() {
    let crew = Crew::new();
    for depth in 1..5 {
        let_go_closure(&crew.pool, move || Bomb(depth));
        let_go(|future| crew.pool.complete(future), async move { Bomb(depth) });
    }
    // They completed: a result without a handle is dropped after the task's end.
    crew.assert_unharmed(&Toll { accepted: 8, ..Toll::default() });
}

/// A value that a pool has delivered, and that no wait takes: its handle is dropped with it, by
/// this thread.
#[test]
fn results_whose_drop_panics_are_contained_in_the_drop_of_their_handles() {
    /// The ways to drop a handle whose task has ended.
    const WAYS: [fn(JoinHandle<Bomb>); 6] = [
        drop,
        |handle| {
            assert!(handle.is_finished());
            drop(handle);
        },
        |handle| handle.cancel(),
        |handle| drop(handle.cancel_on_drop()),
        |handle| drop(handle.shared().clone()),
        |handle| {
            let unwinds = catch_unwind(AssertUnwindSafe(|| {
                let _handle = handle;
                panic!("a panic that unwinds");
            }));
            assert!(unwinds.is_err());
        },
    ];
    let crew = Crew::new();
    let view = crew.pool.view().build();
    let group = crew.pool.group::<()>();
    #[cfg_attr(not(feature = "async"), expect(unused_mut, reason = "futures follow"))]
    let mut kinds: Vec<Box<dyn Fn(u32) -> JoinHandle<Bomb> + '_>> = vec![
        Box::new(|depth| crew.pool.evaluate(move || Bomb(depth))),
        Box::new(|depth| crew.pool.complete(async move { Bomb(depth) })),
        Box::new(|depth| view.evaluate(move || Bomb(depth))),
        Box::new(|depth| group.evaluate(move || Bomb(depth))),
        // The payload of a panic that no wait has received.
        Box::new(|depth| crew.pool.evaluate(move || -> Bomb { panic_any(Bomb(depth)) })),
    ];
    #[cfg(feature = "async")]
    kinds.extend([
        Box::new(|depth| crew.pool.spawn_await(async move { Bomb(depth) })) as Box<dyn Fn(_) -> _>,
        Box::new(|depth| view.spawn_await(async move { Bomb(depth) })),
        Box::new(|depth| group.spawn_await(async move { Bomb(depth) })),
    ]);
    for way in WAYS {
        for kind in &kinds {
            for depth in 1..4 {
                let handle = kind(depth);
                assert!(crew.pool.join_timeout(LIMIT));
                contained(|| way(handle));
            }
        }
    }
    for depth in 1..4 {
        contained(|| {
            crew.pool.scope(|scope| {
                let handle = scope.evaluate(move || Bomb(depth));
                wait_until("the task has ended", || handle.is_finished());
                drop(handle);
                let handle = scope.evaluate(move || Bomb(depth));
                assert!(crew.pool.join_timeout(LIMIT));
                drop(handle);
            });
        });
    }
    assert!(group.wait().is_ok());
    // A value that a wait has returned is its caller's: the drop panics as any other one.
    let taken = value(crew.pool.evaluate(|| Bomb(1)));
    assert!(catch_unwind(AssertUnwindSafe(|| drop(taken))).is_err());
    let panicked = WAYS.len() * 3;
    let accepted = kinds.len() * panicked + 3 * 2 + 1;
    drop(kinds);
    drop((view, group));
    crew.assert_unharmed(&Toll { accepted, panicked, ..Toll::default() });
}

#[test]
fn captured_values_whose_drop_panics_are_contained() {
    let crew = Crew::new();
    let bomb = Bomb(1);
    crew.pool.execute(move || drop(bomb));
    let gate = Gate::new();
    for _ in 0..SIZE {
        let gate = Arc::clone(&gate);
        crew.pool.execute(move || gate.pass());
    }
    gate.wait_for(SIZE);
    // Cancelled in the queue: dropped here, and this thread must not notice either.
    for depth in 1..5 {
        let bomb = Bomb(depth);
        let handle = crew.pool.evaluate(move || std::mem::forget(bomb));
        contained(|| handle.cancel());
        assert!(is_cancelled(handle));
        let bomb = Bomb(depth);
        let handle = crew.pool.complete(async move { std::mem::forget(bomb) });
        contained(|| handle.cancel());
        assert!(is_cancelled(handle));
    }
    gate.open();
    crew.assert_unharmed(&Toll { accepted: 1 + SIZE + 8, panicked: 1, cancelled: 8 });
}

#[test]
fn rejected_values_whose_drop_panics_cost_no_worker() {
    let crew = Crew::new();
    crew.pool.close();
    let bomb = Bomb(3);
    let handle = contained(|| crew.pool.evaluate(move || std::mem::forget(bomb)));
    assert!(is_cancelled(handle));
    let bomb = Bomb(3);
    let handle = contained(|| crew.pool.complete(async move { std::mem::forget(bomb) }));
    assert!(is_cancelled(handle));
    // What says so by a panic has one panic to say it with, not two.
    let bomb = Bomb(3);
    let text = panic_text(|| crew.pool.execute(move || std::mem::forget(bomb)));
    assert!(text.contains("the pool is closed"), "{text}");
    let stats = crew.pool.stats();
    assert_eq!((stats.rejected, stats.in_flight()), (3, 0));
    assert!(crew.pool.shutdown_join_timeout(LIMIT));
}

// ----- hooks -----

#[test]
fn hooks_that_panic_are_contained() {
    let calls = Arc::new(AtomicUsize::new(0));
    let (starts, stops) = (Arc::clone(&calls), Arc::clone(&calls));
    let builder = Builder::new()
        .on_worker_start(move |index| {
            starts.fetch_add(1, Ordering::SeqCst);
            panic_any(Bomb(index as u32));
        })
        .on_worker_stop(move |index| {
            stops.fetch_add(1, Ordering::SeqCst);
            panic_any(Bomb(index as u32));
        });
    let crew = Crew::of(builder);
    assert_eq!(calls.load(Ordering::SeqCst), SIZE);
    crew.assert_unharmed(&Toll::default());
    assert_eq!(calls.load(Ordering::SeqCst), 2 * SIZE);
}

/// Also of the workers that come and go: the count of those that are there must not suffer.
#[test]
fn hooks_that_panic_while_workers_come_and_go_are_contained() {
    let pool = Builder::new()
        .core_size(0)
        .max_size(2)
        .keep_alive(std::time::Duration::from_nanos(1))
        .on_worker_start(|_| panic!("start"))
        .on_worker_stop(|_| panic!("stop"))
        .build();
    for round in 0..200 {
        let handle = pool.evaluate(move || round);
        assert_eq!(settled(handle).unwrap(), round);
    }
    assert!(pool.join_timeout(LIMIT));
    wait_until("all workers have retired", || pool.current_worker_count() == 0);
    let stats = pool.stats();
    assert_eq!((stats.completed, stats.panicked, stats.in_flight()), (200, 0, 0));
    assert_eq!(stats.threads_started, stats.threads_retired);
    assert!(pool.shutdown_join_timeout(LIMIT));
}

// ----- wakers of others -----

struct PanicsWhenWoken(AtomicUsize);

impl Wake for PanicsWhenWoken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
        panic_any(Bomb(3));
    }
}

#[test]
fn a_waker_that_panics_when_the_result_is_there_is_contained() {
    let crew = Crew::new();
    let count = Arc::new(PanicsWhenWoken(AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&count));
    let gate = Gate::new();
    let mut handles = Vec::new();
    for _ in 0..SIZE {
        let gate = Arc::clone(&gate);
        handles.push(crew.pool.evaluate(move || gate.pass()));
    }
    gate.wait_for(SIZE);
    handles.push(crew.pool.evaluate(|| ()));
    let cancelled = handles.len() - 1;
    for handle in &mut handles {
        assert!(Pin::new(handle).poll(&mut Context::from_waker(&waker)).is_pending());
    }
    // Its waker panics in this thread, and that is contained, too.
    contained(|| handles[cancelled].cancel());
    assert_eq!(count.0.load(Ordering::SeqCst), 1);
    gate.open();
    wait_until("all are woken", || count.0.load(Ordering::SeqCst) == SIZE + 1);
    assert!(is_cancelled(handles.pop().unwrap()));
    for handle in handles {
        // The value is there nevertheless.
        assert!(settled(handle).is_ok());
    }
    crew.assert_unharmed(&Toll { accepted: SIZE + 1, cancelled: 1, ..Toll::default() });
}

/// What a task has captured panics as it is dropped, and then the waker of its handle does: one
/// after the other, or the process would abort.
#[test]
fn a_destructor_and_a_waker_that_panic_at_one_drop_are_contained() {
    // The handles' tasks are cancelled first, or all are dropped by the shutdown.
    for cancels in [true, false] {
        let crew = Crew::new();
        let view = crew.pool.view().queue_timeout(HOUR).build();
        let group = crew.pool.group::<()>();
        let count = Arc::new(PanicsWhenWoken(AtomicUsize::new(0)));
        let waker = Waker::from(Arc::clone(&count));
        let gate = Gate::new();
        for _ in 0..SIZE {
            let gate = Arc::clone(&gate);
            crew.pool.execute(move || gate.pass());
        }
        gate.wait_for(SIZE);
        let bomb = || {
            let bomb = Bomb(1);
            move || std::mem::forget(bomb)
        };
        let mut handles = vec![
            crew.pool.evaluate(bomb()),
            view.evaluate(bomb()),
            group.evaluate(bomb()),
            crew.pool.complete(std::future::ready(bomb()).map(|forget| forget())),
        ];
        #[cfg(feature = "async")]
        handles.push(crew.pool.spawn_await(std::future::ready(bomb()).map(|forget| forget())));
        let context = &mut Context::from_waker(&waker);
        for handle in &mut handles {
            assert!(Pin::new(handle).poll(context).is_pending());
        }
        contained(|| {
            crew.pool.scope(|scope| {
                let mut scoped = vec![scope.evaluate(bomb())];
                #[cfg(feature = "async")]
                scoped.push(scope.spawn_await(std::future::ready(bomb()).map(|forget| forget())));
                for handle in &mut scoped {
                    assert!(Pin::new(handle).poll(context).is_pending());
                }
                if cancels {
                    handles.iter().for_each(JoinHandle::cancel);
                }
                drop(crew.pool.shutdown_now());
                let all = handles.len() + scoped.len();
                wait_until("all are woken", || count.0.load(Ordering::SeqCst) == all);
                for handle in scoped {
                    assert!(handle.try_await_complete().unwrap_err().is_cancelled());
                }
            });
        });
        for handle in handles {
            assert!(is_cancelled(handle));
        }
        gate.open();
        assert!(crew.pool.join_timeout(LIMIT));
        assert_eq!(crew.pool.stats().panicked, 0);
        drop((view, group));
        assert!(crew.pool.shutdown_join_timeout(LIMIT));
    }
}

// ----- futures -----

#[cfg(feature = "async")]
mod futures_that_panic {
    use super::*;
    use common::triggered;

    /// The regression: one panic and three late wakes killed four threads.
    #[test]
    fn a_future_that_panics_and_is_woken_late_is_contained() {
        let crew = Crew::new();
        let wakers = Arc::new(std::sync::Mutex::new(Vec::new()));
        let keep = Arc::clone(&wakers);
        crew.pool.spawn(std::future::poll_fn(move |context| -> Poll<()> {
            keep.lock().unwrap().extend([(); 3].map(|()| context.waker().clone()));
            panic!("in poll")
        }));
        assert!(crew.pool.join_timeout(LIMIT));
        for waker in wakers.lock().unwrap().drain(..) {
            waker.wake();
        }
        crew.assert_unharmed(&Toll { accepted: 1, panicked: 1, ..Toll::default() });
    }

    /// The same, with wakes that come during the poll, at its end, and from several threads.
    #[test]
    fn futures_that_panic_while_they_are_woken_are_contained() {
        const ROUNDS: usize = 100;
        let crew = Crew::new();
        for _ in 0..ROUNDS {
            let (sender, receiver) = mpsc::channel::<Waker>();
            let gate = Gate::new();
            let passes = Arc::clone(&gate);
            let handle = crew.pool.spawn_await(std::future::poll_fn(move |context| -> Poll<()> {
                context.waker().wake_by_ref();
                sender.send(context.waker().clone()).unwrap();
                sender.send(context.waker().clone()).unwrap();
                passes.pass();
                panic_any(Bomb(2))
            }));
            thread::scope(|scope| {
                for waker in [(); 2].map(|()| receiver.recv_timeout(LIMIT).unwrap()) {
                    scope.spawn(move || {
                        waker.wake_by_ref();
                        common::dawdle(500);
                        waker.wake_by_ref();
                        waker.wake();
                    });
                }
                gate.open();
            });
            // Its payload is a bomb; defuse it.
            std::mem::forget(settled(handle).unwrap_err().into_panic());
        }
        crew.assert_unharmed(&Toll { accepted: ROUNDS, panicked: ROUNDS, ..Toll::default() });
    }

    #[test]
    fn futures_that_panic_in_poll_are_contained() {
        let crew = Crew::new();
        let mut triggers = Vec::new();
        for depth in 0..5 {
            crew.pool.spawn(async move { panic_any(Bomb(depth)) });
            assert!(is_panic(crew.pool.spawn_await(async { panic!("in poll") })));
            let_go(|future| crew.pool.spawn_await(future), async move { panic_any(Bomb(depth)) });
            // In a later poll, with a destructor on top of it.
            let (trigger, triggered) = triggered();
            let bomb = Bomb(depth);
            crew.pool.spawn(async move {
                triggered.await;
                std::mem::forget(bomb);
                panic!("in poll");
            });
            wait_until("the future is polled", || trigger.polls() == 1);
            trigger.fire();
            triggers.push(trigger);
        }
        crew.assert_unharmed(&Toll { accepted: 20, panicked: 20, ..Toll::default() });
    }

    /// A future that panics when it is dropped, not before.
    struct DropBomb<F>(F, Bomb);

    impl<F: Future + Unpin> Future for DropBomb<F> {
        type Output = F::Output;

        fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
            let _ = &self.1;
            Pin::new(&mut self.0).poll(context)
        }
    }

    #[test]
    fn futures_whose_drop_panics_after_they_were_ready_are_contained() {
        let crew = Crew::new();
        for depth in 1..5 {
            crew.pool.spawn(DropBomb(std::future::ready(()), Bomb(depth)));
            let handle = crew.pool.spawn_await(DropBomb(std::future::ready(7), Bomb(depth)));
            assert_eq!(settled(handle).unwrap(), 7);
            let handle = crew.pool.complete(DropBomb(std::future::ready(7), Bomb(depth)));
            assert_eq!(settled(handle).unwrap(), 7);
        }
        crew.assert_unharmed(&Toll { accepted: 12, ..Toll::default() });
    }

    #[test]
    fn futures_whose_poll_and_drop_panic_are_contained() {
        let crew = Crew::new();
        for depth in 1..5 {
            let poll = |_: &mut Context<'_>| -> Poll<()> { panic_any(Bomb(2)) };
            crew.pool.spawn(DropBomb(std::future::poll_fn(poll), Bomb(depth)));
            let bomb = DropBomb(std::future::poll_fn(poll), Bomb(depth));
            let_go(|future| crew.pool.complete(future), bomb);
        }
        crew.assert_unharmed(&Toll { accepted: 8, panicked: 8, ..Toll::default() });
    }

    #[test]
    fn futures_whose_drop_panics_when_they_are_cancelled_are_contained() {
        let crew = Crew::new();
        for depth in 1..5 {
            let (trigger, triggered) = triggered();
            let handle = crew.pool.spawn_await(DropBomb(triggered, Bomb(depth)));
            wait_until("the future is polled", || trigger.polls() == 1);
            // Here, or on the worker if that is still in the poll.
            contained(|| handle.cancel());
            assert!(is_cancelled(handle));
            trigger.fire();
        }
        crew.assert_unharmed(&Toll { accepted: 4, cancelled: 4, ..Toll::default() });
    }

    #[test]
    fn futures_whose_drop_panics_with_their_last_waker_are_contained() {
        let crew = Crew::new();
        for depth in 1..5 {
            // On the worker, which holds the last waker.
            crew.pool.spawn(DropBomb(std::future::pending(), Bomb(depth)));
            // In a foreign thread, which has no part in it.
            let (trigger, triggered) = triggered();
            let handle = crew.pool.spawn_await(DropBomb(triggered, Bomb(depth)));
            wait_until("the future is polled", || trigger.polls() == 1);
            let dropper = thread::spawn(move || contained(|| drop(trigger)));
            assert!(dropper.join().is_ok(), "the panic is not contained");
            assert!(is_cancelled(handle));
        }
        crew.assert_unharmed(&Toll { accepted: 8, cancelled: 8, ..Toll::default() });
    }

    #[test]
    fn outputs_whose_drop_panics_are_contained() {
        let crew = Crew::new();
        for depth in 1..5 {
            let_go(|future| crew.pool.spawn_await(future), async move { Bomb(depth) });
        }
        crew.assert_unharmed(&Toll { accepted: 4, ..Toll::default() });
    }

    #[test]
    fn a_waker_that_panics_when_the_output_is_there_is_contained() {
        let crew = Crew::new();
        let count = Arc::new(PanicsWhenWoken(AtomicUsize::new(0)));
        let waker = Waker::from(Arc::clone(&count));
        let (trigger, triggered) = triggered();
        let mut ready = crew.pool.spawn_await(triggered);
        assert!(Pin::new(&mut ready).poll(&mut Context::from_waker(&waker)).is_pending());
        trigger.fire();
        wait_until("the handle is woken", || count.0.load(Ordering::SeqCst) == 1);
        assert!(settled(ready).is_ok());

        // Cancelled, since a foreign thread drops the last waker.
        let (trigger, triggered) = common::triggered();
        let mut abandoned = crew.pool.spawn_await(triggered);
        wait_until("the future is polled", || trigger.polls() == 1);
        wait_until("the poll has ended", || crew.pool.stats().active == 0);
        assert!(Pin::new(&mut abandoned).poll(&mut Context::from_waker(&waker)).is_pending());
        let dropper = thread::spawn(move || contained(|| drop(trigger)));
        assert!(dropper.join().is_ok(), "the panic is not contained");
        // A worker drops the future. The handle has its result before it is woken.
        wait_until("the handle is woken", || count.0.load(Ordering::SeqCst) == 2);
        assert!(is_cancelled(abandoned));
        crew.assert_unharmed(&Toll { accepted: 2, cancelled: 1, ..Toll::default() });
    }

    #[test]
    fn rejected_futures_whose_drop_panics_cost_no_worker() {
        let crew = Crew::new();
        crew.pool.close();
        let bomb = DropBomb(std::future::pending::<()>(), Bomb(3));
        let handle = contained(|| crew.pool.spawn_await(bomb));
        assert!(is_cancelled(handle));
        let bomb = DropBomb(std::future::pending(), Bomb(3));
        let text = panic_text(|| crew.pool.spawn(bomb));
        assert!(text.contains("the pool is closed"), "{text}");
        assert_eq!(crew.pool.stats().rejected, 2);
        assert!(crew.pool.shutdown_join_timeout(LIMIT));
    }
}

// ----- all of it -----

/// Panics of all kinds, mixed with honest work, from several threads.
#[test]
fn a_storm_of_panics_is_contained() {
    const SUBMITTERS: usize = 3;
    const ROUNDS: usize = 300;
    let crew = Crew::new();
    let drops = Drops::default();
    thread::scope(|scope| {
        for _ in 0..SUBMITTERS {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    let (one, two, three) = (drops.issue(), drops.issue(), drops.issue());
                    crew.pool.execute(move || drop(one));
                    crew.pool.execute(move || {
                        let _two = two;
                        panic_any(Bomb(1));
                    });
                    let_go_closure(&crew.pool, move || (three, Bomb(1)));
                }
            });
        }
    });
    assert!(crew.pool.join_timeout(LIMIT));
    assert_eq!(drops.count(), 3 * SUBMITTERS * ROUNDS);
    let (accepted, panicked) = (3 * SUBMITTERS * ROUNDS, SUBMITTERS * ROUNDS);
    crew.assert_unharmed(&Toll { accepted, panicked, ..Toll::default() });
}
