//! What the tests share: ways to wait that end in a panic instead of hanging, tasks that keep
//! workers busy, looks at how a task ended, and futures and values that report on themselves.
//!
//! The tests of `demos` share it too, so it needs no crate that only this package depends on.

#![allow(dead_code, reason = "each test crate uses a part of it")]

pub(crate) mod child;
pub(crate) mod example;
#[cfg(target_os = "linux")]
pub(crate) mod refusal;
pub(crate) mod waits;

#[cfg(target_os = "linux")]
use std::collections::BTreeMap;
#[cfg(target_os = "linux")]
use std::ffi::OsString;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use elastipool::{
    Builder, GroupError, JoinError, JoinHandle, RejectReason, Rejected, TaskGroup, ThreadPool,
    blocking,
};

/// How long a test waits for what must happen: so long that only a defect exceeds it.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

/// A time that does not pass during a test.
pub(crate) const HOUR: Duration = Duration::from_secs(3600);

pub(crate) const fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Where time or the machine is the subject: the tests that call this run one after another.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether this is compiled for `law_tests_through_a_view`, which runs the tests of some laws once
/// more.
pub(crate) fn is_through_a_view() -> bool {
    module_path!().starts_with("law_tests_through_a_view")
}

/// Returns the pool, or a handle of a view of it that keeps the promises of a whole pool.
pub(crate) fn or_view(pool: ThreadPool) -> ThreadPool {
    if is_through_a_view() { (*pool.view().weight(2).limit(1 << 10).build()).clone() } else { pool }
}

/// How the text of a rejection calls what was closed.
pub(crate) fn closed() -> &'static str {
    if is_through_a_view() { "the view is closed" } else { "the pool is closed" }
}

/// Makes a pool, or a view of one.
pub(crate) fn new_pool(core_size: usize, max_size: usize, keep_alive: Duration) -> ThreadPool {
    or_view(ThreadPool::new(core_size, max_size, keep_alive))
}

/// Builds a pool, or a view of one.
pub(crate) trait BuildPool {
    fn build_pool(self) -> ThreadPool;
}

impl BuildPool for Builder {
    fn build_pool(self) -> ThreadPool {
        or_view(self.build())
    }
}

/// Blocks until `condition` holds. Panics, naming `what`, if that takes longer than [`LIMIT`].
#[track_caller]
pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    let mut looks = 0;
    while !condition() {
        assert!(Instant::now() < deadline, "not within {LIMIT:?}: {what}");
        looks += 1;
        if looks < 50 {
            thread::yield_now();
        } else {
            thread::sleep(Duration::from_micros(100));
        }
    }
}

/// Does nothing for a random number of turns below `turns`: microseconds, to meet all moments.
pub(crate) fn dawdle(turns: u32) {
    for _ in 0..fastrand::u32(0..turns.max(1)) {
        std::hint::spin_loop();
    }
}

/// Holds threads back until it is opened, and knows how many came.
pub(crate) struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

struct GateState {
    is_open: bool,
    arrived: usize,
}

impl Gate {
    pub(crate) fn new() -> Arc<Self> {
        let state = Mutex::new(GateState { is_open: false, arrived: 0 });
        Arc::new(Gate { state, changed: Condvar::new() })
    }

    pub(crate) fn open(&self) {
        self.state.lock().unwrap().is_open = true;
        self.changed.notify_all();
    }

    /// Arrives and waits until the gate is open. Patient: others may wait for [`LIMIT`] meanwhile.
    #[track_caller]
    pub(crate) fn pass(&self) {
        self.arrive(usize::MAX);
        self.wait("the gate was opened", LIMIT * 3, |state| state.is_open);
    }

    /// Arrives and waits until `party` threads have: a barrier that panics if they do not come.
    #[track_caller]
    pub(crate) fn meet(&self, party: usize) {
        self.arrive(party);
        self.wait("everybody came", LIMIT, |state| state.is_open);
    }

    /// Waits, without arriving, until `count` threads have arrived.
    #[track_caller]
    pub(crate) fn wait_for(&self, count: usize) {
        self.wait("as many came as expected", LIMIT, |state| state.arrived >= count);
    }

