//! What the errors say.

use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::time::Duration;

use crate::common::{block, closed, settled};
use crate::{Typed, pool};
use elastipool::{RejectReason, Rejected};

#[test]
fn a_join_error_says_what_happened() {
    fn an_error<E: Error + Send + Sync + 'static>(_: &E) {}

    let pool = pool(1);
    let error = settled(pool.evaluate(|| -> u8 { panic!("static") })).unwrap_err();
    an_error(&error);
    assert!(error.is_panic() && !error.is_cancelled());
    assert_eq!(error.to_string(), "the task panicked: static");
    assert_eq!(format!("{error:?}"), "JoinError(the task panicked: static)");
    assert!(error.source().is_none());
    assert_eq!(error.into_panic().downcast_ref(), Some(&"static"));

    let place = String::from("here");
    let error = settled(pool.evaluate(move || -> u8 { panic!("made {place}") })).unwrap_err();
    assert_eq!(error.to_string(), "the task panicked: made here");
    let payload = error.try_into_panic().unwrap();
    assert_eq!(payload.downcast_ref(), Some(&String::from("made here")));

    let error = settled(pool.evaluate(|| -> u8 { panic_any(Typed(1)) })).unwrap_err();
    assert_eq!(error.to_string(), "the task panicked");
    assert_eq!(format!("{error:?}"), "JoinError(the task panicked)");

    let gate = block(&pool);
    let handle = pool.evaluate(|| 1);
    handle.cancel();
    gate.open();
    let error = settled(handle).unwrap_err();
    assert!(error.is_cancelled() && !error.is_panic() && !error.is_closed());
    assert_eq!(error.to_string(), "the task was cancelled");
    assert_eq!(format!("{error:?}"), "JoinError(the task was cancelled)");

    pool.close();
    let error = settled(pool.evaluate(|| 1)).unwrap_err();
    assert!(error.is_closed() && error.is_cancelled() && !error.is_panic());
    let text = format!("the task was not accepted: {}", closed());
    assert_eq!(error.to_string(), text);
    assert_eq!(format!("{error:?}"), format!("JoinError({text})"));
    let error = error.try_into_panic().unwrap_err();
    assert!(error.is_cancelled());
    let payload = catch_unwind(AssertUnwindSafe(|| error.into_panic())).unwrap_err();
    let text = payload.downcast_ref::<&str>().expect("a text");
    assert!(text.contains("into_panic") && text.contains("cancelled"), "{text}");
}

/// Whatever submits to it: a group, a scope, as a closure or a future.
#[test]
fn what_a_closed_pool_does_not_accept_says_so() {
    let pool = pool(1);
    let group = pool.group::<()>();
    pool.close();
    let mut errors = vec![
        pool.evaluate(|| 1).try_await_complete().unwrap_err(),
        pool.complete(async { 1 }).cancel_and_wait().unwrap_err(),
        group.evaluate(|| 1).try_await_complete().unwrap_err(),
        pool.scope(|scope| scope.evaluate(|| 1).try_await_complete().unwrap_err()),
        async_io::block_on(pool.evaluate(|| 1)).unwrap_err(),
    ];
    #[cfg(feature = "async")]
    errors.push(pool.spawn_await(async { 1 }).try_await_complete().unwrap_err());
    let handle = pool.evaluate(|| 1);
    assert!(handle.is_finished());
    errors.push(handle.await_complete_timeout(Duration::ZERO).unwrap().unwrap_err());
    assert!(errors.iter().all(|error| error.is_closed() && error.is_cancelled()));
    group.cancel();
    let error = group.evaluate(|| 1).try_await_complete().unwrap_err();
    assert!(error.is_cancelled() && !error.is_closed(), "the group was cancelled before");
}

/// `FutureExt::shared` clones the result.
#[test]
fn clones_of_a_join_error_share_the_payload() {
    use futures::FutureExt;

    let pool = pool(1);
    let shared = pool.evaluate(|| -> u8 { panic!("static") }).shared();
    let [one, other] = [shared.clone(), shared].map(async_io::block_on);
    for result in [one, other.clone(), other] {
        assert_eq!(result.unwrap_err().into_panic().downcast_ref(), Some(&"static"));
    }
    let place = String::from("here");
    let error = settled(pool.evaluate(move || -> u8 { panic!("made {place}") })).unwrap_err();
    for error in [error.clone(), error] {
        assert_eq!(error.to_string(), "the task panicked: made here");
        let payload = error.try_into_panic().unwrap();
        assert_eq!(payload.downcast_ref(), Some(&String::from("made here")));
    }
    let error = settled(pool.evaluate(|| -> u8 { panic_any(Typed(1)) })).unwrap_err();
    let (one, other) = (error.clone(), error);
    assert!(one.into_panic().downcast_ref::<Typed>().is_some());
    assert!(other.is_panic() && other.clone().try_into_panic().is_ok());
    let payload = other.into_panic();
    let text = payload.downcast_ref::<String>().expect("a text");
    assert!(text.contains("a clone"), "{text}");
}

#[test]
fn a_rejected_task_needs_no_debug() {
    /// Neither `Debug` nor `Clone` nor anything.
    struct Opaque(u8);

    let pool = pool(1);
    pool.close();
    let opaque = Opaque(7);
    let rejected = pool.try_evaluate(move || opaque.0).unwrap_err();
    assert_eq!(rejected.reason(), RejectReason::Closed);
    assert_eq!(rejected.to_string(), "the task was not accepted: the pool is closed");
    let text = format!("{rejected:?}");
    assert!(text.contains("Rejected") && text.contains("Closed"), "{text}");
    assert!(rejected.source().is_none(), "the system has nothing to do with it");
    assert_eq!(rejected.into_task()(), 7);

    fn is_error<F>(rejected: Rejected<F>) -> Box<dyn Error + Send + Sync>
    where
        F: Send + Sync + 'static,
    {
        Box::new(rejected)
    }
    let opaque = Opaque(8);
    let error = is_error(pool.try_execute(move || assert_eq!(opaque.0, 8)).unwrap_err());
    assert!(error.to_string().contains("closed"));
}
