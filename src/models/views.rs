//! Views: limits, reserves, closing, regions, sizes, bounded queues and timeouts.

use std::future::poll_fn;
use std::task::Poll;

use super::{
    Arc, AtomicBool, AtomicUsize, Gate, Mutex, Ordering, Relaxed, builder, counting, explore,
    explore_both, long, pool, thread,
};
use crate::sync::{IS_DUE, expire_waits};
use crate::{Priority, RejectReason, ThreadPool, View, blocking};

/// Notices two tasks that run at the same time.
#[derive(Clone)]
struct Alone(Arc<AtomicUsize>);

impl Alone {
    fn new() -> Self {
        Alone(Arc::new(AtomicUsize::new(0)))
    }

    fn run<R>(&self, f: impl FnOnce() -> R) -> R {
        assert_eq!(self.0.fetch_add(1, Ordering::Relaxed), 0, "more than the limit run");
        let result = f();
        self.0.fetch_sub(1, Ordering::Relaxed);
        result
    }
}

fn counted_alone(alone: &Alone, ran: &Relaxed) -> impl FnOnce() + Send + 'static {
    let (alone, ran) = (alone.clone(), ran.clone());
    move || alone.run(|| ran.increment())
}

/// A pause shuts the gate itself, also beside the first view of the pool, which another thread builds.
#[test]
fn a_pause_versus_the_first_view() {
    explore(2, || {
        let pool = pool(0, 1);
        let other = pool.clone();
        let builds = thread::spawn(move || drop(other.view().build()));
        pool.pause();
        assert!(pool.shared().policy.has_gate(crate::views::Gate::Shut));
        builds.join().unwrap();
        pool.shutdown_join();
    });
}

/// Race 35: a task of a limited view ends while another is submitted, which may not start before.
#[test]
fn the_end_of_a_limited_task_versus_submit() {
    explore_both(2, 1, || {
        let pool = pool(0, 2);
        let view = pool.view().limit(1).build();
        let (alone, ran) = (Alone::new(), Relaxed::new());
        view.execute(counted_alone(&alone, &ran));
        view.execute(counted_alone(&alone, &ran));
        view.join();
        assert_eq!(ran.get(), 2);
        drop(view);
        pool.shutdown_join();
    });
}

/// Race 35: as above, for the default view, whose tasks are pushed without the lock. A reserve
/// leaves it one worker.
#[test]
fn the_end_of_a_task_versus_submit_beside_a_reserve() {
    explore_both(2, 1, || {
        let pool = pool(0, 2);
        let view = pool.view().reserve(1).build();
        let (alone, ran) = (Alone::new(), Relaxed::new());
        pool.execute(counted_alone(&alone, &ran));
        pool.execute(counted_alone(&alone, &ran));
        pool.join();
        assert_eq!(ran.get(), 2);
        drop(view);
        pool.shutdown_join();
    });
}

/// A reserved place is free while tasks of others queue: they wait for the view's task.
#[test]
fn a_reserved_place_is_free_while_others_queue() {
    explore_both(1, 1, || {
        let pool = pool(0, 2);
        let view = pool.view().reserve(1).build();
        let gate = Gate::new();
        for _ in 0..2 {
            let waiting = gate.clone();
            pool.execute(move || waiting.pass());
        }
        view.execute(move || gate.open());
        drop(view);
        pool.shutdown_join();
    });
}

/// Race 15: the last handle of a view is dropped while a task waits for its reserve. Another one
/// needs that task.
#[test]
fn the_end_of_a_reserve_versus_submit() {
    explore(1, || {
        let pool = pool(0, 2);
        let view = pool.view().reserve(1).build();
        let dropper = thread::spawn(move || drop(view));
        super::pair().into_iter().for_each(|task| pool.execute(task));
        dropper.join().unwrap();
        pool.shutdown_join();
    });
}

/// Race 15: the last handle of a view is dropped while its last future ends, or a task waits for
/// its reserve. A waker of the future is kept, so the view stays. Of two tasks one needs the other,
/// and the reserve's place.
#[test]
fn the_end_of_a_reserve_versus_the_last_task() {
    explore(1, || {
        let pool = pool(0, 2);
        let view = pool.view().reserve(1).build();
        let kept = Arc::new(Mutex::new(None));
        let waker = Arc::clone(&kept);
        view.spawn(poll_fn(move |context| {
            *waker.lock().unwrap() = Some(context.waker().clone());
            Poll::Ready(())
        }));
        let dropper = thread::spawn(move || drop(view));
        super::pair().into_iter().for_each(|task| pool.execute(task));
        dropper.join().unwrap();
        pool.join();
        let kept = kept.lock().unwrap().take();
        drop(kept);
        pool.shutdown_join();
    });
}

