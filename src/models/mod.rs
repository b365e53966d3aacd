//! Model checks of `protocol.md`: real pools of one to three workers, in every interleaving up to a
//! bound of preemptions, with every value that the memory model lets a load return. `cargo xtask
//! models` runs them; `cargo xtask mutants` shows that they can fail.
//!
//! A lost wake-up shows as a deadlock, which ends the process: no wait here has a time limit. A
//! keep-alive ends when a model says so.

mod groups;
mod local_queues;
mod ring;
mod waits;

use std::future::{Future, pending, poll_fn};
use std::panic;
use std::pin::Pin;
use std::process;
use std::sync::atomic::AtomicUsize as ExecutionCount;
use std::sync::{Arc, Once};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::sync::{Condvar, Mutex};
use loom::thread;

use crate::sync::REFUSE_NEXT;
use crate::sync::parker::{Parker, Signal};
use crate::{Builder, Growth, RejectReason, Task, ThreadPool, blocking};

const HOUR: Duration = Duration::from_secs(3600);

/// Explores a model, with at most `preemptions` unless the environment says otherwise.
///
/// Ends the process at the first unexpected panic: unwinding would drop the pool, and that may wait
/// for ever in a model that has stopped.
fn explore(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    static ABORT: Once = Once::new();
    ABORT.call_once(|| {
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            report(info);
            process::abort();
        }));
    });
    let mut builder = loom::model::Builder::new();
    let preemptions = *builder.preemption_bound.get_or_insert(preemptions);
    let executions = Arc::new(ExecutionCount::new(0));
    let counter = Arc::clone(&executions);
    let begin = Instant::now();
    builder.check(move || {
        counter.fetch_add(1, Ordering::Relaxed);
        model();
    });
    let name = std::thread::current().name().map(str::to_owned).unwrap_or_default();
    let executions = executions.load(Ordering::Relaxed);
    let seconds = begin.elapsed().as_secs_f64();
    println!("{name}: {executions} executions with {preemptions} preemptions, {seconds:.1} s");
}

fn builder(core_size: usize, max_size: usize) -> Builder {
    Builder::new().name("model").core_size(core_size).max_size(max_size).keep_alive(HOUR)
}

fn pool(core_size: usize, max_size: usize) -> ThreadPool {
    builder(core_size, max_size).build()
}

/// A gate that is shut until it is opened.
#[derive(Clone)]
struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    fn new() -> Self {
        Gate(Arc::new((Mutex::new(false), Condvar::new())))
    }

    fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }

    fn pass(&self) {
        let mut open = self.0.0.lock().unwrap();
        while !*open {
            open = self.0.1.wait(open).unwrap();
        }
    }
}

/// Two tasks that need each other.
fn pair() -> [impl FnOnce() + Send + 'static; 2] {
    let gates = [Gate::new(), Gate::new()];
    [(0, 1), (1, 0)].map(|(mine, other)| {
        let (mine, other) = (gates[mine].clone(), gates[other].clone());
        move || {
            mine.open();
            other.pass();
        }
    })
}

/// A counter that orders nothing: a task's write is visible only if the pool itself orders it.
#[derive(Clone)]
struct Relaxed(Arc<AtomicUsize>);

impl Relaxed {
    fn new() -> Self {
        Relaxed(Arc::new(AtomicUsize::new(0)))
    }

    fn increment(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

fn counting(count: &Relaxed) -> impl FnOnce() + Send + 'static {
    let count = count.clone();
    move || count.increment()
}

/// Publishes the waker of each poll, and is ready once `ready` is set.
struct Flagged {
    ready: Arc<AtomicBool>,
    waker: Arc<Mutex<Option<Waker>>>,
}

impl Future for Flagged {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        *self.waker.lock().unwrap() = Some(context.waker().clone());
        if self.ready.load(Ordering::Relaxed) { Poll::Ready(()) } else { Poll::Pending }
    }
}

#[test]
fn parker_does_not_lose_a_signal() {
    explore(3, || {
        let parker = Arc::new(Parker::new());
        let others: Vec<_> = [Parker::recheck as fn(&Parker), Parker::unpark]
            .map(|signal| {
                let parker = Arc::clone(&parker);
                thread::spawn(move || signal(&parker))
            })
            .into_iter()
            .collect();
        while parker.park(None) != Signal::Unparked {}
        for other in others {
            other.join().unwrap();
        }
    });
}

