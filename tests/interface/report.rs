//! `ThreadPool::report` and `Builder::stall_report`: what each task does, since when, and which
//! line submitted it.

use crate::common;

#[cfg(any(target_os = "linux", target_vendor = "apple"))]
use std::sync::Arc;
#[cfg(any(target_os = "linux", target_vendor = "apple"))]
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc;
use std::time::{Duration, Instant};

#[cfg(target_os = "linux")]
use common::threads_named;
use common::{Gate, HOUR, LIMIT, block, settled, wait_until};
use elastipool::{Builder, Growth, Report, TaskInfo, TaskState, ThreadPool, blocking};

fn pool() -> ThreadPool {
    Builder::new().name("tracked").core_size(1).max_size(1).track_tasks(true).build()
}

#[track_caller]
fn report(pool: &ThreadPool) -> Report {
    pool.report().expect("the pool tracks its tasks")
}

/// Line and state of a task of this file.
#[track_caller]
fn line_and_state(task: &TaskInfo) -> (u32, TaskState) {
    assert_eq!(task.location.file(), file!());
    (task.location.line(), task.state)
}

/// Lines and states of all running tasks.
fn running(report: &Report) -> Vec<(u32, TaskState)> {
    report.running.iter().flat_map(|thread| &thread.tasks).map(line_and_state).collect()
}

/// Submits a task by each call, on the lines after that of the macro, to a pool whose worker is
/// busy, and checks that the report names the line.
macro_rules! assert_names_line {
    ($pool:ident, $($call:expr;)*) => {{
        let mut line = line!();
        $(
            line += 1;
            let gate = block(&$pool);
            let _submitted = $call;
            let oldest = report(&$pool).oldest_queued.expect("it is queued");
            let call = stringify!($call);
            assert_eq!(line_and_state(&oldest), (line, TaskState::Queued), "{call}");
            gate.open();
            $pool.join();
        )*
        assert_ne!(line, line!());
    }};
}

// The macro expects each call on a line of its own.
#[rustfmt::skip]
#[test]
fn every_call_that_submits_is_named_by_its_line() {
    let pool = pool();
    let (handler, group, view) = (pool.handler(|()| ()), pool.group::<()>(), pool.view().build());
    assert_names_line! { pool,
        pool.execute(|| ());
        pool.try_execute(|| ()).unwrap();
        pool.try_execute_for(|| (), HOUR).unwrap();
        pool.evaluate(|| ());
        pool.try_evaluate(|| ()).unwrap();
        pool.try_evaluate_for(|| (), HOUR).unwrap();
        pool.complete(async {});
        pool.try_complete(async {}).unwrap();
        handler.invoke(());
        handler.try_invoke(()).unwrap();
        group.execute(|| Ok(())).unwrap();
        group.try_execute(|| Ok(())).unwrap();
        group.evaluate(|| ());
        group.try_evaluate(|| ()).unwrap();
        view.execute(|| ());
        view.evaluate(|| ());
    }
    #[cfg(feature = "async")]
    assert_names_line! { pool,
        pool.spawn(async {});
        pool.try_spawn(async {}).unwrap();
        pool.spawn_await(async {});
        pool.try_spawn_await(async {}).unwrap();
        group.spawn(async { Ok(()) }).unwrap();
        group.try_spawn(async { Ok(()) }).unwrap();
        group.spawn_await(async {});
        group.try_spawn_await(async {}).unwrap();
        view.spawn(async {});
    }
    let gate = block(&pool);
    pool.scope(|scope| {
        let line = line!() + 1;
        scope.execute(|| ());
        assert_eq!(line_and_state(&report(&pool).oldest_queued.unwrap()).0, line);
        gate.open();
        pool.join();
        let gate = block(&pool);
        let line = line!() + 1;
        let handle = scope.evaluate(|| ());
        assert_eq!(line_and_state(&report(&pool).oldest_queued.unwrap()).0, line);
        gate.open();
        handle.await_complete();
    });
}

#[test]
fn a_pool_that_does_not_track_has_no_report() {
    assert!(ThreadPool::default().report().is_none());
    let untracked = Builder::new().track_tasks(true).track_tasks(false).build();
    assert!(untracked.report().is_none());
    assert!(report(&pool()).running.is_empty());
}

