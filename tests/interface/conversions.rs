//! The errors convert by `?` into those that programs use, and the types have the traits that other
//! crates ask for.

use crate::common;

use std::error::Error;
use std::io;
use std::panic::{RefUnwindSafe, UnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use common::{HOUR, LIMIT, settled, value};
use elastipool::{
    Builder, GroupError, JoinError, JoinHandle, RejectReason, Rejected, ThreadPool, WeakThreadPool,
};

type BoxError = Box<dyn Error + Send + Sync>;

fn closed() -> ThreadPool {
    let pool = ThreadPool::new(1, 1, HOUR);
    pool.close();
    pool
}

// ----- Rejected and RejectReason -----

/// The task is not `Sync`, as most are not.
#[test]
fn a_reason_converts_whatever_the_task_is() {
    fn boxed(pool: &ThreadPool, task: Box<dyn FnOnce() + Send>) -> Result<(), BoxError> {
        pool.try_execute(task).map_err(Rejected::into_reason)?;
        Ok(())
    }
    fn receiver(pool: &ThreadPool, receiver: mpsc::Receiver<u8>) -> anyhow::Result<()> {
        pool.try_execute(move || _ = receiver.recv()).map_err(|rejected| rejected.split().0)?;
        Ok(())
    }
    fn borrowing(pool: &ThreadPool, text: &str) -> anyhow::Result<()> {
        Ok(pool.scope(|scope| {
            scope.try_execute(|| assert!(!text.is_empty())).map_err(Rejected::into_reason)
        })?)
    }

    let text = "the task was not accepted: the pool is closed";
    let pool = closed();
    let error = boxed(&pool, Box::new(|| ())).unwrap_err();
    assert_eq!(error.to_string(), text);
    assert_eq!(error.downcast_ref(), Some(&RejectReason::Closed));
    assert_eq!(receiver(&pool, mpsc::channel().1).unwrap_err().to_string(), text);
    assert_eq!(borrowing(&pool, "text").unwrap_err().to_string(), text);

    let pool = ThreadPool::new(1, 1, HOUR);
    boxed(&pool, Box::new(|| ())).unwrap();
    borrowing(&pool, "text").unwrap();
    assert!(pool.shutdown_join_timeout(LIMIT));
}

#[test]
fn every_reason_says_that_the_task_was_not_accepted() {
    for (reason, end) in [
        (RejectReason::Closed, "the pool is closed"),
        (RejectReason::Full, "the queue or the group is full"),
        (RejectReason::NoThread, "the pool has no worker and the system refused to start a thread"),
        (RejectReason::Cancelled, "the group was cancelled"),
    ] {
        assert_eq!(reason.to_string(), format!("the task was not accepted: {end}"));
        assert!(reason.source().is_none());
    }
}

#[test]
fn a_reason_converts_into_an_io_error() {
    fn submit(pool: &ThreadPool) -> io::Result<()> {
        pool.try_execute(|| ()).map_err(Rejected::into_reason)?;
        Ok(())
    }

    let pool = ThreadPool::new(1, 1, HOUR);
    submit(&pool).expect("the pool is open, and its queue has no limit");
    assert!(pool.shutdown_join_timeout(LIMIT));
    let error = submit(&closed()).unwrap_err();
    assert_eq!(error.to_string(), "the task was not accepted: the pool is closed");
    for (reason, kind) in [
        (RejectReason::Closed, io::ErrorKind::Other),
        (RejectReason::Full, io::ErrorKind::WouldBlock),
        (RejectReason::NoThread, io::ErrorKind::Other),
        (RejectReason::Cancelled, io::ErrorKind::Other),
    ] {
        let error = io::Error::from(reason);
        assert_eq!((error.kind(), error.to_string()), (kind, reason.to_string()));
        assert_eq!(error.get_ref().expect("an inner error").downcast_ref(), Some(&reason));
    }
}

#[test]
fn a_split_rejection_gives_the_task_back() {
    let (reason, task) = closed().try_evaluate(|| 42).unwrap_err().split();
    assert_eq!((reason, task()), (RejectReason::Closed, 42));
}

// ----- GroupError -----

fn fails<E: From<io::Error> + Send + 'static>(pool: &ThreadPool) -> Result<(), GroupError<E>> {
    let group = pool.group::<E>();
    group.execute(|| Err(io::Error::other("no such host").into())).unwrap();
    group.wait()
}