/// Submit versus idle, one producer; join versus the last task: its writes are visible.
#[test]
fn submit_versus_idle() {
    explore(3, || {
        let pool = pool(1, 1);
        let ran = Relaxed::new();
        pool.execute(counting(&ran));
        pool.execute(counting(&ran));
        pool.join();
        assert_eq!(ran.get(), 2);
        pool.execute(counting(&ran));
        pool.join();
        assert_eq!(ran.get(), 3);
        pool.shutdown_join();
    });
}

/// As above, but the worker spins before it rests.
#[test]
fn submit_versus_spin() {
    explore(3, || {
        let mut builder = builder(1, 1);
        builder.spins = true;
        let pool = builder.build();
        let ran = Relaxed::new();
        for _ in 0..2 {
            pool.execute(counting(&ran));
        }
        pool.join();
        assert_eq!(ran.get(), 2);
        pool.shutdown_join();
    });
}

/// Two tasks that need each other, and a worker that spins: it takes one and notifies for the
/// other.
#[test]
fn a_spinning_worker_wakes_the_next() {
    explore(1, || {
        let mut builder = builder(2, 2);
        builder.spins = true;
        let pool = builder.build();
        assert_eq!(pool.start_core_threads(), 2);
        pair().into_iter().for_each(|task| pool.execute(task));
        pool.shutdown_join();
    });
}

/// Submit versus idle, two producers, each of which may find the idle worker.
#[test]
fn two_submitters_versus_idle() {
    explore(2, || {
        let pool = pool(1, 1);
        let ran = Relaxed::new();
        let other = {
            let (pool, task) = (pool.clone(), counting(&ran));
            thread::spawn(move || pool.execute(task))
        };
        pool.execute(counting(&ran));
        other.join().unwrap();
        pool.shutdown_join();
        assert_eq!(ran.get(), 2);
    });
}

/// Two tasks that need each other: the second must not wait behind the first.
#[test]
fn interdependent_tasks_get_a_worker_each() {
    explore(2, || {
        let pool = pool(1, 2);
        pair().into_iter().for_each(|task| pool.execute(task));
        pool.shutdown_join();
    });
}

/// Race 34: two threads are starting at once. Each of two tasks that need each other gets one of
/// them, and no third thread is started.
#[test]
fn no_more_threads_come_than_tasks() {
    /// Whether two were starting at once, in any execution.
    static BOTH: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

    explore(1, || {
        let pool = pool(0, 3);
        pair().into_iter().for_each(|task| pool.execute(task));
        if pool.shared().counts.load().starting() == 2 {
            BOTH.store(true, std::sync::atomic::Ordering::Relaxed);
        }
        pool.join();
        assert_eq!(pool.stats().threads_started, 2);
        pool.shutdown_join();
    });
    assert!(BOTH.load(std::sync::atomic::Ordering::Relaxed));
}

/// Race 13: the second thread is refused while the first, which takes both tasks, is starting.
#[test]
fn a_refused_thread_while_another_comes() {
    explore(1, || {
        let pool = pool(0, 2);
        let ran = Relaxed::new();
        pool.execute(counting(&ran));
        REFUSE_NEXT.set(true);
        pool.execute(counting(&ran));
        pool.join();
        assert_eq!(ran.get(), 2);
        REFUSE_NEXT.set(false);
        pool.shutdown_join();
    });
}

/// Two tasks that need each other, and two idle workers: one of them wakes the other.
#[test]
fn a_woken_worker_wakes_the_next() {
    explore(1, || {
        let pool = pool(2, 2);
        assert_eq!(pool.start_core_threads(), 2);
        pair().into_iter().for_each(|task| pool.execute(task));
        pool.shutdown_join();
    });
}

/// Retire versus submit: the task comes while the only worker's keep-alive ends.
#[test]
fn retire_versus_submit() {
    explore(3, || {
        let pool = pool(0, 1);
        let ran = Relaxed::new();
        pool.execute(counting(&ran));
        let time = {
            let shared = Arc::clone(pool.shared());
            thread::spawn(move || shared.idle.expire_all())
        };
        pool.execute(counting(&ran));
        pool.join();
        assert_eq!(ran.get(), 2);
        time.join().unwrap();
        pool.shutdown_join();
    });
}