#[test]
fn a_report_says_what_runs_and_where_and_what_waits() {
    let pool = pool();
    let (busy, passes) = (Gate::new(), Gate::new());
    let (closure, inner) = ((busy.clone(), passes.clone()), pool.clone());
    let outer_line = line!() + 1;
    pool.execute(move || {
        let inner_line = line!() + 1;
        let awaited = inner.evaluate(move || {
            closure.0.pass();
            blocking(|| closure.1.pass());
        });
        assert_eq!(inner_line, outer_line + 2);
        awaited.await_complete();
    });
    busy.wait_for(1);
    let queued_line = line!() + 1;
    pool.execute(|| ());
    let now = report(&pool);
    assert_eq!(now.pool, "tracked");
    assert_eq!(now.running.len(), 1);
    assert_eq!(now.running[0].worker, Some(0));
    assert_eq!(now.running[0].name.as_deref(), Some("tracked-0"));
    // The outer task waits for the inner one, which its worker runs itself: it is in no blocking
    // region.
    let states = [(outer_line, TaskState::Running), (outer_line + 2, TaskState::Running)];
    assert_eq!(running(&now), states);
    assert_eq!(
        line_and_state(now.oldest_queued.as_ref().unwrap()),
        (queued_line, TaskState::Queued)
    );
    let text = now.to_string();
    let first = "pool `tracked`: 1 worker, 0 idle, 0 blocked, 1 task queued, 0 pending";
    assert_eq!(text.lines().next(), Some(first));
    assert!(text.contains("\nworker 0, thread `tracked-0`:\n    closure submitted at "), "{text}");
    assert!(text.contains(&format!("{}:{queued_line}:", file!())), "{text}");

    busy.open();
    passes.wait_for(1);
    let states = [(outer_line, TaskState::Running), (outer_line + 2, TaskState::Blocked)];
    wait_until("the inner task is blocked", || running(&report(&pool)) == states);
    assert!(report(&pool).to_string().contains("ms, blocked"));
    passes.open();
    pool.join();
    let now = report(&pool);
    assert!(now.running.is_empty() && now.oldest_queued.is_none() && now.oldest_pending.is_none());
}

/// A waiter whose task runs on another worker is in a blocking region.
#[test]
fn a_task_that_waits_for_another_is_blocked() {
    let pool = Builder::new().core_size(2).max_size(2).track_tasks(true).build();
    let gate = Gate::new();
    let passes = gate.clone();
    let awaited = pool.evaluate(move || passes.pass());
    gate.wait_for(1);
    let line = line!() + 1;
    pool.execute(move || awaited.await_complete());
    wait_until("it waits", || running(&report(&pool)).contains(&(line, TaskState::Blocked)));
    gate.open();
    pool.join();
}

#[test]
#[cfg(any(target_os = "linux", target_vendor = "apple"))]
fn a_report_says_which_threads_sleep_and_how_long_they_have_computed() {
    let pool = Builder::new().core_size(2).max_size(2).track_tasks(true).build();
    let (gate, stop) = (block(&pool), Arc::new(AtomicBool::new(false)));
    let stopped = Arc::clone(&stop);
    pool.execute(move || while !stopped.load(Relaxed) {});
    let milli = Duration::from_millis(1);
    let sleeps = |now: &Report, asleep| {
        now.running.iter().filter(|thread| thread.is_asleep == Some(asleep)).count()
    };
    wait_until("one sleeps, the other computes", || {
        let now = report(&pool);
        let busy = now.running.iter().find(|thread| thread.is_asleep == Some(false));
        let has_computed = busy.is_some_and(|thread| thread.cpu_time > Some(20 * milli));
        has_computed && sleeps(&now, true) == 1 && sleeps(&now, false) == 1
    });
    let now = report(&pool);
    let sleeping = now.running.iter().find(|thread| thread.is_asleep == Some(true)).unwrap();
    assert!(sleeping.cpu_time < Some(20 * milli), "{sleeping:?}");
    assert!(now.to_string().contains(" ms\n    asleep, has used "), "{now}");
    stop.store(true, Relaxed);
    gate.open();
    pool.join();
}

