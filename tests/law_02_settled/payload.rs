//! A handle resolves to the panic's payload.

use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};

use crate::common::panic_text;
use crate::{Typed, panicked, pool};

/// A payload that cannot be shared between threads.
struct SendOnly(std::cell::Cell<u32>);

#[test]
fn a_panic_reaches_its_handle_with_its_payload() {
    let pool = pool(2);
    let payload = panicked(pool.evaluate(|| -> u8 { panic_any(Typed(1)) }));
    assert_eq!(payload.downcast_ref(), Some(&Typed(1)));
    let payload = panicked(pool.complete(async { panic_any(Typed(2)) }));
    assert_eq!(payload.downcast_ref(), Some(&Typed(2)));
    let payload = panicked(pool.evaluate(|| -> u8 { panic_any(SendOnly(3.into())) }));
    assert_eq!(payload.downcast_ref::<SendOnly>().map(|only| only.0.get()), Some(3));
    let payload = panicked(pool.evaluate(|| -> u8 { panic!("text") }));
    assert_eq!(payload.downcast_ref(), Some(&"text"));
}

#[cfg(feature = "async")]
#[test]
fn a_panic_of_a_spawned_future_reaches_its_handle_with_its_payload() {
    let pool = pool(2);
    let payload = panicked(pool.spawn_await(async { panic_any(Typed(1)) }));
    assert_eq!(payload.downcast_ref(), Some(&Typed(1)));
    // In a later poll than the first.
    let (sender, receiver) = futures::channel::oneshot::channel();
    let handle = pool.spawn_await(async { panic_any(Typed(receiver.await.unwrap())) });
    sender.send(2).unwrap();
    assert_eq!(panicked(handle).downcast_ref(), Some(&Typed(2)));
}

#[test]
fn await_complete_resumes_the_panic() {
    let pool = pool(2);
    let handle = pool.evaluate(|| -> u8 { panic_any(Typed(1)) });
    let payload = catch_unwind(AssertUnwindSafe(|| handle.await_complete())).unwrap_err();
    assert_eq!(payload.downcast_ref(), Some(&Typed(1)));
    let handle = pool.complete(async { panic_any(Typed(2)) });
    let payload = catch_unwind(AssertUnwindSafe(|| handle.await_complete())).unwrap_err();
    assert_eq!(payload.downcast_ref(), Some(&Typed(2)));
}

#[test]
fn await_complete_says_that_there_is_no_value() {
    let pool = pool(2);
    pool.close();
    let handle = pool.evaluate(|| 1);
    let text = panic_text(|| handle.await_complete());
    assert!(text.contains("await_complete") && text.contains("closed"), "{text}");
}