/// As above, without a thread to be had: the task is handed back, or the worker stays for it.
#[test]
fn retire_versus_submit_without_a_thread() {
    explore(3, || {
        let pool = pool(0, 1);
        let ran = Relaxed::new();
        pool.execute(counting(&ran));
        let time = {
            let shared = Arc::clone(pool.shared());
            thread::spawn(move || shared.idle.expire_all())
        };
        REFUSE_NEXT.set(true);
        let accepted = usize::from(pool.try_execute(counting(&ran)).is_ok());
        pool.join();
        REFUSE_NEXT.set(false);
        assert_eq!(ran.get(), 1 + accepted);
        time.join().unwrap();
        pool.shutdown_join();
    });
}

/// Race 9: two workers of which one may stay. Their keep-alives end together.
#[test]
fn two_workers_retire_down_to_the_core() {
    explore(1, || {
        let pool = pool(1, 2);
        let gate = Gate::new();
        let waiting = gate.clone();
        pool.execute(move || waiting.pass());
        pool.execute(move || gate.open());
        pool.join();
        for _ in 0..3 {
            thread::yield_now();
            pool.shared().idle.expire_all();
        }
        assert!(pool.current_worker_count() >= 1, "the core stays");
        let ran = Relaxed::new();
        pool.execute(counting(&ran));
        pool.join();
        assert_eq!(ran.get(), 1);
        pool.shutdown_join();
    });
}

/// Retire versus submit at the limit: one worker leaves while the other waits for the new task.
#[test]
fn leave_versus_submit() {
    explore(1, || {
        let pool = pool(0, 2);
        let gate = Gate::new();
        let waiting = gate.clone();
        pool.execute(move || waiting.pass());
        pool.evaluate(|| ()).await_complete();
        pool.shared().idle.expire_all();
        pool.execute(move || gate.open());
        pool.shutdown_join();
    });
}

/// Race 12: two threads join while the last task ends.
#[test]
fn two_joiners_versus_the_last_task() {
    explore(3, || {
        let pool = pool(1, 1);
        let ran = Relaxed::new();
        pool.execute(counting(&ran));
        let other = {
            let (pool, ran) = (pool.clone(), ran.clone());
            thread::spawn(move || {
                pool.join();
                assert_eq!(ran.get(), 1);
            })
        };
        pool.join();
        assert_eq!(ran.get(), 1);
        other.join().unwrap();
        pool.shutdown_join();
    });
}

/// Race 10: an accepted task runs, another is handed back.
#[test]
fn close_versus_submit() {
    explore(3, || {
        let pool = pool(1, 1);
        let ran = Relaxed::new();
        let closer = {
            let pool = pool.clone();
            thread::spawn(move || pool.close())
        };
        let accepted = match pool.try_execute(counting(&ran)) {
            Ok(()) => 1,
            Err(rejected) => {
                assert_eq!(rejected.reason(), RejectReason::Closed);
                0
            }
        };
        closer.join().unwrap();
        pool.shutdown_join();
        assert_eq!(ran.get(), accepted);
    });
}

/// A task submits another one while the pool closes.
#[test]
fn close_versus_submit_from_inside() {
    explore(3, || {
        let pool = pool(0, 1);
        let ran = Relaxed::new();
        let inner = pool.clone();
        let task = counting(&ran);
        let handle = pool.evaluate(move || inner.try_execute(task).is_ok());
        pool.close();
        let accepted = handle.await_complete();
        pool.shutdown_join();
        assert_eq!(ran.get(), usize::from(accepted));
    });
}

/// A handle is awaited while its task ends. The checker does not see what the oneshot channel
/// publishes, so the model only checks that the value is there.
#[test]
fn a_handle_versus_its_task() {
    explore(3, || {
        let pool = pool(1, 1);
        let handle = pool.evaluate(|| 7);
        assert_eq!(handle.await_complete(), 7);
        pool.shutdown_join();
    });
}

/// A handle is cancelled while its task starts: the task runs, or it does not.
#[test]
fn cancel_versus_run() {
    explore(3, || {
        let pool = pool(1, 1);
        let ran = Relaxed::new();
        let handle = pool.evaluate(counting(&ran));
        handle.cancel();
        let cancelled = handle.try_await_complete().is_err();
        pool.shutdown_join();
        assert_eq!(ran.get(), usize::from(!cancelled));
    });
}

