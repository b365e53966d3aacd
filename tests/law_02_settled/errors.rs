//! What the errors say.

use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};

use crate::common::settled;
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

    pool.close();
    let error = settled(pool.evaluate(|| 1)).unwrap_err();
    assert!(error.is_cancelled() && !error.is_panic());
    assert_eq!(error.to_string(), "the task was cancelled");
    assert_eq!(format!("{error:?}"), "JoinError(the task was cancelled)");
    let error = error.try_into_panic().unwrap_err();
    assert!(error.is_cancelled());
    let payload = catch_unwind(AssertUnwindSafe(|| error.into_panic())).unwrap_err();
    let text = payload.downcast_ref::<&str>().expect("a text");
    assert!(text.contains("into_panic") && text.contains("cancelled"), "{text}");
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