    pub(crate) fn is_open(&self) -> bool {
        self.state.lock().unwrap().is_open
    }

    pub(crate) fn arrived(&self) -> usize {
        self.state.lock().unwrap().arrived
    }

    fn arrive(&self, party: usize) {
        let mut state = self.state.lock().unwrap();
        state.arrived += 1;
        state.is_open |= state.arrived >= party;
        drop(state);
        self.changed.notify_all();
    }

    #[track_caller]
    fn wait(&self, what: &str, limit: Duration, condition: impl Fn(&GateState) -> bool) {
        let state = self.state.lock().unwrap();
        let (state, _) =
            self.changed.wait_timeout_while(state, limit, |state| !condition(state)).unwrap();
        let (holds, arrived) = (condition(&state), state.arrived);
        drop(state);
        assert!(holds, "not within {limit:?}: {what}; {arrived} arrived");
    }
}

/// Something that waits for a pool, and returns whether it was in time, if it has a limit.
pub(crate) type Way = fn(ThreadPool) -> Option<bool>;

/// All of them, by name. The limits do not pass during a test.
pub(crate) const WAYS: [(&str, Way); 4] = [
    ("join", |pool| {
        pool.join();
        None
    }),
    ("join_timeout", |pool| Some(pool.join_timeout(HOUR))),
    ("shutdown_join", |pool| {
        pool.shutdown_join();
        None
    }),
    ("shutdown_join_timeout", |pool| Some(pool.shutdown_join_timeout(HOUR))),
];

/// Keeps one worker of `pool` busy until the gate opens. It is busy when this returns.
#[track_caller]
pub(crate) fn block(pool: &ThreadPool) -> Arc<Gate> {
    let gate = Gate::new();
    let passes = Arc::clone(&gate);
    pool.execute(move || passes.pass());
    gate.wait_for(1);
    gate
}

/// Submits `count` tasks each of which needs all the others to run at the same time, and calls
/// `seated` when they do.
pub(crate) fn submit_interdependent<T: Send + 'static>(
    pool: &ThreadPool,
    count: usize,
    seated: impl Fn() -> T + Copy + Send + 'static,
) -> Vec<JoinHandle<T>> {
    let table = Gate::new();
    let seat = |_| {
        let table = Arc::clone(&table);
        pool.evaluate(move || {
            table.meet(count);
            seated()
        })
    };
    (0..count).map(seat).collect()
}

/// What the handle resolves to, which must not take for ever.
#[track_caller]
pub(crate) fn settled<T>(handle: JoinHandle<T>) -> Result<T, JoinError> {
    handle.await_complete_timeout(LIMIT).expect("the handle does not resolve")
}

/// As [`settled`], but a worker does not run the task on its own stack, as inside another crate's
/// executor: it waits in a blocking region for another worker.
#[track_caller]
pub(crate) fn settled_by_others<T>(handle: JoinHandle<T>) -> Result<T, JoinError> {
    let _inside = futures::executor::enter().expect("the thread is in no executor");
    settled(handle)
}

/// As [`settled_by_others`], for a task that has a value.
#[track_caller]
pub(crate) fn value_of_others<T>(handle: JoinHandle<T>) -> T {
    settled_by_others(handle).expect("the task has a value")
}

/// The value that the handle resolves to, which must not take for ever.
#[track_caller]
pub(crate) fn value<T>(handle: JoinHandle<T>) -> T {
    settled(handle).expect("the task has a value")
}

/// What a pool returns that must refuse the task, for `reason`. The task can be taken out of it.
#[track_caller]
pub(crate) fn refused<F, H>(result: Result<H, Rejected<F>>, reason: RejectReason) -> Rejected<F> {
    let Err(rejected) = result else { panic!("accepted, in spite of {reason:?}") };
    assert_eq!(rejected.reason(), reason);
    rejected
}

/// What `f` panics with, a text that was made at run time. Anything else is leaked: its drop may
/// panic, too.
#[track_caller]
pub(crate) fn panic_text<R>(f: impl FnOnce() -> R) -> String {
    let payload = catch_unwind(AssertUnwindSafe(|| drop(f()))).expect_err("does not panic");
    *payload.downcast().unwrap_or_else(|payload| {
        std::mem::forget(payload);
        panic!("panics with something else than a text")
    })
}