/// Wake versus poll: a foreign thread wakes the future at any time.
#[test]
fn wake_versus_poll() {
    explore(3, || {
        let pool = pool(1, 1);
        let ready = Arc::new(AtomicBool::new(false));
        let waker = Arc::new(Mutex::new(None::<Waker>));
        let handle =
            pool.spawn_await(Flagged { ready: Arc::clone(&ready), waker: Arc::clone(&waker) });
        ready.store(true, Ordering::Relaxed);
        // Without a waker the future has not been polled, and will see that it is ready.
        let woken = waker.lock().unwrap().take();
        if let Some(waker) = woken {
            waker.wake();
        }
        assert!(handle.try_await_complete().is_ok());
        pool.shutdown_join();
    });
}

/// Two threads wake a future that two workers may poll: both wakes count, and polls never overlap.
#[test]
fn two_wakers_versus_two_workers() {
    struct Counting {
        wakes: Arc<AtomicUsize>,
        waker: Arc<Mutex<Option<Waker>>>,
        polled: Arc<AtomicBool>,
        is_registered: bool,
    }

    impl Future for Counting {
        type Output = ();

        fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
            assert!(!self.polled.swap(true, Ordering::Relaxed), "polled by two workers at once");
            // Only once: the lock must not order what only the wake should order.
            if !self.is_registered {
                self.is_registered = true;
                *self.waker.lock().unwrap() = Some(context.waker().clone());
            }
            let wakes = self.wakes.load(Ordering::Relaxed);
            self.polled.store(false, Ordering::Relaxed);
            if wakes == 2 { Poll::Ready(()) } else { Poll::Pending }
        }
    }

    explore(2, || {
        let pool = pool(1, 2);
        let wakes = Arc::new(AtomicUsize::new(0));
        let waker = Arc::new(Mutex::new(None::<Waker>));
        let polled = Arc::new(AtomicBool::new(false));
        let (count, slot) = (Arc::clone(&wakes), Arc::clone(&waker));
        let handle = pool.spawn_await(Counting { wakes, waker, polled, is_registered: false });
        let wake = move || {
            count.fetch_add(1, Ordering::Relaxed);
            // Without a waker the future has not been polled, and will see the count.
            let waker = slot.lock().unwrap().clone();
            if let Some(waker) = waker {
                waker.wake();
            }
        };
        let other = thread::spawn(wake.clone());
        wake();
        assert!(handle.try_await_complete().is_ok());
        other.join().unwrap();
        drop(wake);
        pool.shutdown_join();
    });
}

/// Race 4: a foreign thread drops the last waker of a future. The future is cancelled, and the
/// worker that stayed for it retires.
#[test]
fn an_abandoned_future_releases_the_last_worker() {
    explore(3, || {
        let pool = pool(0, 1);
        let ready = Arc::new(AtomicBool::new(false));
        let waker = Arc::new(Mutex::new(None::<Waker>));
        let handle =
            pool.spawn_await(Flagged { ready: Arc::clone(&ready), waker: Arc::clone(&waker) });
        let taken = waker.lock().unwrap().take();
        let polled = taken.is_some();
        drop(taken);
        if !polled {
            // Not polled yet: cancel it.
            handle.cancel();
        }
        assert!(handle.try_await_complete().unwrap_err().is_cancelled());
        pool.join();
        while pool.current_worker_count() > 0 {
            pool.shared().idle.expire_all();
            thread::yield_now();
        }
        pool.shutdown_join();
    });
}

/// Race 23: a future is woken and cancelled during a shutdown. Its entry keeps the pool alive, so
/// no thread is started afterwards.
#[test]
fn wake_versus_cancel_versus_shutdown() {
    explore(3, || {
        let pool = pool(0, 1);
        let ready = Arc::new(AtomicBool::new(false));
        let slot = Arc::new(Mutex::new(None::<Waker>));
        let handle = pool.spawn_await(Flagged { ready, waker: Arc::clone(&slot) });
        while slot.lock().unwrap().is_none() {
            thread::yield_now();
        }
        let waker = slot.lock().unwrap().take().unwrap();
        let shared = Arc::clone(pool.shared());
        let other = thread::spawn(move || waker.wake());
        handle.cancel();
        pool.shutdown_join();
        let started = shared.stats().threads_started;
        other.join().unwrap();
        assert_eq!(shared.stats().threads_started, started);
        assert_eq!(shared.stats().queued, 0);
        assert!(handle.is_finished());
    });
}