fn panics<E: Send + 'static>(pool: &ThreadPool) -> Result<(), GroupError<E>> {
    let group = pool.group::<E>();
    group.execute(|| panic!("lost my keys")).unwrap();
    group.wait()
}

#[test]
fn a_wait_for_a_group_of_any_error_type_ends_with_a_question_mark() {
    fn with_anyhow(result: Result<(), GroupError<anyhow::Error>>) -> anyhow::Result<()> {
        Ok(result?)
    }
    fn with_box(result: Result<(), GroupError<BoxError>>) -> Result<(), BoxError> {
        Ok(result?)
    }
    fn with_io(result: Result<(), GroupError<io::Error>>) -> anyhow::Result<()> {
        Ok(result?)
    }

    let pool = ThreadPool::new(1, 2, HOUR);
    assert_eq!(with_anyhow(fails(&pool)).unwrap_err().to_string(), "no such host");
    assert_eq!(with_box(fails(&pool)).unwrap_err().to_string(), "no such host");
    assert_eq!(with_io(fails(&pool)).unwrap_err().to_string(), "no such host");
    let panicked = "the task panicked: lost my keys";
    assert_eq!(with_anyhow(panics(&pool)).unwrap_err().to_string(), panicked);
    assert_eq!(with_box(panics(&pool)).unwrap_err().to_string(), panicked);
    assert_eq!(with_io(panics(&pool)).unwrap_err().to_string(), panicked);
}

/// Also its type and its sources.
#[test]
fn a_group_error_converts_into_the_error_of_its_tasks() {
    fn with_context(pool: &ThreadPool) -> anyhow::Result<()> {
        let group = pool.group();
        let error = anyhow::Error::new(io::Error::other("no such host")).context("connecting");
        group.execute(|| Err(error)).map_err(Rejected::into_reason)?;
        group.wait().map_err(GroupError::into_error)?;
        Ok(())
    }

    let pool = ThreadPool::new(1, 2, HOUR);
    let error = with_context(&pool).unwrap_err();
    assert_eq!(format!("{error:#}"), "connecting: no such host");
    assert!(error.downcast_ref::<io::Error>().is_some());
    let error = fails::<BoxError>(&pool).unwrap_err().into_error();
    assert!(error.is::<io::Error>());

    let error = panics::<anyhow::Error>(&pool).unwrap_err().into_error();
    assert!(error.downcast::<JoinError>().unwrap().is_panic());
    let error = panics::<BoxError>(&pool).unwrap_err().into_error();
    assert!(error.downcast::<JoinError>().unwrap().is_panic());
    let error = panics::<io::Error>(&pool).unwrap_err().into_error();
    assert_eq!(error.to_string(), "the task panicked: lost my keys");
}

// ----- JoinError -----

#[test]
fn a_join_error_converts_into_an_io_error() {
    fn read(handle: JoinHandle<io::Result<u8>>) -> io::Result<u8> {
        settled(handle)?
    }
    fn join_error(error: &io::Error) -> &JoinError {
        error.get_ref().expect("an inner error").downcast_ref().expect("the error of the handle")
    }

    let pool = ThreadPool::new(1, 1, HOUR);
    assert_eq!(read(pool.evaluate(|| Ok(42))).unwrap(), 42);
    let error = read(pool.evaluate(|| panic!("lost my keys"))).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::Other);
    assert_eq!(error.to_string(), "the task panicked: lost my keys");
    assert!(join_error(&error).is_panic());
    let error = read(closed().evaluate(|| Ok(42))).unwrap_err();
    assert_eq!(error.to_string(), "the task was not accepted: the pool is closed");
    assert!(join_error(&error).is_cancelled());
}

// ----- the other traits -----

#[test]
fn handles_and_errors_cross_a_catch_unwind() {
    fn crosses<T: UnwindSafe + RefUnwindSafe>() {}

    /// Not safe itself.
    type Value = &'static mut std::cell::Cell<u8>;
    crosses::<ThreadPool>();
    crosses::<WeakThreadPool>();
    crosses::<JoinHandle<Value>>();

    let pool = ThreadPool::new(1, 1, HOUR);
    let handle = pool.evaluate(|| 42);
    assert_eq!(catch_unwind(move || value(handle)).unwrap(), 42);
}