/// Race 15: `max_size` is lowered while a view asks for a reserve. One of them is refused.
#[test]
fn resize_versus_a_reserve() {
    explore(3, || {
        let pool = pool(0, 3);
        let builder = pool.view().reserve(2);
        let other = thread::spawn(move || builder.try_build().ok());
        let is_resized = pool.set_max_size(2).is_ok();
        let view = other.join().unwrap();
        assert_ne!(is_resized, view.is_some());
        pool.evaluate(|| ()).await_complete();
        drop(view);
        pool.shutdown_join();
    });
}

/// Race 15: `max_size` grows while a task waits for a place beside a reserve. Another one needs
/// that task.
#[test]
fn a_larger_max_size_versus_submit_beside_a_reserve() {
    explore(1, || {
        let pool = pool(0, 2);
        let view = pool.view().reserve(1).build();
        let other = {
            let pool = pool.clone();
            thread::spawn(move || pool.set_max_size(3).unwrap())
        };
        super::pair().into_iter().for_each(|task| pool.execute(task));
        other.join().unwrap();
        drop(view);
        pool.shutdown_join();
    });
}

/// Race 15: the limit of a view grows while tasks of it are submitted. One of them needs the other.
#[test]
fn a_larger_limit_of_a_view_versus_submit() {
    explore(1, || {
        let pool = pool(0, 2);
        let view = pool.view().limit(1).build();
        let other = {
            let view = view.clone();
            thread::spawn(move || view.set_limit(2).unwrap())
        };
        super::pair().into_iter().for_each(|task| view.execute(task));
        other.join().unwrap();
        // Before the shutdown, which looks.
        pool.join();
        drop(view);
        pool.shutdown_join();
    });
}

/// Race 15: the limit of a view grows while a worker waits for a place at the end of its region.
/// The task that has the only one needs that worker.
#[test]
fn a_larger_limit_versus_a_return() {
    explore(long(2), || {
        let pool = pool(0, 2);
        let view = pool.view().limit(1).build();
        let (first, second) = (Gate::new(), Gate::new());
        let (opens, waits) = (second.clone(), first.clone());
        view.execute(move || {
            blocking(|| waits.pass());
            opens.open();
        });
        let inner = view.clone();
        view.execute(move || {
            first.open();
            inner.set_limit(2).unwrap();
            second.pass();
        });
        drop(view);
        pool.shutdown_join();
    });
}

/// Race 15: the default view is resumed while a task of it is submitted, and a worker rests.
#[test]
fn resume_versus_submit() {
    explore_both(2, 1, || {
        let pool = pool(0, 1);
        let ran = Relaxed::new();
        pool.execute(counting(&ran));
        pool.pause();
        let other = {
            let pool = pool.clone();
            thread::spawn(move || pool.resume())
        };
        pool.execute(counting(&ran));
        other.join().unwrap();
        pool.join();
        assert_eq!(ran.get(), 2);
        pool.shutdown_join();
    });
}

/// A worker takes tasks without a place until the first pause. It takes none that is submitted
/// after that.
#[test]
fn a_task_behind_the_first_pause() {
    explore_both(2, 2, || {
        let pool = pool(0, 1);
        let (is_resumed, ran) = (Relaxed::new(), Relaxed::new());
        pool.execute(counting(&ran));
        pool.pause();
        let (resumed, count) = (is_resumed.clone(), ran.clone());
        pool.execute(move || {
            assert_eq!(resumed.get(), 1, "it starts while its view is paused");
            count.increment();
        });
        is_resumed.increment();
        pool.resume();
        pool.join();
        assert_eq!(ran.get(), 2);
        pool.shutdown_join();
    });
}

/// A view without tasks, and a pool whose workers end tasks of the default view.
fn with_kept_places(max_size: usize) -> (ThreadPool, View) {
    let pool = pool(0, max_size);
    let view = pool.view().priority(Priority::High).build();
    let end = Gate::new();
    for _ in 0..max_size {
        let (started, waiting) = (Gate::new(), end.clone());
        let begun = started.clone();
        pool.execute(move || {
            begun.open();
            waiting.pass();
        });
        started.pass();
    }
    end.open();
    (pool, view)
}