/// Race 16: the thread that wakes a future is slower than the future and the shutdown, and starts
/// no thread in a pool that is over.
#[test]
fn a_slow_wake_versus_shutdown() {
    explore(2, || {
        let pool = pool(0, 1);
        let ready = Arc::new(AtomicBool::new(false));
        let slot = Arc::new(Mutex::new(None::<Waker>));
        pool.spawn(Flagged { ready: Arc::clone(&ready), waker: Arc::clone(&slot) });
        while slot.lock().unwrap().is_none() {
            thread::yield_now();
        }
        let waker = slot.lock().unwrap().take().unwrap();
        let shared = Arc::clone(pool.shared());
        ready.store(true, Ordering::Relaxed);
        let other = thread::spawn(move || waker.wake());
        pool.shutdown_join();
        other.join().unwrap();
        assert_eq!(shared.stats().threads_started, 1);
        assert_eq!(shared.counts.load().total(), 0);
    });
}

/// Race 13: the first start is refused while another submitter's succeeds. The tasks that relied on
/// the refused one get a worker each.
#[test]
fn a_refused_first_start_versus_submit() {
    explore(1, || {
        REFUSE_NEXT.set(true);
        let pool = pool(0, 2);
        let other = {
            let pool = pool.clone();
            thread::spawn(move || drop(pool.try_execute(|| ())))
        };
        let gate = Gate::new();
        let waiting = gate.clone();
        if pool.try_execute(move || waiting.pass()).is_ok() {
            let opening = gate.clone();
            if pool.try_execute(move || opening.open()).is_err() {
                gate.open();
            }
        }
        pool.join();
        other.join().unwrap();
        pool.shutdown_join();
        REFUSE_NEXT.set(false);
    });
}

/// A pending future is cancelled while a worker polls it.
#[test]
fn cancel_versus_poll() {
    explore(3, || {
        let pool = pool(1, 1);
        let handle = pool.spawn_await(pending::<()>());
        handle.cancel();
        assert!(handle.try_await_complete().unwrap_err().is_cancelled());
        pool.shutdown_join();
    });
}

/// A canceller waits until a future is gone, which a worker polls or drops meanwhile.
#[test]
fn cancel_and_wait_versus_poll() {
    explore(2, || {
        let pool = pool(1, 1);
        let (dropped, slot) = (Relaxed::new(), Arc::new(Mutex::new(None)));
        let (guard, address) = (OnDrop(Some(counting(&dropped))), Arc::clone(&slot));
        // Its waker keeps it: it is dropped only because it is cancelled.
        let handle = pool.spawn_await(poll_fn(move |context| {
            let _guard = &guard;
            *address.lock().unwrap() = Some(context.waker().clone());
            Poll::<()>::Pending
        }));
        // Settles the handle early, so that only the task itself tells when it is gone.
        handle.cancel();
        assert!(handle.cancel_and_wait().is_err());
        assert_eq!(dropped.get(), 1);
        drop(slot);
        pool.shutdown_join();
    });
}

/// A canceller waits until a closure is gone, which a worker runs or drops meanwhile.
#[test]
fn cancel_and_wait_versus_run() {
    explore(2, || {
        let pool = pool(1, 1);
        let dropped = Relaxed::new();
        let guard = OnDrop(Some(counting(&dropped)));
        let handle = pool.evaluate(move || drop(guard));
        handle.cancel();
        // The model does not track the channel that delivers a value.
        let is_cancelled = handle.cancel_and_wait().is_err();
        assert!(!is_cancelled || dropped.get() == 1);
        pool.shutdown_join();
    });
}

/// Calls a function when it is dropped.
struct OnDrop<F: FnOnce()>(Option<F>);

impl<F: FnOnce()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        self.0.take().expect("called once")();
    }
}