/// How many threads of this process have a name that starts with `prefix`, of at most 15 bytes. One
/// that has been joined may be among them for a moment longer.
#[cfg(target_os = "linux")]
pub(crate) fn threads_named(prefix: &str) -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    // One that exits meanwhile has no name any more.
    let name = |task: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_to_string(task.ok()?.path().join("comm")).ok()
    };
    tasks.filter_map(name).filter(|name| name.starts_with(prefix)).count()
}

/// What the system says of the threads of this process whose names `is_wanted` accepts, by id:
/// whether each sleeps, its CPU time in ns, and how often it was switched to. `None` where the
/// system does not say.
#[cfg(target_os = "linux")]
fn activity(is_wanted: &impl Fn(&str) -> bool) -> Option<BTreeMap<OsString, (bool, u64, u64)>> {
    let mut threads = BTreeMap::new();
    for task in std::fs::read_dir("/proc/self/task").ok()? {
        let task = task.ok()?;
        let read = |file| std::fs::read_to_string(task.path().join(file));
        // A thread that ends meanwhile is not counted.
        let (Ok(name), Ok(stat)) = (read("comm"), read("stat")) else { continue };
        if is_wanted(name.trim_end()) {
            let sleeps = stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('S'));
            let text = read("schedstat").ok()?;
            let mut numbers = text.split_whitespace().map(|number| number.parse().ok());
            threads.insert(task.file_name(), (sleeps, numbers.next()??, numbers.nth(1)??));
        }
    }
    Some(threads)
}

/// Blocks until the `count` threads whose names `is_wanted` accepts have slept for `time` without
/// being switched to. Panics if they wake up again and again for longer than [`LIMIT`]. A busy
/// machine only delays it.
#[track_caller]
pub(crate) fn wait_until_asleep(count: usize, time: Duration, is_wanted: impl Fn(&str) -> bool) {
    #[cfg(target_os = "linux")]
    wait_until(&format!("{count} threads sleep for {time:?}"), || {
        let Some(before) = activity(&is_wanted) else { return true };
        if before.len() != count || before.values().any(|(sleeps, ..)| !sleeps) {
            return false;
        }
        thread::sleep(time);
        activity(&is_wanted).is_none_or(|after| after == before)
    });
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (count, is_wanted);
        thread::sleep(time.max(Duration::from_millis(50)));
    }
}

/// Counts the drops of the values that it issues.
#[derive(Clone, Default)]
pub(crate) struct Drops(Arc<AtomicUsize>);

/// A value whose drop is counted.
pub(crate) struct Dropped(Arc<AtomicUsize>);