#[test]
fn a_cloned_builder_builds_the_same_pool_with_the_same_hooks() {
    let started = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&started);
    let builder = Builder::new()
        .core_size(1)
        .max_size(1)
        .keep_alive(HOUR)
        .thread_name(|index| format!("cloned {index}"))
        .on_worker_start(move |_| _ = counts.fetch_add(1, Ordering::SeqCst));
    let pools = [builder.clone().build(), builder.clone().name("named").build(), builder.build()];
    for pool in &pools {
        assert_eq!((pool.core_size(), pool.max_size(), pool.keep_alive()), (1, 1, HOUR));
        let name = pool.evaluate(|| std::thread::current().name().map(str::to_owned));
        assert_eq!(value(name).as_deref(), Some("cloned 0"));
    }
    assert_eq!(started.load(Ordering::SeqCst), 3);
    assert_eq!(pools[1].name(), "named");
    assert_ne!(pools[0].name(), pools[2].name(), "each has a name of its own");
}

#[test]
fn handles_are_equal_if_they_are_of_the_same_pool() {
    let (pool, other) = (ThreadPool::new(1, 2, HOUR), ThreadPool::new(1, 2, HOUR));
    assert_eq!(pool, pool.clone());
    assert_ne!(pool, other);
    pool.close();
    assert_eq!(pool, pool.clone());
}

#[test]
fn weak_handles_are_equal_if_they_are_of_the_same_pool() {
    let (pool, other) = (ThreadPool::new(1, 2, HOUR), ThreadPool::new(1, 2, HOUR));
    let (weak, of_other) = (pool.downgrade(), other.downgrade());
    assert_eq!(weak, pool.clone().downgrade());
    assert_ne!(weak, of_other);
    drop((pool, other));
    assert_eq!(weak, weak.clone(), "also without the pool");
    assert_ne!(weak, of_other);
}

#[cfg(feature = "async")]
mod spawn {
    use std::future::pending;
    use std::time::Duration;

    use futures::task::{FutureObj, Spawn, SpawnExt};

    use super::{HOUR, LIMIT, ThreadPool, closed, value};
    use crate::common::{Dropped, Drops, block, panic_text};

    fn spawns(executor: &(impl Spawn + ?Sized)) {
        let handle = executor.spawn_with_handle(async { 6 * 7 }).unwrap();
        assert_eq!(async_io::block_on(handle), 42);
    }

    #[test]
    fn a_pool_is_an_executor_of_the_futures_crate() {
        let pool = ThreadPool::new(1, 2, HOUR);
        spawns(&pool);
        let object: &dyn Spawn = &pool;
        assert!(object.status().is_ok());
        spawns(object);
        assert!(pool.join_timeout(LIMIT));
        assert_eq!(pool.stats().completed, 2);
    }

    /// And drops the future, even one whose destructor panics.
    #[test]
    fn a_closed_pool_is_an_executor_that_was_shut_down() {
        struct Bomb {
            _dropped: Dropped,
        }
        impl Drop for Bomb {
            fn drop(&mut self) {
                panic!("a destructor");
            }
        }

        let pool = closed();
        assert!(pool.status().unwrap_err().is_shutdown());
        let drops = Drops::default();
        let bomb = Bomb { _dropped: drops.issue() };
        let future = FutureObj::new(Box::new(async move {
            let bomb = bomb;
            pending::<()>().await;
            drop(bomb);
        }));
        assert!(pool.spawn_obj(future).unwrap_err().is_shutdown());
        assert_eq!(drops.count(), 1);
        let text = panic_text(|| pool.spawn(async {}));
        assert!(
            text.contains("try_spawn"),
            "the method of the same name is still the pool's: {text}"
        );
    }

    #[test]
    fn spawning_through_the_trait_waits_for_capacity() {
        let pool = ThreadPool::builder().core_size(1).max_size(1).queue_capacity(0).build();
        let gate = block(&pool);
        let spawner = pool.clone();
        let handle = std::thread::spawn(move || spawner.spawn_with_handle(async { 42 }).unwrap());
        // Time for a wrong refusal.
        std::thread::sleep(Duration::from_millis(20));
        assert!(!handle.is_finished());
        gate.open();
        let handle = handle.join().unwrap();
        assert_eq!(value(pool.complete(handle)), 42);
    }
}