/// A future that was handed back is cancelled while its new owner runs it: it stops.
#[test]
fn cancel_versus_a_task_that_is_run() {
    explore(3, || {
        let pool = pool(0, 1);
        let (job, handle) = pool.with_handle(pending::<()>());
        let task = Task::new(job, Arc::clone(pool.shared()));
        let runner = thread::spawn(move || task.run());
        handle.cancel();
        assert!(handle.try_await_complete().unwrap_err().is_cancelled());
        runner.join().unwrap();
        pool.shutdown_join();
    });
}

/// The last handle is dropped while the worker rests, runs or retires: its thread exits.
#[test]
fn drop_versus_rest() {
    explore(3, || {
        let pool = pool(0, 1);
        let shared = Arc::clone(pool.shared());
        pool.execute(|| ());
        drop(pool);
        assert!(shared.registry.wait_gone(None, None));
        assert_eq!(shared.counts.load().total(), 0);
    });
}

/// Race 26: a worker enters a region while the task that it waits for is submitted.
#[test]
fn region_versus_submit() {
    explore(2, || {
        let pool = pool(1, 1);
        let gate = Gate::new();
        let waiting = gate.clone();
        pool.execute(move || blocking(|| waiting.pass()));
        pool.execute(move || gate.open());
        pool.shutdown_join();
    });
}

/// As above; then the worker returns, and its replacement stops running, busy or idle.
#[test]
fn regions_end_and_the_pool_goes_back_to_its_limit() {
    explore(1, || {
        let pool = pool(1, 1);
        let gate = Gate::new();
        let (waiting, shared) = (gate.clone(), Arc::clone(pool.shared()));
        pool.execute(move || {
            blocking(|| waiting.pass());
            while shared.counts.load().running() > 1 {
                thread::yield_now();
            }
        });
        pool.execute(move || gate.open());
        pool.join();
        pool.evaluate(|| ()).await_complete();
        pool.shutdown_join();
    });
}

/// Race 14: a worker returns while its replacement is started. Tasks outside of regions never
/// overlap.
#[test]
fn the_end_of_a_region_versus_a_start() {
    explore(2, || {
        let pool = pool(1, 1);
        let running = Arc::new(AtomicUsize::new(0));
        let gate = Gate::new();
        let waiting = gate.clone();
        pool.execute(move || blocking(|| waiting.pass()));
        while pool.shared().counts.load().blocked() == 0 {
            thread::yield_now();
        }
        gate.open();
        for _ in 0..2 {
            let running = Arc::clone(&running);
            pool.execute(move || {
                assert_eq!(running.fetch_add(1, Ordering::Relaxed), 0);
                thread::yield_now();
                running.fetch_sub(1, Ordering::Relaxed);
            });
        }
        pool.shutdown_join();
    });
}

/// A task waits for another one in a pool of one.
#[test]
fn a_worker_waits_for_a_handle() {
    explore(1, || {
        let pool = pool(1, 1);
        let inner = pool.clone();
        // With a time limit, so that the worker does not run the task itself.
        let wait = move || inner.evaluate(|| 7).await_complete_timeout(HOUR).unwrap().unwrap();
        assert_eq!(pool.evaluate(wait).await_complete(), 7);
        pool.shutdown_join();
    });
}

/// As above, but the thread is refused at first: the waiting worker retries.
#[test]
fn a_worker_waits_for_a_handle_and_a_thread_is_refused() {
    explore(1, || {
        let pool = pool(1, 1);
        let inner = pool.clone();
        // A completion does not run the task itself.
        let handle = pool.complete(async move {
            REFUSE_NEXT.set(true);
            inner.evaluate(|| 7).await.unwrap()
        });
        while !handle.is_finished() {
            pool.shared().blocked.expire_all();
            thread::yield_now();
        }
        assert_eq!(handle.await_complete(), 7);
        pool.shutdown_join();
    });
}

/// Race 27: the thread is refused to another thread, while the worker that needs it waits already.
#[test]
fn a_refusal_versus_a_worker_that_waits() {
    explore(1, || {
        let pool = pool(1, 1);
        let ready = Arc::new(AtomicBool::new(false));
        let slot = Arc::new(Mutex::new(None::<Waker>));
        let future = pool.spawn_await(Flagged { ready: Arc::clone(&ready), waker: slot.clone() });
        let waiting = pool.evaluate(move || future.try_await_complete().is_ok());
        while slot.lock().unwrap().is_none() {
            thread::yield_now();
        }
        ready.store(true, Ordering::Relaxed);
        let waker = slot.lock().unwrap().take().unwrap();
        REFUSE_NEXT.set(true);
        waker.wake();
        while !waiting.is_finished() {
            pool.shared().blocked.expire_all();
            thread::yield_now();
        }
        REFUSE_NEXT.set(false);
        assert!(waiting.await_complete());
        pool.shutdown_join();
    });
}