/// A worker that keeps its place of the default view takes a task of it, while a view gets its
/// first one. What is submitted after that does not pass it.
#[test]
fn a_kept_place_versus_the_first_task_of_a_view() {
    explore_both(2, 2, || {
        let (pool, view) = with_kept_places(1);
        let (urgent, ran) = (Relaxed::new(), Relaxed::new());
        view.execute(counting(&urgent));
        let (before, count) = (urgent.clone(), ran.clone());
        pool.execute(move || {
            assert_eq!(before.get(), 1, "it passes a task of a higher priority");
            count.increment();
        });
        pool.join();
        assert_eq!((urgent.get(), ran.get()), (1, 1));
        drop(view);
        pool.shutdown_join();
    });
}

/// Workers that keep their places of the default view take tasks of it while a reserve is set. It
/// leaves one place to tasks that come after that.
#[test]
fn kept_places_versus_a_reserve() {
    explore(1, || {
        let (pool, view) = with_kept_places(2);
        view.set_reserve(1).unwrap();
        let (alone, ran) = (Alone::new(), Relaxed::new());
        (0..2).for_each(|_| pool.execute(counted_alone(&alone, &ran)));
        pool.join();
        assert_eq!(ran.get(), 2);
        drop(view);
        pool.shutdown_join();
    });
}

/// A worker that keeps its place of the default view takes no task that is submitted after a pause.
#[test]
fn a_kept_place_versus_a_pause() {
    explore_both(2, 2, || {
        let (pool, view) = with_kept_places(1);
        let (is_resumed, ran) = (Relaxed::new(), Relaxed::new());
        pool.pause();
        let (resumed, count) = (is_resumed.clone(), ran.clone());
        pool.execute(move || {
            assert_eq!(resumed.get(), 1, "it starts while its view is paused");
            count.increment();
        });
        thread::yield_now();
        is_resumed.increment();
        pool.resume();
        pool.join();
        assert_eq!(ran.get(), 1);
        drop(view);
        pool.shutdown_join();
    });
}

/// Race 12: a worker that keeps its place of the default view counts as running between two tasks.
#[test]
fn a_kept_place_versus_join_running() {
    explore_both(2, 2, || {
        let (pool, view) = with_kept_places(1);
        let notes = [Relaxed::new(), Relaxed::new()];
        pool.execute(noted(&notes));
        pause_and_join(&pool, &notes);
        drop(view);
        pool.shutdown_join();
    });
}

/// A task that says when it begins and when it ends.
fn noted(notes: &[Relaxed; 2]) -> impl FnOnce() + Send + 'static {
    let [begun, ended] = notes.clone();
    move || {
        begun.increment();
        ended.increment();
    }
}

/// Race 12: a thread waits, after a pause, until nothing runs. Nothing does then, and nothing
/// begins.
fn pause_and_join(pool: &ThreadPool, notes: &[Relaxed; 2]) {
    pool.pause();
    pool.join_running();
    let [begun, ended] = notes;
    let ended = ended.get();
    assert_eq!(begun.get(), ended, "a task runs");
    thread::yield_now();
    assert_eq!(begun.get(), ended, "a task has begun");
    pool.resume();
    pool.join();
    assert_eq!(begun.get(), 1);
}

/// The worker of a pool that has never had a view takes a task while the pool is paused for the
/// first time, or rests.
#[test]
fn the_first_pause_versus_a_take() {
    explore_both(2, 2, || {
        let pool = pool(0, 1);
        let notes = [Relaxed::new(), Relaxed::new()];
        pool.execute(noted(&notes));
        pause_and_join(&pool, &notes);
        pool.shutdown_join();
    });
}

/// The same of a view.
#[test]
fn a_pause_of_a_view_versus_a_take() {
    explore_both(2, 2, || {
        let pool = pool(0, 1);
        let view = pool.view().build();
        let notes = [Relaxed::new(), Relaxed::new()];
        view.execute(noted(&notes));
        pause_and_join(&view, &notes);
        drop(view);
        pool.shutdown_join();
    });
}

/// A thread that knows that a cancelled task of a paused pool has been dropped, and waits for what
/// runs, reads metrics without it.
#[test]
fn a_cancelled_task_versus_join_running() {
    struct SetsOnDrop(Arc<AtomicBool>);

    impl Drop for SetsOnDrop {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Release);
        }
    }

    explore(2, || {
        let pool = pool(0, 1);
        pool.pause();
        let is_dropped = Arc::new(AtomicBool::new(false));
        let captured = SetsOnDrop(Arc::clone(&is_dropped));
        let handle = pool.evaluate(move || drop(captured));
        let canceller = thread::spawn(move || handle.cancel());
        if is_dropped.load(Ordering::Acquire) {
            pool.join_running();
            assert_eq!(pool.stats().active, 0);
        }
        canceller.join().unwrap();
        pool.resume();
        pool.shutdown_join();
    });
}

