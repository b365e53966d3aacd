//! A panic that is the caller's mistake points at the caller's line.

mod common;

use std::future::{Future, IntoFuture};
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Mutex;
use std::task::{Context, Waker};

use common::{HOUR, LIMIT, block, settled};
use elastipool::{Builder, JoinHandle, Scope, ThreadPool};

/// Where the last panic was, in any thread.
static LAST: Mutex<Option<(String, u32)>> = Mutex::new(None);

/// What panics, by name, on the line after that of the case before. The first one is on the line
/// after `line`.
struct Cases {
    line: u32,
    cases: &'static [(&'static str, fn())],
}

macro_rules! cases {
    ($($name:expr => $panics:expr;)*) => {
        Cases { line: line!(), cases: &[$(($name, || { let _ = $panics; })),*] }
    };
}

fn pool() -> ThreadPool {
    ThreadPool::new(1, 1, HOUR)
}

fn closed() -> ThreadPool {
    let pool = pool();
    pool.close();
    pool
}

/// A handle whose result a poll has returned.
fn polled() -> JoinHandle<()> {
    let mut handle = pool().evaluate(|| ());
    common::wait_until("it has ended", || handle.is_finished());
    assert!(pin!(&mut handle).poll(&mut Context::from_waker(Waker::noop())).is_ready());
    handle
}

/// Calls `f` with such a handle of a scope.
fn scoped<R>(f: impl FnOnce(elastipool::ScopedJoinHandle<'_, ()>) -> R) -> R {
    let pool = pool();
    pool.scope(|scope| {
        let mut handle = scope.evaluate(|| ());
        common::wait_until("it has ended", || handle.is_finished());
        assert!(pin!(&mut handle).poll(&mut Context::from_waker(Waker::noop())).is_ready());
        f(handle)
    })
}

/// Runs `task` as a task of a pool, and of a group that `task` gets.
fn inside(task: fn(&elastipool::TaskGroup<()>)) {
    let pool = pool();
    let group = pool.group();
    let own = group.clone();
    let run = move || {
        task(&own);
        Ok(())
    };
    group.execute(run).unwrap();
    assert!(common::failure(&group).is_panic());
}

/// Runs `task` as a task of the pool that it gets.
fn inside_pool(task: fn(ThreadPool)) {
    let pool = pool();
    let own = pool.clone();
    settled(pool.evaluate(move || task(own))).unwrap_err();
}

/// Calls `f` with a pool whose only worker is busy.
fn lost(f: fn(&ThreadPool)) {
    let pool = pool();
    let gate = block(&pool);
    let result = catch_unwind(AssertUnwindSafe(|| f(&pool)));
    gate.open();
    pool.shutdown_join();
    result.unwrap_or_else(|payload| panic::resume_unwind(payload));
}

/// Calls `f` with a scope of a closed pool.
fn in_closed<R>(f: impl for<'scope> FnOnce(&'scope Scope<'scope, '_>) -> R) -> R {
    closed().scope(f)
}

#[rustfmt::skip]
const CASES: Cases = cases! {
    "new" => ThreadPool::new(2, 1, HOUR);
    "new_named" => ThreadPool::new_named("name", 2, 1, HOUR);
    "build" => Builder::new().core_size(2).max_size(1).build();
    "ViewBuilder::build" => pool().view().limit(0).build();
    "execute" => closed().execute(|| ());
    "invoke" => closed().handler(|()| ()).invoke(());
    "Scope::execute" => in_closed(|scope| scope.execute(|| ()));
    "await_complete" => closed().evaluate(|| ()).await_complete();
    "await_complete, polled" => polled().await_complete();
    "try_await_complete, polled" => polled().try_await_complete();
    "await_complete_timeout, polled" => polled().await_complete_timeout(LIMIT);
    "poll, polled" => pin!(polled()).poll(&mut Context::from_waker(Waker::noop()));
    "cancel_and_wait, polled" => polled().cancel_and_wait();
    "scoped await_complete" => in_closed(|scope| scope.evaluate(|| ()).await_complete());
    "scoped await_complete, polled" => scoped(|handle| handle.await_complete());
    "scoped try_await_complete, polled" => scoped(|handle| handle.try_await_complete());
    "scoped await_complete_timeout, polled" => scoped(|handle| handle.await_complete_timeout(LIMIT).is_ok());
    "scoped poll, polled" => scoped(|handle| pin!(handle).poll(&mut Context::from_waker(Waker::noop())).is_ready());
    "into_panic" => closed().evaluate(|| ()).try_await_complete().unwrap_err().into_panic();
    "limit" => pool().group::<()>().limit(0);
    "in_flight" => pool().map([1], |n| n).in_flight(0);
    "map" => closed().map([1], |n| n).next();
    "set_limit" => pool().group::<()>().set_limit(0);
    "wait" => inside(|group| drop(group.wait()));
    "wait_all" => inside(|group| drop(group.wait_all()));
    "GroupWait" => inside(|group| drop(pin!(group.into_future()).poll(&mut Context::from_waker(Waker::noop()))));
    "join" => inside_pool(|pool| pool.join());
    "shutdown_join" => inside_pool(|pool| pool.shutdown_join());
    "scope, lost" => lost(|pool| pool.scope(|scope| { scope.execute(|| ()); drop(pool.shutdown_now()); }));
};

#[cfg(feature = "async")]
#[rustfmt::skip]
const ASYNC_CASES: Cases = cases! {
    "spawn" => closed().spawn(async {});
};

#[cfg(not(feature = "async"))]
const ASYNC_CASES: Cases = cases! {};

#[test]
fn each_panic_points_at_the_callers_line() {
    let default_hook = panic::take_hook();
    panic::set_hook(Box::new(|info| {
        let location =
            info.location().map(|location| (location.file().to_owned(), location.line()));
        *LAST.lock().unwrap() = location;
    }));
    let mut wrong = Vec::new();
    for Cases { line, cases } in [CASES, ASYNC_CASES] {
        for (line, (name, panics)) in (line + 1..).zip(cases) {
            *LAST.lock().unwrap() = None;
            // A panic inside of a task does not reach this thread.
            let _ = catch_unwind(panics);
            let location = LAST.lock().unwrap().take();
            if location != Some((file!().to_owned(), line)) {
                wrong.push((name, line, location));
            }
        }
    }
    panic::set_hook(default_hook);
    assert!(wrong.is_empty(), "{wrong:#?}");
}