/// However a task ends, its record goes.
#[test]
fn ended_tasks_leave_the_report() {
    let pool = pool();
    let gate = block(&pool);
    let cancelled = pool.evaluate(|| ());
    cancelled.cancel();
    pool.execute(|| panic!("a panic of the task"));
    let view = pool.view().queue_timeout(Duration::from_nanos(1)).build();
    view.execute(|| panic!("it expires"));
    let expired = view.evaluate(|| panic!("it expires"));
    let group = pool.group::<()>();
    group.execute(|| Ok(())).unwrap();
    group.cancel();
    gate.open();
    pool.join();
    drop((cancelled, expired));
    wait_until("all records are gone", || {
        let now = report(&pool);
        now.running.is_empty() && now.oldest_queued.is_none() && now.oldest_pending.is_none()
    });
    let gate = block(&pool);
    pool.execute(|| ());
    drop(pool.shutdown_now());
    assert!(report(&pool).oldest_queued.is_none());
    gate.open();
}

#[cfg(feature = "async")]
#[test]
fn a_pending_future_is_in_the_report_until_it_ends() {
    let pool = pool();
    let (sender, receiver) = futures::channel::oneshot::channel::<()>();
    let line = line!() + 1;
    let handle = pool.spawn_await(receiver);
    let pending = |pool: &ThreadPool| report(pool).oldest_pending.as_ref().map(line_and_state);
    wait_until("it is pending", || pending(&pool) == Some((line, TaskState::Pending)));
    sender.send(()).unwrap();
    settled(handle).unwrap().unwrap();
    wait_until("it has ended", || pending(&pool).is_none());
    // A cancelled future, whose waker stays.
    let (waker, wakers) = mpsc::channel();
    let cancelled = pool.spawn_await(std::future::poll_fn(move |context| {
        waker.send(context.waker().clone()).unwrap();
        std::task::Poll::<()>::Pending
    }));
    let _kept = wakers.recv_timeout(LIMIT).unwrap();
    wait_until("it is pending", || pending(&pool).is_some());
    cancelled.cancel();
    wait_until("it has been dropped", || pending(&pool).is_none());
}

const AFTER: Duration = Duration::from_millis(50);

fn watched(name: &str, after: Duration) -> (ThreadPool, mpsc::Receiver<Report>) {
    let (sender, reports) = mpsc::channel();
    let hook = move |report: &Report| {
        let _ = sender.send(report.clone());
    };
    (Builder::new().name(name).core_size(2).max_size(2).stall_report(after, hook).build(), reports)
}

/// Two tasks wait for each other. The report names both lines.
#[test]
fn a_deadlock_of_two_tasks_is_named_with_both_lines() {
    let (pool, reports) = watched("stalled", AFTER);
    let ((to_first, first), (to_second, second)) = (mpsc::channel(), mpsc::channel::<()>());
    let release = to_first.clone();
    let begin = Instant::now();
    let line = line!() + 1;
    pool.execute(move || {
        first.recv().unwrap();
        to_second.send(()).unwrap();
    });
    pool.execute(move || {
        blocking(|| second.recv().unwrap());
        let _ = to_first.send(());
    });
    // An earlier report comes if one of the tasks was late.
    let named = loop {
        let named = reports.recv_timeout(LIMIT).expect("a report comes");
        if running(&named).len() == 2 {
            break named;
        }
    };
    println!("reported after {:?}:\n{named}", begin.elapsed());
    let mut tasks = running(&named);
    tasks.sort_by_key(|(line, _)| *line);
    assert_eq!(tasks, [(line, TaskState::Running), (line + 4, TaskState::Blocked)]);
    let least = named.running[0].tasks[0].since;
    assert!(least >= AFTER, "not before the time is over: {least:?}");
    release.send(()).unwrap();
    pool.shutdown_join();
}

#[test]
fn queued_tasks_that_no_worker_starts_are_reported_once() {
    let (pool, reports) = watched("stalled", AFTER);
    let gate = Gate::new();
    for _ in 0..2 {
        let passes = gate.clone();
        pool.execute(move || passes.pass());
    }
    gate.wait_for(2);
    let queued_line = line!() + 1;
    pool.execute(|| ());
    let names_queued = |report: &Report| {
        report.oldest_queued.as_ref().is_some_and(|task| task.location.line() == queued_line)
    };
    let mut count = 0;
    wait_until("it is reported", || {
        count += reports.try_iter().filter(names_queued).count();
        count > 0
    });
    // Three more looks of the watcher, at least: what was reported is not reported again.
    std::thread::sleep(AFTER);
    count += reports.try_iter().filter(names_queued).count();
    assert!(count <= 3, "once for each running task, once for the queue: {count}");
    gate.open();
    pool.join();
    assert_eq!(reports.try_iter().count(), 0);
    pool.shutdown_join();
}