/// Race 10: a pool is paused while its last handle is dropped, or it is closed. All that was
/// accepted runs.
#[test]
fn pause_versus_close() {
    explore(2, || {
        let pool = pool(0, 1);
        let ran = Relaxed::new();
        let other = {
            let pool = pool.clone();
            thread::spawn(move || pool.pause())
        };
        pool.execute(counting(&ran));
        pool.close();
        other.join().unwrap();
        pool.join();
        assert_eq!(ran.get(), 1);
        pool.shutdown_join();
    });
}

/// Race 10: an accepted task of a view runs, another is handed back. The pool stays open.
#[test]
fn close_of_a_view_versus_submit() {
    explore_both(long(3), 2, || {
        let pool = pool(1, 1);
        let view = pool.view().build();
        let ran = Relaxed::new();
        let closer = {
            let view = view.clone();
            thread::spawn(move || view.close())
        };
        let accepted = match view.try_execute(counting(&ran)) {
            Ok(()) => 1,
            Err(rejected) => {
                assert_eq!(rejected.reason(), RejectReason::Closed);
                0
            }
        };
        closer.join().unwrap();
        view.join();
        assert_eq!(ran.get(), accepted);
        assert!(!pool.is_closed());
        drop(view);
        pool.shutdown_join();
    });
}

/// Race 10: a view is closed while a submitter to it waits for a permit, which no task releases
/// before.
#[test]
fn close_of_a_view_versus_a_full_queue() {
    explore(2, || {
        let pool = builder(1, 1).queue_capacity(0).build();
        let view = pool.view().build();
        let gate = Gate::new();
        let waiting = gate.clone();
        pool.execute(move || waiting.pass());
        let closer = {
            let view = view.clone();
            thread::spawn(move || view.close())
        };
        // It waits until the view is closed, or the submission comes after that.
        assert!(view.evaluate(|| ()).try_await_complete().is_err());
        gate.open();
        closer.join().unwrap();
        drop(view);
        pool.shutdown_join();
    });
}

/// Race 10: a view is closed while a task of it is accepted. A task that is refused after it has
/// got its permit gives it back.
#[test]
fn close_of_a_view_versus_a_bounded_queue() {
    explore(2, || {
        let pool = builder(1, 1).queue_capacity(0).build();
        let view = pool.view().build();
        let closer = {
            let view = view.clone();
            thread::spawn(move || view.close())
        };
        let _ = view.try_execute(|| ());
        closer.join().unwrap();
        pool.join();
        assert!(pool.try_execute(|| ()).is_ok(), "the only permit is free");
        drop(view);
        pool.shutdown_join();
    });
}

/// A bounded queue with a view: its submitters wait for permits of the pool.
#[test]
fn submit_to_a_view_versus_a_full_queue() {
    explore(2, || {
        let pool = builder(1, 1).queue_capacity(0).build();
        let view = pool.view().limit(1).build();
        let (alone, ran) = (Alone::new(), Relaxed::new());
        for _ in 0..2 {
            view.execute(counted_alone(&alone, &ran));
        }
        pool.execute(counting(&ran));
        pool.join();
        assert_eq!(ran.get(), 3);
        drop(view);
        pool.shutdown_join();
    });
}

/// Race 7: a worker of a limited view blocks, another runs the task that it waits for, and the
/// first one returns: never both at once outside the region.
#[test]
fn a_worker_of_a_limited_view_blocks_and_returns() {
    explore_both(long(2), 1, || {
        let pool = pool(0, 2);
        let view = pool.view().limit(1).build();
        let gate = Gate::new();
        let (alone, ran) = (Alone::new(), Relaxed::new());
        let (waiting, first, count) = (gate.clone(), alone.clone(), ran.clone());
        view.execute(move || {
            first.run(|| count.increment());
            blocking(|| waiting.pass());
            first.run(|| count.increment());
        });
        let count = ran.clone();
        view.execute(move || {
            alone.run(|| {
                gate.open();
                count.increment();
            });
        });
        view.join();
        assert_eq!(ran.get(), 3);
        drop(view);
        pool.shutdown_join();
    });
}