/// Submitters wait for a permit, with a capacity of one and of zero.
#[test]
fn submit_versus_a_full_queue() {
    for capacity in [0, 1] {
        explore(2, move || {
            let pool = builder(1, 1).queue_capacity(capacity).build();
            let ran = Relaxed::new();
            for _ in 0..3 {
                pool.execute(counting(&ran));
            }
            pool.join();
            assert_eq!(ran.get(), 3);
            pool.shutdown_join();
        });
    }
}

/// Two threads wait for a permit at once.
#[test]
fn two_submitters_versus_a_full_queue() {
    explore(1, || {
        let pool = builder(1, 1).queue_capacity(0).build();
        let ran = Relaxed::new();
        let other = {
            let (pool, task) = (pool.clone(), counting(&ran));
            thread::spawn(move || pool.execute(task))
        };
        pool.execute(counting(&ran));
        pool.execute(counting(&ran));
        other.join().unwrap();
        pool.shutdown_join();
        assert_eq!(ran.get(), 3);
    });
}

/// A task submits to the full queue of its own pool of one.
#[test]
fn a_worker_waits_for_room() {
    explore(2, || {
        let pool = builder(1, 1).queue_capacity(0).build();
        let (ran, inner) = (Relaxed::new(), pool.clone());
        let tasks = [counting(&ran), counting(&ran)];
        pool.execute(move || tasks.into_iter().for_each(|task| inner.execute(task)));
        pool.join();
        assert_eq!(ran.get(), 2);
        pool.shutdown_join();
    });
}

/// The pool is closed while a submitter waits for a permit.
#[test]
fn close_versus_a_full_queue() {
    explore(2, || {
        let pool = builder(1, 1).queue_capacity(0).build();
        let gate = Gate::new();
        let waiting = gate.clone();
        pool.execute(move || waiting.pass());
        let other = {
            let pool = pool.clone();
            thread::spawn(move || pool.evaluate(|| ()).try_await_complete().is_ok())
        };
        pool.close();
        gate.open();
        let accepted = other.join().unwrap();
        pool.join();
        assert_eq!(pool.stats().completed, 1 + usize::from(accepted));
        pool.shutdown_join();
    });
}

/// Race 15: the limit is raised while a task waits behind a busy worker.
#[test]
fn a_higher_limit_versus_submit() {
    explore(1, || {
        let pool = pool(1, 1);
        let gate = Gate::new();
        let waiting = gate.clone();
        pool.execute(move || waiting.pass());
        let other = {
            let pool = pool.clone();
            thread::spawn(move || pool.set_max_size(2).unwrap())
        };
        pool.execute(move || gate.open());
        other.join().unwrap();
        pool.shutdown_join();
    });
}

/// Race 15: the limit is lowered while two workers rest.
#[test]
fn a_lower_limit_versus_rest() {
    explore(0, || {
        let pool = pool(1, 2);
        let gate = Gate::new();
        let waiting = gate.clone();
        pool.execute(move || waiting.pass());
        pool.execute(move || gate.open());
        while pool.idle_worker_count() < 2 {
            thread::yield_now();
        }
        pool.set_max_size(1).unwrap();
        while pool.current_worker_count() > 1 {
            thread::yield_now();
        }
        pool.shutdown_join();
    });
}

/// Race 15: a worker's keep-alive ends while the core grows, or shrinks and the worker has no
/// deadline.
#[test]
fn another_core_size_versus_retire() {
    for (before, after) in [(0, 1), (1, 0)] {
        explore(2, move || {
            let pool = pool(before, 1);
            let ran = Relaxed::new();
            pool.execute(counting(&ran));
            pool.join();
            let time = {
                let shared = Arc::clone(pool.shared());
                thread::spawn(move || shared.idle.expire_all())
            };
            pool.set_core_size(after).unwrap();
            time.join().unwrap();
            if after == 0 {
                while pool.current_worker_count() > 0 {
                    pool.shared().idle.expire_all();
                    thread::yield_now();
                }
            }
            pool.execute(counting(&ran));
            pool.join();
            assert_eq!(ran.get(), 2);
            pool.shutdown_join();
        });
    }
}