/// The watcher sleeps while the pool has no task, and wakes with the next one.
#[test]
fn a_stall_after_an_idle_time_is_reported() {
    let (pool, reports) = watched("rested", Duration::from_millis(4));
    for _ in 0..3 {
        pool.execute(|| ());
        pool.join();
        // Long enough for several looks, so that the watcher falls asleep.
        std::thread::sleep(Duration::from_millis(20));
        let gate = block(&pool);
        reports.recv_timeout(LIMIT).expect("a report comes");
        gate.open();
        pool.join();
    }
    pool.shutdown_join();
}

/// A future is woken while the watcher sleeps, and its poll does not return.
#[cfg(feature = "async")]
#[test]
fn a_stalled_poll_of_a_woken_future_is_reported() {
    let (pool, reports) = watched("woken", Duration::from_millis(4));
    let (sender, receiver) = futures::channel::oneshot::channel::<()>();
    let gate = Gate::new();
    let passes = gate.clone();
    let line = line!() + 1;
    pool.spawn(async move {
        receiver.await.unwrap();
        passes.pass();
    });
    wait_until("it is pending", || report(&pool).oldest_pending.is_some());
    // Long enough for several looks, so that the watcher falls asleep.
    std::thread::sleep(Duration::from_millis(20));
    sender.send(()).unwrap();
    // An earlier report comes if the thread of the first poll was late.
    while running(&reports.recv_timeout(LIMIT).expect("a report comes")).is_empty() {}
    assert_eq!(running(&report(&pool)), [(line, TaskState::Running)]);
    gate.open();
    pool.shutdown_join();
}

/// Polls are no progress for queued tasks that their view's limit holds back.
#[cfg(feature = "async")]
#[test]
fn polls_do_not_hide_tasks_that_are_not_started() {
    let (pool, reports) = watched("hidden", AFTER);
    let gate = Gate::new();
    let passes = gate.clone();
    let view = pool.view().limit(1).build();
    view.execute(move || passes.pass());
    gate.wait_for(1);
    // That of the task which runs. The next one is that of the queue.
    reports.recv_timeout(LIMIT).unwrap();
    let queued_line = line!() + 1;
    view.execute(|| ());
    let polled = pool.spawn_await(std::future::poll_fn(|context| {
        context.waker().wake_by_ref();
        // Leaves the CPU to the watcher.
        std::thread::sleep(Duration::from_micros(100));
        std::task::Poll::<()>::Pending
    }));
    let names_queue = |report: Report| {
        let oldest = report.oldest_queued.map(|task| (task.location.line(), task.since));
        oldest.is_some_and(|(line, since)| line == queued_line && since >= AFTER)
    };
    wait_until("the queue's stall is reported", || reports.try_iter().any(names_queue));
    polled.cancel();
    gate.open();
    pool.shutdown_join();
}

/// The hook is no task of the pool: a scope that it opens counts as from outside, and is waited for
/// by a join.
#[test]
fn a_hook_may_use_a_scope() {
    let (handles, handle) = mpsc::channel::<elastipool::WeakThreadPool>();
    let handle = std::sync::Mutex::new(handle);
    let (done, ended) = mpsc::channel();
    let pool = Builder::new()
        .max_size(1)
        .stall_report(Duration::from_millis(1), move |_| {
            let pool = handle.lock().unwrap().try_recv().ok().and_then(|weak| weak.upgrade());
            if let Some(pool) = pool {
                let mut ran = 0;
                pool.scope(|scope| scope.execute(|| ran += 1));
                done.send(ran).unwrap();
            }
        })
        .build();
    handles.send(pool.downgrade()).unwrap();
    let gate = block(&pool);
    assert_eq!(ended.recv_timeout(LIMIT), Ok(1));
    gate.open();
    pool.shutdown_join();
}

/// The pool ends while the watcher calls the hook, and so does not wait for a notification.
#[test]
fn a_pool_that_ends_during_the_hook_is_gone() {
    let (entered, gate) = (Gate::new(), Gate::new());
    let (enters, passes) = (entered.clone(), gate.clone());
    let pool = Builder::new()
        .stall_report(Duration::from_millis(1), move |_| {
            enters.open();
            passes.pass();
        })
        .build();
    let task = block(&pool);
    entered.pass();
    task.open();
    pool.close();
    pool.join();
    gate.open();
    assert!(pool.shutdown_join_timeout(LIMIT), "the watcher does not leave");
}