/// A task of a limited view waits for one of another limited view, which its worker may run itself.
#[test]
fn a_task_waits_for_one_of_another_view() {
    explore(long(1), || {
        let pool = pool(0, 2);
        let views: [View; 2] = [1, 1].map(|limit| pool.view().limit(limit).build());
        let alone = [Alone::new(), Alone::new()];
        let (inner, ran) = (views[1].clone(), Relaxed::new());
        let awaited = counted_alone(&alone[1], &ran);
        views[0].execute(move || inner.evaluate(awaited).await_complete());
        views[1].execute(counted_alone(&alone[1], &ran));
        views[0].execute(counted_alone(&alone[0], &ran));
        views.iter().for_each(|view| view.join());
        assert_eq!(ran.get(), 3);
        drop(views);
        pool.shutdown_join();
    });
}

/// A future of a view is woken while the last handle of its view is dropped.
#[test]
fn a_wake_versus_the_last_handle_of_a_view() {
    explore(2, || {
        let pool = pool(0, 1);
        let view = pool.view().limit(1).build();
        let (sender, receiver) = futures_channel::oneshot::channel::<()>();
        let handle = view.spawn_await(async move { receiver.await.is_ok() });
        let dropper = thread::spawn(move || drop(view));
        sender.send(()).unwrap();
        assert!(handle.await_complete());
        dropper.join().unwrap();
        pool.shutdown_join();
    });
}

/// Race 8: the deadline of a task passes while a worker starts it. It runs, or it has expired.
#[test]
fn expiry_versus_start() {
    explore(2, || {
        IS_DUE.set(false);
        let pool = pool(1, 1);
        let view = pool.view().queue_timeout(super::HOUR).build();
        let ran = Relaxed::new();
        let handle = view.evaluate(counting(&ran));
        IS_DUE.set(true);
        let expired = handle.try_await_complete().is_err_and(|error| error.is_expired());
        view.join();
        assert_eq!(ran.get(), usize::from(!expired));
        assert_eq!(view.stats().expired, usize::from(expired));
        drop(view);
        pool.shutdown_join();
    });
    IS_DUE.set(false);
}

/// Race 8: a worker waits for a task until the deadline, while another worker starts that task. The
/// waiter learns what happens.
#[test]
fn expiry_versus_start_versus_a_blocking_wait() {
    explore(1, || {
        IS_DUE.set(false);
        let pool = pool(0, 2);
        let view = pool.view().queue_timeout(super::HOUR).build();
        let (ran, inner) = (Relaxed::new(), view.clone());
        let task = counting(&ran);
        let waiter =
            pool.evaluate(move || inner.evaluate(task).wait_for_others(None).unwrap().is_ok());
        IS_DUE.set(true);
        while !waiter.is_finished() {
            expire_waits();
            thread::yield_now();
        }
        let has_run = waiter.await_complete();
        pool.join();
        assert_eq!(ran.get(), usize::from(has_run));
        assert_eq!(view.stats().expired, usize::from(!has_run));
        drop(view);
        pool.shutdown_join();
    });
    IS_DUE.set(false);
}

/// Race 8: the deadline of a started task passes while a worker waits for it. The wait goes on.
#[test]
fn the_deadline_of_a_started_task_versus_a_blocking_wait() {
    explore(1, || {
        IS_DUE.set(false);
        let pool = pool(0, 2);
        let view = pool.view().queue_timeout(super::HOUR).build();
        let (started, gate) = (Gate::new(), Gate::new());
        let (opens, waits, inner) = (started.clone(), gate.clone(), view.clone());
        let task = move || {
            opens.open();
            waits.pass();
        };
        let waiter =
            pool.evaluate(move || inner.evaluate(task).wait_for_others(None).unwrap().is_ok());
        started.pass();
        IS_DUE.set(true);
        expire_waits();
        gate.open();
        assert!(waiter.await_complete());
        drop(view);
        pool.shutdown_join();
    });
    IS_DUE.set(false);
}

/// Race 8: a worker claims a task of a view while another one takes its entry, and the view is
/// joined.
#[test]
fn join_of_a_view_versus_a_claimed_task() {
    explore(long(1), || {
        let pool = pool(0, 2);
        let view = pool.view().build();
        let ran = Relaxed::new();
        let handle = view.evaluate(counting(&ran));
        pool.execute(move || handle.await_complete());
        view.join();
        assert_eq!(ran.get(), 1);
        drop(view);
        pool.shutdown_join();
    });
}