/// Each task uses up its worker's quota while another is submitted.
#[test]
fn recycle_versus_submit() {
    explore(2, || {
        let pool = builder(0, 1).max_tasks_per_worker(1).build();
        let ran = Relaxed::new();
        pool.execute(counting(&ran));
        pool.execute(counting(&ran));
        pool.join();
        assert_eq!(ran.get(), 2);
        pool.shutdown_join();
    });
}

/// Race 31: the successor is refused, so the old worker continues.
#[test]
fn recycle_versus_a_refused_thread() {
    explore(2, || {
        let pool = builder(1, 1).max_tasks_per_worker(1).build();
        let ran = Relaxed::new();
        pool.execute(counting(&ran));
        let task = counting(&ran);
        pool.execute(move || {
            REFUSE_NEXT.set(true);
            task();
        });
        pool.join();
        assert_eq!(ran.get(), 2);
        for _ in 0..2 {
            thread::yield_now();
            assert_eq!(pool.current_worker_count(), 1);
        }
        REFUSE_NEXT.set(false);
        pool.shutdown_join();
    });
}

/// An immediate shutdown versus a submission and a start: each task runs or is handed back.
#[test]
fn shutdown_now_versus_submit() {
    explore(2, || {
        let pool = pool(0, 1);
        let ran = Relaxed::new();
        pool.execute(counting(&ran));
        let other = {
            let (pool, task) = (pool.clone(), counting(&ran));
            thread::spawn(move || pool.try_execute(task).is_ok())
        };
        let given_back = pool.shutdown_now().len();
        let accepted = 1 + usize::from(other.join().unwrap());
        pool.shutdown_join();
        assert_eq!(ran.get() + given_back, accepted);
    });
}

/// Race 24: an immediate shutdown versus the first poll of a future that never ends by itself.
#[test]
fn shutdown_now_versus_poll() {
    explore(2, || {
        let pool = pool(0, 1);
        let handle = pool.spawn_await(pending::<()>());
        drop(pool.shutdown_now());
        assert!(handle.try_await_complete().unwrap_err().is_cancelled());
        pool.shutdown_join();
    });
}

/// An immediate shutdown versus a wake.
#[test]
fn shutdown_now_versus_wake() {
    explore(2, || {
        let pool = pool(0, 1);
        let ready = Arc::new(AtomicBool::new(false));
        let slot = Arc::new(Mutex::new(None::<Waker>));
        let handle = pool.spawn_await(Flagged { ready: Arc::clone(&ready), waker: slot.clone() });
        while slot.lock().unwrap().is_none() {
            thread::yield_now();
        }
        let waker = slot.lock().unwrap().take().unwrap();
        ready.store(true, Ordering::Relaxed);
        let other = thread::spawn(move || waker.wake());
        assert!(pool.shutdown_now().is_empty());
        other.join().unwrap();
        let _ = handle.try_await_complete();
        pool.shutdown_join();
    });
}

/// Tasks are queued and the stall monitor's delay may pass: all of them run.
#[test]
fn stall_monitor_without_progress() {
    explore(1, || {
        let pool = builder(0, 3).growth(Growth::Stalled(HOUR)).build();
        let ran = Relaxed::new();
        pool.execute(counting(&ran));
        pool.execute(counting(&ran));
        pool.shared().stall_monitor.expire_all();
        pool.shutdown_join();
        assert_eq!(ran.get(), 2);
    });
}

/// Race 30: monitoring ends with the queue, before the delay has passed.
#[test]
fn stall_monitor_versus_an_empty_queue() {
    explore(1, || {
        let pool = builder(0, 3).growth(Growth::Stalled(HOUR)).build();
        for _ in 0..2 {
            pool.execute(|| ());
        }
        pool.join();
        while pool.idle_worker_count() < pool.current_worker_count() {
            thread::yield_now();
        }
        pool.evaluate(|| ()).await_complete();
        pool.shutdown_join();
    });
}