/// What an immediate shutdown has handed back is no longer queued.
#[test]
fn a_task_that_was_handed_back_is_not_in_the_report() {
    let pool = pool();
    let gate = block(&pool);
    pool.execute(|| ());
    let handle = pool.evaluate(|| 7);
    assert!(report(&pool).oldest_queued.is_some());
    let tasks = pool.shutdown_now();
    assert_eq!(tasks.len(), 2);
    assert!(report(&pool).oldest_queued.is_none());
    tasks.into_iter().for_each(elastipool::Task::run);
    assert_eq!(settled(handle).unwrap(), 7);
    gate.open();
}

/// A worker of another pool that runs a task of this one, in a scope that it waits for, is no
/// worker of this one.
#[test]
fn a_worker_of_another_pool_is_no_worker_of_this_one() {
    let (pool, other) = (pool(), ThreadPool::new(1, 1, HOUR));
    let own = block(&pool);
    let (gate, inner) = (Gate::new(), pool.clone());
    let passes = gate.clone();
    other.execute(move || inner.scope(|scope| scope.execute(|| blocking(|| passes.pass()))));
    gate.wait_for(1);
    let now = report(&pool);
    let foreign = now.running.iter().find(|thread| thread.worker.is_none()).expect("it runs");
    assert_eq!(foreign.tasks.len(), 1);
    assert!(now.to_string().contains("\nno worker, thread `"));
    gate.open();
    own.open();
    other.join();
    pool.join();
}

#[test]
fn an_idle_or_busy_pool_that_makes_progress_is_not_reported() {
    let (pool, reports) = watched("busy", HOUR);
    pool.join();
    for _ in 0..1000 {
        pool.execute(|| ());
    }
    pool.shutdown_join();
    assert_eq!(reports.iter().count(), 0, "and the hook was dropped, or this would not end");
}

/// Law 9 holds for the watcher: it is gone after `shutdown_join`, whether it was asleep or awake.
#[cfg(target_os = "linux")]
#[test]
fn the_watcher_is_gone_after_the_shutdown() {
    for round in 0..50 {
        let after = if round % 2 == 0 { HOUR } else { Duration::from_millis(1) };
        let (pool, _reports) = watched("leaving", after);
        assert_eq!(threads_named("leaving"), 0, "no thread before the first submission");
        pool.execute(|| ());
        if round % 3 == 0 {
            pool.join();
        }
        pool.shutdown_join();
        // The system lists a thread for a moment after it has been joined.
        wait_until("the watcher is gone", || threads_named("leaving") == 0);
    }
}

/// The keeper starts workers under this growth.
#[test]
fn a_hook_that_takes_long_delays_no_start() {
    let gate = Gate::new();
    let passes = std::sync::Arc::clone(&gate);
    let pool = Builder::new()
        .core_size(0)
        .max_size(2)
        .growth(Growth::Stalled(Duration::from_millis(1)))
        .stall_report(Duration::from_millis(1), move |_| passes.pass())
        .build();
    let task = block(&pool);
    gate.wait_for(1);
    assert!(settled(pool.evaluate(|| ())).is_ok());
    task.open();
    gate.open();
    pool.shutdown_join();
}

/// A hook that waits for its own pool, or panics, is contained.
#[test]
fn a_hook_that_joins_its_pool_panics_instead_of_hanging() {
    let (sender, panics) = mpsc::channel();
    let (handle, handles) = mpsc::channel::<ThreadPool>();
    let handles = std::sync::Mutex::new(handles);
    let pool = Builder::new()
        .panic_handler(move |payload| {
            let _ = sender.send(payload.downcast_ref::<String>().cloned().unwrap_or_default());
        })
        .stall_report(Duration::from_millis(1), move |_| {
            if let Ok(pool) = handles.lock().unwrap_or_else(|poison| poison.into_inner()).try_recv()
            {
                pool.join();
            }
        })
        .build();
    handle.send(pool.clone()).unwrap();
    let gate = block(&pool);
    let message = panics.recv_timeout(LIMIT).expect("the hook panics");
    assert!(message.contains("join"), "{message}");
    gate.open();
    pool.shutdown_join();
}

#[test]
fn a_report_after_no_time_is_refused() {
    let error = Builder::new().stall_report(Duration::ZERO, |_| ()).try_build().unwrap_err();
    assert!(error.to_string().starts_with("stall_report is after 0 seconds"), "{error}");
}