impl Drops {
    pub(crate) fn issue(&self) -> Dropped {
        Dropped(Arc::clone(&self.0))
    }

    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A waker that counts.
#[derive(Default)]
pub(crate) struct CountingWaker(AtomicUsize);

impl CountingWaker {
    pub(crate) fn new() -> (Arc<Self>, Waker) {
        let counting = Arc::new(CountingWaker::default());
        (Arc::clone(&counting), Waker::from(counting))
    }

    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for CountingWaker {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A future that is ready once its [`Trigger`] has fired. It does not keep its own waker alive: if
/// the trigger is dropped, it can never be woken.
pub(crate) struct Triggered(Weak<Mutex<TriggerState>>);

/// See [`Triggered`].
pub(crate) struct Trigger(Arc<Mutex<TriggerState>>);

#[derive(Default)]
struct TriggerState {
    has_fired: bool,
    polls: usize,
    waker: Option<Waker>,
}

pub(crate) fn triggered() -> (Trigger, Triggered) {
    let state = Arc::new(Mutex::new(TriggerState::default()));
    let triggered = Triggered(Arc::downgrade(&state));
    (Trigger(state), triggered)
}

impl Trigger {
    /// Makes the future ready and wakes it.
    pub(crate) fn fire(&self) {
        let mut state = self.0.lock().unwrap();
        state.has_fired = true;
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The waker of the newest poll that was not ready.
    pub(crate) fn waker(&self) -> Option<Waker> {
        self.0.lock().unwrap().waker.clone()
    }

    pub(crate) fn polls(&self) -> usize {
        self.0.lock().unwrap().polls
    }
}

impl Future for Triggered {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Some(state) = self.0.upgrade() else { return Poll::Pending };
        let mut state = state.lock().unwrap();
        state.polls += 1;
        if state.has_fired {
            return Poll::Ready(());
        }
        let before = state.waker.replace(context.waker().clone());
        drop(state);
        drop(before);
        Poll::Pending
    }
}

/// What a wait for the group returns, which must not take for ever.
#[track_caller]
pub(crate) fn waited<E: Send + 'static>(group: &TaskGroup<E>) -> Result<(), GroupError<E>> {
    group.wait_timeout(LIMIT).expect("the group does not end")
}

/// The same, for a group that must not have succeeded.
#[track_caller]
pub(crate) fn failure<E: Send + 'static>(group: &TaskGroup<E>) -> GroupError<E> {
    waited(group).expect_err("the group has not succeeded")
}

/// How many tasks the group has admitted and not ended.
pub(crate) fn under_way<E>(group: &TaskGroup<E>) -> usize {
    debug_field(group, "under_way")
}

/// How many submitters and tasks wait until the group admits them.
pub(crate) fn in_line<E>(group: &TaskGroup<E>) -> usize {
    debug_field(group, "in_line")
}

fn debug_field(value: impl std::fmt::Debug, field: &str) -> usize {
    let text = format!("{value:?}");
    let (_, rest) = text.split_once(&format!("{field}: ")).expect("the field is shown");
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next();
    digits.and_then(|digits| digits.parse().ok()).expect("the field is a number")
}

/// Submits a task to the group that keeps a worker busy until the gate opens. The task runs when
/// this returns.
#[track_caller]
pub(crate) fn hold<E: Send + 'static>(group: &TaskGroup<E>) -> Arc<Gate> {
    hold_then(group, || Ok(()))
}

/// The same, and the task fails with `error` when the gate opens.
#[track_caller]
pub(crate) fn hold_then_fail<E: Send + 'static>(group: &TaskGroup<E>, error: E) -> Arc<Gate> {
    hold_then(group, || Err(error))
}

/// The same, and the task ends with what `end` returns.
#[track_caller]
pub(crate) fn hold_then<E: Send + 'static>(
    group: &TaskGroup<E>,
    end: impl FnOnce() -> Result<(), E> + Send + 'static,
) -> Arc<Gate> {
    let gate = Gate::new();
    let passes = Arc::clone(&gate);
    let held = group.try_execute(move || {
        passes.pass();
        end()
    });
    assert!(held.is_ok(), "the group admits it");
    gate.wait_for(1);
    gate
}

/// What the thread returns, which must not take for ever.
#[track_caller]
pub(crate) fn joined<T>(thread: thread::JoinHandle<T>) -> T {
    wait_until("the thread ends", || thread.is_finished());
    thread.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload))
}

/// A task in a blocking region, until the gate opens. It is there when this returns.
#[track_caller]
pub(crate) fn submit_region(pool: &ThreadPool) -> (JoinHandle<()>, Arc<Gate>) {
    let gate = Gate::new();
    let passes = Arc::clone(&gate);
    let task = pool.evaluate(move || blocking(|| passes.pass()));
    gate.wait_for(1);
    (task, gate)
}

/// A stack on which [`use_much_stack`] fits, as it does not on one of the default size.
pub(crate) const LARGE_STACK: usize = 64 << 20;

/// Takes more than 4 MiB of the stack.
pub(crate) fn use_much_stack() {
    #[inline(never)]
    fn use_kilobytes(count: usize) -> u8 {
        let kilobyte = std::hint::black_box([1_u8; 1024]);
        let below = if count > 0 { use_kilobytes(count - 1) } else { 0 };
        std::hint::black_box(kilobyte)[count % 1024].wrapping_add(below)
    }
    std::hint::black_box(use_kilobytes(4 << 10));
}
